//! Remote memory, by the functions that programs call: what UCX's programs rely on.
//!
//! Each rule is tried on memory that loads and stores reach, which is what `ucp_mem_map` allocates,
//! and on memory of the program's, which the engine accesses.

#![allow(clippy::missing_safety_doc)]

mod common;

use ayre_ucp::abi::memory::{MemAttr, MemMapParams, MemhPackParams, RkeyCompareParams};
use ayre_ucp::abi::numbers::*;
use ayre_ucp::abi::request::RequestParam;
use ayre_ucp::abi::status::Status;
use common::*;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

type Put = unsafe extern "C" fn(Pointer, *const c_void, usize, u64, Pointer) -> Status;
type Atomic = unsafe extern "C" fn(
    Pointer,
    c_uint,
    *const c_void,
    usize,
    u64,
    Pointer,
    *const RequestParam,
) -> Pointer;
type Get = unsafe extern "C" fn(Pointer, Pointer, usize, u64, Pointer) -> Status;

#[allow(clippy::unnecessary_safety_comment, reason = "every foreign block has one")]
// SAFETY: the functions of the library, by their declarations in C.
unsafe extern "C" {
    fn ucp_mem_map(context: Pointer, p: *const MemMapParams, to: *mut Pointer) -> Status;
    fn ucp_mem_unmap(context: Pointer, memory: Pointer) -> Status;
    fn ucp_mem_query(memory: Pointer, attr: *mut MemAttr) -> Status;
    fn ucp_rkey_pack(c: Pointer, memory: Pointer, to: *mut *mut u8, len: *mut usize) -> Status;
    fn ucp_memh_pack(
        memory: Pointer,
        p: *const MemhPackParams,
        to: *mut *mut u8,
        len: *mut usize,
    ) -> Status;
    fn ucp_rkey_buffer_release(bytes: *mut u8);
    fn ucp_ep_rkey_unpack(ep: Pointer, bytes: *const u8, to: *mut Pointer) -> Status;
    fn ucp_rkey_ptr(rkey: Pointer, address: u64, to: *mut Pointer) -> Status;
    fn ucp_rkey_compare(
        worker: Pointer,
        a: Pointer,
        b: Pointer,
        p: *const RkeyCompareParams,
        to: *mut c_int,
    ) -> Status;
    fn ucp_rkey_destroy(rkey: Pointer);
    fn ucp_put(ep: Pointer, b: *const c_void, n: usize, at: u64, rkey: Pointer) -> Status;
    fn ucp_put_nbi(ep: Pointer, b: *const c_void, n: usize, at: u64, rkey: Pointer) -> Status;
    fn ucp_get(ep: Pointer, b: Pointer, n: usize, at: u64, rkey: Pointer) -> Status;
    fn ucp_get_nbi(ep: Pointer, b: Pointer, n: usize, at: u64, rkey: Pointer) -> Status;
    fn ucp_put_nbx(
        ep: Pointer,
        b: *const c_void,
        n: usize,
        at: u64,
        rkey: Pointer,
        p: *const RequestParam,
    ) -> Pointer;
    fn ucp_get_nbx(
        ep: Pointer,
        b: Pointer,
        n: usize,
        at: u64,
        rkey: Pointer,
        p: *const RequestParam,
    ) -> Pointer;
    fn ucp_atomic_op_nbx();
    fn ucp_atomic_post(
        ep: Pointer,
        op: c_uint,
        value: u64,
        n: usize,
        at: u64,
        rkey: Pointer,
    ) -> Status;
    fn ucp_atomic_fadd32(ep: Pointer, add: u32, at: u64, rkey: Pointer, to: *mut u32) -> Status;
    fn ucp_atomic_cswap64(
        ep: Pointer,
        compare: u64,
        swap: u64,
        at: u64,
        rkey: Pointer,
        to: *mut u64,
    ) -> Status;
    fn ucp_worker_fence(worker: Pointer) -> Status;
    fn ucp_worker_flush_nbx(worker: Pointer, p: *const RequestParam) -> Pointer;
}

/// The maker of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The library: others map it.
    Allocated,
    /// The program: the engine of its owner accesses it.
    Programs,
}

const KINDS: [Kind; 2] = [Kind::Allocated, Kind::Programs];

/// Memory of the second worker's context, and a key of the first one's for it.
struct Window<'a> {
    world: &'a World,
    memory: Pointer,
    at: *mut u8,
    len: usize,
    rkey: Pointer,
    _own: Vec<u64>,
}

impl<'a> Window<'a> {
    fn new(world: &'a World, kind: Kind, len: usize) -> Self {
        Self::with(world, kind, len, None)
    }

    fn with(world: &'a World, kind: Kind, len: usize, protection: Option<c_uint>) -> Self {
        let mut own = vec![0_u64; len.div_ceil(8)];
        let address = if kind == Kind::Programs { own.as_mut_ptr().cast() } else { null_mut() };
        let memory = map(world.contexts[1], (address, len), 0, protection).unwrap();
        let (at, mapped) = query(memory);
        assert!(mapped >= len && (kind == Kind::Allocated || mapped == len), "{mapped}");
        let rkey = unpack(world.eps[0], &pack(world.contexts[1], memory)).unwrap();
        Self { world, memory, at, len, rkey, _own: own }
    }

    fn address(&self) -> u64 {
        self.at.addr() as u64
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: it is there, and nobody else accesses it now.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }.to_vec()
    }

    fn word(&self) -> u64 {
        u64::from_ne_bytes(self.bytes()[..8].try_into().unwrap())
    }

    fn set_word(&self, value: u64) {
        // SAFETY: as in bytes().
        unsafe { self.at.cast::<u64>().write(value) };
    }

    fn put(&self, bytes: &[u8], offset: u64, how: &How) -> Begun {
        let (start, at) = (bytes.as_ptr().cast(), self.address() + offset);
        // SAFETY: memory that stays until the end.
        Begun::of(unsafe {
            let param = &raw const how.param;
            ucp_put_nbx(self.world.eps[0], start, bytes.len(), at, self.rkey, param)
        })
    }

    fn get(&self, into: &mut [u8], offset: u64, how: &How) -> Begun {
        let (start, at) = (into.as_mut_ptr().cast(), self.address() + offset);
        // SAFETY: memory that stays until the end.
        Begun::of(unsafe {
            let param = &raw const how.param;
            ucp_get_nbx(self.world.eps[0], start, into.len(), at, self.rkey, param)
        })
    }

    /// All has ended that goes to the worker's memory.
    fn flush(&self) -> Status {
        let param = How::new().param;
        // SAFETY: the worker is there.
        let begun = unsafe { ucp_worker_flush_nbx(self.world.workers[0], &raw const param) };
        self.world.end(Begun::of(begun)).0
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        // SAFETY: neither is used again.
        unsafe {
            ucp_rkey_destroy(self.rkey);
            if !self.memory.is_null() {
                ucp_mem_unmap(self.world.contexts[1], self.memory);
            }
        }
    }
}

fn map(
    context: Pointer,
    (address, len): (Pointer, usize),
    flags: c_uint,
    protection: Option<c_uint>,
) -> Result<Pointer, Status> {
    let (mut params, mut memory): (MemMapParams, _) = (empty(), null_mut());
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS
        | UCP_MEM_MAP_PARAM_FIELD_LENGTH
        | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    (params.address, params.length, params.flags) = (address, len, flags);
    if let Some(protection) = protection {
        params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_PROT;
        params.prot = protection;
    }
    // SAFETY: the structure is as its mask says.
    match unsafe { ucp_mem_map(context, &raw const params, &raw mut memory) } {
        Status::OK => Ok(memory),
        status => Err(status),
    }
}

fn query(memory: Pointer) -> (*mut u8, usize) {
    let mut attr: MemAttr = empty();
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    // SAFETY: the structure is as its mask says.
    assert_eq!(unsafe { ucp_mem_query(memory, &raw mut attr) }, Status::OK);
    (attr.address.cast(), attr.length)
}

/// The bytes of a key, behind one byte more, so that they are not aligned.
fn pack(context: Pointer, memory: Pointer) -> Vec<u8> {
    let (mut at, mut len) = (null_mut(), 0);
    // SAFETY: the memory is there, and the bytes are released once.
    unsafe {
        assert_eq!(ucp_rkey_pack(context, memory, &raw mut at, &raw mut len), Status::OK);
        let bytes = [&[0xAA], std::slice::from_raw_parts(at, len), &[0xBB; 20]].concat();
        ucp_rkey_buffer_release(at);
        bytes
    }
}

fn unpack(ep: Pointer, bytes: &[u8]) -> Result<Pointer, Status> {
    let mut rkey = null_mut();
    // SAFETY: the bytes of a key, or of none.
    match unsafe { ucp_ep_rkey_unpack(ep, bytes[1..].as_ptr(), &raw mut rkey) } {
        Status::OK => Ok(rkey),
        status => Err(status),
    }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn bytes_are_written_and_read() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 300_000);
        for (round, len) in [0, 1, 8, 512, 513, 4096, 4097, 70_000, 299_990].into_iter().enumerate()
        {
            let (out, mut into) = (pattern(len, round as u8), vec![0; len]);
            assert_eq!(world.end(window.put(&out, 7, &How::new())).0, Status::OK, "{kind:?}");
            assert_eq!(window.flush(), Status::OK);
            assert_eq!(window.bytes()[7..7 + len], out, "{kind:?} {len}");
            assert_eq!(world.end(window.get(&mut into, 7, &How::new())).0, Status::OK);
            assert_eq!(into, out, "{kind:?} {len}");
        }
    }
}

/// The functions without a request: *in progress* where the memory is needed, and a flush ends it.
#[test]
fn operations_without_a_request_end_by_a_flush() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 100_000);
        let (out, mut into) = (pattern(100_000, 9), vec![0; 100_000]);
        let (ep, at, rkey) = (world.eps[0], window.address(), window.rkey);
        // SAFETY: memory that stays until the flush has ended.
        let put = unsafe { ucp_put_nbi(ep, out.as_ptr().cast(), out.len(), at, rkey) };
        let expected = if kind == Kind::Allocated { Status::OK } else { Status::IN_PROGRESS };
        assert_eq!(put, expected);
        assert_eq!((window.flush(), window.bytes() == out), (Status::OK, true), "{kind:?}");
        // SAFETY: as above.
        let get = unsafe { ucp_get_nbi(ep, into.as_mut_ptr().cast(), into.len(), at, rkey) };
        assert_eq!(get, expected);
        assert_eq!((window.flush(), into == out), (Status::OK, true), "{kind:?}");
    }
}

/// The oldest functions return when they have ended: the target makes progress meanwhile.
#[test]
fn blocking_functions_have_ended_when_they_return() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 100_000);
        let (out, mut into) = (pattern(100_000, 3), vec![0; 100_000]);
        let (put, get): (Put, Get) = (ucp_put, ucp_get);
        let (at, is_over) = (window.address(), std::sync::atomic::AtomicBool::new(false));
        let (target, order) = (Address(world.workers[1]), std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let target = &target;
                while !is_over.load(order) {
                    // SAFETY: no other thread uses this worker meanwhile.
                    unsafe { ucp_worker_progress(target.0) };
                }
            });
            let (ep, rkey) = (world.eps[0], window.rkey);
            // SAFETY: memory that stays until they return.
            let all = unsafe {
                let (mut old, mut swapped) = (0, 0);
                [
                    put(ep, out.as_ptr().cast(), out.len(), at, rkey),
                    get(ep, into.as_mut_ptr().cast(), into.len(), at, rkey),
                    ucp_atomic_fadd32(ep, 5, at, rkey, &raw mut old),
                    ucp_atomic_cswap64(ep, 1, 2, at + 8, rkey, &raw mut swapped),
                ]
            };
            is_over.store(true, order);
            assert_eq!(all, [Status::OK; 4], "{kind:?}");
        });
        assert_eq!(into, out, "{kind:?}");
        let word = |bytes: &[u8]| u32::from_ne_bytes(bytes[..4].try_into().unwrap());
        assert_eq!(word(&window.bytes()), word(&out).wrapping_add(5), "{kind:?}");
    }
}

struct Address(Pointer);
// SAFETY: one thread uses the worker at a time.
unsafe impl Sync for Address {}

/// Each operation on numbers of either width, with the old number and without.
#[test]
fn atomics_change_numbers() {
    type Row = (c_uint, fn(u64, u64) -> u64);
    const ROWS: [Row; 5] = [
        (UCP_ATOMIC_OP_ADD, |old, operand| old.wrapping_add(operand)),
        (UCP_ATOMIC_OP_AND, |old, operand| old & operand),
        (UCP_ATOMIC_OP_OR, |old, operand| old | operand),
        (UCP_ATOMIC_OP_XOR, |old, operand| old ^ operand),
        (UCP_ATOMIC_OP_SWAP, |_, operand| operand),
    ];
    const OLD: u64 = 0xFEDC_BA98_FFFF_FFF0;
    const OPERAND: u64 = 0x0123_4567_0000_0F31;
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 16);
        for (op, change) in ROWS {
            for (size, fetches) in [(4, false), (4, true), (8, false), (8, true)] {
                window.set_word(OLD);
                let mut old = [0x55_u8; 8];
                let how = if fetches { How::new().reply(&mut old) } else { How::new() };
                let begun = update(&window, op, &OPERAND, &how.elements(size));
                let needs_place = op == UCP_ATOMIC_OP_SWAP && !fetches;
                let status = if needs_place { Status::INVALID_PARAM } else { Status::OK };
                let case = format!("{kind:?} {op} of {size} {fetches}");
                assert_eq!((world.end(begun).0, window.flush()), (status, Status::OK), "{case}");
                if needs_place {
                    continue;
                }
                let mask = if size == 8 { u64::MAX } else { u32::MAX.into() };
                let new = change(OLD & mask, OPERAND & mask) & mask | OLD & !mask;
                assert_eq!(window.word(), new, "{case}");
                if fetches {
                    assert_eq!(old[..size], OLD.to_ne_bytes()[..size], "{case}");
                    assert_eq!(old[size..], [0x55; 8][size..], "{case}");
                }
            }
        }
    }
}

fn update(window: &Window<'_>, op: c_uint, operand: &u64, how: &How) -> Begun {
    let operand = (&raw const *operand).cast();
    // SAFETY: its declaration in C, and memory that stays until the end.
    Begun::of(unsafe {
        let call: Atomic = std::mem::transmute(ucp_atomic_op_nbx as unsafe extern "C" fn());
        let (ep, param) = (window.world.eps[0], &raw const how.param);
        call(ep, op, operand, 1, window.address(), window.rkey, param)
    })
}

/// The expected number is the buffer, the new one lies where the old one goes.
#[test]
fn a_number_is_swapped_if_it_is_the_expected_one() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 8);
        for (expected, is_swapped) in [(7, true), (8, false)] {
            window.set_word(7);
            let mut place = 99_u64.to_ne_bytes();
            let how = How::new().reply(&mut place).elements(8);
            let begun = update(&window, UCP_ATOMIC_OP_CSWAP, &expected, &how);
            assert_eq!(world.end(begun).0, Status::OK);
            assert_eq!(u64::from_ne_bytes(place), 7, "{kind:?} {expected}");
            assert_eq!(window.word(), if is_swapped { 99 } else { 7 }, "{kind:?} {expected}");
        }
    }
}

/// Those of several initiators, of the target's engine and of processors count together.
#[test]
fn atomics_of_all_kinds_are_atomic_among_each_other() {
    const ROUNDS: u64 = 20_000;
    let world = World::new();
    let window = Window::new(&world, Kind::Allocated, 8);
    // The target's engine, for one that cannot map the memory: its key has no descriptor.
    let mut bytes = pack(world.contexts[1], window.memory);
    bytes[1 + 44..1 + 48].fill(0);
    let far = unpack(world.eps[0], &bytes).unwrap();
    let (ep, at) = (world.eps[0], window.address());
    // SAFETY: the memory is there, and a number.
    let own = unsafe { std::sync::atomic::AtomicU64::from_ptr(window.at.cast()) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                own.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
        for _ in 0..ROUNDS {
            for rkey in [far, window.rkey] {
                // SAFETY: handles that are there.
                let posted = unsafe { ucp_atomic_post(ep, 0, 1, 8, at, rkey) };
                assert!(matches!(posted, Status::OK | Status::IN_PROGRESS), "{posted:?}");
            }
            world.progress();
        }
    });
    assert_eq!((window.flush(), window.word()), (Status::OK, 3 * ROUNDS));
    // SAFETY: it is not used again.
    unsafe { ucp_rkey_destroy(far) };
}

/// Behind a fence nothing overtakes: not a long read, and not the engine by loads and stores.
#[test]
fn a_fence_keeps_what_follows_behind() {
    let world = World::new();
    let (near, far) =
        (Window::new(&world, Kind::Allocated, 8), Window::new(&world, Kind::Programs, 200_000));
    let fence = || {
        // SAFETY: the worker is there.
        assert_eq!(unsafe { ucp_worker_fence(world.workers[0]) }, Status::OK);
    };
    assert_eq!(world.end(far.put(&[1; 200_000], 0, &How::new())).0, Status::OK);
    let mut into = vec![0; 200_000];
    let read = far.get(&mut into, 0, &How::new());
    fence();
    let written = far.put(&[2; 200_000], 0, &How::new());
    let told = [2; 8];
    fence();
    let last = near.put(&told, 0, &How::new());
    // The target has made no progress.
    assert_eq!(near.word(), 0, "it waits");
    assert_eq!([read, written, last].map(|begun| world.end(begun).0), [Status::OK; 3]);
    assert!(into.iter().all(|byte| *byte == 1), "the read came first");
    assert_eq!(near.bytes(), told);
    assert!(far.bytes().iter().all(|byte| *byte == 2));
    // Where nothing is under way, a store is done at once.
    fence();
    assert_eq!(near.put(&[3; 8], 0, &How::new()), Begun::Done);
    assert_eq!(near.bytes(), [3; 8]);
}

#[test]
fn a_flush_ends_when_the_target_has_it() {
    let (world, out) = (World::new(), pattern(64, 1));
    let window = Window::new(&world, Kind::Programs, 64);
    assert_eq!(window.put(&out, 0, &How::new()), Begun::Done, "its memory was copied");
    // SAFETY: the endpoint is there.
    let flush = Begun::of(unsafe { ucp_ep_flush_nbx(world.eps[0], &How::new().param) });
    for _ in 0..100 {
        // SAFETY: the worker is there.
        unsafe { ucp_worker_progress(world.workers[0]) };
    }
    // SAFETY: the request was not given back.
    assert_eq!(unsafe { ucp_request_check_status(flush.request()) }, Status::IN_PROGRESS);
    assert_eq!((world.end(flush).0, window.bytes()), (Status::OK, out));
}

/// With the flag, a function hears of an end that came in the call.
#[test]
fn ends_are_told_by_a_function_where_the_program_wants_that() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 64);
        for (flags, calls) in [(0, 0), (UCP_OP_ATTR_FLAG_NO_IMM_CMPL, 1)] {
            let told = Told::default();
            let how = How::new().told_of_send(&told).flags(flags);
            let put = window.put(&[5; 64], 0, &how);
            assert_eq!(put == Begun::Done, calls == 0, "{kind:?}");
            assert_eq!(world.end(put).0, Status::OK);
            assert_eq!(window.flush(), Status::OK);
            world.until(|| told.all().len() == calls);
            assert!(told.all().iter().all(|(status, ..)| *status == Status::OK));
        }
    }
}

#[test]
fn memory_is_reached_by_its_key_alone() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 64);
        let bytes = pack(world.contexts[1], window.memory);
        for place in 1..6 {
            let mut spoilt = bytes.clone();
            spoilt[place] ^= 0x41;
            let status = unpack(world.eps[0], &spoilt).err();
            assert_eq!(status, Some(Status::INVALID_PARAM), "byte {place}");
        }
        let (mut pointer, mut result) = (null_mut::<c_void>(), 7);
        let again = unpack(world.eps[0], &bytes).unwrap();
        // SAFETY: handles, not used again.
        unsafe {
            let found = ucp_rkey_ptr(window.rkey, window.address() + 8, &raw mut pointer);
            assert_eq!(found == Status::OK, kind == Kind::Allocated, "{found:?}");
            let (one, other) = (window.rkey, again);
            let params = empty();
            let compared =
                ucp_rkey_compare(world.workers[0], one, other, &raw const params, &raw mut result);
            assert_eq!((compared, result), (Status::OK, 0));
            ucp_rkey_destroy(again);
        }
        if kind == Kind::Allocated {
            // SAFETY: a word of the memory, which another mapping shows here.
            unsafe { pointer.cast::<u64>().write(77) };
            assert_eq!(window.bytes()[8..16], 77_u64.to_ne_bytes());
        }
    }
}

/// Of another file, or of another process: the engine is asked.
#[test]
fn memory_of_a_wrong_file_is_not_reached() {
    let world = World::new();
    let memory = map(world.contexts[1], (null_mut(), 64), 0, None).unwrap();
    let (bytes, at) = (pack(world.contexts[1], memory), query(memory).0.addr() as u64);
    let is_reached = |bytes: &[u8]| {
        let (rkey, mut pointer) = (unpack(world.eps[0], bytes).unwrap(), null_mut());
        // SAFETY: a handle, not used again.
        unsafe {
            let found = ucp_rkey_ptr(rkey, at, &raw mut pointer);
            ucp_rkey_destroy(rkey);
            assert!(matches!(found, Status::OK | Status::UNREACHABLE), "{found:?}");
            found == Status::OK
        }
    };
    // Its number, its length, its home, its process, its descriptor.
    for place in [8, 25, 32, 40, 44] {
        let mut spoilt = bytes.clone();
        spoilt[1 + place] ^= 0x41;
        assert!(!is_reached(&spoilt), "byte {place}");
    }
    assert!(is_reached(&bytes));
    // Nor while the memory is mapped here by a right key: none that is longer, and one that has
    // more rights gets a mapping of its own.
    let mut reads = bytes.clone();
    reads[1 + 5] = 1;
    let known = unpack(world.eps[0], &reads).unwrap();
    let mut longer = bytes.clone();
    longer[1 + 25] ^= 0x41;
    assert!(!is_reached(&longer));
    let (writes, param) = (unpack(world.eps[0], &bytes).unwrap(), How::new().param);
    // SAFETY: handles and memory that are there, and are not used again.
    unsafe {
        let (out, ep) = ([7_u8; 8].as_ptr().cast(), world.eps[0]);
        let put = ucp_put_nbx(ep, out, 8, at, writes, &raw const param);
        assert_eq!(Begun::of(put), Begun::Done);
        assert_eq!(query(memory).0.cast::<u64>().read(), u64::from_ne_bytes([7; 8]));
        [known, writes].into_iter().for_each(|rkey| ucp_rkey_destroy(rkey));
    }
    // SAFETY: it is not used again.
    assert_eq!(unsafe { ucp_mem_unmap(world.contexts[1], memory) }, Status::OK);
}

#[test]
fn ranges_rights_and_alignment_are_looked_at() {
    let world = World::new();
    for kind in KINDS {
        let window = Window::new(&world, kind, 4096);
        for (offset, len) in [(4096, 1), (4090, 8), (u64::MAX, 1)] {
            let (out, mut into) = (vec![0; len], vec![0; len]);
            let at = window.address().wrapping_add(offset).wrapping_sub(window.address());
            let refused = Begun::Failed(Status::OUT_OF_RANGE);
            if offset < u64::MAX {
                assert_eq!(window.put(&out, at, &How::new()), refused, "{kind:?} {offset}");
                assert_eq!(window.get(&mut into, at, &How::new()), refused, "{kind:?} {offset}");
            }
        }
        // SAFETY: handles that are there.
        let odd =
            unsafe { ucp_atomic_post(world.eps[0], 0, 1, 8, window.address() + 4, window.rkey) };
        assert_eq!(odd, Status::INVALID_PARAM, "{kind:?}");
        let (reads, writes) = (UCP_MEM_MAP_PROT_REMOTE_READ, UCP_MEM_MAP_PROT_REMOTE_WRITE);
        for (protection, put, get) in [
            (reads, Status::REJECTED, Status::OK),
            (writes, Status::OK, Status::REJECTED),
            (0, Status::REJECTED, Status::REJECTED),
        ] {
            let window = Window::with(&world, kind, 64, Some(protection));
            let mut into = [0; 8];
            assert_eq!(world.end(window.put(&[1; 8], 0, &How::new())).0, put, "{kind:?}");
            assert_eq!(world.end(window.get(&mut into, 0, &How::new())).0, get, "{kind:?}");
            assert_eq!(window.flush(), Status::OK, "{kind:?}");
        }
    }
}

/// Memory that was unmapped: the engine refuses, and a flush tells of what had no request.
#[test]
fn memory_that_is_gone_is_refused() {
    let world = World::new();
    let mut window = Window::new(&world, Kind::Programs, 64);
    // SAFETY: the handle is not used again.
    let unmapped = unsafe { ucp_mem_unmap(world.contexts[1], window.memory) };
    (window.memory, window._own) = (null_mut(), window._own.clone());
    assert_eq!(unmapped, Status::OK);
    assert_eq!(window.put(&[1; 8], 0, &How::new()), Begun::Done);
    assert_eq!((window.flush(), window.flush()), (Status::NO_ELEM, Status::OK), "it is told once");
    let mut into = [0; 8];
    assert_eq!(world.end(window.get(&mut into, 0, &How::new())).0, Status::NO_ELEM);
}

#[test]
fn memory_is_made_where_the_program_wants_it() {
    let world = World::new();
    let context = world.contexts[0];
    let made = map(context, (null_mut(), 5000), 0, None).unwrap();
    let (at, len) = query(made);
    assert_eq!(len, 8192, "whole pages");
    // SAFETY: the memory is there, and is not used again.
    unsafe {
        assert!(std::slice::from_raw_parts(at, len).iter().all(|byte| *byte == 0));
        assert_eq!(ucp_mem_unmap(context, made), Status::OK);
    }
    // That place is free now.
    let flags = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED;
    let fixed = map(context, (at.cast(), 4096), flags, None).unwrap();
    assert_eq!(query(fixed), (at, 4096));
    // SAFETY: it is there, and is not used again.
    unsafe {
        at.write(1);
        assert_eq!(ucp_mem_unmap(context, fixed), Status::OK);
    }
    let odd = map(context, (at.wrapping_add(8).cast(), 4096), flags, None);
    assert_eq!(odd, Err(Status::INVALID_PARAM));
    assert!(map(context, (null_mut(), usize::MAX), 0, None).is_err());
    let nothing = map(context, (null_mut(), 0), 0, None).unwrap();
    assert_eq!(query(nothing).1, 0);
    assert!(unpack(world.eps[1], &pack(context, nothing)).is_ok_and(|rkey| {
        // SAFETY: it is not used again.
        unsafe { ucp_rkey_destroy(rkey) };
        true
    }));
    let mut params: MemhPackParams = empty();
    (params.field_mask, params.flags) =
        (UCP_MEMH_PACK_PARAM_FIELD_FLAGS, UCP_MEMH_PACK_FLAG_EXPORT);
    // SAFETY: the structure is as its mask says; the memory is not used again.
    unsafe {
        let exported = ucp_memh_pack(nothing, &raw const params, null_mut(), null_mut());
        assert_eq!(exported, Status::UNSUPPORTED);
        assert_eq!(ucp_mem_unmap(context, nothing), Status::OK);
    }
}

/// A peer cannot have a program write into the program's own memory by a key that seems to be the
/// program's: that key goes to the peer.
#[test]
fn a_forged_key_of_own_memory_is_not_reached() {
    let world = World::new();
    let mut own = vec![0_u64; 8];
    let memory = map(world.contexts[0], (own.as_mut_ptr().cast(), 64), 0, None).unwrap();
    let good = pack(world.contexts[0], memory);
    let is_reached = |bytes: &[u8]| {
        let (rkey, mut pointer) = (unpack(world.eps[0], bytes).unwrap(), null_mut());
        let address = u64::from_le_bytes(bytes[17..25].try_into().unwrap());
        // SAFETY: a handle, not used again.
        unsafe {
            let found = ucp_rkey_ptr(rkey, address, &raw mut pointer);
            ucp_rkey_destroy(rkey);
            found == Status::OK
        }
    };
    assert!(is_reached(&good));
    // Another key, another address, a greater length, more rights.
    for place in [8, 16, 26, 5] {
        let mut forged = good.clone();
        forged[1 + place] ^= 4;
        assert!(!is_reached(&forged), "byte {place}");
    }
    // SAFETY: it is not used again.
    assert_eq!(unsafe { ucp_mem_unmap(world.contexts[0], memory) }, Status::OK);
    assert!(!is_reached(&good), "it is gone");
}

/// A worker's accesses to memory of its own context.
#[test]
fn own_memory_is_reached_by_loads_and_stores() {
    let world = World::new();
    let (context, worker) = (world.contexts[0], world.workers[0]);
    let ep = connect(worker, &address_of(worker)).unwrap();
    let mut own = vec![0_u64; 8];
    let start = own.as_mut_ptr();
    let memory = map(context, (start.cast(), 64), 0, None).unwrap();
    let rkey = unpack(ep, &pack(context, memory)).unwrap();
    let (out, at) = (5_u64, start.addr() as u64);
    let param = How::new().param;
    // SAFETY: memory and handles that are there, and are not used again.
    unsafe {
        let put = ucp_put_nbx(ep, (&raw const out).cast(), 8, at + 8, rkey, &raw const param);
        assert_eq!(Begun::of(put), Begun::Done);
        assert_eq!(ucp_atomic_post(ep, 0, 2, 8, at + 8, rkey), Status::OK);
        assert_eq!(start.add(1).read(), 7);
        ucp_rkey_destroy(rkey);
        assert_eq!(ucp_mem_unmap(context, memory), Status::OK);
        assert_eq!(world.end(Begun::of(ucp_ep_close_nbx(ep, &raw const param))).0, Status::OK);
    }
}

//! Tagged messages, and the rules of requests that programs rely on.

mod common;

use ayre_ucp::abi::numbers::*;
use ayre_ucp::abi::request::{DtIov, GenericDtOps, TagRecvInfo};
use ayre_ucp::abi::status::Status;
use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ALL: u64 = u64::MAX;

/// The type of `ucp_tag_recv_nb`.
type RecvNb = unsafe extern "C" fn(Pointer, Pointer, usize, u64, u64, u64, RecvFn) -> Pointer;

/// Bytes that tell their place and their message.
fn bytes(len: usize, message: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(31) ^ message.wrapping_mul(101)) as u8).collect()
}

#[test]
fn messages_of_all_lengths_arrive_before_and_behind_their_receives() {
    let world = World::new();
    for len in [0, 1, 8, 63, 4096, 20_000, 1 << 20] {
        for is_late in [false, true] {
            let (out, mut into) = (bytes(len, 3), vec![0; len + 5]);
            let receive = |into: &mut Vec<u8>| world.receive(1, into, (7, ALL), &How::new());
            let early = (!is_late).then(|| receive(&mut into));
            let sent = world.send(0, &out, 7, &How::new());
            if is_late {
                world.until(|| world.probe(1, (7, ALL), false).is_some());
            }
            let received = early.unwrap_or_else(|| receive(&mut into));
            assert_eq!(world.end(sent).0, Status::OK);
            let (status, info) = world.end(received);
            assert_eq!(status, Status::OK, "{len} bytes, late: {is_late}");
            // One that ends in its call tells nothing by a request.
            assert!(received == Begun::Done || (info.sender_tag, info.length) == (7, len));
            assert_eq!(into[..len], out[..], "{len} bytes, late: {is_late}");
        }
    }
}

#[test]
fn masks_choose_messages_and_the_oldest_comes_first() {
    let world = World::new();
    for (i, tag) in [0x1_0001, 0x2_0001, 0x1_0002].into_iter().enumerate() {
        assert_eq!(world.send(0, &[i as u8], tag, &How::new()), Begun::Done);
    }
    world.until(|| world.probe(1, (0x1_0002, ALL), false).is_some());
    for (pattern, expected) in [((2, 0xFFFF), 2), ((0x1_0000, 0xFFFF_0000), 0), ((0, 0), 1)] {
        let (mut into, mut info) = ([9], empty());
        assert_eq!(world.receive(1, &mut into, pattern, &How::new().info(&mut info)), Begun::Done);
        assert_eq!((into[0], info.length), (expected, 1));
    }
}

#[test]
fn a_probe_that_removes_a_message_is_the_only_one_to_receive_it() {
    let world = World::new();
    for len in [10, 1 << 20] {
        let (out, mut into) = (bytes(len, 1), vec![0; len]);
        let sent = world.send(0, &out, 5, &How::new());
        let mut found = None;
        world.until(|| {
            found = world.probe(1, (5, ALL), true);
            found.is_some()
        });
        let (message, info) = found.unwrap();
        assert_eq!((info.sender_tag, info.length), (5, len));
        assert!(world.probe(1, (0, 0), false).is_none(), "it was removed");
        let received = world.receive_found(1, &mut into, message, &How::new());
        assert_eq!(world.end(received).0, Status::OK);
        assert_eq!(world.end(sent).0, Status::OK);
        assert_eq!(into, out);
    }
}

/// Open MPI throws the result of its receive away, and asks its request.
#[test]
fn a_request_of_the_programs_is_told_of_an_end_in_the_call_and_has_no_byte_of_its_own() {
    let world = World::new();
    let mut memory = vec![0xEE_u8; world.head_bytes() + 64 + 16];
    let start = memory.as_mut_ptr().wrapping_add(memory.as_ptr().align_offset(16));
    let request: *mut c_void = start.wrapping_add(world.head_bytes()).cast();
    assert_eq!(world.send(0, b"early", 4, &How::new()), Begun::Done);
    world.until(|| world.probe(1, (4, ALL), false).is_some());
    let mut into = [0; 8];
    let how = How::new().request(request);
    assert_eq!(world.receive(1, &mut into, (4, ALL), &how), Begun::Done);
    let mut info: TagRecvInfo = empty();
    // SAFETY: the program's request, whose operation has ended.
    assert_eq!(unsafe { ucp_request_test(request, &raw mut info) }, Status::OK);
    assert_eq!((info.sender_tag, info.length), (4, 5));
    // SAFETY: memory of the program's.
    let behind = unsafe { std::slice::from_raw_parts(request.cast::<u8>(), 48) };
    assert!(behind.iter().all(|byte| *byte == 0xEE), "its part was touched");
    // One that goes on ends in the same place.
    assert_eq!(world.receive(1, &mut into, (4, ALL), &how), Begun::Request(request));
    assert_eq!(world.send(0, b"later", 4, &How::new()), Begun::Done);
    // SAFETY: as above.
    world.until(|| unsafe { ucp_request_check_status(request) } == Status::OK);
    assert_eq!(&into[..5], b"later");
}

static INITS: AtomicUsize = AtomicUsize::new(0);
static CLEANUPS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn init_once(request: *mut c_void) {
    INITS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the program's part.
    unsafe { request.cast::<u64>().write(42) };
}

extern "C" fn clean(request: *mut c_void) {
    CLEANUPS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the program's part.
    assert_eq!(unsafe { request.cast::<u64>().read() }, 42, "the state of the program stays");
}

#[test]
fn a_program_prepares_each_piece_of_memory_once() {
    let requests = Requests { size: 24, init: Some(init_once), cleanup: Some(clean) };
    let world = World::with(requests, UCS_THREAD_MODE_SINGLE);
    for round in 0..100 {
        let mut into = [0; 8];
        let received = world.receive(1, &mut into, (1, ALL), &How::new());
        // SAFETY: the program's part of its request.
        assert_eq!(unsafe { received.request().cast::<u64>().read() }, 42, "round {round}");
        assert_eq!(world.send(0, b"x", 1, &How::new()), Begun::Done);
        assert_eq!(world.end(received).0, Status::OK);
    }
    drop(world);
    let (inits, cleanups) = (INITS.load(Ordering::Relaxed), CLEANUPS.load(Ordering::Relaxed));
    assert!(inits < 40, "{inits} pieces for one request at a time");
    assert_eq!(inits, cleanups);
}

#[test]
fn a_request_that_is_freed_is_deaf_and_one_that_is_released_is_told() {
    let world = World::new();
    for (give_back, is_told) in
        [(ucp_request_free as unsafe extern "C" fn(_), false), (ucp_request_release, true)]
    {
        let (told, mut into) = (Told::default(), [0; 8]);
        let how = How::new().told_of_receive(&told);
        let received = world.receive(1, &mut into, (1, ALL), &how);
        // SAFETY: it is not used again.
        unsafe { give_back(received.request()) };
        assert_eq!(world.send(0, b"bytes", 1, &How::new()), Begun::Done);
        world.until(|| *std::hint::black_box(&into) != [0; 8]);
        world.progress();
        let expected = if is_told { vec![(Status::OK, 1, 5)] } else { vec![] };
        assert_eq!(told.all(), expected);
        // The memory is used again.
        let again = world.receive(1, &mut into, (2, ALL), &How::new());
        assert_eq!(again, received);
        assert_eq!(world.send(0, b"bytes", 2, &How::new()), Begun::Done);
        assert_eq!(world.end(again).0, Status::OK);
    }
}

/// `nb` functions, and operations that may not end in the call, call back before they return.
#[test]
fn an_end_in_the_call_is_told_where_it_may_not_be_returned() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn count(_: Pointer, status: Status, info: *const TagRecvInfo, _: Pointer) {
        // SAFETY: UCP hands it over.
        let info = unsafe { &*info };
        assert_eq!((status, info.sender_tag, info.length), (Status::OK, 9, 2));
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    let world = World::new();
    for _ in 0..2 {
        assert_eq!(world.send(0, b"no", 9, &How::new()), Begun::Done);
    }
    world.until(|| world.probe(1, (9, ALL), false).is_some());
    world.progress();
    let (mut into, byte) = ([0; 4], 1 << UCP_DATATYPE_SHIFT);
    // SAFETY: memory that stays, and a request that is given back.
    unsafe {
        let receive: RecvNb = std::mem::transmute(ucp_tag_recv_nb as unsafe extern "C" fn());
        let to = into.as_mut_ptr().cast();
        let request = receive(world.workers[1], to, 4, byte, 9, ALL, count);
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        ucp_request_free(Begun::of(request).request());
    }
    let told = Told::default();
    let how = How::new().told_of_receive(&told).flags(UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    let received = world.receive(1, &mut into, (9, ALL), &how);
    assert_eq!(told.all(), [(Status::OK, 9, 2)]);
    assert_eq!(world.end(received).0, Status::OK);
    let told = Told::default();
    let how = How::new().told_of_send(&told).flags(UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    let sent = world.send(0, b"no", 9, &how);
    assert_eq!(told.all(), [(Status::OK, 0, 0)]);
    assert_eq!(world.end(sent).0, Status::OK);
}

#[test]
fn a_send_that_ends_at_once_tells_nobody() {
    let (world, told) = (World::new(), Told::default());
    let how = How::new().told_of_send(&told);
    assert_eq!(world.send(0, b"short", 1, &how), Begun::Done);
    // One that must end at once does not begin otherwise.
    let (force, long) = (How::new().flags(UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL), bytes(1 << 20, 1));
    assert_eq!(world.send(0, &long, 1, &force), Begun::Failed(Status::NO_RESOURCE));
    let received = world.receive(1, &mut [0; 8], (2, ALL), &force.told_of_receive(&told));
    assert_eq!(received, Begun::Failed(Status::NO_RESOURCE));
    let sent = world.send(0, &long, 1, &how);
    assert_ne!(sent, Begun::Done);
    assert_eq!(told.all(), []);
    let mut into = vec![0; 1 << 20];
    for _ in 0..2 {
        let received = world.receive(1, &mut into, (1, ALL), &How::new());
        assert_eq!(world.end(received).0, Status::OK);
    }
    assert_eq!(world.end(sent).0, Status::OK);
    assert_eq!(told.all(), [(Status::OK, 0, 0)]);
}

#[test]
fn a_receive_is_cancelled_and_tells_it_before_the_call_returns() {
    let (world, told, mut into) = (World::new(), Told::default(), [0; 8]);
    let how = How::new().told_of_receive(&told);
    let received = world.receive(1, &mut into, (1, ALL), &how);
    // SAFETY: the worker's.
    unsafe { ucp_request_cancel(world.workers[1], received.request()) };
    assert_eq!(told.all(), [(Status::CANCELED, 0, 0)]);
    assert_eq!(world.end(received).0, Status::CANCELED);
    assert_eq!(world.send(0, b"late", 1, &How::new()), Begun::Done);
    world.until(|| world.probe(1, (1, ALL), false).is_some());
    assert_eq!(into, [0; 8], "nobody receives it");
    assert_eq!(world.end(world.receive(1, &mut into, (1, ALL), &How::new())).0, Status::OK);
}

#[test]
fn a_message_that_is_too_long_is_cut_and_told_with_its_length() {
    let world = World::new();
    for len in [100, 1 << 20] {
        let (out, mut into, told) = (bytes(len, 2), [0; 10], Told::default());
        let received = world.receive(1, &mut into, (1, ALL), &How::new().told_of_receive(&told));
        let sent = world.send(0, &out, 1, &How::new());
        assert_eq!(world.end(received).0, Status::MESSAGE_TRUNCATED);
        assert_eq!(told.all(), [(Status::MESSAGE_TRUNCATED, 1, len)]);
        assert_eq!(world.end(sent).0, Status::OK);
        assert_eq!(into, out[..10]);
        // In the call, it is the status alone.
        let sent = world.send(0, &out, 1, &How::new());
        world.until(|| world.probe(1, (1, ALL), false).is_some());
        let received = world.receive(1, &mut into, (1, ALL), &How::new());
        assert_eq!(world.end(received).0, Status::MESSAGE_TRUNCATED);
        assert_eq!(world.end(sent).0, Status::OK);
    }
}

#[test]
fn a_synchronous_send_ends_when_it_was_received() {
    let (world, mut into) = (World::new(), [0; 8]);
    let sent = world.send(0, b"are", 1, &How::new().synchronous());
    let request = sent.request();
    world.until(|| world.probe(1, (1, ALL), false).is_some());
    (0..1000).for_each(|_| world.progress());
    // SAFETY: it was not given back.
    assert_eq!(unsafe { ucp_request_check_status(request) }, Status::IN_PROGRESS);
    assert_eq!(world.end(world.receive(1, &mut into, (1, ALL), &How::new())).0, Status::OK);
    assert_eq!(world.end(sent).0, Status::OK);
}

/// Posts for which there is no room wait, in their order.
#[test]
fn messages_without_room_wait_and_keep_their_order() {
    let world = World::new();
    const MESSAGES: u64 = 20_000;
    let out: Vec<_> = (0..MESSAGES).map(u64::to_le_bytes).collect();
    let sent: Vec<_> = out.iter().map(|out| world.send(0, out, 1, &How::new())).collect();
    assert!(sent.iter().any(|sent| matches!(sent, Begun::Request(_))), "there is no room for all");
    for i in 0..MESSAGES {
        let mut into = [0; 8];
        let received = world.receive(1, &mut into, (1, ALL), &How::new());
        assert_eq!(world.end(received).0, Status::OK);
        assert_eq!(u64::from_le_bytes(into), i);
    }
    for sent in sent {
        assert_eq!(world.end(sent).0, Status::OK);
    }
}

/// Pieces of memory, of lengths that differ.
fn pieces(of: &mut [u8], count: usize) -> Vec<DtIov> {
    let len = of.len() / count;
    let chunk = |piece: &mut [u8]| DtIov { buffer: piece.as_mut_ptr().cast(), length: piece.len() };
    let mut pieces: Vec<_> = of.chunks_mut(len).map(chunk).collect();
    pieces.push(DtIov { buffer: null_mut(), length: 0 });
    pieces
}

#[test]
fn pieces_of_memory_are_sent_and_received_however_many() {
    let world = World::new();
    for (len, count) in [(100, 2), (100, 9), (50_000, 3), (50_000, 40)] {
        let (mut out, mut into) = (bytes(len, 4), vec![0; len]);
        let mut from = pieces(&mut out, count);
        let mut to = pieces(&mut into, count + 1);
        let of = |pieces: &mut Vec<DtIov>| (pieces.as_mut_ptr().cast(), pieces.len());
        let how = How::new().datatype(UCP_DATATYPE_IOV, of(&mut from));
        let sent = world.send(0, &[], 1, &how);
        let how = How::new().datatype(UCP_DATATYPE_IOV, of(&mut to));
        let received = world.receive(1, &mut [], (1, ALL), &how);
        assert_eq!(world.end(received).0, Status::OK);
        assert_eq!(world.end(sent).0, Status::OK);
        assert_eq!(into, out, "{len} bytes in {count} pieces");
    }
}

/// A datatype of every second byte.
mod every_second {
    use super::*;

    pub(super) static ENDS: AtomicUsize = AtomicUsize::new(0);

    struct State {
        buffer: *mut u8,
        count: usize,
    }

    extern "C" fn start_pack(_: Pointer, buffer: *const c_void, count: usize) -> Pointer {
        Box::into_raw(Box::new(State { buffer: buffer.cast_mut().cast(), count })).cast()
    }

    extern "C" fn start_unpack(_: Pointer, buffer: Pointer, count: usize) -> Pointer {
        Box::into_raw(Box::new(State { buffer: buffer.cast(), count })).cast()
    }

    extern "C" fn packed_size(state: Pointer) -> usize {
        // SAFETY: what start has made.
        unsafe { &*state.cast::<State>() }.count
    }

    /// At most 1000 bytes at a time, as a program may.
    extern "C" fn pack(state: Pointer, offset: usize, to: Pointer, room: usize) -> usize {
        // SAFETY: what start has made, and memory of the two sides.
        unsafe {
            let state = &*state.cast::<State>();
            let len = room.min(1000).min(state.count - offset);
            for i in 0..len {
                to.cast::<u8>().add(i).write(state.buffer.add(2 * (offset + i)).read());
            }
            len
        }
    }

    extern "C" fn unpack(state: Pointer, offset: usize, from: *const c_void, len: usize) -> Status {
        // SAFETY: as above.
        unsafe {
            let state = &*state.cast::<State>();
            for i in 0..len {
                let byte = from.cast::<u8>().add(i).read();
                state.buffer.add(2 * (offset + i)).write(byte);
            }
        }
        Status::OK
    }

    extern "C" fn finish(state: Pointer) {
        ENDS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: what start has made.
        drop(unsafe { Box::from_raw(state.cast::<State>()) });
    }

    pub(super) const OPS: GenericDtOps = GenericDtOps {
        start_pack: Some(start_pack),
        start_unpack: Some(start_unpack),
        packed_size: Some(packed_size),
        pack: Some(pack),
        unpack: Some(unpack),
        finish: Some(finish),
    };
}

#[test]
fn datatypes_of_the_program_are_packed_and_unpacked() {
    let (world, mut datatype) = (World::new(), 0);
    // SAFETY: functions for that.
    unsafe {
        let made = ucp_dt_create_generic(&every_second::OPS, null_mut(), &raw mut datatype);
        assert_eq!(made, Status::OK);
    }
    assert_eq!(datatype & UCP_DATATYPE_CLASS_MASK, UCP_DATATYPE_GENERIC);
    for count in [1, 5, 5000, 100_000] {
        for is_late in [false, true] {
            let (mut out, mut into) = (bytes(2 * count, 6), vec![0; 2 * count]);
            let out_how = How::new().datatype(datatype, (out.as_mut_ptr().cast(), count));
            let in_how = How::new().datatype(datatype, (into.as_mut_ptr().cast(), count));
            let early = (!is_late).then(|| world.receive(1, &mut [], (1, ALL), &in_how));
            let sent = world.send(0, &[], 1, &out_how);
            if is_late {
                world.until(|| world.probe(1, (1, ALL), false).is_some());
            }
            let received = early.unwrap_or_else(|| world.receive(1, &mut [], (1, ALL), &in_how));
            assert_eq!(world.end(received).0, Status::OK);
            assert_eq!(world.end(sent).0, Status::OK);
            for i in 0..count {
                assert_eq!((into[2 * i], into[2 * i + 1]), (out[2 * i], 0), "{i} of {count}");
            }
        }
    }
    assert_eq!(every_second::ENDS.load(Ordering::Relaxed), 16, "each state was finished");
    // SAFETY: it is not used again.
    unsafe { ucp_dt_destroy(datatype) };
}

/// A flush is for remote memory: it does not wait for messages. A close does.
#[test]
fn a_close_ends_behind_the_messages_of_its_endpoint() {
    let (world, mut into) = (World::new(), vec![0; 1 << 20]);
    let out = bytes(1 << 20, 5);
    let ep = connect(world.workers[0], &address_of(world.workers[1])).unwrap();
    let sent = world.send(0, &out, 1, &How::new());
    // SAFETY: it is there.
    let flush = Begun::of(unsafe { ucp_ep_flush_nbx(ep, &How::new().param) });
    assert_eq!(world.end(flush).0, Status::OK);
    // SAFETY: it is not used again.
    let close = Begun::of(unsafe { ucp_ep_close_nbx(ep, &How::new().param) });
    let request = close.request();
    (0..100).for_each(|_| world.progress());
    // SAFETY: it was not given back.
    assert_eq!(unsafe { ucp_request_check_status(request) }, Status::IN_PROGRESS);
    assert_eq!(world.end(world.receive(1, &mut into, (1, ALL), &How::new())).0, Status::OK);
    assert_eq!(world.end(close).0, Status::OK);
    assert_eq!(world.end(sent).0, Status::OK);
}

#[test]
fn what_cannot_be_is_refused() {
    let made = init(UCP_FEATURE_TAG | UCP_FEATURE_STREAM, Requests::default());
    assert_eq!(made, Err(Status::UNSUPPORTED));
    let large = Requests { size: usize::MAX, ..Requests::default() };
    assert_eq!(init(UCP_FEATURE_TAG, large), Err(Status::INVALID_PARAM));
    let world = World::new();
    let good = address_of(world.workers[1]);
    for place in 0..good.len() {
        let mut spoilt = good.clone();
        spoilt[place] ^= 0x40;
        assert_eq!(connect(world.workers[0], &spoilt), Err(Status::INVALID_ADDR), "byte {place}");
    }
    let contiguous = |size: u64| size << UCP_DATATYPE_SHIFT;
    let huge = How::new().datatype(contiguous(1 << 60), (null_mut(), usize::MAX));
    assert_eq!(world.send(0, &[], 1, &huge), Begun::Failed(Status::INVALID_PARAM));
    let strided = How::new().datatype(UCP_DATATYPE_STRIDED, (null_mut(), 1));
    assert_eq!(world.send(0, &[], 1, &strided), Begun::Failed(Status::INVALID_PARAM));
    // SAFETY: a number for each status.
    let words = unsafe { std::ffi::CStr::from_ptr(ucs_status_string(Status::CANCELED)) };
    assert_eq!(words, c"Request canceled");
}

/// In the mode *multi*, threads send, receive and make progress at once.
#[test]
fn threads_use_a_worker_at_once() {
    const MESSAGES: u64 = 5000;
    let world = World::with(Requests::default(), UCS_THREAD_MODE_MULTI);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let world = &world;
            scope.spawn(move || {
                for i in 0..MESSAGES {
                    let sent = world.send(0, &i.to_le_bytes(), thread, &How::new());
                    assert_eq!(world.end(sent).0, Status::OK);
                }
            });
            scope.spawn(move || {
                for i in 0..MESSAGES {
                    let mut into = [0; 8];
                    let received = world.receive(1, &mut into, (thread, ALL), &How::new());
                    assert_eq!(world.end(received).0, Status::OK);
                    assert_eq!(u64::from_le_bytes(into), i, "thread {thread}");
                }
            });
        }
    });
}

/// Another thread's progress may end a request of the program's, whose memory the program uses for
/// something else as soon as it sees that: Open MPI's lies on the stack.
#[test]
fn an_ended_request_of_the_programs_is_not_touched_any_more() {
    const MESSAGES: u64 = 20_000;
    let world = World::with(Requests::default(), UCS_THREAD_MODE_MULTI);
    let is_over = AtomicBool::new(false);
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                world.progress();
            }
        });
        // Also where an assertion fails.
        let _ends = Ends(&is_over);
        let mut memory = vec![u128::MAX; world.head_bytes() / 16 + 1];
        let request: Pointer = memory.as_mut_ptr().wrapping_byte_add(world.head_bytes()).cast();
        for i in 0..MESSAGES {
            let (mut into, out) = ([0; 8], i.to_le_bytes());
            let received = world.receive(1, &mut into, (1, ALL), &How::new().request(request));
            let sent = world.send(0, &out, 1, &How::new());
            // SAFETY: the program's request, for which an operation has begun.
            let has_ended = || unsafe { ucp_request_check_status(request) } == Status::OK;
            while received != Begun::Done && !has_ended() {
                std::hint::spin_loop();
            }
            // SAFETY: the program's memory, which is its own again.
            unsafe { request.byte_sub(world.head_bytes()).write_bytes(0xFF, world.head_bytes()) };
            assert_eq!(world.end(sent).0, Status::OK);
            assert_eq!(u64::from_le_bytes(into), i);
            let is_untouched = std::hint::black_box(&memory).iter().all(|word| *word == u128::MAX);
            assert!(is_untouched, "message {i}");
        }
    });
}

//! Peers' memory, read and written through every call.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// Both sides of every border in the engine.
const SIZES: [usize; 8] = [0, 1, 8, 512, 513, 4096, 16385, 300_001];

const DATA: u64 = 0xda7a_0000_1234_5678;
const KEY: u64 = 0x4b45_5900;

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

fn code(code: i32) -> isize {
    -(code as isize)
}

fn iov(bytes: &[u8]) -> [Iovec; 3] {
    let (first, rest) = bytes.split_at(bytes.len() / 3);
    let (second, third) = rest.split_at(rest.len() / 2);
    [first, second, third]
        .map(|part| Iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() })
}

/// Memory of a peer, by its number.
#[derive(Clone, Copy)]
struct Place {
    to: u64,
    key: u64,
    address: u64,
}

/// At the other of two ends.
const THERE: Place = Place { to: 0, key: KEY, address: 0 };

/// The calls that write, and whether they bring data and are told of.
const WRITES: [(&str, bool, bool); 7] = [
    ("write", false, true),
    ("writev", false, true),
    ("writemsg", true, true),
    ("injectmsg", true, true),
    ("inject", false, false),
    ("writedata", true, true),
    ("injectdata", true, false),
];

const READS: [&str; 3] = ["read", "readv", "readmsg"];

/// One call. The context is 0x55.
fn work(ends: &[End], how: &str, bytes: &[u8], place: Place) -> isize {
    let (ep, len, pieces) = (ends[0].ep, bytes.len(), iov(bytes));
    let (start, iov, none) = (bytes.as_ptr().cast::<c_void>(), pieces.as_ptr(), null_mut());
    let (into, context) = (start.cast_mut(), 0x55 as *mut c_void);
    let Place { to, key, address } = place;
    let rma_iov = RmaIov { addr: address, len, key };
    let msg = MsgRma {
        msg_iov: iov,
        desc: null_mut(),
        iov_count: 3,
        addr: to,
        rma_iov: &rma_iov,
        rma_iov_count: 1,
        context,
        data: DATA,
    };
    let flags = REMOTE_CQ_DATA | COMPLETION;
    until_taken(ends, || match how {
        "write" => call!(ep, rma.write(start, len, none, to, address, key, context)),
        "writev" => call!(ep, rma.writev(iov, null_mut(), 3, to, address, key, context)),
        "writemsg" => call!(ep, rma.writemsg(&msg, flags)),
        "injectmsg" => call!(ep, rma.writemsg(&msg, flags | INJECT | DELIVERY_COMPLETE)),
        "inject" => call!(ep, rma.inject(start, len, to, address, key)),
        "writedata" => call!(ep, rma.writedata(start, len, none, DATA, to, address, key, context)),
        "injectdata" => call!(ep, rma.injectdata(start, len, DATA, to, address, key)),
        "read" => call!(ep, rma.read(into, len, none, to, address, key, context)),
        "readv" => call!(ep, rma.readv(iov, null_mut(), 3, to, address, key, context)),
        "readmsg" => call!(ep, rma.readmsg(&msg, COMPLETION)),
        _ => unreachable!("{how}"),
    })
}

/// Makes progress until the memory is as it should be, which the provider writes meanwhile.
fn until_there(ends: &[End], memory: &[u8], wanted: &[u8]) {
    for _ in 0..50_000_000u64 {
        if std::hint::black_box(memory) == wanted {
            return;
        }
        ends.iter().for_each(give_time);
    }
    panic!("nothing comes");
}

/// Nothing is to be told.
fn silent(ends: &[End]) {
    for _ in 0..64 {
        ends.iter().for_each(give_time);
    }
    assert!(ends.iter().all(|end| end.read().is_err()), "nothing else is told");
}

/// Two ends, and memory that peers may work on.
struct Scene {
    opened: Opened,
    ends: [End; 2],
    memory: Vec<u8>,
    mr: *mut FidMr,
}

impl Scene {
    fn new(wishes: Wishes, len: usize) -> Self {
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        let memory = vec![0xee; len];
        let mr = register(&opened, &memory, REMOTE_READ | REMOTE_WRITE, KEY).unwrap();
        Self { opened, ends, memory, mr }
    }

    fn work(&self, how: &str, bytes: &[u8], place: Place) {
        assert_eq!(work(&self.ends, how, bytes, place), 0, "{how} of {} bytes", bytes.len());
    }

    /// The next end of an operation, which is to be of this kind.
    fn ended(&self, kind: u64) {
        let (told, _) = next(&self.ends[0], &self.ends);
        assert_eq!((told.op_context as usize, told.flags), (0x55, kind));
    }

    /// The next failure of an operation.
    fn failed(&self, kind: u64, err: i32) {
        let failure = next_failure(&self.ends[0], &self.ends);
        assert_eq!((failure.err, failure.flags), (err, kind));
    }

    fn close(self) {
        let Self { opened, ends, mr, memory } = self;
        assert_eq!(close(mr), 0);
        ends.into_iter().for_each(End::close);
        drop((opened, memory));
    }
}

fn one_write(scene: &mut Scene, how: (&str, bool, bool), len: usize, to: u64) {
    let (how, has_data, is_told) = how;
    scene.memory.fill(0xee);
    let mut bytes = pattern(len, len + to as usize);
    let wanted = [&[0xee; 5][..], &bytes, &vec![0xee; scene.memory.len() - len - 5]].concat();
    scene.work(how, &bytes, Place { to, key: KEY, address: 5 });
    if how.starts_with("inject") {
        // The memory is ours again.
        bytes.fill(0);
    }
    if has_data {
        let target = &scene.ends[1 - to as usize];
        // To itself, what is told first is its own affair.
        let all = if to == 0 || !is_told { 1 } else { 2 };
        let told: Vec<_> = (0..all).map(|_| next(target, &scene.ends)).collect();
        let (told, source) = told.iter().find(|(told, _)| told.flags & REMOTE_WRITE != 0).unwrap();
        assert_eq!(told.flags, RMA | REMOTE_WRITE | REMOTE_CQ_DATA, "{how} {len}");
        assert_eq!((told.len, told.data, *source), (len, DATA, to));
        assert!(told.op_context.is_null());
    }
    if is_told && !(has_data && to == 1) {
        scene.ended(RMA | WRITE);
    }
    until_there(&scene.ends, &scene.memory, &wanted);
    silent(&scene.ends);
}

#[test]
fn every_call_writes_every_length() {
    for threading in [THREAD_SAFE, THREAD_DOMAIN] {
        let mut scene = Scene::new(Wishes { threading, ..Wishes::remote() }, 300_100);
        for how in WRITES {
            let is_long = |len: &usize| *len > 4096 && how.0.starts_with("inject");
            for len in SIZES.into_iter().filter(|len| !is_long(len)) {
                (0..2).for_each(|to| one_write(&mut scene, how, len, to));
            }
        }
        scene.close();
    }
}

#[test]
fn every_call_reads_every_length() {
    for threading in [THREAD_SAFE, THREAD_DOMAIN] {
        let mut scene = Scene::new(Wishes { threading, ..Wishes::remote() }, 300_100);
        scene.memory = pattern(300_100, 3);
        assert_eq!(close(scene.mr), 0);
        scene.mr = register(&scene.opened, &scene.memory, REMOTE_READ, KEY).unwrap();
        for (how, to) in READS.into_iter().flat_map(|how| [(how, 0), (how, 1)]) {
            for len in SIZES {
                let into = vec![0xee; len];
                scene.work(how, &into, Place { to, key: KEY, address: 7 });
                scene.ended(RMA | READ);
                assert!(std::hint::black_box(&into) == &scene.memory[7..7 + len], "{how} {len}");
                silent(&scene.ends);
            }
        }
        scene.close();
    }
}

#[test]
fn addresses_are_offsets_or_virtual_and_regions_have_pieces() {
    for mr_mode in [0, MR_VIRT_ADDR | MR_PROV_KEY] {
        let scene = Scene::new(Wishes { mr_mode, ..Wishes::remote() }, 1);
        let pieces = [vec![1u8; 100], vec![2u8; 1000], vec![3u8; 10]];
        let iov = pieces.each_ref().map(|piece| Iovec {
            iov_base: piece.as_ptr().cast_mut().cast(),
            iov_len: piece.len(),
        });
        let mut mr = null_mut();
        // SAFETY: the table is the domain's, and the memory is there.
        let key = unsafe {
            let (domain, access) = (fid(scene.opened.domain), REMOTE_READ | REMOTE_WRITE);
            let regv = (*(*scene.opened.domain).mr).regv.unwrap();
            let status = regv(domain, iov.as_ptr(), 3, access, 0, 99, 0, &mut mr, null_mut());
            assert_eq!(status, 0);
            (*mr).key
        };
        let base = if mr_mode == 0 { 0 } else { iov[0].iov_base as u64 };
        let bytes = pattern(1020, 1);
        scene.work("write", &bytes, Place { to: 0, key, address: base + 90 });
        scene.ended(RMA | WRITE);
        let all = std::hint::black_box(&pieces).concat();
        assert!(all[..90] == [1; 90] && all[90..] == bytes);
        scene.work("write", &bytes, Place { to: 0, key, address: base + 91 });
        scene.failed(RMA | WRITE, errno::EINVAL);
        assert_eq!(close(mr), 0);
        scene.close();
    }
}

/// Parts of a program that share a domain may have asked for different ways.
#[test]
fn an_endpoint_addresses_as_its_own_info_says() {
    let scene = Scene::new(Wishes::remote(), 64);
    let wishes = Wishes { mr_mode: MR_VIRT_ADDR, ..Wishes::remote() };
    let other = wishes.opened();
    let (mut ep, domain) = (null_mut(), scene.opened.domain);
    assert_eq!(call!(domain, ops.endpoint(other.infos.0, &mut ep, null_mut())), 0);
    let (cq, av) = (scene.ends[0].cq, open_av(&scene.opened, 0));
    assert_eq!((bind(ep, cq, SEND | RECV), bind(ep, av, 0)), (0, 0));
    assert_eq!(control(ep, ENABLE, null_mut::<u8>()), 0);
    let to = scene.ends[0].insert(&[name(ep)])[0];
    let start = scene.memory.as_ptr() as u64;
    for (to, address) in [(to, start + 8), (0, 16)] {
        scene.work("write", &[address as u8; 8], Place { to, key: KEY, address });
        scene.ended(RMA | WRITE);
    }
    for (to, address) in [(0, start + 8), (to, 16)] {
        scene.work("write", &[0; 8], Place { to, key: KEY, address });
        scene.failed(RMA | WRITE, errno::EINVAL);
    }
    let both = [[(start + 8) as u8; 8], [16; 8]].concat();
    assert_eq!(std::hint::black_box(&scene.memory)[8..24], both);
    assert_eq!((close(ep), close(av)), (0, 0));
    scene.close();
    drop(other);
}

/// A program may register all of its memory.
#[test]
fn all_memory_is_one_region() {
    for mr_mode in [0, MR_VIRT_ADDR] {
        let scene = Scene::new(Wishes { mr_mode, ..Wishes::remote() }, 1);
        let (memory, bytes) = (vec![0u8; 4000], pattern(4000, 2));
        let (mut mr, access) = (null_mut(), REMOTE_READ | REMOTE_WRITE);
        // SAFETY: peers are told of memory only that is there.
        let status = unsafe {
            let (domain, reg) = (fid(scene.opened.domain), (*(*scene.opened.domain).mr).reg);
            reg.unwrap()(domain, null(), usize::MAX, access, 0, 9, 0, &mut mr, null_mut())
        };
        assert_eq!(status, 0);
        scene.work("write", &bytes, Place { to: 0, key: 9, address: memory.as_ptr() as u64 });
        scene.ended(RMA | WRITE);
        assert!(std::hint::black_box(&memory) == &bytes);
        for address in [0, u64::MAX - 3999] {
            scene.work("write", &bytes, Place { to: 0, key: 9, address });
            scene.failed(RMA | WRITE, errno::EINVAL);
        }
        assert_eq!(close(mr), 0);
        scene.close();
    }
}

#[test]
fn a_forbidden_rma_call_fails_and_changes_no_memory() {
    let scene = Scene::new(Wishes::remote(), 20_000);
    let readable = register(&scene.opened, &scene.memory, REMOTE_READ, 1).unwrap();
    let writable = register(&scene.opened, &scene.memory, REMOTE_WRITE, 2).unwrap();
    let cases = [
        (Place { key: 3, ..THERE }, 0, errno::ENOKEY, errno::ENOKEY),
        (Place { key: 1, ..THERE }, 0, errno::EACCES, 0),
        (Place { key: 2, ..THERE }, 0, 0, errno::EACCES),
        (Place { address: 20_001, ..THERE }, 0, errno::EINVAL, errno::EINVAL),
        (Place { address: 20_000, ..THERE }, 1, errno::EINVAL, errno::EINVAL),
        (Place { address: 19_901, ..THERE }, 100, errno::EINVAL, errno::EINVAL),
        (Place { address: 1000, ..THERE }, 19_001, errno::EINVAL, errno::EINVAL),
        (Place { address: u64::MAX, ..THERE }, 2, errno::EINVAL, errno::EINVAL),
    ];
    for (place, len, write, read) in cases {
        let mut bytes = pattern(len, 1);
        let injects = ["inject"].into_iter().filter(|_| len <= 4096);
        for how in ["write", "writev"].into_iter().chain(injects).filter(|_| write != 0) {
            scene.work(how, &bytes, place);
            scene.failed(RMA | WRITE, write);
        }
        bytes.fill(0x77);
        for how in READS.into_iter().filter(|_| read != 0) {
            scene.work(how, &bytes, place);
            scene.failed(RMA | READ, read);
        }
        assert!(std::hint::black_box(&bytes).iter().all(|byte| *byte == 0x77));
    }
    silent(&scene.ends);
    assert!(std::hint::black_box(&scene.memory).iter().all(|byte| *byte == 0xee));
    // And the ends are as good as before.
    scene.work("write", &[1], THERE);
    scene.ended(RMA | WRITE);
    assert_eq!((close(readable), close(writable)), (0, 0));
    scene.close();
}

#[test]
fn an_error_entry_carries_the_context_of_its_operation() {
    let scene = Scene::new(Wishes::remote(), 8);
    scene.work("write", &[1], Place { key: 3, ..THERE });
    let failure = next_failure(&scene.ends[0], &scene.ends);
    assert_eq!((failure.op_context as usize, failure.prov_errno), (0x55, errno::ENOKEY));
    scene.close();
}

#[test]
fn wrong_arguments_are_an_error_code() {
    let scene = Scene::new(Wishes::remote(), 5000);
    let (ep, bytes, none) = (scene.ends[0].ep, vec![0u8; 5000], null_mut());
    let start = bytes.as_ptr().cast::<c_void>();
    let (long, invalid) = (code(errno::EMSGSIZE), code(errno::EINVAL));
    assert_eq!(call!(ep, rma.write(start, 8, none, 2, 0, KEY, none)), invalid);
    assert_eq!(call!(ep, rma.read(start.cast_mut(), 8, none, 2, 0, KEY, none)), invalid);
    assert_eq!(call!(ep, rma.write(start, usize::MAX, none, 0, 0, KEY, none)), long);
    assert_eq!(call!(ep, rma.inject(start, 5000, 0, 0, KEY)), long);
    let many = [iov(&bytes), iov(&bytes)].concat();
    let many = many.as_ptr();
    assert_eq!(call!(ep, rma.writev(many, null_mut(), 6, 0, 0, KEY, none)), invalid);
    assert_eq!(call!(ep, rma.readv(many, null_mut(), 6, 0, 0, KEY, none)), invalid);
    assert_eq!(call!(ep, rma.writemsg(null(), 0)), invalid);
    assert_eq!(call!(ep, rma.readmsg(null(), 0)), invalid);
    let places = [RmaIov { addr: 0, len: 5000, key: KEY }; 2];
    let (iov, rma_iov) = (iov(&bytes), places.as_ptr());
    let msg = MsgRma { msg_iov: iov.as_ptr(), iov_count: 3, rma_iov, rma_iov_count: 1, ..blank() };
    assert_eq!(call!(ep, rma.writemsg(&msg, INJECT)), long);
    assert_eq!(call!(ep, rma.readmsg(&msg, INJECT)), code(errno::EBADFLAGS));
    for flags in [MULTI_RECV, PEEK, TRIGGER, COMMIT_COMPLETE] {
        assert_eq!(call!(ep, rma.writemsg(&msg, flags)), code(errno::EBADFLAGS));
    }
    for wrong in [
        MsgRma { rma_iov_count: 0, ..msg },
        MsgRma { rma_iov_count: 2, ..msg },
        MsgRma { iov_count: 2, ..msg },
    ] {
        assert_eq!(call!(ep, rma.writemsg(&wrong, 0)), invalid);
        assert_eq!(call!(ep, rma.readmsg(&wrong, 0)), invalid);
    }
    silent(&scene.ends);
    scene.close();
}

#[test]
fn operations_are_told_of_as_the_program_chooses() {
    let wishes = Wishes { cq_flags: SELECTIVE_COMPLETION, ..Wishes::remote() };
    let scene = Scene::new(wishes, 64);
    scene.work("write", &[7; 64], THERE);
    scene.work("writemsg", &[8; 64], THERE);
    // The second one has a flag that says so; at the target, data are always told.
    scene.ended(RMA | WRITE);
    assert_eq!(next(&scene.ends[1], &scene.ends).0.data, DATA);
    assert_eq!(std::hint::black_box(&scene.memory), &[8; 64]);
    silent(&scene.ends);
    // A failure is told in any case.
    scene.work("write", &[7; 65], THERE);
    scene.failed(RMA | WRITE, errno::EINVAL);
    scene.close();
}

/// Two ends with a counter for each way, in the order of `WAYS`, and none enabled before.
const WAYS: [u64; 6] = [SEND, RECV, READ, WRITE, REMOTE_READ, REMOTE_WRITE];

#[test]
fn counters_count_each_way_apart() {
    let wishes = Wishes::remote();
    let opened = wishes.opened();
    let counters = [0, 1].map(|_| WAYS.map(|_| open_cntr(&opened, WAIT_NONE)));
    let ends = counters.map(|counters| {
        let ep = open_ep(&opened).unwrap();
        for (counter, way) in counters.into_iter().zip(WAYS) {
            assert_eq!(bind(ep, counter, way), 0);
            assert_eq!(bind(ep, counter, way | SEND), -errno::EINVAL);
        }
        let (cq, av) = (open_cq(&opened, |_| ()).unwrap(), open_av(&opened, 0));
        assert_eq!((bind(ep, cq, SEND | RECV), bind(ep, av, 0)), (0, 0));
        assert_eq!(control(ep, ENABLE, null_mut::<u8>()), 0);
        End { ep, cq, av }
    });
    let names = ends.each_ref().map(|end| name(end.ep));
    ends[0].insert(&[names[1]]);
    ends[1].insert(&[names[0]]);
    let [first, second] = [[0u8; 64], [0; 64]];
    let access = REMOTE_READ | REMOTE_WRITE;
    let regions = [(&first, 1), (&second, 2)];
    let regions = regions.map(|(memory, key)| register(&opened, memory, access, key).unwrap());
    let changes = regions.map(|region| {
        let counter = open_cntr(&opened, WAIT_NONE);
        assert_eq!(bind(region, counter, REMOTE_WRITE), 0);
        counter
    });
    let (one, local) = (1u64, vec![5; 8]);
    let (at, none) = ((&raw const one).cast::<c_void>(), null_mut());
    let mut old = 0u64;
    let result = (&raw mut old).cast::<c_void>();
    let ep = ends[0].ep;
    for how in ["write", "inject", "writedata", "read"] {
        assert_eq!(work(&ends, how, &local, Place { key: 1, ..THERE }), 0);
    }
    let sum = |key| call!(ep, atomic.inject(at, 1, 0, 8, key, UINT64, SUM));
    assert_eq!(until_taken(&ends, || sum(2)), 0);
    let fetch = |key| {
        let (number, op) = (UINT64, SUM);
        call!(ep, atomic.readwrite(at, 1, none, result, none, 0, 8, key, number, op, none))
    };
    assert_eq!(until_taken(&ends, || fetch(2)), 0);
    assert_eq!(work(&ends, "write", &local, Place { key: 3, ..THERE }), 0);
    let values = |end: usize| counters[end].map(|counter| call!(counter, ops.read()));
    let wanted = [[0, 0, 2, 4, 0, 0], [0, 0, 0, 0, 2, 4]];
    let now = || ([values(0), values(1)], call!(counters[0][3], ops.readerr()));
    for _ in 0..50_000_000u64 {
        if now() == (wanted, 1) {
            break;
        }
    }
    assert_eq!(now(), (wanted, 1));
    // Reads change nothing; a fetching atomic does.
    assert_eq!(changes.map(|counter| call!(counter, ops.read())), [3, 2]);
    regions.into_iter().for_each(|region| assert_eq!(close(region), 0));
    ends.into_iter().for_each(End::close);
    let counters = counters.into_iter().flatten().chain(changes);
    counters.for_each(|counter| assert_eq!(close(counter), 0));
}

/// Counters are enough for a program that only works on memory.
#[test]
fn an_endpoint_without_queues_works_on_memory() {
    let wishes = Wishes { caps: RMA, ..Wishes::default() };
    let opened = wishes.opened();
    let (ep, av) = (open_ep(&opened).unwrap(), open_av(&opened, 0));
    let enable = || control(ep, ENABLE, null_mut::<u8>());
    assert_eq!((bind(ep, av, 0), enable()), (0, -errno::ENOCQ));
    let counter = open_cntr(&opened, WAIT_UNSPEC);
    assert_eq!((bind(ep, counter, READ | WRITE), enable()), (0, 0));
    let own = name(ep);
    assert_eq!(call!(av, ops.insert(own.as_ptr().cast(), 1, null_mut(), 0, null_mut())), 1);
    let (memory, bytes, none) = ([0u8; 8], [6u8; 8], null_mut());
    let mr = register(&opened, &memory, REMOTE_WRITE, KEY).unwrap();
    let start = bytes.as_ptr().cast();
    while call!(ep, rma.write(start, 8, none, 0, 0, KEY, none)) != 0 {
        call!(counter, ops.read());
    }
    assert_eq!(call!(counter, ops.wait(1, -1)), 0);
    assert_eq!(std::hint::black_box(&memory), &bytes);
    assert_eq!((close(mr), close(ep), close(counter), close(av)), (0, 0, 0, 0));
}

/// Earlier writes are there when a message is, however long either is.
#[test]
fn messages_arrive_after_earlier_writes() {
    let mut scene = Scene::new(Wishes::remote(), 100_000);
    for (seed, len) in [(1, 8), (2, 3000), (3, 100_000), (4, 9)] {
        scene.memory.fill(0);
        let (bytes, message, into) = (pattern(len, seed), [7u8; 8], vec![0u8; 8]);
        scene.work("write", &bytes, THERE);
        let (from, place, none) = (message.as_ptr().cast(), into.as_ptr().cast_mut(), null_mut());
        let [sender, receiver] = scene.ends.each_ref().map(|end| end.ep);
        let at = 0x77 as *mut c_void;
        let posted = call!(receiver, tagged.recv(place.cast(), 8, none, ADDR_UNSPEC, 1, 0, at));
        assert_eq!(posted, 0);
        let send = || call!(sender, tagged.send(from, 8, none, 0, 1, none));
        assert_eq!(until_taken(&scene.ends, send), 0);
        assert_eq!(next(&scene.ends[1], &scene.ends).0.op_context, at);
        assert!(std::hint::black_box(&scene.memory)[..len] == bytes, "{len} bytes before");
        (0..2).for_each(|_| assert_eq!(next(&scene.ends[0], &scene.ends).0.tag, 0));
    }
    scene.close();
}

/// When the call that closes a region returns, nobody touches its memory any more.
#[test]
fn closing_a_region_is_a_fence() {
    for how in ["write", "read"] {
        // Peers are served while this thread has to wait, so it may be over too soon.
        assert!((0..100).any(|_| is_fenced(how)), "{how} is never closed while it is under way");
    }
}

/// Closes a region while it is worked on; false where that was over.
fn is_fenced(how: &str) -> bool {
    const LEN: usize = 8 << 20;
    let mut scene = Scene::new(Wishes::remote(), LEN);
    let bytes = pattern(LEN, 1);
    let before = (scene.memory[0], bytes[0]);
    scene.work(how, &bytes, THERE);
    // It is under way when the first part is there.
    while std::hint::black_box((scene.memory[0], bytes[0])) == before {
        ends_give_time(&scene.ends);
    }
    assert_eq!(close(scene.mr), 0);
    let closed = scene.memory.clone();
    let is_under_way = loop {
        ends_give_time(&scene.ends);
        match scene.ends[0].read() {
            Err(status) if status == code(errno::EAGAIN) => {}
            outcome => break outcome.is_err(),
        }
    };
    if is_under_way {
        let failure = scene.ends[0].failure();
        let kind = if how == "write" { WRITE } else { READ };
        assert_eq!((failure.err, failure.flags), (errno::ENOKEY, RMA | kind));
        silent(&scene.ends);
        assert!(std::hint::black_box(&scene.memory) == &closed);
    }
    scene.mr = register(&scene.opened, &scene.memory, REMOTE_READ, KEY).unwrap();
    scene.close();
    is_under_way
}

fn ends_give_time(ends: &[End]) {
    ends.iter().for_each(give_time);
}

#[test]
fn a_departed_peer_ends_rma_operations_under_way() {
    for (how, kind) in [("write", WRITE), ("read", READ)] {
        let Scene { opened, ends, memory, mr } = Scene::new(Wishes::remote(), 8 << 20);
        let bytes = vec![0u8; 8 << 20];
        assert_eq!(work(&ends, how, &bytes, THERE), 0);
        let [here, there] = ends;
        there.close();
        let failure = next_failure(&here, &[]);
        assert_eq!((failure.err, failure.flags), (errno::ENOTCONN, RMA | kind));
        assert_eq!(close(mr), 0);
        here.close();
        drop((opened, memory));
    }
}

/// A program that reads its queue late loses nothing, and its peers need not wait before memory is
/// short.
#[test]
fn a_flood_of_data_is_kept_for_a_program_that_reads_late() {
    const LONG: u64 = 80_000;
    let scene = Scene::new(Wishes { cq_flags: SELECTIVE_COMPLETION, ..Wishes::remote() }, 8);
    let [sender, target] = &scene.ends;
    let (ep, bytes) = (sender.ep, [1u8; 8]);
    let inject = |data| call!(ep, rma.injectdata(bytes.as_ptr().cast(), 8, data, 0, 0, KEY));
    let mut posted = 0;
    while posted < LONG {
        match inject(posted) {
            0 => posted += 1,
            // Until the target has had its time.
            status => {
                assert_eq!(status, code(errno::EAGAIN));
                scene.ends.iter().for_each(give_time);
            }
        }
    }
    let mut read = 0;
    while read < posted {
        if let Ok((told, _)) = target.read() {
            assert_eq!(told.data, read);
            read += 1;
        }
    }
    silent(&scene.ends);
    scene.close();
}

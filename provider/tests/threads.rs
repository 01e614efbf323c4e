//! Threads that share everything, as `FI_THREAD_SAFE` lets them. They send, read queues, cancel,
//! insert and remove addresses, open and close endpoints, all at a time. Each message arrives
//! exactly once, as it was sent.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::env;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::thread;

/// Messages of each sender in a run of CI; `AYRE_SOAK` has it run longer.
const MESSAGES: u64 = 400;
const SENDERS: u64 = 2;
/// Readers of each queue.
const READERS: u64 = 2;
/// Receives of each endpoint, of each kind of message.
const RECEIVES: usize = 8;
const LONGEST: u64 = 200_000;
/// Messages that wait to be received, all in all.
const UNDER_WAY: u64 = 200;
/// Readings that find nothing, in a row, after which nothing is expected any more.
const PATIENCE: u64 = 20_000_000;
/// Tags of messages do not have it.
const NEVER: u64 = 1 << 63;

/// Numbers that nobody would guess, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 1
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// As many small ones as large ones.
    fn len(&mut self) -> usize {
        let most = 16 << self.below(LONGEST.ilog2().into());
        (8 + self.below(most).min(LONGEST)) as usize
    }
}

/// The bytes of a message, which its first ones determine.
fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = Random(seed);
    for (at, word) in bytes.chunks_mut(8).enumerate() {
        let value = if at == 0 { seed } else { random.next() };
        word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
    }
}

/// The operation that a context points to.
struct Posted {
    bytes: Vec<u8>,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Send,
    /// A receive of tagged messages, or of the others.
    Receive {
        is_tagged: bool,
    },
    /// A receive that no message matches.
    Never,
}

/// Counts of completions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    begun: u64,
    sent: u64,
    received: u64,
    cancelled: u64,
    is_failed: bool,
}

/// The objects that all threads share.
struct Stage<'a> {
    opened: &'a Opened,
    ends: Vec<End>,
    counts: Mutex<Counts>,
    wanted: Counts,
}

// SAFETY: the objects are those of a domain that was opened with FI_THREAD_SAFE.
unsafe impl Sync for Stage<'_> {}

impl Stage<'_> {
    fn counts(&self) -> Counts {
        *self.counts.lock().unwrap()
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap());
    }

    fn is_over(&self) -> bool {
        let now = self.counts();
        now == self.wanted || now.is_failed
    }

    /// Posts a receive whose memory and description are there already.
    fn receive(&self, end: &End, posted: *mut Posted) {
        // SAFETY: the description is nobody's but the receive's.
        let (start, len, what) = unsafe {
            let Posted { bytes, what } = &mut *posted;
            (bytes.as_mut_ptr().cast(), bytes.len(), *what)
        };
        let from = ADDR_UNSPEC;
        let post = || match what {
            What::Receive { is_tagged: false } => {
                call!(end.ep, msg.recv(start, len, null_mut(), from, posted.cast()))
            }
            What::Receive { is_tagged: true } => {
                let ignored = !NEVER;
                call!(end.ep, tagged.recv(start, len, null_mut(), from, 0, ignored, posted.cast()))
            }
            _ => call!(end.ep, tagged.recv(start, len, null_mut(), from, NEVER, 0, posted.cast())),
        };
        assert_eq!(self.until_taken(end, post), 0);
    }

    fn until_taken(&self, end: &End, mut call: impl FnMut() -> isize) -> isize {
        loop {
            match call() {
                status if status == -(errno::EAGAIN as isize) && !self.counts().is_failed => {
                    give_time(end);
                    thread::yield_now();
                }
                status => return status,
            }
        }
    }

    /// Sends a message of any kind and length; its bytes come back with its completion.
    fn send(&self, end: &End, to: u64, random: &mut Random) {
        let mut bytes = vec![0; random.len()];
        let seed = random.next();
        fill(&mut bytes, seed);
        let (start, len) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
        let posted = Box::into_raw(Box::new(Posted { bytes, what: What::Send }));
        self.count(|counts| counts.begun += 1);
        let (none, context) = (null_mut(), posted.cast());
        let (kind, tag) = (random.below(4), seed);
        let post = || match kind {
            0 => call!(end.ep, msg.send(start, len, none, to, context)),
            1 => call!(end.ep, msg.senddata(start, len, none, seed, to, context)),
            2 => call!(end.ep, tagged.send(start, len, none, to, tag, context)),
            _ => call!(end.ep, tagged.senddata(start, len, none, seed, to, tag, context)),
        };
        assert_eq!(self.until_taken(end, post), 0);
    }

    /// Takes what a queue has until everything has ended.
    fn read(&self, end: &End, count: usize) {
        let (mut told, mut idle) = ([blank::<Told>(); 8], 0);
        while !self.is_over() {
            idle += 1;
            match call!(end.cq, ops.read(told.as_mut_ptr().cast(), count)) {
                status if status > 0 => {
                    told[..status as usize].iter().for_each(|told| self.ended(end, told));
                    idle = 0;
                }
                status if status == -(errno::EAVAIL as isize) => self.failed(end),
                status => assert_eq!(status, -(errno::EAGAIN as isize)),
            }
            if idle == PATIENCE {
                self.count(|counts| counts.is_failed = true);
            }
            if idle > 0 {
                thread::yield_now();
            }
        }
    }

    fn ended(&self, end: &End, told: &Told) {
        let posted = told.op_context.cast::<Posted>();
        // SAFETY: the operation has ended, and this thread was told.
        let Posted { bytes, what } = unsafe { &*posted };
        match *what {
            What::Send => {
                assert_eq!(told.flags & SEND, SEND);
                // SAFETY: it was made by `send`.
                drop(unsafe { Box::from_raw(posted) });
                self.count(|counts| counts.sent += 1);
            }
            What::Receive { is_tagged } => {
                let seed = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                let mut wanted = vec![0; told.len];
                fill(&mut wanted, seed);
                assert!(bytes[..told.len] == wanted, "{} bytes of {seed:#x}", told.len);
                let has_data = told.flags & REMOTE_CQ_DATA != 0;
                assert_eq!(told.data, if has_data { seed } else { 0 });
                assert_eq!(told.tag, if is_tagged { seed } else { 0 });
                self.receive(end, posted);
                self.count(|counts| counts.received += 1);
            }
            What::Never => panic!("nothing matches it"),
        }
    }

    /// Another thread may have read the failure before.
    fn failed(&self, end: &End) {
        let mut failure: CqErrEntry = blank();
        if call!(end.cq, ops.readerr(&mut failure, 0)) != 1 {
            return;
        }
        assert_eq!(failure.err, errno::ECANCELED);
        // SAFETY: the receive has ended, and was made by `cancel`.
        let posted = unsafe { Box::from_raw(failure.op_context.cast::<Posted>()) };
        assert!(posted.what == What::Never);
        self.count(|counts| counts.cancelled += 1);
    }

    fn send_many(&self, seed: u64, messages: u64) {
        let mut random = Random(seed);
        for _ in 0..messages {
            let end = &self.ends[random.below(self.ends.len() as u64) as usize];
            while self.counts().begun > self.counts().received + UNDER_WAY && !self.is_over() {
                thread::yield_now();
            }
            let to = random.below(self.ends.len() as u64);
            self.send(end, to, &mut random);
        }
    }

    fn cancel_many(&self, count: u64) {
        let mut random = Random(count);
        for _ in 0..count {
            let end = &self.ends[random.below(self.ends.len() as u64) as usize];
            let posted = Box::into_raw(Box::new(Posted { bytes: vec![0; 8], what: What::Never }));
            self.receive(end, posted);
            // SAFETY: the endpoint is open.
            let cancel = unsafe { (*(*end.ep).ops).cancel.unwrap() };
            // SAFETY: as above.
            assert_eq!(unsafe { cancel(fid(end.ep), posted.cast()) }, 0);
        }
    }

    /// Peers get second numbers and lose them again: the first ones are as good as before.
    fn insert_and_remove(&self, count: u64) {
        let mut random = Random(count);
        for _ in 0..count {
            let end = &self.ends[random.below(self.ends.len() as u64) as usize];
            let mut numbers = self.ends[0].insert(&[name(end.ep), name(end.ep)]);
            let (at, len) = (numbers.as_mut_ptr(), numbers.len());
            assert_eq!(call!(self.ends[0].av, ops.remove(at, len, 0)), 0);
        }
    }

    /// Endpoints come, say something that arrives, and go, before their number does or after.
    fn come_and_go(&self, count: u64) {
        let mut random = Random(count);
        for _ in 0..count {
            let (ep, av) = (open_ep(self.opened).unwrap(), self.ends[0].av);
            let cq = open_cq(self.opened, |attr| attr.format = CQ_FORMAT_TAGGED).unwrap();
            assert_eq!((bind(ep, cq, SEND | RECV), bind(ep, av, 0)), (0, 0));
            assert_eq!(control(ep, ENABLE, null_mut::<u8>()), 0);
            let newcomer = End { ep, cq, av };
            let mut numbers = newcomer.insert(&[name(ep)]);
            self.deliver(&newcomer, random.below(self.ends.len() as u64), random.next());
            let leave = || assert_eq!((close(ep), close(cq)), (0, 0));
            let is_early = random.below(2) == 0;
            if is_early {
                leave();
            }
            assert_eq!(call!(av, ops.remove(numbers.as_mut_ptr(), 1, 0)), 0);
            if !is_early {
                leave();
            }
        }
    }

    /// Sends a message, and returns when it has been received.
    fn deliver(&self, end: &End, to: u64, seed: u64) {
        let mut bytes = vec![0; 8 + (seed % 30_000) as usize];
        fill(&mut bytes, seed);
        let iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let message = Msg { msg_iov: (&raw const iov).cast(), iov_count: 1, addr: to, ..blank() };
        let post = || call!(end.ep, msg.sendmsg(&message, DELIVERY_COMPLETE | COMPLETION));
        self.count(|counts| counts.begun += 1);
        assert_eq!(self.until_taken(end, post), 0);
        while !self.counts().is_failed {
            match end.read() {
                Ok((told, _)) => return assert_eq!(told.flags & SEND, SEND),
                Err(status) => assert_eq!(status, -(errno::EAGAIN as isize)),
            }
            thread::yield_now();
        }
    }
}

/// All threads do all operations with this many endpoints of a domain.
fn stress(endpoints: usize, data_progress: u32) {
    let wishes = Wishes { data_progress, ..Wishes::default() };
    let opened = wishes.opened();
    let scale = env::var("AYRE_SOAK").map_or(1, |text| text.parse().expect("a number"));
    let (messages, others) = (MESSAGES * scale, MESSAGES * scale / 8);
    let sent = SENDERS * messages;
    let stage = Stage {
        opened: &opened,
        ends: sharing(&opened, endpoints),
        counts: Mutex::default(),
        wanted: Counts {
            begun: sent + others,
            sent,
            received: sent + others,
            cancelled: others,
            is_failed: false,
        },
    };
    let receives: Vec<_> = stage.ends.iter().flat_map(|end| receives(&stage, end)).collect();
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            scope.spawn({
                let stage = &stage;
                move || stage.send_many(sender + 1, messages)
            });
        }
        scope.spawn(|| stage.cancel_many(others));
        scope.spawn(|| stage.insert_and_remove(others));
        scope.spawn(|| stage.come_and_go(others));
        for end in 0..stage.ends.len() {
            for reader in 0..READERS {
                let stage = &stage;
                let count = if reader == 0 { 8 } else { 1 };
                scope.spawn(move || stage.read(&stage.ends[end], count));
            }
        }
    });
    assert_eq!(stage.counts(), stage.wanted);
    close_sharing(stage.ends);
    for posted in receives {
        // SAFETY: the endpoints are closed, and this was made by `receives`.
        drop(unsafe { Box::from_raw(posted) });
    }
}

/// Endpoints with a queue each and one address vector, which has them in their order.
fn sharing(opened: &Opened, count: usize) -> Vec<End> {
    let av = open_av(opened, 0);
    let open = |_| {
        let ep = open_ep(opened).unwrap();
        let cq = open_cq(opened, |attr| attr.format = CQ_FORMAT_TAGGED).unwrap();
        assert_eq!((bind(ep, cq, SEND | RECV), bind(ep, av, 0)), (0, 0));
        assert_eq!(control(ep, ENABLE, null_mut::<u8>()), 0);
        End { ep, cq, av }
    };
    let ends: Vec<_> = (0..count).map(open).collect();
    let names: Vec<_> = ends.iter().map(|end| name(end.ep)).collect();
    assert_eq!(ends[0].insert(&names), (0..count as u64).collect::<Vec<_>>());
    ends
}

fn close_sharing(ends: Vec<End>) {
    let av = ends[0].av;
    for End { ep, cq, .. } in ends {
        assert_eq!((close(ep), close(cq)), (0, 0));
    }
    assert_eq!(close(av), 0);
}

/// Posts what an endpoint receives into.
fn receives(stage: &Stage<'_>, end: &End) -> Vec<*mut Posted> {
    let post = |at| {
        let bytes = vec![0; LONGEST as usize + 8];
        let what = What::Receive { is_tagged: at % 2 == 0 };
        let posted = Box::into_raw(Box::new(Posted { bytes, what }));
        stage.receive(end, posted);
        posted
    };
    (0..2 * RECEIVES).map(post).collect()
}

#[test]
fn threads_share_one_endpoint() {
    stress(1, PROGRESS_MANUAL);
}

#[test]
fn threads_share_a_domain() {
    stress(3, PROGRESS_MANUAL);
}

#[test]
fn threads_share_endpoints_with_one_that_is_ours() {
    stress(1, PROGRESS_AUTO);
    stress(2, PROGRESS_AUTO);
}

/// Adds one to a number of a peer's so often, and says what was there before each time.
fn count_up(end: &End, address: u64) -> Vec<u64> {
    let (one, mut old) = (1u64, 0u64);
    let (from, into, none) = ((&raw const one).cast(), (&raw mut old).cast(), null_mut());
    let mut found = Vec::new();
    while found.len() < MESSAGES as usize {
        let add = || {
            let (number, op) = (UINT64, SUM);
            call!(
                end.ep,
                atomic.readwrite(from, 1, none, into, none, 0, address, 1, number, op, none)
            )
        };
        match add() {
            0 => (),
            status => {
                assert_eq!(status, -(errno::EAGAIN as isize));
                give_time(end);
                continue;
            }
        }
        assert_eq!(next(end, &[]).0.flags, ATOMIC | READ);
        // SAFETY: the operation has ended.
        found.push(unsafe { (&raw const old).read_volatile() });
    }
    found
}

/// An end that one thread uses at a time.
struct Lent<'a>(&'a End);

// SAFETY: its domain was opened with FI_THREAD_SAFE.
unsafe impl Send for Lent<'_> {}

/// Peers may address memory of a domain by offsets or by virtual addresses. Atomics in both forms
/// count up one number together.
#[test]
fn a_number_with_two_names_is_one_number() {
    let by_offset = Wishes::remote();
    let by_address = Wishes { mr_mode: MR_VIRT_ADDR, ..by_offset };
    let (mut opened, other) = (by_offset.opened(), by_address.opened());
    let number = Box::new(0u64);
    let access = REMOTE_READ | REMOTE_WRITE;
    let mr = register(&opened, number_bytes(&number), access, 1).unwrap();
    let first = End::new(&opened, &by_offset);
    let infos = std::mem::replace(&mut opened.infos, Infos(other.infos.0));
    let second = End::new(&opened, &by_address);
    std::mem::forget(std::mem::replace(&mut opened.infos, infos));
    let targets = [(first, 0), (second, (&raw const *number) as u64)];
    let initiators = [0, 1].map(|_| End::new(&opened, &by_offset));
    let mut found: Vec<u64> = thread::scope(|scope| {
        let counting = targets.iter().zip(&initiators).map(|((target, address), initiator)| {
            initiator.insert(&[name(target.ep)]);
            let (initiator, target) = (Lent(initiator), Lent(target));
            let counter = scope.spawn(move || count_up({ initiator }.0, *address));
            (counter, target)
        });
        let serving = counting.collect::<Vec<_>>().into_iter().map(|(counter, target)| {
            scope.spawn(move || {
                let Lent(target) = { target };
                while !counter.is_finished() {
                    give_time(target);
                    thread::yield_now();
                }
                counter.join().unwrap()
            })
        });
        let serving: Vec<_> = serving.collect();
        serving.into_iter().flat_map(|server| server.join().unwrap()).collect()
    });
    found.sort_unstable();
    assert!(found.into_iter().eq(0..2 * MESSAGES), "each found another one");
    assert_eq!(close(mr), 0);
    let ends = targets.map(|(target, _)| target).into_iter().chain(initiators);
    ends.for_each(End::close);
}

fn number_bytes(number: &u64) -> &[u8] {
    // SAFETY: a number is bytes.
    unsafe { std::slice::from_raw_parts((&raw const *number).cast(), 8) }
}

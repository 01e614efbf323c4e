//! Connections whose bytes go by rings: both ends in this process, each step by each end at any
//! time, against a stream that is one list of bytes.
#[path = "socket/leaving.rs"]
mod leaving;
#[path = "socket/world.rs"]
mod world;

use ayre::socket::{Addresses, Bell, Connection, Counts, Door, Ends, Pair, RING, Ready};
use proptest::prelude::*;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::{End, LONG, bytes, check, connect, is_readable, pair, readable_within, sockets, unmet};

/// One direction of the stream, as it should be.
#[derive(Default)]
struct Model {
    written: u64,
    read: u64,
    /// The positions where the way has changed: to the ring, or from it.
    ways: Vec<(bool, u64)>,
    /// The reader sleeps at its bell and at its socket; nothing was there when it lay down.
    sleeps: Option<Sleep>,
    /// The writer sleeps until there is room.
    waits_for_room: bool,
    reads_no_ring: bool,
    is_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sleep {
    AtBell,
    AtSocket,
}

impl Model {
    /// Whether unread bytes of the ring precede unread ones that the kernel has.
    fn has_ring_before_kernel(&self) -> bool {
        let mut ends = self.ways.iter().skip(1).map(|(_, start)| *start).chain([self.written]);
        let mut has_ring = false;
        self.ways.iter().any(|(is_ring, _)| {
            let is_unread = ends.next().is_some_and(|end| end > self.read);
            has_ring |= *is_ring && is_unread;
            !is_ring && is_unread && has_ring
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize),
    Read(usize),
    Peek(usize),
    WantBytes,
    Look,
    WantKernel,
    WantRoom,
    LeaveReading,
    LeaveWriting,
    EndWriting,
}

/// A step of the maker (0) or the taker (1).
fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let len = prop_oneof![3 => 1usize..200, 1 => 1usize..2 * RING as usize];
    let step = prop_oneof![
        20 => len.clone().prop_map(Step::Write),
        20 => len.clone().prop_map(Step::Read),
        3 => len.prop_map(Step::Peek),
        8 => Just(Step::WantBytes),
        4 => Just(Step::Look),
        4 => Just(Step::WantKernel),
        6 => Just(Step::WantRoom),
        1 => Just(Step::LeaveReading),
        1 => Just(Step::LeaveWriting),
        1 => Just(Step::EndWriting),
    ];
    proptest::collection::vec((0..2usize, step), 1..80)
}

struct Test {
    ends: [End; 2],
    /// That of the bytes that each end writes.
    models: [Model; 2],
}

impl Test {
    fn step(&mut self, side: usize, step: Step) {
        let end = &self.ends[side];
        match step {
            Step::Write(len) => self.write(side, len),
            Step::Read(len) => {
                self.read(side, len, RecvFlags::empty());
            }
            Step::Peek(len) => {
                self.read(side, len, RecvFlags::PEEK);
            }
            Step::WantBytes => {
                self.lie_down(side, |end| end.connection.want_bytes(Some(&end.bell)))
            }
            Step::Look => {
                end.connection.want_bytes(None);
                self.models[1 - side].sleeps = None;
            }
            Step::WantKernel => {
                self.lie_down(side, |end| end.connection.want_kernel(Some(&end.bell)))
            }
            Step::WantRoom => {
                end.room.hush();
                end.connection.want_room(Some(&end.room));
                self.models[side].waits_for_room = end.connection.writable() == Ready::No;
            }
            Step::LeaveReading => {
                let model = &self.models[1 - side];
                // Behind the writer's end nobody passes the ring's bytes on.
                let is_late = model.is_ended && model.read < model.written;
                if !is_late && !model.has_ring_before_kernel() {
                    end.connection.leave_reading();
                    let model = &mut self.models[1 - side];
                    (model.reads_no_ring, model.sleeps) = (true, None);
                }
            }
            Step::LeaveWriting => end.connection.leave_writing(),
            Step::EndWriting => self.end_writing(side),
        }
        self.check_sleepers();
    }

    fn write(&mut self, side: usize, len: usize) {
        let (end, model) = (&self.ends[side], &mut self.models[side]);
        if model.is_ended {
            return;
        }
        let before = end.written_by_ring();
        match end.write(&bytes(model.written, len)) {
            Ok(0) => panic!("a write writes something"),
            Ok(done) => {
                let is_ring = end.written_by_ring() > before;
                if model.ways.last().map(|(is_ring, _)| *is_ring) != Some(is_ring) {
                    model.ways.push((is_ring, model.written));
                }
                model.written += done as u64;
                model.waits_for_room = false;
            }
            Err(errno) => assert_eq!(errno, Errno::AGAIN),
        }
    }

    /// Whether something was read.
    fn read(&mut self, side: usize, len: usize, flags: RecvFlags) -> bool {
        let (end, model) = (&self.ends[side], &mut self.models[1 - side]);
        let mut into = vec![0; len];
        match end.read(&mut into, flags) {
            Ok(0) => {
                assert!(model.is_ended, "an end that nobody has made");
                assert_eq!(model.read, model.written, "the end comes after all bytes");
                false
            }
            Ok(done) => {
                check(model.read, &into[..done]);
                assert!(model.read + done as u64 <= model.written, "bytes that nobody has written");
                if !flags.contains(RecvFlags::PEEK) {
                    model.read += done as u64;
                    model.sleeps = None;
                    end.bell.hush();
                }
                true
            }
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                false
            }
        }
    }

    /// The reader says what wakes it, and sleeps if nothing is there.
    fn lie_down(&mut self, side: usize, say: impl Fn(&End)) {
        let (end, model) = (&self.ends[side], &mut self.models[1 - side]);
        end.bell.hush();
        say(end);
        let is_there = end.connection.is_readable() || end.kernel_is_readable();
        let [bytes, _] = end.connection.bells();
        let sleep = if bytes.is_some() { Sleep::AtBell } else { Sleep::AtSocket };
        // An end that has left reads from the kernel. The kernel gets bytes in the writer's calls.
        model.sleeps = (!is_there && !model.reads_no_ring).then_some(sleep);
    }

    fn check_sleepers(&mut self) {
        for side in 0..2 {
            let (reader, writer) = (&self.ends[1 - side], &self.ends[side]);
            let model = &self.models[side];
            let has_news = model.written > model.read || model.is_ended;
            if let Some(sleep) = model.sleeps.filter(|_| has_news && !model.reads_no_ring) {
                let is_rung = sleep == Sleep::AtBell && is_readable(&reader.bell.fd());
                // The kernel passes bytes and ends on a little later.
                let is_awake = is_rung || readable_within(&[reader.socket.as_fd()], LONG);
                assert!(is_awake, "a reader that sleeps {sleep:?} hears nothing");
            }
            if model.waits_for_room && model.read == model.written && !model.reads_no_ring {
                let is_rung = is_readable(&writer.room.fd());
                assert!(is_rung, "the writer sleeps while all is read");
            }
        }
    }

    fn end_writing(&mut self, side: usize) {
        let end = &self.ends[side];
        if !self.models[side].is_ended && end.settle().is_ok() {
            end.end_writing();
            end.socket.shutdown(Shutdown::Write).unwrap();
            self.models[side].is_ended = true;
            // Behind the end there is nothing to write, so the writer waits for no room.
            self.models[side].waits_for_room = false;
        }
    }

    /// Both ends read until all has arrived.
    fn drain(&mut self) {
        for side in 0..2 {
            let reader = 1 - side;
            while self.models[side].read < self.models[side].written {
                let _ = self.ends[side].settle();
                if !self.read(reader, 1 << 20, RecvFlags::empty()) {
                    let socket = self.ends[reader].socket.as_fd();
                    assert!(readable_within(&[socket], LONG), "bytes do not arrive");
                }
            }
            assert!(!self.read(reader, 1, RecvFlags::empty()), "more than was written");
        }
    }

    /// Both ends end, the one that comes first says so, and the other one reads that.
    fn end(&mut self) {
        for side in 0..2 {
            self.end_writing(side);
            let reader = &self.ends[1 - side];
            assert!(readable_within(&[reader.socket.as_fd()], LONG));
            assert_eq!(reader.read(&mut [0; 9], RecvFlags::empty()), Ok(0));
            assert_eq!(self.ends[side].write(b"more"), Err(Errno::PIPE));
        }
        for end in &self.ends {
            assert!(!end.close(), "all was read");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    // spec: SOCK-15
    #[test]
    fn all_bytes_arrive_in_order_and_nobody_sleeps_while_they_are_there(steps in steps()) {
        let mut test = Test { ends: connect(&pair()), models: Default::default() };
        for (side, step) in steps {
            test.step(side, step);
        }
        test.drain();
        test.end();
    }
}

/// Writes until there is no room.
fn fill(end: &End, from: u64) -> u64 {
    let mut at = from;
    while let Ok(done) = end.write(&bytes(at, 1 << 16)) {
        at += done as u64;
    }
    at
}

/// Reads all that is there, in pieces.
fn drain(end: &End, mut at: u64, to: u64, piece: usize) {
    let mut into = vec![0; piece];
    while at < to {
        match end.read(&mut into, RecvFlags::empty()) {
            Ok(done) => {
                check(at, &into[..done]);
                at += done as u64;
            }
            Err(Errno::AGAIN) => {
                assert!(readable_within(&[end.socket.as_fd()], LONG), "bytes do not arrive");
            }
            Err(errno) => panic!("{errno}"),
        }
    }
}

#[test]
fn a_writer_behind_bytes_of_the_kernel_is_woken() {
    for kernel in [RING / 4, RING - RING / 4] {
        let [near, far] = connect(&pair());
        let mut at = 0;
        while at < kernel {
            at += near.write(&bytes(at, 1 << 12)).unwrap() as u64;
        }
        far.connection.want_bytes(Some(&far.bell));
        at = fill(&near, at);
        near.connection.want_room(Some(&near.room));
        assert_eq!(near.connection.writable(), Ready::No);
        drain(&far, 0, at, 1000);
        assert!(is_readable(&near.room.fd()), "the writer sleeps for ever");
    }
}

// spec: SOCK-17
#[test]
fn a_writer_is_woken_when_half_of_the_ring_is_free() {
    const PIECE: u64 = 1 << 10;
    let [near, far] = connect(&pair());
    far.connection.want_bytes(Some(&far.bell));
    assert_eq!(fill(&near, 0), RING, "the ring holds no more");
    near.connection.want_room(Some(&near.room));
    for at in (0..RING / 2).step_by(PIECE as usize) {
        let is_writable = near.connection.writable() == Ready::Yes;
        assert_eq!(is_writable, at >= RING / 4, "{at} bytes were read");
        drain(&far, at, at + PIECE, PIECE as usize);
    }
    assert!(is_readable(&near.room.fd()), "the writer sleeps on");
}

// spec: SOCK-16
#[test]
fn a_bell_is_rung_once_for_each_time_that_it_was_asked_for() {
    let [near, far] = connect(&pair());
    for _ in 0..3 {
        far.connection.want_bytes(Some(&far.bell));
        for is_rung in [true, false, false] {
            assert_eq!(near.write(b"x"), Ok(1));
            assert_eq!(is_readable(&far.bell.fd()), is_rung);
            far.bell.hush();
            assert_eq!(far.read(&mut [0; 2], RecvFlags::empty()), Ok(1));
        }
    }
}

// spec: SOCK-29
#[test]
fn a_pair_has_16384_connections_and_some_hundred_bells_of_each_side() {
    let [maker, taker] = pair();
    let offer = |port| {
        let connection = Connection::new().unwrap();
        connection.offer(&maker, &addresses(port)).then_some(connection)
    };
    let all: Vec<_> = (0..20_000).map_while(offer).collect();
    assert_eq!(all.len(), 16_384);
    assert!(offer(1).is_none(), "one more");
    let found = (0..16_384).map(|port| taker.find(&addresses(port)).expect("it is offered").0);
    assert_eq!(found.collect::<std::collections::BTreeSet<_>>().len(), 16_384);
    for (side, other) in [(&maker, &taker), (&taker, &maker)] {
        let next = || {
            assert!(!other.is_hung_up(), "it takes what was passed on");
            side.bell().ok_or(())
        };
        let bells: Vec<Bell> = std::iter::repeat_with(next).map_while(Result::ok).collect();
        // The number of descriptors is a bound, too.
        assert!((200..=1024).contains(&bells.len()), "{}", bells.len());
        // A bell of the last slots tells of no other ones.
        let mut rung = Vec::new();
        [5, 4095, 4096, 16_383].iter().for_each(|slot| bells[3].ring(*slot));
        bells[3].take_marks(|slot| rung.push(slot));
        assert_eq!(rung, [5, 4095, 4096, 16_383]);
        bells[3].take_marks(|slot| panic!("slot {slot} was taken already"));
    }
}

#[test]
fn a_writer_that_has_no_mark_left_is_woken() {
    let [near, far] = connect(&pair());
    let mut at = 0;
    for wants_ring in [false, true, false, true] {
        match wants_ring {
            true => far.connection.want_bytes(Some(&far.bell)),
            false => far.connection.want_kernel(None),
        }
        at += near.write(&bytes(at, 100)).unwrap() as u64;
    }
    far.connection.want_kernel(None);
    assert_eq!(near.write(b"more"), Err(Errno::AGAIN));
    near.connection.want_room(Some(&near.room));
    assert_eq!(near.connection.writable(), Ready::No);
    drain(&far, 0, at, 1000);
    assert!(is_readable(&near.room.fd()), "the writer sleeps for ever");
}

// spec: SOCK-24
#[test]
fn the_death_of_a_peer_is_seen_while_the_ring_is_full() {
    for has_unread in [false, true] {
        let [near, far] = connect(&pair());
        near.connection.want_kernel(None);
        if has_unread {
            far.write(b"answer").unwrap();
        }
        far.connection.want_bytes(Some(&far.bell));
        fill(&near, 0);
        // It dies: the kernel closes its socket, and nobody says that this is in order.
        drop(far.socket);
        assert!(readable_within(&[near.socket.as_fd()], LONG));
        let result = (0..1000).map(|_| near.write(b"more")).find(|it| *it != Err(Errno::AGAIN));
        let is_told = matches!(result, Some(Err(Errno::PIPE | Errno::CONNRESET) | Ok(_)));
        assert!(is_told, "has unread: {has_unread}");
    }
}

/// Addresses of a connection with this port, which nobody has.
fn addresses(port: u16) -> Ends {
    let at = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    Ends::Tcp(Addresses { maker: at(port), taker: at(80) })
}

// spec: SOCK-29
#[test]
fn slots_are_given_back_and_used_again() {
    let [maker, taker] = pair();
    let ([any, _other], _) = sockets();
    let take = |of: &Ends| {
        let connection = Connection::new().unwrap();
        let number = taker.find(of)?;
        connection.take(&taker, number).then_some(connection)
    };
    // The taker closes first, the maker does, or nobody has taken the offer.
    for round in 0..1000 {
        let of = addresses(1000);
        let offered = Connection::new().unwrap();
        assert!(offered.offer(&maker, &of), "round {round}");
        let taken = if round % 3 < 2 { take(&of) } else { None };
        assert_eq!(taken.is_some(), round % 3 < 2);
        if let (Some(taken), true) = (&taken, round % 3 == 0) {
            taken.close(any.as_fd());
        }
        offered.close(any.as_fd());
        if let (Some(taken), true) = (&taken, round % 3 == 1) {
            assert!(taken.place().is_some());
            taken.close(any.as_fd());
        }
    }
    // A slot whose taker has not closed it is not used again.
    let offer = || {
        let offered = Connection::new().unwrap();
        assert!(offered.offer(&maker, &addresses(1000)));
        (taker.find(&addresses(1000)).unwrap().0, offered)
    };
    let (first, offered) = offer();
    assert_eq!(first, 0, "all were given back");
    let held = take(&addresses(1000)).unwrap();
    offered.close(any.as_fd());
    drop(offered);
    let (second, other) = offer();
    assert_eq!(second, 1);
    // Nor one that a thread of the taker may be about to use.
    held.close(any.as_fd());
    let (third, another) = offer();
    assert_eq!(third, 2);
    drop(held);
    assert_eq!(offer().0, first);
    drop((other, another));
}

// spec: SOCK-7
#[test]
fn an_offer_is_taken_once_and_not_after_it_was_withdrawn() {
    let [maker, taker] = pair();
    let ([any, _other], _) = sockets();
    let of = addresses(2000);
    let connection = || Connection::new().unwrap();
    let (offered, first, second) = (connection(), connection(), connection());
    assert_eq!(taker.find(&of), None);
    assert!(offered.offer(&maker, &of));
    assert!(offered.has_offer() && offered.place().is_none());
    assert_eq!(taker.find(&addresses(2001)), None);
    let number = taker.find(&of).unwrap();
    assert!(first.take(&taker, number));
    assert!(!second.take(&taker, number) && taker.find(&of).is_none());
    assert!(offered.place().is_some());

    let (offered, late) = (connection(), connection());
    let of = addresses(3000);
    assert!(offered.offer(&maker, &of));
    let number = taker.find(&of).unwrap();
    offered.close(any.as_fd());
    assert_eq!(taker.find(&of), None);
    assert!(!late.take(&taker, number), "it was withdrawn");
    assert!(!late.has_offer());
}

#[test]
fn a_bell_that_was_passed_on_late_is_heard() {
    let pairs = pair();
    let [near, far] = connect(&pairs);
    for _ in 0..20 {
        let bells: Vec<Bell> = (0..5).map(|_| pairs[1].bell().unwrap()).collect();
        far.connection.want_bytes(Some(&bells[4]));
        assert_eq!(near.write(b"x"), Ok(1));
        let rung: Vec<bool> = bells.iter().map(|bell| is_readable(&bell.fd())).collect();
        assert_eq!(rung, [false, false, false, false, true]);
        let mut slots = Vec::new();
        bells[4].take_marks(|slot| slots.push(slot));
        assert_eq!(slots, [far.connection.place().unwrap().1]);
        assert_eq!(far.read(&mut [0; 2], RecvFlags::empty()), Ok(1));
    }
}

// spec: SOCK-4, SOCK-5
#[test]
fn a_door_has_one_owner_and_all_who_have_knocked() {
    let name = world::fresh_name();
    assert!(Pair::knock(&name, 1, |_| true).is_err(), "nobody listens");
    let door = Door::open(&name).unwrap();
    assert_eq!(Door::open(&name).unwrap_err(), Errno::ADDRINUSE);
    let makers: Vec<_> =
        (0..3).map(|code| Pair::knock(&name, code + 1, |_| true).unwrap()).collect();
    assert_eq!(door.callers(|_| true).len(), 3);
    assert!(door.callers(|_| true).is_empty());
    assert!(makers.iter().all(|maker| maker.is_hung_up()), "callers were dropped");
}

// spec: SOCK-9
#[test]
fn bytes_before_the_agreement_go_by_the_kernel_and_count() {
    let pairs = pair();
    let ([near, far], of) = unmet(&pairs);
    for end in [&near, &far] {
        end.connection.want_bytes(Some(&end.bell));
        assert_eq!(end.write(&bytes(0, 1000)), Ok(1000));
    }
    drain(&near, 0, 500, 500);
    assert!(near.connection.offer(&pairs[0], &of));
    drain(&near, 500, 1000, 500);
    assert!(far.connection.take(&pairs[1], pairs[1].find(&of).unwrap()));
    near.connection.want_bytes(None);
    far.connection.want_bytes(None);
    for end in [&near, &far] {
        assert_eq!(end.write(&bytes(1000, 1000)), Ok(1000));
        assert_eq!(end.written_by_ring(), 1000);
    }
    drain(&near, 1000, 2000, 2000);
    drain(&far, 0, 2000, 2000);
    assert_eq!(far.connection.counts_in(), Counts { ring: 1000, kernel: 1000 });
}

// spec: SOCK-23
#[test]
fn an_end_of_writing_before_the_agreement_is_in_order() {
    let pairs = pair();
    let ([near, far], of) = unmet(&pairs);
    assert!(near.connection.offer(&pairs[0], &of));
    near.end_writing();
    near.socket.shutdown(Shutdown::Write).unwrap();
    assert!(far.connection.take(&pairs[1], pairs[1].find(&of).unwrap()));
    near.connection.want_bytes(None);
    assert_eq!(far.read(&mut [0; 4], RecvFlags::empty()), Ok(0));
    assert_eq!(far.write(b"x"), Ok(1));
    assert_eq!(far.written_by_ring(), 1, "the peer lives");
}

/// Waits until a reader has come so far.
fn wait_for(read: &AtomicU64, at: u64) {
    for _ in 0..1 << 26 {
        if read.load(Ordering::Relaxed) >= at {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the reader does not come to {at}");
}

/// A thread that reads as the library does: it sleeps at a bell, looks, or sleeps at the socket.
fn read_all(end: &End, total: u64, mut random: u64, read: &AtomicU64) {
    let (mut at, mut into) = (0, vec![0; 3 << 16]);
    while at < total {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let len = match random >> 62 {
            0 => into.len(),
            _ => 1 + (random >> 50) as usize % 4000,
        };
        match end.read(&mut into[..len], RecvFlags::empty()) {
            Ok(0) => panic!("the stream ends early, at {at}"),
            Ok(done) => {
                check(at, &into[..done]);
                at += done as u64;
                read.store(at, Ordering::Relaxed);
                continue;
            }
            Err(errno) => assert_eq!(errno, Errno::AGAIN),
        }
        match random >> 40 & 7 {
            0..4 => end.connection.want_bytes(Some(&end.bell)),
            4..7 => end.connection.want_bytes(None),
            _ => end.connection.want_kernel(Some(&end.bell)),
        }
        if end.connection.is_readable() {
            continue;
        }
        let is_asleep = end.connection.bells()[0].is_some();
        // A reader that looks, or waits for the kernel, looks again by itself.
        let time = if is_asleep { LONG } else { Duration::from_micros(50) };
        let woken = readable_within(&[end.bell.fd(), end.socket.as_fd()], time);
        assert!(woken || !is_asleep, "nobody wakes the reader, at {at}");
        end.connection.want_bytes(None);
        end.bell.hush();
    }
}

/// A thread that writes as the library does: it sleeps at a bell or at the socket. At times it lets
/// the reader come to the end.
fn write_all(end: &End, total: u64, mut random: u64, read: &AtomicU64) {
    let mut at = 0;
    while at < total {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        if random >> 40 & 15 == 0 {
            wait_for(read, at);
        }
        let len = if random >> 60 == 0 { 1 << 18 } else { 1 + (random >> 50) as usize % 4000 };
        match end.write(&bytes(at, len.min((total - at) as usize))) {
            Ok(done) => {
                at += done as u64;
                continue;
            }
            Err(errno) => assert_eq!(errno, Errno::AGAIN),
        }
        end.connection.want_room(Some(&end.room));
        let wanted = match end.connection.writable() {
            Ready::Yes => continue,
            Ready::No => rustix::event::PollFlags::empty(),
            Ready::AskKernel => rustix::event::PollFlags::OUT,
        };
        let mut polled = [
            rustix::event::PollFd::from_borrowed_fd(end.socket.as_fd(), wanted),
            rustix::event::PollFd::from_borrowed_fd(end.room.fd(), rustix::event::PollFlags::IN),
        ];
        let time = rustix::event::Timespec::try_from(LONG).unwrap();
        let woken = rustix::event::poll(&mut polled, Some(&time)).unwrap() > 0;
        assert!(woken, "nobody wakes the writer, at {at}");
        end.connection.want_room(None);
        end.room.hush();
    }
}

// spec: SOCK-15
#[test]
fn threads_that_sleep_and_change_their_minds_get_all_bytes() {
    const TOTAL: u64 = 24 << 20;
    let ends = connect(&pair());
    let read = [const { AtomicU64::new(0) }; 2];
    std::thread::scope(|scope| {
        for (number, end) in ends.iter().enumerate() {
            let [own, others] = [&read[number], &read[1 - number]];
            scope.spawn(move || read_all(end, TOTAL, 77 + number as u64, own));
            scope.spawn(move || write_all(end, TOTAL, 99 + number as u64, others));
        }
    });
    for end in &ends {
        let rings: u64 = end.written_by_ring();
        assert!(rings > 0 && rings < TOTAL, "by the ring: {rings}");
        println!("by the ring: {rings} of {TOTAL}");
    }
}

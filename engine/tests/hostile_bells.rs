//! Peers that misuse the bells: nobody is held up by them, nobody who sleeps is kept awake, and
//! nobody sleeps through a ring. One test at a time, because one counts the process's work.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{
    Attacker, Begun, Lane, Memory, PAGE_BYTES, Parts, connect_to, hello, refusal_to, sealed_file,
    send,
};
use ayre::*;
use ayre_proto::lane::Kind;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, shutdown,
    socket_with, socketpair, sockopt,
};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::{REGION, World};

const MODES: [Mode; 2] = [Mode::Direct, Mode::Mediated];
const NEVER: Duration = Duration::from_secs(60);

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Descriptors that are no stream sockets of this host.
fn wrong_bells() -> Vec<OwnedFd> {
    let unix_pair = |kind| {
        let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        pair.expect("a pair of sockets").0
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let internet = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let mut wrong = vec![
        reader.into(),
        writer.into(),
        eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd"),
        sealed_file(PAGE_BYTES),
        unix_pair(SocketType::DGRAM),
        unix_pair(SocketType::SEQPACKET),
    ];
    // There may be no such network here.
    wrong.extend(internet);
    wrong
}

// spec: LIFE-7, LIFE-9
#[test]
fn bells_of_other_kinds_are_turned_away() {
    let _alone = alone();
    let mut world = World::new(Mode::Direct, "bell-kinds");
    let parts = Parts::new();
    let [port, engine] = parts.bells.each_ref().map(AsFd::as_fd);
    for wrong in wrong_bells() {
        for bells in [[wrong.as_fd(), engine], [port, wrong.as_fd()]] {
            let stranger = connect_to(&world.path);
            let fds = [parts.page.as_fd(), bells[0], bells[1]];
            assert!(send(&stranger, hello(9, false), &fds), "the victim listens");
            let malformed = world.victim.counters().malformed();
            assert!(matches!(world.victim.accept(), Err(SetupError::TimedOut(_))));
            assert_eq!(world.victim.counters().malformed(), malformed + 1);
            assert_eq!(refusal_to(&stranger), [0, 0], "for no reason that there is a code for");
        }
    }
    world.honest_round();
}

/// What a peer does with its bells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misuse {
    Close,
    ShutDown(Shutdown),
    /// Puts a byte out of band.
    Urge,
    /// Hands over sockets that are not connected.
    Part,
    /// Leaves no room for rings, and would have their senders wait for some.
    Fill,
}

const MISUSES: [Misuse; 7] = [
    Misuse::Close,
    Misuse::ShutDown(Shutdown::Read),
    Misuse::ShutDown(Shutdown::Write),
    Misuse::ShutDown(Shutdown::Both),
    Misuse::Urge,
    Misuse::Part,
    Misuse::Fill,
];

/// A peer that claims to sleep and misuses its bells.
struct Misuser {
    attacker: Attacker,
    peer: PeerId,
    /// The victim's ends: whoever made them may keep them.
    copies: [OwnedFd; 2],
}

fn copies(of: &[OwnedFd; 2]) -> [OwnedFd; 2] {
    of.each_ref().map(|fd| fd.try_clone().expect("a copy"))
}

fn socket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .expect("a socket")
}

impl Misuser {
    fn connect(world: &mut World, misuse: Misuse) -> Self {
        let mut parts = Parts::new();
        if misuse == Misuse::Part {
            parts.bells = [socket(), socket()];
        }
        let page = Memory::map(&parts.page, PAGE_BYTES);
        (0..16).for_each(|word| page.store(word * 8, 1));
        let copies = copies(&parts.bells);
        let number = world.fresh_number();
        let begun = Begun::connect_with(&world.path, number, false, parts);
        let peer = world.victim.accept().expect("a correct introduction");
        let mut misuser = Self { attacker: begun.finish(), peer, copies };
        misuser.misuse(misuse);
        misuser
    }

    fn misuse(&mut self, misuse: Misuse) {
        let rings = &mut self.attacker.parts.rings;
        match misuse {
            Misuse::Close => *rings = Parts::new().rings,
            Misuse::ShutDown(how) => {
                rings.iter().for_each(|ring| shutdown(ring, how).expect("a connected socket"));
            }
            Misuse::Urge => {
                let urge = |ring| rustix::net::send(ring, &[0], SendFlags::OOB);
                // Not every system has it.
                for ring in rings {
                    let _ = urge(ring);
                }
            }
            Misuse::Part => {}
            Misuse::Fill => self.copies.iter().for_each(fill),
        }
    }
}

fn fill(bell: &OwnedFd) {
    sockopt::set_socket_send_buffer_size(bell, 1).expect("the least");
    while rustix::net::send(bell, &[0], SendFlags::DONTWAIT).is_ok() {}
    fcntl_setfl(bell, OFlags::empty()).expect("flags that both share");
}

// spec: LIFE-13, WAIT-3
#[test]
fn a_bell_that_is_misused_does_not_hold_its_ringer_up() {
    let _alone = alone();
    for (mode, misuse) in MODES.into_iter().flat_map(|mode| MISUSES.map(|it| (mode, it))) {
        let mut world = World::new(mode, "bell-ring");
        let misuser = Misuser::connect(&mut world, misuse);
        let (attacker, peer) = (&misuser.attacker, misuser.peer);
        let file = sealed_file(REGION as u64);
        let offer = attacker::Offer::of(1, REGION as u64);
        assert!(attacker.offer_region(offer, Some(file.as_fd())), "the victim is there");
        let remote = world.victim.accept_region(peer, 1).expect("a truthful offer");
        for _ in 0..200 {
            let _ = world.victim.send(peer, 1, b"wake up");
            let _ = world.victim.notify(peer, Options::new());
            let _ = world.victim.put(&remote, 0, &[1; 8], Options::new().completer());
        }
        world.honest_round();
        assert!(world.victim.is_alive(peer), "its bells are its own affair");
    }
}

/// A round with the honest peer, or, where an engine's thread takes its own time, a wait for that.
fn still_serves(world: &mut World, engine: bool) {
    if engine {
        world.honest.fetch_add(&world.to_victim, 8000, 1).expect("the victim serves");
    } else {
        world.honest_round();
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

// spec: WAIT-4, LIFE-13
#[test]
fn a_bell_that_is_misused_does_not_keep_a_sleeper_awake() {
    let _alone = alone();
    let wait = Duration::from_millis(200);
    for (mode, misuse) in MODES.into_iter().flat_map(|mode| MISUSES.map(|it| (mode, it))) {
        for engine in [false, true] {
            let mut world = World::new(mode, "bell-sleep");
            if engine {
                world.victim.start_engine().expect("a thread");
            }
            let _misuser = Misuser::connect(&mut world, misuse);
            let before = processor_time();
            let slept = world.victim.recv(&mut [0; 64], Some(wait));
            // A quarter leaves much for falling asleep, and what spins has more on a busy machine.
            let used = processor_time() - before;
            assert_eq!(slept.expect_err("nobody speaks"), ReceiveError::TimedOut);
            assert!(used < wait / 4, "{used:?} of {wait:?} asleep: {misuse:?}, {mode:?}, {engine}");
            still_serves(&mut world, engine);
        }
    }
}

/// Rings as much as it can, and takes rings that it was to be woken by.
fn riot(misuser: &Misuser, over: &AtomicBool) {
    let rings = [0; 4096];
    while !over.load(Ordering::Relaxed) {
        for (ring, copy) in misuser.attacker.parts.rings.iter().zip(&misuser.copies) {
            let _ = rustix::net::send(ring, &rings, SendFlags::DONTWAIT);
            let _ = recv(copy, &mut [0; 8], RecvFlags::DONTWAIT);
        }
    }
}

// spec: LIFE-13, WAIT-1, PROG-4
#[test]
fn a_bell_that_never_stops_is_in_nobodys_way() {
    let _alone = alone();
    for (mode, engine) in MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let mut world = World::new(mode, "bell-riot");
        if engine {
            world.victim.start_engine().expect("a thread");
        }
        let (first, second) = (
            Misuser::connect(&mut world, Misuse::Fill),
            Misuser::connect(&mut world, Misuse::Fill),
        );
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| riot(&first, &over));
            scope.spawn(|| riot(&second, &over));
            let zero = world.honest.peer(0).expect("the victim");
            let mut buffer = [0; 64];
            for _ in 0..20 {
                let slept = world.victim.recv(&mut buffer, Some(Duration::from_millis(1)));
                assert_eq!(slept.expect_err("nobody speaks"), ReceiveError::TimedOut);
                world.honest.send(zero, 5, b"hear me").expect("room for a message");
                let message = world.victim.recv(&mut buffer, Some(NEVER)).expect("a message");
                assert_eq!((message.source, &buffer[..message.len]), (PeerId(1), &b"hear me"[..]));
            }
            over.store(true, Ordering::Relaxed);
        });
        still_serves(&mut world, engine);
    }
}

// spec: WAIT-3
#[test]
fn a_ring_wakes_whoever_sleeps_whatever_was_rung_before() {
    let _alone = alone();
    for mode in MODES {
        let mut world = World::new(mode, "bell-wakes");
        let (mut attacker, peer) = world.attacker(mode == Mode::Mediated);
        let kind = if mode == Mode::Direct { Kind::Message } else { Kind::GatedMessage };
        let (took, taken) = channel();
        let thread = std::thread::spawn(move || {
            for turn in 0..500 {
                let ring = &attacker.parts.rings[0];
                let stale = vec![0; [0, 1, 5000][turn % 3]];
                let _ =
                    turn % 2 == 0 && rustix::net::send(ring, &stale, SendFlags::DONTWAIT).is_ok();
                attacker.put_record(Lane::Messages, kind, 16, &[0, turn as u64]);
                let _ = rustix::net::send(&attacker.parts.rings[0], &[0], SendFlags::DONTWAIT);
                taken.recv().expect("the victim wakes");
            }
            attacker
        });
        for _ in 0..500 {
            let message = world.victim.recv(&mut [0; 64], Some(NEVER)).expect("a message");
            assert_eq!(message.source, peer);
            took.send(()).expect("the attacker goes on");
        }
        drop(thread.join().expect("the attacker ends"));
        world.honest_round();
    }
}

// spec: LIFE-10, LIFE-13
#[test]
fn bells_do_not_hide_a_death() {
    let _alone = alone();
    for mode in MODES {
        let mut world = World::new(mode, "bell-death");
        let mut attackers: Vec<_> = (0..20).map(|_| world.attacker(false)).collect();
        let (mortal, peer) = attackers.pop().expect("twenty");
        world.victim.progress();
        for (attacker, _) in &attackers {
            // More than one look takes.
            let rings = [0; 5000];
            attacker.parts.rings.iter().for_each(|ring| {
                rustix::net::send(ring, &rings, SendFlags::DONTWAIT).expect("room for rings");
            });
        }
        drop(mortal);
        world.victim.progress();
        assert!(!world.victim.is_alive(peer), "the next progress tells");
        assert!(attackers.iter().all(|(_, peer)| world.victim.is_alive(*peer)));
        world.honest_round();
    }
}

//! Peers that misuse the channel by which they wake us: nobody is held up by them, nobody who
//! sleeps is kept awake, and nobody sleeps through a kick. One test at a time, because one counts
//! the process's work.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{Attacker, Begun, KICK, Lane, Memory, Offer, PAGE_BYTES, Parts, sealed_file};
use ayre::*;
use ayre_proto::lane::Kind;
use rustix::fd::AsFd;
use rustix::net::{Shutdown, shutdown};
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

/// A peer's misuse of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misuse {
    Close,
    ShutDown(Shutdown),
    /// Takes nothing of what it is sent.
    Hoard,
    /// Leaves no room in it, with kicks.
    Kick,
    /// Leaves no room in it, with offers that nobody accepts, or with more than anybody keeps.
    Offer,
}

const MISUSES: [Misuse; 7] = [
    Misuse::Close,
    Misuse::ShutDown(Shutdown::Read),
    Misuse::ShutDown(Shutdown::Write),
    Misuse::ShutDown(Shutdown::Both),
    Misuse::Hoard,
    Misuse::Kick,
    Misuse::Offer,
];

impl Misuse {
    /// Whether that is the peer's death.
    fn is_fatal(self) -> bool {
        !matches!(self, Self::ShutDown(Shutdown::Read) | Self::Hoard | Self::Kick | Self::Offer)
    }
}

/// A peer that claims to sleep and misuses its channel.
struct Misuser {
    /// Until it hangs up.
    attacker: Option<Attacker>,
    peer: PeerId,
}

impl Misuser {
    fn connect(world: &mut World) -> Self {
        let parts = Parts::new();
        let page = Memory::map(&parts.page, PAGE_BYTES);
        (0..16).for_each(|word| page.store(word * 8, 1));
        let number = world.fresh_number();
        let begun = Begun::connect_with(&world.path, number, false, parts);
        let peer = world.victim.accept().expect("a correct introduction");
        Self { attacker: Some(begun.finish()), peer }
    }

    fn attacker(&self) -> &Attacker {
        self.attacker.as_ref().expect("it has not hung up")
    }

    fn misuse(&mut self, misuse: Misuse) {
        let file = sealed_file(REGION as u64);
        let offer = |name| {
            let offer = Offer::of(name, REGION as u64);
            self.attacker().offer_region(offer, Some(file.as_fd()))
        };
        match misuse {
            Misuse::Close => drop(self.attacker.take()),
            Misuse::ShutDown(how) => {
                shutdown(&self.attacker().control, how).expect("a connected socket");
            }
            Misuse::Hoard => {}
            Misuse::Kick => _ = (0..1000).all(|_| self.attacker().kick()),
            // An engine's thread may take them meanwhile.
            Misuse::Offer => _ = (2..1000).all(offer),
        }
    }
}

// spec: LIFE-13, WAIT-3, LANE-15
#[test]
fn a_channel_that_is_misused_does_not_hold_its_ringer_up() {
    let _alone = alone();
    for (mode, misuse) in MODES.into_iter().flat_map(|mode| MISUSES.map(|it| (mode, it))) {
        let mut world = World::new(mode, "bell-ring");
        let mut misuser = Misuser::connect(&mut world);
        let (file, peer) = (sealed_file(REGION as u64), misuser.peer);
        let offer = Offer::of(1, REGION as u64);
        let offered = misuser.attacker().offer_region(offer, Some(file.as_fd()));
        assert!(offered, "the victim is there");
        let remote = world.victim.accept_region(peer, 1).expect("a truthful offer");
        misuser.misuse(misuse);
        for _ in 0..200 {
            let _ = world.victim.send(peer, 1, b"wake up");
            let _ = world.victim.notify(peer, PostOptions::new());
            let _ = world.victim.put(&remote, 0, &[1; 8], PostOptions::new().completer());
        }
        world.honest_round();
        assert_eq!(world.victim.is_alive(peer), !misuse.is_fatal(), "{misuse:?}");
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

/// The activity of a program that gets no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    Waits,
    WaitsBesideAnEngine,
    /// Makes no call; its engine's thread sleeps.
    Computes,
}

impl Idle {
    const ALL: [Self; 3] = [Self::Waits, Self::WaitsBesideAnEngine, Self::Computes];

    fn pass(self, victim: &mut Port, time: Duration) {
        if self == Self::Computes {
            let (_kept, nothing) = channel::<()>();
            nothing.recv_timeout(time).expect_err("nobody sends");
            return;
        }
        loop {
            match victim.recv(&mut [0; 64], Some(time)).expect_err("nobody speaks") {
                ReceiveError::PeerDied(_) => {}
                error => return assert_eq!(error, ReceiveError::TimedOut),
            }
        }
    }
}

// spec: WAIT-4, LIFE-13, LANE-15
#[test]
fn a_channel_that_is_misused_does_not_keep_a_sleeper_awake() {
    let _alone = alone();
    let wait = Duration::from_millis(200);
    for (mode, misuse) in MODES.into_iter().flat_map(|mode| MISUSES.map(|it| (mode, it))) {
        for idle in Idle::ALL {
            let mut world = World::new(mode, "bell-sleep");
            if idle != Idle::Waits {
                world.victim.start_engine().expect("a thread");
            }
            let mut misuser = Misuser::connect(&mut world);
            misuser.misuse(misuse);
            let before = processor_time();
            idle.pass(&mut world.victim, wait);
            // A quarter leaves much for falling asleep, and what spins has more on a busy machine.
            let used = processor_time() - before;
            assert!(used < wait / 4, "{used:?} of {wait:?} asleep: {misuse:?}, {mode:?}, {idle:?}");
            still_serves(&mut world, idle != Idle::Waits);
            world.victim.progress();
            assert_eq!(world.victim.is_alive(misuser.peer), !misuse.is_fatal(), "{misuse:?}");
        }
    }
}

/// Kicks as much as it can, with words and descriptors that no kick has.
fn riot(misuser: &Misuser, over: &AtomicBool) {
    let (attacker, page) = (misuser.attacker(), misuser.attacker().parts.page.as_fd());
    while !over.load(Ordering::Relaxed) {
        attacker.send([KICK, 1, 2, 3, 4, 5, 6, 7], &[page; 4]);
        while attacker.kick() {}
    }
}

// spec: LIFE-13, WAIT-1, PROG-4, LANE-15
#[test]
fn a_peer_that_kicks_constantly_does_not_delay_others() {
    let _alone = alone();
    for (mode, engine) in MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let mut world = World::new(mode, "bell-riot");
        if engine {
            world.victim.start_engine().expect("a thread");
        }
        let rioters = [(); 2].map(|()| Misuser::connect(&mut world));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            rioters.iter().for_each(|rioter| _ = scope.spawn(|| riot(rioter, &over)));
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
        assert!(rioters.iter().all(|rioter| world.victim.is_alive(rioter.peer)));
    }
}

// spec: LANE-15, PROG-2, WAIT-3
#[test]
fn whichever_thread_takes_a_kick_the_other_one_is_woken_too() {
    const TURNS: u64 = 1000;
    let _alone = alone();
    let mut world = World::new(Mode::Mediated, "bell-both");
    world.victim.start_engine().expect("a thread");
    let World { victim, honest, to_victim, .. } = &mut world;
    let (zero, over) = (to_victim.peer(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // The port takes what its engine is to be woken by.
        let thread = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                victim.progress();
            }
        });
        let before = honest.fetch_add(to_victim, 8000, 0).expect("the engine serves");
        for turn in 0..TURNS {
            assert_eq!(honest.fetch_add(to_victim, 8000, 1), Ok(before + turn));
        }
        over.store(true, Ordering::Relaxed);
        thread.join().expect("it makes progress");
    });
    std::thread::scope(|scope| {
        // And the other way round: both sleep, and either may be first.
        let (took, taken) = channel();
        scope.spawn(move || {
            for turn in 0..TURNS {
                honest.fetch_add(to_victim, 8000, 1).expect("the engine serves");
                honest.send(zero, turn as u32, b"to the port").expect("room for a message");
                taken.recv().expect("the port wakes");
            }
        });
        for turn in 0..TURNS {
            let message = victim.recv(&mut [0; 64], Some(NEVER)).expect("a message");
            assert_eq!(message.tag, turn as u32);
            took.send(()).expect("the peer goes on");
        }
    });
}

// spec: WAIT-3
#[test]
fn a_kick_wakes_a_sleeper_also_after_stale_kicks() {
    let _alone = alone();
    for mode in MODES {
        let mut world = World::new(mode, "bell-wakes");
        let (mut attacker, peer) = world.attacker(mode == Mode::Mediated);
        let kind = if mode == Mode::Direct { Kind::Message } else { Kind::GatedMessage };
        let (took, taken) = channel();
        let thread = std::thread::spawn(move || {
            for turn in 0..500 {
                let stale = if turn % 2 == 0 { [0, 1, 5000][turn % 3] } else { 0 };
                let _ = (0..stale).all(|_| attacker.kick());
                attacker.put_record(Lane::Messages, kind, 16, &[0, turn as u64]);
                attacker.kick();
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
fn kicks_do_not_hide_a_death() {
    let _alone = alone();
    for mode in MODES {
        let mut world = World::new(mode, "bell-death");
        let mut attackers: Vec<_> = (0..20).map(|_| world.attacker(false)).collect();
        let (mortal, peer) = attackers.pop().expect("twenty");
        world.victim.progress();
        for (attacker, _) in &attackers {
            while attacker.kick() {}
        }
        drop(mortal);
        world.victim.progress();
        assert!(!world.victim.is_alive(peer), "the next progress tells");
        assert!(attackers.iter().all(|(_, peer)| world.victim.is_alive(*peer)));
        world.honest_round();
    }
}

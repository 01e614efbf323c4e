//! A port that the system refuses what a connection takes: its program is told, and no caller is
//! blamed. A program of its own, for the limit holds for all of a process.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::Begun;
use ayre::SetupError;
use ayre::endpoint::raw::Spans;
use ayre::endpoint::raw::{OutgoingMessage, RawEndpoint};
use ayre::error::DisconnectReason;
use ayre::error::Refusal;
use ayre::{Busy, EndpointOptions, Fault, Mode, PeerId, PostError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Mutex, PoisonError};
use world::World;

/// The victim's result for its next caller while it may have only `limit` descriptors.
fn accept_within(world: &mut World, limit: u64) -> Result<PeerId, SetupError> {
    within(limit, || world.victim.accept())
}

/// The result of a call where this process may have only `limit` descriptors.
fn within<T>(limit: u64, call: impl FnOnce() -> T) -> T {
    let whole = getrlimit(Resource::Nofile);
    let narrow = Rlimit { current: Some(limit), ..whole };
    setrlimit(Resource::Nofile, narrow).expect("a lower limit");
    let result = call();
    setrlimit(Resource::Nofile, whole).expect("the limit as it was");
    result
}

/// The limit that leaves this process `spare` more descriptors.
fn limit_for(spare: usize) -> u64 {
    let is_free =
        |number: &u64| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err();
    (0..).filter(is_free).nth(spare).expect("numbers without end")
}

// spec: LIFE-9
#[test]
fn a_lack_of_descriptors_is_no_fault_of_a_caller() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for mode in [Mode::Direct, Mode::Mediated] {
        let mut world = World::new(mode, "shortage");
        let malformed = world.victim.counters().malformed();
        let mut callers = Vec::new();
        let refused = (0..).take_while(|spare| {
            let number = world.fresh_number();
            callers.push(Begun::connect(&world.path, number, false));
            let accepted = accept_within(&mut world, limit_for(*spare));
            assert!(matches!(accepted, Ok(_) | Err(SetupError::Os { .. })), "{accepted:?}");
            accepted.is_err()
        });
        let refused = refused.count();
        assert!(refused > 2, "a connection takes several descriptors");
        assert_eq!(world.victim.counters().malformed(), malformed, "all have said what is right");
        // Who could not even be let in still waits.
        while world.victim.accept().is_ok() {}
        world.attacker(false);
        world.honest_round();
    }
}

/// One after the other: the limit is the process's.
static ALONE: Mutex<()> = Mutex::new(());

// spec: ENV-34, ERR-10, LIFE-27
#[test]
fn callers_of_an_endpoint_without_descriptors_get_reason_and_advice() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || RawEndpoint::open_with(&EndpointOptions::new().local()).expect("an endpoint");
    let mut victim = open();
    let bytes = Spans::default();
    let message = OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: false };
    // From none for the caller's socket up to all that it takes.
    let mut connected = false;
    for spare in 0.. {
        let mut caller = open();
        let to = caller.remote(&victim.address()).expect("a neighbour");
        assert_eq!(caller.send(to, &message), Err(Busy::Connecting.into()));
        within(limit_for(spare), || (0..5000).for_each(|_| _ = victim.progress(|_| ())));
        let sent = loop {
            match caller.send(to, &message) {
                Err(PostError::Busy(_)) => _ = caller.progress(|_| ()),
                sent => break sent,
            }
        };
        connected = sent.is_ok();
        if connected {
            break;
        }
        assert_eq!(sent, Err(Fault::Refused.into()));
        let why = caller.reason(to).expect("it has ended");
        assert_eq!(*why, DisconnectReason::Refused(Refusal::Resources(24)), "{spare}");
        assert!(why.to_string().contains("`ulimit -n`"), "{why}");
    }
    assert!(connected);
    // And of an endpoint that cannot be opened.
    let refused = within(limit_for(2), || RawEndpoint::open_with(&EndpointOptions::new().local()));
    let refused = refused.expect_err("it takes more").to_string();
    assert!(refused.contains("`ulimit -n`"), "{refused}");
}

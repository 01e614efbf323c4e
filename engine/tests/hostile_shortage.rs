//! A port that the system refuses what a connection takes: its program is told, and no caller is
//! blamed. A program of its own, for the limit holds for all of a process.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::Begun;
use ayre::{Mode, PeerId, SetupError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use world::World;

/// What the victim makes of its next caller while it may have only so many descriptors.
fn accept_within(world: &mut World, limit: u64) -> Result<PeerId, SetupError> {
    let whole = getrlimit(Resource::Nofile);
    let narrow = Rlimit { current: Some(limit), ..whole };
    setrlimit(Resource::Nofile, narrow).expect("a lower limit");
    let accepted = world.victim.accept();
    setrlimit(Resource::Nofile, whole).expect("the limit as it was");
    accepted
}

/// The limit that lets this process have just so many more descriptors.
fn limit_for(spare: usize) -> u64 {
    let is_free =
        |number: &u64| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err();
    (0..).filter(is_free).nth(spare).expect("numbers without end")
}

// spec: LIFE-9
#[test]
fn a_lack_of_descriptors_is_no_fault_of_a_caller() {
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
        assert!(refused > 3, "a connection takes several descriptors");
        assert_eq!(world.victim.counters().malformed(), malformed, "all have said what is right");
        // Who could not even be let in still waits.
        while world.victim.accept().is_ok() {}
        world.attacker(false);
        world.honest_round();
    }
}

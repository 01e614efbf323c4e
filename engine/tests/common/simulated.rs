//! Ports on a simulated network, and runs that a seed brings back.
use super::random::{Random, iterations};
use ayre::{Config, NetOptions, Port, Simulation};
use std::fmt::Debug;
use std::time::Duration;

/// After which nobody is waited for.
const SILENCE: Duration = Duration::from_millis(50);
/// Rounds of polls after which each port is to make progress, too: polls hear of deaths seldom.
pub const ROUNDS_PER_PROGRESS: usize = 64;

/// A network that loses, repeats, reorders and damages datagrams, and `ports` ports on it, each
/// connected with each.
pub fn bad_mesh(dice: &mut Random, seed: u64, ports: u16) -> (Simulation, Vec<Port>) {
    let loss = dice.below(8);
    let plan = format!("loss={loss}%,dup=2%,reorder=5%,corrupt=1%,jitter=20us,seed={seed}");
    let options = NetOptions::plain().silence(SILENCE).dead_after(SILENCE);
    let options = options.faults(plan.parse().expect("a plan"));
    let simulation = Simulation::with_seed(Duration::from_micros(5), seed);
    let configs = (0..ports).map(|number| Config::new().number(number).linger(Duration::ZERO));
    let ports = simulation.mesh(&options, configs).expect("all connect");
    (simulation, ports)
}

/// Says which run has failed.
#[derive(Debug)]
pub struct Named(pub u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("AYRE_SEED={} brings this back", self.0);
        }
    }
}

/// The number of rounds of a run: `usual`, unless `AYRE_TEST_ROUNDS` sets another one.
/// `scripts/pairs.sh` sets it, so that more runs take the same time.
pub fn rounds(usual: usize) -> usize {
    let asked = std::env::var("AYRE_TEST_ROUNDS").ok();
    asked.map_or(usual, |text| text.parse().expect("AYRE_TEST_ROUNDS is a number"))
}

/// Some seeds, each run twice, have the same outcome both times.
pub fn assert_repeatable<T: PartialEq + Debug>(run: impl Fn(u64) -> T) {
    let seeds = iterations(3);
    let pairs = seeds.end - seeds.start;
    for seed in seeds {
        let _named = Named(seed);
        assert_eq!(run(seed), run(seed));
    }
    eprintln!("{pairs} pairs of runs are equal");
}

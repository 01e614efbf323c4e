//! The engine on a simulated network in virtual time, all of it in one thread.
use super::{Door, Executor};
use crate::fabric::{Fabric, Traits};
use ayre::{NetOptions, Port, Simulation};
use std::cell::RefCell;
use std::time::Duration;

/// Two ports on a network that loses, repeats, reorders and damages, all by one seed. One thread
/// polls both, so a case whose calls never wait takes the same course whenever it runs: see
/// [`courses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneThread {
    /// From which everything follows.
    pub seed: u64,
}

/// How long a datagram takes, and what becomes of some.
const LATENCY: Duration = Duration::from_micros(5);
const FAULTS: &str = "loss=5%,dup=2%,reorder=5%,corrupt=1%,jitter=5us";

thread_local! {
    static SIMULATIONS: RefCell<Vec<Simulation>> = const { RefCell::new(Vec::new()) };
}

impl OneThread {
    /// As the threads of another program would, where a case is not for one thread.
    const THREADS: Executor = Executor::Simulated;

    fn config(number: u16) -> ayre::Config {
        Self::THREADS.config(number)
    }

    /// Ports of these numbers on a network of their own.
    fn simulated(&self, numbers: &[u16]) -> Vec<Port> {
        let simulation = Simulation::with_seed(LATENCY, self.seed);
        let plan = format!("{FAULTS},seed={}", self.seed).parse().expect("a plan");
        let options = NetOptions::plain().faults(plan);
        let ports = simulation.mesh(&options, numbers.iter().copied().map(Self::config));
        SIMULATIONS.with_borrow_mut(|simulations| simulations.push(simulation));
        ports.expect("they connect")
    }
}

impl Fabric for OneThread {
    type Port = Port;
    type Door = Door;

    fn traits(&self) -> Traits {
        Traits { is_one_thread: true, ..Self::THREADS.traits() }
    }

    fn open(&self, number: u16) -> Port {
        Self::THREADS.open(number)
    }

    fn pair(&self, near: u16, far: u16) -> (Port, Option<Port>) {
        let [near, far] = self.simulated(&[near, far]).try_into().expect("two ports");
        (near, Some(far))
    }

    fn listen(&self, number: u16) -> (Port, Door) {
        Self::THREADS.listen(number)
    }

    fn join(&self, door: &Door, target: &mut Port, number: u16) -> Port {
        Self::THREADS.join(door, target, number)
    }

    fn mesh(&self, members: u16) -> Vec<Port> {
        self.simulated(&(0..members).collect::<Vec<_>>())
    }

    fn loopback(&self) -> Self {
        *self
    }

    /// The network's time goes on by itself once all its ports have polled in vain.
    fn step(&self, _round: u32) {}
}

/// The course of every network that a case has opened in this thread: its fingerprint, its time,
/// and its datagrams.
pub fn courses(case: impl FnOnce()) -> Vec<(u64, Duration, u64)> {
    SIMULATIONS.with_borrow_mut(Vec::clear);
    case();
    let simulations = SIMULATIONS.take();
    let course = |one: &Simulation| (one.course(), one.now(), one.datagrams());
    simulations.iter().map(course).collect()
}

//! One target with several initiators, each in a thread of its own.
use crate::engine::Executor;
use crate::fabric::{Fabric, TARGET};
use crate::port::{Port, Region};
use crate::world::{ROUNDS, join, or_close};
use ayre::{PeerId, Rights};
use std::thread::yield_now;

/// A target and its initiators, whose numbers begin at [`FIRST`].
#[derive(Debug)]
pub struct ManyToOne<F: Fabric = Executor> {
    fabric: F,
    door: F::Door,
    /// The port in the middle.
    pub target: F::Port,
    /// The others, connected with it only.
    pub initiators: Vec<F::Port>,
}

/// A queue at its consumer, and at each of its producers.
type Produced<P> = (<P as Port>::Queue, Vec<<P as Port>::RemoteQueue>);

/// Number of the first initiator.
pub const FIRST: u16 = 4;

impl<F: Fabric> ManyToOne<F> {
    /// Opens the ports and connects every initiator with the target.
    ///
    /// # Panics
    /// With a loopback, which has one port.
    pub fn open(fabric: F, initiators: u16) -> Self {
        assert!(!fabric.traits().is_loopback, "many-to-one has several ports");
        let (mut target, door) = fabric.listen(TARGET.0);
        let numbers = FIRST..FIRST + initiators;
        let initiators = numbers.map(|number| fabric.join(&door, &mut target, number)).collect();
        Self { fabric, door, target, initiators }
    }

    /// Closes an initiator, whose connection the target has ended, and connects a new one of the
    /// same number.
    pub fn replace(&mut self, index: usize) {
        let number = FIRST + index as u16;
        self.initiators[index] = self.fabric.join(&self.door, &mut self.target, number);
    }

    /// Every initiator's number at the target.
    pub fn ids(&self) -> Vec<PeerId> {
        (0..self.initiators.len()).map(|index| PeerId(FIRST + index as u16)).collect()
    }

    /// Grants the whole region, with all rights, to every initiator.
    pub fn share(
        &mut self,
        region: &<F::Port as Port>::Region,
    ) -> Vec<<F::Port as Port>::RemoteRegion> {
        let Self { target, initiators, .. } = self;
        let share = |port: &mut F::Port| {
            let holder = PeerId(port.rank() as u16);
            let name = region.len() as u64;
            target.share(holder, region, 0..region.len(), Rights::all(), name).expect("a grant");
            port.accept_region(TARGET, name).expect("what is handed over arrives")
        };
        initiators.iter_mut().map(share).collect()
    }

    /// A queue with every initiator as a producer.
    pub fn queue(&mut self, capacity: usize) -> Produced<F::Port> {
        let Self { target, initiators, .. } = self;
        let mut queue = target.create_queue(capacity).expect("a queue");
        let share = |port: &mut F::Port| {
            let holder = PeerId(port.rank() as u16);
            target.share_queue(holder, &mut queue, 1).expect("a producer");
            port.accept_queue(TARGET, 1).expect("what is handed over arrives")
        };
        let remotes = initiators.iter_mut().map(share).collect();
        (queue, remotes)
    }

    /// Runs `work` for every initiator, with a state of its own, in a thread each, and `serve` for
    /// the target in between, until all have ended. `serve` makes the target's progress besides.
    pub fn each<S: Send, R: Send>(
        &mut self,
        states: Vec<S>,
        work: impl Fn(&mut F::Port, S) -> R + Sync,
        mut serve: impl FnMut(&mut F::Port),
    ) -> Vec<R> {
        let Self { target, initiators, fabric, .. } = self;
        std::thread::scope(|scope| {
            let work = &work;
            let start = |(port, state)| scope.spawn(move || work(port, state));
            let mut threads: Vec<_> =
                initiators.iter_mut().zip(states).map(|begun| Some(start(begun))).collect();
            let mut results: Vec<_> = threads.iter().map(|_| None).collect();
            // Whichever ends: others may wait for ever for one that has panicked.
            while results.iter().any(Option::is_none) {
                for (thread, result) in threads.iter_mut().zip(&mut results) {
                    if let Some(thread) = thread.take_if(|thread| thread.is_finished()) {
                        *result = Some(or_close(fabric, target, |_| join(thread)));
                    }
                }
                serve(target);
                target.progress();
                yield_now();
            }
            serve(target);
            results.into_iter().flatten().collect()
        })
    }

    /// Serves all ports from this thread until `attempt` gives something.
    ///
    /// # Panics
    /// Where it never does; `what` says what was waited for.
    pub fn until<T>(&mut self, what: &str, mut attempt: impl FnMut(&mut Self) -> Option<T>) -> T {
        for round in 0..ROUNDS {
            if let Some(value) = attempt(self) {
                return value;
            }
            self.target.progress();
            self.initiators.iter_mut().for_each(Port::progress);
            self.fabric.step(round);
        }
        panic!("waited in vain: {what}");
    }
}

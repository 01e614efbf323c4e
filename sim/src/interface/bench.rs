//! Operations of a model measured: one alone, and many in a row.
use crate::machine::{Course, Label, Machine, Part};
use crate::time::Time;

/// The part of an operation's time in which it waits for units that its own pieces keep.
pub const WAITING: Part = Part("waiting behind its own pieces");

/// Operations of a stream, or pieces if each has several.
const STREAM: usize = 400;
/// Operations of a stream at least: the second half of them is measured.
const LEAST: usize = 8;

/// A machine, and the items that will pass it.
#[derive(Debug)]
pub struct Setup {
    /// The units.
    pub machine: Machine,
    /// The steps of each item, in the order in which they come. All of them are there at once.
    pub items: Vec<Course>,
    /// The items that an operation consists of.
    pub pieces: usize,
    /// How many times the items come.
    pub times: usize,
}

impl Setup {
    /// Of one operation that has these pieces.
    pub fn once(machine: Machine, pieces: Vec<Course>) -> Self {
        Self::times(machine, pieces, 1)
    }

    /// Of many operations that have these pieces.
    pub fn stream(machine: Machine, pieces: Vec<Course>) -> Self {
        let times = (STREAM / pieces.len().max(1)).max(LEAST);
        Self::times(machine, pieces, times)
    }

    /// Of this number of operations that have these pieces.
    pub fn times(machine: Machine, pieces: Vec<Course>, times: usize) -> Self {
        Self { machine, pieces: pieces.len(), items: pieces, times }
    }

    /// Runs the first `most` operations. The result is when each of them has ended, and its last
    /// piece.
    fn run(&mut self, most: usize) -> Vec<(Time, usize)> {
        let all = self.items.iter().cycle().take(self.items.len() * self.times);
        let items: Vec<_> = all
            .take(most.saturating_mul(self.pieces))
            .map(|course| self.machine.add(course.clone(), [Time::ZERO]))
            .collect();
        self.machine.run();
        let ended = |item: &usize| (self.machine.passage(*item).ended, *item);
        let last = |pieces: &[usize]| pieces.iter().map(ended).max().expect("it has a piece");
        items.chunks(self.pieces).map(last).collect()
    }
}

/// The machines of an operation that is to be measured.
#[derive(Debug)]
pub struct Bench {
    /// One of it.
    pub alone: Setup,
    /// Many of it in a row.
    pub stream: Setup,
    /// The transfers that one stands for, each of the size that was asked for.
    pub transfers: u32,
}

/// An operation that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The time of one that is alone.
    pub latency: Time,
    /// The parts of that time, which sum to it exactly.
    pub parts: Vec<(Part, Time)>,
    /// Transfers per second in a stream.
    pub rate: f64,
    /// The share of the stream's time for which each unit was kept, in the order of the units.
    pub busy: Vec<(Label, f64)>,
}

impl Bench {
    /// Of an operation whose machine and pieces are the same alone and in a row.
    pub fn of(build: impl Fn() -> (Machine, Vec<Course>)) -> Self {
        let ((machine, one), (other, row)) = (build(), build());
        Self { alone: Setup::once(machine, one), stream: Setup::stream(other, row), transfers: 1 }
    }

    /// Runs both.
    ///
    /// # Panics
    /// If the parts do not sum to the whole, which is a fault of the simulator.
    pub fn measure(mut self) -> Measured {
        let (ended, last) = self.alone.run(1).pop().expect("there is one operation");
        let passage = self.alone.machine.passage(last);
        let all = passage.parts.into_iter().chain([(WAITING, passage.waited)]);
        let parts: Vec<_> = all.filter(|(_, time)| *time > Time::ZERO).collect();
        let sum = parts.iter().fold(Time::ZERO, |sum, (_, time)| sum + *time);
        assert_eq!(sum, ended, "the parts sum to the whole");
        let rate = f64::from(self.transfers) * per_second(self.stream.run(usize::MAX));
        Measured { latency: ended, parts, rate, busy: busy(&self.stream.machine) }
    }

    /// The machine of the first operations of the stream, with a record of all that they did.
    pub fn trace(mut self, operations: usize) -> Machine {
        self.stream.machine.record();
        self.stream.run(operations);
        self.stream.machine
    }
}

/// Operations per second, from when they ended. The first half fills the machine, and the second
/// half is measured from its end.
fn per_second(mut ends: Vec<(Time, usize)>) -> f64 {
    ends.sort_unstable();
    let half = ends.len() / 2;
    let span = ends[2 * half - 1].0 - ends[half - 1].0;
    half as f64 * 1e12 / span.0 as f64
}

/// The share of the whole time for which each unit was kept.
fn busy(machine: &Machine) -> Vec<(Label, f64)> {
    let whole = machine.end().0 as f64;
    let share = |unit, servers| {
        // A unit may be kept for a little longer than the last item stays.
        f64::min(machine.busy(unit).0 as f64 / f64::from(servers) / whole, 1.0)
    };
    machine.labels().map(|(unit, label, servers)| (label, share(unit, servers))).collect()
}

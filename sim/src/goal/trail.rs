//! The critical path: which step allowed which other one to begin.
use super::schedule::{Kind, Schedule};
use crate::time::Time;

/// The kind of a step of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A computation.
    Calc,
    /// The sending of a message.
    Send,
    /// A receive that finds its message there.
    Receive,
    /// The arrival of a message.
    Arrival,
}

/// A step of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it began.
    pub at: Time,
    /// Its kind.
    pub kind: StepKind,
    /// The rank at which it happens.
    pub rank: u32,
    /// The line of the operation; of an arrival that of the send.
    pub line: u32,
}

/// An activity: an operation or, with the last bit set, the arrival of its message.
pub(super) type Activity = u32;

/// No activity.
pub(super) const NONE: Activity = u32::MAX;

/// The activity of an operation, or of the arrival of its message.
pub(super) fn activity(operation: u32, arrival: bool) -> Activity {
    operation << 1 | u32::from(arrival)
}

/// For each activity when it began and which other one allowed it to begin, and for each unit the
/// activity that takes it.
#[derive(Debug)]
pub(super) struct Trail {
    begun: Vec<Time>,
    cause: Vec<Activity>,
    holders: Vec<Activity>,
}

impl Trail {
    pub(super) fn new(operations: usize, units: usize) -> Self {
        Self {
            begun: vec![Time::ZERO; 2 * operations],
            cause: vec![NONE; 2 * operations],
            holders: vec![NONE; units],
        }
    }

    /// An activity became possible through another one.
    pub(super) fn allow(&mut self, what: Activity, cause: Activity) {
        self.cause[what as usize] = cause;
    }

    /// An activity begins. If a unit became free just then, it was that which it waited for.
    pub(super) fn begin(&mut self, what: Activity, at: Time, just_freed: Option<usize>) {
        self.begun[what as usize] = at;
        if let Some(unit) = just_freed
            && self.holders[unit] != NONE
        {
            self.cause[what as usize] = self.holders[unit];
        }
    }

    /// An activity takes a unit.
    pub(super) fn hold(&mut self, unit: usize, what: Activity) {
        self.holders[unit] = what;
    }

    /// The path that ends with the activity that took a unit last.
    pub(super) fn path(&self, schedule: &Schedule, unit: usize) -> Vec<Step> {
        let mut path = Vec::new();
        let mut next = self.holders[unit];
        // A cause comes before its effect, so that the way back ends.
        while next != NONE && path.len() < self.cause.len() {
            let operation = &schedule.operations[(next >> 1) as usize];
            let arrival = next & 1 == 1;
            let (kind, rank) = match operation.kind {
                Kind::Send if arrival => (StepKind::Arrival, schedule.target(operation)),
                Kind::Send => (StepKind::Send, operation.rank),
                Kind::Receive => (StepKind::Receive, operation.rank),
                Kind::Calc => (StepKind::Calc, operation.rank),
            };
            path.push(Step { at: self.begun[next as usize], kind, rank, line: operation.line });
            next = self.cause[next as usize];
        }
        path.reverse();
        path
    }
}

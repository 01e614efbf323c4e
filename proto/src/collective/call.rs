//! The parameters of a collective that must be equal at all members, and how a member finds the
//! differing ones of another member from the signature of its portions.
//!
//! A signature is a digest of 32 bits: portions are short. So what it was made of is found by
//! trying, the likely ones first; that takes some milliseconds, once, when a group is given up.
use super::plan::Task;
use super::portion::{signature, what};
use super::{Collective, Schedule};
use crate::combine::{Combine, Number};
use core::fmt;

/// Elements of a vector that are tried.
const ELEMENTS_MAX: u64 = 16 << 10;

/// The parameters that must be equal at all members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallShape {
    /// The collective, its schedule and its root.
    pub task: Task,
    /// The operation and the type of the numbers, if any are combined.
    pub operation: Option<(Combine, Number)>,
    /// Bytes of a vector; 0 where members have blocks.
    pub bytes: u64,
}

impl CallShape {
    /// The digest of the parameters that portions carry.
    // spec: COLL-13
    pub const fn signature(&self) -> u32 {
        signature(what(self.task, self.operation), self.bytes)
    }

    /// Returns the parameters with which another member has called, given the signature and the
    /// length of its portion. Returns `None` if no candidate fits.
    // spec: COLL-19
    pub fn of_signature(self, theirs: u32, members: usize, len: usize) -> Option<Self> {
        let is_it = |call: &Self| call.signature() == theirs;
        let mut lengths = self.of_other_lengths();
        let mut roots = self.of_other_roots(members);
        let mut operations = self.of_other_operations(len as u64);
        let found = lengths.find(is_it).or_else(|| roots.find(is_it));
        found.or_else(|| operations.find(is_it)).or_else(|| {
            let mut others = Collective::ALL.into_iter().flat_map(|collective| {
                let task = Task { collective, root: 0, ..self.task };
                let call = Self { task, ..self };
                call.of_other_operations(len as u64)
                    .flat_map(move |call| call.of_other_roots(members))
            });
            others.find(is_it)
        })
    }

    fn with_schedules(self) -> impl Iterator<Item = Self> {
        let collective = self.task.collective;
        let all = Schedule::ALL.into_iter().filter(move |schedule| schedule.can(collective));
        all.map(move |schedule| Self { task: Task { schedule, ..self.task }, ..self })
    }

    /// Which schedule is the usual one depends on the length.
    fn of_other_lengths(self) -> impl Iterator<Item = Self> {
        let size = self.operation.map_or(1, |(_, number)| number.size() as u64);
        let most = if self.task.collective.has_vector() { ELEMENTS_MAX } else { 0 };
        let lengths = (0..=most).map(move |elements| Self { bytes: elements * size, ..self });
        lengths.chain([self]).flat_map(Self::with_schedules)
    }

    fn of_other_roots(self, members: usize) -> impl Iterator<Item = Self> {
        let roots = if self.task.collective.has_root() { members } else { 1 };
        (0..roots).map(move |root| Self { task: Task { root, ..self.task }, ..self })
    }

    /// Candidate calls of other operations, for a portion of `len` bytes.
    fn of_other_operations(self, len: u64) -> impl Iterator<Item = Self> {
        let collective = self.task.collective;
        let combines = collective.combines();
        let size = |(_, number): (Combine, Number)| number.size() as u64;
        let elements = self.bytes / self.operation.map_or(1, size);
        let one = [None].into_iter().take(usize::from(!combines));
        let numbers = Number::ALL.into_iter().take(if combines { Number::ALL.len() } else { 0 });
        let all = numbers.flat_map(|number| {
            let operations = Combine::ALL.into_iter().map(move |combine| (combine, number));
            operations.filter(|(combine, number)| combine.is_operation(*number)).map(Some)
        });
        let calls = one.chain(all).flat_map(move |operation| {
            let like_ours = elements * operation.map_or(1, size);
            let lengths = match collective.has_vector() {
                true => [self.bytes, len, like_ours],
                false => [0; 3],
            };
            lengths.map(|bytes| Self { operation, bytes, ..self })
        });
        calls.flat_map(Self::with_schedules)
    }
}

impl fmt::Display for CallShape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task { collective, schedule, root } = self.task;
        write!(out, "{collective:?} (")?;
        if let Some((combine, number)) = self.operation {
            write!(out, "{combine:?} of {number:?}, ")?;
        }
        if collective.has_vector() {
            write!(out, "{} bytes, ", self.bytes)?;
        }
        if collective.has_root() {
            write!(out, "root {root}, ")?;
        }
        write!(out, "schedule {schedule:?})")
    }
}

/// The mismatch between a portion and the call of the member that has taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallMismatch {
    /// This member's call.
    pub ours: CallShape,
    /// The other member's call, as far as its portion tells it.
    pub theirs: Option<CallShape>,
    /// The expected and the actual length of the portion, in bytes.
    pub bytes: [u32; 2],
}

impl fmt::Display for CallMismatch {
    // spec: COLL-19
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, theirs, bytes: [due, came] } = self;
        match theirs {
            Some(theirs) if theirs == ours => write!(
                out,
                "the same collective, {ours}, with a block of another length: {came} bytes of it \
                 came, and {due} were due"
            ),
            Some(theirs) => write!(out, "{theirs}, and this member {ours}"),
            None => write!(
                out,
                "another collective, or the same with another length, operation, type, root or \
                 schedule, and this member {ours}"
            ),
        }
    }
}

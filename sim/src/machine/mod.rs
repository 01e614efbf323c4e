//! Machines made of units that serve items, in simulated time.
//!
//! A *unit* is a part of a machine that serves one item at a time: a processor, a bus, a stage of
//! a network interface, a link. An *item* is a command, packet or message on its way, and its
//! *course* is a list of steps. A step names a unit, the time for which it keeps the unit, and the
//! time until the item goes on. These differ: the head of a packet goes on while its body still
//! passes.
//!
//! ```text
//!   course:  processor ----> bridge ----> unit ----> link ----> ...
//!                 hold |<--------->|
//!              latency |<-->|          the next step begins here
//! ```
//!
//! Items at a busy unit wait in order of arrival. So latency is the sum of the steps of an item
//! alone, and the rate of a stream of items follows from the unit that is held longest. Neither is
//! an input.
//!
//! Each step belongs to a [`Part`] of the whole time. The parts of an item, and its waits, sum to
//! its time exactly.
mod run;

use crate::calendar::Calendar;
use crate::time::Time;
use std::collections::VecDeque;

pub use run::{Passage, visits};

/// A unit of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitId(u32);

/// A part of the time of an item, by which its breakdown is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(pub &'static str);

/// A step of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The unit that serves it; none if it only takes time.
    pub unit: Option<UnitId>,
    /// The time for which the unit is kept.
    pub hold: Time,
    /// The time until the item goes on.
    pub latency: Time,
    /// The part of the whole time that this step belongs to.
    pub part: Part,
}

impl Step {
    /// A step that takes time and no unit.
    pub const fn delay(part: Part, latency: Time) -> Self {
        Self { unit: None, hold: Time::ZERO, latency, part }
    }

    /// A step that keeps its unit as long as the item stays.
    pub const fn serve(part: Part, unit: UnitId, time: Time) -> Self {
        Self { unit: Some(unit), hold: time, latency: time, part }
    }

    /// A step whose unit is kept for another time than the item stays.
    pub const fn pipelined(part: Part, unit: UnitId, hold: Time, latency: Time) -> Self {
        Self { unit: Some(unit), hold, latency, part }
    }
}

/// The steps of an item, in order.
pub type Course = Vec<Step>;

/// A unit, the items that it serves, and those that wait.
#[derive(Debug)]
struct Unit {
    /// Items that it can serve at once.
    servers: u32,
    serving: u32,
    waiting: VecDeque<u32>,
    /// The time for which it served, summed over its servers.
    busy: Time,
}

/// An item on its way.
#[derive(Debug)]
struct Item {
    /// Its course among all courses.
    course: u32,
    /// The step that it is at.
    step: u32,
    begun: Time,
    /// When it came to its step.
    came: Time,
    /// The time that it has waited for units.
    waited: Time,
    ended: Option<Time>,
}

/// A machine: its units, and the items in it.
#[derive(Debug)]
pub struct Machine {
    units: Vec<Unit>,
    courses: Vec<Course>,
    items: Vec<Item>,
    calendar: Calendar,
    /// Items that came to a unit at the time that is being handled.
    arrived: Vec<u32>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            units: Vec::new(),
            courses: Vec::new(),
            items: Vec::new(),
            calendar: Calendar::new(Time::from_nanos(50)),
            arrived: Vec::new(),
        }
    }
}

impl Machine {
    /// Adds a unit that serves one item at a time.
    pub fn unit(&mut self) -> UnitId {
        self.units_of(1)
    }

    /// Adds a unit that serves `servers` items at a time, such as reads with tags.
    pub fn units_of(&mut self, servers: u32) -> UnitId {
        let unit = Unit { servers, serving: 0, waiting: VecDeque::new(), busy: Time::ZERO };
        self.units.push(unit);
        UnitId(self.units.len() as u32 - 1)
    }

    /// The time for which a unit has served so far.
    pub fn busy(&self, unit: UnitId) -> Time {
        self.units[unit.0 as usize].busy
    }
}

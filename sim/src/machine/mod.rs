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
//! A unit may have several servers. So it stands for anything of which there is a number: the tags
//! of reads, the places of a buffer, the credits of a link. An item takes some of them at one step.
//! It gives them back at a later one, or another item does.
//!
//! ```text
//!   course:  take a tag ----> bus ----> memory ----> give the tag back
//!            '------------ the tag is kept -------------'
//! ```
//!
//! Where steps take no time, a time has rounds. First, servers that fall free go to those that wait
//! for them. Then the items that have come are handled in the order in which they were added. All
//! that follows at once is a matter of the next round.
//!
//! Each step belongs to a [`Part`] of the whole time. The parts of an item, and its waits, sum to
//! its time exactly.
mod rate;
mod record;
mod run;

use crate::calendar::Calendar;
use crate::time::Time;
use std::collections::VecDeque;

pub use record::{Label, Stay};
pub use run::{Passage, visits};

/// A unit of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitId(u32);

/// A part of the time of an item, by which its breakdown is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(pub &'static str);

/// For how long a step keeps its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// For a time.
    For(Time),
    /// Until a later step gives it back, of this item or of another one.
    On,
    /// It is given back.
    End,
    /// It is given back when this time has passed, while the item goes on at once.
    EndAfter(Time),
}

/// A step of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The unit that serves it; none if it only takes time.
    pub unit: Option<UnitId>,
    /// How many of the unit's servers it keeps or gives back.
    pub servers: u32,
    /// How long it keeps them.
    pub hold: Hold,
    /// The time until the item goes on.
    pub latency: Time,
    /// The part of the whole time that this step belongs to.
    pub part: Part,
}

impl Step {
    /// A step that takes time and no unit.
    pub const fn delay(part: Part, latency: Time) -> Self {
        Self { unit: None, servers: 0, hold: Hold::For(Time::ZERO), latency, part }
    }

    /// A step that keeps its unit as long as the item stays.
    pub const fn serve(part: Part, unit: UnitId, time: Time) -> Self {
        Self::pipelined(part, unit, time, time)
    }

    /// A step whose unit is kept for another time than the item stays.
    pub const fn pipelined(part: Part, unit: UnitId, hold: Time, latency: Time) -> Self {
        Self { unit: Some(unit), servers: 1, hold: Hold::For(hold), latency, part }
    }

    /// A step that waits for `servers` of a unit, and keeps them.
    pub const fn take(part: Part, unit: UnitId, servers: u32) -> Self {
        Self { unit: Some(unit), servers, hold: Hold::On, latency: Time::ZERO, part }
    }

    /// A step that gives back `servers` of a unit.
    pub const fn give(part: Part, unit: UnitId, servers: u32) -> Self {
        Self { unit: Some(unit), servers, hold: Hold::End, latency: Time::ZERO, part }
    }

    /// A step that gives back `servers` of a unit when `time` has passed. The item goes on at once:
    /// the head of a packet leaves a unit that stays busy with its tail.
    pub const fn give_after(part: Part, unit: UnitId, servers: u32, time: Time) -> Self {
        Self { unit: Some(unit), servers, hold: Hold::EndAfter(time), latency: Time::ZERO, part }
    }
}

/// The steps of an item, in order.
pub type Course = Vec<Step>;

/// A unit, the items that it serves, and those that wait.
#[derive(Debug, Default)]
struct Unit {
    /// Servers, and those that are kept.
    servers: u32,
    serving: u32,
    waiting: VecDeque<u32>,
    /// The time for which servers were kept up to `since`, summed over them.
    busy: Time,
    /// When `serving` changed last.
    since: Time,
    label: Label,
}

impl Unit {
    /// More servers are kept, or fewer.
    fn change(&mut self, serving: u32, now: Time) {
        self.busy += Time((now - self.since).0 * u64::from(self.serving));
        self.since = now;
        self.serving = serving;
    }
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
    /// All stays, if they are kept.
    stays: Option<Vec<Stay>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            units: Vec::new(),
            courses: Vec::new(),
            items: Vec::new(),
            calendar: Calendar::new(Time::from_nanos(50)),
            arrived: Vec::new(),
            stays: None,
        }
    }
}

impl Machine {
    /// Adds a unit that serves one item at a time.
    pub fn unit(&mut self) -> UnitId {
        self.units_of(1)
    }

    /// Adds a unit of `servers` servers: it serves as many items at a time, or is a number of
    /// things to take and give back.
    pub fn units_of(&mut self, servers: u32) -> UnitId {
        self.units.push(Unit { servers, ..Unit::default() });
        UnitId(self.units.len() as u32 - 1)
    }

    /// The time for which a unit has served, summed over its servers, up to the last change.
    pub fn busy(&self, unit: UnitId) -> Time {
        self.units[unit.0 as usize].busy
    }

    /// When the last item has ended.
    pub fn end(&self) -> Time {
        self.items.iter().filter_map(|item| item.ended).max().unwrap_or_default()
    }

    /// The servers of a unit that are kept.
    pub fn kept(&self, unit: UnitId) -> u32 {
        self.units[unit.0 as usize].serving
    }
}

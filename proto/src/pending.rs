//! The operations that an initiator still waits for on a mediated connection.
//!
//! Commands are numbered from one; the target executes them in order and publishes how many it has
//! executed. An operation (one or more consecutive commands) has ended when that count reaches its
//! last command; its answers have arrived before.
use crate::alu::Fetched;
pub(crate) use crate::execute::Report;
use crate::fault::{Fault, Status};
use crate::lane::Malformed;
use crate::limits::PENDING_MAX;
use crate::notify::Classes;
use crate::units::Ticket;

/// An operation under way, and how it has gone so far.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// The contents of its notifications.
    pub report: Report,
    /// First of its commands.
    pub first: u64,
    /// Last of its commands; its ticket.
    pub last: u64,
    /// First fault of its commands, or what its atomic said.
    pub status: Status,
    /// Result of a fetching atomic.
    pub value: u64,
}

impl Outstanding {
    /// Names the operation.
    pub const fn ticket(&self) -> Ticket {
        Ticket(self.last)
    }
}

/// The operations under way on one connection, oldest first.
#[derive(Debug)]
pub struct Pending {
    ring: [Option<Outstanding>; PENDING_MAX],
    oldest: usize,
    len: usize,
    posted: u64,
    done: u64,
}

impl Default for Pending {
    fn default() -> Self {
        Self::new()
    }
}

impl Pending {
    /// Nothing under way.
    pub const fn new() -> Self {
        Self { ring: [None; PENDING_MAX], oldest: 0, len: 0, posted: 0, done: 0 }
    }

    /// Invariants that hold between two steps, for all input of the target.
    fn check(&self) {
        debug_assert!(self.len <= PENDING_MAX, "no more is under way than the table holds");
        debug_assert!(self.done <= self.posted, "only what was posted is done");
        let at = |ahead: usize| self.ring[(self.oldest + ahead) % PENDING_MAX].as_ref();
        if let Some(oldest) = at(0) {
            debug_assert!(self.len > 0, "what is under way was counted");
            debug_assert!(oldest.first <= oldest.last, "an operation has a command");
        }
        if self.len > 0 {
            let newest = at(self.len - 1).map(|newest| newest.last);
            debug_assert!(newest == Some(self.posted), "the last command is the newest one's");
        }
        if let (Some(oldest), Some(next)) = (at(0), at(1)) {
            let is_alone = self.len == 1;
            debug_assert!(is_alone || next.first == oldest.last + 1, "commands have no gaps");
        }
    }

    /// Whether one more operation may begin.
    pub const fn has_room(&self) -> bool {
        self.len < PENDING_MAX
    }

    /// The number of further operations that may begin.
    pub const fn room(&self) -> usize {
        PENDING_MAX - self.len
    }

    /// Commands begun in all.
    #[inline]
    pub const fn posted(&self) -> u64 {
        self.posted
    }

    /// Commands that the target has said to be executed.
    #[inline]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Whether nothing is under way.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Begins an operation of `commands` commands, fewer than 2^32, and says its place, under which
    /// the engine keeps what belongs to it. The caller has made sure of room.
    // spec: POST-6
    pub fn submit(&mut self, report: Report, commands: u64) -> (usize, Ticket) {
        assert!(self.has_room(), "an operation begins only where there is room");
        assert!(commands > 0, "an operation has at least one command");
        self.check();
        let first = self.posted + 1;
        self.posted += commands;
        let place = (self.oldest + self.len) % PENDING_MAX;
        let (last, status) = (self.posted, Status::Ok);
        self.ring[place] = Some(Outstanding { report, first, last, status, value: 0 });
        self.len += 1;
        self.check();
        (place, Ticket(last))
    }

    /// Ends the newest operation earlier: its last commands, `left` of them, are never pushed. Of
    /// its notifications it raises those of these classes.
    pub fn cut(&mut self, left: u64, raised: Classes) {
        self.check();
        let newest = (self.oldest + self.len + PENDING_MAX - 1) % PENDING_MAX;
        let Some(outstanding) = self.ring[newest].as_mut() else { return };
        assert!(left <= outstanding.last - outstanding.first, "its first command was pushed");
        outstanding.last -= left;
        outstanding.report.classes &= raised;
        self.posted -= left;
        self.check();
    }

    /// Finds the operation that a response's command number belongs to.
    // spec: LIM-3
    pub fn find(&self, number: u32) -> Option<(usize, &Outstanding)> {
        (0..self.len).map(|i| (self.oldest + i) % PENDING_MAX).find_map(|place| {
            let outstanding = self.ring[place].as_ref()?;
            let distance = number.wrapping_sub(outstanding.first as u32);
            let commands = outstanding.last - outstanding.first;
            (u64::from(distance) <= commands).then_some((place, outstanding))
        })
    }

    /// A command of the operation at `place` faulted; the first fault counts.
    // spec: ERR-4
    pub fn on_fault(&mut self, place: usize, fault: Fault) {
        if let Some(outstanding) = self.ring[place].as_mut()
            && outstanding.status.fault().is_none()
        {
            outstanding.status = Status::Fault(fault);
        }
    }

    /// A fetching atomic's result arrived.
    pub fn on_fetched(&mut self, place: usize, fetched: Fetched) {
        if let Some(outstanding) = self.ring[place].as_mut()
            && outstanding.status.fault().is_none()
        {
            outstanding.value = fetched.value;
            outstanding.status = if fetched.success { Status::Ok } else { Status::Declined };
        }
    }

    /// The target says how many commands it has executed in all.
    // spec: LANE-10
    pub const fn on_done(&mut self, done: u64) -> Result<(), Malformed> {
        if done < self.done || done > self.posted {
            return Err(Malformed);
        }
        self.done = done;
        Ok(())
    }

    /// The oldest operation if it has ended, with its place.
    pub fn pop(&mut self) -> Option<(usize, Outstanding)> {
        let place = self.oldest;
        if self.ring[place].as_ref()?.last > self.done {
            return None;
        }
        self.take_oldest()
    }

    /// Ends the oldest operation with a fault, because its peer is gone.
    pub fn abandon(&mut self, fault: Fault) -> Option<(usize, Outstanding)> {
        let (place, mut outstanding) = self.take_oldest()?;
        outstanding.status = Status::Fault(fault);
        Some((place, outstanding))
    }

    fn take_oldest(&mut self) -> Option<(usize, Outstanding)> {
        let place = self.oldest;
        let outstanding = self.ring[place].take()?;
        self.oldest = (self.oldest + 1) % PENDING_MAX;
        self.len -= 1;
        self.check();
        Some((place, outstanding))
    }
}

//! Looks: when a host has looked at what came, and so what part of a round trip may be its own.
//!
//! A program takes in what has come when it polls, and the system may run others in between. A
//! frame that is found then has come at some time since the last poll that left nothing. And a
//! frame that was stamped just before a gap may have left the host only at its end.
//!
//! ```text
//!   look, all taken        stamp          gap             look
//!   |------------------------|.............................|
//!                            '-- may have left up to here -'
//!   '-- what is found now has come at some time in between -'
//! ```
//!
//! How long exactly, only the network knows. A round trip less all of it is the least that the
//! network has taken, and congestion control goes by that.

/// Nanoseconds in the unit by which frames tell of this.
pub const UNIT: u64 = 1 << 15;
/// The largest number of units: this many, or more. Then nobody can say which part was the
/// network's.
pub const UNITS_MAX: u8 = u8::MAX;
/// Gaps that are remembered.
const GAPS: usize = 8;

/// The looks of one host, by its own clock.
#[derive(Clone, Debug)]
pub struct Looks {
    /// When it looked last, and when it did so last and took everything there was.
    now: u64,
    emptied: u64,
    /// Beginnings and ends of the last long times between two looks, the next one to be replaced.
    gaps: [(u64, u64); GAPS],
    next: usize,
}

impl Looks {
    /// Of a host that looks all the time: now is the last look.
    pub const fn all_the_time(now: u64) -> Self {
        Self { now, emptied: now, gaps: [(0, 0); GAPS], next: 0 }
    }

    /// It looks.
    #[inline]
    pub const fn look(&mut self, now: u64) {
        if now.saturating_sub(self.now) >= UNIT {
            self.gaps[self.next] = (self.now, now);
            self.next = (self.next + 1) % GAPS;
        }
        self.now = now;
    }

    /// This look has taken everything there was.
    #[inline]
    pub const fn emptied(&mut self) {
        self.emptied = self.now;
    }

    /// When it looked last.
    #[inline]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// For how long what this look finds may have waited for it, in whole units, none beyond the
    /// most. Asked before the look says that it has taken everything.
    // spec: RTT-7
    #[inline]
    pub const fn late(&self) -> u8 {
        let units = self.now.saturating_sub(self.emptied) / UNIT;
        if units < UNITS_MAX as u64 { units as u8 } else { UNITS_MAX }
    }

    /// The part of the round trip from this time until now that may be this host's own.
    // spec: RTT-8
    pub fn own_share(&self, since: u64) -> u64 {
        let is_in = |gap: &&(u64, u64)| gap.0 <= since && since < gap.1;
        let left_late = self.gaps.iter().find(is_in).map_or(0, |gap| gap.1 - since);
        left_late.saturating_add(self.now.saturating_sub(self.emptied))
    }
}

//! Warm reset: both ends of a link find out where their channels stand, and go on from there.
//!
//! ```text
//!   forgets what it kept before its turn
//!     | resync, round n: ack, limit, sack                                |
//!     |----------------------------------------------------------------->| sends again what is
//!     |                   answer to round n: ack, limit, sack            | not acknowledged here
//!     |<-----------------------------------------------------------------|
//!   sends again what is not acknowledged here
//! ```
//!
//! All that the asking end has said of frames before their turn is void from the request on. Frames
//! of before that may still come after it: they are older by their packet number.
use super::frame::{Flags, Header};
use super::precedes;

/// The meaning of a resync for this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The other side has forgotten: a new round of its.
    Asked,
    /// That round has come before.
    Again,
    /// The answer that this end waits for.
    Answered,
    /// It is of a round that is over, or it comes too soon.
    Stale,
}

/// Rounds of both sides.
#[derive(Clone, Debug)]
pub(super) struct Resync {
    /// This side's, and whether its answer is waited for.
    round: u32,
    is_open: bool,
    asked_at: Option<u64>,
    asked: u32,
    /// Most nanoseconds between two requests.
    most: u64,
    /// The other side's newest one, and when it came.
    theirs: u32,
    at: Option<u64>,
    /// Packets before this one tell nothing valid of frames before their turn.
    fence: u64,
}

impl Resync {
    pub(super) const fn new(most: u64) -> Self {
        let (round, is_open, asked_at, asked) = (0, false, None, 0);
        Self { round, is_open, asked_at, asked, most, theirs: 0, at: None, fence: 0 }
    }

    /// Begins a round. Each time that this end forgets something there is a new one.
    pub(super) const fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
        (self.is_open, self.asked_at, self.asked) = (true, None, 0);
        self.check();
    }

    /// Asserts what holds between two steps, whatever was asked.
    const fn check(&self) {
        let is_asked = self.asked > 0;
        debug_assert!(is_asked == self.asked_at.is_some(), "what was asked was so at a time");
        let is_old = self.theirs == 0 && self.fence == 0;
        debug_assert!(self.at.is_some() || is_old, "a fence is that of a round");
    }

    /// Whether this end waits for an answer.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The round to be asked for now, and taken as asked for.
    // spec: LINK-22
    pub(super) fn due(&mut self, now: u64, timeout: u64) -> Option<u32> {
        if self.next(timeout)? > now {
            return None;
        }
        self.asked_at = Some(now);
        self.asked = self.asked.saturating_add(1);
        assert!(self.is_open, "only a round that is open is asked for");
        self.check();
        Some(self.round)
    }

    /// When [`Resync::due`] has something to do next.
    pub(super) fn next(&self, timeout: u64) -> Option<u64> {
        let doubled = timeout.saturating_mul(1 << self.asked.saturating_sub(1).min(31));
        let interval = doubled.min(self.most);
        self.is_open.then(|| self.asked_at.map_or(0, |at| at.saturating_add(interval)))
    }

    /// Returns the meaning of a resync that has come. New rounds are taken a timeout apart, so that
    /// they are no lever; one that comes sooner is asked for again.
    // spec: LINK-22, LINK-23
    pub(super) fn look(&self, header: &Header, now: u64, timeout: u64) -> Call {
        if header.flags.contains(Flags::ANSWER) {
            let is_awaited = self.is_open && header.seq == self.round;
            return if is_awaited { Call::Answered } else { Call::Stale };
        }
        let is_soon = self.at.is_some_and(|at| now < at.saturating_add(timeout));
        match header.seq {
            seq if seq == self.theirs => Call::Again,
            seq if precedes(seq, self.theirs) || is_soon => Call::Stale,
            _ => Call::Asked,
        }
    }

    /// The resync that was looked at has been carried out.
    pub(super) const fn done(&mut self, call: Call, header: &Header, now: u64) {
        match call {
            Call::Asked => {
                (self.theirs, self.at, self.fence) = (header.seq, Some(now), header.packet);
            }
            Call::Answered => self.is_open = false,
            Call::Again | Call::Stale => {}
        }
        self.check();
    }

    /// Whether what a packet says of frames before their turn holds.
    pub(super) const fn holds(&self, packet: u64) -> bool {
        packet >= self.fence
    }
}

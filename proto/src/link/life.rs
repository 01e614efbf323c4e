//! Life and end of a link: whether the other side is still there, and how a link is left.
//!
//! ```text
//!                       close
//!           open ----------------> closing --- answered, or told often enough --> closed: local
//!            |
//!            +-- the other side closes ---------------------------------------> closed: peer
//!            +-- nothing heard for the dead time -------------------------------> closed: silent
//!            +-- nothing heard for the silence, and its port is closed ----> closed: port closed
//!            +-- a reset, and nothing heard for a while ------------------------> closed: reset
//!            +-- another one opens in its name, and nothing heard ----------> closed: restarted
//!            '-- data does not arrive for the dead time, though it is heard -> closed: no data
//! ```
//!
//! There are two times. After the *silence* the other side is not heard, which may have many
//! causes: its process is stopped, its host sleeps or moves, a cable is pulled. Nothing is ended by
//! that. After the *dead time* it is given up.
//!
//! A reset is not believed, because an end cannot know who has sent it: it is a reason to look more
//! closely. An open of the other side after a restart is a reason, too. So is an end that has heard
//! nothing yet: it opens, and the other side has no link before it hears of it. That its port is
//! closed, anybody can say as well: it counts only while the other side itself says nothing.

use crate::fault::Fault;

/// When a link is taken for dead, and how it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Nanoseconds without a sign of life after which the other side is not heard.
    pub silence: u64,
    /// Nanoseconds without a sign of life after which a link is dead, and for which data may be
    /// outstanding although there are some. No less than the silence.
    pub dead_after: u64,
    /// Times that the other side is told that this one leaves.
    pub closes: u32,
}

impl Config {
    /// For hosts of one rack.
    ///
    /// Three seconds are longer than a busy host is held up, and than a network takes to find
    /// another path. A minute is longer than a process is stopped in a debugger, and than a virtual
    /// machine takes to move. Five times are enough where every second frame is lost.
    pub const RACK: Self = Self { silence: 3_000_000_000, dead_after: 60_000_000_000, closes: 5 };

    /// Between a sign of life and a probe while nothing is wrong.
    const fn interval(&self) -> u64 {
        self.silence / 4
    }

    /// Between two probes at most while one is not answered, and between two requests.
    pub(super) const fn quick(&self) -> u64 {
        self.silence / 32
    }
}

/// Whether there is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is.
    Open,
    /// This side leaves, and has told so.
    Closing,
    /// There is none any more.
    Closed(Why),
}

/// Why a link has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// This side has left.
    Local,
    /// The other side has left.
    Peer,
    /// Nothing was heard for the dead time.
    Silent,
    /// Nothing was heard for the silence, and its host says that its port is closed.
    PortClosed,
    /// Something was heard, and what was sent did not arrive for the dead time.
    NoData,
    /// The other side seems to know nothing of it any more, and was silent.
    Reset,
    /// The other side was restarted, and asks for another link.
    Restarted,
}

impl Why {
    /// How operations end that were under way.
    // spec: LIFE-11, LIFE-22
    pub const fn fault(self) -> Fault {
        match self {
            Self::Restarted => Fault::PeerRestarted,
            Self::Local
            | Self::Peer
            | Self::Silent
            | Self::PortClosed
            | Self::NoData
            | Self::Reset => Fault::PeerDead,
        }
    }
}

/// The frame that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Probe,
    Close,
}

/// Probes that were answered so after which the other side's port is taken for closed. More would
/// take long: hosts give such answers once a second, for all who ask them together.
const REFUSALS: u32 = 2;

/// A closer look.
#[derive(Clone, Copy, Debug)]
struct Look {
    since: u64,
    /// Something was the reason that is believed as far as a reset is.
    hinted: bool,
    /// Another incarnation has asked for a link.
    is_restart: bool,
}

/// The life of one end.
#[derive(Clone, Debug)]
pub(super) struct Life {
    config: Config,
    state: State,
    /// When the other side was heard last, or else when the end was made.
    heard_at: u64,
    look: Option<Look>,
    /// When a probe, or a close, was sent last.
    told_at: Option<u64>,
    /// How many in a row without an answer.
    told: u32,
    /// Probes since something was heard that found the other side's port closed.
    refusals: u32,
    /// For how long since then this end was held up itself. Both hold from the first probe on.
    held_up: u64,
}

impl Life {
    /// For which it holds that the other side was there, and between two probes.
    pub(super) const fn interval(&self) -> u64 {
        self.config.interval()
    }

    pub(super) const fn new(config: Config, now: u64) -> Self {
        assert!(config.silence >= 32 && config.closes > 0, "there is time, and something to say");
        assert!(config.dead_after >= config.silence, "who is dead is not heard");
        let look = Some(Look { since: now, hinted: false, is_restart: false });
        let (state, told_at, told) = (State::Open, None, 0);
        Self { config, state, heard_at: now, look, told_at, told, refusals: 0, held_up: 0 }
    }

    /// Asserts what holds between two steps, whatever was said.
    const fn check(&self) {
        debug_assert!(self.told == 0 || self.told_at.is_some(), "what was told was so at a time");
        let is_leaving = matches!(self.state, State::Closing);
        debug_assert!(
            !is_leaving || self.told <= self.config.closes,
            "who leaves says so, and goes"
        );
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(super) const fn heard_at(&self) -> u64 {
        self.heard_at
    }

    /// A frame of the link has come.
    // spec: LINK-17
    pub(super) const fn on_heard(&mut self, now: u64) {
        self.heard_at = now;
        if self.is_open() {
            self.look = None;
            self.told = 0;
        }
        self.check();
    }

    /// Whether nothing was heard for the silence.
    pub(super) const fn is_unheard(&self, now: u64) -> bool {
        self.is_open() && now >= self.after(self.config.silence)
    }

    /// So long after something was heard, as far as this end has listened.
    const fn after(&self, time: u64) -> u64 {
        self.heard_at.saturating_add(time).saturating_add(self.held_up)
    }

    /// The other side's port is closed, it was said until this probe.
    // spec: LINK-29
    pub(super) const fn on_port_closed(&mut self) {
        // What was said before the first one may have been long ago.
        if self.told > 1 {
            self.refusals = self.refusals.saturating_add(1);
        }
    }

    /// Data that was sent has not arrived for this time.
    // spec: LINK-30
    pub(super) const fn on_no_data(&mut self, lasts: u64) {
        if self.is_open() && lasts >= self.config.dead_after {
            self.state = State::Closed(Why::NoData);
        }
    }

    /// A reset of this link has come.
    // spec: LINK-19, LINK-20
    pub(super) fn on_hint(&mut self, now: u64) {
        match self.state {
            State::Open => self.look_closely(now),
            // Whom this side has told to leave has gone.
            State::Closing => self.state = State::Closed(Why::Local),
            _ => {}
        }
    }

    fn look_closely(&mut self, now: u64) {
        let is_restart = self.look.is_some_and(|look| look.is_restart);
        if self.look.is_none_or(|look| !look.hinted) {
            self.look = Some(Look { since: now, hinted: true, is_restart });
        }
    }

    /// Another incarnation of the other side has asked for a link. Where that is not believed, it
    /// may say why the link has ended, but not that it ends.
    // spec: LINK-25
    pub(super) fn on_restart(&mut self, is_believed: bool, now: u64) {
        if is_believed {
            self.look_closely(now);
        }
        self.look.get_or_insert(Look { since: now, hinted: false, is_restart: true }).is_restart =
            true;
    }

    /// This side leaves.
    pub(super) const fn close(&mut self) {
        if self.is_open() {
            (self.state, self.told_at, self.told) = (State::Closing, None, 0);
        }
        self.check();
    }

    /// The other side leaves, or answers that it has heard that this one does.
    // spec: LINK-20
    pub(super) const fn on_close(&mut self) {
        self.state = State::Closed(match self.state {
            State::Open => Why::Peer,
            State::Closing => Why::Local,
            State::Closed(why) => why,
        });
    }

    /// The frame that is to be sent now, which counts as sent. Here a link dies.
    // spec: LINK-17, LINK-18, LINK-19, LINK-20, LINK-29
    pub(super) fn due(&mut self, now: u64, timeout: u64) -> Due {
        let next = self.next(timeout);
        if now < next {
            return Due::Nothing;
        }
        if self.told == 0 {
            (self.refusals, self.held_up) = (0, 0);
        }
        self.excuse(now - next);
        match self.state {
            State::Open if now >= self.dies_at() => {
                self.state = State::Closed(match self.look {
                    Some(Look { is_restart: true, .. }) => Why::Restarted,
                    Some(Look { hinted: true, .. }) => Why::Reset,
                    _ if self.refusals >= REFUSALS => Why::PortClosed,
                    _ => Why::Silent,
                });
                Due::Nothing
            }
            State::Closing if self.told >= self.config.closes => {
                self.state = State::Closed(Why::Local);
                Due::Nothing
            }
            State::Open => self.told(now, Due::Probe),
            State::Closing => self.told(now, Due::Close),
            State::Closed(_) => Due::Nothing,
        }
    }

    /// The step that is due comes late by this time. An end that was stopped itself has not
    /// listened meanwhile.
    // spec: LINK-31
    fn excuse(&mut self, late: u64) {
        if late > self.config.interval() {
            self.held_up = self.held_up.saturating_add(late);
            self.look.iter_mut().for_each(|look| look.since = look.since.saturating_add(late));
        }
    }

    fn told(&mut self, now: u64, due: Due) -> Due {
        assert!(!matches!(self.state, State::Closed(_)), "who has gone says nothing more");
        self.told_at = Some(now);
        self.told = self.told.saturating_add(1);
        self.check();
        due
    }

    /// When [`Life::due`] has something to do next.
    pub(super) fn next(&self, timeout: u64) -> u64 {
        match self.state {
            State::Open => self.next_probe(timeout).min(self.dies_at()),
            State::Closing => self.after_last(timeout).unwrap_or(0),
            State::Closed(_) => u64::MAX,
        }
    }

    fn next_probe(&self, timeout: u64) -> u64 {
        if let Some(Look { since, .. }) = self.look {
            // A flood of hints is looked into no more often than one.
            return self.after_last(timeout).map_or(since, |next| next.max(since));
        }
        // What is lost must not be missed for a quarter of the silence: three would be all.
        let again = (self.told > 0).then(|| self.after_last(timeout)).flatten();
        again.unwrap_or_else(|| self.heard_at.saturating_add(self.config.interval()))
    }

    /// The timeout after what was sent last, doubled for each that was not answered.
    fn after_last(&self, timeout: u64) -> Option<u64> {
        let doubled = timeout.saturating_mul(1 << self.told.saturating_sub(1).min(31));
        Some(self.told_at?.saturating_add(doubled.min(self.config.quick())))
    }

    fn dies_at(&self) -> u64 {
        let Config { silence, dead_after, .. } = self.config;
        let looked = |look: Look| look.since.saturating_add(self.config.interval());
        match self.look {
            Some(look) if look.hinted => self.after(dead_after).min(looked(look)),
            Some(look) if look.is_restart => self.after(silence).max(looked(look)),
            _ if self.refusals >= REFUSALS => self.after(silence),
            _ => self.after(dead_after),
        }
    }
}

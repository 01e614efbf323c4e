//! Life and end of a link: whether the other side is still there, and how a link is left.
//!
//! ```text
//!                       close
//!           open ----------------> closing --- answered, or told often enough --> closed: local
//!            |
//!            +-- the other side closes ---------------------------------------> closed: peer
//!            +-- silence ------------------------------------------------------> closed: silent
//!            +-- a reset, and silence for a while ------------------------------> closed: reset
//!            '-- another one opens in its name, and silence for a while ---> closed: restarted
//! ```
//!
//! A reset is not believed, because an end cannot know who has sent it: it is a reason to look
//! more closely. The same goes for an open of the other side, started anew, and for an end that has
//! heard nothing yet: it opens, and the other side has no link before it hears of it.

/// When a link is taken for dead, and how it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Nanoseconds without a sign of life after which a link is dead.
    pub silence: u64,
    /// Times that the other side is told that this one leaves.
    pub closes: u32,
}

impl Config {
    /// For hosts of one rack.
    ///
    /// Three seconds are longer than a host is held up by anything but its end, and than a network
    /// takes to find another way. Five times are enough where every second frame is lost.
    pub const RACK: Self = Self { silence: 3_000_000_000, closes: 5 };

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
    /// Nothing was heard for too long.
    Silent,
    /// The other side seems to know nothing of it any more, and was silent.
    Reset,
    /// The other side was started anew, and asks for another link.
    Restarted,
}

/// What is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Probe,
    Close,
}

/// A closer look.
#[derive(Clone, Copy, Debug)]
struct Look {
    since: u64,
    /// Something was the reason that is believed as far as a reset is.
    hinted: bool,
    /// Another incarnation has asked for a link.
    anew: bool,
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
}

impl Life {
    /// For which it holds that the other side was there, and between two probes.
    pub(super) const fn interval(&self) -> u64 {
        self.config.interval()
    }

    pub(super) const fn new(config: Config, now: u64) -> Self {
        assert!(config.silence >= 32 && config.closes > 0, "there is time, and something to say");
        let look = Some(Look { since: now, hinted: false, anew: false });
        Self { config, state: State::Open, heard_at: now, look, told_at: None, told: 0 }
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
        let anew = self.look.is_some_and(|look| look.anew);
        if self.look.is_none_or(|look| !look.hinted) {
            self.look = Some(Look { since: now, hinted: true, anew });
        }
    }

    /// Another incarnation of the other side has asked for a link. Where that is not believed, it
    /// may say why the link has ended, but not that it ends.
    // spec: LINK-25
    pub(super) fn on_anew(&mut self, is_believed: bool, now: u64) {
        if is_believed {
            self.look_closely(now);
        }
        self.look.get_or_insert(Look { since: now, hinted: false, anew: true }).anew = true;
    }

    /// This side leaves.
    pub(super) const fn close(&mut self) {
        if self.is_open() {
            (self.state, self.told_at, self.told) = (State::Closing, None, 0);
        }
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

    /// What is to be sent now, and taken as sent. Here a link dies.
    // spec: LINK-17, LINK-18, LINK-19, LINK-20
    pub(super) fn due(&mut self, now: u64, timeout: u64) -> Due {
        if now < self.next(timeout) {
            return Due::Nothing;
        }
        match self.state {
            State::Open if now >= self.dies_at() => {
                self.state = State::Closed(match self.look {
                    Some(Look { anew: true, .. }) => Why::Restarted,
                    Some(Look { hinted: true, .. }) => Why::Reset,
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

    fn told(&mut self, now: u64, due: Due) -> Due {
        self.told_at = Some(now);
        self.told = self.told.saturating_add(1);
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
        let silent = self.heard_at.saturating_add(self.config.silence);
        match self.look {
            Some(Look { since, hinted: true, .. }) => {
                silent.min(since.saturating_add(self.config.interval()))
            }
            _ => silent,
        }
    }
}

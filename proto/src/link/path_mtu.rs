//! How long a datagram may be on each path, which changes while a link is open.
//!
//! A frame that is longer than the *limit* of its path goes in [`pieces`](super::pieces). The limit
//! falls when the host refuses a datagram for its length, or reports that the path takes less than
//! before. It also falls without any report, when a long frame is lost, and probes of its length
//! are lost, while short ones come back (RFC 4821, RFC 8899). After some seconds it is tried
//! upwards, by padded probes that nothing depends on.
//!
//! ```text
//!   limit -- refused; three times short ones pass and long ones do not --> lower limit
//!     ^                                                                        | at once, and
//!     '------ the longest, or half of what is left, is answered ------- probes v 2 s to 32 s later
//! ```
//!
//! Lengths are in bytes of a frame, header and payload.
use super::PATHS;
use super::send::Transmission;

/// Where the limit falls to without any sign: what every way of IPv6 takes.
// spec: MTU-4
const BASE: u16 = 1152;
/// Nanoseconds from the loss of a long frame to the first probe: most often another one arrives.
// spec: MTU-3
const CALM: u64 = 5_000_000;
/// Nanoseconds from a fall, or from a search in vain, to the next search; it doubles.
// spec: MTU-5
const SEARCH_FIRST: u64 = 2_000_000_000;
const SEARCH_LAST: u64 = 32_000_000_000;
/// How often a length is probed before it is taken for too long.
// spec: MTU-4, MTU-6
const TRIES: u8 = 3;
/// Nanoseconds for which the answer to a probe is waited for at least.
const PATIENCE: u64 = 20_000_000;
/// A search ends when it could gain no more bytes than these.
const GAIN_LEAST: u32 = 32;

/// A long frame was lost on a path, and none has arrived since.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// Of those that were lost, in bytes.
    shortest: u16,
    /// When a short probe and a long one were sent last, and the number of the long one.
    sent: Option<u64>,
    number: u32,
    /// Frames that were sent then have passed, but for the long one.
    has_passed: bool,
    /// How often that was so.
    failed: u8,
    until: u64,
}

/// The search for a longer limit.
#[derive(Clone, Copy, Debug)]
enum Search {
    /// There is none.
    Rest,
    Wait {
        until: u64,
    },
    /// A length was probed so often, with this number last.
    Probe {
        len: u16,
        tries: u8,
        number: u32,
        until: u64,
    },
}

/// Of one path.
#[derive(Clone, Copy, Debug)]
struct Length {
    limit: u16,
    /// The length that both sides take.
    most: u16,
    /// The shortest that is known not to pass.
    fails: u32,
    /// The host's last answer.
    told: u16,
    doubt: Option<Doubt>,
    search: Search,
    pause: u64,
}

impl Length {
    /// When there is something to do for it.
    fn due(&self) -> u64 {
        let doubt = self.doubt.map_or(u64::MAX, |doubt| doubt.until);
        doubt.min(match self.search {
            Search::Rest => u64::MAX,
            Search::Wait { until } | Search::Probe { until, .. } => until,
        })
    }
}

/// A probe that is to be sent for the sake of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) path: u8,
    /// Bytes of the frame.
    pub(super) len: u16,
    pub(super) number: u32,
    /// A short one goes with it.
    pub(super) is_pair: bool,
}

/// The limits of a link's paths.
#[derive(Clone, Debug)]
pub struct Lengths {
    paths: [Length; PATHS],
    /// No path takes less.
    least: u16,
    /// The length that all paths of the link take, and the number of paths.
    all: u16,
    count: u8,
    /// Bit by path: long frames are lost there, whether the host is to be asked about it, and
    /// whether the limit has been lowered.
    doubted: u8,
    asks_host: u8,
    lowered: u8,
    /// When a frame is to be sent for the sake of its length.
    due: u64,
    number: u32,
}

impl Lengths {
    /// All frames go whole, however long they are.
    pub(super) const fn unlimited() -> Self {
        let length = Length {
            limit: u16::MAX,
            most: u16::MAX,
            fails: u32::MAX,
            told: u16::MAX,
            doubt: None,
            search: Search::Rest,
            pause: SEARCH_FIRST,
        };
        Self {
            paths: [length; PATHS],
            least: u16::MAX,
            all: u16::MAX,
            count: PATHS as u8,
            doubted: 0,
            asks_host: 0,
            lowered: 0,
            due: u64::MAX,
            number: 0,
        }
    }

    /// Frames have at most `most` bytes, of which `least` go by any path. The host has still to be
    /// asked about the paths.
    // spec: MTU-1
    pub(super) fn begin(&mut self, least: u16, most: u16, paths: u8) {
        (self.least, self.all, self.count) = (least, most, paths);
        self.asks_host = (1 << paths) - 1;
        for length in &mut self.paths {
            (length.limit, length.most) = (most, most);
            length.fails = u32::from(most) + 1;
        }
    }

    /// Asserts what holds between two steps, whatever is answered, and by anybody.
    fn check(&self) {
        debug_assert!((self.doubted | self.lowered) >> PATHS == 0, "only paths are doubted");
        for (path, length) in self.paths.iter().enumerate() {
            let is_used = path < usize::from(self.count);
            debug_assert!(!is_used || self.all <= length.limit, "all paths take what all take");
            debug_assert!(length.limit <= length.most, "no path takes more than both sides");
            let is_doubted = self.doubted >> path & 1 == 1;
            debug_assert!(is_doubted == length.doubt.is_some(), "a doubt has its mark");
            debug_assert!(self.due <= length.due(), "what is due is looked for in time");
            let pauses = SEARCH_FIRST..=SEARCH_LAST;
            debug_assert!(pauses.contains(&length.pause), "searches come, and not too often");
            let failed = length.doubt.map_or(0, |doubt| doubt.failed);
            debug_assert!(failed < TRIES, "what has failed so often is no doubt any more");
            if let Search::Probe { tries, .. } = length.search {
                debug_assert!(tries <= TRIES, "a length is tried so often");
            }
        }
    }

    /// Bytes of the longest frame that goes whole by a path.
    #[inline]
    pub fn limit(&self, path: u8) -> u16 {
        self.paths[usize::from(path) % PATHS].limit
    }

    /// The limit of a path when the link was opened.
    pub fn limit_at_opening(&self, path: u8) -> u16 {
        self.paths[usize::from(path) % PATHS].most
    }

    /// Bytes of the longest frame that goes whole by all paths.
    #[inline]
    pub(super) const fn of_all(&self) -> u16 {
        self.all
    }

    /// When [`Lengths::next`] has something.
    #[inline]
    pub(super) const fn due(&self) -> u64 {
        self.due
    }

    /// A path of which the host is to be asked what it takes; each is named once.
    pub(super) fn asks_host(&mut self) -> Option<u8> {
        let path = self.asks_host.trailing_zeros() as u8;
        (self.asks_host != 0).then(|| {
            self.asks_host &= !(1 << path);
            path
        })
    }

    /// Whether [`Lengths::asks_host`] names one.
    pub(super) const fn has_question(&self) -> bool {
        self.asks_host != 0
    }

    /// A path whose limit has been lowered; each is named once.
    pub(super) fn take_lowered(&mut self) -> Option<u8> {
        let path = self.lowered.trailing_zeros() as u8;
        (self.lowered != 0).then(|| {
            self.lowered &= !(1 << path);
            path
        })
    }

    /// A frame has arrived that was sent so.
    #[inline]
    pub(super) fn on_arrived(&mut self, transmission: &Transmission, now: u64) {
        if self.doubted != 0 {
            self.on_passed(transmission.path, (transmission.len, transmission.at), now);
        }
    }

    /// The other side has heard a frame of this path that was sent then.
    #[inline]
    pub(super) fn on_echo(&mut self, path: u8, at: u64, now: u64) {
        if self.doubted != 0 {
            self.on_passed(path, (0, at), now);
        }
    }

    /// A frame of this length, sent at this time, has passed.
    // spec: MTU-4
    #[cold]
    fn on_passed(&mut self, path: u8, (len, at): (u16, u64), now: u64) {
        let Some(length) = self.paths.get_mut(usize::from(path)) else { return };
        let Some(doubt) = &mut length.doubt else { return };
        if len >= doubt.shortest {
            length.doubt = None;
            self.doubted &= !(1 << path);
        } else if let Some(sent) = doubt.sent
            && at >= sent
            && !doubt.has_passed
        {
            doubt.has_passed = true;
            doubt.until = now.saturating_add(PATIENCE.max(now.saturating_sub(sent)));
        }
        self.look_for_due();
        self.check();
    }

    /// A frame was lost that was sent so.
    // spec: MTU-3
    pub(super) fn on_lost(&mut self, transmission: &Transmission, now: u64) {
        let Transmission { path, len, .. } = *transmission;
        let Some(length) = self.paths.get_mut(usize::from(path)) else { return };
        // What was sent before the limit fell tells nothing of it.
        if len <= self.least || len > length.limit {
            return;
        }
        let until = now.saturating_add(CALM);
        let (sent, number, has_passed, failed) = (None, 0, false, 0);
        let new = Doubt { shortest: len, sent, number, has_passed, failed, until };
        let doubt = length.doubt.get_or_insert(new);
        doubt.shortest = doubt.shortest.min(len);
        self.doubted |= 1 << path;
        self.look_for_due();
        self.check();
    }

    /// The host says how long a frame may be on a path, because it was asked. An answer that
    /// repeats the last one is no news: a longer frame may have passed since.
    // spec: MTU-3
    pub(super) fn on_host_limit(&mut self, path: u8, most: u16, now: u64) {
        let Some(length) = self.paths.get_mut(usize::from(path)) else { return };
        if core::mem::replace(&mut length.told, most) != most {
            self.lower(path, most, now);
        }
    }

    /// The host has refused a frame that was longer than this.
    // spec: MTU-2
    pub(super) fn on_refused(&mut self, path: u8, most: u16, now: u64) {
        let Some(length) = self.paths.get_mut(usize::from(path)) else { return };
        length.fails = length.fails.min(u32::from(most) + 1);
        if let Search::Probe { len, .. } = length.search
            && len > most
        {
            self.narrow(path, now);
        }
        self.lower(path, most, now);
    }

    fn lower(&mut self, path: u8, to: u16, now: u64) {
        let length = &mut self.paths[usize::from(path)];
        let to = to.max(self.least);
        if to < length.limit {
            (length.limit, length.doubt) = (to, None);
            length.pause = SEARCH_FIRST;
            length.search = Search::Wait { until: now.saturating_add(SEARCH_FIRST) };
            self.doubted &= !(1 << path);
            self.lowered |= 1 << path;
            self.look_for_due();
        }
        self.check();
    }

    /// The probe that is to be sent now, if any; an answer is waited for by the retransmission
    /// timeout.
    // spec: MTU-5, MTU-6
    pub(super) fn next(&mut self, now: u64, timeout: u64) -> Option<Look> {
        if now < self.due {
            return None;
        }
        let wait = timeout.max(PATIENCE);
        let look = (0..PATHS as u8).find_map(|path| self.next_of(path, now, wait));
        if look.is_none() {
            self.look_for_due();
        }
        debug_assert!(look.is_some() || self.due > now, "what is due is done, and then no more");
        self.check();
        look
    }

    fn next_of(&mut self, path: u8, now: u64, wait: u64) -> Option<Look> {
        if let Some(doubt) = self.paths[usize::from(path)].doubt
            && doubt.until <= now
            && let Some(look) = self.resolve(path, doubt, (now, wait))
        {
            return Some(look);
        }
        let length = &mut self.paths[usize::from(path)];
        match length.search {
            Search::Wait { until } if until <= now => {
                // What did not pass may do so now.
                let most = length.most;
                length.fails = u32::from(most) + 1;
                Some(self.probe(path, (most, 0), now.saturating_add(wait)))
            }
            Search::Probe { len, tries, until, .. } if until <= now => {
                if tries < TRIES {
                    return Some(self.probe(path, (len, tries), now.saturating_add(wait)));
                }
                length.fails = length.fails.min(u32::from(len));
                self.narrow(path, now);
                self.next_of(path, now, wait)
            }
            _ => None,
        }
    }

    /// Goes on with a doubt: the next two probes, or the end of it.
    // spec: MTU-3, MTU-4
    fn resolve(&mut self, path: u8, doubt: Doubt, (now, wait): (u64, u64)) -> Option<Look> {
        let failed = doubt.failed + u8::from(doubt.has_passed);
        if failed >= TRIES {
            let base = if doubt.shortest > BASE { BASE } else { 0 };
            self.lower(path, base, now);
            assert!(self.limit(path) < doubt.shortest, "the limit falls below what is lost");
            self.paths[usize::from(path)].fails = u32::from(doubt.shortest);
            self.narrow(path, now);
            return None;
        }
        if doubt.sent.is_none() {
            self.asks_host |= 1 << path;
        }
        let number = self.next_number();
        let (sent, until) = (Some(now), now.saturating_add(wait));
        let next = Doubt { sent, number, has_passed: false, failed, until, ..doubt };
        self.paths[usize::from(path)].doubt = Some(next);
        Some(Look { path, len: doubt.shortest, number, is_pair: true })
    }

    fn next_number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1).max(1);
        self.number
    }

    fn probe(&mut self, path: u8, (len, tries): (u16, u8), until: u64) -> Look {
        let number = self.next_number();
        self.paths[usize::from(path)].search =
            Search::Probe { len, tries: tries + 1, number, until };
        Look { path, len, number, is_pair: false }
    }

    /// Goes on between what passes and what does not, or ends the search for a while.
    // spec: MTU-5
    fn narrow(&mut self, path: u8, now: u64) {
        let length = &mut self.paths[usize::from(path)];
        let (limit, fails) = (u32::from(length.limit), length.fails);
        length.search = if length.limit == length.most {
            length.pause = SEARCH_FIRST;
            Search::Rest
        } else if fails.saturating_sub(limit) <= GAIN_LEAST {
            let until = now.saturating_add(length.pause);
            length.pause = (2 * length.pause).min(SEARCH_LAST);
            Search::Wait { until }
        } else {
            let len = limit + (fails - limit) / 2;
            Search::Probe { len: len as u16, tries: 0, number: 0, until: now }
        };
        self.look_for_due();
    }

    /// The probe of this number was answered: frames of its length pass.
    // spec: MTU-6
    pub(super) fn on_answer(&mut self, path: u8, number: u32, now: u64) {
        let Some(length) = self.paths.get_mut(usize::from(path)) else { return };
        if let Some(doubt) = length.doubt
            && doubt.number == number
        {
            length.doubt = None;
            self.doubted &= !(1 << path);
            self.look_for_due();
        } else if let Search::Probe { len, number: asked, .. } = length.search
            && asked == number
            && number != 0
        {
            length.limit = length.limit.max(len);
            self.narrow(path, now);
        }
        self.check();
    }

    /// After a path has changed.
    fn look_for_due(&mut self) {
        let limits = self.paths.iter().take(usize::from(self.count)).map(|length| length.limit);
        self.all = limits.min().unwrap_or(u16::MAX);
        self.due = self.paths.iter().map(Length::due).min().unwrap_or(u64::MAX);
    }
}

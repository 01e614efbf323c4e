//! The paths to a peer: which one takes the next frame, and which are fit to take any.
//!
//! A path is a way through the network from one of our addresses to one of the peer's. Frames are
//! dealt out evenly over the live paths, frame by frame (inverse multiplexing, FORTH prototype
//! paper); the peer's window puts them in order again.
//!
//! ```text
//!             losses in a row, and silence: unless no other path is live
//!          +-----------------------------------------------------------+
//!          |                                                           v
//!        live <--- answers in a row, or no other path is left ------- dead --+ probe, further
//!                                                                      ^-----+ and further apart
//! ```
//!
//! As long as there is a path, there is a live one: the last one is kept, because there is nothing
//! better. It is a *suspect* when another one in its place would have died.
use super::{PATHS, frame};

/// Names one of the paths to a peer. After [`Paths::remove`] the name may come to mean another
/// path; what is then reported late is booked there, which costs some accuracy and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId(u8);

impl PathId {
    /// Names the path that a frame says; none for a number that no path can have.
    pub const fn new(number: u8) -> Option<Self> {
        if number < frame::PATHS_MAX { Some(Self(number)) } else { None }
    }

    /// The number that frames carry.
    pub const fn number(self) -> u8 {
        self.0
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// When a path dies and when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// A path dies after this number of losses in a row.
    pub losses: u32,
    /// And after this number of retransmission timeouts without a delivery.
    pub timeouts: u32,
    /// Nanoseconds from a death to the first probe.
    pub probe_first: u64,
    /// Most nanoseconds between two probes.
    pub probe_max: u64,
    /// A path returns after this number of answers in a row.
    pub answers: u32,
}

impl Config {
    /// For hosts of one rack.
    ///
    /// Eight losses in a row are no chance where one frame in a hundred is lost, and three
    /// timeouts are longer than a switch is crowded at a stretch. Probes begin after 1 ms, a few
    /// timeouts, and end up 1 s apart, which costs nothing. Three answers tell a path that is back
    /// from one that lets a frame through now and then.
    pub const RACK: Self = Self {
        losses: 8,
        timeouts: 3,
        probe_first: 1_000_000,
        probe_max: 1_000_000_000,
        answers: 3,
    };
}

/// The counters of a path since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that it was chosen for; probes are not among them.
    pub sent: u64,
    /// Frames that arrived.
    pub delivered: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// Times that it was taken out.
    pub deaths: u64,
    /// Times that it was taken back.
    pub returns: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Live {
        /// Losses since the last delivery.
        losses: u32,
        /// When the first frame was sent, or found lost, since the last delivery.
        silent_since: Option<u64>,
        /// It would be dead, had it not been the last one.
        is_suspect: bool,
    },
    Dead {
        next_probe: u64,
        /// Whether the last probe still waits for its answer.
        is_open: bool,
        /// Answers in a row.
        answers: u32,
    },
}

const LIVE: State = State::Live { losses: 0, silent_since: None, is_suspect: false };

#[derive(Clone, Copy, Debug)]
struct Path {
    state: State,
    /// Between the last probe and the next one.
    interval: u64,
    /// When it was taken back last.
    returned: Option<u64>,
    counters: Counters,
}

/// The paths to one peer.
#[derive(Clone, Debug)]
pub struct Paths {
    config: Config,
    paths: [Option<Path>; PATHS],
    /// Place of the path that was chosen last.
    last: usize,
}

impl Paths {
    /// No path yet.
    pub const fn new(config: Config) -> Self {
        assert!(config.losses > 0 && config.answers > 0, "a path changes its state for a reason");
        assert!(0 < config.probe_first && config.probe_first <= config.probe_max, "in order");
        Self { config, paths: [None; PATHS], last: PATHS - 1 }
    }

    /// Asserts what holds between two steps.
    fn check(&self) {
        let is_there = self.paths.iter().any(Option::is_some);
        debug_assert!(!is_there || self.live() > 0, "where there are paths, one is live");
        for path in self.paths.iter().flatten() {
            path.check(self.config);
        }
    }

    /// Adds a path, alive; none if there are as many as there can be.
    // spec: PATH-1, PATH-9
    pub fn add(&mut self) -> Option<PathId> {
        let place = self.paths.iter().position(Option::is_none)?;
        self.paths[place] = Some(Path {
            state: LIVE,
            interval: self.config.probe_first,
            returned: None,
            counters: Counters::default(),
        });
        self.check();
        Some(PathId(place as u8))
    }

    /// Removes a path, whose address has gone away. If no live one is left, all others are given
    /// another chance.
    // spec: PATH-5, PATH-9
    pub fn remove(&mut self, id: PathId, now: u64) {
        self.paths[id.index()] = None;
        if self.live() == 0 {
            self.paths.iter_mut().flatten().for_each(|path| path.take_back(now));
        }
        self.check();
    }

    /// The path that takes the next frame: the live ones in turn; none if there is no path.
    // spec: PATH-2, PATH-4
    pub fn choose(&mut self, now: u64) -> Option<PathId> {
        let mut places = (1..=PATHS).map(|step| (self.last + step) % PATHS);
        let place = places.find(|place| self.is_live(PathId(*place as u8)))?;
        self.last = place;
        let path = self.paths[place].as_mut()?;
        path.counters.sent += 1;
        if let State::Live { silent_since, .. } = &mut path.state {
            silent_since.get_or_insert(now);
        }
        self.check();
        Some(PathId(place as u8))
    }

    /// A frame that was sent on this path has arrived.
    // spec: PATH-3
    pub fn on_delivered(&mut self, id: PathId) {
        let Some(path) = self.path(id) else { return };
        path.counters.delivered += 1;
        if matches!(path.state, State::Live { .. }) {
            path.state = LIVE;
        }
    }

    /// A frame that was sent on this path is lost, or was not acknowledged in time; `timeout` is
    /// the present retransmission timeout.
    // spec: PATH-3, PATH-5
    pub fn on_lost(&mut self, id: PathId, now: u64, timeout: u64) {
        let config = self.config;
        let is_last = self.live() == 1;
        let Some(path) = self.path(id) else { return };
        path.counters.lost += 1;
        let State::Live { losses, silent_since, is_suspect } = &mut path.state else { return };
        *losses = losses.saturating_add(1);
        let silence = now.saturating_sub(*silent_since.get_or_insert(now));
        let patience = timeout.saturating_mul(u64::from(config.timeouts));
        if *losses < config.losses || silence <= patience {
            return;
        }
        if is_last {
            *is_suspect = true;
        } else {
            path.take_out(now, config);
        }
        self.check();
    }

    /// The next path to send a probe on; the caller asks until there is none.
    // spec: PATH-6, PATH-7
    pub fn probe_due(&mut self, now: u64) -> Option<PathId> {
        let config = self.config;
        let is_due =
            |path: &mut Option<Path>| path.as_mut().is_some_and(|path| path.probe(now, config));
        let place = self.paths.iter_mut().position(is_due)?;
        self.check();
        Some(PathId(place as u8))
    }

    /// When the next probe is due; none while no path is dead.
    pub fn next_probe(&self) -> Option<u64> {
        let next = |path: &Path| match path.state {
            State::Dead { next_probe, .. } => Some(next_probe),
            State::Live { .. } => None,
        };
        self.paths.iter().flatten().filter_map(next).min()
    }

    /// A probe's answer came back over this path. One that nothing waits for is ignored.
    // spec: PATH-7
    pub fn on_probe_answered(&mut self, id: PathId, now: u64) {
        let enough = self.config.answers;
        let Some(path) = self.path(id) else { return };
        let State::Dead { is_open: is_open @ true, answers, .. } = &mut path.state else { return };
        *is_open = false;
        *answers += 1;
        if *answers >= enough {
            path.take_back(now);
        }
        self.check();
    }

    /// Whether frames are sent on this path.
    pub fn is_live(&self, id: PathId) -> bool {
        self.paths[id.index()].is_some_and(|path| matches!(path.state, State::Live { .. }))
    }

    /// Whether this path, had it not been the last live one, would have died. It dies with the
    /// next loss once another is live.
    // spec: PATH-5
    pub fn is_suspect(&self, id: PathId) -> bool {
        let path = self.paths[id.index()];
        path.is_some_and(|path| matches!(path.state, State::Live { is_suspect: true, .. }))
    }

    /// How many paths are live.
    pub fn live(&self) -> usize {
        (0..frame::PATHS_MAX).filter(|place| self.is_live(PathId(*place))).count()
    }

    /// The counters of this path; none if it is not there.
    // spec: PATH-10
    pub fn counters(&self, id: PathId) -> Option<Counters> {
        self.paths[id.index()].map(|path| path.counters)
    }

    fn path(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths[id.index()].as_mut()
    }
}

impl Path {
    fn check(&self, config: Config) {
        let Counters { deaths, returns, .. } = self.counters;
        let is_dead = matches!(self.state, State::Dead { .. });
        debug_assert!(deaths == returns + u64::from(is_dead), "deaths and returns alternate");
        let intervals = config.probe_first..=config.probe_max;
        debug_assert!(intervals.contains(&self.interval), "probes are neither dense nor endless");
        match self.state {
            State::Live { losses, is_suspect, .. } => {
                let has_reason = losses >= config.losses;
                debug_assert!(
                    !is_suspect || has_reason,
                    "a suspect has lost as much as a dead one"
                );
            }
            State::Dead { answers, .. } => {
                debug_assert!(answers < config.answers, "enough answers bring a path back");
            }
        }
    }

    /// One that dies again soon after it has returned is probed as rarely as before, and half as
    /// often again: a path that comes and goes disturbs less and less.
    // spec: PATH-6, PATH-8
    fn take_out(&mut self, now: u64, config: Config) {
        let is_again = |returned: u64| now.saturating_sub(returned) < config.probe_max;
        self.interval = match self.returned {
            Some(returned) if is_again(returned) => doubled(self.interval, config),
            _ => config.probe_first,
        };
        let next_probe = now.saturating_add(self.interval);
        self.state = State::Dead { next_probe, is_open: false, answers: 0 };
        self.counters.deaths += 1;
    }

    fn take_back(&mut self, now: u64) {
        self.state = LIVE;
        self.returned = Some(now);
        self.counters.returns += 1;
    }

    /// Whether a probe is due, which is then taken as sent. While probes are answered they come at
    /// equal intervals, which are long enough for this path's answers.
    // spec: PATH-6, PATH-7
    fn probe(&mut self, now: u64, config: Config) -> bool {
        let State::Dead { next_probe, is_open, answers } = &mut self.state else { return false };
        if now < *next_probe {
            return false;
        }
        if *is_open {
            *answers = 0;
            self.interval = doubled(self.interval, config);
        }
        *is_open = true;
        *next_probe = now.saturating_add(self.interval);
        true
    }
}

fn doubled(interval: u64, config: Config) -> u64 {
    interval.saturating_mul(2).min(config.probe_max)
}

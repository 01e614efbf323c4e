//! Other users of this host's processors, as far as an endpoint knows them, and yields of the
//! program itself.
use super::{POLLS_PER_PAUSE, REMOTES_MAX, pollers};
use crate::machine::host::online as host_processors;
use crate::machine::processors::{self, Processors};
use crate::peer::agreement::Name;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A yield that takes so long has let somebody run who waits as we do, and for us, it may be. To
/// come back at once takes a tenth of the shortest; one that takes longer has met somebody who
/// computes.
const SHARED: Range<Duration> = Duration::from_micros(3)..Duration::from_micros(50);
/// Polls between two linked yields that take so long have a program's own work between them.
const WAITING: Duration = Duration::from_micros(50);

/// Polls that find nothing between two looks whether the program still yields itself.
const POLLS_PER_LOOK: u32 = 8 * POLLS_PER_PAUSE;

/// Whether the program yields between its polls, as MPI libraries do that know of scarce
/// processors. A yield of ours on top of each would be a round without a poll.
#[derive(Debug, Default)]
struct Yields {
    /// How often the thread had left its processor, and polls had found nothing, at the last look.
    left: Option<u64>,
    idle: u32,
    /// At every second poll at the least, before that look.
    are_made: bool,
}

impl Yields {
    /// Whether the program makes them, after `idle` idle polls.
    fn are_made(&mut self, idle: u32, switches: impl FnOnce() -> u64) -> bool {
        if self.are_made && !idle.is_multiple_of(POLLS_PER_LOOK) {
            return true;
        }
        let (left, polls) = (switches(), idle.wrapping_sub(self.idle));
        let of_half = u64::from(polls.div_ceil(2));
        self.are_made = self.left.is_some_and(|before| left.saturating_sub(before) >= of_half);
        // A yield of ours, which comes next, does not count.
        let own = u64::from(!self.are_made);
        (self.left, self.idle) = (Some(left + own), idle);
        self.are_made
    }
}

/// Whether the program waits, or computes between its polls: by the time between two pauses.
#[derive(Debug, Default)]
struct Waits {
    paused: Option<Instant>,
}

impl Waits {
    /// The time since the last pause, or nap, is that of polls alone.
    fn are_seen(&mut self, now: Instant) -> bool {
        let paused = self.paused.replace(now);
        paused.is_some_and(|paused| now.saturating_duration_since(paused) < WAITING)
    }

    /// A nap is over.
    fn begin(&mut self, now: Instant) {
        self.paused = Some(now);
    }
}

/// The known processes that share processors with this endpoint.
#[derive(Debug)]
struct Sharers {
    /// Connected neighbours that have told, and all their processors.
    peers: usize,
    within: Processors,
    /// Those of the threads of this process that poll.
    threads: Option<Processors>,
    /// How many processors that is; no bound where it is not known.
    room: usize,
    /// How many processors' time this process may have.
    quota: Option<usize>,
}

impl Sharers {
    fn new(quota: Option<usize>) -> Self {
        let within = Processors::none();
        Self { peers: 0, within, threads: None, room: quota.unwrap_or(usize::MAX), quota }
    }

    /// Neighbours have come or gone.
    fn count<'a>(&mut self, all: impl Iterator<Item = &'a Processors>) {
        let none = (0, Processors::none());
        (self.peers, self.within) =
            all.fold(none, |(peers, within), own| (peers + 1, within.or(*own)));
        self.settle();
    }

    /// Threads of this process poll that may run there. Whether that is news.
    fn of_threads(&mut self, threads: Option<Processors>) -> bool {
        let is_news = self.threads != threads;
        if is_news {
            self.threads = threads;
            self.settle();
        }
        is_news
    }

    fn settle(&mut self) {
        let count = self.threads.map_or(usize::MAX, |threads| threads.or(self.within).count());
        self.room = self.quota.map_or(count, |quota| quota.min(count));
        debug_assert!(self.quota.is_none_or(|quota| self.room <= quota), "a quota is a bound");
    }
}

/// All that an endpoint knows of those with whom it shares processors.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Endpoints of this host's other processes that it knows, threads of this one that poll, and
    /// the host's processors.
    neighbours: usize,
    pollers: usize,
    processors: usize,
    sharers: Sharers,
    place: pollers::Place,
    /// Threads that poll are none of its business, nor are processors: it goes by another clock.
    is_apart: bool,
    /// Whether the last yield has let somebody run who yields, too; and whether the program yields.
    is_shared: bool,
    yields: Yields,
    waits: Waits,
}

impl Sharing {
    /// That of an endpoint of this name, which knows nobody; on a simulated network, where
    /// computing takes no time, nobody shares processors.
    pub(super) fn new(name: Name, is_simulated: bool) -> Self {
        let processors = if is_simulated { usize::MAX } else { host_processors() };
        let quota = if is_simulated { None } else { processors::quota() };
        Self {
            neighbours: 0,
            pollers: 1,
            processors,
            sharers: Sharers::new(quota),
            is_apart: is_simulated,
            place: pollers::Place::take(name),
            is_shared: false,
            yields: Yields::default(),
            waits: Waits::default(),
        }
    }

    /// Whether more wait for this host's processors, as far as is known, than it has.
    pub(super) const fn is_crowded(&self) -> bool {
        self.neighbours + self.pollers > self.processors
            || self.sharers.peers + self.pollers > self.sharers.room
    }

    /// Sets the number of known neighbours. True if it has changed.
    pub(super) fn set_neighbours(&mut self, count: usize) -> bool {
        debug_assert!(count <= REMOTES_MAX, "each neighbour is a remote");
        std::mem::replace(&mut self.neighbours, count) != count
    }

    /// Neighbours have come or gone, of which some have told their processors.
    pub(super) fn count_sharers<'a>(&mut self, all: impl Iterator<Item = &'a Processors>) {
        self.sharers.count(all);
    }

    /// This thread polls. Whether threads that do are known to run elsewhere than before.
    pub(super) fn poll(&mut self, now: Instant) -> bool {
        if self.is_apart {
            return false;
        }
        let (pollers, theirs) = pollers::polls(now);
        debug_assert!(pollers > 0, "this thread is one of them");
        self.pollers = pollers;
        self.sharers.of_threads(theirs)
    }

    /// A poll has found something: the how many-th.
    #[inline(always)]
    pub(super) fn find(&self) -> u32 {
        self.place.find()
    }

    /// How many polls have found something.
    pub(super) fn finds(&self) -> u32 {
        self.place.finds()
    }

    /// Whether other endpoints of this process have found something since this was asked last.
    pub(super) fn have_others_found(&mut self) -> bool {
        self.place.have_others_found()
    }

    /// Whether the program yields between its polls, after `idle` idle polls.
    pub(super) fn yields_itself(&mut self, idle: u32, switches: impl FnOnce() -> u64) -> bool {
        self.yields.are_made(idle, switches)
    }

    /// A yield has taken so long.
    pub(super) fn note_yield(&mut self, lasted: Duration) {
        self.is_shared = SHARED.contains(&lasted);
    }

    /// Whether the last yield has let somebody run who yields, too.
    pub(super) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether the program waits: the time since the last pause, or nap, is that of polls alone.
    pub(super) fn is_program_waiting(&mut self, now: Instant) -> bool {
        self.waits.are_seen(now)
    }

    /// A nap is over.
    pub(super) fn begin_waiting(&mut self, now: Instant) {
        self.waits.begin(now);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The endpoint's yields, and its looks at the counter, in `count` pauses, while the program
    /// yields `of_program` times in each.
    fn pauses(count: u32, of_program: u64) -> (u32, u32) {
        let (mut yields, mut left, mut looks, mut own) = (Yields::default(), 1 << 40, 0, 0);
        for pause in 1..=count {
            left += of_program;
            let are_made = yields.are_made(pause * POLLS_PER_PAUSE, || {
                looks += 1;
                left
            });
            if !are_made {
                (own, left) = (own + 1, left + 1);
            }
        }
        (own, looks)
    }

    // spec: ENV-5
    #[test]
    fn an_endpoint_does_not_yield_on_top_of_a_program_that_does() {
        let per_look = POLLS_PER_LOOK / POLLS_PER_PAUSE;
        let of_own = |of_program| pauses(80, of_program).0;
        assert_eq!([0, 1].map(of_own), [80; 2], "a program that never does, or seldom");
        let (own, looks) = pauses(80, u64::from(POLLS_PER_PAUSE));
        assert_eq!(own, 1, "until it knows");
        assert!(looks <= 80 / per_look + 2, "it looks {looks} times");
    }

    // spec: ENV-5
    #[test]
    fn a_program_that_computes_between_its_polls_is_not_taken_for_one_that_waits() {
        let (mut waits, mut now) = (Waits::default(), Instant::now());
        let mut pause = |after: Duration| {
            now += after;
            waits.are_seen(now)
        };
        assert!(!pause(Duration::ZERO), "nothing is known yet");
        let seen = [5, 45, 55, 5000, 55, 5, 5].map(Duration::from_micros).map(&mut pause);
        assert_eq!(seen, [true, true, false, false, false, true, true]);
        let nap = Duration::from_micros(250);
        waits.begin(now + nap);
        assert!(waits.are_seen(now + nap + Duration::from_micros(5)), "a nap is no work");
    }

    // spec: ENV-5
    #[test]
    fn an_endpoint_yields_again_when_its_program_does_so_no_more() {
        let mut yields = Yields::default();
        let mut idle = 0;
        let mut pause = |left: u64| {
            idle += POLLS_PER_PAUSE;
            yields.are_made(idle, || left)
        };
        let made: Vec<_> = (1..=8).map(|round| pause(4 * round)).collect();
        assert_eq!(made, [false, true, true, true, true, true, true, true]);
        let made: Vec<_> = (0..16).map(|_| pause(32)).collect();
        assert_eq!(made.iter().filter(|made| **made).count(), 7, "until the next look");
        assert!(made[8..].iter().all(|made| !made));
    }
}

//! Letting others run, and sleeping until something comes.
use super::{Address, End, Endpoint, POLLS_PER_PAUSE, crowd};
use crate::machine::processors::{self, Processors};
use crate::mem::bell::ring_own;
use crate::mem::fence;
use crate::sys::switches::switches;
use rustix::fd::{AsFd, BorrowedFd};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Longest sleep of a poll.
const NAP: Duration = Duration::from_micros(250);
/// Polls that find nothing between two at which one lets others run that knows of nobody who would:
/// each has looked at a link, which takes longer than to yield, and together the time of some
/// messages.
const POLLS_PER_LINKED_YIELD: u32 = 16;
/// A yield that takes so long has let somebody run who waits as we do, and for us, it may be. To
/// come back at once takes a tenth of the shortest; one that takes longer has met somebody who
/// computes.
const SHARED: Range<Duration> = Duration::from_micros(3)..Duration::from_micros(50);
/// Polls between two linked yields that take so long have a program's own work between them.
const WAITING: Duration = Duration::from_micros(50);

/// Polls that find nothing between two looks whether the program still yields itself.
const POLLS_PER_LOOK: u32 = 8 * POLLS_PER_PAUSE;

/// Whether the program lets others run between its polls, as MPI libraries do that know of a crowd:
/// a yield of ours on top of each would be a round in which nobody looks.
#[derive(Debug, Default)]
pub(super) struct Yields {
    /// How often the thread had left its processor, and polls had found nothing, at the last look.
    left: Option<u64>,
    idle: u32,
    /// At every second poll at the least, before that look.
    are_made: bool,
}

impl Yields {
    /// Whether they are made by the program, when so many polls have found nothing.
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
pub(super) struct Waits {
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

/// Who shares which processors with this endpoint, of those of whom that is known.
#[derive(Debug)]
pub(super) struct Sharers {
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
    pub(super) fn new() -> Self {
        let (within, quota) = (Processors::none(), processors::quota());
        Self { peers: 0, within, threads: None, room: quota.unwrap_or(usize::MAX), quota }
    }

    /// Neighbours have come or gone.
    pub(super) fn count<'a>(&mut self, all: impl Iterator<Item = &'a Processors>) {
        let none = (0, Processors::none());
        (self.peers, self.within) =
            all.fold(none, |(peers, within), own| (peers + 1, within.or(*own)));
        self.settle();
    }

    /// Threads of this process poll that may run there. Whether that is news.
    pub(super) fn of_threads(&mut self, threads: Option<Processors>) -> bool {
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
    }
}

impl Endpoint {
    /// Can be read when something has come while the endpoint rests.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.sleep.as_fd()
    }

    /// Says that the program is about to sleep, so that whoever sends rings. False where something
    /// has come already, or is to be done: then it must not sleep. It ends with the next
    /// [`Endpoint::wake`]. What is posted meanwhile rings, too, where more is to be done for it or
    /// its end to be told.
    // spec: ENV-9
    pub fn rest(&mut self, mut tell: impl FnMut(End)) -> bool {
        !self.waits_for_room() && self.lie_down(&mut tell)
    }

    /// Whether parts or answers wait for room in a lane or a ring, which wakes nobody.
    fn waits_for_room(&self) -> bool {
        !self.streams.is_empty() || self.replies > 0
    }

    /// Rests, even while it waits for room: for naps, which end soon in any case.
    fn lie_down(&mut self, tell: &mut dyn FnMut(End)) -> bool {
        self.port.announce_sleep(true);
        fence::heavy();
        if self.look_everywhere(tell) || self.port.has_mail() || !self.port.died.is_empty() {
            self.wake();
            return false;
        }
        self.port.set_alarm(true);
        if let Some(next) = self.next_call()
            && !self.port.set_alarm_by(next)
        {
            self.wake();
            return false;
        }
        self.rests = true;
        true
    }

    /// Takes from everybody, callers too, what has come. Whether there was anything, or is more.
    pub(super) fn look_everywhere(&mut self, tell: &mut dyn FnMut(End)) -> bool {
        let calls = self.calls;
        self.meet();
        // A caller that has just been answered may have something to send.
        let is_answered = self.calls != calls;
        let progressed = self.port.progress_all();
        let turns = self.port.connections.len().max(1);
        let mut tell = tell;
        let any = (0..turns).any(|_| self.poll(&mut tell)) || !self.ended.is_empty();
        any || progressed || is_answered
    }

    /// Something was put off to the next poll, for which nobody else rings.
    // spec: ENV-9
    pub(super) fn stir(&self) {
        if self.rests {
            ring_own(self.port.own_bell.as_fd());
        }
    }

    /// The program no longer sleeps.
    pub fn wake(&mut self) {
        self.rests = false;
        self.port.announce_sleep(false);
        self.port.set_alarm(false);
        self.port.service_control();
        self.meet();
        if !self.port.died.is_empty() {
            self.mourn();
        }
    }

    /// Lets others run, if there are more of us than processors. What comes wakes this one.
    // spec: ENV-9
    #[cold]
    pub(super) fn make_way(&mut self) {
        if self.is_crowded() {
            if self.may_nap() {
                if self.nap() {
                    crowd::has_napped();
                }
            } else if !self.yields.are_made(self.idle, switches) {
                std::thread::yield_now();
            }
            return;
        }
        let is_turn = self.is_shared || self.idle.is_multiple_of(POLLS_PER_LINKED_YIELD);
        if self.port.linked > 0 && is_turn {
            self.make_way_at_links();
        }
    }

    /// Yields. A yield to a program that computes gives away a whole time slice, and polls use up
    /// our own, so that a datagram waits for the next one. After such a yield a program that waits
    /// naps for a while instead: a datagram wakes it, and the scheduler runs it at once.
    // spec: ENV-5
    fn make_way_at_links(&mut self) {
        match self.port.yield_in_turn() {
            Some(lasted) => self.is_shared = SHARED.contains(&lasted),
            None if self.waits.are_seen(Instant::now()) && !self.is_needed_elsewhere() => {
                self.nap();
                self.waits.begin(Instant::now());
            }
            None => {}
        }
    }

    /// A program that polls may do so between steps of its own, and cannot be told from one that
    /// waits: naps keep it from them for half of its time at the most.
    // spec: ENV-5
    fn may_nap(&mut self) -> bool {
        self.empty() >= super::POLLS_BEFORE_NAP
            && !self.waits_for_room()
            && !self.is_needed_elsewhere()
            && crowd::may_nap(NAP)
    }

    /// Sleeps for a moment, unless something has come already. Whether it has.
    fn nap(&mut self) -> bool {
        let mut ends = Vec::new();
        let may = self.lie_down(&mut |end| ends.push(end));
        if may {
            self.port.sleep.doze(self.port.wake_by(Some(Instant::now() + NAP)));
            self.wake();
        }
        self.ended.extend(ends);
        may
    }

    /// Whether this is no time to sleep, nor soon: a thread may poll several endpoints, and to
    /// sleep at one that nobody talks to would keep it from the others.
    // spec: ENV-5
    fn is_needed_elsewhere(&mut self) -> bool {
        let is_needed = self.place.have_others_found();
        if is_needed {
            self.idle_before = self.idle;
        }
        is_needed
    }

    pub(super) fn is_neighbour(&self, address: &Address) -> bool {
        address.is_with(&self.address) && !crowd::is_here(address.name())
    }

    /// Whether more wait for this host's processors, as far as is known, than it has.
    pub(super) fn is_crowded(&self) -> bool {
        self.neighbours + self.pollers > self.processors
            || self.sharers.peers + self.pollers > self.sharers.room
    }

    /// Sleeps until something comes, or until `deadline`; tells what ends. May return before.
    pub fn wait(&mut self, deadline: Option<Instant>, mut tell: impl FnMut(End)) {
        if self.rest(&mut tell) {
            let deadline = [deadline, self.next_call()].into_iter().flatten().min();
            self.port.sleep.doze(self.port.wake_by(deadline));
            self.wake();
        }
        self.progress(tell);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// What a thread has left its processor at so many pauses, by turns of the endpoint's and the
    /// program's; how often the endpoint has yielded, and looked.
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
        waits.begin(now + NAP);
        assert!(waits.are_seen(now + NAP + Duration::from_micros(5)), "a nap is no work");
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

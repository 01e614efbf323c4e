//! How threads wait: they look for a while, if that has paid, and then sleep at a bell that the
//! peer rings, and at the kernel's descriptors.
use crate::stream::{Direction, Stream};
use crate::sys::{memory, wait};
use crate::watch::Sleeper;
use ayre::guest::fork::generation;
use ayre::socket::{Bell, Pair};
use libc::{pollfd, sigset_t};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// When a wait ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// It was not asked yet.
    Unknown,
    Never,
    At(Instant),
}

impl Until {
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        timeout
            .and_then(|timeout| Instant::now().checked_add(timeout))
            .map_or(Self::Never, Self::At)
    }

    /// The time that is left.
    pub(crate) fn left(self) -> Option<Duration> {
        match self {
            Self::At(end) => Some(end.saturating_duration_since(Instant::now())),
            Self::Unknown | Self::Never => None,
        }
    }

    pub(crate) fn is_over(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }
}

/// The bells of a thread: one for each pair with which it has slept.
#[derive(Default)]
struct Bells {
    /// The process that made them: a forked child needs others.
    generation: u64,
    bells: Vec<(Weak<Pair>, Arc<Bell>)>,
}

impl Drop for Bells {
    fn drop(&mut self) {
        if self.generation == generation() {
            for (pair, bell) in self.bells.drain(..) {
                give_back(pair.upgrade(), bell);
            }
        }
    }
}

/// A bell is of no use to its thread or epoll any more.
pub(crate) fn give_back(pair: Option<Arc<Pair>>, bell: Arc<Bell>) {
    if let (Some(pair), Some(bell)) = (pair, Arc::into_inner(bell)) {
        pair.keep(bell);
    }
}

thread_local! {
    static BELLS: RefCell<Bells> = RefCell::default();
}

/// This thread's bell for the peer of a pair. None where the peer cannot be given one.
pub(crate) fn bell_for(pair: &Arc<Pair>) -> Option<Arc<Bell>> {
    let found = BELLS.try_with(|bells| {
        let Ok(mut bells) = bells.try_borrow_mut() else { return None };
        if bells.generation != generation() {
            *bells = Bells { generation: generation(), bells: Vec::new() };
        }
        let is_of = |(of, _): &&(Weak<Pair>, _)| of.as_ptr() == Arc::as_ptr(pair);
        if let Some((_, bell)) = bells.bells.iter().find(is_of) {
            return Some(bell.clone());
        }
        bells.bells.retain(|(of, _)| of.strong_count() > 0);
        let bell = Arc::new(pair.bell()?);
        bells.bells.push((Arc::downgrade(pair), bell.clone()));
        Some(bell)
    });
    found.ok().flatten()
}

/// Waits until a direction of a stream may be ready.
pub(crate) fn wait_for(
    stream: &Stream,
    fd: i32,
    direction: Direction,
    until: Until,
) -> Result<(), Errno> {
    if until.is_over() {
        return Err(Errno::AGAIN);
    }
    stream.search();
    let is_ready = || stream.ready(direction).0;
    let pair = stream.connection().place().map(|(pair, _)| pair);
    if pair.is_some() && looked(is_ready, || stream.look(direction)) {
        return Ok(());
    }
    let bell = pair.and_then(bell_for);
    stream.lie_down(direction, &bell);
    let slept = sleep(stream, fd, direction, (&bell, until));
    stream.get_up(direction, &bell);
    bell.iter().for_each(|bell| bell.take_marks(|_| {}));
    slept
}

/// Sleeps until there may be something, unless there is already. A bell that others of this process
/// have rung is hushed.
fn sleep(
    stream: &Stream,
    fd: i32,
    direction: Direction,
    (bell, until): (&Sleeper, Until),
) -> Result<(), Errno> {
    let _ = stream.connection().settle(memory::borrowed(fd));
    // One look decides both: between two, the peer may change the way.
    let (is_ready, asks_kernel) = stream.ready(direction);
    if is_ready {
        return Ok(());
    }
    let events = match direction {
        Direction::In if asks_kernel => libc::POLLIN,
        Direction::In => 0,
        Direction::Out if asks_kernel => libc::POLLOUT,
        // The end of a peer that has not said so is its death.
        Direction::Out if !stream.connection().is_ended_by_peer() => libc::POLLRDHUP,
        Direction::Out => 0,
    };
    // Of an end before the link has told of bytes, the kernel would tell again and again.
    let is_ahead = events == libc::POLLIN && stream.is_ahead_of_link(fd);
    let asked = if is_ahead { -1 } else { fd };
    let mut fds = vec![pollfd { fd: asked, events, revents: 0 }];
    let pair = stream.connection().place().map(|(pair, _)| pair.clone());
    let bells: Vec<PairBell> = pair.into_iter().zip(bell.clone()).collect();
    // Without a bell, nobody tells that another thread has closed this name of the stream.
    let is_unsure = bell.is_none() || stream.is_unsure(direction, bell);
    let mut intervals = Intervals::new();
    loop {
        let time = intervals.next(is_unsure, until.left());
        // Where another thread has closed this name, the caller goes on by another.
        let polled = || {
            if stream.is_named(fd) { sleep_at(&mut fds, &bells, (time, None)) } else { Ok(1) }
        };
        match slept(polled) {
            Ok(0) if until.is_over() => return Err(Errno::AGAIN),
            Ok(0) if stream.has_news(direction) => return Ok(()),
            // A link has told that the kernel has what comes next.
            Ok(0) if !asks_kernel && stream.ready(direction).1 => return Ok(()),
            Ok(0) => {
                let _ = stream.connection().settle(memory::borrowed(fd));
            }
            Ok(_) => return Ok(()),
            // A wait with a limit never goes on behind a signal.
            Err(Errno::INTR) if until == Until::Never && wait::restarts() => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// A bell, with the pair whose peer rings it.
pub(crate) type PairBell = (Arc<Pair>, Arc<Bell>);

/// Polls descriptors and bells, and serves the links with other hosts, if that is this thread's
/// matter. A bell that has marks is ready. How many there were of all these.
pub(crate) fn sleep_at(
    fds: &mut Vec<pollfd>,
    bells: &[PairBell],
    (time, mask): (Option<Duration>, Option<&sigset_t>),
) -> Result<usize, Errno> {
    let links = bells.iter().find_map(|(pair, _)| Some((pair, pair.rest()?)));
    let others = fds.len();
    fds.extend(bells.iter().map(|(_, bell)| wait::for_bell(bell)));
    fds.extend(links.iter().map(|(_, fd)| wait::for_bytes(*fd)));
    bells.iter().for_each(|(_, bell)| bell.lie_down());
    let is_marked = bells.iter().any(|(_, bell)| bell.is_marked());
    // Without a wait, signals stay pending.
    let (time, mask) = if is_marked { (Some(Duration::ZERO), None) } else { (time, mask) };
    let polled = wait::poll(fds, time, mask);
    let told: Vec<pollfd> = fds.drain(others..).collect();
    for ((_, bell), told) in bells.iter().zip(&told) {
        if told.revents != 0 {
            bell.hush();
        }
        // Awake, it looks at its streams by itself: no ring is needed.
        bell.wake_up();
    }
    if let (Some((pair, _)), Some(told)) = (links, told.get(bells.len()))
        && told.revents != 0
    {
        pair.serve();
    }
    polled.map(|ready| ready.max(usize::from(is_marked)))
}

/// The sleeps of somebody who is not sure to be woken. Their lengths double: a wait takes at most
/// twice the time that it should.
pub(crate) struct Intervals(Duration);

impl Intervals {
    pub(crate) fn new() -> Self {
        Self(Duration::from_millis(1))
    }

    /// The time of the next sleep, of those that are left.
    pub(crate) fn next(&mut self, is_unsure: bool, left: Option<Duration>) -> Option<Duration> {
        if !is_unsure {
            return left;
        }
        let length = self.0;
        self.0 = length.saturating_mul(2);
        Some(left.map_or(length, |left| left.min(length)))
    }
}

/// The longest look before a sleep.
const LONGEST: Duration = Duration::from_micros(50);

/// Sleeps without a look behind looks that did not pay, at most.
const MOST_LEFT_OUT: u32 = 1 << 14;

/// The experience of this thread with its looks.
#[derive(Clone, Copy)]
struct Looks {
    /// How long it looks; zero: not at all.
    time: Duration,
    /// It looks again after this number of sleeps.
    left_out: u32,
    /// How many sleeps that will be next time.
    penalty: u32,
}

thread_local! {
    static LOOKS: Cell<Looks> =
        const { Cell::new(Looks { time: LONGEST, left_out: 0, penalty: 1 }) };
}

/// Whether threads may look at all: there are several processors for this process.
static MAY_LOOK: AtomicBool = AtomicBool::new(false);

/// Before the program has threads.
pub(crate) fn prepare() {
    let is_off = std::env::var_os("AYRE_SOCKETS_SPIN").is_some_and(|value| value == "0");
    let processors = rustix::thread::sched_getaffinity(None);
    let are_several = processors.is_ok_and(|processors| processors.count() > 1);
    MAY_LOOK.store(!is_off && are_several, Ordering::Relaxed);
}

fn may_look() -> bool {
    MAY_LOOK.load(Ordering::Relaxed)
}

/// Looks for a while whether something is ready, if that has paid. `begin` says to the peer that
/// this thread looks.
pub(crate) fn looked(is_ready: impl Fn() -> bool, begin: impl FnOnce()) -> bool {
    let looks = LOOKS.get();
    if looks.time.is_zero() || !may_look() {
        return false;
    }
    begin();
    let begun = Instant::now();
    loop {
        for _ in 0..16 {
            if is_ready() {
                LOOKS.set(Looks { time: LONGEST, penalty: 1, ..looks });
                return true;
            }
            std::hint::spin_loop();
        }
        if begun.elapsed() > looks.time {
            return false;
        }
    }
}

/// Sleeps, and learns from how long that was. A short sleep behind a look in vain says that the
/// peer could not run meanwhile: there are too few processors.
pub(crate) fn slept<T>(sleep: impl FnOnce() -> T) -> T {
    if !may_look() {
        return sleep();
    }
    let begun = Instant::now();
    let result = sleep();
    let is_short = begun.elapsed() < LONGEST;
    let Looks { time, left_out, penalty } = LOOKS.get();
    LOOKS.set(match time.is_zero() {
        true if left_out > 0 => Looks { time, left_out: left_out - 1, penalty },
        true if is_short => Looks { time: LONGEST, left_out, penalty },
        true => Looks { time, left_out, penalty },
        false => {
            let left_out = if is_short { penalty } else { 0 };
            let penalty = if is_short { (penalty * 2).min(MOST_LEFT_OUT) } else { penalty };
            Looks { time: Duration::ZERO, left_out, penalty }
        }
    });
    result
}

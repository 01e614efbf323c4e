//! Waiting by poll(2) and select(2) where streams are among the descriptors.
use crate::stream::{Direction, Stream};
use crate::sys::{memory, wait};
use crate::table;
use crate::waiter::{self, Intervals, PairBell, Until, looked, sleep_at, slept};
use crate::watch::Sleeper;
use ayre::socket::Bell;
use libc::{pollfd, sigset_t};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// A stream among the descriptors.
struct Polled {
    place: usize,
    fd: i32,
    stream: Arc<Stream>,
    wanted: PollFlags,
    /// The kernel has told of bytes or an end before the link has.
    is_ahead: Cell<bool>,
}

const OUT: PollFlags = PollFlags::OUT.union(PollFlags::WRNORM);
const IN: PollFlags = PollFlags::IN.union(PollFlags::RDNORM);

impl Polled {
    fn directions(&self) -> Vec<Direction> {
        let all = [(IN, Direction::In), (OUT, Direction::Out)];
        let wanted = all.into_iter().filter(|(flags, _)| self.wanted.intersects(*flags));
        wanted.map(|(_, direction)| direction).collect()
    }

    fn told(&self) -> PollFlags {
        self.stream.events(self.wanted).0
    }
}

fn streams(fds: &[pollfd]) -> Vec<Polled> {
    let of = |(place, fd): (usize, &pollfd)| {
        let stream = table::stream(fd.fd)?;
        let wanted = PollFlags::from_bits_truncate(fd.events as u16);
        Some(Polled { place, fd: fd.fd, stream, wanted, is_ahead: Cell::new(false) })
    };
    fds.iter().enumerate().filter_map(of).collect()
}

/// Whether one of the descriptors is a stream, or an epoll with streams.
pub(crate) fn concerns(fds: &[pollfd]) -> bool {
    for fd in fds {
        if let Some(set) = table::epoll(fd.fd) {
            set.be_nested();
        }
    }
    fds.iter().any(|fd| table::is_stream(fd.fd))
}

/// ppoll(2).
pub(crate) fn poll(
    fds: &mut [pollfd],
    until: Until,
    mask: Option<&sigset_t>,
) -> Result<usize, Errno> {
    let streams = streams(fds);
    let mut intervals = Intervals::new();
    loop {
        let is_ready = || streams.iter().any(|polled| !polled.told().is_empty());
        let now = is_ready() || until.is_over();
        let begin = || streams.iter().for_each(|polled| polled.stream.look(Direction::In));
        let has_ring = streams.iter().any(|polled| polled.stream.connection().place().is_some());
        if !now && has_ring && looked(is_ready, begin) {
            continue;
        }
        let ready = if now {
            ask_kernel(fds, &streams, (&[], None), mask)?
        } else {
            let asleep = Asleep::new(&streams);
            let time = intervals.next(asleep.is_unsure(), until.left());
            ask_kernel(fds, &streams, (&asleep.bells, Some(time)), mask)?
        };
        if ready > 0 || until.is_over() {
            return Ok(ready);
        }
    }
}

/// Asks the kernel, and adds what the rings tell. Waits for this time, or for any; no time: does
/// not wait. Only bells may have rung: then none is ready.
fn ask_kernel(
    fds: &mut [pollfd],
    streams: &[Polled],
    (bells, time): (&[PairBell], Option<Option<Duration>>),
    mask: Option<&sigset_t>,
) -> Result<usize, Errno> {
    let mut asked = fds.to_vec();
    let mut is_ready = false;
    for polled in streams {
        // One look decides both: between two, the peer may change the way.
        let (told, of_kernel) = polled.stream.events(polled.wanted);
        asked[polled.place].events = of_kernel.bits() as i16;
        if polled.is_ahead.get() && polled.stream.is_ahead_of_link(polled.fd) {
            // It would tell of that again at once.
            asked[polled.place].fd = -1;
        }
        is_ready |= !told.is_empty();
    }
    // Without a wait, signals stay pending.
    let (time, mask) = if is_ready { (None, None) } else { (time, mask) };
    match time {
        None => wait::poll(&mut asked, Some(Duration::ZERO), mask)?,
        Some(time) => slept(|| sleep_at(&mut asked, bells, (time, mask)))?,
    };
    for (fd, asked) in fds.iter_mut().zip(&asked) {
        fd.revents = asked.revents;
    }
    for polled in streams {
        let revents = &mut fds[polled.place].revents;
        let told = PollFlags::from_bits_retain(*revents as u16);
        let in_turn = polled.stream.in_turn(polled.fd, (polled.wanted, told));
        polled.is_ahead.set(polled.is_ahead.get() || in_turn != told);
        *revents = (in_turn | polled.told()).bits() as i16;
    }
    Ok(fds.iter().filter(|fd| fd.revents != 0).count())
}

/// A thread that is about to sleep for streams, and has told their peers.
struct Asleep<'a> {
    streams: &'a [Polled],
    bells: Vec<PairBell>,
    /// Which of the streams, in which direction, with which bell.
    lain_down: Vec<(usize, Direction, Sleeper)>,
}

impl<'a> Asleep<'a> {
    fn new(streams: &'a [Polled]) -> Self {
        let mut this = Self { streams, bells: Vec::new(), lain_down: Vec::new() };
        for (i, polled) in streams.iter().enumerate() {
            polled.stream.search();
            let pair = polled.stream.connection().place().map(|(pair, _)| pair);
            let bell = pair.and_then(waiter::bell_for);
            for direction in polled.directions() {
                polled.stream.lie_down(direction, &bell);
                this.lain_down.push((i, direction, bell.clone()));
            }
            let _ = polled.stream.connection().settle(memory::borrowed(polled.fd));
            let is_new = |bell: &Arc<Bell>| this.bells.iter().all(|(_, it)| !Arc::ptr_eq(it, bell));
            if let (Some(pair), Some(bell)) = (pair, bell.filter(is_new)) {
                this.bells.push((pair.clone(), bell));
            }
        }
        this
    }

    fn is_unsure(&self) -> bool {
        let mut all = self.lain_down.iter();
        all.any(|(i, direction, bell)| self.streams[*i].stream.is_unsure(*direction, bell))
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        for (i, direction, bell) in &self.lain_down {
            self.streams[*i].stream.get_up(*direction, bell);
        }
        self.bells.iter().for_each(|(_, bell)| bell.take_marks(|_| {}));
    }
}

/// The three sets of select(2), as lists of descriptors.
pub(crate) struct Sets {
    pub(crate) fds: Vec<pollfd>,
}

/// The meaning of each set of select(2) as events of poll(2).
pub(crate) const READ: i16 = libc::POLLIN | libc::POLLRDNORM | libc::POLLHUP | libc::POLLERR;
pub(crate) const WRITE: i16 = libc::POLLOUT | libc::POLLWRNORM | libc::POLLERR;
pub(crate) const EXCEPT: i16 = libc::POLLPRI;

impl Sets {
    /// The descriptors below `count` that are in one of the sets.
    pub(crate) fn new(count: i32, is_in: impl Fn(i32) -> [bool; 3]) -> Self {
        let events = |[read, write, except]: [bool; 3]| {
            let mut events = 0;
            for (is_in, bits) in
                [(read, libc::POLLIN), (write, libc::POLLOUT), (except, libc::POLLPRI)]
            {
                events |= if is_in { bits } else { 0 };
            }
            events
        };
        let of = |fd| match is_in(fd) {
            [false, false, false] => None,
            sets => Some(pollfd { fd, events: events(sets), revents: 0 }),
        };
        Self { fds: (0..count).filter_map(of).collect() }
    }

    /// Waits. The number of bits that `tell` was called for: descriptor, set.
    pub(crate) fn wait(
        &mut self,
        until: Until,
        mask: Option<&sigset_t>,
        mut tell: impl FnMut(i32, usize),
    ) -> Result<usize, Errno> {
        poll(&mut self.fds, until, mask)?;
        if self.fds.iter().any(|fd| fd.revents & libc::POLLNVAL != 0) {
            return Err(Errno::BADF);
        }
        let mut bits = 0;
        for fd in &self.fds {
            let asked = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
            for (set, means) in [READ, WRITE, EXCEPT].into_iter().enumerate() {
                if fd.events & asked[set] != 0 && fd.revents & means != 0 {
                    tell(fd.fd, set);
                    bits += 1;
                }
            }
        }
        Ok(bits)
    }
}

//! The program's wishes for a stream in a set, and what it was told.
use super::{IN, OUT};
use crate::stream::{Direction, Stream};
use crate::sys::wait;
use crate::watch::Sleeper;
use libc::{EPOLLET, EPOLLEXCLUSIVE, EPOLLONESHOT, EPOLLPRI, EPOLLRDHUP};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::sync::Arc;

/// Events other than of room, of which the kernel may tell though nobody wants them now.
const LEVEL_IN: u32 = IN | (EPOLLPRI | EPOLLRDHUP) as u32;

/// The wishes of the program for a stream.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) stream: Arc<Stream>,
    pub(super) wanted: u32,
    pub(super) data: u64,
    /// The events that the kernel was asked for. It may tell more than the program wants.
    pub(super) kernel: u32,
    /// The directions for which the set sleeps, each with the bell that is rung. None: it is hot.
    pub(super) asleep: Option<Vec<(Direction, Sleeper)>>,
    /// One-shot: it was told of, and the program has not asked again.
    pub(super) is_fired: bool,
    pub(super) is_fired_in_kernel: bool,
    /// It was added or changed since it was last told of.
    pub(super) is_fresh: bool,
    /// The kernel has told of room while the ring had none: it is asked again when it matters.
    pub(super) owes_room: bool,
    /// The kernel has told of bytes or an end before the link has: it is asked again behind that.
    is_ahead: bool,
    /// The peer knows that each call looks at the ring, as long as it has no bell.
    pub(super) is_looked_at: bool,
    /// Its ring was filled behind the last look.
    pub(super) is_late: bool,
    /// When it was last told of, and how many bytes had arrived, and how often a write had found
    /// no room, by then.
    pub(super) told_at: u64,
    pub(super) arrived: u64,
    pub(super) shortages: u32,
}

/// Events of epoll as events of poll, which have the same numbers.
pub(super) fn flags(events: u32) -> PollFlags {
    PollFlags::from_bits_truncate(events as u16)
}

impl Registration {
    pub(super) fn new(stream: &Arc<Stream>, (wanted, data): (u32, u64)) -> Self {
        Self {
            stream: stream.clone(),
            wanted,
            data,
            kernel: wanted,
            asleep: Some(Vec::new()),
            is_fired: false,
            is_fired_in_kernel: false,
            is_fresh: true,
            owes_room: false,
            is_ahead: false,
            is_looked_at: false,
            is_late: false,
            told_at: 0,
            arrived: 0,
            shortages: 0,
        }
    }

    /// Says that nobody sleeps for the stream in the set.
    pub(super) fn get_up(&mut self) {
        for (direction, sleeper) in self.asleep.take().into_iter().flatten() {
            self.stream.get_up(direction, &sleeper);
        }
    }

    /// Has the peer ring this bell for all that the program wants.
    pub(super) fn lie_down(&mut self, sleeper: &Sleeper) {
        let directions = self.directions();
        directions.iter().for_each(|direction| self.stream.lie_down_in_set(*direction, sleeper));
        let asleep = directions.into_iter().map(|direction| (direction, sleeper.clone()));
        self.asleep = Some(asleep.collect());
    }

    /// Has the kernel tell of what the ring does not.
    pub(super) fn ask_kernel(&mut self, epfd: i32, fd: i32) {
        let mask = self.mask(fd, self.wanted);
        // A one-shot event of the kernel's may have been one of room that the ring did not have.
        let is_silent = self.is_fired_in_kernel && !self.is_fired;
        let is_due = is_silent || (self.owes_room && mask & OUT != 0);
        if is_due || (!self.is_asked(mask) && !self.is_fired_in_kernel) {
            self.ask_exactly(epfd, fd);
        }
    }

    /// Has the kernel tell of what the ring does not, and of nothing else.
    pub(super) fn ask_exactly(&mut self, epfd: i32, fd: i32) {
        let mask = self.mask(fd, self.wanted);
        if wait::control(epfd, libc::EPOLL_CTL_MOD, fd, (mask, self.data)).is_ok() {
            self.kernel = mask;
            self.is_fired_in_kernel = false;
            self.owes_room &= mask & OUT == 0;
        }
    }

    /// Leaves it to the kernel, which is to tell just what the program wants.
    pub(super) fn hand_over(&self, epfd: i32, fd: i32) {
        let is_silent = self.is_fired_in_kernel || self.owes_room;
        if !self.is_fired && (is_silent || self.kernel != self.wanted) {
            let _ = wait::control(epfd, libc::EPOLL_CTL_MOD, fd, (self.wanted, self.data));
        }
    }

    /// Whether the kernel need not be asked again for these events. It may tell more, which are
    /// left out, but for room, which it has nearly always.
    fn is_asked(&self, mask: u32) -> bool {
        let more = self.kernel & !mask;
        let is_level = mask & (EPOLLET | EPOLLONESHOT) as u32 == 0;
        mask & !self.kernel == 0 && (more == 0 || (is_level && more & !LEVEL_IN == 0))
    }

    /// The program wants something else.
    pub(super) fn want(
        &mut self,
        (epfd, fd): (i32, i32),
        (wanted, data): (u32, u64),
    ) -> Result<(), Errno> {
        let kernel = self.mask(fd, wanted);
        let is_known = self.data == data
            && self.is_asked(kernel)
            && !self.is_fired_in_kernel
            // The kernel tells of what is there already.
            && wanted & EPOLLET as u32 == 0;
        if !is_known {
            wait::control(epfd, libc::EPOLL_CTL_MOD, fd, (kernel, data))?;
            self.kernel = kernel;
        }
        self.wanted = wanted;
        self.data = data;
        self.is_fired = false;
        self.is_fired_in_kernel = false;
        self.is_fresh = true;
        Ok(())
    }

    /// Whether the kernel may keep it for a while when the program removes it.
    pub(super) fn may_be_kept(&self) -> bool {
        let flags = (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE) as u32;
        (self.wanted | self.kernel) & flags == 0
    }

    /// Whether the set is to look at the cold stream again, without news.
    pub(super) fn is_unsure(&self) -> bool {
        let mut asleep = self.asleep.iter().flatten();
        asleep.any(|(direction, sleeper)| self.stream.is_unsure(*direction, sleeper))
    }

    /// The kernel has told of what the link is to tell first. It would tell that again at once.
    pub(super) fn put_off(&mut self, epfd: i32, fd: i32) {
        self.is_ahead = true;
        self.ask_exactly(epfd, fd);
    }

    /// The events that the kernel is to be asked for, if the program wants this.
    pub(super) fn mask(&mut self, fd: i32, wanted: u32) -> u32 {
        self.is_ahead = self.is_ahead && self.stream.is_ahead_of_link(fd);
        let mask = match wanted & OUT != 0 && !self.stream.ready(Direction::Out).1 {
            true => wanted & !OUT,
            false => wanted,
        };
        // A hang-up is told whether it is asked for or not, but once only.
        if self.is_ahead { mask & !LEVEL_IN | EPOLLONESHOT as u32 } else { mask }
    }

    /// The directions for which the peer is to ring.
    pub(super) fn directions(&self) -> Vec<Direction> {
        let mut directions = Vec::with_capacity(2);
        if self.wanted & IN != 0 {
            directions.push(Direction::In);
        }
        if self.wanted & OUT != 0 {
            directions.push(Direction::Out);
        }
        directions
    }

    /// Events that come by the ring and are to be told.
    pub(super) fn told(&mut self) -> u32 {
        if self.is_fired {
            return 0;
        }
        let told = u32::from(self.stream.events(flags(self.wanted)).0.bits());
        if told == 0 || self.wanted & EPOLLET as u32 == 0 {
            return told;
        }
        let (arrived, shortages) = (self.stream.connection().arrived(), self.stream.shortages());
        let is_in = told & IN != 0 && arrived != self.arrived;
        let is_out = told & OUT != 0 && shortages != self.shortages;
        if self.is_fresh || is_in || is_out { told } else { 0 }
    }

    /// Events that come by the ring and are to be told, and from when on they hold. One that came
    /// about behind the beginning of this look waits for the next one: others that came before it
    /// may have been looked at already.
    ///
    /// As in the kernel, an event that was told and still holds comes behind the others. So a
    /// stream that the program leaves alone keeps no place from the rest.
    // spec: SOCK-46
    pub(super) fn ready(&mut self, look: u64) -> Option<(u64, u32)> {
        self.be_looked_at();
        let told = self.told();
        let filled = if told & IN != 0 { self.stream.connection().since() } else { 0 };
        // A clock that is ahead, or a lie, puts an event off once.
        self.is_late = told != 0 && filled > look && !self.is_late;
        let since = filled.min(look).max(self.told_at);
        (told != 0 && !self.is_late).then_some((since, told))
    }

    /// Says once that the ring is looked at. A program that never sleeps gives no bell.
    fn be_looked_at(&mut self) {
        if !self.is_looked_at && self.stream.connection().place().is_some() {
            self.is_looked_at = true;
            self.stream.look(Direction::In);
        }
    }

    /// Remembers that it was told of, as it was found by the look of this time.
    pub(super) fn was_told(&mut self, told: u32, look: u64) {
        self.is_fresh = false;
        self.is_late = false;
        self.told_at = look;
        if told & IN != 0 {
            self.arrived = self.stream.connection().arrived();
        }
        if told & OUT != 0 {
            self.shortages = self.stream.shortages();
        }
        self.is_fired = self.wanted & EPOLLONESHOT as u32 != 0;
    }
}

//! An epoll of the program in which there are streams.
//!
//! The kernel's epoll has all descriptors, as the program has asked for them. In addition, a set
//! knows of each stream what the program wants of it, and tells its events that come by rings.
//!
//! A stream is *hot* while the set looks at its ring in each call. Before a thread sleeps in the
//! kernel's epoll, it asks the peers of all hot streams to ring a bell. The bell is in that epoll,
//! too. From then on they are cold: the set looks at a stream again when its bell was rung, or when
//! the kernel tells something of it. So a call costs as much as there are active streams.
use crate::stream::{Direction, Stream};
use crate::sys::{memory, wait};
use crate::waiter::{self, Intervals, Until, looked, slept};
use crate::watch::Sleeper;
use ayre::guest::fork::{Shared, generation};
use ayre::socket::{Bell, Pair, Reason};
use libc::{
    EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLRDNORM, EPOLLWRNORM, epoll_event, sigset_t,
};
use rustix::event::PollFlags;
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

/// The data of bells in the kernel's epoll: this, and the bell's place.
const BELL_DATA: u64 = 0xA79E_50C7_B311_0000;

const OUT: u32 = (EPOLLOUT | EPOLLWRNORM) as u32;
const IN: u32 = (EPOLLIN | EPOLLRDNORM) as u32;

/// The wishes of the program for a stream.
#[derive(Debug)]
struct Registration {
    stream: Arc<Stream>,
    wanted: u32,
    data: u64,
    /// The events that the kernel was asked for.
    kernel: u32,
    /// The directions for which the set sleeps, each with the bell that is rung. None: it is hot.
    asleep: Option<Vec<(Direction, Sleeper)>>,
    /// One-shot: it was told of, and the program has not asked again.
    is_fired: bool,
    is_fired_in_kernel: bool,
    /// It was added or changed since it was last told of.
    is_fresh: bool,
    /// The kernel has told of room while the ring had none: it is asked again when it matters.
    owes_room: bool,
    /// How many bytes had arrived, and how often a write had found no room, when it was last told.
    arrived: u64,
    shortages: u32,
}

#[derive(Debug, Default)]
struct Inner {
    registrations: HashMap<i32, Registration>,
    /// Descriptors by their data; a program that gives the same data twice does not care which.
    by_data: HashMap<u64, i32>,
    /// Descriptors by the place of their connections: a pair's address, and a slot.
    by_place: HashMap<(usize, u32), i32>,
    hot: Vec<i32>,
    /// Cold streams that are looked at again at intervals.
    unsure: Vec<i32>,
    /// For each place, which its data in the kernel's epoll names. Pairs end by themselves.
    bells: Vec<Option<(Weak<Pair>, Arc<Bell>)>>,
    /// Threads that sleep in the kernel's epoll.
    sleepers: u32,
    /// Something else than this set's own calls waits for the epoll.
    is_nested: bool,
}

/// An epoll with streams.
#[derive(Debug)]
pub(crate) struct Set {
    epfd: i32,
    generation: u64,
    inner: Shared<Inner>,
}

type Events = Vec<epoll_event>;

impl Drop for Set {
    fn drop(&mut self) {
        let mut inner = self.lock();
        inner.registrations.values_mut().for_each(Registration::get_up);
        if !self.is_inherited() {
            for (pair, bell) in inner.bells.drain(..).flatten() {
                waiter::give_back(pair.upgrade(), bell);
            }
        }
    }
}

impl Set {
    pub(crate) fn new(epfd: i32) -> Self {
        Self { epfd, generation: generation(), inner: Shared::new(Inner::default()) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Whether this is the set of a parent that has forked: its streams go by the kernel here.
    fn is_inherited(&self) -> bool {
        self.generation != generation()
    }

    /// Before a fork.
    pub(crate) fn lock_for_fork(&'static self) {
        self.inner.before_fork();
    }

    /// After a fork.
    pub(crate) fn unlock(&'static self) {
        self.inner.after_fork(|_| {});
    }

    /// Whether this is the descriptor by which the set calls its epoll.
    pub(crate) fn is_called(&self, fd: i32) -> bool {
        self.epfd == fd
    }

    /// Leaves all to the kernel: the epoll goes on by another name.
    pub(crate) fn dissolve(self: &Arc<Self>) {
        let mut inner = self.lock();
        inner.hot.clear();
        let mut registrations = std::mem::take(&mut inner.registrations);
        for known in registrations.values_mut() {
            known.get_up();
            known.stream.be_plain(Reason::SeveralWaiters);
            known.stream.part(self);
        }
        // The parent's set goes on, and has the same epoll.
        if self.is_inherited() {
            return;
        }
        for (pair, bell) in std::mem::take(&mut inner.bells).into_iter().flatten() {
            leave_bell(self.epfd, &bell);
            waiter::give_back(pair.upgrade(), bell);
        }
        for (fd, known) in registrations.iter().filter(|(_, known)| !known.is_fired) {
            let event = (known.wanted, known.data);
            let _ = wait::control(self.epfd, libc::EPOLL_CTL_MOD, *fd, event);
        }
    }

    /// Adds a stream.
    pub(crate) fn add(
        self: &Arc<Self>,
        fd: i32,
        stream: &Arc<Stream>,
        (wanted, data): (u32, u64),
    ) -> Result<(), Errno> {
        let mut inner = self.lock();
        wait::control(self.epfd, libc::EPOLL_CTL_ADD, fd, (wanted, data))?;
        let registration = Registration {
            stream: stream.clone(),
            wanted,
            data,
            kernel: wanted,
            asleep: Some(Vec::new()),
            is_fired: false,
            is_fired_in_kernel: false,
            is_fresh: true,
            owes_room: false,
            arrived: 0,
            shortages: 0,
        };
        inner.registrations.insert(fd, registration);
        inner.by_data.insert(data, fd);
        stream.join(self);
        if self.is_inherited() {
            stream.be_plain(Reason::SeveralWaiters);
        }
        inner.take_up(self.epfd, fd);
        Ok(())
    }

    /// Changes what the program wants of a descriptor. None where it is no stream of this set.
    pub(crate) fn change(&self, fd: i32, (wanted, data): (u32, u64)) -> Option<Result<(), Errno>> {
        let mut inner = self.lock();
        let registration = inner.registrations.get_mut(&fd)?;
        let kernel = registration.mask(wanted);
        let is_known = registration.data == data
            && registration.kernel == kernel
            && !registration.is_fired_in_kernel
            // The kernel tells of what is there already.
            && wanted & EPOLLET as u32 == 0;
        if !is_known {
            let done = wait::control(self.epfd, libc::EPOLL_CTL_MOD, fd, (kernel, data));
            if let Err(errno) = done {
                return Some(Err(errno));
            }
        }
        let last = registration.data;
        registration.wanted = wanted;
        registration.data = data;
        registration.kernel = kernel;
        registration.is_fired = false;
        registration.is_fired_in_kernel = false;
        registration.is_fresh = true;
        if last != data {
            inner.by_data.remove(&last);
            inner.by_data.insert(data, fd);
        }
        inner.take_up(self.epfd, fd);
        Some(Ok(()))
    }

    /// Removes a descriptor, whatever it is.
    pub(crate) fn remove(self: &Arc<Self>, fd: i32) {
        let mut inner = self.lock();
        let Some(mut gone) = inner.registrations.remove(&fd) else { return };
        gone.get_up();
        inner.by_data.remove(&gone.data);
        inner.hot.retain(|hot| *hot != fd);
        gone.stream.part(self);
    }

    /// Says that the epoll itself is waited for.
    pub(crate) fn be_nested(&self) {
        let mut inner = self.lock();
        inner.is_nested = true;
        inner.cool(self.epfd);
    }

    /// A thread is about to wait for a stream by itself. The set looks at it in its next call,
    /// unless a thread sleeps in the set.
    pub(crate) fn lend(&self, stream: &Stream) {
        let mut inner = self.lock();
        if inner.sleepers == 0 && !inner.is_nested {
            inner.names_of(stream).into_iter().for_each(|fd| inner.heat(fd));
        }
    }

    /// A stream has changed: the set looks at it, or asks its peer anew to ring.
    pub(crate) fn look_at(&self, stream: &Stream) {
        let mut inner = self.lock();
        inner.names_of(stream).into_iter().for_each(|fd| inner.take_up(self.epfd, fd));
    }

    /// epoll_pwait(2), for as many events as there is room for. The kernel writes there, too.
    pub(crate) fn wait(
        &self,
        room: &mut [epoll_event],
        until: Until,
        mask: Option<&sigset_t>,
    ) -> Result<Events, Errno> {
        let most = room.len();
        let mut events = Events::new();
        let mut intervals = Intervals::new();
        loop {
            let mut inner = self.lock();
            inner.collect(most, &mut events);
            if events.len() == most {
                inner.leave(self.epfd);
                return Ok(events);
            }
            // What came by the kernel before these events is told with them.
            let now = !events.is_empty() || until.is_over();
            if !now && inner.may_look() {
                drop(inner);
                if self.look() {
                    continue;
                }
                inner = self.lock();
            }
            let is_ready = !now && inner.cool(self.epfd);
            if is_ready {
                continue;
            }
            inner.sleepers += 1;
            let is_unsure = !inner.unsure.is_empty();
            drop(inner);
            let time = match now {
                true => Some(Duration::ZERO),
                false => intervals.next(is_unsure, until.left()),
            };
            let told = self.ask_kernel(&mut room[events.len()..], (now, time), mask);
            let mut inner = self.lock();
            inner.sleepers -= 1;
            inner.look_again();
            match told {
                Ok(told) => inner.take_in(self.epfd, told, &mut events),
                Err(errno) if events.is_empty() => return Err(errno),
                Err(_) => {}
            }
            inner.collect(most, &mut events);
            if !events.is_empty() || until.is_over() {
                inner.leave(self.epfd);
                return Ok(events);
            }
        }
    }

    /// epoll_pwait(2) while there are no streams. None where a stream has come meanwhile, and
    /// nothing is to be told yet.
    pub(crate) fn wait_idle(
        &self,
        room: &mut [epoll_event],
        until: Until,
        mask: Option<&sigset_t>,
    ) -> Option<Result<usize, Errno>> {
        let mut inner = self.lock();
        if !inner.registrations.is_empty() {
            return None;
        }
        inner.sleepers += 1;
        drop(inner);
        let told = wait::epoll(self.epfd, room, milliseconds(until.left()), mask);
        let mut inner = self.lock();
        inner.sleepers -= 1;
        let Ok(len) = told else { return Some(told) };
        if inner.registrations.is_empty() && inner.bells.is_empty() {
            return Some(told);
        }
        let mut events = Events::new();
        inner.take_in(self.epfd, &room[..len], &mut events);
        inner.collect(room.len(), &mut events);
        inner.leave(self.epfd);
        room[..events.len()].copy_from_slice(&events);
        (!events.is_empty() || until.is_over()).then_some(Ok(events.len()))
    }

    fn ask_kernel<'a>(
        &self,
        room: &'a mut [epoll_event],
        (now, time): (bool, Option<Duration>),
        mask: Option<&sigset_t>,
    ) -> Result<&'a [epoll_event], Errno> {
        let time = milliseconds(time);
        let len = match now {
            true => wait::epoll(self.epfd, room, time, mask)?,
            false => slept(|| wait::epoll(self.epfd, room, time, mask))?,
        };
        Ok(&room[..len])
    }

    /// Looks at the hot streams for a while.
    fn look(&self) -> bool {
        let hot: Vec<(Arc<Stream>, u32)> = {
            let inner = self.lock();
            let known = inner.hot.iter().filter_map(|fd| inner.registrations.get(fd));
            known.filter(|known| !known.is_fired).map(|it| (it.stream.clone(), it.wanted)).collect()
        };
        // Edge-triggered streams may be ready already, without news.
        let news = |(stream, wanted): &(Arc<Stream>, u32)| {
            (stream.connection().arrived(), *wanted, stream.events(flags(*wanted)).0)
        };
        let before: Vec<_> = hot.iter().map(news).collect();
        looked(|| hot.iter().map(news).ne(before.iter().copied()), || {})
    }
}

/// Adds events of a stream, once for each stream.
fn add(events: &mut Events, told: u32, data: u64) {
    match events.iter_mut().find(|event| { event.u64 } == data) {
        Some(event) => event.events |= told,
        None => events.push(epoll_event { events: told, u64: data }),
    }
}

/// A time, as epoll_wait(2) takes it. A wait is never shorter than asked.
fn milliseconds(time: Option<Duration>) -> i32 {
    let rounded_up = |left: Duration| left.as_nanos().div_ceil(1_000_000);
    time.map_or(-1, |left| rounded_up(left).min(i32::MAX as u128) as i32)
}

/// Events of epoll as events of poll, which have the same numbers.
fn flags(events: u32) -> PollFlags {
    PollFlags::from_bits_truncate(events as u16)
}

impl Registration {
    /// Says that nobody sleeps for the stream in the set.
    fn get_up(&mut self) {
        for (direction, sleeper) in self.asleep.take().into_iter().flatten() {
            self.stream.get_up(direction, &sleeper);
        }
    }

    /// Has the peer ring this bell for all that the program wants.
    fn lie_down(&mut self, sleeper: &Sleeper) {
        let directions = self.directions();
        directions.iter().for_each(|direction| self.stream.lie_down_in_set(*direction, sleeper));
        let asleep = directions.into_iter().map(|direction| (direction, sleeper.clone()));
        self.asleep = Some(asleep.collect());
    }

    /// Has the kernel tell of what the ring does not.
    fn ask_kernel(&mut self, epfd: i32, fd: i32) {
        let mask = self.mask(self.wanted);
        // A one-shot event of the kernel's may have been one of room that the ring did not have.
        let is_silent = self.is_fired_in_kernel && !self.is_fired;
        let is_due = is_silent || (self.owes_room && mask & OUT != 0);
        if (is_due || (mask != self.kernel && !self.is_fired_in_kernel))
            && wait::control(epfd, libc::EPOLL_CTL_MOD, fd, (mask, self.data)).is_ok()
        {
            self.kernel = mask;
            self.is_fired_in_kernel = false;
            self.owes_room &= mask & OUT == 0;
        }
    }

    /// Whether the set is to look at the cold stream again, without news.
    fn is_unsure(&self) -> bool {
        let mut asleep = self.asleep.iter().flatten();
        asleep.any(|(direction, sleeper)| self.stream.is_unsure(*direction, sleeper))
    }

    /// The events that the kernel is to be asked for, if the program wants this.
    fn mask(&self, wanted: u32) -> u32 {
        match wanted & OUT != 0 && !self.stream.ready(Direction::Out).1 {
            true => wanted & !OUT,
            false => wanted,
        }
    }

    /// The directions for which the peer is to ring.
    fn directions(&self) -> Vec<Direction> {
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
    fn told(&mut self) -> u32 {
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

    /// Remembers that it was told of.
    fn was_told(&mut self, told: u32) {
        self.is_fresh = false;
        if told & IN != 0 {
            self.arrived = self.stream.connection().arrived();
        }
        if told & OUT != 0 {
            self.shortages = self.stream.shortages();
        }
        self.is_fired = self.wanted & EPOLLONESHOT as u32 != 0;
    }
}

/// A bell wakes this epoll no longer.
fn leave_bell(epfd: i32, bell: &Bell) {
    let _ = wait::control(epfd, libc::EPOLL_CTL_DEL, bell.fd().as_raw_fd(), (0, 0));
}

impl Inner {
    fn may_look(&self) -> bool {
        self.hot.iter().any(|fd| {
            let known = self.registrations.get(fd);
            known.is_some_and(|known| known.stream.connection().place().is_some())
        })
    }

    /// The descriptors by which the set has a stream.
    fn names_of(&self, stream: &Stream) -> Vec<i32> {
        let of = |(_, known): &(&i32, &Registration)| std::ptr::eq(&*known.stream, stream);
        self.registrations.iter().filter(of).map(|(fd, _)| *fd).collect()
    }

    fn heat(&mut self, fd: i32) {
        if let Some(known) = self.registrations.get_mut(&fd)
            && known.asleep.is_some()
        {
            known.get_up();
            self.hot.push(fd);
        }
    }

    /// Looks in the next call at the streams of which the set was not sure to hear.
    fn look_again(&mut self) {
        std::mem::take(&mut self.unsure).into_iter().for_each(|fd| self.heat(fd));
    }

    /// A stream that is new, or of which something else is wanted.
    fn take_up(&mut self, epfd: i32, fd: i32) {
        self.heat(fd);
        if self.sleepers > 0 || self.is_nested {
            self.cool(epfd);
        }
    }

    /// This set's bell for the peer of a pair.
    fn bell_for(&mut self, epfd: i32, pair: &Arc<Pair>) -> Option<Arc<Bell>> {
        let is_of = |(of, _): &&(Weak<Pair>, _)| of.as_ptr() == Arc::as_ptr(pair);
        if let Some((_, bell)) = self.bells.iter().flatten().find(is_of) {
            return Some(bell.clone());
        }
        self.forget_gone(epfd);
        let bell = Arc::new(pair.bell()?);
        let free = self.bells.iter().position(Option::is_none);
        let place = free.unwrap_or(self.bells.len());
        let (wanted, data) = ((EPOLLIN | EPOLLET) as u32, BELL_DATA + place as u64);
        wait::control(epfd, libc::EPOLL_CTL_ADD, bell.fd().as_raw_fd(), (wanted, data)).ok()?;
        self.bells.resize(self.bells.len().max(place + 1), None);
        self.bells[place] = Some((Arc::downgrade(pair), bell.clone()));
        Some(bell)
    }

    /// Forgets the bells of pairs that have ended: peers come and go.
    fn forget_gone(&mut self, epfd: i32) {
        let is_gone = |known: &mut (Weak<Pair>, _)| known.0.strong_count() == 0;
        for (pair, bell) in self.bells.iter_mut().filter_map(|known| known.take_if(is_gone)) {
            leave_bell(epfd, &bell);
            self.by_place.retain(|(of, _), _| *of != pair.as_ptr().addr());
        }
    }

    /// Asks the peers of all hot streams to ring. Where a stream is ready already, and threads
    /// sleep, its bell is rung here. Whether one is ready while nobody sleeps.
    fn cool(&mut self, epfd: i32) -> bool {
        let mut ready = Vec::new();
        for fd in std::mem::take(&mut self.hot) {
            let Some(known) = self.registrations.get(&fd) else { continue };
            let stream = known.stream.clone();
            stream.search();
            let place = stream.connection().place();
            let bell = place.and_then(|(pair, slot)| {
                self.by_place.insert((Arc::as_ptr(pair).addr(), slot), fd);
                self.bell_for(epfd, pair)
            });
            let Some(known) = self.registrations.get_mut(&fd) else { continue };
            known.lie_down(&bell);
            let Some((pair, slot)) = place else { continue };
            let _ = stream.connection().settle(memory::borrowed(fd));
            known.ask_kernel(epfd, fd);
            if known.is_unsure() {
                self.unsure.push(fd);
            }
            if known.told() != 0 {
                match bell {
                    Some(bell) if self.sleepers > 0 || self.is_nested => pair.ring_own(&bell, slot),
                    _ => ready.push(fd),
                }
            }
        }
        let is_ready = !ready.is_empty();
        ready.into_iter().for_each(|fd| self.heat(fd));
        is_ready
    }

    /// Before events are returned: other threads that sleep hear of what comes meanwhile.
    fn leave(&mut self, epfd: i32) {
        if self.sleepers > 0 || self.is_nested {
            self.cool(epfd);
        }
    }

    /// Adds the events of hot streams that come by rings.
    fn collect(&mut self, most: usize, events: &mut Events) {
        let mut last = 0;
        for i in 0..self.hot.len() {
            if events.len() == most {
                last = i;
                break;
            }
            let Some(known) = self.registrations.get_mut(&self.hot[i]) else { continue };
            let told = known.told();
            if told == 0 {
                continue;
            }
            known.was_told(told);
            add(events, told, known.data);
        }
        // The next call begins with those that found no room.
        self.hot.rotate_left(last);
    }

    /// Takes in what the kernel tells: rings of bells, and events, of which those of streams are
    /// checked.
    fn take_in(&mut self, epfd: i32, told: &[epoll_event], events: &mut Events) {
        for event in told {
            let data = event.u64;
            let place = data.wrapping_sub(BELL_DATA) as usize;
            if let Some(known) = self.bells.get(place) {
                let living =
                    |(pair, bell): &(Weak<Pair>, _)| Some((pair.upgrade()?, Arc::clone(bell)));
                if let Some((pair, bell)) = known.as_ref().and_then(living) {
                    self.on_rung(&pair, &bell);
                }
                continue;
            }
            match self.by_data.get(&data).copied() {
                Some(fd) => self.on_kernel(epfd, fd, event.events, events),
                None => events.push(*event),
            }
        }
    }

    fn on_rung(&mut self, pair: &Arc<Pair>, bell: &Arc<Bell>) {
        let mut rung = Vec::new();
        pair.take_rung(bell, |slot| rung.push(slot));
        for slot in rung {
            // A descriptor that was closed since may be another stream's now, which only is looked
            // at in vain.
            if let Some(fd) = self.by_place.get(&(Arc::as_ptr(pair).addr(), slot)).copied() {
                self.heat(fd);
            }
        }
    }

    fn on_kernel(&mut self, epfd: i32, fd: i32, mut told: u32, events: &mut Events) {
        self.heat(fd);
        let Some(known) = self.registrations.get_mut(&fd) else { return };
        known.is_fired_in_kernel |= known.wanted & EPOLLONESHOT as u32 != 0;
        if told & OUT != 0 && !known.stream.ready(Direction::Out).1 {
            told &= !OUT;
            known.owes_room = true;
            let mask = known.mask(known.wanted);
            let level = (EPOLLET | EPOLLONESHOT) as u32;
            if known.wanted & level == 0 {
                let changed = wait::control(epfd, libc::EPOLL_CTL_MOD, fd, (mask, known.data));
                known.kernel = if changed.is_ok() { mask } else { known.kernel };
            }
        }
        if known.is_fired || told == 0 {
            return;
        }
        told |= known.told();
        known.was_told(told);
        add(events, told, known.data);
    }
}

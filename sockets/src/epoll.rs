//! An epoll of the program in which there are streams.
//!
//! The kernel's epoll has all descriptors, as the program has asked for them. In addition, a set
//! knows of each stream what the program wants of it, and tells its events that come by rings.
//!
//! A stream is *hot* while the set looks at its ring in each call. Before a thread sleeps in the
//! kernel's epoll, it asks the peers of all hot streams to ring a bell. The bell is in that epoll,
//! too. From then on they are cold: the set looks at a stream again when its bell was rung, or when
//! the kernel tells something of it. So a call costs as much as there are active streams.
//!
//! | file | subject |
//! |---|---|
//! | `epoll/registration.rs` | what the program wants of a stream, and what it was told |
//! | `epoll/streams.rs` | the streams of a set: which have events, and the bells of cold ones |
//! | `epoll/told.rs` | the events of a call, in their order |
mod registration;
mod streams;
mod told;

use self::registration::{Registration, flags};
use self::streams::{Streams, leave_bell};
use self::told::Told;
use crate::stream::Stream;
use crate::sys::wait;
use crate::waiter::{self, Intervals, Until, looked, slept};
use ayre::guest::fork::{Shared, generation};
use ayre::socket::{Bell, Reason};
use libc::{EPOLLIN, EPOLLOUT, EPOLLRDNORM, EPOLLWRNORM, epoll_event, sigset_t};
use rustix::io::Errno;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// The data of bells in the kernel's epoll: this, and the bell's place.
const BELL_DATA: u64 = 0xA79E_50C7_B311_0000;
const BELLS_DATA: u64 = 1 << 16;
/// The data of the links with other hosts.
const LINKS_DATA: u64 = 0xA79E_50C7_B312_0000;

const OUT: u32 = (EPOLLOUT | EPOLLWRNORM) as u32;
const IN: u32 = (EPOLLIN | EPOLLRDNORM) as u32;

/// An epoll with streams.
#[derive(Debug)]
pub(crate) struct Set {
    epfd: i32,
    generation: u64,
    streams: Shared<Streams>,
}

impl Drop for Set {
    fn drop(&mut self) {
        let mut streams = self.lock();
        streams.registrations.values_mut().for_each(Registration::get_up);
        if !self.is_inherited() {
            for (pair, bell) in streams.bells.drain(..).flatten() {
                waiter::give_back(pair.upgrade(), bell);
            }
        }
    }
}

impl Set {
    pub(crate) fn new(epfd: i32) -> Self {
        Self { epfd, generation: generation(), streams: Shared::new(Streams::default()) }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock()
    }

    /// Whether this is the set of a parent that has forked: its streams go by the kernel here.
    fn is_inherited(&self) -> bool {
        self.generation != generation()
    }

    /// Before a fork.
    pub(crate) fn lock_for_fork(&'static self) {
        self.settle();
        self.streams.before_fork();
    }

    /// After a fork.
    pub(crate) fn unlock(&'static self) {
        self.streams.after_fork(|streams| streams.has_foreign_bells = self.is_inherited());
    }

    /// Whether this is the descriptor by which the set calls its epoll.
    pub(crate) fn is_called(&self, fd: i32) -> bool {
        self.epfd == fd
    }

    /// Leaves all to the kernel: the epoll goes on by another name.
    pub(crate) fn dissolve(self: &Arc<Self>) {
        let mut streams = self.lock();
        streams.hot.clear();
        let mut registrations = std::mem::take(&mut streams.registrations);
        for known in registrations.values_mut() {
            known.get_up();
            known.stream.be_plain(Reason::SeveralWaiters);
            known.stream.part(self);
        }
        // The parent's set goes on, and has the same epoll.
        if self.is_inherited() {
            return;
        }
        streams.forget_all(self.epfd);
        streams.leave_links(self.epfd);
        for (pair, bell) in std::mem::take(&mut streams.bells).into_iter().flatten() {
            leave_bell(self.epfd, &bell);
            waiter::give_back(pair.upgrade(), bell);
        }
        registrations.iter().for_each(|(fd, known)| known.hand_over(self.epfd, *fd));
    }

    /// Adds a stream.
    pub(crate) fn add(
        self: &Arc<Self>,
        fd: i32,
        stream: &Arc<Stream>,
        (wanted, data): (u32, u64),
    ) -> Result<(), Errno> {
        let mut streams = self.lock();
        let registration = streams.register((self.epfd, fd), stream, (wanted, data))?;
        self.keep(&mut streams, fd, registration);
        Ok(())
    }

    fn keep(self: &Arc<Self>, streams: &mut Streams, fd: i32, registration: Registration) {
        let stream = registration.stream.clone();
        streams.by_data.insert(registration.data, fd);
        streams.registrations.insert(fd, registration);
        stream.join(self);
        if self.is_inherited() {
            stream.be_plain(Reason::SeveralWaiters);
        }
        streams.take_up(self.epfd, fd);
    }

    /// Changes what the program wants of a descriptor. None where it is no stream.
    pub(crate) fn change(
        self: &Arc<Self>,
        fd: i32,
        stream: Option<&Arc<Stream>>,
        (wanted, data): (u32, u64),
    ) -> Option<Result<(), Errno>> {
        let mut streams = self.lock();
        if streams.kept.contains_key(&fd) {
            return Some(Err(Errno::NOENT));
        }
        let Some(known) = streams.registrations.get(&fd) else {
            // Another process that has the epoll has added it.
            let event = (wanted, data);
            streams.free_data(self.epfd, data);
            let added = stream.map(|stream| {
                wait::control(self.epfd, libc::EPOLL_CTL_MOD, fd, event)?;
                self.keep(&mut streams, fd, Registration::new(stream, event));
                Ok(())
            });
            return added;
        };
        let last = known.data;
        if last != data {
            streams.free_data(self.epfd, data);
        }
        let registration = streams.registrations.get_mut(&fd)?;
        if let Err(errno) = registration.want((self.epfd, fd), (wanted, data)) {
            return Some(Err(errno));
        }
        if last != data {
            streams.by_data.remove(&last);
            streams.by_data.insert(data, fd);
        }
        streams.take_up(self.epfd, fd);
        Some(Ok(()))
    }

    /// The program removes a descriptor. None where it is no stream of this set. The kernel keeps
    /// it until it tells something of it: some programs add it again at once, for each request.
    // spec: SOCK-47
    pub(crate) fn delete(
        self: &Arc<Self>,
        fd: i32,
        stream: Option<&Arc<Stream>>,
    ) -> Option<Result<(), Errno>> {
        let mut streams = self.lock();
        if streams.kept.contains_key(&fd) {
            return Some(Err(Errno::NOENT));
        }
        let gone = streams.take_out(fd)?;
        // The number may be another file's since.
        let is_same = stream.is_some_and(|stream| Arc::ptr_eq(stream, &gone.stream));
        if is_same && gone.may_be_kept() && !streams.is_nested && !self.is_inherited() {
            gone.stream.be_kept(self);
            streams.by_data.insert(gone.data, fd);
            streams.kept.insert(fd, gone);
            return Some(Ok(()));
        }
        gone.stream.part(self);
        Some(wait::control(self.epfd, libc::EPOLL_CTL_DEL, fd, (0, 0)))
    }

    /// Has the kernel forget what it keeps of a descriptor, which is about to be something else.
    pub(crate) fn forget(&self, fd: i32) {
        self.lock().forget(self.epfd, fd);
    }

    /// A descriptor that is no stream is about to have these data.
    pub(crate) fn free_data(&self, data: u64) {
        self.lock().free_data(self.epfd, data);
    }

    /// Others are about to use the epoll: the kernel has just what the program has asked for.
    pub(crate) fn settle(&self) {
        self.lock().settle(self.epfd);
    }

    /// The set has a descriptor no longer, whatever it is.
    pub(crate) fn remove(self: &Arc<Self>, fd: i32) {
        let mut streams = self.lock();
        streams.forget(self.epfd, fd);
        if let Some(gone) = streams.take_out(fd) {
            gone.stream.part(self);
        }
    }

    /// A descriptor is the kernel's alone from now on.
    pub(crate) fn hand_over(self: &Arc<Self>, fd: i32) {
        let mut streams = self.lock();
        streams.forget(self.epfd, fd);
        if let Some(gone) = streams.take_out(fd) {
            // The parent's set goes on, and has the same epoll.
            if !self.is_inherited() {
                gone.hand_over(self.epfd, fd);
            }
            gone.stream.part(self);
        }
    }

    /// Says that the epoll itself is waited for.
    pub(crate) fn be_nested(&self) {
        let mut streams = self.lock();
        if !streams.is_nested {
            streams.is_nested = true;
            streams.settle(self.epfd);
        }
        streams.cool(self.epfd);
    }

    /// A thread is about to wait for a stream by itself. The set looks at it in its next call,
    /// unless a thread sleeps in the set.
    pub(crate) fn lend(&self, stream: &Stream) {
        let mut streams = self.lock();
        if streams.sleepers == 0 && !streams.is_nested {
            streams.names_of(stream).into_iter().for_each(|fd| streams.heat(fd));
        }
    }

    /// A stream has changed: the set looks at it, or asks its peer anew to ring.
    pub(crate) fn look_at(&self, stream: &Stream) {
        let mut streams = self.lock();
        streams.names_of(stream).into_iter().for_each(|fd| streams.take_up(self.epfd, fd));
    }

    /// epoll_pwait(2), for as many events as there is room for. The kernel writes there, too.
    pub(crate) fn wait(
        &self,
        room: &mut [epoll_event],
        until: Until,
        mask: Option<&sigset_t>,
    ) -> Result<usize, Errno> {
        let mut events = Told::new(room.len());
        let mut intervals = Intervals::new();
        loop {
            let mut streams = self.lock();
            let left = usize::from(std::mem::take(&mut streams.owes_kernel));
            streams.tell_rings(left, &mut events);
            if events.room() == 0 {
                streams.owes_kernel = true;
                streams.leave(self.epfd);
                return Ok(events.put(room));
            }
            // What came by the kernel before these events is told with them.
            let now = !events.is_empty() || left > 0 || until.is_over();
            if !now && streams.may_look() {
                drop(streams);
                if self.look() {
                    continue;
                }
                streams = self.lock();
            }
            let is_ready = !now && (streams.cool(self.epfd) || streams.lie_down());
            if is_ready {
                continue;
            }
            streams.sleepers += 1;
            let is_unsure = !streams.unsure.is_empty();
            if !now {
                streams.rest(self.epfd);
            }
            drop(streams);
            let time = match now {
                true => Some(Duration::ZERO),
                false => intervals.next(is_unsure, until.left()),
            };
            let told = self.ask_kernel(&mut room[events.len()..], (now, time), mask);
            let mut streams = self.lock();
            streams.get_up();
            streams.look_again();
            match told {
                Ok(told) => streams.take_in(self.epfd, told, &mut events),
                Err(errno) if events.is_empty() => return Err(errno),
                Err(_) => {}
            }
            streams.tell_rings(0, &mut events);
            if !events.is_empty() || until.is_over() {
                streams.leave(self.epfd);
                return Ok(events.put(room));
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
        let mut streams = self.lock();
        if !streams.registrations.is_empty() {
            return None;
        }
        streams.sleepers += 1;
        drop(streams);
        let told = wait::epoll(self.epfd, room, milliseconds(until.left()), mask);
        let mut streams = self.lock();
        streams.get_up();
        let Ok(len) = told else { return Some(told) };
        let has_none = streams.registrations.is_empty() && streams.kept.is_empty();
        if has_none && streams.bells.is_empty() {
            return Some(told);
        }
        let mut events = Told::new(room.len());
        streams.take_in(self.epfd, &room[..len], &mut events);
        streams.tell_rings(0, &mut events);
        streams.leave(self.epfd);
        (!events.is_empty() || until.is_over()).then(|| Ok(events.put(room)))
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
        let streams = self.lock();
        let known = streams.hot.iter().filter_map(|fd| streams.registrations.get(fd));
        let known = known.filter(|known| !known.is_fired);
        let hot: Vec<_> = known.map(|known| (known.stream.clone(), known.wanted)).collect();
        let bells: Vec<Arc<Bell>> = streams.own_bells().cloned().collect();
        drop(streams);
        // Edge-triggered streams may be ready already, without news.
        let news = |(stream, wanted): &(Arc<Stream>, u32)| {
            (stream.connection().arrived(), *wanted, stream.events(flags(*wanted)).0)
        };
        let before: Vec<_> = hot.iter().map(news).collect();
        let is_marked = || bells.iter().any(|bell| bell.is_marked());
        looked(|| is_marked() || hot.iter().map(news).ne(before.iter().copied()), || {})
    }
}

/// A time, as epoll_wait(2) takes it. A wait is never shorter than asked.
fn milliseconds(time: Option<Duration>) -> i32 {
    let rounded_up = |left: Duration| left.as_nanos().div_ceil(1_000_000);
    time.map_or(-1, |left| rounded_up(left).min(i32::MAX as u128) as i32)
}

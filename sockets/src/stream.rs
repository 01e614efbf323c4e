//! A stream socket of the program that has, or may get, a peer with this library.
use crate::epoll::Set;
use crate::listener::Listener;
use crate::sys::memory;
use crate::table;
use crate::waiter::{self, Until};
use ayre::guest::fork::Shared;
use ayre::socket::{Addresses, Bell, Connection, Pair, Ready};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{RecvFlags, SendFlags, sockopt};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// How often an accepted connection looks for its offer before it stays with the kernel.
const LOOKS: u32 = 256;

/// An accepted connection whose offer was not found yet.
#[derive(Debug)]
struct Search {
    addresses: Addresses,
    code: u16,
    listener: Arc<Listener>,
    looks_left: u32,
}

/// The direction for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// The bells of threads that sleep until a direction of the stream is ready.
type Sleepers = Vec<Arc<Bell>>;

/// A stream socket.
#[derive(Debug)]
pub(crate) struct Stream {
    connection: Connection,
    /// Descriptors of this process that refer to it.
    names: AtomicU32,
    is_searching: AtomicBool,
    search: Shared<Option<Search>>,
    /// Bytes come by the kernel: more than one waits for them, or something odd was done.
    is_plain: AtomicBool,
    /// How often a write has found no room.
    shortages: AtomicU32,
    sleepers: Shared<[Sleepers; 2]>,
    sets: Shared<Vec<Weak<Set>>>,
}

impl Stream {
    fn new(search: Option<Search>) -> Option<Self> {
        Some(Self {
            connection: Connection::new()?,
            names: AtomicU32::new(1),
            is_searching: AtomicBool::new(search.is_some()),
            search: Shared::new(search),
            is_plain: AtomicBool::new(false),
            shortages: AtomicU32::new(0),
            sleepers: Shared::new([Vec::new(), Vec::new()]),
            sets: Shared::new(Vec::new()),
        })
    }

    /// The end that has connected. None where there is no room for its offer.
    pub(crate) fn connected(pair: &Arc<Pair>, addresses: &Addresses) -> Option<Self> {
        let this = Self::new(None)?;
        if this.connection.offer(pair, addresses) {
            return Some(this);
        }
        None
    }

    /// The end that was accepted, with the code of its SYN.
    pub(crate) fn accepted(
        listener: &Arc<Listener>,
        addresses: Addresses,
        code: u16,
    ) -> Option<Self> {
        let listener = listener.clone();
        let this = Self::new(Some(Search { addresses, code, listener, looks_left: LOOKS }))?;
        this.search();
        Some(this)
    }

    /// Looks for the offer of an accepted connection, if it was not found yet.
    pub(crate) fn search(&self) {
        if !self.is_searching.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut search) = self.search.try_lock() else { return };
        let Some(look) = search.as_mut() else { return };
        look.looks_left -= 1;
        let is_found = look.listener.find(look.code, &look.addresses, &self.connection);
        if is_found || look.looks_left == 0 {
            self.is_searching.store(false, Ordering::Relaxed);
            *search = None;
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Counts another descriptor.
    pub(crate) fn add_name(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one descriptor less; whether it was the last.
    pub(crate) fn remove_name(&self) -> bool {
        self.names.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// How often a write has found no room.
    pub(crate) fn shortages(&self) -> u32 {
        self.shortages.load(Ordering::Relaxed)
    }

    /// Reads into these pieces. Waits where the socket is a blocking one.
    pub(crate) fn read(
        &self,
        mut fd: i32,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> Result<usize, Errno> {
        let mut until = Until::Unknown;
        loop {
            match self.connection.read(memory::borrowed(fd), into, flags) {
                Err(Errno::AGAIN) if !flags.contains(RecvFlags::DONTWAIT) => {}
                done => return done,
            }
            self.wait(fd, Direction::In, &mut until)?;
            fd = self.name(fd)?;
        }
    }

    /// A descriptor of the stream: this one, unless another thread has closed it meanwhile.
    fn name(&self, fd: i32) -> Result<i32, Errno> {
        match table::is(fd, self) {
            true => Ok(fd),
            false => table::name_of(self).ok_or(Errno::BADF),
        }
    }

    /// Writes all of these pieces. Where the socket does not block, or an error comes, only some.
    pub(crate) fn write(
        &self,
        mut fd: i32,
        from: &[IoSlice<'_>],
        flags: SendFlags,
    ) -> Result<usize, Errno> {
        let total: usize = from.iter().map(|piece| piece.len()).sum();
        let mut until = Until::Unknown;
        let mut done = 0;
        loop {
            let socket = memory::borrowed(fd);
            let result = match done {
                0 => self.connection.write(socket, from, flags),
                _ => self.connection.write(socket, &behind(from, done), flags),
            };
            match result {
                Ok(len) => done += len,
                Err(Errno::AGAIN) => {}
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
            if done == total {
                return Ok(done);
            }
            self.shortages.fetch_add(1, Ordering::Relaxed);
            let waited = match flags.contains(SendFlags::DONTWAIT) {
                true => Err(Errno::AGAIN),
                false => self.wait(fd, Direction::Out, &mut until),
            };
            match waited.and_then(|()| self.name(fd)) {
                Ok(name) => fd = name,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
        }
    }

    /// Waits until a direction may be ready. `EAGAIN` where the socket does not block, or its time
    /// is up.
    fn wait(&self, fd: i32, direction: Direction, until: &mut Until) -> Result<(), Errno> {
        let socket = memory::borrowed(fd);
        if *until == Until::Unknown {
            if fcntl_getfl(socket).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)) {
                return Err(Errno::AGAIN);
            }
            let timeout = sockopt::Timeout::Recv;
            let timeout = if direction == Direction::In { timeout } else { sockopt::Timeout::Send };
            *until = Until::after(sockopt::socket_timeout(socket, timeout).ok().flatten());
        }
        waiter::wait_for(self, fd, direction, *until)
    }

    /// Whether a direction is ready by the ring, and events that the kernel may tell of it.
    #[inline]
    pub(crate) fn ready(&self, direction: Direction) -> (bool, bool) {
        match direction {
            Direction::In => (self.connection.is_readable(), true),
            Direction::Out => match self.connection.writable() {
                Ready::Yes => (true, false),
                Ready::No => (false, false),
                Ready::AskKernel => (false, true),
            },
        }
    }

    /// The events among these that the ring tells, and those for which the kernel is to be asked.
    #[inline]
    pub(crate) fn events(&self, wanted: PollFlags) -> (PollFlags, PollFlags) {
        let outward = PollFlags::OUT | PollFlags::WRNORM;
        let inward = PollFlags::IN | PollFlags::RDNORM;
        let (mut told, mut asked) = (PollFlags::empty(), wanted);
        if wanted.intersects(inward) && self.connection.is_readable() {
            told |= wanted & inward;
        }
        if wanted.intersects(outward) {
            let (is_ready, is_kernel) = self.ready(Direction::Out);
            if is_ready {
                told |= wanted & outward;
            }
            if !is_kernel {
                asked -= outward;
            }
        }
        (told, asked)
    }

    /// Tells the peer that a thread looks for a direction by itself.
    pub(crate) fn look(&self, direction: Direction) {
        if direction == Direction::In && !self.is_plain.load(Ordering::Relaxed) {
            self.connection.want_bytes(None);
        }
    }

    /// Has the peer ring a bell for these directions. False where the peer cannot: what comes then
    /// comes by the kernel.
    pub(crate) fn ask(&self, bell: Option<&Arc<Bell>>, directions: &[Direction]) -> bool {
        self.search();
        for direction in directions {
            match (direction, bell) {
                (Direction::In, Some(bell)) if !self.is_plain.load(Ordering::Relaxed) => {
                    self.connection.want_bytes(Some(bell));
                }
                (Direction::In, _) => self.connection.want_kernel(),
                (Direction::Out, Some(bell)) => self.connection.want_room(Some(bell)),
                (Direction::Out, None) => self.connection.leave_writing(),
            }
        }
        bell.is_some()
    }

    /// As [`Self::ask`], for an epoll. Where a thread sleeps for the stream by itself, both wait
    /// for the kernel.
    pub(crate) fn ask_for_set(&self, bell: Option<&Arc<Bell>>, directions: &[Direction]) {
        let is_awaited = !self.sleepers.lock().iter().all(Vec::is_empty);
        if is_awaited {
            self.be_plain();
            self.rouse(None);
        }
        self.ask(bell.filter(|_| !is_awaited), directions);
    }

    /// Says that nobody sleeps for these directions any more.
    pub(crate) fn stop_asking(&self, directions: &[Direction]) {
        let [bytes, room] = self.connection.bells();
        let is_plain = self.is_plain.load(Ordering::Relaxed);
        if directions.contains(&Direction::In) && bytes.is_some() && !is_plain {
            self.connection.want_bytes(None);
        }
        if directions.contains(&Direction::Out) && room.is_some() {
            self.connection.want_room(None);
        }
    }

    /// Says that a thread is about to sleep for a direction. Where another one does so already,
    /// both wait for the kernel, and one that hears of bytes in the ring wakes the other. False
    /// in that
    /// case.
    pub(crate) fn lie_down(&self, direction: Direction, bell: &Arc<Bell>) -> bool {
        // An epoll that nobody sleeps at looks at the stream in its next call.
        let is_lent = self.sets().iter().all(|set| set.lend(self));
        let mut sleepers = self.sleepers.lock();
        let here = &mut sleepers[direction as usize];
        here.push(bell.clone());
        let is_alone = is_lent && here.len() == 1;
        drop(sleepers);
        if !is_alone {
            self.be_plain();
            self.rouse(Some(bell));
        }
        is_alone
    }

    /// The thread of [`Self::lie_down`] is awake.
    pub(crate) fn get_up(&self, direction: Direction, bell: &Arc<Bell>) {
        let mut sleepers = self.sleepers.lock();
        let here = &mut sleepers[direction as usize];
        if let Some(place) = here.iter().position(|sleeper| Arc::ptr_eq(sleeper, bell)) {
            here.swap_remove(place);
        }
        drop(sleepers);
        // Only this bell may have been rung.
        if self.is_plain.load(Ordering::Relaxed) && self.ready(direction).0 {
            self.rouse(Some(bell));
            self.sets().iter().for_each(|set| set.rouse(self));
        }
    }

    /// Wakes the threads that sleep for the stream, but for the one with this bell.
    pub(crate) fn rouse(&self, but: Option<&Arc<Bell>>) {
        let sleepers = self.sleepers.lock().clone();
        let others = sleepers.iter().flatten();
        let is_other = |bell: &&Arc<Bell>| but.is_none_or(|but| !Arc::ptr_eq(but, bell));
        others.filter(is_other).for_each(|bell| self.wake_own(bell));
    }

    /// Rings a bell of this process for this stream.
    pub(crate) fn wake_own(&self, bell: &Bell) {
        if let Some((pair, slot)) = self.connection.place() {
            pair.ring_own(bell, slot);
        }
    }

    /// From now on, all bytes that come, come by the kernel, and all bytes go there.
    pub(crate) fn be_plain(&self) {
        self.is_plain.store(true, Ordering::Relaxed);
        self.connection.want_kernel();
        self.connection.leave_writing();
    }

    /// Another process is about to have the stream, too: for the time being, bytes come by the
    /// kernel. A thread that sleeps here hears of those that are in the ring already.
    pub(crate) fn pause(self: &Arc<Self>) {
        if self.connection.bells()[0].is_none() {
            self.connection.want_kernel();
            return;
        }
        self.connection.want_kernel();
        self.rouse(None);
        self.sets().iter().for_each(|set| set.rouse(self));
    }

    /// The socket is about to be used where this library does not see it: from now on, it is the
    /// kernel's alone.
    pub(crate) fn leave(&self) {
        self.is_plain.store(true, Ordering::Relaxed);
        self.connection.leave_writing();
        self.connection.leave_reading();
    }

    /// Locks what the stream has, before a fork; in the order in which others lock.
    pub(crate) fn lock_search(&'static self) {
        self.search.before_fork();
    }

    /// As [`Self::lock_search`], for what is locked last.
    pub(crate) fn lock_waiters(&'static self) {
        self.sets.before_fork();
        self.sleepers.before_fork();
    }

    /// Unlocks it again, after the fork.
    pub(crate) fn unlock(&'static self) {
        self.sleepers.after_fork(|_| {});
        self.sets.after_fork(|_| {});
        self.search.after_fork(|_| {});
    }

    /// Tells that an epoll has the stream.
    pub(crate) fn join(&self, set: &Arc<Set>) {
        let mut sets = self.sets.lock();
        sets.retain(|known| known.strong_count() > 0);
        if sets.iter().any(|known| known.as_ptr() == Arc::as_ptr(set)) {
            return;
        }
        sets.push(Arc::downgrade(set));
        let is_shared = sets.len() > 1;
        drop(sets);
        if is_shared {
            self.be_plain();
        }
    }

    /// Tells that an epoll has the stream no longer.
    pub(crate) fn part(&self, set: &Arc<Set>) {
        self.sets.lock().retain(|known| known.as_ptr() != Arc::as_ptr(set));
    }

    /// The epolls that have the stream.
    pub(crate) fn sets(&self) -> Vec<Arc<Set>> {
        self.sets.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// The pieces behind the first bytes of others.
fn behind<'a>(from: &'a [IoSlice<'_>], mut done: usize) -> Vec<IoSlice<'a>> {
    let mut left = Vec::with_capacity(from.len());
    for piece in from {
        let skipped = done.min(piece.len());
        done -= skipped;
        if skipped < piece.len() {
            left.push(IoSlice::new(&piece[skipped..]));
        }
    }
    left
}

//! A stream socket of the program that has, or may get, a peer with this library.
mod leaving;

pub(crate) use self::leaving::{LINK_MOST, wait_for_link};

use crate::epoll::Set;
use crate::far;
use crate::listener::{self, Listener, Offer};
use crate::names;
use crate::patience::Patience;
use crate::policy;
use crate::sys::memory;
use crate::table::{self, Family};
use crate::waiter::{self, Until};
use crate::watch::{Sleeper, Watch};
use ayre::guest::fork::Shared;
use ayre::socket::policy::Act;
use ayre::socket::{Connection, Ends, Pair, RING, Ready, Reason, keep_reason};
use rustix::event::PollFlags;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{RecvFlags, SendFlags, sockopt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How often an accepted connection looks for its offer before it stays with the kernel.
const LOOKS: u32 = 256;

/// An accepted connection whose offer was not found yet.
#[derive(Debug)]
struct Search {
    offer: Offer,
    listener: Arc<Listener>,
    looks_left: u32,
}

/// The direction for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A stream socket.
#[derive(Debug)]
pub(crate) struct Stream {
    connection: Connection,
    /// It is a Unix socket, and not one of TCP.
    is_unix: bool,
    /// The program has not connected it yet.
    is_unconnected: AtomicBool,
    /// It has no options but those with which the program has made it, as far as this is of use
    /// before it connects.
    is_new: AtomicBool,
    /// A read has told that the peer has not read all.
    has_told_reset: AtomicBool,
    /// Descriptors of this process that refer to it.
    names: AtomicU32,
    /// The kernel signals what comes.
    is_signalled: AtomicBool,
    is_searching: AtomicBool,
    search: Shared<Option<Search>>,
    /// How often a write has found no room.
    shortages: AtomicU32,
    patience: Patience,
    watch: Shared<Watch>,
}

impl Stream {
    fn new(is_unix: bool, search: Option<Search>) -> Option<Self> {
        Some(Self {
            connection: Connection::new()?,
            is_unix,
            is_unconnected: AtomicBool::new(false),
            is_new: AtomicBool::new(false),
            has_told_reset: AtomicBool::new(false),
            names: AtomicU32::new(1),
            is_signalled: AtomicBool::new(false),
            is_searching: AtomicBool::new(search.is_some()),
            search: Shared::new(search),
            shortages: AtomicU32::new(0),
            patience: Patience::default(),
            watch: Shared::new(Watch::default()),
        })
    }

    /// A socket that has not connected yet: as the program has made it, or not. None where the
    /// process has too many.
    pub(crate) fn unconnected(family: Family, is_new: bool) -> Option<Arc<Self>> {
        let this = Self::new(family == Family::Unix, None)?;
        this.is_unconnected.store(true, Ordering::Relaxed);
        this.is_new.store(is_new, Ordering::Relaxed);
        Some(Arc::new(this))
    }

    pub(crate) fn is_unconnected(&self) -> bool {
        self.is_unconnected.load(Ordering::Relaxed)
    }

    /// The program has connected it.
    pub(crate) fn be_connected(&self) {
        self.is_unconnected.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Relaxed)
    }

    /// It is not as the program has made it any more.
    pub(crate) fn end_new(&self) {
        self.is_new.store(false, Ordering::Relaxed);
    }

    /// Offers the connection, as the other end may look for it already. False where there is no
    /// room for the offer.
    pub(crate) fn offer(&self, pair: &Arc<Pair>, ends: &Ends, socket: BorrowedFd<'_>) -> bool {
        let is_offered = self.connection.offer(pair, ends);
        self.connection.show(socket);
        is_offered
    }

    /// Waits for the other end to invite this one, if it is on another host and has this library.
    pub(crate) fn await_invitation(self: &Arc<Self>, ends: &Ends, socket: BorrowedFd<'_>) {
        self.connection.show(socket);
        self.connection.keep_reason(Reason::NoPeer);
        far::expect(ends, self);
    }

    /// The end that was accepted, which looks for this offer.
    pub(crate) fn accepted(
        listener: &Arc<Listener>,
        offer: Offer,
        socket: BorrowedFd<'_>,
    ) -> Option<Self> {
        let (listener, is_unix) = (listener.clone(), offer.is_unix());
        let this = Self::new(is_unix, Some(Search { offer, listener, looks_left: LOOKS }))?;
        this.connection.show(socket);
        this.connection.keep_reason(Reason::Opening);
        this.search();
        Some(this)
    }

    /// Looks for the offer of an accepted connection, if it was not found yet. Other processes that
    /// have the connection would not know of it.
    #[inline]
    pub(crate) fn search(&self) {
        if self.is_searching.load(Ordering::Relaxed) {
            self.look_for_offer();
        }
    }

    #[cold]
    fn look_for_offer(&self) {
        if self.connection.is_shared() {
            return;
        }
        let Some(mut search) = self.search.try_lock() else { return };
        let Some(look) = search.as_mut() else { return };
        look.looks_left -= 1;
        // The maker's library offers before the maker's program writes.
        let is_last = look.looks_left == 0 || self.connection.counts_in().kernel > 0;
        let found = look.listener.find(&look.offer, &self.connection);
        if found.is_ok() || is_last {
            self.is_searching.store(false, Ordering::Relaxed);
            let ended = search.take();
            drop(search);
            if let (Err(reason), Some(ended)) = (found, ended) {
                self.stay(&ended.offer, reason);
            }
        }
    }

    /// An accepted connection stays with the kernel, if it may.
    fn stay(&self, offer: &Offer, reason: Reason) {
        self.connection.keep_reason(reason);
        if policy::refuses(Act::Accept, offer.at.judged(), None, reason)
            && let Some(fd) = table::name_of(self)
        {
            listener::reset(memory::borrowed(fd));
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether it is a Unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        self.is_unix
    }

    pub(crate) fn family(&self) -> Family {
        if self.is_unix { Family::Unix } else { Family::Tcp }
    }

    /// A descriptor of it is the kernel's alone from now on, also in the epolls that have it.
    pub(crate) fn hand_over(&self, fd: i32, reason: Reason) {
        self.connection.close(memory::borrowed(fd));
        keep_reason(memory::borrowed(fd), reason);
        self.forget(fd);
        self.sets().iter().for_each(|set| set.hand_over(fd));
        drop(table::set(fd, None));
        table::leave(fd);
    }

    /// As [`Self::hand_over`], of all descriptors of a socket that has not connected. This is one.
    pub(crate) fn hand_over_all(&self, fd: i32, reason: Reason) {
        match self.names.load(Ordering::Relaxed) {
            1 => self.hand_over(fd, reason),
            _ => table::names_of(self).for_each(|fd| self.hand_over(fd, reason)),
        }
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
        fd: i32,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> Result<usize, Errno> {
        self.read_by(fd, flags, |fd| self.connection.read(memory::borrowed(fd), into, flags))
    }

    /// As [`Self::read`], by calls that never wait.
    pub(crate) fn read_by(
        &self,
        mut fd: i32,
        flags: RecvFlags,
        mut read: impl FnMut(i32) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut until = Until::Unknown;
        let mut call = None;
        loop {
            let result = match read(fd) {
                Err(Errno::AGAIN) if self.follow_signal(fd) => read(fd),
                result => result,
            };
            match result {
                Err(Errno::AGAIN) if !flags.contains(RecvFlags::DONTWAIT) => {}
                Err(errno) => {
                    if errno == Errno::CONNRESET {
                        self.has_told_reset.store(true, Ordering::Relaxed);
                    }
                    return Err(errno);
                }
                Ok(0) if self.is_unix && self.is_reset(fd) => return Err(Errno::CONNRESET),
                Ok(len) => {
                    // The first bytes end the search.
                    self.search();
                    return Ok(len);
                }
            }
            self.wait(fd, Direction::In, (&mut until, &mut call))?;
            fd = self.name(fd)?;
        }
    }

    /// Whether the peer has closed a Unix socket without reading all. The kernel tells that once,
    /// of its own bytes.
    fn is_reset(&self, fd: i32) -> bool {
        self.connection.is_reset_by_peer(memory::borrowed(fd))
            && !self.has_told_reset.swap(true, Ordering::Relaxed)
    }

    /// A descriptor of the stream: this one, unless another thread has closed it meanwhile.
    fn name(&self, fd: i32) -> Result<i32, Errno> {
        if self.is_named(fd) {
            return Ok(fd);
        }
        let name = self.watch.lock().name();
        name.or_else(|| table::name_of(self)).ok_or(Errno::BADF)
    }

    /// Whether a descriptor is this stream.
    pub(crate) fn is_named(&self, fd: i32) -> bool {
        table::is(fd, self) || self.watch.lock().name() == Some(fd)
    }

    /// The program closes the last descriptor. Whether the stream lives on, as there are calls.
    pub(crate) fn outlive(&self, socket: BorrowedFd<'_>) -> bool {
        let lives = self.watch.lock().outlive(socket);
        if lives {
            self.connection.show_number(socket);
            self.wake_all();
        }
        lives
    }

    /// Writes all of these pieces. Where the socket does not block, or an error comes, only some.
    pub(crate) fn write(
        &self,
        fd: i32,
        from: &[IoSlice<'_>],
        flags: SendFlags,
    ) -> Result<usize, Errno> {
        let total = from.iter().map(|piece| piece.len()).sum();
        self.write_by(fd, (total, flags), |fd, done| match done {
            0 => self.connection.write(memory::borrowed(fd), from, flags),
            _ => self.connection.write(memory::borrowed(fd), &behind(from, done), flags),
        })
    }

    /// As [`Self::write`], by calls that never wait. Each is given the number of bytes that were
    /// written before.
    pub(crate) fn write_by(
        &self,
        mut fd: i32,
        (total, flags): (usize, SendFlags),
        mut write: impl FnMut(i32, usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut until = Until::Unknown;
        let mut call = None;
        let mut done = 0;
        loop {
            let result = write(fd, done);
            match result {
                Ok(len) => done += len,
                Err(Errno::AGAIN) => {}
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
            if done == total {
                return Ok(done);
            }
            self.find_no_room();
            let waited = match flags.contains(SendFlags::DONTWAIT) {
                true => Err(Errno::AGAIN),
                false => self.wait(fd, Direction::Out, (&mut until, &mut call)),
            };
            match waited.and_then(|()| self.name(fd)) {
                Ok(name) => fd = name,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
        }
    }

    /// A write has found no room. An epoll may have lain down before both ends had the connection:
    /// the peer is told of its bell now.
    #[cold]
    fn find_no_room(&self) {
        self.shortages.fetch_add(1, Ordering::Relaxed);
        if self.connection.bells()[Direction::Out as usize].is_none() {
            self.sets().iter().for_each(|set| set.look_at(self));
        }
    }

    /// Waits until a direction may be ready. `EAGAIN` where the socket does not block, or its time
    /// is up.
    fn wait<'a>(
        &'a self,
        fd: i32,
        direction: Direction,
        (until, call): (&mut Until, &mut Option<Call<'a>>),
    ) -> Result<(), Errno> {
        if *until == Until::Unknown {
            *until = self.patience.until(memory::borrowed(fd), direction)?;
        }
        call.get_or_insert_with(|| Call::begin(self));
        waiter::wait_for(self, fd, direction, *until)
    }

    /// The program has changed how calls on its socket wait.
    pub(crate) fn forget_patience(&self) {
        self.patience.forget();
    }

    /// Whether a direction is ready by the ring, and events that the kernel may tell of it.
    #[inline]
    pub(crate) fn ready(&self, direction: Direction) -> (bool, bool) {
        match direction {
            Direction::In => (self.connection.is_readable(), !self.connection.is_told_by_link()),
            Direction::Out => match self.connection.writable() {
                Ready::Yes => (true, false),
                Ready::No => (false, false),
                Ready::AskKernel => (false, true),
            },
        }
    }

    /// Whether one that sleeps for a direction has a reason to look again.
    pub(crate) fn has_news(&self, direction: Direction) -> bool {
        match direction {
            Direction::In => self.connection.is_readable(),
            Direction::Out => self.connection.writable() != Ready::No,
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
        if self.connection.is_told_by_link() {
            asked -= inward | PollFlags::RDHUP;
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
        if direction == Direction::In {
            self.watch.lock().look(&self.connection);
        }
    }

    /// Says that this thread is about to sleep for a direction.
    pub(crate) fn lie_down(&self, direction: Direction, sleeper: &Sleeper) {
        // An epoll that nobody sleeps at looks at the stream in its next call.
        self.sets().iter().for_each(|set| set.lend(self));
        let others = self.watch.lock().lie_down(&self.connection, (direction, sleeper), true);
        self.keep_waiters(&others);
        self.wake(&others);
    }

    /// As [`Self::lie_down`], for an epoll.
    pub(crate) fn lie_down_in_set(&self, direction: Direction, sleeper: &Sleeper) {
        let others = self.watch.lock().lie_down(&self.connection, (direction, sleeper), false);
        self.keep_waiters(&others);
        self.wake(&others);
    }

    /// Keeps the reason, where others sleep for the stream, too.
    fn keep_waiters(&self, others: &[Sleeper]) {
        if !others.is_empty() {
            self.connection.keep_reason(Reason::SeveralWaiters);
        }
    }

    /// Says that a sleeper is awake.
    pub(crate) fn get_up(&self, direction: Direction, sleeper: &Sleeper) {
        let others = self.watch.lock().get_up(&self.connection, (direction, sleeper));
        self.wake(&others);
    }

    /// Whether a sleeper has something to do of which it is not sure to hear.
    pub(crate) fn is_unsure(&self, direction: Direction, sleeper: &Sleeper) -> bool {
        self.watch.lock().is_unsure(&self.connection, (direction, sleeper))
    }

    /// Wakes sleepers, which look again.
    fn wake(&self, sleepers: &[Sleeper]) {
        let Some((_, slot)) = self.connection.place() else { return };
        sleepers.iter().flatten().for_each(|bell| bell.ring(slot));
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self) {
        let sleepers = self.watch.lock().sleepers();
        self.wake(&sleepers);
    }

    /// From now on, all bytes that come, come by the kernel, and all bytes go there.
    pub(crate) fn be_plain(&self, reason: Reason) {
        self.connection.keep_reason(reason);
        let sleepers = self.watch.lock().be_plain(&self.connection);
        self.wake(&sleepers);
    }

    /// Options that were set before the socket was a stream.
    pub(crate) fn keep_to_options(&self, socket: BorrowedFd<'_>) {
        self.keep_to_buffers(socket);
        if fcntl_getfl(socket).is_ok_and(|flags| flags.contains(OFlags::ASYNC)) {
            self.be_signalled();
        }
        // Each message brings the user and the process that have sent it.
        if self.is_unix && sockopt::socket_passcred(socket) == Ok(true) {
            self.be_plain(Reason::Option);
        }
    }

    /// A program that makes a buffer of its socket smaller than a ring counts on writers that wait
    /// early: from now on, that direction goes by the kernel.
    pub(crate) fn keep_to_buffers(&self, socket: BorrowedFd<'_>) {
        let [out, into] =
            memory::set_buffers(socket.as_raw_fd()).map(|set| set.is_some_and(|size| size < RING));
        if out || into {
            self.connection.keep_reason(Reason::Option);
        }
        if out {
            self.connection.leave_writing();
        }
        if into {
            let sleepers = self.watch.lock().read_by_kernel(&self.connection);
            self.wake(&sleepers);
        }
    }

    /// The program reads nothing any more. The writer of a Unix socket gets an error for that,
    /// which the kernel tells.
    pub(crate) fn shut_reading(&self) {
        self.connection.shut_reading();
        if self.is_unix {
            let sleepers = self.watch.lock().read_by_kernel(&self.connection);
            self.wake(&sleepers);
        }
    }

    /// Locks the search, before a fork. No end of another host meets this one from now on; one that
    /// has just done so is left.
    pub(crate) fn lock_search(&'static self) {
        self.search.before_fork();
        if self.connection.is_far() {
            self.leave_link(Reason::Forked);
        }
    }

    /// Locks the watch, before a fork. The child has the stream, too, so its bytes go by the
    /// kernel while both have it.
    pub(crate) fn lock_watch(&'static self) {
        self.connection.before_fork();
        self.patience.share();
        let sleepers = self.watch.lock().pause(&self.connection);
        self.watch.before_fork();
        self.wake(&sleepers);
    }

    /// Unlocks both again, after the fork: in the child, with the number of its parent.
    pub(crate) fn unlock(&'static self, parent_of_child: Option<u32>) {
        self.watch.after_fork(|watch| {
            if let Some(parent) = parent_of_child {
                watch.in_child();
                self.connection.after_fork(parent, std::process::id());
            }
        });
        self.search.after_fork(|_| {});
    }

    /// Tells that an epoll has the stream.
    pub(crate) fn join(&self, set: &Arc<Set>) {
        let is_shared = self.watch.lock().join(set);
        if is_shared {
            self.be_plain(Reason::SeveralWaiters);
        }
    }

    /// Tells that an epoll has the stream no longer.
    pub(crate) fn part(&self, set: &Arc<Set>) {
        self.watch.lock().part(set);
    }

    /// Tells that the program has removed the stream from an epoll, whose kernel has it still.
    pub(crate) fn be_kept(&self, set: &Arc<Set>) {
        self.watch.lock().be_kept(set);
    }

    /// A name of the stream is about to be something else: no epoll's kernel keeps it.
    pub(crate) fn forget(&self, fd: i32) {
        let keepers = self.watch.lock().keepers();
        keepers.iter().for_each(|set| set.forget(fd));
    }

    /// The epolls that have the stream.
    pub(crate) fn sets(&self) -> Vec<Arc<Set>> {
        self.watch.lock().sets()
    }
}

/// A call that waits. As an open file does, the stream lives until it returns.
struct Call<'a>(&'a Stream);

impl<'a> Call<'a> {
    fn begin(stream: &'a Stream) -> Self {
        stream.watch.lock().begin_call();
        Self(stream)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let name = self.0.watch.lock().end_call();
        if let Some(name) = name {
            names::close(self.0, name.fd());
        }
    }
}

/// The pieces behind the first bytes of others.
pub(crate) fn behind<'a>(from: &'a [IoSlice<'_>], mut done: usize) -> Vec<IoSlice<'a>> {
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

//! Descriptors that Ayre makes in a program's process. None has a number of the standard streams,
//! which the program may have closed, and may reuse later. None stays open when the process
//! executes another program.
//!
//! Files that are open only within a call, such as those read whole, are not made here.
use super::hidden::{self, Hidden};
use crate::sync::{Ordering, StaticCounter};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{CWD, FileType, MemfdFlags, Mode, OFlags, fstat, inotify, memfd_create, openat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, Protocol, SocketFlags, SocketType, accept_with, socket_with, socketpair,
};
use rustix::path::Arg;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::sync::Once;

/// The first number after those of the standard streams.
pub(crate) const FIRST: RawFd = 3;

/// The limit that is set where the hard limit is nearly infinite: the number that the kernel gives
/// a process by default. Some programs close all numbers up to the limit, one by one.
const LIMIT_MOST: u64 = 1 << 20;

/// Raises the soft limit of descriptors to the hard one, at its first call.
// spec: LIFE-37
pub(crate) fn raise_limit() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // Where a filter of system calls forbids either call, the limit stays. SAFETY: the system
        // writes what `limit` has room for.
        let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
        let most = limit.rlim_max.min(LIMIT_MOST);
        if is_known && limit.rlim_cur < most {
            limit.rlim_cur = most;
            // SAFETY: it reads `limit`.
            let _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        }
    });
}

/// The sleep in place of a wait that the system refuses.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Waits for events at these descriptors, as poll(2) does, for at most `timeout`. Sleeps for a
/// moment where the system refuses the wait: beyond a limit that the program has lowered since, or
/// where the program has closed a descriptor. So a loop of waits leaves the processor to others.
///
/// # Errors
/// `EINTR` where a signal has interrupted the wait.
// spec: LIFE-40
pub fn wait_at(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> Result<(), Errno> {
    let looked = poll(fds, timeout);
    if looked == Err(Errno::INTR) {
        return Err(Errno::INTR);
    }
    let is_closed = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::NVAL);
    if looked.is_err() || fds.iter().any(is_closed) {
        // A wait for no descriptors works, whatever the limit.
        let _ = poll(&mut [], Some(&timeout.map_or(NAP, |time| NAP.min(*time))));
    }
    Ok(())
}

/// A descriptor in a program's process that the program does not know. The program may close the
/// number and open another file there, so dropping this closes it only if it is still the same
/// file.
// spec: LIFE-40
#[derive(Debug)]
pub struct Descriptor {
    held: Held,
    file: Option<File>,
    /// The value of [`closings`] when it was made.
    closings: u64,
}

/// How a descriptor is held.
#[derive(Debug)]
enum Held {
    /// By a number that the program may use by mistake.
    Open(ManuallyDrop<OwnedFd>),
    /// By one that the program's calls do not reach.
    Hidden(Hidden),
}

impl Held {
    fn new(fd: OwnedFd) -> Self {
        // Where no high number is free, it stays where it is.
        let hidden = if hidden::hides_all() { Hidden::new_or(fd) } else { Err((fd, Errno::MFILE)) };
        hidden.map_or_else(|(fd, _)| Self::Open(ManuallyDrop::new(fd)), Self::Hidden)
    }
}

/// The identity of a descriptor's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    /// Some files of the kernel, such as counters, all have the same inode.
    is_one: bool,
}

/// The number of descriptors that were found closed, or of another file.
static LOST: StaticCounter = StaticCounter::new(0);

/// The number of Ayre's descriptors in this process that were found lost: the program has closed
/// them.
pub fn lost() -> u64 {
    // Relaxed, here and below: a number that orders nothing.
    LOST.load(Ordering::Relaxed)
}

/// How many times ports have found that the program has closed their descriptors.
static CLOSINGS: StaticCounter = StaticCounter::new(0);

/// Records that the program has closed descriptors of a port. Descriptors of the kernel's own files
/// that were made before count as lost from then on: the program may have closed them, too.
pub(crate) fn note_closing() {
    CLOSINGS.fetch_add(1, Ordering::Relaxed);
}

fn closings() -> u64 {
    CLOSINGS.load(Ordering::Relaxed)
}

impl File {
    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        let stat = fstat(fd).ok()?;
        let is_one = FileType::from_raw_mode(stat.st_mode) != FileType::Unknown;
        Some(Self { device: stat.st_dev, inode: stat.st_ino, is_one })
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        let file = File::of(fd.as_fd());
        Self { held: Held::new(fd), file, closings: closings() }
    }
}

impl Descriptor {
    /// Whether its number refers to a file like the one that it was made for.
    pub fn is_there(&self) -> bool {
        self.file.is_some() && File::of(self.as_fd()) == self.file
    }

    /// Whether its number refers to the very same file, as far as that can be known.
    pub(crate) fn is_own(&self) -> bool {
        let is_one = self.file.is_some_and(|file| file.is_one);
        self.is_there() && (is_one || closings() == self.closings)
    }

    /// Gives the descriptor to others, who close it without a check.
    pub(crate) fn into_owned(self) -> OwnedFd {
        let mut this = ManuallyDrop::new(self);
        match &mut this.held {
            // SAFETY: nothing uses it after this.
            Held::Open(fd) => unsafe { ManuallyDrop::take(fd) },
            Held::Hidden(hidden) => hidden.take(),
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let is_own = self.is_own();
        let Held::Open(fd) = &mut self.held else { return };
        if is_own {
            // SAFETY: nothing uses it after this.
            unsafe { ManuallyDrop::drop(fd) };
        } else {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.held {
            Held::Open(fd) => fd.as_fd(),
            Held::Hidden(hidden) => hidden.fd(),
        }
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

type Made = Result<Descriptor, Errno>;

/// Moves a new descriptor, close-on-exec, to a number that Ayre may use.
///
/// # Errors
/// `EMFILE` where no number is free.
// spec: LIFE-29
pub fn placed(made: OwnedFd) -> Made {
    let placed = if made.as_raw_fd() >= FIRST { made } else { fcntl_dupfd_cloexec(&made, FIRST)? };
    Ok(placed.into())
}

/// Duplicates a descriptor: both refer to the same open file.
///
/// # Errors
/// `EMFILE` where no number is free.
pub fn copy(of: impl AsFd) -> Made {
    fcntl_dupfd_cloexec(of, FIRST).map(Descriptor::from)
}

/// A counter of the kernel (eventfd), which never blocks.
///
/// # Errors
/// The system's error, as for all functions here.
#[allow(clippy::missing_errors_doc, reason = "the system's")]
pub fn event() -> Made {
    placed(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// A pipe: its read end and its write end; neither blocks.
pub(crate) fn pipe() -> Result<(Descriptor, Descriptor), Errno> {
    let (end, begin) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((placed(end)?, placed(begin)?))
}

/// An epoll, which waits for many descriptors.
#[allow(clippy::missing_errors_doc, reason = "the system's")]
pub fn epoll() -> Made {
    placed(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

/// A socket. The flags are in addition to close-on-exec.
#[allow(clippy::missing_errors_doc, reason = "the system's")]
pub fn socket(
    family: AddressFamily,
    kind: SocketType,
    flags: SocketFlags,
    protocol: Option<Protocol>,
) -> Made {
    placed(socket_with(family, kind, flags | SocketFlags::CLOEXEC, protocol)?)
}

/// Two connected Unix sockets.
pub(crate) fn socket_pair(kind: SocketType) -> Result<(Descriptor, Descriptor), Errno> {
    let (one, other) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    Ok((placed(one)?, placed(other)?))
}

/// Accepts the next caller of a listening socket. The flags are in addition to close-on-exec.
pub(crate) fn accept(listener: impl AsFd, flags: SocketFlags) -> Made {
    placed(accept_with(listener, flags | SocketFlags::CLOEXEC)?)
}

/// The descriptors that came with a packet; none where one of them finds no number.
pub(crate) fn received(brought: impl Iterator<Item = OwnedFd>) -> Vec<Descriptor> {
    brought.map(placed).collect::<Result<_, _>>().unwrap_or_default()
}

/// A memory file. The flags are in addition to close-on-exec.
pub(crate) fn memory(name: &CStr, flags: MemfdFlags) -> Made {
    placed(memfd_create(name, flags | MemfdFlags::CLOEXEC)?)
}

/// A timer of the monotonic clock, which never blocks.
pub(crate) fn timer() -> Made {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    placed(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// A watch for changes in folders (inotify), which never blocks.
pub(crate) fn watcher() -> Made {
    placed(inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?)
}

/// A file, or a folder. The flags are in addition to close-on-exec.
pub(crate) fn open(path: impl Arg, flags: OFlags, mode: Mode) -> Made {
    open_in(CWD, path, flags, mode)
}

/// A file whose path begins at a folder.
pub(crate) fn open_in(folder: BorrowedFd<'_>, path: impl Arg, flags: OFlags, mode: Mode) -> Made {
    placed(openat(folder, path, flags | OFlags::CLOEXEC, mode)?)
}

/// A process (pidfd): readable once it has ended.
pub(crate) fn process(pid: Pid) -> Made {
    placed(pidfd_open(pid, PidfdFlags::empty())?)
}

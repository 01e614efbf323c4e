//! Descriptors that Ayre makes in a program's process. None has a number of the standard streams,
//! which a program may have closed, and may open or write to later; and none is left open where the
//! process becomes another program.
//!
//! What is open only within a call, such as a file that is read whole, does not come here.
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

/// The first number behind those of the standard streams.
pub(crate) const FIRST: RawFd = 3;

/// Of a hard limit that is as good as none: as many as the kernel gives a process by default. Some
/// programs close all numbers up to the limit, one by one.
const LIMIT_MOST: u64 = 1 << 20;

/// Lets this process have as many descriptors as it may from here on, the first time that it is
/// called: the soft limit, where it is lower, becomes the hard one.
// spec: LIFE-37
pub(crate) fn raise_limit() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // Where a filter of system calls forbids either, the limit is the one that there was.
        // SAFETY: the system writes what `limit` has room for.
        let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
        let most = limit.rlim_max.min(LIMIT_MOST);
        if is_known && limit.rlim_cur < most {
            limit.rlim_cur = most;
            // SAFETY: it reads `limit`.
            let _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        }
    });
}

/// The nap in place of a wait that the system refuses.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Waits until something happens at one of these, as poll(2) does, at most so long. Where the
/// system refuses to, as it does beyond a limit that the program has lowered since, or where the
/// program has closed one, it naps: who waits in a loop leaves the processor to others.
///
/// # Errors
/// `EINTR`.
// spec: LIFE-40
pub fn wait_at(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> Result<(), Errno> {
    let looked = poll(fds, timeout);
    if looked == Err(Errno::INTR) {
        return Err(Errno::INTR);
    }
    let is_closed = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::NVAL);
    if looked.is_err() || fds.iter().any(is_closed) {
        // For none it may wait, whatever the limit.
        let _ = poll(&mut [], Some(&timeout.map_or(NAP, |time| NAP.min(*time))));
    }
    Ok(())
}

/// A descriptor in a program's process that the program knows nothing of. It may close the number,
/// and have another file there: so this closes it only as long as it is the file that it was.
// spec: LIFE-40
#[derive(Debug)]
pub struct Descriptor {
    fd: ManuallyDrop<OwnedFd>,
    file: Option<File>,
    /// What [`closings`] said when it was made.
    closings: u64,
}

/// What a descriptor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    /// Some of the kernel's own, such as counters, are of one file all.
    is_one: bool,
}

/// How many descriptors were found to be closed, or to be of another file.
static LOST: StaticCounter = StaticCounter::new(0);

/// How many of Ayre's descriptors in this process were found lost: the program has closed them.
pub fn lost() -> u64 {
    // Relaxed, here and below: a number that orders nothing.
    LOST.load(Ordering::Relaxed)
}

/// How often ports found that the program has closed what is theirs.
static CLOSINGS: StaticCounter = StaticCounter::new(0);

/// The program has closed descriptors of a port. Those of the kernel's own files that were made
/// before count as lost from then on: the program may have closed them, too, and have others there.
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
        Self { fd: ManuallyDrop::new(fd), file, closings: closings() }
    }
}

impl Descriptor {
    /// Whether its number is of a file like the one that it was made for.
    pub fn is_there(&self) -> bool {
        self.file.is_some() && File::of(self.as_fd()) == self.file
    }

    /// Whether its number is of the very file, as far as that can be known.
    pub(crate) fn is_own(&self) -> bool {
        let is_one = self.file.is_some_and(|file| file.is_one);
        self.is_there() && (is_one || closings() == self.closings)
    }

    /// For others, who close it whatever it is by then.
    pub(crate) fn into_owned(self) -> OwnedFd {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: nothing uses it after this.
        unsafe { ManuallyDrop::take(&mut this.fd) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: nothing uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        } else {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

type Made = Result<Descriptor, Errno>;

/// Gives a descriptor that the system has just made, close-on-exec, a number that Ayre may use.
///
/// # Errors
/// `EMFILE` where there is none.
// spec: LIFE-29
pub fn placed(made: OwnedFd) -> Made {
    let placed = if made.as_raw_fd() >= FIRST { made } else { fcntl_dupfd_cloexec(&made, FIRST)? };
    Ok(placed.into())
}

/// Another descriptor of the same file.
///
/// # Errors
/// `EMFILE` where there is no number for it.
pub fn copy(of: impl AsFd) -> Made {
    fcntl_dupfd_cloexec(of, FIRST).map(Descriptor::from)
}

/// The kernel's counter, which never blocks.
///
/// # Errors
/// The system's, as of all functions here.
#[allow(clippy::missing_errors_doc, reason = "the system's")]
pub fn event() -> Made {
    placed(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// What comes out at the first was put into the second; neither blocks.
pub(crate) fn pipe() -> Result<(Descriptor, Descriptor), Errno> {
    let (end, begin) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((placed(end)?, placed(begin)?))
}

/// What waits for many descriptors.
#[allow(clippy::missing_errors_doc, reason = "the system's")]
pub fn epoll() -> Made {
    placed(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

/// A socket; the flags are in addition to close-on-exec.
#[allow(clippy::missing_errors_doc, reason = "the system's")]
pub fn socket(
    family: AddressFamily,
    kind: SocketType,
    flags: SocketFlags,
    protocol: Option<Protocol>,
) -> Made {
    placed(socket_with(family, kind, flags | SocketFlags::CLOEXEC, protocol)?)
}

/// Two Unix sockets that are connected with each other.
pub(crate) fn socket_pair(kind: SocketType) -> Result<(Descriptor, Descriptor), Errno> {
    let (one, other) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    Ok((placed(one)?, placed(other)?))
}

/// The next caller of a listening socket; the flags are in addition to close-on-exec.
pub(crate) fn accept(listener: impl AsFd, flags: SocketFlags) -> Made {
    placed(accept_with(listener, flags | SocketFlags::CLOEXEC)?)
}

/// Descriptors that a packet has brought, none where one cannot be placed.
pub(crate) fn received(brought: impl Iterator<Item = OwnedFd>) -> Vec<Descriptor> {
    brought.map(placed).collect::<Result<_, _>>().unwrap_or_default()
}

/// A file of memory; the flags are in addition to close-on-exec.
pub(crate) fn memory(name: &CStr, flags: MemfdFlags) -> Made {
    placed(memfd_create(name, flags | MemfdFlags::CLOEXEC)?)
}

/// A timer of the monotonic clock, which never blocks.
pub(crate) fn timer() -> Made {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    placed(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// What tells of changes in folders, and never blocks.
pub(crate) fn watcher() -> Made {
    placed(inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?)
}

/// A file, or a folder; the flags are in addition to close-on-exec.
pub(crate) fn open(path: impl Arg, flags: OFlags, mode: Mode) -> Made {
    open_in(CWD, path, flags, mode)
}

/// One whose path begins at a folder.
pub(crate) fn open_in(folder: BorrowedFd<'_>, path: impl Arg, flags: OFlags, mode: Mode) -> Made {
    placed(openat(folder, path, flags | OFlags::CLOEXEC, mode)?)
}

/// A process: can be read once it has ended.
pub(crate) fn process(pid: Pid) -> Made {
    placed(pidfd_open(pid, PidfdFlags::empty())?)
}

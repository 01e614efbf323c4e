//! Descriptors that refer to one socket: duplicates, closing, and forked children.
use crate::epoll::Set;
use crate::far;
use crate::listener;
use crate::policy;
use crate::report;
use crate::stream::{LINK_MOST, Stream, wait_for_link};
use crate::sys::forks::Locked;
use crate::sys::memory;
use crate::table::{self, Entry};
use ayre::socket::{self, Reason};
use rustix::fd::BorrowedFd;
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::sockopt::set_socket_linger;
use std::sync::Arc;
use std::time::Duration;

/// The streams of the process, each once, with one of its descriptors.
fn streams() -> Vec<(i32, Arc<Stream>)> {
    let mut streams: Vec<(i32, Arc<Stream>)> = Vec::new();
    for (fd, entry) in table::all() {
        if let Entry::Stream(stream) = &*entry
            && !streams.iter().any(|(_, known)| Arc::ptr_eq(known, stream))
        {
            streams.push((fd, stream.clone()));
        }
    }
    streams
}

/// The program has another name for what a descriptor is.
pub(crate) fn duplicated(fd: i32, to: i32) {
    let entry = table::entry(fd);
    if let Some(Entry::Stream(stream)) = entry.as_deref() {
        // Streams of the C library read and write these where this library does not see it.
        if to <= 2 {
            abandon(stream, Reason::Stdio);
            return;
        }
        stream.connection().show_number(memory::borrowed(fd));
        stream.add_name();
    }
    drop(table::set(to, entry));
}

/// The program is about to pass a descriptor on to another process.
pub(crate) fn passing(fd: i32) {
    table::be_used_elsewhere(fd);
    match table::entry(fd).as_deref() {
        Some(Entry::Stream(stream)) => abandon(stream, Reason::Passed),
        Some(Entry::Listener(listener)) => listener.may_have_times(),
        _ => {}
    }
}

/// The program is about to close a descriptor, or to put another file there.
pub(crate) fn closing(fd: i32, socket: BorrowedFd<'_>) {
    let Some(entry) = table::set(fd, None) else { return };
    let stream = match &*entry {
        Entry::Stream(stream) => stream,
        Entry::Epoll(set) if set.is_called(fd) => return leave_epoll(set),
        Entry::Listener(_) | Entry::Epoll(_) => return,
    };
    stream.forget(fd);
    if !stream.remove_name() {
        // Threads that wait by this name go on by another.
        return stream.wake_all();
    }
    stream.sets().iter().for_each(|set| set.remove(fd));
    if !stream.outlive(socket) {
        close(stream, socket);
    }
}

/// The descriptor by which a set calls its epoll is about to be closed. If the epoll has other
/// names, it goes on without the set.
fn leave_epoll(set: &Arc<Set>) {
    for (fd, entry) in table::all() {
        if matches!(&*entry, Entry::Epoll(known) if Arc::ptr_eq(known, set)) {
            set.dissolve();
            drop(table::set(fd, None));
        }
    }
}

/// A stream that no descriptor and no call of the program uses any more.
pub(crate) fn close(stream: &Stream, socket: BorrowedFd<'_>) {
    // As TCP does with bytes that nobody has read, the peer is told of a reset.
    if stream.connection().close(socket) {
        let _ = set_socket_linger(socket, Some(Duration::ZERO));
    }
    report::count(stream);
}

/// A stream is about to be used where this library does not see it: it is the kernel's alone from
/// now on.
pub(crate) fn abandon(stream: &Arc<Stream>, reason: Reason) {
    stream.leave(reason);
    table::names_of(stream).for_each(|fd| stream.hand_over(fd, reason));
    report::count(stream);
}

/// Before the process forks: the child has its streams, too, and while both have them, bytes come
/// by the kernel, which wakes either. Returns all that has locks.
pub(crate) fn before_fork() -> Locked {
    leave_links(Reason::Forked);
    let mut locked = Locked::default();
    let mut pairs = listener::pairs();
    table::lock();
    table::be_used_elsewhere_between(0, u32::MAX);
    for (_, entry) in table::all() {
        match &*entry {
            Entry::Stream(stream) => locked.streams.push(memory::lend(stream)),
            Entry::Listener(listener) => {
                pairs.extend(listener.pairs());
                locked.listeners.push(memory::lend(listener));
            }
            Entry::Epoll(set) => locked.sets.push(memory::lend(set)),
        }
    }
    for (fd, stream) in streams() {
        stream.connection().show_number(memory::borrowed(fd));
        pairs.extend(stream.connection().place().map(|(pair, _)| pair.clone()));
    }
    pairs.sort_by_key(Arc::as_ptr);
    pairs.dedup_by(|one, other| Arc::ptr_eq(one, other));
    for pair in &pairs {
        pair.before_fork();
        locked.add_pair(pair);
    }
    locked
}

/// Before another program takes the place of this one: it uses the descriptors that it inherits
/// where this library does not see it.
pub(crate) fn before_exec() {
    leave_inherited(false);
    leave_links(Reason::Executed);
    far::finish();
    let closed = streams().into_iter().filter(|(fd, _)| !is_inherited(*fd));
    closed.for_each(|(_, stream)| stream.connection().before_exec());
    report::write();
}

fn is_inherited(fd: i32) -> bool {
    fcntl_getfd(memory::borrowed(fd)).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC))
}

/// Only this process has the endpoint: from now on, its connections with other hosts are the
/// kernel's alone.
fn leave_links(reason: Reason) {
    let mut streams = streams();
    streams.retain(|(_, stream)| stream.connection().is_far());
    streams.iter().for_each(|(_, stream)| stream.be_plain(reason));
    let have_left = || streams.iter().all(|(_, stream)| stream.connection().has_left_link());
    wait_for_link(LINK_MOST, have_left);
}

/// Before the C library starts another program, which inherits descriptors.
pub(crate) fn before_spawn() {
    leave_inherited(true);
}

/// Streams that another program inherits are the kernel's alone from now on. Whether this process
/// goes on.
fn leave_inherited(goes_on: bool) {
    table::be_used_elsewhere_between(0, u32::MAX);
    for (fd, entry) in table::all() {
        match &*entry {
            Entry::Stream(stream) if is_inherited(fd) => stream.be_inherited(goes_on),
            Entry::Epoll(set) if is_inherited(fd) => set.settle(),
            Entry::Listener(listener) if is_inherited(fd) => listener.may_have_times(),
            _ => {}
        }
    }
}

/// From now on, all bytes go by the kernel: the program has an io_uring, which nobody sees.
pub(crate) fn be_plain() {
    policy::turn_off();
    streams().iter().for_each(|(_, stream)| abandon(stream, Reason::IoUring));
}

/// The process is about to end: others of its family may have its streams still.
pub(crate) fn ending() {
    for (fd, stream) in streams() {
        let connection = stream.connection();
        if connection.is_shared() || connection.is_far() {
            connection.close(memory::borrowed(fd));
        }
    }
    far::finish();
    report::write();
}

/// In the child.
pub(crate) fn in_child() {
    report::in_child();
    let sees_its_family = socket::in_child();
    if !sees_its_family {
        policy::turn_off();
        streams().iter().for_each(|(_, stream)| stream.leave(Reason::Forked));
    }
}

/// In the process that has forked, or could not.
pub(crate) fn forked(child: Option<u32>) {
    for (_, stream) in streams() {
        match child {
            Some(child) => stream.connection().after_fork(std::process::id(), child),
            None => stream.connection().not_forked(),
        }
    }
}

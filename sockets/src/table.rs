//! The kinds of the descriptors of this process, as far as they matter here.
use crate::epoll::Set;
use crate::listener::Listener;
use crate::stream::Stream;
use arc_swap::{ArcSwapOption, Guard};
use ayre::guest::fork::Shared;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Descriptors with higher numbers are the kernel's alone.
const NUMBERS: usize = 1 << 20;

/// A descriptor that is more than the kernel's.
#[derive(Debug)]
pub(crate) enum Entry {
    Stream(Arc<Stream>),
    Listener(Arc<Listener>),
    Epoll(Arc<Set>),
}

/// The kind of each entry, for calls on descriptors that are the kernel's alone.
static KINDS: [AtomicU8; NUMBERS] = [const { AtomicU8::new(0) }; NUMBERS];
static ENTRIES: [ArcSwapOption<Entry>; NUMBERS] = [const { ArcSwapOption::const_empty() }; NUMBERS];

const STREAM: u8 = 1;
const LISTENER: u8 = 2;
const EPOLL: u8 = 3;
/// Without an entry: a TCP socket that this process has made. The program has set no option of IP,
/// no buffer, and none for which bytes must come by the kernel. The kernel need not be asked for
/// those before it connects.
const NEW_TCP: u8 = 4;
/// Likewise, a Unix socket of bytes.
const NEW_UNIX: u8 = 5;
/// Without an entry: it stays with the kernel, as an epoll has it that does not know it.
const LEFT: u8 = 6;

/// The families of sockets whose bytes may go by rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Tcp,
    Unix,
}

impl Entry {
    const fn kind(&self) -> u8 {
        match self {
            Self::Stream(_) => STREAM,
            Self::Listener(_) => LISTENER,
            Self::Epoll(_) => EPOLL,
        }
    }
}

#[inline]
fn kind(fd: i32) -> u8 {
    let place = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd));
    place.map_or(0, |kind| kind.load(Ordering::Relaxed))
}

/// Whether a descriptor is a stream.
#[inline]
pub(crate) fn is_stream(fd: i32) -> bool {
    kind(fd) == STREAM
}

/// Whether a descriptor is more than the kernel's.
#[inline]
pub(crate) fn is_known(fd: i32) -> bool {
    (STREAM..=EPOLL).contains(&kind(fd))
}

/// Whether a descriptor stays with the kernel.
pub(crate) fn is_left(fd: i32) -> bool {
    kind(fd) == LEFT
}

/// A descriptor stays with the kernel, unless it is known. A socket that is made later with this
/// number is another one.
#[inline]
pub(crate) fn leave(fd: i32) {
    if !is_known(fd)
        && let Some(kind) = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd))
    {
        kind.store(LEFT, Ordering::Relaxed);
    }
}

/// The family of a descriptor that is a socket as it was made.
pub(crate) fn new_family(fd: i32) -> Option<Family> {
    match kind(fd) {
        NEW_TCP => Some(Family::Tcp),
        NEW_UNIX => Some(Family::Unix),
        _ => None,
    }
}

/// The program has made a socket of streams.
pub(crate) fn set_new(fd: i32, family: Family) {
    let place = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd));
    if let Some(kind) = place {
        HIGHEST.fetch_max(fd, Ordering::Relaxed);
        let new = match family {
            Family::Tcp => NEW_TCP,
            Family::Unix => NEW_UNIX,
        };
        kind.store(new, Ordering::Relaxed);
    }
}

/// A descriptor is about to be another file, or others are about to use it, too.
#[inline]
pub(crate) fn be_used_elsewhere(fd: i32) {
    forget_waits(fd);
    end_new(fd);
}

/// A descriptor is a socket that is not as it was made any more.
#[inline]
pub(crate) fn end_new(fd: i32) {
    match kind(fd) {
        NEW_TCP | NEW_UNIX => KINDS[fd as usize].store(0, Ordering::Relaxed),
        STREAM => used(fd).iter().for_each(|stream| stream.end_new()),
        _ => {}
    }
}

/// As [`be_used_elsewhere`], of all within these numbers.
pub(crate) fn be_used_elsewhere_between(first: u32, last: u32) {
    let highest = HIGHEST.load(Ordering::Relaxed) as u32;
    (first..=last.min(highest)).for_each(|fd| be_used_elsewhere(fd as i32));
}

/// How calls wait at a socket that this process has made, as far as the kernel need not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Waits {
    Unknown = 0,
    /// Until something happens.
    Forever = 1,
    /// Not at all.
    Never = 2,
}

/// For each descriptor, how calls wait there.
static WAITS: [AtomicU8; NUMBERS] = [const { AtomicU8::new(0) }; NUMBERS];

fn waits_word(fd: i32) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|fd| WAITS.get(fd))
}

/// How calls wait at a descriptor.
pub(crate) fn waits(fd: i32) -> Waits {
    match waits_word(fd).map_or(0, |word| word.load(Ordering::SeqCst)) {
        1 => Waits::Forever,
        2 => Waits::Never,
        _ => Waits::Unknown,
    }
}

/// The kernel has made a socket whose calls have no limits of time, with these flags.
pub(crate) fn set_waits(fd: i32, flags: i32) {
    if let Some(word) = waits_word(fd) {
        HIGHEST.fetch_max(fd, Ordering::Relaxed);
        let waits = if flags & libc::SOCK_NONBLOCK == 0 { Waits::Forever } else { Waits::Never };
        word.store(waits as u8, Ordering::SeqCst);
    }
}

/// The program has changed how calls wait at a descriptor, or may do so by another one.
#[inline]
pub(crate) fn forget_waits(fd: i32) {
    // One that waits has been a stream before it has looked: either it sees this, or the caller
    // finds the stream.
    if waits(fd) != Waits::Unknown
        && let Some(word) = waits_word(fd)
    {
        word.store(0, Ordering::SeqCst);
    }
}

fn load(fd: i32) -> Option<Arc<Entry>> {
    ENTRIES[fd as usize].load_full()
}

/// The stream of a descriptor, for a call. Cheaper than [`stream`].
pub(crate) struct Used(Guard<Option<Arc<Entry>>>);

impl Deref for Used {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        match self.0.as_deref() {
            Some(Entry::Stream(stream)) => stream,
            _ => unreachable!("an entry stays what it is"),
        }
    }
}

/// The stream of a descriptor, while a call uses it.
#[inline]
pub(crate) fn used(fd: i32) -> Option<Used> {
    if kind(fd) != STREAM {
        return None;
    }
    let entry = ENTRIES[fd as usize].load();
    matches!(entry.as_deref(), Some(Entry::Stream(_))).then_some(Used(entry))
}

/// The stream of a descriptor.
#[inline]
pub(crate) fn stream(fd: i32) -> Option<Arc<Stream>> {
    if kind(fd) != STREAM {
        return None;
    }
    match &**ENTRIES[fd as usize].load().as_ref()? {
        Entry::Stream(stream) => Some(stream.clone()),
        _ => None,
    }
}

/// Whether a descriptor is this stream.
pub(crate) fn is(fd: i32, stream: &Stream) -> bool {
    self::stream(fd).is_some_and(|found| std::ptr::eq(&*found, stream))
}

/// A descriptor of a stream.
pub(crate) fn name_of(stream: &Stream) -> Option<i32> {
    names_of(stream).next()
}

/// The descriptors of a stream.
pub(crate) fn names_of(stream: &Stream) -> impl Iterator<Item = i32> {
    let highest = HIGHEST.load(Ordering::Relaxed);
    (0..=highest).filter(move |fd| is(*fd, stream))
}

/// The listening socket of a descriptor.
pub(crate) fn listener(fd: i32) -> Option<Arc<Listener>> {
    match kind(fd) == LISTENER {
        true => match &*load(fd)? {
            Entry::Listener(listener) => Some(listener.clone()),
            _ => None,
        },
        false => None,
    }
}

/// The epoll of a descriptor, if there are streams in it.
#[inline]
pub(crate) fn epoll(fd: i32) -> Option<Arc<Set>> {
    match kind(fd) == EPOLL {
        true => match &*load(fd)? {
            Entry::Epoll(set) => Some(set.clone()),
            _ => None,
        },
        false => None,
    }
}

/// The entry of a descriptor, of any kind.
pub(crate) fn entry(fd: i32) -> Option<Arc<Entry>> {
    if is_known(fd) { load(fd) } else { None }
}

/// A thread that adds an entry has it, or one that forks. A fork locks all that the entries have,
/// so that no other thread has a lock that the child would wait for.
static ADDING: Shared<()> = Shared::new(());

/// Before a fork: no entry is added until it is over.
pub(crate) fn lock() {
    ADDING.before_fork();
}

/// After a fork.
pub(crate) fn unlock() {
    ADDING.after_fork(|()| {});
}

/// Sets what a descriptor is. Returns what it was.
pub(crate) fn set(fd: i32, entry: Option<Arc<Entry>>) -> Option<Arc<Entry>> {
    let _adding = entry.as_ref().map(|_| ADDING.lock());
    let place = usize::try_from(fd).ok().filter(|fd| *fd < NUMBERS)?;
    HIGHEST.fetch_max(if entry.is_some() { fd } else { 0 }, Ordering::Relaxed);
    let kind = entry.as_ref().map_or(0, |entry| entry.kind());
    KINDS[place].store(0, Ordering::Relaxed);
    let last = ENTRIES[place].swap(entry);
    KINDS[place].store(kind, Ordering::Relaxed);
    last
}

/// No descriptor above has an entry, or is new, or has a known wait.
static HIGHEST: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);

/// All entries with their descriptors.
pub(crate) fn all() -> Vec<(i32, Arc<Entry>)> {
    let highest = HIGHEST.load(Ordering::Relaxed);
    (0..=highest).filter_map(|fd| entry(fd).map(|entry| (fd, entry))).collect()
}

//! The kinds of the descriptors of this process, as far as they matter here.
use crate::epoll::Set;
use crate::listener::Listener;
use crate::stream::Stream;
use arc_swap::{ArcSwapOption, Guard};
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
    !matches!(kind(fd), 0 | NEW_TCP | NEW_UNIX)
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

/// A descriptor is about to be another file, or is a socket that is not as it was made any more.
#[inline]
pub(crate) fn end_new(fd: i32) {
    if new_family(fd).is_some() {
        KINDS[fd as usize].store(0, Ordering::Relaxed);
    }
}

/// Ends all that is new within these numbers.
pub(crate) fn end_new_between(first: u32, last: u32) {
    let highest = HIGHEST.load(Ordering::Relaxed) as u32;
    (first..=last.min(highest)).for_each(|fd| end_new(fd as i32));
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
    let highest = HIGHEST.load(Ordering::Relaxed);
    (0..=highest).find(|fd| is(*fd, stream))
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

/// Sets what a descriptor is. Returns what it was.
pub(crate) fn set(fd: i32, entry: Option<Arc<Entry>>) -> Option<Arc<Entry>> {
    let place = usize::try_from(fd).ok().filter(|fd| *fd < NUMBERS)?;
    HIGHEST.fetch_max(if entry.is_some() { fd } else { 0 }, Ordering::Relaxed);
    let kind = entry.as_ref().map_or(0, |entry| entry.kind());
    KINDS[place].store(0, Ordering::Relaxed);
    let last = ENTRIES[place].swap(entry);
    KINDS[place].store(kind, Ordering::Relaxed);
    last
}

/// No descriptor above has an entry, or is new.
static HIGHEST: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);

/// All entries with their descriptors.
pub(crate) fn all() -> Vec<(i32, Arc<Entry>)> {
    let highest = HIGHEST.load(Ordering::Relaxed);
    (0..=highest).filter_map(|fd| entry(fd).map(|entry| (fd, entry))).collect()
}

//! Locks that are held across a fork, so that the child finds them free and all behind them whole.
use super::memory::{give_back, lend};
use crate::epoll::Set;
use crate::far;
use crate::listener::{self, Listener};
use crate::names;
use crate::stream::Stream;
use crate::table;
use ayre::guest::{self, fork};
use ayre::socket::{self, Pair};
use std::sync::{Arc, Mutex, PoisonError};

/// Everything of a process that has locks.
#[derive(Default)]
pub(crate) struct Locked {
    pub(crate) sets: Vec<&'static Set>,
    pub(crate) streams: Vec<&'static Stream>,
    pub(crate) listeners: Vec<&'static Listener>,
    pub(crate) pairs: Vec<&'static Pair>,
    /// The process that forks.
    parent: u32,
}

/// All that the thread that forks holds.
static HELD: Mutex<Option<Locked>> = Mutex::new(None);

/// Registers what is done around each fork.
pub(crate) fn watch() {
    // Those that are registered first are locked last, and the first that a child runs.
    guest::watch_forks();
    fork::around(Some(before), Some(in_parent), Some(in_child));
}

impl Locked {
    pub(crate) fn add_pair(&mut self, pair: &Arc<Pair>) {
        self.pairs.push(lend(pair));
    }

    /// Takes all locks, in the order in which others take several.
    fn lock(&mut self) {
        // Several descriptors may refer to one of them.
        once(&mut self.streams);
        once(&mut self.listeners);
        once(&mut self.sets);

        self.sets.iter().for_each(|set| set.lock_for_fork());
        self.streams.iter().for_each(|stream| stream.lock_search());
        self.listeners.iter().for_each(|listener| listener.lock());
        self.streams.iter().for_each(|stream| stream.lock_watch());
        listener::lock();
        far::lock();
        self.pairs.iter().for_each(|pair| pair.lock_for_fork());
        socket::lock_family();
    }

    /// Releases all: in the child, with the number of its parent.
    fn unlock(self, parent_of_child: Option<u32>) {
        let is_child = parent_of_child.is_some();
        socket::unlock_family();
        for pair in self.pairs {
            pair.after_fork(is_child);
            // SAFETY: it was lent, and is not used any more; here and below.
            unsafe { give_back(pair) };
        }
        far::unlock(is_child);
        listener::unlock(is_child);
        for stream in self.streams {
            stream.unlock(parent_of_child);
            // SAFETY: as above.
            unsafe { give_back(stream) };
        }
        for listener in self.listeners {
            listener.unlock();
            // SAFETY: as above.
            unsafe { give_back(listener) };
        }
        for set in self.sets {
            set.unlock();
            // SAFETY: as above.
            unsafe { give_back(set) };
        }
        table::unlock();
    }
}

fn held() -> std::sync::MutexGuard<'static, Option<Locked>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn before() {
    let mut locked = names::before_fork();
    locked.parent = std::process::id();
    locked.lock();
    *held() = Some(locked);
}

extern "C" fn in_parent() {
    let locked = held().take();
    if let Some(locked) = locked {
        locked.unlock(None);
    }
}

extern "C" fn in_child() {
    let locked = held().take();
    if let Some(locked) = locked {
        let parent = locked.parent;
        locked.unlock(Some(parent));
    }
    names::in_child();
}

/// Leaves each value once; gives the others back.
fn once<T>(values: &mut Vec<&'static T>) {
    values.sort_by_key(|value| std::ptr::from_ref(*value).addr());
    let mut left: Vec<&'static T> = Vec::with_capacity(values.len());
    for value in values.drain(..) {
        match left.last() {
            // SAFETY: it was lent once for each descriptor, and this one is not used.
            Some(last) if std::ptr::eq(*last, value) => unsafe { give_back(value) },
            _ => left.push(value),
        }
    }
    *values = left;
}

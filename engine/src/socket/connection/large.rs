//! Large rings: those that are written to beyond the bytes of a small one. A process writes a
//! bounded number of them at a time, so that idle connections keep little memory. For another one,
//! an older one that is empty becomes small, and its memory goes back to the system. Where none is
//! empty, a writer waits until its small ring is.
use super::Shared;
use crate::mem::family;
use crate::mem::seat::Seat;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::fork;
use std::collections::VecDeque;

/// Large rings that a process writes.
const MOST: usize = 64;

/// Rings that are looked at for another one.
const LOOKS: usize = 8;

/// A large ring.
struct Large {
    seat: Seat,
    shared: Shared,
}

static LARGE: fork::Shared<VecDeque<Large>> = fork::Shared::new(VecDeque::new());

/// The thread that is at the list, so that its signal handlers leave that alone.
static AT_LIST: AtomicU32 = AtomicU32::new(0);

/// Before a fork.
pub(in crate::socket) fn lock() {
    LARGE.before_fork();
}

/// After a fork.
pub(in crate::socket) fn unlock() {
    LARGE.after_fork(|_| {});
}

/// In a forked child: threads of its parent are at the parent's list.
pub(in crate::socket) fn in_child() {
    AT_LIST.store(0, Ordering::Relaxed);
}

/// Whether the holder of the writers' lock may use all of its ring.
#[cold]
pub(super) fn admit(seat: &Seat, shared: &Shared) -> bool {
    if seat.is_large() {
        return true;
    }
    let Some(_alone) = family::lock(&AT_LIST) else { return false };
    let mut rings = LARGE.lock();
    if rings.len() >= MOST && !make_room(&mut rings) {
        return false;
    }
    rings.push_back(Large { seat: seat.clone(), shared: shared.clone() });
    shared.slot.enlarge();
    seat.set_large(true);
    true
}

/// Makes one of the oldest rings small.
fn make_room(rings: &mut VecDeque<Large>) -> bool {
    (0..LOOKS).any(|_| {
        let Some(oldest) = rings.pop_front() else { return false };
        let is_small = oldest.shrink();
        if !is_small {
            rings.push_back(oldest);
        }
        is_small
    })
}

/// The process has closed a connection.
pub(super) fn forget(seat: &Seat) {
    if seat.is_large() {
        let _alone = family::lock(&AT_LIST);
        LARGE.lock().retain(|large| large.seat.number() != seat.number());
    }
}

impl Large {
    /// Whether the ring is small now. It stays large while it has bytes, or somebody writes.
    fn shrink(&self) -> bool {
        let Some(_held) = family::try_lock(self.seat.write_lock()) else { return false };
        // Another process that has the connection may have made it small.
        if !self.seat.is_large() {
            return true;
        }
        let end = self.seat.outgoing();
        let is_empty = match end.is_left {
            true => self.seat.owed().len == 0,
            false => self.shared.slot.taken().head >= end.written.tail,
        };
        if is_empty {
            self.shared.slot.shrink();
            self.seat.set_large(false);
        }
        is_empty
    }
}

//! The memory of this process's ends, and of those of its forked children: its family.
use super::pair::Pair;
use crate::mem::seat::{Family, Seat};
use crate::sys::fork;
use ayre_proto::socket::Reason;
use rustix::fd::{AsRawFd, BorrowedFd};

/// The family, as soon as it was wanted; None inside where there is no memory for it.
static FAMILY: fork::Shared<Option<Option<&'static Family>>> = fork::Shared::new(None);

/// Before a fork.
pub(super) fn lock() {
    FAMILY.before_fork();
}

/// After a fork.
pub(super) fn unlock() {
    FAMILY.after_fork(|_| {});
}

/// The family of this process; None where there is no memory for it.
pub(super) fn own() -> Option<&'static Family> {
    *FAMILY.lock().get_or_insert_with(|| {
        let family = Family::new().ok()?;
        Some(Box::leak(Box::new(family)))
    })
}

/// Seats that are looked at for each new one, so that at most as many have dead holders as have
/// others.
const LOOKS: usize = 2;

/// A seat for a new connection. Frees seats and slots of connections whose processes have died.
pub(super) fn new_seat() -> Option<Seat> {
    let family = own()?;
    for (pair, slot) in (0..LOOKS).filter_map(|_| family.reclaim()) {
        // A pair that this process does not have ends with those that had it.
        let found = Pair::of_number(pair);
        if let Some((pair, memory)) = found.and_then(|pair| Some((pair.clone(), pair.slot(slot)?)))
        {
            pair.leave(slot, &memory);
        }
    }
    family.seat()
}

/// Keeps why a socket has no connection with rings, for those that look at this process. Asks the
/// kernel nothing.
pub fn keep_reason(socket: BorrowedFd<'_>, reason: Reason) {
    if let Some(family) = own() {
        family.keep_reason(socket.as_raw_fd() as u32, reason);
    }
}

/// In a forked child: the reasons of its parent's sockets are its own's, too.
pub(super) fn inherit_reasons(parent: u32) {
    if let Some(Some(family)) = *FAMILY.lock() {
        family.inherit_reasons(parent);
    }
}

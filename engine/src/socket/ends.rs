//! The memory of this process's ends, and of those of its forked children: its family.
use crate::mem::seat::Family;
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

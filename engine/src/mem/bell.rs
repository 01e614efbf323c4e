//! Bells: what wakes a thread of this process that sleeps, rung by its other threads. Peers ring by
//! the control channel, see `control.rs`.
use crate::error::SetupError;
use crate::sys::descriptor;
use rustix::fd::{BorrowedFd, OwnedFd};

/// A bell between two threads of this process: the kernel's counter, which nobody else holds.
pub(crate) fn own_bell() -> Result<OwnedFd, SetupError> {
    descriptor::event().map_err(SetupError::os("eventfd"))
}

/// Takes all rings of such a bell.
pub(crate) fn hush_own(bell: BorrowedFd<'_>) {
    // None is as well.
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

pub(crate) fn ring_own(bell: BorrowedFd<'_>) {
    // A full counter wakes as well.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

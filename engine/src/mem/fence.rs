//! Store-load fences, paid by the side that can afford them.
//!
//! In each pair one side is on a hot path (a sender) and the other is about to do something slow
//! (sleep, revoke). Where the kernel has expedited membarriers, the hot side pays nothing but
//! keeping the compiler from reordering, and the slow side makes every processor that runs a
//! registered process execute a full fence. Where it has none, both sides fence.
use crate::sync::{Ordering, compiler_fence, fence};
use std::sync::OnceLock;

const GLOBAL_EXPEDITED: libc::c_int = 2;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 4;
const PRIVATE_EXPEDITED: libc::c_int = 8;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 16;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes integers only and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

static REGISTERED: OnceLock<bool> = OnceLock::new();
static REGISTERED_OWN: OnceLock<bool> = OnceLock::new();

/// Whether this process takes part in other processes' barriers; registers it on the first call.
pub(crate) fn expedited() -> bool {
    *REGISTERED.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED))
}

/// The same in a forked child, before it does anything.
pub(super) fn register_again() {
    if REGISTERED.get() == Some(&true) {
        membarrier(REGISTER_GLOBAL_EXPEDITED);
    }
    if REGISTERED_OWN.get() == Some(&true) {
        membarrier(REGISTER_PRIVATE_EXPEDITED);
    }
}

/// Whether a thread of this process can have all others execute a full fence; registers the process
/// on the first call.
pub(super) fn expedited_own() -> bool {
    *REGISTERED_OWN.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED))
}

/// Has all threads of this process execute a full fence, this one first. False where that is
/// refused: a sandbox may have come over the process since it was registered.
pub(super) fn heavy_own() -> bool {
    // FENCE-A1: as in heavy().
    fence(Ordering::SeqCst);
    membarrier(PRIVATE_EXPEDITED)
}

/// How the two ends of a connection fence, agreed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// Only the slow side pays.
    Asymmetric,
    /// Both sides pay: one of the processes has no membarrier.
    Symmetric,
}

impl Fencing {
    /// The hot side: its stores before are ordered before its loads after.
    #[inline(always)]
    pub(crate) fn light(self) {
        match self {
            // FENCE-R1: keeps the compiler from reordering; heavy() fences this processor for us.
            Self::Asymmetric => compiler_fence(Ordering::SeqCst),
            // FENCE-R1: a full fence, which pairs with the full fence of heavy().
            Self::Symmetric => fence(Ordering::SeqCst),
        }
    }
}

/// The slow side, for peers of either kind.
pub(crate) fn heavy() {
    // FENCE-A1: our stores before, then what light() ordered on the other side.
    fence(Ordering::SeqCst);
    if expedited() {
        let fenced = membarrier(GLOBAL_EXPEDITED);
        debug_assert!(fenced, "a registered process may always issue the barrier");
    }
}

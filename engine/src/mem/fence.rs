//! Store-load fences, whose cost one side can bear.
//!
//! In each pair one side is on a fast path (a sender), and the other one is about to do something
//! slow (sleep, revoke). Where the kernel has expedited membarriers, the fast side only keeps the
//! compiler from reordering. The slow side then makes every processor that runs a registered
//! process execute a full fence. Where the kernel has none, both sides execute a fence.
use crate::sync::{Ordering, compiler_fence, fence};
use std::sync::OnceLock;

const GLOBAL_EXPEDITED: libc::c_int = 2;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 4;
const PRIVATE_EXPEDITED: libc::c_int = 8;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 16;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes integers only and accesses no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

static REGISTERED: OnceLock<bool> = OnceLock::new();
static REGISTERED_OWN: OnceLock<bool> = OnceLock::new();

/// Whether other processes' barriers reach this process; registers it on the first call.
pub(crate) fn expedited() -> bool {
    *REGISTERED.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED))
}

/// Registers a forked child, before it does anything.
pub(super) fn register_again() {
    if REGISTERED.get() == Some(&true) {
        membarrier(REGISTER_GLOBAL_EXPEDITED);
    }
    if REGISTERED_OWN.get() == Some(&true) {
        membarrier(REGISTER_PRIVATE_EXPEDITED);
    }
}

/// Whether a thread of this process can make all others execute a full fence; registers the process
/// on the first call.
pub(super) fn expedited_own() -> bool {
    *REGISTERED_OWN.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED))
}

/// Makes all threads of this process execute a full fence, this one first. False where the system
/// refuses: a sandbox may have been set up after the registration.
pub(super) fn heavy_own() -> bool {
    // FENCE-A1: as in heavy().
    fence(Ordering::SeqCst);
    membarrier(PRIVATE_EXPEDITED)
}

/// The fences of the two sides of a connection, agreed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// Only the slow side executes a fence.
    Asymmetric,
    /// Both sides do: one of the processes has no membarrier.
    Symmetric,
}

impl Fencing {
    /// The fast side's fence: orders its earlier stores before its later loads.
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

/// The slow side's fence where no peer counts on more than a fence of this processor.
pub(crate) fn own() {
    // FENCE-A1: our stores before, then what the other side ordered by a full fence.
    fence(Ordering::SeqCst);
}

/// The slow side's fence, for peers of either kind.
pub(crate) fn heavy() {
    own();
    if expedited() {
        let fenced = membarrier(GLOBAL_EXPEDITED);
        debug_assert!(fenced, "a registered process may always issue the barrier");
    }
}

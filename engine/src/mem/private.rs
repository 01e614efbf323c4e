//! Shared memory that a forked child must not reach. Pages, lanes and rings have one writer each,
//! and a child that used its parent's ports would be a second one. The child gets private memory in
//! place of it: a page is all ones, so that no key is valid. All else is zeros, so that nothing has
//! come and nothing was taken.
//!
//! A child shares regions, which are the program's data, with its parent.
use crate::sys::fork::{self, Shared};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Once;

/// The contents of a child's private memory in place of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    Zeros,
    Ones,
}

/// Length and contents in a child, by the first byte of the range.
static RANGES: Shared<BTreeMap<usize, (usize, Instead)>> = Shared::new(BTreeMap::new());

/// From now on, forked children get private memory there.
// spec: LIFE-35
pub(super) fn keep(base: usize, len: usize, instead: Instead) {
    watch_forks();
    RANGES.lock().insert(base, (len, instead));
}

/// Has forked children replace the memory of these ranges.
pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| fork::around(Some(before), Some(in_parent), Some(in_child)));
}

/// Removes a range that is about to be unmapped.
pub(super) fn forget(base: usize) {
    RANGES.lock().remove(&base);
}

extern "C" fn before() {
    RANGES.before_fork();
}

extern "C" fn in_parent() {
    RANGES.after_fork(|_| {});
}

extern "C" fn in_child() {
    super::fence::register_again();
    RANGES.after_fork(|ranges| ranges.iter().for_each(|(base, range)| replace(*base, *range)));
}

fn replace(base: usize, (len, instead): (usize, Instead)) {
    let at = ptr::with_exposed_provenance_mut::<c_void>(base);
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: the range is a mapping of ours that is mapped still; nobody holds references into it
    // (module rules), and the child has no other thread yet.
    let replaced = unsafe { mmap_anonymous(at, len, access, flags) };
    if replaced.is_ok() && instead == Instead::Ones {
        // SAFETY: these bytes have just been mapped.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 0xff, len) };
    }
    debug_assert!(replaced.is_ok(), "as much memory was mapped there before");
}

//! The program's promise about its threads.

use ayre_guest::cell::{self, Promise};

/// `FI_THREAD_DOMAIN`: the program makes one call at a time on the objects of a domain.
#[derive(Debug)]
pub(crate) enum ThreadDomain {}

// SAFETY: cells of this promise exist in domains only that were opened with `FI_THREAD_DOMAIN`, and
// no call comes back to a cell that it uses.
unsafe impl Promise for ThreadDomain {}

/// The policy of such domains.
pub(crate) type Serial = cell::Serial<ThreadDomain>;

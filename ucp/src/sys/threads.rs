//! The program's promise about its threads.

use ayre_guest::cell::{self, Promise};

/// `UCS_THREAD_MODE_SINGLE` and `UCS_THREAD_MODE_SERIALIZED`: the program makes one call at a time
/// on a worker and all that belongs to it.
#[derive(Debug)]
pub(crate) enum OneAtATime {}

// SAFETY: cells of this promise are those of workers that were made in these modes. No call comes
// back to a cell that it uses: the program's functions are called when no cell is in use.
unsafe impl Promise for OneAtATime {}

/// The policy of such workers.
pub(crate) type Serial = cell::Serial<OneAtATime>;

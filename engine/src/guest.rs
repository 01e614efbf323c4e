//! Services for libraries built over this crate, which live in the process of their program.
//!
//! Bells, threads that handle no signal, and descriptors apart from the standard streams. State of
//! their own for forked children. Values that a thread of the library uses while the program is
//! outside, and large arrays made without the stack.

use crate::sys::longest_file::Limited;
use rustix::fs::{Mode, OFlags};
use std::io::{self, Write};
use std::path::Path;

/// Holds the locks of this crate during forks, and resets its state in forked children. Opening a
/// port or an endpoint does this, too. A library that holds locks of its own during forks calls it
/// before it asks for that: its locks are then taken first.
// spec: LIFE-35
pub fn watch_forks() {
    fork::count();
    hidden::watch_forks();
    crate::mem::watch_forks();
    crate::sys::unshared::watch_forks();
    crate::endpoint::watch_forks();
}

/// Makes a file that this process writes. In the pattern of its name, `{rank}` stands for the
/// rank that the launcher has given, or else for the process number. Only the owner may read it.
/// No write raises a signal.
///
/// # Errors
/// The name with the system's reason, also if the file exists.
pub fn file_of_rank(pattern: &Path) -> Result<impl Write + Send + 'static, String> {
    let path = crate::settings::capture_of(pattern, None);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = descriptor::open(&path, flags, Mode::RUSR | Mode::WUSR);
    let told = |error| format!("{}: {}", path.display(), io::Error::from(error));
    file.map(Limited).map_err(told)
}

pub use crate::mem::biased::Biased;
pub use crate::sys::{bell, descriptor, fork, hidden, thread};
pub use ayre_proto::heap;

/// For the conformance suite: a record of all calls that a device was given.
pub mod trace {
    pub use crate::port::device::{Given, Trace, Traced};
}

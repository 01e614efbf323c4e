//! Services for libraries built over this crate, which live in the process of their program.
//!
//! Bells, threads that handle no signal, and descriptors apart from the standard streams. State of
//! their own for forked children. Values that a thread of the library uses while the program is
//! outside, and large arrays made without the stack. Memory files for several processes.

use crate::error::SetupError;
use crate::mem::file::{self, Pages};
use crate::sys::longest_file::Limited;
use rustix::fd::AsFd;
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

/// Makes a memory file of zeros for several processes, which nobody can shorten or lengthen.
///
/// # Errors
/// [`SetupError::Os`] and those of a lack of memory. Where the system refuses memory files,
/// [`SetupError::MemoryFile`] if there is no other place for one.
// spec: LANE-9, LIFE-41
pub fn memory_file(len: usize) -> Result<descriptor::Descriptor, SetupError> {
    let made = file::memory_file(len, Pages::Ordinary)?;
    file::seal_seals(made.as_fd())?;
    Ok(made)
}

/// Opens the memory file that another process of this user has made by [`memory_file`] and knows
/// by this descriptor. None where that has gone, is shorter, or is not for this process.
// spec: LANE-9, ERR-7
pub fn memory_file_of(
    (process, descriptor): (u32, u32),
    len: usize,
    is_writable: bool,
) -> Option<descriptor::Descriptor> {
    let place = format!("/proc/{process}/fd/{descriptor}");
    // To open something else could have effects.
    let link = rustix::fs::readlink(&place, Vec::new()).ok()?;
    if !link.as_bytes().starts_with(b"/memfd:") {
        return None;
    }
    let way = if is_writable { OFlags::RDWR } else { OFlags::RDONLY };
    let opened = descriptor::open(&place, way | OFlags::NONBLOCK, Mode::empty()).ok()?;
    file::check_foreign(opened.as_fd(), len, Pages::Ordinary).ok()?;
    Some(opened)
}

pub use crate::mem::biased::Biased;
pub use crate::sys::{bell, descriptor, fork, hidden, thread};
pub use ayre_proto::heap;

/// For the conformance suite: a record of all calls that a device was given.
pub mod trace {
    pub use crate::port::device::{Given, Trace, Traced};
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::fd::AsRawFd;

    // spec: LANE-9, ERR-7
    #[test]
    fn another_process_finds_a_memory_file_by_its_numbers() {
        let made = memory_file(5000).expect("memory");
        let own = std::process::id();
        let number = |file: &descriptor::Descriptor| file.as_raw_fd() as u32;
        let found = memory_file_of((own, number(&made)), 5000, true).expect("it is there");
        rustix::io::pwrite(&found, b"from there", 4000).expect("it may be written");
        let mut read = [0; 10];
        assert_eq!(rustix::io::pread(&made, &mut read, 4000), Ok(10));
        assert_eq!(&read, b"from there");
        assert!(rustix::fs::ftruncate(&found, 1).is_err(), "nobody can shorten it");
        let readable = memory_file_of((own, number(&made)), 5000, false).expect("it is there");
        assert!(rustix::io::pwrite(&readable, b"x", 0).is_err());
        // Too short, of nobody, no descriptor, no memory file.
        let program = std::env::current_exe().expect("a program");
        let program = descriptor::open(program, OFlags::RDONLY, Mode::empty()).expect("a file");
        for (place, len) in [
            ((own, number(&made)), 5001),
            ((u32::MAX, number(&made)), 5000),
            ((own, 1 << 20), 5000),
            ((own, number(&program)), 1),
        ] {
            assert!(memory_file_of(place, len, true).is_none(), "{place:?} {len}");
        }
    }
}

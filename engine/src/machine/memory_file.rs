//! Files of memory, to be handed over: the kernel's own, or where the system refuses these, as
//! sandboxes and old kernels do, files that no folder lists.
//!
//! Those that stand in for the kernel's cannot be sealed: whoever has one can make it shorter, and
//! then an access ends the process that has mapped it. So only who has no others takes them.
use super::memory;
use crate::error::SetupError;
use crate::random;
use crate::sys::descriptor::Descriptor;
use crate::sys::{descriptor, longest_file};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{
    FallocateFlags, FileType, MemfdFlags, Mode, OFlags, Stat, fallocate, statvfs, unlink,
};
use rustix::io::{Errno, write};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};

/// The bytes of a file that the system does not lay out.
static ZEROS: [u8; 4096] = [0; 4096];
/// From so many bytes on it is asked whether there is as much memory.
const MUCH: usize = 32 << 20;

/// The kernel's own, which can be sealed, and has no bytes yet.
///
/// # Errors
/// The system's.
pub(crate) fn of_kernel(flags: MemfdFlags) -> Result<Descriptor, Errno> {
    let flags = flags | MemfdFlags::ALLOW_SEALING;
    match descriptor::memory(c"ayre", flags) {
        // As the administrator may have it (sysctl vm.memfd_noexec); older kernels lack the flag.
        Err(Errno::ACCESS) => descriptor::memory(c"ayre", flags | MemfdFlags::NOEXEC_SEAL),
        made => made,
    }
}

/// Whether an error of [`of_kernel`] says that this process is to have none of those files, rather
/// than that something is short.
pub(crate) fn is_refusal(errno: Errno) -> bool {
    !matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Why this process has none of the kernel's own, if it has none.
pub(crate) fn refusal() -> Option<Errno> {
    of_kernel(MemfdFlags::empty()).err().filter(|errno| is_refusal(*errno))
}

/// A file of so many bytes in the place of one of the kernel's, which were refused: all its bytes
/// are there, so that no access finds the place full.
///
/// # Errors
/// [`SetupError::MemoryFile`] says where it was tried; [`SetupError::Memory`].
// spec: LIFE-41
pub(crate) fn stand_in(len: usize, refused: Errno) -> Result<Descriptor, SetupError> {
    if len >= MUCH {
        memory::ask(len as u64)?;
    }
    let mut tried = Vec::new();
    for place in places() {
        match make_in(&place, len) {
            Ok(file) => return Ok(file),
            Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
                return Err(SetupError::Os { call: "open of shared memory", errno });
            }
            Err(errno) => tried.push(format!("{}: {errno}", place.display())),
        }
    }
    Err(SetupError::MemoryFile { refused, len, tried: tried.join("; ") })
}

/// Whether a file can be what [`stand_in`] makes in another process of this user.
// spec: LIFE-41
pub(crate) fn stands_in(stat: &Stat) -> bool {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file && stat.st_uid == geteuid().as_raw() && stat.st_nlink == 0
}

/// Where files stand in for the kernel's, and how many bytes are free there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackFolder {
    /// The folder.
    pub path: PathBuf,
    /// Bytes that this user may take.
    pub free: u64,
}

/// The place where files of memory are made in this process, in place of the kernel's own; none
/// where it has those, or there is no such place.
pub fn fallback_folder() -> Option<FallbackFolder> {
    refusal()?;
    let path = places().into_iter().find(|place| make_in(place, 1).is_ok())?;
    let system = statvfs(&path).ok()?;
    Some(FallbackFolder { path, free: system.f_bavail.saturating_mul(system.f_frsize) })
}

/// Where memory is, if there is such a place; else where files of running programs are.
fn places() -> Vec<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let others = [named("XDG_RUNTIME_DIR"), named("TMPDIR"), Some("/tmp".into())];
    [PathBuf::from("/dev/shm")].into_iter().chain(others.into_iter().flatten()).collect()
}

fn make_in(place: &Path, len: usize) -> Result<Descriptor, Errno> {
    let file = open_in(place)?;
    let grown = longest_file::within_limit(|| lay_out(file.as_fd(), len));
    grown.map(|()| file)
}

/// A file without a name.
fn open_in(place: &Path) -> Result<Descriptor, Errno> {
    let (own, flags) = (Mode::RUSR | Mode::WUSR, OFlags::RDWR | OFlags::NOFOLLOW);
    match descriptor::open(place, flags | OFlags::TMPFILE | OFlags::EXCL, own) {
        // Not every file system can.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        made => return made,
    }
    let path = place.join(format!("ayre-{}", random::hex(&random::bytes::<8>())));
    let file = descriptor::open(&path, flags | OFlags::CREATE | OFlags::EXCL, own)?;
    unlink(&path)?;
    Ok(file)
}

/// Gives a new file so many bytes, all of which have a place.
fn lay_out(file: BorrowedFd<'_>, len: usize) -> Result<(), Errno> {
    match fallocate(file, FallocateFlags::empty(), 0, len as u64) {
        Err(Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
        laid_out => return laid_out,
    }
    // The file system or the sandbox does not do it, or a signal was in the way.
    let mut left = len;
    while left > 0 {
        match write(file, &ZEROS[..left.min(ZEROS.len())]) {
            Err(Errno::INTR) => {}
            written => left -= written?,
        }
    }
    Ok(())
}

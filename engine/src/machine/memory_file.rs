//! Memory files to share with peers: the kernel's own, or files without a name where sandboxes or
//! old kernels refuse these.
//!
//! A substitute cannot be sealed: a process that has it can shorten it, and then an access ends the
//! process that has mapped it. So only processes that have no memory files accept it.
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

/// The bytes that fill a file which the system does not allocate.
static ZEROS: [u8; 4096] = [0; 4096];
/// The size from which on the free memory is checked first.
const MUCH: usize = 32 << 20;

/// A memory file of the kernel, without contents; it can be sealed.
///
/// # Errors
/// The system's error.
pub(crate) fn of_kernel(flags: MemfdFlags) -> Result<Descriptor, Errno> {
    let flags = flags | MemfdFlags::ALLOW_SEALING;
    match descriptor::memory(c"ayre", flags) {
        // Required by some administrators (sysctl vm.memfd_noexec); older kernels lack the flag.
        Err(Errno::ACCESS) => descriptor::memory(c"ayre", flags | MemfdFlags::NOEXEC_SEAL),
        made => made,
    }
}

/// Whether an error of [`of_kernel`] means that this process cannot have memory files at all,
/// rather than a shortage.
pub(crate) fn is_refusal(errno: Errno) -> bool {
    !matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// The error with which the system refuses memory files, if it does.
pub(crate) fn refusal() -> Option<Errno> {
    of_kernel(MemfdFlags::empty()).err().filter(|errno| is_refusal(*errno))
}

/// A substitute of this length for a memory file. All its bytes are allocated, so that no access
/// finds the disk full.
///
/// # Errors
/// [`SetupError::MemoryFile`] with the folders that were tried; [`SetupError::Memory`].
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

/// Whether a file can be a substitute that [`stand_in`] has made in another process of this user.
// spec: LIFE-41
pub(crate) fn stands_in(stat: &Stat) -> bool {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file && stat.st_uid == geteuid().as_raw() && stat.st_nlink == 0
}

/// The folder of substitutes for memory files, and its free bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackFolder {
    /// The folder's path.
    pub path: PathBuf,
    /// Bytes that this user may allocate there.
    pub free: u64,
}

/// The folder where this process makes files in place of memory files. `None` where the kernel
/// allows memory files, or where there is no such folder.
pub fn fallback_folder() -> Option<FallbackFolder> {
    refusal()?;
    let path = places().into_iter().find(|place| make_in(place, 1).is_ok())?;
    let system = statvfs(&path).ok()?;
    Some(FallbackFolder { path, free: system.f_bavail.saturating_mul(system.f_frsize) })
}

/// The folders to try: in memory, if there is one, else the folder for files of running programs.
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
        // Some file systems cannot do that.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        made => return made,
    }
    let path = place.join(format!("ayre-{}", random::hex(&random::bytes::<8>())));
    let file = descriptor::open(&path, flags | OFlags::CREATE | OFlags::EXCL, own)?;
    unlink(&path)?;
    Ok(file)
}

/// Allocates all bytes of a new file.
fn lay_out(file: BorrowedFd<'_>, len: usize) -> Result<(), Errno> {
    match fallocate(file, FallocateFlags::empty(), 0, len as u64) {
        Err(Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
        laid_out => return laid_out,
    }
    // The file system or the sandbox does not do it, or a signal has interrupted it.
    let mut left = len;
    while left > 0 {
        match write(file, &ZEROS[..left.min(ZEROS.len())]) {
            Err(Errno::INTR) => {}
            written => left -= written?,
        }
    }
    Ok(())
}

//! Memory files: creation, seals, and checks of files from peers.
use crate::error::{Refusal, SetupError};
use crate::machine::memory_file::{self, stand_in, stands_in};
use crate::sys::descriptor::Descriptor;
use crate::sys::longest_file;
use rustix::fd::BorrowedFd;
use rustix::fs::{
    MemfdFlags, SealFlags, Stat, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
};

/// The type that statfs reports for files of huge pages.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// The size of the pages of a memory file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The system's ordinary pages.
    #[default]
    Ordinary,
    /// Huge pages of the system's default size; allocation fails where none are reserved.
    Huge,
}

/// Rounds up to whole pages.
pub(crate) fn round_to_pages(len: usize, pages: Pages) -> usize {
    let page = match pages {
        Pages::Ordinary => rustix::param::page_size(),
        Pages::Huge => 2 << 20,
    };
    // Too large a number, which the system refuses, where rounding up would overflow.
    len.max(1).checked_next_multiple_of(page).unwrap_or(usize::MAX)
}

/// Makes a memory file of `len` bytes that can neither shrink nor grow; or, where the system
/// refuses memory files, a file in place of one.
// spec: LANE-9, LIFE-41
pub(crate) fn memory_file(len: usize, pages: Pages) -> Result<Descriptor, SetupError> {
    let flags = match pages {
        Pages::Ordinary => MemfdFlags::empty(),
        Pages::Huge => MemfdFlags::HUGETLB,
    };
    let file = match memory_file::of_kernel(flags) {
        Err(errno) if pages == Pages::Ordinary && memory_file::is_refusal(errno) => {
            return stand_in(len, errno);
        }
        made => made.map_err(SetupError::os("memfd_create"))?,
    };
    let grown = longest_file::within_limit(|| ftruncate(&file, len as u64));
    grown.map_err(SetupError::os("ftruncate of shared memory"))?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)
        .map_err(SetupError::os("seal size"))?;
    Ok(file)
}

/// Ends sealing: no process can add seals any more.
pub(crate) fn seal_seals(file: BorrowedFd<'_>) -> Result<(), SetupError> {
    seal(file, SealFlags::SEAL, "seal seals")
}

/// Seals against writers: nobody can map the file for writing any more. This process's present
/// mapping stays writable.
pub(crate) fn seal_writers(file: BorrowedFd<'_>) -> Result<(), SetupError> {
    seal(file, SealFlags::FUTURE_WRITE | SealFlags::SEAL, "seal writes")
}

/// A file in place of a memory file has no seals.
fn seal(file: BorrowedFd<'_>, seals: SealFlags, what: &'static str) -> Result<(), SetupError> {
    if !is_sealed(file) {
        return Ok(());
    }
    fcntl_add_seals(file, seals).map_err(SetupError::os(what))
}

/// Whether nobody can shorten the file.
pub(crate) fn is_sealed(file: BorrowedFd<'_>) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

/// Checks that a peer's file has this length and cannot shrink; returns its properties.
// spec: LANE-9, ERR-7, LIFE-41
pub(crate) fn check_foreign(
    file: BorrowedFd<'_>,
    len: usize,
    largest: Pages,
) -> Result<Stat, SetupError> {
    let stat = fstat(file).map_err(SetupError::os("size of a peer's file"))?;
    let system = fstatfs(file).map_err(SetupError::os("kind of a peer's file"))?;
    // A file of huge pages can be mapped and unmapped only as a whole.
    let is_huge = system.f_type as u64 & 0xffff_ffff == HUGETLBFS_MAGIC;
    let may_be =
        largest == Pages::Huge && (len as u64).is_multiple_of((system.f_bsize as u64).max(1));
    if (stat.st_size as u64) < len as u64 || (is_huge && !may_be) {
        return Err(SetupError::UnsafeFile);
    }
    match fcntl_get_seals(file) {
        Ok(seals) if seals.contains(SealFlags::SHRINK) => Ok(stat),
        // A file of another kind cannot be sealed.
        Ok(SealFlags::SEAL) | Err(_) if stands_in(&stat) => match memory_file::refusal() {
            Some(_) => Ok(stat),
            None => Err(SetupError::rejected(Refusal::Memory)),
        },
        _ => Err(SetupError::UnsafeFile),
    }
}

/// Checks that ports with these two files can share memory: that either accepts the other's file.
// spec: LIFE-41
pub(crate) fn check_alike(own: BorrowedFd<'_>, theirs: BorrowedFd<'_>) -> Result<(), SetupError> {
    match is_sealed(own) == is_sealed(theirs) {
        true => Ok(()),
        false => Err(SetupError::rejected(Refusal::Memory)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::descriptor;
    use rustix::fd::AsFd;
    use rustix::fs::{Mode, OFlags};

    // spec: LIFE-41
    #[test]
    fn a_substitute_file_is_refused_where_memory_files_exist() {
        let refused = rustix::io::Errno::PERM;
        let file = stand_in(5000, refused).expect("a place in the memory of this machine");
        let stat = fstat(&file).expect("a file");
        assert_eq!((stat.st_size, stat.st_nlink, stat.st_mode & 0o777), (5000, 0, 0o600));
        assert!(stat.st_blocks * 512 >= 5000, "all its bytes are there");
        seal_seals(file.as_fd()).expect("it has no seals, so there is nothing to do");
        let checked = |file: &Descriptor, len| check_foreign(file.as_fd(), len, Pages::Ordinary);
        let refused = checked(&file, 5000).expect_err("it can shrink");
        assert!(matches!(refused, SetupError::Rejected { why: Refusal::Memory, .. }), "{refused}");
        let kernels = memory_file(5000, Pages::Ordinary).expect("memory");
        assert!(checked(&kernels, 5000).is_ok());
        assert!(check_alike(file.as_fd(), kernels.as_fd()).is_err());
        assert!(check_alike(file.as_fd(), file.as_fd()).is_ok());
        let program = std::env::current_exe().expect("a program");
        let program = descriptor::open(program, OFlags::RDONLY, Mode::empty()).expect("a file");
        for (file, len) in [(&program, 1), (&file, 5001), (&kernels, 5001)] {
            assert!(matches!(checked(file, len), Err(SetupError::UnsafeFile)), "{file:?}");
        }
    }
}

//! The job directory: private, with a name nobody can guess, removed with the job.
//!
//! The launcher holds a lock on the directory for as long as it lives. A directory whose lock can
//! be taken was left behind by a launcher that was killed; the next job of the same user removes
//! it.

use std::env;
use std::fmt;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, statvfs};
use rustix::io::Errno;
use rustix::process::geteuid;

const PREFIX: &str = "ayre-";
const NAME_BYTES: usize = 16;

/// The longest path that a UNIX socket address holds, and the part of it that a rank needs:
/// `/<rank>.sock` and a zero.
const SOCKET_PATH_MAX: usize = 108;
const SOCKET_NAME_MAX: usize = "/65535.sock".len() + 1;
/// The part of a path below the place.
const NEEDED: usize = "/".len() + PREFIX.len() + 2 * NAME_BYTES + SOCKET_NAME_MAX;

/// A job directory; dropping it removes it with all it contains.
pub(super) struct JobDirectory {
    path: PathBuf,
    _lock: OwnedFd,
}

impl JobDirectory {
    /// Removes the directories of dead launchers of this user, and creates a new one in the first
    /// suitable place for this number of ranks.
    pub(super) fn create(ranks: usize) -> Result<Self> {
        let mut refusals = Vec::new();
        let places = places();
        for place in &places {
            remove_stale(&place.path);
        }
        for place in &places {
            match Self::create_in(&place.path, ranks) {
                Ok(directory) => return Ok(directory),
                Err(reason) => refusals.push(format!("{place}: {reason:#}")),
            }
        }
        bail!(
            "no place for the job directory: {}. Set TMPDIR to a folder that can be written to, \
             whose path begins with / and has at most {} characters",
            refusals.join("; "),
            SOCKET_PATH_MAX - NEEDED
        )
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn create_in(place: &Path, ranks: usize) -> Result<Self> {
        check_place(place)?;
        check_room(place, ranks)?;
        loop {
            let path = place.join(new_name()?);
            DirBuilder::new().mode(0o700).create(&path)?;
            // The user's mask may have taken what its owner needs.
            fs::set_permissions(&path, Permissions::from_mode(0o700))?;
            let lock = match open_directory(&path) {
                Err(Errno::NOENT) => continue,
                opened => opened?,
            };
            flock(&lock, FlockOperation::LockExclusive).context("locking the job directory")?;
            // Before the lock was held, another launcher may have taken the directory for a stale
            // one; then, as above, it is gone and another name is due.
            if fs::symlink_metadata(&path).is_ok_and(|found| is_same(&found, &lock)) {
                return Ok(Self { path, _lock: lock });
            }
        }
    }
}

impl Drop for JobDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            super::say(&format!("cannot remove {}: {error}", self.path.display()));
        }
    }
}

/// Where a job directory may be.
struct Place {
    /// The variable that names it.
    variable: Option<&'static str>,
    path: PathBuf,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.variable {
            Some(variable) => write!(f, "{path} ({variable})"),
            None => write!(f, "{path}"),
        }
    }
}

/// The best place first. One that is not absolute is refused, as the ranks may run elsewhere.
fn places() -> Vec<Place> {
    let named = |variable| {
        let path = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        path.map(|path| Place { variable: Some(variable), path })
    };
    let usual = |path: &str| Some(Place { variable: None, path: path.into() });
    let places = [named("XDG_RUNTIME_DIR"), usual("/dev/shm"), named("TMPDIR"), usual("/tmp")];
    places.into_iter().flatten().collect()
}

/// Refuses a place where somebody else could replace the directory, or where the sockets' paths
/// would be too long.
fn check_place(place: &Path) -> Result<()> {
    ensure!(place.is_absolute(), "its path does not begin with /");
    let found = fs::metadata(place)?;
    let others_may_write = found.mode() & 0o022 != 0;
    let sticky = found.mode() & 0o1000 != 0;
    ensure!(!others_may_write || sticky, "others may rename what is in it");
    let owner = found.uid();
    ensure!(owner == geteuid().as_raw() || owner == 0, "it belongs to another user");
    let len = place.as_os_str().len();
    let most = SOCKET_PATH_MAX - NEEDED;
    ensure!(len <= most, "its path is too long for sockets: {len} characters, {most} at most");
    Ok(())
}

/// Refuses a place without room for the directory, the key, and a socket and an address of each
/// rank.
fn check_room(place: &Path, ranks: usize) -> Result<()> {
    let room = statvfs(place)?;
    let files = 2 + 2 * ranks as u64;
    // A file system without such limits says zero.
    ensure!(room.f_files == 0 || room.f_favail >= files, "it has no room for {files} files");
    ensure!(room.f_blocks == 0 || room.f_bavail > 0, "it is full");
    Ok(())
}

fn new_name() -> Result<String> {
    let digits: String = random::<NAME_BYTES>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{PREFIX}{digits}"))
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut random = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut random))
        .context("reading random bytes")?;
    Ok(random)
}

fn is_job_name(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX.as_bytes()).is_some_and(|digits| {
        digits.len() == 2 * NAME_BYTES && digits.iter().all(u8::is_ascii_hexdigit)
    })
}

/// Removes the job directories of this user in `place` whose launchers are dead. A directory that
/// cannot be removed stays: cleaning up must not keep this job from starting.
fn remove_stale(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if !is_job_name(entry.file_name().as_bytes()) {
            continue;
        }
        let path = entry.path();
        let Ok(directory) = open_directory(&path) else { continue };
        let is_ours = fstat(&directory).is_ok_and(|found| found.st_uid == geteuid().as_raw());
        if is_ours && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

fn is_same(found: &fs::Metadata, open: &OwnedFd) -> bool {
    fstat(open).is_ok_and(|held| (held.st_dev, held.st_ino) == (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_and_differ() {
        let (first, second) = (new_name().unwrap(), new_name().unwrap());
        assert!(is_job_name(first.as_bytes()) && is_job_name(second.as_bytes()));
        assert_ne!(first, second);
        for other in ["ayre-", "ayre-00", "ayre-zz0000000000000000000000000000zz", "x"] {
            assert!(!is_job_name(other.as_bytes()), "{other}");
        }
    }
}

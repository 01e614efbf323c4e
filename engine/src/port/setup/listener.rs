//! Sockets that accept a port's callers: at a path, or at a name.
//!
//! A name has two places. One is a file in the user's folder, which others cannot enter, so that
//! they cannot fill the queue of callers either. The other one is the namespace of sockets without
//! files, for callers that do not share the folder: of another mount namespace, of root, of a
//! group. A caller tries them in this order.
//!
//! The file's name ends in the number of the network namespace, which holds the sockets without
//! files. So both places reach the same processes: another network namespace counts as another
//! host, even if it shares the folder.
use crate::error::SetupError;
use crate::folder::Folder;
use crate::machine::host::network_namespace;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use crate::sys::unshared::Unshared;
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, lstat, unlink};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen};
use std::path::{Path, PathBuf};

/// The length of the system's queue of callers.
pub(super) const BACKLOG: i32 = 1024;
/// The prefix of all names.
pub(crate) const PREFIX: &str = "ayre-";
/// The most files of the folder that are checked, to remove those of killed processes.
const LOOKS_MAX: usize = 256;
/// The most attempts to lock a path: before each further one, the lock's owner has removed the
/// file.
const LOCKS_MAX: usize = 16;
const _: () = assert!(LOCKS_MAX > 1, "one that went away meanwhile is looked for again");

/// The listening sockets of a port, and their files, which are removed with it.
#[derive(Debug)]
pub(crate) struct Listener {
    sockets: Vec<Unshared>,
    file: Option<File>,
    /// Closed to make room for a caller for whom there is no descriptor, so that the caller gets
    /// the error.
    spare: Option<Unshared>,
}

/// The file of a socket.
#[derive(Debug)]
enum File {
    /// Path and inode: another socket may have taken the path.
    At(PathBuf, u64),
    In(Folder, String),
}

impl Listener {
    /// Listens at a path. Replaces a socket that a killed process has left there.
    // spec: LIFE-33
    pub(crate) fn at_path(path: &Path) -> Result<Self, SetupError> {
        let address = socket_address(path)?;
        let socket = match bound(&address) {
            Err(Errno::ADDRINUSE) => take_over(path, &address)?,
            other => other.map_err(SetupError::os("bind"))?,
        };
        let inode = lstat(path).map_or(0, |stat| stat.st_ino);
        Ok(Self {
            sockets: vec![socket],
            file: Some(File::At(path.to_owned(), inode)),
            spare: None,
        })
    }

    /// Listens at a name: in the user's folder, if there can be one, and without a file.
    // spec: LIFE-31
    pub(crate) fn at_name(name: &str) -> Result<Self, SetupError> {
        let is_found = name.starts_with(PREFIX) && !name.contains('/');
        debug_assert!(is_found, "what a killed process leaves is swept");
        let in_folder = Folder::make().and_then(|folder| {
            sweep(&folder);
            // Renamed only once it listens: a socket that does not listen is removed by others.
            let name = file_name(name);
            let fresh = format!(".{name}");
            let socket = bound(&folder.address(&fresh).ok()?).ok()?;
            if folder.rename(&fresh, &name).is_err() {
                folder.remove(&fresh);
                return None;
            }
            Some((socket, File::In(folder, name)))
        });
        let without = abstract_address(name).and_then(|address| bound(&address));
        let (socket, file) = in_folder.unzip();
        let sockets: Vec<_> = match (socket, without) {
            (None, Err(errno)) => {
                return Err(SetupError::Os { call: "listen at a Unix socket", errno });
            }
            (socket, without) => socket.into_iter().chain(without.ok()).collect(),
        };
        debug_assert!(!sockets.is_empty(), "one of both places is bound");
        let spare = spare(&sockets);
        Ok(Self { sockets, file, spare })
    }

    /// Accepts the next caller at one of the sockets. If this process has no descriptor for it, the
    /// spare one is used, and the caller comes with the error that it must get.
    ///
    /// # Errors
    /// The error of the system call.
    // spec: LIFE-27
    pub(super) fn accept(&mut self, socket: usize) -> Result<(Descriptor, Option<Errno>), Errno> {
        debug_assert!(self.keeps_spare() || self.spare.is_none(), "a path has none to give up");
        let listening = self.sockets[socket].get().ok_or(Errno::BADF)?;
        match descriptor::accept(listening, SocketFlags::empty()) {
            Err(short @ (Errno::MFILE | Errno::NFILE)) if self.spare.take().is_some() => {
                let caller = descriptor::accept(listening, SocketFlags::NONBLOCK);
                caller.map(|caller| (caller, Some(short)))
            }
            caller => {
                // The spare descriptor is made anew when there are descriptors again.
                if self.spare.is_none() && self.keeps_spare() {
                    self.spare = spare(&self.sockets);
                }
                caller.map(|caller| (caller, None))
            }
        }
    }

    /// Callers by name wait for an answer without limit, those at a path have a timeout.
    const fn keeps_spare(&self) -> bool {
        !matches!(self.file, Some(File::At(..)))
    }

    /// The refused caller has gone: its descriptor becomes the spare one.
    pub(super) fn has_turned_away(&mut self) {
        debug_assert!(self.spare.is_none(), "it was given up for the caller");
        if self.keeps_spare() {
            self.spare = spare(&self.sockets);
        }
    }

    /// The sockets to poll; none in a forked child.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().filter_map(Unshared::get)
    }

    /// Renames the file.
    pub(crate) fn rename(&mut self, path: PathBuf) -> std::io::Result<()> {
        if let Some(File::At(old, _)) = &mut self.file {
            std::fs::rename(&*old, &path)?;
            *old = path;
        }
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // In a forked child the file is the parent's.
        if self.sockets().next().is_none() {
            return;
        }
        match &self.file {
            Some(File::At(path, inode)) if lstat(path).is_ok_and(|stat| stat.st_ino == *inode) => {
                let _ = unlink(path);
            }
            Some(File::In(folder, name)) => folder.remove(name),
            _ => {}
        }
    }
}

/// A spare descriptor.
fn spare(sockets: &[Unshared]) -> Option<Unshared> {
    let socket = sockets.first()?.get()?;
    Unshared::open(|| descriptor::copy(socket)).ok()
}

/// The outcome of connecting to a name.
pub(crate) enum ConnectAttempt {
    /// A process listens there.
    Connected(Descriptor),
    /// A process listens there, and its queue of callers is full.
    Full,
    /// No process listens there.
    Nobody,
}

/// Connects to the listener of a name; never waits.
// spec: LIFE-31
pub(crate) fn try_connect(name: &str) -> Result<ConnectAttempt, SetupError> {
    let mut is_full = false;
    let (folders, file) = (Folder::all(), file_name(name));
    let in_folders = folders.iter().filter_map(|folder| folder.address(&file).ok());
    for address in in_folders.chain(abstract_address(name)) {
        let socket = control_socket(SocketFlags::NONBLOCK)?;
        match connect(&socket, &address) {
            Ok(()) => return Ok(ConnectAttempt::Connected(socket)),
            Err(Errno::AGAIN) => is_full = true,
            // After any other error at one place, the other place may still work.
            Err(_) => {}
        }
    }
    Ok(if is_full { ConnectAttempt::Full } else { ConnectAttempt::Nobody })
}

/// Whether a process listens at a name.
pub(crate) fn answers(name: &str) -> bool {
    matches!(try_connect(name), Ok(ConnectAttempt::Connected(_) | ConnectAttempt::Full))
}

/// The file of a name in the folder; without the namespace's number, where the system does not
/// report it.
fn file_name(name: &str) -> String {
    network_namespace().map_or_else(|| name.to_owned(), |number| format!("{name}.{number}"))
}

/// Removes files of killed processes from the folder.
fn sweep(folder: &Folder) {
    let names = folder.names().filter(|name| name.starts_with(PREFIX) && !name.ends_with(".sock"));
    for name in names.take(LOOKS_MAX) {
        if folder.address(&name).is_ok_and(|address| is_left(&address)) {
            folder.remove(&name);
        }
    }
}

/// Whether no process has the socket of a file any more. It connects with a socket of another type,
/// which the system refuses without the owner's notice.
fn is_left(address: &SocketAddrUnix) -> bool {
    let other =
        descriptor::socket(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::NONBLOCK, None);
    other.is_ok_and(|socket| connect(&socket, address) == Err(Errno::CONNREFUSED))
}

/// Takes the path of a socket that no process has any more. Of several processes that try at a
/// time, one succeeds.
// spec: LIFE-33
fn take_over(path: &Path, address: &SocketAddrUnix) -> Result<Unshared, SetupError> {
    let in_use = || SetupError::InUse { path: path.display().to_string() };
    let lock = Lock::of(path).ok_or_else(in_use)?;
    let is_socket = lstat(path).is_ok_and(|stat| is_socket(&stat));
    if !is_socket || !is_left(address) {
        return Err(in_use());
    }
    unlink(path).map_err(SetupError::os("remove the socket of a killed process"))?;
    let socket = bound(address);
    drop(lock);
    match socket {
        Err(Errno::ADDRINUSE) => Err(in_use()),
        other => other.map_err(SetupError::os("bind")),
    }
}

fn is_socket(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Socket
}

/// A lock file beside a path, which one process at a time holds, and which is removed with it.
struct Lock {
    path: PathBuf,
    _file: Descriptor,
}

impl Lock {
    /// Takes the lock; None where another process has it.
    fn of(path: &Path) -> Option<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW;
        for _ in 0..LOCKS_MAX {
            let file = descriptor::open(&path, flags, Mode::RUSR | Mode::WUSR).ok()?;
            flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
            let is_there = lstat(&path).ok().map(|stat| stat.st_ino);
            if is_there == fstat(&file).ok().map(|stat| stat.st_ino) {
                return Some(Self { path, _file: file });
            }
        }
        None
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = unlink(&self.path);
    }
}

/// A socket that listens at an address while this process lives: a child that outlives it answers
/// nobody.
// spec: LIFE-33
fn bound(address: &SocketAddrUnix) -> Result<Unshared, Errno> {
    Unshared::open(|| {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::empty());
        let socket = descriptor::socket(AddressFamily::UNIX, kind, flags, None)?;
        bind(&socket, address)?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    })
}

fn abstract_address(name: &str) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

pub(super) fn socket_address(path: &Path) -> Result<SocketAddrUnix, SetupError> {
    SocketAddrUnix::new(path).map_err(SetupError::os("socket path"))
}

pub(super) fn control_socket(flags: SocketFlags) -> Result<Descriptor, SetupError> {
    let kind = SocketType::SEQPACKET;
    descriptor::socket(AddressFamily::UNIX, kind, flags, None).map_err(SetupError::os("socket"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::random;
    use std::fs::{self, DirBuilder};
    use std::os::unix::fs::DirBuilderExt;
    use std::sync::Barrier;
    use std::thread;

    /// An empty folder for this test.
    fn folder() -> PathBuf {
        let name = u64::from_le_bytes(random::bytes());
        let path = std::env::temp_dir().join(format!("ayre-listener-{name:016x}"));
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        path
    }

    /// Leaves a socket at a path as a killed process does.
    fn leave(path: &Path) {
        drop(bound(&socket_address(path).unwrap()).unwrap());
        assert!(path.exists());
    }

    // spec: LIFE-33
    #[test]
    fn a_path_that_a_killed_process_has_left_is_taken_by_one() {
        let folder = folder();
        let path = folder.join("service");
        for _ in 0..20 {
            leave(&path);
            let (count, path) = (8, &path);
            let barrier = Barrier::new(count);
            let listeners: Vec<_> = thread::scope(|scope| {
                let try_it = || {
                    barrier.wait();
                    Listener::at_path(path)
                };
                let threads: Vec<_> = (0..count).map(|_| scope.spawn(try_it)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let (taken, refused): (Vec<_>, Vec<_>) = listeners.into_iter().partition(Result::is_ok);
            assert_eq!(taken.len(), 1);
            for error in refused.into_iter().filter_map(Result::err) {
                let named = path.display().to_string();
                assert!(matches!(&error, SetupError::InUse { path } if *path == named), "{error}");
            }
            let caller = control_socket(SocketFlags::NONBLOCK).unwrap();
            connect(&caller, &socket_address(path).unwrap()).expect("it listens");
            drop(taken);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing stays");
        }
        fs::remove_dir(folder).unwrap();
    }

    // spec: LIFE-33
    #[test]
    fn a_path_in_use_is_not_taken_over() {
        let folder = folder();
        let (path, file) = (folder.join("service"), folder.join("file"));
        let first = Listener::at_path(&path).unwrap();
        assert!(matches!(Listener::at_path(&path), Err(SetupError::InUse { .. })));
        let caller = control_socket(SocketFlags::NONBLOCK).unwrap();
        connect(&caller, &socket_address(&path).unwrap()).expect("the first one has it still");
        fs::write(&file, "a file").unwrap();
        assert!(matches!(Listener::at_path(&file), Err(SetupError::InUse { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"a file");
        // A listener that has lost its path leaves the new file alone.
        fs::remove_file(&path).unwrap();
        let second = Listener::at_path(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        fs::remove_dir_all(folder).unwrap();
    }

    // spec: LIFE-31
    #[test]
    fn a_name_is_called_in_the_folder_and_without() {
        let name = format!("{PREFIX}test-{:016x}", u64::from_le_bytes(random::bytes()));
        assert!(matches!(try_connect(&name), Ok(ConnectAttempt::Nobody)));
        let listener = Listener::at_name(&name).unwrap();
        let place = Folder::make().expect("a folder of this user's");
        assert!(place.names().any(|found| found == file_name(&name)));
        assert_eq!(listener.sockets().count(), 2);
        let callers: Vec<_> = std::iter::from_fn(|| match try_connect(&name) {
            Ok(ConnectAttempt::Connected(socket)) => Some(socket),
            Ok(ConnectAttempt::Full) => None,
            _ => panic!("it listens"),
        })
        .collect();
        assert!(callers.len() > BACKLOG as usize, "both have room");
        drop(listener);
        assert!(matches!(try_connect(&name), Ok(ConnectAttempt::Nobody)));
        // The next listener removes the file of a killed process.
        drop(bound(&place.address(&name).unwrap()).unwrap());
        let next = Listener::at_name(&format!("{name}-2")).unwrap();
        assert!(place.names().all(|found| found != name));
        drop(next);
    }
}

//! The credentials of the process at the other end of a Unix socket, in this process's namespaces.
//!
//! A process of another PID namespace has the number 0 here, which the types of common libraries
//! cannot hold.
use super::errno;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::mem::size_of;

/// The socket option for the peer's groups, which the C library's crate does not define everywhere.
const SO_PEERGROUPS: libc::c_int = 59;
/// The most groups that a process may have.
const GROUPS_MAX: usize = 1 << 16;

/// The kernel's record of the process at the other end, from the time of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Its process number; 0 where it has none here.
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The credentials of the process at the other end of a connected Unix socket.
pub(crate) fn of_peer(socket: BorrowedFd<'_>) -> Result<Credentials, Errno> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: the kernel writes no more than `len` bytes, which `found` has.
    let got = unsafe {
        let into = (&raw mut found).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut len)
    };
    if got != 0 || (len as usize) < size_of::<libc::ucred>() {
        return Err(errno::last());
    }
    let pid = u32::try_from(found.pid).unwrap_or(0);
    Ok(Credentials { pid, uid: found.uid, gid: found.gid })
}

/// Whether the process at the other end has this supplementary group.
pub(crate) fn peer_has_group(socket: BorrowedFd<'_>, group: u32) -> bool {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut len = (groups.len() * size_of::<libc::gid_t>()) as libc::socklen_t;
        let fd = socket.as_raw_fd();
        // SAFETY: the kernel writes no more than `len` bytes, which `groups` has.
        let got = unsafe {
            let into = groups.as_mut_ptr().cast();
            libc::getsockopt(fd, libc::SOL_SOCKET, SO_PEERGROUPS, into, &raw mut len)
        };
        let count = len as usize / size_of::<libc::gid_t>();
        if got == 0 {
            return groups[..count.min(groups.len())].contains(&group);
        }
        if errno::last() != Errno::RANGE || count <= groups.len() || count > GROUPS_MAX {
            return false;
        }
        groups.resize(count, 0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::os::unix::net::UnixStream;

    // spec: LIFE-7
    #[test]
    fn this_process_is_at_the_other_end_of_its_own_pair() {
        let (near, _far) = UnixStream::pair().unwrap();
        let found = of_peer(near.as_fd()).unwrap();
        let own = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
        assert_eq!((found.pid, [found.uid, found.gid]), (std::process::id(), own));
        let groups = rustix::process::getgroups().unwrap();
        assert!(groups.iter().all(|group| peer_has_group(near.as_fd(), group.as_raw())));
        assert!(!peer_has_group(near.as_fd(), 4_000_000_001));
    }
}

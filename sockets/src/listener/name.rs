//! The names of Unix sockets that connect: the code of a pair, and a number that no other
//! connection has. The kernel gives a name to one socket at a time, and tells it to the end that
//! accepts. The program's own calls do not see it.
use ayre::socket::{Process, process_of};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, bind, getsockname};
use rustix::rand::{GetRandomFlags, getrandom};
use std::sync::atomic::{AtomicU64, Ordering};

const HEAD: &str = "ayre-sockets/from/";
/// Digits of a code, a slash, and those of a number.
const LEN: usize = HEAD.len() + 4 + 1 + 16;

/// The bytes that the kernel tells of a name: its family, a zero, and the name.
const ADDRESS: usize = size_of::<libc::sa_family_t>() + 1 + LEN;

/// The number of the next connection; 0: none has had one. They are counted, so that those which
/// open at the same time have different lower halves, from a number that no other process has.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// In a forked child: its numbers are not its parent's.
pub(super) fn forget() {
    NEXT.store(0, Ordering::Relaxed);
}

fn new_number() -> Option<u64> {
    if NEXT.load(Ordering::Relaxed) == 0 {
        let mut bytes = [0; 8];
        getrandom(&mut bytes, GetRandomFlags::NONBLOCK).ok()?;
        let first = u64::from_ne_bytes(bytes);
        let _ = NEXT.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed);
    }
    Some(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Names a socket that is about to connect. The number in its name; None where it has another.
pub(super) fn show(socket: BorrowedFd<'_>, code: u16) -> Option<u64> {
    let number = new_number()?;
    let name = format!("{HEAD}{code:04x}/{number:016x}");
    match bind(socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?) {
        Ok(()) => Some(number),
        // It has tried to connect before.
        Err(Errno::INVAL) => {
            let name = SocketAddrUnix::try_from(getsockname(socket).ok()?).ok()?;
            let (shown, number) = shown(name.abstract_name()?)?;
            (shown == code).then_some(number)
        }
        Err(_) => None,
    }
}

/// The code of the pair, and the number of the connection, in the abstract name of the socket that
/// connects.
pub(super) fn shown(name: &[u8]) -> Option<(u16, u64)> {
    let rest = std::str::from_utf8(name).ok()?.strip_prefix(HEAD)?;
    let (code, number) = rest.split_once('/').filter(|_| HEAD.len() + rest.len() == LEN)?;
    Some((u16::from_str_radix(code, 16).ok()?, u64::from_str_radix(number, 16).ok()?))
}

/// Whether the kernel has told a name of this library, as far as the program had room for it.
pub(crate) fn is_shown(told: &[u8], len: usize) -> bool {
    let family = libc::AF_UNIX as libc::sa_family_t;
    let head = [&family.to_ne_bytes(), "\0".as_bytes(), HEAD.as_bytes()].concat();
    len == ADDRESS && head.iter().zip(told).all(|(one, other)| one == other)
}

/// Whether the other end of a Unix socket is of this process.
// spec: SOCK-52
pub(super) fn is_of(socket: BorrowedFd<'_>, process: Option<Process>) -> bool {
    process.is_some() && process_of(socket) == process
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use rustix::net::{AddressFamily, SocketType, socket};

    // spec: SOCK-51
    #[test]
    fn a_socket_shows_its_code_and_keeps_its_name() {
        let unix = || socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let (one, other) = (unix(), unix());
        let number = show(one.as_fd(), 0x12f).unwrap();
        let name = SocketAddrUnix::try_from(getsockname(&one).unwrap()).unwrap();
        assert_eq!(shown(name.abstract_name().unwrap()), Some((0x12f, number)));
        assert_eq!(show(one.as_fd(), 0x12f), Some(number), "it connects again");
        assert_eq!(show(one.as_fd(), 0x130), None, "to another pair");
        assert_ne!(show(other.as_fd(), 0x12f), Some(number));
        assert_eq!(shown(b"ayre-sockets/from/12f"), None);
    }

    #[test]
    fn names_of_this_library_are_known_also_where_they_are_cut_short() {
        let name = format!("\u{1}\0\0{HEAD}0001/{:016x}", 7);
        let told = name.as_bytes();
        assert!(is_shown(told, told.len()) && is_shown(&told[..16], told.len()));
        assert!(!is_shown(told, told.len() - 1));
        let other = name.replace("from", "form");
        assert!(!is_shown(other.as_bytes(), told.len()));
    }
}

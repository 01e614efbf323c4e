//! The Unix sockets of this tool's network namespace, with both ends of each connection, as the
//! kernel tells it (`NETLINK_SOCK_DIAG`).

use std::collections::HashMap;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// A connected Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    /// Its path, or `@` and its abstract name; empty: it has none, or one of the library's.
    pub(super) name: String,
    /// The number of the other end.
    pub(super) peer: u64,
}

/// Of linux/sock_diag.h, linux/netlink.h and linux/unix_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 24;
/// In an answer, behind its header: the number of the socket, and the end of what each answer has.
const NUMBER: usize = 4;
const ANSWER: usize = 16;
const SHOW_NAME_AND_PEER: u32 = 1 | 4;
const NAME: u16 = 0;
const PEER: u16 = 2;
const CONNECTED: u32 = 1 << 1;

/// The names by which the library's sockets show codes begin so.
const SHOWN: &str = "@ayre-sockets/from/";

/// All connected ones by their numbers; none where the kernel does not tell.
pub(super) fn sockets() -> HashMap<u64, Socket> {
    dump().unwrap_or_default()
}

fn request() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(REQUEST);
    bytes.extend((REQUEST as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    // Its number, and the sender's, which nobody looks at.
    bytes.extend([0; 8]);
    bytes.extend([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
    // The states, one socket's number, which is not asked for, and the parts of an answer.
    for word in [CONNECTED, 0, SHOW_NAME_AND_PEER] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend([0xff; 8]);
    bytes
}

fn dump() -> Result<HashMap<u64, Socket>, Errno> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    sendto(&socket, &request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut sockets = HashMap::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (_, len) = recv(&socket, &mut *buffer, RecvFlags::empty())?;
        let mut rest = &buffer[..len];
        while let Some((kind, answer, behind)) = message(rest) {
            if kind != SOCK_DIAG_BY_FAMILY {
                return Ok(sockets);
            }
            sockets.extend(read(answer));
            rest = behind;
        }
    }
}

/// Cuts the first message off: its kind, what it has, and what follows.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let behind = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, bytes.get(HEADER..len)?, behind))
}

/// A socket of an answer, with its number.
fn read(answer: &[u8]) -> Option<(u64, Socket)> {
    let word = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?));
    let number = word(answer.get(NUMBER..)?)?;
    let mut socket = Socket { name: String::new(), peer: 0 };
    let mut rest = answer.get(ANSWER..)?;
    while let Some(head) = rest.get(..4) {
        let [len, kind] = [0, 2].map(|at| u16::from_ne_bytes([head[at], head[at + 1]]));
        let part = rest.get(4..usize::from(len))?;
        match kind {
            NAME => socket.name = name(part),
            PEER => socket.peer = word(part)?.into(),
            _ => {}
        }
        rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
    }
    Some((number.into(), socket))
}

fn name(bytes: &[u8]) -> String {
    let name = match bytes.split_first() {
        Some((0, name)) => format!("@{}", String::from_utf8_lossy(name)),
        _ => String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned(),
    };
    if name.starts_with(SHOWN) { String::new() } else { name }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_know_each_other() {
        let path = std::env::temp_dir().join(format!("ayre-unix-test-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let near = UnixStream::connect(&path).unwrap();
        let (far, _) = listener.accept().unwrap();
        std::fs::remove_file(&path).unwrap();
        let number = |socket: &UnixStream| rustix::fs::fstat(socket.as_fd()).unwrap().st_ino;
        let all = sockets();
        let [one, other] = [&near, &far].map(|socket| all.get(&number(socket)));
        let at = path.to_str().unwrap().to_owned();
        assert_eq!(one, Some(&Socket { name: String::new(), peer: number(&far) }));
        assert_eq!(other, Some(&Socket { name: at, peer: number(&near) }));
    }

    #[test]
    fn answers_that_are_cut_short_are_left_out() {
        assert_eq!(message(&[20, 0, 0, 0, 20, 0]), None);
        assert_eq!(read(&[1, 0, 0, 0, 9, 0, 0]), None);
        assert_eq!(name(b"/a\0"), "/a");
        assert_eq!([name(b"\0b"), name(b"\0ayre-sockets/from/1")], ["@b", ""].map(str::to_owned));
    }
}

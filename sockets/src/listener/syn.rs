//! A code of 13 bits in the SYN of a connection: 7 in the time to live, whose highest bit is set,
//! and 6 in the class of traffic. Packets behind the SYN have what the program has set.
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::net::SocketAddr;

const MARK: u8 = 128;
const CODES: u16 = 1 << 13;

/// Longest headers of a SYN that the kernel keeps.
const HEADERS: usize = 256;

/// A code that nobody can foresee; never 0.
pub(super) fn new_code() -> u16 {
    let mut bytes = [0; 2];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    1 + u16::from_ne_bytes(bytes) % (CODES - 1)
}

/// Has a socket that is about to listen keep the SYNs of what it accepts.
pub(super) fn keep(socket: BorrowedFd<'_>) -> bool {
    let on: libc::c_int = 1;
    crate::sys::memory::set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, on)
}

/// The code in the SYN of an accepted connection.
pub(super) fn code(socket: BorrowedFd<'_>) -> Option<u16> {
    let mut headers = [0; HEADERS];
    let fd = socket.as_raw_fd();
    let level = libc::IPPROTO_TCP;
    let len = crate::sys::memory::option(fd, level, libc::TCP_SAVED_SYN, &mut headers)?;
    of_headers(&headers[..len])
}

fn of_headers(headers: &[u8]) -> Option<u16> {
    let (class, hops) = match headers.first()? >> 4 {
        4 => (*headers.get(1)?, *headers.get(8)?),
        6 => (headers[0] << 4 | *headers.get(1)? >> 4, *headers.get(7)?),
        _ => return None,
    };
    let code = u16::from(class >> 2) << 7 | u16::from(hops & !MARK);
    (hops & MARK != 0 && code != 0).then_some(code)
}

/// The values that a socket had before it showed a code.
pub(super) struct Shown {
    is_six: bool,
    class: u8,
    hops: u8,
}

fn set(socket: BorrowedFd<'_>, is_six: bool, (class, hops): (u8, u8)) -> Result<(), Errno> {
    if is_six {
        sockopt::set_ipv6_tclass(socket, class.into())?;
        return sockopt::set_ipv6_unicast_hops(socket, Some(hops));
    }
    sockopt::set_ip_tos(socket, class)?;
    sockopt::set_ip_ttl(socket, hops.into())
}

/// Has the next SYN show a code. None where the system refuses.
pub(super) fn show(socket: BorrowedFd<'_>, to: SocketAddr, code: u16) -> Option<Shown> {
    let is_six = matches!(to, SocketAddr::V6(to) if to.ip().to_ipv4_mapped().is_none());
    let (class, hops) = match is_six {
        true => {
            (sockopt::ipv6_tclass(socket).ok()? as u8, sockopt::ipv6_unicast_hops(socket).ok()?)
        }
        false => (sockopt::ip_tos(socket).ok()?, sockopt::ip_ttl(socket).ok()? as u8),
    };
    let shown = Shown { is_six, class, hops };
    let codes = ((code >> 7 << 2) as u8 | class & 3, code as u8 & !MARK | MARK);
    if set(socket, is_six, codes).is_err() {
        shown.hide(socket);
        return None;
    }
    Some(shown)
}

impl Shown {
    /// Has packets be as the program has set them.
    pub(super) fn hide(self, socket: BorrowedFd<'_>) {
        let _ = set(socket, self.is_six, (self.class, self.hops));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: SOCK-6
    #[test]
    fn a_code_is_read_from_the_headers_of_both_families() {
        let code = 0b10_1101_0110_1011;
        let code = code & (CODES - 1);
        let (class, hops) = ((code >> 7 << 2) as u8, code as u8 & !MARK | MARK);
        let mut four = [0; 40];
        (four[0], four[1], four[8]) = (0x45, class, hops);
        assert_eq!(of_headers(&four), Some(code));
        let mut six = [0; 60];
        (six[0], six[1], six[7]) = (0x60 | class >> 4, class << 4, hops);
        assert_eq!(of_headers(&six), Some(code));
        (six[7], four[8]) = (64, 64);
        assert_eq!((of_headers(&six), of_headers(&four)), (None, None), "no mark");
        assert_eq!(of_headers(&[]), None);
        assert_eq!(of_headers(&[0x45, 0]), None, "cut short");
    }
}

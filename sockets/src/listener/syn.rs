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

/// The fields of a packet's headers that show a code.
pub(super) struct Headers {
    is_six: bool,
    class: u8,
    /// None: the system's.
    hops: Option<u8>,
}

impl Headers {
    /// Those of a socket as it is made.
    fn of_new(is_six: bool) -> Self {
        Self { is_six, class: 0, hops: None }
    }

    fn read(socket: BorrowedFd<'_>, is_six: bool) -> Result<Self, Errno> {
        let (class, hops) = match is_six {
            true => (sockopt::ipv6_tclass(socket)?, sockopt::ipv6_unicast_hops(socket)?),
            false => (sockopt::ip_tos(socket)?.into(), sockopt::ip_ttl(socket)? as u8),
        };
        Ok(Self { is_six, class: class as u8, hops: Some(hops) })
    }

    /// These, with a code.
    fn with(&self, code: u16) -> Self {
        let class = (code >> 7 << 2) as u8 | self.class & 3;
        Self { is_six: self.is_six, class, hops: Some(code as u8 & !MARK | MARK) }
    }

    fn set(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.is_six {
            sockopt::set_ipv6_tclass(socket, self.class.into())?;
            return sockopt::set_ipv6_unicast_hops(socket, self.hops);
        }
        sockopt::set_ip_tos(socket, self.class)?;
        // As the kernel has it, -1 is the system's.
        sockopt::set_ip_ttl(socket, self.hops.map_or(u32::MAX, u32::from))
    }

    /// Has packets be as before the code was shown.
    pub(super) fn restore(&self, socket: BorrowedFd<'_>) {
        let _ = self.set(socket);
    }
}

/// Has the next SYN show a code. Returns what packets had before; None where the system refuses.
pub(super) fn show(
    socket: BorrowedFd<'_>,
    to: SocketAddr,
    code: u16,
    is_new: bool,
) -> Option<Headers> {
    let is_six = matches!(to, SocketAddr::V6(to) if to.ip().to_ipv4_mapped().is_none());
    let before = match is_new {
        true => Headers::of_new(is_six),
        false => Headers::read(socket, is_six).ok()?,
    };
    if before.with(code).set(socket).is_err() {
        before.restore(socket);
        return None;
    }
    Some(before)
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

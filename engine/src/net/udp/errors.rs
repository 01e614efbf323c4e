//! The errors that the system has received for a socket's datagrams, by ICMP.
//!
//! A call that sends or receives fails once for each of these errors, whatever the datagram of that
//! call. The next call goes on. The system keeps the error itself until it is taken. A socket that
//! has one kept wakes a thread that sleeps on it, so all of them are taken where a call has failed.
use crate::net::hints::{Hint, Hints};
use crate::sys::descriptor::Descriptor;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, setsockopt,
};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

/// The number of errors that are taken at most where a call has failed.
const TAKEN_MAX: usize = 1024;
/// "Destination unreachable: port unreachable", by ICMP and by ICMPv6.
const PORT_UNREACHABLE: [(u8, u8, u8); 2] =
    [(libc::SO_EE_ORIGIN_ICMP, 3, 3), (libc::SO_EE_ORIGIN_ICMP6, 1, 4)];

/// Has the system keep errors of this socket. Where it does not, nothing is known of closed ports.
pub(super) fn keep(socket: &Descriptor, is_ipv4: bool) {
    let _ = match is_ipv4 {
        true => setsockopt(socket, Ipv4RecvErr, &true),
        false => setsockopt(socket, Ipv6RecvErr, &true),
    };
}

/// Takes all errors of a socket, and notes what they say of addresses. Whether there were any.
// spec: NET-4, LINK-29, OPEN-32
#[cold]
pub(super) fn take(socket: &Descriptor, hints: &Hints) -> bool {
    let mut taken = (0..TAKEN_MAX).map_while(|_| take_one(socket));
    taken.by_ref().fold(false, |_, said| {
        said.into_iter().for_each(|(at, hint)| hints.note(at, hint));
        true
    })
}

/// The next error: what it says, and of whom, if it does.
fn take_one(socket: &Descriptor) -> Option<Option<(SocketAddr, Hint)>> {
    let mut control = nix::cmsg_space!(libc::sock_extended_err, SockaddrIn6);
    let mut byte = [0];
    let mut room = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let fd = socket.as_raw_fd();
    let error = recvmsg::<SockaddrStorage>(fd, &mut room, Some(&mut control), flags).ok()?;
    let to = error.address.as_ref().and_then(address);
    let said = error.cmsgs().ok().and_then(|mut messages| {
        messages.find_map(|message| match message {
            ControlMessageOwned::Ipv4RecvErr(what, by) => {
                Some((what, by.map(|by| IpAddr::V4(SockaddrIn::from(by).ip()))))
            }
            ControlMessageOwned::Ipv6RecvErr(what, by) => {
                Some((what, by.map(|by| IpAddr::V6(SockaddrIn6::from(by).ip()))))
            }
            _ => None,
        })
    });
    Some(to.zip(said).map(|(to, (what, by))| (to, hint(to, &what, by))))
}

/// The report of an error about the address to which the datagram was to go.
fn hint(to: SocketAddr, what: &libc::sock_extended_err, by: Option<IpAddr>) -> Hint {
    let kind = (what.ee_origin, what.ee_type, what.ee_code);
    // Only the host itself is believed.
    if PORT_UNREACHABLE.contains(&kind) && by == Some(to.ip()) {
        return Hint::PortClosed;
    }
    let errno = Errno::from_raw_os_error(what.ee_errno as i32);
    match what.ee_origin {
        libc::SO_EE_ORIGIN_LOCAL => Hint::NotSent(errno),
        _ => Hint::Undelivered { errno, by },
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
        (Some(at), _) => Some((at.ip(), at.port()).into()),
        (_, Some(at)) => Some((at.ip(), at.port()).into()),
        _ => None,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::open;
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

    // spec: LINK-29, NET-4
    #[test]
    fn a_closed_port_is_reported_and_the_error_queue_is_drained() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let other = UdpSocket::bind((ip, 0)).expect("a port of this host");
            let at = other.local_addr().expect("it is bound");
            let (socket, hints) = (open(at).expect("a socket"), Hints::default());
            keep(&socket, at.is_ipv4());
            let send = || rustix::net::sendto(&socket, b"?", rustix::net::SendFlags::empty(), &at);
            send().expect("it is open");
            assert!(!take(&socket, &hints) && hints.of(at).is_none());
            drop(other);
            send().expect("nothing has been heard yet");
            // On one host the answer is there by now.
            assert_eq!(send(), Err(Errno::CONNREFUSED));
            assert!(take(&socket, &hints) && hints.take_closed(at) && !hints.take_closed(at));
            send().expect("all was taken");
        }
    }
}

//! What the system has heard of a socket's datagrams beside those that came: errors, by ICMP.
//!
//! A call that sends or receives fails once for such an error, for whomever that datagram was, and
//! the next one goes on. What it was, the system keeps until it is taken; as a socket that has
//! something kept wakes whoever sleeps on it, all of it is taken where a call has failed.
use crate::wire::doubt::Closed;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6};
use nix::sys::socket::{SockaddrStorage, recvmsg, setsockopt};
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

/// What is taken at most where a call has failed.
const TAKEN_MAX: usize = 1024;
/// "Destination unreachable: port unreachable", by ICMP and by ICMPv6.
const PORT_UNREACHABLE: [(u8, u8, u8); 2] =
    [(libc::SO_EE_ORIGIN_ICMP, 3, 3), (libc::SO_EE_ORIGIN_ICMP6, 1, 4)];

/// Has the system keep errors of this socket. Where it does not, nothing is known of closed ports.
pub(super) fn keep(socket: &OwnedFd, is_ipv4: bool) {
    let _ = match is_ipv4 {
        true => setsockopt(socket, Ipv4RecvErr, &true),
        false => setsockopt(socket, Ipv6RecvErr, &true),
    };
}

/// Takes all errors of a socket, and notes ports that their hosts say are closed. Whether there
/// were any.
// spec: NET-4, LINK-29
#[cold]
pub(super) fn take(socket: &OwnedFd, closed: &Closed) -> bool {
    let mut taken = (0..TAKEN_MAX).map_while(|_| take_one(socket));
    taken.by_ref().fold(false, |_, port| {
        port.into_iter().for_each(|port| closed.note(port));
        true
    })
}

/// The next error: the port that is closed, if it says that.
fn take_one(socket: &OwnedFd) -> Option<Option<SocketAddr>> {
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
    Some(to.filter(|to| {
        // Only the host itself is believed.
        said.is_some_and(|(what, by)| {
            let what = (what.ee_origin, what.ee_type, what.ee_code);
            PORT_UNREACHABLE.contains(&what) && by == Some(to.ip())
        })
    }))
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
    fn a_closed_port_is_known_by_its_host_and_nothing_stays_behind() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let other = UdpSocket::bind((ip, 0)).expect("a port of this host");
            let at = other.local_addr().expect("it is bound");
            let (socket, closed) = (open(at).expect("a socket"), Closed::default());
            keep(&socket, at.is_ipv4());
            let send = || rustix::net::sendto(&socket, b"?", rustix::net::SendFlags::empty(), &at);
            send().expect("it is open");
            assert!(!take(&socket, &closed) && !closed.take(at));
            drop(other);
            send().expect("nothing has been heard yet");
            // On one host the answer is there by now.
            assert_eq!(send(), Err(rustix::io::Errno::CONNREFUSED));
            assert!(take(&socket, &closed) && closed.take(at) && !closed.take(at));
            send().expect("all was taken");
        }
    }
}

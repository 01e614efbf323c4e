//! Which user has the TCP socket at an address, as the kernel tells it to each process
//! (`NETLINK_SOCK_DIAG`). A Unix socket's name is free for each user, and a port is not.
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::net::{IpAddr, SocketAddr};

/// Of linux/sock_diag.h, linux/netlink.h and linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const ANY_COOKIE: [u8; 8] = [0xff; 8];
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
/// Places in the answer, behind its header.
const STATE: usize = 1;
const UID: usize = 64;
const ANSWER: usize = 72;

const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;

/// The user of the socket that listens at an address in this network namespace. None where there
/// is no such socket, or the kernel does not tell.
pub fn owner_of_listener(at: SocketAddr) -> Option<u32> {
    let nobody = SocketAddr::new(at.ip(), 0);
    ask(at, nobody).filter(|(state, _)| *state == TCP_LISTEN).map(|(_, user)| user)
}

/// The user of the end of a connection that has the first of these addresses, likewise.
pub fn owner_of(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    ask(local, remote).filter(|(state, _)| *state != TCP_LISTEN).map(|(_, user)| user)
}

/// The number of a user, as `/etc/passwd` has it. The C library would ask services, to which it
/// connects by sockets.
pub fn user_named(name: &str) -> Option<u32> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// The state and the user of the socket that gets the packets from `remote` to `local`.
fn ask(local: SocketAddr, remote: SocketAddr) -> Option<(u8, u32)> {
    let answer = exchange(&request(local, remote)?).ok()?;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let answer = answer.get(HEADER..).filter(|answer| answer.len() >= ANSWER)?;
    let user = u32::from_ne_bytes(answer[UID..UID + 4].try_into().ok()?);
    (kind == SOCK_DIAG_BY_FAMILY).then_some((answer[STATE], user))
}

fn request(local: SocketAddr, remote: SocketAddr) -> Option<Vec<u8>> {
    let family = match (local.ip(), remote.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => AddressFamily::INET,
        (IpAddr::V6(_), IpAddr::V6(_)) => AddressFamily::INET6,
        _ => return None,
    };
    let mut bytes = Vec::with_capacity(REQUEST);
    bytes.extend((REQUEST as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // Its number, and the sender's, which nobody looks at.
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, IPPROTO_TCP, 0, 0]);
    // All states.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        let mut place = [0; 16];
        match address {
            IpAddr::V4(ip) => place[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => place = ip.octets(),
        }
        bytes.extend(place);
    }
    // Any interface.
    bytes.extend([0; 4]);
    bytes.extend(ANY_COOKIE);
    Some(bytes)
}

/// Asks the kernel, which answers before the request returns.
fn exchange(request: &[u8]) -> Result<Vec<u8>, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
    sendto(&socket, request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; 1024];
    let (_, len) = recv(&socket, &mut *answer, RecvFlags::empty())?;
    answer.truncate(len);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn users_are_known_by_name() {
        assert_eq!((user_named("root"), user_named("no such user")), (Some(0), None));
    }

    // spec: SOCK-34
    #[test]
    fn the_owner_of_each_end_and_of_the_listener_is_found() {
        let own = Some(geteuid().as_raw());
        for (listens, reached) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::1]:0", "::1")]
        {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(listens) else { continue };
            let port = listener.local_addr().unwrap().port();
            let at = SocketAddr::new(reached.parse().unwrap(), port);
            assert_eq!(owner_of_listener(at), own, "{listens}");
            let near = TcpStream::connect(at).unwrap();
            let (far, _) = listener.accept().unwrap();
            let maker = near.local_addr().unwrap();
            assert_eq!([owner_of(maker, at), owner_of(at, maker)], [own, own], "{listens}");
            assert_eq!(owner_of_listener(maker), None, "a connection does not listen");
            drop((listener, far));
            assert_eq!(owner_of_listener(at), None, "{listens}");
        }
    }
}

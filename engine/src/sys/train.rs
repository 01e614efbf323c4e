//! Sending and receiving trains of datagrams, with as little overhead as possible: receiving is
//! called all the time while no datagrams come.
use super::errno;
use arrayvec::ArrayVec;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::mem::zeroed;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The result of one receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Train {
    /// The sender's address, if it was asked for and is an IP address.
    pub(crate) from: Option<SocketAddr>,
    pub(crate) len: usize,
    /// Bytes of each of its datagrams except the last one.
    pub(crate) segment: usize,
    /// Whether there was room for the whole train.
    pub(crate) is_whole: bool,
}

/// The most datagrams of a train: the number that every system with trains accepts.
pub(crate) const TRAIN_MAX: usize = 64;

/// The control message that cuts the data into datagrams: a number, the length of each.
#[repr(C)]
struct Order {
    head: libc::cmsghdr,
    segment: u16,
    _padding: [u16; 3],
}

/// Sends datagrams with one call, to `to` or to the address with which the socket is connected.
/// Each has `segment` bytes, except the last one, which may be shorter. Sends the first
/// [`TRAIN_MAX`] of them.
///
/// Contiguous datagrams are passed as one piece: the system copies each piece by itself, and one
/// long piece twice as fast as many short ones.
///
/// # Errors
/// The system's error; `AGAIN` where it accepts no more.
pub(crate) fn send_train<'a>(
    socket: BorrowedFd<'_>,
    to: Option<&SockaddrStorage>,
    segment: u16,
    datagrams: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Errno> {
    let mut pieces = ArrayVec::<libc::iovec, TRAIN_MAX>::new();
    for datagram in datagrams.take(TRAIN_MAX) {
        let (start, len) = (datagram.as_ptr().expose_provenance(), datagram.len());
        match pieces.last_mut() {
            Some(last) if last.iov_base.addr() + last.iov_len == start => last.iov_len += len,
            _ => {
                let iov_base = std::ptr::with_exposed_provenance_mut(start);
                pieces.push(libc::iovec { iov_base, iov_len: len });
            }
        }
    }
    // SAFETY: all of these are plain numbers and pointers, which may be zero.
    let (mut order, mut header): (Order, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    (order.head.cmsg_level, order.head.cmsg_type) = (libc::SOL_UDP, libc::UDP_SEGMENT);
    order.head.cmsg_len = size_of::<libc::cmsghdr>() + size_of::<u16>();
    order.segment = segment;
    if let Some(to) = to {
        (header.msg_name, header.msg_namelen) = (to.as_ptr().cast_mut().cast(), to.len());
    }
    (header.msg_iov, header.msg_iovlen) = (pieces.as_mut_ptr(), pieces.len());
    header.msg_control = (&raw mut order).cast();
    header.msg_controllen = size_of::<Order>();
    // SAFETY: name, pieces and control are ours, as long as the header says, and outlive the call;
    // none is written. All bytes of a piece are of datagrams that were lent to us.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, 0) };
    if sent < 0 { Err(errno::last()) } else { Ok(()) }
}

/// Room for the one control message that the system sends: a number, the length of datagrams.
#[repr(C)]
struct Control {
    head: libc::cmsghdr,
    segment: libc::c_int,
    _padding: libc::c_int,
}

/// Receives a train or a single datagram from a non-blocking IP socket. A caller that knows the
/// sender need not ask for its address, which takes the system a tenth of the call.
///
/// # Errors
/// The system's error; `AGAIN` where no datagram has come.
#[inline]
pub(crate) fn receive_train(
    socket: BorrowedFd<'_>,
    room: &mut [u8],
    asks_from: bool,
) -> Result<Train, Errno> {
    // SAFETY: all of these are plain numbers and pointers, which may be zero.
    let (mut name, mut control, mut header): (libc::sockaddr_in6, Control, libc::msghdr) =
        unsafe { (zeroed(), zeroed(), zeroed()) };
    let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    if asks_from {
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    }
    (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>();
    // SAFETY: name, room and control are ours, as long as the header says, and outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let Ok(len) = usize::try_from(received) else { return Err(errno::last()) };
    let said = (control.head.cmsg_level, control.head.cmsg_type);
    let segment = match said == (libc::SOL_UDP, libc::UDP_GRO) {
        true => usize::try_from(control.segment).unwrap_or(0),
        false => len,
    };
    let is_whole = header.msg_flags & libc::MSG_TRUNC == 0;
    Ok(Train { from: address(&name), len, segment, is_whole })
}

/// The address that the system has written into room for either kind; None if it was not asked for.
fn address(name: &libc::sockaddr_in6) -> Option<SocketAddr> {
    let port = u16::from_be(name.sin6_port);
    match i32::from(name.sin6_family) {
        // Family and port are at the same place in both; the IPv4 address follows them.
        libc::AF_INET => Some((Ipv4Addr::from(u32::from_be(name.sin6_flowinfo)), port).into()),
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, port, name.sin6_flowinfo, name.sin6_scope_id).into())
        }
        _ => None,
    }
}

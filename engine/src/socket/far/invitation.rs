//! How two hosts find each other: the code of a SYN names a UDP port of the connecting process. The
//! accepting one sends a datagram there.
//!
//! ```text
//!     0  MAGIC    8  token, 2 words   24  the connection: 5 words   64  address of an endpoint
//! ```
//!
//! The token proves that a caller has read the datagram. A key, if there is one, is proved by the
//! link.
use crate::endpoint::Address;
use crate::error::SetupError;
use crate::mem::socket::OFFER_WORDS;
use crate::random;
use crate::socket::meeting::Ends;
use crate::sys::hidden::Hidden;
use ayre_proto::socket::far::Token;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, sendto,
    socket_with, sockopt,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first of the ports, which has no code: codes begin at 1.
const FIRST_PORT: u16 = 24_576;

/// Codes of SYNs are below.
const CODES: u16 = 1 << 13;

/// How often a port is tried that nobody can foresee.
const TRIES: usize = 64;

const MAGIC: [u8; 8] = *b"ayreinv1";
const WORDS_AT: usize = 8;
const ADDRESS_AT: usize = WORDS_AT + 8 * (2 + OFFER_WORDS);
const BYTES: usize = ADDRESS_AT + Address::BYTES;

/// Where a connection can be carried to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invitation {
    /// The endpoint of the accepting process.
    pub(super) address: Address,
    pub(super) name: Ends,
    pub(super) token: Token,
}

impl Invitation {
    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let words = self.token.into_iter().chain(self.name.words());
        for (place, word) in bytes[WORDS_AT..ADDRESS_AT].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[ADDRESS_AT..].copy_from_slice(&self.address.to_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; BYTES]) -> Option<Self> {
        let mut words = [0; 2 + OFFER_WORDS];
        for (word, place) in words.iter_mut().zip(bytes[WORDS_AT..ADDRESS_AT].as_chunks().0) {
            *word = u64::from_le_bytes(*place);
        }
        let [a, b, name @ ..] = words;
        let address = Address::from_bytes(bytes[ADDRESS_AT..].try_into().ok()?)?;
        let name = Ends::of_words(&name)?;
        (bytes[..8] == MAGIC).then_some(Self { address, name, token: [a, b] })
    }
}

/// The port where invitations come.
#[derive(Debug)]
pub(super) struct Letterbox {
    socket: Hidden,
    code: u16,
    is_six: bool,
}

impl Letterbox {
    pub(super) fn open() -> Result<Self, SetupError> {
        let told = |errno| SetupError::Os { call: "a UDP port for invitations", errno };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let of = |family| socket_with(family, SocketType::DGRAM, flags, None);
        // One socket for both families, where the host has IPv6.
        let (socket, is_six) = match of(AddressFamily::INET6) {
            Ok(socket) => (socket, true),
            Err(_) => (of(AddressFamily::INET).map_err(told)?, false),
        };
        if is_six {
            sockopt::set_ipv6_v6only(&socket, false).map_err(told)?;
        }
        for _ in 0..TRIES {
            let [number] = random::words();
            let code = 1 + number as u16 % (CODES - 1);
            match bind(&socket, &local(is_six, FIRST_PORT + code)) {
                Ok(()) => {
                    let socket = Hidden::new(socket).map_err(told)?;
                    return Ok(Self { socket, code, is_six });
                }
                Err(Errno::ADDRINUSE) => {}
                Err(errno) => return Err(told(errno)),
            }
        }
        Err(told(Errno::ADDRINUSE))
    }

    pub(super) fn code(&self) -> u16 {
        self.code
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Sends an invitation to the process that shows this code. If it is lost, the connection stays
    /// with TCP.
    pub(super) fn send(&self, invitation: &Invitation, to: IpAddr, code: u16) {
        let ip = match to {
            IpAddr::V4(ip) if self.is_six => ip.to_ipv6_mapped().into(),
            ip => ip,
        };
        let to = SocketAddr::new(ip, FIRST_PORT + code % CODES);
        let _ = sendto(self.fd(), &invitation.to_bytes(), SendFlags::DONTWAIT, &to);
    }

    /// The next invitation that has come, and from where.
    pub(super) fn receive(&self) -> Option<(IpAddr, Invitation)> {
        let mut bytes = [0; BYTES + 1];
        loop {
            let got = recvfrom(self.fd(), &mut bytes[..], RecvFlags::DONTWAIT);
            let (_, len, from) = match got {
                Ok(got) => got,
                Err(Errno::AGAIN) => return None,
                // An answer to something that was sent from here.
                Err(_) => continue,
            };
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            let invitation = bytes.first_chunk().filter(|_| len == BYTES);
            let invitation = invitation.and_then(Invitation::of_bytes);
            if let (Some(from), Some(invitation)) = (from, invitation) {
                return Some((from.ip().to_canonical(), invitation));
            }
        }
    }
}

fn local(is_six: bool, port: u16) -> SocketAddr {
    match is_six {
        true => (Ipv6Addr::UNSPECIFIED, port).into(),
        false => (Ipv4Addr::UNSPECIFIED, port).into(),
    }
}

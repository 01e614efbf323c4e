//! Where an endpoint is found.
use crate::connection::Name;
use crate::error::SetupError;
use crate::job::host_number;
use crate::random;
use crate::wire::{Callee, Secret};
use rustix::net::SocketAddrUnix;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const VERSION: u8 = 2;
/// Flag: other hosts reach the endpoint.
const REACHED: u8 = 1;
/// Flag: links with it are not encrypted.
const PLAIN: u8 = 2;

/// An endpoint's address: bytes that a program hands to others by whatever means it has. Nobody can
/// guess one, and who has it may call: on another host, nobody else may.
///
/// ```text
///   byte 0  version   1  flags   2  UDP port   4  zeros   8  host   16  name
///       32  IP address          48  secret    64
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    host: u64,
    name: Name,
    reach: Option<Reach>,
}

/// How other hosts reach an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reach {
    /// IPv4 as a mapped one.
    ip: Ipv6Addr,
    port: u16,
    secret: Secret,
    is_plain: bool,
}

impl Address {
    /// Bytes of an address.
    pub const BYTES: usize = 64;

    /// A new one, which other hosts do not reach yet.
    pub(super) fn new() -> Result<Self, SetupError> {
        Ok(Self { host: host_number()?, name: words(&random::bytes()), reach: None })
    }

    /// The same as if there were no other endpoint on this host.
    pub(super) fn apart() -> Result<Self, SetupError> {
        let [host, _] = words(&random::bytes());
        Ok(Self { host, ..Self::new()? })
    }

    /// What an endpoint of this address is to its callers of other hosts; with it, their secret.
    pub(super) fn callee_to_be(&self, is_plain: bool) -> (Callee, [u8; 16]) {
        let secret = random::bytes();
        (Callee::new(self.name, &Secret(secret), is_plain), secret)
    }

    /// The same where other hosts reach it.
    pub(super) fn reached(self, at: SocketAddr, secret: [u8; 16], is_plain: bool) -> Self {
        let ip = match at.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let reach = Reach { ip, port: at.port(), secret: Secret(secret), is_plain };
        Self { reach: Some(reach), ..self }
    }

    pub(super) fn name(&self) -> Name {
        self.name
    }

    /// Whether who is there can share memory with who is at the other one.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        self.host == other.host
    }

    /// Whether who is there and who is at the other one can open links to each other.
    pub(super) fn is_linked(&self, other: &Self) -> bool {
        match (self.reach, other.reach) {
            (Some(own), Some(other)) => own.is_plain == other.is_plain,
            _ => false,
        }
    }

    /// Whom to call over the network, and where.
    pub(super) fn callee(&self) -> Option<(Callee, SocketAddr)> {
        let Reach { ip, port, secret, is_plain } = self.reach?;
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        Some((Callee::new(self.name, &secret, is_plain), SocketAddr::new(ip, port)))
    }

    /// The same for those of its host only: without how others reach it, which not everybody is to
    /// know.
    pub fn local(&self) -> Self {
        Self { reach: None, ..*self }
    }

    /// What of [`Address::local`] differs from one endpoint to another.
    pub fn local_words(&self) -> [u64; 3] {
        [self.host, self.name[0], self.name[1]]
    }

    /// The local address that has these words.
    pub fn of_local_words([host, low, high]: [u64; 3]) -> Self {
        Self { host, name: [low, high], reach: None }
    }

    /// As it is handed over.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION;
        for (place, word) in bytes[8..32].as_chunks_mut().0.iter_mut().zip(self.local_words()) {
            *place = word.to_le_bytes();
        }
        if let Some(Reach { ip, port, secret, is_plain }) = self.reach {
            bytes[1] = if is_plain { REACHED | PLAIN } else { REACHED };
            bytes[2..4].copy_from_slice(&port.to_le_bytes());
            bytes[32..48].copy_from_slice(&ip.octets());
            bytes[48..].copy_from_slice(&secret.0);
        }
        bytes
    }

    /// Reads what [`Address::to_bytes`] gave; none where it is no address.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let port = u16::from_le_bytes([bytes[2], bytes[3]]);
        let reach = Reach {
            ip: Ipv6Addr::from(*chunk(bytes, 32)),
            port,
            secret: Secret(*chunk(bytes, 48)),
            is_plain: bytes[1] & PLAIN != 0,
        };
        let reach = (port != 0).then_some(reach);
        let host = u64::from_le_bytes(*chunk(bytes, 8));
        let address = Self { host, name: words(chunk(bytes, 16)), reach };
        // There is one form of each.
        (address.to_bytes() == *bytes).then_some(address)
    }

    /// Its socket, which has a name and no file.
    pub(super) fn socket(&self) -> Result<SocketAddrUnix, SetupError> {
        let name = format!("ayre-{:016x}{:016x}", self.name[0], self.name[1]);
        SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(SetupError::os("socket name"))
    }

    /// Of an endpoint that has called and whose address nobody has handed over yet: one of this
    /// host.
    pub(super) fn of_neighbour(&self, name: Name) -> Self {
        Self { host: self.host, name, reach: None }
    }

    /// Of such an endpoint of another host, which one is not known.
    pub(super) fn of_stranger(&self, name: Name) -> Self {
        Self { host: !self.host, name, reach: None }
    }
}

fn words(bytes: &[u8; 16]) -> [u64; 2] {
    [0, 8].map(|at| u64::from_le_bytes(*chunk(bytes, at)))
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    bytes[at..].first_chunk().expect("so many bytes")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> Address {
        let address = Address { host: 1, name: [2, 3], reach: None };
        address.reached(([10, 1, 2, 3], 0x1234).into(), *b"0123456789abcdef", true)
    }

    // spec: ENV-10
    #[test]
    fn an_address_is_as_it_is_drawn() {
        let bytes = address().to_bytes();
        assert_eq!(bytes[..8], [2, 3, 0x34, 0x12, 0, 0, 0, 0]);
        assert_eq!([bytes[8], bytes[16], bytes[24]], [1, 2, 3]);
        assert_eq!(bytes[32..48], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3]);
        assert_eq!(bytes[48..], *b"0123456789abcdef");
        assert_eq!(Address::from_bytes(&bytes), Some(address()));
    }

    // spec: ENV-10
    #[test]
    fn other_bytes_are_no_address() {
        let wrong = |at: usize, with: u8| {
            let mut bytes = address().to_bytes();
            bytes[at] = with;
            assert_eq!(Address::from_bytes(&bytes), None, "{with} at {at}");
        };
        for (at, with) in [(0, 1), (0, 3), (1, 2), (1, 7), (4, 1), (7, 1)] {
            wrong(at, with);
        }
        let mut unreached = address().of_neighbour([4, 5]).to_bytes();
        assert!(Address::from_bytes(&unreached).is_some());
        for at in [1, 32, 48] {
            unreached[at] = 1;
            assert_eq!(Address::from_bytes(&unreached), None, "a part of a network part");
            unreached[at] = 0;
        }
    }

    #[test]
    fn a_local_address_is_three_words() {
        assert_eq!(address().local_words(), [1, 2, 3]);
        assert_eq!(Address::of_local_words([1, 2, 3]), address().local());
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert!(!format!("{:?}", address()).contains("48, 49"));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written(bytes in prop::array::uniform32(any::<u8>())) {
            let mut whole = [0; Address::BYTES];
            whole[..32].copy_from_slice(&bytes);
            whole[32..].copy_from_slice(&bytes);
            (whole[0], whole[1]) = (VERSION, whole[1] % 4);
            whole[4..8].fill(0);
            let read = Address::from_bytes(&whole);
            prop_assert!(read.is_none_or(|address| address.to_bytes() == whole));
        }
    }
}

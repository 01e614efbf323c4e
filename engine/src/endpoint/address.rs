//! Where an endpoint is found.
use super::places::{PLACES_BYTES, PLACES_MAX, Places};
use crate::error::LinkMismatch;
use crate::link::{Callee, Fingerprint, JobKey, StaticKey};
use crate::machine::host::number as host_number;
use crate::net::chance::Chance;
use crate::peer::agreement::Name;
use crate::port::setup::PREFIX;
use crate::random::hex;
use std::net::SocketAddr;

const VERSION: u8 = 4;
/// Flag: other hosts reach the endpoint.
const REACHED: u8 = 1;
/// Flag: links with it are not encrypted.
const PLAIN: u8 = 2;

/// The address of an endpoint, which a program passes to other processes by any means.
///
/// An address contains random bits, so nobody can guess it. A process that has the address may
/// connect, unless the endpoint also has a key ([`super::EndpointOptions::key`]). The address is
/// not enough to impersonate the endpoint: that takes a private key, which never leaves its
/// process.
///
/// ```text
///   byte 0  version   1  flags   2  UDP port   4  kinds of IP addresses   6  key   8  host
///       16  fingerprint, or name     32  IP addresses    64
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
    places: Places,
    port: u16,
    /// The endpoint's name is made of it.
    fingerprint: Fingerprint,
    is_plain: bool,
    /// Which job's key it takes besides to call; 0 if none.
    key: u16,
}

impl Address {
    /// The length of an address in bytes. It is at most `FI_NAME_MAX`, for which MPI libraries have
    /// room.
    pub const BYTES: usize = 64;
    /// The most IP addresses in an address.
    pub const IPS_MAX: usize = PLACES_MAX;

    /// A new one, which other hosts do not reach yet; with it, the key that its name is made of.
    pub(super) fn new(chance: &Chance) -> (Self, StaticKey) {
        let own = StaticKey::new(chance);
        (Self { host: host_number(), name: own.fingerprint().name(), reach: None }, own)
    }

    /// A new address and its key, as on a host without other endpoints.
    pub(super) fn apart(chance: &Chance) -> (Self, StaticKey) {
        let (address, own) = Self::new(chance);
        (address.without_neighbours(chance), own)
    }

    /// This address with a random number of the host: no endpoint takes it for a neighbour's.
    pub(super) fn without_neighbours(self, chance: &Chance) -> Self {
        Self { host: chance.number(), ..self }
    }

    /// This address with the places where other hosts reach it: one port of several IP addresses,
    /// of which there may be too many to be told.
    pub(super) fn reached(
        self,
        at: &[SocketAddr],
        (fingerprint, key): (Fingerprint, Option<&JobKey>),
        is_plain: bool,
    ) -> Self {
        debug_assert!(self.reach.is_none(), "an endpoint is opened to other hosts once");
        let key = key.map_or(0, JobKey::check);
        let port = at.first().map_or(0, SocketAddr::port);
        let places = Places::of(at.iter().map(SocketAddr::ip));
        let reach = Reach { places, port, fingerprint, is_plain, key };
        Self { reach: Some(reach), ..self }
    }

    /// Where it is, for a person at the endpoint of another address.
    pub(super) fn in_words(&self, seen_from: &Self) -> String {
        let name = self.name[0] as u32;
        match self.reach {
            // No more than tells it from others: who has all of an address may call.
            _ if self.is_with(seen_from) => format!("the endpoint {name:08x} of this host"),
            Some(Reach { places, port, .. }) => {
                let ips: Vec<_> = places.iter().map(|ip| ip.to_string()).collect();
                format!("the endpoint at {}, UDP port {port}", ips.join(" or "))
            }
            None => format!("the endpoint {name:08x} of another host"),
        }
    }

    /// The unique name of the endpoint; see [`super::RemoteNames`].
    pub fn name(&self) -> [u64; 2] {
        self.name
    }

    /// Whether who is there is known to be of the same host as who is at the other one.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        self.host == other.host
    }

    /// Why who is there and who is at the other one cannot open links to each other; none if they
    /// can.
    pub(super) fn unlinked(&self, other: &Self) -> Option<LinkMismatch> {
        if cfg!(not(feature = "net")) {
            return Some(LinkMismatch::NoNet);
        }
        let (Some(own), Some(other)) = (&self.reach, &other.reach) else {
            return Some(LinkMismatch::NotOpen);
        };
        if own.is_plain != other.is_plain {
            return Some(LinkMismatch::Protection);
        }
        (own.key != other.key).then_some(LinkMismatch::Key)
    }

    /// The callee of a call over the network, for a caller with this key: at
    /// [`Address::reached_at`].
    pub(super) fn callee(&self, key: Option<&JobKey>) -> Option<Callee> {
        let Reach { fingerprint, is_plain, .. } = self.reach?;
        Some(Callee::new(fingerprint, key, is_plain))
    }

    /// Whether other hosts reach the endpoint by links that are not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.reach.is_some_and(|reach| reach.is_plain)
    }

    /// The IP addresses and the UDP port at which other hosts reach the endpoint. They are not
    /// secret.
    pub fn reached_at(&self) -> Vec<SocketAddr> {
        let reach = self.reach.iter();
        reach.flat_map(|reach| reach.places.iter().map(|ip| (ip, reach.port).into())).collect()
    }

    /// The address for endpoints of the same host only: it leaves out the parts by which other
    /// hosts reach the endpoint.
    pub fn local(&self) -> Self {
        Self { reach: None, ..*self }
    }

    /// The words of [`Address::local`] that differ from one endpoint to another.
    pub fn local_words(&self) -> [u64; 3] {
        [self.host, self.name[0], self.name[1]]
    }

    /// The local address that has these words.
    pub fn of_local_words([host, low, high]: [u64; 3]) -> Self {
        Self { host, name: [low, high], reach: None }
    }

    /// Returns the address as bytes, which may be passed to other processes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION;
        for (place, word) in bytes[8..32].as_chunks_mut().0.iter_mut().zip(self.local_words()) {
            *place = word.to_le_bytes();
        }
        if let Some(Reach { places, port, fingerprint, is_plain, key }) = &self.reach {
            bytes[1] = if *is_plain { REACHED | PLAIN } else { REACHED };
            bytes[2..4].copy_from_slice(&port.to_le_bytes());
            bytes[4..6].copy_from_slice(&places.kinds.to_le_bytes());
            bytes[6..8].copy_from_slice(&key.to_le_bytes());
            bytes[16..32].copy_from_slice(&fingerprint.0);
            bytes[32..].copy_from_slice(&places.bytes);
        }
        bytes
    }

    /// Returns the address as 128 hexadecimal digits, to be passed on as text.
    pub fn to_text(&self) -> String {
        hex(&self.to_bytes())
    }

    /// Parses the text of [`Address::to_text`]. Returns `None` if it is no address.
    pub fn from_text(text: &str) -> Option<Self> {
        if text.len() != 2 * Self::BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Self::from_bytes(&bytes)
    }

    /// Parses the bytes of [`Address::to_bytes`]. Returns `None` if they are no address.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (host, own) = (u64::from_le_bytes(*chunk(bytes, 8)), chunk(bytes, 16));
        let address = match bytes[1] & REACHED {
            0 => Self { host, name: words(own), reach: None },
            _ => {
                let places = Places::parse(half(bytes, 4), *chunk::<PLACES_BYTES>(bytes, 32))?;
                let (fingerprint, is_plain) = (Fingerprint(*own), bytes[1] & PLAIN != 0);
                let (port, key) = (half(bytes, 2), half(bytes, 6));
                let reach = Reach { places, port, fingerprint, is_plain, key };
                let is_somewhere = reach.port != 0 && places != Places::default();
                let reach = Some(is_somewhere.then_some(reach)?);
                Self { host, name: fingerprint.name(), reach }
            }
        };
        // There is one form of each.
        (address.to_bytes() == *bytes).then_some(address)
    }

    /// The name at which it listens on its host.
    pub(super) fn socket_name(&self) -> String {
        format!("{PREFIX}{:016x}{:016x}", self.name[0], self.name[1])
    }

    /// Of an endpoint that has called and whose address nobody has handed over yet: one of this
    /// host.
    pub(super) fn of_neighbour(&self, name: Name) -> Self {
        Self { host: self.host, name, reach: None }
    }

    /// The address of an unknown endpoint of another host that has called.
    pub(super) fn of_unknown(&self, name: Name) -> Self {
        Self { host: !self.host, name, reach: None }
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*chunk(bytes, at))
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

    const FINGERPRINT: Fingerprint = Fingerprint(*b"0123456789abcdef");

    /// Of a key of sevens.
    const CHECK: [u8; 2] = [0xa2, 0xfe];
    /// Of that fingerprint.
    const NAME: Name = [0x99a0_c0a8_c005_22b0, 0x99a5_5d89_151f_5c30];

    fn address() -> Address {
        let address = Address { host: 1, name: FINGERPRINT.name(), reach: None };
        let at = [([10, 1, 2, 3], 0x1234).into(), "[fd77::1]:4660".parse().unwrap()];
        let key = JobKey::from_bytes([7; 32]);
        address.reached(&at, (FINGERPRINT, Some(&key)), true)
    }

    // spec: ENV-10
    #[test]
    fn an_address_is_as_it_is_drawn() {
        let bytes = address().to_bytes();
        assert_eq!(bytes[..9], [4, 3, 0x34, 0x12, 0b1101, 0, CHECK[0], CHECK[1], 1]);
        assert_eq!(bytes[16..32], *b"0123456789abcdef");
        assert_eq!(bytes[32..38], [10, 1, 2, 3, 0xfd, 0x77]);
        assert_eq!(Address::from_bytes(&bytes), Some(address()));
        // As any other tool computes it.
        assert_eq!(address().name, NAME);
        let local = address().local().to_bytes();
        assert_eq!(local[..9], [4, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(local[16..24], NAME[0].to_le_bytes());
    }

    // spec: ENV-10
    #[test]
    fn other_bytes_are_no_address() {
        let wrong = |at: usize, with: u8| {
            let mut bytes = address().to_bytes();
            bytes[at] = with;
            assert_eq!(Address::from_bytes(&bytes), None, "{with} at {at}");
        };
        let places = [(4, 0), (4, 1), (5, 1), (63, 1)];
        for (at, with) in [(0, 3), (0, 5), (1, 2), (1, 7)].into_iter().chain(places) {
            wrong(at, with);
        }
        let mut portless = address().to_bytes();
        portless[2..4].fill(0);
        assert_eq!(Address::from_bytes(&portless), None);
        let mut unreached = address().of_neighbour([4, 5]).to_bytes();
        assert!(Address::from_bytes(&unreached).is_some());
        for at in [1, 2, 4, 6, 32] {
            unreached[at] = 1;
            assert_eq!(Address::from_bytes(&unreached), None, "a part of a network part");
            unreached[at] = 0;
        }
    }

    // spec: ENV-32, SEAL-16
    #[test]
    fn links_take_both_open_to_other_hosts_equal_protection_and_equal_keys() {
        let own = address();
        assert_eq!(own.unlinked(&own), None);
        assert_eq!(own.unlinked(&own.local()), Some(LinkMismatch::NotOpen));
        let at = own.reached_at();
        let other = |key: Option<u8>, is_plain| {
            let key = key.map(|byte| JobKey::from_bytes([byte; 32]));
            own.local().reached(&at, (FINGERPRINT, key.as_ref()), is_plain)
        };
        assert_eq!(own.unlinked(&other(Some(7), true)), None);
        assert_eq!(own.unlinked(&other(Some(7), false)), Some(LinkMismatch::Protection));
        assert_eq!(own.unlinked(&other(None, true)), Some(LinkMismatch::Key));
        assert_eq!(own.unlinked(&other(Some(8), true)), Some(LinkMismatch::Key));
    }

    #[test]
    fn a_local_address_is_three_words() {
        assert_eq!(address().local_words(), [1, NAME[0], NAME[1]]);
        assert_eq!(Address::of_local_words([1, NAME[0], NAME[1]]), address().local());
    }

    #[test]
    fn an_address_passes_as_text() {
        let text = address().to_text();
        assert_eq!(Address::from_text(&text), Some(address()));
        assert_eq!(Address::from_text(&text.to_uppercase()), Some(address()));
        let short = &text[1..];
        for wrong in ["", short, &format!("{short}g"), &format!("{text}0"), &format!("+{short}")] {
            assert_eq!(Address::from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_fingerprint_is_not_printed() {
        assert!(!format!("{:?}", address()).contains("48, 49"));
    }

    proptest! {
        #[test]
        fn a_parsed_address_encodes_back_equal(bytes in prop::array::uniform32(any::<u8>())) {
            let mut whole = [0; Address::BYTES];
            whole[..32].copy_from_slice(&bytes);
            whole[32..].copy_from_slice(&bytes);
            (whole[0], whole[1]) = (VERSION, whole[1] % 4);
            let read = Address::from_bytes(&whole);
            prop_assert!(read.is_none_or(|address| address.to_bytes() == whole));
        }
    }
}

//! Addresses of endpoints: what `fi_getname` gives and an address vector takes.
//!
//! An endpoint's own address is the engine's. An address that was made of a node and a service,
//! before there was an endpoint, names a place: any endpoint at that port.

use crate::abi::{NUMERICHOST, PROV_SPECIFIC};
use ayre::guest::descriptor;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Where an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// This endpoint.
    Of(ayre::endpoint::Address),
    /// Any endpoint at this place.
    At(Place),
}

/// An IP address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// IPv4 as a mapped one, so that there is one form of each.
    ip: Ipv6Addr,
    port: u16,
}

/// The first bytes of the address of a place; the last of them is the version of the form. An
/// engine's address begins otherwise.
const MARK: [u8; 4] = *b"AYR\x01";

/// The prefix of a printed address.
const SCHEME: &str = "fi_ayre://";

impl Address {
    /// Bytes of an address.
    pub(crate) const SIZE: usize = ayre::endpoint::Address::BYTES;

    /// The form, as libfabric numbers forms: one of our own.
    pub(crate) const FORMAT: u32 = PROV_SPECIFIC | 0x41_5952;

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        match self {
            Self::Of(endpoint) => endpoint.to_bytes(),
            Self::At(place) => place.to_bytes(),
        }
    }

    /// Reads what `to_bytes` wrote; none of any other bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        match Place::from_bytes(bytes) {
            Some(place) => Some(Self::At(place)),
            None => ayre::endpoint::Address::from_bytes(bytes).map(Self::Of),
        }
    }

    /// Where a node and a service are, in the words of `fi_getinfo`: a host and a port, or a
    /// printed address and no service.
    pub(crate) fn resolve(node: Option<&str>, service: Option<&str>, flags: u64) -> Option<Self> {
        if let Some(node) = node.filter(|node| node.starts_with(SCHEME)) {
            return node.parse().ok().filter(|_| service.is_none());
        }
        let port = service.map_or(Some(0), |service| service.parse().ok())?;
        let at = |at| Some(Self::At(Place::new(at)));
        let Some(node) = node else { return at((Ipv4Addr::LOCALHOST, port).into()) };
        if let Ok(ip) = node.parse::<IpAddr>() {
            return at((ip, port).into());
        }
        if flags & NUMERICHOST != 0 {
            return None;
        }
        let all: Vec<_> = (node, port).to_socket_addrs().ok()?.collect();
        at(*all.iter().find(|at| at.is_ipv4()).or_else(|| all.first())?)
    }

    /// Whether an endpoint that is yet to be opened here could have it.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Of(_) => false,
            Self::At(place) => can_bind(place.at().ip()),
        }
    }

    /// The address `hosts` further on and `ports` further up, for symmetric insertions.
    pub(crate) fn step(&self, hosts: usize, ports: usize) -> Option<Self> {
        match self {
            Self::Of(_) => (hosts == 0 && ports == 0).then_some(*self),
            Self::At(place) => place.step(hosts, ports).map(Self::At),
        }
    }
}

impl Place {
    pub(crate) fn new(at: SocketAddr) -> Self {
        let ip = match at.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Self { ip, port: at.port() }
    }

    /// The address and the port.
    pub(crate) fn at(&self) -> SocketAddr {
        let ip = self.ip.to_ipv4_mapped().map_or(IpAddr::V6(self.ip), IpAddr::V4);
        SocketAddr::new(ip, self.port)
    }

    fn to_bytes(self) -> [u8; Address::SIZE] {
        let mut bytes = [0; Address::SIZE];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..6].copy_from_slice(&self.port.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.ip.octets());
        bytes
    }

    fn from_bytes(bytes: &[u8; Address::SIZE]) -> Option<Self> {
        let ip: [u8; 16] = bytes[8..24].try_into().ok()?;
        let place = Self { ip: ip.into(), port: u16::from_be_bytes([bytes[4], bytes[5]]) };
        // Only one form of each: addresses are compared by their bytes, too.
        (place.to_bytes() == *bytes).then_some(place)
    }

    fn step(&self, hosts: usize, ports: usize) -> Option<Self> {
        let port = self.port.checked_add(ports.try_into().ok()?)?;
        let ip = match self.ip.to_ipv4_mapped() {
            Some(ip) => {
                let ip = u32::from(ip).checked_add(hosts.try_into().ok()?)?;
                Ipv4Addr::from(ip).to_ipv6_mapped()
            }
            None => u128::from(self.ip).checked_add(hosts as u128)?.into(),
        };
        Some(Self { ip, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(place) => write!(out, "{SCHEME}{}", place.at()),
            // Logs are read by others: what lets callers in is not printed.
            // spec: SEAL-15
            Self::Of(endpoint) => {
                let bytes = endpoint.local().to_bytes();
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                write!(out, "{SCHEME}")?;
                bytes[..end].iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
                for (index, at) in endpoint.reached_at().iter().enumerate() {
                    write!(out, "{}{at}", if index == 0 { '@' } else { ',' })?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Address {
    type Err = ();

    /// Of an endpoint that other hosts reach, what those of its own host need.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.strip_prefix(SCHEME).ok_or(())?;
        let text = text.split_once('@').map_or(text, |(local, _)| local);
        if text.contains(':') {
            return Ok(Self::At(Place::new(text.parse().map_err(|_| ())?)));
        }
        let mut bytes = [0; Self::SIZE];
        let (digits, rest) = text.as_bytes().as_chunks();
        if !rest.is_empty() || digits.len() > bytes.len() {
            return Err(());
        }
        for (byte, digits) in bytes.iter_mut().zip(digits) {
            *byte = hex(digits).ok_or(())?;
        }
        let address = ayre::endpoint::Address::from_bytes(&bytes).map(Self::Of).ok_or(())?;
        // Zeros at the end are not printed.
        if address.to_string().ends_with(text) { Ok(address) } else { Err(()) }
    }
}

/// Whether the address is one of this host's.
fn can_bind(ip: IpAddr) -> bool {
    let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = descriptor::socket(family, SocketType::DGRAM, SocketFlags::empty(), None);
    socket.is_ok_and(|socket| bind(&socket, &SocketAddr::new(ip, 0)).is_ok())
}

fn hex([high, low]: &[u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_node_and_a_service_have_an_address() {
        let named = |node, service| Address::resolve(node, service, 0).map(|a| a.to_string());
        assert_eq!(named(Some("10.1.2.3"), Some("77")).unwrap(), "fi_ayre://10.1.2.3:77");
        assert_eq!(named(None, Some("77")).unwrap(), "fi_ayre://127.0.0.1:77");
        assert_eq!(named(Some("localhost"), None).unwrap(), "fi_ayre://127.0.0.1:0");
        assert_eq!(named(Some("::1"), Some("5")).unwrap(), "fi_ayre://[::1]:5");
        let printed = "fi_ayre://10.0.0.1:5";
        assert_eq!(named(Some(printed), None).unwrap(), printed);
        assert_eq!(named(Some(printed), Some("5")), None);
        assert_eq!(named(Some("10.1.2.3"), Some("66000")), None);
        assert_eq!(Address::resolve(Some("localhost"), None, NUMERICHOST), None);
    }

    #[test]
    fn only_addresses_of_this_host_are_here() {
        let at = |text: &str| Address::resolve(Some(text), None, 0).unwrap();
        assert!(at("127.0.0.1").is_here());
        assert!(!at("192.0.2.1").is_here());
    }

    #[test]
    fn steps_stay_within_the_range() {
        let first = Address::resolve(Some("10.0.0.255"), Some("65534"), 0).unwrap();
        assert_eq!(first.step(1, 1).unwrap().to_string(), "fi_ayre://10.0.1.0:65535");
        assert_eq!(first.step(0, 2), None);
    }

    proptest! {
        #[test]
        fn bytes_and_text_say_the_same(ip: u128, v4: Option<u32>, port: u16) {
            let ip = v4.map_or_else(
                || IpAddr::V6(ip.into()),
                |v4| IpAddr::V4(v4.into()),
            );
            let address = Address::At(Place::new((ip, port).into()));
            prop_assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address));
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn so_do_those_of_endpoints(words: [u64; 3]) {
            let address = Address::Of(ayre::endpoint::Address::of_local_words(words));
            prop_assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address));
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        // spec: SEAL-15
        #[test]
        fn the_secret_of_an_address_is_not_printed(host: u64, fingerprint: [u8; 16], ip: u32) {
            prop_assume!(ip >> 28 < 14 && ip != 0);
            let mut bytes = [0; Address::SIZE];
            (bytes[0], bytes[1], bytes[2], bytes[4]) = (4, 1, 7, 1);
            bytes[8..16].copy_from_slice(&host.to_le_bytes());
            bytes[16..32].copy_from_slice(&fingerprint);
            bytes[32..36].copy_from_slice(&ip.to_be_bytes());
            let address = Address::from_bytes(&bytes).unwrap();
            prop_assert_eq!(address.to_bytes(), bytes);
            let (text, debug) = (address.to_string(), format!("{address:?}"));
            let digits: String = fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
            let listed = format!("{fingerprint:?}");
            prop_assert!(!text.contains(&digits) && !debug.contains(&listed));
            prop_assert!(text.ends_with(&format!("@{}:7", Ipv4Addr::from(ip))), "{}", text);
            let Address::Of(endpoint) = address else { panic!("an endpoint's") };
            prop_assert_eq!(text.parse(), Ok(Address::Of(endpoint.local())));
        }

        #[test]
        fn other_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..70)) {
            let read = Address::from_bytes(&bytes);
            prop_assert!(read.is_none_or(|address| address.to_bytes()[..] == bytes[..]));
        }

        #[test]
        fn other_text_is_refused(text in "[0-9a-f:.]{0,140}") {
            let text = format!("{SCHEME}{text}");
            let read: Result<Address, ()> = text.parse();
            prop_assert!(read.is_err() || read.unwrap().to_string().parse() == read);
        }
    }
}

//! Addresses of endpoints: what `fi_getname` gives and an address vector takes.
//!
//! An address can be resolved alone, by any peer, on any host: an IP address and a port, and the
//! number of an endpoint there. One that was made of a node and a service has no number: whoever is
//! at that port is meant.

use crate::abi::{NUMERICHOST, PROV_SPECIFIC};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::str::FromStr;

/// Where an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    /// IPv4 as a mapped one, so that there is one form of each.
    ip: Ipv6Addr,
    port: u16,
    /// Which of the endpoints at that port; 0 for whoever is there.
    number: u64,
}

/// What every address begins with; the last byte is the version of the form.
const MARK: [u8; 4] = *b"AYR\x01";

/// What a printed address begins with.
const SCHEME: &str = "fi_ayre://";

impl Address {
    /// Bytes of an address.
    pub(crate) const SIZE: usize = 32;

    /// The form, as libfabric numbers forms: one of our own.
    pub(crate) const FORMAT: u32 = PROV_SPECIFIC | 0x41_5952;

    pub(crate) fn new(at: SocketAddr, number: u64) -> Self {
        let ip = match at.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Self { ip, port: at.port(), number }
    }

    /// The address and the port.
    pub(crate) fn at(&self) -> SocketAddr {
        let ip = self.ip.to_ipv4_mapped().map_or(IpAddr::V6(self.ip), IpAddr::V4);
        SocketAddr::new(ip, self.port)
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..6].copy_from_slice(&self.port.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.ip.octets());
        bytes[24..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// Reads what `to_bytes` wrote; none of any other bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let ip: [u8; 16] = bytes[8..24].try_into().ok()?;
        let address = Self {
            ip: ip.into(),
            port: u16::from_be_bytes([bytes[4], bytes[5]]),
            number: u64::from_be_bytes(bytes[24..].try_into().ok()?),
        };
        // Only one form of each: addresses are compared by their bytes, too.
        (address.to_bytes() == *bytes).then_some(address)
    }

    /// Where a node and a service are, in the words of `fi_getinfo`: a host and a port, or a
    /// printed address and no service.
    pub(crate) fn resolve(node: Option<&str>, service: Option<&str>, flags: u64) -> Option<Self> {
        if let Some(node) = node.filter(|node| node.starts_with(SCHEME)) {
            return node.parse().ok().filter(|_| service.is_none());
        }
        let port = service.map_or(Some(0), |service| service.parse().ok())?;
        let Some(node) = node else {
            return Some(Self::new((Ipv4Addr::LOCALHOST, port).into(), 0));
        };
        if let Ok(ip) = node.parse::<IpAddr>() {
            return Some(Self::new((ip, port).into(), 0));
        }
        if flags & NUMERICHOST != 0 {
            return None;
        }
        let all: Vec<_> = (node, port).to_socket_addrs().ok()?.collect();
        let best = all.iter().find(|at| at.is_ipv4()).or_else(|| all.first())?;
        Some(Self::new(*best, 0))
    }

    /// Whether an endpoint of this process could have it.
    pub(crate) fn is_here(&self) -> bool {
        UdpSocket::bind((self.at().ip(), 0)).is_ok()
    }

    /// The address `hosts` further on and `ports` further up, for symmetric insertions.
    pub(crate) fn step(&self, hosts: usize, ports: usize) -> Option<Self> {
        let port = self.port.checked_add(ports.try_into().ok()?)?;
        let ip = match self.ip.to_ipv4_mapped() {
            Some(ip) => {
                let ip = u32::from(ip).checked_add(hosts.try_into().ok()?)?;
                Ipv4Addr::from(ip).to_ipv6_mapped()
            }
            None => u128::from(self.ip).checked_add(hosts as u128)?.into(),
        };
        Some(Self { ip, port, ..*self })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}/{:x}", self.at(), self.number)
    }
}

impl FromStr for Address {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (at, number) = text.strip_prefix(SCHEME).ok_or(())?.split_once('/').ok_or(())?;
        let number = u64::from_str_radix(number, 16).map_err(|_| ())?;
        Ok(Self::new(at.parse().map_err(|_| ())?, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_node_and_a_service_have_an_address() {
        let named = |node, service| Address::resolve(node, service, 0).map(|a| a.to_string());
        assert_eq!(named(Some("10.1.2.3"), Some("77")).unwrap(), "fi_ayre://10.1.2.3:77/0");
        assert_eq!(named(None, Some("77")).unwrap(), "fi_ayre://127.0.0.1:77/0");
        assert_eq!(named(Some("localhost"), None).unwrap(), "fi_ayre://127.0.0.1:0/0");
        assert_eq!(named(Some("::1"), Some("5")).unwrap(), "fi_ayre://[::1]:5/0");
        let printed = "fi_ayre://10.0.0.1:5/ff";
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
        assert_eq!(first.step(1, 1).unwrap().to_string(), "fi_ayre://10.0.1.0:65535/0");
        assert_eq!(first.step(0, 2), None);
    }

    proptest! {
        #[test]
        fn bytes_and_text_say_the_same(ip: u128, v4: Option<u32>, port: u16, number: u64) {
            let ip = v4.map_or_else(
                || IpAddr::V6(ip.into()),
                |v4| IpAddr::V4(v4.into()),
            );
            let address = Address::new((ip, port).into(), number);
            prop_assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address));
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn other_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let read = Address::from_bytes(&bytes);
            prop_assert!(read.is_none_or(|address| address.to_bytes()[..] == bytes[..]));
        }
    }
}

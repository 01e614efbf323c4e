//! The IP addresses that an endpoint's address has room for.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IP addresses at most.
// spec: ENV-10
pub(crate) const PLACES_MAX: usize = 8;
/// Bytes that they have together.
pub(crate) const PLACES_BYTES: usize = 32;
/// The first 64 bits of each link-local address of IPv6, which are not written.
const LOCAL: u64 = 0xfe80 << 48;

/// The form in which an IP address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None = 0,
    Fourth = 1,
    /// Link-local, of IPv6.
    Local = 2,
    Sixth = 3,
}

impl Kind {
    const fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Fourth => 4,
            Self::Local => 8,
            Self::Sixth => 16,
        }
    }

    /// The kind in the two lowest bits.
    const fn of_bits(bits: u16) -> Self {
        match bits & 3 {
            1 => Self::Fourth,
            2 => Self::Local,
            3 => Self::Sixth,
            _ => Self::None,
        }
    }
}

/// IP addresses of one host, one behind the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Places {
    /// Two bits for each.
    pub(crate) kinds: u16,
    pub(crate) bytes: [u8; PLACES_BYTES],
}

impl Places {
    /// As many of these as there is room for, the first ones first.
    pub(crate) fn of(all: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut places = Self::default();
        all.into_iter().for_each(|ip| places.push(ip));
        places
    }

    /// None where this is not how a list of addresses is written.
    pub(crate) fn parse(kinds: u16, bytes: [u8; PLACES_BYTES]) -> Option<Self> {
        let places = Self { kinds, bytes };
        // There is one form of each.
        (Self::of(places.iter()) == places).then_some(places)
    }

    /// Its IP addresses, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = IpAddr> {
        let mut at = 0;
        (0..PLACES_MAX).map_while(move |index| {
            let kind = Kind::of_bits(self.kinds >> (2 * index));
            let bytes = self.bytes.get(at..at + kind.bytes())?;
            at += kind.bytes();
            read(kind, bytes)
        })
    }

    /// One more, if there is room for it and it is not there.
    fn push(&mut self, ip: IpAddr) {
        if !is_of_a_host(ip) {
            return;
        }
        let (kind, written) = write(ip);
        let (mut count, mut used) = (0, 0);
        for known in self.iter() {
            if known == ip {
                return;
            }
            count += 1;
            used += write(known).0.bytes();
        }
        if count < PLACES_MAX
            && let Some(place) = self.bytes.get_mut(used..used + kind.bytes())
        {
            place.copy_from_slice(&written[16 - kind.bytes()..]);
            self.kinds |= (kind as u16) << (2 * count);
        }
    }
}

/// Whether a host can have it, and it is written in one way only.
fn is_of_a_host(ip: IpAddr) -> bool {
    ip == ip.to_canonical() && !ip.is_unspecified() && !ip.is_multicast()
}

/// The kind, and the address in the last bytes.
fn write(ip: IpAddr) -> (Kind, [u8; 16]) {
    match ip {
        IpAddr::V4(ip) => (Kind::Fourth, ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => match (ip.to_bits() >> 64) as u64 {
            LOCAL => (Kind::Local, ip.octets()),
            _ => (Kind::Sixth, ip.octets()),
        },
    }
}

fn read(kind: Kind, bytes: &[u8]) -> Option<IpAddr> {
    Some(match kind {
        Kind::None => return None,
        Kind::Fourth => Ipv4Addr::from(*bytes.first_chunk()?).into(),
        Kind::Local => {
            let own = u64::from_be_bytes(*bytes.first_chunk()?);
            Ipv6Addr::from(u128::from(LOCAL) << 64 | u128::from(own)).into()
        }
        Kind::Sixth => Ipv6Addr::from(*bytes.first_chunk()?).into(),
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ips(text: &str) -> Vec<IpAddr> {
        text.split_whitespace().map(|ip| ip.parse().expect("an address")).collect()
    }

    fn kept(text: &str) -> Vec<IpAddr> {
        Places::of(ips(text)).iter().collect()
    }

    // spec: ENV-10
    #[test]
    fn addresses_are_kept_in_their_order_as_long_as_there_is_room() {
        let all = "10.0.0.1 fd77::1 fe80::1 172.17.0.1";
        assert_eq!(kept(all), ips(all), "32 bytes");
        assert_eq!(kept("fd77::1 fd77::2 fe80::1 10.0.0.1"), ips("fd77::1 fd77::2"));
        assert_eq!(kept("fd77::1 10.0.0.1 fd77::2 10.0.0.2"), ips("fd77::1 10.0.0.1 10.0.0.2"));
        let many: String = (1..=9).map(|last| format!("10.0.0.{last} ")).collect();
        assert_eq!(kept(&many), ips(&many)[..8]);
        assert_eq!(kept("10.0.0.1 10.0.0.1 10.0.0.2"), ips("10.0.0.1 10.0.0.2"));
        assert_eq!(kept("fe80:1::1"), ips("fe80:1::1"), "not what link-local ones begin with");
        assert!(kept(":: 0.0.0.0 ::ffff:10.0.0.1 224.0.0.1 ff02::1").is_empty(), "of no host");
    }

    // spec: ENV-10
    #[test]
    fn a_list_is_as_it_is_drawn() {
        let places = Places::of(ips("10.1.2.3 fe80::5 fd77::9"));
        assert_eq!(places.kinds, 0b11_10_01);
        assert_eq!(places.bytes[..12], [10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(places.bytes[12..16], [0xfd, 0x77, 0, 0]);
        assert_eq!(places.bytes[27..], [9, 0, 0, 0, 0]);
    }

    // spec: ENV-10
    #[test]
    fn a_malformed_list_of_addresses_is_refused() {
        let good = Places::of(ips("10.1.2.3 fe80::5"));
        assert_eq!(Places::parse(good.kinds, good.bytes), Some(good));
        for kinds in [0b10_01_00, 0b01, 0b11_10_01, 0b01_10_01, 0b1_0000_0000_1001] {
            assert_eq!(Places::parse(kinds, good.bytes), None, "{kinds:b}");
        }
        let twice = Places::of(ips("10.1.2.3 10.1.2.4"));
        let mut bytes = twice.bytes;
        bytes[7] = 3;
        assert_eq!(Places::parse(twice.kinds, bytes), None, "the same one twice");
        let mut long = [0; PLACES_BYTES];
        long[0] = 0xfe;
        long[1] = 0x80;
        assert_eq!(Places::parse(3, long), None, "a link-local one is written in 8 bytes");
        assert_eq!(Places::parse(0, [0; PLACES_BYTES]), Some(Places::default()));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused_and_round_trip(
            kinds: u16,
            bytes in prop::array::uniform32(any::<u8>()),
        ) {
            if let Some(places) = Places::parse(kinds, bytes) {
                prop_assert_eq!((places.kinds, places.bytes), (kinds, bytes));
            }
        }
    }
}

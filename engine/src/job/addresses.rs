//! Which addresses of this host other hosts reach, and how a rank tells others where it is.
use super::wrong;
use crate::error::SetupError;
use crate::settings;
use crate::wire::PLACES_MAX;
use crate::wire::interfaces::{self, HostAddress, is_link_local};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// One for each path.
const PATHS_MAX: usize = 4;
/// Stands before the addresses of such a rank.
const ANY: &str = "any";

/// Where a rank is found by those of other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Whereabouts {
    /// Each address may lead there, or nowhere: whoever calls tries all. Else they are paths of
    /// each link, and all lead there.
    pub(super) is_any: bool,
    pub(super) at: Vec<SocketAddr>,
}

impl Whereabouts {
    /// As it is told: words.
    // spec: LIFE-36
    pub(super) fn words(&self) -> Vec<String> {
        let any = self.is_any.then(|| ANY.to_owned());
        any.into_iter().chain(self.at.iter().map(|at| told(*at).to_string())).collect()
    }

    /// What these words say; none if they are no such ones. No words are nowhere.
    // spec: LIFE-26, LIFE-36
    pub(super) fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut words = words.peekable();
        let is_any = words.next_if_eq(&ANY).is_some();
        let at: Vec<SocketAddr> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let most = if is_any { PLACES_MAX } else { PATHS_MAX };
        let is_some = !is_any || !at.is_empty();
        let is_sound = is_some && at.len() <= most && at.iter().copied().all(is_of_a_host);
        is_sound.then_some(Self { is_any, at })
    }
}

/// What an interface is called here means nothing elsewhere.
fn told(at: SocketAddr) -> SocketAddr {
    match at {
        SocketAddr::V6(at) => SocketAddrV6::new(*at.ip(), at.port(), 0, 0).into(),
        at => at,
    }
}

fn is_of_a_host(at: SocketAddr) -> bool {
    at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast()
}

/// The addresses of this host that the user has named, one for each path; none where it is all.
// spec: LIFE-23
pub(crate) fn addresses_of_user() -> Result<Vec<IpAddr>, SetupError> {
    let named = settings::net()?;
    host_addresses(&named).map_err(|why| settings::wrong(settings::NET, &named.join(","), &why))
}

/// The addresses of this host that are meant by words, one for each path: what `ayre run --net`
/// does. Each of `wanted` is the name of an interface, a network such as 10.1.0.0/16, or an
/// address.
///
/// # Errors
/// [`SetupError::Environment`] where nothing here is, or has, what is wanted.
pub fn host_addresses(wanted: &[String]) -> Result<Vec<IpAddr>, SetupError> {
    if wanted.len() > PATHS_MAX {
        return Err(wrong(format!("there are at most {PATHS_MAX} paths")));
    }
    let all = interfaces::all();
    wanted.iter().map(|wanted| find(wanted, &all)).collect()
}

/// Where other hosts find ports of this one, unless addresses are named: at which interfaces, as
/// they are told; and how many addresses more there are, which others may reach and are not told.
// spec: ENV-32, LIFE-36
pub fn usable_addresses() -> (Vec<(String, IpAddr)>, usize) {
    let all = interfaces::usable();
    let more = all.len().saturating_sub(PLACES_MAX);
    let told = all.into_iter().take(PLACES_MAX).map(|found| (found.interface, found.ip));
    (told.collect(), more)
}

fn find(wanted: &str, all: &[HostAddress]) -> Result<IpAddr, SetupError> {
    let found = match parse_network(wanted) {
        Some(network) => all.iter().map(|found| found.ip).find(|ip| contains(network, *ip)),
        None => {
            let of_interface = || all.iter().filter(|found| found.interface == wanted);
            let ipv4 = of_interface().map(|found| found.ip).find(IpAddr::is_ipv4);
            ipv4.or_else(|| of_interface().map(|found| found.ip).find(|ip| !is_link_local(*ip)))
        }
    };
    found.ok_or_else(|| {
        let all: Vec<_> =
            all.iter().map(|found| format!("{} {}", found.interface, found.ip)).collect();
        let all = all.join(", ");
        wrong(format!("nothing here is, or has, the address `{wanted}`; there are {all}"))
    })
}

/// An address and how many of its bits count.
type Network = (IpAddr, u32);

fn parse_network(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(all);
    (bits <= all).then_some((address, bits))
}

fn contains((network, bits): Network, address: IpAddr) -> bool {
    let differs = match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differs.leading_zeros() >= bits
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::board::TEXT_CHARS_MAX;
    use super::*;

    #[test]
    fn networks_contain_addresses() {
        let is_in = |network: &str, address: &str| {
            contains(parse_network(network).unwrap(), address.parse().unwrap())
        };
        assert!(is_in("10.1.0.0/16", "10.1.200.3") && !is_in("10.1.0.0/16", "10.2.0.1"));
        assert!(is_in("10.1.2.3", "10.1.2.3") && !is_in("10.1.2.3", "10.1.2.2"));
        assert!(is_in("0.0.0.0/0", "1.2.3.4") && !is_in("0.0.0.0/0", "::1"));
        assert!(is_in("fd00::/8", "fd12::1") && !is_in("fd00::/8", "fe80::1"));
        for text in ["eth0", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/"] {
            assert!(parse_network(text).is_none(), "{text}");
        }
    }

    #[test]
    fn addresses_are_found_by_interface_network_and_value() {
        for wanted in ["lo", "127.0.0.0/8", "127.0.0.1"] {
            let found = host_addresses(&[wanted.to_owned()]).unwrap();
            assert_eq!(found, [IpAddr::from([127, 0, 0, 1])], "{wanted}");
        }
        let error = host_addresses(&["no-such-interface".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("lo 127.0.0.1"), "{error}");
        assert!(host_addresses(&[]).unwrap().is_empty());
    }

    // spec: LIFE-26, LIFE-36
    #[test]
    fn where_a_rank_is_reads_as_it_was_written_and_fits_every_board() {
        let read = |text: &str| Whereabouts::of_words(text.split(',').filter(|w| !w.is_empty()));
        let written = |text: &str| read(text).map(|read| read.words().join(","));
        let longest = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
        let any = [&["any"][..], &[longest; PLACES_MAX]].concat().join(",");
        for text in ["", "10.0.0.1:7", "10.0.0.1:7,[fd00::1]:9", "any,[fe80::1]:7", &any] {
            assert_eq!(written(text).as_deref(), Some(text));
            assert!(text.len() <= TEXT_CHARS_MAX);
        }
        assert_eq!(written("any,[fe80::1%3]:7").as_deref(), Some("any,[fe80::1]:7"));
        let most = [longest; PATHS_MAX + 1].join(",");
        for text in ["any", "any,any", "10.0.0.1:7,any", &most, &format!("{any},{longest}")] {
            assert_eq!(read(text), None, "{text:?}");
        }
        for text in ["127.0.0.1", "127.0.0.1:0", "0.0.0.0:1", "224.0.0.1:1", "[::]:5", "a:1"] {
            assert_eq!(read(text), None, "{text:?}");
            assert_eq!(read(&format!("any,{text}")), None, "{text:?}");
        }
    }
}

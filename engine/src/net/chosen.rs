//! The addresses of this host that users name.
use super::interfaces::{self, HostAddress, is_link_local};
use crate::error::SetupError;
use crate::settings;
use ayre_proto::link::frame;
use std::net::IpAddr;

/// Addresses of a port for which nobody has named any.
// spec: LIFE-36
pub(crate) const PLACES_MAX: usize = 8;
/// One for each path of a link.
pub(crate) const PATHS_MAX: usize = frame::PATHS_MAX as usize;
const _: () = assert!(PATHS_MAX <= PLACES_MAX, "whoever names addresses names fewer");

/// The addresses of this host that the user has named, one for each path; none where it is all.
// spec: LIFE-23
pub(crate) fn addresses_of_user() -> Result<Vec<IpAddr>, SetupError> {
    let named = settings::net()?;
    host_addresses(&named).map_err(|why| settings::wrong(settings::NET, &named.join(","), &why))
}

/// Finds addresses of this host by the names of `ayre run --net`, one for each path. Each of
/// `wanted` is the name of an interface, a network such as 10.1.0.0/16, or an address.
///
/// # Errors
/// [`SetupError::Environment`] if this host has no interface or address of a wanted name.
pub fn host_addresses(wanted: &[String]) -> Result<Vec<IpAddr>, SetupError> {
    if wanted.len() > PATHS_MAX {
        return Err(SetupError::Environment(format!("there are at most {PATHS_MAX} paths")));
    }
    let all = interfaces::all();
    wanted.iter().map(|wanted| find(wanted, &all)).collect()
}

/// Returns the addresses of this host that a port uses if no addresses are named, each with its
/// interface. Also returns the number of further addresses, which are not used.
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
        SetupError::Environment(format!(
            "nothing here is, or has, the address `{wanted}`; there are {all}"
        ))
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
}

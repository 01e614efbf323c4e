//! Which addresses of this host other hosts reach.
use super::wrong;
use crate::error::SetupError;
use crate::wire::interfaces::{self, HostAddress, is_link_local, source_to};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

/// One for each path.
const ADDRESSES_MAX: usize = 4;

/// The addresses of this host at which a port is opened to others, one for each path: what
/// `ayre run --net` does. Each of `wanted` is the name of an interface, a network such as
/// 10.1.0.0/16, or an address.
///
/// Without any, it is the address of this host, if it has one only, of IPv4 if it can be. Of
/// several, it is the one from which packets to the first of `others` leave; if that one's name
/// leads nowhere, the one at which `ssh` has reached this host; then the first. Only where there
/// are several is a name looked up, which can take seconds. A host without a network has loopback.
///
/// # Errors
/// [`SetupError::Environment`] where nothing here is, or has, what is wanted.
pub fn host_addresses(wanted: &[String], others: &[String]) -> Result<Vec<IpAddr>, SetupError> {
    let all = all()?;
    if wanted.len() > ADDRESSES_MAX {
        return Err(wrong(format!("there are at most {ADDRESSES_MAX} paths")));
    }
    if !wanted.is_empty() {
        return wanted.iter().map(|wanted| find(wanted, &all)).collect();
    }
    let address = match usable()?[..] {
        [] => Ipv4Addr::LOCALHOST.into(),
        [only] => only,
        [first, ..] => {
            // What is said of a connection may have been said in another network namespace.
            let by_ssh = || reached_by_ssh().filter(|ip| all.iter().any(|found| found.ip == *ip));
            others.first().and_then(|other| towards(other)).or_else(by_ssh).unwrap_or(first)
        }
    };
    Ok(vec![address])
}

fn all() -> Result<Vec<HostAddress>, SetupError> {
    interfaces::all().map_err(|error| wrong(format!("asking for this host's addresses: {error}")))
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

/// Where packets to a host leave; none if it has no address, or one of this very host.
fn towards(host: &str) -> Option<IpAddr> {
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    const ANY_PORT: u16 = 9;
    let to: SocketAddr = (name, ANY_PORT).to_socket_addrs().ok()?.next()?;
    let address = source_to(to)?;
    (!address.is_loopback() && address != to.ip()).then_some(address)
}

/// The third word of what `sshd` tells of its connection.
fn reached_by_ssh() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split(' ').nth(2)?.parse().ok().filter(|address| !is_link_local(*address))
}

/// What others may reach; of IPv6 only if there is nothing else.
fn usable() -> Result<Vec<IpAddr>, SetupError> {
    let failed = |error| wrong(format!("asking for this host's addresses: {error}"));
    let usable = interfaces::usable().map_err(failed)?;
    let all: Vec<_> =
        usable.iter().map(|found| found.ip).filter(|ip| !is_link_local(*ip)).collect();
    let ipv4: Vec<_> = all.iter().copied().filter(IpAddr::is_ipv4).collect();
    Ok(if ipv4.is_empty() { all } else { ipv4 })
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
            let found = host_addresses(&[wanted.to_owned()], &[]).unwrap();
            assert_eq!(found, [IpAddr::from([127, 0, 0, 1])], "{wanted}");
        }
        let error = host_addresses(&["no-such-interface".to_owned()], &[]).unwrap_err().to_string();
        assert!(error.contains("lo 127.0.0.1"), "{error}");
        assert_eq!(host_addresses(&[], &[]).unwrap().len(), 1);
    }
}

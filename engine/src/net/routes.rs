//! The ways to a port that may be at any of several addresses.
//!
//! A way is an address of ours and one of theirs. The system knows from which address of ours
//! packets to one of theirs leave; what it does not know is whether they arrive, or at whom. So all
//! are tried ([`ayre_proto::link::race`]), in the order of what speaks for them.
use super::interfaces::is_link_local;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// Where a path leads: by which of our nets, to which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) net: usize,
    pub(crate) to: SocketAddr,
}

/// Where one of our nets is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: SocketAddr,
    /// How many bits of its address those of the same network have in common.
    pub(crate) prefix: u32,
}

/// The rank of a way; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Both are of one network.
    Near,
    /// There is a route from an address of ours.
    Routed,
    /// By an interface, to an address that means something there only.
    Local,
    /// Packets would leave from another address than those that this port is open at.
    Unlikely,
    /// The address is one of ours, too: of the same private network at two places, most likely.
    Own,
}

/// The ways from nets of ours to a port at these addresses, the likely ones first. Where packets
/// to an address leave, `source` tells.
// spec: OPEN-30
pub(crate) fn ways(
    nets: &[Place],
    to: &[SocketAddr],
    source: impl Fn(SocketAddr) -> Option<IpAddr>,
) -> Vec<Way> {
    let mut ranked = Vec::new();
    for to in to {
        match to {
            SocketAddr::V6(to) if to.ip().is_unicast_link_local() => {
                ranked.extend(
                    nets.iter().enumerate().filter_map(|(net, place)| local(net, place, to)),
                );
            }
            to => ranked.extend(routed(nets, *to, &source)),
        }
    }
    let is_ours = |(_, way): &(Rank, Way)| way.net < nets.len();
    assert!(ranked.iter().all(is_ours), "a way begins at a net of ours");
    assert!(ranked.len() <= nets.len() * to.len(), "a way is of one net and one address");
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, way)| way).collect()
}

/// By one interface, whatever it is called at the other side.
fn local(net: usize, place: &Place, to: &SocketAddrV6) -> Option<(Rank, Way)> {
    let SocketAddr::V6(own) = place.at else { return None };
    let rank = if own.ip() == to.ip() { Rank::Own } else { Rank::Local };
    let to = SocketAddrV6::new(*to.ip(), to.port(), 0, own.scope_id());
    (own.scope_id() != 0).then_some((rank, Way { net, to: to.into() }))
}

fn routed(
    nets: &[Place],
    to: SocketAddr,
    source: impl Fn(SocketAddr) -> Option<IpAddr>,
) -> Option<(Rank, Way)> {
    let from = source(to);
    let of_source = nets.iter().position(|place| Some(place.at.ip()) == from);
    // Where sockets are bound to one address, packets may leave from there in any case.
    let is_alike =
        |place: &Place| place.at.is_ipv4() == to.is_ipv4() && !is_local_of_sixth(place.at.ip());
    let net = of_source.or_else(|| nets.iter().position(is_alike))?;
    let rank = match of_source {
        _ if nets.iter().any(|place| place.at.ip() == to.ip()) => Rank::Own,
        None => Rank::Unlikely,
        Some(net) if is_near(&nets[net], to.ip()) => Rank::Near,
        Some(_) => Rank::Routed,
    };
    Some((rank, Way { net, to }))
}

fn is_local_of_sixth(ip: IpAddr) -> bool {
    ip.is_ipv6() && is_link_local(ip)
}

/// Whether a host is of the same network as a net of ours.
fn is_near(place: &Place, ip: IpAddr) -> bool {
    let differs = match (place.at.ip(), ip) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    debug_assert!(place.prefix <= 128, "a prefix is of an address");
    place.prefix > 0 && differs.leading_zeros() >= place.prefix
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn place(at: &str, prefix: u32) -> Place {
        Place { at: at.parse().expect("an address"), prefix }
    }

    /// A host with a card, containers, and a second card that both hosts are at.
    fn nets() -> [Place; 5] {
        [
            place("10.0.2.15:7", 24),
            place("172.17.0.1:7", 16),
            place("192.168.9.1:7", 24),
            place("[fd77::1]:7", 64),
            place("[fe80::1%4]:7", 64),
        ]
    }

    fn source(to: SocketAddr) -> Option<IpAddr> {
        let to = to.to_string();
        let from = match to.rsplit_once(':')?.0 {
            near if near.starts_with("192.168.9.") => "192.168.9.1",
            own @ ("10.0.2.15" | "172.17.0.1") => own,
            six if six.starts_with("[fd77") => "fd77::1",
            six if six.starts_with('[') => return None,
            _ => "10.0.2.15",
        };
        from.parse().ok()
    }

    fn found(nets: &[Place], to: &str) -> Vec<(usize, String)> {
        let at = |ip: &str| SocketAddr::new(ip.parse().expect("an address"), 9);
        let to: Vec<_> = to.split(' ').map(at).collect();
        let ways = ways(nets, &to, source).into_iter();
        ways.map(|way| (way.net, way.to.to_string())).collect()
    }

    // spec: OPEN-30
    #[test]
    fn the_common_network_comes_first_and_addresses_that_both_have_come_last() {
        let to = "10.0.2.15 172.17.0.1 192.0.2.77 fe80::2 192.168.9.2 fd77::2";
        let expected = [
            (2, "192.168.9.2:9"),
            (3, "[fd77::2]:9"),
            (0, "192.0.2.77:9"),
            (4, "[fe80::2%4]:9"),
            (0, "10.0.2.15:9"),
            (1, "172.17.0.1:9"),
        ];
        assert_eq!(found(&nets(), to), expected.map(|(net, to)| (net, to.to_owned())));
    }

    // spec: OPEN-30
    #[test]
    fn a_link_local_address_is_tried_by_each_interface_that_has_one() {
        let nets = [place("[fe80::1%2]:7", 64), place("[fe80::1%3]:7", 64)];
        let ways = found(&nets, "fe80::2 10.0.0.1 fd00::1");
        assert_eq!(ways, [(0, "[fe80::2%2]:9".into()), (1, "[fe80::2%3]:9".into())]);
        assert_eq!(found(&nets[..1], "fe80::1"), [(0, "[fe80::1%2]:9".into())], "its own");
    }

    // spec: OPEN-30
    #[test]
    fn a_port_bound_to_one_address_opens_links_from_it() {
        let nets = [place("192.168.9.1:7", 24)];
        let ways = found(&nets, "192.0.2.77 fd77::2 192.168.9.2");
        assert_eq!(ways, [(0, "192.168.9.2:9".into()), (0, "192.0.2.77:9".into())]);
        assert!(found(&nets, "fd77::2 fe80::2").is_empty(), "they have nothing in common");
    }
}

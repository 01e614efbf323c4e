//! Addresses of this host's interfaces: which ones others may reach, and in what order they are
//! told where there is no room for all.
use crate::clock::{self, poll_until};
use crate::log::tell;
use crate::sys::descriptor;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

/// Addresses that nobody has: packets to them leave by the default route.
const NOWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];
/// Addresses of IPv4 that are told before any of IPv6.
const IPV4_FIRST: usize = 4;
/// For so long a host whose only addresses the system has yet to look for elsewhere (IPv6) is
/// waited for: it takes a second or two.
const YET_TO_COME: Duration = Duration::from_secs(3);
/// Between two looks at them.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// An address of an interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostAddress {
    pub(crate) interface: String,
    flags: InterfaceFlags,
    pub(crate) ip: IpAddr,
    /// The interface's number, where the address means nothing without.
    scope: u32,
    /// How many of its bits those of the same network have in common.
    pub(crate) prefix: u32,
    /// It will go though the host stays where it is.
    is_passing: bool,
}

impl HostAddress {
    fn read(of: InterfaceAddress) -> Option<Self> {
        let (ip, scope) = read(of.address?)?;
        let mask = of.netmask.and_then(read).map_or(0, |(mask, _)| match mask {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        });
        let scope = if is_link_local(ip) { scope } else { 0 };
        let (interface, flags) = (of.interface_name, of.flags);
        Some(Self { interface, flags, ip, scope, prefix: mask, is_passing: false })
    }

    /// With a port of UDP.
    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => (ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.scope).into(),
        }
    }

    /// Whether others may reach it, if the interface has a cable. Hosts that are routers themselves
    /// have their own address at the loopback interface.
    fn is_outer(&self) -> bool {
        let is_up = self.flags.contains(InterfaceFlags::IFF_UP);
        let is_one = !self.ip.is_unspecified() && !self.ip.is_multicast();
        is_up && is_one && !self.ip.is_loopback()
    }

    /// Whether the interface has a cable, or is about to be used.
    fn is_running(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_RUNNING)
    }

    /// Whether a socket can have it: one of IPv6 that the system is about to look for elsewhere is
    /// yet to come.
    fn can_be_had(&self) -> bool {
        can_be_had(self.at(0)).is_ok()
    }

    /// Whether what is sent by it may stay on this host: it bridges containers, most likely, or is
    /// the loopback interface.
    fn is_of_the_host(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_LOOPBACK) || self.has("bridge")
    }

    /// Whether it is a card.
    fn is_card(&self) -> bool {
        self.has("device")
    }

    /// Whether it is a tunnel: it leads to one other host, or to none that could be asked for.
    /// There may be many, each of a network of its own, and what is sent by them takes a detour.
    fn is_tunnel(&self) -> bool {
        self.flags.intersects(InterfaceFlags::IFF_POINTOPOINT | InterfaceFlags::IFF_NOARP)
    }

    fn has(&self, what: &str) -> bool {
        Path::new("/sys/class/net").join(&self.interface).join(what).exists()
    }
}

/// All addresses of this host; where a sandbox does not let it list them, those that packets leave
/// from.
// spec: ENV-32
pub(crate) fn all() -> Vec<HostAddress> {
    match getifaddrs() {
        Ok(found) => found.filter_map(HostAddress::read).collect(),
        Err(why) => {
            static TOLD: Once = Once::new();
            let found = by_routes();
            let ips: Vec<_> = found.iter().map(|found| found.ip.to_string()).collect();
            let ips = if ips.is_empty() { "none".to_owned() } else { ips.join(", ") };
            TOLD.call_once(|| {
                tell!(
                    WARN,
                    "this host's interfaces cannot be listed ({why}; a sandbox may forbid \
                     AF_NETLINK): of its addresses those of the default routes are known, {ips}"
                );
            });
            found
        }
    }
}

/// The addresses that packets leave from by the default routes.
fn by_routes() -> Vec<HostAddress> {
    let flags = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let found = NOWHERE.into_iter().filter_map(|nowhere| source_to((nowhere, 9).into()));
    let found = found.map(|ip| HostAddress {
        interface: String::new(),
        flags,
        ip,
        scope: 0,
        prefix: if ip.is_ipv4() { 32 } else { 128 },
        is_passing: false,
    });
    found.collect()
}

/// Those that others may reach, of interfaces that are up; the loopback address of a host that has
/// none. The addresses that others are likely to reach come first, so that a reader with too little
/// room leaves out the right ones. An interface that does not run reaches nobody, or not yet.
// spec: ENV-32
pub(crate) fn usable() -> Vec<HostAddress> {
    let until = clock::now() + YET_TO_COME;
    let mut usable: Vec<_> = loop {
        let all = all();
        let outer = || all.iter().filter(|found| found.is_outer());
        let usable: Vec<_> = outer().filter(|found| found.can_be_had()).cloned().collect();
        if !usable.is_empty() {
            break usable;
        }
        if outer().next().is_none() || clock::now() >= until {
            return all.into_iter().filter(|found| found.ip.is_loopback()).take(1).collect();
        }
        // A netlink socket would tell when one comes, but sandboxes refuse those.
        let _ = poll_until(&mut [], Some(clock::now() + BETWEEN_LOOKS));
    };
    let table = std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    let passing = passing(&table);
    usable.iter_mut().for_each(|found| found.is_passing = passing.contains(&found.ip));
    // The address itself may be a passing one.
    let defaults = NOWHERE.map(|nowhere| {
        let source = source_to((nowhere, 9).into())?;
        usable.iter().find(|found| found.ip == source).map(|found| found.interface.clone())
    });
    let is_default = |found: &HostAddress| {
        defaults[usize::from(found.ip.is_ipv6())].as_ref() == Some(&found.interface)
    };
    in_order(usable, is_default)
}

/// The addresses of IPv6 that are temporary, or deprecated, by the system's table of all.
fn passing(table: &str) -> Vec<IpAddr> {
    const TEMPORARY: u32 = 0x01;
    const DEPRECATED: u32 = 0x20;
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let bits = u128::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let is_passing = flags & (TEMPORARY | DEPRECATED) != 0;
        is_passing.then(|| Ipv6Addr::from_bits(bits).into())
    };
    table.lines().filter_map(read).collect()
}

/// The order: addresses of interfaces that run, then permanent ones, then those of the default
/// route, of cards, and of no tunnel. Addresses that may lead to this host only come last.
/// Otherwise the order is the system's.
fn in_order(
    mut all: Vec<HostAddress>,
    is_default: impl Fn(&HostAddress) -> bool,
) -> Vec<HostAddress> {
    all.sort_by_cached_key(|found| {
        let stays = !found.is_passing;
        let speaks_for_it =
            [found.is_running(), stays, is_default(found), found.is_card(), !found.is_tunnel()];
        (speaks_for_it.map(|speaks| !speaks), found.is_of_the_host())
    });
    by_kind(all)
}

/// Some of each kind first, in the order that they have.
fn by_kind(all: Vec<HostAddress>) -> Vec<HostAddress> {
    let count = all.len();
    let is_local = |found: &HostAddress| is_link_local(found.ip);
    let (local, wide): (Vec<_>, Vec<_>) = all.into_iter().partition(is_local);
    let (mut ipv4, mut ipv6): (Vec<_>, Vec<_>) =
        wide.into_iter().partition(|found| found.ip.is_ipv4());
    let later4 = ipv4.split_off(ipv4.len().min(IPV4_FIRST));
    let later6 = ipv6.split_off(ipv6.len().min(1));
    let in_order = [ipv4, ipv6, local, later4, later6].concat();
    assert_eq!(in_order.len(), count, "none is left out");
    in_order
}

/// From which address of this host packets to another one leave; none where there is no way.
pub(crate) fn source_to(to: SocketAddr) -> Option<IpAddr> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = descriptor::socket(family, SocketType::DGRAM, SocketFlags::empty(), None).ok()?;
    // Connecting a UDP socket sends nothing; it only looks up the way.
    connect(&socket, &to).ok()?;
    Some(SocketAddr::try_from(getsockname(&socket).ok()?).ok()?.ip())
}

/// Whether this host has the address of a socket still.
pub(crate) fn is_here(mut at: SocketAddr) -> bool {
    at.set_port(0);
    can_be_had(at) != Err(Errno::ADDRNOTAVAIL)
}

fn can_be_had(at: SocketAddr) -> Result<(), Errno> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = descriptor::socket(family, SocketType::DGRAM, SocketFlags::empty(), None)?;
    bind(&socket, &at)
}

/// Whether an address means something on one network only.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn read(address: SockaddrStorage) -> Option<(IpAddr, u32)> {
    let v4 = address.as_sockaddr_in().map(|at| (IpAddr::from(at.ip()), 0));
    v4.or_else(|| address.as_sockaddr_in6().map(|at| (IpAddr::from(at.ip()), at.scope_id())))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn address(ip: &str, flags: InterfaceFlags) -> HostAddress {
        let ip = ip.parse().expect("an address");
        let scope = if is_link_local(ip) { 3 } else { 0 };
        let is_passing = false;
        HostAddress { interface: "eth0".into(), flags, ip, scope, prefix: 24, is_passing }
    }

    const RUNS: InterfaceFlags = InterfaceFlags::IFF_UP.union(InterfaceFlags::IFF_RUNNING);

    // spec: ENV-32
    #[test]
    fn an_interface_that_is_down_is_not_told_and_one_that_does_not_run_comes_later() {
        let told = |all: &[(&str, InterfaceFlags)]| {
            let all: Vec<_> = all.iter().map(|(ip, flags)| address(ip, *flags)).collect();
            let outer = all.into_iter().filter(HostAddress::is_outer).collect();
            let told: Vec<_> =
                in_order(outer, |_| false).iter().map(|found| found.ip.to_string()).collect();
            told.join(" ")
        };
        const UP: InterfaceFlags = InterfaceFlags::IFF_UP;
        const DOWN: InterfaceFlags = InterfaceFlags::IFF_RUNNING;
        let all = [("10.0.0.1", UP), ("10.0.0.2", RUNS), ("fe80::1", RUNS), ("10.0.0.3", DOWN)];
        assert_eq!(told(&all), "10.0.0.2 10.0.0.1 fe80::1");
        let loopback = RUNS.union(InterfaceFlags::IFF_LOOPBACK);
        let inner = ["127.0.0.1", "::1", "0.0.0.0", "224.0.0.1"].map(|ip| (ip, RUNS));
        assert_eq!(told(&inner) + &told(&[("127.0.0.1", loopback), ("10.0.0.2", DOWN)]), "");
        let router = [("127.0.0.1", loopback), ("10.9.9.1", loopback), ("10.0.0.2", RUNS)];
        assert_eq!(told(&router), "10.0.0.2 10.9.9.1", "the loopback interface's own comes last");
    }

    /// There may be more of them than there is room for.
    // spec: ENV-32
    #[test]
    fn tunnels_come_behind_other_interfaces_that_run_unless_they_are_the_default_route() {
        let tunnel = |host: u8, kind| address(&format!("10.8.0.{host}"), RUNS.union(kind));
        let mut all: Vec<_> =
            (0..12).map(|host| tunnel(host, InterfaceFlags::IFF_POINTOPOINT)).collect();
        all[11] = tunnel(11, InterfaceFlags::IFF_NOARP);
        all.push(address("10.0.0.1", RUNS));
        let told = in_order(all.clone(), |_| false);
        assert_eq!(told[0].ip.to_string(), "10.0.0.1");
        let told = in_order(all.clone(), |found| found.ip == all[3].ip);
        let told: Vec<_> = told.iter().take(2).map(|found| found.ip.to_string()).collect();
        assert_eq!(told, ["10.8.0.3", "10.0.0.1"]);
    }

    // spec: ENV-32
    #[test]
    fn where_there_are_many_some_of_each_kind_come_first() {
        let ips = "fe80::1 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 fd00::1 fd00::2 10.0.0.6";
        let all = ips.split(' ').map(|ip| address(ip, RUNS)).collect();
        let told: Vec<_> = by_kind(all).iter().map(|found| found.ip.to_string()).collect();
        let expected =
            "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 fd00::1 fe80::1 10.0.0.5 10.0.0.6 fd00::2";
        assert_eq!(told.join(" "), expected);
    }

    /// A port that is there for weeks is found by what it has told on the first day.
    // spec: ENV-32
    #[test]
    fn temporary_and_deprecated_addresses_come_behind_those_that_stay() {
        let table = "fd000000000000000000000000000001 02 40 00 01     eth0\n\
                     fd000000000000000000000000000002 02 40 00 20     eth0\n\
                     fd000000000000000000000000000003 02 40 00 80     eth0\n\
                     fe800000000000000000000000000001 02 40 20 80     eth0\nnonsense\n";
        let passing = passing(table);
        let all = ["fd00::1", "fd00::2", "fd00::3"].map(|ip| {
            let found = address(ip, RUNS);
            HostAddress { is_passing: passing.contains(&found.ip), ..found }
        });
        let told = in_order(all.into(), |_| true);
        let told: Vec<_> = told.iter().map(|found| found.ip.to_string()).collect();
        assert_eq!(told, ["fd00::3", "fd00::1", "fd00::2"]);
    }

    #[test]
    fn a_link_local_address_is_bound_with_its_interface() {
        let SocketAddr::V6(local) = address("fe80::1", RUNS).at(7) else { panic!("IPv6") };
        assert_eq!((local.port(), local.scope_id()), (7, 3));
        assert_eq!(address("10.0.0.1", RUNS).at(7), ([10, 0, 0, 1], 7).into());
    }

    #[test]
    fn this_host_has_an_address() {
        let usable = usable();
        assert!(!usable.is_empty());
        let loopback = all().into_iter().find(|found| found.ip.is_loopback()).unwrap();
        assert!(loopback.prefix > 0 && loopback.interface == "lo");
    }
}

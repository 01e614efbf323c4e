//! Ports of two hosts whose interfaces, addresses and routes change while messages go.
use super::common::net_hosts::Hosts;
use super::common::{Line, with_processes};
use super::{HASTY, Setting, both as member, traffic, traffic_on, until};

/// Something that happens to a host, in words of `ip`; `{a}` is the one that has accepted the link.
struct Change {
    what: &'static str,
    words: &'static [&'static str],
}

/// The change of an interface that is used.
const OF_INTERFACES: [Change; 5] = [
    Change {
        what: "the acceptor's interface gets another MAC",
        words: &["-n {a} link set c0 address 02:00:00:00:00:0a"],
    },
    Change {
        what: "the opener's interface gets another MAC",
        words: &["-n {b} link set c0 address 02:00:00:00:00:0b"],
    },
    Change {
        what: "an interface gets another name",
        words: &[
            "-n {a} link set c0 down",
            "-n {a} link set c0 name renamed",
            "-n {a} link set renamed up",
        ],
    },
    Change {
        what: "the acceptor's address moves to another interface",
        words: &[
            "-n {a} addr del 10.77.0.1/24 dev renamed",
            "-n {a} addr add 10.77.0.1/32 dev c1",
            "-n {a} route replace 10.77.0.2/32 dev c1",
            "-n {b} route replace 10.77.0.1/32 dev c1",
        ],
    },
    Change {
        what: "the opener's address moves after it",
        words: &[
            "-n {b} addr del 10.77.0.2/24 dev c0",
            "-n {b} addr add 10.77.0.2/32 dev c1",
            "-n {b} route replace 10.77.0.1/32 dev c1",
        ],
    },
];

/// Rounds between two changes.
const ROUNDS: u64 = 150;

/// With frames of Ethernet beside UDP, and with UDP alone.
// spec: NET-15, NET-16, LINK-2
#[test]
fn messages_go_on_while_an_interface_becomes_another_one() {
    let child = |number, line: Line| member(number % 2, &line);
    with_processes(child, |family| {
        for (sealed, ethernet) in [(true, true), (false, false)] {
            println!("sealed: {sealed}, Ethernet: {ethernet}");
            let setting = Setting { silence: HASTY, rounds: 2000, ..Setting::CLEAN };
            let setting = Setting { sealed, ethernet, ..setting };
            traffic(family, &setting, |hosts, both| {
                for (index, change) in (1..).zip(&OF_INTERFACES) {
                    until(&both[0], index * ROUNDS);
                    println!("{}", change.what);
                    hosts.change(change.words);
                }
                until(&both[0], (OF_INTERFACES.len() as u64 + 2) * ROUNDS);
            });
        }
    });
}

/// Addresses of the hosts that are of no cable, to which several ways lead.
const WAYS: [&[&str]; 3] = [
    // The default route leads by the one cable, and then by the other one.
    &["-n {} route replace default dev c0", "-n {} route replace default dev c1"],
    // Two ways, one of which takes less.
    &["-n {} route replace default nexthop dev c0 nexthop dev c1", "-n {b} link set c1 mtu 1300"],
    // And only the one that takes less.
    &["-n {} route replace default dev c1", "-n {} link set c0 down"],
];

/// Routes change below a link, to ways that take less, too.
// spec: LINK-2, MTU-1, MTU-4
#[test]
fn messages_go_on_while_routes_change() {
    let child = |number, line: Line| member(number % 2, &line);
    with_processes(child, |family| {
        let Some(hosts) = Hosts::with(&[], &ROUTED) else { return };
        let setting = Setting { routed: true, silence: HASTY, rounds: 2000, ..Setting::CLEAN };
        traffic_on(&hosts, family, &setting, |hosts, both| {
            let changes = WAYS.iter().flat_map(|words| words.iter());
            for (index, change) in (1..).zip(changes) {
                until(&both[0], index * ROUNDS);
                println!("{change}");
                hosts.change(&[change]);
            }
            until(&both[0], 8 * ROUNDS);
        });
    });
}

/// Each host has an address that is of no cable; whatever arrives by either is taken.
const ROUTED: [&str; 5] = [
    "-n {a} addr add 10.99.0.1/32 dev lo",
    "-n {b} addr add 10.99.0.2/32 dev lo",
    "-n {} route add default dev c0",
    "netns exec {} sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.c1.rp_filter=0",
    "netns exec {} sysctl -qw net.ipv4.fib_multipath_hash_policy=1",
];

/// The ports are open at all addresses of their hosts, and their link has one way.
// spec: PATH-13, LINK-2, OPEN-30
#[test]
fn a_link_whose_way_fails_for_good_goes_on_by_another_way() {
    let child = |number, line: Line| member(number % 2, &line);
    with_processes(child, |family| {
        for sealed in [true, false] {
            let setting = Setting { paths: 0, silence: HASTY, rounds: 2000, ..Setting::CLEAN };
            traffic(family, &Setting { sealed, ..setting }, |hosts, both| {
                for (cable, rounds) in [(0, 200), (1, 600)] {
                    until(&both[0], rounds);
                    hosts.set_cable(cable, false);
                    until(&both[0], rounds + 200);
                    hosts.set_cable(cable, true);
                }
            });
        }
    });
}

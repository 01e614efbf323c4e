//! Ports of two hosts that nobody has told where to be: they are found at the address that answers.
use super::common::net::{KEY, open};
use super::common::net_hosts::{Hosts, KINDS, Kind, UDP_PORT, address, enter};
use super::common::{Family, Line, Process, with_processes};
use ayre::network::Ethernet;
use ayre::{Config, NetOptions, PeerId, Port, Spin};
use std::net::SocketAddr;
use std::time::Duration;

/// Has a port be open at its host's addresses on all cables, which its program names.
const NAMED: &str = "named";

/// Says where a port is, as text.
fn say(line: &Line, at: &[SocketAddr]) {
    let text: Vec<_> = at.iter().map(SocketAddr::to_string).collect();
    let text = text.join(" ");
    line.say(text.len() as u64);
    text.bytes().for_each(|byte| line.say(byte.into()));
}

fn hear(line: &Line) -> Vec<SocketAddr> {
    let text = (0..line.hear()).map(|_| line.hear() as u8).collect();
    let text = String::from_utf8(text).expect("text");
    text.split(' ').map(|at| at.parse().expect("an address")).collect()
}

/// One of two ports, of which the second one asks for the link.
fn one_of_two(number: u64, line: &Line) {
    let own = number as usize % 2;
    enter(&std::env::var("HOST").expect("a host"));
    let mut options = NetOptions::sealed(KEY).expect("a key").ethernet(Ethernet::Never);
    if std::env::var("AT").as_deref() == Ok(NAMED) {
        options = (0..2).fold(options, |options, cable| options.at(address(own, cable, false)));
    }
    let mut port = open(own as u16);
    say(line, &port.open_net(&options).expect("addresses of this host"));
    let to = hear(line);
    let peer = match own {
        0 => port.accept().expect("the other one asks"),
        _ => port.connect_net(&to).expect("the other one is found"),
    };
    assert_eq!(peer, PeerId(1 - own as u16));
    let mut text = [0; 8];
    port.send(peer, 7, &[own as u8; 8]).expect("room");
    port.recv(&mut text, None).expect("a message");
    assert_eq!(text, [1 - own as u8; 8]);
    line.say(port.links()[0].paths.len() as u64);
    line.hear();
}

/// Two ports, each open where it is said, and how many paths their link has.
fn meet(family: &Family, hosts: &Hosts, at: [&str; 2], what: &str) -> [u64; 2] {
    let start = |host: usize| {
        family.start_with(|command| {
            command.env("HOST", hosts.of(host)).env("AT", at[host]);
        })
    };
    let mut both: [Process; 2] = [start(0), start(1)];
    let addresses = [0, 1].map(|own: usize| hear(&both[own].line));
    eprintln!("{what}: {addresses:?}");
    [0, 1].into_iter().for_each(|own| say(&both[own].line, &addresses[1 - own]));
    let paths = [0, 1].map(|own: usize| both[own].line.hear());
    for process in &mut both {
        process.line.say(0);
        process.succeeds();
    }
    paths
}

// spec: LIFE-36, OPEN-30
#[test]
fn a_port_without_a_configured_address_is_found_where_it_answers() {
    with_processes(
        |number, line| one_of_two(number, &line),
        |family| {
            for Kind { what, before, behind } in &KINDS {
                let Some(hosts) = Hosts::with(before, behind) else { return };
                assert_eq!(meet(family, &hosts, [""; 2], what), [1, 1], "{what}");
            }
        },
    );
}

/// One host asks the other for a link, at addresses of which none leads to a port.
// spec: OPEN-32, ERR-10
#[test]
fn a_failed_connect_reports_the_outcome_of_each_address() {
    let Some(hosts) = Hosts::new() else { return };
    hosts.change(&[
        "netns exec {b} sysctl -qw net.ipv4.ip_forward=1",
        "-n {b} route add prohibit 198.51.100.0/24",
        "-n {b} route add blackhole 192.0.2.0/24",
        "-n {a} route add 198.51.100.0/24 via 10.77.0.2",
        "-n {a} route add 192.0.2.0/24 via 10.77.0.2",
        "-n {a} route add prohibit 203.0.113.0/24",
    ]);
    let host = hosts.of(0);
    let ask = move || {
        enter(&host);
        let patience = Duration::from_millis(1500);
        let config = Config::new().number(1).spin(Spin::SHARED).setup_timeout(patience);
        let mut port = Port::open(config).expect("a port");
        port.open_net(&NetOptions::sealed(KEY).expect("a key")).expect("addresses of this host");
        let to = [[10, 77, 0, 2], [198, 51, 100, 1], [192, 0, 2, 1], [203, 0, 113, 1]];
        let to = to.map(|ip| (ip, UDP_PORT).into());
        port.connect_net(&to).expect_err("nobody is there").to_string()
    };
    let text = std::thread::spawn(ask).join().expect("no panic");
    for words in [
        "10.77.0.2:7000 (asked ",
        "s: its host says that the port is closed (ICMP)",
        "10.77.0.2 says that it does not arrive (ICMP): No route to host",
        "203.0.113.1:7000 (asked ",
        "s: this host has not sent there: Permission denied",
        "192.0.2.1:7000 (asked ",
        "s: no answer)",
        "firewalls",
        "AYRE_PORTS",
        "AYRE_NET",
    ] {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
}

/// Addresses that a program names are paths; of a host's that are all its own, one is.
// spec: LIFE-36, PATH-1
#[test]
fn addresses_that_a_program_names_are_paths_and_meet_those_that_it_does_not() {
    with_processes(
        |number, line| one_of_two(number, &line),
        |family| {
            let Some(hosts) = Hosts::new() else { return };
            for (at, paths) in [([NAMED, NAMED], 2), (["", NAMED], 1), ([NAMED, ""], 1)] {
                assert_eq!(meet(family, &hosts, at, "named"), [paths; 2], "{at:?}");
            }
        },
    );
}

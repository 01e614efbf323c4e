//! Hosts of a test: network namespaces that are joined by cables, as one process's own machines.
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Cables between the two hosts.
pub const CABLES: usize = 2;
/// The port of UDP that ports of tests are at; hosts are their own.
pub const UDP_PORT: u16 = 7000;

/// Two hosts and the cables between them; they go with their value.
#[derive(Debug)]
pub struct Hosts {
    name: String,
}

impl Hosts {
    /// Makes them. None, and loud words, where this system or this user cannot.
    pub fn new() -> Option<Self> {
        Self::with(&[], &[])
    }

    /// Hosts with other interfaces: commands of `ip` before the cables are laid, and after. `{}`
    /// stands for each host in turn, `{a}` and `{b}` for one host, `{r}` for one between them,
    /// which is removed with them.
    pub fn with(before: &[&str], behind: &[&str]) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Names of interfaces are short, and those of other tests' must differ.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let hosts = Self { name: format!("ay{}-{number}", std::process::id()) };
        if let Err(why) = hosts.make(before, behind) {
            eprintln!(
                "LEFT OUT: no network namespaces, so NOTHING was tested between hosts: {why}"
            );
            return None;
        }
        Some(hosts)
    }

    /// The name of a host.
    pub fn of(&self, host: usize) -> String {
        format!("{}{}", self.name, ["a", "b"][host])
    }

    fn between(&self) -> String {
        format!("{}r", self.name)
    }

    fn make(&self, before: &[&str], behind: &[&str]) -> Result<(), String> {
        if !rustix::process::geteuid().is_root() {
            return Err("this is not root".into());
        }
        for host in 0..2 {
            let name = self.of(host);
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            // Addresses can be had at once.
            let no_search = "net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0";
            ip(&format!("netns exec {name} sysctl -qw {no_search}"))?;
        }
        self.run(before);
        for cable in 0..CABLES {
            let [near, far] = [0, 1].map(|host| self.of(host));
            ip(&format!("-n {near} link add c{cable} type veth peer name c{cable} netns {far}"))?;
            for host in 0..2 {
                let name = self.of(host);
                for bits in [24, 64] {
                    let at = address(host, cable, bits == 64).ip();
                    let more = if bits == 64 { "nodad" } else { "" };
                    ip(&format!("-n {name} addr add {at}/{bits} dev c{cable} {more}"))?;
                }
                ip(&format!("-n {name} link set c{cable} up"))?;
            }
        }
        if !behind.is_empty() {
            self.settle();
        }
        self.run(behind);
        Ok(())
    }

    /// Waits until interfaces have the addresses that the system gives them.
    fn settle(&self) {
        for host in [0, 1].map(|host| self.of(host)) {
            // The last cable is up in all tests.
            let shown = || show(&format!("-n {host} -6 addr show dev c1 scope link"));
            while !shown().contains("fe80:") {
                std::thread::yield_now();
            }
        }
    }

    /// Where there are namespaces, a test's own commands are to work.
    fn run(&self, commands: &[&str]) {
        let [a, b] = [0, 1].map(|host| self.of(host));
        let between = self.between();
        for words in commands {
            let done = match words.contains("{}") {
                true => [&a, &b].iter().try_for_each(|host| ip(&words.replace("{}", host))),
                false => {
                    let words = words.replace("{a}", &a).replace("{b}", &b);
                    ip(&words.replace("{r}", &between))
                }
            };
            done.expect("a command of the test's");
        }
    }

    /// Something happens to the hosts: words of `ip`, as in [`Hosts::with`].
    pub fn change(&self, commands: &[&str]) {
        self.run(commands);
    }

    /// Sets the MTU of a host's ends of all cables. Longer packets than the other end takes are
    /// lost.
    pub fn set_mtu(&self, host: usize, bytes: u32) {
        for cable in 0..CABLES {
            let words = format!("-n {} link set c{cable} mtu {bytes}", self.of(host));
            ip(&words).expect("a cable of ours");
        }
    }

    /// A host loses its addresses at a cable, and gets others.
    pub fn readdress(&self, host: usize, cable: usize) {
        let name = self.of(host);
        ip(&format!("-n {name} addr flush dev c{cable} scope global")).expect("a cable of ours");
        for bits in [24, 64] {
            let at = address(host + 20, cable, bits == 64).ip();
            let more = if bits == 64 { "nodad" } else { "" };
            ip(&format!("-n {name} addr add {at}/{bits} dev c{cable} {more}")).expect("the same");
        }
    }

    /// Pulls a cable, or plugs it in again.
    pub fn set_cable(&self, cable: usize, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        ip(&format!("-n {} link set c{cable} {state}", self.of(0))).expect("a cable of ours");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let between = self.between();
        let is_there = std::path::Path::new("/run/netns").join(&between).exists();
        for host in [0, 1].map(|host| self.of(host)).into_iter().chain(is_there.then_some(between))
        {
            // The cables go with it.
            let _ = ip(&format!("netns del {host}"));
        }
    }
}

/// Where a host's port is on a cable.
pub fn address(host: usize, cable: usize, is_sixth: bool) -> SocketAddr {
    let last = host + 1;
    let text =
        if is_sixth { format!("fd77:{cable}::{last}") } else { format!("10.77.{cable}.{last}") };
    SocketAddr::new(text.parse::<IpAddr>().expect("an address"), UDP_PORT)
}

/// Interfaces that hosts have: words of `ip` before the cables are laid, and behind.
#[derive(Debug)]
pub struct Kind {
    /// In words.
    pub what: &'static str,
    /// Before the cables are laid.
    pub before: &'static [&'static str],
    /// Behind.
    pub behind: &'static [&'static str],
}

/// The kinds of changes that make addresses useless, or make them seem useful.
pub const KINDS: [Kind; 10] = [
    Kind {
        what: "containers, of which both hosts have the same network",
        before: &[
            "-n {} link add docker0 type bridge",
            "-n {} addr add 172.17.0.1/16 dev docker0",
            "-n {} link set docker0 up",
            "-n {} link add v0 type veth peer name v0p",
            "-n {} link set v0p up",
            "-n {} link set v0 master docker0 up",
        ],
        behind: &[],
    },
    Kind {
        what: "a card without a cable, and one that is down",
        before: &[
            "-n {} link add ens1 type bridge",
            "-n {a} addr add 192.168.1.1/24 dev ens1",
            "-n {b} addr add 192.168.1.2/24 dev ens1",
            "-n {} link add ens2 type veth peer name ens2p",
            "-n {} link set ens2p up",
            "-n {a} addr add 192.168.2.1/24 dev ens2",
            "-n {b} addr add 192.168.2.2/24 dev ens2",
            "-n {} link set ens1 up",
        ],
        behind: &[],
    },
    Kind {
        what: "cards of networks that only look alike, and equal addresses behind NAT",
        before: &[
            "-n {} link add ens1 type veth peer name ens1p",
            "-n {} link set ens1p up",
            "-n {} addr add 10.0.2.15/24 dev ens1",
            "-n {} link set ens1 up",
            "-n {} link add ens2 type veth peer name ens2p",
            "-n {} link set ens2p up",
            "-n {a} addr add 192.168.2.1/24 dev ens2",
            "-n {b} addr add 192.168.2.2/24 dev ens2",
            "-n {} link set ens2 up",
            "-n {} route add default dev ens1",
        ],
        behind: &["-n {} link set c0 down"],
    },
    Kind {
        what: "link-local addresses alone",
        before: &[],
        behind: &["-n {} addr flush dev c0 scope global", "-n {} addr flush dev c1 scope global"],
    },
    Kind {
        what: "an address of the loopback interface alone, as hosts have that are routers",
        before: &[],
        behind: &[
            "-n {} addr flush dev c0",
            "-n {} addr flush dev c1",
            "-n {a} addr add 10.9.9.1/32 dev lo",
            "-n {b} addr add 10.9.9.2/32 dev lo",
            "-n {a} route add 10.9.9.2 dev c0 src 10.9.9.1",
            "-n {b} route add 10.9.9.1 dev c0 src 10.9.9.2",
        ],
    },
    Kind {
        what: "an address of IPv6 alone, which the system has yet to look for elsewhere",
        before: &[],
        behind: &[
            "-n {} addr flush dev c0",
            "-n {} addr flush dev c1",
            "-n {a} addr add fd99::1/64 dev c0",
            "-n {b} addr add fd99::2/64 dev c0",
        ],
    },
    Kind {
        what: "IPv6 alone at one of them",
        before: &[],
        behind: &["-n {b} -4 addr flush dev c0", "-n {b} -4 addr flush dev c1"],
    },
    Kind {
        what: "IPv4 by one cable, IPv6 by the other, and no route",
        before: &[],
        behind: &[
            "-n {} -6 addr flush dev c0",
            "-n {} -4 addr flush dev c1",
            "-n {a} addr add 10.99.0.1/24 dev c1",
        ],
    },
    Kind {
        what: "a link-local one at the side that is called, IPv4 beside it at the caller",
        before: &[],
        behind: &[
            "-n {b} addr flush dev c0 scope global",
            "-n {b} addr flush dev c1 scope global",
            "-n {b} addr add 203.0.113.7/24 dev c0",
        ],
    },
    Kind {
        what: "more tunnels that run and lead elsewhere than an address has room for",
        before: &[
            "-n {} link add tun0 arp off type veth peer name tun0p",
            "-n {} link set tun0p up",
            "-n {} link set tun0 up",
            "-n {} link add tun1 arp off type veth peer name tun1p",
            "-n {} link set tun1p up",
            "-n {} link set tun1 up",
            "-n {} link add tun2 arp off type veth peer name tun2p",
            "-n {} link set tun2p up",
            "-n {} link set tun2 up",
            "-n {} link add tun3 arp off type veth peer name tun3p",
            "-n {} link set tun3p up",
            "-n {} link set tun3 up",
            "-n {a} addr add 10.8.0.1/24 dev tun0",
            "-n {a} addr add 10.8.1.1/24 dev tun1",
            "-n {a} addr add 10.8.2.1/24 dev tun2",
            "-n {a} addr add 10.8.3.1/24 dev tun3",
            "-n {a} addr add fd08::1/64 dev tun0",
            "-n {b} addr add 10.8.0.2/24 dev tun0",
            "-n {b} addr add 10.8.1.2/24 dev tun1",
            "-n {b} addr add 10.8.2.2/24 dev tun2",
            "-n {b} addr add 10.8.3.2/24 dev tun3",
            "-n {b} addr add fd08::2/64 dev tun0",
        ],
        // Once the cables run, too.
        behind: &["-n {} link set c1 up"],
    },
];

/// This thread, and those that it starts, are of a host from here on.
pub fn enter(host: &str) {
    let namespace = File::open(format!("/run/netns/{host}")).expect("the host is there");
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).expect("its namespace");
}

/// Runs `ip`, of the package iproute2.
fn ip(words: &str) -> Result<(), String> {
    run_ip(words).map(drop)
}

/// The output of a command.
fn show(words: &str) -> String {
    run_ip(words).expect("a host of ours")
}

fn run_ip(words: &str) -> Result<String, String> {
    let output = Command::new("ip").args(words.split_ascii_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

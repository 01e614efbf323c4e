//! Ports of two hosts between which something takes less than either host knows of, and says
//! nothing: a tunnel, a VPN whose firewall drops ICMP.
use super::common::net::{KEY, open};
use super::common::net_hosts::{Hosts, address, enter};
use super::common::ports::post;
use super::common::{Line, Process, with_processes};
use super::serve;
use ayre::network::Ethernet;
use ayre::{NetOptions, PeerId, Port, PostOptions, Region, RegionOptions, RemoteRegion, Rights};
use std::thread::yield_now;

/// The length that the path takes when the link is opened, and the one from then on.
const MTUS: [[u32; 2]; 3] = [[1500, 1420], [1420, 1420], [9000, 1500]];
/// Bytes of a transfer.
const LEN: usize = 60_000;
const TRANSFERS: usize = 50;
const NAME: u64 = 1;

/// A cable of which the hosts do not see that it has a bridge in it.
const BRIDGED: [&str; 13] = [
    "netns add {r}",
    "-n {r} link add br0 type bridge",
    "-n {a} link del c0",
    "-n {a} link add c0 type veth peer name p0 netns {r}",
    "-n {b} link add c0 type veth peer name p1 netns {r}",
    "-n {} link set c0 mtu 9000 up",
    // Trains would pass as one piece, and a bridge lets those pass.
    "-n {} link set c0 gso_max_segs 1",
    "-n {r} link set p0 mtu 9000 master br0 up",
    "-n {r} link set p1 mtu 9000 master br0 up",
    "-n {r} link set br0 mtu 9000 up",
    "-n {a} addr add 10.77.0.1/24 dev c0",
    "-n {b} addr add 10.77.0.2/24 dev c0",
    "-n {} -6 addr flush dev c0",
];

/// The traffic of a link.
struct Gone {
    /// Datagrams that frames have gone in.
    datagrams: u64,
    /// Frames with a payload, and those among them that went for the first time.
    frames: u64,
    new: u64,
}

impl Gone {
    fn by(port: &Port) -> Self {
        let report = port.wire_report().expect("a wire");
        let link = &report.links[0];
        let again = link.again;
        let again = again.overtaken + again.asked_for + again.timed_out + again.resynced;
        let datagrams = report.nets[0].sent - link.told;
        Self { datagrams, frames: link.sent + again, new: link.sent }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            datagrams: self.datagrams - before.datagrams,
            frames: self.frames - before.frames,
            new: self.new - before.new,
        }
    }

    /// Have all transfers been cut into frames that a path of this length takes?
    fn check_cut(&self, mtu: u64) {
        let Self { new, .. } = *self;
        assert!(new > (TRANSFERS * LEN) as u64 / mtu, "{new} frames, where {mtu} bytes pass");
    }

    /// Have frames gone whole? In pieces, each would be two datagrams.
    fn check_whole(&self) {
        let Self { datagrams, frames, .. } = *self;
        assert!(datagrams * 4 <= frames * 5, "{datagrams} datagrams for {frames} frames");
    }
}

/// Bytes of the longest datagram that goes whole, as far as a port knows.
fn limit(port: &Port) -> u64 {
    port.links()[0].paths[0].datagram.into()
}

fn has_fallen(port: &Port) -> bool {
    let path = &port.links()[0].paths[0];
    path.datagram < path.datagram_at_opening
}

/// One of two ports with a link; and what it takes to reach the other one's memory.
struct Side {
    port: Port,
    peer: PeerId,
    region: Region,
    remote: RemoteRegion,
}

impl Side {
    fn meet(own: usize) -> Self {
        enter(&std::env::var("HOST").expect("a host"));
        let mut port = open(own as u16);
        let options = NetOptions::sealed(KEY).expect("a key").ethernet(Ethernet::Never);
        port.open_net(&options.at(address(own, 0, false))).expect("an address");
        let peer = match own {
            0 => port.accept().expect("the other one asks"),
            _ => port.connect_net(&[address(0, 0, false)]).expect("the other one is there"),
        };
        let region = port.alloc(LEN, RegionOptions::new()).expect("memory");
        port.share(peer, &region, 0..LEN, Rights::all(), NAME).expect("a grant");
        let remote = port.accept_region(peer, NAME).expect("the peer's grant");
        Self { port, peer, region, remote }
    }

    fn put(&mut self, bytes: &[u8]) {
        let Self { port, remote, .. } = self;
        post(port, |port| port.put(remote, 0, bytes, PostOptions::new())).expect("the peer lives");
    }

    /// Writes the other one's memory until the way is found to take less, and then goes on.
    fn write(&mut self, mtu: u64) {
        let bytes = vec![self.port.rank() as u8 + 1; LEN];
        while !has_fallen(&self.port) {
            self.put(&bytes);
            self.port.progress();
        }
        self.port.flush(self.peer).expect("the peer lives");
        let before = Gone::by(&self.port);
        (0..TRANSFERS).for_each(|_| self.put(&bytes));
        self.port.flush(self.peer).expect("the peer lives");
        let gone = Gone::by(&self.port).since(&before);
        gone.check_cut(mtu);
        gone.check_whole();
    }

    /// Reads the other one's memory, which the other one has written here as well. Returns the
    /// longest datagram that it has asked for.
    fn read(&mut self, own: u8) -> u64 {
        let (mut back, mut here) = (vec![0; LEN], vec![0; LEN]);
        let mut most = limit(&self.port);
        for _ in 0..TRANSFERS {
            let Self { port, remote, .. } = self;
            let get = |port: &mut Port| port.get(remote, 0, &mut back[..], PostOptions::new());
            post(port, get).expect("the peer lives");
            assert!(back == vec![own + 1; LEN], "what was written there");
            most = most.max(limit(port));
        }
        self.region.read(0, &mut here);
        assert!(here == vec![2 - own; LEN], "what was written here");
        most
    }

    /// Answers what the other side reads, which has fallen as well.
    fn answer(&mut self, mtu: u64, line: &Line) {
        let (before, mut least) = (Gone::by(&self.port), limit(&self.port));
        line.say(2);
        while !line.has_word() {
            self.port.progress();
            least = least.min(limit(&self.port));
            yield_now();
        }
        let most = line.hear();
        let gone = Gone::by(&self.port).since(&before);
        gone.check_cut(mtu);
        // Each side finds out by itself what the way takes. As long as this one knows of less, what
        // the other one asks for goes in pieces.
        if most <= least {
            gone.check_whole();
        }
    }
}

/// Both write, one after the other, and then the second one reads what the first one has.
fn one_of_two(number: u64, line: &Line) {
    let own = number % 2;
    let mut side = Side::meet(own as usize);
    line.say(0);
    let mtu = line.hear();
    if own == 0 {
        side.write(mtu);
        line.say(1);
        serve(&mut side.port, line);
        side.answer(mtu, line);
        line.say(3);
    } else {
        serve(&mut side.port, line);
        side.write(mtu);
        line.say(1);
        serve(&mut side.port, line);
        let most = side.read(own as u8);
        line.say(most);
    }
    serve(&mut side.port, line);
}

/// The side that sends, in turn, which the other one is told.
const TURNS: [usize; 5] = [0, 1, 0, 1, 0];

// spec: MTU-4, MTU-8
#[test]
fn posted_data_is_segmented_by_the_current_path_mtu() {
    with_processes(
        |number, line| one_of_two(number, &line),
        |family| {
            let Some(hosts) = Hosts::with(&[], &BRIDGED) else { return };
            let set = |bytes: u32| {
                // The bridge drops what is too long without a word.
                hosts.change(&[&format!("-n {{r}} link set p1 mtu {bytes}")]);
            };
            for [first, then] in MTUS {
                eprintln!("{first}, then {then}");
                hosts.change(&[&format!("-n {{}} link set c0 mtu {}", first.max(1500))]);
                set(first);
                let mut both = [0, 1].map(|host| {
                    family.start_with(|command| {
                        command.env("HOST", hosts.of(host));
                    })
                });
                both.iter().for_each(|process| assert_eq!(process.line.hear(), 0));
                set(then);
                both.iter().for_each(|process| process.line.say(then.into()));
                for own in TURNS {
                    both[1 - own].line.say(both[own].line.hear());
                }
                both[0].line.say(0);
                both.iter_mut().for_each(Process::succeeds);
            }
        },
    );
}

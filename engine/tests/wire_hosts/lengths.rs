//! Ports of two hosts between which something takes less than either host knows of, and says
//! nothing: a tunnel, a VPN whose firewall drops ICMP.
use super::common::net::{KEY, open};
use super::common::net_hosts::{Hosts, address, enter};
use super::common::ports::post;
use super::common::{Line, Process, with_processes};
use super::serve;
use ayre::{
    Ethernet, NetOptions, Options, PeerId, Port, Region, RegionOptions, RemoteRegion, Rights,
};

/// What the way takes when the link is opened, and from then on.
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

/// Datagrams that frames have gone in, and frames: all transmissions of each that has a payload.
fn counts(port: &Port) -> [u64; 2] {
    let report = port.wire_report().expect("a wire");
    let link = &report.links[0];
    let again = link.again;
    let again = again.overtaken + again.asked_for + again.timed_out + again.resynced;
    [report.nets[0].sent - link.told, link.sent + again]
}

/// Has what goes been cut so that it goes whole? In pieces, each frame would be two datagrams.
fn check_whole(port: &Port, before: [u64; 2]) {
    let [datagrams, frames] = counts(port);
    let [datagrams, frames] = [datagrams - before[0], frames - before[1]];
    assert!(frames > (TRANSFERS * LEN / 9000) as u64, "{frames} frames");
    assert!(datagrams * 4 <= frames * 5, "{datagrams} datagrams for {frames} frames");
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
        post(port, |port| port.put(remote, 0, bytes, Options::new())).expect("the peer lives");
    }

    /// Writes the other one's memory until the way is found to take less, and then goes on.
    fn write(&mut self, is_falling: bool) {
        let bytes = vec![self.port.rank() as u8 + 1; LEN];
        while is_falling && !has_fallen(&self.port) {
            self.put(&bytes);
            self.port.progress();
        }
        self.port.flush(self.peer).expect("the peer lives");
        let before = counts(&self.port);
        (0..TRANSFERS).for_each(|_| self.put(&bytes));
        self.port.flush(self.peer).expect("the peer lives");
        check_whole(&self.port, before);
    }

    /// Reads the other one's memory, which the other one has written here as well.
    fn read(&mut self, own: u8) {
        let (mut back, mut here) = (vec![0; LEN], vec![0; LEN]);
        for _ in 0..TRANSFERS {
            let Self { port, remote, .. } = self;
            let get = |port: &mut Port| port.get(remote, 0, &mut back[..], Options::new());
            post(port, get).expect("the peer lives");
            assert!(back == vec![own + 1; LEN], "what was written there");
        }
        self.region.read(0, &mut here);
        assert!(here == vec![2 - own; LEN], "what was written here");
    }
}

/// Both write, one after the other, and then the second one reads what the first one has.
fn one_of_two(number: u64, line: &Line) {
    let own = number % 2;
    let mut side = Side::meet(own as usize);
    line.say(0);
    let is_falling = line.hear() == 1;
    if own == 0 {
        side.write(is_falling);
        line.say(1);
        serve(&mut side.port, line);
        let before = counts(&side.port);
        line.say(2);
        serve(&mut side.port, line);
        check_whole(&side.port, before);
    } else {
        serve(&mut side.port, line);
        side.write(is_falling);
        line.say(1);
        serve(&mut side.port, line);
        side.read(own as u8);
    }
    line.say(3);
    serve(&mut side.port, line);
}

/// What each process says, in turn; then the other one is told to go on.
const WORDS: [(usize, u64); 5] = [(0, 1), (1, 1), (0, 2), (1, 3), (0, 3)];

// spec: MTU-4, MTU-8
#[test]
fn what_is_posted_is_cut_by_what_the_way_takes_now() {
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
                both.iter().for_each(|process| process.line.say(1));
                for (own, word) in WORDS {
                    assert_eq!(both[own].line.hear(), word);
                    both[1 - own].line.say(0);
                }
                both[0].line.say(0);
                both.iter_mut().for_each(Process::succeeds);
            }
        },
    );
}

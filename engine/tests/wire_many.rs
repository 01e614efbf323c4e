//! A thousand links of one port: all of them work, and what each costs in memory.
//!
//! The hub is a process with one port; the crowd's ports are in other processes, for what is
//! measured is the hub alone. A link's memory is that which a port holds for a peer that has sent
//! and received a little: the used pages of its lanes, and its window of frames.
mod common;

use ayre::memory::Classes;
use ayre::{PeerId, Port, PostOptions, Region, RegionOptions, Rights};
use common::net::{ANY, Protection, open};
use common::ports::{post, progress_until};
use common::{Line, with_processes};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{Ipv4Addr, SocketAddr};

const LINKS: u64 = 1000;
/// Processes that the ports at the other ends are in.
const CROWDS: u64 = 2;
/// The bytes that the hub may hold for each link.
const BYTES_PER_LINK: u64 = 96 << 10;
const NAME: u64 = 1;

/// Ports need descriptors, and a process seldom may have as many.
fn allow_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the maximum");
}

/// Bytes of memory that this process really has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a field");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}

/// The messages of the hub and a port of the crowd.
fn text(of: u64, to: u64) -> [u8; 16] {
    let mut text = [0; 16];
    common::random::fill(&mut text, of, to, 0);
    text
}

/// The port with a thousand links.
fn hub(line: &Line) {
    let mut port = open(0);
    let at = port.open_net(&Protection::Plain.options().at(ANY)).expect("an address")[0];
    line.say(at.port().into());
    let before = resident();
    for _ in 0..LINKS {
        port.accept().expect("somebody of the crowd connects");
    }
    let connected = resident();
    talk(&mut port);
    let after = resident();
    let per_link = [connected, after].map(|now| now.saturating_sub(before) / LINKS);
    eprintln!(
        "resident bytes for each of {LINKS} links: {} idle, {} used",
        per_link[0], per_link[1]
    );
    assert!(per_link[1] <= BYTES_PER_LINK, "{} bytes for each link", per_link[1]);
    line.say(0);
    progress_until(&mut port, |_| line.has_word());
}

/// A message from each peer and one back, and a put into each one's memory.
fn talk(port: &mut Port) {
    let (mut into, mut heard) = ([0; 16], vec![false; LINKS as usize + 1]);
    while heard.iter().filter(|heard| **heard).count() < LINKS as usize {
        let message = port.recv(&mut into, None).expect("nobody dies");
        let peer = message.source;
        assert_eq!(into, text(peer.0.into(), 0), "peer {}", peer.0);
        assert!(!std::mem::replace(&mut heard[peer.index()], true), "once from each");
        let remote = port.accept_region(peer, NAME).expect("it was offered before");
        let options = PostOptions::new().requester().completer().tag(peer.0.into());
        let answer = text(0, peer.0.into());
        post(port, |port| port.put(&remote, 8, &answer, options)).expect("the peer lives");
        post(port, |port| port.send(peer, 1, &answer)).expect("the peer lives");
        take_ended(port);
    }
    let mut peers = port.peers().collect::<Vec<_>>().into_iter();
    peers.try_for_each(|peer| port.flush(peer)).expect("all have ended well");
    take_ended(port);
}

fn take_ended(port: &mut Port) {
    while let Some(note) = port.poll_notification() {
        assert_eq!((note.class, note.tag), (Classes::REQUESTER, note.source.0.into()));
    }
}

/// A port of the crowd.
struct One {
    port: Port,
    region: Region,
    answered: bool,
    noted: bool,
}

const HUB: PeerId = PeerId(0);

impl One {
    fn connect(number: u64, hub: SocketAddr) -> Self {
        let mut port = open(number as u16);
        port.open_net(&Protection::Plain.options().at(ANY)).expect("an address");
        assert_eq!(port.connect_net(&[hub]).expect("the hub accepts"), HUB);
        let region = port.alloc(64, RegionOptions::new()).expect("memory");
        Self { port, region, answered: false, noted: false }
    }

    fn ask(&mut self) {
        self.port.share(HUB, &self.region, 0..64, Rights::all(), NAME).expect("a grant");
        let own = self.port.rank() as u64;
        self.port.send(HUB, 1, &text(own, 0)).expect("room");
    }

    /// Takes the message and the put.
    fn is_done(&mut self) -> bool {
        self.port.progress();
        let (mut into, own) = ([0; 16], self.port.rank() as u64);
        if self.port.try_recv(&mut into).expect("a short message").is_some() {
            assert!(!self.answered && into == text(0, own));
            self.answered = true;
        }
        if let Some(note) = self.port.poll_notification() {
            assert!(!self.noted && note.source == HUB && u64::from(note.tag) == own);
            self.noted = true;
            let mut put = [0; 16];
            self.region.read(8, &mut put);
            assert_eq!(put, text(0, own));
        }
        self.answered && self.noted
    }
}

/// A part of the ports at the other ends.
fn crowd(number: u64, line: &Line) {
    let hub = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), line.hear() as u16);
    let numbers = (1..=LINKS).filter(|one| one % CROWDS == number % CROWDS);
    let mut ports: Vec<_> = numbers.map(|number| One::connect(number, hub)).collect();
    ports.iter_mut().for_each(One::ask);
    let mut all = false;
    while !all {
        // Each of them is looked at, for each has its own link to keep.
        all = ports.iter_mut().filter_map(|one| (!one.is_done()).then_some(())).count() == 0;
        std::thread::yield_now();
    }
    line.say(0);
    while !line.has_word() {
        ports.iter_mut().for_each(|one| one.port.progress());
        std::thread::yield_now();
    }
}

// spec: LIM-1, LIM-2, PROG-4, LIFE-20
#[test]
fn a_thousand_links_of_one_port() {
    let child = |number, line: Line| {
        allow_descriptors();
        if number == 0 { hub(&line) } else { crowd(number, &line) }
    };
    with_processes(child, |family| {
        let mut hub = family.start();
        let at = hub.line.hear();
        let mut crowds: Vec<_> = (0..CROWDS).map(|_| family.start()).collect();
        crowds.iter().for_each(|crowd| crowd.line.say(at));
        hub.line.hear();
        for crowd in &crowds {
            crowd.line.hear();
        }
        crowds.iter().for_each(|crowd| crowd.line.say(0));
        crowds.iter_mut().for_each(|crowd| crowd.succeeds());
        hub.line.say(0);
        hub.succeeds();
    });
}

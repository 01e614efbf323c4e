//! Ports of different hosts: processes in network namespaces that are joined by cables, which lose,
//! repeat and damage what they carry, are pulled, and whose processes are killed.
#[path = "wire_hosts/changes.rs"]
mod changes;
mod common;
#[path = "wire_hosts/lengths.rs"]
mod lengths;
#[path = "wire_hosts/places.rs"]
mod places;

use ayre::error::Status;
use ayre::memory::Width;
use ayre::memory::{Atomic, AtomicOp, Classes};
use ayre::network::{Ethernet, FaultPlan};
use ayre::network::{PortRange, WireReport};
use ayre::{Fault, NetOptions, PeerId, Port, PostOptions};
use ayre::{PostError, Region, RegionOptions, RemoteRegion, Rights};
use common::net::{KEY, open};
use common::net_hosts::{Hosts, UDP_PORT, address, enter};
use common::ports::{post, tell, told};
use common::random::fill;
use common::{Family, Line, Process, iterations, with_processes};
use std::mem::replace;
use std::net::SocketAddr;
use std::thread::yield_now;
use std::time::Duration;

/// Bytes of the part of a region that one operation writes.
const PIECE: usize = 600;
/// Parts of a region.
const PIECES: u64 = 32;
/// Where a region counts what was added to it.
const COUNTER: usize = PIECE * PIECES as usize;
const NAME: u64 = 1;
/// The number of rounds after which the counter is fetched and added to.
const FETCH_EVERY: u64 = 16;
/// Steps without news after each of which a process says that it is stuck.
const STUCK: u64 = 5_000;
/// Rounds between two words to the test.
const WORD_EVERY: u64 = 25;
/// The words of a process that is stuck, or done; words below these give its progress.
const STUCK_WORD: u64 = u64::MAX;
const DONE_WORD: u64 = u64::MAX - 1;
/// And one that has heard nothing of its peer for three silences.
const UNHEARD_WORD: u64 = u64::MAX - 2;
/// And one whose link leads to another address.
const FOLLOWED_WORD: u64 = u64::MAX - 3;
/// How long a peer that says nothing is waited for, where it does come back.
const PATIENT: Duration = Duration::from_secs(60);
/// And where it does not.
const HASTY: Duration = Duration::from_millis(400);
/// A time after which nobody is dead: of a death, its host tells.
const NEVER: Duration = Duration::from_secs(86_400);

/// The parameters of a test's processes.
#[derive(Clone, Copy, Debug)]
struct Setting {
    sealed: bool,
    sixth: bool,
    ethernet: bool,
    /// Addresses that are named; without any, the port is open at all of its host's.
    paths: usize,
    /// The hosts have an address that is of no cable.
    routed: bool,
    faults: &'static str,
    silence: Duration,
    rounds: u64,
    /// Whether the processes wait for answers now and then.
    blocks: bool,
}

impl Setting {
    const CLEAN: Self = Self {
        sealed: false,
        sixth: false,
        ethernet: false,
        paths: 1,
        routed: false,
        faults: "",
        silence: PATIENT,
        rounds: 1000,
        blocks: true,
    };

    fn start(&self, family: &Family, hosts: &Hosts, host: usize, task: &str) -> Process {
        family.start_with(|command| {
            command.env("HOST", hosts.of(host)).env("PLACE", host.to_string());
            command.env("TASK", task).env("SEALED", self.sealed.to_string());
            command.env("SIXTH", self.sixth.to_string()).env("PATHS", self.paths.to_string());
            command.env("ROUTED", self.routed.to_string());
            command.env("ETHERNET", self.ethernet.to_string());
            command.env("FAULTS", self.faults).env("ROUNDS", self.rounds.to_string());
            command.env("BLOCKS", self.blocks.to_string());
            command.env("SILENCE", self.silence.as_millis().to_string());
        })
    }
}

fn setting<T: std::str::FromStr<Err: std::fmt::Debug>>(name: &str) -> T {
    std::env::var(name).expect("a setting").parse().expect("a value")
}

/// Where the port of a host is found.
fn addresses(host: usize) -> Vec<SocketAddr> {
    match setting("PATHS") {
        _ if setting("ROUTED") => vec![([10, 99, 0, host as u8 + 1], UDP_PORT).into()],
        0 => [0, 1].map(|cable| address(host, cable, setting("SIXTH"))).into(),
        paths => (0..paths).map(|cable| address(host, cable, setting("SIXTH"))).collect(),
    }
}

/// A port at the addresses of the host that this process is of.
fn port(number: u16, at: &[SocketAddr]) -> Port {
    enter(&setting::<String>("HOST"));
    let mut options = match setting("SEALED") {
        false => NetOptions::plain(),
        true => NetOptions::sealed(KEY).expect("a key"),
    };
    options = options.silence(Duration::from_millis(setting("SILENCE"))).dead_after(NEVER);
    let frames = setting("ETHERNET");
    options = options.ethernet(if frames { Ethernet::Required } else { Ethernet::Never });
    let plan: FaultPlan = setting("FAULTS");
    if plan != FaultPlan::new() {
        options = options.faults(plan);
    }
    let mut port = open(number);
    options = match setting::<usize>("PATHS") {
        0 => options.ports(PortRange::new(UDP_PORT, UDP_PORT).expect("one port")),
        _ => at.iter().fold(options, |options, at| options.at(*at)),
    };
    port.open_net(&options).expect("a network");
    port
}

/// One end of the traffic between two ports: rounds of a put and a message each way, with an
/// atomic and a get now and then. Everything comes whole, in order and once.
struct Traffic {
    port: Port,
    peer: PeerId,
    region: Region,
    remote: RemoteRegion,
    /// Rounds of ours that were posted, messages and notifications of theirs.
    sent: u64,
    /// The operations of the next round that were posted.
    stage: u32,
    /// Whether there are calls that wait for answers.
    blocks: bool,
    received: u64,
    noted: u64,
    /// Operations of ours that have ended.
    ended: u64,
}

/// A process's report of its link to the test.
struct News {
    is_heard: bool,
    to: Option<SocketAddr>,
}

/// Where the path of the one link leads.
fn to_peer(report: WireReport) -> Option<SocketAddr> {
    Some(report.links.first()?.paths.first()?.to)
}

impl News {
    fn tell(&mut self, port: &Port, line: &Line) {
        let report = port.wire_report().expect("a wire");
        let silent = Duration::from_nanos(report.links[0].silent_ns);
        let is_heard = silent < 3 * Duration::from_millis(setting("SILENCE"));
        if replace(&mut self.is_heard, is_heard) && !is_heard {
            line.say(UNHEARD_WORD);
        }
        let to = to_peer(report);
        if replace(&mut self.to, to) != to {
            line.say(FOLLOWED_WORD);
        }
    }
}

fn content(of: u64, round: u64) -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    fill(&mut bytes, of, 0, round);
    bytes
}

fn message_len(round: u64) -> usize {
    (round % 500 + 1) as usize
}

impl Traffic {
    fn begin(mut port: Port, peer: PeerId) -> Self {
        let region = port.alloc(COUNTER + 8, RegionOptions::new()).expect("memory");
        port.share(peer, &region, 0..COUNTER + 8, Rights::all(), NAME).expect("a grant");
        let remote = port.accept_region(peer, NAME).expect("the peer's grant");
        let (blocks, stage) = (setting("BLOCKS"), 0);
        let (sent, received, noted, ended) = (0, 0, 0, 0);
        Self { port, peer, region, remote, sent, stage, blocks, received, noted, ended }
    }

    /// Posts what is next of this round; false where there is no room.
    fn post_next(&mut self) -> Result<bool, Fault> {
        let (round, own) = (self.sent, self.port.rank() as u64);
        let (peer, remote, tag) = (self.peer, &self.remote, round as u32);
        let (offset, data) = (round % PIECES * PIECE as u64, content(own, round));
        let fetches = round.is_multiple_of(FETCH_EVERY);
        let posted = match self.stage {
            0 => {
                let options = PostOptions::new().requester().completer().tag(tag);
                self.port.put(remote, offset, &data, options).map(drop)
            }
            1 => self.port.send(peer, tag, &data[..message_len(round)]),
            _ if fetches && !self.blocks => {
                let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
                self.port.atomic(remote, COUNTER as u64, add, PostOptions::new()).map(drop)
            }
            _ if fetches => return self.fetch().map(|()| true),
            _ => Ok(()),
        };
        match posted {
            Ok(()) => {}
            Err(PostError::Busy(_)) => return Ok(false),
            Err(PostError::Fault(fault)) => return Err(fault),
        }
        self.end_stage();
        Ok(true)
    }

    fn end_stage(&mut self) {
        self.stage = (self.stage + 1) % 3;
        self.sent += u64::from(self.stage == 0);
    }

    /// The operations that wait for answers.
    fn fetch(&mut self) -> Result<(), Fault> {
        let (remote, round) = (&self.remote, self.sent);
        let before = post(&mut self.port, |port| port.fetch_add(remote, COUNTER as u64, 1))?;
        assert_eq!(before, round / FETCH_EVERY, "each was added once");
        let (mut back, offset) = (vec![0; PIECE], round % PIECES * PIECE as u64);
        let get = |port: &mut Port| port.get(remote, offset, &mut back[..], PostOptions::new());
        post(&mut self.port, get)?;
        assert!(back == content(self.port.rank() as u64, round), "what was put, round {round}");
        self.end_stage();
        Ok(())
    }

    /// Takes what has come. Whether there was anything.
    fn take(&mut self) -> bool {
        let (other, mut into) = (self.peer.0.into(), [0; 1024]);
        let mut any = false;
        while let Some(message) = self.port.try_recv(&mut into).expect("a buffer of that size") {
            let round = self.received;
            assert_eq!((message.source, message.tag), (self.peer, round as u32), "in order, once");
            assert!(into[..message.len] == content(other, round)[..message_len(round)]);
            self.received += 1;
            any = true;
        }
        while let Some(note) = self.port.poll_notification() {
            let count = match note.class {
                Classes::COMPLETER => &mut self.noted,
                _ => &mut self.ended,
            };
            assert_eq!((note.tag, note.status), (*count as u32, Status::Ok), "in order, once");
            *count += 1;
            any = true;
        }
        any
    }

    /// Goes on until both sides have had all rounds, telling the test how far it is.
    fn run(&mut self, rounds: u64, line: &Line) {
        let (mut told, mut idle, mut turns) = (0, 0_u64, 0_u64);
        let mut news = News { is_heard: true, to: self.port.wire_report().and_then(to_peer) };
        while [self.sent, self.received, self.noted, self.ended].iter().any(|done| *done < rounds) {
            let posted = self.sent < rounds && self.post_next().expect("the peer lives");
            self.port.progress();
            idle = if self.take() || posted { 0 } else { idle + 1 };
            if idle > 0 && idle.is_multiple_of(STUCK) {
                line.say(STUCK_WORD);
            }
            turns += 1;
            if turns % 64 == 0 {
                news.tell(&self.port, line);
            }
            if self.received >= told + WORD_EVERY {
                told += WORD_EVERY;
                line.say(told);
            }
            yield_now();
        }
    }

    /// Nothing more comes, and what is there is what was put there.
    fn check(&mut self, rounds: u64) {
        assert!(!self.take(), "nothing comes twice");
        assert_eq!(self.region.load(COUNTER), rounds.div_ceil(FETCH_EVERY), "each fetch once");
        for round in rounds - PIECES..rounds {
            let mut bytes = vec![0; PIECE];
            self.region.read((round % PIECES) as usize * PIECE, &mut bytes);
            assert!(bytes == content(self.peer.0.into(), round), "round {round}");
        }
    }
}

/// Makes progress until the test says something.
fn serve(port: &mut Port, line: &Line) {
    while !line.has_word() {
        port.progress();
        yield_now();
    }
    line.hear();
}

/// Both processes of most tests: the first accepts, the second connects.
fn both(number: u64, line: &Line) {
    let mut port = port(number as u16, &addresses(number as usize));
    let peer = match number {
        0 => port.accept().expect("the other host connects"),
        _ => port.connect_net(&addresses(0)).expect("the other host accepts"),
    };
    let mut traffic = Traffic::begin(port, peer);
    let rounds = setting("ROUNDS");
    traffic.run(rounds, line);
    line.say(DONE_WORD);
    serve(&mut traffic.port, line);
    traffic.check(rounds);
    traffic.port.leave().expect("a peer that lives");
}

/// Starts both and has them do all that they are told to; `watch` hears their words meanwhile.
fn traffic(family: &Family, setting: &Setting, watch: impl FnOnce(&Hosts, &[Process; 2])) {
    if let Some(hosts) = Hosts::new() {
        traffic_on(&hosts, family, setting, watch);
    }
}

/// Starts both on these hosts and has them do all that they are told to.
fn traffic_on(
    hosts: &Hosts,
    family: &Family,
    setting: &Setting,
    watch: impl FnOnce(&Hosts, &[Process; 2]),
) {
    let mut both = [0, 1].map(|host| setting.start(family, hosts, host, "both"));
    watch(hosts, &both);
    for process in &both {
        while process.line.hear() != DONE_WORD {}
    }
    both.iter().for_each(|process| process.line.say(0));
    both.iter_mut().for_each(Process::succeeds);
}

/// Hears words until a process is so far.
fn until(process: &Process, rounds: u64) {
    while !(rounds..FOLLOWED_WORD).contains(&process.line.hear()) {}
}

// spec: LIFE-20, WIRE-1, WIRE-2, LINK-2, SEAL-12, NET-6
#[test]
fn hosts_talk() {
    let child = |number, line: Line| both(number % 2, &line);
    with_processes(child, |family| {
        for case in 0..8 {
            let [sealed, sixth, ethernet] = [1, 2, 4].map(|bit| case & bit != 0);
            println!("sealed: {sealed}, IPv6: {sixth}, Ethernet: {ethernet}");
            traffic(family, &Setting { sealed, sixth, ethernet, ..Setting::CLEAN }, |_, _| {});
        }
    });
}

// spec: LINK-2, LINK-8, LINK-9, FRAME-5, NET-1, SEAL-4
#[test]
fn each_message_arrives_once_over_a_bad_network() {
    let child = |number, line: Line| both(number % 2, &line);
    with_processes(child, |family| {
        for seed in iterations(1) {
            for sealed in [false, true] {
                println!("sealed: {sealed}, seed: {seed}");
                let faults = "loss=20%,dup=2%,reorder=10%,corrupt=1%";
                let setting = Setting { sealed, faults, rounds: 250, ..Setting::CLEAN };
                traffic(family, &setting, |_, _| {});
            }
        }
    });
}

// spec: LINK-2, LINK-17, NET-3, NET-4
#[test]
fn each_message_arrives_once_despite_a_pulled_cable() {
    let child = |number, line: Line| both(number % 2, &line);
    with_processes(child, |family| {
        for ethernet in [false, true] {
            println!("Ethernet: {ethernet}");
            // Who waits does not say that he does.
            let setting = Setting { ethernet, blocks: false, ..Setting::CLEAN };
            traffic(family, &setting, |hosts, [first, second]| {
                for so_far in [100, 300, 500] {
                    until(first, so_far);
                    hosts.set_cable(0, false);
                    // Both have had time enough to send again what nobody takes.
                    [first, second].iter().for_each(|end| while end.line.hear() != STUCK_WORD {});
                    hosts.set_cable(0, true);
                }
            });
        }
    });
}

// spec: LIFE-15, LINK-17, LINK-2
#[test]
fn a_process_that_is_stopped_for_longer_than_the_silence_goes_on() {
    let child = |number, line: Line| both(number % 2, &line);
    with_processes(child, |family| {
        for (sealed, ethernet) in [(true, false), (false, true)] {
            println!("sealed: {sealed}, Ethernet: {ethernet}");
            // Who waits does not say that he does.
            let setting = Setting { blocks: false, silence: HASTY, ..Setting::CLEAN };
            let setting = Setting { sealed, ethernet, ..setting };
            traffic(family, &setting, |_, [first, second]| {
                for so_far in [100, 500] {
                    until(first, so_far);
                    second.stop();
                    while first.line.hear() != UNHEARD_WORD {}
                    second.resume();
                }
            });
        }
    });
}

/// The one that has accepted the link, and the one that has opened it, one after the other.
// spec: NET-15, PATH-11, LINK-2
#[test]
fn a_host_whose_address_changes_is_followed() {
    let child = |number, line: Line| both(number % 2, &line);
    with_processes(child, |family| {
        for (sixth, ethernet) in [(false, false), (true, false), (false, true)] {
            println!("IPv6: {sixth}, Ethernet: {ethernet}");
            let setting = Setting { silence: HASTY, ..Setting::CLEAN };
            let setting = Setting { sealed: !sixth, sixth, ethernet, rounds: 2000, ..setting };
            traffic(family, &setting, |hosts, both| {
                until(&both[0], 100);
                for host in [0, 1] {
                    hosts.readdress(host, 0);
                    if ethernet {
                        // Frames go on in the old address's name for a while; and two that have
                        // moved at a time do not find each other.
                        return until(&both[0], 1800);
                    }
                    let words = std::iter::repeat_with(|| both[1 - host].line.hear());
                    let mut words = words.take_while(|word| *word != DONE_WORD);
                    assert!(words.any(|word| word == FOLLOWED_WORD), "it is followed");
                }
            });
        }
    });
}

// spec: PATH-2, PATH-3, PATH-5, PATH-7, LINK-2
#[test]
fn one_of_two_cables_is_pulled_and_plugged_in_again() {
    with_processes(
        |number, line| both(number, &line),
        |family| {
            let setting = Setting { paths: 2, rounds: 2000, ..Setting::CLEAN };
            traffic(family, &setting, |hosts, [first, _]| {
                for (cable, so_far) in [(0, 200), (1, 1000)] {
                    until(first, so_far);
                    hosts.set_cable(cable, false);
                    // It goes on over the other one.
                    until(first, so_far + 400);
                    hosts.set_cable(cable, true);
                }
            });
        },
    );
}

/// The survivor's connection in each round besides the victim: a port of its own host.
const FRIEND: u16 = 5;
const VICTIM: u16 = 1;

/// Puts into a peer that is going to be killed, until it is; everything that was posted ends.
fn lose(traffic: &mut Traffic, friend: PeerId, line: &Line) {
    line.say(0);
    let (mut posted, mut ended) = (0_u64, 0_u64);
    let (mut turns, mut heard) = (0, 0);
    while traffic.port.is_alive(traffic.peer) {
        let options = PostOptions::new().requester();
        let remote = &traffic.remote;
        let put = traffic.port.put(remote, 0, &content(0, posted), options);
        posted += u64::from(put.is_ok());
        let _ = traffic.port.send(traffic.peer, 0, &[9; 8]);
        // The friend notices nothing of all this.
        if turns % 50 == 0 {
            traffic.port.send(friend, 1, &u64::to_le_bytes(turns / 50)).expect("room");
        }
        let mut into = [0; 8];
        while let Some(found) = traffic.port.try_recv(&mut into).expect("a short message") {
            if found.source == friend {
                assert_eq!(u64::from_le_bytes(into), heard, "the friend's answers, in order");
                heard += 1;
            }
        }
        turns += 1;
        ended += take_ended(&mut traffic.port, traffic.peer);
        traffic.port.progress();
        yield_now();
    }
    while ended < posted {
        traffic.port.progress();
        ended += take_ended(&mut traffic.port, traffic.peer);
    }
    assert_eq!(ended, posted, "each ends once");
    let dead = Err(PostError::Fault(Fault::PeerDead));
    assert_eq!(traffic.port.put(&traffic.remote, 0, b"x", PostOptions::new()), dead);
}

/// Operations of ours that have ended.
fn take_ended(port: &mut Port, peer: PeerId) -> u64 {
    let notes = std::iter::from_fn(|| port.poll_notification());
    let own = notes.filter(|note| note.class == Classes::REQUESTER);
    own.inspect(|note| assert_eq!(note.source, peer, "{note:?}")).count() as u64
}

/// Answers each message of one peer with the same, until it leaves.
fn echo(port: &mut Port, peer: PeerId) {
    let mut into = [0; 8];
    while port.is_alive(peer) {
        port.progress();
        if port.try_recv(&mut into).expect("a short message").is_some() {
            port.send_wait(peer, 1, &into).expect("the survivor lives");
        }
        yield_now();
    }
}

/// The process that stays: it loses the victim again and again, and accepts the next one.
fn survivor(line: &Line) {
    let mut port = port(0, &addresses(0));
    let friend = port.accept().expect("the friend connects");
    assert_eq!(friend, PeerId(FRIEND));
    for _ in 0..setting("ROUNDS") {
        let peer = port.accept().expect("the victim connects");
        assert_eq!(peer, PeerId(VICTIM), "it has the number that it had");
        let mut traffic = Traffic::begin(port, peer);
        lose(&mut traffic, friend, line);
        port = traffic.port;
        while port.try_recv(&mut [0; 8]).expect("a short message").is_some() {}
        port.disconnect(peer).expect("it was connected");
        tell(&mut port, friend, 1, u64::MAX);
        while told(&mut port, friend, 1) != u64::MAX {}
        line.say(1);
    }
    port.leave().expect("the friend lives");
}

// spec: LIFE-10, LIFE-11, LIFE-13, LIFE-14, LIFE-19, LINK-21, LINK-29
#[test]
fn a_host_that_dies_is_noticed_and_may_come_again() {
    let child = |_, line: Line| match setting::<String>("TASK").as_str() {
        "survivor" => survivor(&line),
        "friend" => {
            let mut at = address(0, 0, false);
            at.set_port(0);
            let mut port = port(FRIEND, &[at]);
            let peer = port.connect_net(&addresses(0)).expect("the survivor accepts");
            line.say(0);
            echo(&mut port, peer);
        }
        _ => {
            let mut port = port(VICTIM, &addresses(1));
            let peer = port.connect_net(&addresses(0)).expect("the survivor accepts");
            let mut traffic = Traffic::begin(port, peer);
            line.say(0);
            echo(&mut traffic.port, peer);
        }
    };
    with_processes(child, |family| {
        let Some(hosts) = Hosts::new() else { return };
        let mut random = common::Random::new(8);
        let deaths = iterations(5);
        let setting = Setting { silence: HASTY, ..Setting::CLEAN };
        let setting = Setting { rounds: deaths.clone().count() as u64, ..setting };
        let mut survivor = setting.start(family, &hosts, 0, "survivor");
        let mut friend = setting.start(family, &hosts, 0, "friend");
        friend.line.hear();
        for _ in deaths {
            let mut victim = setting.start(family, &hosts, 1, "victim");
            victim.line.hear();
            survivor.line.hear();
            (0..random.scaled(12)).for_each(|_| yield_now());
            victim.kill();
            survivor.line.hear();
        }
        survivor.succeeds();
        friend.succeeds();
    });
}

//! A peer of another host that has opened a correct link, and then lies. Only its own link ends,
//! the operations under way to it fault, and other peers notice nothing.
mod common;
#[path = "wire_hostile/liar.rs"]
mod liar;
#[path = "wire_hostile/world.rs"]
mod world;

use ayre::error::Status;
use ayre::{Fault, Notification, PeerId, PostOptions, Queue, Region, RegionOptions, Rights};
use ayre_proto::command::{Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status as Ended;
use ayre_proto::link::frame::{Channel, Echo, Flags, Header, Kind, RecordKind, Sack};
use ayre_proto::notify::Classes;
use ayre_proto::units::{Claim, Key};
use common::Random;
use common::net::Protection;
use common::random::fill;
use common::watchdog::Watchdog;
use liar::{Liar, Told, bytes_of, control, payload};
use world::World;

/// The liar's region, and what it has of the victim.
const NAME: u64 = 1;
/// The victim's operations under way to a liar: a put and a get, each with a notification.
const UNDER_WAY: usize = 2;

/// A liar and what the victim has to do with it.
struct Stage {
    world: World,
    liar: Liar,
    into: Region,
    _queue: Queue,
}

impl Stage {
    /// A victim, an honest peer, and nobody else.
    fn new() -> Self {
        let mut world = World::new(Protection::Plain);
        let (liar, into, queue) = act(&mut world, 2);
        Self { world, liar, into, _queue: queue }
    }

    /// The next liar, of another number.
    fn renew(&mut self) {
        let number = self.liar.peer.0 + 1;
        (self.liar, self.into, self._queue) = act(&mut self.world, number);
    }

    fn peer(&self) -> PeerId {
        self.liar.peer
    }

    fn is_alive(&self) -> bool {
        self.world.victim.is_alive(self.peer())
    }

    /// Takes what the liar has brought about at the victim.
    fn drain(&mut self) -> Vec<Notification> {
        let peer = self.peer();
        let victim = &mut self.world.victim;
        while let Some(message) = victim.try_recv(&mut [0; 1024]).expect("a buffer of that size") {
            assert_eq!(message.source, peer, "nobody else has sent anything");
        }
        let notes: Vec<_> = std::iter::from_fn(|| victim.poll_notification()).collect();
        assert!(notes.iter().all(|note| note.source == peer), "{notes:?}");
        notes
    }

    /// The lie must end this link, and nothing else.
    fn check_ends(&mut self, what: &str) {
        let before = self.world.victim.counters().malformed();
        while self.is_alive() {
            self.world.step();
        }
        let peer = self.peer();
        assert_eq!(self.world.victim.counters().malformed(), before + 1, "{what} is counted");
        let notes = self.drain();
        let faults = notes.iter().filter(|note| note.status == Status::Fault(Fault::Malformed));
        let own = notes.iter().filter(|note| note.class == Classes::REQUESTER).count();
        assert_eq!(own, UNDER_WAY, "{what}: all that was under way has ended: {notes:?}");
        assert!(faults.count() >= 1, "{what}: and not well: {notes:?}");
        assert_eq!(self.world.victim.flush(peer), Err(Fault::Malformed), "{what}");
        assert!(self.world.victim.send(peer, 1, b"x").is_err(), "{what}");
        self.world.honest_round();
        self.world.victim.disconnect(peer).expect("it was connected");
        self.world.honest_round();
        self.world.check();
    }

    /// The liar has harmed nobody, not even itself.
    fn check_goes_on(&mut self, what: &str) {
        self.world.settle();
        assert!(self.is_alive(), "{what}");
        assert_eq!(self.drain(), [], "{what}");
        self.liar.tell(&[message(9, b"still here")]);
        let (mut into, peer) = ([0; 10], self.peer());
        let found = loop {
            self.world.step();
            if let Some(found) = self.world.victim.try_recv(&mut into).expect("a short message") {
                break found;
            }
        };
        assert_eq!((found.source, found.tag, &into), (peer, 9, b"still here"), "{what}");
        self.world.honest_round();
        self.world.check();
    }
}

/// Lets a liar connect; the victim has things under way to it.
fn act(world: &mut World, number: u16) -> (Liar, Region, Queue) {
    let victim = &mut world.victim;
    let mut liar = Liar::open(victim, world.at, number);
    let into = victim.alloc(1024, RegionOptions::new()).expect("memory");
    victim.share(liar.peer, &into, 0..1024, Rights::all(), NAME).expect("a grant");
    let mut queue = victim.create_queue(4096).expect("a queue");
    victim.share_queue(liar.peer, &mut queue, NAME).expect("room for an offer");
    liar.offer_region(NAME);
    let remote = victim.accept_region(liar.peer, NAME).expect("an offer");
    let options = PostOptions::new().requester();
    victim.put(&remote, 0, &[1; 100], options.tag(1)).expect("room");
    victim.get(&remote, 0, into.slice(0..64), options.tag(2)).expect("room");
    world.settle();
    (liar, into, queue)
}

fn message(tag: u32, text: &[u8]) -> Told {
    // No command comes before it.
    (RecordKind::Message, tag, [&bytes_of(&[0]), text].concat())
}

/// A command that does nothing but notify.
fn notify() -> Command {
    let claim = Claim { key: Key { slot: 0, generation: 0 }, offset: 0, len: 0 };
    Command { action: Action::Notify, classes: Classes::COMPLETER, tag: 7, value: 8, claim }
}

fn command(number: u32, command: Command, cookie: u64) -> Told {
    (RecordKind::Command, number, bytes_of(&Request { command, cookie }.encode()))
}

fn response(number: u32, status: Ended, value: u64, data: usize) -> Told {
    let head = bytes_of(&Response { number, status, value }.encode());
    (RecordKind::Response, 0, [head, vec![0xee; data]].concat())
}

/// Counts: serial number and responses, commands executed, notifications, lines of messages,
/// requests and responses.
fn counts(serial: u32, done: u64, lines: [u64; 3]) -> Told {
    let [messages, requests, responses] = lines;
    control(1, &[u64::from(serial), done, 0, messages | requests << 32, responses])
}

/// A lie, and what it is called.
type Lie = (&'static str, fn(&mut Liar));

/// Tells lies one by one, each by a new liar, all of which must end their links.
fn must_end(lies: &[Lie]) {
    let mut watchdog = Watchdog::start(0);
    let mut stage = Stage::new();
    for (index, (what, lie)) in lies.iter().enumerate() {
        if index > 0 {
            stage.renew();
        }
        eprintln!("{what}");
        lie(&mut stage.liar);
        stage.check_ends(what);
    }
    assert!(!watchdog.stop());
}

// spec: LINK-4, LINK-5, LINK-6, LINK-11, LIFE-11, LIFE-18
#[test]
fn numbers_that_cannot_be_end_the_link() {
    fn sent_far_ahead(liar: &mut Liar, channel: Channel) {
        let seq = liar.next[channel.index()].wrapping_add(200);
        let header = Header { channel, seq, ..liar.header() };
        liar.send(&header, &payload(&[message(1, b"too far")]));
    }
    fn acked(liar: &mut Liar, channel: usize) {
        let mut header = liar.header();
        header.ack[channel] = header.ack[channel].wrapping_add(1000);
        header.limit[channel] = header.ack[channel].wrapping_add(10);
        liar.send(&header, &[]);
    }
    fn limited(liar: &mut Liar, channel: usize) {
        let mut header = liar.header();
        header.limit[channel] = header.ack[channel].wrapping_add(1000);
        liar.send(&header, &[]);
    }
    must_end(&[
        ("a posted frame beyond the credit", |liar| sent_far_ahead(liar, Channel::Posted)),
        ("a non-posted frame beyond the credit", |liar| sent_far_ahead(liar, Channel::NonPosted)),
        ("a response frame beyond the credit", |liar| sent_far_ahead(liar, Channel::Response)),
        ("an acknowledgement of what was never sent, posted", |liar| acked(liar, 0)),
        ("an acknowledgement of what was never sent, non-posted", |liar| acked(liar, 1)),
        ("an acknowledgement of what was never sent, responses", |liar| acked(liar, 2)),
        ("a limit too far, posted", |liar| limited(liar, 0)),
        ("a limit too far, non-posted", |liar| limited(liar, 1)),
        ("a limit too far, responses", |liar| limited(liar, 2)),
    ]);
}

// spec: FRAME-7, FRAME-8, FRAME-9, LIFE-18
#[test]
fn records_that_are_none_end_the_link() {
    /// A good record, and behind it one with this head.
    fn with_head(liar: &mut Liar, kind: u64, len: u64) {
        let good = payload(&[command(1, notify(), 0)]);
        let bad = bytes_of(&[kind | len << 16, 0, 0]);
        liar.send_next(Channel::Posted, &[good, bad].concat());
    }
    must_end(&[
        ("no kind", |liar| with_head(liar, 0, 8)),
        ("an unknown kind", |liar| with_head(liar, 7, 8)),
        ("a command that is too short", |liar| with_head(liar, 1, 16)),
        ("an empty message", |liar| with_head(liar, 3, 8)),
        ("a record of a queue without bytes", |liar| with_head(liar, 4, 0)),
        ("a record that leaves its payload", |liar| with_head(liar, 4, 17)),
        ("a record of all lengths", |liar| with_head(liar, 5, 0xffff)),
        ("half a head", |liar| {
            let good = payload(&[command(1, notify(), 0)]);
            liar.send_next(Channel::Posted, &[&good[..], &[1, 0, 0, 0]].concat());
        }),
    ]);
}

// spec: WIRE-2, WIRE-3, WIRE-4, WIRE-5, NOTI-11, LIFE-18
#[test]
fn records_that_no_carrier_sends_end_the_link() {
    must_end(&[
        ("a command that came already", |liar| {
            liar.tell(&[command(1, notify(), 0), command(1, notify(), 0)]);
        }),
        ("more messages than the lane holds", |liar| {
            for _ in 0..40 {
                liar.tell(&[message(1, &[5; 1000]), message(1, &[6; 1000])]);
            }
        }),
        ("commands executed that were never posted", |liar| liar.tell(&[counts(1, 99, [0; 3])])),
        ("fewer commands executed than before", |liar| {
            liar.tell(&[counts(1, 1, [0; 3]), counts(2, 0, [0; 3])]);
        }),
        ("message lines that were never used", |liar| liar.tell(&[counts(1, 0, [500, 0, 0])])),
        ("request lines that were never used", |liar| liar.tell(&[counts(1, 0, [0, 500, 0])])),
        ("response lines that were never used", |liar| liar.tell(&[counts(1, 0, [0, 0, 500])])),
        ("half of the counts", |liar| liar.tell(&[control(1, &[1, 0, 0])])),
        ("a control record of nothing", |liar| liar.tell(&[control(0, &[0])])),
        ("a control record of what there is not", |liar| liar.tell(&[control(99, &[0; 5])])),
        ("a long barrier", |liar| liar.tell(&[control(5, &[1, 1])])),
        ("a record of no queue", |liar| liar.tell(&[(RecordKind::Queue, 9, vec![1; 8])])),
        ("a cursor of no queue", |liar| liar.tell(&[control(6, &[1 << 32])])),
        ("a queue of one line", |liar| liar.tell(&[control(4, &[5, 1, 0, 0, 0, 0, 0])])),
        ("a queue of all lines", |liar| liar.tell(&[control(4, &[5, u64::MAX, 0, 0, 0, 0, 0])])),
        ("a queue out of turn", |liar| liar.tell(&[control(4, &[5, 24, 7, 0, 0, 0, 0])])),
        ("more queues than there can be", |liar| {
            for first in [0, 100, 200] {
                let offer = |number| control(4, &[number, 24, number, 0, 0, 0, 0]);
                liar.tell(&(first..first + 100).map(offer).collect::<Vec<_>>());
            }
        }),
        ("a record of endless parts", |liar| {
            for _ in 0..8 {
                liar.tell(&[(RecordKind::QueuePart, 0, vec![1; 1000])]);
            }
        }),
        ("more records than the queue holds", |liar| {
            for _ in 0..8 {
                liar.tell(&[(RecordKind::Queue, 0, vec![1; 1000])]);
            }
        }),
        ("more notifications than may be unread", |liar| {
            liar.tell(&(1..=90).map(|number| command(number, notify(), 0)).collect::<Vec<_>>());
        }),
    ]);
}

// spec: ERR-5, ERR-6, GET-2, LIFE-18
#[test]
fn answers_without_a_matching_request_end_the_link() {
    const GET: u32 = 2;
    must_end(&[
        ("an answer to no command", |liar| liar.tell(&[response(77, Ended::Ok, 0, 0)])),
        ("an answer to a put", |liar| liar.tell(&[response(1, Ended::Ok, 0, 8)])),
        ("more than the get asked for", |liar| liar.tell(&[response(GET, Ended::Ok, 0, 200)])),
        ("data that lands behind", |liar| liar.tell(&[response(GET, Ended::Ok, 60, 8)])),
        ("data that lands before", |liar| {
            liar.tell(&[response(GET, Ended::Ok, u64::MAX - 3, 8)]);
        }),
        ("a get of more than a response holds", |liar| {
            let claim = Claim { len: 1 << 40, ..notify().claim };
            let get = Command { action: Action::Get, claim, ..notify() };
            liar.tell(&[command(1, get, 0)]);
        }),
    ]);
}

/// Headers of data frames that say something odd, and nothing that cannot be.
fn odd_headers() -> [Lie; 5] {
    [
        ("a frame of before the first", |liar| {
            let header = liar.header();
            let seq = liar.next[0].wrapping_sub(3);
            liar.send(&Header { seq, ..header }, &payload(&[message(1, b"old")]));
        }),
        ("an old acknowledgement and limit", |liar| {
            let header = liar.header();
            let (ack, limit) = (header.ack, header.limit);
            let old = ack.map(|ack| ack.wrapping_sub(9));
            liar.send(
                &Header { ack: old, limit: limit.map(|l| l.wrapping_sub(60)), ..header },
                &[],
            );
        }),
        ("a transmission twice", |liar| {
            let seq = liar.next[0];
            let header = Header { seq, ..liar.header() };
            liar.next[0] = seq.wrapping_add(1);
            let payload = payload(&[control(5, &[0])]);
            (0..3).for_each(|_| liar.send(&header, &payload));
        }),
        ("times that cannot be", |liar| {
            for (stamp, held) in [(1, u32::MAX), (u32::MAX, 0), (0, 0), (1 << 31, 1)] {
                let echo = Some(Echo { stamp, held, path: 3, late: 0 });
                let header = liar.header();
                liar.send(&Header { echo, ..header }, &[]);
            }
        }),
        ("a path that is not there", |liar| {
            let header = Header { path: 3, kind: Kind::Probe, ..liar.header() };
            liar.send(&header, &[]);
        }),
    ]
}

/// Frames of other kinds, and one that comes too early.
fn odd_frames() -> [Lie; 7] {
    [
        ("many probes", |liar| {
            for _ in 0..50 {
                let header = Header { kind: Kind::Probe, ..liar.header() };
                liar.send(&header, &[]);
            }
        }),
        ("requests for everything", |liar| {
            for _ in 0..50 {
                let header = Header { flags: Flags::NACK | Flags::EARLY, ..liar.header() };
                liar.send(&header, &[]);
            }
        }),
        ("resyncs of any round", |liar| {
            for seq in [1, 1, 5, 3, u32::MAX, 6] {
                let header = Header { kind: Kind::Resync, seq, ..liar.header() };
                liar.send(&header, &[]);
            }
        }),
        ("an answer to no resync", |liar| {
            let header = Header { kind: Kind::Resync, seq: 9, ..liar.header() };
            liar.send(&Header { flags: Flags::ANSWER, ..header }, &[]);
        }),
        ("resets of its own link", |liar| {
            let header = liar.header();
            let (to, token) = (liar.agreed.own, liar.agreed.own_token);
            for packet in 1..30 {
                let seq = to;
                liar.send(&Header { kind: Kind::Reset, to: 0, seq, token, packet, ..header }, &[]);
            }
        }),
        ("an open and an accept on the link", |liar| {
            for kind in [Kind::Open, Kind::Accept] {
                let header = Header { kind, ..liar.header() };
                liar.send(&header, &[0; 128]);
            }
        }),
        ("a command before its turn", |liar| {
            let early = payload(&[command(2, notify(), 0)]);
            liar.send_next(Channel::NonPosted, &early);
        }),
    ]
}

// spec: LINK-5, LINK-10, LINK-13, LINK-15, LINK-19, LINK-22, WIRE-2, RTT-1
#[test]
fn stale_and_early_frames_do_not_end_the_link() {
    let mut watchdog = Watchdog::start(0);
    let mut stage = Stage::new();
    for (what, say) in odd_headers().into_iter().chain(odd_frames()) {
        eprintln!("{what}");
        say(&mut stage.liar);
        stage.check_goes_on(what);
    }
    // Its turn comes.
    stage.liar.tell(&[command(1, notify(), 0)]);
    let mut notes = Vec::new();
    while notes.len() < 2 {
        stage.world.step();
        notes.extend(stage.drain());
    }
    assert!(notes.iter().all(|note| (note.tag, note.value) == (7, 8)), "{notes:?}");
    assert!(!watchdog.stop());
}

/// Anything that a peer can say, near enough to the truth to be listened to.
fn any_lie(liar: &mut Liar, random: &mut Random) {
    let kinds = [Kind::Data, Kind::Data, Kind::Data, Kind::Data, Kind::Probe, Kind::Resync];
    let channel = Channel::ALL[random.below(3) as usize];
    let seq = liar.next[channel.index()].wrapping_add((random.below(6) as u32).wrapping_sub(2));
    let mut header = Header { channel, seq, ..liar.header() };
    header.kind = kinds[random.below(6) as usize];
    header.flags = Flags::from_bits_truncate(random.word() as u8);
    if random.below(4) == 0 {
        let at = random.below(3) as usize;
        header.ack[at] = header.ack[at].wrapping_add(random.below(3) as u32);
        header.limit[at] = header.ack[at].wrapping_add(random.below(130) as u32);
        let arrived = u128::from(random.word()) << 64 >> random.below(128);
        header.sack = Sack { channel: Channel::ALL[at], arrived };
    }
    let number = 1 + random.below(6) as u32;
    let mut any = vec![0; 8 + random.below(60) as usize];
    fill(&mut any, 1, 2, random.word());
    let record = match random.below(8) {
        0 => message(1, &any),
        1 => command(number, Command { action: Action::Immediate(1), ..notify() }, 0),
        2 => command(number, notify(), 0),
        3 => {
            response(number, Ended::from_code(random.below(16) as u8), random.below(80), any.len())
        }
        4 => counts(number, random.below(4), [random.below(3), random.below(4), random.below(2)]),
        5 => (RecordKind::Queue, random.below(2) as u32, any),
        6 => (RecordKind::Control, random.below(7) as u32, any),
        _ => control(random.below(8) as u32, &[random.below(3), random.below(40), number.into()]),
    };
    liar.next[channel.index()] = seq.wrapping_add(1);
    liar.send(&header, &payload(&[record]));
}

// spec: ERR-7, ERR-8, LINK-11, LIFE-13
#[test]
fn arbitrary_protocol_violations_do_not_disturb_other_links() {
    let mut watchdog = Watchdog::start(0);
    let mut stage = Stage::new();
    let mut ended = 0;
    for seed in common::iterations(30) {
        let mut random = Random::new(seed);
        for _ in 0..60 {
            any_lie(&mut stage.liar, &mut random);
            if random.below(4) == 0 {
                stage.world.settle();
                stage.drain();
            }
            if !stage.is_alive() {
                ended += 1;
                break;
            }
        }
        stage.drain();
        stage.world.honest_round();
        stage.world.victim.disconnect(stage.peer()).expect("it was connected");
        stage.world.honest_round();
        stage.world.check();
        stage.renew();
    }
    assert!(ended > 0, "some of it was malformed");
    assert!(!watchdog.stop());
}

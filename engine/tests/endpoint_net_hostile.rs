//! Somebody on the network between endpoints, with and without their addresses.
mod common;
#[path = "wire_hostile/liar.rs"]
mod liar;
#[path = "endpoint_net/sides.rs"]
mod sides;
#[path = "wire_hostile/world.rs"]
mod world;

use ayre::endpoint::{Address, RemoteId};
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, Kind};
use ayre_proto::link::open::{ANYBODY, Opener, SetUp};
use ayre_proto::link::race::Pace;
use common::Random;
use common::watchdog::Watchdog;
use liar::crc32c;
use sides::{Side, apart, here, pass, poll_until};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use world::{Tap, receive, socket};

/// Polls in which what was sent is taken for sure, and more.
const SETTLED: usize = 2000;
/// Words of the owner in a set-up that say its name.
const NAME: std::ops::Range<usize> = 3..5;

/// The UDP port of an endpoint.
fn at(side: &Side) -> SocketAddr {
    let bytes = side.address().to_bytes();
    (Ipv4Addr::LOCALHOST, u16::from_le_bytes([bytes[2], bytes[3]])).into()
}

/// Its address as if it were at another port.
fn behind(side: &Side, at: SocketAddr) -> Address {
    let mut bytes = side.address().to_bytes();
    bytes[2..4].copy_from_slice(&at.port().to_le_bytes());
    Address::from_bytes(&bytes).expect("an address")
}

/// A message, while somebody on the way does what he likes.
fn pass_beside(sides: [&mut Side; 2], to: RemoteId, tag: u64, tap: &mut Tap) {
    let [near, far] = sides;
    let (mut bytes, mut room) = (sides::pattern(40, tag as usize), [0; 40]);
    far.endpoint.receive(sides::receive(tag, &mut room)).expect("there is room");
    let message = sides::message(tag, &mut bytes, false);
    let (mut has_sent, before) = (false, far.ends.len());
    poll_until([near, far], |[near, far]| {
        tap.pump();
        has_sent = has_sent || near.try_send(to, &message).is_some();
        far.ends.len() > before
    });
    let end = far.ends.pop().expect("it came");
    assert_eq!((end.context, end.result, &room[..]), (tag.into(), Ok(()), &bytes[..]));
}

fn settle(sides: &mut [&mut Side], tap: &mut Tap) {
    for _ in 0..SETTLED {
        sides.iter_mut().for_each(|side| side.poll());
        tap.pump();
    }
}

// spec: OPEN-15, OPEN-16, SEAL-4, SEAL-8
#[test]
fn replayed_datagrams_have_no_effect_on_an_endpoint() {
    let mut watchdog = Watchdog::start(0);
    for is_plain in [false, true] {
        let [mut near, mut far] = [0, 1].map(|_| Side::open(&apart(is_plain)));
        let mut tap = Tap::before(at(&far));
        let through = behind(&far, tap.at());
        let to_far = near.endpoint.remote(&through).expect("as it seems");
        for tag in 0..20 {
            pass_beside([&mut near, &mut far], to_far, tag, &mut tap);
        }
        let seen = tap.seen.clone();
        let replay = |tap: &Tap| {
            for (direction, datagrams) in seen.iter().enumerate() {
                datagrams.iter().for_each(|bytes| tap.send(direction, bytes));
            }
        };
        // While the link is there, after it, and while another one is opened.
        replay(&tap);
        pass_beside([&mut near, &mut far], to_far, 100, &mut tap);
        assert!(near.endpoint.forget(to_far));
        settle(&mut [&mut near, &mut far], &mut tap);
        replay(&tap);
        settle(&mut [&mut near, &mut far], &mut tap);
        let before = far.endpoint.counters().refused();
        let to_far = near.endpoint.remote(&through).expect("as it seems");
        replay(&tap);
        pass_beside([&mut near, &mut far], to_far, 101, &mut tap);
        replay(&tap);
        pass_beside([&mut near, &mut far], to_far, 102, &mut tap);
        settle(&mut [&mut near, &mut far], &mut tap);
        assert!(far.endpoint.counters().refused() > before, "it was counted");
        assert!(near.ends.is_empty() && far.ends.is_empty(), "nothing came twice");
        let malformed = [&near, &far].map(|side| side.endpoint.counters().malformed());
        assert_eq!(malformed, [0, 0]);
    }
    assert!(!watchdog.stop());
}

// spec: SEAL-8, FRAME-6
#[test]
fn bytes_of_no_meaning_are_counted() {
    let mut watchdog = Watchdog::start(0);
    for is_plain in [false, true] {
        let [mut near, mut far] = [0, 1].map(|_| Side::open(&apart(is_plain)));
        let to_far = near.remote(&far);
        pass([&mut near, &mut far], to_far, 1);
        let (stranger, mut random) = (socket(), Random::new(1));
        for round in 0..200_u64 {
            let bytes: Vec<_> = (0..random.below(1500)).map(|_| random.word() as u8).collect();
            stranger.send_to(&bytes, at(&far)).expect("a datagram");
            if round % 50 == 0 {
                pass([&mut near, &mut far], to_far, round);
            }
        }
        poll_until([&mut near, &mut far], |[_, far]| far.endpoint.counters().refused() >= 200);
        pass([&mut near, &mut far], to_far, 2);
    }
    assert!(!watchdog.stop());
}

/// Somebody who has the address of an endpoint with plain links, and says what he likes.
struct Caller {
    socket: UdpSocket,
    victim: SocketAddr,
    /// A correct endpoint's messages to the victim.
    owner: [u64; 7],
    number: u64,
}

impl Caller {
    /// Learns what is to be said from an endpoint that calls the victim.
    fn of(victim: &mut Side) -> Self {
        let mut honest = Side::open(&apart(true));
        let mut tap = Tap::before(at(victim));
        let through = behind(victim, tap.at());
        let to_victim = honest.endpoint.remote(&through).expect("as it seems");
        pass_beside([&mut honest, victim], to_victim, 1, &mut tap);
        let owner = SetUp::parse(&tap.seen[0][0][HEADER_BYTES..]).expect("an open").owner;
        Self { socket: socket(), victim: at(victim), owner, number: 0 }
    }

    /// An open in a name.
    fn open(&mut self, name: [u64; 2]) -> SetUp {
        self.number += 1;
        let mut ours = liar::set_up(u16::MAX, self.number);
        (ours.owner, ours.destination) = (self.owner, ANYBODY);
        ours.owner[NAME].copy_from_slice(&name);
        self.socket.send_to(&liar::open_frame(&ours), self.victim).expect("a datagram");
        ours
    }

    /// Opens a link in a name, as far as it is accepted; false where it is not.
    fn call(&mut self, victim: &mut Side, name: [u64; 2]) -> bool {
        let ours = self.open(name);
        (0..SETTLED).for_each(|_| victim.poll());
        // Among them may be goodbyes of links that were left before.
        let is_accept =
            |bytes: &Vec<u8>| Header::parse(bytes, crc32c).expect("a frame").kind == Kind::Accept;
        let mut received = std::iter::from_fn(|| receive(&self.socket)).map(|(bytes, _)| bytes);
        let Some(bytes) = received.find(is_accept) else { return false };
        let theirs = SetUp::parse(&bytes[HEADER_BYTES..]).expect("a set-up");
        let mut opener = Opener::new(ours, Pace::RACK, u64::MAX, 0);
        let (agreed, _) = opener.on_accept(&theirs).expect("an answer").expect("the first one");
        let probe = Header {
            kind: Kind::Probe,
            to: agreed.to,
            generation: agreed.generation,
            token: agreed.token,
            packet: 1,
            payload: Digest::of(&[], crc32c),
            ..ours.open_header(1, 0, Digest::of(&[], crc32c))
        };
        self.socket.send_to(&probe.encode(crc32c), self.victim).expect("a datagram");
        (0..SETTLED).for_each(|_| victim.poll());
        true
    }
}

fn name_of(side: &Side) -> [u64; 2] {
    let [_, low, high] = side.address().local_words();
    [low, high]
}

// spec: ENV-33, OPEN-14, OPEN-15
#[test]
fn the_name_of_a_neighbour_or_connected_peer_cannot_be_taken() {
    let mut watchdog = Watchdog::start(0);
    let mut victim = Side::open(&here().silence(sides::LONG).plain());
    let mut neighbour = Side::open(&here().local());
    let mut distant = Side::open(&apart(true));
    let to_neighbour = victim.remote(&neighbour);
    let (to_distant, from_distant) = (victim.remote(&distant), distant.remote(&victim));
    pass([&mut distant, &mut victim], from_distant, 1);
    let mut caller = Caller::of(&mut victim);
    assert!(!caller.call(&mut victim, name_of(&distant)), "it is connected");
    let own = name_of(&victim);
    assert!(!caller.call(&mut victim, own), "it is the victim's own");
    // Before it has ever been sent to, and while it is connected.
    for tag in 2..4 {
        let before = victim.endpoint.counters().malformed();
        assert!(caller.call(&mut victim, name_of(&neighbour)), "it is accepted and then left");
        assert_eq!(victim.endpoint.counters().malformed(), before + 1);
        pass([&mut victim, &mut neighbour], to_neighbour, tag);
        pass([&mut victim, &mut distant], to_distant, tag);
    }
    assert!(caller.call(&mut victim, [7, 7]), "in a name of its own it may call");
    caller.owner[5] ^= 1;
    assert!(!caller.call(&mut victim, [8, 8]), "not with another pass");
    assert!(!watchdog.stop());
}

// spec: OPEN-9, OPEN-11
#[test]
fn a_flood_of_opens_does_not_block_other_callers() {
    let mut watchdog = Watchdog::start(0);
    let mut victim = Side::open(&apart(true));
    let mut near = Side::open(&apart(true));
    let to_victim = near.remote(&victim);
    pass([&mut near, &mut victim], to_victim, 1);
    let mut caller = Caller::of(&mut victim);
    for round in 0..40 {
        for _ in 0..100 {
            let number = caller.number;
            caller.open([number + 1, round]);
            victim.poll();
        }
        pass([&mut near, &mut victim], to_victim, round);
        while receive(&caller.socket).is_some() {}
    }
    let mut late = Side::open(&apart(true));
    let to_victim = late.remote(&victim);
    for round in 0..1000 {
        let number = caller.number;
        caller.open([number + 1, round]);
        late.poll();
        victim.poll();
        let _ = late.try_send(to_victim, &sides::message(9, &mut [0; 8], false));
    }
    pass([&mut late, &mut victim], to_victim, 2);
    assert_eq!(victim.endpoint.counters().malformed(), 0);
    assert!(!watchdog.stop());
}

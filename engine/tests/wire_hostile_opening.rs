//! Somebody on the way while a sealed link is being opened: what he says in the name of either side
//! neither ends the opening nor spoils it.
mod common;
#[path = "wire_hostile/liar.rs"]
mod liar;
#[path = "wire_hostile/world.rs"]
mod world;

use ayre::{PeerId, Port, SetupError};
use ayre_proto::link::answer::reset_header;
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, Kind};
use common::net::{ANY, Protection, config, open_at};
use common::watchdog::Watchdog;
use liar::crc32c;
use std::net::SocketAddr;
use std::thread::{scope, yield_now};
use std::time::Duration;
use world::{Tap, World, receive, socket};

/// Bytes in front of a frame that is sealed.
const PREFIX: usize = 16;
/// The number of the port that opens.
const LATE: u16 = 2;
/// Opens, then accepts, then confirmations that are lost while the attacker speaks.
const LOST: usize = 3;

/// Somebody who connects, while the datagrams of either direction are seen and sent by another one.
fn connect_late(
    late: &mut Port,
    accepting: &mut Port,
    mut tap: Tap,
    mut attack: impl FnMut(&Tap),
) -> (Result<PeerId, SetupError>, Tap) {
    let at = tap.at();
    scope(|scope| {
        let accepting = scope.spawn(|| accepting.accept().map(|_| ()));
        let connecting = scope.spawn(|| late.connect_net(&[at]));
        while !connecting.is_finished() {
            tap.pump();
            attack(&tap);
            yield_now();
        }
        let connected = connecting.join().expect("no panic");
        if connected.is_ok() {
            accepting.join().expect("no panic").expect("somebody came");
        }
        (connected, tap)
    })
}

/// All that a link says from its opening to its end, in either direction.
fn recorded_life(victim: &mut Port, at: SocketAddr) -> [Vec<Vec<u8>>; 2] {
    let (mut late, _) = open_at(LATE, Protection::Sealed.options());
    let (connected, mut tap) = connect_late(&mut late, victim, Tap::before(at), |_| {});
    let to_victim = connected.expect("the victim accepts");
    late.disconnect(to_victim).expect("it was connected");
    while victim.is_alive(PeerId(LATE)) {
        late.progress();
        tap.pump();
        victim.progress();
    }
    victim.disconnect(PeerId(LATE)).expect("it was connected");
    tap.seen
}

/// The datagrams of a port that holds the key to one of its own number.
fn recorded_refusal(victim: &mut Port, at: SocketAddr) -> Vec<Vec<u8>> {
    let (mut taken, _) = open_at(0, Protection::Sealed.options());
    let (mut third, _) = open_at(3, Protection::Sealed.options());
    let mut tap = Tap::before(at);
    scope(|scope| {
        let accepting = scope.spawn(|| victim.accept().expect("somebody else comes"));
        let to = tap.at();
        let connecting = scope.spawn(move || taken.connect_net(&[to]));
        while !connecting.is_finished() {
            tap.pump();
            yield_now();
        }
        let refused = connecting.join().expect("no panic");
        assert!(matches!(refused, Err(SetupError::Refused { .. })), "{refused:?}");
        let to_victim = third.connect_net(&[at]).expect("a free number");
        third.disconnect(to_victim).expect("it was connected");
        accepting.join().expect("no panic")
    });
    victim.disconnect(PeerId(3)).expect("it was connected");
    tap.seen[1].clone()
}

/// Opens of earlier attempts of the late port, which nobody has answered.
fn recorded_opens(count: usize) -> Vec<Vec<u8>> {
    let open = |_| {
        let nobody = socket();
        let config = config(LATE).setup_timeout(Duration::from_millis(20));
        let mut port = Port::open(config).expect("a port");
        port.open_net(&Protection::Sealed.options().at(ANY)).expect("an address of this host");
        let at = nobody.local_addr().expect("an address");
        port.connect_net(&[at]).expect_err("nobody answers");
        receive(&nobody).expect("an open").0
    };
    (0..count).map(open).collect()
}

/// As many as one opener may have places, and some more, each time right behind a true open.
// spec: OPEN-9, OPEN-21, OPEN-24
#[test]
fn recorded_opens_behind_the_true_one_do_not_shut_its_opener_out() {
    let mut watchdog = Watchdog::start(0);
    let mut world = World::new(Protection::Sealed);
    let recorded = recorded_opens(6);
    let (mut late, _) = open_at(LATE, Protection::Sealed.options());
    let tap = Tap::before(world.at);
    let mut heard = 0;
    let attack = |tap: &Tap| {
        let opens = tap.seen[0].iter().filter(|bytes| is_open(bytes)).count();
        if std::mem::replace(&mut heard, opens) < opens {
            recorded.iter().for_each(|bytes| tap.send(0, bytes));
        }
    };
    let (connected, mut tap) = connect_late(&mut late, &mut world.victim, tap, attack);
    let to_victim = connected.expect("recordings are in nobody's way");
    assert!(heard > 0, "there were some");
    late.send(to_victim, 1, b"question").expect("room");
    let (mut into, mut came) = ([0; 8], false);
    while !came {
        late.progress();
        tap.pump();
        world.step();
        came = world.victim.try_recv(&mut into).expect("a short message").is_some();
    }
    world.honest_round();
    world.check();
    assert!(!watchdog.stop(), "the test ended in time");
}

fn is_open(bytes: &[u8]) -> bool {
    Header::parse(bytes, crc32c).is_ok_and(|header| header.kind == Kind::Open)
}

/// Bare frames and what was recorded, as answers to an open: as true as one can make them who does
/// not hold the key.
fn answers(open: &[u8], recorded: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let asked = Header::parse(open, crc32c).expect("an open");
    let reset = reset_header(&asked, 0).expect("an open may be answered by one");
    let mut frames: Vec<_> = [
        reset,
        Header { kind: Kind::Close, ..reset },
        Header { kind: Kind::Close, seq: 0, to: 0, ..asked },
        Header { kind: Kind::Resync, ..reset },
    ]
    .map(|header| Header { payload: Digest::of(&[], crc32c), ..header }.encode(crc32c).to_vec())
    .into();
    for bytes in recorded {
        frames.push(bytes.clone());
        // Refusals and accepts of another attempt, made to look like one of this.
        if let Ok(header) = Header::parse(bytes, crc32c) {
            let Header { token, generation, .. } = asked;
            let header = Header { token, generation, to: 0, ..header };
            frames.push([&header.encode(crc32c)[..], &bytes[HEADER_BYTES..]].concat());
        }
    }
    frames
}

/// An open whose header somebody has changed on the way: what is under the key is still true.
fn changed_opens(open: &[u8]) -> Vec<Vec<u8>> {
    let asked = Header::parse(open, crc32c).expect("an open");
    // As many of the first kind that an answer to one of them would pass.
    let mut headers = vec![Header { token: asked.token ^ 1, ..asked }; LOST + 1];
    headers.push(Header { generation: asked.generation + 1, ..asked });
    headers.push(Header { to: 7, seq: 9, packet: asked.packet + 1, ..asked });
    let frame = |header: Header| [&header.encode(crc32c)[..], &open[HEADER_BYTES..]].concat();
    headers.into_iter().map(frame).collect()
}

/// Forged confirmations to the port that is asked: for the link that is half-open there.
fn confirmations(accept: &[u8], recorded: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let said = Header::parse(accept, crc32c).expect("an accept");
    let empty = Digest { len: 0, crc: 0 };
    let mut frames = Vec::new();
    for kind in [Kind::Reset, Kind::Close, Kind::Resync, Kind::Probe, Kind::Data] {
        for to in 0..8 {
            let header = Header { kind, to, packet: 1, payload: empty, ..said };
            let header = Header { seq: if kind == Kind::Reset { to } else { 0 }, ..header };
            frames.push(header.encode(crc32c).to_vec());
        }
    }
    for bytes in recorded {
        for to in 0..8_u32 {
            let mut other = bytes.clone();
            if other.len() > PREFIX + HEADER_BYTES {
                other[4..8].copy_from_slice(&to.to_le_bytes());
            }
            frames.push(other);
        }
    }
    frames
}

// spec: OPEN-12, LINK-19, LINK-20, SEAL-8, SEAL-10
#[test]
fn forged_frames_do_not_end_a_sealed_opening() {
    let mut watchdog = Watchdog::start(0);
    let mut world = World::new(Protection::Sealed);
    let at = world.at;
    let refusal = recorded_refusal(&mut world.victim, at);
    let life = recorded_life(&mut world.victim, at);
    let lengths = [refusal.len(), life[0].len(), life[1].len()];
    assert!(lengths.iter().all(|count| *count >= 1), "{lengths:?}");
    let (mut late, _) = open_at(LATE, Protection::Sealed.options());
    let mut tap = Tap::before(at);
    // The first true opens and accepts are lost, and then the first confirmations: each time the
    // attacker has the word.
    let (mut opens, mut passed) = (0, [0; 2]);
    tap.tamper = Some(Box::new(move |direction, bytes| {
        let is_open = Header::parse(bytes, crc32c).is_ok_and(|header| header.kind == Kind::Open);
        opens += usize::from(is_open);
        passed[direction] += usize::from(direction == 1 || !is_open);
        (direction == 0 && is_open && opens > LOST) || passed[direction] > LOST
    }));
    let recorded = [&refusal[..], &life[1]].concat();
    let (mut sent, mut heard) = ([0; 2], [0; 2]);
    let attack = |tap: &Tap| {
        let news = [tap.seen[0].len(), tap.seen[1].len()];
        if let Some(open) = tap.seen[0].first().filter(|_| news != heard) {
            let forged = answers(open, &recorded);
            sent[1] += forged.len();
            forged.iter().for_each(|bytes| tap.send(1, bytes));
            changed_opens(open).iter().for_each(|bytes| tap.send(0, bytes));
        }
        if let Some(accept) = tap.seen[1].first().filter(|_| news != heard) {
            let forged = confirmations(accept, &life[0]);
            sent[0] += forged.len();
            forged.iter().for_each(|bytes| tap.send(0, bytes));
        }
        heard = news;
    };
    let before = world.victim.counters().refused();
    let (connected, mut tap) = connect_late(&mut late, &mut world.victim, tap, attack);
    let to_victim = connected.expect("what was forged does not count");
    assert!(sent.iter().all(|sent| *sent > 50), "{sent:?} forgeries");
    assert!(late.counters().refused() > 20, "{:?}", late.counters());
    assert!(world.victim.counters().refused() > before + 20, "{:?}", world.victim.counters());
    late.send(to_victim, 1, b"question").expect("room");
    let (mut into, mut heard) = ([0; 8], false);
    while !heard {
        late.progress();
        tap.pump();
        world.step();
        heard = world.victim.try_recv(&mut into).expect("a short message").is_some();
    }
    assert_eq!(&into, b"question");
    world.honest_round();
    world.check();
    assert!(!watchdog.stop(), "the test ended in time");
}

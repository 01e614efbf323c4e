//! Somebody who can send datagrams to a port, and who sees those of its link with another one:
//! nothing lands, that link goes on, and others can be opened.
mod common;
#[path = "wire_hostile/liar.rs"]
mod liar;
#[path = "wire_hostile/world.rs"]
mod world;

use ayre::{Config, NetOptions, PeerId, Port, SetupError};
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, Kind, Sack};
use ayre_proto::link::open::SetUp;
use common::Random;
use common::net::{ANY, LONG, OTHER_KEY, Protection, config, connect, open_at};
use common::random::fill;
use common::watchdog::Watchdog;
use liar::{crc32c, open_frame, set_up};
use std::net::SocketAddr;
use std::thread::{scope, yield_now};
use std::time::Duration;
use world::{Tap, World, receive, socket};

/// Datagrams that are sent before the victim is let take them.
const BURST: usize = 16;
/// Bytes in front of a frame that is sealed.
const PREFIX: usize = 16;

/// Runs a test for both protections, under the watchdog.
fn for_both(test: impl Fn(Protection)) {
    let mut watchdog = Watchdog::start(0);
    Protection::ALL.into_iter().for_each(test);
    assert!(!watchdog.stop(), "the test ended in time");
}

/// A world in which there was some traffic.
fn busy_world(protection: Protection) -> World {
    let mut world = World::new(protection);
    (0..20).for_each(|_| world.honest_round());
    world.check();
    world
}

/// Sends datagrams to the victim, both from where nobody is and from where the honest peer seems to
/// be. How many of them were refused.
fn attack(world: &mut World, datagrams: &[Vec<u8>]) -> usize {
    let before = world.victim.counters().refused();
    let stranger = socket();
    for burst in datagrams.chunks(BURST) {
        for bytes in burst {
            // What is too long for any network does not leave.
            let _ = stranger.send_to(bytes, world.at);
            world.tap.send(0, bytes);
        }
        world.settle();
    }
    world.check();
    let refused = world.victim.counters().refused() - before;
    for _ in 0..5 {
        world.honest_round();
    }
    world.check();
    refused as usize
}

/// The datagrams of the victim's link that were sent to it: no opens.
fn frames(world: &World) -> Vec<Vec<u8>> {
    world.tap.seen[0].iter().filter(|bytes| !is_open(bytes)).cloned().collect()
}

fn is_open(bytes: &[u8]) -> bool {
    Header::parse(bytes, crc32c).is_ok_and(|header| header.kind == Kind::Open)
}

// spec: LINK-2, LINK-15, SEAL-11
#[test]
fn replayed_frames_have_no_effect() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let recorded = frames(&world);
        assert!(recorded.len() >= 20, "there was traffic");
        attack(&mut world, &recorded);
        let backwards: Vec<_> = recorded.into_iter().rev().collect();
        attack(&mut world, &backwards);
    });
}

// spec: LINK-15, SEAL-4
#[test]
fn reflected_frames_have_no_effect() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let reflected = world.tap.seen[1].clone();
        let refused = attack(&mut world, &reflected);
        if protection == Protection::Sealed {
            assert!(refused >= reflected.len(), "{refused} of {}", reflected.len());
        }
    });
}

// spec: FRAME-1, FRAME-5, FRAME-6, SEAL-4
#[test]
fn truncated_and_extended_frames_have_no_effect() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let mut random = Random::new(1);
        let mut changed = Vec::new();
        for bytes in frames(&world) {
            let mut longer = bytes.clone();
            longer.resize(bytes.len() + 1 + random.below(64) as usize, 0xa5);
            changed.push(longer);
            changed.push(bytes[..random.below(bytes.len() as u64) as usize].to_vec());
        }
        let short = frames(&world).swap_remove(5);
        changed.extend((0..short.len()).map(|len| short[..len].to_vec()));
        changed.extend([20_000, 65_000, 65_507].map(|len| {
            let mut longest = short.clone();
            longest.resize(len, 0);
            longest
        }));
        let refused = attack(&mut world, &changed);
        let least = if protection == Protection::Sealed { changed.len() } else { HEADER_BYTES };
        assert!(refused >= least, "{refused} of {}", changed.len());
    });
}

// spec: FRAME-4, FRAME-6, SEAL-1, SEAL-4
#[test]
fn frames_with_flipped_bits_have_no_effect() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let mut random = Random::new(2);
        let mut changed = Vec::new();
        let recorded = frames(&world);
        for bit in 0..8 * (PREFIX + HEADER_BYTES) {
            let mut bytes = recorded[bit % recorded.len()].clone();
            let at = bit / 8 % bytes.len();
            bytes[at] ^= 1 << (bit % 8);
            changed.push(bytes);
        }
        let headers = changed.len();
        for mut bytes in recorded {
            for _ in 0..=random.below(3) {
                let bit = random.below(8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            changed.push(bytes);
        }
        let refused = attack(&mut world, &changed);
        let least = if protection == Protection::Sealed { headers } else { 8 * HEADER_BYTES };
        assert!(refused >= least, "{refused} of {}", changed.len());
    });
}

// spec: LINK-1, LINK-2, FRAME-5, SEAL-4
#[test]
fn tampered_frames_count_as_lost() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let mut random = Random::new(3);
        world.tap.tamper = Some(Box::new(move |_, bytes| {
            let len = bytes.len() as u64;
            match random.below(10) {
                0 => return false,
                1 => bytes.truncate(random.below(len) as usize),
                2 => bytes.push(0),
                3 => bytes[random.below(len) as usize] ^= 1 << random.below(8),
                _ => {}
            }
            true
        }));
        let before = world.victim.counters().refused();
        (0..60).for_each(|_| world.honest_round());
        world.check();
        assert!(world.victim.counters().refused() > before, "damaged headers, or tags");
    });
}

// spec: FRAME-3, FRAME-6, SEAL-1, SEAL-10
#[test]
fn arbitrary_datagrams_have_no_effect() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let mut random = Random::new(4);
        let any: Vec<_> = (0..1500)
            .map(|number| {
                let mut bytes = vec![0; random.scaled(12) as usize];
                fill(&mut bytes, 4, 0, number);
                // The versions, and small indexes, more often than by chance.
                if let Some(first) = bytes.first_mut()
                    && number % 2 == 0
                {
                    *first = *first & 0xf0 | (1 + random.below(2)) as u8;
                }
                if bytes.len() >= 8 && number % 3 == 0 {
                    bytes[4..8].copy_from_slice(&(random.below(4) as u32).to_le_bytes());
                }
                bytes
            })
            .collect();
        let refused = attack(&mut world, &any);
        assert!(refused >= any.len(), "{refused} of {}", any.len());
    });
}

/// Frames that somebody makes who guesses tokens, or knows those of another link or time.
fn forged(world: &World) -> Vec<Vec<u8>> {
    let mut random = Random::new(5);
    let mut datagrams = Vec::new();
    let message = liar::payload(&[(ayre_proto::link::frame::RecordKind::Message, 1, vec![7; 48])]);
    let seen = world.tap.seen[0].iter().filter_map(|bytes| Header::parse(bytes, crc32c).ok());
    for header in seen.filter(|header| header.kind != Kind::Open) {
        let next = Header {
            packet: header.packet + 200,
            payload: Digest::of(&message, crc32c),
            sack: Sack { arrived: u128::MAX, ..header.sack },
            ..header
        };
        let forgeries = [
            Header { token: random.word(), ..next },
            Header { token: next.token ^ 1, kind: Kind::Close, ..next },
            Header { generation: next.generation.wrapping_sub(1), ..next },
            Header { generation: next.generation + 1, kind: Kind::Resync, ..next },
            Header { to: next.to + 1, ..next },
            Header { to: u32::MAX, kind: Kind::Probe, ..next },
        ];
        let frames = forgeries.map(|header| [&header.encode(crc32c)[..], &message].concat());
        datagrams.extend(frames);
    }
    datagrams
}

// spec: LINK-15, LINK-20
#[test]
fn frames_of_a_wrong_token_generation_or_index_have_no_effect() {
    let mut watchdog = Watchdog::start(0);
    let mut world = busy_world(Protection::Plain);
    let datagrams = forged(&world);
    assert!(datagrams.len() >= 100, "{} datagrams", datagrams.len());
    let refused = attack(&mut world, &datagrams);
    assert!(refused >= datagrams.len() / 3, "those of no link: {refused} of {}", datagrams.len());
    assert!(!watchdog.stop());
}

// spec: SEAL-1, SEAL-4, SEAL-10
#[test]
fn a_sealed_port_refuses_plain_frames_and_frames_of_other_links() {
    let mut watchdog = Watchdog::start(0);
    let plain = busy_world(Protection::Plain);
    let mut world = busy_world(Protection::Sealed);
    let mut datagrams = frames(&plain);
    datagrams.extend(forged(&plain));
    for bytes in frames(&world) {
        for to in [1, 2, 63, 2048, u32::MAX] {
            let mut other = bytes.clone();
            other[4..8].copy_from_slice(&to.to_le_bytes());
            datagrams.push(other);
        }
        // A packet number that has not come yet, of this key and of others.
        for packet in [1 << 20, (1 << 24) + 3, 1 << 40, u64::MAX] {
            let mut other = bytes.clone();
            other[8..16].copy_from_slice(&u64::to_le_bytes(packet));
            datagrams.push(other);
        }
    }
    // The other world's peers have links of the same indexes, and other keys.
    datagrams.extend(frames(&busy_world(Protection::Sealed)));
    let refused = attack(&mut world, &datagrams);
    assert!(refused >= datagrams.len(), "{refused} of {}", datagrams.len());
    assert!(!watchdog.stop());
}

/// Resets that look as if they answered what a port has sent: as true as somebody can make them
/// who sees it.
fn resets(answered: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut random = Random::new(6);
    let mut datagrams = Vec::new();
    for bytes in answered {
        let bare = &set_up(3, random.word() | 1);
        let bare = bare.open_header(1, 0, Digest::of(&[], crc32c));
        let reset = match Header::parse(bytes, crc32c) {
            Ok(Header { generation, token, packet, to, .. }) => {
                Header { kind: Kind::Reset, generation, token, packet, seq: to, ..bare }
            }
            Err(_) => Header { kind: Kind::Reset, packet: random.below(50), ..bare },
        };
        let later = Header { packet: reset.packet + 1_000_000, ..reset };
        datagrams.extend([reset, later].map(|header| header.encode(crc32c).to_vec()));
    }
    datagrams
}

// spec: LINK-19, OPEN-12, SEAL-10
#[test]
fn forged_resets_end_no_link() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        for _ in 0..4 {
            let to_victim = resets(&world.tap.seen[1]);
            attack(&mut world, &to_victim);
            for reset in resets(&world.tap.seen[0]) {
                world.tap.send(1, &reset);
                world.settle();
            }
        }
        world.honest_round();
        world.check();
    });
}

/// A port that gives up soon.
fn hasty(number: u16, options: NetOptions) -> Port {
    let config: Config = config(number).setup_timeout(Duration::from_millis(200));
    let mut port = Port::open(config).expect("a port");
    port.open_net(&options.at(ANY)).expect("an address of this host");
    port
}

/// Connects somebody to the victim, who accepts, while `meanwhile` goes on; only that one may come
/// in. It is spoken with, and leaves.
fn lets_in_only(
    world: &mut World,
    (number, protection): (u16, Protection),
    meanwhile: impl FnOnce(SocketAddr),
) {
    let (at, victim) = (world.at, &mut world.victim);
    let (mut late, _) = open_at(number, protection.options());
    let to_victim = scope(|scope| {
        let accepting = scope.spawn(|| victim.accept().expect("somebody comes"));
        meanwhile(at);
        let to_victim = late.connect_net(&[at]).expect("the victim accepts");
        assert_eq!(accepting.join().expect("no panic"), PeerId(number));
        to_victim
    });
    speak(world, &mut late, to_victim);
    world.victim.disconnect(PeerId(number)).expect("it was connected");
    world.honest_round();
    world.check();
}

/// A message to the victim, and one back.
fn speak(world: &mut World, late: &mut Port, to_victim: PeerId) {
    let (mut into, from) = ([0; 8], PeerId(late.rank() as u16));
    late.send(to_victim, 1, b"question").expect("room");
    while world.victim.try_recv(&mut into).expect("a short message").is_none() {
        late.progress();
        world.step();
    }
    assert_eq!(&into, b"question");
    world.victim.send(from, 2, b"answered").expect("room");
    while late.try_recv(&mut into).expect("a short message").is_none() {
        late.progress();
        world.step();
    }
    assert_eq!(&into, b"answered");
}

// spec: SEAL-8, SEAL-9, SEAL-10, LIFE-20
#[test]
fn strangers_are_not_let_in() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let before = world.victim.counters().refused();
        lets_in_only(&mut world, (2, protection), |at| {
            let stranger = match protection {
                Protection::Plain => Protection::Sealed.options(),
                Protection::Sealed => Protection::Plain.options(),
            };
            let wrong_key = NetOptions::sealed(OTHER_KEY).expect("a key");
            for options in [stranger, wrong_key] {
                let error = hasty(5, options).connect_net(&[at]).expect_err("it is a stranger");
                let is_meant =
                    matches!(error, SetupError::TimedOut(_) | SetupError::Refused { .. });
                assert!(is_meant, "{error}");
            }
        });
        assert!(world.victim.counters().refused() > before, "strangers are counted");
    });
}

/// Opens that somebody may have recorded, or made up: well formed, and of many openers.
fn opens(protection: Protection) -> Vec<Vec<u8>> {
    if protection == Protection::Plain {
        return (0..1000).map(|at| open_frame(&set_up(20 + at % 500, 1 + u64::from(at)))).collect();
    }
    let (nobody, mut recorded) = (socket(), Vec::new());
    for number in 20..60 {
        let config = config(number).setup_timeout(Duration::from_millis(20));
        let mut port = Port::open(config).expect("a port");
        port.open_net(&protection.options().at(ANY)).expect("an address of this host");
        let at = nobody.local_addr().expect("an address");
        port.connect_net(&[at]).expect_err("nobody answers");
        recorded.extend(receive(&nobody).map(|(bytes, _)| bytes));
        while receive(&nobody).is_some() {}
    }
    recorded.iter().cycle().take(1000).cloned().collect()
}

// spec: OPEN-8, OPEN-9, OPEN-10, OPEN-11
#[test]
fn a_flood_of_opens_does_not_block_a_new_link() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let opens = opens(protection);
        assert_eq!(opens.len(), 1000);
        // More than there is room for half-open links, were they kept; see LINKS_MAX.
        for round in 0..4 {
            lets_in_only(&mut world, (2 + round, protection), |at| {
                let stranger = socket();
                for burst in opens.chunks(BURST) {
                    for bytes in burst {
                        stranger.send_to(bytes, at).expect("a datagram");
                    }
                    // The victim answers some, so that few are lost for want of room: not all, as
                    // whoever they seem to come from may not have asked for anything.
                    while receive(&stranger).is_none() {
                        stranger.send_to(&burst[0], at).expect("a datagram");
                        yield_now();
                    }
                    while receive(&stranger).is_some() {}
                }
            });
        }
        assert_eq!(world.victim.peers().count(), 1, "nobody else has got in");
    });
}

/// Possible answers to an open from an attacker that sees it and has seen an earlier link being
/// opened.
fn forged_accepts(open: &[u8], earlier: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let asked = Header::parse(open, crc32c).expect("an open");
    let mut random = Random::new(7);
    let mut set_ups = vec![vec![], vec![0; 128], vec![0; 176], vec![9; 4000]];
    let mut strange = set_up(0, random.word() | 1);
    strange.answers = random.word();
    set_ups.push(strange.encode().to_vec());
    set_ups.push(SetUp { answers: asked.token, paths: 9, ..strange }.encode().to_vec());
    set_ups.push(open[HEADER_BYTES..].to_vec());
    let accepts = earlier.iter().filter_map(|bytes| {
        let header = Header::parse(bytes, crc32c).ok()?;
        (header.kind == Kind::Accept).then(|| bytes[HEADER_BYTES..].to_vec())
    });
    set_ups.extend(accepts);
    let mut frames = Vec::new();
    for payload in set_ups {
        let accept = Header { kind: Kind::Accept, payload: Digest::of(&payload, crc32c), ..asked };
        for header in
            [accept, Header { token: random.word(), ..accept }, Header { to: 1, ..accept }]
        {
            frames.push([&header.encode(crc32c)[..], &payload].concat());
        }
    }
    frames
}

// spec: OPEN-5, OPEN-7, SEAL-8
#[test]
fn forged_accepts_do_not_mislead_an_opener() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let earlier = world.tap.seen[1].clone();
        let (mut late, _) = open_at(2, protection.options());
        let mut tap = Tap::before(world.at);
        // The true accept is lost at first, and comes after all that was forged.
        let mut lost = 0;
        tap.tamper = Some(Box::new(move |direction, _| {
            lost += direction;
            direction == 0 || lost > 3
        }));
        let (at, victim) = (tap.at(), &mut world.victim);
        let to_victim = scope(|scope| {
            let accepting = scope.spawn(|| victim.accept().expect("somebody comes"));
            let connecting = scope.spawn(|| late.connect_net(&[at]).expect("the victim accepts"));
            let mut forged = Vec::new();
            while !accepting.is_finished() || !connecting.is_finished() {
                tap.pump();
                if let Some(open) = tap.seen[0].first().filter(|_| forged.is_empty()) {
                    forged = forged_accepts(open, &earlier);
                    forged.iter().for_each(|bytes| tap.send(1, bytes));
                }
                yield_now();
            }
            assert!(forged.len() >= 20, "{} forgeries", forged.len());
            assert_eq!(accepting.join().expect("no panic"), PeerId(2));
            connecting.join().expect("no panic")
        });
        assert!(late.counters().refused() >= 20, "{:?}", late.counters());
        let (mut into, mut heard) = ([0; 8], false);
        late.send(to_victim, 1, b"question").expect("room");
        while !heard {
            late.progress();
            tap.pump();
            world.step();
            heard = world.victim.try_recv(&mut into).expect("a short message").is_some();
        }
        assert_eq!(&into, b"question");
        world.honest_round();
        world.check();
    });
}

// spec: SEAL-10, OPEN-10
#[test]
fn another_link_does_not_disturb_a_link() {
    for_both(|protection| {
        let mut world = busy_world(protection);
        let mut other = Port::open(config(7).linger(LONG)).expect("a port");
        let at = other.open_net(&protection.options().at(ANY)).expect("an address")[0];
        let (to_other, _) = connect(&mut world.victim, &mut other, at);
        scope(|scope| {
            let leaving = scope.spawn(|| drop(other));
            while world.victim.is_alive(to_other) || !leaving.is_finished() {
                world.step();
            }
        });
        world.victim.disconnect(to_other).expect("it was connected");
        world.honest_round();
        world.check();
    });
}

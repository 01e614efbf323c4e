//! Records that no correct peer writes. Each is counted, none is delivered, and each ends only the
//! connection, or the producer's part in a queue, by which it came.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{Attacker, Begun, Lane};
use ayre::message::EAGER_MAX;
use ayre::{Fault, Mode, PeerId, PostError, ReceiveError};
use ayre_proto::lane::{Kind, Status};
use std::time::Duration;
use world::World;

const MODES: [Mode; 2] = [Mode::Direct, Mode::Mediated];

/// The kind of the messages of a connection, and of one of the other mode.
fn kinds(mode: Mode) -> (Kind, Kind) {
    match mode {
        Mode::Direct => (Kind::Message, Kind::GatedMessage),
        Mode::Mediated => (Kind::GatedMessage, Kind::Message),
    }
}

/// A word of status for the next line, of a kind that does not exist.
fn no_kind(attacker: &Attacker, lane: Lane) -> u64 {
    u64::from(attacker.next_sequence(lane)) | 9 << 16 | 16 << 20
}

/// Writes a bad record, and a good one of `kind` behind it.
fn put_bad(
    attacker: &mut Attacker,
    lane: Lane,
    bad: Option<(Kind, u32)>,
    (kind, len): (Kind, u32),
) {
    match bad {
        Some((kind, len)) => attacker.put_record(lane, kind, len, &[0; 7]),
        None => attacker.put_line(lane, no_kind(attacker, lane), &[0; 7]),
    }
    attacker.put_record(lane, kind, len, &[0; 7]);
}

/// One malformed record was counted, and the connection it came by has ended.
fn assert_ended(world: &mut World, peer: PeerId, malformed: u64, why: Fault) {
    assert_eq!(world.victim.counters().malformed(), malformed + 1);
    assert!(!world.victim.is_alive(peer));
    assert_eq!(world.victim.send(peer, 1, b"too late"), Err(PostError::Fault(why)));
    let waited = world.victim.recv(&mut [0; EAGER_MAX], Some(Duration::ZERO));
    assert_eq!(waited, Err(ReceiveError::PeerDied(peer)));
    world.honest_round();
}

// spec: LIFE-14, LIFE-11, LIFE-18
#[test]
fn a_number_that_lives_again_is_not_named_as_dead() {
    for mode in MODES {
        let mut world = World::new(mode, "lives-again");
        let (mut attacker, peer) = world.attacker(false);
        for _ in 0..3 {
            put_bad(&mut attacker, Lane::Messages, None, (kinds(mode).0, 16));
            world.drain();
            assert_eq!(world.victim.peer(peer.index()), None, "it is forgotten");
            let begun = Begun::connect(&world.path, attacker.number, false);
            assert_eq!(world.victim.accept().ok(), Some(peer), "its number is free");
            attacker = begun.finish();
        }
        let mut wait = || world.victim.recv(&mut [0; EAGER_MAX], Some(Duration::ZERO));
        assert_eq!(wait(), Err(ReceiveError::TimedOut), "the deaths were another's");
        drop(attacker);
        assert_eq!(wait(), Err(ReceiveError::PeerDied(peer)));
        assert_eq!(wait(), Err(ReceiveError::TimedOut), "once");
        world.honest_round();
    }
}

// spec: ERR-6, LIFE-18
#[test]
fn a_bad_message_ends_and_forgets_its_connection() {
    for mode in MODES {
        let (good, other) = kinds(mode);
        let bad = [
            (other, 16),
            (Kind::Notification, 16),
            (Kind::Continuation, 0),
            (good, 0),
            (good, EAGER_MAX as u32 + 9),
            (good, 4095),
        ];
        for bad in bad.map(Some).into_iter().chain([None]) {
            let mut world = World::new(mode, "bad-message");
            let (mut attacker, peer) = world.attacker(mode == Mode::Mediated);
            let malformed = world.victim.counters().malformed();
            put_bad(&mut attacker, Lane::Messages, bad, (good, 16));
            let mut buffer = [0; EAGER_MAX];
            for _ in 0..64 {
                let taken = world.victim.try_recv(&mut buffer).expect("nothing to be short for");
                assert_eq!(taken, None, "{bad:?}, {mode:?}");
            }
            assert_ended(&mut world, peer, malformed, Fault::ForeignHandle);
        }
    }
}

// spec: ERR-6, LIFE-18
#[test]
fn a_bad_notification_ends_and_forgets_its_connection() {
    // All zeros are no notification either.
    for bad in [Some((Kind::Notification, 24)), Some((Kind::Notification, 8)), None] {
        let mut world = World::new(Mode::Direct, "bad-note");
        let (mut attacker, peer) = world.attacker(false);
        let malformed = world.victim.counters().malformed();
        put_bad(&mut attacker, Lane::Requests, bad, (Kind::Notification, 24));
        for _ in 0..64 {
            assert_eq!(world.victim.poll_notification(), None, "{bad:?}");
        }
        assert_ended(&mut world, peer, malformed, Fault::ForeignHandle);
    }
}

// spec: ERR-5, LIFE-18
#[test]
fn a_malformed_command_ends_its_connection() {
    for bad in [Some((Kind::Message, 48)), Some((Kind::Command, 40)), None] {
        let mut world = World::new(Mode::Mediated, "bad-command");
        let (mut attacker, peer) = world.attacker(true);
        let malformed = world.victim.counters().malformed();
        put_bad(&mut attacker, Lane::Requests, bad, (Kind::Command, 48));
        world.victim.progress();
        assert_ended(&mut world, peer, malformed, Fault::Malformed);
    }
}

// spec: ERR-6
#[test]
fn a_bad_record_removes_its_producer() {
    for (kind, len) in [(Kind::Record, 0), (Kind::Record, u32::MAX), (Kind::Message, 16)] {
        let mut world = World::new(Mode::Direct, "bad-record");
        let (attacker, peer) = world.attacker(false);
        let mut queue = world.victim.create_queue(2048).expect("a queue");
        world.victim.share_queue(peer, &mut queue, 1).expect("a lane for the attacker");
        let lane = attacker.take_queue();
        let malformed = world.victim.counters().malformed();
        lane.store(128, Status { sequence: 1, kind, len, tag: 0 }.encode());
        let mut record = vec![0; queue.record_max()];
        for _ in 0..8 {
            let taken = world.victim.dequeue(&mut queue, &mut record);
            assert_eq!(taken, Ok(None), "{kind:?} of {len}");
        }
        assert_eq!(world.victim.counters().malformed(), malformed + 1);
        assert_eq!(queue.producers().count(), 0);
        assert!(world.victim.is_alive(peer), "its connection has done no wrong");
        world.honest_round();
    }
}

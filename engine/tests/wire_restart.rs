//! A port whose process has died and was restarted, before anybody has noticed. The operations
//! under way to the former one end with that fault, and the new one is let in.
mod common;
#[path = "wire_hostile/world.rs"]
mod world;

use ayre::NetOptions;
use ayre::error::Status;
use ayre::memory::Classes;
use ayre::{Fault, PeerId, Port, PostError, PostOptions, RegionOptions, Rights, SetupError};
use common::net::{Protection, connect, open_at};
use common::watchdog::Watchdog;
use std::net::SocketAddr;
use std::thread::{scope, yield_now};
use std::time::Duration;
use world::Tap;

/// The number of the port that is started anew.
const AGAIN: u16 = 1;
/// Operations that are under way.
const POSTED: usize = 10;
/// As long as a silence is where nobody waits for one.
const HASTY: Duration = Duration::from_millis(400);

fn options(protection: Protection) -> NetOptions {
    protection.options().silence(HASTY)
}

/// Connects through somebody on the way.
fn connect_through(near: &mut Port, far: &mut Port, tap: &mut Tap) -> PeerId {
    let at = tap.at();
    scope(|scope| {
        let accepting = scope.spawn(|| far.accept().expect("the near port connects"));
        let connecting = scope.spawn(|| near.connect_net(&[at]).expect("the far port accepts"));
        while !accepting.is_finished() || !connecting.is_finished() {
            tap.pump();
            yield_now();
        }
        connecting.join().expect("no panic")
    })
}

/// The faults of the survivor's operations once its peer was restarted, which connects.
fn lose(survivor: &mut Port, at: SocketAddr, protection: Protection) -> (Vec<Status>, Port) {
    let (mut again, _) = open_at(AGAIN, options(protection));
    let mut ended = Vec::new();
    scope(|scope| {
        let connecting = scope.spawn(|| again.connect_net(&[at]).expect("it is let in"));
        while ended.len() < POSTED || survivor.is_alive(PeerId(AGAIN)) {
            survivor.progress();
            let notes = std::iter::from_fn(|| survivor.poll_notification());
            ended.extend(notes.map(|note| {
                assert_eq!((note.source, note.class), (PeerId(AGAIN), Classes::REQUESTER));
                note.status
            }));
            yield_now();
        }
        let late = survivor.send(PeerId(AGAIN), 0, b"late");
        assert_eq!(late, Err(PostError::Fault(Fault::PeerRestarted)));
        assert_eq!(survivor.flush(PeerId(AGAIN)), Err(Fault::PeerRestarted));
        survivor.disconnect(PeerId(AGAIN)).expect("it was connected");
        assert_eq!(survivor.accept().expect("it still asks"), PeerId(AGAIN));
        assert_eq!(connecting.join().expect("no panic"), PeerId(0));
    });
    (ended, again)
}

// spec: LIFE-22, LINK-21, LINK-25, OPEN-13, ERR-1, WIRE-8
#[test]
fn operations_to_a_restarted_port_fail_with_that_reason() {
    let mut watchdog = Watchdog::start(0);
    for protection in Protection::ALL {
        let (mut survivor, at) = open_at(0, options(protection));
        let (mut first, _) = open_at(AGAIN, options(protection));
        let mut tap = Tap::before(at);
        let to_survivor = connect_through(&mut first, &mut survivor, &mut tap);
        let region = first.alloc(4096, RegionOptions::new()).expect("memory");
        first.share(to_survivor, &region, 0..4096, Rights::all(), 0).expect("a grant");
        let remote = scope(|scope| {
            let accepting = scope.spawn(|| survivor.accept_region(PeerId(AGAIN), 0));
            while !accepting.is_finished() {
                first.progress();
                tap.pump();
                yield_now();
            }
            accepting.join().expect("no panic").expect("the grant")
        });
        // From here on nothing is heard of it: it might as well be dead.
        drop(tap);
        for _ in 0..POSTED {
            let put = survivor.put(&remote, 0, &[7; 64], PostOptions::new().requester());
            put.expect("room");
        }
        let (ended, mut again) = lose(&mut survivor, at, protection);
        assert_eq!(ended, [Status::Fault(Fault::PeerRestarted); POSTED], "{protection:?}");
        assert_eq!(survivor.counters().faults(Fault::PeerRestarted), POSTED as u64);
        assert_eq!(survivor.wire_report().expect("it is open").restarted, 1);
        again.send(PeerId(0), 5, b"here again").expect("room");
        let mut into = [0; 16];
        let message = survivor.recv(&mut into, None).expect("it is connected");
        assert_eq!((message.tag, &into[..message.len]), (5, &b"here again"[..]));
    }
    assert!(!watchdog.stop(), "the test ended in time");
}

/// A port that only claims to be the restarted peer is refused, for the peer is there.
// spec: LINK-25, OPEN-13, LIFE-13
#[test]
fn an_impostor_cannot_replace_a_live_port() {
    let mut watchdog = Watchdog::start(0);
    for protection in Protection::ALL {
        let (mut survivor, at) = open_at(0, protection.options());
        let (mut first, _) = open_at(AGAIN, protection.options());
        connect(&mut first, &mut survivor, at);
        let (mut other, _) = open_at(AGAIN, protection.options());
        let (mut third, _) = open_at(2, protection.options());
        scope(|scope| {
            let accepting = scope.spawn(|| survivor.accept());
            let claiming = scope.spawn(|| other.connect_net(&[at]));
            while !claiming.is_finished() {
                first.progress();
                yield_now();
            }
            let refused = claiming.join().expect("no panic");
            assert!(matches!(refused, Err(SetupError::Refused { .. })), "{refused:?}");
            third.connect_net(&[at]).expect("a number that is free");
            assert_eq!(accepting.join().expect("no panic").expect("a peer"), PeerId(2));
        });
        assert!(survivor.is_alive(PeerId(AGAIN)));
        first.send(PeerId(0), 3, b"still here").expect("room");
        let message = survivor.recv(&mut [0; 16], None).expect("a message");
        assert_eq!((message.source, message.tag), (PeerId(AGAIN), 3));
    }
    assert!(!watchdog.stop(), "the test ended in time");
}

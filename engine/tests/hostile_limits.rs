//! Peers that try to use a port up: its descriptors, its memory, its time, the turns of others.
//! One test at a time, because the descriptors that some count are the process's.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{Attacker, Lane, Parts, connect_to, hello, send};
use ayre::*;
use ayre_proto::command::Response;
use ayre_proto::fault::Status as Ended;
use ayre_proto::lane::Kind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::{Equipped, World};

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the list of descriptors").count()
}

/// Keeps the message lane of a peer full while the victim polls.
fn flood(attacker: &mut Attacker, lane: Lane, kind: Kind, taken: u64) {
    let note = u64::from(Classes::COMPLETER.bits()) << 16 | 4 << 24;
    while attacker.written[lane as usize] < taken + 20 {
        attacker.put_record(lane, kind, 16, &[if lane == Lane::Messages { 0 } else { note }, 0]);
    }
}

// spec: LIM-1, LIFE-17
#[test]
fn peers_that_come_and_go_leave_nothing_behind() {
    let _alone = alone();
    for mode in [Mode::Direct, Mode::Mediated] {
        let mut world = World::new(mode, "come-and-go");
        let stay = |world: &mut World| {
            for _ in 0..20 {
                let (attacker, peer) = world.attacker(false);
                let stranger = connect_to(&world.path);
                send(&stranger, hello(1, false), &Parts::new().fds());
                drop(attacker);
                world.drain();
                world.victim.disconnect(peer).expect("a peer that was there");
            }
            let _ = world.victim.accept();
            open_descriptors()
        };
        let before = stay(&mut world);
        assert_eq!(stay(&mut world), before, "descriptors of peers that are gone");
    }
}

// spec: ERR-7, CAP-3
#[test]
fn a_peer_that_takes_no_offers_does_not_hold_the_owner_up() {
    let _alone = alone();
    let mut world = World::new(Mode::Direct, "no-taker");
    let (_attacker, peer) = world.attacker(false);
    for name in 0..500 {
        let granted = world.victim.share(peer, &world.shared, 0..8, Rights::READ, name);
        if let Ok(grant) = granted {
            world.victim.revoke(grant).expect("a live grant");
        }
    }
    world.honest_round();
}

// spec: MSG-5, MSG-9
#[test]
fn a_message_that_waits_for_ever_is_in_nobodys_way() {
    let _alone = alone();
    let mut world = World::new(Mode::Mediated, "gate");
    let (mut attacker, peer) = world.attacker(true);
    attacker.put_record(Lane::Messages, Kind::GatedMessage, 16, &[0, 1]);
    let mut buffer = [0; EAGER_MAX];
    let first = world.victim.recv(&mut buffer, None).expect("a message without a gate");
    assert_eq!(first.source, peer);
    attacker.put_record(Lane::Messages, Kind::GatedMessage, 16, &[u64::MAX, 2]);
    for _ in 0..3 {
        world.honest_round();
    }
}

// spec: MSG-5, MSG-9
#[test]
fn a_flood_of_messages_leaves_others_their_turn() {
    let _alone = alone();
    for mode in [Mode::Direct, Mode::Mediated] {
        let mut world = World::new(mode, "flood");
        let kind = if mode == Mode::Direct { Kind::Message } else { Kind::GatedMessage };
        let (mut attacker, peer) = world.attacker(mode == Mode::Mediated);
        let (mut taken, mut from_honest, mut buffer) = (0, 0, [0; EAGER_MAX]);
        let (one, zero) = (world.victim.peer(1).unwrap(), world.honest.peer(0).unwrap());
        for _ in 0..20 {
            world.honest.send(zero, 5, b"my turn").expect("room for a message");
            for _ in 0..256 {
                flood(&mut attacker, Lane::Messages, kind, taken);
                let message = world.victim.try_recv(&mut buffer).expect("short messages");
                let source = message.map(|message| message.source);
                taken += u64::from(source == Some(peer));
                from_honest += u64::from(source == Some(one));
            }
        }
        assert_eq!(from_honest, 20, "each within a few lanes' worth, {mode:?}");
        assert!(taken > 1000, "it was a flood");
    }
}

// spec: PROG-3, MSG-5
#[test]
fn polls_of_two_kinds_both_see_every_peer() {
    let _alone = alone();
    for first in [true, false] {
        let mut world = World::new(Mode::Direct, "two-kinds");
        let zero = world.honest.peer(0).expect("the victim");
        world.honest.send(zero, 1, b"message").expect("room for a message");
        let mut buffer = [0; EAGER_MAX];
        let _ = first && world.victim.poll_notification().is_some();
        let taken = (0..64).find_map(|_| {
            let taken = world.victim.try_recv(&mut buffer).expect("a short message");
            taken.map(|_| ()).or_else(|| world.victim.poll_notification().map(|_| ()))
        });
        assert!(taken.is_some(), "a message, whatever is polled in between");
    }
}

// spec: ERR-7
#[test]
fn answers_without_end_do_not_hold_progress_up() {
    let _alone = alone();
    let mut world = World::new(Mode::Mediated, "endless");
    let Equipped { mut attacker, remote, .. } = world.granted_attacker();
    world.victim.put(&remote, 0, &[1; 8], Options::new()).expect("room for a put");
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let thread = std::thread::spawn(move || {
        let lane = Lane::Responses;
        let head = Response { number: 1, status: Ended::Fault(Fault::Bounds), value: 0 }.encode();
        while !seen.load(Ordering::Relaxed) {
            let taken = attacker.memory.load(attacker.control_out(2));
            while attacker.written[lane as usize] < taken + 30 {
                attacker.put_record(lane, Kind::Response, 16, &head);
            }
        }
        attacker
    });
    for _ in 0..100 {
        world.victim.progress();
    }
    over.store(true, Ordering::Relaxed);
    drop(thread.join().expect("the attacker ends"));
    world.honest_round();
}

// spec: NOTI-11
#[test]
fn a_flood_of_notifications_leaves_others_their_turn() {
    let _alone = alone();
    let mut world = World::new(Mode::Direct, "note-flood");
    let (mut attacker, peer) = world.attacker(false);
    let (mut taken, mut from_honest) = (0, 0);
    let (one, zero) = (world.victim.peer(1).unwrap(), world.honest.peer(0).unwrap());
    for _ in 0..20 {
        world.honest.notify(zero, Options::new()).expect("room for a notification");
        for _ in 0..256 {
            flood(&mut attacker, Lane::Requests, Kind::Notification, taken);
            let source = world.victim.poll_notification().map(|note| note.source);
            taken += u64::from(source == Some(peer));
            from_honest += u64::from(source == Some(one));
        }
    }
    assert_eq!(from_honest, 20, "each within a few lanes' worth of the flood");
    assert!(taken > 1000, "it was a flood");
}

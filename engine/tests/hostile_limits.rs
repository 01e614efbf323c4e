//! Peers that try to use a port up: its descriptors, its memory, its time, the turns of others.
//! One test at a time, because the descriptors that some count are the process's.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{Attacker, BYE, DONE, Lane, NOTED, Parts, connect_to, hello, sealed_file, send};
use ayre::memory::{Classes, Key, Strided};
use ayre::message::EAGER_MAX;
use ayre::*;
use ayre_proto::command::{Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status as Ended;
use ayre_proto::lane::{Kind, Status};
use ayre_proto::units::Claim;
use rustix::fd::AsFd;
use rustix::net::SocketAddrUnix;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::{Equipped, REGION, World};

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
        let head = if lane == Lane::Messages { 0 } else { note };
        attacker.put_record(lane, kind, 24, &[head, 0, taken]);
    }
}

fn command(action: Action, key: Key, offset: u64, len: u64) -> Command {
    let claim = Claim { key, offset, len };
    Command { action, classes: Classes::empty(), tag: 0, value: 0, claim }
}

fn post(attacker: &mut Attacker, command: Command, data: &[u64]) {
    let head = Request { command, cookie: 0 }.encode();
    let words: Vec<u64> = head.into_iter().chain(data.iter().copied()).collect();
    attacker.put_long(Lane::Requests, Kind::Command, &words);
}

/// Answers the victim's first operation before it is asked.
fn answer(attacker: &mut Attacker, cookie: u64, data: &[u64]) {
    let head = Response { number: 1, status: Ended::Ok, value: cookie }.encode();
    let words: Vec<u64> = head.into_iter().chain(data.iter().copied()).collect();
    attacker.put_long(Lane::Responses, Kind::Response, &words);
    attacker.memory.store(attacker.control_in(DONE), 1);
}

// spec: LIM-1, LIFE-17
#[test]
fn departed_peers_leave_no_resources() {
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
fn an_unread_message_does_not_delay_other_peers() {
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
    world.victim.put(&remote, 0, &[1; 8], PostOptions::new()).expect("room for a put");
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
        world.honest.notify(zero, PostOptions::new()).expect("room for a notification");
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

// spec: LIM-1
#[test]
fn offers_do_not_use_up_the_descriptors() {
    let _alone = alone();
    let mut world = World::new(Mode::Direct, "offers");
    let limit = getrlimit(Resource::Nofile);
    let low = open_descriptors() as u64 + 600;
    setrlimit(Resource::Nofile, Rlimit { current: Some(low), ..limit }).expect("a low limit");
    let (attacker, _) = world.attacker(false);
    let file = sealed_file(REGION as u64);
    for name in 0..2000 {
        let fds = [file.as_fd(); 4];
        let words = [attacker::OFFER_REGION, name, 31 << 16, 0, 0, 64, REGION as u64, 0];
        if !attacker.send(words, &fds) {
            world.victim.progress();
        }
    }
    world.drain();
    let used = open_descriptors() as u64;
    setrlimit(Resource::Nofile, limit).expect("the old limit");
    assert!(used + 100 < low, "the offers of one peer leave room for others");
    world.honest_round();
}

// spec: ERR-7
#[test]
fn a_peer_that_leaves_for_ever_does_not_hold_progress_up() {
    let _alone = alone();
    let mut world = World::new(Mode::Direct, "byes");
    let (attacker, peer) = world.attacker(false);
    while attacker.send([BYE, 0, 0, 0, 0, 0, 0, 0], &[]) {}
    world.victim.progress();
    let more = attacker.send([BYE, 0, 0, 0, 0, 0, 0, 0], &[]);
    assert!(!more || !world.victim.is_alive(peer), "one farewell is enough");
    world.honest_round();
}

// spec: MSG-1, MSG-5
#[test]
fn a_message_longer_than_messages_are_ends_its_sender_alone() {
    let _alone = alone();
    for mode in [Mode::Direct, Mode::Mediated] {
        let mut world = World::new(mode, "long-message");
        let kind = if mode == Mode::Direct { Kind::Message } else { Kind::GatedMessage };
        for words in [0, 1 + EAGER_MAX / 8 + 1, 190] {
            let (mut attacker, _) = world.attacker(mode == Mode::Mediated);
            attacker.put_long(Lane::Messages, kind, &vec![0; words]);
            world.drain();
            world.honest_round();
        }
    }
}

// spec: NOTI-11, LIM-1
#[test]
fn notifications_without_credit_end_the_connection() {
    let _alone = alone();
    let mut world = World::new(Mode::Mediated, "credit");
    let (mut attacker, peer) = world.attacker(true);
    for count in 0..400 {
        let unpaid = command(Action::Notify, Key { slot: 0, generation: 0 }, 0, 0);
        post(&mut attacker, unpaid, &[]);
        attacker.memory.store(attacker.control_out(NOTED), count);
        attacker.memory.store(attacker.control_in(2), count);
        world.victim.progress();
    }
    assert!(!world.victim.is_alive(peer));
    let mut queued = 0;
    while world.victim.poll_notification().is_some() {
        queued += 1;
    }
    assert!(queued <= 64, "{queued} notifications were kept");
    world.honest_round();
}

// spec: STR-2, ERR-7
#[test]
fn answers_do_not_land_between_rows() {
    let _alone = alone();
    let rows = Strided { row_len: 8, rows: 4, local_stride: 64, remote_stride: 8 };
    let mut world = World::new(Mode::Mediated, "between-rows");
    let Equipped { mut attacker, remote, .. } = world.granted_attacker();
    answer(&mut attacker, 8, &[u64::MAX; 4]);
    attacker.memory.store(attacker.control_in(DONE), 4);
    let mut bytes = [0; 256];
    let _ = world.victim.get_strided(&remote, 0, &mut bytes, rows, PostOptions::new());
    let between = (0..256).filter(|at| at % 64 >= 8);
    assert!(between.into_iter().all(|at| bytes[at] == 0), "bytes that were not asked for");
    world.honest_round();
}

// spec: QUE-3, QUE-7
#[test]
fn a_hostile_producer_does_not_disturb_others() {
    let _alone = alone();
    for len in [0, 8, 1036, 1040, 1600, 2400, 1 << 20, u32::MAX] {
        let mut world = World::new(Mode::Mediated, "producer");
        let (attacker, peer) = world.attacker(true);
        let (one, zero) = (world.victim.peer(1).unwrap(), world.honest.peer(0).unwrap());
        let mut queue = world.victim.create_queue(2048).expect("a queue");
        world.victim.share_queue(peer, &mut queue, 1).expect("a lane for the attacker");
        world.victim.share_queue(one, &mut queue, 1).expect("a lane for the honest peer");
        let mut remote = world.honest.accept_queue(zero, 1).expect("the honest peer's lane");
        let lane = attacker.take_queue();
        let lie = Status { sequence: 1, kind: Kind::Record, len, tag: 0 };
        lane.store(128, lie.encode());
        let mut record = vec![0; queue.record_max()];
        for count in 0..20 {
            world.honest.enqueue(&mut remote, &[count; 9]).expect("room for a record");
            let taken = (0..64).find_map(|_| {
                let taken = world.victim.dequeue(&mut queue, &mut record);
                taken.expect("records fit").filter(|record| record.source == one)
            });
            let len = taken.expect("the honest peer's record").len;
            assert_eq!(record[..len], [count; 9]);
        }
        drop(attacker);
        world.honest_round();
    }
}

// spec: LIFE-9
#[test]
fn silent_callers_do_not_block_an_accept() {
    let _alone = alone();
    let mut world = World::new(Mode::Direct, "many-silent");
    let silent: Vec<_> = (0..200).map(|_| connect_to(&world.path)).collect();
    // The victim does not wait at all; a peer that has connected by then is heard.
    world.attacker(false);
    drop(silent);
    world.honest_round();
}

/// Callers of all kinds, as fast as they can: silent, gone at once, with a wrong greeting.
fn connect_and_misbehave(path: &Path, over: &AtomicBool) {
    let address = SocketAddrUnix::new(path).expect("an address");
    let mut last = VecDeque::new();
    for turn in 0_u64.. {
        let socket = attacker::control_socket();
        if over.load(Ordering::Relaxed) || rustix::net::connect(&socket, &address).is_err() {
            return;
        }
        if turn % 3 != 0 {
            let _ = attacker::send_bytes(&socket, &[9; 20], &[]);
        }
        last.push_back(socket);
        if last.len() > 8 {
            last.pop_front();
        }
    }
}

// spec: LIFE-9
#[test]
fn callers_that_keep_coming_do_not_make_accept_wait() {
    let _alone = alone();
    let path = world::socket_path("strangers");
    for timeout in [0, 20].map(Duration::from_millis) {
        let mut victim = Port::open(Config::new().setup_timeout(timeout)).expect("a port");
        victim.listen(&path).expect("the victim listens");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| connect_and_misbehave(&path, &over));
            }
            for _ in 0..20 {
                let accepted = victim.accept();
                assert!(matches!(accepted, Err(SetupError::TimedOut(_))), "{accepted:?}");
            }
            over.store(true, Ordering::Relaxed);
            // Ends the calls of those who wait for room to connect.
            drop(victim);
        });
    }
}

// spec: ERR-7, GET-1
#[test]
fn empty_answers_land_nowhere() {
    let _alone = alone();
    for cookie in [65, 1 << 40, 1 << 63, u64::MAX] {
        let mut world = World::new(Mode::Mediated, "empty-answers");
        let Equipped { mut attacker, peer, remote, .. } = world.granted_attacker();
        answer(&mut attacker, cookie, &[]);
        let into = world.local.slice(world::LANDING.start..world::LANDING.start + 64);
        world.victim.get(&remote, 0, into, PostOptions::new()).expect("a posted get");
        let _ = world.victim.flush(peer);
        let Equipped { mut attacker, remote, .. } = world.granted_attacker();
        answer(&mut attacker, cookie, &[]);
        let _ = world.victim.get(&remote, 0, &mut [0; 64], PostOptions::new());
        world.honest_round();
    }
}

// spec: LIFE-9
#[test]
fn a_listener_that_never_accepts_does_not_hold_its_caller_up() {
    let _alone = alone();
    let path = world::socket_path("full-backlog");
    let _listener = attacker::listen_at(&path, 0);
    let _first = connect_to(&path);
    let config = Config::new().setup_timeout(Duration::from_millis(50));
    let mut victim = Port::open(config).expect("a port");
    assert!(victim.connect(&path).is_err(), "nobody accepts");
    let _ = std::fs::remove_file(&path);
}

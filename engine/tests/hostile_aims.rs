//! Attacks that aim at one thing each: somebody else's key, room that was not granted, a turn that
//! belongs to others, a call that waits.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{Attacker, DONE, Lane, Random};
use ayre::memory::{Atomic, AtomicOp, Classes, Fenced, Key, Width};
use ayre::message::EAGER_MAX;
use ayre::*;
use ayre_proto::command::{Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status as Ended;
use ayre_proto::lane::Kind;
use ayre_proto::units::Claim;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use world::{Equipped, GRANTED, LANDING, SECRET, World, runs};

fn command(action: Action, key: Key, offset: u64, len: u64) -> Command {
    let claim = Claim { key, offset, len };
    Command { action, classes: Classes::empty(), tag: 0, value: 0, claim }
}

fn post(attacker: &mut Attacker, command: Command, data: &[u64]) {
    let head = Request { command, cookie: 0 }.encode();
    let words: Vec<u64> = head.into_iter().chain(data.iter().copied()).collect();
    attacker.put_long(Lane::Requests, Kind::Command, &words);
}

/// How the victim answered the first command of a connection.
fn first_answer(attacker: &Attacker) -> (u32, Ended) {
    let [head, value] = attacker.answer(0);
    let response = Response::parse(&[head, value]);
    (response.number, response.status)
}

fn add() -> Atomic {
    Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 }
}

// spec: CAP-2, CAP-5, CAP-7, KEY-2
#[test]
fn operations_without_a_grant_fault() {
    let mut world = World::new(Mode::Mediated, "not-granted");
    let honest = world.honest_key();
    let own = world.granted_attacker().key;
    let len = GRANTED.len() as u64;
    let (unknown, bounds, malformed) = (Fault::UnknownKey, Fault::Bounds, Fault::Malformed);
    let cases = [
        (honest, Action::Put, 0, 8, unknown),
        (honest, Action::Get, 0, 8, unknown),
        (honest, Action::Immediate(1), 0, 8, unknown),
        (honest, Action::Fetch(add()), 0, 8, unknown),
        (Key { slot: 511, generation: 0 }, Action::Get, 0, 8, unknown),
        (Key { slot: 65535, generation: 0 }, Action::Get, 0, 8, unknown),
        (Key { generation: 77, ..honest }, Action::Get, 0, 8, unknown),
        (own, Action::Get, len, 8, unknown),
        (own, Action::Get, 0, 8, unknown),
    ];
    for (key, action, offset, size, fault) in cases {
        // The key that is the attacker's own belongs to another connection of its, by now.
        let (mut attacker, _) = world.attacker(true);
        post(
            &mut attacker,
            command(action, key, offset, size),
            &[7][..usize::from(action == Action::Put)],
        );
        world.drain();
        assert_eq!(first_answer(&attacker), (1, Ended::Fault(fault)), "{action:?} with {key:?}");
        world.check_secret(&attacker);
        world.honest_round();
    }
    let far = u64::MAX - 7;
    for (action, offset, size, fault) in [
        (Action::Get, len - 4, 8, bounds),
        (Action::Get, far, 8, bounds),
        (Action::Get, far, 16, bounds),
        (Action::Immediate(1), len, 8, bounds),
        (Action::Immediate(1), far, 8, bounds),
        (Action::Atomic(add()), len, 8, bounds),
        (Action::Fetch(add()), 4, 8, Fault::Alignment),
        (Action::Put, len - 8, 16, bounds),
        (Action::Put, far, 16, bounds),
    ] {
        let mut equipped = world.granted_attacker();
        let data = [7; 2];
        let data = if action == Action::Put { &data[..size as usize / 8] } else { &[] };
        post(&mut equipped.attacker, command(action, equipped.key, offset, size), data);
        world.drain();
        let answer = first_answer(&equipped.attacker);
        assert_eq!(answer, (1, Ended::Fault(fault)), "{action:?} at {offset:#x}");
        world.check_secret(&equipped.attacker);
        world.honest_round();
    }
    let mut equipped = world.granted_attacker();
    let get = command(Action::Get, equipped.key, 0, 8);
    post(&mut equipped.attacker, get, &[1, 2, 3]);
    world.drain();
    assert_eq!(first_answer(&equipped.attacker), (1, Ended::Fault(malformed)), "data with a get");
}

// spec: MSG-10, LIFE-12
#[test]
fn a_record_without_its_first_line_never_was() {
    for mode in [Mode::Direct, Mode::Mediated] {
        let mut world = World::new(mode, "mid-record");
        let Equipped { mut attacker, peer, .. } = world.granted_attacker();
        for lane in [Lane::Messages, Lane::Requests] {
            attacker.written[lane as usize] += 1;
            attacker.put_record(lane, Kind::Continuation, 0, &[SECRET; 7]);
        }
        let mut buffer = [0; EAGER_MAX];
        for _ in 0..64 {
            world.victim.progress();
            assert!(world.victim.poll_notification().is_none());
            assert_eq!(world.victim.try_recv(&mut buffer), Ok(None));
        }
        drop(attacker);
        let died = world.victim.recv(&mut buffer, None);
        assert_eq!(died, Err(ReceiveError::PeerDied(peer)));
        world.honest_round();
    }
}

/// Answers the victim's first operation before it is asked.
fn answer(attacker: &mut Attacker, cookie: u64, data: &[u64]) {
    let head = Response { number: 1, status: Ended::Ok, value: cookie }.encode();
    let words: Vec<u64> = head.into_iter().chain(data.iter().copied()).collect();
    attacker.put_long(Lane::Responses, Kind::Response, &words);
    attacker.memory.store(attacker.control_in(DONE), 1);
}

// spec: ERR-7, GET-1
#[test]
fn answers_land_only_in_requested_buffers() {
    let lies = [
        (0, 9),
        (8, 8),
        (64, 1),
        (u64::MAX, 1),
        (u64::MAX - 7, 1),
        (1 << 63, 8),
        (LANDING.len() as u64, 1),
    ];
    for (cookie, words) in lies {
        let mut world = World::new(Mode::Mediated, "answers");
        let Equipped { mut attacker, peer, remote, .. } = world.granted_attacker();
        answer(&mut attacker, cookie, &vec![7; words]);
        let into = world.local.slice(LANDING.start..LANDING.start + 64);
        world.victim.get(&remote, 0, into, PostOptions::new()).expect("a posted get");
        let flushed = world.victim.flush(peer);
        assert!(flushed.is_err(), "an answer of {words} words for {cookie:#x} of 64 bytes");
        let after = world.local.load(LANDING.start + 64);
        assert_eq!(after, 0, "behind the bytes that were asked for");
        world.check_secret(&attacker);
        world.honest_round();

        let Equipped { mut attacker, remote, .. } = world.granted_attacker();
        answer(&mut attacker, cookie, &vec![7; words]);
        let mut bytes = [0; 192];
        let (into, behind) = bytes.split_at_mut(64);
        assert!(world.victim.get(&remote, 0, into, PostOptions::new()).is_err());
        assert!(behind.iter().all(|byte| *byte == 0));
        world.honest_round();
    }
}

// spec: ERR-7
#[test]
fn answers_without_a_request_end_the_connection() {
    for number in [0, 1, 2, 77, u32::MAX] {
        let mut world = World::new(Mode::Mediated, "to-nothing");
        let (mut attacker, peer) = world.attacker(true);
        let head = Response { number, status: Ended::Ok, value: 0 }.encode();
        attacker.put_long(Lane::Responses, Kind::Response, &head);
        world.drain();
        assert!(!world.victim.is_alive(peer));
        world.honest_round();
    }
    for done in [1, 2, 1 << 32, u64::MAX] {
        let mut world = World::new(Mode::Mediated, "done-nothing");
        let (attacker, peer) = world.attacker(true);
        attacker.memory.store(attacker.control_in(DONE), done);
        world.drain();
        assert!(!world.victim.is_alive(peer));
        world.honest_round();
    }
}

// spec: QUE-4
#[test]
fn a_consumer_that_lies_keeps_itself_from_being_sent_to() {
    let mut world = World::new(Mode::Direct, "consumer");
    let (attacker, peer) = world.attacker(false);
    let lines = 64;
    let file = attacker::sealed_file(12288);
    let words = [attacker::OFFER_QUEUE, 1, lines, 0, 0, 0, 0, 0];
    assert!(attacker.send(words, &[rustix::fd::AsFd::as_fd(&file)]));
    let mut queue = world.victim.accept_queue(peer, 1).expect("a truthful offer");
    let (memory, mut random) = (attacker::Memory::map(&file, 12288), Random::new(3));
    for _ in 0..2000 {
        let record = vec![1; random.below(queue.record_max() as u64) as usize + 1];
        let _ = world.victim.enqueue(&mut queue, &record);
        memory.store(0, random.nasty());
        memory.store(random.below(memory.words()) * 8, random.nasty());
    }
    world.honest_round();
}

/// The victim's lines change while it reads them.
fn change_while_read(mode: Mode) {
    let mut world = World::new(mode, "while-read");
    for run in 0..runs(12).min(400) {
        let Equipped { mut attacker, peer, key, remote } = world.granted_attacker();
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = std::thread::spawn(move || {
            let mut random = Random::new(run + 1);
            while !seen.load(Ordering::Relaxed) {
                change_a_line(&mut attacker, key, &mut random);
            }
            attacker
        });
        for _ in 0..30 {
            let data = [1; 64];
            let _ = world.victim.put(&remote, 0, &data, PostOptions::new().requester());
            let into = world.local.slice(LANDING.start..LANDING.start + 512);
            let _ = world.victim.get(&remote, 0, into, PostOptions::new().completer());
            world.drain();
            world.honest_round();
        }
        over.store(true, Ordering::Relaxed);
        let attacker = thread.join().expect("the attacker ends");
        world.check_secret(&attacker);
        // Its connection may be gone already, with what it wrote.
        let _ = world.victim.disconnect(peer);
    }
}

/// Writes a line that the victim takes, and then other things over it.
fn change_a_line(attacker: &mut Attacker, key: Key, random: &mut Random) {
    let lane = random.pick(&[Lane::Messages, Lane::Requests]);
    let offset = random.pick(&[0, 8, 2040, 2048, u64::MAX - 7]);
    let get = command(Action::Get, key, offset, random.below(4096));
    let words = Request { command: get, cookie: 0 }.encode();
    let (kind, len) = match (lane, attacker.mediated) {
        (Lane::Messages, true) => (Kind::GatedMessage, 48),
        (Lane::Messages, false) => (Kind::Message, 48),
        (_, true) => (Kind::Command, 48),
        (_, false) => (Kind::Notification, 24),
    };
    let at = attacker.next_line(lane);
    attacker.put_record(lane, kind, len, &words);
    let status = attacker.memory.load(at);
    for _ in 0..random.below(6) {
        let word = random.below(8);
        let value = if word == 0 { status ^ (random.below(4096) << 20) } else { random.nasty() };
        attacker.memory.store(at + 8 * word, value);
        attacker.memory.store(at + 8 * word, if word == 0 { status } else { words[0] });
    }
}

// spec: ERR-8
#[test]
fn records_changed_while_read_do_not_disturb_others() {
    change_while_read(Mode::Direct);
    change_while_read(Mode::Mediated);
}

// spec: REV-3, REV-4
#[test]
fn a_holder_that_never_leaves_does_not_hold_revocation_up() {
    let mut world = World::new(Mode::Direct, "never-leaves");
    let (attacker, peer) = world.attacker(false);
    let region = world.victim.alloc(4096, RegionOptions::new()).expect("memory");
    let grant = world.victim.share(peer, &region, 0..4096, Rights::all(), 3).expect("a grant");
    let (words, files) = attacker::receive(&attacker.control).expect("the offer");
    assert_eq!((words[0], words[1], files.len()), (attacker::OFFER_REGION, 3, 1));
    let memory = attacker::Memory::map(&files[0], 4096);
    region.store(0, 7);
    let active = attacker.control_out(attacker::ACTIVE);
    attacker.memory.store(active, u64::from(grant.key().slot) + 1);
    assert_eq!(world.victim.revoke(grant).expect("revoked"), Fenced::Moved);
    memory.store(0, SECRET);
    assert_eq!(region.load(0), 7, "what the holder writes does not reach the owner");
    for word in [0, 1, u64::MAX, 1 << 16] {
        let grant = world.victim.share(peer, &region, 0..4096, Rights::READ, 4).expect("a grant");
        attacker.memory.store(active, word);
        world.victim.revoke(grant).expect("revoked");
    }
    world.honest_round();
}

// spec: WAIT-2
#[test]
fn a_peer_that_claims_to_sleep_is_rung_and_no_more() {
    for mode in [Mode::Direct, Mode::Mediated] {
        let mut world = World::new(mode, "asleep");
        let Equipped { attacker, peer, remote, .. } = world.granted_attacker();
        for word in 0..16 {
            attacker.page.store(word * 8, u64::MAX);
        }
        for _ in 0..200 {
            let _ = world.victim.send(peer, 1, b"wake up");
            let _ = world.victim.put(&remote, 0, b"wake up", PostOptions::new().completer());
            world.victim.progress();
        }
        let mut buffer = [0; 64];
        let waited = world.victim.recv(&mut buffer, Some(Duration::ZERO));
        assert_eq!(waited, Err(ReceiveError::TimedOut));
        world.honest_round();
    }
}

// spec: PROG-2, ERR-7
#[test]
fn an_engine_under_attack_serves_others() {
    let mut world = World::new(Mode::Mediated, "engine");
    world.victim.start_engine().expect("a thread");
    let (mut random, mut last) = (Random::new(11), None);
    for count in 0..runs(400).min(4000) {
        if count % 8 == 0 {
            let mut equipped = world.granted_attacker();
            if let Some(peer) = last.replace(equipped.peer) {
                // Its connection may be gone already, with what it wrote.
                let _ = world.victim.disconnect(peer);
            }
            for _ in 0..random.below(40) {
                change_a_line(&mut equipped.attacker, equipped.key, &mut random);
            }
        }
        assert_eq!(world.honest.fetch_add(&world.to_victim, 8000, 1), Ok(count));
        world
            .honest
            .put(&world.to_victim, 0, &count.to_le_bytes(), PostOptions::new())
            .expect("room");
        world.honest.flush(world.to_victim.peer()).expect("no fault at the victim");
        world.victim.progress();
    }
}

//! Data of puts that is put in place before earlier frames have come. The data is there sooner, and
//! nothing tells of it before its turn. A peer that makes a false claim of it harms nobody else.
mod common;
#[path = "wire_hostile/liar.rs"]
mod liar;
#[path = "wire_hostile/world.rs"]
mod world;

use ayre::error::Status;
use ayre::memory::Width;
use ayre::memory::{Atomic, AtomicOp, Classes, Grant, Operation};
use ayre::network::LinkReport;
use ayre::{NetOptions, Notification, PostOptions};
use ayre::{PeerId, Port, Region, RegionOptions, Rights};
use ayre_proto::command::Request;
use ayre_proto::execute::{Action, Command};
use ayre_proto::link::frame::{Channel, Flags, Header, RecordKind};
use ayre_proto::units::{Claim, Key};
use common::net::{ANY, Protection, open};
use common::ports::{assert_content, post};
use common::random::fill;
use common::watchdog::Watchdog;
use liar::{Liar, Told, bytes_of, payload};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use world::World;

/// Bytes of a region.
const LEN: usize = 1024;
const NAME: u64 = 1;

/// A victim, its honest peer, and a peer whose frames come as the test wants.
struct Stage {
    world: World,
    liar: Liar,
    into: Region,
    grant: Option<Grant>,
}

impl Stage {
    fn new(rights: Rights) -> Self {
        let mut world = World::new(Protection::Plain);
        let victim = &mut world.victim;
        let liar = Liar::open(victim, world.at, 2);
        let into = victim.alloc(LEN, RegionOptions::new()).expect("memory");
        let grant = victim.share(liar.peer, &into, 0..LEN, rights, NAME).expect("a grant");
        Self { world, liar, into, grant: Some(grant) }
    }

    fn key(&self) -> Key {
        self.grant.as_ref().expect("it was not revoked").key()
    }

    fn command(&self, action: Action, offset: u64, len: u64) -> Command {
        let claim = Claim { key: self.key(), offset, len };
        Command { action, classes: Classes::COMPLETER, tag: 1, value: 0, claim }
    }

    fn put(&self, offset: u64, len: u64) -> Command {
        self.command(Action::Put, offset, len)
    }

    /// A frame that is so far ahead of its turn, and says that its data need not wait.
    fn send_ahead(&mut self, ahead: u32, records: &[Told]) {
        let seq = self.liar.next[Channel::Posted.index()].wrapping_add(ahead);
        let header = Header { seq, flags: Flags::EARLY, ..self.liar.header() };
        self.liar.send(&header, &payload(records));
        self.world.settle();
    }

    /// The frame comes that was missed, and so do all that are waited for.
    fn close_gap(&mut self, ahead: u32, records: &[Told]) {
        self.liar.tell(records);
        let next = &mut self.liar.next[Channel::Posted.index()];
        *next = next.wrapping_add(ahead);
        self.world.settle();
    }

    fn notes(&mut self) -> Vec<Notification> {
        std::iter::from_fn(|| self.world.victim.poll_notification()).collect()
    }

    fn report(&self) -> LinkReport {
        let mut links = self.world.victim.links().into_iter();
        links.find(|link| link.peer == self.liar.peer.index()).expect("the link is there")
    }

    /// Nobody else has noticed anything.
    fn check(&mut self) {
        assert!(self.world.victim.is_alive(self.liar.peer));
        self.world.honest_round();
        self.world.check();
    }
}

fn told(number: u32, command: Command, data: &[u8]) -> Told {
    let head = bytes_of(&Request { command, cookie: 0 }.encode());
    (RecordKind::Command, number, [&head, data].concat())
}

// spec: WIRE-13, ORD-2
#[test]
fn data_is_in_place_before_its_turn_and_its_notification_is_not_there() {
    let mut watchdog = Watchdog::start(0);
    let mut stage = Stage::new(Rights::all());
    let put = |stage: &Stage, tag, offset| Command { tag, ..stage.put(offset, 8) };
    let (second, third) = (put(&stage, 2, 8), put(&stage, 3, 16));
    stage.send_ahead(1, &[told(2, second, b"second.."), told(3, third, b"third...")]);
    let mut expected = vec![0; LEN];
    expected[8..24].copy_from_slice(b"second..third...");
    assert_content(&stage.into, &expected);
    assert_eq!(stage.notes(), []);
    assert_eq!(stage.report().early, 1);
    // What the owner writes now stays: the data has come already.
    stage.into.write(8, b"owner's.");
    expected[8..16].copy_from_slice(b"owner's.");
    let first = put(&stage, 1, 0);
    stage.close_gap(1, &[told(1, first, b"first...")]);
    expected[..8].copy_from_slice(b"first...");
    assert_content(&stage.into, &expected);
    let notes = stage.notes();
    let seen: Vec<_> = notes.iter().map(|note| (note.tag, note.status)).collect();
    assert_eq!(seen, [1, 2, 3].map(|tag| (tag, Status::Ok)));
    stage.check();
    assert!(!watchdog.stop());
}

// spec: WIRE-13, LIFE-18
#[test]
fn only_puts_execute_ahead_of_their_turn() {
    let mut watchdog = Watchdog::start(0);
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 5, compare: 0 };
    for action in [Action::Immediate(7), Action::Atomic(add), Action::Notify, Action::Fetch(add)] {
        let mut stage = Stage::new(Rights::all());
        let odd = stage.command(action, 64, 8);
        let put = stage.put(0, 8);
        stage.send_ahead(1, &[told(2, odd, &[]), told(3, put, b"a put...")]);
        assert_eq!((stage.report().early, stage.notes()), (0, vec![]), "{action:?}");
        assert_content(&stage.into, &vec![0; LEN]);
        let first = stage.put(128, 8);
        stage.close_gap(1, &[told(1, first, b"first...")]);
        let notes = stage.notes();
        let puts = notes.iter().filter(|note| note.operation == Operation::Put);
        assert_eq!(puts.count(), 2, "{action:?}: those before and behind are performed");
        let mut found = [0; 8];
        stage.into.read(0, &mut found);
        assert_eq!(&found, b"a put...");
        stage.check();
    }
    assert!(!watchdog.stop());
}

/// The fault of a put: the rights of its peer, or a change of its claim.
type Case = (&'static str, Rights, fn(&mut Claim));

// spec: WIRE-13, CAP-7
#[test]
fn an_early_put_needs_the_same_rights() {
    let mut watchdog = Watchdog::start(0);
    let cases: [Case; 5] = [
        ("no right", Rights::READ, |_| {}),
        ("beyond the end", Rights::all(), |claim| claim.offset = LEN as u64 - 4),
        ("an offset that wraps", Rights::all(), |claim| claim.offset = u64::MAX - 3),
        ("another generation", Rights::all(), |claim| claim.key.generation += 1),
        ("a slot of nobody's", Rights::all(), |claim| claim.key.slot = 400),
    ];
    for (what, rights, change) in cases {
        let mut stage = Stage::new(rights);
        let mut bad = stage.put(0, 8);
        change(&mut bad.claim);
        stage.send_ahead(1, &[told(2, bad, b"harm....")]);
        assert_eq!(stage.report().early, 0, "{what}");
        let notify = Command { action: Action::Notify, ..stage.put(0, 0) };
        stage.close_gap(1, &[told(1, notify, &[])]);
        assert_eq!(stage.notes().len(), 1, "{what}: only the first was no fault");
        assert_content(&stage.into, &vec![0; LEN]);
        stage.check();
    }
    assert!(!watchdog.stop());
}

// spec: WIRE-13
#[test]
fn an_early_put_to_a_revoked_grant_faults_and_does_not_land() {
    let mut watchdog = Watchdog::start(0);
    let mut stage = Stage::new(Rights::all());
    let (first, second) = (stage.put(0, 8), stage.put(8, 8));
    stage.send_ahead(1, &[told(2, second, b"second..")]);
    assert_eq!(stage.report().early, 1);
    let grant = stage.grant.take().expect("it was not revoked");
    stage.world.victim.revoke(grant).expect("a fence");
    stage.into.write(0, &[9; LEN]);
    stage.close_gap(1, &[told(1, first, b"first...")]);
    assert_eq!(stage.notes(), []);
    assert_content(&stage.into, &[9; LEN]);
    stage.check();
    assert!(!watchdog.stop());
}

// spec: WIRE-13
#[test]
fn repeated_early_puts_write_only_their_range() {
    let mut watchdog = Watchdog::start(0);
    let mut stage = Stage::new(Rights::all());
    for ahead in [2, 1, 3] {
        let put = stage.put(u64::from(ahead), 400);
        stage.send_ahead(ahead, &[told(ahead + 1, put, &[ahead as u8; 400])]);
    }
    assert_eq!(stage.report().early, 3);
    let first = stage.put(0, 8);
    stage.close_gap(3, &[told(1, first, b"first...")]);
    assert_eq!(stage.notes().len(), 4);
    let mut behind = [1; LEN - 403];
    stage.into.read(403, &mut behind);
    assert!(behind.iter().all(|byte| *byte == 0));
    stage.check();
    assert!(!watchdog.stop());
}

/// Bytes of a region that is put whole, and of each put but the first of a round.
const LONG: usize = 1 << 19;
const PART: usize = 40_000;
/// Rounds at most, until some frames have come early in many.
const ROUNDS: u64 = 4000;
const ENOUGH: u64 = 8000;

/// Two ports with two paths between them, on which frames overtake each other.
fn two_paths(number: u16) -> (Port, Vec<std::net::SocketAddr>) {
    let plan = "reorder=10%,loss=1%,dup=1%".parse().expect("a plan");
    let options: NetOptions = Protection::Plain.options().faults(plan);
    let mut port = open(number);
    let at = port.open_net(&options.at(ANY).at(ANY)).expect("addresses");
    (port, at)
}

/// Each round puts the whole region, and then a part in it once more, which overlaps what is under
/// way. When the second one's notification is there, all is as if both had come in order.
// spec: WIRE-13, ORD-1, ORD-2, ORD-3
#[test]
fn early_frames_of_two_paths_keep_the_order_of_effects() {
    let mut watchdog = Watchdog::start(0);
    let ((mut near, _), (mut far, at)) = (two_paths(0), two_paths(1));
    let (to_far, to_near) = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| near.connect_net(&at).expect("the far port accepts"));
        let near = far.accept().expect("the near port connects");
        (connecting.join().expect("no panic"), near)
    });
    let region = far.alloc(LONG, RegionOptions::new()).expect("memory");
    far.share(to_near, &region, 0..LONG, Rights::all(), NAME).expect("a grant");
    let has_failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let putting = scope.spawn(|| put_rounds(&mut near, to_far, &has_failed));
        // Who puts waits for an answer, which does not come where a check has failed.
        let _told = TellFailure(&has_failed);
        let mut early = 0;
        for round in 0..ROUNDS {
            check_round(&mut far, &region, round, &putting);
            early = far.links()[0].early;
            let is_over = early >= ENOUGH || round == ROUNDS - 1;
            let answer = if is_over { u64::MAX } else { round };
            far.send_wait(to_near, 0, &answer.to_le_bytes()).expect("it lives");
            if is_over {
                eprintln!("{early} frames were early in {} rounds", round + 1);
                break;
            }
        }
        assert!(early >= ENOUGH, "{early} frames were early");
        while !putting.is_finished() {
            far.progress();
        }
    });
    assert!(!watchdog.stop());
}

/// Tells another thread when this one panics: a scope waits for its threads first.
struct TellFailure<'a>(&'a AtomicBool);

impl Drop for TellFailure<'_> {
    fn drop(&mut self) {
        // Relaxed: here and where it is read, nothing else hangs on it.
        self.0.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// Puts a round after each answer, until it says that that was the last one.
fn put_rounds(near: &mut Port, to_far: PeerId, has_failed: &AtomicBool) {
    let check =
        || assert!(!has_failed.load(Ordering::Relaxed), "the far port's checks have failed");
    let remote = near.accept_region(to_far, NAME).expect("an offer");
    let (mut whole, mut part) = (vec![0; LONG], vec![0; PART]);
    let mut answer = [0; 8];
    for round in 0.. {
        fill(&mut whole, 0, 0, round);
        fill(&mut part, 0, 1, round);
        let inform = PostOptions::new().completer().tag(round as u32);
        for (at, bytes) in [(0, &whole), (place(round), &part)] {
            let put = |port: &mut Port| {
                check();
                port.put(&remote, at, bytes, inform)
            };
            post(near, put).expect("it lives");
        }
        while near.try_recv(&mut answer).expect("a short message").is_none() {
            check();
            near.progress();
            std::thread::yield_now();
        }
        if u64::from_le_bytes(answer) == u64::MAX {
            return;
        }
    }
}

/// Where the second put of a round goes.
fn place(round: u64) -> u64 {
    round * 7919 % (LONG - PART) as u64
}

fn check_round(far: &mut Port, region: &Region, round: u64, putting: &ScopedJoinHandle<'_, ()>) {
    let mut expected = vec![0; LONG];
    fill(&mut expected, 0, 0, round);
    let at = place(round) as usize;
    // With the first notification there is all that the second put does not write.
    next_note(far, round, putting);
    let mut found = vec![0; LONG];
    region.read(0, &mut found);
    assert!(found[..at] == expected[..at], "round {round}: before its notification");
    let end = at + PART;
    assert!(found[end..] == expected[end..], "round {round}: before its notification");
    next_note(far, round, putting);
    fill(&mut expected[at..end], 0, 1, round);
    region.read(0, &mut found);
    assert!(found == expected, "round {round}: the later put stays");
}

fn next_note(far: &mut Port, round: u64, putting: &ScopedJoinHandle<'_, ()>) {
    let note = loop {
        assert!(!putting.is_finished(), "round {round}: the near port has failed");
        far.progress();
        if let Some(note) = far.poll_notification() {
            break note;
        }
        std::thread::yield_now();
    };
    assert_eq!((note.tag, note.status), (round as u32, Status::Ok));
}

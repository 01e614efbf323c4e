//! Liars among endpoints that write anything for a while, that count wrongly, or that lie as soon
//! as they meet.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "endpoint_hostile/scene.rs"]
mod scene;

use attacker::{
    Attacker, Begun, HELLO, Lane, Layout, Parts, REFUSE, RING, Random, VERSION, WELCOME,
    control_socket, receive, sealed_file, send,
};
use ayre::collective::{Combine, Number};
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{
    Completion, MemoryRegion, MemoryRegions, PostedReceive, RawEndpoint, RemoteAddress, RmaUpdate,
    RmaWrite, Sent, Spans,
};
use ayre::error::{DisconnectReason, Refusal};
use ayre::{Busy, EndpointOptions, Fault, PostError, Rights, Spin};
use ayre_proto::envelope::{Envelope, Record};
use ayre_proto::lane::Kind;
use ayre_proto::rma::{Calculation, RmaRecord};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{accept, bind, listen};
use scene::{
    Guarded, Scene, address_of, call, envelope, hello, outgoing, poll_until, say, say_touch,
    socket_of, span,
};

/// Records that a liar writes at most.
const RECORDS: u64 = 60;
const SCRIPTS: u64 = 2000;
const ROOM: usize = 700;

/// A word that may name something, say a length or a place, or goes wrong.
fn number(random: &mut Random) -> u64 {
    let near = random.below(4) * 64;
    let small = random.below(3);
    let nasty = random.nasty();
    let touch = small | 1 << 63;
    random.pick(&[small, small, small, touch, near, 600, 700, 16000, nasty])
}

fn any_touch(random: &mut Random) -> RmaRecord {
    let [key, address, a, b, c, d] = [0; 6].map(|_: u64| number(random));
    let data = (random.below(2) == 0).then_some(a);
    match random.below(5) {
        0 => RmaRecord::WriteHere { key, address, id: a, before: b, data },
        1 => RmaRecord::WritePart { key, address, len: a, before: b, count: c, place: d },
        2 => RmaRecord::WritePartHere { key, address, len: a, before: b },
        3 => RmaRecord::Read { key, address, id: a, len: b },
        _ => {
            let (op, number) = (random.pick(&Combine::ALL), random.pick(&Number::ALL));
            let (count, fetches) = (random.below(4) as u16, random.below(2) == 0);
            let what = Calculation { op, number, count, fetches };
            RmaRecord::Update { key, address, id: a, what, data }
        }
    }
}

fn any_record(random: &mut Random) -> Record {
    let mut some = || (random.below(2) == 0).then(|| random.below(3));
    let envelope = Envelope { tag: some(), data: some() };
    let answer = some();
    let [a, b, c] = [0; 3].map(|_: u64| number(random));
    match random.below(10) {
        0 => Record::Short { envelope, answer },
        1 | 2 => Record::Long { envelope, answer, len: a, place: b },
        3 => Record::Rts { envelope, id: a, answered: answer.is_some(), len: b, address: c },
        4 => Record::Cts { id: a, to: b, len: c },
        5 => Record::Fragment { to: a, len: b, place: c },
        6 => Record::FragmentHere { to: a },
        7 => Record::Refused { id: a, fault: Fault::Bounds },
        8 => Record::Ahead { longest: a },
        _ => Record::Fin { id: a },
    }
}

/// One record, or a cursor, or any line.
fn lie(liar: &mut Attacker, random: &mut Random) {
    let bytes: Vec<u64> = (0..random.below(100)).map(|_| random.word()).collect();
    match random.below(12) {
        0 => {
            let control = random.pick(&[0, RING]);
            liar.memory.store(liar.control_in(control), number(random));
        }
        1 => {
            let (tag, len) = (random.below(256) as u32, random.below(4096) as u32);
            let words: Vec<u64> = (0..512).map(|_| number(random)).collect();
            liar.put_claim(Lane::Messages, (Kind::GatedMessage, len, tag), &words);
        }
        2..5 => {
            let touch = any_touch(random);
            let count = match touch {
                RmaRecord::Update { what, .. } => (what.operand_len() + what.comparand_len()) / 8,
                RmaRecord::WriteHere { .. } | RmaRecord::WritePartHere { .. } => bytes.len(),
                _ => 0,
            };
            say_touch(liar, &touch, &bytes[..count.min(bytes.len())]);
        }
        _ => {
            let record = any_record(random);
            let has_bytes = matches!(record, Record::Short { .. } | Record::FragmentHere { .. });
            say(liar, &record, if has_bytes { &bytes } else { &[] });
        }
    }
}

/// One of each that touches a window of a liar's; says how many.
fn touch_each(victim: &mut RawEndpoint, remote: RemoteId, into: &mut Guarded) -> usize {
    let (spot, mut one) = (RemoteAddress { remote, key: 1, address: 0 }, [1; 8]);
    let context = 100;
    victim.read(spot, into.spans(), context).expect("there is room");
    let write = RmaWrite { bytes: span(&mut one), data: None, context, inject: true };
    assert_eq!(victim.write(spot, &write), Ok(Sent::Completed));
    let (op, number, compare) = (Combine::Sum, Number::U64, Spans::default());
    let operand = span(&mut one);
    let update = RmaUpdate { op, number, operand, compare, result: None, data: None, context };
    victim.update(spot, &update).expect("there is room");
    3
}

/// A liar comes, and goes when it has been found out or has nothing to say any more.
fn one_script(victim: &mut RawEndpoint, others: &mut Vec<Completion>, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let name = [seed, 0x11a5];
    let begun = call(victim, hello(name));
    let remote = victim.remote(&address_of(victim, name)).expect("there is room");
    let mut ends = Vec::new();
    poll_until(victim, &mut ends, |_, _| begun.is_answered());
    let mut liar = begun.finish();
    let mut rooms: Vec<_> = (0..6).map(|_| Guarded::new(ROOM)).collect();
    for (index, room) in rooms.iter_mut().enumerate() {
        let tag = [Some((0, 3)), None][index % 2];
        let (into, context) = (if index < 3 { room.spans() } else { room.parts() }, 100);
        let source = Some(remote);
        victim
            .receive(PostedReceive { source, tag, into, context, many: None })
            .expect("there is room");
    }
    let mut bytes = [vec![1; 50_000], vec![2; 300]];
    for (index, bytes) in bytes.iter_mut().enumerate() {
        let mut message = outgoing(bytes, 100);
        message.delivered = index == 1;
        assert_eq!(victim.send(remote, &message), Ok(Sent::Pending));
    }
    let (windows, mut touched) = (MemoryRegions::new(), [Guarded::new(ROOM), Guarded::new(ROOM)]);
    let touches = touch_each(victim, remote, &mut touched[0]);
    let memory = vec![touched[1].whole()];
    let window = MemoryRegion { key: 1, base: 0, memory, rights: Rights::all() };
    windows.expose(window).expect("there is room");
    victim.share(&windows);
    let before = victim.counters().malformed();
    for _ in 0..RECORDS {
        lie(&mut liar, &mut random);
        (0..4).for_each(|_| {
            victim.progress(|end| ends.push(end));
        });
    }
    let malformed = victim.counters().malformed() - before;
    assert!(malformed <= 1, "seed {seed}: counted once");
    drop(liar);
    assert!(victim.forget(remote));
    for _ in 0..4 {
        victim.progress(|end| ends.push(end));
    }
    windows.withdraw(1);
    rooms.iter().chain(&touched).for_each(|room| room.check(ROOM));
    let (ours, rest): (Vec<_>, Vec<_>) = ends.into_iter().partition(|end| end.context == 100);
    others.extend(rest);
    assert_eq!(ours.len(), rooms.len() + bytes.len() + touches, "seed {seed}: each ends once");
    malformed == 1
}

// spec: ENV-2, ENV-16, ENV-17
#[test]
fn any_records_harm_their_writer_only() {
    let mut scene = Scene::new(false);
    let (mut found_out, mut ends) = (0, Vec::new());
    for seed in 1..=SCRIPTS {
        found_out += u64::from(one_script(&mut scene.victim, &mut ends, seed));
    }
    assert!(found_out > SCRIPTS / 2, "{found_out} of {SCRIPTS} were found out");
    scene.ends.append(&mut ends);
    scene.check_honest("after all scripts");
}

// spec: ENV-13
#[test]
fn a_cursor_that_cannot_be_gives_no_room() {
    let mut scene = Scene::new(false);
    let Scene { victim, liar, remote, .. } = &mut scene;
    let mut bytes = vec![3; 16_000];
    let mut send = |victim: &mut RawEndpoint| victim.send(*remote, &outgoing(&mut bytes, 70));
    let mut sent = 0;
    while send(victim) == Ok(Sent::Completed) {
        sent += 1;
    }
    assert_eq!(sent, liar.layout.ring / 16_000, "as many as find room");
    let busy = Err(PostError::Busy(Busy::MessageLaneFull));
    let cursor = liar.control_in(RING);
    for wrong in [sent * 16_000 + 64, 1 << 18, 1 << 63, u64::MAX, u64::MAX - 63] {
        liar.memory.store(cursor, wrong);
        assert_eq!(send(victim), busy, "{wrong:#x}");
    }
    liar.memory.store(cursor, 32_000);
    assert_eq!(send(victim), Ok(Sent::Completed), "two have been taken");
    liar.memory.store(cursor, 0);
    let mut more = 0;
    while send(victim) == Ok(Sent::Completed) {
        more += 1;
    }
    assert!(more <= 1, "what was taken stays taken, and nothing else is");
    for line in 0..8 {
        assert!(liar.memory.load(liar.control_out(line)) < 64, "nothing behind the ring");
    }
    scene.check_honest("after the cursors");
}

/// Code and detail of the refusal that a caller has been sent.
fn refusal_to(begun: &Begun) -> [u64; 2] {
    let (words, _) = receive(&begun.control).expect("a reason");
    assert_eq!(words[..2], [REFUSE, VERSION]);
    [words[2], words[3]]
}

// spec: ENV-6, LIFE-27
#[test]
fn callers_that_are_none_are_turned_away() {
    let mut scene = Scene::new(false);
    let [_, low, high] = scene.victim.address().local_words();
    let own = [low, high];
    let hellos = [
        (hello(own), Refusal::Taken),
        ([HELLO, VERSION, 5, 1, 1, 0, 0, 0], Refusal::Kind),
        ([HELLO, VERSION, 5, 1, 1, 9, 9, 0], Refusal::Unknown),
        ([HELLO, VERSION - 1, u64::MAX, 1, 1, 9, 9, 0], Refusal::Version(VERSION)),
        ([WELCOME, VERSION, u64::MAX, 1, 1, 128, 64, 1 << 18], Refusal::Unknown),
        // Of one that is connected already.
        (hello([0x11a5, 0x11a5]), Refusal::Taken),
    ];
    for (index, (words, why)) in hellos.into_iter().enumerate() {
        let begun = call(&scene.victim, words);
        poll_until(&mut scene.victim, &mut scene.ends, |_, _| begun.is_answered());
        assert_eq!(refusal_to(&begun), why.to_words(), "{index}");
        assert!(receive(&begun.control).is_none(), "{index} is hung up on");
        assert_eq!(scene.malformed(), (index as u64 + 1).min(5));
    }
    // Those that say nothing make room for those that do.
    let silent: Vec<_> = (0..100)
        .map(|_| {
            let socket = control_socket();
            let at = socket_of(&scene.victim.address());
            rustix::net::connect(&socket, &at).expect("the victim listens");
            socket
        })
        .collect();
    let begun = call(&scene.victim, hello([1, 1]));
    poll_until(&mut scene.victim, &mut scene.ends, |_, _| begun.is_answered());
    drop((begun.finish(), silent));
    scene.check_honest("after the callers");
}

/// Calls a liar that answers with these sizes.
fn welcome(victim: &mut RawEndpoint, name: [u64; 2], layout: Layout) -> Result<Sent, PostError> {
    let (page, file) = (Parts::new().page, sealed_file(layout.file_bytes()));
    let Layout { paired, response, ring } = layout;
    let answer = [WELCOME, VERSION, u64::MAX, 1, 1, paired, response, ring];
    answered(victim, name, (answer, &[page.as_fd(), file.as_fd()])).1
}

/// Calls a liar that answers so: what becomes of a message to it.
fn answered(
    victim: &mut RawEndpoint,
    name: [u64; 2],
    (words, fds): ([u64; 8], &[BorrowedFd<'_>]),
) -> (RemoteId, Result<Sent, PostError>) {
    let address = address_of(victim, name);
    let listener = control_socket();
    bind(&listener, &socket_of(&address)).expect("a name that is free");
    listen(&listener, 1).expect("a listening socket");
    let remote: RemoteId = victim.remote(&address).expect("there is room");
    let mut bytes = [1];
    let mut post = |victim: &mut RawEndpoint| victim.send(remote, &outgoing(&mut bytes, 60));
    assert_eq!(post(victim), Err(PostError::Busy(Busy::Connecting)));
    let socket = accept(&listener).expect("the victim's call");
    let (hello, _parts) = receive(&socket).expect("a hello");
    assert_eq!(hello[..4], [HELLO, VERSION, u64::MAX, 1]);
    assert!(send(&socket, words, fds), "the victim is there");
    for _ in 0..5000 {
        victim.progress(|_| ());
        match post(victim) {
            Err(PostError::Busy(_)) => {}
            other => return (remote, other),
        }
    }
    panic!("the victim makes up its mind");
}

// spec: ENV-6, ENV-34, LIFE-27, LANE-14
#[test]
fn a_refused_call_ends_with_its_reason() {
    let options = EndpointOptions::new().spin(Spin::SHARED).local();
    let mut victim = RawEndpoint::open_with(&options).unwrap();
    let ours = VERSION;
    let reasons = [
        (Refusal::User(7), DisconnectReason::Refused(Refusal::User(7))),
        (Refusal::Full(1024), DisconnectReason::Refused(Refusal::Full(1024))),
        (Refusal::Resources(24), DisconnectReason::Refused(Refusal::Resources(24))),
        (Refusal::Version(6), DisconnectReason::Version { theirs: 6, ours }),
    ];
    for (index, (refusal, reason)) in reasons.into_iter().enumerate() {
        let [code, detail] = refusal.to_words();
        let version = if let Refusal::Version(theirs) = refusal { theirs } else { ours };
        let words = [REFUSE, version, code, detail, 0, 0, 0, 0];
        let (remote, sent) = answered(&mut victim, [index as u64, 3], (words, &[]));
        assert_eq!(sent, Err(PostError::Fault(Fault::Refused)), "{refusal}");
        assert_eq!(victim.reason(remote), Some(&reason));
        assert!(victim.forget(remote) && victim.reason(remote).is_none());
    }
}

// spec: ENV-6
#[test]
fn a_ring_that_is_too_short_is_refused() {
    let options = EndpointOptions::new().spin(Spin::SHARED).ring(1 << 18);
    let mut victim = RawEndpoint::open_with(&options).expect("an endpoint");
    let layout = |ring| Layout { paired: 128, response: 64, ring };
    assert_eq!(welcome(&mut victim, [1, 2], layout(1 << 15)), Ok(Sent::Completed));
    for (index, ring) in [0, 1 << 12, 1 << 14].into_iter().enumerate() {
        let refused = welcome(&mut victim, [index as u64 + 2, 2], layout(ring));
        assert_eq!(refused, Err(PostError::Fault(Fault::Malformed)), "{ring}");
        assert_eq!(victim.counters().malformed(), index as u64 + 1);
    }
}

// spec: ENV-17
#[test]
fn a_peer_that_broke_the_protocol_is_not_heard_again() {
    let mut scene = Scene::new(false);
    say(&mut scene.liar, &Record::Fin { id: 99 }, &[]);
    say(&mut scene.liar, &Record::Short { envelope: envelope(6), answer: None }, &[1]);
    scene.check_ended("what is good behind it is not taken", 0);
    let begun = call(&scene.victim, hello([0x11a5, 0x11a5]));
    poll_until(&mut scene.victim, &mut scene.ends, |_, _| begun.is_answered());
    assert_eq!(refusal_to(&begun), Refusal::Unknown.to_words());
    assert!(receive(&begun.control).is_none(), "it is hung up on");
}

//! Single promises, step by step.
use super::node::{MAP, Node, SINK, TRIPLE};
use super::world::World;
use ayre_proto::stream::{
    Effects, Entry, EntryAnswer, FailureReason, Message, Options, StreamEnd, StreamFailure,
    StreamName, Way, weight,
};
use ayre_proto::units::PeerId;

const A: PeerId = PeerId(0);
const B: PeerId = PeerId(1);
const C: PeerId = PeerId(2);

fn world(streams: u16, window: u8) -> World {
    World::new(1, 3, Options { streams, entries: streams, window })
}

fn name(peer: PeerId, number: u32) -> StreamName {
    StreamName { peer, number }
}

/// To a stage; its first argument is told to the sink as the pipe.
fn entry(peer: PeerId, number: u32, stage: u32) -> Entry {
    let arguments = [7, u64::from(number), 0, 0];
    let way = Way { stage, arguments, goes_on: stage != SINK };
    Entry { to: name(peer, number), way, lasts: true }
}

/// The port itself sets an entry.
fn lay(world: &mut World, at: PeerId, from: StreamName, to: Entry) {
    let request = world.ask(at, at, from, Ok(to));
    assert_eq!(world.answers[&request], EntryAnswer::Done);
}

/// Pushes as many as are taken while only some ports get on.
fn push(world: &mut World, at: PeerId, place: u16, awake: &[PeerId], most: u64) -> u64 {
    let mut pushed = 0;
    for _ in 0..1000 {
        let node = world.node(at);
        if pushed < most && node.side.emitted(place).is_none() {
            pushed += 1;
            node.side.push(place, 2 * pushed);
            node.streams.feed(place);
        }
        for port in awake {
            world.advance(*port, 10);
        }
        for (from, to) in world.busy() {
            world.deliver(from, to).expect("nobody lies");
        }
    }
    pushed
}

/// A recycled item is next, before all others that have come, item by item.
// spec: PIPE-10
#[test]
fn recycled_items_are_next() {
    let mut world = world(8, 8);
    lay(&mut world, A, name(A, 1), entry(B, 2, TRIPLE));
    lay(&mut world, B, name(A, 2), entry(B, 3, MAP));
    lay(&mut world, B, name(B, 3), entry(B, 4, MAP));
    lay(&mut world, B, name(B, 4), entry(C, 5, SINK));
    lay(&mut world, A, name(A, 6), entry(B, 7, SINK));
    let (first, other) = {
        let streams = &mut world.node(A).streams;
        (streams.open(1).expect("an entry"), streams.open(6).expect("an entry"))
    };
    push(&mut world, A, first, &[A], 1);
    push(&mut world, A, other, &[A], 1);
    push(&mut world, A, first, &[A], 1);
    world.settle();
    let stages: Vec<_> = world.node(B).side.runs.iter().map(|(stage, _)| *stage).collect();
    let chain = [TRIPLE, MAP, MAP, MAP, MAP, MAP, MAP];
    assert_eq!(stages, [&chain[..], &[SINK], &chain].concat());
}

/// A poll takes its number of turns and no more, however much a stage multiplies.
// spec: PIPE-11
#[test]
fn turns_are_bounded() {
    let mut world = world(8, 8);
    lay(&mut world, A, name(A, 1), entry(A, 2, TRIPLE));
    lay(&mut world, A, name(A, 2), entry(A, 3, TRIPLE));
    lay(&mut world, A, name(A, 3), entry(A, 4, TRIPLE));
    lay(&mut world, A, name(A, 4), entry(A, 5, SINK));
    let node = world.node(A);
    let place = node.streams.open(1).expect("an entry");
    node.side.push(place, 2);
    node.streams.feed(place);
    assert!(node.advance(10), "there is more to do");
    assert!((1..=20).contains(&node.side.runs.len()), "{:?}", node.side.runs);
    while node.advance(10) {}
    assert_eq!(node.side.sinks[&(5, 0)].values.len(), 27);
}

/// No stream is fed twice: so there are no circles, here or through other ports.
// spec: PIPE-5, PIPE-11
#[test]
fn cyclic_streams_fail() {
    let mut world = world(8, 8);
    lay(&mut world, A, name(A, 1), entry(B, 2, MAP));
    lay(&mut world, B, name(A, 2), entry(A, 3, MAP));
    let again = world.ask(A, A, name(B, 3), Ok(entry(B, 2, MAP)));
    assert_eq!(world.answers[&again], EntryAnswer::Taken, "two entries lead to one stream");
    lay(&mut world, A, name(B, 3), entry(A, 1, MAP));
    let place = world.node(A).streams.open(1).expect("an entry");
    push(&mut world, A, place, &[], 1);
    world.settle();
    let taken = StreamFailure { why: FailureReason::Taken, at: A };
    assert_eq!(world.node(A).side.overs[&1], Err(taken));
    assert!(world.nodes.values().all(|node| node.streams.is_empty()));
}

/// A sink that takes nothing stops its source, through the stages between; other streams through
/// the same ports go on. Nothing is lost.
// spec: PIPE-8, PIPE-9, PIPE-12
#[test]
fn a_slow_sink_stops_its_source() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, MAP));
    lay(&mut world, B, name(A, 2), entry(C, 3, SINK));
    lay(&mut world, A, name(A, 4), entry(B, 5, MAP));
    lay(&mut world, B, name(A, 5), entry(B, 6, SINK));
    let place = world.node(A).streams.open(1).expect("an entry");
    let other = world.node(A).streams.open(4).expect("an entry");
    let pushed = push(&mut world, A, place, &[A, B], 1000);
    assert!((8..=10).contains(&pushed), "two windows, and what waits between: {pushed}");
    assert!(world.nodes.values().all(|node| node.side.kept() <= 5));
    assert_eq!(push(&mut world, A, other, &[A, B], 100), 100);
    assert_eq!(world.node(B).side.sinks[&(6, 0)].values.len(), 100);
    world.settle();
    assert_eq!(world.node(C).side.sinks[&(3, 0)].values.len() as u64, pushed);
}

/// Items sent before an entry is replaced take the old way, waiting ones the new one; the old sink
/// hears that it was cut.
// spec: PIPE-7
#[test]
fn a_cut_is_clean() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, SINK));
    let place = world.node(A).streams.open(1).expect("an entry");
    let pushed = push(&mut world, A, place, &[A], 1000);
    lay(&mut world, A, name(A, 1), entry(C, 3, SINK));
    world.node(A).streams.close(place);
    world.settle();
    let old = world.node(B).side.sinks[&(2, 0)].clone();
    let new = world.node(C).side.sinks[&(3, 0)].clone();
    assert_eq!((old.ends, new.ends), (vec![StreamEnd::Cut], vec![StreamEnd::Closed]));
    assert_eq!(old.values.len() as u64, pushed - 1, "one has waited");
    let all: Vec<_> = old.values.into_iter().chain(new.values).collect();
    assert!(all.into_iter().eq((1..=pushed).map(|number| 2 * number)));
    assert_eq!(world.node(A).side.overs[&1], Ok(()));
}

/// Where an entry was cleared, what comes next ends its stream: at the source and at the sink.
// spec: PIPE-7, PIPE-14
#[test]
fn a_stream_through_a_cleared_entry_fails() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, MAP));
    lay(&mut world, B, name(A, 2), entry(C, 3, SINK));
    let place = world.node(A).streams.open(1).expect("an entry");
    push(&mut world, A, place, &[A, B, C], 2);
    let cleared = world.ask(B, B, name(A, 2), Err(true));
    assert_eq!(world.answers[&cleared], EntryAnswer::Taken, "it is in use");
    let cleared = world.ask(B, B, name(A, 2), Err(false));
    assert_eq!(world.answers[&cleared], EntryAnswer::Done);
    world.settle();
    assert_eq!(world.node(C).side.sinks[&(3, 0)].ends, [StreamEnd::Cut]);
    push(&mut world, A, place, &[A, B, C], 1);
    let nowhere = StreamFailure { why: FailureReason::Nowhere, at: B };
    assert_eq!(world.node(A).side.overs[&1], Err(nowhere));
    assert_eq!(world.node(A).streams.open(9), Err(FailureReason::Nowhere));
    // Without any item, too: the stage was not to be the last one.
    let place = world.node(A).streams.open(1).expect("an entry that lasts");
    world.node(A).side.overs.clear();
    world.node(A).streams.close(place);
    world.settle();
    assert_eq!(world.node(A).side.overs[&1], Err(nowhere));
}

/// The port that has set an entry may change it, and so may the owner of the directory. Others may
/// not, and nobody may if the owner says so.
// spec: PIPE-6
#[test]
fn entries_have_owners() {
    let mut world = world(8, 4);
    let steps = [
        (B, Ok(entry(B, 2, SINK)), EntryAnswer::Done),
        (C, Ok(entry(C, 2, SINK)), EntryAnswer::Denied),
        (C, Err(false), EntryAnswer::Denied),
        (B, Ok(entry(C, 4, SINK)), EntryAnswer::Done),
        (A, Err(false), EntryAnswer::Done),
        (B, Err(false), EntryAnswer::Unknown),
    ];
    for (by, what, answer) in steps {
        let request = world.ask(by, A, name(A, 1), what);
        world.settle();
        assert_eq!(world.answers[&request], answer, "{by:?} {what:?}");
    }
    world.node(A).streams.let_peers_set(false);
    let refused = world.ask(B, A, name(A, 1), Ok(entry(B, 2, SINK)));
    world.settle();
    assert_eq!(world.answers[&refused], EntryAnswer::Denied);
    lay(&mut world, A, name(A, 1), entry(B, 2, SINK));
}

/// One peer takes no more than it leaves to the others: entries, and streams.
// spec: PIPE-16
#[test]
fn one_peer_leaves_room() {
    let mut world = world(8, 4);
    let mut answers = vec![];
    for number in 0..6 {
        let request = world.ask(B, A, name(B, number), Ok(entry(C, number, SINK)));
        world.settle();
        answers.push(world.answers[&request]);
    }
    let (done, full) = (EntryAnswer::Done, EntryAnswer::Full);
    assert_eq!(answers, [done, done, done, done, full, full]);
    assert_eq!(world.node(A).streams.entries().count(), 4);

    for number in 0..6 {
        lay(&mut world, B, name(B, number), entry(A, number, SINK));
        let place = world.node(B).streams.open(number).expect("an entry");
        push(&mut world, B, place, &[A, B], 1);
    }
    let full = Err(StreamFailure { why: FailureReason::Full, at: B });
    let overs = &world.node(B).side.overs;
    assert_eq!(overs.iter().collect::<Vec<_>>(), [(&4, &full), (&5, &full)], "hops to one peer");
    assert_eq!(world.node(A).streams.len(), (4, 0));
}

/// A stage that nobody has, and a port that nobody knows.
// spec: PIPE-14
#[test]
fn a_stream_to_a_missing_stage_or_port_fails() {
    let mut world = world(8, 4);
    for (number, to, why, at) in [
        (1, entry(B, 2, 77), FailureReason::UnknownStage, B),
        (2, entry(A, 3, 77), FailureReason::UnknownStage, A),
        (3, entry(PeerId(9), 4, SINK), FailureReason::Unreachable, A),
    ] {
        world.node(A).side.gone.insert(PeerId(9));
        lay(&mut world, A, name(A, number), to);
        let place = world.node(A).streams.open(number).expect("an entry");
        push(&mut world, A, place, &[A, B], 1);
        assert_eq!(world.node(A).side.overs[&number], Err(StreamFailure { why, at }));
    }
}

/// A port that dies ends idle streams that would go through it, and their entries.
// spec: PIPE-15
#[test]
fn deaths_are_heard_by_idle_streams() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, MAP));
    lay(&mut world, A, name(C, 5), entry(B, 6, MAP));
    world.node(A).streams.open(1).expect("an entry");
    world.kill(C);
    world.settle();
    assert_eq!(world.node(A).streams.entries().count(), 1, "what came from there");
    world.kill(B);
    world.settle();
    let died = StreamFailure { why: FailureReason::PeerDied, at: B };
    assert_eq!(world.node(A).side.overs[&1], Err(died));
    assert_eq!(world.node(A).streams.entries().count(), 0);
}

/// A port that has died comes back under its number while a stream that it has fed still waits. The
/// new port has nothing to do with the old stream, nor has its entry.
// spec: PIPE-3, PIPE-15
#[test]
fn a_port_that_returns_is_another_one() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, MAP));
    lay(&mut world, B, name(A, 2), entry(C, 3, SINK));
    let place = world.node(A).streams.open(1).expect("an entry");
    let pushed = push(&mut world, A, place, &[A, B], 1000);
    let Node { streams, side } = world.node(B);
    streams.on_death(A, side);
    let again = Message::Open { number: 2, way: entry(B, 2, MAP).way };
    assert_eq!(streams.on_message(A, again, side), Ok(()), "the number is free");
    lay(&mut world, B, name(A, 2), entry(C, 4, SINK));
    let died = StreamFailure { why: FailureReason::PeerDied, at: A };
    world.settle();
    let sinks = &world.node(C).side.sinks;
    assert_eq!(sinks[&(3, 0)].ends, [StreamEnd::Failed(died)]);
    assert!((4..=pushed as usize).contains(&sinks[&(3, 0)].values.len()), "what came");
    assert!(!sinks.contains_key(&(4, 0)), "another's entry");
    assert_eq!(world.node(B).streams.len(), (1, 0), "the new one");
}

/// A stream that has died has no way yet. Its records go nowhere, and not where those of the new
/// stream go.
// spec: PIPE-15
#[test]
fn a_dead_port_has_no_entry() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, MAP));
    lay(&mut world, B, name(A, 2), entry(C, 3, SINK));
    let place = world.node(A).streams.open(1).expect("an entry");
    push(&mut world, A, place, &[A], 2);
    let Node { streams, side } = world.node(B);
    streams.on_death(A, side);
    lay(&mut world, B, name(A, 2), entry(C, 4, SINK));
    world.settle();
    assert!(world.node(C).side.sinks.is_empty());
    assert!(world.node(B).streams.is_empty());
}

/// An entry does not lead where a stream leads that was cut and is not over yet.
// spec: PIPE-5
#[test]
fn a_number_is_free_when_its_stream_is_over() {
    let mut world = world(8, 4);
    lay(&mut world, A, name(A, 1), entry(B, 2, SINK));
    let place = world.node(A).streams.open(1).expect("an entry");
    push(&mut world, A, place, &[A], 3);
    lay(&mut world, A, name(A, 1), entry(C, 3, SINK));
    let early = world.ask(A, A, name(A, 1), Ok(entry(B, 2, SINK)));
    assert_eq!(world.answers[&early], EntryAnswer::Taken);
    world.settle();
    lay(&mut world, A, name(A, 1), entry(B, 2, SINK));
    world.node(A).streams.close(place);
    world.settle();
    assert_eq!(world.node(B).side.sinks[&(2, 0)].ends, [StreamEnd::Cut, StreamEnd::Closed]);
}

/// Longer items count for more, but two always fit into a window.
// spec: PIPE-8
#[test]
fn weights() {
    let weights: Vec<_> = [0, 1023, 1024, 50_000, 1 << 20].into_iter().map(weight).collect();
    assert_eq!(weights, [1, 1, 2, 49, 64]);
}

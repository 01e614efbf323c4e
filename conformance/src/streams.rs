//! Streams: pipelines through stages at several ports, against what one process makes of the items.
use crate::messenger::{Active, Call, Entry, Flow, Hop, Messenger, Messengers, Stage, Streams};
use crate::port::Port;
use crate::seed::Dice;
use crate::world::{ROUNDS, join};
use ayre::active::Handler;
use ayre::stream::{
    EntryAnswer, FailureReason, ITEM_MAX, Input, PushError, StreamEnd, StreamError, StreamFailure,
    StreamName,
};
use ayre::{PeerId, ReceiveError};

/// The state of a member.
#[derive(Default)]
pub(crate) struct Seen {
    /// The items that have come to its sinks, by the sink's number.
    items: Vec<(u64, Vec<u8>)>,
    ends: Vec<(u64, StreamEnd)>,
    /// Items that were passed on.
    passed: usize,
    /// How often it was told that something is done.
    pub(crate) done: usize,
}

impl Seen {
    fn of(&self, number: u64) -> Vec<&[u8]> {
        let its = self.items.iter().filter(|(sink, _)| *sink == number);
        its.map(|(_, item)| &item[..]).collect()
    }

    fn end(&self, number: u64) -> Option<StreamEnd> {
        let mut ends = self.ends.iter().filter(|(sink, _)| *sink == number);
        let end = ends.next().map(|(_, end)| *end);
        assert_eq!(ends.next(), None, "one end");
        end
    }
}

pub(crate) type Member<F> = <F as Messengers>::Messenger<Seen>;

const APPEND: Stage = Stage::named("append");
const TWICE: Stage = Stage::named("twice");
const TOTAL: Stage = Stage::named("total");
const PICKY: Stage = Stage::named("picky");
pub(crate) const SINK: Stage = Stage::named("sink");
pub(crate) const DONE: Handler<0> = Handler::named("done");

/// Adds a byte to each item: which one, it is told.
fn append(seen: &mut Seen, flow: &mut dyn Flow, input: Input<'_>) {
    if let Input::Item(item) = input {
        seen.passed += 1;
        flow.emit([item, &[flow.arguments()[0] as u8]].concat());
    }
}

fn twice(_: &mut Seen, flow: &mut dyn Flow, input: Input<'_>) {
    if let Input::Item(item) = input {
        flow.emit([item, b"a"].concat());
        flow.emit([item, b"b"].concat());
    }
}

/// Says at the end how many have passed.
fn total() -> impl FnMut(&mut Seen, &mut dyn Flow, Input<'_>) {
    let mut items = std::collections::HashMap::<StreamName, u64>::new();
    move |_, flow, input| match input {
        Input::Item(_) => *items.entry(flow.name()).or_default() += 1,
        Input::End(_) => {
            let items = items.remove(&flow.name()).unwrap_or(0);
            flow.emit(items.to_le_bytes().to_vec());
        }
    }
}

fn picky(_: &mut Seen, flow: &mut dyn Flow, input: Input<'_>) {
    match input {
        // Without the hook's noise.
        Input::Item(b"bad") => std::panic::resume_unwind(Box::new("planted")),
        Input::Item(item) => flow.emit(item.to_vec()),
        Input::End(_) => {}
    }
}

fn sink(seen: &mut Seen, flow: &mut dyn Flow, input: Input<'_>) {
    let number = flow.arguments()[0];
    match input {
        Input::Item(item) => seen.items.push((number, item.to_vec())),
        Input::End(end) => seen.ends.push((number, end)),
    }
}

pub(crate) fn member<F: Messengers>(port: F::Port) -> Member<F> {
    let mut member = Member::<F>::new(port);
    assert_eq!(member.stage("append", append).expect("a new name"), APPEND.id());
    member.stage("twice", twice).expect("a new name");
    member.stage("total", total()).expect("a new name");
    member.stage("picky", picky).expect("a new name");
    member.stage("sink", sink).expect("a new name");
    let done = |seen: &mut Seen, _: &mut dyn Call, []: [u64; 0], _: &[u8]| seen.done += 1;
    assert_eq!(member.register("done", done).expect("a new name"), DONE);
    member
}

/// Runs a function at each of `members` members, with its number. Returns the state of each.
fn all<F: Messengers>(
    fabric: F,
    members: u16,
    run: impl Fn(&mut Member<F>, &mut Seen, u16) + Sync,
) -> Vec<Seen> {
    let run = &run;
    let one = move |port: F::Port| {
        let own = port.rank() as u16;
        let (mut member, mut seen) = (member::<F>(port), Seen::default());
        member.sync(&mut seen).expect("all live");
        run(&mut member, &mut seen, own);
        member.sync(&mut seen).expect("nothing but deaths, which it survives");
        seen
    };
    std::thread::scope(|scope| {
        let start = |port| scope.spawn(move || one(port));
        let members: Vec<_> = fabric.mesh(members).into_iter().map(start).collect();
        members.into_iter().map(join).collect()
    })
}

/// One member does something, while the others serve until it has.
fn first_of<F: Messengers>(
    fabric: F,
    members: u16,
    run: impl Fn(&mut Member<F>, &mut Seen) + Sync,
) -> Vec<Seen> {
    all(fabric, members, |member, seen, own| {
        if own > 0 {
            return member.serve_while(seen, |seen| seen.done == 0).expect("all live");
        }
        run(member, seen);
        for peer in 1..members {
            member.call(seen, PeerId(peer), DONE, [], b"").expect("it lives");
        }
    })
}

fn hop(peer: u16, stage: Stage, argument: u64) -> Hop {
    Hop::new(PeerId(peer), stage).arguments([argument, 0, 0, 0])
}

fn bytes(len: usize, number: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7 + at / 251) as u8).collect()
}

/// Items of all sizes go through stages at several ports, several times through the same ones. They
/// come to the sink once and in order, and an item that a stage emits at the end comes before the
/// end.
// spec: PIPE-1, PIPE-2, PIPE-3, PIPE-4, PIPE-10, PIPE-13, PIPE-18
pub fn items_go_through_all_stages<F: Messengers>(fabric: F) {
    let lens = [0, 1, 7, 47, 48, 49, 1015, 1016, 1017, 1020, 1021, 4096, 65_000, 300_000, 3, 0, 64];
    let mut seen = first_of(fabric, 4, |member, seen| {
        let hops = [
            hop(0, APPEND, 1),
            hop(1, APPEND, 2),
            hop(1, APPEND, 3),
            hop(2, APPEND, 4),
            hop(1, TWICE, 0),
            hop(0, APPEND, 5),
            hop(3, SINK, 77),
        ];
        let stream = member.stream(seen, &hops).expect("all ports have room");
        for (number, len) in lens.into_iter().enumerate() {
            member.push(seen, &stream, bytes(len, number)).expect("it goes on");
        }
        let longest = vec![9; ITEM_MAX - 6];
        member.push(seen, &stream, &longest[..]).expect("it goes on");
        let too_long = member.push(seen, &stream, vec![9; ITEM_MAX + 1]);
        assert_eq!(too_long, Err(StreamError::TooLong));
        member.close(seen, stream).expect("all has come");
        let hops = [hop(1, TOTAL, 0), hop(1, APPEND, 8), hop(2, SINK, 78)];
        let counted = member.stream(seen, &hops).expect("the entries are gone");
        for _ in 0..300 {
            member.push(seen, &counted, *b"one").expect("it goes on");
        }
        member.close(seen, counted).expect("all has come");
    });
    let items = lens.into_iter().enumerate().map(|(number, len)| bytes(len, number));
    let expected = items
        .chain([vec![9; ITEM_MAX - 6]])
        .flat_map(|item| [b'a', b'b'].map(|byte| [&item[..], &[1, 2, 3, 4, byte, 5]].concat()));
    let (found, expected) = (seen[3].of(77), expected.collect::<Vec<_>>());
    assert_eq!(found.len(), expected.len());
    for (number, (found, expected)) in found.into_iter().zip(&expected).enumerate() {
        assert!(found == &expected[..], "item {number} of {} bytes", expected.len());
    }
    assert_eq!(seen[3].end(77), Some(StreamEnd::Closed));
    let total = [&300_u64.to_le_bytes()[..], &[8]].concat();
    assert_eq!((seen[2].of(78), seen[2].end(78)), (vec![&total[..]], Some(StreamEnd::Closed)));
    assert!(seen.remove(0).items.is_empty());
}

/// Streams of every member to every other one, by random ways.
const STREAMS: u64 = 8;

/// They all flow at the same time, and none mixes with another one.
// spec: PIPE-1, PIPE-12, PIPE-20
pub fn streams_do_not_mix<F: Messengers>(fabric: F) {
    let members: u16 = 4;
    let way = |own: u16, stream: u64| {
        let mut dice = Dice::new(50 + u64::from(own) * 100 + stream);
        let stages = dice.index(6);
        let ports: Vec<_> = (0..=stages).map(|_| dice.index(usize::from(members)) as u16).collect();
        let number = u64::from(own) * STREAMS + stream;
        let last = *ports.last().expect("one at least");
        let hops = ports[..stages].iter().zip(1..).map(|(port, at)| hop(*port, APPEND, at));
        (hops.chain([hop(last, SINK, number)]).collect::<Vec<_>>(), last, number)
    };
    let seen = all(fabric, members, |member, seen, own| {
        let open = |stream| {
            let (hops, ..) = way(own, stream);
            member.stream(seen, &hops).expect("there is room")
        };
        let streams: Vec<_> = (0..STREAMS).map(open).collect();
        for number in 0..150_usize {
            for stream in &streams {
                let len = if number % 50 == 9 { 9000 } else { number };
                member.push(seen, stream, bytes(len, number)).expect("it goes on");
            }
        }
        for stream in streams {
            member.close(seen, stream).expect("all has come");
        }
    });
    for own in 0..members {
        for stream in 0..STREAMS {
            let (hops, last, number) = way(own, stream);
            let sink = &seen[usize::from(last)];
            let passed: Vec<_> = (1..hops.len() as u8).collect();
            let items = (0..150).map(|number| {
                let len = if number % 50 == 9 { 9000 } else { number };
                [&bytes(len, number)[..], &passed].concat()
            });
            assert!(sink.of(number).into_iter().eq(items), "stream {number}");
            assert_eq!(sink.end(number), Some(StreamEnd::Closed));
        }
    }
}

/// A sink that takes nothing stops its source before the source has filled anything; another stream
/// through the same ports goes on.
// spec: PIPE-8, PIPE-9, PIPE-12, PIPE-19
pub fn a_slow_sink_stops_its_source<F: Messengers>(fabric: F) {
    let mut members: Vec<_> = fabric.mesh(3).into_iter().map(member::<F>).collect();
    let mut seen: Vec<_> = (0..3).map(|_| Seen::default()).collect();
    let name = |peer, number| StreamName { peer: PeerId(peer), number };
    let entries = [
        (0, name(0, 1), (1, 2, APPEND)),
        (1, name(0, 2), (2, 3, SINK)),
        (0, name(0, 4), (1, 5, APPEND)),
        (1, name(0, 5), (1, 6, SINK)),
    ];
    for (at, name, (to, number, stage)) in entries {
        let entry = Entry::new(PeerId(to), number, stage).arguments([number.into(), 0, 0, 0]);
        let own = PeerId(at as u16);
        members[at].set_entry(&mut seen[at], own, name, entry).expect("there is room");
    }
    let mut open = |number| members[0].open_stream(&mut seen[0], number).expect("an entry");
    let (slow, quick) = (open(1), open(4));
    let (mut to_slow, mut to_quick, mut still) = (0, 0_u64, 0);
    for round in 0..ROUNDS {
        match members[0].try_push(&mut seen[0], &slow, bytes(8, to_slow)) {
            Ok(()) => (to_slow, still) = (to_slow + 1, 0),
            Err(error) => assert_eq!(error, PushError::Busy),
        }
        still += 1;
        if to_quick < 1000 && members[0].try_push(&mut seen[0], &quick, *b"quick").is_ok() {
            to_quick += 1;
        }
        poll(&mut members[..2], &mut seen);
        fabric.step(round);
        if seen[1].items.len() == 1000 && still > 10_000 {
            break;
        }
    }
    assert_eq!(seen[1].of(6).len(), 1000, "the other one goes on");
    assert!((129..=258).contains(&to_slow), "two windows, and what waits between: {to_slow}");
    for round in 0..ROUNDS {
        poll(&mut members[..3], &mut seen);
        fabric.step(round);
        if seen[2].items.len() == to_slow {
            break;
        }
    }
    let expected = (0..to_slow).map(|number| [&bytes(8, number)[..], &[2]].concat());
    assert!(seen[2].of(3).into_iter().eq(expected));
    members[0].cancel(&mut seen[0], slow);
    members[0].cancel(&mut seen[0], quick);
}

fn poll(members: &mut [impl Active<Seen>], seen: &mut [Seen]) {
    for (member, seen) in members.iter_mut().zip(seen) {
        member.poll(seen);
    }
}

/// A controller leads a stream elsewhere again and again, while its source pushes: each item goes
/// one way, and each way ends cut.
// spec: PIPE-6, PIPE-7
pub fn entries_change_while_items_flow<F: Messengers>(fabric: F) {
    const TURNS: u32 = 20;
    let seen = all(fabric, 4, |member, seen, own| match own {
        0 => {
            let way = Entry::new(PeerId(1), 2, APPEND).arguments([7, 0, 0, 0]).goes_on();
            let name = StreamName { peer: PeerId(0), number: 1 };
            member.set_entry(seen, PeerId(0), name, way).expect("there is room");
            member.serve_while(seen, |seen| seen.done == 0).expect("all live");
            let stream = member.open_stream(seen, 1).expect("an entry");
            let mut number = 0_u64;
            while seen.done < 2 {
                member.push(seen, &stream, number.to_le_bytes()).expect("it goes on");
                member.poll(seen);
                number += 1;
            }
            member.close(seen, stream).expect("all has come");
            seen.passed = number as usize;
            for peer in [1, 2] {
                member.call(seen, PeerId(peer), DONE, [], b"").expect("it lives");
            }
        }
        3 => {
            for turn in 0..TURNS {
                let to = if turn % 2 == 0 { 2 } else { 3 };
                let entry = Entry::new(PeerId(to), 10 + turn, SINK);
                let entry = entry.arguments([turn.into(), 0, 0, 0]);
                let name = StreamName { peer: PeerId(0), number: 2 };
                member.set_entry(seen, PeerId(1), name, entry).expect("it is its own");
                if turn == 0 || turn + 1 == TURNS {
                    member.call(seen, PeerId(0), DONE, [], b"").expect("it lives");
                }
            }
        }
        _ => member.serve_while(seen, |seen| seen.done == 0).expect("all live"),
    });
    let mut next = 0_u64;
    for turn in 0..u64::from(TURNS) {
        let sink = &seen[if turn % 2 == 0 { 2 } else { 3 }];
        for item in sink.of(turn) {
            assert_eq!(item, [&next.to_le_bytes()[..], &[7]].concat(), "on way {turn}");
            next += 1;
        }
        let end = if turn + 1 == u64::from(TURNS) { StreamEnd::Closed } else { StreamEnd::Cut };
        // A way on which nothing went has heard of nothing.
        assert!(sink.end(turn).is_none_or(|found| found == end), "{:?}", sink.ends);
    }
    assert_eq!(next as usize, seen[0].passed, "each has gone one way");
}

/// A failure ends one stream, at its source and at its sink, and no other.
// spec: PIPE-5, PIPE-14, PIPE-16
pub fn failures_are_told_at_both_ends<F: Messengers>(fabric: F) {
    let failed = |why, at| StreamError::Failed(StreamFailure { why, at: PeerId(at) });
    let seen = first_of(fabric, 3, |member, seen| {
        let push_until = |member: &mut Member<F>, seen: &mut Seen, stream: &_, item: &[u8]| loop {
            if let Err(error) = member.push(seen, stream, item) {
                return error;
            }
        };
        let good = [hop(1, PICKY, 0), hop(2, SINK, 1)];
        let good = member.stream(seen, &good).expect("there is room");
        member.push(seen, &good, *b"first").expect("it goes on");

        let hops = [hop(1, PICKY, 0), hop(2, SINK, 2)];
        let stream = member.stream(seen, &hops).expect("there is room");
        member.push(seen, &stream, *b"good").expect("it goes on");
        member.push(seen, &stream, *b"bad").expect("it is not there yet");
        assert_eq!(push_until(member, seen, &stream, b"x"), failed(FailureReason::Panicked, 1));
        assert_eq!(member.close(seen, stream), Err(failed(FailureReason::Panicked, 1)));

        let hops = [hop(1, APPEND, 0), hop(2, SINK, 3)];
        let stream = member.stream(seen, &hops).expect("there is room");
        member.push(seen, &stream, *b"some").expect("it goes on");
        member.cancel(seen, stream);
        let hops = [hop(1, TOTAL, 0), hop(2, SINK, 4)];
        let stream = member.stream(seen, &hops).expect("there is room");
        member.push(seen, &stream, *b"some").expect("it goes on");
        member.cancel(seen, stream);

        let hops = [hop(1, APPEND, 0), hop(2, Stage::named("nobody's"), 0)];
        let stream = member.stream(seen, &hops).expect("there is room");
        assert_eq!(push_until(member, seen, &stream, b"x"), failed(FailureReason::UnknownStage, 2));
        assert_eq!(member.close(seen, stream), Err(failed(FailureReason::UnknownStage, 2)));

        // The sink emits.
        let stream = member.stream(seen, &[hop(2, TWICE, 0)]).expect("there is room");
        assert_eq!(push_until(member, seen, &stream, b"x"), failed(FailureReason::Nowhere, 2));
        member.cancel(seen, stream);

        let nowhere = member.open_stream(seen, 5).expect_err("there is no entry");
        assert_eq!(nowhere, failed(FailureReason::Nowhere, 0));
        let stranger = member.stream(seen, &[hop(9, SINK, 0)]).expect("it is not asked");
        assert_eq!(member.close(seen, stranger), Err(failed(FailureReason::Unreachable, 0)));

        member.push(seen, &good, *b"last").expect("it goes on");
        member.close(seen, good).expect("all has come");
    });
    let sink = &seen[2];
    assert_eq!((sink.of(1), sink.end(1)), (vec![&b"first"[..], b"last"], Some(StreamEnd::Closed)));
    let panicked = StreamFailure { why: FailureReason::Panicked, at: PeerId(1) };
    assert_eq!((sink.of(2), sink.end(2)), (vec![&b"good"[..]], Some(StreamEnd::Failed(panicked))));
    let cancelled = StreamFailure { why: FailureReason::Cancelled, at: PeerId(0) };
    assert!(sink.end(3).is_none_or(|end| end == StreamEnd::Failed(cancelled)), "{:?}", sink.ends);
    assert!(sink.of(4).is_empty(), "what a failure makes a stage emit is lost");
}

/// A port has its directory changed by whom it lets, and nobody touches another's entries.
// spec: PIPE-6
pub fn entries_have_owners<F: Messengers>(fabric: F) {
    let name = StreamName { peer: PeerId(2), number: 1 };
    let entry = Entry::new(PeerId(2), 2, SINK);
    let denied = Err(StreamError::Refused(PeerId(1), EntryAnswer::Denied));
    let unknown = Err(StreamError::Refused(PeerId(1), EntryAnswer::Unknown));
    all(fabric, 3, |member, seen, own| {
        if own == 0 {
            member.set_entry(seen, PeerId(1), name, entry).expect("it is new");
            member.call(seen, PeerId(2), DONE, [], b"").expect("it lives");
            member.serve_while(seen, |seen| seen.done == 0).expect("all live");
            member.clear_entry(seen, PeerId(1), name).expect("it is its own");
            assert_eq!(member.clear_entry(seen, PeerId(1), name), unknown);
        }
        if own == 2 {
            member.serve_while(seen, |seen| seen.done == 0).expect("all live");
            assert_eq!(member.set_entry(seen, PeerId(1), name, entry), denied);
            assert_eq!(member.clear_entry(seen, PeerId(1), name), denied);
            member.call(seen, PeerId(0), DONE, [], b"").expect("it lives");
        }
        member.sync(seen).expect("all live");
        if own == 1 {
            member.let_peers_set_entries(false);
        }
        member.sync(seen).expect("all live");
        if own == 0 {
            assert_eq!(member.set_entry(seen, PeerId(1), name, entry), denied);
        }
    });
}

/// A port that dies in the middle ends the stream at its source and at its sink; others go on.
// spec: PIPE-15
pub fn death_ends_streams<F: Messengers>(fabric: F) {
    let died = StreamFailure { why: FailureReason::PeerDied, at: PeerId(1) };
    std::thread::scope(|scope| {
        let mut running = vec![];
        for (own, port) in (0..).zip(fabric.mesh(4)) {
            running.push(scope.spawn(move || {
                let (mut member, mut seen) = (member::<F>(port), Seen::default());
                member.sync(&mut seen).expect("all live");
                match own {
                    0 => feed(&mut member, &mut seen, died),
                    3 => {
                        while_alive(&mut member, &mut seen, |seen| seen.of(1).is_empty());
                        member.call(&mut seen, PeerId(1), DONE, [], b"").expect("it lives yet");
                        while_alive(&mut member, &mut seen, |seen| seen.end(1).is_none());
                        while_alive(&mut member, &mut seen, |seen| seen.done == 0);
                    }
                    _ => while_alive(&mut member, &mut seen, |seen| seen.done == 0),
                }
                if own != 1 {
                    member.sync(&mut seen).expect("one has died");
                }
                seen
            }));
        }
        let seen: Vec<_> = running.into_iter().map(join).collect();
        assert_eq!(seen[3].end(1), Some(StreamEnd::Failed(died)));
        let items = seen[3].of(1);
        assert!(items.len() <= seen[1].passed, "what came before");
        let numbers = (0_u64..).map(|number| [&number.to_le_bytes()[..], &[0, 1]].concat());
        assert!(items.into_iter().zip(numbers).all(|(item, expected)| item == expected));
        assert_eq!((seen[3].of(2).len(), seen[3].end(2)), (100, Some(StreamEnd::Closed)));
    });
}

/// Programs that only poll, and never wait, hear of a death, too.
// spec: PIPE-15
pub fn polls_notice_deaths<F: Messengers>(fabric: F) {
    let mut members: Vec<_> = fabric.mesh(3).into_iter().map(member::<F>).collect();
    let mut seen: Vec<_> = (0..3).map(|_| Seen::default()).collect();
    let name = |peer, number| StreamName { peer: PeerId(peer), number };
    let first = Entry::new(PeerId(1), 2, APPEND);
    let second = Entry::new(PeerId(2), 3, SINK).arguments([3, 0, 0, 0]);
    members[0].set_entry(&mut seen[0], PeerId(0), name(0, 1), first).expect("there is room");
    members[1].set_entry(&mut seen[1], PeerId(1), name(0, 2), second).expect("there is room");
    let stream = members[0].open_stream(&mut seen[0], 1).expect("an entry");
    members[0].try_push(&mut seen[0], &stream, *b"one").expect("there is room");
    let mut ended = None;
    for round in 0..ROUNDS {
        poll(&mut members, &mut seen);
        // Of 65536 polls one looks.
        fabric.step(round);
        if members.len() == 3 && !seen[2].items.is_empty() {
            // The first and the last one are left.
            drop((members.remove(1), seen.remove(1)));
        }
        if members.len() == 2 && ended.is_none() {
            let pushed = members[0].try_push(&mut seen[0], &stream, *b"more");
            ended = pushed.err().filter(|error| *error != PushError::Busy);
        }
        if ended.is_some() && members.len() == 2 && !seen[1].ends.is_empty() {
            break;
        }
    }
    let died = StreamFailure { why: FailureReason::PeerDied, at: PeerId(1) };
    assert_eq!(ended, Some(PushError::Ended(StreamError::Failed(died))));
    assert_eq!(seen[1].end(3), Some(StreamEnd::Failed(died)));
    members[0].cancel(&mut seen[0], stream);
}

fn while_alive(member: &mut impl Active<Seen>, seen: &mut Seen, holds: impl Fn(&Seen) -> bool) {
    while let Err(ReceiveError::PeerDied(_)) = member.serve_while(seen, &holds) {}
}

/// The source of two streams, one of them through a port that dies.
fn feed(member: &mut impl Messenger<Seen>, seen: &mut Seen, died: StreamFailure) {
    let hops = [hop(2, APPEND, 0), hop(1, APPEND, 1), hop(3, SINK, 1)];
    let stream = member.stream(seen, &hops).expect("there is room");
    let other = member.stream(seen, &[hop(2, APPEND, 0), hop(3, SINK, 2)]).expect("room, too");
    let mut number = 0_u64;
    let ended = loop {
        if let Err(error) = member.push(seen, &stream, number.to_le_bytes()) {
            break error;
        }
        number += 1;
    };
    assert_eq!(ended, StreamError::Failed(died));
    assert_eq!(member.close(seen, stream), Err(StreamError::Failed(died)));
    for _ in 0..100 {
        member.push(seen, &other, *b"goes on").expect("it goes on");
    }
    member.close(seen, other).expect("all has come");
    for peer in [2, 3] {
        member.call(seen, PeerId(peer), DONE, [], b"").expect("it lives");
    }
}

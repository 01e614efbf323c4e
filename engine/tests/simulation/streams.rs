//! Streams through stages of several messengers over a bad network, some of which are killed, all
//! polled by one thread.
use super::common::random::{Random, fill};
use super::common::simulated::{ROUNDS_PER_PROGRESS, assert_repeatable, bad_mesh, rounds};
use ayre::active::Messenger;
use ayre::stream::{
    Entry, Flow, Input, PushError, Stage, Stream, StreamEnd, StreamError, StreamName,
};
use ayre::{PeerId, Simulation};
use std::time::Duration;

const PORTS: usize = 4;
/// Streams that begin at each port.
const STREAMS: u32 = 3;
/// Rounds, in each of which each port is polled once and may push something.
const ROUNDS: usize = 1000;
/// Rounds after which what has not come by then is taken never to.
const PATIENCE: usize = 400_000;
/// Bits of the longest item's length.
const LENGTH_BITS: u64 = 15;

const PASS: Stage = Stage::named("pass");
const SINK: Stage = Stage::named("sink");

/// The items that came to the sinks of a port.
#[derive(Debug, Default)]
struct Seen {
    /// By the source and the number of the stream there: which item is next.
    next: [[u64; STREAMS as usize]; PORTS],
    bytes: u64,
    ends: Vec<(u64, StreamEnd)>,
}

/// Stages know from their arguments which stream they are of.
fn sink(seen: &mut Seen, flow: &mut Flow<'_>, input: Input<'_>) {
    let [source, number, ..] = flow.arguments();
    match input {
        Input::Item(item) => {
            let next = &mut seen.next[source as usize][number as usize];
            let mut expected = vec![0; item.len()];
            fill(&mut expected, source, number, *next);
            assert!(item == expected, "item {next} of stream {number} of {source}, once, in order");
            *next += 1;
            seen.bytes += item.len() as u64;
        }
        Input::End(end) => seen.ends.push((source << 8 | number, end)),
    }
}

/// A stream at its source.
struct Source {
    stream: Stream,
    /// The ports of its stages.
    through: [usize; 2],
    pushed: u64,
    has_failed: bool,
}

struct Member {
    messenger: Messenger<Seen>,
    seen: Seen,
    sources: Vec<Source>,
}

struct Run {
    dice: Random,
    simulation: Simulation,
    /// By port; none of those that were killed.
    members: Vec<Option<Member>>,
}

fn id(at: usize) -> PeerId {
    PeerId(at as u16)
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let (simulation, ports) = bad_mesh(&mut dice, seed, PORTS as u16);
        let members = ports.into_iter().map(|port| {
            let mut messenger = Messenger::new(port);
            let pass = |_: &mut Seen, flow: &mut Flow<'_>, input: Input<'_>| {
                if let Input::Item(item) = input {
                    flow.emit(item);
                }
            };
            messenger.streams().stage("pass", pass).expect("a new name");
            messenger.streams().stage("sink", sink).expect("a new name");
            Some(Member { messenger, seen: Seen::default(), sources: Vec::new() })
        });
        let mut run = Self { dice, simulation, members: members.collect() };
        (0..PORTS).for_each(|source| (0..STREAMS).for_each(|number| run.lay(source, number)));
        run
    }

    /// From its source to a stage that passes all on, and from there to a sink: any ports.
    fn lay(&mut self, source: usize, number: u32) {
        let through = [(); 2].map(|()| self.dice.below(PORTS as u64) as usize);
        let [first, last] = through;
        // A port's streams go by numbers of their own there.
        let at = |hop: u32| hop << 16 | (source as u32) << 8 | number;
        let entry = |to, hop, stage| {
            let entry = Entry::new(id(to), at(hop), stage);
            entry.arguments([source as u64, number.into(), 0, 0])
        };
        let entries = [
            (source, source, at(0), entry(first, 1, PASS).goes_on()),
            (first, source, at(1), entry(last, 2, SINK)),
        ];
        for (owner, feeder, number, entry) in entries {
            let Member { messenger, seen, .. } = self.members[owner].as_mut().expect("all live");
            let name = StreamName { peer: id(feeder), number };
            messenger.streams().set_entry(seen, id(owner), name, entry).expect("there is room");
        }
        let Member { messenger, seen, sources } = self.members[source].as_mut().expect("all live");
        let stream = messenger.streams().open(seen, at(0)).expect("its entry is there");
        sources.push(Source { stream, through, pushed: 0, has_failed: false });
    }

    fn act(&mut self, at: usize) {
        let (roll, number) = (self.dice.below(10_000), self.dice.below(STREAMS.into()) as usize);
        let len = self.dice.scaled(LENGTH_BITS) as usize;
        let may_go = self.members.iter().flatten().count() > 2;
        match roll {
            0..2 if may_go => self.members[at] = None,
            0..2000 => self.push(at, number, len),
            _ => {}
        }
    }

    fn push(&mut self, at: usize, number: usize, len: usize) {
        let Some(Member { messenger, seen, sources }) = self.members[at].as_mut() else { return };
        let Source { stream, pushed, has_failed, .. } = &mut sources[number];
        let mut item = vec![0; len];
        fill(&mut item, at as u64, number as u64, *pushed);
        match messenger.streams().try_push(seen, stream, item) {
            Ok(()) => *pushed += 1,
            Err(PushError::Busy) => {}
            Err(PushError::Ended(StreamError::Failed(_))) => *has_failed = true,
            Err(error) => panic!("{error}"),
        }
    }

    fn poll(&mut self, round: usize) {
        for member in self.members.iter_mut().flatten() {
            if round.is_multiple_of(ROUNDS_PER_PROGRESS) {
                member.messenger.port().progress();
            }
            member.messenger.poll(&mut member.seen);
        }
    }

    /// Whether all has come of streams whose ports live.
    fn has_all(&self) -> bool {
        self.members.iter().enumerate().all(|(at, member)| {
            let sources = member.iter().flat_map(|member| &member.sources).enumerate();
            sources.into_iter().all(|(number, Source { through: [first, last], pushed, .. })| {
                let sink = self.members[*last].as_ref().filter(|_| self.members[*first].is_some());
                sink.is_none_or(|sink| sink.seen.next[at][number] == *pushed)
            })
        })
    }

    /// Its course, its time, and what all that live have seen.
    fn go(mut self) -> (u64, Duration, String) {
        for round in 0..rounds(ROUNDS) {
            (0..PORTS).for_each(|at| self.act(at));
            self.poll(round);
        }
        let over = (0..PATIENCE).find(|round| {
            self.poll(*round);
            self.has_all()
        });
        let seen: Vec<_> =
            self.members.iter().map(|member| member.as_ref().map(|member| &member.seen)).collect();
        assert!(over.is_some(), "an item never comes: {seen:?}");
        for source in self.members.iter().flatten().flat_map(|member| &member.sources) {
            let lives = source.through.iter().all(|at| self.members[*at].is_some());
            assert!(!(lives && source.has_failed), "who lives passes all on");
        }
        (self.simulation.course(), self.simulation.now(), format!("{seen:?}"))
    }
}

// spec: NET-8, NET-9, PIPE-9
#[test]
fn a_seed_brings_the_same_streams_back() {
    assert_repeatable(|seed| Run::new(seed).go());
}

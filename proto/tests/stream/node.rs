//! One port: its machine, the queues of its streams, and stages that compute something checkable.
use ayre_proto::stream::{
    Effects, FailureReason, Input, Message, Options, StreamEnd, StreamFailure, StreamName, Streams,
    Way,
};
use ayre_proto::units::PeerId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An item: a number, and what it counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) value: u64,
    pub(crate) weight: u8,
}

/// A packet on a channel.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Item(u32, Item),
    Message(Vec<u8>),
    /// Its sender has died.
    Death,
}

/// The names of stages.
pub(crate) const MAP: u32 = 256;
pub(crate) const SOME: u32 = 257;
pub(crate) const TRIPLE: u32 = 258;
pub(crate) const TAIL: u32 = 259;
pub(crate) const PANIC: u32 = 260;
pub(crate) const SINK: u32 = 261;

fn mix(value: u64, by: u64) -> u64 {
    let mixed =
        (value ^ by.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// The output of a stage for an item, or for the end.
pub(crate) fn make(stage: u32, argument: u64, value: Option<u64>) -> Vec<u64> {
    let Some(value) = value else {
        return if stage == TAIL { vec![mix(77, argument)] } else { vec![] };
    };
    let copies = match stage {
        SOME => mix(value, 5) % 3,
        TRIPLE => 3,
        SINK => 0,
        _ => 1,
    };
    (0..copies).map(|copy| mix(value, argument + copy)).collect()
}

/// The items and the end that a sink has received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) values: Vec<u64>,
    pub(crate) ends: Vec<StreamEnd>,
}

/// All of a port but its machine.
#[derive(Debug)]
pub(crate) struct Side {
    arrived: Vec<VecDeque<Item>>,
    emitted: Vec<VecDeque<Item>>,
    /// Those that cannot take an item now.
    pub(crate) full: BTreeSet<PeerId>,
    pub(crate) gone: BTreeSet<PeerId>,
    pub(crate) out: Vec<(PeerId, Packet)>,
    /// By pipe and section.
    pub(crate) sinks: BTreeMap<(u64, u64), Heard>,
    pub(crate) overs: BTreeMap<u32, Result<(), StreamFailure>>,
    /// The stages that were run, and for what.
    pub(crate) runs: Vec<(u32, Option<u64>)>,
    window: u8,
}

impl Side {
    fn weigh(&self, value: u64) -> Item {
        Item { value, weight: 1 + (value % u64::from(self.window / 2)) as u8 }
    }

    pub(crate) fn push(&mut self, place: u16, value: u64) {
        let item = self.weigh(value);
        self.emitted[usize::from(place)].push_back(item);
    }

    pub(crate) fn arrive(&mut self, place: u16, item: Item) {
        let queue = &mut self.arrived[usize::from(place)];
        queue.push_back(item);
        let units: u32 = queue.iter().map(|item| u32::from(item.weight)).sum();
        assert!(units <= self.window.into(), "no more waits than the window has");
    }

    /// Items that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.arrived.iter().chain(&self.emitted).map(VecDeque::len).sum()
    }
}

impl Effects for Side {
    fn arrived(&self, place: u16) -> Option<u8> {
        self.arrived[usize::from(place)].front().map(|item| item.weight)
    }

    fn emitted(&self, place: u16) -> Option<u8> {
        self.emitted[usize::from(place)].front().map(|item| item.weight)
    }

    fn has_room(&self, peer: PeerId) -> bool {
        !self.full.contains(&peer)
    }

    fn is_connected(&self, peer: PeerId) -> bool {
        !self.gone.contains(&peer)
    }

    fn has_stage(&self, stage: u32) -> bool {
        (MAP..=SINK).contains(&stage)
    }

    fn run(
        &mut self,
        place: u16,
        (_, way): (StreamName, Way),
        input: Input,
    ) -> Result<(), FailureReason> {
        let at = usize::from(place);
        let [argument, pipe, section, _] = way.arguments;
        let value = match input {
            Input::Item => Some(self.arrived[at].pop_front().expect("it has arrived").value),
            Input::End(_) => None,
        };
        assert!(self.emitted[at].is_empty() || value.is_none(), "what was emitted has left");
        self.runs.push((way.stage, value));
        if way.stage == PANIC && value.is_some_and(|value| value % 7 == 0) {
            return Err(FailureReason::Panicked);
        }
        if way.stage == SINK {
            let heard = self.sinks.entry((pipe, section)).or_default();
            heard.values.extend(value);
            if let Input::End(end) = input {
                heard.ends.push(end);
            }
            return Ok(());
        }
        if !matches!(input, Input::End(StreamEnd::Failed(_))) {
            for value in make(way.stage, argument, value) {
                self.push(place, value);
            }
        }
        Ok(())
    }

    fn pass(&mut self, from: u16, to: u16) {
        let item = self.emitted[usize::from(from)].pop_front().expect("it was emitted");
        assert!(self.arrived[usize::from(to)].is_empty(), "one at a time");
        self.arrived[usize::from(to)].push_back(item);
    }

    fn send(&mut self, place: u16, to: StreamName) {
        let item = self.emitted[usize::from(place)].pop_front().expect("it was emitted");
        self.out.push((to.peer, Packet::Item(to.number, item)));
    }

    fn tell(&mut self, peer: PeerId, message: Message) {
        self.out.push((peer, Packet::Message(message.encode().to_vec())));
    }

    fn over(&mut self, number: u32, how: Result<(), StreamFailure>) {
        assert_eq!(self.overs.insert(number, how), None, "once");
    }

    fn clear(&mut self, place: u16) {
        self.arrived[usize::from(place)].clear();
        self.emitted[usize::from(place)].clear();
    }
}

/// A port.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) streams: Streams,
    pub(crate) side: Side,
}

impl Node {
    pub(crate) fn new(me: PeerId, options: Options) -> Self {
        let queues = vec![VecDeque::new(); usize::from(options.streams)];
        let side = Side {
            arrived: queues.clone(),
            emitted: queues,
            full: BTreeSet::new(),
            gone: BTreeSet::new(),
            out: vec![],
            sinks: BTreeMap::new(),
            overs: BTreeMap::new(),
            runs: vec![],
            window: options.window,
        };
        Self { streams: Streams::new(me, options), side }
    }

    pub(crate) fn advance(&mut self, turns: usize) -> bool {
        self.streams.advance(turns, &mut self.side)
    }
}

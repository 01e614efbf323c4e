//! Any bytes as what peers say about streams, and as what the program does meanwhile: what the
//! fuzzer and the tests with random bytes share.
use super::node::{Item, MAP, Node, PANIC, SINK};
use super::script::Script;
use ayre_proto::lane::Malformed;
use ayre_proto::stream::{
    Effects, Entry, EntryAnswer, FailureReason, Message, Options, StreamEnd, StreamFailure,
    StreamName, Way,
};
use ayre_proto::units::PeerId;
use std::collections::BTreeMap;

const ME: PeerId = PeerId(0);
const PEERS: u8 = 3;
/// Not connected.
const STRANGER: PeerId = PeerId(PEERS as u16 + 1);
/// Bounds that are soon met.
const OPTIONS: Options = Options { streams: 4, entries: 4, window: 4 };
/// Numbers that streams have.
const NUMBERS: u8 = 6;

/// A port among peers that lie.
struct Port {
    node: Node,
    /// Streams of its own that the program has not closed, and their places.
    own: BTreeMap<u32, u16>,
    refused: u32,
}

/// For any input of peers, a port goes on; a malformed peer is cut off, and changes nothing else.
/// In the end, all peers are gone and the program has given up its streams, and nothing is left.
/// Returns the number of malformed inputs.
pub(crate) fn play(bytes: &[u8]) -> u32 {
    let mut script = Script(bytes);
    let mut port = Port { node: Node::new(ME, OPTIONS), own: BTreeMap::new(), refused: 0 };
    port.node.side.gone.insert(STRANGER);
    while !script.is_over() {
        port.step(&mut script);
        port.check();
    }
    port.end();
    port.refused
}

impl Port {
    fn step(&mut self, script: &mut Script<'_>) {
        let peer = PeerId(1 + u16::from(script.below(PEERS)));
        let is_there = !self.node.side.gone.contains(&peer);
        match script.below(20) {
            0 => self.set(script),
            1 => self.unset(script),
            2 => self.open(script),
            3 | 4 => self.push(script),
            5 => self.close(script),
            6 | 7 => {
                self.node.advance(script.below(10).into());
            }
            8 if !self.node.side.full.remove(&peer) => {
                self.node.side.full.insert(peer);
            }
            9 if is_there => self.cut_off(peer),
            // Another one of its number.
            9 => {
                self.node.side.gone.remove(&peer);
            }
            10..=13 if is_there => self.item(peer, script),
            14.. if is_there => self.hear(peer, script),
            _ => {}
        }
    }

    fn set(&mut self, script: &mut Script<'_>) {
        let (name, entry) = (name(script), entry(script));
        let Node { streams, side } = &mut self.node;
        let answer = streams.set(ME, name, entry, side);
        assert_ne!(answer, EntryAnswer::Denied, "it is the port's own directory");
    }

    fn unset(&mut self, script: &mut Script<'_>) {
        let (name, if_unused) = (name(script), script.below(2) == 1);
        let Node { streams, side } = &mut self.node;
        let answer = streams.unset(ME, name, if_unused, side);
        assert_ne!(answer, EntryAnswer::Denied, "it is the port's own directory");
    }

    fn open(&mut self, script: &mut Script<'_>) {
        let number = script.below(NUMBERS).into();
        if let Ok(place) = self.node.streams.open(number) {
            self.node.side.overs.remove(&number);
            assert_eq!(self.own.insert(number, place), None, "it is fed already");
        }
    }

    /// The program has an item, if there is room for one.
    fn push(&mut self, script: &mut Script<'_>) {
        let Some(place) = self.own.get(&script.below(NUMBERS).into()).copied() else { return };
        let Node { streams, side } = &mut self.node;
        if side.emitted(place).is_none() {
            side.push(place, script.byte().into());
            streams.feed(place);
        }
    }

    fn close(&mut self, script: &mut Script<'_>) {
        let number = script.below(NUMBERS).into();
        let Some(place) = self.own.remove(&number) else { return };
        match script.below(2) {
            0 => self.node.streams.close(place),
            _ => self.node.streams.cancel(place, &mut self.node.side),
        }
    }

    fn item(&mut self, peer: PeerId, script: &mut Script<'_>) {
        let (number, value) = (script.below(NUMBERS).into(), script.byte());
        let weight = 1 + value % (OPTIONS.window / 2);
        let before = format!("{:?}", self.node.streams);
        match self.node.streams.on_item(peer, number, weight) {
            Ok(Some(place)) => self.node.side.arrive(place, Item { value: value.into(), weight }),
            Ok(None) => {}
            Err(Malformed) => self.find_out(peer, &before),
        }
    }

    fn hear(&mut self, peer: PeerId, script: &mut Script<'_>) {
        let bytes = match script.below(8) {
            0 => script.bytes(80),
            _ => message(script).encode().to_vec(),
        };
        let Ok(message) = Message::parse(&bytes) else { return };
        assert_eq!(message.encode()[..], bytes, "one way to say it");
        let before = format!("{:?}", self.node.streams);
        let Node { streams, side } = &mut self.node;
        if streams.on_message(peer, message, side).is_err() {
            self.find_out(peer, &before);
        }
    }

    fn find_out(&mut self, peer: PeerId, before: &str) {
        assert_eq!(format!("{:?}", self.node.streams), before, "it has changed something");
        self.refused += 1;
        self.cut_off(peer);
    }

    fn cut_off(&mut self, peer: PeerId) {
        let Node { streams, side } = &mut self.node;
        side.gone.insert(peer);
        streams.on_death(peer, side);
    }

    fn check(&mut self) {
        let Node { streams, side } = &mut self.node;
        let (streams_there, hops) = streams.len();
        let most = usize::from(OPTIONS.streams);
        assert!(streams_there <= most && hops <= most);
        assert!(streams.entries().count() <= usize::from(OPTIONS.entries));
        self.own.retain(|number, _| !side.overs.contains_key(number));
        for (to, _) in side.out.drain(..) {
            assert_ne!(to, ME, "no port sends anything to itself");
        }
    }

    fn end(&mut self) {
        for peer in 1..=PEERS {
            self.cut_off(PeerId(peer.into()));
        }
        for place in std::mem::take(&mut self.own).into_values() {
            self.node.streams.cancel(place, &mut self.node.side);
        }
        let is_idle = (0..10_000).any(|_| !self.node.advance(8));
        assert!(is_idle, "it goes on and on: {:?}", self.node);
        assert!(self.node.streams.is_empty(), "{:?}", self.node.streams);
        assert_eq!(self.node.side.kept(), 0);
    }
}

/// The port itself, a peer, or an unconnected port.
fn peer(script: &mut Script<'_>) -> PeerId {
    PeerId(script.below(PEERS + 2).into())
}

fn name(script: &mut Script<'_>) -> StreamName {
    StreamName { peer: peer(script), number: script.below(NUMBERS).into() }
}

fn way(script: &mut Script<'_>) -> Way {
    let stage = match script.below(8) {
        0 => script.word(0) as u32,
        1 => PANIC,
        2..5 => SINK,
        _ => MAP + u32::from(script.below(4)),
    };
    let arguments = [script.below(4), script.below(4), 0, 0].map(u64::from);
    Way { stage, arguments, goes_on: stage != SINK || script.below(8) == 0 }
}

fn entry(script: &mut Script<'_>) -> Entry {
    Entry { to: name(script), way: way(script), lasts: script.below(2) == 1 }
}

fn end(script: &mut Script<'_>) -> StreamEnd {
    let whys = [FailureReason::Panicked, FailureReason::Full, FailureReason::Cancelled];
    match script.below(6) {
        0..2 => StreamEnd::Closed,
        2 => StreamEnd::Cut,
        why => {
            StreamEnd::Failed(StreamFailure { why: whys[usize::from(why) - 3], at: peer(script) })
        }
    }
}

fn message(script: &mut Script<'_>) -> Message {
    let number = script.below(NUMBERS).into();
    let request = number;
    match script.below(16) {
        0..4 => Message::Open { number, way: way(script) },
        4..7 => Message::Credit { number, units: script.below(OPTIONS.window + 2) },
        7..9 => Message::End { number, end: end(script) },
        9..11 => Message::Stop { number, end: end(script) },
        11..14 => Message::Set { request, name: name(script), entry: entry(script) },
        14 => Message::Clear { request, name: name(script), if_unused: script.below(2) == 1 },
        _ => Message::Answer { request, answer: EntryAnswer::Done },
    }
}

//! Input that no correct peer sends.
use super::dice::Dice;
use super::hostile::play;
use super::node::{MAP, Node, SINK};
use ayre_proto::lane::Malformed;
use ayre_proto::stream::{
    Entry, EntryAnswer, FailureReason, Message, Options, StreamEnd, StreamFailure, StreamName, Way,
};
use ayre_proto::units::PeerId;

const ME: PeerId = PeerId(0);
const PEER: PeerId = PeerId(1);

fn way(stage: u32, goes_on: bool) -> Way {
    Way { stage, arguments: [1, u64::MAX, 3, 4], goes_on }
}

fn messages() -> Vec<Message> {
    let name = StreamName { peer: PeerId(500), number: u32::MAX };
    let to = StreamName { peer: PEER, number: 8 };
    let failure = StreamFailure { why: FailureReason::Cancelled, at: PeerId(9) };
    vec![
        Message::Open { number: 5, way: way(MAP, true) },
        Message::Credit { number: 5, units: 16 },
        Message::End { number: 5, end: StreamEnd::Cut },
        Message::End { number: 5, end: StreamEnd::Failed(failure) },
        Message::Stop { number: 5, end: StreamEnd::Closed },
        Message::Set { request: 6, name, entry: Entry { to, way: way(SINK, false), lasts: true } },
        Message::Clear { request: 6, name, if_unused: true },
        Message::Answer { request: 6, answer: EntryAnswer::Taken },
    ]
}

/// Every written message is read, and nothing else is.
// spec: PIPE-18
#[test]
fn formats() {
    for message in messages() {
        let bytes = message.encode();
        assert_eq!(Message::parse(&bytes), Ok(message));
        assert_eq!(Message::parse(&bytes[..bytes.len() - 1]), Err(Malformed));
        assert_eq!(Message::parse(&[&bytes[..], &[0]].concat()), Err(Malformed));
    }
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    assert_eq!(&messages()[1].encode()[..], words(&[2, 5, 16]), "kind, number, units");
    let stop = words(&[4, 5, 1, 0]);
    assert_eq!(Message::parse(&stop), Err(Malformed), "a stop does not cut");
    for bad in [&[9, 0][..], &[2, 5, 256], &[3, 5, 0, 1], &[3, 5, 10, 0], &[6, 1, 70_000, 1, 0]] {
        assert_eq!(Message::parse(&words(bad)), Err(Malformed), "{bad:?}");
    }
    let mut dice = Dice(50);
    for _ in 0..100_000 {
        let mut bytes = messages()[dice.below(8) as usize].encode();
        for _ in 0..=dice.below(3) {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] = dice.word() as u8;
        }
        if let Ok(message) = Message::parse(&bytes) {
            assert_eq!(message.encode(), bytes, "one way to say it");
        }
    }
}

/// A port that a peer has opened stream 5 at, and whose own stream leads to the peer's 8.
fn port() -> Node {
    let mut node = Node::new(ME, Options { streams: 4, entries: 4, window: 4 });
    let Node { streams, side } = &mut node;
    let open = Message::Open { number: 5, way: way(SINK, false) };
    streams.on_message(PEER, open, side).expect("it is sound");
    let to = StreamName { peer: PEER, number: 8 };
    let entry = Entry { to, way: way(SINK, false), lasts: true };
    assert_eq!(streams.set(ME, StreamName { peer: ME, number: 1 }, entry, side), EntryAnswer::Done);
    let place = streams.open(1).expect("an entry");
    side.push(place, 2);
    streams.feed(place);
    streams.advance(9, side);
    node
}

/// More than a window, what is not open, what is over, and what nobody has asked.
// spec: PIPE-17
#[test]
fn forged_stream_records_are_detected() {
    let lies = [
        Message::Open { number: 5, way: way(SINK, false) },
        Message::Credit { number: 8, units: 0 },
        Message::Credit { number: 8, units: 2 },
        Message::Credit { number: 9, units: 1 },
        Message::Stop { number: 9, end: StreamEnd::Closed },
        Message::Stop { number: 8, end: StreamEnd::Closed },
        Message::Answer { request: 1, answer: EntryAnswer::Done },
    ];
    for lie in lies {
        let Node { mut streams, mut side } = port();
        assert_eq!(streams.on_message(PEER, lie, &mut side), Err(Malformed), "{lie:?}");
    }
    let Node { mut streams, mut side } = port();
    let credit = Message::Credit { number: 8, units: 1 };
    assert_eq!(streams.on_message(PEER, credit, &mut side), Ok(()), "what was sent");
    for _ in 0..2 {
        assert!(streams.on_item(PEER, 5, 2).expect("within the window").is_some());
    }
    assert_eq!(streams.on_item(PEER, 5, 1), Err(Malformed), "beyond it");
    assert_eq!(streams.on_item(PEER, 6, 1), Ok(None), "it may have been stopped");
    let end = Message::End { number: 5, end: StreamEnd::Closed };
    assert_eq!(streams.on_message(PEER, end, &mut side), Ok(()));
    assert_eq!(streams.on_message(PEER, end, &mut side), Err(Malformed));
    assert_eq!(streams.on_item(PEER, 5, 1), Err(Malformed), "behind the end");
}

/// For any input of any sender, a port goes on, and nothing stays of a malformed peer.
// spec: PIPE-15, PIPE-16, PIPE-17, PIPE-18
#[test]
fn anything_is_taken_or_refused() {
    let mut found_out = 0;
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let bytes: Vec<_> = (0..1000).map(|_| dice.word() as u8).collect();
        found_out += play(&bytes);
    }
    assert!(found_out > 2000, "few are found out: {found_out}");
}

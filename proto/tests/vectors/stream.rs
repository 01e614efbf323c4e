//! Vectors of what ports tell each other about streams.
use super::frame::{from_hex, hex};
use super::names::{name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::stream::{
    Entry, EntryAnswer, FailureReason, Message, StreamEnd, StreamFailure, StreamName, Way, weight,
};
use ayre_proto::units::PeerId;

pub(crate) const HEADER: &str = "\
What ports tell each other about streams (proto/src/stream/message.rs, spec/50-streams).
Numbers are hexadecimal, BYTES two digits each in the order in which they travel, or `-` for none.

encode MESSAGE -> BYTES
parse BYTES -> MESSAGE              or malformed; what is read is said by the same bytes
weight BYTES -> UNITS               what an item of so many bytes counts for
MESSAGE is one of
  open NUMBER STAGE GOES-ON ARGUMENTS
  credit NUMBER UNITS
  end NUMBER HOW
  stop NUMBER HOW
  set REQUEST NAME TO STAGE GOES-ON LASTS ARGUMENTS
  clear REQUEST NAME ONLY-IF-UNUSED
  answer REQUEST WHAT
NAME and TO are PEER NUMBER, ARGUMENTS four words
HOW is closed, cut, or why it failed and PEER: panicked, unknown-stage, nowhere, taken, full,
  unreachable, peer-died, cancelled
WHAT is done, denied, full, taken or unknown";

const WHYS: &[(&str, FailureReason)] = &[
    ("panicked", FailureReason::Panicked),
    ("unknown-stage", FailureReason::UnknownStage),
    ("nowhere", FailureReason::Nowhere),
    ("taken", FailureReason::Taken),
    ("full", FailureReason::Full),
    ("unreachable", FailureReason::Unreachable),
    ("peer-died", FailureReason::PeerDied),
    ("cancelled", FailureReason::Cancelled),
];

const ANSWERS: &[(&str, EntryAnswer)] = &[
    ("done", EntryAnswer::Done),
    ("denied", EntryAnswer::Denied),
    ("full", EntryAnswer::Full),
    ("taken", EntryAnswer::Taken),
    ("unknown", EntryAnswer::Unknown),
];

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

fn how(end: StreamEnd) -> String {
    match end {
        StreamEnd::Closed => "closed".to_owned(),
        StreamEnd::Cut => "cut".to_owned(),
        StreamEnd::Failed(StreamFailure { why, at }) => format!("{} {:x}", name(WHYS, &why), at.0),
    }
}

fn show(message: &Message) -> String {
    let called = |name: &StreamName| format!("{:x} {:x}", name.peer.0, name.number);
    let told = |way: &Way| way.arguments.map(|word| format!("{word:x}")).join(" ");
    match message {
        Message::Open { number, way } => {
            let goes_on = u8::from(way.goes_on);
            format!("open {number:x} {:x} {goes_on} {}", way.stage, told(way))
        }
        Message::Credit { number, units } => format!("credit {number:x} {units:x}"),
        Message::End { number, end } => format!("end {number:x} {}", how(*end)),
        Message::Stop { number, end } => format!("stop {number:x} {}", how(*end)),
        Message::Set { request, name, entry: Entry { to, way, lasts } } => {
            let flags = format!("{} {}", u8::from(way.goes_on), u8::from(*lasts));
            let (name, to) = (called(name), called(to));
            format!("set {request:x} {name} {to} {:x} {flags} {}", way.stage, told(way))
        }
        Message::Clear { request, name, if_unused } => {
            format!("clear {request:x} {} {}", called(name), u8::from(*if_unused))
        }
        Message::Answer { request, answer } => {
            format!("answer {request:x} {}", name(ANSWERS, answer))
        }
    }
}

fn is_set(fields: &mut Fields<'_>) -> bool {
    fields.number::<u8>() == 1
}

fn called(fields: &mut Fields<'_>) -> StreamName {
    StreamName { peer: PeerId(fields.number()), number: fields.number() }
}

fn told(fields: &mut Fields<'_>) -> [u64; 4] {
    std::array::from_fn(|_| fields.number())
}

fn end(fields: &mut Fields<'_>) -> StreamEnd {
    match fields.text() {
        "closed" => StreamEnd::Closed,
        "cut" => StreamEnd::Cut,
        why => {
            StreamEnd::Failed(StreamFailure { why: value(WHYS, why), at: PeerId(fields.number()) })
        }
    }
}

fn read(fields: &mut Fields<'_>) -> Message {
    match fields.text() {
        "open" => {
            let number = fields.number();
            let (stage, goes_on) = (fields.number(), is_set(fields));
            Message::Open { number, way: Way { stage, goes_on, arguments: told(fields) } }
        }
        "credit" => Message::Credit { number: fields.number(), units: fields.number() },
        "end" => Message::End { number: fields.number(), end: end(fields) },
        "stop" => Message::Stop { number: fields.number(), end: end(fields) },
        "set" => {
            let (request, name, to) = (fields.number(), called(fields), called(fields));
            let (stage, goes_on, lasts) = (fields.number(), is_set(fields), is_set(fields));
            let way = Way { stage, goes_on, arguments: told(fields) };
            Message::Set { request, name, entry: Entry { to, way, lasts } }
        }
        "clear" => Message::Clear {
            request: fields.number(),
            name: called(fields),
            if_unused: is_set(fields),
        },
        "answer" => {
            Message::Answer { request: fields.number(), answer: value(ANSWERS, fields.text()) }
        }
        other => panic!("{other} is no message"),
    }
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => hex(&read(inputs).encode()),
            "parse" => {
                let bytes = from_hex(inputs.text());
                match Message::parse(&bytes) {
                    Ok(message) => {
                        assert_eq!(message.encode()[..], bytes, "one way to say it");
                        show(&message)
                    }
                    Err(_) => "malformed".to_owned(),
                }
            }
            "weight" => format!("{:x}", weight(inputs.number())),
            _ => panic!("{step} is no step of a message"),
        }
    }
}

const MESSAGES: &[&str] = &[
    "open 5 100 1 1 ffffffffffffffff 3 4",
    "open 0 ffffffff 0 0 0 0 0",
    "credit 5 10",
    "credit ffffffff ff",
    "set 6 1f4 ffffffff 1 8 105 1 0 1 2 3 4",
    "set 6 0 0 ffff 0 105 0 1 0 0 0 0",
    "clear 6 1f4 2 1",
    "clear 6 ffff 2 0",
];

fn words(words: &[u32]) -> String {
    hex(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
}

pub(crate) fn script(s: &mut Script) {
    s.section("every message");
    let whys = WHYS.iter().map(|(why, _)| format!("end 5 {why} 9"));
    let stops = WHYS.iter().map(|(why, _)| format!("stop 5 {why} 3ff"));
    let answers = ANSWERS.iter().map(|(answer, _)| format!("answer 6 {answer}"));
    let ends = ["end 5 closed", "end 5 cut", "stop 5 closed"].map(str::to_owned);
    let all = MESSAGES.iter().map(|message| (*message).to_owned());
    for message in all.chain(ends).chain(whys).chain(stops).chain(answers) {
        let bytes = s.run(format!("encode {message}"));
        s.run(format!("parse {bytes}"));
    }
    s.section("bytes that lack, and more than there are");
    for message in MESSAGES {
        let bytes = s.run(format!("encode {message}"));
        s.run(format!("parse {}", &bytes[..bytes.len() - 2]));
        s.run(format!("parse {bytes}00"));
    }
    s.section("what no field may say: who has not failed is nobody's; a stop does not cut");
    for bad in [
        &[0, 5][..],
        &[8, 5],
        &[1, 5, 0x100, 2, 0, 0, 0, 0, 0, 0, 0, 0],
        &[2, 5, 0x100],
        &[3, 5, 0, 1],
        &[3, 5, 1, 1],
        &[3, 5, 0xa, 0],
        &[3, 5, 2, 0x1_0000],
        &[4, 5, 1, 0],
        &[5, 6, 0, 0, 1, 8, 0x105, 4, 0, 0, 0, 0, 0, 0, 0, 0],
        &[6, 1, 0x1_0000, 1, 0],
        &[6, 1, 1, 1, 2],
        &[7, 6, 5],
    ] {
        s.run(format!("parse {}", words(bad)));
    }
    s.run("parse -");
    s.section("any words, of each kind");
    for kind in 0..9 {
        for _ in 0..6 {
            let count = s.random.below(16);
            let rest = (0..count).map(|_| s.random.edge() as u32);
            let all: Vec<_> = std::iter::once(kind).chain(rest).collect();
            s.run(format!("parse {}", words(&all)));
        }
    }
    s.section("what items count for");
    for bytes in [0, 1, 0x3ff, 0x400, 0x7ff, 0x800, 0xf7ff, 0xf800, 0xfbff, 0xfc00, 0x10_0000] {
        s.run(format!("weight {bytes:x}"));
    }
}

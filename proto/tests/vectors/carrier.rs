//! Vectors of a carrier: what it posts, which commands it takes when, and what it tells and hears.
use super::names::{CHANNELS, name, value};
use super::paper::{Packed, paper};
use super::plain_memory::{Heap, frames};
use super::port::PlainPort;
use super::script::{Fields, Machine, Script};
use super::served::Served;
use ayre_proto::command::Request;
use ayre_proto::execute::{Action, Command};
use ayre_proto::lane::Malformed;
use ayre_proto::link::frame::{Flags, Record, RecordKind};
use ayre_proto::node::carrier::counts::Counts;
use ayre_proto::node::carrier::frames::Frames;
use ayre_proto::node::carrier::{About, COUNTS_DELAY, Carrier, Taken};
use ayre_proto::notify::Classes;
use ayre_proto::units::{Claim, Key, PeerId};

pub(crate) const HEADER: &str = "\
A carrier between the lanes of a port and the frames of a link (proto/src/node/carrier.rs,
spec/89). Numbers are hexadecimal, `-` is none. EARLY: 1 where the data of the frame's puts may be
in place before its turn. DONE, NOTED: what the port is told of its own commands at the peer.

carrier LINES RING -> ok          a connection: lines of each lane of messages, and of each ring
put SLOT GENERATION OFFSET LEN -> NUMBER             the port posts a put; no two fit a frame
get -> NUMBER                                        the same of a get
depart CHANNEL EXECUTED -> EARLY                     the oldest frame goes; so many were executed
command NUMBER -> taken                              one comes that faults: or not-yet, malformed
response -> DONE NOTED                               an answer of the peer has come
hear ASKS SERIAL RESPONSES DONE NOTED LINES RING -> DONE NOTED     counts have come, or malformed
ask -> ok                                            the port waits for what it has posted
port DONE NOTED LINES RING -> ok                     how far the port has come
gather NOW CHANNEL -> CHANNEL ASKS WORD WORD WORD WORD   the counts that are told, or -; a frame of
                                                     the first channel is about to go anyway";

/// Bytes of a put's frame: two find no room in one.
const ROOM: usize = 256;

struct Bench {
    carrier: Carrier,
    port: PlainPort,
    target: Served,
    frames: Frames<Heap>,
    sent: [u32; 3],
    posted: u32,
}

impl Bench {
    fn new(lines: u32, ring: u32) -> Self {
        Self {
            carrier: Carrier::new(),
            port: PlainPort::new([lines, lines, ring]),
            target: Served::new(PeerId(1)),
            frames: frames(ROOM),
            sent: [0; 3],
            posted: 0,
        }
    }

    fn post(&mut self, action: Action, claim: Claim, len: usize) -> String {
        let command = Command { action, classes: Classes::empty(), tag: 0, value: 0, claim };
        let request = Request { command, cookie: 0 };
        let posted = self.carrier.post(&request, (len, |_| {}), &mut self.frames);
        posted.expect("the script has frames depart in time");
        self.posted += 1;
        format!("{:x}", self.posted)
    }

    fn take(&mut self, kind: RecordKind, tag: u32, bytes: &[u8]) -> Result<Taken, Malformed> {
        let Self { carrier, port, target, .. } = self;
        carrier.take(&Record { kind, tag, bytes }, port, target, &mut paper(9))
    }

    fn told(&self) -> String {
        format!("{:x} {:x}", self.port.done_there, self.port.noted_there)
    }
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Bench::new(32, 0))
}

fn outcome(taken: Result<Taken, Malformed>) -> &'static str {
    match taken {
        Ok(Taken::Taken) => "taken",
        Ok(Taken::NotYet) => "not-yet",
        Err(Malformed) => "malformed",
    }
}

fn show((channel, _, tag, bytes): &Packed) -> String {
    let (words, _) = bytes.as_chunks();
    let words = words.iter().map(|word| format!("{:x}", u64::from_le_bytes(*word)));
    let asks = u8::from(*tag == About::CountsAsking as u32);
    format!("{} {asks} {}", name(CHANNELS, channel), words.collect::<Vec<_>>().join(" "))
}

impl Machine for Bench {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "carrier" => *self = Self::new(inputs.number(), inputs.number()),
            "put" => {
                let key = Key { slot: inputs.number(), generation: inputs.number() };
                let claim = Claim { key, offset: inputs.number(), len: inputs.number() };
                return self.post(Action::Put, claim, 150);
            }
            "get" => {
                let key = Key { slot: 0, generation: 0 };
                return self.post(Action::Get, Claim { key, offset: 0, len: 8 }, 0);
            }
            "depart" => {
                let channel = value(CHANNELS, inputs.text());
                let seq = &mut self.sent[channel.index()];
                let (_, flags) = self.frames.depart((channel, *seq), inputs.number());
                *seq += 1;
                return u8::from(flags == Flags::EARLY).to_string();
            }
            "command" => {
                // No such operation.
                return outcome(self.take(RecordKind::Command, inputs.number(), &[0; 48])).into();
            }
            "response" => {
                self.take(RecordKind::Response, 0, &[0; 16]).expect("an answer has room");
                self.port.answers.take();
                return self.told();
            }
            "hear" => {
                let asks = inputs.number::<u8>() == 1;
                let (serial, responses) = (inputs.number(), inputs.number());
                let (done, noted) = (inputs.number(), inputs.number());
                let (lines, ring) = (inputs.number(), inputs.number());
                let counts = Counts { responses, done, noted, lines, ring };
                let words = counts.encode(serial);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let about = if asks { About::CountsAsking } else { About::Counts };
                return match self.take(RecordKind::Control, about as u32, &bytes) {
                    Ok(_) => self.told(),
                    Err(Malformed) => "malformed".to_owned(),
                };
            }
            "ask" => self.carrier.ask(),
            "port" => {
                (self.port.done, self.port.noted) = (inputs.number(), inputs.number());
                self.port.came_said = Some(inputs.number());
                self.port.ring_come.taken = inputs.number::<usize>() * 64;
            }
            "gather" => {
                let mut paper = paper(9);
                paper.now = inputs.number();
                let begun = inputs.text();
                paper.begun = (begun != "-").then(|| value(CHANNELS, begun));
                self.carrier.gather(&mut self.port, &mut paper);
                let told = paper.records.first();
                return told.map_or_else(|| "-".to_owned(), show);
            }
            _ => panic!("{step} is no step of a carrier"),
        }
        "ok".to_owned()
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("puts that reach none of the same bytes wait for what is before the first of them");
    s.run("carrier 20 0");
    for (put, executed) in [
        ("put 1 1 64 32", 0),
        ("put 1 1 96 32", 0),
        ("put 1 1 0 64", 0),
        ("put 1 1 12c 1", 0),
        ("put 1 1 c8 1", 3),
        ("put 1 1 c8 1", 5),
        ("put 1 2 1f4 1", 5),
        ("put 1 2 ffffffffffffffff 9", 7),
        ("put 1 2 0 9", 7),
    ] {
        s.run(put);
        s.run(format!("depart posted {executed:x}"));
    }
    s.section("what is no put has to wait, and is waited for");
    s.run("carrier 20 0");
    for step in ["put 1 1 0 8", "depart posted 0", "get", "depart non-posted 9", "put 1 1 8 8"] {
        s.run(step);
    }
    s.run("depart posted 1");
    s.run("put 1 1 10 8");
    s.run("depart posted 2");
    s.section("commands are taken in the order of their numbers, which wrap");
    s.run("carrier 20 0");
    for number in [2, 1, 1, 3, 2, 0, u32::MAX, 0x8000_0002, 0x8000_0003, 3] {
        s.run(format!("command {number:x}"));
    }
    hearing(s);
    telling(s);
    traffic(s);
}

fn hearing(s: &mut Script) {
    s.section("commands count as executed once their responses have come; the newest counts hold");
    s.run("carrier 20 10");
    (0..4).for_each(|_| _ = s.run("get"));
    for step in [
        "hear 0 1 1 2 0 0 0",
        "response",
        "hear 0 1 1 3 0 0 0",
        "hear 0 2 1 3 5 0 0",
        "hear 0 3 1 2 5 0 0",
        "hear 0 3 1 5 5 0 0",
        "hear 0 3 4 4 6 0 0",
        "response",
        "response",
        "response",
        "hear 0 4 4 4 6 1 0",
        "hear 0 4 4 4 6 0 1",
        "hear 1 4 4 4 7 0 0",
        "hear 0 80000003 4 4 8 0 0",
        "hear 0 80000005 4 4 9 0 0",
        "gather 0 -",
    ] {
        s.run(step);
    }
}

fn telling(s: &mut Script) {
    s.section("counts are told along with what goes, where somebody waits, or after a while");
    s.run("carrier 20 10");
    for step in ["gather 0 -", "port 0 1 0 0", "gather 64 -"] {
        s.run(step);
    }
    s.run(format!("gather {:x} -", 0x64 + COUNTS_DELAY - 1));
    s.run(format!("gather {:x} -", 0x64 + COUNTS_DELAY));
    for step in [
        "gather 10000 -",
        "port 1 1 0 0",
        "gather 10000 posted",
        "port f 1 0 0",
        "gather 10001 -",
        "port 11 1 0 0",
        "gather 10002 -",
        "port 11 1 8 0",
        "gather 10003 -",
        "port 11 1 8 3",
        "gather 10004 -",
        "port 11 1 8 4",
        "gather 10005 -",
        "ask",
        "gather 10006 -",
        "gather 10007 -",
        "hear 1 1 0 0 0 0 0",
        "port 11 2 8 4",
        "gather 10008 -",
    ] {
        s.run(step);
    }
}

fn traffic(s: &mut Script) {
    s.section("at random");
    s.run("carrier 20 10");
    let (mut posted, mut serial, mut told, mut now) = (0, 0, [0; 2], 0);
    for _ in 0..160 {
        match s.random.below(7) {
            0 => {
                let offset = s.random.below(64) * 8;
                s.run(format!("put 1 1 {offset:x} 40"));
                let executed = s.random.below(posted + 1);
                s.run(format!("depart posted {executed:x}"));
                posted += 1;
            }
            1 => {
                s.run("response");
            }
            2 => {
                serial += s.random.below(3);
                let (responses, done) = (s.random.below(8), s.random.below(posted + 2));
                s.run(format!("hear {:x} {serial:x} {responses:x} {done:x} 0 0 0", serial % 2));
            }
            3 => told = told.map(|count| count + s.random.below(6)),
            4 => {
                s.run("ask");
            }
            _ => {
                now += s.random.below(COUNTS_DELAY);
                s.run(format!("port {:x} {:x} 0 0", told[0], told[1]));
                let begun = s.random.pick(&["-", "-", "posted", "response"]);
                s.run(format!("gather {now:x} {begun}"));
            }
        }
    }
}

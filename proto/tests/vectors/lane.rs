//! Vectors of a lane's sender and receiver.
use super::names::{KINDS, name};
use super::script::{Fields, Machine, Script};
use ayre_proto::lane::{Kind, Receiver, Sender, Status, lines_for};

pub(crate) const HEADER: &str = "\
A lane: the sender's and the receiver's machine (proto/src/lane.rs, spec/90).
Numbers are hexadecimal, `-` is none. The lines themselves are not here: the words that a receiver
looks at are inputs.

lane LINES -> ok                       a new, empty lane
take -> POSITION SEQUENCE FREE         sender: takes a line; lines known to be free afterwards
cursor COUNT -> ok|malformed FREE      sender: reads the receiver's count of consumed lines
look WORD -> waiting                   receiver: the word is not that of the next line
look WORD -> malformed                 receiver: it is, but no record can begin with it
look WORD -> KIND LEN TAG LINES        receiver: it begins this record
consume LINES -> POSITION COUNT        receiver: takes lines off; next line, count to publish if due
pass LINES -> POSITION SEQUENCE COUNT  both: sends and consumes single lines, each count that is due
                                       is read at once; sender's last line, count published last";

struct Lane {
    sender: Sender,
    receiver: Receiver,
    published: u32,
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Lane { sender: Sender::new(2), receiver: Receiver::new(2), published: 0 })
}

impl Lane {
    fn look(&self, word: u64) -> String {
        if !self.receiver.arrived(word) {
            return "waiting".to_owned();
        }
        match self.receiver.record(word) {
            Err(_) => "malformed".to_owned(),
            Ok(Status { kind, len, tag, .. }) => {
                format!("{} {len:x} {tag:x} {:x}", name(KINDS, &kind), lines_for(len as usize))
            }
        }
    }

    fn consume(&mut self, lines: u32) -> Option<u32> {
        self.receiver.consume(lines);
        let due = self.receiver.cursor_due();
        self.published = due.unwrap_or(self.published);
        due
    }

    fn pass(&mut self, lines: u32) -> String {
        let mut last = (0, 0);
        for _ in 0..lines {
            last = self.sender.take();
            if let Some(count) = self.consume(1) {
                self.sender.on_cursor(count).expect("a correct count");
            }
        }
        format!("{:x} {:x} {:x}", last.0, last.1, self.published)
    }
}

impl Machine for Lane {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "lane" => {
                let lines = inputs.number();
                let (sender, receiver) = (Sender::new(lines), Receiver::new(lines));
                *self = Self { sender, receiver, published: 0 };
                "ok".to_owned()
            }
            "take" => {
                let (position, sequence) = self.sender.take();
                format!("{position:x} {sequence:x} {:x}", self.sender.free())
            }
            "cursor" => {
                let taken = self.sender.on_cursor(inputs.number());
                let said = if taken.is_ok() { "ok" } else { "malformed" };
                format!("{said} {:x}", self.sender.free())
            }
            "look" => self.look(inputs.number()),
            "consume" => {
                let due = self.consume(inputs.number());
                let count = due.map_or_else(|| "-".to_owned(), |count| format!("{count:x}"));
                format!("{:x} {count}", self.receiver.position())
            }
            "pass" => self.pass(inputs.number()),
            _ => panic!("{name} is no step of a lane"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("the shortest lane: one line at a time, full, given back");
    for step in ["lane 2", "look 0", "take", "take", "cursor 3", "cursor ffffffff", "cursor 0"] {
        s.run(step);
    }
    s.run(format!("look {:x}", word(1, Kind::Message, 5)));
    for step in ["consume 1", "cursor 1", "cursor 0", "take", "look 10001", "consume 2"] {
        s.run(step);
    }
    for lines in [3, 24, 28, 44, 64] {
        s.section("records of several lines, and words that no correct peer writes");
        traffic(s, lines, 60);
    }
    s.section("the 16-bit sequence number wraps, here where the lane's end does not");
    for step in ["lane 2c", "pass fffd", "take", "take", "take", "take", "cursor 10001"] {
        s.run(step);
    }
    for sequence in [0xfffe, 0, 0xffff] {
        s.run(format!("look {:x}", word(sequence, Kind::Command, 56)));
    }
    s.run("consume 2");
    s.run(format!("look {:x}", word(0, Kind::Command, 56)));
    for step in ["consume 2", "pass 1ffff", "cursor 0", "cursor 30000"] {
        s.run(step);
    }
}

fn word(sequence: u16, kind: Kind, len: u32) -> u64 {
    Status { sequence, kind, len, tag: 0 }.encode()
}

/// Records go in and out at random, as two correct ports would have it; both see some nonsense.
fn traffic(s: &mut Script, lines: u32, steps: usize) {
    let (mut free, mut published, mut records) = (lines, 0, std::collections::VecDeque::new());
    s.run(format!("lane {lines:x}"));
    for _ in 0..steps {
        let len = s.random.below(1 + u64::from(lines.min(12)) * 56) as u32;
        let needed = lines_for(len as usize);
        match s.random.below(5) {
            0 | 1 if needed <= free => {
                let first = s.run("take");
                for _ in 1..needed {
                    s.run("take");
                }
                free -= needed;
                let sequence = first.split(' ').nth(1).expect("the number of the line");
                records.push_back((u16::from_str_radix(sequence, 16).expect("hexadecimal"), len));
            }
            0..=2 => {
                let Some((sequence, len)) = records.pop_front() else {
                    s.run("look 0");
                    continue;
                };
                let kind = s.random.pick(KINDS).1;
                let found = s.run(format!("look {:x}", word(sequence, kind, len)));
                let taken = s.run(format!("consume {:x}", lines_for(len as usize)));
                assert_eq!(found == "malformed", kind == Kind::Continuation);
                if let Some((_, count)) = taken.split_once(' ').filter(|(_, count)| *count != "-") {
                    published = u32::from_str_radix(count, 16).expect("hexadecimal");
                }
            }
            3 => {
                let free_now = s.run(format!("cursor {published:x}"));
                free = u32::from_str_radix(&free_now[3..], 16).expect("ok and a number");
            }
            _ => {
                let (count, bits) = (s.random.edge() as u32, s.random.word());
                // In an empty lane only the count itself is right; elsewhere chance might hit one
                // that is, and give lines free that the receiver has not read.
                if free == lines {
                    s.run(format!("cursor {count:x}"));
                }
                s.run(format!("look {bits:x}"));
            }
        }
    }
}

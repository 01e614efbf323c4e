//! Vectors of the records between endpoints.
use super::script::{Fields, Machine, Script};
use ayre_proto::envelope::{ENVELOPE_WORDS, Envelope, Record};
use ayre_proto::fault::Fault;

pub(crate) const HEADER: &str = "\
Records between endpoints (proto/src/envelope.rs, spec/46). Numbers are hexadecimal, `-` is none.

encode RECORD -> HEAD COUNT                 COUNT words of the head travel
parse HEAD LEN -> RECORD COUNT              a record of LEN bytes, of which COUNT words are its own;
                                            or malformed
HEAD is the tag of the lane's record, and five words
RECORD is one of
  short TAG DATA ANSWER
  long TAG DATA ANSWER LENGTH PLACE
  ask TAG DATA ID ANSWERED LENGTH ADDRESS
  go ID TO LENGTH
  part TO LENGTH PLACE
  here TO
  done ID
  refused ID FAULT
  ahead LONGEST";

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

fn maybe(word: Option<u64>) -> String {
    word.map_or_else(|| "-".to_owned(), |word| format!("{word:x}"))
}

fn show(record: &Record) -> String {
    let of = |envelope: &Envelope| format!("{} {}", maybe(envelope.tag), maybe(envelope.data));
    match record {
        Record::Short { envelope, answer } => format!("short {} {}", of(envelope), maybe(*answer)),
        Record::Long { envelope, answer, len, place } => {
            format!("long {} {} {len:x} {place:x}", of(envelope), maybe(*answer))
        }
        Record::Rts { envelope, id, answered, len, address } => {
            let answered = u8::from(*answered);
            format!("ask {} {id:x} {answered:x} {len:x} {address:x}", of(envelope))
        }
        Record::Cts { id, to, len } => format!("go {id:x} {to:x} {len:x}"),
        Record::Fragment { to, len, place } => format!("part {to:x} {len:x} {place:x}"),
        Record::FragmentHere { to } => format!("here {to:x}"),
        Record::Fin { id } => format!("done {id:x}"),
        Record::Refused { id, fault } => format!("refused {id:x} {:x}", fault.code()),
        Record::Ahead { longest } => format!("ahead {longest:x}"),
    }
}

fn read(fields: &mut Fields<'_>) -> Record {
    let of = |fields: &mut Fields<'_>| Envelope { tag: fields.maybe(), data: fields.maybe() };
    match fields.text() {
        "short" => Record::Short { envelope: of(fields), answer: fields.maybe() },
        "long" => Record::Long {
            envelope: of(fields),
            answer: fields.maybe(),
            len: fields.number(),
            place: fields.number(),
        },
        "ask" => Record::Rts {
            envelope: of(fields),
            id: fields.number(),
            answered: fields.number::<u8>() == 1,
            len: fields.number(),
            address: fields.number(),
        },
        "go" => Record::Cts { id: fields.number(), to: fields.number(), len: fields.number() },
        "part" => {
            Record::Fragment { to: fields.number(), len: fields.number(), place: fields.number() }
        }
        "here" => Record::FragmentHere { to: fields.number() },
        "done" => Record::Fin { id: fields.number() },
        "refused" => {
            Record::Refused { id: fields.number(), fault: Fault::from_code(fields.number()) }
        }
        "ahead" => Record::Ahead { longest: fields.number() },
        other => panic!("{other} is no record"),
    }
}

fn words(head: [u64; ENVELOPE_WORDS]) -> String {
    head.map(|word| format!("{word:x}")).join(" ")
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => {
                let (tag, head, count) = read(inputs).encode();
                format!("{tag:x} {} {count:x}", words(head))
            }
            "parse" => {
                let tag = inputs.number();
                let head = std::array::from_fn(|_| inputs.number());
                Record::parse(tag, head, inputs.number()).map_or_else(
                    |_| "malformed".to_owned(),
                    |(record, count)| format!("{} {count:x}", show(&record)),
                )
            }
            _ => panic!("{step} is no step of an envelope"),
        }
    }
}

/// Encodes a record and reads it again, with `bytes` bytes behind it.
pub(crate) fn both_ways(s: &mut Script, record: &str, bytes: u64) {
    let out = s.run(format!("encode {record}"));
    let (head, count) = out.rsplit_once(' ').expect("a head and a count");
    let count = u64::from_str_radix(count, 16).expect("a number");
    s.run(format!("parse {head} {:x}", count * 8 + bytes));
}

pub(crate) fn script(s: &mut Script) {
    s.section("every record, with and without what it may have");
    for tag in ["-", "0", "123456789abcdef"] {
        for data in ["-", "ffffffffffffffff"] {
            for answer in ["-", "0", "7"] {
                both_ways(s, &format!("short {tag} {data} {answer}"), 0x30);
                both_ways(s, &format!("long {tag} {data} {answer} 10000 7fffffffffffffc0"), 0);
            }
            both_ways(s, &format!("ask {tag} {data} 5 0 4001 0"), 0);
            both_ways(s, &format!("ask {tag} {data} 5 1 ffffffffffffffff 7fff12345678"), 0);
        }
    }
    for record in ["go 1 2 3", "go 0 ffffffffffffffff 0", "part 1 40 80", "done 9", "refused 9 4"] {
        both_ways(s, record, 0);
    }
    for record in ["refused ffffffffffffffff 10", "ahead 200"] {
        both_ways(s, record, 0);
    }
    both_ways(s, "here 3", 1);
    s.section("every code, with each bit");
    for code in 0..16 {
        for bit in [0, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 31_u64] {
            for len in [8, 0x10, 0x18, 0x20, 0x28] {
                s.run(format!("parse {:x} 1 2 3 4 5 {len:x}", code | bit));
            }
        }
    }
    s.section("as many bytes as there may be, and one more");
    for (tag, most) in [(1, 0x410), (0x41, 0x418), (6, 0x408)] {
        for len in [most, most + 1, 0xfff] {
            s.run(format!("parse {tag:x} 1 2 3 4 5 {len:x}"));
        }
    }
    s.section("the longest long one, and longer ones");
    for len in [0x1_0000, 0x1_0001, 1 << 63, u64::MAX] {
        s.run(format!("parse 2 1 2 3 {len:x} 0 28"));
    }
    s.section("refusals");
    for name in [1, u64::MAX] {
        for fault in 0..18 {
            s.run(format!("parse 8 {name:x} {fault:x} 0 0 0 10"));
        }
    }
    s.section("any words");
    for _ in 0..48 {
        let (tag, len) = (s.random.below(128), s.random.below(6) * 8);
        let head = std::array::from_fn(|_| s.random.edge());
        s.run(format!("parse {tag:x} {} {len:x}", words(head)));
    }
}

//! Vectors of the records by which endpoints touch each other's windows.
use super::envelope::both_ways;
use super::script::{Fields, Machine, Script};
use ayre_proto::combine::{Combine, Number};
use ayre_proto::rma::{Calculation, RMA_WORDS, RmaRecord};

pub(crate) const HEADER: &str = "\
Records that touch windows (proto/src/touch.rs, spec/46). Numbers are hexadecimal, `-` is none.

encode RECORD -> HEAD COUNT                 COUNT words of the head travel
parse HEAD LEN -> RECORD COUNT              a record of LEN bytes, of which COUNT words are its own;
                                            or malformed
HEAD is the tag of the lane's record, and six words
RECORD is one of
  last KEY ADDRESS ID BEFORE DATA           write here
  part KEY ADDRESS LENGTH BEFORE COUNT PLACE
  here KEY ADDRESS LENGTH BEFORE            write part here
  read KEY ADDRESS ID LENGTH
  update KEY ADDRESS ID OP NUMBER COUNT TELLS DATA";

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

fn show(record: &RmaRecord) -> String {
    let maybe = |word: Option<u64>| word.map_or_else(|| "-".to_owned(), |word| format!("{word:x}"));
    match *record {
        RmaRecord::WriteHere { key, address, id, before, data } => {
            format!("last {key:x} {address:x} {id:x} {before:x} {}", maybe(data))
        }
        RmaRecord::WritePart { key, address, len, before, count, place } => {
            format!("part {key:x} {address:x} {len:x} {before:x} {count:x} {place:x}")
        }
        RmaRecord::WritePartHere { key, address, len, before } => {
            format!("here {key:x} {address:x} {len:x} {before:x}")
        }
        RmaRecord::Read { key, address, id, len } => {
            format!("read {key:x} {address:x} {id:x} {len:x}")
        }
        RmaRecord::Update { key, address, id, what, data } => {
            let Calculation { op, number, count, fetches } = what;
            let (op, number, fetches) = (op.code(), number.code(), u8::from(fetches));
            let what = format!("{op:x} {number:x} {count:x} {fetches:x}");
            format!("update {key:x} {address:x} {id:x} {what} {}", maybe(data))
        }
    }
}

fn read(fields: &mut Fields<'_>) -> RmaRecord {
    let kind = fields.text();
    let (key, address) = (fields.number(), fields.number());
    match kind {
        "last" => {
            let (id, before) = (fields.number(), fields.number());
            RmaRecord::WriteHere { key, address, id, before, data: fields.maybe() }
        }
        "part" => {
            let (len, before, count) = (fields.number(), fields.number(), fields.number());
            RmaRecord::WritePart { key, address, len, before, count, place: fields.number() }
        }
        "here" => {
            RmaRecord::WritePartHere { key, address, len: fields.number(), before: fields.number() }
        }
        "read" => RmaRecord::Read { key, address, id: fields.number(), len: fields.number() },
        "update" => {
            let id = fields.number();
            let what = Calculation {
                op: Combine::from_code(fields.number()).expect("an op"),
                number: Number::from_code(fields.number()).expect("a number"),
                count: fields.number(),
                fetches: fields.number::<u8>() == 1,
            };
            RmaRecord::Update { key, address, id, what, data: fields.maybe() }
        }
        other => panic!("{other} is no record"),
    }
}

fn words(head: [u64; RMA_WORDS]) -> String {
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
                RmaRecord::parse(tag, head, inputs.number()).map_or_else(
                    |_| "malformed".to_owned(),
                    |(record, count)| format!("{} {count:x}", show(&record)),
                )
            }
            _ => panic!("{step} is no step of a touch"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("every record, with and without what it may have");
    for data in ["-", "0", "ffffffffffffffff"] {
        both_ways(s, &format!("last 1 7000 8000000000000002 0 {data}"), 8);
        both_ways(s, &format!("last 1 7000 8000000000000002 100000 {data}"), 0);
        both_ways(s, &format!("update 1 7000 8000000000000002 3 8 2 0 {data}"), 0x10);
        both_ways(s, &format!("update 1 7000 8000000000000002 d 7 1 1 {data}"), 0x10);
    }
    both_ways(s, "part 1 7000 100000 8000 8000 40", 0);
    both_ways(s, "here 1 7000 100000 8000", 0x200);
    both_ways(s, "read 1 7000 8000000000000002 ffffffffffffffff", 0);
    s.section("every code, with each bit");
    for code in 8..16 {
        for bit in [0, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 31_u64] {
            for len in [0x20, 0x28, 0x30, 0x38] {
                s.run(format!("parse {:x} 1 2 103 10403 5 6 {len:x}", code | bit));
            }
        }
    }
    s.section("parts that leave their write, or are empty");
    for (len, before, count) in
        [(8, 0, 8), (8, 8, 0), (8, 1, 8), (8, 9, 1), (u64::MAX, u64::MAX, 1), (8, u64::MAX, 9)]
    {
        s.run(format!("parse a 1 2 {len:x} {before:x} {count:x} 0 30"));
        if count < 0x400 {
            s.run(format!("parse b 1 2 {len:x} {before:x} 0 0 {:x}", 0x20 + count));
        }
    }
    s.section("as many bytes as there may be, and one more");
    for (tag, words, most) in [(9, 4, 0x400), (0x29, 5, 0x400), (0xb, 4, 0x400), (0xc, 4, 0)] {
        for bytes in [most, most + 1, 0xf00] {
            s.run(format!("parse {tag:x} 1 2 1000 0 0 0 {:x}", words * 8 + bytes));
        }
    }
    s.section("every update of one number, wanted back or not");
    for op in 0..21 {
        for number in 0..14_u64 {
            let size = Number::from_code(number as u8).map_or(1, |number| number.size() as u64);
            let what = op | number << 8 | 1 << 16;
            let bytes = size * [1, 0, 2][usize::from(op == 11) + 2 * usize::from(op > 12)];
            s.run(format!("parse d 1 2 3 {what:x} 0 0 {:x}", 0x20 + bytes));
            s.run(format!("parse 4d 1 2 3 {what:x} 0 0 {:x}", 0x20 + bytes));
        }
    }
    s.section("updates of many numbers, and with other bytes than they need");
    for (what, bytes) in
        [(0x80_0803, 0x400), (0x81_0803, 0x408), (0x40_080d, 0x400), (0x41_080d, 0x410)]
    {
        s.run(format!("parse d 1 2 3 {what:x} 0 0 {:x}", 0x20 + bytes));
    }
    for (what, bytes) in [(0x2_0803, 8), (0x2_0803, 0x18), (0, 0), (0x1_0001_0803_u64, 8)] {
        s.run(format!("parse d 1 2 3 {what:x} 0 0 {:x}", 0x20 + bytes));
    }
}

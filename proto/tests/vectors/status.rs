//! Vectors of a line's status word.
use super::names::{KINDS, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::lane::{Kind, Status, lines_for};

pub(crate) const HEADER: &str = "\
The status word of a line (proto/src/lane.rs, spec/90). Numbers are hexadecimal.

encode SEQUENCE KIND LEN TAG -> WORD
decode WORD -> SEQUENCE KIND LEN TAG   or malformed, where no such kind exists
lines LEN -> LINES                     lines of a record of so many bytes";

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => {
                let (sequence, kind) = (inputs.number(), value(KINDS, inputs.text()));
                let (len, tag) = (inputs.number(), inputs.number());
                format!("{:016x}", Status { sequence, kind, len, tag }.encode())
            }
            "decode" => match Status::decode(inputs.number()) {
                None => "malformed".to_owned(),
                Some(Status { sequence, kind, len, tag }) => {
                    format!("{sequence:x} {} {len:x} {tag:x}", name(KINDS, &kind))
                }
            },
            "lines" => format!("{:x}", lines_for(inputs.number())),
            _ => panic!("{step} is no step of a status word"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("every kind, at the edges of its fields");
    for (kind_name, kind) in KINDS {
        let lens: &[u32] = match kind {
            Kind::Record => &[0, 1, 0x1000, u32::MAX],
            _ => &[0, 1, 56, 57, 0xfff],
        };
        let tag = if *kind == Kind::Record { 0 } else { 0xdead_beef_u32 };
        for len in lens {
            let word = s.run(format!("encode 1 {kind_name} {len:x} {tag:x}"));
            s.run(format!("decode {word}"));
        }
        s.run(format!("encode ffff {kind_name} 38 0"));
    }
    s.section("all values of the kind's four bits");
    for bits in 0..16u64 {
        s.run(format!("decode {:016x}", 0x1234_5678_0380_0009 | bits << 16));
    }
    s.section("any words");
    for _ in 0..40 {
        let word = s.random.word();
        s.run(format!("decode {word:016x}"));
    }
    s.section("lines of a record");
    for len in [0, 1, 55, 56, 57, 112, 113, 1024, 1032, 4095] {
        s.run(format!("lines {len:x}"));
    }
}

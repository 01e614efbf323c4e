//! Vectors of notifications and their classes.
use super::names::{OPERATIONS, STATUSES, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::execute::Report;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::notify::{Classes, Notification};
use ayre_proto::units::PeerId;

pub(crate) const HEADER: &str = "\
Notifications: the record of 128 bits, and who is told of what (proto/src/notify.rs, spec/30).
Numbers are hexadecimal. CLASS and ASKED are bits: 1 requester, 2 completer, 4 responder.

encode SOURCE CLASS STATUS OPERATION TAG VALUE -> WORD0 WORD1
decode WORD0 WORD1 SOURCE -> SOURCE CLASS STATUS OPERATION TAG VALUE   or malformed
                            the source is what the reader knows, not what the record claims
classes OPERATION ASKED -> TARGET INITIATOR FAULT
                            raised at the target, at the initiator, at the initiator upon a fault";

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

fn show(note: &Notification) -> String {
    let Notification { source, class, status, operation, tag, value } = note;
    let (status, operation) = (name(STATUSES, status), name(OPERATIONS, operation));
    format!("{:x} {:x} {status} {operation} {tag:x} {value:x}", source.0, class.bits())
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => {
                let source = PeerId(inputs.number());
                let class = Classes::from_bits_truncate(inputs.number());
                let status = value(STATUSES, inputs.text());
                let operation = value(OPERATIONS, inputs.text());
                let (tag, value) = (inputs.number(), inputs.number());
                let note = Notification { source, class, status, operation, tag, value };
                let [first, second] = note.encode();
                format!("{first:016x} {second:016x}")
            }
            "decode" => {
                let words = [inputs.number(), inputs.number()];
                Notification::decode(words, PeerId(inputs.number()))
                    .map_or_else(|| "malformed".to_owned(), |note| show(&note))
            }
            "classes" => {
                let operation = value(OPERATIONS, inputs.text());
                let classes = Classes::from_bits_truncate(inputs.number());
                let target = operation.at_target(classes).unwrap_or(Classes::empty());
                let report = Report { operation, classes, tag: 0, value: 0 };
                let at_initiator = |status| report.classes_at_initiator(status).bits();
                let fault = at_initiator(Status::Fault(Fault::StaleKey));
                format!("{:x} {:x} {fault:x}", target.bits(), at_initiator(Status::Ok))
            }
            _ => panic!("{step} is no step of a notification"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("who is told, for every operation and all that can be asked for");
    for (operation, _) in OPERATIONS {
        for asked in 0..8 {
            s.run(format!("classes {operation} {asked:x}"));
        }
    }
    s.section("every operation, every status, every class");
    for (operation, _) in OPERATIONS {
        let record = format!("encode ffff 2 ok {operation} 1 {:x}", u64::MAX);
        let words = s.run(record);
        s.run(format!("decode {words} 3"));
    }
    for (status, _) in STATUSES {
        let words = s.run(format!("encode 0 1 {status} get ffffffff 0"));
        s.run(format!("decode {words} 1"));
    }
    let words = s.run("encode 7 4 ok fetch-atomic 2a 123456789abcdef");
    s.run(format!("decode {words} ffff"));
    s.section("all values of the class, status and operation fields");
    for class in 0..16u64 {
        s.run(format!("decode {:016x} 5 1", 0x1_0000_0000 | 1 << 24 | class << 16));
    }
    for status in 0..16u64 {
        s.run(format!("decode {:016x} 5 1", 0x1_0000_0000 | 1 << 24 | status << 20 | 1 << 16));
    }
    for operation in 0..=8u64 {
        s.run(format!("decode {:016x} 5 1", 0x1_0000_0000 | operation << 24 | 2 << 16));
    }
    s.section("any words");
    for _ in 0..24 {
        let (word, value) = (s.random.word(), s.random.edge());
        let class = 1 << s.random.below(3);
        let likely = word & !0x070f_0000 | s.random.below(8) << 24 | class << 16;
        s.run(format!("decode {word:016x} {value:x} 9"));
        s.run(format!("decode {:016x} {value:x} 9", likely & !0xf800_0000));
    }
}

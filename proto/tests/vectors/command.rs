//! Vectors of commands and responses.
use super::names::{ATOMICS, OPERATIONS, STATUSES, WIDTHS, fault, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::command::{Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::notify::{Classes, Operation};
use ayre_proto::units::{Claim, Key};

pub(crate) const HEADER: &str = "\
Commands of a mediated connection (proto/src/command.rs, spec/90). Numbers are hexadecimal.

encode COMMAND -> WORD0 WORD1 WORD2 WORD3 WORD4 WORD5
parse WORD0 WORD1 WORD2 WORD3 WORD4 WORD5 DATA -> COMMAND CHECK RIGHTS   or malformed
COMMAND is OPERATION CLASSES SLOT GENERATION TAG OFFSET LEN VALUE ATOMIC WIDTH FOURTH FIFTH
  CLASSES        bits: 1 requester, 2 completer, 4 responder
  ATOMIC WIDTH   `-` except for atomics
  FOURTH         the eight bytes of an immediate put, the operand of an atomic, else 0
  FIFTH          the cookie of a get, the comparand of an atomic, else 0
  LEN            follows from DATA (put), WORD4 (get) or the operation
DATA bytes follow the six words in their record.
CHECK is ok, or the fault that is found without a table. RIGHTS are the bits that the key must have:
1 read, 2 write, 4 atomic, 8 enqueue, 10 notify.";

pub(crate) const RESPONSE_HEADER: &str = "\
Responses of a mediated connection (proto/src/command.rs, spec/90). Numbers are hexadecimal.

respond NUMBER STATUS VALUE -> WORD0 WORD1
read WORD0 WORD1 -> NUMBER STATUS VALUE";

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => {
                let words = request(inputs).encode();
                words.map(|word| format!("{word:016x}")).join(" ")
            }
            "parse" => {
                let words = std::array::from_fn(|_| inputs.number());
                match Request::parse(&words, inputs.number()) {
                    Err(found) => fault(found).to_owned(),
                    Ok(request) => show(&request),
                }
            }
            "respond" => {
                let (number, status) = (inputs.number(), value(STATUSES, inputs.text()));
                let [first, second] = Response { number, status, value: inputs.number() }.encode();
                format!("{first:016x} {second:016x}")
            }
            "read" => {
                let Response { number, status, value } =
                    Response::parse(&[inputs.number(), inputs.number()]);
                format!("{number:x} {} {value:x}", name(STATUSES, &status))
            }
            _ => panic!("{step} is no step of a command"),
        }
    }
}

fn request(inputs: &mut Fields<'_>) -> Request {
    let operation = value(OPERATIONS, inputs.text());
    let classes = Classes::from_bits_truncate(inputs.number());
    let key = Key { slot: inputs.number(), generation: inputs.number() };
    let tag = inputs.number();
    let claim = Claim { key, offset: inputs.number(), len: inputs.number() };
    let number = inputs.number();
    let (atomic, width) = (inputs.text(), inputs.text());
    let (fourth, fifth) = (inputs.number(), inputs.number());
    let atomic = || Atomic {
        op: value(ATOMICS, atomic),
        width: value(WIDTHS, width),
        operand: fourth,
        compare: fifth,
    };
    let action = match operation {
        Operation::Put => Action::Put,
        Operation::Get => Action::Get,
        Operation::ImmediatePut => Action::Immediate(fourth),
        Operation::NotificationPut => Action::Notify,
        Operation::Atomic => Action::Atomic(atomic()),
        Operation::FetchAtomic => Action::Fetch(atomic()),
        Operation::Deposit => panic!("the words of a deposit message are its own"),
        Operation::Reply => panic!("no command says so"),
    };
    let cookie = if action == Action::Get { fifth } else { 0 };
    Request { command: Command { action, classes, tag, value: number, claim }, cookie }
}

fn show(request: &Request) -> String {
    let Command { action, classes, tag, value, claim } = request.command;
    let Claim { key: Key { slot, generation }, offset, len } = claim;
    let (atomic, fourth, fifth) = match action {
        Action::Atomic(Atomic { op, width, operand, compare })
        | Action::Fetch(Atomic { op, width, operand, compare }) => {
            let names = format!("{} {}", name(ATOMICS, &op), name(WIDTHS, &width));
            (names, operand, compare)
        }
        Action::Immediate(value) => ("- -".to_owned(), value, 0),
        Action::Put | Action::Get | Action::Notify => ("- -".to_owned(), 0, request.cookie),
    };
    let operation = name(OPERATIONS, &action.operation());
    let check = request.command.check().map_or_else(fault, |()| "ok");
    let (classes, rights) = (classes.bits(), request.command.rights().bits());
    format!(
        "{operation} {classes:x} {slot:x} {generation:x} {tag:x} {offset:x} {len:x} {value:x} \
         {atomic} {fourth:x} {fifth:x} {check} {rights:x}"
    )
}

pub(crate) fn script(s: &mut Script) {
    s.section("every operation, with all its fields");
    let where_to = "7 fedc 89abcdef 2a 1000";
    for (line, data) in [
        (format!("put {where_to} 5 1234 - - 0 0"), 5),
        (format!("get {where_to} {:x} 1234 - - 0 77", u64::MAX), 0),
        (format!("immediate-put {where_to} 8 1234 - - fedcba9876543210 0"), 0),
        (format!("notification-put {where_to} 0 {:x} - - 0 0", u64::MAX), 0),
    ] {
        let words = s.run(format!("encode {line}"));
        s.run(format!("parse {words} {data:x}"));
    }
    for (operation, (atomic, _)) in
        [OPERATIONS[4].0, OPERATIONS[5].0].iter().flat_map(|o| ATOMICS.iter().map(move |a| (o, a)))
    {
        let (width, bytes) = if s.random.below(2) == 0 { ("w32", 4) } else { ("w64", 8) };
        let (offset, operand) = (s.random.below(16) * 2, s.random.edge());
        let key = format!("{operation} 4 1 2 3 {offset:x} {bytes:x}");
        let words = s.run(format!("encode {key} 0 {atomic} {width} {operand:x} 99"));
        s.run(format!("parse {words} 0"));
    }
    s.section("rights follow from the operation and its notification at the target");
    for (operation, named) in &OPERATIONS[..6] {
        let is_atomic = matches!(named, Operation::Atomic | Operation::FetchAtomic);
        let add = (AtomicOp::Add as u64) << 16 | (Width::W64 as u64) << 24;
        let first = *named as u64 | if is_atomic { add } else { 0 };
        for classes in 0..8u64 {
            let first = first | classes << 8;
            assert!(s.run(format!("parse {first:016x} 0 0 0 0 0 0")).starts_with(operation));
        }
    }
    s.section("what no correct peer writes");
    for operation in [0u64, 7, 8, 0xff] {
        s.run(format!("parse {operation:016x} 0 0 0 0 0 0"));
    }
    for (atomic, width) in [(0, 8), (12, 8), (255, 4), (1, 0), (1, 1), (1, 16), (1, 255)] {
        let (plain, fetch) = (5u64 | atomic << 16 | width << 24, 6u64 | atomic << 16 | width << 24);
        s.run(format!("parse {plain:016x} 0 0 0 0 0 0"));
        s.run(format!("parse {fetch:016x} 0 0 0 0 0 0"));
    }
    for operation in 2..=6u64 {
        s.run(format!("parse {:016x} 0 0 0 0 0 1", operation | 1 << 16 | 8 << 24));
    }
    random_words(s);
}

fn random_words(s: &mut Script) {
    s.section("any words, where the operation is likely to exist");
    for _ in 0..40 {
        let operation = s.random.below(8) | s.random.below(8) << 8;
        let atomic = s.random.below(13) << 16 | s.random.pick(&[4, 8, 8, 2]) << 24;
        // The upper sixteen bits of the first word are not used.
        let first = operation | atomic | s.random.below(1 << 16) << 32;
        let rest = [0; 5].map(|_: u64| format!("{:x}", s.random.edge())).join(" ");
        let data =
            if operation & 7 == 1 { s.random.below(0x1000) } else { s.random.below(12) / 11 };
        s.run(format!("parse {first:016x} {rest} {data:x}"));
    }
}

pub(crate) fn response_script(s: &mut Script) {
    s.section("every status");
    for (status, _) in STATUSES {
        let words = s.run(format!("respond fffffffe {status} 123456789abcdef0"));
        s.run(format!("read {words}"));
    }
    s.section("all small codes");
    for code in 0..16u64 {
        s.run(format!("read {:016x} 0", code << 32 | 9));
    }
    s.section("any numbers and values");
    for _ in 0..16 {
        let (number, value) = (s.random.edge() as u32, s.random.edge());
        let status = s.random.pick(STATUSES).0;
        let words = s.run(format!("respond {number:x} {status} {value:x}"));
        s.run(format!("read {words}"));
    }
}

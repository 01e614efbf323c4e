//! Vectors of the deposit machine, its words and its text.
use super::names::{fault, name};
use super::script::{Fields, Machine, Script};
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::text::assemble;
use ayre_proto::deposit::{
    DepositMessage, Depot, Form, INSTRUCTIONS, Inlet, Instruction, Kind, Mask, Outcome, Protection,
    REGISTERS, Stored, Transfer, Window, run,
};
use ayre_proto::notify::Classes;
use ayre_proto::units::{Key, Rights};

pub(crate) const HEADER: &str = "\
Deposit messages: what they amount to, and their words (proto/src/deposit/, spec/55 and 90).
Numbers are hexadecimal.

inlet RIGHTS LEN RBASE RLEN EBASE ELEN LONGEST -> ok     an empty depot, and an inlet of it
register INDEX VALUE PROTECTION -> ok                    bits: 1 messages may read it, 2 write it
store INDEX WORD OPERAND ENTERS -> TEXT                  or malformed
run MESSAGE -> ok GIVEN NOTIFIES STEPS TRANSFER WRITES   committed; or declined GIVEN, or a fault
encode SLOT GENERATION EPOCH CLASSES TAG VALUE MESSAGE -> WORD0 WORD1 WORD2 WORD3 WORD4 WORD5
parse WORD0 WORD1 WORD2 WORD3 WORD4 WORD5 DATA -> SLOT GENERATION EPOCH CLASSES TAG VALUE MESSAGE
                                                         or malformed
MESSAGE is FORM WHICH X Y Z OPERAND MASK LEN BRINGS ASKS
  FORM WHICH     carried and the instruction, pointer and the entry, probe and 0
  X Y Z          registers of a pointer; else 0
TRANSFER is write or read, OFFSET and MASK, or `-`; WRITES are INDEX=VALUE, or `-`
RIGHTS are bits: 1 read, 2 write, 10 notify, 20 program.";

struct Place {
    registers: [u64; REGISTERS],
    protections: [Protection; REGISTERS],
    stored: Vec<Option<Stored>>,
    inlet: Inlet,
}

const KINDS: &[(&str, Kind)] = &[("write", Kind::Write), ("read", Kind::Read)];

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Place::new(Inlet {
        rights: Rights::empty(),
        len: 0,
        registers: Window::default(),
        entries: Window::default(),
        longest: 0,
    }))
}

impl Depot for Place {
    fn register(&self, index: u8) -> u64 {
        self.registers[usize::from(index)]
    }

    fn protection(&self, index: u8) -> Protection {
        self.protections[usize::from(index)]
    }

    fn stored(&self, index: u16) -> Option<Stored> {
        self.stored.get(usize::from(index)).copied().flatten()
    }
}

impl Place {
    fn new(inlet: Inlet) -> Self {
        Self {
            registers: [0; REGISTERS],
            protections: [Protection::empty(); REGISTERS],
            stored: vec![None; INSTRUCTIONS],
            inlet,
        }
    }

    fn commit(&mut self, outcome: Outcome) -> String {
        let Outcome { transfer, writes, notifies, given, declined, steps } = outcome;
        if declined {
            return format!("declined {given:x}");
        }
        let transfer = match transfer {
            None => "-".to_owned(),
            Some(Transfer { kind, offset, mask }) => {
                format!("{} {offset:x} {:x}", name(KINDS, &kind), mask.0)
            }
        };
        let mut written = Vec::new();
        for (index, value) in writes {
            self.registers[usize::from(index)] = value;
            written.push(format!("{index:x}={value:x}"));
        }
        let written = if written.is_empty() { "-".to_owned() } else { written.join(" ") };
        format!("ok {given:x} {} {steps:x} {transfer} {written}", u8::from(notifies))
    }
}

impl Machine for Place {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "inlet" => {
                *self = Self::new(Inlet {
                    rights: Rights::from_bits_truncate(inputs.number()),
                    len: inputs.number(),
                    registers: Window { base: inputs.number(), len: inputs.number() },
                    entries: Window { base: inputs.number(), len: inputs.number() },
                    longest: inputs.number(),
                });
                "ok".to_owned()
            }
            "register" => {
                let index = usize::from(inputs.number::<u8>());
                self.registers[index] = inputs.number();
                self.protections[index] = Protection::from_bits_truncate(inputs.number());
                "ok".to_owned()
            }
            "store" => {
                let index = usize::from(inputs.number::<u8>());
                let word = Instruction::parse(inputs.number());
                let (operand, enters) = (inputs.number(), inputs.number::<u8>() == 1);
                match word {
                    Err(found) => fault(found).to_owned(),
                    Ok(instruction) => {
                        let stored = Stored { instruction, operand, enters };
                        self.stored[index] = Some(stored);
                        stored.to_string()
                    }
                }
            }
            "run" => match run(&message(inputs), &self.inlet, self) {
                Err(found) => fault(found).to_owned(),
                Ok(outcome) => self.commit(outcome),
            },
            "encode" => {
                let key = Key { slot: inputs.number(), generation: inputs.number() };
                let epoch = inputs.number();
                let classes = Classes::from_bits_truncate(inputs.number());
                let (tag, value) = (inputs.number(), inputs.number());
                let posted = Posted { key, epoch, classes, tag, value, message: message(inputs) };
                posted.encode().map(|word| format!("{word:016x}")).join(" ")
            }
            "parse" => {
                let words = std::array::from_fn(|_| inputs.number());
                match Posted::parse(&words, inputs.number()) {
                    Err(found) => fault(found).to_owned(),
                    Ok(posted) => show(&posted),
                }
            }
            _ => panic!("{step} is no step of a depot"),
        }
    }
}

fn message(inputs: &mut Fields<'_>) -> DepositMessage {
    let (form, which) = (inputs.text(), inputs.number::<u64>());
    let registers = [inputs.number(), inputs.number(), inputs.number()];
    let form = match form {
        "carried" => Form::Carried(Instruction::parse(which).expect("a valid instruction")),
        "pointer" => Form::Pointer { entry: which as u16, registers },
        "probe" => Form::Probe,
        _ => panic!("{form} is no form"),
    };
    let (operand, mask, len) = (inputs.number(), Mask(inputs.number()), inputs.number());
    let (brings, is_answered) = (inputs.number::<u8>() == 1, inputs.number::<u8>() == 1);
    DepositMessage { form, operand, mask, len, brings, is_answered }
}

fn show(posted: &Posted) -> String {
    let Posted { key, epoch, classes, tag, value, message } = posted;
    let DepositMessage { form, operand, mask, len, brings, is_answered } = message;
    let form = match form {
        Form::Carried(instruction) => format!("carried {:x} 0 0 0", instruction.word()),
        Form::Pointer { entry, registers: [x, y, z] } => {
            format!("pointer {entry:x} {x:x} {y:x} {z:x}")
        }
        Form::Probe => "probe 0 0 0 0".to_owned(),
    };
    let Key { slot, generation } = key;
    let (brings, is_answered) = (u8::from(*brings), u8::from(*is_answered));
    format!(
        "{slot:x} {generation:x} {epoch:x} {:x} {tag:x} {value:x} {form} {operand:x} {:x} {len:x} \
         {brings} {is_answered}",
        classes.bits(),
        mask.0
    )
}

const ALL: &str = "ffffffffffffffff";

/// The word of a line of text, and the operand.
fn word(line: &str) -> (u64, u64) {
    let Stored { instruction, operand, .. } =
        assemble(line).expect("a line without mistakes").expect("an instruction");
    (instruction.word(), operand)
}

pub(crate) fn script(s: &mut Script) {
    compounds(s);
    words(s);
    s.section("any instruction, as text");
    s.run("inlet 33 40 0 8 0 8 400");
    for _ in 0..60 {
        let (word, operand) = (s.random.word(), s.random.edge());
        s.run(format!("store 0 {word:x} {operand:x} {:x}", word >> 8 & 1));
    }
    s.section("any instructions, registers and messages");
    for _ in 0..40 {
        traffic(s);
    }
}

/// The examples of the paper.
fn compounds(s: &mut Script) {
    s.section("append to the queue of a priority, and notify where it rises");
    s.run("inlet 3 100 10 8 0 1 20");
    let line = "entry; write [$x]; $x += r1; notify if operand > r2; r2 |= operand";
    let (word_of_line, operand) = word(line);
    s.run(format!("store 0 {word_of_line:x} {operand:x} 1"));
    s.run("register 1 20 0");
    for queue in 0..8 {
        s.run(format!("register {:x} {:x} 3", 0x10 + queue, 0x20 * queue));
    }
    for priority in [3, 1, 3, 5, 9] {
        let operand = 1 << priority;
        s.run(format!("run pointer 0 {priority:x} 0 0 {operand:x} {ALL} 20 1 0"));
    }
    s.section("a bounded queue: declined when it is full, and its consumer makes room");
    s.run("inlet 2 40 0 0 0 1 20");
    let (line, operand) = word("entry; decline if r0 >= r3; write [r0 wrapped]; r0 += r1");
    s.run(format!("store 0 {line:x} {operand:x} 1"));
    s.run("register 1 20 0");
    s.run("register 3 40 0");
    for _ in 0..3 {
        s.run(format!("run pointer 0 0 0 0 0 {ALL} 20 1 0"));
    }
    s.run("register 3 60 0");
    s.run(format!("run pointer 0 0 0 0 0 {ALL} 20 1 0"));
    s.section("fetch and add, compare and swap, a barrier of two");
    s.run("inlet 30 0 0 4 0 0 0");
    for index in 0..4 {
        s.run(format!("register {index:x} 0 3"));
    }
    for (line, operand) in [
        ("r0 += operand; give r0", 5),
        ("r0 += operand; give r0", 5),
        ("r1 = operand", 0x63),
        ("r0 = r1 if r0 == operand; give r0", 9),
        ("r0 = r1 if r0 == operand; give r0", 10),
        ("r3 = operand", 3),
        ("r2 ^= operand; notify if r2 == r3", 2),
        ("r2 ^= operand; notify if r2 == r3", 1),
    ] {
        let (line, _) = word(line);
        s.run(format!("run carried {line:x} 0 0 0 {operand:x} {ALL} 0 0 1"));
    }
}

fn words(s: &mut Script) {
    s.section("the words of a message, and what is wrong with some");
    let (line, _) = word("write [r1 + operand]; r1 += r2");
    let head = "fedc 89abcdef 7 1 2a 1234";
    for message in [
        format!("carried {line:x} 0 0 0 fedcba9876543210 {ALL} 400 1 0"),
        "pointer abcd 1 2 3 5 f0f 40 1 1".to_owned(),
        format!("pointer 1 0 0 0 0 {ALL} 20 0 1"),
        format!("probe 0 0 0 0 0 {ALL} 0 0 1"),
    ] {
        let words = s.run(format!("encode {head} {message}"));
        let data = if message.ends_with("400 1 0") { "400" } else { "0" };
        let data = if message.ends_with("40 1 1") { "40" } else { data };
        s.run(format!("parse {words} {data}"));
        s.run(format!("parse {words} 8"));
        let (rest, last) = words.split_at(words.len() - 1);
        let other = if last == "f" { "e" } else { "f" };
        s.run(format!("parse {rest}{other} {data}"));
    }
}

fn traffic(s: &mut Script) {
    let len = s.random.pick(&[0x40, 0x40, 0x30, 0x400]);
    let rights = s.random.pick(&[0x33, 0x33, 0x33, 0x13, 0x23, 0x32, 0x31]);
    let longest = s.random.pick(&[0x400, 0x20]);
    s.run(format!("inlet {rights:x} {len:x} 1 6 1 6 {longest:x}"));
    for index in 0..8 {
        let number = if s.random.below(2) == 0 { s.random.below(0x30) } else { s.random.edge() };
        let protection = s.random.pick(&[3, 3, 3, 3, 1, 2, 0]);
        s.run(format!("register {index:x} {number:x} {protection:x}"));
    }
    for index in 0..8 {
        let any = any_word(s);
        let (operand, enters) = (s.random.below(0x40), s.random.pick(&[1, 1, 1, 0]));
        s.run(format!("store {index:x} {any:x} {operand:x} {enters:x}"));
    }
    for _ in 0..12 {
        let (x, y, z) = (s.random.below(7), s.random.below(7), s.random.below(7));
        let form = match s.random.below(3) {
            0 => format!("carried {:x} 0 0 0", any_word(s) & !(1 << 61)),
            _ => format!("pointer {:x} {x:x} {y:x} {z:x}", s.random.below(7)),
        };
        let operand = s.random.below(0x50);
        let mask = s.random.pick(&[u64::MAX, u64::MAX, 0b1011]);
        let (data, brings) = (s.random.pick(&[0, 8, 0x10, 0x21]), s.random.below(4) > 0);
        let brings = u8::from(brings);
        s.run(format!("run {form} {operand:x} {mask:x} {data:x} {brings:x} 1"));
    }
}

/// A valid instruction, with registers that are there.
fn any_word(s: &mut Script) -> u64 {
    loop {
        let word = s.random.word() & 0xff07_0707_ffff_ffff;
        if let Ok(instruction) = Instruction::parse(word)
            && instruction.kind() != Kind::Exception
        {
            return word;
        }
    }
}

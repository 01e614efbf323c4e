//! Instructions as text, one a line, for programs in files and for captures.
//!
//! ```text
//!   entry; write [r0]; r0 += r1; notify if operand > r2; r2 |= operand
//!   entry; decline if r0 >= r3; write [r0 wrapped]; r0 += r1; next
//!   r2 |= operand; operand = 0x10
//! ```
//!
//! Clauses stand in the order in which they run; `entry`, `next`, `masked`, `give` and `operand =`
//! may stand anywhere. `r7` is a register that the instruction chooses, `$x`, `$y` and `$z` are
//! those that the message names. A comment begins with `#`.
use super::instruction::{Bits, Instruction, Supplied};
use super::machine::Stored;
use super::primitive::{
    AddressMode, Condition, Kind, OpCode, Operand, Primitive, RegisterOp, Slot, Test,
};
use core::fmt;

/// An error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError(pub &'static str);

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for TextError {}

type Parsed<T> = Result<T, TextError>;

/// Reads a line; `None` where it has no instruction.
///
/// # Errors
/// [`TextError`]; the line says nothing that an instruction cannot be.
pub fn assemble(line: &str) -> Parsed<Option<Stored>> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new();
    let clauses = || line.split(';').map(str::trim).filter(|clause| !clause.is_empty());
    reader.reserve(line)?;
    for place in clauses().filter_map(place_of) {
        reader.address(place)?;
    }
    for clause in clauses() {
        reader.clause(clause)?;
    }
    reader.finish().map(Some)
}

/// A register as the text names it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Number(u8),
    FromMessage(Slot),
}

/// A side of a test, or a source.
#[derive(Clone, Copy)]
enum Term {
    Register(Named),
    Operand,
}

struct Reader {
    bits: Bits,
    slots: [Option<Named>; 3],
    supplied: Supplied,
    operand: u64,
    enters: bool,
    count: u64,
    ops: usize,
    address: Option<u64>,
    test: Option<u64>,
}

impl Reader {
    fn new() -> Self {
        Self {
            bits: Bits::EMPTY,
            slots: [None; 3],
            supplied: Supplied { operand: true, ..Supplied::default() },
            operand: 0,
            enters: false,
            count: 0,
            ops: 0,
            address: None,
            test: None,
        }
    }

    /// Keeps the slots of registers that the message names.
    fn reserve(&mut self, line: &str) -> Parsed<()> {
        for (name, slot) in NAMES.into_iter().zip(Slot::ALL) {
            if line.contains(name) {
                self.take(slot, Named::FromMessage(slot))?;
            }
        }
        Ok(())
    }

    fn clause(&mut self, clause: &str) -> Parsed<()> {
        let (word, rest) = clause.split_once(char::is_whitespace).unwrap_or((clause, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("entry", "") => self.enters = true,
            ("next", "") => self.bits = self.bits.continuing(),
            ("masked", "") => self.supplied.mask = true,
            ("give", _) => {
                let slot = self.slot(register(rest)?)?;
                self.bits = self.bits.giving(slot);
            }
            ("operand", _) => {
                let number = rest.strip_prefix('=').ok_or(TextError("expected `operand = N`"))?;
                self.operand = parse_number(number.trim())?;
                self.supplied.operand = false;
            }
            ("exception", "") => self.transfer(Kind::Exception, "[operand]")?,
            ("write", _) => self.transfer(Kind::Write, rest)?,
            ("read", _) => self.transfer(Kind::Read, rest)?,
            ("notify", _) => self.test(rest, false)?,
            ("decline", _) => self.test(rest, true)?,
            _ => self.operation(clause)?,
        }
        Ok(())
    }

    fn transfer(&mut self, kind: Kind, place: &str) -> Parsed<()> {
        if self.address.replace(self.count).is_some() {
            return Err(TextError("an instruction has one transfer"));
        }
        self.count += 1;
        let address = self.address(place)?;
        self.bits = self.bits.transferring(kind, address);
        Ok(())
    }

    /// Reads the way in which a place is found; its register is x.
    fn address(&mut self, place: &str) -> Parsed<AddressMode> {
        let place = place.strip_prefix('[').and_then(|place| place.strip_suffix(']'));
        let place = place.ok_or(TextError("expected a place in brackets"))?.trim();
        let (name, address) = if place == "operand" {
            return Ok(AddressMode::Direct);
        } else if let Some(name) = place.strip_suffix("wrapped") {
            (name, AddressMode::Wrapped)
        } else if let Some((name, operand)) = place.split_once('+') {
            if operand.trim() != "operand" {
                return Err(TextError("only the operand is added to an address"));
            }
            (name, AddressMode::Indexed)
        } else {
            (place, AddressMode::Indirect)
        };
        self.take(Slot::X, register(name.trim())?)?;
        Ok(address)
    }

    fn test(&mut self, condition: &str, guards: bool) -> Parsed<()> {
        if self.test.replace(self.count).is_some() {
            return Err(TextError("an instruction has one test"));
        }
        self.count += 1;
        let (relation, left, right) = if condition.is_empty() && !guards {
            (Condition::Always, Operand::Operand, Operand::Operand)
        } else {
            let condition = condition.strip_prefix("if ").ok_or(TextError("expected `if`"))?;
            let mut words = condition.split_whitespace();
            let (Some(left), Some(sign), Some(right), None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(TextError("expected two sides and a relation"));
            };
            let relation = RELATIONS.iter().find(|(text, _)| *text == sign);
            let (_, relation) = relation.ok_or(TextError("no such relation"))?;
            (*relation, self.source(term(left)?)?, self.source(term(right)?)?)
        };
        self.bits = self.bits.testing(&Test { relation, left, right, guards });
        Ok(())
    }

    fn operation(&mut self, clause: &str) -> Parsed<()> {
        if self.ops == 2 {
            return Err(TextError("an instruction has two register operations"));
        }
        let (target, sign, rest) = three_parts(clause).ok_or(TextError("no such clause"))?;
        let (op, from) = if let Some((from, condition)) = rest.split_once(" if ") {
            if sign != "=" || condition.split_whitespace().ne([target, "==", "operand"]) {
                return Err(TextError("expected `rA = rB if rA == operand`"));
            }
            (OpCode::Replace, from)
        } else if let ("=", Some(from)) = (sign, rest.strip_prefix("not ")) {
            (OpCode::Not, from)
        } else if let ("=", Some(from)) = (sign, rest.strip_prefix("neg ")) {
            (OpCode::Neg, from)
        } else if (sign, rest) == ("+=", "length") {
            (OpCode::Advance, "operand")
        } else {
            let found = SIGNS.iter().find(|(text, _)| *text == sign);
            (found.ok_or(TextError("no such operation"))?.1, rest)
        };
        let to = self.slot(register(target)?)?;
        let from = self.source(term(from.trim())?)?;
        debug_assert!(self.slots[to.index()].is_some(), "what changes has a slot");
        self.bits = self.bits.operating(self.ops, &RegisterOp { op, to, from });
        self.ops += 1;
        self.count += 1;
        Ok(())
    }

    fn source(&mut self, term: Term) -> Parsed<Operand> {
        Ok(match term {
            Term::Operand => Operand::Operand,
            Term::Register(named) => Operand::Register(self.slot(named)?),
        })
    }

    /// The slot that a register has, or gets.
    fn slot(&mut self, named: Named) -> Parsed<Slot> {
        if let Some(at) = self.slots.iter().position(|slot| *slot == Some(named)) {
            return Ok(Slot::ALL[at]);
        }
        let free =
            [Slot::Y, Slot::Z, Slot::X].into_iter().find(|s| self.slots[s.index()].is_none());
        let slot = free.ok_or(TextError("an instruction names three registers"))?;
        self.take(slot, named)?;
        debug_assert!(self.slots[slot.index()] == Some(named), "a register keeps its slot");
        Ok(slot)
    }

    fn take(&mut self, slot: Slot, named: Named) -> Parsed<()> {
        let held = &mut self.slots[slot.index()];
        match held {
            None => *held = Some(named),
            Some(other) if *other == named => {}
            Some(_) => return Err(TextError("that place is another register's")),
        }
        Ok(())
    }

    fn finish(self) -> Parsed<Stored> {
        let Self { mut bits, slots, mut supplied, operand, enters, address, test, .. } = self;
        let (count, ops) = (self.count, self.ops as u64);
        let has_test = test.is_some();
        let others = u64::from(address.is_some()) + u64::from(has_test);
        assert!(count == ops + others, "each clause that runs has its place");
        let are_once = (0..3).all(|at| slots[at].is_none() || !slots[..at].contains(&slots[at]));
        assert!(are_once, "a register has one slot");
        for (slot, named) in Slot::ALL.into_iter().zip(slots) {
            match named {
                Some(Named::Number(number)) => bits = bits.naming(slot, number),
                Some(Named::FromMessage(_)) => supplied.registers[slot.index()] = true,
                None => {}
            }
        }
        let (address, test) = match (address, test) {
            (Some(address), Some(test)) => (address, test),
            (Some(address), None) => (address, 3),
            (None, Some(test)) => (3, test),
            (None, None) => (2, 3),
        };
        let instruction = bits.ordered(address, test).supplied_with(&supplied).finish();
        debug_assert!(instruction.test().is_some() == has_test, "the test is there");
        debug_assert!(instruction.op(0).is_some() == (ops > 0), "the first operation is there");
        debug_assert!(instruction.op(1).is_some() == (ops > 1), "and so is the second");
        Ok(Stored { instruction, operand, enters })
    }
}

const SIGNS: [(&str, OpCode); 11] = [
    ("=", OpCode::Set),
    ("+=", OpCode::Add),
    ("-=", OpCode::Sub),
    ("&=", OpCode::And),
    ("|=", OpCode::Or),
    ("^=", OpCode::Xor),
    ("&~=", OpCode::Clear),
    ("min=", OpCode::Min),
    ("max=", OpCode::Max),
    ("<<=", OpCode::Shl),
    (">>=", OpCode::Shr),
];

const RELATIONS: [(&str, Condition); 6] = [
    ("==", Condition::Eq),
    ("!=", Condition::Ne),
    ("<", Condition::Lt),
    ("<=", Condition::Le),
    (">", Condition::Gt),
    (">=", Condition::Ge),
];

const _: () = assert!(SIGNS.len() + 4 == OpCode::ALL.len(), "all but four operations have a sign");
const _: () = assert!(RELATIONS.len() + 1 == Condition::ALL.len(), "all but `Always` have a sign");

/// The names of the message's registers.
const NAMES: [&str; 3] = ["$x", "$y", "$z"];

/// A register, a sign, and what is behind it.
fn three_parts(clause: &str) -> Option<(&str, &str, &str)> {
    let (target, rest) = clause.split_once(char::is_whitespace)?;
    let (sign, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    Some((target, sign, rest.trim()))
}

/// The place of a clause that transfers.
fn place_of(clause: &str) -> Option<&str> {
    let (word, place) = clause.split_once(char::is_whitespace)?;
    matches!(word, "write" | "read").then_some(place.trim())
}

fn register(text: &str) -> Parsed<Named> {
    if let Some(at) = NAMES.iter().position(|name| *name == text) {
        return Ok(Named::FromMessage(Slot::ALL[at]));
    }
    let number = text.strip_prefix('r').and_then(|number| number.parse().ok());
    number.map(Named::Number).ok_or(TextError("expected a register"))
}

fn term(text: &str) -> Parsed<Term> {
    match text {
        "operand" => Ok(Term::Operand),
        _ => register(text).map(Term::Register),
    }
}

fn parse_number(text: &str) -> Parsed<u64> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| TextError("expected a number of 64 bits"))
}

/// Writes an instruction as text, from which an equivalent one can be read.
impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instruction = self.instruction;
        let mut clauses = Clauses { f, any: false };
        if self.enters {
            clauses.put(format_args!("entry"))?;
        }
        for primitive in instruction.order() {
            match primitive {
                Primitive::Address => clauses.transfer(instruction)?,
                Primitive::First => clauses.operation(instruction, 0)?,
                Primitive::Second => clauses.operation(instruction, 1)?,
                Primitive::Test => clauses.test(instruction)?,
            }
        }
        if let Some(slot) = instruction.give() {
            clauses.put(format_args!("give {}", Reg(instruction, slot)))?;
        }
        if !instruction.supplied().operand {
            clauses.put(format_args!("operand = {:#x}", self.operand))?;
        }
        if instruction.supplied().mask {
            clauses.put(format_args!("masked"))?;
        }
        if instruction.continues() {
            clauses.put(format_args!("next"))?;
        }
        Ok(())
    }
}

struct Clauses<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    any: bool,
}

impl Clauses<'_, '_> {
    fn put(&mut self, clause: fmt::Arguments<'_>) -> fmt::Result {
        if self.any {
            self.f.write_str("; ")?;
        }
        self.any = true;
        self.f.write_fmt(clause)
    }

    fn transfer(&mut self, instruction: Instruction) -> fmt::Result {
        let verb = match instruction.kind() {
            Kind::Registers => return Ok(()),
            Kind::Exception => return self.put(format_args!("exception")),
            Kind::Write => "write",
            Kind::Read => "read",
        };
        let x = Reg(instruction, Slot::X);
        match instruction.address() {
            AddressMode::Direct => self.put(format_args!("{verb} [operand]")),
            AddressMode::Indirect => self.put(format_args!("{verb} [{x}]")),
            AddressMode::Indexed => self.put(format_args!("{verb} [{x} + operand]")),
            AddressMode::Wrapped => self.put(format_args!("{verb} [{x} wrapped]")),
        }
    }

    fn operation(&mut self, instruction: Instruction, which: usize) -> fmt::Result {
        let Some(RegisterOp { op, to, from }) = instruction.op(which) else { return Ok(()) };
        let (to, from) = (Reg(instruction, to), Side(instruction, from));
        match op {
            OpCode::Not => self.put(format_args!("{to} = not {from}")),
            OpCode::Neg => self.put(format_args!("{to} = neg {from}")),
            OpCode::Advance => self.put(format_args!("{to} += length")),
            OpCode::Replace => self.put(format_args!("{to} = {from} if {to} == operand")),
            _ => {
                let sign = SIGNS.iter().find(|(_, named)| *named == op).map_or("", |(s, _)| *s);
                self.put(format_args!("{to} {sign} {from}"))
            }
        }
    }

    fn test(&mut self, instruction: Instruction) -> fmt::Result {
        let Some(Test { relation, left, right, guards }) = instruction.test() else {
            return Ok(());
        };
        let verb = if guards { "decline" } else { "notify" };
        let (left, right) = (Side(instruction, left), Side(instruction, right));
        match RELATIONS.iter().find(|(_, named)| *named == relation) {
            Some((sign, _)) => self.put(format_args!("{verb} if {left} {sign} {right}")),
            None if guards => self.put(format_args!("decline if operand == operand")),
            None => self.put(format_args!("notify")),
        }
    }
}

struct Reg(Instruction, Slot);

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(instruction, slot) = self;
        if instruction.supplied().registers[slot.index()] {
            return f.write_str(NAMES[slot.index()]);
        }
        write!(f, "r{}", instruction.register(*slot))
    }
}

struct Side(Instruction, Operand);

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Operand::Register(slot) => Reg(self.0, slot).fmt(f),
            Operand::Operand => f.write_str("operand"),
        }
    }
}

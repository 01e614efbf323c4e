//! The machine: from a message and the state of its destination to what shall happen.
//!
//! Each instruction takes at most nine steps, none of which needs the message's data:
//!
//! ```text
//!   read x, y, z  ->  address, op 1, op 2, test: in the instruction's order  ->  write, write
//! ```
use super::instruction::Instruction;
use super::message::{DepositMessage, Form, Mask, Name};
use super::primitive::{AddressMode, Kind, Operand, Primitive, RegisterOp, Slot, Test};
use super::{SEQUENCE_MAX, STEPS_MAX, WRITES_MAX};
use crate::fault::Fault;
use crate::units::Rights;
use crate::xlate::{contains, permits};
use arrayvec::ArrayVec;

bitflags::bitflags! {
    /// The access of messages to a register that they name themselves.
    // spec: DEP-15
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Protection: u8 {
        /// Use its value: as an address, in an operation, in a test, as what is given back.
        const READ = 1;
        /// Change it.
        const WRITE = 2;
    }
}

/// A part of a depot's registers or instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first.
    pub base: u16,
    /// Bytes.
    pub len: u16,
}

impl Window {
    /// The number in the depot of what a message calls `index`.
    // spec: DEP-3
    #[inline(always)]
    pub const fn find(&self, index: u16) -> Result<u16, Fault> {
        if index < self.len { Ok(self.base.wrapping_add(index)) } else { Err(Fault::Bounds) }
    }
}

/// The rights and bounds of one sender's inlet, at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlet {
    /// Rights on memory: READ and WRITE; NOTIFY; and PROGRAM for instructions of the sender's own.
    pub rights: Rights,
    /// Bytes of the range of memory that it leads to.
    pub len: u64,
    /// Registers that messages can name.
    pub registers: Window,
    /// Stored instructions at which messages can enter.
    pub entries: Window,
    /// Most bytes of data of a message.
    pub longest: u16,
}

/// An instruction that a destination stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The instruction.
    pub instruction: Instruction,
    /// Its operand, where the message does not supply it.
    pub operand: u64,
    /// Whether messages may enter here.
    pub enters: bool,
}

/// The state of the destination that a message may read.
pub trait Depot {
    /// The value of a register.
    fn register(&self, index: u8) -> u64;
    /// The access of messages to this register.
    fn protection(&self, index: u8) -> Protection;
    /// A stored instruction; `None` where there is none.
    fn stored(&self, index: u16) -> Option<Stored>;
}

/// Registers and their new values, each register once.
pub type Writes = ArrayVec<(u8, u64), WRITES_MAX>;

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// [`Kind::Write`] or [`Kind::Read`].
    pub kind: Kind,
    /// Bytes from the beginning of the inlet's range. The access lies within, with the message's
    /// length.
    pub offset: u64,
    /// Which words.
    pub mask: Mask,
}

/// All effects of a message. They are committed together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The access to memory, if there is one.
    pub transfer: Option<Transfer>,
    /// The new values of registers.
    pub writes: Writes,
    /// Whether the owner is notified.
    pub notifies: bool,
    /// The value that is given back.
    pub given: u64,
    /// A guard held: nothing of the above happens, but that a value is given back.
    pub declined: bool,
    /// Steps of the longest instruction.
    pub steps: u32,
}

impl Outcome {
    /// Invariants of any message at any inlet.
    #[inline(always)]
    fn check(&self, message: &DepositMessage, inlet: &Inlet) {
        if let Some(Transfer { kind, offset, mask }) = self.transfer {
            let end = offset.checked_add(message.len.into());
            debug_assert!(end.is_some_and(|end| end <= inlet.len), "memory beyond is not accessed");
            let right = if kind == Kind::Write { Rights::WRITE } else { Rights::READ };
            debug_assert!(inlet.rights.contains(right), "memory is accessed by right only");
            debug_assert!(mask.suits(message.len.into()), "a mask leaves out whole words");
        }
        if cfg!(debug_assertions) {
            let mut writes = self.writes.iter().enumerate();
            let is_first = |(at, one): (usize, &(u8, u64))| {
                self.writes.iter().position(|other| other.0 == one.0) == Some(at)
            };
            debug_assert!(writes.all(is_first), "a register gets one value");
        }
        let is_probe = matches!(message.form, Form::Probe);
        debug_assert!(!is_probe || *self == Self::default(), "a probe amounts to nothing");
    }
}

/// Decides what a message amounts to, and changes nothing. A probe amounts to nothing.
///
/// # Errors
/// The first thing that is wrong with it: what it names is not the inlet's or protected, its
/// transfer leaves the range, a stored instruction is missing.
// spec: DEP-6, DEP-18
#[inline]
pub fn run(message: &DepositMessage, inlet: &Inlet, depot: &impl Depot) -> Result<Outcome, Fault> {
    message.check()?;
    if message.len > inlet.longest {
        return Err(Fault::TooLong);
    }
    let mut run = Run { message, inlet, depot, outcome: Outcome::default() };
    match message.form {
        Form::Carried(instruction) => run.carried(instruction)?,
        Form::Pointer { entry, registers } => run.pointed(entry, registers)?,
        Form::Probe => {}
    }
    run.finish()
}

struct Run<'a, D> {
    message: &'a DepositMessage,
    inlet: &'a Inlet,
    depot: &'a D,
    outcome: Outcome,
}

/// The values that an instruction works with besides registers.
#[derive(Clone, Copy)]
struct Given {
    operand: u64,
    mask: Mask,
}

/// The registers that an instruction names, read once.
#[derive(Clone, Copy, Default)]
struct Latches {
    index: [u8; 3],
    value: [u64; 3],
}

impl<D: Depot> Run<'_, D> {
    // spec: DEP-16
    fn carried(&mut self, instruction: Instruction) -> Result<(), Fault> {
        permits(self.inlet.rights, Rights::PROGRAM)?;
        if matches!(instruction.test(), Some(Test { guards: false, .. })) {
            permits(self.inlet.rights, Rights::NOTIFY)?;
        }
        if instruction.continues() {
            return Err(Fault::Malformed);
        }
        let given = Given { operand: self.message.operand, mask: self.message.mask };
        self.step(&instruction, |slot| Name::carried(&instruction, slot), given)
    }

    // spec: DEP-4, DEP-17
    fn pointed(&mut self, entry: u16, registers: [u8; 3]) -> Result<(), Fault> {
        let entry = self.inlet.entries.find(entry)?;
        for at in 0..SEQUENCE_MAX as u16 {
            let stored = self.depot.stored(entry.wrapping_add(at)).ok_or(Fault::Malformed)?;
            if at == 0 && !stored.enters {
                return Err(Fault::Rights);
            }
            let instruction = stored.instruction;
            let supplied = instruction.supplied();
            let given = Given {
                operand: if supplied.operand { self.message.operand } else { stored.operand },
                mask: if supplied.mask { self.message.mask } else { Mask::ALL },
            };
            let name = |slot| Name::stored(&instruction, slot, registers);
            self.step(&instruction, name, given)?;
            if !instruction.continues() || self.outcome.declined {
                return Ok(());
            }
        }
        Err(Fault::Malformed)
    }

    /// One instruction.
    // spec: DEP-7, DEP-10, DEP-11
    #[inline(always)]
    fn step(
        &mut self,
        instruction: &Instruction,
        name: impl Fn(Slot) -> Name,
        given: Given,
    ) -> Result<(), Fault> {
        let mut latches = self.latch(instruction, name)?;
        let mut steps = instruction.reads().count_ones();
        if let Some(slot) = instruction.give() {
            self.outcome.given = latches.value[slot.index()];
        }
        for primitive in instruction.order() {
            steps += match primitive {
                Primitive::Address => self.transfer(instruction, &latches, given)?,
                Primitive::First => self.operate(instruction.op(0), &mut latches, given),
                Primitive::Second => self.operate(instruction.op(1), &mut latches, given),
                Primitive::Test => self.test(instruction.test(), &latches, given),
            };
            if self.outcome.declined {
                break;
            }
        }
        for slot in Slot::ALL.into_iter().filter(|slot| has(instruction.writes(), *slot)) {
            let (index, value) = (latches.index[slot.index()], latches.value[slot.index()]);
            match self.outcome.writes.iter_mut().find(|(written, _)| *written == index) {
                Some(write) => write.1 = value,
                None => self.outcome.writes.push((index, value)),
            }
        }
        steps += instruction.writes().count_ones();
        debug_assert!(steps <= STEPS_MAX, "an instruction has so many steps");
        self.outcome.steps = self.outcome.steps.max(steps);
        Ok(())
    }

    /// Finds the registers that an instruction names, and reads those that it needs.
    #[inline(always)]
    fn latch(
        &self,
        instruction: &Instruction,
        name: impl Fn(Slot) -> Name,
    ) -> Result<Latches, Fault> {
        let (reads, writes) = (instruction.reads(), instruction.writes());
        let mut latches = Latches::default();
        for slot in Slot::ALL.into_iter().filter(|slot| has(reads | writes, *slot)) {
            let mut needed = Protection::empty();
            needed.set(Protection::READ, has(reads, slot));
            needed.set(Protection::WRITE, has(writes, slot));
            let index = self.resolve(name(slot), needed)?;
            latches.index[slot.index()] = index;
            if has(reads, slot) {
                latches.value[slot.index()] = self.register(index);
            }
        }
        Ok(latches)
    }

    // spec: DEP-3, DEP-15
    #[inline(always)]
    fn resolve(&self, name: Name, needed: Protection) -> Result<u8, Fault> {
        match name {
            Name::Ours(index) => Ok(index),
            Name::Theirs(index) => {
                let index = self.inlet.registers.find(u16::from(index))? as u8;
                match self.depot.protection(index).contains(needed) {
                    true => Ok(index),
                    false => Err(Fault::Rights),
                }
            }
        }
    }

    /// The register as earlier instructions of the message have left it.
    #[inline(always)]
    fn register(&self, index: u8) -> u64 {
        let written = self.outcome.writes.iter().find(|(written, _)| *written == index);
        written.map_or_else(|| self.depot.register(index), |(_, value)| *value)
    }

    // spec: DEP-5, DEP-14
    #[inline(always)]
    fn transfer(
        &mut self,
        instruction: &Instruction,
        latches: &Latches,
        given: Given,
    ) -> Result<u32, Fault> {
        let kind = instruction.kind();
        let right = match kind {
            Kind::Registers => return Ok(0),
            Kind::Exception => return Err(Fault::Exception),
            Kind::Write => Rights::WRITE,
            Kind::Read => Rights::READ,
        };
        permits(self.inlet.rights, right)?;
        let twice = self.outcome.transfer.is_some();
        if twice || self.message.len > 0 && self.message.brings != (kind == Kind::Write) {
            return Err(Fault::Malformed);
        }
        let (x, reach) = (latches.value[Slot::X.index()], self.inlet.len);
        let offset = match instruction.address() {
            AddressMode::Direct => given.operand,
            AddressMode::Indirect => x,
            AddressMode::Indexed => x.wrapping_add(given.operand),
            AddressMode::Wrapped if reach.is_power_of_two() => x & (reach - 1),
            AddressMode::Wrapped => return Err(Fault::Malformed),
        };
        contains(reach, offset, self.message.len.into())?;
        self.outcome.transfer = Some(Transfer { kind, offset, mask: given.mask });
        Ok(1)
    }

    #[inline(always)]
    fn operate(&self, op: Option<RegisterOp>, latches: &mut Latches, given: Given) -> u32 {
        let Some(RegisterOp { op, to, from }) = op else { return 0 };
        let source = latches.source(from, given);
        let len = if self.message.brings { u64::from(self.message.len) } else { 0 };
        let old = latches.value[to.index()];
        let new = op.apply(old, source, (given.operand, len));
        // A register that is named twice has one value.
        let index = latches.index[to.index()];
        for slot in 0..3 {
            if latches.index[slot] == index {
                latches.value[slot] = new;
            }
        }
        1
    }

    #[inline(always)]
    fn test(&mut self, test: Option<Test>, latches: &Latches, given: Given) -> u32 {
        let Some(Test { relation, left, right, guards }) = test else { return 0 };
        let holds = relation.holds(latches.source(left, given), latches.source(right, given));
        self.outcome.notifies |= holds && !guards;
        self.outcome.declined |= holds && guards;
        1
    }

    // spec: DEP-11
    fn finish(self) -> Result<Outcome, Fault> {
        let Self { message, inlet, outcome, .. } = self;
        outcome.check(message, inlet);
        if outcome.declined {
            let Outcome { given, steps, .. } = outcome;
            return Ok(Outcome { given, steps, declined: true, ..Outcome::default() });
        }
        // Data that nothing has asked for.
        if message.len > 0 && outcome.transfer.is_none() {
            return Err(Fault::Malformed);
        }
        Ok(outcome)
    }
}

impl Latches {
    #[inline(always)]
    const fn source(&self, from: Operand, given: Given) -> u64 {
        match from {
            Operand::Register(slot) => self.value[slot.index()],
            Operand::Operand => given.operand,
        }
    }
}

#[inline(always)]
const fn has(slots: u8, slot: Slot) -> bool {
    slots & 1 << slot.index() != 0
}

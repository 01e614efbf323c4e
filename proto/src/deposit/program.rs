//! Putting instructions together such that what is invalid cannot be said.
//!
//! The type of a [`Program`] tells its parts: one transfer, up to two register operations and one
//! test, which run in the order in which they are added. Registers are called X, Y and Z until the
//! program is [carried](Program::carry) or [stored](Program::store).
//!
//! ```
//! use ayre_proto::deposit::AddressMode;
//! use ayre_proto::deposit::program::{OPERAND, Program, Register, X, Y, Z};
//!
//! // Append to the queue of a priority, and notify where it is higher than what is pending.
//! let append = Program::new()
//!     .write(AddressMode::Indirect)
//!     .then(X.add(Y))
//!     .notify_if(OPERAND.gt(Z))
//!     .then(Z.or(OPERAND));
//! let (tail, size, pending) = (Register::At(3), Register::At(4), Register::At(5));
//! let stored = append.store([tail, size, pending]);
//! assert!(stored.enters);
//! ```
//!
//! A third operation, a second transfer or test do not compile:
//!
//! ```compile_fail,E0599
//! use ayre_proto::deposit::program::{OPERAND, Program, X, Y};
//! let _ = Program::new().then(X.add(Y)).then(Y.add(OPERAND)).then(X.add(Y));
//! ```
use super::SEQUENCE_MAX;
use super::instruction::{Bits, Instruction, Supplied};
use super::machine::Stored;
use super::primitive::{AddressMode, Condition, Kind, OpCode, Operand, RegisterOp, Slot, Test};
use crate::fault::Fault;

/// The register that addresses go by.
pub const X: Slot = Slot::X;
/// A register.
pub const Y: Slot = Slot::Y;
/// A register.
pub const Z: Slot = Slot::Z;
/// The operand of the message, or of the stored instruction.
pub const OPERAND: Operand = Operand::Operand;

impl From<Slot> for Operand {
    fn from(slot: Slot) -> Self {
        Self::Register(slot)
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $op:ident;)+) => {
        #[expect(clippy::should_implement_trait, reason = "the words of the specification")]
        impl Slot {
            $($(#[$doc])*
            pub fn $name(self, from: impl Into<Operand>) -> RegisterOp {
                RegisterOp { op: OpCode::$op, to: self, from: from.into() }
            })+

            /// Goes on by the length of the message's data, rounded up to a multiple of eight.
            pub const fn advance(self) -> RegisterOp {
                RegisterOp { op: OpCode::Advance, to: self, from: Operand::Operand }
            }
        }
    };
}

operations! {
    /// Becomes the source.
    set: Set;
    /// Becomes the source, inverted.
    set_not: Not;
    /// Becomes the source, negated.
    set_neg: Neg;
    /// The source is added.
    add: Add;
    /// The source is subtracted.
    sub: Sub;
    /// Bits that the source has not are cleared.
    and: And;
    /// Bits that the source has are set.
    or: Or;
    /// Bits that the source has are toggled.
    xor: Xor;
    /// Bits that the source has are cleared.
    clear: Clear;
    /// Becomes the source where that is smaller.
    min: Min;
    /// Becomes the source where that is greater.
    max: Max;
    /// Is shifted to the left.
    shl: Shl;
    /// Is shifted to the right.
    shr: Shr;
    /// Becomes the source if it equals the operand: compare and swap.
    replace: Replace;
}

macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident: $relation:ident;)+) => {
        impl Operand {
            $($(#[$doc])*
            pub fn $name(self, right: impl Into<Self>) -> Test {
                let (left, right) = (self, right.into());
                Test { relation: Condition::$relation, left, right, guards: false }
            })+
        }

        impl Slot {
            $($(#[$doc])*
            pub fn $name(self, right: impl Into<Operand>) -> Test {
                Operand::from(self).$name(right)
            })+
        }
    };
}

tests! {
    /// Equal.
    eq: Eq;
    /// Not equal.
    ne: Ne;
    /// Less, unsigned.
    lt: Lt;
    /// Less or equal, unsigned.
    le: Le;
    /// Greater, unsigned.
    gt: Gt;
    /// Greater or equal, unsigned.
    ge: Ge;
}

/// A test that holds in any case.
pub const ALWAYS: Test = Test {
    relation: Condition::Always,
    left: Operand::Operand,
    right: Operand::Operand,
    guards: false,
};

/// The source of a register number in a stored instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Its owner chose it; the sender need not know, and cannot change it.
    At(u8),
    /// The message names it, within its inlet's window and what is permitted there.
    FromMessage,
}

/// An instruction being put together: whether it has a transfer, how many operations, whether a
/// test.
#[derive(Clone, Copy, Debug)]
pub struct Program<const TRANSFERS: bool, const OPERATIONS: u8, const TESTS: bool> {
    bits: Bits,
    /// The number of primitives.
    count: u64,
    /// The place of the transfer's address among them.
    address: Option<u64>,
    /// The place of the test among them.
    test: Option<u64>,
}

impl Program<false, 0, false> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { bits: Bits::EMPTY, count: 0, address: None, test: None }
    }
}

impl Default for Program<false, 0, false> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const R: u8, const T: bool> Program<false, R, T> {
    /// The message's data goes to memory.
    pub fn write(self, to: AddressMode) -> Program<true, R, T> {
        self.transfer(Kind::Write, to)
    }

    /// Memory is given back to the sender.
    pub fn read(self, from: AddressMode) -> Program<true, R, T> {
        self.transfer(Kind::Read, from)
    }

    /// The message is for the owner's program.
    pub fn exception(self) -> Program<true, R, T> {
        self.transfer(Kind::Exception, AddressMode::Direct)
    }

    fn transfer(self, kind: Kind, address: AddressMode) -> Program<true, R, T> {
        let Self { bits, count, test, .. } = self;
        let bits = bits.transferring(kind, address);
        Program { bits, count: count + 1, address: Some(count), test }
    }
}

impl<const M: bool, const T: bool> Program<M, 0, T> {
    /// A register changes.
    pub fn then(self, op: RegisterOp) -> Program<M, 1, T> {
        let Self { bits, count, address, test } = self;
        let bits = bits.operating(0, &op);
        Program { bits, count: count + 1, address, test }
    }
}

impl<const M: bool, const T: bool> Program<M, 1, T> {
    /// A register changes, behind the first operation.
    pub fn then(self, op: RegisterOp) -> Program<M, 2, T> {
        let Self { bits, count, address, test } = self;
        let bits = bits.operating(1, &op);
        Program { bits, count: count + 1, address, test }
    }
}

impl<const M: bool, const R: u8> Program<M, R, false> {
    /// The owner is notified, at the end, if the test holds here.
    pub fn notify_if(self, test: Test) -> Program<M, R, true> {
        self.testing(&Test { guards: false, ..test })
    }

    /// The owner is notified, at the end.
    pub fn notify(self) -> Program<M, R, true> {
        self.notify_if(ALWAYS)
    }

    /// Nothing happens at all if the test holds here.
    pub fn decline_if(self, test: Test) -> Program<M, R, true> {
        self.testing(&Test { guards: true, ..test })
    }

    fn testing(self, test: &Test) -> Program<M, R, true> {
        let Self { bits, count, address, .. } = self;
        let bits = bits.testing(test);
        Program { bits, count: count + 1, address, test: Some(count) }
    }
}

impl<const M: bool, const R: u8, const T: bool> Program<M, R, T> {
    /// Returns the value that the register held before.
    pub fn give(self, slot: Slot) -> Self {
        Self { bits: self.bits.giving(slot), ..self }
    }

    /// To be carried by messages: X, Y and Z are these registers of the inlet.
    pub fn carry(self, registers: [u8; 3]) -> Instruction {
        let name = |bits: Bits, (slot, index): (&Slot, u8)| bits.naming(*slot, index);
        Slot::ALL.iter().zip(registers).fold(self.placed(), name).finish()
    }

    /// To be stored by the owner of a depot, entered by messages, with their operand and without
    /// mask.
    pub fn store(self, registers: [Register; 3]) -> Stored {
        let mut supplied = Supplied { operand: true, ..Supplied::default() };
        let mut bits = self.placed();
        for (slot, register) in Slot::ALL.into_iter().zip(registers) {
            match register {
                Register::At(index) => bits = bits.naming(slot, index),
                Register::FromMessage => supplied.registers[slot.index()] = true,
            }
        }
        let instruction = bits.supplied_with(&supplied).finish();
        Stored { instruction, operand: 0, enters: true }
    }

    /// Gives the operations that were not added the remaining places.
    fn placed(&self) -> Bits {
        let count = u64::from(M) + u64::from(R) + u64::from(T);
        assert!(self.count == count, "each primitive has its place");
        debug_assert!(self.address.is_some() == M, "a transfer has an address");
        debug_assert!(self.test.is_some() == T, "a test has its place");
        let (address, test) = match (self.address, self.test) {
            (Some(address), Some(test)) => (address, test),
            (Some(address), None) => (address, 3),
            (None, Some(test)) => (3, test),
            (None, None) => (2, 3),
        };
        self.bits.ordered(address, test)
    }
}

impl Stored {
    /// With an operand of the owner's choice, whatever messages say.
    pub fn with_operand(self, operand: u64) -> Self {
        let supplied = Supplied { operand: false, ..self.instruction.supplied() };
        let instruction = Bits::of(&self.instruction).supplied_with(&supplied).finish();
        Self { instruction, operand, ..self }
    }

    /// Messages choose which words of their data are written or read.
    pub fn masked(self) -> Self {
        let supplied = Supplied { mask: true, ..self.instruction.supplied() };
        Self { instruction: Bits::of(&self.instruction).supplied_with(&supplied).finish(), ..self }
    }

    /// One behind the other, entered at the first.
    ///
    /// # Errors
    /// [`Fault::Malformed`] where more than one transfers data.
    pub fn sequence<const N: usize>(parts: [Self; N]) -> Result<[Self; N], Fault> {
        const { assert!(N >= 1 && N <= SEQUENCE_MAX, "a sequence has one to four instructions") };
        let transfers = |part: &&Self| part.instruction.kind() != Kind::Registers;
        if parts.iter().filter(transfers).count() > 1 {
            return Err(Fault::Malformed);
        }
        let mut sequence = parts;
        for (at, part) in sequence.iter_mut().enumerate() {
            part.enters = at == 0;
            if at + 1 < N {
                part.instruction = Bits::of(&part.instruction).continuing().finish();
            }
        }
        Ok(sequence)
    }
}

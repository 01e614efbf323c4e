//! The parts of instructions: registers and sources, addresses, operations, tests. Codes are those
//! of the fields of a word, see [`super::instruction`].

/// One of the three registers that an instruction can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Slot {
    /// The one that addresses go by.
    X = 0,
    /// The second.
    Y = 1,
    /// The third.
    Z = 2,
}

impl Slot {
    /// All, in the order in which they are looked at.
    pub const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    /// As an index.
    pub const fn index(self) -> usize {
        self as usize
    }

    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The operand of an operation or a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Register(Slot),
    /// The operand of the message, or of the stored instruction.
    Operand,
}

impl Operand {
    pub(super) const fn from_code(code: u64) -> Self {
        match code & 3 {
            0 => Self::Register(Slot::X),
            1 => Self::Register(Slot::Y),
            2 => Self::Register(Slot::Z),
            _ => Self::Operand,
        }
    }

    /// Two bits.
    pub const fn code(self) -> u64 {
        match self {
            Self::Register(slot) => slot as u64,
            Self::Operand => 3,
        }
    }

    pub(super) const fn bit(self) -> u8 {
        match self {
            Self::Register(slot) => slot.bit(),
            Self::Operand => 0,
        }
    }
}

const _: () = {
    let mut at = 0;
    while at < Slot::ALL.len() {
        assert!(Slot::ALL[at].index() == at, "each once, in the order of their codes");
        at += 1;
    }
};

/// The effect of a message on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Nothing: registers only.
    Registers = 0,
    /// Its data goes to memory.
    Write = 1,
    /// Memory comes back.
    Read = 2,
    /// It is for the owner's program: the inlet stops.
    Exception = 3,
}

/// The way in which a place in memory is found, as an offset in the inlet's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AddressMode {
    /// The operand.
    Direct = 0,
    /// Register x.
    Indirect = 1,
    /// Register x, and the operand added.
    Indexed = 2,
    /// Register x modulo the length of the range, which is a power of two.
    Wrapped = 3,
}

/// The effect of an operation on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpCode {
    /// The source.
    Set = 1,
    /// The source, inverted.
    Not = 2,
    /// The source, negated.
    Neg = 3,
    /// The sum.
    Add = 4,
    /// The difference: source subtracted.
    Sub = 5,
    /// Bitwise and.
    And = 6,
    /// Bitwise or.
    Or = 7,
    /// Bitwise exclusive or.
    Xor = 8,
    /// And, with the source inverted.
    Clear = 9,
    /// The smaller one, unsigned.
    Min = 10,
    /// The greater one, unsigned.
    Max = 11,
    /// Shifted to the left by the source's low six bits.
    Shl = 12,
    /// Shifted to the right likewise.
    Shr = 13,
    /// The sum with the length of the message's data, rounded up to a multiple of eight.
    Advance = 14,
    /// The source, if the register equals the operand.
    Replace = 15,
}

impl OpCode {
    /// Each once, in the order of their codes.
    pub const ALL: [Self; 15] = [
        Self::Set,
        Self::Not,
        Self::Neg,
        Self::Add,
        Self::Sub,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Clear,
        Self::Min,
        Self::Max,
        Self::Shl,
        Self::Shr,
        Self::Advance,
        Self::Replace,
    ];

    /// The new value of a register, from its old one, the source, the operand and the length.
    // spec: DEP-9
    #[inline(always)]
    pub const fn apply(self, old: u64, source: u64, (operand, len): (u64, u64)) -> u64 {
        match self {
            Self::Set => source,
            Self::Not => !source,
            Self::Neg => source.wrapping_neg(),
            Self::Add => old.wrapping_add(source),
            Self::Sub => old.wrapping_sub(source),
            Self::And => old & source,
            Self::Or => old | source,
            Self::Xor => old ^ source,
            Self::Clear => old & !source,
            Self::Min if source < old => source,
            Self::Max if source > old => source,
            Self::Min | Self::Max => old,
            Self::Shl => old << (source & 63),
            Self::Shr => old >> (source & 63),
            Self::Advance => old.wrapping_add(len.next_multiple_of(8)),
            Self::Replace if old == operand => source,
            Self::Replace => old,
        }
    }

    /// Whether the new value depends on the old one.
    pub const fn reads_target(self) -> bool {
        !matches!(self, Self::Set | Self::Not | Self::Neg)
    }

    /// Whether the new value depends on the source.
    pub const fn reads_source(self) -> bool {
        !matches!(self, Self::Advance)
    }
}

const _: () = {
    let mut at = 0;
    while at < OpCode::ALL.len() {
        assert!(OpCode::ALL[at] as usize == at + 1, "each once, in the order of their codes");
        at += 1;
    }
};

/// A register operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterOp {
    /// The operation.
    pub op: OpCode,
    /// The destination register.
    pub to: Slot,
    /// With what.
    pub from: Operand,
}

/// The relation of the two sides of a test; numbers are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Condition {
    /// Equal.
    Eq = 1,
    /// Not equal.
    Ne = 2,
    /// Left is less.
    Lt = 3,
    /// Left is less, or equal.
    Le = 4,
    /// Left is greater.
    Gt = 5,
    /// Left is greater, or equal.
    Ge = 6,
    /// The test always holds.
    Always = 7,
}

impl Condition {
    /// Each once, in the order of their codes.
    pub const ALL: [Self; 7] =
        [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge, Self::Always];

    /// Whether it holds.
    #[inline(always)]
    pub const fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::Eq => left == right,
            Self::Ne => left != right,
            Self::Lt => left < right,
            Self::Le => left <= right,
            Self::Gt => left > right,
            Self::Ge => left >= right,
            Self::Always => true,
        }
    }
}

const _: () = {
    let mut at = 0;
    while at < Condition::ALL.len() {
        assert!(Condition::ALL[at] as usize == at + 1, "each once, in the order of their codes");
        at += 1;
    }
};

/// The conditional of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// The condition that must hold.
    pub relation: Condition,
    /// Left side.
    pub left: Operand,
    /// Right side.
    pub right: Operand,
    /// Whether the message is declined if it holds, instead of notified.
    pub guards: bool,
}

/// A primitive, as one of the four of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// The place in memory is found.
    Address,
    /// The first register operation.
    First,
    /// The second register operation.
    Second,
    /// The test.
    Test,
}

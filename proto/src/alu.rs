//! Atomic operations on words: a condition, and what becomes of the word where it holds, both from
//! the table of operations, [`crate::combine`].
//!
//! The engine applies them with the processor's own atomic instructions; these functions say what
//! those must amount to, and serve where there is no single instruction.
use crate::combine::{Combine, Comparison, Element};

/// Width of an atomic operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Width {
    /// 32 bits; the upper half of operands is ignored and results are zero-extended.
    W32 = 4,
    /// 64 bits.
    W64 = 8,
}

impl Width {
    /// Bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self as u64
    }
}

/// The effect of an atomic on the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicOp {
    /// Wrapping sum.
    Add = 1,
    /// Bitwise and.
    And = 2,
    /// Bitwise or.
    Or = 3,
    /// Bitwise exclusive or.
    Xor = 4,
    /// Unsigned minimum.
    MinUnsigned = 5,
    /// Unsigned maximum.
    MaxUnsigned = 6,
    /// Two's-complement minimum.
    MinSigned = 7,
    /// Two's-complement maximum.
    MaxSigned = 8,
    /// Takes the operand.
    Swap = 9,
    /// Takes the operand if the old value equals the comparand.
    CompareSwap = 10,
    /// Fetch-compare-and-add: if old <= comparand (two's complement), adds the operand; its result
    /// is the new value (EXTOLL thesis, the lock unit).
    Fcaa = 11,
}

/// A row of the table of operations.
struct Row {
    op: AtomicOp,
    /// The condition on the comparand and the word.
    condition: Option<Comparison>,
    /// How it computes the new word.
    combine: Combine,
    /// Whether word and operands are two's complement.
    is_signed: bool,
}

/// Each once, in the order of their codes.
const ROWS: [Row; 11] = {
    use {AtomicOp as Op, Combine as C};
    const fn row(op: Op, combine: C, is_signed: bool) -> Row {
        Row { op, condition: None, combine, is_signed }
    }
    [
        row(Op::Add, C::Sum, false),
        row(Op::And, C::BAnd, false),
        row(Op::Or, C::BOr, false),
        row(Op::Xor, C::BXor, false),
        row(Op::MinUnsigned, C::Min, false),
        row(Op::MaxUnsigned, C::Max, false),
        row(Op::MinSigned, C::Min, true),
        row(Op::MaxSigned, C::Max, true),
        row(Op::Swap, C::Write, false),
        Row { condition: Some(Comparison::Eq), ..row(Op::CompareSwap, C::Write, false) },
        Row { condition: Some(Comparison::Ge), ..row(Op::Fcaa, C::Sum, true) },
    ]
};

const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(ROWS[at].op as usize == at + 1, "each once, in the order of the codes");
        at += 1;
    }
};

impl AtomicOp {
    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=11 => Some(ROWS[code as usize - 1].op),
            _ => None,
        }
    }
}

/// An atomic with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// Width of the word.
    pub width: Width,
    /// The operation.
    pub op: AtomicOp,
    /// Operand.
    pub operand: u64,
    /// Comparand of compare-swap and FCAA.
    pub compare: u64,
}

/// Result of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The old value; for FCAA the new one, or the current one where it declined.
    pub value: u64,
    /// False where a compare-swap or FCAA declined.
    pub success: bool,
}

impl Atomic {
    /// The new value of the word, or `None` if the operation declines.
    // spec: ATOM-1, ATOM-6, FCAA-1
    #[inline]
    pub fn apply(&self, old: u64) -> Option<u64> {
        let row = &ROWS[self.op as usize - 1];
        let words = [old, self.operand, self.compare];
        match (self.width, row.is_signed) {
            (Width::W32, false) => row.apply(words.map(|word| word as u32)).map(u64::from),
            (Width::W32, true) => {
                row.apply(words.map(|word| word as i32)).map(|new| new as u32 as u64)
            }
            (Width::W64, false) => row.apply(words),
            (Width::W64, true) => row.apply(words.map(|word| word as i64)).map(|new| new as u64),
        }
    }

    /// The result for the initiator, given the word before the operation.
    // spec: ATOM-3, FCAA-2
    #[inline(always)]
    pub fn fetched(&self, old: u64) -> Fetched {
        let old = match self.width {
            Width::W32 => old as u32 as u64,
            Width::W64 => old,
        };
        match ROWS[self.op as usize - 1].condition {
            None => Fetched { value: old, success: true },
            Some(_) => self.fetched_if_due(old),
        }
    }

    #[inline]
    fn fetched_if_due(&self, old: u64) -> Fetched {
        let new = self.apply(old);
        debug_assert!(
            matches!(self.width, Width::W64) || matches!(new, None | Some(0..=0xffff_ffff)),
            "a word of 32 bits is zero-extended"
        );
        match new {
            Some(new) if matches!(self.op, AtomicOp::Fcaa) => Fetched { value: new, success: true },
            Some(_) => Fetched { value: old, success: true },
            None => Fetched { value: old, success: false },
        }
    }
}

impl Row {
    #[inline(always)]
    fn apply<T: Element>(&self, [old, operand, compare]: [T; 3]) -> Option<T> {
        let is_due = self.condition.is_none_or(|relation| relation.holds(compare.order(old)));
        is_due.then(|| self.combine.of(old, operand))
    }
}

//! Atomic operations as pure functions of the old value.
//!
//! The engine applies them with the processor's own atomic instructions; these functions say what
//! those must amount to, and serve where there is no single instruction.

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

/// What an atomic does to the word.
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

impl AtomicOp {
    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Add),
            2 => Some(Self::And),
            3 => Some(Self::Or),
            4 => Some(Self::Xor),
            5 => Some(Self::MinUnsigned),
            6 => Some(Self::MaxUnsigned),
            7 => Some(Self::MinSigned),
            8 => Some(Self::MaxSigned),
            9 => Some(Self::Swap),
            10 => Some(Self::CompareSwap),
            11 => Some(Self::Fcaa),
            _ => None,
        }
    }
}

/// An atomic with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// Width of the word.
    pub width: Width,
    /// What is done to it.
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
    /// What the word becomes, or `None` where the operation declines.
    // spec: ATOM-1, ATOM-6, FCAA-1
    #[inline]
    pub const fn apply(&self, old: u64) -> Option<u64> {
        match self.width {
            Width::W64 => self.apply64(old),
            Width::W32 => self.apply32(old as u32),
        }
    }

    const fn apply64(&self, old: u64) -> Option<u64> {
        let (operand, compare) = (self.operand, self.compare);
        Some(match self.op {
            AtomicOp::Add => old.wrapping_add(operand),
            AtomicOp::And => old & operand,
            AtomicOp::Or => old | operand,
            AtomicOp::Xor => old ^ operand,
            AtomicOp::MinUnsigned => {
                if old < operand {
                    old
                } else {
                    operand
                }
            }
            AtomicOp::MaxUnsigned => {
                if old > operand {
                    old
                } else {
                    operand
                }
            }
            AtomicOp::MinSigned => {
                if (old as i64) < operand as i64 {
                    old
                } else {
                    operand
                }
            }
            AtomicOp::MaxSigned => {
                if (old as i64) > operand as i64 {
                    old
                } else {
                    operand
                }
            }
            AtomicOp::Swap => operand,
            AtomicOp::CompareSwap if old == compare => operand,
            AtomicOp::Fcaa if old as i64 <= compare as i64 => old.wrapping_add(operand),
            AtomicOp::CompareSwap | AtomicOp::Fcaa => return None,
        })
    }

    /// Sign-extends the operands, so that one set of rules serves both widths.
    const fn apply32(&self, old: u32) -> Option<u64> {
        let signed = matches!(self.op, AtomicOp::MinSigned | AtomicOp::MaxSigned | AtomicOp::Fcaa);
        let wide = Self {
            width: Width::W64,
            op: self.op,
            operand: extend(self.operand as u32, signed),
            compare: extend(self.compare as u32, signed),
        };
        match wide.apply64(extend(old, signed)) {
            Some(new) => Some(new as u32 as u64),
            None => None,
        }
    }

    /// What the initiator is told, given the word before the operation.
    // spec: ATOM-3, FCAA-2
    #[inline]
    pub const fn fetched(&self, old: u64) -> Fetched {
        let old = match self.width {
            Width::W32 => old as u32 as u64,
            Width::W64 => old,
        };
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

const fn extend(value: u32, signed: bool) -> u64 {
    if signed { value as i32 as i64 as u64 } else { value as u64 }
}

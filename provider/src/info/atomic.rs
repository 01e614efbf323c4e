//! Atomics: which there are, and what libfabric's numbers for them mean.

use crate::abi::*;
use crate::error::{Code, Outcome};
use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::RawEndpoint;

/// The calls fall into three families, each with operations of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// They change a peer's memory.
    Change,
    /// They also hand back what was there.
    Fetch,
    /// They change what compares with a value as it should, and hand back what was there.
    Compare,
}

/// A kind of atomic that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) op: Combine,
    pub(crate) number: Number,
}

impl Family {
    /// The kind of this family that libfabric has these numbers for. Its numbers count in the
    /// order of ours; of long doubles and numbers of 128 bits there are none.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where there is none.
    pub(crate) fn kind(self, datatype: u32, op: u32) -> Outcome<Kind> {
        let kind = || {
            let number = *Number::ALL.get(datatype as usize)?;
            let kind = Kind { op: self.op(op)?, number };
            kind.op.is_defined(kind.number).then_some(kind)
        };
        kind().ok_or(Code(errno::EOPNOTSUPP))
    }

    fn op(self, op: u32) -> Option<Combine> {
        let is_ours = match self {
            Self::Change => op <= BXOR || op == ATOMIC_WRITE,
            Self::Fetch => op <= ATOMIC_WRITE,
            Self::Compare => op >= CSWAP,
        };
        if is_ours { Combine::ALL.get(op as usize).copied() } else { None }
    }
}

impl Kind {
    /// How many elements one call can have.
    pub(crate) fn most(self) -> usize {
        RawEndpoint::update_max(self.op, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ayre::endpoint::raw::Comparison;

    #[test]
    fn libfabric_operation_codes_map_to_the_same_operations() {
        let ops = [
            (MIN, Combine::Min),
            (MAX, Combine::Max),
            (SUM, Combine::Sum),
            (PROD, Combine::Prod),
            (LOR, Combine::LOr),
            (LAND, Combine::LAnd),
            (BOR, Combine::BOr),
            (BAND, Combine::BAnd),
            (LXOR, Combine::LXor),
            (BXOR, Combine::BXor),
            (ATOMIC_READ, Combine::Read),
            (ATOMIC_WRITE, Combine::Write),
            (CSWAP, Combine::CompareSwap(Comparison::Eq)),
            (CSWAP_NE, Combine::CompareSwap(Comparison::Ne)),
            (CSWAP_LE, Combine::CompareSwap(Comparison::Le)),
            (CSWAP_LT, Combine::CompareSwap(Comparison::Lt)),
            (CSWAP_GE, Combine::CompareSwap(Comparison::Ge)),
            (CSWAP_GT, Combine::CompareSwap(Comparison::Gt)),
            (MSWAP, Combine::MaskedSwap),
        ];
        for (number, op) in ops {
            let family = if number >= CSWAP { Family::Compare } else { Family::Fetch };
            assert_eq!(family.kind(INT32, number), Ok(Kind { op, number: Number::I32 }));
        }
        let types = [
            (INT8, Number::I8),
            (UINT8, Number::U8),
            (INT16, Number::I16),
            (UINT16, Number::U16),
            (INT32, Number::I32),
            (UINT32, Number::U32),
            (INT64, Number::I64),
            (UINT64, Number::U64),
            (FLOAT, Number::F32),
            (DOUBLE, Number::F64),
            (FLOAT_COMPLEX, Number::C32),
            (DOUBLE_COMPLEX, Number::C64),
        ];
        for (datatype, number) in types {
            assert_eq!(Family::Change.kind(datatype, SUM), Ok(Kind { op: Combine::Sum, number }));
        }
        let refused = Err(Code(errno::EOPNOTSUPP));
        for (datatype, op) in [(LONG_DOUBLE, SUM), (u32::MAX, SUM), (INT8, MSWAP + 1)] {
            let families = [Family::Change, Family::Fetch, Family::Compare];
            assert!(families.iter().all(|it| it.kind(datatype, op) == refused));
        }
    }
}

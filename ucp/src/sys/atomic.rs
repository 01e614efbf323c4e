//! Atomics on one number: by the processor where the memory is within reach, else by the engine.

use super::window::Reachable;
use ayre::PostError;
use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    Comparison, Context, RawEndpoint, RemoteAddress, RmaUpdate, Span, Spans,
};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The operation on a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    And,
    Or,
    Xor,
    Swap,
    /// The operand, where the number is this one.
    CompareSwap(u64),
}

/// How many bits a number has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Bits32,
    Bits64,
}

impl Width {
    /// The width of numbers of that many bytes, if there are any.
    pub(crate) fn of_size(size: usize) -> Option<Self> {
        match size {
            4 => Some(Self::Bits32),
            8 => Some(Self::Bits64),
            _ => None,
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }

    /// Reads a number of the program's.
    ///
    /// # Safety
    /// It may be read there.
    pub(crate) unsafe fn read(self, from: *const c_void) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Bits32 => from.cast::<u32>().read_unaligned().into(),
                Self::Bits64 => from.cast::<u64>().read_unaligned(),
            }
        }
    }

    /// Writes a number of the program's.
    ///
    /// # Safety
    /// It may be written there.
    unsafe fn write(self, value: u64, to: *mut c_void) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Bits32 => to.cast::<u32>().write_unaligned(value as u32),
                Self::Bits64 => to.cast::<u64>().write_unaligned(value),
            }
        }
    }
}

/// An atomic on one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    op: Op,
    width: Width,
    operand: u64,
    /// Where the program wants what was there before; null if it does not.
    result: *mut c_void,
}

// SAFETY: the place of the result is an operation's memory, which nobody else uses until that has
// ended.
unsafe impl Send for Change {}

impl Change {
    /// # Safety
    /// The place for the result is null, or may be written until the operation has ended.
    pub(crate) unsafe fn new((op, width): (Op, Width), operand: u64, result: *mut c_void) -> Self {
        Self { op, width, operand, result }
    }

    pub(crate) fn size(&self) -> usize {
        self.width.size()
    }

    /// Whether the program wants what was there before.
    pub(crate) fn has_result(&self) -> bool {
        !self.result.is_null()
    }

    /// Carries it out on memory within reach, at an aligned place.
    ///
    /// # Safety
    /// The memory is mapped still, and may be written.
    #[inline]
    pub(crate) unsafe fn directly(&self, on: &Reachable, offset: usize) {
        let place = on.at(offset, self.size());
        assert!(place.addr().is_multiple_of(self.size()), "numbers are aligned");
        macro_rules! step {
            ($atomic:ty, $number:ty) => {{
                // SAFETY: as many bytes, aligned, by the caller's promise writable; an atomic may
                // be shared with any process.
                let word = unsafe { <$atomic>::from_ptr(place.cast()) };
                let (operand, order) = (self.operand as $number, Ordering::AcqRel);
                let old = match self.op {
                    Op::Add => word.fetch_add(operand, order),
                    Op::And => word.fetch_and(operand, order),
                    Op::Or => word.fetch_or(operand, order),
                    Op::Xor => word.fetch_xor(operand, order),
                    Op::Swap => word.swap(operand, order),
                    Op::CompareSwap(expected) => {
                        let expected = expected as $number;
                        let swapped =
                            word.compare_exchange(expected, operand, order, Ordering::Acquire);
                        swapped.unwrap_or_else(|old| old)
                    }
                };
                old.into()
            }};
        }
        let old: u64 = match self.width {
            Width::Bits32 => step!(AtomicU32, u32),
            Width::Bits64 => step!(AtomicU64, u64),
        };
        if self.has_result() {
            // SAFETY: new()'s promise.
            unsafe { self.width.write(old, self.result) };
        }
    }

    /// Posts it to the engine, which copies the operands before it returns.
    ///
    /// # Errors
    /// Those of [`RawEndpoint::update`].
    pub(crate) fn post(
        &self,
        endpoint: &mut RawEndpoint,
        at: RemoteAddress,
        context: Context,
    ) -> Result<(), PostError> {
        let number = match self.width {
            Width::Bits32 => Number::U32,
            Width::Bits64 => Number::U64,
        };
        let (op, compare) = match self.op {
            Op::Add => (Combine::Sum, None),
            Op::And => (Combine::BAnd, None),
            Op::Or => (Combine::BOr, None),
            Op::Xor => (Combine::BXor, None),
            Op::Swap => (Combine::Write, None),
            Op::CompareSwap(expected) => (Combine::CompareSwap(Comparison::Eq), Some(expected)),
        };
        let (operand, compare) = (self.operand.to_le_bytes(), compare.map(u64::to_le_bytes));
        // SAFETY: it stays until the engine has returned, which has copied it then.
        let copied = |bytes: &[u8; 8]| unsafe { Span::read_only(bytes.as_ptr(), self.size()) };
        // SAFETY: new()'s promise.
        let result = || unsafe { Span::new(self.result.cast(), self.size()) };
        endpoint.update(
            at,
            &RmaUpdate {
                op,
                number,
                operand: copied(&operand).into(),
                compare: compare.as_ref().map_or_else(Spans::default, |bytes| copied(bytes).into()),
                result: self.has_result().then(|| result().into()),
                data: None,
                context,
            },
        )
    }
}

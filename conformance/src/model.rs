//! A second implementation of atomics, to compare with.
use ayre::memory::{Atomic, AtomicOp, Width};

/// All operations.
pub(crate) const OPERATIONS: [AtomicOp; 11] = [
    AtomicOp::Add,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
    AtomicOp::MinUnsigned,
    AtomicOp::MaxUnsigned,
    AtomicOp::MinSigned,
    AtomicOp::MaxSigned,
    AtomicOp::Swap,
    AtomicOp::CompareSwap,
    AtomicOp::Fcaa,
];

/// Both widths.
pub(crate) const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// The word after an atomic, what a fetching one returns, and whether its condition held.
// spec: ATOM-1, ATOM-3, FCAA-1, FCAA-2
pub(crate) fn model(atomic: &Atomic, word: u64) -> (u64, u64, bool) {
    let bits = 8 * atomic.width.bytes() as u32;
    let cut = |value: u64| value & (u64::MAX >> (64 - bits));
    let signed = |value: u64| (value << (64 - bits)) as i64;
    let (old, a, compare) = (cut(word), cut(atomic.operand), cut(atomic.compare));
    let holds = match atomic.op {
        AtomicOp::CompareSwap => old == compare,
        AtomicOp::Fcaa => signed(old) <= signed(compare),
        _ => true,
    };
    let new = match atomic.op {
        _ if !holds => old,
        AtomicOp::Add | AtomicOp::Fcaa => cut(old.wrapping_add(a)),
        AtomicOp::And => old & a,
        AtomicOp::Or => old | a,
        AtomicOp::Xor => old ^ a,
        AtomicOp::MinUnsigned => old.min(a),
        AtomicOp::MaxUnsigned => old.max(a),
        AtomicOp::MinSigned => [old, a].into_iter().min_by_key(|v| signed(*v)).unwrap_or(old),
        AtomicOp::MaxSigned => [old, a].into_iter().max_by_key(|v| signed(*v)).unwrap_or(old),
        AtomicOp::Swap | AtomicOp::CompareSwap => a,
    };
    (new, if atomic.op == AtomicOp::Fcaa { new } else { old }, holds)
}

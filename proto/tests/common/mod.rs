//! The generators of the property tests: words that find edges, and values made of them.
#![allow(dead_code, reason = "each test takes what it needs")]
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use proptest::prelude::*;

/// A word: any at all, a small one, or one near a power of two or the end.
pub(crate) fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..64u64,
        (0..64u32, -2..=2i64).prop_map(|(bit, by)| (1u64 << bit).wrapping_add_signed(by)),
        (0..4u64).prop_map(|below| u64::MAX - below),
    ]
}

/// Any atomic.
pub(crate) fn atomics() -> impl Strategy<Value = Atomic> {
    let width = prop_oneof![Just(Width::W32), Just(Width::W64)];
    let op = (1..=11u8).prop_filter_map("an operation", AtomicOp::from_code);
    (width, op, word(), word()).prop_map(|(width, op, operand, compare)| Atomic {
        width,
        op,
        operand,
        compare,
    })
}

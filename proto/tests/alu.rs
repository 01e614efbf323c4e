//! Atomics against a model in 128-bit integers, which knows neither width nor sign of its own.
mod common;

use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
use common::{atomics, word};
use proptest::prelude::*;

const OPS: [AtomicOp; 11] = [
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
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

fn unsigned(width: Width, value: u64) -> i128 {
    i128::from(value) % (1i128 << (8 * width.bytes()))
}

fn signed(width: Width, value: u64) -> i128 {
    let (value, range) = (unsigned(width, value), 1i128 << (8 * width.bytes()));
    if value >= range / 2 { value - range } else { value }
}

/// The new value of the word by the tables of the specification; `None` if the operation declines.
fn model(atomic: &Atomic, word: u64) -> Option<u64> {
    let Atomic { width, op, operand, compare } = *atomic;
    let (w, a, c) = (unsigned(width, word), unsigned(width, operand), unsigned(width, compare));
    let pick = |first: bool| if first { w } else { a };
    let new = match op {
        AtomicOp::Add => w + a,
        AtomicOp::And => w & a,
        AtomicOp::Or => w | a,
        AtomicOp::Xor => w ^ a,
        AtomicOp::MinUnsigned => w.min(a),
        AtomicOp::MaxUnsigned => w.max(a),
        AtomicOp::MinSigned => pick(signed(width, word) < signed(width, operand)),
        AtomicOp::MaxSigned => pick(signed(width, word) > signed(width, operand)),
        AtomicOp::Swap => a,
        AtomicOp::CompareSwap if w == c => a,
        AtomicOp::Fcaa if signed(width, word) <= signed(width, compare) => w + a,
        AtomicOp::CompareSwap | AtomicOp::Fcaa => return None,
    };
    Some((new % (1i128 << (8 * width.bytes()))) as u64)
}

fn check(atomic: &Atomic, word: u64) {
    let new = model(atomic, word);
    assert_eq!(atomic.apply(word), new, "{atomic:?} on {word:#x}");
    // Whoever loads the word hands it over zero-extended.
    let old = unsigned(atomic.width, word) as u64;
    let value = match (atomic.op, new) {
        (AtomicOp::Fcaa, Some(new)) => new,
        _ => old,
    };
    let fetched = Fetched { value, success: new.is_some() };
    assert_eq!(atomic.fetched(old), fetched, "{atomic:?} on {old:#x}");
}

proptest! {
    // spec: ATOM-1, ATOM-3, FCAA-1, FCAA-2
    #[test]
    fn atomics_compute_the_results_of_the_tables(atomic in atomics(), old in word()) {
        check(&atomic, old);
        check(&Atomic { compare: old, ..atomic }, old);
    }
}

// spec: ATOM-1, ATOM-3, FCAA-1, FCAA-2
#[test]
fn edges_of_sign_and_width_hold_in_every_combination() {
    let half = [0, 1, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff, 0x1_0000_0000];
    let whole = [i64::MAX as u64, i64::MIN as u64, i64::MIN as u64 + 1, u64::MAX - 1, u64::MAX];
    let edges: Vec<u64> = half.into_iter().chain(whole).collect();
    for (&width, &op) in WIDTHS.iter().flat_map(|width| OPS.iter().map(move |op| (width, op))) {
        for &old in &edges {
            for (&operand, &compare) in
                edges.iter().flat_map(|a| edges.iter().map(move |compare| (a, compare)))
            {
                check(&Atomic { width, op, operand, compare }, old);
            }
        }
    }
}

proptest! {
    // spec: FCAA-1
    #[test]
    fn fcaa_with_the_largest_comparand_is_an_add(old in word(), operand in word()) {
        let largest = [(Width::W32, i32::MAX as u64), (Width::W64, i64::MAX as u64)];
        for (width, compare) in largest {
            let add = Atomic { width, op: AtomicOp::Add, operand, compare: 0 };
            let fcaa = Atomic { width, op: AtomicOp::Fcaa, operand, compare };
            prop_assert_eq!(fcaa.apply(old), add.apply(old));
            prop_assert!(fcaa.apply(old).is_some());
        }
    }
}

#[test]
fn only_codes_of_operations_are_accepted() {
    for op in OPS {
        assert_eq!(AtomicOp::from_code(op as u8), Some(op));
    }
    let known = (0..=u8::MAX).filter(|&code| AtomicOp::from_code(code).is_some()).count();
    assert_eq!(known, OPS.len());
}

//! The effect of updates on numbers, against plain arithmetic.
use ayre_proto::combine::{Combine, Comparison, Number};
use proptest::prelude::*;
use std::fmt::Debug;

const NUMBERS: usize = 3;

/// The new value of a number other than a complex one, in the language's own operations.
macro_rules! plain {
    ($old:ident, $new:ident, $compare:ident, $op:ident, $zero:expr, $one:expr, $sum:expr,
     $product:expr) => {{
        let truth = |is: bool| if is { $one } else { $zero };
        match $op {
            Combine::Min => {
                if $new < $old {
                    $new
                } else {
                    $old
                }
            }
            Combine::Max => {
                if $new > $old {
                    $new
                } else {
                    $old
                }
            }
            Combine::Sum => $sum,
            Combine::Prod => $product,
            Combine::LOr => truth($old != $zero || $new != $zero),
            Combine::LAnd => truth($old != $zero && $new != $zero),
            Combine::LXor => truth(($old != $zero) != ($new != $zero)),
            Combine::Read => $old,
            Combine::Write => $new,
            Combine::CompareSwap(relation) => {
                let is_so = match relation {
                    Comparison::Eq => $compare == $old,
                    Comparison::Ne => $compare != $old,
                    Comparison::Le => $compare <= $old,
                    Comparison::Lt => $compare < $old,
                    Comparison::Ge => $compare >= $old,
                    Comparison::Gt => $compare > $old,
                };
                if is_so { $new } else { $old }
            }
            _ => unreachable!("bits are of integers"),
        }
    }};
}

/// The value after an operation, bitwise ones included, which integers have.
macro_rules! integer {
    ($int:ident, $op:ident, $bytes:expr) => {{
        let [old, new, compare] = $bytes.map(|it| $int::from_le_bytes(it.try_into().unwrap()));
        let after = match $op {
            Combine::BOr => old | new,
            Combine::BAnd => old & new,
            Combine::BXor => old ^ new,
            Combine::MaskedSwap => new & compare | old & !compare,
            _ => {
                let (sum, product) = (old.wrapping_add(new), old.wrapping_mul(new));
                plain!(old, new, compare, $op, 0, 1, sum, product)
            }
        };
        after.to_le_bytes().to_vec()
    }};
}

macro_rules! float {
    ($float:ident, $op:ident, $bytes:expr) => {{
        let [old, new, compare] = $bytes.map(|it| $float::from_le_bytes(it.try_into().unwrap()));
        plain!(old, new, compare, $op, 0.0, 1.0, old + new, old * new).to_le_bytes().to_vec()
    }};
}

macro_rules! complex {
    ($float:ident, $op:ident, $bytes:expr) => {{
        let [(a, b), (c, d), compare] = $bytes.map(|it| {
            let (real, imaginary) = it.split_at(it.len() / 2);
            let of = |part: &[u8]| $float::from_le_bytes(part.try_into().unwrap());
            (of(real), of(imaginary))
        });
        let truth = |is: bool| if is { (1.0, 0.0) } else { (0.0, 0.0) };
        let (left, right) = (a != 0.0 || b != 0.0, c != 0.0 || d != 0.0);
        let is_equal = compare.0 == a && compare.1 == b;
        let after: ($float, $float) = match $op {
            Combine::Sum => (a + c, b + d),
            Combine::Prod => (a * c - b * d, a * d + b * c),
            Combine::LOr => truth(left || right),
            Combine::LAnd => truth(left && right),
            Combine::LXor => truth(left != right),
            Combine::Write => (c, d),
            Combine::CompareSwap(Comparison::Eq) if is_equal => (c, d),
            Combine::CompareSwap(Comparison::Ne) if !is_equal => (c, d),
            _ => (a, b),
        };
        [after.0.to_le_bytes(), after.1.to_le_bytes()].concat()
    }};
}

fn oracle(op: Combine, number: Number, bytes: [&[u8]; 3]) -> Vec<u8> {
    match number {
        Number::I8 => integer!(i8, op, bytes),
        Number::U8 => integer!(u8, op, bytes),
        Number::I16 => integer!(i16, op, bytes),
        Number::U16 => integer!(u16, op, bytes),
        Number::I32 => integer!(i32, op, bytes),
        Number::U32 => integer!(u32, op, bytes),
        Number::I64 => integer!(i64, op, bytes),
        Number::U64 => integer!(u64, op, bytes),
        Number::F32 => float!(f32, op, bytes),
        Number::F64 => float!(f64, op, bytes),
        Number::C32 => complex!(f32, op, bytes),
        Number::C64 => complex!(f64, op, bytes),
    }
}

/// The bits of a NaN are not checked.
fn is_nan(number: Number, bytes: &[u8]) -> bool {
    match number {
        Number::F32 | Number::C32 => {
            bytes.chunks(4).any(|it| f32::from_le_bytes(it.try_into().unwrap()).is_nan())
        }
        Number::F64 | Number::C64 => {
            bytes.chunks(8).any(|it| f64::from_le_bytes(it.try_into().unwrap()).is_nan())
        }
        _ => false,
    }
}

fn is_defined(op: Combine, number: Number) -> bool {
    let is_complex = matches!(number, Number::C32 | Number::C64);
    let is_integer = !is_complex && !matches!(number, Number::F32 | Number::F64);
    match op {
        Combine::BOr | Combine::BAnd | Combine::BXor | Combine::MaskedSwap => is_integer,
        Combine::Min | Combine::Max => !is_complex,
        Combine::CompareSwap(Comparison::Eq | Comparison::Ne) => true,
        Combine::CompareSwap(_) => !is_complex,
        _ => true,
    }
}

/// Bytes of some numbers; small ones, equal ones and halves are likely.
fn some_bytes() -> impl Strategy<Value = [u8; 16 * NUMBERS]> {
    let word = prop_oneof![
        any::<u64>(),
        0..3_u64,
        Just(u64::MAX),
        Just(1 << 63),
        (-3..4_i8).prop_map(|n| f64::from(n).to_bits()),
        (-3..4_i8).prop_map(|n| u64::from(f32::from(n).to_bits()) * 0x1_0000_0001),
    ];
    prop::array::uniform6(word).prop_map(|words| {
        let mut bytes = [0; 16 * NUMBERS];
        words.iter().zip(bytes.chunks_mut(8)).for_each(|(word, at)| {
            at.copy_from_slice(&word.to_le_bytes());
        });
        bytes
    })
}

fn check(what: impl Debug, (op, number): (Combine, Number), bytes: [&[u8]; 3]) {
    let size = number.size();
    let mut memory = bytes[0].to_vec();
    op.apply(number, &mut memory, bytes[1], bytes[2]);
    if !is_defined(op, number) {
        return assert_eq!(memory, bytes[0], "what is not defined does nothing");
    }
    for at in (0..memory.len()).step_by(size) {
        let due = oracle(op, number, bytes.map(|it| &it[at..at + size]));
        let got = &memory[at..at + size];
        let both_nan = is_nan(number, &due) && is_nan(number, got);
        assert!(both_nan || due == got, "{op:?} {number:?} {what:?}: {got:?}, {due:?} was due");
    }
}

proptest! {
    // spec: ENV-29
    #[test]
    fn every_op_is_plain_arithmetic(
        all in [some_bytes(), some_bytes(), some_bytes()],
        is_same in any::<bool>()
    ) {
        for op in Combine::ALL {
            for number in Number::ALL {
                let len = NUMBERS * number.size();
                let [memory, operand, compare] = all.each_ref().map(|bytes| &bytes[..len]);
                let compare = if is_same { memory } else { compare };
                check(all, (op, number), [memory, operand, compare]);
            }
        }
    }
}

// spec: ENV-29
#[test]
fn every_pair_of_small_numbers() {
    for op in Combine::ALL {
        for number in [Number::I8, Number::U8] {
            for memory in 0..=255_u8 {
                let operand: Vec<u8> = (0..=255).collect();
                let bytes = [&[memory; 256][..], &operand, &[memory ^ 1; 256]];
                check(memory, (op, number), bytes);
                check(memory, (op, number), [bytes[0], bytes[1], &[memory; 256]]);
            }
        }
    }
}

// spec: ENV-1, ENV-29
#[test]
fn codes_stay_stable() {
    for code in 0..=255 {
        assert_eq!(
            Combine::from_code(code).map(Combine::code),
            (1..20).contains(&code).then_some(code)
        );
        assert_eq!(
            Number::from_code(code).map(Number::code),
            (1..13).contains(&code).then_some(code)
        );
    }
    for op in Combine::ALL {
        for number in Number::ALL {
            assert_eq!(op.is_defined(number), is_defined(op, number), "{op:?} {number:?}");
        }
    }
    let sizes = Number::ALL.map(Number::size);
    assert_eq!(sizes, [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16]);
}

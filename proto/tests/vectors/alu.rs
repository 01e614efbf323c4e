//! Vectors of atomics.
use super::names::{ATOMICS, WIDTHS, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::alu::{Atomic, AtomicOp, Width};

pub(crate) const HEADER: &str = "\
Atomics as functions of the word (proto/src/alu.rs, spec/10). Numbers are hexadecimal.

ATOMIC WIDTH OLD OPERAND COMPARE -> NEW VALUE SUCCESS
  OLD       the word before, zero-extended
  NEW       the word afterwards; OLD where the operation declines
  VALUE     what a fetching atomic returns
  SUCCESS   1, or 0 where a cswap or fcaa declines";

struct Alu;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Alu)
}

impl Machine for Alu {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        let (op, width) = (value(ATOMICS, name), value(WIDTHS, inputs.text()));
        let (old, operand, compare) = (inputs.number(), inputs.number(), inputs.number());
        let atomic = Atomic { width, op, operand, compare };
        let (new, fetched) = (atomic.apply(old).unwrap_or(old), atomic.fetched(old));
        format!("{new:x} {:x} {:x}", fetched.value, u8::from(fetched.success))
    }
}

pub(crate) fn script(s: &mut Script) {
    let edges = |width: Width| match width {
        Width::W32 => [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff],
        Width::W64 => [0, 1, i64::MAX as u64, 1 << 63, u64::MAX],
    };
    for (width_name, width) in WIDTHS {
        s.section("edges of sign and width, then any words; the upper half of operands is ignored");
        for (name, op) in ATOMICS {
            for (old, other) in edges(*width).iter().flat_map(|old| edges(*width).map(|a| (old, a)))
            {
                let compares = matches!(op, AtomicOp::CompareSwap | AtomicOp::Fcaa);
                let (operand, compare) = if compares { (3, other) } else { (other, 0) };
                s.run(format!("{name} {width_name} {old:x} {operand:x} {compare:x}"));
            }
            for _ in 0..6 {
                let (old, operand, compare) = (s.random.edge(), s.random.edge(), s.random.edge());
                let old = if *width == Width::W32 { old & 0xffff_ffff } else { old };
                s.run(format!("{name} {width_name} {old:x} {operand:x} {compare:x}"));
            }
        }
    }
}

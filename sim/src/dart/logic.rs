//! The operation logic: cycles of each instruction (section 6.6).
use crate::time::Time;
use ayre_proto::deposit::primitive::{AddressMode, OpCode, Operand, RegisterOp, Test};

/// The period of the operation logic that needs `cycles` in this time.
pub fn period(time: Time, cycles: u64) -> Time {
    Time(time.0 / cycles)
}

/// An instruction's use of the register file, which has one port.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The address.
    pub address: AddressMode,
    /// The register operations.
    pub ops: [Option<RegisterOp>; 2],
    /// The conditional.
    pub test: Option<Test>,
}

impl Work {
    /// Cycles of the operation logic: one to read each register, and one to write each back. An
    /// operand of the message costs none (section 6.6).
    pub fn cycles(&self) -> u64 {
        let address = u64::from(self.address != AddressMode::Direct);
        let ops: u64 = self.ops.iter().flatten().map(op_cycles).sum();
        let test = self.test.map_or(0, |test| register(test.left) + register(test.right));
        address + ops + test
    }
}

fn op_cycles(op: &RegisterOp) -> u64 {
    let target = u64::from(op.op.reads_target());
    let source = if op.op.reads_source() { register(op.from) } else { 0 };
    target + source + 1
}

fn register(operand: Operand) -> u64 {
    u64::from(matches!(operand, Operand::Register(_)))
}

/// All instructions that differ in their use of registers.
pub fn all_work() -> impl Iterator<Item = Work> {
    use ayre_proto::deposit::primitive::{Condition, Slot};
    let operands = [Operand::Operand, Operand::Register(Slot::X)];
    let ops: Vec<_> = OpCode::ALL
        .into_iter()
        .flat_map(move |op| operands.map(|from| Some(RegisterOp { op, to: Slot::Y, from })))
        .chain([None])
        .collect();
    let sides = operands.into_iter().flat_map(move |left| operands.map(|right| (left, right)));
    let tests: Vec<_> = sides
        .map(|(left, right)| Some(Test { relation: Condition::Lt, left, right, guards: false }))
        .chain([None])
        .collect();
    let modes =
        [AddressMode::Direct, AddressMode::Indirect, AddressMode::Indexed, AddressMode::Wrapped];
    modes.into_iter().flat_map(move |address| {
        let (ops, tests) = (ops.clone(), tests.clone());
        let pairs = ops
            .clone()
            .into_iter()
            .flat_map(move |first| ops.clone().into_iter().map(move |second| [first, second]));
        pairs.flat_map(move |ops| {
            tests.clone().into_iter().map(move |test| Work { address, ops, test })
        })
    })
}

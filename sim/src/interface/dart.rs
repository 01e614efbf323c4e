//! DART's receiver, and the emulation of deposits by the kernels of DECstations.
use super::{Bench, Model, Refusal, Request, operation};
use crate::dart::cell;
use crate::dart::emulation::Emulation;
use crate::dart::receive::Receiver;
use crate::dart::{Work, all_work};
use crate::machine::{Course, Machine, Part, Step};
use crate::time::Time;
use ayre_proto::deposit::primitive::{AddressMode, OpCode, Operand, RegisterOp, Slot};

/// The most bytes of a block.
const BLOCK: u32 = 4096;

pub(super) const MODEL: Model = Model {
    name: "dart",
    about: "DART's receiver: cells of ATM, whose instructions its logic carries out",
    source: "Osborne, hybrid deposit model, sections 4, 6.2 and 6.6",
    operations: &[
        operation("deposit", "a block to an address, from its first bit (section 6.6)", SIZES),
        operation("append", "the same to where a register says, which is moved (2, 6.6)", SIZES),
        operation("longest", "the same with the instruction of most cycles (6.5)", SIZES),
    ],
    build,
};

pub(super) const EMULATION: Model = Model {
    name: "decstation",
    about: "deposits between DECstations 5000/240, emulated by their kernels",
    source: "Osborne, hybrid deposit model, section 5",
    operations: &[
        operation("round-trip", "a write of a cell and a write back (section 5)", CELL),
        operation("remote-read", "a read of a cell (section 5)", CELL),
    ],
    build: emulate,
};

const SIZES: (u32, u32) = (1, BLOCK);
const CELL: (u32, u32) = (1, cell::DATA);

/// The bits of a link in a second.
const LINES: [(&str, f64); 2] = [("155 Mb/s", 155e6), ("622 Mb/s", 622e6)];
/// The time in which a bus of 32 bits at 33 MHz moves the data of a cell. The source has no bus of
/// its own: our choice.
const BUS: Time = Time::from_nanos(240);

fn work(operation: &str) -> Work {
    let nothing = Work { address: AddressMode::Direct, ops: [None; 2], test: None };
    match operation {
        "deposit" => nothing,
        "append" => {
            let add = RegisterOp { op: OpCode::Add, to: Slot::X, from: Operand::Register(Slot::Y) };
            Work { address: AddressMode::Indirect, ops: [Some(add), None], ..nothing }
        }
        _ => all_work().max_by_key(Work::cycles).unwrap_or(nothing),
    }
}

fn build(request: &Request) -> Result<Bench, Refusal> {
    let bits_per_second = request.choose("line", &LINES)?;
    let receiver = Receiver { bits_per_second, period: request.clock().span(1), bus: BUS };
    let cells = cell::cells(request.size.div_ceil(cell::UNIT));
    let build = || {
        let mut machine = Machine::default();
        let block = receiver.block(&mut machine, &[work(request.operation)], cells);
        (machine, block)
    };
    Ok(Bench::of(build))
}

/// A program has one operation under way at a time.
fn emulate(request: &Request) -> Result<Bench, Refusal> {
    const PROGRAM: Part = Part("program");
    let emulation = Emulation::decstation();
    let steps: Course = match request.operation {
        "round-trip" => emulation.round_trip_steps(),
        _ => emulation.read_steps(),
    };
    let build = || {
        let mut machine = Machine::default();
        let program = machine.named("initiator", "program");
        let mut course = vec![Step::take(PROGRAM, program, 1)];
        course.extend(steps.clone());
        course.push(Step::give(PROGRAM, program, 1));
        (machine, vec![course])
    };
    Ok(Bench::of(build))
}

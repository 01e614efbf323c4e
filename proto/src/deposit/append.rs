//! A short way for the commonest program: append to a queue.
//!
//! ```text
//!   decline if x >= z; write [x] or [x wrapped]; x += y, or x += length
//! ```
//!
//! The guard may be missing. [`run`](super::run) decides the same, and also all other cases.
use super::instruction::Instruction;
use super::machine::Inlet;
use super::message::DepositMessage;
use super::primitive::{AddressMode, Condition, Kind, OpCode, Operand, Primitive, Slot, Test};
use crate::units::Rights;
use crate::xlate::{contains, permits};

/// A stored instruction that appends, and takes nothing of its registers from messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append {
    /// The register with the place of the next record.
    pub tail: u8,
    /// The register with the distance of two records; where there is none, it is their length.
    step: Option<u8>,
    /// The register that the tail must be below.
    limit: Option<u8>,
    wraps: bool,
}

/// The result of a message that is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The tail has reached the limit.
    Declined,
    /// The data goes to a place in the inlet's range, and the tail on.
    At {
        /// Bytes from the beginning of the range.
        offset: u64,
        /// The new value of the tail's register.
        tail: u64,
    },
}

impl Append {
    /// Recognises one.
    pub fn of(instruction: &Instruction) -> Option<Self> {
        let supplied = instruction.supplied();
        let plain =
            supplied.registers == [false; 3] && !supplied.mask && instruction.give().is_none();
        let wraps = match instruction.address() {
            AddressMode::Indirect => false,
            AddressMode::Wrapped => true,
            AddressMode::Direct | AddressMode::Indexed => return None,
        };
        if !plain || instruction.continues() || instruction.kind() != Kind::Write {
            return None;
        }
        let op = instruction.op(0).filter(|op| op.to == Slot::X && instruction.op(1).is_none())?;
        let step = match (op.op, op.from) {
            (OpCode::Advance, _) => None,
            (OpCode::Add, Operand::Register(slot)) => Some(instruction.register(slot)),
            _ => return None,
        };
        let at = |wanted| instruction.order().iter().position(|primitive| *primitive == wanted);
        let (address, first) = (at(Primitive::Address), at(Primitive::First));
        let limit = match instruction.test() {
            None => None,
            Some(test) if at(Primitive::Test) < address => Some(limit_of(instruction, &test)?),
            Some(_) => return None,
        };
        let tail = instruction.register(Slot::X);
        debug_assert!(first.is_some() && address.is_some(), "each primitive has a place");
        (address < first).then_some(Self { tail, step, limit, wraps })
    }

    /// The result of a message that may enter here. Returns `None` if [`run`](super::run) is to
    /// decide: the message faults, or would fault if no guard came first.
    // spec: DEP-7, DEP-14
    #[inline(always)]
    pub fn apply(
        &self,
        message: &DepositMessage,
        inlet: &Inlet,
        register: impl Fn(u8) -> u64,
    ) -> Option<Appended> {
        let (len, reach) = (u64::from(message.len), inlet.len);
        let may = permits(inlet.rights, Rights::WRITE).is_ok() && message.len <= inlet.longest;
        if !may || message.check().is_err() {
            return None;
        }
        let tail = register(self.tail);
        if let Some(limit) = self.limit
            && tail >= register(limit)
        {
            return Some(Appended::Declined);
        }
        let offset = if self.wraps { tail & reach.wrapping_sub(1) } else { tail };
        let known = !self.wraps || reach.is_power_of_two();
        let fits = contains(reach, offset, len).is_ok();
        if !known || !fits || !message.brings && len > 0 {
            return None;
        }
        let brought = if message.brings { len } else { 0 };
        let step = match self.step {
            Some(step) => register(step),
            None => brought.next_multiple_of(8),
        };
        Some(Appended::At { offset, tail: tail.wrapping_add(step) })
    }
}

fn limit_of(instruction: &Instruction, test: &Test) -> Option<u8> {
    let Test { relation: Condition::Ge, left, right: Operand::Register(slot), guards: true } =
        *test
    else {
        return None;
    };
    (left == Operand::Register(Slot::X)).then(|| instruction.register(slot))
}

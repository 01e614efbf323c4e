//! Commands and responses of a mediated connection: how they lie in a lane's records.
//!
//! ```text
//! command, 48 bytes, then a put's data
//!   word 0   operation 8 | classes 8 | atomic 8 | width 8 | slot 16 | 0 16
//!   word 1   generation 32 | tag 32
//!   word 2   offset 64
//!   word 3   value 64
//!   word 4   put: 0 | get: length | atomic: operand | immediate: the eight bytes
//!   word 5   get: cookie, echoed by the response | compare-swap, FCAA: comparand
//!
//! response, 16 bytes, then a get's data
//!   word 0   number of the command 32 | status 8 | 0 24
//!   word 1   get: cookie | fetching atomic: value
//! ```
use crate::alu::{Atomic, AtomicOp, Width};
use crate::execute::{Action, Command};
use crate::fault::{Fault, Status};
use crate::notify::{Classes, Operation};
use crate::units::{Claim, Key};

/// Bytes of a command before its data.
pub const COMMAND_BYTES: usize = 48;
/// Bytes of a response before its data.
pub const RESPONSE_BYTES: usize = 16;
/// A command without its data, as it travels.
pub type Words = [u64; COMMAND_BYTES / 8];
/// A response without its data, as it travels.
pub type Head = [u64; RESPONSE_BYTES / 8];

/// A command with what only mediated connections need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// A get's place in the initiator's buffer, which the response repeats.
    pub cookie: u64,
}

impl Request {
    /// The words that travel.
    pub fn encode(&self) -> Words {
        let Command { action, classes, tag, value, claim } = self.command;
        let (atomic, width, fourth, fifth) = match action {
            Action::Put | Action::Notify => (0, 0, 0, 0),
            Action::Get => (0, 0, claim.len, self.cookie),
            Action::Immediate(value) => (0, 0, value, 0),
            Action::Atomic(a) | Action::Fetch(a) => {
                (a.op as u64, a.width as u64, a.operand, a.compare)
            }
        };
        let first = action.operation() as u64
            | u64::from(classes.bits()) << 8
            | atomic << 16
            | width << 24
            | u64::from(claim.key.slot) << 32;
        let second = u64::from(claim.key.generation) | u64::from(tag) << 32;
        let words = [first, second, claim.offset, value, fourth, fifth];
        if cfg!(debug_assertions) {
            let data = if action == Action::Put { claim.len } else { 0 };
            let read = Self::parse(&words, data).map(|read| read.command.action);
            debug_assert!(read == Ok(action), "the target reads what the initiator says");
        }
        words
    }

    /// Reads what a peer wrote; `data_len` bytes follow it in the record. Total.
    // spec: ERR-5
    pub fn parse(words: &Words, data_len: u64) -> Result<Self, Fault> {
        let [first, second, offset, value, fourth, fifth] = *words;
        let operation = Operation::from_code(first as u8).ok_or(Fault::Malformed)?;
        let action = match operation {
            Operation::Put => Action::Put,
            Operation::Get => Action::Get,
            Operation::ImmediatePut => Action::Immediate(fourth),
            Operation::NotificationPut => Action::Notify,
            Operation::Atomic => Action::Atomic(parse_atomic(first, fourth, fifth)?),
            Operation::FetchAtomic => Action::Fetch(parse_atomic(first, fourth, fifth)?),
            // Its words have a form of their own: `deposit::message`.
            Operation::Deposit | Operation::Reply => return Err(Fault::Malformed),
        };
        if data_len != 0 && action != Action::Put {
            return Err(Fault::Malformed);
        }
        let len = match action {
            Action::Put => data_len,
            Action::Get => fourth,
            Action::Immediate(_) => 8,
            Action::Notify => 0,
            Action::Atomic(atomic) | Action::Fetch(atomic) => atomic.width.bytes(),
        };
        let key = Key { slot: (first >> 32) as u16, generation: second as u32 };
        let command = Command {
            action,
            classes: Classes::from_bits_truncate((first >> 8) as u8),
            tag: (second >> 32) as u32,
            value,
            claim: Claim { key, offset, len },
        };
        let cookie = if action == Action::Get { fifth } else { 0 };
        Ok(Self { command, cookie })
    }
}

fn parse_atomic(first: u64, operand: u64, compare: u64) -> Result<Atomic, Fault> {
    let op = AtomicOp::from_code((first >> 16) as u8).ok_or(Fault::Malformed)?;
    let width = match (first >> 24) as u8 {
        4 => Width::W32,
        8 => Width::W64,
        _ => return Err(Fault::Malformed),
    };
    Ok(Atomic { width, op, operand, compare })
}

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Low half of the number of the command it answers.
    pub number: u32,
    /// The status of the command.
    pub status: Status,
    /// A get's cookie, or a fetching atomic's value.
    pub value: u64,
}

impl Response {
    /// The words that travel.
    pub const fn encode(&self) -> Head {
        let words = [self.number as u64 | (self.status.code() as u64) << 32, self.value];
        debug_assert!(
            Self::parse(&words).status.code() == self.status.code(),
            "the initiator reads how it ended"
        );
        words
    }

    /// Reads what a peer wrote. Total.
    pub const fn parse(words: &Head) -> Self {
        Self {
            number: words[0] as u32,
            status: Status::from_code((words[0] >> 32) as u8),
            value: words[1],
        }
    }
}

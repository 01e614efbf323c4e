//! A deposit message: its contents, and their places in a command's six words.
//!
//! ```text
//!   word 0   7 8 | classes 8 | epoch 8 | check 8 | slot 16 | length 11 | form 2 | brings | asks
//!   word 1   generation 32 | tag 32
//!   word 2   operand 64
//!   word 3   value 64
//!   word 4   carried: the instruction | pointer: entry 16, 0 16, registers x, y, z 24, 0 8
//!   word 5   mask 64
//! ```
//!
//! All of this precedes the data and has a check of its own, so that a receiver can decide before
//! the data has come.
use super::instruction::Instruction;
use super::primitive::Slot;
use super::{DATA_MAX, SEQUENCE_MAX};
use crate::command::Words;
use crate::execute::Report;
use crate::fault::Fault;
use crate::notify::{Classes, Operation};
use crate::units::Key;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An instruction that the message brings.
    Carried(Instruction),
    /// One that is stored at the destination, and registers for those that it leaves open.
    Pointer {
        /// Counted from the beginning of the inlet's entries.
        entry: u16,
        /// The registers by slot, counted from the beginning of the inlet's registers.
        registers: [u8; 3],
    },
    /// Nothing but an answer, with the epoch of which messages are taken.
    Probe,
}

/// Which words of four bytes are written or read, of the first 64 of a message's data.
// spec: DEP-12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask(pub u64);

impl Mask {
    /// All words of data of any length.
    pub const ALL: Self = Self(u64::MAX);
    /// Bytes of a word.
    pub const WORD: u64 = 4;

    /// Whether it leaves nothing out.
    pub const fn is_all(self) -> bool {
        self.0 == u64::MAX
    }

    /// Whether the mask fits `len` bytes: only whole words are left out, and all of them can be
    /// named.
    pub const fn suits(self, len: u64) -> bool {
        self.is_all() || len <= 64 * Self::WORD && len.is_multiple_of(Self::WORD)
    }

    /// The selected ranges of `len` bytes, in ascending order, none adjacent to another.
    pub const fn runs(self, len: u64) -> Runs {
        Runs { mask: self, at: 0, len }
    }
}

/// Iterator over the ranges that a mask selects: first byte and length.
#[derive(Clone, Debug)]
pub struct Runs {
    mask: Mask,
    at: u64,
    len: u64,
}

impl Iterator for Runs {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.at >= self.len {
            return None;
        }
        if self.mask.is_all() {
            self.at = self.len;
            return Some((0, self.len));
        }
        let words = self.len / Mask::WORD;
        let word = self.at / Mask::WORD;
        let from = word + u64::from(self.mask.0.checked_shr(word as u32)?.trailing_zeros());
        if from >= words {
            return None;
        }
        let to = from + u64::from((!(self.mask.0 >> from)).trailing_zeros());
        let to = to.min(words);
        debug_assert!(word <= from && from < to, "ranges go on, and none is empty");
        self.at = to * Mask::WORD;
        Some((from * Mask::WORD, (to - from) * Mask::WORD))
    }
}

/// The contents of a message, except its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositMessage {
    /// The kind of the message.
    pub form: Form,
    /// The immediate operand.
    pub operand: u64,
    /// Which words of the data.
    pub mask: Mask,
    /// Bytes of the data that it brings, or that it wants.
    pub len: u16,
    /// Whether it brings data.
    pub brings: bool,
    /// Whether its sender wants an answer although all went well.
    pub is_answered: bool,
}

impl DepositMessage {
    /// Makes the checks that need no knowledge of the destination.
    // spec: DEP-12, DEP-13
    #[inline(always)]
    pub const fn check(&self) -> Result<(), Fault> {
        let wants = self.len > 0 && !self.brings || matches!(self.form, Form::Probe);
        if !self.mask.suits(self.len as u64) || wants && !self.is_answered {
            return Err(Fault::Malformed);
        }
        if self.len as usize > DATA_MAX { Err(Fault::TooLong) } else { Ok(()) }
    }
}

/// A message on its way: with what addresses it and reports on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The inlet's key.
    pub key: Key,
    /// The epoch of the inlet for which it was posted.
    pub epoch: u8,
    /// Which notifications are raised at its sender.
    pub classes: Classes,
    /// The user's, in notifications.
    pub tag: u32,
    /// The user's, in notifications.
    pub value: u64,
    /// The contents.
    pub message: DepositMessage,
}

const CHECK: u32 = 24;
const LENGTH: u32 = 48;
const FORM: u32 = 59;
const BRINGS: u32 = 61;
const ANSWERED: u32 = 62;

impl Posted {
    /// The words that travel.
    pub const fn encode(&self) -> Words {
        let DepositMessage { form, operand, mask, len, brings, is_answered } = self.message;
        let (code, fourth) = match form {
            Form::Carried(instruction) => (0, instruction.word()),
            Form::Pointer { entry, registers: [x, y, z] } => {
                (1, entry as u64 | (x as u64) << 32 | (y as u64) << 40 | (z as u64) << 48)
            }
            Form::Probe => (2, 0),
        };
        let first = Operation::Deposit as u64
            | (self.classes.bits() as u64) << 8
            | (self.epoch as u64) << 16
            | (self.key.slot as u64) << 32
            | (len as u64 & 0x7ff) << LENGTH
            | code << FORM
            | (brings as u64) << BRINGS
            | (is_answered as u64) << ANSWERED;
        let second = self.key.generation as u64 | (self.tag as u64) << 32;
        debug_assert!(len as usize <= DATA_MAX, "a message is no longer than its field");
        let words = [first, second, operand, self.value, fourth, mask.0];
        [first | (check_of(&words) as u64) << CHECK, second, operand, self.value, fourth, mask.0]
    }

    /// The part that is kept while the message is under way: enough for its notifications.
    pub const fn report(&self) -> Report {
        let Self { classes, tag, value, .. } = *self;
        Report { operation: Operation::Deposit, classes, tag, value }
    }

    /// Bytes of data that these words claim to bring, for callers that have only the words.
    pub const fn brought(words: &Words) -> u64 {
        if words[0] >> BRINGS & 1 == 1 { words[0] >> LENGTH & 0x7ff } else { 0 }
    }

    /// Reads what a peer wrote; `data` bytes follow it in the record. Total.
    // spec: ERR-5, DEP-6
    pub const fn parse(words: &Words, data: u64) -> Result<Self, Fault> {
        let [first, second, operand, value, fourth, fifth] = *words;
        let bare = [first & !(0xff << CHECK), second, operand, value, fourth, fifth];
        if first as u8 != Operation::Deposit as u8 || check_of(&bare) != (first >> CHECK) as u8 {
            return Err(Fault::Malformed);
        }
        let form = match first >> FORM & 3 {
            0 => match Instruction::parse(fourth) {
                Ok(instruction) => Form::Carried(instruction),
                Err(fault) => return Err(fault),
            },
            1 => Form::Pointer {
                entry: fourth as u16,
                registers: [(fourth >> 32) as u8, (fourth >> 40) as u8, (fourth >> 48) as u8],
            },
            2 => Form::Probe,
            _ => return Err(Fault::Malformed),
        };
        let (len, brings) = (first >> LENGTH & 0x7ff, first >> BRINGS & 1 == 1);
        let is_answered = first >> ANSWERED & 1 == 1;
        let expected = if brings { len } else { 0 };
        if data != expected {
            return Err(Fault::Malformed);
        }
        Ok(Self {
            key: Key { slot: (first >> 32) as u16, generation: second as u32 },
            epoch: (first >> 16) as u8,
            classes: Classes::from_bits_truncate((first >> 8) as u8),
            tag: (second >> 32) as u32,
            value,
            message: DepositMessage {
                form,
                operand,
                mask: Mask(fifth),
                len: len as u16,
                brings,
                is_answered,
            },
        })
    }
}

/// The check over the words before the data: their exclusive or, each turned by its place, folded
/// to a byte. One changed bit changes it, and so do any that lie within eight in a row.
const fn check_of(words: &Words) -> u8 {
    let mut sum = 0x5a;
    let mut index = 0;
    while index < words.len() {
        sum ^= words[index].rotate_left(11 * index as u32);
        index += 1;
    }
    sum ^= sum >> 32;
    sum ^= sum >> 16;
    (sum ^ sum >> 8) as u8
}

/// A register or value that an instruction names, or the message supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Counted from the beginning of the inlet's registers, and protected.
    Theirs(u8),
    /// Any register, chosen by the owner.
    Ours(u8),
}

impl Name {
    /// The name in a carried instruction.
    #[inline(always)]
    pub(super) const fn carried(instruction: &Instruction, slot: Slot) -> Self {
        Self::Theirs(instruction.register(slot))
    }

    /// The name in a stored instruction.
    #[inline(always)]
    pub(super) const fn stored(instruction: &Instruction, slot: Slot, message: [u8; 3]) -> Self {
        let index = slot.index();
        if instruction.supplied().registers[index] {
            Self::Theirs(message[index])
        } else {
            Self::Ours(instruction.register(slot))
        }
    }
}

const _: () = assert!(DATA_MAX < 1 << 11, "a length has eleven bits");
const _: () = assert!(LENGTH + 11 == FORM && FORM + 2 == BRINGS, "fields do not overlap");
const _: () = assert!(BRINGS + 1 == ANSWERED && ANSWERED < u64::BITS, "nor do flags");
const _: () = assert!(SEQUENCE_MAX > 0, "a message goes through an instruction at least");

//! The formats of RMA operations: further records of the message lane between two endpoints.
//!
//! ```text
//! tag of the record   bit 0..3  what it is   bit 5  with data   bit 6  tells what was there
//!
//!   write here  key    address   id      before    data   bytes: the last ones of a write
//!   write part  key    address   length  before    count  place        in the ring
//!   write part here
//!               key    address   length  before    bytes
//!   read        key    address   id      length
//!   update      key    address   id      what      data   operands, then comparands
//! ```
//!
//! *Key* and *address* are those of the whole; *before* is how many of its bytes have gone before.
//! Its target answers the record that has its *id*, the last one of a write: see
//! [`crate::envelope`].
use crate::combine::{Combine, Number};
use crate::lane::Malformed;
use crate::limits::EAGER_MAX;
use crate::units::Rights;

/// Words of the longest head.
pub const RMA_WORDS: usize = 6;

/// The operation of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calculation {
    /// With each number.
    pub op: Combine,
    /// The type of the numbers.
    pub number: Number,
    /// The number of numbers.
    pub count: u16,
    /// Whether the former numbers are given back.
    pub fetches: bool,
}

/// The contents of a record. Everything in it is a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmaRecord {
    /// The last bytes of a write, or all of them; they follow.
    WriteHere {
        /// The memory region.
        key: u64,
        /// The address of the write's first byte.
        address: u64,
        /// The initiator's name of it.
        id: u64,
        /// Bytes of it that went before.
        before: u64,
        /// Immediate data for the target.
        data: Option<u64>,
    },
    /// Bytes of a write, in the ring; more will come.
    WritePart {
        /// The memory region.
        key: u64,
        /// The address of the write's first byte.
        address: u64,
        /// Bytes of the whole write.
        len: u64,
        /// Bytes of it that went before.
        before: u64,
        /// Bytes of the part.
        count: u64,
        /// The position of the bytes in the ring.
        place: u64,
    },
    /// Bytes of a write that follow; more will come.
    WritePartHere {
        /// The memory region.
        key: u64,
        /// The address of the write's first byte.
        address: u64,
        /// Bytes of the whole write.
        len: u64,
        /// Bytes of it that went before.
        before: u64,
    },
    /// A read, answered by fragments.
    Read {
        /// The memory region.
        key: u64,
        /// The address of its first byte.
        address: u64,
        /// The initiator's name of it.
        id: u64,
        /// Bytes.
        len: u64,
    },
    /// An update; its operands follow, then its comparands.
    Update {
        /// The memory region.
        key: u64,
        /// The address of its first number.
        address: u64,
        /// The initiator's name of it.
        id: u64,
        /// The operation.
        what: Calculation,
        /// Immediate data for the target.
        data: Option<u64>,
    },
}

const WRITE_HERE: u32 = 9;
const WRITE_PART: u32 = 10;
const WRITE_PART_HERE: u32 = 11;
const READ: u32 = 12;
const UPDATE: u32 = 13;

const CODE_MASK: u32 = 0xf;
const WITH_DATA: u32 = 1 << 5;
const FETCHES: u32 = 1 << 6;

impl Calculation {
    /// The most numbers that one update has: operands and comparands travel in one record, and what
    /// was there comes back in one.
    pub const fn count_max(op: Combine, number: Number) -> usize {
        EAGER_MAX / number.size() / if op.has_comparand() { 2 } else { 1 }
    }

    /// Whether the combination is defined.
    pub const fn is_sound(&self) -> bool {
        let Self { op, number, count, fetches } = *self;
        op.is_defined(number)
            && (fetches || op.has_operand())
            && count as usize <= Self::count_max(op, number)
    }

    /// Bytes of memory it works on.
    pub const fn len(&self) -> usize {
        self.count as usize * self.number.size()
    }

    /// Whether it works on none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of its operands.
    pub const fn operand_len(&self) -> usize {
        if self.op.has_operand() { self.len() } else { 0 }
    }

    /// Bytes of its comparands.
    pub const fn comparand_len(&self) -> usize {
        if self.op.has_comparand() { self.len() } else { 0 }
    }

    /// The rights that it needs.
    pub const fn rights(&self) -> Rights {
        let writes = if self.op.has_operand() { Rights::WRITE } else { Rights::empty() };
        writes.union(if self.fetches { Rights::READ } else { Rights::empty() })
    }

    const fn word(&self) -> u64 {
        let Self { op, number, count, .. } = *self;
        op.code() as u64 | (number.code() as u64) << 8 | (count as u64) << 16
    }

    const fn of_word(word: u64, fetches: bool) -> Option<Self> {
        let (op, number) = (Combine::from_code(word as u8), Number::from_code((word >> 8) as u8));
        match (op, number) {
            (Some(op), Some(number)) if word >> 32 == 0 => {
                let read = Self { op, number, count: (word >> 16) as u16, fetches };
                if read.is_sound() { Some(read) } else { None }
            }
            _ => None,
        }
    }
}

impl RmaRecord {
    /// Whether a record of this tag is one of these, sound or not.
    #[inline(always)]
    pub const fn is_one(tag: u32) -> bool {
        matches!(tag & CODE_MASK, WRITE_HERE..=UPDATE)
    }

    /// Tag of the lane's record, its head, and how many words of that count.
    // spec: ENV-1
    pub const fn encode(&self) -> (u32, [u64; RMA_WORDS], usize) {
        let (tag, head, words) = self.lay_out();
        debug_assert!(Self::is_one(tag), "an RMA record is known by its tag");
        debug_assert!(
            !matches!(Self::parse(tag, head, words * 8), Ok((_, all)) if all != words),
            "the other side reads as many words as are said"
        );
        (tag, head, words)
    }

    #[inline(always)]
    const fn lay_out(&self) -> (u32, [u64; RMA_WORDS], usize) {
        match *self {
            Self::WriteHere { key, address, id, before, data } => {
                let (bit, last, words) = optional(data);
                (WRITE_HERE | bit, [key, address, id, before, last, 0], words)
            }
            Self::WritePart { key, address, len, before, count, place } => {
                (WRITE_PART, [key, address, len, before, count, place], 6)
            }
            Self::WritePartHere { key, address, len, before } => {
                (WRITE_PART_HERE, [key, address, len, before, 0, 0], 4)
            }
            Self::Read { key, address, id, len } => (READ, [key, address, id, len, 0, 0], 4),
            Self::Update { key, address, id, what, data } => {
                let (bit, last, words) = optional(data);
                let fetches = if what.fetches { FETCHES } else { 0 };
                (UPDATE | bit | fetches, [key, address, id, what.word(), last, 0], words)
            }
        }
    }

    /// Reads a record of `len` bytes: its contents, and the number of words of its head. Behind
    /// those come the bytes of a write, at most [`EAGER_MAX`], or an update's operands.
    ///
    /// # Errors
    /// [`Malformed`] if no initiator writes this record.
    // spec: ENV-1, ENV-2
    pub const fn parse(
        tag: u32,
        head: [u64; RMA_WORDS],
        len: usize,
    ) -> Result<(Self, usize), Malformed> {
        let [key, address, c, d, e, f] = head;
        let data = if tag & WITH_DATA != 0 { Some(e) } else { None };
        let (_, _, words) = optional(data);
        let (record, words, bits) = match tag & CODE_MASK {
            WRITE_HERE => {
                (Self::WriteHere { key, address, id: c, before: d, data }, words, WITH_DATA)
            }
            WRITE_PART => {
                let place = f;
                (Self::WritePart { key, address, len: c, before: d, count: e, place }, 6, 0)
            }
            WRITE_PART_HERE => (Self::WritePartHere { key, address, len: c, before: d }, 4, 0),
            READ => (Self::Read { key, address, id: c, len: d }, 4, 0),
            UPDATE => match Calculation::of_word(d, tag & FETCHES != 0) {
                Some(what) => {
                    let update = Self::Update { key, address, id: c, what, data };
                    (update, words, WITH_DATA | FETCHES)
                }
                None => return Err(Malformed),
            },
            _ => return Err(Malformed),
        };
        let is_known = tag & !(CODE_MASK | bits) == 0;
        match len.checked_sub(words * 8) {
            Some(bytes) if is_known && record.is_sound(bytes) => Ok((record, words)),
            _ => Err(Malformed),
        }
    }

    /// Whether `bytes` bytes may follow it.
    const fn is_sound(&self, bytes: usize) -> bool {
        match self {
            Self::WriteHere { .. } => bytes <= EAGER_MAX,
            Self::WritePart { len, before, count, .. } => {
                bytes == 0 && is_part(*len, *before, *count)
            }
            Self::WritePartHere { len, before, .. } => {
                bytes <= EAGER_MAX && is_part(*len, *before, bytes as u64)
            }
            Self::Read { .. } => bytes == 0,
            Self::Update { what, .. } => bytes == what.operand_len() + what.comparand_len(),
        }
    }
}

const fn optional(data: Option<u64>) -> (u32, u64, usize) {
    match data {
        Some(data) => (WITH_DATA, data, 5),
        None => (0, 0, 4),
    }
}

const fn is_part(len: u64, before: u64, count: u64) -> bool {
    count > 0 && before <= len && count <= len - before
}

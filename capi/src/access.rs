//! Values that C and the library hand to each other.
use crate::border::{In, Out};
use crate::error::{Failure, Outcome};
use ayre::memory::{Atomic, AtomicOp, Classes, Fetched, Strided, Width};
use ayre::{Notification, PeerId, PostOptions};
use std::ffi::c_int;
use std::time::Duration;

/// The number of a peer of a port; in a job, its rank.
pub type ayre_peer = u16;

/// Notify this port when the operation has completed.
pub const AYRE_REQUESTER: u32 = 1;
/// Notify the port where the data lands: the target of a put, this port after a get.
pub const AYRE_COMPLETER: u32 = 2;
/// Notify the port where data was read: the target of a get or atomic.
pub const AYRE_RESPONDER: u32 = 4;

/// The notifications that an operation raises. NULL stands for none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_options {
    /// `AYRE_REQUESTER`, `AYRE_COMPLETER` and `AYRE_RESPONDER`, or-ed. Those that do not apply to
    /// the operation are ignored.
    pub classes: u32,
    /// The tag of the notifications.
    pub tag: u32,
    /// Their value. A get or atomic has a result in its place.
    pub value: u64,
}

/// The kind of an operation, in notifications: a put.
pub const AYRE_PUT: u8 = 1;
/// A get.
pub const AYRE_GET: u8 = 2;
/// A put of a word.
pub const AYRE_PUT_WORD: u8 = 3;
/// A notification without data.
pub const AYRE_NOTIFY: u8 = 4;
/// An atomic without a result.
pub const AYRE_ATOMIC: u8 = 5;
/// An atomic with a result.
pub const AYRE_FETCH: u8 = 6;
/// A deposit message.
pub const AYRE_DEPOSIT: u8 = 7;
/// The reply of a deposit message.
pub const AYRE_REPLY: u8 = 8;

/// The condition of a compare-and-swap or fetch-compare-and-add did not hold: the status of its
/// notification. Nothing was written.
pub const AYRE_DECLINED: c_int = 15;

/// A notification.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_notification {
    /// The other port. After `AYRE_PEER_DIED` it is the peer that has died.
    pub source: ayre_peer,
    /// `AYRE_REQUESTER`, `AYRE_COMPLETER` or `AYRE_RESPONDER`.
    pub class_: u8,
    /// The kind of the operation: `AYRE_PUT` to `AYRE_REPLY`.
    pub operation: u8,
    /// `AYRE_OK`, `AYRE_DECLINED`, or a fault.
    pub status: i32,
    /// The tag of the operation.
    pub tag: u32,
    /// The value of the operation, or its result.
    pub value: u64,
}

/// An atomic adds the operand to the word.
pub const AYRE_ADD: u8 = 1;
/// Bitwise and.
pub const AYRE_AND: u8 = 2;
/// Bitwise or.
pub const AYRE_OR: u8 = 3;
/// Bitwise exclusive or.
pub const AYRE_XOR: u8 = 4;
/// The lesser of two unsigned numbers.
pub const AYRE_MIN_UNSIGNED: u8 = 5;
/// The greater of two unsigned numbers.
pub const AYRE_MAX_UNSIGNED: u8 = 6;
/// The lesser of two signed numbers.
pub const AYRE_MIN_SIGNED: u8 = 7;
/// The greater of two signed numbers.
pub const AYRE_MAX_SIGNED: u8 = 8;
/// The word becomes the operand.
pub const AYRE_SWAP: u8 = 9;
/// The word becomes the operand if it equals `compare`.
pub const AYRE_COMPARE_SWAP: u8 = 10;
/// Fetch-compare-and-add: the operand is added if the word, signed, is at most `compare`. The
/// result is the new word.
pub const AYRE_FCAA: u8 = 11;

/// An atomic on a word.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_atomic_op {
    /// Bytes of the word: 4 or 8.
    pub width: u8,
    /// Its effect: `AYRE_ADD` to `AYRE_FCAA`.
    pub op: u8,
    /// The operand.
    pub operand: u64,
    /// The other operand of `AYRE_COMPARE_SWAP` and `AYRE_FCAA`.
    pub compare: u64,
}

/// The result of an atomic.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_fetched {
    /// The word before, or after an `AYRE_FCAA`.
    pub value: u64,
    /// 1 if the word was changed, 0 if the condition did not hold.
    pub success: c_int,
}

/// Rows of a matrix, at both ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_rows {
    /// Bytes of a row.
    pub row_len: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes from the beginning of a row to that of the next one, in local memory.
    pub local_stride: u64,
    /// Bytes from the beginning of a row to that of the next one, in remote memory.
    pub remote_stride: u64,
}

/// Names an entry of a peer's table of capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ayre_key {
    /// The generation of the entry.
    pub generation: u32,
    /// The entry.
    pub slot: u16,
}

impl From<Fetched> for ayre_fetched {
    fn from(Fetched { value, success }: Fetched) -> Self {
        Self { value, success: success.into() }
    }
}

impl From<ayre::memory::Key> for ayre_key {
    fn from(key: ayre::memory::Key) -> Self {
        Self { generation: key.generation, slot: key.slot }
    }
}

impl In<ayre_rows> {
    /// The rows of an operation, which have to be there.
    pub(crate) fn rows(self) -> Outcome<Strided> {
        let ayre_rows { row_len, rows, local_stride, remote_stride } = *self.given()?;
        Ok(Strided { row_len, rows, local_stride, remote_stride })
    }
}

impl From<Notification> for ayre_notification {
    fn from(note: Notification) -> Self {
        let status = match note.status.fault() {
            Some(why) => crate::error::fault(why),
            None => note.status.code().into(),
        };
        Self {
            source: note.source.0,
            class_: note.class.bits(),
            operation: note.operation as u8,
            status,
            tag: note.tag,
            value: note.value,
        }
    }
}

impl In<ayre_options> {
    /// The options of an operation; none where C gives none.
    pub(crate) fn options(self) -> PostOptions {
        let Some(options) = self.get() else { return PostOptions::new() };
        options.options()
    }
}

impl ayre_options {
    pub(crate) fn options(&self) -> PostOptions {
        let classes = Classes::from_bits_truncate(self.classes as u8);
        PostOptions::new().notify(classes).tag(self.tag).value(self.value)
    }
}

impl ayre_atomic_op {
    pub(crate) fn atomic(&self) -> Outcome<Atomic> {
        let op = AtomicOp::from_code(self.op).ok_or(Failure::Argument("no such atomic"))?;
        let width = match self.width {
            4 => Width::W32,
            8 => Width::W64,
            _ => return Err(Failure::Argument("the width of an atomic is 4 or 8")),
        };
        Ok(Atomic { width, op, operand: self.operand, compare: self.compare })
    }
}

impl Out<ayre_peer> {
    /// Writes as many peers as there is room for. Returns how many there are.
    pub(crate) fn list(self, peers: impl Iterator<Item = PeerId>, room: usize) -> Outcome<u32> {
        let mut count = 0;
        for peer in peers {
            if (count as usize) < room {
                self.fill_at(count as usize, peer.0)?;
            }
            count += 1;
        }
        Ok(count)
    }
}

/// The time that a call may take: microseconds; for ever if they are negative.
pub(crate) fn timeout(microseconds: i64) -> Option<Duration> {
    u64::try_from(microseconds).ok().map(Duration::from_micros)
}

//! Notifications: three classes and one 128-bit record.
//!
//! ```text
//!   word 0   0         16      20       24          32                        64
//!            +---------+-------+--------+-----------+-------------------------+
//!            | source  | class | status | operation | tag                     |
//!            | 16      | 4     | 4      | 8         | 32                      |
//!            +---------+-------+--------+-----------+-------------------------+
//!   word 1   | value 64: the user's, a fetched result, or a notification put's payload |
//!            +------------------------------------------------------------------------+
//! ```
use crate::fault::{Fault, Status};
use crate::units::PeerId;
use core::num::NonZeroU64;

bitflags::bitflags! {
    /// Which notifications an operation raises. Classes that do not apply to it are ignored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Classes: u8 {
        /// At the initiator: the operation has ended there, and its local buffer may be reused.
        const REQUESTER = 1;
        /// At the end where the data lands: the target of a put, or the initiator of a get or
        /// atomic.
        const COMPLETER = 2;
        /// At the end where data was read: the target of a get or atomic.
        const RESPONDER = 4;
    }
}

/// The kind of an operation, as notifications and commands name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Copy local to remote.
    Put = 1,
    /// Copy remote to local.
    Get = 2,
    /// Eight bytes carried in the command.
    ImmediatePut = 3,
    /// No memory is written: the payload lands in the notification.
    NotificationPut = 4,
    /// Atomic without a result.
    Atomic = 5,
    /// Atomic with a result, FCAA among them.
    FetchAtomic = 6,
    /// A deposit message.
    Deposit = 7,
    /// The reply of a deposit message, deposited at its sender's end. No peer can say so.
    Reply = 8,
}

impl Operation {
    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Put),
            2 => Some(Self::Get),
            3 => Some(Self::ImmediatePut),
            4 => Some(Self::NotificationPut),
            5 => Some(Self::Atomic),
            6 => Some(Self::FetchAtomic),
            7 => Some(Self::Deposit),
            _ => None,
        }
    }

    /// Classes raised at the target when `asked` for (EXTOLL thesis, table of combinations).
    // spec: NOTI-6, NPUT-1
    #[inline(always)]
    pub const fn at_target(self, asked: Classes) -> Option<Classes> {
        match self {
            Self::NotificationPut | Self::Deposit => Some(Classes::COMPLETER),
            Self::Put | Self::ImmediatePut if asked.contains(Classes::COMPLETER) => {
                Some(Classes::COMPLETER)
            }
            Self::Get | Self::Atomic | Self::FetchAtomic if asked.contains(Classes::RESPONDER) => {
                Some(Classes::RESPONDER)
            }
            _ => None,
        }
    }

    /// Classes raised at the initiator when `asked` for.
    // spec: NOTI-6
    #[inline(always)]
    pub const fn at_initiator(self, asked: Classes) -> Classes {
        let completes_here =
            matches!(self, Self::Get | Self::Atomic | Self::FetchAtomic | Self::Reply);
        let mask = if completes_here {
            Classes::REQUESTER.union(Classes::COMPLETER)
        } else {
            Classes::REQUESTER
        };
        asked.intersection(mask)
    }
}

/// One record of a port's notification queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The other port: the initiator at the target, the target at the initiator.
    pub source: PeerId,
    /// Exactly one class.
    pub class: Classes,
    /// The status of the operation.
    pub status: Status,
    /// The kind of the operation.
    pub operation: Operation,
    /// The user's, as given to the operation.
    pub tag: u32,
    /// The user's, a fetched result, or a notification put's payload.
    pub value: u64,
}

impl Notification {
    /// The record.
    // spec: NOTI-1
    #[inline(always)]
    pub const fn encode(&self) -> [u64; 2] {
        debug_assert!(self.class.bits().count_ones() == 1, "a record has exactly one class");
        debug_assert!(self.status.code() < 16, "a status has four bits");
        let word = self.source.0 as u64
            | (self.class.bits() as u64) << 16
            | (self.status.code() as u64) << 20
            | (self.operation as u64) << 24
            | (self.tag as u64) << 32;
        [word, self.value]
    }

    /// Whether it says that an inlet has stopped at a message.
    // spec: DEP-19
    pub const fn is_held(&self) -> bool {
        let held = matches!(self.status, Status::Fault(Fault::Held));
        held && matches!(self.operation, Operation::Deposit)
            && self.class.bits() == Classes::COMPLETER.bits()
    }

    /// Whether a peer's operation has raised it rather than one of the port's own.
    #[inline]
    pub const fn is_raised_at_target(&self) -> bool {
        match self.operation.at_target(self.class) {
            Some(class) => class.bits() == self.class.bits(),
            None => false,
        }
    }

    /// Reads a record that a peer raised here by an operation of its own. It is total, and accepts
    /// only notifications that an operation can raise at its target. [`Packed::read_at_target`]
    /// does the same.
    pub const fn decode_at_target(words: [u64; 2], source: PeerId) -> Option<Self> {
        match Self::decode(words, source) {
            Some(note) => match (note.status, note.operation.at_target(note.class)) {
                (Status::Ok, Some(class)) if class.bits() == note.class.bits() => Some(note),
                (Status::Fault(Fault::Held), _) if note.is_held() => Some(note),
                _ => None,
            },
            None => None,
        }
    }

    /// Reads a record: total. The source is what the reader knows, not what the record
    /// claims.
    // spec: LANE-13
    pub const fn decode(words: [u64; 2], source: PeerId) -> Option<Self> {
        let bits = (words[0] >> 16) as u8 & 15;
        if bits.count_ones() != 1 || bits > Classes::RESPONDER.bits() {
            return None;
        }
        let Some(operation) = Operation::from_code((words[0] >> 24) as u8) else { return None };
        Some(Self {
            source,
            class: Classes::from_bits_truncate(bits),
            status: Status::from_code((words[0] >> 20) as u8 & 15),
            operation,
            tag: (words[0] >> 32) as u32,
            value: words[1],
        })
    }

    /// The record as a port keeps it.
    #[inline(always)]
    pub fn pack(&self) -> Packed {
        let [word, value] = self.encode();
        debug_assert!(word & MARK.get() == 0, "no class has the mark's bit");
        Packed { head: MARK | word, value }
    }
}

/// A notification that a port keeps for its program: one that was found good, in two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The record's first word, with a bit of the class set that no class has.
    head: NonZeroU64,
    value: u64,
}

const MARK: NonZeroU64 = NonZeroU64::new(1 << 19).unwrap();

/// By operation code: the class, with status Ok, that the operation raises at its target.
const RAISED_AT_TARGET: [u8; 8] = [0, 2, 4, 2, 2, 4, 4, 2];
/// The class and status that tell that an inlet has stopped at a deposit message.
const HELD: u8 = Classes::COMPLETER.bits() | Fault::Held.code() << 4;

/// By the low three bits of an operation's code.
const OPERATIONS: [Operation; 8] = [
    Operation::Reply,
    Operation::Put,
    Operation::Get,
    Operation::ImmediatePut,
    Operation::NotificationPut,
    Operation::Atomic,
    Operation::FetchAtomic,
    Operation::Deposit,
];

const _: () = {
    let mut code = 0;
    while code < 8 {
        let known = OPERATIONS[code];
        assert!(known as usize % 8 == code, "operations stand in the order of their codes");
        let raised = match Operation::from_code(code as u8) {
            Some(operation) => match operation.at_target(Classes::all()) {
                Some(class) => class.bits(),
                None => 0,
            },
            None => 0,
        };
        assert!(raised == RAISED_AT_TARGET[code], "an operation raises what the table says");
        code += 1;
    }
};

impl Packed {
    /// Reads a record that a peer raised here, as [`Notification::decode_at_target`] does, with few
    /// comparisons.
    #[inline(always)]
    pub fn read_at_target([word, value]: [u64; 2], source: PeerId) -> Option<Self> {
        let (code, raised) = ((word >> 24) as u8, (word >> 16) as u8);
        let expected = RAISED_AT_TARGET[usize::from(code & 7)];
        let is_held = code == Operation::Deposit as u8 && raised == HELD;
        if code > 7 || expected == 0 || raised != expected && !is_held {
            return None;
        }
        Some(Self { head: MARK | word & !0xffff | u64::from(source.0), value })
    }

    /// The other port.
    #[inline(always)]
    pub const fn source(self) -> PeerId {
        PeerId(self.head.get() as u16)
    }

    /// The record, field by field.
    #[inline(always)]
    pub const fn unpack(self) -> Notification {
        let word = self.head.get();
        Notification {
            source: self.source(),
            class: Classes::from_bits_truncate((word >> 16) as u8),
            status: Status::from_code((word >> 20) as u8 & 15),
            operation: OPERATIONS[(word >> 24) as usize & 7],
            tag: (word >> 32) as u32,
            value: self.value,
        }
    }
}

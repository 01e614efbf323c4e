//! The faults of operations, each with a code that travels.

/// The reason why an operation failed. A fault is a completion with this status; it harms nobody
/// else.
// spec: ERR-1
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fault {
    /// No such key at the target.
    UnknownKey = 1,
    /// The key was revoked.
    StaleKey = 2,
    /// The capability does not carry the right that the operation needs.
    Rights = 3,
    /// The range leaves the capability's range.
    Bounds = 4,
    /// The address of an atomic or immediate put is not a multiple of its width.
    Alignment = 5,
    /// The peer has left or died.
    PeerDead = 6,
    /// The command or record does not parse.
    Malformed = 7,
    /// The message or record is longer than the stated limit.
    TooLong = 8,
    /// The handle belongs to another port or to no peer of this one.
    ForeignHandle = 9,
    /// The peer was started anew: what it knew of its connection is gone.
    PeerRestarted = 10,
    /// The inlet has stopped at an earlier message, or had when this one was posted.
    Stopped = 11,
    /// The inlet has stopped at this message: what becomes of it is its owner's decision.
    Held = 12,
    /// The message asks for its owner's program.
    Exception = 13,
    /// The connection was refused: nothing was sent.
    Refused = 14,
    /// More waits at an endpoint than it has memory for. No notification has this status.
    NoMemory = 16,
    /// The program has interrupted the call, and the operation may still be done. No notification
    /// has this status.
    Interrupted = 17,
}

impl Fault {
    /// The fault of a code from a peer; unknown codes are [`Fault::Malformed`], so that this is
    /// total.
    pub const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::UnknownKey,
            2 => Self::StaleKey,
            3 => Self::Rights,
            4 => Self::Bounds,
            5 => Self::Alignment,
            6 => Self::PeerDead,
            8 => Self::TooLong,
            9 => Self::ForeignHandle,
            10 => Self::PeerRestarted,
            11 => Self::Stopped,
            12 => Self::Held,
            13 => Self::Exception,
            14 => Self::Refused,
            16 => Self::NoMemory,
            17 => Self::Interrupted,
            _ => Self::Malformed,
        }
    }

    /// The code that travels.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

const _: () = {
    let mut code = 0;
    while code < u8::MAX {
        let read = Fault::from_code(code);
        let is_known = !matches!(read, Fault::Malformed) || code == Fault::Malformed as u8;
        assert!(!is_known || read.code() == code, "a code is read as the fault that it is of");
        let is_status = !is_known || code < 15 || code >= Fault::NoMemory as u8;
        assert!(is_status, "a status has four bits, of which all ones mean declined");
        code += 1;
    }
};

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "the key names no memory that the target shares with this port",
            Self::StaleKey => "the target has revoked the key: accept a new one",
            Self::Rights => "the handle lacks a right that this operation needs",
            Self::Bounds => "the range exceeds the shared memory of the handle, or a local buffer",
            Self::Alignment => "an atomic must lie at a multiple of its width",
            Self::PeerDead => "the peer has left or died",
            Self::Malformed => {
                "it is empty or contradicts itself, or the peer sent invalid records"
            }
            Self::TooLong => {
                "longer than its limit: 1024 bytes for a message, `record_max` for a record of a \
                 queue, 64 MiB for the payload of an active message"
            }
            Self::ForeignHandle => {
                "no peer of this port, or a handle of another port or of a connection that was \
                 forgotten"
            }
            Self::PeerRestarted => "the peer was started anew",
            Self::Stopped => {
                "the inlet has stopped at an earlier message: its owner must let it run"
            }
            Self::Held => "the inlet has stopped at this message: its owner must let it run",
            Self::Exception => "the message asks for the program of the depot's owner",
            Self::Refused => "the connection was refused",
            Self::NoMemory => {
                "no memory for more unexpected messages: receive earlier, or raise AYRE_MEMORY"
            }
            Self::Interrupted => {
                "the program has interrupted the call: what was posted may still be done"
            }
        })
    }
}

/// Rust prints an error that `main` returns by its `Debug` text, so that one is the message.
impl core::fmt::Debug for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Fault {}

/// The outcome of an operation, as in the status field of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The operation succeeded.
    Ok,
    /// A compare-swap or FCAA whose condition did not hold: nothing was written. Not a fault.
    Declined,
    /// The operation failed; nothing was written unless it was cut and an earlier piece landed.
    Fault(Fault),
}

impl Status {
    /// Four bits that travel in a notification.
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Declined => 15,
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Inverse of [`Status::code`], total.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            15 => Self::Declined,
            code => Self::Fault(Fault::from_code(code)),
        }
    }

    /// The fault, if it is one.
    pub const fn fault(self) -> Option<Fault> {
        match self {
            Self::Fault(fault) => Some(fault),
            _ => None,
        }
    }
}

//! What calls return when they do not do what was asked.
use crate::wire::PortRange;
pub use ayre_proto::fault::{Fault, Status};
pub use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use rustix::io::Errno;

/// There is no room right now. Nothing has happened; the call may be repeated after progress.
// spec: POST-9
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Busy {
    /// The receiver has not taken earlier messages yet.
    #[error("the receiver's message lane is full")]
    MessageLaneFull,
    /// The target has not taken earlier commands or notifications yet.
    #[error("the target's request lane is full")]
    RequestLaneFull,
    /// This port's own notification queue has no room for the operation's notifications.
    #[error("the local notification queue is full")]
    NotificationsFull,
    /// As many operations as a connection holds are under way.
    #[error("too many operations under way")]
    TooManyOutstanding,
    /// The consumer has not taken earlier records yet.
    #[error("the remote queue is full")]
    QueueFull,
    /// The endpoint has not answered our call yet.
    #[error("the endpoint is being called")]
    Connecting,
    /// Somebody has been inside the depot for long, or its owner has frozen it.
    #[error("the depot is locked")]
    DepotLocked,
    /// A messenger keeps as much for its peers as it may.
    #[error("the messenger's overflow is full")]
    OverflowFull,
    /// As much waits for the peer by this channel as may.
    #[error("the channel's queue is full")]
    ChannelFull,
}

impl Busy {
    /// How many reasons there are.
    pub(crate) const COUNT: usize = Self::ChannelFull as usize + 1;
}

/// An operation was not posted.
// spec: POST-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PostError {
    /// No room; try again after progress.
    #[error("busy: {0}")]
    Busy(#[from] Busy),
    /// It can never succeed as asked.
    #[error("fault: {0}")]
    Fault(#[from] Fault),
}

impl PostError {
    /// Whether trying again later makes sense.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy(_))
    }
}

/// Nothing was received.
// spec: WAIT-2, MSG-8
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The next message or record is longer than the buffer. It stays where it is.
    #[error("the next record has {0} bytes, more than the buffer holds")]
    TooLong(usize),
    /// A wait ended because this peer died. Reported once for each peer.
    #[error("peer {} died", .0.index())]
    PeerDied(PeerId),
    /// A wait ended because its time was up.
    #[error("timed out")]
    TimedOut,
}

/// A port, connection or region could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A system call failed.
    #[error("{call}: {errno}")]
    Os {
        /// Which one.
        call: &'static str,
        /// How.
        errno: Errno,
    },
    /// A peer handed over a file that it could shrink, or that is shorter than it says.
    #[error("the peer's memory file is not sealed or too short")]
    UnsafeFile,
    /// A peer said something that no correct peer says.
    #[error("protocol: {0}")]
    Protocol(&'static str),
    /// The peer would not connect.
    #[error("{peer} refused the connection: {why}")]
    Refused {
        /// Which one: its rank, number, path or address.
        peer: String,
        /// What it said.
        why: Refusal,
    },
    /// This side would not connect.
    #[error("no connection with {peer}: {why}")]
    Rejected {
        /// With which one.
        peer: String,
        /// The reason.
        why: Refusal,
    },
    /// The two sides speak different versions of the formats.
    #[error(
        "{peer} speaks version {theirs} of the formats, and this process version {ours}: \
         both need the same release"
    )]
    Version {
        /// Which one.
        peer: String,
        /// Its version.
        theirs: u64,
        /// This side's.
        ours: u64,
    },
    /// The peer left before set-up ended.
    #[error("the peer left during set-up")]
    PeerLeft,
    /// The launcher's environment is missing or wrong.
    #[error("{0}")]
    Environment(String),
    /// There is not as much memory as is to be made present.
    #[error(
        "{wanted} bytes of memory are wanted, and {left} are left to this process, by the limits \
         of its control groups (memory.max) and by what the machine has: raise those, or use less"
    )]
    Memory {
        /// Bytes that were to be made present.
        wanted: u64,
        /// Bytes that can be had.
        left: u64,
    },
    /// No port of UDP is left of those that the user has chosen.
    #[error(
        "all UDP ports {0} are taken: choose more of them by AYRE_PORTS=first-last \
         (FI_AYRE_PORTS of MPI programs, --ports of `ayre run`)"
    )]
    PortsTaken(PortRange),
    /// All slots of the translation table, or all peer numbers, are taken.
    #[error("no free {0}")]
    Exhausted(&'static str),
    /// The request contradicts itself or a stated limit.
    #[error("invalid: {0}")]
    Invalid(&'static str),
    /// The operation names a key that is not alive.
    #[error("fault: {0}")]
    Fault(#[from] Fault),
    /// The time allowed for set-up was up.
    #[error("timed out waiting for {0}")]
    TimedOut(&'static str),
}

/// A peer that has no name yet.
const THE_PEER: &str = "the peer";

impl SetupError {
    /// The peer has refused the connection.
    pub(crate) fn refused(why: Refusal) -> Self {
        Self::Refused { peer: THE_PEER.to_owned(), why }
    }

    /// This side refuses it.
    pub(crate) fn rejected(why: Refusal) -> Self {
        Self::Rejected { peer: THE_PEER.to_owned(), why }
    }

    /// The peer speaks another version.
    pub(crate) fn version(theirs: u64, ours: u64) -> Self {
        Self::Version { peer: THE_PEER.to_owned(), theirs, ours }
    }

    /// The same, of a peer that has a name.
    pub(crate) fn of(mut self, name: impl Into<String>) -> Self {
        if let Self::Refused { peer, .. }
        | Self::Rejected { peer, .. }
        | Self::Version { peer, .. } = &mut self
        {
            *peer = name.into();
        }
        self
    }

    /// Wraps what a system call returned.
    pub(crate) fn os(call: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

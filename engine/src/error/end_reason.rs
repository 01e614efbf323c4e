//! Why nothing goes to a remote any more.
use super::tried::{AddressAttempt, CHECK};
use super::{Fault, Refusal, SetupError};
use rustix::io::Errno;
use std::time::Duration;

/// What the kernel says of a user that has no number in a user namespace.
const OVERFLOW: u32 = 65534;

/// Why an endpoint's connection with a remote has ended, or has not come about.
// spec: ENV-34
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// Its process has ended, or its endpoint was dropped before it was called.
    #[error("its process has ended")]
    Died,
    /// It has closed the connection.
    #[error("it has left")]
    Left,
    /// Its host or process was started anew.
    #[error("it was started anew")]
    Restarted,
    /// It said what no endpoint of this version says.
    #[error("it broke the formats")]
    Malformed,
    /// It refused the connection.
    #[error("it refused the connection: {0}")]
    Refused(Refusal),
    /// This side refused the connection.
    #[error("this process refused the connection: {0}")]
    Rejected(Refusal),
    /// The two sides speak different versions of the formats.
    #[error("it speaks version {theirs} of the formats, and this process version {ours}")]
    Version {
        /// That of the remote.
        theirs: u64,
        /// This side's.
        ours: u64,
    },
    /// It lives, but closes each connection without a word.
    #[error("it closed every connection without giving a reason, for {} s", .0.as_secs_f32())]
    HungUp(Duration),
    /// Another host, or what is on the way to it, did not answer the call.
    #[error(
        "it did not answer within {} s at {}; {CHECK}",
        .waited.as_secs_f32(),
        AddressAttempt::in_words(.tried)
    )]
    Unanswered {
        /// For how long.
        waited: Duration,
        /// Where it was called, and what came of that.
        tried: Vec<AddressAttempt>,
    },
    /// Another host did not answer the call, and somebody at its address has given a reason,
    /// without proof that it is the remote.
    #[error(
        "it did not answer within {} s at {}, and somebody there said: {why}",
        .waited.as_secs_f32(),
        AddressAttempt::in_words(.tried)
    )]
    Doubtful {
        /// For how long.
        waited: Duration,
        /// Where it was called, and what came of that.
        tried: Vec<AddressAttempt>,
        /// The last reason.
        why: Refusal,
    },
    /// Nothing was heard of another host.
    #[error("nothing was heard of it for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// Nothing was heard of it, and its host says that its port is closed.
    #[error("its process has ended: nothing is heard of it, and its UDP port is closed")]
    PortClosed,
    /// Another host is heard, but nothing that was sent there arrives.
    #[error(
        "nothing that was sent to it has arrived for {} s, though it is heard",
        .0.as_secs_f32()
    )]
    NoData(Duration),
    /// Another host does not know the connection, and says nothing else.
    #[error("it knows nothing of the connection any more")]
    Forgotten,
    /// It keeps as much of what this process has sent as it has memory for.
    #[error("it keeps as much that was sent to it as it has memory for (AYRE_MEMORY there)")]
    NoMemory,
    /// It has sent more than this process has memory for while no receive takes it.
    #[error("it sent more that no receive takes than there is memory for here (AYRE_MEMORY)")]
    Flooded,
    /// The system refused this process what a connection takes.
    #[error("{call}: {errno}")]
    Os {
        /// Which call.
        call: &'static str,
        /// How.
        errno: Errno,
    },
    /// Something else was in the way of the connection.
    #[error("{0}")]
    Other(String),
}

impl DisconnectReason {
    /// With which fault what is under way ends, and what is posted is refused.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Malformed => Fault::Malformed,
            Self::NoMemory | Self::Flooded => Fault::NoMemory,
            Self::Restarted => Fault::PeerRestarted,
            Self::Died | Self::Left | Self::Unanswered { .. } => Fault::PeerDead,
            Self::Silent(_) | Self::PortClosed | Self::NoData(_) | Self::Forgotten => {
                Fault::PeerDead
            }
            Self::Refused(_) | Self::Rejected(_) | Self::Version { .. } | Self::HungUp(_) => {
                Fault::Refused
            }
            Self::Doubtful { .. } | Self::Os { .. } | Self::Other(_) => Fault::Refused,
        }
    }

    /// What a person may do about it.
    // spec: ERR-10
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Refused(Refusal::User(OVERFLOW)) | Self::Rejected(Refusal::User(OVERFLOW)) => {
                "; the number stands for all users that have none in that user namespace: map both \
                 users there"
            }
            Self::Refused(Refusal::User(_)) | Self::Rejected(Refusal::User(_)) => {
                "; run both as the same user"
            }
            Self::Version { .. } => "; both need the same release",
            Self::Silent(_) => {
                "; it is stopped, or its host or the network between has failed (AYRE_DEAD_AFTER \
                 says how long is waited)"
            }
            Self::NoData(_) => "; what is on the way lets only other datagrams pass",
            Self::Forgotten => "; it has taken this process for dead",
            Self::Os { call, errno } => super::advice(call, *errno),
            _ => "",
        }
    }

    /// Why a connection has ended that has ended with this fault.
    pub(crate) fn of_fault(fault: Fault, has_left: bool) -> Self {
        match fault {
            Fault::Malformed => Self::Malformed,
            Fault::NoMemory => Self::NoMemory,
            Fault::PeerRestarted => Self::Restarted,
            _ if has_left => Self::Left,
            _ => Self::Died,
        }
    }
}

impl From<SetupError> for DisconnectReason {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Refused { why, .. } => Self::Refused(why),
            SetupError::Rejected { why, .. } => Self::Rejected(why),
            SetupError::Version { theirs, ours, .. } => Self::Version { theirs, ours },
            SetupError::PeerLeft { .. } => Self::Died,
            // Nobody listens where an endpoint was.
            SetupError::Os { call: "connect", errno: Errno::CONNREFUSED } => Self::Died,
            SetupError::Os { call, errno } => Self::Os { call, errno },
            other => Self::Other(other.to_string()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: ERR-10
    #[test]
    fn a_refusal_comes_with_advice() {
        let why = |user| DisconnectReason::Rejected(Refusal::User(user)).advice();
        assert!(why(1000).contains("same user") && why(OVERFLOW).contains("user namespace"));
        let waited = Duration::from_secs(12);
        let said = DisconnectReason::Unanswered { waited, tried: vec![AddressAttempt::sample(1)] };
        for word in ["12 s", "10.0.0.1:7", "no answer", "AYRE_NET", "AYRE_PORTS", "firewalls"] {
            assert!(said.to_string().contains(word), "{said}");
        }
    }
}

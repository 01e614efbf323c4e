//! Reasons for the end of a connection with a remote.
use super::tried::{AddressAttempt, CHECK};
use super::{Fault, Refusal, SetupError};
use rustix::io::Errno;
use std::time::Duration;

/// The user that the kernel reports for one that has no number in a user namespace.
const OVERFLOW: u32 = 65534;

/// The reason why an endpoint's connection with a remote has ended, or was never made.
// spec: ENV-34
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// The remote's process has ended, or its endpoint was dropped before this call reached it.
    #[error("its process has ended")]
    Died,
    /// The remote has closed the connection.
    #[error("it has left")]
    Left,
    /// The remote's host or process was started anew.
    #[error("it was started anew")]
    Restarted,
    /// The remote sent something that no endpoint of this version sends.
    #[error("it sent what no endpoint of this version sends")]
    Malformed,
    /// The remote refused the connection.
    #[error("it refused the connection: {0}")]
    Refused(Refusal),
    /// This side refused the connection.
    #[error("this process refused the connection: {0}")]
    Rejected(Refusal),
    /// The two sides speak different versions of the formats.
    #[error("it speaks version {theirs} of the formats, and this process version {ours}")]
    Version {
        /// The remote's version.
        theirs: u64,
        /// This side's version.
        ours: u64,
    },
    /// The remote lives, but closed each connection without a message, for this time.
    #[error("it closed every connection without giving a reason, for {} s", .0.as_secs_f32())]
    HungUp(Duration),
    /// Another host, or a device on the way to it, did not answer the call.
    #[error(
        "it did not answer within {} s at {}; {CHECK}",
        .waited.as_secs_f32(),
        AddressAttempt::in_words(.tried)
    )]
    Unanswered {
        /// The time that the call waited.
        waited: Duration,
        /// The addresses that were called, and the outcome at each.
        tried: Vec<AddressAttempt>,
    },
    /// Another host did not answer the call. Somebody at its address has given a reason, without
    /// proof that it is the remote.
    #[error(
        "it did not answer within {} s at {}, and somebody there said: {why}",
        .waited.as_secs_f32(),
        AddressAttempt::in_words(.tried)
    )]
    Doubtful {
        /// The time that the call waited.
        waited: Duration,
        /// The addresses that were called, and the outcome at each.
        tried: Vec<AddressAttempt>,
        /// The last reason given.
        why: Refusal,
    },
    /// Nothing was heard of another host for this time.
    #[error("nothing was heard of it for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// Nothing was heard of the remote, and its host reports that the port is closed.
    #[error("its process has ended: nothing is heard of it, and its UDP port is closed")]
    PortClosed,
    /// Another host is heard, but nothing that was sent to it arrives.
    #[error(
        "nothing that was sent to it has arrived for {} s, though it is heard",
        .0.as_secs_f32()
    )]
    NoData(Duration),
    /// Another host answers, but no longer knows the connection.
    #[error("it no longer knows the connection, as after a restart")]
    Forgotten,
    /// The remote keeps as much of this process's messages as it has memory for, and refused more.
    #[error(
        "it has no memory for more messages that wait for a receive: it must receive earlier, or \
         have a larger AYRE_MEMORY"
    )]
    NoMemory,
    /// The remote has sent more than this process has memory for, and no receive takes it.
    #[error(
        "it sent more messages without a receive than this process has memory for: receive \
         earlier, or raise AYRE_MEMORY"
    )]
    Flooded,
    /// The system refused this process a resource that a connection needs.
    #[error("{call}: {errno}")]
    Os {
        /// The system call that failed.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// Any other error of the connection.
    #[error("{0}")]
    Other(String),
}

impl DisconnectReason {
    /// The fault with which pending operations complete, and with which new ones are refused.
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

    /// A hint for people: what to check or change.
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

    /// The reason of a connection that has ended with this fault.
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
            // The listener has gone.
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

//! The status for each error of the engine. The log has its words.

use crate::abi::status::Status;
use ayre::error::{DisconnectReason, LinkMismatch};
use ayre::{Fault, SetupError};

/// The status of an operation that has failed.
pub fn of_fault(fault: Fault) -> Status {
    match fault {
        Fault::PeerDead | Fault::PeerRestarted => Status::CONNECTION_RESET,
        // Rights are the peer's refusal as well: UCP has no status for a lack of them.
        Fault::Refused | Fault::Rights => Status::REJECTED,
        Fault::ForeignHandle | Fault::Alignment => Status::INVALID_PARAM,
        Fault::UnknownKey | Fault::StaleKey => Status::NO_ELEM,
        Fault::Bounds => Status::OUT_OF_RANGE,
        Fault::TooLong => Status::EXCEEDS_LIMIT,
        Fault::NoMemory => Status::NO_MEMORY,
        _ => Status::IO_ERROR,
    }
}

/// The status of an endpoint whose peer has gone, or was never there.
pub fn of_reason(reason: &DisconnectReason) -> Status {
    match reason {
        DisconnectReason::Died
        | DisconnectReason::Left
        | DisconnectReason::Restarted
        | DisconnectReason::PortClosed
        | DisconnectReason::Forgotten => Status::CONNECTION_RESET,
        DisconnectReason::Unanswered { .. }
        | DisconnectReason::Doubtful { .. }
        | DisconnectReason::Silent(_)
        | DisconnectReason::NoData(_) => Status::ENDPOINT_TIMEOUT,
        DisconnectReason::Refused(_)
        | DisconnectReason::Rejected(_)
        | DisconnectReason::Version { .. }
        | DisconnectReason::HungUp(_) => Status::REJECTED,
        DisconnectReason::Os { .. } => Status::NO_RESOURCE,
        _ => of_fault(reason.fault()),
    }
}

/// The status of a call that could not open or find something.
pub fn of_setup(error: &SetupError) -> Status {
    match error {
        SetupError::Os { .. } | SetupError::Exhausted(_) => Status::NO_RESOURCE,
        SetupError::Memory { .. } | SetupError::MemoryFile { .. } => Status::NO_MEMORY,
        SetupError::Environment(_) | SetupError::Invalid(_) => Status::INVALID_PARAM,
        SetupError::NoLink { why: LinkMismatch::NotOpen | LinkMismatch::NoNet, .. } => {
            Status::UNREACHABLE
        }
        SetupError::NoLink { .. }
        | SetupError::Version { .. }
        | SetupError::Refused { .. }
        | SetupError::Rejected { .. } => Status::REJECTED,
        SetupError::PortsTaken(_) | SetupError::InUse { .. } => Status::BUSY,
        SetupError::TimedOut(_) => Status::TIMED_OUT,
        SetupError::PeerLeft { .. } => Status::CONNECTION_RESET,
        SetupError::Fault(fault) => of_fault(*fault),
        _ => Status::IO_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ayre::error::Refusal;
    use rustix::io::Errno;
    use std::time::Duration;

    /// UCXX tells a peer that has gone from one that is silent by these two.
    #[test]
    fn peers_that_have_gone_are_told_from_silent_ones() {
        let silence = Duration::from_secs(12);
        for reason in [DisconnectReason::Died, DisconnectReason::Left, DisconnectReason::Restarted]
        {
            assert_eq!(of_reason(&reason), Status::CONNECTION_RESET, "{reason:?}");
        }
        let unanswered = DisconnectReason::Unanswered { waited: silence, tried: vec![] };
        for reason in [unanswered, DisconnectReason::Silent(silence)] {
            assert_eq!(of_reason(&reason), Status::ENDPOINT_TIMEOUT, "{reason:?}");
        }
    }

    #[test]
    fn each_kind_of_error_has_its_status() {
        let refused = DisconnectReason::Refused(Refusal::User(4001));
        assert_eq!(of_reason(&refused), Status::REJECTED);
        assert_eq!(of_reason(&DisconnectReason::NoMemory), Status::NO_MEMORY);
        assert_eq!(of_reason(&DisconnectReason::Malformed), Status::IO_ERROR);
        let no_link = |why| SetupError::NoLink { peer: "the endpoint at 10.0.0.1".into(), why };
        for (error, status) in [
            (SetupError::Os { call: "socket", errno: Errno::MFILE }, Status::NO_RESOURCE),
            (SetupError::PortsTaken("7000-7001".parse().unwrap()), Status::BUSY),
            (no_link(LinkMismatch::NotOpen), Status::UNREACHABLE),
            (no_link(LinkMismatch::Key), Status::REJECTED),
            (SetupError::Fault(Fault::Bounds), Status::OUT_OF_RANGE),
        ] {
            assert_eq!(of_setup(&error), status, "{error}");
        }
    }
}

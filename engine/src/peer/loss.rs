//! Why nothing is heard of a peer any more.
use crate::error::DisconnectReason;
use std::time::Duration;

/// Why a link has ended that neither side has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing was heard for so long.
    Silent(Duration),
    /// Nothing was heard, and the other side's port is closed.
    PortClosed,
    /// The other side was heard, and nothing that was sent has arrived for so long.
    NoData(Duration),
    /// The other side does not know the link.
    Forgotten,
}

impl From<Loss> for DisconnectReason {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Silent(time) => Self::Silent(time),
            Loss::PortClosed => Self::PortClosed,
            Loss::NoData(time) => Self::NoData(time),
            Loss::Forgotten => Self::Forgotten,
        }
    }
}

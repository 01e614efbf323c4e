//! Operations between two nodes.

/// An operation between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A short message.
    Velo,
    /// A notification with a payload in it.
    NotificationPut,
    /// A payload of 8 bytes in the command, written to memory.
    ImmediatePut {
        /// Whether the target is notified.
        notified: bool,
    },
    /// Memory to memory.
    Put {
        /// Whether the target is notified.
        notified: bool,
    },
    /// From memory of the target, notified at the initiator.
    Get,
    /// An atomic operation in the target's lock space, which needs no translation.
    Lock,
}

impl Operation {
    /// Whether a program sees the end by a notification or a message, not by the data alone.
    pub(super) fn is_notified(self) -> bool {
        !matches!(self, Self::ImmediatePut { notified: false } | Self::Put { notified: false })
    }

    /// Whether data goes to an address, which the completer has to translate.
    pub(super) fn writes_data(self) -> bool {
        matches!(self, Self::ImmediatePut { .. } | Self::Put { .. } | Self::Get)
    }

    /// Whether the target answers with a packet.
    pub(super) fn is_answered(self) -> bool {
        matches!(self, Self::Get | Self::Lock)
    }
}

//! Handles of groups and of pending collectives, and the errors of collectives.
use crate::error::debug_is_display;
use ayre_proto::collective::call::CallMismatch;
use ayre_proto::units::PeerId;
use std::marker::PhantomData;

/// A handle of a group of processes that do collectives together. It is valid at the messenger that
/// has made it.
// spec: COLL-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    pub(super) index: usize,
}

/// Why a collective was not done.
// spec: COLL-9, COLL-10
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A member has died.
    #[error("peer {} died", .0.index())]
    PeerDied(PeerId),
    /// A member does another collective, or the same one with another number of bytes.
    #[error("members call different collectives: peer {} does {difference}", .peer.index())]
    Mismatch {
        /// The member.
        peer: PeerId,
        /// The collective of that member beside the one of this member.
        difference: CallMismatch,
    },
    /// Another member has given the group up, because of one of the errors above.
    #[error("peer {} has given the group up; its own error says why", .0.index())]
    GivenUp(PeerId),
    /// The program has interrupted a collective, and this member has given the group up.
    #[error("the program has interrupted a collective: its group does no further one")]
    Interrupted,
    /// The arguments contradict each other, or the group.
    #[error("invalid: {0}")]
    Invalid(&'static str),
}

debug_is_display!(GroupError);

/// A handle of another messenger.
pub(super) const NO_GROUP: GroupError =
    GroupError::Invalid("the group belongs to another messenger");

/// A collective on values of a type, which [`Collectives::start`](super::Collectives::start) has
/// begun. [`Collectives::finish`](super::Collectives::finish) waits for it.
#[must_use = "what was begun must be finished"]
#[derive(Debug)]
pub struct PendingCollective<T> {
    pub(super) group: Group,
    pub(super) number: u64,
    pub(super) values: PhantomData<T>,
}

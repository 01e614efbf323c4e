//! What programs hold of groups and of collectives, and why one is not done.
use crate::error::debug_is_display;
use ayre_proto::collective::call::CallMismatch;
use ayre_proto::units::PeerId;
use std::marker::PhantomData;

/// A group of processes that act together, at one of its messengers.
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
    /// A member does something else, or with another number of bytes.
    #[error("peer {} does {difference}", .peer.index())]
    Mismatch {
        /// Which one.
        peer: PeerId,
        /// What it does, and what this member does.
        difference: CallMismatch,
    },
    /// A member has seen one of the errors above, and has told us.
    #[error("peer {} has given the group up; its own error says why", .0.index())]
    GivenUp(PeerId),
    /// What was asked for contradicts itself.
    #[error("invalid: {0}")]
    Invalid(&'static str),
}

debug_is_display!(GroupError);

/// A handle of another messenger.
pub(super) const NO_GROUP: GroupError = GroupError::Invalid("a group of this messenger");

/// A collective that was begun, on values of a type: to be
/// [finished](super::Collectives::finish).
#[must_use = "what was begun must be finished"]
#[derive(Debug)]
pub struct PendingCollective<T> {
    pub(super) group: Group,
    pub(super) number: u64,
    pub(super) values: PhantomData<T>,
}

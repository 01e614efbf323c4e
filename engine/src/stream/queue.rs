//! Items of streams that wait, and which peers are looked at.
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// Items of a stream.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// They wait for its stage.
    pub(super) arrived: VecDeque<Vec<u8>>,
    /// They wait for room at the next one.
    pub(super) emitted: VecDeque<Vec<u8>>,
}

/// Whether a peer is one to be looked at, by its number.
pub(super) fn meet(met: &mut Vec<bool>, peer: PeerId, is_here: bool) {
    if peer.index() >= met.len() {
        met.resize(peer.index() + 1, false);
    }
    met[peer.index()] = is_here;
}

//! Waiting items of streams, and the peers that streams have met.
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// The waiting items of a stream.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Items that wait for the stage here.
    pub(super) arrived: VecDeque<Vec<u8>>,
    /// Items that wait for room at the next stage.
    pub(super) emitted: VecDeque<Vec<u8>>,
}

/// Notes whether streams involve a peer, by its number.
pub(super) fn meet(met: &mut Vec<bool>, peer: PeerId, is_here: bool) {
    if peer.index() >= met.len() {
        met.resize(peer.index() + 1, false);
    }
    met[peer.index()] = is_here;
}

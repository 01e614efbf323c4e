//! Messages on their way out.
use super::transport::push;
use super::{OutgoingMessage, RawEndpoint, RemoteId};
use crate::error::PostError;
use crate::mem::span::Spans;
use ayre_proto::endpoint::{SHORT_MAX, Sent, Transport};
use ayre_proto::envelope::{AHEAD_MIN, Envelope};
use ayre_proto::units::PeerId;

impl RawEndpoint {
    /// Longest message that leaves at once, its memory included: nothing of it is needed when
    /// [`RawEndpoint::send`] returns.
    pub const fn inject_max() -> usize {
        AHEAD_MIN
    }

    /// Sends a message. Messages to one endpoint arrive in the order in which they were sent.
    ///
    /// # Errors
    /// [`PostError::Busy`], without effect, where there is no room now, or the endpoint has yet to
    /// answer our call; the call may succeed after progress.
    /// [`Fault::PeerDead`](crate::Fault::PeerDead) where the endpoint has gone.
    /// [`Fault::ForeignHandle`](crate::Fault::ForeignHandle) for an unknown endpoint.
    /// [`Fault::NoMemory`](crate::Fault::NoMemory) where one of the two endpoints has no memory
    /// left for it.
    // spec: ENV-3, ENV-4, ENV-39
    #[inline]
    pub fn send(&mut self, to: RemoteId, message: &OutgoingMessage) -> Result<Sent, PostError> {
        let OutgoingMessage { tag, data, ref bytes, delivered, .. } = *message;
        if !delivered && let Some(sent) = self.send_at_once(to, (tag, data), bytes) {
            return sent.map(|()| Sent::Completed);
        }
        self.send_any(to, message)
    }

    /// Sends a short message of one span that need not be acknowledged, to a connected endpoint:
    /// the most frequent case. None where the message is another one, which [`RawEndpoint::send`]
    /// takes.
    ///
    /// # Errors
    /// As [`RawEndpoint::send`].
    // spec: ENV-3, ENV-4
    #[inline(always)]
    pub fn send_at_once(
        &mut self,
        to: RemoteId,
        (tag, data): (Option<u64>, Option<u64>),
        bytes: &Spans,
    ) -> Option<Result<(), PostError>> {
        let peer = self.remotes.way(to)?;
        let bytes = bytes.whole().filter(|bytes| bytes.len() <= SHORT_MAX)?;
        let (tag, [a, b]) = Envelope { tag, data }.short();
        // Apart from all else that the protocol works with: nothing of that is needed.
        Some(match push(&mut self.port, peer, (tag, [0, a, b]), bytes) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.no_room(peer)),
            Err(why) => Err(why.into()),
        })
    }

    #[cold]
    fn no_room(&mut self, peer: PeerId) -> PostError {
        self.parts().1.no_room(peer)
    }

    #[inline(never)]
    fn send_any(&mut self, to: RemoteId, message: &OutgoingMessage) -> Result<Sent, PostError> {
        let peer = self.way_to(to)?;
        let (protocol, mut around) = self.parts();
        protocol.send(&mut around, (to, peer), message)
    }

    /// Whether all has ended that was posted to a remote: messages that had to be answered, writes,
    /// reads and updates.
    pub fn has_completed_all(&self, to: RemoteId) -> bool {
        !self.remotes.knows(to) || self.protocol.has_completed_all(to)
    }

    /// Whether all writes, reads and updates have ended that were posted to a remote.
    #[inline]
    pub fn has_completed_rma(&self, to: RemoteId) -> bool {
        !self.remotes.knows(to) || self.protocol.has_completed_rma(to)
    }

    /// Operations that were posted and whose end was not told yet.
    pub fn under_way(&self) -> usize {
        self.protocol.under_way()
    }
}

//! The context of a running handler.
use super::handler::Handler;
use super::outgoing::Outgoing;
use crate::error::PostError;
use ayre_proto::units::PeerId;

/// The context of a running handler: the sender of its message, and the methods by which it sends.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) out: &'a mut Outgoing,
    pub(crate) source: PeerId,
}

impl Call<'_> {
    /// Returns the sender of the message.
    pub fn source(&self) -> PeerId {
        self.source
    }

    /// Sends a message to the sender of this one. Never blocks.
    ///
    /// # Errors
    /// The errors of [`Call::send`].
    // spec: AM-8
    #[inline]
    pub fn reply<const N: usize>(
        &mut self,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.out.send(self.source, handler, arguments, payload)
    }

    /// Sends a message to any peer. Never blocks: a message without room is kept and sent later, in
    /// order.
    ///
    /// # Errors
    /// [`Busy::OverflowFull`](crate::Busy::OverflowFull) if kept messages have reached
    /// [`MessengerOptions::overflow`](super::MessengerOptions::overflow), with nothing done;
    /// [`Fault::TooLong`](crate::Fault::TooLong); [`Fault::PeerDead`](crate::Fault::PeerDead);
    /// [`Fault::ForeignHandle`](crate::Fault::ForeignHandle) for an unknown peer.
    // spec: AM-8
    #[inline]
    pub fn send<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.out.send(to, handler, arguments, payload)
    }
}

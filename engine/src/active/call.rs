//! What a handler is run with.
use super::handler::Handler;
use super::outgoing::Outgoing;
use crate::error::PostError;
use ayre_proto::units::PeerId;

/// Who has called a handler, and the way out while it runs.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) out: &'a mut Outgoing,
    pub(crate) source: PeerId,
}

impl Call<'_> {
    /// Who has sent the message.
    pub fn source(&self) -> PeerId {
        self.source
    }

    /// Sends a message to who has sent this one.
    ///
    /// # Errors
    /// As [`Call::send`].
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

    /// Sends a message to anyone. Never blocks: what finds no room is kept, and goes out in order.
    ///
    /// # Errors
    /// [`Busy`](crate::Busy) (OverflowFull) beyond the messenger's limit; a fault
    /// ([`TooLong`](crate::Fault::TooLong), [`PeerDead`](crate::Fault::PeerDead), or
    /// [`ForeignHandle`](crate::Fault::ForeignHandle) for an unknown peer).
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

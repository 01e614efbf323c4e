//! Messages that are read where their sender has them: one copy.
//!
//! ```text
//!   sender                               receiver
//!     asks: id, length, address ----->     a receive matches; what has been faster so far?
//!     leaves the bytes as they are         to read: it does, piece by piece
//!     until it hears go       <-----       is the sender still there? go of 0 bytes
//!                             <-----       the ring, or where reading is refused: go of all
//! ```
use super::Protocol;
use super::completions::Completion;
use super::transport::{Memory, Transport};

/// Bytes that are read before anything else has its turn.
const PIECE_MAX: usize = 1 << 20;

impl<M: Memory> Protocol<M> {
    /// Reads the next piece of a message: whether it has, and whether nothing is left to be read.
    // spec: ENV-18, INJ-6
    pub(super) fn fetch(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        key: usize,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let Self { transfers, receives, .. } = self;
        let Some(transfer) = transfers.get_mut(key) else { return (false, true) };
        let source = transfer.origin().source;
        let (max, at) = (PIECE_MAX.min(transfer.left() as usize), transfer.at());
        let piece = receives[transfer.receive()].memory().piece_mut(at, max);
        if !transport.read_remote(source, transfer.address(), piece) {
            let choice = transfer.ask_again();
            transport.chosen(choice, transfer.len(), false);
            self.send_cts(transport, key);
            return (true, true);
        }
        debug_assert!((1..=PIECE_MAX).contains(&piece.len()), "a piece has bytes");
        if !transfer.take(piece.len() as u64) {
            return (true, false);
        }
        // A sender that has left may have used the memory for other things: then all that comes of
        // it ends with its death.
        if transport.is_still_connected(source) {
            let transfer = self.transfers.finish(key);
            transport.chosen(transfer.choice(), transfer.len(), true);
            let completion = self.complete_without_more(transport, &transfer);
            tell(completion);
        }
        (true, true)
    }
}

//! Messages that are read where their sender has them: one copy, by the kernel.
//!
//! ```text
//!   sender                               receiver
//!     asks: id, length, address ----->     a receive matches; what has been faster so far?
//!     leaves the bytes as they are         the kernel: reads, piece by piece
//!     until it hears go       <-----       is the sender still there? go of 0 bytes
//!                             <-----       the ring, or where the kernel refuses: go of all
//! ```
use super::ends::End;
use super::transfers::Transfer;
use super::{Endpoint, RemoteId};
use crate::mem::span::Spans;
use crate::tuning::Use;
use ayre_proto::units::PeerId;

/// Bytes that are read before anything else has its turn.
const PIECE_MAX: usize = 1 << 20;

impl Endpoint {
    /// What an ask says of where a message lies: 0 where nobody could read it there.
    pub(super) fn address_of(&self, peer: PeerId, bytes: &Spans) -> u64 {
        let connection = self.port.connection(peer);
        let is_near = connection.is_ok_and(|connection| connection.control().socket().is_some());
        let whole = bytes.whole().filter(|_| is_near);
        whole.map_or(0, |whole| whole.as_ptr().addr() as u64)
    }

    /// By which method a message is to come.
    // spec: INJ-2, INJ-8
    pub(super) fn choose(&mut self, transfer: &mut Transfer) {
        let (source, len) = (transfer.origin().source, transfer.len());
        if transfer.there().address == 0 || !self.is_readable(source) {
            return;
        }
        let tuning = self.port.config.tuning.as_ref();
        let fixed = tuning.filter(|tuning| !tuning.steps(Use::Receive).is_empty());
        let fixed = fixed.map(|tuning| tuning.method(Use::Receive, len));
        self.transfers.choose(transfer, fixed, &self.port.clock);
    }

    /// Whether the kernel lets us read a remote's memory, as far as is known.
    fn is_readable(&mut self, source: RemoteId) -> bool {
        let Self { remotes, port, .. } = self;
        let Some(remote) = remotes.get_mut(source) else { return false };
        remote.is_readable(|peer| port.connection(peer?).ok()?.process())
    }

    /// Reads the next piece of a message: whether it has, and whether nothing is left to be read.
    // spec: ENV-18, INJ-6
    pub(super) fn fetch(&mut self, key: usize, tell: &mut impl FnMut(End)) -> (bool, bool) {
        let Self { transfers, receives, remotes, .. } = self;
        let Some(transfer) = transfers.get_mut(key) else { return (false, true) };
        let (max, at) = (PIECE_MAX.min(transfer.left() as usize), transfer.at());
        let piece = receives[transfer.receive()].memory().piece_mut(at, max);
        if !remotes[transfer.origin().source].read(transfer.address(), piece) {
            transfers.ask_again(key);
            self.ask_for(key);
            return (true, true);
        }
        debug_assert!((1..=PIECE_MAX).contains(&piece.len()), "a piece has bytes");
        if !transfer.take(piece.len() as u64) {
            return (true, false);
        }
        // A sender that has left may have used the memory for other things.
        self.port.service_control();
        if self.is_there(key) {
            let transfer = self.transfers.finish(key, &self.port.clock);
            let end = self.has_all(&transfer);
            tell(end);
        }
        (true, true)
    }

    /// Whether the sender of what is coming is connected. If not, all of it ends with its death.
    fn is_there(&self, key: usize) -> bool {
        let source = self.transfers.get(key).map(|transfer| transfer.origin().source);
        let peer = source.and_then(|source| self.remotes.get(source)?.peer());
        peer.is_some_and(|peer| self.port.is_alive(peer))
    }
}

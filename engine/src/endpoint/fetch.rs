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
use crate::tuning::{Method, Use};
use ayre_proto::units::PeerId;
use std::time::Instant;

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
        let (source, len) = (transfer.origin.source, transfer.len);
        if transfer.there.address == 0 || !self.is_readable(source) {
            return;
        }
        let tuning = self.port.config.tuning.as_ref();
        let fixed = tuning.filter(|tuning| !tuning.steps(Use::Receive).is_empty());
        transfer.by = match fixed {
            Some(tuning) => tuning.method(Use::Receive, len),
            None => {
                transfer.since = Some(Instant::now());
                self.trials.choose(len)
            }
        };
    }

    /// Whether the kernel lets us read a remote's memory, as far as is known.
    fn is_readable(&mut self, source: RemoteId) -> bool {
        let Some(remote) = self.remotes.get_mut(source.index()) else { return false };
        if remote.process.is_none() {
            let connection = remote.peer.and_then(|peer| self.port.connection(peer).ok());
            remote.process = Some(connection.and_then(|connection| connection.process()));
        }
        matches!(remote.process, Some(Some(_)))
    }

    /// Reads the next piece of a message: whether it has, and whether nothing is left to be read.
    // spec: ENV-18, INJ-6
    pub(super) fn fetch(&mut self, key: usize, tell: &mut impl FnMut(End)) -> (bool, bool) {
        let Self { transfers, receives, remotes, trials, .. } = self;
        let Some(transfer) = transfers.get_mut(key) else { return (false, true) };
        let source = transfer.origin.source.index();
        let max = PIECE_MAX.min((transfer.len - transfer.got) as usize);
        let at = (transfer.offset + transfer.got) as usize;
        let piece = receives[transfer.receive].into.piece_mut(at, max);
        let address = transfer.there.address.wrapping_add(transfer.got);
        let process = remotes[source].process.as_ref().and_then(Option::as_ref);
        if !process.is_some_and(|process| process.read(address, piece)) {
            remotes[source].process = Some(None);
            transfer.since.iter().for_each(|_| trials.drop_one(transfer.len));
            (transfer.by, transfer.got, transfer.since) = (Method::Pipeline, 0, None);
            self.ask_for(key);
            return (true, true);
        }
        transfer.got += piece.len() as u64;
        if transfer.got < transfer.len {
            return (true, false);
        }
        // A sender that has left may have used the memory for other things.
        self.port.service_control();
        if self.is_there(key) {
            let transfer = self.transfers.remove(key);
            self.note(&transfer);
            let end = self.has_all(&transfer);
            tell(end);
        }
        (true, true)
    }

    /// Whether the sender of what is coming is connected. If not, all of it ends with its death.
    fn is_there(&self, key: usize) -> bool {
        let source = self.transfers[key].origin.source.index();
        let peer = self.remotes.get(source).and_then(|remote| remote.peer);
        peer.is_some_and(|peer| self.port.is_alive(peer))
    }

    /// How long a message has taken: since it was wanted, or the last one before it was here.
    pub(super) fn note(&mut self, transfer: &Transfer) {
        let Some(since) = transfer.since else { return };
        let now = Instant::now();
        let before = self.last_timed.replace(now);
        let since = before.map_or(since, |before| before.max(since));
        self.trials.note(transfer.by, transfer.len, now - since);
    }
}

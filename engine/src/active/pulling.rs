//! Long messages that the receiver reads where they lie: one copy, by the kernel.
//!
//! ```text
//!   sender                                receiver
//!     pull: id, length, address ------->    process_vm_readv; is the sender still there?
//!     keeps the bytes as they are           yes: pulled 1, handler
//!     until it is told       <----------    no, or refused: pulled 0, and by the landing then
//! ```
use super::outgoing::Outgoing;
use super::peers::Payload;
use crate::error::PostError;
use crate::mem::inject::Process;
use crate::settings::choice::Mode;
use ayre_proto::active::record::Record;
use ayre_proto::units::PeerId;

impl Outgoing {
    /// Tells a peer whether its message was read, if it is to be told and has room.
    // spec: AM-14
    pub(super) fn tell_pulled(&mut self, to: PeerId) {
        let Some(is_whole) = self.peer(to).inward.pulled_due() else { return };
        let (tag, bytes) = Record::Pulled(is_whole).encode();
        match self.port.send(to, tag, &bytes) {
            Err(PostError::Busy(_)) => self.stir(),
            _ => self.peer(to).inward.told_pulled(),
        }
    }

    /// Reads a message where its sender has it. False where that cannot be: then what was read may
    /// be anything.
    // spec: INJ-6
    pub(super) fn read_at(&mut self, source: PeerId, address: u64, len: usize) -> bool {
        if self.process_of(source).is_none() {
            return false;
        }
        let payload = &mut self.peer(source).coming.payload;
        let mut payload = std::mem::replace(payload, Payload::new(64));
        if payload.len() < len {
            // Not grown: of what lies there nothing is to be kept.
            payload.clear();
            payload.resize(len, 0);
        }
        let process = self.process_of(source);
        let is_read = process.is_some_and(|process| process.read(address, &mut payload[..len]));
        if is_read {
            let coming = &mut self.peer(source).coming;
            (coming.payload, coming.len) = (payload, len);
        }
        // A sender that has left may have used the memory for other things.
        self.port.progress();
        is_read && self.port.is_alive(source)
    }

    /// What peers may be reading stays where it is for good: nobody else will wait for them.
    // spec: INJ-7
    pub(super) fn leave_to_peers(&mut self) {
        for peer in self.peers.iter_mut().filter(|peer| peer.outward.is_being_read()) {
            std::mem::forget(peer.kept.pop_front());
        }
    }

    /// The process that a peer on a direct connection is.
    fn process_of(&mut self, peer: PeerId) -> Option<&Process> {
        if self.peer(peer).process.is_none() {
            let connection = self.port.connection(peer).ok()?;
            let is_direct = connection.mode() == Mode::Direct;
            let process = if is_direct { connection.process() } else { None };
            self.peer(peer).process = Some(process);
        }
        self.peer(peer).process.as_ref()?.as_ref()
    }
}

//! Long messages that the receiver reads from the sender's memory, with one copy by the kernel.
//!
//! ```text
//!   sender                               receiver
//!     pull: id, length, address ------>    what has been faster so far?
//!     puts it into the landing  <------    the landing: pulled 2
//!                                          the kernel: reads; is the sender still there?
//!     keeps the bytes as they are          yes: pulled 1, handler
//!     until it is told       <---------    no, or refused: pulled 0, and by the landing for good
//! ```
use super::outgoing::Outgoing;
use super::peers::Payload;
use super::way::say;
use crate::error::PostError;
use crate::mem::inject::Process;
use crate::settings::choice::Mode;
use crate::tuning::{Method, Use};
use ayre_proto::active::long::UNASKED_MAX;
use ayre_proto::active::record::{Pulled, Record};
use ayre_proto::units::PeerId;

impl Outgoing {
    /// Tells a peer whether its message was read, if that is due and there is room.
    // spec: AM-14
    pub(super) fn tell_pulled(&mut self, to: PeerId) {
        let Some(pulled) = self.peer(to).inward.pulled_due() else { return };
        match say(&mut self.port, to, &Record::Pulled(pulled)) {
            Err(PostError::Busy(_)) => self.stir(),
            _ => self.peer(to).inward.told_pulled(),
        }
    }

    /// Reads a message from its sender's memory, or asks for it by the landing if that is faster.
    // spec: INJ-2, INJ-7, INJ-8
    pub(super) fn pull(&mut self, source: PeerId, address: u64, len: usize) -> Pulled {
        if self.process_of(source).is_none() {
            return Pulled::Never;
        }
        // The message before this one does not come by the landing any more.
        self.comes(source, 0);
        debug_assert!(self.peer(source).chosen.is_none(), "one of a peer comes at a time");
        let Self { port, choices, .. } = self;
        let tuning = port.config.tuning.as_deref();
        let is_said = tuning.is_some_and(|tuning| tuning.said(Use::Message, len as u64).is_some());
        // Short messages are not timed.
        let chosen = (is_said || len > UNASKED_MAX)
            .then(|| choices.choose(Use::Message, len as u64, tuning, || port.clock.now()));
        if chosen.is_some_and(|chosen| chosen.by != Method::Kernel) {
            self.peer(source).chosen = chosen;
            return Pulled::NotNow;
        }
        let is_read = self.read_at(source, address, len);
        let Self { port, choices, .. } = self;
        match chosen {
            Some(chosen) if is_read => choices.finish(chosen, || port.clock.now()),
            Some(chosen) => choices.drop_one(chosen),
            None => {}
        }
        if is_read { Pulled::Whole } else { Pulled::Never }
    }

    /// Notes that a message of `len` bytes comes by the landing.
    // spec: INJ-8
    pub(super) fn comes(&mut self, source: PeerId, len: u64) {
        let other = self.peer(source).chosen.take_if(|chosen| chosen.bytes != len);
        other.into_iter().for_each(|chosen| self.choices.drop_one(chosen));
    }

    /// Notes that the message has arrived whole.
    // spec: INJ-8
    pub(super) fn has_come(&mut self, source: PeerId) {
        if let Some(chosen) = self.peer(source).chosen.take() {
            self.choices.finish(chosen, || self.port.clock.now());
        }
    }

    /// Reads a message from its sender's memory. Returns false if that has failed. Then the payload
    /// is undefined.
    // spec: INJ-6
    fn read_at(&mut self, source: PeerId, address: u64, len: usize) -> bool {
        let payload = &mut self.peer(source).coming.payload;
        let mut payload = std::mem::replace(payload, Payload::new(64));
        if payload.len() < len {
            // Cleared first, so that growing copies nothing.
            payload.clear();
            payload.resize(len, 0);
        }
        let process = self.process_of(source);
        let is_read = process.is_some_and(|process| process.read(address, &mut payload[..len]));
        if is_read {
            let coming = &mut self.peer(source).coming;
            debug_assert!(len <= payload.len(), "all of it was read");
            (coming.payload, coming.len) = (payload, len);
        }
        // A sender that has left may have reused the memory.
        self.port.progress();
        is_read && self.port.is_alive(source)
    }

    /// Leaks the payloads that peers may still read, because nothing waits for these peers any
    /// more.
    // spec: INJ-7
    pub(super) fn leave_to_peers(&mut self) {
        for peer in self.peers.iter_mut().filter(|peer| peer.outward.is_being_read()) {
            std::mem::forget(peer.kept.pop_front());
        }
    }

    /// Returns the process of a peer on a direct connection.
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

//! A peer of another host: the carrier of a link reads the lanes.
use super::Device;
use crate::link::{Wire, lock};
use crate::port::local::Piece;
use crate::port::remote::SharedWire;
use crate::sync::{AtomicBool, Ordering};
use ayre_proto::node::carrier::frames::FRAMES_MAX;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::units::PeerId;
use std::sync::{Arc, MutexGuard};

/// The device of a link.
#[derive(Debug)]
pub(crate) struct Linked {
    peer: PeerId,
    wire: SharedWire,
    /// Whether an engine thread serves the wire, so that no other thread needs to.
    is_served: Arc<AtomicBool>,
}

impl Linked {
    pub(super) fn new(peer: PeerId, wire: SharedWire, is_served: Arc<AtomicBool>) -> Self {
        debug_assert!(wire.get().is_some(), "a port with links has a wire");
        Self { peer, wire, is_served }
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        lock(self.wire.get().expect("a port with links has a wire"))
    }
}

impl Device for Linked {
    fn how(&self) -> &'static str {
        "by a link with another host"
    }

    #[inline(always)]
    fn is_driven_here(&self) -> bool {
        true
    }

    #[cold]
    fn publish(&self) {
        // Relaxed: the port's thread, which is here, starts it.
        if !self.is_served.load(Ordering::Relaxed) {
            self.wire().nudge(self.peer);
        }
    }

    fn hasten(&self) {
        self.wire().ask(self.peer);
    }

    fn push_out(&self) {
        self.wire().push_out(self.peer);
    }

    fn resync(&self) -> bool {
        self.wire().resync(self.peer);
        true
    }

    fn end(&self) {
        self.wire().release(self.peer);
    }

    fn forget(&self) {
        self.wire().links().forget(self.peer);
    }

    #[inline]
    fn has_room(&mut self, answered: bool, len: usize) -> bool {
        self.wire().has_room(self.peer, answered, len)
    }

    #[inline]
    fn push(&mut self, command: &impl CommandRecord, data: Piece<'_>) {
        let fill = |bytes: &mut [u8]| data.copy_to(bytes);
        let posted = self.wire().post(self.peer, command, (data.len(), fill));
        debug_assert!(posted.is_ok(), "room was made sure of");
    }

    fn reach(&self) -> u64 {
        FRAMES_MAX as u64
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        debug_assert!(units <= self.reach(), "a batch that is too long is refused before");
        units <= self.wire().room(self.peer) as u64
    }
}

//! A peer of another host: the carrier of a link reads the lanes.
use super::Device;
use crate::link::{Wire, lock};
use crate::port::remote::SharedWire;
use crate::sync::{AtomicBool, Ordering};
use ayre_proto::units::PeerId;
use std::sync::{Arc, MutexGuard};

/// A link.
#[derive(Debug)]
pub(crate) struct Away {
    peer: PeerId,
    wire: SharedWire,
    /// Whether an engine thread looks after the wire, so that nobody else needs to.
    is_tended: Arc<AtomicBool>,
}

impl Away {
    pub(crate) fn new(peer: PeerId, wire: SharedWire, is_tended: Arc<AtomicBool>) -> Self {
        debug_assert!(wire.get().is_some(), "a port with links has a wire");
        Self { peer, wire, is_tended }
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        lock(self.wire.get().expect("a port with links has a wire"))
    }
}

impl Device for Away {
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
        if !self.is_tended.load(Ordering::Relaxed) {
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
}

//! What two threads of a process need of a peer to speak with it and to wake it.
use super::control::Channel;
use crate::mem::fence::Fencing;
use crate::mem::page::{PeerPage, Sleeper};
use crate::sys::bell::Bell;
use std::sync::Arc;

/// What both the port and the engine that serves it need of a peer.
#[derive(Debug)]
pub(crate) struct Link {
    /// Closes when the peer dies.
    pub(crate) control: Channel,
    pub(crate) page: PeerPage,
    /// The bell of this port's own engine, for a loopback and for a peer of another host. It is
    /// rung in place of the channel.
    pub(crate) bell: Option<Arc<Bell>>,
    pub(crate) fencing: Fencing,
}

impl Link {
    /// After publishing: wakes the peer if it sleeps. An awake peer costs one cached load.
    // spec: WAIT-3, WAIT-4
    #[inline(always)]
    pub(crate) fn kick(&self, sleeper: Sleeper) {
        self.fencing.light();
        if self.page.is_asleep(sleeper) {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        match &self.bell {
            Some(bell) => bell.ring(),
            None => self.control.ring(),
        }
    }
}

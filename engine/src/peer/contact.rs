//! A contact: all that two threads of a process need to speak with a peer and to wake it.
use super::control::Channel;
use crate::mem::fence::Fencing;
use crate::mem::page::{PeerPage, Sleeper};
use crate::sys::bell::Bell;
use std::sync::Arc;

/// The link to a peer, shared by the port and the engine that serves it.
#[derive(Debug)]
pub(crate) struct Link {
    /// Closes when the peer dies.
    pub(crate) control: Channel,
    pub(crate) page: PeerPage,
    pub(crate) waker: Waker,
    pub(crate) fencing: Fencing,
}

/// The means to wake a peer that sleeps.
#[derive(Debug)]
pub(crate) enum Waker {
    /// The channel: who sleeps there is woken by a packet.
    Channel,
    /// The bell of this port's own engine, for a loopback and for a peer of another host.
    Bell(Arc<Bell>),
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
        match &self.waker {
            Waker::Channel => self.control.ring(),
            Waker::Bell(bell) => bell.ring(),
        }
    }
}

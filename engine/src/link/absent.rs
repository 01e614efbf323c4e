//! In place of `link` where the feature `net` is off: the names that the rest of the crate uses, of
//! links that never are.
mod fingerprint;
mod load;

pub(crate) use self::fingerprint::Fingerprint;
pub(crate) use self::load::LinkLoad;
use crate::net::chance::Chance;
use crate::peer::agreement::Name;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Those that may open links.
pub(crate) mod callee {
    use crate::peer::agreement::Name;

    pub(crate) trait Names: std::fmt::Debug + Send + Sync {
        /// Whether this is one of them.
        fn has(&self, name: Name) -> bool;
    }
}

/// There is no wire.
#[derive(Debug)]
pub(crate) enum Wire {}

/// The result of a pump, of which there is none.
pub(crate) enum Pumped {}

/// A link that has come up.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) name: Option<Name>,
    never: Infallible,
}

/// Why there is no link.
#[derive(Debug)]
pub(crate) struct Unopened(Infallible);

/// An endpoint of another host.
#[derive(Debug)]
pub(crate) struct Callee;

/// A key of a job of several hosts.
#[derive(Clone, Debug)]
pub(crate) enum JobKey {}

/// The key that an endpoint would prove to other hosts.
#[derive(Debug)]
pub(crate) struct StaticKey(Fingerprint);

pub(crate) fn lock(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Wire {
    pub(crate) fn pump_all(&mut self) -> Pumped {
        match *self {}
    }

    pub(crate) fn settle(&mut self) {
        match *self {}
    }

    pub(crate) fn wake_by(&mut self, _: Option<Infallible>) -> Option<Instant> {
        match *self {}
    }

    pub(crate) fn announce_sleep(&self, _: bool) {
        match *self {}
    }

    pub(crate) fn refused(&self) -> u64 {
        match *self {}
    }
}

impl Pumped {
    pub(crate) fn any(self) -> bool {
        match self {}
    }
}

impl Arrived {
    /// There is none.
    pub(crate) fn never<T>(&self) -> T {
        match self.never {}
    }
}

impl Unopened {
    /// The reason for an endpoint that was called for this time.
    pub(crate) fn reason(self, _: Duration) -> crate::error::DisconnectReason {
        match self.0 {}
    }
}

impl Callee {
    pub(crate) fn new(_: Fingerprint, _: Option<&JobKey>, _is_plain: bool) -> Self {
        Self
    }
}

impl JobKey {
    pub(crate) fn check(&self) -> u16 {
        match *self {}
    }
}

impl StaticKey {
    /// An endpoint's name is made of a key's fingerprint; where nobody asks for the key, any number
    /// that nobody can guess will do.
    pub(crate) fn new(chance: &Chance) -> Self {
        let mut bytes = [0; 16];
        chance.fill(&mut bytes);
        Self(Fingerprint(bytes))
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.0
    }
}

//! Reports of remotes that have ended.
use super::{RawEndpoint, RemoteId};
use crate::error::{AddressAttempt, DisconnectReason, Fault};
use crate::log::tell;
use std::sync::{Arc, Mutex, PoisonError};

/// The remote of an endpoint that has ended last, in words, and the reason. It serves closures that
/// are told the fault of an operation and cannot ask the endpoint.
#[derive(Clone, Debug, Default)]
pub struct LatestFailure(Arc<Mutex<Option<(String, DisconnectReason)>>>);

impl LatestFailure {
    /// Returns the latest remote and reason, if the reason has this fault.
    pub fn with(&self, fault: Fault) -> Option<(String, DisconnectReason)> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clone().filter(|(_, reason)| reason.fault() == fault)
    }

    fn set(&self, text: String, reason: DisconnectReason) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((text, reason));
    }
}

impl RawEndpoint {
    /// Returns the latest failure, which is updated when further remotes end.
    pub fn latest_failure(&self) -> LatestFailure {
        self.latest_failure.clone()
    }

    /// Where a remote of another host is being called, and what came of that so far.
    // spec: OPEN-32
    pub fn tried(&self, remote: RemoteId) -> Vec<AddressAttempt> {
        let call = self.remotes.known(remote).and_then(|known| known.call_remote());
        call.map_or_else(Vec::new, |call| self.port.tried(call))
    }

    /// Describes a remote: the place that its address names.
    pub fn describe(&self, remote: RemoteId) -> String {
        match self.remotes.known(remote) {
            Some(known) => known.address().in_words(&self.address),
            None => "an endpoint that is not known".to_owned(),
        }
    }

    /// Tells the log, and those who will be told of faults, why a remote ends.
    // spec: ERR-11, ENV-34
    #[cold]
    pub(super) fn log_end(&self, remote: RemoteId, reason: &DisconnectReason) {
        let is_used = self.remotes.get(remote).is_some_and(|known| known.is_used());
        if !is_used && *reason == DisconnectReason::Left {
            return;
        }
        let text = format!("{}: {reason}{}", self.describe(remote), reason.advice());
        match reason {
            DisconnectReason::Left => tell!(INFO, "{text}"),
            _ => tell!(WARN, "{text}"),
        }
        self.latest_failure.set(text, reason.clone());
    }
}

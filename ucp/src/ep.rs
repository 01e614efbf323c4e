//! Endpoints: a program's ways to its peers.

use crate::sys::handle::Place;
use crate::worker::Worker;
use ayre::endpoint::RemoteId;
use std::ffi::c_void;

/// An endpoint.
pub(crate) struct Ep {
    /// The worker that it belongs to, which lives longer.
    pub(crate) worker: Place<Worker>,
    pub(crate) remote: RemoteId,
    pub(crate) name: String,
    /// The program's.
    pub(crate) user_data: Place<c_void>,
}

//! Contexts: a program's choices for all of its workers.

use crate::sys::request::{Kind, Request};
use ayre::endpoint::EndpointOptions;
use ayre::error::SetupError;

/// The largest part of a request that a program may ask for.
const REQUEST_MAX: usize = 1 << 20;

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: EndpointOptions,
    /// The requests of its pools.
    pub(crate) requests: Kind,
    pub(crate) name: String,
    /// Several threads use workers of it.
    pub(crate) is_shared: bool,
}

impl Context {
    /// # Errors
    /// [`SetupError::Environment`] for variables with wrong values, [`SetupError::Invalid`] for
    /// requests that are too large.
    pub(crate) fn new(requests: Kind, name: String, is_shared: bool) -> Result<Self, SetupError> {
        if requests.size > REQUEST_MAX {
            let why = "requests have at most 1 MiB for the program";
            return Err(SetupError::Invalid(why.into()));
        }
        Ok(Self { options: EndpointOptions::of_variables()?, requests, name, is_shared })
    }

    /// Takes back the requests of a worker that has ended.
    pub(crate) fn unmake(&self, requests: Vec<Request>) {
        self.requests.unmake_all(requests);
    }
}

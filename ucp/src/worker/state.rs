//! The state of a worker that one thread uses at a time.

use super::ends::{Ends, NO_INFO};
use super::waiting::{Post, Stand, Waiting};
use crate::sys::request::Request;
use ayre::Fault;
use ayre::endpoint::raw::RawEndpoint;
use ayre::endpoint::{Address, RemoteId};
use ayre::error::SetupError;

/// An object that is kept until all has ended that was posted by it.
pub(super) type Closed = Box<dyn Send>;

/// A flush that goes on.
pub(super) struct Flush {
    pub(super) request: Request,
    /// The peer; none for all of them.
    pub(super) remote: Option<RemoteId>,
    /// An endpoint that is closed: its messages have to end, too.
    pub(super) closes: Option<Closed>,
}

pub(super) struct State {
    pub(super) endpoint: RawEndpoint,
    pub(super) ends: Ends,
    /// All requests that were made.
    made: Vec<Request>,
    pub(super) waiting: Waiting,
    pub(super) flushes: Vec<Flush>,
    /// The peers of all endpoints.
    remotes: Vec<RemoteId>,
}

impl State {
    pub(super) fn new(endpoint: RawEndpoint) -> Self {
        let (ends, waiting) = (Ends::default(), Waiting::default());
        let (made, flushes, remotes) = (Vec::new(), Vec::new(), Vec::new());
        Self { endpoint, ends, made, waiting, flushes, remotes }
    }

    #[inline(always)]
    pub(super) fn progress(&mut self) -> bool {
        let mut any = !self.endpoint.finds_nothing() && self.advance();
        if !(self.waiting.is_empty() && self.flushes.is_empty()) {
            any |= self.waiting.advance(&mut self.endpoint, &mut self.ends);
            any |= self.end_flushes();
        }
        any || !self.ends.due.is_empty()
    }

    /// Not a part of what finds nothing, so that that is short.
    #[inline(never)]
    fn advance(&mut self) -> bool {
        let Self { endpoint, ends, .. } = self;
        endpoint.progress_on(
            #[inline(always)]
            |end| ends.note(&end),
        )
    }

    /// Notes what has ended in a call.
    #[inline(always)]
    pub(super) fn note_ended(&mut self) {
        let Self { endpoint, ends, .. } = self;
        endpoint.tell_ended(
            #[inline(always)]
            |end| ends.note(&end),
        );
    }

    pub(super) fn add_requests(&mut self, made: &[Request]) {
        self.made.extend_from_slice(made);
        self.ends.pool.extend_from_slice(made);
    }

    pub(super) fn take_requests(&mut self) -> Vec<Request> {
        self.ends.pool.clear();
        std::mem::take(&mut self.made)
    }

    pub(super) fn find(&mut self, address: &Address) -> Result<RemoteId, SetupError> {
        let remote = self.endpoint.remote(address)?;
        if !self.remotes.contains(&remote) {
            self.remotes.push(remote);
        }
        Ok(remote)
    }

    /// Posts something, or has it wait.
    ///
    /// # Errors
    /// As [`Waiting::post`].
    #[inline]
    pub(super) fn post(&mut self, to: RemoteId, what: Post) -> Result<Stand, Fault> {
        self.waiting.post(&mut self.endpoint, to, what)
    }

    /// Later accesses to a peer's memory wait for those before.
    pub(super) fn fence(&mut self) {
        for &remote in &self.remotes {
            if !self.endpoint.has_completed_rma(remote) || self.waiting.has(remote) {
                let fenced = self.waiting.post(&mut self.endpoint, remote, Post::Fence);
                debug_assert!(fenced.is_ok(), "the engine has no part in it");
            }
        }
    }

    /// Whether all accesses to memory of a peer have ended, or to that of all. With messages, so
    /// have these.
    pub(super) fn has_ended_all(&self, remote: Option<RemoteId>, with_messages: bool) -> bool {
        let is_idle = |&remote: &RemoteId| {
            let has_ended = match with_messages {
                true => self.endpoint.has_completed_all(remote),
                false => self.endpoint.has_completed_rma(remote),
            };
            has_ended && !self.waiting.has(remote)
        };
        match &remote {
            Some(remote) => is_idle(remote),
            None => self.remotes.iter().all(is_idle),
        }
    }

    /// Ends those that have nothing to wait for any more. Whether there were any.
    #[cold]
    fn end_flushes(&mut self) -> bool {
        let flushes = std::mem::take(&mut self.flushes);
        let (over, left): (Vec<_>, Vec<_>) = flushes
            .into_iter()
            .partition(|flush| self.has_ended_all(flush.remote, flush.closes.is_some()));
        self.flushes = left;
        for flush in &over {
            let status = self.ends.take_failure(flush.remote);
            self.ends.finish(flush.request, (status, NO_INFO));
        }
        !over.is_empty()
    }
}

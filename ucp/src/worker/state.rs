//! The state of a worker that one thread uses at a time.

use super::arrivals::{Active, Data};
use super::ends::{Ends, NO_INFO};
use super::ep::Eps;
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
    pub(super) active: Active,
    /// A sleeper has announced itself.
    is_resting: bool,
    /// A progress that finds nothing announces a sleeper.
    pub(super) arms_itself: bool,
    pub(super) eps: Eps,
    /// The peers of all endpoints.
    remotes: Vec<RemoteId>,
}

impl State {
    pub(super) fn new(endpoint: RawEndpoint) -> Self {
        let (ends, waiting) = (Ends::default(), Waiting::default());
        let (made, flushes, remotes) = (Vec::new(), Vec::new(), Vec::new());
        let (active, eps) = (Active::default(), Eps::default());
        let (is_resting, arms_itself) = (false, false);
        Self {
            endpoint,
            ends,
            made,
            waiting,
            flushes,
            active,
            is_resting,
            arms_itself,
            eps,
            remotes,
        }
    }

    #[inline(always)]
    pub(super) fn progress(&mut self) -> bool {
        self.wake();
        let mut any = !self.endpoint.finds_nothing() && self.advance();
        // Naps and the ends of peers take messages, too.
        if self.active.is_on && (self.endpoint.keeps_messages() || self.ends.has_landed()) {
            self.collect();
        }
        if !(self.waiting.is_empty() && self.flushes.is_empty()) {
            any |= self.waiting.advance(&mut self.endpoint, &mut self.ends);
            any |= self.end_flushes();
        }
        self.eps.look(&self.endpoint);
        any = any || !self.ends.due.is_empty() || self.active.is_due() || self.eps.has_lost();
        if !any && self.arms_itself {
            any = !self.arm();
        }
        any
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
        self.know(remote);
        Ok(remote)
    }

    /// An endpoint goes to this peer.
    pub(super) fn know(&mut self, remote: RemoteId) {
        if !self.remotes.contains(&remote) {
            self.remotes.push(remote);
        }
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

    /// Takes the active messages that have come.
    pub(super) fn collect(&mut self) {
        let Self { endpoint, active, ends, .. } = self;
        for (number, is_here) in ends.take_landed() {
            active.land(number, is_here);
        }
        while endpoint.keeps_messages() {
            if let Some((received, bytes)) = endpoint.take_oldest(None, None) {
                active.arrive(&received, Data::Here(bytes), endpoint);
                continue;
            }
            let Some(found) = endpoint.find(None, None) else { break };
            endpoint.set_aside(false, found.id);
            active.arrive(&found.message, Data::Elsewhere(found), endpoint);
        }
    }

    /// Announces a sleeper. False where something has come, or is to be done.
    pub(super) fn arm(&mut self) -> bool {
        self.wake();
        if !self.ends.due.is_empty() || !self.waiting.is_empty() || self.active.is_due() {
            return false;
        }
        let Self { endpoint, ends, .. } = self;
        let rests = endpoint.rest(|end| ends.note(&end));
        self.is_resting = rests;
        if self.active.is_on {
            self.collect();
        }
        if self.ends.due.is_empty() && !self.active.is_due() {
            return rests;
        }
        self.wake();
        false
    }

    /// The sleeper is awake.
    #[inline]
    pub(super) fn wake(&mut self) {
        if self.is_resting {
            self.is_resting = false;
            self.endpoint.wake();
        }
    }
}

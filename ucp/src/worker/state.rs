//! The state of a worker that one thread uses at a time.

use crate::abi::request::TagRecvInfo;
use crate::abi::status::Status;
use crate::status::of_fault;
use crate::sys::request::Request;
use ayre::endpoint::raw::{Completion, CompletionKind, OutgoingMessage, RawEndpoint, Sent};
use ayre::endpoint::{Address, RemoteId};
use ayre::error::SetupError;
use ayre::{Fault, PostError};
use std::collections::VecDeque;

/// The tag and length of an operation that receives nothing.
pub(super) const NO_INFO: TagRecvInfo = TagRecvInfo { sender_tag: 0, length: 0 };

/// An object that is kept until all has ended that was posted by it.
pub(super) type Closed = Box<dyn Send>;

/// A flush that goes on.
pub(super) struct Flush {
    pub(super) request: Request,
    /// The peer; none for all of them.
    pub(super) remote: Option<RemoteId>,
    /// An object that goes then: an endpoint that is closed.
    pub(super) _closes: Option<Closed>,
}

pub(super) struct State {
    pub(super) endpoint: RawEndpoint,
    /// Requests that no operation uses.
    pub(super) pool: Vec<Request>,
    /// All that were made.
    made: Vec<Request>,
    /// Operations that have ended, and whose functions are to be called.
    pub(super) ends: Vec<Request>,
    /// Messages for which there was no room, for each peer in their order.
    waiting: Vec<(RemoteId, VecDeque<OutgoingMessage>)>,
    pub(super) flushes: Vec<Flush>,
    /// The peers of all endpoints.
    pub(super) remotes: Vec<RemoteId>,
}

impl State {
    pub(super) fn new(endpoint: RawEndpoint) -> Self {
        let (pool, made, ends) = (Vec::new(), Vec::new(), Vec::new());
        let (waiting, flushes, remotes) = (Vec::new(), Vec::new(), Vec::new());
        Self { endpoint, pool, made, ends, waiting, flushes, remotes }
    }

    #[inline(always)]
    pub(super) fn progress(&mut self) -> bool {
        let mut any = !self.endpoint.finds_nothing() && self.advance();
        if !(self.waiting.is_empty() && self.flushes.is_empty()) {
            any |= self.send_waiting();
            any |= self.end_flushes();
        }
        any || !self.ends.is_empty()
    }

    /// Not a part of what finds nothing, so that that is short.
    #[inline(never)]
    fn advance(&mut self) -> bool {
        let Self { endpoint, pool, ends, .. } = self;
        endpoint.progress_on(
            #[inline(always)]
            |end| note(&end, pool, ends),
        )
    }

    /// Notes what has ended in a call.
    #[inline(always)]
    pub(super) fn note_ended(&mut self) {
        let Self { endpoint, pool, ends, .. } = self;
        endpoint.tell_ended(
            #[inline(always)]
            |end| note(&end, pool, ends),
        );
    }

    /// Operations whose functions are to be called.
    #[inline(always)]
    pub(super) fn take_ends(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.ends)
    }

    /// Uses the memory of a list again.
    pub(super) fn keep_room(&mut self, list: Vec<Request>) {
        if self.ends.capacity() == 0 {
            self.ends = list;
        }
    }

    pub(super) fn add_requests(&mut self, made: &[Request]) {
        self.made.extend_from_slice(made);
        self.pool.extend_from_slice(made);
    }

    pub(super) fn take_requests(&mut self) -> Vec<Request> {
        self.pool.clear();
        std::mem::take(&mut self.made)
    }

    pub(super) fn find(&mut self, address: &Address) -> Result<RemoteId, SetupError> {
        let remote = self.endpoint.remote(address)?;
        if !self.remotes.contains(&remote) {
            self.remotes.push(remote);
        }
        Ok(remote)
    }

    /// Whether messages for this peer wait, so that later ones have to.
    #[inline(always)]
    pub(super) fn waits(&self, to: RemoteId) -> bool {
        !self.waiting.is_empty() && self.waiting.iter().any(|(remote, _)| *remote == to)
    }

    /// Sends a message, or has it wait for room.
    ///
    /// # Errors
    /// As [`RawEndpoint::send`], but for a lack of room.
    pub(super) fn send(&mut self, to: RemoteId, message: OutgoingMessage) -> Result<Sent, Fault> {
        if !self.waits(to) {
            match self.endpoint.send(to, &message) {
                Ok(sent) => return Ok(sent),
                Err(PostError::Fault(fault)) => return Err(fault),
                Err(PostError::Busy(_)) => {}
            }
        }
        match self.waiting.iter_mut().find(|(remote, _)| *remote == to) {
            Some((_, messages)) => messages.push_back(message),
            None => self.waiting.push((to, VecDeque::from([message]))),
        }
        Ok(Sent::Pending)
    }

    /// Sends those that wait, as far as there is room. Whether there was any.
    #[cold]
    fn send_waiting(&mut self) -> bool {
        let Self { endpoint, pool, ends, waiting, .. } = self;
        let mut any = false;
        waiting.retain_mut(|(to, messages)| {
            while let Some(message) = messages.front() {
                let ended = match endpoint.send(*to, message) {
                    Ok(Sent::Pending) => None,
                    Ok(Sent::Completed) => Some(Status::OK),
                    Err(PostError::Busy(_)) => return true,
                    Err(PostError::Fault(fault)) => Some(of_fault(fault)),
                };
                any = true;
                if let Some(status) = ended
                    && let Some(request) = Request::of_context(message.context)
                {
                    finish(request, (status, NO_INFO), pool, ends);
                }
                messages.pop_front();
            }
            false
        });
        any
    }

    /// Messages for this peer that wait are not sent any more.
    pub(super) fn give_up(&mut self, to: RemoteId) {
        let Self { pool, ends, waiting, .. } = self;
        let gone = waiting.iter().position(|(remote, _)| *remote == to);
        let messages = gone.map(|place| waiting.swap_remove(place).1);
        for message in messages.into_iter().flatten() {
            if let Some(request) = Request::of_context(message.context) {
                finish(request, (Status::CANCELED, NO_INFO), pool, ends);
            }
        }
    }

    /// Whether all has ended that goes to a peer, or to all.
    pub(super) fn has_ended_all(&self, remote: Option<RemoteId>) -> bool {
        let is_idle = |remote| !self.waits(remote) && self.endpoint.has_completed_all(remote);
        match remote {
            Some(remote) => is_idle(remote),
            None => self.remotes.iter().all(|remote| is_idle(*remote)),
        }
    }

    /// Ends those that have nothing to wait for any more. Whether there were any.
    #[cold]
    fn end_flushes(&mut self) -> bool {
        let flushes = std::mem::take(&mut self.flushes);
        let (over, left): (Vec<_>, Vec<_>) =
            flushes.into_iter().partition(|flush| self.has_ended_all(flush.remote));
        self.flushes = left;
        let Self { pool, ends, .. } = self;
        for flush in &over {
            finish(flush.request, (Status::OK, NO_INFO), pool, ends);
        }
        !over.is_empty()
    }
}

/// Notes the end of an operation.
#[inline(always)]
pub(super) fn note(end: &Completion, pool: &mut Vec<Request>, ends: &mut Vec<Request>) {
    if let Some(request) = Request::of_context(end.context) {
        finish(request, outcome(end), pool, ends);
    }
}

/// The program is told of it by its function, behind this call, or asks.
#[inline(always)]
pub(super) fn finish(
    request: Request,
    (status, info): (Status, TagRecvInfo),
    pool: &mut Vec<Request>,
    ends: &mut Vec<Request>,
) {
    request.conclude(status, info);
    if request.has_calls() {
        return ends.push(request);
    }
    let is_pooled = request.is_pooled();
    request.publish();
    if is_pooled && request.end() {
        pool.push(request);
    }
}

/// How an operation has ended.
#[inline(always)]
fn outcome(end: &Completion) -> (Status, TagRecvInfo) {
    let Completion { what, result, .. } = end;
    match (what, result) {
        (CompletionKind::Received(received), Ok(())) => {
            let (sender_tag, length) = (received.tag.unwrap_or(0), received.len as usize);
            let is_whole = received.placed == received.len;
            let status = if is_whole { Status::OK } else { Status::MESSAGE_TRUNCATED };
            (status, TagRecvInfo { sender_tag, length })
        }
        (CompletionKind::Cancelled, _) => (Status::CANCELED, NO_INFO),
        (_, Ok(())) => (Status::OK, NO_INFO),
        (_, Err(fault)) => (of_fault(*fault), NO_INFO),
    }
}

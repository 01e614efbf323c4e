//! Operations that have ended, and the requests that none uses.

use crate::abi::request::TagRecvInfo;
use crate::abi::status::Status;
use crate::log;
use crate::status::of_fault;
use crate::sys::request::Request;
use ayre::Fault;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{Completion, CompletionKind, Context};

/// The tag and length of an operation that receives nothing.
pub(super) const NO_INFO: TagRecvInfo = TagRecvInfo { sender_tag: 0, length: 0 };

#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Requests that no operation uses.
    pub(super) pool: Vec<Request>,
    /// Operations that have ended, and whose functions are to be called.
    pub(super) due: Vec<Request>,
    /// Operations without a request that have failed: the next flush tells.
    failures: Vec<(RemoteId, Status)>,
    /// Active messages that were fetched, by their numbers, and whether they are here.
    landed: Vec<(u64, bool)>,
}

/// The engine keeps this for an operation without a request.
pub(super) fn silent(to: RemoteId) -> Context {
    Context::from(to.number()) << 64
}

/// The engine keeps this for an active message that is fetched.
pub(super) fn landed(number: u64) -> Context {
    Context::from(number | LANDED) << 64
}

/// No number of a remote has this bit.
const LANDED: u64 = 1 << 63;

impl Ends {
    /// Notes the end of an operation.
    #[inline(always)]
    pub(super) fn note(&mut self, end: &Completion) {
        match Request::of_context(end.context) {
            Some(request) => self.finish(request, outcome(end)),
            None => {
                let number = (end.context >> 64) as u64;
                if number & LANDED != 0 {
                    self.landed.push((number & !LANDED, end.result.is_ok()));
                } else if let Err(fault) = end.result {
                    self.note_failure(number, fault);
                }
            }
        }
    }

    #[cold]
    fn note_failure(&mut self, to: u64, fault: Fault) {
        log::warn(&format!("an operation without a request has failed: {fault}"));
        self.failures.extend(RemoteId::with_number(to).map(|to| (to, of_fault(fault))));
    }

    #[inline(always)]
    pub(super) fn has_landed(&self) -> bool {
        !self.landed.is_empty()
    }

    /// Active messages that were fetched since this was asked last.
    pub(super) fn take_landed(&mut self) -> Vec<(u64, bool)> {
        std::mem::take(&mut self.landed)
    }

    /// How operations without a request to a peer, or to all, have ended since this was asked last.
    pub(super) fn take_failure(&mut self, remote: Option<RemoteId>) -> Status {
        let is_meant = |(to, _): &(RemoteId, _)| remote.is_none_or(|remote| remote == *to);
        let first = self.failures.iter().find(|failure| is_meant(failure));
        let status = first.map_or(Status::OK, |(_, status)| *status);
        self.failures.retain(|failure| !is_meant(failure));
        status
    }

    /// The program is told of it by its function, behind this call, or asks.
    #[inline(always)]
    pub(super) fn finish(&mut self, request: Request, (status, info): (Status, TagRecvInfo)) {
        request.conclude(status, info);
        if request.has_calls() {
            return self.due.push(request);
        }
        let is_pooled = request.is_pooled();
        request.publish();
        if is_pooled && request.end() {
            self.pool.push(request);
        }
    }

    /// Operations whose functions are to be called.
    #[inline(always)]
    pub(super) fn take_due(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.due)
    }

    /// Uses the memory of a list again.
    pub(super) fn keep_room(&mut self, list: Vec<Request>) {
        if self.due.capacity() == 0 {
            self.due = list;
        }
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

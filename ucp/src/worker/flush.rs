//! Waiting until all has ended that goes to a peer, or to all peers.

use super::ends::NO_INFO;
use super::state::{Closed, Flush, State};
use super::{Posted, Wish, Worker};
use crate::abi::status::Status;
use ayre::endpoint::RemoteId;

impl Worker {
    /// Ends when all accesses to memory of a peer have ended, or to that of all. An endpoint that
    /// is closed then waits for its messages, too. The status is that of operations without a
    /// request.
    pub(crate) fn flush(
        &self,
        remote: Option<RemoteId>,
        closes: Option<Closed>,
        wish: &Wish,
    ) -> Posted {
        let ended = self.with(|state| match state.has_ended_all(remote, closes.is_some()) {
            true => Some(state.ends.take_failure(remote)),
            false => None,
        });
        match ended {
            Some(Status::OK) if !wish.never_at_once => Posted::Done,
            Some(status) => {
                let request = self.with_request(wish, |_, request| request);
                request.conclude(status, NO_INFO);
                self.at_once(wish, request)
            }
            None => self.with_request(wish, |state, request| {
                state.flushes.push(Flush { request, remote, closes });
                Posted::Pending(request)
            }),
        }
    }

    /// Later operations wait for all accesses to peers' memory before.
    pub(crate) fn fence(&self) {
        self.with(State::fence);
    }
}

//! Waiting until all has ended that goes to a peer, or to all peers.

use super::state::{Closed, Flush};
use super::{Posted, Wish, Worker};
use ayre::endpoint::RemoteId;

impl Worker {
    /// Ends when all that goes to a peer, or to all of them, has ended. Then an endpoint is closed.
    pub(crate) fn flush(
        &self,
        remote: Option<RemoteId>,
        closes: Option<Closed>,
        wish: &Wish,
    ) -> Posted {
        if self.with(|state| state.has_ended_all(remote)) && !wish.never_at_once {
            return Posted::Done;
        }
        self.with_request(wish, |state, request| {
            state.flushes.push(Flush { request, remote, _closes: closes });
            Posted::Pending(request)
        })
    }
}

//! Accesses to memory of peers that no load or store reaches: the engine carries them out.

use super::ends::silent;
use super::state::State;
use super::waiting::Post;
use super::{Posted, Wish, Worker};
use crate::abi::status::Status;
use crate::status::of_fault;
use crate::sys::atomic::Change;
use ayre::PostError;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{Context, RawEndpoint, RemoteAddress, RmaWrite, Spans};

impl Worker {
    /// Whether posts to this peer wait. Then loads and stores would overtake them.
    #[inline(always)]
    pub(crate) fn holds_back(&self, to: RemoteId) -> bool {
        self.with(|state| state.waiting.has(to))
    }

    /// Writes to memory of a peer.
    pub(crate) fn write(&self, to: RemoteAddress, bytes: Spans, wish: &Wish) -> Posted {
        let (data, context) = (None, silent(to.remote));
        let write = RmaWrite { bytes, data, context, inject: true };
        if write.bytes.len() <= RawEndpoint::inject_max()
            && let Some(posted) =
                self.post_silently(to.remote, wish, |endpoint| endpoint.write(to, &write).map(drop))
        {
            return posted;
        }
        let write = |context| Post::Write(to, RmaWrite { context, inject: false, ..write });
        self.post_by_request(to.remote, wish, write)
    }

    /// Reads memory of a peer.
    pub(crate) fn read(&self, from: RemoteAddress, into: Spans, wish: &Wish) -> Posted {
        self.post_by_request(from.remote, wish, |context| Post::Read(from, into, context))
    }

    /// Changes a number in memory of a peer.
    pub(crate) fn update(&self, at: RemoteAddress, change: Change, wish: &Wish) -> Posted {
        if !change.has_result()
            && let Some(posted) = self.post_silently(at.remote, wish, |endpoint| {
                change.post(endpoint, at, silent(at.remote))
            })
        {
            return posted;
        }
        self.post_by_request(at.remote, wish, |context| Post::Update(at, change, context))
    }

    /// Posts an operation without a request: all memory of the program's is its own again. None
    /// where it has to wait, or the program wants a request.
    fn post_silently(
        &self,
        to: RemoteId,
        wish: &Wish,
        post: impl FnOnce(&mut RawEndpoint) -> Result<(), PostError>,
    ) -> Option<Posted> {
        if wish.never_at_once {
            return None;
        }
        self.with(|state| {
            if state.waiting.has(to) {
                return None;
            }
            match post(&mut state.endpoint) {
                Ok(()) => Some(Posted::Done),
                Err(PostError::Fault(fault)) => Some(Posted::Failed(of_fault(fault))),
                Err(PostError::Busy(_)) => None,
            }
        })
    }

    #[inline(never)]
    fn post_by_request(
        &self,
        to: RemoteId,
        wish: &Wish,
        post: impl FnOnce(Context) -> Post,
    ) -> Posted {
        if wish.only_at_once {
            return Posted::Failed(Status::NO_RESOURCE);
        }
        let (request, stand) = self.with_request(wish, |state: &mut State, request| {
            (request, state.post(to, post(request.to_context())))
        });
        self.stands(wish, request, stand)
    }
}

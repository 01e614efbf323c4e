//! Posts that wait: for room, or behind a fence. Those to one peer keep their order.

use super::ends::{Ends, NO_INFO};
use crate::abi::status::Status;
use crate::status::of_fault;
use crate::sys::atomic::Change;
use crate::sys::request::Request;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{
    Context, OutgoingMessage, RawEndpoint, RemoteAddress, RmaWrite, Sent, Spans,
};
use ayre::{Fault, PostError};
use std::collections::VecDeque;

/// Something to be posted to a peer.
#[derive(Debug)]
pub(super) enum Post {
    Message(OutgoingMessage),
    Write(RemoteAddress, RmaWrite),
    Read(RemoteAddress, Spans, Context),
    Update(RemoteAddress, Change, Context),
    /// Later posts wait for the end of all accesses to the peer's memory before it.
    Fence,
}

/// How a post stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// The engine is done with it, and tells nothing.
    Done,
    /// The engine tells its end.
    Posted,
    /// There is no room for it now.
    Waits,
}

impl Post {
    /// Hands it to the engine, if there is room.
    ///
    /// # Errors
    /// Those of the engine's functions, but for a lack of room.
    #[inline]
    fn post(&self, endpoint: &mut RawEndpoint, to: RemoteId) -> Result<Stand, Fault> {
        let posted = match self {
            Self::Message(message) => endpoint.send(to, message).map(|sent| match sent {
                Sent::Completed => Stand::Done,
                Sent::Pending => Stand::Posted,
            }),
            // Its end is told in any case.
            Self::Write(at, write) => endpoint.write(*at, write).map(|_| Stand::Posted),
            Self::Read(at, into, context) => {
                endpoint.read(*at, into.clone(), *context).map(|()| Stand::Posted)
            }
            Self::Update(at, change, context) => {
                change.post(endpoint, *at, *context).map(|()| Stand::Posted)
            }
            Self::Fence => match endpoint.has_completed_rma(to) {
                true => Ok(Stand::Done),
                false => Ok(Stand::Waits),
            },
        };
        posted.or_else(|error| match error {
            PostError::Busy(_) => Ok(Stand::Waits),
            PostError::Fault(fault) => Err(fault),
        })
    }

    /// The request that hears of its end.
    fn request(&self) -> Option<Request> {
        match self {
            Self::Message(message) => Request::of_context(message.context),
            Self::Write(_, RmaWrite { context, .. })
            | Self::Read(_, _, context)
            | Self::Update(_, _, context) => Request::of_context(*context),
            Self::Fence => None,
        }
    }
}

/// Those that wait, for each peer in their order.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<(RemoteId, VecDeque<Post>)>);

impl Waiting {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether posts to this peer wait, so that later ones have to.
    #[inline(always)]
    pub(super) fn has(&self, to: RemoteId) -> bool {
        !self.0.is_empty() && self.0.iter().any(|(remote, _)| *remote == to)
    }

    /// Posts something, or has it wait.
    ///
    /// # Errors
    /// Those of [`Post::post`].
    #[inline]
    pub(super) fn post(
        &mut self,
        endpoint: &mut RawEndpoint,
        to: RemoteId,
        what: Post,
    ) -> Result<Stand, Fault> {
        if !self.has(to) {
            let stand = what.post(endpoint, to)?;
            if stand != Stand::Waits {
                return Ok(stand);
            }
        }
        match self.0.iter_mut().find(|(remote, _)| *remote == to) {
            Some((_, posts)) => posts.push_back(what),
            None => self.0.push((to, VecDeque::from([what]))),
        }
        Ok(Stand::Waits)
    }

    /// Posts those for which there is room now. Whether there were any.
    #[cold]
    pub(super) fn advance(&mut self, endpoint: &mut RawEndpoint, ends: &mut Ends) -> bool {
        let mut any = false;
        self.0.retain_mut(|(to, posts)| {
            while let Some(post) = posts.front() {
                let ended = match post.post(endpoint, *to) {
                    Ok(Stand::Waits) => return true,
                    Ok(Stand::Posted) => None,
                    Ok(Stand::Done) => Some(Status::OK),
                    Err(fault) => Some(of_fault(fault)),
                };
                any = true;
                if let (Some(status), Some(request)) = (ended, post.request()) {
                    ends.finish(request, (status, NO_INFO));
                }
                posts.pop_front();
            }
            false
        });
        any
    }

    /// Those to this peer are not posted any more.
    pub(super) fn give_up(&mut self, to: RemoteId, ends: &mut Ends) {
        let gone = self.0.iter().position(|(remote, _)| *remote == to);
        let posts = gone.map(|place| self.0.swap_remove(place).1);
        for request in posts.iter().flatten().filter_map(Post::request) {
            ends.finish(request, (Status::CANCELED, NO_INFO));
        }
    }
}

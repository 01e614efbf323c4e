//! Tagged messages.

use super::ends::NO_INFO;
use super::state::State;
use super::waiting::Post;
use super::{Posted, Wish, Worker};
use crate::abi::request::TagRecvInfo;
use crate::abi::status::Status;
use crate::status::of_fault;
use crate::sys::packing::Packing;
use crate::sys::request::Request;
use ayre::PostError;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{OutgoingMessage, PostedReceive, Probed, Spans};

/// A message that a probe has taken out.
#[derive(Debug)]
pub(crate) struct Found(Probed);

/// The memory of an operation.
#[derive(Debug)]
pub(crate) enum Memory {
    Direct(Spans),
    /// Bytes of ours stand in for it.
    Packed(Packing),
}

impl Memory {
    /// Where it lies; the request keeps what is packed.
    #[inline(always)]
    pub(super) fn of(self, request: Request) -> Spans {
        match self {
            Self::Direct(spans) => spans,
            Self::Packed(packing) => request.keep(packing),
        }
    }

    /// An operation that has to end in its call cannot: a datatype's state is finished.
    #[cold]
    fn refuse(self) -> Posted {
        if let Self::Packed(packing) = self {
            packing.unpack(0);
        }
        Posted::Failed(Status::NO_RESOURCE)
    }
}

/// Tag and mask of a receive: the bits of the mask matter.
pub(crate) type Pattern = (u64, u64);

impl Worker {
    /// Sends a message; one that is synchronous ends when it was received.
    #[inline(always)]
    pub(crate) fn send(
        &self,
        to: RemoteId,
        (tag, bytes, is_synchronous): (u64, Memory, bool),
        wish: &Wish,
    ) -> Posted {
        if let Memory::Direct(bytes) = &bytes
            && !is_synchronous
            && !wish.never_at_once
        {
            let sent = self.with(
                #[inline(always)]
                |state| match state.waiting.has(to) {
                    true => None,
                    false => state.endpoint.send_at_once(to, (Some(tag), None), bytes),
                },
            );
            match sent {
                Some(Ok(())) => return Posted::Done,
                Some(Err(PostError::Fault(fault))) => return Posted::Failed(of_fault(fault)),
                Some(Err(PostError::Busy(_))) | None => {}
            }
        }
        if wish.only_at_once {
            return bytes.refuse();
        }
        self.send_by_request(to, (tag, bytes, is_synchronous), wish)
    }

    #[inline(never)]
    fn send_by_request(
        &self,
        to: RemoteId,
        (tag, bytes, delivered): (u64, Memory, bool),
        wish: &Wish,
    ) -> Posted {
        let (request, stand) = self.with_request(wish, |state, request| {
            let (tag, context) = (Some(tag), request.to_context());
            let bytes = bytes.of(request);
            let message = OutgoingMessage { tag, data: None, bytes, context, delivered };
            (request, state.post(to, Post::Message(message)))
        });
        self.stands(wish, request, stand)
    }

    /// Posts a receive. One that must end in the call is posted only where its message has begun to
    /// come: it cannot be taken back then.
    #[inline(always)]
    pub(crate) fn receive(&self, (tag, mask): Pattern, into: Memory, wish: &Wish) -> Posted {
        if wish.only_at_once && self.probe((tag, mask), false).is_none() {
            return into.refuse();
        }
        self.receive_by(wish, |state, request| {
            let (tag, context) = (Some((tag, !mask)), request.to_context());
            let into = into.of(request);
            state.endpoint.receive(PostedReceive { source: None, tag, into, context, many: None })
        })
    }

    /// Receives a message that a probe has taken out.
    pub(crate) fn receive_found(&self, found: &Found, into: Memory, wish: &Wish) -> Posted {
        let id = found.0.id;
        self.receive_by(wish, |state, request| {
            let into = (into.of(request), request.to_context());
            state.endpoint.receive_found(true, id, into)
        })
    }

    #[inline(always)]
    pub(super) fn receive_by(
        &self,
        wish: &Wish,
        post: impl FnOnce(&mut State, Request) -> Result<(), PostError>,
    ) -> Posted {
        let (request, is_over) = self.with_request(
            wish,
            #[inline(always)]
            |state, request| {
                if let Err(error) = post(state, request) {
                    request.conclude(of_post(error), NO_INFO);
                    return (request, true);
                }
                state.note_ended();
                let is_over = request.is_concluded();
                if is_over && request.has_calls() {
                    // This call tells of it, or nobody does.
                    state.ends.due.retain(|ended| *ended != request);
                }
                (request, is_over)
            },
        );
        if is_over { self.at_once(wish, request) } else { Posted::Pending(request) }
    }

    /// Looks for a message. If it is to be removed, only the handle can receive it then.
    pub(crate) fn probe(
        &self,
        (tag, mask): Pattern,
        removes: bool,
    ) -> Option<(Found, TagRecvInfo)> {
        self.with(|state| {
            let found = state.endpoint.find(None, Some((tag, !mask)))?;
            if removes {
                state.endpoint.set_aside(true, found.id);
            }
            let (sender_tag, length) = (found.message.tag.unwrap_or(0), found.message.len as usize);
            Some((Found(found), TagRecvInfo { sender_tag, length }))
        })
    }

    /// Takes a receive back, and tells its end. Nothing happens to other operations.
    pub(crate) fn cancel(&self, request: Request) {
        let ends = self.with(|state| {
            let label = request.label();
            let State { endpoint, ends, .. } = state;
            endpoint.cancel_now(label, |end| ends.note(&end));
            ends.take_due()
        });
        self.tell(ends);
    }
}

fn of_post(error: PostError) -> Status {
    match error {
        PostError::Busy(_) => Status::NO_RESOURCE,
        PostError::Fault(fault) => of_fault(fault),
    }
}

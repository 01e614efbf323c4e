//! Sending active messages, and handing those over that have come.

use super::arrivals::{Arrival, Body, Kept, Kind, Note, drop_data};
use super::ends::silent;
use super::tag::Memory;
use super::waiting::Post;
use super::{Posted, Wish, Worker};
use crate::abi::request::TagRecvInfo;
use crate::abi::status::Status;
use crate::log;
use crate::status::of_fault;
use crate::sys::handler::{Handler, Shown};
use crate::sys::packing::Packing;
use ayre::PostError;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{OutgoingMessage, Probed, Span, Spans};
use std::ffi::c_void;
use std::sync::Arc;

impl Worker {
    /// Sets the handler for an id, or takes it away.
    pub(crate) fn set_handler(&self, id: u16, handler: Option<Handler>) {
        self.with(|state| state.active.set(id, handler));
    }

    /// Sends a short message, of header and data one behind the other. None where it has to wait.
    #[inline]
    pub(crate) fn send_active_at_once(
        &self,
        to: RemoteId,
        note: Note,
        bytes: Spans,
    ) -> Option<Posted> {
        let data = Some(note.to_data(Kind::Whole));
        self.with(|state| {
            if state.waiting.has(to) {
                return None;
            }
            let sent = match state.endpoint.send_at_once(to, (None, data), &bytes) {
                Some(sent) => sent,
                None => {
                    let (context, delivered) = (silent(to), false);
                    let message = OutgoingMessage { tag: None, data, bytes, context, delivered };
                    state.endpoint.send(to, &message).map(drop)
                }
            };
            match sent {
                Ok(()) => Some(Posted::Done),
                Err(PostError::Fault(fault)) => Some(Posted::Failed(of_fault(fault))),
                Err(PostError::Busy(_)) => None,
            }
        })
    }

    /// Sends a message: a header, data that were packed behind it, and data that lie where they
    /// are. Those that are offered stay until the receiver has them.
    pub(crate) fn send_active(
        &self,
        to: RemoteId,
        note: Note,
        (head, data, is_offered): (Packing, Option<Span>, bool),
        wish: &Wish,
    ) -> Posted {
        if wish.only_at_once {
            return Posted::Failed(Status::NO_RESOURCE);
        }
        let (request, stand) = self.with_request(wish, |state, request| {
            let (header, packed) = request.keep_parts(head, note.header as usize);
            let post = |kind, spans: &[Span], context| {
                let bytes = Spans::new(spans.iter().copied()).expect("three are not too many");
                let data = Some(note.to_data(kind));
                Post::Message(OutgoingMessage { tag: None, data, bytes, context, delivered: false })
            };
            let data = data.unwrap_or(packed);
            if !is_offered {
                let all = post(Kind::Whole, &[header, data], request.to_context());
                return (request, state.post(to, all));
            }
            let stand = state
                .post(to, post(Kind::Header, &[header], silent(to)))
                .and_then(|_| state.post(to, post(Kind::Data, &[data], request.to_context())));
            (request, stand)
        });
        self.stands(wish, request, stand)
    }

    /// Hands messages over to their handlers, which may make calls.
    #[cold]
    pub(super) fn tell_arrivals(&self) {
        while let Some((arrival, handler)) = self.with(|state| state.active.next()) {
            match handler.filter(|handler| !handler.is_old() || arrival.note.header == 0) {
                Some(handler) => self.hand_over(arrival, &handler),
                None => {
                    log::warn(&format!(
                        "there is no handler for active message {}",
                        arrival.note.id
                    ));
                    if let Body::Offered(_, data) = arrival.body {
                        self.with(|state| drop_data(data, &mut state.endpoint));
                    }
                }
            }
        }
    }

    fn hand_over(&self, arrival: Arrival, handler: &Handler) {
        let Arrival { source, note, body } = arrival;
        let reply = if note.replies { self.reply_to(source) } else { std::ptr::null_mut() };
        match body {
            Body::Whole(bytes) => {
                let header = note.header as usize;
                let (bytes, at) = self.align(bytes, header);
                let (data, len) = (pointer(&bytes[at..]), bytes.len() - at);
                let shown = |header| Shown { header, data, len, is_descriptor: false, reply };
                if !handler.keeps_data || len == 0 {
                    handler.call(&shown(&bytes[..header]));
                    return;
                }
                let bytes = Arc::new(bytes);
                self.keep(data, Kept::Whole(Arc::clone(&bytes), at));
                if handler.call(&shown(&bytes[..header])) != Status::IN_PROGRESS {
                    self.release(data);
                }
            }
            Body::Offered(header, data) => {
                let (len, data) = (data.len(), Box::new(data));
                let descriptor = pointer(std::slice::from_ref(&*data));
                self.keep(descriptor, Kept::Offered(data));
                let (header, data, is_descriptor) = (&*header, descriptor, true);
                let status = handler.call(&Shown { header, data, len, is_descriptor, reply });
                if status != Status::IN_PROGRESS {
                    self.release(descriptor);
                }
            }
            Body::Coming(..) => debug_assert!(false, "it has landed"),
        }
    }

    /// Data at an address as the program wants it: the bytes, and where the data begin in them.
    fn align(&self, bytes: Box<[u8]>, header: usize) -> (Box<[u8]>, usize) {
        let alignment = self.alignment;
        if bytes[header..].as_ptr().addr().is_multiple_of(alignment) {
            return (bytes, header);
        }
        let mut aligned = vec![0; bytes.len() + alignment].into_boxed_slice();
        let begin = aligned[header..].as_ptr().addr();
        let at = header + begin.next_multiple_of(alignment) - begin;
        let len = bytes.len() - header;
        aligned[..header].copy_from_slice(&bytes[..header]);
        aligned[at..at + len].copy_from_slice(&bytes[header..]);
        // No byte may lie behind the data: that is how long they are.
        let mut aligned = aligned.into_vec();
        aligned.truncate(at + len);
        (aligned.into_boxed_slice(), at)
    }

    /// The program gets data by this address.
    fn keep(&self, data: *mut c_void, kept: Kept) {
        self.with(|state| state.active.kept.insert(data.addr(), kept));
    }

    /// The program is done with data; nothing happens if it has received them.
    pub(crate) fn release(&self, data: *mut c_void) {
        self.with(|state| {
            if let Some(Kept::Offered(data)) = state.active.kept.remove(&data.addr()) {
                drop_data(*data, &mut state.endpoint);
            }
        });
    }

    /// Data that the program wants to receive; none that it does not have.
    pub(crate) fn take_data(&self, data: *mut c_void) -> Option<Kept> {
        self.with(|state| state.active.kept.remove(&data.addr()))
    }

    /// Data that were offered are not received.
    pub(crate) fn drop_offer(&self, found: &Probed) {
        self.with(|state| state.endpoint.discard(false, found.id));
    }

    /// The result of a call that has received data.
    pub(crate) fn received(&self, status: Status, length: usize, wish: &Wish) -> Posted {
        let request = self.with_request(wish, |_, request| request);
        request.conclude(status, TagRecvInfo { sender_tag: 0, length });
        self.at_once(wish, request)
    }

    /// Receives data that are still with their sender.
    pub(crate) fn receive_data(&self, found: &Probed, into: Memory, wish: &Wish) -> Posted {
        self.receive_by(wish, |state, request| {
            let into = (into.of(request), request.to_context());
            state.endpoint.receive_found(false, found.id, into)
        })
    }
}

/// An address by which the program knows something.
fn pointer<T>(of: &[T]) -> *mut c_void {
    of.as_ptr().cast_mut().cast()
}

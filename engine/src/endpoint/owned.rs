//! Endpoints for programs that own their buffers, or lend them for the length of a call: all that
//! they need is safe.
//!
//! The unsafe code here is sound because a buffer lives until the completion of its operation. A
//! buffer that was handed over stays in `Endpoint::lent`, which gives it back with the completion
//! only. When an endpoint is dropped, the operations end first, because fields are dropped in
//! order. A call that borrows a buffer returns behind the completion; if it unwinds before, the
//! process aborts.
use super::raw::CompletionKind;
use super::{Address, Completion, EndpointOptions, RawEndpoint, Received, RemoteId};
use super::{OutgoingMessage, PostedReceive, Sent};
use crate::error::{DisconnectReason, Fault, PostError, SetupError};
use crate::mem::span::{Span, Spans};
use crate::net::clock::Deadline;
use crate::port::config::Spin;
use crate::port::counters::Counters;
use rustix::fd::BorrowedFd;
use slab::Slab;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// An endpoint: a port that others find by its [`Address`], and whose messages go to the receives
/// that match them.
///
/// A posted send or receive keeps its buffer until [`Endpoint::poll`] or [`Endpoint::wait`] returns
/// its [`Finished`], with the buffer. [`Endpoint::send`] and [`Endpoint::receive`] borrow one and
/// block. An endpoint belongs to one thread at a time. It makes progress only in its calls.
///
/// ```
/// use ayre::endpoint::{Endpoint, Pattern};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (mut first, mut second) = (Endpoint::open()?, Endpoint::open()?);
/// let to = first.remote(&second.address())?;
/// let other = std::thread::spawn(move || {
///     let request = second.post_receive(Pattern::tag(7), vec![0; 64]).expect("room");
///     let finished = second.wait(None).expect("waits for ever");
///     assert_eq!(finished.request, request);
///     let received = finished.received().expect("a message");
///     finished.buffer[..received.placed as usize].to_vec()
/// });
/// first.send(to, 7, b"hello")?;
/// assert_eq!(other.join().expect("no panic"), b"hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Endpoint {
    /// Above `lent`, whose buffers its operations use until it is dropped.
    raw: RawEndpoint,
    lent: Lent,
    finished: VecDeque<Finished>,
}

/// The name of a posted send or receive, until it has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(u64);

/// The messages that a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: Option<RemoteId>,
    tag: u64,
    ignored: u64,
}

impl Pattern {
    /// Messages with this tag, from any endpoint.
    pub const fn tag(tag: u64) -> Self {
        Self { source: None, tag, ignored: 0 }
    }

    /// All messages, from any endpoint.
    pub const fn any() -> Self {
        Self { source: None, tag: 0, ignored: u64::MAX }
    }

    /// Ignores these bits of the tag.
    pub const fn ignoring(mut self, bits: u64) -> Self {
        self.ignored = bits;
        self
    }

    /// Accepts only messages from this endpoint.
    pub const fn from(mut self, remote: RemoteId) -> Self {
        self.source = Some(remote);
        self
    }

    const fn tag_and_ignored(&self) -> (u64, u64) {
        (self.tag & !self.ignored, self.ignored)
    }
}

/// A send or a receive that has finished.
#[derive(Debug)]
pub struct Finished {
    /// The request, as [`Endpoint::post_send`] or [`Endpoint::post_receive`] returned it.
    pub request: RequestId,
    /// The buffer that was handed over.
    pub buffer: Vec<u8>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a send or a receive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message was sent, and its buffer is free.
    Sent,
    /// A message is in the buffer.
    Received(Received),
    /// The receive was [cancelled](Endpoint::cancel).
    Cancelled,
    /// The request failed. The buffer of a receive may contain the beginning of a message.
    Failed(Fault),
}

impl Finished {
    /// The message that was received.
    ///
    /// # Errors
    /// The fault of the request; [`Fault::Malformed`] if it was a send, or was cancelled.
    pub const fn received(&self) -> Result<Received, Fault> {
        match self.outcome {
            Outcome::Received(received) => Ok(received),
            Outcome::Failed(fault) => Err(fault),
            Outcome::Sent | Outcome::Cancelled => Err(Fault::Malformed),
        }
    }
}

/// A send or a receive that was not posted, with its buffer.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct NotPosted {
    /// The reason.
    #[source]
    pub error: PostError,
    /// The buffer that was handed over.
    pub buffer: Vec<u8>,
}

impl fmt::Debug for NotPosted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, out)
    }
}

impl Endpoint {
    /// Opens an endpoint as the user's `AYRE_*` variables say.
    ///
    /// # Errors
    /// As [`Endpoint::open_with`]; [`SetupError::Environment`] where a variable is wrong.
    pub fn open() -> Result<Self, SetupError> {
        Ok(Self::over(RawEndpoint::open(Spin::DEDICATED)?))
    }

    /// Opens an endpoint with these options.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses memory, descriptors or sockets, or this host
    /// does not have the address that was chosen.
    pub fn open_with(options: &EndpointOptions) -> Result<Self, SetupError> {
        Ok(Self::over(RawEndpoint::open_with(options)?))
    }

    fn over(raw: RawEndpoint) -> Self {
        Self { raw, lent: Lent::default(), finished: VecDeque::new() }
    }

    /// Where other endpoints find this one: bytes to be passed on by any means.
    pub fn address(&self) -> Address {
        self.raw.address()
    }

    /// Names the endpoint at this address, and begins to connect with it.
    ///
    /// # Errors
    /// [`SetupError::Exhausted`] if there is no room for one more; [`SetupError::NoLink`] if the
    /// endpoint is on another host, and no link is possible.
    pub fn remote(&mut self, address: &Address) -> Result<RemoteId, SetupError> {
        self.raw.remote(address)
    }

    /// Forgets a remote. Returns false if pending requests use it, or if it is unknown.
    pub fn forget(&mut self, remote: RemoteId) -> bool {
        self.raw.forget(remote)
    }

    /// Returns why a remote cannot be reached any more; `None` while it can, or might.
    pub fn reason(&self, remote: RemoteId) -> Option<&DisconnectReason> {
        self.raw.reason(remote)
    }

    /// Counters of refused and malformed inputs.
    pub fn counters(&self) -> Counters {
        self.raw.counters()
    }

    /// Posts a send and returns at once. Messages from one endpoint to another arrive in order.
    ///
    /// # Errors
    /// [`NotPosted`] returns the buffer. Its error is [`PostError::Busy`] if a later call may
    /// succeed, for example while the connection is being made. It is a fault if the remote is dead
    /// or unknown, or memory is short.
    pub fn post_send(
        &mut self,
        to: RemoteId,
        tag: u64,
        buffer: Vec<u8>,
    ) -> Result<RequestId, NotPosted> {
        let (request, bytes) = self.lent.lend(buffer);
        match self.raw.send(to, &outgoing(tag, bytes, request)) {
            Ok(Sent::Completed) => {
                let buffer = self.lent.take(request).unwrap_or_default();
                self.finished.push_back(Finished { request, buffer, outcome: Outcome::Sent });
            }
            Ok(Sent::Pending) => {}
            Err(error) => return Err(self.not_posted(request, error)),
        }
        Ok(request)
    }

    /// Posts a receive and returns at once. The oldest message that matches goes into the buffer.
    /// The part of it beyond the buffer is lost.
    ///
    /// # Errors
    /// [`NotPosted`] returns the buffer. Its error is a fault: the source is unknown, or memory is
    /// short.
    pub fn post_receive(
        &mut self,
        pattern: Pattern,
        buffer: Vec<u8>,
    ) -> Result<RequestId, NotPosted> {
        let (request, into) = self.lent.lend(buffer);
        match self.raw.receive(incoming(pattern, into, request)) {
            Ok(()) => Ok(request),
            Err(error) => Err(self.not_posted(request, error)),
        }
    }

    /// Cancels a receive that has no message yet. It then finishes as [`Outcome::Cancelled`].
    /// Returns false if the receive has a message or has finished, or if the request is a send.
    pub fn cancel(&mut self, request: RequestId) -> bool {
        let Self { raw, lent, finished } = self;
        lent.key_of(request).is_some() && raw.cancel_now(request.0, |end| lent.end(end, finished))
    }

    /// Looks for the oldest message that matches, and leaves it there.
    pub fn probe(&mut self, pattern: Pattern) -> Option<Received> {
        self.progress();
        Some(self.raw.find(pattern.source, Some(pattern.tag_and_ignored()))?.message)
    }

    /// Makes progress, and returns the oldest request that has finished.
    pub fn poll(&mut self) -> Option<Finished> {
        self.progress();
        self.finished.pop_front()
    }

    /// Waits until a request has finished, at most for `timeout`; without a limit if that is
    /// `None`. Returns `None` after the timeout.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Option<Finished> {
        let until = self.raw.port.clock.deadline(timeout);
        loop {
            if let Some(finished) = self.poll() {
                return Some(finished);
            }
            if until.is_some_and(|until| self.raw.port.clock.is_over(until)) {
                return None;
            }
            self.sleep(until);
        }
    }

    /// Sends a message, and waits until its bytes are no longer needed.
    ///
    /// # Errors
    /// A fault where the remote is dead or unknown, or memory is short.
    pub fn send(&mut self, to: RemoteId, tag: u64, bytes: &[u8]) -> Result<(), Fault> {
        let guard = AbortOnUnwind;
        // SAFETY: the borrow keeps others from writing, and this call returns when no operation
        // uses the bytes.
        let bytes = Spans::from(unsafe { Span::read_only(bytes.as_ptr(), bytes.len()) });
        let request = self.lent.borrow();
        let message = outgoing(tag, bytes, request);
        let mut rounds = 0;
        let outcome = loop {
            match self.raw.send(to, &message) {
                Ok(Sent::Completed) => break self.lent.cut(request, Outcome::Sent),
                Ok(Sent::Pending) => break self.finish(request),
                Err(PostError::Fault(why)) => break self.lent.cut(request, Outcome::Failed(why)),
                Err(PostError::Busy(_)) => self.pause(&mut rounds),
            }
        };
        debug_assert!(self.lent.key_of(request).is_none(), "no operation uses the borrowed bytes");
        std::mem::forget(guard);
        match outcome {
            Outcome::Failed(why) => Err(why),
            _ => Ok(()),
        }
    }

    /// Waits until a message that matches is in the buffer. The part of it beyond the buffer is
    /// lost.
    ///
    /// # Errors
    /// A fault where the source is unknown or has died, or memory is short.
    pub fn receive(&mut self, pattern: Pattern, buffer: &mut [u8]) -> Result<Received, Fault> {
        let guard = AbortOnUnwind;
        // SAFETY: the borrow is exclusive, and this call returns when no operation uses the bytes.
        let into = Spans::from(unsafe { Span::new(buffer.as_mut_ptr(), buffer.len()) });
        let request = self.lent.borrow();
        let outcome = match self.raw.receive(incoming(pattern, into, request)) {
            Ok(()) => self.finish(request),
            Err(PostError::Fault(why)) => self.lent.cut(request, Outcome::Failed(why)),
            Err(PostError::Busy(_)) => self.lent.cut(request, Outcome::Failed(Fault::NoMemory)),
        };
        debug_assert!(self.lent.key_of(request).is_none(), "no operation uses the borrowed bytes");
        std::mem::forget(guard);
        match outcome {
            Outcome::Received(received) => Ok(received),
            Outcome::Failed(why) => Err(why),
            Outcome::Sent | Outcome::Cancelled => Err(Fault::Malformed),
        }
    }

    /// Looks at all remotes at once, sends what is due, and neither yields nor sleeps. For threads
    /// that serve the endpoint in turns, at rest or not.
    pub(crate) fn serve(&mut self) {
        let Self { raw, lent, finished } = self;
        raw.serve(|end| lent.end(end, finished));
    }

    /// As [`Endpoint::serve`], but looks at the links only, once, and puts acknowledgements off.
    /// Whether there was anything.
    pub(crate) fn glance(&mut self) -> bool {
        let Self { raw, lent, finished } = self;
        raw.glance(|end| lent.end(end, finished)) || !finished.is_empty()
    }

    /// Sends to a remote what was posted, whatever is under way.
    pub(crate) fn push_out(&mut self, to: RemoteId) {
        self.raw.push_out(to);
    }

    /// The oldest request that has finished, as far as [`Endpoint::serve`] has seen.
    pub(crate) fn next_finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// Delivers what was sent to other hosts, at most for this long.
    pub(crate) fn deliver(&mut self, limit: Duration) {
        self.raw.port.deliver(limit);
    }

    /// Returns a descriptor for event loops. It is readable when the endpoint has work, while it
    /// [rests](Endpoint::rest).
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }

    /// Prepares for sleep in an event loop of the program, at [`Endpoint::as_fd`]. Returns false if
    /// the endpoint has work now: poll it, and do not sleep.
    pub fn rest(&mut self) -> bool {
        let Self { raw, lent, finished } = self;
        finished.is_empty() && raw.rest(|end| lent.end(end, finished))
    }

    /// Ends a rest.
    pub fn wake(&mut self) {
        self.raw.wake();
    }

    fn progress(&mut self) {
        let Self { raw, lent, finished } = self;
        raw.progress(|end| lent.end(end, finished));
    }

    /// Sleeps until something comes or the deadline is over; may return before.
    fn sleep(&mut self, until: Option<Deadline>) {
        let Self { raw, lent, finished } = self;
        raw.wait_until(until, |end| lent.end(end, finished));
    }

    /// Waits for room, which no event announces.
    fn pause(&mut self, rounds: &mut u32) {
        *rounds += 1;
        if *rounds < YIELDS {
            std::thread::yield_now();
            self.progress();
        } else {
            self.sleep(self.raw.port.clock.deadline(Some(PAUSE)));
        }
    }

    /// Waits for the completion of a request whose buffer is borrowed.
    fn finish(&mut self, request: RequestId) -> Outcome {
        loop {
            self.progress();
            if let Some(outcome) = self.lent.outcome(request) {
                return outcome;
            }
            self.sleep(None);
        }
    }

    fn not_posted(&mut self, request: RequestId, error: PostError) -> NotPosted {
        debug_assert!(self.lent.key_of(request).is_some(), "it was never under way");
        NotPosted { error, buffer: self.lent.take(request).unwrap_or_default() }
    }
}

/// Yields of a call that waits for room, before it sleeps.
const YIELDS: u32 = 64;
/// How long it sleeps at a time.
const PAUSE: Duration = Duration::from_micros(250);

fn outgoing(tag: u64, bytes: Spans, request: RequestId) -> OutgoingMessage {
    let context = request.0.into();
    OutgoingMessage { tag: Some(tag), data: None, bytes, context, delivered: false }
}

fn incoming(pattern: Pattern, into: Spans, request: RequestId) -> PostedReceive {
    let tag = Some(pattern.tag_and_ignored());
    PostedReceive { source: pattern.source, tag, into, context: request.0.into(), many: None }
}

/// A borrowed buffer must not be freed while an operation uses it.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// The buffers of requests under way.
#[derive(Debug, Default)]
struct Lent {
    requests: Slab<Request>,
    /// Of the next request: an old name does not find a new one.
    generation: u32,
}

#[derive(Debug)]
struct Request {
    generation: u32,
    buffer: Buffer,
}

#[derive(Debug)]
enum Buffer {
    Owned(Vec<u8>),
    /// Of a call that waits for the outcome.
    Borrowed(Option<Outcome>),
}

impl Lent {
    /// Keeps a buffer for a request, whose operation may read and write it.
    fn lend(&mut self, mut buffer: Vec<u8>) -> (RequestId, Spans) {
        // SAFETY: the buffer stays in this table, untouched, until the operation has ended.
        let bytes = unsafe { Span::new(buffer.as_mut_ptr(), buffer.len()) };
        (self.insert(Buffer::Owned(buffer)), Spans::from(bytes))
    }

    /// A request whose buffer its caller keeps.
    fn borrow(&mut self) -> RequestId {
        self.insert(Buffer::Borrowed(None))
    }

    fn insert(&mut self, buffer: Buffer) -> RequestId {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let key = self.requests.insert(Request { generation, buffer });
        debug_assert!(u32::try_from(key).is_ok(), "a name has 32 bits for the place");
        RequestId(u64::from(generation) << 32 | key as u64)
    }

    fn key_of(&self, request: RequestId) -> Option<usize> {
        let key = request.0 as u32 as usize;
        let found = self.requests.get(key)?;
        (found.generation == (request.0 >> 32) as u32).then_some(key)
    }

    /// Ends a request that has no operation, and returns its buffer.
    fn take(&mut self, request: RequestId) -> Option<Vec<u8>> {
        let key = self.key_of(request)?;
        match self.requests.remove(key).buffer {
            Buffer::Owned(buffer) => Some(buffer),
            Buffer::Borrowed(_) => None,
        }
    }

    /// Ends a borrowing request that has no operation, with this outcome.
    fn cut(&mut self, request: RequestId, outcome: Outcome) -> Outcome {
        self.take(request);
        outcome
    }

    /// The outcome of a borrowing request, which ends it.
    fn outcome(&mut self, request: RequestId) -> Option<Outcome> {
        let key = self.key_of(request)?;
        let Buffer::Borrowed(Some(outcome)) = self.requests[key].buffer else { return None };
        debug_assert_ne!(outcome, Outcome::Cancelled, "only a name that was returned is cancelled");
        self.requests.remove(key);
        Some(outcome)
    }

    /// An operation has ended.
    fn end(&mut self, completion: Completion, finished: &mut VecDeque<Finished>) {
        let request = RequestId(completion.context as u64);
        let outcome = match (completion.result, completion.what) {
            (Err(fault), _) => Outcome::Failed(fault),
            (Ok(()), CompletionKind::Sent) => Outcome::Sent,
            (Ok(()), CompletionKind::Received(received)) => Outcome::Received(received),
            (Ok(()), CompletionKind::Cancelled) => Outcome::Cancelled,
            // Remotes know no memory of an endpoint that exposes none.
            (Ok(()), _) => return,
        };
        let Some(key) = self.key_of(request) else {
            debug_assert!(false, "each completion belongs to a request");
            return;
        };
        match &mut self.requests[key].buffer {
            Buffer::Borrowed(place) => {
                debug_assert_eq!(*place, None, "a request ends once");
                *place = Some(outcome);
            }
            Buffer::Owned(buffer) => {
                let buffer = std::mem::take(buffer);
                self.requests.remove(key);
                finished.push_back(Finished { request, buffer, outcome });
            }
        }
    }
}

//! Endpoints that meet over the network, though they are of one host and one thread.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use ayre::endpoint::raw::{
    Completion, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span, Spans,
};
use ayre::endpoint::{Address, RemoteId};
use ayre::{EndpointOptions, Fault, PostError, Spin};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A silence that no test outlasts by being slow.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// One that is soon over.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// At the loopback interface, and as if on a host of its own.
pub(crate) fn apart(is_plain: bool) -> EndpointOptions {
    let options = here().apart().silence(LONG);
    if is_plain { options.plain() } else { options }
}

/// At the loopback interface.
pub(crate) fn here() -> EndpointOptions {
    let options = EndpointOptions::new().spin(Spin::SHARED).linger(Duration::ZERO);
    options.at(Ipv4Addr::LOCALHOST.into())
}

pub(crate) fn span(bytes: &mut [u8]) -> Spans {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }.into()
}

/// A tagged message.
pub(crate) fn message(tag: u64, bytes: &mut [u8], delivered: bool) -> OutgoingMessage {
    OutgoingMessage {
        tag: Some(tag),
        data: None,
        bytes: span(bytes),
        context: tag.into(),
        delivered,
    }
}

/// A receive of it, from anybody.
pub(crate) fn receive(tag: u64, into: &mut [u8]) -> PostedReceive {
    let tagged = Some((tag, 0));
    PostedReceive { source: None, tag: tagged, into: span(into), context: tag.into(), many: None }
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// An endpoint and what has ended at it.
pub(crate) struct Side {
    pub(crate) endpoint: RawEndpoint,
    pub(crate) ends: Vec<Completion>,
}

impl Side {
    pub(crate) fn open(options: &EndpointOptions) -> Self {
        Self { endpoint: RawEndpoint::open_with(options).expect("an endpoint"), ends: Vec::new() }
    }

    pub(crate) fn poll(&mut self) {
        let Self { endpoint, ends } = self;
        endpoint.progress(|end| ends.push(end));
    }

    pub(crate) fn address(&self) -> Address {
        self.endpoint.address()
    }

    pub(crate) fn remote(&mut self, other: &Self) -> RemoteId {
        self.endpoint.remote(&other.address()).expect("an endpoint that is reached")
    }

    /// The completions with their outcomes, in the order of their contexts.
    pub(crate) fn results(&self) -> Vec<(u64, Result<(), Fault>)> {
        let mut results: Vec<_> =
            self.ends.iter().map(|end| (end.context as u64, end.result)).collect();
        results.sort_by_key(|end| end.0);
        results
    }

    /// Sends if there is room and a connection.
    pub(crate) fn try_send(&mut self, to: RemoteId, message: &OutgoingMessage) -> Option<Sent> {
        match self.endpoint.send(to, message) {
            Ok(sent) => Some(sent),
            Err(PostError::Busy(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Polls all of them until it is so; the watchdog ends it if it never is.
pub(crate) fn poll_until<const N: usize>(
    mut sides: [&mut Side; N],
    mut is_so: impl FnMut(&mut [&mut Side; N]) -> bool,
) {
    while !is_so(&mut sides) {
        sides.iter_mut().for_each(|side| side.poll());
        // Keepers need the processor, too.
        std::thread::yield_now();
    }
}

/// Sends as soon as there is room and a connection.
pub(crate) fn send(
    [from, to]: [&mut Side; 2],
    remote: RemoteId,
    message: &OutgoingMessage,
) -> Sent {
    let mut sent = None;
    poll_until([from, to], |[from, _]| {
        sent = from.try_send(remote, message);
        sent.is_some()
    });
    sent.expect("it was sent")
}

/// A message of this tag from one to the other, who receives it.
pub(crate) fn pass([from, to]: [&mut Side; 2], remote: RemoteId, tag: u64) {
    let (mut bytes, mut room) = (pattern(40, tag as usize), [0; 40]);
    to.endpoint.receive(receive(tag, &mut room)).expect("there is room");
    let sent = send([&mut *from, &mut *to], remote, &message(tag, &mut bytes, false));
    assert_eq!(sent, Sent::Completed);
    let before = to.ends.len();
    poll_until([from, to], |[_, to]| to.ends.len() > before);
    let end = to.ends.pop().expect("it came");
    assert_eq!((end.context, end.result, &room[..]), (tag.into(), Ok(()), &bytes[..]));
}

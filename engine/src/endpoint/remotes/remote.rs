//! An endpoint that this one knows, and how the two stand.
use super::super::RemoteId;
use super::super::address::Address;
use super::super::stall::Stall;
use crate::error::DisconnectReason;
use crate::machine::processors::Processors;
use crate::mem::inject::Process;
use crate::mem::ring::{RingReceiver, RingSender};
use crate::net::clock::Deadline;
use crate::port::attach::BegunLink;
use crate::port::setup::Begun;
use ayre_proto::units::PeerId;
use std::time::{Duration, Instant};

/// How we stand with a remote.
#[derive(Debug)]
pub(in crate::endpoint) enum ConnectionState {
    /// Nobody has called.
    Unconnected,
    /// We have.
    Calling(Call),
    Connected,
    /// Nothing goes to it any more.
    Ended(DisconnectReason),
}

/// A call that was not answered yet.
#[derive(Debug)]
pub(in crate::endpoint) enum Call {
    /// It found no room among the callers, or was closed: when it is tried again.
    Retry(Deadline),
    Local(Begun),
    /// To another host.
    Link(BegunLink),
}

/// The parts of a connection with a remote, besides its lanes.
#[derive(Debug)]
pub(in crate::endpoint) struct ConnectionParts {
    pub(in crate::endpoint) ring_out: Option<RingSender>,
    pub(in crate::endpoint) ring_in: Option<RingReceiver>,
    /// It is one of another process of this host.
    pub(in crate::endpoint) is_neighbour: bool,
    /// The processors that a neighbour may run on, as it was when it was connected.
    pub(in crate::endpoint) processors: Option<Box<Processors>>,
}

/// An endpoint this one knows.
#[derive(Debug)]
pub(in crate::endpoint) struct Remote {
    id: RemoteId,
    address: Address,
    /// It is one of another process of this host.
    is_neighbour: bool,
    state: ConnectionState,
    /// The serial number of its beginning, or of its end: which of two was earlier.
    since: u64,
    /// Since when its calls are closed without a word, and nothing else was heard of it.
    closed: Option<Instant>,
    /// Since when it is called, or since that was told as long; none where it is not.
    called: Option<Instant>,
    /// Why it is called over the network, though it is of this host.
    detour: Option<DisconnectReason>,
    /// Where it is connected.
    peer: Option<PeerId>,
    /// Its number, while something may be posted to it: not while a long write leaves.
    open: Option<RemoteId>,
    /// Where it was connected last.
    at: PeerId,
    ring_out: Option<RingSender>,
    ring_in: Option<RingReceiver>,
    stall: Stall,
    /// One of the two has no memory for what the other one has sent: which.
    shut_out: Option<DisconnectReason>,
    /// The process whose memory holds messages that wait for their receives; none before the first.
    process: Option<Option<Process>>,
    /// The processors that a neighbour may run on, as it was when it was connected.
    processors: Option<Box<Processors>>,
}

impl Remote {
    /// One of which nobody has called the other.
    pub(super) fn new(id: RemoteId, address: Address, is_neighbour: bool, since: u64) -> Self {
        Self {
            id,
            address,
            is_neighbour,
            state: ConnectionState::Unconnected,
            since,
            closed: None,
            called: None,
            detour: None,
            peer: None,
            open: None,
            at: PeerId(0),
            ring_out: None,
            ring_in: None,
            stall: Stall::default(),
            shut_out: None,
            process: None,
            processors: None,
        }
    }

    pub(in crate::endpoint) const fn id(&self) -> RemoteId {
        self.id
    }

    pub(in crate::endpoint) const fn address(&self) -> &Address {
        &self.address
    }

    pub(in crate::endpoint) const fn state(&self) -> &ConnectionState {
        &self.state
    }

    /// Whether it is called or connected.
    pub(in crate::endpoint) const fn is_used(&self) -> bool {
        matches!(self.state, ConnectionState::Calling(_) | ConnectionState::Connected)
    }

    /// The call over the network that it has not answered yet.
    pub(in crate::endpoint) const fn call_remote(&self) -> Option<&BegunLink> {
        match &self.state {
            ConnectionState::Calling(Call::Link(call)) => Some(call),
            _ => None,
        }
    }

    pub(in crate::endpoint) const fn is_neighbour(&self) -> bool {
        self.is_neighbour
    }

    /// The serial number of its beginning, or of its end.
    pub(super) const fn since(&self) -> u64 {
        self.since
    }

    /// Why it is called over the network, though it is of this host.
    pub(in crate::endpoint) const fn detour(&self) -> Option<&DisconnectReason> {
        self.detour.as_ref()
    }

    /// It is called over the network, for this reason if it is of this host.
    pub(in crate::endpoint) fn take_detour(&mut self, why: Option<DisconnectReason>) {
        self.detour = why;
    }

    /// Where it is connected.
    #[inline(always)]
    pub(in crate::endpoint) const fn peer(&self) -> Option<PeerId> {
        self.peer
    }

    /// Where it is connected, if something may be posted to it, and this is its number.
    #[inline(always)]
    pub(in crate::endpoint) fn way(&self, to: RemoteId) -> Option<PeerId> {
        (self.open == Some(to)).then_some(self.at)
    }

    /// Nothing may be posted until [`Remote::let_through`]: it would overtake what leaves.
    // spec: ENV-30
    pub(in crate::endpoint) fn hold_back(&mut self) {
        debug_assert!(self.open.is_some(), "one write leaves at a time");
        self.open = None;
    }

    /// The long write has left: other operations may be posted again.
    pub(in crate::endpoint) fn let_through(&mut self) {
        debug_assert!(self.open.is_none() && self.peer.is_some(), "it was held back");
        self.open = Some(self.id).filter(|_| self.shut_out.is_none());
    }

    /// One of the two has no memory for what the other one has sent: nothing more is posted.
    pub(in crate::endpoint) fn shut_out(&mut self, why: DisconnectReason) {
        (self.shut_out, self.open) = (Some(why), None);
    }

    pub(in crate::endpoint) const fn shut_out_for(&self) -> Option<&DisconnectReason> {
        self.shut_out.as_ref()
    }

    #[inline]
    pub(in crate::endpoint) const fn ring_out(&mut self) -> Option<&mut RingSender> {
        self.ring_out.as_mut()
    }

    #[inline]
    pub(in crate::endpoint) const fn ring_in(&mut self) -> Option<&mut RingReceiver> {
        self.ring_in.as_mut()
    }

    pub(in crate::endpoint) const fn stall(&mut self) -> &mut Stall {
        &mut self.stall
    }

    /// Whether its memory can be read, as far as is known; `find` says whose it is.
    pub(in crate::endpoint) fn is_readable(
        &mut self,
        find: impl FnOnce(Option<PeerId>) -> Option<Process>,
    ) -> bool {
        let peer = self.peer;
        self.process.get_or_insert_with(|| find(peer)).is_some()
    }

    /// Reads from its memory, if that is possible. From then on it is not, where it was not.
    pub(in crate::endpoint) fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let process = self.process.as_ref().and_then(Option::as_ref);
        let is_read = process.is_some_and(|process| process.read(address, into));
        if !is_read {
            self.process = Some(None);
        }
        is_read
    }

    /// The processors of one that is connected, as far as is known.
    pub(in crate::endpoint) fn processors(&self) -> Option<&Processors> {
        self.peer.and(self.processors.as_deref())
    }

    /// It is found here from now on.
    pub(super) fn locate(&mut self, address: Address, is_neighbour: bool) {
        debug_assert!(self.address.name() == address.name(), "a name is for ever");
        self.address = address;
        if self.peer.is_none() {
            self.is_neighbour = is_neighbour;
        }
    }

    /// It was called at this time, or before, and is called so now.
    pub(super) fn begin_call(&mut self, call: Call, now: Instant) {
        debug_assert!(self.peer.is_none(), "who is connected is not called");
        self.called.get_or_insert(now);
        self.state = ConnectionState::Calling(call);
    }

    /// It is called no longer.
    pub(super) fn hang_up(&mut self) -> Option<Call> {
        if !matches!(self.state, ConnectionState::Calling(_)) {
            return None;
        }
        match std::mem::replace(&mut self.state, ConnectionState::Unconnected) {
            ConnectionState::Calling(call) => Some(call),
            _ => None,
        }
    }

    /// It has closed a call without a word, at this time or since before.
    pub(in crate::endpoint) fn note_closed(&mut self, now: Instant) {
        self.closed.get_or_insert(now);
    }

    /// For how long it has closed its calls without a word.
    pub(in crate::endpoint) fn closed_for(&self, now: Instant) -> Option<Duration> {
        self.closed.map(|since| now.saturating_duration_since(since))
    }

    /// Whether it was called for so long: that is told once.
    pub(in crate::endpoint) fn is_overdue(&mut self, limit: Duration, now: Instant) -> bool {
        self.called.take_if(|since| now.saturating_duration_since(*since) >= limit).is_some()
    }

    pub(super) fn connect(&mut self, peer: PeerId, ends: ConnectionParts) {
        debug_assert!(self.peer.is_none() && self.open.is_none(), "it has one connection");
        debug_assert!(!matches!(self.state, ConnectionState::Calling(_)), "it was hung up");
        let ConnectionParts { ring_out, ring_in, is_neighbour, processors } = ends;
        (self.ring_out, self.ring_in) = (ring_out, ring_in);
        (self.is_neighbour, self.processors) = (is_neighbour, processors);
        (self.peer, self.open, self.at) = (Some(peer), Some(self.id), peer);
        self.shut_out = None;
        self.stall = Stall::default();
        self.state = ConnectionState::Connected;
        (self.closed, self.called) = (None, None);
    }

    /// Nothing goes to it any more, who was never connected.
    pub(in crate::endpoint) fn reject(&mut self, why: DisconnectReason) {
        debug_assert!(self.peer.is_none(), "it is not connected");
        debug_assert!(!matches!(self.state, ConnectionState::Calling(_)), "it was hung up");
        self.state = ConnectionState::Ended(why);
    }

    pub(super) fn end(&mut self, since: u64, why: DisconnectReason) {
        debug_assert!(!matches!(self.state, ConnectionState::Calling(_)), "it was hung up");
        debug_assert!(self.since < since, "serial numbers grow");
        self.since = since;
        (self.peer, self.open) = (None, None);
        (self.ring_in, self.ring_out, self.process) = (None, None, None);
        (self.closed, self.called) = (None, None);
        self.state = ConnectionState::Ended(why);
    }
}

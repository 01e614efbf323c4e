//! The effects of a node: on its program and its memory, and on the ways to its peers.
//!
//! There are two traits, [`Program`] and [`Wire`], because an arriving command reaches memory while
//! its answer goes into a frame.
use super::initiator::{Ended, Landing, ResponseLane};
use super::lane::{Entry, Lane};
use super::linked::{Network, Transmit};
use super::notes::Notes;
use super::target::{Delivery, Exchange, Exposed, Resources};
use crate::alu::{Atomic, Fetched};
use crate::command::{Head, RESPONSE_BYTES};
use crate::deposit::message::Posted;
use crate::fault::{self, Fault};
use crate::lane::{Malformed, Status};
use crate::link::frame::{Channel, Header};
use crate::node::carrier::frames::{Frame, Frames, Memory};
use crate::node::carrier::lanes::Offer;
use crate::notify::Notification;
use crate::units::{Extent, PeerId};
use crate::xlate::Table;
use core::fmt::Debug;

/// The program of a node: memory that peers may reach, local ends of operations, and the receiver
/// of events.
pub trait Program: Exposed {
    /// Names memory for the local end of an operation: the source of a put, or the destination of a
    /// get.
    type Local: Debug;
    /// Names what becomes of a deposit message's answer.
    type Reply: Debug;

    /// Copies data of a put out of its local end, from this offset on.
    fn load(&self, local: &Self::Local, offset: u64, into: &mut [u8]);
    /// Copies data of a get to its local end, from this offset on.
    fn land(&mut self, local: &Self::Local, offset: u64, data: &[u8]);
    /// Carries a reply out with the data, and the value that the message has given; see
    /// [`Landing::reply`].
    fn reply(
        &mut self,
        reply: &mut Self::Reply,
        given: u64,
        data: &[u8],
    ) -> Option<(fault::Status, Option<Notification>)>;
    /// An operation on a peer has ended.
    fn ended(&mut self, peer: PeerId, ended: &Ended);
    /// A peer offers something.
    fn offered(&mut self, peer: PeerId, offer: Offer);
    /// A connection has ended, and all operations on its peer with it.
    fn gone(&mut self, peer: PeerId, why: Fault);
}

/// A lane between two ports of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneName {
    /// The lane of commands.
    Commands,
    /// The lane of answers to commands.
    Responses,
    /// The lane of short messages.
    Messages,
    /// The lane of a queue of the reader, which has this number among those of the connection.
    Queue(usize),
}

/// A word by which one port reports its progress to another one of the same host; counts only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordName {
    /// Commands executed in all. The answers of all that are counted were stored before.
    Done,
    /// Notifications taken in all.
    Noted,
    /// Lines of a lane given back in all, modulo 2^32.
    Lines(LaneName),
}

/// The ways to a node's peers: the network, and lanes that ports of one host share.
pub trait Wire {
    /// Sends a frame to a linked peer.
    fn transmit(&mut self, to: PeerId, header: &Header, payload: &[u8]);
    /// Makes buffers for frames of a linked peer on a channel that has `left` of them. Returns the
    /// number of new ones.
    // spec: WIRE-12
    fn renew(&mut self, from: PeerId, channel: Channel, left: u32) -> u32;
    /// See [`Network::is_port_closed`].
    fn is_port_closed(&mut self, peer: PeerId) -> bool {
        let _ = peer;
        false
    }

    /// Stores a record in a lane of a peer of this host, for which there is room.
    fn store(&mut self, to: PeerId, lane: LaneName, record: Entry);
    /// Stores a word for a peer of this host.
    fn tell(&mut self, to: PeerId, word: WordName, value: u64);
    /// Hands an offer to a peer of this host.
    fn offer(&mut self, to: PeerId, offer: Offer);
}

/// The outside world of a node.
#[derive(Debug)]
pub struct Host<'a, P, W> {
    /// The program.
    pub program: &'a mut P,
    /// The ways to peers.
    pub wire: &'a mut W,
}

/// The state that all peers of a node share, and the outside world.
pub(super) struct Shared<'a, P, W> {
    pub(super) table: &'a Table,
    pub(super) notes: &'a mut Notes,
    pub(super) program: &'a mut P,
    pub(super) wire: &'a mut W,
}

/// The things that one peer's commands reach.
pub(super) struct Reach<'a, P> {
    pub(super) program: &'a mut P,
    pub(super) notes: &'a mut Notes,
    /// Number of the peer's notifications that the program has taken.
    pub(super) taken: u64,
}

impl<P: Program> Exposed for Reach<'_, P> {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.program.write(to, data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.program.read(from, into);
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.program.store(to, value);
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        self.program.atomic(at, atomic)
    }

    fn carry_out(&mut self, posted: &Posted, at: Extent, exchange: &mut impl Exchange) -> Delivery {
        self.program.carry_out(posted, at, exchange)
    }

    fn give(&self, into: &mut [u8]) {
        self.program.give(into);
    }
}

impl<P: Program> Resources for Reach<'_, P> {
    fn notify(&mut self, notification: Notification) {
        self.notes.raise(notification);
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

/// A lane of answers, and where their data goes.
pub(super) struct Landed<'a, P> {
    pub(super) responses: &'a mut Lane,
    pub(super) program: &'a mut P,
}

impl<P> Landed<'_, P> {
    fn parts(&mut self, len: usize) -> (&[u8], &mut P) {
        let Self { responses, program } = self;
        let data = responses.data::<{ RESPONSE_BYTES / 8 }>();
        debug_assert!(len == data.len(), "all of an answer lands");
        (data, *program)
    }
}

impl<P: Program> ResponseLane<P::Local, P::Reply> for Landed<'_, P> {
    fn lines(&self) -> u32 {
        self.responses.lines()
    }

    fn peek(&self) -> Option<Result<Status, Malformed>> {
        self.responses.status()
    }

    fn head(&self) -> Head {
        self.responses.head()
    }

    fn consume(&mut self, _: &Status) {
        self.responses.consume();
    }
}

impl<P: Program> Landing<P::Local, P::Reply> for Landed<'_, P> {
    fn to_call(&mut self, _: u64, _: usize) {
        debug_assert!(false, "no call of a node waits");
    }

    fn to_memory(&mut self, memory: &P::Local, offset: u64, len: usize) {
        let (data, program) = self.parts(len);
        program.land(memory, offset, data);
    }

    fn reply(
        &mut self,
        reply: &mut P::Reply,
        given: u64,
        len: usize,
    ) -> Option<(fault::Status, Option<Notification>)> {
        let (data, program) = self.parts(len);
        program.reply(reply, given, data)
    }
}

/// The network as a linked peer sees it.
pub(super) struct Line<'a, W> {
    pub(super) peer: PeerId,
    pub(super) wire: &'a mut W,
}

impl<M: Memory, W: Wire> Transmit<M> for Line<'_, W> {
    fn transmit(&mut self, header: &Header, frame: Option<&mut Frame<M>>) {
        let payload = frame.as_ref().map_or(&[][..], |frame| frame.payload());
        self.wire.transmit(self.peer, header, payload);
    }

    fn transmit_part(&mut self, header: &Header, payload: &[u8]) {
        self.wire.transmit(self.peer, header, payload);
    }
}

impl<M: Memory, W: Wire> Network<M> for Line<'_, W> {
    fn renew(&mut self, channel: Channel, left: u32, _now: u64) -> u32 {
        self.wire.renew(self.peer, channel, left)
    }

    fn on_length(&mut self, frames: &Frames<M>, _is_first: bool) {
        debug_assert!(frames.whole() <= frames.longest(), "a frame goes whole or in pieces");
    }

    fn is_port_closed(&mut self) -> bool {
        self.wire.is_port_closed(self.peer)
    }
}

//! A whole node: everything that a port does above links and lanes, without memory of its program,
//! threads, sockets or clock.
//!
//! ```text
//!                      +--------------------- Node ---------------------+
//!  post, deposit ----->| notes  table                                   |
//!  batch, send, flush  |   |      |    +--------- Peer, for each ----+ |
//!  enqueue, dequeue    |   |      |    | initiator --> frames of a   | |--> transmit
//!  receive             |   |      |    | target    <-- link (Linked) | |<-- on_frame
//!  notification <------|---'      '----|           or lanes (SameHost) | |--> store, tell
//!                      |               +-----------------------------+ |<-- on_record, on_word
//!                      +------------------------------------------------+
//!  write, read, atomic, land, ended, gone <--'      '<-- on_time, deadline
//! ```
//!
//! An operation is a call with a result: a ticket, or the reason why it was not posted. Its effects
//! happen later, when the node is given time or receives something. They are made through two
//! traits, [`Program`] and [`Wire`]. Nothing blocks, and nothing is lost. Items without room wait
//! in a bounded place: a frame, a lane, or at their poster.
//!
//! The state is bounded, too: by the number of peers, and for each by its lanes, the frames of its
//! link, [`PENDING_MAX`](crate::limits::PENDING_MAX) operations and the credits.
use super::carrier::QUEUES_MAX;
use super::carrier::frames::Memory;
use super::carrier::lanes::Offer;
use super::connection::Lines;
use super::effects::{Host, LaneName, Line, Program, Shared, Wire, WordName};
use super::initiator::Refused;
use super::lane::Entry;
use super::linked::Linked;
use super::message;
use super::notes::Notes;
use super::peer::{Message, Peer};
use super::posting::Order;
use crate::deposit::message::Posted;
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::limits::PEERS_MAX;
use crate::link::frame::{Header, Kind};
use crate::link::looks::Looks;
use crate::notify::Notification;
use crate::units::{Key, PeerId, Ticket};
use crate::xlate::{Cover, Table};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The reason why something was not posted. Nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The operation is too long, or may find room later.
    Refused(Refused),
    /// The program has to take notifications first.
    NotificationsFull,
    /// The operation is invalid.
    Fault(Fault),
}

impl From<Refused> for PostError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<Fault> for PostError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A node; `M` is the memory of its frames.
#[derive(Debug)]
pub struct Node<M: Memory, P: Program> {
    table: Table,
    notes: Notes,
    /// The peers by number.
    peers: Box<[Option<Peer<M, P>>]>,
    /// Inputs that no correct peer sends.
    malformed: u64,
}

impl<M: Memory, P: Program> Node<M, P> {
    /// A node with room for `peers` peers and `slots` keys.
    pub fn new(peers: usize, slots: usize) -> Self {
        assert!(peers <= PEERS_MAX, "no more peers than a port may have");
        let peers = (0..peers).map(|_| None).collect();
        Self { table: Table::new(slots), notes: Notes::new(), peers, malformed: 0 }
    }

    /// A connection begins with a peer of another host, by a link that is open. The index of the
    /// link at this end is the peer's number.
    pub fn connect(&mut self, peer: PeerId, lines: &Lines, linked: Linked<M>) {
        self.add(peer, Peer::linked(peer, lines, linked));
    }

    /// A connection begins with a peer of this host, by these lanes.
    pub fn join(&mut self, peer: PeerId, lines: &Lines) {
        assert!(lines.ring == 0, "a ring of one host is memory that both have");
        self.add(peer, Peer::of_same_host(peer, lines));
    }

    fn add(&mut self, number: PeerId, peer: Peer<M, P>) {
        let place = &mut self.peers[number.index()];
        assert!(place.is_none(), "a number is one connection's");
        debug_assert!(!self.notes.has_of(number), "an earlier one of its number was forgotten");
        *place = Some(peer);
    }

    /// A connection that has ended is forgotten, with the keys that its peer had and what it has
    /// raised. Its number may be another one's.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where there is none, or it has not ended.
    // spec: LIFE-14
    pub fn forget(&mut self, peer: PeerId) -> Result<(), Fault> {
        let place = self.peers.get_mut(peer.index()).ok_or(Fault::ForeignHandle)?;
        if place.as_ref().is_none_or(|peer| peer.ended().is_none()) {
            return Err(Fault::ForeignHandle);
        }
        *place = None;
        self.notes.forget(peer);
        let held: Vec<Key> = self.table.live(|cover| cover.holder == peer).map(|of| of.0).collect();
        for key in held {
            let revoked = self.table.revoke(key);
            debug_assert!(revoked.is_ok(), "a live key can be revoked");
        }
        Ok(())
    }

    /// A connection, if there is one of this number.
    pub fn peer(&self, peer: PeerId) -> Option<&Peer<M, P>> {
        self.peers.get(peer.index())?.as_ref()
    }

    /// Number of inputs that no correct peer sends; each has ended a connection, or a producer's
    /// queue.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// The time when [`Node::on_time`] has something to do next, if nothing happens before.
    pub fn deadline(&self) -> u64 {
        self.peers.iter().flatten().map(Peer::deadline).min().unwrap_or(u64::MAX)
    }

    /// Hands a capability out.
    // spec: KEY-1
    pub fn share(&mut self, cover: Cover) -> Option<Key> {
        self.table.insert(cover)
    }

    /// Takes it back.
    ///
    /// # Errors
    /// [`Fault`] where it is no key that is alive.
    // spec: REV-1
    pub fn revoke(&mut self, key: Key) -> Result<(), Fault> {
        self.table.revoke(key).map(|_| ())
    }

    fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer<M, P>> {
        self.peers.get_mut(peer.index())?.as_mut()
    }

    fn link_mut(&mut self, peer: PeerId) -> Option<&mut Linked<M>> {
        self.peer_mut(peer)?.link_mut()
    }

    fn living(&mut self, peer: PeerId) -> Result<&mut Peer<M, P>, Fault> {
        let peer = self.peer_mut(peer).ok_or(Fault::ForeignHandle)?;
        peer.ended().map_or(Ok(peer), Err)
    }

    /// Returns a living peer, if `operations` more operations may still notify this program.
    // spec: NOTI-8
    fn with_room(&mut self, peer: PeerId, operations: usize) -> Result<&mut Peer<M, P>, PostError> {
        let has_room = self.notes.has_room_for(operations);
        let peer = self.living(peer)?;
        if has_room { Ok(peer) } else { Err(PostError::NotificationsFull) }
    }
}

/// Operations.
impl<M: Memory, P: Program> Node<M, P> {
    /// Posts an operation: put, immediate put, get, atomic, fetching atomic, notification put.
    ///
    /// # Errors
    /// [`PostError`], and nothing has happened.
    // spec: POST-1, POST-2, POST-5, NOTI-8
    pub fn post(
        &mut self,
        to: PeerId,
        order: Order<P::Local>,
        program: &P,
    ) -> Result<Ticket, PostError> {
        order.command.check()?;
        let peer = self.with_room(to, 1)?;
        let ticket = peer.post(order, false, program)?;
        self.notes.reserve();
        Ok(ticket)
    }

    /// Posts several operations, in their order, all or none of them. None waits for an answer.
    ///
    /// # Errors
    /// Those of [`Node::post`].
    // spec: BATCH-2
    pub fn batch(
        &mut self,
        to: PeerId,
        orders: Vec<Order<P::Local>>,
        program: &P,
    ) -> Result<(), PostError> {
        for order in &orders {
            order.command.check()?;
            if order.command.action.answers() || order.shape.rows > 1 {
                return Err(Fault::Malformed.into());
            }
        }
        let peer = self.with_room(to, orders.len())?;
        peer.check_batch(orders.iter().map(|order| order.command), program)?;
        for order in orders {
            let posted = self.living(to)?.post(order, true, program);
            assert!(posted.is_ok(), "what a batch releases finds room");
            self.notes.reserve();
        }
        Ok(())
    }

    /// Posts a deposit message with its data. The bytes that it reads go to the reply, which
    /// expects a given number of them.
    ///
    /// # Errors
    /// Those of [`Node::post`].
    // spec: DEP-13, DEP-27
    pub fn deposit(
        &mut self,
        to: PeerId,
        (posted, data): (&Posted, &[u8]),
        reply: Option<(P::Reply, usize)>,
        program: &P,
    ) -> Result<Ticket, PostError> {
        let message = &posted.message;
        let (brought, read) = match message.brings {
            true => (usize::from(message.len), 0),
            false => (0, usize::from(message.len)),
        };
        // What it reads goes somewhere.
        let wanted = reply.as_ref().map_or(0, |(_, wanted)| *wanted);
        if data.len() != brought || wanted != read || reply.is_some() && !message.is_answered {
            return Err(Fault::Malformed.into());
        }
        message.check()?;
        let peer = self.with_room(to, 1)?;
        let ticket = peer.deposit(posted, data, reply, program)?;
        self.notes.reserve();
        Ok(ticket)
    }

    /// Sends a short message, which is not taken before what was posted before was done.
    ///
    /// # Errors
    /// [`PostError`]: [`Refused::NoRoom`] where the peer's program has to take some first.
    // spec: MSG-1, MSG-2
    pub fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        message::check(data.len())?;
        if self.living(to)?.send(tag, data) { Ok(()) } else { Err(Refused::NoRoom.into()) }
    }

    /// Takes the next message of a peer, if it may be.
    // spec: MSG-3, MSG-10, ERR-6
    pub fn receive<W>(&mut self, from: PeerId, host: &mut Host<'_, P, W>) -> Option<Message> {
        let peer = self.peer_mut(from)?;
        if peer.ended() == Some(Fault::Malformed) {
            return None;
        }
        let received = peer.receive();
        received.unwrap_or_else(|Malformed| {
            self.end(from, Fault::Malformed, host);
            None
        })
    }

    /// Writes a piece to the ring of a peer of another host. Returns its position, which a message
    /// sent behind it may name, or `None` if there is no room until the peer has taken some bytes.
    ///
    /// # Errors
    /// [`Fault`] where the peer has gone.
    // spec: ENV-11, WIRE-14
    pub fn write_ring(&mut self, to: PeerId, piece: &[u8]) -> Result<Option<u64>, Fault> {
        Ok(self.living(to)?.write_ring(piece))
    }

    /// Takes a piece out of the ring that a peer writes, whose position and length a message has
    /// given. Copies as many bytes of it as there is room for.
    ///
    /// # Errors
    /// [`Malformed`] where there can be no such piece, and nothing is taken.
    // spec: ENV-12, WIRE-14
    pub fn take_ring(
        &mut self,
        from: PeerId,
        piece: (u64, usize),
        into: &mut [u8],
    ) -> Result<(), Malformed> {
        self.peer_mut(from).ok_or(Malformed)?.take_ring(piece, into)
    }

    /// Takes the next notification, if there is one.
    // spec: NOTI-4, NOTI-9
    pub fn notification(&mut self) -> Option<Notification> {
        let note = self.notes.take()?.unpack();
        if note.is_raised_at_target() {
            let peer = self.peer_mut(note.source);
            debug_assert!(peer.is_some(), "a forgotten peer's notifications are forgotten, too");
            peer.into_iter().for_each(Peer::take_note);
        }
        Some(note)
    }

    /// Offers a peer a queue of `lines` lines under a name; returns its number among those of the
    /// peer.
    ///
    /// # Errors
    /// [`Fault::Malformed`] where it is too short or too long, or there would be too many.
    // spec: QUE-1, WIRE-9
    pub fn offer_queue(&mut self, to: PeerId, name: u64, lines: u32) -> Result<usize, Fault> {
        let number = self.living(to)?.offer_queue(name, lines).ok_or(Fault::Malformed)?;
        debug_assert!(number < QUEUES_MAX, "there are no more queues");
        Ok(number)
    }

    /// Offers a peer what is no queue: a region, or a way into a depot.
    ///
    /// # Errors
    /// [`PostError`]: [`Refused::NoRoom`] where too much waits that it was offered before.
    // spec: LIM-1
    pub fn offer(&mut self, to: PeerId, offer: Offer) -> Result<(), PostError> {
        if offer.is_queue() {
            return Err(Fault::Malformed.into());
        }
        if self.living(to)?.offer(offer) { Ok(()) } else { Err(Refused::NoRoom.into()) }
    }

    /// Appends a record to a queue that a peer has offered, by its number among those.
    ///
    /// # Errors
    /// [`PostError`]: [`Refused::NoRoom`] where the consumer has to take some first.
    // spec: QUE-3, QUE-4
    pub fn enqueue(&mut self, to: PeerId, queue: usize, record: &[u8]) -> Result<(), PostError> {
        let has_room = self.living(to)?.enqueue(queue, record)?;
        if has_room { Ok(()) } else { Err(Refused::NoRoom.into()) }
    }

    /// Takes the next record that a peer has enqueued in a queue that it was offered.
    // spec: QUE-5
    pub fn dequeue(&mut self, from: PeerId, queue: usize) -> Option<Vec<u8>> {
        let peer = self.peer_mut(from)?;
        let dequeued = peer.dequeue(queue);
        self.malformed += u64::from(dequeued.is_err());
        dequeued.unwrap_or_default()
    }

    /// Whether everything that was posted to a peer has ended. If not, it is asked for, and the
    /// program asks again when an operation has ended.
    ///
    /// # Errors
    /// [`Fault`] where the peer has gone.
    // spec: FLUSH-1
    pub fn flush(&mut self, to: PeerId) -> Result<bool, Fault> {
        self.living(to).map(Peer::flush)
    }
}

/// Input.
impl<M: Memory, P: Program> Node<M, P> {
    /// Takes a frame with a sound header. A frame of a former link changes nothing.
    // spec: LINK-1, LIFE-18
    pub fn on_frame<W: Wire>(
        &mut self,
        (header, payload): (&Header, &[u8]),
        looks: &Looks,
        host: &mut Host<'_, P, W>,
    ) {
        if header.kind == Kind::Reset {
            let links = self.peers.iter_mut().flatten().filter_map(Peer::link_mut);
            for link in links {
                link.on_reset(header, looks.now());
            }
            return;
        }
        let Some(peer) = u16::try_from(header.to).ok().map(PeerId) else { return };
        self.with(peer, host, |peer, shared| peer.on_frame((header, payload), looks, shared));
    }

    /// A peer of this host has stored a record in a lane.
    pub fn on_record<W: Wire>(
        &mut self,
        peer: PeerId,
        lane: LaneName,
        record: &Entry,
        host: &mut Host<'_, P, W>,
    ) {
        self.with(peer, host, |peer, _| peer.on_record(lane, record));
    }

    /// A peer of this host has stored a word.
    pub fn on_word<W: Wire>(
        &mut self,
        peer: PeerId,
        word: WordName,
        value: u64,
        host: &mut Host<'_, P, W>,
    ) {
        self.with(peer, host, |peer, _| peer.on_word(word, value));
    }

    /// A peer of this host offers something.
    pub fn on_offer<W: Wire>(&mut self, peer: PeerId, offer: Offer, host: &mut Host<'_, P, W>) {
        self.with(peer, host, |peer, shared| {
            peer.on_offer(offer)?;
            peer.take_in(shared)
        });
    }

    /// Somebody asks for a link in a peer's name: whether he has to wait; see [`Linked::on_open`].
    // spec: LINK-25
    pub fn on_open(&mut self, peer: PeerId, incarnation: u64, is_believed: bool, now: u64) -> bool {
        let link = self.link_mut(peer);
        link.is_some_and(|link| link.on_open(incarnation, is_believed, now))
    }

    /// A peer of this host has died or left. Commands that it has published are performed before.
    // spec: LIFE-11, LIFE-12
    pub fn on_gone<W: Wire>(&mut self, peer: PeerId, now: u64, host: &mut Host<'_, P, W>) {
        self.with(peer, host, |peer, shared| peer.serve(now, shared));
        if self.living(peer).is_ok() {
            self.end(peer, Fault::PeerDead, host);
        }
    }

    /// Does everything that is due at `now`, and sends posted operations.
    // spec: PROG-2
    pub fn on_time<W: Wire>(&mut self, now: u64, host: &mut Host<'_, P, W>) {
        for number in 0..self.peers.len() {
            let is_due = self.peers[number].as_ref().is_some_and(|peer| peer.deadline() <= now);
            if is_due {
                self.serve(PeerId(number as u16), now, host);
            }
        }
    }

    /// Looks after a peer, whatever is due: a depot may be free that was not, for one.
    pub fn serve<W: Wire>(&mut self, peer: PeerId, now: u64, host: &mut Host<'_, P, W>) {
        self.with(peer, host, |peer, shared| peer.serve(now, shared));
    }

    /// Warm reset of the link with a peer; see [`Linked::resync`].
    // spec: WIRE-11
    pub fn resync<W: Wire>(&mut self, peer: PeerId, now: u64, wire: &mut W) {
        if let Some(link) = self.link_mut(peer) {
            link.resync(now, &mut Line { peer, wire });
        }
    }

    /// Leaves a peer of another host once everything that was posted and sent has arrived.
    // spec: LIFE-16
    pub fn leave(&mut self, peer: PeerId) {
        if let Some(link) = self.link_mut(peer) {
            link.leave();
        }
    }

    /// A step of a peer, and what follows where that has said what no correct peer says, or where
    /// its link has ended.
    // spec: ERR-4, LIFE-11, LIFE-18
    fn with<W>(
        &mut self,
        peer: PeerId,
        host: &mut Host<'_, P, W>,
        step: impl FnOnce(&mut Peer<M, P>, &mut Shared<'_, P, W>) -> Result<(), Malformed>,
    ) {
        let Self { table, notes, peers, .. } = self;
        let Some(Some(found)) = peers.get_mut(peer.index()) else { return };
        let Host { program, wire } = host;
        let done = step(found, &mut Shared { table, notes, program: *program, wire: *wire });
        let is_over = found.ended().is_some();
        let ends = match done {
            Err(Malformed) if !is_over => Some(Fault::Malformed),
            _ => found.closed(),
        };
        if let Some(why) = ends {
            self.end(peer, why, host);
        }
    }

    fn end<W>(&mut self, peer: PeerId, why: Fault, host: &mut Host<'_, P, W>) {
        let Self { table, notes, peers, malformed } = self;
        *malformed += u64::from(why == Fault::Malformed);
        let Some(Some(found)) = peers.get_mut(peer.index()) else { return };
        let Host { program, wire } = host;
        found.end(why, &mut Shared { table, notes, program: *program, wire: *wire });
        debug_assert!(found.ended().is_some(), "nothing is posted to a peer that has gone");
    }
}

//! Calls of programs. None of them waits: see [`Cluster::step`].
use super::frames::LINES;
use super::{Cluster, Event, Local, Member, Program, Refusal, Translations};
use crate::time::Time;
use ayre_proto::deposit::Inlet;
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::Fault;
use ayre_proto::link::life::{State, Why};
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::peer::{Message, Peer};
use ayre_proto::node::{Order, PostError};
use ayre_proto::notify::Notification;
use ayre_proto::units::{Key, PeerId, Ticket};
use ayre_proto::xlate::Cover;
use core::mem;

/// Set-up, which takes no time.
impl Cluster {
    /// Connects two nodes by a link.
    ///
    /// # Panics
    /// If one of them does not exist, both are the same, or they are connected.
    pub fn connect(&mut self, one: u32, other: u32) {
        assert_ne!(one, other, "a node has no link with itself");
        let links = [(one, other), (other, one)].map(|(own, peer)| self.link(own, peer));
        self.connections += 1;
        for ((own, peer), link) in [(one, other), (other, one)].into_iter().zip(links) {
            let member = &mut self.members[own as usize];
            member.node.connect(PeerId(peer as u16), &LINES, link);
            self.schedule(own);
        }
    }

    /// Connects a node with itself, by lanes of its host.
    ///
    /// # Panics
    /// If it does not exist, or it is connected with itself.
    pub fn connect_loopback(&mut self, node: u32) {
        self.members[node as usize].node.join(PeerId(node as u16), &LINES);
    }

    /// A node dies: it hears and says nothing more. Its memory can still be read.
    pub fn kill(&mut self, node: u32) {
        self.is_dead[node as usize] = true;
        // Its timers are forgotten.
        self.members[node as usize].due = u64::MAX;
    }

    /// A node that has died is started anew, with no memory and no connections. Returns the program
    /// that it had, whose memory can still be read.
    ///
    /// # Panics
    /// If it is alive.
    pub fn restart(&mut self, node: u32) -> Program {
        assert!(self.is_dead[node as usize], "it has died before");
        let incarnation = self.members[node as usize].incarnation + 1;
        let fresh = Member::new(self.members.len(), incarnation, &self.profile);
        self.is_dead[node as usize] = false;
        mem::replace(&mut self.members[node as usize], fresh).program
    }

    /// Whether a node is dead.
    pub fn is_dead(&self, node: u32) -> bool {
        self.is_dead[node as usize]
    }

    /// A connection that has ended is forgotten.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where there is none, or it has not ended.
    pub fn forget(&mut self, node: u32, peer: PeerId) -> Result<(), Fault> {
        self.members[node as usize].node.forget(peer)?;
        self.members[node as usize].units.forget(peer);
        Ok(())
    }

    /// A node's program: its memory.
    pub fn program(&self, node: u32) -> &Program {
        &self.members[node as usize].program
    }

    /// A node's program, for changes of its memory.
    pub fn program_mut(&mut self, node: u32) -> &mut Program {
        &mut self.members[node as usize].program
    }

    /// Whether a node is connected with a peer; if the connection has ended, why.
    ///
    /// # Errors
    /// [`Fault`] where it has ended, or [`Fault::ForeignHandle`] where there was none.
    pub fn connection(&self, node: u32, peer: PeerId) -> Result<(), Fault> {
        let peer = self.members[node as usize].node.peer(peer).ok_or(Fault::ForeignHandle)?;
        peer.ended().map_or(Ok(()), Err)
    }

    /// Whether a connection has ended because the peer has left it.
    pub fn has_left(&self, node: u32, peer: PeerId) -> bool {
        let link = self.members[node as usize].node.peer(peer).and_then(Peer::link);
        link.is_some_and(|link| link.end().state() == State::Closed(Why::Peer))
    }

    /// Whether all commands of what a node has posted to a peer have found room. If not, time has
    /// to pass before it can post more.
    pub fn has_room(&self, node: u32, peer: PeerId) -> bool {
        self.members[node as usize].node.peer(peer).is_none_or(Peer::has_room)
    }

    /// Whether all operations of a node on a peer have ended. Unlike [`Cluster::flush`] this asks
    /// nobody.
    pub fn is_flushed(&self, node: u32, peer: PeerId) -> bool {
        let peer = self.members[node as usize].node.peer(peer);
        peer.is_none_or(|peer| peer.initiator().is_empty())
    }

    /// Whether all that a node has posted and sent to a peer has arrived.
    pub fn is_idle(&self, node: u32, peer: PeerId) -> bool {
        self.members[node as usize].node.peer(peer).is_none_or(Peer::is_idle)
    }

    /// Translations of a node, with pages.
    pub fn translations(&self, node: u32) -> Translations {
        let translator = self.members[node as usize].units.translator.as_ref();
        translator.map(|translator| translator.counts).unwrap_or_default()
    }

    /// Inputs of a node that no correct peer sends.
    pub fn malformed(&self, node: u32) -> u64 {
        self.members[node as usize].node.malformed()
    }

    /// Hands a capability out, if the table has room.
    pub fn share(&mut self, node: u32, cover: Cover) -> Option<Key> {
        self.members[node as usize].node.share(cover)
    }

    /// Hands out an inlet of a depot, if the table has room. It leads to the memory that the cover
    /// names.
    ///
    /// # Panics
    /// If the inlet and the cover differ in their lengths.
    pub fn share_inlet(
        &mut self,
        node: u32,
        cover: Cover,
        depot: usize,
        inlet: Inlet,
    ) -> Option<Key> {
        assert_eq!(cover.len, inlet.len, "an inlet leads to all that its cover names");
        let member = &mut self.members[node as usize];
        let key = member.node.share(cover)?;
        member.program.depots.inlets.insert(key, (depot, inlet));
        Some(key)
    }

    /// Takes a capability back. Nothing that uses it lands from now on. With pages a fence begins,
    /// and nothing lands any more when it has [ended](Event::Fenced).
    ///
    /// # Errors
    /// [`Fault`] where it is no key that is alive; with pages the fence's end says so.
    pub fn revoke(&mut self, node: u32, key: Key) -> Result<(), Fault> {
        if self.profile.pages.is_some() {
            self.begin_fence(node, key);
            return Ok(());
        }
        self.members[node as usize].node.revoke(key)
    }
}

/// Operations: they take the time of a call to the interface.
impl Cluster {
    /// Posts an operation.
    ///
    /// # Errors
    /// [`Refusal`]: see [`Node::post`](ayre_proto::node::Node::post).
    pub fn post(&mut self, node: u32, to: PeerId, order: Order<Local>) -> Result<Ticket, Refusal> {
        self.profile.check_order(&order)?;
        let page = self.profile.local_page(&order);
        self.call(node, to, |member| {
            let ticket = member.node.post(to, order, &member.program)?;
            member.units.posted((node, to), ticket, page);
            Ok(ticket)
        })
    }

    /// Posts several operations, all or none. Returns the ticket of the last one that was ever
    /// posted to the peer: the number of its last command.
    ///
    /// # Errors
    /// [`Refusal`]: see [`Node::batch`](ayre_proto::node::Node::batch).
    pub fn batch(
        &mut self,
        node: u32,
        to: PeerId,
        orders: Vec<Order<Local>>,
    ) -> Result<Ticket, Refusal> {
        orders.iter().try_for_each(|order| self.profile.check_order(order))?;
        let pages: Vec<_> = orders.iter().map(|order| self.profile.local_page(order)).collect();
        self.call(node, to, |member| {
            member.node.batch(to, orders, &member.program)?;
            let peer = member.node.peer(to).ok_or(Fault::ForeignHandle)?;
            let last = peer.initiator().posted();
            for (page, before) in pages.into_iter().rev().zip(0..) {
                member.units.posted((node, to), Ticket(last - before), page);
            }
            Ok(Ticket(last))
        })
    }

    /// Posts a deposit message with its data. Messages that read memory are refused.
    ///
    /// # Errors
    /// See [`Node::deposit`](ayre_proto::node::Node::deposit).
    pub fn deposit(
        &mut self,
        node: u32,
        to: PeerId,
        posted: &Posted,
        data: &[u8],
    ) -> Result<Ticket, PostError> {
        self.call(node, to, |member| member.node.deposit(to, (posted, data), None, &member.program))
    }

    /// Sends a short message.
    ///
    /// # Errors
    /// [`Refusal`]: see [`Node::send`](ayre_proto::node::Node::send), and the profile.
    pub fn send(&mut self, node: u32, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Refusal> {
        self.profile.check_message(tag, data.len())?;
        self.call(node, to, |member| Ok(member.node.send(to, tag, data)?))
    }

    /// Offers a peer a queue of `lines` lines; returns its number among those of the peer.
    ///
    /// # Errors
    /// See [`Node::offer_queue`](ayre_proto::node::Node::offer_queue).
    pub fn offer_queue(
        &mut self,
        node: u32,
        to: PeerId,
        name: u64,
        lines: u32,
    ) -> Result<usize, Fault> {
        self.call(node, to, |member| member.node.offer_queue(to, name, lines))
    }

    /// Offers a peer a region.
    ///
    /// # Errors
    /// See [`Node::offer`](ayre_proto::node::Node::offer).
    pub fn offer(&mut self, node: u32, to: PeerId, offer: Offer) -> Result<(), PostError> {
        self.call(node, to, |member| member.node.offer(to, offer))
    }

    /// Appends a record to a queue that a peer has offered.
    ///
    /// # Errors
    /// See [`Node::enqueue`](ayre_proto::node::Node::enqueue).
    pub fn enqueue(
        &mut self,
        node: u32,
        to: PeerId,
        queue: usize,
        record: &[u8],
    ) -> Result<(), PostError> {
        self.call(node, to, |member| member.node.enqueue(to, queue, record))
    }

    /// Whether everything that was posted to a peer has ended; if not, the peer is asked.
    ///
    /// # Errors
    /// See [`Node::flush`](ayre_proto::node::Node::flush).
    pub fn flush(&mut self, node: u32, to: PeerId) -> Result<bool, Fault> {
        self.call(node, to, |member| member.node.flush(to))
    }

    /// Leaves a peer once everything that was posted and sent has arrived.
    pub fn leave(&mut self, node: u32, peer: PeerId) {
        self.call(node, peer, |member| member.node.leave(peer));
    }

    /// Ends a connection at once and forgets it. The peer is told.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where there is none.
    pub fn disconnect(&mut self, node: u32, peer: PeerId) -> Result<(), Fault> {
        let (now, after) = (self.nanos(), self.times.call);
        self.with_node(node, after, |node, host| {
            node.on_gone(peer, now, host);
            // The link closes, and says so.
            node.serve(peer, now, host);
        });
        self.forget(node, peer)
    }

    pub(super) fn call<R>(
        &mut self,
        node: u32,
        to: PeerId,
        call: impl FnOnce(&mut Member) -> R,
    ) -> R {
        let done = call(&mut self.members[node as usize]);
        let (now, after) = (self.nanos(), self.times.call);
        self.with_node(node, after, |node, host| node.serve(to, now, host));
        done
    }
}

/// Input of programs. They find it in memory, so it takes no time.
impl Cluster {
    /// How often something has come to a node, or a time of it was up. A program that has found
    /// nothing need not look again before this number has grown.
    pub fn heard(&self, node: u32) -> u64 {
        self.members[node as usize].heard
    }

    /// Takes the next message of a peer. In a mailbox it has to be the first one of all.
    pub fn receive(&mut self, node: u32, from: PeerId) -> Option<Message> {
        if self.profile.mailbox.is_some() {
            return self.members[node as usize].interface.read(from);
        }
        self.with_node(node, Time::ZERO, |node, host| node.receive(from, host))
    }

    /// Takes the next record that a peer has enqueued.
    pub fn dequeue(&mut self, node: u32, from: PeerId, queue: usize) -> Option<Vec<u8>> {
        self.with_node(node, Time::ZERO, |node, _| node.dequeue(from, queue))
    }

    /// Takes the next notification.
    pub fn notification(&mut self, node: u32) -> Option<Notification> {
        self.with_node(node, Time::ZERO, |node, _| node.notification())
    }

    /// Takes the next news.
    pub fn event(&mut self, node: u32) -> Option<Event> {
        self.members[node as usize].program.events.pop_front()
    }
}

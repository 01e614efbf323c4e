//! All links of a port, by the index that the other sides' frames carry, and what becomes of a
//! datagram.
mod accept;
mod calls;
mod datagrams;
mod dues;
mod requests;
mod slots;

use super::callee::{Callee, Names};
use super::half_open::Acceptor;
use super::handshake::Protection;
use super::link_end::LinkEnd;
use super::opening::{self, OpenAttempt, Request};
use super::pool::Pool;
use super::{Pumped, WireCounters};
use crate::error::SetupError;
use crate::mem::page::{OwnPage, PeerPage};
use crate::net::chance::Chance;
use crate::net::crc::crc32c;
use crate::net::datagram::{Outbox, Taps};
use crate::net::routes::Way;
use crate::peer::agreement::{Agreement, Name};
use crate::peer::loss::Loss;
use crate::peer::packet::{Packet, PacketKind};
use crate::sync::AtomicBool;
use crate::sys::bell::Bell;
use crate::target::Responder;
use crate::tuning::Rings;
use ayre_proto::lane::Malformed;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::link::end::Drive;
use ayre_proto::link::frame::{Full, Header};
use ayre_proto::link::half_open::{HalfOpenTable, Place};
use ayre_proto::link::life::{State, Why};
use ayre_proto::link::looks::Looks;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::units::PeerId;
use foldhash::HashMap;
use slots::Slots;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The index of no link.
const NO_LINK: usize = usize::MAX;
/// Links of a port, those that are being opened among them.
// spec: LIM-1
const LINKS_MAX: usize = 2048;
const _: () = assert!(LINKS_MAX > PEERS_MAX, "each peer may have a link, and more are opened");
/// The time for which an acceptor waits for a link to be confirmed. If this port has asked for a
/// link and nothing was heard of it for this time, it is given up.
// spec: OPEN-26
const NO_ANSWER: u64 = HalfOpenTable::TIMEOUT;

/// The contents of an index.
#[derive(Debug)]
enum Slot {
    Free,
    Asked(Box<OpenAttempt>),
    HalfOpen(Place),
    Open(Box<LinkEnd>),
    /// The port's request has failed, and the port has not been told yet.
    Failed(Box<Request>),
    /// Another link with the same endpoint has come instead.
    Superseded,
}

/// The identity of a port for its links.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) number: u16,
    /// Of a port that is an endpoint, by what others call it.
    pub(crate) endpoint: Option<Callee>,
    /// Bytes of the rings of its links, if its program has said how many.
    pub(crate) ring: Option<u32>,
    pub(crate) protection: Protection,
    pub(crate) drive: Drive,
    /// Tells the port that a connection has something for it.
    pub(crate) any_mail: Arc<AtomicBool>,
    /// Performs what peers ask for.
    pub(crate) responder: Arc<Mutex<Responder>>,
    /// Rung when the port publishes while its engine's thread sleeps.
    pub(crate) bell: Arc<Bell>,
}

/// A link that has come up, and that the port has not taken yet.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) index: usize,
    pub(crate) connection: Agreement,
    /// The endpoint at the other side, if it is one.
    pub(crate) name: Option<Name>,
    /// The port's own request, if the link came from one.
    request: Option<Box<Request>>,
    /// Until when the other side must have answered, of a link that this port has asked for.
    answer_by: u64,
}

impl Arrived {
    /// Whether this port has asked for it.
    fn is_ours(&self) -> bool {
        self.request.is_some()
    }
}

/// All links of a port.
#[derive(Debug)]
pub(crate) struct Links {
    identity: Identity,
    pub(super) chance: Chance,
    incarnation: u64,
    /// Of the last link.
    generation: u32,
    pub(super) outboxes: Vec<Outbox>,
    /// The captures that frames in sealed datagrams are told to, if they are written down.
    pub(super) taps: Option<Taps>,
    /// The buffers for frames that come.
    pub(super) pool: Arc<Pool>,
    slots: Slots,
    /// By peer number.
    by_peer: Vec<usize>,
    /// By what the answers to an open, and the resets of a link, repeat. Where two peers have
    /// chosen the same, only the first one's are heard.
    by_token: HashMap<u64, usize>,
    /// Endpoints with which the port has connections that it has not forgotten.
    held: Vec<(PeerId, Name)>,
    /// The endpoints that may open links while there is no room for others.
    pub(super) only: Option<Box<dyn Names>>,
    /// Those that have more to send than goes at a time, once that has left.
    more: Vec<usize>,
    /// The link that was heard last, and the one whose turn it is.
    hot: usize,
    next: usize,
    pub(super) acceptor: Acceptor,
    pub(super) arrived: VecDeque<Arrived>,
    pub(super) counters: WireCounters,
    /// The host is to be asked how long datagrams of some link may be.
    pub(super) has_questions: bool,
    /// When this port has looked at what came.
    pub(super) looks: Looks,
    /// The port page that ports read of us as of a peer.
    pub(super) page: OwnPage,
    page_of_peers: PeerPage,
}

impl Links {
    /// Only these endpoints may open links from here on, or all.
    pub(crate) fn let_in_only(&mut self, known: Option<Box<dyn Names>>) {
        self.only = known;
    }

    pub(super) fn new(
        identity: Identity,
        nets: usize,
        chance: Chance,
        now: u64,
    ) -> Result<Self, SetupError> {
        let page = OwnPage::new()?;
        let page_of_peers = PeerPage::new(page.file())?;
        let acceptor = Acceptor::new(&identity.protection, chance.number(), now);
        Ok(Self {
            identity,
            incarnation: chance.number(),
            chance,
            generation: 0,
            outboxes: (0..nets).map(|_| Outbox::new()).collect(),
            taps: None,
            pool: Pool::of_port(LINKS_MAX, Rings::of_process().bytes()),
            slots: Slots::default(),
            by_peer: Vec::new(),
            by_token: HashMap::default(),
            held: Vec::new(),
            only: None,
            more: Vec::new(),
            hot: 0,
            next: 0,
            acceptor,
            arrived: VecDeque::new(),
            counters: WireCounters::default(),
            has_questions: false,
            looks: Looks::all_the_time(now),
            page,
            page_of_peers,
        })
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        let is_one = |index: usize| index == 0 || index < self.slots.len();
        debug_assert!(self.slots.len() <= LINKS_MAX, "a port has no more links");
        debug_assert!(is_one(self.hot) && is_one(self.next), "whose turn it is has a place");
        if cfg!(debug_assertions) {
            let is_known = |index: &usize| *index == NO_LINK || *index < self.slots.len();
            debug_assert!(self.by_peer.iter().all(is_known), "a peer's link has a place");
            let is_known = |one: &Arrived| one.index < self.slots.len();
            debug_assert!(self.arrived.iter().all(is_known), "a link that has come up has a place");
        }
    }

    /// Serves the link where something came last, and one other in turn.
    // spec: PROG-4
    pub(super) fn serve_in_turn(&mut self, now: u64) -> Pumped {
        self.next = if self.next + 1 >= self.slots.len() { 0 } else { self.next + 1 };
        let mut pumped = self.serve(self.hot, now);
        if self.next != self.hot {
            pumped.changed |= self.serve(self.next, now).changed;
        }
        self.check();
        pumped
    }

    pub(super) fn serve_all(&mut self, now: u64) -> Pumped {
        let mut pumped = Pumped::default();
        for index in 0..self.slots.len() {
            pumped.changed |= self.serve(index, now).changed;
        }
        self.drop_unanswered(now);
        while let Some((place, half)) = self.acceptor.table.expire(now) {
            self.acceptor.take(place);
            self.free(half.ours().index as usize);
        }
        pumped
    }

    /// Says to all peers what they have not been told.
    pub(super) fn settle_all(&mut self, now: u64) {
        let Self { slots, outboxes, .. } = self;
        slots.all_open_mut().for_each(|link| link.settle(now, outboxes));
    }

    fn serve(&mut self, index: usize, now: u64) -> Pumped {
        let mut pumped = Pumped::default();
        match self.slots.get_mut(index) {
            Some(Slot::Open(_)) => pumped.changed = self.serve_open(index, now),
            Some(Slot::Asked(asked)) => {
                while let Some((way, header, message)) = asked.on_time(now) {
                    send_bare(&mut self.outboxes, way, &header, message);
                }
                pumped.changed = opening::outcome(asked).is_some();
            }
            _ => {}
        }
        pumped
    }

    /// Whether there is something for the port: room, or the end of the link.
    fn serve_open(&mut self, index: usize, now: u64) -> bool {
        let Some(link) = self.slots.open_mut(index) else { return false };
        let served = link.serve(now, &mut self.outboxes);
        self.has_questions |= link.has_question();
        if link.has_more() {
            self.more.push(index);
        }
        match served {
            Ok(has_room) => self.look_for_end(index, now) || has_room,
            Err(Malformed) => {
                self.end_malformed(index, now);
                true
            }
        }
    }

    /// The host has refused datagrams by this way for their length.
    // spec: MTU-2
    pub(super) fn on_refused(&mut self, way: Way, datagram_max: usize, now: u64) {
        self.slots.all_open_mut().for_each(|link| link.on_refused(way, datagram_max, now));
    }

    /// Asks the host what links want to know of the length of datagrams.
    // spec: MTU-3
    pub(super) fn ask_host(&mut self, datagram_max: impl Fn(Way) -> usize, now: u64) {
        self.has_questions = false;
        let asking = self.slots.all_open_mut().filter(|link| link.has_question());
        asking.for_each(|link| link.ask_host(&datagram_max, now));
    }

    /// When there is something to do next though nothing comes.
    pub(super) fn deadline(&mut self) -> u64 {
        let links = self.slots.deadline();
        let unanswered = self.unanswered().map(|(_, by)| by).min().unwrap_or(u64::MAX);
        links.min(self.acceptor.table.deadline()).min(unanswered)
    }

    /// Whether what was published for this peer should go at once: nothing is under way to it, or
    /// there is enough for a train.
    pub(super) fn is_urgent(&self, peer: PeerId) -> bool {
        self.open(peer).is_some_and(|link| link.is_quiet() || link.is_laden())
    }

    /// Whether a command of `len` bytes to this peer finds room.
    pub(super) fn has_room(&self, peer: PeerId, answered: bool, len: usize) -> bool {
        // Where there is no link any more, nothing is waited for.
        self.open(peer).is_none_or(|link| link.has_room(answered, len))
    }

    /// Frames that can be made ready for commands to this peer.
    pub(super) fn room(&self, peer: PeerId) -> usize {
        self.open(peer).map_or(0, LinkEnd::room)
    }

    /// A command of the port's: it goes with what is sent next.
    pub(super) fn post(
        &mut self,
        peer: PeerId,
        request: &impl CommandRecord,
        data: (usize, impl FnOnce(&mut [u8])),
    ) -> Result<(), Full> {
        match self.open_mut(peer) {
            Some(link) => link.post(request, data),
            // It has ended, which its port is about to hear.
            None => Ok(()),
        }
    }

    /// Sends what the port has published for this peer, and nothing else: that has time.
    pub(super) fn load(&mut self, peer: PeerId, now: u64) {
        let index = self.index_of(peer);
        if self.load_at(index, now) {
            self.hot = index;
        }
    }

    /// The frames that were ready have left. Sends more, where there was more than goes at a time.
    /// Whether there was.
    // spec: WIRE-16
    pub(super) fn load_more(&mut self, now: u64) -> bool {
        let mut any = false;
        for place in (0..self.more.len()).rev() {
            let index = self.more.swap_remove(place);
            any |= self.load_at(index, now);
        }
        any
    }

    /// Whether there is a link.
    fn load_at(&mut self, index: usize, now: u64) -> bool {
        let Some(link) = self.slots.open_mut(index) else { return false };
        link.load(now, &mut self.outboxes);
        if link.has_more() {
            self.more.push(index);
        }
        true
    }

    /// Sends what the port has published for this peer, and serves its link.
    pub(super) fn push_out(&mut self, peer: PeerId, now: u64) {
        let index = self.index_of(peer);
        if self.open(peer).is_some() {
            self.hot = index;
            self.serve_open(index, now);
        }
    }

    /// Begins a warm reset of the link with this peer.
    pub(super) fn resync(&mut self, peer: PeerId, now: u64) {
        let index = self.index_of(peer);
        if let Some(link) = self.slots.open_mut(index) {
            self.hot = index;
            link.resync(now, &mut self.outboxes);
        }
    }

    /// Why the link with this peer, who is on this host, is one.
    pub(crate) fn note_detour(&mut self, peer: PeerId, why: &str) {
        let index = self.index_of(peer);
        if let Some(link) = self.slots.open_mut(index) {
            link.detour = Some(why.into());
        }
    }

    /// Whether one is under way; none where there is no link.
    pub(crate) fn is_resyncing(&self, peer: PeerId) -> Option<bool> {
        match self.slots.get(self.index_of(peer)) {
            Some(Slot::Open(link)) => Some(link.machine().is_resyncing()),
            _ => None,
        }
    }

    /// The port waits for everything that it has posted to this peer.
    pub(super) fn ask(&mut self, peer: PeerId) {
        if let Some(link) = self.open_mut(peer) {
            link.ask();
            self.hot = self.index_of(peer);
        }
    }

    pub(super) fn open(&self, peer: PeerId) -> Option<&LinkEnd> {
        match self.slots.get(self.index_of(peer)) {
            Some(Slot::Open(link)) => Some(link),
            _ => None,
        }
    }

    fn open_mut(&mut self, peer: PeerId) -> Option<&mut LinkEnd> {
        let index = self.index_of(peer);
        self.slots.open_mut(index)
    }

    /// Where there is no link, an index that none has.
    fn index_of(&self, peer: PeerId) -> usize {
        self.by_peer.get(peer.index()).copied().unwrap_or(NO_LINK)
    }

    /// The port takes a link for its connection with a peer. It may have ended by now.
    pub(super) fn adopt(&mut self, arrived: Arrived, peer: PeerId) -> Agreement {
        let Arrived { index, connection, name, .. } = arrived;
        if self.by_peer.len() <= peer.index() {
            self.by_peer.resize(peer.index() + 1, NO_LINK);
        }
        self.by_peer[peer.index()] = NO_LINK;
        if let Some(link) = self.slots.open_mut(index)
            && link.is_of(&connection.link)
        {
            link.belong_to(peer);
            self.by_peer[peer.index()] = index;
        }
        debug_assert!(self.open(peer).is_none_or(|link| link.peer == peer), "it is that peer's");
        self.held.extend(name.map(|name| (peer, name)));
        self.acceptor.gone.retain(|number| *number != peer.0);
        Agreement { peer, ..connection }
    }

    /// The port has no connection with this peer any more.
    pub(super) fn release(&mut self, peer: PeerId) {
        let index = self.index_of(peer);
        if index != NO_LINK {
            self.by_peer[peer.index()] = NO_LINK;
            self.leave(index);
        }
    }

    /// Leaves a link once what the port has published has arrived.
    pub(super) fn leave(&mut self, index: usize) {
        if let Some(link) = self.slots.open_mut(index) {
            link.leave();
        }
    }

    /// The port does not want a link.
    pub(crate) fn turn_away(&mut self, arrived: &Arrived) {
        if let Some(link) = self.slots.open_mut(arrived.index)
            && link.is_of(&arrived.connection.link)
        {
            link.leave();
        }
    }

    pub(super) fn leave_all(&mut self) {
        (0..self.slots.len()).for_each(|index| self.leave(index));
    }

    /// Leaves all links at once, whatever has not arrived.
    pub(super) fn abort_all(&mut self) {
        self.slots.all_open_mut().for_each(LinkEnd::abort);
    }

    /// Whether there is no link any more that somebody could miss.
    pub(super) fn is_deserted(&self) -> bool {
        !self.slots.iter().any(|slot| matches!(slot, Slot::Open(_)))
    }

    /// A link that has ended makes room; its port hears of it.
    fn look_for_end(&mut self, index: usize, now: u64) -> bool {
        let Some(Slot::Open(link)) = self.slots.get(index) else { return false };
        let State::Closed(why) = link.state() else { return false };
        let mail = link.mail();
        if why == Why::Peer {
            mail.deliver(Packet { kind: PacketKind::Bye, words: [0; 7], fds: Vec::new() });
        }
        let dead_after = Duration::from_nanos(self.identity.drive.life.dead_after);
        let loss = match why {
            Why::Restarted | Why::Local | Why::Peer => None,
            Why::Silent => Some(Loss::Silent(dead_after)),
            Why::PortClosed => Some(Loss::PortClosed),
            Why::NoData => Some(Loss::NoData(dead_after)),
            Why::Reset => Some(Loss::Forgotten),
        };
        mail.close(why.fault(), loss);
        self.counters.restarted += u64::from(why == Why::Restarted);
        if link.name.is_none() {
            self.acceptor.on_link_ended(link.peer.0);
        }
        self.retire(index, now);
        true
    }

    /// A link has ended. If the port has asked for it and not taken it, the port is told first.
    /// Where nothing was heard of it, it is asked for again, because its open may have lost its
    /// place.
    // spec: OPEN-26
    fn retire(&mut self, index: usize, now: u64) {
        let was_heard = matches!(&self.slots[index], Slot::Open(link) if link.is_confirmed());
        self.free(index);
        let Some(Arrived { request: Some(request), .. }) = self.take_opened(index) else { return };
        match !was_heard && now < request.give_up {
            true => self.repeat_request(index, *request, now),
            false => self.put(index, Slot::Failed(request)),
        }
        debug_assert!(
            !matches!(self.slots[index], Slot::Open(_)),
            "what has ended is open no more"
        );
    }

    fn free(&mut self, index: usize) {
        self.put(index, Slot::Free);
        // What comes to stand here is not that peer's.
        if let Some(place) = self.by_peer.iter_mut().find(|place| **place == index) {
            *place = NO_LINK;
        }
        debug_assert!(!self.by_peer.contains(&index), "a link was one peer's");
    }

    /// Has something else stand at an index.
    fn put(&mut self, index: usize, slot: Slot) {
        if let Some(token) = token_of(&self.slots[index])
            && self.by_token.get(&token) == Some(&index)
        {
            self.by_token.remove(&token);
        }
        if let Some(place) = self.slots.get_mut(index) {
            *place = slot;
        }
        self.index_token(index);
        let token = token_of(&self.slots[index]);
        let is_found = token.is_none_or(|token| self.by_token.contains_key(&token));
        debug_assert!(is_found, "what answers repeat leads to a link");
    }

    /// A slot is found by its token.
    fn index_token(&mut self, index: usize) {
        if let Some(token) = token_of(&self.slots[index]) {
            self.by_token.entry(token).or_insert(index);
        }
    }

    fn free_index(&mut self) -> Result<usize, SetupError> {
        if let Some(free) = self.slots.iter().position(|slot| matches!(slot, Slot::Free)) {
            return Ok(free);
        }
        if self.slots.len() >= LINKS_MAX {
            return Err(SetupError::exhausted("link; a port has at most 2048"));
        }
        self.slots.push(Slot::Free);
        Ok(self.slots.len() - 1)
    }

    /// Whether its port is an endpoint.
    pub(super) fn is_endpoint(&self) -> bool {
        self.identity.endpoint.is_some()
    }

    /// The link that this port has asked for and that has come up at this index.
    pub(super) fn take_opened(&mut self, index: usize) -> Option<Arrived> {
        self.take_arrived(|arrived| arrived.is_ours() && arrived.index == index)
    }

    /// A link that somebody else has asked for.
    pub(crate) fn take_accepted(&mut self) -> Option<Arrived> {
        self.take_arrived(|arrived| !arrived.is_ours())
    }

    fn take_arrived(&mut self, is_meant: impl Fn(&Arrived) -> bool) -> Option<Arrived> {
        let at = self.arrived.iter().position(is_meant)?;
        self.arrived.remove(at)
    }

    /// The open link at this index or at the next one that has one.
    pub(super) fn open_from(&self, index: usize) -> Option<(usize, &LinkEnd)> {
        let mut places = self.slots.iter().enumerate().skip(index);
        places.find_map(|(index, slot)| match slot {
            Slot::Open(link) => Some((index, &**link)),
            _ => None,
        })
    }
}

/// The token that answers to this slot repeat.
fn token_of(slot: &Slot) -> Option<u64> {
    match slot {
        Slot::Asked(asked) => Some(asked.opener.ours().nonce),
        Slot::Open(link) => Some(link.token),
        _ => None,
    }
}

/// Sends a frame that no link protects: of an opening.
fn send_bare(outboxes: &mut [Outbox], way: Way, header: &Header, payload: &[u8]) {
    outboxes[way.net].push(way.to, |datagram| {
        datagram.extend_from_slice(&header.encode(crc32c));
        datagram.extend_from_slice(payload);
    });
}

#[cfg(all(test, not(loom)))]
mod tests;

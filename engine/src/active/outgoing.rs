//! Sending: messages that are sent at once, and messages that are kept until there is room.
use super::assembly::Assembly;
use super::failures::{DroppedCall, Failures};
use super::handler::Handler;
use super::options::MessengerOptions;
use super::peers::{Kept, Long, Name, Peer};
use super::way::{say, way_to};
use crate::error::{Busy, Fault, PostError};
use crate::port::Port;
use crate::tuning::Choices;
use ayre_proto::active::LONGEST;
use ayre_proto::active::long::Message;
use ayre_proto::active::record::{DropCause, Record};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most peers for which a check adds up all of them.
const WALKED_MAX: usize = 16;

/// The kind of a pass in which features send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Only messages that nothing may delay.
    Urgent,
    /// Messages without a feature wait for the same room: a feature sends its share.
    Shared,
    /// Nothing else waits for room.
    Free,
}

/// The sending side of a feature. Handlers can reach it while they run, when the rest of the
/// messenger is borrowed. A feature implements the methods that it needs.
pub(crate) trait Outbound {
    /// Sends the feature's waiting messages to a peer, as far as there is room.
    fn send(_out: &mut Outgoing, _to: PeerId, _pass: Pass) -> Result<(), PostError> {
        Ok(())
    }

    /// Whether messages to a peer wait only for room.
    fn is_ready(&mut self, _to: PeerId) -> bool {
        false
    }

    /// Whether anything waits to be sent.
    fn waits(&self) -> bool {
        false
    }

    /// Drops the messages that wait for a peer. Nothing can be sent to it any more, though messages
    /// from it may still arrive.
    fn drop_waiting(&mut self, _to: PeerId) {}

    /// A peer has died, and everything that it had sent was taken.
    fn on_death(&mut self, _peer: PeerId) {}

    /// Takes note of connections that have begun or ended. Returns false if it must be called again
    /// after more messages of these peers have been taken.
    fn heed_peers(_out: &mut Outgoing) -> bool {
        true
    }

    /// Whether something has arrived that no record announces.
    fn has_news(&self) -> bool {
        false
    }
}

/// The sending sides of all features.
pub(crate) type Outbounds = <() as Assembly>::Outbound;

/// The sending part of a messenger, by which handlers send while they run.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) port: Port,
    pub(super) options: MessengerOptions,
    /// By peer number.
    pub(crate) peers: Vec<Peer>,
    /// The names to announce.
    names: Vec<Name>,
    /// The sum of the weights of kept messages.
    kept: usize,
    /// Something waits for room in a lane. No event tells of that.
    pub(super) is_restless: bool,
    /// A peer may be owed something.
    pub(super) owes: bool,
    /// A poll has more to do than to take arrived messages.
    pub(crate) has_more: bool,
    /// At least one peer has an id that means another handler there.
    pub(super) conflicts: bool,
    pub(super) failures: Failures,
    /// The faster way of long messages, as measured.
    pub(super) choices: Choices,
    /// The count of begun and ended connections that all features have taken note of.
    heeded: u64,
    pub(crate) outbound: Outbounds,
}

impl Outgoing {
    pub(super) fn new(port: Port, options: MessengerOptions) -> Self {
        Self {
            port,
            options,
            peers: Vec::new(),
            names: Vec::new(),
            kept: 0,
            is_restless: false,
            owes: false,
            has_more: false,
            conflicts: false,
            failures: Failures::default(),
            choices: Choices::default(),
            heeded: 0,
            outbound: Outbounds::default(),
        }
    }

    /// Checks the invariants between two calls, of all peers and of one.
    fn check(&self, peer: PeerId) {
        debug_assert!(self.owes || !self.is_restless, "who waits for room owes something");
        debug_assert!(self.heeded <= self.port.peers.changes(), "changes are heeded as they come");
        if cfg!(debug_assertions) && self.peers.len() <= WALKED_MAX {
            let kept: usize = self.peers.iter().map(|peer| peer.weight).sum();
            debug_assert_eq!(self.kept, kept, "what is kept is kept for somebody");
        }
        let Some(peer) = self.peers.get(peer.index()) else { return };
        debug_assert!(peer.told <= self.names.len(), "a peer is told of what there is");
        debug_assert!(peer.weight <= self.kept, "all of a peer's is among all");
        debug_assert!(
            self.conflicts || peer.conflicts.is_empty(),
            "it is known that there are conflicts"
        );
        peer.check();
    }

    pub(crate) fn peer(&mut self, peer: PeerId) -> &mut Peer {
        if peer.index() >= self.peers.len() {
            self.peers.resize_with(peer.index() + 1, Peer::default);
        }
        &mut self.peers[peer.index()]
    }

    /// Sends a message that fits into one record, if nothing must go before it and there is room.
    // spec: AM-5
    #[inline(always)]
    pub(super) fn post<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let len = 8 * N + payload.len();
        match self.peers.get(to.index()) {
            Some(peer) if peer.told == self.names.len() && !peer.is_busy() && len > 0 => {}
            _ => return self.post_slowly(to, handler.id(), &arguments, payload),
        }
        if N == 0 {
            return self.port.send(to, handler.id(), payload);
        }
        if self.port.send_line(to, handler.id(), arguments, payload) {
            return Ok(());
        }
        self.post_slowly(to, handler.id(), &arguments, payload)
    }

    /// Notes that a message has found no room. The next one is sent before messages by channels.
    #[inline(never)]
    pub(super) fn want(&mut self, to: PeerId) {
        self.peer(to).is_wanted = true;
    }

    #[inline(never)]
    fn post_slowly(
        &mut self,
        to: PeerId,
        id: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError> {
        self.announce(to)?;
        if self.peer(to).is_busy() {
            return Err(Busy::MessageLaneFull.into());
        }
        let mut buffer = [0; EAGER_MAX];
        let (tag, bytes) = body(&mut buffer, id, arguments, payload);
        self.port.send(to, tag, bytes)
    }

    /// Announces to a peer the names that it does not know.
    // spec: AM-3
    pub(super) fn announce(&mut self, to: PeerId) -> Result<(), PostError> {
        while let Some(Name { id, arguments, name }) = self.names.get(self.told(to)) {
            let record = Record::Announce { id: *id, arguments: *arguments, name };
            say(&mut self.port, to, &record)?;
            self.peer(to).told += 1;
        }
        debug_assert!(self.is_told(to), "all names were told");
        Ok(())
    }

    /// Whether a peer knows all names.
    pub(crate) fn is_told(&self, peer: PeerId) -> bool {
        self.told(peer) == self.names.len()
    }

    /// Whether a long message to a peer has begun and is not sent whole.
    pub(crate) fn is_amid_long(&mut self, to: PeerId) -> bool {
        self.peer(to).is_amid_long()
    }

    /// Bytes of the longest payload that this messenger accepts.
    pub(crate) const fn longest(&self) -> usize {
        self.options.longest
    }

    fn told(&self, peer: PeerId) -> usize {
        self.peers.get(peer.index()).map_or(0, |peer| peer.told)
    }

    /// Adds a name to announce, and compares it with the names that peers have announced.
    // spec: AM-3
    pub(super) fn add_name(&mut self, name: Name) {
        for peer in &mut self.peers {
            let theirs = peer.announced.iter().find(|theirs| theirs.id == name.id);
            if theirs.is_some_and(|theirs| *theirs != name) {
                peer.conflicts.push(name.id);
                self.conflicts = true;
            }
        }
        let is_new = self.names.iter().all(|known| known.id != name.id);
        debug_assert!(is_new, "an id has one name here");
        self.names.push(name);
        self.stir();
    }

    /// Sends or keeps a message of a handler.
    // spec: AM-8
    pub(super) fn send<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        if 8 * N + payload.len() <= EAGER_MAX {
            match self.post(to, handler, arguments, payload) {
                Err(PostError::Busy(_)) => {}
                done => return done,
            }
            let mut buffer = [0; EAGER_MAX];
            let (tag, bytes) = body(&mut buffer, handler.id(), &arguments, payload);
            return self.keep(to, Kept::Record { tag, bytes: bytes.to_vec() });
        }
        if !self.port.is_alive(to) {
            return Err(Fault::PeerDead.into());
        }
        if payload.len() > LONGEST {
            return Err(Fault::TooLong.into());
        }
        let (id, arguments) = (handler.id(), bytes_of(&arguments));
        let payload = Arc::new(payload.to_vec());
        self.keep(to, Kept::Long(Long { id, arguments, payload, sent: 0 }))
    }

    /// Keeps a message until it can be sent.
    // spec: AM-8
    pub(super) fn keep(&mut self, to: PeerId, kept: Kept) -> Result<(), PostError> {
        let free = self.options.overflow.saturating_sub(self.kept);
        // A peer may use as much as it leaves free for the others.
        if self.peer(to).weight + kept.weight() > free {
            return Err(Busy::OverflowFull.into());
        }
        self.put_by(to, kept, VecDeque::push_back);
        Ok(())
    }

    /// Adds a message at one end of those that wait for its peer.
    fn put_by(&mut self, to: PeerId, kept: Kept, end: fn(&mut VecDeque<Kept>, Kept)) {
        let weight = kept.weight();
        self.kept += weight;
        let peer = self.peer(to);
        peer.weight += weight;
        end(&mut peer.kept, kept);
        self.stir();
        self.check(to);
    }

    /// Sends a record that its peer waits for, or keeps it beyond any limit. There are few of them.
    pub(crate) fn owe_bytes(&mut self, to: PeerId, tag: u32, bytes: &[u8]) {
        if self.peer(to).is_busy() || self.port.send(to, tag, bytes).is_err() {
            self.owe_kept(to, Kept::Record { tag, bytes: bytes.to_vec() });
        }
    }

    /// Sends or keeps a long message in this way. Several peers may share its payload.
    pub(crate) fn owe_long(
        &mut self,
        to: PeerId,
        id: u32,
        arguments: &[u8],
        payload: Arc<Vec<u8>>,
    ) {
        let arguments = arguments.to_vec();
        self.owe_kept(to, Kept::Long(Long { id, arguments, payload, sent: 0 }));
    }

    fn owe_kept(&mut self, to: PeerId, kept: Kept) {
        if self.port.is_alive(to) {
            self.put_by(to, kept, VecDeque::push_back);
        }
    }

    /// Whether more than `most` records of this tag wait for a peer.
    pub(crate) fn owes_more(&self, to: PeerId, tag: u32, most: usize) -> bool {
        let is_one = |kept: &&Kept| matches!(kept, Kept::Record { tag: of, .. } if *of == tag);
        let kept = self.peers.get(to.index()).map(|peer| &peer.kept);
        kept.is_some_and(|kept| kept.len() > most && kept.iter().filter(is_one).count() > most)
    }

    /// Whether a peer is owed more than `most` messages.
    pub(crate) fn owes_beyond(&self, to: PeerId, most: usize) -> bool {
        self.peers.get(to.index()).is_some_and(|peer| peer.kept.len() > most)
    }

    /// Whether nothing is kept for a peer that a message must wait behind.
    pub(crate) fn takes_at_once(&self, to: PeerId) -> bool {
        self.peers.get(to.index()).is_none_or(|peer| !peer.is_busy())
    }

    /// Keeps a message whose first bytes are sent, so that its rest is sent later.
    pub(crate) fn keep_rest(&mut self, to: PeerId, id: u32, payload: &[u8], sent: usize) {
        debug_assert!(sent > 0 && sent < payload.len(), "some of it is sent, and not all");
        self.peer(to).outward.hold(false);
        if self.port.is_alive(to) {
            let (arguments, payload) = (Vec::new(), Arc::new(payload.to_vec()));
            let kept = Kept::Long(Long { id, arguments, payload, sent });
            self.put_by(to, kept, VecDeque::push_front);
        }
    }

    /// Notes a dropped message, and tells its sender.
    // spec: AM-7
    pub(crate) fn fail(&mut self, peer: PeerId, handler: u32, cause: DropCause) {
        self.report(DroppedCall { peer, handler, cause, is_ours: false });
        if !self.port.is_alive(peer) {
            return;
        }
        let (tag, bytes) = Record::Failed(handler, cause).encode();
        // If the overflow is full, the sender is not told. It does not wait for that.
        let _ = self.keep(peer, Kept::Record { tag, bytes: bytes.to_vec() });
    }

    pub(super) fn report(&mut self, failure: DroppedCall) {
        let announced = self.peers.get(failure.peer.index()).map(|peer| &peer.announced[..]);
        let known = self.names.iter().chain(announced.unwrap_or_default());
        self.failures.add(failure, known);
    }

    /// Whether a poll has more to do than to take arrived messages.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        self.has_more || self.port.peers.changes() != self.heeded
    }

    /// Tells features of connections that have begun or ended.
    #[inline(always)]
    pub(super) fn heed_peers(&mut self) {
        if self.port.peers.changes() != self.heeded {
            self.heed_all_peers();
        }
    }

    #[inline(never)]
    fn heed_all_peers(&mut self) {
        let changes = self.port.peers.changes();
        debug_assert!(self.heeded < changes, "they only grow in number");
        if Outbounds::heed_peers(self) {
            self.heeded = changes;
        }
    }

    /// Makes the next poll look for work, before the program sleeps.
    pub(crate) fn stir(&mut self) {
        self.port.rouse();
        (self.owes, self.is_restless, self.has_more) = (true, true, true);
    }

    /// Sends what is owed to all peers, as far as there is room.
    #[inline(never)]
    pub(super) fn drain(&mut self) {
        (self.owes, self.is_restless) = (false, false);
        for index in 0..self.port.peers.count() {
            let connection = self.port.peers.at(index);
            let Some(peer) = connection.map(|connection| connection.peer) else { continue };
            match self.drain_peer(peer) {
                Ok(()) => {
                    let is_ready = self.outbound.is_ready(peer);
                    self.owes |= is_ready || !self.peer(peer).kept.is_empty();
                    self.is_restless |= is_ready;
                }
                Err(PostError::Busy(_)) => (self.owes, self.is_restless) = (true, true),
                Err(PostError::Fault(_)) => {
                    self.drop_kept(peer);
                    self.outbound.drop_waiting(peer);
                }
            }
        }
    }

    /// Sends what is owed to a peer, as far as there is room. Messages that nothing may delay come
    /// first.
    // spec: AM-3, AM-8, AM-14
    fn drain_peer(&mut self, to: PeerId) -> Result<(), PostError> {
        self.announce(to)?;
        if self.peer(to).inward.is_wanted() {
            self.make_landing(to)?;
        }
        if let Some(taken) = self.peer(to).inward.room_due() {
            say(&mut self.port, to, &Record::Room(taken))?;
            self.peer(to).inward.told(taken);
        }
        self.tell_pulled(to);
        Outbounds::send(self, to, Pass::Urgent)?;
        let peer = self.peer(to);
        let others_wait = std::mem::take(&mut peer.is_wanted) || !peer.kept.is_empty();
        if others_wait {
            Outbounds::send(self, to, Pass::Shared)?;
        }
        self.drain_kept(to)?;
        if others_wait { Ok(()) } else { Outbounds::send(self, to, Pass::Free) }
    }

    /// Sends the kept messages of a peer.
    // spec: AM-8
    fn drain_kept(&mut self, to: PeerId) -> Result<(), PostError> {
        if self.peer(to).outward.is_held() {
            return Ok(());
        }
        while let Some(kept) = self.peer(to).kept.pop_front() {
            let weight = kept.weight();
            match self.send_kept(to, kept) {
                Ok(None) => {
                    self.kept -= weight;
                    self.peer(to).weight -= weight;
                }
                Ok(Some(waits)) => {
                    self.peer(to).kept.push_front(waits);
                    break;
                }
                Err((kept, why)) => {
                    debug_assert_eq!(kept.weight(), weight, "it counts for the same until it goes");
                    self.peer(to).kept.push_front(kept);
                    return Err(why);
                }
            }
        }
        self.check(to);
        Ok(())
    }

    /// Sends a kept message. Returns the part that must wait for the peer, or that met an error.
    fn send_kept(&mut self, to: PeerId, kept: Kept) -> Result<Option<Kept>, (Kept, PostError)> {
        match kept {
            Kept::Record { tag, bytes } => match self.port.send(to, tag, &bytes) {
                Ok(()) => Ok(None),
                Err(why) => Err((Kept::Record { tag, bytes }, why)),
            },
            Kept::Long(mut long) => {
                let Long { id, arguments, payload, sent } = &mut long;
                match self.advance(to, (*id, arguments), payload, sent) {
                    Ok(true) => Ok(None),
                    Ok(false) => Ok(Some(Kept::Long(long))),
                    Err(why) => Err((Kept::Long(long), why)),
                }
            }
        }
    }

    pub(super) fn has_kept(&self) -> bool {
        self.kept > 0 || self.outbound.waits()
    }

    pub(super) fn drop_kept(&mut self, to: PeerId) {
        let peer = self.peer(to);
        peer.kept.clear();
        let weight = std::mem::take(&mut peer.weight);
        self.kept -= weight;
        self.check(to);
    }

    /// Forgets the state of a peer that is gone.
    // spec: AM-11
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.drop_kept(peer);
        self.outbound.on_death(peer);
        let Peer { landing, chosen, .. } = std::mem::take(self.peer(peer));
        chosen.into_iter().for_each(|chosen| self.choices.drop_one(chosen));
        if let Some(landing) = landing {
            let ended = self.port.deregister(&landing.region);
            debug_assert!(ended.is_ok(), "it is registered: {ended:?}");
        }
    }

    /// Sends as much of a long message as there is room for. Returns true when all of it is sent,
    /// and false while the rest waits for a record of the peer.
    // spec: AM-12, AM-13
    pub(crate) fn advance(
        &mut self,
        to: PeerId,
        (id, arguments): (u32, &[u8]),
        payload: &[u8],
        sent: &mut usize,
    ) -> Result<bool, PostError> {
        if !self.port.is_alive(to) {
            return Err(Fault::PeerDead.into());
        }
        self.peer(to);
        let Self { port, peers, .. } = self;
        let (outward, mut way) = way_to(port, peers, to);
        let before = *sent;
        let done = outward.advance(&mut way, Message { id, arguments, payload }, sent);
        debug_assert!(before <= *sent, "what is sent stays sent");
        debug_assert_eq!(
            matches!(done, Ok(true)),
            *sent == payload.len(),
            "a message is done when all of it is sent"
        );
        done
    }

    /// Whether the peer's landing is there. If not, asks for it or accepts it.
    // spec: AM-12
    pub(crate) fn find_landing(&mut self, to: PeerId) -> Result<bool, PostError> {
        self.peer(to);
        let Self { port, peers, .. } = self;
        let (outward, mut way) = way_to(port, peers, to);
        outward.find_landing(&mut way)
    }

    /// Copies bytes that a peer has put into its landing.
    pub(crate) fn read_landing(&mut self, peer: PeerId, offset: u64, into: &mut [u8]) {
        if let Some(landing) = &self.peer(peer).landing {
            let end = offset + into.len() as u64;
            debug_assert!(end <= landing.region.len() as u64, "all of it");
            landing.region.read(offset as usize, into);
        }
    }
}

/// Arguments and payload, one behind the other.
#[inline(always)]
pub(crate) fn lay<'a>(buffer: &'a mut [u8], arguments: &[u64], payload: &[u8]) -> &'a [u8] {
    let len = 8 * arguments.len() + payload.len();
    let (words, rest) = buffer[..len].split_at_mut(8 * arguments.len());
    for (bytes, word) in words.chunks_exact_mut(8).zip(arguments) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    rest.copy_from_slice(payload);
    &buffer[..len]
}

/// Returns the tag and the bytes of a short message.
// spec: AM-15
fn body<'a>(
    buffer: &'a mut [u8; EAGER_MAX],
    id: u32,
    arguments: &[u64],
    payload: &[u8],
) -> (u32, &'a [u8]) {
    debug_assert!(8 * arguments.len() + payload.len() <= EAGER_MAX, "it is one message");
    if arguments.is_empty() && payload.is_empty() {
        let (tag, bytes) = Record::Empty(id).encode();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        return (tag, &buffer[..bytes.len()]);
    }
    (id, lay(buffer, arguments, payload))
}

/// Arguments as they travel with a long message.
pub(super) fn bytes_of(arguments: &[u64]) -> Vec<u8> {
    arguments.iter().flat_map(|word| word.to_le_bytes()).collect()
}

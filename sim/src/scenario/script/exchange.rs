//! Nodes exchange portions of collectives: in messages, and long ones by landings.
use super::Line;
use super::collective::{GROUP, Joint, Running};
use super::post::{Tried, failed};
use super::runner::{Over, Runner};
use super::way::{Arrived, OWN, SOUND, WHOLE_MAX, Way, WayTo};
use crate::cluster::Refusal;
use ayre_proto::active::long::Message as Long;
use ayre_proto::active::record::{Record, is_handler};
use ayre_proto::collective::Step;
use ayre_proto::collective::portion::{Header, Notice, PORTION};
use ayre_proto::fault::Fault;
use ayre_proto::node::PostError;
use ayre_proto::node::initiator::Refused;
use ayre_proto::node::peer::Message;
use ayre_proto::units::PeerId;
use core::mem;

/// Collectives.
impl Runner<'_> {
    /// Goes on with a collective. Returns whether it is over.
    pub(super) fn collective(&mut self, node: u32, line: &Line, joint: &Joint) -> Over {
        let begun = self.member_mut(node).running.take();
        let sequence = self.member(node).collectives + 1;
        let begin = || Running::new(joint, &self.world.group, node, sequence);
        let Some(mut running) = begun.or_else(begin) else { return Ok(true) };
        while let Some(step) = running.next().map_err(|what| self.unexpected(node, line, what))? {
            let is_over = match step {
                Step::Send { to, .. } => self.send_portions(node, line, to, &mut running)?,
                Step::Receive { from, .. } => self.take_portions(node, line, from, &mut running)?,
                Step::PushOwn { blocks } => {
                    running.push_own(blocks);
                    true
                }
            };
            if !is_over {
                self.member_mut(node).running = Some(running);
                return Ok(false);
            }
        }
        self.member_mut(node).collectives = sequence;
        Ok(true)
    }

    /// Sends the portions of a step. Returns whether all are sent.
    fn send_portions(&mut self, node: u32, line: &Line, to: usize, running: &mut Running) -> Over {
        let peer = self.world.group[to];
        loop {
            let was_begun = running.half_sent.is_some();
            let window = &self.way(node, peer).window;
            if !was_begun && !window.is_open(true) {
                return Ok(false);
            }
            let header = Header { taken: window.taken(), ..running.header() };
            let (bytes, half_sent) = (running.sent(), &mut running.half_sent);
            let sent = self.send_portion((node, peer), header, &bytes, half_sent);
            let sent = sent.map_err(|fault| {
                self.unexpected(node, line, format!("ended in a fault: {fault}"))
            })?;
            if !was_begun && (sent || running.half_sent.is_some()) {
                self.way(node, peer).window.send(true);
            }
            if !sent || running.on_sent() {
                return Ok(sent);
            }
        }
    }

    /// Takes the portions of a step. Returns whether all have come.
    fn take_portions(
        &mut self,
        node: u32,
        line: &Line,
        from: usize,
        running: &mut Running,
    ) -> Over {
        let peer = self.world.group[from];
        loop {
            let way = self.way(node, peer);
            let Some((header, bytes)) = way.portions.pop_front() else { return Ok(false) };
            way.window.take();
            let taken = running.on_portion(header, bytes);
            let taken = taken
                .map_err(|what| self.unexpected(node, line, format!("meets node {peer}: {what}")));
            if taken? {
                return Ok(true);
            }
        }
    }
}

/// Messages.
impl Runner<'_> {
    /// The way between a node and a peer, at the node.
    pub(super) fn way(&mut self, node: u32, peer: u32) -> &mut Way {
        self.ways.entry((node, peer)).or_insert_with(Way::new)
    }

    /// A node that waits takes what has come. Returns whether there was anything.
    pub(super) fn poll(&mut self, node: u32) -> Over {
        let heard = self.world.cluster.heard(node);
        if self.member(node).heard == heard {
            return Ok(false);
        }
        self.member_mut(node).heard = heard;
        let mut has_come = false;
        for at in 0..self.world.talks.get(&node).map_or(0, Vec::len) {
            let peer = self.world.talks[&node][at];
            while self.take(node, peer) {
                has_come = true;
            }
            self.report(node, peer);
            self.send_kept(node, peer);
        }
        self.handle_next(node)?;
        Ok(has_come)
    }

    /// The next message of `send` that a node has of a peer.
    pub(super) fn message(&mut self, node: u32, peer: u32) -> Option<Message> {
        while self.way(node, peer).messages.is_empty() && self.take(node, peer) {}
        self.way(node, peer).messages.pop_front()
    }

    /// Takes the next message of a peer, if there is one.
    pub(super) fn take(&mut self, node: u32, peer: u32) -> bool {
        let from = PeerId(peer as u16);
        let Some(message) = self.world.cluster.receive(node, from) else { return false };
        let Some(tag) = message.tag.checked_sub(OWN) else {
            self.way(node, peer).messages.push_back(message);
            return true;
        };
        if tag == PORTION {
            self.on_portion(node, peer, &message.bytes);
        } else if is_handler(tag) {
            self.on_call(node, peer, Arrived { id: tag, bytes: message.bytes });
        } else if let Ok((_, Notice::Taken(taken))) = Notice::parse(tag, &message.bytes) {
            self.way(node, peer).window.on_taken(taken).expect(SOUND);
        } else if let Ok(record) = Record::parse(tag, &message.bytes) {
            self.on_record(node, peer, &record);
        }
        true
    }

    fn on_portion(&mut self, node: u32, peer: u32, bytes: &[u8]) {
        let (header, bytes) = Header::parse(bytes).expect(SOUND);
        let way = self.way(node, peer);
        way.window.on_taken(header.taken).expect(SOUND);
        way.window.on_portion().expect(SOUND);
        way.portions.push_back((header, bytes.to_vec()));
    }

    fn on_record(&mut self, node: u32, peer: u32, record: &Record<'_>) {
        let way = self.way(node, peer);
        let len = match *record {
            Record::Long { id, total, piece, arguments } => {
                way.inward.begin(id, total, None).expect(SOUND);
                way.arrived = Arrived { id, bytes: arguments.to_vec() };
                piece
            }
            Record::Empty(id) => return self.on_call(node, peer, Arrived { id, bytes: vec![] }),
            Record::Piece(len) => len,
            Record::Room(taken) => return way.outward.on_room(taken).expect(SOUND),
            _ => return,
        };
        let (offset, is_last) = way.piece(len);
        let bytes = self.world.landed((node, peer), offset..offset + len).to_vec();
        let way = self.way(node, peer);
        way.arrived.bytes.extend(bytes);
        if is_last {
            let arrived = mem::take(&mut way.arrived);
            match arrived.id {
                PORTION => self.on_portion(node, peer, &arrived.bytes),
                _ => self.on_call(node, peer, arrived),
            }
        }
    }

    /// Tells a peer what was taken of it, if that is due and there is room.
    fn report(&mut self, node: u32, peer: u32) {
        let to = PeerId(peer as u16);
        let way = self.way(node, peer);
        if let Some(taken) = way.inward.room_due() {
            let (tag, bytes) = Record::Room(taken).encode();
            if self.world.cluster.send(node, to, OWN + tag, &bytes).is_ok() {
                self.way(node, peer).inward.told(taken);
            }
        }
        let way = self.way(node, peer);
        if way.window.is_due() {
            let (tag, bytes) = Notice::Taken(way.window.taken()).encode(GROUP);
            if self.world.cluster.send(node, to, OWN + tag, &bytes).is_ok() {
                self.way(node, peer).window.send(false);
            }
        }
    }

    /// Sends a portion, or as much of a long one as there is room for. Returns whether all of it is
    /// sent.
    pub(super) fn send_portion(
        &mut self,
        (node, peer): (u32, u32),
        header: Header,
        bytes: &[u8],
        half_sent: &mut Option<usize>,
    ) -> Result<bool, Fault> {
        let (to, header) = (PeerId(peer as u16), header.encode());
        if half_sent.is_none() && !self.way(node, peer).is_free() {
            return Ok(false);
        }
        let sent = if bytes.len() <= WHOLE_MAX {
            let message = [&header, bytes].concat();
            self.world.cluster.send(node, to, OWN + PORTION, &message).map(|()| true)
        } else {
            let long = Long { id: PORTION, arguments: &header, payload: bytes };
            let mut sent = half_sent.unwrap_or(0);
            let advanced = self.advance((node, peer), long, &mut sent);
            *half_sent = (sent > 0).then_some(sent);
            // Other messages to the peer wait until this one is sent whole.
            let is_held = sent > 0 && sent < bytes.len();
            self.way(node, peer).outward.hold(is_held);
            advanced
        };
        let error = match sent {
            Ok(is_whole) => return Ok(is_whole),
            Err(error) => error,
        };
        match failed(error) {
            Tried::Fault(fault) => Err(fault),
            _ => Ok(false),
        }
    }

    /// Sends as much of a long message as there is room for. Returns whether all of it is sent.
    pub(super) fn advance(
        &mut self,
        (node, peer): (u32, u32),
        long: Long<'_>,
        sent: &mut usize,
    ) -> Result<bool, Refusal> {
        let (to, key) = (PeerId(peer as u16), self.world.landing_key(node, peer));
        let Self { ways, world, .. } = self;
        let way = ways.entry((node, peer)).or_insert_with(Way::new);
        let Way { outward, untold, .. } = way;
        let mut way = WayTo { cluster: &mut world.cluster, node, to, key, untold };
        let advanced = outward.advance(&mut way, long, sent);
        if advanced == Err(PostError::Refused(Refused::TooManyOutstanding).into()) {
            // Those under way have to be asked for.
            let ended = self.member(node).ended_operations;
            if self.member_mut(node).asked.replace(ended) != Some(ended) {
                _ = self.world.cluster.flush(node, to);
            }
        }
        advanced
    }
}

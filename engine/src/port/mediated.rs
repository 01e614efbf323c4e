//! Mediated execution, initiator's side: commands go to the target's engine and answers come back.
//!
//! A transfer longer than half a lane is cut; only its last command raises notifications at the
//! target. The target says in a counter how many commands it has executed, and in responses what
//! has data, a result or a fault.
mod answers;

use super::connection::{Connection, Executor, MediatedEnd, Requests, Sink};
use super::device::Device;
use super::local::{Buffer, Transfer};
use super::posted::Posted;

use crate::depot::expected::Answers;
use crate::error::{Busy, Fault, PostError};
use crate::mem::page::Sleeper;
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::command::{COMMAND_BYTES, RESPONSE_BYTES, Request};
use ayre_proto::deposit::message::Posted as Message;
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status;
use ayre_proto::lane::{Kind, lines_for};
use ayre_proto::limits::{LINE_PAYLOAD, NOTES_UNREAD_MAX, PENDING_MAX, RECORD_MAX};
use ayre_proto::node::ask::Ask;
use ayre_proto::notify::Classes;
use ayre_proto::segment::{Piece, Shape};
use ayre_proto::units::{PeerId, Ticket};
use std::sync::Arc;

/// Commands that one operation may be cut into: half of what responses can tell apart.
const COMMANDS_MAX: u64 = 1 << 31;

/// A checked command with its local end.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) command: Command,
    pub(crate) transfer: Transfer<'a>,
}

/// What a blocking call waits for, and where it wants a get's data.
#[derive(Debug)]
pub(crate) struct Awaited<'a> {
    place: usize,
    ticket: Ticket,
    into: &'a mut [u8],
    shape: Shape,
    outcome: Option<(Status, u64)>,
}

impl Port {
    /// Hands a checked command to the target's engine.
    // spec: POST-3, POST-4
    #[inline(never)]
    pub(crate) fn post_mediated(
        &mut self,
        peer: PeerId,
        order: Order<'_>,
    ) -> Result<Posted, PostError> {
        let Order { command, transfer } = order;
        let limit = match self.check_room(peer, &command, &transfer.shape) {
            Ok(limit) => limit,
            Err(error) => {
                // Two ports that are busy with each other both get through.
                self.progress_with(peer);
                return Err(match error {
                    PostError::Busy(reason) => self.busy(reason),
                    fault => fault,
                });
            }
        };
        let (place, ticket) = self.begin(peer, &command, &transfer, limit)?;
        let Transfer { buffer, shape } = transfer;
        let (source, into): (_, Option<&mut [u8]>) = match buffer {
            Buffer::In(into) => (Buffer::None, Some(into)),
            source => (source, matches!(command.action, Action::Fetch(_)).then_some(&mut [])),
        };
        let mut awaited = into.map(|into| Awaited { place, ticket, into, shape, outcome: None });
        self.awaited = awaited.is_some().then_some(peer.index());
        let mut pieces = shape.pieces(limit).peekable();
        while let Some(piece) = pieces.next() {
            let request = piece_of(&command, &piece, pieces.peek().is_none());
            let data = (&source, &piece);
            if !self.push_piece(peer, &request, data, awaited.as_mut()) {
                break;
            }
        }
        if let Ok(connection) = self.connection(peer) {
            connection.device.publish();
        }
        let outcome = awaited.map(|awaited| self.wait_answer(peer, awaited));
        self.stop_awaiting(peer);
        let (status, value) = outcome.unwrap_or((Status::Ok, 0));
        Ok(Posted { ticket, status, value })
    }

    /// Hands a deposit message to the owner's engine, whole: `data` goes, and what comes back is
    /// waited for where it asks for an answer.
    // spec: DEP-13, DEP-27
    pub(crate) fn deposit_mediated(
        &mut self,
        peer: PeerId,
        message: &Message,
        data: &[u8],
        answers: Answers<'_>,
    ) -> Result<Posted, PostError> {
        if let Err(reason) = self.check_message_room(peer, message, data.len()) {
            self.progress_with(peer);
            return Err(self.busy(reason));
        }
        self.notes.reserve();
        self.turns.expect_answer(peer);
        let end = mediated(self.connection_mut(peer)?)?;
        end.noted += 1;
        let (place, ticket) = end.pending.submit(message.report(), 1);
        let shape = Shape::contiguous(answers.len() as u64);
        let mut awaited = match answers {
            Answers::Call(into) if message.message.asks => {
                Some(Awaited { place, ticket, into, shape, outcome: None })
            }
            Answers::Call(_) => None,
            Answers::Reply(expected) => {
                end.put_sink(place, Sink::Reply(expected));
                None
            }
        };
        self.awaited = awaited.is_some().then_some(peer.index());
        let buffer = if data.is_empty() { Buffer::None } else { Buffer::Out(data) };
        let piece = Piece { local: 0, remote: 0, len: data.len() as u64 };
        self.push_piece(peer, message, (&buffer, &piece), awaited.as_mut());
        if let Ok(connection) = self.connection(peer) {
            connection.device.publish();
        }
        let outcome = awaited.map(|awaited| self.wait_answer(peer, awaited));
        self.stop_awaiting(peer);
        let (status, value) = outcome.unwrap_or((Status::Ok, 0));
        Ok(Posted { ticket, status, value })
    }

    fn check_message_room(
        &mut self,
        peer: PeerId,
        message: &Message,
        data: usize,
    ) -> Result<(), Busy> {
        let end = self.connection_mut(peer).and_then(mediated);
        let end = end.map_err(|_| Busy::TooManyOutstanding)?;
        if !end.pending.has_room() {
            return Err(Busy::TooManyOutstanding);
        }
        if end.note_credit() == 0 || !self.has_request_room(peer, message.message.asks, data) {
            return Err(Busy::RequestLaneFull);
        }
        Ok(())
    }

    /// Makes sure of everything that can be busy; returns the longest piece.
    // spec: POST-1, POST-2
    fn check_room(
        &mut self,
        peer: PeerId,
        command: &Command,
        shape: &Shape,
    ) -> Result<u64, PostError> {
        let (initiator, is_batch) = (self.id, self.releases);
        let connection = self.connection_mut(peer)?;
        let end = mediated(connection)?;
        if !end.pending.has_room() {
            return Err(Busy::TooManyOutstanding.into());
        }
        if command.note_at_target(initiator).is_some() && end.note_credit() == 0 {
            return Err(Busy::RequestLaneFull.into());
        }
        let limit = longest_piece(end, command, is_batch);
        if shape.count(limit) > COMMANDS_MAX {
            return Err(Fault::TooLong.into());
        }
        let first = match command.action {
            Action::Put => shape.row_len.min(limit) as usize,
            _ => 0,
        };
        if !self.has_request_room(peer, command.action.answers(), first) {
            return Err(Busy::RequestLaneFull.into());
        }
        Ok(limit)
    }

    fn begin(
        &mut self,
        peer: PeerId,
        command: &Command,
        transfer: &Transfer<'_>,
        limit: u64,
    ) -> Result<(usize, Ticket), Fault> {
        let notifies = command.note_at_target(self.id).is_some();
        self.notes.reserve();
        self.turns.expect_answer(peer);
        let end = mediated(self.connection_mut(peer)?)?;
        end.noted += u64::from(notifies);
        let commands = match command.action {
            Action::Put | Action::Get => transfer.shape.count(limit),
            _ => 1,
        };
        let (place, ticket) = end.pending.submit(command.report(), commands);
        if let Buffer::InRegion(mapping, offset) = &transfer.buffer {
            let (mapping, offset, shape) = (Arc::clone(mapping), *offset, transfer.shape);
            end.put_sink(place, Sink::Memory { mapping, offset, shape });
        }
        Ok((place, ticket))
    }

    /// Pushes one command, waiting for room. False where the peer is gone, which has ended the
    /// operation.
    // spec: PUT-4, PUT-5, GET-3
    fn push_piece(
        &mut self,
        peer: PeerId,
        request: &impl Ask,
        (buffer, piece): (&Buffer<'_>, &Piece),
        mut awaited: Option<&mut Awaited<'_>>,
    ) -> bool {
        let len = match buffer {
            Buffer::Out(_) | Buffer::OutRegion(..) => piece.len as usize,
            _ => 0,
        };
        let answered = request.is_answered();
        if !self.has_request_room(peer, answered, len) {
            let room = self.wait_for(None, |port| {
                port.take_awaited(peer, awaited.as_deref_mut());
                let gone = !port.is_alive(peer);
                (gone || port.has_request_room(peer, answered, len)).then_some(!gone)
            });
            if room != Some(true) {
                return false;
            }
        }
        let fill = |bytes: &mut [u8]| buffer.copy_out(piece.local, bytes);
        let Some(connection) = self.peers.at_mut(peer.index()) else { return false };
        let Ok(end) = mediated(connection) else { return false };
        match &mut end.requests {
            Requests::Lane(lane) => {
                let data = match buffer {
                    Buffer::Out(bytes) => &bytes[piece.local as usize..][..len],
                    _ => {
                        fill(&mut self.staging[..len]);
                        &self.staging[..len]
                    }
                };
                let pushed = lane.push((Kind::Command, 0), request.words(), data);
                debug_assert!(pushed.is_ok(), "room was made sure of");
            }
            Requests::Wire => {
                let mut wire = self.remote.wire().expect("a port with links has a wire");
                let posted = wire.post(peer, request, (len, fill));
                debug_assert!(posted.is_ok(), "as above");
            }
        }
        connection.link.kick(Sleeper::Engine);
        true
    }

    /// Whether a command with so many bytes of data finds room.
    fn has_request_room(&mut self, peer: PeerId, answered: bool, data: usize) -> bool {
        let Ok(end) = self.connection_mut(peer).and_then(mediated) else { return false };
        let len = COMMAND_BYTES + data;
        match &mut end.requests {
            Requests::Lane(lane) => lane.reserve(len).is_ok(),
            Requests::Wire => {
                self.remote.wire().is_some_and(|wire| wire.has_room(peer, answered, len))
            }
        }
    }

    /// Waits until one operation has ended. While its call runs, its connection's answers are taken
    /// in by the call, because only there is the place for a get's data known.
    // spec: GET-2, ATOM-5
    fn wait_answer(&mut self, peer: PeerId, mut awaited: Awaited<'_>) -> (Status, u64) {
        let outcome = self.wait_for(None, |port| {
            port.take_awaited(peer, Some(&mut awaited));
            let ended = port.connection(peer).map_or(Some(Fault::PeerDead), |c| c.ended);
            awaited.outcome.or_else(|| ended.map(|why| (Status::Fault(why), 0)))
        });
        outcome.unwrap_or((Status::Fault(Fault::PeerDead), 0))
    }

    /// Takes in answers for a call that waits; where the peer has gone meanwhile, all that it had
    /// answered, before the connection ends.
    fn take_awaited(&mut self, peer: PeerId, mut awaited: Option<&mut Awaited<'_>>) {
        self.take_answers(peer.index(), awaited.as_deref_mut());
        if let Some(why) = self.awaited_ends.take() {
            self.take_answers(peer.index(), awaited);
            self.end_gone(peer, why);
        }
    }

    fn stop_awaiting(&mut self, peer: PeerId) {
        self.awaited = None;
        if let Some(why) = self.awaited_ends.take() {
            self.end_gone(peer, why);
        }
    }
}

fn mediated(connection: &mut Connection) -> Result<&mut MediatedEnd, Fault> {
    match &mut connection.executor {
        Executor::Mediated(end) => Ok(end),
        Executor::Direct(_) => Err(Fault::ForeignHandle),
    }
}

impl Port {
    /// Bytes of the longest put that is posted without waiting for the target.
    // spec: PUT-4
    pub(crate) fn longest_put_at_once(&mut self, peer: PeerId) -> u64 {
        self.connection_mut(peer)
            .and_then(mediated)
            .map_or(u64::MAX, |end| longest_request(end, false))
    }
}

impl MediatedEnd {
    fn put_sink(&mut self, place: usize, sink: Sink) {
        self.sinks.resize_with(PENDING_MAX, || None);
        self.sinks[place] = Some(sink);
    }

    /// Notifications that may still be raised at the target before its program takes some.
    // spec: NOTI-9
    pub(crate) fn note_credit(&self) -> u64 {
        // NOTE-A1: the target's responder knows of what is counted (NOTE-R1) when it sees what we
        // post next. A count that cannot be leaves no credit.
        let taken = self.notes_taken_there.load(Ordering::Acquire);
        NOTES_UNREAD_MAX.saturating_sub(self.noted.wrapping_sub(taken))
    }
}

/// Room of the request lane that a put of a batch takes, or of what stands for it: lines, or
/// frames.
pub(crate) fn room_for(end: &MediatedEnd, shape: &Shape) -> u64 {
    let longest = longest_request(end, true);
    match &end.requests {
        Requests::Lane(_) => {
            let pieces = shape.pieces(longest);
            pieces.map(|piece| u64::from(lines_for(COMMAND_BYTES + piece.len as usize))).sum()
        }
        Requests::Wire => shape.count(longest),
    }
}

fn longest_piece(end: &MediatedEnd, command: &Command, is_batch: bool) -> u64 {
    match command.action {
        Action::Get => {
            let record_max = end.cut.worth().min(RECORD_MAX & !7);
            half_of(end.responses.capacity()).min(record_max) as u64 - RESPONSE_BYTES as u64
        }
        _ => longest_request(end, is_batch),
    }
}

/// A batch finds room for all of it or for none, so what it posts is cut as if paths never changed.
// spec: MTU-1, BATCH-2
fn longest_request(end: &MediatedEnd, is_batch: bool) -> u64 {
    let longest = match &end.requests {
        Requests::Lane(lane) => half_of(lane.capacity()).min(end.cut.most),
        Requests::Wire if is_batch => end.cut.most,
        Requests::Wire => end.cut.worth(),
    };
    (longest - COMMAND_BYTES) as u64
}

/// Half a lane, so that one piece is filled while the one before is taken.
fn half_of(lane: usize) -> usize {
    (lane / 2).next_multiple_of(LINE_PAYLOAD)
}

/// One command of a transfer. Only the last one notifies the target.
fn piece_of(command: &Command, piece: &Piece, last: bool) -> Request {
    let mut command = *command;
    if matches!(command.action, Action::Put | Action::Get) {
        command.claim.offset += piece.remote;
        command.claim.len = piece.len;
    }
    if !last {
        command.classes = Classes::empty();
    }
    Request { command, cookie: piece.local }
}

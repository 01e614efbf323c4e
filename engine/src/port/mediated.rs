//! Mediated execution at the initiator: commands go to the target's engine, and answers come back.
//!
//! [`ayre_proto::node::initiator`] decides how operations proceed; this module has the lanes, the
//! memory and the waits. The target counts executed commands in a shared word, and sends responses
//! for data, results and faults.
mod answers;

use super::connection::Connection;
use super::device::{AnyDevice, Device};
use super::executor::{LocalMemory, MediatedEnd, Outgoing};
use super::local::{Buffer, Piece, Sink, Source, Transfer};
use super::posted::Posted;

use crate::depot::expected::Answers;
use crate::error::{Busy, Fault, PostError};
use crate::mem::page::Sleeper;
use crate::mem::word::Word;
use crate::peer::agreement::Cut;
use crate::peer::contact::Link;
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::command::COMMAND_BYTES;
use ayre_proto::deposit::message::Posted as Message;
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::node::initiator::Requests as _;
use ayre_proto::node::initiator::{self, Begun, Bounds, Commands, Refused};
use ayre_proto::segment::Shape;
use ayre_proto::units::{PeerId, Ticket};
use std::sync::Arc;

/// A checked command with its local buffer.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) command: Command,
    pub(crate) transfer: Transfer<'a>,
}

/// The operation for which a blocking call waits, and the place for its data.
#[derive(Debug)]
pub(crate) struct Awaited<'a> {
    operation: initiator::Awaited,
    into: Sink<'a>,
}

impl Port {
    /// Passes a checked command to the target's engine.
    // spec: POST-3, POST-4
    #[inline(never)]
    pub(crate) fn post_mediated(
        &mut self,
        peer: PeerId,
        order: Order<'_>,
    ) -> Result<Posted, PostError> {
        let Order { command, transfer: Transfer { buffer, shape } } = order;
        debug_assert!(self.awaited.is_none(), "one call waits at a time");
        debug_assert!(self.awaited_ends.is_none(), "the last one has ended what it put off");
        let is_batch = self.releases;
        let memory = match &buffer {
            Buffer::InRegion(mapping, offset) => {
                Some(LocalMemory { mapping: Arc::clone(mapping), offset: *offset })
            }
            _ => None,
        };
        let fetches = matches!(command.action, Action::Fetch(_));
        let (source, into) = match buffer {
            Buffer::Out(source) => (source, fetches.then_some(Sink::None)),
            Buffer::In(into) => (Source::None, Some(into)),
            Buffer::InRegion(..) => (Source::None, None),
        };
        let (outgoing, mut way) = self.way(peer, source)?;
        let limit = match outgoing.check_room(&command, &shape, is_batch, &mut way) {
            Ok(limit) => limit,
            Err(refused) => return Err(self.refuse(peer, refused)),
        };
        let Begun { place, ticket, commands } = outgoing.begin(&command, &shape, limit, memory);
        debug_assert!(
            self.notes.has_room_for(1),
            "an operation is posted where its news have room"
        );
        self.notes.reserve();
        self.turns.expect_answer(peer);
        let operation = initiator::Awaited::new((place, ticket), shape);
        let mut awaited = into.map(|into| Awaited { operation, into });
        self.awaited = awaited.is_some().then_some(peer.index());
        let pushed = self.push_commands(peer, commands, source, awaited.as_mut());
        let posted = self.finish(peer, ticket, awaited.filter(|_| pushed.is_ok()));
        pushed?;
        Ok(posted)
    }

    /// Passes a whole deposit message to the owner's engine, with `data`. If the message asks for
    /// an answer, waits for that.
    // spec: DEP-13, DEP-27
    pub(crate) fn deposit_mediated(
        &mut self,
        peer: PeerId,
        message: &Message,
        data: &[u8],
        answers: Answers<'_>,
    ) -> Result<Posted, PostError> {
        debug_assert!(self.awaited.is_none(), "one call waits at a time");
        let source = if data.is_empty() { Source::None } else { Source::Bytes(data) };
        let (outgoing, mut way) = self.way(peer, source)?;
        if let Err(refused) = outgoing.check_message_room(message, data.len(), &mut way) {
            return Err(self.refuse(peer, refused));
        }
        let shape = Shape::contiguous(answers.len() as u64);
        let (reply, into) = match answers {
            Answers::Call(into) => (None, message.message.is_answered.then_some(Sink::Bytes(into))),
            Answers::Reply(expected) => {
                let len = expected.reply.len();
                (Some((expected, len)), None)
            }
        };
        let (place, ticket) = outgoing.begin_message(message, data.len(), reply, &mut way);
        way.link.kick(Sleeper::Engine);
        debug_assert!(self.notes.has_room_for(1), "a message is posted where its news have room");
        self.notes.reserve();
        self.turns.expect_answer(peer);
        let operation = initiator::Awaited::new((place, ticket), shape);
        let awaited = into.map(|into| Awaited { operation, into });
        self.awaited = awaited.is_some().then_some(peer.index());
        Ok(self.finish(peer, ticket, awaited))
    }

    /// Called when all commands of an operation were passed on: waits for its answer if its call
    /// does.
    #[inline(always)]
    fn finish(&mut self, peer: PeerId, ticket: Ticket, awaited: Option<Awaited<'_>>) -> Posted {
        if let Ok(connection) = self.connection(peer) {
            connection.device.publish();
        }
        let outcome = awaited.map(|awaited| self.wait_answer(peer, awaited));
        self.stop_awaiting(peer);
        let (status, value) = outcome.unwrap_or((Status::Ok, 0));
        Posted { ticket, status, value }
    }

    /// The pending operations to a peer, and the resources for commands with data of this source.
    fn way<'a>(
        &'a mut self,
        peer: PeerId,
        source: Source<'a>,
    ) -> Result<(&'a mut Outgoing, Way<'a>), Fault> {
        let connection = self.peers.at_mut(peer.index()).ok_or(Fault::ForeignHandle)?;
        let Connection { link, executor, device, .. } = connection;
        let end = executor.mediated().ok_or(Fault::ForeignHandle)?;
        let MediatedEnd { cut, responses, outgoing, notes_taken_there: taken, .. } = end;
        let (responses, staging) = (responses.capacity(), &mut *self.staging);
        Ok((outgoing, Way { link, cut, device, responses, taken, staging, source }))
    }

    /// Makes progress before it refuses, so that two ports busy with each other both proceed.
    #[cold]
    fn refuse(&mut self, peer: PeerId, refused: Refused) -> PostError {
        self.progress_with(peer);
        match refused.into() {
            PostError::Busy(reason) => self.busy(reason),
            fault => fault,
        }
    }

    /// Checks that no operation of a batch will be busy.
    // spec: BATCH-2
    pub(crate) fn check_batch_mediated(
        &mut self,
        peer: PeerId,
        commands: impl Iterator<Item = Command>,
    ) -> Result<(), PostError> {
        let (outgoing, mut way) = self.way(peer, Source::None)?;
        Ok(outgoing.check_batch(commands, &mut way)?)
    }

    /// Pushes the commands of an operation, and waits for room. If the peer has gone, the operation
    /// has ended already.
    ///
    /// # Errors
    /// [`Fault::Interrupted`]: the other commands are never pushed.
    // spec: PUT-4, PUT-5, GET-3
    fn push_commands(
        &mut self,
        peer: PeerId,
        mut commands: Commands,
        source: Source<'_>,
        mut awaited: Option<&mut Awaited<'_>>,
    ) -> Result<(), Fault> {
        loop {
            let Ok((_, mut way)) = self.way(peer, source) else { return Ok(()) };
            let is_done = commands.push(&mut way);
            way.link.kick(Sleeper::Engine);
            let wants = commands.wants().filter(|_| !is_done);
            let Some((answered, data)) = wants else { return Ok(()) };
            let room = self.wait_for(None, |port| {
                port.take_awaited(peer, awaited.as_deref_mut());
                let gone = !port.is_alive(peer);
                let mut has_room = || {
                    let way = port.way(peer, Source::None);
                    way.is_ok_and(|(_, mut way)| way.has_room(answered, data))
                };
                (gone || has_room()).then_some(!gone)
            });
            match room {
                Some(true) => {}
                Some(false) => return Ok(()),
                None => {
                    if let Some(awaited) = awaited {
                        self.forsake(peer, awaited);
                    }
                    if let Ok((outgoing, _)) = self.way(peer, Source::None) {
                        outgoing.cut(commands);
                    }
                    return Err(Fault::Interrupted);
                }
            }
        }
    }

    /// The program has interrupted the call that waits for an operation.
    fn forsake(&mut self, peer: PeerId, awaited: &Awaited<'_>) {
        if let Ok((outgoing, _)) = self.way(peer, Source::None) {
            outgoing.forsake(&awaited.operation);
        }
    }

    /// Waits until one operation has completed. Meanwhile this call takes in the connection's
    /// answers, because only it knows the place for a get's data.
    // spec: GET-2, ATOM-5
    fn wait_answer(&mut self, peer: PeerId, mut awaited: Awaited<'_>) -> (Status, u64) {
        debug_assert_eq!(self.awaited, Some(peer.index()), "nobody else takes the answers in");
        let outcome = self.wait_for(None, |port| {
            port.take_awaited(peer, Some(&mut awaited));
            let ended = port.connection(peer).map_or(Some(Fault::PeerDead), |c| c.ended);
            awaited.operation.outcome().or_else(|| ended.map(|why| (Status::Fault(why), 0)))
        });
        outcome.unwrap_or_else(|| {
            self.forsake(peer, &awaited);
            (Status::Fault(Fault::Interrupted), 0)
        })
    }

    /// Takes in answers for a call that waits. If the peer has gone meanwhile, takes in all its
    /// answers before the connection ends.
    fn take_awaited(&mut self, peer: PeerId, mut awaited: Option<&mut Awaited<'_>>) {
        let is_theirs = self.awaited.is_none_or(|index| index == peer.index());
        debug_assert!(is_theirs, "a call waits for one peer");
        self.take_answers(peer.index(), awaited.as_deref_mut());
        if let Some(why) = self.awaited_ends.take() {
            self.take_answers(peer.index(), awaited);
            self.end_gone(peer, why);
        }
    }

    fn stop_awaiting(&mut self, peer: PeerId) {
        let is_put_off = self.awaited_ends.is_some();
        debug_assert!(self.awaited.is_some() || !is_put_off, "only what a call awaits ends later");
        self.awaited = None;
        if let Some(why) = self.awaited_ends.take() {
            self.end_gone(peer, why);
        }
    }
}

impl Port {
    /// Bytes of the longest put that is posted without waiting for the target.
    // spec: PUT-4
    pub(crate) fn longest_put_at_once(&mut self, peer: PeerId) -> u64 {
        let way = self.way(peer, Source::None);
        way.map_or(u64::MAX, |(_, way)| way.bounds().longest_request(false))
    }
}

impl From<Refused> for PostError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooManyOutstanding => Busy::TooManyOutstanding.into(),
            Refused::NoRoom => Busy::RequestLaneFull.into(),
            Refused::TooLong => Fault::TooLong.into(),
        }
    }
}

/// The resources for commands to a target's engine.
struct Way<'a> {
    link: &'a Link,
    cut: &'a Cut,
    device: &'a mut AnyDevice,
    /// Bytes of the lane for answers.
    responses: usize,
    /// The target's count of notifications taken.
    taken: &'a Word,
    /// A copy of bytes on the way from a region to a lane.
    staging: &'a mut [u8; RECORD_MAX],
    /// A put's data.
    source: Source<'a>,
}

impl initiator::Requests for Way<'_> {
    #[inline]
    fn bounds(&self) -> Bounds {
        let (most, worth) = (self.cut.most, self.cut.worth());
        Bounds { requests: self.device.command_lane(), responses: self.responses, most, worth }
    }

    #[inline]
    fn taken(&self) -> u64 {
        // NOTE-A1: the target's responder knows of what is counted (NOTE-R1) when it sees our next
        // command.
        self.taken.load(Ordering::Acquire)
    }

    #[inline]
    fn has_room(&mut self, answered: bool, data: usize) -> bool {
        self.device.has_room(answered, COMMAND_BYTES + data)
    }

    #[inline]
    fn push(&mut self, command: &impl CommandRecord, data: (u64, usize)) {
        self.device.push(command, Piece::new(self.source, data, self.staging));
    }

    fn reach(&self) -> u64 {
        self.device.reach()
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        self.device.has_room_for_batch(units)
    }
}

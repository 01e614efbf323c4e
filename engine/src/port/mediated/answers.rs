//! Taking in the target's answers, and completing operations.
use super::Awaited;
use crate::depot::expected::Expected;
use crate::depot::instruction_cache::InstructionCache;
use crate::error::Fault;
use crate::mem::lane::LaneReceiver;
use crate::mem::page::Sleeper;
use crate::net::clock::Deadline;
use crate::port::Port;
use crate::port::connection::Connection;
use crate::port::executor::{LocalMemory, MediatedEnd};
use crate::port::local::Sink;
use crate::sync::Ordering;
use ayre_proto::command::{Head, RESPONSE_BYTES};
use ayre_proto::fault::Status;
use ayre_proto::lane::{self, Malformed};
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::node::initiator::{Ended, Landing, ResponseLane};
use ayre_proto::notify::Notification;
use ayre_proto::units::PeerId;

impl Port {
    /// Takes in the target's answers, and completes operations that it has executed. Returns
    /// whether any operation has completed.
    #[inline(always)]
    pub(crate) fn take_answers(&mut self, index: usize, awaited: Option<&mut Awaited<'_>>) -> bool {
        let has_answers = self.peers.at(index).is_some_and(Connection::has_answers);
        has_answers && self.take_new_answers(index, awaited)
    }

    #[inline(never)]
    fn take_new_answers(&mut self, index: usize, mut awaited: Option<&mut Awaited<'_>>) -> bool {
        let is_known = awaited.is_none() || self.awaited == Some(index);
        debug_assert!(is_known, "a call that waits has said for whom");
        let Some(connection) = self.peers.at_mut(index) else { return false };
        let peer = connection.peer;
        // Answers that found no room here may be waiting for it.
        if connection.is_driven_here() {
            self.remote.note_arrival();
        }
        let ours = (&mut *self.staging, &self.instructions);
        let Ok(waits) = take_responses(connection, ours, awaited.as_deref_mut()) else {
            self.count_malformed();
            self.end_connection(peer, Fault::Malformed);
            return false;
        };
        // A response that waits for a depot is tried again before the port sleeps.
        let mut ended = waits;
        while let Some(operation) = self.pop(peer) {
            if let Some(awaited) = awaited.as_deref_mut() {
                awaited.operation.hear(&operation);
            }
            self.end_operation(peer, &operation);
            ended = true;
        }
        ended
    }

    /// Waits until everything posted to a peer has completed. Returns whether that is so before the
    /// deadline.
    pub(crate) fn wait_flushed(&mut self, peer: PeerId, deadline: Option<Deadline>) -> bool {
        if !self.is_flushed(peer) {
            self.hasten(peer);
        }
        let flushed = self.wait_for(deadline, |port| {
            // Before each round of progress, so that this peer need not wait for its turn.
            port.turns.expect_answer(peer);
            port.is_flushed(peer).then_some(())
        });
        flushed.is_some()
    }

    fn pop(&mut self, peer: PeerId) -> Option<Ended> {
        self.connection_mut(peer).ok()?.executor.pop()
    }

    fn end_operation(&mut self, peer: PeerId, ended: &Ended) {
        let Ended { report, status, value, note, .. } = ended;
        self.notes.release();
        if let Some(note) = *note {
            self.notes.raise(note);
        }
        self.complete(peer, report, *status, *value);
    }

    /// Completes all pending operations to a peer that has gone, with a fault.
    // spec: LIFE-11
    pub(crate) fn abandon(&mut self, peer: PeerId, why: Fault) {
        debug_assert!(!self.is_alive(peer), "a connection ends before its operations do");
        let abandon = |port: &mut Self| port.connection_mut(peer).ok()?.executor.abandon(why);
        while let Some(ended) = abandon(self) {
            self.end_operation(peer, &ended);
        }
        debug_assert!(self.is_flushed(peer), "nothing stays under way to who has gone");
    }
}

impl Connection {
    /// Whether there are answers to take in.
    #[inline(always)]
    fn has_answers(&self) -> bool {
        self.ended.is_none() && self.executor.has_answers()
    }
}

/// Takes in the responses of all commands that the target counts as executed. True where one waits
/// for a depot of ours.
// spec: NOTI-3, NOTI-4
fn take_responses(
    connection: &mut Connection,
    (staging, instructions): (&mut [u8; RECORD_MAX], &InstructionCache),
    awaited: Option<&mut Awaited<'_>>,
) -> Result<bool, Malformed> {
    let peer = connection.peer;
    let Some(end) = connection.executor.mediated() else { return Ok(false) };
    let MediatedEnd { outgoing, responses, done, .. } = end;
    let (operation, into) = match awaited {
        Some(Awaited { operation, into }) => (Some(&*operation), into),
        None => (None, &mut Sink::None),
    };
    // DONE-A1: the answers of the commands counted are in the lane (DONE-R1).
    let done = done.load(Ordering::Acquire);
    let mut lane = FromLane { responses, staging, into, instructions, peer };
    let taken = outgoing.take_in(done, operation, &mut lane)?;
    if taken.has_room {
        connection.link.kick(Sleeper::Engine);
    }
    Ok(taken.waits)
}

/// The lane of answers, and the destinations of their data.
struct FromLane<'a, 'b> {
    responses: &'a mut LaneReceiver,
    /// A copy of bytes on the way from the lane to a region, or to several pieces.
    staging: &'a mut [u8; RECORD_MAX],
    /// The buffer of the call that waits.
    into: &'a mut Sink<'b>,
    instructions: &'a InstructionCache,
    peer: PeerId,
}

impl ResponseLane<LocalMemory, Box<Expected>> for FromLane<'_, '_> {
    #[inline]
    fn lines(&self) -> u32 {
        self.responses.lines()
    }

    #[inline]
    fn peek(&self) -> Option<Result<lane::Status, Malformed>> {
        self.responses.peek()
    }

    #[inline]
    fn head(&self) -> Head {
        self.responses.head()
    }

    #[inline]
    fn consume(&mut self, record: &lane::Status) {
        self.responses.consume(record);
    }
}

impl Landing<LocalMemory, Box<Expected>> for FromLane<'_, '_> {
    #[inline]
    fn to_call(&mut self, offset: u64, len: usize) {
        let Self { responses, staging, into, .. } = self;
        if let Some(into) = into.contiguous(offset, len) {
            responses.copy(RESPONSE_BYTES / 8, into);
            return;
        }
        responses.copy(RESPONSE_BYTES / 8, &mut staging[..len]);
        into.copy_in(offset, &staging[..len]);
    }

    #[inline]
    fn to_memory(&mut self, memory: &LocalMemory, offset: u64, len: usize) {
        let data = &mut self.staging[..len];
        self.responses.copy(RESPONSE_BYTES / 8, data);
        debug_assert!(
            memory.offset + offset + len as u64 <= memory.mapping.len() as u64,
            "a get lands in its region"
        );
        memory.mapping.write(memory.offset + offset, data);
    }

    fn reply(
        &mut self,
        reply: &mut Box<Expected>,
        given: u64,
        len: usize,
    ) -> Option<(Status, Option<Notification>)> {
        let data = &mut self.staging[..len];
        self.responses.copy(RESPONSE_BYTES / 8, data);
        reply.carry_out(self.instructions, self.peer, (given, data))
    }
}

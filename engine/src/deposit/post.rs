//! Posting deposit messages, at the holder of an inlet.
use super::message::Deposit;
use super::reply::Reply;
use crate::depot::carry::{Bytes, DepotEnd};
use crate::depot::expected::{Answers, Expected};

use crate::error::{Busy, Fault, PostError, Status};
use crate::mem::depot::{DepotMemory, Holder};
use crate::mem::page::Sleeper;
use crate::mem::region::PeerMemory;
use crate::port::Port;
use crate::port::connection::{Connection, active_word};
use crate::port::options::PostOptions;
use crate::port::posted::Posted as Ended;
use crate::sync::Ordering;
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{Carried, DATA_MAX, DepositMessage, Form, INLETS, Mask};
use ayre_proto::lane::Kind;
use ayre_proto::notify::{Classes, Notification};
use ayre_proto::units::{Key, PeerId, Ticket};
use std::sync::Arc;

/// An inlet into a depot of a peer, at its holder.
///
/// Messages over one inlet are executed in the order in which they were posted. An inlet that has
/// stopped refuses messages ([`Fault::Stopped`]) until its owner lets it run and
/// [`Port::rejoin_inlet`] was called. Refused messages must be posted again.
// spec: DEP-20, DEP-22
#[derive(Debug)]
pub struct RemoteInlet {
    peer: PeerId,
    /// The identity of its connection.
    connection: u64,
    key: Key,
    number: u8,
    /// The first byte in the region, and the number of bytes.
    range: (u64, u64),
    /// The mapped memory and depot of a direct connection.
    direct: Option<(PeerMemory, Arc<DepotMemory>)>,
    epoch: u8,
}

impl RemoteInlet {
    /// An inlet of this key and number, from the peer of this connection.
    pub(super) fn new(
        (peer, connection): (PeerId, u64),
        (key, number): (Key, u8),
        range: (u64, u64),
        direct: Option<(PeerMemory, Arc<DepotMemory>)>,
    ) -> Self {
        debug_assert!(usize::from(number) < INLETS, "a depot has {INLETS} inlets");
        Self { peer, connection, key, number, range, direct, epoch: 0 }
    }

    /// The peer that owns the depot.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Bytes of memory that the inlet allows to access.
    pub fn len(&self) -> u64 {
        self.range.1
    }

    /// Whether it allows access to no memory.
    pub fn is_empty(&self) -> bool {
        self.range.1 == 0
    }
}

/// The answer to a deposit message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositReply {
    /// The previous value of the register that the instruction returns; 0 where it returns none.
    pub value: u64,
    /// Whether a guard of the instruction declined the message, which then has had no effect.
    pub declined: bool,
}

impl Port {
    /// Posts a deposit message; its data may be reused when the call returns. A requester
    /// notification or [`Port::flush`] reports its status. Does not block.
    ///
    /// # Errors
    /// [`Fault::TooLong`] and [`Fault::Malformed`] where no inlet could take it;
    /// [`Fault::ForeignHandle`], [`Fault::PeerDead`]; [`Busy`] without effect, on a direct
    /// connection also [`Busy::DepotLocked`].
    // spec: DEP-6, DEP-13, DEP-27
    #[inline]
    pub fn deposit(
        &mut self,
        to: &RemoteInlet,
        deposit: &Deposit<'_>,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let message = deposit.message(0, false)?;
        let answers = Answers::Call(&mut []);
        Ok(self.post_deposit(to, &message, deposit.bytes(), answers, options)?.ticket)
    }

    /// Posts a deposit message whose answer is deposited here, by a reply over an inlet of this
    /// port's own. Does not block. When the answer has come, a call that makes progress executes
    /// the reply; then the operation completes with the reply's status. A message that faults or is
    /// declined has no reply.
    ///
    /// # Errors
    /// As [`Port::deposit`]; [`Fault::Stopped`] where the reply's inlet has stopped;
    /// [`Busy::DepotLocked`] also where its depot is frozen.
    // spec: DEP-28
    pub fn deposit_reply(
        &mut self,
        to: &RemoteInlet,
        deposit: &Deposit<'_>,
        reply: &Reply<'_>,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let message = deposit.message(reply.len(), true)?;
        let answers = Answers::Reply(self.expect_reply(reply)?);
        Ok(self.post_deposit(to, &message, deposit.bytes(), answers, options)?.ticket)
    }

    /// Posts a deposit message and returns its answer: the value of a register, and in `into` the
    /// data that was read. On a mediated connection it blocks until the answer comes, and makes
    /// progress meanwhile.
    ///
    /// # Errors
    /// As [`Port::deposit`], and the faults of the destination.
    // spec: DEP-11
    pub fn deposit_fetch(
        &mut self,
        to: &RemoteInlet,
        deposit: &Deposit<'_>,
        into: &mut [u8],
    ) -> Result<DepositReply, PostError> {
        let message = deposit.message(into.len(), true)?;
        let ended = {
            let answers = Answers::Call(into);
            self.post_deposit(to, &message, deposit.bytes(), answers, PostOptions::new())?
        };
        match ended.status {
            Status::Fault(fault) => Err(fault.into()),
            status => Ok(DepositReply { value: ended.value, declined: status == Status::Declined }),
        }
    }

    /// Lets an inlet that had stopped take messages again, after its owner has let it run. Blocks
    /// as [`Port::deposit_fetch`] does.
    ///
    /// # Errors
    /// [`Fault::Stopped`] while the owner has not let it run; else as [`Port::deposit_fetch`].
    // spec: DEP-23
    pub fn rejoin_inlet(&mut self, inlet: &mut RemoteInlet) -> Result<(), PostError> {
        let probe = DepositMessage {
            form: Form::Probe,
            operand: 0,
            mask: Mask::ALL,
            len: 0,
            brings: false,
            is_answered: true,
        };
        let ended = {
            let answers = Answers::Call(&mut []);
            self.post_deposit(inlet, &probe, &[], answers, PostOptions::new())?
        };
        match ended.status {
            Status::Fault(fault) => Err(fault.into()),
            _ => {
                inlet.epoch = ended.value as u8;
                Ok(())
            }
        }
    }

    // spec: ERR-3
    #[inline(always)]
    fn post_deposit(
        &mut self,
        to: &RemoteInlet,
        message: &DepositMessage,
        data: &[u8],
        answers: Answers<'_>,
        options: PostOptions,
    ) -> Result<Ended, PostError> {
        let has_room = self.notes.has_room_for(1);
        let connection = self.connection(to.peer)?;
        if connection.identity != to.connection {
            return Err(Fault::ForeignHandle.into());
        }
        if let Some(why) = connection.ended {
            return Err(why.into());
        }
        if !has_room {
            return Err(self.busy(Busy::NotificationsFull));
        }
        let PostOptions { classes, tag, value } = options;
        let (key, epoch, message) = (to.key, to.epoch, *message);
        let posted = Posted { key, epoch, classes, tag, value, message };
        let Some(access) = &to.direct else {
            // Copies, here and below: a value whose address is passed on could not stay in
            // registers.
            return self.deposit_mediated(to.peer, &{ posted }, data, answers);
        };
        let (ticket, carried) = match answers {
            Answers::Call(into) => {
                let bytes = if message.brings { Bytes::Brought(data) } else { Bytes::Wanted(into) };
                self.deposit_direct(to, access, &posted, bytes)?
            }
            Answers::Reply(mut expected) => {
                self.reply_direct(to, access, &{ posted }, data, &mut expected)?
            }
        };
        Ok(self.end_direct(to.peer, &posted, ticket, &carried))
    }

    /// Executes the message and its reply, on a direct connection.
    #[inline(never)]
    fn reply_direct(
        &mut self,
        to: &RemoteInlet,
        access: &(PeerMemory, Arc<DepotMemory>),
        posted: &Posted,
        data: &[u8],
        expected: &mut Expected,
    ) -> Result<(Ticket, Carried), PostError> {
        let mut read = [0; DATA_MAX];
        debug_assert!(expected.reply.len() <= DATA_MAX, "an answer is a message's data");
        let read = &mut read[..expected.reply.len()];
        let brings = posted.message.brings;
        let bytes = if brings { Bytes::Brought(data) } else { Bytes::Wanted(&mut *read) };
        let (ticket, mut carried) = self.deposit_direct(to, access, posted, bytes)?;
        if carried.status != Status::Ok {
            return Ok((ticket, carried));
        }
        let answer = (carried.given, &*read);
        let (status, note) = loop {
            let attempt = |port: &mut Self| expected.carry_out(&port.instructions, to.peer, answer);
            if let Some(ended) = self.wait_awake(None, attempt) {
                break ended;
            }
        };
        carried.status = status;
        note.into_iter().for_each(|note| self.notes.raise(note));
        self.rouse();
        Ok((ticket, carried))
    }

    /// Executes a message within this call.
    // spec: DEP-26, PROG-1
    #[inline(always)]
    fn deposit_direct(
        &mut self,
        to: &RemoteInlet,
        (memory, depot): &(PeerMemory, Arc<DepotMemory>),
        posted: &Posted,
        bytes: Bytes<'_>,
    ) -> Result<(Ticket, Carried), PostError> {
        let source = self.id;
        debug_assert_eq!(bytes.len(), usize::from(posted.message.len), "it says how many");
        debug_assert_eq!(posted.key, to.key, "a message goes over its inlet");
        let connection = self.peers.at_mut(to.peer.index());
        let connection = connection.ok_or(Fault::ForeignHandle)?;
        let end = connection.executor.direct().ok_or(Fault::ForeignHandle)?;
        if end.notes_out.reserve(NOTE_BYTES).is_err() {
            return Err(self.busy(Busy::RequestLaneFull));
        }
        let (memory_of, range, instructions) = (&memory.mapping, to.range, &self.instructions);
        let place = DepotEnd { depot, number: to.number, memory: memory_of, range, instructions };
        // Relaxed: ordered before the load below by the fence.
        connection.active.store(active_word(to.key.slot), Ordering::Relaxed);
        connection.link.fencing.light();
        // Relaxed: only the number matters.
        let is_alive = memory.generation.load(Ordering::Relaxed) == u64::from(to.key.generation);
        let carried = match is_alive {
            true => place.carry_out(Holder::of_key(to.key), posted, bytes),
            false => Some(Carried::fault(Fault::StaleKey)),
        };
        // REV-R1: our stores are visible to the owner that sees us outside (REV-A1).
        connection.active.store(0, Ordering::Release);
        let Some(carried) = carried else { return Err(self.busy(Busy::DepotLocked)) };
        if let Some(status) = carried.note() {
            notify(connection, source, &{ *posted }, status);
        }
        connection.posted += 1;
        Ok((Ticket(connection.posted), carried))
    }

    /// Completes the operation within the call.
    #[inline(always)]
    fn end_direct(
        &mut self,
        peer: PeerId,
        posted: &Posted,
        ticket: Ticket,
        carried: &Carried,
    ) -> Ended {
        let report = posted.report();
        let Carried { status, given, notifies } = *carried;
        debug_assert!(!notifies || status == Status::Ok, "what has not happened notifies nobody");
        if !report.classes_at_initiator(status).is_empty() || status.fault().is_some() {
            self.complete(peer, &report, status, given);
        }
        Ended { ticket, status, value: given }
    }
}

/// Bytes of a notification in a lane: the record, without a place of data.
const NOTE_BYTES: usize = 24;

/// Notifies the owner that a test holds, or that the inlet has stopped. The room was reserved.
#[cold]
fn notify(connection: &mut Connection, source: PeerId, posted: &Posted, status: Status) {
    let Some(end) = connection.executor.direct() else { return };
    let note: Notification = posted.report().note(source, Classes::COMPLETER, status, posted.value);
    let [head, value] = note.encode();
    let pushed = end.notes_out.push((Kind::Notification, 0), [head, value, u64::MAX], &[]);
    debug_assert!(pushed.is_ok(), "room was reserved");
    connection.link.kick(Sleeper::Port);
}

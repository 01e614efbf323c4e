//! Taking in what the target has answered, and ending what it has executed.
use super::{Awaited, mediated};
use crate::depot::memo::Memo;
use crate::error::Fault;
use crate::mem::page::Sleeper;
use crate::port::Port;
use crate::port::connection::{Connection, Executor, MediatedEnd, Sink};
use crate::sync::Ordering;
use ayre_proto::alu::Fetched;
use ayre_proto::command::{RESPONSE_BYTES, Response};
use ayre_proto::fault::Status;
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::notify::Operation;
use ayre_proto::pending::Outstanding;
use ayre_proto::units::PeerId;

impl Port {
    /// Takes in what the target has answered, and ends what it has executed. Returns whether
    /// anything ended.
    #[inline(always)]
    pub(crate) fn take_answers(&mut self, index: usize, awaited: Option<&mut Awaited<'_>>) -> bool {
        let has_answers = self.peers.at(index).is_some_and(Connection::has_answers);
        has_answers && self.take_new_answers(index, awaited)
    }

    #[inline(never)]
    fn take_new_answers(&mut self, index: usize, mut awaited: Option<&mut Awaited<'_>>) -> bool {
        let Some(connection) = self.peers.at_mut(index) else { return false };
        let peer = connection.peer;
        // Answers that found no room here may be waiting for it.
        if connection.is_driven_here() {
            self.remote.note_arrival();
        }
        let ours = (&mut *self.staging, &self.memo);
        let Ok(waits) = take_responses(connection, ours, awaited.as_deref_mut()) else {
            self.count_malformed();
            self.end_connection(peer, Fault::Malformed);
            return false;
        };
        // What waits for a depot is looked at again before anybody sleeps.
        let mut ended = waits;
        while let Some((place, outstanding)) = self.pop(peer) {
            self.end_operation(peer, place, &outstanding);
            ended = true;
            if let Some(awaited) = awaited.as_deref_mut()
                && awaited.ticket == outstanding.ticket()
            {
                awaited.outcome = Some((outstanding.status, outstanding.value));
            }
        }
        ended
    }

    /// Waits until everything posted to a peer has ended.
    pub(crate) fn wait_flushed(&mut self, peer: PeerId) {
        if !self.is_flushed(peer) {
            self.hasten(peer);
        }
        self.wait_for(None, |port| {
            // Before each round of progress, so that this peer need not wait for its turn.
            port.turns.expect_answer(peer);
            port.is_flushed(peer).then_some(())
        });
    }

    fn pop(&mut self, peer: PeerId) -> Option<(usize, Outstanding)> {
        self.connection_mut(peer).and_then(mediated).ok()?.pending.pop()
    }

    fn end_operation(&mut self, peer: PeerId, place: usize, outstanding: &Outstanding) {
        self.notes.release();
        let Outstanding { report, mut status, value, .. } = *outstanding;
        let mut sink = None;
        if let Ok(end) = self.connection_mut(peer).and_then(mediated) {
            sink = end.sinks.get_mut(place).and_then(Option::take);
            let is_ours = matches!(sink, Some(Sink::Replied(_)));
            let unheard = !is_ours && status.fault().is_some_and(|fault| fault != Fault::Held);
            if unheard && report.operation.at_target(report.classes).is_some() {
                // It has raised no notification there, so it keeps no credit for one.
                end.noted -= 1;
            }
        }
        match sink {
            Some(Sink::Replied(Some(note))) => self.notes.raise(note),
            // The peer claims to have done it, and has not answered.
            Some(Sink::Reply(_)) if status == Status::Ok => {
                status = Status::Fault(Fault::Malformed);
            }
            _ => {}
        }
        let fetches = matches!(report.operation, Operation::FetchAtomic | Operation::Deposit);
        let value = if fetches { value } else { report.value };
        self.complete(peer, &report, status, value);
    }

    /// Ends everything under way to a peer that is gone.
    // spec: LIFE-11
    pub(crate) fn abandon(&mut self, peer: PeerId, why: Fault) {
        while let Some((place, outstanding)) = self
            .connection_mut(peer)
            .and_then(mediated)
            .ok()
            .and_then(|end| end.pending.abandon(why))
        {
            self.end_operation(peer, place, &outstanding);
        }
    }
}

impl Connection {
    /// Whether there is anything to take in.
    #[inline(always)]
    fn has_answers(&self) -> bool {
        match &self.executor {
            Executor::Mediated(end) if self.ended.is_none() => {
                // Relaxed: only whether it has changed matters here.
                end.done.load(Ordering::Relaxed) != end.pending.done()
                    || end.responses.peek().is_some()
            }
            _ => false,
        }
    }
}

/// Takes in the responses of all commands that the target counts as executed; true where one waits
/// for a depot of ours.
// spec: NOTI-3, NOTI-4
fn take_responses(
    connection: &mut Connection,
    (staging, memo): (&mut [u8; RECORD_MAX], &Memo),
    mut awaited: Option<&mut Awaited<'_>>,
) -> Result<bool, Malformed> {
    let peer = connection.peer;
    let Executor::Mediated(end) = &mut connection.executor else { return Ok(false) };
    // DONE-A1: the answers of the commands counted are in the lane (DONE-R1).
    let done = end.done.load(Ordering::Acquire);
    let (mut taken, mut waits) = (false, false);
    for _ in 0..end.responses.lines() {
        let Some(record) = end.responses.peek() else { break };
        let status = record?;
        let data = (status.len as usize).checked_sub(RESPONSE_BYTES).ok_or(Malformed)?;
        if status.kind != Kind::Response {
            return Err(Malformed);
        }
        let response = Response::parse(&end.responses.head());
        let data = &mut staging[..data];
        if !take_response(end, (peer, memo), &response, data, awaited.as_deref_mut())? {
            waits = true;
            break;
        }
        end.responses.consume(&status);
        taken = true;
    }
    if taken {
        connection.link.kick(Sleeper::Engine);
    }
    // Nothing ends before what is ahead of it.
    if !waits {
        end.pending.on_done(done)?;
    }
    Ok(waits)
}

/// False where it cannot be taken in yet: a reply's depot is not free.
fn take_response(
    end: &mut MediatedEnd,
    carrier: (PeerId, &Memo),
    response: &Response,
    data: &mut [u8],
    awaited: Option<&mut Awaited<'_>>,
) -> Result<bool, Malformed> {
    let (place, outstanding) = end.pending.find(response.number).ok_or(Malformed)?;
    let operation = outstanding.report.operation;
    if let Status::Fault(fault) = response.status {
        end.pending.on_fault(place, fault);
        return Ok(true);
    }
    match operation {
        Operation::Deposit => {
            if response.status == Status::Ok
                && let Some(Some(Sink::Reply(_))) = end.sinks.get(place)
            {
                return reply(end, carrier, (place, response.value), data);
            }
            let (value, success) = (response.value, response.status == Status::Ok);
            end.pending.on_fetched(place, Fetched { value, success });
            if data.is_empty() {
                return Ok(true);
            }
            let awaited = awaited.filter(|awaited| awaited.place == place).ok_or(Malformed)?;
            end.responses.copy(RESPONSE_BYTES / 8, range_of(awaited.into, 0, data.len())?);
        }
        Operation::FetchAtomic => {
            let (value, success) = (response.value, response.status == Status::Ok);
            end.pending.on_fetched(place, Fetched { value, success });
        }
        Operation::Get => match awaited {
            Some(awaited) if awaited.place == place => {
                if !awaited.shape.holds_local(response.value, data.len() as u64) {
                    return Err(Malformed);
                }
                let into = range_of(awaited.into, response.value, data.len())?;
                end.responses.copy(RESPONSE_BYTES / 8, into);
            }
            _ => land(end, place, response.value, data)?,
        },
        _ => return Err(Malformed),
    }
    Ok(true)
}

/// Deposits what has come here. False where that must wait.
// spec: DEP-28
fn reply(
    end: &mut MediatedEnd,
    (peer, memo): (PeerId, &Memo),
    (place, given): (usize, u64),
    data: &mut [u8],
) -> Result<bool, Malformed> {
    let Some(Some(Sink::Reply(expected))) = end.sinks.get_mut(place) else { return Ok(true) };
    if data.len() != expected.len() {
        return Err(Malformed);
    }
    end.responses.copy(RESPONSE_BYTES / 8, data);
    let Some((status, note)) = expected.carry_out(memo, peer, (given, data)) else {
        return Ok(false);
    };
    end.sinks[place] = Some(Sink::Replied(note));
    match status {
        Status::Fault(fault) => end.pending.on_fault(place, fault),
        status => {
            let success = status == Status::Ok;
            end.pending.on_fetched(place, Fetched { value: given, success });
        }
    }
    Ok(true)
}

/// Puts a get's data where its call wanted it.
// spec: GET-1
fn land(
    end: &mut MediatedEnd,
    place: usize,
    cookie: u64,
    data: &mut [u8],
) -> Result<(), Malformed> {
    let Some(Some(Sink::Memory { mapping, offset, shape })) = end.sinks.get(place) else {
        return Err(Malformed);
    };
    if !shape.holds_local(cookie, data.len() as u64) {
        return Err(Malformed);
    }
    end.responses.copy(RESPONSE_BYTES / 8, data);
    mapping.write(offset + cookie, data);
    Ok(())
}

fn range_of(into: &mut [u8], cookie: u64, len: usize) -> Result<&mut [u8], Malformed> {
    let start = usize::try_from(cookie).map_err(|_| Malformed)?;
    let end = start.checked_add(len).ok_or(Malformed)?;
    into.get_mut(start..end).ok_or(Malformed)
}

//! The target's answers, and the operations that they end.
use super::{Initiator, Sink};
use crate::alu::Fetched;
use crate::command::{Head, RESPONSE_BYTES, Response};
use crate::execute::Report;
use crate::fault::{Fault, Status};
use crate::lane::{self, Kind, Malformed};
use crate::notify::{Notification, Operation};
use crate::pending::Outstanding;
use crate::segment::Shape;
use crate::units::Ticket;

/// The data of the answer at hand, and where it goes. Offsets are within what was announced.
pub trait Landing<M, R> {
    /// Copies `len` bytes of data to the buffer of the waiting call, from this offset on.
    fn to_call(&mut self, offset: u64, len: usize);
    /// Copies `len` bytes of data to memory that was named when the get began.
    fn to_memory(&mut self, memory: &M, offset: u64, len: usize);
    /// Carries a reply out with the data, and the value that the message has given: how it went,
    /// and what is to be raised for it. None where its depot is not free.
    fn reply(
        &mut self,
        reply: &mut R,
        given: u64,
        len: usize,
    ) -> Option<(Status, Option<Notification>)>;
}

/// A lane of answers, with the data of the one at its head.
pub trait ResponseLane<M, R>: Landing<M, R> {
    /// Lines of the lane: there are no more records.
    fn lines(&self) -> u32;
    /// The record at the head, if there is one.
    fn peek(&self) -> Option<Result<lane::Status, Malformed>>;
    /// Its first words.
    fn head(&self) -> Head;
    /// The answer was taken.
    fn consume(&mut self, record: &lane::Status);
}

/// The result of reading a lane of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenIn {
    /// Whether there is new room in the lane.
    pub has_room: bool,
    /// An answer waits for a depot, and nothing ends before it.
    pub waits: bool,
}

/// The result that a call waits for.
#[derive(Clone, Debug)]
pub struct Awaited {
    place: usize,
    ticket: Ticket,
    shape: Shape,
    outcome: Option<(Status, u64)>,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Names it.
    pub ticket: Ticket,
    /// The contents of its notifications.
    pub report: Report,
    /// Its status.
    pub status: Status,
    /// The result, or else the user's value.
    pub value: u64,
    /// The notification that its reply raises.
    pub note: Option<Notification>,
}

impl Awaited {
    /// The operation at `place`, whose data has this shape in the call's buffer.
    pub const fn new((place, ticket): (usize, Ticket), shape: Shape) -> Self {
        Self { place, ticket, shape, outcome: None }
    }

    /// Its place, and the shape of its data.
    pub(super) const fn wanted(&self) -> (usize, Shape) {
        (self.place, self.shape)
    }

    /// An operation has ended, this one or another.
    pub fn hear(&mut self, ended: &Ended) {
        if ended.ticket == self.ticket {
            debug_assert!(self.outcome.is_none(), "an operation ends once");
            self.outcome = Some((ended.status, ended.value));
        }
    }

    /// Its status and result, if it has ended.
    #[inline]
    pub const fn outcome(&self) -> Option<(Status, u64)> {
        self.outcome
    }
}

/// Bytes of data in a record of a lane that is to be an answer.
#[inline]
pub const fn data_of(record: &lane::Status) -> Result<usize, Malformed> {
    match (record.kind, (record.len as usize).checked_sub(RESPONSE_BYTES)) {
        (Kind::Response, Some(data)) => Ok(data),
        _ => Err(Malformed),
    }
}

impl<M, R> Initiator<M, R> {
    /// Takes an answer, with `len` bytes of data. Returns false if it must wait because the depot
    /// of its reply is not free; nothing has happened then.
    ///
    /// # Errors
    /// [`Malformed`] where no correct target answers that.
    // spec: NOTI-3, NOTI-4, GET-1
    #[inline]
    pub fn take(
        &mut self,
        response: &Response,
        len: usize,
        awaited: Option<&Awaited>,
        landing: &mut impl Landing<M, R>,
    ) -> Result<bool, Malformed> {
        let (place, outstanding) = self.pending.find(response.number).ok_or(Malformed)?;
        if let Status::Fault(fault) = response.status {
            self.pending.on_fault(place, fault);
            return Ok(true);
        }
        let awaited = awaited.filter(|awaited| awaited.place == place);
        let (value, success) = (response.value, response.status == Status::Ok);
        match outstanding.report.operation {
            Operation::Deposit if success && self.has_reply(place) => {
                return self.take_reply((place, value), len, landing);
            }
            Operation::Deposit => {
                self.pending.on_fetched(place, Fetched { value, success });
                if len > 0 {
                    match (awaited, self.sinks.get(place)) {
                        (Some(awaited), _) => {
                            check_place(&awaited.shape, 0, len)?;
                            landing.to_call(0, len);
                        }
                        (None, Some(Some(Sink::Dropped { shape }))) => check_place(shape, 0, len)?,
                        _ => return Err(Malformed),
                    }
                }
            }
            Operation::FetchAtomic => self.pending.on_fetched(place, Fetched { value, success }),
            Operation::Get => match (awaited, self.sinks.get(place)) {
                (Some(awaited), _) => {
                    check_place(&awaited.shape, value, len)?;
                    landing.to_call(value, len);
                }
                (None, Some(Some(Sink::Memory { memory, shape }))) => {
                    check_place(shape, value, len)?;
                    landing.to_memory(memory, value, len);
                }
                (None, Some(Some(Sink::Dropped { shape }))) => check_place(shape, value, len)?,
                _ => return Err(Malformed),
            },
            _ => return Err(Malformed),
        }
        Ok(true)
    }

    /// Takes the answers that are in a lane, and then the count of executed commands. All answers
    /// of counted commands must be in the lane already.
    ///
    /// # Errors
    /// [`Malformed`] where no correct target says that.
    // spec: NOTI-3, NOTI-4, LANE-10
    #[inline]
    pub fn take_in(
        &mut self,
        done: u64,
        awaited: Option<&Awaited>,
        lane: &mut impl ResponseLane<M, R>,
    ) -> Result<TakenIn, Malformed> {
        let mut taken = TakenIn { has_room: false, waits: false };
        for _ in 0..lane.lines() {
            let Some(record) = lane.peek() else { break };
            let record = record?;
            let len = data_of(&record)?;
            if !self.take(&Response::parse(&lane.head()), len, awaited, lane)? {
                taken.waits = true;
                break;
            }
            lane.consume(&record);
            taken.has_room = true;
        }
        // Nothing ends before what is ahead of it.
        if !taken.waits {
            self.on_done(done)?;
        }
        Ok(taken)
    }

    fn has_reply(&self, place: usize) -> bool {
        matches!(self.sinks.get(place), Some(Some(Sink::Reply { .. })))
    }

    /// Deposits what has come here. False where that must wait.
    // spec: DEP-28
    fn take_reply(
        &mut self,
        (place, given): (usize, u64),
        data: usize,
        landing: &mut impl Landing<M, R>,
    ) -> Result<bool, Malformed> {
        let Some(Some(Sink::Reply { reply, len })) = self.sinks.get_mut(place) else {
            return Ok(true);
        };
        if data != *len {
            return Err(Malformed);
        }
        let Some((status, note)) = landing.reply(reply, given, data) else { return Ok(false) };
        debug_assert!(
            note.is_none_or(|note| note.operation == Operation::Reply),
            "what a reply raises says so"
        );
        self.sinks[place] = Some(Sink::Replied(note));
        match status {
            Status::Fault(fault) => self.pending.on_fault(place, fault),
            status => {
                let success = status == Status::Ok;
                self.pending.on_fetched(place, Fetched { value: given, success });
            }
        }
        Ok(true)
    }

    /// The target says how many commands it has executed, and all their answers were taken in.
    ///
    /// # Errors
    /// [`Malformed`] where that cannot be.
    // spec: LANE-10
    #[inline]
    pub const fn on_done(&mut self, done: u64) -> Result<(), Malformed> {
        self.pending.on_done(done)
    }

    /// The oldest operation, if it has ended.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Ended> {
        let (place, outstanding) = self.pending.pop()?;
        Some(self.end(place, &outstanding))
    }

    /// The oldest operation, which ends because its peer is gone.
    // spec: LIFE-11
    pub fn abandon(&mut self, why: Fault) -> Option<Ended> {
        let (place, outstanding) = self.pending.abandon(why)?;
        Some(self.end(place, &outstanding))
    }

    /// Returns the credit of an operation that has ended, and its completion.
    // spec: NOTI-9, DEP-27, DEP-28
    #[inline(always)]
    fn end(&mut self, place: usize, outstanding: &Outstanding) -> Ended {
        let Outstanding { report, mut status, value, .. } = *outstanding;
        let sink = self.sinks.get_mut(place).and_then(Option::take);
        let is_ours = matches!(sink, Some(Sink::Replied(_)));
        let unheard = !is_ours && status.fault().is_some_and(|fault| fault != Fault::Held);
        if unheard && report.operation.at_target(report.classes).is_some() {
            debug_assert!(self.noted > 0, "what has begun was counted");
            // It has raised no notification there, so it keeps no credit for one.
            self.noted -= 1;
        }
        let note = match sink {
            Some(Sink::Replied(note)) => note,
            // The peer claims to have done it, and has not answered.
            Some(Sink::Reply { .. }) if status == Status::Ok => {
                status = Status::Fault(Fault::Malformed);
                None
            }
            _ => None,
        };
        let fetches = matches!(report.operation, Operation::FetchAtomic | Operation::Deposit);
        let value = if fetches { value } else { report.value };
        self.check();
        Ended { ticket: outstanding.ticket(), report, status, value, note }
    }
}

/// Checks that an answer's data lies where its operation wants it. Only a transfer of no bytes has
/// an empty piece, at its beginning.
#[inline]
fn check_place(shape: &Shape, offset: u64, len: usize) -> Result<(), Malformed> {
    if !shape.holds_local(offset, len as u64) || len == 0 && offset > 0 {
        return Err(Malformed);
    }
    debug_assert!(
        shape.local_span().is_some_and(|span| offset + len as u64 <= span),
        "what lies in a row lies in the buffer"
    );
    Ok(())
}

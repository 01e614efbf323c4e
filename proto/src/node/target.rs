//! One peer's commands as their target serves them.
//!
//! A command has six words, and data behind them. It is performed as a whole, in its turn, or it
//! waits for room for its answer or for a depot. A waiting command holds up later ones of the same
//! peer, and no other peer.
//!
//! ```text
//!   command --> parse --> room, credit --> translate --> execute --> answer, notification
//!                 |            |               |
//!                 |            '-- waits, or malformed: the connection ends
//!                 '----------------------------'-- fault: the answer
//! ```
use crate::alu::{Atomic, Fetched};
use crate::command::{COMMAND_BYTES, Head, RESPONSE_BYTES, Request, Response, Words};
use crate::deposit::DATA_MAX;
use crate::deposit::carried::Carried;
use crate::deposit::message::Posted;
use crate::execute::{Action, Command, Effects, NOWHERE, execute};
use crate::fault::{Fault, Status};
use crate::lane::{self, Kind, Malformed};
use crate::limits::{LINE_PAYLOAD, NOTES_UNREAD_MAX, RECORD_MAX};
use crate::notify::{Classes, Notification, Operation};
use crate::units::{Claim, Extent, PeerId, Rights};
use crate::xlate::Table;

/// The data of a command, and the way of its answer.
pub trait Exchange {
    /// Copies the data of a message, `into.len()` bytes.
    fn bring(&mut self, into: &mut [u8]);
    /// Hands the `len` data bytes of a put to `write`, unless they are in place already.
    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8]));
    /// Bytes of the longest answer.
    fn longest(&self) -> usize;
    /// Whether an answer of `len` bytes can be given now.
    fn has_room(&mut self, len: usize) -> bool;
    /// Gives an answer, for which there is room; `fill` writes the `len` bytes behind its head.
    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8]));
}

/// A lane of commands, whose answers go into another one.
pub trait CommandLane: Exchange {
    /// The record at the head, if there is one.
    fn peek(&self) -> Option<Result<lane::Status, Malformed>>;
    /// Its first words.
    fn head(&self) -> Words;
    /// The command was performed.
    fn consume(&mut self, record: &lane::Status);
}

/// The result of a deposit message at the inlet that its key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It was executed, or has faulted there.
    Carried(Carried),
    /// The key is alive, and names no inlet.
    NoInlet,
    /// Somebody else is inside the depot for long.
    Busy,
}

/// The memory that commands reach at their target. Nothing here can fail: extents are the results
/// of translation.
pub trait Exposed {
    /// Writes to memory.
    fn write(&mut self, to: Extent, data: &[u8]);
    /// Reads from memory.
    fn read(&self, from: Extent, into: &mut [u8]);
    /// Writes an aligned word of eight bytes, little-endian, in one access.
    fn store(&mut self, to: Extent, value: u64);
    /// Performs an atomic on memory.
    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched;
    /// Executes a deposit message; the memory of its inlet begins at `at`.
    fn carry_out(&mut self, posted: &Posted, at: Extent, exchange: &mut impl Exchange) -> Delivery;
    /// Copies what the message that was carried out last has read.
    fn give(&self, into: &mut [u8]);
}

/// The resources that one peer's commands reach: the exposed memory, and the program's
/// notifications.
pub trait Resources: Exposed {
    /// Raises a notification.
    fn notify(&mut self, notification: Notification);
    /// Number of this peer's notifications that the program has taken in all.
    fn taken(&self) -> u64;
}

/// The progress of a peer's commands at their target.
#[derive(Debug)]
pub struct Target {
    peer: PeerId,
    executed: u64,
    /// Notifications raised for this peer's commands, or that might have been.
    noted: u64,
    /// Number of notifications that were not raised although they might have been, and whose credit
    /// was not returned yet.
    spared: u64,
}

/// Bytes of data in a record of a lane that is to be a command.
// spec: ERR-5
#[inline]
pub const fn data_of(record: &lane::Status) -> Result<u64, Malformed> {
    match (record.kind, (record.len as u64).checked_sub(COMMAND_BYTES as u64)) {
        (Kind::Command, Some(data)) => Ok(data),
        _ => Err(Malformed),
    }
}

impl Target {
    /// The target for a peer that has posted nothing yet.
    pub const fn new(peer: PeerId) -> Self {
        Self { peer, executed: 0, noted: 0, spared: 0 }
    }

    /// The peer that has posted these commands.
    #[inline]
    pub const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Number of commands executed in all. It is reported once their effects and answers are
    /// visible.
    #[inline]
    pub const fn executed(&self) -> u64 {
        self.executed
    }

    /// Whether [`Target::take_spared`] has anything.
    #[inline]
    pub const fn has_spared(&self) -> bool {
        self.spared > 0
    }

    /// Notifications that count as taken although none was raised, since this was asked last.
    // spec: DEP-27
    pub const fn take_spared(&mut self) -> u64 {
        let spared = self.spared;
        self.spared = 0;
        spared
    }

    #[inline]
    fn check(&self) {
        debug_assert!(self.noted <= self.executed, "what raises a notification was executed");
        debug_assert!(self.spared <= self.noted, "what was not raised was counted");
    }

    /// Performs the next command, with `data` bytes of data. Returns false if it has to wait;
    /// nothing has happened then.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer writes that.
    // spec: ORD-1, ERR-5
    #[inline]
    pub fn perform(
        &mut self,
        (words, data): (&Words, u64),
        table: &Table,
        resources: &mut impl Resources,
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        self.check();
        if words[0] as u8 == Operation::Deposit as u8 {
            return self.perform_message((words, data), table, resources, exchange);
        }
        let request = Request::parse(words, data);
        if !self.has_room(&request, resources, exchange)? {
            return Ok(false);
        }
        let checked = request.and_then(|request| {
            let extent = self.translate(table, &request.command)?;
            Ok((request, extent))
        });
        let noted = self.noted;
        self.executed += 1;
        let number = self.executed as u32;
        match checked {
            Ok((request, extent)) => {
                let cookie = request.cookie;
                let mut fx = Performed { target: self, resources, exchange, number, cookie };
                let peer = fx.target.peer;
                execute(&request.command, extent, peer, &mut fx);
            }
            Err(fault) => {
                let head = Response { number, status: Status::Fault(fault), value: 0 }.encode();
                exchange.answer(head, 0, |_| {});
            }
        }
        debug_assert!(self.noted - noted <= 1, "a command raises one notification at most");
        self.check();
        Ok(true)
    }

    /// Performs the command at the head of a lane. False where there is none, or it has to wait.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer writes that.
    // spec: ORD-1, ERR-5
    #[inline]
    pub fn serve(
        &mut self,
        table: &Table,
        resources: &mut impl Resources,
        lane: &mut impl CommandLane,
    ) -> Result<bool, Malformed> {
        let Some(record) = lane.peek() else { return Ok(false) };
        let record = record?;
        let command = (&lane.head(), data_of(&record)?);
        if !self.perform(command, table, resources, lane)? {
            return Ok(false);
        }
        lane.consume(&record);
        Ok(true)
    }

    /// Everything that the command may cause finds room before it begins.
    // spec: LANE-10
    #[inline]
    fn has_room(
        &self,
        request: &Result<Request, Fault>,
        resources: &impl Resources,
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let answer = match request {
            Ok(Request { command: Command { action: Action::Get, claim, .. }, .. }) => {
                debug_assert!(exchange.longest() > RESPONSE_BYTES, "an answer has a head");
                let most = exchange.longest() - RESPONSE_BYTES;
                let len = usize::try_from(claim.len).map_err(|_| Malformed)?;
                if len > most {
                    return Err(Malformed);
                }
                RESPONSE_BYTES + len
            }
            _ => RESPONSE_BYTES,
        };
        if request.as_ref().is_ok_and(|r| r.command.note_at_target(self.peer).is_some()) {
            self.check_note_credit(resources)?;
        }
        Ok(exchange.has_room(answer))
    }

    /// An initiator keeps count of its notifications that the program here has not taken yet, so
    /// that they never stand in the way of commands. One that does not is malformed.
    // spec: NOTI-11
    #[inline]
    fn check_note_credit(&self, resources: &impl Resources) -> Result<(), Malformed> {
        let unread = self.noted.wrapping_sub(resources.taken());
        if unread < NOTES_UNREAD_MAX { Ok(()) } else { Err(Malformed) }
    }

    // spec: CAP-7, ERR-3
    #[inline]
    fn translate(&self, table: &Table, command: &Command) -> Result<Extent, Fault> {
        command.check()?;
        if command.action == Action::Notify {
            return Ok(NOWHERE);
        }
        table.check(self.peer, &command.claim, command.rights())
    }

    /// Places the data of a put before its turn. Nothing else of the command happens before its
    /// turn, and then everything is checked anew. Returns false, and changes nothing, if the
    /// command is no put or would be a fault.
    // spec: WIRE-13
    #[inline]
    pub fn place(
        &self,
        (words, data): (&Words, &[u8]),
        table: &Table,
        resources: &mut impl Resources,
    ) -> bool {
        let parsed = Request::parse(words, data.len() as u64);
        let Ok(Request { command, .. }) = parsed else { return false };
        if command.action != Action::Put {
            return false;
        }
        let Ok(extent) = self.translate(table, &command) else { return false };
        debug_assert!(extent.len() == data.len() as u64, "a put reaches what its data covers");
        resources.write(extent, data);
        true
    }
}

/// Deposit messages.
impl Target {
    /// Performs a message unless its answer has no room, or somebody is inside the depot for long.
    // spec: LANE-10, DEP-2, DEP-22
    #[inline]
    fn perform_message(
        &mut self,
        (words, data): (&Words, u64),
        table: &Table,
        resources: &mut impl Resources,
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let posted = Posted::parse(words, data).and_then(|posted| {
            posted.message.check()?;
            let claim = Claim { key: posted.key, offset: 0, len: 0 };
            Ok((posted, table.check(self.peer, &claim, Rights::empty())?))
        });
        let wanted = match &posted {
            Ok((Posted { message, .. }, _)) if !message.brings => usize::from(message.len),
            _ => 0,
        };
        debug_assert!(wanted <= DATA_MAX, "what wants more was refused");
        if !exchange.has_room(RESPONSE_BYTES + wanted) {
            return Ok(false);
        }
        let carried = match &posted {
            Ok((posted, extent)) => {
                self.check_note_credit(resources)?;
                match resources.carry_out(posted, *extent, exchange) {
                    Delivery::Carried(carried) => carried,
                    Delivery::NoInlet => Carried::fault(Fault::UnknownKey),
                    Delivery::Busy => return Ok(false),
                }
            }
            Err(fault) => Carried::fault(*fault),
        };
        let posted = posted.ok().map(|(posted, _)| posted);
        self.executed += 1;
        self.tell(posted.as_ref(), &carried, resources);
        let asks = posted.is_some_and(|posted| posted.message.is_answered);
        if asks || carried.status != Status::Ok {
            let (number, Carried { status, given: value, .. }) = (self.executed as u32, carried);
            let read = if status == Status::Ok { wanted } else { 0 };
            debug_assert!(read == 0 || asks, "what reads is answered");
            let head = Response { number, status, value }.encode();
            exchange.answer(head, read, |bytes| resources.give(bytes));
        }
        self.check();
        Ok(true)
    }

    /// A notification, or the credit for one back; a fault's initiator has it back from the answer.
    // spec: DEP-11, DEP-19, DEP-27
    fn tell(&mut self, posted: Option<&Posted>, carried: &Carried, resources: &mut impl Resources) {
        let Some(posted) = posted else { return };
        if let Some(status) = carried.note() {
            let note = posted.report().note(self.peer, Classes::COMPLETER, status, posted.value);
            resources.notify(note);
            self.noted += 1;
        } else if carried.status.fault().is_none() {
            self.noted += 1;
            self.spared += 1;
        }
    }
}

/// The effects of a command at its target.
struct Performed<'a, R, X> {
    target: &'a mut Target,
    resources: &'a mut R,
    exchange: &'a mut X,
    number: u32,
    cookie: u64,
}

impl<R: Resources, X: Exchange> Effects for Performed<'_, R, X> {
    #[inline]
    fn deposit(&mut self, to: Extent) {
        let Self { resources, exchange, .. } = self;
        exchange.deposit(to.len() as usize, |data| resources.write(to, data));
    }

    #[inline]
    fn collect(&mut self, from: Extent) {
        let (number, value) = (self.number, self.cookie);
        let head = Response { number, status: Status::Ok, value }.encode();
        let Self { resources, exchange, .. } = self;
        exchange.answer(head, from.len() as usize, |bytes| resources.read(from, bytes));
    }

    #[inline]
    fn store(&mut self, to: Extent, value: u64) {
        self.resources.store(to, value);
    }

    #[inline]
    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        self.resources.atomic(at, atomic)
    }

    // spec: FCAA-3
    #[inline]
    fn answer(&mut self, fetched: Fetched) {
        debug_assert!(self.number == self.target.executed as u32, "an answer names its command");
        let status = if fetched.success { Status::Ok } else { Status::Declined };
        let head = Response { number: self.number, status, value: fetched.value }.encode();
        self.exchange.answer(head, 0, |_| {});
    }

    #[inline]
    fn notify(&mut self, notification: Notification) {
        self.resources.notify(notification);
        self.target.noted += 1;
    }
}

const _: () = assert!(COMMAND_BYTES <= LINE_PAYLOAD, "a command's head lies in one line");
const _: () =
    assert!(RESPONSE_BYTES + DATA_MAX <= RECORD_MAX, "what a message reads is one answer");

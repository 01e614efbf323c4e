//! An initiator's operations on one peer, which the peer's engine performs.
//!
//! An operation becomes commands: one, or as many as a long transfer is cut into, of which the last
//! one notifies. It has ended when the target counts its last command as executed; what has a
//! result, data or a fault is answered before.
//!
//! ```text
//!   operation --> room, credit --> begun --> commands --> target
//!                      |             |                       |
//!                      '-- refused   '-- under way <-- answers, counts
//!                                           '-- ended: status, credit back, notification
//! ```
mod answers;
mod bounds;

pub use answers::{Awaited, Ended, Landing, ResponseLane, TakenIn, data_of};
pub use bounds::Bounds;

use super::command_record::CommandRecord;
use crate::command::Request;
use crate::deposit::message::Posted;
use crate::execute::{Action, Command};
use crate::limits::{NOTES_UNREAD_MAX, PENDING_MAX};
use crate::notify::{Classes, Notification};
use crate::pending::Pending;
use crate::segment::{Piece, Pieces, Shape};
use crate::units::Ticket;
use alloc::vec::Vec;
use core::iter::Peekable;

/// Commands that one operation may be cut into: half of what responses can tell apart.
const COMMANDS_MAX: u64 = 1 << 31;

const _: () = assert!(COMMANDS_MAX <= u32::MAX as u64 / 2 + 1, "numbers of 32 bits tell all apart");
const _: () = assert!(NOTES_UNREAD_MAX >= PENDING_MAX as u64, "what is under way may notify");

/// The way to a target: a lane that its engine reads, or the frames of a link.
pub trait Requests {
    /// The greatest lengths of records.
    fn bounds(&self) -> Bounds;
    /// The target's count of notifications that its program has taken.
    fn taken(&self) -> u64;
    /// Whether a command with `data` bytes finds room. `answered` selects the channel of the
    /// commands that are always answered.
    fn has_room(&mut self, answered: bool, data: usize) -> bool;
    /// Passes a command on, for which there is room. `data` is the offset of its data in the local
    /// end, and their length.
    fn push(&mut self, command: &impl CommandRecord, data: (u64, usize));
    /// Lines or frames that a batch may take at most.
    fn reach(&self) -> u64;
    /// Whether `units` units of a batch find room.
    fn has_room_for_batch(&mut self, units: u64) -> bool;
}

/// The reason why an operation was not begun. Nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The greatest number of operations is under way.
    TooManyOutstanding,
    /// The target has not taken commands or notifications yet.
    NoRoom,
    /// The operation will never find room.
    TooLong,
}

/// The destination of an answer if no call is waiting for it.
#[derive(Debug)]
enum Sink<M, R> {
    /// A get's data.
    Memory { memory: M, shape: Shape },
    /// The answer to a deposit message has `len` bytes.
    Reply { reply: R, len: usize },
    /// The call that wanted the data has ended: it is dropped.
    Dropped { shape: Shape },
    /// The reply was carried out; what is to be raised for it.
    Replied(Option<Notification>),
}

/// The operations under way to one peer. `M` names memory where data of gets lands, `R` a reply.
#[derive(Debug)]
pub struct Initiator<M, R> {
    pending: Pending,
    /// Commands that raise a notification at the target, posted in all.
    noted: u64,
    /// The destinations by the operation's place; empty before the first operation.
    sinks: Vec<Option<Sink<M, R>>>,
}

impl<M, R> Default for Initiator<M, R> {
    fn default() -> Self {
        Self::new()
    }
}

/// An operation that has begun.
#[derive(Debug)]
pub struct Begun {
    /// Names it among those under way.
    pub place: usize,
    /// Names it for ever.
    pub ticket: Ticket,
    /// The commands that are to be pushed.
    pub commands: Commands,
}

impl<M, R> Initiator<M, R> {
    /// Nothing is under way, and nothing was posted.
    pub const fn new() -> Self {
        Self { pending: Pending::new(), noted: 0, sinks: Vec::new() }
    }

    fn check(&self) {
        debug_assert!(self.noted <= self.pending.posted(), "what raises a notification was posted");
        debug_assert!(self.sinks.len() <= PENDING_MAX, "what is under way has one place");
        debug_assert!(
            !self.pending.is_empty() || self.sinks.iter().all(Option::is_none),
            "nothing is awaited of what has ended"
        );
    }

    /// Whether nothing is under way.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Commands begun in all.
    #[inline]
    pub const fn posted(&self) -> u64 {
        self.pending.posted()
    }

    /// Commands that the target has said to be executed.
    #[inline]
    pub const fn done(&self) -> u64 {
        self.pending.done()
    }

    /// Replies that are awaited.
    pub fn replies_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.sinks.iter_mut().flatten().filter_map(|sink| match sink {
            Sink::Reply { reply, .. } => Some(reply),
            _ => None,
        })
    }

    /// Notifications that may still be raised at the target before its program takes some. A count
    /// that cannot be leaves no credit.
    // spec: NOTI-9
    #[inline]
    fn note_credit(&self, requests: &impl Requests) -> u64 {
        NOTES_UNREAD_MAX.saturating_sub(self.noted.wrapping_sub(requests.taken()))
    }

    /// Checks everything that can be busy; returns the bytes of the longest piece. A batch is cut
    /// in another way.
    ///
    /// # Errors
    /// [`Refused`] where there is no room now, or never will be.
    // spec: POST-1, POST-2, NOTI-9
    #[inline]
    pub fn check_room(
        &self,
        command: &Command,
        shape: &Shape,
        is_batch: bool,
        requests: &mut impl Requests,
    ) -> Result<u64, Refused> {
        if !self.pending.has_room() {
            return Err(Refused::TooManyOutstanding);
        }
        if command.notifies_target() && self.note_credit(requests) == 0 {
            return Err(Refused::NoRoom);
        }
        let limit = requests.bounds().longest_piece(command.action, is_batch);
        if shape.count(limit) > COMMANDS_MAX {
            return Err(Refused::TooLong);
        }
        let first = match command.action {
            Action::Put => shape.row_len.min(limit) as usize,
            _ => 0,
        };
        let has_room = requests.has_room(command.action.answers(), first);
        if has_room { Ok(limit) } else { Err(Refused::NoRoom) }
    }

    /// Begins an operation for which there is room, in pieces of at most `limit` bytes. Where no
    /// call waits for a get's data, `memory` says where it lands.
    // spec: PUT-4, GET-3
    #[inline]
    pub fn begin(
        &mut self,
        command: &Command,
        shape: &Shape,
        limit: u64,
        memory: Option<M>,
    ) -> Begun {
        self.check();
        self.noted += u64::from(command.notifies_target());
        let moves = matches!(command.action, Action::Put | Action::Get);
        let count = if moves { shape.count(limit) } else { 1 };
        debug_assert!(count == shape.count(limit), "what moves no bytes is one command");
        let (place, ticket) = self.pending.submit(command.report(), count);
        if let Some(memory) = memory {
            debug_assert!(command.action == Action::Get, "a get's data lands here");
            self.put_sink(place, Sink::Memory { memory, shape: *shape });
        }
        self.check();
        let pieces = shape.pieces(limit).peekable();
        let commands = Commands { command: *command, pieces, has_room: true };
        Begun { place, ticket, commands }
    }

    /// Checks everything that can be busy for a deposit message with `data` bytes.
    ///
    /// # Errors
    /// Those of [`Initiator::check_room`].
    // spec: DEP-13, DEP-27
    pub fn check_message_room(
        &self,
        message: &Posted,
        data: usize,
        requests: &mut impl Requests,
    ) -> Result<(), Refused> {
        if !self.pending.has_room() {
            return Err(Refused::TooManyOutstanding);
        }
        let has_credit = self.note_credit(requests) > 0;
        let has_room = has_credit && requests.has_room(message.message.is_answered, data);
        if has_room { Ok(()) } else { Err(Refused::NoRoom) }
    }

    /// Begins a message for which there is room, and pushes it whole. `reply` names the reply that
    /// its answer goes to, and the bytes that it expects.
    // spec: DEP-13, DEP-27
    pub fn begin_message(
        &mut self,
        message: &Posted,
        data: usize,
        reply: Option<(R, usize)>,
        requests: &mut impl Requests,
    ) -> (usize, Ticket) {
        self.check();
        // Every one is taken to raise a notification.
        self.noted += 1;
        let (place, ticket) = self.pending.submit(message.report(), 1);
        if let Some((reply, len)) = reply {
            debug_assert!(message.message.is_answered, "a reply waits for an answer");
            self.put_sink(place, Sink::Reply { reply, len });
        }
        self.check();
        requests.push(message, (0, data));
        (place, ticket)
    }

    /// Ends the newest operation earlier, whose call waits for room no longer: these commands are
    /// never pushed. It raises no notification here or there.
    pub fn cut(&mut self, commands: Commands) {
        self.check();
        let left = commands.pieces.count() as u64;
        if left > 0 && commands.command.notifies_target() {
            debug_assert!(self.noted > 0, "what has begun was counted");
            // Its last command, which would have raised it, is among them.
            self.noted -= 1;
        }
        self.pending.cut(left, Classes::empty());
        self.check();
    }

    /// A call waits no longer for this operation, which is the newest one: data that comes for it
    /// is dropped, and it raises no notification here.
    pub fn forsake(&mut self, awaited: &Awaited) {
        let (place, shape) = awaited.wanted();
        self.pending.cut(0, Classes::RESPONDER);
        self.put_sink(place, Sink::Dropped { shape });
    }

    fn put_sink(&mut self, place: usize, sink: Sink<M, R>) {
        self.sinks.resize_with(PENDING_MAX, || None);
        debug_assert!(self.sinks[place].is_none(), "a place serves one operation");
        self.sinks[place] = Some(sink);
    }

    /// Makes sure that operations which are released together find room, all of them.
    ///
    /// # Errors
    /// Those of [`Initiator::check_room`].
    // spec: BATCH-2
    pub fn check_batch(
        &self,
        commands: impl Iterator<Item = Command>,
        requests: &mut impl Requests,
    ) -> Result<(), Refused> {
        let bounds = requests.bounds();
        let (mut count, mut notes, mut units) = (0, 0, 0);
        for command in commands {
            count += 1;
            notes += u64::from(command.notifies_target());
            units += match command.action {
                Action::Put => bounds.units(&Shape::contiguous(command.claim.len)),
                _ => 1,
            };
        }
        debug_assert!(notes <= count && count <= units, "each command takes room");
        if count > PENDING_MAX as u64 || units > requests.reach() {
            return Err(Refused::TooLong);
        }
        if (self.pending.room() as u64) < count {
            return Err(Refused::TooManyOutstanding);
        }
        let has_credit = self.note_credit(requests) >= notes;
        if has_credit && requests.has_room_for_batch(units) { Ok(()) } else { Err(Refused::NoRoom) }
    }
}

/// The commands of an operation that were not pushed yet.
#[derive(Debug)]
pub struct Commands {
    command: Command,
    pieces: Peekable<Pieces>,
    /// The next one has been found room for already.
    has_room: bool,
}

impl Commands {
    /// Pushes them in order, as far as they find room. True when none is left.
    // spec: PUT-3, PUT-4
    #[inline]
    pub fn push(&mut self, requests: &mut impl Requests) -> bool {
        while let Some((answered, data)) = self.wants() {
            if !self.has_room && !requests.has_room(answered, data) {
                return false;
            }
            self.has_room = false;
            let Some(piece) = self.pieces.next() else { break };
            let request = piece_of(&self.command, &piece, self.pieces.peek().is_none());
            requests.push(&request, (piece.local, data));
        }
        true
    }

    /// The room that the next command needs: its channel, and its bytes of data.
    #[inline]
    pub fn wants(&mut self) -> Option<(bool, usize)> {
        let piece = self.pieces.peek()?;
        let data = if self.command.action == Action::Put { piece.len as usize } else { 0 };
        Some((self.command.action.answers(), data))
    }
}

/// One command of a transfer. Only the last one notifies the target.
#[inline]
fn piece_of(command: &Command, piece: &Piece, last: bool) -> Request {
    let mut command = *command;
    if matches!(command.action, Action::Put | Action::Get) {
        let end = command.claim.offset + command.claim.len;
        command.claim.offset += piece.remote;
        command.claim.len = piece.len;
        debug_assert!(command.claim.offset + piece.len <= end, "a piece lies within its transfer");
    }
    if !last {
        command.classes = Classes::empty();
    }
    Request { command, cookie: piece.local }
}

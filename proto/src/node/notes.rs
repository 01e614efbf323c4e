//! A port's notifications: those that were raised and its program has not taken, and room for what
//! operations under way may still raise.
//!
//! ```text
//!   operation --> room kept --> ended --> raised --> taken
//!   peer's command -- credit of that peer -->'          '--> credit back
//! ```
use super::initiator::Ended;
use crate::execute::Report;
use crate::fault::Status;
use crate::limits::NOTIFICATIONS_MAX;
use crate::notify::{Classes, Notification};
use crate::units::PeerId;
use alloc::collections::VecDeque;

/// Notifications that one operation may raise at its initiator.
pub const NOTES_PER_OPERATION: usize = 2;
const _: () = assert!(
    Classes::REQUESTER.union(Classes::COMPLETER).bits().count_ones() as usize
        == NOTES_PER_OPERATION,
    "those are the classes that are raised there"
);

/// A notification queue. Who begins an operation makes sure of room first, and what a peer's
/// command raises has that peer's credit, so it never overflows.
#[derive(Debug, Default)]
pub struct Notes {
    queue: VecDeque<Notification>,
    /// What operations under way may still raise.
    owed: usize,
}

impl Notes {
    /// Nothing was raised, and nothing is under way.
    pub const fn new() -> Self {
        Self { queue: VecDeque::new(), owed: 0 }
    }

    fn check(&self) {
        debug_assert!(self.owed.is_multiple_of(NOTES_PER_OPERATION), "all owe the same");
        debug_assert!(self.owed <= NOTIFICATIONS_MAX, "what is owed has its room");
    }

    /// Whether so many operations more find room for what they may raise.
    // spec: NOTI-8
    pub fn has_room_for(&self, operations: usize) -> bool {
        self.queue.len() + self.owed + operations * NOTES_PER_OPERATION <= NOTIFICATIONS_MAX
    }

    /// An operation has begun, for which there is room.
    // spec: NOTI-8
    pub fn reserve(&mut self) {
        self.owed += NOTES_PER_OPERATION;
        self.check();
    }

    /// A peer's command raises one.
    pub fn raise(&mut self, note: Notification) {
        self.queue.push_back(note);
    }

    /// An operation on this peer has ended: what it raises here takes the room that was kept.
    // spec: NOTI-2, NOTI-6, NOTI-7
    pub fn end(&mut self, peer: PeerId, ended: &Ended) {
        debug_assert!(self.owed >= NOTES_PER_OPERATION, "each operation ends once");
        let before = self.queue.len();
        self.owed -= NOTES_PER_OPERATION;
        self.queue.extend(ended.note);
        self.queue.extend(at_initiator(peer, &ended.report, ended.status, ended.value));
        let raised = self.queue.len() - before - usize::from(ended.note.is_some());
        debug_assert!(raised <= NOTES_PER_OPERATION, "it raises no more than was reserved");
        self.check();
    }

    /// The program takes the oldest one.
    pub fn take(&mut self) -> Option<Notification> {
        self.queue.pop_front()
    }

    /// Whether one that this peer has raised waits here.
    // spec: LIFE-14
    pub fn has_of(&self, peer: PeerId) -> bool {
        self.queue.iter().any(|note| is_raised_by(note, peer))
    }

    /// Those that this peer has raised would credit a later connection of its number.
    // spec: LIFE-14
    pub fn forget(&mut self, peer: PeerId) {
        self.queue.retain(|note| !is_raised_by(note, peer));
        debug_assert!(!self.has_of(peer), "none is left");
    }
}

fn is_raised_by(note: &Notification, peer: PeerId) -> bool {
    note.source == peer && note.is_raised_at_target()
}

/// What an operation that has ended raises at its initiator, where it was on this peer.
// spec: NOTI-2, NOTI-6, NOTI-7
pub fn at_initiator(
    peer: PeerId,
    report: &Report,
    status: Status,
    value: u64,
) -> impl Iterator<Item = Notification> {
    let classes = report.classes_at_initiator(status);
    debug_assert!(!classes.contains(Classes::RESPONDER), "the target raises that");
    let values = [(Classes::REQUESTER, report.value), (Classes::COMPLETER, value)];
    let asked = values.into_iter().filter(move |(class, _)| classes.contains(*class));
    let report = *report;
    asked.map(move |(class, value)| report.note(peer, class, status, value))
}

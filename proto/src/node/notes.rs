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
use crate::limits::{BATCH_MAX, NOTIFICATIONS_MAX};
use crate::notify::{Classes, Notification, Packed};
use crate::units::PeerId;
use alloc::collections::VecDeque;

/// Notifications that one operation may raise at its initiator.
pub const NOTES_PER_OPERATION: usize = 2;
const _: () = assert!(
    Classes::REQUESTER.union(Classes::COMPLETER).bits().count_ones() as usize
        == NOTES_PER_OPERATION,
    "those are the classes that are raised there"
);

/// A notification queue. An operation reserves its room before it begins, and a peer's command has
/// credit for its notification, so the queue never overflows.
#[derive(Debug)]
pub struct Notes {
    queue: VecDeque<Packed>,
    /// Notifications that operations under way may still raise.
    owed: usize,
}

impl Default for Notes {
    fn default() -> Self {
        Self::new()
    }
}

impl Notes {
    /// Nothing was raised, and nothing is under way.
    pub fn new() -> Self {
        Self { queue: VecDeque::with_capacity(NOTIFICATIONS_MAX), owed: 0 }
    }

    fn check(&self) {
        debug_assert!(self.owed.is_multiple_of(NOTES_PER_OPERATION), "all owe the same");
        debug_assert!(self.owed <= NOTIFICATIONS_MAX, "what is owed has its room");
    }

    /// Whether the notifications of `operations` more operations find room.
    // spec: NOTI-8
    #[inline(always)]
    pub fn has_room_for(&self, operations: usize) -> bool {
        self.queue.len() + self.owed + operations * NOTES_PER_OPERATION <= NOTIFICATIONS_MAX
    }

    /// Whether none waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// An operation has begun, for which there is room.
    // spec: NOTI-8
    #[inline]
    pub fn reserve(&mut self) {
        self.owed += NOTES_PER_OPERATION;
        self.check();
    }

    /// An operation has ended: what it raises takes its room.
    #[inline]
    pub fn release(&mut self) {
        debug_assert!(self.owed >= NOTES_PER_OPERATION, "each operation ends once");
        self.owed -= NOTES_PER_OPERATION;
        self.check();
    }

    /// Raises one that was made sure of: a peer's command has credit for it.
    #[inline]
    pub fn raise(&mut self, note: Notification) {
        self.queue.push_back(note.pack());
    }

    /// Takes over what peers' commands have raised elsewhere.
    pub fn hear(&mut self, raised: &mut VecDeque<Packed>) {
        self.queue.append(raised);
        debug_assert!(raised.is_empty(), "what was raised stands here");
    }

    /// An operation on this peer has ended, which was under way.
    // spec: NOTI-2, NOTI-6, NOTI-7
    pub(super) fn end(&mut self, peer: PeerId, ended: &Ended) {
        let before = self.queue.len();
        self.release();
        if let Some(note) = ended.note {
            self.raise(note);
        }
        self.complete(peer, &ended.report, ended.status, ended.value);
        let raised = self.queue.len() - before - usize::from(ended.note.is_some());
        debug_assert!(raised <= NOTES_PER_OPERATION, "it raises no more than was reserved");
    }

    /// Raises what an operation on this peer raises here when it has ended.
    // spec: NOTI-2, NOTI-6, NOTI-7
    #[inline]
    pub fn complete(&mut self, peer: PeerId, report: &Report, status: Status, value: u64) {
        let classes = report.classes_at_initiator(status);
        debug_assert!(!classes.contains(Classes::RESPONDER), "the target raises that");
        if classes.contains(Classes::REQUESTER) {
            self.raise(report.note(peer, Classes::REQUESTER, status, report.value));
        }
        if classes.contains(Classes::COMPLETER) {
            self.raise(report.note(peer, Classes::COMPLETER, status, value));
        }
    }

    /// The program takes the oldest one.
    #[inline]
    pub fn take(&mut self) -> Option<Packed> {
        self.queue.pop_front()
    }

    /// Whether one that this peer has raised waits here.
    // spec: LIFE-14
    pub fn has_of(&self, peer: PeerId) -> bool {
        self.queue.iter().any(|note| is_raised_by(note, peer))
    }

    /// Forgets a peer's raised notifications, which would otherwise give credit to a later
    /// connection of its number.
    // spec: LIFE-14
    pub fn forget(&mut self, peer: PeerId) {
        self.queue.retain(|note| !is_raised_by(note, peer));
        debug_assert!(!self.has_of(peer), "none is left");
    }
}

const _: () = assert!(
    BATCH_MAX * NOTES_PER_OPERATION <= NOTIFICATIONS_MAX,
    "a whole batch finds room, where its program takes what was raised"
);

fn is_raised_by(note: &Packed, peer: PeerId) -> bool {
    note.source() == peer && note.unpack().is_raised_at_target()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::Operation;

    fn note(source: u16, class: Classes) -> Notification {
        let (operation, status) = (Operation::Put, Status::Ok);
        Notification { source: PeerId(source), class, status, operation, tag: 0, value: 7 }
    }

    // spec: NOTI-8
    #[test]
    fn an_operation_reserves_notification_room_until_it_ends() {
        let mut notes = Notes::new();
        let most = NOTIFICATIONS_MAX / NOTES_PER_OPERATION;
        assert!(notes.has_room_for(most) && !notes.has_room_for(most + 1));
        (0..most).for_each(|_| notes.reserve());
        assert!(!notes.has_room_for(1));
        notes.release();
        assert!(notes.has_room_for(1));
        notes.raise(note(1, Classes::REQUESTER));
        assert!(!notes.has_room_for(1), "what it has raised has its room");
        assert!(notes.take().is_some() && notes.has_room_for(1));
    }

    // spec: LIFE-14
    #[test]
    fn forgetting_a_peer_drops_only_its_notifications() {
        let mut notes = Notes::new();
        notes.raise(note(1, Classes::COMPLETER));
        notes.raise(note(2, Classes::COMPLETER));
        notes.raise(note(1, Classes::REQUESTER));
        assert!(notes.has_of(PeerId(1)));
        notes.forget(PeerId(1));
        let left = alloc::vec![notes.take(), notes.take(), notes.take()];
        let [completer, requester] =
            [note(2, Classes::COMPLETER), note(1, Classes::REQUESTER)].map(|note| note.pack());
        assert_eq!(left, [Some(completer), Some(requester), None]);
    }
}

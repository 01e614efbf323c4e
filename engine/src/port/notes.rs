//! Notifications that this port has raised and its program has not taken, and room for those that
//! operations under way may still raise.
use super::notification::raised_at_target;
use super::posted::NOTES_PER_OPERATION;
use crate::target::Responder;
use ayre_proto::limits::{BATCH_MAX, NOTIFICATIONS_MAX};
use ayre_proto::notify::{Notification, Packed};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// A port's notification queue. A post makes sure of room first, so it never overflows.
#[derive(Debug)]
pub(crate) struct Notes {
    queue: VecDeque<Packed>,
    /// What operations under way may still raise here.
    owed: usize,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::with_capacity(NOTIFICATIONS_MAX), owed: 0 }
    }

    /// Whether so many operations more find room for what they may raise.
    // spec: NOTI-8
    #[inline(always)]
    pub(crate) fn has_room_for(&self, operations: usize) -> bool {
        self.queue.len() + self.owed + operations * NOTES_PER_OPERATION <= NOTIFICATIONS_MAX
    }

    /// An operation is under way.
    pub(super) fn reserve(&mut self) {
        debug_assert!(self.owed.is_multiple_of(NOTES_PER_OPERATION), "all owe the same");
        self.owed += NOTES_PER_OPERATION;
    }

    /// An operation has ended: what it raises takes its room.
    pub(super) fn release(&mut self) {
        debug_assert!(self.owed >= NOTES_PER_OPERATION, "each operation ends once");
        self.owed -= NOTES_PER_OPERATION;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn raise(&mut self, note: Notification) {
        self.queue.push_back(note.pack());
    }

    /// Takes over what the responder has raised for peers. Returns the peers that wrote what no
    /// correct peer writes.
    pub(super) fn hear(&mut self, responder: &mut Responder) -> Vec<PeerId> {
        let raised = self.queue.len();
        let malformed = responder.tell(&mut self.queue);
        debug_assert!(self.queue.len() >= raised, "what was raised stays");
        malformed
    }

    pub(super) fn take(&mut self) -> Option<Packed> {
        self.queue.pop_front()
    }

    /// Whether one that this peer has raised waits here.
    pub(super) fn has_of(&self, peer: PeerId) -> bool {
        self.queue.iter().any(|note| is_raised_by(note, peer))
    }

    /// Those that this peer has raised would credit a later connection of its number.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.queue.retain(|note| !is_raised_by(note, peer));
        debug_assert!(!self.has_of(peer), "none is left");
    }
}

const _: () = assert!(
    BATCH_MAX * NOTES_PER_OPERATION <= NOTIFICATIONS_MAX,
    "a whole batch finds room, where its program takes what was raised"
);

fn is_raised_by(note: &Packed, peer: PeerId) -> bool {
    note.source() == peer && raised_at_target(&note.unpack())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ayre_proto::fault::Status;
    use ayre_proto::notify::{Classes, Operation};

    fn note(source: u16, class: Classes) -> Notification {
        let (operation, status) = (Operation::Put, Status::Ok);
        Notification { source: PeerId(source), class, status, operation, tag: 0, value: 7 }
    }

    // spec: NOTI-8
    #[test]
    fn what_is_under_way_keeps_room_until_it_has_ended() {
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
    fn a_peer_that_is_forgotten_takes_what_it_has_raised_along_and_nothing_else() {
        let mut notes = Notes::new();
        notes.raise(note(1, Classes::COMPLETER));
        notes.raise(note(2, Classes::COMPLETER));
        notes.raise(note(1, Classes::REQUESTER));
        assert!(notes.has_of(PeerId(1)));
        notes.forget(PeerId(1));
        let left: Vec<_> = std::iter::from_fn(|| notes.take()).map(Packed::unpack).collect();
        assert_eq!(left, [note(2, Classes::COMPLETER), note(1, Classes::REQUESTER)]);
    }
}

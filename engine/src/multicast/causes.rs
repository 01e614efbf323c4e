//! What a group's machine causes: messages to members, and what is to be run here.
use super::board::Board;
use super::calls::Change;
use super::club::{Due, port_of};
use super::content::Content;
use crate::active::outgoing::Outgoing;
use crate::connection::Mode;
use arrayvec::ArrayVec;
use ayre_proto::active::record::GROUP;
use ayre_proto::group::{Effects, Label, MESSAGE_BYTES, Member, Message, SEATS_MAX, View};
use ayre_proto::limits::EAGER_MAX;
use std::collections::VecDeque;

/// Bytes of the names of sender and receiver, in front of what a machine says.
pub(super) const NAMES: usize = 8;

/// Messages that a peer may be owed: more than any window has need of.
const OWED_MAX: usize = 1 << 18;

/// The effects of one membership's machine.
pub(super) struct Causes<'a> {
    pub(super) out: &'a mut Outgoing,
    pub(super) id: u32,
    pub(super) me: Member,
    pub(super) due: &'a mut VecDeque<Due>,
    pub(super) board: Option<&'a mut Board>,
    pub(super) has_ended: bool,
    /// Members that a board would reach get messages one by one.
    pub(super) wants_board: bool,
}

impl<'a> Causes<'a> {
    pub(super) fn new(
        out: &'a mut Outgoing,
        (id, me): (u32, Member),
        due: &'a mut VecDeque<Due>,
        board: Option<&'a mut Board>,
    ) -> Self {
        Self { out, id, me, due, board, has_ended: false, wants_board: false }
    }
}

impl Effects<Content> for Causes<'_> {
    fn send(&mut self, to: Member, message: Message<'_, Content>) {
        self.out.say(self.id, (self.me, to), &message);
    }

    fn deliver(&mut self, label: Label, payload: &Content) {
        self.due.push_back(Due::Message(label, payload.clone()));
    }

    fn view_changed(&mut self, ticket: u64, view: &View) {
        self.due.push_back(Due::Changed(Change::view(ticket, view)));
    }

    fn left(&mut self) {
        self.has_ended = true;
    }

    fn is_dead(&self, who: Member) -> bool {
        who != self.me && self.out.was_told_dead(who)
    }

    /// On this host, to all at once, where they read it.
    // spec: GRP-6, GRP-25
    fn spread(&mut self, to: impl Iterator<Item = Member>, message: Message<'_, Content>) {
        let Message::Tree { view, stable, label, payload } = &message else { return };
        let mut is_read = &[][..];
        if let Some(board) = &mut self.board
            && board.write((*view, *stable), label, payload)
        {
            is_read = &board.readers;
        }
        let mut readers = is_read.iter().peekable();
        let mut are_left = false;
        for child in to {
            // Both are in the order in which they joined.
            match readers.next_if(|reader| reader.member == child) {
                Some(reader) if reader.reads => self.out.port.wake(port_of(child)),
                known => {
                    are_left |= known.is_none();
                    self.out.say(self.id, (self.me, child), &message);
                }
            }
        }
        self.wants_board = are_left;
    }

    /// A root that reaches the memory of all others tells them all at once.
    // spec: GRP-6, GRP-25
    fn branches(&self, view: &View) -> u8 {
        let mut others = view.seats().iter().map(|seat| seat.member).filter(|one| *one != self.me);
        let reaches = |member| self.out.port.mode(port_of(member)) == Ok(Mode::Direct);
        if others.all(reaches) { SEATS_MAX as u8 } else { 2 }
    }
}

impl Outgoing {
    /// Says something about a board: a kind, and nothing else.
    pub(super) fn say_kind(&mut self, group: u32, (from, to): (Member, Member), kind: u32) {
        let words = [from.0, to.0, group, kind].map(u32::to_le_bytes);
        self.owe_bytes(port_of(to), GROUP, words.as_flattened());
    }

    /// Sends what a member says, or keeps it until there is room: a machine bounds how much it has
    /// under way. To who has died, nothing goes.
    // spec: GRP-23
    pub(super) fn say(
        &mut self,
        group: u32,
        (from, to): (Member, Member),
        message: &Message<'_, Content>,
    ) {
        let (bytes, content) = message.encode(group);
        let shared = content.and_then(Content::shared);
        let mut head = ArrayVec::<u8, { NAMES + MESSAGE_BYTES }>::new();
        for part in [&from.0.to_le_bytes()[..], &to.0.to_le_bytes(), &bytes] {
            head.try_extend_from_slice(part).expect("there is room for names and a message");
        }
        let to = port_of(to);
        if self.owes_beyond(to, OWED_MAX) {
            // It asks again and again, and takes no answer.
            return self.port.end_malformed_lane(to);
        }
        let content = content.map_or(&[][..], |content| content);
        let mut record = ArrayVec::<u8, EAGER_MAX>::new();
        let fits =
            [&head[..], content].iter().all(|part| record.try_extend_from_slice(part).is_ok());
        match shared.filter(|_| !fits) {
            Some(shared) => self.owe_long(to, GROUP, &head, shared),
            None => self.owe_bytes(to, GROUP, &record),
        }
    }
}

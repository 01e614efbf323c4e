//! What a group's machine causes: messages to members, and what is to be run here.
use super::calls::Change;
use super::club::{Due, port_of};
use crate::active::outgoing::Outgoing;
use arrayvec::ArrayVec;
use ayre_proto::active::record::GROUP;
use ayre_proto::group::{Effects, Label, MESSAGE_BYTES, Member, Message, View};
use ayre_proto::limits::EAGER_MAX;
use std::collections::VecDeque;
use std::sync::Arc;

/// A handler's number, its arguments and the payload, one behind the other: shared by all for whom
/// it is kept.
pub(super) type Content = Arc<Vec<u8>>;

/// Bytes of the names of sender and receiver, in front of what a machine says.
pub(super) const NAMES: usize = 8;

/// The effects of one membership's machine.
pub(super) struct Causes<'a> {
    pub(super) out: &'a mut Outgoing,
    pub(super) id: u32,
    pub(super) me: Member,
    pub(super) due: &'a mut VecDeque<Due>,
    pub(super) has_ended: bool,
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
        who != self.me && self.out.port.is_silent(port_of(who))
    }
}

impl Outgoing {
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
        let mut head = ArrayVec::<u8, { NAMES + MESSAGE_BYTES }>::new();
        for part in [&from.0.to_le_bytes()[..], &to.0.to_le_bytes(), &bytes] {
            head.try_extend_from_slice(part).expect("there is room for names and a message");
        }
        let to = port_of(to);
        match content {
            Some(content) if head.len() + content.len() > EAGER_MAX => {
                self.owe_long(to, GROUP, &head, content.clone());
            }
            content => {
                let mut record = ArrayVec::<u8, EAGER_MAX>::new();
                for part in [&head[..], content.map_or(&[], |content| content)] {
                    record.try_extend_from_slice(part).expect("it has been measured");
                }
                self.owe_bytes(to, GROUP, &record);
            }
        }
    }
}

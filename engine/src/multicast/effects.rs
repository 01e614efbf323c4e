//! The effects of a group's state machine: messages to members, and deliveries here.
use super::content::{Content, Kept, copy_of};
use super::due::{Change, Due};
use super::names::port_of;
use super::shared_log::{Reading, SharedLog};
use crate::active::outgoing::Outgoing;
use crate::settings::choice::Mode;
use arrayvec::ArrayVec;
use ayre_proto::group::{
    Bytes, Effects, GROUP, Label, MESSAGE_BYTES, Member, Message, SEATS_MAX, View,
};
use ayre_proto::limits::EAGER_MAX;
use std::collections::VecDeque;

/// Bytes of the names of sender and receiver, in front of a machine's message.
pub(super) const NAMES: usize = 8;

/// The most messages that a peer may be owed, more than any window needs.
pub(super) const OWED_MAX: usize = 1 << 18;

/// The effects of one membership's state machine.
pub(super) struct MemberEffects<'a> {
    pub(super) out: &'a mut Outgoing,
    pub(super) id: u32,
    pub(super) me: Member,
    pub(super) due: &'a mut VecDeque<Due>,
    pub(super) log: Option<&'a mut SharedLog>,
    pub(super) reading: Option<&'a Reading>,
    pub(super) has_ended: bool,
    /// Members of the view got a message before the shared log was offered to them.
    pub(super) wants_log: bool,
}

impl<'a> MemberEffects<'a> {
    pub(super) fn new(
        out: &'a mut Outgoing,
        (id, me): (u32, Member),
        due: &'a mut VecDeque<Due>,
    ) -> Self {
        debug_assert_eq!(port_of(me), out.port.id, "a machine is a member's of this port");
        let (log, reading, has_ended, wants_log) = (None, None, false, false);
        Self { out, id, me, due, log, reading, has_ended, wants_log }
    }

    /// Returns a kept content, copied if it is in a shared log.
    fn content(&self, kept: &Kept) -> Content {
        let place = match kept {
            Kept::Own(content) => return content.clone(),
            Kept::InLog(place) => *place,
        };
        let log = self.log.as_ref().map(|log| log.memory());
        let memory = self.reading.map(Reading::memory).or(log);
        debug_assert!(memory.is_some(), "what is kept on a log is of this view");
        memory.map_or_else(Content::default, |memory| copy_of(memory, place))
    }
}

impl Effects<Kept> for MemberEffects<'_> {
    fn send(&mut self, to: Member, message: Message<'_, Kept>) {
        let (bytes, kept) = message.encode(self.id);
        let content = kept.map(|kept| self.content(kept));
        self.out.say((self.me, to), &bytes, content.as_ref());
    }

    fn deliver(&mut self, label: Label, payload: Kept) {
        match payload {
            Kept::Own(content) => self.due.push_back(Due::Message(port_of(label.origin), content)),
            // The caller that has read it runs it at once.
            Kept::InLog(_) => {}
        }
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

    /// Sends a message to all members at once, if they read the shared log.
    // spec: GRP-6, GRP-25
    fn spread(
        &mut self,
        to: impl Iterator<Item = Member>,
        (view, stable): (u64, u64),
        label: Label,
        payload: &Kept,
    ) -> Kept {
        let content = self.content(payload);
        let (bytes, _) = Message::Tree { view, stable, label, payload: () }.encode(self.id);
        let mut place = None;
        match &mut self.log {
            Some(log) if log.is_of(view) => {
                place = log.write((view, stable), &label, [&content, &[], &[]]);
            }
            _ => self.wants_log = true,
        }
        let (Some(place), Some(log)) = (place, &self.log) else {
            to.for_each(|child| self.out.say((self.me, child), &bytes, Some(&content)));
            return payload.clone();
        };
        for (reader, reads) in log.readers() {
            match reads {
                true => self.out.port.kick(port_of(reader)),
                false => self.out.say((self.me, reader), &bytes, Some(&content)),
            }
        }
        Kept::InLog(place)
    }

    /// One branch for each member if this root reaches the memory of all of them, else two.
    // spec: GRP-6, GRP-25
    fn branches(&self, view: &View) -> u8 {
        let mut others = view.seats().iter().map(|seat| seat.member).filter(|one| *one != self.me);
        let reaches = |member| self.out.port.mode(port_of(member)) == Ok(Mode::Direct);
        if others.all(reaches) { SEATS_MAX as u8 } else { 2 }
    }
}

impl Outgoing {
    /// Sends a message about a shared log, which consists of its kind.
    pub(super) fn say_kind(&mut self, group: u32, (from, to): (Member, Member), kind: u32) {
        debug_assert_eq!(port_of(from), self.port.id, "members of this port speak");
        let words = [from.0, to.0, group, kind].map(u32::to_le_bytes);
        self.owe_bytes(port_of(to), GROUP, words.as_flattened());
    }

    /// Sends a machine's message to a member, or keeps it until there is room. A machine bounds its
    /// messages under way. Nothing is sent to a dead member.
    // spec: GRP-23
    pub(super) fn say(
        &mut self,
        (from, to): (Member, Member),
        bytes: &Bytes,
        content: Option<&Content>,
    ) {
        let mut head = ArrayVec::<u8, { NAMES + MESSAGE_BYTES }>::new();
        for part in [&from.0.to_le_bytes()[..], &to.0.to_le_bytes(), bytes] {
            head.try_extend_from_slice(part).expect("there is room for names and a message");
        }
        let to = port_of(to);
        if self.owes_beyond(to, OWED_MAX) {
            // The peer sends requests and takes no answers.
            if self.port.is_alive(to) {
                self.port.end_malformed_lane(to);
            }
            return;
        }
        let bytes = content.map_or(&[][..], |content| content);
        let mut record = ArrayVec::<u8, EAGER_MAX>::new();
        let fits = [&head[..], bytes].iter().all(|part| record.try_extend_from_slice(part).is_ok());
        match content.filter(|_| !fits) {
            Some(content) => self.owe_long(to, GROUP, &head, content.clone()),
            None => self.owe_bytes(to, GROUP, &record),
        }
    }
}

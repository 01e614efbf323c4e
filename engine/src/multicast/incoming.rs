//! Receiving messages of members, and running the deliveries of groups.
use super::PAYLOAD_MAX;
use super::content::{Content, Kept};
use super::due::{Change, Due, Watchers};
use super::effects::{MemberEffects, NAMES};
use super::member::{GroupMember, GroupMembers, GuestSend};
use super::names::port_of;
use super::shared_log::{LOG_OFFERED, LOG_READ};
use crate::active::outgoing::Outgoing;
use crate::active::{Extension, LongHead, Messenger};
use crate::port::Port;
use ayre_proto::group::{GROUP, Member, Message, turn_away};
use ayre_proto::lane::Malformed;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// The most messages of shared logs that one poll takes.
const READ_MAX: usize = 64;

/// Bytes of a handler's id.
const NUMBER: usize = 4;

impl Outgoing {
    /// Takes a message of a member. `content` is its payload if it came as a long message.
    // spec: GRP-21, GRP-22, GRP-23
    pub(super) fn on_message(
        &mut self,
        source: PeerId,
        said: &[u8],
        content: Option<Vec<u8>>,
    ) -> Result<(), Malformed> {
        let (names, said) = said.split_first_chunk::<NAMES>().ok_or(Malformed)?;
        let [from, to] = names.as_chunks::<4>().0 else { return Err(Malformed) };
        let [from, to] = [from, to].map(|name| Member(u32::from_le_bytes(*name)));
        if port_of(from) != source || port_of(to) != self.port.id || source == self.port.id {
            return Err(Malformed);
        }
        if let Some((group, kind)) = about_log(said) {
            match kind {
                LOG_OFFERED => self.on_log_offered(group, (from, to)),
                _ => self.on_log_read((from, to)),
            }
            return Ok(());
        }
        let mut scratch = self.group_members().scratch.take().unwrap_or_default();
        let mut apart = content.map(Content::new);
        let message = Message::parse(said, &mut scratch, |rest| match apart.take() {
            Some(content) => Kept::Own(content),
            None => Kept::Own(Content::new(rest.to_vec())),
        });
        let heard = match message {
            Ok((group, message)) if apart.is_none() => {
                self.heed_message(group, (from, to), message)
            }
            _ => Err(Malformed),
        };
        let other = self.group_members().scratch.replace(scratch);
        debug_assert!(other.is_none(), "one message is heard at a time");
        heard
    }

    /// Reads the shared log before another message of its root is taken. Returns whether the log
    /// had this message, which was sent before this member began to read.
    // spec: GRP-25
    fn was_in_log(
        &mut self,
        (root, me): (Member, Member),
        message: &Message<'_, Kept>,
    ) -> Result<bool, Malformed> {
        let reads = |membership: &mut GroupMember| {
            membership.reading.as_ref().is_some_and(|one| one.root == root)
        };
        if !self.group_members().find(me).is_some_and(reads) {
            return Ok(false);
        }
        self.read_log(me)?;
        let Message::Tree { label, .. } = message else { return Ok(false) };
        Ok(self
            .group_members()
            .find(me)
            .is_some_and(|membership| label.ticket <= membership.machine.have()))
    }

    fn heed_message(
        &mut self,
        group: u32,
        (from, to): (Member, Member),
        message: Message<'_, Kept>,
    ) -> Result<(), Malformed> {
        let Self { outbound, port, .. } = &mut *self;
        let group_members: &mut GroupMembers = outbound.as_mut();
        if let Some(membership) = group_members.addressed(group, to) {
            let me = membership.me;
            let from = membership.door_or(from, &message);
            let is_cut_off = membership.is_cut_off(&message, port);
            if self.was_in_log((from, me), &message)? {
                return Ok(());
            }
            let heard = self.with_member(me, |machine, effects| {
                machine.on_message(from, message, effects)?;
                if is_cut_off { machine.on_message(from, Message::Out, effects) } else { Ok(()) }
            });
            return heard.unwrap_or(Ok(()));
        }
        if let Some(guest_send) = &mut self.group_members().guest_send
            && (guest_send.id, guest_send.me) == (group, to)
        {
            return guest_send.take(from, &message);
        }
        let mut due = VecDeque::new();
        let mut effects = MemberEffects::new(self, (group, to), &mut due);
        turn_away(from, &message, &mut effects);
        Ok(())
    }
}

/// Returns the group and the kind of a message about a shared log.
fn about_log(said: &[u8]) -> Option<(u32, u32)> {
    let [group, kind] = said.as_chunks::<4>().0 else { return None };
    let [group, kind] = [group, kind].map(|word| u32::from_le_bytes(*word));
    (said.len() == 8 && matches!(kind, LOG_OFFERED | LOG_READ)).then_some((group, kind))
}

impl GroupMember {
    /// Returns the sender of a message. An answer of the door counts as one of the asked member,
    /// whose name is not known.
    fn door_or(&self, from: Member, message: &Message<'_, Kept>) -> Member {
        let is_answer = matches!(message, Message::Gone | Message::Out | Message::Refused);
        let door = self.door.as_ref().map(|(door, _)| *door);
        door.filter(|door| is_answer && port_of(*door) == port_of(from)).unwrap_or(from)
    }

    /// Whether this member is added and cannot reach all members. Then it leaves at once.
    // spec: GRP-24
    fn is_cut_off(&mut self, message: &Message<'_, Kept>, port: &Port) -> bool {
        let Message::View { view, .. } = message else { return false };
        let Some((_, connected)) = &self.door else { return false };
        let is_known = |port: PeerId| connected.contains(&port);
        let mut others = view.members().filter(|member| *member != self.me).map(port_of);
        others.any(|other| !is_known(other) && !port.is_alive(other))
    }
}

impl GuestSend {
    fn take(&mut self, from: Member, message: &Message<'_, Kept>) -> Result<(), Malformed> {
        let from = if port_of(from) == port_of(self.door) { self.door } else { from };
        self.answer = Some(self.guest.on_message(from, message)?);
        Ok(())
    }
}

impl<S> Extension<S> for Watchers<S> {
    fn takes(tag: u32) -> bool {
        tag == GROUP
    }

    #[inline(never)]
    fn on_record(
        messenger: &mut Messenger<S>,
        state: &mut S,
        (source, _): (PeerId, u32),
        len: usize,
    ) -> Result<usize, Malformed> {
        let heard = messenger.out.on_message(source, &messenger.buffer[..len], None);
        if heard.is_err() {
            messenger.out.port.end_malformed_lane(source);
        }
        Ok(messenger.run_due(state))
    }

    fn admits(long: &LongHead<'_>) -> bool {
        long.total <= (PAYLOAD_MAX + NUMBER) as u64
    }

    fn on_long(
        messenger: &mut Messenger<S>,
        state: &mut S,
        source: PeerId,
        (_, head): (u32, &[u8]),
        content: Vec<u8>,
    ) -> Result<usize, Malformed> {
        messenger.out.on_message(source, head, Some(content))?;
        Ok(messenger.run_due(state))
    }

    #[inline(always)]
    fn advance(messenger: &mut Messenger<S>, state: &mut S) -> usize {
        messenger.read_logs(state) + messenger.run_due(state)
    }

    fn is_due(messenger: &Messenger<S>) -> bool {
        let group_members: &GroupMembers = messenger.out.outbound.as_ref();
        group_members.has_logs
    }
}

impl<S> Messenger<S> {
    #[inline(always)]
    pub(super) fn watchers(&mut self) -> &mut Watchers<S> {
        self.features.as_mut()
    }

    /// Runs waiting deliveries. Returns their number.
    // spec: GRP-9
    #[inline]
    pub(super) fn run_due(&mut self, state: &mut S) -> usize {
        if self.out.group_members().has_due { self.run_all_due(state) } else { 0 }
    }

    #[inline(never)]
    fn run_all_due(&mut self, state: &mut S) -> usize {
        let mut ran = 0;
        while let Some((me, due)) = self.out.group_members().next_due() {
            ran += 1;
            match due {
                Due::Message(origin, content) => self.run_delivered(state, origin, &content),
                Due::Changed(change) => self.watchers().run(state, me, &change),
                Due::Ended => {
                    self.watchers().run(state, me, &Change::Ended);
                    self.out.group_members().forget(me);
                    self.watchers().forget(me);
                }
            }
        }
        ran
    }

    /// Runs messages of shared logs. Returns their number.
    // spec: GRP-9, GRP-25
    #[inline]
    fn read_logs(&mut self, state: &mut S) -> usize {
        let mut ran = 0;
        while ran < READ_MAX && self.out.group_members().has_news() {
            // Earlier deliveries come first.
            ran += self.run_due(state);
            let Some((origin, place)) = self.out.take_next() else { break };
            let Some(buffer) = self.out.group_members().buffer.take() else { break };
            self.run_delivered(state, origin, &buffer[place]);
            let other = self.out.group_members().buffer.replace(buffer);
            debug_assert!(other.is_none(), "one message is run at a time");
            ran += 1;
        }
        ran
    }

    /// Runs a message that a group has delivered.
    // spec: GRP-23
    fn run_delivered(&mut self, state: &mut S, source: PeerId, content: &[u8]) {
        if let Some((id, body)) = content.split_first_chunk() {
            self.run_body(state, (source, u32::from_le_bytes(*id)), body);
        }
    }
}

//! Messages by a shared log, which the root writes and members of its host read.
use super::content::{Buffer, Kept, copy_of};
use super::effects::MemberEffects;
use super::member::{GroupMember, GroupMembers};
use super::names::port_of;
use super::shared_log::{
    Entry, LINE, LOG_OFFERED, LOG_READ, PART_MAX, QUARTER, Reading, SharedLog, name_of,
};
use crate::active::outgoing::Outgoing;
use crate::peer::packet::PacketKind;
use ayre_proto::group::{Group, Member, Message, Refusal, SEATS_MAX};
use ayre_proto::lane::Malformed;
use ayre_proto::units::PeerId;
use std::ops::Range;

impl Outgoing {
    /// Hands the shared log to members that have none yet, if this root reaches the memory of all
    /// others, and there is more than one of them.
    // spec: GRP-25
    pub(super) fn set_up_log(&mut self, membership: &mut GroupMember) {
        let GroupMember { id, me, machine, log, reading, .. } = membership;
        let view = machine.view();
        if usize::from(view.branches()) < SEATS_MAX || view.members().count() <= 2 {
            return;
        }
        if log.is_none() {
            *log = SharedLog::new(&mut self.port);
        }
        let Some(log) = log else { return };
        // No member lacks a message of the earlier root's log any more.
        *reading = None;
        let others = view.members().filter(|member| member != me);
        log.set_readers(view.number(), others, |log, member| {
            // A member that cannot get the log gets each message by itself.
            if log.share(&mut self.port, *id, member) {
                self.say_kind(*id, (*me, member), LOG_OFFERED);
            }
        });
        debug_assert!(log.is_of(view.number()), "all others of this view have it");
    }

    /// Takes the shared log that the root offers.
    // spec: GRP-25
    pub(super) fn on_log_offered(&mut self, group: u32, (from, me): (Member, Member)) {
        let (peer, name) = (port_of(from), name_of(group));
        let Some(membership) = self.group_members().find(me) else { return };
        let is_root = membership.machine.view().members().next() == Some(from);
        if !is_root || !self.port.has_offer(peer, PacketKind::OfferRegion, name) {
            return;
        }
        let region = self.port.accept_region(peer, name).ok();
        let reading = region.and_then(|region| Reading::new(from, &region));
        let Some(membership) = self.group_members().find(me).filter(|_| reading.is_some()) else {
            return;
        };
        membership.reading = reading;
        self.group_members().has_logs = true;
        self.has_more = true;
        self.with_member(me, |_, _| ());
        self.say_kind(group, (me, from), LOG_READ);
    }

    /// Notes that a member reads the shared log from now on.
    // spec: GRP-25
    pub(super) fn on_log_read(&mut self, (from, me): (Member, Member)) {
        let log = self.group_members().find(me).and_then(|membership| membership.log.as_mut());
        log.into_iter().for_each(|log| log.note_reads(from));
    }

    /// Writes a root's own message to its shared log, if no message must come before it and all
    /// others read the log. Then its caller delivers it here. Returns false if the message must be
    /// sent in another way.
    ///
    /// # Errors
    /// Busy if the log has room only after others have read more.
    // spec: GRP-20, GRP-25
    #[inline(always)]
    pub(super) fn write_own(&mut self, me: Member, parts: [&[u8]; 3]) -> Result<bool, Refusal> {
        let Self { port, outbound, .. } = self;
        let group_members: &mut GroupMembers = outbound.as_mut();
        let has_due = group_members.has_due;
        let Some(GroupMember { machine, log: Some(log), .. }) =
            group_members.find(me).filter(|_| !has_due)
        else {
            return Ok(false);
        };
        let mut is_full = false;
        let is_sent = machine.multicast_at_once(|view, stable, label| {
            if !log.is_read() || !log.is_of(view.number()) {
                return None;
            }
            let place = log.write((view.number(), stable), &label, parts);
            let len: usize = parts.iter().map(|part| part.len()).sum();
            is_full = place.is_none() && len as u64 <= QUARTER;
            place.map(Kept::InLog)
        });
        debug_assert!(!is_full || !is_sent, "what is sent has room");
        if is_full {
            return Err(Refusal::Busy);
        }
        if is_sent {
            log.readers().for_each(|(reader, _)| port.kick(port_of(reader)));
        }
        Ok(is_sent)
    }

    /// Takes the next message of any shared log, and copies it to the buffer. Returns its sender
    /// and its range there.
    // spec: GRP-25
    #[inline(never)]
    pub(super) fn take_next(&mut self) -> Option<(PeerId, Range<usize>)> {
        let GroupMembers { list, buffer, .. } = self.group_members();
        let (me, machine, reading) = list.iter_mut().find_map(|membership| {
            let GroupMember { me, machine, reading, .. } = &mut **membership;
            let reading = reading.as_mut().filter(|reading| reading.has_news())?;
            Some((*me, machine, reading))
        })?;
        let root = reading.root;
        let Ok(Some(entry)) = reading.next() else { return self.end_reading(root) };
        let Entry { view, stable, label, place } = entry;
        let len = place.len as usize;
        // At the same offset in a line as in the log, so that the copy is fast.
        let start = place.at as usize % LINE;
        let range = start..start + len;
        let buffer = buffer.get_or_insert_with(|| Buffer::new(0));
        if buffer.len() < range.end {
            buffer.resize(range.end, 0);
        }
        reading.memory().read(place.at.into(), &mut buffer[range.clone()]);
        let kept = Kept::InLog(place);
        if len <= PART_MAX && machine.take_at_once((view, stable), label, kept) {
            reading.await_ticket(view, label.ticket + 1);
            return Some((port_of(label.origin), range));
        }
        match self.take_entry((root, me), entry, Kept::InLog(place)) {
            Ok(is_taken) => is_taken.then_some((port_of(label.origin), range)),
            Err(Malformed) => self.end_reading(root),
        }
    }

    /// Ends the connection of a root whose shared log is malformed.
    #[inline(never)]
    fn end_reading<T>(&mut self, root: Member) -> Option<T> {
        self.port.end_malformed_lane(port_of(root));
        None
    }

    /// Has the state machine take the next message of a shared log. Returns whether it was due.
    // spec: GRP-25
    fn take_entry(
        &mut self,
        (root, me): (Member, Member),
        entry: Entry,
        payload: Kept,
    ) -> Result<bool, Malformed> {
        let Entry { view, stable, label, place } = entry;
        let reading =
            self.group_members().find(me).and_then(|membership| membership.reading.as_mut());
        let is_filled = reading.is_some_and(|reading| reading.fills_quarter(place));
        let message = Message::Tree { view, stable, label, payload };
        let take = |machine: &mut Group<Kept>, effects: &mut MemberEffects<'_>| {
            machine.on_message(root, message, effects)?;
            if is_filled {
                machine.acknowledge_early(effects);
            }
            Ok(machine.have() >= label.ticket)
        };
        self.with_member(me, take).unwrap_or(Ok(false))
    }

    /// Takes all messages of the root's shared log, before another message of the root is taken.
    // spec: GRP-25
    pub(super) fn read_log(&mut self, me: Member) -> Result<(), Malformed> {
        while let Some(reading) =
            self.group_members().find(me).and_then(|membership| membership.reading.as_ref())
        {
            let (root, Some(entry)) = (reading.root, reading.next()?) else { break };
            // Copied, because it is run later and the root may overwrite the log.
            let payload = Kept::Own(copy_of(reading.memory(), entry.place));
            if !self.take_entry((root, me), entry, payload)? {
                break;
            }
        }
        Ok(())
    }
}

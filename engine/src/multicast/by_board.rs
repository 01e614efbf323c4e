//! Messages by boards: a root that writes its own, and members that read it.
use super::causes::Causes;
use super::content::{Buffer, Kept, copy_of};
use super::member::{GroupMember, GroupMembers};
use super::names::port_of;
use super::shared_log::{
    BOARD, Entry, LINE, PART_MAX, QUARTER, READS, Reading, SharedLog, name_of,
};
use crate::active::outgoing::Outgoing;
use crate::peer::packet::PacketKind;
use ayre_proto::group::{Group, Member, Message, Refusal, SEATS_MAX};
use ayre_proto::lane::Malformed;
use ayre_proto::units::PeerId;
use std::ops::Range;

impl Outgoing {
    /// A root that reaches the memory of all others, of more than one, hands its board to those who
    /// have none yet.
    // spec: GRP-25
    pub(super) fn set_up_board(&mut self, club: &mut GroupMember) {
        let GroupMember { id, me, machine, board, reading, .. } = club;
        let view = machine.view();
        if usize::from(view.branches()) < SEATS_MAX || view.members().count() <= 2 {
            return;
        }
        if board.is_none() {
            *board = SharedLog::new(&mut self.port);
        }
        let Some(board) = board else { return };
        // What the root before had written, nobody lacks any more.
        *reading = None;
        let others = view.members().filter(|member| member != me);
        board.set_readers(view.number(), others, |board, member| {
            // One that it cannot be handed to gets its messages by itself.
            if board.share(&mut self.port, *id, member) {
                self.say_kind(*id, (*me, member), BOARD);
            }
        });
        debug_assert!(board.is_of(view.number()), "all others of this view have it");
    }

    /// The root has handed over its board.
    // spec: GRP-25
    pub(super) fn on_board(&mut self, group: u32, (from, me): (Member, Member)) {
        let (peer, name) = (port_of(from), name_of(group));
        let Some(club) = self.clubs().find(me) else { return };
        let is_root = club.machine.view().members().next() == Some(from);
        if !is_root || !self.port.has_offer(peer, PacketKind::OfferRegion, name) {
            return;
        }
        let region = self.port.accept_region(peer, name).ok();
        let reading = region.and_then(|region| Reading::new(from, &region));
        let Some(club) = self.clubs().find(me).filter(|_| reading.is_some()) else { return };
        club.reading = reading;
        self.clubs().has_boards = true;
        self.has_more = true;
        self.with_club(me, |_, _| ());
        self.say_kind(group, (me, from), READS);
    }

    /// A member reads the board from now on.
    // spec: GRP-25
    pub(super) fn on_reads(&mut self, (from, me): (Member, Member)) {
        let board = self.clubs().find(me).and_then(|club| club.board.as_mut());
        board.into_iter().for_each(|board| board.note_reads(from));
    }

    /// Writes a root's own message to its board, where nothing is before it and all others read;
    /// its caller delivers it here. False where it must go another way.
    ///
    /// # Errors
    /// Busy: it goes by the board when all have read more.
    // spec: GRP-20, GRP-25
    #[inline(always)]
    pub(super) fn write_own(&mut self, me: Member, parts: [&[u8]; 3]) -> Result<bool, Refusal> {
        let Self { port, outbound, .. } = self;
        let clubs: &mut GroupMembers = outbound.as_mut();
        let has_due = clubs.has_due;
        let Some(GroupMember { machine, board: Some(board), .. }) =
            clubs.find(me).filter(|_| !has_due)
        else {
            return Ok(false);
        };
        let mut is_full = false;
        let is_sent = machine.multicast_at_once(|view, stable, label| {
            if !board.is_read() || !board.is_of(view.number()) {
                return None;
            }
            let place = board.write((view.number(), stable), &label, parts);
            let len: usize = parts.iter().map(|part| part.len()).sum();
            is_full = place.is_none() && len as u64 <= QUARTER;
            place.map(Kept::OnBoard)
        });
        debug_assert!(!is_full || !is_sent, "what is sent has room");
        if is_full {
            return Err(Refusal::Busy);
        }
        if is_sent {
            board.readers().for_each(|(reader, _)| port.wake(port_of(reader)));
        }
        Ok(is_sent)
    }

    /// Takes the next message of any board, and copies it once, to the buffer: who has sent it, and
    /// where it is.
    // spec: GRP-25
    #[inline(never)]
    pub(super) fn take_next(&mut self) -> Option<(PeerId, Range<usize>)> {
        let GroupMembers { list, buffer, .. } = self.clubs();
        let (me, machine, reading) = list.iter_mut().find_map(|club| {
            let GroupMember { me, machine, reading, .. } = &mut **club;
            let reading = reading.as_mut().filter(|reading| reading.has_news())?;
            Some((*me, machine, reading))
        })?;
        let root = reading.root;
        let Ok(Some(entry)) = reading.next() else { return self.end_reading(root) };
        let Entry { view, stable, label, place } = entry;
        let len = place.len as usize;
        // As it lies on the board, from a multiple of 64 on: so it is copied fast.
        let start = place.at as usize % LINE;
        let range = start..start + len;
        let buffer = buffer.get_or_insert_with(|| Buffer::new(0));
        if buffer.len() < range.end {
            buffer.resize(range.end, 0);
        }
        reading.memory().read(place.at.into(), &mut buffer[range.clone()]);
        let kept = Kept::OnBoard(place);
        if len <= PART_MAX && machine.take_at_once((view, stable), label, kept) {
            reading.await_ticket(view, label.ticket + 1);
            return Some((port_of(label.origin), range));
        }
        match self.take_entry((root, me), entry, Kept::OnBoard(place)) {
            Ok(is_taken) => is_taken.then_some((port_of(label.origin), range)),
            Err(Malformed) => self.end_reading(root),
        }
    }

    /// There is something on a root's board that cannot be there.
    #[inline(never)]
    fn end_reading<T>(&mut self, root: Member) -> Option<T> {
        self.port.end_malformed_lane(port_of(root));
        None
    }

    /// Has the machine take the next message of a board; true where it was due.
    // spec: GRP-25
    fn take_entry(
        &mut self,
        (root, me): (Member, Member),
        entry: Entry,
        payload: Kept,
    ) -> Result<bool, Malformed> {
        let Entry { view, stable, label, place } = entry;
        let reading = self.clubs().find(me).and_then(|club| club.reading.as_mut());
        let is_filled = reading.is_some_and(|reading| reading.fills_quarter(place));
        let message = Message::Tree { view, stable, label, payload };
        let take = |machine: &mut Group<Kept>, causes: &mut Causes<'_>| {
            machine.on_message(root, message, causes)?;
            if is_filled {
                machine.acknowledge_early(causes);
            }
            Ok(machine.have() >= label.ticket)
        };
        self.with_club(me, take).unwrap_or(Ok(false))
    }

    /// Before a member heeds what its root says otherwise, it takes all that the root had written
    /// before.
    // spec: GRP-25
    pub(super) fn read_board(&mut self, me: Member) -> Result<(), Malformed> {
        while let Some(reading) = self.clubs().find(me).and_then(|club| club.reading.as_ref()) {
            let (root, Some(entry)) = (reading.root, reading.next()?) else { break };
            // Bytes of our own: it is run later, and the root may write over them.
            let payload = Kept::Own(copy_of(reading.memory(), entry.place));
            if !self.take_entry((root, me), entry, payload)? {
                break;
            }
        }
        Ok(())
    }
}

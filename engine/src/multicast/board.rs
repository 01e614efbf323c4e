//! Boards: memory of a root that all members of its host read, so that a message is written once.
//!
//! ```text
//!   64 slots of 1 KiB, by ticket     ticket | view | stable | number | who | bytes | place
//!                                    the content, where it is short
//!   256 KiB behind them              longer contents, one behind the other, round and round
//! ```
//!
//! A member reads the slot of its next ticket and no other. The root writes over a message when all
//! have it; what has no room goes to each member by itself. Where a member gets messages in both
//! ways, the board's come first: see [`Outgoing::read_board`].
use super::club::{Club, port_of};
use super::content::Content;
use crate::active::outgoing::Outgoing;
use crate::control::PacketKind;
use crate::mem::region::{PeerMemory, Region, RegionOptions, RemoteRegion};
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::group::{Label, Member, Message, SEATS_MAX};
use ayre_proto::lane::Malformed;
use ayre_proto::units::Rights;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

const SLOTS: u64 = 64;
const SLOT: usize = 1024;
const WORDS: usize = 7;
const SHORT_MAX: usize = SLOT - 8 * WORDS;
const LONG_START: u64 = SLOTS * SLOT as u64;
const LONG: u64 = 256 << 10;
const BYTES: usize = (LONG_START + LONG) as usize;

/// The root has handed over its board.
pub(super) const BOARD: u32 = 19;
/// The member reads it.
pub(super) const READS: u32 = 20;

/// Under which a group's board is handed over.
pub(super) const fn name_of(group: u32) -> u64 {
    0x6179_7266 << 32 | group as u64
}

const fn slot_of(ticket: u64) -> u64 {
    ticket % SLOTS * SLOT as u64
}

/// A message on the board.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) view: u64,
    pub(super) stable: u64,
    pub(super) label: Label,
    pub(super) content: Content,
}

/// One to whom a board was handed over.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) member: Member,
    /// It has said that it reads.
    pub(super) reads: bool,
}

/// A root's board.
#[derive(Debug)]
pub(super) struct Board {
    region: Region,
    /// In the order in which they joined.
    pub(super) readers: Vec<Reader>,
    tickets: [u64; SLOTS as usize],
    /// Longer contents that somebody may lack: their tickets, and where they end.
    long: VecDeque<(u64, u64)>,
    /// Where longer contents begin and end, counted from the first ever.
    first: u64,
    end: u64,
}

impl Board {
    fn new(port: &mut Port) -> Option<Self> {
        let region = port.alloc(BYTES, RegionOptions::new()).ok()?;
        let (readers, long) = (Vec::new(), VecDeque::new());
        Some(Self { region, readers, tickets: [0; SLOTS as usize], long, first: 0, end: 0 })
    }

    /// It is the root's no more, or the group's.
    pub(super) fn close(self, port: &mut Port) {
        let ended = port.deregister(&self.region);
        debug_assert!(ended.is_ok(), "it is registered: {ended:?}");
    }

    /// Hands it to a member; false where that cannot be.
    fn share(&self, port: &mut Port, group: u32, to: Member) -> bool {
        port.share(port_of(to), &self.region, 0..BYTES, Rights::READ, name_of(group)).is_ok()
    }

    /// Writes a message, if nobody lacks what it is written over.
    // spec: GRP-25
    pub(super) fn write(
        &mut self,
        (view, stable): (u64, u64),
        label: &Label,
        content: &Content,
    ) -> bool {
        let slot = slot_of(label.ticket);
        let Some(place) = self.place(stable, slot, (label.ticket, content.len() as u64)) else {
            return false;
        };
        let mapping = self.region.mapping();
        mapping.write(place, content);
        let who = u64::from(label.sender.0) | u64::from(label.origin.0) << 32;
        let words = [view, stable, label.number, who, content.len() as u64, place];
        for (at, word) in (1..).zip(words) {
            mapping.word(slot + 8 * at).store(word, Ordering::Relaxed);
        }
        // BOARD-R1: whoever sees the ticket sees the message.
        mapping.word(slot).store(label.ticket, Ordering::Release);
        self.tickets[(label.ticket % SLOTS) as usize] = label.ticket;
        true
    }

    /// Where a content goes; none where there is no room.
    fn place(&mut self, stable: u64, slot: u64, (ticket, len): (u64, u64)) -> Option<u64> {
        if self.tickets[(ticket % SLOTS) as usize] > stable {
            return None;
        }
        if len <= SHORT_MAX as u64 {
            return Some(slot + 8 * WORDS as u64);
        }
        while let Some((_, end)) = self.long.pop_front_if(|(ticket, _)| *ticket <= stable) {
            self.first = end;
        }
        let left = LONG - self.end % LONG;
        let at = if len <= left { self.end } else { self.end + left };
        if self.long.is_empty() {
            self.first = at;
        }
        if at + len - self.first > LONG {
            return None;
        }
        self.end = (at + len).next_multiple_of(64);
        self.long.push_back((ticket, self.end));
        Some(LONG_START + at % LONG)
    }
}

/// A member's view of its root's board.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) root: Member,
    region: RemoteRegion,
    /// The next message of this view, while there can be one.
    awaited: Option<(u64, u64)>,
}

impl Reading {
    /// None where the memory is not mapped, or is too short.
    pub(super) fn new(root: Member, region: RemoteRegion) -> Option<Self> {
        let fits = region.len() == BYTES as u64 && region.cover.base == 0 && region.start == 0;
        let is_mapped = |memory: &PeerMemory| memory.mapping.len() >= BYTES;
        let is_here = fits && region.memory.as_ref().is_some_and(is_mapped);
        is_here.then_some(Self { root, region, awaited: None })
    }

    /// What can come next: from whom, of which view, by which ticket.
    pub(super) fn await_next(&mut self, next: Option<(Member, u64, u64)>) {
        let next = next.filter(|(parent, ..)| *parent == self.root);
        self.awaited = next.map(|(_, view, ticket)| (view, ticket));
    }

    #[inline(always)]
    fn word(&self, at: u64) -> u64 {
        let memory = self.region.memory.as_ref();
        // BOARD-A1: pairs with the ticket's store, BOARD-R1.
        memory.map_or(0, |memory| memory.mapping.word(at).load(Ordering::Acquire))
    }

    /// Whether the next message is there.
    #[inline(always)]
    pub(super) fn has_news(&self) -> bool {
        self.awaited.is_some_and(|(_, ticket)| self.word(slot_of(ticket)) == ticket)
    }

    /// The next message, if it is there and of the view that is open.
    // spec: GRP-25
    pub(super) fn take(&self) -> Result<Option<Entry>, Malformed> {
        let Some((view, ticket)) = self.awaited.filter(|_| self.has_news()) else {
            return Ok(None);
        };
        let slot = slot_of(ticket);
        let [entry_view, stable, number, who, len, place] =
            [1, 2, 3, 4, 5, 6].map(|at| self.word(slot + 8 * at));
        let is_short = len <= SHORT_MAX as u64 && place == slot + 8 * WORDS as u64;
        let is_long = len <= LONG && (LONG_START..=BYTES as u64 - len).contains(&place);
        if entry_view != view || !is_short && !is_long || (stable | number) >> 63 != 0 {
            return Err(Malformed);
        }
        // Bytes of our own from here on: the root may write them again.
        let content = self.content(place, len as usize);
        let (sender, origin) = (Member(who as u32), Member((who >> 32) as u32));
        let label = Label { ticket, number, sender, origin };
        Ok(Some(Entry { view, stable, label, content }))
    }

    fn content(&self, place: u64, len: usize) -> Content {
        let Some(memory) = &self.region.memory else { return Content::of([]) };
        let mut short = [0; 64];
        if let Some(short) = short.get_mut(..len) {
            memory.mapping.read(place, short);
            return Content::of([short]);
        }
        let mut long = vec![0; len];
        memory.mapping.read(place, &mut long);
        Content::from(long)
    }
}

impl Outgoing {
    /// A root that reaches the memory of all others, of more than one, hands its board to those who
    /// have none yet.
    // spec: GRP-25
    pub(super) fn set_up_board(&mut self, club: &mut Club) {
        let Club { id, me, machine, board, .. } = club;
        let view = machine.view();
        if usize::from(view.branches()) < SEATS_MAX || view.members().count() <= 2 {
            return;
        }
        if board.is_none() {
            *board = Board::new(&mut self.port);
        }
        let Some(board) = board else { return };
        let old = std::mem::take(&mut board.readers);
        for member in view.members().filter(|member| member != me) {
            let reads = match old.iter().find(|reader| reader.member == member) {
                Some(reader) => reader.reads,
                None => {
                    // One that it cannot be handed to gets its messages by itself.
                    if board.share(&mut self.port, *id, member) {
                        self.say_kind(*id, (*me, member), BOARD);
                    }
                    false
                }
            };
            board.readers.push(Reader { member, reads });
        }
    }

    /// The root has handed over its board.
    // spec: GRP-25
    pub(super) fn on_board(&mut self, group: u32, (from, me): (Member, Member)) {
        let (peer, name) = (port_of(from), name_of(group));
        let Some(club) = self.clubs.find(me) else { return };
        let is_root = club.machine.view().members().next() == Some(from);
        if !is_root || !self.port.has_offer(peer, PacketKind::OfferRegion, name) {
            return;
        }
        let region = self.port.accept_region(peer, name).ok();
        let reading = region.and_then(|region| Reading::new(from, region));
        let Some(club) = self.clubs.find(me).filter(|_| reading.is_some()) else { return };
        club.reading = reading;
        self.clubs.has_boards = true;
        self.has_more = true;
        self.with_club(me, |_, _| ());
        self.say_kind(group, (me, from), READS);
    }

    /// A member reads the board from now on.
    // spec: GRP-25
    pub(super) fn on_reads(&mut self, (from, me): (Member, Member)) {
        let club = self.clubs.find(me);
        let board = club.and_then(|club| club.board.as_mut());
        let mut readers = board.into_iter().flat_map(|board| &mut board.readers);
        if let Some(reader) = readers.find(|reader| reader.member == from) {
            reader.reads = true;
        }
    }

    /// Takes what has come on a board. Before a member heeds what its root says otherwise, it takes
    /// all that the root had written before.
    // spec: GRP-25
    pub(super) fn read_board(&mut self, me: Member) -> Result<(), Malformed> {
        while let Some((root, entry)) = self.next_on_board(me)? {
            let Entry { view, stable, label, content: payload } = entry;
            let message = Message::Tree { view, stable, label, payload };
            let heard =
                self.with_club(me, |machine, causes| machine.on_message(root, message, causes));
            heard.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    fn next_on_board(&mut self, me: Member) -> Result<Option<(Member, Entry)>, Malformed> {
        let reading = self.clubs.find(me).and_then(|club| club.reading.as_ref());
        let Some(reading) = reading else { return Ok(None) };
        Ok(reading.take()?.map(|entry| (reading.root, entry)))
    }

    /// The same of all boards.
    #[inline(never)]
    pub(crate) fn read_boards(&mut self) {
        while let Some(club) = self.clubs.with_news() {
            let me = club.me;
            let Some(root) = club.reading.as_ref().map(|reading| reading.root) else { return };
            let (before, is_sound) = (club.machine.have(), self.read_board(me).is_ok());
            let is_moved = self.clubs.find(me).is_some_and(|club| club.machine.have() > before);
            if !is_sound {
                self.port.end_malformed_lane(port_of(root));
            }
            if !is_sound || !is_moved {
                return;
            }
        }
    }
}

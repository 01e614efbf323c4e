//! Shared logs: memory of a root that all members of its host read, so that a message is written
//! once.
//!
//! ```text
//!   64 lines, by ticket    ticket | number | who | bytes, stable, view
//!                          the content, or where it is
//!   64 KiB behind them     contents of up to 960 bytes, by ticket
//!   1 MiB behind those     longer contents, one behind the other, round and round
//! ```
//!
//! A member reads only the line of its next ticket. A short message is in that line. The root
//! overwrites a message when all members have it, so the log keeps all messages that a member may
//! lack. A message without room in the log goes to each member by itself. If a member gets messages
//! in both ways, those of the log come first: see `by_log.rs`.
use super::content::Place;
use super::names::port_of;
use crate::mem::map::Mapping;
use crate::mem::region::{PeerMemory, Region, RegionOptions, RemoteRegion};
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::group::{Label, Member};
use ayre_proto::lane::Malformed;
use ayre_proto::units::Rights;
use std::collections::VecDeque;
use std::sync::Arc;

#[cfg(test)]
mod tests;

const LINES: u64 = 64;
pub(super) const LINE: usize = 64;
/// Bytes of the ticket, and of the whole head of a line.
const TICKET: usize = 8;
const HEAD: usize = TICKET + 24;
/// The most bytes of a content that fits its line.
const SHORT_MAX: usize = LINE - HEAD;
/// Bytes for each content that is not in the long part.
const PART: u64 = 1024;
pub(super) const PART_MAX: usize = 960;
const PARTS_START: u64 = LINES * LINE as u64;
const LONG_START: u64 = PARTS_START + LINES * PART;
const LONG: u64 = 1 << 20;
pub(super) const QUARTER: u64 = LONG / 4;
const BYTES: usize = (LONG_START + LONG) as usize;
const _: () = assert!(PART_MAX + LINE <= PART as usize, "a content may begin anywhere in a line");
const _: () = assert!(LONG.is_multiple_of(LINE as u64), "each round begins with a line");
const _: () = assert!(BYTES <= u32::MAX as usize, "a place is half a word");

/// The kind of the message by which the root offers its shared log.
pub(super) const LOG_OFFERED: u32 = 19;
/// The kind of the message by which a member says that it reads the shared log.
pub(super) const LOG_READ: u32 = 20;

/// Returns the name under which a group's shared log is handed over.
pub(super) const fn name_of(group: u32) -> u64 {
    0x6179_7266 << 32 | group as u64
}

const fn line_of(ticket: u64) -> u64 {
    ticket % LINES * LINE as u64
}

/// A message in the shared log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) view: u64,
    pub(super) stable: u64,
    pub(super) label: Label,
    pub(super) place: Place,
}

/// A member to which the shared log was offered.
#[derive(Debug)]
struct Reader {
    member: Member,
    /// The member has said that it reads the log.
    reads: bool,
}

/// The shared log at its root.
#[derive(Debug)]
pub(super) struct SharedLog {
    region: Region,
    /// All other members of the view, in the order in which they joined.
    readers: Vec<Reader>,
    view: u64,
    /// All readers read the log.
    is_read: bool,
    /// Long contents that a member may lack: their tickets, and their ends.
    long: VecDeque<(u64, u64)>,
    /// The begin and the end of long contents, counted in bytes from the first one ever.
    first: u64,
    end: u64,
}

impl SharedLog {
    pub(super) fn new(port: &mut Port) -> Option<Self> {
        let region = port.alloc(BYTES, RegionOptions::new()).ok()?;
        let (readers, long) = (Vec::new(), VecDeque::new());
        Some(Self { region, readers, view: 0, is_read: false, long, first: 0, end: 0 })
    }

    /// Deregisters the log, because this member is not the root any more, or the group has ended.
    pub(super) fn close(self, port: &mut Port) {
        let ended = port.deregister(&self.region);
        debug_assert!(ended.is_ok(), "it is registered: {ended:?}");
    }

    /// Hands the log to a member. Returns whether that was possible.
    pub(super) fn share(&self, port: &mut Port, group: u32, to: Member) -> bool {
        port.share(port_of(to), &self.region, 0..BYTES, Rights::READ, name_of(group)).is_ok()
    }

    /// Whether the log was offered to all other members of this view.
    pub(super) const fn is_of(&self, view: u64) -> bool {
        self.view == view
    }

    /// Whether all readers read the log.
    pub(super) const fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns the members that have the log, and whether each reads it.
    pub(super) fn readers(&self) -> impl Iterator<Item = (Member, bool)> {
        self.readers.iter().map(|reader| (reader.member, reader.reads))
    }

    /// Sets the other members of a view as readers, in the order in which they joined. `offer` is
    /// called for those that do not have the log yet.
    pub(super) fn set_readers(
        &mut self,
        view: u64,
        members: impl Iterator<Item = Member>,
        mut offer: impl FnMut(&Self, Member),
    ) {
        let old = std::mem::take(&mut self.readers);
        for member in members {
            let known = old.iter().find(|reader| reader.member == member);
            if known.is_none() {
                offer(self, member);
            }
            let reads = known.is_some_and(|reader| reader.reads);
            self.readers.push(Reader { member, reads });
        }
        debug_assert!(self.view <= view, "views are counted");
        self.view = view;
        self.is_read = self.readers.iter().all(|reader| reader.reads);
    }

    pub(super) fn note_reads(&mut self, member: Member) {
        let mut readers = self.readers.iter_mut();
        readers.by_ref().filter(|one| one.member == member).for_each(|one| one.reads = true);
        self.is_read = self.readers.iter().all(|reader| reader.reads);
    }

    pub(super) fn memory(&self) -> &Mapping {
        self.region.mapping()
    }

    /// Writes a message, unless it would overwrite one that a member lacks. Returns the place of
    /// its content.
    // spec: GRP-25
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        (view, stable): (u64, u64),
        label: &Label,
        parts: [&[u8]; 3],
    ) -> Option<Place> {
        let lacking = label.ticket - stable;
        debug_assert!(lacking > 0, "a new message is not stable");
        if lacking > LINES {
            return None;
        }
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let line = line_of(label.ticket);
        let who = u64::from(label.sender.0) | u64::from(label.origin.0) << 32;
        let rest = len as u64 | lacking << 32 | view << 48;
        let words = [label.number, who, rest].map(u64::to_le_bytes);
        let mut at = line + HEAD as u64;
        let head = line + TICKET as u64;
        if len > SHORT_MAX {
            at = self.place(stable, label.ticket, parts)?;
            let mapping = self.region.mapping();
            mapping.write_all(at, parts);
            mapping.write_all(head, [words.as_flattened(), &at.to_le_bytes()]);
        } else {
            let [one, two, three] = parts;
            self.region.mapping().write_all(head, [words.as_flattened(), one, two, three]);
        }
        debug_assert!(at + len as u64 <= BYTES as u64, "a content lies on the log");
        // BOARD-R1: a reader that sees the ticket sees the message.
        self.region.mapping().word(line).store(label.ticket, Ordering::Release);
        Some(Place { at: at as u32, len: len as u32 })
    }

    /// Returns the place for a content that does not fit its line, or none if there is no room. The
    /// payload begins at a multiple of 64, as those of programs mostly do, so that its copy is
    /// fast.
    #[inline(never)]
    fn place(&mut self, stable: u64, ticket: u64, parts: [&[u8]; 3]) -> Option<u64> {
        let [before, payload] = [parts[0].len() + parts[1].len(), parts[2].len()];
        let gap = if payload > 0 { before.wrapping_neg() % LINE } else { 0 };
        if before + payload <= PART_MAX {
            return Some(PARTS_START + ticket % LINES * PART + gap as u64);
        }
        let len = (gap + before + payload) as u64;
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
        let last = self.long.back();
        debug_assert!(last.is_none_or(|(last, _)| *last < ticket), "tickets only grow");
        debug_assert!(last.is_none_or(|(_, end)| *end <= at), "nothing is written over");
        self.end = (at + len).next_multiple_of(LINE as u64);
        debug_assert!(self.end - self.first <= LONG, "what somebody may lack has room");
        self.long.push_back((ticket, self.end));
        Some(LONG_START + at % LONG + gap as u64)
    }
}

/// A member's view of its root's shared log.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) root: Member,
    memory: Arc<Mapping>,
    /// The view and the ticket of the next message, if there can be one.
    awaited: Option<(u64, u64)>,
    /// The quarter in which the last acknowledged long content ends.
    quarter: u64,
}

impl Reading {
    /// Returns none if the memory is not mapped or is too short.
    pub(super) fn new(root: Member, region: &RemoteRegion) -> Option<Self> {
        let fits = region.len() == BYTES as u64 && region.cover.base == 0 && region.start == 0;
        let is_mapped = |memory: &&PeerMemory| fits && memory.mapping.len() >= BYTES;
        let memory = region.memory.as_ref().filter(is_mapped)?.mapping.clone();
        Some(Self { root, memory, awaited: None, quarter: 0 })
    }

    /// Sets the next possible message: its sender, view and ticket.
    pub(super) fn await_next(&mut self, next: Option<(Member, u64, u64)>) {
        let next = next.filter(|(parent, ..)| *parent == self.root);
        self.awaited = next.map(|(_, view, ticket)| (view, ticket));
    }

    /// Notes that a message was taken, and that this ticket is next.
    #[inline(always)]
    pub(super) fn await_ticket(&mut self, view: u64, ticket: u64) {
        let is_next = |(of, last): (u64, u64)| of == view && last + 1 == ticket;
        debug_assert!(self.awaited.is_some_and(is_next), "one after the other");
        self.awaited = Some((view, ticket));
    }

    pub(super) fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// Whether the next message is in the log.
    #[inline(always)]
    pub(super) fn has_news(&self) -> bool {
        // BOARD-A1: pairs with the ticket's store, BOARD-R1.
        let ticket_in = |line| self.memory.word(line).load(Ordering::Acquire);
        self.awaited.is_some_and(|(_, ticket)| ticket_in(line_of(ticket)) == ticket)
    }

    /// Returns the next message of the open view, if it is in the log.
    // spec: GRP-25
    #[inline(always)]
    pub(super) fn next(&self) -> Result<Option<Entry>, Malformed> {
        let Some((view, ticket)) = self.awaited.filter(|_| self.has_news()) else {
            return Ok(None);
        };
        let (line, mut words) = (line_of(ticket), [[0; 8]; 3]);
        self.memory.read(line + TICKET as u64, words.as_flattened_mut());
        let [number, who, rest] = words.map(u64::from_le_bytes);
        let (len, lacking) = (u64::from(rest as u32), rest >> 32 & 0xffff);
        let mut at = line + HEAD as u64;
        let mut is_sound = rest >> 48 == view & 0xffff && (1..=ticket).contains(&lacking);
        if len > SHORT_MAX as u64 {
            let mut place = [0; 8];
            self.memory.read(at, &mut place);
            at = u64::from_le_bytes(place);
            is_sound &= len <= LONG && (PARTS_START..=BYTES as u64 - len).contains(&at);
        }
        if !is_sound || number >> 63 != 0 {
            return Err(Malformed);
        }
        let (sender, origin) = (Member(who as u32), Member((who >> 32) as u32));
        let label = Label { ticket, number, sender, origin };
        let place = Place { at: at as u32, len: len as u32 };
        Ok(Some(Entry { view, stable: ticket - lacking, label, place }))
    }

    /// Whether the root must be told soon that a content was read, because there is little room for
    /// long ones.
    // spec: GRP-25
    #[inline]
    pub(super) fn fills_quarter(&mut self, place: Place) -> bool {
        let Some(start) = u64::from(place.at).checked_sub(LONG_START) else { return false };
        let end = start + u64::from(place.len);
        let before = std::mem::replace(&mut self.quarter, end / QUARTER);
        before != self.quarter || u64::from(place.len) > QUARTER
    }
}

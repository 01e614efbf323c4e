//! The memory of socket connections whose bytes go through rings.
//!
//! ```text
//!   pair:     shared by two processes and their forked children
//!                   0  header: magic; of each side its processes, and words of its bells
//!              OWNERS  for each side and bell the process that has it, `socket/owners.rs`
//!                USED  a bit for each slot
//!                RUNG  for each side and bell, `socket/bell.rs`: whether it is to be rung, and
//!                      for which slots it was
//!               PORTS  the slot that was offered last, for each port
//!          FIRST_SLOT  for each slot 640 bytes: offer | direction 0: written, taken | direction 1
//!          FIRST_RING  for each slot a ring for each direction
//! ```
//!
//! A connection has a slot as soon as both ends have agreed on one. Each direction has a line in
//! it that its writer writes, and one that its reader writes. The peer may write over both, so each
//! end keeps its own words in its seat (`mem/seat.rs`). The peer's words are claims, which
//! `proto::socket` checks.
//!
//! The lowest free slot is used first, and rings are mapped in blocks. So a pair with few
//! connections needs little memory and few addresses.
mod bell;
mod owners;

use self::bell::BELL_BYTES;
pub(crate) use self::bell::BellMemory;
use super::bits::Bits;
use super::doorbell::{self, Doorbell};
use super::file::{Pages, check_foreign, memory_file};
use super::map::Mapping;
use super::part::Part;
use crate::error::SetupError;
use crate::machine;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::cycles;
use crate::sys::descriptor::Descriptor;
use crate::sys::hidden::{self, Hidden};
use ayre_proto::socket::far::Progress;
use ayre_proto::socket::{MARKS, RING, SMALL, Span, Taken, Wants, Written};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Connections of a pair.
pub(crate) const SLOTS: u32 = 1 << 14;

/// Bells of each side of a pair.
pub(crate) const BELLS: u16 = 1024;

const MAGIC: u64 = u64::from_le_bytes(*b"ayresok5");
/// Of each side, half a word.
const PROCESSES: u64 = 8;
const HAND: u64 = 16;
const EDITIONS: u64 = 24;
const ROOM_FOR_BELLS: u64 = 32;
const HAS_ENDED: u64 = 40;
const OWNERS: u64 = 2048;
const USED: u64 = OWNERS + 2 * BELLS as u64 * 4;
const RUNG: u64 = USED + SLOTS as u64 / 8;
const PORTS: u64 = RUNG + 2 * BELLS as u64 * BELL_BYTES as u64;
const FIRST_SLOT: u64 = PORTS + 4 * (1 << 16);
const SLOT_BYTES: u64 = 640;
const FIRST_RING: u64 = FIRST_SLOT + SLOTS as u64 * SLOT_BYTES;
const SHARED_BYTES: u64 = FIRST_RING + SLOTS as u64 * 2 * RING;
const _: () = assert!(FIRST_RING.is_multiple_of(4096) && SMALL.is_multiple_of(4096));
const _: () = assert!(FIRST_SLOT.is_multiple_of(128), "lines are whole");

/// Slots whose rings are mapped at once.
const BLOCK: u32 = 64;
const BLOCK_BYTES: u64 = BLOCK as u64 * 2 * RING;

/// The first slots keep the memory of small rings for their next connections.
const WARM: u32 = 64;

/// The place of a slot's offer: its state, then what it names.
const OFFER: usize = 0;
/// Words of an offer, without its state.
pub(crate) const OFFER_WORDS: usize = 5;
/// The lines of direction 0; those of direction 1 follow. Lines of different writers are not
/// neighbours, as processors fetch lines in pairs.
const WRITTEN: usize = 128;
const TAKEN: usize = 256;
const DIRECTION_BYTES: usize = 256;

/// Within the line of a writer.
const TAIL: usize = 0;
const ORIGIN: usize = 8;
const SEGMENT: usize = 16;
const ROOM_WANTS: usize = 20;
const MARK: usize = 24;
const SINCE: usize = 56;
const IS_LARGE: usize = 64;
/// Within the line of a reader.
const HEAD: usize = 0;
const TAKEN_SEGMENT: usize = 8;
const WANTS: usize = 12;
/// Between hosts only.
const KNOWN: usize = 16;
const IS_LINKED: usize = 20;

/// One of the two sides of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It has made the memory, and offers connections.
    Maker,
    /// It takes them.
    Taker,
}

impl Side {
    /// The opposite side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Maker => Self::Taker,
            Self::Taker => Self::Maker,
        }
    }
}

/// The state of a slot, of which each side may change only what is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// The maker has connected, or is about to.
    Offered,
    /// The taker has accepted.
    Taken,
    /// It was taken, and only the taker uses it now.
    MakerLeft,
    /// It was taken, and only the maker uses it now.
    TakerLeft,
    /// The maker has closed the connection, which nobody has taken.
    Withdrawn,
}

impl State {
    /// In the word of a state: the offers of the slot, counted.
    const OFFERS: u64 = 1 << 8;

    const fn of_word(word: u64) -> Self {
        match word % Self::OFFERS {
            1 => Self::Offered,
            2 => Self::Taken,
            3 => Self::MakerLeft,
            4 => Self::TakerLeft,
            5 => Self::Withdrawn,
            _ => Self::Free,
        }
    }

    /// The word of the same offer in this state.
    const fn in_word(self, word: u64) -> u64 {
        word - word % Self::OFFERS + self as u64
    }

    /// The state when a side leaves. None where it does not have the slot.
    const fn left_by(self, side: Side) -> Option<Self> {
        match (self, side) {
            (Self::Taken, Side::Maker) => Some(Self::MakerLeft),
            (Self::Taken, Side::Taker) => Some(Self::TakerLeft),
            (Self::Offered | Self::Withdrawn | Self::TakerLeft, Side::Maker)
            | (Self::MakerLeft, Side::Taker) => Some(Self::Free),
            _ => None,
        }
    }
}

/// The memory of a pair, seen from one side.
#[derive(Debug)]
pub(crate) struct PairMemory {
    /// All before the rings.
    shared: Arc<Mapping>,
    side: Side,
    /// The file, from which rings are mapped, and its number.
    file: Hidden,
    number: u64,
    /// Rings, as far as they were used.
    rings: Vec<OnceLock<Arc<Mapping>>>,
}

impl PairMemory {
    /// Makes the memory of a pair, and the file for the other side.
    pub(crate) fn make() -> Result<(Self, Descriptor), SetupError> {
        // All bytes of a file in place of a memory file would be allocated.
        if let Some(errno) = machine::memory_file::refusal() {
            return Err(SetupError::Os { call: "memfd_create", errno });
        }
        let file = memory_file(SHARED_BYTES as usize, Pages::Ordinary)?;
        let shared = Mapping::part(file.as_fd(), 0..FIRST_RING)?;
        // Relaxed: nobody else has the memory yet.
        shared.word(0).store(MAGIC, Ordering::Relaxed);
        // Until the taker tells, it is thought to have room for all. Relaxed: as above.
        let taker = ROOM_FOR_BELLS + 4 * Side::Taker as u64;
        shared.half_word(taker).store(BELLS.into(), Ordering::Relaxed);
        Ok((Self::new(shared, Side::Maker, file.as_fd())?, file))
    }

    /// Maps the memory that a peer has made. None where the peer is of another version.
    pub(crate) fn open(file: BorrowedFd<'_>) -> Result<Option<Self>, SetupError> {
        check_foreign(file, SHARED_BYTES as usize, Pages::Ordinary)?;
        let shared = Mapping::part(file, 0..FIRST_RING)?;
        // Relaxed: nobody else has the memory yet.
        let is_ours = shared.word(0).load(Ordering::Relaxed) == MAGIC;
        is_ours.then(|| Self::new(shared, Side::Taker, file)).transpose()
    }

    fn new(shared: Mapping, side: Side, file: BorrowedFd<'_>) -> Result<Self, SetupError> {
        shared.leave_out_of_dumps();
        let number = fstat(file).map_err(SetupError::os("fstat of a pair's memory"))?.st_ino;
        let file = Hidden::copy_of(file).map_err(SetupError::os("memory of a pair"))?;
        let rings = (0..SLOTS / BLOCK).map(|_| OnceLock::new()).collect();
        let this = Self { shared: Arc::new(shared), side, file, number, rings };
        // Relaxed: a count that orders nothing.
        this.processes(side).store(1, Ordering::Relaxed);
        let room = hidden::room().min(BELLS.into());
        // Relaxed: a bound that orders nothing.
        this.half_of(ROOM_FOR_BELLS, side).store(room, Ordering::Relaxed);
        Ok(this)
    }

    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// A number that no other pair of the host has.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// A word of the header that each side has.
    fn half_of(&self, of: u64, side: Side) -> &AtomicU32 {
        self.shared.half_word(of + 4 * side as u64)
    }

    /// How many processes there are or were on a side: its first one and its forked children.
    pub(crate) fn processes(&self, side: Side) -> &AtomicU32 {
        self.half_of(PROCESSES, side)
    }

    /// Whether the other side has said that it uses the pair no more.
    pub(crate) fn is_ended_by_peer(&self) -> bool {
        // Relaxed: a claim that orders nothing.
        self.half_of(HAS_ENDED, self.side.other()).load(Ordering::Relaxed) != 0
    }

    /// This side uses the pair no more, if it is the only process that does.
    pub(crate) fn end(&self) {
        // Relaxed: a count that orders nothing.
        if self.processes(self.side).load(Ordering::Relaxed) <= 1 {
            // Relaxed: a claim that orders nothing.
            self.half_of(HAS_ENDED, self.side).store(1, Ordering::Relaxed);
        }
    }

    fn used(&self) -> Bits<'_> {
        Bits::new(&self.shared, USED, SLOTS)
    }

    /// The maker's: claims a slot that neither side uses. None if there is none, or no memory.
    pub(crate) fn claim(&self) -> Option<(u32, SlotMemory)> {
        let number = self.used().take()?;
        let Some(slot) = self.slot(number) else {
            self.used().give_back(number);
            return None;
        };
        // A slot that is not free is one that the peer has given back in our place. It stays used.
        (slot.state() == State::Free).then_some((number, slot))
    }

    /// This side uses a slot no longer. The last one gives it back.
    pub(crate) fn leave(&self, number: u32, slot: &SlotMemory) {
        if slot.leave(self.side) {
            slot.give_back_rings(number >= WARM);
            self.used().give_back(number);
        }
    }

    /// The maker's: tells which slot was offered for a connection from this port.
    pub(crate) fn tell_of_port(&self, port: u16, slot: u32) {
        // SOCK-R3: the offer is there.
        self.shared.half_word(PORTS + 4 * u64::from(port)).store(slot, Ordering::Release);
    }

    /// The slot that the maker has told of: a claim.
    pub(crate) fn told_of_port(&self, port: u16) -> Option<u32> {
        // SOCK-A3: the offer there.
        let slot = self.shared.half_word(PORTS + 4 * u64::from(port)).load(Ordering::Acquire);
        Some(slot).filter(|slot| *slot < SLOTS)
    }

    /// The memory of a connection. None where this process can map no more.
    pub(crate) fn slot(&self, number: u32) -> Option<SlotMemory> {
        assert!(number < SLOTS, "slots have small numbers");
        let n = u64::from(number);
        Some(SlotMemory {
            shared: Part::new(&self.shared, FIRST_SLOT + n * SLOT_BYTES),
            rings: self.block(number / BLOCK)?.clone(),
            ring: u64::from(number % BLOCK) * 2 * RING,
            out: self.side as usize,
        })
    }

    /// The rings of some slots.
    fn block(&self, number: u32) -> Option<&Arc<Mapping>> {
        let block = &self.rings[number as usize];
        if block.get().is_none() {
            let start = FIRST_RING + u64::from(number) * BLOCK_BYTES;
            let made = Mapping::part(self.file.fd(), start..start + BLOCK_BYTES).ok()?;
            made.leave_out_of_dumps();
            let _ = block.set(Arc::new(made));
        }
        block.get()
    }
}

/// The memory of a connection that both ends have, seen from one side.
#[derive(Clone, Debug)]
pub(crate) struct SlotMemory {
    shared: Part<{ SLOT_BYTES as usize }>,
    /// The rings of this slot and of others, and where those of this one begin.
    rings: Arc<Mapping>,
    ring: u64,
    /// The number of the direction that this side writes.
    out: usize,
}

impl SlotMemory {
    fn written_line(&self, direction: usize) -> usize {
        WRITTEN + direction * DIRECTION_BYTES
    }

    fn taken_line(&self, direction: usize) -> usize {
        TAKEN + direction * DIRECTION_BYTES
    }

    /// The maker's: makes the slot as new, for this offer.
    pub(crate) fn offer(&self, words: [u64; OFFER_WORDS]) {
        for place in (WRITTEN..WRITTEN + 2 * DIRECTION_BYTES).step_by(8) {
            self.shared.set(place, 0);
        }
        for (i, word) in words.into_iter().enumerate() {
            self.shared.set(OFFER + 8 + 8 * i, word);
        }
        let next = self.shared.get(OFFER).wrapping_add(State::OFFERS);
        // SOCK-R3: the offer is there before its state says so.
        self.shared.word(OFFER).store(State::Offered.in_word(next), Ordering::Release);
    }

    /// The taker's: the word of the state, if this is offered.
    pub(crate) fn found(&self, words: [u64; OFFER_WORDS]) -> Option<u64> {
        // SOCK-A3: the offer that the state tells of.
        let word = self.shared.word(OFFER).load(Ordering::Acquire);
        let is_equal = |(i, word)| self.shared.get(OFFER + 8 + 8 * i) == word;
        let is_found = State::of_word(word) == State::Offered;
        (is_found && words.into_iter().enumerate().all(is_equal)).then_some(word)
    }

    /// The taker's: takes the offer that was found with this word. False where the maker has
    /// withdrawn it, even if it has offered another connection here since.
    pub(crate) fn take(&self, found: u64) -> bool {
        let taken = State::Taken.in_word(found);
        let state = self.shared.word(OFFER);
        // Relaxed: the words of the offer were read before, with acquire.
        state.compare_exchange(found, taken, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// How far the agreement has come.
    pub(crate) fn state(&self) -> State {
        // SOCK-A3: the offer, or the taker's positions, that the state tells of.
        State::of_word(self.shared.word(OFFER).load(Ordering::Acquire))
    }

    /// Whether both ends have agreed on the slot.
    pub(crate) fn is_agreed(&self) -> bool {
        matches!(self.state(), State::Taken | State::MakerLeft | State::TakerLeft)
    }

    /// The maker's: withdraws an offer, unless it was taken.
    pub(crate) fn withdraw(&self) {
        let state = self.shared.word(OFFER);
        // Relaxed: the maker is the only one that offers.
        let word = state.load(Ordering::Relaxed);
        if State::of_word(word) == State::Offered {
            let withdrawn = State::Withdrawn.in_word(word);
            // Relaxed: nobody reads what such a slot has.
            let _ = state.compare_exchange(word, withdrawn, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// A side uses the slot no longer. True for the last one that did.
    fn leave(&self, side: Side) -> bool {
        let state = self.shared.word(OFFER);
        // Relaxed: the exchange decides.
        let mut word = state.load(Ordering::Relaxed);
        // Of a peer's lie, the slot stays used.
        while let Some(left) = State::of_word(word).left_by(side) {
            // SOCK-R5, SOCK-A5: all that either side did precedes its next use.
            let (new, order) = (left.in_word(word), Ordering::AcqRel);
            match state.compare_exchange(word, new, order, Ordering::Relaxed) {
                Ok(_) => return left == State::Free,
                Err(found) => word = found,
            }
        }
        false
    }

    /// Gives the memory of a slot's rings back to the system: all of it, or all that small rings
    /// do not have.
    fn give_back_rings(&self, all: bool) {
        if all {
            return self.rings.give_back(self.ring..self.ring + 2 * RING);
        }
        for direction in 0..2 {
            if self.shared.get_half(self.written_line(direction) + IS_LARGE) != 0 {
                self.rings.give_back(self.beyond_small(direction));
            }
        }
    }

    /// The bytes of a ring that a small one does not have.
    fn beyond_small(&self, direction: usize) -> Range<u64> {
        let start = self.ring + direction as u64 * RING;
        start + SMALL..start + RING
    }

    /// The ring that this side writes is about to be a large one.
    pub(crate) fn enlarge(&self) {
        self.shared.set_half(self.written_line(self.out) + IS_LARGE, 1);
    }

    /// The ring that this side writes, and that is empty, is a small one again.
    pub(crate) fn shrink(&self) {
        self.rings.give_back(self.beyond_small(self.out));
        self.shared.set_half(self.written_line(self.out) + IS_LARGE, 0);
    }

    /// Whether the peer's writer has ended in order.
    pub(crate) fn is_ended(&self) -> bool {
        self.room_wants().get() == Wants::Gone
    }

    /// Tells the reader where a segment or the origin has changed. Bytes are told of by
    /// [`Self::publish`].
    pub(crate) fn tell(&self, out: &Written, before: &Written) {
        let line = self.written_line(self.out);
        if out.origin != before.origin {
            self.shared.set(line + ORIGIN, out.origin);
        }
        if out.segment != before.segment {
            let i = before.segment as usize % MARKS;
            self.shared.set(line + MARK + 8 * i, out.marks[i]);
            // SOCK-R1: the mark is there before the segment's number says so.
            self.shared.half(line + SEGMENT).store(out.segment, Ordering::Release);
        }
    }

    /// Tells the reader that the ring, which was empty, has bytes from now on. Before
    /// [`Self::publish`].
    #[inline]
    pub(crate) fn stamp(&self) {
        self.shared.set(self.written_line(self.out) + SINCE, cycles::count());
    }

    /// From when on the ring that this side reads has had bytes: a claim.
    pub(crate) fn since(&self) -> u64 {
        self.shared.get(self.written_line(1 - self.out) + SINCE)
    }

    /// Tells the reader how many bytes were written.
    #[inline]
    pub(crate) fn publish(&self, tail: u64) {
        // SOCK-R1: the bytes, the origin and the marks precede the tail.
        doorbell::tell(self.shared.word(self.written_line(self.out) + TAIL), tail);
    }

    /// The words of the peer's writer: a claim.
    #[inline]
    pub(crate) fn written(&self) -> Written {
        let line = self.written_line(1 - self.out);
        // SOCK-A1: the tail first, so that all else is at least as new.
        let tail = doorbell::told(self.shared.word(line + TAIL));
        let segment = self.shared.half(line + SEGMENT).load(Ordering::Acquire);
        let origin = self.shared.get(line + ORIGIN);
        let mark = |i| self.shared.get(line + MARK + 8 * i);
        Written { tail, segment, origin, marks: std::array::from_fn(mark) }
    }

    /// The number of the segment that the peer writes: a claim, as [`Self::written`] has it.
    #[inline]
    pub(crate) fn segment_written(&self) -> u32 {
        // Relaxed: one that acts on it reads all words.
        self.shared.half(self.written_line(1 - self.out) + SEGMENT).load(Ordering::Relaxed)
    }

    /// The words of the peer's reader: a claim.
    #[inline]
    pub(crate) fn taken(&self) -> Taken {
        let line = self.taken_line(self.out);
        // SOCK-A2: those bytes were copied out.
        let head = doorbell::told(self.shared.word(line + HEAD));
        Taken { head, segment: self.shared.get_half(line + TAKEN_SEGMENT) }
    }

    /// Tells the writer how far this side's reader has come.
    #[inline]
    pub(crate) fn tell_taken(&self, taken: Taken) {
        let line = self.taken_line(1 - self.out);
        self.shared.set_half(line + TAKEN_SEGMENT, taken.segment);
        // SOCK-R2: the bytes were copied out.
        doorbell::tell(self.shared.word(line + HEAD), taken.head);
    }

    /// The last segment of this side's writer whose beginning the other host knows: the word of a
    /// proxy.
    pub(crate) fn known(&self) -> u32 {
        self.shared.get_half(self.taken_line(self.out) + KNOWN)
    }

    /// Whether the writer on the other host may have begun a ring, of which a link tells.
    pub(crate) fn is_linked(&self) -> bool {
        self.shared.get_half(self.taken_line(self.out) + IS_LINKED) != 0
    }

    /// The proxy's: tells that the writer on the other host may begin a ring.
    pub(crate) fn tell_link(&self) {
        self.shared.set_half(self.taken_line(1 - self.out) + IS_LINKED, 1);
    }

    /// The writer on the other host begins no ring any more.
    pub(crate) fn forget_link(&self) {
        self.shared.set_half(self.taken_line(self.out) + IS_LINKED, 0);
    }

    /// The proxy's: tells how far the other host has come with what the program writes.
    pub(crate) fn tell_progress(&self, progress: &Progress) {
        let line = self.taken_line(1 - self.out);
        self.shared.set_half(line + KNOWN, progress.known);
        self.tell_taken(progress.taken);
    }

    /// The word by which this side's reader says what it wants.
    pub(crate) fn own_wants(&self) -> Doorbell<'_> {
        Doorbell::over(self.shared.half(self.taken_line(1 - self.out) + WANTS))
    }

    /// The word of the peer's reader.
    pub(crate) fn wants(&self) -> Doorbell<'_> {
        Doorbell::over(self.shared.half(self.taken_line(self.out) + WANTS))
    }

    /// The word by which this side's writer says that it waits for room.
    pub(crate) fn own_room_wants(&self) -> Doorbell<'_> {
        Doorbell::over(self.shared.half(self.written_line(self.out) + ROOM_WANTS))
    }

    /// The word of the peer's writer.
    pub(crate) fn room_wants(&self) -> Doorbell<'_> {
        Doorbell::over(self.shared.half(self.written_line(1 - self.out) + ROOM_WANTS))
    }

    /// Copies bytes into the ring that this side writes.
    #[inline]
    pub(crate) fn copy_in(&self, place: u64, from: &[u8]) {
        let start = self.ring + self.out as u64 * RING;
        let first = from.len().min((RING - place) as usize);
        self.rings.write(start + place, &from[..first]);
        if first < from.len() {
            self.rings.write(start, &from[first..]);
        }
    }

    /// Reads bytes of a file, from this position on, into the ring that this side writes: as many
    /// as it has before the ring's end.
    ///
    /// # Errors
    /// Those of pread(2).
    pub(crate) fn read_in(&self, span: Span, file: (BorrowedFd<'_>, u64)) -> Result<usize, Errno> {
        let start = self.ring + self.out as u64 * RING + span.place;
        self.rings.read_file((start, span.len.min(RING - span.place) as usize), file)
    }

    /// Copies bytes out of the ring that this side reads.
    #[inline]
    pub(crate) fn copy_out(&self, place: u64, into: &mut [u8]) {
        self.copy_of(1 - self.out, place, into);
    }

    /// Copies bytes back from the ring that this side writes.
    pub(crate) fn copy_back(&self, place: u64, into: &mut [u8]) {
        self.copy_of(self.out, place, into);
    }

    #[inline]
    fn copy_of(&self, direction: usize, place: u64, into: &mut [u8]) {
        let start = self.ring + direction as u64 * RING;
        let first = into.len().min((RING - place) as usize);
        let (head, rest) = into.split_at_mut(first);
        self.rings.read(start + place, head);
        if !rest.is_empty() {
            self.rings.read(start, rest);
        }
    }
}

#[cfg(test)]
mod tests;

//! The memory of socket connections whose bytes go through rings.
//!
//! ```text
//!   pair:     shared by two processes and their forked children
//!                   0  header: magic, processes and bells of each side
//!                RUNG  rung connections: for each side and bell a bit for each slot
//!          FIRST_SLOT  for each slot 1 KiB: offer | direction 0: written, taken | direction 1
//!          FIRST_RING  for each slot a ring for each direction
//! ```
//!
//! A connection has a slot as soon as both ends have agreed on one. Each direction has a line in
//! it that its writer writes, and one that its reader writes. The peer may write over both, so each
//! end keeps its own words in its seat (`mem/seat.rs`). The peer's words are claims, which
//! `proto::socket` checks.
use super::doorbell::{self, Doorbell};
use super::file::{Pages, memory_file};
use super::map::Mapping;
use super::part::Part;
use crate::error::SetupError;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::descriptor::Descriptor;
use ayre_proto::socket::{MARKS, RING, Taken, Wants, Written};
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Connections of a pair.
pub(crate) const SLOTS: u32 = 1024;

/// Bells of each side of a pair.
pub(crate) const BELLS: u16 = 256;

const MAGIC: u64 = u64::from_le_bytes(*b"ayresok1");
const PROCESSES: u64 = 8;
const RUNG: u64 = 4096;
const RUNG_BYTES: u64 = SLOTS as u64 / 8;
const FIRST_SLOT: u64 = RUNG + 2 * BELLS as u64 * RUNG_BYTES;
const SLOT_BYTES: u64 = 1024;
const FIRST_RING: u64 = FIRST_SLOT + SLOTS as u64 * SLOT_BYTES;
const SHARED_BYTES: u64 = FIRST_RING + SLOTS as u64 * 2 * RING;

const NEXT_BELLS: u64 = 16;

/// The place of a slot's offer: its state, then what it names.
const OFFER: usize = 0;
/// Words of an offer, without its state.
pub(crate) const OFFER_WORDS: usize = 5;
/// Whether the maker uses the slot.
const IS_USED: usize = OFFER + 8 * (1 + OFFER_WORDS);
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
/// Within the line of a reader.
const HEAD: usize = 0;
const TAKEN_SEGMENT: usize = 8;
const WANTS: usize = 12;

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
}

impl State {
    /// In the word of a state: the offers of the slot, counted.
    const OFFERS: u64 = 1 << 8;

    const fn of_word(word: u64) -> Self {
        match word % Self::OFFERS {
            1 => Self::Offered,
            2 => Self::Taken,
            _ => Self::Free,
        }
    }
}

/// The memory of a pair, seen from one side.
#[derive(Debug)]
pub(crate) struct PairMemory {
    shared: Arc<Mapping>,
    side: Side,
}

impl PairMemory {
    /// Makes the memory of a pair, and the file for the other side.
    pub(crate) fn make() -> Result<(Self, Descriptor), SetupError> {
        let file = memory_file(SHARED_BYTES as usize, Pages::Ordinary)?;
        let shared = Mapping::own_in_part(file.as_fd(), SHARED_BYTES as usize, [])?;
        let this = Self { shared: Arc::new(shared), side: Side::Maker };
        // Relaxed: nobody else has the memory yet.
        this.shared.word(0).store(MAGIC, Ordering::Relaxed);
        // Relaxed: a count that orders nothing.
        this.processes(this.side).store(1, Ordering::Relaxed);
        Ok((this, file))
    }

    /// Maps the memory that a peer has made. None where the peer is of another version.
    pub(crate) fn open(file: BorrowedFd<'_>) -> Result<Option<Self>, SetupError> {
        let shared = Mapping::foreign(file, SHARED_BYTES as usize, true)?;
        let this = Self { shared: Arc::new(shared), side: Side::Taker };
        // Relaxed: a count that orders nothing.
        this.processes(this.side).store(1, Ordering::Relaxed);
        // Relaxed: nobody else has the memory yet.
        Ok((this.shared.word(0).load(Ordering::Relaxed) == MAGIC).then_some(this))
    }

    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// How many processes there are or were on a side: its first one and its forked children.
    pub(crate) fn processes(&self, side: Side) -> &AtomicU32 {
        self.shared.half_word(PROCESSES + 4 * side as u64)
    }

    /// A number for another bell of this side; None if all are given.
    pub(crate) fn next_bell(&self) -> Option<u16> {
        let next = self.shared.half_word(NEXT_BELLS + 4 * self.side as u64);
        // Relaxed: a count that orders nothing.
        let bell = next.fetch_add(1, Ordering::Relaxed);
        (bell < u32::from(BELLS)).then_some(bell as u16)
    }

    fn rung(&self, (side, bell): (Side, u16), word: u32) -> &AtomicU64 {
        let line = side as u64 * u64::from(BELLS) + u64::from(bell);
        self.shared.word(RUNG + line * RUNG_BYTES + 8 * u64::from(word))
    }

    /// Marks a slot as one for which a bell of this side rings.
    pub(crate) fn mark_rung(&self, side: Side, bell: u16, slot: u32) {
        // SOCK-R4: the woken side sees what it is woken for.
        self.rung((side, bell), slot / 64).fetch_or(1 << (slot % 64), Ordering::Release);
    }

    /// Takes the marks of a bell of this side, and calls `each` with the slots.
    pub(crate) fn take_rung(&self, bell: u16, mut each: impl FnMut(u32)) {
        for word in 0..SLOTS / 64 {
            let bits = self.rung((self.side, bell), word);
            // Relaxed: a look; the swap orders.
            if bits.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // SOCK-A4: what the mark was set for is visible.
            let mut set = bits.swap(0, Ordering::Acquire);
            while set != 0 {
                each(64 * word + set.trailing_zeros());
                set &= set - 1;
            }
        }
    }

    /// The memory of a connection.
    pub(crate) fn slot(&self, number: u32) -> SlotMemory {
        assert!(number < SLOTS, "slots have small numbers");
        let n = u64::from(number);
        SlotMemory {
            shared: Part::new(&self.shared, FIRST_SLOT + n * SLOT_BYTES),
            ring: FIRST_RING + n * 2 * RING,
            out: self.side as usize,
        }
    }
}

/// The memory of a connection that both ends have, seen from one side.
#[derive(Clone, Debug)]
pub(crate) struct SlotMemory {
    shared: Part<{ SLOT_BYTES as usize }>,
    ring: u64,
    /// The number of the direction that this side writes.
    out: usize,
}

/// A slot of the maker that was never used, one that it uses, and one that it has closed.
const UNUSED: u32 = 0;
const USED: u32 = 1;
const CLOSED: u32 = 2;

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
        let last = self.shared.get(OFFER);
        let next = (last / State::OFFERS).wrapping_add(1).wrapping_mul(State::OFFERS);
        // SOCK-R3: the offer is there before its state says so.
        self.shared.word(OFFER).store(next + State::Offered as u64, Ordering::Release);
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
        let taken = found - State::Offered as u64 + State::Taken as u64;
        let state = self.shared.word(OFFER);
        // Relaxed: the words of the offer were read before, with acquire.
        state.compare_exchange(found, taken, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// How far the agreement has come.
    pub(crate) fn state(&self) -> State {
        // SOCK-A3: the offer, or the taker's positions, that the state tells of.
        State::of_word(self.shared.word(OFFER).load(Ordering::Acquire))
    }

    /// The maker's: withdraws an offer, unless it was taken.
    pub(crate) fn withdraw(&self) {
        let state = self.shared.word(OFFER);
        // Relaxed: the maker is the only one that offers.
        let word = state.load(Ordering::Relaxed);
        if State::of_word(word) == State::Offered {
            let free = word - State::Offered as u64 + State::Free as u64;
            // Relaxed: nobody reads what a free slot has.
            let _ = state.compare_exchange(word, free, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The maker's: whether it could claim the slot, which neither side uses any more.
    pub(crate) fn claim(&self) -> bool {
        let used = self.shared.half(IS_USED);
        // SOCK-A5: all that its last holder did.
        let claim = |from| used.compare_exchange(from, USED, Ordering::Acquire, Ordering::Relaxed);
        claim(UNUSED).is_ok() || (self.is_left_by_peer() && claim(CLOSED).is_ok())
    }

    /// The maker's: gives a slot back: at once, or when the taker has closed its end, too.
    pub(crate) fn release(&self) {
        // SOCK-R5: all use of the slot precedes its next use.
        self.shared.half(IS_USED).store(CLOSED, Ordering::Release);
    }

    /// Whether the peer has closed its end, or never had one.
    fn is_left_by_peer(&self) -> bool {
        self.state() != State::Taken || (self.wants().get() == Wants::Gone && self.is_ended())
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
        self.shared.mapping().write(start + place, &from[..first]);
        if first < from.len() {
            self.shared.mapping().write(start, &from[first..]);
        }
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
        self.shared.mapping().read(start + place, head);
        if !rest.is_empty() {
            self.shared.mapping().read(start, rest);
        }
    }
}

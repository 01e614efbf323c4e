//! The memory of the ends of socket connections that a process and its forked children have.
//!
//! ```text
//!            0  magic | the seat that is looked at next for dead holders, the highest used one
//!      REASONS  for connections without a seat: process, descriptor and reason
//!         USED  a bit for each seat
//!   FIRST_SEAT  for each seat 192 bytes
//!                   0  writers: lock | left | the words that this end has written
//!                  64  readers: lock | the words that this end has taken | socket, reason |
//!                      pair and slot
//!                 128  bytes owed to the kernel | flags | holders | users, closed
//! ```
//!
//! A connection has a seat at each end. Other processes of the user may look at all this.
use super::bits::Bits;
use super::family;
use super::file::{Pages, memory_file};
use super::map::Mapping;
use super::part::Part;
use crate::error::SetupError;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::hidden::Hidden;
use ayre_proto::socket::{MARKS, Outgoing, Reason, Span, Taken, Written};
use rustix::fd::AsFd;
use std::sync::Arc;

mod seen;

pub(crate) use self::seen::{SeenDirection, SeenFamily, SeenSocket};

/// Connections of a family.
const SEATS: u32 = 1 << 16;
const SEAT_BYTES: u64 = 192;
const FAMILY_MAGIC: u64 = u64::from_le_bytes(*b"ayresof3");
const HAND: u64 = 8;
const HIGHEST: u64 = 12;
/// Connections without a seat whose reason is kept. A later one may take the place of another.
const REASON_WORDS: u64 = 8192;
const REASONS: u64 = 4096;
const USED: u64 = REASONS + 8 * REASON_WORDS;
const FIRST_SEAT: u64 = USED + SEATS as u64 / 8;
const FAMILY_BYTES: u64 = FIRST_SEAT + SEATS as u64 * SEAT_BYTES;

/// Within the words of a writer.
const TAIL: usize = 0;
const ORIGIN: usize = 8;
const SEGMENT: usize = 16;
const MARK: usize = 24;

/// The number of this process, once it was asked for.
static THIS_PROCESS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn this_process() -> u32 {
    // Relaxed: it changes while the process has one thread.
    match THIS_PROCESS.load(Ordering::Relaxed) {
        0 => {
            let number = std::process::id();
            // Relaxed: as above.
            THIS_PROCESS.store(number, Ordering::Relaxed);
            number
        }
        number => number,
    }
}

/// In a forked child: the process has another number now. Returns that of its parent, if anybody
/// has asked for it.
pub(crate) fn in_child() -> u32 {
    // Relaxed: as above.
    THIS_PROCESS.swap(0, Ordering::Relaxed)
}

/// The memory of a process and its forked children.
#[derive(Debug)]
pub(crate) struct Family {
    memory: Arc<Mapping>,
    /// The file, for those that look. None where this process may open no more files.
    _file: Option<Hidden>,
    /// No descriptor above has a reason.
    highest: AtomicU32,
}

impl Family {
    pub(crate) fn new() -> Result<Self, SetupError> {
        let file = memory_file(FAMILY_BYTES as usize, Pages::Ordinary)?;
        let memory = Mapping::own_in_part(file.as_fd(), FAMILY_BYTES as usize, [])?;
        // Relaxed: no bytes of another kind were there before.
        memory.word(0).store(FAMILY_MAGIC, Ordering::Relaxed);
        let hidden = Hidden::copy_of(file.as_fd()).ok();
        Ok(Self { memory: Arc::new(memory), _file: hidden, highest: AtomicU32::new(0) })
    }

    /// Keeps the reason for which a socket of this process has no seat, by its descriptor: the
    /// kernel is not asked for the socket's own number.
    pub(crate) fn keep_reason(&self, fd: u32, reason: Reason) {
        if fd >> FD_BITS != 0 {
            return;
        }
        let of = Owner { process: this_process(), fd };
        let word = self.memory.word(of.place());
        // Relaxed: the word is all that there is to see.
        word.store(of.word(reason), Ordering::Relaxed);
        // Relaxed: a bound, which a forked child reads.
        self.highest.fetch_max(fd, Ordering::Relaxed);
    }

    /// In a forked child, which has the descriptors of its parent.
    pub(crate) fn inherit_reasons(&self, parent: u32) {
        // Relaxed: the child has one thread.
        for fd in 0..=self.highest.load(Ordering::Relaxed) {
            let of = Owner { process: parent, fd };
            // Relaxed: as above.
            let reason = of.reason(self.memory.word(of.place()).load(Ordering::Relaxed));
            if reason != Reason::None {
                self.keep_reason(fd, reason);
            }
        }
    }

    /// A seat that nobody of the family has, as new; None if all are taken.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let number = Bits::new(&self.memory, USED, SEATS).take()?;
        // Relaxed: a bound of looks.
        self.memory.half_word(HIGHEST).fetch_max(number, Ordering::Relaxed);
        let seat = self.seat_at(number);
        (0..USERS).step_by(8).for_each(|place| seat.0.set(place, 0));
        seat.0.set_half(USERS, 1);
        seat.0.set_half(IS_CLOSED, 0);
        seat.0.set(KERNEL_WRITTEN, 0);
        seat.0.set_half(HOLDERS, this_process());
        Some(seat)
    }

    /// Looks at one of the seats, another one each time. If all that had it have died, it is free
    /// then, and this tells its place.
    pub(crate) fn reclaim(&self) -> Option<Place> {
        // Relaxed: a seat that is just being taken is looked at later.
        let highest = self.memory.half_word(HIGHEST).load(Ordering::Relaxed);
        let used = Bits::new(&self.memory, USED, (highest + 1).next_multiple_of(64));
        let hand = self.memory.half_word(HAND);
        // Relaxed: the order of looks is nothing that others count on.
        let number = used.next(hand.load(Ordering::Relaxed) % SEATS)?;
        // Relaxed: as above.
        hand.store(number + 1, Ordering::Relaxed);
        self.seat_at(number).reclaim()
    }

    fn seat_at(&self, number: u32) -> Seat {
        let at = FIRST_SEAT + u64::from(number) * SEAT_BYTES;
        Seat(Part::new(&self.memory, at), number)
    }
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) process: u32,
    pub(crate) fd: u32,
}

impl Owner {
    /// Where its word in the table of reasons is. The words of a process lie together.
    const fn place(self) -> u64 {
        let first = self.process.wrapping_mul(0x9E37_79B1) as u64;
        REASONS + 8 * ((first + self.fd as u64) % REASON_WORDS)
    }

    /// The word: process, descriptor, reason.
    fn word(self, reason: Reason) -> u64 {
        u64::from(self.process) << 32 | u64::from(self.fd) << REASON_BITS | reason.to_word() as u64
    }

    /// The reason in a word, if it is this owner's.
    fn reason(self, word: u64) -> Reason {
        match word >> REASON_BITS == self.word(Reason::None) >> REASON_BITS {
            true => Reason::of_word(word as u32 & ((1 << REASON_BITS) - 1)),
            false => Reason::None,
        }
    }
}

const REASON_BITS: u32 = 8;
const FD_BITS: u32 = 24;

/// A connection's place: the number of its pair, and that of its slot.
pub(crate) type Place = (u64, u32);

/// One end of a connection, as the family that has it believes it to be; and its number.
#[derive(Clone, Debug)]
pub(crate) struct Seat(Part<{ SEAT_BYTES as usize }>, u32);

/// Places in a seat: the writers' line, the readers' line, and one that seldom changes.
const WRITE_LOCK: usize = 0;
const IS_LEFT: usize = 4;
const OWN_WRITTEN: usize = 8;
const READ_LOCK: usize = 64;
const OWN_TAKEN: usize = 72;
const KERNEL_READ: usize = 88;
const SOCKET: usize = 96;
const REASON: usize = 104;
const IS_LARGE: usize = 108;
const PAIR: usize = 112;
const SLOT: usize = 120;
const OWED: usize = 128;
const IS_ENDED: usize = 144;
const REFUSES: usize = 148;
const READING_LEFT: usize = 152;
const HAS_SHUT_READING: usize = 156;
const HOLDERS: usize = 160;
const HOLDER_END: usize = 176;
const USERS: usize = 176;
const IS_CLOSED: usize = 180;
const KERNEL_WRITTEN: usize = 184;

/// Of [`READING_LEFT`].
const LEFT: u32 = 1;
const CAME_BACK: u32 = 2;

/// Holders that a seat tells apart.
const MOST_HOLDERS: usize = (HOLDER_END - HOLDERS) / 4;

/// A holder that is about to be forked: its parent, with this bit.
const UNBORN: u32 = 1 << 31;

/// In the last place of the holders: processes that found no other place. They stay.
const MANY: u32 = UNBORN - 1;

impl Seat {
    fn holder(&self, i: usize) -> &AtomicU32 {
        self.0.half(HOLDERS + 4 * i)
    }

    /// Changes the first of the holders that is `from`. False where none is.
    fn replace_holder(&self, from: u32, to: u32) -> bool {
        (0..MOST_HOLDERS).any(|i| {
            // SOCK-A5: all that a holder did before it was gone, if the last one is.
            self.holder(i).compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }

    /// This process is about to fork: the child has the connection, too.
    pub(crate) fn before_fork(&self) {
        // Relaxed: a count that orders nothing.
        self.0.half(USERS).fetch_add(1, Ordering::Relaxed);
        let unborn = this_process() | UNBORN;
        if self.replace_holder(0, unborn) {
            return;
        }
        self.remove_dead();
        if !self.replace_holder(0, unborn) {
            // Relaxed: it orders nothing.
            self.holder(MOST_HOLDERS - 1).store(MANY, Ordering::Relaxed);
        }
    }

    /// The number of the process that `parent` has forked is known: in the child, and in its
    /// parent.
    pub(crate) fn after_fork(&self, parent: u32, child: u32) {
        self.replace_holder(parent | UNBORN, child);
    }

    /// This process could not fork.
    pub(crate) fn not_forked(&self) {
        if self.replace_holder(this_process() | UNBORN, 0) {
            self.leave();
        }
    }

    fn holders(&self) -> impl Iterator<Item = u32> {
        (0..MOST_HOLDERS).map(|i| self.0.get_half(HOLDERS + 4 * i)).filter(|holder| *holder != 0)
    }

    /// Whether other processes of the family have the connection, of which some may have died.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        let this = this_process();
        self.holders().any(|holder| holder != this)
    }

    /// Forgets the holders that have died, and their use of the seat. Returns how many are left.
    /// This process has the seat.
    pub(crate) fn remove_dead(&self) -> usize {
        for dead in self.dead(family::is_alive) {
            self.remove(dead);
        }
        self.holders().count()
    }

    /// The holders of which `is_alive` says that they are not.
    fn dead(&self, is_alive: fn(u32) -> bool) -> impl Iterator<Item = u32> {
        let is_other = |it: u32| it & UNBORN == 0 && it != MANY && it != this_process();
        self.holders().filter(move |holder| is_other(*holder) && !is_alive(*holder))
    }

    /// Removes a holder that uses the seat no longer. Whether no process does.
    fn remove(&self, holder: u32) -> bool {
        self.replace_holder(holder, 0) && self.count_out()
    }

    /// Frees the seat if all that had it have died, and tells its place.
    fn reclaim(&self) -> Option<Place> {
        let place = (self.0.get(PAIR), self.0.get_half(SLOT));
        // Another process may look at the seat at this moment: each holder is removed once.
        let mut dead = self.dead(family::exists);
        let is_last = dead.any(|holder| self.remove(holder));
        if is_last {
            self.give_back();
        }
        is_last.then_some(place)
    }

    /// This process is about to lose the connection to another program that takes its place, if
    /// there is one. The last one that has it stays.
    pub(crate) fn step_aside(&self) {
        if self.remove_dead() > 1 {
            self.remove(this_process());
        }
    }

    /// Undoes [`Self::step_aside`], as there was no program.
    pub(crate) fn come_back(&self) {
        let this = this_process();
        // One that found no other place has not stepped aside.
        if self.holders().any(|holder| holder == this || holder == MANY) {
            return;
        }
        // Relaxed: a count that orders nothing.
        self.0.half(USERS).fetch_add(1, Ordering::Relaxed);
        if !self.replace_holder(0, this) {
            // Relaxed: it orders nothing.
            self.holder(MOST_HOLDERS - 1).store(MANY, Ordering::Relaxed);
        }
    }

    /// This process closes the connection. True for the last one that has it, once.
    pub(crate) fn let_go(&self) -> bool {
        self.replace_holder(this_process(), 0);
        if self.remove_dead() > 0 {
            return false;
        }
        // SOCK-A5: all that the other holders did.
        self.0.half(IS_CLOSED).swap(1, Ordering::AcqRel) == 0
    }

    /// This process uses the seat no longer. It is free when no process does.
    pub(crate) fn leave(&self) {
        if self.count_out() {
            self.give_back();
        }
    }

    /// Counts one process less that uses the seat. Whether it was the last.
    fn count_out(&self) -> bool {
        // SOCK-R5, SOCK-A5: all use of the seat precedes its next use.
        self.0.half(USERS).fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Gives the seat back, without holders: until it has new ones, nobody reclaims it.
    fn give_back(&self) {
        (HOLDERS..HOLDER_END).step_by(8).for_each(|place| self.0.set(place, 0));
        Bits::new(self.0.mapping(), USED, SEATS).give_back(self.1);
    }

    /// Keeps the place of the connection, for those that free it where all that had it have died.
    pub(crate) fn set_place(&self, (pair, slot): Place) {
        self.0.set(PAIR, pair);
        self.0.set_half(SLOT, slot);
    }

    /// The number of the seat in the family.
    pub(crate) fn number(&self) -> u32 {
        self.1
    }

    /// Whether this end may write to all of its ring; under the lock of the writers.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.0.get_half(IS_LARGE) != 0
    }

    pub(crate) fn set_large(&self, is_large: bool) {
        self.0.set_half(IS_LARGE, is_large.into());
    }

    /// Tells those that look which socket has the seat: by its number.
    pub(crate) fn set_socket(&self, number: u64) {
        self.0.set(SOCKET, SeenSocket::Number(number).word());
    }

    /// As [`Self::set_socket`], by a descriptor of this process, as long as it has no other.
    pub(crate) fn set_descriptor(&self, fd: u32) {
        let owner = Owner { process: this_process(), fd };
        self.0.set(SOCKET, SeenSocket::Descriptor(owner).word());
    }

    pub(crate) fn reason(&self) -> Reason {
        Reason::of_word(self.0.get_half(REASON))
    }

    pub(crate) fn set_reason(&self, reason: Reason) {
        self.0.set_half(REASON, reason.to_word());
    }

    /// Bytes that were read by the kernel; under the lock of the readers.
    pub(crate) fn kernel_read(&self) -> u64 {
        self.0.get(KERNEL_READ)
    }

    pub(crate) fn count_kernel_read(&self, len: u64) {
        self.0.set(KERNEL_READ, self.kernel_read() + len);
    }

    /// Bytes that were written by the kernel, or taken back for it; under the lock of the writers.
    pub(crate) fn kernel_written(&self) -> u64 {
        self.0.get(KERNEL_WRITTEN)
    }

    pub(crate) fn count_kernel_written(&self, len: u64) {
        self.0.set(KERNEL_WRITTEN, self.kernel_written() + len);
    }

    /// The lock of the writers.
    #[inline]
    pub(crate) fn write_lock(&self) -> &AtomicU32 {
        self.0.half(WRITE_LOCK)
    }

    /// The lock of the readers.
    #[inline]
    pub(crate) fn read_lock(&self) -> &AtomicU32 {
        self.0.half(READ_LOCK)
    }

    /// Whether this end has decided to write nothing to the ring any more.
    #[inline]
    pub(crate) fn refuses(&self) -> bool {
        self.0.get_half(REFUSES) != 0
    }

    pub(crate) fn refuse(&self) {
        self.0.set_half(REFUSES, 1);
    }

    /// Whether all goes to the kernel: the writer has ended, or the peer has died.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        self.0.get_half(IS_ENDED) != 0
    }

    pub(crate) fn end(&self) {
        self.0.set_half(IS_ENDED, 1);
    }

    /// Whether this end has left what the ring has to the writer.
    #[inline]
    pub(crate) fn has_left_reading(&self) -> bool {
        self.0.get_half(READING_LEFT) == LEFT
    }

    /// Whether no later bytes may come by the ring: this end has left it, also where it has come
    /// back since.
    pub(crate) fn has_ever_left_reading(&self) -> bool {
        self.0.get_half(READING_LEFT) != 0
    }

    pub(crate) fn leave_reading(&self) {
        self.0.set_half(READING_LEFT, LEFT);
    }

    /// This end reads what the ring has, after all.
    pub(crate) fn come_back_to_reading(&self) {
        self.0.set_half(READING_LEFT, CAME_BACK);
    }

    /// Whether this end has told the kernel that it reads nothing any more.
    pub(crate) fn has_shut_reading(&self) -> bool {
        self.0.get_half(HAS_SHUT_READING) != 0
    }

    pub(crate) fn shut_reading(&self) {
        self.0.set_half(HAS_SHUT_READING, 1);
    }

    /// The writer's end; under the lock of the writers.
    #[inline]
    pub(crate) fn outgoing(&self) -> Outgoing {
        let word = |at| self.0.get(OWN_WRITTEN + at);
        let marks = std::array::from_fn(|i| word(MARK + 8 * i));
        let written = Written {
            tail: word(TAIL),
            segment: word(SEGMENT) as u32,
            origin: word(ORIGIN),
            marks,
        };
        Outgoing { written, is_left: self.0.get_half(IS_LEFT) != 0 }
    }

    /// Keeps the writer's end, apart from its tail, where it has changed.
    #[inline]
    pub(crate) fn set_outgoing(&self, out: &Outgoing, before: &Outgoing) {
        let set = |at, value| self.0.set(OWN_WRITTEN + at, value);
        if out.is_left != before.is_left {
            self.0.set_half(IS_LEFT, 1);
        }
        if out.written.origin != before.written.origin {
            set(ORIGIN, out.written.origin);
        }
        if out.written.segment != before.written.segment {
            let i = before.written.segment as usize % MARKS;
            set(MARK + 8 * i, out.written.marks[i]);
            set(SEGMENT, u64::from(out.written.segment));
        }
    }

    #[inline]
    pub(crate) fn set_tail(&self, tail: u64) {
        self.0.set(OWN_WRITTEN + TAIL, tail);
    }

    /// The reader's end; under the lock of the readers.
    #[inline]
    pub(crate) fn taken(&self) -> Taken {
        let head = self.0.get(OWN_TAKEN);
        Taken { head, segment: self.0.get(OWN_TAKEN + 8) as u32 }
    }

    #[inline]
    pub(crate) fn set_taken(&self, taken: Taken) {
        self.0.set(OWN_TAKEN, taken.head);
        self.0.set(OWN_TAKEN + 8, u64::from(taken.segment));
    }

    /// Bytes of the ring that are owed to the kernel.
    pub(crate) fn owed(&self) -> Span {
        let word = |at| self.0.get(OWED + at);
        Span { place: word(0), len: word(8) }
    }

    pub(crate) fn set_owed(&self, owed: Span) {
        self.0.set(OWED, owed.place);
        self.0.set(OWED + 8, owed.len);
    }
}

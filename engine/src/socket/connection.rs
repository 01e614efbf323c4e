//! One connection: reading and writing, which never block here.
pub(super) mod large;
mod owed;
mod reading;
mod wishes;
mod writing;

use super::ends;
use super::meeting::{Ends, Found};
use super::pair::Pair;
use crate::mem::family;
use crate::mem::seat::Seat;
use crate::mem::socket::{Side, SlotMemory};
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use ayre_proto::socket::{Outgoing, RING, Reason, Span, Taken, Wants};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::{Shutdown, connect_unspec, shutdown};
use std::sync::{Arc, OnceLock};

/// Whether a writer can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The ring has room.
    Yes,
    /// The ring has none.
    No,
    /// The kernel knows.
    AskKernel,
}

/// Bytes of one direction, as one end has counted them, with the processes that it is shared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that went by the ring.
    pub ring: u64,
    /// Those that went by the kernel.
    pub kernel: u64,
}

/// The part of a connection that both ends share.
#[derive(Clone, Debug)]
struct Shared {
    pair: Arc<Pair>,
    number: u32,
    slot: SlotMemory,
}

/// A connection. Its socket is the caller's.
#[derive(Debug)]
pub struct Connection {
    seat: Seat,
    shared: OnceLock<Shared>,
    /// Both ends are known to have the connection.
    is_agreed: AtomicBool,
    /// The peer knows how much was read, and written, before that.
    is_told: [AtomicBool; 2],
    /// The peer's words were lies, or bytes are lost: the connection is reset.
    is_broken: AtomicBool,
    /// This process has closed it; threads may be about to use it still.
    is_closed: AtomicBool,
    /// It was the last of this side that had it: the slot is left when no thread uses it.
    was_last: AtomicBool,
    /// An error of the kernel's that is told once the ring is empty.
    late_error: AtomicU32,
    /// How often this end has found other processes of this side that have the connection.
    looks_for_dead: AtomicU32,
}

const READING: usize = 0;
const WRITING: usize = 1;

impl Connection {
    /// A connection of this process whose bytes go by the kernel, none of which was written or
    /// read. None where the process has too many.
    pub fn new() -> Option<Self> {
        Some(Self {
            seat: ends::new_seat()?,
            shared: OnceLock::new(),
            is_agreed: AtomicBool::new(false),
            is_told: Default::default(),
            is_broken: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            was_last: AtomicBool::new(false),
            late_error: AtomicU32::new(0),
            looks_for_dead: AtomicU32::new(0),
        })
    }

    /// The maker's: offers the connection. False where there is no room, or this side has gone over
    /// to the kernel meanwhile.
    pub fn offer(&self, pair: &Arc<Pair>, of: &Ends) -> bool {
        if self.shared.get().is_some() || self.has_left() {
            return false;
        }
        let Some((number, slot)) = pair.offer(of.number(), of.words()) else { return false };
        self.seat.set_reason(Reason::Opening);
        self.share(Shared { pair: pair.clone(), number, slot })
    }

    /// The taker's: takes the offer in a slot. False where it was withdrawn, or where this side
    /// has gone over to the kernel meanwhile.
    pub fn take(&self, pair: &Arc<Pair>, (number, found): Found) -> bool {
        let Some(slot) = pair.slot(number) else { return false };
        let is_taken = self.shared.get().is_none() && !self.has_left() && slot.take(found);
        is_taken && self.share(Shared { pair: pair.clone(), number, slot })
    }

    /// Keeps the part that both ends share, once. A thread may end the writing meanwhile, or leave
    /// it to the kernel: it tells that, or this does.
    fn share(&self, shared: Shared) -> bool {
        self.seat.set_place((shared.pair.number(), shared.number));
        let is_new = self.shared.set(shared).is_ok();
        let _held = family::lock(self.seat.write_lock());
        if let Some(shared) = self.shared.get()
            && (self.seat.is_ended() || (shared.pair.is_far() && self.has_left()))
        {
            shared.end_link();
        }
        is_new
    }

    /// Whether this side has gone over to the kernel for good, or has closed the connection.
    fn has_left(&self) -> bool {
        let is_closed = self.is_closed.load(Ordering::Relaxed);
        is_closed || self.seat.has_ever_left_reading() || self.seat.refuses()
    }

    /// Why this side cannot be offered: it has gone over to the kernel, or others have it, too.
    pub fn is_refused(&self) -> Option<Reason> {
        if self.is_shared() {
            return Some(Reason::Forked);
        }
        self.has_left().then(|| self.seat.reason())
    }

    /// The pair and the number in it, as soon as both ends are known to have the connection.
    pub fn place(&self) -> Option<(&Arc<Pair>, u32)> {
        self.shared().map(|shared| (&shared.pair, shared.number))
    }

    /// Whether the other end is on another host, as far as both have met.
    pub fn is_far(&self) -> bool {
        self.shared.get().is_some_and(|shared| shared.pair.is_far())
    }

    /// Whether an offer was made or taken.
    pub fn has_offer(&self) -> bool {
        self.shared.get().is_some()
    }

    /// Whether other processes of this side have the connection, too. Now and then this looks
    /// whether they live.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.seat.is_shared() && self.is_held_by_others()
    }

    /// Whether both ends are known to have had the connection, also behind its end.
    pub fn has_met(&self) -> bool {
        self.shared().is_some() || self.is_agreed.load(Ordering::Relaxed)
    }

    /// Whether no other process of this side has the connection, or had it after this one.
    pub fn is_last_holder(&self) -> bool {
        match self.is_closed.load(Ordering::Relaxed) {
            true => self.was_last.load(Ordering::Relaxed),
            false => !self.is_shared(),
        }
    }

    #[cold]
    fn is_held_by_others(&self) -> bool {
        let looks = self.looks_for_dead.fetch_add(1, Ordering::Relaxed);
        let is_due = looks.is_power_of_two() || looks.is_multiple_of(64);
        if !self.is_closed.load(Ordering::Relaxed) {
            self.seat.come_back();
        }
        !is_due || self.seat.remove_dead() > 1
    }

    /// Whether the peer has said that it writes nothing any more.
    pub fn is_ended_by_peer(&self) -> bool {
        self.shared().is_some_and(|shared| shared.slot.is_ended())
    }

    /// Bytes that were read.
    pub fn counts_in(&self) -> Counts {
        let kernel = self.seat.kernel_read();
        Counts { ring: self.seat.taken().head.saturating_sub(kernel), kernel }
    }

    /// Bytes that were written.
    pub fn counts_out(&self) -> Counts {
        let kernel = self.seat.kernel_written();
        Counts { ring: self.seat.outgoing().written.tail.saturating_sub(kernel), kernel }
    }

    /// Tells those that look at this process which descriptor the connection has.
    pub fn show(&self, socket: BorrowedFd<'_>) {
        self.seat.set_descriptor(socket.as_raw_fd() as u32);
    }

    /// As [`Self::show`], where the connection is about to have others. The kernel is asked for the
    /// socket's own number.
    pub fn show_number(&self, socket: BorrowedFd<'_>) {
        self.seat.set_socket(number_of(socket));
    }

    /// Keeps why bytes go by the kernel, for those that look.
    pub fn keep_reason(&self, reason: Reason) {
        self.seat.set_reason(reason);
    }

    /// The shared part, as soon as both ends are known to have it.
    #[inline]
    fn shared(&self) -> Option<&Shared> {
        let shared = self.shared.get().filter(|_| !self.is_closed.load(Ordering::Relaxed))?;
        (self.is_agreed.load(Ordering::Relaxed) || self.agree(shared)).then_some(shared)
    }

    fn agree(&self, shared: &Shared) -> bool {
        let is_agreed = shared.slot.is_agreed();
        if is_agreed && self.seat.reason() == Reason::Opening {
            self.seat.set_reason(Reason::None);
        }
        self.is_agreed.store(is_agreed, Ordering::Relaxed);
        is_agreed
    }

    /// The shared part for a reader, under the lock of the readers.
    #[inline]
    fn for_reading(&self) -> Option<&Shared> {
        let shared = self.shared()?;
        if !self.is_told[READING].load(Ordering::Relaxed) {
            shared.slot.tell_taken(self.seat.taken());
            self.is_told[READING].store(true, Ordering::Relaxed);
        }
        Some(shared)
    }

    /// The shared part for a writer, under the lock of the writers.
    #[inline]
    fn for_writing(&self) -> Option<&Shared> {
        let shared = self.shared()?;
        if !self.is_told[WRITING].load(Ordering::Relaxed) {
            shared.slot.publish(self.seat.outgoing().written.tail);
            self.is_told[WRITING].store(true, Ordering::Relaxed);
        }
        Some(shared)
    }

    /// How far the peer has come with what this side writes. Other programs that have the socket
    /// write without counting, once this side has left it to the kernel.
    #[inline]
    fn taken_by_peer(&self, shared: &Shared, end: &Outgoing) -> Taken {
        let mut taken = shared.slot.taken();
        if self.seat.refuses() {
            taken.head = taken.head.min(end.written.tail);
        }
        taken
    }

    /// The peer has lied: nothing goes by the pair any more.
    fn break_off(&self, socket: BorrowedFd<'_>) -> Errno {
        if let Some(shared) = self.shared.get() {
            shared.pair.end();
        }
        self.reset(socket)
    }

    /// Ends the connection with a reset, as bytes of it are lost.
    pub fn reset(&self, socket: BorrowedFd<'_>) -> Errno {
        self.is_broken.store(true, Ordering::Relaxed);
        let _ = connect_unspec(socket);
        let _ = shutdown(socket, Shutdown::Both);
        Errno::CONNRESET
    }

    fn check(&self, when_broken: Errno) -> Result<(), Errno> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(when_broken);
        }
        if self.is_closed.load(Ordering::Relaxed) { Err(Errno::BADF) } else { Ok(()) }
    }

    /// This side reads nothing any more.
    pub fn shut_reading(&self) {
        self.seat.shut_reading();
    }

    /// This side writes nothing any more: tells the peer that the end is in order.
    pub fn end_writing(&self, socket: BorrowedFd<'_>) {
        let _ = self.settle(socket);
        let _held = family::lock(self.seat.write_lock());
        self.seat.end();
        self.tell_end();
        self.take_back_late(socket);
    }

    /// Behind the word of this side's end: its reader may have gone meanwhile, and sees that.
    fn take_back_late(&self, socket: BorrowedFd<'_>) {
        let Some(shared) = self.shared.get() else { return };
        let mut end = self.seat.outgoing();
        if shared.slot.wants().get().is_gone() && !end.is_left {
            let _ = self.take_back(shared, socket, &mut end);
        }
    }

    /// Tells the end of the writing, also where the other end does not have the connection yet;
    /// under the lock of the writers.
    fn tell_end(&self) {
        let is_open = !self.is_closed.load(Ordering::Relaxed);
        if let Some(shared) = self.shared.get().filter(|_| is_open) {
            shared.end_link();
        }
    }

    /// This process is about to fork: the child has the connection, too.
    pub fn before_fork(&self) {
        self.seat.before_fork();
    }

    /// The number of the forked child is known: in the child, and in the `parent`.
    pub fn after_fork(&self, parent: u32, child: u32) {
        self.seat.after_fork(parent, child);
    }

    /// This process could not fork.
    pub fn not_forked(&self) {
        self.seat.not_forked();
    }

    /// Another program is about to take the place of this one, and closes the connection; unless
    /// others have it, too, the kernel tells the peer.
    pub fn before_exec(&self) {
        self.seat.step_aside();
    }

    /// This process closes the connection. Returns whether bytes that nobody has read are in the
    /// ring, where no other process has it.
    pub fn close(&self, socket: BorrowedFd<'_>) -> bool {
        // Where another program has the socket, too, the writer passes such bytes on.
        let is_alone = !self.seat.has_ever_left_reading();
        let is_unread = is_alone && self.shared().is_some() && self.is_readable();
        let _ = self.settle(socket);
        large::forget(&self.seat);
        if self.is_closed.swap(true, Ordering::Relaxed) || !self.seat.let_go() {
            return false;
        }
        if let Some(shared) = self.shared.get() {
            shared.slot.own_room_wants().set(Wants::Gone);
            shared.slot.own_wants().set(Wants::Gone);
            if !self.seat.is_ended() {
                self.take_back_late(socket);
            }
            if shared.pair.side() == Side::Maker {
                shared.slot.withdraw();
            }
            shared.pair.ring_far(shared.number);
        }
        self.was_last.store(true, Ordering::Relaxed);
        is_unread
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        large::forget(&self.seat);
        if let Some(shared) = self.shared.get().filter(|_| *self.was_last.get_mut()) {
            shared.pair.leave(shared.number, &shared.slot);
        }
        self.seat.leave();
    }
}

impl Shared {
    /// Tells the other host that all bytes of this side come by the kernel from now on, whose word
    /// of an end holds.
    // spec: SOCK-67
    fn end_link(&self) {
        self.slot.own_room_wants().set(Wants::Gone);
        self.pair.ring_far(self.number);
    }

    #[cold]
    fn wake_writer(&self) {
        let wants = self.slot.room_wants().look();
        if let Some(bell) = wants.bell()
            && self.slot.room_wants().take(wants)
        {
            self.pair.ring(bell, self.number);
        }
    }

    /// False where the peer has never passed that bell on.
    #[cold]
    fn wake_reader(&self, wants: Wants) -> bool {
        let Some(bell) = wants.bell() else { return true };
        !self.slot.wants().take(wants) || self.pair.ring(bell, self.number)
    }
}

/// The events of a socket that the kernel tells now: of these, and errors and hang-ups.
fn told(socket: BorrowedFd<'_>, events: PollFlags) -> PollFlags {
    let mut looked = [PollFd::from_borrowed_fd(socket, events)];
    let _ = poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    looked[0].revents()
}

/// Whether a connection has ended in both directions.
fn is_hung_up(socket: BorrowedFd<'_>) -> bool {
    told(socket, PollFlags::empty()).contains(PollFlags::HUP)
}

/// The number of a socket, which no other one of the host has.
fn number_of(socket: BorrowedFd<'_>) -> u64 {
    fstat(socket).map_or(0, |stat| stat.st_ino)
}

/// The rest of a span behind its first bytes.
const fn advanced(span: Span, by: usize) -> Span {
    Span { place: (span.place + by as u64) % RING, len: span.len - by as u64 }
}

//! Reading: by the way of each segment, and the end behind all bytes.
use super::{Connection, Shared, advanced};
use crate::mem::family::{self, Held};
use crate::sync::Ordering;
use ayre_proto::lane::Malformed;
use ayre_proto::socket::{From, Incoming, RING, SMALL, Span, Written};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recv, recvmsg};

/// A writer that waits for room is woken when at most this much of the ring is used.
const WAKES_AT: u64 = RING / 2;

impl Connection {
    /// Where the next bytes are for this side's reader.
    #[inline]
    fn next(&self) -> Result<From, Malformed> {
        let mut end = Incoming { taken: self.seat.taken() };
        match self.shared() {
            Some(shared) if !self.seat.has_left_reading() => end.way(&shared.slot.written()),
            _ => Ok(From::Kernel(u64::MAX)),
        }
    }

    /// Whether the ring has bytes for this side.
    #[inline]
    pub fn is_readable(&self) -> bool {
        match self.next() {
            Ok(From::Ring(span)) => span.len > 0,
            Ok(From::Kernel(_)) => false,
            // The next read tells.
            Err(Malformed) => true,
        }
    }

    /// How many bytes the peer has written, as far as it tells.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.shared().map_or(0, |shared| shared.slot.written().tail)
    }

    /// From when on the ring has had bytes, by the count of [`crate::socket::cycles`]. The peer
    /// claims that.
    #[inline]
    pub fn since(&self) -> u64 {
        self.shared().map_or(0, |shared| shared.slot.since())
    }

    /// How many bytes there are to read in the ring, and whether more may be with the kernel.
    pub fn unread(&self) -> (u64, bool) {
        match self.next() {
            Ok(From::Ring(span)) => (span.len, false),
            _ => (0, true),
        }
    }

    /// Reads what is there. `PEEK` leaves it there; other flags are the kernel's.
    ///
    /// # Errors
    /// `EAGAIN` where nothing is there, and the errors of recv(2).
    pub fn read(
        &self,
        socket: BorrowedFd<'_>,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> Result<usize, Errno> {
        self.read_with(socket, into, flags, |into| {
            let mut none = RecvAncillaryBuffer::default();
            recvmsg(socket, into, &mut none, flags | RecvFlags::DONTWAIT).map(|got| got.bytes)
        })
    }

    /// As [`Self::read`], where `receive` reads what the kernel has. It never blocks.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_with(
        &self,
        socket: BorrowedFd<'_>,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
        receive: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        self.check(Errno::CONNRESET)?;
        let held = family::lock(self.seat.read_lock()).ok_or(Errno::AGAIN)?;
        let mut end = Incoming { taken: self.seat.taken() };
        let shared = match self.for_reading() {
            Some(shared) if !self.seat.has_left_reading() => shared,
            _ => return self.read_kernel(&mut end, None, (into, u64::MAX), (flags, receive)),
        };
        let mut ended: Option<Result<usize, Errno>> = None;
        loop {
            let written = shared.slot.written();
            let way = end.way(&written);
            self.tell_segment(shared, &end);
            match way {
                Err(Malformed) => return Err(self.break_off(socket)),
                Ok(From::Kernel(most)) => {
                    let how = (flags, receive);
                    return self.read_kernel(&mut end, Some(shared), (into, most), how);
                }
                Ok(From::Ring(span)) if span.len > 0 => {
                    if let Some(Err(errno)) = ended {
                        self.keep_error(errno);
                    }
                    let end = (end, &written);
                    return Ok(self.read_ring((held, shared), end, span, into, flags));
                }
                Ok(From::Ring(_)) => match ended {
                    Some(Ok(1..)) => return Err(self.break_off(socket)),
                    Some(ended) => return self.on_end(ended),
                    // The ring may have got bytes, or the segment its end, before the kernel's.
                    None => ended = self.look_behind(socket),
                },
            }
            if ended.is_none() {
                return Err(Errno::AGAIN);
            }
        }
    }

    /// The kernel's news behind an empty ring; None: nothing yet.
    fn look_behind(&self, socket: BorrowedFd<'_>) -> Option<Result<usize, Errno>> {
        match self.take_late_error() {
            None => Some(peek(socket)).filter(|end| *end != Err(Errno::AGAIN)),
            late => late.map(Err),
        }
    }

    /// Keeps an error of the kernel's that the program has not seen: the kernel tells it once.
    pub(super) fn keep_error(&self, errno: Errno) {
        self.late_error.store(errno.raw_os_error() as u32, Ordering::Relaxed);
    }

    fn take_late_error(&self) -> Option<Errno> {
        match self.late_error.swap(0, Ordering::Relaxed) {
            0 => None,
            errno => Some(Errno::from_raw_os_error(errno as i32)),
        }
    }

    /// Tells the writer that the reader has come to another segment.
    #[inline]
    fn tell_segment(&self, shared: &Shared, end: &Incoming) {
        if end.taken.segment != self.seat.taken().segment {
            self.seat.set_taken(end.taken);
            shared.slot.tell_taken(end.taken);
            shared.wake_writer();
        }
    }

    /// The kernel says that no bytes follow: in order, or as the peer has died.
    fn on_end(&self, result: Result<usize, Errno>) -> Result<usize, Errno> {
        let is_own = self.seat.has_shut_reading();
        if !is_own && self.shared().is_some_and(|shared| !shared.slot.is_ended()) {
            self.seat.end();
        }
        match (result, self.take_late_error()) {
            (Ok(0), Some(late)) => Err(late),
            (result, _) => result,
        }
    }

    fn read_kernel(
        &self,
        end: &mut Incoming,
        shared: Option<&Shared>,
        (into, most): (&mut [IoSliceMut<'_>], u64),
        (flags, receive): (RecvFlags, impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, Errno>),
    ) -> Result<usize, Errno> {
        let asked: usize = into.iter().map(|piece| piece.len()).sum();
        let result = with_limit(into, most, receive);
        match result {
            Ok(0) if asked > 0 => return self.on_end(Ok(0)),
            Ok(len) if !flags.contains(RecvFlags::PEEK) => {
                end.took(len as u64);
                self.seat.set_taken(end.taken);
                if let Some(shared) = shared {
                    shared.slot.tell_taken(end.taken);
                    // The writer may wait for room in the ring behind these bytes.
                    if shared.slot.written().tail.saturating_sub(end.taken.head) <= WAKES_AT {
                        shared.wake_writer();
                    }
                }
                self.seat.count_kernel_read(len as u64);
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::FAULT) => {}
            Err(errno) => return self.on_end(Err(errno)),
        }
        result
    }

    #[inline]
    fn read_ring(
        &self,
        (held, shared): (Held<'_>, &Shared),
        (end, written): (Incoming, &Written),
        span: Span,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> usize {
        // A writer without room has come to the end of a small ring, or further.
        if span.place + span.len < SMALL {
            return self.take_out(shared, end, span, into, flags);
        }
        self.take_out_and_wake((held, shared), (end, written), span, into, flags)
    }

    #[inline(always)]
    fn take_out(
        &self,
        shared: &Shared,
        mut end: Incoming,
        mut span: Span,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> usize {
        let mut copied = 0;
        for piece in into {
            let len = piece.len().min(span.len as usize);
            shared.slot.copy_out(span.place, &mut piece[..len]);
            span = advanced(span, len);
            copied += len;
        }
        if flags.contains(RecvFlags::PEEK) {
            return copied;
        }
        end.took(copied as u64);
        self.seat.set_taken(end.taken);
        shared.slot.tell_taken(end.taken);
        copied
    }

    #[cold]
    fn take_out_and_wake(
        &self,
        (held, shared): (Held<'_>, &Shared),
        (end, written): (Incoming, &Written),
        span: Span,
        into: &mut [IoSliceMut<'_>],
        flags: RecvFlags,
    ) -> usize {
        let copied = self.take_out(shared, end, span, into, flags);
        let used = written.tail.saturating_sub(end.taken.head);
        let rest = written.tail.saturating_sub(self.seat.taken().head);
        drop(held);
        // A writer that may write to all of the ring sleeps only while more than three quarters are
        // used, so a reader that saw less than one quarter sees more in its next calls. Others wait
        // until the ring is empty.
        if rest == 0 || (used >= RING / 4 && rest <= WAKES_AT) {
            shared.wake_writer();
        }
        copied
    }
}

/// Whether the kernel has bytes, without taking one.
fn peek(socket: BorrowedFd<'_>) -> Result<usize, Errno> {
    recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).map(|(_, len)| len)
}

/// Calls `receive` with the pieces of memory that hold the first `most` bytes.
fn with_limit<T>(
    into: &mut [IoSliceMut<'_>],
    most: u64,
    receive: impl FnOnce(&mut [IoSliceMut<'_>]) -> T,
) -> T {
    let total: usize = into.iter().map(|piece| piece.len()).sum();
    if total as u64 <= most {
        return receive(into);
    }
    let mut left = most as usize;
    let mut cut = Vec::with_capacity(into.len());
    for piece in into {
        let len = piece.len().min(left);
        cut.push(IoSliceMut::new(&mut piece[..len]));
        left -= len;
    }
    receive(&mut cut)
}

//! Writing: by the way that the reader wants, from memory or from a file.
use super::{Connection, Ready, Shared, advanced, is_hung_up, large, told};
use crate::mem::family::{self, Held};
use ayre_proto::lane::Malformed;
use ayre_proto::socket::far::{Progress, way_out};
use ayre_proto::socket::{MARKS, Outgoing, RING, SMALL, Span, Taken, To, Wants};
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice, pread};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

/// A ring is writable while at least this much of it is free.
const WRITABLE: u64 = RING / 4;

/// Bytes that are written at a time by the kernel rather than by a plain link.
const BULK: usize = RING as usize / 4;

/// Bytes of a file that are written at a time, so that the reader begins early.
const OF_FILE: usize = 1 << 16;

impl Connection {
    /// Writes what there is room for.
    ///
    /// # Errors
    /// `EAGAIN` where there is no room, and the errors of send(2).
    pub fn write(
        &self,
        socket: BorrowedFd<'_>,
        from: &[IoSlice<'_>],
        flags: SendFlags,
    ) -> Result<usize, Errno> {
        self.write_with(socket, from, || {
            let mut none = SendAncillaryBuffer::default();
            sendmsg(socket, from, &mut none, flags | SendFlags::DONTWAIT)
        })
    }

    /// As [`Self::write`], where `send` writes to the kernel. It never blocks.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_with(
        &self,
        socket: BorrowedFd<'_>,
        from: &[IoSlice<'_>],
        send: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let len = || from.iter().map(|piece| piece.len()).sum();
        self.write_by((socket, len), |shared, span| self.put(shared, span, from), send)
    }

    /// Writes bytes of a file, from this position on, as [`Self::write`]: at most this number, and
    /// none where the file ends. A ring gets them without another copy.
    ///
    /// # Errors
    /// As [`Self::write`], and those of pread(2).
    pub fn write_file(
        &self,
        socket: BorrowedFd<'_>,
        (file, at): (BorrowedFd<'_>, u64),
        most: usize,
    ) -> Result<usize, Errno> {
        let most = most.min(OF_FILE);
        let put = |shared: &Shared, span| match self.admitted(shared, span, most) {
            Span { len: 0, .. } => Err(Errno::AGAIN),
            Span { place, len } => {
                shared.slot.read_in(Span { place, len: len.min(most as u64) }, (file, at))
            }
        };
        self.write_by((socket, || most), put, || {
            let mut buffer = Box::new_uninit_slice(most);
            let (piece, _) = pread(file, &mut buffer[..], at)?;
            if piece.is_empty() { Ok(0) } else { send(socket, piece, SendFlags::DONTWAIT) }
        })
    }

    /// Writes by `put` to the free part of the ring, or by `send` to the kernel, of `len` bytes.
    /// `put` returns `EAGAIN` where it finds no room.
    #[inline]
    fn write_by(
        &self,
        (socket, len): (BorrowedFd<'_>, impl FnOnce() -> usize),
        put: impl FnOnce(&Shared, Span) -> Result<usize, Errno>,
        send: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        self.check(Errno::PIPE)?;
        let held = family::lock(self.seat.write_lock()).ok_or(Errno::AGAIN)?;
        let mut end = self.seat.outgoing();
        let Some(shared) = self.for_writing() else {
            return self.write_kernel(&mut end, None, send);
        };
        self.pay(shared, socket)?;
        let wants = shared.slot.wants().get();
        if wants.is_gone() && !end.is_left {
            self.take_back(shared, socket, &mut end)?;
        }
        let is_ended = self.seat.is_ended();
        let by_ring = wants.is_ring() && !self.seat.refuses() && !is_ended;
        let way = match by_ring && shared.pair.has_plain_link() {
            true => self.begin_plain(shared, &mut end, len()),
            false => self.begin(shared, &mut end, by_ring),
        };
        match way {
            Err(Malformed) => Err(self.break_off(socket)),
            Ok(To::Wait) if !is_ended => Err(Errno::AGAIN),
            Ok(To::Kernel | To::Wait) => self.write_kernel(&mut end, Some(shared), send),
            Ok(To::Ring(Span { len: 0, .. })) => self.look_for_death(shared, socket),
            Ok(To::Ring(span)) => match put(shared, span) {
                Ok(len) => self.wrote((held, shared), (end, socket), span, len),
                Err(Errno::AGAIN) => self.look_for_death(shared, socket),
                Err(errno) => Err(errno),
            },
        }
    }

    /// As [`Self::begin`] for the ring of a plain link. Bulk goes to the kernel, unless its mark
    /// has to wait.
    // spec: SOCK-72
    #[cold]
    fn begin_plain(
        &self,
        shared: &Shared,
        end: &mut Outgoing,
        len: usize,
    ) -> Result<To, Malformed> {
        let is_bulk = self.is_bulk(shared, end);
        if len < BULK && !is_bulk {
            let way = self.begin_far(shared, end, true)?;
            if !matches!(way, To::Ring(Span { len: 0, .. })) {
                return Ok(way);
            }
        }
        match self.begin_far(shared, end, false)? {
            To::Wait if !is_bulk => self.begin_far(shared, end, true),
            way => Ok(way),
        }
    }

    /// Whether a writer that has filled its ring goes on by the kernel: until it is told that all
    /// was taken. The first ring is begun as soon as there is room for half of it.
    // spec: SOCK-72
    fn is_bulk(&self, shared: &Shared, end: &Outgoing) -> bool {
        let untaken = end.written.tail.saturating_sub(shared.slot.taken().head);
        let most = if end.written.segment == 0 { RING / 2 } else { 0 };
        !end.is_in_ring() && untaken > most
    }

    /// The way of the next bytes; tells the reader where it changes. A ring is begun only where it
    /// has room: a writer to which the kernel has told of room finds some. It is begun only if the
    /// reader, which sees that, has not gone back to the kernel at the same moment.
    // spec: SOCK-17
    #[inline]
    pub(super) fn begin(
        &self,
        shared: &Shared,
        end: &mut Outgoing,
        by_ring: bool,
    ) -> Result<To, Malformed> {
        if shared.pair.is_far() {
            return self.begin_far(shared, end, by_ring);
        }
        let before = *end;
        let taken = self.taken_by_peer(shared, end);
        let way = end.way(taken, by_ring && may_use_ring(end, &taken));
        self.tell_way(shared, end, &before);
        let begins_ring = by_ring && end.written.segment != before.written.segment;
        if begins_ring && !shared.slot.wants().look().is_ring() {
            return self.begin(shared, end, false);
        }
        way
    }

    #[inline]
    fn tell_way(&self, shared: &Shared, end: &Outgoing, before: &Outgoing) {
        self.seat.set_outgoing(end, before);
        shared.slot.tell(&end.written, &before.written);
    }

    /// As [`Self::begin`], where the reader is on another host. Its proxy takes in no wish while a
    /// ring is begun.
    // spec: SOCK-63, SOCK-65
    #[inline(never)]
    fn begin_far(
        &self,
        shared: &Shared,
        end: &mut Outgoing,
        by_ring: bool,
    ) -> Result<To, Malformed> {
        let before = *end;
        let mut way = Ok(To::Wait);
        let mut begin = || {
            let is_wanted = by_ring && shared.slot.wants().get().is_ring();
            let taken = self.taken_by_peer(shared, end);
            let by_ring = is_wanted && may_use_ring(end, &taken);
            way = way_out(end, &Progress { taken, known: shared.slot.known() }, by_ring);
            self.tell_way(shared, end, &before);
        };
        match shared.pair.far() {
            Some(far) if by_ring && !before.is_in_ring() => far.hold(&mut begin),
            _ => begin(),
        }
        let leaves = self.seat.refuses() && !end.is_in_ring();
        if leaves {
            shared.end_link();
        } else if end.written.segment != before.written.segment {
            shared.pair.ring_far(shared.number);
        }
        way
    }

    /// Whether the reader on another host may still expect bytes by the ring, though this side
    /// writes to the kernel from now on.
    pub(super) fn is_leaving_link(&self) -> bool {
        let end = self.seat.outgoing();
        self.is_far() && self.seat.refuses() && end.is_in_ring() && !end.is_left
    }

    fn write_kernel(
        &self,
        end: &mut Outgoing,
        shared: Option<&Shared>,
        send: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let sent = send()?;
        end.wrote(sent as u64);
        self.seat.set_tail(end.written.tail);
        if let Some(shared) = shared {
            shared.slot.publish(end.written.tail);
        }
        self.seat.count_kernel_written(sent as u64);
        Ok(sent)
    }

    /// The part of the ring that may be used for this number of bytes.
    #[inline]
    fn admitted(&self, shared: &Shared, mut span: Span, len: usize) -> Span {
        if span.place + len as u64 >= SMALL && !large::admit(&self.seat, shared) {
            span.len = span.len.min(SMALL.saturating_sub(span.place));
        }
        span
    }

    /// Copies pieces to the free part of the ring.
    #[inline]
    fn put(&self, shared: &Shared, mut span: Span, from: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut copied = 0;
        for piece in from {
            span = self.admitted(shared, span, piece.len());
            if span.len == 0 && copied == 0 {
                return Err(Errno::AGAIN);
            }
            let len = piece.len().min(span.len as usize);
            shared.slot.copy_in(span.place, &piece[..len]);
            span = advanced(span, len);
            copied += len;
        }
        Ok(copied)
    }

    /// Tells the reader of bytes that were put into the free part of the ring.
    #[inline]
    fn wrote(
        &self,
        (held, shared): (Held<'_>, &Shared),
        (mut end, socket): (Outgoing, BorrowedFd<'_>),
        free: Span,
        copied: usize,
    ) -> Result<usize, Errno> {
        end.wrote(copied as u64);
        self.seat.set_tail(end.written.tail);
        if free.len == RING {
            shared.slot.stamp();
        }
        shared.slot.publish(end.written.tail);
        drop(held);
        match shared.slot.wants().look() {
            Wants::Looking | Wants::Kernel => {}
            wants @ (Wants::Bell(_) | Wants::KernelBell(_)) => {
                if !shared.wake_reader(wants) {
                    return Err(self.break_off(socket));
                }
            }
            Wants::Gone | Wants::Claimed => {
                let _ = self.settle(socket);
            }
        }
        Ok(copied)
    }

    /// The ring is full. Whether its reader has died, only the kernel knows.
    #[cold]
    fn look_for_death(&self, shared: &Shared, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let found = told(socket, PollFlags::RDHUP);
        let has_ended = found.contains(PollFlags::RDHUP) && !self.seat.has_shut_reading();
        let is_dead = found.intersects(PollFlags::ERR | PollFlags::HUP);
        // TCP may tell an end in order before a link does.
        let is_told = shared.slot.is_ended() || shared.pair.is_far();
        if is_dead || (has_ended && !is_told) {
            // The next write is the kernel's, which knows the error.
            self.seat.end();
        }
        Err(Errno::AGAIN)
    }

    /// Bytes of the ring that were written, and that the peer has not read.
    pub fn unread_by_peer(&self) -> u64 {
        let Some(shared) = self.shared() else { return 0 };
        let end = self.seat.outgoing();
        match end.is_left {
            false => end.untaken_in_ring(self.taken_by_peer(shared, &end)).unwrap_or(0),
            true => self.seat.owed().len,
        }
    }

    /// Whether the peer has closed its end, or died, before it has read all bytes of the ring.
    pub fn is_reset_by_peer(&self, socket: BorrowedFd<'_>) -> bool {
        let Some(shared) = self.shared() else { return false };
        let is_left = shared.slot.wants().get().is_gone() || !shared.slot.is_ended();
        is_left && !self.seat.has_shut_reading() && self.unread_by_peer() > 0 && is_hung_up(socket)
    }

    /// Whether the way of the next bytes has room for more than a few.
    #[inline]
    pub fn writable(&self) -> Ready {
        let Some(shared) = self.shared() else { return Ready::AskKernel };
        let end = self.seat.outgoing();
        let written = end.written;
        let is_wanted = shared.slot.wants().get().is_ring() && !self.seat.refuses();
        let is_plain = shared.pair.has_plain_link();
        let taken = shared.slot.taken();
        let may_be = may_use_ring(&end, &taken) && !(is_plain && self.is_bulk(shared, &end));
        let by_ring = is_wanted && !self.seat.is_ended() && may_be;
        let is_full = written.segment.wrapping_sub(taken.segment) as usize + 1 >= MARKS;
        let is_in_ring = end.is_in_ring() && !end.is_left;
        let is_unknown = shared.pair.is_far() && shared.slot.known() != written.segment;
        let goes_on = is_plain && !is_full && !is_unknown;
        match by_ring {
            true if is_full && !is_in_ring => Ready::AskKernel,
            true => {
                let used = written.tail.saturating_sub(taken.head);
                let place = written.tail.wrapping_sub(written.origin) % RING;
                let is_small = is_in_ring && place >= SMALL && !self.seat.is_large();
                match RING.saturating_sub(used) {
                    WRITABLE.. if used == 0 || !is_small => Ready::Yes,
                    0 if goes_on => Ready::AskKernel,
                    _ => Ready::No,
                }
            }
            false if (is_full || is_unknown) && is_in_ring && !self.seat.is_ended() => Ready::No,
            false => Ready::AskKernel,
        }
    }
}

/// Whether a ring has begun, or has room for more than a few bytes.
const fn may_use_ring(end: &Outgoing, taken: &Taken) -> bool {
    let untaken = end.written.tail.saturating_sub(taken.head);
    end.is_in_ring() || RING.saturating_sub(untaken) >= WRITABLE
}

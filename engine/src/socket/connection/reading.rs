//! Reading: by the way of each segment, and the end behind all bytes.
use super::{Connection, Shared, advanced};
use crate::mem::family::{self, Held};
use crate::sync::Ordering;
use ayre_proto::lane::Malformed;
use ayre_proto::socket::{From, Incoming, RING, SMALL, Span, Wants, Written};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recv, recvmsg};

/// A writer that waits for room is woken when at most this much of the ring is used.
const WAKES_AT: u64 = RING / 2;

impl Connection {
    /// The shared part, unless this side has left what the ring has, and the writer has claimed it.
    #[inline]
    pub(super) fn shared_to_read(&self) -> Option<&Shared> {
        let is_unclaimed =
            |shared: &Shared| !shared.pair.is_far() && shared.slot.own_wants().get() == Wants::Gone;
        self.shared().filter(|shared| !self.seat.has_left_reading() || is_unclaimed(shared))
    }

    /// This side, which has left the ring, reads what that has, as the writer has made no call
    /// since. Later bytes come by the kernel. False where the writer has claimed them.
    // spec: SOCK-21
    #[cold]
    fn come_back(&self, shared: &Shared) -> bool {
        let has_come = !shared.pair.is_far() && shared.slot.own_wants().come_back();
        if has_come {
            self.seat.come_back_to_reading();
        }
        has_come
    }

    /// Where the next bytes are for this side's reader.
    #[inline]
    fn next(&self) -> Result<From, Malformed> {
        let mut end = Incoming { taken: self.seat.taken() };
        match self.shared_to_read() {
            Some(shared) => end.way(&shared.slot.written()),
            None => Ok(From::Kernel(u64::MAX)),
        }
    }

    /// Whether the ring has bytes for this side.
    #[inline]
    pub fn is_readable(&self) -> bool {
        match self.next() {
            Ok(From::Ring(span)) => span.len > 0 || self.has_far_news(),
            Ok(From::Kernel(_)) => self.has_far_news(),
            // The next read tells.
            Err(Malformed) => true,
        }
    }

    /// Looks whether another host has sent bytes for the ring, which is empty, or is lost.
    #[inline]
    fn has_far_news(&self) -> bool {
        match self.shared.get() {
            Some(shared) if shared.pair.is_far() => self.look_far(shared),
            _ => false,
        }
    }

    #[cold]
    fn look_far(&self, shared: &Shared) -> bool {
        shared.pair.look();
        match self.next() {
            Ok(From::Ring(Span { len: 0, .. })) => self.has_lost_link(shared),
            Ok(From::Kernel(_)) => false,
            Ok(From::Ring(_)) | Err(Malformed) => true,
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

    /// How many bytes there are to read in the ring, also behind marks, and whether those with the
    /// kernel are to be read, too. A link may have yet to tell of bytes before those.
    // spec: SOCK-56
    pub fn unread(&self) -> (u64, bool) {
        let is_kernel = self.is_kernel_next() || !self.is_far();
        let Some(shared) = self.shared_to_read() else { return (0, is_kernel) };
        let mut end = Incoming { taken: self.seat.taken() };
        let written = shared.slot.written();
        match end.way(&written) {
            Ok(_) => (end.untaken_in_ring(&written), is_kernel),
            Err(Malformed) => (0, is_kernel),
        }
    }

    /// Whether the next bytes are with the kernel, as far as the writer has told.
    pub fn is_kernel_next(&self) -> bool {
        !matches!(self.next(), Ok(From::Ring(_)))
    }

    /// Whether a mark lies at the reader or before it: bytes behind it come another way.
    #[inline]
    pub fn has_mark(&self) -> bool {
        let segment = self.seat.taken().segment;
        self.shared().is_some_and(|shared| shared.slot.segment_written() != segment)
    }

    /// Whether there are bytes behind a mark to which the reader has come.
    pub fn is_readable_behind_mark(&self, socket: BorrowedFd<'_>) -> bool {
        let Some(shared) = self.shared_to_read() else { return false };
        let taken = self.seat.taken();
        let mut end = Incoming { taken };
        match end.way(&shared.slot.written()) {
            Ok(From::Ring(span)) => span.len > 0,
            Ok(From::Kernel(_)) if end.taken.segment != taken.segment => {
                self.peek(socket).is_ok_and(|len| len > 0)
            }
            Ok(From::Kernel(_)) | Err(Malformed) => false,
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
            Some(shared) if !self.seat.has_left_reading() || self.come_back(shared) => shared,
            _ => {
                let (end, into) = ((&mut end, false), (into, u64::MAX));
                return self.read_kernel(end, None, into, (flags, receive));
            }
        };
        let written = shared.slot.written();
        match end.way(&written) {
            Ok(From::Ring(span)) if span.len > 0 => {
                self.tell_segment(shared, &end);
                Ok(self.read_ring((held, shared), (end, &written), span, into, flags))
            }
            _ => self.read_elsewhere((held, shared), (end, socket), (into, flags), receive),
        }
    }

    /// As [`Self::read_with`], where the ring had nothing at the first look.
    #[inline(never)]
    fn read_elsewhere(
        &self,
        (held, shared): (Held<'_>, &Shared),
        (mut end, socket): (Incoming, BorrowedFd<'_>),
        (into, flags): (&mut [IoSliceMut<'_>], RecvFlags),
        receive: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut ended: Option<Result<usize, Errno>> = None;
        let mut receive = Some(receive);
        loop {
            // Before the words: of all that a link tells, its end is the last.
            let is_behind = self.is_behind_kernel(shared);
            let written = shared.slot.written();
            let way = end.way(&written);
            self.tell_segment(shared, &end);
            match way {
                Err(Malformed) => return Err(self.break_off(socket)),
                Ok(From::Kernel(most)) => {
                    let Some(receive) = receive.take() else {
                        return ended.unwrap_or(Err(Errno::AGAIN));
                    };
                    if let Some(Err(errno)) = ended {
                        self.keep_error(errno);
                    }
                    let is_asked = into.iter().any(|piece| !piece.is_empty());
                    let how = (flags, receive);
                    let got =
                        self.read_kernel((&mut end, is_behind), Some(shared), (into, most), how);
                    // The peer may have begun a ring, and ended, since the look at its words.
                    let has_mark = shared.slot.segment_written() != end.taken.segment;
                    if !(is_asked && has_mark && is_end(got)) {
                        return got;
                    }
                    ended = Some(got);
                }
                Ok(From::Ring(span)) if span.len > 0 => {
                    if let Some(Err(errno)) = ended {
                        self.keep_error(errno);
                    }
                    let end = (end, &written);
                    return Ok(self.read_ring((held, shared), end, span, into, flags));
                }
                Ok(From::Ring(_)) => match ended {
                    Some(Ok(_)) if is_behind => return Err(Errno::AGAIN),
                    Some(Ok(1..)) => return Err(self.break_off(socket)),
                    Some(ended) => return self.on_end(ended),
                    None if self.has_lost_link(shared) => return Err(self.break_off(socket)),
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

    /// Whether the kernel has bytes, without taking one. An error is kept for the program.
    fn peek(&self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let found = peek(socket);
        if let Err(errno) = found
            && errno != Errno::AGAIN
        {
            self.keep_error(errno);
        }
        found
    }

    /// Keeps an error of the kernel's that the program has not seen: the kernel tells it once.
    pub(super) fn keep_error(&self, errno: Errno) {
        self.late_error.store(errno.raw_os_error() as u32, Ordering::Relaxed);
    }

    fn has_late_error(&self) -> bool {
        self.late_error.load(Ordering::Relaxed) != 0
    }

    fn take_late_error(&self) -> Option<Errno> {
        match self.late_error.swap(0, Ordering::Relaxed) {
            0 => None,
            errno => Some(Errno::from_raw_os_error(errno as i32)),
        }
    }

    /// Whether the kernel's news may be ahead of those of the ring: the link has yet to bring the
    /// mark before the kernel's bytes, or the end.
    // spec: SOCK-67
    fn is_behind_kernel(&self, shared: &Shared) -> bool {
        let may_be = shared.pair.is_far() && shared.slot.is_linked();
        may_be && !shared.slot.is_ended() && !self.seat.has_shut_reading()
    }

    /// Whether the kernel has told of an end before the link has.
    // spec: SOCK-67
    pub fn is_end_early(&self, socket: BorrowedFd<'_>) -> bool {
        let is_behind = |shared: &Shared| self.is_behind_kernel(shared) && !shared.pair.is_over();
        self.shared().is_some_and(is_behind) && self.peek(socket) == Ok(0)
    }

    /// Whether a link tells what comes next. The kernel may have bytes behind that, or the end.
    // spec: SOCK-67
    #[inline]
    pub fn is_told_by_link(&self) -> bool {
        match self.shared.get() {
            Some(shared) if shared.pair.is_far() => self.awaits_link(),
            _ => false,
        }
    }

    #[cold]
    fn awaits_link(&self) -> bool {
        let is_in_ring = matches!(self.next(), Ok(From::Ring(_)));
        let is_behind = |shared: &Shared| self.is_behind_kernel(shared) && !shared.pair.is_over();
        is_in_ring && self.shared().is_some_and(is_behind)
    }

    /// Whether the kernel has bytes, or an end, behind what a link has yet to tell.
    // spec: SOCK-67
    pub fn is_kernel_ahead(&self, socket: BorrowedFd<'_>) -> bool {
        let has_more = || self.peek(socket).is_ok();
        self.is_end_early(socket) || (self.is_told_by_link() && has_more())
    }

    /// Whether the link has died before it has told what comes next. All that it has brought was
    /// read.
    // spec: SOCK-70
    fn has_lost_link(&self, shared: &Shared) -> bool {
        // The link's last words precede its end.
        shared.pair.is_over() && self.is_behind_kernel(shared)
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
    fn on_end(&self, told: Result<usize, Errno>) -> Result<usize, Errno> {
        let result = match (told, self.take_late_error()) {
            (Ok(0), Some(late)) => Err(late),
            (told, _) => told,
        };
        let is_own = self.seat.has_shut_reading();
        // TCP may tell an end in order before a link does.
        let may_be_early = |shared: &Shared| shared.pair.is_far() && result.is_ok();
        let is_death = |shared: &Shared| !shared.slot.is_ended() && !may_be_early(shared);
        if !is_own && self.shared().is_some_and(is_death) {
            self.seat.end();
        }
        result
    }

    fn read_kernel(
        &self,
        (end, is_behind): (&mut Incoming, bool),
        shared: Option<&Shared>,
        (into, most): (&mut [IoSliceMut<'_>], u64),
        (flags, receive): (RecvFlags, impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, Errno>),
    ) -> Result<usize, Errno> {
        let asked: usize = into.iter().map(|piece| piece.len()).sum();
        let result = with_limit(into, most, receive);
        match result {
            Ok(0) if asked > 0 => match shared {
                Some(shared) if is_behind && !self.has_late_error() => {
                    return Err(match self.has_lost_link(shared) {
                        true => Errno::CONNRESET,
                        false => Errno::AGAIN,
                    });
                }
                _ => return self.on_end(Ok(0)),
            },
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

/// Whether the kernel has told that no bytes follow.
const fn is_end(got: Result<usize, Errno>) -> bool {
    !matches!(got, Ok(1..) | Err(Errno::AGAIN | Errno::INTR | Errno::FAULT))
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

//! Bytes of the ring whose reader has gone: they go to the kernel, before all others.
use super::{Connection, Shared, advanced};
use crate::mem::family;
use ayre_proto::lane::Malformed;
use ayre_proto::socket::{Outgoing, TakenBack};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

impl Connection {
    /// Passes what the reader has left in the ring on to the kernel, if the reader has gone.
    ///
    /// # Errors
    /// `EAGAIN` where the kernel has no room for it yet.
    pub fn settle(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let Some(shared) = self.shared() else { return Ok(()) };
        if !shared.slot.wants().get().is_gone() {
            return Ok(());
        }
        let Some(_held) = family::lock(self.seat.write_lock()) else { return Ok(()) };
        let mut end = self.seat.outgoing();
        let is_new = !end.is_left && !self.seat.is_ended();
        let taken_back = if is_new { self.take_back(shared, socket, &mut end) } else { Ok(()) };
        let paid = taken_back.and_then(|()| self.pay(shared, socket));
        if let Err(errno) = paid
            && !matches!(errno, Errno::AGAIN | Errno::INTR | Errno::PIPE)
        {
            self.keep_error(errno);
        }
        paid
    }

    /// Takes back what the ring has, unless the reader has come back meanwhile.
    // spec: SOCK-21
    pub(super) fn take_back(
        &self,
        shared: &Shared,
        socket: BorrowedFd<'_>,
        end: &mut Outgoing,
    ) -> Result<(), Errno> {
        // Between hosts a reader that has gone never comes back.
        if !shared.pair.is_far() && !shared.slot.wants().claim() {
            return Ok(());
        }
        let before = *end;
        match end.take_back(self.taken_by_peer(shared, end)) {
            Err(Malformed) => Err(self.break_off(socket)),
            Ok(TakenBack::Broken) => Err(self.reset(socket)),
            Ok(TakenBack::Span(span)) => {
                self.seat.set_outgoing(end, &before);
                self.seat.set_owed(span);
                self.seat.count_kernel_written(span.len);
                if shared.pair.is_far() {
                    shared.end_link();
                }
                self.pay(shared, socket)
            }
        }
    }

    /// Whether the kernel is owed bytes, for which it had no room yet.
    pub fn owes(&self) -> bool {
        self.seat.owed().len > 0
    }

    /// Sends the kernel what it is owed.
    #[inline]
    pub(super) fn pay(&self, shared: &Shared, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut owed = self.seat.owed();
        while owed.len > 0 {
            let mut piece = [0; 4096];
            let len = piece.len().min(owed.len as usize);
            shared.slot.copy_back(owed.place, &mut piece[..len]);
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = send(socket, &piece[..len], flags)?;
            owed = advanced(owed, sent);
            self.seat.set_owed(owed);
        }
        Ok(())
    }
}

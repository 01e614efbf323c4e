//! How a stream leaves its ring and its link, and what a link has yet to bring.
use super::Stream;
use crate::far;
use crate::policy;
use crate::sys::memory;
use crate::table;
use ayre::guest::hidden::Hidden;
use ayre::socket::{Ends, Pair, Party, Reason};
use rustix::event::PollFlags;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// For how long a call waits for the other host at most, where it may not wait for bytes.
pub(crate) const LINK_MOST: Duration = Duration::from_secs(1);

/// For how long it waits where bytes could be lost otherwise: a link that says nothing is dead.
const LEAVE_MOST: Duration = Duration::from_secs(10);

impl Stream {
    /// Whether the kernel tells of bytes or an end behind others, of which a link has yet to tell.
    pub(crate) fn is_ahead_of_link(&self, fd: i32) -> bool {
        let connection = &self.connection;
        connection.is_far()
            && (connection.is_told_by_link() || connection.is_end_early(memory::borrowed(fd)))
    }

    /// Those of the kernel's events that are to be told now. Of bytes and of an end behind others,
    /// the link tells first. A reset is told at once, with all that was asked for. So is a hang-up
    /// of which the link has told since the kernel was asked, without a word of bytes.
    // spec: SOCK-67
    pub(crate) fn in_turn(&self, fd: i32, (wanted, told): (PollFlags, PollFlags)) -> PollFlags {
        let readable = PollFlags::IN | PollFlags::RDNORM | PollFlags::RDHUP;
        let inward = readable | PollFlags::HUP;
        if told.contains(PollFlags::ERR | PollFlags::HUP) {
            return told | (wanted & readable);
        }
        if told.intersects(inward) && self.is_ahead_of_link(fd) {
            return told - inward;
        }
        let is_over = told.contains(PollFlags::HUP) && self.connection.is_far();
        if is_over { told | (wanted & readable) } else { told }
    }

    /// The socket is about to be used where this library does not see it: from now on, it is the
    /// kernel's alone.
    // spec: SOCK-21, SOCK-69
    pub(crate) fn leave(&self, reason: Reason) {
        self.patience.share();
        let had_ended = self.connection.is_ended_by_peer();
        // First: a writer that goes on by the kernel before that can take nothing back.
        self.connection.leave_reading();
        self.be_plain(reason);
        let is_over = || self.connection.place().is_some_and(|(pair, _)| pair.is_over());
        wait_for_link(LEAVE_MOST, || self.connection.is_followed() || is_over());
        let Some(fd) = table::name_of(self) else { return };
        let socket = memory::borrowed(fd);
        let is_lost = self.connection.has_lost_bytes(socket, had_ended);
        if is_lost || !self.connection.is_followed() {
            self.connection.reset(socket);
        }
    }

    /// Another program is about to have the socket, too, which it inherits. Bytes that the writer
    /// could not pass on are left to those that have the stream still: this process, if it goes on,
    /// or others of its family. Most programs inherit sockets that they know nothing of.
    // spec: SOCK-21
    pub(crate) fn be_inherited(&self, goes_on: bool) {
        if self.connection.is_far() {
            self.leave_link(Reason::Executed);
        }
        let others_read = || self.connection.is_only_in_ring() && self.connection.is_shared();
        let is_left_to_others = !goes_on && !wait_for_link(LINK_MOST, || !others_read());
        if is_left_to_others || (goes_on && self.connection.is_only_in_ring()) {
            self.patience.share();
            return self.be_plain(Reason::Executed);
        }
        self.leave(Reason::Executed);
    }

    /// From now on, all bytes come and go by the kernel, but those that the ring has: the link with
    /// the other host is left. Processes that share the ring read those still.
    // spec: SOCK-69
    pub(crate) fn leave_link(&self, reason: Reason) {
        self.be_plain(reason);
        wait_for_link(LINK_MOST, || self.connection.has_left_link());
    }

    /// The kernel signals what comes, so that all bytes come by the kernel from now on.
    pub(crate) fn be_signalled(&self) {
        self.is_signalled.store(true, Ordering::Relaxed);
        self.be_plain(Reason::Option);
        if self.connection.is_far() {
            wait_for_link(LINK_MOST, || self.connection.is_settled());
        }
    }

    /// The kernel may have signalled what lies behind words of a link that have yet to come, and
    /// nothing else will: waits for them. Whether that may be so, and a call has to look again.
    // spec: SOCK-67
    #[inline]
    pub(crate) fn follow_signal(&self, fd: i32) -> bool {
        let may_be = self.is_signalled.load(Ordering::Relaxed) && self.connection.is_far();
        if may_be {
            self.wait_while(|| self.connection.is_kernel_ahead(memory::borrowed(fd)));
        }
        may_be
    }

    /// The kernel tells that its next byte is behind the urgent one: waits for bytes before it, of
    /// which a link has yet to tell.
    // spec: SOCK-67
    pub(crate) fn follow_urgent_byte(&self) {
        self.wait_while(|| self.connection.is_told_by_link());
    }

    /// Waits while the kernel is ahead of a link that brings no bytes.
    fn wait_while(&self, is_ahead: impl Fn() -> bool) {
        wait_for_link(LINK_MOST, || self.connection.is_readable() || !is_ahead());
    }
}

impl Party for Stream {
    /// The other end is a process of another host, and meets this one.
    fn meet(&self, pair: &Arc<Pair>, name: &Ends) {
        let search = self.search.lock();
        self.is_searching.store(false, Ordering::Relaxed);
        let is_shared = self.connection.is_shared() || !policy::is_on();
        let is_offered = !is_shared && self.connection.offer(pair, name);
        drop(search);
        if is_offered {
            // Those that sleep tell their bells.
            self.sets().iter().for_each(|set| set.look_at(self));
        }
    }

    // spec: SOCK-75
    fn has_no_link(&self, why: &dyn Display) {
        self.connection.keep_reason(Reason::NoLink);
        far::say_once(&format!("a connection stays with TCP: {why}"));
    }

    /// This thread is none of the program's.
    fn follow_reader(&self) {
        let Some(fd) = table::name_of(self) else { return };
        let copy = Hidden::copy_of(memory::borrowed(fd));
        // The number may be another file's since.
        if let Ok(copy) = copy
            && table::is(fd, self)
        {
            self.connection.follow_reader(copy.fd());
        }
    }
}

/// Waits for a word of the other host. Whether it has come.
pub(crate) fn wait_for_link(most: Duration, mut has_come: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + most;
    while !has_come() {
        if Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

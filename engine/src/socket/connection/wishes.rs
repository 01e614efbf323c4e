//! Each end's wishes: by which way bytes come, and by which bell it is woken.
use super::{Connection, READING, Shared, is_hung_up};
use crate::mem::family;
use crate::socket::pair::Bell;
use crate::sync::Ordering;
use ayre_proto::socket::{Incoming, Wants};
use rustix::fd::BorrowedFd;

impl Connection {
    /// Has the peer look for this side's reader at the ring, and ring this bell when something
    /// comes; no bell: the reader looks by itself. Bytes there are looked at afterwards. While
    /// other processes of this side have the connection, too, bytes come by the kernel.
    pub fn want_bytes(&self, bell: Option<&Bell>) {
        let Some(shared) = self.shared() else { return };
        if self.is_shared() || self.seat.has_ever_left_reading() {
            return self.want_kernel(None);
        }
        if !self.is_told[READING].load(Ordering::Relaxed) {
            let _held = family::lock(self.seat.read_lock());
            self.for_reading();
        }
        if !self.seat.has_left_reading() {
            let last = shared.slot.own_wants().get();
            shared.slot.own_wants().set(bell.map_or(Wants::Looking, Bell::wants));
            if !last.is_ring() {
                shared.pair.ring_far(shared.number);
            }
        }
        if bell.is_none() {
            shared.pair.begin_looks();
        }
    }

    /// Has the peer ring this bell when the ring has room; no bell: nobody waits for it.
    pub fn want_room(&self, bell: Option<&Bell>) {
        let has_ended = self.seat.is_ended() || (self.is_far() && self.seat.refuses());
        if let Some(shared) = self.shared().filter(|_| !has_ended) {
            shared.slot.own_room_wants().set(bell.map_or(Wants::Looking, Bell::wants));
        }
    }

    /// The bells that the peer rings when something comes, and when there is room.
    pub fn bells(&self) -> [Option<u16>; 2] {
        let Some(shared) = self.shared() else { return [None; 2] };
        [shared.slot.own_wants().get().bell(), shared.slot.own_room_wants().get().bell()]
    }

    /// Bytes come by the kernel from now on; those in the ring are still read from there. The peer
    /// rings this bell for bytes that it is putting into the ring at this moment.
    pub fn want_kernel(&self, bell: Option<&Bell>) {
        let Some(shared) = self.shared() else { return };
        if self.seat.has_left_reading() {
            return;
        }
        let last = shared.slot.own_wants().get();
        let kernel = bell.map_or(Wants::Kernel, |bell| Wants::KernelBell(bell.number()));
        shared.slot.own_wants().set(kernel);
        if last.is_ring() {
            shared.wake_writer();
        }
    }

    /// Whether no byte can come by the ring any more, unless this end wants it again.
    pub fn is_settled(&self) -> bool {
        let Some(shared) = self.shared_to_read() else { return true };
        let written = shared.slot.written();
        let mut end = Incoming { taken: self.seat.taken() };
        let is_settled = end.way(&written).is_ok() && end.is_settled(&written);
        let far = shared.pair.far();
        is_settled && far.is_none_or(|far| far.is_settled(&shared.pair, shared.number))
    }

    /// This side reads by the kernel only: the peer passes on what the ring has. Within a host,
    /// a read of this side comes before that, if this side goes on and the peer makes no call.
    // spec: SOCK-21
    pub fn leave_reading(&self) {
        let held = family::lock(self.seat.read_lock());
        if self.seat.has_left_reading() {
            return;
        }
        let shared = self.for_reading();
        let has_bytes = self.is_readable();
        self.seat.leave_reading();
        let Some(shared) = shared else { return };
        shared.slot.own_wants().set(Wants::Gone);
        drop(held);
        shared.wake_writer();
        // Bytes that come at this moment are the writer's matter: it looks at the word again.
        if has_bytes && let Wants::Bell(bell) = shared.slot.wants().look() {
            shared.pair.ring(bell, shared.number);
        }
    }

    /// Behind [`Self::leave_reading`]: whether the writer will pass on what the ring has before it
    /// writes anything else. One of another host has to tell that, unless nothing is there and
    /// nothing can come.
    // spec: SOCK-69
    pub fn is_followed(&self) -> bool {
        let Some(shared) = self.shared().filter(|shared| shared.pair.is_far()) else {
            return true;
        };
        let end = Incoming { taken: self.seat.taken() };
        let is_empty = end.untaken_in_ring(&shared.slot.written()) == 0;
        let is_quiet = !shared.slot.is_linked() && is_empty;
        self.follow_link(shared) && (is_quiet || shared.slot.is_ended())
    }

    /// Whether the ring has bytes that the writer could not pass on: it has ended, or the kernel
    /// has later ones. Of those, a writer of another host does not tell.
    // spec: SOCK-21
    pub fn is_only_in_ring(&self) -> bool {
        let Some(shared) = self.shared() else { return false };
        let (end, written) = (Incoming { taken: self.seat.taken() }, shared.slot.written());
        let is_ended = shared.slot.is_ended() && end.untaken_in_ring(&written) > 0;
        is_ended || (!shared.pair.is_far() && end.has_gap(&written))
    }

    /// Behind [`Self::leave_reading`]: whether such bytes are lost, if the writer had ended before
    /// that or had not. One of another host resets the connection where it cannot pass them on.
    // spec: SOCK-21
    pub fn has_lost_bytes(&self, socket: BorrowedFd<'_>, had_ended: bool) -> bool {
        self.is_only_in_ring() && (!self.is_far() || had_ended || is_hung_up(socket))
    }

    /// Whether a link has brought all that it ever will, where both directions are to go by the
    /// kernel. From then on the kernel's word of an end holds.
    // spec: SOCK-69
    pub fn has_left_link(&self) -> bool {
        let Some(shared) = self.shared().filter(|shared| shared.pair.is_far()) else {
            return true;
        };
        let far = shared.pair.far();
        let is_settled = || far.is_none_or(|far| far.is_settled(&shared.pair, shared.number));
        let has_come = shared.slot.is_ended() || is_settled();
        if has_come {
            shared.slot.forget_link();
        }
        self.follow_link(shared) && has_come
    }

    /// Looks at what a link brings, and writes by the kernel as soon as it may. Whether it does.
    fn follow_link(&self, shared: &Shared) -> bool {
        shared.pair.look();
        if self.is_leaving_link() {
            self.leave_writing();
        }
        !self.is_leaving_link()
    }

    /// Does as the far reader wants, which has gone or wants bytes by the kernel. The program may
    /// make no call that would do that.
    // spec: SOCK-65, SOCK-73
    pub fn follow_reader(&self, socket: BorrowedFd<'_>) {
        let Some(shared) = self.shared() else { return };
        match shared.slot.wants().get() {
            Wants::Gone | Wants::Claimed => drop(self.settle(socket)),
            wants if wants.is_ring() => {}
            _ => {
                let held = family::lock(self.seat.write_lock());
                if held.is_some() && !self.seat.is_ended() {
                    let _ = self.begin(shared, &mut self.seat.outgoing(), false);
                }
            }
        }
    }

    /// This side writes to the kernel from now on, also where this library does not see it.
    pub fn leave_writing(&self) {
        let _held = family::lock(self.seat.write_lock());
        self.seat.refuse();
        if let Some(shared) = self.for_writing() {
            // Where the reader is too far behind for another mark, the next write waits for it.
            let _ = self.begin(shared, &mut self.seat.outgoing(), false);
        }
    }
}

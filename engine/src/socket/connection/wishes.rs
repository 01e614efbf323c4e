//! Each end's wishes: by which way bytes come, and by which bell it is woken.
use super::{Connection, READING};
use crate::mem::family;
use crate::socket::pair::Bell;
use crate::sync::Ordering;
use ayre_proto::socket::{Incoming, Wants};

impl Connection {
    /// Has the peer look for this side's reader at the ring, and ring this bell when something
    /// comes; no bell: the reader looks by itself. Bytes there are looked at afterwards. While
    /// other processes of this side have the connection, too, bytes come by the kernel.
    pub fn want_bytes(&self, bell: Option<&Bell>) {
        let Some(shared) = self.shared() else { return };
        if self.is_shared() {
            return self.want_kernel(None);
        }
        if !self.is_told[READING].load(Ordering::Relaxed) {
            let _held = family::lock(self.seat.read_lock());
            self.for_reading();
        }
        if !self.seat.has_left_reading() {
            shared.slot.own_wants().set(bell.map_or(Wants::Looking, Bell::wants));
        }
    }

    /// Has the peer ring this bell when the ring has room; no bell: nobody waits for it.
    pub fn want_room(&self, bell: Option<&Bell>) {
        if let Some(shared) = self.shared().filter(|_| !self.seat.is_ended()) {
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
        let Some(shared) = self.shared().filter(|_| !self.seat.has_left_reading()) else {
            return true;
        };
        let written = shared.slot.written();
        let mut end = Incoming { taken: self.seat.taken() };
        end.way(&written).is_ok() && end.is_settled(&written)
    }

    /// This side reads by the kernel only, whatever the ring still has: the peer passes that on.
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

//! Datagrams for which the system has no room (`ENOBUFS`).
//!
//! Most often a queue is full, and has room again soon. The other end of a virtual cable, of a
//! container for example, may take less than the interface says. A datagram that is too long for it
//! is then refused in the same way, however often it is tried. Everything behind it would wait for
//! ever.
use crate::clock;
use std::time::{Duration, Instant};

/// For how long a datagram is kept for which there is no room.
// spec: NET-3
const MOST: Duration = Duration::from_millis(10);

/// Since when there is no room for the next datagram.
#[derive(Debug, Default)]
pub(super) struct NoRoom(Option<Instant>);

impl NoRoom {
    /// There is none. Whether it is no use to wait any longer: then the datagram is dropped.
    #[cold]
    pub(super) fn is_in_vain(&mut self) -> bool {
        self.is_in_vain_at(clock::now())
    }

    fn is_in_vain_at(&mut self, now: Instant) -> bool {
        let since = *self.0.get_or_insert(now);
        let is_over = now.saturating_duration_since(since) >= MOST;
        if is_over {
            self.0 = None;
        }
        is_over
    }

    /// There was room.
    #[inline]
    pub(super) fn over(&mut self) {
        self.0 = None;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: NET-3
    #[test]
    fn a_datagram_is_dropped_after_a_time_without_room() {
        let (mut none, start) = (NoRoom::default(), Instant::now());
        let mut at = |millis| none.is_in_vain_at(start + Duration::from_millis(millis));
        assert_eq!([0, 1, 9, 10].map(&mut at), [false, false, false, true]);
        assert_eq!([11, 20, 21].map(&mut at), [false, false, true], "the next one has its time");
        assert!(!at(30));
        none.over();
        assert!(!none.is_in_vain_at(start + Duration::from_millis(40)));
    }
}

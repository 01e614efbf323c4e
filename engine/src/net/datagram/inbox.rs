//! Datagrams that have come.
use super::{Bytes, DATAGRAM_MAX, LINE_BYTES, zeros};
use std::net::SocketAddr;
use std::ops::Range;

/// Bytes that one receive may bring: longer than any datagram, and than all of a train together.
const ROOM: usize = 1 << 16;
/// Bytes of an inbox: few enough to stay in a processor's cache.
const INBOX_BYTES: usize = 4 * ROOM;
/// The number of datagrams with which an inbox takes no more; a train may still bring it to twice
/// as many.
const INBOX_ENOUGH: usize = 128;
const _: () = assert!(ROOM > DATAGRAM_MAX, "a receive has room for the longest datagram");
const _: () = assert!(ROOM.is_multiple_of(LINE_BYTES), "room begins with a line");

/// Datagrams that have come, in one buffer that is allocated once.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Bytes,
    arrivals: Vec<Arrival>,
}

/// A datagram of an inbox.
#[derive(Debug)]
struct Arrival {
    from: SocketAddr,
    range: Range<usize>,
}

impl Inbox {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let arrivals = Vec::with_capacity(2 * INBOX_ENOUGH);
        Self { bytes: zeros(INBOX_BYTES), arrivals }
    }

    /// Number of datagrams.
    pub(crate) fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether there is no datagram.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// The datagram of a number, to be opened in place, and where it came from.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub(crate) fn get(&mut self, index: usize) -> (SocketAddr, &mut [u8]) {
        let Arrival { from, range } = &self.arrivals[index];
        (*from, &mut self.bytes[range.clone()])
    }

    /// Forgets one datagram.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub(crate) fn remove(&mut self, index: usize) {
        self.arrivals.remove(index);
    }

    /// Whether it takes no more.
    pub(crate) fn is_full(&self) -> bool {
        self.arrivals.len() >= INBOX_ENOUGH || self.bytes.len() - self.used() < ROOM
    }

    /// Forgets all datagrams.
    pub(crate) fn clear(&mut self) {
        self.arrivals.clear();
    }

    /// Where the next datagrams are to be written, one behind the other: room for all that one
    /// receive may bring. `None` if the inbox takes no more.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        if self.is_full() {
            return None;
        }
        let used = self.used();
        Some(&mut self.bytes[used..used + ROOM])
    }

    /// Accepts the first `len` bytes of the room as datagrams of `segment` bytes, of which the last
    /// one may be shorter. Returns how many.
    pub(crate) fn accept(&mut self, from: SocketAddr, len: usize, segment: usize) -> usize {
        let used = self.used();
        let (end, before) = (used + len, self.arrivals.len());
        assert!(end <= self.bytes.len(), "what is accepted lies in the room");
        let mut at = used;
        loop {
            let next = end.min(at + segment);
            self.arrivals.push(Arrival { from, range: at..next });
            if next == end || segment == 0 {
                return self.arrivals.len() - before;
            }
            at = next;
        }
    }

    /// Accepts this part of the room as one datagram.
    pub(crate) fn accept_at(&mut self, from: SocketAddr, part: Range<usize>) {
        let used = self.used();
        let range = used + part.start..used + part.end;
        assert!(range.end <= self.bytes.len(), "what is accepted lies in the room");
        self.arrivals.push(Arrival { from, range });
    }

    /// Where the room begins: with a line.
    fn used(&self) -> usize {
        self.arrivals.last().map_or(0, |arrival| arrival.range.end.next_multiple_of(LINE_BYTES))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        ([10, 0, 0, 2], port).into()
    }

    #[test]
    fn an_inbox_keeps_datagrams_apart_and_is_bounded() {
        let mut inbox = Inbox::new();
        inbox.room().unwrap()[..25].copy_from_slice(&[7; 25]);
        assert_eq!(inbox.accept(to(3), 25, 10), 3);
        assert_eq!(inbox.accept(to(4), 0, 0), 1);
        let lengths: Vec<_> = (0..inbox.len()).map(|index| inbox.get(index).1.len()).collect();
        assert_eq!(lengths, [10, 10, 5, 0]);
        assert_eq!((inbox.get(2).0, inbox.get(3).0), (to(3), to(4)));
        while inbox.room().is_some() {
            inbox.accept(to(1), 0, 0);
        }
        assert_eq!(inbox.len(), INBOX_ENOUGH);
        inbox.clear();
        while inbox.room().is_some() {
            inbox.accept(to(1), ROOM - 1, ROOM - 1);
        }
        assert_eq!(inbox.len(), INBOX_BYTES / ROOM);
    }
}

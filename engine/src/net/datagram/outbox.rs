//! Datagrams on their way out.
use super::{Bytes, LINE_BYTES, Shared};
use crate::net::hints::Hints;
use std::net::SocketAddr;

/// Datagrams that have left, at the front of an outbox, before their place is reclaimed.
const STALE: usize = 64;

/// Datagrams on their way out, in order.
///
/// The bytes are the outbox's own, one datagram behind the other, or shared with their owner, which
/// keeps them to send them again.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Bytes,
    queue: Vec<Departure>,
    /// Where the first datagram stands in the queue.
    first: usize,
    /// The net's reports about addresses.
    pub(crate) hints: Hints,
    /// Where datagrams were to go that the system has refused for their length, and the least
    /// length of those.
    refused: Vec<(SocketAddr, usize)>,
    /// Where datagrams go that may not arrive.
    pub(crate) doubted: Option<SocketAddr>,
}

/// A datagram of an outbox.
#[derive(Debug)]
struct Departure {
    to: SocketAddr,
    len: usize,
    place: Place,
}

/// Where the bytes of a datagram lie.
#[derive(Debug)]
enum Place {
    /// In the outbox, from here on.
    Own(usize),
    /// First in memory that somebody else has a share in.
    Shared(Shared),
    /// It has left.
    Nowhere,
}

impl Departure {
    /// Whether a train that begins with this datagram may go on with that one, which begins with a
    /// line there, too.
    fn pulls(&self, next: &Self) -> bool {
        let is_whole = self.len.is_multiple_of(LINE_BYTES);
        is_whole && self.to == next.to && 0 < next.len && next.len <= self.len
    }
}

/// Datagrams at the front of an outbox that can be sent at once: to one destination and of equal
/// length, but for the last one, which may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Train {
    pub(crate) to: SocketAddr,
    /// Length of the first.
    pub(crate) segment: usize,
    /// How many datagrams, at least one.
    pub(crate) count: usize,
}

impl Outbox {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self {
            bytes: Bytes::new(LINE_BYTES),
            queue: Vec::new(),
            first: 0,
            hints: Hints::default(),
            refused: Vec::new(),
            doubted: None,
        }
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        debug_assert!(self.first <= self.queue.len(), "what has left was there");
        debug_assert!(self.first == 0 || self.first < self.queue.len(), "an empty one begins anew");
        let left = self.queue.get(self.first);
        let is_there = |one: &Departure| !matches!(one.place, Place::Nowhere);
        debug_assert!(left.is_none_or(is_there), "what is left has not left");
    }

    /// Appends a datagram whose bytes `fill` appends to the vector. It leaves alone what is in the
    /// vector before.
    pub(crate) fn push(&mut self, to: SocketAddr, fill: impl FnOnce(&mut Bytes)) {
        self.reclaim();
        let at = self.bytes.len().next_multiple_of(LINE_BYTES);
        self.bytes.resize(at, 0);
        fill(&mut self.bytes);
        let len = self.bytes.len().checked_sub(at).expect("`fill` appends");
        self.queue.push(Departure { to, len, place: Place::Own(at) });
        self.check();
    }

    /// Appends the first `len` of these bytes as a datagram.
    pub(crate) fn push_shared(&mut self, to: SocketAddr, bytes: Shared, len: usize) {
        assert!(len <= bytes.len(), "a datagram has no more than is there");
        self.reclaim();
        self.queue.push(Departure { to, len, place: Place::Shared(bytes) });
    }

    /// Whether there is no datagram.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of datagrams.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() - self.first
    }

    /// All datagrams in order, each with its destination.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.left().iter().map(|Departure { to, len, place }| match place {
            Place::Own(at) => (*to, &self.bytes[*at..at + len]),
            Place::Shared(bytes) => (*to, &bytes[..*len]),
            Place::Nowhere => unreachable!("what is left has not left"),
        })
    }

    /// The train at the front, of at most this number of datagrams (at least one) and bytes. A
    /// datagram that is longer travels alone.
    pub(crate) fn front(&self, count_max: usize, bytes_max: usize) -> Option<Train> {
        let (first, others) = self.left().split_first()?;
        let (mut count, mut total) = (1, first.len);
        for next in others {
            let is_end = count == count_max || total + next.len > bytes_max;
            if is_end || !first.pulls(next) {
                break;
            }
            count += 1;
            total += next.len;
            if next.len < first.len {
                break;
            }
        }
        Some(Train { to: first.to, segment: first.len, count })
    }

    /// How many datagrams at the front, one after the other, would travel alone.
    pub(crate) fn alone(&self) -> usize {
        let mut pairs = self.left().windows(2);
        pairs.position(|pair| pair[0].pulls(&pair[1])).unwrap_or(self.len())
    }

    /// Removes `count` datagrams at the front, or all if there are fewer. Returns how many bytes
    /// they had.
    pub(crate) fn pop(&mut self, count: usize) -> usize {
        let count = count.min(self.len());
        let mut bytes = 0;
        for departure in &mut self.queue[self.first..][..count] {
            bytes += departure.len;
            departure.place = Place::Nowhere;
        }
        self.first += count;
        if self.is_empty() {
            self.clear();
        }
        self.check();
        bytes
    }

    /// Removes the first datagram, which the system takes for too long.
    // spec: MTU-2
    #[cold]
    pub(crate) fn refuse(&mut self) {
        let Some(Departure { to, len, .. }) = self.left().first() else { return };
        let (to, len) = (*to, *len);
        match self.refused.iter_mut().find(|(known, _)| *known == to) {
            Some((_, least)) => *least = len.min(*least),
            None => self.refused.push((to, len)),
        }
        self.pop(1);
    }

    /// Whether datagrams were refused.
    #[inline]
    pub(crate) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Where those were to go, and how long the shortest was. They are told once.
    pub(crate) fn take_refused(&mut self) -> Vec<(SocketAddr, usize)> {
        std::mem::take(&mut self.refused)
    }

    /// Those that another outbox has been told of.
    pub(crate) fn refused_by(&mut self, other: &mut Self) {
        self.refused.append(&mut other.refused);
    }

    /// Removes all datagrams.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.queue.clear();
        self.first = 0;
    }

    fn left(&self) -> &[Departure] {
        &self.queue[self.first..]
    }

    /// Moves what is left to the front when more has left than is left, so that an outbox that is
    /// never empty does not grow without end.
    fn reclaim(&mut self) {
        if self.first >= STALE && self.first >= self.len() {
            self.queue.drain(..self.first);
            self.first = 0;
            self.reclaim_bytes();
        }
    }

    fn reclaim_bytes(&mut self) {
        let own = self.queue.iter_mut().filter_map(|departure| match &mut departure.place {
            Place::Own(at) => Some(at),
            _ => None,
        });
        let (end, mut start) = (self.bytes.len(), None);
        for at in own {
            *at -= *start.get_or_insert(*at);
        }
        let start = start.unwrap_or(end);
        assert!(start <= end, "datagrams lie in the outbox's bytes");
        self.bytes.copy_within(start.., 0);
        self.bytes.truncate(end - start);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use std::sync::Arc;

    fn to(port: u16) -> SocketAddr {
        ([10, 0, 0, 2], port).into()
    }

    fn outbox(datagrams: &[(u16, usize)]) -> Outbox {
        let mut outbox = Outbox::new();
        for (index, &(port, len)) in datagrams.iter().enumerate() {
            outbox.push(to(port), |bytes| bytes.resize(bytes.len() + len, index as u8));
        }
        outbox
    }

    /// Lengths of the trains that an outbox leaves in.
    fn trains(mut outbox: Outbox, count_max: usize, bytes_max: usize) -> Vec<usize> {
        let mut counts = Vec::new();
        while let Some(train) = outbox.front(count_max, bytes_max) {
            let count = train.count;
            let bytes: usize = outbox.iter().take(count).map(|(_, bytes)| bytes.len()).sum();
            assert_eq!(bytes.div_ceil(train.segment.max(1)).max(1), count);
            counts.push(count);
            outbox.pop(count);
        }
        counts
    }

    #[test]
    fn a_train_is_of_one_destination_and_length_but_for_its_end() {
        let lines = [(1, 9), (1, 9), (1, 4), (1, 4), (2, 4), (2, 5), (2, 5), (2, 0), (2, 0)];
        let datagrams = lines.map(|(port, lines)| (port, lines * LINE_BYTES));
        assert_eq!(trains(outbox(&datagrams), 64, 65507), [3, 1, 1, 2, 1, 1]);
        assert_eq!(trains(outbox(&[(1, 640); 7]), 3, 65507), [3, 3, 1]);
        assert_eq!(trains(outbox(&[(1, 640); 7]), 64, 1600), [2, 2, 2, 1]);
        assert_eq!(trains(outbox(&[(1, 1920), (1, 1920)]), 64, 1600), [1, 1]);
    }

    #[test]
    fn a_datagram_of_partial_lines_ends_its_train() {
        let datagrams = [(1, 128), (1, 128), (1, 100), (1, 64), (1, 60), (1, 60)];
        assert_eq!(trains(outbox(&datagrams), 64, 65507), [3, 2, 1]);
    }

    #[test]
    fn each_datagram_begins_with_a_line() {
        let mut outbox = outbox(&[(1, 100), (1, 1), (1, 64)]);
        outbox.push(to(1), |bytes| bytes.push(7));
        let starts: Vec<_> = outbox.iter().map(|(_, bytes)| bytes.as_ptr() as usize).collect();
        assert!(starts.iter().all(|start| start.is_multiple_of(LINE_BYTES)), "{starts:x?}");
    }

    #[test]
    fn datagrams_that_travel_alone_are_counted_up_to_the_first_train() {
        let alone = |lines: &[(u16, usize)]| {
            let datagrams: Vec<_> = lines.iter().map(|&(to, n)| (to, n * LINE_BYTES)).collect();
            outbox(&datagrams).alone()
        };
        assert_eq!(alone(&[]), 0);
        assert_eq!(alone(&[(1, 8)]), 1);
        assert_eq!(alone(&[(1, 8), (2, 8), (3, 8), (3, 8)]), 2);
        assert_eq!(alone(&[(1, 8), (1, 9), (1, 10)]), 3);
    }

    #[test]
    fn an_outbox_that_is_never_empty_does_not_grow() {
        let mut outbox = Outbox::new();
        for round in 0..10_000_u64 {
            outbox.push(to(1), |bytes| bytes.extend_from_slice(&round.to_le_bytes().repeat(128)));
            if outbox.len() > 64 {
                let (_, first) = outbox.iter().next().unwrap();
                assert_eq!(first[..8], (round - 64).to_le_bytes());
                outbox.pop(1);
            }
        }
        assert!(outbox.bytes.len() < 256 * 1024, "twice what is left at most");
    }

    #[test]
    fn shared_bytes_are_sent_among_others_and_given_up_when_they_have_left() {
        let mut outbox = outbox(&[(1, 64)]);
        let shared = Arc::new(BytesMut::zeroed(65));
        outbox.push_shared(to(1), shared.clone(), 64);
        outbox.push(to(1), |bytes| bytes.resize(bytes.len() + 64, 2));
        let all: Vec<_> = outbox.iter().map(|(_, bytes)| bytes.to_vec()).collect();
        assert_eq!(all, [[0; 64], [0; 64], [2; 64]]);
        assert_eq!(outbox.front(64, 65507).map(|train| train.count), Some(3));
        assert_eq!(outbox.pop(2), 128);
        assert_eq!(Arc::strong_count(&shared), 1);
        assert_eq!(outbox.iter().next(), Some((to(1), &[2; 64][..])));
    }
}

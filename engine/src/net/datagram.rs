//! What a link sees of a network: datagrams out, datagrams in, and no promises.
use super::hints::Hints;
use aligned_vec::{AVec, ConstAlign};
use bytes::BytesMut;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Longest payload of a datagram that any network here carries: what IPv4 leaves of 65535 bytes.
pub(crate) const DATAGRAM_MAX: usize = 65_535 - IPV4_HEADERS;
/// Bytes of the headers of IPv4 (without options) and UDP.
pub(crate) const IPV4_HEADERS: usize = 20 + 8;
/// Bytes of the headers of IPv6 (without extensions) and UDP.
pub(crate) const IPV6_HEADERS: usize = 40 + 8;

/// Where the bytes of datagrams lie. The system copies them from and to the beginning of a line of
/// the processor's cache at three times the speed of anywhere else.
pub(crate) type Bytes = AVec<u8, ConstAlign<LINE_BYTES>>;
/// Of a line of the processor's cache.
pub(crate) const LINE_BYTES: usize = 64;

/// Bytes of which a net has a share until they have left, so that they are not copied. Whoever has
/// the only share may write them.
pub(crate) type Shared = Arc<BytesMut>;

/// So many zeros.
pub(crate) fn zeros(count: usize) -> Bytes {
    let mut bytes = Bytes::with_capacity(LINE_BYTES, count);
    bytes.resize(count, 0);
    bytes
}

/// Length of the longest datagrams that are worth sending where so many bytes would go: datagrams
/// of a train lie one behind the other, so all begin with a line if each is some lines long.
pub(crate) const fn whole_lines(datagram_max: usize) -> usize {
    if datagram_max < 8 * LINE_BYTES { datagram_max } else { datagram_max & !(LINE_BYTES - 1) }
}

/// What one receive may bring: longer than any datagram, and than all of a train together.
const ROOM: usize = 1 << 16;
/// Bytes of an inbox: few enough to stay in a processor's cache.
const INBOX_BYTES: usize = 4 * ROOM;
/// With so many datagrams an inbox takes no more; a train may still bring it to twice as many.
const INBOX_ENOUGH: usize = 128;
/// Datagrams that have left, at the front of an outbox, before their place is reclaimed.
const STALE: usize = 64;

/// Writes down, for a network, the frames in sealed datagrams.
pub(crate) trait Tap: Debug + Send + Sync {
    /// This frame is about to be sealed.
    fn seals(&self, to: SocketAddr, frame: &[u8]);

    /// This frame was in a sealed datagram that has come.
    fn opened(&self, from: SocketAddr, frame: &[u8], now: u64);
}

/// Of each net of a port.
pub(crate) type Taps = Arc<[Arc<dyn Tap>]>;

/// What carries datagrams, and may lose, repeat, reorder and damage them. It never blocks.
///
/// `now` is in nanoseconds of a clock of the caller's choice that never goes back.
// spec: NET-1
pub(crate) trait Net: Debug + Send {
    /// Sends what the outbox holds, as far as the system takes it now; the rest stays there. What
    /// can never go (too long, no route) is dropped and counted: the network loses.
    fn send(&mut self, outbox: &mut Outbox, now: u64);

    /// Takes what has come into the empty inbox: at most 256 datagrams, and perhaps not yet all
    /// that is there; [`Net::as_fd`] can be read as long as there is more.
    fn receive(&mut self, inbox: &mut Inbox, now: u64);

    /// Can be read when something has come: for epoll and poll.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// When [`Net::send`] or [`Net::receive`] has something to do although nothing comes: it holds
    /// datagrams back, or the system took no more. `None` if there is no such time.
    fn deadline(&self) -> Option<u64>;

    /// The address that peers send to.
    fn local(&self) -> SocketAddr;

    /// Longest datagram that goes to `to` whole, in bytes of its payload, as far as is known now.
    /// Asks the system: not for every datagram.
    fn datagram_max(&self, to: SocketAddr) -> usize;

    /// What it has counted so far.
    fn counters(&self) -> NetCounters;

    /// Datagrams to this address may not arrive: looks whether this host still has the net's own
    /// address, and goes on at another one where it has not.
    // spec: NET-15
    fn check_address(&mut self, _to: SocketAddr) {}

    /// Where it notes what it hears of addresses beside datagrams, if it hears of that.
    fn hints(&self) -> Hints {
        Hints::default()
    }

    /// What is to be told of the frames in sealed datagrams, if they are written down.
    fn tap(&self) -> Option<Arc<dyn Tap>> {
        None
    }
}

impl<N: Net + ?Sized> Net for Box<N> {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        (**self).send(outbox, now);
    }

    fn receive(&mut self, inbox: &mut Inbox, now: u64) {
        (**self).receive(inbox, now);
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        (**self).deadline()
    }

    fn local(&self) -> SocketAddr {
        (**self).local()
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        (**self).datagram_max(to)
    }

    fn counters(&self) -> NetCounters {
        (**self).counters()
    }

    fn check_address(&mut self, to: SocketAddr) {
        (**self).check_address(to);
    }

    fn hints(&self) -> Hints {
        (**self).hints()
    }

    fn tap(&self) -> Option<Arc<dyn Tap>> {
        (**self).tap()
    }
}

/// Counts since the net was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetCounters {
    /// Datagrams that the system took.
    pub(crate) sent: u64,
    /// Their payloads' bytes.
    pub(crate) sent_bytes: u64,
    /// Datagrams that came.
    pub(crate) received: u64,
    /// Their payloads' bytes.
    pub(crate) received_bytes: u64,
    /// Datagrams of the outbox that could not go, or that a fault was meant to lose.
    pub(crate) dropped: u64,
    /// System calls that sent, tried to send, received or found nothing.
    pub(crate) calls: u64,
    /// How often the system took no more datagrams for now.
    pub(crate) full: u64,
    /// Errors that the system reported and that change nothing, such as "port unreachable".
    pub(crate) hints: u64,
}

impl NetCounters {
    /// Of two nets together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            dropped: self.dropped + other.dropped,
            calls: self.calls + other.calls,
            full: self.full + other.full,
            hints: self.hints + other.hints,
        }
    }
}

/// Datagrams on their way out, in order.
///
/// The bytes are the outbox's own, one datagram behind the other, or shared with whoever keeps them
/// to send them again.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Bytes,
    queue: Vec<Departure>,
    /// Where the first datagram stands in the queue.
    first: usize,
    /// What the net has heard of addresses.
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

    /// Appends a datagram whose bytes `fill` appends to the vector. What is in the vector before is
    /// not its business.
    pub(crate) fn push(&mut self, to: SocketAddr, fill: impl FnOnce(&mut Bytes)) {
        self.reclaim();
        let at = self.bytes.len().next_multiple_of(LINE_BYTES);
        self.bytes.resize(at, 0);
        fill(&mut self.bytes);
        let len = self.bytes.len().checked_sub(at).expect("`fill` appends");
        self.queue.push(Departure { to, len, place: Place::Own(at) });
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

    /// The train at the front, of at most so many datagrams (at least one) and bytes; a datagram
    /// that is longer travels alone.
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

    /// Removes so many datagrams at the front, or all if there are fewer. Returns how many bytes
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
        self.bytes.copy_within(start.., 0);
        self.bytes.truncate(end - start);
    }
}

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
    /// If there are not so many.
    pub(crate) fn get(&mut self, index: usize) -> (SocketAddr, &mut [u8]) {
        let Arrival { from, range } = &self.arrivals[index];
        (*from, &mut self.bytes[range.clone()])
    }

    /// Forgets one datagram.
    ///
    /// # Panics
    ///
    /// If there are not so many.
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

/// A network in memory: what one sends to it comes back, in order.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Echo {
    queue: std::collections::VecDeque<Vec<u8>>,
    /// Datagrams that it takes until it is emptied, as a full network would.
    pub(crate) room: usize,
    never: std::os::fd::OwnedFd,
}

#[cfg(test)]
impl Echo {
    pub(crate) fn new() -> Self {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        let never = rustix::event::eventfd(0, flags).expect("an event");
        Self { queue: Default::default(), room: usize::MAX, never }
    }

    /// Takes all that has come.
    pub(crate) fn drain(net: &mut impl Net, now: u64) -> Vec<Vec<u8>> {
        let (mut inbox, mut all) = (Inbox::new(), Vec::new());
        loop {
            net.receive(&mut inbox, now);
            if inbox.is_empty() {
                return all;
            }
            all.extend((0..inbox.len()).map(|index| inbox.get(index).1.to_vec()));
            inbox.clear();
        }
    }
}

#[cfg(test)]
impl Net for Echo {
    fn send(&mut self, outbox: &mut Outbox, _now: u64) {
        let count = outbox.len().min(self.room);
        self.queue.extend(outbox.iter().take(count).map(|(_, bytes)| bytes.to_vec()));
        self.room -= count;
        outbox.pop(count);
    }

    fn receive(&mut self, inbox: &mut Inbox, _now: u64) {
        while let Some(room) = inbox.room() {
            let Some(bytes) = self.queue.pop_front() else { return };
            room[..bytes.len()].copy_from_slice(&bytes);
            inbox.accept(self.local(), bytes.len(), bytes.len());
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.never)
    }

    fn deadline(&self) -> Option<u64> {
        None
    }

    fn local(&self) -> SocketAddr {
        ([10, 0, 0, 1], 1).into()
    }

    fn datagram_max(&self, _to: SocketAddr) -> usize {
        DATAGRAM_MAX
    }

    fn counters(&self) -> NetCounters {
        NetCounters::default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
    fn what_is_not_of_whole_lines_has_none_behind_it() {
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

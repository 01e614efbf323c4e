//! Remote queues: many producers, one consumer, a lane for each producer.
//!
//! ```text
//! queue file of one producer: line 0 the consumer's cursor, then the lane's lines 128 bytes apart
//! ```
//!
//! A producer shares nothing with another one, so none can block, corrupt or slow another's
//! records. A producer that dies in the middle of a record leaves no trace of that record.
use crate::error::{Busy, Fault, PostError, ReceiveError, SetupError};
use crate::mem::Instead;
use crate::mem::file::{Pages, memory_file, seal_seals};
use crate::mem::lane::{LaneReceiver, LaneSender, Probe};
use crate::mem::map::Mapping;
use crate::mem::queue::{file_len, lane, record_max};
use crate::peer::packet::{Packet, PacketKind};
use crate::port::Port;
use crate::port::turns::{PollOrder, Streak};
use crate::sys::descriptor::Descriptor;
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::{LANE_LINES_MAX, LANE_LINES_MIN, LINE_PAYLOAD};
use ayre_proto::node::message;
use ayre_proto::units::PeerId;
use rustix::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// A remote queue, at its consumer.
#[derive(Debug)]
pub struct Queue {
    lines: u32,
    producers: Vec<Producer>,
    rota: PollOrder,
    port: u64,
}

#[derive(Debug)]
struct Producer {
    peer: PeerId,
    /// The identity of the connection, among those that its number has had.
    connection: u64,
    lane: LaneReceiver,
}

/// A remote queue, at one of its producers.
#[derive(Debug)]
pub struct RemoteQueue {
    peer: PeerId,
    connection: u64,
    lane: LaneSender,
}

/// The properties of a record taken from a queue; its bytes are in the consumer's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The producer.
    pub source: PeerId,
    /// The length in bytes.
    pub len: usize,
}

impl Queue {
    /// The largest capacity of a queue in bytes.
    pub const CAPACITY_MAX: usize = LANE_LINES_MAX * LINE_PAYLOAD;

    /// The length of the longest record that the queue takes, in bytes.
    pub fn record_max(&self) -> usize {
        record_max(self.lines)
    }

    /// The peers that may enqueue.
    pub fn producers(&self) -> impl Iterator<Item = PeerId> {
        self.producers.iter().map(|producer| producer.peer)
    }

    /// Removes producers, and begins the turns anew: the indices of the others may have changed. So
    /// one turn for each producer always reaches all of them.
    fn keep(&mut self, stays: impl FnMut(&Producer) -> bool) {
        self.producers.retain(stays);
        self.rota = PollOrder::default();
    }
}

impl RemoteQueue {
    /// The consumer.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The length of the longest record that the queue takes, in bytes.
    pub fn record_max(&self) -> usize {
        self.lane.capacity() / 2
    }
}

impl Port {
    /// Creates a queue with at least `capacity` bytes for the records of each producer. A record
    /// takes a multiple of 56 bytes. The longest record ([`Queue::record_max`]) has half the
    /// capacity, rounded up to a multiple of 56, and at least 1344 bytes.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a capacity of 0 or of more than [`Queue::CAPACITY_MAX`].
    // spec: QUE-1
    pub fn create_queue(&mut self, capacity: usize) -> Result<Queue, SetupError> {
        if !(1..=Queue::CAPACITY_MAX).contains(&capacity) {
            return Err(SetupError::invalid(format!(
                "a queue of {capacity} bytes; it has from 1 to {}",
                Queue::CAPACITY_MAX
            )));
        }
        let lines = capacity.div_ceil(LINE_PAYLOAD).max(LANE_LINES_MIN);
        debug_assert!(lines <= LANE_LINES_MAX, "the longest capacity fits the longest lane");
        let lines = lines as u32;
        Ok(Queue { lines, producers: Vec::new(), rota: PollOrder::default(), port: self.identity })
    }

    /// Lets a peer enqueue, under a name; the peer accepts the queue with [`Port::accept_queue`].
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where the peer is a producer already, or the queue is another
    /// port's; [`SetupError::PeerLeft`]; [`SetupError::Os`].
    // spec: QUE-1, QUE-2
    pub fn share_queue(
        &mut self,
        peer: PeerId,
        queue: &mut Queue,
        name: u64,
    ) -> Result<(), SetupError> {
        if queue.port != self.identity {
            return Err(SetupError::invalid("the queue belongs to another port"));
        }
        let connection = self.connection(peer).map_or(0, |connection| connection.identity);
        // Records of an earlier peer of this number can still be taken.
        queue.keep(|it| it.peer != peer || it.connection == connection || it.lane.peek().is_some());
        if queue.producers.iter().any(|it| it.peer == peer && it.connection == connection) {
            let peer = peer.index();
            return Err(SetupError::invalid(format!(
                "the queue is shared with peer {peer} already"
            )));
        }
        let len = file_len(queue.lines);
        let file = memory_file(len, Pages::Ordinary)?;
        seal_seals(file.as_fd())?;
        let mapping = Arc::new(Mapping::own(file.as_fd(), len)?.private(Instead::Zeros));
        let words = [name, u64::from(queue.lines), 0, 0, 0, 0, 0];
        self.offer(peer, PacketKind::OfferQueue, words, Some(file))?;
        let lane = lane(&mapping, queue.lines).receiver();
        debug_assert_eq!(lane.lines(), queue.lines, "all producers have lanes of one length");
        debug_assert!(connection != 0, "the offer went by a connection, which has a number");
        queue.producers.push(Producer { peer, connection, lane });
        Ok(())
    }

    /// Accepts a queue that `peer` shares under `name`. Blocks until it arrives, at most for the
    /// set-up time.
    ///
    /// # Errors
    /// As [`Port::accept_region`].
    pub fn accept_queue(&mut self, peer: PeerId, name: u64) -> Result<RemoteQueue, SetupError> {
        let packet = self.take_offer(peer, PacketKind::OfferQueue, name)?;
        let (file, lines) = parse_offer(packet)?;
        let mapping = Arc::new(
            Mapping::foreign(file.as_fd(), file_len(lines), true)?.private(Instead::Zeros),
        );
        let connection = self.connection(peer)?.identity;
        let queue = RemoteQueue { peer, connection, lane: lane(&mapping, lines).sender() };
        debug_assert_eq!(queue.record_max(), record_max(lines), "both ends take the same records");
        Ok(queue)
    }

    /// Withdraws a peer's right to enqueue. Its records that were not taken are discarded.
    // spec: QUE-10
    pub fn remove_producer(&mut self, queue: &mut Queue, peer: PeerId) {
        queue.keep(|producer| producer.peer != peer);
    }

    /// Appends a record, whole or not at all. Never blocks; the buffer may be reused when the call
    /// returns. Records of one producer are taken in the order in which they were enqueued.
    ///
    /// # Errors
    /// [`Busy::QueueFull`] without effect; [`Fault::TooLong`]; [`Fault::PeerDead`],
    /// [`Fault::ForeignHandle`].
    // spec: QUE-3, QUE-4, QUE-10
    #[inline(always)]
    pub fn enqueue(&mut self, queue: &mut RemoteQueue, record: &[u8]) -> Result<(), PostError> {
        let connection = self.connection_mut(queue.peer)?;
        if connection.identity == queue.connection
            && connection.ended.is_none()
            && !record.is_empty()
            && queue.lane.push_short((Kind::Record, 0), [], record)
        {
            connection.published();
            return Ok(());
        }
        self.enqueue_any(queue, record)
    }

    /// Appends records of any length.
    #[inline(never)]
    fn enqueue_any(&mut self, queue: &mut RemoteQueue, record: &[u8]) -> Result<(), PostError> {
        let connection = self.connection_mut(queue.peer)?;
        if connection.identity != queue.connection {
            return Err(Fault::ForeignHandle.into());
        }
        message::check_record(record.len(), queue.record_max())?;
        if let Some(why) = connection.ended {
            return Err(why.into());
        }
        if queue.lane.push((Kind::Record, 0), [], record).is_err() {
            self.make_room(queue.peer);
            return Err(self.busy(Busy::QueueFull));
        }
        connection.published();
        Ok(())
    }

    /// Takes the next record of any producer, if there is one, into the front of `into`. Polls the
    /// producer of the last record and one other in turn. Never blocks.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`]: the record stays, and a call with a longer buffer gets it.
    // spec: QUE-5, QUE-6, ORD-6
    #[inline(always)]
    pub fn dequeue(
        &mut self,
        queue: &mut Queue,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        let hot = queue.rota.hot();
        if let Some(record) = self.take_record(queue, hot, into)? {
            if queue.rota.took(queue.producers.len()) == Streak::Ends {
                self.progress_lanes();
            }
            return Ok(Some(record));
        }
        let turn = queue.rota.turn(queue.producers.len());
        if turn != hot
            && let Some(record) = self.take_record(queue, turn, into)?
        {
            queue.rota.expect(turn);
            return Ok(Some(record));
        }
        self.progress_lanes();
        Ok(None)
    }

    /// Takes the next record. Blocks for at most `timeout`; sleeps in a long wait.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`]; [`ReceiveError::TimedOut`]; [`ReceiveError::PeerDied`], once for
    /// each peer that has died.
    // spec: QUE-7
    pub fn dequeue_wait(
        &mut self,
        queue: &mut Queue,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Record, ReceiveError> {
        let deadline = self.clock.deadline(timeout);
        self.wait_or_died(deadline, 1, |port| port.dequeue_any(queue, into).transpose())
    }

    /// Gives each producer its turn. Repeats that if a bad record has removed one: the indices of
    /// those behind it have changed, and no record may be missed before a sleep.
    fn dequeue_any(
        &mut self,
        queue: &mut Queue,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        loop {
            let producers = queue.producers.len();
            for _ in 0..producers.max(1) {
                if let Some(record) = self.dequeue(queue, into)? {
                    return Ok(Some(record));
                }
            }
            debug_assert!(queue.producers.len() <= producers, "who takes lets nobody in");
            if queue.producers.len() == producers {
                return Ok(None);
            }
        }
    }

    #[inline(always)]
    fn take_record(
        &mut self,
        queue: &mut Queue,
        index: usize,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        let Some(producer) = queue.producers.get_mut(index) else { return Ok(None) };
        match producer.lane.take_short(Kind::Record, into) {
            Probe::Nothing => Ok(None),
            Probe::Taken((len, _)) => Ok(Some(Record { source: producer.peer, len })),
            Probe::Other => self.take_any_record(queue, index, into),
        }
    }

    /// Takes records of any length.
    // spec: QUE-8, ERR-6
    #[inline(never)]
    fn take_any_record(
        &mut self,
        queue: &mut Queue,
        index: usize,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        let Some(producer) = queue.producers.get_mut(index) else { return Ok(None) };
        let Some(record) = producer.lane.peek() else { return Ok(None) };
        let Ok((status, len)) = checked(record, record_max(queue.lines)) else {
            self.count_malformed();
            let (peer, connection) = (producer.peer, producer.connection);
            queue.keep(|producer| (producer.peer, producer.connection) != (peer, connection));
            return Ok(None);
        };
        let Some(into) = into.get_mut(..len) else { return Err(ReceiveError::TooLong(len)) };
        producer.lane.copy(0, into);
        producer.lane.consume(&status);
        Ok(Some(Record { source: producer.peer, len }))
    }
}

/// Refuses a record that no correct producer enqueues: it could never be taken.
fn checked(record: Result<Status, Malformed>, most: usize) -> Result<(Status, usize), Malformed> {
    let status = record?;
    Ok((status, message::record_of(&status, most)?))
}

fn parse_offer(mut packet: Packet) -> Result<(Descriptor, u32), SetupError> {
    let file = packet.fds.pop().ok_or(SetupError::Protocol("a queue without file"))?;
    let lines = packet.words[1];
    let valid = (LANE_LINES_MIN as u64..=LANE_LINES_MAX as u64).contains(&lines);
    if valid { Ok((file, lines as u32)) } else { Err(SetupError::Protocol("lines of a queue")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::config::{Config, Spin};
    use crate::sync::{Ordering, StaticCounter};
    use std::path::PathBuf;

    /// A path that no other test of this machine uses.
    fn socket_path() -> PathBuf {
        static NEXT: StaticCounter = StaticCounter::new(0);
        // Relaxed: only uniqueness matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("ayre-crowd-{}-{number}", std::process::id()))
    }

    /// A port with a queue of this number of producers.
    fn crowd(count: u16) -> (Port, Vec<(Port, RemoteQueue)>, Queue) {
        let path = socket_path();
        let open = |number| Port::open(Config::new().number(number).spin(Spin::SHARED)).unwrap();
        let mut port = open(0);
        port.listen(&path).unwrap();
        let mut queue = port.create_queue(4096).unwrap();
        let mut produce = |number| {
            let mut producer = open(number);
            let begun = producer.begin_connect(&path).unwrap();
            let peer = port.accept().unwrap();
            let consumer = producer.finish_connect(begun).unwrap();
            port.share_queue(peer, &mut queue, 1).unwrap();
            let remote = producer.accept_queue(consumer, 1).unwrap();
            (producer, remote)
        };
        let producers = (1..=count).map(&mut produce).collect();
        (port, producers, queue)
    }

    /// The number of lane polls in a wait that ends at once.
    fn polls(count: u16) -> u32 {
        let (mut port, _producers, mut queue) = crowd(count);
        let before = port.polls;
        let waited = port.dequeue_wait(&mut queue, &mut [0; 8], Some(Duration::ZERO));
        assert_eq!(waited, Err(ReceiveError::TimedOut));
        port.polls - before
    }

    // spec: QUE-7
    #[test]
    fn a_round_of_a_wait_looks_at_each_producer_once() {
        let (few, many) = (polls(4), polls(16));
        assert!(many <= 4 * few, "{few} polls for 4 producers, {many} for 16");
    }

    // spec: QUE-7, QUE-10
    #[test]
    fn one_round_finds_a_record_wherever_turns_stood() {
        for turns in 0..8 {
            let (mut port, mut producers, mut queue) = crowd(4);
            for _ in 0..turns {
                assert_eq!(port.dequeue(&mut queue, &mut [0; 8]), Ok(None));
            }
            port.remove_producer(&mut queue, PeerId(2));
            let (producer, remote) = &mut producers[3];
            producer.enqueue(remote, &[7]).unwrap();
            let found = port.dequeue_any(&mut queue, &mut [0; 8]).unwrap();
            assert_eq!(found, Some(Record { source: PeerId(4), len: 1 }), "after {turns} turns");
        }
    }
}

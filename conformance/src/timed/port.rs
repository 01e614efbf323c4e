//! The calls of a port in simulated time.
use super::handles::{
    Producer, TimedGrant, TimedQueue, TimedRegion, TimedRemote, TimedRemoteQueue,
};
use super::lock::TimedLock;
use super::program::{Posting, TimedPort, check_rows, notification_put, shape, space};
use crate::port::{
    Batch, Counted, Destination, Options, Port, RegionOptions, RemoteRegion, Source,
};
use ayre::error::Refusal;
use ayre::memory::{Atomic, AtomicOp, EpochStep, Fenced, Fetched, Key, Strided, Ticket, Width};
use ayre::message::Record;
use ayre::{
    Busy, Fault, Message, Mode, Notification, PeerId, PostError, ReceiveError, Rights, SetupError,
};
use ayre_proto::execute::Action;
use ayre_proto::fault::Status;
use ayre_proto::limits::{BATCH_MAX, LANE_LINES_MAX, LANE_LINES_MIN, LINE_PAYLOAD};
use ayre_proto::node::PostError as NotPosted;
use ayre_proto::node::carrier::lanes::{Offer, OfferKind};
use ayre_proto::segment::Shape;
use ayre_proto::xlate::Cover;
use rustix::io::Errno;
use std::ops::Range;
use std::thread::yield_now;
use std::time::Duration;

impl Port for TimedPort {
    type Region = TimedRegion;
    type RemoteRegion = TimedRemote;
    type Grant = TimedGrant;
    type Queue = TimedQueue;
    type RemoteQueue = TimedRemoteQueue;
    type Lock<'a> = TimedLock<'a>;

    fn rank(&self) -> usize {
        self.number.into()
    }

    fn peers(&self) -> impl Iterator<Item = PeerId> {
        let shared = self.door.shared();
        let peers: Vec<_> = shared.port(self.number).connections.keys().copied().collect();
        peers.into_iter()
    }

    fn mode(&self, peer: PeerId) -> Result<Mode, Fault> {
        self.door.shared().port(self.number).connection(peer).map(|_| Mode::Mediated)
    }

    fn is_alive(&self, peer: PeerId) -> bool {
        self.door.shared().cluster.connection(self.node(), peer).is_ok()
    }

    fn connect_loopback(&mut self) -> Result<PeerId, SetupError> {
        let (mut shared, own) = (self.door.shared(), PeerId(self.number));
        if shared.port(self.number).connections.contains_key(&own) {
            let peer = format!("peer {}", own.0);
            return Err(SetupError::Rejected { peer, why: Refusal::Taken });
        }
        shared.add(self.number, own);
        shared.cluster.connect_loopback(self.node());
        Ok(own)
    }

    // spec: LIFE-19
    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        let mut shared = self.door.shared();
        shared.cluster.disconnect(self.node(), peer)?;
        shared.hear(self.number);
        shared.port_mut(self.number).forget(peer);
        Ok(())
    }

    // spec: LIFE-16
    fn leave(mut self) -> Result<(), Fault> {
        let living = self.door.shared().living(self.number);
        living.into_iter().try_for_each(|peer| self.flush(peer))
    }

    fn progress(&mut self) {
        self.door.shared().pass(self.number);
    }

    fn count(&self, what: Counted) -> u64 {
        let mut shared = self.door.shared();
        shared.hear(self.number);
        match what {
            Counted::Malformed => shared.cluster.malformed(self.node()),
            what => shared.port(self.number).count(what),
        }
    }

    fn alloc(&mut self, len: usize, options: RegionOptions) -> Result<TimedRegion, SetupError> {
        let mut bytes = Vec::new();
        let no_memory = |_| SetupError::Os { call: "an allocation", errno: Errno::NOMEM };
        bytes.try_reserve_exact(len).map_err(no_memory)?;
        bytes.resize(len, 0);
        self.add_region(bytes, options.sealed)
    }

    fn register(&mut self, words: Vec<u64>) -> Result<TimedRegion, SetupError> {
        self.add_region(words.iter().flat_map(|word| word.to_le_bytes()).collect(), false)
    }

    // spec: REG-4
    fn deregister(&mut self, region: &TimedRegion) -> Result<(), SetupError> {
        self.check_region(region)?;
        let mut shared = self.door.shared();
        let state = shared.port_mut(self.number);
        state.regions.remove(&region.number);
        let revoked: Vec<Key> =
            state.grants.extract_if(.., |(_, of)| *of == region.number).map(|of| of.0).collect();
        drop(shared);
        for key in revoked {
            // One whose peer was forgotten has ended before.
            _ = self.end_key(key);
        }
        Ok(())
    }

    // spec: CAP-1, CAP-9, CAP-11
    fn share(
        &mut self,
        peer: PeerId,
        region: &TimedRegion,
        part: Range<usize>,
        rights: Rights,
        name: u64,
    ) -> Result<TimedGrant, SetupError> {
        self.check_region(region)?;
        let mut shared = self.door.shared();
        let is_inside = part.start <= part.end && part.end <= region.len;
        if !is_inside || !part.start.is_multiple_of(8) {
            return Err(SetupError::Invalid("the part is no part of the region".into()));
        }
        let is_sealed = shared.port(self.number).regions[&region.number];
        if is_sealed && rights.intersects(Rights::WRITE | Rights::ATOMIC) {
            return Err(SetupError::Invalid("a sealed region is for reading".into()));
        }
        shared.check_peer(self.number, peer)?;
        let (base, len) = (part.start as u64, part.len() as u64);
        let cover = Cover { holder: peer, rights, region: region.number, base, len };
        let full = || SetupError::Exhausted("the table of keys is full".into());
        let key = shared.cluster.share(self.node(), cover).ok_or_else(full)?;
        let [slot, generation] = [u64::from(key.slot), u64::from(key.generation)];
        let words = [name, slot, generation, u64::from(rights.bits()), len, 0, 0];
        let offered =
            shared.cluster.offer(self.node(), peer, Offer { kind: OfferKind::Region, words });
        if let Err(error) = offered {
            drop(shared);
            self.end_key(key)?;
            return Err(match error {
                NotPosted::Fault(fault) => fault.into(),
                NotPosted::Refused(_) | NotPosted::NotificationsFull => {
                    SetupError::Exhausted("the peer accepts nothing".into())
                }
            });
        }
        shared.port_mut(self.number).grants.push((key, region.number));
        Ok(TimedGrant { port: self.identity, peer, key })
    }

    fn accept_region(&mut self, peer: PeerId, name: u64) -> Result<TimedRemote, SetupError> {
        let (connection, offer) = self.take_offer(peer, OfferKind::Region, name)?;
        let [_, slot, generation, rights, len, ..] = offer.words;
        let key = Key { slot: slot as u16, generation: generation as u32 };
        let rights = Rights::from_bits_truncate(rights as u8);
        let cover = Cover { holder: PeerId(self.number), rights, region: 0, base: 0, len };
        Ok(TimedRemote { peer, connection, key, cover, start: 0 })
    }

    // spec: REV-1, REV-2
    fn revoke(&mut self, grant: TimedGrant) -> Result<Fenced, SetupError> {
        if grant.port != self.identity {
            return Err(Fault::ForeignHandle.into());
        }
        self.end_key(grant.key)?;
        let mut shared = self.door.shared();
        shared.port_mut(self.number).grants.retain(|(key, _)| *key != grant.key);
        Ok(Fenced::Drained)
    }

    fn put<'a>(
        &mut self,
        to: &TimedRemote,
        offset: u64,
        from: impl Into<Source<'a, TimedRegion>>,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let (local, len) = self.source(&from.into())?;
        self.put_shape((to, offset), local, Shape::contiguous(len), options)
    }

    fn put_strided<'a>(
        &mut self,
        to: &TimedRemote,
        offset: u64,
        from: impl Into<Source<'a, TimedRegion>>,
        rows: Strided,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let (from, shape) = (from.into(), shape(rows));
        let len = match &from {
            Source::Bytes(bytes) => bytes.len(),
            Source::Region(slice) => slice.len,
        };
        check_rows(&shape, shape.remote_stride, len as u64)?;
        let (local, _) = self.source(&from)?;
        self.put_shape((to, offset), local, shape, options)
    }

    fn get<'a>(
        &mut self,
        from: &TimedRemote,
        offset: u64,
        into: impl Into<Destination<'a, TimedRegion>>,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let into = into.into();
        let shape = Shape::contiguous(space(&into));
        self.get_shape((from, offset), into, shape, options)
    }

    fn get_strided<'a>(
        &mut self,
        from: &TimedRemote,
        offset: u64,
        into: impl Into<Destination<'a, TimedRegion>>,
        rows: Strided,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let (into, shape) = (into.into(), shape(rows));
        check_rows(&shape, shape.local_stride, space(&into))?;
        self.get_shape((from, offset), into, shape, options)
    }

    fn put_immediate(
        &mut self,
        to: &TimedRemote,
        offset: u64,
        value: u64,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let (action, shape) = (Action::Immediate(value), Shape::contiguous(8));
        self.post((to, offset), Posting { action, shape, local: None }, options)
    }

    fn notify(&mut self, peer: PeerId, options: Options) -> Result<Ticket, PostError> {
        self.dispatch(peer, notification_put(options), false)
    }

    fn atomic(
        &mut self,
        on: &TimedRemote,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let (action, shape) = (Action::Atomic(atomic), Shape::contiguous(atomic.width.bytes()));
        self.post((on, offset), Posting { action, shape, local: None }, options)
    }

    fn fetch(
        &mut self,
        on: &TimedRemote,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> Result<Fetched, PostError> {
        let (action, shape) = (Action::Fetch(atomic), Shape::contiguous(atomic.width.bytes()));
        let posting = Posting { action, shape, local: None };
        let (_, value, status) = self.post_and_wait((on, offset), posting, options)?;
        Ok(Fetched { value, success: status == Status::Ok })
    }

    fn fetch_add(&mut self, on: &TimedRemote, offset: u64, add: u64) -> Result<u64, PostError> {
        let atomic = word(AtomicOp::Add, add, 0);
        Ok(self.fetch(on, offset, atomic, Options::new())?.value)
    }

    fn compare_swap(
        &mut self,
        on: &TimedRemote,
        offset: u64,
        compare: u64,
        new: u64,
    ) -> Result<Fetched, PostError> {
        self.fetch(on, offset, word(AtomicOp::CompareSwap, new, compare), Options::new())
    }

    fn fcaa(
        &mut self,
        on: &TimedRemote,
        offset: u64,
        compare: i64,
        add: i64,
    ) -> Result<Fetched, PostError> {
        let atomic = word(AtomicOp::Fcaa, add as u64, compare as u64);
        self.fetch(on, offset, atomic, Options::new())
    }

    // spec: BATCH-2, BATCH-5
    fn release(&mut self, batch: &Batch<'_, Self>) -> Result<Option<Ticket>, PostError> {
        if batch.len() > BATCH_MAX {
            return Err(Fault::TooLong.into());
        }
        let orders = batch.entries.iter().map(|entry| self.order(batch.peer, entry));
        let orders: Vec<_> = orders.collect::<Result<_, _>>()?;
        if orders.is_empty() {
            return Ok(None);
        }
        let mut shared = self.door.shared();
        let posted = shared.cluster.batch(self.node(), batch.peer, orders);
        let refuse = |error| shared.refuse(self.number, error, Busy::RequestLaneFull);
        posted.map(Some).map_err(refuse)
    }

    // spec: FLUSH-1, FLUSH-2
    fn flush(&mut self, peer: PeerId) -> Result<(), Fault> {
        self.door.shared().port(self.number).connection(peer)?;
        self.wait_flushed(peer);
        let mut shared = self.door.shared();
        shared.hear(self.number);
        let connection = shared.port_mut(self.number).connections.get_mut(&peer);
        connection.and_then(|connection| connection.fault.take()).map_or(Ok(()), Err)
    }

    fn is_flushed(&self, peer: PeerId) -> bool {
        self.door.shared().cluster.is_flushed(self.node(), peer)
    }

    /// Ports here belong to no job: each is alone in its barrier, as those of the engine are.
    // spec: BAR-4
    fn barrier(&mut self) -> Result<(), Fault> {
        self.peers().for_each(|peer| self.wait_flushed(peer));
        Ok(())
    }

    fn lock(on: &TimedRemote, offset: u64, processes: u32) -> TimedLock<'_> {
        TimedLock { word: on, offset, processes, held: None }
    }

    // spec: EPOCH-1, EPOCH-2
    fn try_epoch_step(
        &mut self,
        on: &TimedRemote,
        offset: u64,
        step: EpochStep,
    ) -> Result<Fetched, PostError> {
        if step == EpochStep::Complete {
            self.flush(on.peer())?;
        }
        self.fetch(on, offset, step.atomic(), Options::new())
    }

    fn poll_notification(&mut self) -> Option<Notification> {
        self.poll(|shared| shared.cluster.notification(self.node()))
    }

    fn wait_notification(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Notification, ReceiveError> {
        self.wait_or_died(timeout, |shared| shared.cluster.notification(self.node()).map(Ok))
    }

    fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        let mut shared = self.door.shared();
        let sent = shared.cluster.send(self.node(), to, tag, data);
        sent.map_err(|error| shared.refuse(self.number, error, Busy::MessageLaneFull))
    }

    fn send_wait(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Fault> {
        loop {
            match self.send(to, tag, data) {
                Ok(()) => return Ok(()),
                Err(PostError::Fault(fault)) => return Err(fault),
                Err(PostError::Busy(_)) => yield_now(),
            }
        }
    }

    fn try_recv(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        self.poll(|shared| Self::take_message(shared, self.number, into)).transpose()
    }

    fn recv(
        &mut self,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Message, ReceiveError> {
        self.wait_or_died(timeout, |shared| Self::take_message(shared, self.number, into))
    }

    // spec: QUE-1
    fn create_queue(&mut self, capacity: usize) -> Result<TimedQueue, SetupError> {
        let lines = capacity.div_ceil(LINE_PAYLOAD).max(LANE_LINES_MIN);
        if capacity == 0 || lines > LANE_LINES_MAX {
            return Err(SetupError::Invalid(format!("a queue of {capacity} bytes").into()));
        }
        let (port, lines) = (self.identity, lines as u32);
        Ok(TimedQueue { port, lines, producers: vec![], turn: 0 })
    }

    // spec: QUE-1, QUE-2
    fn share_queue(
        &mut self,
        peer: PeerId,
        queue: &mut TimedQueue,
        name: u64,
    ) -> Result<(), SetupError> {
        if queue.port != self.identity {
            return Err(SetupError::Invalid("the queue belongs to another port".into()));
        }
        let mut shared = self.door.shared();
        shared.check_peer(self.number, peer)?;
        let connection = shared.port(self.number).connection(peer)?.identity;
        queue.producers.retain(|it| it.peer != peer || it.connection == connection);
        if queue.producers.iter().any(|it| it.peer == peer) {
            return Err(SetupError::Invalid("the queue is shared with the peer already".into()));
        }
        let number = shared.cluster.offer_queue(self.node(), peer, name, queue.lines);
        let full = |_| SetupError::Exhausted("the peer has as many queues as it may".into());
        let number = number.map_err(full)?;
        queue.producers.push(Producer { peer, connection, number, record: None });
        Ok(())
    }

    fn accept_queue(&mut self, peer: PeerId, name: u64) -> Result<TimedRemoteQueue, SetupError> {
        let (connection, offer) = self.take_offer(peer, OfferKind::Queue, name)?;
        let [_, lines, number, ..] = offer.words;
        Ok(TimedRemoteQueue { peer, connection, number: number as usize, lines: lines as u32 })
    }

    // spec: QUE-10
    fn remove_producer(&mut self, queue: &mut TimedQueue, peer: PeerId) {
        queue.producers.retain(|producer| producer.peer != peer);
    }

    // spec: QUE-3, QUE-4
    fn enqueue(&mut self, queue: &mut TimedRemoteQueue, record: &[u8]) -> Result<(), PostError> {
        let mut shared = self.door.shared();
        let connection = shared.port(self.number).connection(queue.peer)?;
        if connection.identity != queue.connection {
            return Err(Fault::ForeignHandle.into());
        }
        let enqueued = shared.cluster.enqueue(self.node(), queue.peer, queue.number, record);
        enqueued.map_err(|error| shared.refuse(self.number, error, Busy::QueueFull))
    }

    fn dequeue(
        &mut self,
        queue: &mut TimedQueue,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        self.poll(|shared| Self::take_record(shared, self.number, queue, into)).transpose()
    }

    fn dequeue_wait(
        &mut self,
        queue: &mut TimedQueue,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Record, ReceiveError> {
        self.wait_or_died(timeout, |shared| Self::take_record(shared, self.number, queue, into))
    }
}

fn word(op: AtomicOp, operand: u64, compare: u64) -> Atomic {
    Atomic { width: Width::W64, op, operand, compare }
}

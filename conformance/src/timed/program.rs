//! The program of a node: how it waits, posts and takes.
use super::handles::{NO_KEY, TimedQueue, TimedRegion, TimedRemote};
use super::shared::{Door, Shared};
use crate::port::{Destination, Options, Slice, Source, Work};
use ayre::memory::{Key, Strided, Ticket};
use ayre::message::Record;
use ayre::{Busy, Fault, Message, PeerId, PostError, ReceiveError, SetupError};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status;
use ayre_proto::node::Order;
use ayre_proto::node::carrier::lanes::{Offer, OfferKind};
use ayre_proto::segment::Shape;
use ayre_proto::units::Claim;
use ayre_sim::cluster::Local;
use ayre_sim::time::Time;
use std::thread::yield_now;
use std::time::Duration;

/// The program of a node, as a port.
#[derive(Debug)]
pub struct TimedPort {
    pub(super) door: Door,
    pub(super) number: u16,
    /// Among all ports of this process.
    pub(super) identity: u64,
}

/// The port closes: its interface leaves its peers once all has arrived.
impl Drop for TimedPort {
    fn drop(&mut self) {
        let mut shared = self.door.shared();
        let state = shared.port(self.number);
        // Its number may be another port's by now.
        if state.is_open && state.identity == self.identity {
            shared.close(self.number);
        }
    }
}

/// The parts of an operation that differ from kind to kind.
pub(super) struct Posting {
    pub(super) action: Action,
    pub(super) shape: Shape,
    pub(super) local: Option<Local>,
}

impl TimedPort {
    /// Opens a port of this number in a world.
    pub(super) fn open(door: &Door, number: u16) -> Self {
        let identity = door.open(number);
        Self { door: door.clone(), number, identity }
    }

    pub(super) fn node(&self) -> u32 {
        self.number.into()
    }

    /// The host dies, and says nothing.
    pub(super) fn kill_host(self) {
        let mut shared = self.door.shared();
        shared.cluster.kill(self.node());
        shared.port_mut(self.number).is_open = false;
    }

    /// Looks until something is found. Time passes meanwhile, and other threads get their turns.
    pub(super) fn wait<T>(&self, mut look: impl FnMut(&mut Shared) -> Option<T>) -> T {
        loop {
            if let Some(found) = self.poll(&mut look) {
                return found;
            }
        }
    }

    /// Looks once. Time passes if nothing is found.
    pub(super) fn poll<T>(&self, look: impl FnOnce(&mut Shared) -> Option<T>) -> Option<T> {
        let mut shared = self.door.shared();
        shared.hear(self.number);
        let found = look(&mut shared);
        if found.is_none() {
            shared.pass(self.number);
            drop(shared);
            yield_now();
        }
        found
    }

    /// Looks until something is found, a death is to be reported, or the time is over.
    // spec: WAIT-1, LIFE-11
    pub(super) fn wait_or_died<T>(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut(&mut Shared) -> Option<Result<T, ReceiveError>>,
    ) -> Result<T, ReceiveError> {
        let ps = timeout.map(|time| u64::try_from(time.as_nanos() * 1_000).unwrap_or(u64::MAX));
        let now = self.door.shared().cluster.now();
        let end = ps.map(|ps| Time(now.0.saturating_add(ps)));
        self.wait(|shared| {
            let died = |shared: &mut Shared| {
                let died = shared.port_mut(self.number).died.pop();
                died.map(|peer| Err(ReceiveError::PeerDied(peer)))
            };
            let is_over = |shared: &mut Shared| end.is_some_and(|end| shared.cluster.now() >= end);
            look(shared)
                .or_else(|| died(shared))
                .or_else(|| is_over(shared).then_some(Err(ReceiveError::TimedOut)))
        })
    }

    // spec: CAP-6
    pub(super) fn check_own(&self, slice: &Slice<'_, TimedRegion>) -> Result<Local, Fault> {
        let Slice { region, offset, len } = *slice;
        assert!(offset + len <= region.len, "{len} bytes at {offset} of {}", region.len);
        match region.port == (self.number, self.identity) {
            true => Ok(Local::Region(region.number, offset as u64)),
            false => Err(Fault::ForeignHandle),
        }
    }

    /// Where a put's bytes come from. Those of the program are copied now.
    pub(super) fn source(&self, from: &Source<'_, TimedRegion>) -> Result<(Local, u64), Fault> {
        match from {
            Source::Bytes(bytes) => Ok((Local::Bytes(bytes.to_vec()), bytes.len() as u64)),
            Source::Region(slice) => Ok((self.check_own(slice)?, slice.len as u64)),
        }
    }

    pub(super) fn put_shape(
        &mut self,
        (to, offset): (&TimedRemote, u64),
        local: Local,
        shape: Shape,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let posting = Posting { action: Action::Put, shape, local: Some(local) };
        self.post((to, offset), posting, options)
    }

    /// Posts a get. It waits where the bytes are the program's.
    pub(super) fn get_shape(
        &mut self,
        (from, offset): (&TimedRemote, u64),
        into: Destination<'_, TimedRegion>,
        shape: Shape,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let posting = |local| Posting { action: Action::Get, shape, local: Some(local) };
        let bytes = match into {
            Destination::Bytes(bytes) => bytes,
            Destination::Region(slice) => {
                let local = self.check_own(&slice)?;
                return self.post((from, offset), posting(local), options);
            }
        };
        let mut shared = self.door.shared();
        let buffer = shared.cluster.program_mut(self.node()).add_buffer(bytes.to_vec());
        drop(shared);
        let landed = self.post_and_wait((from, offset), posting(Local::Buffer(buffer)), options);
        let landed_bytes = self.door.shared().cluster.program_mut(self.node()).take_buffer(buffer);
        let (ticket, ..) = landed?;
        bytes.copy_from_slice(&landed_bytes.expect("it was added"));
        Ok(ticket)
    }

    /// The command of an operation, checked against the handle.
    // spec: ERR-3, CAP-5, CAP-6
    pub(super) fn command(
        &self,
        (on, offset): (&TimedRemote, u64),
        (action, len): (Action, Option<u64>),
        options: Options,
    ) -> Result<Command, Fault> {
        let shared = self.door.shared();
        if shared.port(self.number).connection(on.peer)?.identity != on.connection {
            return Err(Fault::ForeignHandle);
        }
        let claim = Claim { key: on.key, offset, len: len.ok_or(Fault::Bounds)? };
        let Options { classes, tag, value } = options;
        let mut command = Command { action, classes, tag, value, claim };
        command.check()?;
        on.cover.check(&command.claim, command.rights())?;
        command.claim.offset += on.start;
        Ok(command)
    }

    pub(super) fn post(
        &mut self,
        on: (&TimedRemote, u64),
        posting: Posting,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let Posting { action, shape, local } = posting;
        let command = self.command(on, (action, shape.remote_span()), options)?;
        self.dispatch(on.0.peer, Order { command, shape, local }, false)
    }

    /// Posts an operation, and waits until it has ended: its value and status.
    // spec: NOTI-7, ERR-2
    pub(super) fn post_and_wait(
        &mut self,
        on: (&TimedRemote, u64),
        posting: Posting,
        options: Options,
    ) -> Result<(Ticket, u64, Status), PostError> {
        let Posting { action, shape, local } = posting;
        let command = self.command(on, (action, shape.remote_span()), options)?;
        let ticket = self.dispatch(on.0.peer, Order { command, shape, local }, true)?;
        let (status, value) = self.wait(|shared| shared.port_mut(self.number).outcome());
        match status.fault() {
            Some(fault) => Err(fault.into()),
            None => Ok((ticket, value, status)),
        }
    }

    /// Hands an operation to the node, and waits until all pieces of it have found room.
    // spec: PUT-4, GET-3
    pub(super) fn dispatch(
        &mut self,
        peer: PeerId,
        order: Order<Local>,
        is_awaited: bool,
    ) -> Result<Ticket, PostError> {
        let (number, node) = (self.number, self.node());
        let mut shared = self.door.shared();
        let posted = shared.cluster.post(node, peer, order);
        let ticket = posted.map_err(|error| shared.refuse(number, error, Busy::RequestLaneFull))?;
        if is_awaited {
            shared.port_mut(number).expect(peer, ticket);
        }
        let has_room = shared.cluster.has_room(node, peer);
        drop(shared);
        if !has_room {
            self.wait(|shared| shared.cluster.has_room(node, peer).then_some(()));
        }
        Ok(ticket)
    }

    /// Waits until all operations on a peer have ended.
    pub(super) fn wait_flushed(&self, peer: PeerId) {
        let (number, node) = (self.number, self.node());
        let mut asked = None;
        self.wait(|shared| {
            if shared.cluster.is_flushed(node, peer) {
                return Some(());
            }
            let ended = shared.port(number).ended;
            if asked.replace(ended) != Some(ended) {
                // The answer comes with the news that they have ended.
                _ = shared.cluster.flush(node, peer);
            }
            None
        });
    }

    /// The order of one operation of a batch.
    pub(super) fn order(
        &self,
        peer: PeerId,
        (work, options): &(Work<'_, Self>, Options),
    ) -> Result<Order<Local>, Fault> {
        let (on, action, shape, local) = match work {
            Work::Put { to, offset, from } => {
                let (local, len) = self.source(from)?;
                ((*to, *offset), Action::Put, Shape::contiguous(len), Some(local))
            }
            Work::Immediate { to, offset, value } => {
                ((*to, *offset), Action::Immediate(*value), Shape::contiguous(8), None)
            }
            Work::Atomic { on, offset, atomic } => {
                let shape = Shape::contiguous(atomic.width.bytes());
                ((*on, *offset), Action::Atomic(*atomic), shape, None)
            }
            Work::Notify => return Ok(notification_put(*options)),
        };
        if on.0.peer != peer {
            return Err(Fault::ForeignHandle);
        }
        let command = self.command(on, (action, shape.remote_span()), *options)?;
        Ok(Order { command, shape, local })
    }

    /// Revokes a key. Where that takes time, waits until the fence has ended.
    pub(super) fn end_key(&self, key: Key) -> Result<(), Fault> {
        let mut shared = self.door.shared();
        shared.cluster.revoke(self.node(), key)?;
        let is_over = shared.cluster.profile().pages.is_none();
        drop(shared);
        if is_over {
            return Ok(());
        }
        self.wait(|shared| {
            let fenced = &mut shared.port_mut(self.number).fenced;
            let place = fenced.iter().position(|(of, _)| *of == key)?;
            Some(fenced.remove(place).1)
        })
    }

    pub(super) fn check_region(&self, region: &TimedRegion) -> Result<(), SetupError> {
        if region.port != (self.number, self.identity) {
            return Err(SetupError::Invalid("the region belongs to another port".into()));
        }
        let is_there = self.door.shared().port(self.number).regions.contains_key(&region.number);
        let gone = || SetupError::Invalid("the region was deregistered".into());
        is_there.then_some(()).ok_or_else(gone)
    }

    pub(super) fn add_region(
        &mut self,
        bytes: Vec<u8>,
        is_sealed: bool,
    ) -> Result<TimedRegion, SetupError> {
        if bytes.is_empty() {
            return Err(SetupError::Invalid("a region has at least one byte".into()));
        }
        let len = bytes.len();
        let mut shared = self.door.shared();
        let number = shared.cluster.program_mut(self.node()).add_region(bytes);
        let number = number.map_err(|full| SetupError::Exhausted(full.to_string().into()))?;
        shared.port_mut(self.number).regions.insert(number, is_sealed);
        let port = (self.number, self.identity);
        Ok(TimedRegion { door: self.door.clone(), port, number, len })
    }

    /// Waits for an offer of a peer: the identity of the connection, and the offer.
    // spec: CAP-3, LIFE-11
    pub(super) fn take_offer(
        &self,
        peer: PeerId,
        kind: OfferKind,
        name: u64,
    ) -> Result<(u64, Offer), SetupError> {
        let number = self.number;
        let offer =
            self.wait(|shared| match shared.port_mut(number).take_offer(peer, kind, name) {
                Some(offer) => Some(Ok(offer)),
                None => shared.check_peer(number, peer).err().map(Err),
            })?;
        let connection = self.door.shared().port(number).connection(peer)?.identity;
        Ok((connection, offer))
    }

    /// The next message of the peer whose turn it is, or of the others.
    // spec: MSG-3, MSG-8, MSG-9
    pub(super) fn take_message(
        shared: &mut Shared,
        number: u16,
        into: &mut [u8],
    ) -> Option<Result<Message, ReceiveError>> {
        let turn = shared.port(number).turn;
        let mut peers: Vec<_> = shared.port(number).connections.keys().copied().collect();
        let first = peers.partition_point(|peer| peer.0 < turn);
        peers.rotate_left(first);
        for source in peers {
            let kept = |shared: &mut Shared| {
                shared.port_mut(number).connections.get_mut(&source)?.message.take()
            };
            let next = |shared: &mut Shared| shared.cluster.receive(number.into(), source);
            let Some(message) = kept(shared).or_else(|| next(shared)) else { continue };
            let (tag, len) = (message.tag, message.bytes.len());
            let Some(place) = into.get_mut(..len) else {
                let connection = shared.port_mut(number).connections.get_mut(&source)?;
                connection.message = Some(message);
                return Some(Err(ReceiveError::TooLong(len)));
            };
            place.copy_from_slice(&message.bytes);
            shared.port_mut(number).turn = source.0.saturating_add(1);
            return Some(Ok(Message { source, tag, len }));
        }
        None
    }

    /// The next record of the producer whose turn it is, or of the others.
    // spec: QUE-5, QUE-7, QUE-8
    pub(super) fn take_record(
        shared: &mut Shared,
        number: u16,
        queue: &mut TimedQueue,
        into: &mut [u8],
    ) -> Option<Result<Record, ReceiveError>> {
        let count = queue.producers.len();
        for place in (0..count).map(|ahead| (queue.turn + ahead) % count) {
            let producer = &mut queue.producers[place];
            let (source, lane) = (producer.peer, producer.number);
            let connection = shared.port(number).connection(source);
            let is_there = connection.is_ok_and(|it| it.identity == producer.connection);
            let next = || shared.cluster.dequeue(number.into(), source, lane);
            let record = producer.record.take().or_else(|| is_there.then(next).flatten());
            let Some(record) = record else { continue };
            let len = record.len();
            let Some(into) = into.get_mut(..len) else {
                producer.record = Some(record);
                return Some(Err(ReceiveError::TooLong(len)));
            };
            into.copy_from_slice(&record);
            queue.turn = place + 1;
            return Some(Ok(Record { source, len }));
        }
        None
    }
}

pub(super) fn notification_put(options: Options) -> Order<Local> {
    let Options { classes, tag, value } = options;
    let claim = Claim { key: NO_KEY, offset: 0, len: 0 };
    let command = Command { action: Action::Notify, classes, tag, value, claim };
    Order { command, shape: Shape::contiguous(0), local: None }
}

/// Checks that rows lie within the local buffer, and do not overlap in the destination.
// spec: STR-2, STR-3
pub(super) fn check_rows(shape: &Shape, landing_stride: u64, len: u64) -> Result<(), Fault> {
    if shape.rows > 1 && landing_stride < shape.row_len {
        return Err(Fault::Malformed);
    }
    match shape.local_span() {
        Some(span) if span <= len => Ok(()),
        _ => Err(Fault::Bounds),
    }
}

pub(super) fn shape(rows: Strided) -> Shape {
    let Strided { row_len, rows, local_stride, remote_stride } = rows;
    Shape { row_len, rows, local_stride, remote_stride }
}

pub(super) fn space(into: &Destination<'_, TimedRegion>) -> u64 {
    match into {
        Destination::Bytes(bytes) => bytes.len() as u64,
        Destination::Region(slice) => slice.len as u64,
    }
}

//! The engine's ports, as the suite's.
use crate::port::{
    Batch, Counted, Destination, Grant, Lock, Options, Port, Queue, Region, RegionOptions,
    RemoteQueue, RemoteRegion, Slice, Source, Work,
};
use ayre::memory::{Atomic, EpochStep, Fenced, Fetched, Key, LockMode, Strided, Ticket};
use ayre::message::Record;
use ayre::{
    Fault, Message, Mode, Notification, PeerId, PostError, ReceiveError, Rights, SetupError,
};
use std::ops::Range;
use std::time::Duration;

impl From<Options> for ayre::PostOptions {
    fn from(options: Options) -> Self {
        Self::new().notify(options.classes).tag(options.tag).value(options.value)
    }
}

impl From<RegionOptions> for ayre::RegionOptions {
    fn from(options: RegionOptions) -> Self {
        if options.sealed { Self::new().sealed() } else { Self::new() }
    }
}

impl<'a> From<Slice<'a, ayre::Region>> for ayre::memory::LocalSlice<'a> {
    fn from(slice: Slice<'a, ayre::Region>) -> Self {
        slice.region.slice(slice.offset..slice.offset + slice.len)
    }
}

impl<'a> From<Source<'a, ayre::Region>> for ayre::memory::PutSource<'a> {
    fn from(source: Source<'a, ayre::Region>) -> Self {
        match source {
            Source::Bytes(bytes) => Self::Bytes(bytes),
            Source::Region(slice) => Self::Region(slice.into()),
        }
    }
}

impl<'a> From<Destination<'a, ayre::Region>> for ayre::memory::GetDestination<'a> {
    fn from(destination: Destination<'a, ayre::Region>) -> Self {
        match destination {
            Destination::Bytes(bytes) => Self::Bytes(bytes),
            Destination::Region(slice) => Self::Region(slice.into()),
        }
    }
}

impl Port for ayre::Port {
    type Region = ayre::Region;
    type RemoteRegion = ayre::RemoteRegion;
    type Grant = ayre::memory::Grant;
    type Queue = ayre::Queue;
    type RemoteQueue = ayre::RemoteQueue;
    type Lock<'a> = ayre::memory::Lock<'a>;

    fn rank(&self) -> usize {
        Self::rank(self)
    }

    fn peers(&self) -> impl Iterator<Item = PeerId> {
        Self::peers(self)
    }

    fn mode(&self, peer: PeerId) -> Result<Mode, Fault> {
        Self::mode(self, peer)
    }

    fn is_alive(&self, peer: PeerId) -> bool {
        Self::is_alive(self, peer)
    }

    fn connect_loopback(&mut self) -> Result<PeerId, SetupError> {
        Self::connect_loopback(self)
    }

    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        Self::disconnect(self, peer)
    }

    fn leave(self) -> Result<(), Fault> {
        Self::leave(self)
    }

    fn progress(&mut self) {
        Self::progress(self)
    }

    fn count(&self, what: Counted) -> u64 {
        let counters = self.counters();
        match what {
            Counted::Busy(busy) => counters.busy(busy),
            Counted::Fault(fault) => counters.faults(fault),
            Counted::Malformed => counters.malformed(),
        }
    }

    fn alloc(&mut self, len: usize, options: RegionOptions) -> Result<Self::Region, SetupError> {
        Self::alloc(self, len, options.into())
    }

    fn register(&mut self, words: Vec<u64>) -> Result<Self::Region, SetupError> {
        Self::register(self, words)
    }

    fn deregister(&mut self, region: &Self::Region) -> Result<(), SetupError> {
        Self::deregister(self, region)
    }

    fn share(
        &mut self,
        peer: PeerId,
        region: &Self::Region,
        part: Range<usize>,
        rights: Rights,
        name: u64,
    ) -> Result<Self::Grant, SetupError> {
        Self::share(self, peer, region, part, rights, name)
    }

    fn accept_region(&mut self, peer: PeerId, name: u64) -> Result<Self::RemoteRegion, SetupError> {
        Self::accept_region(self, peer, name)
    }

    fn revoke(&mut self, grant: Self::Grant) -> Result<Fenced, SetupError> {
        Self::revoke(self, grant)
    }

    fn put<'a>(
        &mut self,
        to: &Self::RemoteRegion,
        offset: u64,
        from: impl Into<Source<'a, Self::Region>>,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let from: Source<'a, ayre::Region> = from.into();
        Self::put(self, to, offset, from, options.into())
    }

    fn put_strided<'a>(
        &mut self,
        to: &Self::RemoteRegion,
        offset: u64,
        from: impl Into<Source<'a, Self::Region>>,
        shape: Strided,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let from: Source<'a, ayre::Region> = from.into();
        Self::put_strided(self, to, offset, from, shape, options.into())
    }

    fn get<'a>(
        &mut self,
        from: &Self::RemoteRegion,
        offset: u64,
        into: impl Into<Destination<'a, Self::Region>>,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let into: Destination<'a, ayre::Region> = into.into();
        Self::get(self, from, offset, into, options.into())
    }

    fn get_strided<'a>(
        &mut self,
        from: &Self::RemoteRegion,
        offset: u64,
        into: impl Into<Destination<'a, Self::Region>>,
        shape: Strided,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let into: Destination<'a, ayre::Region> = into.into();
        Self::get_strided(self, from, offset, into, shape, options.into())
    }

    fn put_immediate(
        &mut self,
        to: &Self::RemoteRegion,
        offset: u64,
        value: u64,
        options: Options,
    ) -> Result<Ticket, PostError> {
        Self::put_immediate(self, to, offset, value, options.into())
    }

    fn notify(&mut self, peer: PeerId, options: Options) -> Result<Ticket, PostError> {
        Self::notify(self, peer, options.into())
    }

    fn atomic(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> Result<Ticket, PostError> {
        Self::atomic(self, on, offset, atomic, options.into())
    }

    fn fetch(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> Result<Fetched, PostError> {
        Self::fetch(self, on, offset, atomic, options.into())
    }

    fn fetch_add(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        add: u64,
    ) -> Result<u64, PostError> {
        Self::fetch_add(self, on, offset, add)
    }

    fn compare_swap(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        compare: u64,
        new: u64,
    ) -> Result<Fetched, PostError> {
        Self::compare_swap(self, on, offset, compare, new)
    }

    fn fcaa(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        compare: i64,
        add: i64,
    ) -> Result<Fetched, PostError> {
        Self::fcaa(self, on, offset, compare, add)
    }

    fn release(&mut self, batch: &Batch<'_, Self>) -> Result<Option<Ticket>, PostError> {
        let mut engines = ayre::memory::Batch::new(batch.peer);
        for (work, options) in &batch.entries {
            let options = ayre::PostOptions::from(*options);
            match work {
                Work::Put { to, offset, from } => {
                    engines.put(to, *offset, ayre::memory::PutSource::from(from.clone()), options)
                }
                Work::Immediate { to, offset, value } => {
                    engines.put_immediate(to, *offset, *value, options)
                }
                Work::Atomic { on, offset, atomic } => {
                    engines.atomic(on, *offset, *atomic, options)
                }
                Work::Notify => engines.notify(options),
            };
        }
        Self::release(self, &engines)
    }

    fn flush(&mut self, peer: PeerId) -> Result<(), Fault> {
        Self::flush(self, peer)
    }

    fn is_flushed(&self, peer: PeerId) -> bool {
        Self::is_flushed(self, peer)
    }

    fn barrier(&mut self) -> Result<(), Fault> {
        Self::barrier(self)
    }

    fn lock(on: &Self::RemoteRegion, offset: u64, processes: u32) -> Self::Lock<'_> {
        ayre::memory::Lock::new(on, offset, processes)
    }

    fn try_epoch_step(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        step: EpochStep,
    ) -> Result<Fetched, PostError> {
        ayre::memory::try_epoch_step(self, on, offset, step)
    }

    fn poll_notification(&mut self) -> Option<Notification> {
        Self::poll_notification(self)
    }

    fn wait_notification(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Notification, ReceiveError> {
        Self::wait_notification(self, timeout)
    }

    fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        Self::send(self, to, tag, data)
    }

    fn send_wait(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Fault> {
        Self::send_wait(self, to, tag, data)
    }

    fn try_recv(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        Self::try_recv(self, into)
    }

    fn recv(
        &mut self,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Message, ReceiveError> {
        Self::recv(self, into, timeout)
    }

    fn create_queue(&mut self, capacity: usize) -> Result<Self::Queue, SetupError> {
        Self::create_queue(self, capacity)
    }

    fn share_queue(
        &mut self,
        peer: PeerId,
        queue: &mut Self::Queue,
        name: u64,
    ) -> Result<(), SetupError> {
        Self::share_queue(self, peer, queue, name)
    }

    fn accept_queue(&mut self, peer: PeerId, name: u64) -> Result<Self::RemoteQueue, SetupError> {
        Self::accept_queue(self, peer, name)
    }

    fn remove_producer(&mut self, queue: &mut Self::Queue, peer: PeerId) {
        Self::remove_producer(self, queue, peer)
    }

    fn enqueue(&mut self, queue: &mut Self::RemoteQueue, record: &[u8]) -> Result<(), PostError> {
        Self::enqueue(self, queue, record)
    }

    fn dequeue(
        &mut self,
        queue: &mut Self::Queue,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError> {
        Self::dequeue(self, queue, into)
    }

    fn dequeue_wait(
        &mut self,
        queue: &mut Self::Queue,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Record, ReceiveError> {
        Self::dequeue_wait(self, queue, into, timeout)
    }
}

impl Region for ayre::Region {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    fn write(&self, offset: usize, from: &[u8]) {
        Self::write(self, offset, from);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        Self::read(self, offset, into);
    }

    fn load(&self, offset: usize) -> u64 {
        Self::load(self, offset)
    }

    fn store(&self, offset: usize, value: u64) {
        Self::store(self, offset, value);
    }

    fn atomic(&self, offset: usize, atomic: &Atomic) -> Fetched {
        Self::atomic(self, offset, atomic)
    }
}

impl RemoteRegion for ayre::RemoteRegion {
    fn peer(&self) -> PeerId {
        Self::peer(self)
    }

    fn len(&self) -> u64 {
        Self::len(self)
    }

    fn rights(&self) -> Rights {
        Self::rights(self)
    }

    fn key(&self) -> Key {
        Self::key(self)
    }

    fn narrow(&self, part: Range<u64>, rights: Rights) -> Result<Self, Fault> {
        Self::narrow(self, part, rights)
    }
}

impl Grant for ayre::memory::Grant {
    fn peer(&self) -> PeerId {
        Self::peer(self)
    }

    fn key(&self) -> Key {
        Self::key(self)
    }
}

impl Queue for ayre::Queue {
    fn record_max(&self) -> usize {
        Self::record_max(self)
    }

    fn producers(&self) -> impl Iterator<Item = PeerId> {
        Self::producers(self)
    }
}

impl RemoteQueue for ayre::RemoteQueue {
    fn peer(&self) -> PeerId {
        Self::peer(self)
    }

    fn record_max(&self) -> usize {
        Self::record_max(self)
    }
}

impl Lock<ayre::Port> for ayre::memory::Lock<'_> {
    fn held(&self) -> Option<LockMode> {
        Self::held(self)
    }

    fn try_lock(&mut self, port: &mut ayre::Port, hold: LockMode) -> Result<bool, PostError> {
        Self::try_lock(self, port, hold)
    }

    fn lock(&mut self, port: &mut ayre::Port, hold: LockMode) -> Result<(), Fault> {
        Self::lock(self, port, hold)
    }

    fn unlock(&mut self, port: &mut ayre::Port) -> Result<(), PostError> {
        Self::unlock(self, port)
    }
}

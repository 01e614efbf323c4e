//! The suite's interface to ports: the trait over which cases are written.
//!
//! An implementation is a library under test, or a driver that passes each call on to one: to
//! another language, another process, a model. So only plain data crosses the trait: numbers,
//! bytes, and handles that mean something to the implementation that has given them out, and can
//! be as little as a number. Faults and refusals are values of the contract, by the names and codes
//! of `spec/`.
use ayre::memory::{Atomic, Classes, EpochStep, Fenced, Fetched, Key, LockMode, Strided, Ticket};
use ayre::message::Record;
use ayre::{
    Busy, Fault, Message, Mode, Notification, PeerId, PostError, ReceiveError, Rights, SetupError,
};
use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

/// One port, as its program sees it. A call that has to wait makes progress meanwhile, and so does
/// every poll; none needs another thread of the same program.
pub trait Port: Debug + Send + Sized {
    /// Memory of this port.
    type Region: Region + 'static;
    /// A capability that was accepted: memory of a peer.
    type RemoteRegion: RemoteRegion + 'static;
    /// The owner's record of a capability that it has given.
    type Grant: Grant;
    /// A queue at its consumer.
    type Queue: Queue;
    /// A queue at a producer.
    type RemoteQueue: RemoteQueue;
    /// A handle on a lock word.
    type Lock<'a>: Lock<Self>
    where
        Self: 'a;

    /// The port's number.
    fn rank(&self) -> usize;
    /// The numbers of its peers.
    fn peers(&self) -> impl Iterator<Item = PeerId>;
    /// How operations on a peer are carried out.
    fn mode(&self, peer: PeerId) -> Result<Mode, Fault>;
    /// Whether a peer is connected, as far as is known.
    fn is_alive(&self, peer: PeerId) -> bool;
    /// Connects the port with itself.
    fn connect_loopback(&mut self) -> Result<PeerId, SetupError>;
    /// Ends a connection and forgets it.
    fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault>;
    /// Lets all operations end, and closes the port.
    fn leave(self) -> Result<(), Fault>;
    /// Serves peers, and takes in what has come.
    fn progress(&mut self);
    /// How often this has happened.
    fn count(&self, what: Counted) -> u64;

    /// Allocates zeroed memory.
    fn alloc(&mut self, len: usize, options: RegionOptions) -> Result<Self::Region, SetupError>;
    /// Memory that the program brings.
    fn register(&mut self, words: Vec<u64>) -> Result<Self::Region, SetupError>;
    /// Takes memory back, and revokes its grants.
    fn deregister(&mut self, region: &Self::Region) -> Result<(), SetupError>;
    /// Grants a part of a region to a peer, under a name.
    fn share(
        &mut self,
        peer: PeerId,
        region: &Self::Region,
        part: Range<usize>,
        rights: Rights,
        name: u64,
    ) -> Result<Self::Grant, SetupError>;
    /// Accepts what a peer has granted under a name; waits for it.
    fn accept_region(&mut self, peer: PeerId, name: u64) -> Result<Self::RemoteRegion, SetupError>;
    /// Takes a grant back: when it returns, nothing lands any more.
    fn revoke(&mut self, grant: Self::Grant) -> Result<Fenced, SetupError>;

    /// Writes bytes into memory of a peer.
    fn put<'a>(
        &mut self,
        to: &Self::RemoteRegion,
        offset: u64,
        from: impl Into<Source<'a, Self::Region>>,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Writes rows.
    fn put_strided<'a>(
        &mut self,
        to: &Self::RemoteRegion,
        offset: u64,
        from: impl Into<Source<'a, Self::Region>>,
        shape: Strided,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Reads bytes from memory of a peer; waits for private bytes.
    fn get<'a>(
        &mut self,
        from: &Self::RemoteRegion,
        offset: u64,
        into: impl Into<Destination<'a, Self::Region>>,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Reads rows.
    fn get_strided<'a>(
        &mut self,
        from: &Self::RemoteRegion,
        offset: u64,
        into: impl Into<Destination<'a, Self::Region>>,
        shape: Strided,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Writes eight bytes, aligned.
    fn put_immediate(
        &mut self,
        to: &Self::RemoteRegion,
        offset: u64,
        value: u64,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Raises a notification at a peer.
    fn notify(&mut self, peer: PeerId, options: Options) -> Result<Ticket, PostError>;
    /// Updates a word, without waiting for its value.
    fn atomic(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Updates a word, and waits for its value.
    fn fetch(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> Result<Fetched, PostError>;
    /// Adds to a word; its value before.
    fn fetch_add(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        add: u64,
    ) -> Result<u64, PostError>;
    /// Replaces a word that has a value.
    fn compare_swap(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        compare: u64,
        new: u64,
    ) -> Result<Fetched, PostError>;
    /// Fetch-compare-and-add.
    fn fcaa(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        compare: i64,
        add: i64,
    ) -> Result<Fetched, PostError>;
    /// Posts a batch whole, or not at all.
    fn release(&mut self, batch: &Batch<'_, Self>) -> Result<Option<Ticket>, PostError>;
    /// Waits until all operations on a peer have ended; the first fault since the last flush.
    fn flush(&mut self, peer: PeerId) -> Result<(), Fault>;
    /// Whether they have.
    fn is_flushed(&self, peer: PeerId) -> bool;
    /// Lets all operations end, and waits for all peers.
    fn barrier(&mut self) -> Result<(), Fault>;
    /// A handle for the lock in this word, for `processes` processes.
    fn lock(on: &Self::RemoteRegion, offset: u64, processes: u32) -> Self::Lock<'_>;
    /// Takes a step of an access epoch, if it is its turn.
    fn try_epoch_step(
        &mut self,
        on: &Self::RemoteRegion,
        offset: u64,
        step: EpochStep,
    ) -> Result<Fetched, PostError>;

    /// The next notification, if one is found.
    fn poll_notification(&mut self) -> Option<Notification>;
    /// Waits for a notification.
    fn wait_notification(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Notification, ReceiveError>;
    /// Sends a short message, if there is room.
    fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError>;
    /// Sends it when there is room.
    fn send_wait(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Fault>;
    /// The next message, if one is found.
    fn try_recv(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError>;
    /// Waits for a message.
    fn recv(&mut self, into: &mut [u8], timeout: Option<Duration>)
    -> Result<Message, ReceiveError>;

    /// Makes a queue, without producers.
    fn create_queue(&mut self, capacity: usize) -> Result<Self::Queue, SetupError>;
    /// Makes a peer a producer, under a name.
    fn share_queue(
        &mut self,
        peer: PeerId,
        queue: &mut Self::Queue,
        name: u64,
    ) -> Result<(), SetupError>;
    /// Accepts being a producer; waits for it.
    fn accept_queue(&mut self, peer: PeerId, name: u64) -> Result<Self::RemoteQueue, SetupError>;
    /// Takes that back.
    fn remove_producer(&mut self, queue: &mut Self::Queue, peer: PeerId);
    /// Adds a record, if there is room.
    fn enqueue(&mut self, queue: &mut Self::RemoteQueue, record: &[u8]) -> Result<(), PostError>;
    /// Takes the next record, if one is found.
    fn dequeue(
        &mut self,
        queue: &mut Self::Queue,
        into: &mut [u8],
    ) -> Result<Option<Record>, ReceiveError>;
    /// Waits for a record.
    fn dequeue_wait(
        &mut self,
        queue: &mut Self::Queue,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Record, ReceiveError>;
}

/// Memory at its owner. Clones are the same memory; any thread of the program may use it.
pub trait Region: Clone + Debug + Send + Sync {
    /// Bytes.
    fn len(&self) -> usize;
    /// Whether it has none.
    fn is_empty(&self) -> bool;
    /// Writes bytes, of a place inside.
    fn write(&self, offset: usize, from: &[u8]);
    /// Reads them.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// A word, in one access.
    fn load(&self, offset: usize) -> u64;
    /// Stores a word, in one access.
    fn store(&self, offset: usize, value: u64);
    /// The owner's own atomic.
    fn atomic(&self, offset: usize, atomic: &Atomic) -> Fetched;

    /// A part of it as the local buffer of an operation.
    fn slice(&self, range: Range<usize>) -> Slice<'_, Self> {
        Slice { region: self, offset: range.start, len: range.end - range.start }
    }
}

/// Memory of a peer, as its holder knows it.
pub trait RemoteRegion: Debug + Send + Sync {
    /// The peer's number.
    fn peer(&self) -> PeerId;
    /// Bytes.
    fn len(&self) -> u64;
    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Its rights.
    fn rights(&self) -> Rights;
    /// The key that the peer knows it by.
    fn key(&self) -> Key;
    /// A handle that reaches only `part`, with only these of its rights.
    fn narrow(&self, part: Range<u64>, rights: Rights) -> Result<Self, Fault>
    where
        Self: Sized;
}

/// A capability that a port has granted.
pub trait Grant: Debug + Send + Sync {
    /// The peer's number.
    fn peer(&self) -> PeerId;
    /// The key that the peer knows it by.
    fn key(&self) -> Key;
}

/// A queue at its consumer.
pub trait Queue: Debug + Send {
    /// Bytes of the longest record.
    fn record_max(&self) -> usize;
    /// The numbers of its producers.
    fn producers(&self) -> impl Iterator<Item = PeerId>;
}

/// A queue at a producer.
pub trait RemoteQueue: Debug + Send {
    /// The peer's number.
    fn peer(&self) -> PeerId;
    /// Bytes of the longest record.
    fn record_max(&self) -> usize;
}

/// A handle on a lock word, which knows how it holds it.
pub trait Lock<P> {
    /// How the lock is held by this handle.
    fn held(&self) -> Option<LockMode>;
    /// Takes the lock if it is free.
    fn try_lock(&mut self, port: &mut P, hold: LockMode) -> Result<bool, PostError>;
    /// Waits until it is free, and takes it.
    fn lock(&mut self, port: &mut P, hold: LockMode) -> Result<(), Fault>;
    /// Lets it go, when all operations have ended.
    fn unlock(&mut self, port: &mut P) -> Result<(), PostError>;
}

/// A count of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Refusals by reason.
    Busy(Busy),
    /// Faults by kind.
    Fault(Fault),
    /// Malformed input.
    Malformed,
}

/// The options of an operation: its notifications, their tag and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Notifications that are asked for.
    pub classes: Classes,
    /// Their tag.
    pub tag: u32,
    /// Their value.
    pub value: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// No notifications.
    pub fn new() -> Self {
        Self { classes: Classes::empty(), tag: 0, value: 0 }
    }

    /// With these notifications, too.
    pub fn notify(self, classes: Classes) -> Self {
        Self { classes: self.classes | classes, ..self }
    }

    /// With one here, when it has ended.
    pub fn requester(self) -> Self {
        self.notify(Classes::REQUESTER)
    }

    /// With one where data lands.
    pub fn completer(self) -> Self {
        self.notify(Classes::COMPLETER)
    }

    /// With one where data was read.
    pub fn responder(self) -> Self {
        self.notify(Classes::RESPONDER)
    }

    /// With a tag.
    pub fn tag(self, tag: u32) -> Self {
        Self { tag, ..self }
    }

    /// With a value.
    pub fn value(self, value: u64) -> Self {
        Self { value, ..self }
    }
}

/// How memory is allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionOptions {
    /// Peers may read it and never write it.
    pub sealed: bool,
}

impl RegionOptions {
    /// Memory for everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sealed memory.
    pub fn sealed(self) -> Self {
        Self { sealed: true }
    }
}

/// A part of a region as the local buffer of an operation.
#[derive(Debug)]
pub struct Slice<'a, R> {
    /// The region, of the port that posts.
    pub region: &'a R,
    /// Where the part begins.
    pub offset: usize,
    /// Its bytes.
    pub len: usize,
}

impl<R> Clone for Slice<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Slice<'_, R> {}

/// Where an operation takes its bytes from.
#[derive(Clone, Debug)]
pub enum Source<'a, R> {
    /// Bytes of the program.
    Bytes(&'a [u8]),
    /// A part of a region.
    Region(Slice<'a, R>),
}

/// Where an operation brings bytes to.
#[derive(Debug)]
pub enum Destination<'a, R> {
    /// Bytes of the program.
    Bytes(&'a mut [u8]),
    /// A part of a region.
    Region(Slice<'a, R>),
}

impl<'a, R> From<&'a [u8]> for Source<'a, R> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, R, const N: usize> From<&'a [u8; N]> for Source<'a, R> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, R> From<&'a Vec<u8>> for Source<'a, R> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, R> From<Slice<'a, R>> for Source<'a, R> {
    fn from(slice: Slice<'a, R>) -> Self {
        Self::Region(slice)
    }
}

impl<'a, R> From<&'a mut [u8]> for Destination<'a, R> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, R, const N: usize> From<&'a mut [u8; N]> for Destination<'a, R> {
    fn from(bytes: &'a mut [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, R> From<&'a mut Vec<u8>> for Destination<'a, R> {
    fn from(bytes: &'a mut Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, R> From<Slice<'a, R>> for Destination<'a, R> {
    fn from(slice: Slice<'a, R>) -> Self {
        Self::Region(slice)
    }
}

/// Operations on one peer's memory that are to be posted together.
#[derive(Debug)]
pub struct Batch<'a, P: Port> {
    /// The peer.
    pub peer: PeerId,
    /// In posted order.
    pub entries: Vec<(Work<'a, P>, Options)>,
}

/// One operation of a batch.
#[derive(Debug)]
pub enum Work<'a, P: Port> {
    /// A put.
    Put {
        /// Of the batch's peer, as in all others.
        to: &'a P::RemoteRegion,
        /// Place in it.
        offset: u64,
        /// The source.
        from: Source<'a, P::Region>,
    },
    /// An immediate put.
    Immediate {
        /// The memory.
        to: &'a P::RemoteRegion,
        /// Place in it.
        offset: u64,
        /// The value to write.
        value: u64,
    },
    /// An atomic that fetches nothing.
    Atomic {
        /// The memory.
        on: &'a P::RemoteRegion,
        /// Place in it.
        offset: u64,
        /// The operation.
        atomic: Atomic,
    },
    /// A notification put.
    Notify,
}

impl<'a, P: Port> Batch<'a, P> {
    /// An empty one.
    pub fn new(peer: PeerId) -> Self {
        Self { peer, entries: Vec::new() }
    }

    /// Adds a put.
    pub fn put(
        &mut self,
        to: &'a P::RemoteRegion,
        offset: u64,
        from: impl Into<Source<'a, P::Region>>,
        options: Options,
    ) -> &mut Self {
        self.push(Work::Put { to, offset, from: from.into() }, options)
    }

    /// Adds an immediate put.
    pub fn put_immediate(
        &mut self,
        to: &'a P::RemoteRegion,
        offset: u64,
        value: u64,
        options: Options,
    ) -> &mut Self {
        self.push(Work::Immediate { to, offset, value }, options)
    }

    /// Adds an atomic.
    pub fn atomic(
        &mut self,
        on: &'a P::RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: Options,
    ) -> &mut Self {
        self.push(Work::Atomic { on, offset, atomic }, options)
    }

    /// Adds a notification put.
    pub fn notify(&mut self, options: Options) -> &mut Self {
        self.push(Work::Notify, options)
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn push(&mut self, work: Work<'a, P>, options: Options) -> &mut Self {
        self.entries.push((work, options));
        self
    }
}

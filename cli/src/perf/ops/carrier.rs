//! Ways to bring bytes or a word from one rank to the other: messages of the library, and puts that
//! the target notices.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::Result;
use ayre::{PeerId, Port, PostOptions, Queue, Region, RemoteQueue, RemoteRegion};

use super::super::case::Path;
use super::super::side::buffer::Buffer;
use super::super::side::shared::LINE;
use super::pair::{End, Pair, good, place};
use super::posted;

/// Both halves of a transfer, neither of which waits.
pub(crate) trait Carrier {
    /// Makes ready for `size` bytes.
    fn prepare(&mut self, size: usize);

    /// Sends once. False where there is no room.
    fn try_send(&mut self, port: &mut Port) -> Result<bool>;

    /// Polls once, and reads what has come. False where nothing has.
    fn try_receive(&mut self, port: &mut Port) -> Result<bool>;
}

/// A message to the mailbox.
pub(crate) struct Message {
    to: PeerId,
    source: Buffer,
    sink: Buffer,
}

impl Message {
    pub(crate) fn new(end: &End) -> Self {
        Self { to: end.peer, source: Buffer::default(), sink: Buffer::default() }
    }
}

impl Carrier for Message {
    fn prepare(&mut self, size: usize) {
        (self.source, self.sink) = (Buffer::new(size), Buffer::new(size));
    }

    #[inline(always)]
    fn try_send(&mut self, port: &mut Port) -> Result<bool> {
        posted(port.send(self.to, 0, black_box(&*self.source)))
    }

    #[inline(always)]
    fn try_receive(&mut self, port: &mut Port) -> Result<bool> {
        let message = port.try_recv(&mut self.sink)?;
        black_box(&mut *self.sink);
        Ok(message.is_some())
    }
}

/// A put with a completer notification, whose value says where. The target polls for that, then
/// reads what was put.
pub(crate) struct PutNotify {
    to: RemoteRegion,
    region: Region,
    source: Buffer,
    sink: Buffer,
    places: usize,
    place: usize,
}

impl PutNotify {
    /// Puts to `places` in turn. One place is written again and again; with many, none is written
    /// while it may still be read.
    pub(crate) fn new(pair: &Pair, end: &End, places: usize) -> Self {
        let (to, region) = (end.memory.clone(), pair.region.clone());
        let (source, sink) = (Buffer::default(), Buffer::default());
        Self { to, region, source, sink, places, place: 0 }
    }

    /// Bytes from place to place: as from line to line in a ring, so that two are never fetched
    /// together.
    fn stride(&self) -> usize {
        self.source.len().next_multiple_of(2 * LINE)
    }
}

impl Carrier for PutNotify {
    fn prepare(&mut self, size: usize) {
        (self.source, self.sink) = (Buffer::new(size), Buffer::new(size));
    }

    #[inline(always)]
    fn try_send(&mut self, port: &mut Port) -> Result<bool> {
        let at = (place::BULK + self.place * self.stride()) as u64;
        let options = PostOptions::new().completer().value(at);
        let sent = posted(port.put(&self.to, at, black_box(&*self.source), options))?;
        if sent {
            self.place = (self.place + 1) % self.places;
        }
        Ok(sent)
    }

    #[inline(always)]
    fn try_receive(&mut self, port: &mut Port) -> Result<bool> {
        let Some(notification) = port.poll_notification() else { return Ok(false) };
        good(&notification)?;
        self.region.read(notification.value as usize, &mut self.sink);
        black_box(&mut *self.sink);
        Ok(true)
    }
}

/// A put alone. The target polls the last word of where it lands: a test of speed, since only a
/// notification promises that everything has landed.
pub(crate) struct Put {
    pair: Rc<Pair>,
    source: Buffer,
    sent: u64,
    received: u64,
}

impl Put {
    pub(crate) fn new(pair: &Rc<Pair>) -> Self {
        Self { pair: pair.clone(), source: Buffer::default(), sent: 0, received: 0 }
    }
}

impl Carrier for Put {
    fn prepare(&mut self, size: usize) {
        self.source = Buffer::new(size.next_multiple_of(8));
    }

    #[inline(always)]
    fn try_send(&mut self, port: &mut Port) -> Result<bool> {
        let last = self.source.len() - 8;
        self.source[last..].copy_from_slice(&(self.sent + 1).to_le_bytes());
        let (at, source) = (place::BULK as u64, black_box(&*self.source));
        let sent = posted(port.put(&self.pair.other.memory, at, source, PostOptions::new()))?;
        self.sent += u64::from(sent);
        Ok(sent)
    }

    #[inline(always)]
    fn try_receive(&mut self, port: &mut Port) -> Result<bool> {
        let last = place::BULK + self.source.len() - 8;
        Ok(word_has_come(&self.pair, port, last, &mut self.received))
    }
}

/// Eight bytes that travel in the command. The target polls where they land.
pub(crate) struct ImmediatePut {
    pair: Rc<Pair>,
    sent: u64,
    received: u64,
}

impl ImmediatePut {
    pub(crate) fn new(pair: &Rc<Pair>) -> Self {
        Self { pair: pair.clone(), sent: 0, received: 0 }
    }
}

impl Carrier for ImmediatePut {
    fn prepare(&mut self, _size: usize) {}

    #[inline(always)]
    fn try_send(&mut self, port: &mut Port) -> Result<bool> {
        let (to, at) = (&self.pair.other.memory, place::IMMEDIATE as u64);
        let sent = posted(port.put_immediate(to, at, self.sent + 1, PostOptions::new()))?;
        self.sent += u64::from(sent);
        Ok(sent)
    }

    #[inline(always)]
    fn try_receive(&mut self, port: &mut Port) -> Result<bool> {
        Ok(word_has_come(&self.pair, port, place::IMMEDIATE, &mut self.received))
    }
}

/// Looks whether a word of this rank's memory holds the next number; where this rank's engine has
/// to put it there, after some progress.
#[inline(always)]
fn word_has_come(pair: &Pair, port: &mut Port, at: usize, received: &mut u64) -> bool {
    if pair.path == Path::Mediated {
        port.poll_notification();
    }
    let come = pair.region.load(at) == *received + 1;
    *received += u64::from(come);
    come
}

/// A notification that carries eight bytes and touches no memory.
pub(crate) struct NotificationPut {
    to: PeerId,
}

impl NotificationPut {
    pub(crate) fn new(end: &End) -> Self {
        Self { to: end.peer }
    }
}

impl Carrier for NotificationPut {
    fn prepare(&mut self, _size: usize) {}

    #[inline(always)]
    fn try_send(&mut self, port: &mut Port) -> Result<bool> {
        posted(port.notify(self.to, PostOptions::new().value(0xa5)))
    }

    #[inline(always)]
    fn try_receive(&mut self, port: &mut Port) -> Result<bool> {
        let Some(notification) = port.poll_notification() else { return Ok(false) };
        good(&notification)?;
        black_box(notification.value);
        Ok(true)
    }
}

/// A record of a remote queue.
pub(crate) struct QueueRecord {
    to: RemoteQueue,
    queue: Queue,
    source: Buffer,
    sink: Buffer,
}

impl QueueRecord {
    /// Collective.
    pub(crate) fn new(pair: &Pair, end: &End) -> Result<Self> {
        let (queue, to) = pair.queues(end)?;
        Ok(Self { to, queue, source: Buffer::default(), sink: Buffer::default() })
    }
}

impl Carrier for QueueRecord {
    fn prepare(&mut self, size: usize) {
        (self.source, self.sink) = (Buffer::new(size), Buffer::new(size));
    }

    #[inline(always)]
    fn try_send(&mut self, port: &mut Port) -> Result<bool> {
        posted(port.enqueue(&mut self.to, black_box(&*self.source)))
    }

    #[inline(always)]
    fn try_receive(&mut self, port: &mut Port) -> Result<bool> {
        let record = port.dequeue(&mut self.queue, &mut self.sink)?;
        black_box(&mut *self.sink);
        Ok(record.is_some())
    }
}

//! Clustered posting: several operations prepared one by one and released together.
//!
//! Nothing is posted before the release. The release posts all operations in the order in which
//! they were prepared, or none (FORTH prototype: descriptors with a start flag).
use super::executor::DirectEnd;
use super::options::{PostOptions, PutSource};
use crate::error::{Busy, Fault, PostError};
use crate::mem::region::RemoteRegion;
use crate::port::Port;
use ayre_proto::alu::Atomic;
use ayre_proto::execute::{Action, Command};
use ayre_proto::limits::{BATCH_MAX, NOTES_UNREAD_MAX};
use ayre_proto::units::{Claim, PeerId, Ticket};

/// Operations on one peer's memory that are released together.
#[derive(Debug)]
pub struct Batch<'a> {
    peer: PeerId,
    entries: Vec<Entry<'a>>,
}

#[derive(Debug)]
struct Entry<'a> {
    work: Work<'a>,
    options: PostOptions,
}

// spec: BATCH-3
#[derive(Clone, Copy, Debug)]
enum Work<'a> {
    Put { to: &'a RemoteRegion, offset: u64, from: PutSource<'a> },
    Immediate { to: &'a RemoteRegion, offset: u64, value: u64 },
    Atomic { on: &'a RemoteRegion, offset: u64, atomic: Atomic },
    Notify,
}

impl<'a> Batch<'a> {
    /// An empty batch for a peer.
    pub const fn new(peer: PeerId) -> Self {
        Self { peer, entries: Vec::new() }
    }

    /// Prepares a put. The batch borrows the local buffer.
    pub fn put(
        &mut self,
        to: &'a RemoteRegion,
        offset: u64,
        from: impl Into<PutSource<'a>>,
        options: PostOptions,
    ) -> &mut Self {
        self.push(Work::Put { to, offset, from: from.into() }, options)
    }

    /// Prepares an immediate put: eight bytes that travel in the command.
    pub fn put_immediate(
        &mut self,
        to: &'a RemoteRegion,
        offset: u64,
        value: u64,
        options: PostOptions,
    ) -> &mut Self {
        self.push(Work::Immediate { to, offset, value }, options)
    }

    /// Prepares an atomic without a result.
    pub fn atomic(
        &mut self,
        on: &'a RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: PostOptions,
    ) -> &mut Self {
        self.push(Work::Atomic { on, offset, atomic }, options)
    }

    /// Prepares a notification put.
    pub fn notify(&mut self, options: PostOptions) -> &mut Self {
        self.push(Work::Notify, options)
    }

    /// The number of operations prepared.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no operation is prepared.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    // spec: BATCH-1
    fn push(&mut self, work: Work<'a>, options: PostOptions) -> &mut Self {
        self.entries.push(Entry { work, options });
        self
    }
}

impl Entry<'_> {
    fn memory(&self) -> Option<&RemoteRegion> {
        match self.work {
            Work::Put { to, .. } | Work::Immediate { to, .. } => Some(to),
            Work::Atomic { on, .. } => Some(on),
            Work::Notify => None,
        }
    }

    fn command(&self) -> Command {
        let (action, offset, len) = match self.work {
            Work::Put { offset, from, .. } => (Action::Put, offset, from.len()),
            Work::Immediate { offset, value, .. } => (Action::Immediate(value), offset, 8),
            Work::Atomic { offset, atomic, .. } => {
                (Action::Atomic(atomic), offset, atomic.width.bytes())
            }
            Work::Notify => (Action::Notify, 0, 0),
        };
        let key = self.memory().map_or(super::ops::NO_KEY, |memory| memory.key);
        let PostOptions { classes, tag, value } = self.options;
        Command { action, classes, tag, value, claim: Claim { key, offset, len } }
    }
}

impl Port {
    /// Releases a batch: posts all its operations in order, or none. Returns the ticket of the last
    /// operation, or `None` for an empty batch. Never blocks.
    ///
    /// # Errors
    /// The errors have no effect. [`Busy`] where there is no room for all operations now.
    /// [`Fault::TooLong`] where there never will be: more than 64 operations, or on a mediated
    /// connection more than the lane holds. Otherwise the fault of the first operation that has
    /// one.
    // spec: BATCH-2, BATCH-4
    pub fn release(&mut self, batch: &Batch<'_>) -> Result<Option<Ticket>, PostError> {
        if batch.entries.len() > BATCH_MAX {
            return Err(Fault::TooLong.into());
        }
        for entry in &batch.entries {
            self.check_entry(batch.peer, entry)?;
        }
        self.check_batch_room(batch)?;
        debug_assert!(!self.releases, "one batch is posted at a time");
        self.releases = true;
        let last = self.post_all(batch);
        self.releases = false;
        last
    }

    fn post_all(&mut self, batch: &Batch<'_>) -> Result<Option<Ticket>, PostError> {
        let mut last = None;
        for Entry { work, options } in &batch.entries {
            let posted = match *work {
                Work::Put { to, offset, from } => self.put(to, offset, from, *options),
                Work::Immediate { to, offset, value } => {
                    self.put_immediate(to, offset, value, *options)
                }
                Work::Atomic { on, offset, atomic } => self.atomic(on, offset, atomic, *options),
                Work::Notify => self.notify(batch.peer, *options),
            };
            let ticket = posted?;
            debug_assert!(last < Some(ticket), "later operations have larger tickets");
            last = Some(ticket);
        }
        Ok(last)
    }

    fn check_entry(&self, peer: PeerId, entry: &Entry<'_>) -> Result<(), Fault> {
        let connection = self.connection(peer)?;
        if let Some(why) = connection.ended {
            return Err(why);
        }
        if let Work::Put { from: PutSource::Region(slice), .. } = entry.work {
            self.own(&slice)?;
        }
        let Some(memory) = entry.memory() else { return Ok(()) };
        if memory.connection != connection.identity {
            return Err(Fault::ForeignHandle);
        }
        let command = entry.command();
        command.check()?;
        memory.cover.check(&command.claim, command.rights()).map(|_| ())
    }

    /// Checks that no operation of the batch will be busy.
    fn check_batch_room(&mut self, batch: &Batch<'_>) -> Result<(), PostError> {
        let (own, count) = (self.id, batch.entries.len());
        let is_full = !self.notes.has_room_for(count);
        let connection = self.connection_mut(batch.peer)?;
        let room = match connection.executor.direct() {
            Some(end) => room_direct(end, batch, own),
            None => {
                let commands = batch.entries.iter().map(Entry::command);
                self.check_batch_mediated(batch.peer, commands)
            }
        };
        match room {
            Ok(()) if is_full => Err(self.busy(Busy::NotificationsFull)),
            Err(PostError::Busy(reason)) => {
                self.progress_with(batch.peer);
                Err(self.busy(reason))
            }
            room => room,
        }
    }
}

fn notes(batch: &Batch<'_>, own: PeerId) -> u32 {
    let notifies = |entry: &&Entry<'_>| entry.command().note_at_target(own).is_some();
    batch.entries.iter().filter(notifies).count() as u32
}

fn room_direct(end: &mut DirectEnd, batch: &Batch<'_>, own: PeerId) -> Result<(), PostError> {
    let lines = notes(batch, own);
    if lines > end.notes_out.reach() {
        return Err(Fault::TooLong.into());
    }
    end.notes_out.reserve_lines(lines).map_err(|_| Busy::RequestLaneFull.into())
}

const _: () = assert!(NOTES_UNREAD_MAX >= BATCH_MAX as u64, "a whole batch may notify");

//! Completion queues.

use crate::abi::{ADDR_NOTAVAIL, CqTaggedEntry, errno};
use crate::error::{Code, Outcome};
use crate::object::registry::{Body, Entity};
use crate::object::wait::{Wait, Waitable, block, deadline};
use crate::queue::sources::Sources;
use crate::queue::wait_set::Attachment;
use crate::record::{Ended, Recorder};
use ayre_guest::cell::{Guard, Policy};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::Arc;

/// One completion, laid out as the longest form in which a program reads it; the shorter ones are
/// its beginnings.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedCompletion {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    /// The source of the message, by its number in the address vector.
    pub(crate) source: u64,
}

const _: () = {
    assert!(offset_of!(QueuedCompletion, context) == offset_of!(CqTaggedEntry, op_context));
    assert!(offset_of!(QueuedCompletion, flags) == offset_of!(CqTaggedEntry, flags));
    assert!(offset_of!(QueuedCompletion, len) == offset_of!(CqTaggedEntry, len));
    assert!(offset_of!(QueuedCompletion, buf) == offset_of!(CqTaggedEntry, buf));
    assert!(offset_of!(QueuedCompletion, data) == offset_of!(CqTaggedEntry, data));
    assert!(offset_of!(QueuedCompletion, tag) == offset_of!(CqTaggedEntry, tag));
    assert!(offset_of!(QueuedCompletion, source) == size_of::<CqTaggedEntry>());
};

impl QueuedCompletion {
    /// One of an operation of which nothing else is known.
    pub(crate) fn new(context: usize, flags: u64) -> Self {
        Self { context, flags, len: 0, buf: 0, data: 0, tag: 0, source: ADDR_NOTAVAIL }
    }
}

/// An operation that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) completion: QueuedCompletion,
    /// Bytes that did not fit.
    pub(crate) olen: usize,
    /// Positive.
    pub(crate) err: c_int,
    pub(crate) prov_errno: c_int,
    pub(crate) data: Vec<u8>,
}

/// A failure to report that the queue itself has made.
fn overrun() -> Failure {
    let completion = QueuedCompletion::new(0, 0);
    Failure { completion, olen: 0, err: errno::EOVERRUN, prov_errno: 0, data: Vec::new() }
}

/// The part of the usable memory that completions take beyond the size of a queue under resource
/// management, until peers have to wait. Pending operations are bounded by memory, and nothing more
/// is taken from peers then: so the queue is never overrun.
const FLOOD_PART: u64 = 16;

/// Completions that a queue has room for from its beginning; what programs ask for is often far
/// more than they use.
const FIRST_ROOM: usize = 1 << 10;

/// Looks of a call in a row that find something, of which nothing is told.
const LOOKS_MAX: usize = 16;

/// The content of a queue.
#[derive(Debug)]
pub(crate) struct Queue {
    entries: Ring,
    failures: VecDeque<Failure>,
    /// Error data of the last failure that was read, for the program.
    last_data: Vec<u8>,
    size: usize,
    /// Completions from which on peers have to wait.
    flood: usize,
    /// More than `size` only where the domain manages resources.
    limit: usize,
    /// Completions up to which one more is just put in: none when something was lost.
    room: usize,
    /// Something was lost, and nothing more will be taken.
    is_overrun: bool,
    /// The next thing that comes rings.
    is_armed: bool,
    is_signalled: bool,
}

impl Queue {
    fn new(size: usize, is_managed: bool) -> Self {
        let limit = if is_managed { usize::MAX } else { size };
        let flood = ayre::host::usable_memory() / FLOOD_PART / size_of::<QueuedCompletion>() as u64;
        let entries = Ring::new(size.min(FIRST_ROOM));
        Self {
            room: size.min(entries.slots.len()),
            entries,
            failures: VecDeque::new(),
            last_data: Vec::new(),
            size,
            flood: size.saturating_add(usize::try_from(flood).unwrap_or(usize::MAX)),
            limit,
            is_overrun: false,
            is_armed: false,
            is_signalled: false,
        }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.entries.len() == 0 && self.failures.is_empty() && !self.is_overrun
    }

    #[inline(always)]
    fn push(&mut self, completion: QueuedCompletion) {
        if self.entries.len() >= self.room && !self.make_room() {
            return;
        }
        self.entries.push(completion);
    }

    /// Whether there is room beyond what is thought of.
    #[cold]
    fn make_room(&mut self) -> bool {
        if self.is_overrun || self.entries.len() >= self.limit {
            (self.is_overrun, self.room) = (true, 0);
            return false;
        }
        self.entries.reserve();
        self.room = self.size.min(self.entries.slots.len());
        true
    }

    /// Takes completions until `count` are taken or a failure is next.
    #[inline]
    fn take(
        &mut self,
        count: usize,
        mut sink: impl FnMut(usize, &QueuedCompletion),
    ) -> Outcome<usize> {
        if !self.failures.is_empty() {
            return Err(Code(errno::EAVAIL));
        }
        let taken = count.min(self.entries.len());
        for at in 0..taken {
            sink(at, self.entries.front());
            self.entries.pop();
        }
        match taken {
            0 if self.is_overrun => Err(Code(errno::EAVAIL)),
            0 => Err(Code::AGAIN),
            _ => Ok(taken),
        }
    }
}

/// Completions in their order, each written once, word by word, to where it is read. (A deque moves
/// what it is given with wider loads than that was stored with, which wait for the stores.)
#[derive(Debug)]
struct Ring {
    /// A power of two.
    slots: Box<[QueuedCompletion]>,
    /// How many were taken, and put in, in all.
    taken: usize,
    put: usize,
}

impl Ring {
    /// A queue with room for `size` completions.
    fn new(size: usize) -> Self {
        Self { slots: Self::slots(size), taken: 0, put: 0 }
    }

    fn slots(size: usize) -> Box<[QueuedCompletion]> {
        vec![QueuedCompletion::new(0, 0); size.max(1).next_power_of_two()].into_boxed_slice()
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    /// Makes room for one more.
    fn reserve(&mut self) {
        if self.len() < self.slots.len() {
            return;
        }
        let mut longer = Self { slots: Self::slots(self.slots.len() + 1), taken: 0, put: 0 };
        while self.len() > 0 {
            longer.push(*self.front());
            self.pop();
        }
        *self = longer;
    }

    /// Adds one; there is room.
    #[inline(always)]
    fn push(&mut self, completion: QueuedCompletion) {
        let at = self.put & (self.slots.len() - 1);
        self.slots[at] = completion;
        self.put = self.put.wrapping_add(1);
    }

    /// The oldest; there is one.
    #[inline(always)]
    fn front(&self) -> &QueuedCompletion {
        &self.slots[self.taken & (self.slots.len() - 1)]
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.taken = self.taken.wrapping_add(1);
    }
}

/// The attributes of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Completions that a program wants room for.
    pub(crate) size: usize,
    /// It must not be overrun.
    pub(crate) is_managed: bool,
    /// The version of the interface that the program speaks.
    pub(crate) api: u32,
}

/// A completion queue.
pub(crate) struct Cq<L: Policy> {
    queue: L::Cell<Queue>,
    /// The sources of data: each endpoint adds one when it is bound.
    pub(crate) sources: Sources<L>,
    wait: Option<Attachment>,
    pub(crate) terms: Terms,
    /// Of the policy that records.
    pub(crate) recorder: Option<Arc<Recorder>>,
    _domain: Arc<dyn Entity>,
}

impl<L: Policy> Cq<L> {
    pub(crate) fn new(domain: Arc<dyn Entity>, terms: Terms, wait: Option<Attachment>) -> Self {
        let queue = L::cell(Queue::new(terms.size, terms.is_managed));
        Self { queue, sources: Sources::new(), wait, terms, recorder: None, _domain: domain }
    }

    /// An operation has ended well. Whether the queue is full.
    #[inline(always)]
    pub(crate) fn write(&self, completion: QueuedCompletion) -> bool {
        let (must_ring, is_full) = self.queue.with(
            #[inline(always)]
            |queue| {
                queue.push(completion);
                let must_ring = queue.is_armed && std::mem::take(&mut queue.is_armed);
                (must_ring, queue.entries.len() >= queue.size)
            },
        );
        if must_ring {
            self.ring();
        }
        is_full
    }

    /// An operation has failed.
    pub(crate) fn write_failure(&self, failure: Failure) {
        let must_ring = self.queue.with(|queue| {
            queue.failures.push_back(failure);
            std::mem::take(&mut queue.is_armed)
        });
        if must_ring {
            self.ring();
        }
    }

    /// Whether the program has to read before it posts more that is told of.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.queue.with(|queue| queue.entries.len() >= queue.size)
    }

    /// Whether it has to read before more is taken in from peers.
    pub(crate) fn is_flooded(&self) -> bool {
        self.queue.with(|queue| queue.entries.len() >= queue.flood)
    }

    /// Takes up to `count` completions; progress is made when there is none.
    ///
    /// # Errors
    /// `EAGAIN` without any, `EAVAIL` when a failure is to be read first.
    #[inline]
    pub(crate) fn read(
        &self,
        count: usize,
        sink: impl FnMut(usize, &QueuedCompletion),
    ) -> Outcome<usize> {
        match &self.recorder {
            Some(recorder) if L::IS_RECORDED => {
                recorder.read(|ends| self.read_now(count, noting(ends, sink)))
            }
            _ => self.read_now(count, sink),
        }
    }

    #[inline]
    fn read_now(&self, count: usize, sink: impl FnMut(usize, &QueuedCompletion)) -> Outcome<usize> {
        if self.finds_nothing() { Err(Code::AGAIN) } else { self.take(count, sink) }
    }

    /// The beginning of [`Cq::read`] without a recorder: whether there is nothing to take, and
    /// progress finds nothing.
    #[inline(always)]
    pub(crate) fn finds_nothing(&self) -> bool {
        self.queue.with(|queue| queue.is_empty()) && !self.sources.progress()
    }

    /// The rest of [`Cq::read`].
    ///
    /// # Errors
    /// As [`Cq::read`].
    #[inline]
    pub(crate) fn take(
        &self,
        count: usize,
        mut sink: impl FnMut(usize, &QueuedCompletion),
    ) -> Outcome<usize> {
        let taken = self.queue.with(|queue| queue.take(count, &mut sink));
        if taken == Err(Code::AGAIN) { self.look_on(count, &mut sink) } else { taken }
    }

    /// Progress has found something of which nothing is told, and what is waited for may lie behind
    /// it, or come from another peer. A program that is told that there is nothing lets others run
    /// first, and a round of those takes longer than these looks.
    #[inline(never)]
    fn look_on(
        &self,
        count: usize,
        sink: &mut impl FnMut(usize, &QueuedCompletion),
    ) -> Outcome<usize> {
        for _ in 0..LOOKS_MAX {
            let found = self.sources.progress();
            // Who reads no completions wants progress.
            let taken = self.queue.with(|queue| queue.take(count, &mut *sink));
            if !found || count == 0 || taken != Err(Code::AGAIN) {
                return taken;
            }
        }
        Err(Code::AGAIN)
    }

    /// Takes the oldest failure and hands it to `sink`; its data stay until the next reading.
    ///
    /// # Errors
    /// `EAGAIN` without any.
    pub(crate) fn read_failure<R>(&self, sink: impl FnOnce(&Failure) -> R) -> Outcome<R> {
        match &self.recorder {
            Some(recorder) if L::IS_RECORDED => recorder.read(|ends| {
                self.read_failure_now(|failure| {
                    ends.push(Ended { err: failure.err, ..Ended::from(&failure.completion) });
                    sink(failure)
                })
            }),
            _ => self.read_failure_now(sink),
        }
    }

    fn read_failure_now<R>(&self, sink: impl FnOnce(&Failure) -> R) -> Outcome<R> {
        self.queue.with(|queue| {
            let failure = match queue.failures.pop_front() {
                Some(failure) => failure,
                None if queue.is_overrun && queue.entries.len() == 0 => overrun(),
                None => return Err(Code::AGAIN),
            };
            let result = sink(&failure);
            queue.last_data = failure.data;
            Ok(result)
        })
    }

    /// As [`Cq::read`], but waits for something to come.
    ///
    /// # Errors
    /// `EAGAIN` when time is up, or the queue was signalled; `EINTR` when a signal has come;
    /// `EINVAL` where the queue was opened without anything to wait with.
    pub(crate) fn read_blocking(
        &self,
        count: usize,
        milliseconds: c_int,
        sink: impl FnMut(usize, &QueuedCompletion),
    ) -> Outcome<usize> {
        match &self.recorder {
            Some(recorder) if L::IS_RECORDED => recorder
                .read(|ends| self.read_blocking_now(count, milliseconds, noting(ends, sink))),
            _ => self.read_blocking_now(count, milliseconds, sink),
        }
    }

    fn read_blocking_now(
        &self,
        count: usize,
        milliseconds: c_int,
        mut sink: impl FnMut(usize, &QueuedCompletion),
    ) -> Outcome<usize> {
        let wait = self.wait.as_ref().and_then(Attachment::own).ok_or(Code::INVALID)?;
        let attempt = || match self.read_now(count, &mut sink) {
            Err(Code::AGAIN) => {
                let is_signalled = self.queue.with(|queue| std::mem::take(&mut queue.is_signalled));
                is_signalled.then_some(Err(Code::AGAIN))
            }
            outcome => Some(outcome),
        };
        block(wait, (deadline(milliseconds), Code::AGAIN), attempt, || self.arm())?
    }

    /// Wakes a thread that waits here.
    ///
    /// # Errors
    /// `EINVAL` where nobody can.
    pub(crate) fn signal(&self) -> Outcome {
        let wait = self.wait().ok_or(Code::INVALID)?;
        self.queue.with(|queue| queue.is_signalled = true);
        wait.ring();
        Ok(())
    }

    /// Wakes those who sleep.
    pub(crate) fn ring(&self) {
        if let Some(wait) = self.wait() {
            wait.ring();
        }
    }

    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        self.wait.as_ref()
    }
}

/// A sink that also notes which ends the program reads.
fn noting(
    ends: &mut Vec<Ended>,
    mut sink: impl FnMut(usize, &QueuedCompletion),
) -> impl FnMut(usize, &QueuedCompletion) {
    move |at, completion| {
        ends.push(completion.into());
        sink(at, completion);
    }
}

impl From<&QueuedCompletion> for Ended {
    fn from(completion: &QueuedCompletion) -> Self {
        let QueuedCompletion { context, flags, len, tag, source, .. } = *completion;
        Self { context, flags, source, tag, bytes: len, err: 0 }
    }
}

impl<L: Policy> Waitable for Cq<L> {
    fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref().map(Attachment::wait)
    }

    fn look(&self) -> bool {
        self.sources.progress();
        self.queue.with(|queue| !queue.is_empty())
    }

    fn arm(&self) -> bool {
        let sources_sleep = self.sources.arm();
        self.queue.with(|queue| {
            let is_idle = queue.is_empty() && !queue.is_signalled;
            queue.is_armed |= is_idle;
            is_idle && sources_sleep
        })
    }
}

impl<L: Policy> Body for Cq<L> {
    fn waitable(&self) -> Option<&dyn Waitable> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;

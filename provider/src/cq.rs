//! Completion queues.

use crate::abi::{ADDR_NOTAVAIL, CqTaggedEntry, FidDomain, errno};
use crate::code::{Code, Outcome};
use crate::domain::Domain;
use crate::registry::Body;
use crate::source::Sources;
use crate::sys::cell::{Guard, Policy};
use crate::sys::object::Object;
use crate::wait::{Attachment, Wait, Waitable, block, deadline};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::Arc;

/// One completion, laid out as the longest form in which a program reads it; the shorter ones are
/// its beginnings.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    /// Whose message it was, as the address vector numbers peers.
    pub(crate) source: u64,
}

const _: () = {
    assert!(offset_of!(Completion, context) == offset_of!(CqTaggedEntry, op_context));
    assert!(offset_of!(Completion, flags) == offset_of!(CqTaggedEntry, flags));
    assert!(offset_of!(Completion, len) == offset_of!(CqTaggedEntry, len));
    assert!(offset_of!(Completion, buf) == offset_of!(CqTaggedEntry, buf));
    assert!(offset_of!(Completion, data) == offset_of!(CqTaggedEntry, data));
    assert!(offset_of!(Completion, tag) == offset_of!(CqTaggedEntry, tag));
    assert!(offset_of!(Completion, source) == size_of::<CqTaggedEntry>());
};

impl Completion {
    /// One of an operation of which nothing else is known.
    pub(crate) fn new(context: usize, flags: u64) -> Self {
        Self { context, flags, len: 0, buf: 0, data: 0, tag: 0, source: ADDR_NOTAVAIL }
    }
}

/// An operation that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) completion: Completion,
    /// Bytes that did not fit.
    pub(crate) olen: usize,
    /// Positive.
    pub(crate) err: c_int,
    pub(crate) prov_errno: c_int,
    pub(crate) data: Vec<u8>,
}

/// A failure to report that the queue itself has made.
fn overrun() -> Failure {
    let completion = Completion::new(0, 0);
    Failure { completion, olen: 0, err: errno::EOVERRUN, prov_errno: 0, data: Vec::new() }
}

/// Completions beyond the size of a queue under resource management. The operations under way are
/// bounded, and nothing is taken in from peers beyond [`FLOOD_MAX`], so that this is never reached.
const SPILL_MAX: usize = 1 << 20;

/// Completions beyond the size of such a queue from which on peers have to wait.
const FLOOD_MAX: usize = 1 << 16;

/// What is in a queue.
#[derive(Debug)]
pub(crate) struct Queue {
    entries: VecDeque<Completion>,
    failures: VecDeque<Failure>,
    /// What the last failure that was read has left for the program to look at.
    last_data: Vec<u8>,
    size: usize,
    /// More than `size` only where the domain manages resources.
    limit: usize,
    /// Something was lost, and nothing more will be taken.
    is_overrun: bool,
    /// The next thing that comes rings.
    is_armed: bool,
    is_signalled: bool,
}

impl Queue {
    fn new(size: usize, is_managed: bool) -> Self {
        let limit = if is_managed { size.saturating_add(SPILL_MAX) } else { size };
        Self {
            entries: VecDeque::with_capacity(size),
            failures: VecDeque::new(),
            last_data: Vec::new(),
            size,
            limit,
            is_overrun: false,
            is_armed: false,
            is_signalled: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.failures.is_empty() && !self.is_overrun
    }

    #[inline(always)]
    fn push(&mut self, completion: Completion) {
        if self.is_overrun || self.entries.len() >= self.limit {
            self.is_overrun = true;
        } else {
            self.entries.push_back(completion);
        }
    }

    /// Takes completions until `count` are taken or a failure is next.
    #[inline]
    fn take(&mut self, count: usize, mut sink: impl FnMut(usize, &Completion)) -> Outcome<usize> {
        if !self.failures.is_empty() {
            return Err(Code(errno::EAVAIL));
        }
        let mut taken = 0;
        while taken < count {
            let Some(completion) = self.entries.front() else { break };
            sink(taken, completion);
            self.entries.pop_front();
            taken += 1;
        }
        match taken {
            0 if self.is_overrun => Err(Code(errno::EAVAIL)),
            0 => Err(Code::AGAIN),
            _ => Ok(taken),
        }
    }
}

/// A completion queue.
pub(crate) struct Cq<L: Policy> {
    queue: L::Cell<Queue>,
    /// What moves the data: each endpoint adds one when it is bound.
    pub(crate) sources: Sources<L>,
    wait: Option<Attachment>,
    pub(crate) domain: Arc<Object<FidDomain, Domain<L>>>,
}

impl<L: Policy> Cq<L> {
    pub(crate) fn new(
        domain: Arc<Object<FidDomain, Domain<L>>>,
        size: usize,
        wait: Option<Attachment>,
    ) -> Self {
        let queue = Queue::new(size, domain.is_managed());
        Self { queue: L::Cell::new(queue), sources: Sources::new(), wait, domain }
    }

    /// An operation has ended well. Whether the queue is full.
    #[inline(always)]
    pub(crate) fn write(&self, completion: Completion) -> bool {
        let (must_ring, is_full) = self.queue.with(|queue| {
            queue.push(completion);
            (std::mem::take(&mut queue.is_armed), queue.entries.len() >= queue.size)
        });
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
        self.queue.with(|queue| queue.entries.len() >= queue.size.saturating_add(FLOOD_MAX))
    }

    /// Takes up to `count` completions; progress is made when there is none.
    ///
    /// # Errors
    /// `EAGAIN` without any, `EAVAIL` when a failure is to be read first.
    #[inline]
    pub(crate) fn read(
        &self,
        count: usize,
        mut sink: impl FnMut(usize, &Completion),
    ) -> Outcome<usize> {
        match self.queue.with(|queue| queue.take(count, &mut sink)) {
            Err(Code::AGAIN) if self.sources.progress() => {
                self.queue.with(|queue| queue.take(count, &mut sink))
            }
            outcome => outcome,
        }
    }

    /// Takes the oldest failure and hands it to `sink`; its data stay until the next reading.
    ///
    /// # Errors
    /// `EAGAIN` without any.
    pub(crate) fn read_failure<R>(&self, sink: impl FnOnce(&Failure) -> R) -> Outcome<R> {
        self.queue.with(|queue| {
            let failure = match queue.failures.pop_front() {
                Some(failure) => failure,
                None if queue.is_overrun && queue.entries.is_empty() => overrun(),
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
        mut sink: impl FnMut(usize, &Completion),
    ) -> Outcome<usize> {
        let wait = self.wait.as_ref().and_then(Attachment::own).ok_or(Code::INVALID)?;
        let attempt = || match self.read(count, &mut sink) {
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

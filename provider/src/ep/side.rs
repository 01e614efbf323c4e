//! The reports of one direction of an endpoint.

use crate::abi::{COMPLETION, FidCntr, FidCq, RECV, SELECTIVE_COMPLETION, SEND};
use crate::error::{Code, Outcome};
use crate::info::offer::Offer;
use crate::queue::cntr::Cntr;
use crate::queue::cq::{Cq, Failure, QueuedCompletion};
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use std::sync::Arc;

/// Operations that are counted apart: messages, and both kinds of access to a peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Message,
    Read,
    Write,
}

/// When a program is told that an operation has ended well; it always is that one has failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reported {
    /// As it has chosen for the endpoint.
    AsChosen,
    /// As these flags of the call say.
    By(u64),
    /// Injected without flags.
    Never,
}

/// How a program hears of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    pub(crate) context: usize,
    pub(crate) reported: Reported,
}

impl Note {
    /// Of one that is injected.
    pub(crate) const NEVER: Self = Self { context: 0, reported: Reported::Never };
}

/// How a program names one side of an endpoint.
const DIRECTIONS: u64 = SEND | RECV;

/// The program's choice for calls without flags, and the sides that it names.
///
/// # Errors
/// `EBADFLAGS` for flags that no operation has by default.
pub(super) fn choice(flags: u64) -> Outcome<(u64, u64)> {
    let chosen = flags & !DIRECTIONS;
    if chosen & !Offer::now().op_flags != 0 {
        return Err(Code::BAD_FLAGS);
    }
    Ok((flags & DIRECTIONS, chosen))
}

type Counter<L> = Arc<Object<FidCntr, Cntr<L>>>;

/// A queue and counters, and when they hear of an operation.
pub(super) struct Side<L: Policy> {
    cq: Option<Arc<Object<FidCq, Cq<L>>>>,
    /// One for each way.
    counters: [Option<Counter<L>>; 3],
    /// By what bits a program asks for each of them.
    bits: [u64; 3],
    /// The flags of calls without flags of their own.
    chosen: u64,
    /// The flags of such calls, with what the queue adds.
    flags: u64,
    /// Flags that are added to those of calls that have some.
    added: u64,
    /// The program has to read before more is posted that is told of; or else something is to be
    /// looked at before progress.
    may_be_full: bool,
}

impl<L: Policy> Side<L> {
    /// One whose ways have these bits.
    pub(super) fn new(chosen: u64, bits: [u64; 3]) -> Self {
        let (flags, added) = (chosen | COMPLETION, COMPLETION);
        let counters = [const { None }; 3];
        Self { cq: None, counters, bits, chosen, flags, added, may_be_full: false }
    }

    /// # Errors
    /// `EINVAL` where there is a queue already.
    pub(super) fn bind_cq(&mut self, cq: &Arc<Object<FidCq, Cq<L>>>, flags: u64) -> Outcome {
        if self.cq.is_some() {
            return Err(Code::INVALID);
        }
        self.cq = Some(Arc::clone(cq));
        if flags & SELECTIVE_COMPLETION != 0 {
            (self.flags, self.added) = (self.chosen, 0);
        }
        Ok(())
    }

    /// Binds a counter of all ways whose bits are among these.
    pub(super) fn bind_cntr(&mut self, cntr: &Counter<L>, bits: u64) {
        for (counter, bit) in self.counters.iter_mut().zip(self.bits) {
            if bits & bit != 0 {
                *counter = Some(Arc::clone(cntr));
            }
        }
    }

    /// Whether any of these is counted.
    pub(super) fn counts(&self, bits: u64) -> bool {
        self.counters.iter().zip(self.bits).any(|(cntr, bit)| cntr.is_some() && bits & bit != 0)
    }

    /// Whether this way is counted.
    pub(super) fn counts_way(&self, way: Way) -> bool {
        self.counters[way as usize].is_some()
    }

    /// The flags of calls without flags of their own.
    pub(super) fn chosen(&self) -> u64 {
        self.chosen
    }

    pub(super) fn choose(&mut self, flags: u64) {
        (self.chosen, self.flags) = (flags, flags | self.added);
    }

    pub(super) fn has_cq(&self) -> bool {
        self.cq.is_some()
    }

    /// The flags of an operation.
    #[inline(always)]
    pub(super) fn flags(&self, reported: Reported) -> u64 {
        match reported {
            Reported::AsChosen => self.flags,
            Reported::By(flags) => flags | self.added,
            Reported::Never => 0,
        }
    }

    /// Whether the program has to read its queue first.
    #[inline]
    pub(super) fn is_full(&mut self) -> bool {
        self.may_be_full && self.look_whether_full()
    }

    /// Whether something is to be looked at before progress: the queue may be full, or
    /// [`Self::look_again`] was called.
    #[inline(always)]
    pub(super) fn must_look(&self) -> bool {
        self.may_be_full
    }

    pub(super) fn look_again(&mut self) {
        self.may_be_full = true;
    }

    #[cold]
    fn look_whether_full(&mut self) -> bool {
        let full = |cq: &Arc<Object<FidCq, Cq<L>>>| cq.terms.is_managed && cq.is_full();
        self.may_be_full = self.cq.as_ref().is_some_and(full);
        self.may_be_full
    }

    /// Whether the program has to read its queue before more is taken in from peers.
    #[inline]
    pub(super) fn is_flooded(&mut self) -> bool {
        self.is_full() && self.cq.as_ref().is_some_and(|cq| cq.is_flooded())
    }

    /// An operation has ended well.
    #[inline(always)]
    pub(super) fn ended(&mut self, way: Way, completion: QueuedCompletion, is_told: bool) {
        if is_told && let Some(cq) = &self.cq {
            self.may_be_full |= cq.write(completion);
        }
        if let Some(cntr) = &self.counters[way as usize] {
            cntr.change(|count| count.value = count.value.wrapping_add(1));
        }
    }

    /// An operation has failed.
    #[cold]
    pub(super) fn failed(&self, way: Way, failure: Failure) {
        if let Some(cq) = &self.cq {
            cq.write_failure(failure);
        }
        if let Some(cntr) = &self.counters[way as usize] {
            cntr.change(|count| count.errors = count.errors.wrapping_add(1));
        }
    }

    /// Wakes those who sleep.
    pub(super) fn ring(&self) {
        if let Some(cq) = &self.cq {
            cq.ring();
        }
        self.counters.iter().flatten().for_each(|cntr| cntr.ring());
    }
}

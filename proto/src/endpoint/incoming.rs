//! Receives that wait, and messages that wait for one.
use super::completions::Context;
use super::origin::{Origin, RemoteBody};
use super::transport::Memory;
use crate::matching::ReceiveId;
use alloc::boxed::Box;

/// The cost in bytes of each kept message and of each own operation. It is no less than the memory
/// that one takes besides its bytes, tables that have just doubled included.
pub(super) const RECORD: u64 = 512;

/// A receive that waits, or whose message is coming.
#[derive(Debug)]
pub(super) struct Incoming<M> {
    into: M,
    context: Context,
    id: Option<ReceiveId>,
    is_tagged: bool,
    /// It takes no more; what it has taken is still coming.
    released: bool,
    /// Messages that are still coming.
    coming: usize,
}

impl<M: Memory> Incoming<M> {
    /// One that has no message yet.
    #[inline(always)]
    pub(super) fn new(into: M, context: Context, is_tagged: bool) -> Self {
        Self { into, context, id: None, is_tagged, released: false, coming: 0 }
    }

    /// This receive, which the matcher knows by this name.
    #[inline(always)]
    pub(super) fn waiting(self, id: ReceiveId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// This receive, which takes no more than what it gets now.
    #[inline(always)]
    pub(super) fn taken(self) -> Self {
        Self { released: true, ..self }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u64 {
        self.into.len() as u64
    }

    pub(super) fn is_whole(&self) -> bool {
        self.into.whole().is_some()
    }

    /// Where its messages go.
    #[inline(always)]
    pub(super) const fn memory(&mut self) -> &mut M {
        &mut self.into
    }

    #[inline(always)]
    pub(super) const fn context(&self) -> Context {
        self.context
    }

    #[inline(always)]
    pub(super) const fn id(&self) -> Option<ReceiveId> {
        self.id
    }

    #[inline(always)]
    pub(super) const fn is_tagged(&self) -> bool {
        self.is_tagged
    }

    /// Whether it takes no more.
    #[inline(always)]
    pub(super) const fn is_released(&self) -> bool {
        self.released
    }

    /// Adds `count` messages that are coming.
    #[inline(always)]
    pub(super) const fn expect(&mut self, count: usize) {
        self.coming += count;
    }

    /// One of them is here, or comes no more.
    #[inline(always)]
    pub(super) fn arrived(&mut self) {
        debug_assert!(self.coming > 0, "it was coming");
        self.coming -= 1;
    }

    /// It takes no more, if this says so.
    #[inline(always)]
    pub(super) const fn release(&mut self, is_released: bool) {
        self.released |= is_released;
    }

    /// Whether it takes no more, and nothing is coming.
    #[inline(always)]
    pub(super) const fn is_over(&self) -> bool {
        self.released && self.coming == 0
    }

    /// It was taken back, while it waited.
    pub(super) fn take_back(&mut self) {
        debug_assert!(self.id.is_some() && !self.released, "it waited");
        (self.id, self.released) = (None, true);
    }
}

/// A message that no receive has taken yet.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) origin: Origin,
    pub(super) place: BodyPlace,
}

#[derive(Debug)]
pub(super) enum BodyPlace {
    Local(Box<[u8]>),
    /// With its sender, who has asked.
    Remote(RemoteBody),
}

impl Body {
    /// Its cost in the budget, in bytes.
    pub(super) fn cost(&self) -> u64 {
        match &self.place {
            BodyPlace::Local(bytes) => RECORD + bytes.len() as u64,
            BodyPlace::Remote(_) => RECORD,
        }
    }
}

//! Working on peers' memory: writing, reading, atomics.

use super::core::{Core, State};
use super::op::{Kind, Op};
use super::side::{Note, Reported};
use crate::abi::{COMPLETION, INJECT, READ};
use crate::error::{Code, Outcome};
use crate::info::offer::INJECT_MAX;
use crate::record::Posted;
use ayre::PostError;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{Context, RawEndpoint, RemoteAddress, RmaUpdate, RmaWrite, Spans};
use ayre_guest::cell::{Guard, Policy};

/// Memory of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The program's number of whose it is.
    pub(crate) to: u64,
    pub(crate) key: u64,
    pub(crate) address: u64,
}

impl Target {
    fn at(&self, remote: RemoteId) -> RemoteAddress {
        RemoteAddress { remote, key: self.key, address: self.address }
    }
}

/// An atomic: what it is, and the memory that it takes.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) op: ayre::collective::Combine,
    pub(crate) number: ayre::collective::Number,
    pub(crate) operand: Spans,
    pub(crate) compare: Spans,
    /// For the values that were there before, if they are wanted.
    pub(crate) result: Option<Spans>,
}

impl<L: Policy> Core<L> {
    /// Writes to a peer's memory.
    ///
    /// # Errors
    /// Those of [`Core::send`]; `EMSGSIZE` for more than can be injected.
    pub(crate) fn write(
        &self,
        target: Target,
        bytes: Spans,
        data: Option<u64>,
        note: Note,
    ) -> Outcome {
        self.posting_to(Kind::WRITE, (target.to, bytes.len()), note, |state| {
            let inject = match note.reported {
                Reported::Never => true,
                reported => state.tx.flags(reported) & INJECT != 0,
            };
            if inject && bytes.len() > INJECT_MAX {
                return Err(Code::TOO_LONG);
            }
            state.post(target.to, Kind::WRITE, note, |endpoint, remote, context| {
                endpoint
                    .write(target.at(remote), &RmaWrite { bytes, data, context, inject })
                    .map(drop)
            })
        })
    }

    /// Reads a peer's memory.
    ///
    /// # Errors
    /// Those of [`Core::send`].
    pub(crate) fn read(&self, target: Target, into: Spans, note: Note) -> Outcome {
        self.posting_to(Kind::READ, (target.to, into.len()), note, |state| {
            state.post(target.to, Kind::READ, note, |endpoint, remote, context| {
                endpoint.read(target.at(remote), into, context)
            })
        })
    }

    /// Carries out an atomic on a peer's memory. Its operands are copied before this returns.
    ///
    /// # Errors
    /// Those of [`Core::send`].
    pub(crate) fn update(&self, target: Target, change: Change, note: Note) -> Outcome {
        let Change { op, number, operand, compare, result } = change;
        let kind = if result.is_some() { Kind::FETCH } else { Kind::UPDATE };
        self.posting_to(kind, (target.to, operand.len()), note, |state| {
            state.post(target.to, kind, note, |endpoint, remote, context| {
                let data = None;
                let update = RmaUpdate { op, number, operand, compare, result, data, context };
                endpoint.update(target.at(remote), &update)
            })
        })
    }
}

impl<L: Policy> Core<L> {
    /// Makes a call that works on memory of a peer.
    #[inline(always)]
    fn posting_to(
        &self,
        kind: Kind,
        (to, bytes): (u64, usize),
        Note { context, reported }: Note,
        call: impl FnOnce(&mut State<L>) -> Outcome,
    ) -> Outcome {
        let posted = |state: &State<L>| Posted {
            kind: if kind.flags() & READ != 0 { "read" } else { "write" },
            to,
            tag: 0,
            bytes,
            context: (state.tx.flags(reported) & COMPLETION != 0).then_some(context),
        };
        self.posting(
            call,
            |_, state| Some(posted(state)),
            #[inline(always)]
            |call| {
                self.state.with(
                    #[inline(always)]
                    |state| {
                        state.fence(to, reported)?;
                        call(state)
                    },
                )
            },
        )
    }
}

impl<L: Policy> State<L> {
    /// Posts an operation whose end the engine will tell.
    #[inline]
    fn post(
        &mut self,
        to: u64,
        kind: Kind,
        note: Note,
        call: impl FnOnce(&mut RawEndpoint, RemoteId, Context) -> Result<(), PostError>,
    ) -> Outcome {
        let is_told = self.tx.flags(note.reported) & COMPLETION != 0;
        if is_told && self.tx.is_full() {
            self.progress();
            return Err(Code::AGAIN);
        }
        let remote = match self.peers.remote(to) {
            Some(remote) => remote,
            None => self.look_up(to)?,
        };
        let op = Op { context: note.context, buf: 0, kind, is_told, is_many: false };
        call(&mut self.endpoint, remote, op.into()).map_err(|error| self.refused(to, error))
    }
}

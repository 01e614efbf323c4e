//! The memory of a collective: blocks of bytes, and the sums that are made of them.
use super::layout::Layout;
use super::values::{Changed, Read};
use crate::active::outgoing::Outgoing;
use ayre_proto::active::long::Piece;
use ayre_proto::collective::{Action, Blocks, Step, bracket};
use ayre_proto::combine::{Combine, Number};
use ayre_proto::units::PeerId;
use std::ops::Range;

/// Bytes that are copied out of a landing and then combined, so that a peer cannot change them.
const READ_MAX: usize = 4096;
const _: () = assert!(READ_MAX.is_multiple_of(16), "no number is cut in two");

/// The buffers of a collective.
#[derive(Debug)]
pub(super) struct Work<'a> {
    /// The values to be sent, if they are not the received ones: those of the root of a scatter,
    /// and those of all members in an alltoall.
    from: Option<(Read<'a>, Layout)>,
    /// The values that are received and passed on.
    held: Held<'a>,
    layout: Layout,
    /// The layouts of whole blocks, while `layout` and the layout of `from` are those of a chunk.
    whole: Option<(Layout, Option<Layout>)>,
    combine: Option<(Combine, Number)>,
    /// The partial result of a scan: the values of members up to this one.
    prefix: Option<Vec<u8>>,
    /// Partial sums that wait for their other half.
    stack: Vec<u8>,
    pushed: usize,
    members: usize,
}

/// The received values: in the program's memory, or in own memory if a member passes on blocks of
/// others.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Values(Changed<'a>),
    Staged(Vec<u8>),
    /// Own memory, of which only this member's block goes to the program.
    Through {
        staged: Vec<u8>,
        own: Range<usize>,
        values: Option<Changed<'a>>,
    },
}

impl<'a> Held<'a> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Values(values) => values.bytes(),
            Self::Staged(bytes) | Self::Through { staged: bytes, .. } => bytes,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Values(values) => values.bytes_mut(),
            Self::Staged(bytes) | Self::Through { staged: bytes, .. } => bytes,
        }
    }

    /// Returns the program's values when the collective is done.
    fn finish(self) -> Option<Changed<'a>> {
        match self {
            Self::Values(values) => Some(values),
            Self::Staged(_) => None,
            Self::Through { staged, own, mut values } => {
                values
                    .iter_mut()
                    .for_each(|into| into.bytes_mut().copy_from_slice(&staged[own.clone()]));
                values
            }
        }
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(
        layout: Layout,
        from: Option<(Read<'a>, Layout)>,
        held: Held<'a>,
        (combine, members): (Option<(Combine, Number)>, usize),
    ) -> Self {
        debug_assert!(members > 0, "a group has members");
        let is_inside =
            |(source, layout): &(Read<'_>, Layout)| layout.bytes() <= source.bytes().len();
        debug_assert!(from.iter().all(is_inside), "what is sent lies in its source");
        let (prefix, stack) = (None, Vec::new());
        let whole = None;
        Self { from, held, layout, whole, combine, prefix, stack, pushed: 0, members }
    }

    /// Makes the buffers those of a scan.
    pub(super) fn with_prefix(mut self) -> Self {
        debug_assert!(self.combine.is_some(), "what is scanned is combined");
        self.prefix = Some(self.held.bytes().to_vec());
        self
    }

    /// Returns the result for the program.
    pub(super) fn finish(mut self) -> Option<Changed<'a>> {
        debug_assert!(self.pushed == 0, "no sum is left half done");
        debug_assert!(self.stack.is_empty(), "no part of a sum waits for another");
        if let Some(prefix) = self.prefix.take() {
            self.held.bytes_mut().copy_from_slice(&prefix);
        }
        self.held.finish()
    }

    /// Begins with the first chunk of long blocks.
    pub(super) fn in_chunks(mut self, chunk: usize) -> Self {
        let from = self.from.as_ref().map(|(_, layout)| layout.clone());
        let whole = self.layout.clone().placed();
        if whole.longest().max(from.as_ref().map_or(0, Layout::longest)) > chunk {
            self.whole = Some((whole, from));
            self.slice(0, chunk);
        }
        self
    }

    /// Goes to the next chunk of each block; false if there is none.
    pub(super) fn slice(&mut self, at: usize, chunk: usize) -> bool {
        let Some((layout, from)) = &self.whole else { return false };
        let longest = from.as_ref().map_or(0, Layout::longest);
        debug_assert!(at.is_multiple_of(chunk), "chunks come one behind the other");
        if at >= layout.longest().max(longest) {
            return false;
        }
        self.layout = layout.slice(at, chunk);
        if let (Some((_, layout)), Some(whole)) = (&mut self.from, from) {
            *layout = whole.slice(at, chunk);
        }
        true
    }

    /// Goes to the next chunk of a vector; false if there is none.
    pub(super) fn next_chunk(&mut self, chunk: usize) -> bool {
        let next = self.layout.next_chunk(self.held.bytes().len(), chunk);
        let is_left = next.is_some();
        next.into_iter().for_each(|layout| self.layout = layout);
        is_left
    }

    /// Bytes of a step.
    pub(super) fn len(&self, step: Step) -> usize {
        match step {
            Step::Send { blocks, .. } => self.sends().1.len(blocks),
            Step::Receive { blocks, .. } | Step::PushOwn { blocks } => self.layout.len(blocks),
        }
    }

    /// Returns the bytes to be sent from, and the layout of the blocks in them.
    pub(super) fn sends(&self) -> (&[u8], &Layout) {
        match &self.from {
            Some((source, layout)) => (source.bytes(), layout),
            None => (self.held.bytes(), &self.layout),
        }
    }

    /// Takes a portion, whose bytes begin at `at` of the `len` bytes of its blocks.
    pub(super) fn take(
        &mut self,
        (blocks, action): (Blocks, Action),
        (at, len): (usize, usize),
        bytes: &mut [u8],
    ) {
        debug_assert!(at + bytes.len() <= len, "a portion is of its step");
        if action == Action::Place {
            return self.layout.place(blocks, at, bytes, self.held.bytes_mut());
        }
        if action == Action::Push {
            return self.push(blocks, (at, len), bytes);
        }
        let Some((combine, number)) = self.combine else { return };
        debug_assert!(self.layout.run(blocks).is_some(), "what is combined is of one piece");
        let first = self.layout.run(blocks).map_or(0, |range| range.start) + at;
        let range = first..first + bytes.len();
        if action == Action::FoldAfter {
            return combine.apply(number, &mut self.held.bytes_mut()[range], bytes, &[]);
        }
        if let Some(prefix) = &mut self.prefix {
            let mut before = bytes.to_vec();
            combine.apply(number, &mut before, &prefix[range.clone()], &[]);
            prefix[range.clone()].copy_from_slice(&before);
        }
        let held = &mut self.held.bytes_mut()[range];
        combine.apply(number, bytes, held, &[]);
        held.copy_from_slice(bytes);
    }

    /// Takes a portion that is still in a landing.
    pub(super) fn take_landed(
        &mut self,
        (blocks, action): (Blocks, Action),
        (at, len): (usize, usize),
        (peer, piece): (PeerId, Piece),
        out: &mut Outgoing,
    ) {
        let bytes = piece.len as usize;
        if let (Action::Place, Some(range)) = (action, self.layout.run(blocks)) {
            let into = &mut self.held.bytes_mut()[range][at..at + bytes];
            return out.read_landing(peer, piece.offset, into);
        }
        let mut buffer = [0; READ_MAX];
        for done in (0..bytes).step_by(READ_MAX) {
            let read = &mut buffer[..READ_MAX.min(bytes - done)];
            out.read_landing(peer, piece.offset + done as u64, read);
            self.take((blocks, action), (at + done, len), read);
        }
    }

    pub(super) fn push_own(&mut self, blocks: Blocks) {
        let range = self.layout.run(blocks).unwrap_or(0..0);
        let own = self.held.bytes()[range].to_vec();
        self.push(blocks, (0, own.len()), &own);
    }

    /// Pushes a partial sum on the stack, and combines it with the top one if that is its other
    /// half.
    // spec: COLL-7
    fn push(&mut self, blocks: Blocks, (at, len): (usize, usize), bytes: &[u8]) {
        let Some((combine, number)) = self.combine else { return };
        debug_assert!(self.pushed < self.members, "each member has one part");
        let closes = bracket::closes(self.pushed, self.members) as usize;
        if closes == 0 {
            self.stack.extend_from_slice(bytes);
        } else {
            debug_assert!(self.stack.len() >= closes * len, "the other halves wait");
            let top = self.stack.len() - len + at;
            combine.apply(number, &mut self.stack[top..top + bytes.len()], bytes, &[]);
        }
        if at + bytes.len() < len {
            return;
        }
        for _ in 1..closes {
            let from = self.stack.len() - 2 * len;
            let (below, top) = self.stack.split_at_mut(from + len);
            combine.apply(number, &mut below[from..], top, &[]);
            self.stack.truncate(from + len);
        }
        self.pushed += 1;
        if self.pushed == self.members {
            self.pushed = 0;
            let stack = std::mem::take(&mut self.stack);
            debug_assert!(stack.len() == len, "one part is left of a sum");
            let range = self.layout.run(blocks).unwrap_or(0..0);
            self.held.bytes_mut()[range].copy_from_slice(&stack);
        }
    }
}

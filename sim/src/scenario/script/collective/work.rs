//! The blocks that a member of a collective holds, and their values in the end.
//!
//! The numbers of collective, member and element decide on a value. So nobody has to hold a whole
//! vector: a chunk is filled when it begins, and checked when it ends.
use super::Joint;
use crate::random::mix;
use ayre_proto::collective::{Action, Blocks, Collective, Place, Step, bracket};
use ayre_proto::combine::{Combine, Number};
use core::mem;
use core::ops::Range;

/// The numbers that are combined, and their bytes.
pub(super) const NUMBER: Number = Number::U64;
const WORD: u64 = 8;

/// Which collective it is, and the member's place in the group.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct About {
    pub(super) joint: Joint,
    pub(super) place: Place,
    /// The root's number in the group; 0 where there is none.
    pub(super) root: usize,
    /// The number of the collective in its group.
    pub(super) sequence: u32,
    /// Bytes of a vector, or of each block, that are done at a time.
    pub(super) chunk: u64,
}

impl About {
    /// Whether blocks are parts of a vector that goes chunk by chunk.
    fn is_vector(&self) -> bool {
        use Collective as C;
        matches!(self.joint.collective, C::Broadcast | C::Reduce | C::Allreduce | C::Scan)
    }

    /// The bytes of a block in a chunk: of the vector, or of the block itself.
    fn range(&self, block: usize, chunk: u64) -> Range<u64> {
        let (len, members, block) = (self.joint.len, self.place.members as u64, block as u64);
        let size = if self.joint.combine.is_some() { WORD } else { 1 };
        let parts = |len: u64| {
            let at = |block: u64| len / size * block / members * size;
            at(block)..at(block + 1)
        };
        let begin = chunk * self.chunk;
        if self.is_vector() {
            let begin = begin.min(len);
            let part = parts(self.chunk.min(len - begin));
            return begin + part.start..begin + part.end;
        }
        let whole = match self.joint.collective {
            Collective::Barrier => 0..0,
            Collective::ReduceScatter => parts(len),
            _ => 0..len,
        };
        let begin = (whole.start + begin).min(whole.end);
        begin..(begin + self.chunk).min(whole.end)
    }

    /// Whether there is a chunk with this number.
    pub(super) fn has_chunk(&self, chunk: u64) -> bool {
        (0..self.place.members).any(|block| !self.range(block, chunk).is_empty())
    }

    /// Bytes of blocks in a chunk.
    pub(in super::super) fn bytes_of(&self, Blocks { first, count }: Blocks, chunk: u64) -> u64 {
        let blocks = (first..first + count).map(|block| block % self.place.members);
        blocks.map(|block| self.range(block, chunk)).map(|range| range.end - range.start).sum()
    }

    /// The values of a member, those that are for one other member only, or for all.
    fn values(&self, of: usize, to: Option<usize>, range: Range<u64>) -> Vec<u8> {
        let to = to.map_or(0, |to| to as u64 + 1);
        let salt = mix(u64::from(self.sequence) << 32 | (of as u64) << 16 | to);
        let words = (range.start / WORD..range.end.div_ceil(WORD)).map(|word| mix(salt ^ word));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let skip = (range.start % WORD) as usize;
        bytes.drain(..skip.min(bytes.len()));
        bytes.truncate((range.end - range.start) as usize);
        bytes
    }

    /// The values of a block at this member when a chunk begins.
    fn first(&self, block: usize, chunk: u64) -> Vec<u8> {
        use Collective as C;
        let (own, range) = (self.place.member, self.range(block, chunk));
        match self.joint.collective {
            C::Broadcast if own == self.root => self.values(own, None, range),
            C::Scatter if own == self.root => self.values(own, Some(block), range),
            C::Alltoall => self.values(own, Some(block), range),
            C::Gather | C::Allgather if block == own => self.values(own, None, range),
            collective if collective.combines() => self.values(own, None, range),
            _ => vec![],
        }
    }

    /// The values that a block is to have when a chunk ends; nothing, where that does not matter.
    fn last(&self, block: usize, chunk: u64) -> Option<Vec<u8>> {
        use Collective as C;
        let (own, range) = (self.place.member, self.range(block, chunk));
        let is_root = own == self.root;
        let members = match self.joint.collective {
            C::Broadcast => return Some(self.values(self.root, None, range)),
            C::Scatter => {
                return (block == own).then(|| self.values(self.root, Some(own), range));
            }
            C::Gather => return is_root.then(|| self.values(block, None, range)),
            C::Allgather => return Some(self.values(block, None, range)),
            C::Alltoall => return Some(self.values(block, Some(own), range)),
            C::Reduce if is_root => self.place.members,
            C::ReduceScatter if block == own => self.place.members,
            C::Allreduce => self.place.members,
            C::Scan => own + 1,
            C::Barrier | C::Reduce | C::ReduceScatter => return None,
        };
        let mut sum = self.values(0, None, range.clone());
        for member in 1..members {
            let values = self.values(member, None, range.clone());
            self.joint.combine.iter().for_each(|how| how.apply(NUMBER, &mut sum, &values, &[]));
        }
        Some(sum)
    }
}

/// The blocks of a member in a chunk.
#[derive(Debug)]
pub(super) struct Work {
    about: About,
    pub(super) chunk: u64,
    /// The blocks to be sent, where they are not those that come: of an alltoall.
    from: Option<Vec<Vec<u8>>>,
    held: Vec<Vec<u8>>,
    /// The partial result of a scan: of the members up to this one.
    prefix: Option<Vec<u8>>,
    /// Partial results that wait for their other half.
    stack: Vec<Vec<u8>>,
    pushed: usize,
}

impl Work {
    pub(super) fn new(about: About, chunk: u64) -> Self {
        let held: Vec<_> =
            (0..about.place.members).map(|block| about.first(block, chunk)).collect();
        let collective = about.joint.collective;
        let from = (collective == Collective::Alltoall).then(|| held.clone());
        let prefix = (collective == Collective::Scan).then(|| held.concat());
        Self { about, chunk, from, held, prefix, stack: vec![], pushed: 0 }
    }

    /// Bytes of a step.
    pub(super) fn len(&self, step: Step) -> usize {
        let (Step::Send { blocks, .. } | Step::Receive { blocks, .. } | Step::PushOwn { blocks }) =
            step;
        self.about.bytes_of(blocks, self.chunk) as usize
    }

    /// The bytes of blocks that are sent.
    pub(super) fn sent(&self, blocks: Blocks) -> Vec<u8> {
        let from = self.from.as_ref().unwrap_or(&self.held);
        numbers(blocks, from.len()).flat_map(|block| &from[block]).copied().collect()
    }

    /// Takes the bytes of blocks that have come.
    pub(super) fn take(&mut self, blocks: Blocks, action: Action, mut bytes: Vec<u8>) {
        let Some(how) = self.about.joint.combine.filter(|_| action != Action::Place) else {
            return self.place(blocks, &bytes);
        };
        if action == Action::Push {
            return self.push(how, blocks, bytes);
        }
        let mut held = self.sent(blocks);
        if action == Action::FoldAfter {
            how.apply(NUMBER, &mut held, &bytes, &[]);
            return self.place(blocks, &held);
        }
        if let Some(prefix) = &mut self.prefix {
            let after = mem::replace(prefix, bytes.clone());
            how.apply(NUMBER, prefix, &after, &[]);
        }
        how.apply(NUMBER, &mut bytes, &held, &[]);
        self.place(blocks, &bytes);
    }

    /// The member's own blocks have their turn.
    pub(super) fn push_own(&mut self, blocks: Blocks) {
        let own = self.sent(blocks);
        self.take(blocks, Action::Push, own);
    }

    fn place(&mut self, blocks: Blocks, mut bytes: &[u8]) {
        for block in numbers(blocks, self.held.len()) {
            let range = self.about.range(block, self.chunk);
            let (now, later) = bytes.split_at((range.end - range.start) as usize);
            self.held[block] = now.to_vec();
            bytes = later;
        }
    }

    /// A partial result is pushed on the stack, and combined with those whose other half it is.
    fn push(&mut self, how: Combine, blocks: Blocks, bytes: Vec<u8>) {
        let members = self.about.place.members;
        let mut top = bytes;
        for _ in 0..bracket::closes(self.pushed, members) {
            let below = self.stack.pop().expect("the other half waits");
            let after = mem::replace(&mut top, below);
            how.apply(NUMBER, &mut top, &after, &[]);
        }
        self.pushed += 1;
        if self.pushed == members {
            self.pushed = 0;
            return self.place(blocks, &top);
        }
        self.stack.push(top);
    }

    /// How the result of a chunk differs from a plain computation.
    pub(super) fn difference(&self) -> Option<String> {
        let held = match &self.prefix {
            Some(prefix) => prefix.clone(),
            None => self.held.concat(),
        };
        let mut at = 0;
        for block in 0..self.held.len() {
            let range = self.about.range(block, self.chunk);
            let len = match self.prefix {
                Some(_) => (range.end - range.start) as usize,
                None => self.held[block].len(),
            };
            let own = &held[at..at + len];
            at += len;
            let Some(expected) = self.about.last(block, self.chunk) else { continue };
            if own != expected {
                let same = own.iter().zip(&expected).take_while(|(own, other)| own == other);
                let byte = range.start + same.count() as u64;
                return Some(format!("made another value of byte {byte} of block {block}"));
            }
        }
        None
    }
}

/// The numbers of blocks.
fn numbers(Blocks { first, count }: Blocks, members: usize) -> impl Iterator<Item = usize> {
    (first..first + count).map(move |block| block % members)
}

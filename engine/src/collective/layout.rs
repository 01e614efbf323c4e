//! Where blocks lie in a buffer.
use ayre_proto::collective::Blocks;
use std::ops::Range;

/// The bytes of each block.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// `elements` of a vector from the byte `start` on, cut into one block for each member.
    Vector { start: usize, elements: usize, size: usize, blocks: usize },
    /// A range for each block; the range is empty where a block is not held here.
    Placed(Vec<Range<usize>>),
}

impl Layout {
    /// Blocks of these lengths, one behind the other.
    pub(super) fn in_order(lens: impl Iterator<Item = usize>) -> Self {
        let mut at = 0;
        let place = |len| {
            let range = at..at + len;
            at += len;
            range
        };
        Self::Placed(lens.map(place).collect())
    }

    /// The held ones among blocks of these lengths, one behind the other.
    pub(super) fn holding(lens: &[usize], held: Blocks) -> Self {
        debug_assert!(held.count <= lens.len(), "no block is held twice");
        let mut ranges = vec![0..0; lens.len()];
        let mut at = 0;
        for block in held.first..held.first + held.count {
            let block = block % lens.len();
            ranges[block] = at..at + lens[block];
            at += lens[block];
        }
        Self::Placed(ranges)
    }

    /// Returns the next chunk of a vector of `end` elements, or none behind the last one.
    pub(super) fn next_chunk(&self, end: usize, chunk: usize) -> Option<Self> {
        let Self::Vector { start, elements, size, blocks } = *self else { return None };
        let start = start + elements * size;
        debug_assert!(start <= end, "no chunk goes on behind the vector");
        let elements = elements_in(end.saturating_sub(start), chunk, size);
        (elements > 0).then_some(Self::Vector { start, elements, size, blocks })
    }

    /// Turns the layout into a range for each block.
    pub(super) fn placed(self) -> Self {
        match self {
            Self::Vector { blocks, .. } => {
                Self::Placed((0..blocks).map(|block| self.one(block)).collect())
            }
            placed => placed,
        }
    }

    /// Returns the layout of a part of each block: `bytes` of it, from its byte `at` on.
    pub(super) fn slice(&self, at: usize, bytes: usize) -> Self {
        let part = |range: &Range<usize>| {
            let start = range.end.min(range.start + at);
            start..range.end.min(start + bytes)
        };
        match self {
            Self::Placed(ranges) => Self::Placed(ranges.iter().map(part).collect()),
            Self::Vector { .. } => self.clone(),
        }
    }

    /// Bytes of the longest block.
    pub(super) fn longest(&self) -> usize {
        match self {
            Self::Placed(ranges) => ranges.iter().map(Range::len).max().unwrap_or(0),
            Self::Vector { elements, size, .. } => elements * size,
        }
    }

    /// Bytes of all held blocks.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Vector { elements, size, .. } => elements * size,
            Self::Placed(ranges) => ranges.iter().map(Range::len).sum(),
        }
    }

    pub(super) fn one(&self, block: usize) -> Range<usize> {
        match self {
            Self::Vector { start, elements, size, blocks } => {
                debug_assert!(block < *blocks, "a vector has a block for each member");
                let at = |block: usize| start + elements * block / blocks * size;
                at(block)..at(block + 1)
            }
            Self::Placed(ranges) => ranges[block].clone(),
        }
    }

    /// Returns one range for blocks that lie one behind the other.
    #[inline]
    pub(super) fn run(&self, Blocks { first, count }: Blocks) -> Option<Range<usize>> {
        if count == 0 {
            return Some(0..0);
        }
        match self {
            Self::Vector { start, elements, size, blocks } if first == 0 && count == *blocks => {
                Some(*start..start + elements * size)
            }
            Self::Vector { blocks, .. } if first + count <= *blocks => {
                Some(self.one(first).start..self.one(first + count - 1).end)
            }
            Self::Placed(ranges) if count == 1 => Some(ranges[first].clone()),
            Self::Vector { .. } => None,
            Self::Placed(ranges) => {
                debug_assert!(count <= ranges.len(), "no block comes twice");
                let at = |step: usize| &ranges[(first + step) % ranges.len()];
                let joins = (1..count).all(|step| at(step - 1).end == at(step).start);
                joins.then(|| at(0).start..at(count - 1).end)
            }
        }
    }

    /// The bytes of blocks, one range each.
    pub(super) fn ranges(
        &self,
        Blocks { first, count }: Blocks,
    ) -> impl Iterator<Item = Range<usize>> {
        let blocks = match self {
            Self::Vector { blocks, .. } => *blocks,
            Self::Placed(ranges) => ranges.len(),
        };
        (first..first + count).map(move |block| self.one(block % blocks))
    }

    /// Bytes of blocks.
    pub(super) fn len(&self, blocks: Blocks) -> usize {
        match self.run(blocks) {
            Some(range) => range.len(),
            None => self.ranges(blocks).map(|range| range.len()).sum(),
        }
    }

    /// Copies received bytes to where the blocks lie, behind the first `at` bytes of them.
    pub(super) fn place(&self, blocks: Blocks, at: usize, mut bytes: &[u8], into: &mut [u8]) {
        debug_assert!(at + bytes.len() <= self.len(blocks), "what comes fits its blocks");
        if let Some(range) = self.run(blocks) {
            into[range][at..at + bytes.len()].copy_from_slice(bytes);
            return;
        }
        let mut skip = at;
        for range in self.ranges(blocks) {
            let skipped = skip.min(range.len());
            skip -= skipped;
            let part = bytes.len().min(range.len() - skipped);
            let (now, later) = bytes.split_at(part);
            into[range][skipped..skipped + part].copy_from_slice(now);
            bytes = later;
        }
        debug_assert!(bytes.is_empty(), "all that has come is placed");
    }

    /// Copies blocks that lie apart into one vector, one behind the other.
    pub(super) fn pack(&self, blocks: Blocks, from: &[u8]) -> Vec<u8> {
        self.ranges(blocks).flat_map(|range| &from[range]).copied().collect()
    }
}

/// Returns the number of elements in a chunk, at least one if any are left.
pub(super) fn elements_in(bytes: usize, chunk: usize, size: usize) -> usize {
    match bytes.checked_div(size) {
        None | Some(0) => 0,
        Some(elements) => elements.min((chunk / size).max(1)),
    }
}

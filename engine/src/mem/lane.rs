//! Lanes over shared memory: `proto::lane`'s machines with real lines.
use super::map::Mapping;
use crate::sync::{AtomicU64, Ordering};
use ayre_proto::lane::{Kind, Malformed, Receiver, Sender, Status, lines_for};
use ayre_proto::limits::LINE_PAYLOAD;
use std::sync::Arc;

/// Where the lines of a lane lie in a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Offset of the first line.
    pub(crate) first: u64,
    /// Bytes from one line to the next.
    pub(crate) stride: u64,
    /// How many.
    pub(crate) count: u32,
}

/// The words of a lane. Behind a trait so that a model checker can put its own words there.
pub(crate) trait Words {
    /// Word `index` (0..8) of line `line`.
    fn word(&self, line: u32, index: usize) -> &AtomicU64;
    /// The reader's count of consumed lines.
    fn cursor(&self) -> &AtomicU64;
}

/// A lane's place in shared memory, checked once.
#[derive(Debug)]
pub(crate) struct LaneMemory {
    lines: *const AtomicU64,
    stride: usize,
    count: u32,
    cursor: *const AtomicU64,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointers lead to atomics in a mapping that this value keeps alive; any thread may use
// them.
unsafe impl Send for LaneMemory {}

impl LaneMemory {
    pub(crate) fn new(mapping: &Arc<Mapping>, cursor: u64, lines: Lines) -> Self {
        let last = lines.first + lines.stride * u64::from(lines.count.max(1) - 1) + 56;
        let first: *const AtomicU64 = mapping.word(lines.first);
        let _in_range = mapping.word(last);
        Self {
            lines: first,
            stride: lines.stride as usize / 8,
            count: lines.count,
            cursor: mapping.word(cursor),
            _mapping: mapping.clone(),
        }
    }

    pub(crate) fn sender(self) -> LaneSender {
        LaneSender { machine: Sender::new(self.count), words: self }
    }

    pub(crate) fn receiver(self) -> LaneReceiver {
        LaneReceiver { machine: Receiver::new(self.count), words: self }
    }
}

impl Words for LaneMemory {
    #[inline(always)]
    fn word(&self, line: u32, index: usize) -> &AtomicU64 {
        debug_assert!(line < self.count && index < 8);
        // SAFETY: line < count (the machines keep positions below it) and index < 8, so the word
        // lies between the first and last words, both of which new() found inside the mapping.
        unsafe { &*self.lines.add(line as usize * self.stride + index) }
    }

    #[inline(always)]
    fn cursor(&self) -> &AtomicU64 {
        // SAFETY: new() found the word inside the mapping, which lives as long as self.
        unsafe { &*self.cursor }
    }
}

/// A record does not fit right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Writer's end of a lane.
#[derive(Debug)]
pub(crate) struct LaneSender<W = LaneMemory> {
    machine: Sender,
    words: W,
}

impl<W: Words> LaneSender<W> {
    #[cfg(any(loom, test))]
    pub(crate) fn over(words: W, lines: u32) -> Self {
        Self { machine: Sender::new(lines), words }
    }

    /// Longest record that this lane can ever take.
    pub(crate) fn capacity(&self) -> usize {
        self.machine.lines() as usize * LINE_PAYLOAD
    }

    /// Makes sure that a record of `len` bytes fits.
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), Full> {
        if self.machine.free() >= lines_for(len) { Ok(()) } else { self.refresh(len) }
    }

    #[cold]
    fn refresh(&mut self, len: usize) -> Result<(), Full> {
        // LANE-A2: the reader has finished with the lines it counts (LANE-R2). A count that cannot
        // be is ignored: a hostile reader keeps itself from being sent to, nothing else.
        let consumed = self.words.cursor().load(Ordering::Acquire) as u32;
        let _ = self.machine.on_cursor(consumed);
        if self.machine.free() >= lines_for(len) { Ok(()) } else { Err(Full) }
    }

    /// Writes a record of `head` words followed by `data`, whole or not at all.
    // spec: LANE-2
    #[inline]
    pub(crate) fn push<const H: usize>(
        &mut self,
        status: (Kind, u32),
        head: [u64; H],
        data: &[u8],
    ) -> Result<(), Full> {
        const { assert!(H * 8 <= LINE_PAYLOAD, "the head fits the first line") };
        let len = H * 8 + data.len();
        self.reserve(len)?;
        let (line, sequence) = self.machine.take();
        let room = LINE_PAYLOAD - H * 8;
        let (first, rest) = if data.len() <= room { (data, &[][..]) } else { data.split_at(room) };
        if !rest.is_empty() {
            self.push_rest(rest);
        }
        for (index, word) in head.into_iter().enumerate() {
            // Relaxed: published by LANE-R1 below.
            self.words.word(line, 1 + index).store(word, Ordering::Relaxed);
        }
        store_bytes(&self.words, line, 1 + H, first);
        let status = Status { sequence, kind: status.0, len: len as u32, tag: status.1 };
        // LANE-R1: the record and everything stored before it, for whoever sees this word.
        self.words.word(line, 0).store(status.encode(), Ordering::Release);
        Ok(())
    }

    fn push_rest(&mut self, rest: &[u8]) {
        for chunk in rest.chunks(LINE_PAYLOAD) {
            let (line, sequence) = self.machine.take();
            store_bytes(&self.words, line, 1, chunk);
            let status = Status { sequence, kind: Kind::Continuation, len: 0, tag: 0 };
            // Relaxed: published by LANE-R1 of the record's first line.
            self.words.word(line, 0).store(status.encode(), Ordering::Relaxed);
        }
    }
}

#[inline(always)]
fn store_bytes(words: &impl Words, line: u32, first: usize, bytes: &[u8]) {
    let (whole, tail) = bytes.as_chunks::<8>();
    for (index, chunk) in whole.iter().enumerate() {
        // Relaxed: published by LANE-R1.
        words.word(line, first + index).store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        let last = u64::from_le_bytes(last);
        // Relaxed: published by LANE-R1.
        words.word(line, first + whole.len()).store(last, Ordering::Relaxed);
    }
}

/// Reader's end of a lane.
#[derive(Debug)]
pub(crate) struct LaneReceiver<W = LaneMemory> {
    machine: Receiver,
    words: W,
}

impl<W: Words> LaneReceiver<W> {
    #[cfg(any(loom, test))]
    pub(crate) fn over(words: W, lines: u32) -> Self {
        Self { machine: Receiver::new(lines), words }
    }

    /// Longest record that this lane can ever hold.
    pub(crate) fn capacity(&self) -> usize {
        self.machine.lines() as usize * LINE_PAYLOAD
    }

    /// The record that stands at the head, if one has arrived.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Result<Status, Malformed>> {
        // LANE-A1: a status word with the expected number makes the whole record visible (LANE-R1).
        let word = self.words.word(self.machine.position(), 0).load(Ordering::Acquire);
        if !self.machine.arrived(word) {
            return None;
        }
        Some(self.machine.record(word))
    }

    /// Copies head words of the record at the head.
    #[inline]
    pub(crate) fn head<const H: usize>(&self) -> [u64; H] {
        const { assert!(H * 8 <= LINE_PAYLOAD, "the head lies in the first line") };
        let line = self.machine.position();
        // Relaxed: LANE-A1 of peek() has made the record visible.
        std::array::from_fn(|i| self.words.word(line, 1 + i).load(Ordering::Relaxed))
    }

    /// Copies the bytes behind `skip` head words of the record at the head into `into`.
    #[inline]
    pub(crate) fn copy(&self, skip: usize, into: &mut [u8]) {
        let room = LINE_PAYLOAD - skip * 8;
        if into.len() <= room {
            return load_bytes(&self.words, self.machine.position(), 1 + skip, into);
        }
        let (first, rest) = into.split_at_mut(room);
        load_bytes(&self.words, self.machine.position(), 1 + skip, first);
        for (index, chunk) in rest.chunks_mut(LINE_PAYLOAD).enumerate() {
            let line = self.machine.position_of(1 + index as u32);
            load_bytes(&self.words, line, 1, chunk);
        }
    }

    /// Gives the lines of the record at the head back.
    #[inline]
    pub(crate) fn consume(&mut self, status: &Status) {
        self.machine.consume(status.len);
        if let Some(consumed) = self.machine.cursor_due() {
            // LANE-R2: our copies of those lines are done; the writer may reuse them.
            self.words.cursor().store(u64::from(consumed), Ordering::Release);
        }
    }
}

#[inline(always)]
fn load_bytes(words: &impl Words, line: u32, first: usize, into: &mut [u8]) {
    let (whole, tail) = into.as_chunks_mut::<8>();
    for (index, chunk) in whole.iter_mut().enumerate() {
        // Relaxed: LANE-A1 of peek() has made the record visible.
        *chunk = words.word(line, first + index).load(Ordering::Relaxed).to_le_bytes();
    }
    if !tail.is_empty() {
        // Relaxed: as above.
        let last = words.word(line, first + whole.len()).load(Ordering::Relaxed).to_le_bytes();
        let len = tail.len();
        tail.copy_from_slice(&last[..len]);
    }
}

//! Lanes in shared memory: the machines of `proto::lane` over real lines.
use super::map::Mapping;
use super::word::Word;
use super::{prefetch, prefetch_to_write};
use crate::sync::{AtomicU64, Ordering};
use ayre_proto::lane::{Kind, Malformed, Receiver, Sender, Status, lines_for};
use ayre_proto::limits::{LINE, LINE_PAYLOAD};
use std::sync::Arc;

/// The place of a lane's lines in a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// The offset of the first line.
    pub(crate) first: u64,
    /// Bytes from one line to the next one.
    pub(crate) stride: u64,
    /// The number of lines.
    pub(crate) count: u32,
}

/// The eight words of a line, the status word first.
pub(crate) type Line = [AtomicU64; LINE / 8];

/// The words of a lane: a trait, so that a model checker can use its own words.
pub(crate) trait Words {
    /// A line.
    fn line(&self, position: u32) -> &Line;
    /// The reader's count of consumed lines.
    fn cursor(&self) -> &AtomicU64;
}

/// The memory of a lane in a mapping, checked once.
#[derive(Debug)]
pub(crate) struct LaneMemory {
    lines: *const u8,
    stride: usize,
    count: u32,
    cursor: Word,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer leads to atomics in a mapping that this value keeps alive; any thread may use
// them.
unsafe impl Send for LaneMemory {}

impl LaneMemory {
    pub(crate) fn new(mapping: &Arc<Mapping>, cursor: u64, lines: Lines) -> Self {
        let Lines { first, stride, count } = lines;
        assert!(first.is_multiple_of(LINE as u64) && stride.is_multiple_of(LINE as u64));
        let last_word = first + stride * u64::from(count.max(1) - 1) + LINE as u64 - 8;
        let _in_range = mapping.word(last_word);
        Self {
            lines: std::ptr::from_ref(mapping.word(first)).cast(),
            stride: stride as usize,
            count,
            cursor: Word::new(mapping, cursor),
            _mapping: mapping.clone(),
        }
    }

    pub(crate) fn sender(self) -> LaneSender {
        LaneSender { machine: Sender::new(self.count), is_further: false, words: self }
    }

    pub(crate) fn receiver(self) -> LaneReceiver {
        LaneReceiver { machine: Receiver::new(self.count), last_lines: 1, seen: 0, words: self }
    }
}

impl Words for LaneMemory {
    #[inline(always)]
    fn line(&self, position: u32) -> &Line {
        debug_assert!(position < self.count);
        // SAFETY: position < count (the machines keep positions below it), so the line lies
        // between the first and the last one, both of which new() found inside the mapping, and is
        // aligned to a word, as the first and the stride are multiples of a line.
        unsafe { &*self.lines.add(position as usize * self.stride).cast::<Line>() }
    }

    #[inline(always)]
    fn cursor(&self) -> &AtomicU64 {
        &self.cursor
    }
}

/// The record does not fit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The writer's side of a lane.
#[derive(Debug)]
pub(crate) struct LaneSender<W = LaneMemory> {
    machine: Sender,
    /// A record was pushed and none was read since: the next record is probably one of many. Valid
    /// only for lanes whose owner prefetches lines ahead.
    pub(crate) is_further: bool,
    words: W,
}

impl<W: Words> LaneSender<W> {
    #[cfg(all(loom, test))]
    pub(crate) fn over(words: W, lines: u32) -> Self {
        Self { machine: Sender::new(lines), is_further: false, words }
    }

    /// The length of the longest record that the lane can ever take.
    pub(crate) fn capacity(&self) -> usize {
        self.machine.lines() as usize * LINE_PAYLOAD
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> u32 {
        self.machine.lines()
    }

    /// Lines that are free in the end, even if the reader has not given them back yet: it publishes
    /// its cursor after each quarter of the lane.
    pub(crate) fn reach(&self) -> u32 {
        self.lines() - (self.lines() / 4 - 1)
    }

    /// The number of lines that the reader has given back in all, modulo 2^32.
    pub(crate) fn given_back(&self) -> u32 {
        // LANE-A2: the reader has finished with the lines it counts (LANE-R2).
        self.words.cursor().load(Ordering::Acquire) as u32
    }

    /// Checks that a record of `len` bytes fits.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), Full> {
        self.reserve_lines(lines_for(len))
    }

    /// Checks that records of `lines` lines together fit.
    #[inline(always)]
    pub(crate) fn reserve_lines(&mut self, lines: u32) -> Result<(), Full> {
        if self.machine.free() >= lines { Ok(()) } else { self.refresh(lines) }
    }

    #[cold]
    fn refresh(&mut self, lines: u32) -> Result<(), Full> {
        // LANE-A2: the reader has finished with the lines it counts (LANE-R2). An impossible count
        // is ignored: a hostile reader only cuts itself off.
        let consumed = self.words.cursor().load(Ordering::Acquire) as u32;
        let _ = self.machine.on_cursor(consumed);
        if self.machine.free() >= lines { Ok(()) } else { Err(Full) }
    }

    /// Writes a record of `head` words followed by `data`, in all 1 to 56 bytes, into one line, if
    /// it fits and a line is known to be free. [`LaneSender::push`] writes records of any length.
    // spec: LANE-3, ORD-2, ORD-12
    #[inline(always)]
    pub(crate) fn push_short<const H: usize>(
        &mut self,
        (kind, tag): (Kind, u32),
        head: [u64; H],
        data: &[u8],
    ) -> bool {
        let len = H * 8 + data.len();
        if len.wrapping_sub(1) >= LINE_PAYLOAD || self.machine.free() == 0 {
            return false;
        }
        let (position, sequence) = self.machine.take();
        let line = self.words.line(position);
        store_head(line, head);
        store_bytes(line, 1 + H, data);
        let status = Status { sequence, kind, len: len as u32, tag };
        // LANE-R1: the record and everything stored before it, for a reader that sees this word.
        line[0].store(status.encode(), Ordering::Release);
        true
    }

    /// Writes a record of `head` words followed by `data`, whole or not at all.
    // spec: LANE-3, MSG-10, QUE-9
    #[inline(always)]
    pub(crate) fn push<const H: usize>(
        &mut self,
        (kind, tag): (Kind, u32),
        head: [u64; H],
        data: &[u8],
    ) -> Result<(), Full> {
        const { assert!(H * 8 <= LINE_PAYLOAD, "the head fits the first line") };
        let len = H * 8 + data.len();
        self.reserve(len)?;
        let (position, sequence) = self.machine.take();
        let first =
            if len <= LINE_PAYLOAD { data } else { self.push_rest(data, LINE_PAYLOAD - H * 8) };
        let line = self.words.line(position);
        store_head(line, head);
        store_bytes(line, 1 + H, first);
        let status = Status { sequence, kind, len: len as u32, tag };
        // LANE-R1: the record and everything stored before it, for a reader that sees this word.
        line[0].store(status.encode(), Ordering::Release);
        Ok(())
    }

    /// Before a push: prefetches a later line, where records follow each other. A processor waits
    /// for the lines of its stores one after the other, and looks only a few lines ahead where it
    /// stores much else in between. Where the reader answers each record, a prefetch would take
    /// lines away from it.
    #[inline(always)]
    pub(crate) fn send_for_ahead(&mut self) {
        if self.is_further
            && let Some(position) = self.machine.position_ahead()
        {
            prefetch_to_write(self.words.line(position).as_ptr().addr());
        }
        self.is_further = true;
    }

    /// Writes all lines of a record but the first; returns the bytes for the first one.
    #[inline(never)]
    fn push_rest<'a>(&mut self, data: &'a [u8], room: usize) -> &'a [u8] {
        let (first, rest) = data.split_at(room);
        let (whole, tail) = rest.as_chunks::<LINE_PAYLOAD>();
        whole.iter().for_each(|chunk| self.push_further(chunk));
        if !tail.is_empty() {
            self.push_further(tail);
        }
        first
    }

    #[inline(always)]
    fn push_further(&mut self, chunk: &[u8]) {
        let (position, sequence) = self.machine.take();
        let line = self.words.line(position);
        store_bytes(line, 1, chunk);
        let status = Status { sequence, kind: Kind::Continuation, len: 0, tag: 0 };
        // Relaxed: published by LANE-R1 of the record's first line.
        line[0].store(status.encode(), Ordering::Relaxed);
    }
}

/// Stores the words after the status word.
#[inline(always)]
fn store_head<const H: usize>(line: &Line, head: [u64; H]) {
    for index in 0..H {
        // Relaxed: published by LANE-R1.
        line[1 + index].store(head[index], Ordering::Relaxed);
    }
}

/// Stores at most 56 bytes from word `first` on.
#[inline(always)]
fn store_bytes(line: &Line, first: usize, bytes: &[u8]) {
    let (whole, tail) = bytes.as_chunks::<8>();
    for (index, chunk) in whole.iter().enumerate() {
        // Relaxed: published by LANE-R1.
        line[first + index].store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
    if !tail.is_empty() {
        // Relaxed: published by LANE-R1.
        line[first + whole.len()].store(partial_word(tail), Ordering::Relaxed);
    }
}

/// The last one to seven bytes of a record as a word.
#[inline(always)]
fn partial_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The finding of a reader at the head of a lane, by one load where that suffices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe<T> {
    Nothing,
    Taken(T),
    /// A record has arrived that takes more steps, or is malformed.
    Other,
}

/// The most lines of a record that are prefetched before the record has come.
const SENT_FOR_MAX: u32 = 5;

/// The reader's side of a lane.
#[derive(Debug)]
pub(crate) struct LaneReceiver<W = LaneMemory> {
    machine: Receiver,
    /// Lines of the last record; the next one probably has as many.
    last_lines: u32,
    /// The number of lines given back at the last call of [`LaneReceiver::has_given_back`].
    seen: u32,
    words: W,
}

impl<W: Words> LaneReceiver<W> {
    #[cfg(all(loom, test))]
    pub(crate) fn over(words: W, lines: u32) -> Self {
        Self { machine: Receiver::new(lines), last_lines: 1, seen: 0, words }
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> u32 {
        self.machine.lines()
    }

    /// The length of the longest record that the lane can ever hold.
    pub(crate) fn capacity(&self) -> usize {
        self.machine.lines() as usize * LINE_PAYLOAD
    }

    /// Whether there is a record at the head.
    #[inline(always)]
    pub(crate) fn has_come(&self) -> bool {
        // Relaxed: a taker of the record loads the word again.
        let word = self.words.line(self.machine.position())[0].load(Ordering::Relaxed);
        self.machine.arrived(word)
    }

    /// The status of the record at the head, if one has arrived.
    // spec: LANE-3, LANE-7
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<Result<Status, Malformed>> {
        // LANE-A1: a status word with the expected number makes the whole record visible (LANE-R1).
        let word = self.words.line(self.machine.position())[0].load(Ordering::Acquire);
        if !self.machine.arrived(word) {
            return None;
        }
        Some(self.machine.record(word))
    }

    /// Length and tag of the record at the head, if it is of this kind and fits one line.
    #[inline(always)]
    pub(crate) fn peek_short(&self, kind: Kind) -> Probe<(usize, u32)> {
        // LANE-A1: a status word with the expected number makes the whole record visible (LANE-R1).
        let word = self.words.line(self.machine.position())[0].load(Ordering::Acquire);
        if !self.machine.arrived(word) {
            return Probe::Nothing;
        }
        self.machine.short(word, kind).map_or(Probe::Other, Probe::Taken)
    }

    /// Length and tag of the record at the head, if it is of this kind and takes several lines.
    #[inline(always)]
    pub(crate) fn peek_long(&self, kind: Kind) -> Probe<(usize, u32)> {
        // LANE-A1: a status word with the expected number makes the whole record visible (LANE-R1).
        let word = self.words.line(self.machine.position())[0].load(Ordering::Acquire);
        if !self.machine.arrived(word) {
            return Probe::Nothing;
        }
        self.machine.long(word, kind).map_or(Probe::Other, Probe::Taken)
    }

    /// Takes the record at the head into `into`, if it is of this kind, in one line, and fits. The
    /// other methods do this step by step for any record.
    #[inline(always)]
    pub(crate) fn take_short(&mut self, kind: Kind, into: &mut [u8]) -> Probe<(usize, u32)> {
        let line = self.words.line(self.machine.position());
        // LANE-A1: a status word with the expected number makes the whole record visible (LANE-R1).
        let word = line[0].load(Ordering::Acquire);
        if !self.machine.arrived(word) {
            self.send_for_rest();
            return Probe::Nothing;
        }
        prefetch(self.words.line(self.machine.position_ahead()).as_ptr().addr());
        let Some((len, tag)) = self.machine.short(word, kind) else { return Probe::Other };
        if len == 0 || len > into.len() {
            return Probe::Other;
        }
        let into = &mut into[..len];
        load_bytes(line, 1, into);
        if self.last_lines != 1 {
            self.last_lines = 1;
        }
        self.consume_lines(1);
        Probe::Taken((len, tag))
    }

    /// Takes the record at the head, if it is of this kind and has exactly `N` words.
    #[inline(always)]
    pub(crate) fn take_words<const N: usize>(&mut self, kind: Kind) -> Probe<[u64; N]> {
        let line = self.words.line(self.machine.position());
        // LANE-A1: a status word with the expected number makes the whole record visible (LANE-R1).
        let word = line[0].load(Ordering::Acquire);
        if !self.machine.arrived(word) {
            return Probe::Nothing;
        }
        prefetch(self.words.line(self.machine.position_ahead()).as_ptr().addr());
        if self.machine.short(word, kind).is_none_or(|(len, _)| len != N * 8) {
            return Probe::Other;
        }
        // Relaxed: LANE-A1 above has made the record visible.
        let words = std::array::from_fn(|index| line[1 + index].load(Ordering::Relaxed));
        self.consume_lines(1);
        Probe::Taken(words)
    }

    /// Copies the first words of the record at the head.
    #[inline(always)]
    pub(crate) fn head<const H: usize>(&self) -> [u64; H] {
        const { assert!(H * 8 <= LINE_PAYLOAD, "the head lies in the first line") };
        let line = self.words.line(self.machine.position());
        // Relaxed: LANE-A1 of peek() has made the record visible.
        std::array::from_fn(|index| line[1 + index].load(Ordering::Relaxed))
    }

    /// Copies the bytes after `skip` head words of a one-line record into `into`.
    #[inline(always)]
    pub(crate) fn copy_short(&self, skip: usize, into: &mut [u8]) {
        assert!(skip * 8 + into.len() <= LINE_PAYLOAD, "the record lies in one line");
        load_bytes(self.words.line(self.machine.position()), 1 + skip, into);
    }

    /// Gives back the line of a one-line record.
    #[inline(always)]
    pub(crate) fn consume_short(&mut self) {
        if self.last_lines != 1 {
            self.last_lines = 1;
        }
        self.consume_lines(1);
    }

    /// Prefetches the lines after the first one of the record at the head, which has `len` bytes:
    /// several transfers at once take as long as one. For a record that follows another one, an
    /// earlier call has done so; then this call prefetches the lines of a later record.
    #[inline(always)]
    pub(crate) fn send_for_rest_of(&self, len: usize, is_further: bool) {
        let lines = lines_for(len) - 1;
        if is_further {
            self.send_for(lines, self.machine.positions_ahead());
        } else {
            self.send_for(lines, self.machine.positions_behind());
        }
    }

    /// Prefetches a line further on. That is faster where records follow each other; otherwise it
    /// would take lines away from the writer.
    #[inline(always)]
    pub(crate) fn send_for_ahead(&self) {
        prefetch(self.words.line(self.machine.position_ahead()).as_ptr().addr());
    }

    /// Copies the bytes after `skip` head words of the record at the head into `into`.
    // spec: ERR-8
    #[inline]
    pub(crate) fn copy(&self, skip: usize, into: &mut [u8]) {
        let room = LINE_PAYLOAD - skip * 8;
        if into.len() <= room {
            return self.copy_short(skip, into);
        }
        self.copy_lines(skip, into);
    }

    #[inline(never)]
    fn copy_lines(&self, skip: usize, into: &mut [u8]) {
        let room = LINE_PAYLOAD - skip * 8;
        let (first, rest) = into.split_at_mut(room.min(into.len()));
        let line = self.words.line(self.machine.position());
        match first.as_mut_array::<LINE_PAYLOAD>() {
            Some(whole) => load_bytes(line, 1, whole),
            None => load_bytes(line, 1 + skip, first),
        }
        // Several transfers at once take as long as one.
        let lines = rest.len().div_ceil(LINE_PAYLOAD);
        for position in self.machine.positions_behind().take(lines) {
            prefetch(self.words.line(position).as_ptr().addr());
        }
        let mut behind = self.machine.positions_behind();
        let (whole, tail) = rest.as_chunks_mut::<LINE_PAYLOAD>();
        for (chunk, position) in whole.iter_mut().zip(&mut behind) {
            load_bytes(self.words.line(position), 1, chunk);
        }
        if let Some(position) = behind.next() {
            load_bytes(self.words.line(position), 1, tail);
        }
    }

    /// During a wait for the next record: prefetches the lines after its first one, if it probably
    /// has any, so that they come together.
    #[inline(always)]
    pub(crate) fn send_for_rest(&self) {
        if self.last_lines > 1 {
            self.send_for_likely();
        }
    }

    #[inline(never)]
    fn send_for_likely(&self) {
        self.send_for(self.last_lines.min(SENT_FOR_MAX) - 1, self.machine.positions_behind());
    }

    #[inline(always)]
    fn send_for(&self, lines: u32, positions: impl Iterator<Item = u32>) {
        for position in positions.take(lines as usize) {
            prefetch(self.words.line(position).as_ptr().addr());
        }
    }

    /// Whether lines were given back since the last call.
    #[inline]
    pub(crate) fn has_given_back(&mut self) -> bool {
        let published = self.machine.published();
        std::mem::replace(&mut self.seen, published) != published
    }

    /// Gives back the lines of the record at the head.
    pub(crate) fn consume(&mut self, status: &Status) {
        self.consume_len(status.len as usize);
    }

    /// Gives back the lines of the record at the head, which has `len` bytes.
    pub(crate) fn consume_len(&mut self, len: usize) {
        self.last_lines = lines_for(len);
        self.consume_lines(self.last_lines);
    }

    /// Moves on from the record at the head without giving back its lines: the record was passed
    /// on, and [`LaneReceiver::give_back`] gives the lines back later.
    pub(crate) fn pass(&mut self, status: &Status) {
        self.machine.consume(lines_for(status.len as usize));
    }

    /// Gives back the lines before this count.
    // spec: WIRE-3
    pub(crate) fn give_back(&mut self, consumed: u32) -> Result<(), Malformed> {
        self.machine.give_back(consumed)?;
        // LANE-R2: our copies of those lines are done; the writer may reuse them.
        self.words.cursor().store(u64::from(consumed), Ordering::Release);
        Ok(())
    }

    // spec: LANE-8
    #[inline(always)]
    fn consume_lines(&mut self, lines: u32) {
        self.machine.consume(lines);
        if let Some(consumed) = self.machine.cursor_due() {
            // LANE-R2: our copies of those lines are done; the writer may reuse them.
            self.words.cursor().store(u64::from(consumed), Ordering::Release);
        }
    }
}

/// Loads at most 56 bytes from word `first` on.
#[inline(always)]
fn load_bytes(line: &Line, first: usize, into: &mut [u8]) {
    let (whole, tail) = into.as_chunks_mut::<8>();
    let count = whole.len();
    for (index, chunk) in whole.iter_mut().enumerate() {
        // Relaxed: LANE-A1 of the poll has made the record visible.
        *chunk = line[first + index].load(Ordering::Relaxed).to_le_bytes();
    }
    if !tail.is_empty() {
        // Relaxed: LANE-A1 of the poll has made the record visible.
        let mut word = line[first + count].load(Ordering::Relaxed);
        for byte in tail {
            *byte = word as u8;
            word >>= 8;
        }
    }
}

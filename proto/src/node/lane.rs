//! A lane in memory of the node's own: both ends, and the records between them.
use crate::lane::{Kind, Malformed, Receiver, Sender, Status, lines_for};
use crate::limits::LINE_PAYLOAD;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A record of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind.
    pub kind: Kind,
    /// Belongs to the kind.
    pub tag: u32,
    /// Its payload.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// Its first `N` words, if it has them.
    pub(super) fn words<const N: usize>(&self) -> Option<[u64; N]> {
        let (words, _) = self.bytes.as_chunks().0.split_first_chunk()?;
        Some(words.map(u64::from_le_bytes))
    }

    /// The status word of its first line.
    pub fn status(&self) -> Status {
        Status { sequence: 0, kind: self.kind, len: self.bytes.len() as u32, tag: self.tag }
    }
}

/// A lane: as many records as fit its lines.
///
/// The reader either takes records, and gives their lines back from time to time; or it passes them
/// on, and gives lines back once their next reader has.
#[derive(Debug)]
pub struct Lane {
    writer: Sender,
    reader: Receiver,
    /// The count of lines that the writer knows of.
    cursor: u32,
    entries: VecDeque<Entry>,
    /// Nothing is taken out any more.
    is_closed: bool,
}

impl Lane {
    /// A lane of `lines` lines.
    pub fn new(lines: u32) -> Self {
        let (writer, reader) = (Sender::new(lines), Receiver::new(lines));
        Self { writer, reader, cursor: 0, entries: VecDeque::new(), is_closed: false }
    }

    fn check(&self) {
        debug_assert!(self.entries.len() <= self.writer.lines() as usize, "each takes a line");
        debug_assert!(self.cursor == self.reader.published(), "the writer knows what it has back");
    }

    /// The number of its lines.
    pub const fn lines(&self) -> u32 {
        self.writer.lines()
    }

    /// Bytes that it holds.
    pub const fn capacity(&self) -> usize {
        self.writer.lines() as usize * LINE_PAYLOAD
    }

    /// Lines that are free in the end, whatever the reader holds back.
    pub const fn reach(&self) -> u32 {
        self.writer.lines() - (self.writer.lines() / 4 - 1)
    }

    /// Whether `lines` lines are free.
    pub const fn has_lines(&self, lines: u64) -> bool {
        lines <= self.writer.free() as u64
    }

    /// Whether a record of `len` bytes finds room.
    pub const fn has_room(&self, len: usize) -> bool {
        self.has_lines(lines_for(len) as u64)
    }

    /// Writes a record, whole or not at all. Whether it was written.
    // spec: LANE-6
    pub fn push(&mut self, kind: Kind, tag: u32, bytes: &[u8]) -> bool {
        self.push_with((kind, tag), [], (bytes.len(), |into| into.copy_from_slice(bytes)))
    }

    /// Writes a record that begins with these words, if there is room; `fill` writes the remaining
    /// `len` bytes.
    // spec: LANE-6
    pub(super) fn push_with<const H: usize>(
        &mut self,
        (kind, tag): (Kind, u32),
        head: [u64; H],
        (len, fill): (usize, impl FnOnce(&mut [u8])),
    ) -> bool {
        let has_room = self.has_room(8 * H + len);
        if has_room {
            let mut bytes: Vec<u8> = head.into_iter().flat_map(u64::to_le_bytes).collect();
            bytes.resize(8 * H + len, 0);
            fill(&mut bytes[8 * H..]);
            (0..lines_for(bytes.len())).for_each(|_| _ = self.writer.take());
            self.entries.push_back(Entry { kind, tag, bytes });
        }
        self.check();
        has_room
    }

    /// The record at the head.
    pub fn peek(&self) -> Option<&Entry> {
        self.entries.front().filter(|_| !self.is_closed)
    }

    /// The status word of the record at the head.
    pub(super) fn status(&self) -> Option<Result<Status, Malformed>> {
        self.peek().map(|record| Ok(record.status()))
    }

    /// Its first words; zeros where it has fewer, which is said by its length.
    pub(super) fn head<const H: usize>(&self) -> [u64; H] {
        self.peek().and_then(Entry::words).unwrap_or([0; H])
    }

    /// The bytes behind the first `H` words of that record.
    pub(super) fn data<const H: usize>(&self) -> &[u8] {
        self.peek().and_then(|record| record.bytes.get(8 * H..)).unwrap_or_default()
    }

    /// The reader is done with the record at the head.
    pub(super) fn consume(&mut self) {
        let taken = self.take();
        debug_assert!(taken.is_some(), "a record is consumed once it is there");
    }

    /// Its reader looks at it no more.
    // spec: ERR-6
    pub fn close(&mut self) {
        self.is_closed = true;
        self.entries.clear();
    }

    /// Takes the record at the head, and gives its lines back some time.
    // spec: LANE-8
    pub fn take(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.reader.consume(lines_for(entry.bytes.len()));
        if let Some(consumed) = self.reader.cursor_due() {
            self.hear(consumed);
        }
        self.check();
        Some(entry)
    }

    /// Passes on the record at the head; its lines are given back later, by [`Lane::give_back`].
    pub fn pass(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.reader.consume(lines_for(entry.bytes.len()));
        Some(entry)
    }

    /// Gives lines of passed-on records back. `consumed` is their number in all, modulo 2^32.
    ///
    /// # Errors
    /// [`Malformed`] if fewer were passed on, or more were given back before.
    // spec: WIRE-3
    pub fn give_back(&mut self, consumed: u32) -> Result<(), Malformed> {
        self.reader.give_back(consumed)?;
        self.hear(consumed);
        Ok(())
    }

    /// Lines given back in all, modulo 2^32.
    pub const fn given_back(&self) -> u32 {
        self.cursor
    }

    fn hear(&mut self, consumed: u32) {
        self.cursor = consumed;
        let heard = self.writer.on_cursor(consumed);
        debug_assert!(heard.is_ok(), "the reader gives back what it has read");
    }
}

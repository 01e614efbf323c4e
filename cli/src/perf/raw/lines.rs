//! Plain rings of lines that validate themselves: the fastest carrier of short messages.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::super::side::Side;
use super::super::side::shared::{Form, LINE, Line, RawShared, layout};
use super::super::side::spin::{spin_slowly_until, spin_until};
use super::by_words;

/// Words of payload in a line.
const WORDS: usize = 7;

/// Where this rank stands in the rings that it writes and reads, for both forms.
#[derive(Default)]
pub(super) struct LineRings {
    produced: [Cursor; 2],
    consumed: [Cursor; 2],
    message: Vec<u64>,
}

impl LineRings {
    /// Makes a buffer for messages of `size` bytes.
    pub(super) fn prepare(&mut self, size: usize) {
        self.message = vec![0xa5; size.div_ceil(8).max(1)];
    }

    /// Streams `count` messages from rank 0 to rank 1, or both ways at once.
    pub(super) fn run(&mut self, side: &Side<'_>, form: Form, count: u64, two_way: bool) {
        let out = Ring::new(side, side.rank(), form);
        let back = Ring::new(side, side.other(), form);
        let produced = &mut self.produced[form as usize];
        let consumed = &mut self.consumed[form as usize];
        let message = &mut self.message[..];
        if two_way {
            // Bursts, so that neither rank waits for a message that is only just being written.
            let quarter = out.quarter() / message.len().div_ceil(WORDS) as u64;
            let mut left = count;
            while left > 0 {
                let burst = left.min(quarter.max(1));
                send(out, produced, message, burst);
                receive(back, consumed, message, burst);
                left -= burst;
            }
        } else if side.measures() {
            send(out, produced, message, count);
        } else {
            receive(back, consumed, message, count);
        }
        // All that this rank sent has been copied out.
        spin_until(|| out.cursor.load(Acquire) == produced.sequence);
    }
}

/// The last line's sequence number, and the consumer's cursor as last seen or published.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    sequence: u64,
    published: u64,
}

/// One direction: the lines, and the consumer's cursor on a line of its own. Both forms span 16
/// KiB: measured, a ring that outgrows half of a first-level cache of 32 KiB is twice as slow.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    lines: &'a [Line],
    spacing: usize,
    count: u64,
    cursor: &'a AtomicU64,
}

impl<'a> Ring<'a> {
    /// The ring that one of two ranks produces into.
    fn new(side: &Side<'a>, producer: usize, form: Form) -> Self {
        let cursor = layout::CURSORS[producer] + form as usize * 2 * LINE;
        Self::at(side.shared(), form, layout::LINES[form as usize][producer], cursor)
    }

    /// The ring that one of many ranks produces into.
    pub(super) fn fan_in(side: &Side<'a>, producer: usize) -> Self {
        let lines = layout::FAN_IN + producer * layout::FAN_IN_BYTES;
        let cursor = layout::FAN_IN_CURSORS + producer * 2 * LINE;
        Self::at(side.shared(), Form::Wide, lines, cursor)
    }

    fn at(shared: &'a RawShared, form: Form, lines: usize, cursor: usize) -> Self {
        let (count, spacing) = match form {
            Form::Compact => (256, 1),
            Form::Wide => (128, 2),
        };
        Self {
            lines: shared.lines(lines, count * spacing),
            spacing,
            count: count as u64,
            cursor: shared.word(cursor),
        }
    }

    /// The consumer publishes its cursor once for this number of lines.
    #[inline(always)]
    pub(super) fn quarter(&self) -> u64 {
        self.count / 4
    }

    /// The line with this sequence number; by carrying it the line validates itself.
    #[inline(always)]
    fn line(&self, sequence: u64) -> &'a Line {
        &self.lines[(sequence & (self.count - 1)) as usize * self.spacing]
    }

    #[inline(always)]
    fn push(&self, at: &mut Cursor, payload: &[u64]) {
        at.sequence += 1;
        if at.sequence - at.published > self.count {
            spin_until(|| {
                // Acquire: pairs with the consumer's Release, so it has read the line to be reused.
                at.published = self.cursor.load(Acquire);
                at.sequence - at.published <= self.count
            });
        }
        let line = self.line(at.sequence);
        for (word, shared) in payload.iter().zip(&line.words[1..]) {
            shared.store(*word, Relaxed);
        }
        // Release: the payload is visible to whoever sees the sequence number.
        line.words[0].store(at.sequence, Release);
    }

    #[inline(always)]
    fn pop(&self, at: &mut Cursor, payload: &mut [u64]) {
        at.sequence += 1;
        let line = self.line(at.sequence);
        // Acquire: pairs with the producer's Release, so the payload is there.
        spin_slowly_until::<16>(|| line.words[0].load(Acquire) == at.sequence);
        for (word, shared) in payload.iter_mut().zip(&line.words[1..]) {
            *word = shared.load(Relaxed);
        }
        if at.sequence - at.published >= self.quarter() {
            self.publish(at);
        }
    }

    #[inline(always)]
    fn publish(&self, at: &mut Cursor) {
        // Release: the lines up to here have been read and may be written again.
        self.cursor.store(at.sequence, Release);
        at.published = at.sequence;
    }
}

pub(super) fn send(ring: Ring<'_>, at: &mut Cursor, message: &[u64], count: u64) {
    if message.len() <= WORDS {
        by_words!(message.len(), [1 2 3 4 5 6 7], send_lines(ring, at, message, count));
    } else {
        send_records(ring, at, message, count);
    }
}

pub(super) fn receive(ring: Ring<'_>, at: &mut Cursor, message: &mut [u64], count: u64) {
    if message.len() <= WORDS {
        by_words!(message.len(), [1 2 3 4 5 6 7], receive_lines(ring, at, message, count));
    } else {
        receive_records(ring, at, message, count);
    }
}

#[inline(never)]
fn send_lines<const N: usize>(ring: Ring<'_>, cursor: &mut Cursor, message: &[u64], count: u64) {
    let payload: [u64; N] = message.try_into().expect("a message of N words");
    // A copy can stay in registers, the original could not.
    let mut at = *cursor;
    for _ in 0..count {
        ring.push(&mut at, black_box(&payload));
    }
    *cursor = at;
}

#[inline(never)]
fn receive_lines<const N: usize>(
    ring: Ring<'_>,
    cursor: &mut Cursor,
    message: &mut [u64],
    count: u64,
) {
    let mut payload = [0; N];
    let mut at = *cursor;
    for _ in 0..count {
        ring.pop(&mut at, &mut payload);
        black_box(&mut payload);
    }
    message.copy_from_slice(&payload);
    ring.publish(&mut at);
    *cursor = at;
}

#[inline(never)]
fn send_records(ring: Ring<'_>, cursor: &mut Cursor, message: &[u64], count: u64) {
    let mut at = *cursor;
    for _ in 0..count {
        let (lines, rest) = black_box(message).as_chunks::<WORDS>();
        for line in lines {
            ring.push(&mut at, line);
        }
        if !rest.is_empty() {
            ring.push(&mut at, rest);
        }
    }
    *cursor = at;
}

#[inline(never)]
fn receive_records(ring: Ring<'_>, cursor: &mut Cursor, message: &mut [u64], count: u64) {
    let mut at = *cursor;
    for _ in 0..count {
        let (lines, rest) = message.as_chunks_mut::<WORDS>();
        for line in lines {
            ring.pop(&mut at, line);
        }
        if !rest.is_empty() {
            ring.pop(&mut at, rest);
        }
        black_box(&mut *message);
    }
    ring.publish(&mut at);
    *cursor = at;
}

//! The write buffer: a cache of lines in front of the memory (section II.D).
//!
//! A write to a new line makes the buffer fetch the line. If the buffer is full, the line that was
//! used longest ago is written back. With a bypass, writes that follow each other from the
//! beginning of a line are gathered. A line that gets full so goes to the memory directly, and
//! needs no fetch. Section IV.A proposes the bypass.
use crate::whtra::recent::{Recent, Use};

/// A line's bytes.
pub const LINE: u64 = 128;

/// A move of a line between the buffer and the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It is written back.
    Back,
    /// It is fetched.
    Fetch,
    /// It is written without having been in the buffer.
    Past,
}

/// The write buffer's state.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    lines: Recent,
    bypass: bool,
    /// The line that is being gathered, and its bytes so far.
    gathered: Option<(u64, u64)>,
}

impl WriteBuffer {
    /// An empty buffer of `lines` lines, with or without a bypass.
    pub fn new(lines: usize, bypass: bool) -> Self {
        Self { lines: Recent::new(lines), bypass, gathered: None }
    }

    /// A write within a line, and the moves that it causes, in order.
    pub fn write(&mut self, address: u64, bytes: u32) -> Vec<Move> {
        let (line, offset) = (address / LINE, address % LINE);
        let mut moves = Vec::new();
        let filled = match self.gathered.take() {
            Some((other, filled)) if other == line && filled == offset => filled,
            before => {
                // The gathering of another line is over: the buffer takes the part.
                if let Some((other, _)) = before {
                    self.touch(other, &mut moves);
                }
                if !self.bypass || offset != 0 || self.lines.has(line) {
                    self.touch(line, &mut moves);
                    return moves;
                }
                0
            }
        };
        let filled = filled + u64::from(bytes);
        if filled < LINE {
            self.gathered = Some((line, filled));
        } else {
            moves.push(Move::Past);
        }
        moves
    }

    /// The buffer takes bytes of a line.
    fn touch(&mut self, line: u64, moves: &mut Vec<Move>) {
        if let Use::Miss { gone } = self.lines.touch(line) {
            moves.extend(gone.map(|_| Move::Back));
            moves.push(Move::Fetch);
        }
    }

    /// Whether written bytes of this address's line are here.
    pub fn has(&self, address: u64) -> bool {
        let line = address / LINE;
        self.lines.has(line) || self.gathered.is_some_and(|(gathered, _)| gathered == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(buffer: &mut WriteBuffer, writes: impl IntoIterator<Item = u64>) -> Vec<Move> {
        writes.into_iter().flat_map(|address| buffer.write(address, 8)).collect()
    }

    #[test]
    fn a_line_is_fetched_once_and_written_back_when_the_buffer_is_full() {
        let mut buffer = WriteBuffer::new(2, false);
        assert_eq!(all(&mut buffer, (0..2 * LINE).step_by(8)), [Move::Fetch, Move::Fetch]);
        assert_eq!(all(&mut buffer, [2 * LINE, 2 * LINE + 64]), [Move::Back, Move::Fetch]);
        assert!(!buffer.has(0) && buffer.has(LINE));
    }

    #[test]
    fn two_streams_take_turns_in_a_buffer_of_one_line() {
        let mut buffer = WriteBuffer::new(1, false);
        let moves = all(&mut buffer, [0, 4096, 8, 4104]);
        assert_eq!(moves.iter().filter(|step| **step == Move::Fetch).count(), 4);
    }

    #[test]
    fn only_whole_lines_pass_the_buffer() {
        let mut buffer = WriteBuffer::new(2, true);
        assert_eq!(all(&mut buffer, (0..2 * LINE).step_by(8)), [Move::Past, Move::Past]);
        assert_eq!(all(&mut buffer, [4 * LINE, 4 * LINE + 8]), []);
        assert!(buffer.has(4 * LINE));
        // The third line ends the gathering of the second one, and does not begin its own.
        assert_eq!(all(&mut buffer, [6 * LINE + 16]), [Move::Fetch, Move::Fetch]);
        // A line that is in the buffer does not pass it.
        assert_eq!(all(&mut buffer, (4 * LINE..5 * LINE).step_by(8)), []);
    }
}

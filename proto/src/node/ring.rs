//! The rings of a connection with a peer of another host, in memory of the node. The link passes on
//! the bytes that the program writes to one ring. The program takes the bytes that the link brings
//! out of the other one.
use crate::lane::Malformed;
use crate::limits::LINE;
use crate::ring::carried::{Source, Target, lines_of};
use crate::ring::{Reader, Writer};
use alloc::boxed::Box;
use alloc::vec;

/// Both rings of one end.
#[derive(Debug)]
pub(super) struct Rings {
    out: Out,
    come: Come,
}

/// The ring that the program writes, and the stand-in for its reader.
#[derive(Debug)]
struct Out {
    bytes: Box<[u8]>,
    writer: Writer,
    written: u64,
    source: Source,
}

/// The ring that the program reads, and the stand-in for its writer.
#[derive(Debug)]
struct Come {
    bytes: Box<[u8]>,
    reader: Reader,
    target: Target,
}

impl Rings {
    /// Two rings of `lines` lines, a power of two; `None` for no lines.
    pub(super) fn new(lines: u32) -> Option<Self> {
        let len = u64::from(lines) * LINE as u64;
        if len == 0 {
            return None;
        }
        let bytes = vec![0; len as usize].into_boxed_slice();
        // What is passed on lies at both ends at the same place: all of it is used.
        let (writer, source) = (Writer::new(len, len), Source::new(len));
        let out = Out { bytes: bytes.clone(), writer, written: 0, source };
        let come = Come { bytes, reader: Reader::new(len), target: Target::new(len) };
        Some(Self { out, come })
    }

    /// Bytes of the longest piece that may ever find room.
    pub(super) const fn longest(&self) -> usize {
        self.out.writer.longest()
    }

    /// Writes a piece, if there is room for it: where it begins.
    // spec: ENV-11
    pub(super) fn write(&mut self, piece: &[u8]) -> Option<u64> {
        let Out { bytes, writer, written, .. } = &mut self.out;
        let at = writer.next(piece.len()).or_else(|| writer.find(piece.len(), |_| true))?;
        let place = writer.place(at) as usize;
        bytes[place..place + piece.len()].copy_from_slice(piece);
        *written = writer.wrote(at, piece.len());
        Some(at)
    }

    /// Whether a piece of `len` bytes can lie where the peer says.
    // spec: ENV-12
    pub(super) fn check(&self, at: u64, len: usize) -> Result<(), Malformed> {
        self.come.reader.check(at, len)
    }

    /// Takes a piece of `len` bytes, and copies as many of them as there is room for.
    // spec: ENV-12, ENV-13
    pub(super) fn take(
        &mut self,
        (at, len): (u64, usize),
        into: &mut [u8],
    ) -> Result<(), Malformed> {
        self.check(at, len)?;
        let Come { bytes, reader, .. } = &mut self.come;
        let (place, count) = (reader.place(at) as usize, into.len().min(len));
        into[..count].copy_from_slice(&bytes[place..place + count]);
        reader.take(at, len);
        Ok(())
    }
}

/// Calls of the link.
impl Rings {
    pub(super) const fn lines(&self) -> u32 {
        self.come.target.lines()
    }

    pub(super) const fn left(&self) -> usize {
        self.out.source.left(self.out.written).1
    }

    pub(super) fn pass(&mut self, into: &mut [u8]) {
        let Out { bytes, written, source, .. } = &mut self.out;
        let (place, left) = source.left(*written);
        debug_assert!(into.len() <= left, "only what was written is passed on");
        into.copy_from_slice(&bytes[place as usize..place as usize + into.len()]);
        source.pass(into.len());
    }

    // spec: WIRE-14
    pub(super) fn give_back(&mut self, lines: u32) -> Result<(), Malformed> {
        let Out { writer, source, .. } = &mut self.out;
        writer.on_taken(source.give_back(lines)?)
    }

    // spec: WIRE-14
    pub(super) fn place(&mut self, piece: &[u8]) -> Result<(), Malformed> {
        let Come { bytes, reader, target } = &mut self.come;
        let (at, before_end) = target.place(piece.len(), reader.taken())?;
        let (first, rest) = piece.split_at(before_end);
        bytes[at as usize..at as usize + first.len()].copy_from_slice(first);
        bytes[..rest.len()].copy_from_slice(rest);
        Ok(())
    }

    pub(super) const fn given_back(&self) -> u32 {
        lines_of(self.come.reader.taken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    const LINES: u32 = 16;

    fn rings() -> Rings {
        Rings::new(LINES).expect("there are lines")
    }

    /// Passes all written bytes from `near` to `far`, in parts of up to `longest` bytes.
    fn pass_all(near: &mut Rings, far: &mut Rings, longest: usize) {
        let mut passed = Vec::new();
        while near.left() > 0 {
            let mut part = vec![0; near.left()];
            near.pass(&mut part);
            passed.extend(part);
        }
        for part in passed.chunks(longest) {
            assert_eq!(far.place(part), Ok(()), "the writer knows the bytes taken");
        }
    }

    // spec: WIRE-14, ENV-11
    #[test]
    fn pieces_come_out_there_as_they_were_written_here() {
        let (mut near, mut far) = (rings(), rings());
        let (mut under_way, mut written) = (VecDeque::new(), 0);
        for step in 0..2000_usize {
            let len = step * 37 % (near.longest() + 1);
            let piece: Vec<u8> = (0..len).map(|at| (at + 7 * step) as u8).collect();
            if let Some(at) = near.write(&piece) {
                under_way.push_back((at, piece));
                pass_all(&mut near, &mut far, 1 + step % 100);
                written += 1;
            }
            if step % 3 > 0
                && let Some((at, piece)) = under_way.pop_front()
            {
                let mut into = vec![0; piece.len()];
                assert_eq!(far.take((at, piece.len()), &mut into), Ok(()));
                assert!(into == piece, "piece {written}, at {at}");
            }
            if step % 5 == 0 {
                assert_eq!(near.give_back(far.given_back()), Ok(()));
            }
        }
        assert!(written > 200, "there is room again, once it is told: {written}");
    }

    // spec: WIRE-14, ENV-12
    #[test]
    fn impossible_ring_records_are_malformed_and_ignored() {
        let (mut near, mut far) = (rings(), rings());
        let at = near.write(&[5; 500]).expect("it is empty");
        assert_eq!(near.give_back(1), Err(Malformed), "nothing was passed on");
        pass_all(&mut near, &mut far, 100);
        assert_eq!(near.give_back(9), Err(Malformed));
        assert_eq!(far.place(&[1; 525]), Err(Malformed), "there is no room");
        assert_eq!(far.take((at + 1, 10), &mut []), Err(Malformed), "pieces begin with a line");
        assert_eq!(far.take((at, 1025), &mut []), Err(Malformed), "it is longer than the ring");
        let mut into = [0; 500];
        assert_eq!(far.take((at, 500), &mut into), Ok(()));
        assert_eq!(into, [5; 500]);
        assert_eq!(near.give_back(far.given_back()), Ok(()));
        assert_eq!(near.give_back(7), Err(Malformed), "less than before");
    }
}

//! The local buffer of a transfer, from or to which an executor copies.
use crate::mem::map::Mapping;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::segment::Shape;
use ayre_proto::units::Extent;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

/// A local buffer. Each common kind has a type, so that the direct path of an eight-byte put is
/// compiled for just that; [`Transfer`] is the general one.
pub(crate) trait Local: Sized {
    /// Bytes from the first to the last one at the target; `None` on overflow.
    fn remote_span(&self) -> Option<u64>;

    /// Copies to the target's memory.
    fn deposit(&mut self, memory: &Mapping, to: Extent);

    /// Copies from the target's memory.
    fn collect(&mut self, memory: &Mapping, from: Extent);

    /// Makes a call with this buffer in the general form.
    fn in_general<T>(self, call: impl FnOnce(Transfer<'_>) -> T) -> T;
}

/// No buffer: the operation carries its operands, and accesses this number of bytes at the target.
pub(crate) struct Carried(pub(crate) u64);

/// Contiguous private bytes of a put.
pub(crate) struct Outgoing<'b>(pub(crate) &'b [u8]);

/// Contiguous private bytes of a get.
pub(crate) struct Incoming<'b>(pub(crate) &'b mut [u8]);

/// Any buffer in any shape.
#[derive(Debug)]
pub(crate) struct Transfer<'b> {
    pub(crate) buffer: Buffer<'b>,
    pub(crate) shape: Shape,
}

/// A buffer of the initiator.
#[derive(Debug)]
pub(crate) enum Buffer<'b> {
    Out(Source<'b>),
    In(Sink<'b>),
    InRegion(&'b Arc<Mapping>, u64),
}

/// The data of a put, if there is any.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'b> {
    None,
    Bytes(&'b [u8]),
    Slices(&'b [IoSlice<'b>]),
    Region(&'b Mapping, u64),
}

/// The place for a get's data in private memory, if there is any.
#[derive(Debug)]
pub(crate) enum Sink<'b> {
    None,
    Bytes(&'b mut [u8]),
    Slices(&'b mut [IoSliceMut<'b>]),
}

impl Source<'_> {
    /// Copies the bytes from `at` on.
    pub(crate) fn copy_out(&self, at: u64, into: &mut [u8]) {
        match self {
            Self::Bytes(bytes) => into.copy_from_slice(&bytes[at as usize..][..into.len()]),
            Self::Slices(slices) => {
                let mut portion = Portion::new(at, into.len());
                for slice in *slices {
                    let (to, part) = portion.part(slice.len());
                    into[to].copy_from_slice(&slice[part]);
                }
                debug_assert!(portion.is_whole(), "the slices have all that is sent");
            }
            Self::Region(from, offset) => from.read(offset + at, into),
            Self::None => debug_assert!(into.is_empty()),
        }
    }

    /// Copies the bytes from `at` on to the target's memory.
    fn deposit(&self, at: u64, memory: &Mapping, to: u64, len: usize) {
        match self {
            Self::Bytes(bytes) => memory.write(to, &bytes[at as usize..][..len]),
            Self::Slices(slices) => {
                let mut portion = Portion::new(at, len);
                for slice in *slices {
                    let (there, part) = portion.part(slice.len());
                    memory.write(to + there.start as u64, &slice[part]);
                }
            }
            Self::Region(from, offset) => memory.write_from(to, from, offset + at, len),
            Self::None => unreachable!("{MISMATCH}"),
        }
    }
}

impl Sink<'_> {
    /// The bytes of a range, where they lie in one piece.
    #[inline]
    pub(crate) fn contiguous(&mut self, at: u64, len: usize) -> Option<&mut [u8]> {
        match self {
            Self::None => Some(&mut [][..len]),
            Self::Bytes(bytes) => Some(&mut bytes[at as usize..][..len]),
            Self::Slices(_) => None,
        }
    }

    /// Copies bytes in, from `at` on.
    pub(crate) fn copy_in(&mut self, at: u64, from: &[u8]) {
        let Self::Slices(slices) = self else { unreachable!("{MISMATCH}") };
        let mut portion = Portion::new(at, from.len());
        for slice in slices.iter_mut() {
            let (there, part) = portion.part(slice.len());
            slice[part].copy_from_slice(&from[there]);
        }
        debug_assert!(portion.is_whole(), "the slices have room for all that comes");
    }

    /// Copies the target's memory to the bytes from `at` on.
    fn collect(&mut self, at: u64, memory: &Mapping, from: u64, len: usize) {
        match self {
            Self::Bytes(bytes) => memory.read(from, &mut bytes[at as usize..][..len]),
            Self::Slices(slices) => {
                let mut portion = Portion::new(at, len);
                for slice in slices.iter_mut() {
                    let (there, part) = portion.part(slice.len());
                    memory.read(from + there.start as u64, &mut slice[part]);
                }
            }
            Self::None => unreachable!("{MISMATCH}"),
        }
    }
}

/// A range of the bytes that slices have together.
struct Portion {
    /// Bytes of the slices to come that lie before the range.
    skip: usize,
    /// Bytes of the range that were found.
    found: usize,
    len: usize,
}

impl Portion {
    fn new(at: u64, len: usize) -> Self {
        Self { skip: at as usize, found: 0, len }
    }

    /// Whether all of the range was found.
    fn is_whole(&self) -> bool {
        self.found == self.len
    }

    /// The part of the range that the next slice has, which has `len` bytes: its place in the range
    /// and in the slice.
    fn part(&mut self, len: usize) -> (Range<usize>, Range<usize>) {
        let first = self.skip.min(len);
        let count = (len - first).min(self.len - self.found);
        let there = self.found..self.found + count;
        self.skip -= first;
        self.found += count;
        (there, first..first + count)
    }
}

/// The data that one command of a put carries.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    source: Source<'a>,
    at: u64,
    len: usize,
    /// A copy of bytes that lie in pieces, or in a region, to which no reference may point.
    staging: &'a mut [u8; RECORD_MAX],
}

impl<'a> Piece<'a> {
    /// The bytes at this place of the source.
    #[inline]
    pub(crate) fn new(
        source: Source<'a>,
        (at, len): (u64, usize),
        staging: &'a mut [u8; RECORD_MAX],
    ) -> Self {
        Self { source, at, len, staging }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn copy_to(&self, into: &mut [u8]) {
        debug_assert_eq!(into.len(), self.len, "it is copied whole");
        self.source.copy_out(self.at, into);
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> &[u8] {
        match self.source {
            Source::Bytes(bytes) => &bytes[self.at as usize..][..self.len],
            source => {
                debug_assert!(self.len <= RECORD_MAX, "it fits a record of a lane");
                let staged = &mut self.staging[..self.len];
                source.copy_out(self.at, staged);
                staged
            }
        }
    }
}

const MISMATCH: &str = "puts have sources and gets destinations";

impl Local for Carried {
    #[inline(always)]
    fn remote_span(&self) -> Option<u64> {
        Some(self.0)
    }

    fn deposit(&mut self, _: &Mapping, _: Extent) {
        unreachable!("{MISMATCH}");
    }

    fn collect(&mut self, _: &Mapping, _: Extent) {
        unreachable!("{MISMATCH}");
    }

    #[inline(always)]
    fn in_general<T>(self, call: impl FnOnce(Transfer<'_>) -> T) -> T {
        call(Transfer { buffer: Buffer::Out(Source::None), shape: Shape::contiguous(self.0) })
    }
}

impl Local for Outgoing<'_> {
    #[inline(always)]
    fn remote_span(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    #[inline(always)]
    fn deposit(&mut self, memory: &Mapping, to: Extent) {
        debug_assert_eq!(to.len(), self.0.len() as u64, "a put has the length that was checked");
        memory.write(to.offset(), self.0);
    }

    fn collect(&mut self, _: &Mapping, _: Extent) {
        unreachable!("{MISMATCH}");
    }

    #[inline(always)]
    fn in_general<T>(self, call: impl FnOnce(Transfer<'_>) -> T) -> T {
        let shape = Shape::contiguous(self.0.len() as u64);
        call(Transfer { buffer: Buffer::Out(Source::Bytes(self.0)), shape })
    }
}

impl Local for Incoming<'_> {
    #[inline(always)]
    fn remote_span(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn deposit(&mut self, _: &Mapping, _: Extent) {
        unreachable!("{MISMATCH}");
    }

    #[inline(always)]
    fn collect(&mut self, memory: &Mapping, from: Extent) {
        debug_assert_eq!(from.len(), self.0.len() as u64, "a get has the length that was checked");
        memory.read(from.offset(), self.0);
    }

    #[inline(always)]
    fn in_general<T>(self, call: impl FnOnce(Transfer<'_>) -> T) -> T {
        let shape = Shape::contiguous(self.0.len() as u64);
        call(Transfer { buffer: Buffer::In(Sink::Bytes(self.0)), shape })
    }
}

impl Local for Transfer<'_> {
    fn remote_span(&self) -> Option<u64> {
        self.shape.remote_span()
    }

    fn deposit(&mut self, memory: &Mapping, to: Extent) {
        debug_assert_eq!(
            self.shape.remote_span(),
            Some(to.len()),
            "the rows stay in what was checked"
        );
        for piece in self.shape.pieces(u64::MAX) {
            let (at, len) = (to.offset() + piece.remote, piece.len as usize);
            match &self.buffer {
                Buffer::Out(source) => source.deposit(piece.local, memory, at, len),
                _ => unreachable!("{MISMATCH}"),
            }
        }
    }

    fn collect(&mut self, memory: &Mapping, from: Extent) {
        debug_assert_eq!(
            self.shape.remote_span(),
            Some(from.len()),
            "the rows stay in what was checked"
        );
        for piece in self.shape.pieces(u64::MAX) {
            let (at, len) = (from.offset() + piece.remote, piece.len as usize);
            match &mut self.buffer {
                Buffer::In(sink) => sink.collect(piece.local, memory, at, len),
                Buffer::InRegion(into, offset) => {
                    into.write_from(*offset + piece.local, memory, at, len);
                }
                _ => unreachable!("{MISMATCH}"),
            }
        }
    }

    #[inline(always)]
    fn in_general<T>(self, call: impl FnOnce(Transfer<'_>) -> T) -> T {
        call(self)
    }
}

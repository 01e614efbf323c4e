//! The local buffer of a transfer, from or to which an executor copies.
use crate::mem::map::Mapping;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::segment::Shape;
use ayre_proto::units::Extent;
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

    /// This buffer in the general form.
    fn into_transfer<'a>(self) -> Transfer<'a>
    where
        Self: 'a;
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
    None,
    Out(&'b [u8]),
    OutRegion(&'b Mapping, u64),
    In(&'b mut [u8]),
    InRegion(&'b Arc<Mapping>, u64),
}

impl Buffer<'_> {
    /// Copies the bytes of a put's source from `at` on.
    pub(crate) fn copy_out(&self, at: u64, into: &mut [u8]) {
        match self {
            Self::Out(bytes) => into.copy_from_slice(&bytes[at as usize..][..into.len()]),
            Self::OutRegion(from, offset) => from.read(offset + at, into),
            Self::None | Self::In(_) | Self::InRegion(..) => debug_assert!(into.is_empty()),
        }
    }
}

/// The data that one command of a put carries.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    buffer: &'a Buffer<'a>,
    at: u64,
    len: usize,
    /// A copy of bytes of a region, to which no reference may point.
    staging: &'a mut [u8; RECORD_MAX],
}

impl<'a> Piece<'a> {
    /// The bytes at this place of the buffer.
    #[inline]
    pub(crate) fn new(
        buffer: &'a Buffer<'a>,
        (at, len): (u64, usize),
        staging: &'a mut [u8; RECORD_MAX],
    ) -> Self {
        Self { buffer, at, len, staging }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn copy_to(&self, into: &mut [u8]) {
        debug_assert_eq!(into.len(), self.len, "it is copied whole");
        self.buffer.copy_out(self.at, into);
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> &[u8] {
        match self.buffer {
            Buffer::Out(bytes) => &bytes[self.at as usize..][..self.len],
            buffer => {
                debug_assert!(self.len <= RECORD_MAX, "it fits a record of a lane");
                let staged = &mut self.staging[..self.len];
                buffer.copy_out(self.at, staged);
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

    fn into_transfer<'a>(self) -> Transfer<'a> {
        Transfer { buffer: Buffer::None, shape: Shape::contiguous(self.0) }
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

    fn into_transfer<'a>(self) -> Transfer<'a>
    where
        Self: 'a,
    {
        Transfer { shape: Shape::contiguous(self.0.len() as u64), buffer: Buffer::Out(self.0) }
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

    fn into_transfer<'a>(self) -> Transfer<'a>
    where
        Self: 'a,
    {
        Transfer { shape: Shape::contiguous(self.0.len() as u64), buffer: Buffer::In(self.0) }
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
                Buffer::Out(bytes) => memory.write(at, &bytes[piece.local as usize..][..len]),
                Buffer::OutRegion(from, offset) => {
                    memory.write_from(at, from, offset + piece.local, len);
                }
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
                Buffer::In(bytes) => memory.read(at, &mut bytes[piece.local as usize..][..len]),
                Buffer::InRegion(into, offset) => {
                    into.write_from(*offset + piece.local, memory, at, len);
                }
                _ => unreachable!("{MISMATCH}"),
            }
        }
    }

    fn into_transfer<'a>(self) -> Transfer<'a>
    where
        Self: 'a,
    {
        self
    }
}

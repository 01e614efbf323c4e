//! Memory that is not one piece, or a few: bytes of ours stand in for it.

use crate::abi::request::{DtIov, GenericDtOps};
use crate::abi::status::Status;
use ayre::endpoint::raw::{Span, Spans};
use std::alloc::{Layout, alloc_zeroed};
use std::ffi::c_void;
use std::ptr::NonNull;

/// A datatype of the program's, which packs and unpacks by functions. Its address has room for the
/// class of a datatype.
#[derive(Debug)]
#[repr(align(8))]
pub(crate) struct Generic {
    pub(crate) ops: GenericDtOps,
    pub(crate) context: *mut c_void,
}

/// The bytes of an operation, and where they go to in the end.
#[derive(Debug)]
pub(crate) struct Packing {
    bytes: Box<[u8]>,
    into: Into,
}

#[derive(Debug)]
enum Into {
    /// They are sent.
    Nothing,
    Pieces(Vec<DtIov>),
    /// The datatype's functions, and their state.
    Functions(GenericDtOps, *mut c_void),
}

// SAFETY: the pointers are handed back to the program's functions, or are the memory of an
// operation, which nobody else uses until that has ended.
unsafe impl Send for Packing {}

impl Packing {
    /// Packs pieces of memory.
    ///
    /// # Safety
    /// The pieces may be read.
    pub(crate) unsafe fn of_pieces(pieces: &[DtIov]) -> Self {
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.length).sum());
        for piece in pieces {
            // SAFETY: the caller's promise.
            bytes.extend_from_slice(unsafe { ayre_guest::copy::bytes(piece.buffer, piece.length) });
        }
        Self { bytes: bytes.into(), into: Into::Nothing }
    }

    /// Bytes that are unpacked to pieces of memory in the end.
    pub(crate) fn for_pieces(pieces: &[DtIov]) -> Self {
        let len = pieces.iter().map(|piece| piece.length).sum();
        Self { bytes: vec![0; len].into(), into: Into::Pieces(pieces.to_vec()) }
    }

    /// Packs memory of a program's datatype.
    ///
    /// # Errors
    /// *invalid parameter* where the datatype lacks a function.
    ///
    /// # Safety
    /// The functions are for that, and for this memory.
    pub(crate) unsafe fn of_generic(
        generic: &Generic,
        (buffer, count): (*const c_void, usize),
    ) -> Result<Self, Status> {
        let GenericDtOps {
            start_pack: Some(start),
            packed_size: Some(size),
            pack: Some(pack),
            finish: Some(finish),
            ..
        } = generic.ops
        else {
            return Err(Status::INVALID_PARAM);
        };
        // SAFETY: the caller's promise; the bytes from an offset on are ours.
        let bytes = unsafe {
            let state = start(generic.context, buffer, count);
            let mut bytes = vec![0; size(state)];
            let mut done = 0;
            while done < bytes.len() {
                let rest = &mut bytes[done..];
                match pack(state, done, rest.as_mut_ptr().cast(), rest.len()) {
                    0 => break,
                    len => done += len.min(rest.len()),
                }
            }
            finish(state);
            bytes.truncate(done);
            bytes
        };
        Ok(Self { bytes: bytes.into(), into: Into::Nothing })
    }

    /// Bytes that are unpacked by a program's datatype in the end.
    ///
    /// # Errors
    /// *invalid parameter* where the datatype lacks a function.
    ///
    /// # Safety
    /// The functions are for that, and for this memory.
    pub(crate) unsafe fn for_generic(
        generic: &Generic,
        (buffer, count): (*mut c_void, usize),
    ) -> Result<Self, Status> {
        let GenericDtOps { start_unpack: Some(start), packed_size: Some(size), .. } = generic.ops
        else {
            return Err(Status::INVALID_PARAM);
        };
        if generic.ops.unpack.is_none() || generic.ops.finish.is_none() {
            return Err(Status::INVALID_PARAM);
        }
        // SAFETY: the caller's promise.
        let (state, len) = unsafe {
            let state = start(generic.context, buffer, count);
            (state, size(state))
        };
        Ok(Self { bytes: vec![0; len].into(), into: Into::Functions(generic.ops, state) })
    }

    /// A header alone, copied.
    pub(crate) fn of_header(header: &[u8]) -> Self {
        Self { bytes: header.into(), into: Into::Nothing }
    }

    /// These bytes behind a header.
    pub(crate) fn behind(self, header: &[u8]) -> Self {
        Self { bytes: [header, &*self.bytes].concat().into(), into: self.into }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes as many bytes as there is room for: how many.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.len().min(self.bytes.len());
        self.bytes[..len].copy_from_slice(&bytes[..len]);
        len
    }

    /// The bytes in two parts, for the engine, as [`Self::spans`].
    pub(crate) fn parts(&mut self, first: usize) -> (Span, Span) {
        let (first, second) = self.bytes.split_at_mut(first);
        // SAFETY: as in spans().
        let span = |part: &mut [u8]| unsafe { Span::new(part.as_mut_ptr(), part.len()) };
        (span(first), span(second))
    }

    /// The bytes, for the engine. They stay where they are as long as this lives.
    pub(crate) fn spans(&mut self) -> Spans {
        // SAFETY: nobody uses them until unpack(), behind the end of the operation.
        unsafe { Span::new(self.bytes.as_mut_ptr(), self.bytes.len()) }.into()
    }

    /// The operation has ended, and `len` bytes have come: they go where they belong.
    pub(crate) fn unpack(self, len: usize) -> Status {
        let came = &self.bytes[..len.min(self.bytes.len())];
        match self.into {
            Into::Nothing => Status::OK,
            Into::Pieces(pieces) => {
                let mut rest = came;
                for piece in pieces {
                    // SAFETY: the memory of the operation.
                    let len = unsafe { ayre_guest::copy::fill(piece.buffer, piece.length, rest) };
                    rest = &rest[len..];
                }
                Status::OK
            }
            Into::Functions(ops, state) => {
                let (Some(unpack), Some(finish)) = (ops.unpack, ops.finish) else {
                    unreachable!("for_generic() has looked")
                };
                // SAFETY: the program's functions, with the state that they have made.
                unsafe {
                    let status = match came {
                        [] => Status::OK,
                        came => unpack(state, 0, came.as_ptr().cast(), came.len()),
                    };
                    finish(state);
                    status
                }
            }
        }
    }
}

/// Memory for a message that is fetched: a header that is here, and room for the rest.
#[derive(Debug)]
pub(crate) struct Landing {
    bytes: Box<[u8]>,
    at: usize,
}

impl Landing {
    /// None where there is not that much memory: a peer says how much it is. No page of it is there
    /// before the bytes are.
    pub(crate) fn new(header: &[u8], len: u64) -> Option<Self> {
        let whole = usize::try_from(len).ok()?.checked_add(header.len())?;
        let layout = Layout::array::<u8>(whole).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: memory of the allocator's, of this layout, which nobody else has.
        let mut bytes =
            unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start.as_ptr(), whole)) };
        bytes[..header.len()].copy_from_slice(header);
        Some(Self { bytes, at: header.len() })
    }

    /// The room, for the engine. It stays where it is as long as this lives.
    pub(crate) fn spans(&mut self) -> Spans {
        let room = &mut self.bytes[self.at..];
        // SAFETY: nobody uses it until into_bytes(), behind the end of the operation.
        unsafe { Span::new(room.as_mut_ptr(), room.len()) }.into()
    }

    /// All bytes, when the message has come.
    pub(crate) fn into_bytes(self) -> Box<[u8]> {
        self.bytes
    }
}

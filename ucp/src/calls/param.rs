//! Parameters and results of all operations.

use crate::abi::numbers::{
    UCP_DATATYPE_CLASS_MASK, UCP_DATATYPE_CONTIG, UCP_DATATYPE_GENERIC, UCP_DATATYPE_IOV,
    UCP_DATATYPE_SHIFT, UCP_OP_ATTR_FIELD_CALLBACK, UCP_OP_ATTR_FIELD_DATATYPE,
    UCP_OP_ATTR_FIELD_FLAGS, UCP_OP_ATTR_FIELD_RECV_INFO, UCP_OP_ATTR_FIELD_REPLY_BUFFER,
    UCP_OP_ATTR_FIELD_REQUEST, UCP_OP_ATTR_FIELD_USER_DATA, UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
    UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
};
use crate::abi::request::{DtIov, EndFn, RequestParam, TagRecvInfo};
use crate::abi::status::Status;
use crate::sys::handle;
use crate::sys::packing::Packing;
use crate::sys::request::{Request, Told};
use crate::worker::{Memory, Posted, Wish};
use ayre::endpoint::raw::{SPANS_MAX, Span, Spans};
use ayre_guest::copy;
use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance, without_provenance_mut};

/// A request, NULL for success, or a status: `ucs_status_ptr_t`.
pub(super) type StatusPtr = *mut c_void;

/// A status in place of a request.
#[inline(always)]
pub(super) fn pointer_of(status: Status) -> StatusPtr {
    match status {
        Status::OK => null_mut(),
        Status(number) => without_provenance_mut(number as isize as usize),
    }
}

/// The result of a call.
#[inline(always)]
pub(super) fn answer(posted: Posted) -> StatusPtr {
    match posted {
        Posted::Done | Posted::Received(_) => null_mut(),
        Posted::Failed(status) => pointer_of(status),
        Posted::Pending(request) => request.to_program(),
    }
}

/// As [`answer`], of data of an active message: a place gets the length of those that have come in
/// the call.
///
/// # Safety
/// The place is null or may be written.
pub(super) unsafe fn answer_data(posted: Posted, place: *mut usize) -> StatusPtr {
    if let Posted::Received(info) = posted {
        // SAFETY: the caller's promise.
        unsafe { copy::put(place, info.length) };
    }
    answer(posted)
}

/// The result of a call that returns a status, and has nothing to return for what goes on.
pub(super) fn status_of(posted: Posted) -> Status {
    match posted {
        Posted::Done | Posted::Received(_) => Status::OK,
        Posted::Failed(status) => status,
        Posted::Pending(_) => Status::IN_PROGRESS,
    }
}

/// Whether memory is read or written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Out,
    In,
}

/// The parameters of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) wish: Wish,
    datatype: u64,
    /// For what is told of a receive that ends in its call.
    pub(super) info: *mut TagRecvInfo,
    /// Where an atomic finds its second operand, and what was there before goes; null for none.
    pub(super) reply: *mut c_void,
    /// Those of active messages.
    pub(super) flags: u32,
}

impl Parameters {
    /// Reads those members whose bits are set; `told` says of what kind the function is.
    ///
    /// # Safety
    /// The structure is as its mask says.
    #[inline(always)]
    pub(super) unsafe fn of(param: *const RequestParam, told: fn(EndFn) -> Told) -> Self {
        // SAFETY: the caller's promise, for this one and for each member whose bit is set.
        unsafe {
            let mask = (&raw const (*param).op_attr_mask).read();
            let has = |bit| mask & bit != 0;
            let request =
                has(UCP_OP_ATTR_FIELD_REQUEST).then(|| (&raw const (*param).request).read());
            let told = match has(UCP_OP_ATTR_FIELD_CALLBACK) {
                true => told((&raw const (*param).cb).read()),
                false => Told::Nobody,
            };
            let user = match has(UCP_OP_ATTR_FIELD_USER_DATA) {
                true => (&raw const (*param).user_data).read(),
                false => null_mut(),
            };
            let datatype = match has(UCP_OP_ATTR_FIELD_DATATYPE) {
                true => (&raw const (*param).datatype).read(),
                false => 1 << UCP_DATATYPE_SHIFT,
            };
            let info = match has(UCP_OP_ATTR_FIELD_RECV_INFO) {
                true => (&raw const (*param).recv_info).read().tag_info,
                false => null_mut(),
            };
            let reply = match has(UCP_OP_ATTR_FIELD_REPLY_BUFFER) {
                true => (&raw const (*param).reply_buffer).read(),
                false => null_mut(),
            };
            let flags = match has(UCP_OP_ATTR_FIELD_FLAGS) {
                true => (&raw const (*param).flags).read(),
                false => 0,
            };
            let wish = Wish {
                request: request.map(|request| Request::of_program(request)),
                told: (told, user),
                never_at_once: has(UCP_OP_ATTR_FLAG_NO_IMM_CMPL),
                only_at_once: has(UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL),
            };
            Self { wish, datatype, info, reply, flags }
        }
    }

    /// Those of a function without parameters: its end is told by a function only, and never in the
    /// call where it sends.
    pub(super) fn of_callback(datatype: u64, told: Told, never_at_once: bool) -> Self {
        let (request, told) = (None, (told, null_mut()));
        let wish = Wish { request, told, never_at_once, only_at_once: false };
        Self { wish, datatype, info: null_mut(), reply: null_mut(), flags: 0 }
    }

    /// The memory of an operation.
    ///
    /// # Errors
    /// *invalid parameter* for a length that no memory has, and for datatypes that nobody has made.
    ///
    /// # Safety
    /// It is the program's for that, as [`Span`] asks.
    #[inline(always)]
    pub(super) unsafe fn memory(
        &self,
        (buffer, count): (*mut c_void, usize),
        direction: Direction,
    ) -> Result<Memory, Status> {
        if let Some(size) = self.element() {
            let len = size.checked_mul(count).ok_or(Status::INVALID_PARAM)?;
            // SAFETY: the caller's promise.
            return Ok(Memory::Direct(unsafe { Span::new(buffer.cast(), len) }.into()));
        }
        // SAFETY: as above.
        unsafe { self.memory_in_pieces((buffer, count), direction) }
    }

    /// Bytes of an element of contiguous memory.
    #[inline(always)]
    pub(super) fn element(&self) -> Option<usize> {
        let is_contiguous = self.datatype & UCP_DATATYPE_CLASS_MASK == UCP_DATATYPE_CONTIG;
        is_contiguous.then_some((self.datatype >> UCP_DATATYPE_SHIFT) as usize)
    }

    /// # Errors
    /// As [`Self::memory`].
    ///
    /// # Safety
    /// As [`Self::memory`].
    #[cold]
    unsafe fn memory_in_pieces(
        &self,
        (buffer, count): (*mut c_void, usize),
        direction: Direction,
    ) -> Result<Memory, Status> {
        if self.datatype & UCP_DATATYPE_CLASS_MASK == UCP_DATATYPE_IOV {
            // SAFETY: the caller's promise: that many pieces.
            let pieces = unsafe { copy::values(buffer.cast::<DtIov>(), count) };
            // SAFETY: the caller's promise, for each piece.
            let span = |piece: &DtIov| unsafe { Span::new(piece.buffer.cast(), piece.length) };
            if pieces.len() <= SPANS_MAX {
                let spans = Spans::new(pieces.iter().map(span));
                return spans.map(Memory::Direct).ok_or(Status::INVALID_PARAM);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.packed((buffer, count), direction) }.map(Memory::Packed)
    }

    /// The memory of an operation, packed, or to be unpacked in the end.
    ///
    /// # Errors
    /// As [`Self::memory`].
    ///
    /// # Safety
    /// As [`Self::memory`].
    pub(super) unsafe fn packed(
        &self,
        (buffer, count): (*mut c_void, usize),
        direction: Direction,
    ) -> Result<Packing, Status> {
        match self.datatype & UCP_DATATYPE_CLASS_MASK {
            UCP_DATATYPE_IOV => {
                // SAFETY: the caller's promise: that many pieces.
                let pieces = unsafe { copy::values(buffer.cast::<DtIov>(), count) };
                Ok(match direction {
                    // SAFETY: the caller's promise.
                    Direction::Out => unsafe { Packing::of_pieces(pieces) },
                    Direction::In => Packing::for_pieces(pieces),
                })
            }
            UCP_DATATYPE_GENERIC => {
                let generic = (self.datatype & !UCP_DATATYPE_CLASS_MASK) as usize;
                // SAFETY: the caller's promise: `ucp_dt_create_generic` has returned it.
                unsafe {
                    let generic = handle::at(with_exposed_provenance(generic));
                    match direction {
                        Direction::Out => Packing::of_generic(generic, (buffer, count)),
                        Direction::In => Packing::for_generic(generic, (buffer, count)),
                    }
                }
            }
            _ => Err(Status::INVALID_PARAM),
        }
    }

    /// As [`answer`], of a receive that may have ended in its call.
    ///
    /// # Safety
    /// The place for what is told may be written.
    #[inline(always)]
    pub(super) unsafe fn answer(&self, posted: Posted) -> StatusPtr {
        if let Posted::Received(info) = posted {
            // SAFETY: the caller's promise.
            unsafe { copy::put(self.info, info) };
        }
        answer(posted)
    }
}

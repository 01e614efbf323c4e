//! The memory of messages, as programs describe it.

use crate::abi::Iovec;
use crate::code::{Code, Outcome};
use crate::ep::MESSAGE_MAX;
use crate::offer::INJECT_MAX;
use crate::sys::copy;
use ayre::{Span, Spans};
use std::ffi::c_void;

/// Memory to be sent.
///
/// # Errors
/// `EMSGSIZE` for more than a message can have.
///
/// # Safety
/// As the manual pages have programs promise: the memory is there, and nobody writes it, until the
/// operation has ended.
#[inline(always)]
pub(super) unsafe fn from(start: *const c_void, len: usize) -> Outcome<Spans> {
    if len > MESSAGE_MAX {
        return Err(Code::TOO_LONG);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Span::read_only(start.cast(), len) }.into())
}

/// Memory that is free again when the call returns.
///
/// # Errors
/// `EMSGSIZE` for more than can be injected.
///
/// # Safety
/// The memory is there until then.
#[inline(always)]
pub(super) unsafe fn injected(start: *const c_void, len: usize) -> Outcome<Spans> {
    if len > INJECT_MAX {
        return Err(Code::TOO_LONG);
    }
    // SAFETY: the caller's promise; what the engine takes so far it copies at once.
    Ok(unsafe { Span::read_only(start.cast(), len) }.into())
}

/// Memory to be received into.
///
/// # Errors
/// As for [`from`].
///
/// # Safety
/// As for [`from`], and nobody else uses it.
#[inline(always)]
pub(super) unsafe fn into(start: *mut c_void, len: usize) -> Outcome<Spans> {
    if len > MESSAGE_MAX {
        return Err(Code::TOO_LONG);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Span::new(start.cast(), len) }.into())
}

/// Several pieces, one behind the other, to be sent or received into.
///
/// # Errors
/// `EINVAL` for too many pieces; `EMSGSIZE` as for [`from`].
///
/// # Safety
/// There are so many pieces, and each is as for [`from`] or [`into`].
pub(super) unsafe fn pieces(iov: *const Iovec, count: usize) -> Outcome<Spans> {
    // SAFETY: the caller's promise.
    let iov = unsafe { copy::values(iov, count) };
    if iov.iter().any(|piece| piece.iov_len > MESSAGE_MAX) {
        return Err(Code::TOO_LONG);
    }
    // SAFETY: as above.
    let spans = iov.iter().map(|piece| unsafe { Span::new(piece.iov_base.cast(), piece.iov_len) });
    let spans = Spans::new(spans).ok_or(Code::INVALID)?;
    if spans.len() > MESSAGE_MAX { Err(Code::TOO_LONG) } else { Ok(spans) }
}

/// Where the first piece begins.
///
/// # Safety
/// There are so many pieces.
pub(super) unsafe fn start(iov: *const Iovec, count: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { copy::values(iov, count) }.first().map_or(0, |piece| piece.iov_base as usize)
}

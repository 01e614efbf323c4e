//! The memory of messages, as programs describe it.

use crate::abi::{Ioc, Iovec};
use crate::error::{Code, Outcome};
use crate::info::offer::{INJECT_MAX, MESSAGE_MAX};
use ayre::endpoint::raw::{SPANS_MAX, Span, Spans};
use ayre_guest::copy;
use std::ffi::c_void;

/// Memory to be sent.
///
/// # Errors
/// `EMSGSIZE` for more than a message can have; `EINVAL` for bytes that are nowhere.
///
/// # Safety
/// As the manual pages have programs promise: the memory is there, and nobody writes it, until the
/// operation has ended.
#[inline(always)]
pub(super) unsafe fn from(start: *const c_void, len: usize) -> Outcome<Spans> {
    check(start, len, MESSAGE_MAX)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { Span::read_only(start.cast(), len) }.into())
}

/// Memory that is free again when the call returns.
///
/// # Errors
/// `EMSGSIZE` for more than can be injected; `EINVAL` as for [`from`].
///
/// # Safety
/// The memory is there until then.
#[inline(always)]
pub(super) unsafe fn injected(start: *const c_void, len: usize) -> Outcome<Spans> {
    check(start, len, INJECT_MAX)?;
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
    check(start, len, MESSAGE_MAX)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { Span::new(start.cast(), len) }.into())
}

/// Bytes that are nowhere are a mistake, which must not pass for a message without bytes.
#[inline(always)]
fn check(start: *const c_void, len: usize, max: usize) -> Outcome {
    if len > max {
        return Err(Code::TOO_LONG);
    }
    // Neither at no address, nor beyond the last one.
    let before = (start as usize).wrapping_sub(1);
    before.checked_add(len).map(drop).ok_or(Code::INVALID)
}

/// The structure that a call's argument points to.
///
/// # Errors
/// `EINVAL` where the pointer is null or misaligned.
///
/// # Safety
/// It is null or there, and stays as it is for `'a`.
pub(super) unsafe fn described<'a, T>(at: *const T) -> Outcome<&'a T> {
    if !at.is_aligned() {
        return Err(Code::INVALID);
    }
    // SAFETY: aligned, and the caller's promise.
    unsafe { at.as_ref() }.ok_or(Code::INVALID)
}

/// Where a program says that an array is. Nothing has been read.
#[derive(Debug)]
pub(super) struct Array<T> {
    start: *const T,
    count: usize,
}

impl<T> Array<T> {
    pub(super) fn new(start: *const T, count: usize) -> Self {
        Self { start, count }
    }

    /// The values.
    ///
    /// # Errors
    /// `EINVAL` for more than an operation can have pieces, and as [`described`].
    ///
    /// # Safety
    /// The array is at no address or there, and stays as it is for `'a`.
    pub(super) unsafe fn get<'a>(&self) -> Outcome<&'a [T]> {
        let Self { start, count } = *self;
        if count > SPANS_MAX || !start.is_aligned() || start.is_null() && count > 0 {
            return Err(Code::INVALID);
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { copy::values(start, count) })
    }
}

/// Several pieces, one behind the other, to be sent or received into.
///
/// # Errors
/// `EINVAL` for too many pieces, or some at no address; those of [`from`].
///
/// # Safety
/// There are `count` pieces, and each is as for [`from`] or [`into`].
pub(super) unsafe fn pieces(iov: *const Iovec, count: usize) -> Outcome<Spans> {
    // SAFETY: the caller's promise.
    let iov = unsafe { Array::new(iov, count).get() }?;
    iov.iter().try_for_each(|piece| check(piece.iov_base, piece.iov_len, MESSAGE_MAX))?;
    // SAFETY: as above.
    let spans = iov.iter().map(|piece| unsafe { Span::new(piece.iov_base.cast(), piece.iov_len) });
    let spans = Spans::new(spans).ok_or(Code::INVALID)?;
    if spans.len() > MESSAGE_MAX { Err(Code::TOO_LONG) } else { Ok(spans) }
}

/// Where the first piece begins, if there are any that [`pieces`] takes.
///
/// # Safety
/// There are `count` pieces.
pub(super) unsafe fn start(iov: *const Iovec, count: usize) -> usize {
    // SAFETY: the caller's promise.
    let pieces = unsafe { Array::new(iov, count).get() };
    pieces.unwrap_or_default().first().map_or(0, |piece| piece.iov_base as usize)
}

/// Elements of an atomic, in several pieces.
///
/// # Errors
/// As for [`pieces`].
///
/// # Safety
/// Each is as for [`from`] or [`into`], with `count` elements of `size` bytes in each.
pub(super) unsafe fn elements(iov: &[Ioc], size: usize) -> Outcome<Spans> {
    let len = |piece: &Ioc| piece.count.checked_mul(size).ok_or(Code::TOO_LONG);
    iov.iter().try_for_each(|piece| check(piece.addr, len(piece)?, MESSAGE_MAX))?;
    // SAFETY: the caller's promise.
    let spans = iov.iter().map(|piece| unsafe { Span::new(piece.addr.cast(), piece.count * size) });
    Spans::new(spans).ok_or(Code::INVALID)
}

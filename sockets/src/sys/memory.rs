//! Memory that C points to, and errno.
use libc::{c_int, c_void, iovec};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use std::sync::Arc;

/// One piece of memory to read into.
///
/// # Safety
/// `into` must point to `len` bytes that nothing else uses during the call.
pub(crate) unsafe fn into<'a>(into: *mut c_void, len: usize) -> IoSliceMut<'a> {
    if len == 0 {
        return IoSliceMut::new(&mut []);
    }
    // SAFETY: the caller's.
    IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(into.cast(), len) })
}

/// One piece of memory to write from.
///
/// # Safety
/// `from` must point to `len` bytes that nothing changes during the call.
pub(crate) unsafe fn from<'a>(from: *const c_void, len: usize) -> IoSlice<'a> {
    if len == 0 {
        return IoSlice::new(&[]);
    }
    // SAFETY: the caller's.
    IoSlice::new(unsafe { std::slice::from_raw_parts(from.cast(), len) })
}

/// The pieces of a vector to read into.
///
/// # Safety
/// As [`into`], for each of the `count` pieces.
pub(crate) unsafe fn pieces_into<'a>(pieces: *const iovec, count: usize) -> Vec<IoSliceMut<'a>> {
    // SAFETY: the caller's.
    (0..count)
        .map(|i| unsafe { piece(pieces, i) })
        .map(|(at, len)| unsafe { into(at, len) })
        .collect()
}

/// The pieces of a vector to write from.
///
/// # Safety
/// As [`from`], for each of the `count` pieces.
pub(crate) unsafe fn pieces_from<'a>(pieces: *const iovec, count: usize) -> Vec<IoSlice<'a>> {
    // SAFETY: the caller's.
    (0..count)
        .map(|i| unsafe { piece(pieces, i) })
        .map(|(at, len)| unsafe { from(at, len) })
        .collect()
}

/// One piece of a vector.
///
/// # Safety
/// There must be more than `i` pieces.
unsafe fn piece(pieces: *const iovec, i: usize) -> (*mut c_void, usize) {
    // SAFETY: the caller's.
    let piece = unsafe { *pieces.add(i) };
    (piece.iov_base, piece.iov_len)
}

/// A descriptor of the program for the time of a call.
pub(crate) fn borrowed<'a>(fd: c_int) -> BorrowedFd<'a> {
    // SAFETY: the program's table has a stream there, so it is not -1; the kernel answers with
    // EBADF where the program closes it meanwhile.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Calls something that leaves errno as it is.
pub(crate) fn keeping_errno<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: it always points to this thread's error.
    let last = unsafe { *libc::__errno_location() };
    let result = call();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = last };
    result
}

/// The error of the last call of the C library, which has failed.
pub(crate) fn errno() -> Errno {
    // SAFETY: it always points to this thread's error.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

pub(crate) fn set_errno(errno: Errno) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
}

/// The value that a function of C returns.
pub(crate) fn returned(result: Result<usize, Errno>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// Sets an option of a socket that is one number.
pub(crate) fn set_option(fd: c_int, level: c_int, name: c_int, value: c_int) -> bool {
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the value has this length.
    unsafe { super::real::setsockopt(fd, level, name, (&raw const value).cast(), len) == 0 }
}

/// Reads an option of a socket; its length.
pub(crate) fn option(fd: c_int, level: c_int, name: c_int, value: &mut [u8]) -> Option<usize> {
    let mut len = value.len() as libc::socklen_t;
    let at = value.as_mut_ptr().cast();
    // SAFETY: the value has room for this length.
    let done = unsafe { super::real::getsockopt(fd, level, name, at, &raw mut len) };
    (done == 0).then_some(len as usize)
}

/// A reference that lasts until [`give_back`].
pub(crate) fn lend<T>(value: &Arc<T>) -> &'static T {
    // SAFETY: the count stays above zero until give_back().
    unsafe { &*Arc::into_raw(value.clone()) }
}

/// Ends what [`lend`] has begun.
///
/// # Safety
/// The reference came from `lend`, is given back once, and is not used any more.
pub(crate) unsafe fn give_back<T>(value: &'static T) {
    // SAFETY: the caller's.
    unsafe { Arc::decrement_strong_count(value) };
}

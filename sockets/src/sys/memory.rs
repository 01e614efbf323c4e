//! Memory that C points to, and errno.
use libc::{c_int, c_void, iovec};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use std::sync::Arc;

/// Most pieces of a vector.
pub(crate) const PIECES: usize = 1024;

/// Addresses below belong to no program.
const FIRST: usize = 4096;

/// `EFAULT` where memory is outside of what any program may have. Whether this one has it, only the
/// kernel knows.
#[inline]
fn check(at: usize, len: usize) -> Result<(), Errno> {
    let end = at.checked_add(len).filter(|end| *end <= isize::MAX as usize);
    if end.is_some() && at >= FIRST { Ok(()) } else { Err(Errno::FAULT) }
}

/// Whether some program may have a value here.
#[inline]
pub(crate) fn may_be<T>(at: *const T) -> bool {
    check(at.addr(), size_of::<T>()).is_ok()
}

/// One piece of memory to read into.
///
/// # Errors
/// `EFAULT` where no program may have this memory.
///
/// # Safety
/// Where a program may have this memory, this one has, and nothing else uses it during the call.
#[inline]
pub(crate) unsafe fn into<'a>(into: *mut c_void, len: usize) -> Result<IoSliceMut<'a>, Errno> {
    if len == 0 {
        return Ok(IoSliceMut::new(&mut []));
    }
    check(into.addr(), len)?;
    // SAFETY: the caller's.
    Ok(IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(into.cast(), len) }))
}

/// One piece of memory to write from.
///
/// # Errors
/// As [`into`].
///
/// # Safety
/// As [`into`]; others may read it.
#[inline]
pub(crate) unsafe fn from<'a>(from: *const c_void, len: usize) -> Result<IoSlice<'a>, Errno> {
    if len == 0 {
        return Ok(IoSlice::new(&[]));
    }
    check(from.addr(), len)?;
    // SAFETY: the caller's.
    Ok(IoSlice::new(unsafe { std::slice::from_raw_parts(from.cast(), len) }))
}

/// The pieces of a vector to read into.
///
/// # Errors
/// As [`into`]; `EMSGSIZE` where there are too many.
///
/// # Safety
/// As [`into`], for the vector and each of its pieces.
pub(crate) unsafe fn pieces_into<'a>(
    pieces: *const iovec,
    count: usize,
) -> Result<Vec<IoSliceMut<'a>>, Errno> {
    // SAFETY: the caller's, here and below.
    let vector = unsafe { vector(pieces, count) }?;
    // SAFETY: as above.
    vector.iter().map(|piece| unsafe { into(piece.iov_base, piece.iov_len) }).collect()
}

/// The pieces of a vector to write from.
///
/// # Errors
/// As [`pieces_into`].
///
/// # Safety
/// As [`from`], for the vector and each of its pieces.
pub(crate) unsafe fn pieces_from<'a>(
    pieces: *const iovec,
    count: usize,
) -> Result<Vec<IoSlice<'a>>, Errno> {
    // SAFETY: the caller's, here and below.
    let vector = unsafe { vector(pieces, count) }?;
    // SAFETY: as above.
    vector.iter().map(|piece| unsafe { from(piece.iov_base, piece.iov_len) }).collect()
}

/// # Safety
/// As [`pieces_into`].
unsafe fn vector<'a>(pieces: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    if count > PIECES {
        return Err(Errno::MSGSIZE);
    }
    if count == 0 {
        return Ok(&[]);
    }
    check(pieces.addr(), count * size_of::<iovec>())?;
    // SAFETY: the caller's.
    Ok(unsafe { std::slice::from_raw_parts(pieces, count) })
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

/// An option of a socket: which of its buffers have a size that the program has set. libc has no
/// name for it.
pub(crate) const SO_BUF_LOCK: c_int = 72;

/// The sizes of a socket's buffers for writing and for reading, if the program has set them. Linux
/// before 5.14 does not tell.
pub(crate) fn set_buffers(fd: c_int) -> [Option<u64>; 2] {
    let number = |name| {
        let mut value = [0; size_of::<c_int>()];
        option(fd, libc::SOL_SOCKET, name, &mut value)?;
        u64::try_from(c_int::from_ne_bytes(value)).ok()
    };
    let locks = number(SO_BUF_LOCK).unwrap_or(0);
    let set = |lock, name| if locks & lock != 0 { number(name) } else { None };
    [set(1, libc::SO_SNDBUF), set(2, libc::SO_RCVBUF)]
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

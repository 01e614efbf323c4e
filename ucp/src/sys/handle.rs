//! Objects that the program knows by their address.

/// An address that is kept, and handed back to those who vouch for it.
#[derive(Debug)]
pub(crate) struct Place<T>(pub(crate) *const T);

// SAFETY: it is a number until it is handed back.
unsafe impl<T> Send for Place<T> {}

/// Gives an object to the program.
pub(crate) fn give<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// The object at an address.
///
/// # Safety
/// [`give`] has returned it, and [`take`] takes it back only after `'a`.
#[inline(always)]
pub(crate) unsafe fn at<'a, T>(handle: *const T) -> &'a T {
    debug_assert!(!handle.is_null(), "handles are not null");
    // SAFETY: the caller's promise.
    unsafe { &*handle }
}

/// Takes an object back.
///
/// # Safety
/// [`give`] has returned its address, and nobody uses that any more.
pub(crate) unsafe fn take<T>(handle: *mut T) -> Box<T> {
    // SAFETY: the caller's promise.
    unsafe { Box::from_raw(handle) }
}

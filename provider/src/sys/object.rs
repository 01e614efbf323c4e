//! Objects that C code holds by the address of their head.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An object of libfabric: first what C sees of it, then what is ours.
#[repr(C)]
pub(crate) struct Object<H, T> {
    head: UnsafeCell<H>,
    body: T,
}

// SAFETY: the head is written before anybody knows the object, and read by C only; a program that
// changes its own context there does so outside of our calls, and we never read it. The body is
// shared as its own type allows.
unsafe impl<H, T: Sync> Sync for Object<H, T> {}
// SAFETY: a head is words that mean the same to every thread; the body may be sent by itself.
unsafe impl<H, T: Send> Send for Object<H, T> {}

impl<H, T> Object<H, T> {
    pub(crate) fn new(head: H, body: T) -> Arc<Self> {
        Arc::new(Self { head: UnsafeCell::new(head), body })
    }

    /// By what C code knows the object. Good for as long as the object is.
    pub(crate) fn handle(this: &Arc<Self>) -> *mut H {
        Arc::as_ptr(this).cast_mut().cast()
    }

    /// The object that C code names in a call.
    ///
    /// # Safety
    /// The handle is that of an object of this very type, and the object is not closed before the
    /// call is over.
    #[inline]
    pub(crate) unsafe fn at<'a>(handle: *const H) -> &'a T {
        // SAFETY: the caller's promise; the handle was made from a pointer to the whole object,
        // whose first field it points to.
        unsafe { &(*handle.cast::<Self>()).body }
    }
}

impl<H, T> Deref for Object<H, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.body
    }
}

impl<H, T> fmt::Debug for Object<H, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Object").finish_non_exhaustive()
    }
}

//! Objects that C code holds by the address of their head.

use crate::abi::*;
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

    /// Takes all calls away: they are answered with an error that needs nothing of the object.
    /// For the handler of a forked child.
    pub(crate) fn refuse(&self)
    where
        H: Head,
    {
        // SAFETY: the child has one thread, which is in no call of the object, so that nobody else
        // looks at the head.
        unsafe { (*self.head.get()).refuse() };
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

/// The C structure of an object.
pub(crate) trait Head {
    /// Has every call on the way of data answered with an error. Those that set up and tear down
    /// look the object up, and do not find it.
    fn refuse(&mut self) {}
}

#[cfg(test)]
impl Head for u8 {}
#[cfg(test)]
impl Head for u32 {}
#[cfg(test)]
impl Head for u64 {}
impl Head for FidFabric {}
impl Head for FidDomain {}
impl Head for FidMr {}

impl Head for FidAv {
    fn refuse(&mut self) {
        self.ops = &OpsAv::REFUSING;
    }
}

impl Head for FidCq {
    fn refuse(&mut self) {
        self.ops = &OpsCq::REFUSING;
    }
}

impl Head for FidCntr {
    fn refuse(&mut self) {
        self.ops = &OpsCntr::REFUSING;
    }
}

impl Head for FidEq {
    fn refuse(&mut self) {
        self.ops = &OpsEq::REFUSING;
    }
}

impl Head for FidPoll {
    fn refuse(&mut self) {
        self.ops = &OpsPoll::REFUSING;
    }
}

impl Head for FidWait {
    fn refuse(&mut self) {
        self.ops = &OpsWait::REFUSING;
    }
}

impl Head for FidEp {
    fn refuse(&mut self) {
        (self.ops, self.cm) = (&OpsEp::REFUSING, &OpsCm::REFUSING);
        (self.msg, self.tagged) = (&OpsMsg::REFUSING, &OpsTagged::REFUSING);
        (self.rma, self.atomic) = (&OpsRma::REFUSING, &OpsAtomic::REFUSING);
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

//! Memory that a program has mapped.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

const PAGE: usize = 4096;

/// Mapped memory: the program's, or made for it.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) address: *mut c_void,
    pub(crate) length: usize,
    made: Option<Layout>,
}

impl Mapped {
    /// Memory of the program's.
    pub(crate) fn of_program(address: *mut c_void, length: usize) -> Self {
        Self { address, length, made: None }
    }

    /// New memory of whole pages, with zeros. None where there is none.
    pub(crate) fn make(length: usize) -> Option<Self> {
        let length = length.max(1).checked_next_multiple_of(PAGE)?;
        let layout = Layout::from_size_align(length, PAGE).ok()?;
        // SAFETY: the layout has a size.
        let made = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { address: made.as_ptr().cast(), length, made: Some(layout) })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if let Some(layout) = self.made {
            // SAFETY: make() has allocated it so, and the program has given it back.
            unsafe { dealloc(self.address.cast(), layout) };
        }
    }
}

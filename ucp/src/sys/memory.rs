//! Memory that a program has mapped.

use crate::sys::window::{At, Window};
use ayre::SetupError;
use ayre::endpoint::raw::Span;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Mapped memory: the program's, or made for it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) address: *mut c_void,
    pub(crate) length: usize,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Program,
    Private(Layout),
    /// Peers can map it.
    Shared(Window),
}

impl Block {
    /// The bytes of a page.
    pub(crate) const PAGE: usize = 4096;

    /// Memory of the program's.
    ///
    /// # Safety
    /// It stays until this is dropped, and others may use it meanwhile.
    pub(crate) unsafe fn of_program(address: *mut c_void, length: usize) -> Self {
        Self { address, length, backing: Backing::Program }
    }

    /// No memory.
    pub(crate) fn empty() -> Self {
        Self { address: std::ptr::null_mut(), length: 0, backing: Backing::Program }
    }

    /// New memory of whole pages, with zeros. Peers of this host can map it, where the system
    /// allows that; `label` tells it from others.
    ///
    /// # Errors
    /// Those of [`Window::make`] for memory at an exact place; [`SetupError::Invalid`] for more
    /// than there can be, [`SetupError::Exhausted`] for more than there is.
    pub(crate) fn new(length: usize, at: At, label: [u8; 16]) -> Result<Self, SetupError> {
        let too_much = || SetupError::Invalid("there is not that much memory".into());
        let length = length.max(1).checked_next_multiple_of(Self::PAGE).ok_or_else(too_much)?;
        match Window::make(length, at, label) {
            Ok(window) => {
                let address = window.start().cast();
                Ok(Self { address, length, backing: Backing::Shared(window) })
            }
            Err(error) if at.is_exact() => Err(error),
            Err(_) => {
                let layout = Layout::from_size_align(length, Self::PAGE).map_err(|_| too_much())?;
                // SAFETY: the layout has a size.
                let made = NonNull::new(unsafe { alloc_zeroed(layout) });
                let made = made.ok_or_else(|| SetupError::Exhausted("memory".into()))?;
                let address = made.as_ptr().cast();
                Ok(Self { address, length, backing: Backing::Private(layout) })
            }
        }
    }

    /// The memory, for the engine. It stays until this is dropped.
    pub(crate) fn span(&self) -> Span {
        // SAFETY: of_program() asks for that; other memory is ours until the drop.
        unsafe { Span::new(self.address.cast(), self.length) }
    }

    /// The descriptor by which peers find it, if they can map it.
    pub(crate) fn file(&self) -> Option<u32> {
        match &self.backing {
            Backing::Shared(window) => window.file(),
            Backing::Program | Backing::Private(_) => None,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Backing::Private(layout) = self.backing {
            // SAFETY: new() has allocated it so, and the program has given it back.
            unsafe { dealloc(self.address.cast(), layout) };
        }
    }
}

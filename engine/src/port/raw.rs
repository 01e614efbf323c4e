//! Registration of memory by its address.
use super::Port;
use crate::error::SetupError;
use crate::mem::map::Mapping;
use crate::mem::region::Region;
use std::ptr::NonNull;

impl Port {
    /// Registers `len` bytes at `base`, memory that the program keeps, for peers of mediated
    /// connections.
    ///
    /// # Errors
    /// As [`Port::register`]; [`SetupError::Invalid`] where `base` is not a multiple of eight.
    ///
    /// # Safety
    /// The memory must stay valid for reads and writes until the region is deregistered and all its
    /// clones are dropped. No Rust reference may be used to access it meanwhile.
    // spec: REG-5
    pub unsafe fn register_raw(
        &mut self,
        base: NonNull<u8>,
        len: usize,
    ) -> Result<Region, SetupError> {
        if len == 0 || !base.cast::<u64>().is_aligned() {
            return Err(SetupError::invalid("a region begins at a multiple of eight"));
        }
        // SAFETY: the caller's promise, word for word.
        self.register_range(unsafe { Mapping::of_raw(base, len) })
    }
}

//! Structures of C that grow from version to version.

use std::mem::MaybeUninit;

/// A copy of the first `size` bytes of a structure, zeros after them.
///
/// # Safety
/// There are `size` bytes at `from`, or it is null, and zeros are a value of `T`, as all bytes are
/// that a program may leave there.
pub(crate) unsafe fn head_of<T: Copy>(from: *const T, size: usize) -> Option<T> {
    if from.is_null() {
        return None;
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    let size = size.min(size_of::<T>());
    // SAFETY: `size` bytes can be read, and written to the copy, which is as long; what they do
    // not reach is zeros.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast(), size);
        Some(copy.assume_init())
    }
}

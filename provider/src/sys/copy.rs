//! Copies between a program's memory and ours.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::slice;

/// The text at `text`, if there is one.
///
/// # Safety
/// It is null, or a string of C that stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// `count` values at `values`; none if that is null.
///
/// # Safety
/// There are `count` values, aligned, and they stay unchanged for `'a`.
pub(crate) unsafe fn values<'a, T>(values: *const T, count: usize) -> &'a [T] {
    if values.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { slice::from_raw_parts(values, count) }
}

/// The bytes at `bytes`; none if that is null.
///
/// # Safety
/// As for [`values`].
pub(crate) unsafe fn bytes<'a>(bytes: *const c_void, count: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { values(bytes.cast(), count) }
}

/// Writes a value where the program wants it, if it does.
///
/// # Safety
/// The place is null or may be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { place.write_unaligned(value) };
    }
}

/// Copies as many of `bytes` as there is room for, and says how many that were.
///
/// # Safety
/// `room` bytes may be written at `place`, or it is null.
pub(crate) unsafe fn fill(place: *mut c_void, room: usize, bytes: &[u8]) -> usize {
    let count = if place.is_null() { 0 } else { room.min(bytes.len()) };
    if count > 0 {
        // SAFETY: `count` bytes can be read and written, and ours are nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), count) };
    }
    count
}

/// Writes a string of C, cut to the room there is, and returns its place.
///
/// # Safety
/// As for [`fill`].
pub(crate) unsafe fn print(place: *mut c_char, room: usize, text: &str) -> *const c_char {
    if let Some(room) = room.checked_sub(1).filter(|_| !place.is_null()) {
        // SAFETY: one less than the room there is, and the byte after it.
        unsafe {
            let count = fill(place.cast(), room, text.as_bytes());
            place.add(count).write(0);
        }
    }
    place
}

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

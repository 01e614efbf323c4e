//! Copies between a program's memory and ours.

use std::ffi::{CStr, c_char, c_void};
use std::slice;

/// The text at `text`, if there is one.
///
/// # Safety
/// It is null, or a string of C that stays as it is for `'a`.
#[inline]
pub unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// `count` values at `values`; none if that is null.
///
/// # Safety
/// There are `count` values, aligned, and they stay unchanged for `'a`.
pub unsafe fn values<'a, T>(values: *const T, count: usize) -> &'a [T] {
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
#[inline]
pub unsafe fn bytes<'a>(bytes: *const c_void, count: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { values(bytes.cast(), count) }
}

/// Writes a value where the program wants it, if it does.
///
/// # Safety
/// The place is null or may be written.
pub unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { place.write_unaligned(value) };
    }
}

/// Copies as many of `bytes` as there is room for, and says how many that were.
///
/// # Safety
/// `room` bytes may be written at `place`, or it is null.
#[inline]
pub unsafe fn fill(place: *mut c_void, room: usize, bytes: &[u8]) -> usize {
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
pub unsafe fn print(place: *mut c_char, room: usize, text: &str) -> *const c_char {
    if let Some(room) = room.checked_sub(1).filter(|_| !place.is_null()) {
        // SAFETY: one less than the room there is, and the byte after it.
        unsafe {
            let count = fill(place.cast(), room, text.as_bytes());
            place.add(count).write(0);
        }
    }
    place
}

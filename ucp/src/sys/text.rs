//! Streams of C.

use libc::FILE;
use std::ffi::CString;

/// Writes a text to a stream.
///
/// # Safety
/// The stream is null or open.
pub(crate) unsafe fn print(stream: *mut FILE, text: &str) {
    let Ok(text) = CString::new(text) else { return };
    if !stream.is_null() {
        // SAFETY: the caller's promise, and a string of C.
        unsafe { libc::fputs(text.as_ptr(), stream) };
    }
}

//! Settings.

use crate::abi::status::Status;
use crate::config::Config;
use crate::sys::{handle, text};
use ayre_guest::copy;
use libc::FILE;
use std::ffi::{c_char, c_int};

/// # Safety
/// Both texts are null or strings of C; the place for the handle may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_config_read(
    prefix: *const c_char,
    _file: *const c_char,
    config: *mut *mut Config,
) -> Status {
    // SAFETY: the caller's promise.
    let prefix = unsafe { copy::text(prefix) }.and_then(|prefix| prefix.to_str().ok());
    let read = Config::of_environment(prefix.filter(|prefix| !prefix.is_empty()));
    // SAFETY: the caller's promise.
    unsafe { copy::put(config, handle::give(read)) };
    Status::OK
}

/// # Safety
/// A handle of [`ucp_config_read`], which is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_config_release(config: *mut Config) {
    // SAFETY: the caller's promise.
    drop(unsafe { handle::take(config) });
}

/// # Safety
/// A handle of [`ucp_config_read`], and strings of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_config_modify(
    config: *mut Config,
    name: *const c_char,
    value: *const c_char,
) -> Status {
    // SAFETY: the caller's promise.
    let (name, value) = unsafe { (copy::text(name), copy::text(value)) };
    let (Some(name), Some(value)) = (name, value) else { return Status::INVALID_PARAM };
    let (Ok(name), Ok(value)) = (name.to_str(), value.to_str()) else {
        return Status::INVALID_PARAM;
    };
    // SAFETY: the caller's promise: nobody else uses it.
    if unsafe { &mut *config }.set(name, value) { Status::OK } else { Status::NO_ELEM }
}

/// # Safety
/// A handle of [`ucp_config_read`], an open stream, and a title that is null or a string of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_config_print(
    config: *const Config,
    stream: *mut FILE,
    title: *const c_char,
    _flags: c_int,
) {
    // SAFETY: the caller's promise.
    let (config, title) = unsafe { (handle::at(config), copy::text(title)) };
    let title = title.map(|title| format!("#\n# {}\n#\n", title.to_string_lossy()));
    let lines = title.unwrap_or_default() + &config.lines();
    // SAFETY: the caller's promise.
    unsafe { text::print(stream, &lines) };
}

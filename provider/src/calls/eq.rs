//! Event queues.

use crate::abi::*;
use crate::calls::cq::describe;
use crate::error::{Code, Outcome, counted};
use crate::queue::eq::{Eq, Event};
use crate::sys::object::Object;
use ayre_guest::copy;
use std::ffi::{c_char, c_int, c_void};

/// The table of event queues.
pub(crate) static OPS: OpsEq = OpsEq {
    read: Some(read),
    readerr: Some(readerr),
    write: Some(write),
    sread: Some(sread),
    strerror: Some(strerror),
    ..OpsEq::REFUSING
};

type EqObject = Object<FidEq, Eq>;

/// Bytes of the longest event that a program may write.
const EVENT_MAX: usize = 1 << 16;

/// Whether a reading only peeks.
fn peeks(flags: u64) -> Outcome<bool> {
    if flags & !PEEK != 0 { Err(Code::BAD_FLAGS) } else { Ok(flags & PEEK != 0) }
}

/// As [`peeks`], for what is read to a place.
fn peeks_into(place: *const c_void, len: usize, flags: u64) -> Outcome<bool> {
    if place.is_null() && len > 0 { Err(Code::INVALID) } else { peeks(flags) }
}

/// # Safety
/// As the manual page says: the queue is open, with `len` bytes of room at `place`.
unsafe extern "C" fn read(
    eq: *mut FidEq,
    number: *mut u32,
    place: *mut c_void,
    len: usize,
    flags: u64,
) -> isize {
    // SAFETY: the caller's promise.
    let eq = unsafe { EqObject::at(eq) };
    let event = peeks_into(place, len, flags).and_then(|peeks| eq.read(len, peeks));
    // SAFETY: as above.
    counted(event.map(|event| unsafe { put(&event, number, place, len) }))
}

/// # Safety
/// As for `read`.
unsafe extern "C" fn sread(
    eq: *mut FidEq,
    number: *mut u32,
    place: *mut c_void,
    len: usize,
    milliseconds: c_int,
    flags: u64,
) -> isize {
    // SAFETY: the caller's promise.
    let eq = unsafe { EqObject::at(eq) };
    let event =
        peeks_into(place, len, flags).and_then(|peeks| eq.read_blocking(len, peeks, milliseconds));
    // SAFETY: as above.
    counted(event.map(|event| unsafe { put(&event, number, place, len) }))
}

/// # Safety
/// There is room for a number, and for `len` bytes.
unsafe fn put(event: &Event, number: *mut u32, place: *mut c_void, len: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        copy::put(number, event.number);
        copy::fill(place, len, &event.bytes)
    }
}

/// # Safety
/// As the manual page says.
unsafe extern "C" fn readerr(eq: *mut FidEq, place: *mut EqErrEntry, flags: u64) -> isize {
    if place.is_null() {
        return counted(Err(Code::INVALID));
    }
    // SAFETY: the caller's promise.
    let eq = unsafe { EqObject::at(eq) };
    let failure = peeks(flags).and_then(|peeks| eq.read_failure(peeks));
    counted(failure.map(|failure| {
        let entry = EqErrEntry {
            fid: failure.fid as *mut Fid,
            context: failure.context as *mut c_void,
            data: failure.data,
            err: failure.err,
            prov_errno: 0,
            err_data: std::ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, entry) };
        size_of::<EqErrEntry>()
    }))
}

/// # Safety
/// There are `len` bytes at `bytes`.
unsafe extern "C" fn write(
    eq: *mut FidEq,
    number: u32,
    bytes: *const c_void,
    len: usize,
    flags: u64,
) -> isize {
    if flags != 0 {
        return counted(Err(Code::BAD_FLAGS));
    }
    if len > EVENT_MAX || bytes.is_null() && len > 0 {
        return counted(Err(Code::INVALID));
    }
    // SAFETY: the caller's promise.
    let (eq, bytes) = unsafe { (EqObject::at(eq), copy::bytes(bytes, len)) };
    counted(eq.write(Event { number, bytes: bytes.to_vec() }))
}

/// # Safety
/// There is as much room as is said.
unsafe extern "C" fn strerror(
    _eq: *mut FidEq,
    prov_errno: c_int,
    _data: *const c_void,
    place: *mut c_char,
    room: usize,
) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { describe(prov_errno, place, room) }
}

/// The bytes of an event about an object.
pub(crate) fn entry(fid: *const c_void, context: *mut c_void, data: u64) -> Vec<u8> {
    let words = [fid as u64, context as u64, data];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

const _: () = assert!(size_of::<EqEntry>() == 3 * size_of::<u64>());

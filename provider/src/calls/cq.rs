//! Completion queues: a table for each policy and each form of completions.

use crate::abi::*;
use crate::error::trouble;
use crate::error::{Code, Outcome, counted, status};
use crate::queue::cq::{Cq, Failure, QueuedCompletion};
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use ayre_guest::copy;
use ayre_guest::layout::version;
use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;

/// The calls on queues whose completions a program reads in `SIZE` bytes.
struct Calls<L, const SIZE: usize>(PhantomData<L>);

/// The table for a form of completions; none for one that does not exist.
pub(crate) fn ops<L: Policy>(format: u32) -> Option<&'static OpsCq> {
    match format {
        CQ_FORMAT_CONTEXT => Some(Calls::<L, { size_of::<CqEntry>() }>::OPS),
        CQ_FORMAT_MSG => Some(Calls::<L, { size_of::<CqMsgEntry>() }>::OPS),
        CQ_FORMAT_DATA => Some(Calls::<L, { size_of::<CqDataEntry>() }>::OPS),
        CQ_FORMAT_TAGGED => Some(Calls::<L, { size_of::<CqTaggedEntry>() }>::OPS),
        _ => None,
    }
}

/// Bytes; completions consist of words.
const WORD: usize = size_of::<u64>();

type CqObject<L> = Object<FidCq, Cq<L>>;

/// Completions that there is room for.
///
/// # Errors
/// `EINVAL` for some at no address.
#[inline(always)]
fn room(place: *const c_void, count: usize) -> Outcome<usize> {
    if place.is_null() && count > 0 { Err(Code::INVALID) } else { Ok(count) }
}

impl<L: Policy, const SIZE: usize> Calls<L, SIZE> {
    const OPS: &'static OpsCq = &OpsCq {
        read: Some(Self::read),
        readfrom: Some(Self::readfrom),
        readerr: Some(Self::readerr),
        sread: Some(Self::sread),
        sreadfrom: Some(Self::sreadfrom),
        signal: Some(Self::signal),
        strerror: Some(strerror),
        ..OpsCq::REFUSING
    };

    /// # Safety
    /// As the manual page says: the queue is open, with room for `count` completions at `place`.
    unsafe extern "C" fn read(cq: *mut FidCq, place: *mut c_void, count: usize) -> isize {
        // SAFETY: the caller's promise.
        let cq = unsafe { CqObject::<L>::at(cq) };
        if L::IS_RECORDED {
            // SAFETY: there is room, and `at` is less than `count`.
            let sink = |at: usize, it: &QueuedCompletion| unsafe { Self::put(place, at, it) };
            return counted(room(place, count).and_then(|count| cq.read(count, sink)));
        }
        if cq.finds_nothing() {
            return counted(room(place, count).and(Err(Code::AGAIN)));
        }
        // SAFETY: the caller's promise.
        unsafe { Self::take(cq, place, count) }
    }

    /// Not a part of `read`, so that one that finds nothing is short.
    ///
    /// # Safety
    /// As for `read`.
    #[inline(never)]
    unsafe fn take(cq: &Cq<L>, place: *mut c_void, count: usize) -> isize {
        // SAFETY: there is room, and `at` is less than `count`.
        let sink = |at: usize, it: &QueuedCompletion| unsafe { Self::put(place, at, it) };
        counted(room(place, count).and_then(|count| cq.take(count, sink)))
    }

    /// # Safety
    /// As for `read`, with room for as many numbers of peers, if any.
    unsafe extern "C" fn readfrom(
        cq: *mut FidCq,
        place: *mut c_void,
        count: usize,
        peers: *mut u64,
    ) -> isize {
        // SAFETY: the caller's promise.
        let cq = unsafe { CqObject::<L>::at(cq) };
        // SAFETY: there is room, and `at` is less than `count`.
        let sink =
            |at: usize, it: &QueuedCompletion| unsafe { Self::put_both(place, peers, at, it) };
        counted(room(place, count).and_then(|count| cq.read(count, sink)))
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn sread(
        cq: *mut FidCq,
        place: *mut c_void,
        count: usize,
        condition: *const c_void,
        milliseconds: c_int,
    ) -> isize {
        let nowhere = std::ptr::null_mut();
        // SAFETY: the caller's promise; no numbers of peers are written.
        unsafe { Self::sreadfrom(cq, place, count, nowhere, condition, milliseconds) }
    }

    /// # Safety
    /// As for `readfrom`.
    unsafe extern "C" fn sreadfrom(
        cq: *mut FidCq,
        place: *mut c_void,
        count: usize,
        peers: *mut u64,
        _condition: *const c_void,
        milliseconds: c_int,
    ) -> isize {
        // SAFETY: the caller's promise.
        let cq = unsafe { CqObject::<L>::at(cq) };
        // SAFETY: there is room, and `at` is less than `count`.
        let sink =
            |at: usize, it: &QueuedCompletion| unsafe { Self::put_both(place, peers, at, it) };
        counted(room(place, count).and_then(|count| cq.read_blocking(count, milliseconds, sink)))
    }

    /// Writes a completion as the program reads it: the first bytes of ours.
    ///
    /// # Safety
    /// There is room for more than `at` completions.
    #[inline]
    unsafe fn put(place: *mut c_void, at: usize, completion: &QueuedCompletion) {
        const { assert!(SIZE <= size_of::<QueuedCompletion>() && SIZE.is_multiple_of(WORD)) };
        let from = std::ptr::from_ref(completion).cast::<u64>();
        for word in 0..SIZE / WORD {
            // SAFETY: the caller's promise; a completion of ours is at least as long. One word
            // after the other, as they were written just now: wider loads would have to wait until
            // those are in the cache.
            unsafe {
                let place = place.cast::<u8>().add(at * SIZE + word * WORD).cast::<u64>();
                place.write_unaligned(from.add(word).read_volatile());
            }
        }
    }

    /// # Safety
    /// As for `put`, and there are as many numbers of peers, if any.
    #[inline]
    unsafe fn put_both(
        place: *mut c_void,
        peers: *mut u64,
        at: usize,
        completion: &QueuedCompletion,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            Self::put(place, at, completion);
            if !peers.is_null() {
                peers.add(at).write(completion.source);
            }
        }
    }

    /// # Safety
    /// As the manual page says: an entry as long as the program's version has it, in which the
    /// room for data is told.
    unsafe extern "C" fn readerr(cq: *mut FidCq, place: *mut CqErrEntry, _flags: u64) -> isize {
        if place.is_null() {
            return -(errno::EINVAL as isize);
        }
        // SAFETY: the caller's promise.
        let cq = unsafe { CqObject::<L>::at(cq) };
        let api = cq.terms.api;
        // SAFETY: as above.
        counted(cq.read_failure(|failure| unsafe { put_failure(place, failure, api) }).map(|()| 1))
    }

    /// # Safety
    /// The queue is open.
    unsafe extern "C" fn signal(cq: *mut FidCq) -> c_int {
        // SAFETY: the caller's promise.
        status(unsafe { CqObject::<L>::at(cq) }.signal())
    }
}

/// # Safety
/// There is an entry as long as version `api` has it, with room for data as it says.
unsafe fn put_failure(place: *mut CqErrEntry, failure: &Failure, api: u32) {
    let Failure { completion, olen, err, prov_errno, data } = failure;
    // SAFETY: the caller's promise; both members are in every version's entry.
    let (room_at, room) = unsafe { ((*place).err_data, (*place).err_data_size) };
    let has_room = api >= version(1, 5) && room > 0 && !room_at.is_null();
    let (err_data, err_data_size) = if has_room {
        // SAFETY: the caller's promise.
        (room_at, unsafe { copy::fill(room_at, room, data) })
    } else if data.is_empty() {
        (std::ptr::null_mut(), 0)
    } else {
        // The queue keeps them until it is read again.
        (data.as_ptr().cast_mut().cast(), data.len())
    };
    let entry = CqErrEntry {
        op_context: completion.context as *mut c_void,
        flags: completion.flags,
        len: completion.len,
        buf: completion.buf as *mut c_void,
        data: completion.data,
        tag: completion.tag,
        olen: *olen,
        err: *err,
        prov_errno: *prov_errno,
        err_data,
        err_data_size,
        src_addr: completion.source,
    };
    let size = CqErrEntry::LAYOUT.size_at(api);
    // SAFETY: the entry has no padding within any version's size, and there is as much room.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const entry).cast::<u8>(), place.cast(), size);
    }
}

/// # Safety
/// There is as much room as is said.
pub(super) unsafe extern "C" fn strerror(
    _cq: *mut FidCq,
    prov_errno: c_int,
    _data: *const c_void,
    place: *mut c_char,
    room: usize,
) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { describe(prov_errno, place, room) }
}

/// # Safety
/// There is as much room as is said.
pub(super) unsafe fn describe(prov_errno: c_int, place: *mut c_char, room: usize) -> *const c_char {
    if place.is_null() || room == 0 {
        return trouble::lasting_words(prov_errno).as_ptr();
    }
    // SAFETY: the caller's promise.
    unsafe { copy::print(place, room, &trouble::words(prov_errno)) }
}

#[cfg(test)]
mod tests;

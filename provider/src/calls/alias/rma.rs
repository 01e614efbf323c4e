//! Reading and writing peers' memory, by an alias.

use super::{AliasObject, READS, WRITES, call, passed_on, sent};
use crate::abi::*;
use crate::calls::memory::Array;
use std::ffi::c_void;
use std::ptr::null_mut;

pub(super) static OPS: OpsRma = OpsRma {
    read: Some(read),
    readv: Some(readv),
    readmsg: Some(readmsg),
    write: Some(write),
    writev: Some(writev),
    writemsg: Some(writemsg),
    inject: Some(inject),
    writedata: Some(writedata),
    injectdata: Some(injectdata),
    ..OpsRma::REFUSING
};

type Ep = *mut FidEp;

passed_on! {
    rma.readmsg(msg: *const MsgRma, flags: u64) -> isize;
    rma.writemsg(msg: *const MsgRma, flags: u64) -> isize;
    rma.inject(start: *const c_void, len: usize, to: u64, address: u64, key: u64) -> isize;
    rma.injectdata(
        start: *const c_void, len: usize, data: u64, to: u64, address: u64, key: u64,
    ) -> isize;
}

/// A place at a peer, as long as some pieces of memory; of pieces that cannot be, the call that
/// is made of it refuses.
///
/// # Safety
/// There are so many pieces.
unsafe fn place(iov: *const Iovec, count: usize, addr: u64, key: u64) -> RmaIov {
    // SAFETY: the caller's promise.
    let pieces = unsafe { Array::new(iov, count).get() }.unwrap_or(&[]);
    let len = pieces.iter().fold(0, |len: usize, piece| len.wrapping_add(piece.iov_len));
    RmaIov { addr, len, key }
}

/// What a call says in memory.
fn message(
    (msg_iov, iov_count): (*const Iovec, usize),
    addr: u64,
    rma_iov: &RmaIov,
    context: *mut c_void,
) -> MsgRma {
    let (desc, rma_iov_count, data) = (null_mut(), 1, 0);
    MsgRma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data }
}

/// # Safety
/// As for the endpoint's own call; so for all others here.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn read(
    alias: Ep,
    start: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start, iov_len: len };
    // SAFETY: the caller's promise.
    unsafe { readv(alias, &piece, null_mut(), 1, to, address, key, context) }
}

/// # Safety
/// As for `read`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn readv(
    alias: Ep,
    iov: *const Iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe {
        let place = place(iov, count, address, key);
        let msg = message((iov, count), to, &place, context);
        let (base, flags) = sent(alias, READS);
        call!(base.rma.readmsg(&msg, flags))
    }
}

/// # Safety
/// As for `read`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn write(
    alias: Ep,
    start: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start.cast_mut(), iov_len: len };
    // SAFETY: the caller's promise.
    unsafe { writev(alias, &piece, null_mut(), 1, to, address, key, context) }
}

/// # Safety
/// As for `read`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn writev(
    alias: Ep,
    iov: *const Iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe {
        let place = place(iov, count, address, key);
        let msg = message((iov, count), to, &place, context);
        let (base, flags) = sent(alias, WRITES);
        call!(base.rma.writemsg(&msg, flags))
    }
}

/// # Safety
/// As for `read`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn writedata(
    alias: Ep,
    start: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start.cast_mut(), iov_len: len };
    let place = RmaIov { addr: address, len, key };
    let msg = MsgRma { data, ..message((&raw const piece, 1), to, &place, context) };
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, WRITES);
        call!(base.rma.writemsg(&msg, flags | REMOTE_CQ_DATA))
    }
}

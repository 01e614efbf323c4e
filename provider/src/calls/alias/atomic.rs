//! Atomics on peers' memory, by an alias.

use super::{AliasObject, WRITES, call, passed_on, sent};
use crate::abi::*;
use crate::calls::memory::Array;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

pub(super) static OPS: OpsAtomic = OpsAtomic {
    write: Some(write),
    writev: Some(writev),
    writemsg: Some(writemsg),
    inject: Some(inject),
    readwrite: Some(readwrite),
    readwritev: Some(readwritev),
    readwritemsg: Some(readwritemsg),
    compwrite: Some(compwrite),
    compwritev: Some(compwritev),
    compwritemsg: Some(compwritemsg),
    writevalid: Some(writevalid),
    readwritevalid: Some(readwritevalid),
    compwritevalid: Some(compwritevalid),
    ..OpsAtomic::REFUSING
};

type Ep = *mut FidEp;
type Descs = *mut *mut c_void;

passed_on! {
    atomic.writemsg(msg: *const MsgAtomic, flags: u64) -> isize;
    atomic.inject(
        operand: *const c_void, count: usize, to: u64, address: u64, key: u64, datatype: u32,
        op: u32,
    ) -> isize;
    atomic.readwritemsg(
        msg: *const MsgAtomic, result: *mut Ioc, descs: Descs, count: usize, flags: u64,
    ) -> isize;
    atomic.compwritemsg(
        msg: *const MsgAtomic, compare: *const Ioc, compare_descs: Descs, compare_count: usize,
        result: *mut Ioc, descs: Descs, count: usize, flags: u64,
    ) -> isize;
    atomic.writevalid(datatype: u32, op: u32, place: *mut usize) -> c_int;
    atomic.readwritevalid(datatype: u32, op: u32, place: *mut usize) -> c_int;
    atomic.compwritevalid(datatype: u32, op: u32, place: *mut usize) -> c_int;
}

/// Some elements.
fn piece(start: *const c_void, count: usize) -> Ioc {
    Ioc { addr: start.cast_mut(), count }
}

/// A place at a peer of as many elements as there are in some pieces; of pieces that cannot be,
/// the call that is made of it refuses.
///
/// # Safety
/// There are so many pieces.
unsafe fn place(iov: *const Ioc, count: usize, addr: u64, key: u64) -> RmaIoc {
    // SAFETY: the caller's promise.
    let pieces = unsafe { Array::new(iov, count).get() }.unwrap_or(&[]);
    let count = pieces.iter().fold(0, |sum: usize, piece| sum.wrapping_add(piece.count));
    RmaIoc { addr, count, key }
}

/// What a call says in memory.
fn message(
    (msg_iov, iov_count): (*const Ioc, usize),
    (addr, rma_iov): (u64, &RmaIoc),
    (datatype, op): (u32, u32),
    context: *mut c_void,
) -> MsgAtomic {
    let (desc, rma_iov_count, data) = (null_mut(), 1, 0);
    MsgAtomic {
        msg_iov,
        desc,
        iov_count,
        addr,
        rma_iov,
        rma_iov_count,
        datatype,
        op,
        context,
        data,
    }
}

/// # Safety
/// As for the endpoint's own call; so for all others here.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn write(
    alias: Ep,
    operand: *const c_void,
    count: usize,
    _desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let operand = piece(operand, count);
    // SAFETY: the caller's promise.
    unsafe { writev(alias, &operand, null_mut(), 1, to, address, key, datatype, op, context) }
}

/// # Safety
/// As for `write`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn writev(
    alias: Ep,
    iov: *const Ioc,
    _desc: Descs,
    count: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe {
        let place = place(iov, count, address, key);
        let msg = message((iov, count), (to, &place), (datatype, op), context);
        let (base, flags) = sent(alias, WRITES);
        call!(base.atomic.writemsg(&msg, flags))
    }
}

/// # Safety
/// As for `write`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn readwrite(
    alias: Ep,
    operand: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let (operand, mut result) = (piece(operand, count), piece(result, count));
    let (descs, kind) = (null_mut(), (datatype, op));
    let place = RmaIoc { addr: address, count, key };
    let msg = message((&raw const operand, 1), (to, &place), kind, context);
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, WRITES);
        call!(base.atomic.readwritemsg(&msg, &mut result, descs, 1, flags))
    }
}

/// # Safety
/// As for `write`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn readwritev(
    alias: Ep,
    iov: *const Ioc,
    _desc: Descs,
    count: usize,
    result: *mut Ioc,
    descs: Descs,
    result_count: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe {
        let place = place(result, result_count, address, key);
        let msg = message((iov, count), (to, &place), (datatype, op), context);
        let (base, flags) = sent(alias, WRITES);
        call!(base.atomic.readwritemsg(&msg, result, descs, result_count, flags))
    }
}

/// # Safety
/// As for `write`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn compwrite(
    alias: Ep,
    operand: *const c_void,
    count: usize,
    _desc: *mut c_void,
    compare: *const c_void,
    _compare_desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let (operand, compare) = (piece(operand, count), piece(compare, count));
    let (mut result, descs) = (piece(result, count), null_mut());
    let place = RmaIoc { addr: address, count, key };
    let msg = message((&raw const operand, 1), (to, &place), (datatype, op), context);
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, WRITES);
        call!(base.atomic.compwritemsg(&msg, &compare, descs, 1, &mut result, descs, 1, flags))
    }
}

/// # Safety
/// As for `write`.
#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
unsafe extern "C" fn compwritev(
    alias: Ep,
    iov: *const Ioc,
    _desc: Descs,
    count: usize,
    compare: *const Ioc,
    compare_descs: Descs,
    compare_count: usize,
    result: *mut Ioc,
    descs: Descs,
    result_count: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe {
        let place = place(result, result_count, address, key);
        let msg = message((iov, count), (to, &place), (datatype, op), context);
        let (base, flags) = sent(alias, WRITES);
        call!(base.atomic.compwritemsg(
            &msg,
            compare,
            compare_descs,
            compare_count,
            result,
            descs,
            result_count,
            flags
        ))
    }
}

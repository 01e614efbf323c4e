//! Messages without tags, by an alias.

use super::{AliasObject, RECEIVES, SENDS, call, passed_on, received, sent};
use crate::abi::*;
use std::ffi::c_void;
use std::ptr::null_mut;

pub(super) static OPS: OpsMsg = OpsMsg {
    recv: Some(recv),
    recvv: Some(recvv),
    recvmsg: Some(recvmsg),
    send: Some(send),
    sendv: Some(sendv),
    sendmsg: Some(sendmsg),
    inject: Some(inject),
    senddata: Some(senddata),
    injectdata: Some(injectdata),
    ..OpsMsg::REFUSING
};

type Ep = *mut FidEp;

passed_on! {
    msg.recvmsg(msg: *const Msg, flags: u64) -> isize;
    msg.sendmsg(msg: *const Msg, flags: u64) -> isize;
    msg.inject(start: *const c_void, len: usize, to: u64) -> isize;
    msg.injectdata(start: *const c_void, len: usize, data: u64, to: u64) -> isize;
}

/// What a call says in memory; its descriptors nobody needs.
fn message(iov: *const Iovec, iov_count: usize, addr: u64, context: *mut c_void) -> Msg {
    Msg { msg_iov: iov, desc: null_mut(), iov_count, addr, context, data: 0 }
}

/// # Safety
/// As for the endpoint's own call; so for all others here.
unsafe extern "C" fn recv(
    alias: Ep,
    start: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    source: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start, iov_len: len };
    // SAFETY: the caller's promise.
    unsafe { recvv(alias, &piece, null_mut(), 1, source, context) }
}

/// # Safety
/// As for `recv`.
unsafe extern "C" fn recvv(
    alias: Ep,
    iov: *const Iovec,
    _desc: *mut *mut c_void,
    count: usize,
    source: u64,
    context: *mut c_void,
) -> isize {
    let msg = message(iov, count, source, context);
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = received(alias, RECEIVES);
        call!(base.msg.recvmsg(&msg, flags))
    }
}

/// # Safety
/// As for `recv`.
unsafe extern "C" fn send(
    alias: Ep,
    start: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start.cast_mut(), iov_len: len };
    // SAFETY: the caller's promise.
    unsafe { sendv(alias, &piece, null_mut(), 1, to, context) }
}

/// # Safety
/// As for `recv`.
unsafe extern "C" fn sendv(
    alias: Ep,
    iov: *const Iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> isize {
    let msg = message(iov, count, to, context);
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, SENDS);
        call!(base.msg.sendmsg(&msg, flags))
    }
}

/// # Safety
/// As for `recv`.
unsafe extern "C" fn senddata(
    alias: Ep,
    start: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start.cast_mut(), iov_len: len };
    let msg = Msg { data, ..message(&piece, 1, to, context) };
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, SENDS);
        call!(base.msg.sendmsg(&msg, flags | REMOTE_CQ_DATA))
    }
}

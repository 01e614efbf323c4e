//! Messages with tags, by an alias.

use super::{AliasObject, RECEIVES, SENDS, call, passed_on, received, sent};
use crate::abi::*;
use std::ffi::c_void;
use std::ptr::null_mut;

pub(super) static OPS: OpsTagged = OpsTagged {
    recv: Some(recv),
    recvv: Some(recvv),
    recvmsg: Some(recvmsg),
    send: Some(send),
    sendv: Some(sendv),
    sendmsg: Some(sendmsg),
    inject: Some(inject),
    senddata: Some(senddata),
    injectdata: Some(injectdata),
    ..OpsTagged::REFUSING
};

type Ep = *mut FidEp;

passed_on! {
    tagged.recvmsg(msg: *const MsgTagged, flags: u64) -> isize;
    tagged.sendmsg(msg: *const MsgTagged, flags: u64) -> isize;
    tagged.inject(start: *const c_void, len: usize, to: u64, tag: u64) -> isize;
    tagged.injectdata(start: *const c_void, len: usize, data: u64, to: u64, tag: u64) -> isize;
}

/// What a call says in memory; its descriptors nobody needs.
fn message(
    (msg_iov, iov_count): (*const Iovec, usize),
    addr: u64,
    tag: u64,
    context: *mut c_void,
) -> MsgTagged {
    let (desc, ignore, data) = (null_mut(), 0, 0);
    MsgTagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data }
}

/// # Safety
/// As for the endpoint's own call; so for all others here.
unsafe extern "C" fn recv(
    alias: Ep,
    start: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    source: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start, iov_len: len };
    // SAFETY: the caller's promise.
    unsafe { recvv(alias, &piece, null_mut(), 1, source, tag, ignore, context) }
}

/// # Safety
/// As for `recv`.
unsafe extern "C" fn recvv(
    alias: Ep,
    iov: *const Iovec,
    _desc: *mut *mut c_void,
    count: usize,
    source: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    let msg = MsgTagged { ignore, ..message((iov, count), source, tag, context) };
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = received(alias, RECEIVES & !MULTI_RECV);
        call!(base.tagged.recvmsg(&msg, flags))
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
    tag: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start.cast_mut(), iov_len: len };
    // SAFETY: the caller's promise.
    unsafe { sendv(alias, &piece, null_mut(), 1, to, tag, context) }
}

/// # Safety
/// As for `recv`.
unsafe extern "C" fn sendv(
    alias: Ep,
    iov: *const Iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    let msg = message((iov, count), to, tag, context);
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, SENDS);
        call!(base.tagged.sendmsg(&msg, flags))
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
    tag: u64,
    context: *mut c_void,
) -> isize {
    let piece = Iovec { iov_base: start.cast_mut(), iov_len: len };
    let msg = MsgTagged { data, ..message((&raw const piece, 1), to, tag, context) };
    // SAFETY: the caller's promise.
    unsafe {
        let (base, flags) = sent(alias, SENDS);
        call!(base.tagged.sendmsg(&msg, flags | REMOTE_CQ_DATA))
    }
}

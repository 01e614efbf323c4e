//! Messages without tags.

use super::ep::EpObject;
use super::memory;
use crate::abi::*;
use crate::code::{Code, Outcome, posted};
use crate::ep::{Message, Reported, Wanted};
use crate::offer::INJECT_MAX;
use crate::sys::cell::Policy;
use std::ffi::c_void;
use std::marker::PhantomData;

/// The calls of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

type Ep = *mut FidEp;

/// Flags of a call that sends.
const SEND_FLAGS: u64 = COMPLETION
    | INJECT
    | INJECT_COMPLETE
    | TRANSMIT_COMPLETE
    | DELIVERY_COMPLETE
    | MATCH_COMPLETE
    | FENCE
    | MORE
    | REMOTE_CQ_DATA;

/// Flags of a call that receives.
const RECV_FLAGS: u64 = COMPLETION | MORE | MULTI_RECV;

/// What a call sends, with the flags it is made with.
///
/// # Errors
/// `EBADFLAGS` for flags that no such call has; `EMSGSIZE` for more than can be injected.
pub(super) fn check_send(len: usize, flags: u64) -> Outcome {
    if flags & !SEND_FLAGS != 0 {
        return Err(Code::BAD_FLAGS);
    }
    if flags & INJECT != 0 && len > INJECT_MAX { Err(Code::TOO_LONG) } else { Ok(()) }
}

#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
impl<L: Policy> Calls<L> {
    pub(crate) const OPS: &'static OpsMsg = &OpsMsg {
        recv: Some(Self::recv),
        recvv: Some(Self::recvv),
        recvmsg: Some(Self::recvmsg),
        send: Some(Self::send),
        sendv: Some(Self::sendv),
        sendmsg: Some(Self::sendmsg),
        inject: Some(Self::inject),
        senddata: Some(Self::senddata),
        injectdata: Some(Self::injectdata),
        ..OpsMsg::REFUSING
    };

    /// # Safety
    /// As the manual page says: the endpoint is open, and the memory is the call's until its
    /// operation has ended; so for all others here.
    unsafe extern "C" fn recv(
        ep: Ep,
        start: *mut c_void,
        len: usize,
        _desc: *mut c_void,
        source: u64,
        context: *mut c_void,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (ep, into) = unsafe { (EpObject::<L>::at(ep), memory::into(start, len)) };
        let (buf, context) = (start as usize, context as usize);
        posted(into.and_then(|into| {
            let wanted = Wanted { source, tag: None, into, buf, context };
            ep.core.receive(wanted, Reported::AsChosen)
        }))
    }

    /// # Safety
    /// As for `recv`.
    unsafe extern "C" fn recvv(
        ep: Ep,
        iov: *const Iovec,
        _desc: *mut *mut c_void,
        count: usize,
        source: u64,
        context: *mut c_void,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (ep, into, buf) = unsafe {
            (EpObject::<L>::at(ep), memory::pieces(iov, count), memory::start(iov, count))
        };
        posted(into.and_then(|into| {
            let wanted = Wanted { source, tag: None, into, buf, context: context as usize };
            ep.core.receive(wanted, Reported::AsChosen)
        }))
    }

    /// # Safety
    /// As for `recv`.
    unsafe extern "C" fn recvmsg(ep: Ep, msg: *const Msg, flags: u64) -> isize {
        if msg.is_null() {
            return posted(Err(Code::INVALID));
        }
        if flags & !RECV_FLAGS != 0 {
            return posted(Err(Code::BAD_FLAGS));
        }
        // SAFETY: the caller's promise.
        let (ep, msg) = unsafe { (EpObject::<L>::at(ep), &*msg) };
        // SAFETY: as above.
        let (into, buf) = unsafe {
            let count = msg.iov_count;
            (memory::pieces(msg.msg_iov, count), memory::start(msg.msg_iov, count))
        };
        posted(into.and_then(|into| {
            let context = msg.context as usize;
            let wanted = Wanted { source: msg.addr, tag: None, into, buf, context };
            ep.core.receive(wanted, Reported::By(flags))
        }))
    }

    /// # Safety
    /// As for `recv`.
    unsafe extern "C" fn send(
        ep: Ep,
        start: *const c_void,
        len: usize,
        _desc: *mut c_void,
        to: u64,
        context: *mut c_void,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (EpObject::<L>::at(ep), memory::from(start, len)) };
        posted(bytes.and_then(|bytes| {
            let context = context as usize;
            let message = Message { to, tag: None, data: None, bytes, context };
            ep.core.send(message, Reported::AsChosen)
        }))
    }

    /// # Safety
    /// As for `recv`.
    unsafe extern "C" fn sendv(
        ep: Ep,
        iov: *const Iovec,
        _desc: *mut *mut c_void,
        count: usize,
        to: u64,
        context: *mut c_void,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (EpObject::<L>::at(ep), memory::pieces(iov, count)) };
        posted(bytes.and_then(|bytes| {
            let context = context as usize;
            let message = Message { to, tag: None, data: None, bytes, context };
            ep.core.send(message, Reported::AsChosen)
        }))
    }

    /// # Safety
    /// As for `recv`.
    unsafe extern "C" fn sendmsg(ep: Ep, msg: *const Msg, flags: u64) -> isize {
        if msg.is_null() {
            return posted(Err(Code::INVALID));
        }
        // SAFETY: the caller's promise.
        let (ep, msg) = unsafe { (EpObject::<L>::at(ep), &*msg) };
        // SAFETY: as above.
        let bytes = unsafe { memory::pieces(msg.msg_iov, msg.iov_count) };
        posted(bytes.and_then(|bytes| {
            check_send(bytes.len(), flags)?;
            ep.core.fence(msg.addr, flags)?;
            let data = (flags & REMOTE_CQ_DATA != 0).then_some(msg.data);
            let context = msg.context as usize;
            let message = Message { to: msg.addr, tag: None, data, bytes, context };
            ep.core.send(message, Reported::By(flags))
        }))
    }

    /// # Safety
    /// As for `recv`, but the memory is the call's until it returns.
    unsafe extern "C" fn inject(ep: Ep, start: *const c_void, len: usize, to: u64) -> isize {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (EpObject::<L>::at(ep), memory::injected(start, len)) };
        posted(bytes.and_then(|bytes| {
            let message = Message { to, tag: None, data: None, bytes, context: 0 };
            ep.core.send(message, Reported::Never)
        }))
    }

    /// # Safety
    /// As for `recv`.
    unsafe extern "C" fn senddata(
        ep: Ep,
        start: *const c_void,
        len: usize,
        _desc: *mut c_void,
        data: u64,
        to: u64,
        context: *mut c_void,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (EpObject::<L>::at(ep), memory::from(start, len)) };
        posted(bytes.and_then(|bytes| {
            let context = context as usize;
            let message = Message { to, tag: None, data: Some(data), bytes, context };
            ep.core.send(message, Reported::AsChosen)
        }))
    }

    /// # Safety
    /// As for `inject`.
    unsafe extern "C" fn injectdata(
        ep: Ep,
        start: *const c_void,
        len: usize,
        data: u64,
        to: u64,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (EpObject::<L>::at(ep), memory::injected(start, len)) };
        posted(bytes.and_then(|bytes| {
            let message = Message { to, tag: None, data: Some(data), bytes, context: 0 };
            ep.core.send(message, Reported::Never)
        }))
    }
}

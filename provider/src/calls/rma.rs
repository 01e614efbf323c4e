//! Reading and writing peers' memory.

use super::ep::EpObject;
use super::memory::{self, Array};
use crate::abi::*;
use crate::code::{Code, Outcome, posted};
use crate::ep::{Note, Reported, Target};
use crate::sys::cell::Policy;
use ayre::Spans;
use std::ffi::c_void;
use std::marker::PhantomData;

/// The calls of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

type Ep = *mut FidEp;

/// Flags of a call that works on a peer's memory. That it has been done there, its end always says.
pub(super) const FLAGS: u64 =
    COMPLETION | INJECT_COMPLETE | TRANSMIT_COMPLETE | DELIVERY_COMPLETE | FENCE | MORE;

/// Those of one that writes.
const WRITE_FLAGS: u64 = FLAGS | INJECT | REMOTE_CQ_DATA;

/// What the program hears of a call without flags.
pub(super) fn as_chosen(context: *mut c_void) -> Note {
    Note { context: context as usize, reported: Reported::AsChosen }
}

/// What it hears of one that injects.
pub(super) const NEVER: Note = Note { context: 0, reported: Reported::Never };

/// # Safety
/// The endpoint is open, and the memory is the call's until its operation has ended.
#[inline(always)]
unsafe fn read<L: Policy>(ep: Ep, into: Outcome<Spans>, target: Target, note: Note) -> isize {
    // SAFETY: the caller's promise.
    let ep = unsafe { EpObject::<L>::at(ep) };
    posted(into.and_then(|into| ep.core.read(target, into, note)))
}

/// # Safety
/// As for [`read`].
#[inline(always)]
unsafe fn write<L: Policy>(
    ep: Ep,
    bytes: Outcome<Spans>,
    target: Target,
    data: Option<u64>,
    note: Note,
) -> isize {
    // SAFETY: the caller's promise.
    let ep = unsafe { EpObject::<L>::at(ep) };
    posted(bytes.and_then(|bytes| ep.core.write(target, bytes, data, note)))
}

/// What a call says in memory: what it moves, where, and how it is heard of.
///
/// # Errors
/// `EBADFLAGS` for flags that are not among those allowed; `EINVAL` where not one place is named
/// that is as long as the memory; those of [`memory::pieces`].
///
/// # Safety
/// The message is there, with as many pieces as it says.
unsafe fn described(msg: &MsgRma, flags: u64, allowed: u64) -> Outcome<(Spans, Target, Note)> {
    if flags & !allowed != 0 {
        return Err(Code::BAD_FLAGS);
    }
    // SAFETY: the caller's promise.
    let (spans, places) = unsafe {
        let spans = memory::pieces(msg.msg_iov, msg.iov_count)?;
        (spans, Array::new(msg.rma_iov, msg.rma_iov_count).get()?)
    };
    match *places {
        [RmaIov { addr: address, len, key }] if len == spans.len() => {
            let note = Note { context: msg.context as usize, reported: Reported::By(flags) };
            Ok((spans, Target { to: msg.addr, key, address }, note))
        }
        _ => Err(Code::INVALID),
    }
}

#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
impl<L: Policy> Calls<L> {
    pub(crate) const OPS: &'static OpsRma = &OpsRma {
        read: Some(Self::read),
        readv: Some(Self::readv),
        readmsg: Some(Self::readmsg),
        write: Some(Self::write),
        writev: Some(Self::writev),
        writemsg: Some(Self::writemsg),
        inject: Some(Self::inject),
        writedata: Some(Self::writedata),
        injectdata: Some(Self::injectdata),
        ..OpsRma::REFUSING
    };

    /// # Safety
    /// As the manual page says: the endpoint is open, and the memory is the call's until its
    /// operation has ended; so for all others here.
    unsafe extern "C" fn read(
        ep: Ep,
        start: *mut c_void,
        len: usize,
        _desc: *mut c_void,
        to: u64,
        address: u64,
        key: u64,
        context: *mut c_void,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { read::<L>(ep, memory::into(start, len), target, as_chosen(context)) }
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn readv(
        ep: Ep,
        iov: *const Iovec,
        _desc: *mut *mut c_void,
        count: usize,
        to: u64,
        address: u64,
        key: u64,
        context: *mut c_void,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { read::<L>(ep, memory::pieces(iov, count), target, as_chosen(context)) }
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn readmsg(ep: Ep, msg: *const MsgRma, flags: u64) -> isize {
        // SAFETY: the caller's promise.
        let ep = unsafe { EpObject::<L>::at(ep) };
        // SAFETY: as above.
        let wanted = || unsafe { described(memory::described(msg)?, flags, FLAGS) };
        posted(wanted().and_then(|(into, target, note)| {
            ep.core.fence(target.to, flags)?;
            ep.core.read(target, into, note)
        }))
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn write(
        ep: Ep,
        start: *const c_void,
        len: usize,
        _desc: *mut c_void,
        to: u64,
        address: u64,
        key: u64,
        context: *mut c_void,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { write::<L>(ep, memory::from(start, len), target, None, as_chosen(context)) }
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn writev(
        ep: Ep,
        iov: *const Iovec,
        _desc: *mut *mut c_void,
        count: usize,
        to: u64,
        address: u64,
        key: u64,
        context: *mut c_void,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { write::<L>(ep, memory::pieces(iov, count), target, None, as_chosen(context)) }
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn writemsg(ep: Ep, msg: *const MsgRma, flags: u64) -> isize {
        // SAFETY: the caller's promise.
        let ep = unsafe { EpObject::<L>::at(ep) };
        let post = || -> Outcome {
            // SAFETY: as above.
            let msg = unsafe { memory::described(msg) }?;
            // SAFETY: as above.
            let (bytes, target, note) = unsafe { described(msg, flags, WRITE_FLAGS) }?;
            let data = (flags & REMOTE_CQ_DATA != 0).then_some(msg.data);
            ep.core.fence(target.to, flags)?;
            ep.core.write(target, bytes, data, note)
        };
        posted(post())
    }

    /// # Safety
    /// As for `read`, but the memory is the call's until it returns.
    unsafe extern "C" fn inject(
        ep: Ep,
        start: *const c_void,
        len: usize,
        to: u64,
        address: u64,
        key: u64,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { write::<L>(ep, memory::injected(start, len), target, None, NEVER) }
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn writedata(
        ep: Ep,
        start: *const c_void,
        len: usize,
        _desc: *mut c_void,
        data: u64,
        to: u64,
        address: u64,
        key: u64,
        context: *mut c_void,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { write::<L>(ep, memory::from(start, len), target, Some(data), as_chosen(context)) }
    }

    /// # Safety
    /// As for `inject`.
    unsafe extern "C" fn injectdata(
        ep: Ep,
        start: *const c_void,
        len: usize,
        data: u64,
        to: u64,
        address: u64,
        key: u64,
    ) -> isize {
        let target = Target { to, key, address };
        // SAFETY: the caller's promise.
        unsafe { write::<L>(ep, memory::injected(start, len), target, Some(data), NEVER) }
    }
}

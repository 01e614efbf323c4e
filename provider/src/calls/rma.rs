//! Reading and writing peers' memory: one way down for all calls that read, one for all that write.

use super::memory::{self, Array};
use super::table::{calls, note};
use crate::abi::*;
use crate::ep::{Note, Reported, Target};
use crate::error::{Code, Outcome};
use ayre::Spans;
use std::ffi::c_void;

type Desc = *mut c_void;
type Context = *mut c_void;

/// Flags of a call that reads. That it has been done, the end of such a call always says.
pub(super) const READS: u64 =
    COMPLETION | INJECT_COMPLETE | TRANSMIT_COMPLETE | DELIVERY_COMPLETE | FENCE | MORE;

/// Flags of a call that writes.
const WRITES: u64 = READS | INJECT | REMOTE_CQ_DATA;

/// What a call says in memory: what it moves, where, and how it is heard of.
///
/// # Errors
/// `EBADFLAGS` for flags that are not among those allowed; `EINVAL` where not one place is named
/// that is as long as the memory; those of [`memory::pieces`].
///
/// # Safety
/// The message is there, with as many pieces as it says.
unsafe fn described(msg: &MsgRma, flags: u64, allowed: u64) -> Outcome<(Target, Spans, Note)> {
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
            let target = Target { to: msg.addr, key, address };
            Ok((target, spans, note(msg.context, Reported::By(flags))))
        }
        _ => Err(Code::INVALID),
    }
}

calls! {
    /// Those that read, and those that write.
    Calls: OpsRma, otherwise OpsRma::REFUSING;

    read(
        ep, start: *mut c_void, len: usize, _desc: Desc, to: u64, address: u64, key: u64,
        context: Context,
    ) {
        let (target, note) = (Target { to, key, address }, note(context, ep.sends(READS)));
        ep.core().read(target, memory::into(start, len)?, note)
    }

    readv(
        ep, iov: *const Iovec, _descs: *mut Desc, count: usize, to: u64, address: u64, key: u64,
        context: Context,
    ) {
        let (target, note) = (Target { to, key, address }, note(context, ep.sends(READS)));
        ep.core().read(target, memory::pieces(iov, count)?, note)
    }

    readmsg(ep, msg: *const MsgRma, flags: u64) {
        let (target, into, note) = described(memory::described(msg)?, flags, READS)?;
        ep.core().read(target, into, note)
    }

    write(
        ep, start: *const c_void, len: usize, _desc: Desc, to: u64, address: u64, key: u64,
        context: Context,
    ) {
        let (target, note) = (Target { to, key, address }, note(context, ep.sends(WRITES)));
        ep.core().write(target, memory::from(start, len)?, None, note)
    }

    writev(
        ep, iov: *const Iovec, _descs: *mut Desc, count: usize, to: u64, address: u64, key: u64,
        context: Context,
    ) {
        let (target, note) = (Target { to, key, address }, note(context, ep.sends(WRITES)));
        ep.core().write(target, memory::pieces(iov, count)?, None, note)
    }

    writemsg(ep, msg: *const MsgRma, flags: u64) {
        let msg = memory::described(msg)?;
        let (target, bytes, note) = described(msg, flags, WRITES)?;
        let data = (flags & REMOTE_CQ_DATA != 0).then_some(msg.data);
        ep.core().write(target, bytes, data, note)
    }

    inject(ep, start: *const c_void, len: usize, to: u64, address: u64, key: u64) {
        let target = Target { to, key, address };
        ep.core().write(target, memory::injected(start, len)?, None, Note::NEVER)
    }

    writedata(
        ep, start: *const c_void, len: usize, _desc: Desc, data: u64, to: u64, address: u64,
        key: u64, context: Context,
    ) {
        let (target, note) = (Target { to, key, address }, note(context, ep.sends(WRITES)));
        ep.core().write(target, memory::from(start, len)?, Some(data), note)
    }

    injectdata(
        ep, start: *const c_void, len: usize, data: u64, to: u64, address: u64, key: u64,
    ) {
        let target = Target { to, key, address };
        ep.core().write(target, memory::injected(start, len)?, Some(data), Note::NEVER)
    }
}

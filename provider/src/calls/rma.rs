//! Reading and writing peers' memory: one way down for all calls that read, one for all that write.

use super::memory::{self, Array, into as one, pieces as several};
use super::table::{call, calls, note};
use crate::abi::*;
use crate::ep::{Note, Reported, Target};
use crate::error::{Code, Outcome};
use ayre::endpoint::raw::Spans;
use std::ffi::c_void;

type Desc = *mut c_void;
type Context = *mut c_void;

/// Flags of a call that reads. The completion of a read always says that it has been done.
pub(super) const READS: u64 =
    COMPLETION | INJECT_COMPLETE | TRANSMIT_COMPLETE | DELIVERY_COMPLETE | FENCE | MORE;

/// Flags of a call that writes.
const WRITES: u64 = READS | INJECT | REMOTE_CQ_DATA;

/// The memory, remote address and completion that a call describes.
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

    @into read readv(ep, to: u64, address: u64, key: u64) |into, context|
        ep.core().read(Target { to, key, address }, into?, note(context, ep.sends(READS)));

    @out write writev inject writedata injectdata(ep, to: u64, address: u64, key: u64) by WRITES
        |bytes, data, note| ep.core().write(Target { to, key, address }, bytes?, data, note);

    readmsg(ep, msg: *const MsgRma, flags: u64) {
        let (target, into, note) = described(memory::described(msg)?, flags, READS)?;
        ep.core().read(target, into, note)
    }

    writemsg(ep, msg: *const MsgRma, flags: u64) {
        let msg = memory::described(msg)?;
        let (target, bytes, note) = described(msg, flags, WRITES)?;
        let data = (flags & REMOTE_CQ_DATA != 0).then_some(msg.data);
        ep.core().write(target, bytes, data, note)
    }
}

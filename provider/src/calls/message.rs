//! Messages, without tags and with: one way down for all calls that send, one for all that receive.

use super::memory;
use super::table::{call, calls, note};
use crate::abi::*;
use crate::ep::{Handle, Message, Note, Reported, Wanted};
use crate::error::{Code, Outcome};
use crate::info::offer::INJECT_MAX;
use ayre::endpoint::raw::Spans;
use std::ffi::c_void;

type Desc = *mut c_void;
type Context = *mut c_void;

/// Flags of a call that sends.
const SENDS: u64 = COMPLETION
    | INJECT
    | INJECT_COMPLETE
    | TRANSMIT_COMPLETE
    | DELIVERY_COMPLETE
    | MATCH_COMPLETE
    | FENCE
    | MORE
    | REMOTE_CQ_DATA;

/// Flags of a call that receives.
const RECEIVES: u64 = COMPLETION | MORE | MULTI_RECV;

/// Those of one that receives by a tag.
const RECEIVES_TAGGED: u64 = COMPLETION | MORE | LOOKING;

/// Those of calls that look for messages that have come.
const LOOKING: u64 = PEEK | CLAIM | DISCARD;

/// The destination of a message, its tag, its data.
type Head = (u64, Option<u64>, Option<u64>);

/// # Errors
/// Those of the bytes; `EBADFLAGS` for flags that no such call has; `EMSGSIZE` for more than can be
/// injected; those of `Core::send`.
#[inline(always)]
fn send<H: Handle>(ep: &H, bytes: Outcome<Spans>, (to, tag, data): Head, note: Note) -> Outcome {
    let (bytes, Note { context, reported }) = (bytes?, note);
    if let Reported::By(flags) = reported {
        check(flags, SENDS)?;
        if flags & INJECT != 0 && bytes.len() > INJECT_MAX {
            return Err(Code::TOO_LONG);
        }
    }
    ep.core().send(Message { to, tag, data, bytes, context }, reported)
}

/// Where a message goes, and where that begins.
type Room = (Outcome<Spans>, usize);

/// The source of a received message, and its tag and ignored bits.
type Source = (u64, Option<(u64, u64)>);

/// # Errors
/// Those of the room, of `Core::receive` and of `Core::search`.
#[inline(always)]
fn receive<H: Handle>(
    ep: &H,
    (into, buf): Room,
    (source, tag): Source,
    Note { context, reported }: Note,
) -> Outcome {
    let wanted = Wanted { source, tag, into: into?, buf, context };
    match reported {
        Reported::By(flags) if flags & LOOKING != 0 => ep.core().search(wanted, flags),
        reported => ep.core().receive(wanted, reported),
    }
}

fn check(flags: u64, allowed: u64) -> Outcome {
    if flags & !allowed != 0 { Err(Code::BAD_FLAGS) } else { Ok(()) }
}

/// # Safety
/// As for [`memory::into`].
#[inline(always)]
unsafe fn one(start: *mut c_void, len: usize) -> Room {
    // SAFETY: the caller's promise.
    (unsafe { memory::into(start, len) }, start as usize)
}

/// # Safety
/// As for [`memory::pieces`].
unsafe fn several(iov: *const Iovec, count: usize) -> Room {
    // SAFETY: the caller's promise.
    unsafe { (memory::pieces(iov, count), memory::start(iov, count)) }
}

/// The data of a message that is described in memory.
fn data(data: u64, flags: u64) -> Option<u64> {
    (flags & REMOTE_CQ_DATA != 0).then_some(data)
}

calls! {
    /// Those without tags.
    Untagged: OpsMsg, otherwise OpsMsg::REFUSING;

    @into recv recvv(ep, source: u64) |room, context|
        receive(ep, room, (source, None), note(context, ep.receives(RECEIVES)));

    @out send sendv inject senddata injectdata(ep, to: u64) by SENDS |bytes, data, note|
        send(ep, bytes, (to, None, data), note);

    recvmsg(ep, msg: *const Msg, flags: u64) {
        let msg = memory::described(msg)?;
        check(flags, RECEIVES)?;
        let room = several(msg.msg_iov, msg.iov_count);
        receive(ep, room, (msg.addr, None), note(msg.context, Reported::By(flags)))
    }

    sendmsg(ep, msg: *const Msg, flags: u64) {
        let msg = memory::described(msg)?;
        let (bytes, data) = (memory::pieces(msg.msg_iov, msg.iov_count), data(msg.data, flags));
        send(ep, bytes, (msg.addr, None, data), note(msg.context, Reported::By(flags)))
    }
}

calls! {
    /// Those with tags.
    Tagged: OpsTagged, otherwise OpsTagged::REFUSING;

    @into recv recvv(ep, source: u64, tag: u64, ignore: u64) |room, context| {
        let note = note(context, ep.receives(RECEIVES_TAGGED));
        receive(ep, room, (source, Some((tag, ignore))), note)
    };

    @out send sendv inject senddata injectdata(ep, to: u64, tag: u64) by SENDS |bytes, data, note|
        send(ep, bytes, (to, Some(tag), data), note);

    recvmsg(ep, msg: *const MsgTagged, flags: u64) {
        let msg = memory::described(msg)?;
        check(flags, RECEIVES_TAGGED)?;
        let room = several(msg.msg_iov, msg.iov_count);
        let source = (msg.addr, Some((msg.tag, msg.ignore)));
        receive(ep, room, source, note(msg.context, Reported::By(flags)))
    }

    sendmsg(ep, msg: *const MsgTagged, flags: u64) {
        let msg = memory::described(msg)?;
        let (bytes, data) = (memory::pieces(msg.msg_iov, msg.iov_count), data(msg.data, flags));
        send(ep, bytes, (msg.addr, Some(msg.tag), data), note(msg.context, Reported::By(flags)))
    }
}

//! The meaning of error codes, in words.
use crate::error::{self, FAULTS, busy, fault};
use ayre::{Busy, Fault};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

/// The meaning of an error code, as text that is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_strerror(code: c_int) -> *const c_char {
    static TEXTS: OnceLock<BTreeMap<c_int, CString>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let busy = Busy::ALL.map(|why| (busy(why), why.to_string()));
        let faults = FAULTS.map(Fault::from_code).map(|why| (fault(why), why.to_string()));
        let of = |(code, text): (c_int, String)| Some((code, CString::new(text).ok()?));
        busy.into_iter().chain(faults).filter_map(of).collect()
    });
    texts.get(&code).map_or_else(|| text(code), CString::as_c_str).as_ptr()
}

fn text(code: c_int) -> &'static CStr {
    match code {
        error::AYRE_OK => c"no error",
        error::AYRE_TOO_LONG => c"the next message or record is longer than the buffer",
        error::AYRE_PEER_DIED => c"a peer died",
        error::AYRE_TIMED_OUT => c"the time of the call is over",
        error::AYRE_SYSTEM => c"a system call has failed: see ayre_errno and ayre_detail",
        error::AYRE_PROTOCOL => c"a peer sent what no correct peer sends",
        error::AYRE_REFUSED => {
            c"the peer has refused the connection, or refuses as a group's member"
        }
        error::AYRE_REJECTED => c"this side has refused the connection",
        error::AYRE_VERSION_DIFFERS => {
            c"the two sides speak different versions: both need one release"
        }
        error::AYRE_IN_USE => {
            c"another process listens at the path, or the file there is no socket"
        }
        error::AYRE_PEER_LEFT => c"the peer has left or died",
        error::AYRE_ENVIRONMENT => c"the environment of the process lacks something or is wrong",
        error::AYRE_NO_MEMORY => c"there is too little memory",
        error::AYRE_NO_LINK => c"no link can be opened with this endpoint",
        error::AYRE_PORTS_TAKEN => c"all UDP ports that may be used are taken",
        error::AYRE_EXHAUSTED => c"a table is full",
        error::AYRE_INVALID => c"the call contradicts itself or a stated limit",
        error::AYRE_NO_PEER => c"there is no peer of this number",
        error::AYRE_MISMATCH => c"members of the group call different collectives",
        error::AYRE_GIVEN_UP => c"another member has given the group up",
        error::AYRE_NO_MEMBER => c"the port is no member of the group, or is leaving it",
        error::AYRE_UNREACHABLE => c"a member is not connected, or the door has died or is no peer",
        error::AYRE_UNKNOWN_OUTCOME => c"the door has gone: the message was delivered, or not",
        error::AYRE_BUSY_MULTICAST => {
            c"too many messages to the group wait for their place in the order"
        }
        error::AYRE_BUSY_STREAM => c"the stream has no room, because a later stage is slow",
        error::AYRE_STREAM_STAGE_FAILED => c"the stream has failed: a stage has failed",
        error::AYRE_STREAM_UNKNOWN_STAGE => {
            c"the stream has failed: there is no stage of this name"
        }
        error::AYRE_STREAM_NOWHERE => c"the stream has failed: no entry says where it goes on",
        error::AYRE_STREAM_TAKEN => c"the stream has failed: the next stream is fed already",
        error::AYRE_STREAM_FULL => c"the stream has failed: there is no room for it",
        error::AYRE_STREAM_UNREACHABLE => c"the stream has failed: the next port is not connected",
        error::AYRE_STREAM_PEER_DIED => c"the stream has failed: a port has died",
        error::AYRE_STREAM_CANCELLED => c"the stream has failed: its source has given it up",
        error::AYRE_ENTRY_DENIED => c"the port lets this port change no such entry",
        error::AYRE_ENTRY_FULL => c"the port has no room for an entry",
        error::AYRE_ENTRY_TAKEN => {
            c"the entry's destination is fed already, or the entry is in use"
        }
        error::AYRE_ENTRY_UNKNOWN => c"the port has no such entry",
        error::AYRE_BAD_HANDLE => c"a handle is NULL, was closed, or is of another kind",
        error::AYRE_HANDLE_IN_USE => c"a handle is in use by another call",
        error::AYRE_INTERNAL => c"the library has found a fault of its own: please report it",
        _ => c"no error code of Ayre",
    }
}

//! Wait sets and poll sets.

use crate::abi::*;
use crate::error::{Code, Outcome, status};
use crate::object::registry;
use crate::queue::poll::PollSet;
use crate::queue::wait_set::WaitSet;
use crate::sys::object::Object;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The table of wait sets.
pub(crate) static WAIT: OpsWait = OpsWait { wait: Some(wait), ..OpsWait::REFUSING };

/// # Safety
/// The set is open.
unsafe extern "C" fn wait(set: *mut FidWait, milliseconds: c_int) -> c_int {
    // SAFETY: the caller's promise.
    status(unsafe { Object::<FidWait, WaitSet>::at(set) }.block(milliseconds))
}

/// The table of poll sets.
pub(crate) static POLL: OpsPoll =
    OpsPoll { poll: Some(poll), poll_add: Some(add), poll_del: Some(remove), ..OpsPoll::REFUSING };

fn find(set: *const FidPoll) -> Outcome<Arc<Object<FidPoll, PollSet>>> {
    registry::find(set.cast()).ok_or(Code::INVALID)
}

/// # Safety
/// The set is open, with room for `count` contexts.
unsafe extern "C" fn poll(set: *mut FidPoll, place: *mut *mut c_void, count: c_int) -> c_int {
    let Ok(count) = usize::try_from(count) else { return -errno::EINVAL };
    if place.is_null() && count > 0 {
        return -errno::EINVAL;
    }
    // SAFETY: the caller's promise.
    let found = unsafe { Object::<FidPoll, PollSet>::at(set) }.poll(count);
    for (at, context) in found.iter().enumerate() {
        // SAFETY: at most `count` were found.
        unsafe { place.add(at).write(*context as *mut c_void) };
    }
    found.len() as c_int
}

/// # Safety
/// The member is null or an object's handle.
unsafe extern "C" fn add(set: *mut FidPoll, fid: *mut Fid, flags: u64) -> c_int {
    let add = || -> Outcome {
        let set = find(set)?;
        let object = registry::any(fid).ok_or(Code::INVALID)?;
        if flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        // SAFETY: it is an open object's, so there is a head.
        let context = unsafe { (*fid).context };
        set.add(fid as usize, context as usize, object)
    };
    status(add())
}

extern "C" fn remove(set: *mut FidPoll, fid: *mut Fid, flags: u64) -> c_int {
    let remove = || -> Outcome {
        let set = find(set)?;
        if flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        set.remove(fid as usize)
    };
    status(remove())
}

//! Calls of all objects: close, bind, control.

use crate::abi::*;
use crate::error::{Code, Outcome, status};
use crate::object::registry::{self, Body};
use crate::object::wait::Wait;
use ayre_guest::copy;
use std::ffi::{c_int, c_void};

/// One table for objects of all kinds: what differs is found with the object. Endpoints know a
/// command more.
pub(crate) const OPS: &OpsFid =
    &OpsFid { close: Some(close), bind: Some(bind), control: Some(control), ..OpsFid::REFUSING };

/// The beginning of an object.
pub(crate) fn fid(class: usize, context: *mut c_void) -> Fid {
    Fid { fclass: class, context, ops: OPS }
}

extern "C" fn close(fid: *mut Fid) -> c_int {
    status(registry::close(fid.cast()))
}

extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    let bind = || -> Outcome {
        let object = registry::any(fid).ok_or(Code::INVALID)?;
        let other = registry::any(other).ok_or(Code::INVALID)?;
        object.body().bind(&other, flags)
    };
    status(bind())
}

/// # Safety
/// The argument is what the manual pages say for the command.
pub(super) unsafe extern "C" fn control(
    fid: *mut Fid,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    let Some(object) = registry::any(fid) else { return status(Err(Code::INVALID)) };
    // SAFETY: the caller's promise.
    status(unsafe { carry_out(object.body(), command, argument) })
}

/// # Safety
/// As for `control`.
unsafe fn carry_out(body: &dyn Body, command: c_int, argument: *mut c_void) -> Outcome {
    if command == ENABLE {
        return body.enable();
    }
    if argument.is_null() {
        return Err(Code::INVALID);
    }
    let wait = body.waitable().and_then(|waitable| waitable.wait());
    // SAFETY: the argument is not null, and of the type that the command has.
    unsafe {
        match command {
            GETWAIT => hand_out(wait.ok_or(Code::INVALID)?, argument),
            GETWAITOBJ if body.waitable().is_some() => {
                copy::put(argument.cast(), wait.map_or(WAIT_NONE, Wait::kind));
                Ok(())
            }
            GETOPSFLAG => {
                let flags = argument.cast::<u64>();
                copy::put(flags, body.op_flags(flags.read_unaligned())?);
                Ok(())
            }
            SETOPSFLAG => body.set_op_flags(argument.cast::<u64>().read_unaligned()),
            GET_RAW_MR => {
                let (base, key) = body.raw_key().ok_or(Code::INVALID)?;
                raw_key(base, key, &*argument.cast())
            }
            MAP_RAW_MR if body.maps_keys() => map_key(&*argument.cast()),
            UNMAP_KEY if body.maps_keys() => Ok(()),
            REFRESH if body.raw_key().is_some() => Ok(()),
            _ => Err(Code::NOT_SUPPORTED),
        }
    }
}

/// # Safety
/// There is an `int` at `place`, or a `fi_wait_pollfd` for objects of that kind.
unsafe fn hand_out(wait: &Wait, place: *mut c_void) -> Outcome {
    let descriptor = wait.descriptor().ok_or(Code::INVALID)?;
    if wait.kind() != WAIT_POLLFD {
        // SAFETY: the caller's promise.
        unsafe { copy::put(place.cast::<c_int>(), descriptor) };
        return Ok(());
    }
    // SAFETY: the caller's promise; its array has as many entries as it says.
    unsafe {
        let list = &mut *place.cast::<WaitPollFd>();
        let room = std::mem::replace(&mut list.nfds, 1);
        list.change_index = 1;
        if room == 0 {
            return Err(Code(errno::ETOOSMALL));
        }
        let events = libc::POLLIN;
        copy::put(list.fd, libc::pollfd { fd: descriptor, events, revents: 0 });
    }
    Ok(())
}

/// # Safety
/// The places that are named are null or there, with as much room for the key as is said.
unsafe fn raw_key(base: u64, key: u64, place: &MrRawAttr) -> Outcome {
    if place.key_size.is_null() {
        return Err(Code::INVALID);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let room = std::mem::replace(&mut *place.key_size, size_of::<u64>());
        copy::put(place.base_addr, base);
        if room < size_of::<u64>() {
            return Err(Code(errno::ETOOSMALL));
        }
        copy::fill(place.raw_key.cast(), room, &key.to_be_bytes());
    }
    Ok(())
}

/// # Safety
/// The key is null or as long as is said.
unsafe fn map_key(map: &MrMapRaw) -> Outcome {
    // SAFETY: the caller's promise.
    let raw = unsafe { copy::values(map.raw_key, map.key_size) };
    let key = u64::from_be_bytes(raw.try_into().map_err(|_| Code::INVALID)?);
    // SAFETY: as above.
    unsafe { copy::put(map.key, key) };
    Ok(())
}

//! Registration of memory: three ways to ask for the same.

use crate::abi::*;
use crate::calls::{eq, fid};
use crate::domain::memory::Request;
use crate::domain::mr::Mr;
use crate::domain::{Domain, DomainObject};
use crate::error::{Code, Outcome, status};
use crate::info::offer::MR_IOV_MAX;
use crate::object::registry;
use crate::queue::eq::Event;
use crate::sys::object::Object;
use crate::sys::structure::head_of;
use ayre::endpoint::raw::Span;
use ayre_guest::cell::Policy;
use ayre_guest::copy;
use ayre_guest::layout::version;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The region that a program asks for.
struct Wanted {
    place: *mut *mut FidMr,
    context: *mut c_void,
}

/// # Safety
/// As the manual page says.
pub(crate) unsafe extern "C" fn reg<L: Policy>(
    fid: *mut Fid,
    memory: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    place: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    let iov = Iovec { iov_base: memory.cast_mut(), iov_len: len };
    // SAFETY: the caller's promise; there is one piece.
    unsafe { regv::<L>(fid, &iov, 1, access, offset, key, flags, place, context) }
}

/// # Safety
/// As the manual page says: there are `count` pieces.
pub(crate) unsafe extern "C" fn regv<L: Policy>(
    fid: *mut Fid,
    iov: *const Iovec,
    count: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    place: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe { memory(iov, count) }.and_then(|(memory, start)| {
        let request = Request { memory, start, access, offset, key, flags };
        // SAFETY: the caller's promise.
        unsafe { register::<L>(fid, request, Wanted { place, context }) }
    });
    status(outcome)
}

/// # Safety
/// As the manual page says: the attributes are as long as the program's version has them.
pub(crate) unsafe extern "C" fn regattr<L: Policy>(
    fid: *mut Fid,
    attr: *const MrAttr,
    flags: u64,
    place: *mut *mut FidMr,
) -> c_int {
    let register = || -> Outcome {
        let domain = Domain::<L>::find(fid.cast())?;
        let size = MrAttr::LAYOUT.size_at(domain.choices.api.max(version(1, 17)));
        drop(domain);
        // SAFETY: the caller's promise.
        let attr = unsafe { head_of(attr, size) }.ok_or(Code::INVALID)?;
        // Memory of devices, and keys of authorisation.
        if attr.iface != 0 || attr.auth_key_size != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let MrAttr { access, offset, requested_key: key, context, .. } = attr;
        // SAFETY: as above; the pieces are what the attributes say.
        unsafe {
            let (memory, start) = memory(attr.mr_iov, attr.iov_count)?;
            let request = Request { memory, start, access, offset, key, flags };
            register::<L>(fid, request, Wanted { place, context })
        }
    };
    status(register())
}

/// The pieces of a registration, and where the first begins.
///
/// # Safety
/// There are `count` pieces. Each may be worked on by peers until the registration is closed.
unsafe fn memory(iov: *const Iovec, count: usize) -> Outcome<(Vec<Span>, u64)> {
    if iov.is_null() || count == 0 || count > MR_IOV_MAX {
        return Err(Code::INVALID);
    }
    // SAFETY: the caller's promise.
    let all = unsafe { copy::values(iov, count) };
    // SAFETY: as above.
    let spans = all.iter().map(|piece| unsafe { span(piece) });
    Ok((spans.collect::<Outcome<_>>()?, all[0].iov_base as u64))
}

/// One piece. Some programs register all the memory there can be, from null to the last address.
/// Nothing is at null, and nothing behind the half of the addresses that programs have.
///
/// # Errors
/// `EINVAL` where it would end behind all addresses.
///
/// # Safety
/// As for [`memory`].
unsafe fn span(piece: &Iovec) -> Outcome<Span> {
    const LAST: usize = isize::MAX as usize;
    let start = piece.iov_base as usize;
    let end = start.checked_add(piece.iov_len).ok_or(Code::INVALID)?;
    let first = start.max(1);
    let len = end.min(LAST).saturating_sub(first);
    // SAFETY: the caller's promise.
    Ok(unsafe { Span::new(first as *mut u8, len) })
}

/// # Safety
/// The place for the region is null or there.
unsafe fn register<L: Policy>(fid: *mut Fid, request: Request, wanted: Wanted) -> Outcome {
    let domain = Domain::<L>::find(fid.cast())?;
    if wanted.place.is_null() {
        return Err(Code::INVALID);
    }
    let mr = Mr::new(Arc::<DomainObject<L>>::clone(&domain), request)?;
    let head = FidMr {
        fid: fid::fid(CLASS_MR, wanted.context),
        mem_desc: std::ptr::null_mut(),
        key: mr.key(),
    };
    let handle = registry::add(Object::new(head, mr));
    // SAFETY: not null, and the caller's promise.
    unsafe { copy::put(wanted.place, handle) };
    if let Some(eq) = domain.reports_to() {
        let bytes = eq::entry(handle.cast(), wanted.context, 0);
        return eq.push(Event { number: MR_COMPLETE, bytes });
    }
    Ok(())
}

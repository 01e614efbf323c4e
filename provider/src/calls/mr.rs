//! Registration of memory: three ways to ask for the same.

use crate::abi::*;
use crate::calls::{domain, eq, fid};
use crate::code::{Code, Outcome, status};
use crate::domain::DomainObject;
use crate::eq::Event;
use crate::mr::{Mr, Piece, Request};
use crate::offer::MR_IOV_MAX;
use crate::registry;
use crate::sys::cell::Policy;
use crate::sys::copy;
use crate::sys::object::Object;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// What the program gets its region by.
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
    let pieces = vec![Piece { at: memory as usize, len }];
    let request = Request { pieces, access, offset, key, flags };
    // SAFETY: the caller's promise.
    status(unsafe { register::<L>(fid, &request, Wanted { place, context }) })
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
    let outcome = unsafe { pieces(iov, count) }.and_then(|pieces| {
        let request = Request { pieces, access, offset, key, flags };
        // SAFETY: the caller's promise.
        unsafe { register::<L>(fid, &request, Wanted { place, context }) }
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
        let domain = domain::find::<L>(fid.cast())?;
        let size = MrAttr::LAYOUT.size_at(domain.choices.api.max(layout::version(1, 17)));
        drop(domain);
        // SAFETY: the caller's promise.
        let attr = unsafe { copy::head_of(attr, size) }.ok_or(Code::INVALID)?;
        // Memory of devices, and keys of authorisation.
        if attr.iface != 0 || attr.auth_key_size != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let MrAttr { access, offset, requested_key: key, context, .. } = attr;
        // SAFETY: as above; the pieces are what the attributes say.
        unsafe {
            let pieces = pieces(attr.mr_iov, attr.iov_count)?;
            let request = Request { pieces, access, offset, key, flags };
            register::<L>(fid, &request, Wanted { place, context })
        }
    };
    status(register())
}

/// # Safety
/// There are `count` pieces.
unsafe fn pieces(iov: *const Iovec, count: usize) -> Outcome<Vec<Piece>> {
    if iov.is_null() || count == 0 || count > MR_IOV_MAX {
        return Err(Code::INVALID);
    }
    // SAFETY: the caller's promise.
    let all = unsafe { copy::values(iov, count) };
    Ok(all.iter().map(|it| Piece { at: it.iov_base as usize, len: it.iov_len }).collect())
}

/// # Safety
/// The place for the region is null or there.
unsafe fn register<L: Policy>(fid: *mut Fid, request: &Request, wanted: Wanted) -> Outcome {
    let domain = domain::find::<L>(fid.cast())?;
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

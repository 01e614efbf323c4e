//! Calls that open objects on a fabric: domains, event queues, wait sets.

use crate::abi::*;
use crate::calls::domain::Calls;
use crate::calls::{eq, fid, sets, tree};
use crate::domain::{Choices, Domain, Fabric};
use crate::error::{Code, Outcome, status};
use crate::info::offer::Offer;
use crate::info::parameters::record;
use crate::object::registry;
use crate::object::wait::try_wait;
use crate::queue::eq::Eq;
use crate::queue::wait_set::{Attachment, WaitSet};
use crate::record::Recorder;
use crate::sys::core;
use crate::sys::object::Object;
use crate::sys::structure::head_of;
use crate::sys::threads::Serial;
use ayre_guest::cell::{Policy, Recorded, Shared};
use ayre_guest::copy;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The table of fabrics.
pub(crate) static OPS: OpsFabric = OpsFabric {
    domain: Some(open_domain),
    eq_open: Some(open_eq),
    wait_open: Some(open_wait),
    trywait: Some(trywait),
    ..OpsFabric::REFUSING
};

type FabricObject = Object<FidFabric, Fabric>;

fn find(fabric: *const FidFabric) -> Outcome<Arc<FabricObject>> {
    registry::find(fabric.cast()).ok_or(Code::INVALID)
}

/// # Safety
/// As the manual page says: the info is one of `fi_getinfo`'s.
unsafe extern "C" fn open_domain(
    fabric: *mut FidFabric,
    info: *mut Info,
    place: *mut *mut FidDomain,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let fabric = find(fabric)?;
        let required = |is_there: bool| if is_there { Ok(()) } else { Err(Code::INVALID) };
        required(!place.is_null())?;
        // SAFETY: the caller's promise.
        let hints = unsafe { tree::hints(info, fabric.api) }.ok_or(Code::INVALID)?;
        required(hints.domain.is_some())?;
        let answer = hints.answer(&Offer::now(), fabric.kind, fabric.api);
        let answer = answer.map_err(|unmet| {
            core::tell(LOG_DOMAIN, format_args!("no domain: {unmet}"));
            Code::INVALID
        })?;
        let choices = Choices::of(&answer.domain, fabric.api);
        let recorder = record().map(|folder| Arc::new(Recorder::new(folder)));
        let domain = (choices, recorder);
        let handle = if domain.1.is_some() {
            add::<Recorded>(fabric, domain, context)
        } else if choices.is_serial() {
            add::<Serial>(fabric, domain, context)
        } else {
            add::<Shared>(fabric, domain, context)
        };
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, handle) };
        Ok(())
    };
    status(open())
}

fn add<L: Policy>(
    fabric: Arc<FabricObject>,
    (choices, recorder): (Choices, Option<Arc<Recorder>>),
    context: *mut c_void,
) -> *mut FidDomain {
    let head = FidDomain {
        fid: fid::fid(CLASS_DOMAIN, context),
        ops: Calls::<L>::DOMAIN,
        mr: Calls::<L>::MEMORY,
    };
    let mut domain = Domain::<L>::new(fabric.kind, choices, fabric);
    domain.recorder = recorder;
    registry::add(Object::new(head, domain))
}

/// # Safety
/// As the manual page says.
unsafe extern "C" fn open_eq(
    fabric: *mut FidFabric,
    attr: *mut EqAttr,
    place: *mut *mut FidEq,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let fabric = find(fabric)?;
        // SAFETY: the caller's promise.
        let attr = unsafe { head_of(attr, size_of::<EqAttr>()) }.ok_or(Code::INVALID)?;
        if attr.flags & !(WRITE | AFFINITY) != 0 {
            return Err(Code::BAD_FLAGS);
        }
        if place.is_null() || attr.size > SIZE_MAX {
            return Err(Code::INVALID);
        }
        let wait = Attachment::open(attr.wait_obj, attr.wait_set)?;
        let head = FidEq { fid: fid::fid(CLASS_EQ, context), ops: &eq::OPS };
        let object = Object::new(head, Eq::new(fabric, attr.size, attr.flags & WRITE != 0, wait));
        Attachment::join(object.attachment(), &object);
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, registry::add(object)) };
        Ok(())
    };
    status(open())
}

/// Events of the longest queue.
const SIZE_MAX: usize = 1 << 24;

/// # Safety
/// As the manual page says.
unsafe extern "C" fn open_wait(
    fabric: *mut FidFabric,
    attr: *mut WaitAttr,
    place: *mut *mut FidWait,
) -> c_int {
    let open = || -> Outcome {
        let fabric = find(fabric)?;
        // SAFETY: the caller's promise.
        let attr = unsafe { head_of(attr, size_of::<WaitAttr>()) }.ok_or(Code::INVALID)?;
        if attr.flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        if place.is_null() {
            return Err(Code::INVALID);
        }
        let head = FidWait { fid: fid::fid(CLASS_WAIT, std::ptr::null_mut()), ops: &sets::WAIT };
        let set = Object::new(head, WaitSet::open(attr.wait_obj, fabric)?);
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, registry::add(set)) };
        Ok(())
    };
    status(open())
}

/// # Safety
/// There are `count` handles.
unsafe extern "C" fn trywait(fabric: *mut FidFabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    let wait = || -> Outcome {
        find(fabric)?;
        let count = usize::try_from(count).map_err(|_| Code::INVALID)?;
        if fids.is_null() && count > 0 {
            return Err(Code::INVALID);
        }
        // SAFETY: the caller's promise.
        for fid in unsafe { copy::values(fids, count) } {
            let object = registry::any(*fid).ok_or(Code::INVALID)?;
            try_wait(object.body().waitable().ok_or(Code::INVALID)?)?;
        }
        Ok(())
    };
    status(wait())
}

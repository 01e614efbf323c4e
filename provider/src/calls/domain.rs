//! Calls that open objects on a domain: queues, counters, address vectors, poll sets, endpoints.

use crate::abi::*;
use crate::calls::{atomic, av, cntr, cq, ep, fid, mr, sets};
use crate::domain::Domain;
use crate::domain::av::Av;
use crate::error::{Code, Outcome, status};
use crate::info::parameters::cq_size;
use crate::object::registry;
use crate::queue::cntr::Cntr;
use crate::queue::cq::{Cq, Terms};
use crate::queue::poll::PollSet;
use crate::queue::wait_set::Attachment;
use crate::sys::object::Object;
use crate::sys::structure::head_of;
use ayre_guest::cell::Policy;
use ayre_guest::copy;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

/// The tables of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

impl<L: Policy> Calls<L> {
    pub(crate) const DOMAIN: &'static OpsDomain = &OpsDomain {
        av_open: Some(open_av::<L>),
        cq_open: Some(open_cq::<L>),
        endpoint: Some(ep::open::<L>),
        cntr_open: Some(open_cntr::<L>),
        poll_open: Some(open_poll::<L>),
        query_atomic: Some(atomic::query),
        ..OpsDomain::REFUSING
    };

    pub(crate) const MEMORY: &'static OpsMr = &OpsMr {
        reg: Some(mr::reg::<L>),
        regv: Some(mr::regv::<L>),
        regattr: Some(mr::regattr::<L>),
        ..OpsMr::REFUSING
    };
}

/// # Safety
/// As the manual page says.
unsafe extern "C" fn open_cq<L: Policy>(
    domain: *mut FidDomain,
    attr: *mut CqAttr,
    place: *mut *mut FidCq,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let domain = Domain::<L>::find(domain)?;
        // SAFETY: the caller's promise.
        let mut wanted = unsafe { head_of(attr, size_of::<CqAttr>()) }.ok_or(Code::INVALID)?;
        if wanted.flags & !AFFINITY != 0 {
            return Err(Code::BAD_FLAGS);
        }
        if wanted.format == CQ_FORMAT_UNSPEC {
            wanted.format = CQ_FORMAT_CONTEXT;
        }
        if wanted.size == 0 {
            wanted.size = cq_size()?;
        }
        let ops = cq::ops::<L>(wanted.format).ok_or(Code::INVALID)?;
        let has_condition = wanted.wait_obj != WAIT_NONE;
        if place.is_null() || has_condition && wanted.wait_cond > CQ_COND_THRESHOLD {
            return Err(Code::INVALID);
        }
        let wait = Attachment::open(wanted.wait_obj, wanted.wait_set)?;
        let head = FidCq { fid: fid::fid(CLASS_CQ, context), ops };
        let (is_managed, api) = (domain.is_managed(), domain.choices.api);
        let terms = Terms { size: wanted.size, is_managed, api };
        let recorder = domain.recorder.clone();
        let mut cq = Cq::<L>::new(domain, terms, wait);
        cq.recorder = recorder;
        let object = Object::new(head, cq);
        Attachment::join(object.attachment(), &object);
        // SAFETY: not null, and the caller's promise. What was left to us is told.
        unsafe {
            copy::put(attr, wanted);
            copy::put(place, registry::add(object));
        }
        Ok(())
    };
    status(open())
}

/// # Safety
/// As the manual page says.
unsafe extern "C" fn open_cntr<L: Policy>(
    domain: *mut FidDomain,
    attr: *mut CntrAttr,
    place: *mut *mut FidCntr,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let domain = Domain::<L>::find(domain)?;
        // SAFETY: the caller's promise.
        let attr = unsafe { head_of(attr, size_of::<CntrAttr>()) }.ok_or(Code::INVALID)?;
        if attr.flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        // Nothing but completions is counted.
        if place.is_null() || attr.events != 0 {
            return Err(Code::INVALID);
        }
        let wait = Attachment::open(attr.wait_obj, attr.wait_set)?;
        let head = FidCntr { fid: fid::fid(CLASS_CNTR, context), ops: cntr::Calls::<L>::OPS };
        let object = Object::new(head, Cntr::<L>::new(domain, wait));
        Attachment::join(object.attachment(), &object);
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, registry::add(object)) };
        Ok(())
    };
    status(open())
}

/// # Safety
/// As the manual page says.
unsafe extern "C" fn open_av<L: Policy>(
    domain: *mut FidDomain,
    attr: *mut AvAttr,
    place: *mut *mut FidAv,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let domain = Domain::<L>::find(domain)?;
        // SAFETY: the caller's promise.
        let mut wanted = unsafe { head_of(attr, size_of::<AvAttr>()) }.ok_or(Code::INVALID)?;
        if wanted.r#type == AV_UNSPEC {
            wanted.r#type = domain.choices.av_type;
        }
        if wanted.r#type == AV_UNSPEC {
            wanted.r#type = AV_TABLE;
        }
        if place.is_null() || wanted.r#type > AV_TABLE {
            return Err(Code::INVALID);
        }
        // Neither vectors that processes share nor scalable endpoints.
        if !wanted.name.is_null() || wanted.flags & READ != 0 || wanted.rx_ctx_bits != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if wanted.flags & !(COMPLETION | SYMMETRIC) != 0 {
            return Err(Code::BAD_FLAGS);
        }
        let head = FidAv { fid: fid::fid(CLASS_AV, context), ops: av::Calls::<L>::OPS };
        let object = Object::new(head, Av::<L>::new(domain, wanted.flags & COMPLETION != 0));
        // SAFETY: not null, and the caller's promise. What was left to us is told.
        unsafe {
            copy::put(attr, wanted);
            copy::put(place, registry::add(object));
        }
        Ok(())
    };
    status(open())
}

/// # Safety
/// As the manual page says.
unsafe extern "C" fn open_poll<L: Policy>(
    domain: *mut FidDomain,
    attr: *mut PollAttr,
    place: *mut *mut FidPoll,
) -> c_int {
    let open = || -> Outcome {
        let domain = Domain::<L>::find(domain)?;
        // SAFETY: the caller's promise.
        let attr = unsafe { head_of(attr, size_of::<PollAttr>()) }.ok_or(Code::INVALID)?;
        if attr.flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        if place.is_null() {
            return Err(Code::INVALID);
        }
        let fid = fid::fid(CLASS_POLL, std::ptr::null_mut());
        let head = FidPoll { fid, ops: &sets::POLL };
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, registry::add(Object::new(head, PollSet::new(domain)))) };
        Ok(())
    };
    status(open())
}

//! Counters: a table for each policy.

use crate::abi::{FidCntr, OpsCntr};
use crate::error::status;
use crate::queue::cntr::Cntr;
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use std::ffi::c_int;
use std::marker::PhantomData;

/// The calls of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

type CntrObject<L> = Object<FidCntr, Cntr<L>>;

impl<L: Policy> Calls<L> {
    pub(crate) const OPS: &'static OpsCntr = &OpsCntr {
        read: Some(Self::read),
        readerr: Some(Self::readerr),
        add: Some(Self::add),
        set: Some(Self::set),
        wait: Some(Self::wait),
        adderr: Some(Self::adderr),
        seterr: Some(Self::seterr),
        ..OpsCntr::REFUSING
    };

    /// # Safety
    /// The counter is open; so for all others here.
    unsafe extern "C" fn read(cntr: *mut FidCntr) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { CntrObject::<L>::at(cntr) }.read().value
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn readerr(cntr: *mut FidCntr) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { CntrObject::<L>::at(cntr) }.read().errors
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn add(cntr: *mut FidCntr, value: u64) -> c_int {
        // SAFETY: the caller's promise.
        let cntr = unsafe { CntrObject::<L>::at(cntr) };
        cntr.adjust(|count| count.value = count.value.wrapping_add(value));
        0
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn set(cntr: *mut FidCntr, value: u64) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { CntrObject::<L>::at(cntr) }.adjust(|count| count.value = value);
        0
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn adderr(cntr: *mut FidCntr, value: u64) -> c_int {
        // SAFETY: the caller's promise.
        let cntr = unsafe { CntrObject::<L>::at(cntr) };
        cntr.adjust(|count| count.errors = count.errors.wrapping_add(value));
        0
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn seterr(cntr: *mut FidCntr, value: u64) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { CntrObject::<L>::at(cntr) }.adjust(|count| count.errors = value);
        0
    }

    /// # Safety
    /// As for `read`.
    unsafe extern "C" fn wait(cntr: *mut FidCntr, threshold: u64, milliseconds: c_int) -> c_int {
        // SAFETY: the caller's promise.
        status(unsafe { CntrObject::<L>::at(cntr) }.wait_for(threshold, milliseconds))
    }
}

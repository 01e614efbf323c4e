//! Writing and reading memory of peers: each in four forms.

use super::param::{Parameters, StatusPtr, answer};
use super::request::{release, wait};
use crate::abi::request::{EndFn, RequestParam};
use crate::abi::status::Status;
use crate::rkey::Rkey;
use crate::sys::handle;
use crate::sys::request::Told;
use crate::sys::window::Reachable;
use crate::worker::{Ep, Posted, Worker};
use ayre::Rights;
use ayre::endpoint::raw::{RemoteAddress, Span};
use std::ffi::c_void;

/// Memory of a peer: an endpoint, and an address by a key.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) worker: &'a Worker,
    pub(super) ep: &'a Ep,
    pub(super) rkey: &'a Rkey,
    pub(super) address: u64,
}

impl Target<'_> {
    /// # Safety
    /// Handles of an endpoint and of a key.
    #[inline(always)]
    pub(super) unsafe fn new(ep: *const Ep, (address, rkey): (u64, *const Rkey)) -> Self {
        // SAFETY: the caller's promise; the endpoint's worker lives longer.
        unsafe {
            let ep = handle::at(ep);
            Self { worker: handle::at(ep.worker.0), ep, rkey: handle::at(rkey), address }
        }
    }

    /// As the engine knows it.
    pub(super) fn for_engine(&self) -> RemoteAddress {
        RemoteAddress { remote: self.ep.remote, key: self.rkey.key.key, address: self.address }
    }

    /// The memory and the place in it, if a store or a load is to reach it now: not where posts to
    /// the peer wait, which it would overtake.
    ///
    /// # Errors
    /// Those of [`Rkey::offset`].
    #[inline(always)]
    pub(super) fn reach(
        &self,
        len: usize,
        rights: Rights,
    ) -> Result<Option<(&Reachable, usize)>, Status> {
        let offset = self.rkey.offset((self.address, len), rights)?;
        let reachable = self.rkey.reachable.as_ref();
        let reachable = reachable.filter(|_| !self.worker.holds_back(self.ep.remote));
        Ok(reachable.map(|reachable| (reachable, offset)))
    }

    /// Writes to it.
    ///
    /// # Safety
    /// That many bytes may be read there until the operation has ended.
    #[inline]
    unsafe fn write(&self, (from, len): (*const c_void, usize), param: &Parameters) -> Posted {
        // SAFETY: the caller's promise. Peers keep memory while its keys are used.
        unsafe {
            match self.reach(len, Rights::WRITE) {
                Ok(Some((reachable, offset))) => {
                    reachable.write(offset, from, len);
                    self.worker.done(&param.wish)
                }
                Ok(None) => {
                    let bytes = Span::read_only(from.cast(), len);
                    self.worker.write(self.for_engine(), bytes.into(), &param.wish)
                }
                Err(status) => Posted::Failed(status),
            }
        }
    }

    /// Reads it.
    ///
    /// # Safety
    /// That many bytes may be written there until the operation has ended.
    #[inline]
    unsafe fn read(&self, (into, len): (*mut c_void, usize), param: &Parameters) -> Posted {
        // SAFETY: as for write().
        unsafe {
            match self.reach(len, Rights::READ) {
                Ok(Some((reachable, offset))) => {
                    reachable.read(offset, into, len);
                    self.worker.done(&param.wish)
                }
                Ok(None) => {
                    let into = Span::new(into.cast(), len);
                    self.worker.read(self.for_engine(), into.into(), &param.wish)
                }
                Err(status) => Posted::Failed(status),
            }
        }
    }
}

/// The bytes of an operation: contiguous ones alone, as UCX has it.
///
/// # Errors
/// *unsupported* for another datatype, *invalid parameter* for a length that no memory has.
#[inline(always)]
fn len(param: &Parameters, count: usize) -> Result<usize, Status> {
    let size = param.element().ok_or(Status::UNSUPPORTED)?;
    size.checked_mul(count).ok_or(Status::INVALID_PARAM)
}

/// The functions of an operation: with parameters; with a function for its end; without a request;
/// and such that it has ended when they return.
macro_rules! forms {
    ($operation:ident($memory:ty): $nbx:ident $nb:ident $nbi:ident $blocking:ident) => {
        /// # Safety
        /// As UCP's headers say.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $nbx(
            ep: *const Ep,
            memory: $memory,
            count: usize,
            address: u64,
            rkey: *const Rkey,
            param: *const RequestParam,
        ) -> StatusPtr {
            // SAFETY: the caller's promise.
            unsafe {
                let (target, param) =
                    (Target::new(ep, (address, rkey)), Parameters::of(param, Told::OfSend));
                answer(match len(&param, count) {
                    Ok(len) => target.$operation((memory, len), &param),
                    Err(status) => Posted::Failed(status),
                })
            }
        }

        /// # Safety
        /// As UCP's headers say.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $nb(
            ep: *const Ep,
            memory: $memory,
            len: usize,
            address: u64,
            rkey: *const Rkey,
            end: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
        ) -> StatusPtr {
            let param = Parameters::of_callback(0, Told::OfSend(EndFn { send: end }), false);
            // SAFETY: the caller's promise.
            unsafe {
                let target = Target::new(ep, (address, rkey));
                answer(target.$operation((memory, len), &param))
            }
        }

        /// # Safety
        /// As UCP's headers say.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $nbi(
            ep: *const Ep,
            memory: $memory,
            len: usize,
            address: u64,
            rkey: *const Rkey,
        ) -> Status {
            let param = Parameters::of_callback(0, Told::Nobody, false);
            // SAFETY: the caller's promise.
            unsafe {
                let target = Target::new(ep, (address, rkey));
                release(target.worker, target.$operation((memory, len), &param))
            }
        }

        /// # Safety
        /// As UCP's headers say.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $blocking(
            ep: *const Ep,
            memory: $memory,
            len: usize,
            address: u64,
            rkey: *const Rkey,
        ) -> Status {
            let param = Parameters::of_callback(0, Told::Nobody, false);
            // SAFETY: the caller's promise.
            unsafe {
                let target = Target::new(ep, (address, rkey));
                wait(target.worker, target.$operation((memory, len), &param))
            }
        }
    };
}

forms!(write(*const c_void): ucp_put_nbx ucp_put_nb ucp_put_nbi ucp_put);
forms!(read(*mut c_void): ucp_get_nbx ucp_get_nb ucp_get_nbi ucp_get);

//! The program's functions for active messages, and for endpoints that have lost their peer.

use crate::abi::endpoint::ErrFn;
use crate::abi::handles::Ep;
use crate::abi::numbers::*;
use crate::abi::request::{AmFn, AmRecvFn, AmRecvParam};
use crate::abi::status::Status;
use std::ffi::c_void;
use std::ptr::null;

/// The program's function for messages of an id.
#[derive(Clone, Copy)]
pub(crate) struct Handler {
    function: Function,
    arg: *mut c_void,
    /// It may keep data behind its return.
    pub(crate) keeps_data: bool,
}

// SAFETY: the program has handed the function and its argument over for calls in any thread of it
// that makes progress.
unsafe impl Send for Handler {}

#[derive(Clone, Copy)]
enum Function {
    /// Without headers; it gets all bytes, whatever the sender has chosen.
    Old(AmFn),
    New(AmRecvFn),
}

/// A message, as its handler gets it.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) header: &'a [u8],
    /// The bytes, or what stands for them until the program receives them.
    pub(crate) data: *mut c_void,
    pub(crate) len: usize,
    pub(crate) is_descriptor: bool,
    /// An endpoint to the sender; null if that did not offer it.
    pub(crate) reply: *mut c_void,
}

impl Handler {
    /// # Safety
    /// The function takes such messages, with this argument, as long as it is registered.
    pub(crate) unsafe fn old(function: AmFn, arg: *mut c_void, flags: u32) -> Self {
        Self { function: Function::Old(function), arg, keeps_data: keeps_data(flags) }
    }

    /// # Safety
    /// As for [`Self::old`].
    pub(crate) unsafe fn new(function: AmRecvFn, arg: *mut c_void, flags: u32) -> Self {
        Self { function: Function::New(function), arg, keeps_data: keeps_data(flags) }
    }

    /// Whether it gets all bytes in any case.
    pub(crate) fn is_old(&self) -> bool {
        matches!(self.function, Function::Old(_))
    }

    /// Calls it. No state of ours may be in use.
    pub(crate) fn call(&self, message: &Shown<'_>) -> Status {
        let &Shown { header, data, len, is_descriptor, reply } = message;
        let reply = reply.cast::<Ep>();
        // SAFETY: the promise of its maker. Header and data stay during the call.
        unsafe {
            match self.function {
                Function::Old(Some(function)) => {
                    let flags = if self.keeps_data { UCP_CB_PARAM_FLAG_DATA } else { 0 };
                    function(self.arg, data, len, reply, flags)
                }
                Function::New(Some(function)) => {
                    let has = |is_so: bool, attr: u64| if is_so { attr } else { 0 };
                    let recv_attr = has(!reply.is_null(), UCP_AM_RECV_ATTR_FIELD_REPLY_EP)
                        | has(is_descriptor, UCP_AM_RECV_ATTR_FLAG_RNDV)
                        | has(!is_descriptor && self.keeps_data, UCP_AM_RECV_ATTR_FLAG_DATA);
                    let param = AmRecvParam { recv_attr, reply_ep: reply };
                    let start = if header.is_empty() { null() } else { header.as_ptr().cast() };
                    function(self.arg, start, header.len(), data, len, &raw const param)
                }
                Function::Old(None) | Function::New(None) => Status::OK,
            }
        }
    }
}

fn keeps_data(flags: u32) -> bool {
    flags & UCP_AM_FLAG_PERSISTENT_DATA != 0
}

/// The program's function for an endpoint that has lost its peer.
#[derive(Clone, Copy)]
pub(crate) struct ErrorHandler {
    function: ErrFn,
    arg: *mut c_void,
}

// SAFETY: as for Handler.
unsafe impl Send for ErrorHandler {}

impl ErrorHandler {
    /// # Safety
    /// The function takes this argument as long as its endpoint is open.
    pub(crate) unsafe fn new(function: ErrFn, arg: *mut c_void) -> Self {
        Self { function, arg }
    }

    /// Calls it. No state of ours may be in use.
    pub(crate) fn call(&self, ep: *mut c_void, status: Status) {
        if let Some(function) = self.function {
            // SAFETY: the promise of new().
            unsafe { function(self.arg, ep.cast(), status) };
        }
    }
}

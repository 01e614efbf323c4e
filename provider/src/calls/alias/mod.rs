//! Aliases of endpoints: the same endpoint, with other flags for calls that have none of their own.
//!
//! An alias has tables of its own. A call that has flags goes to the endpoint's table as it is, one
//! that has none as the call in memory that has them. So endpoints know nothing of aliases.

mod atomic;
mod msg;
mod rma;
mod tagged;

use crate::abi::*;
use crate::calls::fid;
use crate::code::{Code, Outcome};
use crate::offer::Offer;
use crate::registry::{self, Body, Entity};
use crate::sys::copy;
use crate::sys::object::Object;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An alias.
pub(crate) struct Alias {
    /// By what the program knows the endpoint.
    base: usize,
    flags: Mutex<Flags>,
    /// The endpoint is not closed before its aliases are.
    endpoint: Arc<dyn Entity>,
}

/// Flags of calls without any, in each direction.
#[derive(Clone, Copy, Debug)]
struct Flags {
    tx: u64,
    rx: u64,
}

type AliasObject = Object<FidEp, Alias>;

/// Flags that a program can choose for calls that send, receive, write and read: others mean
/// nothing to these.
const SENDS: u64 = WRITES | MATCH_COMPLETE;
const RECEIVES: u64 = COMPLETION | MULTI_RECV;
const WRITES: u64 = READS | INJECT;
const READS: u64 = COMPLETION | INJECT_COMPLETE | TRANSMIT_COMPLETE | DELIVERY_COMPLETE;

/// How a program names one side of an endpoint.
const DIRECTIONS: u64 = SEND | RECV;

/// Opens an alias of an endpoint, or of what another one is an alias of.
///
/// # Errors
/// `ENOSYS` for what is no endpoint; `EINVAL` where both directions are named, or flags for none;
/// `EBADFLAGS` for flags that no operation has by default.
///
/// # Safety
/// The object is the one that the handle names, and there is a place for the alias.
pub(super) unsafe fn open(
    handle: *mut Fid,
    object: &Arc<dyn Entity>,
    wanted: &FidAlias,
) -> Outcome {
    let inherited = |direction| object.body().op_flags(direction);
    let (tx, rx) = (inherited(SEND)?, inherited(RECV)?);
    let chosen = wanted.flags & !DIRECTIONS;
    if chosen & !Offer::now().op_flags != 0 {
        return Err(Code::BAD_FLAGS);
    }
    let (tx, rx) = match wanted.flags & DIRECTIONS {
        SEND => (chosen, rx),
        RECV => (tx, chosen),
        0 if chosen == 0 => (tx, rx),
        _ => return Err(Code::INVALID),
    };
    let (base, endpoint) = match registry::typed::<FidEp, Alias>(object) {
        Some(alias) => (alias.base as *mut FidEp, Arc::clone(&alias.endpoint)),
        None => (handle.cast(), Arc::clone(object)),
    };
    let flags = Mutex::new(Flags { tx, rx });
    // SAFETY: only endpoints have flags of operations.
    let head = head(unsafe { &*base });
    let alias = Object::new(head, Alias { base: base as usize, flags, endpoint });
    // SAFETY: the caller's promise.
    unsafe { copy::put(wanted.fid, registry::add(alias).cast()) };
    Ok(())
}

fn head(base: &FidEp) -> FidEp {
    FidEp {
        fid: fid::fid(CLASS_EP, base.fid.context),
        ops: &EP,
        cm: &CM,
        msg: &msg::OPS,
        rma: &rma::OPS,
        tagged: &tagged::OPS,
        atomic: &atomic::OPS,
        collective: base.collective,
    }
}

impl Alias {
    fn base(&self) -> *mut FidEp {
        self.base as *mut FidEp
    }

    fn flags(&self) -> MutexGuard<'_, Flags> {
        self.flags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flags {
    /// Those of a direction.
    ///
    /// # Errors
    /// `EINVAL` unless one is named.
    fn of(&mut self, direction: u64) -> Outcome<&mut u64> {
        match direction {
            SEND => Ok(&mut self.tx),
            RECV => Ok(&mut self.rx),
            _ => Err(Code::INVALID),
        }
    }
}

/// The endpoint that an alias stands for, and those of its flags that mean something to the call.
///
/// # Safety
/// The alias is open.
unsafe fn sent(alias: *mut FidEp, meant: u64) -> (*mut FidEp, u64) {
    // SAFETY: the caller's promise.
    let alias = unsafe { AliasObject::at(alias) };
    (alias.base(), alias.flags().tx & meant)
}

/// The same for calls that receive.
///
/// # Safety
/// As for [`sent`].
unsafe fn received(alias: *mut FidEp, meant: u64) -> (*mut FidEp, u64) {
    // SAFETY: the caller's promise.
    let alias = unsafe { AliasObject::at(alias) };
    (alias.base(), alias.flags().rx & meant)
}

/// Declares functions that make the same call of the endpoint.
macro_rules! passed_on {
    ($($table:ident.$slot:ident($($name:ident: $type:ty),* $(,)?) -> $result:ty;)*) => { $(
        /// # Safety
        /// As for the endpoint's own call.
        #[allow(clippy::too_many_arguments, reason = "C says how many there are")]
        unsafe extern "C" fn $slot(alias: *mut FidEp, $($name: $type),*) -> $result {
            // SAFETY: the alias is open, so its endpoint is, whose tables have no empty slot.
            unsafe {
                let base = AliasObject::at(alias).base();
                ((*(*base).$table).$slot.expect("no slot is empty"))(base.cast(), $($name),*)
            }
        }
    )* };
}
use passed_on;

/// Makes a call of an endpoint's table.
macro_rules! call {
    ($base:ident.$table:ident.$slot:ident($($argument:expr),*)) => {
        ((*(*$base).$table).$slot.expect("no slot is empty"))($base, $($argument),*)
    };
}
use call;

static EP: OpsEp = OpsEp {
    cancel: Some(on_fid::cancel),
    getopt: Some(on_fid::getopt),
    setopt: Some(on_fid::setopt),
    rx_size_left: Some(rx_size_left),
    tx_size_left: Some(tx_size_left),
    ..OpsEp::REFUSING
};

static CM: OpsCm =
    OpsCm { setname: Some(on_fid::setname), getname: Some(on_fid::getname), ..OpsCm::REFUSING };

passed_on! {
    ops.rx_size_left() -> isize;
    ops.tx_size_left() -> isize;
}

/// Calls that name an endpoint by its beginning.
mod on_fid {
    use super::*;

    macro_rules! passed_on_by_fid {
        ($($table:ident.$slot:ident($($name:ident: $type:ty),*) -> $result:ty;)*) => { $(
            /// # Safety
            /// As for the endpoint's own call.
            pub(super) unsafe extern "C" fn $slot(alias: *mut Fid, $($name: $type),*) -> $result {
                // SAFETY: the alias is open, so its endpoint is, whose tables have no empty slot.
                unsafe {
                    let base = AliasObject::at(alias.cast()).base();
                    ((*(*base).$table).$slot.expect("no slot is empty"))(base.cast(), $($name),*)
                }
            }
        )* };
    }

    passed_on_by_fid! {
        ops.cancel(context: *mut c_void) -> isize;
        ops.getopt(level: c_int, option: c_int, place: *mut c_void, room: *mut usize) -> c_int;
        ops.setopt(level: c_int, option: c_int, value: *const c_void, len: usize) -> c_int;
        cm.setname(address: *mut c_void, len: usize) -> c_int;
        cm.getname(place: *mut c_void, room: *mut usize) -> c_int;
    }
}

impl Body for Alias {
    fn enable(&self) -> Outcome {
        self.endpoint.body().enable()
    }

    fn op_flags(&self, direction: u64) -> Outcome<u64> {
        Ok(*self.flags().of(direction)?)
    }

    fn set_op_flags(&self, flags: u64) -> Outcome {
        let chosen = flags & !DIRECTIONS;
        if chosen & !Offer::now().op_flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        *self.flags().of(flags & DIRECTIONS)? = chosen;
        Ok(())
    }
}

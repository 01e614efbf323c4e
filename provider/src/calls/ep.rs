//! Endpoints: how they are opened, and what is set and asked of them.

use crate::abi::*;
use crate::address::Address;
use crate::calls::{atomic, domain, fid, msg, rma, tagged, tree};
use crate::code::{Code, Outcome, status};
use crate::domain::DomainObject;
use crate::ep::{Ep, Wishes};
use crate::memory::Addressing;
use crate::offer::{OPERATIONS_MAX, Offer};
use crate::registry;
use crate::sys::cell::Policy;
use crate::sys::object::Object;
use crate::sys::{copy, core};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

/// The calls of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

pub(super) type EpObject<L> = Object<FidEp, Ep<L>>;

/// # Safety
/// As the manual page says: the info is one of `fi_getinfo`'s.
pub(super) unsafe extern "C" fn open<L: Policy>(
    domain: *mut FidDomain,
    info: *mut Info,
    place: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let domain = domain::find::<L>(domain.cast())?;
        if place.is_null() {
            return Err(Code::INVALID);
        }
        // SAFETY: the caller's promise.
        let wishes = unsafe { wishes(info, &domain) }?;
        let caps = wishes.caps;
        let fid = fid::fid(CLASS_EP, context);
        let object = Object::new(head::<L>(fid, caps), Ep::open(domain, &wishes)?);
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, registry::add(object)) };
        Ok(())
    };
    status(open())
}

/// # Safety
/// As for `open`.
unsafe fn wishes<L: Policy>(info: *mut Info, domain: &Arc<DomainObject<L>>) -> Outcome<Wishes> {
    let api = domain.choices.api;
    // SAFETY: the caller's promise.
    let hints = unsafe { tree::hints(info, api) }.ok_or(Code::INVALID)?;
    let answer = hints.answer(&Offer::now(), domain.kind, api).map_err(|unmet| {
        core::tell(LOG_EP_CTRL, format_args!("no endpoint: {unmet}"));
        Code::INVALID
    })?;
    let source = match hints.source {
        [] => None,
        bytes => Some(Address::from_bytes(bytes).ok_or(Code::INVALID)?),
    };
    let (tx_flags, rx_flags) = (answer.tx.op_flags, answer.rx.op_flags);
    let addressing = match hints.domain {
        None => domain.addressing(),
        Some(_) => Addressing::of(answer.domain.mr_mode),
    };
    Ok(Wishes { caps: answer.caps, tx_flags, rx_flags, source, addressing })
}

/// The tables of an endpoint: what it has not asked for refuses.
fn head<L: Policy>(fid: Fid, caps: u64) -> FidEp {
    FidEp {
        fid,
        ops: Calls::<L>::EP,
        cm: Calls::<L>::CM,
        msg: if caps & MSG != 0 { msg::Calls::<L>::OPS } else { &OpsMsg::REFUSING },
        rma: if caps & RMA != 0 { rma::Calls::<L>::OPS } else { &OpsRma::REFUSING },
        tagged: if caps & TAGGED != 0 { tagged::Calls::<L>::OPS } else { &OpsTagged::REFUSING },
        atomic: if caps & ATOMIC != 0 { atomic::Calls::<L>::OPS } else { &OpsAtomic::REFUSING },
        collective: &OpsCollective::REFUSING,
    }
}

impl<L: Policy> Calls<L> {
    const EP: &'static OpsEp = &OpsEp {
        cancel: Some(Self::cancel),
        getopt: Some(Self::getopt),
        setopt: Some(Self::setopt),
        rx_size_left: Some(Self::size_left),
        tx_size_left: Some(Self::size_left),
        ..OpsEp::REFUSING
    };

    const CM: &'static OpsCm =
        &OpsCm { setname: Some(Self::setname), getname: Some(Self::getname), ..OpsCm::REFUSING };

    /// # Safety
    /// The endpoint is open; so for all others here.
    unsafe extern "C" fn cancel(ep: *mut Fid, context: *mut c_void) -> isize {
        // SAFETY: the caller's promise.
        let ep = unsafe { EpObject::<L>::at(ep.cast()) };
        status(ep.core.cancel(context as usize)) as isize
    }

    /// # Safety
    /// There is as much room as is said.
    unsafe extern "C" fn getopt(
        ep: *mut Fid,
        level: c_int,
        option: c_int,
        place: *mut c_void,
        room: *mut usize,
    ) -> c_int {
        // SAFETY: the caller's promise.
        let ep = unsafe { EpObject::<L>::at(ep.cast()) };
        if level != OPT_ENDPOINT {
            return -errno::ENOPROTOOPT;
        }
        let value = match option {
            OPT_MIN_MULTI_RECV => ep.core.min_multi_recv(),
            // There are no connections to send data along with.
            OPT_CM_DATA_SIZE => 0,
            _ => return -errno::ENOPROTOOPT,
        };
        if place.is_null() || room.is_null() {
            return -errno::EINVAL;
        }
        // SAFETY: neither is null, and the caller's promise.
        unsafe {
            let room = std::mem::replace(&mut *room, size_of::<usize>());
            if room < size_of::<usize>() {
                return -errno::ETOOSMALL;
            }
            copy::put(place.cast(), value);
        }
        0
    }

    /// # Safety
    /// The value is as long as is said.
    unsafe extern "C" fn setopt(
        ep: *mut Fid,
        level: c_int,
        option: c_int,
        value: *const c_void,
        len: usize,
    ) -> c_int {
        // SAFETY: the caller's promise.
        let (ep, value) = unsafe { (EpObject::<L>::at(ep.cast()), copy::bytes(value, len)) };
        if (level, option) != (OPT_ENDPOINT, OPT_MIN_MULTI_RECV) {
            return -errno::ENOPROTOOPT;
        }
        let Ok(value) = value.try_into() else { return -errno::EINVAL };
        ep.core.set_min_multi_recv(usize::from_ne_bytes(value));
        0
    }

    /// # Safety
    /// As for `cancel`.
    unsafe extern "C" fn size_left(ep: *mut FidEp) -> isize {
        // SAFETY: the caller's promise.
        let ep = unsafe { EpObject::<L>::at(ep) };
        OPERATIONS_MAX.saturating_sub(ep.core.under_way()) as isize
    }

    /// An endpoint's address is nobody's choice; its place is chosen when it is opened.
    ///
    /// # Safety
    /// The address is as long as is said.
    unsafe extern "C" fn setname(ep: *mut Fid, address: *mut c_void, len: usize) -> c_int {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (EpObject::<L>::at(ep.cast()), copy::bytes(address, len)) };
        match Address::from_bytes(bytes) {
            None => -errno::EINVAL,
            Some(address) if address == ep.core.address => 0,
            Some(_) => -errno::EADDRNOTAVAIL,
        }
    }

    /// # Safety
    /// There is as much room as is said.
    unsafe extern "C" fn getname(ep: *mut Fid, place: *mut c_void, room: *mut usize) -> c_int {
        if room.is_null() {
            return -errno::EINVAL;
        }
        // SAFETY: not null, and the caller's promise.
        unsafe {
            let ep = EpObject::<L>::at(ep.cast());
            let room = std::mem::replace(&mut *room, Address::SIZE);
            copy::fill(place, room, &ep.core.address.to_bytes());
            if room < Address::SIZE { -errno::ETOOSMALL } else { 0 }
        }
    }
}

//! Endpoints and their aliases: how they are opened, and what is set and asked of them.

use crate::abi::*;
use crate::calls::{atomic, fid, message, rma, tree};
use crate::domain::memory::Addressing;
use crate::domain::{Domain, DomainObject};
use crate::ep::{Alias, Core, Ep, Handle, Wishes};
use crate::error::{Code, Outcome, status};
use crate::info::address::Address;
use crate::info::offer::{OPERATIONS_MAX, Offer};
use crate::object::registry;
use crate::sys::core;
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use ayre_guest::copy;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

/// The calls on what programs know endpoints by.
struct Calls<H>(PhantomData<H>);

/// # Safety
/// As the manual page says: the info is one of `fi_getinfo`'s.
pub(super) unsafe extern "C" fn open<L: Policy>(
    domain: *mut FidDomain,
    info: *mut Info,
    place: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    let open = || -> Outcome {
        let domain = Domain::<L>::find(domain)?;
        if place.is_null() {
            return Err(Code::INVALID);
        }
        // SAFETY: the caller's promise.
        let wishes = unsafe { wishes(info, &domain) }?;
        let caps = wishes.caps;
        let object = Object::new(head::<Ep<L>>(context, caps), Ep::open(domain, &wishes)?);
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

/// The C structure of an endpoint or an alias. Tables of capabilities that it did not ask for
/// refuse all calls.
fn head<H: Handle>(context: *mut c_void, caps: u64) -> FidEp {
    let has = |capability| caps & capability != 0;
    FidEp {
        fid: Fid { ops: Calls::<H>::FID, ..fid::fid(CLASS_EP, context) },
        ops: Calls::<H>::EP,
        cm: Calls::<H>::CM,
        msg: if has(MSG) { message::Untagged::<H>::OPS } else { &OpsMsg::REFUSING },
        rma: if has(RMA) { rma::Calls::<H>::OPS } else { &OpsRma::REFUSING },
        tagged: if has(TAGGED) { message::Tagged::<H>::OPS } else { &OpsTagged::REFUSING },
        atomic: if has(ATOMIC) { atomic::Calls::<H>::OPS } else { &OpsAtomic::REFUSING },
        collective: &OpsCollective::REFUSING,
    }
}

impl<H: Handle> Calls<H> {
    /// The calls of all objects, with one more command.
    const FID: &'static OpsFid = &OpsFid { control: Some(Self::control), ..*fid::OPS };

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
    /// As for [`fid::control`].
    unsafe extern "C" fn control(ep: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
        let is_ours = command == ALIAS && !argument.is_null();
        // SAFETY: the caller's promise; the argument is of the type that the command has.
        unsafe {
            match is_ours {
                true => status(Self::alias(ep, &*argument.cast())),
                false => fid::control(ep, command, argument),
            }
        }
    }

    /// # Safety
    /// There is a place for the alias.
    unsafe fn alias(ep: *mut Fid, wanted: &FidAlias) -> Outcome {
        let handle = registry::find::<FidEp, H>(ep.cast()).ok_or(Code::INVALID)?;
        let alias = Alias::of(&handle, wanted.flags)?;
        let endpoint = Object::handle(H::endpoint(&handle));
        // SAFETY: the endpoint is open, and the caller's promise.
        unsafe {
            let head = head::<Alias<H::Policy>>((*endpoint).fid.context, handle.core().caps());
            copy::put(wanted.fid, registry::add(Object::new(head, alias)).cast());
        }
        Ok(())
    }

    /// # Safety
    /// The endpoint is open.
    unsafe fn core<'a, T>(ep: *mut T) -> &'a Core<H::Policy>
    where
        H: 'a,
    {
        // SAFETY: the caller's promise.
        unsafe { Object::<FidEp, H>::at(ep.cast()) }.core()
    }

    /// # Safety
    /// The endpoint is open; so for all others here.
    unsafe extern "C" fn cancel(ep: *mut Fid, context: *mut c_void) -> isize {
        // SAFETY: the caller's promise.
        let ep = unsafe { Self::core(ep) };
        status(ep.cancel(context as usize)) as isize
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
        let ep = unsafe { Self::core(ep) };
        if level != OPT_ENDPOINT {
            return -errno::ENOPROTOOPT;
        }
        let value = match option {
            OPT_MIN_MULTI_RECV => ep.min_multi_recv(),
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
        let (ep, value) = unsafe { (Self::core(ep), copy::bytes(value, len)) };
        if (level, option) != (OPT_ENDPOINT, OPT_MIN_MULTI_RECV) {
            return -errno::ENOPROTOOPT;
        }
        let Ok(value) = value.try_into() else { return -errno::EINVAL };
        ep.set_min_multi_recv(usize::from_ne_bytes(value));
        0
    }

    /// # Safety
    /// As for `cancel`.
    unsafe extern "C" fn size_left(ep: *mut FidEp) -> isize {
        // SAFETY: the caller's promise.
        let ep = unsafe { Self::core(ep) };
        OPERATIONS_MAX.saturating_sub(ep.under_way()) as isize
    }

    /// An endpoint's address is nobody's choice; its place is chosen when it is opened.
    ///
    /// # Safety
    /// The address is as long as is said.
    unsafe extern "C" fn setname(ep: *mut Fid, address: *mut c_void, len: usize) -> c_int {
        // SAFETY: the caller's promise.
        let (ep, bytes) = unsafe { (Self::core(ep), copy::bytes(address, len)) };
        match Address::from_bytes(bytes) {
            None => -errno::EINVAL,
            Some(address) if address == ep.address => 0,
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
            let ep = Self::core(ep);
            let room = std::mem::replace(&mut *room, Address::SIZE);
            copy::fill(place, room, &ep.address.to_bytes());
            if room < Address::SIZE { -errno::ETOOSMALL } else { 0 }
        }
    }
}

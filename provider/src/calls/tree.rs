//! Trees that `fi_getinfo` hands out, made so that any libfabric can free them.
//!
//! `fi_freeinfo` frees every part with free(3), and versions differ only in how much of a part they
//! look at. So each part comes from calloc(3), longer than any version knows it, the rest zeros.

use crate::abi::{DomainAttr, EpAttr, FabricAttr, FidDomain, FidFabric, Info, RxAttr, TxAttr};
use crate::info::address::Address;
use crate::info::hints::Hints;
use crate::info::offer::Answer;
use crate::sys::structure::head_of;
use ayre_guest::copy;
use ayre_guest::layout;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

/// Zeros after each part, for what later versions append.
const MARGIN: usize = 256;

/// A part of a tree holding `value`; null without memory.
fn part<T: Copy>(value: T) -> *mut T {
    // SAFETY: it takes any size.
    let place: *mut T = unsafe { libc::calloc(1, size_of::<T>() + MARGIN) }.cast();
    if !place.is_null() {
        // SAFETY: there is room for a `T`, and calloc aligns for every type of C.
        unsafe { place.write(value) };
    }
    place
}

fn bytes(value: &[u8]) -> *mut c_void {
    // SAFETY: it takes any size.
    let place = unsafe { libc::calloc(1, value.len() + MARGIN) };
    // SAFETY: the place is as long or null.
    unsafe { copy::fill(place, value.len(), value) };
    place
}

fn text(value: &CStr) -> *mut c_char {
    bytes(value.to_bytes_with_nul()).cast()
}

/// The list of C that says what `answers` say, in their order.
pub(crate) fn build(answers: &[Answer]) -> *mut Info {
    answers.iter().rev().fold(null_mut(), |next, answer| {
        let info = one(answer);
        if info.is_null() {
            return next;
        }
        // SAFETY: `one` has just made it.
        unsafe { (*info).next = next };
        info
    })
}

fn one(answer: &Answer) -> *mut Info {
    let address = |address: &Option<Address>| match address {
        Some(address) => (bytes(&address.to_bytes()), Address::SIZE),
        None => (null_mut(), 0),
    };
    let (src_addr, src_addrlen) = address(&answer.source);
    let (dest_addr, dest_addrlen) = address(&answer.destination);
    let domain = DomainAttr {
        domain: answer.domain_fid as *mut FidDomain,
        name: text(answer.domain_name),
        ..answer.domain
    };
    let fabric = FabricAttr {
        fabric: answer.fabric_fid as *mut FidFabric,
        name: text(answer.fabric_name),
        ..answer.fabric
    };
    part(Info {
        next: null_mut(),
        caps: answer.caps,
        mode: 0,
        addr_format: Address::FORMAT,
        src_addrlen,
        dest_addrlen,
        src_addr,
        dest_addr,
        handle: null_mut(),
        tx_attr: part::<TxAttr>(answer.tx),
        rx_attr: part::<RxAttr>(answer.rx),
        ep_attr: part::<EpAttr>(answer.ep),
        domain_attr: part(domain),
        fabric_attr: part(fabric),
        nic: null_mut(),
    })
}

/// The hints of a program, read as its version declares them.
///
/// # Safety
/// `info` is null or a tree that a program of this version has made, and stays for `'a`.
pub(crate) unsafe fn hints<'a>(info: *const Info, version: u32) -> Option<Hints<'a>> {
    if info.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; a version's program has allocated at least what that version
    // knows of each structure. Names and addresses are null or there.
    unsafe {
        let info = &*info;
        let size = DomainAttr::LAYOUT.size_at(version.max(layout::version(1, 17)));
        let domain = head_of(info.domain_attr, size);
        let fabric = head_of(info.fabric_attr, size_of::<FabricAttr>());
        Some(Hints {
            caps: info.caps,
            addr_format: info.addr_format,
            source: copy::bytes(info.src_addr, info.src_addrlen),
            destination: copy::bytes(info.dest_addr, info.dest_addrlen),
            tx: head_of(info.tx_attr, size_of::<TxAttr>()),
            rx: head_of(info.rx_attr, size_of::<RxAttr>()),
            ep: head_of(info.ep_attr, size_of::<EpAttr>()),
            domain,
            domain_name: domain.and_then(|domain| copy::text(domain.name)),
            fabric,
            fabric_name: fabric.and_then(|fabric| copy::text(fabric.name)),
        })
    }
}

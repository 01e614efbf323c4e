//! Address vectors: a table for each policy.

use crate::abi::*;
use crate::calls::eq;
use crate::domain::av::{Av, Inserted};
use crate::error::{Code, Outcome, status};
use crate::info::address::Address;
use crate::queue::eq::{Event, EventFailure};
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use ayre_guest::copy;
use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;

/// The calls of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

/// Addresses in one call.
const COUNT_MAX: usize = 1 << 24;

/// Where the results of an insertion go.
#[derive(Clone, Copy)]
struct Results {
    /// Numbers, unless null.
    numbers: *mut u64,
    flags: u64,
    /// Codes if flags say so, otherwise what comes back with events.
    context: *mut c_void,
}

impl<L: Policy> Calls<L> {
    pub(crate) const OPS: &'static OpsAv = &OpsAv {
        insert: Some(Self::insert),
        insertsvc: Some(Self::insertsvc),
        insertsym: Some(Self::insertsym),
        remove: Some(Self::remove),
        lookup: Some(Self::lookup),
        straddr: Some(straddr),
        ..OpsAv::REFUSING
    };

    /// # Safety
    /// The vector is open.
    unsafe fn at<'a>(av: *const FidAv) -> &'a Av<L> {
        // SAFETY: the caller's promise.
        unsafe { Object::<FidAv, Av<L>>::at(av) }
    }

    /// # Safety
    /// As the manual page says: there are `count` addresses, and room for as many numbers, if any.
    unsafe extern "C" fn insert(
        av: *mut FidAv,
        addresses: *const c_void,
        count: usize,
        numbers: *mut u64,
        flags: u64,
        context: *mut c_void,
    ) -> c_int {
        if count > COUNT_MAX || addresses.is_null() && count > 0 {
            return status(Err(Code::INVALID));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = copy::values(addresses.cast::<[u8; Address::SIZE]>(), count);
            let addresses: Vec<_> = bytes.iter().map(|it| Address::from_bytes(it)).collect();
            Self::report(av, &addresses, Results { numbers, flags, context })
        }
    }

    /// # Safety
    /// As the manual page says: texts are null or there, and there is room for a number, if any.
    unsafe extern "C" fn insertsvc(
        av: *mut FidAv,
        node: *const c_char,
        service: *const c_char,
        numbers: *mut u64,
        flags: u64,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            let (node, service) = (copy::text(node), copy::text(service));
            if node.is_none() && service.is_none() {
                return status(Err(Code::INVALID));
            }
            let node = node.map(|it| it.to_string_lossy());
            let service = service.map(|it| it.to_string_lossy());
            let address = Address::resolve(node.as_deref(), service.as_deref(), 0);
            Self::report(av, &[address], Results { numbers, flags, context })
        }
    }

    /// # Safety
    /// As the manual page says: texts are there, with room for as many numbers, if any.
    unsafe extern "C" fn insertsym(
        av: *mut FidAv,
        node: *const c_char,
        nodes: usize,
        service: *const c_char,
        services: usize,
        numbers: *mut u64,
        flags: u64,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller's promise.
        let (node, service) = unsafe { (copy::text(node), copy::text(service)) };
        let (Some(node), Some(service)) = (node, service) else {
            return status(Err(Code::INVALID));
        };
        if nodes.checked_mul(services).is_none_or(|count| count > COUNT_MAX) {
            return status(Err(Code::INVALID));
        }
        let addresses =
            symmetric(&node.to_string_lossy(), nodes, &service.to_string_lossy(), services);
        // SAFETY: the caller's promise.
        unsafe { Self::report(av, &addresses, Results { numbers, flags, context }) }
    }

    /// Inserts, and reports in the way that the vector and the flags ask for.
    ///
    /// # Safety
    /// The vector is open, and the results have room for as many as there are addresses.
    unsafe fn report(av: *const FidAv, addresses: &[Option<Address>], results: Results) -> c_int {
        let insert = || -> Outcome<c_int> {
            // SAFETY: the caller's promise.
            let vector = unsafe { Self::at(av) };
            let eq = vector.reports_to()?;
            let allowed = if eq.is_some() { MORE } else { MORE | SYNC_ERR };
            if results.flags & !allowed != 0 {
                return Err(Code::BAD_FLAGS);
            }
            if results.flags & SYNC_ERR != 0 && results.context.is_null() {
                return Err(Code::INVALID);
            }
            let inserted = vector.insert(addresses);
            // SAFETY: the caller's promise.
            unsafe { put(&inserted, results) };
            let count = inserted.iter().filter(|it| it.is_ok()).count();
            let Some(eq) = eq else { return Ok(count as c_int) };
            for (index, code) in
                inserted.iter().enumerate().filter_map(|(i, it)| it.err().map(|code| (i, code)))
            {
                let (fid, context) = (av as usize, results.context as usize);
                let data = index as u64;
                eq.push_failure(EventFailure { fid, context, data, err: code.0 });
            }
            let bytes = eq::entry(av.cast(), results.context, count as u64);
            eq.push(Event { number: AV_COMPLETE, bytes })?;
            Ok(0)
        };
        insert().unwrap_or_else(|code| -code.0)
    }

    /// # Safety
    /// There are `count` numbers.
    unsafe extern "C" fn remove(
        av: *mut FidAv,
        numbers: *mut u64,
        count: usize,
        flags: u64,
    ) -> c_int {
        if flags != 0 {
            return status(Err(Code::BAD_FLAGS));
        }
        if count > COUNT_MAX || numbers.is_null() && count > 0 {
            return status(Err(Code::INVALID));
        }
        // SAFETY: the caller's promise.
        status(unsafe { Self::at(av).remove(copy::values(numbers, count)) })
    }

    /// # Safety
    /// There is as much room as is said.
    unsafe extern "C" fn lookup(
        av: *mut FidAv,
        number: u64,
        place: *mut c_void,
        room: *mut usize,
    ) -> c_int {
        if room.is_null() {
            return status(Err(Code::INVALID));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let Some(address) = Self::at(av).address(number) else {
                return status(Err(Code::INVALID));
            };
            copy::fill(place, *room, &address.to_bytes());
            *room = Address::SIZE;
        }
        0
    }
}

/// Writes numbers and codes where they are wanted.
///
/// # Safety
/// There is room for as many.
unsafe fn put(inserted: &[Inserted], results: Results) {
    for (at, it) in inserted.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            if !results.numbers.is_null() {
                results.numbers.add(at).write(it.unwrap_or(ADDR_NOTAVAIL));
            }
            if results.flags & SYNC_ERR != 0 {
                let codes = results.context.cast::<c_int>();
                codes.add(at).write(it.err().map_or(0, |code| code.0));
            }
        }
    }
}

/// The addresses of a range of nodes, each with a range of services. Nodes are numbered by their
/// address, or by the digits at the end of their name.
fn symmetric(node: &str, nodes: usize, service: &str, services: usize) -> Vec<Option<Address>> {
    let digits = node.len() - node.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, suffix) = node.split_at(node.len() - digits);
    let is_address = node.parse::<std::net::IpAddr>().is_ok();
    let base = |index: usize| {
        if is_address || nodes == 1 {
            return Address::resolve(Some(node), Some(service), 0)?.step(index, 0);
        }
        let number = suffix.parse::<usize>().ok()?.checked_add(index)?;
        let name = format!("{stem}{number:0width$}", width = suffix.len());
        Address::resolve(Some(&name), Some(service), 0)
    };
    let all = |index| {
        let base = base(index);
        (0..services).map(move |port| base.and_then(|base| base.step(0, port)))
    };
    (0..nodes).flat_map(all).collect()
}

/// # Safety
/// There is an address, and as much room as is said.
unsafe extern "C" fn straddr(
    _av: *mut FidAv,
    address: *const c_void,
    place: *mut c_char,
    room: *mut usize,
) -> *const c_char {
    if room.is_null() {
        return place;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = copy::bytes(address, Address::SIZE);
        let text = match Address::from_bytes(bytes) {
            Some(address) => address.to_string(),
            None => "no address of ayre's".to_owned(),
        };
        copy::print(place, *room, &text);
        *room = text.len() + 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_go_through_services_first() {
        let text = |all: Vec<Option<Address>>| {
            let all = all.iter().map(|it| it.map_or("none".to_owned(), |it| it.to_string()));
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            text(symmetric("10.1.1.1", 2, "5000", 2)),
            "fi_ayre://10.1.1.1:5000 fi_ayre://10.1.1.1:5001 \
             fi_ayre://10.1.1.2:5000 fi_ayre://10.1.1.2:5001"
        );
        assert_eq!(text(symmetric("localhost", 1, "7", 1)), "fi_ayre://127.0.0.1:7");
        assert_eq!(text(symmetric("localhost", 2, "7", 1)), "none none");
        assert_eq!(text(symmetric("10.1.1.1", 1, "65535", 2)), "fi_ayre://10.1.1.1:65535 none");
    }
}

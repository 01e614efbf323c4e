//! How libfabric finds us, what it asks, and how it opens a fabric.

use crate::abi::*;
use crate::calls::{fabric, fid, tree};
use crate::domain::Fabric;
use crate::error::{Code, Outcome, status};
use crate::info::address::Address;
use crate::info::hints::Hints;
use crate::info::offer::{Answer, KINDS, Kind, Offer, PROVIDER_VERSION};
use crate::info::parameters;
use crate::object::registry::{self, Entity};
use crate::sys::core;
use crate::sys::object::Object;
use ayre::log::Level;
use ayre_guest::copy;
use ayre_guest::layout::version;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// The structure by which libfabric knows us. The library writes to its context; we write to
/// nothing.
struct Card(UnsafeCell<Provider>);

// SAFETY: we never read or write it after it is handed out; libfabric guards its part itself.
unsafe impl Sync for Card {}

static CARD: Card = Card(UnsafeCell::new(Provider {
    version: PROVIDER_VERSION,
    // Programs that ask for a later version than this are not shown the provider. There is no
    // upper check, and each call is answered by the version that it was made with.
    fi_version: version(2, 99),
    context: Context { internal: [null_mut(); 4] },
    name: c"ayre".as_ptr(),
    getinfo: Some(getinfo),
    fabric: Some(open),
    cleanup: Some(cleanup),
}));

/// The entry: libfabric calls it once, after it has loaded the library.
// SAFETY: by libfabric's convention no other library of a process has this name.
#[unsafe(no_mangle)]
#[allow(clippy::unnecessary_safety_comment, reason = "it is the attribute's")]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    registry::watch_forks();
    core::introduce(CARD.0.get());
    ayre::log::set_sink(tell_of_engine);
    parameters::define();
    CARD.0.get()
}

/// Passes the engine's log on to libfabric's log.
fn tell_of_engine(level: Level, text: &str) {
    let level = match level {
        Level::ERROR | Level::WARN => LOG_WARN,
        Level::INFO => LOG_INFO,
        Level::DEBUG | Level::TRACE => LOG_DEBUG,
    };
    core::log((level, LOG_EP_CTRL), format_args!("{text}"));
}

/// Threads of ours stop. Objects that the program has left open stay as they are, as does the
/// library, which is never unmapped.
extern "C" fn cleanup() {
    registry::abandon();
}

/// # Safety
/// As the manual page says: texts and hints are null or there.
unsafe extern "C" fn getinfo(
    api: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
    info: *mut *mut Info,
) -> c_int {
    if info.is_null() {
        return status(Err(Code::INVALID));
    }
    // SAFETY: the caller's promise.
    let (place, hints) = unsafe {
        let place = Place { node: copy::text(node), service: copy::text(service), flags };
        (place, tree::hints(hints, api))
    };
    let outcome = answers(api, &place, hints.as_ref()).map(|answers| {
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(info, tree::build(&answers)) };
    });
    status(outcome)
}

/// Where a program wants to be, or whom it wants to reach.
struct Place<'a> {
    node: Option<&'a CStr>,
    service: Option<&'a CStr>,
    flags: u64,
}

/// Flags of `fi_getinfo`; the upper ones are the core's own.
const FLAGS: u64 = SOURCE | NUMERICHOST | PROV_ATTR_ONLY | RESCAN | 0x3f << 58;

fn answers(api: u32, place: &Place<'_>, hints: Option<&Hints<'_>>) -> Outcome<Vec<Answer>> {
    if place.flags & !FLAGS != 0 {
        return Err(Code::BAD_FLAGS);
    }
    let (source, destination) = ends(place, hints).ok_or(Code::NO_DATA)?;
    // Programs take it that an endpoint is somewhere, and read where: on this host, at no port.
    let source = source.or_else(|| Address::resolve(None, None, 0));
    let domain = hints.and_then(|hints| hints.domain).map(|domain| domain.domain);
    let domain = match domain.filter(|domain| !domain.is_null()) {
        Some(domain) => {
            let domain = registry::any(domain).filter(|object| object.body().maps_keys());
            Some(domain.ok_or(Code::NO_DATA)?)
        }
        None => None,
    };
    let answer = |kind: &'static Kind| {
        let fabric_fid = fabric_fid(domain.as_ref(), kind, api);
        let answer = answer(kind, api, hints)?;
        Some(Answer { source, destination, fabric_fid, ..answer })
    };
    let answers: Vec<_> = KINDS.iter().filter_map(answer).collect();
    if answers.is_empty() { Err(Code::NO_DATA) } else { Ok(answers) }
}

/// By what the program knows a fabric that it has open: the one of its domain, if it names a
/// domain, or the first. Open MPI 5 counts how often it uses one, and knows it by this.
fn fabric_fid(domain: Option<&Arc<dyn Entity>>, kind: &'static Kind, api: u32) -> usize {
    registry::handle_of(|object| match domain.and_then(|domain| domain.body().fabric()) {
        Some(fabric) => Arc::ptr_eq(object, fabric),
        None => registry::typed::<FidFabric, Fabric>(object)
            .is_some_and(|fabric| fabric.kind.fabric == kind.fabric && fabric.api == api),
    })
}

fn answer(kind: &'static Kind, api: u32, hints: Option<&Hints<'_>>) -> Option<Answer> {
    let offer = Offer::now();
    let Some(hints) = hints else { return Some(offer.answer(kind, api)) };
    match hints.answer(&offer, kind, api) {
        Ok(answer) => Some(answer),
        Err(unmet) => {
            let fabric = kind.fabric.to_string_lossy();
            core::tell(LOG_CORE, format_args!("{fabric} is not what is asked for: {unmet}"));
            None
        }
    }
}

/// The address that endpoints are to have, and the one that is to be reached, as far as the program
/// says; none if it says something that is not so.
fn ends(
    place: &Place<'_>,
    hints: Option<&Hints<'_>>,
) -> Option<(Option<Address>, Option<Address>)> {
    let read = |bytes: &[u8]| {
        if bytes.is_empty() { Some(None) } else { Address::from_bytes(bytes).map(Some) }
    };
    let hinted = |bytes: fn(&Hints<'_>) -> Vec<u8>| read(&hints.map(bytes).unwrap_or_default());
    let text = |text: Option<&CStr>| text.map(|text| text.to_string_lossy().into_owned());
    let (node, service) = (text(place.node), text(place.service));
    let is_named = node.is_some() || service.is_some();
    let named = Address::resolve(node.as_deref(), service.as_deref(), place.flags);
    if place.flags & SOURCE != 0 {
        let source = named.filter(|source| is_named && source.is_here())?;
        return Some((Some(source), hinted(|hints| hints.destination.to_vec())?));
    }
    let source = hinted(|hints| hints.source.to_vec())?;
    match is_named {
        true => Some((source, Some(named?))),
        false => Some((source, hinted(|hints| hints.destination.to_vec())?)),
    }
}

/// # Safety
/// As the manual page says: the attributes are there, with names that are null or there.
unsafe extern "C" fn open(
    attr: *mut FabricAttr,
    place: *mut *mut FidFabric,
    context: *mut c_void,
) -> c_int {
    if attr.is_null() || place.is_null() {
        return status(Err(Code::INVALID));
    }
    // SAFETY: not null, and the caller's promise.
    let (name, api) = unsafe { (copy::text((*attr).name), (*attr).api_version) };
    let Some(kind) = KINDS.iter().find(|kind| name == Some(kind.fabric)) else {
        return status(Err(Code::NO_DATA));
    };
    let head =
        FidFabric { fid: fid::fid(CLASS_FABRIC, context), ops: &fabric::OPS, api_version: api };
    let handle = registry::add(Object::new(head, Fabric { kind, api }));
    // SAFETY: not null, and the caller's promise.
    unsafe { copy::put(place, handle) };
    0
}

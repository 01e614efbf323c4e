//! How libfabric finds us, what it asks, and how it opens a fabric.

use crate::abi::layout::version;
use crate::abi::*;
use crate::address::Address;
use crate::calls::{fabric, fid};
use crate::code::{Code, Outcome, status};
use crate::domain::Fabric;
use crate::hints::Hints;
use crate::offer::{Answer, CQ_SIZE, KINDS, Kind, Offer, PROVIDER_VERSION};
use crate::registry::{self, Entity};
use crate::sys::object::Object;
use crate::sys::{copy, core, tree};
use crate::trouble;
use ayre::log::Level;
use ayre::{EndpointOptions, SetupError};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// What libfabric knows us by; it writes to the context, and we to nothing.
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

const CQ_SIZE_NAME: &CStr = c"cq_size";
const NET: &CStr = c"net";
const KEY: &CStr = c"key";
const PORTS: &CStr = c"ports";
const PROTECTION: &CStr = c"protection";
const PLAIN: &CStr = c"plain";
const ETHERNET: &CStr = c"ethernet";
const FAULTS: &CStr = c"faults";
const CAPTURE: &CStr = c"capture";
const MEMORY: &CStr = c"memory";
const SILENCE: &CStr = c"silence";
const DEAD_AFTER: &CStr = c"dead_after";

/// What a user can choose.
const PARAMETERS: [(&CStr, &CStr); 12] = [
    (
        CQ_SIZE_NAME,
        c"Completions of a completion queue whose program does not say how many (1024)",
    ),
    (
        NET,
        c"Where other hosts reach endpoints: interfaces, networks such as 10.1.0.0/16, or \
          addresses of this host, with commas between; none for nowhere (all addresses of \
          interfaces that are up)",
    ),
    (
        KEY,
        c"A file of mode 0600 with 64 hexadecimal digits, the same on all hosts of a job: without \
          it, addresses let nobody in from another host (none)",
    ),
    (
        PORTS,
        c"UDP ports that endpoints take, for firewalls: first-last (any that is free)",
    ),
    (
        PROTECTION,
        c"Links between hosts: sealed (encrypted and authenticated), or plain, for closed networks \
          (sealed)",
    ),
    (PLAIN, c"The same as protection=plain (no)"),
    (
        ETHERNET,
        c"Between hosts of one Ethernet, frames of its own for short messages, which takes half \
          the time and CAP_NET_RAW: required, or it is an error; never (where ranks may)",
    ),
    (
        FAULTS,
        c"What is done to datagrams on purpose, to try what that does: loss=5%,dup=1% (nothing)",
    ),
    (
        CAPTURE,
        c"Into which file each rank writes what it tells other hosts and hears from them, for \
          Wireshark, before it is encrypted: /tmp/job-{rank}.pcap (nothing)",
    ),
    (
        MEMORY,
        c"Memory that an endpoint may take, half of it for messages that wait for a receive: 512M \
          (what the machine and the control groups allow, divided by the endpoints of the host)",
    ),
    (
        SILENCE,
        c"Seconds without a sign of life after which another host's process is not heard: what \
          goes to it waits (3)",
    ),
    (
        DEAD_AFTER,
        c"Seconds without a sign of life after which it is taken for dead (60)",
    ),
];

/// The entry: libfabric calls it once, after it has loaded the library.
// SAFETY: by libfabric's convention no other library of a process has this name.
#[unsafe(no_mangle)]
#[allow(clippy::unnecessary_safety_comment, reason = "it is the attribute's")]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    registry::watch_forks();
    ayre::log::set_sink(tell_of_engine);
    for (name, help) in PARAMETERS {
        core::define(CARD.0.get(), name, help);
    }
    CARD.0.get()
}

/// Tells the user something, if he wants to know.
pub(crate) fn tell(area: c_int, what: std::fmt::Arguments<'_>) {
    core::tell(CARD.0.get(), (LOG_INFO, area), what);
}

/// Tells the user of something that is in the way.
pub(crate) fn warn(area: c_int, what: std::fmt::Arguments<'_>) {
    core::tell(CARD.0.get(), (LOG_WARN, area), what);
}

/// What the engine tells goes to libfabric's log.
fn tell_of_engine(level: Level, text: &str) {
    let level = match level {
        Level::ERROR | Level::WARN => LOG_WARN,
        Level::INFO => LOG_INFO,
        Level::DEBUG | Level::TRACE => LOG_DEBUG,
    };
    core::tell(CARD.0.get(), (level, LOG_EP_CTRL), format_args!("{text}"));
}

/// How large queues are whose programs do not say.
///
/// # Errors
/// `EINVAL` where the user has asked for what is no size; libfabric's log says so.
pub(crate) fn cq_size() -> Outcome<usize> {
    let chosen = chosen(CQ_SIZE_NAME, "a number of completions from 1 to 2^24", completions);
    let chosen = chosen.map_err(|error| trouble::of_setup("fi_cq_open", &error))?;
    Ok(chosen.unwrap_or(CQ_SIZE))
}

fn completions(text: &str) -> Option<usize> {
    text.parse().ok().filter(|size| (1..=1 << 24).contains(size))
}

/// What the user has chosen of a parameter that no variable of Ayre's has a name for.
// spec: LIFE-30
fn chosen<T>(
    name: &CStr,
    values: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, SetupError> {
    let Some(text) = core::text_parameter(CARD.0.get(), name) else { return Ok(None) };
    let name = name.to_string_lossy().to_ascii_uppercase();
    let wrong = || SetupError::Environment(format!("FI_AYRE_{name}={text}: it may be {values}"));
    parse(&text).map(Some).ok_or_else(wrong)
}

/// How endpoints are to be reached.
///
/// # Errors
/// `EINVAL` where the user has asked for what is not there or makes no sense; libfabric's log says
/// why.
pub(crate) fn endpoint_options() -> Outcome<EndpointOptions> {
    options().map_err(|error| trouble::of_setup("fi_endpoint", &error))
}

fn options() -> Result<EndpointOptions, SetupError> {
    check_names()?;
    let options = EndpointOptions::of_settings("FI_", |word| {
        let (name, _) = PARAMETERS.iter().find(|(name, _)| name.to_str() == Ok(word))?;
        let text = core::text_parameter(CARD.0.get(), name)?;
        Some(if *name == ETHERNET { ethernet(&text).to_owned() } else { text })
    })?;
    let is_plain = chosen(PLAIN, "`1` or `0`, `yes` or `no`", yes_or_no)?;
    Ok(if is_plain == Some(true) { options.plain() } else { options })
}

/// This was yes or no.
fn ethernet(text: &str) -> &str {
    match yes_or_no(text) {
        Some(true) => "required",
        Some(false) => "never",
        None => text,
    }
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Some(true),
        "0" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// Whether all that the user sets is there.
// spec: LIFE-30
fn check_names() -> Result<(), SetupError> {
    let names = PARAMETERS.map(|(name, _)| name.to_string_lossy().to_ascii_uppercase());
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut ours = set.filter_map(|name| name.strip_prefix("FI_AYRE_").map(str::to_owned));
    match ours.find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let there = names.map(|name| format!("FI_AYRE_{name}")).join(", ");
            Err(SetupError::Environment(format!("no variable FI_AYRE_{name}; there are {there}")))
        }
    }
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
            tell(LOG_CORE, format_args!("{fabric} is not what is asked for: {unmet}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    // spec: LIFE-30
    #[test]
    fn the_page_of_settings_has_all_parameters() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (name, _) in PARAMETERS {
            let name = name.to_string_lossy().to_ascii_uppercase();
            assert!(page.contains(&format!("FI_AYRE_{name}")), "docs/settings.md lacks {name}");
        }
    }
}

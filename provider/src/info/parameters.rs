//! The user's choices by libfabric's parameters: variables named `FI_AYRE_...`.

use crate::error::Outcome;
use crate::error::trouble;
use crate::info::offer::CQ_SIZE;
use crate::sys::core;
use ayre::{EndpointOptions, SetupError};
use std::ffi::CStr;

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
const RECORD: &CStr = c"record";
const SILENCE: &CStr = c"silence";
const DEAD_AFTER: &CStr = c"dead_after";

/// The parameters.
const PARAMETERS: [(&CStr, &CStr); 13] = [
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
        RECORD,
        c"Folder into which each rank writes what it posts, for ayre sim merge, which makes a \
          schedule of it for the simulator (nothing)",
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

/// Makes them known, for `fi_info -e` to list.
pub(crate) fn define() {
    for (name, help) in PARAMETERS {
        core::define(name, help);
    }
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

/// The folder of recordings, if calls are to be recorded.
pub(crate) fn record() -> Option<String> {
    core::text_parameter(RECORD)
}

fn completions(text: &str) -> Option<usize> {
    text.parse().ok().filter(|size| (1..=1 << 24).contains(size))
}

/// The user's choice for a parameter without a variable of Ayre's.
// spec: LIFE-30
fn chosen<T>(
    name: &CStr,
    values: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, SetupError> {
    let Some(text) = core::text_parameter(name) else { return Ok(None) };
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
        let text = core::text_parameter(name)?;
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

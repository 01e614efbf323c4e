//! The declarations beside what a C compiler says of libfabric's own headers: every structure,
//! member, table and constant, in every generation that is at hand.
//!
//! `tests/layouts/` holds what the headers of several versions say. `AYRE_LIBFABRIC_INCLUDE` names
//! more folders with headers, as `PATH` does, and `AYRE_RECORD_LAYOUTS` a folder to write their
//! figures to.

use ayre_fi::abi::{errno, flags, layouts};
use ayre_guest::layout::headers::Declared;
use ayre_guest::layout::version;
use std::path::Path;

const HEADERS: [&str; 13] = [
    "poll.h",
    "rdma/fabric.h",
    "rdma/fi_domain.h",
    "rdma/fi_endpoint.h",
    "rdma/fi_eq.h",
    "rdma/fi_cm.h",
    "rdma/fi_tagged.h",
    "rdma/fi_rma.h",
    "rdma/fi_atomic.h",
    "rdma/fi_collective.h",
    "rdma/fi_errno.h",
    "rdma/providers/fi_prov.h",
    "rdma/providers/fi_log.h",
];

fn declared() -> Declared<'static> {
    let errors = errno::ALL.iter().map(|&(name, value)| (name, u64::try_from(value).unwrap(), 0));
    let flags = flags::ALL.iter().map(|&(name, value)| (name, value, 0));
    Declared {
        headers: &HEADERS,
        version: "(FI_MAJOR_VERSION << 16) | FI_MINOR_VERSION",
        prefix: "struct ",
        layouts: layouts().collect(),
        values: errors.chain(flags).collect(),
    }
}

#[test]
fn declarations_agree_with_the_installed_headers() {
    let here = Path::new("/usr/include");
    assert!(here.join("rdma/fi_domain.h").exists(), "install libfabric-dev");
    let declared = declared();
    declared.check(&declared.ask(here), "installed");
}

#[test]
fn declarations_agree_with_headers_that_are_named() {
    declared().check_named("AYRE_LIBFABRIC_INCLUDE", "AYRE_RECORD_LAYOUTS");
}

#[test]
fn declarations_agree_with_recorded_generations() {
    declared().check_recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layouts"));
}

/// Whether a wrong declaration would be found.
#[test]
fn a_wrong_figure_is_noticed() {
    let layout = layouts().find(|layout| layout.name == "fi_domain_attr").unwrap();
    let (old, new) = (version(1, 17), version(2, 6));
    assert_eq!(layout.size_at(old), 192);
    assert_eq!(layout.size_at(new), 224);
    let lines = declared().expected(old);
    assert!(lines.contains("size fi_domain_attr 192"));
    assert!(!lines.iter().any(|line| line.contains("max_ep_auth_key")));
    assert!(declared().expected(new).contains("member fi_domain_attr max_ep_auth_key 192 8"));
}

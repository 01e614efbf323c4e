//! The declarations beside what a C compiler says of UCX's own headers: every structure, member,
//! status and number, in every generation that is at hand.
//!
//! `tests/layouts/` holds what the headers of several versions say. `AYRE_UCX_INCLUDE` names
//! folders with headers, as `PATH` does, and `AYRE_RECORD_LAYOUTS` a folder to write their figures
//! to.

use ayre_guest::layout::headers::Declared;
use ayre_guest::layout::version;
use ayre_ucp::abi::{layouts, numbers, status};
use std::path::PathBuf;

fn declared() -> Declared<'static> {
    let statuses = status::ALL.iter().map(|(name, status)| (*name, i64::from(status.0) as u64, 0));
    Declared {
        headers: &["ucp/api/ucp.h"],
        version: "(UCP_API_MAJOR << 16) | UCP_API_MINOR",
        prefix: "",
        layouts: layouts().collect(),
        values: statuses.chain(numbers::all()).collect(),
    }
}

fn recorded() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/layouts")
}

#[test]
fn declarations_agree_with_headers_that_are_named() {
    declared().check_named("AYRE_UCX_INCLUDE", "AYRE_RECORD_LAYOUTS");
}

#[test]
fn declarations_agree_with_recorded_generations() {
    declared().check_recorded(&recorded());
}

/// The study's table of sizes: what a generation has only, and what has grown.
#[test]
fn structures_grow_from_generation_to_generation() {
    let size = |name: &str, minor| {
        let layout = layouts().find(|layout| layout.name == name).unwrap();
        (layout.since() <= version(1, minor)).then(|| layout.size_at(version(1, minor)))
    };
    let sizes = |name| [10, 13, 22].map(|minor| size(name, minor));
    assert_eq!(sizes("ucp_params_t"), [Some(72), Some(80), Some(88)]);
    assert_eq!(sizes("ucp_request_param_t"), [Some(64), Some(72), Some(96)]);
    assert_eq!(sizes("ucp_ep_attr_t"), [None, Some(296), Some(328)]);
    assert_eq!(sizes("ucp_dt_local_sgl_t"), [None, None, Some(48)]);
}

#[test]
fn the_number_of_unknown_memory_is_that_of_the_program() {
    let of = |minor| numbers::unknown_memory_type(version(1, minor));
    assert_eq!([10, 15, 16, 17, 20, 21, 22].map(of), [5, 5, 6, 9, 9, 10, 10]);
}

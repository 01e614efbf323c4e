//! The suite over ports of other processes, each behind a driver: how a library of another language
//! is held to it.
use ayre_conformance::driver::Driven;
use ayre_conformance::suite;
use ayre_conformance::suite::{Case, cases, depot_cases, messenger_cases};
use std::process::Command;

suite! {
    /// Two ports, whose initiator performs operations itself.
    direct: ayre_conformance::driver::Driven::direct(env!("CARGO_BIN_EXE_ayre-driver"));
    posted, waited, depots, ports, shared_depots, polled, messengers
}
suite! {
    /// Two ports, whose target performs operations in its own calls.
    mediated: ayre_conformance::driver::Driven::mediated(env!("CARGO_BIN_EXE_ayre-driver"));
    posted, depots, ports, shared_depots, messengers, mediated, inline
}

/// A case that the table gains is run through a driver as well.
#[test]
fn every_case_is_run_through_a_driver() {
    let this = Command::new(std::env::current_exe().expect("this program")).arg("--list").output();
    let tests = String::from_utf8(this.expect("it runs").stdout).expect("names");
    let cases: Vec<Case<Driven>> = [cases(), depot_cases(), messenger_cases()].concat();
    for case in cases {
        let name = case.name.join("::");
        let is_it = |line: &str| line.split_once("::").is_some_and(|(_, test)| test == name);
        assert!(tests.lines().filter_map(|line| line.strip_suffix(": test")).any(is_it), "{name}");
    }
}

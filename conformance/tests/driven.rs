//! Cases over ports of other processes, each behind a driver: how a library of another language is
//! held to the suite.
use ayre_conformance::driver::Driven;
use ayre_conformance::suite::{Case, cases, depot_cases};
use std::collections::BTreeSet;

const DRIVER: &str = env!("CARGO_BIN_EXE_ayre-driver");

/// Runs some cases: how many.
fn run(is_meant: impl Fn([&str; 3]) -> bool) -> usize {
    let cases = [cases(), depot_cases()].concat();
    let run = |case: Case<_>| {
        eprintln!("{}", case.name.join("::"));
        (case.run)(Driven::direct(DRIVER));
    };
    cases.into_iter().filter(|case| is_meant(case.name)).map(run).count()
}

/// Each is run below, or left out on purpose.
#[test]
fn no_group_is_forgotten() {
    let run = ["posted", "waited", "ports", "depots", "shared_depots"];
    // They depend on how the target makes progress.
    let left_out = ["mediated", "inline"];
    let known: BTreeSet<_> = run.into_iter().chain(left_out).collect();
    let cases: Vec<Case<Driven>> = [cases(), depot_cases()].concat();
    assert_eq!(cases.iter().map(|case| case.name[0]).collect::<BTreeSet<_>>(), known);
}

#[test]
fn what_is_posted() {
    assert_eq!(run(|[group, ..]| group == "posted"), 53);
}

#[test]
fn what_waits() {
    assert_eq!(run(|[group, module, _]| group == "waited" && module != "oracle"), 26);
}

#[test]
#[ignore = "a minute, with a process for each of two ports"]
fn the_oracle() {
    assert_eq!(run(|[group, module, _]| group == "waited" && module == "oracle"), 1);
}

#[test]
fn several_ports() {
    assert_eq!(run(|[group, ..]| group == "ports"), 39);
}

#[test]
fn depots() {
    assert_eq!(run(|[group, ..]| group == "depots" || group == "shared_depots"), 19);
}

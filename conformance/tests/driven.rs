//! Cases over ports of other processes, each behind a driver: how a library of another language is
//! held to the suite.
use ayre_conformance::driver::Driven;
use ayre_conformance::suite::{Case, cases};

const DRIVER: &str = env!("CARGO_BIN_EXE_ayre-driver");

/// What drivers have no calls for, and what takes a minute with a process for each of two ports.
const NOT_CARRIED: [&str; 2] = ["locks", "oracle"];
/// Handles that are shown to a port that has not given them out, which one process cannot be told
/// of another's; and memory that is read when its process has ended.
const LEFT_OUT: [[&str; 2]; 8] = [
    ["handles", "a_capability_is_of_its_port"],
    ["handles", "a_region_is_of_its_port"],
    ["handles", "a_grant_is_of_its_port"],
    ["handles", "faults_have_an_order"],
    ["handles", "names_are_of_a_pair"],
    ["queues", "handles_are_of_their_port"],
    ["batches", "a_batch_is_posted_whole_or_not"],
    ["death", "a_number_can_be_used_again"],
];

/// Runs a group: how many cases.
fn run(group: &str) -> usize {
    let is_carried = |name: [&str; 3]| {
        !NOT_CARRIED.contains(&name[1]) && !LEFT_OUT.contains(&[name[1], name[2]])
    };
    let cases = cases().into_iter().filter(|case| case.name[0] == group && is_carried(case.name));
    let run = |case: Case<_>| {
        eprintln!("{}", case.name.join("::"));
        (case.run)(Driven::direct(DRIVER));
    };
    cases.map(run).count()
}

#[test]
fn what_is_posted() {
    assert_eq!(run("posted"), 47);
}

#[test]
fn what_waits() {
    assert_eq!(run("waited"), 24);
}

#[test]
fn several_ports() {
    assert_eq!(run("ports"), 35);
}

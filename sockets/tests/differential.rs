//! Random programs of socket calls run over TCP and over the library. A model says what TCP
//! allows; all that a program sees must be allowed, with the library and without it.
//!
//! `AYRE_SOCKETS_TEST_HOSTS_EVERY` is 1 where all programs are to be run between hosts, too.
//! `AYRE_SOCKETS_PROGRAMS` is the number of programs, `AYRE_SOCKETS_SEED` another seed.
//! `AYRE_SOCKETS_TEST_AT_ONCE` searches run side by side, each of that number of programs, with the
//! seeds that follow. More of them than processors find what a quiet machine hides.
//! `AYRE_SOCKETS_WITHOUT` names words: programs that have one of them are left out. So a search
//! goes on beyond a mistake that it has found. `AYRE_SOCKETS_CORPUS` names another folder of
//! programs to run.

#[macro_use]
#[path = "common/mod.rs"]
mod common;
#[path = "differential/ends.rs"]
mod ends;
#[path = "differential/flow.rs"]
mod flow;
#[path = "differential/moves.rs"]
mod moves;
#[path = "differential/process.rs"]
mod process;
#[path = "differential/program.rs"]
mod program;
#[path = "differential/setting.rs"]
mod setting;
#[path = "differential/stdio.rs"]
mod stdio;
#[path = "differential/strand.rs"]
mod strand;
#[path = "differential/wait.rs"]
mod wait;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use common::launch::{Crew, Ending, Folder, Net, ROLE, library};
use common::shared::Shared;
use program::{PROCESSES, Program, Side};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use setting::{FAULT, FAULTS, FOLDER, Fault, Place};

/// Programs of a run that asks for no other number.
const PROGRAMS: u32 = 400;

/// Seconds after which a program hangs. Programs take a few hundredths of a second.
const DEADLINE: u64 = 20;

before_main! {
    match std::env::var(ROLE).as_deref() {
        Ok(process::BEGINS) => process::begin(),
        Ok(moves::CONTINUES) => moves::go_on(),
        _ => {}
    }
}

/// Runs a program once. Its facts come back, or what went wrong.
fn run(program: &Program, net: Net, fault: Option<Fault>) -> Result<BTreeSet<String>, String> {
    let folder = Folder::new();
    std::fs::write(folder.file("program"), program.text()).expect("the program is written");
    let shared = Shared::open(&folder.file("shared"));
    let mut crew = Crew::new();
    for number in 0..PROCESSES {
        let mut command = Crew::command(&folder, process::BEGINS, net);
        command.env(FOLDER, &folder.path).env(process::NUMBER, number.to_string());
        if let Some(fault) = fault {
            command.env(FAULT, format!("{fault:?}"));
        }
        crew.start(&mut command);
    }
    // A wait in vain for an event that another process should bring takes longer than this.
    let deadline = if fault == Some(Fault::Deaf) { 2 } else { DEADLINE };
    let ending = crew.wait(deadline);
    let violations = folder.text("violations");
    if ending == Ending::Well && violations.is_empty() {
        return Ok(folder.text("facts").lines().map(str::to_owned).collect());
    }
    let errors = folder.text("errors");
    Err(format!("{net:?}: {ending:?}\n{violations}{errors}{}", places(program, &shared)))
}

/// Where each end was.
fn places(program: &Program, shared: &Shared) -> String {
    let mut text = String::new();
    for i in 0..program.connections.len() {
        let place = Place::of(i);
        for side in [Side::Client, Side::Server] {
            let at = shared.get(place.at(side));
            let [begun, done, read] =
                [place.begun(side), place.done(side), place.read(side)].map(|w| shared.get(w));
            let (phase, process) = (at >> 32, at as u32);
            text += &format!(
                "connection {i} {side:?}: in phase {phase} as process {process}; of its bytes \
                 {begun} begun, {done} written, {read} read\n"
            );
        }
    }
    text
}

/// How a program is run between hosts, too: one of eight, as that takes longer.
fn turn() -> Option<Net> {
    static PROGRAMS: AtomicU32 = AtomicU32::new(0);
    let every = number("AYRE_SOCKETS_TEST_HOSTS_EVERY", 8);
    let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let are_sealed = (number / every).is_multiple_of(2);
    number.is_multiple_of(every).then_some(Net::Hosts { are_sealed })
}

/// Runs a program over both, and compares; between hosts where that is wanted.
fn compare(program: &Program, between_hosts: Option<Net>) -> Result<(), String> {
    let plain = run(program, Net::Plain, None)?;
    let between_hosts = between_hosts.filter(|_| !program.is_of_one_host());
    let nets = [Some(Net::Library), between_hosts].into_iter().flatten();
    for net in nets.filter(|_| library().is_some()) {
        let over = run(program, net, None)?;
        if plain != over {
            let only: Vec<_> = plain.symmetric_difference(&over).collect();
            return Err(format!("facts that only one of TCP and {net:?} has: {only:#?}"));
        }
    }
    Ok(())
}

fn number(name: &str, default: u32) -> u32 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("the variable is a number"))
}

fn runner(programs: u32, shrinks: u32, later: u32) -> TestRunner {
    let config = Config {
        cases: programs,
        failure_persistence: None,
        max_shrink_iters: shrinks,
        max_shrink_time: 240_000,
        ..Config::default()
    };
    let mut seed = [0; 32];
    let number = number("AYRE_SOCKETS_SEED", 1).wrapping_add(later);
    seed[..4].copy_from_slice(&number.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// Runs random programs by `check`.
fn search(check: impl Fn(&Program) -> Result<(), String> + Sync) {
    std::thread::scope(|scope| {
        for later in 0..number("AYRE_SOCKETS_TEST_AT_ONCE", 1) {
            let check = &check;
            scope.spawn(move || search_from(later, check));
        }
    });
}

/// As [`search`], with a later seed.
fn search_from(later: u32, check: impl Fn(&Program) -> Result<(), String>) {
    let programs = number("AYRE_SOCKETS_PROGRAMS", PROGRAMS);
    let mut runner = runner(programs, 300, later);
    let without = std::env::var("AYRE_SOCKETS_WITHOUT").unwrap_or_default();
    let without: Vec<_> = without.split(',').filter(|word| !word.is_empty()).collect();
    let found = runner.run(&program::program(), |program| {
        if without.iter().any(|word| program.text().contains(word)) {
            return Ok(());
        }
        check(&program).map_err(|text| {
            eprintln!("fails:\n{}{text}", program.text());
            TestCaseError::fail(text)
        })
    });
    if let Err(proptest::test_runner::TestError::Fail(reason, program)) = found {
        panic!("{reason}\nthe smallest program, for a file of the corpus:\n{}", program.text());
    }
    found.expect("programs are made");
}

#[test]
fn random_programs_over_tcp_see_what_the_model_allows() {
    search(|program| run(program, Net::Plain, None).map(|_| ()));
}

// spec: SOCK-18, SOCK-22, SOCK-38
#[test]
fn random_programs_see_nothing_that_tcp_does_not_allow() {
    search(|program| compare(program, turn()));
}

#[test]
fn programs_that_once_failed_do_so_no_more() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/corpus");
    let folder = std::env::var_os("AYRE_SOCKETS_CORPUS").map_or(folder, PathBuf::from);
    let mut failed = String::new();
    for entry in std::fs::read_dir(folder).expect("there is a corpus").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("it is text");
        for are_sealed in [false, true] {
            let hosts = Some(Net::Hosts { are_sealed });
            if let Err(reason) = compare(&Program::parse(&text), hosts) {
                failed += &format!("{}: {reason}\n", entry.path().display());
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// The interpreter makes a mistake of each kind on purpose.
#[test]
fn the_model_finds_planted_faults() {
    for fault in FAULTS {
        let found = runner(60, 0, 0).run(&program::program(), |program| {
            let found = run(&program, Net::Plain, Some(fault)).is_err();
            prop_assert!(!found);
            Ok(())
        });
        assert!(found.is_err(), "no program found the fault {fault:?}");
    }
}

/// A text is a program, and the program has that text.
#[test]
fn programs_come_back_from_their_text() {
    runner(200, 300, 0)
        .run(&program::program(), |program| {
            let text = program.text();
            prop_assert_eq!(Program::parse(&text).text(), text);
            Ok(())
        })
        .expect("all do");
}

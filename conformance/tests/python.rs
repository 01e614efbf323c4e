//! The conformance suite over the package for Python: its driver is a program in Python.
//!
//! `scripts/python-try.sh` runs it: `PYTHON_WITH_AYRE` is an interpreter that has the package.
use ayre_conformance::suite;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

/// A program that runs the driver: the suite starts programs without arguments.
static DRIVER: LazyLock<String> = LazyLock::new(|| {
    let python = std::env::var("PYTHON_WITH_AYRE").expect("PYTHON_WITH_AYRE names an interpreter");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("python").join("driver");
    let driver = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-driver");
    let script = format!("#!/bin/sh\nexec '{python}' '{}'\n", folder.display());
    std::fs::write(&driver, script).expect("room for a script");
    std::fs::set_permissions(&driver, PermissionsExt::from_mode(0o755)).expect("a file of ours");
    driver.to_str().expect("a path in UTF-8").to_owned()
});

suite! {
    /// Two ports, whose initiator performs operations itself.
    direct: ayre_conformance::driver::Driven::direct(&crate::DRIVER);
    posted, waited, depots, ports, shared_depots
}
suite! {
    /// Two ports, whose target performs operations in its own calls.
    mediated: ayre_conformance::driver::Driven::mediated(&crate::DRIVER);
    posted, depots, ports, shared_depots, mediated, inline
}

/// Cases that the package does not pass: it has no calls by which groups adapt or are recorded, nor
/// parts of different lengths. As calls may be interrupted, peers do not read their messages in its
/// memory, as one case expects.
const LEFT_OUT: [&str; 4] = [
    "collectives",
    "adaptive",
    "a_peer_that_breaks_the_group_protocol_is_disconnected",
    "a_long_call_ends_with_its_peer",
];

/// Cases about messengers that run at a time: much of their time goes to the start of
/// interpreters.
const AT_ONCE: usize = 3;

/// Runs the cases about messengers.
fn messengers(fabric: fn() -> ayre_conformance::driver::Driven) {
    let is_left_out = |name: &[&str; 3]| name.iter().any(|word| LEFT_OUT.contains(word));
    let cases = suite::messenger_cases().into_iter();
    let left = Mutex::new(cases.filter(|case| !is_left_out(&case.name)));
    let failed = Mutex::new(Vec::new());
    let next = || left.lock().expect("no case runs under the lock").next();
    let run = || {
        while let Some(case) = next() {
            let name = case.name.join("::");
            println!("{name}");
            if std::panic::catch_unwind(|| (case.run)(fabric())).is_err() {
                failed.lock().expect("no case runs under the lock").push(name);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(run))));
    let failed = failed.into_inner().expect("no case runs under the lock");
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn messengers_direct() {
    messengers(|| ayre_conformance::driver::Driven::direct(&DRIVER));
}

#[test]
#[ignore = "takes minutes, and Python's calls are the same over both: in `make soak`"]
fn messengers_mediated() {
    messengers(|| ayre_conformance::driver::Driven::mediated(&DRIVER));
}

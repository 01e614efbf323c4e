//! The conformance suite over the library for C: its driver is a C program.
use crate::built;
use ayre_conformance::suite;
use std::sync::LazyLock;

pub(crate) static DRIVER: LazyLock<String> = LazyLock::new(|| {
    let files = built::sources(&built::folder().join("driver"));
    let driver = built::program("driver", &files, "cc", &[]);
    driver.to_str().expect("a path in UTF-8").to_owned()
});

suite! {
    /// Two ports, whose initiator performs operations itself.
    direct: ayre_conformance::driver::Driven::direct(&crate::conformance::DRIVER);
    posted, waited, depots, ports, shared_depots, polled, messengers
}
suite! {
    /// Two ports, whose target performs operations in its own calls.
    mediated: ayre_conformance::driver::Driven::mediated(&crate::conformance::DRIVER);
    posted, depots, ports, shared_depots, messengers, mediated, inline
}

//! Parameters that a user sets in the environment.

mod common;

#[allow(dead_code, unused_imports, reason = "other tests use more")]
#[allow(unreachable_pub, reason = "a test binary exports nothing")]
#[path = "common/processes.rs"]
mod processes;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use processes::with_processes;
use std::fs::{File, read_to_string};
use std::ptr::null_mut;

/// The sizes that a queue gets whose program says nothing, and one that says 5; and receives in the
/// memory that there is.
fn sizes() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    for (asked, given) in [(0, 77), (5, 5)] {
        let (mut attr, mut cq) = (CqAttr { size: asked, ..blank() }, null_mut());
        assert_eq!(call!(opened.domain, ops.cq_open(&mut attr, &mut cq, null_mut())), 0);
        assert_eq!((attr.size, close(cq)), (given, 0));
    }
    // Half of the memory, and 512 bytes for each: one more is no matter of waiting.
    let end = End::new(&opened, &wishes);
    let mut byte = 0_u8;
    let mut post = || {
        let place = std::ptr::from_mut(&mut byte).cast();
        call!(end.ep, tagged.recv(place, 1, null_mut(), ADDR_UNSPEC, 7, 0, null_mut()))
    };
    assert!((0..1024).all(|_| post() == 0));
    assert_eq!(post(), -(errno::ENOMEM as isize));
    end.close();
}

#[test]
fn the_user_says_how_large_queues_are_and_how_much_memory_endpoints_may_take() {
    with_processes(
        |_, _| sizes(),
        |family| {
            let mut process = family.start_with(|command| {
                command.env("FI_AYRE_CQ_SIZE", "77").env("FI_AYRE_MEMORY", "1M");
            });
            process.succeeds();
        },
    );
}

/// Opens an endpoint, and exits as its test expects.
fn open() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let code = match open_ep(&opened) {
        Ok(ep) => close(ep),
        Err(code) => code,
    };
    assert_eq!(code.to_string(), std::env::var("EXPECTED").unwrap());
}

// spec: LIFE-23, LIFE-30
#[test]
fn a_wrong_parameter_is_an_error_and_the_log_lists_choices() {
    let wrong = [
        ("FI_AYRE_NET", "nonsense", "FI_AYRE_NET=nonsense: nothing here is, or has, the address"),
        ("AYRE_NET", "nonsense", "AYRE_NET=nonsense: nothing here is, or has, the address"),
        ("FI_AYRE_PROTECTION", "foo", "it may be `sealed`, `plain`"),
        ("FI_AYRE_ETHERNET", "maybe", "it may be `never`, `required`"),
        ("FI_AYRE_FAULTS", "loss=5", "a share such as 20%"),
        ("FI_AYRE_PORTS", "many", "FI_AYRE_PORTS=many"),
        ("FI_AYRE_SILENCE", "soon", "FI_AYRE_SILENCE=soon: `soon` is no number of seconds"),
        ("FI_AYRE_DEAD_AFTER", "0", "FI_AYRE_DEAD_AFTER=0: `0` is no number of seconds"),
        ("FI_AYRE_MEMORY", "1", "FI_AYRE_MEMORY=1: 1 bytes are too few; it may be bytes"),
        ("FI_AYRE_PLAIN", "maybe", "FI_AYRE_PLAIN=maybe: it may be `1` or `0`"),
        ("FI_AYRE_CAPTURE", "/nowhere/{rank}", "the capture (AYRE_CAPTURE), /nowhere/"),
        ("FI_AYRE_NETS", "lo", "there are FI_AYRE_CQ_SIZE, FI_AYRE_NET"),
        ("AYRE_NETS", "lo", "Ayre has no variable AYRE_NETS"),
    ];
    let right = [
        ("FI_AYRE_NET", "lo"),
        ("FI_AYRE_NET", "none"),
        ("AYRE_NET", "127.0.0.0/8"),
        ("FI_AYRE_PROTECTION", "plain"),
        ("FI_AYRE_PLAIN", "1"),
        ("FI_AYRE_ETHERNET", "0"),
        ("FI_AYRE_ETHERNET", "never"),
    ];
    with_processes(
        |_, _| open(),
        |family| {
            let said = |name: &str, value: &str, expected: i32| {
                println!("{name}={value}");
                let log = family.directory().join("log");
                let mut process = family.start_with(|command| {
                    command.env(name, value).env("EXPECTED", expected.to_string());
                    command.env("FI_LOG_LEVEL", "warn").stderr(File::create(&log).unwrap());
                });
                process.succeeds();
                read_to_string(log).unwrap()
            };
            for (name, value, words) in wrong {
                let log = said(name, value, -errno::EINVAL);
                assert!(log.contains("fi_endpoint: ") && log.contains(words), "{log}");
            }
            for (name, value) in right {
                let log = said(name, value, 0);
                assert!(!log.contains("fi_endpoint"), "{log}");
            }
        },
    );
}

//! Any text as a policy of sockets, and connections that it decides.
#![no_main]
use ayre_proto::socket::policy::{Act, Place, Policy, Question, Verdict};
use libfuzzer_sys::fuzz_target;
use std::net::{Ipv4Addr, Ipv6Addr};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (policy, faults) = Policy::read(&text, |name| name.parse().ok());
    let lines = text.lines().count() as u32;
    assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)), "{faults:?}");
    // Words of the text itself are what lines are about.
    let word = text.split_whitespace().last().unwrap_or("/").to_owned();
    let (programs, port) = ([word.clone(), "/usr/bin/any".to_owned()], text.len() as u16);
    let places = [
        Place::Tcp((Ipv4Addr::LOCALHOST, port).into()),
        Place::Tcp((Ipv6Addr::LOCALHOST, port).into()),
        Place::Unix(&word),
    ];
    for (at, act) in places.into_iter().flat_map(|at| [(at, Act::Connect), (at, Act::Accept)]) {
        for user in [None, Some(0), Some(1000)] {
            let question = Question { act, at, programs: &programs, user };
            let ruling = policy.judge(&question);
            assert!(ruling.line <= lines);
            assert!(faults.is_empty() || ruling.verdict != Verdict::May, "it is malformed");
            let _ = policy.allows_some(&question);
        }
    }
});

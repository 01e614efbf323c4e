//! Links that do not come about: the connection stays with TCP, and its end is told why.
use super::{Meeting, connect, options, until};
use crate::world::sockets;
use ayre::endpoint::EndpointOptions;
use ayre::socket::Far;
use std::time::Duration;

/// Why a connection of two hosts has no link. The one that accepts may go before the other one
/// takes its invitation.
fn why([near, far]: [EndpointOptions; 2], goes: bool) -> String {
    let (near, far) = (Far::open(&near).unwrap(), Far::open(&far).unwrap());
    let (sockets, name) = sockets();
    let meetings = [(); 2].map(|()| Meeting::new());
    let from = sockets[0].local_addr().unwrap();
    far.invite(&name, (from, near.code()), meetings[1].weak());
    if goes {
        drop(far);
    }
    near.expect(&name, meetings[0].weak());
    until(|| meetings[0].why.get().is_some());
    assert!(meetings[1].why.get().is_none(), "the other end waits");
    meetings[0].why.get().unwrap().clone()
}

// spec: SOCK-75
#[test]
fn an_end_is_told_why_its_link_did_not_come_about() {
    let with = |key: char| options().key(&String::from_iter([key; 64])).unwrap();
    let told = why([with('1'), with('2')], false);
    assert!(told.contains("key"), "{told}");
    let told = why([with('1'), options().plain()], false);
    assert!(told.contains("plain"), "{told}");
    // Equal keys do.
    let hosts = [(); 2].map(|()| Far::open(&with('1')).unwrap());
    connect(&hosts);
}

// spec: SOCK-75
#[test]
fn an_end_is_told_that_a_link_was_not_answered() {
    let second = Duration::from_secs(1);
    let options = || options().plain().dead_after(second).silence(second);
    let told = why([options(), options()], true);
    assert!(told.contains("answer"), "{told}");
}

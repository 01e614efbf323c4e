//! Endpoints of other hosts that go, fall silent, are forgotten, and call again.
mod common;
#[path = "endpoint_net/sides.rs"]
mod sides;

use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{PostedReceive, Sent};
use ayre::network::Partition;
use ayre::{Fault, PostError};
use common::watchdog::Watchdog;
use sides::{SHORT, Side, apart, message, pass, pattern, poll_until, receive, send};

/// Operations under way in either direction end with the other side.
fn check_end(near: &mut Side, mut far: Side, to_far: RemoteId, go: impl FnOnce(Side)) {
    let (mut long, mut waits, mut room) = (vec![1; 100_000], [2; 8], [0; 8]);
    let only_far = |tag, room| PostedReceive { source: Some(to_far), ..receive(tag, room) };
    near.endpoint.receive(only_far(3, &mut room)).expect("there is room");
    for (tag, bytes, delivered) in [(1, &mut long[..], false), (2, &mut waits[..], true)] {
        let sent = send([&mut *near, &mut far], to_far, &message(tag, bytes, delivered));
        assert_eq!(sent, Sent::Pending);
    }
    go(far);
    poll_until([&mut *near], |[near]| near.ends.len() == 3);
    let dead = Err(Fault::PeerDead);
    assert_eq!(near.results(), [(1, dead), (2, dead), (3, dead)]);
    let again = near.endpoint.send(to_far, &message(1, &mut waits, false));
    assert_eq!(again, Err(PostError::Fault(Fault::PeerDead)));
}

// spec: ENV-8, ENV-33
#[test]
fn operations_under_way_end_when_the_peer_leaves() {
    let mut watchdog = Watchdog::start(0);
    for is_plain in [false, true] {
        let [mut near, mut far] = [0, 1].map(|_| Side::open(&apart(is_plain)));
        let to_far = near.remote(&far);
        pass([&mut near, &mut far], to_far, 1);
        check_end(&mut near, far, to_far, drop);
    }
    assert!(!watchdog.stop());
}

// spec: ENV-8, LINK-17
#[test]
fn operations_under_way_end_when_the_peer_falls_silent() {
    let mut watchdog = Watchdog::start(0);
    let cable = Partition::new();
    let mut near = Side::open(&apart(false).silence(SHORT).dead_after(SHORT).partition(&cable));
    let mut far = Side::open(&apart(false).silence(SHORT).dead_after(SHORT));
    let to_far = near.remote(&far);
    pass([&mut near, &mut far], to_far, 1);
    let mut kept = None;
    check_end(&mut near, far, to_far, |far| {
        cable.cut();
        kept = Some(far);
    });
    let mut far = kept.expect("it lives");
    // Who comes back is called anew, as it was not forgotten that it is dead.
    cable.heal();
    let again = far.remote(&near);
    poll_until([&mut far, &mut near], |[far, _]| {
        far.endpoint.send(again, &message(1, &mut [1], false))
            == Err(PostError::Fault(Fault::PeerDead))
    });
    assert!(far.endpoint.forget(again));
    let again = far.remote(&near);
    near.ends.clear();
    pass([&mut far, &mut near], again, 4);
    pass([&mut near, &mut far], to_far, 5);
    assert!(!watchdog.stop());
}

// spec: ENV-8
#[test]
fn messages_sent_before_a_peer_leaves_arrive() {
    let mut watchdog = Watchdog::start(0);
    let mut far = Side::open(&apart(false));
    for round in 0..6 {
        let options = apart(false).linger(sides::LONG);
        let options = if round % 2 == 0 {
            options
        } else {
            options.faults("loss=20%".parse().expect("a plan"))
        };
        let mut near = Side::open(&options);
        let to_far = near.remote(&far);
        pass([&mut near, &mut far], to_far, 0);
        let mut texts: Vec<_> = (0..40).map(|seed| pattern(8 + seed * 10, seed)).collect();
        let mut rooms: Vec<_> = texts.iter().map(|text| vec![0; text.len()]).collect();
        for (tag, room) in (0..).zip(&mut rooms) {
            far.endpoint.receive(receive(tag, room)).expect("there is room");
        }
        for (tag, text) in (0..).zip(&mut texts) {
            let sent = send([&mut near, &mut far], to_far, &message(tag, text, false));
            assert_eq!(sent, Sent::Completed);
        }
        // It goes when all has come.
        std::thread::scope(|scope| {
            let leaving = scope.spawn(move || drop(near));
            poll_until([&mut far], |[far]| far.ends.len() == 40 && leaving.is_finished());
        });
        assert!(far.ends.iter().all(|end| end.result.is_ok()) && rooms == texts);
        far.ends.clear();
    }
    assert_eq!(far.endpoint.counters().malformed(), 0);
    assert!(!watchdog.stop());
}

// spec: ENV-16, ENV-33
#[test]
fn a_forgotten_remote_can_call_and_be_called_again() {
    let mut watchdog = Watchdog::start(0);
    for is_plain in [false, true] {
        let [mut near, mut far] = [0, 1].map(|_| Side::open(&apart(is_plain)));
        for round in 0..6 {
            let to_far = near.remote(&far);
            pass([&mut near, &mut far], to_far, round);
            let mut room = [0; 8];
            far.endpoint.receive(receive(9, &mut room)).expect("there is room");
            let mut bytes = [4; 8];
            let sent = send([&mut near, &mut far], to_far, &message(9, &mut bytes, false));
            assert_eq!(sent, Sent::Completed);
            poll_until([&mut far, &mut near], |[far, _]| far.ends.len() == 1);
            let ayre::endpoint::raw::CompletionKind::Received(received) = far.ends.remove(0).what
            else {
                panic!("it came")
            };
            let from = received.source.expect("its source");
            let (first, second) = if round % 2 == 0 { (true, false) } else { (false, true) };
            if first {
                assert!(near.endpoint.forget(to_far));
            }
            if second {
                assert!(far.endpoint.forget(from));
                // Its end is heard of before it is called again.
                poll_until([&mut near, &mut far], |[near, _]| {
                    near.endpoint.send(to_far, &message(1, &mut [1], false))
                        == Err(PostError::Fault(Fault::PeerDead))
                });
                let again = far.remote(&near);
                pass([&mut far, &mut near], again, round);
                pass([&mut near, &mut far], to_far, round);
                assert!(near.endpoint.forget(to_far));
            }
        }
    }
    assert!(!watchdog.stop());
}

// spec: ENV-33
#[test]
fn a_forgotten_call_leaves_no_state() {
    let mut watchdog = Watchdog::start(0);
    let [mut near, mut far] = [0, 1].map(|_| Side::open(&apart(false)));
    for round in 0..20 {
        let to_far = near.remote(&far);
        let mut bytes = [1];
        assert!(near.try_send(to_far, &message(1, &mut bytes, false)).is_none(), "it calls");
        for _ in 0..round {
            near.poll();
            far.poll();
        }
        assert!(near.endpoint.forget(to_far));
    }
    let to_far = near.remote(&far);
    pass([&mut near, &mut far], to_far, 1);
    assert!(!watchdog.stop());
}

// spec: ENV-33
#[test]
fn a_caller_can_be_called_back_once_its_address_is_known() {
    let mut watchdog = Watchdog::start(0);
    let cable = Partition::new();
    let mut near = Side::open(&apart(false).silence(SHORT).dead_after(SHORT).partition(&cable));
    let mut far = Side::open(&apart(false).silence(SHORT).dead_after(SHORT));
    let to_far = near.remote(&far);
    let (mut bytes, mut room) = ([4; 8], [0; 8]);
    far.endpoint.receive(receive(9, &mut room)).expect("there is room");
    let _ = send([&mut near, &mut far], to_far, &message(9, &mut bytes, false));
    poll_until([&mut far, &mut near], |[far, _]| far.ends.len() == 1);
    let ayre::endpoint::raw::CompletionKind::Received(received) = far.ends.remove(0).what else {
        panic!("it came")
    };
    let from = received.source.expect("its source");
    pass([&mut far, &mut near], from, 1);
    // The same endpoint, by its address.
    assert_eq!(far.remote(&near), from);
    cable.cut();
    let is_dead = |side: &mut Side, remote| {
        side.endpoint.send(remote, &message(1, &mut [1], false))
            == Err(PostError::Fault(Fault::PeerDead))
    };
    poll_until([&mut far, &mut near], |[far, near]| is_dead(far, from) && is_dead(near, to_far));
    cable.heal();
    assert!(far.endpoint.forget(from));
    let again = far.remote(&near);
    pass([&mut far, &mut near], again, 2);
    assert!(!watchdog.stop());
}

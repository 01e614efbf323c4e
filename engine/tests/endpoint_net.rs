//! Endpoints whose messages go over the network.
mod common;
#[path = "endpoint_net/sides.rs"]
mod sides;

use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{CompletionKind, OutgoingMessage, RawEndpoint, Sent};
use ayre::error::{AttemptOutcome, DisconnectReason, Refusal};
use ayre::{Busy, EndpointOptions, Fault, PostError, Simulation};
use common::watchdog::Watchdog;
use rustix::event::{PollFd, PollFlags, poll};
use sides::{Side, apart, here, message, pass, pattern, poll_until, receive, send};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Sizes on both sides of every border; the last is longer than the ring.
const SIZES: [usize; 14] =
    [0, 1, 8, 40, 41, 512, 513, 4096, 16384, 16385, 65536, 65537, 100_003, 300_001];
/// Messages of each size, some of them before their receives.
const ROUNDS: usize = 3;

/// Two endpoints over a network that does this.
fn pair(is_plain: bool, faults: &str) -> ([Side; 2], [RemoteId; 2]) {
    let mut number = 0;
    let mut sides = [0, 1].map(|_| {
        number += 1;
        let plan = format!("{faults},seed={number}").parse().expect("a plan");
        let options = apart(is_plain);
        Side::open(&if faults.is_empty() { options } else { options.faults(plan) })
    });
    let [near, far] = &mut sides;
    let remotes = [near.remote(far), far.remote(near)];
    (sides, remotes)
}

/// Messages of all sizes both ways at once, all of which arrive as they were sent, in order.
fn exchange(is_plain: bool, faults: &str) {
    let mut watchdog = Watchdog::start(0);
    let (mut sides, remotes) = pair(is_plain, faults);
    let count = SIZES.len() * ROUNDS;
    let texts = [0, 1].map(|side| -> Vec<_> {
        (0..count).map(|index| pattern(SIZES[index % SIZES.len()], side * 100 + index)).collect()
    });
    let mut sent = texts.clone();
    let mut rooms = texts
        .each_ref()
        .map(|texts| -> Vec<_> { texts.iter().map(|text| vec![0; text.len()]).collect() });
    let (mut posted, mut told) = ([0; 2], [0; 2]);
    (0..count).for_each(|index| {
        for side in [0, 1] {
            // The first of them come after what they receive.
            let last = if index < SIZES.len() { 0 } else { index + 1 };
            for room in &mut rooms[1 - side][posted[1 - side]..last] {
                let receive = receive(7, room);
                sides[1 - side].endpoint.receive(receive).expect("there is room");
            }
            posted[1 - side] = last;
            let [near, far] = &mut sides;
            let ends = if side == 0 { [near, far] } else { [far, near] };
            let message = message(7, &mut sent[side][index], index % 2 == 0);
            told[side] += usize::from(send(ends, remotes[side], &message) == Sent::Pending);
        }
    });
    let sends =
        |side: &Side| side.ends.iter().filter(|end| end.what == CompletionKind::Sent).count();
    let [near, far] = &mut sides;
    let is_over = |side: &Side| side.ends.len() - sends(side) == count;
    poll_until([near, far], |[near, far]| is_over(near) && is_over(far));
    // What is delivered, or asked first, is told to have ended.
    poll_until([near, far], |[near, far]| [sends(near), sends(far)] == told);
    assert!(sides.iter().all(|side| side.ends.iter().all(|end| end.result.is_ok())));
    assert!(rooms[0] == texts[1] && rooms[1] == texts[0], "each is as it was sent");
    assert!(sides.iter().all(|side| side.endpoint.counters().malformed() == 0));
    assert!(!watchdog.stop());
}

// spec: ENV-33, ENV-4, ENV-15, ENV-18, WIRE-14
#[test]
fn messages_of_all_sizes_go_over_a_clean_network() {
    exchange(false, "");
    exchange(true, "");
}

// spec: ENV-4, ENV-33
#[test]
fn messages_of_all_sizes_arrive_over_a_lossy_network() {
    exchange(false, "loss=5%");
    exchange(true, "loss=5%");
}

// spec: ENV-4, ENV-33
#[test]
fn messages_of_all_sizes_arrive_over_a_lossy_corrupting_network() {
    exchange(false, "loss=20%,dup=2%,reorder=5%,corrupt=1%");
    exchange(true, "loss=20%,dup=2%,reorder=5%,corrupt=1%");
}

/// Messages of 64 KiB that go before they are wanted, between endpoints that want rings of this
/// number of bytes.
fn gone_of_many(rings: [Option<usize>; 2]) -> usize {
    let options =
        |ring: Option<usize>| ring.map_or_else(|| apart(true), |ring| apart(true).ring(ring));
    let [mut near, mut far] = rings.map(|ring| Side::open(&options(ring)));
    let to_far = near.remote(&far);
    pass([&mut near, &mut far], to_far, 0);
    let mut texts: Vec<_> = (0..20).map(|seed| pattern(65536, seed)).collect();
    let mut rooms = vec![vec![0; 65536]; texts.len()];
    let sent: Vec<_> = texts
        .iter_mut()
        .map(|bytes| near.try_send(to_far, &message(7, bytes, false)).expect("it may ask"))
        .collect();
    for room in &mut rooms {
        far.endpoint.receive(receive(7, room)).expect("there is room");
    }
    poll_until([&mut near, &mut far], |[_, far]| far.ends.len() == texts.len());
    assert!(rooms == texts, "each is as it was sent");
    sent.iter().filter(|sent| **sent == Sent::Completed).count()
}

// spec: OPEN-14, WIRE-14
#[test]
fn a_link_has_the_shorter_ring_of_those_that_its_ends_want() {
    let mut watchdog = Watchdog::start(0);
    assert_eq!(gone_of_many([None, None]), 16, "a mebibyte, if nobody says how many");
    assert_eq!(gone_of_many([Some(1 << 18), None]), 4);
    assert_eq!(gone_of_many([None, Some(1 << 19)]), 8);
    assert_eq!(gone_of_many([Some(1 << 17), Some(1 << 18)]), 2);
    assert!(!watchdog.stop());
}

// spec: ENV-3, ENV-4
#[test]
fn long_messages_are_sent_without_rts_while_the_ring_has_room() {
    let mut watchdog = Watchdog::start(0);
    let [mut near, mut far] = [(); 2].map(|()| Side::open(&apart(true).ring(1 << 18)));
    let to_far = near.remote(&far);
    pass([&mut near, &mut far], to_far, 0);
    let lens = [65536, 65537, 65536, 65536, 65536, 65536, 65536, 40];
    let texts: Vec<_> = lens.iter().enumerate().map(|(at, len)| pattern(*len, at)).collect();
    let mut bytes = texts.clone();
    // The other one takes nothing meanwhile, and the ring has 256 KiB.
    let sent: Vec<_> = bytes
        .iter_mut()
        .map(|bytes| near.try_send(to_far, &message(7, bytes, false)).expect("it may ask"))
        .collect();
    let (gone, asks) = (Sent::Completed, Sent::Pending);
    assert_eq!(sent, [gone, asks, gone, gone, gone, asks, asks, gone]);
    let mut rooms: Vec<_> = texts.iter().map(|text| vec![0; text.len()]).collect();
    for room in &mut rooms {
        far.endpoint.receive(receive(7, room)).expect("there is room");
    }
    let asked = sent.iter().filter(|sent| **sent == asks).count();
    poll_until([&mut near, &mut far], |[near, far]| {
        far.ends.len() == lens.len() && near.ends.len() == asked
    });
    assert!(rooms == texts, "each is as it was sent, and in its turn");
    assert!(!watchdog.stop());
}

// spec: ENV-6, ENV-32, ENV-33
#[test]
fn one_endpoint_has_peers_of_both_kinds() {
    let mut watchdog = Watchdog::start(0);
    let mut near = Side::open(&here().silence(sides::LONG));
    let mut neighbour = Side::open(&here());
    let mut local = Side::open(&here().local());
    let mut distant = Side::open(&apart(false));
    let to = [near.remote(&neighbour), near.remote(&local), near.remote(&distant)];
    let from = [neighbour.remote(&near), local.remote(&near), distant.remote(&near)];
    for tag in 0..20 {
        for (index, side) in [&mut neighbour, &mut local, &mut distant].into_iter().enumerate() {
            pass([&mut near, side], to[index], tag);
            pass([side, &mut near], from[index], tag);
        }
    }
    // One that is not reached knows only its neighbours.
    let address = distant.address();
    assert!(local.endpoint.remote(&address).is_err());
    let address = local.address();
    assert!(distant.endpoint.remote(&address).is_err());
    assert!(!watchdog.stop());
}

// spec: ENV-33, OPEN-16
#[test]
fn of_two_that_call_each_other_one_call_counts() {
    let mut watchdog = Watchdog::start(0);
    for round in 0..40 {
        let faults = if round % 2 == 0 { "" } else { "loss=20%" };
        let ([mut near, mut far], remotes) = pair(round % 4 < 2, faults);
        let (mut bytes, mut rooms) = ([pattern(40, 1), pattern(40, 2)], [[0; 40]; 2]);
        for (side, room) in [&mut near, &mut far].into_iter().zip(&mut rooms) {
            side.endpoint.receive(receive(1, room)).expect("there is room");
        }
        let mut has_sent = [false; 2];
        poll_until([&mut near, &mut far], |sides| {
            for (index, side) in sides.iter_mut().enumerate() {
                let message = message(1, &mut bytes[index], false);
                let mut try_send = || side.try_send(remotes[index], &message).is_some();
                has_sent[index] = has_sent[index] || try_send();
            }
            has_sent == [true; 2] && sides.iter().all(|side| side.ends.len() == 1)
        });
        assert_eq!((&rooms[0][..], &rooms[1][..]), (&bytes[1][..], &bytes[0][..]));
        // The other link, if there is one, ends without a trace.
        for tag in 0..50 {
            near.ends.clear();
            far.ends.clear();
            pass([&mut near, &mut far], remotes[0], tag);
            pass([&mut far, &mut near], remotes[1], tag);
        }
    }
    assert!(!watchdog.stop());
}

// spec: ENV-9
#[test]
fn a_waiting_endpoint_is_woken_by_the_network() {
    let mut watchdog = Watchdog::start(0);
    let ([mut near, mut far], [to_far, to_near]) = pair(false, "loss=20%");
    pass([&mut near, &mut far], to_far, 0);
    const COUNT: u64 = 30;
    std::thread::scope(|scope| {
        let (done, is_done) = channel();
        let far = scope.spawn(move || {
            let mut rooms = vec![[0; 40]; COUNT as usize];
            for (tag, room) in rooms.iter_mut().enumerate() {
                far.endpoint.receive(receive(tag as u64, room)).expect("there is room");
            }
            for tag in 0..COUNT {
                while far.ends.len() <= tag as usize {
                    sleep(&mut far, tag % 2 == 0);
                }
                let mut answer = pattern(40, 1);
                while far.try_send(to_near, &message(tag, &mut answer, false)).is_none() {
                    far.poll();
                }
            }
            // What it has sent is sent again until it has come.
            while is_done.try_recv().is_err() {
                sleep(&mut far, true);
            }
        });
        for tag in 0..COUNT {
            let mut room = [0; 40];
            near.endpoint.receive(receive(tag, &mut room)).expect("there is room");
            let mut bytes = pattern(40, tag as usize);
            while near.try_send(to_far, &message(tag, &mut bytes, false)).is_none() {
                near.poll();
            }
            near.ends.clear();
            while near.ends.is_empty() {
                near.poll();
                std::thread::yield_now();
            }
            assert_eq!(room[..], pattern(40, 1));
        }
        done.send(()).expect("it listens");
        let mut bytes = [0; 8];
        while !far.is_finished() {
            // Something that wakes it.
            let _ = near.endpoint.send(to_far, &message(COUNT, &mut bytes, false));
            near.poll();
            std::thread::yield_now();
        }
    });
    assert!(!watchdog.stop());
}

/// Sleeps in the endpoint, or as a program does that has other things to wait for.
fn sleep(side: &mut Side, is_inside: bool) {
    let Side { endpoint, ends } = side;
    if is_inside {
        return endpoint.wait(None, |end| ends.push(end));
    }
    if endpoint.rest(|end| ends.push(end)) {
        poll(&mut [PollFd::new(&endpoint.as_fd(), PollFlags::IN)], None).expect("a descriptor");
        endpoint.wake();
    }
    side.poll();
}

/// The same endpoint's address with other bytes in it.
fn changed(side: &Side, at: usize, with: u8) -> ayre::endpoint::Address {
    let mut bytes = side.address().to_bytes();
    bytes[at] ^= with;
    ayre::endpoint::Address::from_bytes(&bytes).expect("an address")
}

/// The fate of a message to it.
fn fate(near: &mut Side, far: &mut Side, remote: RemoteId) -> Fault {
    let mut bytes = [1];
    let message: OutgoingMessage = message(1, &mut bytes, false);
    loop {
        match near.endpoint.send(remote, &message) {
            Err(PostError::Fault(why)) => return why,
            Err(PostError::Busy(Busy::Connecting)) => {}
            other => panic!("it must not be sent: {other:?}"),
        }
        near.poll();
        far.poll();
        std::thread::yield_now();
    }
}

// spec: ENV-32, ENV-33, SEAL-14
#[test]
fn a_caller_that_has_not_the_whole_address_is_refused() {
    let mut watchdog = Watchdog::start(0);
    for is_plain in [false, true] {
        // In a time of its own, which does not pass while the far side has not looked.
        let simulation = Simulation::new(Duration::from_micros(5));
        let apart = |is_plain| apart(is_plain).simulated(&simulation);
        let mut far = Side::open(&apart(is_plain));
        // A byte of the fingerprint, of which the name is made.
        for at in [16, 31] {
            let before = far.endpoint.counters().refused();
            let mut stranger = Side::open(&apart(is_plain).silence(sides::SHORT));
            let remote = stranger.endpoint.remote(&changed(&far, at, 1)).expect("as it seems");
            let mut room = [0];
            let receive = ayre::endpoint::raw::PostedReceive {
                source: Some(remote),
                ..receive(9, &mut room)
            };
            stranger.endpoint.receive(receive).expect("there is room");
            assert_eq!(fate(&mut stranger, &mut far, remote), Fault::Refused);
            poll_until([&mut stranger], |[stranger]| !stranger.ends.is_empty());
            assert_eq!(stranger.results(), [(9, Err(Fault::Refused))]);
            let why = stranger.endpoint.reason(remote).expect("it has ended").clone();
            assert!(why.to_string().ends_with(&Refusal::Key.to_string()), "{why}");
            if !is_plain {
                let DisconnectReason::Doubtful { tried, .. } = &why else { panic!("{why}") };
                assert_eq!(tried[0].outcome, AttemptOutcome::Refused(Refusal::Key), "{why}");
            }
            // It is counted, when the far side gets to it.
            poll_until([&mut far], |[far]| far.endpoint.counters().refused() > before);
        }
        let mut near = Side::open(&apart(is_plain));
        let remote = near.remote(&far);
        pass([&mut near, &mut far], remote, 1);
        assert_eq!(far.endpoint.counters().malformed(), 0);
    }
    let [mut plain, sealed] = [true, false].map(|is_plain| Side::open(&apart(is_plain)));
    let address = sealed.address();
    assert!(plain.endpoint.remote(&address).is_err(), "neither lowers itself");
    assert!(!watchdog.stop());
}

/// The callee is gone, and of another host nothing but the network says so.
// spec: ENV-34, OPEN-32
#[test]
fn an_unanswered_call_reports_the_outcome_of_each_address() {
    let mut watchdog = Watchdog::start(0);
    let address = Side::open(&apart(false)).address();
    let mut near = Side::open(&apart(false).silence(sides::SHORT));
    let remote = near.endpoint.remote(&address).expect("as it seems");
    let (mut bytes, mut asked) = ([1], 0);
    let end = loop {
        match near.endpoint.send(remote, &message(1, &mut bytes, false)) {
            Err(PostError::Busy(Busy::Connecting)) => near.poll(),
            other => break other,
        }
        asked = asked.max(near.endpoint.tried(remote).iter().map(|tried| tried.opens).sum());
        std::thread::yield_now();
    };
    assert!(matches!(end, Err(PostError::Fault(Fault::PeerDead))), "{end:?}");
    assert!(asked > 0, "it is told while it is called, too");
    let why = near.endpoint.reason(remote).expect("it has ended").clone();
    let DisconnectReason::Unanswered { tried, .. } = &why else { panic!("{why}") };
    assert_eq!(tried[0].outcome, AttemptOutcome::PortClosed, "{why}");
    assert!(tried[0].opens >= asked && near.endpoint.tried(remote).is_empty());
    assert!(!watchdog.stop());
}

// spec: SEAL-14, SEAL-16, ENV-32
#[test]
fn an_address_is_not_enough_to_call_an_endpoint_with_a_key() {
    let mut watchdog = Watchdog::start(0);
    let with = |options: EndpointOptions, digit: &str| options.key(&digit.repeat(64));
    for is_plain in [false, true] {
        let mut far = Side::open(&with(apart(is_plain), "5").expect("a key"));
        let mut near = Side::open(&with(apart(is_plain), "5").expect("a key"));
        let remote = near.remote(&far);
        pass([&mut near, &mut far], remote, 1);
        let short = apart(is_plain).silence(sides::SHORT);
        for options in [short.clone(), with(short, "6").expect("a key")] {
            let mut stranger = Side::open(&options);
            let error = stranger.endpoint.remote(&far.address()).unwrap_err().to_string();
            assert!(error.contains("another key") && error.contains("FI_AYRE_KEY"), "{error}");
            // Who has the address can change what it says of the key.
            let mut bytes = far.address().to_bytes();
            bytes[6..8].copy_from_slice(&stranger.address().to_bytes()[6..8]);
            let forged = ayre::endpoint::Address::from_bytes(&bytes).expect("an address");
            let before = far.endpoint.counters().refused();
            let remote = stranger.endpoint.remote(&forged).expect("as it seems");
            let fault = fate(&mut stranger, &mut far, remote);
            assert!(matches!(fault, Fault::PeerDead | Fault::Refused), "{fault:?}");
            poll_until([&mut far], |[far]| far.endpoint.counters().refused() > before);
        }
    }
    assert!(with(apart(true), "x").is_err());
    assert!(!watchdog.stop());
}

#[test]
fn an_address_that_is_not_here_is_an_error() {
    let options = EndpointOptions::new().at([203, 0, 113, 1].into());
    assert!(RawEndpoint::open_with(&options).is_err());
}

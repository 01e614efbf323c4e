//! An endpoint that knows of more processes than there are processors, and what it does to whoever
//! polls it.
mod common;

use ayre::{Address, Endpoint, EndpointOptions, Outgoing, Receive, Span, Spans, Spin};
use common::system::sleeps;

/// Polls that find nothing, after which an endpoint of a crowd sleeps.
const PATIENCE: u64 = 1 << 14;
/// More processes than any host has processors.
const NEIGHBOURS: u64 = 1 << 10;

fn open() -> Endpoint {
    let options = EndpointOptions::new().spin(Spin::SHARED).local();
    Endpoint::open_with(&options).expect("an endpoint")
}

fn poll(endpoint: &mut Endpoint, times: u64) -> usize {
    let mut ends = 0;
    (0..times).for_each(|_| _ = endpoint.progress(|_| ends += 1));
    ends
}

// spec: ENV-5
#[test]
fn who_polls_two_sleeps_at_neither_while_one_of_them_has_something_to_do() {
    let [mut idle, mut near, mut far] = [(); 3].map(|()| open());
    let [host, ..] = idle.address().local_words();
    for number in 0..NEIGHBOURS {
        let neighbour = Address::of_local_words([host, number, 0]);
        idle.remote(&neighbour).expect("there is room");
    }
    let to = near.remote(&far.address()).expect("an endpoint of this host");
    let bytes: Spans = Span::of_static(vec![7; 8].leak()).into();
    let message = Outgoing { tag: Some(1), data: None, bytes, context: 0, delivered: false };
    let mut pass = || {
        let into = Span::of_static(vec![0; 8].leak()).into();
        let receive = Receive { source: None, tag: Some((1, 0)), into, context: 0, many: None };
        far.receive(receive).expect("there is room");
        while near.send(to, &message).is_err_and(|error| error.is_busy()) {
            poll(&mut far, 1);
        }
        while poll(&mut far, 1) == 0 {
            poll(&mut near, 1);
        }
    };
    pass();
    let before = sleeps();
    for _ in 0..400 {
        poll(&mut idle, PATIENCE / 100);
        pass();
    }
    let slept = sleeps() - before;
    assert!(slept < 100, "{slept} times, in polls enough for ten thousand");
    // Where nobody has anything to do, it does.
    let before = sleeps();
    let mut rounds = 0;
    while sleeps() < before + 10 {
        poll(&mut idle, 400);
        rounds += 1;
        assert!(rounds < 100 * PATIENCE / 400, "it never sleeps");
    }
}

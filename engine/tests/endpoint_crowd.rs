//! Endpoints that know more processes than there are processors: their yields, and the cost for the
//! threads that poll them.
mod common;

use ayre::endpoint::Address;
use ayre::endpoint::raw::{OutgoingMessage, PostedReceive, RawEndpoint, Span, Spans};
use ayre::{EndpointOptions, Spin};
use common::system::sleeps;
use common::{Line, Process, with_processes};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Polls that find nothing, after which an endpoint of a crowd sleeps.
const PATIENCE: u64 = 1 << 14;
/// More processes than any host has processors.
const NEIGHBOURS: u64 = 1 << 10;

fn open() -> RawEndpoint {
    let options = EndpointOptions::new().spin(Spin::SHARED).local();
    RawEndpoint::open_with(&options).expect("an endpoint")
}

fn poll(endpoint: &mut RawEndpoint, times: u64) -> usize {
    let mut ends = 0;
    (0..times).for_each(|_| _ = endpoint.progress(|_| ends += 1));
    ends
}

// spec: ENV-5
#[test]
fn a_thread_of_two_endpoints_does_not_sleep_while_one_is_busy() {
    let [mut idle, mut near, mut far] = [(); 3].map(|()| open());
    let [host, ..] = idle.address().local_words();
    for number in 0..NEIGHBOURS {
        let neighbour = Address::of_local_words([host, number, 0]);
        idle.remote(&neighbour).expect("there is room");
    }
    let to = near.remote(&far.address()).expect("an endpoint of this host");
    let bytes: Spans = Span::of_static(vec![7; 8].leak()).into();
    let message = OutgoingMessage { tag: Some(1), data: None, bytes, context: 0, delivered: false };
    let mut pass = || {
        let into = Span::of_static(vec![0; 8].leak()).into();
        let receive =
            PostedReceive { source: None, tag: Some((1, 0)), into, context: 0, many: None };
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

// spec: ENV-5
#[test]
fn among_many_endpoints_each_poll_checks_all_possible_senders() {
    let mut here = open();
    let [host, ..] = here.address().local_words();
    for number in 0..NEIGHBOURS / 2 {
        let neighbour = Address::of_local_words([host, number, 0]);
        here.remote(&neighbour).expect("there is room");
    }
    let mut others = [(); 12].map(|()| open());
    let bytes: Spans = Span::of_static(vec![7; 8].leak()).into();
    let message = OutgoingMessage { tag: Some(1), data: None, bytes, context: 0, delivered: false };
    let post = |here: &mut RawEndpoint| {
        let into = Span::of_static(vec![0; 8].leak()).into();
        let receive =
            PostedReceive { source: None, tag: Some((1, 0)), into, context: 0, many: None };
        here.receive(receive).expect("there is room");
    };
    let address = here.address();
    let ids: Vec<_> = others.iter_mut().map(|other| other.remote(&address).unwrap()).collect();
    for (other, id) in others.iter_mut().zip(&ids) {
        post(&mut here);
        while other.send(*id, &message).is_err_and(|error| error.is_busy()) {
            poll(&mut here, 1);
        }
        while poll(&mut here, 1) == 0 {}
    }
    for round in 0..100 {
        let which = round * 5 % others.len();
        post(&mut here);
        // So that it is not always the how many-th poll, counted modulo a few.
        poll(&mut here, round as u64 % 3);
        assert!(others[which].send(ids[which], &message).is_ok(), "there is room");
        assert_eq!(poll(&mut here, 1), 1, "message {round}, of endpoint {which}");
    }
}

/// All threads of this process to one processor, of those that it may run on.
fn pin() {
    let all = sched_getaffinity(None).expect("affinity");
    let first = (0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).expect("one");
    let mut one = CpuSet::new();
    one.set(first);
    for thread in std::fs::read_dir("/proc/self/task").expect("own threads").flatten() {
        let number = thread.file_name().to_string_lossy().parse().expect("a number");
        sched_setaffinity(Pid::from_raw(number), &one).expect("a subset");
    }
}

fn say(line: &Line, address: &Address) {
    address.to_bytes().as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
}

fn hear(line: &Line) -> Address {
    let mut bytes = [0; Address::BYTES];
    bytes.as_chunks_mut().0.iter_mut().for_each(|word| *word = line.hear().to_le_bytes());
    Address::from_bytes(&bytes).expect("an address")
}

/// Meets the other process, and then polls in vain until it has slept.
fn share_processor(line: &Line) {
    pin();
    let mut endpoint = open();
    say(line, &endpoint.address());
    let other = endpoint.remote(&hear(line)).expect("an endpoint of this host");
    let bytes: Spans = Span::of_static(vec![7; 8].leak()).into();
    let message = OutgoingMessage { tag: Some(1), data: None, bytes, context: 0, delivered: false };
    let into = Span::of_static(vec![0; 8].leak()).into();
    let receive = PostedReceive { source: None, tag: Some((1, 0)), into, context: 1, many: None };
    endpoint.receive(receive).expect("there is room");
    let mut has_come = false;
    let mut is_sent = false;
    while !(has_come && is_sent) {
        is_sent = is_sent || endpoint.send(other, &message).is_ok();
        endpoint.progress(|end| has_come |= end.context == 1);
    }
    let (before, mut rounds) = (sleeps(), 0);
    while sleeps() < before + 10 {
        poll(&mut endpoint, 400);
        rounds += 1;
        assert!(rounds < 100 * PATIENCE / 400, "it never sleeps");
    }
    line.say(0);
    while !line.has_word() {
        poll(&mut endpoint, 1);
    }
}

// spec: ENV-5
#[test]
fn two_processes_that_may_run_on_one_processor_only_are_a_crowd() {
    with_processes(
        |_, line| share_processor(&line),
        |family| {
            let mut both = [family.start(), family.start()];
            let addresses = [hear(&both[0].line), hear(&both[1].line)];
            say(&both[0].line, &addresses[1]);
            say(&both[1].line, &addresses[0]);
            both.iter().for_each(|one| assert_eq!(one.line.hear(), 0));
            both.iter().for_each(|one| one.line.say(0));
            both.iter_mut().for_each(Process::succeeds);
        },
    );
}

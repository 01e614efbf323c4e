//! Endpoints of processes on two hosts: network namespaces that a cable joins.
mod common;
#[path = "endpoint_net/sides.rs"]
mod sides;

use ayre::endpoint::{Address, RemoteId};
use ayre::network::Ethernet;
use ayre::{EndpointOptions, Fault, PostError, Spin};
use common::net_hosts::{Hosts, KINDS, Kind, enter};
use common::{Line, Process, with_processes};
use sides::{Side, message, pattern, receive};
use std::time::Duration;

/// Messages to each of the others.
const COUNT: u64 = 200;
/// A silence that is soon over.
const HASTY: Duration = Duration::from_millis(400);
/// A time after which nobody is dead: of a death, its host tells.
const NEVER: Duration = Duration::from_secs(86_400);
/// A network of UDP alone, and one with frames beside it: where they are not named, there are
/// frames if this process may.
const UDP: &str = "udp";
const ETHERNET: &str = "ethernet";
/// UDP alone, and nothing is encrypted.
const PLAIN: &str = "plain";
/// One of every two processes has UDP alone.
const MIXED: &str = "mixed";
/// How long a message is, by its number.
const SIZES: [usize; 5] = [8, 40, 600, 20_000, 70_000];

fn say(line: &Line, address: &Address) {
    let bytes = address.to_bytes();
    let (words, _) = bytes.as_chunks();
    words.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
}

fn hear(line: &Line) -> Address {
    let mut bytes = [0; Address::BYTES];
    bytes.as_chunks_mut().0.iter_mut().for_each(|word| *word = line.hear().to_le_bytes());
    Address::from_bytes(&bytes).expect("an address")
}

fn open(number: u64) -> Side {
    enter(&std::env::var("HOST").expect("a host"));
    let options = EndpointOptions::new().spin(Spin::SHARED).silence(HASTY * 10).dead_after(NEVER);
    Side::open(&match std::env::var("NET").as_deref() {
        Ok(UDP) => options.ethernet(Ethernet::Never),
        Ok(PLAIN) => options.ethernet(Ethernet::Never).plain(),
        Ok(MIXED) if number % 2 == 1 => options.ethernet(Ethernet::Never),
        Ok(MIXED) => options.ethernet(Ethernet::Required),
        Ok(ETHERNET) => options.ethernet(Ethernet::Required),
        Ok(plan) => options.faults(plan.parse().expect("a plan")),
        Err(_) => options,
    })
}

/// A process of the test.
fn member(number: u64, line: &Line) {
    let mut side = open(number);
    say(line, &side.address());
    let others: Vec<_> = (0..2).map(|_| hear(line)).collect();
    let others: Vec<_> =
        others.iter().map(|other| side.endpoint.remote(other).expect("it is reached")).collect();
    talk(&mut side, number as usize, &others);
    line.say(number);
    // Until it is told to go, or one of the others has.
    let mut told = false;
    while !line.has_word() {
        side.poll();
        let is_dead = |side: &mut Side, other: &RemoteId| {
            side.endpoint.send(*other, &message(0, &mut [], false))
                == Err(PostError::Fault(Fault::PeerDead))
        };
        if !told && others.iter().any(|other| is_dead(&mut side, other)) {
            line.say(99);
            told = true;
        }
        std::thread::yield_now();
    }
}

/// Messages of all sizes with the two others, each tagged with its sender and number.
fn talk(side: &mut Side, own: usize, others: &[RemoteId]) {
    let tag = |from: usize, index: u64| (index + 1) * 3 + from as u64;
    let text = |from: usize, index: u64| pattern(SIZES[index as usize % SIZES.len()], from);
    let senders: Vec<_> = (0..3).filter(|from| *from != own).collect();
    let mut rooms: Vec<_> = senders
        .iter()
        .flat_map(|from| (0..COUNT).map(|index| (*from, index)))
        .map(|(from, index)| (from, index, vec![0; text(from, index).len()]))
        .collect();
    for (from, index, room) in &mut rooms {
        side.endpoint.receive(receive(tag(*from, *index), room)).expect("there is room");
    }
    let mut sent: Vec<_> = (0..COUNT).map(|index| text(own, index)).collect();
    let mut under_way = 0;
    for (index, bytes) in (0..).zip(&mut sent) {
        for other in others {
            let message = message(tag(own, index), bytes, true);
            under_way += 1;
            while side.try_send(*other, &message).is_none() {
                side.poll();
                std::thread::yield_now();
            }
        }
    }
    while side.ends.len() < rooms.len() + under_way {
        side.poll();
        std::thread::yield_now();
    }
    assert!(side.ends.iter().all(|end| end.result.is_ok()));
    assert!(rooms.iter().all(|(from, index, room)| *room == text(*from, *index)));
}

/// Three processes, two of them on one host; then one is killed, of which the others hear.
fn three(net: Option<&str>, hosts: &Hosts, start: impl Fn(&str, Option<&str>) -> Process) {
    let mut all: Vec<_> = [0, 0, 1].map(|host| start(&hosts.of(host), net)).into();
    let addresses: Vec<_> = all.iter().map(|process| hear(&process.line)).collect();
    for (own, process) in all.iter().enumerate() {
        let others = (0..3).filter(|other| *other != own);
        others.for_each(|other| say(&process.line, &addresses[other]));
    }
    for process in &all {
        assert_eq!(process.line.hear() % 3, process.number % 3, "it has had everything");
    }
    all[1].kill();
    for index in [0, 2] {
        assert_eq!(all[index].line.hear(), 99, "it hears of the death");
        all[index].line.say(0);
    }
    [0, 2].into_iter().for_each(|index| all[index].succeeds());
}

// spec: ENV-8, ENV-32, ENV-33, NET-6
#[test]
fn processes_of_two_hosts() {
    with_processes(
        |number, line| member(number % 3, &line),
        |family| {
            let Some(hosts) = Hosts::new() else { return };
            let start = |host: &str, net: Option<&str>| {
                family.start_with(|command| {
                    command.env("HOST", host);
                    net.map(|net| command.env("NET", net));
                })
            };
            let lossy = ["loss=5%", "loss=20%,reorder=5%"].map(Some);
            for net in [None, Some(UDP), Some(ETHERNET), Some(MIXED)].into_iter().chain(lossy) {
                three(net, &hosts, start);
            }
        },
    );
}

/// Polls until the test has something to say.
fn serve_until_told(side: &mut Side, line: &Line) {
    while !line.has_word() {
        side.poll();
        std::thread::yield_now();
    }
}

/// One of two, of which the first calls the other.
fn one_of_two(number: u64, line: &Line) {
    let mut side = open(number);
    say(line, &side.address());
    let other = hear(line);
    let other = side.endpoint.remote(&other).expect("it is reached");
    let (mut bytes, mut room) = (pattern(40, 1), [0; 40]);
    if number.is_multiple_of(2) {
        while side.try_send(other, &message(7, &mut bytes, false)).is_none() {
            side.poll();
            std::thread::yield_now();
        }
    } else {
        side.endpoint.receive(receive(7, &mut room)).expect("there is room");
        while side.ends.is_empty() {
            side.poll();
            std::thread::yield_now();
        }
        assert_eq!((side.results(), room), (vec![(7, Ok(()))], bytes[..].try_into().unwrap()));
    }
    line.say(number);
    serve_until_told(&mut side, line);
}

// spec: ENV-32, OPEN-30, NET-12
#[test]
fn an_endpoint_is_found_at_the_address_that_answers() {
    with_processes(
        |number, line| one_of_two(number, &line),
        |family| {
            for Kind { what, before, behind } in &KINDS {
                let Some(hosts) = Hosts::with(before, behind) else { return };
                let start = |host| {
                    family.start_with(|command| {
                        command.env("HOST", hosts.of(host));
                    })
                };
                let mut all = [start(0), start(1)];
                let addresses = [0, 1].map(|own: usize| hear(&all[own].line));
                eprintln!("{what}: {:?}", addresses.map(|address| address.reached_at()));
                [0, 1].into_iter().for_each(|own| say(&all[own].line, &addresses[1 - own]));
                for process in &mut all {
                    assert_eq!(process.line.hear(), process.number, "{what}: {addresses:?}");
                }
                for process in &mut all {
                    process.line.say(0);
                    process.succeeds();
                }
            }
        },
    );
}

/// The lengths that the two ends of the cable take: one after the other, while messages go both
/// ways.
const MTUS: [[u32; 2]; 6] =
    [[1500, 1500], [1280, 1280], [1280, 1000], [576, 576], [9000, 9000], [9000, 1300]];
/// Exchanges with each.
const EXCHANGES: u64 = 40;

/// One of two between which messages go while their network changes.
fn one_of_a_stream(number: u64, line: &Line) {
    let mut side = open(number);
    say(line, &side.address());
    let other = hear(line);
    let other = side.endpoint.remote(&other).expect("it is reached");
    let own = number as usize % 2;
    for exchange in 0..MTUS.len() as u64 * EXCHANGES {
        let len = SIZES[exchange as usize % SIZES.len()];
        let (mut bytes, mut room) = (pattern(len, own), vec![0; len]);
        side.ends.clear();
        side.endpoint.receive(receive(exchange, &mut room)).expect("there is room");
        while side.try_send(other, &message(exchange, &mut bytes, true)).is_none() {
            side.poll();
            std::thread::yield_now();
        }
        while side.ends.len() < 2 {
            side.poll();
            std::thread::yield_now();
        }
        assert!(side.ends.iter().all(|end| end.result.is_ok()), "{:?}", side.ends);
        assert!(room == pattern(len, 1 - own), "message {exchange}");
        if exchange % EXCHANGES == EXCHANGES / 2 {
            line.say(exchange);
        }
    }
    serve_until_told(&mut side, line);
}

/// Two of whom messages go on, whatever the network takes.
fn stream(net: &str, hosts: &Hosts, start: impl Fn(&str, Option<&str>) -> Process) {
    let mut all = [0, 1].map(|host| start(&hosts.of(host), Some(net)));
    let addresses = [0, 1].map(|own: usize| hear(&all[own].line));
    [0, 1].into_iter().for_each(|own| say(&all[own].line, &addresses[1 - own]));
    for mtus in &MTUS[1..] {
        for process in &all {
            process.line.hear();
        }
        [0, 1].into_iter().for_each(|host| hosts.set_mtu(host, mtus[host]));
    }
    for process in &mut all {
        process.line.hear();
        process.line.say(0);
        process.succeeds();
    }
}

/// Interfaces of all lengths, which become shorter and longer while messages go: with a word from
/// the system or without one.
// spec: MTU-1, MTU-2, MTU-4, OPEN-31
#[test]
fn messages_go_on_while_the_network_takes_shorter_and_longer_datagrams() {
    with_processes(
        |number, line| one_of_a_stream(number, &line),
        |family| {
            let Some(hosts) = Hosts::new() else { return };
            let start = |host: &str, net: Option<&str>| {
                family.start_with(|command| {
                    command.env("HOST", host);
                    net.map(|net| command.env("NET", net));
                })
            };
            for (net, first) in [(UDP, 1500), (PLAIN, 1500), (ETHERNET, 1500), (UDP, 576)] {
                [0, 1].into_iter().for_each(|host| hosts.set_mtu(host, first));
                stream(net, &hosts, start);
            }
        },
    );
}

/// One that is called over a network that takes too little, and one that calls.
fn one_of_a_short_way(number: u64, line: &Line) {
    let mut side = open(number);
    say(line, &side.address());
    let other = hear(line);
    if number.is_multiple_of(2) {
        let other = side.endpoint.remote(&other).expect("an address");
        let mut bytes = [0; 8];
        while let Err(PostError::Busy(_)) | Ok(_) =
            side.endpoint.send(other, &message(7, &mut bytes, false))
        {
            side.poll();
            std::thread::yield_now();
        }
        let why = side.endpoint.reason(other).expect("a reason").to_string();
        assert!(why.contains("datagrams of 472 bytes only"), "{why}");
    }
    line.say(number);
    serve_until_told(&mut side, line);
}

// spec: OPEN-31, LIFE-27
#[test]
fn a_network_that_takes_too_little_is_refused_with_a_reason() {
    with_processes(
        |number, line| one_of_a_short_way(number, &line),
        |family| {
            let Some(hosts) = Hosts::new() else { return };
            [0, 1].into_iter().for_each(|host| hosts.set_mtu(host, 500));
            let mut all = [0, 1].map(|host| {
                family.start_with(|command| {
                    command.env("HOST", hosts.of(host)).env("NET", UDP);
                })
            });
            let addresses = [0, 1].map(|own: usize| hear(&all[own].line));
            [0, 1].into_iter().for_each(|own| say(&all[own].line, &addresses[1 - own]));
            for process in &mut all {
                assert_eq!(process.line.hear(), process.number);
                process.line.say(0);
                process.succeeds();
            }
        },
    );
}

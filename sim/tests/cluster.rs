//! Nodes of the protocol in simulated time.
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::node::Order;
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use ayre_sim::cluster::{Cluster, ClusterError, Event, InterfaceTimes, Local, Stage};
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{NodeQueue, Parameters, Readout, Switching};
use ayre_sim::nic;
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;

/// 10 GB/s, 8 bytes at a time, 20 ns of wire.
const LINK: LinkTiming = LinkTiming { phit: Time(800), width: 8, wire: Time::from_nanos(20) };

fn parameters(policy: Policy, buffer: u32) -> Parameters {
    Parameters {
        link: LINK,
        wire_to_node: LINK.wire,
        pipeline: Time::from_nanos(40),
        injection: Time::ZERO,
        credit: Time::from_nanos(20),
        channels: 2,
        buffer,
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy,
    }
}

fn torus(times: InterfaceTimes) -> Cluster {
    let topology = Topology::torus(&[4, 4]).expect("a possible torus");
    Cluster::new(&topology, parameters(Policy::DimensionOrder, 8192), times).expect("a cluster")
}

/// Two nodes, the memory of the second one, and the key that the first one has to it.
fn pair(times: InterfaceTimes, len: usize) -> (Cluster, Key) {
    let mut cluster = torus(times);
    cluster.connect(0, 5);
    let region = cluster.program_mut(5).add_region(vec![0; len]).expect("a number");
    let cover =
        Cover { holder: PeerId(0), rights: Rights::all(), region, base: 0, len: len as u64 };
    let key = cluster.share(5, cover).expect("a free slot");
    (cluster, key)
}

fn put(key: Key, offset: u64, data: Vec<u8>, classes: Classes) -> Order<Local> {
    let len = data.len() as u64;
    let claim = Claim { key, offset, len };
    let command = Command { action: Action::Put, classes, tag: 7, value: 9, claim };
    Order { command, shape: Shape::contiguous(len), local: Some(Local::Bytes(data)) }
}

/// Lets time go on until `done`, and returns when that was.
fn until(cluster: &mut Cluster, mut done: impl FnMut(&mut Cluster) -> bool) -> Time {
    while !done(cluster) {
        // A link believes that its other end is dead after a second of simulated time.
        assert!(cluster.now() < Time::from_nanos(10_000_000_000), "it takes too long");
        assert!(cluster.step(), "nothing happens any more");
    }
    cluster.now()
}

/// Lets time go on until links have nothing to say for a while.
fn settle(cluster: &mut Cluster) {
    while cluster.next_time().is_some_and(|at| at - cluster.now() < Time::from_nanos(100_000)) {
        cluster.step();
    }
}

const TIMES: InterfaceTimes = InterfaceTimes {
    call: Time::from_nanos(100),
    read: Time::ZERO,
    answer: Time::ZERO,
    send: Stage { frame: Time::from_nanos(8), byte: Time(50), latency: Time::from_nanos(30) },
    receive: Stage { frame: Time::from_nanos(12), byte: Time(70), latency: Time::from_nanos(90) },
};

#[test]
fn an_operation_alone_takes_the_sum_of_its_parts() {
    let (mut cluster, key) = pair(TIMES, 64);
    settle(&mut cluster);
    let (begun, before) = (cluster.now(), cluster.network().tally().clone());
    let posted = cluster.post(0, PeerId(5), put(key, 8, vec![3; 8], Classes::COMPLETER));
    assert!(posted.is_ok());
    let at = until(&mut cluster, |cluster| cluster.notification(5).is_some());
    assert_eq!(cluster.program(5).region(0, 8..16), Ok(&[3; 8][..]));
    let tally = cluster.network().tally();
    assert_eq!(tally.delivered() - before.delivered(), 1, "it is one frame");
    let bytes = (tally.bytes() - before.bytes()) as u64;
    let passing = bytes.div_ceil(8) * LINK.phit.0;
    // Two links between three routers, and one to the node. A node is at its router, in whose
    // pipeline its own packets need not be.
    let network = 3 * LINK.wire.0 + 2 * 40_000 + passing;
    let stages = (30_000 + 50 * bytes) + (90_000 + 70 * bytes);
    let expected = 100_000 + stages + network;
    // Nodes count whole nanoseconds.
    let spent = at - begun;
    assert!(spent.0.abs_diff(expected) <= 1_000, "{spent}, and {expected} ps are expected");
}

#[test]
fn a_stream_is_as_fast_as_its_slowest_stage() {
    // 100 ns for each frame at the sender, far longer than links and the receiver take.
    let slow = Stage { frame: Time::from_nanos(2_000), byte: Time::ZERO, latency: Time::ZERO };
    let (mut cluster, key) = pair(InterfaceTimes { send: slow, ..TIMES }, 4096);
    let mut arrived = Vec::new();
    let mut posted = 0;
    while arrived.len() < 200 {
        let order = put(key, 0, vec![1; 2048], Classes::COMPLETER);
        if posted < 200 && cluster.post(0, PeerId(5), order).is_ok() {
            posted += 1;
            continue;
        }
        assert!(cluster.step());
        while cluster.notification(5).is_some() {
            arrived.push(cluster.now());
        }
    }
    // A put of 2 KiB fills a frame beyond half, so that each has a frame of its own or shares it
    // with one more; acknowledgements come the other way.
    let sent = cluster.network().tally().delivered();
    let spent = (arrived[199] - arrived[99]).nanos();
    let frames = spent / 2_000.0;
    assert!((50.0..=101.0).contains(&frames), "{frames} frames of {sent} for 100 puts");
}

#[test]
fn what_is_posted_arrives_in_order_and_all_ends() {
    let (mut cluster, key) = pair(InterfaceTimes::of(&nic::Parameters::server()), 1 << 16);
    let mut ended = 0;
    for round in 0..100_u64 {
        let data = vec![round as u8 + 1; 600];
        while cluster
            .post(0, PeerId(5), put(key, 600 * round, data.clone(), Classes::empty()))
            .is_err()
        {
            assert!(cluster.step());
        }
        while let Some(event) = cluster.event(0) {
            assert!(matches!(event, Event::Ended(PeerId(5), ended) if ended.status == Status::Ok));
            ended += 1;
        }
    }
    until(&mut cluster, |cluster| cluster.flush(0, PeerId(5)) == Ok(true));
    while let Some(Event::Ended(..)) = cluster.event(0) {
        ended += 1;
    }
    assert_eq!(ended, 100);
    for round in 0..100 {
        let place = 600 * round..600 * (round + 1);
        assert_eq!(cluster.program(5).region(0, place), Ok(&[round as u8 + 1; 600][..]));
    }
}

#[test]
fn a_seed_is_not_needed_for_one_course() {
    let course = || {
        let (mut cluster, key) = pair(TIMES, 4096);
        let mut times = Vec::new();
        for _ in 0..50 {
            let order = put(key, 0, vec![1; 700], Classes::COMPLETER);
            _ = cluster.post(0, PeerId(5), order);
            cluster.step();
            times.push(cluster.now());
        }
        times
    };
    assert_eq!(course(), course());
}

#[test]
fn a_dead_node_is_noticed_and_may_be_started_anew() {
    let (mut cluster, key) = pair(TIMES, 64);
    cluster.kill(5);
    assert!(cluster.post(0, PeerId(5), put(key, 0, vec![1; 8], Classes::REQUESTER)).is_ok());
    until(&mut cluster, |cluster| cluster.connection(0, PeerId(5)) == Err(Fault::PeerDead));
    let note = cluster.notification(0).expect("the operation ends");
    assert_eq!(note.status, Status::Fault(Fault::PeerDead));
    assert_eq!(cluster.forget(0, PeerId(5)), Ok(()));
    cluster.restart(5);
    cluster.connect(0, 5);
    assert_eq!(cluster.send(0, PeerId(5), 1, b"again"), Ok(()));
    until(&mut cluster, |cluster| cluster.receive(5, PeerId(0)).is_some());
}

#[test]
fn the_memory_of_a_former_node_can_be_read() {
    let (mut cluster, key) = pair(TIMES, 64);
    assert!(cluster.post(0, PeerId(5), put(key, 8, vec![3; 8], Classes::empty())).is_ok());
    until(&mut cluster, |cluster| cluster.flush(0, PeerId(5)) == Ok(true));
    cluster.kill(5);
    let former = cluster.restart(5);
    assert_eq!(former.region(0, 0..24).map(<[u8]>::to_vec), Ok([[0; 8], [3; 8], [0; 8]].concat()));
    assert!(cluster.program(5).region(0, 0..1).is_err(), "the new one has no memory");
}

#[test]
fn a_node_connected_with_itself_sends_nothing_over_the_network() {
    let mut cluster = torus(TIMES);
    cluster.connect_loopback(5);
    let region = cluster.program_mut(5).add_region(vec![0; 64]).expect("a number");
    let cover = Cover { holder: PeerId(5), rights: Rights::all(), region, base: 0, len: 64 };
    let key = cluster.share(5, cover).expect("a free slot");
    let order = put(key, 8, vec![3; 8], Classes::COMPLETER);
    assert!(cluster.post(5, PeerId(5), order).is_ok());
    assert_eq!(cluster.send(5, PeerId(5), 4, b"to myself"), Ok(()));
    // The call, and both stages, each with the time of a frame where it is serial. Nodes count
    // whole nanoseconds.
    let at = until(&mut cluster, |cluster| cluster.notification(5).is_some());
    assert_eq!(at, Time::from_nanos(100 + 8 + 30 + 90));
    assert_eq!(cluster.program(5).region(0, 8..16), Ok(&[3; 8][..]));
    let mut message = None;
    until(&mut cluster, |cluster| {
        message = message.take().or_else(|| cluster.receive(5, PeerId(5)));
        message.is_some()
    });
    assert_eq!(message.map(|message| (message.tag, message.bytes)), Some((4, b"to myself".into())));
    until(&mut cluster, |cluster| cluster.flush(5, PeerId(5)) == Ok(true));
    assert_eq!(cluster.network().tally().delivered(), 0);
}

#[test]
fn a_connection_ends_at_once_for_who_ends_it_and_soon_for_its_peer() {
    let (mut cluster, key) = pair(TIMES, 64);
    settle(&mut cluster);
    let begun = cluster.now();
    assert_eq!(cluster.disconnect(5, PeerId(0)), Ok(()));
    assert_eq!(cluster.connection(5, PeerId(0)), Err(Fault::ForeignHandle));
    assert_eq!(cluster.disconnect(5, PeerId(0)), Err(Fault::ForeignHandle));
    let at = until(&mut cluster, |cluster| cluster.connection(0, PeerId(5)).is_err());
    assert!(at - begun < Time::from_nanos(2_000), "it is told, in {}", at - begun);
    assert!(cluster.has_left(0, PeerId(5)));
    // The number is free for another connection, which old keys do not reach.
    assert_eq!(cluster.forget(0, PeerId(5)), Ok(()));
    cluster.connect(0, 5);
    assert!(cluster.post(0, PeerId(5), put(key, 0, vec![1; 8], Classes::REQUESTER)).is_ok());
    until(&mut cluster, |cluster| cluster.is_flushed(0, PeerId(5)));
    let note = cluster.notification(0).expect("the operation ends");
    assert_eq!(note.status, Status::Fault(Fault::StaleKey));
}

#[test]
fn a_long_operation_finds_room_bit_by_bit() {
    let (mut cluster, key) = pair(InterfaceTimes::of(&nic::Parameters::server()), 1 << 20);
    let order = put(key, 0, vec![7; 1 << 20], Classes::empty());
    assert!(cluster.post(0, PeerId(5), order).is_ok());
    assert!(!cluster.has_room(0, PeerId(5)), "it is longer than all frames");
    let next = put(key, 0, vec![8; 8], Classes::empty());
    assert!(cluster.post(0, PeerId(5), next.clone()).is_err());
    until(&mut cluster, |cluster| cluster.has_room(0, PeerId(5)));
    assert!(cluster.post(0, PeerId(5), next).is_ok());
    until(&mut cluster, |cluster| cluster.flush(0, PeerId(5)) == Ok(true));
    let found = cluster.program(5).region(0, 0..1 << 20).expect("the region");
    assert!(found[..8] == [8; 8] && found[8..].iter().all(|byte| *byte == 7));
}

#[test]
fn time_does_not_run_away_from_a_program_that_looks() {
    let mut cluster = torus(TIMES);
    settle(&mut cluster);
    let (begun, look) = (cluster.now(), Time::from_nanos(10));
    for round in 1..=1_000 {
        cluster.pass(look);
        assert_eq!(cluster.now() - begun, Time::from_nanos(10 * round), "nobody is connected");
    }
    cluster.connect_loopback(5);
    let begun = cluster.now();
    assert_eq!(cluster.send(5, PeerId(5), 1, b"word"), Ok(()));
    while cluster.receive(5, PeerId(5)).is_none() {
        let before = cluster.now();
        cluster.pass(look);
        assert!(cluster.now() - before <= look);
        // The call, and both stages.
        assert!(cluster.now() - begun <= Time::from_nanos(100 + 8 + 30 + 90) + look);
    }
}

#[test]
fn nodes_that_have_died_send_nothing_more_although_they_were_about_to() {
    let (mut cluster, key) = pair(TIMES, 64);
    assert!(cluster.post(0, PeerId(5), put(key, 0, vec![1; 8], Classes::COMPLETER)).is_ok());
    until(&mut cluster, |cluster| cluster.notification(5).is_some());
    // Both have timers: for an acknowledgement, and for one that does not come.
    cluster.kill(0);
    cluster.kill(5);
    let made = cluster.network().made();
    while cluster.step() {}
    assert_eq!(cluster.network().made(), made);
}

#[test]
fn small_buffers_are_an_error() {
    let topology = Topology::torus(&[4, 4]).expect("a possible torus");
    let made = Cluster::new(&topology, parameters(Policy::DimensionOrder, 256), TIMES);
    assert!(matches!(made, Err(ClusterError::Buffer(256))));
}

//! Our own interface: closed forms of its units, and the cluster that has its times.
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::execute::{Action, Command};
use ayre_proto::node::Order;
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use ayre_sim::cluster::{Cluster, InterfaceTimes, Local};
use ayre_sim::host::pcie::Pcie;
use ayre_sim::link::LinkTiming;
use ayre_sim::machine::Passage;
use ayre_sim::network::{self, NodeQueue, Readout, Switching};
use ayre_sim::nic::{Lookup, Operation, Parameters, Unit, part};
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;

use Operation::{Atomic as FetchAdd, Get, Immediate, Message, Put};

const OPERATIONS: [Operation; 5] = [Put, Immediate, Message, Get, FetchAdd];

/// Nanoseconds of bytes on PCI Express 3.0 x16, with packets of 256 bytes and `around` bytes about
/// each.
fn host(bytes: u32, around: u32) -> f64 {
    let all = bytes + bytes.div_ceil(256) * around;
    f64::from(all) / (8.0 * 16.0 * 128.0 / 130.0 / 8.0)
}

/// Nanoseconds of bytes on the link of 10 GB/s.
fn link(bytes: u32) -> f64 {
    f64::from(bytes.next_multiple_of(8)) / 10.0
}

fn alone(operation: Operation, bytes: u32) -> Passage {
    Parameters::server().alone(operation, bytes, Lookup::Hit)
}

fn close(ours: f64, expected: f64, error: f64, about: &str) {
    assert!((ours - expected).abs() <= error, "{about}: {ours}, and {expected} is expected");
}

#[test]
fn a_put_alone_takes_the_sum_of_the_table_and_of_its_ways() {
    // The cycles of all units that a put passes, by hand from the table, at 4 ns.
    let cycles = 2 + 2 + 2 + (3 + 2 + 4) + (5 + 3) + (5 + 2) + (3 + 2) + (2 + 2);
    for bytes in [64, 512, 4096] {
        let store = host(64, 24) + 150.0;
        let read = host(0, 0) + 24.0 / 15.754 + 150.0 + 70.0 + 150.0 + host(bytes, 20);
        // A header of 96 bytes, the head of a record, the command, and the data.
        let network = 20.0 + link(96 + 8 + 48 + bytes);
        let write = host(bytes, 24) + host(64, 24) + 150.0 + 70.0;
        let expected = f64::from(cycles) * 4.0 + store + read + network + write;
        close(alone(Put, bytes).time().nanos(), expected, 0.1, &format!("{bytes} B"));
    }
}

#[test]
fn the_parts_of_an_operation_alone_sum_to_its_time_without_waits() {
    for operation in OPERATIONS {
        let passage = alone(operation, 8);
        let sum = passage.parts.iter().fold(Time::ZERO, |sum, (_, time)| sum + *time);
        assert_eq!((sum, passage.waited), (passage.time(), Time::ZERO), "{operation:?}");
    }
    let of = |operation, part| {
        let parts = alone(operation, 8).parts;
        parts.into_iter().find(|(other, _)| *other == part).map(|(_, time)| time)
    };
    assert_eq!(of(Put, part::READ), None, "eight bytes are in the line of the command");
    assert_eq!(of(FetchAdd, part::ALU), Some(Time::from_nanos(8)));
}

#[test]
fn a_miss_adds_a_read_of_a_word_for_each_address() {
    let parameters = Parameters::server();
    for (operation, bytes, addresses) in
        [(Put, 8, 1), (Put, 64, 2), (Get, 64, 2), (FetchAdd, 8, 1), (Message, 8, 0)]
    {
        let [hit, miss] = [Lookup::Hit, Lookup::Miss]
            .map(|lookup| parameters.alone(operation, bytes, lookup).time());
        assert_eq!((miss - hit).0, addresses * parameters.word_read().0, "{operation:?}");
    }
}

#[test]
fn a_stream_is_as_fast_as_what_is_held_longest() {
    let parameters = Parameters::server();
    let period = |operation, bytes| 1e9 / parameters.rate(operation, bytes, Lookup::Hit);
    // Four cycles of the frame maker, and 160 bytes of a frame at the link, are 16 ns each.
    close(period(Put, 8), 16.0, 0.01, "short puts");
    // The link is slower than that to the host.
    close(period(Put, 4096), link(96 + 8 + 48 + 4096), 0.01, "long puts");
    // The word is kept from its read until its write has left.
    let word = 4.0 * f64::from(4 + 2 + 2) + 24.0 / 15.754 + 370.0 + host(8, 20) + host(8, 24);
    close(period(FetchAdd, 8), word, 0.1, "atomics");
    // With a link as fast as light the link to the host is left.
    let fast = Parameters { link: LinkTiming { phit: Time(1), ..parameters.link }, ..parameters };
    let period = 1e9 / fast.rate(Put, 4096, Lookup::Hit);
    close(period, host(4096, 24) + host(64, 24), 0.01, "long puts to the host");
}

#[test]
fn few_tags_and_few_places_bound_a_stream_by_their_round_trips() {
    let parameters = Parameters::server();
    let rate = |parameters: Parameters| parameters.rate(Put, 512, Lookup::Hit);
    let one_tag = Parameters { pcie: Pcie { tags: 1, ..parameters.pcie }, ..parameters };
    let read = parameters.pcie.read_time(512, parameters.memory);
    close(1e9 / rate(one_tag), read.nanos(), 0.01, "one tag");
    let one_place = Parameters { places: 1, ..parameters };
    let cycles = parameters.latency(&[Unit::Channel, Unit::Check]).nanos();
    let there = link(96 + 8 + 48 + 512) + 20.0;
    close(1e9 / rate(one_place), cycles + there + 20.0 + link(96), 0.01, "one place");
    assert!(rate(parameters) > 5.0 * rate(one_tag), "many tags hide the way to memory");
}

/// The torus that both models have between the nodes: three wires, and two routers.
const LINK_TRIP: Time = Time::from_nanos(3 * 20 + 2 * 40);

fn nic() -> Parameters {
    Parameters { trip: LINK_TRIP, ..Parameters::server() }
}

/// Two nodes of a cluster with the times of the units, and the key to the second one's memory.
fn cluster() -> (Cluster, Key) {
    let parameters = network::Parameters {
        link: nic().link,
        wire_to_node: nic().link.wire,
        pipeline: Time::from_nanos(40),
        injection: Time::ZERO,
        credit: Time::from_nanos(20),
        channels: 2,
        // Two frames of a page find room, so that the second one follows at once.
        buffer: 16_384,
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy: Policy::DimensionOrder,
    };
    let topology = Topology::torus(&[4, 4]).expect("a possible torus");
    let times = InterfaceTimes::of(&nic());
    let mut cluster = Cluster::new(&topology, parameters, times).expect("a cluster");
    cluster.connect(0, 5);
    let region = cluster.program_mut(5).add_region(vec![0; 1 << 16]).expect("a number");
    let cover = Cover { holder: PeerId(0), rights: Rights::all(), region, base: 0, len: 1 << 16 };
    let key = cluster.share(5, cover).expect("a free slot");
    // Links have nothing to say for a while.
    while cluster.next_time().is_some_and(|at| at - cluster.now() < Time::from_nanos(100_000)) {
        cluster.step();
    }
    (cluster, key)
}

fn order(key: Key, operation: Operation, bytes: u32) -> Order<Local> {
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let len = bytes.into();
    let (action, classes, local) = match operation {
        Put => (Action::Put, Classes::COMPLETER, Some(Local::Bytes(vec![1; bytes as usize]))),
        Get => (Action::Get, Classes::REQUESTER, Some(Local::Buffer(0))),
        FetchAdd => (Action::Fetch(add), Classes::REQUESTER, None),
        _ => (Action::Immediate(1), Classes::COMPLETER, None),
    };
    let claim = Claim { key, offset: 0, len };
    let command = Command { action, classes, tag: 0, value: 0, claim };
    Order { command, shape: Shape::contiguous(len), local }
}

/// The time of an operation in the cluster, until the program knows of its end.
fn in_cluster(operation: Operation, bytes: u32) -> Time {
    let (mut cluster, key) = cluster();
    let begun = cluster.now();
    if operation == Message {
        assert_eq!(cluster.send(0, PeerId(5), 1, &vec![1; bytes as usize]), Ok(()));
    } else {
        assert!(cluster.post(0, PeerId(5), order(key, operation, bytes)).is_ok());
    }
    let at_target = matches!(operation, Put | Immediate);
    loop {
        let is_over = match operation {
            Message => cluster.receive(5, PeerId(0)).is_some(),
            _ => cluster.notification(if at_target { 5 } else { 0 }).is_some(),
        };
        if is_over {
            return cluster.now() - begun;
        }
        assert!(cluster.step(), "nothing happens any more");
    }
}

/// A stage of the cluster takes the same time for all frames, and counts all bytes of records. So
/// it is up to 2 % late: heads of records and fillers do not pass the hosts' links. The three
/// answers of a long get share a frame: 3 %. A message needs neither key nor notification, whose
/// 7 cycles and line the cluster adds.
#[test]
fn the_cluster_takes_as_long_as_the_units() {
    let cases = [
        (Put, &[8, 16, 64, 256, 1024, 1776, 4096][..], 0.02, 0.0),
        (Immediate, &[8], 0.02, 0.0),
        (Message, &[8, 16, 64, 256, 1024], 0.02, 28.0 + host(64, 24)),
        (Get, &[8, 16, 64, 256, 1024, 1776], 0.02, 0.0),
        (Get, &[4096], 0.03, 0.0),
        (FetchAdd, &[8], 0.02, 0.0),
    ];
    for (operation, lengths, share, more) in cases {
        for &bytes in lengths {
            let ours = in_cluster(operation, bytes).nanos();
            let units = nic().alone(operation, bytes, Lookup::Hit).time().nanos();
            let range = 0.99 * units..units * (1.0 + share) + more;
            assert!(range.contains(&ours), "{operation:?}, {bytes} B: {ours}, {range:?} ns");
        }
    }
}

/// Frames of the cluster are filled up to whole lines, and acknowledgements pass between them: 2 %.
#[test]
fn a_stream_of_the_cluster_is_as_fast_as_that_of_the_units() {
    let (mut cluster, key) = cluster();
    let mut ends = Vec::new();
    let mut posted = 0;
    while ends.len() < 200 {
        if posted < 200 && cluster.post(0, PeerId(5), order(key, Put, 4096)).is_ok() {
            posted += 1;
            continue;
        }
        assert!(cluster.step(), "nothing happens any more");
        while cluster.notification(5).is_some() {
            ends.push(cluster.now());
        }
    }
    let period = (ends[199] - ends[99]).nanos() / 100.0;
    let units = 1e9 / nic().rate(Put, 4096, Lookup::Hit);
    close(period / units, 1.0, 0.02, "periods");
}

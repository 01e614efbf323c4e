//! Properties that every network has, for all parameters.
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{
    BuildError, Network, NodeQueue, Outcome, Parameters, Readout, Record, Switching,
};
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::{Dragonfly, Topology};
use ayre_sim::work::{Arrivals, Load, Pattern, Sizes};
use core::fmt::Debug;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Case {
    topology: Topology,
    parameters: Parameters,
    sizes: Sizes,
    arrivals: Arrivals,
    offered: f64,
    seed: u64,
}

fn shapes() -> impl Strategy<Value = (Topology, Policy, u16)> {
    prop_oneof![
        (2_u32..12).prop_map(|n| (Topology::star(n).unwrap(), Policy::Direct, n as u16)),
        (2_u32..5, 2_u32..6, 2_u16..5).prop_map(|(a, b, c)| (
            Topology::torus(&[a, b]).unwrap(),
            Policy::DimensionOrder,
            c
        )),
        (2_u32..4, 2_u32..4, 2_u32..4, 1_u16..4).prop_map(|(a, b, c, v)| (
            Topology::mesh(&[a, b, c]).unwrap(),
            Policy::DimensionOrder,
            v
        )),
        (1_u32..5, 1_u16..3).prop_map(|(d, c)| (
            Topology::hypercube(d).unwrap(),
            Policy::DimensionOrder,
            c
        )),
        (2_u32..4, 1_u32..4, 1_u16..3).prop_map(|(h, l, c)| (
            Topology::tree(h, l).unwrap(),
            Policy::UpByChance,
            c
        )),
        (2_u32..4, 1_u32..4, 1_u16..3).prop_map(|(h, l, c)| (
            Topology::tree(h, l).unwrap(),
            Policy::UpByTarget,
            c
        )),
        (2_u32..5, 2_u32..6, 3_u16..6).prop_map(|(a, b, c)| (
            Topology::torus(&[a, b]).unwrap(),
            Policy::Adaptive,
            c
        )),
        (2_u32..4, 2_u32..4, 2_u32..4, 2_u16..4).prop_map(|(a, b, c, v)| (
            Topology::mesh(&[a, b, c]).unwrap(),
            Policy::Adaptive,
            v
        )),
        (2_u32..5, 2_u32..5, 4_u16..6).prop_map(|(a, b, c)| (
            Topology::torus(&[a, b]).unwrap(),
            Policy::Valiant,
            c
        )),
        (2_u32..4, 1_u32..3, 1_u32..3, 3_u16..6).prop_map(|(routers, nodes, globals, c)| (
            Topology::dragonfly(Dragonfly { routers, nodes, globals }).unwrap(),
            Policy::Valiant,
            c
        )),
        (2_u32..5, 2_u32..5, 1_u16..3).prop_map(|(a, b, c)| (
            Topology::torus(&[a, b]).unwrap(),
            Policy::UpDown,
            c
        )),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let times = (0_u64..5_000, 1_u64..8_000, 0_u64..5_000, 0_u64..5_000, 1_u64..3_000);
    let work = (1_u32..64, 0_u32..64, any::<bool>(), 0.05_f64..1.5, any::<u64>());
    (shapes(), times, work, 0_u32..200, any::<bool>(), any::<bool>(), 1_u32..9).prop_map(
        |(shape, times, work, more, stored, by_channel, width)| {
            let (topology, policy, channels) = shape;
            let (wire, pipeline, injection, credit, phit) = times;
            let (least, spread, poisson, offered, seed) = work;
            let direct = policy == Policy::Direct;
            let parameters = Parameters {
                link: LinkTiming { phit: Time(phit), width, wire: Time(wire) },
                wire_to_node: Time(wire),
                pipeline: Time(pipeline),
                injection: Time(injection),
                credit: Time(credit),
                channels,
                buffer: least + spread + more,
                readout: if by_channel { Readout::Channel } else { Readout::Port },
                node_queue: if direct { NodeQueue::PerTarget } else { NodeQueue::One },
                switching: if stored { Switching::StoreAndForward } else { Switching::CutThrough },
                policy,
            };
            let sizes = Sizes::Uniform(least, least + spread);
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Bernoulli };
            Case { topology, parameters, sizes, arrivals, offered, seed }
        },
    )
}

fn build(case: &Case) -> Network {
    let load =
        Load::new(Pattern::Uniform, case.sizes, case.arrivals, case.offered, &case.parameters.link);
    Network::new(&case.topology, case.parameters, load.unwrap(), case.seed).unwrap()
}

/// All results of three runs, and the course until no packet is left.
fn results(case: &Case, parts: u32, is_closed: bool) -> (Vec<impl PartialEq + Debug>, String) {
    let mut network = build(case);
    network.divide(parts);
    let mut results = Vec::new();
    for packets in [50, 300, 1] {
        let outcome = network.run(packets);
        let tally = network.tally();
        results.push((
            outcome,
            (network.time(), network.backlog(), network.made(), network.bytes_made()),
            (tally.delivered(), tally.bytes(), tally.mean_hops().to_bits()),
            (tally.delay().mean.to_bits(), tally.delay().half_width.to_bits()),
            (tally.parts(), tally.total_delay(), tally.span()),
            [0.1, 0.5, 0.99].map(|share| tally.quantile(share)),
            network.course(),
        ));
        if packets == 50 {
            network.discard();
            network.record(Record::new(&case.topology, network.time(), 0));
        }
    }
    let record = format!("{:?}", network.take_record());
    network.stop_sources();
    if !is_closed {
        assert_eq!(network.run(u64::MAX / 2), Outcome::Drained);
        network.check_idle();
    }
    (results, format!("{record} {:x}", network.course()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Every packet that was made arrives, the parts of its time sum to its delay, and all credits
    /// are back at the end.
    #[test]
    fn whatever_enters_leaves(case in cases()) {
        let mut network = build(&case);
        prop_assert_eq!(network.run(2_000), Outcome::Measured);
        network.stop_sources();
        prop_assert_eq!(network.run(u64::MAX / 2), Outcome::Drained);
        prop_assert_eq!(network.backlog(), 0);
        let tally = network.tally();
        prop_assert_eq!(tally.delivered(), network.made());
        prop_assert_eq!(tally.bytes(), network.bytes_made());
        let parts = tally.parts();
        prop_assert_eq!(parts.queued + parts.waited + parts.moved, tally.total_delay());
        network.check_idle();
    }

    /// Bytes on their way are in queues or between two of them, for the times that the parts of
    /// delays say, and no buffer holds more than its room.
    #[test]
    fn queues_are_as_long_as_the_times_in_them(mut case in cases()) {
        case.sizes = Sizes::Fixed(case.sizes.most());
        let mut network = build(&case);
        network.record(Record::new(&case.topology, Time::ZERO, 0));
        // The time of all packets on their way, in picoseconds.
        let (mut backlog, mut before) = (0, Time::ZERO);
        while let Some(now) = network.next_time() {
            backlog += network.backlog() as u128 * u128::from((now - before).0);
            before = now;
            network.step();
            if network.made() > 1_500 {
                network.stop_sources();
            }
        }
        let record = network.take_record().unwrap();
        let sum = |is_behind_link: bool| {
            let queues = record.queues().iter();
            let queues = queues.filter(|queue| queue.from.is_some() == is_behind_link);
            queues.map(|queue| queue.mean).sum::<f64>() * record.span().0 as f64
        };
        let rooms = (0..record.windows()).map(|window| record.room(window));
        let windows = rooms.clone().map(|room| room.0).sum::<f64>() * record.window().0 as f64;
        prop_assert!((windows - sum(true)).abs() <= 1e-9 * windows, "{windows} {}", sum(true));
        let buffers = record.queues().iter().filter(|queue| queue.from.is_some());
        let most = buffers.map(|queue| queue.most).max().unwrap_or_default();
        prop_assert_eq!(rooms.map(|room| room.1).max().unwrap_or_default(), most);
        prop_assert!(most <= case.parameters.buffer.into(), "{most}");
        prop_assert!(record.queues().iter().all(|queue| queue.left == 0));

        let tally = network.tally();
        let passing = case.parameters.link.span(case.sizes.most()).0 as f64;
        let flight = (case.parameters.link.wire + case.parameters.pipeline).0 as f64;
        let packets = tally.delivered() as f64;
        let hops = (tally.mean_hops() * packets).round();
        let parts = tally.parts();
        let waited = (parts.queued + parts.waited) as f64;
        let queued = (sum(true) + sum(false)) / f64::from(case.sizes.most());
        // Tails of packets that pass no link may leave after the last event.
        let late = passing * case.topology.nodes.len() as f64 + 1e-9 * queued;
        let error = queued - waited - (hops + packets) * passing;
        prop_assert!((-late..=1e-9 * queued).contains(&error), "{error} of {queued}");
        // A packet counts as delivered when its head takes the link to its node.
        let injection = packets * case.parameters.injection.0 as f64;
        let elsewhere = injection + hops * flight - (hops + packets) * passing;
        let error = backlog as f64 - queued - elsewhere;
        prop_assert!((-1e-9 * queued..=late).contains(&error), "{error} of {backlog}");
    }

    /// A seed decides the whole course.
    #[test]
    fn a_seed_decides_the_course(case in cases()) {
        let course = |case: &Case| {
            let mut network = build(case);
            network.run(1_000);
            network.course()
        };
        let first = course(&case);
        prop_assert_eq!(first, course(&case));
        let mut scrambled = build(&case);
        scrambled.scramble(case.seed);
        scrambled.run(1_000);
        prop_assert_eq!(first, scrambled.course(), "the order of events of one time matters");
        let other = Case { seed: case.seed ^ 1, ..case };
        prop_assert_ne!(first, course(&other));
    }
}

proptest! {
// Threads meet often here, which takes long where there are more of them than processors.
#![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

/// A network in several parts takes the course of the whole one, and comes to equal results.
#[test]
fn parts_change_nothing(case in cases(), loops in (any::<bool>(), 1_u32..5, 0_u64..9_000)) {
    let (is_closed, packets, think) = loops;
    let arrivals = Arrivals::Window { packets, think: Time(think) };
    let case = if is_closed { Case { arrivals, ..case } } else { case };
    let results = |parts| results(&case, parts, is_closed);
    let whole = results(1);
    for parts in [2, 3] {
        prop_assert_eq!(&whole, &results(parts), "in {} parts", parts);
    }
}}

#[test]
fn a_router_with_too_many_queues_is_refused() {
    let link = LinkTiming { phit: Time(1), width: 1, wire: Time(1) };
    let parameters = Parameters {
        link,
        wire_to_node: Time(0),
        pipeline: Time(0),
        injection: Time(0),
        credit: Time(0),
        channels: 1024,
        buffer: 8,
        readout: Readout::Port,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Minimal,
    };
    let large = Topology::full(32, 33).unwrap();
    let load = Load::new(Pattern::Uniform, Sizes::Fixed(1), Arrivals::Poisson, 0.1, &link).unwrap();
    let refused = Network::new(&large, parameters, load, 1);
    let queues = 31 * 1024 + 33 * 32 * 33;
    assert_eq!(refused.map(|_| ()), Err(BuildError::Queues { router: 0, queues }));
}

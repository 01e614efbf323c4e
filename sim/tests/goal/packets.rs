//! Schedules over a network: the time of a message alone is the sum of its parts.
use super::{draw, model_of, read};
use ayre_sim::goal::{Hosts, LogGops, Packets, Pattern, RunError, Start, run, run_over};
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{InjectError, Network, NodeQueue, Outcome, Parameters, Readout, Switching};
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;
use ayre_sim::work::{Arrivals, Load, Pattern as Targets, Sizes};
use core::num::NonZeroU32;
use proptest::prelude::*;

const LINK: LinkTiming = LinkTiming { phit: Time(800), width: 1, wire: Time(5_000) };
const PACKETS: Packets = Packets { most: 256, header: 16 };
const HOSTS: Hosts = Hosts {
    overhead: Time(300_000),
    overhead_per_byte: Time(0),
    gap: Time(10_000),
    eager: 1 << 20,
    start: Start::WhenEnded,
};

fn parameters(policy: Policy, channels: u16) -> Parameters {
    let direct = policy == Policy::Direct;
    Parameters {
        link: LINK,
        wire_to_node: Time(7_000),
        pipeline: Time(40_000),
        injection: Time(20_000),
        credit: Time(5_000),
        channels,
        buffer: 2_048,
        readout: if direct { Readout::Channel } else { Readout::Port },
        node_queue: if direct { NodeQueue::PerTarget } else { NodeQueue::One },
        switching: Switching::CutThrough,
        policy,
    }
}

fn star(nodes: u32) -> Network {
    let parameters = parameters(Policy::Direct, nodes as u16);
    Network::silent(&Topology::star(nodes).unwrap(), parameters).unwrap()
}

fn torus(sides: &[u32]) -> Network {
    let parameters = parameters(Policy::DimensionOrder, 2);
    Network::silent(&Topology::torus(sides).unwrap(), parameters).unwrap()
}

/// Packets of a message, and their bytes.
fn packets_of(bytes: u64) -> (u64, u64) {
    let count = bytes.div_ceil(PACKETS.most.into()).max(1);
    (count, bytes + count * u64::from(PACKETS.header))
}

/// From the departure of a message to its arrival, over this number of links between routers.
fn way(bytes: u64, links: u64) -> Time {
    let (_, all) = packets_of(bytes);
    // The packets follow each other on each link. Their heads do not wait for their tails.
    let Parameters { wire_to_node, pipeline, injection, .. } = parameters(Policy::Direct, 2);
    let router = LINK.wire + pipeline;
    injection + wire_to_node + Time(links * router.0 + all * LINK.phit.0)
}

/// Checks that all packets have arrived, and all credits come back.
fn check_drained(network: &mut Network) {
    assert_eq!(network.backlog(), 0);
    assert_eq!(network.run(1), Outcome::Drained);
    network.check_idle();
}

#[test]
fn a_message_alone_takes_the_sum_of_its_parts() {
    for bytes in [0, 1, 255, 256, 257, 5_000, 100_000] {
        let text = format!(
            "num_ranks 2\nrank 0 {{\nsend {bytes}b to 1\n}}\nrank 1 {{\nrecv {bytes}b from 0\n}}"
        );
        for (mut network, links) in [(star(2), 1), (torus(&[2, 3]), 1)] {
            let report = run_over(&read(&text), &HOSTS, PACKETS, &mut network, true).unwrap();
            let expected = HOSTS.overhead + way(bytes, links) + HOSTS.overhead;
            assert_eq!(report.finish, [HOSTS.overhead, expected], "{bytes} B");
            check_drained(&mut network);
        }
    }
}

#[test]
fn each_link_on_the_way_adds_its_time() {
    let text = "num_ranks 28
        rank 0 {
          send 300b to 27
        }
        rank 27 {
          recv 300b from 0
        }";
    let others: String = (1..27).map(|rank| format!("\nrank {rank} {{\n}}")).collect();
    // Rank 27 is 3 + 3 links away in a torus of 7 x 4, and the way back around is 1 + 1.
    let report =
        run_over(&read(&(text.to_owned() + &others)), &HOSTS, PACKETS, &mut torus(&[7, 4]), false);
    let expected = HOSTS.overhead + way(300, 2) + HOSTS.overhead;
    assert_eq!(report.unwrap().end(), expected);
}

#[test]
fn recursive_doubling_over_a_star_meets_nobody_on_its_way() {
    // Pairs exchange, so that no two messages want one link.
    for bytes in [8, 1_000, 10_000] {
        let mut text = String::new();
        Pattern::Doubling.write(32, bytes, &mut text).unwrap();
        let mut network = star(32);
        let report = run_over(&read(&text), &HOSTS, PACKETS, &mut network, false).unwrap();
        let round = HOSTS.overhead + way(bytes, 1) + HOSTS.overhead;
        assert_eq!(report.end(), Time(5 * round.0));
        let (packets, all) = packets_of(bytes);
        assert_eq!(network.tally().delivered(), 5 * 32 * packets);
        assert_eq!(network.tally().bytes(), u128::from(5 * 32 * all));
        check_drained(&mut network);
    }
}

#[test]
fn an_allreduce_over_a_torus_ends_and_loses_nothing() {
    for (pattern, messages, bytes) in [(Pattern::Doubling, 5, 20_000), (Pattern::Ring, 62, 625)] {
        let mut text = String::new();
        pattern.write(32, 20_000, &mut text).unwrap();
        let schedule = read(&text);
        let mut network = torus(&[4, 8]);
        let report = run_over(&schedule, &HOSTS, PACKETS, &mut network, true).unwrap();
        let least = HOSTS.overhead + way(bytes, 1) + HOSTS.overhead;
        assert!(report.end() > Time(messages * least.0), "faster than without other messages");
        let (packets, all) = packets_of(bytes);
        assert_eq!(network.tally().delivered(), 32 * messages * packets);
        assert_eq!(network.tally().bytes(), u128::from(32 * messages * all));
        check_drained(&mut network);
        let mut scrambled = torus(&[4, 8]);
        scrambled.scramble(5);
        assert_eq!(run_over(&schedule, &HOSTS, PACKETS, &mut scrambled, true), Ok(report));
        assert_eq!(scrambled.course(), network.course());
    }
}

#[test]
fn other_traffic_makes_a_schedule_slower() {
    let mut text = String::new();
    Pattern::Dissemination.write(32, 4_000, &mut text).unwrap();
    let schedule = read(&text);
    let alone = run_over(&schedule, &HOSTS, PACKETS, &mut torus(&[4, 8]), false).unwrap().end();
    let sizes = Sizes::Fixed(256);
    let load = Load::new(Targets::Uniform, sizes, Arrivals::Poisson, 0.3, &LINK).unwrap();
    let topology = Topology::torus(&[4, 8]).unwrap();
    let parameters = parameters(Policy::DimensionOrder, 2);
    let mut network = Network::new(&topology, parameters, load, 1).unwrap();
    let beside = run_over(&schedule, &HOSTS, PACKETS, &mut network, false).unwrap().end();
    assert!(beside > alone, "{beside} is not more than {alone}");
    assert!(beside < Time(3 * alone.0), "{beside} is more than three times {alone}");
}

#[test]
fn impossible_packets_are_errors() {
    let text = "num_ranks 2\nrank 0 {\nsend 5000b to 1\n}\nrank 1 {\nrecv 5000b from 0\n}";
    let fault = |packets, network: &mut Network| {
        run_over(&read(text), &HOSTS, packets, network, false).unwrap_err()
    };
    let nothing = Packets { most: 0, header: 8 };
    assert_eq!(fault(nothing, &mut star(2)), RunError::EmptyPackets);
    let long = Packets { most: 4_000, header: 8 };
    let error = InjectError::Size { bytes: 4_008, limit: 2_048 };
    assert_eq!(fault(long, &mut star(2)), RunError::Packet { line: 3, error });
    let mut three = String::new();
    Pattern::AllToAll.write(3, 8, &mut three).unwrap();
    let few = run_over(&read(&three), &HOSTS, PACKETS, &mut star(2), false);
    assert_eq!(few, Err(RunError::FewNodes { ranks: 3, nodes: 2 }));
    let large = text.replace("5000b", "99999999999b");
    let many = run_over(&read(&large), &HOSTS, PACKETS, &mut star(2), false).unwrap_err();
    let packets = 99_999_999_999_u64.div_ceil(256);
    assert_eq!(many, RunError::ManyPackets { line: 3, packets, limit: 1 << 24 });
}

#[test]
fn packets_of_a_program_have_nodes_and_times() {
    let mut network = star(2);
    let tag = NonZeroU32::MIN;
    let at = Time(9_000);
    assert_eq!(network.inject(at, 0, 2, 8, tag), Err(InjectError::NoNode { node: 2, nodes: 2 }));
    let error = InjectError::Size { bytes: 0, limit: 2_048 };
    assert_eq!(network.inject(at, 0, 1, 0, tag), Err(error));
    assert_eq!(network.inject(at, 0, 1, 8, tag), Ok(()));
    while network.next_time().is_some() {
        network.step();
    }
    let arrival = at + way(8, 1) - Time(16 * LINK.phit.0);
    let deliveries: Vec<_> = network.deliveries().collect();
    assert_eq!(deliveries.len(), 1);
    assert_eq!((deliveries[0].at, deliveries[0].tag), (arrival, tag));
    assert!(matches!(network.inject(at, 0, 1, 8, tag), Err(InjectError::Past { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Over a network a schedule without races ends if it does in the LogGOPS model, whatever
    /// the order of events of one time, and all its bytes arrive.
    #[test]
    fn schedules_end_over_networks(seed: u64, on_torus: bool) {
        let text = draw::schedule(seed, true).unwrap();
        let hosts = Hosts { start: Start::WhenEnded, ..model_of(&text).hosts };
        let schedule = read(&text);
        // With wildcards, the order of arrivals decides on whether all are received. And a rank
        // that sends itself a long message may wait for ever.
        let model = LogGops { hosts, ..LogGops::LOGGOPSIM };
        prop_assume!(!text.contains("-1") && run(&schedule, &model, false).is_ok());
        let mut courses = Vec::new();
        for order in [0, seed] {
            let mut network = if on_torus { torus(&[3, 4]) } else { star(12) };
            network.scramble(order);
            let report = run_over(&schedule, &hosts, PACKETS, &mut network, true);
            let report = report.unwrap();
            check_drained(&mut network);
            prop_assert_eq!(network.tally().bytes(), network.bytes_made());
            courses.push((report, network.course()));
        }
        prop_assert_eq!(&courses[0], &courses[1]);
    }
}

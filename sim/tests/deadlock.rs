//! Deadlocks in the run: they come where a ring of channels is, and nowhere else.
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{Network, NodeQueue, Outcome, Parameters, Readout, Recovery, Switching};
use ayre_sim::routing::{Plan, Policy};
use ayre_sim::time::Time;
use ayre_sim::topology::{Dragonfly, Topology};
use ayre_sim::work::{Arrivals, Load, Pattern, Sizes};

const LINK: LinkTiming = LinkTiming { phit: Time(1_000), width: 1, wire: Time(1_000) };

fn parameters(policy: Policy, channels: u16) -> Parameters {
    Parameters {
        link: LINK,
        wire_to_node: Time(1_000),
        pipeline: Time(2_000),
        injection: Time(2_000),
        credit: Time(1_000),
        channels,
        buffer: 16,
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy,
    }
}

fn load(pattern: Pattern, offered: f64) -> Load {
    Load::new(pattern, Sizes::Fixed(16), Arrivals::Poisson, offered, &LINK).unwrap()
}

fn network(topology: &Topology, policy: Policy, channels: u16, offered: f64, seed: u64) -> Network {
    let load = load(Pattern::Uniform, offered);
    Network::new(topology, parameters(policy, channels), load, seed).unwrap()
}

/// Runs at far more than what a network carries, then without sources until all is still.
fn outcome(topology: &Topology, policy: Policy, channels: u16) -> Outcome {
    let mut network = network(topology, policy, channels, 1.0, 1);
    let outcome = network.run(8_000);
    if outcome != Outcome::Measured {
        return outcome;
    }
    network.stop_sources();
    let outcome = network.run(u64::MAX / 2);
    assert_eq!(outcome == Outcome::Deadlocked, network.ring().is_some());
    outcome
}

#[test]
fn routings_without_a_ring_never_deadlock() {
    let mesh = Topology::mesh(&[16, 16]).unwrap();
    let torus = Topology::torus(&[16, 16]).unwrap();
    let dragonfly = Topology::dragonfly(Dragonfly { routers: 4, nodes: 2, globals: 2 }).unwrap();
    let full = Topology::full(8, 2).unwrap();
    for (topology, policy, channels) in [
        (&mesh, Policy::DimensionOrder, 1),
        (&mesh, Policy::UpDown, 1),
        (&mesh, Policy::WestFirst, 1),
        (&mesh, Policy::Adaptive, 2),
        (&torus, Policy::DimensionOrder, 2),
        (&torus, Policy::UpDown, 1),
        (&torus, Policy::Adaptive, 3),
        (&torus, Policy::Valiant, 4),
        (&dragonfly, Policy::Minimal, 2),
        (&dragonfly, Policy::Valiant, 3),
        (&full, Policy::Valiant, 2),
    ] {
        assert_eq!(outcome(topology, policy, channels), Outcome::Drained, "{policy:?}");
    }
}

#[test]
fn routings_with_a_ring_deadlock_at_high_load() {
    let mesh = Topology::mesh(&[16, 16]).unwrap();
    let torus = Topology::torus(&[16, 16]).unwrap();
    for (topology, policy, channels) in [
        (&mesh, Policy::SpreadShortestPath, 1),
        (&torus, Policy::SpreadShortestPath, 1),
        (&torus, Policy::PlainDimensionOrder, 1),
    ] {
        assert_eq!(outcome(topology, policy, channels), Outcome::Deadlocked, "{policy:?}");
    }
}

#[test]
fn the_ring_of_a_deadlock_is_real() {
    let torus = Topology::torus(&[8, 8]).unwrap();
    let policy = Policy::PlainDimensionOrder;
    let plan = Plan::new(&torus, policy, 1).unwrap();
    let mut lengths = 0;
    for seed in 0..8 {
        let mut network = network(&torus, policy, 1, 1.0, seed);
        assert_eq!(network.run(1_000_000), Outcome::Deadlocked);
        let ring = network.ring().expect("a ring");
        lengths += ring.len();
        for (number, waiting) in ring.iter().enumerate() {
            let next = ring[(number + 1) % ring.len()];
            // The output that the head asks for leads to the input of the next queue.
            let link = torus.links.iter().find(|link| {
                (link.from.router, link.from.port) == (waiting.router, waiting.output)
            });
            let to = link.expect("a link").to;
            assert_eq!((to.router, to.port), (next.router, next.input));
            // The output is on the packet's way.
            let way = plan.way(waiting.source, waiting.target).expect("a way");
            assert!(
                way.iter().any(|step| {
                    (step.router, step.hop.port) == (waiting.router, waiting.output)
                })
            );
        }
    }
    // A ring goes round a row, once.
    assert_eq!(lengths, 8 * 8);
}

#[test]
fn a_full_network_is_no_deadlock() {
    // Far beyond saturation all queues are full, and every one still goes on.
    let torus = Topology::torus(&[8, 8]).unwrap();
    let mut network = network(&torus, Policy::DimensionOrder, 2, 4.0, 3);
    assert_eq!(network.run(60_000), Outcome::Measured);
    assert!(network.backlog() > 60_000, "{}", network.backlog());
    assert_eq!(network.ring(), None);
}

#[test]
fn adaptive_ways_carry_more_of_a_transposed_load() {
    // Dimension order sends the transposed load of a mesh over its corners; shortest ways of all
    // kinds spread it (Glass and Ni 1992).
    let mesh = Topology::mesh(&[8, 8]).unwrap();
    let carried = |policy, channels| {
        let load = load(Pattern::Transpose, 1.0);
        let mut network = Network::new(&mesh, parameters(policy, channels), load, 1).unwrap();
        network.run(5_000);
        network.discard();
        network.run(40_000);
        network.tally().bytes() as f64 / network.tally().span().0 as f64
    };
    let (plain, adaptive) = (carried(Policy::DimensionOrder, 2), carried(Policy::Adaptive, 2));
    assert!(adaptive > 1.1 * plain, "{adaptive} and {plain}");
}

const RECOVERY: Recovery = Recovery { every: Time(200_000), wait: Time(300_000) };

#[test]
fn resolved_deadlocks_lose_no_packet_and_no_credit() {
    let torus = Topology::torus(&[8, 8]).unwrap();
    for (policy, seed) in [(Policy::PlainDimensionOrder, 1), (Policy::SpreadShortestPath, 2)] {
        let run = |scramble| {
            let mut network = network(&torus, policy, 1, 0.4, seed);
            if let Some(seed) = scramble {
                network.scramble(seed);
            }
            let resent = network.recover(Time(5_000_000), RECOVERY);
            assert!(resent > 0 && network.backlog() > 0, "{policy:?} deadlocks");
            network.stop_sources();
            network.recover(Time::END, RECOVERY);
            network.check_idle();
            assert_eq!(network.tally().delivered(), network.made());
            assert_eq!(network.tally().bytes(), network.bytes_made());
            let parts = network.tally().parts();
            let sum = parts.queued + parts.waited + parts.moved;
            assert_eq!(sum, network.tally().total_delay());
            network.course()
        };
        assert_eq!(run(None), run(Some(7)));
    }
}

#[test]
fn recovery_changes_nothing_where_no_ring_is() {
    let mesh = Topology::mesh(&[8, 8]).unwrap();
    let mut plain = network(&mesh, Policy::DimensionOrder, 1, 0.3, 1);
    let mut guarded = network(&mesh, Policy::DimensionOrder, 1, 0.3, 1);
    let end = Time(10_000_000);
    assert_eq!(guarded.recover(end, RECOVERY), 0);
    while plain.next_time().is_some_and(|time| time < end) {
        plain.step();
    }
    assert_eq!(plain.made(), guarded.made());
    assert_eq!(plain.course(), guarded.course());
}

//! Queues with a known answer: each test compares the simulator with a closed form, and states how
//! far it may be off.
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{
    Network, NodeQueue, Outcome, Parameters, Queue, Readout, Record, Switching,
};
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;
use ayre_sim::work::{Arrivals, Load, Pattern, Sizes};

/// 2.5 Gb/s, one byte at a time.
const LINK: LinkTiming = LinkTiming { phit: Time(3_200), width: 1, wire: Time(0) };
const BYTES: u32 = 512;

/// A switch that takes no time besides that of packets on links.
fn instant(channels: u16) -> Parameters {
    Parameters {
        link: LINK,
        wire_to_node: Time(0),
        pipeline: Time(1),
        injection: Time(0),
        credit: Time(1),
        channels,
        buffer: 4 * BYTES,
        readout: Readout::Channel,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Direct,
    }
}

fn load(pattern: Pattern, sizes: Sizes, arrivals: Arrivals, offered: f64) -> Load {
    Load::new(pattern, sizes, arrivals, offered, &LINK).expect("a possible load")
}

/// Runs, and returns the mean delay in units of a packet of `unit` bytes.
fn mean_delay(mut network: Network, packets: u64, unit: f64) -> f64 {
    assert_eq!(network.run(packets / 4), Outcome::Measured);
    network.discard();
    assert_eq!(network.run(packets), Outcome::Measured);
    network.tally().delay().mean / (unit * LINK.phit.0 as f64)
}

fn close(what: &str, got: f64, expected: f64, tolerance: f64) {
    let error = got / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {got:.4} where {expected:.4} is expected, {:+.2} %",
        100.0 * error
    );
}

/// The Pollaczek-Khinchine formula: the mean wait in units of the mean service.
fn wait(rho: f64, second_moment: f64) -> f64 {
    rho * second_moment / (2.0 * (1.0 - rho))
}

#[test]
fn a_link_with_poisson_arrivals_is_an_md1_queue() {
    // A node sends to itself through its own output: nobody else is in the way.
    for (offered, packets, tolerance) in [(0.3, 200_000, 0.01), (0.7, 800_000, 0.02)] {
        let pattern = Pattern::Permutation { targets: vec![0, 1] };
        let load = load(pattern, Sizes::Fixed(BYTES), Arrivals::Poisson, offered);
        let network = Network::new(&Topology::star(2).unwrap(), instant(2), load, 7).unwrap();
        let delay = mean_delay(network, packets, BYTES.into());
        close("M/D/1", delay, 1.0 + wait(offered, 1.0), tolerance);
    }
}

/// Little's law in bytes: those that wait, and the packet that leaves.
#[test]
fn the_queue_of_a_link_with_poisson_arrivals_is_as_long_as_an_md1_queue() {
    for (offered, packets, tolerance) in [(0.3, 200_000, 0.01), (0.7, 800_000, 0.02)] {
        let pattern = Pattern::Permutation { targets: vec![0, 1] };
        let load = load(pattern, Sizes::Fixed(BYTES), Arrivals::Poisson, offered);
        let topology = Topology::star(2).unwrap();
        let mut network = Network::new(&topology, instant(2), load, 7).unwrap();
        assert_eq!(network.run(packets / 4), Outcome::Measured);
        let start = network.next_time().unwrap();
        network.record(Record::new(&topology, start, 0));
        assert_eq!(network.run(packets), Outcome::Measured);
        let record = network.take_record().unwrap();
        let own = |queue: &&Queue| (queue.from, queue.router, queue.channel) == (None, 0, 0);
        let queue = record.queues().iter().find(own).unwrap();
        let packets = queue.mean / f64::from(BYTES);
        close("M/D/1 queue", packets, offered * (1.0 + wait(offered, 1.0)), tolerance);
    }
}

#[test]
fn a_link_with_packets_of_many_lengths_is_an_mg1_queue() {
    let (least, most) = (40.0_f64, 512.0_f64);
    let mean = (least + most) / 2.0;
    let variance = ((most - least + 1.0).powi(2) - 1.0) / 12.0;
    let second_moment = 1.0 + variance / (mean * mean);
    let pattern = Pattern::Permutation { targets: vec![0, 1] };
    let load = load(pattern, Sizes::Uniform(40, 512), Arrivals::Poisson, 0.8);
    let network = Network::new(&Topology::star(2).unwrap(), instant(2), load, 3).unwrap();
    let delay = mean_delay(network, 1_500_000, mean);
    close("M/G/1", delay, 1.0 + wait(0.8, second_moment), 0.025);
}

/// One switch whose packets are cells of a byte that come at the beginning of cycles.
fn cells(readout: Readout, node_queue: NodeQueue, offered: f64, seed: u64) -> Network {
    let parameters = Parameters { readout, node_queue, ..instant(1) };
    let load = load(Pattern::Uniform, Sizes::Fixed(1), Arrivals::Bernoulli, offered);
    Network::new(&Topology::switch(8).unwrap(), parameters, load, seed).unwrap()
}

#[test]
fn a_switch_that_reads_all_queues_at_once_waits_as_output_queues_do() {
    // Karol, Hluchyj and Morgan 1987: (N - 1) / N * rho / (2 (1 - rho)) slots.
    for (offered, packets, tolerance) in [(0.5, 1_000_000, 0.02), (0.9, 3_000_000, 0.03)] {
        let network = cells(Readout::Channel, NodeQueue::PerTarget, offered, 5);
        let waited = mean_delay(network, packets, 1.0) - 1.0;
        close("output queueing", waited, 7.0 / 8.0 * wait(offered, 1.0), tolerance);
    }
}

#[test]
fn one_queue_for_all_targets_carries_what_karol_computed() {
    // Saturation of FIFO inputs: 0.75, 0.6553 and 0.6184 for 2, 4 and 8 ports.
    for (ports, carried) in [(2, 0.75), (4, 0.6553), (8, 0.6184)] {
        let parameters =
            Parameters { readout: Readout::Port, node_queue: NodeQueue::One, ..instant(1) };
        let load = load(Pattern::Uniform, Sizes::Fixed(1), Arrivals::Bernoulli, 1.0);
        let mut network =
            Network::new(&Topology::switch(ports).unwrap(), parameters, load, 1).unwrap();
        network.run(50_000);
        network.discard();
        network.run(400_000);
        let tally = network.tally();
        let slots = tally.span().0 as f64 / LINK.phit.0 as f64;
        close(
            "FIFO saturation",
            tally.delivered() as f64 / slots / f64::from(ports),
            carried,
            0.01,
        );
    }
}

#[test]
fn a_buffered_crossbar_is_between_output_queueing_and_one_and_a_half_times_it() {
    // Packets of 512 B in crosspoints of 2 KiB. The interface is an M/D/1 queue in front of it.
    let load = load(Pattern::Uniform, Sizes::Fixed(BYTES), Arrivals::Poisson, 0.9);
    let network = Network::new(&Topology::star(8).unwrap(), instant(8), load, 2).unwrap();
    let delay = mean_delay(network, 1_500_000, BYTES.into());
    let (interface, output) = (wait(0.9, 1.0), 7.0 / 8.0 * wait(0.9, 1.0));
    assert!(delay > 1.0 + interface, "{delay}: the interface alone needs more");
    assert!(delay < 1.0 + interface + 1.5 * output, "{delay}: far above output queueing");
}

#[test]
fn credits_give_a_staircase() {
    // One flow: min(1, C s / T_loop), where C packets of s fit the buffer and the loop is the
    // packet itself, the wire, and the way of the credit.
    let loop_bytes = 4_u32;
    for packets in 1..=6_u32 {
        let parameters = Parameters {
            link: LinkTiming { wire: Time(1_000_000), ..LINK },
            pipeline: Time(0),
            credit: Time(u64::from(loop_bytes - 1) * 512 * 3_200 - 1_000_000),
            buffer: packets * BYTES + 100,
            ..instant(2)
        };
        let pattern = Pattern::Permutation { targets: vec![0, 1] };
        let load = load(pattern, Sizes::Fixed(BYTES), Arrivals::Poisson, 2.0);
        let mut network = Network::new(&Topology::star(2).unwrap(), parameters, load, 1).unwrap();
        network.run(1_000);
        network.discard();
        network.run(20_000);
        let tally = network.tally();
        let carried = tally.bytes() as f64 * 3_200.0 / tally.span().0 as f64 / 2.0;
        close("staircase", carried, (f64::from(packets) / f64::from(loop_bytes)).min(1.0), 1e-3);
    }
}

#[test]
fn a_window_gives_its_packets_in_each_round_trip() {
    // A packet takes the link for S. It and its answer are back after 8 S, if nobody is in the way.
    let unit = Time(u64::from(BYTES) * LINK.phit.0);
    for packets in 1..=10_u32 {
        let parameters = Parameters { buffer: 64 * BYTES, pipeline: Time(0), ..instant(2) };
        let parameters = Parameters { link: LinkTiming { wire: unit, ..LINK }, ..parameters };
        let pattern = Pattern::Permutation { targets: vec![0, 1] };
        let arrivals = Arrivals::Window { packets, think: Time(6 * unit.0) };
        let load = load(pattern, Sizes::Fixed(BYTES), arrivals, 1.0);
        let mut network = Network::new(&Topology::star(2).unwrap(), parameters, load, 1).unwrap();
        network.run(1_000);
        network.discard();
        network.run(20_000);
        let tally = network.tally();
        let carried = tally.bytes() as f64 * 3_200.0 / tally.span().0 as f64 / 2.0;
        close("window", carried, (f64::from(packets) / 8.0).min(1.0), 2e-3);
    }
}

#[test]
fn a_closed_loop_obeys_littles_law() {
    // Each of 8 nodes has 4 packets in the network or thinks about them: X = N W / (R + Z).
    let think = Time(5_000_000);
    let arrivals = Arrivals::Window { packets: 4, think };
    let load = load(Pattern::Uniform, Sizes::Uniform(40, BYTES), arrivals, 1.0);
    let mut network = Network::new(&Topology::star(8).unwrap(), instant(8), load, 1).unwrap();
    network.run(20_000);
    network.discard();
    network.run(200_000);
    let tally = network.tally();
    let throughput = tally.delivered() as f64 / tally.span().0 as f64;
    let expected = 8.0 * 4.0 / (tally.delay().mean + think.0 as f64);
    close("closed loop", throughput, expected, 1e-3);
}

#[test]
fn bursts_keep_the_load_and_wait_only_for_others() {
    for burst in [1, 10] {
        let pattern = Pattern::Permutation { targets: vec![0, 1] };
        let load = load(pattern, Sizes::Fixed(BYTES), Arrivals::Bursts(burst), 0.6);
        let mut network = Network::new(&Topology::star(2).unwrap(), instant(2), load, 7).unwrap();
        network.run(400_000);
        let tally = network.tally();
        let carried = tally.bytes() as f64 * 3_200.0 / tally.span().0 as f64 / 2.0;
        close("load of bursts", carried, 0.6, 0.01);
        // The pipeline's picosecond is all that a packet takes besides itself.
        let expected = f64::from(BYTES) * 3_200.0 + 1.0;
        close("alone", tally.delay().mean, expected, 1e-9);
    }
}

#[test]
fn bursts_of_many_nodes_wait_as_a_batch_queue_less_the_bursts_themselves() {
    // Bursts of B packets in the mean, geometric, come from many nodes to one output of their
    // links' rate. If all of a burst came at once, the work would be that of M/G/1. The server is
    // as busy either way, and the work that has not come yet is known. So packets wait 2 B - 1
    // times as long as in M/D/1. Of 64 nodes 63 can be in the way of one.
    let nodes = 64;
    for burst in [1, 4] {
        let pattern = Pattern::Permutation { targets: vec![0; nodes as usize] };
        let arrivals = Arrivals::Bursts(burst);
        let load = load(pattern, Sizes::Fixed(BYTES), arrivals, 0.6 / f64::from(nodes));
        let topology = Topology::star(nodes).unwrap();
        let network = Network::new(&topology, instant(nodes as u16), load, 7).unwrap();
        let waited = mean_delay(network, 2_000_000, BYTES.into()) - 1.0;
        let expected = f64::from(2 * burst - 1) * wait(0.6, 1.0) * 63.0 / 64.0;
        close("bursts of many", waited, expected, 0.02);
    }
}

fn torus(offered: f64) -> (Parameters, Load) {
    let link = LinkTiming { phit: Time(1_000), width: 1, wire: Time(1_000) };
    let parameters = Parameters {
        link,
        wire_to_node: Time(1_000),
        pipeline: Time(2_000),
        injection: Time(2_000),
        credit: Time(1_000),
        channels: 2,
        buffer: 8,
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy: Policy::DimensionOrder,
    };
    let load = Load::new(Pattern::Uniform, Sizes::Fixed(1), Arrivals::Bernoulli, offered, &link);
    (parameters, load.unwrap())
}

#[test]
fn packets_in_a_torus_pass_a_quarter_of_each_side() {
    for (sides, hops) in [(vec![8, 8], 4.0), (vec![4, 4, 4], 3.0), (vec![6, 10], 4.0)] {
        let (parameters, load) = torus(0.1);
        let mut network =
            Network::new(&Topology::torus(&sides).unwrap(), parameters, load, 1).unwrap();
        network.run(200_000);
        close("mean hops", network.tally().mean_hops(), hops, 0.01);
    }
}

#[test]
fn a_packet_alone_takes_the_sum_of_its_parts() {
    // 3 us from hop to hop, 2 ns of injection, 1 cycle for the packet, 1 to the node.
    let (parameters, load) = torus(0.000_01);
    let mut network =
        Network::new(&Topology::torus(&[8, 8]).unwrap(), parameters, load, 1).unwrap();
    network.run(2_000);
    let tally = network.tally();
    let expected = tally.mean_hops() * 3_000.0 + 2_000.0 + 1_000.0 + 1_000.0;
    close("zero-load delay", tally.delay().mean, expected, 1e-3);
    let parts = tally.parts();
    assert_eq!(parts.queued + parts.waited + parts.moved, tally.total_delay());
}

/// Little's law: the mean number of packets on their way is their rate times their mean time.
#[test]
fn the_packets_on_their_way_follow_littles_law() {
    let torus = Parameters {
        link: LinkTiming { wire: Time(2_000), ..LINK },
        pipeline: Time(5_000),
        credit: Time(2_000),
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        policy: Policy::DimensionOrder,
        ..instant(2)
    };
    let cases = [
        (Topology::star(8).unwrap(), instant(8), 0.8),
        (Topology::torus(&[4, 4]).unwrap(), torus, 0.3),
    ];
    for (topology, parameters, offered) in cases {
        let work = load(Pattern::Uniform, Sizes::Fixed(BYTES), Arrivals::Poisson, offered);
        let mut network = Network::new(&topology, parameters, work, 1).unwrap();
        assert_eq!(network.run(20_000), Outcome::Measured);
        network.discard();
        let (mut packets, mut now) = (0.0, network.next_time().unwrap());
        let begun = now;
        while network.tally().delivered() < 400_000 {
            network.step();
            let next = network.next_time().unwrap();
            packets += network.backlog() as f64 * (next - now).0 as f64;
            now = next;
        }
        let elapsed = (now - begun).0 as f64;
        // A packet counts as delivered when its head takes the link to its node.
        let last = LINK.span(BYTES) + parameters.wire_to_node;
        let time = network.tally().delay().mean - last.0 as f64;
        let rate = network.tally().delivered() as f64 / elapsed;
        close("packets on their way", packets / elapsed, rate * time, 0.005);
    }
}

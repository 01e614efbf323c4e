//! Networks whose speed is measured: `speed CASE PACKETS [PARTS]` delivers packets and prints the
//! results. The case `pair` has no network: two nodes of EXTOLL with all of their units.
//!
//! `bench/simulator.sh` takes the processor time of each case, `cargo xtask instructions` counts
//! the instructions of a packet.
use ayre_sim::extoll::{Operation, Pair, Parameters as Extoll, prototype_clock};
use ayre_sim::host::Host;
use ayre_sim::link::LinkTiming;
use ayre_sim::machine::Machine;
use ayre_sim::network::{Network, NodeQueue, Parameters, Readout, Switching};
use ayre_sim::random::Random;
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::{Dragonfly, Topology};
use ayre_sim::work::{Arrivals, Load, Pattern, Sizes};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "speed CASE PACKETS [PARTS], with a case of crossbar, torus-2, torus-3, tree, \
                 dragonfly, huge, pair";
    let (Some(case), Some(packets)) = (arguments.next(), arguments.next()) else {
        return Err(usage.into());
    };
    let packets = packets.parse()?;
    if case == "pair" {
        pair(packets);
        return Ok(());
    }
    let parts = arguments.next().map_or(Ok(1), |parts| parts.parse())?;
    let mut network = match case.as_str() {
        "crossbar" => crossbar()?,
        "torus-2" => torus(&[8, 8], 0.25)?,
        "torus-3" => torus(&[16, 16, 16], 0.05)?,
        "huge" => torus(&[64, 32, 32], 0.05)?,
        "tree" => tree()?,
        "dragonfly" => dragonfly()?,
        _ => return Err(usage.into()),
    };
    network.divide(parts);
    let outcome = network.run(packets);
    let tally = network.tally();
    let delay = tally.delay();
    println!(
        "{outcome:?} packets={} hops={:.3} cycles={} delay={:.1}ns +-{:.1} course={:016x}",
        tally.delivered(),
        tally.mean_hops(),
        tally.span().0 / network.parameters().link.phit.0,
        delay.mean / 1e3,
        delay.half_width / 1e3,
        network.course(),
    );
    Ok(())
}

/// EXTOLL's prototype sends messages of 8 bytes as fast as its units can. The program at the other
/// end looks at each.
fn pair(messages: u64) {
    let clock = prototype_clock();
    let mut machine = Machine::default();
    let pair = Pair::new(&mut machine, Extoll::composed(&Host::HT400, clock));
    machine.add(pair.course(Operation::Velo, 8), (0..messages).map(|_| Time::ZERO));
    machine.run();
    println!("packets={messages} cycles={}", clock.edge_from(machine.end()));
}

const GIGABIT_2_5: LinkTiming = LinkTiming { phit: Time(3_200), width: 1, wire: Time(0) };

/// A buffered crossbar of 8 ports with 2 KiB at each crosspoint, at a load of 0.9.
fn crossbar() -> Result<Network, Box<dyn Error>> {
    let parameters = Parameters {
        link: GIGABIT_2_5,
        wire_to_node: Time(0),
        pipeline: Time(1),
        injection: Time(0),
        credit: Time(1),
        channels: 8,
        buffer: 2048,
        readout: Readout::Channel,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Direct,
    };
    let sizes = Sizes::Fixed(512);
    let load = Load::new(Pattern::Uniform, sizes, Arrivals::Poisson, 0.9, &parameters.link)?;
    Ok(Network::new(&Topology::star(8)?, parameters, load, 1)?)
}

const CYCLE: Time = Time(1_000);

/// Links of a flit for each cycle, and routers of two cycles, as in BookSim's examples.
fn flits(channels: u16, policy: Policy) -> Parameters {
    Parameters {
        link: LinkTiming { phit: CYCLE, width: 1, wire: CYCLE },
        wire_to_node: CYCLE,
        pipeline: Time(2_000),
        injection: Time(2_000),
        credit: CYCLE,
        channels,
        buffer: 8,
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy,
    }
}

/// A torus with packets of one flit.
fn torus(sides: &[u32], offered: f64) -> Result<Network, Box<dyn Error>> {
    let parameters = flits(2, Policy::DimensionOrder);
    let sizes = Sizes::Fixed(1);
    let load = Load::new(Pattern::Uniform, sizes, Arrivals::Bernoulli, offered, &parameters.link)?;
    Ok(Network::new(&Topology::torus(sides)?, parameters, load, 1)?)
}

/// A fat tree of 1,024 nodes, each of which sends to one other.
fn tree() -> Result<Network, Box<dyn Error>> {
    let parameters = Parameters { buffer: 64, ..flits(2, Policy::UpByChance) };
    let mut targets: Vec<u32> = (0..1024).collect();
    let mut random = Random::new(1, 1);
    for last in (1..targets.len()).rev() {
        targets.swap(last, random.below(last as u32 + 1) as usize);
    }
    let pattern = Pattern::Permutation { targets };
    let load = Load::new(pattern, Sizes::Fixed(16), Arrivals::Poisson, 0.5, &parameters.link)?;
    Ok(Network::new(&Topology::tree(4, 5)?, parameters, load, 1)?)
}

/// A dragonfly of 1,056 nodes with packets of ten flits.
fn dragonfly() -> Result<Network, Box<dyn Error>> {
    let parameters = Parameters { buffer: 64, ..flits(4, Policy::Minimal) };
    let numbers = Dragonfly { routers: 8, nodes: 4, globals: 4 };
    let sizes = Sizes::Fixed(10);
    let load = Load::new(Pattern::Uniform, sizes, Arrivals::Bernoulli, 0.5, &parameters.link)?;
    Ok(Network::new(&Topology::dragonfly(numbers)?, parameters, load, 1)?)
}

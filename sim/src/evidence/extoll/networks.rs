//! Rows of the EXTOLL thesis about deadlocks in meshes and tori (section 2.7).
use super::super::{Check, Value};
use crate::link::LinkTiming;
use crate::network::{Network, NodeQueue, Outcome, Parameters, Readout, Switching};
use crate::routing::{Plan, Policy};
use crate::time::Time;
use crate::topology::Topology;
use crate::work::{Arrivals, Load, Pattern, Sizes};

/// Routers of a side.
const SIDE: u32 = 16;
const FLITS: u32 = 16;
const LINK: LinkTiming = LinkTiming { phit: Time(1_000), width: 1, wire: Time(1_000) };

pub(super) fn checks() -> Vec<Check> {
    let note = "Buffers have room for a packet, the load is that of the links, and no deadlock is \
                resolved; Dijkstra's ways are shortest ones that spread over all links.";
    vec![
        Check::new("EX-F2.21", note, |_| {
            let mesh = Topology::mesh(&[SIDE, SIDE]).expect("a possible mesh");
            let free = [Policy::DimensionOrder, Policy::UpDown, Policy::WestFirst];
            let mut values = vec![Value::holds(deadlocks(&mesh, Policy::SpreadShortestPath, 1))];
            values.extend(free.map(|policy| Value::holds(!deadlocks(&mesh, policy, 1))));
            values
        }),
        Check::new("EX-F2.22", note, |_| {
            let torus = Topology::torus(&[SIDE, SIDE]).expect("a possible torus");
            vec![
                Value::holds(deadlocks(&torus, Policy::SpreadShortestPath, 1)),
                Value::holds(deadlocks(&torus, Policy::PlainDimensionOrder, 1)),
                Value::holds(!deadlocks(&torus, Policy::DimensionOrder, 2)),
                Value::holds(Plan::new(&torus, Policy::WestFirst, 1).is_err()),
            ]
        }),
    ]
}

/// Whether a network whose sources send all the time comes to a stand.
fn deadlocks(topology: &Topology, policy: Policy, channels: u16) -> bool {
    let parameters = Parameters {
        link: LINK,
        wire_to_node: LINK.wire,
        pipeline: Time(2_000),
        injection: Time(2_000),
        credit: LINK.wire,
        channels,
        buffer: FLITS,
        readout: Readout::Port,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy,
    };
    let sizes = Sizes::Fixed(FLITS);
    let load = Load::new(Pattern::Uniform, sizes, Arrivals::Poisson, 1.0, &LINK);
    let load = load.expect("a possible load");
    let mut network = Network::new(topology, parameters, load, 1).expect("a possible network");
    if network.run(8_000) == Outcome::Deadlocked {
        return true;
    }
    network.stop_sources();
    network.run(u64::MAX / 2) == Outcome::Deadlocked
}

//! Rows of chapter 2: ATOLL, and deadlocks in meshes and tori (section 2.7).
use super::super::{Check, Value};
use super::nanos;
use crate::extoll::atoll::Atoll;
use crate::link::LinkTiming;
use crate::network::{Network, NodeQueue, Outcome, Parameters, Readout, Recovery, Switching};
use crate::routing::{Plan, Policy};
use crate::time::Time;
use crate::topology::Topology;
use crate::work::{Arrivals, Load, Pattern, Sizes};

/// Routers of a side.
const SIDE: u32 = 16;
const FLITS: u32 = 16;
const LINK: LinkTiming = LinkTiming { phit: Time(1_000), width: 1, wire: Time(1_000) };

pub(super) fn checks() -> Vec<Check> {
    let mut all = atoll();
    all.extend(recovered());
    all.extend(deadlocked());
    all
}

/// Figures 2-13 and 2-14.
fn atoll() -> Vec<Check> {
    let rate = |bytes| Atoll::measured().stream(bytes) / 1e6;
    vec![
        Check::new(
            "EX-F2.13-lat",
            "The bus is FORTH's and the software EXTOLL's; the thesis says nothing about the times \
             of PALMS and of the Xeon's bridge, to which the rest must belong.",
            |_| {
                [(1, 3300.0), (7, 4000.0)]
                    .map(|(hops, published)| {
                        Value::near(nanos(Atoll::measured().latency(8, hops)), published, 0.1)
                    })
                    .to_vec()
            },
        ),
        Check::new(
            "EX-F2.14-bw",
            "Links of 8 bits at 300 MHz; a word of 64 bits is taken to go with each 64 bytes.",
            move |_| vec![Value::near(rate(32 * 1024), 269.0, 0.05)],
        ),
        Check::new("EX-F2.14-nhalf", "In powers of two.", move |_| {
            let most = rate(32 * 1024);
            [(0.5, 512.0), (0.9, 4096.0)]
                .map(|(share, published)| {
                    let mut sizes = (3..=15).map(|power| 1 << power);
                    let first = sizes.find(|bytes| rate(*bytes) >= share * most).unwrap_or(0);
                    Value::within(first.into(), published / 2.0, published * 2.0)
                })
                .to_vec()
        }),
    ]
}

/// A ring is looked for each microsecond, and a packet of it is sent again another one later.
/// Reconstructed: ATOLL resolves rings by software (section 2.9), whose interrupt alone takes 1 us
/// at an interface that is eight years younger.
const RECOVERY: Recovery =
    Recovery { every: Time::from_nanos(1_000), wait: Time::from_nanos(1_000) };

/// The time of a run with recovery: a packet takes a link for 16 ns.
const RUN: Time = Time::from_nanos(30_000);

/// The load that each node offers, as a share of a link, which the thesis does not state. It is
/// about the most that uniform traffic can bring over the middle of the mesh: 4 / 16.
const OFFERED: f64 = 0.25;

/// The policies that never deadlock in a mesh.
const FREE: [Policy; 3] = [Policy::DimensionOrder, Policy::UpDown, Policy::WestFirst];

/// Figure 2-20, and the text of section 2.7.
fn recovered() -> Vec<Check> {
    vec![
        Check::new(
            "EX-F2.20",
            "Shares of the time in the network that is wait, at a load of 25 % of a link, with 0, \
             25, 50 and 75 % of packets to neighbours. The thesis states neither. The load is \
             one for which the row holds: at 15 % it does not, where 75 % go to neighbours.",
            |_| {
                let mut values = Vec::new();
                for share in [0.0, 0.25, 0.5, 0.75] {
                    let ours = |policy| blocking(policy, share);
                    let dijkstra = ours(Policy::SpreadShortestPath);
                    let free = FREE.map(ours);
                    values.push(Value::holds(free.iter().all(|run| run.resent == 0)));
                    values
                        .push(Value::holds(free.iter().all(|run| run.blocked < dijkstra.blocked)));
                }
                values
            },
        ),
        Check::new(
            "EX-2.7",
            "Bytes delivered in 30 us at 25 % of a link's load, as a share of dimension order's.",
            |_| {
                let bytes = |policy| blocking(policy, 0.0).bytes;
                let share = bytes(Policy::SpreadShortestPath) / bytes(Policy::DimensionOrder);
                vec![Value::within(share, 0.0, 1.0)]
            },
        ),
    ]
}

/// A run of a mesh whose deadlocks are resolved.
struct Run {
    resent: u64,
    /// The share of the time in the network that packets wait.
    blocked: f64,
    /// Bytes that were delivered.
    bytes: f64,
}

fn blocking(policy: Policy, share: f64) -> Run {
    let mesh = Topology::mesh(&[SIDE, SIDE]).expect("a possible mesh");
    let near = Pattern::Near { side: SIDE, share };
    let load = Load::new(near, Sizes::Fixed(FLITS), Arrivals::Poisson, OFFERED, &LINK);
    let load = load.expect("a possible load");
    let network = Network::new(&mesh, parameters(policy, 1), load, 1);
    let mut network = network.expect("a possible network");
    let resent = network.recover(RUN, RECOVERY);
    let tally = network.tally();
    let parts = tally.parts();
    Run {
        resent,
        blocked: parts.waited as f64 / (parts.waited + parts.moved) as f64,
        bytes: tally.bytes() as f64,
    }
}

fn deadlocked() -> Vec<Check> {
    let note = "Buffers have room for a packet, the load is that of the links, and no deadlock is \
                resolved; Dijkstra's ways are shortest ones that spread over all links.";
    vec![
        Check::new("EX-F2.21", note, |_| {
            let mesh = Topology::mesh(&[SIDE, SIDE]).expect("a possible mesh");
            let mut values = vec![Value::holds(deadlocks(&mesh, Policy::SpreadShortestPath, 1))];
            values.extend(FREE.map(|policy| Value::holds(!deadlocks(&mesh, policy, 1))));
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

fn parameters(policy: Policy, channels: u16) -> Parameters {
    Parameters {
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
    }
}

/// Whether a network whose sources send all the time comes to a stand.
fn deadlocks(topology: &Topology, policy: Policy, channels: u16) -> bool {
    let sizes = Sizes::Fixed(FLITS);
    let load = Load::new(Pattern::Uniform, sizes, Arrivals::Poisson, 1.0, &LINK);
    let load = load.expect("a possible load");
    let network = Network::new(topology, parameters(policy, channels), load, 1);
    let mut network = network.expect("a possible network");
    if network.run(8_000) == Outcome::Deadlocked {
        return true;
    }
    network.stop_sources();
    network.run(u64::MAX / 2) == Outcome::Deadlocked
}

//! Collectives among the sockets of a Sun Fire X4600 M2, and the loads of its links (paper A).
//!
//! ```text
//!   rank 31 --send--> root: receive, add
//!   rank 30 --send--> root:               receive, add          gather: one after the other
//!   ...
//!   root --> 1 --> 2, 3 --> 4 ... 7 --> 8 ... 15 --> ...        broadcast: a tree
//! ```
//!
//! Each call of `MPI_Allreduce` is a schedule over the network of the twisted ladder. Ranks are
//! cores. The root adds all contributions, as the source describes, and spreads the sum by a tree.
//! Each socket has one node more for whatever else runs there: a [`Daemon`](background::Daemon)
//! takes the root's core away for a time, and moves data between sockets.
pub mod background;

use crate::goal::{Hosts, Packets, RunError, Schedule, Start, run_over};
use crate::link::LinkTiming;
use crate::network::{Network, NodeQueue, Parameters, Readout, Record, Switching};
use crate::routing::Policy;
use crate::time::Time;
use crate::topology::Topology;
use background::Background;
use core::fmt::Write;

/// Sockets, cores of each, and links one way (section 4.1).
pub const SOCKETS: u32 = 8;
/// See [`SOCKETS`].
pub const CORES: u32 = 4;
/// See [`SOCKETS`].
pub const LINKS: usize = 22;

const RANKS: u32 = SOCKETS * CORES;
/// The first core of socket 1 (section 4.2).
const ROOT: u32 = 4;
/// Nodes of a socket: its cores, and one for daemons.
const NODES: u32 = CORES + 1;

/// The machine and its software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct X4600 {
    /// The processor's time for a message at both ends.
    pub overhead: Time,
    /// Its time for copying a byte, at both ends.
    pub copy: Time,
    /// The root's time for adding a contribution.
    pub add: Time,
    /// Bytes of a contribution.
    pub bytes: u32,
}

/// A call and its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// From its begin until the last rank has the sum.
    pub time: Time,
    /// Bytes that each link carried, in the order of the topology's links.
    pub loads: [u64; LINKS],
}

/// Data of a packet, which stands for 16 transfers of 64 bytes with 8 bytes of a command each.
const PACKETS: Packets = Packets { most: 1024, header: 128 };
/// 16 bits at 1 GHz with two transfers a cycle: 4 GB/s (section 4.1).
const LINK: LinkTiming = LinkTiming { phit: Time(250), width: 1, wire: Time::from_nanos(5) };

impl X4600 {
    /// The published run: 16 kB of each rank (section 5.1). Reconstructed:
    ///
    /// - Open MPI needs 1 us for a message in shared memory, as it did then.
    /// - A copy moves 3.2 GB/s. It is fitted to the median of 363 us, which is an input so.
    /// - An addition takes a cycle of 2.3 GHz, and the numbers have eight bytes.
    pub const RUN: Self = Self {
        overhead: Time::from_nanos(1_000),
        copy: Time(310),
        add: Time::from_nanos(890),
        bytes: 16_384,
    };

    /// Bytes on a link for each contribution that passes it.
    pub fn on_a_link(&self) -> u64 {
        let packets = self.bytes.div_ceil(PACKETS.most);
        u64::from(self.bytes + packets * PACKETS.header)
    }

    /// Runs one call.
    ///
    /// # Errors
    /// See [`RunError`]: the background is impossible.
    ///
    /// # Panics
    /// If the ladder is no sound network, which is a fault of the simulator.
    pub fn call(&self, background: &Background) -> Result<Call, RunError> {
        let topology = Topology::ladder(NODES).expect("a sound number of nodes");
        let text = self.schedule(background);
        let schedule = Schedule::read(text.as_bytes()).expect("a sound schedule");
        let mut network = Network::silent(&topology, parameters()).expect("a sound network");
        network.record(Record::new(&topology, Time::ZERO, 0));
        let report = run_over(&schedule, &self.hosts(), PACKETS, &mut network, false)?;
        let record = network.take_record().expect("it was begun");
        let mut loads = [0; LINKS];
        for (load, link) in loads.iter_mut().zip(&topology.links) {
            let busy = |window| record.busy(window, link.from.router, link.from.port).0;
            *load = (0..record.windows()).map(busy).sum::<u64>() / LINK.phit.0;
        }
        let time = (0..RANKS).map(|rank| report.finish[node(rank) as usize]).max();
        Ok(Call { time: time.unwrap_or_default(), loads })
    }

    fn hosts(&self) -> Hosts {
        Hosts {
            overhead: self.overhead,
            overhead_per_byte: self.copy,
            gap: Time::ZERO,
            eager: u64::from(u32::MAX),
            start: Start::WhenEnded,
        }
    }

    /// The call as text: the ranks, then the daemons.
    fn schedule(&self, background: &Background) -> String {
        let mut text = format!("num_ranks {}\n", SOCKETS * NODES);
        for socket in 0..SOCKETS {
            for core in 0..CORES {
                let rank = socket * CORES + core;
                text.push_str(&format!("rank {} {{\n", node(rank)));
                if rank == ROOT {
                    self.root(background, &mut text);
                } else {
                    let to = node(ROOT);
                    text.push_str(&format!("s: send {}b to {to} tag 0\n", self.bytes));
                }
                self.spread(rank, &mut text);
                text.push_str("}\n");
            }
            text.push_str(&format!("rank {} {{\n", daemon(socket)));
            for flow in &background.flows {
                if flow.from == socket {
                    line(&mut text, format_args!("send {}b to {}", flow.bytes, daemon(flow.to)));
                }
                if flow.to == socket {
                    line(
                        &mut text,
                        format_args!("recv {}b from {}", flow.bytes, daemon(flow.from)),
                    );
                }
            }
            text.push_str("}\n");
        }
        text
    }

    /// The root's part of the gather. Its last step is `s`, in which its core is away.
    fn root(&self, background: &Background, text: &mut String) {
        let mut last = RANKS;
        line(text, format_args!("a{last}: calc 0"));
        for rank in (0..RANKS).rev().filter(|rank| *rank != ROOT) {
            line(text, format_args!("r{rank}: recv {}b from {} tag 0", self.bytes, node(rank)));
            line(text, format_args!("r{rank} requires a{last}"));
            line(text, format_args!("a{rank}: calc {}", self.add.0 / 1_000));
            line(text, format_args!("a{rank} requires r{rank}"));
            last = rank;
        }
        line(text, format_args!("s: calc {}", background.away.0 / 1_000));
        line(text, format_args!("s requires a{last}"));
    }

    /// A rank's part of the broadcast: in round `k` those below `2^k` send to those `2^k` above
    /// them, counted from the root on.
    fn spread(&self, rank: u32, text: &mut String) {
        let place = (rank + RANKS - ROOT) % RANKS;
        let at = |place: u32| node((place + ROOT) % RANKS);
        let mut before = "s";
        for distance in (0..RANKS.ilog2()).map(|round| 1 << round) {
            if place < distance {
                let to = at(place + distance);
                line(text, format_args!("b{distance}: send {}b to {to} tag 1", self.bytes));
                line(text, format_args!("b{distance} requires {before}"));
            } else if place < 2 * distance {
                let from = at(place - distance);
                line(text, format_args!("r: recv {}b from {from} tag 1", self.bytes));
                before = "r";
            }
        }
    }
}

fn line(text: &mut String, parts: core::fmt::Arguments<'_>) {
    writeln!(text, "{parts}").expect("a string takes all");
}

/// The node of a rank, and of a socket's daemons.
fn node(rank: u32) -> u32 {
    rank / CORES * NODES + rank % CORES
}

fn daemon(socket: u32) -> u32 {
    socket * NODES + CORES
}

/// The network. Reconstructed: a router passes a packet on in 40 ns, and has room for all that a
/// call may send. The shortest ways are those of the ladder's test.
fn parameters() -> Parameters {
    Parameters {
        link: LINK,
        wire_to_node: Time::ZERO,
        pipeline: Time::from_nanos(40),
        injection: Time::ZERO,
        credit: Time::from_nanos(20),
        channels: 1,
        buffer: 1 << 24,
        readout: Readout::Port,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::ShortestPath,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use background::Flow;

    #[test]
    fn the_root_sets_the_time_of_a_quiet_call() {
        let run = X4600::RUN;
        let call = run.call(&Background::default()).unwrap();
        // The root takes all contributions one by one, and the sum passes five steps of a tree.
        let message = run.overhead.0 + run.copy.0 * u64::from(run.bytes - 1);
        let gather = 31 * (message + run.add.0);
        // The root sends five times, and the last rank receives. At most, each of five steps sends
        // and receives.
        let least = gather + 6 * message;
        // The network adds the ways of all contributions to the root, and of the tree's steps.
        let most = gather + 10 * message + 40 * run.on_a_link() * LINK.phit.0;
        assert!((least..most).contains(&call.time.0), "{}", call.time);
    }

    #[test]
    fn a_root_that_is_away_delays_the_call_by_as_much() {
        let quiet = X4600::RUN.call(&Background::default()).unwrap();
        let away = Background { away: Time::from_nanos(5_000_000), ..Background::default() };
        let call = X4600::RUN.call(&away).unwrap();
        assert_eq!(call.time, quiet.time + away.away);
        assert_eq!(call.loads, quiet.loads);
    }

    #[test]
    fn a_flow_loads_the_links_of_its_way_and_no_other() {
        let quiet = X4600::RUN.call(&Background::default()).unwrap();
        let flows = vec![Flow { from: 7, to: 0, bytes: 2048 }];
        let call = X4600::RUN.call(&Background { flows, ..Background::default() }).unwrap();
        let topology = Topology::ladder(1).unwrap();
        // The shortest way from 7 to 0 passes 5 and 2.
        let way = [(7, 5), (5, 2), (2, 0)];
        for (number, link) in topology.links.iter().enumerate() {
            let on_way = way.contains(&(link.from.router, link.to.router));
            let more = call.loads[number] - quiet.loads[number];
            assert_eq!(more, if on_way { 2 * 1152 } else { 0 }, "{link:?}");
        }
    }
}

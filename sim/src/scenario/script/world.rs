//! A script's cluster: connections, regions, capabilities and queues.
use super::needs::{DEPOTS, LANDING, Needs};
use super::{Deposit, Place, Script, ScriptError, ScriptFault, way};
use crate::cluster::{Cluster, Depot, InterfaceTimes, Program};
use crate::network::Parameters;
use crate::time::Time;
use crate::topology::Topology;
use ayre_proto::deposit::{DATA_MAX, Inlet, REGISTERS, Window};
use ayre_proto::units::{Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use core::ops::Range;
use std::collections::HashMap;

/// The set-up is over when nothing happens for so long.
const QUIET: Time = Time::from_nanos(100_000);

/// The cluster, and what its nodes have handed out.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) script: &'a Script,
    pub(super) needs: Needs,
    pub(super) nodes: u32,
    pub(super) cluster: Cluster,
    /// The number of a region, by its node.
    regions: HashMap<(u32, usize), u16>,
    /// The key of a holder to a node's region.
    keys: HashMap<(u32, u32, usize), Key>,
    /// The members of the group.
    pub(super) group: Vec<u32>,
    /// The peers of a node whose messages it takes whenever it waits.
    pub(super) talks: HashMap<u32, Vec<u32>>,
    /// The number of a depot, by its node.
    depots: HashMap<(u32, usize), usize>,
    /// The region of a node that is its landing for a peer.
    landings: HashMap<(u32, u32), u16>,
    /// The number of a queue among those of a producer, as its consumer and as the producer has it.
    pub(super) consumed: HashMap<(u32, usize), usize>,
    pub(super) produced: HashMap<(u32, usize), usize>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        script: &'a Script,
        (topology, parameters): (&Topology, Parameters),
        times: InterfaceTimes,
    ) -> Result<Self, ScriptError> {
        let nodes = topology.nodes.len() as u32;
        let needs = script.needs(nodes)?;
        let cluster = Cluster::new(topology, parameters, times);
        let cluster =
            cluster.map_err(|error| script.fail(1, ScriptFault::Cluster(error.to_string())))?;
        let (regions, keys) = (HashMap::new(), HashMap::new());
        let (consumed, produced) = (HashMap::new(), HashMap::new());
        let (group, mut talks) = (needs.group.iter().copied().collect(), HashMap::new());
        for &(node, peer) in &needs.talks {
            talks.entry(node).or_insert_with(Vec::new).push(peer);
        }
        let mut world = Self {
            script,
            needs,
            nodes,
            cluster,
            regions,
            keys,
            group,
            talks,
            depots: HashMap::new(),
            landings: HashMap::new(),
            consumed,
            produced,
        };
        for node in 0..nodes {
            world.open(node)?;
        }
        let pairs: Vec<_> = world.needs.pairs.iter().copied().collect();
        for pair in pairs {
            world.connect(pair)?;
        }
        // What a node is late with is due before now.
        while world.cluster.next_time().is_some_and(|at| at < world.cluster.now() + QUIET) {
            world.cluster.step();
        }
        Ok(world)
    }

    /// A node has its regions, as zeros.
    fn open(&mut self, node: u32) -> Result<(), ScriptError> {
        for (number, region) in self.script.regions.iter().enumerate() {
            if region.homes.has(node) {
                let made = self.add_region(node, region.len, region.line)?;
                self.regions.insert((node, number), made);
            }
        }
        for (number, depot) in self.script.depots.iter().enumerate() {
            if self.script.regions[depot.region].homes.has(node) {
                let mut made = Depot::new(depot.stored.clone());
                depot.registers.iter().for_each(|(at, value)| made.set_register(*at, *value));
                let made = self.cluster.program_mut(node).add_depot(made);
                self.depots.insert((node, number), made);
            }
        }
        Ok(())
    }

    fn add_region(&mut self, node: u32, len: u64, line: usize) -> Result<u16, ScriptError> {
        let number = self.cluster.program_mut(node).add_region(vec![0; len as usize]);
        number.map_err(|error| self.script.fail(line, ScriptFault::Cluster(format!("{error}"))))
    }

    /// Connects two nodes, and hands out the capabilities and queues that they need of each other.
    fn connect(&mut self, (one, other): (u32, u32)) -> Result<(), ScriptError> {
        if one == other {
            self.cluster.connect_loopback(one);
        } else {
            self.cluster.connect(one, other);
        }
        let directions =
            if one == other { &[(one, other)][..] } else { &[(one, other), (other, one)] };
        for &(holder, home) in directions {
            let range = (holder, home, 0)..=(holder, home, LANDING);
            let grants: Vec<_> = self.needs.grants.range(range).copied().collect();
            for (_, _, region) in grants {
                self.share(holder, home, region)?;
            }
            let script = self.script;
            for (number, queue) in script.queues.iter().enumerate() {
                if queue.home == home && self.needs.producers.contains(&(holder, number)) {
                    let to = PeerId(holder as u16);
                    let offered = self.cluster.offer_queue(home, to, number as u64, queue.lines);
                    let full = |_| {
                        let why = "a node has more queues of another one than it may";
                        script.fail(queue.line, ScriptFault::Cluster(why.to_owned()))
                    };
                    self.consumed.insert((holder, number), offered.map_err(full)?);
                }
            }
        }
        Ok(())
    }

    fn share(&mut self, holder: u32, home: u32, region: usize) -> Result<(), ScriptError> {
        let depot = region.checked_sub(DEPOTS).and_then(|depot| self.script.depots.get(depot));
        let of = depot.map_or(region, |depot| depot.region);
        let (number, len, line) = match self.script.regions.get(of) {
            Some(region) => {
                let line = depot.map_or(region.line, |depot| depot.line);
                (self.regions[&(home, of)], region.len, line)
            }
            None => {
                let number = self.add_region(home, way::LANDING, 1)?;
                self.landings.insert((home, holder), number);
                (number, way::LANDING, 1)
            }
        };
        let holder_id = PeerId(holder as u16);
        let cover =
            Cover { holder: holder_id, rights: Rights::all(), region: number, base: 0, len };
        let key = match depot {
            Some(depot) => {
                let inlet = inlet(len, depot.stored.len());
                let number = self.depots[&(home, region - DEPOTS)];
                self.cluster.share_inlet(home, cover, number, inlet)
            }
            None => self.cluster.share(home, cover),
        };
        let key = key.ok_or_else(|| {
            let why = "a node has more regions, each for each of its users, than it has keys";
            self.script.fail(line, ScriptFault::Cluster(why.to_owned()))
        })?;
        self.keys.insert((holder, home, region), key);
        Ok(())
    }

    /// A node that has died is started anew, and connected with its peers.
    pub(super) fn restart(&mut self, node: u32) -> Result<(), ScriptError> {
        self.cluster.restart(node);
        self.open(node)?;
        self.produced.retain(|(producer, queue), _| {
            *producer != node && self.script.queues[*queue].home != node
        });
        let pairs = self.needs.pairs.iter().copied();
        let pairs: Vec<_> = pairs.filter(|pair| pair.0 == node || pair.1 == node).collect();
        for (one, other) in pairs {
            let peer = if one == node { other } else { one };
            if peer != node {
                // The peer was not told of the end, or it has noticed and remembers it.
                let own = PeerId(node as u16);
                if self.cluster.forget(peer, own).is_err() {
                    _ = self.cluster.disconnect(peer, own);
                }
            }
            if peer == node || !self.cluster.is_dead(peer) {
                self.connect((one, other))?;
            }
        }
        Ok(())
    }

    /// The peer, and the key to a place.
    pub(super) fn key(&self, own: u32, place: &Place) -> Option<(u32, Key)> {
        let home = self.script.home(place, own, self.nodes).ok()?;
        Some((home, *self.keys.get(&(own, home, place.region))?))
    }

    /// The key of a node to a depot of another one, and that node.
    pub(super) fn inlet_key(&self, own: u32, deposit: &Deposit) -> Option<(u32, Key)> {
        let Deposit { depot, node, .. } = *deposit;
        let place = self.script.depot_place(depot, node);
        let home = self.script.home(&place, own, self.nodes).ok()?;
        Some((home, *self.keys.get(&(own, home, DEPOTS + depot))?))
    }

    /// A depot of a node.
    pub(super) fn depot_mut(&mut self, node: u32, depot: usize) -> Option<&mut Depot> {
        let number = *self.depots.get(&(node, depot))?;
        self.cluster.program_mut(node).depot_mut(number)
    }

    /// The key of a node to its landing at another one.
    pub(super) fn landing_key(&self, own: u32, home: u32) -> Option<Key> {
        self.keys.get(&(own, home, LANDING)).copied()
    }

    /// Bytes that a peer has put into its landing at a node.
    pub(super) fn landed(&self, (node, peer): (u32, u32), part: Range<u64>) -> &[u8] {
        let landing = self.landings.get(&(node, peer));
        let bytes = landing.map(|number| self.cluster.program(node).region(*number, part));
        bytes.and_then(Result::ok).unwrap_or_default()
    }

    /// A word of a node's own region; nothing, if it is not in it.
    pub(super) fn word(&self, node: u32, region: usize, offset: u64) -> Option<u64> {
        let number = self.regions.get(&(node, region))?;
        let program: &Program = self.cluster.program(node);
        let bytes = program.region(*number, offset..offset.checked_add(8)?).ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// An inlet to all of a region and of a depot.
fn inlet(len: u64, stored: usize) -> Inlet {
    Inlet {
        rights: Rights::all(),
        len,
        registers: Window { base: 0, len: REGISTERS as u16 },
        entries: Window { base: 0, len: stored as u16 },
        longest: DATA_MAX as u16,
    }
}

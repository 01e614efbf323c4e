//! The parameters of scenarios: the one list that the reader of files, `ayre sim list` and the
//! checks use.
use super::value::Kind;

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in a file.
    pub name: &'static str,
    /// The part of the simulated system that it belongs to.
    pub group: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Its value where a file does not give it.
    pub default: Default,
    /// Its meaning.
    pub meaning: &'static str,
    /// Where the default value comes from.
    pub source: &'static str,
    /// The values of other parameters, one of each list, with which this one is used.
    pub needs: &'static [(&'static str, &'static [&'static str])],
}

/// The value of a parameter that a file does not give.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// One value.
    Fixed(&'static str),
    /// One value for a single switch, and another one for networks of several routers.
    ByShape(&'static str, &'static str),
}

/// Topologies of one switch.
pub(super) const ONE_SWITCH: &[&str] = &["star", "switch"];
/// Topologies with links between routers.
const LINKED: &[&str] = &["star", "mesh", "torus", "hypercube", "tree"];
/// Topologies whose links have any number of virtual channels.
const ROUTED: &[&str] = &["mesh", "torus", "hypercube", "tree"];

const OURS: &str = "our choice";
const FORTH: &str = "FORTH prototype, 2006: 8 x 8 buffered crossbar";

/// All parameters.
pub const KEYS: &[Key] = &[
    Key {
        name: "topology",
        group: "topology",
        kind: Kind::Choice(&[
            ("star", "nodes with interfaces of their own around one switch"),
            ("switch", "one switch that holds the nodes' packets itself"),
            ("mesh", "routers in rows along each dimension, a node at each"),
            ("torus", "a mesh whose rows are rings"),
            ("hypercube", "a mesh with two routers in each dimension"),
            ("tree", "a folded tree of switches, with nodes at the lowest ones"),
        ]),
        default: Default::Fixed("star"),
        meaning: "the shape of the network",
        source: FORTH,
        needs: &[],
    },
    Key {
        name: "nodes",
        group: "topology",
        kind: Kind::Count { least: 2, most: 64 },
        default: Default::Fixed("8"),
        meaning: "nodes around the switch",
        source: FORTH,
        needs: &[("topology", ONE_SWITCH)],
    },
    Key {
        name: "sides",
        group: "topology",
        kind: Kind::Sides,
        default: Default::Fixed("8x8"),
        meaning: "routers in each dimension",
        source: OURS,
        needs: &[("topology", &["mesh", "torus"])],
    },
    Key {
        name: "dimensions",
        group: "topology",
        kind: Kind::Count { least: 1, most: 24 },
        default: Default::Fixed("6"),
        meaning: "dimensions of the hypercube",
        source: OURS,
        needs: &[("topology", &["hypercube"])],
    },
    Key {
        name: "half",
        group: "topology",
        kind: Kind::Count { least: 2, most: 32 },
        default: Default::Fixed("4"),
        meaning: "ports of a switch that lead down, and ports that lead up",
        source: OURS,
        needs: &[("topology", &["tree"])],
    },
    Key {
        name: "levels",
        group: "topology",
        kind: Kind::Count { least: 1, most: 24 },
        default: Default::Fixed("3"),
        meaning: "levels of switches",
        source: OURS,
        needs: &[("topology", &["tree"])],
    },
    Key {
        name: "rate",
        group: "links",
        kind: Kind::Rate,
        default: Default::Fixed("2.5 Gb/s"),
        meaning: "the rate of each link in each direction; a frequency is that of phits",
        source: FORTH,
        needs: &[],
    },
    Key {
        name: "width",
        group: "links",
        kind: Kind::Bytes { least: 1, most: 4096 },
        default: Default::Fixed("1 B"),
        meaning: "a phit, which passes a link at once: packets take whole phits",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "wire",
        group: "links",
        kind: Kind::Time,
        default: Default::Fixed("300 ns"),
        meaning: "time of flight between routers",
        source: "FORTH prototype, V.B: 0.64 us on two links, serialisers included",
        needs: &[("topology", LINKED)],
    },
    Key {
        name: "wire_to_node",
        group: "links",
        kind: Kind::Time,
        default: Default::Fixed("300 ns"),
        meaning: "time of flight from a router to its node",
        source: "FORTH prototype, V.B: 0.64 us on two links, serialisers included",
        needs: &[],
    },
    Key {
        name: "channels",
        group: "links",
        kind: Kind::Count { least: 1, most: 64 },
        default: Default::Fixed("2"),
        meaning: "virtual channels of each link; a star has one for each node",
        source: OURS,
        needs: &[("topology", ROUTED)],
    },
    Key {
        name: "buffer",
        group: "links",
        kind: Kind::Bytes { least: 1, most: 1 << 30 },
        default: Default::Fixed("2 KiB"),
        meaning: "buffer of each virtual channel; in a star, of each crosspoint",
        source: FORTH,
        needs: &[("topology", LINKED)],
    },
    Key {
        name: "credit",
        group: "links",
        kind: Kind::Time,
        default: Default::Fixed("300 ns"),
        meaning: "from a packet's end leaving a buffer until the sender knows of the room",
        source: "our choice: time of flight",
        needs: &[("topology", LINKED)],
    },
    Key {
        name: "pipeline",
        group: "routers",
        kind: Kind::Time,
        default: Default::Fixed("50 ns"),
        meaning: "from a head's arrival at a router to its first chance to leave",
        source: OURS,
        needs: &[("topology", LINKED)],
    },
    Key {
        name: "injection",
        group: "routers",
        kind: Kind::Time,
        default: Default::Fixed("0 ns"),
        meaning: "from a packet's birth to its first chance to enter the network",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "readout",
        group: "routers",
        kind: Kind::Choice(&[
            ("port", "one packet leaves an input port at a time"),
            ("channel", "one packet leaves each virtual channel, or queue, at a time"),
        ]),
        default: Default::ByShape("channel", "port"),
        meaning: "how many packets leave an input port at once",
        source: FORTH,
        needs: &[],
    },
    Key {
        name: "node_queue",
        group: "routers",
        kind: Kind::Choice(&[
            ("one", "one queue: its first packet holds up all others"),
            ("per-target", "a queue for each target (virtual output queues)"),
        ]),
        default: Default::ByShape("per-target", "one"),
        meaning: "how a node queues packets that have not entered the network",
        source: FORTH,
        needs: &[],
    },
    Key {
        name: "switching",
        group: "routers",
        kind: Kind::Choice(&[
            ("cut-through", "a packet goes on as soon as its head has been routed"),
            ("store-and-forward", "a packet goes on when all of it has arrived"),
        ]),
        default: Default::Fixed("cut-through"),
        meaning: "when a packet may leave a router",
        source: FORTH,
        needs: &[],
    },
    Key {
        name: "routing",
        group: "routers",
        kind: Kind::Choice(&[
            ("up-by-target", "up by the target's digits, then down: one way for each target"),
            ("up-by-chance", "up by chance, then down"),
        ]),
        default: Default::Fixed("up-by-target"),
        meaning: "the way through a tree; cubes are passed one dimension after the other",
        source: OURS,
        needs: &[("topology", &["tree"])],
    },
    Key {
        name: "load",
        group: "work",
        kind: Kind::Share { least: 1e-9, most: 4.0 },
        default: Default::Fixed("50 %"),
        meaning: "the share of its link's rate that each node offers",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "pattern",
        group: "work",
        kind: Kind::Choice(&[
            ("uniform", "any node, the sender included"),
            ("others", "any other node"),
            ("transpose", "the node whose number has its halves of bits exchanged"),
            ("bitcomp", "the node whose number has all bits inverted"),
            ("bitrev", "the node whose number has its bits in the opposite order"),
            ("shuffle", "the node whose number has its bits rotated up by one"),
            ("tornado", "the node half way round a ring of all nodes, less one"),
            ("neighbor", "the next node"),
            ("hotspot", "one node with a share, any node otherwise"),
            ("unbalanced", "the node of the same number with a share, any node otherwise"),
            ("permutation", "the node that `targets` names"),
        ]),
        default: Default::Fixed("uniform"),
        meaning: "the targets of packets",
        source: "the names of BookSim",
        needs: &[],
    },
    Key {
        name: "hotspot_node",
        group: "work",
        kind: Kind::Count { least: 0, most: (1 << 24) - 1 },
        default: Default::Fixed("0"),
        meaning: "the node that more packets go to",
        source: OURS,
        needs: &[("pattern", &["hotspot"])],
    },
    Key {
        name: "pattern_share",
        group: "work",
        kind: Kind::Share { least: 0.0, most: 1.0 },
        default: Default::Fixed("10 %"),
        meaning: "the share of packets that go to the pattern's own node",
        source: OURS,
        needs: &[("pattern", &["hotspot", "unbalanced"])],
    },
    Key {
        name: "targets",
        group: "work",
        kind: Kind::Nodes,
        default: Default::Fixed("1,2,3,4,5,6,7,0"),
        meaning: "the target of each node",
        source: OURS,
        needs: &[("pattern", &["permutation"])],
    },
    Key {
        name: "sizes",
        group: "work",
        kind: Kind::Choice(&[
            ("fixed", "all packets have `size`"),
            ("uniform", "each length from `size` to `size_most` is equally likely"),
            ("bimodal", "`size`, and with a share of `long_share` `size_most`"),
        ]),
        default: Default::Fixed("fixed"),
        meaning: "how the lengths of packets are chosen",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "size",
        group: "work",
        kind: Kind::Bytes { least: 1, most: 1 << 24 },
        default: Default::Fixed("512 B"),
        meaning: "the length of packets, or the least one",
        source: FORTH,
        needs: &[],
    },
    Key {
        name: "size_most",
        group: "work",
        kind: Kind::Bytes { least: 1, most: 1 << 24 },
        default: Default::Fixed("512 B"),
        meaning: "the greatest length of packets",
        source: FORTH,
        needs: &[("sizes", &["uniform", "bimodal"])],
    },
    Key {
        name: "long_share",
        group: "work",
        kind: Kind::Share { least: 0.0, most: 1.0 },
        default: Default::Fixed("10 %"),
        meaning: "the share of long packets",
        source: OURS,
        needs: &[("sizes", &["bimodal"])],
    },
    Key {
        name: "arrivals",
        group: "work",
        kind: Kind::Choice(&[
            ("poisson", "at any time, independently of the packets before"),
            ("bernoulli", "in each cycle of a phit with the same chance"),
        ]),
        default: Default::Fixed("poisson"),
        meaning: "when a node makes packets",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "warmup",
        group: "run",
        kind: Kind::Count { least: 0, most: 10_000_000_000 },
        default: Default::Fixed("20000"),
        meaning: "packets of each replica that are delivered before the measurement",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "packets",
        group: "run",
        kind: Kind::Count { least: 1, most: 10_000_000_000 },
        default: Default::Fixed("100000"),
        meaning: "packets of each replica that are measured",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "replicas",
        group: "run",
        kind: Kind::Count { least: 1, most: 1000 },
        default: Default::Fixed("5"),
        meaning: "runs of each point with seeds of their own",
        source: OURS,
        needs: &[],
    },
    Key {
        name: "seed",
        group: "run",
        kind: Kind::Count { least: 0, most: u32::MAX as u64 },
        default: Default::Fixed("1"),
        meaning: "decides on all chance; the replicas have the seeds from this one on",
        source: OURS,
        needs: &[],
    },
];

/// The place of a parameter in [`KEYS`].
///
/// # Panics
/// If there is no parameter of this name, which is a fault of the simulator.
pub(super) fn index(name: &str) -> usize {
    KEYS.iter().position(|key| key.name == name).expect("a parameter of the table")
}

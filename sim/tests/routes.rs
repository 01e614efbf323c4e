//! Ways through topologies, held to closed forms and to counts by hand.
use ayre_sim::routing::{Plan, Policy, RoutingError, RunLength, RunLengthError, Survey};
use ayre_sim::topology::{Dragonfly, Topology};
use proptest::prelude::*;

fn survey(topology: &Topology, policy: Policy, channels: u16) -> Survey {
    Survey::new(&Plan::new(topology, policy, channels).unwrap()).unwrap()
}

/// Checks the number of ways and the sum of their links. The sum is exact, since the sum over links
/// of the ways on each is the sum over ways of their links.
fn check(topology: &Topology, policy: Policy, channels: u16, hops: u64) -> Survey {
    let survey = survey(topology, policy, channels);
    let nodes = topology.nodes.len() as u64;
    assert_eq!(survey.unreachable, []);
    assert_eq!(survey.ways, nodes * (nodes - 1), "{policy:?}");
    assert_eq!(survey.hops(), hops, "{policy:?}");
    survey
}

/// The sum of distances over all ordered pairs of a row.
fn row(side: u64, ring: bool) -> u64 {
    let distance = |from: u64, to: u64| {
        let straight = from.abs_diff(to);
        if ring { straight.min(side - straight) } else { straight }
    };
    (0..side).flat_map(|from| (0..side).map(move |to| distance(from, to))).sum()
}

#[test]
fn rows_have_the_means_of_the_textbook() {
    // (k^2 - 1) / 3k in a line, k/4 or (k^2 - 1) / 4k in a ring, over all pairs with equal ones.
    for side in 2..40_u64 {
        assert_eq!(3 * row(side, false), side * (side * side - 1));
        let odd = side % 2;
        assert_eq!(4 * row(side, true), side * (side * side - odd));
    }
}

#[test]
fn cubes_pass_the_sum_of_their_rows() {
    for (sides, rings) in
        [(vec![4, 6], true), (vec![5, 3], true), (vec![4, 5], false), (vec![3, 4, 2], true)]
    {
        let topology = if rings { Topology::torus(&sides) } else { Topology::mesh(&sides) };
        let topology = topology.unwrap();
        let routers: u64 = sides.iter().map(|side| u64::from(*side)).product();
        let per_row = |side: &u32| {
            let side = u64::from(*side);
            row(side, rings) * (routers / side).pow(2)
        };
        let hops = sides.iter().map(per_row).sum();
        for policy in [Policy::DimensionOrder, Policy::ShortestPath, Policy::SpreadShortestPath] {
            check(&topology, policy, 2, hops);
        }
        check(&topology, Policy::Adaptive, 3, hops);
    }
}

#[test]
fn a_full_topology_takes_one_hop_to_another_router() {
    let topology = Topology::full(6, 3).unwrap();
    let pairs = 6 * 3 * 5 * 3;
    let survey = check(&topology, Policy::Minimal, 1, pairs);
    // Each link has the pairs of its two routers.
    assert!(survey.loads.iter().all(|load| *load == 9));
    assert_eq!(survey.ring, None);
}

#[test]
fn a_dragonfly_takes_one_global_hop_and_two_local_ones_at_most() {
    for (routers, nodes, globals) in [(4, 2, 2), (2, 1, 3), (3, 2, 1)] {
        let topology = Topology::dragonfly(Dragonfly { routers, nodes, globals }).unwrap();
        let [a, p, h] = [routers, nodes, globals].map(u64::from);
        let groups = a * h + 1;
        assert_eq!(topology.nodes.len() as u64, groups * a * p);
        assert_eq!(topology.links.len() as u64, groups * a * (a - 1 + h));
        // Within a group one hop to another router. Between groups one link, and a hop before it
        // and behind it unless the router is the one at which it begins or ends.
        let within = groups * a * (a - 1);
        let between = groups * (groups - 1) * (a * a + 2 * a * (a - 1));
        let minimal = check(&topology, Policy::Minimal, 2, (within + between) * p * p);
        assert_eq!(minimal.longest, 3);
        assert_eq!(minimal.ring, None);
        let valiant = survey(&topology, Policy::Valiant, 3);
        assert_eq!(valiant.ring, None);
        assert!(valiant.longest <= 5);
        // Pairs of one group have one way, others one by each other group.
        let one = groups * (a * p) * (a * p - 1);
        assert_eq!(valiant.ways, one + groups * (groups - 1) * (a * p).pow(2) * (groups - 2));
    }
}

#[test]
fn a_dragonfly_of_1056_nodes_has_the_size_of_its_paper() {
    let topology = Topology::dragonfly(Dragonfly { routers: 8, nodes: 4, globals: 4 }).unwrap();
    assert_eq!((topology.ports.len(), topology.nodes.len()), (264, 1056));
    assert!(topology.ports.iter().all(|ports| *ports == 15));
    each_port_is_used_once(&topology, 0);
}

/// Each output and each input belongs to one link or one node, but for `unused` of each.
fn each_port_is_used_once(topology: &Topology, unused: usize) {
    let all: usize = topology.ports.iter().map(|ports| usize::from(*ports)).sum();
    for side in [0, 1] {
        let mut ports: Vec<_> = topology
            .links
            .iter()
            .map(|link| [link.from, link.to][side])
            .chain(topology.nodes.iter().map(|node| [node.eject, node.inject][side]))
            .map(|port| (port.router, port.port))
            .collect();
        assert!(ports.iter().all(|(router, port)| *port < topology.ports[*router as usize]));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len() + unused, all);
    }
}

/// The ways of the ladder, counted by hand: the sockets between source and target, where the lowest
/// socket is taken of several that are as near. The links are 01, 02, 13, 16, 23, 25, 34, 45,
/// 46, 57 and 67.
const LADDER: [[&str; 8]; 8] = [
    ["", "01", "02", "013", "0134", "025", "016", "0167"],
    ["10", "", "102", "13", "134", "1025", "16", "167"],
    ["20", "201", "", "23", "234", "25", "2016", "257"],
    ["310", "31", "32", "", "34", "325", "316", "3167"],
    ["4310", "431", "432", "43", "", "45", "46", "457"],
    ["520", "5201", "52", "523", "54", "", "546", "57"],
    ["610", "61", "6102", "613", "64", "645", "", "67"],
    ["7520", "761", "752", "7523", "754", "75", "76", ""],
];

#[test]
fn the_ladder_is_as_counted_by_hand() {
    let topology = Topology::ladder(1).unwrap();
    // Sockets 0 and 7 have a port each for input and output.
    each_port_is_used_once(&Topology::ladder(4).unwrap(), 2);
    assert_eq!(topology.links.len(), 22);
    let plan = Plan::new(&topology, Policy::ShortestPath, 1).unwrap();
    let mut loads = [[0; 8]; 8];
    for (source, ways) in LADDER.iter().enumerate() {
        for (target, by_hand) in ways.iter().enumerate().filter(|(target, _)| *target != source) {
            let way = plan.way(source as u32, target as u32).unwrap();
            let sockets: String = way.iter().map(|step| step.router.to_string()).collect();
            assert_eq!(sockets, **by_hand, "from {source} to {target}");
            for pair in by_hand.as_bytes().windows(2) {
                loads[usize::from(pair[0] - b'0')][usize::from(pair[1] - b'0')] += 1;
            }
        }
    }
    // 56 ordered pairs: 22 of one hop, 24 of two and 10 of three.
    let survey = check(&topology, Policy::ShortestPath, 1, 22 + 2 * 24 + 3 * 10);
    assert_eq!(survey.longest, 3);
    for (link, load) in topology.links.iter().zip(&survey.loads) {
        assert_eq!(*load, loads[link.from.router as usize][link.to.router as usize]);
    }
}

#[test]
fn valiant_passes_each_node_once_for_each_pair() {
    let topology = Topology::torus(&[4, 4]).unwrap();
    let survey = survey(&topology, Policy::Valiant, 4);
    let (pairs, vias, row_sum) = (16 * 15, 16, 2 * row(4, true) * 16);
    assert_eq!(survey.ways, pairs * vias);
    // For a place between, its distances from all sources and to all targets are the sum over its
    // row of pairs, less those of equal source and target.
    assert_eq!(survey.hops(), 2 * row_sum * 16 - 2 * row_sum);
    assert_eq!(survey.ring, None);
    let full = Topology::full(5, 1).unwrap();
    let survey = self::survey(&full, Policy::Valiant, 2);
    assert_eq!((survey.longest, survey.ring), (2, None));
}

#[test]
fn rings_of_channels_are_where_theory_has_them() {
    use Policy::{Adaptive, DimensionOrder, PlainDimensionOrder, SpreadShortestPath, UpDown};
    let mesh = Topology::mesh(&[16, 16]).unwrap();
    let torus = Topology::torus(&[16, 16]).unwrap();
    for policy in [DimensionOrder, UpDown, Policy::WestFirst] {
        assert_eq!(survey(&mesh, policy, 1).ring, None, "{policy:?}");
    }
    for policy in [UpDown, SpreadShortestPath] {
        let ring = survey(&torus, policy, 1).ring;
        assert_eq!(ring.is_some(), policy == SpreadShortestPath);
    }
    // Four turns, no fewer, close a ring in a mesh; sixteen links do in a torus.
    let ring = survey(&mesh, SpreadShortestPath, 1).ring.expect("all turns are taken");
    assert_eq!(ring.len(), 4);
    let ring = survey(&torus, PlainDimensionOrder, 1).ring.expect("a row is a ring");
    assert_eq!(ring.len(), 16);
    let routers = |number: usize| torus.links[ring[number % 16].link];
    for number in 0..16 {
        assert_eq!(routers(number).to.router, routers(number + 1).from.router);
    }
    assert_eq!(survey(&torus, DimensionOrder, 2).ring, None);
    assert_eq!(survey(&torus, Adaptive, 3).ring, None);
    assert_eq!(survey(&mesh, Adaptive, 2).ring, None);
    // Channels without a rule do not help.
    assert!(survey(&torus, PlainDimensionOrder, 2).ring.is_some());
    let few = Plan::new(&torus, DimensionOrder, 1).unwrap_err();
    assert!(matches!(few, RoutingError::FewChannels { least: 2, .. }));
    let other = Plan::new(&torus, Policy::WestFirst, 1).unwrap_err();
    assert_eq!(other, RoutingError::OtherShape { policy: Policy::WestFirst });
}

#[test]
fn failed_links_change_ways_and_cut_nodes_off() {
    let mesh = Topology::mesh(&[3, 3]).unwrap();
    let between = |from, to| {
        let is = |link: &ayre_sim::topology::Link| {
            [(from, to), (to, from)].contains(&(link.from.router, link.to.router))
        };
        (0..mesh.links.len()).filter(|number| is(&mesh.links[*number])).collect::<Vec<_>>()
    };
    // All goes on without one link.
    let left = mesh.without(&between(0, 1));
    for policy in [Policy::ShortestPath, Policy::UpDown] {
        let survey = survey(&left, policy, 1);
        assert_eq!(survey.unreachable, []);
        assert_eq!(survey.ways, 72);
    }
    // Without both links of a corner it is alone.
    let alone = mesh.without(&[between(0, 1), between(0, 3)].concat());
    for policy in [Policy::ShortestPath, Policy::UpDown] {
        let survey = survey(&alone, policy, 1);
        assert_eq!(survey.unreachable.len(), 16);
        assert!(survey.unreachable.iter().all(|(from, to)| *from == 0 || *to == 0));
    }
    let none = Plan::new(&left, Policy::DimensionOrder, 1).unwrap_err();
    assert_eq!(none, RoutingError::OtherShape { policy: Policy::DimensionOrder });
}

#[test]
fn a_torus_of_262144_nodes_fits_strings_of_64_bits() {
    let topology = Topology::torus(&[64, 64, 64]).unwrap();
    assert_eq!(topology.nodes.len(), 262_144);
    let plan = Plan::new(&topology, Policy::DimensionOrder, 2).unwrap();
    // Every target from one node; a torus looks the same from each, but for the ends of its rows,
    // which the other two nodes have elsewhere.
    for (source, stride) in [(0, 1), (262_143, 7), (33 * 4096 + 31 * 64 + 32, 7)] {
        for target in (0..262_144).step_by(stride) {
            let way = plan.way(source, target).unwrap();
            let mut string = RunLength::new(&way).unwrap();
            let mut router = source;
            for step in &way {
                let (port, channel, rest) = string.step().unwrap();
                assert_eq!((port, channel), (step.hop.port, step.hop.first));
                assert_eq!(router, step.router);
                if let Some(link) = plan.link(*step) {
                    router = topology.links[link].to.router;
                }
                string = rest;
            }
            assert_eq!(router, target);
            assert_eq!(string, RunLength(0));
            assert_eq!(string.step(), None);
        }
    }
}

#[test]
fn strings_count_six_bits_of_hops_on_each_channel() {
    // A row of 100: 99 hops are runs of 63 and 36, and the node.
    let topology = Topology::mesh(&[100]).unwrap();
    let plan = Plan::new(&topology, Policy::DimensionOrder, 1).unwrap();
    let string = RunLength::new(&plan.way(0, 99).unwrap()).unwrap();
    assert_eq!(string.to_string(), "0:63+0 0:36+0 2:1+0");
    assert_eq!(string.0, 0x2040_0900_0fc0);
    let topology = Topology::mesh(&[256]).unwrap();
    let plan = Plan::new(&topology, Policy::DimensionOrder, 1).unwrap();
    let error = RunLength::new(&plan.way(0, 255).unwrap()).unwrap_err();
    assert_eq!(error, RunLengthError::Long(6));
}

proptest! {
    /// In a network of any links both ways, Up*/Down* has no ring, and reaches what shortest ways
    /// reach. No way is shorter than those.
    #[test]
    fn up_and_down_has_no_ring(
        routers in 2_u32..14,
        pairs in proptest::collection::vec((0_u32..14, 0_u32..14), 1..30),
    ) {
        let mut text = String::new();
        for router in 0..routers {
            text += &format!("router r{router}\n");
        }
        let mut seen = std::collections::HashSet::new();
        for (one, other) in pairs {
            let (one, other) = (one % routers, other % routers);
            let (one, other) = (one.min(other), one.max(other));
            if one != other && seen.insert((one, other)) {
                text += &format!("link r{one} r{other}\n");
            }
        }
        for router in 0..routers {
            text += &format!("node n{router} r{router}\n");
        }
        text += "end\n";
        let topology = ayre_sim::topology::Named::from_text("drawn", &text).unwrap().topology;
        let shortest = survey(&topology, Policy::ShortestPath, 1);
        let up_down = survey(&topology, Policy::UpDown, 1);
        prop_assert_eq!(up_down.ring, None);
        prop_assert_eq!(&up_down.unreachable, &shortest.unreachable);
        let hops: u64 = up_down.loads.iter().sum();
        prop_assert!(hops >= shortest.hops());
        prop_assert_eq!(shortest.hops(), distances(&topology));
    }
}

/// The sum of distances over all pairs of routers that reach each other (Floyd and Warshall).
fn distances(topology: &Topology) -> u64 {
    let routers = topology.ports.len();
    let mut far = vec![vec![u64::MAX / 4; routers]; routers];
    for (router, row) in far.iter_mut().enumerate() {
        row[router] = 0;
    }
    for link in &topology.links {
        far[link.from.router as usize][link.to.router as usize] = 1;
    }
    for by in 0..routers {
        for from in 0..routers {
            for to in 0..routers {
                far[from][to] = far[from][to].min(far[from][by] + far[by][to]);
            }
        }
    }
    far.iter().flatten().filter(|far| **far < u64::MAX / 4).sum()
}

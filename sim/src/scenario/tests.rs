//! Scenarios: what is read, what is refused, and that threads decide on nothing.
use super::table::index;
use super::*;
use crate::report::Verdict;
use crate::routing::Policy;
use crate::topology::{Named, Topology};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn refused(text: &str) -> String {
    Scenario::read("file.toml", text, &[] as &[&str]).unwrap_err().to_string()
}

#[test]
fn the_table_is_sound() {
    for key in KEYS {
        let read = |text| key.kind.read(text, Path::new("")).expect(key.name);
        if let Default::By { key: other, cases, .. } = key.default {
            let other = &KEYS[index(other)];
            assert!(matches!(other.default, Default::Fixed(_)), "{}", key.name);
            for (choices, text) in cases {
                read(text);
                choices.iter().for_each(|choice| {
                    other.kind.read(choice, Path::new("")).expect(key.name);
                });
            }
        }
        read(key.default.value(|_| ""));
        for (other, values) in key.needs {
            let other = KEYS.iter().find(|key| key.name == *other).expect(key.name);
            for value in *values {
                other.kind.read(value, Path::new("")).expect(key.name);
            }
        }
        assert_eq!(KEYS.iter().filter(|other| other.name == key.name).count(), 1);
    }
}

#[test]
fn an_empty_file_is_a_scenario() {
    let scenario = Scenario::from_toml("").unwrap();
    assert_eq!((scenario.len(), scenario.swept().len()), (1, 0));
    let plan = scenario.plan(0);
    assert_eq!(plan.topology.nodes.len(), 8);
    assert_eq!(plan.parameters.link.phit.0, 3_200);
}

#[test]
fn lists_make_the_product() {
    let text = "topology = 'torus'\nload = [0.1, '20 %']\nchannels = [2, 4, 8]";
    let scenario = Scenario::from_toml(text).unwrap();
    assert_eq!((scenario.len(), scenario.swept()), (6, &["load", "channels"][..]));
    let channels: Vec<_> = (0..6).map(|at| scenario.plan(at).parameters.channels).collect();
    assert_eq!(channels, [2, 4, 8, 2, 4, 8]);
    let arguments = ["channels=3", "load=[0.1,0.2,0.3]", "wire=4 cycles"];
    let scenario = Scenario::read("file", text, &arguments).unwrap();
    assert_eq!((scenario.len(), scenario.swept()), (3, &["load"][..]));
    assert_eq!(scenario.plan(0).parameters.link.wire.0, 4 * 3_200);
}

#[test]
fn one_point_is_no_sweep() {
    let read = |text: &str| Scenario::read("file", text, &[] as &[&str]).unwrap();
    assert_eq!(read("load = [0.1]").one_point().unwrap().len(), 1);
    let said = read("packets = 9\nload = [0.1, 0.2]").one_point().unwrap_err().to_string();
    assert!(said.starts_with("file:2:9: `load` is a list, which makes a sweep"), "{said}");
}

#[test]
fn faults_are_named_with_their_place() {
    let faults = [
        ("load = 0.5\nbufer = '2 KiB'", "2:1: there is no parameter `bufer`; is `buffer` meant?"),
        ("load = [0.1, 9.0]", "1:14: `load` cannot be `9.0`: it is out of range; allowed: 0.000"),
        ("wire = 300", "1:8: `wire` cannot be `300`: `` is no unit of time; the units are ps, ns"),
        ("load = nan", "1:8: `load` cannot be `nan`: there is no number"),
        ("load = true", "1:8: `load` cannot be boolean"),
        ("load = []", "1:1: `load` is an empty list"),
        ("load = ", "1:8: "),
        (
            "topology = 'tours'",
            "1:12: `topology` cannot be `tours`: there is no such choice; `torus`",
        ),
        ("half = 4", "1:1: `half` is not used here: it belongs to topology = tree"),
        ("buffer = '1 B'", "1:10: a buffer of 1 B has no room for a packet of 512 B"),
        ("topology = 'torus'\nsides = '1x8'", "2:9: the number of routers in a dimension is 1"),
        (
            "topology = 'torus'\nsides = '1024x1024x1024x1024'",
            "2:9: the number of routers would be 1099511627776",
        ),
        ("topology = 'torus'\nchannels = 1", "2:12: dimension-order needs at least 2"),
        ("topology = 'file'", "1:12: `file` is missing: it belongs to topology = file"),
        (
            "topology = 'ladder'\nrouting = 'adaptive'",
            "2:11: adaptive does not fit this topology; any goes with up-down, shortest-path",
        ),
        (
            "topology = 'mesh'\nwithout = 'r0--r1'",
            "2:11: dimension-order does not fit this topology",
        ),
        ("topology = 'mesh'\nwithout = 'r0--r9'", "2:11: there is no link `r0--r9`"),
        (
            "topology = 'mesh'\nsides = '3'\nrouting = 'up-down'\nwithout = 'r0--r1'",
            "4:11: 4 pairs of nodes have no way between them, node 0 to node 1 is the first",
        ),
        ("topology = 'full'\nrouters = 62", "2:11: the number of ports of a router would be 65"),
        (
            "topology = 'dragonfly'\nrouting = 'valiant'",
            "2:11: valiant needs at least 3 virtual channels here, and there are 2",
        ),
        ("topology = 'torus'\nsides = '3x3'\npattern = 'transpose'", "3:11: transpose is made for"),
        ("pattern = 'hotspot'\nhotspot_node = 8", "2:16: there is no node 8"),
        ("sizes = 'uniform'\nsize = '1 KiB'", "2:8: packets of 1024 B to 512 B"),
        ("rate = '100 Tb/s'", "1:8: a phit of 1 B would take less than 1 ps"),
        ("rate = '0 b/s'", "1:8: "),
        (
            "topology = 'torus'\nsides = '64x64'\nnode_queue = 'per-target'",
            "3:14: the targets of a node would be 4096, and the limit is 1024",
        ),
        (
            "seed = [1,2,3,4,5,6,7,8,9,10]\nload = [1,1,1,1,1,1,1,1,1,1]\npackets = \
          [1,1,1,1,1,1,1,1,1,1]\nwarmup = [1,1,1,1,1,1,1,1,1,1]\nreplicas = [1,1]",
            "5:1: the lists make 20000 points",
        ),
    ];
    for (text, expected) in faults {
        let said = refused(text);
        assert!(said.starts_with(&format!("file.toml:{expected}")), "{said}\nnot {expected}");
    }
    let said = Scenario::read("file", "", &["load"]).unwrap_err().to_string();
    assert_eq!(said, "argument `load`: an argument has the form key=value");
    let said = Scenario::read("file", "", &["size=4 KiB"]).unwrap_err().to_string();
    assert!(said.starts_with("argument `size=4 KiB`: a buffer of 2048 B"), "{said}");
}

/// A folder of this test alone.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ayre-sim-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_topology_may_come_from_a_file() {
    let folder = folder("topology");
    let ring = Named::by_number(Topology::torus(&[5]).unwrap());
    std::fs::write(folder.join("ring.txt"), ring.to_text()).unwrap();
    std::fs::write(folder.join("ring.dot"), ring.to_dot()).unwrap();
    let text = ring.to_text().replace("link r0:0 r1:1", "link r0:0 r9:1");
    std::fs::write(folder.join("faulty.txt"), text).unwrap();
    let scenario = folder.join("ring.toml").display().to_string();
    let read = |text: &str, arguments: &[&str]| Scenario::read(&scenario, text, arguments);
    for name in ["ring.txt", "ring.dot"] {
        let text = format!("topology = 'file'\nfile = '{name}'\nwithout = 'r4--r0'");
        let plan = read(&text, &[]).unwrap().plan(0);
        assert_eq!((plan.topology.nodes.len(), plan.topology.links.len()), (5, 8));
        assert_eq!(plan.parameters.policy, Policy::UpDown);
    }
    let said = read("topology = 'file'\nfile = 'faulty.txt'", &[]).unwrap_err().to_string();
    let (place, fault) = (format!("{scenario}:2:8: "), "faulty.txt:6: there is no router r9");
    assert!(said.starts_with(&place) && said.contains(fault), "{said}");
    let said = read("topology = 'file'\nfile = 'no.txt'", &[]).unwrap_err().to_string();
    assert!(said.starts_with(&place) && said.contains("no.txt: No such file"), "{said}");
    // The file that an argument names is looked for in the current folder.
    let path = folder.join("ring.txt");
    let argument = format!("file={}", path.display());
    assert!(read("topology = 'file'", &[&argument]).is_ok());
    assert!(read("topology = 'file'", &["file=ring.txt"]).is_err());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_topology_runs_by_every_policy_that_fits() {
    let mut ran = 0;
    for &(topology, _) in choices("topology") {
        for &(policy, _) in choices("routing") {
            let sides = if policy == "west-first" { "3x3" } else { "4x2x2" };
            let text = format!(
                "topology = '{topology}'\nrouting = '{policy}'\nload = 0.05\nsize = '64 B'\n\
                 packets = 300\nwarmup = 0\nreplicas = 1"
            );
            let arguments = match topology {
                "mesh" | "torus" => vec!["channels=4".to_owned(), format!("sides={sides}")],
                "star" | "switch" => vec!["nodes=4".to_owned()],
                "dragonfly" => ["routers=2", "router_nodes=2", "globals=1", "channels=4"]
                    .map(str::to_owned)
                    .to_vec(),
                _ => vec!["channels=4".to_owned()],
            };
            let Ok(scenario) = Scenario::read("file", &text, &arguments) else { continue };
            let point = &scenario.run().points[0];
            assert!(point.packets >= 300, "{topology} {policy} {:?}", point.verdict);
            ran += 1;
        }
    }
    // The three policies of tables fit all topologies but that of no file. A mesh has five policies
    // of its own, a torus and a hypercube four, a tree, a full network and a dragonfly two, and one
    // switch has one.
    assert_eq!(ran, 9 * 3 + 5 + 2 * 4 + 3 * 2 + 2);
}

fn choices(name: &str) -> &'static [(&'static str, &'static str)] {
    match KEYS[index(name)].kind {
        Kind::Choice(choices) => choices,
        _ => &[],
    }
}

#[test]
fn patterns_of_dimensions_take_as_many_links_as_their_ways_are_long() {
    // Half way round, less one: 3 links of 8, and 2 of 5.
    for (pattern, hops) in [("tornado", 3.0 + 2.0), ("neighbor", 2.0)] {
        let text = format!(
            "topology = 'torus'\nsides = '8x5'\npattern = '{pattern}'\nload = 0.05\n\
             packets = 300\nwarmup = 0\nreplicas = 1"
        );
        let point = &Scenario::from_toml(&text).unwrap().run().points[0];
        assert_eq!(point.hops, hops, "{pattern}");
    }
}

#[test]
fn threads_decide_on_nothing() {
    let text = "load = [0.3, 0.6]\npackets = 3000\nwarmup = 500\nreplicas = 3";
    let scenario = Scenario::from_toml(text).unwrap();
    let one = scenario.run_watched("", 1, &());
    assert_eq!(one, scenario.run_watched("", 5, &()));
    // Nor do the parts of a network.
    let other = Scenario::from_toml(&format!("{text}\nparts = 3")).unwrap();
    let mut other = other.run_watched("", 2, &());
    for (one, other) in one.points.iter().zip(&mut other.points) {
        assert_ne!(one.settings, other.settings);
        other.settings.clone_from(&one.settings);
    }
    assert_eq!(one, other);
    // A replica is the run with its seed.
    let text = "load = [0.3, 0.6]\npackets = 3000\nwarmup = 500\nreplicas = 1\nseed = 2";
    let other = Scenario::from_toml(text).unwrap().run();
    assert_ne!(one.points[0].course, other.points[0].course);
    assert_eq!(other.points[0].replicas, 1);
}

#[test]
fn confidence_covers_the_theory() {
    // M/D/1: one node sends to itself through its own interface.
    let text = "nodes = 2\npattern = 'permutation'\ntargets = '0,1'\nload = 0.7\nwire = '0 ns'\n\
                wire_to_node = '0 ns'\npipeline = '1 ps'\ncredit = '0 ns'\npackets = 60000\n\
                replicas = 8\nbuffer = '4 KiB'";
    let point = &Scenario::from_toml(text).unwrap().run().points[0];
    let unit = 512.0 * 3.2;
    let expected = unit * (1.0 + 0.7 / (2.0 * 0.3));
    let off = (point.delay_ns.mean - expected).abs();
    assert!(off < 2.0 * point.delay_ns.half_width, "{:?} {expected}", point.delay_ns);
    assert!(point.delay_ns.half_width < 0.05 * expected, "{:?}", point.delay_ns);
    assert_eq!(point.verdict, Verdict::Stable);
}

#[test]
fn too_much_load_is_a_result() {
    let text = "topology = 'switch'\nnode_queue = 'one'\nreadout = 'port'\nsize = '1 B'\n\
                arrivals = 'bernoulli'\nload = [0.55, 0.8]\npackets = 50000\nwarmup = 20000";
    let results = Scenario::from_toml(text).unwrap().run();
    let verdicts: Vec<_> = results.points.iter().map(|point| point.verdict.clone()).collect();
    assert_eq!(verdicts, [Verdict::Stable, Verdict::Unstable]);
    assert!(results.is_unstable());
    // Karol, Hluchyj and Morgan 1987: one queue at each of 8 inputs carries 0.6184.
    let carried = results.points[1].accepted.mean;
    assert!((carried / 0.6184 - 1.0).abs() < 0.015, "{carried}");
}

#[test]
fn saturation_is_found() {
    // Karol, Hluchyj and Morgan 1987: one queue at each of 8 inputs carries 0.6184.
    let text = "topology = 'switch'\nnode_queue = 'one'\nreadout = 'port'\nsize = '1 B'\n\
                arrivals = 'bernoulli'\nload = 'saturation'\npackets = 50000\nwarmup = 20000";
    let point = &Scenario::from_toml(text).unwrap().run().points[0];
    let found = point.saturation.unwrap();
    assert!((found.mean - 0.6184).abs() < found.half_width + 1.0 / 128.0, "{found:?}");
    assert_eq!(point.verdict, Verdict::Stable);
    assert!((point.offered.mean / found.mean - 1.0).abs() < 0.02, "{:?}", point.offered);
    // A link that nobody else uses carries all that is paced.
    let text = "nodes = 2\npattern = 'permutation'\ntargets = '0,1'\narrivals = 'paced'\n\
                load = 'saturation'\npackets = 2000\nwarmup = 0\nreplicas = 1";
    let point = &Scenario::from_toml(text).unwrap().run().points[0];
    assert_eq!(point.saturation.map(|found| found.mean), Some(1.0));
}

#[test]
fn a_window_is_a_load_of_its_own() {
    let said = refused("arrivals = 'window'\nload = 0.5");
    assert!(said.contains("`load` is not used here"), "{said}");
    let text =
        "arrivals = 'window'\nwindow = [1, 4]\nthink = '5 us'\npackets = 20000\nreplicas = 2";
    let points = Scenario::from_toml(text).unwrap().run().points;
    for (point, window) in points.iter().zip([1.0, 4.0]) {
        // Little's law: packets of 512 B take 1638.4 ns of a link.
        let expected = window * 1638.4 / (point.delay_ns.mean + 5000.0);
        assert!((point.accepted.mean / expected - 1.0).abs() < 0.01, "{point:?}");
        assert_eq!(point.verdict, Verdict::Stable);
    }
}

#[test]
fn a_schedule_runs_in_the_model_and_over_a_network() {
    // Ten rounds of L + 2 o + 7 G.
    let point = &Scenario::from_toml("work = 'loggops'\nranks = 1024").unwrap().run().points[0];
    let schedule = point.schedule.as_ref().unwrap();
    assert_eq!((schedule.end_ns.mean, &point.verdict), (55_420.0, &Verdict::Stable));
    assert_eq!(schedule.path_ns.iter().map(|(_, ns)| ns).sum::<f64>(), 55_420.0);
    // Three rounds: two overheads, and 8 B at 3.2 ns behind two wires and a pipeline.
    let scenario = Scenario::from_toml("work = 'goal'").unwrap();
    let point = &scenario.run().points[0];
    let round = 2.0 * 1500.0 + 8.0 * 3.2 + 650.0;
    let schedule = point.schedule.as_ref().unwrap();
    assert!((schedule.end_ns.mean / (3.0 * round) - 1.0).abs() < 1e-9, "{schedule:?}");
    assert_eq!((point.packets, &point.verdict), (24, &Verdict::Stable));
    // Each packet is on two links.
    assert_eq!(scenario.trace(0, 100, &()).slices().len(), 48);
}

#[test]
fn a_faulty_schedule_is_named() {
    let folder = folder("schedule");
    let name = folder.join("stuck.goal").display().to_string();
    std::fs::write(&name, "num_ranks 2\nrank 0 {\nl1: recv 8b from 1 tag 7\n}\nrank 1 {\n}\n")
        .unwrap();
    let read = |more: &str| {
        let text = format!("work = 'goal'\nschedule = '{name}'{more}");
        Scenario::read("file", &text, &[] as &[&str]).unwrap_err().to_string()
    };
    let said = read("");
    assert!(said.starts_with("file:2:12: line 3: rank 0 waits for ever"), "{said}");
    assert!(read("\nranks = 8").starts_with("file:3:1: `ranks` is not used here"), "{said}");
    std::fs::write(&name, "num_ranks 2\nrank 0 {\n").unwrap();
    let said = read("");
    assert!(said.starts_with("file:2:12: `schedule` cannot be") && said.contains("line"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
    let faults = [
        ("work = 'loggops'\nload = 0.5", "2:1: `load` is not used here: it belongs to arrivals"),
        ("work = 'loggops'\ntopology = 'torus'", "2:1: `topology` is not used here: it belongs"),
        ("work = 'goal'\nranks = 9", "2:9: the schedule has 9 ranks, and the network 8 nodes"),
        ("work = 'goal'\nheader = '2 KiB'", "2:10: a buffer of 2048 B has no room"),
        ("work = 'goal'\nschedule = 'disem'", "2:12: `schedule` cannot be `disem`: disem: No such"),
        (
            "work = 'loggops'\nschedule = 'all-to-all'\nranks = 4096",
            "3:9: the messages of the schedule would be 16777216",
        ),
        (
            "work = 'loggops'\nschedule = 'doubling'\nranks = 12",
            "3:9: recursive doubling is made for a power of two",
        ),
        ("work = 'loggops'\ngap_per_byte = '2 us'", "2:16: the gap per byte is 2.000 us, and"),
    ];
    for (text, expected) in faults {
        let said = refused(text);
        assert!(said.starts_with(&format!("file.toml:{expected}")), "{said}\nnot {expected}");
    }
}

struct StopAt(std::sync::Mutex<u64>);

impl Watch for StopAt {
    fn advanced(&self, packets: u64) {
        let mut left = self.0.lock().unwrap();
        *left = left.saturating_sub(packets);
    }
    fn is_stopped(&self) -> bool {
        *self.0.lock().unwrap() == 0
    }
}

#[test]
fn a_stopped_run_gives_what_there_is() {
    let text = "load = [0.3, 0.6]\npackets = 40000\nwarmup = 0\nreplicas = 1";
    let scenario = Scenario::from_toml(text).unwrap();
    let results = scenario.run_watched("", 1, &StopAt(60_000.into()));
    assert!(!results.complete);
    assert_eq!(scenario.packets(), 80_000);
    let packets: Vec<_> = results.points.iter().map(|point| point.packets).collect();
    assert!((40_000..40_100).contains(&packets[0]), "{packets:?}");
    assert!((20_000..20_100).contains(&packets[1]), "{packets:?}");
    let results = scenario.run_watched("", 2, &StopAt(0.into()));
    assert!(results.points.iter().all(|point| point.verdict == Verdict::NotRun));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}", argument in ".{0,60}") {
        let _ = Scenario::read("file", &text, &[argument]);
    }

    /// Values of all kinds for a parameter of each kind.
    #[test]
    fn no_value_makes_the_reader_panic(
        key in 0..KEYS.len(),
        value in "[-0-9.eE_xX %a-zA-Z/,\\[\\]'\"]{0,24}",
    ) {
        let name = KEYS[key].name;
        let _ = Scenario::read("file", &format!("{name} = {value}"), &[] as &[&str]);
        // Nothing large is built: a number that is allowed may be.
        if !["sides", "dimensions", "half", "levels"].contains(&name) {
            let _ = Scenario::read("file", "", &[format!("{name}={value}")]);
        }
    }
}

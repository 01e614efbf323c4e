//! Collectives in scripts: results of all of them by all schedules, and closed-form times.
use ayre_sim::cluster::InterfaceTimes;
use ayre_sim::nic::Parameters;
use ayre_sim::report::{Course, OperationTimes, Point, Verdict};
use ayre_sim::scenario::{Scenario, Script, ScriptFault};
use std::fmt::Write;

/// Nodes at one switch, with links of 10 GB/s: all ways are equally long.
const NETWORK: &str = "topology = 'star'\nrate = '10 GB/s'\nwidth = '8 B'\n\
    wire = '20 ns'\nwire_to_node = '20 ns'\npipeline = '40 ns'\ncredit = '20 ns'\n\
    injection = '0 ns'\nbuffer = '16 KiB'\nwork = 'script'\n";

fn run(nodes: u32, name: &str, text: &str) -> Point {
    let path = std::env::temp_dir().join(format!("ayre-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a folder to write to");
    let arguments = [format!("script={}", path.display()), format!("nodes={nodes}")];
    let scenario = Scenario::read("collectives", NETWORK, &arguments);
    let mut results = scenario.unwrap_or_else(|error| panic!("{name}: {error}")).run();
    std::fs::remove_file(&path).expect("it is there");
    results.points.remove(0)
}

fn course(nodes: u32, name: &str, text: &str) -> Course {
    let point = run(nodes, name, text);
    assert_eq!(point.verdict, Verdict::Stable, "{name}: {:?}", point.notes);
    point.script.expect("the course of a script")
}

fn times(course: &Course, operation: &str) -> OperationTimes {
    let found = course.operations.iter().find(|times| times.operation == operation);
    found.expect("an operation of the script").clone()
}

/// The statements with a length and an operation, the schedules that are for them.
const STATEMENTS: [(&str, &str, &[&str]); 10] = [
    ("barrier", "", &["star", "tree", "doubling"]),
    ("broadcast", "LENGTH root=1", &["star", "tree", "ring"]),
    ("reduce", "LENGTH min root=1", &["star", "tree"]),
    ("allreduce", "LENGTH sum", &["star", "tree", "doubling", "spread", "ring"]),
    ("gather", "LENGTH root=1", &["star", "tree"]),
    ("scatter", "LENGTH root=1", &["star", "tree"]),
    ("allgather", "LENGTH", &["doubling", "spread", "ring"]),
    ("alltoall", "LENGTH", &["spread"]),
    ("scan", "LENGTH xor", &["doubling", "ring"]),
    ("reduce-scatter", "LENGTH product", &["spread", "ring"]),
];

/// All collectives by all schedules, on vectors or blocks of one length.
fn all(length: &str) -> String {
    let mut text = "node all\n".to_owned();
    for (word, form, schedules) in STATEMENTS {
        let form = form.replace("LENGTH", length);
        writeln!(text, " {word} {form}").unwrap();
        for schedule in schedules {
            writeln!(text, " {word} {form} schedule={schedule}").unwrap();
        }
    }
    text
}

/// Every member compares its result with a plain computation.
#[test]
fn all_collectives_by_all_schedules_bring_what_they_say() {
    for (nodes, lengths) in [
        (2, &["0", "8", "600KiB"][..]),
        (3, &["16", "3KiB"]),
        (7, &["1016", "80000"]),
        (16, &["72"]),
    ] {
        for length in lengths {
            let course = course(nodes, "all", &all(length));
            let count: usize = STATEMENTS.iter().map(|(.., schedules)| schedules.len() + 1).sum();
            let done: u64 = course.operations.iter().map(|times| times.count).sum();
            assert_eq!(done, u64::from(nodes) * count as u64, "{nodes} nodes, {length}");
        }
    }
    let alone = course(2, "alone", &all("4KiB").replacen("all", "1", 1));
    assert_eq!(alone.end_ns, 0.0, "who is alone waits for nobody");
}

/// The time of a message of a portion with this number of bytes: the store of the processor, both
/// stages, two wires, a router, and the link.
fn portion(bytes: u64) -> f64 {
    let interface = InterfaceTimes::of(&Parameters::server());
    // The frame's header, the record's, the word of the gate, and the header of the portion.
    let bytes = (96 + 8 + 8 + 16 + bytes.next_multiple_of(8)) as f64;
    let passing = (interface.send.byte.nanos() + interface.receive.byte.nanos()) * bytes;
    let stages = interface.send.latency.nanos() + interface.receive.latency.nanos();
    interface.call.nanos() + stages + passing + 80.0 + bytes / 10.0
}

/// Nodes count whole nanoseconds.
fn close(ours: f64, expected: f64, error: f64, about: &str) {
    assert!((ours - expected).abs() <= error, "{about}: {ours} ns, and {expected} are expected");
}

#[test]
fn a_dissemination_barrier_takes_log_n_messages() {
    for nodes in [2_u32, 5, 8, 16, 33] {
        let course = course(nodes, "barrier", "node all\n barrier");
        let rounds = f64::from(nodes.next_power_of_two().ilog2());
        close(course.end_ns, rounds * portion(0), rounds, &format!("{nodes} nodes"));
    }
}

#[test]
fn a_tree_broadcast_takes_as_many_messages_as_the_tree_is_high() {
    for (nodes, bytes) in [(2_u32, 8), (8, 200), (16, 72)] {
        let course = course(nodes, "tree", &format!("node all\n broadcast {bytes} root=1"));
        let high = f64::from(nodes.ilog2());
        close(course.end_ns, high * portion(bytes), high, &format!("{nodes} nodes"));
    }
}

#[test]
fn members_that_differ_are_told_of_it() {
    let cases = [
        ("other", "node 0\n barrier\nnode 1\n allreduce 8 sum", "Barrier (schedule Doubling)"),
        ("length", "node 0\n scan 8 sum\nnode 1\n scan 16 sum", "16 bytes"),
        ("sum", "node 0\n allreduce 8 sum\nnode 1\n allreduce 8 max", "Allreduce (Max of U64"),
        ("block", "node 0\n allgather 8\nnode 1\n allgather 16", "a block of another length"),
        ("order", "node 0\n barrier\n barrier\nnode 1\n barrier", "waits for ever"),
        (
            "anew",
            "node 0\n barrier\n barrier\nnode 1\n barrier\n compute 2us\nnode 2\n barrier\n \
             compute 1us\n kill 1\n restart 1\n barrier",
            "is collective",
        ),
    ];
    for (name, text, expected) in cases {
        let point = run(3, name, text);
        let note = point.notes.concat();
        assert!(point.script.is_none() && note.contains(expected), "{name}: {note}");
    }
}

#[test]
fn messages_of_programs_and_of_collectives_keep_apart() {
    let text =
        "node all\n send next 100 fill=3\n allgather 2KiB\n receive previous expect=3\n barrier";
    assert_eq!(times(&course(5, "apart", text), "receive").count, 5);
}

#[test]
fn a_collective_that_cannot_be_says_why() {
    let cases = [
        ("node 0\n allreduce 12 sum", "12 B: numbers that are combined have 8 B each"),
        ("node 0\n allreduce 16 mean", "\"mean\" is none of sum, product"),
        ("node 0\n allreduce 16", "the statement is to be `allreduce LENGTH OPERATION"),
        ("node 0\n scan 8 sum root=0", "the statement is to be `scan"),
        ("node 0\n alltoall 8 schedule=tree", "the schedule \"tree\" is not for this collective"),
        ("node 0\n broadcast 8 schedule=best", "the statement is to be `broadcast"),
        ("node 0\n broadcast 1GiB", "from 0 to 67108864"),
        ("node 0\n together\n barrier\n end", "`barrier` cannot be in `together`"),
        ("node 0\n send 1 8 tag=4294967295", "from 0 to 4294967039"),
    ];
    for (text, expected) in cases {
        let error = Script::read("name", text).expect_err(text);
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    let script = Script::read("name", "node 0..2\n gather 8 root=3").expect("a script");
    let fault = script.check(4).map_err(|error| error.fault);
    assert_eq!(fault, Err(ScriptFault::NoMember { node: 3 }));
    let script = Script::read("name", "node all\n alltoall 8").expect("a script");
    let fault = |nodes| script.check(nodes).map_err(|error| error.fault);
    assert_eq!(fault(256), Ok(()));
    assert_eq!(fault(1024), Err(ScriptFault::Connections(1024 * 1023 / 2)));
}

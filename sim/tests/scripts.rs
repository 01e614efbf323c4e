//! Scripts: each operation of the interface with its closed-form time, and faults that are told.
use ayre_sim::cluster::InterfaceTimes;
use ayre_sim::nic::Parameters;
use ayre_sim::report::{Course, OperationTimes, Point, Verdict};
use ayre_sim::scenario::{Scenario, Script, ScriptFault};
use ayre_sim::time::Time;
use proptest::collection::vec;
use proptest::prelude::{Strategy, proptest};
use proptest::sample::select;
use std::path::Path;

/// Nodes at a torus of 4 x 4, with links of 10 GB/s.
const NETWORK: &str = "topology = 'torus'\nsides = '4x4'\nrate = '10 GB/s'\nwidth = '8 B'\n\
    wire = '20 ns'\nwire_to_node = '20 ns'\npipeline = '40 ns'\ncredit = '20 ns'\n\
    injection = '0 ns'\nbuffer = '16 KiB'\nrouting = 'dimension-order'\nchannels = 2\n\
    work = 'script'\n";

fn run(path: &Path) -> Point {
    let argument = format!("script={}", path.display());
    let scenario = Scenario::read("scripts", NETWORK, &[argument]);
    let mut results = scenario.unwrap_or_else(|error| panic!("{error}")).run();
    results.points.remove(0)
}

fn course(name: &str) -> Course {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let point = run(&folder.join(format!("{name}.script")));
    assert_eq!(point.verdict, Verdict::Stable, "{name}: {:?}", point.notes);
    point.script.expect("the course of a script")
}

/// Runs a text, which fails: the note that says so.
fn note(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("ayre-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a folder to write to");
    let point = run(&path);
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!((&point.verdict, &point.script), (&Verdict::Failed, &None), "{name}");
    point.notes.concat()
}

fn ended(course: &Course, node: u32) -> f64 {
    let found = course.nodes_ns.iter().find(|(other, _)| *other == node);
    found.expect("a node of the script").1
}

fn times(course: &Course, operation: &str) -> OperationTimes {
    let found = course.operations.iter().find(|times| times.operation == operation);
    found.expect("an operation of the script").clone()
}

/// The time of a frame with a record of this number of bytes from node 0 to node 5. It passes both
/// stages, three wires, two routers, and the link.
fn way(record: u64) -> f64 {
    let interface = InterfaceTimes::of(&Parameters::server());
    let bytes = 96 + 8 + record.next_multiple_of(8);
    let passing = |byte: Time| byte.nanos() * bytes as f64;
    let (send, receive) = (interface.send, interface.receive);
    let stages = send.latency.nanos() + receive.latency.nanos();
    stages + passing(send.byte) + passing(receive.byte) + 140.0 + bytes as f64 / 10.0
}

/// The time for which a frame with a record of this number of bytes keeps the stage of sending.
fn stage(record: u64) -> f64 {
    let send = InterfaceTimes::of(&Parameters::server()).send;
    send.frame.nanos() + send.byte.nanos() * (96 + 8 + record.next_multiple_of(8)) as f64
}

/// The processor's store of a command.
fn call() -> f64 {
    InterfaceTimes::of(&Parameters::server()).call.nanos()
}

fn close(ours: f64, expected: f64, error: f64, about: &str) {
    assert!((ours - expected).abs() <= error, "{about}: {ours} ns, and {expected} are expected");
}

/// Bytes of a command, of an answer, and of what stands before a message.
const COMMAND: u64 = 48;
const ANSWER: u64 = 16;
const GATE: u64 = 8;
/// Bytes of the header of what a member of a collective sends.
const HEADER: u64 = 16;
/// Bytes of the report of counts that goes with an answer, its head included.
const REPORT: u64 = 40;

/// Nodes count whole nanoseconds, so times may be off by one.
#[test]
fn what_another_node_sees_takes_a_store_and_one_way() {
    for (name, record) in
        [("immediate", COMMAND), ("notify", COMMAND), ("message", GATE + 100), ("queue", 100)]
    {
        let course = course(name);
        close(ended(&course, 5), call() + way(record), 1.0, name);
    }
    // A put of a page waits for a read of memory, and is filled up to whole lines.
    let read = InterfaceTimes::of(&Parameters::server()).read.nanos();
    let filler = way(COMMAND + 4096 + 64) - way(COMMAND + 4096);
    close(ended(&course("put"), 5), call() + read + way(COMMAND + 4096), filler, "put");
}

#[test]
fn what_is_answered_takes_a_store_and_both_ways() {
    let answer = InterfaceTimes::of(&Parameters::server()).answer.nanos();
    let both = |data| call() + way(COMMAND) + answer + way(ANSWER + data + REPORT);
    close(times(&course("get"), "get").mean_ns, both(64), 1.0, "get");
    close(times(&course("fetch"), "fetch").mean_ns, both(0), 1.0, "fetch");
    close(times(&course("conditional"), "fetch").mean_ns, both(0), 1.0, "conditional");
    close(times(&course("faults"), "get").mean_ns, both(0), 1.0, "a fault");
    // Four at once are one round trip and three further stores' frames, and one more alone.
    let frame = InterfaceTimes::of(&Parameters::server()).send.frame.nanos();
    let together = course("together").end_ns;
    let least = 2.0 * both(0) + 3.0 * frame;
    assert!((least..least + 60.0).contains(&together), "{together}, at least {least}");
}

#[test]
fn what_is_not_answered_ends_when_its_node_has_asked() {
    // The question is a frame behind that of the operation, and the peer's counts come back.
    for (name, word) in [("immediate", "immediate"), ("atomic", "atomic"), ("notify", "notify")] {
        let course = course(name);
        let times = times(&course, word);
        let [least, most] = [call() + way(COMMAND) + way(8), call() + 2.0 * way(COMMAND) + 100.0];
        assert!((least..most).contains(&times.mean_ns), "{name}: {times:?}, {least} to {most}");
        // One operation after the other: none waits for another one.
        close(times.most_ns, times.least_ns, 1.0, name);
    }
}

#[test]
fn a_batch_is_posted_at_once() {
    // The data of two puts is longer than a command's line, so all wait for a read.
    let course = course("batch");
    let read = InterfaceTimes::of(&Parameters::server()).read.nanos();
    let records = 5 * COMMAND + 2 * 64 + 4 * 8;
    close(ended(&course, 5), call() + read + way(records), 1.0, "batch");
}

#[test]
fn a_handler_runs_when_its_node_waits_and_may_reply() {
    let course = course("handler");
    let trip = 2.0 * (call() + way(GATE + 8 + 16));
    // Two calls at once: the second one waits while the node computes for the first.
    close(ended(&course, 0), trip + 2_000.0, 1.0 + stage(GATE + 8 + 16), "two replies");
    // A node that computes handles nothing meanwhile.
    assert_eq!(ended(&course, 7), 20_000.0);
    assert_eq!(times(&course, "handler").count, 2 + 2 + 1 + 1);
}

#[test]
fn deposit_messages_are_placed_by_the_depot() {
    let course = course("deposit");
    let deposit = times(&course, "deposit");
    assert_eq!((deposit.count, times(&course, "until").count), (10, 2));
    // Those that are answered take both ways.
    let answer = InterfaceTimes::of(&Parameters::server()).answer.nanos();
    let both = call() + way(COMMAND) + answer + way(ANSWER + REPORT);
    assert!(deposit.least_ns < both + 1.0 && deposit.most_ns > both - 1.0, "{deposit:?} {both}");
}

#[test]
fn a_barrier_of_sixteen_nodes_has_four_rounds() {
    let course = course("barrier");
    let barrier = times(&course, "barrier");
    assert_eq!((barrier.count, course.nodes_ns.len()), (32, 16));
    // Nodes are 1, 2, 4 and 8 places apart: at most four links of the torus, at least one.
    let hop = 60.0;
    let round = call() + way(GATE + HEADER);
    let (least, most) = (4.0 * (round - hop), 4.0 * (round + 2.0 * hop));
    assert!((least..most).contains(&barrier.least_ns), "{barrier:?}: {least} to {most}");
    let whole = 5_000.0 + 2.0 * barrier.most_ns;
    close(course.end_ns, whole, 2.0 * (barrier.most_ns - barrier.least_ns) + 1.0, "both");
}

#[test]
fn a_lock_keeps_others_out() {
    // Each of the twelve turns reads zero, although the holder writes one meanwhile: `expect`
    // checks that. A turn takes at least five round trips.
    let course = course("lock");
    let [lock, get] = ["lock", "get"].map(|word| times(&course, word));
    assert_eq!((lock.count, get.count), (4 * 4, 4 * 3));
    assert!(course.end_ns > 12.0 * 5.0 * get.least_ns * 0.8, "{course:?}");
    assert!(lock.most_ns > 3.0 * get.mean_ns, "somebody has waited: {lock:?}");
}

#[test]
fn notifications_of_all_classes_and_loopback_do_what_they_say() {
    assert_eq!(times(&course("classes"), "await").count, 4);
    assert_eq!(ended(&course("own"), 2), course("own").end_ns);
}

#[test]
fn a_node_that_has_died_is_noticed_and_starts_anew() {
    let course = course("restart");
    let get = times(&course, "get");
    // The silence after which a link looks whether its peer is there: 3 s.
    close(get.most_ns / 1e9, 3.0, 0.1, "seconds until the death is noticed");
    assert_eq!(times(&course, "restart").count, 1);
}

#[test]
fn a_script_that_fails_says_where() {
    let cases = [
        (
            "waits",
            "node 0\n receive 5\nnode 5\n compute 1 us",
            ":2: node 0: `receive` waits for ever",
        ),
        (
            "alone",
            "node 0\n barrier\nnode 5\n repeat 2\n barrier\n end",
            ":5: node 5: `barrier` waits",
        ),
        (
            "expect",
            "region a 64 5\nnode 0\n put a 0 16 fill=1\n get a 0 32 expect=1",
            ":4: node 0: `get` brought 0 at byte 16, and 1 is expected",
        ),
        (
            "value",
            "region a 64 5\nnode 0\n fetch add a 0 1 expect=1",
            "brought 0, and 1 is expected",
        ),
        ("fault", "region a 64 5\nnode 0\n put a 64 8", ":3: node 0: `put` ended in a fault: "),
        ("well", "region a 64 5\nnode 0\n put a 0 8 ends=fault", "a fault is expected"),
        ("check", "region a 64 5\nnode 5\n check a 8 1", "found 0, and 1 is expected"),
        ("tag", "node 0\n send 5 8 tag=1\nnode 5\n receive 0 tag=2", "brought the tag 1, and 2"),
        ("alive", "node 0\n restart 5", "node 5 is alive"),
        ("dead", "node 0\n kill 5\n kill 5", ":3: node 0: `kill` node 5 is dead already"),
        ("outside", "region a 64 5\nnode 5\n wait a 64 0", "there is no word at offset 64"),
        ("late", "node 0\n repeat 1000\n compute 1 s\n end", "the simulated time is over"),
    ];
    for (name, text, expected) in cases {
        let note = note(name, text);
        assert!(note.contains(expected), "{name}: {note}");
    }
}

/// The text of a depot `d` at node 5 with one instruction, and statements of node 0.
fn depot(instruction: &str, statements: &str) -> String {
    format!("region a 64 5\ndepot d a\nassemble d entry; {instruction}\nnode 0\n{statements}")
}

#[test]
fn a_message_that_fails_says_where() {
    let call = |handler: &str, call: &str, serve: &str| {
        format!("handler h\n{handler}\nnode 0\n call 5 h {call}\nnode 5\n serve {serve}")
    };
    let cases = [
        (call("called 8 1 2", "8 1 3", "1"), ":2: node 5: `called` has other arguments"),
        (call("called 8 1", "0", "1"), "has fewer arguments"),
        (call("called 8", "2000", "1"), "brought 2000 B, and 8 are expected"),
        (call("called 8 expect=1", "8", "1"), "brought 0 at byte 0, and 1 is expected"),
        (call("compute 1 ns", "8", "2"), ":6: node 5: `serve` waits for ever"),
        (depot("decline if r0 >= r1", "deposit d 0 0"), ":5: node 0: `deposit` is declined"),
        (depot("r0 += r1", "deposit d 0 0 ends=declined"), "`deposit` is not declined"),
        (depot("r0 += operand; give r0", "deposit d 0 0 expect=8"), "brought 0, and 8 is expected"),
        (depot("r0 += r1", "node 5\nuntil d 0 1"), ":6: node 5: `until` waits for ever"),
        (depot("write [operand]", "deposit d 0 8 operand=60"), "`deposit` ended in a fault: "),
        (depot("write [r0]", "deposit d 0 8 ends=fault"), "a fault is expected"),
    ];
    for (number, (text, expected)) in cases.iter().enumerate() {
        let note = note(&format!("message-{number}"), text);
        assert!(note.contains(expected), "{text}: {note}");
    }
}

#[test]
fn a_text_that_is_no_script_says_in_which_line() {
    let cases = [
        ("", 1, "no node has a statement"),
        ("node 0\n putt", 2, "is `put` meant?"),
        ("node 0\n put", 2, "the statement is to be `put PLACE OFFSET LENGTH"),
        ("node 0\n\n put a 0 8", 3, "there is no region \"a\" up to this line"),
        ("region a 64 0\nregion a 64 0", 2, "\"a\" is no name that is free"),
        ("region a 2GiB 0", 1, "from 0 to 1073741824"),
        ("region a 8XB 0", 1, "`XB` is no unit of lengths"),
        ("barrier", 1, "`barrier` is a statement of nodes"),
        ("node 0\n together\n barrier\n end", 3, "`barrier` cannot be in `together`"),
        ("node 0\n together", 2, "`end` is missing"),
        ("node 0\n end", 2, "there is nothing to end"),
        ("node 0\n repeat 9999999\n repeat 9\n barrier\n end\n end", 6, "repetitions"),
        ("node 0\n send 5 2000", 2, "from 0 to 1024"),
        ("node 0\n send 5 8 tag=1 tag=2", 2, "the statement is to be `send"),
        ("node 0\n send 5 8 colour=1", 2, "the statement is to be `send"),
        ("node 0\n compute 3 parsecs", 2, "`parsecs` is no unit of time"),
        ("node 0\n call 5 h 8", 2, "there is no handler \"h\" up to this line"),
        ("handler h\n barrier", 2, "`barrier` cannot be in `handler`"),
        ("handler h\nnode 0\n called 8", 3, "only handlers have `called`"),
        ("handler h\nnode 0\n call source h 8", 3, "only handlers have `source`"),
        ("handler h\nnode 0\n call 5 h 8 1 2 3 4 5 6 7 8 9", 3, "the statement is to be `call"),
        ("handler h\nregion h 8 0", 2, "\"h\" is no name that is free"),
        ("depot d a", 1, "there is no region \"a\" up to this line"),
        ("region a 8 0\ndepot d a\nassemble d entry; write [r0", 3, "no instruction: "),
        ("region a 8 0\ndepot d a\nassemble d # nothing", 3, "the statement is to be `assemble"),
        ("assemble", 1, "the statement is to be `assemble"),
        ("region a 8 0\nnode 0\n put a 0 8 ends=declined", 3, "the statement is to be `put"),
        ("region a 8 0\ndepot d a\nnode 0\n deposit d 0 2000", 4, "from 0 to 1024"),
        ("region a 8 0\ndepot d a\nnode 0\n until d 256 1", 4, "from 0 to 255"),
        ("node 3..1\n barrier", 1, "from 3 to 1023"),
    ];
    for (text, line, expected) in cases {
        let error = Script::read("name", text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_script_for_more_nodes_is_refused_before_it_runs() {
    let read = |text| Script::read("name", text).expect("a script");
    let fault = |text, nodes| read(text).check(nodes).map_err(|error| error.fault);
    assert_eq!(fault("node 0\n send 5 8", 6), Ok(()));
    let few = ScriptFault::NoNode { node: 5, nodes: 5 };
    assert_eq!(fault("node 0\n send 5 8", 5), Err(few.clone()));
    assert_eq!(fault("region a 8 5\nnode 0\n barrier", 5), Err(few));
    let text = "region a 8 all\nnode 0\n get a@9 0 8";
    assert!(matches!(fault(text, 8), Err(ScriptFault::NotThere { .. })));
    let text = "region a 8 1..2\nnode 0\n get a 0 8";
    assert!(matches!(fault(text, 8), Err(ScriptFault::SeveralHomes(_))));
    let text = "region a 8 1\nnode 0\n wait a 0 8";
    assert!(matches!(fault(text, 8), Err(ScriptFault::NotOwn { .. })));
}

#[test]
fn a_script_has_one_course() {
    assert_eq!(course("lock"), course("lock"));
}

/// Words of which statements are made.
fn word() -> impl Strategy<Value = String> {
    let words = "region queue depot assemble register until deposit handler node call called serve \
        put get atomic add together repeat batch end send receive barrier broadcast allreduce scan \
        gather alltoall sum a b d h all self source next 0 1 2 7 8 64 4KiB root=1 schedule=tree \
        fill=1 expect=0 ends=fault ends=declined notify=requester x=1 entry; r0 += r1; give \
        operand";
    select(words.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned)
}

proptest! {
    /// No text makes the reader panic, and those that it takes can be checked.
    #[test]
    fn no_statements_make_the_reader_panic(lines in vec(vec(word(), 1..6), 1..12)) {
        let lines: Vec<_> = lines.iter().map(|words| words.join(" ")).collect();
        let begin = "region a 64 0..3\ndepot d a\nhandler h\n call self h 8\nnode 0..2\n";
        for text in [lines.join("\n"), format!("{begin}{}", lines.join("\n"))] {
            _ = Script::read("name", &text).map(|script| script.check(8));
        }
    }
}

//! Texts that are no schedules: each has an error that names the line.
use super::draw;
use ayre_sim::goal::{LogGops, Pattern, RunError, Schedule, run};
use proptest::prelude::*;

fn error(text: &str) -> String {
    Schedule::read(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn errors_name_the_line_and_what_should_stand_there() {
    let cases = [
        ("", "line 1: expected \"num_ranks\", and there is the end of the text"),
        ("rank 0 {\n}", "line 1: expected \"num_ranks\", and there is \"rank\""),
        ("num_ranks 0", "line 1: expected at least one rank, and there is \"0\""),
        ("num_ranks 5000000", "line 1: num_ranks is 5000000, and the limit is 4194304"),
        ("num_ranks x", "line 1: expected the number of ranks, and there is \"x\""),
        ("num_ranks 1\nnum_ranks 1", "line 2: expected \"rank\", and there is \"num_ranks\""),
        ("num_ranks 2\nrank 0 {\n}", "rank 1 is missing: num_ranks is 2"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}", "line 4: rank 0 has been described before"),
        ("num_ranks 1\nrank 1 {\n}", "line 2: there is no rank 1: num_ranks is 1"),
        ("num_ranks 1\nrank 0\n{\n}", "line 2: expected \"{\", and there is the end of the line"),
        (
            "num_ranks 1\nrank 0 {\ncalc 1\n",
            "line 4: expected \"}\", and there is the end of the text",
        ),
        (
            "num_ranks 1\n/* rank 0 {\n}",
            "line 4: expected \"*/\", and there is the end of the text",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn errors_in_operations_name_the_line_too() {
    let cases = [
        ("send 8 to 0", "expected \"b\", and there is \"to\""),
        ("send 8b from 0", "expected \"to\", and there is \"from\""),
        ("recv 8b to 0", "expected \"from\", and there is \"to\""),
        ("send 8b to 1", "there is no rank 1: num_ranks is 1"),
        ("send 8b to -1", "expected the number of a rank, and there is \"-\""),
        ("recv 8b from -2", "expected the number of a rank or -1, and there is \"2\""),
        ("send 8b to 0 tag 4294967295", "the tag is 4294967295, and the limit is 4294967294"),
        ("send 8b to 0 cpu 256", "the CPU is 256, and the limit is 255"),
        ("send 8b to 0 nic 256", "the interface is 256, and the limit is 255"),
        ("send 1099511627777b to 0", "the size is 1099511627777, and the limit is 1099511627776"),
        (
            "calc 99999999999999999999999",
            "the time is 18446744073709551615, and the limit is 1125899906842624",
        ),
        ("calc 1 nic 0", "expected \"cpu\" or the end of the line, and there is \"nic\""),
        ("calc 1 }", "expected \"cpu\" or the end of the line, and there is \"}\""),
        ("calc -1", "expected a number, and there is \"-\""),
        ("a: b: calc 1", "expected \"send\", \"recv\" or \"calc\", and there is \"b\""),
        ("a calc 1", "expected \":\", \"requires\" or \"irequires\", and there is \"calc\""),
        ("a requires a", "the label a is not defined above"),
        ("\u{e9}", "expected an operation, a label or \"}\", and there is \"\\xc3\""),
    ];
    for (operation, expected) in cases {
        let text = format!("num_ranks 1\nrank 0 {{\n{operation}\n}}\n");
        assert_eq!(error(&text), format!("line 3: {expected}"), "{operation}");
    }
    let text = |line: &str| format!("num_ranks 1\nrank 0 {{\na: calc 1\nb: calc 1\n{line}\n}}\n");
    assert_eq!(error(&text("a: calc 2")), "line 5: the label a is defined twice in this rank");
    assert_eq!(error(&text("a requires 5")), "line 5: expected a label, and there is \"5\"");
    let long = format!("a requires b {}", " ".repeat(5_000));
    assert_eq!(error(&text(&long)), "line 5 is longer than 4096 bytes");
    let ring = error(&text("a requires b\nb irequires a"));
    assert!(ring.ends_with("of rank 0 wait for each other"), "{ring}");
    assert!(ring.contains("lines 3 and 4") || ring.contains("lines 4 and 3"), "{ring}");
}

#[test]
fn a_ring_is_found_behind_operations_that_wait_for_it() {
    let operations: String = (0..100).map(|n| format!("l{n}: calc 1\n")).collect();
    let chain: String = (0..99).map(|n| format!("l{n} requires l{}\n", n + 1)).collect();
    let text = format!("num_ranks 1\nrank 0 {{\n{operations}{chain}l99 requires l98\n}}\n");
    let ring = error(&text);
    assert!(ring.contains("lines 101 and 102") || ring.contains("lines 102 and 101"), "{ring}");
}

#[test]
fn comments_and_spaces_may_stand_anywhere() {
    let text = "/* two\n ranks */ num_ranks 2 // here\r\n\trank 1 { /* none */ }\nrank 0 {\n\
        a :calc 5 cpu 1 // five\n b: /* a */ recv 8 b from -1 tag -1 nic 1\n\
        b irequires a\n b requires a /* again\n */ send 1b to 0\n}";
    let schedule = Schedule::read(text.as_bytes()).unwrap();
    assert_eq!((schedule.ranks(), schedule.requirements()), (2, 2));
    let lines: Vec<_> = schedule.operations().iter().map(|operation| operation.line).collect();
    assert_eq!(lines, [5, 6, 9]);
}

#[test]
fn whatever_waits_for_ever_is_named() {
    let text = |zero: &str, one: &str| {
        format!("num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n{one}\n}}\n")
    };
    let fault = |text: &str| {
        let schedule = Schedule::read(text.as_bytes()).unwrap();
        run(&schedule, &LogGops::LOGGOPSIM, true).unwrap_err()
    };
    let stuck = fault(&text("calc 5", "recv 8b from 0 tag 1"));
    assert_eq!(stuck, RunError::Stuck { line: 6, rank: 1 });
    let stuck = fault(&text("send 8b to 1 tag 0", "recv 8b from 0 tag 1"));
    assert_eq!(stuck, RunError::Stuck { line: 6, rank: 1 });
    let stuck = fault(&text("send 70000b to 1 tag 0", "calc 1"));
    assert_eq!(stuck, RunError::Stuck { line: 3, rank: 0 });
    let unreceived = fault(&text("send 8b to 1 tag 0", "calc 1"));
    assert_eq!(unreceived, RunError::Unreceived { line: 3, rank: 0 });
    let operations: String = (0..10).map(|_| format!("calc {}\n", 1_u64 << 50)).collect();
    let long = fault(&text("", &operations));
    assert!(matches!(long, RunError::TooLong { .. }), "{long}");
}

/// Reads, and runs what can be read: neither may panic or hang.
fn try_to_run(text: &[u8]) {
    if let Ok(schedule) = Schedule::read(text) {
        let _ = run(&schedule, &LogGops::LOGGOPSIM, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// A text that is cut, or has bytes changed, gives a schedule or an error.
    #[test]
    fn damaged_texts_do_no_harm(
        seed: u64,
        cut: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut text = draw::schedule(seed, false).unwrap().into_bytes();
        for (place, byte) in changes {
            let place = place.index(text.len());
            text[place] = byte;
        }
        try_to_run(&text);
        try_to_run(&text[..cut.index(text.len())]);
    }

    /// A text that is cut within a rank, or before the last one, is an error.
    #[test]
    fn cut_texts_are_errors(ranks in 2_u32..20, cut: prop::sample::Index) {
        let mut text = String::new();
        Pattern::Dissemination.write(ranks, 8, &mut text).unwrap();
        let whole = text.trim_end().len();
        prop_assert!(Schedule::read(&text.as_bytes()[..cut.index(whole)]).is_err());
    }
}

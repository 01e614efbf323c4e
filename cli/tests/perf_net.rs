//! `ayre perf --net` as a program sees it: every operation over the network, beside a limit.

use std::process::{Command, Output};

use serde_json::Value;

fn perf(arguments: &[&str]) -> Output {
    let quick = ["perf", "--net", "--json", "--quick", "--reps", "1"];
    Command::new(env!("CARGO_BIN_EXE_ayre")).args(quick).args(arguments).output().unwrap()
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = perf(arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks the figures of a row and tells what was measured: operation, path, size and limit.
fn measured(row: &Value) -> (&str, &str, u64, &str) {
    for field in ["value", "raw", "ratio", "iterations", "samples", "max_ns"] {
        let value = row[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {row}"));
        assert!(value.is_finite() && value > 0.0, "{field} in {row}");
    }
    let word = |field: &str| row[field].as_str().unwrap();
    (word("op"), word("path"), row["size"].as_u64().unwrap(), word("raw_op"))
}

/// The operations of one word, each with its limit.
const WORDS: &[(&str, &str)] = &[
    ("message-latency", "raw-udp-polling"),
    ("put-notify-latency", "raw-udp-polling"),
    ("message-wait-latency", "raw-udp-waiting"),
    ("put-notify-wait-latency", "raw-udp-waiting"),
    ("message-rate", "raw-udp-stream"),
    ("fetch-add-latency", "raw-udp-polling"),
];

fn every_operation_is_beside_its_limit(between: &str) {
    let rows = rows(&["--between", between]);
    let rows: Vec<_> = rows.iter().map(measured).collect();
    for path in ["plain", "sealed"] {
        for &(op, limit) in WORDS {
            assert!(rows.contains(&(op, path, 8, limit)), "{path} {op} is missing: {rows:?}");
        }
        for size in [4 << 10, 64 << 10, 1 << 20] {
            let put = ("put-bandwidth", path, size, "raw-tcp-stream");
            assert!(rows.contains(&put), "{put:?} is missing: {rows:?}");
        }
    }
    for limit in ["raw-udp-polling", "raw-udp-waiting", "raw-udp-stream"] {
        assert!(rows.contains(&(limit, "raw", 8, limit)), "{limit} is missing: {rows:?}");
    }
}

#[test]
fn every_operation_is_measured() {
    every_operation_is_beside_its_limit("127.0.0.1,127.0.0.2");
}

#[test]
fn operations_and_sizes_can_be_chosen() {
    let rows = rows(&["--op", "put-bandwidth", "--size", "8K"]);
    let rows: Vec<_> = rows.iter().map(measured).collect();
    let (op, limit) = ("put-bandwidth", "raw-tcp-stream");
    assert_eq!(rows, [(op, "plain", 8192, limit), (op, "sealed", 8192, limit)]);
}

/// Goodput under losses is told beside what is left without them, and what going back would leave.
#[test]
fn losses_and_cuts_are_measured() {
    let rows = rows(&["--op", "loss,cut"]);
    let rows: Vec<_> = rows.iter().map(measured).collect();
    let mut expected = Vec::new();
    for path in ["0.1%", "1%", "5%", "20%"] {
        let of = |op, limit| (op, path, 64 << 10, limit);
        expected.extend([of("loss-goodput", "lossless"), of("loss-go-back-n", "lossless")]);
        expected.push(of("loss-transmissions", "least"));
    }
    expected.push(("cut-first-byte", "100ms", 8, "round-trip"));
    assert_eq!(rows, expected);
}

#[test]
fn impossible_wishes_are_refused() {
    for wish in [
        ["--between", "127.0.0.1"],
        ["--between", "127.0.0.1,nowhere"],
        ["--netns", "one"],
        ["--netns", "/nowhere/at/all,/nowhere/else"],
        ["--procs", "4"],
        ["--mode", "direct"],
    ] {
        let output = perf(&wish);
        assert!(!output.status.success(), "{wish:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn the_network_has_to_be_asked_for() {
    let arguments = ["perf", "--between", "127.0.0.1,127.0.0.1"];
    let output = Command::new(env!("CARGO_BIN_EXE_ayre")).args(arguments).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}

//! `ayre perf` as a program sees it: one JSON object a line, with the promised fields.

use std::process::{Command, Output};

use serde_json::Value;

fn perf(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ayre")).arg("perf").args(arguments).output().unwrap()
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = perf(arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn positive(row: &Value, field: &str) -> f64 {
    let value = row[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {row}"));
    assert!(value.is_finite() && value > 0.0, "{field} in {row}");
    value
}

#[test]
fn every_limit_is_reported_with_all_fields() {
    let rows = rows(&["--quick", "--reps", "3", "--op", "raw", "--size", "8,64,4K", "--json"]);
    for row in &rows {
        assert_eq!(row["path"], "raw");
        assert_eq!(row["raw_op"], row["op"]);
        let unit = match row["metric"].as_str().unwrap() {
            "latency" => "ns",
            "rate" => "Mop/s",
            "bandwidth" => "GB/s",
            other => panic!("metric {other}"),
        };
        assert_eq!(row["unit"], unit);
        assert_eq!(row["repetitions"], 3);
        assert_eq!(positive(row, "ratio"), 1.0);
        assert_eq!(positive(row, "value"), positive(row, "raw"));
        for field in ["size", "iterations", "samples", "max_ns"] {
            positive(row, field);
        }
        // Single operations may be shorter than the clock can tell, but they are ordered.
        let percentiles = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
        let times = percentiles.map(|field| row[field].as_f64().unwrap());
        assert!(times.is_sorted() && times[0] >= 0.0, "{row}");
    }
    for op in
        ["raw-pingpong", "raw-put", "raw-ring", "raw-memcpy", "raw-atomic", "raw-load", "raw-wake"]
    {
        assert!(rows.iter().any(|row| row["op"] == op), "{op} is missing");
    }
}

/// Every operation, in both modes.
const OPERATIONS: &[&str] = &[
    "message-latency",
    "put-notify-latency",
    "put-latency",
    "immediate-put-latency",
    "notification-put-latency",
    "queue-latency",
    "barrier-latency",
    "get-latency",
    "fetch-add-latency",
    "compare-swap-latency",
    "fcaa-latency",
    "active-latency",
    "active-long-latency",
    "active-long-call-latency",
    "active-rate",
    "active-bandwidth",
    "group-barrier-latency",
    "allreduce-latency",
    "message-rate",
    "message-rate-two-way",
    "put-notify-rate",
    "queue-rate",
    "atomic-rate",
    "put-rate",
    "append-rate",
    "append-shared-rate",
    "put-bandwidth",
    "put-region-bandwidth",
    "get-bandwidth",
    "message-bandwidth",
    "poll-messages-1",
    "poll-messages-64",
    "poll-notifications-1",
    "poll-notifications-64",
    "wake-latency",
];

/// Measures all operations in a mode and returns their rows, whose figures have been checked.
fn operations(mode: &str) -> Vec<Value> {
    let wish = match mode {
        "direct" => "latency,contended,rate,bandwidth,poll",
        _ => "latency,rate,bandwidth,poll",
    };
    let mut rows = rows(&["--quick", "--reps", "1", "--mode", mode, "--op", wish, "--json"]);
    rows.retain(|row| row["path"] != "raw");
    for row in &rows {
        for field in ["value", "raw", "ratio", "iterations", "samples", "max_ns"] {
            positive(row, field);
        }
        assert!(row["path"] == mode || row["path"] == "loopback", "{row}");
        assert!(row["raw_op"].as_str().unwrap().starts_with("raw-"), "{row}");
    }
    rows
}

fn is_of(row: &Value, op: &str, path: &str) -> bool {
    row["op"] == op && row["path"] == path
}

#[test]
fn every_operation_is_measured_direct() {
    let rows = operations("direct");
    for op in OPERATIONS.iter().chain(&["fetch-add-contended"]) {
        assert!(rows.iter().any(|row| is_of(row, op, "direct")), "{op} is missing");
    }
    for op in ["message-latency", "put-notify-latency", "fetch-add-latency"] {
        assert!(rows.iter().any(|row| is_of(row, op, "loopback")), "{op} is missing");
    }
}

#[test]
fn every_operation_is_measured_mediated() {
    let rows = operations("mediated");
    for op in OPERATIONS {
        assert!(rows.iter().any(|row| is_of(row, op, "mediated")), "{op} is missing");
    }
}

#[test]
fn one_two_and_four_producers_share_a_queue() {
    let rows = rows(&["--quick", "--reps", "1", "--op", "queue-rate", "--size", "8", "--json"]);
    let ranks: Vec<_> = rows.iter().map(|row| row["ranks"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [2, 3, 5]);
    assert!(rows.iter().all(|row| positive(row, "value") > 0.0 && row["op"] == "queue-rate"));
}

#[test]
fn one_to_eight_senders_share_a_ring() {
    let op = "append-shared-rate";
    for mode in ["direct", "mediated"] {
        let rows =
            rows(&["--quick", "--reps", "1", "--op", op, "--size", "32", "--mode", mode, "--json"]);
        let ranks: Vec<_> = rows.iter().map(|row| row["ranks"].as_u64().unwrap()).collect();
        assert_eq!(ranks, [2, 3, 5, 9]);
        assert!(rows.iter().all(|row| positive(row, "value") > 0.0 && row["op"] == op));
    }
}

#[test]
fn many_processes_are_measured_beside_two() {
    for mode in ["direct", "mediated"] {
        let rows = rows(&["--procs", "5", "--quick", "--reps", "1", "--mode", mode, "--json"]);
        for op in ["barrier-latency", "ring-latency", "all-to-all-latency"] {
            let of_op = rows.iter().filter(|row| is_of(row, op, mode));
            let ranks: Vec<_> = of_op.map(|row| row["ranks"].as_u64().unwrap()).collect();
            assert_eq!(ranks, [2, 5], "{op}");
        }
        for row in &rows {
            assert!(positive(row, "cores") <= positive(row, "ranks"), "{row}");
            positive(row, "value");
        }
    }
}

#[test]
fn operations_and_sizes_can_be_chosen() {
    let rows = rows(&[
        "--quick",
        "--reps",
        "1",
        "--op",
        "raw-put,raw-atomic",
        "--size",
        "24,1K",
        "--json",
    ]);
    let seen: Vec<_> = rows.iter().map(|row| (&row["op"], row["size"].as_u64().unwrap())).collect();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.iter().all(|(op, _)| *op == "raw-put"), "{seen:?}");
    assert_eq!([seen[0].1, seen[1].1], [24, 1024]);
}

#[test]
fn the_table_has_a_line_for_each_figure() {
    let output = perf(&["--quick", "--reps", "1", "--op", "raw-atomic", "--size", "8"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("op ") && lines[0].contains("ratio"), "{text}");
    assert!(lines[1].starts_with("raw-atomic "), "{text}");
}

#[test]
fn impossible_wishes_are_refused() {
    for wish in [
        ["--bind", "0,1023"],
        ["--procs", "1"],
        ["--procs", "65"],
        ["--reps", "0"],
        ["--size", "big"],
    ] {
        let output = perf(&["--json", wish[0], wish[1]]);
        assert!(!output.status.success(), "{wish:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn an_option_that_selects_no_measurement_is_refused() {
    for (wish, expected) in [
        (&["--op", "nothing-of-this-name"][..], "is called `nothing-of-this-name`; there are\n"),
        (&["--net", "--op", "active-bandwidth"], "`active-bandwidth` is not measured so, but by"),
        (&["--op", "raw-atomic", "--size", "24"], "is measured at these sizes"),
    ] {
        let output = perf(&[&["--json", "--quick", "--reps", "1"], wish].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn all_that_is_measured_is_listed() {
    let output = perf(&["--list"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for name in OPERATIONS.iter().chain(&["fetch-add-contended", "raw-put", "loss-goodput"]) {
        assert!(text.contains(&format!("\n  {name}\n")), "{name} is missing");
    }
}

//! Patterns with a known time, in nanoseconds exactly.
use super::read;
use ayre_sim::goal::{LogGops, Pattern, Report, Step, StepKind, run};
use ayre_sim::time::Time;

fn report(pattern: &Pattern, ranks: u32, bytes: u64, model: &LogGops) -> Report {
    let mut text = String::new();
    pattern.write(ranks, bytes, &mut text).unwrap();
    run(&read(&text), model, true).unwrap()
}

fn end(pattern: &Pattern, ranks: u32, bytes: u64) -> u64 {
    let end = report(pattern, ranks, bytes, &LogGops::LOGGOPSIM).end();
    assert_eq!(end.0 % 1_000, 0);
    end.0 / 1_000
}

/// A message from a send to the end of its receive: L + 2 o + (k - 1) G.
fn message(bytes: u64) -> u64 {
    2_500 + 2 * 1_500 + (bytes - 1) * 6
}

#[test]
fn dissemination_takes_a_message_in_each_round() {
    // Published by LogGOPSim for messages of 8 bytes.
    assert_eq!(end(&Pattern::Dissemination, 1_024, 8), 55_420);
    assert_eq!(end(&Pattern::Dissemination, 4_096, 8), 66_504);
    for (ranks, rounds) in [(2, 1), (3, 2), (4, 2), (5, 3), (1_000, 10), (1_025, 11)] {
        assert_eq!(end(&Pattern::Dissemination, ranks, 100), rounds * message(100));
    }
    let events = report(&Pattern::Dissemination, 4_096, 8, &LogGops::LOGGOPSIM).events;
    assert_eq!(events, 147_456, "LogGOPSim counts as many");
}

#[test]
fn a_broadcast_takes_a_message_in_each_round() {
    for (ranks, rounds) in [(2, 1), (4, 2), (64, 6), (1_024, 10)] {
        assert_eq!(end(&Pattern::Broadcast, ranks, 8), rounds * message(8));
    }
}

#[test]
fn recursive_doubling_takes_a_message_in_each_round() {
    for (ranks, rounds) in [(2, 1), (16, 4), (256, 8)] {
        assert_eq!(end(&Pattern::Doubling, ranks, 4_096), rounds * message(4_096));
    }
}

#[test]
fn a_ring_takes_a_message_in_each_of_two_times_all_but_one() {
    for ranks in [2, 3, 7, 64] {
        let bytes = 1_000 * u64::from(ranks);
        let steps = 2 * (u64::from(ranks) - 1);
        assert_eq!(end(&Pattern::Ring, ranks, bytes), steps * message(1_000));
    }
}

#[test]
fn an_exchange_with_many_is_the_work_of_the_cpu() {
    // Sends come first, o apart, since g + (k - 1) G is less. When they are done, messages are
    // there without a break: each takes o for the send and o + (k - 1) G for the receive.
    for ranks in [4, 5, 64, 300] {
        let each = 2 * 1_500 + 7 * 6;
        assert_eq!(end(&Pattern::AllToAll, ranks, 8), u64::from(ranks - 1) * each);
    }
    for sides in [vec![4, 4], vec![2, 3, 4], vec![2, 2], vec![3, 3, 3, 3]] {
        let ranks = sides.iter().product();
        let neighbours = 2 * sides.len() as u64;
        let each = 2 * 1_500 + 7 * 6;
        assert_eq!(end(&Pattern::Halo { sides }, ranks, 8), neighbours * each);
    }
}

#[test]
fn messages_in_a_row_are_a_gap_apart() {
    // o + (n - 1) max(g, o) + L + o, where an interface's gap and not the CPU is the limit.
    let mut text = "num_ranks 2\nrank 0 {\n".to_owned();
    text += &"send 1b to 1 tag 0\n".repeat(10);
    text += "}\nrank 1 {\n";
    text += &"recv 1b from 0 tag 0\n".repeat(10);
    text += "}\n";
    let mut model = LogGops::LOGGOPSIM;
    model.hosts.gap = Time::from_nanos(5_000);
    let report = run(&read(&text), &model, true).unwrap();
    assert_eq!(report.end(), Time::from_nanos(1_500 + 9 * 5_000 + 2_500 + 1_500));
    // Both interfaces have the gap: the path changes from one to the other with some message.
    assert_eq!(report.path.len(), 11);
    assert_eq!(report.path[0].kind, StepKind::Send);
    assert_eq!(report.path[10].kind, StepKind::Arrival);
    let apart = |steps: &[Step]| (steps[1].at - steps[0].at).0 / 1_000;
    let mut spans: Vec<_> = report.path.windows(2).map(apart).collect();
    spans.sort_unstable();
    assert_eq!(spans, [vec![1_500 + 2_500], vec![5_000; 9]].concat());
}

#[test]
fn a_long_message_ends_when_it_is_received() {
    let text = "num_ranks 2
        rank 0 {
          s: send 100000b to 1 tag 3
          c: calc 100
          c requires s
        }
        rank 1 {
          c: calc 1000000
          r: recv 100000b from 0 tag 3
          r requires c
        }";
    let report = run(&read(text), &LogGops::LOGGOPSIM, true).unwrap();
    // The message arrives at 4 us and takes the CPU then, if that is free: after the computation.
    let received = 1_000_000;
    let end = received + 1_500 + 99_999 * 6;
    assert_eq!(report.finish, [Time::from_nanos(received + 100), Time::from_nanos(end)]);
}

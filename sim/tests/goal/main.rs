//! Schedules in the LogGOPS model: closed forms, LogGOPSim's algorithm, and faulty texts.
mod draw;
mod forms;
mod packets;
mod reference;
mod texts;

use ayre_sim::goal::{LogGops, Schedule, Start, run};
use ayre_sim::time::Time;
use proptest::prelude::*;

fn read(text: &str) -> Schedule {
    Schedule::read(text.as_bytes()).expect("a sound schedule")
}

/// The model with the parameters of the first line.
fn model_of(text: &str) -> LogGops {
    let mut values =
        text.lines().next().unwrap().split(' ').filter_map(|word| {
            word.split_once('=').map(|(_, value)| value.parse::<u64>().unwrap())
        });
    let mut time = || Time::from_nanos(values.next().unwrap());
    let mut model = LogGops::LOGGOPSIM;
    model.latency = time();
    model.hosts.overhead = time();
    model.hosts.gap = time();
    model.gap_per_byte = time();
    model.hosts.overhead_per_byte = time();
    model.hosts.eager = values.next().unwrap();
    model
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Every rank of every schedule finishes when LogGOPSim's algorithm says, with several CPUs and
    /// interfaces, wildcards and rendezvous.
    #[test]
    fn ranks_finish_when_the_reference_says(seed: u64) {
        let text = draw::schedule(seed, false).unwrap();
        let model = model_of(&text);
        let ours = run(&read(&text), &model, true);
        match reference::run(&text, &model) {
            Some((finish, events)) => {
                let ours = ours.unwrap();
                let times: Vec<u64> = ours.finish.iter().map(|at| at.0).collect();
                prop_assert_eq!(times, finish);
                prop_assert_eq!(ours.events, events);
            }
            None => prop_assert!(ours.is_err()),
        }
    }

    /// With one CPU, whatever runs before an operation has ended when that begins.
    #[test]
    fn one_cpu_needs_no_rule_for_the_start(seed: u64) {
        let text = draw::schedule(seed, false).unwrap();
        prop_assume!(!text.contains("cpu 1") && !text.contains("cpu 2"));
        let mut model = model_of(&text);
        let schedule = read(&text);
        let first = run(&schedule, &model, true);
        model.hosts.start = Start::WhenEnded;
        prop_assert_eq!(first, run(&schedule, &model, true));
    }

    /// The critical path begins at time zero, goes forward, and ends on the rank that is last. A
    /// long message, however, can be all that its sender waited for.
    #[test]
    fn the_critical_path_leads_from_the_beginning_to_the_end(seed: u64) {
        let text = draw::schedule(seed, false).unwrap();
        let mut model = model_of(&text);
        model.hosts.start = Start::WhenEnded;
        model.hosts.eager = u64::MAX;
        let Ok(report) = run(&read(&text), &model, true) else { return Ok(()) };
        prop_assume!(report.end() > Time::ZERO);
        prop_assert_eq!(report.path[0].at, Time::ZERO);
        prop_assert!(report.path.is_sorted_by_key(|step| step.at));
        prop_assert_eq!(report.path.last().unwrap().rank, report.last_rank());
    }
}

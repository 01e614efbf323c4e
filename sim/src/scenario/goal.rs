//! Schedules as the work of a scenario.
use crate::goal::{self, LogGops, Packets, Report, RunError, Schedule, StepKind};
use crate::network::{Network, Outcome, Record};
use crate::report::{Replica, Timeline};
use crate::stats::Tally;
use crate::time::Time;
use std::sync::Arc;

/// A schedule and its hosts.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The operations of each rank.
    pub schedule: Arc<Schedule>,
    /// The times of hosts, and those of messages in the LogGOPS model.
    pub model: LogGops,
    /// How messages become packets; nothing, if they have the times of the model.
    pub packets: Option<Packets>,
}

impl Goal {
    /// Runs the schedule in the LogGOPS model, or over a network and with a record, if these are
    /// given.
    pub(super) fn run(&self, network: Option<Network>, record: Option<Record>) -> Replica {
        let Self { schedule, model, packets } = self;
        let (Some(packets), Some(mut network)) = (packets, network) else {
            let ended = goal::run(schedule, model, true);
            return replica(ended, None);
        };
        network.stop_sources();
        if let Some(record) = record {
            network.record(record);
        }
        let ended = goal::run_over(schedule, &model.hosts, *packets, &mut network, true);
        replica(ended, Some(network))
    }
}

/// The results of a run, and of the network if there was one.
fn replica(ended: Result<Report, RunError>, mut network: Option<Network>) -> Replica {
    let span = ended.as_ref().map(Report::end).unwrap_or_default();
    let outcome = match &ended {
        Ok(_) => Outcome::Measured,
        Err(RunError::Deadlocked(_)) => Outcome::Deadlocked,
        Err(_) => Outcome::Drained,
    };
    let tally = network.as_ref().map_or_else(Tally::default, |network| network.tally().clone());
    Replica {
        outcome: Some(outcome),
        course: network.as_ref().map_or(span.0, Network::course),
        made: network.as_ref().map_or(0, Network::bytes_made),
        span: if span == Time::ZERO { tally.span() } else { span },
        backlog: [0; 3],
        packets_made: network.as_ref().map_or(0, Network::made),
        record: network.as_mut().and_then(Network::take_record),
        saturation: None,
        script: None,
        timeline: Some(ended.map(|report| timeline(&report)).map_err(|error| error.to_string())),
        tally,
        interface: None,
    }
}

/// The time of the critical path by its kinds of steps: a step lasts until the next one begins.
fn timeline(report: &Report) -> Timeline {
    let ends = report.path.iter().skip(1).map(|step| step.at).chain([report.end()]);
    let of = |kind| {
        let steps = report.path.iter().zip(ends.clone()).filter(|(step, _)| step.kind == kind);
        Time(steps.map(|(step, end)| (end - step.at).0).sum())
    };
    let path = [
        ("computing", of(StepKind::Calc)),
        ("sending and in the network", of(StepKind::Send)),
        ("receiving", Time(of(StepKind::Receive).0 + of(StepKind::Arrival).0)),
    ];
    Timeline { end: report.end(), events: report.events, path }
}

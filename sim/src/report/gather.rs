//! From the results of replicas to those of a point.
use super::layout::layout;
use super::{
    Bin, Course, Estimate, Interface, LinkLoad, Links, Parts, Point, Queue, Queues, Schedule,
    Verdict, Window,
};
use crate::link::LinkTiming;
use crate::network::{self, Outcome, Record};
use crate::stats::{Interval, Tally, student};
use crate::time::Time;
use crate::topology::Topology;
use hdrhistogram::Histogram;

/// The results of a replica.
#[derive(Debug)]
pub(crate) struct Replica {
    /// How it ended; nothing, if it was stopped.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) tally: Tally,
    /// A fingerprint of its course.
    pub(crate) course: u64,
    /// Bytes that nodes have made while it was measured.
    pub(crate) made: u128,
    /// For how long it was measured.
    pub(crate) span: Time,
    /// Packets on their way at the beginning, in the middle and at the end.
    pub(crate) backlog: [usize; 3],
    /// Packets that were made while it was measured.
    pub(crate) packets_made: u64,
    pub(crate) record: Option<Record>,
    /// The greatest load that was carried, if it was looked for.
    pub(crate) saturation: Option<f64>,
    /// The course of the schedule, if there was one, or the reason that it did not end.
    pub(crate) timeline: Option<Result<Timeline, String>>,
    /// The operation of a single interface, if that was all.
    pub(crate) interface: Option<Interface>,
    /// The course of the script, if there was one, or the reason that it did not end.
    pub(crate) script: Option<Result<Course, String>>,
}

impl Replica {
    /// Of an interface without a network.
    pub(crate) fn of_interface(interface: Interface) -> Self {
        Self {
            outcome: Some(Outcome::Measured),
            tally: Tally::default(),
            course: interface.latency_ps,
            made: 0,
            span: Time(interface.latency_ps),
            backlog: [0; 3],
            packets_made: 0,
            record: None,
            saturation: None,
            timeline: None,
            script: None,
            interface: Some(interface),
        }
    }
}

/// The course of a schedule.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) end: Time,
    pub(crate) events: u64,
    /// The time of the critical path by what was done.
    pub(crate) path: [(&'static str, Time); 3],
}

/// Shares of packets whose delay is told.
const SHARES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
/// Bins of a histogram.
const BINS: u64 = 50;
/// The share of packets that a histogram shows.
const SHOWN: f64 = 0.999;
/// Links between routers that a drawing can show.
const LINKS_MAX: usize = 2048;
/// The growth of the backlog, as a share of the packets made, from where on it is more than chance.
const GROWTH: f64 = 0.01;

/// The results of all replicas of a point. Its settings are the caller's.
pub(crate) fn gather(replicas: &[Replica], topology: &Topology, link: &LinkTiming) -> Point {
    let measured: Vec<_> =
        replicas.iter().filter(|replica| replica.tally.delivered() > 0).collect();
    let rate = |bytes: u128, span: Time| {
        let node = bytes as f64 / topology.nodes.len() as f64;
        node * link.phit.0 as f64 / f64::from(link.width) / span.0.max(1) as f64
    };
    let offered = over(measured.iter().map(|replica| rate(replica.made, replica.span)));
    let accepted = over(measured.iter().map(|replica| rate(replica.tally.bytes(), replica.span)));
    let delay = match measured[..] {
        [only] => nanos(only.tally.delay()).into(),
        _ => over(measured.iter().map(|replica| nanos(replica.tally.delay()).mean)),
    };
    let histogram = all_delays(&measured);
    let packets = measured.iter().map(|replica| replica.tally.delivered()).sum::<u64>();
    let hops = measured
        .iter()
        .map(|replica| replica.tally.mean_hops() * replica.tally.delivered() as f64)
        .sum::<f64>();
    let (verdict, mut notes) = verdict(replicas, &measured);
    let loads: Vec<_> = replicas.iter().filter_map(|replica| replica.saturation).collect();
    let saturation = (!loads.is_empty()).then(|| over(loads.into_iter()));
    if let Some(Estimate { mean, half_width }) = saturation {
        notes.push(format!(
            "the greatest load that the network carries is {:.1} % +- {:.1} %",
            100.0 * mean,
            100.0 * half_width
        ));
    }
    let record = replicas.first().and_then(|first| Some((first.record.as_ref()?, first.span)));
    let (links, queues, windows) = record
        .map(|(record, span)| {
            (links(record, span, topology), queues(record), windows(record, topology))
        })
        .unwrap_or_default();
    Point {
        swept: vec![],
        settings: vec![],
        verdict,
        saturation,
        schedule: schedule(replicas),
        interface: replicas.iter().find_map(|replica| replica.interface.clone()),
        script: replicas.first().and_then(|first| first.script.as_ref()?.as_ref().ok().cloned()),
        notes,
        replicas: measured.len() as u32,
        packets,
        delay_ns: delay,
        percentiles_ns: percentiles(&histogram),
        histogram: bins(&histogram),
        offered,
        accepted,
        gigabits: accepted.mean * f64::from(link.width) * 8e3 / link.phit.0 as f64,
        hops: hops / packets.max(1) as f64,
        parts: parts(&measured),
        links,
        queues,
        windows,
        course: replicas.iter().fold(0_u64, |all, replica| all.rotate_left(1) ^ replica.course),
    }
}

fn nanos(Interval { mean, half_width }: Interval) -> Interval {
    Interval { mean: mean / 1e3, half_width: half_width / 1e3 }
}

fn schedule(replicas: &[Replica]) -> Option<Schedule> {
    let ends = replicas.iter().filter_map(|replica| replica.timeline.as_ref()?.as_ref().ok());
    let first = ends.clone().next()?;
    let nanos = |time: Time| time.0 as f64 / 1e3;
    Some(Schedule {
        end_ns: over(ends.map(|timeline| nanos(timeline.end))),
        events: first.events,
        path_ns: first.path.iter().map(|(name, time)| ((*name).to_owned(), nanos(*time))).collect(),
    })
}

/// The mean over replicas, with the interval of Student's distribution.
fn over(values: impl Iterator<Item = f64>) -> Estimate {
    let values: Vec<_> = values.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    if values.len() < 2 {
        return Estimate { mean, half_width: f64::INFINITY };
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    Estimate { mean, half_width: student(values.len() - 1) * error }
}

fn all_delays(measured: &[&Replica]) -> Option<Histogram<u64>> {
    let (first, others) = measured.split_first()?;
    let mut all = first.tally.histogram().clone();
    for other in others {
        // All have the bounds of the first one.
        all.add(other.tally.histogram()).expect("equal bounds");
    }
    Some(all)
}

fn percentiles(histogram: &Option<Histogram<u64>>) -> Vec<(f64, f64)> {
    let Some(histogram) = histogram else { return vec![] };
    let delay = |share| histogram.value_at_quantile(share) as f64 / 1e3;
    SHARES.map(|share| (share, delay(share))).to_vec()
}

fn bins(histogram: &Option<Histogram<u64>>) -> Vec<Bin> {
    let Some(histogram) = histogram else { return vec![] };
    let (least, most) = (histogram.min(), histogram.value_at_quantile(SHOWN));
    let width = ((most - least) / BINS + 1).max(1);
    let bin = |number| {
        let from = least + number * width;
        Bin { from_ns: from as f64 / 1e3, to_ns: (from + width) as f64 / 1e3, packets: 0 }
    };
    let mut bins: Vec<_> = (0..=(most - least) / width).map(bin).collect();
    for value in histogram.iter_recorded() {
        let number = value.value_iterated_to().saturating_sub(least) / width;
        if let Some(bin) = bins.get_mut(number as usize) {
            bin.packets += value.count_at_value();
        }
    }
    bins
}

fn parts(measured: &[&Replica]) -> Parts {
    let mut sum = Parts::default();
    for replica in measured {
        let parts = replica.tally.parts();
        sum.queued_ps += parts.queued as u64;
        sum.waited_ps += parts.waited as u64;
        sum.moved_ps += parts.moved as u64;
        sum.delay_ps += replica.tally.total_delay() as u64;
    }
    sum
}

/// Whether the network carries the load. Unstable is a point whose backlog grows in both halves of
/// the measurement, by more than a hundredth of the packets made, and beyond the 95 % confidence of
/// the replicas.
fn verdict(replicas: &[Replica], measured: &[&Replica]) -> (Verdict, Vec<String>) {
    let outcome = |wanted| replicas.iter().any(|replica| replica.outcome == Some(wanted));
    let mut notes = vec![];
    let stopped = replicas.iter().filter(|replica| replica.outcome.is_none()).count();
    if stopped > 0 {
        notes.push(format!(
            "{stopped} of {} replicas were stopped before their end",
            replicas.len()
        ));
    }
    if replicas.iter().any(|replica| replica.interface.is_some()) {
        return (Verdict::Stable, notes);
    }
    if let Some(script) = replicas.first().and_then(|first| first.script.as_ref()) {
        notes.push(match script {
            Ok(course) => format!("the script ends after {:.3} us", course.end_ns / 1e3),
            Err(why) => why.clone(),
        });
        return (if script.is_ok() { Verdict::Stable } else { Verdict::Failed }, notes);
    }
    let mut timelines = replicas.iter().filter_map(|replica| replica.timeline.as_ref());
    if let Some(timeline) = timelines.next() {
        let failed = [timeline].into_iter().chain(timelines).find_map(|one| one.as_ref().err());
        return match (failed, timeline) {
            (None, Ok(Timeline { end, .. })) => {
                notes.push(format!("the schedule ends after {end}"));
                (Verdict::Stable, notes)
            }
            (failed, _) => {
                notes.extend(failed.cloned());
                let ring = outcome(Outcome::Deadlocked);
                (if ring { Verdict::Deadlocked } else { Verdict::Unstable }, notes)
            }
        };
    }
    if outcome(Outcome::Drained) {
        notes.push("the simulated time ended before all packets were delivered".to_owned());
    }
    if outcome(Outcome::Deadlocked) {
        notes.push("packets wait for each other in a ring".to_owned());
        return (Verdict::Deadlocked, notes);
    }
    if outcome(Outcome::Saturated) {
        notes.push("the backlog reached its limit".to_owned());
        return (Verdict::Unstable, notes);
    }
    if measured.is_empty() {
        return (Verdict::NotRun, notes);
    }
    let total = over(measured.iter().map(|replica| growth(replica, 0, 2)));
    let halves = [(0, 1), (1, 2)].map(|(from, to)| {
        over(measured.iter().map(|replica| growth(replica, from, to))).mean > 0.0
    });
    let least = if measured.len() < 2 { total.mean } else { total.mean - total.half_width };
    if halves == [true, true] && total.mean > GROWTH && least > 0.0 {
        notes.push(format!(
            "{:.1} % of the packets made stay behind: the network does not carry the load",
            100.0 * total.mean
        ));
        return (Verdict::Unstable, notes);
    }
    (Verdict::Stable, notes)
}

/// The growth of the backlog between two times, as a share of the packets made.
fn growth(replica: &Replica, from: usize, to: usize) -> f64 {
    let growth = replica.backlog[to] as f64 - replica.backlog[from] as f64;
    growth / replica.packets_made.max(1) as f64
}

/// Whether a replica by itself shows that its network carries the load.
pub(crate) fn is_carried(replica: &Replica) -> bool {
    matches!(verdict(core::slice::from_ref(replica), &[replica]).0, Verdict::Stable)
}

/// How busy each link was from the beginning to the end of the measurement.
fn links(record: &Record, span: Time, topology: &Topology) -> Links {
    let busy = |router, port| {
        let windows = (0..record.windows()).map(|window| record.busy(window, router, port).0);
        // A packet that is on the link at the end counts as a whole.
        (windows.sum::<u64>() as f64 / span.0.max(1) as f64).min(1.0)
    };
    let all: Vec<_> = topology
        .links
        .iter()
        .map(|link| LinkLoad {
            from: link.from.router,
            to: link.to.router,
            busy: busy(link.from.router, link.from.port),
        })
        .collect();
    let drawn = all.len() <= LINKS_MAX;
    Links {
        most: all.iter().map(|link| link.busy).fold(0.0, f64::max),
        mean: all.iter().map(|link| link.busy).sum::<f64>() / all.len().max(1) as f64,
        routers: if drawn { layout(topology) } else { vec![] },
        each: if drawn { all } else { vec![] },
    }
}

/// The queues behind links over the whole measurement.
fn queues(record: &Record) -> Queues {
    let buffers = record.queues().iter().filter_map(|queue| {
        let network::Queue { router, port, channel, from, mean, most, .. } = *queue;
        Some(Queue { router, port, channel, from: from?, mean, most })
    });
    let count = buffers.clone().count().max(1) as f64;
    let longer = |one: Queue, other: Queue| if other.mean > one.mean { other } else { one };
    Queues {
        mean: buffers.clone().map(|queue| queue.mean).sum::<f64>() / count,
        most: buffers.clone().map(|queue| queue.most).max().unwrap_or_default(),
        longest: buffers.reduce(longer).filter(|queue| queue.most > 0),
    }
}

/// The course of the first replica. The last window may have been cut short, so it is left out.
fn windows(record: &Record, topology: &Topology) -> Vec<Window> {
    let width = record.window();
    let whole = 0..record.windows().saturating_sub(1);
    let buffers = record.queues().iter().filter(|queue| queue.from.is_some()).count().max(1);
    let window = |number: usize| {
        let busy = topology
            .links
            .iter()
            .map(|link| record.busy(number, link.from.router, link.from.port).0 as f64);
        let (sum, most) = busy.fold((0.0, 0.0), |(sum, most), busy| (sum + busy, busy.max(most)));
        let (room, queue_most) = record.room(number);
        Window {
            from_ns: (number as u64 * width.0) as f64 / 1e3,
            backlog: record.backlog()[number],
            mean: sum / topology.links.len().max(1) as f64 / width.0 as f64,
            // A packet counts for the window in which its head leaves.
            most: (most / width.0 as f64).min(1.0),
            queue_mean: room / buffers as f64,
            queue_most,
        }
    };
    whole.map(window).collect()
}

//! Runs a case and its limit in turn, on all ranks, and turns their times into a row.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::case::RawKind;
use super::case::{Case, Metric};
use super::raw::RawSet;
use super::report::Row;
use super::side::Side;
use super::stats::{Repetitions, Times, median};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Repetitions of each figure.
    pub(crate) repetitions: usize,
    /// The intended time of a repetition: long compared with the clock, short compared with
    /// disturbances of the machine.
    pub(crate) repetition: Duration,
    /// The longest time for the single operations of a histogram.
    pub(crate) sampling: Duration,
}

impl Plan {
    /// For figures to be trusted.
    pub(crate) fn full(repetitions: usize) -> Self {
        Self {
            repetitions,
            repetition: Duration::from_millis(3),
            sampling: Duration::from_millis(100),
        }
    }

    /// For a first look, and for tests.
    pub(crate) fn quick(repetitions: usize) -> Self {
        Self {
            repetitions,
            repetition: Duration::from_micros(300),
            sampling: Duration::from_millis(2),
        }
    }
}

/// A histogram takes no more single operations than this.
const MOST_SAMPLES: u64 = 50_000;

/// One rank's runner. All ranks must make the same calls.
pub(crate) struct Runner<'a> {
    side: Side<'a>,
    plan: Plan,
    raws: RawSet,
}

impl<'a> Runner<'a> {
    /// A runner for this rank.
    pub(crate) fn new(side: Side<'a>, plan: Plan) -> Self {
        let raws = RawSet::new(side.ranks());
        Self { side, plan, raws }
    }

    /// Which rank this is.
    pub(crate) fn side(&self) -> &Side<'a> {
        &self.side
    }

    /// A limit, to see which sizes it is measured at.
    pub(crate) fn raw(&mut self, kind: RawKind) -> &dyn Case {
        self.raws.get(kind)
    }

    /// A limit for its own sake: it is compared with itself.
    pub(crate) fn measure_raw(&mut self, kind: RawKind, size: usize) -> Result<Row> {
        beside(self.raws.get(kind), None, size, (&self.side, self.plan))
    }

    /// A case beside its limit, repetition by repetition.
    pub(crate) fn measure(&mut self, case: &mut dyn Case, size: usize) -> Result<Row> {
        let limit = case.raw(size).map(|kind| self.raws.get(kind));
        beside(case, limit, size, (&self.side, self.plan))
    }

    /// A case beside a limit that is none of shared memory; without one, the case is compared with
    /// itself.
    pub(crate) fn measure_beside(
        &mut self,
        case: &mut dyn Case,
        limit: Option<&mut dyn Case>,
        size: usize,
    ) -> Result<Row> {
        beside(case, limit, size, (&self.side, self.plan))
    }
}

fn beside(
    case: &mut dyn Case,
    limit: Option<&mut dyn Case>,
    size: usize,
    (side, plan): (&Side<'_>, Plan),
) -> Result<Row> {
    let limit = limit.map(|limit| Subject::new(limit, side, plan, size)).transpose()?;
    let subject = Subject::new(case, side, plan, size)?;
    measure(subject, limit, side, plan)
}

/// A case at one size, with the iterations that make up a repetition.
struct Subject<'c> {
    case: &'c mut dyn Case,
    size: usize,
    iterations: u64,
}

impl<'c> Subject<'c> {
    fn new(case: &'c mut dyn Case, side: &Side<'_>, plan: Plan, size: usize) -> Result<Self> {
        side.barrier();
        case.prepare(side, size)?;
        let mut subject = Self { case, size, iterations: 1 };
        subject.calibrate(side, plan.repetition)?;
        Ok(subject)
    }

    /// Finds how many iterations last as long as a repetition should. Rank 0 decides.
    fn calibrate(&mut self, side: &Side<'_>, target: Duration) -> Result<()> {
        let mut settled = false;
        while !settled {
            let mut time = Duration::MAX;
            // The shortest of three: an interruption must not pass for a slow operation.
            for _ in 0..3 {
                time = time.min(self.run(side)?);
            }
            let time = time.max(Duration::from_nanos(1));
            let factor = target.as_secs_f64() / time.as_secs_f64();
            // Few iterations tell little: approach the target in steps.
            settled = side.agree(u64::from(factor < 2.0)) == 1;
            let iterations = (self.iterations as f64 * factor.min(16.0)).ceil() as u64;
            self.iterations = side.agree(iterations.max(1));
        }
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>) -> Result<Duration> {
        side.barrier();
        self.case.run(side, self.size, self.iterations)
    }

    /// Nanoseconds an operation in one repetition.
    fn repeat(&mut self, side: &Side<'_>) -> Result<f64> {
        let time = self.run(side)?;
        Ok(nanoseconds(time) / (self.iterations * self.case.operations()) as f64)
    }

    /// Times single iterations. They contain one reading of the clock, which is taken off.
    fn sample(&mut self, side: &Side<'_>, count: u64) -> Result<Times> {
        let clock = clock_cost();
        let operations = self.case.operations() as f64;
        let mut times = Times::new();
        side.barrier();
        for _ in 0..count {
            let time = self.case.run(side, self.size, 1)?;
            times.record((nanoseconds(time) - clock).max(0.0) / operations);
        }
        Ok(times)
    }
}

fn measure(
    mut subject: Subject<'_>,
    mut limit: Option<Subject<'_>>,
    side: &Side<'_>,
    plan: Plan,
) -> Result<Row> {
    let mut repetitions = Repetitions::default();
    for repetition in 0..plan.repetitions {
        if repetition.is_multiple_of(100) {
            give_the_core_away();
        }
        let raw = limit.as_mut().map(|limit| limit.repeat(side)).transpose()?;
        let operation = subject.repeat(side)?;
        let steps = subject.case.raw_steps() as f64;
        repetitions.push(operation, raw.map_or(operation, |raw| raw * steps));
    }
    let times = spread(&mut subject, &repetitions, side, plan)?;
    // A rank that closes its port now would be a dead peer of one whose last call is under way.
    side.barrier();
    let raw_op = match &limit {
        Some(limit) => limit.case.name(),
        None => subject.case.name(),
    };
    Ok(row(&subject, side, raw_op, (&repetitions, &times)))
}

/// A realtime process has to sleep now and then, or the kernel takes it for hung.
#[expect(clippy::disallowed_methods, reason = "nothing is waited for")]
fn give_the_core_away() {
    sleep(Duration::from_micros(100));
}

/// Single operations make the histogram of a latency; of anything else, only repetitions can.
fn spread(
    subject: &mut Subject<'_>,
    repetitions: &Repetitions,
    side: &Side<'_>,
    plan: Plan,
) -> Result<Times> {
    if subject.case.metric() == Metric::Latency {
        let time =
            median(repetitions.operation()).unwrap_or(1.0) * subject.case.operations() as f64;
        let fitting = nanoseconds(plan.sampling) / time.max(1.0);
        return subject.sample(side, side.agree((fitting as u64).clamp(100, MOST_SAMPLES)));
    }
    let mut times = Times::new();
    for &time in repetitions.operation() {
        times.record(time);
    }
    Ok(times)
}

fn row(
    subject: &Subject<'_>,
    side: &Side<'_>,
    raw_op: &'static str,
    (all, times): (&Repetitions, &Times),
) -> Row {
    let case = &*subject.case;
    let figure = |time| case.metric().figure(time, subject.size);
    let percentiles = times.percentiles();
    Row {
        op: case.name(),
        path: case.path().name(),
        size: subject.size,
        ranks: side.ranks(),
        cores: side.cores().min(side.ranks()),
        metric: case.metric().name(),
        unit: case.metric().unit(),
        value: all.median_operation(figure).unwrap_or(f64::NAN),
        raw: all.median_raw(figure).unwrap_or(f64::NAN),
        raw_op,
        ratio: all.median_ratio(figure).unwrap_or(f64::NAN),
        p50_ns: percentiles.p50,
        p90_ns: percentiles.p90,
        p99_ns: percentiles.p99,
        p999_ns: percentiles.p999,
        max_ns: percentiles.max,
        samples: times.len(),
        repetitions: all.len(),
        iterations: subject.iterations,
    }
}

/// The mean cost of one reading of the clock. It is a mean because a processor's clock may tick in
/// steps of 10 ns.
fn clock_cost() -> f64 {
    const READINGS: u32 = 1000;
    let rounds = (0..5).map(|_| {
        let start = Instant::now();
        for _ in 0..READINGS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed() / READINGS
    });
    nanoseconds(rounds.min().unwrap_or_default())
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::super::case::Path;
    use super::super::side::shared::RawShared;
    use super::*;

    /// Takes 20 ns an iteration of two operations, by its own account.
    struct Steady {
        prepared: usize,
        iterations: u64,
    }

    impl Case for Steady {
        fn name(&self) -> &'static str {
            "steady"
        }

        fn path(&self) -> Path {
            Path::Direct
        }

        fn sizes(&self) -> &'static [usize] {
            &[8]
        }

        fn metric(&self) -> Metric {
            Metric::Rate
        }

        fn raw(&self, _size: usize) -> Option<RawKind> {
            Some(RawKind::Atomic)
        }

        fn operations(&self) -> u64 {
            2
        }

        fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
            self.prepared = size;
            Ok(())
        }

        fn run(&mut self, _side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration> {
            assert_eq!(size, self.prepared);
            self.iterations += iterations;
            Ok(Duration::from_nanos(20 * iterations))
        }
    }

    #[test]
    fn a_case_is_measured_beside_its_limit() {
        let shared = RawShared::map(RawShared::create().unwrap()).unwrap();
        let mut runner = Runner::new(Side::new(&shared, 0, 1, 1), Plan::quick(3));
        let mut case = Steady { prepared: 0, iterations: 0 };
        let row = runner.measure(&mut case, 8).unwrap();
        assert_eq!((row.op, row.path, row.size), ("steady", "direct", 8));
        assert_eq!((row.metric, row.unit, row.raw_op), ("rate", "Mop/s", "raw-atomic"));
        // 10 ns an operation are 100 million a second.
        assert!((row.value - 100.0).abs() < 1e-6, "{row:?}");
        assert!((row.p50_ns - 10.0).abs() < 0.1 && (row.max_ns - 10.0).abs() < 0.1, "{row:?}");
        assert!(row.raw > 0.0 && row.ratio > 0.0, "{row:?}");
        assert_eq!((row.repetitions, row.samples), (3, 3));
        // 300 us a repetition, after some shorter ones to find that out.
        assert_eq!(row.iterations, 15_000);
        assert!(case.iterations > 3 * row.iterations);
    }
}

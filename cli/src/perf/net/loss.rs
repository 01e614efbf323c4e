//! The throughput of long puts where the network loses datagrams, and the time to the first byte
//! after a cut link is whole again. The faults are made on purpose, in both directions.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::network::{FaultPlan as Faults, LinkReport, Partition};
use ayre::{PostOptions as How, Spin};

use super::super::ops::pair::{Pair, place};
use super::super::ops::{poll_until, posted};
use super::super::report::Row;
use super::super::runner::Plan;
use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::super::stats::{Times, median};
use super::linked::{self, Protection};
use super::{Args, Printer};

/// Shares of datagrams that are lost, with their names.
const LOSSES: [(f64, &str); 4] = [(0.001, "0.1%"), (0.01, "1%"), (0.05, "5%"), (0.2, "20%")];
/// How long a link is cut, in milliseconds, with the names; only the first where it is to be quick.
const OUTAGES: [(u64, &str); 2] = [(100, "100ms"), (1000, "1s")];
/// Bytes of a put.
const SIZE: usize = 64 << 10;
/// Rounds of each figure at most, and how many repetitions of other figures each lasts.
const ROUNDS: usize = 5;
const LONGER: u32 = 10;

/// The names of the rows for a share of losses, and for an outage.
const GOODPUT: &str = "loss-goodput";
const GO_BACK_N: &str = "loss-go-back-n";
const TRANSMISSIONS: &str = "loss-transmissions";
const RESTORED: &str = "cut-first-byte";

/// Measures what was asked for. All ranks measure; rank 0 prints.
pub(super) fn measure(
    args: &Args,
    side: &Side<'_>,
    plan: Plan,
    printer: &mut Printer,
) -> Result<()> {
    let is_sized = args.sizes.is_empty() || args.sizes.contains(&SIZE);
    if is_sized && [GOODPUT, GO_BACK_N, TRANSMISSIONS].into_iter().any(|name| args.names(name)) {
        measure_losses(args, side, plan, printer)?;
    }
    let is_sized = args.sizes.is_empty() || args.sizes.contains(&8);
    if is_sized && args.names(RESTORED) {
        measure_outages(args, side, plan, printer)?;
    }
    Ok(())
}

fn measure_losses(args: &Args, side: &Side<'_>, plan: Plan, printer: &mut Printer) -> Result<()> {
    let join = |loss| {
        let faults = Faults { loss, seed: side.rank() as u64 + 1, ..Faults::new() };
        linked::join_over(side, (&args.net, Protection::Sealed), Spin::DEDICATED, |net| {
            net.faults(faults)
        })
    };
    let mut clear = Stream::new(join(0.0)?);
    for (loss, path) in LOSSES {
        let mut lossy = Stream::new(join(loss)?);
        let mut seen = Seen::default();
        for _ in 0..plan.repetitions.min(ROUNDS) {
            let span = plan.repetition * LONGER;
            seen.push(clear.run(side, span)?, lossy.run(side, span)?);
        }
        let rows = seen.rows(loss).into_iter().filter(|row| args.names(row.op));
        for row in rows {
            printer.print(&Row { path, ranks: side.ranks(), cores: side.cores().min(2), ..row })?;
        }
    }
    Ok(())
}

/// Puts that follow each other over one link.
struct Stream {
    pair: Rc<Pair>,
    buffer: Buffer,
}

/// The result of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// Nanoseconds a put.
    time: f64,
    puts: u64,
    /// Frames under way, on average.
    under_way: f64,
    /// New frames, and all transmissions of frames.
    frames: u64,
    transmissions: u64,
}

impl Stream {
    fn new(pair: Rc<Pair>) -> Self {
        Self { pair, buffer: Buffer::new(SIZE) }
    }

    /// Rank 0 puts for so long, and until everything has arrived. Collective.
    fn run(&mut self, side: &Side<'_>, span: Duration) -> Result<Run> {
        side.barrier();
        let run = if side.measures() { self.put(span)? } else { Run::default() };
        self.pair.serve(side);
        Ok(run)
    }

    fn put(&mut self, span: Duration) -> Result<Run> {
        let before = self.link()?;
        let (start, mut puts, mut under_way) = (Instant::now(), 0, 0.0);
        while puts == 0 || start.elapsed() < span {
            let port = &mut *self.pair.port();
            let (to, at) = (&self.pair.other.memory, place::BULK as u64);
            let buffer = &*self.buffer;
            poll_until(|| posted(port.put(to, at, black_box(buffer), How::new())))?;
            puts += 1;
            let links = port.links();
            under_way += links.first().map_or(0.0, |link| f64::from(link.in_flight));
        }
        self.pair.port().flush(self.pair.other.peer)?;
        let time = start.elapsed().as_nanos() as f64 / puts as f64;
        let after = self.link()?;
        let frames = after.sent - before.sent;
        let transmissions = frames + again(&after) - again(&before);
        Ok(Run { time, puts, under_way: under_way / puts as f64, frames, transmissions })
    }

    fn link(&self) -> Result<LinkReport> {
        self.pair.port().links().into_iter().next().context("the ranks are linked")
    }
}

fn again(link: &LinkReport) -> u64 {
    let again = link.again;
    again.overtaken + again.asked_for + again.timed_out + again.resynced
}

/// Runs without and with losses, in turn.
#[derive(Default)]
struct Seen {
    ratios: Vec<f64>,
    clear: Vec<f64>,
    lossy: Vec<f64>,
    under_way: Vec<f64>,
    frames: u64,
    transmissions: u64,
    puts: u64,
}

impl Seen {
    fn push(&mut self, clear: Run, lossy: Run) {
        self.ratios.push(clear.time / lossy.time);
        self.clear.push(clear.time);
        self.lossy.push(lossy.time);
        self.under_way.push(lossy.under_way);
        self.frames += lossy.frames;
        self.transmissions += lossy.transmissions;
        self.puts += lossy.puts;
    }

    /// Three rows: the goodput compared with that without losses, the goodput compared with the
    /// estimate for go-back-N, and the transmissions per frame compared with the least.
    fn rows(&self, loss: f64) -> [Row; 3] {
        let middle = |times: &[f64]| median(times).unwrap_or(f64::NAN);
        let figure = |time: f64| SIZE as f64 / time;
        let clear = figure(middle(&self.clear));
        let back = going_back(loss, middle(&self.under_way));
        let row = |op, (value, unit), (raw, raw_op), ratio| {
            let metric = if unit == "GB/s" { "bandwidth" } else { "count" };
            let figures = Figures { op, metric, unit, value, raw, raw_op, ratio, size: SIZE };
            figures.row(&self.lossy, self.puts)
        };
        let (sent, least) = (self.transmissions as f64 / self.frames as f64, 1.0 / (1.0 - loss));
        let goodput = figure(middle(&self.lossy));
        [
            row(GOODPUT, (goodput, "GB/s"), (clear, "lossless"), middle(&self.ratios)),
            row(GO_BACK_N, (clear * back, "GB/s"), (clear, "lossless"), back),
            row(TRANSMISSIONS, (sent, "tx"), (least, "least"), sent / least),
        ]
    }
}

/// The share of the throughput that would remain with go-back-N, with `window` frames in flight of
/// which each is lost with probability `loss`: a loss costs the whole window. It is (1 - p) / (1 +
/// (W - 1) p), see Leon-Garcia and Widjaja, *Communication Networks*, 5.2 (efficiency of go-back-N
/// ARQ, headers and acknowledgements left out).
///
/// The estimate is generous. The window is measured here under the same losses, and would be larger
/// without them. The formula also ignores that a loss is noticed late where few frames follow it.
fn going_back(loss: f64, window: f64) -> f64 {
    (1.0 - loss) / (1.0 - loss + loss * window.max(1.0))
}

/// The figures of a row.
struct Figures {
    op: &'static str,
    metric: &'static str,
    unit: &'static str,
    value: f64,
    raw: f64,
    raw_op: &'static str,
    ratio: f64,
    size: usize,
}

impl Figures {
    /// With the times of single rounds, in nanoseconds an operation.
    fn row(self, rounds: &[f64], operations: u64) -> Row {
        let mut times = Times::new();
        rounds.iter().for_each(|time| times.record(*time));
        let percentiles = times.percentiles();
        let Self { op, metric, unit, value, raw, raw_op, ratio, size } = self;
        Row {
            op,
            path: "",
            size,
            ranks: 0,
            cores: 0,
            metric,
            unit,
            value,
            raw,
            raw_op,
            ratio,
            p50_ns: percentiles.p50,
            p90_ns: percentiles.p90,
            p99_ns: percentiles.p99,
            p999_ns: percentiles.p999,
            max_ns: percentiles.max,
            samples: times.len(),
            repetitions: rounds.len(),
            iterations: operations / rounds.len().max(1) as u64,
        }
    }
}

fn measure_outages(args: &Args, side: &Side<'_>, plan: Plan, printer: &mut Printer) -> Result<()> {
    let cable = Partition::new();
    let ends = (&args.net, Protection::Sealed);
    let pair = linked::join_over(side, ends, Spin::DEDICATED, |net| net.partition(&cable))?;
    let mut value = 0;
    for (outage, path) in OUTAGES.into_iter().take(if args.quick { 1 } else { OUTAGES.len() }) {
        let (mut times, mut trips) = (Vec::new(), Vec::new());
        for _ in 0..plan.repetitions.min(ROUNDS) {
            value += 1;
            let trip = pair.port().links().first().and_then(|link| link.round_trip_ns);
            trips.push(trip.unwrap_or(1) as f64);
            let outage = Duration::from_millis(outage);
            times.push(restore(side, &pair, &cable, (outage, value))?.as_nanos() as f64);
        }
        let middle = |times: &[f64]| median(times).unwrap_or(f64::NAN);
        let (value, raw) = (middle(&times), middle(&trips));
        let (op, raw_op, unit) = (RESTORED, "round-trip", "ns");
        let figures = Figures {
            op,
            metric: "latency",
            unit,
            value,
            raw,
            raw_op,
            ratio: value / raw,
            size: 8,
        };
        let row = figures.row(&times, times.len() as u64);
        printer.print(&Row { path, ranks: side.ranks(), cores: side.cores().min(2), ..row })?;
    }
    Ok(())
}

/// Cuts the link, puts a word meanwhile, and restores it: how long it takes from there until the
/// word is in the other rank's memory. Collective.
fn restore(
    side: &Side<'_>,
    pair: &Pair,
    cable: &Partition,
    (outage, value): (Duration, u64),
) -> Result<Duration> {
    pair.serve(side);
    cable.cut();
    pair.serve(side);
    if side.measures() {
        let (port, to) = (&mut *pair.port(), &pair.other.memory);
        poll_until(|| posted(port.put_immediate(to, place::IMMEDIATE as u64, value, How::new())))?;
        let start = Instant::now();
        while start.elapsed() < outage {
            port.poll_notification();
        }
    }
    pair.serve(side);
    cable.heal();
    pair.serve(side);
    let start = Instant::now();
    if !side.measures() {
        let port = &mut *pair.port();
        poll_until(|| {
            port.poll_notification();
            Ok(pair.region.load(place::IMMEDIATE) == value)
        })?;
    }
    pair.serve(side);
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::going_back;

    #[test]
    fn going_back_costs_a_window_for_each_loss() {
        assert!((going_back(0.0, 64.0) - 1.0).abs() < 1e-12);
        assert!((going_back(0.2, 1.0) - 0.8).abs() < 1e-12, "one under way: only what is lost");
        assert!((going_back(0.01, 64.0) - 0.99 / 1.63).abs() < 1e-12);
    }
}

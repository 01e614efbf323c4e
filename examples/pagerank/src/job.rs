//! PageRank as a job: every process works on its part of the graph.

mod atomics;
mod carrier;
mod distribute;
mod exchange;
mod gather;
mod iterate;
mod part;
mod process;
mod puts;
mod queues;
mod words;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::atomics::Atomics;
use self::carrier::Carrier;
use self::gather::Gather;
use self::iterate::{Carry, iterate};
use self::part::Part;
use self::process::Process;
use self::puts::Puts;
use self::queues::Queues;
use crate::args::{Args, Variant};
use crate::graph::Graph;
use crate::partition::Partition;
use crate::reference::{self, Outcome};
use crate::report::{self, Phases, Run};

/// Whether this process was started as one of a job.
pub(crate) fn is_job() -> bool {
    ayre::Port::is_launched()
}

/// Runs this process of the job.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    ensure!(args.write_edges.is_none(), "--write-edges takes no job");
    let start = Instant::now();
    let mut process = Process::join()?;
    let joined = start.elapsed();
    let number = process.number();
    let result = if number == 0 {
        let mut phases = Phases::default();
        phases.add("join", joined);
        lead(args, &mut process, phases, out)
    } else {
        follow(args, &mut process).with_context(|| format!("process {number}"))
    };
    if result.is_err() {
        // A port that is dropped says farewell, and who waits for this process would go on
        // waiting. One that just ends, as this process now does, has died.
        std::mem::forget(process);
    }
    result
}

/// The result of one variant; process 0 alone knows the ranks.
struct Ranked {
    variant: Variant,
    outcome: Outcome,
    /// Of the fastest run.
    time: Duration,
    /// Whether all runs came to the same.
    steady: bool,
}

fn lead(
    args: &Args,
    process: &mut Process,
    mut phases: Phases,
    out: &mut impl Write,
) -> Result<()> {
    let graph = crate::read_graph(args, &mut phases, out)?;
    let part = phases.time("distribute", || distribute::hand_out(process, &graph))?;
    write_division(process, &graph, out)?;
    let mut ranked = Vec::new();
    for variant in variants(args) {
        let name = format!("{} x {}", variant.name(), args.repeat);
        ranked.push(phases.time(name, || run_variant(args, process, &part, variant))?);
    }
    let name = format!("single process x {}", args.repeat);
    let (expected, reference) = phases.time(name, || run_reference(args, &graph));
    let runs = phases.time("check", || compare(process.count(), &ranked, &expected));

    crate::write_ranks(args, &graph, &expected, out)?;
    phases.write(out)?;
    writeln!(out, "\nfastest of {}:", args.repeat)?;
    report::write_speed_ups(out, reference, &runs)?;
    ensure!(runs.iter().all(|run| run.equal), "check: not equal to the single-process result");
    writeln!(out, "\ncheck: equal to the single-process result")?;
    Ok(())
}

fn follow(args: &Args, process: &mut Process) -> Result<()> {
    let part = distribute::take(process)?;
    for variant in variants(args) {
        run_variant(args, process, &part, variant)?;
    }
    Ok(())
}

/// The result that every variant must reach, and the best time of one process for it.
fn run_reference(args: &Args, graph: &Graph) -> (Outcome, Duration) {
    let run = || {
        let mut tick = report::ticks("single process", u64::from(args.iterations));
        let start = Instant::now();
        let outcome = reference::rank(graph, args.stop(), &mut tick);
        (outcome, start.elapsed())
    };
    let (outcome, mut time) = run();
    for _ in 1..args.repeat {
        time = time.min(run().1);
    }
    (outcome, time)
}

fn compare(processes: usize, ranked: &[Ranked], expected: &Outcome) -> Vec<Run> {
    let runs = ranked.iter().map(|ranked| Run {
        variant: ranked.variant.name(),
        processes,
        time: ranked.time,
        equal: ranked.steady && ranked.outcome == *expected,
    });
    runs.collect()
}

fn variants(args: &Args) -> Vec<Variant> {
    match args.variant {
        None | Some(Variant::All) => Variant::EACH.to_vec(),
        Some(variant) => vec![variant],
    }
}

fn run_variant(
    args: &Args,
    process: &mut Process,
    part: &Part,
    variant: Variant,
) -> Result<Ranked> {
    let carry = if variant == Variant::EdgeAtomics { Carry::EachEdge } else { Carry::Sums };
    let runs = Repeated { args, part, variant, carry };
    match variant {
        Variant::EdgeAtomics | Variant::Atomics => {
            let carrier = Atomics::new(process, part)?;
            runs.run(process, carrier)
        }
        Variant::Queues => {
            let carrier = Queues::new(process, part)?;
            runs.run(process, carrier)
        }
        Variant::Puts => {
            let carrier = Puts::new(process, part)?;
            runs.run(process, carrier)
        }
        Variant::All => unreachable!("it stands for the others"),
    }
}

struct Repeated<'a> {
    args: &'a Args,
    part: &'a Part,
    variant: Variant,
    carry: Carry,
}

impl Repeated<'_> {
    fn run(&self, process: &mut Process, mut carrier: impl Carrier) -> Result<Ranked> {
        let gather = Gather::new(process, self.part)?;
        let (outcome, mut time) = self.run_once(process, &mut carrier, &gather)?;
        let mut steady = true;
        for _ in 1..self.args.repeat {
            let again = self.run_once(process, &mut carrier, &gather)?;
            steady &= again.0 == outcome;
            time = time.min(again.1);
        }
        carrier.close(process)?;
        Ok(Ranked { variant: self.variant, outcome, time, steady })
    }

    fn run_once(
        &self,
        process: &mut Process,
        carrier: &mut impl Carrier,
        gather: &Gather,
    ) -> Result<(Outcome, Duration)> {
        let stop = self.args.stop();
        let leads = process.number() == 0;
        let mut progress = report::ticks(self.variant.name(), u64::from(stop.iterations));
        let tick = || {
            if leads {
                progress();
            }
        };
        process.barrier()?;
        let start = Instant::now();
        let own = iterate(process, carrier, self.part, self.carry, stop, tick)?;
        let time = start.elapsed();
        let ranks = gather.run(process, &own.ranks)?;
        Ok((Outcome { ranks, ..own }, time))
    }
}

fn write_division(process: &Process, graph: &Graph, out: &mut impl Write) -> Result<()> {
    let count = process.count();
    let partition = Partition::new(graph, count);
    let mut cut = 0;
    for process in 0..count {
        let block = partition.block(process);
        let targets = graph.rows(block.clone()).flatten();
        cut += targets.filter(|target| !block.contains(target)).count();
    }
    let processes = if count == 1 { "process" } else { "processes" };
    writeln!(out, "job: {count} {processes}; {cut} edges lead from one to another")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_results_pass() {
        let outcome =
            |ranks: &[u64], iterations| Outcome { ranks: ranks.into(), iterations, change: 7 };
        let table = [
            (outcome(&[1, 2], 3), true, true),
            (outcome(&[1, 2], 3), false, false),
            (outcome(&[1, 2], 4), true, false),
            (outcome(&[2, 1], 3), true, false),
            (outcome(&[1], 3), true, false),
        ];
        for (outcome_found, steady, expected) in table {
            let time = Duration::from_millis(1);
            let ranked = Ranked { variant: Variant::Puts, outcome: outcome_found, time, steady };
            let runs = compare(2, &[ranked], &outcome(&[1, 2], 3));
            assert_eq!(runs[0].equal, expected);
        }
    }
}

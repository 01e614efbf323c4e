//! The output for the user: progress while there is something to wait for, and tables at the end.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::fixed::to_f64;
use crate::graph::Graph;

/// Progress towards a known end. Like `counter`, it draws on standard error, and only if that is a
/// terminal, and it vanishes when it is dropped.
pub(crate) fn bar(what: &'static str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {elapsed}");
    ProgressBar::new(length)
        .with_style(style.expect("the template is well-formed"))
        .with_message(what)
        .with_finish(indicatif::ProgressFinish::AndClear)
}

/// Progress of work whose time is taken, to be called `length` times. Drawing costs time itself, so
/// nothing is drawn before a second has gone by.
pub(crate) fn ticks(what: &'static str, length: u64) -> impl FnMut() {
    let (bar, start, mut done) = (bar(what, length), Instant::now(), 0);
    move || {
        done += 1;
        if start.elapsed() >= Duration::from_secs(1) {
            bar.set_position(done);
        }
    }
}

/// Progress towards an end that is not known.
pub(crate) fn counter(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {pos} {msg} {elapsed}");
    ProgressBar::new_spinner()
        .with_style(style.expect("the template is well-formed"))
        .with_message(what)
        .with_finish(indicatif::ProgressFinish::AndClear)
}

/// How long each phase of the program took, in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    list: Vec<(String, Duration)>,
}

impl Phases {
    /// Does `work` as the phase called `name`.
    pub(crate) fn time<T>(&mut self, name: impl Into<String>, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add(name, start.elapsed());
        result
    }

    /// Adds a phase that was timed elsewhere.
    pub(crate) fn add(&mut self, name: impl Into<String>, time: Duration) {
        self.list.push((name.into(), time));
    }

    /// Writes a table of the phases.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{:<24} {:>12}", "phase", "time")?;
        for (name, time) in &self.list {
            writeln!(out, "{name:<24} {:>12}", milliseconds(*time))?;
        }
        Ok(())
    }
}

/// Writes the `count` vertices with the highest ranks; of equals the lowest id comes first.
pub(crate) fn write_top(
    out: &mut impl Write,
    graph: &Graph,
    ranks: &[u64],
    count: usize,
) -> io::Result<()> {
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    order.sort_by_key(|&vertex| std::cmp::Reverse(ranks[vertex as usize]));
    order.truncate(count);
    writeln!(out, "{:>6} {:>14}  name", "rank", "score")?;
    for (place, vertex) in order.into_iter().enumerate() {
        let score = to_f64(ranks[vertex as usize]);
        writeln!(out, "{:>6} {score:>14.10}  {}", place + 1, graph.name(vertex))?;
    }
    Ok(())
}

/// One distributed computation, to be compared with the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) variant: &'static str,
    pub(crate) processes: usize,
    pub(crate) time: Duration,
    /// Whether all ranks have the bits of the reference.
    pub(crate) equal: bool,
}

/// Writes how much faster than the reference, which took `reference`, each run was.
pub(crate) fn write_speed_ups(
    out: &mut impl Write,
    reference: Duration,
    runs: &[Run],
) -> io::Result<()> {
    let head = ["variant", "processes", "time", "speed-up", "equal"];
    writeln!(out, "{:<14} {:>9} {:>12} {:>9} {:>6}", head[0], head[1], head[2], head[3], head[4])?;
    let time = milliseconds(reference);
    writeln!(out, "{:<14} {:>9} {time:>12} {:>8.2}x", "single process", 1, 1.0)?;
    for run in runs {
        let speed_up = reference.as_secs_f64() / run.time.as_secs_f64();
        let equal = if run.equal { "yes" } else { "NO" };
        let time = milliseconds(run.time);
        writeln!(
            out,
            "{:<14} {:>9} {time:>12} {speed_up:>8.2}x {equal:>6}",
            run.variant, run.processes
        )?;
    }
    Ok(())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::ONE;
    use crate::testing;

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_top_is_sorted_and_stable() {
        let graph = testing::graph("a b  c d");
        let ranks = [ONE / 8, ONE / 2, ONE / 8, ONE / 4];
        let table = text(|out| write_top(out, &graph, &ranks, 3));
        let expected = "  rank          score  name\n\
                        \x20    1   0.5000000000  b\n\
                        \x20    2   0.2500000000  d\n\
                        \x20    3   0.1250000000  a\n";
        assert_eq!(table, expected);
        assert_eq!(text(|out| write_top(out, &graph, &ranks, 0)).lines().count(), 1);
        assert_eq!(text(|out| write_top(out, &graph, &ranks, 99)).lines().count(), 5);
    }

    #[test]
    fn phases_stand_in_order() {
        let mut phases = Phases::default();
        assert_eq!(phases.time("read", || 7), 7);
        phases.time("rank", || ());
        let table = text(|out| phases.write(out));
        let names: Vec<&str> = table.lines().filter_map(|l| l.split_whitespace().next()).collect();
        assert_eq!(names, ["phase", "read", "rank"]);
    }

    #[test]
    fn speed_ups_are_ratios_to_the_reference() {
        let run =
            Run { variant: "atomics", processes: 2, time: Duration::from_millis(50), equal: true };
        let runs =
            [run, Run { variant: "puts", time: Duration::from_millis(200), equal: false, ..run }];
        let table = text(|out| write_speed_ups(out, Duration::from_millis(100), &runs));
        let rows: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["single", "process", "1", "100.000", "ms", "1.00x"]);
        assert_eq!(rows[2], ["atomics", "2", "50.000", "ms", "2.00x", "yes"]);
        assert_eq!(rows[3], ["puts", "2", "200.000", "ms", "0.50x", "NO"]);
    }
}

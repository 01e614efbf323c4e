//! Distributed PageRank of a real graph: which Debian packages does everything else rest on?
#![forbid(unsafe_code)]

mod debian;
mod edges;
mod fixed;
mod graph;
mod lists;
mod names;
#[cfg_attr(not(test), expect(dead_code, reason = "the distributed variants divide the graph"))]
mod partition;
mod reference;
mod report;
mod source;
mod stanza;
#[cfg(test)]
mod testing;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};

use crate::graph::{Dropped, Graph};
use crate::reference::{Outcome, Stop};
use crate::report::Phases;
use crate::source::{Loaded, Source};

/// Ranks the vertices of a directed graph by PageRank with damping 0.85.
///
/// Duplicate edges and self loops are dropped; the rank of vertices without edges is spread evenly.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// "debian": apt's package lists; "small": the graph that ships with this program; else a file
    /// with an edge a line, "source target" [numbers or names; '#' starts a comment]
    #[arg(long, value_name = "debian|small|FILE", default_value = "debian")]
    graph: Source,

    /// Stop after so many iterations
    #[arg(long, value_name = "N", default_value_t = 100)]
    iterations: u32,

    /// Stop as soon as an iteration changes the ranks, whose sum is 1, by no more than this in sum
    #[arg(long, value_name = "SUM", default_value_t = 1e-9, value_parser = tolerance)]
    tolerance: f64,

    /// How processes pass on their ranks; only in a job: 'ayre run -n 2 -- ayre-pagerank ...'
    #[arg(long)]
    variant: Option<Variant>,

    /// Show so many of the highest ranks
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Keep only what can be reached from vertices of this name, in which one '*' stands for any
    /// text; may be repeated
    #[arg(long, value_name = "NAME")]
    roots: Vec<String>,

    /// Count recommended packages as dependencies
    #[arg(long)]
    recommends: bool,

    /// Look for package lists here
    #[arg(long, value_name = "DIRECTORY", default_value = lists::DIRECTORY)]
    lists: PathBuf,

    /// Write the graph to this file, in the format that '--graph FILE' reads, and stop
    #[arg(long, value_name = "FILE")]
    write_edges: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Variant {
    /// Remote atomic additions, one for each edge that leads to another process
    Atomics,
    /// Records in the owner's remote queue
    Queues,
    /// Partial sums, put into the owner's memory
    Puts,
    /// One after another, to compare them
    All,
}

fn main() -> ExitCode {
    match run(&Args::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ayre-pagerank: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    if args.variant.is_some() {
        bail!("--variant needs a job: start one with 'ayre run -n 2 -- ayre-pagerank ...'");
    }
    let mut phases = Phases::default();
    let loaded =
        phases.time("read graph", || source::load(&args.graph, &args.lists, args.recommends))?;
    write_heading(out, &loaded)?;
    let mut graph = loaded.graph;
    if !args.roots.is_empty() {
        graph = phases.time("follow roots", || graph.reachable(&args.roots));
        ensure!(graph.vertices() > 0, "no vertex has the name of a root");
        write_size(out, "reachable from the roots", &graph)?;
    }
    if let Some(path) = &args.write_edges {
        return write_edges(&graph, path).with_context(|| path.display().to_string());
    }
    let outcome = phases.time("rank in one process", || rank(&graph, args));
    writeln!(
        out,
        "{} iterations, the last of which changed the ranks by {:.2e}\n",
        outcome.iterations,
        fixed::to_f64(outcome.change)
    )?;
    report::write_top(out, &graph, &outcome.ranks, args.top)?;
    writeln!(out)?;
    phases.write(out)?;
    Ok(())
}

fn write_heading(out: &mut impl Write, loaded: &Loaded) -> io::Result<()> {
    if let Some(packages) = &loaded.packages {
        writeln!(out, "package lists: {packages}")?;
    }
    let Dropped { duplicates, self_loops } = loaded.dropped;
    writeln!(out, "dropped: {duplicates} duplicate edges, {self_loops} self loops")?;
    write_size(out, "graph", &loaded.graph)
}

fn write_size(out: &mut impl Write, what: &str, graph: &Graph) -> io::Result<()> {
    let (vertices, dangling) = (graph.vertices(), graph.dangling());
    writeln!(
        out,
        "{what}: {vertices} vertices, {} edges, {dangling} dangling vertices",
        graph.edges()
    )
}

fn write_edges(graph: &Graph, path: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    edges::write(graph, &mut file)?;
    Ok(())
}

fn rank(graph: &Graph, args: &Args) -> Outcome {
    let stop = Stop { iterations: args.iterations, tolerance: fixed::from_f64(args.tolerance) };
    let progress = report::bar("iterations", u64::from(stop.iterations));
    reference::rank(graph, stop, || progress.inc(1))
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("a sum of changes lies between 0 and 2".to_owned()),
    }
}

/// Whether the reader of our output went away, as `head` does when it has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

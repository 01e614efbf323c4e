//! Distributed PageRank of a real graph: which Debian packages does everything else rest on?
#![forbid(unsafe_code)]

mod args;
mod debian;
mod edges;
mod fixed;
mod graph;
mod job;
mod lists;
mod names;
mod partition;
mod reference;
mod report;
mod source;
mod stanza;
#[cfg(test)]
mod testing;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use crate::args::Args;
use crate::graph::{Dropped, Graph};
use crate::reference::Outcome;
use crate::report::Phases;
use crate::source::Loaded;

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
    if job::is_job() {
        return job::run(args, out);
    }
    if args.variant.is_some() {
        bail!("--variant needs a job: start one with 'ayre run -n 2 -- ayre-pagerank ...'");
    }
    let mut phases = Phases::default();
    let graph = read_graph(args, &mut phases, out)?;
    if let Some(path) = &args.write_edges {
        return write_edges(&graph, path).with_context(|| path.display().to_string());
    }
    let outcome = phases.time("rank in one process", || rank(&graph, args));
    write_ranks(args, &graph, &outcome, out)?;
    phases.write(out)?;
    Ok(())
}

/// Reads the graph that the command line asks for, and says what it is.
fn read_graph(args: &Args, phases: &mut Phases, out: &mut impl Write) -> Result<Graph> {
    let loaded =
        phases.time("read graph", || source::load(&args.graph, &args.lists, args.recommends))?;
    write_heading(out, &loaded)?;
    let mut graph = loaded.graph;
    if !args.roots.is_empty() {
        graph = phases.time("follow roots", || graph.reachable(&args.roots));
        ensure!(graph.vertices() > 0, "no vertex has the name of a root");
        write_size(out, "reachable from the roots", &graph)?;
    }
    Ok(graph)
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

fn write_ranks(args: &Args, graph: &Graph, outcome: &Outcome, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{} iterations, the last of which changed the ranks by {:.2e}\n",
        outcome.iterations,
        fixed::to_f64(outcome.change)
    )?;
    if args.top > 0 {
        report::write_top(out, graph, &outcome.ranks, args.top)?;
        writeln!(out)?;
    }
    Ok(())
}

fn rank(graph: &Graph, args: &Args) -> Outcome {
    let progress = report::bar("iterations", u64::from(args.iterations));
    reference::rank(graph, args.stop(), || progress.inc(1))
}

/// Whether the reader of our output went away, as `head` does when it has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

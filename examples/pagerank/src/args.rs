//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::reference::Stop;
use crate::source::Source;
use crate::{fixed, lists};

/// Ranks the vertices of a directed graph by PageRank with damping 0.85.
///
/// Duplicate edges and self loops are dropped; the rank of vertices without edges is spread evenly.
#[derive(Parser)]
#[command(version, args_override_self = true)]
pub(crate) struct Args {
    /// "debian": apt's package lists; "small": the graph that ships with this program; else a file
    /// with an edge a line, "source target" [numbers or names; '#' starts a comment]
    #[arg(long, value_name = "debian|small|FILE", default_value = "debian")]
    pub(crate) graph: Source,

    /// Stop after this number of iterations
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) iterations: u32,

    /// Stop as soon as an iteration changes the ranks, whose sum is 1, by no more than this in sum
    #[arg(long, value_name = "SUM", default_value_t = 1e-9, value_parser = tolerance)]
    pub(crate) tolerance: f64,

    /// How processes pass on their ranks; only in a job: 'ayre run -n 2 -- ayre-pagerank ...'
    /// [default there: all]
    #[arg(long)]
    pub(crate) variant: Option<Variant>,

    /// In a job, run each variant this number of times; its fastest run counts
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,

    /// Show this number of the highest ranks
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,

    /// Keep only what can be reached from vertices of this name, in which one '*' stands for any
    /// text; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) roots: Vec<String>,

    /// Count recommended packages as dependencies
    #[arg(long)]
    pub(crate) recommends: bool,

    /// Look for package lists here
    #[arg(long, value_name = "DIRECTORY", default_value = lists::DIRECTORY)]
    pub(crate) lists: PathBuf,

    /// Write the graph to this file, in the format that '--graph FILE' reads, and stop
    #[arg(long, value_name = "FILE")]
    pub(crate) write_edges: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// A remote atomic addition for each edge that leads to another process
    EdgeAtomics,
    /// A remote atomic addition for each vertex of another process that edges lead to
    Atomics,
    /// Sums for vertices of other processes, in records of the owner's remote queue
    Queues,
    /// Sums for vertices of other processes, put into the owner's memory
    Puts,
    /// One after another, to compare them
    All,
}

impl Variant {
    pub(crate) const EACH: [Self; 4] = [Self::EdgeAtomics, Self::Atomics, Self::Queues, Self::Puts];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EdgeAtomics => "edge-atomics",
            Self::Atomics => "atomics",
            Self::Queues => "queues",
            Self::Puts => "puts",
            Self::All => "all",
        }
    }
}

impl Args {
    pub(crate) fn stop(&self) -> Stop {
        Stop { iterations: self.iterations, tolerance: fixed::from_f64(self.tolerance) }
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("a sum of changes lies between 0 and 2".to_owned()),
    }
}

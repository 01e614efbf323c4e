//! Other libraries' own tools, which measure by turns with Ayre, on the same cores.
//!
//! A round is one run of everything, so that whatever else the machine does strikes all of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

pub(super) mod child;
mod fabric;
mod mpi;
mod ucx;

use super::Args;
use super::kept::{Figure, Kept};
use super::launch;
use super::stats::median;
use crate::run::Bind;

/// Sizes of messages there and back, and of those that follow each other.
const SIZES: [usize; 7] = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 1 << 20];
const STREAMED_FROM: usize = 4 << 10;

/// The operations of Ayre that are measured in each round.
const OPERATIONS: [(&str, &str); 4] = [
    ("message-latency", "Ayre, messages"),
    ("active-latency", ACTIVE),
    ("active-long-latency", ACTIVE),
    ("active-bandwidth", ACTIVE),
];
const ACTIVE: &str = "Ayre, active messages";

/// One figure of a round: nanoseconds one way, or 10^9 bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) is_latency: bool,
    pub(super) size: usize,
    pub(super) value: f64,
}

/// A library with a tool of its own.
struct Peer {
    name: &'static str,
    /// The programs that it takes.
    programs: &'static [&'static str],
    /// The programs of it that are run, in words.
    told: &'static str,
    /// The version that it reports.
    version: fn() -> Option<String>,
    round: fn(&[usize]) -> Result<Vec<Reading>>,
}

const PEERS: [Peer; 3] = [ucx::PEER, fabric::PEER, mpi::PEER];

/// All readings of one series.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) name: String,
    pub(super) is_limit: bool,
    pub(super) is_latency: bool,
    /// One for each round, by size.
    pub(super) readings: BTreeMap<usize, Vec<f64>>,
}

impl Compared {
    pub(super) fn medians(&self) -> impl Iterator<Item = (usize, f64)> {
        self.readings.iter().filter_map(|(size, of)| Some((*size, median(of)?)))
    }
}

/// The result of all rounds.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) rounds: usize,
    pub(super) series: Vec<Compared>,
    /// The programs that were run, by the name of the library, or the reason why not.
    pub(super) told: Vec<(String, String)>,
    /// Ayre's own rows.
    pub(super) figures: Vec<Figure>,
}

/// Whether something is asked for that others measure as well.
pub(super) fn are_asked_for(args: &Args) -> bool {
    OPERATIONS.iter().any(|(name, _)| args.names(name))
}

/// Measures Ayre and whatever is installed, by turns.
pub(super) fn compare(args: &Args) -> Result<Comparison> {
    let mut comparison =
        Comparison { rounds: if args.quick { 2 } else { 5 }, ..Comparison::default() };
    let cores = args.bind.parse::<Bind>()?.cores()?;
    let mut present = vec![];
    for peer in &PEERS {
        let missing = peer.programs.iter().find(|program| !child::is_installed(program));
        let told = match missing {
            Some(program) => format!("not installed ({program} is missing)"),
            None => {
                present.push(peer);
                let version = (peer.version)().map_or_else(String::new, |text| format!("{text}: "));
                format!("{version}{}", peer.told)
            }
        };
        comparison.told.push((peer.name.to_owned(), told));
    }
    for round in 0..comparison.rounds {
        eprintln!("ayre: beside others, round {} of {}", round + 1, comparison.rounds);
        comparison.add_own(own_round(args)?);
        present.retain(|peer| comparison.add_peer(peer, &cores));
    }
    Ok(comparison)
}

/// Ayre's own figures of a round.
fn own_round(args: &Args) -> Result<Vec<Figure>> {
    let kept = Kept::create()?;
    let list = |words: Vec<String>| words.join(",");
    let mut words: Vec<OsString> = ["perf", "--quick", "--unprinted"].map(OsString::from).into();
    words.extend(["--reps".into(), "5".into(), "--mode".into(), args.mode.name().into()]);
    words.extend(["--bind".into(), (&args.bind).into()]);
    let operations = OPERATIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
    words.extend(["--op".into(), list(operations).into()]);
    let sizes = SIZES.iter().map(usize::to_string).collect();
    words.extend(["--size".into(), list(sizes).into()]);
    words.extend(args.fifo.then(|| "--fifo".into()));
    let ended = launch::ranks_with(args, words, 2, Some(&kept))?;
    ensure!(ended.code == ExitCode::SUCCESS, "the ranks of a round have failed");
    kept.figures().context("the figures of a round")
}

impl Comparison {
    fn add_own(&mut self, figures: Vec<Figure>) {
        for figure in figures.iter().filter(|figure| figure.path != "loopback") {
            let Some((_, name)) = OPERATIONS.iter().find(|(op, _)| *op == figure.op) else {
                continue;
            };
            let is_latency = figure.metric == "latency";
            if !is_latency && figure.size < STREAMED_FROM {
                continue;
            }
            let reading = |value| Reading { is_latency, size: figure.size, value };
            self.add(name, false, reading(figure.value));
            let limit = format!("limit: {}", figure.raw_op.trim_start_matches("raw-"));
            self.add(&limit, true, reading(figure.raw));
        }
        self.figures.extend(figures);
    }

    /// Whether the peer may take part in the next round.
    fn add_peer(&mut self, peer: &Peer, cores: &[usize]) -> bool {
        match (peer.round)(cores) {
            Ok(readings) => {
                readings.into_iter().for_each(|reading| self.add(peer.name, false, reading));
                true
            }
            Err(error) => {
                eprintln!("ayre: {}: {error:#}", peer.name);
                let told = self.told.iter_mut().filter(|(name, _)| name == peer.name);
                told.for_each(|(_, told)| *told = format!("did not work: {error:#}"));
                false
            }
        }
    }

    fn add(&mut self, name: &str, is_limit: bool, reading: Reading) {
        let Reading { is_latency, size, value } = reading;
        let is_it = |one: &Compared| one.name == name && one.is_latency == is_latency;
        let at = self.series.iter().position(is_it).unwrap_or_else(|| {
            let (name, readings) = (name.to_owned(), BTreeMap::new());
            self.series.push(Compared { name, is_limit, is_latency, readings });
            self.series.len() - 1
        });
        self.series[at].readings.entry(size).or_default().push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_a_reading_for_each_round() {
        let mut comparison = Comparison::default();
        for value in [300.0, 200.0, 900.0] {
            comparison.add("UCX", false, Reading { is_latency: true, size: 8, value });
            comparison.add("UCX", false, Reading { is_latency: false, size: 8, value: 1.0 });
        }
        let [latency, bandwidth] = &comparison.series[..] else { panic!("{comparison:?}") };
        assert_eq!(latency.medians().collect::<Vec<_>>(), [(8, 300.0)]);
        assert_eq!(bandwidth.readings[&8], [1.0; 3]);
    }

    #[test]
    fn a_peer_that_fails_is_told_and_left_out() {
        let peer = Peer { round: |_| anyhow::bail!("no memory"), ..ucx::PEER };
        let mut comparison = Comparison::default();
        comparison.told.push((peer.name.to_owned(), "present".to_owned()));
        assert!(!comparison.add_peer(&peer, &[]));
        assert_eq!(comparison.told[0].1, "did not work: no memory");
        assert!(comparison.series.is_empty());
    }
}

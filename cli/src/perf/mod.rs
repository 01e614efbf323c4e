//! `ayre perf`: latency, rate and bandwidth of every operation, beside the machine's own limits.
//!
//! The command starts copies of itself, the ranks: two with a core each for most cases, more where
//! it takes more. All walk through the same list of cases; rank 0 measures and prints, the others
//! mirror. Each repetition of an operation follows a repetition of its limit, so that what slows
//! the machine for a while slows both, and the ratio stays. `--net` does the same over a network.

use std::fs::{File, OpenOptions};
use std::io::{LineWriter, Stdout, stdout};
use std::path::{Path as FilePath, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

mod case;
mod catalogue;
mod kept;
mod languages;
mod launch;
mod names;
mod net;
mod ops;
mod page;
mod peers;
mod raw;
mod report;
mod runner;
mod side;
pub(crate) mod stats;

use case::{Case, Path};
use catalogue::Job;
use kept::Kept;
use page::Setting;
use report::{Format, Report, Row};
use runner::{Plan, Runner};
use side::Side;
use side::shared::{RawShared, layout};

/// Measures every operation beside the machine's own limits.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "What the columns mean: docs/reading-the-numbers.md")]
pub(crate) struct Args {
    /// Only operations whose name contains one of these (raw-ring, put, latency)
    #[arg(long = "op", value_name = "PATTERN", value_delimiter = ',')]
    ops: Vec<String>,

    /// Print the names of all operations, and what it takes to measure them
    #[arg(long)]
    list: bool,

    /// These sizes in bytes instead of the sweep (8, 4K, 1M)
    #[arg(long = "size", value_name = "BYTES", value_delimiter = ',', value_parser = parse_size)]
    sizes: Vec<usize>,

    /// How operations are executed
    #[arg(long, value_enum, default_value_t = Mode::Direct)]
    mode: Mode,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,

    /// Write a page for a browser, too: charts by size beside the limits, and the machine
    ///
    /// The page is one file that fetches nothing. Where messages between two processes are
    /// measured, it compares them with those of other libraries whose tools are installed:
    /// ucx_perftest, fi_pingpong, and mpirun with mpicc. All run by turns, and take a minute more.
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    report: Option<PathBuf>,

    /// Leave other libraries out of the page
    #[arg(long, requires = "report")]
    no_peers: bool,

    /// Measure only messages beside other libraries, and draw their latency by size as an SVG file
    ///
    /// The medians are printed as a table, too.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["list", "report", "ops", "sizes", "json", "procs", "net"]
    )]
    chart: Option<PathBuf>,

    /// Repetitions of each figure [default: 31, quick: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    reps: Option<u32>,

    /// Short repetitions: a first look
    #[arg(long)]
    quick: bool,

    /// The cores of the ranks: all usable ones in turn, or a list such as 0,1
    #[arg(long, value_name = "CORES", default_value = "cores")]
    bind: String,

    /// Run in the realtime class SCHED_FIFO, undisturbed by other programs (needs root)
    #[arg(long)]
    fifo: bool,

    /// Measure N processes beside two, where N may be more than there are cores
    #[arg(long, value_name = "N", value_parser = parse_procs)]
    procs: Option<usize>,

    #[command(flatten)]
    net: net::Options,

    /// The inherited descriptor of the raw shared memory: this is a rank
    #[arg(long, value_name = "FD", hide = true)]
    shared_fd: Option<u32>,

    /// The inherited descriptor of the memory that figures are kept in
    #[arg(long, value_name = "FD", hide = true)]
    kept_fd: Option<u32>,

    /// Figures are kept, and not printed
    #[arg(long, hide = true)]
    unprinted: bool,

    /// Is a rank of the program that is measured in each language
    #[arg(long, hide = true)]
    same: bool,
}

/// The processor that executes operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The initiator, straight into the target's memory
    Direct,
    /// The target's engine
    Mediated,
}

/// Starts the ranks, or is one of them.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    if let Some(fd) = args.shared_fd {
        return run_rank(&args, fd);
    }
    if args.same {
        languages::run()?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        return print(&names::list());
    }
    if let Some(refusal) = names::refusal(&args) {
        eprint!("ayre: {refusal}");
        return Ok(ExitCode::from(NOTHING));
    }
    if let Some(path) = args.report.as_ref().or(args.chart.as_ref()) {
        // One that cannot be written is refused before anything is measured.
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.with_context(|| format!("could not write {}", path.display()))?;
    }
    if let Some(path) = &args.chart {
        let comparison = peers::compare(&args)?;
        let chart = page::latency_file(&comparison)?;
        std::fs::write(path, chart).with_context(|| path.display().to_string())?;
        return print(&page::latency_table(&comparison).markdown());
    }
    let kept = args.report.is_some().then(Kept::create).transpose()?;
    report(&args).titles()?;
    let mut rows = 0;
    for job in Job::all(&args) {
        let ended = launch::ranks(&args, job.ranks(), kept.as_ref())?;
        if ended.code != ExitCode::SUCCESS {
            return Ok(ended.code);
        }
        rows += ended.rows;
    }
    if rows == 0 {
        eprintln!(
            "ayre: nothing of these names is measured at these sizes (see it without --size)"
        );
        return Ok(ExitCode::from(NOTHING));
    }
    if let (Some(path), Some(kept)) = (&args.report, &kept) {
        write_page(&args, path, kept)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws what was measured.
fn write_page(args: &Args, path: &FilePath, kept: &Kept) -> Result<()> {
    let mut figures = kept.figures()?;
    let is_network = args.net.is_on();
    let between = match (is_network, args.procs) {
        (true, _) => "ports of two hosts, as far as the network knows",
        (false, Some(_)) => "processes of this host",
        (false, None) => "two processes of this host, but where more ranks are named",
    };
    let mut page = page::begun();
    let is_compared = !is_network && args.procs.is_none() && !args.no_peers;
    let compared = (is_compared && peers::are_asked_for(args)).then(|| peers::compare(args));
    let compared = compared.transpose()?;
    if let Some(comparison) = &compared {
        page::add_comparison(&mut page, comparison)?;
    }
    if is_compared && languages::are_asked_for(args) {
        page::add_languages(&mut page, &languages::compare(args)?);
    }
    page::add_figures(&mut page, &figures)?;
    figures.extend(compared.into_iter().flat_map(|comparison| comparison.figures));
    page::add_machine(
        &mut page,
        &Setting { between, is_network, bind: args.bind.clone() },
        &figures,
    );
    page.write(path)
}

/// The code where there is nothing to measure, as for any other command line that makes no sense.
const NOTHING: u8 = 2;

fn print(text: &str) -> Result<ExitCode> {
    crate::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Args) -> Report<LineWriter<Stdout>> {
    Report::new(LineWriter::new(stdout()), if args.json { Format::Json } else { Format::Table })
}

fn run_rank(args: &Args, fd: u32) -> Result<ExitCode> {
    let (rank, ranks) = (variable("AYRE_RANK")?, variable("AYRE_SIZE")?);
    ensure!(rank < ranks && ranks <= layout::MAX_RANKS, "rank {rank} of {ranks}");
    let cores = variable("AYRE_PROCESSORS")
        .or_else(|_| Ok::<_, anyhow::Error>(available_parallelism()?.get()))?;
    args.net.enter(rank)?;
    if args.fifo {
        side::realtime::enter().context("could not enter the realtime class (are you root?)")?;
    }
    let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/self/fd/{fd}"))?;
    let shared = RawShared::map(memory).context("could not map the shared memory")?;
    let side = Side::new(&shared, rank, ranks, cores);
    let plan = match args.quick {
        true => Plan::quick(args.reps.unwrap_or(5) as usize),
        false => Plan::full(args.reps.unwrap_or(31) as usize),
    };
    match args.net.is_on() {
        true => net::measure_all(args, side, plan)?,
        false => measure_all(args, Job::of_rank(args, ranks), side, plan)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A number from the launcher.
fn variable(name: &str) -> Result<usize> {
    let text = std::env::var(name).with_context(|| format!("{name} is not set"))?;
    text.parse().with_context(|| format!("{name} is no number"))
}

/// All ranks measure; rank 0 prints.
fn measure_all(args: &Args, job: Job, side: Side<'_>, plan: Plan) -> Result<()> {
    let mut printer = Printer::new(args, &side)?;
    let mut runner = Runner::new(side, plan);
    for &kind in job.limits() {
        for size in wanted_sizes(args, runner.raw(kind)) {
            printer.print(&runner.measure_raw(kind, size)?)?;
        }
    }
    for mut case in job.operations(args.mode)? {
        for size in wanted_sizes(args, &*case) {
            printer.print(&runner.measure(&mut *case, size)?)?;
        }
    }
    printer.end(runner.side());
    Ok(())
}

/// Where a rank's rows go: rank 0 prints them.
struct Printer {
    report: Option<Report<LineWriter<Stdout>>>,
    kept: Option<Report<File>>,
    rows: u64,
}

impl Printer {
    fn new(args: &Args, side: &Side<'_>) -> Result<Self> {
        let kept = args.kept_fd.filter(|_| side.measures()).map(Kept::open).transpose()?;
        let kept = kept.map(|file| Report::new(file, Format::Json));
        let is_printed = side.measures() && !args.unprinted;
        Ok(Self { report: is_printed.then(|| report(args)), kept, rows: 0 })
    }

    fn print(&mut self, row: &Row) -> Result<()> {
        debug_assert!(names::has(row.op), "{} is missing in the list", row.op);
        self.rows += 1;
        self.kept.as_mut().map_or(Ok(()), |kept| kept.row(row))?;
        self.report.as_mut().map_or(Ok(()), |report| Ok(report.row(row)?))
    }

    /// Tells the process that has started the ranks how many rows there were.
    fn end(self, side: &Side<'_>) {
        if side.measures() {
            side.tell_rows(self.rows);
        }
    }
}

impl Args {
    /// Whether a case of this name is asked for, and not just all.
    fn asks_for(&self, case: &str) -> bool {
        !self.ops.is_empty() && self.names(case)
    }

    /// Whether a case of this name is asked for.
    fn names(&self, case: &str) -> bool {
        self.ops.is_empty() || self.ops.iter().any(|op| case.contains(op.as_str()))
    }
}

/// The sizes at which a case is to be measured: none if it is not asked for.
fn wanted_sizes(args: &Args, case: &dyn Case) -> Vec<usize> {
    let named = args.names(case.name());
    let sweep = case.sizes();
    match (sweep.first(), sweep.last()) {
        (Some(first), Some(last)) if named => {
            if args.sizes.is_empty() {
                return sweep.to_vec();
            }
            let range = first..=last;
            args.sizes.iter().copied().filter(|size| range.contains(&size)).collect()
        }
        _ => Vec::new(),
    }
}

impl Mode {
    /// How the report names it.
    fn path(self) -> Path {
        match self {
            Self::Direct => Path::Direct,
            Self::Mediated => Path::Mediated,
        }
    }

    /// The launcher's word for it.
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Mediated => "mediated",
        }
    }
}

/// A job's ranks beside two.
fn parse_procs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(procs) if (2..=layout::MAX_RANKS).contains(&procs) => Ok(procs),
        _ => Err(format!("expected a number from 2 to {}", layout::MAX_RANKS)),
    }
}

/// Bytes, with K and M for their powers of 1024.
fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let number: usize = digits.parse().map_err(|_| "expected a number such as 8, 4K or 1M")?;
    number.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("8"), Ok(8));
        assert_eq!(parse_size("4K"), Ok(4096));
        assert_eq!(parse_size("16m"), Ok(16 << 20));
        assert!(parse_size("K").is_err());
        assert!(parse_size("").is_err());
        assert!(parse_size("-1").is_err());
        assert!(parse_size(&format!("{}M", usize::MAX)).is_err());
    }
}

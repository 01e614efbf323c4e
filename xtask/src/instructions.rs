//! Instruction counts: what each hot operation costs under callgrind, held against its limit.
//!
//! The program under test runs each case twice, with different counts of operations; the
//! difference leaves set-up and tear-down out. Counts do not depend on how busy the machine is.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

/// A program that runs cases, and their limits: a case and its instructions per operation in each
/// line.
struct Suite {
    package: &'static str,
    /// An example of the package, or a file of C over the package's library.
    program: Program,
    limits: &'static str,
    /// The factor on the operations of the longer run, for a set-up whose cost varies.
    times: u64,
    /// A library that the program loads before the C library, with what tells it not to spin.
    preload: Option<&'static str>,
}

enum Program {
    Example(&'static str),
    C(&'static str),
}

const SUITES: [Suite; 6] = [
    Suite {
        package: "ayre",
        program: Program::Example("instructions"),
        limits: "engine/instructions.txt",
        times: 1,
        preload: None,
    },
    Suite {
        package: "ayre-provider",
        program: Program::Example("calls"),
        limits: "provider/instructions.txt",
        // Entropy is gathered until there is enough.
        times: 10,
        preload: None,
    },
    Suite {
        package: "ayre-ucp",
        program: Program::Example("ucp_calls"),
        limits: "ucp/instructions.txt",
        times: 10,
        preload: None,
    },
    Suite {
        package: "ayre-sim",
        program: Program::Example("speed"),
        limits: "sim/instructions.txt",
        // Queues fill first.
        times: 5,
        preload: None,
    },
    Suite {
        package: "ayre-capi",
        program: Program::C("capi/measurements/instructions.c"),
        limits: "capi/instructions.txt",
        times: 1,
        preload: None,
    },
    Suite {
        package: "ayre-sockets",
        program: Program::Example("socket_calls"),
        limits: "sockets/instructions.txt",
        // Until the reader is known to wait, messages go by the kernel.
        times: 10,
        preload: Some("libayre_sockets.so"),
    },
];

/// A limit this far above the count can be lowered.
const SLACK: f64 = 0.10;

#[derive(Args)]
pub(crate) struct Options {
    /// The cases to run; all when none is named.
    cases: Vec<String>,
    /// Operations in the shorter run.
    #[arg(long, default_value_t = 1000)]
    low: u64,
    /// Operations in the longer run.
    #[arg(long, default_value_t = 21_000)]
    high: u64,
}

/// Runs the cases and prints a table of each suite; false when one is over its limit.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool> {
    ensure!(options.low < options.high, "--low must be less than --high");
    let suites = SUITES.iter().map(|suite| Ok((suite, suite.limits(root)?)));
    let mut suites = suites.collect::<Result<Vec<_>>>()?;
    for case in &options.cases {
        let is_known = suites.iter().flat_map(|(_, limits)| limits).any(|it| it.case == *case);
        ensure!(is_known, "case {case} has no limit");
    }
    for (_, limits) in &mut suites {
        limits.retain(|limit| options.cases.is_empty() || options.cases.contains(&limit.case));
    }
    suites.retain(|(_, limits)| !limits.is_empty());
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |path| root.join(path));
    build(root, suites.iter().map(|(suite, _)| *suite))?;
    let mut is_within = true;
    for (suite, limits) in suites {
        is_within &= suite.run(root, &target, options, limits)?;
    }
    Ok(is_within)
}

/// Builds the suites together, so that what they share is compiled once. The libraries, too: some
/// programs load them, and those in C are linked with theirs.
fn build<'a>(root: &Path, suites: impl Iterator<Item = &'a Suite>) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--lib"]).current_dir(root);
    for suite in suites {
        command.args(["-p", suite.package]);
        if let Program::Example(name) = suite.program {
            command.args(["--example", name]);
        }
    }
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "the programs under test do not build");
    Ok(())
}

impl Suite {
    fn limits(&self, root: &Path) -> Result<Vec<Limit>> {
        let path = root.join(self.limits);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        parse_limits(&text).with_context(|| path.display().to_string())
    }

    fn run(
        &self,
        root: &Path,
        target: &Path,
        options: &Options,
        limits: Vec<Limit>,
    ) -> Result<bool> {
        let binary = self.binary(root, target)?;
        let profiles = target.join("instructions");
        fs::create_dir_all(&profiles).context("making the folder for the profiles")?;
        let (low, high) = (options.low, options.high * self.times);
        let mut counts = Vec::new();
        for limit in limits {
            let preload = self.preload.map(|library| target.join("release").join(library));
            let count = |operations| {
                count((&binary, preload.as_deref()), &limit.case, operations, &profiles)
            };
            // Both runs at once: each has a processor, and counts do not depend on the other.
            let (fewer, more) = std::thread::scope(|scope| {
                let fewer = scope.spawn(|| count(low));
                let more = count(high);
                (fewer.join(), more)
            });
            let fewer = fewer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let cost = per_operation((low, fewer), (high, more?))?;
            counts.push((limit, cost));
        }
        print!("{}", table(&counts));
        let profiles = profiles.display();
        println!("profiles: callgrind_annotate {profiles}/<case>.{high}.out");
        Ok(counts.iter().all(|(limit, cost)| verdict(limit, *cost) != Verdict::Over))
    }

    /// The program, which has been built unless it is in C.
    fn binary(&self, root: &Path, target: &Path) -> Result<PathBuf> {
        let target = target.join("release");
        match self.program {
            Program::Example(name) => Ok(target.join("examples").join(name)),
            Program::C(file) => compile(root, file, &target),
        }
    }
}

/// Compiles a program in C over the library for C.
fn compile(root: &Path, file: &str, target: &Path) -> Result<PathBuf> {
    let program = target.join("c-instructions");
    let status = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-o"])
        .args([&program, &root.join(file), &target.join("libayre_c.a")])
        .arg("-I")
        .arg(root.join("capi/include"))
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lrt"])
        .status()
        .context("starting cc")?;
    ensure!(status.success(), "{file} does not compile");
    Ok(program)
}

#[derive(Debug, PartialEq)]
struct Limit {
    case: String,
    instructions: f64,
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Within,
    Over,
    /// The limit could be this low.
    Loose(f64),
}

/// Reads lines of a case and its limit; `#` begins a comment.
fn parse_limits(text: &str) -> Result<Vec<Limit>> {
    let mut limits: Vec<Limit> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let words: Vec<&str> =
            line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let &[case, limit] = &words[..] else {
            ensure!(words.is_empty(), "line {number}: expected a case and its limit");
            continue;
        };
        let instructions: f64 =
            limit.parse().with_context(|| format!("line {number}: {limit} is no number"))?;
        ensure!(instructions > 0.0, "line {number}: a limit is more than nothing");
        ensure!(limits.iter().all(|limit| limit.case != case), "line {number}: {case} again");
        limits.push(Limit { case: case.to_owned(), instructions });
    }
    ensure!(!limits.is_empty(), "there is no limit in it");
    Ok(limits)
}

/// The instructions of one run, read from the profile that it leaves in `profiles`.
fn count(
    (binary, preload): (&Path, Option<&Path>),
    case: &str,
    operations: u64,
    profiles: &Path,
) -> Result<u64> {
    let profile = profiles.join(format!("{case}.{operations}.out"));
    let mut command = Command::new("valgrind");
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library).env("AYRE_SOCKETS_SPIN", "0");
    }
    let output = command
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(binary)
        .arg(case)
        .arg(operations.to_string())
        .output()
        .context("starting valgrind (`make install-deps` installs it)")?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("case {case} with {operations} operations: {}\n{errors}", output.status);
    }
    let text = fs::read_to_string(&profile).with_context(|| profile.display().to_string())?;
    total(&text).with_context(|| format!("{}: no total in it", profile.display()))
}

/// The sum over all threads that callgrind writes at the end of a profile.
fn total(profile: &str) -> Option<u64> {
    let totals = profile.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    totals.split_whitespace().next()?.parse().ok()
}

fn per_operation((low, fewer): (u64, u64), (high, more): (u64, u64)) -> Result<f64> {
    let difference = more.checked_sub(fewer).context("more operations took fewer instructions")?;
    Ok(difference as f64 / (high - low) as f64)
}

fn verdict(limit: &Limit, cost: f64) -> Verdict {
    if cost > limit.instructions {
        Verdict::Over
    } else if cost < limit.instructions * (1.0 - SLACK) {
        Verdict::Loose(cost.ceil())
    } else {
        Verdict::Within
    }
}

fn table(counts: &[(Limit, f64)]) -> String {
    let mut text =
        format!("{:<28} {:>12} {:>12}\n", "instructions per operation", "count", "limit");
    for (limit, cost) in counts {
        let note = match verdict(limit, *cost) {
            Verdict::Within => String::new(),
            Verdict::Over => "  OVER".to_owned(),
            Verdict::Loose(lower) => format!("  the limit could be {lower}"),
        };
        let Limit { case, instructions } = limit;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{case:<28} {cost:>12.1} {instructions:>12.1}{note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(case: &str, instructions: f64) -> Limit {
        Limit { case: case.to_owned(), instructions }
    }

    #[test]
    fn limits_are_read() {
        let text = "# case limit\nput 41\n\nsend.short  52.5 # one line\n";
        assert_eq!(parse_limits(text).unwrap(), [limit("put", 41.0), limit("send.short", 52.5)]);
    }

    #[test]
    fn bad_limits_are_refused() {
        for bad in ["", "put\n", "put 1 2\n", "put x\n", "put 0\n", "put NaN\n", "put 1\nput 2\n"] {
            assert!(parse_limits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_total_is_the_last_one() {
        let profile = "events: Ir\nfn=(1) main\n12 3\n\ntotals: 123456\n";
        assert_eq!(total(profile), Some(123_456));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn set_up_is_left_out() {
        let cost = per_operation((1000, 50_000), (3000, 130_000)).unwrap();
        assert!((cost - 40.0).abs() < 1e-9);
        assert!(per_operation((1000, 2), (3000, 1)).is_err());
    }

    #[test]
    fn verdicts() {
        assert_eq!(verdict(&limit("put", 40.0), 40.0), Verdict::Within);
        assert_eq!(verdict(&limit("put", 40.0), 40.1), Verdict::Over);
        assert_eq!(verdict(&limit("put", 40.0), 35.2), Verdict::Loose(36.0));
    }

    #[test]
    fn the_table_marks_figures_over_their_limit() {
        let text = table(&[(limit("put", 40.0), 41.0), (limit("get", 40.0), 20.0)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("put") && lines[1].ends_with("OVER"));
        assert!(lines[2].ends_with("the limit could be 20"));
    }
}

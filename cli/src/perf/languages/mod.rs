//! The cost of a language: the time of an operation that is called from it. One program is written
//! in Rust, C and Python. The three run by turns on the same cores.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};

mod same;

pub(super) use same::run;

use super::peers::child::{self, Folder};
use super::stats::median;
use super::{Args, report::three_digits};
use crate::page::Table;

const PROGRAM_C: &str = include_str!("same.c");
const PROGRAM_PYTHON: &str = include_str!("same.py");

/// A row. The programs print its time in nanoseconds under their name for it.
struct Operation {
    printed: &'static str,
    name: &'static str,
    unit: &'static str,
    value: fn(f64) -> f64,
}

const OPERATIONS: [Operation; 5] = [
    Operation {
        printed: "there-and-back",
        name: "message of 8 bytes, one way",
        unit: "ns",
        value: |ns| ns / 2.0,
    },
    Operation { printed: "put", name: "put of 8 bytes", unit: "ns", value: |ns| ns },
    Operation { printed: "fetch-add", name: "fetch-add", unit: "ns", value: |ns| ns },
    Operation {
        printed: "put-large",
        name: "put of 1 MiB",
        unit: "GB/s",
        value: |ns| f64::from(1 << 20) / ns,
    },
    Operation {
        printed: "message",
        name: "messages of 8 bytes, behind each other",
        unit: "M/s",
        value: |ns| 1e3 / ns,
    },
];

/// A language, and the way to its program: a command, or the reason why there is none.
struct Language {
    name: &'static str,
    command: fn(&Folder) -> Result<Vec<OsString>>,
}

const LANGUAGES: [Language; 3] = [
    Language { name: "Rust", command: rust },
    Language { name: "C", command: c },
    Language { name: "Python", command: python },
];

/// The figures of all languages.
#[derive(Debug, Default)]
pub(super) struct Languages {
    /// Nanoseconds of each round, for each language and operation.
    times: [[Vec<f64>; OPERATIONS.len()]; LANGUAGES.len()],
    /// The reason why a language has no figures.
    pub(super) absent: Vec<(&'static str, String)>,
    pub(super) rounds: usize,
}

/// Whether something is asked for that the programs measure as well.
pub(super) fn are_asked_for(args: &Args) -> bool {
    let operations =
        ["message-latency", "put-latency", "fetch-add-latency", "put-bandwidth", "message-rate"];
    operations.iter().any(|operation| args.names(operation))
}

/// Measures the languages that are there, by turns.
pub(super) fn compare(args: &Args) -> Result<Languages> {
    let folder = Folder::create()?;
    let mut found = Languages { rounds: if args.quick { 2 } else { 5 }, ..Languages::default() };
    let mut commands = LANGUAGES.map(|language| (language.command)(&folder));
    for round in 0..found.rounds {
        eprintln!("ayre: three languages, round {} of {}", round + 1, found.rounds);
        for (language, command) in commands.iter_mut().enumerate() {
            let Ok(words) = command else { continue };
            match job(args, words) {
                Ok(said) => found.add(language, &said),
                Err(error) => *command = Err(error),
            }
        }
    }
    for (language, command) in LANGUAGES.iter().zip(&commands) {
        if let Err(why) = command {
            found.absent.push((language.name, why.to_string()));
        }
    }
    Ok(found)
}

fn rust(_folder: &Folder) -> Result<Vec<OsString>> {
    Ok(vec![std::env::current_exe()?.into(), "perf".into(), "--same".into()])
}

fn c(folder: &Folder) -> Result<Vec<OsString>> {
    let flags = |what: &[&str]| -> Result<Vec<OsString>> {
        let said = child::run(Command::new("pkg-config").args(what).arg("ayre"));
        let said = said.context(
            "pkg-config does not find ayre: `make install` or the package libayre-dev installs it",
        )?;
        Ok(said.split_whitespace().map(OsString::from).collect())
    };
    let (source, program) = (folder.path().join("same.c"), folder.path().join("same"));
    std::fs::write(&source, PROGRAM_C)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-D_GNU_SOURCE", "-o"]).arg(&program).arg(&source);
    compiler.args(flags(&["--cflags", "--libs"])?);
    for folder in flags(&["--variable=libdir"])? {
        compiler.arg("-Wl,-rpath").arg("-Xlinker").arg(folder);
    }
    child::run(&mut compiler).context("cc does not compile the program: install gcc")?;
    Ok(vec![program.into()])
}

fn python(_folder: &Folder) -> Result<Vec<OsString>> {
    let import = ["-c", "import ayre; ayre.Port"];
    child::run(Command::new("python3").args(import)).context(
        "python3 does not find the package ayre: `pip install ./python` or a wheel installs it",
    )?;
    Ok(["python3", "-c", PROGRAM_PYTHON].map(OsString::from).into())
}

/// Runs a program as two ranks, and returns what they say.
fn job(args: &Args, words: &[OsString]) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["run", "-n", "2", "--mode", args.mode.name(), "--bind", &args.bind, "--"]);
    child::run(command.args(words))
}

impl Languages {
    /// Adds a round: lines such as `put 12.3`.
    fn add(&mut self, language: usize, said: &str) {
        for line in said.lines() {
            let mut words = line.split_whitespace();
            let named = words.next();
            let at = OPERATIONS.iter().position(|one| named == Some(one.printed));
            if let (Some(at), Some(Ok(time))) = (at, words.next().map(str::parse)) {
                self.times[language][at].push(time);
            }
        }
    }

    /// The medians, and how many times that of Rust each takes.
    pub(super) fn table(&self) -> Table {
        let names = LANGUAGES.map(|language| language.name);
        let ratios = names[1..].iter().map(|name| format!("{name} / Rust, time"));
        let heads = ["operation", "unit"].into_iter().chain(names).map(str::to_owned);
        let mut table = Table::new(heads.chain(ratios));
        for (at, operation) in OPERATIONS.iter().enumerate() {
            let times = self.times.each_ref().map(|of| median(&of[at]));
            let value = |time: &Option<f64>| {
                time.map_or_else(|| "-".to_owned(), |time| three_digits((operation.value)(time)))
            };
            let ratio = |time: &Option<f64>| match (time, times[0]) {
                (Some(time), Some(rust)) if rust > 0.0 => three_digits(time / rust),
                _ => "-".to_owned(),
            };
            let mut line = vec![operation.name.to_owned(), operation.unit.to_owned()];
            line.extend(times.iter().map(value).chain(times[1..].iter().map(ratio)));
            table.lines.push(line);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_medians_of_all_languages_and_their_ratios() {
        let mut found = Languages::default();
        for said in ["there-and-back 400\nput 10.0\n", "put 20\nput-large x\n", "put 90\n"] {
            found.add(0, said);
        }
        found.add(1, "ayre: a warning\nput 25\nput-large 1048576\n");
        let lines = found.table().lines;
        assert_eq!(lines[0][1..], ["ns", "200", "-", "-", "-", "-"]);
        assert_eq!(lines[1][1..], ["ns", "20.0", "25.0", "-", "1.25", "-"]);
        assert_eq!(lines[3][1..], ["GB/s", "-", "1.00", "-", "-", "-"]);
    }
}

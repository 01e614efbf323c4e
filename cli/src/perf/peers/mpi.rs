//! MPI, by a program that is compiled here.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};

use super::child::{Folder, line_of, run};
use super::{Peer, Reading, SIZES, STREAMED_FROM};

const COMPILER: &str = "mpicc";
const LAUNCHER: &str = "mpirun";
/// The program that measures MPI: bench/mpi.c, by a link that goes into packages as a file.
const PROGRAM: &str = include_str!("mpi.c");

pub(super) const PEER: Peer = Peer {
    name: "MPI",
    programs: &[COMPILER, LAUNCHER],
    told: "two ranks of bench/mpi.c, bound to cores, by the transport that it chooses itself",
    version,
    round,
};

fn version() -> Option<String> {
    line_of(LAUNCHER, &["--version"], "")
}

/// The cores are those that the launcher takes.
fn round(_cores: &[usize]) -> Result<Vec<Reading>> {
    let folder = Folder::create()?;
    let (source, program) = (folder.path().join("mpi.c"), folder.path().join("mpi"));
    fs::write(&source, PROGRAM)?;
    run(Command::new(COMPILER).args(["-O2", "-o"]).arg(&program).arg(&source))?;
    let mut launcher = Command::new(LAUNCHER);
    if version().is_some_and(|version| version.contains("Open MPI")) {
        launcher.args(["--host", "localhost:2", "--bind-to", "core"]);
        launcher.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        launcher.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    launcher.args(["-n", "2"]).arg(&program).arg("sizes");
    let said = run(launcher.args(SIZES.map(|size| size.to_string())))?;
    let readings = parse(&said);
    ensure!(!readings.is_empty(), "it has written: {said}");
    Ok(readings)
}

/// Lines such as `one-way-8 0.25 us` and `stream-4096 5.2 GB/s`.
fn parse(said: &str) -> Vec<Reading> {
    let reading = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, size) = words.next()?.rsplit_once('-')?;
        let (size, value) = (size.parse().ok()?, words.next()?.parse::<f64>().ok()?);
        match name {
            "one-way" => Some(Reading { is_latency: true, size, value: 1e3 * value }),
            "stream" if size >= STREAMED_FROM => Some(Reading { is_latency: false, size, value }),
            _ => None,
        }
    };
    said.lines().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_peer_program_is_parsed() {
        let said = "a warning-1 of 2\none-way-8 0.25 us\nstream-8 0.1 GB/s\nstream-4096 5.5 GB/s\n";
        let readings = [
            Reading { is_latency: true, size: 8, value: 250.0 },
            Reading { is_latency: false, size: 4096, value: 5.5 },
        ];
        assert_eq!(parse(said), readings);
    }
}

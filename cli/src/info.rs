//! `ayre info`: what this machine offers, which path connections would take, and why.

mod env;
pub(crate) mod links;
mod machine;
mod probe;
pub(crate) mod tables;

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use ayre::tuning::{ActiveTuning, active};
use serde::Serialize;

use self::machine::Fact;
use self::probe::Probe;

/// The arguments of `ayre info`.
#[derive(clap::Args)]
#[command(after_help = "What the columns of --links mean: docs/reading-the-numbers.md")]
pub(crate) struct Args {
    /// Tell of the links that running processes of this user have with other hosts
    ///
    /// Credit is the room for frames: of writes, of what is answered, and of answers. Buffers are
    /// the port's for frames that come: those that links have, reserved for links to come, left.
    #[arg(long)]
    links: bool,
    /// Tell all variables of the environment that Ayre reads, and what they are set to
    #[arg(long, conflicts_with = "links")]
    env: bool,
    /// Print JSON for programs to read
    #[arg(long)]
    json: bool,
}

/// Prints the report.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let text = match (args.links, args.env) {
        (true, _) => links::text(args.json)?,
        (_, true) => env::text(args.json)?,
        _ => Report::text(args.json)?,
    };
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The machine's name in its network.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Names of what the machine consists of, and what there is of each.
pub(crate) fn facts() -> Vec<(String, String)> {
    machine::facts().into_iter().map(|fact| (fact.name, fact.value)).collect()
}

#[derive(Serialize)]
struct Report {
    machine: Vec<Fact>,
    probes: Vec<Probe>,
    paths: Vec<Path>,
    tuning: Cutoffs,
}

/// By which methods many bytes are moved.
#[derive(Serialize)]
struct Cutoffs {
    /// The file they are from, or why from none.
    origin: String,
    /// In the words of the file.
    steps: Vec<String>,
}

/// The path that connections to one kind of peer take.
#[derive(Serialize)]
struct Path {
    peer: &'static str,
    /// None when there is no path.
    choice: Option<&'static str>,
    reason: String,
}

impl Report {
    fn make() -> Self {
        let probes = probe::probes();
        let paths = paths(&probes);
        Self { machine: machine::facts(), probes, paths, tuning: cutoffs() }
    }

    fn text(is_json: bool) -> Result<String> {
        let report = Self::make();
        Ok(if is_json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() })
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = self.machine.iter().map(|fact| fact.name.as_str());
        let width = names.chain(self.probes.iter().map(|probe| probe.name)).map(str::len).max();
        let width = width.unwrap_or(0);
        for fact in &self.machine {
            writeln!(f, "{:width$}  {}", fact.name, fact.value)?;
        }
        writeln!(f)?;
        for probe in &self.probes {
            let answer = if probe.available { "yes" } else { "no" };
            writeln!(f, "{:width$}  {answer:3}  {}", probe.name, probe.consequence)?;
        }
        writeln!(f)?;
        for path in &self.paths {
            writeln!(f, "{}: {} ({})", path.peer, path.choice.unwrap_or("none"), path.reason)?;
        }
        writeln!(f, "\ncut-offs: {}", self.tuning.origin)?;
        self.tuning.steps.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// The tuning of a port whose program has not set any. A file that cannot be used is reported here.
// spec: INJ-4
fn cutoffs() -> Cutoffs {
    match active() {
        Ok(ActiveTuning { tuning, origin }) => Cutoffs {
            origin: origin.to_string(),
            steps: tuning.to_string().lines().map(str::to_owned).collect(),
        },
        Err(error) => Cutoffs { origin: format!("no port can be opened: {error}"), steps: vec![] },
    }
}

fn paths(probes: &[Probe]) -> Vec<Path> {
    let has = |name: &str| probes.iter().any(|probe| probe.name == name && probe.available);
    let lacks = |needs: &[&'static str]| -> Vec<&'static str> {
        needs.iter().copied().filter(|name| !has(name)).collect()
    };
    let path = |peer, choice, needs: &[&'static str], reason: &str| match lacks(needs).as_slice() {
        [] => Path { peer, choice: Some(choice), reason: reason.to_owned() },
        lacking => Path { peer, choice: None, reason: format!("lacking: {}", lacking.join(", ")) },
    };
    vec![
        path(
            "same host, cooperating",
            "direct",
            &["memory", "descriptor passing"],
            "the initiator's processor copies straight into memory that the target handed over",
        ),
        path(
            "same host, not trusting",
            "mediated",
            &["memory", "descriptor passing", "seal of size"],
            "the target's engine checks and executes every operation; nothing else is shared",
        ),
        path(
            "other hosts",
            "mediated",
            &[],
            "the same through a link over UDP, and Ethernet where packet sockets are allowed; \
             encrypted and authenticated unless told otherwise",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_json_too() {
        let text = serde_json::to_string(&Report::make()).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let probes = report["probes"].as_array().unwrap();
        assert!(probes.iter().any(|probe| probe["name"] == "memory" && probe["available"] == true));
        assert_eq!(report["paths"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn the_report_lists_only_used_features() {
        let text = Report::make().to_string();
        for name in ["kernel copies", "packet sockets", "UDP segmentation", "AES instructions"] {
            assert!(text.contains(name), "{name} is missing in {text}");
        }
        for plan in ["io_uring", "not used", "not yet", "may serve"] {
            assert!(!text.contains(plan), "{plan} is no fact");
        }
    }

    #[test]
    fn an_unavailable_path_names_its_missing_feature() {
        let memory = Probe { name: "memory", available: true, consequence: String::new() };
        let passing =
            Probe { name: "descriptor passing", available: true, consequence: String::new() };
        let found = paths(&[memory, passing]);
        assert_eq!(found[0].choice, Some("direct"));
        assert_eq!(found[1].choice, None);
        assert_eq!(found[1].reason, "lacking: seal of size");
    }
}

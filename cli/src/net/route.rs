//! `ayre net route`: the ways of a routing through a topology from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use ayre_sim::routing::{Channel, Plan, Policy, RunLength, Survey};
use ayre_sim::topology::{Link, Named, Port, Topology};
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::info::tables::aligned;

/// Bytes of a file at most.
const FILE_MAX: u64 = 1 << 28;

/// How files and links are written.
pub(super) const FORMS: &str = "FILE is DOT (routers have shape=box, nodes shape=ellipse; vertices \
    without a shape are a router with a node), or has lines such as `router left 8`, \
    `link left:6 right` and `node a left`, and `end` at its end.\n\n\
    Exit status: 0; 2: the input has a fault; 3: packets may wait for each other in a ring, or \
    nodes have no way between them.";

/// The arguments of `ayre net route`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The topology
    file: PathBuf,
    /// Which way packets go
    #[arg(long, value_name = "NAME", value_parser = policies(), default_value = "shortest-path")]
    policy: Policy,
    /// Virtual channels of each link; of more than one, it is also told what one alone does
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    channels: u16,
    /// Links that have failed, between commas: ROUTER--ROUTER or ROUTER:PORT
    #[arg(long, value_name = "LINKS", value_delimiter = ',')]
    without: Vec<String>,
    /// Print tables and strings of this node alone
    #[arg(long, value_name = "NODE")]
    of: Option<String>,
    /// Print the topology that is left, as DOT, and nothing else
    #[arg(long)]
    dot: bool,
}

/// All policies by their names.
fn policies() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(Policy::NAMES.map(|(name, _)| name))
        .map(|wanted| Policy::named(&wanted).expect("no other name is possible"))
}

/// A link's two ends, as `ROUTER:PORT -> ROUTER:PORT`.
fn told(named: &Named, link: Link) -> String {
    let end = |port: Port| format!("{}:{}", named.routers[port.router as usize], port.port);
    format!("{} -> {}", end(link.from), end(link.to))
}

/// A topology with its routing.
struct Routing<'a> {
    named: &'a Named,
    plan: Plan<'a>,
    survey: Survey,
}

impl Args {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.route().or_else(|error| Ok(crate::refused(&error)))
    }

    /// All errors are those of the input.
    fn route(&self) -> Result<ExitCode> {
        let (named, failed) = self.read()?;
        if self.dot {
            crate::print(&named.to_dot())?;
            return Ok(ExitCode::SUCCESS);
        }
        let plan = Plan::new(&named.topology, self.policy, self.channels)?;
        let survey = Survey::new(&plan)?;
        let routing = Routing { named: &named, plan, survey };
        let mut text = format!("{}\n", self.file.display());
        text += &self.summary(&routing, failed)?;
        text += &routing.tables(self.of.as_deref())?;
        crate::print(&text)?;
        let is_well = routing.survey.ring.is_none() && routing.survey.unreachable.is_empty();
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(crate::BAD_NEWS) })
    }

    /// The topology without the links that have failed, and how many these are.
    fn read(&self) -> Result<(Named, usize)> {
        let mut named = read(&self.file)?;
        let failed = named.links(&self.without.join(",")).context("--without")?;
        named.topology = named.topology.without(&failed);
        Ok((named, failed.len()))
    }

    fn summary(&self, routing: &Routing<'_>, failed: usize) -> Result<String> {
        let Topology { ports, links, nodes, .. } = &routing.named.topology;
        let mut lines = Lines::default();
        lines.tell(
            "topology",
            &format!(
                "{} routers, {} nodes, {} links that go one way each, {failed} failed",
                ports.len(),
                nodes.len(),
                links.len()
            ),
        );
        lines.tell("routing", &format!("{}, {} virtual channels", self.policy, self.channels));
        routing.tell_ways(&mut lines);
        routing.tell_loads(&mut lines);
        routing.tell_ring(&mut lines, &routing.survey, self.channels);
        if self.channels > 1 {
            match self.without_channels(&routing.named.topology) {
                Ok(survey) => routing.tell_ring(&mut lines, &survey, 1),
                Err(error) => lines.tell("", &format!("with 1 virtual channel: {error}")),
            }
        }
        Ok(lines.text)
    }

    /// The survey of the routing if each link has one channel.
    fn without_channels(&self, topology: &Topology) -> Result<Survey> {
        // Another policy takes these ways by any channel.
        let policy = match self.policy {
            Policy::DimensionOrder => Policy::PlainDimensionOrder,
            other => other,
        };
        Ok(Survey::new(&Plan::new(topology, policy, 1)?)?)
    }
}

fn read(path: &Path) -> Result<Named> {
    let name = path.display().to_string();
    let read = || {
        let mut text = String::new();
        File::open(path)?.take(FILE_MAX).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let text = read().with_context(|| format!("could not read {name}"))?;
    Ok(Named::read(&name, &text)?)
}

/// Lines of a name and what is told.
#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn tell(&mut self, name: &str, told: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name:11}  {told}");
    }
}

impl Routing<'_> {
    fn tell_ways(&self, lines: &mut Lines) {
        let Survey { ways, longest, unreachable, .. } = &self.survey;
        let mean = self.survey.hops() as f64 / (*ways).max(1) as f64;
        lines.tell("ways", &format!("{ways}, of {mean:.2} links in the mean, {longest} at most"));
        if let Some((from, to)) = unreachable.first() {
            let [from, to] = [from, to].map(|node| &self.named.nodes[*node as usize]);
            let pairs = unreachable.len();
            let told = format!("{pairs} pairs of nodes: {from} to {to} is the first");
            lines.tell("no way", &told);
        }
    }

    fn tell_loads(&self, lines: &mut Lines) {
        let Survey { loads, .. } = &self.survey;
        let Some((busiest, most)) =
            loads.iter().enumerate().max_by_key(|(place, load)| (**load, usize::MAX - place))
        else {
            return;
        };
        let mean = self.survey.hops() as f64 / loads.len() as f64;
        let least = loads.iter().min().copied().unwrap_or_default();
        let link = self.named.topology.links[busiest];
        lines.tell(
            "loads",
            &format!(
                "{most} ways over {}; {mean:.2} in the mean, {least} at least",
                told(self.named, link)
            ),
        );
    }

    fn tell_ring(&self, lines: &mut Lines, survey: &Survey, channels: u16) {
        let with = match channels {
            1 => "with 1 virtual channel".to_owned(),
            _ => format!("with {channels} virtual channels"),
        };
        let Some(ring) = &survey.ring else {
            return lines.tell("deadlock", &format!("{with}: none, there is no ring of channels"));
        };
        let count = ring.len();
        lines.tell("deadlock", &format!("{with}: possible, {count} channels wait in a ring"));
        for Channel { link, channel } in ring {
            let link = told(self.named, self.named.topology.links[*link]);
            lines.tell("", &format!("{link}, channel {channel}"));
        }
    }

    /// Tables and strings, of one node or of all.
    fn tables(&self, of: Option<&str>) -> Result<String> {
        let nodes = &self.named.nodes;
        let of = match of {
            None => None,
            Some(name) => {
                let found = nodes.iter().position(|node| node == name);
                Some(found.with_context(|| format!("--of: there is no node `{name}`"))? as u32)
            }
        };
        let home = of.map(|node| self.named.topology.nodes[node as usize].inject.router);
        let mut strings = vec![head(&["from", "to", "string", "port:hops on channel 0+1"])];
        // The nodes that packets are sent to by each output of each router.
        let mut ports: BTreeMap<(u32, u16), BTreeSet<u32>> = BTreeMap::new();
        for (source, from) in (0..).zip(nodes) {
            for (target, to) in (0..).zip(nodes).filter(|(target, _)| *target != source) {
                let Some(way) = self.plan.way(source, target) else { continue };
                for step in way.iter().filter(|step| home.is_none_or(|home| home == step.router)) {
                    ports.entry((step.router, step.hop.port)).or_default().insert(target);
                }
                if of.is_none_or(|of| of == source) {
                    let (bits, told) = match RunLength::new(&way) {
                        Ok(string) => (format!("{:016x}", string.0), string.to_string()),
                        Err(error) => ("-".to_owned(), error.to_string()),
                    };
                    strings.push(vec![from.clone(), to.clone(), bits, told]);
                }
            }
        }
        let line = |((router, port), to): (&(u32, u16), &BTreeSet<u32>)| {
            let to: Vec<_> = to.iter().map(|node| nodes[*node as usize].as_str()).collect();
            vec![self.named.routers[*router as usize].clone(), port.to_string(), to.join(" ")]
        };
        let mut tables = vec![head(&["router", "port", "to nodes"])];
        tables.extend(ports.iter().map(line));
        Ok(format!("\n{}\n{}", aligned(&tables), aligned(&strings)))
    }
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

//! A point of a scenario: one value for each parameter, and what they make together.
use super::file::{Given, Place, Problem, ScenarioError};
use super::goal::Goal;
use super::interface::Trial;
use super::script::ScriptWork;
use super::table::{KEYS, Key, Need, ONE_SWITCH, index};
use super::units::Rate;
use super::value::{SATURATION, SCHEDULES, Value};
use crate::goal::{self, Hosts, LogGops, Packets, RunError, Schedule};
use crate::interface::{Model, Request, Setting};
use crate::link::LinkTiming;
use crate::network::{BuildError, Network, NodeQueue, Parameters, Readout, Switching};
use crate::routing::{Policy, RoutingError};
use crate::time::{Clock, Time};
use crate::topology::{Dragonfly, Named, Topology, TopologyError};
use crate::work::{Arrivals, Load, LoadError, Pattern, Sizes};
use std::path::Path;
use std::sync::Arc;

/// One value for each parameter.
#[derive(Clone, Debug)]
pub(super) struct Values(Vec<Given>);

/// A network with its work, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Routers, links and nodes.
    pub topology: Topology,
    /// Times and buffers.
    pub parameters: Parameters,
    /// The packets that nodes make.
    pub load: Load,
    /// The schedule that runs instead of the packets that nodes make, if there is one.
    pub goal: Option<Goal>,
    /// The operation of a single interface, if that is all.
    pub trial: Option<Trial>,
    /// The script that nodes carry out instead, if there is one.
    pub script: Option<ScriptWork>,
    /// Whether the greatest load is looked for that the network carries.
    pub search: bool,
    /// Packets of each replica that are delivered before the measurement.
    pub warmup: u64,
    /// Packets of each replica that are measured.
    pub packets: u64,
    /// Runs with seeds of their own.
    pub replicas: u32,
    /// The seed of the first one.
    pub seed: u64,
    /// Threads of each replica.
    pub parts: u32,
    /// Values that were rounded.
    pub notes: Vec<String>,
}

/// Queues of a network at most: each takes about 64 B.
const QUEUES_MAX: u64 = 1 << 25;

/// Loads that are tried to find the greatest one that a network carries: it is known to 1 / 128 of
/// a link's rate.
pub(super) const SEARCH_STEPS: u32 = 8;

impl Values {
    /// Completes what is given by the values of the table.
    pub(super) fn new(given: &[Option<Given>]) -> Self {
        let choice = |name| match &given[index(name)] {
            Some(own) => own.value.choice(),
            None => KEYS[index(name)].default.value(|_| ""),
        };
        let value = |(key, own): (&Key, &Option<Given>)| {
            own.clone().unwrap_or_else(|| {
                let text = key.default.value(choice).to_owned();
                let value = key.kind.read(&text, Path::new(""));
                let value = value.expect("the table's values are allowed");
                Given { value, text, place: Place::Default }
            })
        };
        Self(KEYS.iter().zip(given).map(value).collect())
    }

    fn of(&self, name: &str) -> &Given {
        &self.0[index(name)]
    }

    /// The text of a parameter's value.
    pub(super) fn text(&self, name: &str) -> String {
        self.of(name).text.clone()
    }

    pub(super) fn value(&self, name: &str) -> &Value {
        &self.of(name).value
    }

    pub(super) fn choice(&self, name: &str) -> &'static str {
        self.value(name).choice()
    }

    pub(super) fn number(&self, name: &str) -> u32 {
        u32::try_from(self.value(name).number()).unwrap_or(u32::MAX)
    }

    /// Whether a parameter is used with these values.
    pub(super) fn uses(&self, key: &Key) -> bool {
        let is_met = |(other, values): &Need| {
            values.contains(&self.choice(other)) && self.uses(&KEYS[index(other)])
        };
        key.needs.iter().all(is_met)
    }

    /// The names and texts of the parameters that are used, but for empty texts.
    pub(super) fn used(&self) -> Vec<(String, String)> {
        let told = |(key, given): &(&Key, &Given)| self.uses(key) && !given.text.is_empty();
        let all = KEYS.iter().zip(&self.0).filter(told);
        all.map(|(key, given)| (key.name.to_owned(), given.text.clone())).collect()
    }

    /// A fault that lies in some parameters: that which somebody gave is named.
    pub(super) fn fail(&self, keys: &[&str], problem: impl Into<Problem>) -> ScenarioError {
        let places = keys.iter().map(|name| &self.of(name).place);
        let place = places.into_iter().find(|place| **place != Place::Default);
        let place = place.unwrap_or(&Place::Default).clone();
        ScenarioError::new(place, problem)
    }

    /// Packets of all replicas, those of the warm-up included.
    pub(super) fn packets(&self) -> u64 {
        if self.choice("work") != "packets" {
            return 0;
        }
        let replica = self.value("warmup").number() + self.value("packets").number();
        let runs = if self.searches() { SEARCH_STEPS } else { 1 };
        u64::from(self.number("replicas") * runs) * replica
    }

    /// The network that these values make.
    pub(super) fn plan(&self) -> Result<Plan, ScenarioError> {
        let topology = self.topology()?;
        let (link, notes) = self.link()?;
        let parameters = self.parameters(&topology, link)?;
        let arrivals = self.arrivals(link.phit);
        let load =
            Load::new(self.pattern(&topology), self.sizes(), arrivals, self.offered(), &link);
        let load = load.map_err(|error| self.load_error(error))?;
        let goal = self.goal(&topology, &parameters)?;
        let trial = self.trial()?;
        let script = self.script(&topology, &parameters)?;
        Ok(Plan {
            topology,
            parameters,
            load,
            goal,
            trial,
            script,
            search: self.searches(),
            warmup: self.value("warmup").number(),
            packets: self.value("packets").number(),
            replicas: self.number("replicas"),
            seed: self.value("seed").number(),
            parts: self.number("parts"),
            notes,
        })
    }

    /// Checks that the network can be built: a fault is told before any network runs.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.plan()?.network(0).map_err(|error| self.build_error(error))?;
        Ok(())
    }

    fn topology(&self) -> Result<Topology, ScenarioError> {
        let named = self.named()?;
        let text = self.value("without").text();
        if text.is_empty() {
            return Ok(named.topology);
        }
        let failed = named.links(text).map_err(|error| self.fail(&["without"], error))?;
        Ok(named.topology.without(&failed))
    }

    /// The topology before links have failed. Its routers have no names where nobody asks for them.
    fn named(&self) -> Result<Named, ScenarioError> {
        let at = |keys: &'static [&'static str]| move |error: TopologyError| self.fail(keys, error);
        let nodes = self.number("nodes");
        let sides = self.value("sides").list();
        let (routers, router_nodes) = (self.number("routers"), self.number("router_nodes"));
        let topology = match self.choice("topology") {
            "switch" => Topology::switch(nodes).map_err(at(&["nodes"])),
            "mesh" => Topology::mesh(sides).map_err(at(&["sides"])),
            "torus" => Topology::torus(sides).map_err(at(&["sides"])),
            "hypercube" => {
                Topology::hypercube(self.number("dimensions")).map_err(at(&["dimensions"]))
            }
            "tree" => {
                let (half, levels) = (self.number("half"), self.number("levels"));
                Topology::tree(half, levels).map_err(at(&["half", "levels"]))
            }
            "full" => {
                Topology::full(routers, router_nodes).map_err(at(&["routers", "router_nodes"]))
            }
            "dragonfly" => {
                let globals = self.number("globals");
                let numbers = Dragonfly { routers, nodes: router_nodes, globals };
                let keys = &["routers", "router_nodes", "globals"];
                Topology::dragonfly(numbers).map_err(at(keys))
            }
            "ladder" => Topology::ladder(router_nodes).map_err(at(&["router_nodes"])),
            "file" => return self.of_file(),
            _ => Topology::star(nodes).map_err(at(&["nodes"])),
        }?;
        if self.value("without").text().is_empty() {
            return Ok(Named { topology, routers: vec![], nodes: vec![] });
        }
        Ok(Named::by_number(topology))
    }

    fn of_file(&self) -> Result<Named, ScenarioError> {
        if let Value::Topology(Some(named)) = self.value("file") {
            return Ok(Named::clone(named));
        }
        let key = &KEYS[index("file")];
        let problem = Problem::Missing { key: key.name, needs: key.needs_text() };
        Err(self.fail(&["topology"], problem))
    }

    /// The links, and a note where their times were rounded.
    fn link(&self) -> Result<(LinkTiming, Vec<String>), ScenarioError> {
        let width = self.number("width");
        let Value::Rate(rate) = *self.value("rate") else {
            unreachable!("the table's rate is a rate")
        };
        let (phit, error) =
            Rate::phit(rate, width).map_err(|why| self.fail(&["rate"], Problem::Rate(why)))?;
        if phit > SLOWEST {
            let why = super::units::UnitError::TooLarge;
            return Err(self.fail(&["rate"], Problem::Rate(why)));
        }
        let note = format!(
            "a phit of {width} B takes {phit}, which is off the exact time by {:+.4} %",
            100.0 * error
        );
        let notes = if error == 0.0 { vec![] } else { vec![note] };
        Ok((LinkTiming { phit, width, wire: self.value("wire").time(phit) }, notes))
    }

    fn parameters(
        &self,
        topology: &Topology,
        link: LinkTiming,
    ) -> Result<Parameters, ScenarioError> {
        let time = |name: &str| self.value(name).time(link.phit);
        let nodes = topology.nodes.len() as u64;
        let shape = self.choice("topology");
        let channels =
            if ONE_SWITCH.contains(&shape) { nodes as u32 } else { self.number("channels") };
        let per_target = self.choice("node_queue") == "per-target";
        let at_nodes = if per_target { nodes.saturating_mul(nodes) } else { nodes };
        let queues = topology.links.len() as u64 * u64::from(channels) + at_nodes;
        // A router numbers its queues with 16 bits.
        let limits = [
            ("the queues of all nodes", queues, QUEUES_MAX),
            ("the targets of a node", if per_target { nodes } else { 1 }, PER_TARGET_MAX),
        ];
        for (what, number, limit) in limits {
            if number > limit {
                let keys = [
                    "node_queue",
                    "channels",
                    "sides",
                    "dimensions",
                    "half",
                    "routers",
                    "topology",
                ];
                return Err(self.fail(&keys, Problem::Large { what, number, limit }));
            }
        }
        Ok(Parameters {
            link,
            wire_to_node: time("wire_to_node"),
            pipeline: time("pipeline"),
            injection: time("injection"),
            credit: time("credit"),
            channels: channels as u16,
            // One switch alone has no buffers.
            buffer: match shape {
                "switch" => self.sizes().most().max(1),
                _ => self.number("buffer"),
            },
            readout: match self.choice("readout") {
                "port" => Readout::Port,
                _ => Readout::Channel,
            },
            node_queue: if per_target { NodeQueue::PerTarget } else { NodeQueue::One },
            switching: match self.choice("switching") {
                "store-and-forward" => Switching::StoreAndForward,
                _ => Switching::CutThrough,
            },
            policy: Policy::named(self.choice("routing")).unwrap_or(Policy::Direct),
        })
    }

    /// The schedule, if there is one. A run in the LogGOPS model finds out whether it ever ends.
    fn goal(
        &self,
        topology: &Topology,
        parameters: &Parameters,
    ) -> Result<Option<Goal>, ScenarioError> {
        let over_network = match self.choice("work") {
            "goal" => true,
            "loggops" => false,
            _ => return Ok(None),
        };
        let time = |name: &str| self.value(name).time(parameters.link.phit);
        let schedule = self.schedule()?;
        let hosts = Hosts {
            overhead: time("overhead"),
            overhead_per_byte: time("overhead_per_byte"),
            gap: time("gap"),
            eager: self.value("eager").number(),
            start: LogGops::LOGGOPSIM.hosts.start,
        };
        let (latency, gap_per_byte) = (time("latency"), time("gap_per_byte"));
        let model = LogGops { hosts, latency, gap_per_byte };
        let times = ["overhead", "overhead_per_byte", "gap", "latency", "gap_per_byte"];
        goal::run(&schedule, &model, false).map_err(|error| match error {
            RunError::Parameter { .. } => self.fail(&times, error),
            _ => self.fail(&["schedule"], error),
        })?;
        let (ranks, nodes) = (schedule.ranks(), topology.nodes.len() as u32);
        if over_network && ranks > nodes {
            let keys = ["ranks", "rank_sides", "schedule", "topology"];
            return Err(self.fail(&keys, RunError::FewNodes { ranks, nodes }));
        }
        let packets = Packets { most: self.number("size"), header: self.number("header") };
        let (packet, buffer) = (packets.most.saturating_add(packets.header), parameters.buffer);
        if over_network && packet > buffer {
            let error = BuildError::SmallBuffer { buffer, packet };
            return Err(self.fail(&["buffer", "header", "size"], error));
        }
        Ok(Some(Goal { schedule, model, packets: over_network.then_some(packets) }))
    }

    fn schedule(&self) -> Result<Arc<Schedule>, ScenarioError> {
        let name = match self.value("schedule") {
            Value::Schedule(schedule) => return Ok(Arc::clone(schedule)),
            other => other.choice(),
        };
        let usual = SCHEDULES.into_iter().find(|(other, _)| *other == name);
        let (pattern, ranks) = match usual.and_then(|(_, pattern)| pattern) {
            Some(pattern) => (pattern, self.number("ranks")),
            None => {
                let sides = self.value("rank_sides").list().to_vec();
                let ranks = sides.iter().fold(1_u32, |all, side| all.saturating_mul(*side));
                (goal::Pattern::Halo { sides }, ranks)
            }
        };
        let number = match pattern {
            goal::Pattern::Ring | goal::Pattern::AllToAll => u64::from(ranks).pow(2),
            _ => ranks.into(),
        };
        let keys = ["ranks", "rank_sides", "schedule"];
        if number > MESSAGES_MAX {
            let (what, limit) = ("the messages of the schedule", MESSAGES_MAX);
            return Err(self.fail(&keys, Problem::Large { what, number, limit }));
        }
        let mut text = String::new();
        let written = pattern.write(ranks, self.value("message").number(), &mut text);
        written.map_err(|error| self.fail(&keys, error))?;
        let schedule = Schedule::read(text.as_bytes());
        Ok(Arc::new(schedule.expect("a pattern writes what can be read")))
    }

    /// The operation of an interface, if that is the work.
    fn trial(&self) -> Result<Option<Trial>, ScenarioError> {
        if self.choice("work") != "interface" {
            return Ok(None);
        }
        let Some(model) = Model::named(self.choice("interface")) else { return Ok(None) };
        let settings = KEYS.iter().filter(|key| key.group == "interface");
        let cycle = Clock::new(self.value("clock").number()).map_or(Time::ZERO, |one| one.span(1));
        let setting = |value: &Value| match value {
            Value::Choice(name) => Setting::Choice(name),
            Value::Time(span) => Setting::Time(span.time(cycle)),
            other => Setting::Number(other.number()),
        };
        let request = Request {
            operation: self.choice("operation"),
            size: self.number("size"),
            settings: settings.map(|key| (key.name, setting(self.value(key.name)))).collect(),
        };
        let trial = Trial { model, request };
        match trial.bench() {
            Ok(_) => Ok(Some(trial)),
            Err(refusal) => Err(self.fail(&refusal.settings(), refusal)),
        }
    }

    fn offered(&self) -> f64 {
        if self.searches() { 1.0 } else { self.value("load").share() }
    }

    /// Whether the greatest load is looked for.
    fn searches(&self) -> bool {
        self.choice("load") == SATURATION
    }

    fn pattern(&self, topology: &Topology) -> Pattern {
        let share = self.value("pattern_share").share();
        let sides = match self.choice("topology") {
            "mesh" | "torus" => self.value("sides").list().to_vec(),
            _ => vec![topology.nodes.len() as u32],
        };
        match self.choice("pattern") {
            "others" => Pattern::Others,
            "transpose" => Pattern::Transpose,
            "bitcomp" => Pattern::BitComplement,
            "bitrev" => Pattern::BitReverse,
            "shuffle" => Pattern::Shuffle,
            "tornado" => Pattern::Tornado { sides },
            "neighbor" => Pattern::Neighbor { sides },
            "shift" => Pattern::Shift { by: self.number("shift") },
            "hotspot" => Pattern::Hotspot { node: self.number("hotspot_node"), share },
            "unbalanced" => Pattern::Unbalanced { share },
            "permutation" => {
                Pattern::Permutation { targets: self.value("targets").list().to_vec() }
            }
            _ => Pattern::Uniform,
        }
    }

    fn sizes(&self) -> Sizes {
        // The size of an interface's operation is no packet's: there is no network then.
        if self.choice("work") == "interface" {
            return Sizes::Fixed(1);
        }
        let (size, most) = (self.number("size"), self.number("size_most"));
        match self.choice("sizes") {
            "uniform" => Sizes::Uniform(size, most),
            "bimodal" => {
                Sizes::Bimodal { short: size, long: most, share: self.value("long_share").share() }
            }
            _ => Sizes::Fixed(size),
        }
    }

    fn arrivals(&self, cycle: Time) -> Arrivals {
        match self.choice("arrivals") {
            "bernoulli" => Arrivals::Bernoulli,
            "paced" => Arrivals::Paced,
            "bursts" => Arrivals::Bursts(self.number("burst")),
            "window" => {
                let think = self.value("think").time(cycle);
                Arrivals::Window { packets: self.number("window"), think }
            }
            _ => Arrivals::Poisson,
        }
    }

    fn load_error(&self, error: LoadError) -> ScenarioError {
        let keys: &[&str] = match error {
            LoadError::Offered(_) => &["load", "arrivals"],
            LoadError::Sizes { .. } => &["size_most", "size", "sizes"],
            LoadError::NoPackets(_) => &["burst", "window"],
            LoadError::Share(_) => &["pattern_share", "long_share"],
            LoadError::Pattern { .. } => &["targets", "pattern", "topology"],
            LoadError::NoNode { .. } => &["hotspot_node", "targets", "pattern"],
        };
        self.fail(keys, BuildError::from(error))
    }

    fn build_error(&self, error: BuildError) -> ScenarioError {
        let keys: &[&str] = match &error {
            BuildError::Load(error) => return self.load_error(error.clone()),
            BuildError::Routing(RoutingError::FewChannels { .. }) => {
                &["channels", "routing", "without", "topology"]
            }
            BuildError::Routing(RoutingError::Unreachable { .. }) => &["without", "file"],
            BuildError::Routing(_) => &["routing", "without", "topology"],
            BuildError::SmallBuffer { .. } => &["buffer", "size_most", "size"],
            BuildError::LongPacket(_) => &["size_most", "size"],
            BuildError::NoDelay(_) => &["pipeline", "wire", "rate"],
            BuildError::Channels(_) | BuildError::Queues { .. } => &["channels"],
        };
        self.fail(keys, error)
    }
}

/// Messages of a usual schedule at most, or ranks where these have few messages each.
const MESSAGES_MAX: u64 = 1 << 22;
/// The longest time of a phit: a second.
const SLOWEST: Time = Time(1_000_000_000_000);
/// Targets with queues of their own at most.
const PER_TARGET_MAX: u64 = 1024;

impl Plan {
    /// The network of a replica.
    ///
    /// # Errors
    /// None, if a scenario made the plan: it has built the network before.
    pub fn network(&self, replica: u32) -> Result<Network, BuildError> {
        let seed = self.seed + u64::from(replica);
        let load = self.load.clone();
        let mut network = Network::new(&self.topology, self.parameters, load, seed)?;
        network.divide(self.parts);
        Ok(network)
    }
}

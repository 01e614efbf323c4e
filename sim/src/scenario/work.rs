//! Scripts as the work of a scenario.
use super::file::{Problem, ScenarioError};
use super::plan::Values;
use super::script::{self, Ran, ScriptWork};
use super::table::{KEYS, index};
use super::value::Value;
use crate::cluster::{Cluster, ClusterError, InterfaceTimes};
use crate::host::pcie::{Generation, Pcie};
use crate::network::{Outcome, Parameters};
use crate::nic;
use crate::report::{Course, OperationTimes, Replica};
use crate::stats::Tally;
use crate::time::{Clock, Time};
use crate::topology::Topology;
use std::sync::Arc;

impl Values {
    /// The script, if there is one, and the times of the interfaces that carry it out.
    pub(super) fn script(
        &self,
        topology: &Topology,
        parameters: &Parameters,
    ) -> Result<Option<ScriptWork>, ScenarioError> {
        if self.choice("work") != "script" {
            return Ok(None);
        }
        let Value::Script(Some(script)) = self.value("script") else {
            let key = &KEYS[index("script")];
            let problem = Problem::Missing { key: key.name, needs: key.needs_text() };
            return Err(self.fail(&["work"], problem));
        };
        let shape = ["nodes", "sides", "dimensions", "half", "routers", "topology"];
        let nodes = topology.nodes.len() as u32;
        Cluster::check(nodes, parameters.buffer).map_err(|error| match error {
            ClusterError::Buffer(_) => self.fail(&["buffer"], error),
            _ => self.fail(&shape, error),
        })?;
        script.check(nodes).map_err(|error| self.fail(&["script"], error))?;
        let generation = match self.choice("pcie") {
            "gen1" => Generation::One,
            "gen2" => Generation::Two,
            "gen4" => Generation::Four,
            "gen5" => Generation::Five,
            _ => Generation::Three,
        };
        let server = nic::Parameters::server();
        let hertz = self.value("nic_clock").number() * 1_000_000;
        let nic = nic::Parameters {
            clock: Clock::new(hertz).expect("up to 10 GHz"),
            pcie: Pcie { generation, ..server.pcie },
            ..server
        };
        let times = InterfaceTimes::of(&nic);
        Ok(Some(ScriptWork { script: Arc::clone(script), times }))
    }
}

/// Runs a script on a network.
pub(super) fn run(work: &ScriptWork, topology: &Topology, parameters: Parameters) -> Replica {
    let ran = script::run(work, topology, parameters);
    let network = ran.as_ref().ok().map(|ran| ran.cluster.network());
    let tally = network.map_or_else(Tally::default, |network| network.tally().clone());
    Replica {
        outcome: Some(if ran.is_ok() { Outcome::Measured } else { Outcome::Drained }),
        course: network.map_or(0, |network| network.course()),
        made: network.map_or(0, |network| network.bytes_made()),
        span: tally.span(),
        backlog: [0; 3],
        packets_made: network.map_or(0, |network| network.made()),
        record: None,
        saturation: None,
        timeline: None,
        interface: None,
        script: Some(ran.map(|ran| course(&ran)).map_err(|error| error.to_string())),
        tally,
    }
}

fn course(ran: &Ran) -> Course {
    let nanos = |time: Time| time.nanos();
    let kind = |kind: &script::Kind| OperationTimes {
        operation: kind.word.to_owned(),
        count: kind.count,
        mean_ns: nanos(kind.sum) / kind.count.max(1) as f64,
        least_ns: nanos(kind.least),
        most_ns: nanos(kind.most),
    };
    Course {
        end_ns: nanos(ran.end),
        nodes_ns: ran.nodes.iter().map(|(node, end)| (*node, nanos(*end))).collect(),
        operations: ran.kinds.iter().map(kind).collect(),
    }
}

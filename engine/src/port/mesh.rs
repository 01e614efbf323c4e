//! Opens and connects all ports of a simulation in one thread, so that each run takes the same
//! course.
use super::attach::BegunLink;
use super::config::Config;
use crate::error::SetupError;
use crate::link::links::Arrived;
use crate::link::opening::Unopened;
use crate::link::options::NetOptions;
use crate::net::simulation::Simulation;
use crate::port::Port;
use crate::settings::plan::FaultPlan;
use std::net::SocketAddr;

impl Simulation {
    /// Opens a port for each configuration, opens each to this network with the options, and
    /// connects each pair. The addresses of the options must have port 0, as all ports share them;
    /// options without addresses will do. Each port draws its own random numbers for the options'
    /// plan of faults. Blocks in the network's time only.
    ///
    /// ```
    /// use ayre::{Config, NetOptions, Simulation};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), ayre::SetupError> {
    /// let simulation = Simulation::new(Duration::from_micros(2));
    /// let lossy = NetOptions::plain().faults("loss=10%,seed=1".parse().expect("a plan"));
    /// let configs = [0, 1].map(|number| Config::new().number(number));
    /// let mut ports = simulation.mesh(&lossy, configs)?;
    ///
    /// let peer = ports[0].peer(1).expect("all are connected");
    /// ports[0].send(peer, 7, b"over a bad network").expect("there is room");
    /// let mut text = [0; 64];
    /// let message = loop {
    ///     ports[0].progress();
    ///     if let Some(message) = ports[1].try_recv(&mut text).expect("it is long enough") {
    ///         break message;
    ///     }
    /// };
    /// assert_eq!(&text[..message.len], b"over a bad network");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Port::open`], [`Port::open_net`] and [`Port::connect_net`]. The set-up time counts on
    /// this network's clock.
    // spec: NET-8
    pub fn mesh(
        &self,
        options: &NetOptions,
        configs: impl IntoIterator<Item = Config>,
    ) -> Result<Vec<Port>, SetupError> {
        let mut mesh = Mesh { ports: Vec::new(), at: Vec::new() };
        for config in configs {
            let options = options_of(options, mesh.ports.len()).simulated(self);
            let mut port = Port::open(config)?;
            mesh.at.push(port.open_net(&options)?);
            mesh.ports.push(port);
        }
        for from in 0..mesh.ports.len() {
            for to in from + 1..mesh.ports.len() {
                mesh.connect(from, to)?;
            }
        }
        let others = mesh.ports.len().saturating_sub(1);
        let knows_all = |port: &Port| port.peers().count() == others;
        debug_assert!(mesh.ports.iter().all(knows_all), "each is connected with each other");
        Ok(mesh.ports)
    }
}

/// The options of one port of a mesh.
fn options_of(options: &NetOptions, index: usize) -> NetOptions {
    let mut options = options.clone();
    // Each address of a port has the next seed.
    let step = (index * options.at.len().max(1)) as u64;
    options.faults =
        options.faults.map(|plan| FaultPlan { seed: plan.seed.wrapping_add(step), ..plan });
    options
}

/// Ports during connection, and their addresses.
struct Mesh {
    ports: Vec<Port>,
    at: Vec<Vec<SocketAddr>>,
}

impl Mesh {
    fn connect(&mut self, from: usize, to: usize) -> Result<(), SetupError> {
        debug_assert!(from < to && to < self.at.len(), "a port calls those behind it");
        self.ports[to].accept_links(true);
        let whom = self.ports[to].id.0;
        let begun = self.ports[from].begin_connect_net(&self.at[to], Some(whom))?;
        // The opening ends in any case: it is given up when the set-up time is over.
        let outcome = loop {
            self.pump();
            if let Some(arrived) = self.ports[to].remote.next_link() {
                self.ports[to].take_link(arrived)?;
            }
            if let Some(outcome) = self.outcome(from, &begun)? {
                break outcome;
            }
        };
        self.ports[to].accept_links(false);
        self.ports[from].conclude_connect_net(&begun, outcome).map(drop)
    }

    fn pump(&mut self) {
        for port in &mut self.ports {
            port.pump_all();
        }
    }

    fn outcome(
        &self,
        of: usize,
        begun: &BegunLink,
    ) -> Result<Option<Result<Arrived, Unopened>>, SetupError> {
        let mut wire = self.ports[of].remote.opened()?;
        Ok(wire.conclude(begun.index))
    }
}

//! How a port is open to other hosts.
use super::clock::Clock;
use super::faults::{Faults, Partition};
use super::handshake::JobKey;
use super::net::Net;
use super::opening::Protection;
use super::packet::Packet;
use super::pcap::Capture;
use super::plan::Plan;
use super::simulation::Simulation;
use super::udp::Udp;
use crate::error::SetupError;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the longest datagram, where the network does not set a lower bound: one of a network
/// with jumbo frames.
const DATAGRAM_MAX: usize = 8972;

/// Whether a port sends short datagrams straight over Ethernet, past the system's IP and UDP: half
/// the time for a small message. All else goes by UDP, as does all to ports that do not answer
/// frames, so that ports of any kind understand each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ethernet {
    /// UDP alone.
    Never,
    /// Where this process may open packet sockets (it has the capability `CAP_NET_RAW`), the
    /// interface is one of Ethernet, and the other port is on the same one, by its address.
    #[default]
    IfAllowed,
    /// To open the port fails where this process may not, or has no Ethernet there.
    Required,
}

/// How a port is open to ports of other hosts.
#[derive(Clone, Debug)]
pub struct NetOptions {
    pub(super) at: Vec<SocketAddr>,
    pub(super) protection: Protection,
    pub(super) datagram_max: usize,
    pub(super) silence: Duration,
    pub(super) faults: Option<Plan>,
    pub(super) partition: Partition,
    pub(super) capture: Option<PathBuf>,
    pub(super) ethernet: Ethernet,
    pub(super) simulation: Option<Simulation>,
}

impl NetOptions {
    /// How long a peer may be silent by default.
    pub(crate) const SILENCE: Duration = Duration::from_secs(3);

    /// Links are encrypted and authenticated: `key`, 64 hexadecimal digits, is what all ports of a
    /// job hold and nobody else. 32 bytes from the system's random generator make a good one.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where it is no such key.
    // spec: SEAL-7
    pub fn sealed(key: &str) -> Result<Self, SetupError> {
        let key = JobKey::from_hex(key);
        let key = key.ok_or(SetupError::Invalid("a key has 64 hexadecimal digits"))?;
        Ok(Self::with(Protection::Sealed(key)))
    }

    /// For closed networks: frames travel as they are. Who can read the network can read and forge
    /// everything; others cannot guess the tokens that frames carry.
    // spec: SEAL-10
    pub fn plain() -> Self {
        Self::with(Protection::Plain)
    }

    /// The same with another protection.
    pub(super) fn protected(&self, protection: Protection) -> Self {
        Self { protection, ..self.clone() }
    }

    fn with(protection: Protection) -> Self {
        Self {
            at: Vec::new(),
            protection,
            datagram_max: DATAGRAM_MAX,
            silence: Self::SILENCE,
            faults: None,
            partition: Partition::new(),
            capture: None,
            ethernet: Ethernet::default(),
            simulation: None,
        }
    }

    /// Takes datagrams at this address; port 0 is one of the system's choice. Up to four are paths
    /// of each link, which share its frames.
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.at.push(address);
        self
    }

    /// Whether short datagrams go in frames of Ethernet of its own, by the interfaces that have the
    /// addresses, to those ports of the same Ethernet that answer them: by default, where this
    /// process may.
    // spec: NET-6, NET-7
    pub fn ethernet(mut self, ethernet: Ethernet) -> Self {
        self.ethernet = ethernet;
        self
    }

    /// Takes its addresses in this simulated network instead of one of this host's, and goes by its
    /// clock. [`NetOptions::ethernet`] changes nothing there.
    // spec: NET-8
    pub fn simulated(mut self, simulation: &Simulation) -> Self {
        self.simulation = Some(simulation.clone());
        self
    }

    /// Bytes of the longest datagram, at least 1280 are needed. By default as long as the network
    /// takes whole, at most 8972.
    pub fn datagram_max(mut self, bytes: usize) -> Self {
        self.datagram_max = bytes;
        self
    }

    /// How long a peer may be silent, though it is asked for a sign of life, before it is taken for
    /// dead; 3 s by default.
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Does to what this port sends what a bad network would: for tests. Each path has dice of its
    /// own.
    pub fn faults(mut self, plan: Plan) -> Self {
        self.faults = Some(plan);
        self
    }

    /// Cuts this port off from the network when it is told to: for tests.
    pub fn partition(mut self, partition: &Partition) -> Self {
        self.partition = partition.clone();
        self.faults.get_or_insert_default();
        self
    }

    /// Writes what this port sends and receives into a file that Wireshark reads; each further path
    /// has a file of its own, with `.1` and so on behind the name.
    pub fn capture(mut self, path: impl Into<PathBuf>) -> Self {
        self.capture = Some(path.into());
        self
    }

    /// The clock of these nets.
    pub(super) fn clock(&self) -> Result<Clock, SetupError> {
        Ok(match &self.simulation {
            Some(simulation) => Clock::Simulated(simulation.take_seat()?),
            None => Clock::system(),
        })
    }

    /// The nets that these options describe.
    pub(super) fn nets(&self, clock: &Clock) -> Result<Vec<Box<dyn Net>>, SetupError> {
        self.at.iter().enumerate().map(|(index, at)| self.net(index, *at, clock)).collect()
    }

    fn net(&self, index: usize, at: SocketAddr, clock: &Clock) -> Result<Box<dyn Net>, SetupError> {
        let failed = os("open a socket to other hosts");
        let net: Box<dyn Net> = match clock {
            Clock::Simulated(seat) => Box::new(seat.bind(at).map_err(failed)?),
            Clock::System(_) => match self.ethernet {
                Ethernet::Never => Box::new(Udp::bind(at).map_err(failed)?),
                Ethernet::IfAllowed => Box::new(Packet::beside(at).map_err(failed)?),
                Ethernet::Required => Box::new(Packet::bind(at).map_err(failed)?),
            },
        };
        let net: Box<dyn Net> = match &self.capture {
            None => net,
            Some(path) => {
                let mut path = path.clone();
                if index > 0 {
                    path.add_extension(index.to_string());
                }
                Box::new(Capture::create(net, &path, 0).map_err(os("write the capture"))?)
            }
        };
        Ok(match self.faults {
            None => net,
            Some(plan) => {
                let plan = Plan { seed: plan.seed.wrapping_add(index as u64), ..plan };
                Box::new(Faults::new(net, plan, self.partition.clone()))
            }
        })
    }
}

fn os(call: &'static str) -> impl Fn(std::io::Error) -> SetupError {
    move |error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
        SetupError::Os { call, errno }
    }
}

//! Options of a port's links to other hosts.
use super::handshake::{JobKey, Protection};
use super::pcap::Capture;
use crate::error::SetupError;
use crate::net::chosen::{PLACES_MAX, addresses_of_user};
use crate::net::clock::Clock;
use crate::net::datagram::{self, Net};
use crate::net::faults::{Faults, Partition};
use crate::net::interfaces;
use crate::net::packet::Packet;
use crate::net::simulation::Simulation;
use crate::net::udp::Udp;
use crate::port_range::PortRange;
use crate::settings;
use crate::settings::choice::Ethernet;
use crate::settings::plan::FaultPlan;
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the longest datagram, where the network does not set a lower bound: one of a network
/// with jumbo frames.
const DATAGRAM_MAX: usize = 8972;
/// Ports that are tried, of those that the system chooses, until one is free at all addresses.
const CHOICES_MAX: usize = 64;
const _: () = assert!(DATAGRAM_MAX <= datagram::DATAGRAM_MAX, "a net carries it");
/// The address of a port of a simulated network.
const ANYWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 0);

/// The meaning of several addresses of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Paths of each link, which share its frames.
    Paths,
    /// Places where others find the port, all with one port of UDP, of which each link uses one.
    Places {
        /// They were not asked for: an address that cannot be had is left out.
        lenient: bool,
    },
}

/// Options of a port's links to other hosts. They need the Cargo feature `net`.
#[derive(Clone, Debug)]
pub struct NetOptions {
    pub(crate) at: Vec<SocketAddr>,
    /// The addresses are places where the same port may be found, and not paths of a link.
    pub(crate) kind: Kind,
    pub(super) ports: Option<PortRange>,
    pub(crate) protection: Protection,
    pub(crate) datagram_max: usize,
    silence: Option<Duration>,
    dead_after: Option<Duration>,
    pub(crate) faults: Option<FaultPlan>,
    pub(super) partition: Partition,
    pub(super) capture: Option<PathBuf>,
    pub(super) ethernet: Ethernet,
    pub(super) simulation: Option<Simulation>,
}

impl NetOptions {
    /// After how long a peer is not heard by default.
    pub(crate) const SILENCE: Duration = Duration::from_secs(3);
    /// After how long it is taken for dead.
    const DEAD_AFTER: Duration = Duration::from_secs(60);

    /// Options for links that are encrypted and authenticated. All ports of a job have the same
    /// `key` of 64 hexadecimal digits, and keep it secret. Make it of 32 bytes from the system's
    /// random generator.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] if `key` is not 64 hexadecimal digits.
    // spec: SEAL-7
    pub fn sealed(key: &str) -> Result<Self, SetupError> {
        let key = JobKey::from_hex(key);
        let key = key.ok_or_else(|| SetupError::invalid("a key has 64 hexadecimal digits"))?;
        Ok(Self::with(Protection::Sealed(key.into())))
    }

    /// Options for links without encryption, for closed networks. Anybody who can read the network
    /// can read and forge frames. Others would have to guess a token of 64 bits for each link.
    // spec: SEAL-10
    pub fn plain() -> Self {
        Self::with(Protection::Plain)
    }

    /// These options with another protection.
    pub(crate) fn protected(&self, protection: Protection) -> Self {
        Self { protection, ..self.clone() }
    }

    fn with(protection: Protection) -> Self {
        Self {
            at: Vec::new(),
            kind: Kind::Paths,
            ports: None,
            protection,
            datagram_max: DATAGRAM_MAX,
            silence: None,
            dead_after: None,
            faults: None,
            partition: Partition::new(),
            capture: None,
            ethernet: Ethernet::default(),
            simulation: None,
        }
    }

    /// Adds an address at which the port receives datagrams. With UDP port 0 the system chooses the
    /// port. Up to four addresses are paths, among which each link shares its frames.
    ///
    /// Without this call the addresses are those of `AYRE_NET`. If that is not set, they are all
    /// addresses of this host that others may reach, and each link uses the one that answers.
    // spec: LIFE-36
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.at.push(address);
        self
    }

    /// Sets the range for addresses without a UDP port, for example the ports that a firewall lets
    /// pass. Each takes the first free port. The default is `AYRE_PORTS`, or the system's choice.
    // spec: ENV-35
    pub fn ports(mut self, range: PortRange) -> Self {
        self.ports = Some(range);
        self
    }

    /// Takes datagrams at these addresses, all with one port, of which each link uses the one that
    /// answers. Where they were not asked for, what cannot be bound is left out.
    // spec: ENV-32
    pub(crate) fn at_places(mut self, at: Vec<SocketAddr>, lenient: bool) -> Self {
        (self.at, self.kind) = (at, Kind::Places { lenient });
        self
    }

    /// These options, where some places were named or are found.
    // spec: LIFE-36
    pub(crate) fn placed(&self) -> Result<Self, SetupError> {
        let this = self.clone();
        if !this.at.is_empty() {
            return Ok(this);
        }
        if let Some(anywhere) = this.anywhere() {
            return Ok(this.at(anywhere));
        }
        let named = addresses_of_user()?;
        if !named.is_empty() {
            return Ok(named.into_iter().fold(this, |this, ip| this.at((ip, 0).into())));
        }
        let usable = interfaces::usable();
        let at: Vec<_> = usable.iter().take(PLACES_MAX).map(|found| found.at(0)).collect();
        match at.is_empty() {
            true => Err(SetupError::Environment("no interface of this host is up".into())),
            false => Ok(this.at_places(at, true)),
        }
    }

    /// Sets whether short datagrams go directly over Ethernet, to ports of the same Ethernet that
    /// answer. By default they do if this process may open packet sockets (`CAP_NET_RAW`).
    // spec: NET-6, NET-7
    pub fn ethernet(mut self, ethernet: Ethernet) -> Self {
        self.ethernet = ethernet;
        self
    }

    /// Opens the port in this simulated network, with the network's clock, instead of the real one.
    /// [`NetOptions::ethernet`] has no effect there.
    // spec: NET-8
    pub fn simulated(mut self, simulation: &Simulation) -> Self {
        self.simulation = Some(simulation.clone());
        self
    }

    /// Where a port of its simulated network is found that names no address; none where there is no
    /// such network.
    pub(crate) fn anywhere(&self) -> Option<SocketAddr> {
        self.simulation.as_ref().map(|_| ANYWHERE.into())
    }

    /// Sets the length of the longest datagram in bytes, at least 512. The default is the longest
    /// one that the network does not fragment, at most 8972.
    pub fn datagram_max(mut self, bytes: usize) -> Self {
        self.datagram_max = bytes;
        self
    }

    /// Sets the time without a sign of life after which operations to a peer wait, although the
    /// peer was probed. Nothing ends then, unless the peer's host reports that its UDP port is
    /// closed: in that case the peer is dead. The default is `AYRE_SILENCE`, or 3 s.
    // spec: LINK-17, LINK-29
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = Some(silence);
        self
    }

    /// Sets the time without a sign of life after which a peer counts as dead. A link whose data
    /// does not arrive ends after this time, too. Choose it longer than a process may be stopped,
    /// or a virtual machine may take to move. The default is `AYRE_DEAD_AFTER`, or 60 s; it is at
    /// least the time of [`NetOptions::silence`].
    // spec: LINK-17, LINK-30
    pub fn dead_after(mut self, time: Duration) -> Self {
        self.dead_after = Some(time);
        self
    }

    /// After how long a peer is not heard, and dead.
    pub(crate) fn times(&self) -> Result<(Duration, Duration), SetupError> {
        let chosen = self.silence.map_or_else(settings::silence, |silence| Ok(Some(silence)))?;
        let silence = chosen.unwrap_or(Self::SILENCE);
        let chosen = self.dead_after.map_or_else(settings::dead_after, |time| Ok(Some(time)))?;
        Ok((silence, chosen.unwrap_or(Self::DEAD_AFTER).max(silence)))
    }

    /// Adds faults to the datagrams that this port sends, for tests. Each path draws its own random
    /// numbers.
    pub fn faults(mut self, plan: FaultPlan) -> Self {
        self.faults = Some(plan);
        self
    }

    /// Connects this port to the network through a cable that can be unplugged, for tests.
    pub fn partition(mut self, partition: &Partition) -> Self {
        self.partition = partition.clone();
        self.faults.get_or_insert_default();
        self
    }

    /// Writes the frames that this port sends and receives into a file for Wireshark. Each further
    /// path has a file of its own, with `.1` and so on after the name. Frames of encrypted links
    /// are written unencrypted, so a reader of the file can read their contents. `{rank}` in the
    /// name stands for the port's rank, or for its process number if it has no rank. The default is
    /// `AYRE_CAPTURE`.
    // spec: NET-13
    pub fn capture(mut self, path: impl Into<PathBuf>) -> Self {
        self.capture = Some(path.into());
        self
    }

    /// These options for the port of this rank, with what the user has chosen.
    pub(crate) fn of_user(&self, rank: Option<usize>) -> Result<Self, SetupError> {
        let chosen = match &self.capture {
            Some(chosen) => Some(chosen.clone()),
            None if self.simulation.is_some() => None,
            None => settings::capture()?,
        };
        let capture = chosen.map(|pattern| settings::capture_of(&pattern, rank));
        Ok(Self { capture, ..self.clone() })
    }

    /// The clock of these nets, and of the port that has had this one: its own, unless they are the
    /// first ones of a simulation.
    pub(crate) fn clock(&self, own: &Clock) -> Result<Clock, SetupError> {
        Ok(match &self.simulation {
            Some(simulation) if !own.is_simulated() => Clock::Simulated(simulation.take_seat()?),
            _ => own.clone(),
        })
    }

    /// The nets that these options describe.
    // spec: ENV-35
    pub(crate) fn nets(&self, clock: &Clock) -> Result<Vec<Box<dyn Net>>, SetupError> {
        let chosen = match self.ports {
            Some(range) => Some(range),
            None => settings::ports()?,
        };
        let this = Self { ports: chosen, ..self.clone() };
        match this.kind {
            Kind::Paths => this.paths(clock),
            Kind::Places { lenient } => this.at_free_port(|port| this.places(port, lenient, clock)),
        }
    }

    fn paths(&self, clock: &Clock) -> Result<Vec<Box<dyn Net>>, SetupError> {
        let path = |(index, at): (usize, &SocketAddr)| match at.port() {
            0 => self.at_free_port(|port| self.net(index, with_port(*at, port), clock)),
            _ => self.net(index, *at, clock),
        };
        self.at.iter().enumerate().map(path).collect()
    }

    /// All places that can be had, with this port; 0 is one of the system's choice.
    fn places(
        &self,
        mut port: u16,
        lenient: bool,
        clock: &Clock,
    ) -> Result<Vec<Box<dyn Net>>, SetupError> {
        let (mut nets, mut failed) = (Vec::new(), None);
        for at in &self.at {
            match self.net(nets.len(), with_port(*at, port), clock) {
                Ok(net) => {
                    port = net.local().port();
                    nets.push(net);
                }
                Err(error) if lenient && !is_in_use(&error) => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        let ports = nets.iter().map(|net| net.local().port());
        assert!(ports.into_iter().all(|its| its == port), "a port is found by one number");
        match failed {
            Some(error) if nets.is_empty() => Err(error),
            _ => Ok(nets),
        }
    }

    /// Opens something at the first port that is free.
    fn at_free_port<T>(
        &self,
        open: impl Fn(u16) -> Result<T, SetupError>,
    ) -> Result<T, SetupError> {
        let chosen = self.ports.into_iter().flat_map(PortRange::all);
        let choices = if self.ports.is_none() { CHOICES_MAX } else { 0 };
        for port in chosen.chain(std::iter::repeat_n(0, choices)) {
            match open(port) {
                Err(error) if is_in_use(&error) => {}
                opened => return opened,
            }
        }
        Err(match self.ports {
            Some(range) => SetupError::PortsTaken(range),
            None => SetupError::exhausted("UDP port on this host"),
        })
    }

    fn net(&self, index: usize, at: SocketAddr, clock: &Clock) -> Result<Box<dyn Net>, SetupError> {
        let failed = os("open a socket to other hosts");
        let net: Box<dyn Net> = match clock {
            Clock::Simulated(seat) => Box::new(seat.bind(at).map_err(failed)?),
            Clock::System(..) => match self.ethernet {
                Ethernet::Never => Box::new(Udp::bind(at).map_err(failed)?),
                Ethernet::IfAllowed => Box::new(Packet::bind_optional(at).map_err(failed)?),
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
                let wrong = |why: io::Error| settings::wrong_capture(&path, &why);
                Box::new(Capture::create(net, &path, 0).map_err(wrong)?)
            }
        };
        Ok(match self.faults {
            None => net,
            Some(plan) => {
                let plan = FaultPlan { seed: plan.seed.wrapping_add(index as u64), ..plan };
                Box::new(Faults::new(net, plan, self.partition.clone()))
            }
        })
    }
}

fn with_port(mut at: SocketAddr, port: u16) -> SocketAddr {
    at.set_port(port);
    at
}

fn is_in_use(error: &SetupError) -> bool {
    matches!(error, SetupError::Os { errno: Errno::ADDRINUSE, .. })
}

fn os(call: &'static str) -> impl Fn(io::Error) -> SetupError {
    move |error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
        SetupError::Os { call, errno }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Loopback addresses that no other process of this host uses.
    fn own(last: u8) -> SocketAddr {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        (Ipv4Addr::new(127, high, low, last), 0).into()
    }

    type Opened = (Vec<Box<dyn Net>>, Vec<u16>);

    fn ports(options: &NetOptions) -> Result<Opened, SetupError> {
        let nets = options.nets(&Clock::system())?;
        let ports = nets.iter().map(|net| net.local().port()).collect();
        Ok((nets, ports))
    }

    // spec: ENV-35
    #[test]
    fn the_first_free_port_of_a_range_is_taken_and_a_full_range_is_an_error_that_names_it() {
        let range = PortRange::new(7000, 7002).unwrap();
        let places = |at: Vec<SocketAddr>| NetOptions::plain().at_places(at, true).ports(range);
        let (_first, taken) = ports(&places(vec![own(1)])).unwrap();
        assert_eq!(taken, [7000]);
        let (_both, taken) = ports(&places(vec![own(2), own(1), own(3)])).unwrap();
        assert_eq!(taken, [7001; 3], "one port at all places");
        let paths = NetOptions::plain().at(own(1)).at(own(2)).ports(range);
        let (_paths, taken) = ports(&paths).unwrap();
        assert_eq!(taken, [7002, 7000], "each path has its own");
        let error = ports(&places(vec![own(4), own(1)])).unwrap_err().to_string();
        assert!(error.contains("7000-7002") && error.contains("AYRE_PORTS"), "{error}");
        let named = SocketAddr::new(own(1).ip(), 7005);
        assert_eq!(ports(&paths.at(named)).unwrap_err().to_string(), error);
        let one = NetOptions::plain().at(named).ports(range);
        assert_eq!(ports(&one).unwrap().1, [7005], "who names a port gets it");
    }

    // spec: ENV-32
    #[test]
    fn a_place_that_cannot_be_had_is_left_out_unless_it_was_asked_for() {
        let nowhere = (Ipv4Addr::new(203, 0, 113, 1), 0).into();
        let places = |at: &[SocketAddr], lenient| {
            ports(&NetOptions::plain().at_places(at.to_vec(), lenient)).map(|(nets, _)| nets.len())
        };
        assert_eq!(places(&[nowhere, own(5)], true).unwrap(), 1);
        assert!(places(&[nowhere, own(5)], false).is_err());
        assert!(places(&[nowhere], true).is_err());
    }
}

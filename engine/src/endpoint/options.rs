//! How an endpoint is opened.
use super::places::Places;
use super::{Address, key};
use crate::error::SetupError;
use crate::link::{Callee, JobKey, NetOptions, StaticKey};
use crate::log::tell;
use crate::net::chosen::host_addresses;
use crate::net::clock::Clock;
use crate::net::faults::Partition;
use crate::net::interfaces;
use crate::net::simulation::Simulation;
use crate::port::Port;
use crate::port::config::{Config, Spin};
use crate::port_range::PortRange;
use crate::settings;
use crate::settings::choice::{Ethernet, Mode};
use crate::settings::plan::FaultPlan;
use crate::tuning::Tuning;
use ayre_proto::envelope::LONG_MAX_HERE;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time limit of a call, in multiples of the silence limit of a peer.
const SILENCES_PER_CALL: u32 = 4;

/// How an endpoint is opened: by default, other hosts reach it.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    pub(super) spin: Spin,
    pub(super) linger: Duration,
    is_apart: bool,
    tuning: Option<Tuning>,
    ring: Option<usize>,
    pub(super) memory: Option<u64>,
    pub(super) reach: Option<ReachOptions>,
}

/// How other hosts reach an endpoint.
#[derive(Clone, Debug)]
pub(super) struct ReachOptions {
    /// Those of this host's that others may reach, unless given.
    pub(super) ips: Vec<IpAddr>,
    pub(super) is_plain: bool,
    /// The key that callers need besides the address.
    key: Option<JobKey>,
    silence: Option<Duration>,
    pub(super) net: NetOptions,
}

impl EndpointOptions {
    /// Defaults: other hosts reach it at this host's addresses, by links that are encrypted.
    pub fn new() -> Self {
        let net = NetOptions::plain();
        let reach =
            ReachOptions { ips: Vec::new(), is_plain: false, key: None, silence: None, net };
        Self {
            spin: Spin::DEDICATED,
            linger: Duration::from_secs(1),
            is_apart: false,
            tuning: None,
            ring: None,
            memory: None,
            reach: Some(reach),
        }
    }

    /// Options from the user's variables: `AYRE_NET`, `AYRE_PORTS`, `AYRE_PROTECTION`,
    /// `AYRE_ETHERNET`, `AYRE_KEY`, `AYRE_CAPTURE`, `AYRE_MEMORY`, `AYRE_SILENCE`,
    /// `AYRE_DEAD_AFTER` and `AYRE_FAULTS`. `AYRE_NET` may be `none` here: other hosts do not reach
    /// the endpoint then.
    ///
    /// # Errors
    /// [`SetupError::Environment`] where one is wrong.
    // spec: LIFE-23
    pub fn of_variables() -> Result<Self, SetupError> {
        Self::of_settings("", |_| None)
    }

    /// Options from the user's variables, some of which have other names. `find` gives the value of
    /// a variable by its name behind `AYRE_`, in lower case letters; its value takes precedence.
    /// `prefix` stands before the whole name.
    ///
    /// # Errors
    /// As [`EndpointOptions::of_variables`].
    // spec: LIFE-23
    pub fn of_settings(
        prefix: &str,
        find: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SetupError> {
        let of = Words { prefix, find };
        let mut options = Self::new();
        if of.get(settings::NET, |text| Ok::<_, String>(text == "none"))? == Some(true) {
            return Ok(options.local());
        }
        let at = |text: &str| host_addresses(&settings::net_words(text)?).map_err(said);
        let ips = of.get(settings::NET, at)?.unwrap_or_default();
        options = ips.into_iter().fold(options, Self::at);
        if let Some(range) = of.get(settings::PORTS, str::parse::<PortRange>)? {
            options = options.ports(range);
        }
        if of.get(settings::PROTECTION, settings::protection)? == Some(true) {
            options = options.plain();
        }
        if let Some(ethernet) = of.get(settings::ETHERNET, settings::ethernet_word)? {
            options = options.ethernet(ethernet);
        }
        if let Some(file) = (of.find)("key") {
            options = options.key_file(file)?;
        }
        if let Some(pattern) = of.get(settings::CAPTURE, settings::capture_pattern)? {
            options = options.capture(pattern);
        }
        if let Some(bytes) = of.get(settings::MEMORY, settings::bytes_of_memory)? {
            options = options.memory(bytes);
        }
        let silence = of.get(settings::SILENCE, settings::seconds)?;
        if let Some(silence) = silence {
            options = options.silence(silence);
        }
        let death = |text: &str| settings::seconds_of_death(text, silence);
        if let Some(time) = of.get(settings::DEAD_AFTER, death)? {
            options = options.dead_after(time);
        }
        if let Some(plan) = of.get(settings::FAULTS, str::parse::<FaultPlan>)? {
            options = options.faults(plan);
        }
        Ok(options)
    }

    /// How blocking waits behave.
    pub fn spin(self, spin: Spin) -> Self {
        Self { spin, ..self }
    }

    /// How long an endpoint that is dropped stays to bring what it has sent to other hosts; 1 s by
    /// default.
    pub fn linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// By which methods long messages come, instead of what [`crate::tuning::active`] finds.
    // spec: INJ-4
    pub fn tuning(self, tuning: Tuning) -> Self {
        Self { tuning: Some(tuning), ..self }
    }

    /// Bytes of the ring in each direction, a power of two from 32 KiB to 16 MiB. It holds for
    /// connections that the endpoint accepts from its host, and for those with other hosts if the
    /// other end wants no shorter one. The default is 1 to 4 MiB on this host, by its caches; to
    /// other hosts the first 16 have 1 MiB and later ones 256 KiB. A ring takes memory as it is
    /// used, within a budget: a part of the memory that the process may use.
    // spec: LIM-4, ENV-42, OPEN-14
    pub fn ring(self, bytes: usize) -> Self {
        Self { ring: Some(bytes), ..self }
    }

    /// Bytes of memory that it may take, instead of what the machine and the control groups allow.
    /// Half of them is for what is kept of others until a receive takes it: who sends too much of
    /// that is told so, and its connection ends. As much is for what the program has under way, 512
    /// bytes for each. All is taken as it is used. `AYRE_MEMORY` says the same.
    // spec: ENV-36, ENV-37, ENV-39
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// Meets endpoints of this host as it does those of other ones, over the network: for tests and
    /// measurements.
    pub fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Only endpoints of this host reach it.
    pub fn local(self) -> Self {
        Self { reach: None, ..self }
    }

    /// Other hosts reach it at this address of this host. Repeated calls add addresses. By default
    /// it is reached at all addresses of interfaces that are up, up to [`Address::IPS_MAX`]. A
    /// caller tries them all, and takes the one that answers.
    // spec: ENV-32
    pub fn at(self, ip: IpAddr) -> Self {
        self.with(|reach| reach.ips.push(ip))
    }

    /// It takes a UDP port of this range: those that a firewall lets pass.
    // spec: ENV-35
    pub fn ports(self, range: PortRange) -> Self {
        self.with(|reach| reach.net = reach.net.clone().ports(range))
    }

    /// Only endpoints with this key, 64 hexadecimal digits, can open links with it. Without the
    /// key, a reader of the address on its way can neither call nor pass for the endpoint. By
    /// default it is the key of `AYRE_KEY`, if there is one.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where it is no such key.
    // spec: SEAL-16
    pub fn key(self, key: &str) -> Result<Self, SetupError> {
        let key = JobKey::from_hex(key);
        let key = key.ok_or_else(|| SetupError::invalid("a key has 64 hexadecimal digits"))?;
        Ok(self.with(|reach| reach.key = Some(key)))
    }

    /// The same with a key from a file that nobody but its owner may read.
    ///
    /// # Errors
    /// [`SetupError::Environment`] where it is no such file.
    // spec: SEAL-16
    pub fn key_file(self, path: impl AsRef<Path>) -> Result<Self, SetupError> {
        let key = key::read(path.as_ref())?;
        Ok(self.with(|reach| reach.key = Some(key)))
    }

    /// For closed networks: links are not encrypted. Endpoints that are reached so call only their
    /// like.
    // spec: SEAL-10
    pub fn plain(self) -> Self {
        self.with(|reach| reach.is_plain = true)
    }

    /// Whether short messages go straight over Ethernet to other hosts of the same one; see
    /// [`NetOptions::ethernet`].
    // spec: NET-6
    pub fn ethernet(self, ethernet: Ethernet) -> Self {
        self.with(|reach| reach.net = reach.net.clone().ethernet(ethernet))
    }

    /// After how long without a sign of life an endpoint of another host is not heard, see
    /// [`NetOptions::silence`]; by default as `AYRE_SILENCE` says, or else 3 s. One that is called
    /// may take four times as long to answer.
    pub fn silence(self, silence: Duration) -> Self {
        self.with(|reach| {
            reach.silence = Some(silence);
            reach.net = reach.net.clone().silence(silence);
        })
    }

    /// After how long it is taken for dead, see [`NetOptions::dead_after`]; by default as
    /// `AYRE_DEAD_AFTER` says, or else 60 s.
    pub fn dead_after(self, time: Duration) -> Self {
        self.with(|reach| reach.net = reach.net.clone().dead_after(time))
    }

    /// Takes its addresses in this simulated network, and goes by its clock, as
    /// [`NetOptions::simulated`]. Endpoints there meet over it alone, those of one process too.
    // spec: NET-8
    pub fn simulated(self, simulation: &Simulation) -> Self {
        self.with(|reach| reach.net = reach.net.clone().simulated(simulation))
    }

    /// Does to what goes to other hosts what a bad network would: for tests.
    pub fn faults(self, plan: FaultPlan) -> Self {
        self.with(|reach| reach.net = reach.net.clone().faults(plan))
    }

    /// Cuts it off from other hosts when it is told to: for tests.
    pub fn partition(self, partition: &Partition) -> Self {
        self.with(|reach| reach.net = reach.net.clone().partition(partition))
    }

    /// Writes what it tells other hosts, and hears from them, into a file that Wireshark reads.
    pub fn capture(self, path: impl Into<PathBuf>) -> Self {
        self.with(|reach| reach.net = reach.net.clone().capture(path))
    }

    /// A port that others of this host, and perhaps of other ones, find at this address.
    pub(super) fn open_port(&self) -> Result<(Port, Address, Option<JobKey>), SetupError> {
        let ring = self.ring.map(ring_bytes).transpose()?;
        let clock = match &self.reach {
            Some(reach) => reach.net.clock(&Clock::system())?,
            None => Clock::system(),
        };
        let chance = clock.chance();
        // Memory of this host is no part of a simulated network.
        let is_apart = self.is_apart || clock.is_simulated();
        let (mut address, own) = match is_apart {
            true => Address::apart(&chance),
            false => Address::new(&chance),
        };
        let (name, tuning) = (Some(address.name()), self.tuning.clone().map(Arc::new));
        let mut config = Config { name, ring, tuning, ..Config::new() };
        if let Some(reach) = &self.reach {
            let chosen = reach.silence.map_or_else(settings::silence, |it| Ok(Some(it)))?;
            let silence = chosen.unwrap_or(NetOptions::SILENCE);
            config = config.setup_timeout(silence.saturating_mul(SILENCES_PER_CALL));
        }
        let config = config.mode(Mode::Mediated).spin(self.spin).linger(self.linger);
        let mut port = Port::open(config)?;
        port.clock = clock;
        if !is_apart && let Err(why) = port.listen_at(&address.socket_name()) {
            if self.reach.is_none() {
                return Err(why);
            }
            tell!(
                WARN,
                "links are taken to endpoints of this host, too, in place of memory: {why}"
            );
            address = address.without_neighbours(&chance);
        }
        match &self.reach {
            Some(reach) => {
                let key = reach.key()?;
                let address = reach.open(&mut port, (address, own), key.as_ref())?;
                Ok((port, address, key))
            }
            None => Ok((port, address, None)),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut ReachOptions)) -> Self {
        if let Some(reach) = &mut self.reach {
            change(reach);
        }
        self
    }
}

/// Where the words of variables are found.
struct Words<'a, F> {
    prefix: &'a str,
    find: F,
}

impl<F: Fn(&str) -> Option<String>> Words<'_, F> {
    fn get<T, E: Display>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SetupError> {
        let word = name.trim_start_matches("AYRE_").to_ascii_lowercase();
        let Some(text) = (self.find)(&word) else { return settings::read(name, parse) };
        let wrong = |why: E| settings::wrong_as((self.prefix, name), &text, &why);
        parse(&text).map(Some).map_err(wrong)
    }
}

fn said(error: SetupError) -> String {
    error.to_string()
}

/// Bytes of a ring as asked for, if there can be one that takes all long messages.
fn ring_bytes(bytes: usize) -> Result<u32, SetupError> {
    let is_sound = bytes.is_power_of_two() && (2 * LONG_MAX_HERE..=16 << 20).contains(&bytes);
    if is_sound { Ok(bytes as u32) } else { Err(SetupError::invalid("bytes of a ring")) }
}

impl ReachOptions {
    /// The key that was chosen, by the program or by the user.
    fn key(&self) -> Result<Option<JobKey>, SetupError> {
        match (&self.key, settings::key()) {
            (Some(key), _) => Ok(Some(key.clone())),
            (None, Some(path)) => key::read(Path::new(&path)).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The addresses at which it is to be reached, without a port.
    fn places(&self) -> Vec<SocketAddr> {
        let is_chosen = !self.ips.is_empty();
        let known = match self.net.anywhere() {
            Some(anywhere) if !is_chosen => return vec![anywhere],
            Some(_) => Vec::new(),
            None if is_chosen => interfaces::all(),
            None => interfaces::usable(),
        };
        let named = |ip: &IpAddr| {
            let found = known.iter().find(|found| found.ip == *ip);
            found.map_or_else(|| (*ip, 0).into(), |found| found.at(0))
        };
        match is_chosen {
            true => self.ips.iter().map(named).collect(),
            false => known.iter().map(|found| found.at(0)).collect(),
        }
    }

    /// Lets other hosts reach a port of this address; the address that they find it at.
    // spec: ENV-32
    fn open(
        &self,
        port: &mut Port,
        (address, own): (Address, StaticKey),
        key: Option<&JobKey>,
    ) -> Result<Address, SetupError> {
        let (is_chosen, mut at) = (!self.ips.is_empty(), self.places());
        let told = Places::of(at.iter().map(SocketAddr::ip));
        at.retain(|at| told.iter().any(|told| told == at.ip()));
        if at.is_empty() {
            tell!(INFO, "no interface of this host is up: only endpoints of this host are met");
            return Ok(address);
        }
        let net = self.net.clone().at_places(at, !is_chosen);
        let fingerprint = own.fingerprint();
        let callee = Callee::own(own, key, self.is_plain);
        let at = port.open_calls(&net, callee)?;
        Ok(address.reached(&at, (fingerprint, key), self.is_plain))
    }
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self::new()
    }
}

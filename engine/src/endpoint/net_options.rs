//! Options about other hosts.
use super::key;
use super::options::{EndpointOptions, Words};
use super::reach::ReachOptions;
use crate::error::SetupError;
use crate::link::JobKey;
use crate::net::chosen::host_addresses;
use crate::net::faults::Partition;
use crate::net::simulation::Simulation;
use crate::port_range::PortRange;
use crate::settings;
use crate::settings::choice::Ethernet;
use crate::settings::plan::FaultPlan;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl EndpointOptions {
    /// Meets endpoints of this host as it does those of other ones, over the network: for tests and
    /// measurements.
    pub fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Other hosts reach it at this address of this host. Repeated calls add addresses. By default
    /// it is reached at all addresses of interfaces that are up, up to [`Address::IPS_MAX`]. A
    /// caller tries them all, and takes the one that answers.
    ///
    /// [`Address::IPS_MAX`]: crate::endpoint::Address::IPS_MAX
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
    ///
    /// [`NetOptions::ethernet`]: crate::NetOptions::ethernet
    // spec: NET-6
    pub fn ethernet(self, ethernet: Ethernet) -> Self {
        self.with(|reach| reach.net = reach.net.clone().ethernet(ethernet))
    }

    /// After how long without a sign of life an endpoint of another host is not heard, see
    /// [`NetOptions::silence`]; by default as `AYRE_SILENCE` says, or else 3 s. One that is called
    /// may take four times as long to answer.
    ///
    /// [`NetOptions::silence`]: crate::NetOptions::silence
    pub fn silence(self, silence: Duration) -> Self {
        self.with(|reach| {
            reach.silence = Some(silence);
            reach.net = reach.net.clone().silence(silence);
        })
    }

    /// After how long it is taken for dead, see [`NetOptions::dead_after`]; by default as
    /// `AYRE_DEAD_AFTER` says, or else 60 s.
    ///
    /// [`NetOptions::dead_after`]: crate::NetOptions::dead_after
    pub fn dead_after(self, time: Duration) -> Self {
        self.with(|reach| reach.net = reach.net.clone().dead_after(time))
    }

    /// Takes its addresses in this simulated network, and goes by its clock, as
    /// [`NetOptions::simulated`]. Endpoints there meet over it alone, those of one process too.
    ///
    /// [`NetOptions::simulated`]: crate::NetOptions::simulated
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

    /// Takes the choices that variables make about other hosts.
    // spec: LIFE-23
    pub(super) fn reached_as(
        self,
        of: &Words<'_, impl Fn(&str) -> Option<String>>,
    ) -> Result<Self, SetupError> {
        let mut options = self;
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

    fn with(mut self, change: impl FnOnce(&mut ReachOptions)) -> Self {
        if let Some(reach) = &mut self.reach {
            change(reach);
        }
        self
    }
}

fn said(error: SetupError) -> String {
    error.to_string()
}

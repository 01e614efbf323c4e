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
    /// Uses the network also for endpoints of this host, for tests and measurements.
    pub fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Sets an address of this host at which other hosts reach the endpoint. Repeated calls add
    /// addresses. The default is all addresses of interfaces that are up, at most
    /// [`Address::IPS_MAX`]. A caller tries them all, and uses the first one that answers.
    ///
    /// [`Address::IPS_MAX`]: crate::endpoint::Address::IPS_MAX
    // spec: ENV-32
    pub fn at(self, ip: IpAddr) -> Self {
        self.with(|reach| reach.ips.push(ip))
    }

    /// Sets the range for the endpoint's UDP port, for example the ports that a firewall lets pass.
    // spec: ENV-35
    pub fn ports(self, range: PortRange) -> Self {
        self.with(|reach| reach.net = reach.net.clone().ports(range))
    }

    /// Sets a key of 64 hexadecimal digits. Only endpoints with the same key can open links with
    /// this one, so an address that others have read is of no use to them. The default is the key
    /// of `AYRE_KEY`, if it is set.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] if the text is not 64 hexadecimal digits.
    // spec: SEAL-16
    pub fn key(self, key: &str) -> Result<Self, SetupError> {
        let key = JobKey::from_hex(key);
        let key = key.ok_or_else(|| SetupError::invalid("a key has 64 hexadecimal digits"))?;
        Ok(self.with(|reach| reach.key = Some(key)))
    }

    /// Sets the key from a file, which only its owner may read; see [`EndpointOptions::key`].
    ///
    /// # Errors
    /// [`SetupError::Environment`] if the file cannot be read, others may read it, or it has no
    /// key.
    // spec: SEAL-16
    pub fn key_file(self, path: impl AsRef<Path>) -> Result<Self, SetupError> {
        let key = key::read(path.as_ref())?;
        Ok(self.with(|reach| reach.key = Some(key)))
    }

    /// Leaves links unencrypted, for closed networks. Plain endpoints connect with plain endpoints
    /// only.
    // spec: SEAL-10
    pub fn plain(self) -> Self {
        self.with(|reach| reach.is_plain = true)
    }

    /// Sets whether short messages go directly over Ethernet, to hosts of the same Ethernet; see
    /// [`NetOptions::ethernet`].
    ///
    /// [`NetOptions::ethernet`]: crate::NetOptions::ethernet
    // spec: NET-6
    pub fn ethernet(self, ethernet: Ethernet) -> Self {
        self.with(|reach| reach.net = reach.net.clone().ethernet(ethernet))
    }

    /// Sets the time without a sign of life after which operations to an endpoint of another host
    /// wait, see [`NetOptions::silence`]. The default is `AYRE_SILENCE`, or 3 s. An endpoint
    /// has four times as long to answer a request to connect.
    ///
    /// [`NetOptions::silence`]: crate::NetOptions::silence
    pub fn silence(self, silence: Duration) -> Self {
        self.with(|reach| {
            reach.silence = Some(silence);
            reach.net = reach.net.clone().silence(silence);
        })
    }

    /// Sets the time after which an endpoint of another host counts as dead, see
    /// [`NetOptions::dead_after`]. The default is `AYRE_DEAD_AFTER`, or 60 s.
    ///
    /// [`NetOptions::dead_after`]: crate::NetOptions::dead_after
    pub fn dead_after(self, time: Duration) -> Self {
        self.with(|reach| reach.net = reach.net.clone().dead_after(time))
    }

    /// Opens the endpoint in this simulated network, with the network's clock, as
    /// [`NetOptions::simulated`] does. Its endpoints use only this network, even within one
    /// process.
    ///
    /// [`NetOptions::simulated`]: crate::NetOptions::simulated
    // spec: NET-8
    pub fn simulated(self, simulation: &Simulation) -> Self {
        self.with(|reach| reach.net = reach.net.clone().simulated(simulation))
    }

    /// Adds faults to the datagrams that the endpoint sends, for tests.
    pub fn faults(self, plan: FaultPlan) -> Self {
        self.with(|reach| reach.net = reach.net.clone().faults(plan))
    }

    /// Connects the endpoint to other hosts through a cable that can be unplugged, for tests.
    pub fn partition(self, partition: &Partition) -> Self {
        self.with(|reach| reach.net = reach.net.clone().partition(partition))
    }

    /// Writes the frames that the endpoint sends and receives into a file for Wireshark,
    /// unencrypted.
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

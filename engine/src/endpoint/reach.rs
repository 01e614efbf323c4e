//! How other hosts reach an endpoint.
use super::places::Places;
use super::{Address, key};
use crate::error::{DisconnectReason, SetupError};
use crate::link::{Callee, JobKey, NetOptions, StaticKey, Unopened};
use crate::log::tell;
use crate::net::clock::Clock;
use crate::net::interfaces;
use crate::port::Port;
use crate::settings;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The time limit of a call, in multiples of the silence limit of a peer.
const SILENCES_PER_CALL: u32 = 4;

/// How other hosts reach an endpoint.
#[derive(Clone, Debug)]
pub(super) struct ReachOptions {
    /// Those of this host's that others may reach, unless given.
    pub(super) ips: Vec<IpAddr>,
    pub(super) is_plain: bool,
    /// The key that callers need besides the address.
    pub(super) key: Option<JobKey>,
    pub(super) silence: Option<Duration>,
    pub(super) net: NetOptions,
}

impl Unopened {
    /// The reason for a remote that was called for this time.
    pub(super) fn reason(self, waited: Duration) -> DisconnectReason {
        match self {
            Self::Refused(why) => DisconnectReason::Refused(why),
            Self::Version { theirs, ours } => DisconnectReason::Version { theirs, ours },
            Self::InVain { why: None, tried } => DisconnectReason::Unanswered { waited, tried },
            Self::InVain { why: Some(why), tried } => {
                DisconnectReason::Doubtful { waited, tried, why }
            }
            Self::Left => DisconnectReason::Died,
        }
    }
}

impl ReachOptions {
    /// By default: at this host's addresses, by links that are encrypted.
    pub(super) fn usual() -> Option<Self> {
        let net = NetOptions::plain();
        Some(Self { ips: Vec::new(), is_plain: false, key: None, silence: None, net })
    }

    /// The clock of its network.
    pub(super) fn clock(&self) -> Result<Clock, SetupError> {
        self.net.clock(&Clock::system())
    }

    /// For how long others are called.
    pub(super) fn patience(&self) -> Result<Duration, SetupError> {
        let chosen = self.silence.map_or_else(settings::silence, |it| Ok(Some(it)))?;
        Ok(chosen.unwrap_or(NetOptions::SILENCE).saturating_mul(SILENCES_PER_CALL))
    }

    /// The key that was chosen, by the program or by the user.
    pub(super) fn key(&self) -> Result<Option<JobKey>, SetupError> {
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
    pub(super) fn open(
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
        debug_assert!(at.iter().all(|at| at.port() != 0), "others find it at a port");
        Ok(address.reached(&at, (fingerprint, key), self.is_plain))
    }
}

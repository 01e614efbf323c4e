//! What the user of a job chooses by variables, whatever launcher starts it.
use super::{wrong, wrong_variable};
use crate::connection::Mode;
use crate::error::SetupError;
use crate::wire::{Ethernet, Plan};
use std::net::IpAddr;

/// The variables that every launcher hands on.
#[derive(Debug)]
pub(super) struct Choices {
    pub(super) mode: Mode,
    /// Links to other hosts are neither encrypted nor authenticated.
    pub(super) plain: bool,
    /// Where to be open to other hosts: interfaces, networks or addresses, one for each path.
    pub(super) net: Vec<String>,
    pub(super) ethernet: Ethernet,
    /// What is done to what is sent there.
    pub(super) faults: Option<Plan>,
}

impl Choices {
    // spec: LIFE-2, LIFE-8, SEAL-12
    pub(super) fn read() -> Result<Self, SetupError> {
        let mode = match std::env::var("AYRE_MODE").as_deref() {
            Err(_) | Ok("direct") => Mode::Direct,
            Ok("mediated") => Mode::Mediated,
            Ok(other) => return Err(wrong(format!("AYRE_MODE={other}"))),
        };
        let plain = match std::env::var("AYRE_PROTECTION").as_deref() {
            Err(_) | Ok("sealed") => false,
            Ok("plain") => true,
            Ok(other) => return Err(wrong(format!("AYRE_PROTECTION={other}"))),
        };
        let ethernet = match std::env::var("AYRE_ETHERNET").as_deref() {
            Err(_) => Ethernet::IfAllowed,
            Ok("never") => Ethernet::Never,
            Ok("required") => Ethernet::Required,
            Ok(other) => return Err(wrong(format!("AYRE_ETHERNET={other}"))),
        };
        let net = std::env::var("AYRE_NET").unwrap_or_default();
        let net = net.split(',').filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let faults = std::env::var("AYRE_FAULTS").ok().map(|text| text.parse()).transpose();
        let faults = faults.map_err(|_| wrong_variable("AYRE_FAULTS"))?;
        Ok(Self { mode, plain, net, ethernet, faults })
    }

    /// The places in `net`, where the launcher has put addresses there.
    pub(super) fn addresses(&self) -> Result<Vec<IpAddr>, SetupError> {
        let addresses = self.net.iter().map(|text| text.parse());
        addresses.collect::<Result<_, _>>().map_err(|_| wrong_variable("AYRE_NET"))
    }
}

//! Settings of a job by environment variables, under every launcher.
use crate::error::SetupError;
use crate::net::chosen::addresses_of_user;
use crate::settings;
use crate::settings::choice::{Ethernet, Mode};
use crate::settings::plan::FaultPlan;

/// The settings that every launcher passes on to the ranks.
#[derive(Debug)]
pub(super) struct Choices {
    pub(super) mode: Mode,
    /// Links to other hosts are neither encrypted nor authenticated.
    pub(super) plain: bool,
    pub(super) ethernet: Ethernet,
    /// The faults that are added to traffic to other hosts.
    pub(super) faults: Option<FaultPlan>,
}

impl Choices {
    /// Reads the variables. A wrong value is an error even if the job has one host, so that it is
    /// found early.
    // spec: LIFE-2, LIFE-8, LIFE-30, SEAL-12
    pub(super) fn read() -> Result<Self, SetupError> {
        settings::check()?;
        addresses_of_user()?;
        Ok(Self {
            mode: settings::mode()?.unwrap_or(Mode::Direct),
            plain: settings::is_plain()?.unwrap_or(false),
            ethernet: settings::ethernet()?.unwrap_or(Ethernet::IfAllowed),
            faults: settings::faults()?,
        })
    }
}

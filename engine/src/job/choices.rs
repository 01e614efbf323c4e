//! What the user of a job chooses by variables, whatever launcher starts it.
use crate::error::SetupError;
use crate::net::chosen::addresses_of_user;
use crate::settings;
use crate::settings::choice::{Ethernet, Mode};
use crate::settings::plan::FaultPlan;

/// The variables that every launcher hands on.
#[derive(Debug)]
pub(super) struct Choices {
    pub(super) mode: Mode,
    /// Links to other hosts are neither encrypted nor authenticated.
    pub(super) plain: bool,
    pub(super) ethernet: Ethernet,
    /// What is done to what is sent there.
    pub(super) faults: Option<FaultPlan>,
}

impl Choices {
    /// What is wrong is an error even where there is no other host, so that it is found at once.
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

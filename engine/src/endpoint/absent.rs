//! In place of `reach` where the feature `net` is off: other hosts reach no endpoint.
use super::Address;
use crate::error::SetupError;
use crate::link::{JobKey, StaticKey};
use crate::net::clock::Clock;
use crate::port::Port;
use std::time::Duration;

/// How other hosts reach an endpoint: they do not.
#[derive(Clone, Debug)]
pub(super) enum ReachOptions {}

impl ReachOptions {
    pub(super) fn usual() -> Option<Self> {
        None
    }

    pub(super) fn clock(&self) -> Result<Clock, SetupError> {
        match *self {}
    }

    pub(super) fn patience(&self) -> Result<Duration, SetupError> {
        match *self {}
    }

    pub(super) fn key(&self) -> Result<Option<JobKey>, SetupError> {
        match *self {}
    }

    pub(super) fn open(
        &self,
        _: &mut Port,
        _: (Address, StaticKey),
        _: Option<&JobKey>,
    ) -> Result<Address, SetupError> {
        match *self {}
    }
}

//! How an endpoint is opened.
use super::Address;
use super::reach::ReachOptions;
use crate::error::SetupError;
use crate::link::JobKey;
use crate::log::tell;
use crate::net::clock::Clock;
use crate::port::Port;
use crate::port::config::{Config, Spin};
use crate::settings;
use crate::settings::choice::Mode;
use crate::tuning::Tuning;
use ayre_proto::envelope::LONG_MAX_HERE;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// Options of an endpoint. By default other hosts can reach it. Without the Cargo feature `net`,
/// only endpoints of the same host can.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    pub(super) spin: Spin,
    pub(super) linger: Duration,
    pub(super) is_apart: bool,
    tuning: Option<Tuning>,
    ring: Option<usize>,
    pub(super) memory: Option<u64>,
    pub(super) reach: Option<ReachOptions>,
}

impl EndpointOptions {
    /// Defaults: other hosts reach the endpoint at this host's addresses, over encrypted links.
    pub fn new() -> Self {
        Self {
            spin: Spin::DEDICATED,
            linger: Duration::from_secs(1),
            is_apart: false,
            tuning: None,
            ring: None,
            memory: None,
            reach: ReachOptions::usual(),
        }
    }

    /// Options from the user's variables: `AYRE_NET`, `AYRE_PORTS`, `AYRE_PROTECTION`,
    /// `AYRE_ETHERNET`, `AYRE_KEY`, `AYRE_CAPTURE`, `AYRE_MEMORY`, `AYRE_SILENCE`,
    /// `AYRE_DEAD_AFTER` and `AYRE_FAULTS`. `AYRE_NET` may be `none` here: other hosts do not reach
    /// the endpoint then.
    ///
    /// # Errors
    /// [`SetupError::Environment`] if a variable has a wrong value.
    // spec: LIFE-23
    pub fn of_variables() -> Result<Self, SetupError> {
        Self::of_settings("", |_| None)
    }

    /// Options from the user's variables and from settings of another source, such as libfabric's.
    /// `find` returns the other source's value for a variable. It gets the name without `AYRE_`, in
    /// lower case. Its value takes precedence. Errors put `prefix` before the name of the variable.
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
        if let Some(bytes) = of.get(settings::MEMORY, settings::bytes_of_memory)? {
            options = options.memory(bytes);
        }
        if cfg!(not(feature = "net")) {
            of.refuse(settings::OF_NET, "net")?;
        }
        #[cfg(feature = "net")]
        let options = options.reached_as(&of)?;
        Ok(options)
    }

    /// Sets how long blocking waits stay awake.
    pub fn spin(self, spin: Spin) -> Self {
        Self { spin, ..self }
    }

    /// Sets how long dropping the endpoint may take to deliver sent messages to other hosts. The
    /// default is 1 s.
    pub fn linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// Sets the methods for long messages, in place of those that [`crate::tuning::active`] finds.
    // spec: INJ-4
    pub fn tuning(self, tuning: Tuning) -> Self {
        Self { tuning: Some(tuning), ..self }
    }

    /// Sets the bytes of the ring for long messages in each direction, a power of two from 32 KiB
    /// to 16 MiB. It applies to connections that the endpoint accepts from its host. On connections
    /// with other hosts, the smaller setting of the two ends applies.
    ///
    /// The default on one host is 1 to 4 MiB, by its caches. Between hosts the first 16 connections
    /// have 1 MiB, and later ones 256 KiB. A ring takes memory only as it is used, within a part of
    /// the memory that the process may use.
    // spec: LIM-4, ENV-42, OPEN-14
    pub fn ring(self, bytes: usize) -> Self {
        Self { ring: Some(bytes), ..self }
    }

    /// Sets the bytes of memory that the endpoint may take. The default is `AYRE_MEMORY`, or a
    /// share of the memory that the machine and the control groups allow.
    ///
    /// One half is for unexpected messages. If that is full, the connection with the remote that
    /// has sent most of them ends. The other half is for pending operations, 512 bytes each. The
    /// endpoint takes memory only as it needs it.
    // spec: ENV-36, ENV-37, ENV-39
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// Lets only endpoints of this host reach the endpoint.
    pub fn local(self) -> Self {
        Self { reach: None, ..self }
    }

    /// A port that others of this host, and perhaps of other ones, find at this address.
    pub(super) fn open_port(&self) -> Result<(Port, Address, Option<JobKey>), SetupError> {
        let ring = self.ring.map(ring_bytes).transpose()?;
        let clock = match &self.reach {
            Some(reach) => reach.clock()?,
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
            config = config.setup_timeout(reach.patience()?);
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
}

/// Where the words of variables are found.
pub(super) struct Words<'a, F> {
    prefix: &'a str,
    pub(super) find: F,
}

impl<F: Fn(&str) -> Option<String>> Words<'_, F> {
    pub(super) fn get<T, E: Display>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SetupError> {
        let Some(text) = (self.find)(&word_of(name)) else { return settings::read(name, parse) };
        let wrong = |why: E| settings::wrong_as((self.prefix, name), &text, &why);
        parse(&text).map(Some).map_err(wrong)
    }

    /// Refuses variables of a Cargo feature that this build lacks.
    fn refuse(&self, names: &[&'static str], feature: &str) -> Result<(), SetupError> {
        for name in names {
            if (self.find)(&word_of(name)).is_some() {
                return Err(settings::lacks(&format!("{}{name}", self.prefix), feature));
            }
            if std::env::var_os(name).is_some() {
                return Err(settings::lacks(name, feature));
            }
        }
        Ok(())
    }
}

/// The name of a variable behind `AYRE_`, in lower case letters.
fn word_of(name: &str) -> String {
    name.trim_start_matches("AYRE_").to_ascii_lowercase()
}

/// Bytes of a ring as asked for, if there can be one that takes all long messages.
fn ring_bytes(bytes: usize) -> Result<u32, SetupError> {
    let is_sound = bytes.is_power_of_two() && (2 * LONG_MAX_HERE..=16 << 20).contains(&bytes);
    let why = "a ring has a power of two of bytes, from 32 KiB to 16 MiB";
    if is_sound { Ok(bytes as u32) } else { Err(SetupError::invalid(why)) }
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self::new()
    }
}

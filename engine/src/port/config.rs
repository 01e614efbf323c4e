//! Run-time choices of a port, with defaults that suit most programs.
use crate::peer::agreement::Name;
use crate::port::device::Trace;
use crate::settings::choice::Mode;
use crate::tuning::Tuning;
use std::sync::Arc;
use std::time::Duration;

/// How a port is opened.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) mode: Mode,
    pub(crate) rank: u16,
    pub(crate) setup_timeout: Duration,
    pub(crate) revoke_grace: Duration,
    pub(crate) spin: Spin,
    pub(crate) linger: Duration,
    /// None: what is found when the port is opened.
    pub(crate) tuning: Option<Arc<Tuning>>,
    /// Peers have names and no numbers, and the port gives them its own.
    pub(crate) name: Option<Name>,
    /// Bytes of the rings of connections with named peers; none: what is best here.
    pub(crate) ring: Option<u32>,
    pub(crate) trace: Option<Trace>,
}

impl Config {
    /// Defaults: direct connections, number 0, one minute for set-up.
    pub const fn new() -> Self {
        Self {
            mode: Mode::Direct,
            rank: 0,
            setup_timeout: Duration::from_secs(60),
            revoke_grace: Duration::from_millis(100),
            spin: Spin::DEDICATED,
            linger: Duration::from_secs(1),
            tuning: None,
            name: None,
            ring: None,
            trace: None,
        }
    }

    /// Whether this port lets peers into its memory, or performs their operations itself. A
    /// connection is direct only where both ends say so.
    // spec: LIFE-8
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The number by which peers know this port.
    pub const fn number(mut self, number: u16) -> Self {
        self.rank = number;
        self
    }

    /// How long connecting and accepting capabilities may take.
    pub const fn setup_timeout(mut self, timeout: Duration) -> Self {
        self.setup_timeout = timeout;
        self
    }

    /// How long `revoke` waits for an initiator that is inside an operation, before it takes it for
    /// stopped and moves the region's content away from under it.
    pub const fn revoke_grace(mut self, grace: Duration) -> Self {
        self.revoke_grace = grace;
        self
    }

    /// How long a port that is dropped stays to bring what it has posted to other hosts.
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// By which methods many bytes are moved, instead of what [`crate::tuning::active`] finds.
    // spec: INJ-4
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = Some(Arc::new(tuning));
        self
    }

    /// What the devices of connections are given is written down here.
    #[doc(hidden)]
    pub fn trace(mut self, trace: &Trace) -> Self {
        self.trace = Some(trace.clone());
        self
    }

    /// How long blocking waits stay awake.
    pub const fn spin(mut self, spin: Spin) -> Self {
        self.spin = spin;
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// How a blocking wait behaves: it polls so many times, then polls and yields the processor so many
/// times, then sleeps until a sender wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// Polls before the first yield.
    pub polls: u32,
    /// Yields before sleeping.
    pub yields: u32,
}

impl Spin {
    /// A processor for each port: poll for some ten times what a wake-up costs.
    pub const DEDICATED: Self = Self { polls: 4_000, yields: 16 };
    /// More ports than processors: whoever waits makes room at once, and is asked again when the
    /// others have had their turns, which is cheaper than sleeping and being woken.
    pub const SHARED: Self = Self { polls: 8, yields: 64 };

    /// Whether it is for ports that outnumber processors.
    pub(crate) const fn is_shared(self) -> bool {
        self.polls <= Self::SHARED.polls
    }
}

const _: () = assert!(
    Spin::SHARED.polls < Spin::DEDICATED.polls,
    "who shares a processor gives it up earlier"
);

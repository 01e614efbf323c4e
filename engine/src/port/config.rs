//! Options of a port, with defaults that suit most programs.
use crate::peer::agreement::Name;
use crate::port::device::Trace;
use crate::settings::choice::Mode;
use crate::tuning::Tuning;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The options with which a port is opened. Later calls override earlier ones.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) mode: Mode,
    pub(crate) rank: u16,
    pub(crate) setup_timeout: Duration,
    pub(crate) revoke_grace: Duration,
    pub(crate) spin: Spin,
    pub(crate) linger: Duration,
    /// The tuning; None: that of [`crate::tuning::active`] when the port is opened.
    pub(crate) tuning: Option<Arc<Tuning>>,
    /// The endpoint's name. Peers then have names in place of numbers, and the port gives them
    /// numbers of its own.
    pub(crate) name: Option<Name>,
    /// Bytes of the rings of connections with named peers; None: the best size for this machine.
    pub(crate) ring: Option<u32>,
    pub(crate) trace: Option<Trace>,
    pub(crate) interrupt: Option<Interrupt>,
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
            interrupt: None,
        }
    }

    /// Sets whether peers access this port's memory themselves, or the port performs their
    /// operations. A connection is direct only where both ports choose that.
    // spec: LIFE-8
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the number by which peers know this port.
    pub const fn number(mut self, number: u16) -> Self {
        self.rank = number;
        self
    }

    /// Sets the longest time that connecting and accepting capabilities may take.
    pub const fn setup_timeout(mut self, timeout: Duration) -> Self {
        self.setup_timeout = timeout;
        self
    }

    /// Sets how long `revoke` waits for an initiator inside an operation, before it treats that as
    /// stopped and moves the region's contents to fresh memory.
    pub const fn revoke_grace(mut self, grace: Duration) -> Self {
        self.revoke_grace = grace;
        self
    }

    /// Sets how long dropping a port may take to deliver posted operations to other hosts.
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Sets the cut-offs between methods, in place of those that [`crate::tuning::active`] finds.
    // spec: INJ-4
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = Some(Arc::new(tuning));
        self
    }

    /// Sets a function that ends blocking calls: for languages whose runtime handles signals
    /// itself. Calls that block ask it every 50 ms, and end early once it returns true. The
    /// function must not use the port.
    ///
    /// A wait with a timeout, and a call that sets something up, ends as if its time were over.
    /// Other calls return [`Fault::Interrupted`](crate::Fault::Interrupted), or the same in the
    /// errors of messengers; [`Messenger::flush`](crate::Messenger::flush) returns. Operations that
    /// were begun go on:
    ///
    /// - A get, fetch or put: the commands that the peer has got are performed. They raise no
    ///   notification here.
    /// - A message of more than 1024 bytes is sent whole. With this function, peers do not read
    ///   messages in the memory of this process, because a call may end early.
    /// - A port joins or leaves its multicast group.
    /// - A [`Messenger::sync`](crate::Messenger::sync): another call goes on with it.
    ///
    /// A collective is given up, and its group does no further one. A stream that is being closed
    /// is cancelled.
    pub fn interrupt(mut self, ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.interrupt = Some(Interrupt(Arc::new(ask)));
        self
    }

    /// Records all calls to the devices of connections.
    #[doc(hidden)]
    pub fn trace(mut self, trace: &Trace) -> Self {
        self.trace = Some(trace.clone());
        self
    }

    /// Sets how long blocking waits stay awake.
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

/// A function of the program's that says whether blocking calls are to end.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// The longest sleep between two questions.
    pub(crate) const EVERY: Duration = Duration::from_millis(50);

    pub(crate) fn asks(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// The behaviour of a blocking wait: it polls `polls` times, then polls and yields the processor
/// `yields` times, then sleeps until a sender wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// Polls before the first yield.
    pub polls: u32,
    /// Yields before the wait sleeps.
    pub yields: u32,
}

impl Spin {
    /// For ports that have a processor each: polls for about ten times the cost of a wake-up.
    pub const DEDICATED: Self = Self { polls: 4_000, yields: 16 };
    /// For more ports than processors: yields at once and polls again after the others have run,
    /// which is cheaper than sleeping and being woken.
    pub const SHARED: Self = Self { polls: 8, yields: 64 };

    /// Whether these are settings for ports that outnumber processors.
    pub(crate) const fn is_shared(self) -> bool {
        self.polls <= Self::SHARED.polls
    }
}

const _: () = assert!(
    Spin::SHARED.polls < Spin::DEDICATED.polls,
    "who shares a processor gives it up earlier"
);

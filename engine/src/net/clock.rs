//! What time it is on a wire.
use super::chance::Chance;
use super::simulation::Seat;
use crate::clock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock that counts nanoseconds and never goes back.
#[derive(Debug)]
pub(crate) enum Clock {
    /// The system's, which stood there when it began, no later than at that instant.
    System(u64, Instant),
    /// A simulation's, where this wire has a seat.
    Simulated(Arc<Seat>),
}

impl Clock {
    /// The system's, which begins now.
    pub(crate) fn system() -> Self {
        Self::System(clock::nanos(), clock::now())
    }

    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::System(begin, _) => clock::nanos().wrapping_sub(*begin),
            Self::Simulated(seat) => seat.now(),
        }
    }

    /// Where numbers by chance come from in the clock's world.
    pub(crate) fn chance(&self) -> Chance {
        match self {
            Self::System(..) => Chance::System,
            Self::Simulated(seat) => Chance::Simulated(seat.clone()),
        }
    }

    /// Until when who sleeps for this wire may sleep; `due` is by this clock. None: for ever.
    pub(crate) fn instant(&self, due: Option<u64>) -> Option<Instant> {
        match self {
            Self::System(_, epoch) => epoch.checked_add(Duration::from_nanos(due?)),
            Self::Simulated(seat) => Some(seat.instant()),
        }
    }

    /// The port has looked, and has nothing more to do before `due` unless something comes.
    pub(crate) fn looked(&self, due: Option<u64>) {
        if let Self::Simulated(seat) = self {
            seat.looked(due);
        }
    }

    /// The same where somebody else has looked for the port.
    pub(crate) fn tended(&self, due: Option<u64>) {
        if let Self::Simulated(seat) = self {
            seat.tended(due);
        }
    }
}

//! The time at a port, and on its wire.
use super::chance::Chance;
use super::simulation::{Seat, Waiting};
use crate::clock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock that never goes back. Clones are the same clock.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The system's, which stood there when it began, no later than at that instant.
    System(u64, Instant),
    /// A simulation's, where the port has a seat.
    Simulated(Arc<Seat>),
}

/// When a wait is over: once it has come by the port's clock and by the system's. In a simulation
/// what is waited for may be another thread's to do, and that takes none of the simulation's time.
// spec: NET-17
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    at: Instant,
    by_system: Instant,
}

impl Clock {
    /// The system's, which begins now.
    pub(crate) fn system() -> Self {
        Self::System(clock::nanos(), clock::now())
    }

    /// Nanoseconds since it began.
    pub(crate) fn nanos(&self) -> u64 {
        match self {
            Self::System(begin, _) => clock::nanos().wrapping_sub(*begin),
            Self::Simulated(seat) => seat.now(),
        }
    }

    /// The time now, by which calls reckon: instants of a simulation go by its own time.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::System(..) => clock::now(),
            Self::Simulated(seat) => seat.instant(),
        }
    }

    /// A timeout as a deadline; one too far to express is none.
    #[inline]
    pub(crate) fn deadline(&self, timeout: Option<Duration>) -> Option<Deadline> {
        let timeout = timeout?;
        let at = self.now().checked_add(timeout)?;
        let by_system = match self {
            Self::System(..) => at,
            Self::Simulated(_) => clock::now().checked_add(timeout)?,
        };
        Some(Deadline { at, by_system })
    }

    /// The deadline after a time that was chosen when the port was opened.
    pub(crate) fn within(&self, time: Duration) -> Deadline {
        self.deadline(Some(time)).expect("a time that can be expressed")
    }

    /// A call waits until a deadline at most, as long as what this returns lives. Where the thread
    /// polls all ports of a simulation, its time stands at that deadline until then.
    // spec: NET-9
    #[inline]
    pub(crate) fn wait(&self, deadline: Option<Deadline>) -> Option<Waiting> {
        match self {
            Self::System(..) => None,
            Self::Simulated(seat) => deadline.and_then(|end| seat.wait(end.at, end.by_system)),
        }
    }

    /// Whether the call that waits does so in vain.
    pub(crate) fn is_in_vain(&self) -> bool {
        match self {
            Self::System(..) => false,
            Self::Simulated(seat) => seat.is_in_vain(),
        }
    }

    /// Whether a deadline has come.
    #[inline]
    pub(crate) fn is_over(&self, deadline: Deadline) -> bool {
        match self {
            Self::System(..) => self.has_come(deadline),
            Self::Simulated(seat) => seat.is_over(deadline.at, deadline.by_system),
        }
    }

    /// Whether a deadline has come by this clock: who polls need not do so any longer.
    #[inline]
    pub(crate) fn has_come(&self, deadline: Deadline) -> bool {
        self.now() >= deadline.at
    }

    /// Where numbers by chance come from in the clock's world.
    pub(crate) fn chance(&self) -> Chance {
        match self {
            Self::System(..) => Chance::System,
            Self::Simulated(seat) => Chance::Simulated(seat.clone()),
        }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Until when, by the system's clock, who sleeps may sleep that has something to do once `due`
    /// or `deadline` has come. None: for ever.
    pub(crate) fn wake_by(&self, due: Option<u64>, deadline: Option<Deadline>) -> Option<Instant> {
        match self {
            Self::System(_, epoch) => {
                let due = due.and_then(|due| epoch.checked_add(Duration::from_nanos(due)));
                let until = deadline.map(|deadline| deadline.at);
                debug_assert!(deadline.is_none_or(|it| it.at == it.by_system), "as it was made");
                until.into_iter().chain(due).min()
            }
            Self::Simulated(seat) => {
                Some(seat.wake_by(deadline.map(|deadline| (deadline.at, deadline.by_system))))
            }
        }
    }

    /// The port has looked, and has nothing more to do before `due` unless something comes.
    pub(crate) fn looked(&self, due: Option<u64>) {
        if let Self::Simulated(seat) = self {
            seat.looked(due);
        }
    }

    /// Another thread has looked in the port's stead, and it has nothing to do before this time.
    pub(crate) fn tended(&self, due: Option<u64>) {
        if let Self::Simulated(seat) = self {
            seat.tended(due);
        }
    }
}

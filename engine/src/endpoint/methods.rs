//! By which method messages come that lie in their sender's memory: as is said for their length, or
//! as has been faster.
use crate::net::clock::Clock;
use crate::tuning::{Method, ROUND, Trials, Tuning, Use};
use ayre_proto::endpoint::{Choice, ENOUGH};
use std::time::{Duration, Instant};

const _: () = assert!(ENOUGH > ROUND, "a receiver has decided when its sender stops asking");

/// What is known of both methods.
#[derive(Debug, Default)]
pub(super) struct Methods {
    trials: Trials,
    /// From when on its times count.
    start: Option<Instant>,
    /// When the last message was here that was timed.
    last_timed: Option<Duration>,
}

impl Methods {
    /// Chooses how a message of so many bytes comes.
    // spec: INJ-2, INJ-8
    pub(super) fn choose(
        &mut self,
        is_readable: bool,
        len: u64,
        clock: &Clock,
        tuning: Option<&Tuning>,
    ) -> Choice {
        debug_assert!(len > 0, "what has no bytes does not come");
        if !is_readable {
            return Choice { is_read: false, since: None };
        }
        if let Some(fixed) = tuning.filter(|tuning| !tuning.steps(Use::Receive).is_empty()) {
            let is_read = fixed.method(Use::Receive, len) == Method::Kernel;
            return Choice { is_read, since: None };
        }
        let since = Some(self.time(clock).as_nanos() as u64);
        Choice { is_read: self.trials.choose(len) == Method::Kernel, since }
    }

    /// One that was chosen for is here, if a clock is said, or comes no more or not so. How long it
    /// has taken counts: since it was wanted, or the last one before it was here.
    // spec: INJ-8
    pub(super) fn chosen(&mut self, choice: Choice, len: u64, here: Option<&Clock>) {
        let Some(since) = choice.since.map(Duration::from_nanos) else { return };
        let Some(clock) = here else { return self.trials.drop_one(len) };
        let now = self.time(clock);
        let before = self.last_timed.replace(now);
        debug_assert!(since <= now && before.is_none_or(|before| before <= now), "time goes on");
        let since = before.map_or(since, |before| before.max(since));
        let by = if choice.is_read { Method::Kernel } else { Method::Pipeline };
        self.trials.note(by, len, now.saturating_sub(since));
    }

    fn time(&mut self, clock: &Clock) -> Duration {
        let now = clock.now();
        now.saturating_duration_since(*self.start.get_or_insert(now))
    }
}

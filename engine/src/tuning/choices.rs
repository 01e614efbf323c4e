//! The choice of the method for messages that their receiver can read in place: by the cut-offs for
//! their length, or else by measurement.
use super::{Method, ROUND, Trials, Tuning, Use};
use ayre_proto::ring::asking::ENOUGH;
use std::time::{Duration, Instant};

const _: () = assert!(ENOUGH > ROUND, "a receiver has decided when its sender stops asking");

/// The method chosen for one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) bytes: u64,
    pub(crate) by: Method,
    /// The time of the choice, in nanoseconds of the clock of [`Choices`], if the message is timed.
    pub(crate) since: Option<u64>,
}

/// The measurements of one receiver.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    trials: Trials,
    /// The beginning of its clock.
    start: Option<Instant>,
    /// The time at which the last timed message was complete.
    last_timed: Option<u64>,
}

impl Choices {
    /// Chooses the method for a message of this length. Without cut-offs for its use, the message
    /// is timed.
    // spec: INJ-2, INJ-8
    pub(crate) fn choose(
        &mut self,
        of: Use,
        bytes: u64,
        tuning: Option<&Tuning>,
        now: impl FnOnce() -> Instant,
    ) -> Chosen {
        debug_assert!(of.methods() == Use::Receive.methods(), "what is compared");
        match tuning.and_then(|tuning| tuning.said(of, bytes)) {
            Some(by) => Chosen { bytes, by, since: None },
            None => {
                let since = Some(self.time(now()));
                Chosen { bytes, by: self.trials.choose(bytes), since }
            }
        }
    }

    /// Records that a message is complete. It has taken the time since it was requested, or since
    /// the message before it was complete, if that is later.
    // spec: INJ-8
    pub(crate) fn finish(&mut self, chosen: Chosen, now: impl FnOnce() -> Instant) {
        let Chosen { bytes, by, since: Some(since) } = chosen else { return };
        let now = self.time(now());
        let before = self.last_timed.replace(now);
        debug_assert!(since <= now && before.is_none_or(|before| before <= now), "time goes on");
        let since = before.map_or(since, |before| before.max(since));
        self.trials.note(by, bytes, Duration::from_nanos(now.saturating_sub(since)));
    }

    /// Records that a message does not come, or comes by another method.
    // spec: INJ-8
    pub(crate) fn drop_one(&mut self, chosen: Chosen) {
        if chosen.since.is_some() {
            self.trials.drop_one(chosen.bytes);
        }
    }

    fn time(&mut self, now: Instant) -> u64 {
        now.saturating_duration_since(*self.start.get_or_insert(now)).as_nanos() as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::tuning::Step;
    use std::time::Duration;

    /// A clock that the test sets.
    fn at(nanos: u64) -> impl FnOnce() -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let start = *START.get_or_init(crate::clock::now);
        move || start + Duration::from_nanos(nanos)
    }

    // spec: INJ-2
    #[test]
    fn methods_given_by_the_tuning_are_not_timed() {
        let step = |from, method| Step { from, method };
        let steps = vec![step(0, Method::Kernel), step(1 << 20, Method::Pipeline)];
        let tuning = Tuning::new().with_steps(Use::Message, steps).expect("sound steps");
        let mut choices = Choices::default();
        let never = || -> Instant { unreachable!("nobody looks at the clock") };
        for (bytes, by) in [(1 << 16, Method::Kernel), (1 << 21, Method::Pipeline)] {
            let chosen = choices.choose(Use::Message, bytes, Some(&tuning), never);
            assert_eq!((chosen.by, chosen.bytes), (by, bytes));
            choices.finish(chosen, never);
        }
    }

    /// Times of one use do not count for another one.
    // spec: INJ-8
    #[test]
    fn the_faster_one_is_taken_whatever_is_said_of_other_uses() {
        let steps = vec![Step { from: 0, method: Method::Pipeline }];
        let tuning = Tuning::new().with_steps(Use::Receive, steps).expect("sound steps");
        let (mut choices, mut time, mut by_kernel) = (Choices::default(), 0, 0);
        for _ in 0..500 {
            let chosen = choices.choose(Use::Message, 8 << 20, Some(&tuning), at(time));
            time += if chosen.by == Method::Kernel { 5_000 } else { 9_000 };
            by_kernel += u32::from(chosen.by == Method::Kernel);
            choices.finish(chosen, at(time));
        }
        assert!(by_kernel > 480, "{by_kernel} of 500");
    }

    /// Of two messages requested at one time, the second has the time after the first one's end.
    // spec: INJ-8
    #[test]
    fn time_spent_behind_another_transfer_is_not_counted() {
        let (mut choices, mut time, mut by_kernel) = (Choices::default(), 0, 0);
        for _ in 0..300 {
            let two = [(); 2].map(|()| choices.choose(Use::Receive, 8 << 20, None, at(time)));
            for chosen in two {
                time += if chosen.by == Method::Kernel { 9_000 } else { 5_000 };
                by_kernel += u32::from(chosen.by == Method::Kernel);
                choices.finish(chosen, at(time));
            }
        }
        assert!(by_kernel < 40, "{by_kernel} of 600");
        let gone = choices.choose(Use::Receive, 8 << 20, None, at(time));
        choices.drop_one(gone);
        assert_eq!(gone.by, Method::Pipeline);
    }
}

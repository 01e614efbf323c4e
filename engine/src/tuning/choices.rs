//! How messages come that their receiver can read where they lie: as is said for their length, or
//! as has been faster.
use super::{Method, Trials, Tuning, Use};
use std::time::Instant;

/// How one message comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    bytes: u64,
    by: Method,
    /// Since when it is wanted, where that is timed.
    since: Option<Instant>,
}

/// What a receiver has found out.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    trials: Trials,
    /// When the last message was here that was timed.
    last_timed: Option<Instant>,
}

impl Chosen {
    pub(crate) const fn by(&self) -> Method {
        self.by
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Choices {
    /// Chooses how a message of so many bytes comes. Without cut-offs for its use that is timed.
    // spec: INJ-2, INJ-8
    pub(crate) fn choose(
        &mut self,
        of: Use,
        bytes: u64,
        tuning: Option<&Tuning>,
        now: impl FnOnce() -> Instant,
    ) -> Chosen {
        debug_assert!(of.methods() == Use::Receive.methods(), "what is compared");
        let fixed = tuning.filter(|tuning| !tuning.steps(of).is_empty());
        match fixed.map(|tuning| tuning.method(of, bytes)) {
            Some(by) => Chosen { bytes, by, since: None },
            None => Chosen { bytes, by: self.trials.choose(bytes), since: Some(now()) },
        }
    }

    /// All of a message is here. How long it has taken counts: since it was wanted, or the last one
    /// before it was here.
    // spec: INJ-8
    pub(crate) fn finish(&mut self, chosen: Chosen, now: impl FnOnce() -> Instant) {
        let Chosen { bytes, by, since: Some(since) } = chosen else { return };
        let now = now();
        let before = self.last_timed.replace(now);
        let since = before.map_or(since, |before| before.max(since));
        debug_assert!(since <= now, "time goes on");
        self.trials.note(by, bytes, now - since);
    }

    /// A message does not come, or not as was chosen.
    // spec: INJ-8
    pub(crate) fn drop_one(&mut self, chosen: Chosen) {
        if chosen.since.is_some() {
            self.trials.drop_one(chosen.bytes);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::tuning::Step;
    use std::time::Duration;

    /// A clock that its holder sets.
    fn at(nanos: u64) -> impl FnOnce() -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let start = *START.get_or_init(crate::clock::now);
        move || start + Duration::from_nanos(nanos)
    }

    // spec: INJ-2
    #[test]
    fn what_is_said_is_not_timed() {
        let step = |from, method| Step { from, method };
        let steps = vec![step(0, Method::Kernel), step(1 << 20, Method::Pipeline)];
        let tuning = Tuning::new().with_steps(Use::Message, steps).expect("sound steps");
        let mut choices = Choices::default();
        let never = || -> Instant { unreachable!("nobody looks at the clock") };
        for (bytes, by) in [(1 << 16, Method::Kernel), (1 << 21, Method::Pipeline)] {
            let chosen = choices.choose(Use::Message, bytes, Some(&tuning), never);
            assert_eq!((chosen.by(), chosen.bytes()), (by, bytes));
            choices.finish(chosen, never);
        }
    }

    /// The steps of one use say nothing of another one.
    // spec: INJ-8
    #[test]
    fn the_faster_one_is_taken_whatever_is_said_of_other_uses() {
        let steps = vec![Step { from: 0, method: Method::Pipeline }];
        let tuning = Tuning::new().with_steps(Use::Receive, steps).expect("sound steps");
        let (mut choices, mut time, mut by_kernel) = (Choices::default(), 0, 0);
        for _ in 0..500 {
            let chosen = choices.choose(Use::Message, 8 << 20, Some(&tuning), at(time));
            time += if chosen.by() == Method::Kernel { 5_000 } else { 9_000 };
            by_kernel += u32::from(chosen.by() == Method::Kernel);
            choices.finish(chosen, at(time));
        }
        assert!(by_kernel > 480, "{by_kernel} of 500");
    }

    /// Of two that were wanted at one time, the second takes what is left behind the first.
    // spec: INJ-8
    #[test]
    fn what_waits_behind_another_one_is_not_slow() {
        let (mut choices, mut time, mut by_kernel) = (Choices::default(), 0, 0);
        for _ in 0..300 {
            let two = [(); 2].map(|()| choices.choose(Use::Receive, 8 << 20, None, at(time)));
            for chosen in two {
                time += if chosen.by() == Method::Kernel { 9_000 } else { 5_000 };
                by_kernel += u32::from(chosen.by() == Method::Kernel);
                choices.finish(chosen, at(time));
            }
        }
        assert!(by_kernel < 40, "{by_kernel} of 600");
        let gone = choices.choose(Use::Receive, 8 << 20, None, at(time));
        choices.drop_one(gone);
        assert_eq!(gone.by(), Method::Pipeline);
    }
}

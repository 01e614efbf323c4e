//! The schedule by which several nets are polled. A port that others may find at several addresses
//! receives by one or two of them, and each poll of another one is a system call for nothing.

/// For how long a net of several is looked at in each poll after something has come by it, and how
/// often the others are.
const QUIET_NANOS: u64 = 1_000_000_000;
const SWEEP_NANOS: u64 = 50_000;

const _: () = assert!(SWEEP_NANOS < QUIET_NANOS, "a net is looked at before it is taken for quiet");

/// When nets are looked at, of which all but one or two hear nothing most of the time.
// spec: NET-12
#[derive(Debug)]
pub(crate) struct PollSchedule {
    /// When something has come last, by net; of a single net, and of paths, nothing.
    heard_at: Vec<u64>,
    /// When all were looked at last.
    at: u64,
}

impl PollSchedule {
    pub(crate) fn at_each(nets: usize) -> Self {
        Self { heard_at: vec![0; if nets > 1 { nets } else { 0 }], at: 0 }
    }

    /// Whether all are looked at now.
    pub(crate) fn are_due(&mut self, now: u64, wanted: bool) -> bool {
        let due = wanted || now.saturating_sub(self.at) >= SWEEP_NANOS;
        if due {
            self.at = now;
        }
        due
    }

    /// Whether something has come by a net lately.
    pub(crate) fn is_active(&self, net: usize, now: u64) -> bool {
        self.heard_at.get(net).is_none_or(|at| now.saturating_sub(*at) < QUIET_NANOS)
    }

    pub(crate) fn on_arrival(&mut self, net: usize, now: u64) {
        debug_assert!(self.heard_at.len() != 1, "a single net is looked at each time");
        if let Some(at) = self.heard_at.get_mut(net) {
            *at = now;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: NET-12
    #[test]
    fn a_net_that_has_been_silent_is_looked_at_now_and_then_and_one_that_speaks_always() {
        let mut schedule = PollSchedule::at_each(2);
        let mut now = QUIET_NANOS;
        schedule.on_arrival(1, now);
        let mut looked = [0; 2];
        for _ in 0..1000 {
            now += 1000;
            let all = schedule.are_due(now, false);
            let nets = [0, 1].map(|net| all || schedule.is_active(net, now));
            looked = [0, 1].map(|net: usize| looked[net] + i32::from(nets[net]));
        }
        assert_eq!(looked, [20, 1000], "in a millisecond");
        assert!(!schedule.are_due(now, false) && schedule.are_due(now, true), "it is asked for");
        assert!(!schedule.is_active(1, 2 * QUIET_NANOS));
    }

    // spec: NET-12
    #[test]
    fn a_single_net_is_looked_at_in_each_poll() {
        let schedule = PollSchedule::at_each(1);
        assert!(schedule.is_active(0, u64::MAX));
    }
}

//! Remotes that live and take nothing, so that there is no room for more: the log is to say so.
//! Nothing else happens, as nobody but they can end it.
use std::time::{Duration, Instant};

/// The time after which the log reports a remote that takes nothing or does not answer. A call that
/// is closed without a word is tried again for this time.
// spec: ENV-38
pub(super) const REPORT_AFTER: Duration = Duration::from_secs(15);

/// Whether there is no room for a remote.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall(Option<Since>);

#[derive(Clone, Copy, Debug)]
struct Since {
    /// Lines that it had taken then, and since when it has taken no more.
    taken: u32,
    since: Instant,
    is_told: bool,
}

impl Stall {
    /// Notes that there is still no room, and the count of taken lines. True if that is to be
    /// reported.
    pub(super) fn look(&mut self, taken: u32, now: Instant) -> bool {
        let stall = match &mut self.0 {
            Some(stall) if stall.taken == taken => stall,
            place => place.insert(Since { taken, since: now, is_told: false }),
        };
        let is_due = !stall.is_told && now.saturating_duration_since(stall.since) >= REPORT_AFTER;
        debug_assert!(stall.since <= now, "time goes on");
        stall.is_told |= is_due;
        is_due
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: ENV-43
    #[test]
    fn a_stuck_peer_is_reported_once_until_it_reads_again() {
        let (mut place, start) = (Stall::default(), Instant::now());
        let told = |place: &mut Stall, taken, from: u64, to: u64| {
            let times = (from..to).map(|second| start + Duration::from_secs(second));
            times.filter(|now| place.look(taken, *now)).count()
        };
        let limit = REPORT_AFTER.as_secs();
        assert_eq!(told(&mut place, 7, 0, limit), 0);
        assert_eq!(told(&mut place, 7, limit, 10 * limit), 1, "once");
        // It takes little, but some.
        let slow: usize = (0..100).map(|taken| told(&mut place, taken, 0, limit)).sum();
        assert_eq!(slow, 0);
        assert_eq!(told(&mut place, 99, limit, 2 * limit), 1);
    }
}

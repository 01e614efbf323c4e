//! Which schedule serves a collective best.
use super::state::State;
use ayre_proto::collective::{Collective, Schedule, Task};

impl State {
    /// Returns the schedule for a collective on a vector or on blocks of `bytes`. The schedule that
    /// the program has fixed comes first, then the one for the loads of the links, then the usual
    /// one. All members choose the same schedule.
    // spec: COLL-6, COLL-7, COLL-17
    pub(super) fn schedule(
        &mut self,
        (collective, root): (Collective, usize),
        is_exact: bool,
        bytes: usize,
    ) -> Schedule {
        let fixed = self.fixed[collective as usize];
        let fixed = fixed.filter(|schedule| is_exact || !schedule.is_exact_only(collective));
        let members = self.member.members.len();
        let usual = fixed.unwrap_or_else(|| Schedule::usual(collective, members, bytes));
        let Some(watch) = &mut self.watch else { return usual };
        let usual = Task { collective, schedule: usual, root };
        watch.choose(usual, (fixed.is_some(), is_exact), bytes)
    }
}

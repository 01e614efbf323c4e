//! Which schedule serves a collective best.
use super::state::State;
use ayre_proto::collective::{Collective, Schedule, Task};

/// Bytes of a vector from which all links, or processors, are worth being used at once.
const LONG: usize = 16 << 10;

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
        let usual = fixed.unwrap_or_else(|| choose(collective, self.member.members.len(), bytes));
        let Some(watch) = &mut self.watch else { return usual };
        let usual = Task { collective, schedule: usual, root };
        watch.choose(usual, (fixed.is_some(), is_exact), bytes)
    }
}

/// Returns the schedule for a number of members and of bytes, where all links are alike.
fn choose(collective: Collective, members: usize, bytes: usize) -> Schedule {
    let is_long = bytes >= LONG;
    match collective {
        Collective::Barrier => Schedule::Doubling,
        Collective::Broadcast | Collective::Gather | Collective::Scatter if is_long => {
            Schedule::Star
        }
        Collective::Broadcast | Collective::Reduce | Collective::Gather | Collective::Scatter => {
            Schedule::Tree
        }
        Collective::Allreduce if is_long && members > 2 => Schedule::Spread,
        Collective::Allgather if is_long => Schedule::Spread,
        Collective::Allreduce | Collective::Allgather | Collective::Scan => Schedule::Doubling,
        Collective::Alltoall | Collective::ReduceScatter => Schedule::Spread,
    }
}

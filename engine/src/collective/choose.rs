//! Which schedule serves a collective best.
use ayre_proto::collective::{Collective, Schedule};

/// Bytes of a vector from which all links, or processors, are worth being used at once.
const LONG: usize = 16 << 10;

/// The schedule for so many members, and so many bytes of a vector or of a block: the same at all
/// members.
// spec: COLL-6
pub(super) fn choose(collective: Collective, members: usize, bytes: usize) -> Schedule {
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

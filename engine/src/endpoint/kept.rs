//! How much an endpoint may keep: of what remotes have sent and no receive has taken, and of what
//! its own program has posted.
use super::REMOTES_MAX;
use crate::machine::host::ranks_here;
use crate::machine::memory::limit as usable_memory;

/// The memory of an endpoint, where it was not chosen, is no less.
const MEMORY_MIN: u64 = 128 << 20;

/// The budget, in bytes, of an endpoint with this chosen memory, or else with an equal share of the
/// usable memory.
// spec: ENV-36
fn budget(chosen: Option<u64>, usable: u64, ranks: u64) -> u64 {
    chosen.unwrap_or_else(|| (usable / ranks).max(MEMORY_MIN)) / 2
}

/// The memory that an endpoint may take.
#[derive(Debug)]
pub(super) struct Allowance {
    /// The chosen memory and the usable memory, in bytes.
    chosen: Option<u64>,
    usable: u64,
    /// Ranks of this host, as the launcher says.
    ranks: usize,
}

impl Allowance {
    pub(super) fn new(chosen: Option<u64>) -> Self {
        Self { chosen, usable: usable_memory(), ranks: ranks_here() }
    }

    /// The budget in bytes, unless one was chosen: a share of this host's memory, beside this many
    /// neighbours.
    // spec: ENV-36
    pub(super) fn beside(&self, neighbours: usize) -> u64 {
        debug_assert!(neighbours <= REMOTES_MAX, "each neighbour is a remote");
        budget(self.chosen, self.usable, (neighbours + 1).max(self.ranks) as u64)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: ENV-36
    #[test]
    fn a_budget_is_half_of_the_share_of_the_memory_that_there_is() {
        const GIB: u64 = 1 << 30;
        assert_eq!(budget(None, 16 * GIB, 1), 8 * GIB);
        assert_eq!(budget(None, 16 * GIB, 4), 2 * GIB);
        assert_eq!(budget(None, GIB, 1000), 64 << 20, "there is a least");
        assert_eq!(budget(Some(1 << 20), 16 * GIB, 4), 1 << 19, "what was chosen is not shared");
    }
}

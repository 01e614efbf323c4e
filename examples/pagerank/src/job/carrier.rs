//! The common part of the variants: each carries amounts to vertices of other processes.

use anyhow::Result;

use super::part::Place;
use super::process::Process;

/// Sums of a round, over one process or over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// The sum that was passed on.
    pub(crate) pushed: u64,
    /// By how much the round before has changed the ranks.
    pub(crate) change: u64,
}

/// A way to add amounts to what vertices of other processes receive, round by round.
pub(crate) trait Carrier {
    /// Adds `amount` to what `to` receives in this round.
    fn carry(&mut self, process: &mut Process, to: Place, amount: u64) -> Result<()>;

    /// Tells all others that this process has carried what it had, with its sums, and waits for
    /// the same from them; returns everybody's sums. From here on a process may be a round ahead of
    /// another, but not two.
    fn exchange(&mut self, process: &mut Process, own: Sums) -> Result<Sums>;

    /// Adds to `received`, by vertex of the own block, what the others have carried here in this
    /// round, and ends the round.
    fn collect(&mut self, received: &mut [u64]);

    /// Takes back what the others were given. All processes must be done.
    fn close(self, process: &mut Process) -> Result<()>;
}

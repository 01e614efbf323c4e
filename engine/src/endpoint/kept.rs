//! How much an endpoint keeps: of what remotes have sent and no receive has taken, and of what its
//! own program has posted.
//!
//! ```text
//!   a remote has   little          much                        over
//!                  -------------   -------------------------   --------------------------
//!   it hears       ahead 65536     ahead 4096: what is longer   refused: all; the end of
//!                                  asks, and stays with it      its connection
//! ```
use super::incoming::{Body, RECORD};
use super::replies::Reply;
use super::{Endpoint, REMOTES_MAX, RemoteId};
use crate::error::{EndReason, Fault, PostError};
use crate::machine::host::ranks_here;
use crate::machine::memory::limit as usable_memory;
use ayre_proto::envelope::{AHEAD_MIN, ALL, LONG_MAX, Record};
use ayre_proto::matching::{Budget, Message, Share};

/// The memory of an endpoint, where it was not chosen, is no less.
const MEMORY_MIN: u64 = 128 << 20;

/// The budget of an endpoint that may take so much memory, if that was chosen, or is one of so many
/// that share what there is.
// spec: ENV-36
fn budget(chosen: Option<u64>, usable: u64, ranks: u64) -> u64 {
    chosen.unwrap_or_else(|| (usable / ranks).max(MEMORY_MIN)) / 2
}

/// Bytes that are kept of remotes, and how many may be.
#[derive(Debug)]
pub(super) struct Kept {
    budget: Budget,
    /// The memory that may be taken, if that was chosen, and the memory that there is.
    memory: Option<u64>,
    usable: u64,
    /// Ranks of this host, as the launcher says.
    ranks: usize,
}

impl Kept {
    /// Of an endpoint without neighbours, that may take so much memory if that was chosen.
    pub(super) fn new(memory: Option<u64>) -> Self {
        let budget = Budget::new(0, REMOTES_MAX as u32);
        let mut kept = Self { budget, memory, usable: usable_memory(), ranks: ranks_here() };
        kept.share(0);
        kept
    }

    /// The budget is a share of its host's memory, unless it was chosen, as far as is known: so
    /// many others of this host are.
    // spec: ENV-36
    pub(super) fn share(&mut self, neighbours: usize) {
        debug_assert!(neighbours <= REMOTES_MAX, "each neighbour is a remote");
        let ranks = (neighbours + 1).max(self.ranks) as u64;
        self.budget.set_limit(budget(self.memory, self.usable, ranks));
    }

    /// Operations that may be under way.
    #[inline]
    fn operations(&self) -> u64 {
        self.budget.limit() / RECORD
    }

    /// What is kept of a remote.
    pub(super) fn of(&self, remote: RemoteId) -> u64 {
        self.budget.of(remote.source())
    }

    #[inline]
    fn keep(&mut self, remote: RemoteId, bytes: u64) -> Share {
        debug_assert!(bytes > 0, "all that is kept counts for something");
        self.budget.keep(remote.source(), bytes)
    }

    /// So many bytes of a remote are kept no longer.
    #[inline]
    pub(super) fn give_back(&mut self, remote: RemoteId, bytes: u64) {
        debug_assert!(bytes <= self.of(remote), "what is given back was kept");
        self.budget.give_back(remote.source(), bytes);
        debug_assert!(self.of(remote) <= self.budget.kept(), "each has a part of the whole");
    }
}

impl Endpoint {
    /// Whether one more operation may be posted whose end is still to come.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] where as many are under way as there is memory for.
    // spec: ENV-39
    #[inline]
    pub(super) fn check_under_way(&self) -> Result<(), PostError> {
        if self.under_way() as u64 >= self.kept.operations() {
            return Err(Fault::NoMemory.into());
        }
        Ok(())
    }

    /// Makes room for further receives.
    // spec: ENV-39
    #[cold]
    pub(super) fn grow_receives(&mut self, is_tagged: bool) -> Result<(), PostError> {
        self.check_under_way()?;
        let left = self.kept.operations() - self.under_way() as u64;
        debug_assert!(left > 0, "one more may be under way");
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        match self.receives.grow(is_tagged, left) {
            true => Ok(()),
            false => Err(Fault::NoMemory.into()),
        }
    }

    /// A message is kept until a receive takes it.
    #[inline]
    pub(super) fn keep(&mut self, body: Body) {
        let (source, cost) = (body.origin.source, body.cost());
        self.receives.keep(body);
        self.charge(source, cost);
    }

    /// A message is kept no longer.
    #[inline]
    pub(super) fn unkeep(&mut self, message: &Message) -> Body {
        let body = self.receives.unkeep(message);
        self.discharge(body.origin.source, body.cost());
        body
    }

    /// So many more bytes are kept of a remote.
    // spec: ENV-37
    #[inline]
    pub(super) fn charge(&mut self, remote: RemoteId, bytes: u64) {
        match self.kept.keep(remote, bytes) {
            Share::Fair => {}
            Share::Much => self.curb(remote),
            Share::Over => self.shut_out(remote),
        }
    }

    /// So many bytes of a remote are kept no longer.
    #[inline]
    pub(super) fn discharge(&mut self, remote: RemoteId, bytes: u64) {
        self.kept.give_back(remote, bytes);
        if self.remotes.curbed() > 0 {
            self.ease(remote);
        }
    }

    /// What of a remote's messages can stay with it is to stay there.
    // spec: ENV-37
    #[cold]
    fn curb(&mut self, remote: RemoteId) {
        if self.remotes.curb(remote) {
            self.reply(remote, Record::Ahead { longest: AHEAD_MIN as u64 });
        }
    }

    /// Where it has little again, its messages may go ahead.
    #[cold]
    fn ease(&mut self, remote: RemoteId) {
        if self.kept.budget.has_little(remote.source()) && self.remotes.ease(remote) {
            self.reply(remote, Record::Ahead { longest: LONG_MAX as u64 });
        }
    }

    /// Nothing more is taken of a remote. Who is told so ends the connection.
    // spec: ENV-37
    #[cold]
    pub(super) fn shut_out(&mut self, remote: RemoteId) {
        let own = self.address.name();
        let Some(known) = self.remotes.get_mut(remote) else { return };
        let Some(peer) = known.peer().filter(|_| known.shut_out_for().is_none()) else { return };
        known.shut_out(EndReason::Flooded);
        let is_own = known.address().name() == own;
        self.remotes.cut_off(peer.index());
        match is_own {
            true => self.port.end_connection(peer, Fault::NoMemory),
            false => self.reply(remote, Record::Refused { id: ALL, fault: Fault::NoMemory }),
        }
    }

    /// A remote has no memory for what we have sent it.
    // spec: ENV-37
    #[cold]
    pub(super) fn on_shut_out(&mut self, by: RemoteId) {
        let Some(known) = self.remotes.get_mut(by) else { return };
        known.shut_out(EndReason::NoMemory);
        if let Some(peer) = known.peer() {
            self.port.end_connection(peer, Fault::NoMemory);
        }
    }

    /// Answers that wait for a remote do so no longer.
    pub(super) fn drop_replies(&mut self, to: RemoteId) {
        let bytes = self.remotes.drop_replies(to);
        self.kept.give_back(to, bytes);
    }

    /// An answer waits until there is room.
    // spec: ENV-15
    pub(super) fn put_off(&mut self, to: RemoteId, reply: Reply) {
        if let Some(bytes) = self.remotes.put_off(to, reply) {
            self.stir();
            self.charge(to, bytes);
        }
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

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
use super::replies::{Reply, cost};
use super::{Endpoint, RemoteId};
use crate::error::{EndReason, Fault, PostError};
use ayre_proto::envelope::{AHEAD_MIN, ALL, LONG_MAX, Record};
use ayre_proto::limits::UNEXPECTED_MAX;
use ayre_proto::matching::{Message, Share, Sizes};

/// Receives and messages that an endpoint has room for from its beginning, in each space.
pub(super) const FIRST: u32 = 64;
/// The memory of an endpoint, where it was not chosen, is no less.
const MEMORY_MIN: u64 = 128 << 20;

/// The budget of an endpoint that may take so much memory, if that was chosen, or is one of so many
/// that share what there is.
// spec: ENV-36
fn budget(chosen: Option<u64>, usable: u64, ranks: u64) -> u64 {
    chosen.unwrap_or_else(|| (usable / ranks).max(MEMORY_MIN)) / 2
}

impl Endpoint {
    /// The budget, unless it was chosen: this process's share of its host's memory, as far as is
    /// known.
    // spec: ENV-36
    pub(super) fn set_budget(&mut self) {
        let ranks = (self.neighbours + 1).max(self.ranks) as u64;
        self.budget.set_limit(budget(self.memory, self.usable, ranks));
    }

    /// Whether one more operation may be posted whose end is still to come.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] where as many are under way as there is memory for.
    // spec: ENV-39
    #[inline]
    pub(super) fn check_under_way(&self) -> Result<(), PostError> {
        if self.under_way() as u64 >= self.budget.limit() / RECORD {
            return Err(Fault::NoMemory.into());
        }
        Ok(())
    }

    /// Makes room for further receives.
    // spec: ENV-39
    #[cold]
    pub(super) fn grow_receives(&mut self, is_tagged: bool) -> Result<(), PostError> {
        self.check_under_way()?;
        let left = self.budget.limit() / RECORD - self.under_way() as u64;
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let Sizes { receives, messages, .. } = self.matcher(is_tagged).sizes();
        let more = receives.saturating_add(left.min(receives)).min(UNEXPECTED_MAX);
        if more == receives {
            return Err(Fault::NoMemory.into());
        }
        self.matcher(is_tagged).grow(more, messages);
        Ok(())
    }

    /// Makes room for further messages. False where there can be no more.
    // spec: ENV-7
    #[cold]
    pub(super) fn grow_messages(&mut self, is_tagged: bool) -> bool {
        let Sizes { receives, messages, .. } = self.matcher(is_tagged).sizes();
        let more = messages.saturating_mul(2).min(UNEXPECTED_MAX);
        self.matcher(is_tagged).grow(receives, more);
        more > messages
    }

    /// A message is kept until a receive takes it.
    #[inline]
    pub(super) fn keep(&mut self, body: Body) {
        let (source, cost) = (body.origin.source, body.cost());
        self.bodies.insert(body);
        self.charge(source, cost);
    }

    /// A message is kept no longer.
    #[inline]
    pub(super) fn unkeep(&mut self, message: &Message) -> Body {
        let body = self.bodies.remove(message.handle as usize);
        self.discharge(body.origin.source, body.cost());
        body
    }

    /// So many more bytes are kept of a remote.
    // spec: ENV-37
    #[inline]
    pub(super) fn charge(&mut self, remote: RemoteId, bytes: u64) {
        match self.budget.keep(remote.source(), bytes) {
            Share::Fair => {}
            Share::Much => self.curb(remote),
            Share::Over => self.shut_out(remote),
        }
    }

    /// So many bytes of a remote are kept no longer.
    #[inline]
    pub(super) fn discharge(&mut self, remote: RemoteId, bytes: u64) {
        self.budget.give_back(remote.source(), bytes);
        if self.curbed > 0 {
            self.ease(remote);
        }
    }

    /// What of a remote's messages can stay with it is to stay there.
    // spec: ENV-37
    #[cold]
    fn curb(&mut self, remote: RemoteId) {
        let Some(known) = self.remotes.get_mut(remote.index()) else { return };
        if !known.is_curbed && known.shut_out.is_none() && known.peer.is_some() {
            known.is_curbed = true;
            self.curbed += 1;
            self.reply(remote, Record::Ahead { longest: AHEAD_MIN as u64 });
        }
    }

    /// Where it has little again, its messages may go ahead.
    #[cold]
    fn ease(&mut self, remote: RemoteId) {
        let has_little = self.budget.has_little(remote.source());
        let Some(known) = self.remotes.get_mut(remote.index()).filter(|_| has_little) else {
            return;
        };
        if known.is_curbed {
            known.is_curbed = false;
            self.curbed -= 1;
            self.reply(remote, Record::Ahead { longest: LONG_MAX as u64 });
        }
    }

    /// Nothing more is taken of a remote. Who is told so ends the connection.
    // spec: ENV-37
    #[cold]
    pub(super) fn shut_out(&mut self, remote: RemoteId) {
        let own = self.address.name();
        let Some(known) = self.remotes.get_mut(remote.index()) else { return };
        let Some(peer) = known.peer.filter(|_| known.shut_out.is_none()) else { return };
        (known.shut_out, known.open) = (Some(EndReason::Flooded), None);
        let is_own = known.address.name() == own;
        self.by_peer[peer.index()] = None;
        match is_own {
            true => self.port.end_connection(peer, Fault::NoMemory),
            false => self.reply(remote, Record::Refused { id: ALL, fault: Fault::NoMemory }),
        }
    }

    /// A remote has no memory for what we have sent it.
    // spec: ENV-37
    #[cold]
    pub(super) fn on_shut_out(&mut self, by: RemoteId) {
        let Some(known) = self.remotes.get_mut(by.index()) else { return };
        (known.shut_out, known.open) = (Some(EndReason::NoMemory), None);
        if let Some(peer) = known.peer {
            self.port.end_connection(peer, Fault::NoMemory);
        }
    }

    /// Answers that wait for a remote do so no longer.
    pub(super) fn drop_replies(&mut self, to: RemoteId) {
        let Some(remote) = self.remotes.get_mut(to.index()) else { return };
        let replies = std::mem::take(&mut remote.replies);
        self.replies -= replies.len();
        self.budget.give_back(to.source(), replies.iter().map(cost).sum());
    }

    /// An answer waits until there is room.
    // spec: ENV-15
    pub(super) fn put_off(&mut self, to: RemoteId, reply: Reply) {
        let Some(remote) = self.remotes.get_mut(to.index()) else { return };
        let bytes = cost(&reply);
        remote.replies.push_back(reply);
        self.replies += 1;
        self.stir();
        self.charge(to, bytes);
    }

    /// The first answer that waits for a remote has gone.
    pub(super) fn has_answered(&mut self, to: RemoteId) {
        let Some(remote) = self.remotes.get_mut(to.index()) else { return };
        if let Some(reply) = remote.replies.pop_front() {
            self.replies -= 1;
            self.discharge(to, cost(&reply));
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

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
use super::transport::{Memory, Transport};
use super::{Protocol, RemoteId};
use crate::envelope::{AHEAD_MIN, ALL, LONG_MAX, Record};
use crate::fault::Fault;
use crate::matching::{Message, Share};

impl<M: Memory> Protocol<M> {
    /// Sets the budget, in bytes for all remotes together.
    // spec: ENV-36
    pub fn set_budget(&mut self, bytes: u64) {
        self.kept.set_limit(bytes);
    }

    /// Bytes that are kept of a remote.
    pub fn kept_of(&self, remote: RemoteId) -> u64 {
        self.kept.of(remote.source())
    }

    /// Operations that may be under way.
    #[inline]
    fn operations(&self) -> u64 {
        self.kept.limit() / RECORD
    }

    /// Whether one more operation may be posted whose end is still to come.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] where as many are under way as there is memory for.
    // spec: ENV-39
    #[inline]
    pub(super) fn check_under_way(&self) -> Result<(), Fault> {
        if self.under_way() as u64 >= self.operations() {
            return Err(Fault::NoMemory);
        }
        Ok(())
    }

    /// Makes room for further receives.
    // spec: ENV-39
    #[cold]
    pub(super) fn grow_receives(&mut self, is_tagged: bool) -> Result<(), Fault> {
        self.check_under_way()?;
        let left = self.operations() - self.under_way() as u64;
        debug_assert!(left > 0, "one more may be under way");
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        if self.receives.grow(is_tagged, left) { Ok(()) } else { Err(Fault::NoMemory) }
    }

    /// A message is kept until a receive takes it.
    #[inline]
    pub(super) fn keep(&mut self, transport: &mut impl Transport<Memory = M>, body: Body) {
        let (source, cost) = (body.origin.source, body.cost());
        self.receives.keep(body);
        self.charge(transport, source, cost);
    }

    /// A message is kept no longer.
    #[inline]
    pub(super) fn unkeep(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        message: &Message,
    ) -> Body {
        let body = self.receives.unkeep(message);
        self.discharge(transport, body.origin.source, body.cost());
        body
    }

    /// Adds bytes to those that are kept of a remote.
    // spec: ENV-37
    #[inline]
    pub(super) fn charge(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        remote: RemoteId,
        bytes: u64,
    ) {
        debug_assert!(bytes > 0, "all that is kept counts for something");
        match self.kept.keep(remote.source(), bytes) {
            Share::Fair => {}
            Share::Much => self.throttle(transport, remote),
            Share::Over => self.shut_out(transport, remote),
        }
    }

    /// Subtracts bytes from those that are kept of a remote.
    #[inline]
    pub(super) fn discharge(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        remote: RemoteId,
        bytes: u64,
    ) {
        self.give_back(remote, bytes);
        if self.throttled > 0 {
            self.unthrottle(transport, remote);
        }
    }

    /// Subtracts bytes from those that are kept of a remote that has gone or need not be told.
    pub(super) fn give_back(&mut self, remote: RemoteId, bytes: u64) {
        debug_assert!(bytes <= self.kept_of(remote), "what is given back was kept");
        self.kept.give_back(remote.source(), bytes);
        debug_assert!(self.kept_of(remote) <= self.kept.kept(), "each has a part of the whole");
    }

    /// Asks a remote to keep its longer messages in its own memory until a receive has matched.
    // spec: ENV-37
    #[cold]
    fn throttle(&mut self, transport: &mut impl Transport<Memory = M>, remote: RemoteId) {
        if transport.lane(remote).is_some() && self.peer_mut(remote).throttle() {
            self.throttled += 1;
            self.reply(transport, remote, Record::Ahead { longest: AHEAD_MIN as u64 });
        }
    }

    /// Where it has little again, its messages may go ahead.
    #[cold]
    fn unthrottle(&mut self, transport: &mut impl Transport<Memory = M>, remote: RemoteId) {
        if self.kept.has_little(remote.source()) && self.peer_mut(remote).unthrottle() {
            self.throttled -= 1;
            self.reply(transport, remote, Record::Ahead { longest: LONG_MAX as u64 });
        }
    }

    /// Takes nothing more from a remote. The remote ends the connection when it is told.
    // spec: ENV-37
    #[cold]
    pub(super) fn shut_out(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        remote: RemoteId,
    ) {
        if transport.lane(remote).is_none() || !self.peer_mut(remote).shut_out() {
            return;
        }
        if !transport.shut_out(remote) {
            self.reply(transport, remote, Record::Refused { id: ALL, fault: Fault::NoMemory });
        }
    }

    /// A remote has no memory for what we have sent it.
    // spec: ENV-37
    #[cold]
    pub(super) fn on_shut_out(&mut self, transport: &mut impl Transport<Memory = M>, by: RemoteId) {
        self.peer_mut(by).shut_out();
        transport.on_shut_out(by);
    }

    /// Answers a remote, now or as soon as there is room. One that has gone needs no answer.
    // spec: ENV-15
    pub(super) fn reply(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        record: Record,
    ) {
        self.reply_with(transport, to, record, &[]);
    }

    /// Answers a remote with a record that has bytes behind its head, now or as soon as there is
    /// room.
    pub(super) fn reply_with(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        record: Record,
        bytes: &[u8],
    ) {
        let Some(lane) = transport.lane(to) else { return };
        let is_first = self.peers[to.index()].replies().is_empty();
        if is_first && Self::push_record(transport, lane, &record, bytes).is_ok() {
            return;
        }
        self.put_off(transport, to, (record, bytes.into()));
    }

    /// An answer waits until there is room.
    // spec: ENV-15
    #[inline(never)]
    fn put_off(&mut self, transport: &mut impl Transport<Memory = M>, to: RemoteId, reply: Reply) {
        let bytes = self.peer_mut(to).replies_mut().push(reply);
        self.replies += 1;
        transport.request_poll();
        self.charge(transport, to, bytes);
    }

    /// Sends answers that have been waiting for room: whether any has gone.
    pub(super) fn push_replies(&mut self, transport: &mut impl Transport<Memory = M>) -> bool {
        let mut any = false;
        for place in 0..self.peers.len() {
            if let Some(to) = self.peers[place].id() {
                any |= self.push_replies_to(transport, to);
            }
        }
        any
    }

    fn push_replies_to(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
    ) -> bool {
        let mut any = false;
        while let Some((record, bytes)) = self.peer_mut(to).replies_mut().pop() {
            let lane = transport.lane(to);
            if lane.is_none_or(|lane| Self::push_record(transport, lane, &record, &bytes).is_err())
            {
                self.peer_mut(to).replies_mut().put_back((record, bytes));
                break;
            }
            self.replies -= 1;
            self.discharge(transport, to, cost(&bytes));
            any = true;
        }
        any
    }

    /// Answers that wait for a remote do so no longer.
    pub(super) fn drop_replies(&mut self, to: RemoteId) {
        let Some(peer) = self.peers.get_mut(to.index()) else { return };
        let (count, bytes) = peer.replies_mut().clear();
        debug_assert!(count <= self.replies, "all are counted");
        self.replies -= count;
        self.give_back(to, bytes);
    }
}

//! What an endpoint decides: which message goes into which receive and by which way, what remotes
//! may do to its windows, and how much is kept of whom.
//!
//! Everything here works on lanes, rings and memory through [`Ways`]: the engine implements them
//! over shared memory and links, a test over queues.
//!
//! ```text
//!   send -----> short: a record of the lane          --> matched: copied to the receive's memory
//!          |--> long: the ring, and a record         --> not: kept until a receive takes it
//!          '--> longer: asks, and when a receive has matched goes through the ring in parts, or
//!                       is read where it lies
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `ways` | what a protocol works with |
//! | `remote_id` | numbers of remotes |
//! | `ends` | how what was posted has ended |
//! | `send`, `departing`, `ahead` | messages on their way out |
//! | `take` | what comes, and what becomes of it |
//! | `origin`, `transfers`, `fetch` | where it comes from, and what of it comes in parts |
//! | `post`, `receives`, `incoming`, `labels` | receives, and messages that wait for them |
//! | `kept`, `replies` | how much is kept of whom, and answers that wait for room |
//! | `touch`, `touching` | writes, reads and updates of remotes' windows |
//! | `touched`, `toucher` | what remotes do to our windows |
//! | `peer`, `streams` | what is under way with one remote, and what goes in parts |
//! | `slots`, `ledger` | what is under way, by key |
mod departing;
mod eager;
mod ends;
mod fetch;
mod incoming;
mod kept;
mod labels;
mod ledger;
mod origin;
mod peer;
mod post;
mod receives;
mod remote_address;
mod remote_id;
mod replies;
mod rma;
mod rma_target;
mod send;
mod slots;
mod streams;
mod take;
mod touched;
mod transfers;
mod ways;

pub use ends::{Completion, CompletionKind, Context, Received, RmaEvent, RmaKind};
pub use origin::Origin;
pub use post::{PostedReceive, Probed};
pub use remote_address::RemoteAddress;
pub use remote_id::RemoteId;
pub use rma::{RmaUpdate, RmaWrite};
pub use send::{OutgoingMessage, Sent};
pub use take::{Head, OnShort, Taken};
pub use ways::{Choice, Memory, Ways};

use crate::limits::{EAGER_MAX, PEERS_MAX};
use crate::matching::Budget;
use alloc::boxed::Box;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use departing::Departing;
use ends::Ended;
use ledger::Ledger;
use peer::Peer;
use receives::Receives;
use remote_address::PendingRma;
use streams::Streams;
use transfers::Transfers;

/// Endpoints that one endpoint knows.
pub const REMOTES_MAX: usize = PEERS_MAX;
/// Longest message that travels in the lane.
pub const SHORT_MAX: usize = 512;
/// Longest part of a longer one.
const PART_MAX: usize = 32 << 10;

/// The protocol of one endpoint, whose program's memory is `M`.
#[derive(Debug)]
pub struct Protocol<M> {
    receives: Receives<M>,
    kept: Budget,
    departing: Ledger<Departing<M>>,
    transfers: Transfers,
    touching: Ledger<PendingRma<M>>,
    streams: Streams,
    /// What is under way with each remote, by its place.
    peers: Vec<Peer>,
    /// Of how many much is kept.
    curbed: usize,
    /// Answers that wait for room, in all.
    replies: usize,
    ended: Ended,
    staging: Box<[u8; EAGER_MAX]>,
}

impl<M: Memory> Protocol<M> {
    /// Of an endpoint that keeps so many bytes. The seed should be one that remotes do not know.
    pub fn new(budget: u64, seed: u64) -> Self {
        Self {
            receives: Receives::new(REMOTES_MAX as u32, seed),
            kept: Budget::new(budget, REMOTES_MAX as u32),
            departing: Ledger::new(),
            transfers: Transfers::default(),
            touching: Ledger::new(),
            streams: Streams::default(),
            peers: Vec::new(),
            curbed: 0,
            replies: 0,
            ended: Ended::default(),
            staging: Box::new([0; EAGER_MAX]),
        }
    }

    /// What holds between two steps, whatever remotes say.
    fn check(&self) {
        debug_assert!(self.curbed <= self.peers.len(), "each is a remote");
        debug_assert!(
            self.replies >= usize::from(self.peers.iter().any(|peer| !peer.replies().is_empty())),
            "answers that wait are counted"
        );
    }

    /// A remote is connected.
    pub fn connect(&mut self, remote: RemoteId) {
        if self.peers.len() <= remote.index() {
            self.peers.resize_with(remote.index() + 1, Peer::default);
        }
        self.peers[remote.index()].begin(remote);
        self.check();
    }

    /// Nothing goes to a remote any more, nor comes from it. All that is under way with it ends,
    /// as the next [`Protocol::tell_ended`] tells.
    // spec: ENV-8
    pub fn end(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        remote: RemoteId,
        why: crate::fault::Fault,
    ) {
        self.end_sends(remote, why);
        self.end_touching(remote, why);
        self.end_transfers(ways, remote, why);
        self.end_receives(remote, why);
        self.drop_replies(remote);
        if let Some(peer) = self.peers.get_mut(remote.index()) {
            self.curbed -= usize::from(peer.ease());
        }
        self.end_touched(remote);
        debug_assert!(self.has_ended_all(remote), "nothing is under way with it");
        self.check();
    }

    /// How much waits to be told or to be sent.
    #[inline(always)]
    pub fn waits(&self) -> usize {
        self.ended.len() | self.streams.len() | self.replies
    }

    /// Whether parts or answers wait for room in a lane or a ring.
    #[inline(always)]
    pub fn waits_for_room(&self) -> bool {
        !self.streams.is_empty() || self.replies > 0
    }

    /// Of how many remotes much is kept.
    pub const fn curbed(&self) -> usize {
        self.curbed
    }

    /// Whether all has ended that was posted to a remote: messages that had to be answered, writes,
    /// reads and updates.
    pub fn has_ended_all(&self, to: RemoteId) -> bool {
        self.departing.has_none(to) && self.touching.has_none(to)
    }

    /// Operations that were posted and whose end was not told yet.
    pub fn under_way(&self) -> usize {
        let answerable = self.departing.len() + self.touching.len();
        self.receives.len() + answerable + self.ended.len()
    }

    /// Whether ends are to be told.
    #[inline(always)]
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Tells what has ended. Whoever drives an endpoint calls this before
    /// [`Protocol::on_record`] and [`Protocol::push_on`], which tell of what ends by them, so that
    /// ends are told in their order.
    #[inline(always)]
    pub fn tell_ended(&mut self, tell: &mut impl FnMut(Completion)) {
        self.ended.tell(tell);
    }

    /// Puts ends off to the next [`Protocol::tell_ended`].
    pub fn tell_later(&mut self, ends: impl IntoIterator<Item = Completion>) {
        self.ended.extend(ends);
    }

    /// The remotes of which ends tell that were not told yet, and those that receives wait for: by
    /// place.
    pub fn awaited(&self) -> impl Iterator<Item = usize> {
        let told = self.ended.sources().map(RemoteId::index);
        self.receives.awaited().map(|source| source as usize).chain(told)
    }

    fn peer_mut(&mut self, remote: RemoteId) -> &mut Peer {
        &mut self.peers[remote.index()]
    }
}

/// So many bytes, at most those of the longest record, that are written next. No more are cleared:
/// what is touched most has eight.
#[inline(always)]
fn zeros(len: usize) -> ArrayVec<u8, EAGER_MAX> {
    debug_assert!(len <= EAGER_MAX, "no record is longer");
    static ZEROS: [u8; EAGER_MAX] = [0; EAGER_MAX];
    let mut bytes = ArrayVec::new();
    bytes.try_extend_from_slice(&ZEROS[..len]).expect("as many as there is room for");
    bytes
}

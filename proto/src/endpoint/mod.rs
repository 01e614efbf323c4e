//! The protocol of an endpoint. It decides which message goes into which receive, what remotes may
//! do to its memory regions, and how many bytes it keeps of each remote.
//!
//! It uses lanes, rings and memory through [`Transport`]. The engine implements that over shared
//! memory and links, a test over queues.
//!
//! ```text
//!   send -----> short: a record of the lane          --> matched: copied to the receive's memory
//!          |--> long: the ring, and a record         --> not: kept until a receive takes it
//!          '--> longer: an RTS; when a receive has matched, fragments through the ring, or a
//!                       direct read of the sender's memory
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `transport` | lanes, rings and memory, as the protocol uses them |
//! | `remote_id` | numbers of remotes |
//! | `completions` | completions |
//! | `send`, `pending_send`, `eager` | outgoing messages |
//! | `take` | incoming records |
//! | `origin`, `transfers`, `fetch` | senders of messages, rendezvous, direct reads |
//! | `post`, `receives`, `incoming`, `labels` | receives and unexpected messages |
//! | `kept`, `replies` | budgets of remotes, replies that wait for room |
//! | `rma`, `remote_address` | own writes, reads and updates of remotes' memory regions |
//! | `rma_serve`, `rma_target` | remotes' access to own memory regions |
//! | `peer`, `streams` | state of one remote, operations that go in fragments |
//! | `slots`, `ledger` | tables of pending operations |
mod completions;
mod eager;
mod fetch;
mod incoming;
mod kept;
mod labels;
mod ledger;
mod origin;
mod peer;
mod pending_send;
mod post;
mod receives;
mod remote_address;
mod remote_id;
mod replies;
mod rma;
mod rma_serve;
mod rma_target;
mod send;
mod slots;
mod streams;
mod take;
mod transfers;
mod transport;

pub use completions::{Completion, CompletionKind, Context, Received, RmaEvent, RmaKind};
pub use origin::Origin;
pub use post::{PostedReceive, Probed};
pub use remote_address::RemoteAddress;
pub use remote_id::RemoteId;
pub use rma::{RmaUpdate, RmaWrite};
pub use send::{OutgoingMessage, Sent};
pub use take::{Head, OnShort, Taken};
pub use transport::{Choice, Memory, Transport};

use crate::limits::{EAGER_MAX, PEERS_MAX};
use crate::matching::Budget;
use alloc::boxed::Box;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use completions::Completions;
use ledger::Ledger;
use peer::Peer;
use pending_send::PendingSend;
use receives::Receives;
use remote_address::PendingRma;
use streams::Streams;
use transfers::Transfers;

/// Endpoints that one endpoint knows.
pub const REMOTES_MAX: usize = PEERS_MAX;
/// Longest message that travels in the lane.
pub const SHORT_MAX: usize = 512;
/// Longest part of a longer one.
const FRAGMENT_MAX: usize = 32 << 10;

/// The protocol of one endpoint, whose program's memory is `M`.
#[derive(Debug)]
pub struct Protocol<M> {
    receives: Receives<M>,
    kept: Budget,
    pending_sends: Ledger<PendingSend<M>>,
    transfers: Transfers,
    pending_rma: Ledger<PendingRma<M>>,
    streams: Streams,
    /// The state of each remote, by its place.
    peers: Vec<Peer>,
    /// Of how many much is kept.
    throttled: usize,
    /// Answers that wait for room, in all.
    replies: usize,
    completions: Completions,
    staging: Box<[u8; EAGER_MAX]>,
}

impl<M: Memory> Protocol<M> {
    /// The protocol of an endpoint with a budget in bytes. The seed should be unknown to remotes.
    pub fn new(budget: u64, seed: u64) -> Self {
        Self {
            receives: Receives::new(REMOTES_MAX as u32, seed),
            kept: Budget::new(budget, REMOTES_MAX as u32),
            pending_sends: Ledger::new(),
            transfers: Transfers::default(),
            pending_rma: Ledger::new(),
            streams: Streams::default(),
            peers: Vec::new(),
            throttled: 0,
            replies: 0,
            completions: Completions::default(),
            staging: Box::new([0; EAGER_MAX]),
        }
    }

    /// Asserts what holds between two steps, whatever remotes send.
    fn check(&self) {
        debug_assert!(self.throttled <= self.peers.len(), "each is a remote");
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
    /// as the next [`Protocol::tell_completions`] tells.
    // spec: ENV-8
    pub fn end(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        remote: RemoteId,
        why: crate::fault::Fault,
    ) {
        self.end_sends(remote, why);
        self.end_pending_rma(remote, why);
        self.end_transfers(transport, remote, why);
        self.end_receives(remote, why);
        self.drop_replies(remote);
        if let Some(peer) = self.peers.get_mut(remote.index()) {
            self.throttled -= usize::from(peer.unthrottle());
        }
        self.end_rma_target(remote);
        debug_assert!(self.has_completed_all(remote), "nothing is under way with it");
        self.check();
    }

    /// How much waits to be told or to be sent.
    #[inline(always)]
    pub fn waits(&self) -> usize {
        self.completions.len() | self.streams.len() | self.replies
    }

    /// Whether parts or answers wait for room in a lane or a ring.
    #[inline(always)]
    pub fn waits_for_room(&self) -> bool {
        !self.streams.is_empty() || self.replies > 0
    }

    /// Of how many remotes much is kept.
    pub const fn throttled(&self) -> usize {
        self.throttled
    }

    /// Whether all has ended that was posted to a remote: messages that had to be answered, writes,
    /// reads and updates.
    pub fn has_completed_all(&self, to: RemoteId) -> bool {
        self.pending_sends.has_none(to) && self.pending_rma.has_none(to)
    }

    /// Whether messages have come that no receive has taken.
    #[inline(always)]
    pub fn keeps_messages(&self) -> bool {
        self.receives.keeps_messages()
    }

    /// Whether plain messages have come that no receive has taken.
    #[inline(always)]
    pub fn keeps_plain(&self) -> bool {
        self.receives.keeps_plain()
    }

    /// Whether all writes, reads and updates have ended that were posted to a remote.
    #[inline]
    pub fn has_completed_rma(&self, to: RemoteId) -> bool {
        self.pending_rma.has_none(to)
    }

    /// Operations that were posted and whose end was not told yet.
    pub fn under_way(&self) -> usize {
        let answerable = self.pending_sends.len() + self.pending_rma.len();
        self.receives.len() + answerable + self.completions.len()
    }

    /// Whether ends are to be told.
    #[inline(always)]
    pub fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    /// Reports the completions that were put off. The driver of an endpoint calls this before
    /// [`Protocol::on_record`] and [`Protocol::push_waiting`], which report their own completions:
    /// so all are reported in order.
    #[inline(always)]
    pub fn tell_completions(&mut self, tell: &mut impl FnMut(Completion)) {
        self.completions.tell(tell);
    }

    /// Puts ends off to the next [`Protocol::tell_completions`].
    pub fn put_off_completions(&mut self, completions: impl IntoIterator<Item = Completion>) {
        self.completions.extend(completions);
    }

    /// The remotes of which ends tell that were not told yet, and those that receives wait for: by
    /// place.
    pub fn awaited(&self) -> impl Iterator<Item = usize> {
        let told = self.completions.sources().map(RemoteId::index);
        self.receives.awaited().map(|source| source as usize).chain(told)
    }

    fn peer_mut(&mut self, remote: RemoteId) -> &mut Peer {
        &mut self.peers[remote.index()]
    }
}

/// Zeros that are written over next; `len` is at most that of the longest record. No more are
/// cleared, as the most frequent access has eight bytes.
#[inline(always)]
fn zeros(len: usize) -> ArrayVec<u8, EAGER_MAX> {
    debug_assert!(len <= EAGER_MAX, "no record is longer");
    static ZEROS: [u8; EAGER_MAX] = [0; EAGER_MAX];
    let mut bytes = ArrayVec::new();
    bytes.try_extend_from_slice(&ZEROS[..len]).expect("as many as there is room for");
    bytes
}

//! The state of a messenger for each peer.
use crate::mem::inject::Process;
use crate::mem::region::{Region, RemoteRegion};
use crate::port::capability::Grant;
use crate::tuning::{Chosen, Share};
use aligned_vec::{AVec, ConstAlign};
use ayre_proto::active::long::{LongReceiver, LongSender};
use std::collections::VecDeque;
use std::sync::Arc;

/// An announced name of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) id: u32,
    pub(super) arguments: u8,
    pub(super) name: Box<str>,
}

/// The state for a peer.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// The number of own names that were announced to it.
    pub(super) told: usize,
    /// Handlers that it has announced.
    pub(super) announced: Vec<Name>,
    /// Ids that mean another handler at the peer.
    pub(super) conflicts: Vec<u32>,
    /// Syncs that it has begun.
    pub(super) syncs: u64,
    /// The last sync that it was told of.
    pub(super) synced: u64,
    /// Messages that wait to be sent, in order.
    pub(super) kept: VecDeque<Kept>,
    /// The sum of their weights.
    pub(super) weight: usize,
    /// The program waits for room for a message without a channel.
    pub(super) is_wanted: bool,
    /// Long messages to the peer, and its landing for them, once that is open.
    pub(crate) outward: LongSender,
    pub(crate) there: Option<Box<RemoteRegion>>,
    /// Long messages of the peer, and the landing for them.
    pub(super) inward: LongReceiver,
    pub(super) landing: Option<Landing>,
    /// The long message under way, and how its way was chosen.
    pub(super) coming: Coming,
    pub(super) chosen: Option<Chosen>,
    /// The process whose memory the peer's messages lie in; none before the first of them.
    pub(super) process: Option<Option<Process>>,
}

impl Default for Coming {
    fn default() -> Self {
        let (arguments, payload) = (Vec::new(), Payload::new(64));
        Self { arguments, payload, len: 0 }
    }
}

/// A buffer that begins at a cache line, because copies to other addresses are slower.
pub(super) type Payload = AVec<u8, ConstAlign<64>>;

/// The landing for a peer.
#[derive(Debug)]
pub(super) struct Landing {
    pub(super) region: Region,
    /// Held as long as the landing exists.
    pub(super) _grant: Grant,
    /// The landing's share of the memory for rings.
    pub(super) _share: Share,
}

/// A long message that is being assembled.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) arguments: Vec<u8>,
    /// The first bytes have arrived; the rest is left from earlier messages.
    pub(super) payload: Payload,
    pub(super) len: usize,
}

/// A message of a handler that waits for room.
#[derive(Debug)]
pub(super) enum Kept {
    Record { tag: u32, bytes: Vec<u8> },
    Long(Long),
}

/// A long message that is being sent.
#[derive(Debug)]
pub(super) struct Long {
    pub(super) id: u32,
    pub(super) arguments: Vec<u8>,
    pub(super) payload: Arc<Vec<u8>>,
    /// The sent bytes of the payload.
    pub(super) sent: usize,
}

/// The weight of a kept message besides its bytes.
const KEPT_BYTES: usize = 64;
/// The most kept messages for which a check adds up all of them.
const WALKED_MAX: usize = 16;

impl Kept {
    /// The bytes that a kept message takes of the messenger's limit.
    // spec: AM-8
    pub(super) fn weight(&self) -> usize {
        KEPT_BYTES
            + match self {
                Self::Record { bytes, .. } => bytes.len(),
                Self::Long(Long { arguments, payload, .. }) => arguments.len() + payload.len(),
            }
    }
}

impl Peer {
    /// Checks the invariants between two calls.
    pub(super) fn check(&self) {
        let is_empty = self.kept.is_empty();
        debug_assert_eq!(self.weight == 0, is_empty, "what is kept counts");
        debug_assert!(self.weight >= KEPT_BYTES * self.kept.len(), "each of it");
        if cfg!(debug_assertions) && self.kept.len() <= WALKED_MAX {
            let weight: usize = self.kept.iter().map(Kept::weight).sum();
            debug_assert_eq!(self.weight, weight, "no more, and no less");
            let mut rest = self.kept.iter().skip(1);
            let has_begun = |kept: &Kept| matches!(kept, Kept::Long(long) if long.sent > 0);
            debug_assert!(!rest.any(has_begun), "one after the other");
        }
    }

    /// Whether a new message must wait behind others.
    #[inline(always)]
    pub(crate) fn is_busy(&self) -> bool {
        !self.kept.is_empty() || self.outward.is_held()
    }

    /// Whether a long message has begun and is not sent whole.
    pub(super) fn is_amid_long(&self) -> bool {
        let first = self.kept.front();
        self.outward.is_held()
            || first.is_some_and(|kept| matches!(kept, Kept::Long(long) if long.sent > 0))
    }

    /// Returns the landing for the peer.
    pub(crate) fn landing(&self) -> Option<&Region> {
        self.landing.as_ref().map(|landing| &landing.region)
    }
}

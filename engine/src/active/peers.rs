//! What a messenger knows of each peer.
use crate::mem::inject::Process;
use crate::mem::region::{Region, RemoteRegion};
use crate::port::capability::Grant;
use crate::tuning::{Chosen, Share};
use aligned_vec::{AVec, ConstAlign};
use ayre_proto::active::long::{Inward, Outward};
use std::collections::VecDeque;
use std::sync::Arc;

/// What an announcement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) id: u32,
    pub(super) arguments: u8,
    pub(super) name: Box<str>,
}

/// A peer.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Names that it was told of, counted from the first.
    pub(super) told: usize,
    /// Handlers that it has announced.
    pub(super) announced: Vec<Name>,
    /// Ids that stand for something else at its end.
    pub(super) conflicts: Vec<u32>,
    /// Syncs that it has begun.
    pub(super) syncs: u64,
    /// What waits to be sent, in order.
    pub(super) kept: VecDeque<Kept>,
    /// What that counts for.
    pub(super) weight: usize,
    /// The program has found no room for a message by no channel.
    pub(super) is_wanted: bool,
    /// Long messages to it, and its landing for us, once that is open.
    pub(crate) outward: Outward,
    pub(crate) there: Option<Box<RemoteRegion>>,
    /// Long messages of it, and our landing for it.
    pub(super) inward: Inward,
    pub(super) landing: Option<Landing>,
    /// The one that is coming; how that was chosen, where it could have been read.
    pub(super) coming: Coming,
    pub(super) chosen: Option<Chosen>,
    /// Whose memory it is that messages of the peer's lie in; none before the first of them.
    pub(super) process: Option<Option<Process>>,
}

impl Default for Coming {
    fn default() -> Self {
        let (arguments, payload) = (Vec::new(), Payload::new(64));
        Self { arguments, payload, len: 0 }
    }
}

/// Begins at a line: copies to elsewhere are slower.
pub(super) type Payload = AVec<u8, ConstAlign<64>>;

/// Our landing for the peer.
#[derive(Debug)]
pub(super) struct Landing {
    pub(super) region: Region,
    /// For as long as the landing stands.
    pub(super) _grant: Grant,
    /// Its part of what rings have together.
    pub(super) _share: Share,
}

/// A long message that is being assembled.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) arguments: Vec<u8>,
    /// Its first bytes are those that have come; the rest is of messages before.
    pub(super) payload: Payload,
    pub(super) len: usize,
}

/// What was asked for within handlers and found no room.
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
    /// Bytes of the payload that are sent.
    pub(super) sent: usize,
}

/// What a kept message counts for besides its bytes.
const KEPT_BYTES: usize = 64;
/// Kept messages of which all are looked at to check a sum.
const WALKED_MAX: usize = 16;

impl Kept {
    /// What it counts for in the messenger's limit.
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
    /// What holds between two calls.
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

    /// Whether what is sent now must wait behind something.
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

    /// Our landing for the peer.
    pub(crate) fn landing(&self) -> Option<&Region> {
        self.landing.as_ref().map(|landing| &landing.region)
    }
}

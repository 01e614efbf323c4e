//! The agreement of two sides that connect.
use super::contact::Link;
use crate::error::SetupError;
use crate::mem::layout::{Direction, LaneSizes};
use crate::settings::choice::Mode;
use crate::sync::{AtomicU64, Ordering};
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::units::PeerId;
use std::sync::Arc;

/// Spoken in Hello, Welcome and Refuse; changes with any layout of spec/90.
pub(crate) const VERSION: u64 = 8;

/// The name of an endpoint, which tells it from all others; nobody can guess it.
pub(crate) type Name = [u64; 2];

/// How long the records are that transfers are cut into, in bytes, heads included.
#[derive(Debug)]
pub(crate) struct Cut {
    /// The longest.
    pub(crate) most: usize,
    /// The longest that goes whole by the paths of a link, which its frames tell.
    pub(crate) whole: Option<Arc<AtomicU64>>,
}

impl Cut {
    /// The longest record that is worth posting.
    // spec: MTU-1
    pub(crate) fn worth(&self) -> usize {
        // Relaxed: what is longer goes in pieces.
        self.whole.as_ref().map_or(self.most, |whole| whole.load(Ordering::Relaxed) as usize)
    }
}

/// The result of set-up.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) peer: PeerId,
    pub(crate) mode: Mode,
    pub(crate) link: Arc<Link>,
    pub(crate) out: Direction,
    pub(crate) inward: Direction,
    pub(crate) cut: Cut,
}

impl Agreement {
    /// With a peer of this host.
    pub(crate) fn here(
        peer: PeerId,
        (mode, link): (Mode, Arc<Link>),
        (out, inward): (Direction, Direction),
    ) -> Self {
        let cut = Cut { most: RECORD_MAX, whole: None };
        Self { peer, mode, link, out, inward, cut }
    }
}

/// Lane sizes of a mode, between ports that are no endpoints.
pub(crate) fn lane_sizes(mode: Mode) -> LaneSizes {
    match mode {
        Mode::Direct => LaneSizes::DIRECT,
        Mode::Mediated => LaneSizes::MEDIATED,
    }
}

/// Checks sizes that a peer proposes.
// spec: ERR-7
pub(crate) fn checked_sizes(
    paired: u64,
    (response, ring): (u64, u64),
    mode: Mode,
) -> Result<LaneSizes, SetupError> {
    let sizes = [paired, response, ring].map(u32::try_from);
    let [Ok(paired), Ok(response), Ok(ring)] = sizes else {
        return Err(SetupError::Protocol("lane sizes"));
    };
    let sizes = LaneSizes { paired, response, ring };
    let complete = sizes.valid() && (mode == Mode::Direct || sizes.response > 0);
    if complete { Ok(sizes) } else { Err(SetupError::Protocol("lane sizes")) }
}

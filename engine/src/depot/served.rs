//! An inlet at its owner's engine.
use crate::mem::depot::DepotMemory;
use std::sync::Arc;

/// An inlet, as the responder finds it by the slot of its key.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) depot: Arc<DepotMemory>,
    pub(crate) number: u8,
    /// Bytes of the inlet's range.
    pub(crate) len: u64,
}

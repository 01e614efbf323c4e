//! The pipelines that a messenger has laid.
use ayre_proto::stream::StreamName;
use ayre_proto::units::PeerId;

/// The numbers and entries of a laid pipeline.
#[derive(Debug, Default)]
pub(super) struct Laid {
    pub(super) first: u16,
    /// The count of consecutive numbers from the first one, which wrap around.
    pub(super) len: u16,
    pub(super) entries: Vec<(PeerId, StreamName)>,
}

impl Laid {
    pub(super) fn new(first: u16, len: u16) -> Self {
        Self { first, len, entries: Vec::new() }
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        let first = self.first;
        (0..self.len).map(move |at| first.wrapping_add(at))
    }
}

//! Everything that `ayre perf` measures besides the raw limits, in the order of the report.

use super::case::Case;

/// The operations of Ayre. Both ranks build the same list, so whatever the cases share (a port, a
/// region of the peer) is set up here, by both in the same order.
pub(crate) fn operations() -> Vec<Box<dyn Case>> {
    Vec::new()
}

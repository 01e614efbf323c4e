//! The memory of a queue with many producers: a file with one lane for each.
use super::file::{Pages, round_to_pages};
use super::lane::{LaneMemory, Lines};
use super::map::Mapping;
use ayre_proto::limits::{LINE, LINE_PAYLOAD};
use std::sync::Arc;

const FIRST_LINE: u64 = 2 * LINE as u64;
const LINE_STRIDE: u64 = 2 * LINE as u64;

pub(crate) fn record_max(lines: u32) -> usize {
    lines as usize * LINE_PAYLOAD / 2
}

pub(crate) fn file_len(lines: u32) -> usize {
    round_to_pages((FIRST_LINE + LINE_STRIDE * u64::from(lines)) as usize, Pages::Ordinary)
}

pub(crate) fn lane(mapping: &Arc<Mapping>, lines: u32) -> LaneMemory {
    let place = Lines { first: FIRST_LINE, stride: LINE_STRIDE, count: lines };
    LaneMemory::new(mapping, 0, place)
}

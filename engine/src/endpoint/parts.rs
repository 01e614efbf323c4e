//! Parts of what is longer than a record of the lane.
use crate::mem::lane::LaneReceiver;
use crate::mem::ring::RingReceiver;
use crate::mem::span::Spans;
use arrayvec::ArrayVec;
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;

/// Longest message that travels in the lane.
pub(super) const SHORT_MAX: usize = 512;
/// Longest part of a longer one.
pub(super) const PART_MAX: usize = 32 << 10;

/// Where a part begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartPlace {
    /// In the ring.
    Ring(u64),
    /// In the lane, behind so many words.
    Lane(usize),
}

/// So many bytes, at most those of the longest record, that are written next. No more are cleared:
/// what is touched most has eight.
#[inline(always)]
pub(super) fn zeros(len: usize) -> ArrayVec<u8, EAGER_MAX> {
    debug_assert!(len <= EAGER_MAX, "no record is longer");
    static ZEROS: [u8; EAGER_MAX] = [0; EAGER_MAX];
    let mut bytes = ArrayVec::new();
    bytes.try_extend_from_slice(&ZEROS[..len]).expect("as many as there is room for");
    bytes
}

/// Copies a part to where it belongs; there is room for it.
pub(super) fn copy_part(
    (into, at): (&mut Spans, usize),
    len: usize,
    (lane, ring): (&LaneReceiver, Option<&mut RingReceiver>),
    place: PartPlace,
) -> Result<(), Malformed> {
    debug_assert!(at + len <= into.len(), "there is room for it");
    let piece = into.piece_mut(at, len);
    match place {
        PartPlace::Ring(place) if piece.len() == len => {
            ring.ok_or(Malformed)?.take(place, len, piece)?;
        }
        PartPlace::Ring(place) => {
            let ring = ring.ok_or(Malformed)?;
            ring.check(place, len)?;
            let mut bytes = vec![0; len];
            ring.take(place, len, &mut bytes)?;
            into.write(at, &bytes);
        }
        PartPlace::Lane(skip) if piece.len() == len => lane.copy(skip, piece),
        PartPlace::Lane(skip) => {
            let mut bytes = vec![0; len];
            lane.copy(skip, &mut bytes);
            into.write(at, &bytes);
        }
    }
    Ok(())
}

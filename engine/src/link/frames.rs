//! Memory for the frames that one end of a link holds.
use crate::net::crc::crc32c;
use crate::net::datagram::{LINE_BYTES, Shared};
use ayre_proto::link::frame::HEADER_BYTES;
use ayre_proto::node::carrier::frames::{Frame, Memory};
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;
use std::sync::Arc;

/// Frames for which there is memory in one piece: about as many as leave with one call.
const PIECE_FRAMES: usize = 64;

/// The frames of one link, whose memory a network shares that has not taken them yet, so that they
/// are not copied.
pub(crate) type Frames = ayre_proto::node::carrier::frames::Frames<Trains>;

/// For payloads of at most `room` bytes.
pub(crate) fn frames(room: usize) -> Frames {
    Frames::new(room, || Trains::new(HEADER_BYTES + room))
}

/// A frame with this header, for a network to keep until it has left; none while another
/// transmission of it has not.
pub(crate) fn with_header(
    frame: &mut Frame<Trains>,
    header: &[u8; HEADER_BYTES],
) -> Option<Shared> {
    let buffer = frame.buffer();
    Arc::get_mut(buffer)?[..HEADER_BYTES].copy_from_slice(header);
    Some(buffer.clone())
}

/// Memory for the frames of a channel: for as many as it has had at a time, and at most a piece
/// more.
///
/// Frames of a train that lie one behind the other the system copies in one go, which takes half
/// the time of as many pieces. So memory is taken in the order in which it lies; as frames arrive
/// in the order in which they were begun, it comes back in that order, too.
#[derive(Debug)]
pub(crate) struct Trains {
    /// Of a frame.
    len: usize,
    free: VecDeque<Shared>,
    /// Frames for which there was memory so far.
    made: usize,
}

impl Trains {
    fn new(len: usize) -> Self {
        Self { len, free: VecDeque::new(), made: 0 }
    }

    /// Each frame begins with a line.
    fn grow(&mut self) {
        let (count, lines) = (self.made.clamp(1, PIECE_FRAMES), self.len.div_ceil(LINE_BYTES));
        let mut piece = BytesMut::zeroed((count * lines + 1) * LINE_BYTES);
        piece.advance(piece.as_ptr().align_offset(LINE_BYTES));
        assert!(piece.as_ptr().addr().is_multiple_of(LINE_BYTES), "each begins with a line");
        assert!(piece.len() >= count * lines * LINE_BYTES, "a piece has all of them");
        for _ in 0..count {
            let mut frame = piece.split_to(lines * LINE_BYTES);
            frame.truncate(self.len);
            self.free.push_back(Arc::new(frame));
        }
        self.made += count;
    }
}

impl Memory for Trains {
    type Buffer = Shared;

    /// Where no other frame is under way, it is what came back last, which is in the processor's
    /// cache: that changes nothing about the order.
    fn take(&mut self, is_quiet: bool) -> Shared {
        loop {
            let next = if is_quiet { self.free.pop_back() } else { self.free.pop_front() };
            match next {
                Some(bytes) if Arc::strong_count(&bytes) == 1 => return bytes,
                // A net that has not sent it yet keeps it.
                Some(_) => {}
                None => self.grow(),
            }
        }
    }

    #[inline]
    fn give(&mut self, buffer: Shared) {
        debug_assert_eq!(buffer.len(), self.len, "it is a frame's");
        debug_assert!(self.free.len() < self.made, "what comes back was taken");
        self.free.push_back(buffer);
    }

    #[inline]
    fn bytes(buffer: &Shared) -> &[u8] {
        buffer
    }

    #[inline]
    fn bytes_mut(buffer: &mut Shared) -> &mut [u8] {
        Arc::get_mut(buffer).expect("nobody else has it yet")
    }

    fn crc(bytes: &[u8]) -> u32 {
        crc32c(bytes)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ayre_proto::link::frame::{Channel, RecordKind};
    use std::ops::Range;

    const LEN: usize = 23 * LINE_BYTES;

    /// Sends long frames, of which this number are under way at a time. Returns where each begins.
    fn stream(frames: &mut Frames, numbers: Range<u32>, under_way: u32) -> Vec<usize> {
        let channel = Channel::Posted;
        let send = |seq| {
            frames.append(channel, (RecordKind::Command, 1), 1200, |bytes| bytes.fill(7));
            frames.depart((channel, seq), 0);
            let start = frames.sent(channel, seq).buffer().as_ptr().addr();
            if seq >= numbers.start + under_way - 1 {
                frames.arrived(channel);
            }
            start
        };
        let starts = numbers.clone().map(send).collect();
        (1..under_way).for_each(|_| frames.arrived(channel));
        starts
    }

    #[test]
    fn frames_that_follow_each_other_lie_so_but_lone_ones_in_the_same_place() {
        let mut frames = frames(LEN - HEADER_BYTES);
        stream(&mut frames, 0..1000, 128);
        let lone = stream(&mut frames, 1000..1100, 1);
        assert!(lone.iter().all(|start| start == &lone[0]));
        let starts = stream(&mut frames, 1100..3100, 128);
        let breaks = starts.windows(2).filter(|pair| pair[0] + LEN != pair[1]).count();
        assert!(breaks < starts.len() / 10, "{breaks} breaks");
        assert!(starts.iter().all(|start| start % LINE_BYTES == 0));
        let mut places = starts;
        places.sort_unstable();
        places.dedup();
        assert!(places.windows(2).all(|pair| pair[0] + LEN <= pair[1]), "none in another one");
        assert!(places.len() < 200, "memory for {} frames", places.len());
    }
}

//! The frames that one end of a link holds: those that are being filled, that are ready to go, that
//! were sent and have not arrived, and that have come before their turn.
//!
//! ```text
//!   records --> filling --> ready --> sent --> arrived
//!                 one      some    a window     free
//! ```
use super::counts::is_after;
use super::early::Early;
use crate::net::crc::crc32c;
use crate::net::datagram::{LINE_BYTES, Shared};
use crate::sync::{AtomicU64, Ordering};
use ayre_proto::link::frame::{
    CHANNELS, Channel, Digest, Flags, HEAD_BYTES, HEADER_BYTES, Packer, RecordKind,
};
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;
use std::sync::Arc;

/// Frames of a channel that are ready to go: a few trains.
// spec: LIM-1, WIRE-9
pub(crate) const FRAMES_MAX: usize = 128;

/// Shortest payload that is filled up.
const FILLED_LEAST: usize = 512;
/// Frames for which there is memory in one piece: about as many as leave with one call.
const PIECE_FRAMES: usize = 64;

/// The frames of one link: of each channel at most two windows, those that are ready, and one that
/// is filled. Each channel has memory for as many as it has had at a time, and at most a piece
/// more.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes of the longest payload.
    room: usize,
    /// Bytes of the longest frame that goes whole, and those up to which payloads are filled so
    /// that theirs do. A record that is longer has a frame of its own.
    limit: u16,
    filled: usize,
    /// Bytes of the longest record of such a payload, for those who cut what they post.
    whole: Arc<AtomicU64>,
    channels: Box<[Queues; CHANNELS]>,
}

/// Of one channel.
#[derive(Debug)]
struct Queues {
    memory: Memory,
    filling: Option<Filling>,
    ready: VecDeque<(Frame, Early)>,
    /// From the oldest that has not arrived on, which has this number.
    sent: VecDeque<Frame>,
    oldest: u32,
    /// From the one whose turn it is to be taken on, as far as there are any.
    kept: VecDeque<Kept>,
    turn: u32,
}

#[derive(Debug)]
struct Filling {
    bytes: Shared,
    /// Of the payload.
    len: usize,
    early: Early,
}

/// A frame as it travels. A network that has not taken it yet has a share in it, so that it is not
/// copied.
#[derive(Debug)]
pub(crate) struct Frame {
    bytes: Shared,
    digest: Digest,
}

/// Records that have come, and wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Box<[u8]>,
    /// The data of its puts is in place, and of each only the length is here.
    pub(crate) is_placed: bool,
}

impl Frame {
    /// The frame with this header, for a network to keep until it has left; none while another
    /// transmission of it has not.
    pub(crate) fn with_header(&mut self, header: &[u8; HEADER_BYTES]) -> Option<Shared> {
        Arc::get_mut(&mut self.bytes)?[..HEADER_BYTES].copy_from_slice(header);
        Some(self.bytes.clone())
    }

    /// Bytes of header and payload.
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES + usize::from(self.digest.len)
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..self.len()]
    }
}

impl Frames {
    /// For payloads of at most `room` bytes.
    pub(crate) fn new(room: usize) -> Self {
        let queues = || Queues {
            memory: Memory::new(HEADER_BYTES + room),
            filling: None,
            ready: VecDeque::new(),
            sent: VecDeque::new(),
            oldest: 0,
            kept: VecDeque::new(),
            turn: 0,
        };
        Self {
            room,
            limit: u16::MAX,
            filled: room,
            whole: Arc::new(AtomicU64::new((room - HEAD_BYTES) as u64)),
            channels: Box::new(std::array::from_fn(|_| queues())),
        }
    }

    /// Bytes of the longest payload.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Bytes of the longest frame that goes whole, as it was said last.
    #[inline]
    pub(crate) fn limit(&self) -> u16 {
        self.limit
    }

    /// Frames of more than so many bytes do not go whole.
    // spec: MTU-1
    #[cold]
    pub(crate) fn set_limit(&mut self, frame_max: u16) {
        self.limit = frame_max;
        let least = self.room - usize::from(frame_max).saturating_sub(HEADER_BYTES).min(self.room);
        // So much less that frames are whole lines, or as long as they were.
        self.filled = self.room.saturating_sub(least.next_multiple_of(LINE_BYTES));
        // Relaxed: whoever goes by what was there before posts what goes in pieces.
        self.whole.store(self.whole() as u64, Ordering::Relaxed);
    }

    /// Bytes of the longest record that goes whole.
    pub(crate) fn whole(&self) -> usize {
        self.filled.saturating_sub(HEAD_BYTES)
    }

    /// The same for others, as it changes.
    pub(crate) fn whole_shared(&self) -> &Arc<AtomicU64> {
        &self.whole
    }

    /// Bytes of the longest record.
    pub(crate) fn longest(&self) -> usize {
        self.room - HEAD_BYTES
    }

    /// Bytes of the longest record that fills up the frame which is being filled, or a new one,
    /// where little is left of that.
    pub(crate) fn share(&self, channel: Channel) -> usize {
        let filled = self.of(channel).filling.as_ref().map_or(0, |filling| filling.len);
        let longest = self.whole();
        let left = longest.saturating_sub(filled);
        if left < longest / 16 { longest } else { left }
    }

    /// Frames that can still be filled on a channel, behind the one that is being filled.
    pub(crate) fn left(&self, channel: Channel) -> usize {
        FRAMES_MAX - self.of(channel).ready.len()
    }

    /// Whether a channel's frames are all filled.
    pub(crate) fn is_full(&self) -> bool {
        Channel::ALL.iter().any(|channel| self.left(*channel) == 0)
    }

    /// Frames that are ready to go, on all channels.
    pub(crate) fn ready(&self) -> usize {
        self.channels.iter().map(|queues| queues.ready.len()).sum()
    }

    /// Whether a record of `len` bytes can be appended.
    pub(crate) fn fits(&self, channel: Channel, len: usize) -> bool {
        self.fits_filling(channel, len) || self.left(channel) > 0
    }

    fn fits_filling(&self, channel: Channel, len: usize) -> bool {
        let filled = self.of(channel).filling.as_ref().map_or(0, |filling| filling.len);
        filled + HEAD_BYTES + len.next_multiple_of(8) <= self.filled
    }

    /// Whether there is something of the channel to send.
    pub(crate) fn is_begun(&self, channel: Channel) -> bool {
        let queues = self.of(channel);
        queues.filling.is_some() || !queues.ready.is_empty()
    }

    /// Appends a record, which fits.
    pub(crate) fn append(
        &mut self,
        channel: Channel,
        head: (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        if !self.fits_filling(channel, len) {
            self.close(channel);
        }
        let Queues { memory, filling, ready, sent, .. } = &mut self.channels[channel.index()];
        let is_quiet = ready.is_empty() && sent.is_empty();
        let filling = filling.get_or_insert_with(|| Filling {
            bytes: memory.take(is_quiet),
            len: 0,
            early: Early::NoMatter,
        });
        let bytes = Arc::get_mut(&mut filling.bytes).expect("nobody else has it yet");
        let mut packer = Packer::behind(&mut bytes[HEADER_BYTES..], filling.len);
        fill(packer.reserve(head, [], len).expect("a record is appended only where it fits"));
        filling.len = packer.payload().len();
    }

    /// The record that was appended last is a command; see [`Run::join`](super::early::Run::join).
    pub(crate) fn add_command(&mut self, channel: Channel, after: Option<u64>) {
        if let Some(filling) = &mut self.channels[channel.index()].filling {
            filling.early = filling.early.with(after);
        }
    }

    /// What has been filled is ready to go.
    fn close(&mut self, channel: Channel) {
        let queues = &mut self.channels[channel.index()];
        let Some(Filling { mut bytes, len, early }) = queues.filling.take() else { return };
        let len = fill_up(Arc::get_mut(&mut bytes).expect("nobody else has it yet"), len);
        let digest = Digest::of(&bytes[HEADER_BYTES..][..len], crc32c);
        queues.ready.push_back((Frame { bytes, digest }, early));
    }

    /// The oldest frame that was begun is about to be sent with this number, for the first time;
    /// so many commands are known to have been executed.
    // spec: WIRE-13, FRAME-10
    pub(crate) fn depart(
        &mut self,
        (channel, seq): (Channel, u32),
        executed: u64,
    ) -> (Digest, Flags) {
        if self.of(channel).ready.is_empty() {
            self.close(channel);
        }
        let queues = &mut self.channels[channel.index()];
        let (frame, early) = queues.ready.pop_front().expect("a frame was begun");
        let flags = if early.holds(executed) { Flags::EARLY } else { Flags::empty() };
        let digest = frame.digest;
        if queues.sent.is_empty() {
            queues.oldest = seq;
        }
        queues.sent.push_back(frame);
        (digest, flags)
    }

    /// A frame that was sent and has not arrived.
    pub(crate) fn sent(&mut self, channel: Channel, seq: u32) -> &mut Frame {
        let Queues { sent, oldest, .. } = &mut self.channels[channel.index()];
        let sent = sent.get_mut(seq.wrapping_sub(*oldest) as usize);
        sent.expect("a frame is kept until it has arrived")
    }

    /// The oldest frame that was sent has arrived.
    pub(crate) fn arrived(&mut self, channel: Channel) {
        let Queues { memory, sent, oldest, .. } = &mut self.channels[channel.index()];
        if let Some(frame) = sent.pop_front() {
            *oldest = oldest.wrapping_add(1);
            memory.give(frame.bytes);
        }
    }

    /// Keeps what came before its turn, or could not all be taken yet.
    pub(crate) fn keep(&mut self, channel: Channel, seq: u32, kept: Kept) {
        self.channels[channel.index()].keep(seq, kept);
    }

    /// Takes out what was kept of the frame whose turn it is.
    pub(crate) fn take_kept(&mut self, channel: Channel, seq: u32) -> Kept {
        self.channels[channel.index()].take_kept(seq)
    }

    /// It is this frame's turn to be taken: nothing is kept of those before, whatever became of
    /// them.
    pub(crate) fn pass(&mut self, channel: Channel, turn: u32) {
        self.channels[channel.index()].pass(turn);
    }

    fn of(&self, channel: Channel) -> &Queues {
        &self.channels[channel.index()]
    }
}

/// Memory for the frames of a channel.
///
/// Frames of a train that lie one behind the other the system copies in one go, which takes half
/// the time of as many pieces. So memory is taken in the order in which it lies; as frames arrive
/// in the order in which they were begun, it comes back in that order, too.
#[derive(Debug)]
struct Memory {
    /// Of a frame.
    len: usize,
    free: VecDeque<Shared>,
    /// Frames for which there was memory so far.
    made: usize,
}

impl Memory {
    fn new(len: usize) -> Self {
        Self { len, free: VecDeque::new(), made: 0 }
    }

    /// Memory that nobody else has a share in. Where no other frame is under way, it is what came
    /// back last, which is in the processor's cache: that changes nothing about the order.
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

    fn give(&mut self, bytes: Shared) {
        self.free.push_back(bytes);
    }

    /// Each frame begins with a line.
    fn grow(&mut self) {
        let (count, lines) = (self.made.clamp(1, PIECE_FRAMES), self.len.div_ceil(LINE_BYTES));
        let mut piece = BytesMut::zeroed((count * lines + 1) * LINE_BYTES);
        piece.advance(piece.as_ptr().align_offset(LINE_BYTES));
        for _ in 0..count {
            let mut frame = piece.split_to(lines * LINE_BYTES);
            frame.truncate(self.len);
            self.free.push_back(Arc::new(frame));
        }
        self.made += count;
    }
}

impl Queues {
    fn keep(&mut self, seq: u32, kept: Kept) {
        if self.kept.is_empty() {
            self.turn = seq;
        }
        while is_after(self.turn, seq) {
            self.turn = self.turn.wrapping_sub(1);
            self.kept.push_front(Kept::default());
        }
        let place = seq.wrapping_sub(self.turn) as usize;
        if place >= self.kept.len() {
            self.kept.resize_with(place + 1, Kept::default);
        }
        self.kept[place] = kept;
    }

    fn take_kept(&mut self, seq: u32) -> Kept {
        let place = seq.wrapping_sub(self.turn) as usize;
        self.kept.get_mut(place).map(std::mem::take).unwrap_or_default()
    }

    fn pass(&mut self, turn: u32) {
        while is_after(turn, self.turn) && self.kept.pop_front().is_some() {
            self.turn = self.turn.wrapping_add(1);
        }
    }
}

/// Makes a long frame whole lines shorter than the longest one, so that each of its train begins
/// with a line. Its payload has `len` bytes; returns how many it has then.
fn fill_up(frame: &mut [u8], len: usize) -> usize {
    let payload = &mut frame[HEADER_BYTES..];
    let gap = (payload.len() - len) % LINE_BYTES;
    if gap < HEAD_BYTES || len < FILLED_LEAST {
        return len;
    }
    let mut packer = Packer::behind(payload, len);
    let filler = packer.reserve((RecordKind::Filler, 0), [], gap - HEAD_BYTES);
    filler.expect("the gap lies in the frame").fill(0);
    packer.payload().len()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ayre_proto::link::frame::Payload;
    use std::ops::Range;

    /// Payload of a frame with one record of so many bytes.
    fn payload_of(len: usize) -> Vec<u8> {
        let mut frames = Frames::new(1472 - HEADER_BYTES);
        frames.append(Channel::Posted, (RecordKind::Command, 1), len, |bytes| bytes.fill(7));
        frames.depart((Channel::Posted, 0), 0);
        frames.sent(Channel::Posted, 0).payload().to_vec()
    }

    #[test]
    fn a_long_frame_has_whole_lines_and_the_records_it_had() {
        for len in (600..1376).step_by(8) {
            let payload = payload_of(len);
            assert_eq!((HEADER_BYTES + payload.len()) % LINE_BYTES, 0, "record of {len} bytes");
            let mut records = Payload::parse(&payload).expect("records").records();
            assert_eq!(records.next().map(|record| record.bytes), Some(&vec![7; len][..]));
            let rest: Vec<_> = records.collect();
            assert!(rest.iter().all(|record| record.kind == RecordKind::Filler));
            assert!(rest.iter().all(|record| record.bytes.iter().all(|byte| *byte == 0)));
        }
    }

    /// What is cut by what the frames tell goes whole, whatever paths take, and nearly fills them.
    // spec: MTU-8
    #[test]
    fn a_record_that_is_cut_by_what_paths_take_goes_whole() {
        let mut frames = Frames::new((8972 - HEADER_BYTES) & !7);
        let whole = frames.whole_shared().clone();
        // Relaxed: there is one thread.
        let told = || whole.load(Ordering::Relaxed) as usize;
        assert_eq!(told(), frames.longest());
        for (seq, limit) in (0..).zip([8972, 4000, 1440, 1152, 480, 1440, 8972_u16]) {
            frames.set_limit(limit);
            let len = told();
            assert_eq!(len, frames.whole());
            assert!(len.is_multiple_of(8) && len + 200 >= usize::from(limit), "{len} of {limit}");
            frames.append(Channel::Posted, (RecordKind::Command, 1), 64, |_| {});
            frames.append(Channel::Posted, (RecordKind::Command, 2), len, |_| {});
            for seq in [2 * seq, 2 * seq + 1] {
                frames.depart((Channel::Posted, seq), 0);
                assert!(frames.sent(Channel::Posted, seq).len() <= usize::from(limit));
                frames.arrived(Channel::Posted);
            }
        }
    }

    const LEN: usize = 23 * LINE_BYTES;

    /// Sends long frames, of which so many are under way at a time: where each begins.
    fn stream(frames: &mut Frames, numbers: Range<u32>, under_way: u32) -> Vec<usize> {
        let channel = Channel::Posted;
        let send = |seq| {
            frames.append(channel, (RecordKind::Command, 1), 1200, |bytes| bytes.fill(7));
            frames.depart((channel, seq), 0);
            let start = frames.sent(channel, seq).bytes.as_ptr().addr();
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
        let mut frames = Frames::new(LEN - HEADER_BYTES);
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

    #[test]
    fn what_is_kept_is_taken_in_its_turn_and_forgotten_with_it() {
        let mut frames = Frames::new(256);
        let kept = |byte| Kept { bytes: Box::new([byte]), is_placed: false };
        let first = u32::MAX - 1;
        let seq = |ahead| first.wrapping_add(ahead);
        for ahead in [3, 1, 5] {
            frames.keep(Channel::Posted, seq(ahead), kept(ahead as u8));
        }
        frames.pass(Channel::Posted, seq(1));
        assert_eq!(*frames.take_kept(Channel::Posted, seq(1)).bytes, [1]);
        assert!(frames.take_kept(Channel::Posted, seq(2)).bytes.is_empty(), "it has not come");
        frames.pass(Channel::Posted, seq(3));
        assert_eq!(*frames.take_kept(Channel::Posted, seq(3)).bytes, [3]);
        // The fifth is not asked for: it was forgotten, and has come again in its turn.
        for ahead in 4..10_000 {
            frames.pass(Channel::Posted, seq(ahead));
        }
        frames.keep(Channel::Posted, seq(10_001), kept(7));
        assert_eq!(*frames.take_kept(Channel::Posted, seq(10_001)).bytes, [7]);
        assert_eq!(frames.of(Channel::Posted).kept.len(), 1, "no places for those before");
    }

    #[test]
    fn a_short_frame_is_left_as_it_is() {
        assert_eq!(payload_of(104).len(), HEAD_BYTES + 104);
    }
}

//! The frames that one end of a link holds: begun ones, ready ones, sent ones that are not
//! acknowledged, and early ones.
//!
//! ```text
//!   records --> filling --> ready --> sent --> arrived
//!                 one      some    a window     free
//! ```
use super::counts::is_after;
use super::early::Early;
use crate::limits::LINE;
use crate::link::frame::{
    CHANNELS, Channel, Digest, Flags, HEAD_BYTES, HEADER_BYTES, Packer, RecordKind,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::array;
use core::fmt::Debug;
use core::mem::take;

/// Frames of a channel that are ready to go: a few trains.
// spec: LIM-1, WIRE-9
pub const FRAMES_MAX: usize = 128;

/// Shortest payload that is filled up.
const FILLED_LEAST: usize = 512;

/// Memory for the frames of a channel.
pub trait Memory: Debug {
    /// The memory of one frame: its header, and room for the longest payload.
    type Buffer: Debug;
    /// Memory for one more frame, in which nobody else has a share; `is_quiet` where no other frame
    /// of the channel is under way.
    fn take(&mut self, is_quiet: bool) -> Self::Buffer;
    /// Takes back the buffer of a frame that has arrived. Buffers come back in the order in which
    /// they were taken.
    fn give(&mut self, buffer: Self::Buffer);
    /// The bytes of a buffer.
    fn bytes(buffer: &Self::Buffer) -> &[u8];
    /// The bytes of a buffer, for filling.
    fn bytes_mut(buffer: &mut Self::Buffer) -> &mut [u8];
    /// The CRC that frames carry.
    fn crc(bytes: &[u8]) -> u32;
}

/// The frames of one link: of each channel at most two windows, those that are ready, and one that
/// is filled. Each channel has memory for as many as it has had at a time.
#[derive(Debug)]
pub struct Frames<M: Memory> {
    /// Bytes of the longest payload.
    room: usize,
    /// Bytes of the longest frame that goes in one datagram, and the length up to which payloads
    /// are filled. A longer record has a frame of its own.
    limit: u16,
    filled: usize,
    channels: Box<[Queues<M>; CHANNELS]>,
}

/// The frames of one channel.
#[derive(Debug)]
struct Queues<M: Memory> {
    memory: M,
    filling: Option<Filling<M>>,
    ready: VecDeque<(Frame<M>, Early)>,
    /// Sent frames, from the oldest one without acknowledgement, which has this number.
    sent: VecDeque<Frame<M>>,
    oldest: u32,
    /// Kept frames, from the next one to be taken.
    kept: VecDeque<Kept>,
    turn: u32,
}

#[derive(Debug)]
struct Filling<M: Memory> {
    buffer: M::Buffer,
    /// Bytes of the payload.
    len: usize,
    early: Early,
}

/// A frame as it travels.
#[derive(Debug)]
pub struct Frame<M: Memory> {
    buffer: M::Buffer,
    digest: Digest,
}

/// Records that have come, and wait for their turn.
#[derive(Debug, Default)]
pub struct Kept {
    /// The records.
    pub bytes: Box<[u8]>,
    /// The data of its puts is in place, and of each only the length is here.
    pub is_placed: bool,
}

impl<M: Memory> Frame<M> {
    /// Its memory, for a network that keeps a share in it until it has left.
    #[inline]
    pub const fn buffer(&mut self) -> &mut M::Buffer {
        &mut self.buffer
    }

    /// Bytes of header and payload.
    #[inline]
    pub fn frame_len(&self) -> usize {
        HEADER_BYTES + usize::from(self.digest.len)
    }

    /// The records.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &M::bytes(&self.buffer)[HEADER_BYTES..self.frame_len()]
    }
}

impl<M: Memory> Frames<M> {
    /// Frames for payloads of at most `room` bytes, with one memory for each channel.
    pub fn new(room: usize, mut memory: impl FnMut() -> M) -> Self {
        assert!(
            room > HEAD_BYTES && room.is_multiple_of(8),
            "a payload has records, of whole words"
        );
        let queues = |_| Queues {
            memory: memory(),
            filling: None,
            ready: VecDeque::new(),
            sent: VecDeque::new(),
            oldest: 0,
            kept: VecDeque::new(),
            turn: 0,
        };
        let channels = Box::new(array::from_fn(queues));
        Self { room, limit: u16::MAX, filled: room, channels }
    }

    /// Invariants that hold between two steps.
    #[inline]
    fn check(&self, channel: Channel) {
        let queues = self.of(channel);
        debug_assert!(self.filled <= self.room, "no payload is longer than its memory");
        debug_assert!(queues.ready.len() <= FRAMES_MAX, "the number of ready frames is bounded");
        if let Some(filling) = &queues.filling {
            debug_assert!(filling.len <= self.room, "what is filled lies in its memory");
            debug_assert!(filling.len.is_multiple_of(8), "records end at a word");
            debug_assert!(filling.len > 0, "a frame is begun with a record");
        }
    }

    /// Bytes of the longest payload.
    #[inline]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Bytes of the longest frame that goes whole, as it was said last.
    #[inline]
    pub fn limit(&self) -> u16 {
        self.limit
    }

    /// Longer frames than `frame_max` bytes do not go in one datagram.
    // spec: MTU-1
    #[cold]
    pub fn set_limit(&mut self, frame_max: u16) {
        self.limit = frame_max;
        let least = self.room - usize::from(frame_max).saturating_sub(HEADER_BYTES).min(self.room);
        // So much less that frames are whole lines, or as long as they were.
        self.filled = self.room.saturating_sub(least.next_multiple_of(LINE));
        assert!(self.filled <= self.room, "what is shorter than before is no longer");
    }

    /// Bytes of the longest record that goes whole.
    #[inline]
    pub fn whole(&self) -> usize {
        self.filled.saturating_sub(HEAD_BYTES)
    }

    /// Bytes of the longest record.
    #[inline]
    pub fn longest(&self) -> usize {
        self.room - HEAD_BYTES
    }

    /// Bytes of the longest record that fills up the frame which is being filled, or a new one,
    /// where little is left of that.
    #[inline]
    pub fn share(&self, channel: Channel) -> usize {
        let filled = self.of(channel).filling.as_ref().map_or(0, |filling| filling.len);
        let longest = self.whole();
        let left = longest.saturating_sub(filled);
        if left < longest / 16 { longest } else { left }
    }

    /// Frames that can still be filled on a channel, behind the one that is being filled.
    #[inline]
    pub fn left(&self, channel: Channel) -> usize {
        FRAMES_MAX - self.of(channel).ready.len()
    }

    /// Whether a channel's frames are all filled.
    #[inline]
    pub fn is_full(&self) -> bool {
        Channel::ALL.iter().any(|channel| self.left(*channel) == 0)
    }

    /// Frames that are ready to go, on all channels.
    #[inline]
    pub fn ready(&self) -> usize {
        self.channels.iter().map(|queues| queues.ready.len()).sum()
    }

    /// Whether a record of `len` bytes can be appended.
    #[inline]
    pub fn fits(&self, channel: Channel, len: usize) -> bool {
        self.fits_filling(channel, len) || self.left(channel) > 0
    }

    fn fits_filling(&self, channel: Channel, len: usize) -> bool {
        let filled = self.of(channel).filling.as_ref().map_or(0, |filling| filling.len);
        filled + HEAD_BYTES + len.next_multiple_of(8) <= self.filled
    }

    /// Whether there is something of the channel to send.
    #[inline]
    pub fn is_begun(&self, channel: Channel) -> bool {
        let queues = self.of(channel);
        queues.filling.is_some() || !queues.ready.is_empty()
    }

    /// Appends a record, which fits.
    #[inline]
    pub fn append(
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
            buffer: memory.take(is_quiet),
            len: 0,
            early: Early::NoMatter,
        });
        let bytes = M::bytes_mut(&mut filling.buffer);
        let mut packer = Packer::behind(&mut bytes[HEADER_BYTES..], filling.len);
        fill(packer.reserve(head, [], len).expect("a record is appended only where it fits"));
        filling.len = packer.payload().len();
        self.check(channel);
    }

    /// The record that was appended last is a command; see [`Run::join`](super::early::Run::join).
    #[inline]
    pub fn add_command(&mut self, channel: Channel, after: Option<u64>) {
        if let Some(filling) = &mut self.channels[channel.index()].filling {
            filling.early = filling.early.with(after);
        }
    }

    /// The frame that was begun becomes ready.
    fn close(&mut self, channel: Channel) {
        let queues = &mut self.channels[channel.index()];
        let Some(Filling { mut buffer, len, early }) = queues.filling.take() else { return };
        let len = fill_up(M::bytes_mut(&mut buffer), len);
        let digest = Digest::of(&M::bytes(&buffer)[HEADER_BYTES..][..len], M::crc);
        queues.ready.push_back((Frame { buffer, digest }, early));
        self.check(channel);
    }

    /// The oldest ready frame is about to be sent under this number, for the first time. `executed`
    /// commands are known to have been executed.
    // spec: WIRE-13, FRAME-10
    #[inline]
    pub fn depart(&mut self, (channel, seq): (Channel, u32), executed: u64) -> (Digest, Flags) {
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
    #[inline]
    pub fn sent(&mut self, channel: Channel, seq: u32) -> &mut Frame<M> {
        let Queues { sent, oldest, .. } = &mut self.channels[channel.index()];
        let sent = sent.get_mut(seq.wrapping_sub(*oldest) as usize);
        sent.expect("a frame is kept until it has arrived")
    }

    /// The oldest frame that was sent has arrived.
    #[inline]
    pub fn arrived(&mut self, channel: Channel) {
        let Queues { memory, sent, oldest, .. } = &mut self.channels[channel.index()];
        if let Some(frame) = sent.pop_front() {
            *oldest = oldest.wrapping_add(1);
            memory.give(frame.buffer);
        }
    }

    /// Keeps a frame that came before its turn, or could not be taken as a whole yet.
    #[inline]
    pub fn keep(&mut self, channel: Channel, seq: u32, kept: Kept) {
        self.channels[channel.index()].keep(seq, kept);
    }

    /// Takes the kept contents of the next frame out.
    #[inline]
    pub fn take_kept(&mut self, channel: Channel, seq: u32) -> Kept {
        self.channels[channel.index()].take_kept(seq)
    }

    /// Places for kept frames of a channel, from the next frame to be taken.
    pub fn kept(&self, channel: Channel) -> usize {
        self.of(channel).kept.len()
    }

    /// The frame `turn` is the next one to be taken; nothing is kept of those before.
    #[inline]
    pub fn pass(&mut self, channel: Channel, turn: u32) {
        self.channels[channel.index()].pass(turn);
    }

    fn of(&self, channel: Channel) -> &Queues<M> {
        &self.channels[channel.index()]
    }
}

impl<M: Memory> Queues<M> {
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
        self.kept.get_mut(place).map(take).unwrap_or_default()
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
    let gap = (payload.len() - len) % LINE;
    if gap < HEAD_BYTES || len < FILLED_LEAST {
        return len;
    }
    let mut packer = Packer::behind(payload, len);
    let filler = packer.reserve((RecordKind::Filler, 0), [], gap - HEAD_BYTES);
    filler.expect("the gap lies in the frame").fill(0);
    packer.payload().len()
}

//! The payloads that one end of a link holds: of frames that are being filled, that were sent and
//! have not arrived, and that have come before their turn.
use ayre_proto::link::WINDOW;
use ayre_proto::link::frame::{CHANNELS, Channel, HEAD_BYTES, Packer, RecordKind};

type Window = [Vec<u8>; WINDOW as usize];

/// Payload buffers of one link: at most the two windows of each channel, and one that is filled.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes of the longest payload.
    room: usize,
    filling: [Filling; CHANNELS],
    sent: Box<[Window; CHANNELS]>,
    kept: Box<[Window; CHANNELS]>,
    free: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Filling {
    buffer: Vec<u8>,
    len: usize,
}

impl Frames {
    /// For payloads of at most `room` bytes.
    pub(crate) fn new(room: usize) -> Self {
        let windows = || Box::new(std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())));
        Self {
            room,
            filling: std::array::from_fn(|_| Filling::default()),
            sent: windows(),
            kept: windows(),
            free: Vec::new(),
        }
    }

    /// Bytes of the longest payload.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Bytes of the longest record.
    pub(crate) fn longest(&self) -> usize {
        self.room - HEAD_BYTES
    }

    /// Whether a record of `len` bytes fits the frame that is being filled.
    pub(crate) fn fits(&self, channel: Channel, len: usize) -> bool {
        self.filling[channel.index()].len + HEAD_BYTES + len.next_multiple_of(8) <= self.room
    }

    /// Whether a frame of the channel has records.
    pub(crate) fn is_begun(&self, channel: Channel) -> bool {
        self.filling[channel.index()].len > 0
    }

    /// Appends a record, which fits, to the frame that is being filled.
    pub(crate) fn append(
        &mut self,
        channel: Channel,
        head: (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let filling = &mut self.filling[channel.index()];
        if filling.buffer.is_empty() {
            filling.buffer = self.free.pop().unwrap_or_default();
            filling.buffer.resize(self.room, 0);
        }
        let mut packer = Packer::behind(&mut filling.buffer, filling.len);
        fill(packer.reserve(head, [], len).expect("a record is appended only where it fits"));
        filling.len = packer.payload().len();
    }

    /// What has been filled is about to be sent with this number.
    pub(crate) fn close(&mut self, channel: Channel, seq: u32) -> &[u8] {
        let filling = std::mem::take(&mut self.filling[channel.index()]);
        let place = &mut self.sent[channel.index()][slot(seq)];
        *place = filling.buffer;
        place.truncate(filling.len);
        place
    }

    /// The payload of a frame that was sent and has not arrived.
    pub(crate) fn sent(&self, channel: Channel, seq: u32) -> &[u8] {
        &self.sent[channel.index()][slot(seq)]
    }

    /// It has arrived.
    pub(crate) fn arrived(&mut self, channel: Channel, seq: u32) {
        let buffer = std::mem::take(&mut self.sent[channel.index()][slot(seq)]);
        self.recycle(buffer);
    }

    /// Keeps a payload that came before its turn.
    pub(crate) fn keep(&mut self, channel: Channel, seq: u32, payload: &[u8]) {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(payload);
        self.kept[channel.index()][slot(seq)] = buffer;
    }

    /// Takes out what was kept.
    pub(crate) fn take_kept(&mut self, channel: Channel, seq: u32) -> Vec<u8> {
        std::mem::take(&mut self.kept[channel.index()][slot(seq)])
    }

    /// Puts it back, for its turn has not come.
    pub(crate) fn put_back(&mut self, channel: Channel, seq: u32, payload: Vec<u8>) {
        self.kept[channel.index()][slot(seq)] = payload;
    }

    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.free.push(buffer);
    }
}

const fn slot(seq: u32) -> usize {
    (seq % WINDOW) as usize
}

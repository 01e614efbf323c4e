//! A sheet of paper, instead of frames.
#![allow(dead_code, reason = "each test takes what it needs")]
use ayre_proto::link::frame::{Channel, Full, RecordKind};
use ayre_proto::node::carrier::pack::Pack;

/// Bytes of the longest record that goes whole.
pub(crate) const WHOLE: usize = 512;

/// A record as it was packed.
pub(crate) type Packed = (Channel, RecordKind, u32, Vec<u8>);

/// Records that were packed, as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct Paper {
    pub(crate) records: Vec<Packed>,
    pub(crate) room: usize,
    pub(crate) now: u64,
    /// A channel on which a frame is about to go.
    pub(crate) begun: Option<Channel>,
}

pub(crate) fn paper(room: usize) -> Paper {
    Paper { room, ..Paper::default() }
}

impl Pack for Paper {
    fn pack(
        &mut self,
        channel: Channel,
        (kind, tag): (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full> {
        if self.records.len() == self.room {
            return Err(Full);
        }
        let mut bytes = vec![0; len];
        fill(&mut bytes);
        self.records.push((channel, kind, tag, bytes));
        Ok(())
    }

    fn longest(&self) -> usize {
        1024
    }

    fn whole(&self) -> usize {
        WHOLE
    }

    fn share(&self, _: Channel) -> usize {
        100
    }

    fn has_room(&self, _: Channel, _: usize) -> bool {
        self.records.len() < self.room
    }

    fn begun(&self) -> Option<Channel> {
        self.begun
    }

    fn now(&self) -> u64 {
        self.now
    }
}

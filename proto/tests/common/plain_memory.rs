//! Memory for frames from the heap.
#![allow(dead_code, reason = "each test takes what it needs")]
use ayre_proto::link::frame::HEADER_BYTES;
use ayre_proto::node::carrier::frames::{Frames, Memory};

/// CRC-32C, as frames carry it.
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// Makes each frame anew, with this number of bytes.
#[derive(Debug)]
pub(crate) struct Heap(usize);

impl Memory for Heap {
    type Buffer = Box<[u8]>;

    fn take(&mut self, _: bool) -> Box<[u8]> {
        vec![0; self.0].into()
    }

    fn give(&mut self, buffer: Box<[u8]>) {
        assert_eq!(buffer.len(), self.0, "what comes back was taken here");
    }

    fn bytes(buffer: &Box<[u8]>) -> &[u8] {
        buffer
    }

    fn bytes_mut(buffer: &mut Box<[u8]>) -> &mut [u8] {
        buffer
    }

    fn crc(bytes: &[u8]) -> u32 {
        crc32c(bytes)
    }
}

/// The CRC that frames carry.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// For payloads of at most `room` bytes.
pub(crate) fn frames(room: usize) -> Frames<Heap> {
    Frames::new(room, || Heap(HEADER_BYTES + room))
}

//! The slots of a packet socket: the system lays frames into them as they come, and to find one, or
//! none, takes no call.
use crate::mem::map::Mapping;
use crate::sync::Ordering;
use crate::sys::descriptor::Descriptor;
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};
use std::io;
use std::os::fd::AsFd;

/// Bytes of a slot: room for a frame of Ethernet's usual length, and what the system says of it.
const SLOT_BYTES: usize = 2048;
/// Frames that wait for this port; more than these are lost.
pub(super) const SLOTS: usize = 2048;
/// The system takes memory in pieces of this number of bytes.
const BLOCK_BYTES: usize = 1 << 16;
const RING_BYTES: usize = SLOTS * SLOT_BYTES;
const _: () = assert!(BLOCK_BYTES.is_multiple_of(SLOT_BYTES), "a block has whole slots");
const _: () = assert!(RING_BYTES.is_multiple_of(BLOCK_BYTES), "the ring has whole blocks");

/// Where in a slot the system says how many bytes of the frame are in it (4), and where (2).
const SAID: u64 = std::mem::offset_of!(libc::tpacket2_hdr, tp_snaplen) as u64;
const SAID_BYTES: usize = 8;

/// A socket's slots, which this process and the system fill and empty in turn.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Mapping,
    /// Which slot the next frame is in.
    next: usize,
}

/// The contents of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A frame of this number of bytes, which were copied out.
    Frame(usize),
    /// A frame is longer than a slot: it waits in the socket, whole, and is received there.
    Long,
}

impl Ring {
    /// Has the system lay into slots what the socket receives from now on. Frames that it had
    /// received are lost.
    ///
    /// # Errors
    ///
    /// The system has not the memory, or knows no such slots.
    pub(super) fn of(socket: &Descriptor) -> io::Result<Self> {
        setsockopt(socket, Version, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        setsockopt(socket, KeepLong, &1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as libc::c_uint,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as libc::c_uint,
            tp_frame_size: SLOT_BYTES as libc::c_uint,
            tp_frame_nr: SLOTS as libc::c_uint,
        };
        setsockopt(socket, Slots, &request)?;
        Ok(Self { slots: Mapping::slots(socket.as_fd(), RING_BYTES)?, next: 0 })
    }

    /// Takes the next frame, if there is one; `into` has room for a slot.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Option<Found> {
        let slot = (self.next * SLOT_BYTES) as u64;
        let status = self.slots.half_word(slot);
        // RING-A1: the system stores the status when the frame is in the slot.
        let seen = status.load(Ordering::Acquire);
        if seen & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let found = match seen & libc::TP_STATUS_COPY {
            0 => Found::Frame(self.copy(slot, into)),
            _ => Found::Long,
        };
        // RING-R1: the system fills the slot again once it sees this.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        Some(found)
    }

    /// Copies the frame out of a slot.
    fn copy(&self, slot: u64, into: &mut [u8]) -> usize {
        let mut said = [0; SAID_BYTES];
        self.slots.read(slot + SAID, &mut said);
        let [a, b, c, d, e, f, ..] = said;
        let begin = usize::from(u16::from_ne_bytes([e, f]));
        let len = u32::from_ne_bytes([a, b, c, d]) as usize;
        let len = len.min(SLOT_BYTES.saturating_sub(begin)).min(into.len());
        debug_assert!(begin + len <= SLOT_BYTES || len == 0, "what is copied lies in the slot");
        self.slots.read(slot + begin as u64, &mut into[..len]);
        len
    }
}

sockopt_impl!(
    /// How the system describes a frame in its slot.
    Version,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_VERSION,
    libc::c_int
);
sockopt_impl!(
    /// Whether frames that no slot has room for are kept in the socket.
    KeepLong,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_COPY_THRESH,
    libc::c_int
);
sockopt_impl!(
    /// How many slots there are, and how long they are.
    Slots,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_RX_RING,
    libc::tpacket_req
);

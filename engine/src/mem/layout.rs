//! The layout of the memory that exactly two ports share.
//!
//! ```text
//! connection file: two directions, one after the other, each:
//!   line 0..8       control lines, each written by one side only
//!     0  messages consumed      (reader)      4  barrier count          (writer)
//!     1  requests consumed      (reader)      6  active direct key      (writer)
//!     2  responses consumed     (reader)           behind it: bytes of the ring written
//!     3  commands executed      (reader)     7  bytes of the ring taken  (reader)
//!     5  notifications taken    (reader)
//!   line 8..        message lane on even lines, request lane on odd lines
//!   behind them     response lane, line by line (mediated connections only)
//!   behind those    ring of bytes (connections of endpoints only)
//! ```
//!
//! The message lane's lines lie 128 bytes apart, with the request lane between them. Processors
//! fetch two neighbouring lines together, so in a dense ring reader and writer would keep taking
//! lines from each other. `proto::lane::step` gives the order in which lines are used.
use super::Instead;
use super::file::{Pages, memory_file, round_to_pages, seal_seals};
use super::lane::{LaneMemory, Lines};
use super::map::Mapping;
use super::ring::RingMemory;
use super::word::Word;
use crate::error::SetupError;
use crate::sys::descriptor::Descriptor;
use crate::tuning::{Rings, are_few};
use ayre_proto::limits::{LANE_LINES_MAX, LANE_LINES_MIN, LINE};
use rustix::fd::AsFd;
use std::ops::RangeInclusive;
use std::sync::Arc;

const CONTROL_LINES: usize = 8;
/// Bytes of a ring over a link, where there are few: the data in flight before its reading is
/// acknowledged. And where there are many.
const RING_OF_LINK: usize = 1 << 20;
const RING_OF_MANY: usize = 1 << 18;
/// The allowed lengths of a ring in bytes.
const RING_BYTES: RangeInclusive<u32> = 1 << 12..=1 << 24;

/// The sizes of the lanes of one direction, in lines, and of its ring.
// spec: LIM-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneSizes {
    /// Lines of the message lane, and of the request lane.
    pub(crate) paired: u32,
    /// Lines of the response lane.
    pub(crate) response: u32,
    /// Bytes of the ring.
    pub(crate) ring: u32,
}

impl LaneSizes {
    /// Direct connections: 2 x 44 lines and the control lines are 6 KiB for each direction.
    pub(crate) const DIRECT: Self = Self { paired: 44, response: 0, ring: 0 };
    /// Mediated connections, in 6 KiB as well: 2 x 28 lines and 32 lines of responses.
    pub(crate) const MEDIATED: Self = Self { paired: 28, response: 32, ring: 0 };

    /// Connections between endpoints of one host: 7 KB of messages, and a ring for longer ones. The
    /// ring takes as much memory as its traffic needs.
    pub(crate) const fn endpoint(ring: u32) -> Self {
        Self { paired: 128, response: 64, ring }
    }

    /// Bytes of the ring of a connection within this host.
    // spec: LIM-4, LIM-5
    pub(crate) fn ring_here() -> u32 {
        Rings::of_process().widest() as u32
    }

    /// Links, whose round trip is long: 57 KB of messages, 28 KB of responses. Requests use no lane
    /// there.
    pub(crate) const CARRIED: Self = Self { paired: 1024, response: 512, ring: 0 };

    /// Links between endpoints.
    pub(crate) const fn carried_endpoint(ring: u32) -> Self {
        Self { ring, ..Self::CARRIED }
    }

    /// Bytes of each of the two rings of a link, beside `others` other links.
    // spec: LIM-1, LIM-5
    pub(crate) fn ring_of_link_beside(others: usize, is_simulated: bool) -> u32 {
        let wanted = if are_few(others) { RING_OF_LINK } else { RING_OF_MANY };
        Rings::of_process().affordable(wanted, 2, is_simulated) as u32
    }

    /// Whether lanes of these sizes work; the sizes may come from a peer.
    pub(crate) fn valid(&self) -> bool {
        let fits = |lines: u32| (LANE_LINES_MIN..=LANE_LINES_MAX).contains(&(lines as usize));
        let ring_fits = self.ring == 0 || RING_BYTES.contains(&self.ring);
        let whole = self.ring == 0 || self.ring.is_power_of_two();
        fits(self.paired) && (self.response == 0 || fits(self.response)) && ring_fits && whole
    }

    fn lines(&self) -> usize {
        self.lane_lines() + self.ring as usize / LINE
    }

    fn lane_lines(&self) -> usize {
        CONTROL_LINES + 2 * self.paired as usize + self.response as usize
    }

    /// Makes a connection file and maps it. The pages of rings are allocated when they are used:
    /// few connections use a whole ring.
    // spec: LANE-9
    pub(crate) fn make_file(&self) -> Result<(Descriptor, Arc<Mapping>), SetupError> {
        let file = memory_file(self.file_len(), Pages::Ordinary)?;
        seal_seals(file.as_fd())?;
        let (whole, lanes) = (self.lines() * LINE, self.lane_lines() * LINE);
        let present = [0..lanes, whole..whole + lanes];
        let mapping =
            Mapping::own_in_part(file.as_fd(), self.file_len(), present)?.private(Instead::Zeros);
        Ok((file, Arc::new(mapping)))
    }

    /// The length of the connection file in bytes.
    pub(crate) fn file_len(&self) -> usize {
        round_to_pages(2 * self.lines() * LINE, Pages::Ordinary)
    }
}

/// A control line of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Messages = 0,
    Requests = 1,
    Responses = 2,
    Done = 3,
    Barrier = 4,
    Noted = 5,
    Active = 6,
    Ring = 7,
}

/// One direction of a connection: from the port that writes its lanes to the port that reads them.
// spec: LANE-1, CAP-10
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    mapping: Arc<Mapping>,
    sizes: LaneSizes,
    start: u64,
}

impl Direction {
    /// Both directions of a connection file: the maker's outgoing one first.
    pub(crate) fn pair(mapping: &Arc<Mapping>, sizes: LaneSizes) -> (Self, Self) {
        let start = (sizes.lines() * LINE) as u64;
        let direction = |start| Self { mapping: mapping.clone(), sizes, start };
        (direction(0), direction(start))
    }

    /// A control word.
    pub(crate) fn control(&self, line: Control) -> Word {
        Word::new(&self.mapping, self.start + (line as usize * LINE) as u64)
    }

    pub(crate) fn messages(&self) -> LaneMemory {
        self.lane(Control::Messages, CONTROL_LINES, 2, self.sizes.paired)
    }

    pub(crate) fn requests(&self) -> LaneMemory {
        self.lane(Control::Requests, CONTROL_LINES + 1, 2, self.sizes.paired)
    }

    pub(crate) fn responses(&self) -> LaneMemory {
        let first = CONTROL_LINES + 2 * self.sizes.paired as usize;
        self.lane(Control::Responses, first, 1, self.sizes.response)
    }

    /// The ring, if the direction has one.
    pub(crate) fn ring(&self) -> Option<RingMemory> {
        let at = self.start + (self.sizes.lane_lines() * LINE) as u64;
        let written = self.start + (Control::Active as usize * LINE) as u64 + 8;
        (self.sizes.ring > 0).then(|| {
            let words = (self.control(Control::Ring), Word::new(&self.mapping, written));
            RingMemory::new(&self.mapping, (at, self.sizes.ring), words)
        })
    }

    // spec: LANE-2, LANE-5
    fn lane(&self, cursor: Control, first: usize, stride: usize, lines: u32) -> LaneMemory {
        let at = |line: usize| self.start + (line * LINE) as u64;
        LaneMemory::new(
            &self.mapping,
            at(cursor as usize),
            Lines { first: at(first), stride: (stride * LINE) as u64, count: lines },
        )
    }
}

//! The timing table: the cycles of each unit.

/// Bytes of a line: of a store of the processor, and of the data path in a cycle.
pub const LINE: u32 = 64;

/// A unit of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Takes the lines that the processor stores.
    Window,
    /// Reads a command, and finds its connection.
    Decode,
    /// Finds the capability of a key, and checks rights and bounds.
    Keys,
    /// Translates an address that the TLB has.
    Tlb,
    /// Cuts an operation into frames.
    Segmenter,
    /// Asks the host for lines, and puts those that come into their order.
    Read,
    /// Makes a frame: records, header and CRC.
    Frame,
    /// Numbers a frame, and keeps it until it is acknowledged.
    Channel,
    /// Checks a frame that has come.
    Check,
    /// Computes atomics.
    Alu,
    /// Writes lines to the host's memory.
    Write,
    /// Makes a notification.
    Notify,
}

impl Unit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Decode => "decode",
            Self::Keys => "keys",
            Self::Tlb => "TLB",
            Self::Segmenter => "segmenter",
            Self::Read => "DMA read",
            Self::Frame => "frame",
            Self::Channel => "channel",
            Self::Check => "check",
            Self::Alu => "ALU",
            Self::Write => "DMA write",
            Self::Notify => "notify",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The unit.
    pub unit: Unit,
    /// Cycles from its input to its output.
    pub cycles: u64,
    /// Cycles from one input to the next one, at least.
    pub each: u64,
    /// Bytes that pass it in a cycle; none pass a unit of which this is 0.
    pub bytes: u32,
    /// The reason for these numbers.
    pub why: &'static str,
}

const fn row(unit: Unit, [cycles, each]: [u64; 2], bytes: u32, why: &'static str) -> Row {
    Row { unit, cycles, each, bytes, why }
}

/// The interface that is to be built. All numbers are our choice: there is no hardware yet.
///
/// A memory on the chip answers in the cycle after, and its output is kept in a register: two
/// cycles. The passes of a put sum to 39 cycles. EXTOLL's units need 8 cycles for a command, 9 for
/// a translation, and 9 for the crossbar between them (thesis, sections 5.2.9 and 7.1). Ours have
/// no crossbar, and eight times the width.
pub const TABLE: [Row; 12] = [
    row(Unit::Window, [2, 1], LINE, "a register, and a memory of lines; a command is one store"),
    row(Unit::Decode, [2, 1], 0, "the connection's state comes from a memory on the chip"),
    row(Unit::Keys, [3, 1], 0, "a memory of 512 keys, then rights and bounds are compared"),
    row(Unit::Tlb, [2, 1], 0, "32 entries are compared at once, as in our study of the RTL"),
    row(Unit::Segmenter, [2, 2], 0, "lengths and addresses of the next piece are sums in a loop"),
    row(Unit::Read, [4, 1], LINE, "a tag and a request; a memory of lines that came early"),
    row(Unit::Frame, [5, 4], LINE, "two lines of header, whose two CRCs take three cycles"),
    row(Unit::Channel, [3, 2], LINE, "credit and number of a channel; its state is written back"),
    row(Unit::Check, [5, 4], LINE, "two lines of header, and the end of the payload's CRC"),
    row(Unit::Alu, [2, 1], 0, "an adder of 64 bits, and a choice"),
    row(Unit::Write, [2, 1], LINE, "lines are moved to their places, and a packet is begun"),
    row(Unit::Notify, [2, 2], LINE, "the tail of the ring is read and written"),
];

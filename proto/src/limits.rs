//! Every compile-time bound, with the reason for its value.

/// Bytes of a line: one cache line, the unit of a transfer between two cores.
pub const LINE: usize = 64;
/// Payload bytes of a line; the other eight are its status word.
pub const LINE_PAYLOAD: usize = LINE - 8;
/// Longest short message: 19 lines, less than the shortest message lane holds.
// spec: MSG-1, LIM-1
pub const EAGER_MAX: usize = 1024;
/// Longest record of a lane whose length stands in the status word (12 bits).
pub const RECORD_MAX: usize = (1 << 12) - 1;
/// Fewest lines of a lane: it must hold the longest short message and half of it a segment.
pub const LANE_LINES_MIN: usize = 24;
/// Most lines of a lane: the cursor's distance must stay far below the 16-bit sequence's range.
pub const LANE_LINES_MAX: usize = 1 << 14;
/// Entries of a port's translation table, and so capabilities a port can have handed out.
pub const TABLE_SLOTS: usize = 512;
/// Peers of one port, and ports of one job.
pub const PEERS_MAX: usize = 1024;
/// Operations with an answer outstanding per connection: bounds the pending table.
pub const PENDING_MAX: usize = 32;
/// Notifications of one initiator's commands that a target's program has not taken yet, on a
/// mediated connection.
pub const NOTES_UNREAD_MAX: u64 = 64;
/// Notifications a port keeps for its program.
pub const NOTIFICATIONS_MAX: usize = 1024;
/// Operations of one batch.
pub const BATCH_MAX: usize = 64;
/// Nanoseconds of the longest round trip that is believed: half of the range of a frame's 32-bit
/// stamp, 2.1 s. The other half means an echo that came before its stamp.
pub const ROUND_TRIP_MAX: u64 = (1 << 31) - 1;
/// Receives that may wait in a matcher: numbers of 32 bits allow this for twice as many buckets. A
/// matcher's owner may have memory for fewer.
// spec: LIM-1
pub const RECEIVES_MAX: u32 = 1 << 30;
/// Unexpected messages of a matcher; the bound has the reason of [`RECEIVES_MAX`].
pub const UNEXPECTED_MAX: u32 = 1 << 30;
/// Masks of receives that a matcher finds at once: MPI libraries have four, and one or two for
/// messages of their own.
pub const MASKS_MAX: usize = 8;

const _: () = assert!(EAGER_MAX <= RECORD_MAX, "the length of a message fits its status word");
const _: () = assert!(
    (EAGER_MAX + 8).div_ceil(LINE_PAYLOAD) <= LANE_LINES_MIN - (LANE_LINES_MIN / 4 - 1),
    "the longest message fits the shortest lane before its reader returns room"
);
const _: () = assert!(LANE_LINES_MAX <= 1 << 15, "a stale line never looks like the expected one");

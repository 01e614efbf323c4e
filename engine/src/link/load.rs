//! The load of a link.

/// The load of a link at this moment, which a program can ask for at each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkLoad {
    /// Frames with a payload that were sent since the link began, those sent again included.
    pub sent: u64,
    /// Frames that are under way, or ready to go.
    pub waiting: u32,
    /// Frames that may be under way at a time.
    pub window: u32,
    /// Bytes of a frame.
    pub frame: u32,
    /// Smoothed round trip in nanoseconds; 0 before the first answer.
    pub round_trip_ns: u64,
    /// The shortest round trip of late, likewise.
    pub shortest_ns: u64,
}

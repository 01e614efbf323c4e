//! The machine's own limits, as the shortest programs that two processes can run over a plain
//! shared mapping. Every operation of Ayre is compared with one of them, measured in the same run.

use super::case::Case;

mod atomic;
mod buffer;
mod lines;
mod memcpy;
mod pingpong;
mod put;
mod ring;
mod side;
mod slots;

pub(crate) mod realtime;
pub(crate) mod shared;
mod spin;

pub(crate) use side::Side;

/// Calls `$function::<WORDS>(..)` for the run-time number `$words`, which must be one of those
/// listed: with the length known, a line's payload is copied without a loop.
macro_rules! by_words {
    ($words:expr, [$($count:literal)*], $function:ident $arguments:tt) => {
        match $words {
            $($count => $function::<$count> $arguments,)*
            words => unreachable!("{words} words in a line"),
        }
    };
}
use by_words;

/// The limits, by what they limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// A message there and back, copied in and out, through the same lines each time.
    PingPong,
    /// Written into the target's memory, where the target polls the last word; there and back.
    Put,
    /// A stream of messages, each copied in and out.
    Ring,
    /// The same in both directions at once.
    RingTwoWay,
    /// One copy from private into shared memory, hot.
    Memcpy,
    /// The same by both ranks at once, each into memory of its own.
    MemcpyTwoWay,
    /// Fetch-and-add on a line that nobody else touches.
    Atomic,
    /// Fetch-and-add by both ranks on the same line.
    AtomicTwoWay,
}

impl RawKind {
    const ALL: [Self; 8] = [
        Self::PingPong,
        Self::Put,
        Self::Ring,
        Self::RingTwoWay,
        Self::Memcpy,
        Self::MemcpyTwoWay,
        Self::Atomic,
        Self::AtomicTwoWay,
    ];

    fn case(self) -> Box<dyn Case> {
        match self {
            Self::PingPong => Box::new(pingpong::PingPong::default()),
            Self::Put => Box::new(put::Put::default()),
            Self::Ring => Box::new(ring::Messages::one_way()),
            Self::RingTwoWay => Box::new(ring::Messages::two_way()),
            Self::Memcpy => Box::new(memcpy::Memcpy::one_way()),
            Self::MemcpyTwoWay => Box::new(memcpy::Memcpy::two_way()),
            Self::Atomic => Box::new(atomic::Atomic::one_way()),
            Self::AtomicTwoWay => Box::new(atomic::Atomic::two_way()),
        }
    }
}

/// One program for each limit, with its lasting sequence numbers: there must be one set only.
pub(crate) struct RawSet(Vec<Box<dyn Case>>);

impl RawSet {
    /// All limits, at their start.
    pub(crate) fn new() -> Self {
        Self(RawKind::ALL.map(RawKind::case).into())
    }

    /// The program for `kind`.
    pub(crate) fn get(&mut self, kind: RawKind) -> &mut dyn Case {
        &mut *self.0[kind as usize]
    }

    /// The limits in the order of the report.
    pub(crate) fn kinds() -> [RawKind; 8] {
        RawKind::ALL
    }
}

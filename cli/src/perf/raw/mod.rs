//! The machine's own limits, as the shortest programs that two processes can run over a plain
//! shared mapping. Every operation of Ayre is compared with one of them, measured in the same run.

use super::case::Case;

mod atomic;
mod crowd;
mod fan_in;
mod lines;
mod load;
mod locked;
mod memcpy;
mod pingpong;
mod put;
mod ring;
mod side;
mod sleep;
mod slots;
mod wake;

pub(crate) mod buffer;
pub(crate) mod realtime;
pub(crate) mod shared;
pub(crate) mod spin;

use std::cell::RefCell;
use std::rc::Rc;

use memcpy::{Memcpy, Way};
use ring::{Messages, Rings};
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
    /// One copy from shared into private memory, hot.
    MemcpyOut,
    /// One copy from shared to shared memory, hot.
    MemcpyShared,
    /// Fetch-and-add on a line that nobody else touches.
    Atomic,
    /// Fetch-and-add by both ranks on the same line.
    AtomicTwoWay,
    /// A look at a line that nobody writes.
    Load,
    /// A sleeping rank is woken, and answers.
    Wake,
    /// A token goes round.
    Token,
    /// All ranks meet.
    Barrier,
    /// A word from each rank to each.
    AllToAll,
    /// A stream of messages from all ranks but one to that one.
    FanIn,
    /// The same through one ring behind a lock.
    Locked,
}

impl RawKind {
    const ALL: [Self; 17] = [
        Self::PingPong,
        Self::Put,
        Self::Ring,
        Self::RingTwoWay,
        Self::Memcpy,
        Self::MemcpyTwoWay,
        Self::MemcpyOut,
        Self::MemcpyShared,
        Self::Atomic,
        Self::AtomicTwoWay,
        Self::Load,
        Self::Wake,
        Self::Token,
        Self::Barrier,
        Self::AllToAll,
        Self::FanIn,
        Self::Locked,
    ];

    fn case(self, ranks: usize, rings: &Rc<RefCell<Rings>>) -> Box<dyn Case> {
        match self {
            Self::PingPong => Box::new(pingpong::PingPong::default()),
            Self::Put => Box::new(put::Put::default()),
            Self::Ring => Box::new(Messages::one_way(rings)),
            Self::RingTwoWay => Box::new(Messages::two_way(rings)),
            Self::Memcpy => Box::new(Memcpy::new(Way::In)),
            Self::MemcpyTwoWay => Box::new(Memcpy::new(Way::InByBoth)),
            Self::MemcpyOut => Box::new(Memcpy::new(Way::Out)),
            Self::MemcpyShared => Box::new(Memcpy::new(Way::Across)),
            Self::Atomic => Box::new(atomic::Atomic::one_way()),
            Self::AtomicTwoWay => Box::new(atomic::Atomic::two_way()),
            Self::Load => Box::new(load::Load),
            Self::Wake => Box::new(wake::Wake::default()),
            Self::Token => Box::new(wake::Token::new(ranks)),
            Self::Barrier => Box::new(crowd::Barrier),
            Self::AllToAll => Box::new(crowd::AllToAll::new(ranks)),
            Self::FanIn => Box::new(fan_in::FanIn::new(ranks)),
            Self::Locked => Box::new(locked::Locked::new(ranks)),
        }
    }
}

/// One program for each limit, with its lasting sequence numbers: there must be one set only.
pub(crate) struct RawSet(Vec<Box<dyn Case>>);

impl RawSet {
    /// All limits between so many ranks, at their start.
    pub(crate) fn new(ranks: usize) -> Self {
        let rings = Rc::default();
        Self(RawKind::ALL.map(|kind| kind.case(ranks, &rings)).into())
    }

    /// The program for `kind`.
    pub(crate) fn get(&mut self, kind: RawKind) -> &mut dyn Case {
        &mut *self.0[kind as usize]
    }
}

//! The machine's own limits, as the shortest programs that two processes can run over a plain
//! shared mapping. Every operation of Ayre is compared with one of them, measured in the same run.

use super::case::{Case, RawKind};

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
mod slots;
mod wake;

use std::cell::RefCell;
use std::rc::Rc;

use memcpy::{Memcpy, Way};
use ring::{Messages, Rings};

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

/// One program for each limit, with its lasting sequence numbers: there must be one set only.
pub(crate) struct RawSet(Vec<Box<dyn Case>>);

impl RawSet {
    /// All limits between this number of ranks, at their start.
    pub(crate) fn new(ranks: usize) -> Self {
        let rings = Rc::default();
        Self(RawKind::ALL.map(|kind| case(kind, ranks, &rings)).into())
    }

    /// The program for `kind`.
    pub(crate) fn get(&mut self, kind: RawKind) -> &mut dyn Case {
        &mut *self.0[kind as usize]
    }
}

fn case(kind: RawKind, ranks: usize, rings: &Rc<RefCell<Rings>>) -> Box<dyn Case> {
    match kind {
        RawKind::PingPong => Box::new(pingpong::PingPong::default()),
        RawKind::Put => Box::new(put::Put::default()),
        RawKind::Ring => Box::new(Messages::one_way(rings)),
        RawKind::RingTwoWay => Box::new(Messages::two_way(rings)),
        RawKind::Memcpy => Box::new(Memcpy::new(Way::In)),
        RawKind::MemcpyTwoWay => Box::new(Memcpy::new(Way::InByBoth)),
        RawKind::MemcpyOut => Box::new(Memcpy::new(Way::Out)),
        RawKind::MemcpyShared => Box::new(Memcpy::new(Way::Across)),
        RawKind::Atomic => Box::new(atomic::Atomic::one_way()),
        RawKind::AtomicTwoWay => Box::new(atomic::Atomic::two_way()),
        RawKind::Load => Box::new(load::Load),
        RawKind::Wake => Box::new(wake::Wake::default()),
        RawKind::Token => Box::new(wake::Token::new(ranks)),
        RawKind::Barrier => Box::new(crowd::Barrier),
        RawKind::AllToAll => Box::new(crowd::AllToAll::new(ranks)),
        RawKind::FanIn => Box::new(fan_in::FanIn::new(ranks)),
        RawKind::Locked => Box::new(locked::Locked::new(ranks)),
    }
}

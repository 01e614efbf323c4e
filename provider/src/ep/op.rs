//! An operation under way, as the engine keeps it for us and gives it back with its end.

use crate::abi::{ATOMIC, MSG, READ, RECV, RMA, SEND, TAGGED, WRITE};
use ayre::endpoint::raw::Context;

/// All that is told of an operation besides what the engine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    /// The program's.
    pub(super) context: usize,
    /// Where a receive's memory begins.
    pub(super) buf: usize,
    pub(super) kind: Kind,
    pub(super) is_told: bool,
    /// It receives many messages.
    pub(super) is_many: bool,
}

/// The kind of an operation: its place among [`FLAGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(u8);

/// Of the completion of each kind.
const FLAGS: [u64; 8] = [
    MSG | SEND,
    TAGGED | SEND,
    MSG | RECV,
    TAGGED | RECV,
    RMA | READ,
    RMA | WRITE,
    ATOMIC | READ,
    ATOMIC | WRITE,
];

impl Kind {
    pub(super) const READ: Self = Self(4);
    pub(super) const WRITE: Self = Self(5);
    pub(super) const FETCH: Self = Self(6);
    pub(super) const UPDATE: Self = Self(7);

    #[inline(always)]
    pub(super) const fn send(is_tagged: bool) -> Self {
        Self(is_tagged as u8)
    }

    #[inline(always)]
    pub(super) const fn receive(is_tagged: bool) -> Self {
        Self(2 + is_tagged as u8)
    }

    #[inline(always)]
    pub(super) const fn flags(self) -> u64 {
        FLAGS[self.0 as usize % FLAGS.len()]
    }
}

// The engine's context, from the lowest bit: the program's 64, three of the kind, whether it is
// told, whether it is of many messages, and 59 of the address. No more than 57 bits of an address
// differ between places in a program's memory.
const KIND: u32 = 64;
const TOLD: u32 = KIND + 3;
const MANY: u32 = TOLD + 1;
const BUF: u32 = MANY + 1;

impl From<Op> for Context {
    #[inline(always)]
    fn from(op: Op) -> Self {
        let Op { context, buf, kind, is_told, is_many } = op;
        let flags =
            Self::from(kind.0) << KIND | Self::from(is_told) << TOLD | Self::from(is_many) << MANY;
        context as Self | flags | (buf as Self) << BUF
    }
}

impl From<Context> for Op {
    #[inline(always)]
    fn from(context: Context) -> Self {
        Self {
            context: context as usize,
            buf: (context >> BUF) as usize,
            kind: Kind((context >> KIND) as u8 & 7),
            is_told: context >> TOLD & 1 != 0,
            is_many: context >> MANY & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_comes_back_from_the_engine_as_it_was() {
        for kind in 0..FLAGS.len() as u8 {
            for (is_told, is_many) in [(false, false), (false, true), (true, false), (true, true)] {
                for (context, buf) in [(0, 0), (usize::MAX, (1 << 57) - 8), (1, 1)] {
                    let op = Op { context, buf, kind: Kind(kind), is_told, is_many };
                    assert_eq!(Op::from(Context::from(op)), op);
                }
            }
        }
    }

    #[test]
    fn kinds_have_their_flags() {
        assert_eq!(Kind::send(true).flags(), TAGGED | SEND);
        assert_eq!(Kind::receive(false).flags(), MSG | RECV);
        assert_eq!(Kind::READ.flags(), RMA | READ);
        assert_eq!(Kind::WRITE.flags(), RMA | WRITE);
        assert_eq!(Kind::FETCH.flags(), ATOMIC | READ);
        assert_eq!(Kind::UPDATE.flags(), ATOMIC | WRITE);
    }
}

//! Halves of the group swap what they have, halves of halves before.
//!
//! ```text
//!   level 0    0-1  2-3  4-5       of 6 members: who has no other half waits for the next level
//!   level 1    (01)-(23)  (45)
//!   level 2    ((01)(23))-(45)     4 and 5 send twice, as the left half is twice theirs
//! ```
use super::{Action, Blocks, Place, Step};

/// A machine of one member.
#[derive(Clone, Debug)]
pub struct Exchange {
    place: Place,
    /// Blocks are of members, and collected; else everybody's are combined.
    collects: bool,
    level: u32,
    /// Sends of this level.
    turn: usize,
}

impl Exchange {
    /// The plan of a member: either each member has its own blocks and all are collected, or all
    /// have the same blocks, which are combined.
    pub const fn new(place: Place, collects: bool) -> Self {
        Self { place, collects, level: 0, turn: 0 }
    }

    fn blocks(&self, first: usize, end: usize) -> Blocks {
        if self.collects {
            Blocks { first, count: end - first }
        } else {
            Blocks::all(self.place.members)
        }
    }

    fn action(&self, otherwise: Action) -> Action {
        if self.collects { Action::Place } else { otherwise }
    }
}

impl Iterator for Exchange {
    type Item = Step;

    // spec: COLL-6, COLL-7
    fn next(&mut self) -> Option<Step> {
        let Place { member, members } = self.place;
        loop {
            let width = 1 << self.level;
            if width >= members {
                return None;
            }
            let low = member & !(2 * width - 1);
            let middle = low + width;
            let high = members.min(low + 2 * width);
            if middle >= members {
                self.level += 1;
                continue;
            }
            let right = high - middle;
            let turn = self.turn;
            self.turn += 1;
            // The right half is the smaller one: each of it has one partner or more.
            let (to, own) = if member < middle {
                let to = member - low + middle;
                ((turn == 0 && to < high).then_some(to), self.blocks(low, middle))
            } else {
                let to = member - middle + low + turn * right;
                ((to < middle).then_some(to), self.blocks(middle, high))
            };
            if let Some(to) = to {
                return Some(Step::Send { to, blocks: own });
            }
            (self.level, self.turn) = (self.level + 1, 0);
            return Some(if member < middle {
                let own = member - low;
                let from = middle + if own < right { own } else { own % right };
                let action = self.action(Action::FoldAfter);
                Step::Receive { from, blocks: self.blocks(middle, high), action }
            } else {
                let from = member - middle + low;
                let action = self.action(Action::FoldBefore);
                Step::Receive { from, blocks: self.blocks(low, middle), action }
            });
        }
    }
}

/// Everybody hears of everybody: in each round from a member twice as far.
#[derive(Clone, Debug)]
pub struct Rounds {
    place: Place,
    distance: usize,
    has_sent: bool,
}

impl Rounds {
    /// The machine of a member.
    pub const fn new(place: Place) -> Self {
        Self { place, distance: 1, has_sent: false }
    }
}

impl Iterator for Rounds {
    type Item = Step;

    // spec: COLL-6
    fn next(&mut self) -> Option<Step> {
        let Self { place, distance, .. } = *self;
        if distance >= place.members {
            return None;
        }
        self.has_sent = !self.has_sent;
        if self.has_sent {
            return Some(Step::Send { to: place.on(distance), blocks: Blocks::NONE });
        }
        self.distance *= 2;
        let from = place.back(distance);
        Some(Step::Receive { from, blocks: Blocks::NONE, action: Action::Place })
    }
}

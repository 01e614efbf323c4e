//! Plans along neighbours: round the ring, and along the chain from a root.
use super::{Action, Blocks, Place, Step};

/// Each sends a block to the next one and takes one from the one before, n - 1 times.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    place: Place,
    /// Blocks are combined on their way, and each ends at its own member; else they are collected.
    combines: bool,
    turn: usize,
    has_sent: bool,
}

impl Ring {
    pub(super) const fn new(place: Place, combines: bool) -> Self {
        Self { place, combines, turn: 0, has_sent: false }
    }
}

impl Iterator for Ring {
    type Item = Step;

    // spec: COLL-6
    fn next(&mut self) -> Option<Step> {
        let Self { place, combines, turn, .. } = *self;
        if turn + 1 >= place.members {
            return None;
        }
        // A block that is combined begins behind its own member.
        let back = turn + usize::from(combines);
        self.has_sent = !self.has_sent;
        if self.has_sent {
            return Some(Step::Send { to: place.on(1), blocks: Blocks::one(place.back(back)) });
        }
        self.turn += 1;
        let action = if combines { Action::FoldBefore } else { Action::Place };
        let blocks = Blocks::one(place.back(back + 1));
        Some(Step::Receive { from: place.back(1), blocks, action })
    }
}

/// Each member passes blocks to the next one, from the root to the last: all hops work at once.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The place, counted from the root.
    place: Place,
    root: usize,
    /// Whether arriving blocks are combined with those of the member, all at once. Otherwise they
    /// are passed on one by one.
    combines: bool,
    block: usize,
    has_received: bool,
}

impl Chain {
    pub(super) const fn new(place: Place, root: usize, combines: bool) -> Self {
        let place = place.seen_from(root);
        Self { place, root, combines, block: 0, has_received: false }
    }
}

impl Iterator for Chain {
    type Item = Step;

    // spec: COLL-6
    fn next(&mut self) -> Option<Step> {
        let Place { member, members } = self.place;
        loop {
            let (block, pieces) = (self.block, if self.combines { 1 } else { members });
            if block == pieces {
                return None;
            }
            let blocks = if self.combines { Blocks::all(members) } else { Blocks::one(block) };
            self.has_received = !self.has_received;
            if self.has_received {
                if member > 0 {
                    let from = (member - 1 + self.root) % members;
                    let action = if self.combines { Action::FoldBefore } else { Action::Place };
                    return Some(Step::Receive { from, blocks, action });
                }
                continue;
            }
            self.block += 1;
            if member + 1 < members {
                return Some(Step::Send { to: (member + 1 + self.root) % members, blocks });
            }
        }
    }
}

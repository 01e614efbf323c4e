//! One member and all others: its turn with each of them, in their order.
use super::{Action, Blocks, Place, Step};

/// The data that goes between the centre and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// All blocks: inwards they are combined in the order of the members.
    Vector,
    /// Each one's own block.
    Own,
    /// The news.
    Nothing,
}

/// A machine of one member.
#[derive(Clone, Debug)]
pub(super) struct Star {
    place: Place,
    root: usize,
    load: Load,
    is_inwards: bool,
    /// The member that is next.
    turn: usize,
}

impl Star {
    pub(super) const fn inwards(place: Place, root: usize, load: Load) -> Self {
        Self { place, root, load, is_inwards: true, turn: 0 }
    }

    pub(super) const fn outwards(place: Place, root: usize, load: Load) -> Self {
        Self { place, root, load, is_inwards: false, turn: 0 }
    }

    const fn blocks(&self, member: usize) -> Blocks {
        match self.load {
            Load::Nothing => Blocks::NONE,
            Load::Own => Blocks::one(member),
            Load::Vector => Blocks::all(self.place.members),
        }
    }

    fn action(&self) -> Action {
        let combines = self.is_inwards && self.load == Load::Vector;
        if combines { Action::Push } else { Action::Place }
    }
}

impl Iterator for Star {
    type Item = Step;

    // spec: COLL-6, COLL-7
    fn next(&mut self) -> Option<Step> {
        let Self { place: Place { member, members }, root, .. } = *self;
        if member != root {
            let is_first = self.turn == 0;
            self.turn = 1;
            let blocks = self.blocks(member);
            return is_first.then_some(match self.is_inwards {
                true => Step::Send { to: root, blocks },
                false => Step::Receive { from: root, blocks, action: Action::Place },
            });
        }
        debug_assert!(self.turn <= members, "each has one turn");
        loop {
            let other = self.turn;
            if other == members {
                return None;
            }
            self.turn += 1;
            let (blocks, action) = (self.blocks(other), self.action());
            return Some(match (other == root, self.is_inwards) {
                (false, true) => Step::Receive { from: other, blocks, action },
                (false, false) => Step::Send { to: other, blocks },
                (true, _) if action == Action::Push => Step::PushOwn { blocks },
                (true, _) => continue,
            });
        }
    }
}

/// One message from a member to another, of all blocks.
#[derive(Clone, Debug)]
pub(super) struct Forward {
    pub(super) place: Place,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) is_over: bool,
}

impl Iterator for Forward {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let Self { place, from, to, is_over } = *self;
        self.is_over = true;
        let blocks = Blocks::all(place.members);
        match place.member {
            _ if is_over || from == to => None,
            member if member == from => Some(Step::Send { to, blocks }),
            member if member == to => Some(Step::Receive { from, blocks, action: Action::Place }),
            _ => None,
        }
    }
}

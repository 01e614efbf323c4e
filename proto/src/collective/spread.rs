//! Everybody to everybody: each first sends to all others, then takes what they have sent.
use super::{Action, Blocks, Place, Step};

/// The data that each member has for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// A block for each one.
    Each,
    /// Each member sends the same block to all.
    Own,
    /// Each member sends a different block to each other one, which combines them.
    Combined,
}

/// A machine of one member.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    place: Place,
    load: Load,
    /// Steps that were taken: sends, then receives.
    turn: usize,
}

impl Spread {
    pub(super) const fn new(place: Place, load: Load) -> Self {
        Self { place, load, turn: 0 }
    }
}

impl Iterator for Spread {
    type Item = Step;

    // spec: COLL-6, COLL-7
    fn next(&mut self) -> Option<Step> {
        let Self { place, load, turn } = *self;
        let others = place.members - 1;
        self.turn += 1;
        if turn < others {
            // Each begins with its neighbour, so that they do not all send to the same one.
            let to = place.on(turn + 1);
            let block = if load == Load::Own { place.member } else { to };
            return Some(Step::Send { to, blocks: Blocks::one(block) });
        }
        let turn = turn - others;
        let own = Blocks::one(place.member);
        if load == Load::Combined {
            return (turn < place.members).then_some(match turn == place.member {
                true => Step::PushOwn { blocks: own },
                false => Step::Receive { from: turn, blocks: own, action: Action::Push },
            });
        }
        (turn < others).then(|| {
            let from = place.back(turn + 1);
            Step::Receive { from, blocks: Blocks::one(from), action: Action::Place }
        })
    }
}

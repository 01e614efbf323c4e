//! A binomial tree, counted from its root.
//!
//! ```text
//!        0            each member is the first of those below it: of 2^k, where its number ends in
//!      / | \          k zeros
//!     4  2  1
//!    /|  |
//!   6 5  3            sent upwards to the left, downwards to the right
//!   |
//!   7
//! ```
use super::{Action, Blocks, Place, Step};

/// The data that goes along the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// All blocks, everywhere: upwards they are combined.
    Vector,
    /// The blocks of those below.
    Subtree,
    /// The news.
    Nothing,
}

/// A machine of one member, towards the root or from it.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The place, counted from the root.
    place: Place,
    root: usize,
    load: Load,
    is_up: bool,
    /// The distance of the next child; of the parent, where no child is left.
    distance: usize,
    is_over: bool,
}

impl Tree {
    pub(super) fn up(place: Place, root: usize, load: Load) -> Self {
        let place = place.seen_from(root);
        Self { place, root, load, is_up: true, distance: 1, is_over: false }
    }

    pub(super) fn down(place: Place, root: usize, load: Load) -> Self {
        let place = place.seen_from(root);
        // The root's children reach as far as there are members.
        let distance = Self::reach(place);
        Self { place, root, load, is_up: false, distance, is_over: false }
    }

    /// The distance of the parent: a power of two. The root has a distance beyond all members.
    const fn reach(place: Place) -> usize {
        match place.member {
            0 => place.members.next_power_of_two(),
            member => member & member.wrapping_neg(),
        }
    }

    const fn absolute(&self, member: usize) -> usize {
        (member + self.root) % self.place.members
    }

    /// The blocks that go between a member and its parent at this distance.
    fn blocks(&self, member: usize, distance: usize) -> Blocks {
        match self.load {
            Load::Nothing => Blocks::NONE,
            Load::Vector => Blocks::all(self.place.members),
            Load::Subtree => {
                debug_assert!(distance.is_power_of_two(), "a tree has halves of halves");
                let count = distance.min(self.place.members - member);
                Blocks { first: self.absolute(member), count }
            }
        }
    }

    fn send(&self, to: usize, blocks: Blocks) -> Step {
        Step::Send { to: self.absolute(to), blocks }
    }

    fn receive(&self, from: usize, blocks: Blocks) -> Step {
        let combines = self.is_up && self.load == Load::Vector;
        let action = if combines { Action::FoldAfter } else { Action::Place };
        Step::Receive { from: self.absolute(from), blocks, action }
    }

    // spec: COLL-6, COLL-7
    fn next_up(&mut self) -> Option<Step> {
        let Place { member, members } = self.place;
        let reach = Self::reach(self.place);
        let distance = self.distance;
        self.distance *= 2;
        if distance < reach && member + distance < members {
            return Some(self.receive(member + distance, self.blocks(member + distance, distance)));
        }
        self.is_over = true;
        (member > 0).then(|| self.send(member - reach, self.blocks(member, reach)))
    }

    // spec: COLL-6
    fn next_down(&mut self) -> Option<Step> {
        let Place { member, members } = self.place;
        let reach = Self::reach(self.place);
        let distance = self.distance;
        self.distance /= 2;
        if distance == reach && member > 0 {
            return Some(self.receive(member - reach, self.blocks(member, reach)));
        }
        // The root has no parent, and children may be missing at the far end.
        let mut distance = distance.min(reach / 2);
        while distance > 0 && member + distance >= members {
            distance /= 2;
        }
        self.distance = distance / 2;
        self.is_over = distance == 0;
        (distance > 0)
            .then(|| self.send(member + distance, self.blocks(member + distance, distance)))
    }
}

/// The blocks that go through a member on their way to the root of a tree, or from it.
pub fn subtree(place: Place, root: usize) -> Blocks {
    let from_root = place.seen_from(root);
    let count = Tree::reach(from_root).min(place.members - from_root.member);
    Blocks { first: place.member, count }
}

impl Iterator for Tree {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        match (self.is_over, self.is_up) {
            (true, _) => None,
            (_, true) => self.next_up(),
            _ => self.next_down(),
        }
    }
}

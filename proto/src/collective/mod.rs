//! Collectives: the sends and receives of each member of a group, and their order.
//!
//! ```text
//!   Plan              steps of one member, one behind the other, of one or two phases
//!    ├─ Rounds        everybody hears of everybody in log n rounds    barrier
//!    ├─ Exchange      halves of the group swap what they have         allreduce, scan, allgather
//!    ├─ Tree, Star    towards one member, or from it                  reduce, broadcast, ...
//!    ├─ Spread, Ring  everybody to everybody, or to the neighbour     alltoall, allgather, ...
//!    └─ Chain         one behind the other, block by block            broadcast, scan
//! ```
//!
//! [`forecast`] runs all members' plans in virtual time, to find the schedule that does without
//! links which others load.
//!
//! A plan is a machine of a few counters. It knows the number of members, its own place and the
//! *root*; bytes and time are its owner's. Sends wait for nobody and receives come in the order of
//! the plan. So the joint result of all plans does not depend on their speed.
//!
//! Sums of numbers that round depend on where the brackets are. Every plan that reduces puts them
//! where [`bracket`] says, whatever the schedule, except [`Ring`](Schedule::Ring).
pub mod bracket;
pub mod call;
mod exchange;
pub mod forecast;
mod plan;
pub mod portion;
mod ring;
mod spread;
mod star;
mod tree;

pub use exchange::{Exchange, Rounds};
pub use plan::{Plan, Task};
pub use tree::subtree;

/// Members of a group.
// spec: COLL-1
pub const MEMBERS_MAX: usize = 1024;

/// The operations that a group does together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Collective {
    /// Nobody goes on before all have come.
    Barrier = 1,
    /// The root's vector is everybody's.
    Broadcast = 2,
    /// All vectors, combined, are the root's.
    Reduce = 3,
    /// All vectors, combined, are everybody's.
    Allreduce = 4,
    /// Everybody has a block for the root.
    Gather = 5,
    /// The root has a block for everybody.
    Scatter = 6,
    /// Everybody has a block for everybody.
    Allgather = 7,
    /// Everybody has a block for each one.
    Alltoall = 8,
    /// Each has the vectors of those up to itself, combined.
    Scan = 9,
    /// Each has a block of all vectors, combined.
    ReduceScatter = 10,
}

impl Collective {
    /// Each once, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Gather,
        Self::Scatter,
        Self::Allgather,
        Self::Alltoall,
        Self::Scan,
        Self::ReduceScatter,
    ];

    /// Whether it has a root.
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Whether all members have a vector of the same number of elements.
    pub const fn has_vector(self) -> bool {
        self.combines() || matches!(self, Self::Broadcast)
    }

    /// Whether it combines numbers.
    pub const fn combines(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::Scan | Self::ReduceScatter)
    }
}

/// Bytes of a vector from which all links, or processors, are worth being used at once.
const LONG: usize = 16 << 10;

/// A way to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Schedule {
    /// One member has to do with all others: two hops, and all the work is one's.
    Star = 1,
    /// Along a binomial tree: few messages, twice as many hops as the tree is high.
    Tree = 2,
    /// In rounds, with partners twice as far away each time: few hops, and all members send in
    /// each.
    Doubling = 3,
    /// Everybody to everybody: one hop, and each block goes the shortest way.
    Spread = 4,
    /// Along neighbours, block by block: each member communicates with two others only.
    Ring = 5,
}

impl Schedule {
    /// Each once, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Star, Self::Tree, Self::Doubling, Self::Spread, Self::Ring];

    /// Whether the schedule can do this collective.
    // spec: COLL-6
    pub const fn can(self, collective: Collective) -> bool {
        use Collective as C;
        match self {
            Self::Star => matches!(
                collective,
                C::Barrier | C::Broadcast | C::Reduce | C::Allreduce | C::Gather | C::Scatter
            ),
            Self::Tree => {
                !matches!(collective, C::Allgather | C::Alltoall | C::Scan | C::ReduceScatter)
            }
            Self::Doubling => {
                matches!(collective, C::Barrier | C::Allreduce | C::Allgather | C::Scan)
            }
            Self::Spread => {
                matches!(collective, C::Allreduce | C::Allgather | C::Alltoall | C::ReduceScatter)
            }
            Self::Ring => matches!(
                collective,
                C::Broadcast | C::Allreduce | C::Allgather | C::Scan | C::ReduceScatter
            ),
        }
    }

    /// The usual schedule of a collective for a number of members, where all links are alike.
    /// `bytes` are those of the vector, or of each block.
    // spec: COLL-6
    pub const fn usual(collective: Collective, members: usize, bytes: usize) -> Self {
        use Collective as C;
        let is_long = bytes >= LONG;
        match collective {
            C::Barrier => Self::Doubling,
            C::Broadcast | C::Gather | C::Scatter if is_long => Self::Star,
            C::Broadcast | C::Reduce | C::Gather | C::Scatter => Self::Tree,
            C::Allreduce if is_long && members > 2 => Self::Spread,
            C::Allgather if is_long => Self::Spread,
            C::Allreduce | C::Allgather | C::Scan => Self::Doubling,
            C::Alltoall | C::ReduceScatter => Self::Spread,
        }
    }

    /// Whether its brackets are those of the others: else it is for what does not round.
    // spec: COLL-7
    pub const fn is_exact_only(self, collective: Collective) -> bool {
        matches!(self, Self::Ring) && collective.combines()
    }
}

const _: () = {
    let mut at = 0;
    while at < Collective::ALL.len() {
        let collective = Collective::ALL[at];
        assert!(collective as usize == at + 1, "each once, in the order of their codes");
        let (mut schedules, mut by) = (0, 0);
        while by < Schedule::ALL.len() {
            assert!(Schedule::ALL[by] as usize == by + 1, "each once, in the order of the codes");
            schedules += Schedule::ALL[by].can(collective) as usize;
            by += 1;
        }
        assert!(schedules > 0, "each collective has a schedule");
        let mut members = 1;
        while members <= 4 {
            let short = Schedule::usual(collective, members, 0);
            let long = Schedule::usual(collective, members, LONG);
            let is_done = short.can(collective) && long.can(collective);
            assert!(is_done, "the usual schedule can do it");
            members += 1;
        }
        at += 1;
    }
};

/// Consecutive blocks, which go on with the first one after the last one. Each member has one
/// block; a vector that is cut into blocks has one part for each member, all of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// The first one's number.
    pub first: usize,
    /// The number of blocks.
    pub count: usize,
}

impl Blocks {
    /// No bytes, but the news.
    pub const NONE: Self = Self { first: 0, count: 0 };

    /// One of them.
    pub const fn one(block: usize) -> Self {
        Self { first: block, count: 1 }
    }

    /// All blocks of a group of `members` members.
    pub const fn all(members: usize) -> Self {
        Self { first: 0, count: members }
    }
}

/// The use of the blocks that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// They are the new ones.
    Place,
    /// They are combined with the member's blocks; they are from members after this one.
    FoldAfter,
    /// They are combined with the member's blocks; they are from members before this one.
    FoldBefore,
    /// They are one member's: combined with those of members before it when the [`bracket`] closes.
    Push,
}

/// The next step of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Sends blocks as they stand.
    Send {
        /// The receiving member.
        to: usize,
        /// These.
        blocks: Blocks,
    },
    /// Waits for blocks.
    Receive {
        /// The sending member.
        from: usize,
        /// These.
        blocks: Blocks,
        /// The use of the blocks.
        action: Action,
    },
    /// Its own ones have their turn among those that are [pushed](Action::Push).
    PushOwn {
        /// These.
        blocks: Blocks,
    },
}

/// The place of a member in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its number.
    pub member: usize,
    /// Members.
    pub members: usize,
}

impl Place {
    /// The member `distance` places further on, round the last one at most once.
    const fn on(self, distance: usize) -> usize {
        debug_assert!(distance <= self.members, "once round at most");
        self.once_round(self.member + distance)
    }

    /// The member `distance` places back, round the first one at most once.
    const fn back(self, distance: usize) -> usize {
        debug_assert!(distance <= self.members, "once round at most");
        self.once_round(self.member + self.members - distance)
    }

    /// Cheaper than a division.
    const fn once_round(self, member: usize) -> usize {
        let round = if member >= self.members { member - self.members } else { member };
        debug_assert!(round < self.members, "it leads to a member");
        round
    }

    /// Invariants of each step of this member.
    #[cfg(debug_assertions)]
    fn check(self, step: &Step) {
        let (other, blocks) = match *step {
            Step::Send { to, blocks } => (Some(to), blocks),
            Step::Receive { from, blocks, .. } => (Some(from), blocks),
            Step::PushOwn { blocks } => (None, blocks),
        };
        debug_assert!(other.is_none_or(|other| other < self.members), "the other is a member");
        debug_assert!(other != Some(self.member), "nobody has to do with itself");
        debug_assert!(blocks.count <= self.members, "no block is named twice");
        debug_assert!(blocks.first < self.members, "a block is a member's");
    }

    /// This place, counted from a root.
    const fn seen_from(self, root: usize) -> Self {
        Self { member: self.back(root), members: self.members }
    }
}

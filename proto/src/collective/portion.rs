//! Portions: what the messages of a collective say before the bytes.
use super::{Collective, MEMBERS_MAX, Schedule, Task};
use crate::combine::{Combine, Number};
use crate::lane::Malformed;

/// The tag of a portion, and the id of a long one.
// spec: COLL-12
pub const PORTION: u32 = 10;
const TAKEN: u32 = 11;
const GIVEN_UP: u32 = 12;
/// The tags of all that members say.
pub const TAGS: core::ops::RangeInclusive<u32> = PORTION..=GIVEN_UP;

/// A message between members of a group other than a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Portions of all collectives that the sender has taken, modulo 2^32.
    // spec: COLL-11
    Taken(u32),
    /// The sender gives the group up, from this collective on.
    // spec: COLL-9
    GivenUp(u32),
}

impl Notice {
    /// Its tag and its bytes, of a group.
    pub fn encode(self, group: u32) -> (u32, [u8; 16]) {
        let (tag, word) = match self {
            Self::Taken(taken) => (TAKEN, taken),
            Self::GivenUp(since) => (GIVEN_UP, since),
        };
        (tag, (u128::from(group) | u128::from(word) << 64).to_le_bytes())
    }

    /// The group, and what is said of it: total.
    pub fn parse(tag: u32, bytes: &[u8]) -> Result<(u32, Self), Malformed> {
        let ([group, word], []) = bytes.as_chunks::<8>() else { return Err(Malformed) };
        let number =
            |word: &[u8; 8]| u32::try_from(u64::from_le_bytes(*word)).map_err(|_| Malformed);
        let (group, word) = (number(group)?, number(word)?);
        match tag {
            TAKEN => Ok((group, Self::Taken(word))),
            GIVEN_UP => Ok((group, Self::GivenUp(word))),
            _ => Err(Malformed),
        }
    }
}

/// Bytes of a header.
pub const HEADER: usize = 16;

/// The header of a portion.
// spec: COLL-12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The group's.
    pub group: u32,
    /// The collective's, counted in its group from 1, round the last.
    pub sequence: u32,
    /// The digest of the call that the sender has made: [`signature`].
    pub signature: u32,
    /// Portions of this group that the sender has taken from the receiver in all, round the last.
    pub taken: u32,
}

impl Header {
    /// Its bytes.
    #[inline]
    pub fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let words = [self.group, self.sequence, self.signature, self.taken];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The header, and what comes behind.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(Malformed)?;
        let (words, _) = header.as_chunks::<4>();
        let word = |at: usize| u32::from_le_bytes(words[at]);
        let [group, sequence, signature, taken] = [word(0), word(1), word(2), word(3)];
        Ok((Self { group, sequence, signature, taken }, rest))
    }
}

const _: () = assert!(MEMBERS_MAX <= 1 << 16, "a root has sixteen bits");

/// The call in one word.
// spec: COLL-13
#[inline]
pub const fn what(task: Task, operation: Option<(Combine, Number)>) -> u64 {
    let (combine, number) = match operation {
        Some((combine, number)) => (combine.code(), number.code()),
        None => (0, 0),
    };
    let root = (task.root as u16).to_le_bytes();
    let (collective, schedule) = (task.collective as u8, task.schedule as u8);
    u64::from_le_bytes([collective, schedule, combine, number, root[0], root[1], 0, 0])
}

/// A digest of a call: of the operation (collective, schedule, root, numbers and combination) and
/// of the number of bytes. Different calls rarely share it.
// spec: COLL-13
#[inline]
pub const fn signature(what: u64, bytes: u64) -> u32 {
    let what = what.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = what ^ bytes.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(32);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) as u32
}

/// The most bytes of a portion, which a landing takes as one piece.
// spec: COLL-12
pub const PORTION_MAX: usize = 1 << 15;

const _: () = {
    let least = PORTION_MAX * CHUNK as usize / MEMBERS_MAX;
    assert!(least >= 64, "a chunk has some bytes of each block");
    assert!(PORTION_MAX.is_multiple_of(16), "no number is cut in two");
};

/// The bytes of a vector, or of each block, that a group of `members` members does at a time.
/// With them the portions from one member to another fit the window before the first is
/// acknowledged.
// spec: COLL-11, COLL-15
pub const fn chunk_of(task: Task, members: usize) -> usize {
    use Collective as C;
    let is_whole =
        matches!(task.collective, C::Barrier | C::Broadcast | C::Reduce | C::Allreduce | C::Scan);
    match (is_whole, task.schedule) {
        (false, _) => (PORTION_MAX * CHUNK as usize / members) & !63,
        (true, Schedule::Spread | Schedule::Ring) => PORTION_MAX * members,
        (true, _) => PORTION_MAX,
    }
}

/// Portions on their way between two members, in one direction: what a member may send and the
/// other one has not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    sent: u32,
    /// Number of portions that the other member has taken, as far as is known.
    theirs: u32,
    taken: u32,
    /// The count that was reported last.
    told: u32,
    /// Portions that have come and were not taken.
    waiting: u32,
}

/// Portions that a member may send before the other one has taken the first, of its oldest
/// collective. Half of them where it has an older one under way, so that that finds room.
// spec: COLL-11
pub const WINDOW: u32 = 64;
/// Portions of a chunk from one member to another at most, so that the oldest never waits for room.
// spec: COLL-15
pub const CHUNK: u32 = WINDOW / 2;

impl Window {
    /// Invariants that hold between two steps, for all input of the other member.
    #[inline]
    const fn check(&self) {
        let under_way = self.sent.wrapping_sub(self.theirs);
        debug_assert!(under_way <= WINDOW, "no more is under way than a window");
        debug_assert!(self.waiting <= WINDOW, "no more waits than a window");
    }

    /// Whether a portion may be sent, of the oldest collective that is under way here or another.
    #[inline]
    pub const fn is_open(&self, is_oldest: bool) -> bool {
        let room = if is_oldest { WINDOW } else { WINDOW - CHUNK };
        self.sent.wrapping_sub(self.theirs) < room
    }

    /// Portions that were taken in all: the count that the next portion carries.
    #[inline]
    pub const fn taken(&self) -> u32 {
        self.taken
    }

    /// Portions that have come and were not taken.
    #[inline]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// A portion, or a notice alone, is sent; returns the count that it carries.
    #[inline]
    pub const fn send(&mut self, is_portion: bool) -> u32 {
        self.sent = self.sent.wrapping_add(is_portion as u32);
        self.told = self.taken;
        self.check();
        self.taken
    }

    /// The other member reports its count.
    #[inline]
    pub const fn on_taken(&mut self, taken: u32) -> Result<(), Malformed> {
        // Counted from what was known: no more than is on its way.
        if taken.wrapping_sub(self.theirs) > self.sent.wrapping_sub(self.theirs) {
            return Err(Malformed);
        }
        self.theirs = taken;
        self.check();
        Ok(())
    }

    /// A portion has come.
    #[inline]
    pub const fn on_portion(&mut self) -> Result<(), Malformed> {
        if self.waiting == WINDOW {
            return Err(Malformed);
        }
        self.waiting += 1;
        self.check();
        Ok(())
    }

    /// A portion is taken as it comes.
    #[inline]
    pub const fn pass(&mut self) {
        self.taken = self.taken.wrapping_add(1);
    }

    /// A portion that had come is taken.
    #[inline]
    pub const fn take(&mut self) {
        debug_assert!(self.waiting > 0, "it has come");
        self.waiting -= 1;
        self.pass();
    }

    /// Whether a notice is due, since no portion has carried the count for long.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.taken.wrapping_sub(self.told) >= WINDOW / 4
    }
}

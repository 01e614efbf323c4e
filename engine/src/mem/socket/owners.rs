//! The bells of a pair, and which process has each of them. A forked child claims bells of its
//! own, and those of processes that have died are claimed anew.
use super::bell::BELL_BYTES;
use super::{BELLS, BellMemory, EDITIONS, HAND, OWNERS, PairMemory, ROOM_FOR_BELLS, RUNG, Side};
use crate::mem::family;
use crate::mem::map::Mapping;
use crate::mem::seat::this_process;
use crate::sync::{AtomicU32, Ordering};

/// Owners that are looked at for each bell that is claimed, so that at most as many are dead as are
/// alive.
const LOOKS: usize = 2;

/// The owners of a side's bells: a process for each; 0: nobody.
struct Owners<'a> {
    mapping: &'a Mapping,
    at: u64,
    /// The one that is looked at next.
    hand: &'a AtomicU32,
}

impl<'a> Owners<'a> {
    fn new(mapping: &'a Mapping, at: u64, hand: &'a AtomicU32) -> Self {
        Self { mapping, at, hand }
    }

    fn owner(&self, bell: u32) -> &AtomicU32 {
        self.mapping.half_word(self.at + 4 * u64::from(bell))
    }

    /// Claims the lowest bell that nobody has, of this number of bells.
    // spec: SOCK-53
    fn claim(&self, of: u32) -> Option<u16> {
        (0..LOOKS).for_each(|_| self.look_for_dead(of));
        let this = this_process();
        let found = (0..of).find(|bell| self.replace(*bell, 0, this));
        found.map(|bell| bell as u16)
    }

    /// Changes an owner. False where it is another one meanwhile.
    fn replace(&self, bell: u32, from: u32, to: u32) -> bool {
        // SOCK-R5, SOCK-A5: all use of the bell precedes its next use. Relaxed: it was not changed.
        self.owner(bell).compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Looks at the next owner, and takes its bell away if it has died.
    fn look_for_dead(&self, of: u32) {
        // Relaxed: the order of looks is nothing that others count on.
        let hand = self.hand.load(Ordering::Relaxed);
        // Relaxed: the exchange decides.
        let owner = |bell: u32| self.owner(bell).load(Ordering::Relaxed);
        let next = (0..of).map(|i| hand.wrapping_add(i) % of).find(|bell| owner(*bell) != 0);
        let Some(bell) = next else { return };
        // Relaxed: as above.
        self.hand.store(bell + 1, Ordering::Relaxed);
        let owner = owner(bell);
        if !family::exists(owner) {
            self.replace(bell, owner, 0);
        }
    }

    /// This process has a bell no longer.
    fn give_back(&self, bell: u16) {
        assert!(bell < BELLS, "it was claimed");
        // SOCK-R5: all use of it precedes its next use.
        self.owner(bell.into()).store(0, Ordering::Release);
    }
}

impl PairMemory {
    fn owners(&self) -> Owners<'_> {
        let at = OWNERS + self.side as u64 * u64::from(BELLS) * 4;
        Owners::new(&self.shared, at, self.half_of(HAND, self.side))
    }

    /// Claims a bell of this side for this process. None where living processes have all for which
    /// the other side has room.
    pub(crate) fn claim_bell(&self) -> Option<u16> {
        // Relaxed: a bound, and a claim.
        let room = self.half_of(ROOM_FOR_BELLS, self.side.other()).load(Ordering::Relaxed);
        self.owners().claim(room.min(BELLS.into()))
    }

    /// Gives a bell back that this process has claimed.
    pub(crate) fn give_back_bell(&self, number: u16) {
        self.owners().give_back(number);
    }

    /// A number for the counter of a bell that no other counter of this side has.
    pub(crate) fn new_edition(&self) -> u32 {
        // Relaxed: a count that orders nothing.
        self.half_of(EDITIONS, self.side).fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// The memory of a bell.
    pub(crate) fn bell(&self, side: Side, number: u16) -> BellMemory {
        assert!(number < BELLS, "bells have small numbers");
        let n = side as u64 * u64::from(BELLS) + u64::from(number);
        BellMemory::new(&self.shared, RUNG + n * BELL_BYTES as u64)
    }
}

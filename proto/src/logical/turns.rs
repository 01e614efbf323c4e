//! The order in which channels take turns.
use super::{PLACES, PRIORITIES, SHARE, WEIGHT_MAX};
use alloc::boxed::Box;

/// Channels that are ready, in rings by priority; number 0 is nobody.
///
/// ```text
///  priority 7   first -> next -> next -> first      the first one has the turn
///  priority 6   first -> ...                        where nobody above is ready
/// ```
///
/// The order of turns of channels. Each step costs the same for any number of channels.
// spec: CHAN-6, CHAN-7
#[derive(Clone, Debug)]
pub struct Turns {
    places: Box<[Place; PLACES]>,
    firsts: [u8; PRIORITIES as usize],
    /// Bit by bit, the priorities at which somebody is ready.
    ready: u8,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    next: u8,
    before: u8,
    is_ready: bool,
    priority: u8,
    weight: u8,
    /// The rest of its turn.
    left: i32,
}

impl Place {
    const fn share(&self) -> i32 {
        (self.weight as u32 * SHARE) as i32
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

impl Turns {
    /// Nobody is ready; all have priority 0 and weight 1.
    pub fn new() -> Self {
        let place = Place { next: 0, before: 0, is_ready: false, priority: 0, weight: 1, left: 0 };
        Self { places: Box::new([place; PLACES]), firsts: [0; _], ready: 0 }
    }

    /// Invariants of a channel and of its priority, between two steps.
    fn check(&self, number: u8) {
        if !cfg!(debug_assertions) {
            return;
        }
        let Place { next, before, is_ready, priority, left, .. } = self.places[usize::from(number)];
        let first = self.firsts[usize::from(priority)];
        let is_marked = self.ready >> priority & 1 == 1;
        debug_assert!(is_marked == (first != 0), "a priority has its bit while one is ready");
        debug_assert!(!is_ready || is_marked, "a ready channel has a turn");
        if is_ready {
            let (behind, ahead) =
                (&self.places[usize::from(next)], &self.places[usize::from(before)]);
            debug_assert!(behind.before == number, "the next one knows who is before it");
            debug_assert!(ahead.next == number, "the one before knows who is next");
            debug_assert!(behind.is_ready && ahead.is_ready, "only ready channels have turns");
            debug_assert!(behind.priority == priority, "a ring is of one priority");
            let share = self.places[usize::from(number)].share();
            debug_assert!(0 < left && left <= share, "a turn is no longer than its share");
        }
    }

    /// Gives a channel a priority and a weight.
    ///
    /// # Panics
    /// Beyond the limits.
    // spec: CHAN-6
    pub fn set(&mut self, number: u8, priority: u8, weight: u8) {
        assert!(priority < PRIORITIES && (1..=WEIGHT_MAX).contains(&weight), "within the limits");
        let was_ready = self.places[usize::from(number)].is_ready;
        self.rest(number);
        let place = &mut self.places[usize::from(number)];
        (place.priority, place.weight) = (priority, weight);
        if was_ready {
            self.ready(number);
        }
    }

    /// A channel has something to do: its turn comes behind those of all that are ready.
    pub fn ready(&mut self, number: u8) {
        let place = &mut self.places[usize::from(number)];
        if number == 0 || place.is_ready {
            return;
        }
        place.is_ready = true;
        place.left = place.share();
        let priority = usize::from(place.priority);
        let first = self.firsts[priority];
        if first == 0 {
            (place.next, place.before) = (number, number);
            self.firsts[priority] = number;
            self.ready |= 1 << priority;
            self.check(number);
            return;
        }
        let last = self.places[usize::from(first)].before;
        let place = &mut self.places[usize::from(number)];
        (place.next, place.before) = (first, last);
        self.places[usize::from(last)].next = number;
        self.places[usize::from(first)].before = number;
        self.check(number);
    }

    /// A channel has nothing to do, or cannot do it.
    pub fn rest(&mut self, number: u8) {
        let place = &mut self.places[usize::from(number)];
        if !place.is_ready {
            return;
        }
        place.is_ready = false;
        let Place { next, before, priority, .. } = *place;
        let priority = usize::from(priority);
        if next == number {
            self.firsts[priority] = 0;
            self.ready &= !(1 << priority);
            self.check(number);
            return;
        }
        self.places[usize::from(before)].next = next;
        self.places[usize::from(next)].before = before;
        if self.firsts[priority] == number {
            self.firsts[priority] = next;
        }
        self.check(next);
    }

    /// The channel that is next, and the bytes that its turn still has. If no other channel of its
    /// priority is ready, the number is unlimited.
    #[inline]
    pub const fn next(&self) -> Option<(u8, u64)> {
        if self.ready == 0 {
            return None;
        }
        let number = self.firsts[self.ready.ilog2() as usize];
        let place = &self.places[number as usize];
        Some((number, if place.next == number { u64::MAX } else { place.left as u64 }))
    }

    /// Whether nobody is ready.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.ready == 0
    }

    /// The channel that is next has sent messages of this cost. If that exceeds its turn, its next
    /// turn is shorter.
    // spec: CHAN-6
    pub fn did(&mut self, cost: u64) {
        let Some((number, _)) = self.next() else { return };
        let place = &mut self.places[usize::from(number)];
        place.left -= i32::try_from(cost).unwrap_or(i32::MAX).min(place.share());
        if place.left <= 0 {
            place.left += place.share();
            self.firsts[usize::from(place.priority)] = place.next;
        }
        self.check(number);
    }
}

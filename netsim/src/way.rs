//! One direction between two places, and what it does to what is sent.
use crate::{Dice, Flights};
use alloc::vec::Vec;

/// How many later ones pass one that is held back.
pub const PASSED_MAX: u64 = 8;
/// The longest time that an item is held back if too few come.
pub const PASSED_NANOS: u64 = 1_000_000;
/// Bits that are inverted where something is damaged, at most.
const FLIPS_MAX: u64 = 3;

/// An item that travels.
pub trait Item: Clone {
    /// Bytes, as far as they matter: to a rate, and to what may be damaged.
    fn size(&self) -> usize {
        0
    }

    /// Inverts a bit.
    fn flip(&mut self, _bit: u64) {}
}

/// Shares are of 1, times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The share of items that is lost.
    pub loss: f64,
    /// The share that comes twice.
    pub duplicate: f64,
    /// The share that is held back until one to eight others have passed.
    pub reorder: f64,
    /// The share that has one to three bits inverted.
    pub corrupt: f64,
    /// The share that takes longer, by up to the second number of nanoseconds.
    pub late: (f64, u64),
    /// The share that comes once more, and by how many nanoseconds later.
    pub replay: (f64, u64),
    /// The least time that the way takes.
    pub delay: u64,
    /// The most time on top of that.
    pub jitter: u64,
    /// Bits that pass in a second.
    pub rate: Option<u64>,
    /// Bytes that may wait to pass; what comes beyond is lost.
    pub queue: u64,
    /// How far the rate may catch up with what it has missed, in time.
    pub burst: u64,
    /// How many may be on their way; what comes beyond is lost.
    pub room: usize,
    /// From which all chance follows.
    pub seed: u64,
}

impl Plan {
    /// Nothing goes wrong, and nothing takes time.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        corrupt: 0.0,
        late: (0.0, 0),
        replay: (0.0, 0),
        delay: 0,
        jitter: 0,
        rate: None,
        queue: u64::MAX,
        burst: 0,
        room: usize::MAX,
        seed: 0,
    };
}

/// The faults so far, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lost by the dice.
    pub lost: u64,
    /// Lost while the way was cut.
    pub cut: u64,
    /// Lost because too much waited.
    pub overflowed: u64,
    /// Sent twice, soon or late.
    pub duplicated: u64,
    /// Held back until others had passed.
    pub reordered: u64,
    /// Damaged.
    pub corrupted: u64,
}

/// One direction.
#[derive(Clone, Debug)]
pub struct Way<T> {
    /// The faults of the way; they may change at any time.
    pub plan: Plan,
    /// All that is sent is lost. Items on their way still arrive.
    pub is_cut: bool,
    dice: Dice,
    flights: Flights<T>,
    /// Those that others are to pass.
    passed: Vec<Passed<T>>,
    /// When the rate has let through all that it was given.
    free_at: u64,
    counters: Counters,
}

/// One that waits for others to pass it.
#[derive(Clone, Debug)]
struct Passed<T> {
    /// How many still have to.
    left: u64,
    /// When it goes in any case.
    latest: u64,
    due: u64,
    item: T,
}

impl<T: Item> Way<T> {
    /// A way that does what a plan says.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            is_cut: false,
            dice: Dice(plan.seed),
            flights: Flights::default(),
            passed: Vec::new(),
            free_at: 0,
            counters: Counters::default(),
        }
    }

    /// The faults so far, by kind.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// For how long what was sent until now will wait for the rate.
    pub const fn backlog(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }

    /// Sends something. It is on its way once, twice, or not at all.
    pub fn send(&mut self, item: T, now: u64) {
        if self.is_cut {
            self.counters.cut += 1;
            return;
        }
        if self.dice.chance(self.plan.loss) {
            self.counters.lost += 1;
            return;
        }
        let (share, later) = self.plan.replay;
        if self.dice.chance(self.plan.duplicate) {
            self.counters.duplicated += 1;
            self.forward(item.clone(), now);
        }
        if self.dice.chance(share) {
            self.counters.duplicated += 1;
            self.forward(item.clone(), now.saturating_add(later));
        }
        self.forward(item, now);
        for passed in &mut self.passed {
            passed.left = passed.left.saturating_sub(1);
        }
        self.let_go(now);
    }

    /// Puts something on its way that is not lost, nor doubled.
    pub fn forward(&mut self, mut item: T, now: u64) {
        let Some(due) = self.arrival(item.size(), now) else {
            self.counters.overflowed += 1;
            return;
        };
        if self.dice.chance(self.plan.corrupt) && item.size() > 0 {
            self.counters.corrupted += 1;
            self.damage(&mut item);
        }
        if self.dice.chance(self.plan.reorder) {
            self.counters.reordered += 1;
            // The one itself is counted as soon as it is there.
            let left = 1 + self.dice.between(1, PASSED_MAX);
            self.passed.push(Passed { left, latest: due.saturating_add(PASSED_NANOS), due, item });
        } else {
            self.flights.push(due, item);
        }
    }

    /// When the next one may be taken.
    pub fn due(&self) -> Option<u64> {
        let passed = self.passed.iter().map(|passed| passed.latest).min();
        [self.flights.due(), passed].into_iter().flatten().min()
    }

    /// The next one that has arrived by now.
    pub fn take(&mut self, now: u64) -> Option<T> {
        self.let_go(now);
        self.flights.take(now)
    }

    /// Items on their way are lost.
    pub fn clear(&mut self) {
        self.flights.retain(|_| false);
        self.passed.clear();
    }

    /// When something arrives that is sent now; `None` if it does not fit what waits.
    fn arrival(&mut self, len: usize, now: u64) -> Option<u64> {
        if self.flights.len() + self.passed.len() >= self.plan.room {
            return None;
        }
        let leaves = match self.plan.rate {
            Some(rate) => self.leaves(len, rate.max(1), now)?,
            None => now,
        };
        let jitter = match self.plan.jitter {
            0 => 0,
            most => self.dice.between(0, most),
        };
        let (share, most) = self.plan.late;
        let late = if self.dice.chance(share) { self.dice.between(0, most) } else { 0 };
        Some(leaves.saturating_add(self.plan.delay).saturating_add(jitter).saturating_add(late))
    }

    /// When the last bit has passed the rate.
    fn leaves(&mut self, len: usize, rate: u64, now: u64) -> Option<u64> {
        let waiting = bytes_in(self.free_at.saturating_sub(now), rate);
        if waiting > u128::from(self.plan.queue) {
            return None;
        }
        let begins = self.free_at.max(now.saturating_sub(self.plan.burst));
        self.free_at = begins.saturating_add(nanos_of(len, rate));
        Some(self.free_at.max(now))
    }

    /// Puts those that others have passed, or that waited in vain, among the rest.
    fn let_go(&mut self, now: u64) {
        let go = self.passed.extract_if(.., |passed| passed.left == 0 || passed.latest <= now);
        go.for_each(|passed| self.flights.push(passed.due.max(now), passed.item));
    }

    fn damage(&mut self, item: &mut T) {
        // So spread, they are different bits: twice the step is less than all.
        let bits = 8 * item.size() as u64;
        let (first, step) = (self.dice.between(0, bits - 1), self.dice.between(1, (bits - 1) / 2));
        for flip in 0..self.dice.between(1, FLIPS_MAX) {
            item.flip((first + flip * step) % bits);
        }
    }
}

/// Several ways, as one thing to wait for.
#[derive(Clone, Debug)]
pub struct Network<T> {
    /// The ways.
    pub ways: Vec<Way<T>>,
}

impl<T: Item> Network<T> {
    /// A way for each plan.
    pub fn new(plans: impl IntoIterator<Item = Plan>) -> Self {
        Self { ways: plans.into_iter().map(Way::new).collect() }
    }

    /// Changes the plans of all ways.
    pub fn change(&mut self, mut change: impl FnMut(&mut Plan)) {
        self.ways.iter_mut().for_each(|way| change(&mut way.plan));
    }

    /// When the next one arrives by any way.
    pub fn due(&self) -> Option<u64> {
        self.ways.iter().filter_map(Way::due).min()
    }

    /// The next one that has arrived by now, by any way.
    pub fn take(&mut self, now: u64) -> Option<T> {
        let next = self.ways.iter_mut().min_by_key(|way| way.due().unwrap_or(u64::MAX))?;
        next.take(now)
    }
}

/// The nanoseconds that this number of bytes takes.
fn nanos_of(len: usize, rate: u64) -> u64 {
    u64::try_from(len as u128 * 8_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
}

/// How many bytes pass in this time.
fn bytes_in(nanos: u64, rate: u64) -> u128 {
    u128::from(nanos) * u128::from(rate) / 8_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    impl Item for u64 {
        fn size(&self) -> usize {
            8
        }

        fn flip(&mut self, bit: u64) {
            *self ^= 1 << bit;
        }
    }

    const COUNT: u64 = 10_000;

    /// The arrivals, with their times, of numbers that are sent 10 us apart.
    fn journey(way: &mut Way<u64>) -> Vec<(u64, u64)> {
        (0..COUNT).for_each(|number| way.send(number, number * 10_000));
        core::iter::from_fn(|| way.due().map(|now| (now, way.take(now)))).filter_map(come).collect()
    }

    fn come((now, number): (u64, Option<u64>)) -> Option<(u64, u64)> {
        number.map(|number| (now, number))
    }

    #[test]
    fn a_seed_brings_everything_back() {
        let plan = Plan {
            loss: 0.2,
            duplicate: 0.05,
            reorder: 0.05,
            corrupt: 0.1,
            late: (0.1, 1_000_000),
            replay: (0.1, 9_000_000),
            delay: 20_000,
            jitter: 50_000,
            rate: Some(10_000_000),
            ..Plan::NONE
        };
        let run = |seed| journey(&mut Way::new(Plan { seed, ..plan }));
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn as_many_are_lost_doubled_and_damaged_as_the_plan_says() {
        let plan = Plan { loss: 0.2, duplicate: 0.1, corrupt: 0.3, ..Plan::NONE };
        let mut way = Way::new(plan);
        let come = journey(&mut way).len() as u64;
        let Counters { lost, duplicated, corrupted, .. } = way.counters();
        assert_eq!(come, COUNT - lost + duplicated);
        assert!((1900..2100).contains(&lost) && (720..880).contains(&duplicated));
        assert!((2500..2900).contains(&corrupted), "{corrupted} of 8800");
    }

    #[test]
    fn one_that_is_held_back_is_passed_by_one_to_eight_or_goes_in_the_end() {
        let mut way = Way::new(Plan { reorder: 0.05, ..Plan::NONE });
        let come = journey(&mut way);
        let late = come.iter().zip(0..).filter_map(|((_, number), place)| {
            let by: u64 = place;
            by.checked_sub(*number).filter(|by| *by > 0)
        });
        assert!(late.clone().count() > 350 && late.into_iter().all(|by| by <= PASSED_MAX));
        assert_eq!(come.len() as u64, COUNT);
        let mut alone = Way::new(Plan { reorder: 1.0, ..Plan::NONE });
        alone.send(1, 50);
        assert_eq!((alone.due(), alone.take(49 + PASSED_NANOS)), (Some(50 + PASSED_NANOS), None));
        assert_eq!((alone.take(50 + PASSED_NANOS), alone.due()), (Some(1), None));
    }

    #[test]
    fn a_rate_and_its_queue_are_kept() {
        // 8 bytes take 64 us.
        let plan = Plan { rate: Some(1_000_000), queue: 800, delay: 5, ..Plan::NONE };
        let mut way = Way::new(plan);
        (0..1000).for_each(|number| way.send(number, 0));
        assert_eq!((way.counters().overflowed, way.backlog(0)), (1000 - 101, 101 * 64_000));
        let come: Vec<_> = (1..=101).map(|nth| way.take(nth * 64_000 + 5)).collect();
        assert!(come.iter().all(Option::is_some) && way.due().is_none());
    }

    #[test]
    fn a_cut_path_loses_new_datagrams_but_not_those_in_flight() {
        let mut network = Network::new(vec![Plan { delay: 9, ..Plan::NONE }; 2]);
        network.ways[0].send(1, 0);
        network.ways[0].is_cut = true;
        network.ways[0].send(2, 1);
        network.ways[1].send(3, 1);
        assert_eq!((network.due(), network.take(9)), (Some(9), Some(1)));
        assert_eq!((network.take(9), network.take(10), network.due()), (None, Some(3), None));
    }

    #[test]
    fn those_of_one_time_arrive_in_the_order_of_sending() {
        let mut flights = Flights::default();
        (0..100).for_each(|number| flights.push(number % 3, number));
        let come: Vec<_> = core::iter::from_fn(|| flights.take(2)).collect();
        assert!(come.is_sorted_by_key(|number| (number % 3, *number)), "{come:?}");
        assert_eq!(come.len(), 100);
    }
}

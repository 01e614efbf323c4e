//! Forecasts against times computed by hand, against what must hold of any of them, and against
//! fixed schedules where background traffic comes and goes.
use ayre_proto::collective::forecast::{Cost, FORECAST_MAX, Forecast, Volume};
use ayre_proto::collective::{Collective, Place, Plan, Schedule, Step, Task};
use proptest::prelude::*;

const NOTHING: Cost = Cost { message_ns: 0, byte_ps: 0 };

fn task(collective: Collective, schedule: Schedule, root: usize) -> Task {
    Task { collective, schedule, root }
}

/// This number of bytes, in one chunk.
fn whole(bytes: u64) -> Volume {
    Volume { bytes, chunk: bytes.max(1) }
}

/// A group all of whose links are alike.
fn even(members: usize, ends: Cost, link: Cost) -> Forecast {
    let mut forecast = Forecast::new(members, ends).expect("a group of up to 64");
    for (from, to) in pairs(members) {
        forecast.set(from, to, link);
    }
    forecast
}

fn pairs(members: usize) -> impl Iterator<Item = (usize, usize)> {
    let to = move |from| (0..members).filter(move |to| *to != from).map(move |to| (from, to));
    (0..members).flat_map(to)
}

/// All that can be asked of a group.
fn tasks(members: usize) -> impl Iterator<Item = Task> {
    let roots = move |one: Collective| 0..if one.has_root() { members } else { 1 };
    let all = Collective::ALL.into_iter();
    all.flat_map(move |collective| {
        let by = move |root| Schedule::ALL.map(move |one| task(collective, one, root));
        roots(collective).flat_map(by)
    })
    .filter(|task| task.schedule.can(task.collective))
}

/// Whether a message of a task goes over a link.
fn is_used(task: Task, members: usize, (from, to): (usize, usize)) -> bool {
    let mut plan = Plan::new(task, Place { member: from, members }).expect("there is one");
    plan.any(|step| matches!(step, Step::Send { to: other, .. } if other == to))
}

// spec: COLL-16
#[test]
fn times_are_those_computed_by_hand() {
    use {Collective as C, Schedule as S};
    let ends = Cost { message_ns: 10, byte_ps: 0 };
    let link = Cost { message_ns: 100, byte_ps: 2000 };
    let mut three = even(3, ends, link);
    let mut is = |task, volume, due| assert_eq!(three.time(task, volume), Some(due), "{task:?}");
    // Root 2 has 1 and 0 as children, as far from it as 2 and 1; the second is sent to 0.
    is(task(C::Broadcast, S::Star, 0), whole(50), 230);
    // Root 2's children are members 1 and 0, as far from it as 2 and 1; the second is sent to 0.
    is(task(C::Broadcast, S::Tree, 2), whole(50), 230);
    // Two rounds, each of 10 to send, 100 under way and 10 to take.
    is(task(C::Barrier, S::Doubling, 0), whole(0), 240);
    // Three blocks of 20 bytes from 0 by way of 1 to 2: 1 takes the last at 10 + 3 * 40 + 100 + 10,
    // sends it at 10 more, and it takes 40 + 100 + 10.
    is(task(C::Broadcast, S::Ring, 0), whole(60), 400);
    // As many portions as bytes need, each with its cost at both ends.
    is(task(C::Gather, S::Star, 1), whole(1 << 16), 20 + 2 * 65_536 + 100 + 40);
    // Member 2 sends its own block and that of 3 to the root, 250 bytes each.
    let mut four = even(4, NOTHING, link);
    assert_eq!(four.time(task(C::Gather, S::Tree, 0), whole(250)), Some(600 + 1100));
    let mut one = even(1, ends, link);
    assert_eq!(one.time(task(C::Allreduce, S::Doubling, 0), whole(8)), Some(0));
}

// spec: COLL-15, COLL-16
#[test]
fn chunks_follow_each_other() {
    let mut two = even(2, NOTHING, Cost { message_ns: 100, byte_ps: 1000 });
    let broadcast = task(Collective::Broadcast, Schedule::Star, 0);
    for (bytes, due) in [(999, 1099), (3000, 3100), (3500, 3600), (100_001, 100_101)] {
        let time = two.time(broadcast, Volume { bytes, chunk: 1000 });
        assert_eq!(time, Some(due), "{bytes} bytes");
    }
    // Each member waits for the other one's chunk before it sends its next one.
    let swap = task(Collective::Allreduce, Schedule::Doubling, 0);
    assert_eq!(two.time(swap, Volume { bytes: 10_000, chunk: 1000 }), Some(10 * 1100));
}

// spec: COLL-16
#[test]
fn every_plan_of_every_group_ends() {
    for members in (1..=12).chain([31, FORECAST_MAX]) {
        let mut group = even(members, NOTHING, Cost { message_ns: 1, byte_ps: 1 });
        for task in tasks(members) {
            let time = group.time(task, Volume { bytes: 5000, chunk: 1024 });
            assert_eq!(time.is_some_and(|time| time > 0), members > 1, "{task:?} of {members}");
        }
    }
    assert!(Forecast::new(0, NOTHING).is_none());
    assert!(Forecast::new(FORECAST_MAX + 1, NOTHING).is_none());
    let mut two = even(2, NOTHING, NOTHING);
    assert_eq!(two.time(task(Collective::Scan, Schedule::Star, 0), whole(1)), None);
    assert_eq!(two.time(task(Collective::Reduce, Schedule::Star, 2), whole(1)), None);
}

// spec: COLL-16
#[test]
fn no_table_overflows() {
    // What is computed without care for overflow comes out as nothing here.
    let most = Cost { message_ns: 1 << 31, byte_ps: 1 << 31 };
    let mut group = even(4, most, most);
    for task in tasks(4).filter(|task| task.collective != Collective::Barrier) {
        for volume in [Volume { bytes: 1 << 62, chunk: 1 << 40 }, whole(1 << 62)] {
            let time = group.time(task, volume);
            assert!(time.is_some_and(|time| time > u64::MAX / 2000), "{task:?}: {time:?}");
        }
    }
    let mut two = even(2, NOTHING, Cost { message_ns: 0, byte_ps: 1 << 31 });
    let broadcast = task(Collective::Broadcast, Schedule::Star, 0);
    assert_eq!(two.time(broadcast, whole(1 << 62)), Some(u64::MAX / 1000));
}

// spec: COLL-7, COLL-16
#[test]
fn the_usual_schedule_is_kept_unless_another_is_clearly_better() {
    use {Collective as C, Schedule as S};
    let thousand = Cost { message_ns: 1000, byte_ps: 0 };
    let mut group = even(4, thousand, thousand);
    let best = |group: &mut Forecast, usual, is_exact| {
        group.best((C::Allreduce, 0), (usual, is_exact), |_| whole(64))
    };
    assert_eq!(best(&mut group, S::Doubling, true), S::Doubling);
    assert_eq!(best(&mut group, S::Tree, true), S::Tree, "nothing is to be avoided");
    group.set(1, 2, Cost { message_ns: 999, byte_ps: 0 });
    assert_eq!(best(&mut group, S::Tree, true), S::Doubling, "two rounds in place of four");
    // Only by an eighth, and by a little more.
    for (message_ns, due) in [(6_428, S::Doubling), (6_429, S::Star)] {
        group.set(1, 3, Cost { message_ns, byte_ps: 0 });
        let mut time = |schedule| group.time(task(C::Allreduce, schedule, 0), whole(64));
        assert_eq!(time(S::Doubling), Some(5_000 + u64::from(message_ns)));
        assert_eq!(time(S::Star), Some(10_000));
        assert_eq!(best(&mut group, S::Doubling, true), due);
    }
    // A link that is loaded, of which the star has no need.
    group.set(1, 3, Cost { message_ns: 100_000, byte_ps: 0 });
    assert_eq!(best(&mut group, S::Doubling, false), S::Star);
    // And one of which the ring alone has none.
    group.set(2, 0, Cost { message_ns: 100_000, byte_ps: 0 });
    assert_eq!(best(&mut group, S::Doubling, true), S::Ring);
    assert_ne!(best(&mut group, S::Doubling, false), S::Ring, "it has other brackets");
}

/// Costs of the links of a group, by turns.
fn costs() -> impl Strategy<Value = Vec<Cost>> {
    let cost = (0..50_000_u32, 0..20_000_u32);
    let cost = cost.prop_map(|(message_ns, byte_ps)| Cost { message_ns, byte_ps });
    proptest::collection::vec(cost, 1..40)
}

proptest! {
    // spec: COLL-16
    #[test]
    fn forecasts_ignore_unused_links_and_are_monotonic_in_cost(
        (members, costs) in (2..10_usize, costs()),
        (which, more) in (any::<prop::sample::Index>(), 1..100_000_u32),
        bytes in 0..200_000_u64,
    ) {
        let ends = Cost { message_ns: 300, byte_ps: 80 };
        let mut group = even(members, ends, NOTHING);
        let all: Vec<_> = pairs(members).collect();
        for (&(from, to), cost) in all.iter().zip(costs.iter().cycle()) {
            group.set(from, to, *cost);
        }
        let volume = Volume { bytes, chunk: 1 << 15 };
        let before: Vec<_> = tasks(members).map(|task| group.time(task, volume)).collect();
        let slow = which.index(all.len());
        let Cost { message_ns, byte_ps } = costs[slow % costs.len()];
        let cost = Cost { message_ns: message_ns + more, byte_ps: byte_ps + more };
        group.set(all[slow].0, all[slow].1, cost);
        for (task, before) in tasks(members).zip(before) {
            let now = group.time(task, volume);
            prop_assert!(is_used(task, members, all[slow]) || now == before, "{:?}", task);
            // What comes behind the chunks that are run through is an estimate.
            prop_assert!(now >= before || bytes > 3 << 15, "{:?}: {:?} {:?}", task, before, now);
        }
    }
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

/// Background traffic on some links: it stays for some calls, then it is on others.
struct Traffic {
    members: usize,
    loaded: Vec<((usize, usize), Cost)>,
    left: u64,
}

impl Traffic {
    /// A link alone: 5 us, and 10 Gbit/s.
    const FREE: Cost = Cost { message_ns: 5_000, byte_ps: 800 };

    fn next(&mut self, dice: &mut Dice) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.left = 5 + dice.below(20);
        let all: Vec<_> = pairs(self.members).collect();
        // A queue before each message, and a share of the link for the bytes.
        let load = |dice: &mut Dice| Cost {
            message_ns: 20_000 + dice.below(200_000) as u32,
            byte_ps: 800 * (2 + dice.below(20) as u32),
        };
        let many = dice.below(3);
        let one = |_| (all[dice.below(all.len() as u64) as usize], load(dice));
        self.loaded = (0..many).map(one).collect();
    }

    fn lay(&self, group: &mut Forecast, mut seen: impl FnMut(Cost) -> Cost) {
        for (from, to) in pairs(self.members) {
            group.set(from, to, seen(Self::FREE));
        }
        for ((from, to), cost) in &self.loaded {
            group.set(*from, *to, seen(*cost));
        }
    }
}

/// Times of all calls by each fixed schedule, then by the adaptive choice, in microseconds. The
/// adaptive choice knows the links as they were at the call before, up to a quarter wrong.
fn race(members: usize, collective: Collective, bytes: u64, usual: Schedule) -> Vec<(String, u64)> {
    let ends = Cost { message_ns: 500, byte_ps: 100 };
    let mut dice = Dice(bytes + members as u64);
    let mut traffic = Traffic { members, loaded: vec![], left: 0 };
    let (mut world, mut seen) = (even(members, ends, NOTHING), even(members, ends, NOTHING));
    traffic.lay(&mut seen, |cost| cost);
    let fixed: Vec<_> = Schedule::ALL.into_iter().filter(|one| one.can(collective)).collect();
    let (mut totals, mut adaptive) = (vec![0; fixed.len()], 0);
    for _ in 0..2000 {
        traffic.next(&mut dice);
        traffic.lay(&mut world, |cost| cost);
        let volume = Volume { bytes, chunk: 1 << 15 };
        let mut time = |one| world.time(task(collective, one, 0), volume).expect("there is one");
        for (total, schedule) in totals.iter_mut().zip(&fixed) {
            *total += time(*schedule);
        }
        adaptive += time(seen.best((collective, 0), (usual, true), |_| volume));
        let mut err = |value: u32| value / 100 * (75 + dice.below(51) as u32);
        traffic.lay(&mut seen, |Cost { message_ns, byte_ps }| Cost {
            message_ns: err(message_ns),
            byte_ps: err(byte_ps),
        });
    }
    let named = fixed.iter().map(|one| format!("{one:?}")).zip(totals);
    let all = named.chain([("adaptive".to_owned(), adaptive)]);
    all.map(|(name, total)| (name, total / 1000)).collect()
}

/// Where background traffic comes and goes, the choice by forecast takes less time in all than any
/// one schedule does.
// spec: COLL-16
#[test]
fn the_choice_beats_every_fixed_schedule_under_planted_traffic() {
    use {Collective as C, Schedule as S};
    let cases = [
        (4, C::Allreduce, 64, S::Doubling),
        (4, C::Allreduce, 1 << 16, S::Spread),
        (8, C::Allreduce, 64, S::Doubling),
        (8, C::Allreduce, 1 << 16, S::Spread),
        (8, C::Barrier, 0, S::Doubling),
        (8, C::Broadcast, 1 << 16, S::Star),
        (8, C::Allgather, 1 << 12, S::Doubling),
        (16, C::Allreduce, 1 << 14, S::Spread),
    ];
    for (members, collective, bytes, usual) in cases {
        let mut totals = race(members, collective, bytes, usual);
        println!("{members} members, {collective:?} of {bytes} bytes, us in all: {totals:?}");
        let (_, adaptive) = totals.pop().expect("it is the last");
        let beaten = totals.iter().all(|(_, total)| adaptive < *total);
        assert!(beaten, "{collective:?} of {bytes} bytes: {adaptive}, {totals:?}");
    }
}

//! Machines of units against closed forms.
use ayre_sim::machine::{Machine, Part, Step};
use ayre_sim::random::Random;
use ayre_sim::time::Time;
use proptest::prelude::*;

const PART: Part = Part("part");
const OTHER: Part = Part("other");

const fn nanos(time: u64) -> Time {
    Time::from_nanos(time)
}

#[test]
fn latency_is_a_sum_and_rate_is_the_longest_hold() {
    let mut machine = Machine::default();
    let [first, second, third] = core::array::from_fn(|_| machine.unit());
    let course = vec![
        Step::serve(PART, first, nanos(30)),
        Step::pipelined(PART, second, nanos(70), nanos(20)),
        Step::serve(OTHER, third, nanos(40)),
    ];
    let item = machine.add(course, [Time::ZERO; 101]);
    machine.run();
    assert_eq!(machine.passage(item).time(), nanos(90));
    assert_eq!(machine.passage(item).parts, [(PART, nanos(50)), (OTHER, nanos(40))]);
    let ends = [0, 100].map(|number| machine.passage(item + number).ended);
    assert_eq!(ends[1] - ends[0], nanos(100 * 70));
    assert_eq!(machine.busy(second), nanos(101 * 70));
}

#[test]
fn a_window_allows_as_many_items_as_it_has_places_in_a_round_trip() {
    const ITEMS: u64 = 400;
    for window in 1..12 {
        let mut machine = Machine::default();
        let places = machine.units_of(window);
        let link = machine.unit();
        let course = vec![
            Step::take(PART, places, 1),
            Step::pipelined(PART, link, nanos(10), nanos(10)),
            Step::delay(PART, nanos(70)),
            Step::give(PART, places, 1),
        ];
        let item = machine.add(course, (0..ITEMS).map(|_| Time::ZERO));
        machine.run();
        // A place is free again after 80 ns, the link after 10.
        let period = 10.0_f64.max(80.0 / f64::from(window));
        let end = machine.passage(item + ITEMS as usize - 1).ended.nanos();
        let expected = 80.0 + (ITEMS - 1) as f64 * period;
        assert!((end - expected).abs() <= 80.0, "window {window}: {end} ns, {expected} ns");
        assert_eq!(machine.kept(places), 0);
    }
}

#[test]
fn a_large_item_is_not_overtaken_by_small_ones() {
    let mut machine = Machine::default();
    let room = machine.units_of(10);
    let course = |servers, time| {
        vec![
            Step::take(PART, room, servers),
            Step::delay(PART, nanos(time)),
            Step::give(PART, room, servers),
        ]
    };
    let first = machine.add(course(6, 100), [nanos(0)]);
    let large = machine.add(course(8, 50), [nanos(1)]);
    let small = machine.add(course(1, 5), [nanos(2)]);
    machine.run();
    let ended = |item| machine.passage(item).ended;
    assert_eq!([first, large, small].map(ended), [nanos(100), nanos(150), nanos(105)]);
}

#[test]
fn what_one_item_takes_another_one_gives_back() {
    let mut machine = Machine::default();
    let credit = machine.units_of(1);
    let data = machine.add(vec![Step::take(PART, credit, 1)], [nanos(0), nanos(1)]);
    machine.add(vec![Step::give(PART, credit, 1)], [nanos(500)]);
    machine.run();
    assert_eq!(machine.passage(data + 1).ended, nanos(500));
    assert_eq!(machine.kept(credit), 1);
}

#[test]
#[should_panic = "fewer servers"]
fn more_than_all_servers_cannot_be_taken() {
    let mut machine = Machine::default();
    let pair = machine.units_of(2);
    machine.add(vec![Step::take(PART, pair, 3)], [Time::ZERO]);
}

/// Arrivals at random, a time for each item: the mean wait is that of M/D/1.
#[test]
fn a_unit_with_poisson_arrivals_is_an_md1_queue() {
    const ITEMS: usize = 400_000;
    for load in [0.3, 0.7] {
        let mut machine = Machine::default();
        let unit = machine.unit();
        let mut random = Random::new(1, 0);
        let mut at = 0.0;
        let arrivals: Vec<_> = (0..ITEMS)
            .map(|_| {
                at += random.exponential() * 100e3 / load;
                Time(at as u64)
            })
            .collect();
        let item = machine.add(vec![Step::serve(PART, unit, nanos(100))], arrivals);
        machine.run();
        let waits: f64 = (0..ITEMS).map(|n| machine.passage(item + n).waited.nanos()).sum();
        let mean = waits / ITEMS as f64;
        let expected = 100.0 * load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < 0.03, "{mean} ns, {expected} ns");
    }
}

proptest! {
    /// Items of any courses end, their parts and waits sum to their times, and all is given back.
    #[test]
    fn parts_and_waits_sum_to_the_whole(
        servers in prop::collection::vec(1_u32..4, 1..4),
        items in prop::collection::vec(
            (0_u64..200, prop::collection::vec((0_usize..4, 0_u64..50, 0_u64..50), 0..5)),
            1..20,
        ),
    ) {
        let mut machine = Machine::default();
        let units: Vec<_> = servers.iter().map(|servers| machine.units_of(*servers)).collect();
        let window = machine.units_of(2);
        let numbers: Vec<_> = items
            .iter()
            .map(|(begun, steps)| {
                let mut course = vec![Step::take(PART, window, 1)];
                course.extend(steps.iter().map(|&(unit, hold, latency)| match units.get(unit) {
                    Some(unit) => Step::pipelined(PART, *unit, nanos(hold), nanos(latency)),
                    None => Step::delay(OTHER, nanos(latency)),
                }));
                course.push(Step::give(OTHER, window, 1));
                machine.add(course, [nanos(*begun)])
            })
            .collect();
        machine.run();
        for number in numbers {
            let passage = machine.passage(number);
            let sum = passage.parts.iter().fold(passage.waited, |sum, (_, time)| sum + *time);
            prop_assert_eq!(sum, passage.time());
        }
        prop_assert_eq!(machine.kept(window), 0);
        for unit in units {
            prop_assert_eq!(machine.kept(unit), 0);
        }
    }
}

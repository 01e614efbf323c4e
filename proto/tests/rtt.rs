//! Round trips, against RFC 6298 in real numbers and against a list of all samples.
use ayre_proto::lane::Malformed;
use ayre_proto::limits::ROUND_TRIP_MAX;
use ayre_proto::link::looks::{Looks, UNIT, UNITS_MAX};
use ayre_proto::link::rtt::{Bounds, Rtt, SHORTEST_WINDOW};
use proptest::prelude::*;

const BOUNDS: Bounds = Bounds { floor: 1_000, initial: 5_000, ceiling: 1_000_000 };

/// The formulas of the RFC as they stand there.
#[derive(Default)]
struct Model {
    samples: Vec<(u64, u64)>,
    smoothed: f64,
    variation: f64,
    timeouts: i32,
}

impl Model {
    fn on_sample(&mut self, now: u64, sample: u64) {
        let r = sample as f64;
        (self.smoothed, self.variation) = if self.samples.is_empty() {
            (r, r / 2.0)
        } else {
            let variation = 0.75 * self.variation + 0.25 * (self.smoothed - r).abs();
            (0.875 * self.smoothed + 0.125 * r, variation)
        };
        self.samples.push((now, sample));
        self.timeouts = 0;
    }

    fn timeout(&self) -> f64 {
        let once = self.smoothed + 4.0 * self.variation;
        let once = if self.samples.is_empty() { BOUNDS.initial as f64 } else { once };
        let once = once.clamp(BOUNDS.floor as f64, BOUNDS.ceiling as f64);
        (once * 2f64.powi(self.timeouts)).min(BOUNDS.ceiling as f64)
    }

    /// The least sample of the last window, and that of the last two.
    fn shortest(&self) -> (u64, u64) {
        let last = self.samples.last().expect("a sample").0;
        let within = |time: u64| {
            let young = self.samples.iter().filter(move |sample| last - sample.0 < time);
            young.map(|sample| sample.1).min().expect("the last one")
        };
        (within(SHORTEST_WINDOW), within(2 * SHORTEST_WINDOW))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Sample { after: u64, sample: u64 },
    Timeout,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after = prop_oneof![0..1_000_000u64, 0..SHORTEST_WINDOW, 0..3 * SHORTEST_WINDOW];
    let sample = prop_oneof![
        8 => 1..1_000_000u64,
        1 => 1..=ROUND_TRIP_MAX,
        1 => prop_oneof![Just(0), any::<u64>(), 0..1u64 << 32],
    ];
    let step = prop_oneof![
        3 => (after, sample).prop_map(|(after, sample)| Step::Sample { after, sample }),
        1 => Just(Step::Timeout),
    ];
    prop::collection::vec(step, 1..100)
}

/// Close enough for integers: each average loses less than a nanosecond by rounding, which the
/// gains add up to a few, times four and doubled.
fn is_close(found: u64, want: f64, doubled: i32) -> bool {
    (found as f64 - want).abs() <= 40.0 * 2f64.powi(doubled.min(20))
}

fn check(rtt: &Rtt, model: &Model) {
    let timeout = rtt.timeout();
    assert!((BOUNDS.floor..=BOUNDS.ceiling).contains(&timeout));
    assert!(is_close(timeout, model.timeout(), model.timeouts), "{timeout} {}", model.timeout());
    if model.samples.is_empty() {
        let learnt = (rtt.smoothed(), rtt.variation(), rtt.shortest());
        assert_eq!(learnt, (None, None, None));
        return;
    }
    let smoothed = rtt.smoothed().expect("there was a sample");
    let samples = || model.samples.iter().map(|sample| sample.1);
    assert!(samples().min() <= Some(smoothed) && Some(smoothed) <= samples().max());
    assert!(is_close(smoothed, model.smoothed, 0));
    assert!(is_close(rtt.variation().expect("as well"), model.variation, 0));
    let shortest = rtt.shortest().expect("as well");
    let (of_one, of_two) = model.shortest();
    assert!(of_two <= shortest && shortest <= of_one, "{of_two} {shortest} {of_one}");
}

proptest! {
    // spec: RTT-1, RTT-2, RTT-3, RTT-4, RTT-5, RTT-6
    #[test]
    fn estimates_are_those_of_the_rfc(
        steps in steps(),
        start in prop_oneof![Just(0), 0..1u64 << 60],
    ) {
        let (mut rtt, mut model) = (Rtt::new(BOUNDS), Model::default());
        let mut now = start;
        for step in steps {
            match step {
                Step::Sample { after, sample } => {
                    now += after;
                    let before = format!("{rtt:?}");
                    if (1..=ROUND_TRIP_MAX).contains(&sample) {
                        prop_assert_eq!(rtt.on_sample(now, sample), Ok(()));
                        model.on_sample(now, sample);
                    } else {
                        prop_assert_eq!(rtt.on_sample(now, sample), Err(Malformed));
                        prop_assert_eq!(format!("{rtt:?}"), before, "it changes nothing");
                    }
                }
                Step::Timeout => {
                    rtt.on_timeout();
                    model.timeouts += 1;
                }
            }
            check(&rtt, &model);
        }
    }

    /// The widest bounds that there can be: no sum and no shift overflows.
    // spec: RTT-5
    #[test]
    fn the_widest_bounds_cause_no_overflow(
        samples in prop::collection::vec(prop_oneof![Just(1), Just(ROUND_TRIP_MAX)], 0..50),
        timeouts in 0..200u32,
    ) {
        let bounds = Bounds { floor: 1, initial: 1, ceiling: ROUND_TRIP_MAX };
        let mut rtt = Rtt::new(bounds);
        for sample in samples {
            prop_assert_eq!(rtt.on_sample(u64::MAX, sample), Ok(()));
            prop_assert!(rtt.timeout() <= ROUND_TRIP_MAX);
        }
        (0..timeouts).for_each(|_| rtt.on_timeout());
        prop_assert!((1..=ROUND_TRIP_MAX).contains(&rtt.timeout()));
    }
}

// spec: RTT-2, RTT-3
#[test]
fn a_steady_round_trip_brings_the_timeout_down_to_it() {
    let mut rtt = Rtt::new(BOUNDS);
    assert_eq!(rtt.timeout(), 5_000);
    assert_eq!(rtt.on_sample(0, 4_000), Ok(()));
    assert_eq!((rtt.smoothed(), rtt.variation()), (Some(4_000), Some(2_000)));
    assert_eq!(rtt.timeout(), 12_000);
    for now in 1..100 {
        assert_eq!(rtt.on_sample(now, 4_000), Ok(()));
    }
    assert!((4_000..4_010).contains(&rtt.timeout()));
    for now in 100..200 {
        assert_eq!(rtt.on_sample(now, 10), Ok(()));
    }
    assert_eq!(rtt.timeout(), 1_000, "the floor");
}

/// The sample of a retransmission's echo is as good as any other, and ends the doubling.
// spec: RTT-1, RTT-4
#[test]
fn timeouts_double_up_to_the_ceiling_until_the_next_sample() {
    let mut rtt = Rtt::new(BOUNDS);
    for doubled in 0..7 {
        assert_eq!(rtt.timeout(), 5_000 << doubled);
        rtt.on_timeout();
    }
    assert_eq!(rtt.timeout(), 640_000);
    for _ in 0..100 {
        rtt.on_timeout();
        assert_eq!(rtt.timeout(), 1_000_000);
    }
    assert_eq!(rtt.on_sample(1, 0), Err(Malformed));
    assert_eq!(rtt.timeout(), 1_000_000, "no sample at all");
    assert_eq!(rtt.on_sample(1, 2_000), Ok(()));
    assert_eq!(rtt.timeout(), 6_000);
}

/// One absurd echo costs a long timeout for a while, and no more than the ceiling.
// spec: RTT-5
#[test]
fn a_false_round_trip_sample_is_forgotten() {
    let mut rtt = Rtt::new(Bounds::RACK);
    for now in 0..100 {
        assert_eq!(rtt.on_sample(now, 30_000), Ok(()));
    }
    assert_eq!(rtt.timeout(), Bounds::RACK.floor);
    assert_eq!(rtt.on_sample(100, ROUND_TRIP_MAX), Ok(()));
    assert_eq!(rtt.timeout(), Bounds::RACK.ceiling);
    for now in 101..250 {
        assert_eq!(rtt.on_sample(now, 30_000), Ok(()));
    }
    assert_eq!(rtt.timeout(), Bounds::RACK.floor);
}

// spec: RTT-6
#[test]
fn the_shortest_round_trip_is_that_of_late() {
    let mut rtt = Rtt::new(BOUNDS);
    let mut at = |now, sample| {
        assert_eq!(rtt.on_sample(now, sample), Ok(()));
        rtt.shortest().expect("there was a sample")
    };
    assert_eq!(at(0, 50), 50);
    assert_eq!(at(1, 20), 20);
    assert_eq!(at(SHORTEST_WINDOW, 40), 20, "of the window before");
    assert_eq!(at(2 * SHORTEST_WINDOW - 1, 45), 20);
    assert_eq!(at(2 * SHORTEST_WINDOW, 60), 40);
    assert_eq!(at(4 * SHORTEST_WINDOW, 70), 70, "both are over");
}

/// In whole units, and of nothing that lies before the last look that has left nothing.
// spec: RTT-7
#[test]
fn lateness_is_measured_since_the_last_look_that_emptied_the_socket() {
    let mut looks = Looks::all_the_time(100);
    for (at, units) in [(100 + UNIT - 1, 0), (100 + UNIT, 1), (100 + 3 * UNIT - 1, 2)] {
        looks.look(at);
        assert_eq!(looks.late(), units, "something was left each time");
    }
    looks.emptied();
    assert_eq!(looks.late(), 0);
    let most = looks.now() + 255 * UNIT;
    for (at, units) in [(most - 1, 254), (most, UNITS_MAX), (u64::MAX, UNITS_MAX)] {
        looks.look(at);
        assert_eq!(looks.late(), units);
    }
}

/// A frame that is stamped before a gap may leave at its end, and a frame that is found behind one
/// may have come at its beginning.
// spec: RTT-8
#[test]
fn a_host_has_caused_the_gaps_that_a_round_trip_begins_and_ends_with() {
    let mut looks = Looks::all_the_time(0);
    let mut look = |at| {
        looks.look(at);
        looks.emptied();
    };
    [10, 20, 20 + 9 * UNIT, 30 + 9 * UNIT].into_iter().for_each(&mut look);
    let now = 30 + 9 * UNIT;
    assert_eq!(looks.own_share(19), 0, "before the gap, at a look that was followed by another");
    assert_eq!(looks.own_share(20), 9 * UNIT);
    assert_eq!(looks.own_share(25), 9 * UNIT - 5, "stamped between two looks");
    assert_eq!(looks.own_share(20 + 9 * UNIT), 0);
    looks.look(now + 100);
    assert_eq!(looks.own_share(20), 9 * UNIT + 100, "and found late");
    for gap in 1..=8 {
        looks.look(now + 100 + gap * UNIT);
    }
    looks.emptied();
    assert_eq!(looks.own_share(20), 0, "eight gaps ago nobody remembers");
}

#[test]
#[should_panic(expected = "bounds are in order")]
fn a_floor_above_the_ceiling_is_our_own_mistake() {
    Rtt::new(Bounds { floor: 2_000, initial: 1_500, ceiling: 1_000 });
}

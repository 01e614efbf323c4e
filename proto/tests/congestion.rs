//! The congestion window: its rules one by one, and what they give at a simulated bottleneck.
#[path = "congestion/bottleneck.rs"]
mod bottleneck;

use ayre_proto::limits::ROUND_TRIP_MAX;
use ayre_proto::link::congestion::{Config, Delay, ONE, Scaling, Swift, Windows};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// The frames of one link that never fills its window, one at a time.
// spec: CONG-2
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut swift = Swift::new(Config::RACK);
    for now in (0..10 * MS).step_by(20_000) {
        swift.on_send(now, 0);
        swift.on_ack(now + 20_000, 1, Delay::of_network(20_000));
    }
    assert_eq!(swift.window(), 8 * ONE);
    swift.on_send(10 * MS, 7);
    swift.on_ack(10 * MS + 40_000, 8, Delay::of_network(20_000));
    assert_eq!(swift.window(), 8 * ONE + ONE / 4);
    swift.on_ack(10 * MS + 40_001, 8, Delay::of_network(20_000));
    assert_eq!(swift.window(), 8 * ONE + ONE / 4, "more than two round trips later");
    swift.on_ack(10 * MS + 40_000, 8, Delay::of_network(swift.target_delay()));
    assert_eq!(swift.window(), 8 * ONE + ONE / 4, "neither more nor less at the target");
}

// spec: CONG-3, CONG-5
#[test]
fn a_window_shrinks_at_most_once_in_a_round_trip() {
    let mut swift = Swift::new(Config::RACK);
    let target = swift.target_delay();
    swift.on_ack(MS, 1, Delay::of_network(2 * target));
    let once = swift.window();
    let want = f64::from(8 * ONE) * (1.0 - 0.8 / 2.0);
    assert!((f64::from(once) - want).abs() < 16.0, "{once} {want}");
    swift.on_ack(MS + target, 1, Delay::of_network(2 * target));
    swift.on_timeout(MS + 2 * target - 1);
    assert_eq!(swift.window(), once);
    swift.on_timeout(MS + 2 * target);
    assert_eq!(swift.window(), once / 2 + once % 2);
    swift.on_ack(10_000 * MS, 1, Delay::of_network(ROUND_TRIP_MAX));
    assert_eq!(swift.window(), (once / 2 + once % 2).div_ceil(2), "not by more than a half");
}

/// Each frame counts, also within a round trip, but all together cost no more than a half. A loss
/// by chance never keeps a delay from having its effect.
// spec: CONG-3, CONG-5
#[test]
fn a_window_shrinks_by_the_number_of_lost_frames() {
    let mut swift = Swift::new(Config::RACK);
    let target = swift.target_delay();
    swift.on_ack(MS, 0, Delay::of_network(target - 1));
    swift.on_loss(MS, 1);
    assert_eq!(swift.window(), 8 * ONE / 32 * 31);
    swift.on_loss(MS + 1, 2);
    assert_eq!(swift.window(), 8 * ONE / 32 * 31 / 32 * 30);
    swift.on_ack(MS + 2, 1, Delay::of_network(target * 5 / 4));
    let delayed = f64::from(8 * ONE) * 31.0 / 32.0 * 30.0 / 32.0 * (1.0 - 0.8 / 5.0);
    // The smaller window's target is a little higher.
    assert!((f64::from(swift.window()) / delayed - 1.0).abs() < 0.01, "{}", swift.window());
    swift.on_loss(MS + 3, 20);
    assert_eq!(swift.window(), 4 * ONE, "a half in all");
    swift.on_loss(MS + 3 + 2 * target, 100);
    assert_eq!(swift.window(), 2 * ONE, "and of that, a half a round trip later");
}

/// The part of a round trip that hosts have caused says nothing of the network. The time that both
/// have caused together with it is as long as it takes for one decrease to show.
// spec: CONG-3, CONG-10
#[test]
fn a_delay_that_the_hosts_have_caused_does_not_take_from_the_window() {
    let mut swift = Swift::new(Config::RACK);
    let target = swift.target_delay();
    for round in 1..100 {
        swift.on_ack(round * 10 * MS, 1, Delay { round_trip: 9 * MS, network: target - 1 });
    }
    assert_eq!(swift.window(), 8 * ONE, "nor add to it, where it was not full");
    swift.on_send(1000 * MS, 7);
    swift.on_ack(1009 * MS, 8, Delay { round_trip: 9 * MS, network: 0 });
    assert_eq!(swift.window(), 8 * ONE + ONE / 4, "full, two round trips ago at the most");
    swift.on_ack(1010 * MS, 1, Delay { round_trip: 9 * MS, network: 2 * target });
    assert!(swift.window() < 8 * ONE, "the rest is the network's");
}

fn calm() -> Config {
    let window = Windows { min: ONE, calm: 4 * ONE, ..Config::RACK.window };
    Config { window, calm_after: 1000 * MS, ..Config::RACK }
}

/// Delays alone leave the calm window, and below it no delay keeps it from growing. After a loss
/// they take all but the least, until nothing was lost for a while.
// spec: CONG-10
#[test]
fn delays_keep_the_calm_window_as_long_as_no_frame_is_lost() {
    let mut swift = Swift::new(calm());
    let queue = Delay::of_network(5 * MS);
    for round in 1..10 {
        swift.on_ack(round * 10 * MS, 1, queue);
    }
    assert_eq!(swift.window(), 4 * ONE);
    swift.on_loss(100 * MS, 1);
    for round in 11..20 {
        swift.on_ack(round * 10 * MS, 1, queue);
    }
    assert_eq!(swift.window(), ONE, "something was lost");
    swift.on_send(1099 * MS, 0);
    swift.on_ack(1099 * MS, 1, queue);
    assert_eq!(swift.window(), ONE, "just now");
    for round in 0..1000 {
        let now = 1100 * MS + round * 10 * MS;
        swift.on_send(now, 3);
        swift.on_ack(now, 1, queue);
        assert!(swift.window() <= 4 * ONE + ONE / 4);
    }
    assert!(swift.window() >= 4 * ONE, "not any more");
}

/// Each frame adds one until the first decrease, whatever that is for.
// spec: CONG-2
#[test]
fn a_window_doubles_in_a_round_trip_until_it_is_decreased() {
    let config = Config { slow_start: true, ..Config::RACK };
    let full = |swift: &mut Swift, at: u64| {
        let window = swift.window() / ONE;
        swift.on_send(at, window - 1);
        swift.on_ack(at, window, Delay::of_network(20_000));
    };
    let decreases: [fn(&mut Swift); 3] = [
        |swift| swift.on_loss(MS, 1),
        |swift| swift.on_timeout(MS),
        |swift| swift.on_ack(MS, 0, Delay::of_network(MS)),
    ];
    for decrease in decreases {
        let mut swift = Swift::new(config);
        full(&mut swift, 0);
        full(&mut swift, 0);
        assert_eq!(swift.window(), 32 * ONE);
        decrease(&mut swift);
        let before = swift.window();
        full(&mut swift, 2 * MS);
        assert!(swift.window() <= before + ONE / 4, "by the increase");
    }
}

/// A host that did not look for as long as the timeouts took: they never were.
// spec: CONG-11
#[test]
fn timeouts_that_a_host_has_caused_are_forgotten() {
    let mut swift = Swift::new(calm());
    for timeout in 1..4 {
        swift.on_timeout(timeout * MS);
    }
    assert_eq!(swift.window(), ONE);
    swift.on_excuse();
    assert_eq!(swift.window(), 8 * ONE);
    swift.on_ack(10 * MS, 1, Delay::of_network(5 * MS));
    swift.on_ack(20 * MS, 1, Delay::of_network(5 * MS));
    assert_eq!(swift.window(), 4 * ONE, "and it is still calm");
    swift.on_timeout(30 * MS);
    swift.on_loss(31 * MS, 1);
    let left = swift.window();
    swift.on_excuse();
    assert_eq!(swift.window(), left, "a loss is a loss");
}

// spec: CONG-6
#[test]
fn timeouts_in_a_row_leave_the_smallest_window() {
    let mut swift = Swift::new(Config::RACK);
    for timeout in 1..5 {
        swift.on_timeout(timeout * MS);
        assert_eq!(swift.window(), (8 * ONE) >> timeout);
    }
    swift.on_ack(5 * MS, 1, Delay::of_network(20_000));
    swift.on_timeout(6 * MS);
    assert_eq!(swift.window(), (8 * ONE) >> 5, "the first one again");
    for timeout in 7..11 {
        swift.on_ack(timeout * MS, 0, Delay::of_network(20_000));
        swift.on_timeout(timeout * MS);
    }
    assert_eq!(swift.window(), Config::RACK.window.min);
    swift.on_timeout(12 * MS);
    assert_eq!(swift.window(), Config::RACK.window.min);
}

/// A quarter of a frame in flight is one frame in four round trips.
// spec: CONG-1, CONG-7
#[test]
fn a_window_below_one_frame_is_a_pace() {
    let window = Windows { min: ONE / 4, calm: ONE / 4, initial: ONE / 4, max: 2 * ONE };
    let mut swift = Swift::new(Config { window, ..Config::RACK });
    assert!(swift.may_send(0, 0) && !swift.may_send(0, 1), "the first frame need not wait");
    swift.on_send(1_000, 0);
    assert_eq!(swift.next_send(1_000), Some(201_000), "four times the base");
    swift.on_ack(61_000, 0, Delay::of_network(60_000));
    assert!(swift.window() == ONE / 4 && !swift.may_send(240_999, 0));
    assert_eq!(swift.next_send(240_999), Some(241_000));
    assert!(swift.may_send(241_000, 0) && !swift.may_send(241_000, 1));
    assert_eq!(swift.next_send(241_000), None);
}

/// With nothing in flight no answer would ever correct it.
// spec: CONG-7
#[test]
fn one_absurd_delay_does_not_stop_a_paced_link() {
    let mut swift = Swift::new(Config::RACK);
    for timeout in 1..=5 {
        swift.on_timeout(timeout * MS);
    }
    swift.on_send(6 * MS, 0);
    swift.on_ack(7 * MS, 1, Delay::of_network(u64::MAX));
    let longest = 100_000 * 1024;
    assert_eq!(swift.next_send(7 * MS), Some(6 * MS + longest));
}

#[derive(Clone, Debug)]
enum Step {
    Send { in_flight: u32 },
    Ack { frames: u32, delay: u64 },
    Loss { frames: u32 },
    Timeout,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let frames = prop_oneof![4 => 0..100u32, 1 => any::<u32>()];
    let delay = prop_oneof![4 => 1..200_000u64, 1 => any::<u64>(), 1 => Just(0)];
    let step = prop_oneof![
        4 => prop_oneof![0..64u32, any::<u32>()].prop_map(|in_flight| Step::Send { in_flight }),
        6 => (frames.clone(), delay).prop_map(|(frames, delay)| Step::Ack { frames, delay }),
        1 => frames.prop_map(|frames| Step::Loss { frames }),
        1 => Just(Step::Timeout),
    ];
    prop::collection::vec((prop_oneof![0..200_000u64, 0..=u64::MAX >> 10], step), 1..200)
}

/// Sound configurations, many of them silly.
fn configs() -> impl Strategy<Value = Config> {
    let window = || 1..=u32::MAX;
    let windows = (window(), window(), window(), ONE..=u32::MAX).prop_map(|(a, b, c, d)| {
        let mut sorted = [a, b, c, d];
        sorted.sort_unstable();
        let [min, calm, initial, max] = sorted;
        Windows { min, calm, initial, max }
    });
    let scaling = (0..=ROUND_TRIP_MAX, 1..ONE, 2 * ONE..=u32::MAX);
    let scaling = scaling.prop_map(|(range, start, end)| Scaling { range, start, end });
    let ratios = (any::<u32>(), 0..=ONE, 0..=ONE, any::<u32>());
    let starts = (any::<bool>(), 0..10_000_000_000u64);
    let any = (1..=ROUND_TRIP_MAX, scaling, ratios, 1..10u32, windows, starts).prop_map(
        |(base_target, scaling, ratios, timeouts_max, window, (slow_start, calm_after))| {
            let (increase, beta, decrease_max, loss) = ratios;
            Config {
                base_target,
                scaling,
                increase,
                slow_start,
                calm_after,
                beta,
                decrease_max,
                loss,
                timeouts_max,
                window,
            }
        },
    );
    prop_oneof![Just(Config::RACK), any]
}

proptest! {
    /// For all inputs, nothing overflows, the window stays in its bounds and moves by the rules.
    // spec: CONG-1, CONG-2, CONG-3, CONG-5, CONG-7, CONG-8
    #[test]
    fn windows_stay_in_their_bounds_and_follow_the_formulas(config in configs(), steps in steps()) {
        let mut swift = Swift::new(config);
        let mut now = 0u64;
        let one = f64::from(ONE);
        for (after, step) in steps {
            now = now.saturating_add(after);
            let (before, target) = (swift.window(), swift.target_delay());
            let cut = (f64::from(before) * (1.0 - f64::from(config.decrease_max) / one)) as u32;
            match step {
                Step::Send { in_flight } => swift.on_send(now, in_flight),
                Step::Loss { frames } => swift.on_loss(now, frames),
                Step::Timeout => swift.on_timeout(now),
                Step::Ack { frames, delay } => {
                    swift.on_ack(now, frames, Delay::of_network(delay));
                    let window = f64::from(before) / one;
                    let gain = f64::from(config.increase) * f64::from(frames) / window.max(1.0);
                    let doubled = if config.slow_start { one * f64::from(frames) } else { 0.0 };
                    let gain = gain.max(doubled);
                    let grown = f64::from(swift.window()) - f64::from(before);
                    prop_assert!(grown <= gain + 1.0, "{grown} of {gain}");
                    // One that cannot be counts as the nearest that can.
                    let delay = delay.clamp(1, ROUND_TRIP_MAX);
                    prop_assert!(grown <= 0.0 || delay < target || before < config.window.calm);
                    prop_assert!(grown >= 0.0 || delay >= target);
                }
            }
            let after = swift.window();
            prop_assert!((config.window.min..=config.window.max).contains(&after));
            prop_assert!(after >= cut.min(before) || matches!(step, Step::Timeout));
            prop_assert!(!swift.may_send(now, after / ONE + 1));
            prop_assert!(swift.next_send(now).is_none_or(|next| after < ONE && next > now));
            let longest = config.base_target + config.scaling.range;
            let wait = swift.next_send(now).map_or(0, |next| next - now);
            prop_assert!(u128::from(wait) * u128::from(after) <= u128::from(longest) << 16);
        }
    }

    // spec: CONG-4
    #[test]
    fn target_delays_fall_with_the_root_of_the_window(
        window in prop_oneof![64..=2 * ONE, ONE..=256 * ONE],
    ) {
        let windows = Windows { initial: window, ..Config::RACK.window };
        let found = Swift::new(Config { window: windows, ..Config::RACK }).target_delay() as f64;
        let root = |window: f64| 1.0 / window.sqrt();
        let own = (f64::from(window) / f64::from(ONE)).clamp(0.125, 16.0);
        let share = (root(own) - root(16.0)) / (root(0.125) - root(16.0));
        let want = 50_000.0 * (1.0 + share);
        prop_assert!((found - want).abs() < 2.0, "{found} {want}");
    }
}

#[test]
#[should_panic(expected = "windows are in order")]
fn a_window_without_a_lower_bound_is_our_own_mistake() {
    let window = Windows { min: 0, ..Config::RACK.window };
    Swift::new(Config { window, ..Config::RACK });
}

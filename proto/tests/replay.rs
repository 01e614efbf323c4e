//! The window over packet numbers, beside a set of all that have come.
use ayre_proto::link::replay::{REPLAY_WINDOW, Replay};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Numbers that move on, fall back a little, or leap.
fn packets() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        8 => -20..30i64,
        1 => -600..600i64,
        1 => Just(REPLAY_WINDOW as i64),
        1 => 0..100_000i64,
    ];
    prop::collection::vec(step, 1..300).prop_map(|steps| {
        let walk = steps.into_iter().scan(1i64, |at, step| {
            *at = (*at + step).max(0);
            Some(*at as u64)
        });
        walk.collect()
    })
}

proptest! {
    /// A packet is new once; what is too old to be told apart is not.
    // spec: LINK-15
    #[test]
    fn every_packet_is_new_at_most_once(packets in packets()) {
        let (mut replay, mut come) = (Replay::new(), BTreeSet::new());
        for packet in packets {
            let highest = come.last().copied().unwrap_or(0);
            let is_old = packet == 0 || packet + REPLAY_WINDOW <= highest;
            let expected = !is_old && !come.contains(&packet);
            prop_assert_eq!(replay.is_new(packet), expected, "packet {} after {}", packet, highest);
            if expected {
                come.insert(packet);
            }
        }
    }
}

/// The last numbers there are work as the first ones do.
// spec: LINK-15
#[test]
fn the_highest_packet_number_is_accepted() {
    let mut replay = Replay::new();
    assert!(replay.is_new(u64::MAX - 1));
    assert!(replay.is_new(u64::MAX));
    assert!(replay.is_new(u64::MAX - REPLAY_WINDOW + 1));
    assert!(!replay.is_new(u64::MAX - REPLAY_WINDOW));
    assert!(!replay.is_new(u64::MAX));
}

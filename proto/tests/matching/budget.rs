//! How much is kept of whom.
use ayre_proto::matching::{Budget, Share};
use proptest::prelude::*;

/// Sends messages of `bytes` bytes until no more of the source can be kept; returns how many came.
fn flood(budget: &mut Budget, source: u32, bytes: u64) -> u64 {
    let mut count = 0;
    while budget.keep(source, bytes) != Share::Over {
        count += 1;
    }
    count
}

// spec: MATCH-13
#[test]
fn a_source_that_floods_leaves_room_for_others() {
    let mut budget = Budget::new(1200, 40);
    assert_eq!(flood(&mut budget, 0, 100), 5, "the sixth is over: alone, half of it");
    assert_eq!(flood(&mut budget, 1, 100), 2, "then half of what is left");
    assert_eq!(flood(&mut budget, 2, 10), 14, "however small");
    // However many have flooded, one that had nothing is not over with little.
    for source in 3..20 {
        let free = budget.limit() - budget.kept();
        assert!(budget.keep(source, free / 4) < Share::Over);
    }
}

// spec: MATCH-13
#[test]
fn a_source_over_its_share_recovers_once_enough_is_freed() {
    let mut budget = Budget::new(1000, 2);
    assert_eq!(budget.keep(0, 200), Share::Fair, "four times as much is free");
    assert_eq!(budget.keep(0, 1), Share::Much);
    budget.give_back(0, 80);
    assert!(!budget.has_little(0), "not at once, so that it is not told at each message");
    budget.give_back(0, 10);
    assert!(budget.has_little(0));
    assert_eq!(budget.keep(1, 0), Share::Fair, "the other one has nothing");
}

// spec: MATCH-13
#[test]
fn without_a_budget_no_message_is_kept() {
    let mut budget = Budget::new(0, 1);
    assert_eq!(budget.keep(0, 1), Share::Over);
    budget.give_back(0, 1);
    budget.set_limit(u64::MAX);
    assert_eq!(budget.keep(0, u64::MAX), Share::Over, "what cannot be counted is too much");
}

proptest! {
    /// The free part and the share of each source are added up anew at each step.
    // spec: MATCH-13
    #[test]
    fn the_share_of_a_source_follows_the_rule(
        limit in 0..5000u64,
        steps in prop::collection::vec((0..3u32, 0..400u64, any::<bool>()), 1..200),
    ) {
        let (mut budget, mut of) = (Budget::new(limit, 3), [0u64; 3]);
        for (source, bytes, comes) in steps {
            let own = &mut of[source as usize];
            if !comes {
                let bytes = bytes.min(*own);
                *own -= bytes;
                budget.give_back(source, bytes);
            } else {
                *own += bytes;
                let own = *own;
                let free = limit.saturating_sub(of.iter().sum());
                let due = match own {
                    _ if own * 4 <= free => Share::Fair,
                    _ if own < free => Share::Much,
                    _ => Share::Over,
                };
                prop_assert_eq!(budget.keep(source, bytes), due);
            }
            let free = limit.saturating_sub(of.iter().sum());
            prop_assert_eq!(budget.kept(), of.iter().sum::<u64>());
            prop_assert_eq!(budget.has_little(source), of[source as usize] * 8 <= free);
        }
    }
}

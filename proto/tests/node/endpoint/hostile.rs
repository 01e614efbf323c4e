//! Remotes that say anything.
use super::oracle::Pattern;
use super::ways::{BASE, KEY};
use super::world::World;
use crate::dice::{Dice, seeds};
use ayre_proto::endpoint::Head;

const STEPS: usize = 2000;

/// Words that a remote may hope for.
fn word(dice: &mut Dice) -> u64 {
    match dice.below(8) {
        0 => dice.below(4),
        1 => dice.below(600),
        2 => dice.below(1 << 20),
        3 => KEY,
        4 => BASE + dice.below(5000),
        5 => 1 << 63 | dice.below(4),
        6 => u64::MAX - dice.below(3),
        _ => dice.below(u64::MAX),
    }
}

// spec: ENV-2, ENV-17
#[test]
fn arbitrary_records_cause_no_panic_and_other_remotes_are_served() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..seeds(60) {
        let mut world = World::new(3, 1 << 30, seed);
        let mut dice = Dice(seed);
        for _ in 0..20 {
            world.receive_of(0, Pattern { source: Some(2), tag: None }, (1000, None, 0));
            world.send(0, 1, None);
            world.write(0, 1);
            world.read(0, 1);
            world.update(0, 1);
        }
        for _ in 0..STEPS {
            let bytes = [0, 8, 8 * dice.below(130), dice.below(1100)][dice.below(4) as usize];
            let head = Head {
                tag: dice.below(128) as u32,
                words: std::array::from_fn(|_| word(&mut dice)),
                len: 8 * dice.below(7) as usize + bytes as usize,
            };
            match world.say(0, 1, &head) {
                true => taken += 1,
                false => refused += 1,
            }
        }
        // The third one sends, and is received.
        let before = world.seen.received;
        assert!(world.send_of((2, 0), None, 100), "its lane is empty");
        assert!(world.take(0, 2));
        assert_eq!(world.seen.received, before + 1);
    }
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused");
}

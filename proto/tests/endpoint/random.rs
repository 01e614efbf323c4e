//! Any operations of any endpoints, at any pace.
use crate::dice::seeds;
use crate::world::{Seen, World};

const STEPS: usize = 3000;
const BUDGET: u64 = 1 << 40;

fn step(world: &mut World) {
    let count = world.count() as u64;
    let (own, other) = (world.dice.below(count) as usize, world.dice.below(count) as usize);
    match world.dice.below(32) {
        0..4 => _ = world.send(own, other, None),
        4..8 => world.receive(own),
        8 => world.write(own, other),
        9 => world.read(own, other),
        10 => world.update(own, other),
        11 => world.find(own),
        12 if world.dice.below(3) == 0 => world.cancel(own),
        13..28 => _ = world.take(own, other),
        _ => _ = world.push_on(own),
    }
}

fn run(seed: u64, count: usize, dies: bool) -> Seen {
    let mut world = World::new(count, BUDGET, seed);
    for at in 0..STEPS {
        step(&mut world);
        if dies && at == STEPS / 2 {
            let [one, other] = [0, 1].map(|_| world.dice.below(count as u64) as usize);
            world.kill(one, other);
        }
    }
    world.finish();
    world.seen
}

fn sum(of: impl Fn(&Seen) -> u64, all: &[Seen]) -> u64 {
    all.iter().map(of).sum()
}

// spec: ENV-3, ENV-4, ENV-7, ENV-15, ENV-18, ENV-24, ENV-25, ENV-27, ENV-28, ENV-30, ENV-31
// spec: MATCH-9
#[test]
fn each_message_goes_where_it_is_to_and_each_operation_ends_once() {
    let all: Vec<_> = (0..seeds(40)).map(|seed| run(seed, 2 + seed as usize % 3, false)).collect();
    assert!(sum(|seen| seen.received, &all) > 5000, "{:?}", all.last());
    assert!(sum(|seen| seen.cut, &all) > 500 && sum(|seen| seen.found, &all) > 100);
    assert!(sum(|seen| seen.touched, &all) > 3000 && sum(|seen| seen.cancelled, &all) > 100);
    assert!(sum(|seen| seen.full, &all) > 100, "lanes were full");
}

// spec: ENV-8
#[test]
fn what_is_under_way_with_one_that_dies_ends_and_nothing_else() {
    let all: Vec<_> = (0..seeds(40)).map(|seed| run(seed, 2 + seed as usize % 3, true)).collect();
    assert!(sum(|seen| seen.dead, &all) > 50, "{}", sum(|seen| seen.dead, &all));
}

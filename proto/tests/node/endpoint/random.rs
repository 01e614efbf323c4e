//! Any operations of any endpoints, at any pace.
use super::world::{Seen, World};
use crate::dice::seeds;

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
        _ => _ = world.push_waiting(own),
    }
}

/// Over nodes, each on a host of its own: how many frames went again, too, and how many bytes went
/// by rings.
fn run_over_hosts(seed: u64, count: usize) -> (Seen, [u64; 2]) {
    let mut world = World::of_hosts(count, BUDGET, seed);
    for _ in 0..STEPS {
        step(&mut world);
        if world.dice.below(3) == 0 {
            world.carry();
        }
    }
    world.finish();
    (world.seen, [world.again(), world.ringed()])
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

// spec: ENV-3, ENV-15, ENV-25, ENV-27, ENV-33, LINK-1, WIRE-14
#[test]
fn over_a_network_that_errs_all_is_as_on_one_host() {
    let all = (0..seeds(12)).map(|seed| run_over_hosts(seed, 2 + seed as usize % 2));
    let (seen, by): (Vec<_>, Vec<_>) = all.unzip();
    assert!(sum(|seen| seen.received, &seen) > 1000, "{:?}", seen.last());
    assert!(sum(|seen| seen.touched, &seen) > 500, "{:?}", seen.last());
    let [again, ringed] = [0, 1].map(|at| by.iter().map(|by| by[at]).sum::<u64>());
    assert!(again > 500, "the network errs: {by:?}");
    assert!(ringed > 5_000_000, "long messages go by rings, all the way round: {by:?}");
}

// spec: ENV-8
#[test]
fn a_death_ends_only_operations_with_the_dead_remote() {
    let all: Vec<_> = (0..seeds(40)).map(|seed| run(seed, 2 + seed as usize % 3, true)).collect();
    assert!(sum(|seen| seen.dead, &all) > 50, "{}", sum(|seen| seen.dead, &all));
}

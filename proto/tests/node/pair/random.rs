//! Any operations of both ports on each other, at any pace, against an oracle.
use super::driver::Pair;
use super::port::lanes;
use crate::dice::{Dice, seeds};
use ayre_proto::limits::LANE_LINES_MIN;
use ayre_proto::node::initiator::Bounds;

const STEPS: usize = 3000;

fn run(seed: u64, is_lane: bool, room: u64, bounds: Bounds) -> (usize, usize) {
    let mut pair = Pair::new(seed, is_lane, room, bounds);
    for _ in 0..STEPS {
        pair.step();
    }
    pair.drain();
    let sum = |of: fn(&super::driver::Side) -> usize| pair.sides.iter().map(of).sum();
    (sum(|side| side.ended), sum(|side| side.refused))
}

// spec: POST-1, POST-6, PUT-1, PUT-3, PUT-4, GET-1, ORD-1, NOTI-5, NOTI-9, BATCH-2, LANE-10, ERR-4
#[test]
fn operations_over_lanes_equal_sequential_execution() {
    let (mut ended, mut refused) = (0, 0);
    for seed in 0..seeds(60) {
        let lines = LANE_LINES_MIN as u64 + Dice(seed).below(60);
        let (more_ended, more_refused) = run(seed, true, lines, lanes(lines as usize));
        ended += more_ended;
        refused += more_refused;
    }
    assert!(ended > 10_000 && refused > 100, "{ended} ended, {refused} were refused");
}

// spec: WIRE-1, MTU-1, MTU-8, BATCH-2
#[test]
fn operations_over_frames_equal_sequential_execution() {
    let mut ended = 0;
    for seed in 0..seeds(60) {
        let mut dice = Dice(seed);
        let most = dice.between(1200, 4000) as usize;
        let worth = dice.between(500, most as u64) as usize;
        let responses = 60 * 56;
        let bounds = Bounds { requests: None, responses, most, worth };
        ended += run(seed, false, dice.between(2, 40), bounds).0;
    }
    assert!(ended > 10_000, "{ended} ended");
}

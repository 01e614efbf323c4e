//! Access epochs between an owner and one origin.
use crate::data::{assert_same, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, Region};
use crate::seed::Dice;
use crate::world::{Memory, World};
use ayre::memory::EpochStep;
use std::thread::yield_now;

const STEPS: [EpochStep; 4] =
    [EpochStep::Post, EpochStep::Start, EpochStep::Complete, EpochStep::Wait];

/// Only the step whose turn it is changes the word; all others leave it and say so.
// spec: EPOCH-1
pub fn steps_out_of_turn_decline<F: Fabric>(fabric: F) {
    let (mut world, mut dice) = (World::open(fabric), Dice::new(0));
    let Memory { region, remote, .. } = world.memory(16);
    assert_eq!(EpochStep::Post.transition().0, 0, "zeros are an idle word");
    world.drive(|port| {
        let mut turn = 0;
        for _ in 0..400 {
            let index = dice.index(STEPS.len());
            let (step, word) = (STEPS[index], region.load(8));
            let found = port.try_epoch_step(&remote, 8, step).expect("an answer");
            let taken = found.success;
            assert_eq!(found.value, word, "the state found");
            assert_eq!(taken, index == turn, "{step:?} in state {word}");
            if taken {
                assert_eq!(region.load(8), step.transition().1, "{step:?}");
                turn = (turn + 1) % STEPS.len();
            } else {
                assert_eq!(region.load(8), word, "{step:?} declined");
            }
        }
    });
}

/// The owner sees all that an origin did between start and complete after its wait.
// spec: EPOCH-2, EPOCH-3
pub fn an_epoch_ends_with_its_data<F: Fabric>(fabric: F) {
    const LEN: usize = 3000;
    const EPOCHS: u64 = 100;
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LEN + 8);
    world.both(
        |port| {
            for epoch in 0..EPOCHS {
                let step = |port: &mut F::Port, step| {
                    while !port.try_epoch_step(&remote, 0, step).expect("an answer").success {
                        yield_now();
                    }
                };
                step(port, EpochStep::Start);
                let data = pattern(epoch, LEN);
                port.put(&remote, 8, &data, Options::new()).expect("a put");
                step(port, EpochStep::Complete);
            }
        },
        |port| {
            for epoch in 0..EPOCHS {
                let posted = region.atomic(0, &EpochStep::Post.atomic());
                assert!(posted.success, "the memory is the owner's: {posted:?}");
                while !region.atomic(0, &EpochStep::Wait.atomic()).success {
                    port.progress();
                    yield_now();
                }
                let mut found = vec![0; LEN];
                region.read(8, &mut found);
                assert_same(&found, &pattern(epoch, LEN), &epoch);
            }
        },
    );
}

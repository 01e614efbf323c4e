//! Remotes that send more than can be kept.
use super::world::World;

const BUDGET: u64 = 1 << 20;

// spec: ENV-36, ENV-37
#[test]
fn a_flooding_remote_is_refused_and_others_go_on() {
    let mut world = World::new(3, BUDGET, 3);
    // Nobody receives: what is short is kept, and counts.
    for _ in 0..10_000 {
        world.send(1, 0, Some(400));
        while world.take(0, 1) {}
        world.push_waiting(0);
        while world.take(1, 0) {}
        if !world.around.flooded.is_empty() {
            break;
        }
    }
    assert_eq!(
        (&world.around.shut_out[0][..], &world.around.flooded[..]),
        (&[1][..], &[(1, 0)][..])
    );
    assert!(!world.around.shut_out[1].contains(&0), "the one that keeps is not to blame");
    world.kill(0, 1);
    assert!(world.send(2, 0, Some(400)), "another one finds room");
    world.finish();
    assert!(world.seen.received > 0);
}

// spec: ENV-37
#[test]
fn one_of_which_much_is_kept_keeps_long_messages_itself() {
    let mut world = World::new(2, 8 * BUDGET, 5);
    (world.around.wires[1][0].is_linked, world.around.wires[0][1].is_linked) = (true, true);
    // 16 KiB each, until they ask; then nothing of them is kept but that they do.
    let mut asked = 0;
    for _ in 0..2000 {
        let before = world.around.wires[1][0].lane.len();
        world.send(1, 0, Some(16 << 10));
        let is_ask = world.around.wires[1][0].lane.get(before).is_some_and(|it| it.tag & 15 == 3);
        asked += usize::from(is_ask);
        while world.take(0, 1) {}
        world.push_waiting(0);
        while world.take(1, 0) {}
    }
    assert!(asked > 1000 && world.around.flooded.is_empty(), "{asked} asked");
    world.finish();
}

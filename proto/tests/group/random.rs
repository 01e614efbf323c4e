//! Random worlds: sends, joins, leaves, deaths, in any order. `SEEDS` says how many, from
//! `FIRST` on, or `SEED` which.
use super::dice::{Dice, seeds};
use super::oracle::Entry;
use super::world::{Counts, State, World};
use ayre_proto::group::{Answer, Member, Options};
use std::collections::BTreeMap;

/// How one world is.
struct Plan {
    nodes: usize,
    steps: u64,
    options: Options,
    /// In a thousand steps.
    sends: u64,
    joins: u64,
    leaves: u64,
    kills: u64,
    exiles: u64,
    asks: u64,
    ambush: u64,
    branches: u8,
}

impl Plan {
    fn new(dice: &mut Dice) -> Self {
        let nodes = if dice.percent(10) { 12 + dice.below(10) } else { 2 + dice.below(10) };
        // Changes upon changes, with few messages between.
        let is_storm = dice.percent(30);
        let often = |dice: &mut Dice, chance, most| {
            if dice.percent(chance) { 1 + dice.below(most) } else { 0 }
        };
        Self {
            nodes: nodes as usize,
            steps: if is_storm { 100 } else { 300 } + dice.below(700),
            options: Options {
                window: [1, 2, 3, 8, 40, 64][dice.below(6) as usize],
                requests: [1, 2, 8][dice.below(3) as usize],
            },
            sends: 20 + dice.below(if is_storm { 100 } else { 300 }),
            joins: 10 + dice.below(if is_storm { 200 } else { 60 }),
            leaves: often(dice, 60, if is_storm { 100 } else { 20 }),
            kills: often(dice, 70, if is_storm { 60 } else { 20 }),
            exiles: often(dice, 15, 5),
            asks: often(dice, 30, 60),
            ambush: often(dice, 50, 40),
            branches: [1, 2, 2, 3, 64][dice.below(5) as usize],
        }
    }
}

/// One of those for which it holds.
fn pick(world: &mut World, holds: impl Fn(&World, usize) -> bool) -> Option<usize> {
    let all: Vec<_> = (0..world.nodes.len()).filter(|at| holds(world, *at)).collect();
    if all.is_empty() {
        return None;
    }
    Some(all[world.dice.below(all.len() as u64) as usize])
}

fn is_unborn(world: &World, at: usize) -> bool {
    let node = &world.nodes[at];
    node.state == State::Alive && node.group.is_none() && node.guest.is_none()
}

fn act(world: &mut World, plan: &Plan) {
    let mut dice = world.dice.below(1000);
    let mut happens = |chance: u64| {
        let happens = dice < chance;
        dice = if happens { u64::MAX } else { dice.saturating_sub(chance) };
        happens
    };
    if happens(plan.sends) {
        if let Some(at) = pick(world, World::is_in) {
            for _ in 0..=world.dice.below(4) {
                let _ = world.multicast(at);
            }
        }
    } else if happens(plan.joins) {
        if let (Some(at), Some(door)) = (pick(world, is_unborn), pick(world, World::is_in)) {
            world.join(at, door);
        }
    } else if happens(plan.leaves) {
        let is_root = world.dice.percent(40);
        if let Some(at) = pick(world, |world, at| world.is_in(at) && (!is_root || leads(world, at)))
        {
            world.leave(at);
        }
    } else if happens(plan.asks) {
        let may_ask = |world: &World, at: usize| {
            world.nodes[at].state == State::Alive && world.nodes[at].group.is_none()
        };
        if let (Some(at), Some(door)) = (pick(world, may_ask), pick(world, World::is_in)) {
            world.ask(at, door);
        }
    } else if happens(plan.kills) {
        kill_some(world);
    } else if happens(plan.exiles)
        && let Some(at) = pick(world, World::is_in)
    {
        world.exile(at);
    }
}

/// Whether it is the root, in the eyes of anyone who lives.
fn leads(world: &World, at: usize) -> bool {
    (0..world.nodes.len()).any(|other| {
        world.is_in(other)
            && world.group(other).and_then(|group| group.view().members().next())
                == Some(Member(at as u32))
    })
}

/// Kills one member or several, at once or in the middle of their sends. Often these are the root
/// and the next ones, so that the new leader has less than others.
fn kill_some(world: &mut World) {
    let later = |world: &mut World| {
        if world.dice.percent(50) { 0 } else { world.dice.below(12) }
    };
    if world.dice.percent(30) {
        let Some(at) = pick(world, World::is_in) else { return };
        let members: Vec<_> = world.group(at).expect("a member").view().members().collect();
        let count = 1 + world.dice.below(3) as usize;
        for member in members.iter().take(count) {
            if world.is_in(member.0 as usize) {
                let later = later(world);
                world.kill_after(member.0 as usize, later);
            }
        }
        return;
    }
    for _ in 0..=world.dice.below(3) / 2 * world.dice.below(4) {
        let is_root = world.dice.percent(50);
        let victim = pick(world, |world, at| world.is_in(at) && (!is_root || leads(world, at)));
        if let Some(victim) = victim {
            let later = later(world);
            world.kill_after(victim, later);
        }
    }
}

/// Nothing is under way, and nobody waits: who is a member has seen all, and all that must be.
fn check_end(world: &World) {
    let alive = || world.nodes.iter().enumerate().filter(|(_, node)| node.state == State::Alive);
    let members: Vec<_> = alive().map(|(at, _)| at).filter(|at| world.is_in(*at)).collect();
    let mut times = BTreeMap::<u64, u32>::new();
    if let Some(first) = members.first() {
        let view: Vec<_> = world.group(*first).expect("a member").view().members().collect();
        let mut expected: Vec<_> = members.iter().map(|at| Member(*at as u32)).collect();
        let next = world.nodes[*first].seen.next();
        for at in &members {
            let group = world.group(*at).expect("a member");
            assert!(group.view().members().eq(view.iter().copied()), "{at} has another view");
            assert_eq!(group.have() + 1, world.nodes[*at].seen.next());
            assert_eq!(world.nodes[*at].seen.next(), next, "{at} lacks something");
            assert_eq!(group.outstanding(), 0, "{at} waits for its requests");
        }
        expected.sort_unstable();
        let mut sorted = view;
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "who lives is in the view, and nobody else");
    }
    for (at, node) in alive() {
        let Some(group) = &node.group else { continue };
        assert!(group.is_in() || node.seen.left, "{at} waits to join");
        assert!(!node.seen.leaves || node.seen.left, "{at} waits to be free");
        let me = Member(at as u32);
        let sent = node.seen.entries.iter().filter_map(|entry| match entry {
            Entry::Message { origin, payload, .. } if *origin == me => Some(*payload),
            _ => None,
        });
        sent.for_each(|payload| *times.entry(payload).or_default() += 1);
    }
    world.check_sent(&times);
    let delivered = |payload: u64| {
        let mut entries = alive().flat_map(|(_, node)| &node.seen.entries);
        entries.any(|entry| matches!(entry, Entry::Message { payload: p, .. } if *p == payload))
    };
    for (payload, (door, answer)) in &world.answers {
        let door_lives = world.nodes[*door].state == State::Alive;
        match answer {
            Answer::Done => assert!(!door_lives || delivered(*payload), "it was done"),
            Answer::Refused => assert!(!delivered(*payload), "it was refused"),
            Answer::Gone => {}
        }
    }
    for (at, node) in alive() {
        let waits = node.asked.and(node.guest.as_ref()).map(|(door, _)| *door);
        let is_answered = waits.is_none_or(|door| world.nodes[door].state != State::Alive);
        assert!(is_answered, "{at} waits for its door");
    }
    for (at, node) in world.nodes.iter().enumerate() {
        let was_in = node.state == State::Exiled && node.group.is_some();
        let mut known = node.seen.members.iter().filter(|who| who.0 as usize != at);
        let is_told = known.any(|who| world.is_in(who.0 as usize));
        assert!(!was_in || !is_told || node.seen.left, "{at} was not told that it is out");
    }
}

/// One world, from its beginning to its end.
pub(crate) fn run(seed: u64, is_short: bool) -> World {
    let mut dice = Dice(seed ^ 0x5eed);
    let plan = Plan::new(&mut dice);
    let mut world = World::new(seed, plan.nodes, plan.options);
    world.branches = plan.branches;
    world.ambush = plan.ambush;
    world.is_short = is_short;
    world.is_lossy = seed / 2 % 2 == 1;
    for _ in 0..plan.steps {
        act(&mut world, &plan);
        for _ in 0..world.dice.below(5) {
            world.step();
        }
    }
    let mut left = 2_000_000;
    while world.step() {
        left -= 1;
        assert!(left > 0, "it does not end");
    }
    check_end(&world);
    world
}

// spec: GRP-1, GRP-3, GRP-4, GRP-5, GRP-7, GRP-8, GRP-9, GRP-12, GRP-14, GRP-15
// spec: GRP-10, GRP-11, GRP-16, GRP-17, GRP-18, GRP-20
#[test]
fn all_members_see_the_same() {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|text| text.parse().ok()) {
        println!("{:?}", run(seed, seed % 2 == 1).counts);
        return;
    }
    let mut total = Counts::default();
    let count = seeds(10_000);
    let first = std::env::var("FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + count {
        let told = Told(seed);
        total.add(&run(seed, seed % 2 == 1).counts);
        core::mem::forget(told);
    }
    println!("{count} worlds: {total:?}");
    assert!(count < 1_000 || total.is_wide(count), "too little happens: {total:?}");
}

/// Tells which seed it was when a check fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("SEED={}", self.0);
    }
}

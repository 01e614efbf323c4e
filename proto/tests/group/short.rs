//! The short way of messages beside the long one.
use super::dice::seeds;
use super::random::run;
use super::world::World;
use ayre_proto::group::{Effects, Group, Label, Member, Message, Refusal};

/// A root's message at once; none where it must go the long way.
fn order(group: &mut Group<u64>, payload: u64, effects: &mut impl Effects<u64>) -> Option<Label> {
    let mut ordered = None;
    let is_ordered = group.multicast_at_once(|view, stable, label| {
        ordered = Some(label);
        let root = view.members().next();
        let count = usize::from(view.branches());
        let children: Vec<_> = view.members().skip(1).take(count).collect();
        assert_eq!(root, Some(label.sender), "the root orders its own");
        Some(effects.spread(children.into_iter(), (view.number(), stable), label, &payload))
    });
    let label = ordered.filter(|_| is_ordered)?;
    effects.deliver(label, payload);
    Some(label)
}

/// A member sends: the short way where it can, if it is asked to. Its number, and whether it did.
pub(crate) fn multicast(
    group: &mut Group<u64>,
    (payload, is_short): (u64, bool),
    effects: &mut impl Effects<u64>,
) -> (Result<u64, Refusal>, bool) {
    let label = if is_short { order(group, payload, effects) } else { None };
    match label {
        Some(label) => (Ok(label.number), true),
        None => (group.multicast(payload, effects), false),
    }
}

/// A member takes what its parent says, where it can do so at once. Whether it could.
pub(crate) fn take(
    group: &mut Group<u64>,
    from: Member,
    message: &Message<'_, u64>,
    effects: &mut impl Effects<u64>,
) -> bool {
    let Message::Tree { view, stable, label, payload } = *message else { return false };
    let is_due = group.next_of_tree() == Some((from, view, label.ticket));
    if !is_due || !group.take_at_once((view, stable), label, payload) {
        return false;
    }
    effects.deliver(label, payload);
    true
}

/// The visible end of a world: the states of its members, and their deliveries.
fn traces(world: &World) -> Vec<String> {
    let trace = |at| format!("{:?} {:?}", world.group(at), world.nodes[at].seen);
    (0..world.nodes.len()).map(trace).collect()
}

/// In the same world, with the same dice, both ways do the same, packet by packet.
// spec: GRP-6, GRP-7, GRP-8, GRP-9, GRP-13, GRP-20
#[test]
fn the_fast_path_equals_the_general_path() {
    let mut went = 0;
    for seed in 0..seeds(1_000) {
        let (long, short) = (run(seed, false), run(seed, true));
        assert_eq!(traces(&long), traces(&short), "seed {seed}");
        assert_eq!((long.counts.packets, long.counts.short), (short.counts.packets, 0));
        went += short.counts.short;
    }
    assert!(went > 10_000, "few messages went the short way: {went}");
}

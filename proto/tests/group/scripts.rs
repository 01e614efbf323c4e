//! One thing after the other.
use super::oracle::Entry;
use super::world::{Packet, World, members};
use ayre_proto::group::{Member, Message, Options, Refusal, SEATS_MAX, View};

/// Everything comes that these send to each other.
fn exchange(world: &mut World, among: &[usize]) {
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for from in among {
            for to in among {
                goes_on |= next(world, *from, *to).is_some();
            }
        }
    }
}

/// The next packet of a channel, as text.
fn next(world: &mut World, from: usize, to: usize) -> Option<String> {
    let packet = world.net.pop_from(from, to)?;
    let text = match &packet {
        Packet::Death => "death".to_owned(),
        Packet::Message(bytes) => {
            let mut view = View::default();
            let (_, message) = Message::parse(bytes, &mut view, |_| 0).expect("it was encoded");
            format!("{message:?}").split([' ', '(']).next().expect("a name").to_owned()
        }
    };
    world.receive(from, to, packet);
    Some(text)
}

// spec: GRP-2, GRP-4, GRP-6
#[test]
fn members_stand_in_their_order_and_a_message_goes_to_each_once() {
    let mut world = members(10, 10, Options::default());
    let order: Vec<_> = (0..10).map(Member).collect();
    for at in 0..10 {
        let view = world.group(at).expect("a member").view();
        assert!(view.members().eq(order.iter().copied()));
    }
    world.multicast(7).expect("there is room");
    assert_eq!(next(&mut world, 7, 0).as_deref(), Some("Request"));
    // From the root on, each one gets it from its parent, and has passed it on when it has it.
    for child in 1..10 {
        let parent = (child - 1) / 2;
        let before = world.nodes[child].seen.entries.len();
        assert_eq!(next(&mut world, parent, child).as_deref(), Some("Tree"));
        assert_eq!(world.nodes[child].seen.entries.len(), before + 1);
        assert_eq!(next(&mut world, parent, child), None);
    }
    let is_it = |entry: &Entry| matches!(entry, Entry::Message { sender: Member(7), .. });
    assert!(world.nodes.iter().all(|node| node.seen.entries.last().is_some_and(is_it)));
}

// spec: GRP-2, GRP-4
#[test]
fn a_group_that_is_full_turns_away() {
    let mut world = World::new(7, SEATS_MAX + 3, Options::default());
    for at in 1..SEATS_MAX + 3 {
        world.join(at, 0);
        world.settle();
    }
    for at in 0..SEATS_MAX + 3 {
        assert_eq!(world.is_in(at), at < SEATS_MAX);
        assert_eq!(world.nodes[at].seen.left, at >= SEATS_MAX);
    }
    // A place is free as soon as somebody has left.
    world.leave(5);
    world.settle();
    assert_eq!(world.group(0).expect("a member").view().members().count(), SEATS_MAX - 1);
}

// spec: GRP-13, GRP-20
#[test]
fn kept_messages_are_bounded_and_dropped_once_all_have_them() {
    let options = Options { window: 4, requests: 3 };
    let mut world = members(4, 4, options);
    for _ in 0..3 {
        assert!(world.multicast(2).is_ok());
    }
    assert_eq!(world.multicast(2), Err(Refusal::Busy));
    for _ in 0..3 {
        next(&mut world, 2, 0).expect("three requests");
    }
    // The root goes on by itself, up to its window: two others have nothing yet.
    let sent = (0..10).filter(|_| world.multicast(0).is_ok()).count();
    assert_eq!(sent, 1 + 3, "one has a ticket, three wait");
    assert_eq!(world.group(0).expect("a member").held(), (4, 3));
    world.settle();
    let root = world.group(0).expect("a member");
    assert_eq!((root.held(), root.outstanding()), ((0, 0), 0));
    // The others learn it with the next message.
    world.multicast(0).expect("there is room");
    world.settle();
    for at in 1..4 {
        assert_eq!(world.group(at).expect("a member").held(), (1, 0));
    }
}

/// A member acknowledges each quarter of a window, and not each message.
// spec: GRP-13
#[test]
fn acknowledgements_are_few() {
    for (window, each) in [(4, 1), (16, 4), (64, 16), (1000, 16)] {
        let mut world = members(2, 2, Options { window, requests: 4 });
        let mut acknowledged = 0;
        for _ in 0..96 {
            world.multicast(0).expect("there is room");
            assert_eq!(next(&mut world, 0, 1).as_deref(), Some("Tree"));
            acknowledged += u64::from(next(&mut world, 1, 0).as_deref() == Some("Ack"));
        }
        assert_eq!(acknowledged, 96 / each, "window {window}");
    }
}

/// The window of a deep tree never waits for acknowledgements that nobody sends.
// spec: GRP-13, GRP-19
#[test]
fn a_deep_tree_goes_on() {
    for window in [1, 15, 16, 31, 32, 64, 100] {
        let mut world = members(SEATS_MAX, SEATS_MAX, Options { window, requests: 4 });
        let before = world.group(0).expect("a member").have();
        for _ in 0..100 {
            while world.multicast(0).is_ok() {}
            world.multicast(63).expect("all before was ordered");
            world.settle();
            assert_eq!(world.group(63).expect("a member").outstanding(), 0, "window {window}");
        }
        assert!(world.group(63).expect("a member").have() >= before + 500);
    }
}

/// The root leaves, so does the door of one that joins, and the door dies: the one that joins gives
/// up, and the heir must not wait for it.
// spec: GRP-4, GRP-5, GRP-19
#[test]
fn one_that_gives_up_does_not_hold_up_a_root_that_leaves() {
    for root_is_first in [false, true] {
        let mut world = members(3, 4, Options::default());
        world.join(3, 2);
        assert_eq!(next(&mut world, 3, 2).as_deref(), Some("Join"));
        world.leave(2);
        if root_is_first {
            world.leave(0);
        }
        assert_eq!(next(&mut world, 2, 0).as_deref(), Some("Request"));
        assert_eq!(next(&mut world, 2, 0).as_deref(), Some("Request"));
        if !root_is_first {
            world.leave(0);
        }
        exchange(&mut world, &[0, 1, 2]);
        world.kill_after(2, 0);
        assert_eq!(next(&mut world, 2, 3).as_deref(), Some("death"));
        world.settle();
        assert!(world.nodes[0].seen.left && world.nodes[3].seen.left);
        world.multicast(1).expect("there is room");
        world.settle();
        let heir = world.group(1).expect("a member");
        assert!(heir.view().members().eq([Member(1)]), "{:?}", heir.view());
        assert_eq!(heir.outstanding(), 0);
    }
}

/// A door that has no room for one more request is asked until it has.
// spec: GRP-4, GRP-20
#[test]
fn a_busy_entry_member_is_asked_again() {
    let mut world = members(2, 3, Options { window: 64, requests: 1 });
    world.multicast(1).expect("there is room");
    world.join(2, 1);
    assert_eq!(next(&mut world, 2, 1).as_deref(), Some("Join"));
    assert_eq!(next(&mut world, 1, 2).as_deref(), Some("Refused"));
    assert_eq!(next(&mut world, 2, 1).as_deref(), Some("Join"));
    world.settle();
    assert!(world.is_in(2));
}

/// A joiner that would keep more or less than the members is refused.
// spec: GRP-4, GRP-20
#[test]
fn a_newcomer_with_other_bounds_is_refused() {
    let mut world = members(2, 3, Options::default());
    world.options.window = 63;
    world.join(2, 1);
    assert_eq!(next(&mut world, 2, 1).as_deref(), Some("Join"));
    assert_eq!(next(&mut world, 1, 2).as_deref(), Some("Out"));
    assert!(world.nodes[2].seen.left);
    assert_eq!(world.group(1).expect("a member").outstanding(), 0);
}

/// A joiner that died before anybody asked for it is in no view.
// spec: GRP-4, GRP-15
#[test]
fn the_dead_do_not_join() {
    let mut world = members(2, 3, Options::default());
    world.join(2, 1);
    assert_eq!(next(&mut world, 2, 1).as_deref(), Some("Join"));
    world.kill_after(2, 0);
    assert_eq!(next(&mut world, 2, 0).as_deref(), Some("death"));
    world.settle();
    let is_two = |entry: &Entry| {
        let Entry::View { members, .. } = entry else { return false };
        members.contains(&Member(2))
    };
    assert!(!world.nodes[1].seen.entries.iter().any(is_two));
    assert_eq!(world.group(1).expect("a member").outstanding(), 0);
}

/// The root leaves and dies before it has told anybody that the view without it is open. The new
/// leader tells it, and orders messages, which come on other ways than the news of the view.
// spec: GRP-14, GRP-16
#[test]
fn a_message_may_come_before_the_word_that_its_view_is_open() {
    let mut world = members(5, 5, Options::default());
    world.leave(0);
    for word in ["Stop", "View"] {
        for at in 1..5 {
            assert_eq!(next(&mut world, 0, at).as_deref(), Some(word));
            if word == "Stop" {
                assert_eq!(next(&mut world, at, 0).as_deref(), Some("Have"));
            }
        }
    }
    world.kill_after(0, 0);
    for at in [2, 3, 4, 1] {
        assert_eq!(next(&mut world, 0, at).as_deref(), Some("death"));
    }
    for at in [2, 3, 4] {
        assert_eq!(next(&mut world, at, 1).as_deref(), Some("Have"));
    }
    world.multicast(1).expect("there is room");
    exchange(&mut world, &[1, 2]);
    let before = world.nodes[4].seen.entries.len();
    assert_eq!(next(&mut world, 2, 4).as_deref(), Some("Tree"));
    assert_eq!(world.nodes[4].seen.entries.len(), before + 1);
    world.multicast(4).expect("there is room");
    world.settle();
    assert_eq!(world.group(4).expect("a member").outstanding(), 0);
}

/// The root leaves and dies. Its news that the view without it is open is lost on the way to the
/// new leader: over a network, the last words of the dead reach only some.
// spec: GRP-14, GRP-16, GRP-19
#[test]
fn a_leader_that_missed_an_open_view_recovers() {
    for is_sought_early in [false, true] {
        let mut world = members(4, 4, Options::default());
        world.leave(0);
        for word in ["Stop", "View"] {
            for at in 1..4 {
                assert_eq!(next(&mut world, 0, at).as_deref(), Some(word));
            }
            (1..4).for_each(|at| assert_eq!(next(&mut world, at, 0).as_deref(), Some("Have")));
        }
        world.kill_after(0, 0);
        let lost = [world.net.pop_from(0, 1), world.net.pop_from(0, 1)];
        assert!(lost.iter().all(|packet| matches!(packet, Some(Packet::Message(_)))), "go, gone");
        let lead = |world: &mut World| {
            assert_eq!(next(world, 0, 1).as_deref(), Some("death"));
            for at in [2, 3] {
                assert_eq!(next(world, 1, at).as_deref(), Some("Seek"));
            }
        };
        if is_sought_early {
            lead(&mut world);
        }
        for at in [2, 3] {
            assert_eq!(next(&mut world, 0, at).as_deref(), Some("Go"));
        }
        if !is_sought_early {
            lead(&mut world);
        }
        world.multicast(2).expect("there is room");
        world.settle();
        for at in 1..4 {
            let member = world.group(at).expect("a member");
            assert_eq!((member.outstanding(), member.have()), (0, world.nodes[1].seen.next() - 1));
        }
    }
}

/// A member leaves, and the root dies. Its news that the view is open reaches only one member, and
/// a message of that view has come. The new leader learns of the view by the message.
// spec: GRP-5, GRP-14, GRP-16, GRP-19
#[test]
fn late_news_of_an_open_view_still_reports_leavers() {
    let mut world = members(4, 4, Options::default());
    world.leave(3);
    assert_eq!(next(&mut world, 3, 0).as_deref(), Some("Request"));
    for word in ["Stop", "View"] {
        for at in 1..4 {
            assert_eq!(next(&mut world, 0, at).as_deref(), Some(word));
        }
        (1..4).for_each(|at| assert_eq!(next(&mut world, at, 0).as_deref(), Some("Have")));
    }
    world.multicast(0).expect("there is room");
    world.kill_after(0, 0);
    for at in [1, 3] {
        while let Some(Packet::Message(_)) = world.net.pop_from(0, at) {}
        world.net.push(0, at, Packet::Death);
    }
    world.settle();
    assert!(world.nodes[3].seen.left, "it is free");
    assert_eq!(world.nodes[1].seen.next(), world.nodes[2].seen.next());
    assert_eq!(world.nodes[1].seen.members, [1, 2].map(Member));
}

/// The root leaves, and dies when it has told only one that the view without it is open. The others
/// do not know whether anybody leads, and say what they have; the one that leads tells them.
// spec: GRP-14, GRP-16, GRP-19
#[test]
fn a_member_that_missed_an_open_view_learns_of_it() {
    let mut world = members(4, 4, Options::default());
    world.leave(0);
    for at in 1..4 {
        assert_eq!(next(&mut world, 0, at).as_deref(), Some("Stop"));
        assert_eq!(next(&mut world, at, 0).as_deref(), Some("Have"));
    }
    for at in 1..4 {
        assert_eq!(next(&mut world, 0, at).as_deref(), Some("View"));
    }
    world.nodes[0].fuse = Some(1);
    for at in 1..4 {
        assert_eq!(next(&mut world, at, 0).as_deref(), Some("Have"));
    }
    assert_eq!(next(&mut world, 0, 1).as_deref(), Some("Go"));
    world.multicast(3).expect("there is room");
    world.settle();
    for at in 1..4 {
        let group = world.group(at).expect("a member");
        assert_eq!(group.outstanding(), 0, "{at} waits");
        assert!(group.view().members().eq([1, 2, 3].map(Member)));
    }
}

/// The root and the next one die; two others have a message that the one that leads then lacks, and
/// the one that it asks dies, too.
// spec: GRP-9, GRP-16
#[test]
fn a_new_leader_fetches_missing_messages() {
    let mut world = members(5, 5, Options::default());
    world.nodes[0].fuse = Some(1);
    world.multicast(0).expect("there is room");
    assert_eq!(next(&mut world, 0, 1).as_deref(), Some("Tree"));
    world.kill_after(1, 0);
    for to in [3, 4] {
        assert_eq!(next(&mut world, 1, to).as_deref(), Some("Tree"));
    }
    let have = world.group(3).expect("a member").have();
    assert_eq!(world.group(2).expect("a member").have(), have - 1);
    for to in [2, 3, 4] {
        for from in [0, 1] {
            assert_eq!(next(&mut world, from, to).as_deref(), Some("death"));
        }
    }
    for from in [3, 4] {
        assert_eq!(next(&mut world, from, 2).as_deref(), Some("Have"));
    }
    world.kill_after(4, 0);
    world.settle();
    for at in [2, 3] {
        let group = world.group(at).expect("a member");
        assert_eq!(group.have(), have + 1, "the message, and a view");
        assert!(group.view().members().eq([2, 3].map(Member)));
    }
}

/// A joiner gives up, and only the root knows, which dies. The new leader asks.
// spec: GRP-4, GRP-16, GRP-19
#[test]
fn a_new_leader_asks_members_that_have_not_reported() {
    let mut world = members(3, 4, Options::default());
    world.join(3, 2);
    assert_eq!(next(&mut world, 3, 2).as_deref(), Some("Join"));
    exchange(&mut world, &[0, 1, 2]);
    world.kill_after(2, 0);
    assert_eq!(next(&mut world, 2, 3).as_deref(), Some("death"));
    assert_eq!(next(&mut world, 0, 3).as_deref(), Some("View"));
    world.nodes[0].fuse = Some(1);
    assert_eq!(next(&mut world, 3, 0).as_deref(), Some("Gone"));
    assert_eq!(next(&mut world, 0, 1).as_deref(), Some("Go"));
    world.settle();
    let group = world.group(1).expect("a member");
    assert!(group.view().members().eq([Member(1)]), "{:?}", group.view());
}

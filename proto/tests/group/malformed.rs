//! The messages that a group refuses; they change nothing.
use super::dice::Dice;
use super::hostile::{group, play};
use super::world::World;
use ayre_proto::group::{Label, Member, Message, Options, View, What};
use ayre_proto::lane::Malformed;

fn refuses(world: &mut World, to: usize, cases: &[(&str, u32, Message<'_, u64>)]) {
    for (why, from, message) in cases {
        let (said, is_same) = world.offer(*from, to, message.clone());
        assert_eq!(said, Err(Malformed), "{why}: {message:?}");
        assert!(is_same, "{why} has changed something");
    }
}

fn ignores(world: &mut World, to: usize, cases: &[(&str, u32, Message<'_, u64>)]) {
    for (why, from, message) in cases {
        assert_eq!(world.offer(*from, to, message.clone()), (Ok(()), true), "{why}: {message:?}");
    }
}

/// A view as bytes say it.
fn view(number: u64, masks: [u64; 2], seats: &[(u32, u64)]) -> View {
    let words = [1, number, masks[0], masks[1], 2];
    let mut bytes = vec![0, 0, 0, 0, 12, 0, 0, 0];
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    for (member, ordered) in seats {
        bytes.extend(member.to_le_bytes());
        bytes.extend(ordered.to_le_bytes());
    }
    let mut view = View::default();
    Message::parse(&bytes, &mut view, |_| 0_u64).expect("a good view");
    view
}

// spec: GRP-22
#[test]
fn unexpected_tree_messages_are_refused() {
    let mut world = group();
    let member = world.group(1).expect("a member");
    let (have, number) = (member.have(), member.view().number());
    let seat = member.view().seats()[2];
    let good =
        Label { ticket: have + 1, number: seat.ordered + 1, sender: Member(2), origin: Member(2) };
    let tree = |view, stable, label| Message::Tree { view, stable, label, payload: 1_u64 };
    refuses(
        &mut world,
        1,
        &[
            ("not the parent", 2, tree(number, have, good)),
            ("no ticket", 0, tree(number, have, Label { ticket: 0, ..good })),
            ("an old ticket", 0, tree(number, have, Label { ticket: have, ..good })),
            ("a gap", 0, tree(number, have, Label { ticket: have + 2, ..good })),
            ("an old number", 0, tree(number, have, Label { number: seat.ordered, ..good })),
            ("a gap of numbers", 0, tree(number, have, Label { number: good.number + 1, ..good })),
            ("no member's", 0, tree(number, have, Label { sender: Member(5), ..good })),
            ("all have what is not here", 0, tree(number, have + 1, good)),
            ("beyond the window", 0, tree(number, have - 4, good)),
            ("not a child", 2, Message::Ack { view: number, ticket: have }),
            ("what nobody has sent", 3, Message::Ack { view: number, ticket: have + 1 }),
            ("less than before", 3, Message::Ack { view: number, ticket: have - 1 }),
            ("from itself", 1, Message::Ack { view: number, ticket: have }),
        ],
    );
    ignores(
        &mut world,
        1,
        &[
            ("a view before", 2, tree(number - 1, have, good)),
            ("a view before", 2, Message::Ack { view: number - 1, ticket: have + 7 }),
        ],
    );
    assert_eq!(world.offer(0, 1, tree(number, have, good)).0, Ok(()), "and this was good");
}

// spec: GRP-22
#[test]
fn unexpected_view_change_messages_are_refused() {
    let mut world = group();
    let member = world.group(1).expect("a member");
    let (have, number) = (member.have(), member.view().number());
    let ordered = member.view().seats()[2].ordered + 1;
    let label = Label { ticket: have + 1, number: ordered, sender: Member(2), origin: Member(2) };
    let fill = |label| Message::Fill { stable: have, label, payload: 1_u64 };
    refuses(
        &mut world,
        1,
        &[
            ("not who leads", 2, Message::Stop { view: number }),
            ("not who leads", 2, Message::Fetch { after: have }),
            ("what is not here", 0, Message::Fetch { after: have + 1 }),
            ("what was dropped", 0, Message::Fetch { after: have - 4 }),
            ("more than can be", 2, Message::Have { ticket: have + 6 }),
            ("not who leads", 2, fill(label)),
            ("a gap", 0, fill(Label { ticket: have + 2, ..label })),
            ("a gap of numbers", 0, fill(Label { number: label.number + 1, ..label })),
            ("from a member", 0, Message::Join(Options::default())),
            ("no guest", 0, Message::Done),
            ("no guest", 0, Message::Refused),
            ("no guest", 5, Message::Done),
        ],
    );
    ignores(
        &mut world,
        1,
        &[
            ("a view before", 0, Message::Stop { view: number - 1 }),
            ("a view before", 0, Message::Go { view: number - 1 }),
            ("an open view", 2, Message::Go { view: number }),
            ("it is here", 0, fill(Label { ticket: have, ..label })),
            ("the others are told anyway", 2, Message::Seek),
            ("from a stranger", 9, Message::Out),
            ("from a stranger", 9, Message::Gone),
            ("from a stranger", 9, Message::Stop { view: number }),
        ],
    );
    assert_eq!(world.offer(0, 1, fill(label)).0, Ok(()), "and this was good");
}

// spec: GRP-3, GRP-22
#[test]
fn a_view_that_cannot_be_the_next_is_refused() {
    let mut world = group();
    let member = world.group(1).expect("a member");
    let (have, number) = (member.have(), member.view().number());
    let seats: Vec<_> =
        member.view().seats().iter().map(|seat| (seat.member.0, seat.ordered)).collect();
    let [root, me, other, ..] = seats[..] else { panic!("five members: {seats:?}") };
    let good = view(number + 1, [0b100, 0], &seats);
    let bad = [
        ("the same number", view(number, [0, 0], &seats)),
        ("a gap of numbers", view(number + 2, [0, 0], &seats)),
        ("without this one", view(number + 1, [0, 0], &[root, other])),
        ("another order", view(number + 1, [0, 0], &[root, other, me])),
        ("one that did not join", view(number + 1, [0, 0], &[root, me, (5, 0)])),
        ("joins, and is in", view(number + 1, [0, 0b100], &[root, me, (4, 0)])),
        ("this one joins, and is in", view(number + 1, [0, 0b10], &[root, (1, 0)])),
        ("less was ordered", view(number + 1, [0, 0], &[root, (me.0, me.1 - 1)])),
    ];
    let next = |view| Message::View { ticket: have + 1, view };
    for (why, view) in &bad {
        refuses(&mut world, 1, &[(why, 0, next(view))]);
    }
    let gap = Message::View { ticket: have + 2, view: &good };
    refuses(&mut world, 1, &[("not who leads", 2, next(&good)), ("a gap", 0, gap)]);
    ignores(&mut world, 1, &[("it is here", 0, Message::View { ticket: have, view: &good })]);
    assert_eq!(world.offer(0, 1, next(&good)).0, Ok(()), "and this was good");
    refuses(&mut world, 1, &[("not who leads", 2, Message::Go { view: number + 1 })]);
    assert_eq!(world.offer(0, 1, Message::Go { view: number + 1 }).0, Ok(()));
}

// spec: GRP-11, GRP-20, GRP-22
#[test]
fn requests_beyond_the_bound_are_refused() {
    let mut world = group();
    // So much is under way that nothing gets a ticket.
    while world.multicast(0).is_ok() {}
    let ordered = world.group(0).expect("a member").view().seats()[2].ordered;
    let request = |number| Message::Request { number, what: What::Message(Member(2), 1_u64) };
    refuses(&mut world, 0, &[("a gap", 2, request(ordered + 2))]);
    ignores(&mut world, 0, &[("it is ordered", 2, request(ordered))]);
    assert_eq!(world.offer(2, 0, request(ordered + 1)), (Ok(()), false));
    assert_eq!(world.offer(2, 0, request(ordered + 2)), (Ok(()), false));
    refuses(
        &mut world,
        0,
        &[("the same", 2, request(ordered + 2)), ("too many", 2, request(ordered + 3))],
    );
    assert_eq!(world.offer(5, 1, Message::Ask { payload: 3 }), (Ok(()), false));
    refuses(&mut world, 1, &[("one at a time", 5, Message::Ask { payload: 4 })]);
}

/// A root that lies orders what was asked of another one: that one forgets it.
// spec: GRP-17, GRP-20
#[test]
fn a_request_ordered_by_another_root_is_dropped() {
    let mut world = group();
    let view = world.group(1).expect("a member").view();
    let (view, ordered) = (view.number(), view.seats()[2].ordered);
    for number in ordered + 1..ordered + 100 {
        let have = world.group(1).expect("a member").have();
        let label = Label { ticket: have + 1, number, sender: Member(2), origin: Member(2) };
        let what = What::Message(Member(2), 1);
        assert_eq!(world.offer(2, 1, Message::Request { number, what }).0, Ok(()));
        let tree = Message::Tree { view, stable: have, label, payload: 1 };
        assert_eq!(world.offer(0, 1, tree).0, Ok(()));
    }
    assert_eq!(world.group(1).expect("a member").held(), (1, 0));
}

// spec: GRP-4, GRP-22
#[test]
fn one_that_joins_takes_its_first_view_only() {
    let mut world = group();
    world.join(5, 2);
    let good = view(9, [0, 0b10], &[(0, 4), (5, 0)]);
    let without = view(9, [0, 0], &[(0, 4)]);
    let is_in = view(9, [0, 0], &[(0, 4), (5, 0)]);
    refuses(
        &mut world,
        5,
        &[
            ("not in it", 0, Message::View { ticket: 7, view: &without }),
            ("does not join", 0, Message::View { ticket: 7, view: &is_in }),
            ("from nobody in it", 2, Message::View { ticket: 7, view: &good }),
            ("no ticket", 0, Message::View { ticket: 0, view: &good }),
            ("too early", 0, Message::Go { view: 9 }),
            ("too early", 0, Message::Stop { view: 9 }),
            ("not its door", 0, Message::Gone),
        ],
    );
    assert_eq!(world.offer(0, 5, Message::View { ticket: 7, view: &good }).0, Ok(()));
    assert_eq!(world.group(5).expect("a member").have(), 7);
}

/// All who live have a view before anybody speaks of it: who hears of one that it does not know was
/// taken for dead.
// spec: GRP-18
#[test]
fn a_member_that_hears_of_an_unknown_view_is_excluded() {
    let label = Label { ticket: 9, number: 3, sender: Member(2), origin: Member(2) };
    let later = 1 + group().group(1).expect("a member").view().number();
    for (from, message) in [
        (0, Message::Tree { view: later, stable: 8, label, payload: 1 }),
        (3, Message::Ack { view: later, ticket: 8 }),
        (2, Message::Stop { view: later }),
        (0, Message::Go { view: later }),
    ] {
        let mut world = group();
        assert_eq!(world.offer(from, 1, message.clone()).0, Ok(()));
        assert!(!world.is_in(1), "{message:?}");
    }
}

/// For any input of any sender, a group goes on or refuses; a refused message changes nothing.
// spec: GRP-21, GRP-22
#[test]
fn any_message_is_taken_or_refused() {
    let refused: u32 = (0..400)
        .map(|seed| {
            let mut dice = Dice(seed);
            let bytes: Vec<_> = (0..1500).map(|_| dice.word() as u8).collect();
            play(&bytes)
        })
        .sum();
    assert!(refused > 5_000, "most are refused: {refused}");
}

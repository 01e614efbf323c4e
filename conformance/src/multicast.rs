//! Groups whose members come and go: all of them run the same, in the same order.
use crate::messenger::{
    Active, Call, Membership, Messenger, Messengers, Multicast, MulticastOptions,
};
use crate::port::Port;
use crate::seed::Dice;
use crate::storm::all;
use crate::world::join;
use ayre::PeerId;
use ayre::active::Handler;
use ayre::multicast::{Change, MulticastError, PAYLOAD_MAX};

const NAME: &str = "all";

/// An event that a member has seen, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Message { origin: u16, number: u64, sum: u64 },
    View { number: u64, ticket: u64, members: Vec<PeerId> },
    Ended,
}

type Member<F> = <F as Messengers>::Messenger<Vec<Seen>>;

fn watch(seen: &mut Vec<Seen>, change: &Change) {
    seen.push(match change {
        Change::View { number, ticket, members, joined } => {
            assert!(joined.iter().all(|one| members.contains(one)));
            Seen::View { number: *number, ticket: *ticket, members: members.clone() }
        }
        _ => Seen::Ended,
    });
}

fn sum_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |sum, byte| sum * 31 % 1_000_000_007 + u64::from(*byte))
}

fn hear(seen: &mut Vec<Seen>, call: &mut dyn Call, [number]: [u64; 1], payload: &[u8]) {
    seen.push(Seen::Message { origin: call.source().0, number, sum: sum_of(payload) });
}

/// Founds the group at the first member, and joins it at the others; all have begun then.
fn meet(
    member: &mut impl Messenger<Vec<Seen>>,
    seen: &mut Vec<Seen>,
    options: MulticastOptions,
) -> (Membership, Handler<1>) {
    let heard = member.register("hear", hear).expect("a new name");
    let is_founder = member.port().rank() == 0;
    let founded = is_founder.then(|| member.found(NAME, options, watch).expect("a new name"));
    member.sync(seen).expect("all are alive");
    let door = PeerId(0);
    let group = founded.unwrap_or_else(|| {
        member.join(seen, NAME, door, options, watch).expect("it is there, and has room")
    });
    (group, heard)
}

fn is_message(seen: &Seen) -> bool {
    matches!(seen, Seen::Message { .. })
}

/// Runs handlers until the group has `all` members.
fn until_all_in(member: &mut impl Active<Vec<Seen>>, seen: &mut Vec<Seen>, all: usize) {
    let are_all = |one: &Seen| matches!(one, Seen::View { members, .. } if members.len() == all);
    let are_few = |seen: &Vec<Seen>| !seen.iter().any(are_all);
    member.serve_while(seen, are_few).expect("all are alive");
}

/// Runs handlers until `messages` messages have come.
fn until(member: &mut impl Active<Vec<Seen>>, seen: &mut Vec<Seen>, messages: usize) {
    let few = |seen: &Vec<Seen>| seen.iter().filter(|one| is_message(one)).count() < messages;
    member.serve_while(seen, few).expect("all are alive");
}

/// After the first event that both have seen, both have the same events, until one of them stops.
fn assert_same_order(one: &[Seen], other: &[Seen]) {
    let from = |one: &[Seen], first: &Seen| one.iter().position(|seen| seen == first);
    let (one, other) = match (from(one, &other[0]), from(other, &one[0])) {
        (Some(at), _) => (&one[at..], other),
        (_, at) => (one, &other[at.expect("both have seen a view")..]),
    };
    let both = one.iter().zip(other);
    assert!(both.clone().all(|(one, other)| one == other), "{both:#?}");
}

/// Members that send all the time, messages of all lengths, see one order.
// spec: GRP-3, GRP-6, GRP-7, GRP-8, GRP-9, GRP-20, GRP-23
pub fn members_see_one_order<F: Messengers>(fabric: F) {
    const EACH: u64 = 60;
    for (window, requests) in [(64, 8), (1, 1), (9, 3)] {
        let options = MulticastOptions::new().window(window).requests(requests);
        let seen = all(fabric, 4, |member, own| {
            let mut seen = Vec::new();
            let (group, heard) = meet(member, &mut seen, options);
            let mut dice = Dice::new(own as u64);
            // What those sent who were in earlier is not for those who came later.
            until_all_in(member, &mut seen, 4);
            for number in 0..EACH {
                let len = dice.pick(&[0, 1, 8, 40, 300, 2000]);
                let payload = dice.bytes(len);
                member.multicast(&mut seen, group, heard, [number], &payload).expect("a member");
            }
            until(member, &mut seen, 4 * EACH as usize);
            assert_eq!(member.members(group).len(), 4);
            seen
        });
        seen.iter().for_each(|part| assert_same_order(&seen[0], part));
        for origin in 0..4 {
            let numbers = seen[0].iter().filter_map(|one| match one {
                Seen::Message { origin: who, number, .. } if *who == origin => Some(*number),
                _ => None,
            });
            assert!(numbers.eq(0..EACH), "of {origin}");
        }
    }
}

/// Messages that are longer than a record, among short ones, from several members.
// spec: GRP-9, GRP-23
pub fn long_messages_keep_the_order<F: Messengers>(fabric: F) {
    let payload = |own: usize, number: u64| -> Vec<u8> {
        let len = if number.is_multiple_of(3) { 100_000 } else { 10 };
        (0..len).map(|at| (at as u64 * 7 + number + own as u64) as u8).collect()
    };
    let seen = all(fabric, 3, |member, own| {
        let mut seen = Vec::new();
        let (group, heard) = meet(member, &mut seen, MulticastOptions::new());
        until_all_in(member, &mut seen, 3);
        for number in 0..12 {
            let payload = payload(own, number);
            member.multicast(&mut seen, group, heard, [number], &payload).expect("a member");
        }
        until(member, &mut seen, 36);
        let longer = vec![0; PAYLOAD_MAX + 1];
        let end = member.multicast(&mut seen, group, heard, [0], &longer);
        assert_eq!(end, Err(MulticastError::TooLong));
        seen
    });
    seen.iter().for_each(|part| assert_same_order(&seen[0], part));
    for one in &seen[0] {
        if let Seen::Message { origin, number, sum } = one {
            assert_eq!(*sum, sum_of(&payload(usize::from(*origin), *number)));
        }
    }
}

/// A member that leaves has seen all up to the view without it; it may come back.
// spec: GRP-3, GRP-5
pub fn a_leaving_member_has_seen_all_messages_of_its_views<F: Messengers>(fabric: F) {
    const ROUNDS: u64 = 8;
    let seen = all(fabric, 3, |member, own| {
        let mut seen = Vec::new();
        let options = MulticastOptions::new();
        let (mut group, heard) = meet(member, &mut seen, options);
        for number in 0..ROUNDS {
            member.multicast(&mut seen, group, heard, [number], &[1; 50]).expect("a member");
            if own > 0 {
                member.leave(&mut seen, group).expect("a member");
                let gone = member.try_multicast(group, heard, [0], &[]);
                assert_eq!(gone, Err(MulticastError::NoMember));
                assert_eq!(seen.last(), Some(&Seen::Ended));
                assert!(member.members(group).is_empty());
                let door = PeerId(0);
                group = member.join(&mut seen, NAME, door, options, watch).expect("it has room");
            }
        }
        // All that the founder has still to see, it will: no message of a member is lost.
        let is_end = |seen: &Vec<Seen>| seen.iter().filter(|one| is_message(one)).count();
        if own == 0 {
            member
                .serve_while(&mut seen, |seen| is_end(seen) < 3 * ROUNDS as usize)
                .expect("all are alive");
        }
        seen
    });
    for part in &seen[1..] {
        for stay in part.split(|one| *one == Seen::Ended).filter(|stay| !stay.is_empty()) {
            // The founder looks no more when it has seen all messages.
            let Some(first) = seen[0].iter().position(|one| *one == stay[0]) else { continue };
            let both = seen[0][first..].iter().zip(stay);
            assert!(both.clone().all(|(one, other)| one == other), "{both:#?}");
        }
    }
}

/// The founder goes without a word, and so do others: who is left sees one order, and nothing that
/// it has sent is lost.
// spec: GRP-10, GRP-15, GRP-16, GRP-17
pub fn members_that_die_are_removed<F: Messengers>(fabric: F) {
    const EACH: u64 = 100;
    let one = |port: F::Port| {
        let own = port.rank();
        let mut member = Member::<F>::new(port);
        let mut seen = Vec::new();
        let (group, heard) = meet(&mut member, &mut seen, MulticastOptions::new());
        until_all_in(&mut member, &mut seen, 5);
        for number in 0..EACH {
            member.multicast(&mut seen, group, heard, [number], &[7; 70]).expect("a member");
            if (own, number) == (0, EACH / 2) || (own, number) == (3, EACH / 4) {
                return (own, vec![]);
            }
        }
        let left = |seen: &Vec<Seen>| {
            let last = |who: u16| {
                let it = |one: &Seen| {
                    matches!(one, Seen::Message { origin, number, .. }
                        if *origin == who && *number == EACH - 1)
                };
                seen.iter().any(it)
            };
            let are_two = |one: &Seen| {
                matches!(one, Seen::View { members, .. }
                    if !members.contains(&PeerId(0)) && !members.contains(&PeerId(3)))
            };
            !last(1) || !last(2) || !last(4) || !seen.iter().any(are_two)
        };
        while left(&seen) {
            let _ = member.serve_while(&mut seen, left);
        }
        member.sync(&mut seen).expect("nothing but deaths, which it survives");
        (own, seen)
    };
    let seen: Vec<_> = std::thread::scope(|scope| {
        let start = |port| scope.spawn(move || one(port));
        let members: Vec<_> = fabric.mesh(5).into_iter().map(start).collect();
        members.into_iter().map(join).collect()
    });
    let alive: Vec<_> = seen.iter().filter(|(_, seen)| !seen.is_empty()).collect();
    assert_eq!(alive.len(), 3);
    for (own, part) in &alive {
        alive.iter().for_each(|(_, other)| assert_same_order(other, part));
        let mine = part.iter().filter(
            |one| matches!(one, Seen::Message { origin, .. } if usize::from(*origin) == *own),
        );
        assert_eq!(mine.count() as u64, EACH);
    }
}

/// One that is no member has messages sent, in its order, by any of them.
// spec: GRP-11
pub fn non_members_send_through_a_member<F: Messengers>(fabric: F) {
    let seen = all(fabric, 4, |member, own| {
        let mut seen = Vec::new();
        let options = MulticastOptions::new();
        let heard = member.register("hear", hear).expect("a new name");
        let founded = (own == 0).then(|| member.found(NAME, options, watch).expect("a new name"));
        member.sync(&mut seen).expect("all are alive");
        if own == 3 {
            for number in 0..20 {
                let door = PeerId((number % 2) as u16);
                let payload = vec![number as u8; if number % 5 == 0 { 5000 } else { 9 }];
                loop {
                    let asked = (NAME, door);
                    match member.multicast_through(&mut seen, asked, heard, [number], &payload) {
                        // It has not joined yet.
                        Err(MulticastError::Refused(PeerId(1))) => {}
                        end => break end.expect("a member passes it on"),
                    }
                }
            }
            let nobody = ("nobody", PeerId(0));
            let refused = member.multicast_through(&mut seen, nobody, heard, [0], &[]);
            assert_eq!(refused, Err(MulticastError::Refused(PeerId(0))));
            return seen;
        }
        if founded.is_none() {
            member.join(&mut seen, NAME, PeerId(0), options, watch).expect("it has room");
        }
        let last = |seen: &Vec<Seen>| {
            !matches!(seen.last(), Some(Seen::Message { origin: 3, number: 19, .. }))
        };
        member.serve_while(&mut seen, last).expect("all are alive");
        seen
    });
    assert!(seen[3].is_empty());
    let numbers = seen[0].iter().filter_map(|one| match one {
        Seen::Message { origin: 3, number, .. } => Some(*number),
        _ => None,
    });
    assert!(numbers.eq(0..20));
    (1..3).for_each(|own| assert_same_order(&seen[0], &seen[own]));
}

/// A request to join that cannot be met gets an error.
// spec: GRP-4, GRP-20, GRP-24
pub fn joining_may_be_refused<F: Messengers>(fabric: F) {
    all(fabric, 2, |member: &mut Member<F>, own| {
        let mut seen = Vec::new();
        let options = MulticastOptions::new();
        if own == 0 {
            member.found(NAME, options, watch).expect("a new name");
            assert!(member.found(NAME, options, watch).is_err(), "one of this name");
            assert!(member.found("", options, watch).is_err(), "no name");
            assert!(member.found("other", options.window(0), watch).is_err(), "no room");
        }
        member.sync(&mut seen).expect("all are alive");
        if own == 1 {
            let door = PeerId(0);
            let nobody = member.join(&mut seen, "nobody", door, options, watch);
            assert_eq!(nobody, Err(MulticastError::Refused(door)));
            let other = member.join(&mut seen, NAME, door, options.requests(9), watch);
            assert_eq!(other, Err(MulticastError::Refused(door)));
            let stranger = PeerId(77);
            let far = member.join(&mut seen, NAME, stranger, options, watch);
            assert_eq!(far, Err(MulticastError::Unreachable(stranger)));
            seen.clear();
            member.join(&mut seen, NAME, door, options, watch).expect("it is there");
        }
        member.sync(&mut seen).expect("all are alive");
    });
}

/// A handler may send to its group; a panic harms its message only.
// spec: GRP-20, GRP-23
pub fn handlers_send_to_their_group<F: Messengers>(fabric: F) {
    const LAST: u64 = 200;
    type State = (Vec<u64>, Option<(Membership, Handler<1>)>);
    let seen = all(fabric, 3, |member: &mut F::Messenger<State>, own| {
        let mut state: State = (vec![], None);
        let bounce = |state: &mut State, call: &mut dyn Call, [number]: [u64; 1], _: &[u8]| {
            state.0.push(number);
            if let Some((group, bounce)) = state.1
                && number < LAST
                && call.source() == PeerId(0)
            {
                // Only the founder goes on, with its own message.
                let _ = call.multicast(group, bounce, [number + 1], &[]);
            }
            assert!(number != 100, "handlers may panic");
        };
        let bounce = member.register("bounce", bounce).expect("a new name");
        let options = MulticastOptions::new();
        let founded = (own == 0).then(|| member.found(NAME, options, |_, _| ()));
        member.sync(&mut state).expect("all are alive");
        let group = match founded {
            Some(group) => group.expect("a new name"),
            None => {
                let joined = member.join(&mut state, NAME, PeerId(0), options, |_, _| ());
                joined.expect("it has room")
            }
        };
        member.sync(&mut state).expect("all are alive");
        if own == 0 {
            state.1 = Some((group, bounce));
            member.multicast(&mut state, group, bounce, [0], &[]).expect("a member");
        }
        let is_last = |state: &State| state.0.last() != Some(&LAST);
        member.serve_while(&mut state, is_last).expect("all are alive");
        assert!(member.failures().count() > 0);
        state.0
    });
    seen.iter().for_each(|seen| assert!(seen.iter().copied().eq(0..=LAST), "{seen:?}"));
}

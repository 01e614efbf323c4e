//! Collectives: all members together, against what one process computes.
use crate::messenger::{Active, Call, Groups, Messengers, Owned, Request};
use crate::port::Port;
use crate::seed::{Dice, cases};
use crate::storm;
use crate::world::join;
use ayre::PeerId;
use ayre::collective::Combine;
use ayre::collective::{Collective, GroupError, Schedule, Summand};
use std::fmt::Debug;
use std::sync::Barrier;
use std::thread::yield_now;

/// Ports, all connected with each other; groups are of some of them.
const PORTS: u16 = 5;

pub(crate) type Member<F> = <F as Messengers>::Messenger<Vec<u64>>;
pub(crate) type Group<F> = <Member<F> as Groups<Vec<u64>>>::Group;

/// Runs a function at each of `members` members: see [`storm::all`].
pub(crate) fn all<F: Messengers, R: Send>(
    fabric: F,
    members: u16,
    run: impl Fn(&mut Member<F>, usize) -> R + Sync,
) -> Vec<R> {
    storm::all(fabric, members, run)
}

/// A number that can be made of another one and compared to the bit.
pub(crate) trait Plain: Summand + Copy + PartialEq + Debug {
    fn of(word: u64) -> Self;
    /// As one process combines two of them.
    fn combine(combine: Combine, left: Self, right: Self) -> Self;
}

macro_rules! plain {
    ($($number:ty, $sum:expr, $product:expr;)*) => {
        $(impl Plain for $number {
            #[allow(clippy::cast_possible_truncation)]
            fn of(word: u64) -> Self {
                (word % 1_000_003) as Self / 7 as Self
            }

            fn combine(combine: Combine, left: Self, right: Self) -> Self {
                match combine {
                    Combine::Sum => $sum(left, right),
                    Combine::Prod => $product(left, right),
                    Combine::Min => if right < left { right } else { left },
                    _ => if right > left { right } else { left },
                }
            }
        })*
    };
}

plain!(
    u8, u8::wrapping_add, u8::wrapping_mul;
    i16, i16::wrapping_add, i16::wrapping_mul;
    i32, i32::wrapping_add, i32::wrapping_mul;
    u64, u64::wrapping_add, u64::wrapping_mul;
    f32, std::ops::Add::add, std::ops::Mul::mul;
    f64, std::ops::Add::add, std::ops::Mul::mul;
);

/// The values of a member in a round.
fn values<T: Plain>(round: u64, member: usize, len: usize) -> Vec<T> {
    let mix = |at: u64| {
        (round * 1_000 + member as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ at.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    (0..len as u64).map(|at| T::of(mix(at) >> 11)).collect()
}

/// All members' values combined: cut at the greatest power of two below their number.
fn combined<T: Plain>(combine: Combine, all: &[Vec<T>]) -> Vec<T> {
    if let [one] = all {
        return one.clone();
    }
    let (left, right) = all.split_at(all.len().next_power_of_two() / 2);
    let (left, right) = (combined(combine, left), combined(combine, right));
    left.into_iter().zip(right).map(|(left, right)| T::combine(combine, left, right)).collect()
}

/// One collective that all members do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    number: u64,
    collective: Collective,
    schedule: Option<Schedule>,
    combine: Combine,
    root: usize,
    len: usize,
}

impl Round {
    pub(crate) fn draw(dice: &mut Dice, number: u64, members: usize) -> Self {
        let collective = dice.pick(&Collective::ALL);
        let can: Vec<_> = Schedule::ALL.into_iter().filter(|one| one.can(collective)).collect();
        let schedule = (dice.below(4) > 0).then(|| dice.pick(&can));
        let combine = dice.pick(&[Combine::Sum, Combine::Prod, Combine::Min, Combine::Max]);
        let lens = [0, 1, 2, 3, 5, 64, 127, 128, 1000, 5000];
        let len = if dice.below(12) == 0 { 60_000 } else { dice.pick(&lens) };
        Self { number, collective, schedule, combine, root: dice.index(members), len }
    }

    /// Does it, and compares.
    pub(crate) fn run<F: Messengers, T: Plain>(
        self,
        member: &mut Member<F>,
        group: Group<F>,
        (own, members): (usize, usize),
    ) {
        let Self { number, collective, schedule, combine, root, len } = self;
        member.fix_schedule(group, collective, schedule).expect("there is one");
        let of = |who| values::<T>(number, who, len);
        let everybody = |upto: usize| (0..upto).map(of).collect::<Vec<_>>();
        let mut mine = of(own);
        let state = &mut Vec::new();
        let done = match collective {
            Collective::Barrier => member.barrier(state, group),
            Collective::Broadcast => {
                let done = member.broadcast(state, group, root, &mut mine);
                assert!(mine == of(root), "{self:?} at {own}");
                done
            }
            Collective::Reduce => {
                let done = member.reduce(state, group, (root, combine), &mut mine);
                assert!(own != root || mine == combined(combine, &everybody(members)), "{self:?}");
                done
            }
            Collective::Allreduce => {
                let done = member.allreduce(state, group, combine, &mut mine);
                assert!(mine == combined(combine, &everybody(members)), "{self:?} at {own}");
                done
            }
            Collective::Scan => {
                let done = member.scan(state, group, combine, &mut mine);
                assert!(mine == combined(combine, &everybody(own + 1)), "{self:?} at {own}");
                done
            }
            Collective::ReduceScatter => {
                let done = member.reduce_scatter(state, group, combine, &mut mine);
                let part = len * own / members..len * (own + 1) / members;
                let due = combined(combine, &everybody(members));
                assert!(mine[part.clone()] == due[part], "{self:?} at {own}");
                done
            }
            _ => return self.move_blocks::<F, T>(member, group, (own, members)),
        };
        done.expect("all members do the same");
    }

    fn move_blocks<F: Messengers, T: Plain>(
        self,
        member: &mut Member<F>,
        group: Group<F>,
        place: (usize, usize),
    ) {
        let Self { number, collective, root, len, .. } = self;
        let (own, members) = place;
        let state = &mut Vec::new();
        let of = |who| values::<T>(number, who, len);
        let whole = (0..members).flat_map(of).collect::<Vec<_>>();
        let mut all = vec![T::of(0); if own == root { members * len } else { 0 }];
        let done = match collective {
            Collective::Gather => {
                let done = member.gather(state, group, root, (&of(own), &mut all));
                assert!(own != root || all == whole, "{self:?}");
                done
            }
            Collective::Scatter => {
                let from = if own == root { &whole[..] } else { &[] };
                let mut mine = vec![T::of(0); len];
                let done = member.scatter(state, group, root, (from, &mut mine));
                assert!(mine == of(own), "{self:?} at {own}");
                done
            }
            Collective::Allgather => {
                let mut all = vec![T::of(0); members * len];
                let done = member.allgather(state, group, &of(own), &mut all);
                assert!(all == whole, "{self:?} at {own}");
                done
            }
            _ => {
                let out = |from| values::<T>(number, from, members * len);
                let mut come = vec![T::of(0); members * len];
                let done = member.alltoall(state, group, &out(own), &mut come);
                let part = |from| out(from)[own * len..][..len].to_vec();
                assert!(come == (0..members).flat_map(part).collect::<Vec<_>>(), "{self:?}");
                done
            }
        };
        done.expect("all members do the same");
    }
}

/// Every collective gives the result of one process that computes with the contract's order of
/// operations, to the bit. That holds for all schedules, numbers, lengths, roots and groups.
// spec: COLL-1, COLL-5, COLL-6, COLL-7, COLL-12
pub fn every_schedule_agrees_with_the_oracle<F: Messengers>(fabric: F) {
    agree_with_the_oracle(fabric, PORTS, 4, cases(40));
}

/// Many more processes than there are processors take part.
// spec: COLL-1, COLL-5, COLL-6, COLL-7
pub fn large_groups_agree_with_the_oracle<F: Messengers>(fabric: F, ports: u16) {
    agree_with_the_oracle(fabric, ports, 3, 15);
}

/// Groups of any of `ports` ports, each for `rounds` rounds.
fn agree_with_the_oracle<F: Messengers>(fabric: F, ports: u16, groups: u64, rounds: u64) {
    let plan = |list| {
        let mut dice = Dice::new(list);
        let members = 1 + dice.index(ports.into());
        let mut ports: Vec<u16> = (0..ports).collect();
        for at in (1..ports.len()).rev() {
            ports.swap(at, dice.index(at + 1));
        }
        ports.truncate(members);
        (ports, dice)
    };
    all(fabric, ports, |member, own| {
        for list in 0..groups {
            let (ports, mut dice) = plan(list);
            let Some(place) = ports.iter().position(|port| usize::from(*port) == own) else {
                continue;
            };
            let members: Vec<_> = ports.iter().map(|port| PeerId(*port)).collect();
            let group = member.group(&format!("group {list}"), &members).expect("members");
            let place = (place, members.len());
            for number in 0..rounds {
                let round = Round::draw(&mut dice, number, members.len());
                match dice.below(6) {
                    0 => round.run::<F, u8>(member, group, place),
                    1 => round.run::<F, i16>(member, group, place),
                    2 => round.run::<F, i32>(member, group, place),
                    3 => round.run::<F, u64>(member, group, place),
                    4 => round.run::<F, f32>(member, group, place),
                    _ => round.run::<F, f64>(member, group, place),
                }
            }
        }
    });
}

/// Two groups of the same members, used in different orders here and there.
// spec: COLL-3
pub fn groups_do_not_mix<F: Messengers>(fabric: F) {
    all(fabric, 3, |member, own| {
        let left = member.group_of_all("left").expect("a new name");
        let right = member.group_of_all("right").expect("a new name");
        for round in 0..50_u64 {
            let one = Owned::allreduce(Combine::Sum, vec![round, own as u64]);
            let other = Owned::allreduce(Combine::Max, vec![round, own as u64]);
            // Each begins with the one that its number and the round say.
            let (sums, greatest) = if (round + own as u64).is_multiple_of(2) {
                let sums = member.start(left, one).expect("a group");
                (sums, member.start(right, other).expect("a group"))
            } else {
                let greatest = member.start(right, other).expect("a group");
                (member.start(left, one).expect("a group"), greatest)
            };
            let state = &mut Vec::new();
            assert_eq!(member.finish(state, greatest), Ok(vec![round, 2]));
            assert_eq!(member.finish(state, sums), Ok(vec![3 * round, 3]));
        }
    });
}

/// Collectives that are begun one after the other are done at once, and finished in any order.
// spec: COLL-3, COLL-4
pub fn collectives_overlap<F: Messengers>(fabric: F) {
    const MANY: u64 = 20;
    all(fabric, 4, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        let mut dice = Dice::new(own as u64);
        let state = &mut Vec::new();
        let mut started: Vec<_> = (0..MANY)
            .map(|number| {
                let len = (number * 611) as usize;
                let (request, due) = match number % 3 {
                    0 => {
                        let root = number as usize % 4;
                        let mine = vec![if own == root { number } else { 0 }; len];
                        (Owned::broadcast(root, mine), vec![number; len])
                    }
                    1 => {
                        let mine = vec![own as u64; len];
                        (Owned::allreduce(Combine::Sum, mine), vec![6; len])
                    }
                    _ => {
                        let all = vec![0; 4];
                        (
                            Owned::allgather(vec![own as u64 + number], all),
                            (number..number + 4).collect(),
                        )
                    }
                };
                (member.start(group, request).expect("a group"), due)
            })
            .collect();
        while !started.is_empty() {
            let (one, due) = started.swap_remove(dice.index(started.len()));
            while dice.below(2) == 0 && !member.is_finished(&one) {
                member.poll(state);
            }
            assert_eq!(member.finish(state, one), Ok(due));
        }
        // One that waits comes behind all that were begun.
        member.barrier(state, group).expect("all are alive");
    });
}

/// Collectives that one member has started and others have not leave room for earlier ones.
// spec: COLL-4, COLL-11, COLL-15
pub fn later_collectives_leave_room_for_earlier_ones<F: Messengers>(fabric: F) {
    // Round a ring, each sends eight portions of a chunk to the same neighbour, who says nothing.
    const MANY: usize = 9;
    all(fabric, 4, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        member.fix_schedule(group, Collective::Allgather, Some(Schedule::Ring)).expect("there is");
        let state = &mut Vec::new();
        let of = |number: usize, who| values::<u64>(number as u64, who, 40_000);
        let due = |number| (0..4).flat_map(|who| of(number, who)).collect::<Vec<_>>();
        let request = |number| Owned::allgather(of(number, own), vec![0; 160_000]);
        if own == 0 {
            let started: Vec<_> = (0..MANY)
                .map(|number| member.start(group, request(number)).expect("a group"))
                .collect();
            for (number, one) in started.into_iter().enumerate().rev() {
                assert!(member.finish(state, one).expect("all are alive") == due(number));
            }
        } else {
            for number in 0..MANY {
                let one = member.start(group, request(number)).expect("a group");
                assert!(member.finish(state, one).expect("all are alive") == due(number));
            }
        }
    });
}

/// Members with different numbers of values, none among them.
// spec: COLL-5
pub fn lengths_differ<F: Messengers>(fabric: F) {
    const LENS: [usize; 4] = [3, 0, 700, 10_000];
    all(fabric, 4, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        let state = &mut Vec::new();
        let of = |who: usize| values::<u64>(1, who, LENS[who]);
        let whole: Vec<_> = (0..4).flat_map(of).collect();
        let own_values = of(own);
        for root in 0..4 {
            for schedule in [Schedule::Star, Schedule::Tree] {
                for collective in [Collective::Gather, Collective::Scatter] {
                    member.fix_schedule(group, collective, Some(schedule)).expect("there is one");
                }
                let mut all = vec![0; if own == root { whole.len() } else { 0 }];
                let gather = Request::gather(root, &own_values[..], &mut all[..]).lens(&LENS);
                member.complete(state, group, gather).expect("all are alive");
                assert!(own != root || all == whole);
                let mut mine = vec![0; LENS[own]];
                let scatter = Request::scatter(root, &all[..], &mut mine[..]).lens(&LENS);
                member.complete(state, group, scatter).expect("all are alive");
                assert!(mine == own_values, "{schedule:?} from {root} to {own}");
            }
        }
        for schedule in [Schedule::Doubling, Schedule::Spread, Schedule::Ring] {
            member
                .fix_schedule(group, Collective::Allgather, Some(schedule))
                .expect("there is one");
            let mut all = vec![0; whole.len()];
            let gather = Request::allgather(&own_values[..], &mut all[..]).lens(&LENS);
            member.complete(state, group, gather).expect("all are alive");
            assert!(all == whole, "{schedule:?}");
        }
        // From member a to member b there go 100 a + b numbers.
        let sizes = |of: &dyn Fn(usize) -> (usize, usize)| -> Vec<usize> {
            (0..4).map(of).map(|(from, to)| 100 * from + to).collect()
        };
        let (out, come) = (sizes(&|to| (own, to)), sizes(&|from| (from, own)));
        let block = |from: usize, to: usize| vec![(10 * from + to) as u64; 100 * from + to];
        let sent: Vec<_> = (0..4).flat_map(|to| block(own, to)).collect();
        let mut found = vec![0; come.iter().sum()];
        let request = Request::alltoall(&sent[..], &mut found[..]).out_and_in(&out, &come);
        member.complete(state, group, request).expect("all are alive");
        assert_eq!(found, (0..4).flat_map(|from| block(from, own)).collect::<Vec<_>>());
    });
}

/// Handlers run while their process waits in a collective, and may call others.
// spec: COLL-4, COLL-8
pub fn handlers_run_meanwhile<F: Messengers>(fabric: F) {
    all(fabric, 3, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        let keep =
            |seen: &mut Vec<u64>, _: &mut dyn Call, [number]: [u64; 1], _: &[u8]| seen.push(number);
        let told = member.register("told", keep).expect("a new name");
        let ask = member.register("ask", move |_: &mut Vec<u64>, call, [number], payload| {
            call.reply(told, [number], payload).expect("within the limit");
        });
        let ask = ask.expect("a new name");
        let mut seen = Vec::new();
        member.sync(&mut seen).expect("all are alive");
        if own == 0 {
            for number in 0..200 {
                let to = PeerId(1 + number as u16 % 2);
                member.call(&mut seen, to, ask, [number], &[7; 3000]).expect("it is alive");
            }
            member.serve_while(&mut seen, |seen| seen.len() < 200).expect("all are alive");
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..200));
        }
        member.barrier(&mut seen, group).expect("all are alive");
    });
}

/// A lane that is full of messages delays a barrier until it is taken from, though nobody tells.
// spec: COLL-5, COLL-8
pub fn a_full_lane_delays_a_barrier<F: Messengers>(fabric: F) {
    let is_full = Barrier::new(2);
    all(fabric, 3, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        let count = |seen: &mut Vec<u64>, _: &mut dyn Call, []: [u64; 0], _: &[u8]| seen.push(0);
        let count = member.register("count", count).expect("a new name");
        let (mut seen, mut sent) = (Vec::new(), [0]);
        member.sync(&mut seen).expect("all are alive");
        match own {
            0 => {
                while member.try_call(PeerId(1), count, [], &[7; 30]).is_ok() && sent[0] < 10_000 {
                    sent[0] += 1;
                }
                is_full.wait();
            }
            1 => {
                is_full.wait();
                // The other one is in the barrier by then, most of the time.
                (0..100).for_each(|_| yield_now());
            }
            _ => {}
        }
        member.barrier(&mut seen, group).expect("all are alive");
        member.broadcast(&mut seen, group, 0, &mut sent).expect("all are alive");
        assert!(own != 1 || seen.len() as u64 == sent[0]);
    });
}

/// Portions of a fast member wait for slow ones, within the window, also for a member that has not
/// made the group yet.
// spec: COLL-1, COLL-11
pub fn portions_that_arrive_early_wait_for_their_collective<F: Messengers>(fabric: F) {
    all(fabric, 3, |member, own| {
        let state = &mut Vec::new();
        let before = member.group_of_all("before").expect("a new name");
        if own == 2 {
            // The others are in the midst of it by then, as far as they get without this one.
            for _ in 0..500 {
                member.poll(state);
                yield_now();
            }
        }
        let group = member.group_of_all("all").expect("a new name");
        for round in 0..200_u64 {
            let mut value = [if own == 0 { round } else { u64::MAX }; 9];
            member.broadcast(state, group, 0, &mut value).expect("all are alive");
            assert_eq!(value, [round; 9]);
        }
        member.barrier(state, before).expect("all are alive");
    });
}

/// A member that does another collective, or with another number of values, is found out, and the
/// group is given up by all. Other groups go on.
// spec: COLL-10, COLL-19
pub fn members_that_call_different_collectives_are_detected<F: Messengers>(fabric: F) {
    let ends = all(fabric, 3, |member, own| {
        let state = &mut Vec::new();
        let other = member.group_of_all("other").expect("a new name");
        let mut ends = vec![];
        for (number, name) in ["number", "kind", "schedule", "operation"].into_iter().enumerate() {
            let group = member.group_of_all(name).expect("a new name");
            member.barrier(state, group).expect("all do the same");
            let mut values = vec![1_u64; if number == 0 && own == 1 { 3 } else { 2 }];
            let differs = own == 1;
            if number == 2 && differs {
                let tree = Some(Schedule::Tree);
                member.fix_schedule(group, Collective::Allreduce, tree).expect("there is one");
            }
            let combine = if number == 3 && differs { Combine::Max } else { Combine::Sum };
            let end = if number == 1 && differs {
                member.scan(state, group, combine, &mut values)
            } else {
                member.allreduce(state, group, combine, &mut values)
            };
            let again = member.barrier(state, group);
            assert!(again.is_err(), "{name}");
            ends.push(end);
            member.barrier(state, other).expect("this one is sound");
        }
        ends
    });
    for number in 0..ends[0].len() {
        let of = |member: usize| ends[member][number];
        let found = |end| matches!(end, Err(GroupError::Mismatch { .. }));
        assert!((0..3).any(|member| found(of(member))), "{ends:?}");
        let words =
            [["24 bytes", "16 bytes"], ["Scan", "Allreduce"], ["Tree", "Doubling"], ["Max", "Sum"]];
        for end in (0..3).map(of).filter(|end| found(*end)) {
            let said = end.expect_err("it is found").to_string();
            assert!(words[number].iter().all(|word| said.contains(word)), "{said}");
        }
        for member in 0..3 {
            assert!(
                matches!(of(member), Err(GroupError::Mismatch { .. } | GroupError::GivenUp(_))),
                "{ends:?}"
            );
        }
    }
}

/// A member that dies ends collectives that need it, for all; those who are left go on as another
/// group.
// spec: COLL-9
pub fn death_ends_collectives<F: Messengers>(fabric: F) {
    let ports = fabric.mesh(4);
    let one = |port: F::Port| {
        let own = port.rank();
        let mut member = Member::<F>::new(port);
        let state = &mut Vec::new();
        let group = member.group_of_all("all").expect("a new name");
        for round in 0..20_u64 {
            let mut sum = [round; 2000];
            member.allreduce(state, group, Combine::Sum, &mut sum).expect("all are alive");
            assert_eq!(sum, [4 * round; 2000]);
        }
        if own == 2 {
            return;
        }
        let mut sum = [1_u64; 100];
        let why = member.allreduce(state, group, Combine::Sum, &mut sum).expect_err("one has died");
        let died = GroupError::PeerDied(PeerId(2));
        assert!(why == died || matches!(why, GroupError::GivenUp(_)), "{why:?}");
        assert!(member.barrier(state, group).is_err());
        let left = [0, 1, 3].map(PeerId);
        let group = member.group("left", &left).expect("these live");
        let mut sum = [1_u64; 100];
        member.allreduce(state, group, Combine::Sum, &mut sum).expect("all are alive");
        assert_eq!(sum, [3; 100]);
        // Nobody is taken for dead who has only gone.
        member.sync(state).expect("all are alive");
    };
    std::thread::scope(|scope| {
        let start = |port| scope.spawn(move || one(port));
        let members: Vec<_> = ports.into_iter().map(start).collect();
        members.into_iter().for_each(join);
    });
}

/// An invalid group or collective is refused at once, and no other member learns of it.
// spec: COLL-1, COLL-2, COLL-5, COLL-6
pub fn nonsense_is_refused<F: Messengers>(fabric: F) {
    all(fabric, 2, |member, own| {
        let state = &mut Vec::new();
        let (own_id, other_id) = (PeerId(own as u16), PeerId(1 - own as u16));
        assert!(member.group("", &[own_id]).is_err());
        assert!(member.group(&"n".repeat(65), &[own_id]).is_err());
        assert!(member.group("not me", &[other_id]).is_err());
        assert!(member.group("twice", &[own_id, other_id, own_id]).is_err());
        assert!(member.group("stranger", &[own_id, PeerId(99)]).is_err());
        let group = member.group_of_all("all").expect("a new name");
        assert!(member.group_of_all("all").is_err(), "it has been made");
        let invalid = |end: Result<(), GroupError>| {
            assert!(matches!(end, Err(GroupError::Invalid(_))), "{end:?}");
        };
        let mut numbers = [0_u64; 3];
        invalid(member.broadcast(state, group, 2, &mut numbers));
        invalid(member.allgather(state, group, &[1_u64], &mut numbers));
        invalid(member.alltoall(state, group, &[1_u64; 3], &mut numbers));
        invalid(member.alltoall(state, group, &[1_u64; 4], &mut numbers[..2]));
        invalid(member.allreduce(state, group, Combine::BOr, &mut [0.5]));
        invalid(member.allreduce(state, group, Combine::Read, &mut numbers));
        let mut come = [0_u64; 3];
        let lens = Request::allgather(&numbers[..1], &mut come[..]).lens(&[1, 1, 1]);
        invalid(member.complete(state, group, lens));
        let lens = Request::allreduce(Combine::Sum, &mut numbers[..]).lens(&[1, 2]);
        invalid(member.complete(state, group, lens));
        invalid(member.fix_schedule(group, Collective::Alltoall, Some(Schedule::Star)));
        // And all is as before.
        member.allreduce(state, group, Combine::Sum, &mut numbers).expect("all are alive");
        member.barrier(state, group).expect("all are alive");
    });
}

//! Groups that adapt, and recordings of what they do.
use crate::collectives::{Group, Member, Round, all};
use crate::messenger::{Active, Groups, Messengers, Owned};
use crate::port::{Options, Port, RegionOptions, RemoteRegion};
use crate::seed::{Dice, cases};
use crate::world::insist;
use ayre::collective::Combine;
use ayre::collective::{Collective, GroupError, Schedule};
use ayre::{PeerId, PostError, Rights};
use std::num::NonZeroU32;

/// Members of each group.
const MEMBERS: u16 = 4;
/// Elements of a vector that has no room in a link at once.
const LONG: usize = 1 << 17;
/// Puts at a time, more than a link has under way.
const PUTS: u32 = 100;
/// Calls after which something that is due must have come.
const CALLS: u32 = 20_000;

const fn every(calls: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(calls)
}

/// Which collective was done how, as one member has recorded it.
fn recorded<F: Messengers>(
    member: &mut Member<F>,
    group: Group<F>,
) -> Vec<(u32, Collective, Schedule, usize)> {
    let calls = member.recording(group).into_iter();
    calls.map(|call| (call.number, call.collective, call.schedule, call.bytes)).collect()
}

/// All members of a group that adapts choose the same schedules, and get the same results. Choices
/// of the program stay, and collectives that nobody waits for complete, too.
// spec: COLL-4, COLL-5, COLL-6, COLL-7, COLL-17
pub fn groups_that_adapt_agree_with_the_oracle<F: Messengers>(fabric: F) {
    let rounds = cases(60);
    let recordings = all(fabric, MEMBERS, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        let state = &mut Vec::new();
        member.adapt(state, group, every(3)).expect("all do");
        member.record(group, 1000).expect("few calls");
        let mut dice = Dice::new(0);
        for number in 0..rounds {
            let round = Round::draw(&mut dice, number, MEMBERS.into());
            match dice.below(3) {
                0 => round.run::<F, u8>(member, group, (own, MEMBERS.into())),
                1 => round.run::<F, u64>(member, group, (own, MEMBERS.into())),
                _ => round.run::<F, f64>(member, group, (own, MEMBERS.into())),
            }
            let late = Owned::allreduce(Combine::Sum, vec![number, own as u64]);
            let late = member.start(group, late).expect("a group");
            if dice.below(10) == 0 {
                member.adapt(state, group, every(1 + number as u32 % 4)).expect("all do");
            }
            assert_eq!(member.finish(state, late), Ok(vec![4 * number, 6]));
        }
        member.adapt(state, group, None).expect("all do");
        member.barrier(state, group).expect("all do");
        recorded::<F>(member, group)
    });
    assert_eq!(recordings[0].len() as u64, rounds + 1);
    assert!(recordings[0].iter().all(|(_, collective, schedule, _)| schedule.can(*collective)));
    // The bytes of who is not the root of a gather are others.
    let known = |calls: &[(u32, Collective, Schedule, usize)]| {
        calls.iter().map(|(number, what, how, _)| (*number, *what, *how)).collect::<Vec<_>>()
    };
    assert!(recordings.iter().all(|one| known(one) == known(&recordings[0])));
}

/// Puts from member 1 to member 3, as many as there is room for.
fn load<P: Port>(port: &mut P, to: &P::RemoteRegion) {
    for _ in 0..PUTS {
        match port.put(to, 0, &[7; 1024][..], Options::new()) {
            Ok(_) => {}
            Err(PostError::Busy(_)) => return,
            Err(PostError::Fault(fault)) => panic!("{fault:?}"),
        }
    }
}

/// Memory of member 3, at itself or at member 1.
type Lent<P> = (Option<<P as Port>::Region>, Option<<P as Port>::RemoteRegion>);

/// Memory of member 3, at member 1.
fn lend<P: Port>(port: &mut P, own: usize) -> Lent<P> {
    match own {
        1 => (None, Some(port.accept_region(PeerId(3), 5).expect("it is handed over"))),
        3 => {
            let region = port.alloc(4096, RegionOptions::new()).expect("memory");
            let granted = port.share(PeerId(1), &region, 0..4096, Rights::all(), 5);
            granted.expect("a valid grant");
            (Some(region), None)
        }
        _ => (None, None),
    }
}

/// A group that records this number of calls, one of whose links can be loaded.
fn begin<F: Messengers>(
    member: &mut Member<F>,
    state: &mut Vec<u64>,
    (own, calls): (usize, usize),
) -> (Group<F>, Lent<F::Port>) {
    let group = member.group_of_all("all").expect("a new name");
    let lent = lend(member.port(), own);
    member.barrier(state, group).expect("all do");
    member.record(group, calls).expect("few calls");
    (group, lent)
}

/// A link that is full of what one member puts is seen by all, who do without it: they choose
/// another schedule than the usual ones. A link of this host has no counters.
// spec: COLL-17, COLL-18
pub fn a_busy_link_is_avoided<F: Messengers>(fabric: F) {
    let found = all(fabric, MEMBERS, |member, own| {
        let state = &mut Vec::new();
        let (group, (_region, remote)) = begin::<F>(member, state, (own, 1));
        member.adapt(state, group, every(4)).expect("all do");
        let mut is_seen = false;
        for calls in 0..CALLS {
            if let Some(remote) = &remote {
                load(member.port(), remote);
            }
            let mut sums = [1.5, own as f64, if is_seen { 1.0 } else { 0.0 }];
            member.allreduce(state, group, Combine::Sum, &mut sums).expect("all do");
            assert!(sums[..2] == [6.0, 6.0], "by any schedule");
            let recording = member.recording(group);
            let call = recording.first().expect("it was recorded");
            let others = (0..call.links.len()).filter(|to| *to != own);
            // Of what this member has put, a part is on its way when it calls, most of the time.
            is_seen |= own == 1 && call.links[3].waiting > 0;
            if !fabric.traits().is_wire {
                assert!(others.clone().all(|to| call.links[to] == Default::default()));
                assert_eq!(call.schedule, Schedule::Doubling);
                if calls == 20 {
                    return true;
                }
            } else if sums[2] > 0.0
                && !matches!(call.schedule, Schedule::Doubling | Schedule::Spread)
            {
                return true;
            }
        }
        false
    });
    assert!(found.into_iter().all(|found| found), "the schedule is still the usual one");
}

/// A member that begins to adapt announces its link loads at once, and waits for all others'.
// spec: COLL-17
pub fn a_member_that_begins_to_adapt_announces_its_link_loads_at_once<F: Messengers>(fabric: F) {
    let found = all(fabric, MEMBERS, |member, own| {
        let state = &mut Vec::new();
        let (group, (_region, remote)) = begin::<F>(member, state, (own, 1));
        for _ in 0..if fabric.traits().is_wire { CALLS } else { 20 } {
            if let Some(remote) = &remote {
                load(member.port(), remote);
            }
            // What is told later on is of no use to this call.
            member.adapt(state, group, every(u32::MAX)).expect("all do");
            member.allreduce(state, group, Combine::Sum, &mut [own as f64]).expect("all do");
            let recording = member.recording(group);
            let call = recording.first().expect("it was recorded");
            if !matches!(call.schedule, Schedule::Doubling | Schedule::Spread) {
                return true;
            }
        }
        false
    });
    assert!(found.into_iter().all(|found| found == fabric.traits().is_wire), "links of a network");
}

/// Bytes that came before a call begins do not count as sent in it.
// spec: COLL-18
pub fn a_recording_counts_only_bytes_sent_during_the_call<F: Messengers>(fabric: F) {
    all(fabric, MEMBERS, |member, own| {
        let state = &mut Vec::new();
        let (group, (_region, remote)) = begin::<F>(member, state, (own, 8));
        for _ in 0..5 {
            if let Some(remote) = &remote {
                // Of the longest frames there are, this takes more than the calls do.
                for _ in 0..4 * PUTS {
                    insist(member.port(), |port| {
                        port.put(remote, 0, &[7; 4096][..], Options::new())
                    });
                }
                assert_eq!(member.port().flush(remote.peer()), Ok(()));
            }
            member.allreduce(state, group, Combine::Sum, &mut [own as f64]).expect("all do");
        }
        let sent: Vec<_> = member.recording(group).iter().map(|call| call.links[3].sent).collect();
        assert_eq!(sent.len(), 5);
        assert!(sent.iter().all(|sent| *sent < 16), "by {own}: {sent:?}");
    });
}

/// A recording has the last calls that waited and ended well, and is a text; none costs nothing.
// spec: COLL-18
pub fn recordings_tell_the_last_calls<F: Messengers>(fabric: F) {
    all(fabric, 3, |member, own| {
        let group = member.group_of_all("all").expect("a new name");
        let state = &mut Vec::new();
        member.barrier(state, group).expect("all do");
        assert_eq!(member.recording(group).len(), 0);
        member.record(group, 4).expect("few calls");
        assert_eq!(member.recording(group).len(), 0);
        for len in 1..=6 {
            let mut values = vec![own as u64; len];
            member.allreduce(state, group, Combine::Max, &mut values).expect("all do");
            assert_eq!(values, vec![2; len]);
            let started = member.start(group, Owned::barrier()).expect("a group");
            assert_eq!(member.finish(state, started), Ok(vec![]));
        }
        // The first was collective 2, and each other one a barrier that nobody has waited for so.
        let due = (3..=6)
            .map(|len| (2 * len, Collective::Allreduce, Schedule::Doubling, 8 * len as usize));
        assert_eq!(recorded::<F>(member, group), due.collect::<Vec<_>>());
        let calls: Vec<_> =
            member.recording(group).iter().map(|call| (call.begin_ns, call.time_ns)).collect();
        assert!(
            calls.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0),
            "one by one: {calls:?}"
        );
        let text = member.recording_text(group);
        let lines: Vec<Vec<_>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines[0], [format!("# ayre recording 1: member {own} of 3; ns, bytes, frames")]);
        let first = format!("sent:{own}>{}", usize::from(own == 0));
        assert_eq!(
            lines[1][..6],
            ["number", "begin_ns", "time_ns", "collective", "schedule", "bytes"]
        );
        assert_eq!((lines[1][6], lines[1].len()), (&*first, 12));
        assert_eq!(
            (lines[2][0], lines[2][3..6].join(" ")),
            ("6", "Allreduce Doubling 24".to_owned())
        );
        assert!(lines.len() == 6 && lines[2..].iter().all(|line| line.len() == 12));
        if fabric.traits().is_wire {
            // What a short call sends may leave after it; not all of what has no room before.
            let mut values = vec![own as u64; LONG];
            member.allreduce(state, group, Combine::Max, &mut values).expect("all do");
            let text = member.recording_text(group);
            let last = text.lines().next_back().expect("the last call");
            let sent = last.split('\t').skip(6).take(2).any(|sent| sent != "0");
            assert!(sent, "frames were sent: {text}");
        }
        member.record(group, 0).expect("no calls");
        assert_eq!(member.recording(group).len(), 0);
        assert!(matches!(member.record(group, usize::MAX), Err(GroupError::Invalid(_))));
        member.barrier(state, group).expect("all do");
    });
}

//! Collectives that are begun and not waited for, over a bad network, while a member may be killed.
//! All members are polled by one thread, so a seed brings a run back.
mod common;

use ayre::Simulation;
use ayre::active::Messenger;
use ayre::collective::Combine;
use ayre::collective::{Group, GroupError, PendingCollective, Request};
use common::random::{Random, iterations};
use common::simulated::{Named, ROUNDS_PER_PROGRESS, assert_repeatable, bad_mesh};
use std::collections::VecDeque;
use std::time::Duration;

const MEMBERS: usize = 5;
/// Collectives of a run, and how many of them a member has begun at a time at most.
const CALLS: u64 = 16;
const BEGUN_MAX: usize = 4;
/// Rounds, in each of which each member is polled once, after which what has not ended never does.
const PATIENCE: usize = 400_000;
/// Bits of the greatest number of values.
const LENGTH_BITS: u64 = 13;

/// The value at a place of what one member puts into a collective.
fn value(call: u64, member: usize, at: usize) -> u64 {
    common::random::mix(call << 40 ^ (member as u64) << 32 ^ at as u64) >> 8
}

fn values(call: u64, member: usize, len: usize) -> Vec<u64> {
    (0..len).map(|at| value(call, member, at)).collect()
}

/// The call that all make: the collective, its root, and the number of values.
#[derive(Clone, Copy, Debug)]
struct Plan {
    call: u64,
    kind: u64,
    root: usize,
    len: usize,
}

impl Plan {
    fn request(self, own: usize) -> Request<'static, u64> {
        let Self { call, kind, root, len } = self;
        match kind {
            0 => Request::scan(Combine::Sum, values(call, own, len)),
            1 => Request::allreduce(Combine::Sum, values(call, own, len)),
            2 if own == root => Request::broadcast(root, values(call, root, len)),
            2 => Request::broadcast(root, vec![0; len]),
            3 => Request::allgather(values(call, own, len), vec![0; MEMBERS * len]),
            _ => Request::alltoall(values(call, own, MEMBERS * len), vec![0; MEMBERS * len]),
        }
    }

    /// The values of a member in the end.
    fn due(self, own: usize) -> Vec<u64> {
        let Self { call, kind, root, len } = self;
        let all = 0..MEMBERS;
        match kind {
            0 => (0..len).map(|at| (0..=own).map(|one| value(call, one, at)).sum()).collect(),
            1 => (0..len).map(|at| all.clone().map(|one| value(call, one, at)).sum()).collect(),
            2 => values(call, root, len),
            3 => all.flat_map(|one| values(call, one, len)).collect(),
            _ => {
                let of = |one| (0..len).map(move |at| value(call, one, own * len + at));
                all.flat_map(of).collect()
            }
        }
    }
}

struct Member {
    messenger: Messenger<()>,
    group: Group,
    own: usize,
    /// The next one to begin.
    next: usize,
    begun: VecDeque<(Plan, PendingCollective<u64>)>,
    done: usize,
    failed: Option<GroupError>,
}

impl Member {
    fn begin(&mut self, plans: &[Plan]) {
        if self.failed.is_some() || self.begun.len() >= BEGUN_MAX {
            return;
        }
        let Some(plan) = plans.get(self.next) else { return };
        match self.messenger.collectives().start(self.group, plan.request(self.own)) {
            Ok(one) => {
                self.next += 1;
                self.begun.push_back((*plan, one));
            }
            Err(error) => self.failed = Some(error),
        }
    }

    /// Takes what has ended, at one place among those that were begun.
    fn finish(&mut self, at: usize) {
        let Some((_, one)) = self.begun.get(at) else { return };
        if !self.messenger.collectives().is_finished(one) {
            return;
        }
        let (plan, one) = self.begun.remove(at).expect("it is there");
        match self.messenger.collectives().finish(&mut (), one) {
            Ok(have) => {
                assert!(have == plan.due(self.own), "{plan:?} at {}", self.own);
                self.done += 1;
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn is_over(&self, calls: usize) -> bool {
        self.begun.is_empty() && (self.failed.is_some() || self.next == calls)
    }
}

struct Run {
    dice: Random,
    simulation: Simulation,
    members: Vec<Option<Member>>,
    plans: Vec<Plan>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let (simulation, ports) = bad_mesh(&mut dice, seed, MEMBERS as u16);
        let members = ports.into_iter().enumerate().map(|(own, port)| {
            let mut messenger = Messenger::new(port);
            let group = messenger.collectives().group_of_all("all").expect("a new name");
            let begun = VecDeque::new();
            Some(Member { messenger, group, own, next: 0, begun, done: 0, failed: None })
        });
        let members = members.collect();
        let plans = (0..CALLS).map(|call| Plan {
            call,
            kind: dice.below(5),
            root: dice.below(MEMBERS as u64) as usize,
            len: dice.scaled(LENGTH_BITS) as usize,
        });
        let plans = plans.collect();
        Self { dice, simulation, members, plans }
    }

    /// Its course, its time, whether one was killed, and collectives that have ended well.
    fn go(mut self) -> (u64, Duration, bool, usize) {
        let killed_in = (self.dice.below(2) == 0).then(|| self.dice.below(1200) as usize);
        let (mut is_killed, victim) = (false, self.dice.below(MEMBERS as u64) as usize);
        for round in 0..PATIENCE {
            if killed_in == Some(round) {
                self.members[victim] = None;
                is_killed = true;
            }
            for member in self.members.iter_mut().flatten() {
                if round.is_multiple_of(ROUNDS_PER_PROGRESS) {
                    member.messenger.port().progress();
                }
                if self.dice.below(4) == 0 {
                    member.begin(&self.plans);
                }
                member.messenger.poll(&mut ());
                member.finish(self.dice.below(BEGUN_MAX as u64) as usize);
            }
            let mut members = self.members.iter().flatten();
            if members.all(|member| member.is_over(self.plans.len())) {
                break;
            }
        }
        let mut done = 0;
        for member in self.members.iter().flatten() {
            let Member { own, next, begun, failed, .. } = member;
            assert!(
                member.is_over(self.plans.len()),
                "{own} waits for ever: {next} begun, {begun:?} not ended, {failed:?}"
            );
            assert!(is_killed || failed.is_none(), "{own} fails, and all live: {failed:?}");
            done += member.done;
        }
        (self.simulation.course(), self.simulation.now(), is_killed, done)
    }
}

// spec: COLL-3, COLL-4, COLL-9, COLL-11, COLL-15, NET-8
#[test]
fn every_collective_ends_whichever_member_dies() {
    let (mut kills, mut all) = (0, 0);
    for seed in iterations(100) {
        let _named = Named(seed);
        let (_, _, is_killed, done) = Run::new(seed).go();
        kills += usize::from(is_killed);
        all += done;
    }
    eprintln!("{all} ended well, {kills} killed");
}

// spec: NET-8, NET-9
#[test]
fn a_seed_brings_the_same_run_back() {
    assert_repeatable(|seed| Run::new(seed).go());
}

//! Groups whose members come, go and die over a bad network, a whole messenger each, all polled by
//! one thread: a seed brings a run back.
mod common;

use ayre::active::{Call, Handler, Messenger};
use ayre::multicast::{Change, Membership, MulticastError, MulticastOptions};
use ayre::{PeerId, Simulation};
use common::random::{Random, iterations};
use common::simulated::{Named, ROUNDS_PER_PROGRESS, assert_repeatable, bad_mesh, rounds};
use std::collections::BTreeMap;
use std::time::Duration;

const NAME: &str = "all";
const PORTS: usize = 6;
/// Rounds, in each of which each port is polled once and may do something.
const ROUNDS: usize = 6000;
/// Rounds after which what has not ended by then is taken never to.
const PATIENCE: usize = 100_000;
/// Ports that are killed in a run at most.
const KILLS: usize = 3;

/// The event at one ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Message { origin: PeerId, number: u64 },
    View { number: u64, members: Vec<PeerId> },
}

/// The events at a port since it last began to join.
#[derive(Debug, Default)]
struct Seen {
    /// The first ticket that it sees; none before it is in.
    first: Option<u64>,
    entries: Vec<Entry>,
    has_ended: bool,
}

impl Seen {
    fn is_in(&self) -> bool {
        self.first.is_some() && !self.has_ended
    }

    fn next(&self) -> Option<u64> {
        Some(self.first? + self.entries.len() as u64)
    }

    fn change(&mut self, change: &Change) {
        assert!(!self.has_ended, "nothing comes behind the end");
        let Change::View { number, ticket, members, .. } = change else {
            self.has_ended = true;
            return;
        };
        self.first.get_or_insert(*ticket);
        assert_eq!(Some(*ticket), self.next(), "tickets have no gaps");
        self.entries.push(Entry::View { number: *number, members: members.clone() });
    }

    fn hear(&mut self, origin: PeerId, number: u64) {
        assert!(self.is_in(), "messages come to members");
        self.entries.push(Entry::Message { origin, number });
    }

    fn heard_of(&self, who: PeerId) -> impl Iterator<Item = u64> {
        self.entries.iter().filter_map(move |entry| match entry {
            Entry::Message { origin, number } if *origin == who => Some(*number),
            _ => None,
        })
    }
}

struct Member {
    messenger: Messenger<Seen>,
    hear: Handler<1>,
    seen: Seen,
    /// None before it joins, and once that has ended.
    group: Option<Membership>,
    is_leaving: bool,
    /// Messages that it has sent in all, and before it last joined.
    sent: u64,
    sent_before: u64,
}

impl Member {
    fn id(&mut self) -> PeerId {
        PeerId(self.messenger.port().rank() as u16)
    }

    fn begin(&mut self, begin: impl FnOnce(&mut Messenger<Seen>) -> Membership) {
        self.seen = Seen::default();
        self.group = Some(begin(&mut self.messenger));
        (self.is_leaving, self.sent_before) = (false, self.sent);
    }

    fn join(&mut self, door: PeerId) {
        let options = MulticastOptions::new().window(8).requests(3);
        self.begin(|messenger| {
            messenger
                .multicast()
                .begin_join(NAME, door, options, Seen::change)
                .expect("the door is alive")
        });
    }

    fn say(&mut self) {
        let group = self.group.expect("a member");
        match self.messenger.multicast().try_send(group, self.hear, [self.sent], &[]) {
            Ok(()) => self.sent += 1,
            Err(MulticastError::Busy) => {}
            // It has left, and was not told yet.
            Err(error) => assert_eq!((error, self.is_leaving), (MulticastError::NoMember, true)),
        }
    }

    fn leave(&mut self) {
        match self.messenger.multicast().begin_leave(self.group.expect("a member")) {
            Ok(()) => self.is_leaving = true,
            Err(error) => assert_eq!(error, MulticastError::Busy),
        }
    }

    /// True where it has ended being a member, or has not become one.
    fn poll(&mut self) -> bool {
        self.messenger.poll(&mut self.seen);
        self.seen.has_ended && self.group.take().is_some()
    }
}

/// All of it.
struct Run {
    dice: Random,
    simulation: Simulation,
    /// By port; none of those that were killed.
    members: Vec<Option<Member>>,
    /// The events at members that live, or have left in order.
    order: BTreeMap<u64, Entry>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let (simulation, ports) = bad_mesh(&mut dice, seed, PORTS as u16);
        let members = ports.into_iter().map(|port| {
            let mut messenger = Messenger::new(port);
            let hear = |seen: &mut Seen, call: &mut Call<'_>, [number]: [u64; 1], _: &[u8]| {
                seen.hear(call.source(), number);
            };
            let hear = messenger.register("hear", hear).expect("a new name");
            let (seen, group, is_leaving) = (Seen::default(), None, false);
            let (sent, sent_before) = (0, 0);
            Some(Member { messenger, hear, seen, group, is_leaving, sent, sent_before })
        });
        let members = members.collect();
        Self { dice, simulation, members, order: BTreeMap::new() }
    }

    fn found(&mut self) {
        let options = MulticastOptions::new().window(8).requests(3);
        let founder = self.members[0].as_mut().expect("it lives");
        let found = |messenger: &mut Messenger<Seen>| {
            messenger.multicast().found(NAME, options, Seen::change)
        };
        founder.begin(|messenger| found(messenger).expect("a new name"));
        founder.seen.first = Some(1);
    }

    fn count_in(&self) -> usize {
        let settled = |member: &&Member| member.seen.is_in() && !member.is_leaving;
        self.members.iter().flatten().filter(settled).count()
    }

    /// One port does something, or nothing; another one may be killed.
    fn act(&mut self, at: usize, kills: &mut usize) {
        let (roll, door) = (self.dice.below(1000), self.dice.below(PORTS as u64) as usize);
        let is_door = |member: &Member| member.seen.is_in();
        let has_door = door != at && self.members[door].as_ref().is_some_and(is_door);
        let may_go = self.count_in() > 2;
        let Some(member) = self.members[at].as_mut() else { return };
        match roll {
            0..1 if *kills > 0 && may_go => {
                *kills -= 1;
                self.members[at] = None;
            }
            0..20 if member.group.is_none() && has_door => member.join(PeerId(door as u16)),
            0..3 if member.seen.is_in() && !member.is_leaving && may_go => member.leave(),
            0..60 if member.seen.is_in() && !member.is_leaving => member.say(),
            _ => {}
        }
    }

    fn poll(&mut self, round: usize) {
        for member in self.members.iter_mut().flatten() {
            if round.is_multiple_of(ROUNDS_PER_PROGRESS) {
                member.messenger.port().progress();
            }
            if member.poll() {
                // It has left, or did not get in: who lives is never silent for so long as to be
                // taken for dead.
                note(&mut self.order, &std::mem::take(&mut member.seen));
            }
        }
    }

    /// Whether nobody waits for anything, and all have seen the same.
    fn is_settled(&self) -> bool {
        let last = self.members.iter().flatten().filter_map(|member| member.seen.next()).max();
        self.members.iter().flatten().all(|member| {
            let is_out = member.group.is_none();
            is_out || member.seen.is_in() && !member.is_leaving && member.seen.next() == last
        })
    }

    fn has_all(&mut self) -> bool {
        self.members.iter_mut().flatten().all(|member| {
            let own = member.id();
            let heard = member.seen.heard_of(own).count() as u64;
            member.group.is_none() || heard == member.sent - member.sent_before
        })
    }

    /// Where all are, for who looks for what has gone wrong.
    fn describe(&mut self) -> String {
        let mut text = format!("at {:?}", self.simulation.now());
        for (number, member) in self.members.iter_mut().enumerate() {
            let Some(Member { messenger, seen, group, is_leaving, sent, sent_before, .. }) = member
            else {
                text += &format!("\n{number} was killed");
                continue;
            };
            let members = group.map(|group| messenger.multicast().members(group));
            let peers: Vec<_> = messenger.port().peers().collect();
            let heard = seen.heard_of(PeerId(number as u16)).count();
            text += &format!(
                "\n{number} next {:?} of {members:?}, leaves: {is_leaving}, heard {heard} of {}, \
                 peers {peers:?}",
                seen.next(),
                *sent - *sent_before
            );
        }
        text
    }

    fn go(mut self) -> (u64, Duration, usize, BTreeMap<u64, Entry>) {
        self.found();
        let mut kills = KILLS;
        for round in 0..rounds(ROUNDS) {
            (0..PORTS).for_each(|at| self.act(at, &mut kills));
            self.poll(round);
        }
        let over = (0..PATIENCE).find(|round| {
            self.poll(*round);
            self.is_settled() && self.has_all()
        });
        assert!(over.is_some(), "something waits for ever: {}", self.describe());
        for member in self.members.iter_mut().flatten().filter(|member| member.group.is_some()) {
            let own = member.id();
            assert!(
                member.seen.heard_of(own).eq(member.sent_before..member.sent),
                "in order, once"
            );
            note(&mut self.order, &member.seen);
        }
        (self.simulation.course(), self.simulation.now(), KILLS - kills, self.order)
    }
}

/// At each ticket all have seen the same.
fn note(order: &mut BTreeMap<u64, Entry>, seen: &Seen) {
    let Some(first) = seen.first else { return };
    for (ticket, entry) in (first..).zip(&seen.entries) {
        assert_eq!(order.entry(ticket).or_insert_with(|| entry.clone()), entry, "at {ticket}");
    }
}

// spec: GRP-3, GRP-4, GRP-5, GRP-7, GRP-8, GRP-9, GRP-15, NET-8
#[test]
fn members_come_go_and_die_over_a_bad_network() {
    let (mut messages, mut views, mut deaths) = (0, 0, 0);
    for seed in iterations(150) {
        let _named = Named(seed);
        let (_, _, kills, order) = Run::new(seed).go();
        deaths += kills;
        let is_view = |entry: &&Entry| matches!(entry, Entry::View { .. });
        views += order.values().filter(is_view).count();
        messages += order.values().filter(|entry| !is_view(entry)).count();
    }
    eprintln!("{messages} messages, {views} views, {deaths} killed");
}

// spec: NET-8, NET-9
#[test]
fn a_seed_brings_the_same_run_back() {
    assert_repeatable(|seed| Run::new(seed).go());
}

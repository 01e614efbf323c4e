//! Members, outsiders and the channels between them: everything follows from one seed.
use super::dice::Dice;
use super::oracle::{Entry, Seen};
use super::short;
use ayre_netsim::Channels;
use ayre_proto::group::{
    Answer, Effects, Group, Label, Member, Message, Options, Outsider, Refusal, View,
};
use ayre_proto::lane::Malformed;
use std::collections::{BTreeMap, BTreeSet};

/// A packet on the network.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// The bytes of a message, its payload behind it.
    Message(Vec<u8>),
    /// The process at the other end is dead.
    Death,
}

/// The group's name in messages.
const ID: u32 = 0x6772_6f75;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    /// It lives, and all others take it for dead: nothing that it sends comes any more.
    Exiled,
    Dead,
}

pub(crate) struct Node {
    pub(crate) state: State,
    pub(crate) group: Option<Group<u64>>,
    pub(crate) guest: Option<(usize, Outsider)>,
    /// The payload that it asked its door to send, while there is no answer.
    pub(crate) asked: Option<u64>,
    pub(crate) seen: Seen,
    dead: BTreeSet<Member>,
    is_slow: bool,
    /// It dies after this number of further messages.
    pub(crate) fuse: Option<u64>,
}

/// How often things happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    /// Of these, that went the short way at their root, or were taken so.
    pub(crate) short: u64,
    pub(crate) views: u64,
    pub(crate) joins: u64,
    pub(crate) leaves: u64,
    pub(crate) kills: u64,
    /// Of these, of who led, in the eyes of anyone who lived.
    pub(crate) roots: u64,
    /// Of these, in the middle of a change.
    pub(crate) ambushes: u64,
    pub(crate) exiles: u64,
    pub(crate) guests: u64,
    pub(crate) busy: u64,
    pub(crate) packets: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.short += other.short;
        self.views += other.views;
        self.joins += other.joins;
        self.leaves += other.leaves;
        self.kills += other.kills;
        self.roots += other.roots;
        self.ambushes += other.ambushes;
        self.exiles += other.exiles;
        self.guests += other.guests;
        self.busy += other.busy;
        self.packets += other.packets;
    }
}

impl Counts {
    /// Whether enough has happened in `worlds` worlds that a fault would be seen.
    pub(crate) const fn is_wide(&self, worlds: u64) -> bool {
        self.messages > 50 * worlds
            && self.joins > worlds
            && self.leaves > worlds / 2
            && self.kills > worlds
            && self.roots > worlds / 2
            && self.ambushes > worlds / 4
            && self.exiles > worlds / 20
            && self.guests > worlds / 2
            && self.busy > worlds
    }
}

pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) options: Options,
    pub(crate) net: Channels<Packet>,
    pub(crate) nodes: Vec<Node>,
    /// The member and the number of each payload.
    sent: BTreeMap<u64, (Member, Option<u64>)>,
    /// The answers to outsiders' messages, and their doors.
    pub(crate) answers: BTreeMap<u64, (usize, Answer)>,
    pub(crate) counts: Counts,
    /// In a thousand messages of a change, after how many its sender or its receiver dies.
    pub(crate) ambush: u64,
    /// Of the trees.
    pub(crate) branches: u8,
    /// Packets under way from a dying process may be lost, to some and not to others.
    pub(crate) is_lossy: bool,
    /// Members go the short way where they can.
    pub(crate) is_short: bool,
    /// Nobody lies: what is sent arrives, and what is seen is checked.
    pub(crate) checks: bool,
}

/// The effects of a group at one node.
struct TestEffects<'a> {
    me: usize,
    net: &'a mut Channels<Packet>,
    seen: &'a mut Seen,
    dead: &'a BTreeSet<Member>,
    fuse: &'a mut Option<u64>,
    is_heard: bool,
    checks: bool,
    branches: u8,
    fresh: Vec<(u64, Entry)>,
}

impl TestEffects<'_> {
    const fn is_burnt(&self) -> bool {
        matches!(*self.fuse, Some(0))
    }
}

impl Effects<u64> for TestEffects<'_> {
    fn send(&mut self, to: Member, message: Message<'_, u64>) {
        assert!(!self.checks || to.0 as usize != self.me, "nobody sends to itself");
        if self.is_burnt() || !self.checks {
            return;
        }
        if let Some(left) = self.fuse {
            *left -= 1;
        }
        if self.is_heard {
            let (bytes, payload) = message.encode(ID);
            let mut bytes = bytes.to_vec();
            bytes.extend(payload.map(|payload| payload.to_le_bytes()).into_iter().flatten());
            self.net.push(self.me, to.0 as usize, Packet::Message(bytes));
        }
    }

    fn deliver(&mut self, label: Label, payload: u64) {
        if !self.is_burnt() && self.checks {
            self.fresh.push((label.ticket, self.seen.message(label, payload)));
        }
    }

    fn view_changed(&mut self, ticket: u64, view: &View) {
        if !self.is_burnt() && self.checks {
            let me = Member(self.me as u32);
            self.fresh.push((ticket, self.seen.view(me, ticket, view)));
        }
    }

    fn left(&mut self) {
        if !self.is_burnt() && self.checks {
            assert!(!self.seen.left, "it is told once");
            self.seen.left = true;
        }
    }

    fn is_dead(&self, who: Member) -> bool {
        self.dead.contains(&who)
    }

    fn branches(&self, _: &View) -> u8 {
        self.branches
    }
}

/// A world with `count` members, which joined one after the other, and nothing under way.
pub(crate) fn members(count: usize, nodes: usize, options: Options) -> World {
    let mut world = World::new(7, nodes, options);
    for at in 1..count {
        world.join(at, at / 2);
        world.settle();
    }
    world
}

impl World {
    pub(crate) fn new(seed: u64, nodes: usize, options: Options) -> Self {
        let mut dice = Dice(seed);
        let node = |at| Node {
            state: State::Alive,
            group: None,
            guest: None,
            asked: None,
            seen: Seen::default(),
            dead: BTreeSet::new(),
            is_slow: at > 0 && dice.percent(15),
            fuse: None,
        };
        let mut nodes: Vec<_> = (0..nodes).map(node).collect();
        nodes[0].group = Some(Group::found(Member(0), options));
        nodes[0].seen = Seen::founder(Member(0));
        Self {
            net: Channels::new(nodes.len()),
            dice,
            options,
            nodes,
            sent: BTreeMap::new(),
            answers: BTreeMap::new(),
            counts: Counts::default(),
            ambush: 0,
            branches: 2,
            is_lossy: false,
            is_short: false,
            checks: true,
        }
    }

    /// Lets a group do something, and checks what it causes.
    fn with<R>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Option<Group<u64>>, &mut TestEffects<'_>) -> R,
    ) -> R {
        let node = &mut self.nodes[at];
        let mut effects = TestEffects {
            me: at,
            net: &mut self.net,
            seen: &mut node.seen,
            dead: &node.dead,
            fuse: &mut node.fuse,
            is_heard: node.state == State::Alive,
            checks: self.checks,
            branches: self.branches,
            fresh: Vec::new(),
        };
        let result = act(&mut node.group, &mut effects);
        let fresh = effects.fresh;
        if let Some(group) = &node.group {
            let (items, requests) = group.held();
            assert!(items <= usize::from(self.options.window) + 1, "too much is kept");
            assert!(requests <= 64 * usize::from(self.options.requests));
            assert!(group.outstanding() <= usize::from(self.options.requests));
        }
        if self.nodes[at].state == State::Alive {
            fresh.into_iter().for_each(|(ticket, entry)| self.compare(at, ticket, &entry));
        }
        if self.nodes[at].fuse == Some(0) {
            self.kill(at);
        }
        result
    }

    /// All who live have seen the same at this ticket.
    fn compare(&mut self, at: usize, ticket: u64, entry: &Entry) {
        let others = self.nodes.iter().enumerate().filter(|(other, node)| {
            *other != at && node.state == State::Alive && node.seen.first > 0
        });
        for (other, node) in others {
            if let Some(seen) = node.seen.at(ticket) {
                assert_eq!(entry, seen, "at ticket {ticket}: {at} and {other}");
            }
        }
        match entry {
            Entry::Message { sender, number, origin, payload } => {
                let (door, known) = self.sent[payload];
                assert_eq!(door, *origin);
                assert!(known.is_none_or(|known| *sender == *origin && known == *number));
                self.counts.messages += 1;
            }
            Entry::View { .. } => self.counts.views += 1,
        }
    }

    pub(crate) fn group(&self, at: usize) -> Option<&Group<u64>> {
        self.nodes[at].group.as_ref()
    }

    /// Whether it lives and is a member, or leaves.
    pub(crate) fn is_in(&self, at: usize) -> bool {
        self.nodes[at].state == State::Alive && self.group(at).is_some_and(Group::is_in)
    }

    pub(crate) fn multicast(&mut self, at: usize) -> Result<u64, Refusal> {
        let payload = self.dice.word();
        let me = Member(at as u32);
        self.sent.insert(payload, (me, None));
        let said = (payload, self.is_short);
        let (sent, is_short) = self.with(at, |group, effects| {
            short::multicast(group.as_mut().expect("a group"), said, effects)
        });
        self.counts.short += u64::from(is_short);
        match sent {
            Ok(number) => {
                self.sent.insert(payload, (me, Some(number)));
            }
            Err(_) => {
                self.sent.remove(&payload);
                self.counts.busy += 1;
            }
        }
        sent
    }

    pub(crate) fn leave(&mut self, at: usize) {
        let left = self.with(at, |group, effects| group.as_mut().expect("a group").leave(effects));
        self.counts.leaves += u64::from(left.is_ok());
    }

    pub(crate) fn join(&mut self, at: usize, door: usize) {
        let options = self.options;
        self.counts.joins += 1;
        self.with(at, |group, effects| {
            *group = Some(Group::join(Member(at as u32), Member(door as u32), options, effects));
        });
    }

    /// An outsider has a message sent.
    pub(crate) fn ask(&mut self, at: usize, door: usize) {
        let payload = self.dice.word();
        let old = self.nodes[at].guest.take().filter(|(old, _)| self.is_in(*old));
        let (door, mut guest) = old.unwrap_or_else(|| (door, Outsider::new(Member(door as u32))));
        let node = &mut self.nodes[at];
        if let Ok(message) = guest.ask(payload) {
            self.counts.guests += 1;
            self.sent.insert(payload, (Member(at as u32), None));
            node.asked = Some(payload);
            self.with(at, |_, effects| effects.send(Member(door as u32), message));
        }
        self.nodes[at].guest = Some((door, guest));
    }

    /// A message for whose sending a member has a success is delivered once at each living member,
    /// unless the sender has left.
    pub(crate) fn check_sent(&self, times: &BTreeMap<u64, u32>) {
        for (payload, (origin, number)) in &self.sent {
            let node = &self.nodes[origin.0 as usize];
            let must = node.state == State::Alive && number.is_some();
            let is_whole = node.seen.leaves || node.group.as_ref().is_some_and(Group::is_in);
            if must && is_whole {
                assert_eq!(times.get(payload), Some(&1), "{origin:?}'s {number:?} is lost");
            }
        }
    }

    /// It stops, now or after `messages` further messages.
    pub(crate) fn kill_after(&mut self, at: usize, messages: u64) {
        self.nodes[at].fuse = Some(messages);
        if messages == 0 {
            self.kill(at);
        }
    }

    fn kill(&mut self, at: usize) {
        let was = self.nodes[at].state;
        self.nodes[at].state = State::Dead;
        if was != State::Alive {
            return;
        }
        self.counts.kills += 1;
        self.count_roots(at);
        self.net.lose_to(at);
        if self.is_lossy {
            self.net.lose_from(at, &mut self.dice);
        }
        self.tell_death(at);
    }

    fn count_roots(&mut self, at: usize) {
        let me = Member(at as u32);
        let in_eyes = |node: &Node| {
            let group = node.group.as_ref().filter(|group| group.is_in())?;
            let mut seats = group.view().seats().iter();
            seats.find(|seat| !node.dead.contains(&seat.member)).map(|seat| seat.member)
        };
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != at);
        let led = others.filter(|(_, node)| in_eyes(node) == Some(me)).count();
        self.counts.roots += u64::from(led > 0);
    }

    fn tell_death(&mut self, at: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != at) {
            if self.nodes[other].state != State::Dead {
                self.net.push(at, other, Packet::Death);
            }
        }
    }

    /// All others take it for dead.
    pub(crate) fn exile(&mut self, at: usize) {
        self.counts.exiles += 1;
        self.nodes[at].state = State::Exiled;
        self.tell_death(at);
    }

    /// Takes a message that nobody has sent. Returns the group's verdict, and whether nothing has
    /// changed.
    pub(crate) fn offer(
        &mut self,
        from: u32,
        to: usize,
        message: Message<'_, u64>,
    ) -> (Result<(), Malformed>, bool) {
        let before = format!("{:?}", self.group(to));
        let said = self.with(to, |group, effects| {
            group.as_mut().expect("a group").on_message(Member(from), message, effects)
        });
        (said, before == format!("{:?}", self.group(to)))
    }

    /// One packet comes. Whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let nodes = &self.nodes;
        let popped = self.net.pop(&mut self.dice, |to| nodes[to].is_slow);
        let Some((from, to, packet)) = popped else { return false };
        self.receive(from, to, packet);
        true
    }

    /// Everything comes that is under way.
    pub(crate) fn settle(&mut self) {
        while self.step() {}
    }

    /// One is told that another is dead.
    pub(crate) fn lose(&mut self, at: usize, who: usize) {
        self.receive(who, at, Packet::Death);
    }

    pub(crate) fn receive(&mut self, from: usize, to: usize, packet: Packet) {
        self.counts.packets += 1;
        let who = Member(from as u32);
        if self.nodes[to].state == State::Dead {
            return;
        }
        let bytes = match packet {
            Packet::Message(bytes) => bytes,
            Packet::Death => {
                self.nodes[to].dead.insert(who);
                if self.nodes[to].group.is_some() {
                    self.with(to, |group, effects| {
                        group.as_mut().expect("a group").on_death(who, effects);
                    });
                }
                return;
            }
        };
        let mut view = View::default();
        let payload = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let (id, message) = Message::parse(&bytes, &mut view, payload).expect("it was encoded");
        assert_eq!(id, ID);
        let is_change = matches!(
            message,
            Message::Stop { .. }
                | Message::Have { .. }
                | Message::Seek
                | Message::Fetch { .. }
                | Message::Fill { .. }
                | Message::View { .. }
                | Message::Go { .. }
        );
        let is_fetch = matches!(message, Message::Fetch { .. });
        if self.nodes[to].group.is_some() {
            let described = format!("{message:?}");
            let may_be_short = self.is_short;
            let (done, is_short) = self.with(to, |group, effects| {
                let group = group.as_mut().expect("a group");
                match may_be_short && short::take(group, who, &message, effects) {
                    true => (Ok(()), true),
                    false => (group.on_message(who, message, effects), false),
                }
            });
            self.counts.short += u64::from(is_short);
            assert_eq!(done, Ok(()), "{from} to {to}: {described}\n{:?}", self.group(to));
        } else if let Some((_, guest)) = &mut self.nodes[to].guest {
            // An answer that a door before gave has nobody who waits for it.
            if let Ok(answer) = guest.on_message(who, &message)
                && let Some(payload) = self.nodes[to].asked.take()
            {
                self.answers.insert(payload, (from, answer));
            }
        }
        let chance = if is_fetch { 10 * self.ambush } else { self.ambush };
        if is_change && self.dice.below(1000) < chance {
            let victim = if self.dice.percent(50) { from } else { to };
            let messages = self.dice.below(6);
            if self.nodes[victim].state == State::Alive {
                self.counts.ambushes += 1;
                self.kill_after(victim, messages);
            }
        }
    }
}

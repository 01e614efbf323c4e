//! A script is carried out.
//!
//! Nodes act in order of their numbers, each until it has to wait. When all wait, time goes on to
//! the next event. Where nobody moves for [`STILL`], a node waits for ever: a fault of the script.
use super::node::Member;
use super::post::bytes_differ;
use super::runner::{Kind, Over, Runner};
use super::world::World;
use super::{Line, Script, ScriptError, ScriptFault, ScriptWork, Statement};
use crate::cluster::{Cluster, Event};
use crate::network::Parameters;
use crate::time::Time;
use crate::topology::Topology;
use ayre_proto::node::carrier::lanes::OfferKind;
use ayre_proto::units::PeerId;
use std::collections::HashMap;

/// A node that moves no more for so long waits for ever: by then links have noticed deaths.
const STILL: Time = Time::from_nanos(10_000_000_000);
/// The simulated time is over a while before its end.
const LATEST: Time = Time(Time::END.0 - (1 << 45));

/// The course of a script.
#[derive(Debug)]
pub(in super::super) struct Ran {
    /// Nodes, and when each of them ended.
    pub(in super::super) nodes: Vec<(u32, Time)>,
    pub(in super::super) kinds: Vec<Kind>,
    pub(in super::super) cluster: Cluster,
    /// When all had ended.
    pub(in super::super) end: Time,
}

/// Carries out a script on a network.
pub(in super::super) fn run(
    work: &ScriptWork,
    topology: &Topology,
    parameters: Parameters,
) -> Result<Ran, ScriptError> {
    let script: &Script = &work.script;
    let world = World::new(script, (topology, parameters), work.times)?;
    let begun = world.cluster.now();
    let members = (0..world.nodes).map(|node| Member::new(script, node)).collect();
    let cycle = parameters.link.phit;
    let mut runner = Runner {
        world,
        members,
        ways: HashMap::new(),
        kinds: vec![],
        handled: 0,
        moved: begun,
        cycle,
    };
    runner.run()?;
    let used = (0_u32..).zip(&runner.members).filter(|(_, member)| member.is_used());
    let ended = |(node, member): (u32, &Member)| Some((node, member.ended? - begun));
    Ok(Ran {
        nodes: used.filter_map(ended).collect(),
        kinds: runner.kinds,
        end: runner.moved - begun,
        cluster: runner.world.cluster,
    })
}

impl Runner<'_> {
    fn run(&mut self) -> Result<(), ScriptError> {
        loop {
            let mut has_moved = false;
            for node in 0..self.world.nodes {
                has_moved |= self.act(node)?;
            }
            if has_moved {
                self.moved = self.world.cluster.now();
                continue;
            }
            if self.members.iter().all(|member| !member.is_used() || member.ended.is_some()) {
                return Ok(());
            }
            self.pass()?;
        }
    }

    /// Time goes on to the next event, or until a node has computed.
    fn pass(&mut self) -> Result<(), ScriptError> {
        let now = self.world.cluster.now();
        let wake = self.members.iter().filter_map(|member| member.wake).min();
        let end = wake.unwrap_or(self.moved + STILL);
        let waits = |member: &Member| member.is_used() && member.ended.is_none();
        let first = self.members.iter().position(waits).unwrap_or_default();
        let script = self.world.script;
        let line = self.members[first].line(script);
        let (number, word) = line.map_or((1, "end"), |line| (line.number, line.statement.word()));
        let node = first as u32;
        if now >= LATEST {
            return Err(script.fail(number, ScriptFault::Late { node, word }));
        }
        if wake.is_none() && now >= end {
            return Err(script.fail(number, ScriptFault::Waits { node, word }));
        }
        self.world.cluster.pass(end - now);
        Ok(())
    }

    /// A node goes on as far as it can. Returns whether it moved.
    fn act(&mut self, node: u32) -> Result<bool, ScriptError> {
        self.hear(node)?;
        let (script, mut has_moved) = (self.world.script, false);
        while self.member(node).is_used() && self.member(node).ended.is_none() {
            if self.member(node).handling.is_some() {
                if !self.handle(node)? {
                    return Ok(has_moved);
                }
                has_moved = true;
                continue;
            }
            let now = self.world.cluster.now();
            let Some(line) = self.member_mut(node).line(script) else {
                if self.has_kept(node) {
                    return Ok(self.poll(node)? || has_moved);
                }
                self.member_mut(node).ended = Some(now);
                return Ok(true);
            };
            self.member_mut(node).begun.get_or_insert(now);
            let computes = matches!(line.statement, Statement::Compute(_));
            if !self.carry_out(node, line)? && (computes || !self.poll(node)?) {
                return Ok(has_moved);
            }
            has_moved = true;
        }
        Ok(has_moved)
    }

    /// Takes the news of a node in.
    fn hear(&mut self, node: u32) -> Result<(), ScriptError> {
        while let Some(event) = self.world.cluster.event(node) {
            match event {
                Event::Ended(peer, ended) => self.on_ended(node, peer, &ended)?,
                Event::Offered(_, offer) if offer.kind == OfferKind::Queue => {
                    let [name, _, number, ..] = offer.words;
                    self.world.produced.insert((node, name as usize), number as usize);
                }
                Event::Offered(..)
                | Event::Gone(..)
                | Event::Lock(..)
                | Event::Fenced(..)
                | Event::Interrupt => {}
            }
        }
        Ok(())
    }

    /// Carries a statement out. Returns whether the node has gone on to the next one.
    fn carry_out(&mut self, node: u32, line: &Line) -> Over {
        let member = self.member_mut(node);
        match line.statement {
            Statement::Repeat(times) => member.repeat(times),
            Statement::Together => {
                member.is_together = true;
                member.go_on();
            }
            Statement::Batch(to) => {
                let peer = to.resolve(node, self.world.nodes);
                self.member_mut(node).batch = Some((peer, vec![]));
                self.member_mut(node).go_on();
            }
            Statement::End(begin) => return self.end_block(node, line, begin),
            _ => {
                let begun = member.begun.unwrap_or_default();
                if !self.operate(node, line)? {
                    return Ok(false);
                }
                let member = self.member_mut(node);
                member.wake = None;
                // What was posted has been counted when it ended.
                let is_counted = line.statement.is_posted()
                    || matches!(line.statement, Statement::Lock { .. } | Statement::Unlock { .. });
                member.go_on();
                if !is_counted {
                    self.count_since(line.statement.word(), begun);
                }
            }
        }
        Ok(true)
    }

    /// The end of a block: what was posted in it has ended.
    fn end_block(&mut self, node: u32, line: &Line, begin: usize) -> Over {
        let script = self.world.script;
        match self.member(node).block_of(script, begin) {
            Statement::Repeat(_) => self.member_mut(node).again(begin),
            Statement::Together => {
                if !self.has_ended(node) {
                    return Ok(false);
                }
                self.member_mut(node).is_together = false;
                self.member_mut(node).go_on();
            }
            _ => {
                if !self.member(node).is_posted {
                    if !self.post_batch(node, line)? {
                        return Ok(false);
                    }
                    self.member_mut(node).is_posted = true;
                }
                if !self.has_ended(node) {
                    return Ok(false);
                }
                self.member_mut(node).batch = None;
                self.member_mut(node).go_on();
            }
        }
        Ok(true)
    }

    /// Whether all that a node has posted has ended. If not, its peers are asked, once for each
    /// number of operations that have ended.
    fn has_ended(&mut self, node: u32) -> bool {
        let member = self.member_mut(node);
        if member.pending.is_empty() {
            return true;
        }
        if member.asked.replace(member.ended_operations) != Some(member.ended_operations) {
            let mut peers: Vec<_> = member.pending.iter().map(|pending| pending.peer).collect();
            peers.sort_unstable();
            peers.dedup();
            for peer in peers {
                // A peer that has died has ended all operations.
                _ = self.world.cluster.flush(node, PeerId(peer as u16));
            }
        }
        false
    }

    /// Carries an operation out. Returns whether it is over.
    pub(super) fn operate(&mut self, node: u32, line: &Line) -> Over {
        let is_lock = matches!(line.statement, Statement::Lock { .. } | Statement::Unlock { .. });
        if line.statement.is_posted() || is_lock {
            if self.member(node).batch.is_some() {
                return Ok(self.add_to_batch(node, line));
            }
            if !self.member(node).is_posted {
                if !self.post(node, line)? {
                    return Ok(false);
                }
                self.member_mut(node).is_posted = true;
            }
            return Ok(self.member(node).is_together || self.has_ended(node));
        }
        match line.statement {
            Statement::Flush { to } => {
                let to = to.map(|who| who.resolve(node, self.world.nodes));
                Ok(self.flush(node, to))
            }
            Statement::Compute(span) => {
                let now = self.world.cluster.now();
                let end = now + span.time(self.cycle);
                Ok(*self.member_mut(node).wake.get_or_insert(end) <= now)
            }
            Statement::Register { depot, number, value, waits } => {
                Ok(self.register(node, (depot, number), value, waits))
            }
            Statement::Serve(calls) => {
                let member = self.member_mut(node);
                let left = member.served.checked_sub(calls);
                member.served = left.unwrap_or(member.served);
                Ok(left.is_some())
            }
            Statement::Collective(joint) => self.collective(node, line, &joint),
            Statement::Wait { at, value } => {
                Ok(self.own_word(node, line, at.region, at.offset)? == value)
            }
            Statement::Check { at, value } => {
                let word = self.own_word(node, line, at.region, at.offset)?;
                if word == value {
                    return Ok(true);
                }
                let what = format!("found {word}, and {value} is expected");
                Err(self.unexpected(node, line, what))
            }
            Statement::Kill(who) => self.kill(node, line, who.resolve(node, self.world.nodes)),
            Statement::Restart(who) => {
                self.restart(node, line, who.resolve(node, self.world.nodes))
            }
            _ => self.receive(node, line),
        }
    }

    fn add_to_batch(&mut self, node: u32, line: &Line) -> bool {
        let made = self.make(node, &line.statement);
        let batch = self.member_mut(node).batch.as_mut();
        if let (Some((_, order, _)), Some((_, orders))) = (made, batch) {
            orders.push(order);
        }
        true
    }

    /// Waits for a message, a record or a notification.
    fn receive(&mut self, node: u32, line: &Line) -> Over {
        let nodes = self.world.nodes;
        let cluster = &mut self.world.cluster;
        let what = match line.statement {
            Statement::Receive { from, tag, expect } => {
                let from = from.resolve(node, nodes);
                let Some(message) = self.message(node, from) else { return Ok(false) };
                let differ = differ("tag", tag.map(u64::from), message.tag.into());
                differ.or_else(|| bytes_differ(&message.bytes, expect?))
            }
            Statement::Await { from, tag, value } => {
                let Some(note) = cluster.notification(node) else { return Ok(false) };
                let from = from.map(|who| u64::from(who.resolve(node, nodes)));
                let fault = note.status.fault().map(|fault| format!("tells of a fault: {fault}"));
                fault
                    .filter(|_| !line.is_fault)
                    .or_else(|| differ("source", from, note.source.0.into()))
                    .or_else(|| differ("tag", tag.map(u64::from), note.tag.into()))
                    .or_else(|| differ("value", value, note.value))
            }
            Statement::Take { queue, from, expect } => {
                let from = from.map(|who| who.resolve(node, nodes));
                let mut producers = self.world.needs.producers.iter();
                let record = producers.find_map(|(producer, of)| {
                    let is_meant = *of == queue && from.is_none_or(|from| from == *producer);
                    let number = *self.world.consumed.get(&(*producer, queue))?;
                    let record = || cluster.dequeue(node, PeerId(*producer as u16), number);
                    is_meant.then(record).flatten()
                });
                let Some(record) = record else { return Ok(false) };
                expect.and_then(|expect| bytes_differ(&record, expect))
            }
            _ => None,
        };
        what.map_or(Ok(true), |what| Err(self.unexpected(node, line, what)))
    }

    fn flush(&mut self, node: u32, to: Option<u32>) -> bool {
        let pairs = self.world.needs.pairs.iter();
        let peers: Vec<_> = pairs
            .filter_map(|(one, other)| match node {
                _ if node == *one => Some(*other),
                _ if node == *other => Some(*one),
                _ => None,
            })
            .filter(|peer| to.is_none_or(|to| to == *peer))
            .collect();
        let is_flushed = |peer: &u32| self.world.cluster.is_flushed(node, PeerId(*peer as u16));
        let left: Vec<_> = peers.into_iter().filter(|peer| !is_flushed(peer)).collect();
        let member = self.member_mut(node);
        let ended = member.ended_operations;
        if !left.is_empty() && member.asked.replace(ended) != Some(ended) {
            for peer in &left {
                _ = self.world.cluster.flush(node, PeerId(*peer as u16));
            }
        }
        left.is_empty()
    }

    fn own_word(
        &self,
        node: u32,
        line: &Line,
        region: usize,
        offset: u64,
    ) -> Result<u64, ScriptError> {
        let word = self.world.word(node, region, offset);
        word.ok_or_else(|| {
            self.unexpected(node, line, format!("there is no word at offset {offset}"))
        })
    }

    fn kill(&mut self, node: u32, line: &Line, victim: u32) -> Over {
        if self.world.cluster.is_dead(victim) {
            return Err(self.unexpected(node, line, format!("node {victim} is dead already")));
        }
        self.world.cluster.kill(victim);
        let now = self.world.cluster.now();
        let member = self.member_mut(victim);
        (member.ended, member.wake) = (Some(now), None);
        Ok(true)
    }

    /// A dead node begins anew, with its first statement.
    fn restart(&mut self, node: u32, line: &Line, dead: u32) -> Over {
        if !self.world.cluster.is_dead(dead) {
            return Err(self.unexpected(node, line, format!("node {dead} is alive")));
        }
        self.world.restart(dead)?;
        self.ways.retain(|(one, other), _| *one != dead && *other != dead);
        let fresh = Member::new(self.world.script, dead);
        *self.member_mut(dead) = fresh;
        Ok(true)
    }
}

/// How a number differs from what is expected.
fn differ(name: &str, expected: Option<u64>, found: u64) -> Option<String> {
    let expected = expected.filter(|expected| *expected != found)?;
    Some(format!("brought the {name} {found}, and {expected} is expected"))
}

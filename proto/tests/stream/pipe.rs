//! A pipeline in a random world: how it is laid, fed, led elsewhere and ended, and what must have
//! come of it.
use super::dice::Dice;
use super::node::{MAP, PANIC, SINK, SOME, TAIL, TRIPLE, make};
use super::world::World;
use ayre_proto::stream::{
    Effects, Entry, EntryAnswer, FailureReason, StreamEnd, StreamFailure, StreamName, Way,
};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its entries are being set.
    Laid,
    /// Its source has this place.
    Flows(u16),
    Closed,
    /// As its source was told; nothing, where that has died or it was never laid.
    Over(Option<Result<(), StreamFailure>>),
}

#[derive(Debug)]
pub(crate) struct Pipe {
    number: u64,
    controller: PeerId,
    source: PeerId,
    /// Stages and their arguments, the last one a sink.
    stages: Vec<(u32, u64)>,
    /// Ports of the stages, and the streams' numbers there, as of now.
    ports: Vec<(PeerId, u32)>,
    first: u32,
    /// Entries to be set, and the request that is under way.
    orders: VecDeque<(PeerId, StreamName, Entry)>,
    request: Option<u32>,
    set: Vec<(PeerId, StreamName)>,
    /// Times that it was led elsewhere.
    sections: u64,
    /// Ports that it has ever gone through.
    visited: Vec<PeerId>,
    pub(crate) state: State,
    values: Vec<u64>,
    sent: usize,
    is_cleared: bool,
    is_cancelled: bool,
}

impl Pipe {
    pub(crate) fn new(number: u64, world: &mut World, numbers: &mut u32) -> Self {
        let ports: Vec<_> = world.nodes.keys().copied().collect();
        let dice = &mut world.dice;
        let pick = |dice: &mut Dice| ports[dice.below(ports.len() as u64) as usize];
        let (source, controller) = (pick(dice), pick(dice));
        let kinds = [MAP, MAP, SOME, TRIPLE, TAIL, if dice.percent(10) { PANIC } else { MAP }];
        let stages = dice.below(5);
        let mut stages: Vec<_> =
            (0..stages).map(|_| (kinds[dice.below(6) as usize], dice.below(1 << 20))).collect();
        stages.push((SINK, 0));
        // Many times the same port.
        let mut places = vec![];
        for at in 0..stages.len() {
            let again = at > 0 && dice.percent(40);
            places.push(if again { places[at - 1] } else { pick(dice) });
        }
        let mut next = || {
            *numbers += 1;
            *numbers
        };
        let first = next();
        let ports: Vec<_> = places.into_iter().map(|port| (port, next())).collect();
        let items = [0, 3, 20, 60][dice.below(4) as usize];
        let values = (0..items).map(|_| dice.word()).collect();
        let mut pipe = Self {
            number,
            controller,
            source,
            stages,
            ports,
            first,
            orders: VecDeque::new(),
            request: None,
            set: vec![],
            sections: 0,
            visited: vec![source, controller],
            state: State::Laid,
            values,
            sent: 0,
            is_cleared: false,
            is_cancelled: false,
        };
        pipe.order(0);
        pipe
    }

    /// Entries from this stage on, the last one first.
    fn order(&mut self, from: usize) {
        self.visited.extend(self.ports[from..].iter().map(|(port, _)| *port));
        for at in (from..self.stages.len()).rev() {
            let (port, name) = self.place_before(at);
            let (stage, argument) = self.stages[at];
            let to = StreamName { peer: self.ports[at].0, number: self.ports[at].1 };
            let arguments = [argument, self.number, self.sections, 0];
            let way = Way { stage, arguments, goes_on: stage != SINK };
            self.orders.push_back((port, name, Entry { to, way, lasts: false }));
        }
    }

    /// Where the entry that leads to a stage stands.
    fn place_before(&self, at: usize) -> (PeerId, StreamName) {
        let port = |at: usize| if at == 0 { self.source } else { self.ports[at - 1].0 };
        match at {
            0 => (self.source, StreamName { peer: self.source, number: self.first }),
            _ => (port(at), StreamName { peer: port(at - 1), number: self.ports[at - 1].1 }),
        }
    }

    /// Does something.
    pub(crate) fn act(&mut self, world: &mut World, numbers: &mut u32) {
        self.look(world);
        if !self.advance_orders(world) {
            return;
        }
        match self.state {
            State::Laid => self.open(world),
            State::Flows(place) => self.feed(place, world, numbers),
            State::Closed | State::Over(_) => {}
        }
    }

    /// Whether it is over.
    pub(crate) fn look(&mut self, world: &mut World) {
        let Some(node) = world.nodes.get_mut(&self.source) else {
            if !matches!(self.state, State::Over(_)) {
                self.give_up(None, world);
            }
            return;
        };
        if matches!(self.state, State::Flows(_) | State::Closed)
            && let Some(how) = node.side.overs.remove(&self.first)
        {
            match how {
                // All that was laid was used.
                Ok(()) if self.sections == 0 => self.state = State::Over(Some(how)),
                _ => self.give_up(Some(how), world),
            }
        }
    }

    /// Entries that were never used are cleared.
    fn give_up(&mut self, how: Option<Result<(), StreamFailure>>, world: &mut World) {
        self.state = State::Over(how);
        for (at, name) in std::mem::take(&mut self.set) {
            world.ask(self.controller, at, name, Err(true));
        }
        self.orders.clear();
    }

    /// Sets the next entry, if the last one is set; true where there is none.
    fn advance_orders(&mut self, world: &mut World) -> bool {
        if let Some(request) = self.request {
            match world.answers.remove(&request) {
                None if self.is_hit(world) && self.state == State::Laid => {
                    self.request = None;
                    self.give_up(None, world);
                }
                None => return false,
                Some(EntryAnswer::Done) => self.request = None,
                Some(EntryAnswer::Full | EntryAnswer::Unknown) => {
                    self.request = None;
                    if self.state == State::Laid {
                        self.give_up(None, world);
                    }
                    self.orders.clear();
                }
                Some(answer) => panic!("{answer:?}"),
            }
        }
        let Some((at, name, entry)) = self.orders.pop_front() else { return true };
        if !world.nodes.contains_key(&self.controller) {
            self.orders.clear();
            return true;
        }
        self.set.push((at, name));
        self.request = Some(world.ask(self.controller, at, name, Ok(entry)));
        false
    }

    fn is_hit(&self, world: &World) -> bool {
        self.visited.iter().any(|port| !world.nodes.contains_key(port))
    }

    fn open(&mut self, world: &mut World) {
        match world.node(self.source).streams.open(self.first) {
            Ok(place) => self.state = State::Flows(place),
            Err(FailureReason::Full | FailureReason::Nowhere) => self.give_up(None, world),
            Err(why) => panic!("{why:?}"),
        }
    }

    fn feed(&mut self, place: u16, world: &mut World, numbers: &mut u32) {
        let chance = world.dice.below(1000);
        if chance < 15 {
            return self.lead_elsewhere(world, numbers);
        }
        if chance < 18 {
            let at = world.dice.below(self.stages.len() as u64) as usize;
            if !self.has_tail(at) {
                let (port, name) = self.place_before(at);
                self.is_cleared = true;
                world.ask(self.controller, port, name, Err(false));
            }
            return;
        }
        let node = world.node(self.source);
        if chance < 20 {
            self.is_cancelled = true;
            node.streams.cancel(place, &mut node.side);
        } else if self.sent == self.values.len() {
            node.streams.close(place);
            self.state = State::Closed;
        } else if node.side.emitted(place).is_none() {
            node.side.push(place, self.values[self.sent]);
            node.streams.feed(place);
            self.sent += 1;
        }
        world.post(self.source);
    }

    /// Whether something is emitted behind a cut.
    fn has_tail(&self, from: usize) -> bool {
        self.stages[from..].iter().any(|(stage, _)| *stage == TAIL)
    }

    /// From some stage on it goes through other ports.
    fn lead_elsewhere(&mut self, world: &mut World, numbers: &mut u32) {
        let from = world.dice.below(self.stages.len() as u64) as usize;
        if self.has_tail(from) || self.is_hit(world) {
            return;
        }
        self.sections += 1;
        let all: Vec<_> = world.nodes.keys().copied().collect();
        for at in from..self.stages.len() {
            *numbers += 1;
            self.ports[at] = (all[world.dice.below(all.len() as u64) as usize], *numbers);
        }
        self.order(from);
    }

    /// No more than was sent by now.
    pub(crate) fn close(&mut self, world: &mut World) {
        self.look(world);
        if let State::Flows(place) = self.state {
            world.node(self.source).streams.close(place);
            self.state = State::Closed;
        }
    }

    fn expected(&self) -> Vec<u64> {
        let mut values = self.values[..self.sent].to_vec();
        for (stage, argument) in &self.stages[..self.stages.len() - 1] {
            let each = values.iter().flat_map(|value| make(*stage, *argument, Some(*value)));
            values = each.chain(make(*stage, *argument, None)).collect();
        }
        values
    }

    /// Whether all has gone as it must.
    // spec: PIPE-1, PIPE-7, PIPE-13, PIPE-14, PIPE-15
    pub(crate) fn check(&self, world: &World, is_tight: bool) {
        let State::Over(how) = self.state else { panic!("it is not over: {self:?}") };
        let is_hit = self.is_hit(world);
        if let Some(Err(StreamFailure { why, .. })) = how {
            let is_due = match why {
                FailureReason::Panicked => self.stages.iter().any(|(stage, _)| *stage == PANIC),
                FailureReason::Nowhere => self.is_cleared || is_hit,
                FailureReason::Full => is_tight,
                FailureReason::Unreachable | FailureReason::PeerDied => is_hit,
                FailureReason::Cancelled => self.is_cancelled,
                FailureReason::UnknownStage | FailureReason::Taken => false,
            };
            assert!(is_due, "{why:?} of {self:?}");
        }
        let expected = self.expected();
        let mut at = 0;
        let is_whole = how == Some(Ok(())) && !self.is_cleared;
        for section in 0..=self.sections {
            let mut sinks = world.nodes.values().map(|node| &node.side.sinks);
            let heard = sinks.find_map(|sinks| sinks.get(&(self.number, section)));
            let Some(heard) = heard else { continue };
            assert_eq!(heard.ends.len(), 1, "one end of {self:?}: {heard:?}");
            if let StreamEnd::Failed(_) = heard.ends[0] {
                assert!(!is_whole, "{heard:?} of {self:?}");
            }
            let Some(first) = heard.values.first() else { continue };
            let skipped = expected[at..].iter().position(|value| value == first);
            let skipped = skipped.unwrap_or_else(|| panic!("{first} out of turn of {self:?}"));
            assert!(skipped == 0 || is_hit || !is_whole, "{skipped} lost of {self:?}");
            at += skipped;
            assert!(expected[at..].starts_with(&heard.values), "in order: {heard:?} of {self:?}");
            at += heard.values.len();
        }
        if is_whole && !is_hit {
            assert_eq!(at, expected.len(), "all has come of {self:?}");
        }
    }
}

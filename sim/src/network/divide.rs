//! The parts of a network.
//!
//! A part is a network, too: it has all tables and only the packets and events of its own routers.
//! These are a range, so that few links cross between parts where neighbours have near numbers:
//! halves of a torus by its last dimension, groups of a dragonfly.
//!
//! A method that needs the whole network joins its parts first. The next run divides it again.
use super::rounds::Outbox;
use super::{ARRIVE, CREDIT, Network, about, event, kind_of, router_of};
use crate::calendar::Event;
use crate::packet::{NONE, Packets};
use crate::stats::Tally;
use core::ops::Range;

/// The routers of a part, with their queues and channels.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// The number of this part.
    pub(super) part: usize,
    slots: Span,
    lanes: Span,
    /// The first router of each part but the first one.
    bounds: Vec<u32>,
}

/// A range, whose check is one comparison.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    first: u32,
    count: u32,
}

impl Span {
    fn new(range: &Range<usize>) -> Self {
        Self { first: range.start as u32, count: range.len() as u32 }
    }

    #[inline(always)]
    fn has(self, number: u32) -> bool {
        number.wrapping_sub(self.first) < self.count
    }
}

impl Share {
    /// Whether a queue is of this part. [`TO_NODE`](super::TO_NODE) is of none.
    #[inline(always)]
    pub(super) fn has_slot(&self, slot: u32) -> bool {
        self.slots.has(slot)
    }

    /// Whether a channel is of this part. [`NO_LANE`](super::NO_LANE) is of none.
    #[inline(always)]
    pub(super) fn has_lane(&self, lane: u32) -> bool {
        self.lanes.has(lane)
    }

    pub(super) fn part_of(&self, router: u32) -> usize {
        self.bounds.partition_point(|first| *first <= router)
    }
}

/// Where the routers of a part are in each table.
struct Places {
    routers: Range<usize>,
    slots: Range<usize>,
    outputs: Range<usize>,
    requests: Range<usize>,
    lanes: Range<usize>,
}

impl Network {
    /// From now on, runs use as many threads, each for a part of the routers. This changes no
    /// result. There are at most as many parts as routers, and the order of routers decides which
    /// ones are together.
    pub fn divide(&mut self, parts: u32) {
        self.join();
        self.parts = (parts.max(1) as usize).min(self.routers.len());
    }

    /// Makes the parts that runs use.
    pub(super) fn part(&mut self) {
        if self.parts == 1 + self.others.len() {
            return;
        }
        let bounds = self.bounds();
        self.take_share(0, &bounds);
        for number in 1..self.parts {
            let mut other = self.beside();
            other.take_share(number, &bounds);
            let places = self.places(number, &bounds);
            self.transfer(&mut other, &places);
            self.others.push(other);
        }
    }

    /// Makes one part of all.
    pub(super) fn join(&mut self) {
        if self.others.is_empty() {
            return;
        }
        let bounds = core::mem::take(&mut self.share.bounds);
        for (number, mut other) in (1..).zip(core::mem::take(&mut self.others)) {
            let places = self.places(number, &bounds);
            other.transfer(self, &places);
            if let (Some(record), Some(more)) = (&mut self.record, other.record) {
                record.merge(*more, places.slots);
            }
            self.made.0 += other.made.0;
            self.made.1 += other.made.1;
        }
        self.outboxes.clear();
        self.take_share(0, &[]);
    }

    /// The first routers of all parts but the first one. Parts have about as many ports.
    fn bounds(&self) -> Vec<u32> {
        let (routers, outputs) = (self.routers.len(), self.outputs.len());
        let mut bounds = Vec::new();
        for part in 1..self.parts {
            let ports = (outputs * part / self.parts) as u32;
            let half = self.routers.partition_point(|router| router.output < ports);
            // Each part has a router at least.
            let least = bounds.last().map_or(1, |last| *last as usize + 1);
            bounds.push(half.clamp(least, routers - (self.parts - part)) as u32);
        }
        bounds
    }

    fn places(&self, part: usize, bounds: &[u32]) -> Places {
        let first = part.checked_sub(1).map_or(0, |before| bounds[before] as usize);
        let end = bounds.get(part).map_or(self.routers.len(), |end| *end as usize);
        let range = |of: fn(&Self, usize) -> usize| of(self, first)..of(self, end);
        let output = |network: &Self, router: usize| {
            network.routers.get(router).map_or(network.outputs.len(), |it| it.output as usize)
        };
        let lane = |output: usize| {
            self.outputs.get(output).map_or(self.lanes.len(), |it| it.lane as usize)
        };
        let outputs = range(output);
        Places {
            routers: first..end,
            slots: range(|network, router| {
                network.routers.get(router).map_or(network.slots.len(), |it| it.slot as usize)
            }),
            requests: range(|network, router| {
                network.routers.get(router).map_or(network.requests.len(), |it| it.request as usize)
            }),
            lanes: lane(outputs.start)..lane(outputs.end),
            outputs,
        }
    }

    pub(super) fn take_share(&mut self, part: usize, bounds: &[u32]) {
        let places = self.places(part, bounds);
        let (slots, lanes) = (Span::new(&places.slots), Span::new(&places.lanes));
        self.share = Share { part, slots, lanes, bounds: bounds.to_vec() };
        if !bounds.is_empty() {
            self.outboxes = (0..=bounds.len()).map(|_| Outbox::default()).collect();
        }
    }

    /// A network with these tables and without packets and events.
    fn beside(&self) -> Self {
        Self {
            parameters: self.parameters,
            routes: self.routes.clone(),
            calendar: self.calendar.beside(),
            packets: Packets::default(),
            due: Vec::new(),
            marks: vec![0; self.routers.len().div_ceil(64)],
            routers: self.routers.clone(),
            slots: self.slots.clone(),
            seconds: self.seconds.clone(),
            outputs: self.outputs.clone(),
            requests: self.requests.clone(),
            lanes: self.lanes.clone(),
            sources: self.sources.clone(),
            crowd: self.crowd,
            sources_stopped: self.sources_stopped,
            made: (0, 0),
            load: self.load.clone(),
            tally: Tally::new(self.started),
            started: self.started,
            now: self.now,
            time: self.time,
            ahead: self.ahead,
            deliveries: Vec::new(),
            record: self.record.as_ref().map(|record| Box::new(record.beside())),
            share: Share::default(),
            parts: 1,
            others: Vec::new(),
            outboxes: Vec::new(),
        }
    }

    /// Routers go to another part, with their packets and events.
    fn transfer(&mut self, other: &mut Self, places: &Places) {
        copy(&self.routers, &mut other.routers, &places.routers);
        copy(&self.slots, &mut other.slots, &places.slots);
        copy(&self.outputs, &mut other.outputs, &places.outputs);
        copy(&self.requests, &mut other.requests, &places.requests);
        copy(&self.lanes, &mut other.lanes, &places.lanes);
        if !self.seconds.is_empty() {
            copy(&self.seconds, &mut other.seconds, &places.slots);
        }
        let is_moved = |router: u32| places.routers.contains(&(router as usize));
        for (own, others) in self.sources.iter().zip(&mut other.sources) {
            if is_moved(own.router) {
                others.random = own.random.clone();
            }
        }
        for slot in places.slots.clone() {
            self.transfer_queue(other, slot);
        }
        for Event { at, what } in self.calendar.take_all() {
            let router = match kind_of(what) {
                CREDIT => self.lanes[about(what) as usize].router,
                _ => router_of(what),
            };
            if !is_moved(router) {
                self.calendar.insert(Event { at, what });
            } else if kind_of(what) == ARRIVE {
                let handle = other.packets.add(self.packets.remove(about(what)));
                other.calendar.insert(event(at, router, ARRIVE, handle));
            } else {
                other.calendar.insert(Event { at, what });
            }
        }
    }

    /// The packets of a queue go to another part.
    fn transfer_queue(&mut self, other: &mut Self, slot: usize) {
        let mut next = core::mem::replace(&mut self.slots[slot].head, NONE);
        other.slots[slot].head = NONE;
        while next != NONE {
            let packet = self.packets.remove(next);
            next = packet.next;
            let handle = other.packets.add(packet);
            other.packets[handle].next = NONE;
            let queue = &mut other.slots[slot];
            let last = core::mem::replace(&mut queue.tail, handle);
            if queue.head == NONE {
                queue.head = handle;
            } else {
                other.packets[last].next = handle;
            }
        }
    }
}

fn copy<T: Copy>(from: &[T], to: &mut [T], range: &Range<usize>) {
    to[range.clone()].copy_from_slice(&from[range.clone()]);
}

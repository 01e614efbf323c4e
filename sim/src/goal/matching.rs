//! Which receive gets which message.
//!
//! Messages and receives of equal receiver, source and tag share a [`Channel`], which has a number
//! since the schedule was read. A channel holds messages that came before their receives, or
//! receives that came before their messages, and never both: one queue will do. At a host with
//! wildcards all are kept in order, and searched from the first on.
use super::schedule::{ANY, Channel, Kind, Operation, Schedule};
use std::collections::HashMap;

/// No operation.
const NONE: u32 = u32::MAX;

/// A queue of operations that are linked with each other.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

/// Messages and receives that wait at a host with wildcards, in the order of coming.
#[derive(Clone, Debug, Default)]
struct Waiting {
    messages: Vec<u32>,
    receives: Vec<u32>,
}

/// Messages and receives that wait for each other. A message is named by its send.
#[derive(Debug)]
pub(super) struct Matching {
    queues: Vec<Queue>,
    /// For each operation the next one in its queue.
    next: Vec<u32>,
    /// Those of hosts with wildcards.
    wild: HashMap<u32, Waiting>,
}

impl Matching {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let mut wild = HashMap::new();
        for channel in &schedule.channels {
            if channel.source == ANY || channel.tag == ANY {
                wild.insert(channel.target, Waiting::default());
            }
        }
        Self {
            queues: vec![Queue { head: NONE, tail: NONE }; schedule.channels.len()],
            next: vec![NONE; schedule.operations.len()],
            wild,
        }
    }

    /// The partner of a message or receive, which is then taken away; without one, it waits.
    #[inline]
    pub(super) fn find(&mut self, schedule: &Schedule, number: u32) -> Option<u32> {
        let operation = &schedule.operations[number as usize];
        if !self.wild.is_empty() {
            let target = schedule.target(operation);
            if let Some(waiting) = self.wild.get_mut(&target) {
                return waiting.find(schedule, number, operation);
            }
        }
        let queue = &mut self.queues[operation.channel as usize];
        let first = queue.head;
        if first == NONE {
            *queue = Queue { head: number, tail: number };
            return None;
        }
        if schedule.operations[first as usize].kind == operation.kind {
            let last = core::mem::replace(&mut queue.tail, number);
            self.next[last as usize] = number;
            return None;
        }
        queue.head = self.next[first as usize];
        Some(first)
    }

    /// A message that waits for a receive.
    pub(super) fn unreceived(&self, schedule: &Schedule) -> Option<u32> {
        let is_send = |number: u32| {
            let operation = schedule.operations.get(number as usize);
            operation.is_some_and(|operation| operation.kind == Kind::Send)
        };
        let queued = self.queues.iter().map(|queue| queue.head).filter(|head| is_send(*head));
        let wild = self.wild.values().flat_map(|waiting| waiting.messages.iter().copied());
        queued.chain(wild).min()
    }
}

impl Waiting {
    fn find(&mut self, schedule: &Schedule, number: u32, operation: &Operation) -> Option<u32> {
        let channel = |number: u32| {
            let operation = &schedule.operations[number as usize];
            schedule.channels[operation.channel as usize]
        };
        let own = channel(number);
        let (from, to) = match operation.kind {
            Kind::Receive => (&mut self.messages, &mut self.receives),
            _ => (&mut self.receives, &mut self.messages),
        };
        let place = from.iter().position(|other| fits(own, channel(*other)));
        if place.is_none() {
            to.push(number);
        }
        place.map(|place| from.remove(place))
    }
}

/// Whether the message and the receive of two channels of a host match.
fn fits(one: Channel, other: Channel) -> bool {
    let equal = |one: u32, other: u32| one == other || one == ANY || other == ANY;
    equal(one.source, other.source) && equal(one.tag, other.tag)
}

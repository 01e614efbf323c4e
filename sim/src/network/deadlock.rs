//! Packets that wait for each other in a ring.
//!
//! A queue can go on if its head goes to a node, or if there is room behind one of the channels
//! that it asks for. It can go on later if one of the queues behind those can go on. The queues
//! that are left never move again. The room of a queue is its buffer without the packets that are
//! in it or on their way to it. So credits on their way back count as returned.
use super::{Network, TO_NODE};
use crate::packet::NONE;

/// A queue whose head waits for room in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The router.
    pub router: u32,
    /// The input port.
    pub input: u16,
    /// The virtual channel of the link to this port.
    pub channel: u16,
    /// The output that the head asks for.
    pub output: u16,
    /// The node that made the head.
    pub source: u32,
    /// The node that it goes to.
    pub target: u32,
}

impl Network {
    /// The queues of a deadlock: the head of each one waits for room in the next one, and that of
    /// the last one for room in the first one. None if all packets can still arrive.
    pub fn ring(&mut self) -> Option<Vec<Waiting>> {
        self.join();
        let ring = self.rings_of_slots().into_iter().next()?;
        Some(ring.into_iter().map(|slot| self.waiting(slot)).collect())
    }

    /// The queues of all deadlocks, of which no two share a queue.
    pub(super) fn rings_of_slots(&self) -> Vec<Vec<u32>> {
        let moving = self.moving();
        // For each queue the number of the walk that passed it, and its place in that walk.
        let mut passed = vec![None; self.slots.len()];
        let mut rings = Vec::new();
        for walk in (0..self.slots.len() as u32).filter(|slot| !moving[*slot as usize]) {
            let mut way = Vec::new();
            let mut slot = walk;
            // All queues that a stuck one waits for are stuck, so that the way comes back to
            // itself, or to one that was walked before.
            while passed[slot as usize].is_none() {
                passed[slot as usize] = Some((walk, way.len()));
                way.push(slot);
                let Some(next) = self.behind(slot).next() else { break };
                slot = next;
            }
            if let Some((number, first)) = passed[slot as usize]
                && number == walk
            {
                rings.push(way.split_off(first));
            }
        }
        rings
    }

    /// For each queue whether it can go on, or is empty.
    fn moving(&self) -> Vec<bool> {
        let mut held = vec![0_u64; self.slots.len()];
        for packet in self.packets.all() {
            held[packet.slot as usize] += u64::from(packet.bytes);
        }
        let mut moving = vec![false; self.slots.len()];
        let mut waits = vec![Vec::new(); self.slots.len()];
        let mut found = Vec::new();
        for (slot, queue) in (0_u32..).zip(&self.slots) {
            let room = |behind: u32| {
                let bytes = u64::from(self.packets[queue.head].bytes);
                held[behind as usize] + bytes <= u64::from(self.parameters.buffer)
            };
            let goes_on = queue.head == NONE
                || self.outputs[self.output_of(slot)].slot == TO_NODE
                || self.behind(slot).any(room);
            if goes_on {
                moving[slot as usize] = true;
                found.push(slot);
            } else {
                self.behind(slot).for_each(|behind| waits[behind as usize].push(slot));
            }
        }
        while let Some(slot) = found.pop() {
            for before in &waits[slot as usize] {
                if !core::mem::replace(&mut moving[*before as usize], true) {
                    found.push(*before);
                }
            }
        }
        moving
    }

    /// The router of a queue.
    pub(super) fn router_of_slot(&self, slot: u32) -> usize {
        self.routers.partition_point(|router| router.slot <= slot) - 1
    }

    /// The place in the list of the output that the head of a queue asks for first.
    fn output_of(&self, slot: u32) -> usize {
        let router = self.routers[self.router_of_slot(slot)];
        (router.output + u32::from(self.slots[slot as usize].output)) as usize
    }

    /// The queues that the head of this one may go to.
    fn behind(&self, slot: u32) -> impl Iterator<Item = u32> + '_ {
        let queue = self.slots[slot as usize];
        let router = self.routers[self.router_of_slot(slot)];
        let first = (queue.output, queue.lane, queue.lanes);
        let second = self
            .seconds
            .get(slot as usize)
            .map_or((0, 0, 0), |second| (second.output, second.lane, second.lanes));
        [first, second].into_iter().flat_map(move |(port, lane, lanes)| {
            let output = self.outputs[(router.output + u32::from(port)) as usize];
            (0..u32::from(lanes)).map(move |number| output.slot + (lane - output.lane) + number)
        })
    }

    fn waiting(&self, slot: u32) -> Waiting {
        let router = self.router_of_slot(slot);
        let queue = self.slots[slot as usize];
        let packet = &self.packets[queue.head];
        let mut first = self.routers[router].slot;
        let mut input = 0;
        loop {
            let queues = self.queues_of(self.slots[first as usize]);
            if slot < first + queues {
                break;
            }
            first += queues;
            input += 1;
        }
        Waiting {
            router: router as u32,
            input,
            channel: (slot - first) as u16,
            output: queue.output,
            source: packet.source,
            target: packet.target,
        }
    }
}

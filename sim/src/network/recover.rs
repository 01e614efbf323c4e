//! Deadlocks that are resolved: a packet of the ring is taken out, and its source sends it again.
use super::{Network, NodeQueue, credit};
use crate::packet::{Handle, NONE};
use crate::time::Time;

/// How deadlocks are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The time from one look for a ring to the next one.
    pub every: Time,
    /// From the removal of a packet until its source may send it again.
    pub wait: Time,
}

impl Network {
    /// Runs until this time, or until no packet is left, and resolves the deadlocks that it finds.
    /// The result is the number of packets that were sent again.
    pub fn recover(&mut self, until: Time, recovery: Recovery) -> u64 {
        self.join();
        let mut look = self.now + recovery.every;
        let mut resent = 0;
        loop {
            match self.calendar.next_time() {
                Some(time) if time < look.min(until) => self.turn(time),
                None if self.packets.live() == 0 => return resent,
                _ if until <= look => {
                    self.now = until;
                    return resent;
                }
                _ => {
                    self.now = look;
                    resent += self.resend(recovery.wait);
                    look += recovery.every;
                }
            }
        }
    }

    /// Takes a packet out of each ring. Its source sends it again, `wait` later. The result is the
    /// number of these packets.
    fn resend(&mut self, wait: Time) -> u64 {
        let rings = self.rings_of_slots();
        for ring in &rings {
            // A queue that others wait for is behind a link.
            self.resend_head(ring[0], wait);
        }
        rings.len() as u64
    }

    fn resend_head(&mut self, slot: u32, wait: Time) {
        let handle = self.take_out(slot);
        let nodes = self.nodes();
        let packet = &mut self.packets[handle];
        let (source, target) = (packet.source, packet.target);
        let from = &mut self.sources[source as usize];
        let per_target = self.parameters.node_queue == NodeQueue::PerTarget;
        let back = self.now + wait;
        packet.slot = from.slot + if per_target { target } else { 0 };
        packet.via = self.routes.via(source, target, nodes, &mut from.random);
        packet.ready = back + self.parameters.injection;
        // All its time so far was a wait in vain.
        packet.waited = back - packet.born;
        let (ready, router) = (packet.ready, from.router);
        let ports = self.enqueue(router, handle, ready);
        self.wake_all(router, ports);
    }

    /// Takes the head out of a queue, whose room is free when all of it has arrived.
    fn take_out(&mut self, slot: u32) -> Handle {
        let router = self.router_of_slot(slot) as u32;
        let queue = self.slots[slot as usize];
        let place = self.routers[router as usize];
        let packet = &self.packets[queue.head];
        let (next, bytes, came) = (packet.next, packet.bytes, packet.ready);
        let arrived = self.now.max(came + self.parameters.link.span(bytes));
        if let Some(record) = &mut self.record {
            record.taken_out(slot, (came, arrived), bytes, self.now);
        }
        self.slots[slot as usize].head = next;
        self.withdraw(place, queue.output.into(), slot - place.slot);
        if !self.seconds.is_empty() {
            self.withdraw_other(router, slot, queue.output.into());
        }
        self.calendar.insert(credit(arrived + self.parameters.credit, queue.feeder, bytes));
        if next != NONE {
            let ports = self.ask(router, slot, self.now);
            self.wake_all(router, ports);
        }
        queue.head
    }

    /// Has outputs looked at as soon as time is taken from the calendar.
    fn wake_all(&mut self, router: u32, mut ports: u64) {
        while ports != 0 {
            self.wake(router, ports.trailing_zeros(), self.now);
            ports &= ports - 1;
        }
    }
}

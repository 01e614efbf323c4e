//! Grants: which packet takes a free output next.
use super::lane::Lane;
use super::{
    ARRIVE, NO_LANE, Network, NodeQueue, Readout, Router, Second, Slot, Switching, TO_NODE, WAKE,
    credit, event,
};
use crate::packet::{Handle, NONE};
use crate::time::Time;

/// The output and lane by which a head leaves.
#[derive(Clone, Copy)]
struct Way {
    port: u32,
    lane: u32,
}

impl Network {
    /// Puts a packet at the end of its queue. The result is a bit for each output that it may take
    /// now.
    pub(super) fn enqueue(&mut self, router: u32, handle: Handle, now: Time) -> u64 {
        let packet = &mut self.packets[handle];
        packet.next = NONE;
        let slot = packet.slot;
        let queue = &mut self.slots[slot as usize];
        if queue.head == NONE {
            queue.head = handle;
            queue.tail = handle;
            self.ask(router, slot, now)
        } else {
            let last = core::mem::replace(&mut queue.tail, handle);
            self.packets[last].next = handle;
            0
        }
    }

    /// Looks at outputs of a router when all events of this time are known.
    #[inline]
    pub(super) fn look_at(&mut self, router: u32, ports: u64) {
        let place = &mut self.routers[router as usize];
        if place.due == 0 && ports != 0 {
            self.due.push(router);
        }
        place.due |= ports;
    }

    /// The head of a queue, which cannot leave before `from`, asks for its output, or for two of
    /// which it may take either. The result is a bit for each that is free now; the others are
    /// looked at when they are.
    #[inline]
    pub(super) fn ask(&mut self, router: u32, slot: u32, from: Time) -> u64 {
        let handle = self.slots[slot as usize].head;
        let hop = self.routes.hop(router, &mut self.packets[handle]);
        let place = self.routers[router as usize];
        let output = &self.outputs[(place.output + u32::from(hop.port)) as usize];
        let queue = &mut self.slots[slot as usize];
        queue.output = hop.port;
        queue.lane = output.lane + u32::from(hop.first);
        queue.lanes = hop.count;
        let ports = self.request(place, router, (slot, hop.port.into()), from);
        if self.seconds.is_empty() { ports } else { ports | self.ask_second(router, slot, from) }
    }

    /// The head of a queue asks for its second output, if it has one.
    #[inline(never)]
    fn ask_second(&mut self, router: u32, slot: u32, from: Time) -> u64 {
        let handle = self.slots[slot as usize].head;
        let second = &mut self.seconds[slot as usize];
        let Some(hop) = self.routes.other(router, &self.packets[handle]) else {
            *second = Second::default();
            return 0;
        };
        let place = self.routers[router as usize];
        let output = &self.outputs[(place.output + u32::from(hop.port)) as usize];
        let lane = output.lane + u32::from(hop.first);
        *second = Second { lane, lanes: hop.count, output: hop.port };
        self.request(place, router, (slot, hop.port.into()), from)
    }

    /// Notes that a queue asks for an output, which it cannot take before `from`. The result is the
    /// output's bit if it is free by then and that is now.
    #[inline(always)]
    fn request(&mut self, place: Router, router: u32, (slot, port): (u32, u32), from: Time) -> u64 {
        let bit = slot - place.slot;
        let word = place.request + port * u32::from(place.words) + bit / 64;
        self.requests[word as usize] |= 1 << (bit % 64);
        let at = self.outputs[(place.output + port) as usize].free.max(from);
        if at > self.now {
            self.wake(router, port, at);
            return 0;
        }
        1 << port
    }

    /// Takes back what the head of a queue asked for. The result is whether others ask for it.
    #[inline(always)]
    pub(super) fn withdraw(&mut self, place: Router, port: u32, bit: u32) -> bool {
        let words = u32::from(place.words);
        let request = (place.request + port * words) as usize;
        let requests = &mut self.requests[request..][..words as usize];
        requests[bit as usize / 64] &= !(1 << (bit % 64));
        requests.iter().any(|word| *word != 0)
    }

    /// Takes back what the head of a queue asked for besides the output that it was granted.
    #[inline(never)]
    pub(super) fn withdraw_other(&mut self, router: u32, slot: u32, granted: u32) {
        let Second { lanes, output, .. } = self.seconds[slot as usize];
        if lanes > 0 {
            let first = u32::from(self.slots[slot as usize].output);
            let other = if granted == first { output.into() } else { first };
            let place = self.routers[router as usize];
            self.withdraw(place, other, slot - place.slot);
        }
    }

    /// Grants what can be granted now at a router. Outputs that are not due have been looked at
    /// before, and are again when something changes for them.
    pub(super) fn allocate(&mut self, router: u32, now: Time) {
        let place = &mut self.routers[router as usize];
        let due = core::mem::take(&mut place.due);
        // Outputs have their turn, too: the first of them would win each line that two want.
        let behind = u64::MAX << place.turn;
        for part in [due & behind, due & !behind] {
            let mut ports = part;
            while ports != 0 {
                let port = ports.trailing_zeros();
                ports &= ports - 1;
                let later = self.serve(router, port, now);
                self.wake(router, port, later);
            }
        }
    }

    /// Has an output looked at when it is `at`, if it is not before.
    #[inline]
    pub(super) fn wake(&mut self, router: u32, port: u32, at: Time) {
        let output = self.routers[router as usize].output + port;
        let output = &mut self.outputs[output as usize];
        if at < output.wake {
            output.wake = at;
            self.calendar.insert(event(at, router, WAKE, port));
        }
    }

    /// Grants an output if it is free and somebody may use it. The result is when it should be
    /// looked at again.
    fn serve(&mut self, router: u32, port: u32, now: Time) -> Time {
        let place = self.routers[router as usize];
        let output = self.outputs[(place.output + port) as usize];
        if output.free > now {
            return output.free;
        }
        let words = u32::from(place.words);
        let first = place.request + port * words;
        let (turn_word, turn_bit) = (u32::from(output.turn) / 64, output.turn % 64);
        let mut later = Time::NEVER;
        // A queue that may leave although its input port's turn is behind it, and the port's end.
        let mut spare: Option<(u32, Way, u32)> = None;
        // The word of the turn comes twice: its later bits first, its earlier ones last.
        for step in 0..=words {
            let word = turn_word + step;
            let word = if word >= words { word - words } else { word };
            let mut bits = self.requests[(first + word) as usize];
            if step == 0 {
                bits &= u64::MAX << turn_bit;
            } else if step == words {
                bits &= !(u64::MAX << turn_bit);
            }
            while bits != 0 {
                let bit = word * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if spare.is_some_and(|(.., end)| bit >= end) {
                    break;
                }
                match self.may_leave(place, bit, port, now) {
                    Ok(lane) => {
                        let Slot { input, .. } = self.slots[(place.slot + bit) as usize];
                        let first = self.slots[(place.slot + u32::from(input)) as usize];
                        let way = Way { port, lane };
                        if bit >= u32::from(first.turn) {
                            return self.grant(router, bit, way, now);
                        }
                        let end = u32::from(input) + self.queues_of(first);
                        spare = spare.or(Some((bit, way, end)));
                    }
                    Err(at) => later = later.min(at),
                }
            }
            if let Some((bit, way, end)) = spare
                && end <= (word + 1) * 64
            {
                return self.grant(router, bit, way, now);
            }
        }
        later
    }

    /// The number of queues of the input port of a queue: one for each channel where a link comes
    /// in, or those of a node.
    #[inline]
    pub(super) fn queues_of(&self, slot: Slot) -> u32 {
        if slot.feeder != NO_LANE {
            return u32::from(self.parameters.channels);
        }
        match self.parameters.node_queue {
            NodeQueue::PerTarget => self.sources.len() as u32,
            NodeQueue::One => 1,
        }
    }

    /// The slot that stands for the line into the crossbar by which a queue is read.
    #[inline]
    fn line(&self, place: Router, bit: u32) -> usize {
        let own = match self.parameters.readout {
            Readout::Port => self.slots[(place.slot + bit) as usize].input.into(),
            Readout::Channel => bit,
        };
        (place.slot + own) as usize
    }

    /// The lane by which the head of a queue may leave now: of several that with most credits. Or
    /// when it should be looked at again; credits are an event themselves.
    #[inline]
    fn may_leave(&mut self, place: Router, bit: u32, port: u32, now: Time) -> Result<u32, Time> {
        let slot = place.slot + bit;
        let Slot { head, lane, lanes, output, .. } = self.slots[slot as usize];
        let free = self.slots[self.line(place, bit)].free;
        if free > now {
            return Err(free);
        }
        let packet = &self.packets[head];
        let mut from = packet.ready;
        if self.parameters.switching == Switching::StoreAndForward {
            from += self.parameters.link.span(packet.bytes);
        }
        if from > now {
            return Err(from);
        }
        let bytes = packet.bytes;
        let (lane, lanes) = if u32::from(output) == port {
            (lane, lanes)
        } else {
            let second = self.seconds[slot as usize];
            (second.lane, second.lanes)
        };
        let lanes = &mut self.lanes[lane as usize..][..usize::from(lanes)];
        let mut best = (0, lanes[0].credits);
        for (number, lane) in (0..).zip(lanes.iter()).skip(1) {
            if lane.credits > best.1 {
                best = (number, lane.credits);
            }
        }
        if best.1 >= bytes {
            return Ok(lane + best.0);
        }
        for lane in lanes {
            lane.starved = true;
        }
        Err(Time::NEVER)
    }

    /// The head of a queue leaves. The result is when the output should be looked at again.
    fn grant(&mut self, router: u32, bit: u32, way: Way, now: Time) -> Time {
        let place = self.routers[router as usize];
        let slot = place.slot + bit;
        let queue = &mut self.slots[slot as usize];
        let handle = queue.head;
        let next = self.packets[handle].next;
        queue.head = next;
        let asked = self.withdraw(place, way.port, bit);
        if !self.seconds.is_empty() {
            self.withdraw_other(router, slot, way.port);
        }
        let gone = self.leave(router, slot, handle, way, now);
        if next != NONE {
            let ports = self.ask(router, slot, gone);
            debug_assert!(ports == 0, "its line is taken for some time");
        }
        if asked { gone } else { Time::NEVER }
    }

    /// A packet leaves a router. The result is when its tail has left.
    #[inline]
    fn leave(&mut self, router: u32, slot: u32, handle: Handle, way: Way, now: Time) -> Time {
        if self.record.is_some() {
            self.note_departure(router, way.port, handle, now);
        }
        let bytes = self.packets[handle].bytes;
        let gone = now + self.parameters.link.span(bytes);
        let place = &mut self.routers[router as usize];
        place.turn = if way.port == 63 { 0 } else { way.port as u8 + 1 };
        let place = *place;
        let turn = self.give_turn(place, slot - place.slot, gone);
        let output = &mut self.outputs[(place.output + way.port) as usize];
        output.free = gone;
        output.turn = turn;
        let output = *output;

        let queue = self.slots[slot as usize];
        let packet = &mut self.packets[handle];
        let waited = now - packet.ready;
        if queue.feeder == NO_LANE {
            packet.queued = waited;
        } else {
            packet.waited += waited;
        }
        self.lanes[way.lane as usize].spend(bytes);
        if output.slot == TO_NODE {
            self.deliver(handle, gone + self.parameters.wire_to_node);
        } else {
            let ready = now + self.parameters.link.wire + self.parameters.pipeline;
            packet.ready = ready;
            packet.hops += 1;
            packet.slot = output.slot + (way.lane - output.lane);
            if self.share.has_slot(output.slot) {
                self.calendar.insert(event(ready, output.to, ARRIVE, handle));
            } else {
                self.send_packet(ready, output.to, handle);
            }
        }
        let credit = credit(gone + self.parameters.credit, queue.feeder, bytes);
        if self.share.has_lane(queue.feeder) {
            self.calendar.insert(credit);
        } else if queue.feeder != NO_LANE {
            self.send_credit(credit);
        }
        gone
    }

    /// A queue is read until `gone`. The next queue of its input port has its turn then. The result
    /// is the first queue of the next input port.
    #[inline]
    fn give_turn(&mut self, place: Router, bit: u32, gone: Time) -> u16 {
        let line = self.line(place, bit);
        self.slots[line].free = gone;
        let queue = self.slots[(place.slot + bit) as usize];
        let input = u32::from(queue.input);
        let end = input + self.queues_of(queue);
        let next = if bit + 1 == end { input } else { bit + 1 };
        self.slots[(place.slot + input) as usize].turn = next as u16;
        if end == u32::from(place.slots) { 0 } else { end as u16 }
    }

    /// Room at the other end of a lane is free again.
    #[inline]
    pub(super) fn credit(&mut self, lane: u32, bytes: u32) {
        let lane = &mut self.lanes[lane as usize];
        lane.credits += bytes;
        if core::mem::take(&mut lane.starved) {
            let Lane { router, port, .. } = *lane;
            self.look_at(router, 1 << port);
        }
    }
}

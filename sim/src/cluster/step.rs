//! Time goes on.
use super::fence::Fence;
use super::frames::{Heap, Looped, Passing, Sending, Sent};
use super::{Cluster, Event, Member, Program};
use crate::time::Time;
use ayre_proto::link::looks::Looks;
use ayre_proto::node::Node;
use ayre_proto::node::effects::Host;
use ayre_proto::units::PeerId;
use core::cmp::Reverse;

/// A nanosecond, the unit of time of nodes.
pub(super) const NANO: u64 = 1_000;

impl Cluster {
    /// Goes on to the next time at which anything happens, and lets all of it happen. Returns
    /// whether there was any.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next_time() else { return false };
        self.now = self.now.max(next);
        while self.network.next_time().is_some_and(|at| at <= self.now) {
            self.network.step();
        }
        self.leave_network();
        while let Some(passing) = self.underway.take(self.now) {
            self.arrive(passing);
        }
        let now = self.nanos();
        while let Some(Reverse((due, number))) = self.due.peek().copied() {
            if due > now {
                break;
            }
            self.due.pop();
            if self.members[number as usize].due == due {
                self.members[number as usize].due = u64::MAX;
                self.members[number as usize].heard += 1;
                self.with_node(number, Time::ZERO, |node, host| node.on_time(now, host));
            }
        }
        true
    }

    /// Lets time pass for a program that looks and finds nothing: until the next time at which
    /// anything happens, and for at most this long. A program without anything to do may look as
    /// often as it likes, and time does not run away meanwhile.
    pub fn pass(&mut self, most: Time) {
        let end = self.now + most;
        if self.next_time().is_some_and(|next| next <= end) {
            self.step();
        } else {
            self.now = end;
        }
    }

    /// The next time at which anything happens.
    pub fn next_time(&mut self) -> Option<Time> {
        let arrival = self.underway.next_time();
        let due = self.due.peek().map(|Reverse((due, _))| Time(due.saturating_mul(NANO)));
        [self.network.next_time(), arrival, due].into_iter().flatten().min()
    }

    /// The time in nanoseconds, by which nodes count.
    pub(super) fn nanos(&self) -> u64 {
        self.now.0 / NANO
    }

    /// Frames whose last byte has left the network, or is about to, enter the receiver's stage.
    fn leave_network(&mut self) {
        for delivery in self.network.deliveries() {
            self.underway.arrives(delivery.at, delivery.tag.get() - 1);
        }
    }

    /// A frame passes the receiver's stage. Frames land in the order in which they have come.
    fn enter(&mut self, sent: Sent) {
        let member = &mut self.members[sent.to as usize];
        let cost = member.units.enter(PeerId(sent.header.to as u16), &sent.payload);
        let stage = &self.times.receive;
        let passing = Time(stage.byte.0 * u64::from(sent.bytes));
        let begin = self.now.max(member.receives);
        member.receives = begin + stage.frame + passing + cost.hold;
        let lands = begin + stage.latency + passing + cost.latency;
        member.units.landed = lands.max(member.units.landed);
        let at = member.units.landed;
        let place = self.underway.add(Passing::Landing(sent));
        self.underway.arrives(at, place);
    }

    /// A node has a frame, or something of its own.
    fn arrive(&mut self, passing: Passing) {
        let to = match &passing {
            Passing::Frame(Sent { to, .. })
            | Passing::Landing(Sent { to, .. })
            | Passing::Looped(to, _)
            | Passing::Fence(Fence { node: to, .. })
            | Passing::Interrupt(to) => *to,
        };
        if self.is_dead[to as usize] {
            return;
        }
        let passing = match passing {
            Passing::Frame(sent) => return self.enter(sent),
            Passing::Fence(fence) => return self.on_fence(fence),
            passing => passing,
        };
        self.members[to as usize].heard += 1;
        let (looks, own) = (Looks::all_the_time(self.nanos()), PeerId(to as u16));
        self.with_node(to, Time::ZERO, |node, host| match passing {
            Passing::Frame(_) | Passing::Fence(_) => {}
            Passing::Landing(Sent { header, payload, .. }) => {
                node.on_frame((&header, &payload), &looks, host);
            }
            Passing::Looped(_, Looped::Record(lane, record)) => {
                node.on_record(own, lane, &record, host);
            }
            Passing::Looped(_, Looped::Word(word, value)) => {
                node.on_word(own, word, value, host);
            }
            Passing::Looped(_, Looped::Offer(offer)) => node.on_offer(own, offer, host),
            Passing::Interrupt(_) => host.program.events.push_back(Event::Interrupt),
        });
    }

    /// A node acts. Its frames enter the interface after a time.
    pub(super) fn with_node<R>(
        &mut self,
        own: u32,
        after: Time,
        act: impl FnOnce(&mut Node<Heap, Program>, &mut Host<'_, Program, Sending<'_>>) -> R,
    ) -> R {
        let (now, at) = (self.now, self.now + after);
        let Member { node, program, interface, units, sends, .. } = &mut self.members[own as usize];
        let mut wire = Sending {
            own,
            at,
            free_at: sends,
            times: &self.times,
            units,
            network: &mut self.network,
            underway: &mut self.underway,
            is_dead: &self.is_dead,
        };
        let mut host = Host { program, wire: &mut wire };
        let done = act(node, &mut host);
        interface.take_in(&self.profile, (node, now), &mut host);
        self.schedule(own);
        done
    }

    /// Notes when a node has something to do next.
    pub(super) fn schedule(&mut self, own: u32) {
        if self.is_dead[own as usize] {
            return;
        }
        let now = self.nanos();
        let member = &mut self.members[own as usize];
        let deadline = member.node.deadline();
        // A deadline that has passed is due now.
        let due = deadline.max(now);
        if deadline != u64::MAX && due != member.due {
            member.due = due;
            self.due.push(Reverse((due, own)));
        }
    }
}

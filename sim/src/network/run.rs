//! The loop over events.
use super::rounds::Halt;
use super::{ARRIVE, CREDIT, Delivery, GENERATE, Network, Parameters, about, kind_of, router_of};
use crate::packet::Handle;
use crate::random::mix;
use crate::stats::Tally;
use crate::time::Time;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As many packets were delivered as were asked for.
    Measured,
    /// More packets were on their way than the limit: the load is more than the network carries.
    Saturated,
    /// Packets wait for each other in a ring: see [`Network::ring`]. It is found when no event is
    /// left, or the packets on their way have doubled since it was looked for.
    Deadlocked,
    /// No packet is left.
    Drained,
}

/// This many routers at most are looked at in the order in which events named them.
const UNSORTED_MAX: usize = 64;

/// Packets on their way at which a run is given up.
const BACKLOG_MAX: usize = 1 << 24;

impl Network {
    /// Runs until `packets` more packets have been delivered, and to the end of that window of
    /// time, or until the run ends for another reason.
    pub fn run(&mut self, packets: u64) -> Outcome {
        let goal = self.tally.delivered() + packets;
        loop {
            self.part();
            match self.rounds(goal) {
                Halt::Delivered => return Outcome::Measured,
                Halt::Empty if self.backlog() > 0 => return Outcome::Deadlocked,
                Halt::Empty => return Outcome::Drained,
                Halt::Crowded => {
                    if let Some(outcome) = self.look_for_ring() {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Takes all events of the next time, which is `now`.
    #[inline]
    pub(super) fn turn(&mut self, now: Time) {
        self.now = now;
        while let Some(event) = self.calendar.take_at(now) {
            self.note(event, now);
        }
        let mut due = core::mem::take(&mut self.due);
        if due.len() > UNSORTED_MAX {
            self.sort(&mut due);
        }
        for router in due.drain(..) {
            self.allocate(router, now);
        }
        self.due = due;
    }

    /// Puts many routers in their order, in which neighbours come from memory together. The events
    /// that follow have nearly that order, too.
    #[cold]
    fn sort(&mut self, due: &mut Vec<u32>) {
        for router in due.drain(..) {
            self.marks[router as usize / 64] |= 1 << (router % 64);
        }
        for (group, marks) in (0..).zip(&mut self.marks) {
            let mut marks = core::mem::take(marks);
            while marks != 0 {
                due.push(group * 64 + marks.trailing_zeros());
                marks &= marks - 1;
            }
        }
    }

    /// Decides whether to give up, when there are many packets.
    #[cold]
    fn look_for_ring(&mut self) -> Option<Outcome> {
        let live = self.backlog();
        if self.ring().is_some() {
            return Some(Outcome::Deadlocked);
        }
        if live > BACKLOG_MAX {
            return Some(Outcome::Saturated);
        }
        self.crowd = (2 * live).min(BACKLOG_MAX);
        None
    }

    /// Notes an event. Outputs are granted when all events of its time are known.
    #[inline]
    fn note(&mut self, event: u64, now: Time) {
        let router = router_of(event);
        match kind_of(event) {
            ARRIVE => {
                let ports = self.enqueue(router, about(event), now);
                self.look_at(router, ports);
            }
            GENERATE => self.generate(about(event), now),
            CREDIT => self.credit(about(event), router),
            _ => {
                let port = about(event);
                let output = self.routers[router as usize].output + port;
                let wake = &mut self.outputs[output as usize].wake;
                // If it was to be woken earlier, it has been.
                if *wake == now {
                    *wake = Time::NEVER;
                    self.look_at(router, 1 << port);
                }
            }
        }
    }

    /// A packet's tail reaches its target at `at`.
    pub(super) fn deliver(&mut self, handle: Handle, at: Time) {
        let packet = self.packets.remove(handle);
        self.tally.record(&packet, at);
        if let Some(tag) = packet.tag {
            self.deliveries.push(Delivery { at, tag });
        } else if let Some(think) = self.load.think() {
            let source = &self.sources[packet.source as usize];
            if self.share.has_slot(source.slot) {
                self.plan(packet.source, at + think);
            } else {
                self.send_plan(at + think, source.router, packet.source);
            }
        }
    }

    /// The parameters that it was made with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The results so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Forgets the results so far: the end of the warm-up.
    pub fn discard(&mut self) {
        self.started = self.time;
        self.tally = Tally::new(self.started);
        for part in &mut self.others {
            part.tally = Tally::new(self.started);
        }
    }

    /// The end of the last run: all events before it have been taken.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Packets on their way, queues of sources included.
    pub fn backlog(&self) -> usize {
        self.packets.live() + self.others.iter().map(|part| part.packets.live()).sum::<usize>()
    }

    /// Packets made since the beginning.
    pub fn made(&self) -> u64 {
        self.made.0 + self.others.iter().map(|part| part.made.0).sum::<u64>()
    }

    /// Their bytes.
    pub fn bytes_made(&self) -> u128 {
        self.made.1 + self.others.iter().map(|part| part.made.1).sum::<u128>()
    }

    /// Nodes make no more packets.
    pub fn stop_sources(&mut self) {
        self.sources_stopped = true;
        self.others.iter_mut().for_each(|part| part.sources_stopped = true);
    }

    /// Takes events of one time in an order that follows from `seed`, which changes nothing: for
    /// tests.
    #[doc(hidden)]
    pub fn scramble(&mut self, seed: u64) {
        self.join();
        self.calendar.scramble(seed);
    }

    /// Checks that a network without packets holds nothing back: all credits are with their
    /// senders, and nobody asks for anything.
    ///
    /// # Panics
    /// If something is held back, which is a fault of the simulator.
    pub fn check_idle(&mut self) {
        self.join();
        assert!(self.lanes.iter().all(|lane| lane.has_all(self.parameters.buffer)));
        assert!(self.requests.iter().all(|word| *word == 0));
        assert!(self.routers.iter().all(|router| router.due == 0));
    }

    /// A number that follows from all deliveries and their times, in whatever order they are
    /// recorded: two runs with equal numbers took the same course.
    pub fn course(&self) -> u64 {
        mix(self.tally.course())
    }
}

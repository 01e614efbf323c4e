//! A network in parts, each on a thread of its own.
//!
//! A part goes on alone for a window of time, since nothing that another part does within a window
//! can reach it before the window's end. Then all parts meet and exchange what crosses between them
//! (conservative synchronisation by windows; Nicol 1993, JACM 40:2).
//!
//! ```text
//!   part 0   |== events ==>|tell|meet|hear|== events ==>|tell|meet|hear| ...
//!   part 1   |== events =====>|tell|  |hear|= events =>|tell|    |hear| ...
//!            window of length `ahead`      next window with an event
//! ```
//!
//! Windows begin at multiples of their length, and runs end with a window. So a run comes to the
//! same end in any number of parts. A network of one part waits for nobody: it goes on until a run
//! may end, and then to the end of that window.
use super::meeting::Meeting;
use super::{ARRIVE, GENERATE, Network, about, event, kind_of, router_of};
use crate::calendar::Event;
use crate::packet::{Handle, Packet};
use crate::stats::Tally;
use crate::time::Time;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a run does not go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// As many packets have been delivered as were asked for.
    Delivered,
    /// No event is left.
    Empty,
    /// There are more packets on their way than the limit.
    Crowded,
}

/// Packets and events that go from one part to another one.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: Vec<Packet>,
    /// An arrival is about a place in `packets`.
    events: Vec<Event>,
}

/// The state that a part tells the others after a window.
#[derive(Debug)]
struct Desk {
    /// The time of its next event, or of one that it sends.
    next: Time,
    delivered: u64,
    /// Packets on their way, those that it sends included.
    live: usize,
    outboxes: Vec<Outbox>,
}

/// The state of all parts together.
struct Whole {
    next: Time,
    delivered: u64,
    live: usize,
}

/// Where parts meet.
struct Exchange {
    /// A desk for each part, twice: a part may tell anew while others still hear.
    desks: [Vec<Mutex<Desk>>; 2],
    meeting: Meeting,
}

impl Exchange {
    fn new(parts: usize) -> Self {
        let desk = |_| {
            let outboxes = (0..parts).map(|_| Outbox::default()).collect();
            Mutex::new(Desk { next: Time::NEVER, delivered: 0, live: 0, outboxes })
        };
        Self {
            desks: [(0..parts).map(desk).collect(), (0..parts).map(desk).collect()],
            meeting: Meeting::new(parts),
        }
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Network {
    /// Runs all parts until `goal` packets have been delivered, or for as long as they can.
    pub(super) fn rounds(&mut self, goal: u64) -> Halt {
        let exchange = Exchange::new(1 + self.others.len());
        let mut others = core::mem::take(&mut self.others);
        let crowd = self.crowd;
        let halt = std::thread::scope(|scope| {
            for part in &mut others {
                part.crowd = crowd;
                scope.spawn(|| part.rounds_of_part(&exchange, goal));
            }
            self.rounds_of_part(&exchange, goal)
        });
        for part in &mut others {
            let empty = Tally::new(self.started);
            self.tally.merge(&core::mem::replace(&mut part.tally, empty));
            self.deliveries.append(&mut part.deliveries);
            self.now = self.now.max(part.now);
        }
        self.others = others;
        self.time = self.window_end(self.now);
        halt
    }

    fn rounds_of_part(&mut self, exchange: &Exchange, goal: u64) -> Halt {
        let _attends = exchange.meeting.attend();
        let is_alone = exchange.desks[0].len() == 1;
        for desks in exchange.desks.iter().cycle() {
            self.tell(desks);
            exchange.meeting.wait();
            let whole = self.hear(desks);
            if whole.live > self.crowd {
                return Halt::Crowded;
            }
            if whole.delivered >= goal {
                return Halt::Delivered;
            }
            if whole.next == Time::NEVER {
                return Halt::Empty;
            }
            let until = if is_alone { Time::NEVER } else { self.window_end(whole.next) };
            self.advance(until, goal);
        }
        Halt::Empty
    }

    /// Takes all events before `until`. If the run may end before, the window is the last one.
    fn advance(&mut self, mut until: Time, goal: u64) {
        while let Some(now) = self.calendar.next_time()
            && now < until
        {
            self.turn(now);
            if self.tally.delivered() >= goal || self.packets.live() > self.crowd {
                until = until.min(self.window_end(now));
            }
        }
    }

    /// The end of the window that has this time.
    #[cold]
    pub(super) fn window_end(&self, time: Time) -> Time {
        Time((time.0 / self.ahead.0 + 1) * self.ahead.0)
    }

    fn tell(&mut self, desks: &[Mutex<Desk>]) {
        let sent = self.outboxes.iter().flat_map(|outbox| &outbox.events).map(|event| event.at);
        let next = sent.chain(self.calendar.next_time()).min().unwrap_or(Time::NEVER);
        let leaving: usize = self.outboxes.iter().map(|outbox| outbox.packets.len()).sum();
        let mut desk = lock(&desks[self.share.part]);
        desk.next = next;
        desk.delivered = self.tally.delivered();
        desk.live = self.packets.live() + leaving;
        if !self.outboxes.is_empty() {
            // All parts have emptied those of the desk.
            core::mem::swap(&mut desk.outboxes, &mut self.outboxes);
        }
    }

    fn hear(&mut self, desks: &[Mutex<Desk>]) -> Whole {
        let mut whole = Whole { next: Time::NEVER, delivered: 0, live: 0 };
        for desk in desks {
            let mut desk = lock(desk);
            whole.next = whole.next.min(desk.next);
            whole.delivered += desk.delivered;
            whole.live += desk.live;
            let part = self.share.part;
            self.unpack(&mut desk.outboxes[part]);
        }
        whole
    }

    /// Takes what another part has sent.
    fn unpack(&mut self, outbox: &mut Outbox) {
        for Event { at, what } in outbox.events.drain(..) {
            let event = match kind_of(what) {
                ARRIVE => {
                    let handle = self.packets.add(outbox.packets[about(what) as usize]);
                    event(at, router_of(what), ARRIVE, handle)
                }
                _ => Event { at, what },
            };
            self.calendar.insert(event);
        }
        outbox.packets.clear();
    }

    /// A packet goes to a router of another part.
    #[cold]
    pub(super) fn send_packet(&mut self, at: Time, router: u32, handle: Handle) {
        let packet = self.packets.remove(handle);
        let outbox = self.outbox_to(router);
        outbox.events.push(event(at, router, ARRIVE, outbox.packets.len() as u32));
        outbox.packets.push(packet);
    }

    /// Credits go to a router of another part.
    #[cold]
    pub(super) fn send_credit(&mut self, credit: Event) {
        let router = self.lanes[about(credit.what) as usize].router;
        self.outbox_to(router).events.push(credit);
    }

    /// A node of another part will make a packet.
    #[cold]
    pub(super) fn send_plan(&mut self, at: Time, router: u32, node: u32) {
        self.outbox_to(router).events.push(event(at, router, GENERATE, node));
    }

    fn outbox_to(&mut self, router: u32) -> &mut Outbox {
        let part = self.share.part_of(router);
        &mut self.outboxes[part]
    }
}

//! The protocol between interfaces: optimistic go-back-N with NACK (sections 4.2.1 and 4.3.2).
//!
//! ```text
//!   sender              receiver
//!     0 ------------------>  accepted       --- ACK 0 --->
//!     1 ------------------>  no room        --- NACK 1 -->
//!     2 ------------------>  not the next one: dropped
//!     1, 2 again after the NACK
//! ```
//!
//! Messages leave without a reservation. The receiver drops what it has no room for, and all behind
//! it. Messages of a *stream* are in sequence: all of an interface, or those of one channel. The
//! link loses nothing, so there are no timers. An ACK frees memory of the sender, which has enough
//! here.
use crate::calendar::{Calendar, Event};
use crate::time::Time;

/// Which messages share a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Those to an interface.
    Interface,
    /// Those from one channel to another.
    Channel,
}

/// The times of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From message to message on the link.
    pub period: Time,
    /// From the begin of a message to the receiver's decision.
    pub way: Time,
    /// From that decision to the sender's reaction.
    pub back: Time,
}

/// An endpoint that takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Messages that its queue holds.
    pub room: u32,
    /// The time in which it handles one.
    pub service: Time,
}

/// The result of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Messages on the link for each endpoint, repeated ones included.
    pub sent: Vec<u64>,
    /// Messages that an endpoint had no room for.
    pub refused: u64,
    /// Messages dropped behind a refused one.
    pub dropped: u64,
    /// The messages in the order in which each endpoint accepted them.
    pub accepted: Vec<Vec<u32>>,
    /// When each endpoint had handled its last one.
    pub ended: Vec<Time>,
}

/// Events, in the order in which those of one time are handled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// An endpoint has handled a message.
    Handled { endpoint: u32 },
    /// A message is at the receiver.
    Arrives { stream: u32, number: u32 },
    /// The sender learns of a refused message.
    Nack { stream: u32, number: u32 },
    /// The link is free.
    Free,
}

/// Messages in sequence, numbered from 0.
struct Stream {
    /// The endpoint of each message, and its place among all messages.
    messages: Vec<(u32, u32)>,
    /// The next one to send.
    next: u32,
    /// The next one that the receiver accepts.
    expected: u32,
}

struct Exchange<'a> {
    times: &'a Times,
    endpoints: &'a [Endpoint],
    streams: Vec<Stream>,
    /// Messages in each endpoint's queue.
    queued: Vec<u32>,
    /// The stream that was served last.
    turn: usize,
    is_link_busy: bool,
    calendar: Calendar,
    happens: Vec<Happens>,
    outcome: Outcome,
}

/// Sends messages, each to the endpoint that it names, from one interface to another one.
///
/// # Panics
/// If a message names no endpoint, or an endpoint has no room at all.
pub fn exchange(
    times: &Times,
    endpoints: &[Endpoint],
    messages: &[u32],
    sequence: Sequence,
) -> Outcome {
    assert!(endpoints.iter().all(|endpoint| endpoint.room > 0), "an endpoint has no room");
    let mut exchange = Exchange::new(times, endpoints, messages, sequence);
    exchange.insert(Time::ZERO, Happens::Free);
    exchange.is_link_busy = true;
    exchange.run();
    exchange.outcome
}

impl<'a> Exchange<'a> {
    fn new(
        times: &'a Times,
        endpoints: &'a [Endpoint],
        messages: &[u32],
        sequence: Sequence,
    ) -> Self {
        let count = if sequence == Sequence::Channel { endpoints.len() } else { 1 };
        let stream = || Stream { messages: Vec::new(), next: 0, expected: 0 };
        let mut streams: Vec<_> = (0..count).map(|_| stream()).collect();
        for (place, &endpoint) in messages.iter().enumerate() {
            let stream = if sequence == Sequence::Channel { endpoint as usize } else { 0 };
            streams[stream].messages.push((endpoint, place as u32));
        }
        Self {
            times,
            endpoints,
            streams,
            queued: vec![0; endpoints.len()],
            turn: 0,
            is_link_busy: false,
            calendar: Calendar::new(times.period),
            happens: Vec::new(),
            outcome: Outcome {
                sent: vec![0; endpoints.len()],
                refused: 0,
                dropped: 0,
                accepted: vec![Vec::new(); endpoints.len()],
                ended: vec![Time::ZERO; endpoints.len()],
            },
        }
    }

    fn insert(&mut self, at: Time, what: Happens) {
        self.happens.push(what);
        self.calendar.insert(Event { at, what: self.happens.len() as u64 - 1 });
    }

    fn run(&mut self) {
        while let Some(now) = self.calendar.next_time() {
            let mut all = Vec::new();
            while let Some(event) = self.calendar.take_at(now) {
                all.push(self.happens[event as usize]);
            }
            all.sort_unstable();
            for what in all {
                self.handle(what, now);
            }
            self.send(now);
        }
    }

    fn handle(&mut self, what: Happens, now: Time) {
        match what {
            Happens::Handled { endpoint } => self.handled(endpoint, now),
            Happens::Arrives { stream, number } => self.arrive(stream, number, now),
            // Later messages follow it again.
            Happens::Nack { stream, number } => self.streams[stream as usize].next = number,
            Happens::Free => self.is_link_busy = false,
        }
    }

    /// The next stream with a message has the link.
    fn send(&mut self, now: Time) {
        if self.is_link_busy {
            return;
        }
        let count = self.streams.len();
        let mut turns = (1..=count).map(|ahead| (self.turn + ahead) % count);
        let has_more = |stream: &Stream| (stream.next as usize) < stream.messages.len();
        let Some(turn) = turns.find(|&turn| has_more(&self.streams[turn])) else { return };
        self.turn = turn;
        let stream = &mut self.streams[turn];
        let number = stream.next;
        stream.next += 1;
        self.outcome.sent[stream.messages[number as usize].0 as usize] += 1;
        self.is_link_busy = true;
        self.insert(now + self.times.period, Happens::Free);
        self.insert(now + self.times.way, Happens::Arrives { stream: turn as u32, number });
    }

    fn arrive(&mut self, stream: u32, number: u32, now: Time) {
        let state = &mut self.streams[stream as usize];
        if number != state.expected {
            self.outcome.dropped += 1;
            return;
        }
        let (endpoint, place) = state.messages[number as usize];
        let queued = &mut self.queued[endpoint as usize];
        if *queued == self.endpoints[endpoint as usize].room {
            self.outcome.refused += 1;
            self.insert(now + self.times.back, Happens::Nack { stream, number });
            return;
        }
        state.expected += 1;
        *queued += 1;
        self.outcome.accepted[endpoint as usize].push(place);
        if *queued == 1 {
            let service = self.endpoints[endpoint as usize].service;
            self.insert(now + service, Happens::Handled { endpoint });
        }
    }

    fn handled(&mut self, endpoint: u32, now: Time) {
        let queued = &mut self.queued[endpoint as usize];
        *queued -= 1;
        self.outcome.ended[endpoint as usize] = now;
        if *queued > 0 {
            let service = self.endpoints[endpoint as usize].service;
            self.insert(now + service, Happens::Handled { endpoint });
        }
    }
}

//! GRIM's optimistic go-back-N with NACK.
use ayre_sim::grim::reliable::{Endpoint, Outcome, Sequence, Times, exchange};
use ayre_sim::time::Time;
use proptest::prelude::*;

/// The sender's messages of a sequence, and the receiver's end of it.
#[derive(Default)]
struct Stream {
    /// Each message: its endpoint, and its place among all messages.
    messages: Vec<(usize, u32)>,
    /// The message that is sent next.
    next: usize,
    /// Messages that the receiver has accepted.
    accepted: usize,
}

/// An endpoint's queue: its messages, and for how long the first one has been handled.
#[derive(Clone, Default)]
struct Queue {
    messages: u32,
    handled: u64,
}

struct Reference<'a> {
    times: &'a Times,
    endpoints: &'a [Endpoint],
    streams: Vec<Stream>,
    queues: Vec<Queue>,
    /// Messages on the link: when they come, their stream and their number there.
    coming: Vec<(u64, usize, usize)>,
    /// NACKs on their way, likewise.
    nacks: Vec<(u64, usize, usize)>,
    /// The link is free from then on.
    free: u64,
    last: usize,
    outcome: Outcome,
}

impl Reference<'_> {
    /// A picosecond: endpoints handle messages, messages and NACKs come, and the link takes the
    /// next message.
    fn tick(&mut self, now: u64) {
        for (number, queue) in self.queues.iter_mut().enumerate() {
            let is_busy = queue.messages > 0;
            queue.handled += u64::from(is_busy);
            if is_busy && queue.handled == self.endpoints[number].service.0 {
                *queue = Queue { messages: queue.messages - 1, handled: 0 };
                self.outcome.ended[number] = Time(now);
            }
        }
        for (_, stream, number) in self.coming.extract_if(.., |it| it.0 == now).collect::<Vec<_>>()
        {
            self.come(stream, number, now);
        }
        for (_, stream, number) in self.nacks.extract_if(.., |it| it.0 == now) {
            self.streams[stream].next = number;
        }
        if self.free <= now {
            self.send(now);
        }
    }

    fn come(&mut self, stream: usize, number: usize, now: u64) {
        let state = &mut self.streams[stream];
        let (endpoint, place) = state.messages[number];
        let queue = &mut self.queues[endpoint];
        if number != state.accepted {
            self.outcome.dropped += 1;
        } else if queue.messages == self.endpoints[endpoint].room {
            self.outcome.refused += 1;
            self.nacks.push((now + self.times.back.0, stream, number));
        } else {
            queue.messages += 1;
            state.accepted += 1;
            self.outcome.accepted[endpoint].push(place);
        }
    }

    /// The streams take turns.
    fn send(&mut self, now: u64) {
        let count = self.streams.len();
        for stream in (self.last + 1..count).chain(0..=self.last) {
            let state = &mut self.streams[stream];
            if state.next < state.messages.len() {
                self.last = stream;
                self.outcome.sent[state.messages[state.next].0] += 1;
                self.coming.push((now + self.times.way.0, stream, state.next));
                state.next += 1;
                self.free = now + self.times.period.0;
                return;
            }
        }
    }

    fn is_idle(&self) -> bool {
        let is_sent = |stream: &Stream| stream.next == stream.messages.len();
        self.coming.is_empty()
            && self.nacks.is_empty()
            && self.streams.iter().all(is_sent)
            && self.queues.iter().all(|queue| queue.messages == 0)
    }
}

fn reference(
    times: &Times,
    endpoints: &[Endpoint],
    messages: &[u32],
    sequence: Sequence,
) -> Outcome {
    let count = endpoints.len();
    let mut streams = Vec::new();
    streams.resize_with(if sequence == Sequence::Channel { count } else { 1 }, Stream::default);
    for (place, endpoint) in (0..).zip(messages) {
        let stream = if sequence == Sequence::Channel { *endpoint as usize } else { 0 };
        streams[stream].messages.push((*endpoint as usize, place));
    }
    let outcome = Outcome {
        sent: vec![0; count],
        refused: 0,
        dropped: 0,
        accepted: vec![vec![]; count],
        ended: vec![Time::ZERO; count],
    };
    let (coming, nacks, queues) = (vec![], vec![], vec![Queue::default(); count]);
    let mut reference =
        Reference { times, endpoints, streams, queues, coming, nacks, free: 0, last: 0, outcome };
    let mut now = 0;
    while !reference.is_idle() {
        reference.tick(now);
        now += 1;
    }
    reference.outcome
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_repeated_and_accepted_as_the_reference_says(
        (period, way, back) in (1_u64..8, 1_u64..20, 1_u64..20),
        endpoints in prop::collection::vec((1_u32..5, 1_u64..30), 1..4),
        messages in prop::collection::vec(any::<u32>(), 0..40),
        by_channel in any::<bool>(),
    ) {
        let times = Times { period: Time(period), way: Time(way), back: Time(back) };
        let endpoint = |(room, service)| Endpoint { room, service: Time(service) };
        let endpoints: Vec<_> = endpoints.into_iter().map(endpoint).collect();
        let count = endpoints.len() as u32;
        let messages: Vec<_> = messages.into_iter().map(|message| message % count).collect();
        let sequence = if by_channel { Sequence::Channel } else { Sequence::Interface };
        let ours = exchange(&times, &endpoints, &messages, sequence);
        prop_assert_eq!(ours, reference(&times, &endpoints, &messages, sequence));
    }
}

//! HyperTransport over Ethernet: a bridge that sends packets in frames (paper B, sections 3 and 4).
//!
//! ```text
//!   senders                     switch       receiver: buffers of each link and channel
//!   posted, non-posted,                      +------------------+
//!   response --> frames ------> one port --> | p p p   n   r r  | --> drained
//!      ^                                     +------------------+
//!      '-- next frame expected, packets drained so far <---'
//! ```
//!
//! A virtual link joins a sender with the receiver, and has credits for each virtual channel. A
//! credit is a buffer of the receiver, so no buffer overflows, and a link without credits holds up
//! no other link. A frame has packets of one channel. Frames that are lost are sent again from the
//! first missing one on (go-back-N). An answer has totals, so a later one replaces one that is
//! lost.
use crate::calendar::{Calendar, Event};
use crate::link::LinkTiming;
use crate::random::Random;
use crate::time::Time;
use std::collections::VecDeque;

/// Virtual channels: posted, non-posted, response.
pub const CHANNELS: usize = 3;
/// Data of a packet, and the packet with its command.
pub const DATA: u32 = 64;
/// See [`DATA`].
pub const PACKET: u32 = DATA + 8;

/// The bridges and their network. The source gives no numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bridge {
    /// The port of each sender, and that of the receiver.
    pub port: LinkTiming,
    /// Bytes of a frame besides its packets: preamble, headers, CRCs, gap.
    pub around: u32,
    /// Packets of a frame at most.
    pub packets: u32,
    /// Frames that a sender keeps until they are acknowledged.
    pub window: usize,
    /// After this time without progress, a sender goes back.
    pub timeout: Time,
    /// The chance of a frame to be lost, and of an answer.
    pub loss: f64,
    /// The time in which the receiver passes on a packet of a link and channel.
    pub drain: Time,
}

impl Bridge {
    /// Ethernet of 10 Gb/s. Reconstructed: 54 bytes around the packets are preamble, header, CRC
    /// and gap of Ethernet (38) and 16 bytes of the bridge's own.
    pub const TEN_GIGABIT: Self = Self {
        port: LinkTiming { phit: Time(800), width: 1, wire: Time::from_nanos(500) },
        around: 54,
        packets: 16,
        window: 32,
        timeout: Time::from_nanos(50_000),
        loss: 0.0,
        drain: Time::from_nanos(10),
    };
}

/// The traffic of a virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Packets to be sent on each channel.
    pub packets: [u64; CHANNELS],
    /// Credits of each channel.
    pub credits: [u64; CHANNELS],
    /// Channels that the receiver does not drain.
    pub stuck: [bool; CHANNELS],
}

/// The course of a virtual link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets that came, by channel: each once and in order.
    pub came: [u64; CHANNELS],
    /// The most packets that a channel's buffers held.
    pub held: [u64; CHANNELS],
    /// Frames sent, and those of them that were sent again.
    pub frames: u64,
    /// See `frames`.
    pub again: u64,
    /// When the last packet came.
    pub end: Time,
}

/// A frame on its way. Without packets, it asks for an answer.
#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u64,
    channel: usize,
    packets: u64,
}

/// The state of a virtual link.
struct Link {
    traffic: Traffic,
    report: Report,
    /// Frames that are not acknowledged, the number of the first one, and the next one to be sent.
    kept: VecDeque<Frame>,
    base: u64,
    next: u64,
    sent: [u64; CHANNELS],
    /// Packets that the receiver has drained, as far as the sender knows.
    known: [u64; CHANNELS],
    /// When the sender's port is free, and when it goes back.
    free: Time,
    back: Time,
    /// The frame that the receiver expects, and the packets that it has drained.
    expected: u64,
    drained: [u64; CHANNELS],
    /// When the receiver has drained each channel.
    until: [Time; CHANNELS],
    /// Frames on their way, and answers: the frame expected and the packets drained.
    way: VecDeque<Frame>,
    answers: VecDeque<(u64, [u64; CHANNELS])>,
    drains: VecDeque<(usize, u64)>,
    turn: usize,
}

/// Kinds of events: the sender may send, a frame comes, packets are drained, an answer comes, time
/// is over.
const SEND: u64 = 0;
const FRAME: u64 = 1;
const DRAIN: u64 = 2;
const ANSWER: u64 = 3;
const BACK: u64 = 4;

struct Run<'a> {
    bridge: &'a Bridge,
    calendar: Calendar,
    links: Vec<Link>,
    /// When the receiver's port is free.
    port: Time,
    random: Random,
}

impl Bridge {
    /// Runs the traffic of all links until everything has come that can, or until `end`.
    pub fn run(&self, traffic: &[Traffic], end: Time, seed: u64) -> Vec<Report> {
        let mut run = Run {
            bridge: self,
            calendar: Calendar::new(self.port.span(PACKET)),
            links: traffic.iter().map(|traffic| Link::new(*traffic)).collect(),
            port: Time::ZERO,
            random: Random::new(seed, 0),
        };
        for link in 0..traffic.len() {
            run.insert(Time::ZERO, SEND, link);
            run.wait(link, Time::ZERO);
        }
        while let Some(now) = run.calendar.next_time().filter(|now| *now < end) {
            // Those of one time are taken by kind and link, whatever their order was.
            let mut events = Vec::new();
            while let Some(event) = run.calendar.take_at(now) {
                events.push(event);
            }
            events.sort_unstable();
            for event in events {
                run.take(event & 0xffff_ffff, (event >> 32) as usize, now);
            }
        }
        run.links.into_iter().map(|link| link.report).collect()
    }
}

impl Link {
    fn new(traffic: Traffic) -> Self {
        Self {
            traffic,
            report: Report::default(),
            kept: VecDeque::new(),
            base: 0,
            next: 0,
            sent: [0; CHANNELS],
            known: [0; CHANNELS],
            free: Time::ZERO,
            back: Time::ZERO,
            expected: 0,
            drained: [0; CHANNELS],
            until: [Time::ZERO; CHANNELS],
            way: VecDeque::new(),
            answers: VecDeque::new(),
            drains: VecDeque::new(),
            turn: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.kept.is_empty() && self.sent == self.traffic.packets
    }

    /// The next frame: one to be sent again, or a new one of the next channel that has packets and
    /// credits.
    fn frame(&mut self, bridge: &Bridge) -> Option<Frame> {
        if let Some(frame) = self.kept.get((self.next - self.base) as usize).copied() {
            self.next += 1;
            self.report.again += 1;
            return Some(frame);
        }
        if self.kept.len() == bridge.window {
            return None;
        }
        for channel in (self.turn..self.turn + CHANNELS).map(|channel| channel % CHANNELS) {
            let credits = self.traffic.credits[channel] + self.known[channel] - self.sent[channel];
            let left = self.traffic.packets[channel] - self.sent[channel];
            let packets = left.min(credits).min(bridge.packets.into());
            if packets > 0 {
                self.turn = channel + 1;
                self.sent[channel] += packets;
                return Some(self.keep(channel, packets));
            }
        }
        None
    }

    fn keep(&mut self, channel: usize, packets: u64) -> Frame {
        let frame = Frame { number: self.next, channel, packets };
        self.kept.push_back(frame);
        self.next += 1;
        frame
    }
}

impl Run<'_> {
    fn insert(&mut self, at: Time, kind: u64, link: usize) {
        self.calendar.insert(Event { at, what: (link as u64) << 32 | kind });
    }

    /// The sender goes back if nothing happens.
    fn wait(&mut self, link: usize, now: Time) {
        let back = now + self.bridge.timeout;
        self.links[link].back = back;
        self.insert(back, BACK, link);
    }

    fn take(&mut self, kind: u64, link: usize, now: Time) {
        match kind {
            SEND => self.send(link, now),
            FRAME => self.frame(link, now),
            DRAIN => {
                let link_state = &mut self.links[link];
                if let Some((channel, packets)) = link_state.drains.pop_front() {
                    link_state.drained[channel] += packets;
                }
                self.answer(link, now);
            }
            ANSWER => self.answered(link, now),
            _ => self.go_back(link, now),
        }
    }

    fn send(&mut self, link: usize, now: Time) {
        let state = &mut self.links[link];
        if state.free > now {
            return;
        }
        let Some(frame) = state.frame(self.bridge) else { return };
        state.report.frames += 1;
        let bytes = self.bridge.around + PACKET * frame.packets as u32;
        let span = self.bridge.port.span(bytes);
        state.free = now + span;
        let is_lost = self.random.unit() < self.bridge.loss;
        self.insert(now + span, SEND, link);
        if is_lost {
            return;
        }
        // The switch stores it, and sends it through the receiver's port.
        let begin = self.port.max(now + span + self.bridge.port.wire);
        self.port = begin + span;
        self.links[link].way.push_back(frame);
        self.insert(self.port + self.bridge.port.wire, FRAME, link);
    }

    /// A frame comes to the receiver.
    fn frame(&mut self, link: usize, now: Time) {
        let state = &mut self.links[link];
        let Some(frame) = state.way.pop_front() else { return };
        let channel = frame.channel;
        if frame.number == state.expected {
            state.expected += 1;
            state.report.came[channel] += frame.packets;
            state.report.end = now;
            let held = state.report.came[channel] - state.drained[channel];
            assert!(held <= state.traffic.credits[channel], "a credit is a buffer");
            state.report.held[channel] = state.report.held[channel].max(held);
            if frame.packets > 0 && !state.traffic.stuck[channel] {
                let time = Time(self.bridge.drain.0 * frame.packets);
                let until = state.until.into_iter().max().unwrap_or_default().max(now) + time;
                state.until[channel] = until;
                state.drains.push_back((channel, frame.packets));
                self.insert(until, DRAIN, link);
            }
        }
        self.answer(link, now);
    }

    fn answer(&mut self, link: usize, now: Time) {
        if self.random.unit() < self.bridge.loss {
            return;
        }
        let state = &mut self.links[link];
        state.answers.push_back((state.expected, state.drained));
        let span = self.bridge.port.span(self.bridge.around);
        let way = Time(2 * (span + self.bridge.port.wire).0);
        self.insert(now + way, ANSWER, link);
    }

    fn answered(&mut self, link: usize, now: Time) {
        let state = &mut self.links[link];
        let Some((expected, drained)) = state.answers.pop_front() else { return };
        let news = expected > state.base || drained != state.known;
        while state.base < expected && state.kept.pop_front().is_some() {
            state.base += 1;
        }
        state.next = state.next.max(state.base);
        state.known = drained;
        if news {
            self.wait(link, now);
        }
        self.send(link, now);
    }

    fn go_back(&mut self, link: usize, now: Time) {
        let state = &mut self.links[link];
        if state.back != now || state.is_done() {
            return;
        }
        if state.kept.is_empty() {
            // The answer that told of new credits may be lost.
            state.keep(0, 0);
        }
        state.next = state.base;
        self.wait(link, now);
        self.send(link, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Time = Time(1 << 40);

    fn traffic(packets: u64, credits: u64) -> Traffic {
        Traffic { packets: [packets; CHANNELS], credits: [credits; CHANNELS], stuck: [false; 3] }
    }

    fn one_channel(packets: u64, credits: u64) -> Traffic {
        Traffic { packets: [packets, 0, 0], ..traffic(0, credits) }
    }

    #[test]
    fn frames_full_of_packets_pass_at_the_rate_of_the_port() {
        let bridge = Bridge::TEN_GIGABIT;
        let report = bridge.run(&[one_channel(16_000, 10_000)], END, 1)[0];
        assert_eq!((report.came[0], report.frames, report.again), (16_000, 1_000, 0));
        let due = 1_000 * bridge.port.span(bridge.around + 16 * PACKET).0;
        assert!((report.end.0 as f64 / due as f64 - 1.0).abs() < 0.01, "{}", report.end);
    }

    #[test]
    fn few_credits_allow_a_frame_for_each_loop() {
        // A credit's loop: two ports with their wires, the drain, and the answer's way.
        let bridge = Bridge { packets: 4, ..Bridge::TEN_GIGABIT };
        let report = bridge.run(&[one_channel(4_000, 4)], END, 1)[0];
        let frame = bridge.port.span(bridge.around + 4 * PACKET).0;
        let answer = bridge.port.span(bridge.around).0;
        let turn = 2 * frame + 2 * answer + 4 * bridge.port.wire.0 + 4 * bridge.drain.0;
        let ours = report.end.0 as f64 / 1_000.0;
        assert!((ours / turn as f64 - 1.0).abs() < 0.01, "{ours} and {turn}");
    }

    #[test]
    fn at_any_loss_all_packets_come_once() {
        for loss in [0.01, 0.1, 0.3] {
            let bridge = Bridge { loss, ..Bridge::TEN_GIGABIT };
            let report = bridge.run(&[traffic(2_000, 64); 3], END, 7);
            assert!(report.iter().all(|link| link.came == [2_000; CHANNELS]), "{loss}");
            assert!(report.iter().any(|link| link.again > 0), "{loss}");
        }
    }

    #[test]
    fn a_link_without_credits_holds_up_neither_others_nor_its_other_channels() {
        let stuck = Traffic { stuck: [true, false, false], ..traffic(500, 32) };
        let bridge = Bridge::TEN_GIGABIT;
        let report = bridge.run(&[stuck, traffic(500, 32)], END, 1);
        assert_eq!(report[0].came, [32, 500, 500]);
        assert_eq!(report[0].held[0], 32);
        assert_eq!(report[1].came, [500; CHANNELS]);
    }
}

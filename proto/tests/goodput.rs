//! The goodput of a link that always has something to send, over a network that loses frames at
//! random. The network has a bottleneck with a fixed time for each frame, a queue without a bound
//! before it, and a path of one delay. Losses are those of both directions.
//!
//! `cargo test -p ayre-proto --test goodput -- --nocapture` prints the table of spec/86.
#[path = "common/dice.rs"]
mod dice;

use ayre_netsim::{Flights, Item, Network, Plan};
use ayre_proto::link::congestion::{Config, ONE, Scaling, Windows};
use ayre_proto::link::end::{Agreement, Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{Channel, Digest, Flags, Header};
use ayre_proto::link::looks::Looks;
use ayre_proto::link::receive::Arrival;
use ayre_proto::link::{Repair, rtt};
use dice::Dice;

/// Nanoseconds that the bottleneck takes for a frame with a payload.
const SERVICE: u64 = 1_200;
/// From one host to the other.
const DELAY: u64 = 10_000;
/// How long a link is looked at.
const SPAN: u64 = 200_000_000;

/// The settings of ports that are programs. They answer when they are run, so that the least
/// timeout is many round trips, and only a delay far beyond that passes for a queue.
fn drive() -> Drive {
    let mut drive = Drive::RACK;
    drive.timeout = rtt::Bounds { floor: 1_000_000, ..rtt::Bounds::RACK };
    drive.congestion = Config {
        base_target: 1_000_000,
        scaling: Scaling { range: 1_000_000, start: 8 * ONE, end: 64 * ONE },
        increase: ONE,
        slow_start: true,
        window: Windows { min: 8 * ONE, calm: 64 * ONE, initial: 16 * ONE, max: 192 * ONE },
        ..Config::RACK
    };
    drive
}

fn end(own: usize) -> End {
    end_with(own, &drive())
}

fn end_with(own: usize, drive: &Drive) -> End {
    let agreed = Agreement {
        to: 100 + (1 - own) as u32,
        own: 100 + own as u32,
        incarnation: 1,
        generation: 5,
        token: [11, 22][own],
        own_token: [22, 11][own],
        first: [[0; 3]; 2],
        repair: Repair::Selective,
        paths: 1,
    };
    let mut end = End::new(agreed, drive, 0);
    end.give(Channel::Posted, end.receiver(Channel::Posted).wants(), 0);
    end
}

#[derive(Default)]
struct Wire(Vec<Header>);

impl EndEffects for Wire {
    fn transmit(&mut self, header: &Header) {
        self.0.push(*header);
    }

    fn transmit_part(&mut self, _: &Header, _: &Part) {
        unreachable!("no path of these takes less than a frame");
    }

    fn arrived(&mut self, _: Channel, _: u32) {}
}

/// A frame, and to whom it goes.
#[derive(Clone)]
struct Frame(usize, Header);

impl Item for Frame {
    /// One without a payload passes the bottleneck in a tenth of the time.
    fn size(&self) -> usize {
        if self.1.payload.len > 0 { 10 } else { 1 }
    }
}

/// Two ends and what is between them. The first one sends.
struct World {
    now: u64,
    ends: [End; 2],
    dice: Dice,
    /// The number of ten thousand frames that are lost, behind the bottleneck.
    loss: u64,
    /// By sender.
    network: Network<Frame>,
    /// For how long the bottleneck was busy at most in the second half.
    deepest: u64,
    delivered: u64,
    transmissions: u64,
    /// Sum of the frames under way at each new one.
    in_flight: u64,
    sent: u64,
}

impl World {
    fn new(loss: u64, seed: u64) -> Self {
        Self::with_service(SERVICE, loss, seed)
    }

    /// With a bottleneck that takes so long for a frame with a payload.
    fn with_service(service: u64, loss: u64, seed: u64) -> Self {
        let plan = Plan { delay: DELAY, rate: Some(80_000_000_000 / service), ..Plan::NONE };
        Self {
            now: 0,
            ends: [end(0), end(1)],
            dice: Dice(seed),
            loss,
            network: Network::new([plan; 2]),
            deepest: 0,
            delivered: 0,
            transmissions: 0,
            in_flight: 0,
            sent: 0,
        }
    }

    fn run(mut self) -> Self {
        while self.now < SPAN {
            self.work();
            let packet = self.network.due().unwrap_or(u64::MAX);
            let [a, b] = self.ends.each_ref().map(|end| end.deadline(self.now));
            self.now = packet.min(a).min(b).max(self.now);
            while let Some(Frame(to, header)) = self.network.take(self.now) {
                if self.dice.below(10_000) >= self.loss {
                    self.arrive(to, &header);
                }
            }
        }
        self
    }

    /// The first one sends as long as it may; then both do what is due now.
    fn work(&mut self) {
        for host in [0, 1] {
            let mut wire = Wire::default();
            let end = &mut self.ends[host];
            while host == 0 && end.may_send(Channel::Posted, self.now) {
                let digest = (Digest { len: 1400, crc: 0 }, Flags::empty());
                end.send(Channel::Posted, digest, self.now, &mut wire);
                self.sent += 1;
                self.in_flight += u64::from(end.in_flight());
            }
            end.on_time(self.now, &mut wire);
            self.carry(host, wire);
        }
    }

    fn carry(&mut self, from: usize, wire: Wire) {
        for header in wire.0 {
            let is_full = header.payload.len > 0;
            self.transmissions += u64::from(is_full);
            let way = &mut self.network.ways[from];
            way.send(Frame(1 - from, header), self.now);
            let depth = if self.now > SPAN / 2 { way.backlog(self.now) } else { 0 };
            self.deepest = self.deepest.max(depth);
        }
    }

    fn arrive(&mut self, to: usize, header: &Header) {
        let mut wire = Wire::default();
        let heard = self.ends[to].on_header(header, self.now, &mut wire).expect("an honest peer");
        self.carry(to, wire);
        if heard == HeaderOutcome::Payload
            && let Arrival::InOrder(frames) =
                self.ends[to].on_payload(header, self.now).expect("an honest peer")
        {
            self.ends[to].take(Channel::Posted, frames);
            self.ends[to].give(Channel::Posted, frames, self.now);
            self.delivered += u64::from(frames);
        }
    }
}

/// Two hosts on which others compute: each looks for a while, and then not for some milliseconds.
/// The network is never full.
struct Busy {
    now: u64,
    ends: [End; 2],
    looks: [Looks; 2],
    dice: Dice,
    /// When each host looks next, and from when on others are run there.
    turns: [u64; 2],
    slices: [u64; 2],
    /// By receiver.
    under_way: [Flights<Header>; 2],
    delivered: u64,
}

/// Between two looks of a host that is run.
const LOOK: u64 = 5_000;

impl Busy {
    fn new(drive: &Drive, seed: u64) -> Self {
        Self {
            now: 0,
            ends: [0, 1].map(|own| end_with(own, drive)),
            looks: [0; 2].map(Looks::all_the_time),
            dice: Dice(seed),
            turns: [0; 2],
            slices: [0; 2],
            under_way: Default::default(),
            delivered: 0,
        }
    }

    /// How many frames have arrived in the second half.
    fn run(mut self, span: u64) -> (u64, Self) {
        let mut half = 0;
        while self.now < span {
            let host = usize::from(self.turns[1] < self.turns[0]);
            self.now = self.turns[host];
            self.turn(host);
            half = if self.now < span / 2 { self.delivered } else { half };
        }
        (self.delivered - half, self)
    }

    fn turn(&mut self, host: usize) {
        let (now, mut wire) = (self.now, Wire::default());
        self.looks[host].look(now);
        while let Some(header) = self.under_way[host].take(now) {
            let (end, looks) = (&mut self.ends[host], &self.looks[host]);
            let heard = end.on_header_found(&header, looks, &mut wire).expect("an honest peer");
            if heard == HeaderOutcome::Payload
                && let Arrival::InOrder(frames) =
                    end.on_payload(&header, now).expect("an honest peer")
            {
                end.take(Channel::Posted, frames);
                end.give(Channel::Posted, frames, now);
                self.delivered += u64::from(frames);
            }
        }
        self.looks[host].emptied();
        let end = &mut self.ends[host];
        while host == 0 && end.may_send(Channel::Posted, now) {
            let digest = (Digest { len: 1400, crc: 0 }, Flags::empty());
            end.send(Channel::Posted, digest, now, &mut wire);
        }
        end.on_time(now, &mut wire);
        self.go_on(host);
        // Whoever is stopped may be just before its frames leave.
        let is_stopped = self.turns[host] > now + LOOK && self.dice.percent(50);
        let left = if is_stopped { self.turns[host] } else { now };
        let other = &mut self.under_way[1 - host];
        wire.0.into_iter().for_each(|header| other.push(left + DELAY, header));
    }

    fn go_on(&mut self, host: usize) {
        self.turns[host] += LOOK;
        if self.turns[host] > self.slices[host] {
            self.turns[host] += 1_000_000 + self.dice.below(5_000_000);
            self.slices[host] = self.turns[host] + self.dice.below(1_000_000);
        }
    }
}

/// Hosts that poll late get as much of a network as if no window held them back. Their own delay is
/// taken neither for a queue nor for losses.
// spec: RTT-7, RTT-8, CONG-10, CONG-11
#[test]
fn hosts_that_look_late_are_no_congested_network() {
    for seed in 1..=4 {
        let mut free = drive();
        let all = 192 * ONE;
        free.congestion.window = Windows { min: all, calm: all, initial: all, max: all };
        let (best, _) = Busy::new(&free, seed).run(10 * SPAN);
        let (have, busy) = Busy::new(&drive(), seed).run(10 * SPAN);
        println!("{have} frames of {best}, window {}", busy.ends[0].window() / ONE);
        assert!(have >= best / 10 * 9, "{have} of {best}");
    }
}

/// Between hosts that poll all the time, every delay is a queue. A lasting queue is no longer than
/// the target delay and the calm window make it, though nothing is ever lost.
// spec: CONG-3, CONG-9, CONG-10
#[test]
fn a_network_queue_stays_short_without_losses() {
    let service = 10 * SERVICE;
    let run = World::with_service(service, 0, 1).run();
    let deepest = run.deepest / service;
    let load = (run.delivered * service) as f64 / SPAN as f64;
    println!("load {load:.3}, {deepest} frames in the queue at most");
    assert!(load > 0.95 && deepest < 128, "{deepest} frames");
}

/// Selective repair gives at least (1 - p) / (1 + (W - 1) p). That is the goodput of going back to
/// a lost frame, if every loss were known after a round trip, with as many frames under way.
// spec: LINK-8, LINK-26, LINK-27, LINK-28, CONG-5
#[test]
fn losses_cost_little_more_than_the_lost_frames() {
    let clear = World::new(0, 1).run().delivered as f64;
    for (loss, least) in [(10, 0.97), (100, 0.9), (500, 0.75), (2_000, 0.35)] {
        let run = World::new(loss, 1).run();
        let (lost, goodput) = (loss as f64 / 10_000.0, run.delivered as f64 / clear);
        let window = run.in_flight as f64 / run.sent as f64;
        let back = (1.0 - lost) / (1.0 - lost + lost * window);
        let each = run.transmissions as f64 / run.delivered as f64;
        let counters = run.ends[0].counters();
        println!(
            "{:5.1} %: goodput {goodput:.3}, going back {back:.3} with {window:.1} under way; \
             {each:.3} transmissions, least {:.3}; overtaken {}, asked for {}, timed out {}",
            100.0 * lost,
            1.0 / (1.0 - lost),
            counters.overtaken,
            counters.asked_for,
            counters.timed_out,
        );
        assert!(goodput >= least && goodput >= back, "{goodput} at {lost}");
        assert!(each <= 1.02 / (1.0 - lost), "{each} at {lost}");
    }
}

/// Two ends of which the first one has credit, knows the round trip, and has sent all it may.
fn full() -> ([End; 2], u64, Vec<Header>) {
    let mut drive = drive();
    drive.congestion.slow_start = false;
    let (mut ends, now) = ([0, 1].map(|own| end_with(own, &drive)), 2 * DELAY);
    let (mut probe, mut answer) = (Wire::default(), Wire::default());
    ends[0].on_time(0, &mut probe);
    for header in probe.0 {
        ends[1].on_header(&header, DELAY, &mut answer).expect("an honest peer");
    }
    for header in answer.0 {
        ends[0].on_header(&header, now, &mut Wire::default()).expect("an honest peer");
    }
    assert_eq!(ends[0].rtt().smoothed(), Some(2 * DELAY));
    let mut wire = Wire::default();
    while send(&mut ends[0], now, &mut wire) {}
    (ends, now, wire.0)
}

fn send(end: &mut End, now: u64, wire: &mut Wire) -> bool {
    let may_send = end.may_send(Channel::Posted, now);
    if may_send {
        end.send(Channel::Posted, (Digest { len: 8, crc: 0 }, Flags::empty()), now, wire);
    }
    may_send
}

/// An unanswered frame is sent again after 80, 160, 320, 640 us. These are 20 of a round trip, four
/// times 10 of its variation, and 20 for which the other side may delay acknowledgements. That is
/// no word of the network; the timeout is, which comes a millisecond after the last of them.
// spec: LINK-26, CONG-5
#[test]
fn reminders_are_one_frame_each_at_intervals_that_double() {
    let (mut ends, start, sent) = full();
    let (end, window) = (&mut ends[0], sent.len() as u32);
    for (reminders, wait) in [80_000, 240_000, 560_000].into_iter().enumerate() {
        assert_eq!(end.deadline(start + wait - 1), start + wait);
        let mut wire = Wire::default();
        end.on_time(start + wait - 1, &mut wire);
        assert!(wire.0.is_empty(), "not yet");
        end.on_time(start + wait, &mut wire);
        let seqs: Vec<_> = wire.0.iter().map(|header| header.seq).collect();
        assert_eq!(seqs, [reminders as u32], "the eldest, each in turn");
        assert_eq!((end.in_flight(), end.window()), (window, window * ONE));
    }
    let mut wire = Wire::default();
    end.on_time(start + 1_000_000, &mut wire);
    assert_eq!(end.window(), window * ONE / 2, "the timeout of those without a reminder");
}

/// An owner that is about to sleep does not wait until it is time to say what has come.
// spec: LINK-13, WIRE-15
#[test]
fn a_host_acknowledges_arrivals_before_it_sleeps() {
    let (mut ends, now, sent) = full();
    let (end, mut wire) = (&mut ends[1], Wire::default());
    end.on_time(now, &mut wire);
    assert!(!end.flush_acks(now, &mut wire), "nothing has come that was not said");
    assert_eq!(end.on_header(&sent[0], now, &mut wire), Ok(HeaderOutcome::Payload));
    assert_eq!(end.on_payload(&sent[0], now), Ok(Arrival::InOrder(1)));
    wire.0.clear();
    end.on_time(now, &mut wire);
    assert!(wire.0.is_empty() && end.deadline(now) == now + 20_000, "there would be time");
    assert!(end.flush_acks(now, &mut wire) && !end.flush_acks(now, &mut wire));
    let acks: Vec<_> = wire.0.iter().map(|header| header.ack[0]).collect();
    assert_eq!(acks, [1], "once");
}

/// Room that a loss makes in the window is for what was lost.
// spec: LINK-28
#[test]
fn lost_frames_are_sent_before_new_ones() {
    let (mut ends, now, sent) = full();
    assert_eq!(sent.len(), 16);
    let (mut wire, there) = (Wire::default(), now + DELAY);
    for header in &sent[10..] {
        let heard = ends[1].on_header(header, there, &mut wire);
        assert_eq!(heard, Ok(HeaderOutcome::Payload));
        assert_eq!(ends[1].on_payload(header, there), Ok(Arrival::Ahead));
    }
    ends[1].on_time(there, &mut wire);
    let (end, back) = (&mut ends[0], there + DELAY);
    for header in wire.0.drain(..) {
        end.on_header(&header, back, &mut Wire::default()).expect("an honest peer");
    }
    assert_eq!((end.in_flight(), end.window() / ONE), (0, 11), "ten of sixteen are lost");
    assert!(send(end, back, &mut wire), "ten are to go, so that there is room for one");
    assert!(!send(end, back, &mut wire));
    end.on_time(back, &mut wire);
    let seqs: Vec<_> = wire.0.iter().map(|header| header.seq).collect();
    assert_eq!(seqs, [16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

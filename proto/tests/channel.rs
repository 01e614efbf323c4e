//! A channel of a link over a simulated network: virtual time, one seed for everything.
//!
//! A producer has frames to send, a consumer takes them when it likes, and between them lies a
//! network that loses, repeats, delays and reorders in both directions. Checked all the way: each
//! frame is delivered once and in order, and no buffer is used that was not given. The reports
//! about each frame add up, and the counts of frames in flight are those that a walk over them
//! gives. Once the faults stop, everything arrives.
#[path = "common/dice.rs"]
mod dice;

use ayre_netsim::{Item, Network, Plan};
use ayre_proto::link::receive::{Arrival, Receiver};
use ayre_proto::link::send::{Ack, Loss, OVERTAKEN, SendEffects, Sender, Transmission, Wait};
use ayre_proto::link::{Repair, WINDOW};
use dice::{Dice, seeds};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const TIMEOUT: u64 = 2_000;
const PATIENCE: u64 = 50;
const ROUND_TRIP: u64 = 200;
/// A network that reorders.
const WAIT: Wait = Wait { timeout: TIMEOUT, overtaken: 2 * ROUND_TRIP };
/// First numbers: some wrap in the middle of a run.
const FIRSTS: [u32; 4] = [0, 7, u32::MAX - 100, (1 << 31) - 20];

/// A datagram. A frame of data names its number and content; every frame says something of the
/// other direction.
#[derive(Clone, Copy, Debug)]
enum Packet {
    Data { seq: u32, content: u64 },
    Ask,
    Said { ack: u32, sack: u128, limit: u32, nack: bool },
}

impl Item for Packet {}

#[derive(Debug, Default)]
struct Told {
    arrived: Vec<u32>,
    freed: Vec<u32>,
    lost: Vec<(u32, Loss)>,
    /// Of those that arrived.
    transmissions: Vec<Transmission>,
}

impl SendEffects for Told {
    fn arrived(&mut self, seq: u32, transmission: Transmission) {
        self.arrived.push(seq);
        self.transmissions.push(transmission);
    }

    fn freed(&mut self, seq: u32) {
        self.freed.push(seq);
    }

    fn lost(&mut self, seq: u32, _: Transmission, why: Loss) {
        self.lost.push((seq, why));
    }
}

struct World {
    dice: Dice,
    first: u32,
    now: u64,
    /// A way for each path, in both directions.
    network: Network<Packet>,
    sender: Sender,
    /// Numbers of transmissions by path.
    numbers: [u32; 4],
    path: u64,
    /// Content of frames that have not arrived, as far as the sender knows: its buffers.
    buffers: BTreeMap<u32, u64>,
    produced: u64,
    /// Frames in flight, by how many came before them; and the newest that arrived of each path.
    flying: BTreeMap<u64, Transmission>,
    newest: [u32; 4],
    asked_at: u64,
    receiver: Receiver,
    kept: BTreeMap<u32, u64>,
    delivered: u64,
    /// Frames told to have arrived.
    confirmed: BTreeSet<u64>,
    transmissions: u64,
    free_buffers: u32,
}

impl World {
    fn new(seed: u64, repair: Repair, network: Network<Packet>) -> Self {
        let mut dice = Dice(seed);
        let first = FIRSTS[dice.below(FIRSTS.len() as u64) as usize];
        let mut world = Self {
            dice,
            first,
            now: 0,
            network,
            sender: Sender::new(repair, first),
            numbers: [0; 4],
            path: 0,
            buffers: BTreeMap::new(),
            produced: 0,
            flying: BTreeMap::new(),
            newest: [0; 4],
            asked_at: 0,
            receiver: Receiver::new(repair, first),
            kept: BTreeMap::new(),
            delivered: 0,
            confirmed: BTreeSet::new(),
            transmissions: 0,
            free_buffers: 0,
        };
        let given = 1 + world.dice.below(u64::from(WINDOW)) as u32;
        world.free_buffers = WINDOW + world.dice.below(8) as u32 - given;
        world.receiver.give(given, 0);
        world
    }

    /// The number of a frame, by how many came before it.
    fn number(&self, frame: u64) -> u32 {
        self.first.wrapping_add(frame as u32)
    }

    fn launch(&mut self, packet: Packet) -> Transmission {
        self.path = (self.path + 1) % self.network.ways.len() as u64;
        let path = self.path as usize;
        self.numbers[path] += 1;
        self.network.ways[path].send(packet, self.now);
        Transmission { at: self.now, path: path as u8, number: self.numbers[path], len: 0 }
    }

    fn transmit(&mut self, frames: u64) {
        while let Some(seq) = self.sender.lost() {
            let content = self.buffers[&seq];
            let transmission = self.launch(Packet::Data { seq, content });
            self.transmissions += 1;
            self.sender.resend(transmission);
            self.flying.insert(content, transmission);
        }
        if self.dice.percent(1)
            && let Some((_, seq)) = self.sender.eldest()
        {
            let content = self.buffers[&seq];
            let transmission = self.launch(Packet::Data { seq, content });
            self.transmissions += 1;
            let before = self.sender.repeat(seq, transmission);
            assert_eq!(self.flying.insert(content, transmission), Some(before));
        }
        while self.produced < frames && self.sender.room() > 0 {
            // The number is the sender's to give; it is the count of frames, whose content says it.
            let (seq, content) = (self.number(self.produced), self.produced);
            let transmission = self.launch(Packet::Data { seq, content });
            self.transmissions += 1;
            assert_eq!(self.sender.send(transmission), seq);
            self.buffers.insert(seq, content);
            self.flying.insert(content, transmission);
            self.produced += 1;
        }
        let waits = self.produced < frames && self.sender.in_flight() == 0;
        if waits && self.now >= self.asked_at + TIMEOUT {
            self.launch(Packet::Ask);
            self.asked_at = self.now;
        }
    }

    fn consume(&mut self, eager: bool) {
        let held = self.receiver.held();
        let frames = if eager { held } else { self.dice.below(u64::from(held) + 1) as u32 };
        self.receiver.take(frames);
        self.free_buffers += frames;
        let wanted = self.receiver.wants().min(self.free_buffers);
        let given = if eager { wanted } else { self.dice.below(u64::from(wanted) + 1) as u32 };
        if given > 0 {
            self.receiver.give(given, self.now);
            self.free_buffers -= given;
        }
    }

    fn say(&mut self) {
        let due = self.receiver.ack_due(PATIENCE).is_some_and(|by| by <= self.now);
        let nack = self.receiver.nack_due(self.now, ROUND_TRIP);
        if due || nack {
            let (ack, sack) = (self.receiver.expected(), self.receiver.sack());
            let limit = self.receiver.limit();
            self.launch(Packet::Said { ack, sack, limit, nack });
            self.receiver.on_ack_sent(self.now, nack);
        }
    }

    fn arrive(&mut self, packet: Packet) {
        match packet {
            Packet::Ask => self.receiver.ask(self.now),
            Packet::Data { seq, content } => self.take_in(seq, content),
            Packet::Said { ack, sack, limit, nack } => {
                let nack = nack.then(|| self.now.saturating_sub(ROUND_TRIP));
                let mut told = Told::default();
                let said = Ack { ack, sack, limit, nack, heard: None };
                self.sender.on_ack(&said, &mut told).expect("an honest receiver");
                self.hear(&told);
                for seq in told.arrived {
                    let content = self.buffers.remove(&seq).expect("a frame arrives once");
                    assert!(self.confirmed.insert(content));
                    let there = content < self.delivered || self.kept.contains_key(&seq);
                    assert!(there, "frame {seq} has not arrived");
                }
                assert!(told.lost.iter().all(|(seq, _)| self.buffers.contains_key(seq)));
            }
        }
    }

    /// The reports about frames in flight; the counts are those that a walk over the frames gives.
    // spec: LINK-8
    fn hear(&mut self, told: &Told) {
        if told.arrived.is_empty() && told.lost.is_empty() {
            return;
        }
        for Transmission { path, number, .. } in &told.transmissions {
            let newest = &mut self.newest[usize::from(*path)];
            *newest = (*newest).max(*number);
        }
        for seq in told.arrived.iter().chain(told.lost.iter().map(|(seq, _)| seq)) {
            self.flying.remove(&self.buffers[seq]);
        }
        let eldest = self.flying.iter().min_by_key(|(_, transmission)| transmission.at);
        let eldest = eldest.map(|(frame, transmission)| (transmission.at, self.number(*frame)));
        assert_eq!(self.sender.eldest(), eldest);
        assert_eq!(self.sender.in_flight() as usize, self.flying.len());
        assert_eq!(self.sender.deadline(WAIT), self.wait_ends());
        assert!(self.flying.values().all(|flying| self.overtakers(flying) < OVERTAKEN));
    }

    /// How far the newest transmission that arrived is ahead of this one of the same path.
    fn overtakers(&self, flying: &Transmission) -> u32 {
        self.newest[usize::from(flying.path)].saturating_sub(flying.number)
    }

    /// When a frame in flight has been waited for.
    fn wait_ends(&self) -> Option<u64> {
        let ends = self.flying.values().map(|flying| match self.overtakers(flying) {
            0 => flying.at + WAIT.timeout,
            _ => flying.at + WAIT.overtaken,
        });
        ends.min()
    }

    fn take_in(&mut self, seq: u32, content: u64) {
        assert_eq!(seq, self.number(content));
        match self.receiver.on_frame(seq, self.now).expect("an honest sender") {
            Arrival::InOrder(frames) => {
                assert!(self.kept.insert(seq, content).is_none());
                for _ in 0..frames {
                    let next = self.number(self.delivered);
                    assert_eq!(self.kept.remove(&next), Some(self.delivered), "in order, once");
                    self.delivered += 1;
                }
            }
            Arrival::Ahead => assert!(self.kept.insert(seq, content).is_none()),
            Arrival::Dropped => assert!(content >= self.delivered),
            Arrival::Duplicate => {
                assert!(content < self.delivered || self.kept.contains_key(&seq));
            }
        }
        let used = self.kept.len() as u32 + self.receiver.held();
        let given = self.receiver.limit().wrapping_sub(self.receiver.taken());
        assert!(used <= given && given <= WINDOW, "{used} buffers of {given} given");
    }

    /// The next moment at which something happens.
    fn next_time(&self) -> u64 {
        let packet = self.network.due();
        let timeout = self.sender.deadline(WAIT);
        let say = self.receiver.ack_due(PATIENCE);
        let ask = Some(self.asked_at + TIMEOUT).filter(|at| *at > self.now);
        let times = [packet, timeout, say, ask, Some(self.now + 500)];
        times.into_iter().flatten().min().map_or(self.now + 1, |at| at.max(self.now + 1))
    }

    /// Runs until this number of frames are delivered and known to be. Returns the time when the
    /// faults stop.
    fn run(&mut self, frames: u64, faulty_until: u64) {
        while (self.confirmed.len() as u64) < frames {
            if self.now > faulty_until {
                self.network.change(|plan| (plan.loss, plan.duplicate) = (0.0, 0.0));
            }
            assert!(self.now < faulty_until + 1_000 * TIMEOUT, "{} of {frames}", self.delivered);
            self.transmit(frames);
            self.consume(self.now > faulty_until);
            self.say();
            self.now = self.next_time();
            while let Some(packet) = self.network.take(self.now) {
                self.arrive(packet);
            }
            let mut told = Told::default();
            self.sender.on_time(self.now, WAIT, &mut told);
            self.hear(&told);
            let due = self.sender.deadline(WAIT);
            assert!(due.is_none_or(|at| at > self.now), "whoever is late is lost");
        }
        assert_eq!(self.delivered, frames);
        assert!(self.buffers.is_empty() && self.sender.is_idle());
    }
}

fn network(seed: u64) -> Network<Packet> {
    let dice = &mut Dice(seed);
    let (loss, duplicate) = (dice.below(31) as f64 / 100.0, dice.below(11) as f64 / 100.0);
    let path = |_| {
        let (delay, jitter, seed) = (50 + dice.below(200), dice.below(300), dice.word());
        Plan { loss, duplicate, delay, jitter, seed, ..Plan::NONE }
    };
    let plans = [0; 4].map(path);
    Network::new(plans.into_iter().take(1 + dice.below(4) as usize))
}

/// Every seed is a network of its own.
// spec: LINK-2, LINK-3, LINK-4, LINK-5, LINK-6, LINK-7, LINK-8, LINK-13, LINK-14
#[test]
fn frames_arrive_once_in_order_over_any_network() {
    for seed in 0..seeds(500) {
        for repair in [Repair::Selective, Repair::GoBackN] {
            World::new(seed, repair, network(seed)).run(300, 200 * TIMEOUT);
        }
    }
}

/// Transmissions per frame, under loss at random, on one path that keeps order.
fn cost(repair: Repair, loss: u64) -> f64 {
    const FRAMES: u64 = 20_000;
    let plan = Plan { loss: loss as f64 / 100.0, delay: 100, seed: !loss, ..Plan::NONE };
    let mut world = World::new(loss, repair, Network::new([plan]));
    world.run(FRAMES, u64::MAX / 4);
    world.transmissions as f64 / FRAMES as f64
}

/// Selective repair sends again what was lost, and little else: `1 / (1 - p)` is the least.
// spec: LINK-9
#[test]
fn selective_repair_retransmits_little_more_than_lost_frames() {
    for loss in [1, 5, 20] {
        let least = 1.0 / (1.0 - loss as f64 / 100.0);
        let (selective, back) = (cost(Repair::Selective, loss), cost(Repair::GoBackN, loss));
        println!("{loss} % lost: {selective:.3} selective, {back:.3} going back, {least:.3} least");
        assert!(selective < least * 1.1, "{selective} transmissions a frame, least {least}");
        assert!(back > selective);
    }
}

/// A sender with this number of frames in flight, and all the room there is.
fn sender(first: u32, frames: u32) -> Sender {
    let mut sender = Sender::new(Repair::Selective, first);
    let room =
        Ack { ack: first, sack: 0, limit: first.wrapping_add(WINDOW), nack: None, heard: None };
    sender.on_ack(&room, &mut Told::default()).expect("room");
    for number in 1..=frames {
        sender.send(Transmission { at: u64::from(number), path: 0, number, len: 0 });
    }
    sender
}

fn state(sender: &Sender) -> (u32, u32, u32, Option<u32>) {
    (sender.oldest(), sender.room(), sender.in_flight(), sender.lost())
}

proptest! {
    /// For all headers of a peer, no frame arrives that was not sent, none arrives twice, and an
    /// impossible header changes nothing.
    // spec: LINK-5, LINK-11
    #[test]
    fn false_acknowledgements_do_not_corrupt_a_channel(
        first in prop::sample::select(&FIRSTS[..]),
        frames in 0..=WINDOW,
        said in prop::collection::vec(
            (
                -160..160i64,
                prop_oneof![Just(0), any::<u128>(), 0..64u128],
                -160..280i64,
                any::<bool>(),
            ),
            1..20,
        ),
    ) {
        let mut sender = sender(first, frames);
        let mut arrived = BTreeSet::new();
        for (ack, sack, limit, nack) in said {
            let ack = first.wrapping_add(ack as u32);
            let limit = ack.wrapping_add(limit as u32);
            let before = state(&sender);
            let mut told = Told::default();
            let said = Ack { ack, sack, limit, nack: nack.then_some(u64::MAX), heard: None };
            let outcome = sender.on_ack(&said, &mut told);
            for seq in told.arrived {
                prop_assert!(seq.wrapping_sub(first) < frames, "{seq} was never sent");
                prop_assert!(arrived.insert(seq), "{seq} arrived twice");
            }
            if outcome.is_err() {
                prop_assert_eq!(state(&sender), before);
            }
            prop_assert!(sender.room() <= WINDOW);
            prop_assert!(sender.in_flight() <= frames - arrived.len() as u32);
        }
    }

    /// A frame beyond the credit is malformed and changes nothing; any other one has its place.
    // spec: LINK-4, LINK-11
    #[test]
    fn a_frame_beyond_the_credit_is_malformed(
        first in prop::sample::select(&FIRSTS[..]),
        given in 0..=WINDOW,
        seqs in prop::collection::vec(-100..200i64, 1..100),
    ) {
        let mut receiver = Receiver::new(Repair::Selective, first);
        receiver.give(given, 0);
        let mut arrived = BTreeSet::new();
        for seq in seqs {
            let before = (receiver.expected(), receiver.sack());
            match receiver.on_frame(first.wrapping_add(seq as u32), 0) {
                Err(_) => {
                    prop_assert!(seq >= i64::from(given));
                    prop_assert_eq!((receiver.expected(), receiver.sack()), before);
                }
                Ok(Arrival::Duplicate) => prop_assert!(seq < 0 || arrived.contains(&seq)),
                Ok(_) => prop_assert!(seq < i64::from(given) && arrived.insert(seq)),
            }
            let in_order = (0..).take_while(|seq| arrived.contains(seq)).count();
            prop_assert_eq!(receiver.expected(), first.wrapping_add(in_order as u32));
        }
    }
}

/// A frame that three later ones of its path have overtaken is lost; one that was sent by another
/// path may be late.
// spec: LINK-8
#[test]
fn only_later_frames_of_its_path_tell_that_one_is_lost() {
    for (path, lost) in [(0, vec![(0, Loss::Overtaken)]), (1, vec![])] {
        let mut sender = sender(0, 0);
        sender.send(Transmission { at: 0, path, number: 1, len: 0 });
        for number in 2..=4 {
            sender.send(Transmission { at: 0, path: 0, number, len: 0 });
        }
        let mut told = Told::default();
        let said = |sack| Ack { ack: 0, sack, limit: WINDOW, nack: None, heard: None };
        sender.on_ack(&said(3), &mut told).expect("two have arrived");
        assert_eq!(told.lost, []);
        sender.on_ack(&said(7), &mut told).expect("three have arrived");
        assert_eq!((told.arrived, told.lost), (vec![1, 2, 3], lost));
    }
}

/// A request concerns what the receiver could have seen: not what was sent again meanwhile.
// spec: LINK-10
#[test]
fn a_request_is_answered_once_a_round_trip() {
    let mut sender = sender(0, 3);
    let mut told = Told::default();
    let missed = |seen| Ack { ack: 0, sack: 0, limit: WINDOW, nack: Some(seen), heard: None };
    sender.on_ack(&missed(10), &mut told).expect("an honest request");
    assert_eq!(told.lost, [(0, Loss::Nack)]);
    sender.resend(Transmission { at: 10, path: 0, number: 4, len: 0 });
    sender.on_ack(&missed(10), &mut told).expect("the same, repeated by the network");
    assert_eq!((told.lost.len(), sender.lost()), (1, None));
    sender.on_ack(&missed(11), &mut told).expect("it was lost again");
    assert_eq!(told.lost.len(), 2);
}

/// A frame was sent once more, and then word of its first transmission comes: that says nothing of
/// what was sent between the two.
// spec: LINK-27
#[test]
fn an_acknowledged_earlier_transmission_does_not_imply_reordering() {
    let between = [1, 2, 3].map(|seq| (seq, Loss::Overtaken));
    for (heard, lost) in [((0, 4), vec![]), ((0, 50), between.to_vec()), ((1, 4), between.to_vec())]
    {
        let (mut sender, mut told) = (sender(0, 4), Told::default());
        let before = sender.repeat(0, Transmission { at: 50, path: 0, number: 8, len: 0 });
        assert_eq!(before, Transmission { at: 1, path: 0, number: 1, len: 0 });
        let said = Ack { ack: 1, sack: 0, limit: WINDOW, nack: None, heard: Some(heard) };
        sender.on_ack(&said, &mut told).expect("an honest receiver");
        assert_eq!((told.arrived, told.lost), (vec![0], lost), "{heard:?}");
    }
    for (at, lost) in [(49, vec![]), (50, vec![(0, Loss::Nack)])] {
        let (mut sender, mut told) = (sender(0, 4), Told::default());
        sender.repeat(0, Transmission { at: 50, path: 0, number: 5, len: 0 });
        let heard = Some((0, at));
        let said = Ack { ack: 0, sack: 0, limit: WINDOW, nack: Some(100), heard };
        sender.on_ack(&said, &mut told).expect("an honest request");
        assert_eq!(told.lost, lost);
    }
}

/// Requests for one frame come at intervals that double.
// spec: LINK-10
#[test]
fn requests_become_rare() {
    let mut receiver = Receiver::new(Repair::GoBackN, 0);
    receiver.give(WINDOW, 0);
    let mut asked = vec![];
    for now in 0..10_000 {
        assert_eq!(receiver.on_frame(1, now), Ok(Arrival::Dropped));
        if receiver.nack_due(now, ROUND_TRIP) {
            receiver.on_ack_sent(now, true);
            asked.push(now);
        }
    }
    assert_eq!(asked, [0, 200, 600, 1400, 3000, 6200]);
    assert_eq!(receiver.on_frame(0, 10_000), Ok(Arrival::InOrder(1)));
    assert!(!receiver.nack_due(20_000, ROUND_TRIP), "it has come");
}

/// Going on after a loss of state sends everything again that the receiver does not have.
// spec: LINK-12
#[test]
fn a_channel_resumes_at_the_frame_that_the_receiver_expects() {
    let (mut sender, mut told) = (sender(5, 6), Told::default());
    let said = Ack { ack: 6, sack: 0b110, limit: 5 + WINDOW, nack: None, heard: None };
    sender.on_ack(&said, &mut told).expect("an honest receiver");
    assert_eq!(told.freed, [5], "a receiver may forget what it keeps before its turn");
    let stands = |ack, sack| Ack { ack, sack, limit: ack + WINDOW, nack: None, heard: None };
    assert!(sender.resume(&stands(12, 0), true, &mut told).is_err());
    told = Told::default();
    sender.resume(&stands(7, 0b100), true, &mut told).expect("a frame that was sent");
    assert_eq!((told.arrived, told.freed), (vec![6, 10], vec![6]));
    let again = std::iter::from_fn(|| {
        let seq = sender.lost()?;
        sender.resend(Transmission { at: 9, path: 0, number: 9, len: 0 });
        Some(seq)
    });
    assert_eq!(again.collect::<Vec<_>>(), [7, 8, 9]);
}

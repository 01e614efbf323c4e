//! Two ends of a link over a simulated network: virtual time, one seed for everything.
//!
//! Both programs send on all channels and take what comes when they like. The network loses,
//! repeats, delays, reorders and damages datagrams and cuts paths, and an attacker sends again what
//! he has seen. Checked: each frame is delivered once, in the order of its channel, whole; buffers
//! are never used beyond what was given; and once the faults stop, everything arrives.
#[path = "common/dice.rs"]
mod dice;
#[path = "ends/lengths.rs"]
mod lengths;

use ayre_netsim::{Item, Network, Plan};
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{CHANNELS, Channel, Digest, Flags, HEADER_BYTES, Header};
use ayre_proto::link::paths::PathId;
use ayre_proto::link::receive::Arrival;
use crc::{CRC_32_ISCSI, Crc, Table};
use dice::{Dice, seeds};
use std::collections::BTreeMap;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// Nanoseconds.
const MILLISECOND: u64 = 1_000_000;

fn crc(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// A datagram, and to whom it goes.
#[derive(Clone)]
struct Datagram(usize, Vec<u8>);

impl Item for Datagram {
    fn size(&self) -> usize {
        self.1.len()
    }

    fn flip(&mut self, bit: u64) {
        self.1[bit as usize / 8] ^= 1 << (bit % 8);
    }
}

/// A program, its end of the link, and its buffers.
struct Host {
    end: End,
    /// Payloads of frames that have not arrived.
    out: [BTreeMap<u32, Vec<u8>>; CHANNELS],
    produced: [u64; CHANNELS],
    kept: [BTreeMap<u32, Vec<u8>>; CHANNELS],
    delivered: [u64; CHANNELS],
}

/// The datagrams that an end sends, with the path of each.
#[derive(Default)]
struct Wire {
    sent: Vec<(u8, Header)>,
    arrived: Vec<(Channel, u32)>,
}

impl EndEffects for Wire {
    fn transmit(&mut self, header: &Header) {
        self.sent.push((header.path, *header));
    }

    fn transmit_part(&mut self, _: &Header, _: &Part) {
        unreachable!("no path of these takes less than a frame");
    }

    fn arrived(&mut self, channel: Channel, seq: u32) {
        self.arrived.push((channel, seq));
    }
}

struct World {
    dice: Dice,
    now: u64,
    /// A way for each path, in both directions.
    network: Network<Datagram>,
    hosts: [Host; 2],
}

/// The payload of a channel's n-th frame from a host.
fn content(host: usize, channel: Channel, frame: u64) -> Vec<u8> {
    let mut dice = Dice(frame << 8 | (channel as u64) << 1 | host as u64);
    let len = 1 + dice.below(40);
    (0..len).map(|_| dice.word() as u8).collect()
}

impl Host {
    fn new(agreed: Agreement) -> Self {
        Self {
            end: End::new(agreed, &Drive::RACK, 0),
            out: Default::default(),
            produced: [0; CHANNELS],
            kept: Default::default(),
            delivered: [0; CHANNELS],
        }
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let paths = 1 + dice.below(4) as u8;
        let going_back = paths == 1 && dice.percent(30);
        let repair = if going_back { Repair::GoBackN } else { Repair::Selective };
        let mut first = || [0; CHANNELS].map(|_| dice.word() as u32);
        let (mine, yours) = (first(), first());
        let agreement = |own: usize| {
            let (tokens, firsts) = ([11, 22], [mine, yours]);
            Agreement {
                to: 100 + (1 - own) as u32,
                own: 100 + own as u32,
                incarnation: tokens[1 - own],
                generation: 5,
                token: tokens[own],
                own_token: tokens[1 - own],
                first: [firsts[own], firsts[1 - own]],
                repair,
                paths,
            }
        };
        let hosts = [0, 1].map(|own| Host::new(agreement(own)));
        let network = Network::new([0; 4].map(|_| {
            let (delay, jitter) = (5_000 + dice.below(20_000), dice.below(10_000));
            Plan { delay, jitter, seed: dice.word(), ..Plan::NONE }
        }));
        Self { dice, now: 0, network, hosts }
    }

    /// All goes well from now on.
    fn calm_down(&mut self) {
        self.network.change(|plan| {
            let Plan { delay, jitter, .. } = *plan;
            *plan = Plan { delay, jitter, ..Plan::NONE };
        });
        self.cut(0);
    }

    /// These paths carry nothing: bit by path.
    fn cut(&mut self, paths: u64) {
        for (path, way) in self.network.ways.iter_mut().enumerate() {
            way.is_cut = paths >> path & 1 == 1;
        }
    }

    /// Puts what an end has caused on the network, and its buffers in order.
    fn carry(&mut self, host: usize, wire: Wire) {
        for (path, header) in wire.sent {
            let mut datagram = header.encode(crc).to_vec();
            if header.payload.len > 0 {
                datagram.extend(&self.hosts[host].out[header.channel.index()][&header.seq]);
            }
            self.network.ways[usize::from(path)].send(Datagram(1 - host, datagram), self.now);
        }
        for (channel, seq) in wire.arrived {
            let freed = self.hosts[host].out[channel.index()].remove(&seq);
            assert!(freed.is_some(), "{channel:?} {seq} arrives once");
        }
    }

    fn produce(&mut self, host: usize, frames: u64) {
        for channel in Channel::ALL {
            let index = channel.index();
            while self.hosts[host].produced[index] < frames
                && self.hosts[host].end.may_send(channel, self.now)
            {
                let Host { end, produced, out, .. } = &mut self.hosts[host];
                let payload = content(host, channel, produced[index]);
                let digest = (Digest::of(&payload, crc), Flags::empty());
                let mut wire = Wire::default();
                let seq = end.sender(channel).next();
                out[index].insert(seq, payload);
                assert_eq!(end.send(channel, digest, self.now, &mut wire), seq);
                produced[index] += 1;
                self.carry(host, wire);
            }
        }
    }

    fn consume(&mut self, host: usize, eager: bool) {
        for channel in Channel::ALL {
            let end = &mut self.hosts[host].end;
            let held = end.receiver(channel).held();
            let take = if eager { held } else { self.dice.below(u64::from(held) + 1) as u32 };
            end.take(channel, take);
            let wants = end.receiver(channel).wants();
            let give = if eager { wants } else { self.dice.below(u64::from(wants) + 1) as u32 };
            if give > 0 {
                end.give(channel, give, self.now);
            }
        }
    }

    fn arrive(&mut self, host: usize, datagram: &[u8]) {
        let Ok(header) = Header::parse(datagram, crc) else { return };
        let mut wire = Wire::default();
        let end = &mut self.hosts[host].end;
        let heard = end.on_header(&header, self.now, &mut wire).expect("an honest peer");
        self.carry(host, wire);
        let payload = &datagram[HEADER_BYTES..];
        if heard != HeaderOutcome::Payload || header.check_payload(payload, crc).is_err() {
            return;
        }
        let Host { end, kept, delivered, .. } = &mut self.hosts[host];
        let index = header.channel.index();
        match end.on_payload(&header, self.now).expect("an honest peer") {
            Arrival::InOrder(frames) => {
                assert!(kept[index].insert(header.seq, payload.to_vec()).is_none());
                for ahead in 0..frames {
                    let payload = kept[index].remove(&header.seq.wrapping_add(ahead));
                    let expected = content(1 - host, header.channel, delivered[index]);
                    assert_eq!(payload, Some(expected), "whole, once, in order");
                    delivered[index] += 1;
                }
            }
            Arrival::Ahead => {
                assert!(kept[index].insert(header.seq, payload.to_vec()).is_none());
            }
            Arrival::Dropped | Arrival::Duplicate => {}
        }
        let receiver = end.receiver(header.channel);
        let given = receiver.limit().wrapping_sub(receiver.taken());
        assert!(kept[index].len() as u32 + receiver.held() <= given, "a buffer for each");
    }

    fn is_done(&self, frames: u64) -> bool {
        let done = |host: &Host| {
            host.delivered == [frames; CHANNELS] && host.out.iter().all(BTreeMap::is_empty)
        };
        self.hosts.iter().all(done)
    }

    fn step(&mut self, frames: u64, eager: bool) {
        for host in [0, 1] {
            self.consume(host, eager);
            self.produce(host, frames);
            let mut wire = Wire::default();
            self.hosts[host].end.on_time(self.now, &mut wire);
            self.carry(host, wire);
        }
        let packet = self.network.due().unwrap_or(u64::MAX);
        let deadlines = self.hosts.iter().map(|host| host.end.deadline(self.now));
        let next = deadlines.min().unwrap_or(u64::MAX).min(packet);
        self.now = next.clamp(self.now + 1, self.now + 100_000);
        while let Some(Datagram(to, datagram)) = self.network.take(self.now) {
            self.arrive(to, &datagram);
        }
    }

    /// Runs until this number of frames of each channel have come both ways.
    fn run(&mut self, frames: u64, calm: u64) {
        while !self.is_done(frames) {
            if self.now >= calm {
                self.calm_down();
            }
            let delivered = self.hosts.each_ref().map(|host| host.delivered);
            assert!(self.now < calm + 30_000 * MILLISECOND, "stuck at {delivered:?} of {frames}");
            self.step(frames, self.now >= calm);
        }
    }
}

/// Every seed is a network of its own.
// spec: LINK-1, LINK-2, LINK-4, LINK-13, LINK-14, LINK-15, FRAME-5
#[test]
fn everything_arrives_over_any_network() {
    for seed in 0..seeds(300) {
        let mut world = World::new(seed);
        let dice = &mut Dice(seed ^ 0xff);
        let mut share = |bound| dice.below(bound) as f64 / 100.0;
        let (loss, duplicate, corrupt) = (share(31), share(11), share(6));
        let replay = (share(6), 10 * MILLISECOND);
        world.network.change(|plan| *plan = Plan { loss, duplicate, corrupt, replay, ..*plan });
        world.run(100, 60 * MILLISECOND);
    }
}

/// Traffic of a path that is cut moves to the others, without loss; the path is used again when it
/// is back.
// spec: LINK-8, PATH-3, PATH-7
#[test]
fn a_path_that_is_cut_is_left_and_taken_back() {
    let mut world = World::new(0);
    while world.hosts[0].end.paths().live() < 2 {
        world = World::new(world.dice.word());
    }
    let path = PathId::new(1).expect("a second path");
    let is_live = |world: &World| world.hosts[0].end.paths().is_live(path);
    let (mut frames, mut sent) = (100, 0);
    world.run(frames, 0);
    for cut in [2, 0, 2, 0] {
        while is_live(&world) == (cut != 0) {
            assert!(world.now < 60_000 * MILLISECOND, "the path's state does not change");
            frames += 20;
            while !world.is_done(frames) {
                world.cut(cut);
                world.step(frames, true);
            }
        }
        if cut == 0 {
            frames += 20;
            world.run(frames, 0);
        }
        let counters = world.hosts[0].end.paths().counters(path).expect("it is there");
        assert!(counters.sent > sent, "it is used while it lives");
        sent = counters.sent;
    }
}

/// A round trip is that of the way: what is held back for a while adds nothing to it.
// spec: LINK-16, RTT-1
#[test]
fn a_round_trip_excludes_the_delay_of_acknowledgements() {
    let mut world = World::new(1);
    world.network.change(|plan| (plan.delay, plan.jitter) = (30_000, 0));
    world.run(200, 0);
    for Host { end, .. } in &world.hosts {
        let rtt = end.rtt();
        assert_eq!((rtt.smoothed(), rtt.shortest()), (Some(60_000), Some(60_000)));
        assert_eq!(rtt.variation(), Some(0));
    }
}

/// Frames of another link, of an earlier one, or that have come before change nothing.
// spec: LINK-15
#[test]
fn foreign_frames_do_not_change_a_link() {
    let mut world = World::new(3);
    world.run(20, 0);
    let mut wire = Wire::default();
    let [Host { end, .. }, Host { end: from, .. }] = &mut world.hosts;
    let (mut now, mut peer) = (world.now, Wire::default());
    while peer.sent.is_empty() {
        now += 1;
        from.on_time(now, &mut peer);
        if from.may_send(Channel::Posted, now) {
            from.send(Channel::Posted, (Digest { len: 1, crc: 0 }, Flags::empty()), now, &mut peer);
        }
    }
    let good = peer.sent[0].1;
    let before = (*end.counters(), end.receiver(Channel::Posted).expected(), end.in_flight());
    let foreign = [
        Header { token: good.token + 1, ..good },
        Header { generation: good.generation - 1, ..good },
        Header { to: good.to + 1, ..good },
    ];
    for header in foreign {
        assert_eq!(end.on_header(&header, now, &mut wire), Ok(HeaderOutcome::Foreign));
    }
    assert_ne!(end.on_header(&good, now, &mut wire), Ok(HeaderOutcome::Repeated));
    for _ in 0..3 {
        assert_eq!(end.on_header(&good, now, &mut wire), Ok(HeaderOutcome::Repeated));
    }
    let after = *end.counters();
    assert_eq!((after.foreign, after.repeated), (before.0.foreign + 3, before.0.repeated + 3));
    assert_eq!(end.receiver(Channel::Posted).expected(), before.1);
    assert_eq!(end.in_flight(), before.2);
}

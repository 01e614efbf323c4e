//! A link of a node: its end, its buffers, and a program that sends numbered records and checks
//! those that come.
use crate::dice::Dice;
use crate::net::{Datagram, Network, crc};
use ayre_proto::link::end::{Agreement, Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{CHANNELS, Channel, Digest, Flags, HEADER_BYTES, Header, Kind, Sack};
use ayre_proto::link::open::SetUp;
use ayre_proto::link::receive::Arrival;
use ayre_proto::link::{Repair, WINDOW};
use std::collections::HashSet;

/// The effects of an end.
#[derive(Debug, Default)]
struct Wire {
    sent: Vec<Header>,
    arrived: Vec<(Channel, u32)>,
}

impl EndEffects for Wire {
    fn transmit(&mut self, header: &Header) {
        self.sent.push(*header);
    }

    fn transmit_part(&mut self, _: &Header, _: &Part) {
        unreachable!("no path of these takes less than a frame");
    }

    fn arrived(&mut self, channel: Channel, seq: u32) {
        self.arrived.push((channel, seq));
    }
}

/// The key of one direction of a link: incarnations of sender and receiver, and the token of its
/// frames.
type Identity = [u64; 3];

/// The n-th record of a channel of a link.
fn record(identity: Identity, channel: usize, nth: u64) -> Vec<u8> {
    let words = identity.into_iter().chain([(channel as u64) << 56 | nth]);
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.resize(bytes.len() + (nth % 5) as usize, nth as u8);
    bytes
}

/// One channel as its program sees it.
#[derive(Clone, Debug, Default)]
struct Traffic {
    /// Records that were sent, and those of them that are done with.
    produced: u64,
    freed: u64,
    /// Records that were taken in.
    delivered: u64,
    /// Records that are kept before their turn: bit i is record `delivered + 1 + i`.
    kept: u128,
    /// Buffers that were given, and those that came back.
    given: u64,
    returned: u64,
}

/// A node's side of a link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) end: End,
    pub(crate) agreed: Agreement,
    pub(crate) peer: usize,
    /// Whether both sides keep to the rules.
    pub(crate) is_honest: bool,
    /// When the end has something to do.
    pub(crate) due: u64,
    /// The side that sends lies in place of its end's messages.
    liar: Option<Dice>,
    ends: (usize, usize),
    out: Identity,
    inward: Identity,
    traffic: [Traffic; CHANNELS],
    /// Packets that were taken in.
    heard: HashSet<u64>,
}

/// The nodes at the two sides of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides {
    pub(crate) own: usize,
    pub(crate) peer: usize,
    pub(crate) is_honest: bool,
    pub(crate) lies: bool,
}

impl Link {
    pub(crate) fn new(
        sides: Sides,
        agreed: Agreement,
        (ours, theirs): (&SetUp, &SetUp),
        drive: &Drive,
        now: u64,
    ) -> Self {
        Self {
            end: End::new(agreed, drive, now),
            agreed,
            peer: sides.peer,
            is_honest: sides.is_honest,
            due: now,
            liar: sides.lies.then_some(Dice(ours.token)),
            ends: (sides.own, sides.peer),
            out: [ours.incarnation, theirs.incarnation, agreed.token],
            inward: [theirs.incarnation, ours.incarnation, agreed.own_token],
            traffic: Default::default(),
            heard: HashSet::new(),
        }
    }

    /// Takes in a frame for this link. False if it is a stranger's.
    pub(crate) fn on_frame(
        &mut self,
        header: &Header,
        payload: &[u8],
        now: u64,
        net: &mut Network,
    ) -> bool {
        let mut wire = Wire::default();
        let heard = self.end.on_header(header, now, &mut wire);
        self.carry(wire, now, net);
        let is_payload = match heard {
            Ok(HeaderOutcome::Foreign) => return false,
            Ok(HeaderOutcome::Repeated) => false,
            Ok(heard) => {
                assert!(self.heard.insert(header.packet), "{:?}: each packet once", self.ends);
                heard == HeaderOutcome::Payload
            }
            Err(malformed) => {
                assert!(!self.is_honest, "an honest peer was {malformed:?}");
                false
            }
        };
        if is_payload && header.check_payload(payload, crc).is_ok() {
            self.on_payload(header, payload, now);
        }
        true
    }

    fn on_payload(&mut self, header: &Header, payload: &[u8], now: u64) {
        let index = header.channel.index();
        let traffic = &mut self.traffic[index];
        let nth = u64::from(header.seq.wrapping_sub(self.agreed.first[1][index]));
        if self.is_honest {
            assert_eq!(payload, record(self.inward, index, nth), "{:?}: of this link", self.ends);
        }
        let behind = nth.wrapping_sub(traffic.delivered + 1);
        match self.end.on_payload(header, now) {
            Ok(Arrival::InOrder(frames)) => {
                assert_eq!(nth, traffic.delivered, "{:?}: each once, in order", self.ends);
                let behind = u64::from(frames) - 1;
                assert_eq!(u64::from(traffic.kept.trailing_ones()), behind, "all that is there");
                traffic.kept = traffic.kept.checked_shr(frames).unwrap_or(0);
                traffic.delivered += u64::from(frames);
            }
            Ok(Arrival::Ahead) => {
                assert!(traffic.kept >> behind & 1 == 0, "{:?}: kept once", self.ends);
                traffic.kept |= 1 << behind;
            }
            Ok(Arrival::Dropped) => assert_eq!(self.agreed.repair, Repair::GoBackN),
            Ok(Arrival::Duplicate) => {
                let is_kept = behind < u64::from(WINDOW) && traffic.kept >> behind & 1 == 1;
                let is_here = nth < traffic.delivered || is_kept;
                assert!(is_here || !self.is_honest, "{:?}: nothing is missed", self.ends);
            }
            Err(malformed) => assert!(!self.is_honest, "an honest peer was {malformed:?}"),
        }
        self.check_buffers(header.channel);
    }

    /// A buffer for each frame that is here, and none that was not given.
    fn check_buffers(&self, channel: Channel) {
        let receiver = self.end.receiver(channel);
        let Traffic { kept, given, returned, delivered, .. } = self.traffic[channel.index()];
        assert_eq!(delivered - returned, u64::from(receiver.held()), "what is not taken");
        let used = u64::from(receiver.held() + kept.count_ones());
        let there = given - returned;
        assert!(used <= there && there <= u64::from(WINDOW), "{used} frames, {there} buffers");
        let limit = self.agreed.first[1][channel.index()].wrapping_add(given as u32);
        assert_eq!(receiver.limit(), limit, "a credit for each buffer");
    }

    /// The program takes some of what has come, gives buffers back, and sends up to its quota.
    /// It gives few buffers at a time where there are few.
    pub(crate) fn work(
        &mut self,
        (quota, most): (u64, u32),
        mut dice: Option<&mut Dice>,
        now: u64,
        net: &mut Network,
    ) {
        let mut part = |all: u32| match &mut dice {
            Some(dice) => dice.below(u64::from(all) + 1) as u32,
            None => all,
        };
        for channel in Channel::ALL {
            let traffic = &mut self.traffic[channel.index()];
            let take = part(self.end.receiver(channel).held());
            self.end.take(channel, take);
            traffic.returned += u64::from(take);
            let give = part(self.end.receiver(channel).wants().min(most));
            if give > 0 {
                self.end.give(channel, give, now);
            }
            traffic.given += u64::from(give);
            self.check_buffers(channel);
            self.produce(channel, quota, now, net);
        }
        self.due = self.end.deadline(now);
    }

    fn produce(&mut self, channel: Channel, quota: u64, now: u64, net: &mut Network) {
        let index = channel.index();
        while self.traffic[index].produced < quota && self.end.may_send(channel, now) {
            let payload = record(self.out, index, self.traffic[index].produced);
            let mut wire = Wire::default();
            let digest = (Digest::of(&payload, crc), Flags::empty());
            let seq = self.end.send(channel, digest, now, &mut wire);
            let nth = self.traffic[index].produced as u32;
            assert_eq!(seq, self.agreed.first[0][index].wrapping_add(nth));
            self.traffic[index].produced += 1;
            self.carry(wire, now, net);
        }
    }

    pub(crate) fn on_time(&mut self, now: u64, net: &mut Network) {
        let mut wire = Wire::default();
        self.end.on_time(now, &mut wire);
        self.carry(wire, now, net);
        self.due = self.end.deadline(now);
    }

    /// The owner loses what it kept before its turn.
    pub(crate) fn resync(&mut self, now: u64, net: &mut Network) {
        self.traffic.iter_mut().for_each(|traffic| traffic.kept = 0);
        let mut wire = Wire::default();
        self.end.resync(now, &mut wire);
        self.carry(wire, now, net);
        self.due = now;
    }

    fn carry(&mut self, wire: Wire, now: u64, net: &mut Network) {
        for header in wire.sent {
            let index = header.channel.index();
            let nth = u64::from(header.seq.wrapping_sub(self.agreed.first[0][index]));
            let mut payload = vec![];
            if header.payload.len > 0 {
                assert!(nth >= self.traffic[index].freed, "its payload is gone");
                payload = record(self.out, index, nth);
            }
            let mut header = header;
            if let Some(dice) = &mut self.liar
                && dice.percent(30)
            {
                header = lie(dice, header);
            }
            assert!(HEADER_BYTES + payload.len() <= 1472, "no frame is longer than agreed");
            net.send(Datagram::new(self.ends, &header, &payload), now);
        }
        for (channel, seq) in wire.arrived {
            let index = channel.index();
            let nth = u64::from(seq.wrapping_sub(self.agreed.first[0][index]));
            let traffic = &mut self.traffic[index];
            assert_eq!(nth, traffic.freed, "{channel:?}: done with, each once and in order");
            assert!(nth < traffic.produced, "what was never sent does not arrive");
            traffic.freed += 1;
        }
    }

    /// Whether all has gone out that this side sends, and all has come that the other one does,
    /// and nothing is left to do.
    pub(crate) fn is_done(&self, out: u64, inward: u64) -> bool {
        let are_through = self.traffic.iter().all(|traffic| {
            let Traffic { produced, freed, delivered, .. } = *traffic;
            (produced, freed, delivered, traffic.returned) == (out, out, inward, inward)
        });
        let is_idle = Channel::ALL.iter().all(|channel| self.end.sender(*channel).is_idle());
        are_through && is_idle && !self.end.is_resyncing()
    }

    /// The state, for a reader who searches the fault.
    pub(crate) fn summary(&self) -> String {
        let channels = Channel::ALL.map(|channel| {
            let (out, inward) = (self.end.sender(channel), self.end.receiver(channel));
            let sent = (out.oldest(), out.next(), out.room(), out.in_flight());
            (sent, inward.expected(), inward.limit(), &self.traffic[channel.index()])
        });
        let Self { ends, agreed: Agreement { own, to, generation, .. }, .. } = self;
        let state = (self.end.state(), self.end.is_resyncing());
        format!("{ends:?} {own} {to} {generation} {state:?} {channels:?}")
    }

    /// Whether the other side is the other side of this link.
    pub(crate) fn is_joined_with(&self, other: &Self) -> bool {
        let (here, there) = (&self.agreed, &other.agreed);
        (here.token, here.own_token) == (there.own_token, there.token)
            && (here.to, here.own) == (there.own, there.to)
            && here.generation == there.generation
            && (here.repair, here.paths) == (there.repair, there.paths)
    }
}

/// Messages of a peer that knows the link and breaks the rules.
fn lie(dice: &mut Dice, truth: Header) -> Header {
    let mut lie = truth;
    let near = |dice: &mut Dice, number: u32| match dice.below(6) {
        0 => dice.word() as u32,
        1 => number.wrapping_sub(dice.below(140) as u32),
        _ => number.wrapping_add(dice.below(140) as u32),
    };
    match dice.below(7) {
        0 => lie.ack = lie.ack.map(|ack| near(dice, ack)),
        1 => lie.limit = lie.limit.map(|limit| near(dice, limit)),
        2 => {
            lie.sack =
                Sack { arrived: u128::from(dice.word()) << 64 >> dice.below(128), ..lie.sack }
        }
        3 => lie.seq = near(dice, lie.seq),
        4 => lie.stamp = near(dice, lie.stamp),
        5 => lie.flags |= Flags::NACK,
        _ => {
            let kinds = [Kind::Resync, Kind::Probe, Kind::Reset];
            lie.kind = kinds[dice.below(3) as usize];
        }
    }
    lie
}

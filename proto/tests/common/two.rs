//! Two ends of a link over a network of one delay, step by step: what the tests of single rules
//! drive. All that is sent is written down.
use ayre_netsim::Flights;
use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{Channel, Digest, Flags, Header, Kind};
use ayre_proto::link::receive::Arrival;
use std::collections::BTreeSet;

/// Nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// From one host to the other.
pub(crate) const DELAY: u64 = 10_000;

/// A frame that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: u64,
    pub(crate) from: usize,
    pub(crate) header: Header,
}

/// One end, and a program that sends on the posted channel and takes what comes.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) end: End,
    /// Numbers of frames that came before their turn.
    pub(crate) kept: BTreeSet<u32>,
    /// Numbers of frames in the order in which the program got them.
    pub(crate) taken: Vec<u32>,
    /// Frames that the program still has to send.
    wanted: u32,
}

/// The datagrams that an end sends.
#[derive(Default)]
struct Wire {
    sent: Vec<Header>,
    is_port_closed: bool,
    unheard: u32,
}

impl EndEffects for Wire {
    fn transmit(&mut self, header: &Header) {
        self.sent.push(*header);
    }

    fn transmit_part(&mut self, _: &Header, _: &Part) {
        unreachable!("no path of these takes less than a frame");
    }

    fn arrived(&mut self, _: Channel, _: u32) {}

    fn is_port_closed(&mut self) -> bool {
        self.is_port_closed
    }

    fn unheard(&mut self, _: u64) {
        self.unheard += 1;
    }
}

/// Both hosts and what is under way.
#[derive(Debug)]
pub(crate) struct Two {
    pub(crate) now: u64,
    pub(crate) hosts: [Host; 2],
    pub(crate) log: Vec<Sent>,
    /// By sender: what it sends from now on is lost.
    pub(crate) cut: [bool; 2],
    /// Number of the next frames with a payload that are lost.
    pub(crate) drop_next: u32,
    /// The programs take what comes.
    pub(crate) takes: bool,
    /// By host: somebody says that the other side's port is closed.
    pub(crate) says_closed: [bool; 2],
    /// By host: how often it was told that the other side is not heard.
    pub(crate) unheard: [u32; 2],
    under_way: Flights<Sent>,
}

/// Of the two ports.
pub(crate) const INCARNATIONS: [u64; 2] = [31, 32];

/// The end of a host.
pub(crate) fn agreement(own: usize) -> Agreement {
    Agreement {
        to: 100 + (1 - own) as u32,
        own: 100 + own as u32,
        incarnation: INCARNATIONS[1 - own],
        generation: 5,
        token: [11, 22][own],
        own_token: [22, 11][own],
        first: [[0, 7, u32::MAX]; 2],
        repair: Repair::Selective,
        paths: 1,
    }
}

impl Two {
    /// Both ends are made at time 0 and have all buffers.
    pub(crate) fn new() -> Self {
        let host = |own| {
            let mut end = End::new(agreement(own), &Drive::RACK, 0);
            for channel in Channel::ALL {
                end.give(channel, end.receiver(channel).wants(), 0);
            }
            Host { end, kept: BTreeSet::new(), taken: vec![], wanted: 0 }
        };
        let hosts = [0, 1].map(host);
        let (log, under_way) = (vec![], Flights::default());
        let (cut, says_closed, unheard) = ([false; 2], [false; 2], [0; 2]);
        let mut two = Self {
            now: 0,
            hosts,
            log,
            cut,
            drop_next: 0,
            takes: true,
            says_closed,
            unheard,
            under_way,
        };
        two.work();
        two
    }

    pub(crate) fn states(&self) -> [ayre_proto::link::life::State; 2] {
        self.hosts.each_ref().map(|host| host.end.state())
    }

    /// The last frame of a kind that a host has sent.
    pub(crate) fn sent(&self, from: usize, kind: Kind) -> Option<Header> {
        let is_meant = |sent: &&Sent| sent.from == from && sent.header.kind == kind;
        self.log.iter().rfind(is_meant).map(|sent| sent.header)
    }

    /// A host sends more frames on the posted channel.
    pub(crate) fn send(&mut self, from: usize, frames: u32) {
        self.hosts[from].wanted += frames;
        self.work();
    }

    pub(crate) fn resync(&mut self, host: usize) {
        let mut wire = Wire::default();
        self.hosts[host].end.resync(self.now, &mut wire);
        self.carry(host, wire);
    }

    /// Loses everything that a host has under way.
    pub(crate) fn lose_from(&mut self, from: usize) {
        self.under_way.retain(|sent| sent.from != from);
    }

    /// A frame comes to a host now.
    pub(crate) fn deliver(
        &mut self,
        to: usize,
        header: &Header,
    ) -> Result<HeaderOutcome, Malformed> {
        let mut wire = Wire::default();
        let heard = self.hosts[to].end.on_header(header, self.now, &mut wire);
        self.carry(to, wire);
        if heard == Ok(HeaderOutcome::Payload) {
            let Host { end, kept, taken, .. } = &mut self.hosts[to];
            match end.on_payload(header, self.now) {
                Ok(Arrival::InOrder(frames)) => {
                    taken.push(header.seq);
                    for ahead in 1..frames {
                        let seq = header.seq.wrapping_add(ahead);
                        assert!(kept.remove(&seq), "{seq} was forgotten");
                        taken.push(seq);
                    }
                    if self.takes {
                        end.take(header.channel, frames);
                        end.give(header.channel, frames, self.now);
                    }
                }
                Ok(Arrival::Ahead) => assert!(kept.insert(header.seq), "it comes once"),
                other => assert!(other.is_ok(), "an honest peer"),
            }
        }
        heard
    }

    /// Runs up to and with this time.
    pub(crate) fn run_until(&mut self, end: u64) {
        loop {
            self.work();
            let packet = self.under_way.due().unwrap_or(u64::MAX);
            let deadlines = self.hosts.each_ref().map(|host| host.end.deadline(self.now));
            let next = deadlines.into_iter().min().unwrap_or(u64::MAX).min(packet);
            if next > end {
                break;
            }
            assert!(next >= self.now, "time goes on");
            self.now = next;
            while let Some(sent) = self.under_way.take(self.now) {
                self.deliver(1 - sent.from, &sent.header).expect("an honest peer");
            }
        }
        self.now = end;
    }

    /// Both hosts do what is due now.
    fn work(&mut self) {
        for host in [0, 1] {
            let mut wire = Wire { is_port_closed: self.says_closed[host], ..Wire::default() };
            let Host { end, wanted, .. } = &mut self.hosts[host];
            while *wanted > 0 && end.may_send(Channel::Posted, self.now) {
                let digest = (Digest { len: 1, crc: 0 }, Flags::empty());
                end.send(Channel::Posted, digest, self.now, &mut wire);
                *wanted -= 1;
            }
            end.on_time(self.now, &mut wire);
            self.carry(host, wire);
        }
    }

    fn carry(&mut self, from: usize, wire: Wire) {
        self.unheard[from] += wire.unheard;
        for header in wire.sent {
            let sent = Sent { at: self.now, from, header };
            self.log.push(sent);
            let is_dropped = header.payload.len > 0 && self.drop_next > 0;
            self.drop_next -= u32::from(is_dropped);
            if !is_dropped && !self.cut[from] {
                self.under_way.push(self.now + DELAY, sent);
            }
        }
    }
}

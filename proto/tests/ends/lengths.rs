//! Two ends of a link whose way takes shorter datagrams while a stream goes over it, and longer
//! ones again; with a sign and without.
use super::dice::Dice;
use super::{MILLISECOND, crc};
use ayre_netsim::Flights;
use ayre_proto::link::Repair;
use ayre_proto::link::congestion::{Config, ONE, Windows};
use ayre_proto::link::end::{Agreement, Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{Channel, Digest, Flags, HEADER_BYTES, Header, Kind};
use ayre_proto::link::pieces::{Parts, Piece, mark_words};
use ayre_proto::link::receive::Arrival;
use ayre_proto::link::rtt;
use std::collections::BTreeMap;

/// From one host to the other.
const DELAY: u64 = MILLISECOND / 2;
const SECOND: u64 = 1000 * MILLISECOND;
/// The lengths that the two ends have agreed on, and that every path takes.
const MOST: u16 = 1472;
const LEAST: u16 = 512;
/// Of a frame of the stream: it is as long as can be.
const PAYLOAD: usize = MOST as usize - HEADER_BYTES;

/// The parts of a frame that came in pieces.
type Partial = (Parts, Vec<u64>, Vec<u8>);

#[derive(Default)]
struct Wire {
    sent: Vec<Vec<u8>>,
    payloads: BTreeMap<u32, Vec<u8>>,
}

impl Wire {
    fn push(&mut self, header: &Header, payload: &[u8]) {
        let header = Header { payload: Digest::of(payload, crc), ..*header };
        self.sent.push([&header.encode(crc)[..], payload].concat());
    }
}

impl EndEffects for Wire {
    fn transmit(&mut self, header: &Header) {
        let payload = match header.payload.len {
            0 => Vec::new(),
            _ => self.payloads[&header.seq].clone(),
        };
        self.push(header, &payload);
    }

    fn transmit_part(&mut self, header: &Header, part: &Part) {
        let len = usize::from(header.payload.len);
        let payload = match part {
            Part::Padding => vec![0; len],
            Part::Piece(piece) => {
                let bytes = &self.payloads[&header.seq][usize::from(piece.offset)..][..len - 8];
                [&piece.encode(), bytes].concat()
            }
        };
        self.push(header, &payload);
    }

    fn arrived(&mut self, _: Channel, seq: u32) {
        self.payloads.remove(&seq).expect("it arrives once");
    }
}

struct Host {
    end: End,
    wire: Wire,
    partial: BTreeMap<u32, Partial>,
    kept: BTreeMap<u32, Vec<u8>>,
    sent: u32,
    delivered: u32,
    /// When the last frame was delivered, and the longest time between two.
    last: u64,
    pause: u64,
}

/// The knowledge of a sender's host about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// Nothing.
    None,
    /// It reports the longest length when it is asked.
    Told,
    /// It refuses what is too long.
    Refused,
}

struct World {
    now: u64,
    hosts: [Host; 2],
    /// Bytes of the longest frame that passes; longer ones vanish.
    limit: u16,
    sign: Sign,
    under_way: Flights<(usize, Vec<u8>)>,
    /// Of the datagrams of the stream that passed, the longest.
    longest: usize,
    is_cut: bool,
    /// In percent, of all datagrams.
    loss: u64,
    dice: Dice,
    /// The first host sends all the time.
    streams: bool,
}

/// How ports that are programs drive a link.
fn drive() -> Drive {
    let mut drive = Drive::RACK;
    drive.timeout = rtt::Bounds { floor: MILLISECOND, ..rtt::Bounds::RACK };
    drive.congestion = Config {
        base_target: MILLISECOND,
        increase: ONE,
        slow_start: true,
        window: Windows { min: 8 * ONE, calm: 16 * ONE, initial: 16 * ONE, max: 16 * ONE },
        ..Config::RACK
    };
    drive
}

fn content(frame: u32) -> Vec<u8> {
    (0..PAYLOAD as u32).map(|at| (at.wrapping_mul(31) ^ frame) as u8).collect()
}

impl World {
    fn new(repair: Repair, sign: Sign) -> Self {
        let host = |own: usize| {
            let agreed = Agreement {
                to: 1 - own as u32,
                own: own as u32,
                incarnation: 7,
                generation: 1,
                token: own as u64,
                own_token: 1 - own as u64,
                first: [[0; 3]; 2],
                repair,
                paths: 1,
            };
            let mut end = End::new(agreed, &drive(), 0);
            end.limit_lengths(LEAST, MOST);
            end.give(Channel::Posted, 128, 0);
            let (partial, kept) = (BTreeMap::new(), BTreeMap::new());
            let (sent, delivered, last, pause) = (0, 0, 0, 0);
            Host { end, wire: Wire::default(), partial, kept, sent, delivered, last, pause }
        };
        let (hosts, under_way) = ([0, 1].map(host), Flights::default());
        let (limit, longest) = (MOST, 0);
        let (is_cut, streams) = (false, true);
        let (loss, dice) = (0, Dice(7));
        Self { now: 0, hosts, limit, sign, under_way, longest, is_cut, loss, dice, streams }
    }

    /// The step of a host at this time: the first one sends as much as it may.
    fn work(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        while index == 0 && self.streams && host.end.may_send(Channel::Posted, self.now) {
            let payload = content(host.sent);
            let digest = Digest::of(&payload, crc);
            host.wire.payloads.insert(host.sent, payload);
            let first = (digest, Flags::empty());
            assert_eq!(host.end.send(Channel::Posted, first, self.now, &mut host.wire), host.sent);
            host.sent += 1;
        }
        host.end.on_time(self.now, &mut host.wire);
        while let Some(path) = host.end.asks_host() {
            let most = if self.sign == Sign::None { MOST } else { self.limit };
            host.end.on_host_limit(path, most, self.now);
        }
        self.carry(index);
    }

    fn carry(&mut self, index: usize) {
        for datagram in std::mem::take(&mut self.hosts[index].wire.sent) {
            if datagram.len() > usize::from(self.limit) {
                if self.sign == Sign::Refused {
                    self.hosts[index].end.on_refused(0, self.limit, self.now);
                }
            } else if !self.is_cut && !self.dice.percent(self.loss) {
                self.longest = self.longest.max(datagram.len());
                self.under_way.push(self.now + DELAY, (1 - index, datagram));
            }
        }
    }

    fn arrive(&mut self, index: usize, datagram: &[u8]) {
        let host = &mut self.hosts[index];
        let header = Header::parse(datagram, crc).expect("nothing is damaged here");
        let payload = &datagram[HEADER_BYTES..];
        header.check_payload(payload, crc).expect("nothing is damaged here");
        let heard = host.end.on_header(&header, self.now, &mut host.wire).expect("an honest peer");
        match heard {
            HeaderOutcome::Payload => self.take(index, &header, payload.to_vec()),
            HeaderOutcome::Piece
                if host.end.on_piece(&header, self.now).expect("an honest peer") =>
            {
                let (piece, part) = Piece::parse(payload).expect("a piece");
                let len = piece.whole.len;
                let new =
                    || (Parts::new(piece.whole), vec![0; mark_words(len)], vec![0; len.into()]);
                let (parts, marks, bytes) = host.partial.entry(header.seq).or_insert_with(new);
                bytes[usize::from(piece.offset)..][..part.len()].copy_from_slice(part);
                if parts.add(&piece, part.len(), marks).expect("a part of this frame") {
                    let (.., bytes) = host.partial.remove(&header.seq).expect("it is there");
                    assert_eq!(Digest::of(&bytes, crc), piece.whole);
                    let whole = Header { kind: Kind::Data, payload: piece.whole, ..header };
                    self.take(index, &whole, bytes);
                }
            }
            _ => {}
        }
        self.carry(index);
    }

    /// A whole frame: all are delivered in their order, each once.
    fn take(&mut self, index: usize, header: &Header, payload: Vec<u8>) {
        let host = &mut self.hosts[index];
        match host.end.on_payload(header, self.now).expect("an honest peer") {
            Arrival::InOrder(frames) => {
                host.kept.insert(header.seq, payload);
                for seq in header.seq..header.seq + frames {
                    let bytes = host.kept.remove(&seq).expect("it was kept");
                    assert_eq!((seq, bytes), (host.delivered, content(host.delivered)));
                    host.delivered += 1;
                }
                host.pause = host.pause.max(self.now - host.last);
                host.last = self.now;
                host.end.take(header.channel, frames);
                host.end.give(header.channel, frames, self.now);
            }
            Arrival::Ahead => assert_eq!(host.kept.insert(header.seq, payload), None),
            Arrival::Dropped | Arrival::Duplicate => {}
        }
    }

    /// Goes on for so long. Says how many frames were delivered, and the longest time without one.
    fn run(&mut self, nanos: u64) -> (u32, u64) {
        let until = self.now + nanos;
        let before = self.hosts[1].delivered;
        (self.hosts[1].last, self.hosts[1].pause) = (self.now, 0);
        loop {
            (0..2).for_each(|index| self.work(index));
            let due = self.hosts.iter().map(|host| host.end.deadline(self.now)).min();
            let arrival = self.under_way.due().unwrap_or(u64::MAX);
            // What a host refuses is due again at once.
            self.now = due.unwrap_or(u64::MAX).min(arrival).max(self.now + 1000);
            if self.now >= until {
                break;
            }
            while let Some((to, datagram)) = self.under_way.take(self.now) {
                self.arrive(to, &datagram);
            }
        }
        self.now = until;
        let Host { delivered, last, pause, .. } = self.hosts[1];
        (delivered - before, pause.max(until - last))
    }

    /// Lets so much time pass with nothing to send.
    fn idle(&mut self, nanos: u64) {
        self.streams = false;
        self.run(nanos);
        self.streams = true;
    }

    fn frame_max(&self) -> u16 {
        self.hosts[0].end.frame_max()
    }
}

/// A stream goes on soon after the path has become shorter, for all reports of the host, and nearly
/// as fast as before. Frames are as long as before once the path takes that again.
// spec: MTU-1, MTU-2, MTU-3, MTU-4, MTU-5, MTU-6, MTU-7, FRAME-11, FRAME-12
#[test]
fn a_stream_goes_on_over_a_way_that_takes_less_and_takes_more_again() {
    for (repair, limits) in
        [(Repair::Selective, &[LEAST, 548, 1300, 1471][..]), (Repair::GoBackN, &[972])]
    {
        for sign in [Sign::None, Sign::Told, Sign::Refused] {
            for limit in limits.iter().copied() {
                let mut world = World::new(repair, sign);
                let (before, _) = world.run(SECOND / 5);
                world.limit = limit;
                let (_, pause) = world.run(SECOND);
                eprintln!(
                    "{repair:?} {sign:?} {limit}: pause {} us, max {}",
                    pause / 1000,
                    world.frame_max()
                );
                assert!(pause < 200 * MILLISECOND, "{sign:?} {limit}: {pause} ns");
                let (after, pause) = world.run(SECOND / 5);
                assert!(pause < 20 * MILLISECOND, "{sign:?} {limit}: {pause} ns");
                assert!(4 * after > before, "{sign:?} {limit}: {after} frames, {before} before");
                world.idle(5 * SECOND);
                let length = world.frame_max();
                assert!(length <= limit && limit - length <= 32, "{sign:?}: {length} of {limit}");
                world.limit = MOST;
                world.idle(40 * SECOND);
                assert_eq!(world.frame_max(), MOST, "{sign:?} {limit}");
                let (again, _) = world.run(SECOND / 5);
                assert!(2 * again > before, "{sign:?} {limit}: {again}, {before} before");
            }
        }
    }
}

/// A way that carries nothing for a while, or loses every fifth datagram, is as long as before.
// spec: MTU-3, MTU-4
#[test]
fn silences_and_losses_do_not_make_datagrams_shorter() {
    let mut world = World::new(Repair::Selective, Sign::None);
    for silence in [MILLISECOND, 10 * MILLISECOND, 100 * MILLISECOND, SECOND] {
        world.run(SECOND / 10);
        world.is_cut = true;
        world.run(silence);
        world.is_cut = false;
        world.run(2 * SECOND);
        assert_eq!(world.frame_max(), MOST, "after {silence} ns");
    }
    world.loss = 20;
    world.run(2 * SECOND);
    assert_eq!(world.frame_max(), MOST);
}

/// A report of a router, or of anybody in its name, has no effect where long frames arrive.
// spec: MTU-3, NET-4
#[test]
fn a_word_of_the_host_alone_makes_no_datagram_shorter() {
    let mut world = World::new(Repair::Selective, Sign::None);
    world.run(SECOND / 10);
    assert_eq!(world.hosts[0].end.asks_host(), None, "nothing is lost, and nobody asks");
    let sent = world.hosts[0].sent;
    assert!(sent > 100 && world.longest == usize::from(MOST));
}

/// The host repeats its report as long as the system remembers it. That is no news where longer
/// frames have passed since.
// spec: MTU-3
#[test]
fn a_remembered_mtu_report_is_ignored() {
    let mut world = World::new(Repair::Selective, Sign::Told);
    world.limit = 1300;
    world.run(SECOND / 10);
    assert_eq!(world.frame_max(), 1300);
    world.limit = MOST;
    world.idle(3 * SECOND);
    assert_eq!(world.frame_max(), MOST);
    world.hosts[0].end.on_host_limit(0, 1300, world.now);
    assert_eq!(world.frame_max(), MOST);
    world.hosts[0].end.on_host_limit(0, 1200, world.now);
    assert_eq!(world.frame_max(), 1200);
}

/// A frame of which some pieces have come goes on with those of another length, or whole.
// spec: FRAME-12
#[test]
fn pieces_of_several_transmissions_make_one_frame() {
    let mut world = World::new(Repair::Selective, Sign::Refused);
    for limit in [600, 1200, MOST, 512, 900, MOST] {
        world.loss = 30;
        world.limit = limit;
        world.run(SECOND / 5);
    }
    world.loss = 0;
    assert!(world.run(SECOND / 5).0 > 100);
}

/// Each piece is read or refused, and a payload is whole once all its bytes have come.
// spec: FRAME-11, FRAME-12
#[test]
fn only_pieces_of_one_payload_make_it_whole() {
    let whole = Digest { len: 20, crc: 7 };
    let read = |offset, len: usize| {
        let bytes = [&Piece { whole, offset }.encode()[..], &vec![1; len]].concat();
        Piece::parse(&bytes).map(|(piece, part)| (piece.offset, part.len()))
    };
    for (offset, len) in [(0, 20), (0, 8), (8, 12), (8, 8), (16, 4)] {
        assert_eq!(read(offset, len), Ok((offset, len)));
    }
    for (offset, len) in
        [(0, 0), (0, 4), (4, 16), (0, 21), (8, 13), (24, 8), (65528, 8), (8, 65535)]
    {
        assert!(read(offset, len).is_err(), "{offset} {len}");
    }
    (0..8).for_each(|len| assert!(Piece::parse(&vec![0; len]).is_err()));
    let (mut parts, mut marks) = (Parts::new(whole), vec![0; mark_words(20)]);
    let piece = |offset| Piece { whole, offset };
    assert_eq!(parts.add(&piece(8), 8, &mut marks), Ok(false));
    assert_eq!(parts.add(&piece(8), 12, &mut marks), Ok(false));
    let other = Piece { whole: Digest { crc: 8, ..whole }, offset: 0 };
    assert!(parts.add(&other, 8, &mut marks).is_err());
    assert_eq!(parts.add(&piece(0), 8, &mut marks), Ok(true));
}

/// A piece beyond the credit is malformed, and one of a frame that has come is answered.
// spec: FRAME-12, LINK-11
#[test]
fn a_piece_needs_the_credit_of_its_frame() {
    let mut world = World::new(Repair::Selective, Sign::None);
    world.run(SECOND / 100);
    let host = &mut world.hosts[1];
    let receiver = host.end.receiver(Channel::Posted);
    let (limit, expected) = (receiver.limit(), receiver.expected());
    let mut wire = Wire::default();
    host.end.flush_acks(world.now, &mut wire);
    host.end.challenge(0, world.now, &mut wire);
    let header = Header::parse(&wire.sent[wire.sent.len() - 1], crc).expect("a header");
    let mut piece = Header { kind: Kind::Piece, channel: Channel::Posted, seq: limit, ..header };
    assert!(host.end.on_piece(&piece, world.now).is_err());
    piece.seq = expected;
    assert_eq!(host.end.on_piece(&piece, world.now), Ok(true));
    piece.seq = expected.wrapping_sub(1);
    assert_eq!(host.end.on_piece(&piece, world.now), Ok(false));
    assert!(host.end.flush_acks(world.now, &mut Wire::default()), "it is acknowledged again");
}

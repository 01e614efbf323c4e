//! Plays a script: two ports, every frame of theirs, and a clock that stands still between lines.
//!
//! A line is a time in microseconds, a port, and what it does or what happens to it:
//!
//! ```text
//!   opens                      asks the other one for a link
//!   restarts                   loses everything
//!   gives N, takes N, sends N  buffers, frames that its program takes, and new frames
//!   loses its mind             what it kept before its turn; it resynchronises
//!   closes                     leaves
//!   > FRAME                    sends this frame, now
//!   < FRAME                    gets this frame, the oldest of that kind that is under way
//!   = FRAME                    gets a copy of it
//!   x FRAME                    never gets it
//!   is STATE                   how its link stands
//! ```
//!
//! Every frame that is sent must have a line, and at its time. All is on the posted channel, and
//! its frames are counted from 0.
use ayre_proto::link::Repair;
use ayre_proto::link::answer::{Answer, reset_header};
use ayre_proto::link::end::{Drive, End, EndEffects, HeaderOutcome, Part};
use ayre_proto::link::frame::{Channel, Digest, Flags, Header, Kind};
use ayre_proto::link::half_open::{HalfOpenTable, OpenRequest};
use ayre_proto::link::open::{ANYBODY, By, Opener, SETUP_BYTES, SetUp, Trust};
use ayre_proto::link::race::Pace;
use ayre_proto::link::receive::Arrival;
use ayre_proto::link::token_bucket::TokenBucket;
use ayre_proto::link::{congestion, life, rtt};
use ayre_proto::refusal::Refusal;
use std::collections::VecDeque;

/// Nanoseconds.
const MICROSECOND: u64 = 1_000;

/// Round numbers: a timeout of 100 us, which doubles up to 1600, 20 us of acknowledgement delay,
/// 12.8 ms of silence and 16 of dead time. The network has room for all that a channel may have
/// under way.
const DRIVE: Drive = Drive {
    congestion: congestion::Config {
        window: congestion::Windows {
            initial: 64 * congestion::ONE,
            ..congestion::Config::RACK.window
        },
        ..congestion::Config::RACK
    },
    timeout: rtt::Bounds { floor: 100_000, initial: 100_000, ceiling: 1_600_000 },
    max_ack_delay: 20_000,
    life: life::Config { silence: 12_800_000, dead_after: 16_000_000, closes: 3 },
    ..Drive::RACK
};
const PACE: Pace = Pace { first: 100_000, most: 400_000 };
const PATIENCE: u64 = 2_000_000;
const GIVE_UP: u64 = 2_000_000;

/// A frame with its set-up, if it has one.
#[derive(Clone, Debug)]
struct Frame {
    at: u64,
    from: usize,
    header: Header,
    set_up: Option<SetUp>,
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

struct Port {
    number: usize,
    incarnation: u64,
    opener: Option<Opener>,
    door: HalfOpenTable,
    ration: TokenBucket,
    end: Option<End>,
    paths: u8,
    repair: Repair,
}

impl Port {
    fn new(number: usize, incarnation: u64, (repair, paths): (Repair, u8)) -> Self {
        let (door, ration) =
            (HalfOpenTable::new(PATIENCE, TokenBucket::rack(0)), TokenBucket::rack(0));
        Self { number, incarnation, opener: None, door, ration, end: None, paths, repair }
    }

    fn set_up(&self, now: u64) -> SetUp {
        let own = self.number as u64 + 1;
        SetUp {
            nonce: own << 32 | now | 1,
            answers: 0,
            incarnation: own << 32 | self.incarnation,
            token: own << 48 | now | 1,
            generation: 1 + self.incarnation as u32,
            index: 10 * own as u32 + self.incarnation as u32,
            first: [0; 3],
            frame_max: 1472,
            number: self.number as u16,
            destination: ANYBODY,
            paths: self.paths,
            repair: self.repair,
            owner: [0; 7],
            cookie: 0,
        }
    }

    fn end(&mut self) -> &mut End {
        self.end.as_mut().expect("a link")
    }

    fn deadline(&self, now: u64) -> u64 {
        let end = self.end.as_ref().map_or(u64::MAX, |end| end.deadline(now));
        let opener = self.opener.as_ref().map_or(u64::MAX, Opener::deadline);
        end.min(opener).min(self.door.deadline())
    }
}

/// A play under way.
pub(crate) struct Play {
    now: u64,
    ports: [Port; 2],
    /// Sent, and without a line so far.
    told: VecDeque<Frame>,
    under_way: Vec<Frame>,
}

impl Play {
    /// Two ports that know nothing of each other.
    pub(crate) fn new(repair: Repair, paths: u8) -> Self {
        let ports = [0, 1].map(|number| Port::new(number, 0, (repair, paths)));
        Self { now: 0, ports, told: VecDeque::new(), under_way: vec![] }
    }

    /// Port a has opened a link to port b, in no time; neither has told of any buffers.
    pub(crate) fn opened(paths: u8) -> Self {
        let mut play = Self::new(Repair::Selective, paths);
        play.lines(
            "0 a opens
             0 a > open
             0 b < open
             0 b > accept
             0 a < accept
             0 a > probe
             0 b < probe
             0 b > room 0 to 0
             0 a < room 0 to 0",
        );
        play
    }

    /// Each also has told of all buffers, by its last path.
    pub(crate) fn linked_by(paths: u8) -> Self {
        let mut play = Self::opened(paths);
        // It was a's turn to take the second path: it has probed, and b has answered there.
        let second = if paths > 1 { " by 1" } else { "" };
        for (from, to, path) in [("a", "b", second), ("b", "a", "")] {
            play.lines(&format!(
                "0 {from} gives 128
                 0 {from} > room 0 to 128{path}
                 0 {to} < room 0 to 128{path}"
            ));
        }
        play
    }

    /// A play of two linked nodes over one path.
    pub(crate) fn linked() -> Self {
        Self::linked_by(1)
    }

    /// Plays a script to its end, where no frame may be left without a line.
    pub(crate) fn run(mut self, script: &str) {
        self.lines(script);
    }

    fn lines(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (time, line_) = line.split_once(' ').expect("a time");
            let (port, what) = line_.trim().split_once(' ').expect("a port");
            let time: u64 = time.parse().unwrap_or_else(|_| panic!("{line}: no time"));
            let port = ["a", "b"].iter().position(|name| *name == port);
            let port = port.unwrap_or_else(|| panic!("{line}: no port"));
            self.wait(time * MICROSECOND, what.trim().starts_with('>'), line);
            self.line(port, what.trim(), line);
            self.settle();
        }
        assert!(self.told.is_empty(), "no line for {:?}", self.untold());
    }

    fn untold(&self) -> Vec<String> {
        let say = |frame: &Frame| {
            let at = frame.at as f64 / MICROSECOND as f64;
            format!("{at} {} > {}", ["a", "b"][frame.from], describe(&frame.header))
        };
        self.told.iter().map(say).collect()
    }

    /// Up to a time, which is that of the next line.
    fn wait(&mut self, until: u64, is_sent: bool, line: &str) {
        assert!(until >= self.now, "{line}: time goes on");
        loop {
            let next = self.ports.each_ref().map(|port| port.deadline(self.now));
            let next = next.into_iter().min().unwrap_or(u64::MAX);
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = until;
        assert!(is_sent || self.told.is_empty(), "{line}: before it {:?}", self.untold());
    }

    /// Both ports do what is due now.
    fn settle(&mut self) {
        for number in [0, 1] {
            let now = self.now;
            let port = &mut self.ports[number];
            while port.door.expire(now).is_some() {}
            let payload = Digest { len: SETUP_BYTES as u16, crc: 0 };
            if let Some(opener) = &mut port.opener
                && let Some(header) = opener.on_time(now, payload)
            {
                let set_up = Some(*opener.ours());
                self.told.push_back(Frame { at: now, from: number, header, set_up });
            }
            if let Some(end) = &mut self.ports[number].end
                && end.deadline(now) <= now
            {
                let mut wire = Wire::default();
                end.on_time(now, &mut wire);
                self.tell(number, wire);
            }
        }
    }

    fn tell(&mut self, from: usize, wire: Wire) {
        let frame = |header| Frame { at: self.now, from, header, set_up: None };
        self.told.extend(wire.0.into_iter().map(frame));
    }

    fn line(&mut self, port: usize, what: &str, line: &str) {
        let now = self.now;
        match what.split_once(' ').unwrap_or((what, "")) {
            (">", frame) => self.sent(port, frame, line),
            ("<", frame) => {
                let frame = self.find(port, frame, line);
                self.arrive(port, &frame);
            }
            ("=", frame) => {
                let frame = self.find(port, frame, line);
                self.under_way.push(frame.clone());
                self.arrive(port, &frame);
            }
            ("x", frame) => drop(self.find(port, frame, line)),
            ("opens", "") => {
                let ours = self.ports[port].set_up(now);
                let opener = Opener::new(ours, PACE, now + GIVE_UP, now);
                self.ports[port].opener = Some(opener);
            }
            ("restarts", "") => {
                let Port { incarnation, repair, paths, .. } = self.ports[port];
                self.ports[port] = Port::new(port, incarnation + 1, (repair, paths));
            }
            ("gives", count) => self.ports[port].end().give(Channel::Posted, number(count), now),
            ("takes", count) => self.ports[port].end().take(Channel::Posted, number(count)),
            ("sends", count) => self.send(port, number(count)),
            ("closes", "") => self.ports[port].end().close(),
            ("loses", "its mind") => {
                let mut wire = Wire::default();
                self.ports[port].end().resync(now, &mut wire);
                self.tell(port, wire);
            }
            ("is", state) => assert_eq!(self.state(port), state, "{line}"),
            _ => panic!("{line}: no port does that"),
        }
    }

    fn state(&self, port: usize) -> String {
        let Port { end, opener, .. } = &self.ports[port];
        match (end, opener) {
            (Some(end), _) => format!("{:?}", end.state()),
            (None, Some(opener)) => format!("{:?}", opener.state()),
            (None, None) => "alone".to_owned(),
        }
    }

    /// As many new frames as it is allowed; it asks once more, and so for room.
    fn send(&mut self, port: usize, count: u32) {
        let mut wire = Wire::default();
        let (now, end) = (self.now, self.ports[port].end());
        for _ in 0..count {
            if end.may_send(Channel::Posted, now) {
                let digest = (Digest { len: 8, crc: 0 }, Flags::empty());
                end.send(Channel::Posted, digest, now, &mut wire);
            }
        }
        self.tell(port, wire);
    }

    fn sent(&mut self, port: usize, frame: &str, line: &str) {
        let place = self.told.iter().position(|told| told.from == port);
        let Some(told) = place.and_then(|place| self.told.remove(place)) else {
            panic!("{line}: it sends nothing");
        };
        let said = (told.at, describe(&told.header));
        assert_eq!(said, (self.now, frame.to_owned()), "{line}");
        self.under_way.push(told);
    }

    fn find(&mut self, port: usize, frame: &str, line: &str) -> Frame {
        let is_meant = |under: &Frame| under.from != port && describe(&under.header) == frame;
        let place = self.under_way.iter().position(is_meant);
        self.under_way.remove(place.unwrap_or_else(|| panic!("{line}: it is not under way")))
    }

    fn arrive(&mut self, number: usize, frame: &Frame) {
        let (now, header) = (self.now, &frame.header);
        let port = &mut self.ports[number];
        match header.kind {
            Kind::Open => self.on_open(number, frame),
            Kind::Accept => {
                let Some(opener) = &mut port.opener else { return };
                let accept = frame.set_up.expect("an accept has one");
                if let Ok(Some((agreed, _))) = opener.on_accept(&accept) {
                    port.end = Some(End::new(agreed, &DRIVE, now));
                }
            }
            Kind::Reset => {
                if let Some(opener) = port.opener.as_mut().filter(|own| own.is_answered_by(header))
                {
                    let by = By { path: 0, way: 0 };
                    opener.on_answer(
                        (Answer::Refused(Refusal::Unknown), by),
                        Trust::Anybody,
                        1,
                        now,
                    );
                }
                port.end.as_mut().map(|end| end.on_reset(header, now));
            }
            _ => self.on_frame(number, header),
        }
    }

    fn on_open(&mut self, number: usize, frame: &Frame) {
        let (now, port) = (self.now, &mut self.ports[number]);
        let open = frame.set_up.expect("an open has one");
        let place = port.door.find(&open).unwrap_or_else(|| {
            let ours = port.set_up(now);
            let asker = OpenRequest { opener: 0, mark: open.nonce, host: 0, is_proved: true };
            port.door.admit(asker, &open, ours, now).expect("a good open").0
        });
        let accept = *port.door.get(place).expect("it is there").ours();
        let payload = Digest { len: SETUP_BYTES as u16, crc: 0 };
        let header = accept.accept_header(&open, frame.header.path, now, payload);
        self.told.push_back(Frame { at: now, from: number, header, set_up: Some(accept) });
    }

    fn on_frame(&mut self, number: usize, header: &Header) {
        let (now, port) = (self.now, &mut self.ports[number]);
        if let Some((_, entry)) = port.door.confirm(header, now) {
            port.end = Some(End::new(entry.agreed().0, &DRIVE, now));
        }
        let mut wire = Wire::default();
        let heard = match &mut port.end {
            Some(end) => end.on_header(header, now, &mut wire).expect("an honest peer"),
            None => HeaderOutcome::Foreign,
        };
        match heard {
            HeaderOutcome::Payload => {
                let arrival: Arrival = port.end().on_payload(header, now).expect("credit");
                assert_ne!(arrival, Arrival::Dropped, "scripts are of selective repair");
            }
            HeaderOutcome::Foreign if port.ration.take(now) => {
                wire.0.extend(reset_header(header, now))
            }
            _ => {}
        }
        self.tell(number, wire);
    }
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

/// A frame in a few words.
fn describe(header: &Header) -> String {
    let flags = header.flags;
    let answer = if flags.contains(Flags::ANSWER) { " answer" } else { "" };
    let mut text = match header.kind {
        Kind::Data if header.payload.len > 0 => format!("data {}", header.seq),
        Kind::Data => {
            let sack = match header.sack.arrived {
                0 => String::new(),
                arrived => format!(" and {}", named(header.ack[0], arrived)),
            };
            let nack = if flags.contains(Flags::NACK) { " misses it" } else { "" };
            format!("room {}{sack} to {}{nack}", header.ack[0], header.limit[0])
        }
        Kind::Resync => format!("resync {}{answer}", header.seq),
        Kind::Close => format!("close{answer}"),
        kind => format!("{kind:?}").to_lowercase(),
    };
    if header.path > 0 {
        text = format!("{text} by {}", header.path);
    }
    text
}

/// Frames that a sack names.
fn named(ack: u32, arrived: u128) -> String {
    let named = (0..128).filter(|bit| arrived >> bit & 1 == 1);
    named.map(|bit| (ack + 1 + bit).to_string()).collect::<Vec<_>>().join(",")
}

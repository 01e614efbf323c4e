//! The network of the simulated world: what it does to datagrams, and who else sends on it.
use crate::dice::Dice;
use ayre_netsim::{Item, Plan};
use ayre_proto::link::Repair;
use ayre_proto::link::frame::{Digest, Flags, HEADER_BYTES, Header, Kind, PATHS_MAX};
use ayre_proto::link::open::SetUp;
use crc::{CRC_32_ISCSI, Crc, Table};

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// Most nodes of a world.
pub(crate) const NODES: usize = 6;
/// Nanoseconds.
pub(crate) const MICROSECOND: u64 = 1_000;
/// Nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Longer than any datagram is on its way.
pub(crate) const LATEST: u64 = 21 * MILLISECOND;
/// Datagrams that the hostile one remembers.
const REMEMBERED: usize = 32;

pub(crate) fn crc(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// A datagram.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    /// Where it says that it comes from.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) path: u8,
    pub(crate) bytes: Vec<u8>,
    /// Somebody has made it up who knows none of the secrets of those two.
    pub(crate) is_made_up: bool,
}

impl Datagram {
    /// A frame as it travels.
    pub(crate) fn new((from, to): (usize, usize), header: &Header, payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend(header.encode(crc));
        bytes.extend(payload);
        Self { from, to, path: header.path, bytes, is_made_up: false }
    }
}

impl Item for Datagram {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn flip(&mut self, bit: u64) {
        self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
    }
}

/// The faults of datagrams, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) repeat: u64,
    pub(crate) damage: u64,
    /// Datagrams that take far longer than those behind them.
    pub(crate) late: u64,
    /// Datagrams that somebody else has sent, for each hundred that are true.
    pub(crate) hostile: u64,
}

impl Faults {
    fn plan(&self) -> Plan {
        let [loss, duplicate, corrupt, late] =
            [self.loss, self.repeat, self.damage, self.late].map(|percent| percent as f64 / 100.0);
        Plan { loss, duplicate, corrupt, late: (late, LATEST - MILLISECOND), ..Plan::NONE }
    }
}

/// The network, and the hostile one who listens and sends on it.
#[derive(Debug)]
pub(crate) struct Network {
    dice: Dice,
    pub(crate) faults: Faults,
    /// By sender and receiver, the paths that carry nothing, a bit for each.
    pub(crate) cut: [[u8; NODES]; NODES],
    nodes: usize,
    /// By path.
    paths: ayre_netsim::Network<Datagram>,
    /// Datagrams that have been on the way.
    pub(crate) sent: u64,
    remembered: Vec<Datagram>,
    /// Datagrams of the hostile one.
    pub(crate) forged: u64,
}

impl Network {
    pub(crate) fn new(seed: u64, nodes: usize, faults: Faults) -> Self {
        let mut dice = Dice(seed);
        let paths = ayre_netsim::Network::new([0; PATHS_MAX as usize].map(|_| {
            let delay = 5 * MICROSECOND + dice.below(20_000);
            let (jitter, seed) = (dice.below(20_000), dice.word());
            Plan { delay, jitter, seed, ..faults.plan() }
        }));
        Self {
            dice,
            faults,
            cut: [[0; NODES]; NODES],
            nodes,
            paths,
            sent: 0,
            remembered: vec![],
            forged: 0,
        }
    }

    /// The faults stop.
    pub(crate) fn calm_down(&mut self) {
        self.faults = Faults::default();
        self.paths.change(|plan| {
            let Plan { delay, jitter, .. } = *plan;
            *plan = Plan { delay, jitter, ..Plan::NONE };
        });
    }

    pub(crate) fn send(&mut self, datagram: Datagram, now: u64) {
        let hostile = self.faults.hostile;
        self.remember(&datagram);
        if self.dice.percent(hostile) {
            self.forge(now);
        }
        // An accept is the moment for whoever would have a link of it.
        if hostile > 0 && datagram.bytes[0] >> 4 == Kind::Accept as u8 && self.dice.percent(20) {
            let mut datagram = datagram.clone();
            self.make_up(&mut datagram);
            self.forged += 1;
            self.launch(datagram, now);
        }
        let is_cut = self.cut[datagram.from][datagram.to] >> datagram.path & 1 == 1;
        if !is_cut {
            self.sent += 1;
            self.paths.ways[usize::from(datagram.path)].send(datagram, now);
        }
    }

    /// When the next datagram arrives.
    pub(crate) fn next(&self) -> u64 {
        self.paths.due().unwrap_or(u64::MAX)
    }

    /// A datagram that has arrived.
    pub(crate) fn arrived(&mut self, now: u64) -> Option<Datagram> {
        self.paths.take(now)
    }

    /// Datagrams of an attacker are not lost.
    fn launch(&mut self, datagram: Datagram, now: u64) {
        self.sent += 1;
        self.paths.ways[usize::from(datagram.path)].forward(datagram, now);
    }

    fn remember(&mut self, datagram: &Datagram) {
        if self.faults.hostile == 0 {
            return;
        }
        if self.remembered.len() < REMEMBERED {
            self.remembered.push(datagram.clone());
        } else if self.dice.percent(10) {
            let place = self.dice.below(REMEMBERED as u64) as usize;
            self.remembered[place] = datagram.clone();
        }
    }

    /// Sends something that no node has sent now: a datagram of before, or one that is made up by
    /// somebody who does not know the token.
    fn forge(&mut self, now: u64) {
        let place = self.dice.below(self.remembered.len() as u64) as usize;
        let mut datagram = self.remembered[place].clone();
        match self.dice.below(6) {
            // As it was, to whom it was sent or to somebody else.
            0 | 1 => {}
            2 => datagram.to = self.dice.below(self.nodes as u64) as usize,
            3 => {
                let len = self.dice.below(datagram.bytes.len() as u64 + 1);
                datagram.bytes.truncate(len as usize);
            }
            4 => {
                let len = datagram.bytes.len() + 1 + self.dice.below(80) as usize;
                datagram.bytes.resize(len, self.dice.word() as u8);
            }
            _ => self.make_up(&mut datagram),
        }
        if datagram.to != datagram.from {
            self.forged += 1;
            self.launch(datagram, now);
        }
    }

    /// A good frame with another token, and perhaps of another kind and generation. Or the
    /// confirmation of a half-open link, but for its token; an accept of no open; an open in
    /// somebody's name.
    fn make_up(&mut self, datagram: &mut Datagram) {
        let Ok(header) = Header::parse(&datagram.bytes, crc) else { return };
        let payload = datagram.bytes[HEADER_BYTES..].to_vec();
        let Datagram { from, to, .. } = *datagram;
        let accept = (header.kind == Kind::Accept).then(|| SetUp::parse(&payload).ok()).flatten();
        let token = self.dice.word();
        *datagram = match (self.dice.below(3), accept) {
            (0, Some(accept)) => {
                let header = Header { kind: Kind::Probe, to: accept.index, token, ..header };
                Datagram::new((to, from), &header, &[])
            }
            (1, Some(accept)) => {
                let payload = SetUp { answers: token, ..accept }.encode();
                let digest = Digest::of(&payload, crc);
                Datagram::new((from, to), &Header { payload: digest, ..header }, &payload)
            }
            (2, _) => self.strange_open((from, to)),
            _ => Datagram::new((from, to), &self.strange(header), &payload),
        };
        // Who opens in another's name has a nonce and a token of his own.
        datagram.is_made_up = true;
    }

    fn strange(&mut self, header: Header) -> Header {
        let kinds = [Kind::Data, Kind::Probe, Kind::Reset, Kind::Close, Kind::Resync, Kind::Accept];
        Header {
            kind: kinds[self.dice.below(kinds.len() as u64) as usize],
            token: self.dice.word(),
            generation: header.generation.wrapping_sub(self.dice.below(3) as u32),
            packet: header.packet + self.dice.below(300),
            flags: Flags::from_bits_truncate(self.dice.word() as u8),
            ..header
        }
    }

    fn strange_open(&mut self, (from, to): (usize, usize)) -> Datagram {
        let dice = &mut self.dice;
        let open = SetUp {
            nonce: dice.word() | 1,
            answers: 0,
            incarnation: dice.word() | 1,
            token: dice.word() | 1,
            generation: 1 + dice.below(9) as u32,
            index: dice.word() as u32,
            first: [0; 3].map(|_| dice.word() as u32),
            frame_max: 1472,
            number: from as u16,
            destination: to as u16,
            paths: 1 + dice.below(4) as u8,
            repair: Repair::Selective,
            owner: [0; 7],
            cookie: 0,
        };
        let payload = open.encode();
        let header = open.open_header(1, 0, Digest::of(&payload, crc));
        Datagram::new((from, to), &header, &payload)
    }
}

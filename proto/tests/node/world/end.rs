//! One end of a connection: a linked peer, the lanes of its port, and what the network is to it.
use crate::pair::port::{Port, Shared};
use crate::plain_memory::{Heap, crc32c, frames};
use crate::port::PlainPort;
use ayre_netsim::{Item, Network};
use ayre_proto::command::Words;
use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header, Kind};
use ayre_proto::link::looks::Looks;
use ayre_proto::node::carrier::Perform;
use ayre_proto::node::carrier::frames::{Frame, Frames};
use ayre_proto::node::linked::{self, Around, Linked, Transmit};
use ayre_proto::node::target::{Exchange, Target};
use ayre_proto::xlate::Table;

/// Nanoseconds.
pub(crate) const MICROSECOND: u64 = 1_000;
/// Nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Ways from each node to each other one.
pub(crate) const PATHS: usize = 2;
/// Bytes of the longest frame, and of one that every path takes.
pub(crate) const LONGEST: usize = 1400;
pub(crate) const LEAST: usize = 512;
/// Bytes of the longest payload.
const ROOM: usize = (LONGEST - HEADER_BYTES) & !7;
/// Buffers of each channel.
const BUFFERS: u32 = 32;
/// Lines of the lanes: of messages, and of answers.
pub(crate) const LINES: [u32; 2] = [64, 64];

/// A frame on its way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) connection: usize,
    /// The end that it goes to.
    pub(crate) to: usize,
    bytes: Vec<u8>,
}

impl Item for Datagram {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn flip(&mut self, bit: u64) {
        self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
    }
}

/// The network, by path.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) ways: Network<Datagram>,
    /// Bytes of the longest datagram that a way takes: what is longer is lost.
    pub(crate) longest: [usize; PATHS],
    /// Frames that went in pieces.
    pub(crate) pieces: u64,
}

/// The network as one end sees it.
struct Sending<'a> {
    name: (usize, usize),
    now: u64,
    network: &'a mut Net,
}

impl Sending<'_> {
    fn send(&mut self, header: &Header, payload: &[u8]) {
        let (connection, own) = self.name;
        let bytes = [&header.encode(crc32c)[..], payload].concat();
        let (path, net) = (usize::from(header.path), &mut *self.network);
        if bytes.len() <= net.longest[path] {
            let datagram = Datagram { connection, to: 1 - own, bytes };
            net.ways.ways[path].send(datagram, self.now);
        }
    }
}

impl Transmit<Heap> for Sending<'_> {
    fn transmit(&mut self, header: &Header, frame: Option<&mut Frame<Heap>>) {
        self.send(header, frame.as_ref().map_or(&[], |frame| frame.payload()));
    }

    fn transmit_part(&mut self, header: &Header, payload: &[u8]) {
        self.network.pieces += u64::from(header.kind == Kind::Piece);
        self.send(header, payload);
    }
}

impl linked::Network<Heap> for Sending<'_> {
    fn renew(&mut self, _: Channel, left: u32, _: u64) -> u32 {
        BUFFERS - left
    }

    fn on_length(&mut self, frames: &Frames<Heap>, _: bool) {
        assert!(frames.whole() <= frames.longest(), "a frame goes whole or in pieces");
    }
}

/// What performs the peer's commands at a port.
struct Serving<'a> {
    target: &'a mut Target,
    table: &'a Table,
    shared: &'a mut Shared,
}

impl Perform for Serving<'_> {
    fn perform(
        &mut self,
        command: (&Words, u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        self.target.perform(command, self.table, self.shared, exchange)
    }

    fn place(&mut self, command: (&Words, &[u8])) -> bool {
        self.target.place(command, self.table, self.shared)
    }
}

/// One end.
#[derive(Debug)]
pub(crate) struct Half {
    /// The connection, and which of its ends this is.
    name: (usize, usize),
    pub(crate) lanes: PlainPort,
    pub(crate) linked: Linked<Heap>,
}

fn agreement(connection: usize, own: usize) -> Agreement {
    let place = 2 * connection as u32;
    Agreement {
        to: place + 1 - own as u32,
        own: place + own as u32,
        incarnation: 7,
        generation: 5,
        token: [11, 22][own] + u64::from(place),
        own_token: [22, 11][own] + u64::from(place),
        first: [[0, 7, u32::MAX]; 2],
        repair: Repair::Selective,
        paths: PATHS as u8,
    }
}

/// Bytes of the longest record.
pub(crate) fn longest() -> usize {
    frames(ROOM).longest()
}

impl Half {
    pub(crate) fn new(connection: usize, own: usize) -> Self {
        let mut end = End::new(agreement(connection, own), &Drive::RACK, 0);
        end.limit_lengths(LEAST as u16, LONGEST as u16);
        for channel in Channel::ALL {
            end.give(channel, BUFFERS, 0);
        }
        let lanes = PlainPort::new([LINES[0], LINES[1], 0]);
        Self { name: (connection, own), lanes, linked: Linked::new(end, frames(ROOM)) }
    }

    /// A step with everything around it. What it has come to can be seen in the lanes.
    fn with<R>(
        &mut self,
        port: &mut Port,
        (now, network): (u64, &mut Net),
        step: impl FnOnce(
            &mut Linked<Heap>,
            &mut Around<'_, PlainPort, Serving<'_>, Sending<'_>>,
        ) -> Result<R, Malformed>,
    ) -> R {
        let Port { target, table, shared, .. } = port;
        let network = &mut Sending { name: self.name, now, network };
        let target = &mut Serving { target, table, shared };
        let mut around = Around { lanes: &mut self.lanes, target, network };
        let done = step(&mut self.linked, &mut around).expect("an honest peer is never malformed");
        if port.target.has_spared() {
            port.shared.taken += port.target.take_spared();
        }
        (self.lanes.done, self.lanes.noted) = (port.target.executed(), port.shared.taken);
        done
    }

    /// The port is looked after: what it has published goes, and what is due happens.
    pub(crate) fn serve(&mut self, port: &mut Port, now: u64, network: &mut Net) {
        self.with(port, (now, network), |linked, around| linked.serve(now, around));
    }

    pub(crate) fn on_datagram(
        &mut self,
        port: &mut Port,
        datagram: &Datagram,
        (now, network): (u64, &mut Net),
    ) {
        // Damaged on the way.
        let Ok(header) = Header::parse(&datagram.bytes, crc32c) else { return };
        let payload = &datagram.bytes[HEADER_BYTES..];
        self.with(port, (now, network), |linked, around| {
            let looks = Looks::all_the_time(now);
            let heard = linked.on_header(&header, &looks, around.network)?;
            linked.on_payload(heard, (&header, payload), now, around)
        });
    }

    pub(crate) fn resync(&mut self, now: u64, network: &mut Net) {
        let network = &mut Sending { name: self.name, now, network };
        self.linked.resync(now, network);
    }

    /// The program waits for what it has posted.
    pub(crate) fn ask(&mut self) {
        self.linked.carrier().ask();
    }
}

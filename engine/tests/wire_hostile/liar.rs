//! A peer that has opened a plain link as it should, and then says whatever the test wants.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use crate::common::net::{ANY, LONG, config};
use crate::world::{receive, socket};
use ayre::{NetOptions, PeerId, Port};
use ayre_proto::link::Repair;
use ayre_proto::link::end::Agreement;
use ayre_proto::link::frame::{CHANNELS, Channel, Digest, Flags, Header, Kind, Packer};
use ayre_proto::link::frame::{HEADER_BYTES, RecordKind, Sack};
use ayre_proto::link::open::{Opener, SetUp};
use ayre_proto::link::race::Pace;
use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::Duration;

/// CRC-32C, bit by bit.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let fold = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    };
    !bytes.iter().fold(!0, fold)
}

/// A record: what it is, its tag, its bytes.
pub(crate) type Told = (RecordKind, u32, Vec<u8>);

/// Bytes of words.
pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A control record.
pub(crate) fn control(about: u32, words: &[u64]) -> Told {
    (RecordKind::Control, about, bytes_of(words))
}

/// The payload of records that are what their kind allows.
pub(crate) fn payload(records: &[Told]) -> Vec<u8> {
    let mut buffer = vec![0; 60_000];
    let mut len = 0;
    for (kind, tag, bytes) in records {
        let mut packer = Packer::behind(&mut buffer, len);
        packer.push((*kind, *tag), [], bytes).expect("room in the frame");
        len = packer.payload().len();
    }
    buffer.truncate(len);
    buffer
}

/// The words of correct ports to each other in a set-up, as one of them has them.
fn owner_words() -> [u64; 7] {
    static WORDS: OnceLock<[u64; 7]> = OnceLock::new();
    *WORDS.get_or_init(|| {
        let nobody = socket();
        let at = nobody.local_addr().expect("an address");
        let mut port =
            Port::open(config(9).setup_timeout(Duration::from_millis(50))).expect("port");
        port.open_net(&NetOptions::plain().at(ANY)).expect("an address");
        port.connect_net(&[at]).expect_err("nobody answers");
        let (open, _) = receive(&nobody).expect("an open");
        SetUp::parse(&open[HEADER_BYTES..]).expect("a set-up").owner
    })
}

/// A set-up of a peer of this number, for port 0.
pub(crate) fn set_up(number: u16, nonce: u64) -> SetUp {
    SetUp {
        nonce,
        answers: 0,
        incarnation: nonce ^ u64::MAX,
        token: nonce.rotate_left(32) | 1,
        generation: 1,
        index: 77,
        first: [5, u32::MAX, 1 << 31],
        frame_max: 9000,
        number,
        destination: 0,
        paths: 1,
        repair: Repair::Selective,
        owner: owner_words(),
        cookie: 0,
    }
}

/// The frame that asks for this link.
pub(crate) fn open_frame(ours: &SetUp) -> Vec<u8> {
    let message = ours.encode();
    let header = ours.open_header(1, 0, Digest::of(&message, crc32c));
    [&header.encode(crc32c)[..], &message].concat()
}

/// The peer that lies.
pub(crate) struct Liar {
    socket: UdpSocket,
    victim: SocketAddr,
    /// As the other side calls this peer.
    pub(crate) peer: PeerId,
    pub(crate) agreed: Agreement,
    packet: u64,
    /// By channel: numbers of the next frames.
    pub(crate) next: [u32; CHANNELS],
}

impl Liar {
    /// Opens a link with the victim, which accepts.
    pub(crate) fn open(victim: &mut Port, at: SocketAddr, number: u16) -> Self {
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| Self::ask(at, number));
            let peer = victim.accept().expect("a correct opening");
            let liar = asking.join().expect("no panic");
            assert_eq!(peer, liar.peer);
            liar
        })
    }

    fn ask(victim: SocketAddr, number: u16) -> Self {
        let socket = socket();
        socket.set_nonblocking(false).expect("a socket");
        let ours = set_up(number, 0x1000 + u64::from(number));
        let give_up = LONG.as_nanos() as u64;
        let mut opener = Opener::new(ours, Pace::RACK, give_up, 0);
        // The victim may not accept yet, and then says nothing.
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket");
        let mut bytes = [0; 1 << 12];
        let theirs = loop {
            socket.send_to(&open_frame(&ours), victim).expect("a datagram");
            let Ok((len, _)) = socket.recv_from(&mut bytes) else { continue };
            let header = Header::parse(&bytes[..len], crc32c).expect("a frame");
            if header.kind == Kind::Accept {
                break SetUp::parse(&bytes[HEADER_BYTES..len]).expect("a set-up");
            }
        };
        let (agreed, _) = opener.on_accept(&theirs).expect("an answer").expect("the first one");
        socket.set_nonblocking(true).expect("a socket");
        let (peer, next) = (PeerId(number), agreed.first[0]);
        let mut liar = Self { socket, victim, peer, agreed, packet: 0, next };
        let confirmation = Header { kind: Kind::Probe, ..liar.header() };
        liar.send(&confirmation, &[]);
        liar
    }

    /// A header that is true: nothing has come, and 64 frames of each channel may.
    pub(crate) fn header(&mut self) -> Header {
        self.packet += 1;
        let Agreement { to, generation, token, first, .. } = self.agreed;
        Header {
            kind: Kind::Data,
            channel: Channel::Posted,
            flags: Flags::empty(),
            path: 0,
            to,
            generation,
            token,
            packet: self.packet,
            seq: 0,
            stamp: 0,
            ack: first[1],
            limit: first[1].map(|first| first.wrapping_add(64)),
            sack: Sack { channel: Channel::Posted, arrived: 0 },
            echo: None,
            payload: Digest { len: 0, crc: 0 },
        }
    }

    /// Sends a frame whose length and CRCs are right.
    pub(crate) fn send(&self, header: &Header, payload: &[u8]) {
        let header = Header { payload: Digest::of(payload, crc32c), ..*header };
        self.send_raw(&[&header.encode(crc32c)[..], payload].concat());
    }

    pub(crate) fn send_raw(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.victim).expect("a datagram");
    }

    /// Sends a payload as the next frame of a channel.
    pub(crate) fn send_next(&mut self, channel: Channel, payload: &[u8]) {
        let seq = self.next[channel.index()];
        self.next[channel.index()] = seq.wrapping_add(1);
        let header = self.header();
        self.send(&Header { channel, seq, ..header }, payload);
    }

    /// Sends records as the next frame of the posted channel.
    pub(crate) fn tell(&mut self, records: &[Told]) {
        self.send_next(Channel::Posted, &payload(records));
    }

    /// Offers a region that is not there.
    pub(crate) fn offer_region(&mut self, name: u64) {
        let slot = 3 | u64::from(ayre::Rights::all().bits()) << 16;
        self.tell(&[control(3, &[name, slot, 1, 0, 4096, 4096, 0])]);
    }

    /// The headers of what the victim has sent.
    pub(crate) fn heard(&self) -> Vec<Header> {
        let frames = std::iter::from_fn(|| receive(&self.socket));
        frames.map(|(bytes, _)| Header::parse(&bytes, crc32c).expect("a frame")).collect()
    }
}

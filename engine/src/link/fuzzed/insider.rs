//! Somebody who holds the key, and has opened a link as he should.
use super::stage::{ATTACKER, Stage, VICTIM};
use super::{NOTHING, Script, any_set_up};
use crate::link::handshake;
use crate::link::seal::{Keys, PREFIX_BYTES, TAG_BYTES};
use crate::net::crc::crc32c;
use ayre_proto::link::end::Agreement;
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, Kind};
use ayre_proto::link::open::{Opener, SetUp};
use ayre_proto::link::race::Pace;

/// Frames of each channel for which the victim gets credit.
const CREDIT: u32 = 64;

/// A peer that lies.
pub(super) struct Insider {
    agreed: Agreement,
    keys: Option<Keys>,
    /// Of the newest frame that he has sent.
    packet: u64,
}

impl Insider {
    /// Opens a link with the victim.
    pub(super) fn open(stage: &mut Stage) -> Self {
        let ours = any_set_up(0, &mut Script::new(&[2, 4]));
        let ours = SetUp { destination: VICTIM as u16, ..ours };
        let mut opener = Opener::new(ours, Pace::RACK, u64::MAX, stage.now);
        let bytes = ours.encode();
        let (mut handshake, message) = match stage.is_sealed {
            true => {
                let key = handshake::JobKey::from_hex(stage.key()).expect("64 digits");
                let (handshake, message) = handshake::Opening::begin(&key.into(), &bytes);
                (Some(handshake), message)
            }
            false => (None, bytes.to_vec()),
        };
        let header = ours.open_header(1, stage.now, Digest::of(&message, crc32c));
        stage.attack(VICTIM, false, [&header.encode(crc32c)[..], &message].concat());
        stage.pass(1_000_000);
        let accept = stage.seen.iter().rev().find_map(|(from, bytes)| {
            let header = Header::parse(bytes, crc32c).ok()?;
            (*from == VICTIM && header.kind == Kind::Accept).then(|| bytes[HEADER_BYTES..].to_vec())
        });
        let accept = accept.expect("the victim accepts");
        let (theirs, keys) = match &mut handshake {
            Some(handshake) => {
                let (bytes, keys) = handshake.finish(&accept).expect("it holds the key");
                (bytes, Some(keys))
            }
            None => (accept, None),
        };
        let theirs = SetUp::parse(&theirs).expect("a set-up");
        let (agreed, _) = opener.on_accept(&theirs).expect("an answer").expect("the first one");
        let mut insider = Self { agreed, keys, packet: 0 };
        let probe = Header { kind: Kind::Probe, ..insider.header() };
        let probe = insider.sealed(&probe, probe.encode(crc32c).to_vec());
        stage.attack(VICTIM, false, probe);
        stage.pass(1_000_000);
        stage.take_arrived(VICTIM, ATTACKER);
        insider
    }

    /// A header that is true: nothing has come, and some frames may.
    pub(super) fn header(&self) -> Header {
        let Agreement { to, generation, token, first, .. } = self.agreed;
        Header {
            to,
            generation,
            token,
            packet: self.packet + 1,
            seq: first[0][0],
            ack: first[1],
            limit: first[1].map(|first| first.wrapping_add(CREDIT)),
            ..NOTHING
        }
    }

    /// A frame as it travels. He keeps to his own keys: a packet number that has come before, or
    /// one of a far epoch, goes as it is.
    pub(super) fn sealed(&mut self, header: &Header, frame: Vec<u8>) -> Vec<u8> {
        let Some(keys) = &mut self.keys else {
            self.packet = self.packet.max(header.packet.min(1 << 20));
            return frame;
        };
        if header.packet <= self.packet || header.packet > 1 << 20 {
            return frame;
        }
        self.packet = header.packet;
        let mut datagram = vec![0; PREFIX_BYTES];
        datagram.extend(frame);
        datagram.extend([0; TAG_BYTES]);
        keys.seal(header.to, header.packet, &mut datagram);
        datagram
    }

    /// The header of what the victim has sent him.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<Header> {
        // What is sealed he has no need to read: it says what he knows.
        match &self.keys {
            None => Header::parse(bytes, crc32c).ok(),
            Some(_) => {
                let Agreement { own, own_token, generation, .. } = self.agreed;
                Some(Header { to: own, token: own_token, generation, ..NOTHING })
            }
        }
    }
}

//! Whole datagrams before the links of a port: what the fuzzer and the tests with random bytes run.
//!
//! Somebody sends a port what a script says. Either he stands on the path between the port and one
//! of its peers, or he is a peer himself, and lies. In every case the port goes on, and so does its
//! link with another one. Where links are sealed, and he does not hold the key, nothing that he has
//! sent, repeated or changed has any effect.
mod insider;
mod script;
mod stage;

use self::insider::Insider;
use self::script::Script;
use self::stage::{HONEST, NEIGHBOUR, OTHER_KEY, Stage, VICTIM};
use super::{handshake, opening};
use crate::mem::layout::LaneSizes;
use crate::net::crc::crc32c;
use ayre_proto::link::Repair;
use ayre_proto::link::answer::{Answer, answer_header, reset_header};
use ayre_proto::link::frame::{
    CHANNELS, Channel, Digest, Echo, Flags, HEADER_BYTES, Header, Kind, Packer, RecordKind, Sack,
};
use ayre_proto::link::open::{ANYBODY, SetUp};
use ayre_proto::link::pieces::Piece;
use ayre_proto::refusal::Refusal;

/// Datagrams that one step keeps from their way, or twice as many.
const LOST: u32 = 4;
/// Milliseconds that a script takes at most; its own link's timeout is longer.
const LONGEST: u64 = 500;
/// The bits of the mask by which a header is changed.
const FIELDS: u32 = 8;

/// Any bytes as datagrams, and any changes to those that were sent.
pub fn datagrams(bytes: &[u8]) {
    play(bytes, |attack, script| match script.byte() % 3 {
        0 => attack.raw(script),
        1 => attack.changed(script),
        _ => attack.frame(script, None),
    });
}

/// Opens, accepts and refusals, with handshakes that are right and wrong.
pub fn set_ups(bytes: &[u8]) {
    play(bytes, |attack, script| match script.byte() % 5 {
        0 => attack.changed(script),
        1 => attack.set_up(script, Kind::Accept),
        2 => attack.answer(script),
        _ => attack.set_up(script, Kind::Open),
    });
}

/// Resyncs, resets, closes and probes, as true as they can be.
pub fn endings(bytes: &[u8]) {
    play(bytes, |attack, script| {
        let kinds = [Kind::Resync, Kind::Reset, Kind::Close, Kind::Probe];
        match script.byte() % 6 {
            0 => attack.changed(script),
            1 => attack.frame(script, Some(Kind::Data)),
            which => attack.frame(script, Some(kinds[usize::from(which) - 2])),
        }
    });
}

fn play(bytes: &[u8], step: impl Fn(&mut Attack, &mut Script<'_>)) {
    let mut script = Script::new(bytes);
    let mut attack = Attack::begin(script.byte());
    let mut left = LONGEST;
    while !script.is_over() {
        match script.byte() {
            first @ 0..64 => {
                let span = u64::from(first % 16).min(left);
                left -= span;
                attack.stage.pass(span * 1_000_000);
            }
            first @ 64..80 => attack.stage.lose([1, 2].map(|bit| LOST * u32::from(first & bit))),
            80..96 => attack.stage.speak(),
            _ => step(&mut attack, &mut script),
        }
    }
    attack.end();
}

/// An attack under way.
struct Attack {
    stage: Stage,
    /// He holds the key, and is a peer of the victim's if there was time for that.
    insider: Option<Insider>,
    is_insider: bool,
}

impl Attack {
    /// The lowest bits tell whether links are sealed, whether the attacker holds the key, and
    /// whether he comes before the link that he attacks. The others tell how long that takes.
    fn begin(choices: u8) -> Self {
        let [is_sealed, is_insider, is_early] = [1, 2, 4].map(|bit| choices & bit != 0);
        let mut stage = Stage::new(is_sealed);
        let mut insider = None;
        match (is_insider, is_early) {
            (true, false) => insider = Some(Insider::open(&mut stage)),
            (false, false) => stage.join_neighbour(),
            (false, true) => {
                stage.ask_neighbour();
                stage.lose([3, 5].map(|bits| u32::from(choices >> bits & 3)));
            }
            (true, true) => {}
        }
        Self { stage, insider, is_insider }
    }

    fn end(mut self) {
        self.stage.check_honest();
        if self.stage.is_sealed && !self.is_insider {
            self.stage.check_neighbour();
        }
    }

    /// The destination of a datagram: mostly the victim, and otherwise the peer that the attacker
    /// sees.
    fn target(&self, script: &mut Script<'_>) -> usize {
        if script.byte().is_multiple_of(4) && !self.is_insider { NEIGHBOUR } else { VICTIM }
    }

    fn send(&mut self, target: usize, script: &mut Script<'_>, bytes: Vec<u8>) {
        let is_disguised = script.byte().is_multiple_of(2);
        self.stage.attack(target, is_disguised, bytes);
    }

    fn raw(&mut self, script: &mut Script<'_>) {
        let target = self.target(script);
        let len = script.half();
        let bytes = script.bytes(usize::from(len)).to_vec();
        self.send(target, script, bytes);
    }

    /// Something that was sent, with other bytes here and there, of another length, or as it is.
    fn changed(&mut self, script: &mut Script<'_>) {
        let (target, which, edits) = (self.target(script), script.byte(), script.byte());
        let seen = &self.stage.seen;
        let Some((_, bytes)) = seen.get(usize::from(which) % seen.len().max(1)) else { return };
        let mut bytes = bytes.clone();
        for _ in 0..edits % 4 {
            let (at, with) = (usize::from(script.half()), script.byte());
            let len = bytes.len();
            bytes[at % len] ^= with;
        }
        match edits >> 2 & 3 {
            1 => bytes.truncate(usize::from(script.half()) % bytes.len()),
            2 => bytes.resize(bytes.len() + usize::from(script.half()), 0),
            _ => {}
        }
        if edits & 16 != 0 {
            repair(&mut bytes);
        }
        self.send(target, script, bytes);
    }

    /// A frame that is as true as the attacker can make it, but for what the script changes.
    fn frame(&mut self, script: &mut Script<'_>, kind: Option<Kind>) {
        let target = self.target(script);
        let kind = kind.or_else(|| Kind::from_code(script.byte() % 9)).unwrap_or(Kind::Data);
        let header = altered(Header { kind, ..self.truth(target, kind) }, script);
        let payload = match script.byte() % 4 {
            0 => Vec::new(),
            1 => {
                let len = script.byte();
                script.bytes(usize::from(len)).to_vec()
            }
            2 => records(script),
            _ => vec![0; 24],
        };
        let payload = if header.kind == Kind::Piece { part_of(&payload, script) } else { payload };
        let header = Header { payload: Digest::of(&payload, crc32c), ..header };
        let frame = [&header.encode(crc32c)[..], &payload].concat();
        let datagram = match &mut self.insider {
            Some(insider) => insider.sealed(&header, frame),
            None => frame,
        };
        self.send(target, script, datagram);
    }

    /// The header of a link's next frame, as far as it can be known.
    fn truth(&mut self, target: usize, kind: Kind) -> Header {
        if kind == Kind::Reset {
            let said = self.newest(|(from, _)| *from == target);
            let reset = said.and_then(|said| reset_header(&said, self.stage.now));
            return reset.unwrap_or(NOTHING);
        }
        if let Some(insider) = &mut self.insider {
            return insider.header();
        }
        let said = self.newest(|(from, _)| *from != target).unwrap_or(NOTHING);
        Header { packet: said.packet.wrapping_add(1), ..said }
    }

    /// The header of the newest datagram that was seen and can be read.
    fn newest(&self, is_meant: impl Fn(&(usize, Vec<u8>)) -> bool) -> Option<Header> {
        let mut seen = self.stage.seen.iter().rev().filter(|seen| is_meant(seen));
        let insider = self.insider.as_ref();
        seen.find_map(|(_, bytes)| match insider {
            Some(insider) => insider.read(bytes),
            None => Header::parse(bytes, crc32c).ok(),
        })
    }

    /// A set-up in the name of the port that the script names most.
    fn set_up(&mut self, script: &mut Script<'_>, kind: Kind) {
        let target = self.target(script);
        let asked = self.newest_open();
        let answers =
            if kind == Kind::Accept { asked.as_ref().map_or(1, |(open, _)| open.token) } else { 0 };
        let ours = any_set_up(answers, script);
        let payload = self.wrapped(&ours, asked.as_ref(), (kind, script));
        let digest = Digest::of(&payload, crc32c);
        let header = match (kind, &asked) {
            (Kind::Accept, Some((open, _))) => Header { to: 0, ..*open },
            _ => ours.open_header(1, self.stage.now, digest),
        };
        let header = altered(Header { kind, payload: digest, ..header }, script);
        let frame = [&header.encode(crc32c)[..], &payload].concat();
        self.send(target, script, frame);
    }

    /// An answer to the newest open in place of an accept, with a proof if he holds the key.
    fn answer(&mut self, script: &mut Script<'_>) {
        let target = self.target(script);
        let Some((open, _)) = self.newest_open() else { return };
        let (which, word) = (script.byte(), script.word());
        let answer = match which % 3 {
            0 => Answer::Again(word),
            _ => Answer::Refused(Refusal::from_words([u64::from(which >> 4), word])),
        };
        let proof = match handshake::JobKey::from_hex(self.stage.key()) {
            Some(key) if self.is_insider => handshake::proof(&key, open.token, answer.words()),
            _ => [word; 2],
        };
        let payload = answer.encode(proof);
        let header = answer_header(&open, self.stage.now, Digest::of(&payload, crc32c));
        let Some(header) = header else { return };
        let header = if which & 4 == 0 { header } else { altered(header, script) };
        let frame = [&header.encode(crc32c)[..], &payload].concat();
        self.send(target, script, frame);
    }

    fn newest_open(&self) -> Option<(Header, Vec<u8>)> {
        self.stage.seen.iter().rev().find_map(|(_, bytes)| {
            let header = Header::parse(bytes, crc32c).ok()?;
            (header.kind == Kind::Open).then(|| (header, bytes[HEADER_BYTES..].to_vec()))
        })
    }

    /// As it would travel: in a handshake where links are sealed, with the key if he has it.
    fn wrapped(
        &self,
        ours: &SetUp,
        asked: Option<&(Header, Vec<u8>)>,
        (kind, script): (Kind, &mut Script<'_>),
    ) -> Vec<u8> {
        let len = usize::from(script.byte());
        let bytes = match script.byte() % 8 {
            0 => script.bytes(len).to_vec(),
            1 => vec![0; len],
            2 => [&ours.encode()[..], script.bytes(len)].concat(),
            _ => ours.encode().to_vec(),
        };
        if !self.stage.is_sealed || script.byte().is_multiple_of(8) {
            return bytes;
        }
        let key = if self.is_insider { self.stage.key() } else { OTHER_KEY };
        let terms = handshake::JobKey::from_hex(key).expect("64 digits").into();
        match (kind, asked) {
            (Kind::Accept, Some((_, open))) => match handshake::respond(&terms, open) {
                Ok((_, answer)) => answer.answer(&bytes).0,
                Err(_) => bytes,
            },
            _ => handshake::Opening::begin(&terms, &bytes).1,
        }
    }
}

/// A frame that says nothing.
pub(super) const NOTHING: Header = Header {
    kind: Kind::Data,
    channel: Channel::Posted,
    flags: Flags::empty(),
    path: 0,
    to: 0,
    generation: 1,
    token: 1,
    packet: 1,
    seq: 0,
    stamp: 0,
    ack: [0; CHANNELS],
    limit: [0; CHANNELS],
    sack: Sack { channel: Channel::Posted, arrived: 0 },
    echo: None,
    payload: Digest { len: 0, crc: 0 },
};

/// The header with what the script puts in its place.
fn altered(mut header: Header, script: &mut Script<'_>) -> Header {
    let which = script.byte();
    for field in (0..FIELDS).filter(|field| which >> field & 1 == 1) {
        let near = u32::from(script.byte()).wrapping_sub(64);
        match field {
            0 => header.token ^= script.word(),
            1 => header.generation = header.generation.wrapping_add(near),
            2 => header.to ^= near.wrapping_add(64),
            3 => header.packet = header.packet.wrapping_add_signed(i64::from(near as i32)),
            4 => header.seq = header.seq.wrapping_add(near),
            5 => {
                let channel = script.byte();
                header.ack[usize::from(channel % 3)] =
                    header.ack[usize::from(channel % 3)].wrapping_add(near);
                let limit = &mut header.limit[usize::from(channel / 3 % 3)];
                *limit = limit.wrapping_add(u32::from(channel >> 4));
            }
            6 => {
                let channel = Channel::ALL[usize::from(near as u8 % 3)];
                header.sack =
                    Sack { channel, arrived: u128::from(script.word()) << (script.byte() % 65) };
            }
            _ => {
                header.flags = Flags::from_bits_truncate(near as u8);
                header.channel = Channel::ALL[usize::from(script.byte() % 3)];
                header.path = script.byte() % 4;
                let (path, late) = (near as u8 % 4, near as u8);
                let echo = Echo { stamp: script.word() as u32, held: near, path, late };
                header.echo = script.byte().is_multiple_of(2).then_some(echo);
            }
        }
    }
    header
}

/// A part of a payload as a piece has it, which may be one of another payload.
fn part_of(whole: &[u8], script: &mut Script<'_>) -> Vec<u8> {
    let (first, len) = (usize::from(script.byte()), 8 * usize::from(script.byte()));
    let start = (8 * (first / 4)).min(whole.len());
    let part = &whole[start..whole.len().min(start + len)];
    let whole = match first % 4 {
        0 => Digest { len: script.word() as u16, crc: 0 },
        _ => Digest::of(whole, crc32c),
    };
    [&Piece { whole, offset: start as u16 }.encode()[..], part].concat()
}

/// Some records of lengths that their kinds have, and otherwise of any content.
fn records(script: &mut Script<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 8192];
    let mut packer = Packer::new(&mut buffer);
    for _ in 0..=script.byte() % 3 {
        let Some(kind) = RecordKind::from_code(script.byte() % 8) else { continue };
        let (tag, more) = (script.byte(), usize::from(script.byte()));
        let mut bytes = vec![0; *kind.lengths().start() + more];
        bytes.truncate(*kind.lengths().end());
        let said = script.bytes(bytes.len().min(usize::from(tag)));
        bytes[..said.len()].copy_from_slice(said);
        if packer.push((kind, u32::from(tag)), [], &bytes).is_err() {
            break;
        }
    }
    packer.payload().to_vec()
}

fn any_set_up(answers: u64, script: &mut Script<'_>) -> SetUp {
    let which = script.byte();
    let number = [NEIGHBOUR, NEIGHBOUR, HONEST, VICTIM, 7][usize::from(script.byte() % 5)];
    let word = script.word();
    let owner = match which % 4 {
        0 => [0; 7],
        1 => [word; 7],
        _ => opening::owner_words(LaneSizes::CARRIED, None),
    };
    let any = |bit: u8, otherwise: u64| if which & bit == 0 { otherwise } else { word };
    SetUp {
        nonce: any(4, u64::from(script.byte()) + 1),
        answers: if which & 8 == 0 { answers } else { word },
        incarnation: any(16, 1 << 40),
        token: any(32, u64::from(script.byte()) + 9),
        generation: 1 + u32::from(script.byte() % 4),
        index: any(64, u64::from(script.byte())) as u32,
        first: [word as u32, 0, u32::MAX],
        frame_max: any(128, 1400) as u16,
        number: number as u16,
        destination: [ANYBODY, VICTIM as u16, NEIGHBOUR as u16, 9][usize::from(which >> 1 & 3)],
        paths: 1 + script.byte() % 6,
        repair: if word.is_multiple_of(2) { Repair::Selective } else { Repair::GoBackN },
        owner,
        cookie: if which & 6 == 6 { word } else { 0 },
    }
}

/// Makes the checksums of a bare frame right again.
fn repair(bytes: &mut [u8]) {
    let Some((header, payload)) = bytes.split_at_mut_checked(HEADER_BYTES) else { return };
    header[HEADER_BYTES - 8..HEADER_BYTES - 4].copy_from_slice(&crc32c(payload).to_le_bytes());
    let crc = crc32c(&header[..HEADER_BYTES - 4]);
    header[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
}

#[cfg(test)]
mod tests;

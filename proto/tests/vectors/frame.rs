//! Vectors of frames: headers, CRCs and records.
use super::names::{CHANNELS, FRAME_KINDS, RECORD_KINDS, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::link::frame::{
    Digest, Echo, Flags, HEADER_BYTES, Header, Packer, Payload, RecordKind, Sack,
};
use crc::{CRC_32_ISCSI, Crc};
use std::fmt::Write as _;

pub(crate) const HEADER: &str = "\
Frames of a link (proto/src/link/frame.rs, spec/91). Numbers are hexadecimal; BYTES are too, two
digits each, in the order in which they travel, or `-` for none.

crc BYTES -> CRC                                    CRC-32C
encode HEADER PAYLOAD -> BYTES                      the header of a frame with this payload
parse BYTES -> HEADER LEN CRC CHECK                 or malformed
HEADER is KIND CHANNEL FLAGS PATH TO GENERATION TOKEN PACKET SEQ STAMP ACKS LIMITS SACK ECHO
  FLAGS          bits: 1 early, 2 nack, 8 answer
  ACKS LIMITS    three numbers each, by channel
  SACK           channel and bits
  ECHO           stamp, time held, path and lateness, or `- - - -`
LEN CRC are what the header says of the payload; CHECK is ok if what follows the header is that
payload, else malformed.
pack ROOM COUNT RECORDS -> PACKED PAYLOAD           how many of them fit so much room
records PAYLOAD -> COUNT RECORDS                    or malformed
Each of the RECORDS is KIND TAG BYTES, the padding not among them.";

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

pub(crate) fn crc(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "crc" => format!("{:x}", crc(&bytes(inputs))),
            "encode" => hex(&header(inputs).encode(crc)),
            "parse" => parse(&bytes(inputs)),
            "pack" => pack(inputs),
            "records" => records(&bytes(inputs)),
            _ => panic!("{step} is no step of a frame"),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if digits.is_empty() { "-".to_owned() } else { digits }
}

fn bytes(inputs: &mut Fields<'_>) -> Vec<u8> {
    from_hex(inputs.text())
}

pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches('-');
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn header(inputs: &mut Fields<'_>) -> Header {
    Header {
        kind: value(FRAME_KINDS, inputs.text()),
        channel: value(CHANNELS, inputs.text()),
        flags: Flags::from_bits_truncate(inputs.number()),
        path: inputs.number(),
        to: inputs.number(),
        generation: inputs.number(),
        token: inputs.number(),
        packet: inputs.number(),
        seq: inputs.number(),
        stamp: inputs.number(),
        ack: std::array::from_fn(|_| inputs.number()),
        limit: std::array::from_fn(|_| inputs.number()),
        sack: Sack { channel: value(CHANNELS, inputs.text()), arrived: inputs.number() },
        echo: echo(std::array::from_fn(|_| inputs.text())),
        payload: Digest::of(&bytes(inputs), crc),
    }
}

fn echo(fields: [&str; 4]) -> Option<Echo> {
    if fields == ["-"; 4] {
        return None;
    }
    let [stamp, held, path, late] =
        fields.map(|text| u32::from_str_radix(text, 16).expect("a number"));
    let byte = |number: u32| number.try_into().expect("a byte");
    Some(Echo { stamp, held, path: byte(path), late: byte(late) })
}

fn parse(bytes: &[u8]) -> String {
    let Ok(header) = Header::parse(bytes, crc) else { return "malformed".to_owned() };
    let Header { kind, channel, flags, path, to, generation, token, packet, .. } = header;
    let Header { seq, stamp, ack, limit, sack, echo, payload, .. } = header;
    let (kind, channel, flags) = (name(FRAME_KINDS, &kind), name(CHANNELS, &channel), flags.bits());
    let [acks, limits] = [ack, limit].map(|by| by.map(|number| format!("{number:x}")).join(" "));
    let echo = echo.map_or_else(
        || "- - - -".to_owned(),
        |Echo { stamp, held, path, late }| format!("{stamp:x} {held:x} {path:x} {late:x}"),
    );
    let sack = format!("{} {:x}", name(CHANNELS, &sack.channel), sack.arrived);
    let check = header.check_payload(&bytes[HEADER_BYTES..], crc);
    let check = check.map_or("malformed", |()| "ok");
    format!(
        "{kind} {channel} {flags:x} {path:x} {to:x} {generation:x} {token:x} {packet:x} \
         {seq:x} {stamp:x} {acks} {limits} {sack} {echo} {:x} {:x} {check}",
        payload.len, payload.crc
    )
}

fn pack(inputs: &mut Fields<'_>) -> String {
    let mut buffer = vec![0xff; inputs.number()];
    let mut packer = Packer::new(&mut buffer);
    let (mut packed, mut is_full) = (0, false);
    for _ in 0..inputs.number::<u64>() {
        let head = (value(RECORD_KINDS, inputs.text()), inputs.number());
        let bytes = bytes(inputs);
        is_full = is_full || packer.push(head, [], &bytes).is_err();
        packed += u64::from(!is_full);
    }
    format!("{packed:x} {}", hex(packer.payload()))
}

fn records(payload: &[u8]) -> String {
    let Ok(payload) = Payload::parse(payload) else { return "malformed".to_owned() };
    let mut text = format!("{:x}", payload.records().count());
    for record in payload.records() {
        let (kind, bytes) = (name(RECORD_KINDS, &record.kind), hex(record.bytes));
        write!(text, " {kind} {:x} {bytes}", record.tag).expect("memory");
    }
    text
}

const LINK: &str = "89abcdef 7 fedcba9876543210 123456789 2a ffffffff";
const COUNTS: &str = "1 2 3 41 42 43";

pub(crate) fn script(s: &mut Script) {
    s.section("the published check value, and the edges of the payload");
    for bytes in ["313233343536373839", "-", "00", "ff"] {
        s.run(format!("crc {bytes}"));
    }
    headers(s);
    damaged_headers(s);
    payloads(s);
    damaged_payloads(s);
}

fn headers(s: &mut Script) {
    s.section("every kind and channel, with and without an echo and a payload");
    for (kind, _) in FRAME_KINDS {
        for (channel, _) in CHANNELS {
            let (flags, path) = (s.random.pick(&[0, 1, 2, 3, 8]), s.random.below(4));
            let arrived = u128::from(s.random.edge()) << s.random.below(65);
            let sack = format!("{} {arrived:x}", s.random.pick(CHANNELS).0);
            let echo = s.random.pick(&["- - - -", "5 6 0 0", "ffffffff 80000000 3 ff"]);
            let len = s.random.pick(&[0, 0, 8, 24]);
            let payload = any_bytes(s, len);
            let line = format!("{kind} {channel} {flags:x} {path:x} {LINK} {COUNTS} {sack} {echo}");
            let header = s.run(format!("encode {line} {payload}"));
            s.run(format!("parse {header}{}", payload.trim_start_matches('-')));
        }
    }
}

fn any_bytes(s: &mut Script, len: usize) -> String {
    hex(&(0..len).map(|_| s.random.word() as u8).collect::<Vec<_>>())
}

/// A header with the right CRC at its end.
fn with_crc(mut header: Vec<u8>) -> String {
    let sum = crc(&header[..HEADER_BYTES - 4]);
    header[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    hex(&header)
}

fn damaged_headers(s: &mut Script) {
    let line = format!("data posted 1 2 {LINK} {COUNTS} response 1 5 6 3 7");
    let header = s.run(format!("encode {line} 0102030405060708"));
    let good = from_hex(&header);
    s.section("what no correct peer writes, under a right CRC: by byte of the first word");
    for (at, byte) in [(0, 0x10), (0, 0x12), (0, 0x01), (0, 0x91), (0, 0xf1), (1, 0x17)] {
        damaged(s, &good, (at, byte));
    }
    for (at, byte) in [(2, 4), (2, 0x82), (3, 4), (3, 0xff), (6, 3), (6, 0x80)] {
        damaged(s, &good, (at, byte));
    }
    s.section("reserved bits are ignored, and without an echo its fields are");
    for (at, byte) in [(1, 0xd4), (7, 0xff), (1, 0x04)] {
        damaged(s, &good, (at, byte));
    }
    s.section("a wrong CRC, a header cut short, payloads that are not the one that was meant");
    for at in [0, 40, 83, 84, 87] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        s.run(format!("parse {}", hex(&bytes)));
    }
    s.run("parse -");
    s.run(format!("parse {}", &header[..header.len() - 2]));
    for payload in ["", "0102030405060708", "01020304050607", "010203040506070800"] {
        s.run(format!("parse {header}{payload}"));
    }
    s.run(format!("parse {header}0102030405060709"));
}

fn damaged(s: &mut Script, good: &[u8], (at, byte): (usize, u8)) {
    let mut bytes = good.to_vec();
    bytes[at] = byte;
    s.run(format!("parse {}", with_crc(bytes)));
}

fn payloads(s: &mut Script) {
    s.section("every kind of record, the shortest and a longer one");
    for (record, kind) in RECORD_KINDS {
        let least = *kind.lengths().start();
        for len in [least, least + 1 + s.random.below(20) as usize] {
            let (tag, bytes) = (s.random.word() as u32, any_bytes(s, len));
            let packed = s.run(format!("pack 100 1 {record} {tag:x} {bytes}"));
            s.run(format!("records {}", packed.trim_start_matches("1 ")));
        }
    }
    s.section("several records, up to the first one that does not fit");
    for room in (0..120).step_by(13) {
        let records: Vec<String> = (0..4).map(|_| short_record(s)).collect();
        let packed = s.run(format!("pack {room:x} 4 {}", records.join(" ")));
        let (_, payload) = packed.split_once(' ').expect("two outputs");
        s.run(format!("records {payload}"));
    }
}

fn short_record(s: &mut Script) -> String {
    let (record, kind) = s.random.pick(&RECORD_KINDS[1..]);
    let len = *kind.lengths().start() + s.random.below(12) as usize;
    format!("{record} {:x} {}", s.random.below(1 << 20), any_bytes(s, len))
}

fn damaged_payloads(s: &mut Script) {
    s.section("kinds that do not exist, behind a record that is good");
    let good = "04000100aabbccdd0100000000000000";
    for code in [0, 9, 10, 0xff] {
        s.run(format!("records {good}{code:02x}000800000000000000000000000000"));
    }
    s.section("lengths that are none of the kind's, or that leave the payload");
    for (_, kind) in RECORD_KINDS {
        let (least, most) = (*kind.lengths().start(), *kind.lengths().end());
        let rest = "00".repeat(least.next_multiple_of(8));
        for len in least.checked_sub(1).into_iter().chain([least, most + 1]) {
            s.run(format!("records {}{rest}", head(*kind, len)));
        }
        s.run(format!("records {}{}", head(*kind, least + 8), rest));
    }
    s.section("payloads cut short");
    for cut in [1, 4, 7, 8, 9, 12] {
        s.run(format!("records {good}{}", &good[..good.len() - 2 * cut]));
    }
    s.section("the reserved byte of the head and the padding are ignored");
    s.run("records 04ff0100aabbccdd01ffffffffffffff");
}

/// The head of a record with tag 0, as it travels.
fn head(kind: RecordKind, len: usize) -> String {
    let [low, high, ..] = len.to_le_bytes();
    hex(&[kind as u8, 0, low, high, 0, 0, 0, 0])
}

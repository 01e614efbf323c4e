//! Frames: what is written is read back, any damage is found, and any bytes are read without harm.
#[path = "common/any_frame.rs"]
mod any_frame;
mod common;

use any_frame::datagram;
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::link::frame::{
    CHANNELS, Channel, Digest, Echo, Flags, Full, HEAD_BYTES, HEADER_BYTES, Header, Kind,
    PATHS_MAX, PAYLOAD_MAX, Packer, Payload, RecordKind, Sack,
};
use common::word;
use crc::{CRC_32_ISCSI, Crc, Table};
use proptest::collection::vec;
use proptest::prelude::*;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

const KINDS: [RecordKind; 8] = [
    RecordKind::Command,
    RecordKind::Response,
    RecordKind::Message,
    RecordKind::Queue,
    RecordKind::Control,
    RecordKind::QueuePart,
    RecordKind::Filler,
    RecordKind::Ring,
];

fn crc(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// CRC-32C bit by bit, as the specification words it.
fn crc_by_bits(bytes: &[u8]) -> u32 {
    let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| u32::from(byte >> bit & 1)));
    !bits.fold(u32::MAX, |sum, bit| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1 ^ bit)))
}

fn channels() -> impl Strategy<Value = Channel> {
    prop::sample::select(&Channel::ALL[..])
}

fn paths() -> impl Strategy<Value = u8> {
    0..PATHS_MAX
}

fn echoes() -> impl Strategy<Value = Option<Echo>> {
    let echo = (any::<u32>(), any::<u32>(), paths(), any::<u8>());
    prop::option::of(echo.prop_map(|(stamp, held, path, late)| Echo { stamp, held, path, late }))
}

/// A header that goes with a payload.
fn headers(payload: &[u8]) -> impl Strategy<Value = Header> + use<> {
    let payload = Digest::of(payload, crc);
    let says = ((1..=8u8).prop_filter_map("a kind", Kind::from_code), channels(), 0..4u8, paths());
    let link = (any::<u32>(), any::<u32>(), word());
    let frame = (word(), any::<u32>(), any::<u32>());
    let cumulative = any::<([u32; CHANNELS], [u32; CHANNELS])>();
    let news = (channels(), any::<u128>(), echoes());
    (says, link, frame, cumulative, news).prop_map(
        move |((kind, channel, flags, path), link, frame, (ack, limit), news)| {
            let (flags, sack) = (Flags::from_bits_truncate(flags), (news.0, news.1));
            let ((to, generation, token), (packet, seq, stamp)) = (link, frame);
            let sack = Sack { channel: sack.0, arrived: sack.1 };
            let echo = news.2;
            Header {
                kind,
                channel,
                flags,
                path,
                to,
                generation,
                token,
                packet,
                seq,
                stamp,
                ack,
                limit,
                sack,
                echo,
                payload,
            }
        },
    )
}

/// A header and its payload.
fn frames() -> impl Strategy<Value = (Header, Vec<u8>)> {
    vec(any::<u8>(), 0..300).prop_flat_map(|payload| (headers(&payload), Just(payload)))
}

/// A record as a test has it.
type Owned = (RecordKind, u32, Vec<u8>);

fn records() -> impl Strategy<Value = Owned> {
    let kind = prop::sample::select(&KINDS[..]);
    (kind, any::<u32>(), 0..80usize).prop_flat_map(|(kind, tag, beyond)| {
        let len = (kind.lengths().start() + beyond).min(*kind.lengths().end());
        (Just(kind), Just(tag), vec(any::<u8>(), len))
    })
}

/// Bytes in which records are likely.
fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let head = (0..8u8, any::<u8>(), 0..70u8).prop_map(|(kind, any, len)| [kind, any, len, 0]);
    let part = (head, vec(any::<u8>(), 4..70), any::<bool>()).prop_map(|(head, mut rest, fits)| {
        if fits {
            rest.resize(4 + usize::from(head[2]).next_multiple_of(8), 9);
        }
        [&head[..], &rest].concat()
    });
    vec(part, 0..5).prop_map(|parts| parts.concat())
}

/// The records of a payload, found word by word.
fn oracle(bytes: &[u8]) -> Option<Vec<Owned>> {
    let is_whole = bytes.len().is_multiple_of(8);
    let (mut found, mut at) = (Vec::new(), 0);
    while is_whole && at < bytes.len() {
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[at])?;
        let (least, most) = match bytes[at] {
            1 => (48, 65520),
            2 => (16, 65520),
            3 => (9, 1032),
            5 => (8, 65520),
            7 => (0, 65520),
            _ => (1, 65520),
        };
        let len = usize::from(bytes[at + 2]) + 256 * usize::from(bytes[at + 3]);
        let tag = bytes[at + 4..at + 8].iter().rev().fold(0, |tag, byte| tag << 8 | *byte as u32);
        let end = at + 8 + len;
        if len < least || len > most || end > bytes.len() {
            return None;
        }
        found.push((kind, tag, bytes[at + 8..end].to_vec()));
        at += 8 + len.next_multiple_of(8);
    }
    is_whole.then_some(found)
}

fn owned(payload: Payload<'_>) -> Vec<Owned> {
    payload.records().map(|r| (r.kind, r.tag, r.bytes.to_vec())).collect()
}

/// Packs what fits; how many records that were.
fn pack(packer: &mut Packer<'_>, records: &[Owned]) -> usize {
    let fits = |(kind, tag, bytes): &&Owned| packer.push((*kind, *tag), [], bytes).is_ok();
    records.iter().take_while(fits).count()
}

proptest! {
    // spec: FRAME-1, FRAME-2, FRAME-4
    #[test]
    fn frames_round_trip((header, payload) in frames()) {
        let frame = [&header.encode(crc)[..], &payload].concat();
        let read = Header::parse(&frame, crc);
        prop_assert_eq!(read, Ok(header));
        prop_assert_eq!(header.check_payload(&frame[HEADER_BYTES..], crc), Ok(()));
    }

    // spec: FRAME-3, FRAME-6, FRAME-9
    #[test]
    fn any_bytes_are_a_frame_or_malformed(
        (header, payload) in frames(),
        changes in vec((0..HEADER_BYTES, any::<u8>()), 0..3),
        records in payloads(),
        noise in vec(any::<u8>(), 0..200),
    ) {
        let mut likely = header.encode(crc);
        changes.iter().for_each(|(at, byte)| likely[*at] = *byte);
        datagram(&[&likely[..], &payload].concat());
        datagram(&[&likely[..], &records].concat());
        datagram(&noise);
    }

    // spec: FRAME-4, FRAME-5
    #[test]
    fn a_flipped_bit_is_found((header, payload) in frames()) {
        let mut bytes = header.encode(crc);
        for bit in 0..8 * HEADER_BYTES {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Header::parse(&bytes, crc), Err(Malformed));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let mut payload = payload;
        for bit in 0..8 * payload.len() {
            payload[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(header.check_payload(&payload, crc), Err(Malformed));
            payload[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert_eq!(header.check_payload(&payload, crc), Ok(()));
    }

    // spec: FRAME-1
    #[test]
    fn a_datagram_of_another_length_is_malformed((header, payload) in frames()) {
        let bytes = header.encode(crc);
        for len in 0..HEADER_BYTES {
            prop_assert_eq!(Header::parse(&bytes[..len], crc), Err(Malformed));
        }
        // Even a CRC that any bytes have does not make up for the length.
        let (no_crc, payload) = (|_: &[u8]| header.payload.crc, [&payload[..], &[0]].concat());
        for len in 0..=payload.len() {
            let whole = len == usize::from(header.payload.len);
            prop_assert_eq!(header.check_payload(&payload[..len], no_crc).is_ok(), whole);
        }
    }

    // spec: FRAME-2
    #[test]
    fn reserved_bits_are_written_as_zero_and_ignored(
        (header, _) in frames(),
        flags in 0..4u8,
        (first, echo) in (any::<u8>(), word()),
    ) {
        let mut bytes = header.encode(crc);
        let is_echo = header.echo.is_some();
        prop_assert_eq!(bytes[1] >> 6, 0);
        prop_assert!(is_echo || (bytes[3], bytes[7]) == (0, 0) && bytes[80..88] == [0; 8]);
        bytes[1] |= flags << 6;
        if !is_echo {
            (bytes[3], bytes[7]) = (first, first);
            bytes[80..88].copy_from_slice(&echo.to_le_bytes());
        }
        let sum = crc(&bytes[..92]);
        bytes[92..].copy_from_slice(&sum.to_le_bytes());
        prop_assert_eq!(Header::parse(&bytes, crc), Ok(header));
    }

    // spec: FRAME-4
    #[test]
    fn a_table_and_single_bits_give_the_same_crc(bytes in vec(any::<u8>(), 0..100)) {
        prop_assert_eq!(crc_by_bits(&bytes), crc(&bytes));
    }

    // spec: FRAME-7, FRAME-8, FRAME-9
    #[test]
    fn records_are_found_as_the_oracle_finds_them(bytes in payloads()) {
        prop_assert_eq!(Payload::parse(&bytes).map(owned).ok(), oracle(&bytes));
    }

    // spec: FRAME-7
    #[test]
    fn records_are_packed_into_frames_without_loss(
        records in vec(records(), 0..20),
        room in 150..700usize,
    ) {
        let (mut sent, mut arrived) = (0, Vec::new());
        while sent < records.len() {
            let mut buffer = vec![0xee; room];
            let mut packer = Packer::new(&mut buffer);
            let packed = pack(&mut packer, &records[sent..]);
            sent += packed;
            prop_assert!(packed > 0, "every record fits an empty frame");
            if let Some((_, _, next)) = records.get(sent) {
                prop_assert!(packer.room().is_none_or(|room| room < next.len()), "it was full");
            }
            prop_assert!(packer.payload().len() <= room);
            arrived.extend(owned(Payload::parse(packer.payload()).expect("good records")));
        }
        prop_assert_eq!(arrived, records);
    }

    // spec: FRAME-7
    #[test]
    fn words_and_data_are_split_as_they_were_joined(
        words in any::<[u64; 6]>(),
        data in vec(any::<u8>(), 0..50),
    ) {
        let mut buffer = [0xee; 128];
        let mut packer = Packer::new(&mut buffer);
        prop_assert_eq!(packer.push((RecordKind::Command, 7), words, &data), Ok(()));
        let payload = packer.payload();
        prop_assert!(payload[HEAD_BYTES + 48 + data.len()..].iter().all(|byte| *byte == 0));
        let record = Payload::parse(payload).ok().and_then(|payload| payload.records().next());
        let record = record.expect("one record");
        prop_assert_eq!(record.split(), Some((words, &data[..])));
        prop_assert_eq!(record.split::<13>(), None);
    }

    // spec: FRAME-9
    #[test]
    fn one_malformed_record_spoils_all_others(
        records in vec(records(), 1..10),
        spoiled in any::<prop::sample::Index>(),
        damage in 0..3usize,
    ) {
        let mut buffer = vec![0; 8 * 1024];
        let mut packer = Packer::new(&mut buffer);
        let spoiled = spoiled.index(records.len());
        pack(&mut packer, &records[..spoiled]);
        let at = packer.payload().len();
        prop_assert_eq!(pack(&mut packer, &records[spoiled..]), records.len() - spoiled);
        let len = packer.payload().len();
        let payload = &mut buffer[..len];
        let end = match damage {
            0 => { payload[at] = 0; len }
            1 => { payload[at + 2..at + 4].copy_from_slice(&[0xff; 2]); len }
            _ => len - 1,
        };
        prop_assert_eq!(Payload::parse(&payload[..end]), Err(Malformed));
    }
}

// spec: FRAME-4
#[test]
fn the_crc_is_the_published_one() {
    assert_eq!(crc(b"123456789"), 0xe306_9283);
    assert_eq!(crc_by_bits(b"123456789"), 0xe306_9283);
    assert_eq!(Digest::of(&[], crc), Digest { len: 0, crc: 0 });
}

fn header() -> Header {
    Header {
        kind: Kind::Data,
        channel: Channel::Posted,
        flags: Flags::empty(),
        path: 0,
        to: 1,
        generation: 2,
        token: 3,
        packet: 4,
        seq: 5,
        stamp: 6,
        ack: [7, 8, 9],
        limit: [10, 11, 12],
        sack: Sack { channel: Channel::Posted, arrived: 13 },
        echo: Some(Echo { stamp: 14, held: 15, path: 0, late: 18 }),
        payload: Digest { len: 16, crc: 17 },
    }
}

/// Whether a header with these bytes in its first word, and an echo, is read.
fn is_read(at: usize, byte: u8) -> bool {
    let no_crc = |_: &[u8]| 0;
    let mut bytes = header().encode(no_crc);
    bytes[at] = byte;
    Header::parse(&bytes, no_crc).is_ok()
}

// spec: FRAME-3
#[test]
fn only_codes_of_the_tables_are_parsed() {
    for byte in 0..=u8::MAX {
        let is_kind = byte & 15 == 1 && (1..=8).contains(&(byte >> 4));
        assert_eq!(is_read(0, byte), is_kind, "version and kind {byte:#x}");
        assert_eq!(is_read(1, byte), byte & 3 != 3, "channel and flags {byte:#x}");
        assert_eq!(is_read(2, byte), byte < 4, "path {byte}");
        assert_eq!(is_read(3, byte), byte < 4, "path of the echo {byte}");
        assert_eq!(is_read(6, byte), byte < 3, "channel of the sack {byte}");
    }
}

// spec: FRAME-2
#[test]
fn codes_are_those_of_the_tables() {
    for code in 0..=u8::MAX {
        assert_eq!(Kind::from_code(code).map(|kind| kind as u8), in_range(code, 1, 8));
        assert_eq!(Channel::from_code(code).map(|channel| channel as u8), in_range(code, 0, 2));
        assert_eq!(RecordKind::from_code(code).map(|kind| kind as u8), in_range(code, 1, 8));
    }
    assert_eq!(Channel::ALL.map(Channel::index), [0, 1, 2]);
}

fn in_range(code: u8, first: u8, last: u8) -> Option<u8> {
    (first..=last).contains(&code).then_some(code)
}

// spec: FRAME-10
#[test]
fn a_frame_that_is_sent_again_keeps_its_payload() {
    let payload = [1, 2, 3];
    let first = Header { payload: Digest::of(&payload, crc), ..header() };
    let again = Header { packet: 99, stamp: 100, ack: [101; 3], path: 1, ..first };
    let read = Header::parse(&again.encode(crc), crc).expect("as it was written");
    assert_eq!((read.channel, read.seq, read.payload), (first.channel, first.seq, first.payload));
    assert_eq!(read.check_payload(&payload, crc), Ok(()));
}

// spec: FRAME-8
#[test]
fn lengths_are_those_of_the_table() {
    for kind in KINDS {
        for len in [0, 1, 7, 8, 9, 15, 16, 47, 48, 8 + EAGER_MAX, 9 + EAGER_MAX, 65520] {
            let mut bytes = vec![0; 8 + len.next_multiple_of(8)];
            bytes[0] = kind as u8;
            bytes[2..4].copy_from_slice(&(len as u16).to_le_bytes());
            let read = Payload::parse(&bytes).map(owned).ok();
            assert_eq!(read.is_some(), kind.lengths().contains(&len), "{kind:?} {len}");
            assert_eq!(read, oracle(&bytes));
        }
    }
}

// spec: FRAME-7
#[test]
fn the_longest_record_fills_the_longest_payload() {
    let mut buffer = vec![0xee; PAYLOAD_MAX + 100];
    let mut packer = Packer::new(&mut buffer);
    let room = packer.room().expect("an empty payload has room");
    assert_eq!(room, *RecordKind::Queue.lengths().end());
    let record = (RecordKind::Queue, 3, vec![5; room]);
    assert_eq!(pack(&mut packer, std::slice::from_ref(&record)), 1);
    assert_eq!((packer.room(), packer.payload().len()), (None, PAYLOAD_MAX));
    assert_eq!(packer.push((RecordKind::Queue, 3), [], &[1]), Err(Full));
    assert_eq!(Payload::parse(packer.payload()).map(owned), Ok(vec![record]));
    assert_eq!(Digest::of(packer.payload(), crc).len, 65528);
}

#[test]
fn a_buffer_without_room_for_a_head_takes_no_record() {
    for len in 0..16 {
        let mut buffer = vec![0xee; len];
        let mut packer = Packer::new(&mut buffer);
        assert_eq!(packer.push((RecordKind::Queue, 3), [], &[1]), Err(Full));
        assert!(packer.payload().is_empty());
        assert_eq!(Payload::parse(packer.payload()).map(owned), Ok(Vec::new()));
    }
}

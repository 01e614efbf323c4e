//! Frames that come in pieces, until they are whole.
use ayre_proto::link::assembly::{Assembly, Whole};
use ayre_proto::link::frame::{CHANNELS, Channel, Digest, Flags, Header, Kind, Sack};
use ayre_proto::link::pieces::Piece;

/// A frame that says nothing.
const NOTHING: Header = Header {
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

const ROOM: usize = 1024;

/// A piece of a frame whose payload is `total` zeros.
fn piece(seq: u32, (offset, len): (u16, usize), (total, crc): (u16, u32)) -> (Header, Vec<u8>) {
    let whole = Digest { len: total, crc };
    let payload = [&Piece { whole, offset }.encode()[..], &vec![0; len]].concat();
    let digest = Digest { len: payload.len() as u16, crc: 0 };
    let header = Header { kind: Kind::Piece, seq, payload: digest, ..NOTHING };
    (header, payload)
}

fn add(assembly: &mut Assembly, (header, payload): &(Header, Vec<u8>)) -> Option<Option<Whole>> {
    assembly.add(header, payload, ROOM).ok()
}

// spec: FRAME-12
#[test]
fn a_frame_is_whole_once_all_of_it_has_come() {
    let mut assembly = Assembly::default();
    for part in [(512, 512), (0, 8), (512, 512), (0, 256)] {
        assert_eq!(add(&mut assembly, &piece(7, part, (1024, 9))), Some(None));
    }
    let (header, bytes) = add(&mut assembly, &piece(7, (256, 256), (1024, 9))).unwrap().unwrap();
    let whole = Digest { len: 1024, crc: 9 };
    assert_eq!((header.kind, header.seq, header.payload), (Kind::Data, 7, whole));
    assert!(bytes.len() == 1024 && assembly.is_empty());
}

// spec: FRAME-11, FRAME-12
#[test]
fn pieces_that_contradict_each_other_or_are_too_long_are_malformed() {
    let mut assembly = Assembly::default();
    assert_eq!(add(&mut assembly, &piece(7, (0, 8), (1032, 9))), None, "no frame is so long");
    assert!(assembly.is_empty());
    assert_eq!(add(&mut assembly, &piece(7, (0, 8), (1024, 9))), Some(None));
    assert_eq!(add(&mut assembly, &piece(7, (8, 8), (1024, 8))), None);
    assert_eq!(add(&mut assembly, &piece(7, (8, 8), (1016, 9))), None);
    let (mut header, payload) = piece(7, (8, 8), (1024, 9));
    header.flags = Flags::EARLY;
    assert_eq!(add(&mut assembly, &(header, payload)), None);
}

#[test]
fn unwanted_partial_records_are_forgotten() {
    let mut assembly = Assembly::default();
    for seq in 0..8 {
        add(&mut assembly, &piece(seq, (0, 8), (1024, 9)));
    }
    assembly.keep_those(|channel, seq| channel == Channel::Posted && seq == 5);
    assert!(!assembly.is_empty());
    assert!(add(&mut assembly, &piece(5, (8, 1016), (1024, 9))).unwrap().is_some(), "the rest");
    assert!(assembly.is_empty(), "and no other one");
}

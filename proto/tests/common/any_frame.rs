//! Any bytes as a datagram: what the fuzzer and the tests with random bytes share.
use ayre_proto::lane::Malformed;
use ayre_proto::link::frame::{HEADER_BYTES, Header, Packer, Payload, Record};
use ayre_proto::link::pieces::{Parts, Piece, mark_words};

/// A CRC that any bytes have, so that they get past it.
const fn no_crc(_: &[u8]) -> u32 {
    0
}

/// Reads any bytes as an undamaged frame. A frame that is read, written and read again is the same,
/// and takes as many bytes.
pub(crate) fn datagram(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let Some(sum) = bytes.get_mut(HEADER_BYTES - 4..HEADER_BYTES) {
        sum.fill(0);
    }
    let read = Header::parse(&bytes, no_crc);
    let Some((front, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        assert_eq!(read, Err(Malformed), "too short for a header");
        return;
    };
    if let Ok(header) = read {
        same_header(&header, front);
        let whole = usize::from(header.payload.len) == payload.len() && header.payload.crc == 0;
        assert_eq!(header.check_payload(payload, no_crc).is_ok(), whole);
    }
    if let Ok(read) = Payload::parse(payload) {
        same_records(read, payload);
    }
    if let Ok((piece, part)) = Piece::parse(payload) {
        same_piece(&piece, part, payload);
    }
}

fn same_piece(piece: &Piece, part: &[u8], bytes: &[u8]) {
    assert_eq!([&piece.encode(), part].concat(), bytes);
    let mut marks = vec![0; mark_words(piece.whole.len)];
    let is_whole = Parts::new(piece.whole).add(piece, part.len(), &mut marks);
    assert_eq!(is_whole, Ok(part.len() == usize::from(piece.whole.len)));
}

fn same_header(header: &Header, bytes: &[u8]) {
    let written = header.encode(no_crc);
    assert_eq!(Header::parse(&written, no_crc), Ok(*header));
    // The words behind the first one have no reserved bits but those of an echo.
    assert_eq!(written[8..72], bytes[8..72]);
}

fn same_records(read: Payload<'_>, bytes: &[u8]) {
    let mut buffer = vec![0xff; bytes.len()];
    let mut packer = Packer::new(&mut buffer);
    for record in read.records() {
        let Record { kind, tag, bytes } = record;
        packer.push((kind, tag), [], bytes).expect("it came out of as many bytes");
    }
    let written = Payload::parse(packer.payload()).expect("good records");
    assert_eq!(packer.payload().len(), bytes.len());
    assert!(written.records().eq(read.records()));
}

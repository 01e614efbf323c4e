//! The frames that one end of a link holds.
use crate::plain_memory::frames;
use ayre_proto::limits::LINE;
use ayre_proto::link::frame::{Channel, HEAD_BYTES, HEADER_BYTES, Payload, RecordKind};
use ayre_proto::node::carrier::frames::Kept;

/// Payload of a frame with one record of `len` bytes.
fn payload_of(len: usize) -> Vec<u8> {
    let mut frames = frames(1472 - HEADER_BYTES);
    frames.append(Channel::Posted, (RecordKind::Command, 1), len, |bytes| bytes.fill(7));
    frames.depart((Channel::Posted, 0), 0);
    frames.sent(Channel::Posted, 0).payload().to_vec()
}

#[test]
fn a_long_frame_has_whole_lines_and_the_records_it_had() {
    for len in (600..1376).step_by(8) {
        let payload = payload_of(len);
        assert_eq!((HEADER_BYTES + payload.len()) % LINE, 0, "record of {len} bytes");
        let mut records = Payload::parse(&payload).expect("records").records();
        assert_eq!(records.next().map(|record| record.bytes), Some(&vec![7; len][..]));
        let rest: Vec<_> = records.collect();
        assert!(rest.iter().all(|record| record.kind == RecordKind::Filler));
        assert!(rest.iter().all(|record| record.bytes.iter().all(|byte| *byte == 0)));
    }
}

/// Records cut by the lengths that the frames report go whole over any paths, and nearly fill them.
// spec: MTU-8
#[test]
fn a_record_segmented_by_the_path_mtu_arrives_whole() {
    let mut frames = frames((8972 - HEADER_BYTES) & !7);
    assert_eq!(frames.whole(), frames.longest());
    for (seq, limit) in (0..).zip([8972, 4000, 1440, 1152, 480, 1440, 8972_u16]) {
        frames.set_limit(limit);
        let len = frames.whole();
        assert!(len.is_multiple_of(8) && len + 200 >= usize::from(limit), "{len} of {limit}");
        frames.append(Channel::Posted, (RecordKind::Command, 1), 64, |_| {});
        frames.append(Channel::Posted, (RecordKind::Command, 2), len, |_| {});
        for seq in [2 * seq, 2 * seq + 1] {
            frames.depart((Channel::Posted, seq), 0);
            assert!(frames.sent(Channel::Posted, seq).frame_len() <= usize::from(limit));
            frames.arrived(Channel::Posted);
        }
    }
}

#[test]
fn an_early_frame_is_taken_in_turn_and_then_forgotten() {
    let mut frames = frames(256);
    let kept = |byte| Kept { bytes: Box::new([byte]), is_placed: false };
    let first = u32::MAX - 1;
    let seq = |ahead| first.wrapping_add(ahead);
    for ahead in [3, 1, 5] {
        frames.keep(Channel::Posted, seq(ahead), kept(ahead as u8));
    }
    frames.pass(Channel::Posted, seq(1));
    assert_eq!(*frames.take_kept(Channel::Posted, seq(1)).bytes, [1]);
    assert!(frames.take_kept(Channel::Posted, seq(2)).bytes.is_empty(), "it has not come");
    frames.pass(Channel::Posted, seq(3));
    assert_eq!(*frames.take_kept(Channel::Posted, seq(3)).bytes, [3]);
    // The fifth is not asked for: it was forgotten, and has come again in its turn.
    for ahead in 4..10_000 {
        frames.pass(Channel::Posted, seq(ahead));
    }
    frames.keep(Channel::Posted, seq(10_001), kept(7));
    assert_eq!(*frames.take_kept(Channel::Posted, seq(10_001)).bytes, [7]);
    assert_eq!(frames.kept(Channel::Posted), 1, "no places for those before");
}

#[test]
fn a_short_frame_is_left_as_it_is() {
    assert_eq!(payload_of(104).len(), HEAD_BYTES + 104);
}

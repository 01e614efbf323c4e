//! Any bytes as a record that a remote has written: what the fuzzer and the tests with random bytes
//! share.
use ayre_proto::envelope::{ENVELOPE_WORDS, Record};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::rma::{RMA_WORDS, RmaRecord};

/// Reads tag, length, words and bytes of a record. A record that is read, written and read again is
/// the same; its derived values are computed as well.
pub(crate) fn record(bytes: &[u8]) {
    let Some(([tag, more, low, high], rest)) = bytes.split_first_chunk() else { return };
    // Mostly no bits but those that mean something.
    let tag = u32::from(*tag) | u32::from(*more & *more >> 1 & *more >> 2) << 8;
    let len = usize::from(u16::from_le_bytes([*low, *high])) % (2 * EAGER_MAX);
    let mut words = [0; RMA_WORDS];
    for (word, bytes) in words.iter_mut().zip(rest.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let head: [u64; ENVELOPE_WORDS] = *words.first_chunk().expect("it is shorter");
    if let Ok((record, count)) = Record::parse(tag, head, len) {
        let (tag, head, written) = record.encode();
        assert_eq!((Record::parse(tag, head, len), written), (Ok((record, count)), count));
        assert!(!RmaRecord::is_one(tag) && len - count * 8 <= EAGER_MAX);
    }
    if let Ok((rma, count)) = RmaRecord::parse(tag, words, len) {
        let (tag, head, written) = rma.encode();
        assert_eq!((RmaRecord::parse(tag, head, len), written), (Ok((rma, count)), count));
        assert!(RmaRecord::is_one(tag) && len - count * 8 <= EAGER_MAX);
        work_out(&rma, rest);
    }
}

/// Does what is asked for, with any operands, to any memory.
fn work_out(rma: &RmaRecord, bytes: &[u8]) {
    let RmaRecord::Update { what, .. } = rma else { return };
    let mut bytes = bytes.iter().rev().cycle().copied().chain(std::iter::repeat(0));
    let mut some = |len| bytes.by_ref().take(len).collect::<Vec<_>>();
    let (operand, compare) = (some(what.operand_len()), some(what.comparand_len()));
    assert!(operand.len() + compare.len() <= EAGER_MAX);
    let mut memory = some(what.len());
    what.op.apply(what.number, &mut memory, &operand, &compare);
    assert!(memory.len() <= EAGER_MAX);
}

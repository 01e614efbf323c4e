//! Records of endpoints made of any bytes.
#[path = "common/any_record.rs"]
mod any_record;

use ayre_proto::envelope::Record;
use ayre_proto::rma::RmaRecord;
use proptest::prelude::*;

/// A script of a record with this tag and length.
fn script(tag: u32, len: u16, rest: &[u8]) -> Vec<u8> {
    [&tag.to_le_bytes()[..2], &len.to_le_bytes(), rest].concat()
}

proptest! {
    // spec: ENV-1, ENV-2
    #[test]
    fn any_record_is_read_or_malformed(
        tag in 0_u32..128,
        len in 0_u16..160,
        words in prop::collection::vec(prop_oneof![0_u64..2000, any::<u64>()], 0..8),
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        any_record::record(&script(tag, len, &bytes));
        any_record::record(&bytes);
    }
}

/// The scripts are not so hostile that nothing is read.
#[test]
fn records_of_each_kind_are_read() {
    let heads = [0, 16, 0, 0, 0, 0];
    let is_read = |code: u32| {
        (0..64).any(|len| {
            let head = *heads.first_chunk().expect("it is shorter");
            Record::parse(code, head, len).is_ok() || RmaRecord::parse(code, heads, len).is_ok()
        })
    };
    let read: Vec<u32> = (0..16).filter(|code| is_read(*code)).collect();
    assert_eq!(read, [1, 2, 3, 4, 5, 6, 7, 9, 12, 14]);
}

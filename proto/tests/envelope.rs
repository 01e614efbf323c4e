//! Records between endpoints: what is written is read back, whatever else there is is refused.
use ayre_proto::envelope::{ALL, ENVELOPE_WORDS, Envelope, LONG_MAX, Record, SHORT_WORDS};
use ayre_proto::fault::Fault;
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use proptest::prelude::*;

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..9_u64, Just(u64::MAX), Just(1 << 63)]
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let part = || prop::option::of(word());
    (part(), part()).prop_map(|(tag, data)| Envelope { tag, data })
}

fn refusal() -> impl Strategy<Value = Fault> {
    prop_oneof![Just(Fault::UnknownKey), Just(Fault::Rights), Just(Fault::Bounds)]
}

fn record() -> impl Strategy<Value = Record> {
    let answer = || prop::option::of(word());
    let long_len = 0..=LONG_MAX as u64;
    prop_oneof![
        (envelope(), answer()).prop_map(|(envelope, answer)| Record::Short { envelope, answer }),
        (envelope(), answer(), long_len, word()).prop_map(|(envelope, answer, len, place)| {
            Record::Long { envelope, answer, len, place }
        }),
        (envelope(), word(), any::<bool>(), word(), word()).prop_map(
            |(envelope, id, answered, len, address)| {
                Record::Rts { envelope, id, answered, len, address }
            }
        ),
        (word(), word(), word()).prop_map(|(id, to, len)| Record::Cts { id, to, len }),
        (word(), word(), word()).prop_map(|(to, len, place)| Record::Fragment { to, len, place }),
        word().prop_map(|to| Record::FragmentHere { to }),
        word().prop_map(|id| Record::Fin { id }),
        (0..u64::MAX, refusal()).prop_map(|(id, fault)| Record::Refused { id, fault }),
        Just(Record::Refused { id: ALL, fault: Fault::NoMemory }),
        word().prop_map(|longest| Record::Ahead { longest }),
    ]
}

fn has_bytes(record: &Record) -> bool {
    matches!(record, Record::Short { .. } | Record::FragmentHere { .. })
}

/// Words of a record of this tag as the table of spec/46 says, and the bits that it may have.
fn table(tag: u32) -> Option<(usize, bool, u32)> {
    match (tag & 0xf, tag >> 6 & 1) {
        (1, 0) => Some((2, true, 0x70)),
        (1, _) => Some((3, true, 0x70)),
        (2, _) => Some((5, false, 0x70)),
        (3, _) => Some((5, false, 0x70)),
        (4 | 5, _) => Some((3, false, 0)),
        (6, _) => Some((1, true, 0)),
        (7, _) => Some((1, false, 0)),
        (8, _) => Some((2, false, 0)),
        (14, _) => Some((1, false, 0)),
        _ => None,
    }
}

proptest! {
    // spec: ENV-1
    #[test]
    fn an_encoded_record_is_parsed_back_equal(record in record(), bytes in 0..=EAGER_MAX) {
        let (tag, head, words) = record.encode();
        let bytes = if has_bytes(&record) { bytes } else { 0 };
        prop_assert_eq!(Record::parse(tag, head, words * 8 + bytes), Ok((record, words)));
        prop_assert!(head[words..].iter().all(|word| *word == 0), "what does not travel is 0");
    }

    // spec: ENV-1
    #[test]
    fn a_short_one_is_written_the_short_way(envelope in envelope()) {
        let (tag, short) = envelope.short();
        let (all_tag, head, words) = Record::Short { envelope, answer: None }.encode();
        prop_assert_eq!((tag, &short[..], words), (all_tag, &head[..words], SHORT_WORDS));
        prop_assert_eq!(Envelope::of_short(tag, short), Some(envelope));
    }

    // spec: ENV-2
    #[test]
    fn a_record_is_as_the_table_says_or_malformed(
        tag in prop_oneof![any::<u32>(), 0..256_u32],
        head in any::<[u64; ENVELOPE_WORDS]>(),
        (short_len, is_all, fault) in (any::<bool>(), any::<bool>(), prop::option::of(0..18_u64)),
        len in prop_oneof![0..64_usize, 0..4096_usize, any::<usize>()]
    ) {
        let mut head = head;
        if short_len {
            head[3] %= 2 * LONG_MAX as u64;
        }
        head[1] = fault.unwrap_or(head[1]);
        head[0] = if is_all { ALL } else { head[0] };
        let refusals: &[u64] = if head[0] == ALL { &[16] } else { &[1, 3, 4] };
        let is_sound = table(tag).is_some_and(|(words, has_bytes, bits)| {
            let most = words * 8 + if has_bytes { EAGER_MAX } else { 0 };
            let (is_long, is_refusal) = (tag & 0xf == 2, tag & 0xf == 8);
            (words * 8..=most).contains(&len)
                && tag & !(0xf | bits) == 0
                && !(is_long && head[3] > LONG_MAX as u64)
                && (!is_refusal || refusals.contains(&head[1]))
        });
        let parsed = Record::parse(tag, head, len);
        prop_assert_eq!(parsed.is_ok(), is_sound, "{:?}", parsed);
        if let Ok((record, words)) = parsed {
            let (again, rest, count) = record.encode();
            prop_assert_eq!((again, count), (tag, words));
            prop_assert_eq!(Record::parse(again, rest, len), Ok((record, words)));
        }
    }

    // spec: ENV-2
    #[test]
    fn only_short_envelopes_are_read_as_short(tag in prop_oneof![any::<u32>(), 0..256_u32]) {
        let is_short = tag & !0x30 == 1;
        prop_assert_eq!(Envelope::of_short(tag, [1, 2]).is_some(), is_short);
    }
}

// spec: ENV-2
#[test]
fn every_length_but_its_own_is_malformed() {
    for tag in 0..128 {
        let Some((words, has_bytes, bits)) = table(tag) else {
            for len in 0..64 {
                assert_eq!(
                    Record::parse(tag, [1; ENVELOPE_WORDS], len),
                    Err(Malformed),
                    "{tag:#x}"
                );
            }
            continue;
        };
        for len in 0..2 * EAGER_MAX {
            let most = words * 8 + if has_bytes { EAGER_MAX } else { 0 };
            let is_sound = (words * 8..=most).contains(&len) && tag & !(0xf | bits) == 0;
            let parsed = Record::parse(tag, [1; ENVELOPE_WORDS], len);
            assert_eq!(parsed.is_ok(), is_sound, "{tag:#x} of {len} bytes");
        }
    }
}

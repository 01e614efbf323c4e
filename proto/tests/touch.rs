//! Records that touch windows: what is written is read back, whatever else there is is refused.
use ayre_proto::combine::{Combine, Number};
use ayre_proto::envelope::{ENVELOPE_WORDS, Record};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::rma::{Calculation, RMA_WORDS, RmaRecord};
use ayre_proto::units::Rights;
use proptest::prelude::*;
use proptest::sample::select;

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..9_u64, Just(u64::MAX), Just(1 << 63)]
}

fn calculation() -> impl Strategy<Value = Calculation> {
    let of = (select(&Combine::ALL[..]), select(&Number::ALL[..]), any::<bool>());
    let sound = of.prop_filter("defined", |(op, number, _)| op.is_defined(*number));
    sound.prop_flat_map(|(op, number, fetches)| {
        let fetches = fetches || !op.has_operand();
        (0..=Calculation::count_max(op, number) as u16).prop_map(move |count| Calculation {
            op,
            number,
            count,
            fetches,
        })
    })
}

/// A record, and how many bytes may follow.
fn record() -> impl Strategy<Value = (RmaRecord, usize)> {
    let data = || prop::option::of(word());
    let three = || (word(), word(), word());
    let part = || (1..1_u64 << 62, 0..1_u64 << 62);
    prop_oneof![
        (three(), word(), data(), 0..=EAGER_MAX).prop_map(
            |((key, address, id), before, data, n)| {
                (RmaRecord::WriteHere { key, address, id, before, data }, n)
            }
        ),
        (three(), part(), 0..9_u64).prop_map(|((key, address, place), (count, before), rest)| {
            let len = before + count + rest;
            (RmaRecord::WritePart { key, address, len, before, count, place }, 0)
        }),
        ((word(), word()), 0..1_u64 << 62, 1..=EAGER_MAX, 0..9_u64).prop_map(
            |((key, address), before, count, rest)| {
                let len = before + count as u64 + rest;
                (RmaRecord::WritePartHere { key, address, len, before }, count)
            }
        ),
        (three(), word())
            .prop_map(|((key, address, id), len)| (RmaRecord::Read { key, address, id, len }, 0)),
        (three(), calculation(), data()).prop_map(|((key, address, id), what, data)| {
            let bytes = what.operand_len() + what.comparand_len();
            (RmaRecord::Update { key, address, id, what, data }, bytes)
        }),
    ]
}

/// Words of a record of this tag as the table of spec/46 says, and the bits that it may have.
fn table(tag: u32) -> Option<(usize, u32)> {
    let with_data = (tag >> 5 & 1) as usize;
    match tag & 0xf {
        9 => Some((4 + with_data, 0x20)),
        10 => Some((6, 0)),
        11 | 12 => Some((4, 0)),
        13 => Some((4 + with_data, 0x60)),
        _ => None,
    }
}

/// Whether `bytes` bytes may follow.
fn may_follow(tag: u32, [_, _, c, d, e, _]: [u64; RMA_WORDS], bytes: usize) -> bool {
    let is_part = |count: u64| count > 0 && d.checked_add(count).is_some_and(|end| end <= c);
    match tag & 0xf {
        9 => bytes <= EAGER_MAX,
        10 => bytes == 0 && is_part(e),
        11 => bytes <= EAGER_MAX && is_part(bytes as u64),
        12 => bytes == 0,
        _ => {
            let (op, number) = (Combine::from_code(d as u8), Number::from_code((d >> 8) as u8));
            let (Some(op), Some(number)) = (op, number) else { return false };
            let len = number.size() * usize::from((d >> 16) as u16);
            let operands = usize::from(op.has_operand()) + usize::from(op.has_comparand());
            let is_asked = op.has_operand() || tag & 0x40 != 0;
            let fits = len <= EAGER_MAX && bytes <= EAGER_MAX;
            d >> 32 == 0 && op.is_defined(number) && is_asked && fits && bytes == operands * len
        }
    }
}

proptest! {
    // spec: ENV-1
    #[test]
    fn an_encoded_record_is_parsed_back_equal((record, bytes) in record()) {
        let (tag, head, words) = record.encode();
        prop_assert_eq!(RmaRecord::parse(tag, head, words * 8 + bytes), Ok((record, words)));
        prop_assert!(RmaRecord::is_one(tag));
        prop_assert!(head[words..].iter().all(|word| *word == 0), "what does not travel is 0");
        let [a, b, c, d, e, _] = head;
        let other = Record::parse(tag, [a, b, c, d, e], words * 8 + bytes);
        prop_assert_eq!(other, Err(Malformed), "it is no message");
    }

    // spec: ENV-2
    #[test]
    fn a_record_is_as_the_table_says_or_malformed(
        tag in prop_oneof![any::<u32>(), 0..256_u32, 9..14_u32],
        words in [word(), word(), word(), word(), word(), word()],
        what in prop::option::of((0..21_u64, 0..14_u64, 0..200_u64)),
        len in prop_oneof![32..64_usize, 0..4096_usize, any::<usize>()]
    ) {
        let mut head = words;
        if let Some((op, number, count)) = what {
            head[3] = op | number << 8 | count << 16;
        }
        let is_sound = table(tag).is_some_and(|(words, bits)| {
            let fits = len.checked_sub(words * 8).is_some_and(|it| may_follow(tag, head, it));
            fits && tag & !(0xf | bits) == 0
        });
        let parsed = RmaRecord::parse(tag, head, len);
        prop_assert_eq!(parsed.is_ok(), is_sound, "{:?}", parsed);
        if let Ok((record, words)) = parsed {
            let (again, rest, count) = record.encode();
            prop_assert_eq!((again, count), (tag, words));
            prop_assert_eq!(RmaRecord::parse(again, rest, len), Ok((record, words)));
        }
    }
}

// spec: ENV-2
#[test]
fn a_tag_denotes_a_message_or_an_rma_operation() {
    for tag in 0..16 {
        let is_rma = (9..14).contains(&tag);
        assert_eq!(RmaRecord::is_one(tag), is_rma);
        for len in (0..64).step_by(8) {
            let message = Record::parse(tag, [1; ENVELOPE_WORDS], len);
            assert!(message.is_err() || !is_rma, "{tag}");
        }
    }
}

// spec: ENV-23, ENV-29
#[test]
fn an_atomic_update_needs_the_rights_of_its_operation() {
    for op in Combine::ALL {
        let number = Number::U64;
        let of = |fetches| Calculation { op, number, count: 3, fetches };
        let writes = if op == Combine::Read { Rights::empty() } else { Rights::WRITE };
        assert_eq!((of(false).rights(), of(true).rights()), (writes, writes | Rights::READ));
        assert_eq!(of(false).is_sound(), op != Combine::Read, "what does nothing");
        assert!(of(true).is_sound());
        let operands = of(true).operand_len() + of(true).comparand_len();
        let count = usize::from(op.has_operand()) + usize::from(op.has_comparand());
        assert_eq!(operands, 24 * count);
    }
}

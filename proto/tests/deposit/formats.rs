//! The six words of a message.
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{DepositMessage, Form, Instruction, Mask};
use ayre_proto::fault::Fault;
use ayre_proto::notify::Classes;
use ayre_proto::units::Key;
use proptest::prelude::*;

fn posted() -> impl Strategy<Value = Posted> {
    let carried = any::<u64>().prop_filter_map("a valid word", |word| {
        Some(Form::Carried(Instruction::parse(word).ok()?))
    });
    let pointer = (any::<u16>(), any::<[u8; 3]>())
        .prop_map(|(entry, registers)| Form::Pointer { entry, registers });
    let form = prop_oneof![carried, pointer, Just(Form::Probe)];
    let flags = (any::<bool>(), any::<bool>());
    let head = (any::<u16>(), any::<u32>(), any::<u8>(), 0..8_u8, any::<u32>(), any::<u64>());
    (form, any::<u64>(), any::<u64>(), 0..=1024_u16, flags, head).prop_map(
        |(
            form,
            operand,
            mask,
            len,
            (brings, is_answered),
            (slot, generation, epoch, bits, tag, value),
        )| {
            let (key, classes) = (Key { slot, generation }, Classes::from_bits_truncate(bits));
            let message =
                DepositMessage { form, operand, mask: Mask(mask), len, brings, is_answered };
            Posted { key, epoch, classes, tag, value, message }
        },
    )
}

fn data_of(posted: &Posted) -> u64 {
    if posted.message.brings { u64::from(posted.message.len) } else { 0 }
}

proptest! {
    // spec: DEP-6
    #[test]
    fn a_written_value_is_parsed_back_equal(posted in posted()) {
        prop_assert_eq!(Posted::parse(&posted.encode(), data_of(&posted)), Ok(posted));
    }

    // spec: DEP-6
    #[test]
    fn changed_bits_are_found(posted in posted(), at in 0..384_usize, burst in 1..256_u64) {
        let mut words = posted.encode();
        let (word, bit) = (at / 64, (at % 64) as u32);
        words[word] ^= burst.rotate_left(bit);
        prop_assert_eq!(Posted::parse(&words, data_of(&posted)), Err(Fault::Malformed));
    }

    // spec: ERR-5
    #[test]
    fn anything_can_be_read(words in any::<[u64; 6]>(), data in 0..2000_u64) {
        if let Ok(posted) = Posted::parse(&words, data) {
            prop_assert_eq!(Posted::parse(&posted.encode(), data), Ok(posted));
        }
    }

    // spec: DEP-13
    #[test]
    fn data_is_as_long_as_it_says(posted in posted(), more in 1..2000_u64) {
        let wrong = data_of(&posted) + more;
        prop_assert_eq!(Posted::parse(&posted.encode(), wrong), Err(Fault::Malformed));
    }

    // spec: DEP-12
    #[test]
    fn runs_are_the_words_of_a_mask(mask in any::<u64>(), words in 0..=64_u64) {
        let mut found = 0_u64;
        let mut end = None;
        for (at, len) in Mask(mask).runs(4 * words) {
            prop_assert!(end.is_none_or(|end| at > end), "adjacent or out of order");
            prop_assert!(at % 4 == 0 && len % 4 == 0 && len > 0 && at + len <= 4 * words);
            end = Some(at + len);
            (at / 4..(at + len) / 4).for_each(|word| found |= 1 << word);
        }
        let all = if words == 64 { u64::MAX } else { (1 << words) - 1 };
        prop_assert_eq!(found, mask & all);
    }
}

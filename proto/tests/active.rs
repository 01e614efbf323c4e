//! Landings against a model of their memory, and records against anything.
use ayre_proto::active::landing::{Inward, LANDING_MIN, Outward, Piece, is_landing};
use ayre_proto::active::record::{Cause, Record};
use ayre_proto::active::{ARGUMENTS_MAX, NAME_MAX, id_of};
use ayre_proto::lane::Malformed;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

/// What may happen next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The sender puts a piece of at most so many bytes, if there is room.
    Put(u64),
    /// The receiver takes the oldest piece.
    Take,
    /// The sender is told what is due.
    Tell,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..5000_u64).prop_map(Step::Put),
        2 => Just(Step::Take),
        1 => Just(Step::Tell),
    ]
}

proptest! {
    /// Messages come out as they went in, whatever the order of steps; no piece crosses the end or
    /// lies on what was not taken; and when all is taken and told, there is room for the next one.
    // spec: AM-12, AM-13
    #[test]
    fn pieces_do_not_overwrite_each_other(
        totals in vec(1..40_000_u64, 1..8),
        steps in vec(steps(), 1..400),
    ) {
        let bytes = LANDING_MIN;
        let mut memory = vec![0_u8; bytes as usize];
        let (mut out, mut inward) = (Outward::new(bytes).expect("a landing"), Inward::new(bytes));
        let (mut counter, mut expected) = (0_u8, 0_u8);
        let mut under_way: VecDeque<(Option<u64>, Piece)> = VecDeque::new();
        let mut totals = VecDeque::from(totals);
        let mut left = 0;
        for step in steps.into_iter().chain([Step::Take, Step::Tell].repeat(40)) {
            match step {
                Step::Put(limit) => {
                    let begins = if left == 0 { totals.pop_front() } else { None };
                    left += begins.unwrap_or(0);
                    let Some(piece) = out.next(left.min(limit)) else {
                        if let Some(total) = begins {
                            totals.push_front(total);
                            left = 0;
                        }
                        continue;
                    };
                    prop_assert!(piece.len > 0 && piece.len <= bytes / 4);
                    prop_assert!(piece.offset + piece.len <= bytes);
                    for byte in &mut memory[piece.offset as usize..][..piece.len as usize] {
                        prop_assert_eq!(*byte, 0, "it was not taken");
                        counter = counter % 255 + 1;
                        *byte = counter;
                    }
                    out.put(piece);
                    left -= piece.len;
                    under_way.push_back((begins, piece));
                }
                Step::Take => {
                    let Some((begins, piece)) = under_way.pop_front() else { continue };
                    if let Some(total) = begins {
                        inward.begin(total).expect("the one before is whole");
                    }
                    prop_assert_eq!(inward.take(piece.len), Ok(piece));
                    for byte in &mut memory[piece.offset as usize..][..piece.len as usize] {
                        expected = expected % 255 + 1;
                        prop_assert_eq!(*byte, expected);
                        *byte = 0;
                    }
                }
                Step::Tell => {
                    if let Some(taken) = inward.room_due() {
                        prop_assert_eq!(out.on_room(taken), Ok(()));
                        inward.told(taken);
                    }
                }
            }
        }
        if under_way.is_empty() {
            prop_assert!(out.next(bytes / 4).is_some(), "nothing waits for what nobody tells");
        }
    }

    /// A receiver finds what a sender may not do, and stays as it is.
    // spec: AM-15, AM-13
    #[test]
    fn landings_refuse_what_cannot_be(words in vec((0..4_u8, any::<u64>(), 0..9000_u64), 1..60)) {
        let mut inward = Inward::new(LANDING_MIN);
        let mut out = Outward::new(LANDING_MIN).expect("a landing");
        let (mut left, mut taken) = (0_u64, 0_u64);
        for (what, wild, tame) in words {
            let number = if wild % 8 == 0 { wild } else { tame };
            match what {
                0 => {
                    let sound = left == 0 && number > 0;
                    prop_assert_eq!(inward.begin(number).is_ok(), sound);
                    left = if sound { number } else { left };
                }
                1 => {
                    let offset = taken % LANDING_MIN;
                    let longest = (LANDING_MIN / 4).min(LANDING_MIN - offset).min(left);
                    let sound = number > 0 && number <= longest;
                    let piece = Piece { offset, len: number };
                    let expected = if sound { Ok(piece) } else { Err(Malformed) };
                    prop_assert_eq!(inward.take(number), expected);
                    left -= if sound { number } else { 0 };
                    taken += if sound { number } else { 0 };
                }
                2 => {
                    // Nothing was put.
                    prop_assert_eq!(out.on_room(number).is_ok(), number == 0);
                }
                _ => prop_assert_eq!(is_landing(number), Outward::new(number).is_ok()),
            }
            prop_assert_eq!(inward.left(), left);
        }
    }

    /// A record is what its bytes say; of any other bytes, nothing is made.
    // spec: AM-15
    #[test]
    fn records_are_read_as_written(tag in 0..20_u32, bytes in vec(any::<u8>(), 0..100)) {
        if let Ok(record) = Record::parse(tag, &bytes) {
            let (again, written) = record.encode();
            prop_assert_eq!((again, &written[..]), (tag, &bytes[..]));
        }
    }
}

// spec: AM-15, AM-1
#[test]
fn every_record_survives() {
    let name = "a".repeat(NAME_MAX);
    let arguments = [7; 8 * ARGUMENTS_MAX];
    let records = [
        Record::Announce { id: id_of(&name), arguments: 8, name: &name },
        Record::Long { id: 300, total: 1 << 26, piece: 32_768, arguments: &arguments },
        Record::Piece(1),
        Record::Room(u64::MAX),
        Record::Want,
        Record::Landing(1 << 17),
        Record::Failed(32, Cause::Unknown),
        Record::Failed(32, Cause::Malformed),
        Record::Failed(u32::MAX, Cause::Panicked),
        Record::Sync(1),
        Record::Empty(255),
        Record::Pull { id: 300, total: 1, address: u64::MAX, arguments: &arguments },
        Record::Pulled(true),
    ];
    for record in records {
        let (tag, bytes) = record.encode();
        assert_eq!(Record::parse(tag, &bytes), Ok(record));
        assert_eq!(Record::parse(tag, &bytes[..7]), Err(Malformed));
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Record::parse(tag, &longer), Err(Malformed), "{record:?}");
    }
    let wrong = Record::Announce { id: 1000, arguments: 0, name: "other" }.encode();
    assert_eq!(Record::parse(wrong.0, &wrong.1), Err(Malformed), "an id is its name's");
}

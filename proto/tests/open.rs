//! Opening a link: set-ups, the side that asks, the side that accepts, resets.
#[path = "open/accepting.rs"]
mod accepting;
#[path = "open/answers.rs"]
mod answers;
mod common;
#[path = "common/dice.rs"]
mod dice;
#[path = "open/race.rs"]
mod race;

use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::frame::{Digest, Kind};
use ayre_proto::link::half_open::{AdmitError, HalfOpen, HalfOpenTable, OpenRequest, Place};
use ayre_proto::link::open::{FRAME_LEAST, Opener, Opening, SETUP_BYTES, SetUp, agree};
use ayre_proto::link::race::Pace;
use ayre_proto::link::token_bucket::TokenBucket;
use common::word;
use dice::Dice;
use proptest::prelude::*;

const MILLISECOND: u64 = 1_000_000;
const PAYLOAD: Digest = Digest { len: SETUP_BYTES as u16, crc: 7 };

/// A set-up of the port with this number, of its n-th incarnation.
fn set_up(number: u16, nth: u64) -> SetUp {
    let mut dice = Dice(u64::from(number) << 32 | nth);
    SetUp {
        nonce: dice.word() | 1,
        answers: 0,
        incarnation: dice.word() | 1,
        token: dice.word() | 1,
        generation: 1 + nth as u32,
        index: dice.word() as u32,
        first: [0; 3].map(|_| dice.word() as u32),
        frame_max: 1472,
        number,
        destination: 2,
        paths: 2,
        repair: Repair::Selective,
        owner: [0; 7].map(|_| dice.word()),
        cookie: 0,
    }
}

/// An open whose mark is its nonce, as where nothing is encrypted.
fn asker(opener: u64, open: &SetUp, is_proved: bool) -> OpenRequest {
    OpenRequest { opener, mark: open.nonce, host: 0, is_proved }
}

fn door(timeout: u64) -> HalfOpenTable {
    HalfOpenTable::new(timeout, TokenBucket::new(1000, 1, 0))
}

type Admitted = Result<(Place, Option<HalfOpen>), AdmitError>;

/// Takes in an open that is proved.
fn admit(door: &mut HalfOpenTable, opener: u64, open: &SetUp, ours: SetUp, now: u64) -> Admitted {
    door.admit(asker(opener, open, true), open, ours, now)
}

fn set_ups() -> impl Strategy<Value = SetUp> {
    let words = (word(), word(), word(), word(), proptest::array::uniform7(word()), word());
    let halves = (1..=u32::MAX, any::<u32>(), any::<[u32; 3]>());
    let limits = (FRAME_LEAST..=u16::MAX, any::<[u16; 2]>(), 1..=4u8, any::<bool>());
    (words, halves, limits).prop_map(|(words, halves, limits)| SetUp {
        nonce: words.0.max(1),
        answers: words.1,
        incarnation: words.2.max(1),
        token: words.3.max(1),
        generation: halves.0,
        index: halves.1,
        first: halves.2,
        frame_max: limits.0,
        number: limits.1[0],
        destination: limits.1[1],
        paths: limits.2,
        repair: if limits.3 { Repair::GoBackN } else { Repair::Selective },
        owner: words.4,
        cookie: words.5,
    })
}

proptest! {
    // spec: OPEN-2, OPEN-3
    #[test]
    fn a_set_up_travels_whole(set_up in set_ups()) {
        prop_assert_eq!(SetUp::parse(&set_up.encode()), Ok(set_up));
    }

    /// Reading ends for all bytes. A set-up that was read is written as it was, but for the
    /// reserved bits.
    // spec: OPEN-2, OPEN-3
    #[test]
    fn reading_is_total(
        set_up in set_ups(),
        changes in proptest::collection::vec((0..SETUP_BYTES, any::<u8>()), 0..8),
        len in prop_oneof![3 => Just(SETUP_BYTES), 1 => 0..2 * SETUP_BYTES],
    ) {
        let mut bytes = set_up.encode().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.resize(len, 0);
        match SetUp::parse(&bytes) {
            Ok(read) => {
                bytes[60..64].fill(0);
                prop_assert_eq!(read.encode().to_vec(), bytes);
            }
            Err(Malformed) => {
                let zero = |at: usize, len: usize| bytes[at..at + len] == [0; 8][..len];
                let is_unsound = len != SETUP_BYTES
                    || zero(0, 8) || zero(16, 8) || zero(24, 8) || zero(32, 4)
                    || u16::from_le_bytes([bytes[52], bytes[53]]) < FRAME_LEAST
                    || !(1..=4).contains(&bytes[56]) || !(1..=2).contains(&bytes[57]);
                prop_assert!(is_unsound, "a good one is refused");
            }
        }
    }

    /// Both sides come to the same.
    // spec: OPEN-4
    #[test]
    fn both_sides_agree(open in set_ups(), ours in set_ups()) {
        prop_assume!(open.incarnation != ours.incarnation);
        let open = SetUp { answers: 0, ..open };
        let accept = ours.answering(&open);
        let (here, limits) = agree(&accept, &open).expect("an accept answers its open");
        let (there, same) = agree(&open, &accept).expect("an open is answered by its accept");
        prop_assert_eq!(limits, same);
        prop_assert_eq!(limits.frame_max, open.frame_max.min(ours.frame_max));
        prop_assert_eq!(here.generation, open.generation.max(ours.generation));
        prop_assert_eq!((here.generation, here.repair, here.paths),
            (there.generation, there.repair, there.paths));
        prop_assert_eq!((here.to, here.own), (there.own, there.to));
        prop_assert_eq!((here.token, here.own_token), (there.own_token, there.token));
        prop_assert_eq!(here.first, [there.first[1], there.first[0]]);
        let selective = [open.repair, ours.repair] == [Repair::Selective; 2];
        prop_assert_eq!(here.repair == Repair::Selective, selective);
        let paths = if selective { open.paths.min(ours.paths) } else { 1 };
        prop_assert_eq!(here.paths, paths);
    }
}

/// A message that does not answer the attempt leaves it as it is; one that does makes one link.
// spec: OPEN-5, OPEN-7
#[test]
fn an_opener_takes_one_accept_that_answers_it() {
    let (open, ours) = (set_up(1, 0), set_up(2, 5));
    let mut opener = Opener::new(open, Pace::RACK, 1_000 * MILLISECOND, 0);
    let accept = ours.answering(&open);
    let strange = SetUp { answers: open.nonce ^ 2, ..accept };
    for strange in [strange, ours, set_up(3, 5).answering(&open)] {
        assert_eq!(opener.on_accept(&strange).map(|agreed| agreed.is_some()), Ok(false));
    }
    let older = SetUp { generation: open.generation - 1, ..accept };
    let reflected = SetUp { incarnation: open.incarnation, ..accept };
    for impossible in [older, reflected] {
        assert_eq!(opener.on_accept(&impossible).err(), Some(Malformed));
    }
    assert_eq!(opener.state(), Opening::Asking);
    let (agreed, _) = opener.on_accept(&accept).expect("good").expect("the first one");
    assert_eq!((agreed.to, agreed.own), (accept.index, open.index));
    assert_eq!(opener.on_accept(&accept).map(|agreed| agreed.is_some()), Ok(false));
    assert_eq!((opener.state(), opener.deadline()), (Opening::Accepted, u64::MAX));
    assert_eq!(opener.on_time(MILLISECOND, PAYLOAD), None);
}

/// Opens are sent at once and then at intervals that double, on all paths in turn, until the
/// owner's time is over.
// spec: OPEN-1, OPEN-6
#[test]
fn an_open_is_repeated_less_and_less_often() {
    let open = set_up(1, 0);
    let give_up = 5_000 * MILLISECOND;
    let mut opener = Opener::new(open, Pace::RACK, give_up, MILLISECOND);
    let (mut at, mut paths) = (vec![], vec![]);
    while opener.state() == Opening::Asking {
        let now = opener.deadline();
        if let Some(header) = opener.on_time(now, PAYLOAD) {
            assert_eq!((header.kind, header.to), (Kind::Open, 0));
            assert_eq!((header.token, header.generation), (open.nonce, open.generation));
            at.push((now - MILLISECOND) / MILLISECOND);
            assert_eq!(header.packet, at.len() as u64);
            paths.push(header.path);
            assert_eq!(opener.on_time(now, PAYLOAD), None, "one at a time");
        }
    }
    assert_eq!(at, [0, 10, 30, 70, 150, 310, 630, 1270, 2270, 3270, 4270]);
    assert_eq!(paths, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!((opener.state(), opener.deadline()), (Opening::GivenUp, u64::MAX));
    let late = set_up(2, 0).answering(&open);
    assert!(opener.on_accept(&late).expect("good").is_none(), "it has given up");
}

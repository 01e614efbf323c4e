//! Opening a link: set-ups, the side that asks, the side that accepts, resets.
mod common;
#[path = "common/dice.rs"]
mod dice;

use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::door::{Door, HALF_OPEN_MAX, HALF_OPEN_OF_ONE, Ration, reset_header};
use ayre_proto::link::frame::{Digest, Header, Kind};
use ayre_proto::link::open::{FRAME_LEAST, Opener, Opening, Pace, SETUP_BYTES, SetUp, agree};
use ayre_proto::link::race::WAYS_MAX;
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
        paths: 2,
        repair: Repair::Selective,
        owner: [0; 8].map(|_| dice.word()),
    }
}

fn set_ups() -> impl Strategy<Value = SetUp> {
    let words = (word(), word(), word(), word(), proptest::array::uniform8(word()));
    let halves = (1..=u32::MAX, any::<u32>(), any::<[u32; 3]>());
    let limits = (FRAME_LEAST..=u16::MAX, any::<u16>(), 1..=4u8, any::<bool>());
    (words, halves, limits).prop_map(|(words, halves, limits)| SetUp {
        nonce: words.0.max(1),
        answers: words.1,
        incarnation: words.2.max(1),
        token: words.3.max(1),
        generation: halves.0,
        index: halves.1,
        first: halves.2,
        frame_max: limits.0,
        number: limits.1,
        paths: limits.2,
        repair: if limits.3 { Repair::GoBackN } else { Repair::Selective },
        owner: words.4,
    })
}

proptest! {
    // spec: OPEN-2, OPEN-3
    #[test]
    fn a_set_up_travels_whole(set_up in set_ups()) {
        prop_assert_eq!(SetUp::parse(&set_up.encode()), Ok(set_up));
    }

    /// Whatever the bytes are, reading ends; and what it gives is written as it was read, but for
    /// the reserved bits.
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
                bytes[58..64].fill(0);
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

/// What is no answer to the attempt leaves it as it is; what is one makes one link.
// spec: OPEN-5, OPEN-7
#[test]
fn an_opener_takes_one_accept_that_answers_it() {
    let (open, ours) = (set_up(1, 0), set_up(2, 5));
    let mut opener = Opener::new(open, Pace::RACK, 1_000 * MILLISECOND, 0).of(ours.number);
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

/// By which ways the open goes, and after how many milliseconds, until `end`.
fn transmissions(opener: &mut Opener, end: u64) -> Vec<(u64, usize)> {
    let mut sent = vec![];
    while opener.state() == Opening::Asking && opener.deadline() < end * MILLISECOND {
        let now = opener.deadline();
        while let Some(header) = opener.on_time(now, PAYLOAD) {
            assert_eq!((header.kind, header.path), (Kind::Open, 0));
            sent.push((now / MILLISECOND, opener.way()));
        }
    }
    sent
}

/// An opener that may ask for one path, and for so many ways to it.
fn racer(ways: usize) -> Opener {
    let open = SetUp { paths: 1, ..set_up(1, 0) };
    Opener::new(open, Pace::RACK, 1_000 * MILLISECOND, 0).among(ways, 0)
}

// spec: OPEN-30
#[test]
fn each_way_has_a_head_start_before_the_next_one_and_a_pace_of_its_own() {
    let sent = transmissions(&mut racer(3), 200);
    let by = |way: usize| -> Vec<_> {
        sent.iter().filter(|(_, by)| *by == way).map(|(at, _)| *at).collect()
    };
    assert_eq!([by(0), by(1)], [vec![0, 10, 30, 70, 150], vec![50, 60, 80, 120]]);
    assert_eq!(by(2), [100, 110, 130, 170]);
    assert_eq!(transmissions(&mut racer(1), 200).len(), 5);
    let mut many = racer(100);
    let ways = transmissions(&mut many, 999).iter().map(|(_, way)| *way).max();
    assert_eq!(ways, Some(WAYS_MAX - 1), "there are at most so many");
}

// spec: OPEN-30
#[test]
fn a_way_that_is_refused_makes_room_for_the_next_one_and_the_last_one_ends_the_attempt() {
    let mut opener = racer(3);
    let asked = opener.on_time(0, PAYLOAD).expect("at once");
    let reset = reset_header(&asked, 3).expect("an open may be refused");
    assert!(opener.on_reset_by(0, &reset, MILLISECOND));
    assert_eq!(opener.state(), Opening::Asking, "there are others");
    assert_eq!(transmissions(&mut opener, 31), [(1, 1), (11, 1), (31, 1)][..2]);
    assert!(opener.on_reset_by(0, &reset, 20 * MILLISECOND), "again, which changes nothing");
    assert!(opener.on_reset_by(7, &reset, 20 * MILLISECOND), "by no way of ours");
    assert_eq!(opener.state(), Opening::Asking);
    assert!(opener.on_reset_by(1, &reset, 20 * MILLISECOND));
    assert_eq!(transmissions(&mut opener, 21), [(20, 2)]);
    assert!(opener.on_reset_by(2, &reset, 40 * MILLISECOND));
    assert_eq!((opener.state(), opener.deadline()), (Opening::Refused, u64::MAX));
}

// spec: OPEN-7, OPEN-30
#[test]
fn an_answer_by_any_way_ends_the_race() {
    let mut opener = racer(2);
    let open = *opener.ours();
    assert_eq!(transmissions(&mut opener, 51).last(), Some(&(50, 1)));
    let agreed = opener.on_accept(&set_up(2, 5).answering(&open)).expect("good");
    assert!(agreed.is_some());
    assert_eq!(opener.on_time(500 * MILLISECOND, PAYLOAD), None);
    assert_eq!(opener.deadline(), u64::MAX);
}

// spec: OPEN-11, OPEN-12
#[test]
fn an_opener_believes_a_reset_that_repeats_its_nonce() {
    let open = set_up(1, 0);
    let mut opener = Opener::new(open, Pace::RACK, 1_000 * MILLISECOND, 0);
    let asked = opener.on_time(0, PAYLOAD).expect("at once");
    let reset = reset_header(&asked, 3).expect("an open may be refused");
    assert_eq!((reset.kind, reset.token, reset.packet), (Kind::Reset, open.nonce, 1));
    assert!(!opener.on_reset(&Header { token: open.nonce ^ 1, ..reset }));
    assert!(!opener.on_reset(&Header { kind: Kind::Accept, ..reset }));
    assert_eq!(opener.state(), Opening::Asking);
    assert!(opener.on_reset(&reset));
    assert_eq!(opener.state(), Opening::Refused);
    assert!(!opener.on_reset(&reset), "once");
    let accept = set_up(2, 0).answering(&open);
    assert!(opener.on_accept(&accept).expect("good").is_none(), "it has been refused");
    for kind in [Kind::Accept, Kind::Reset] {
        assert_eq!(reset_header(&Header { kind, ..asked }, 3), None, "answers are not answered");
    }
}

/// What a half-open link's opener sends first.
fn confirmation(door: &Door, open: &SetUp) -> Header {
    let entry = door.get(door.find(open).expect("half-open")).expect("an entry");
    let (to, token, generation) = (entry.ours().index, entry.ours().token, entry.ours().generation);
    let header = entry.ours().accept_header(open, 0, 0, PAYLOAD);
    Header { kind: Kind::Probe, to, token, generation, ..header }
}

/// The same open has the same accept; only a frame with all that was agreed confirms it, once.
// spec: OPEN-8, OPEN-10
#[test]
fn a_half_open_link_is_confirmed_by_its_own_frame() {
    let (open, ours) = (set_up(1, 0), set_up(2, 3));
    let mut door = Door::new(Door::PATIENCE);
    assert_eq!(door.find(&open), None);
    let (place, left) = door.admit(1, &open, ours, 0).expect("a good open");
    assert!(left.is_none());
    assert_eq!(door.find(&open), Some(place));
    assert_eq!(door.get(place).map(|entry| *entry.ours()), Some(ours.answering(&open)));
    assert_eq!(door.with_index(ours.index), Some(place));
    assert_eq!((door.with_nonce(open.nonce), door.with_nonce(1)), (Some(place), None));
    let good = confirmation(&door, &open);
    let strange = [
        Header { token: good.token ^ 1, ..good },
        Header { to: good.to ^ 1, ..good },
        Header { generation: good.generation - 1, ..good },
        Header { kind: Kind::Open, ..good },
        Header { kind: Kind::Accept, ..good },
        Header { kind: Kind::Close, ..good },
        Header { kind: Kind::Reset, ..good },
    ];
    for header in strange {
        assert!(door.confirm(&header).is_none());
    }
    let (at, confirmed) = door.confirm(&good).expect("the good one");
    assert_eq!((at, *confirmed.theirs()), (place, open));
    assert!(door.confirm(&good).is_none() && door.is_empty());
}

/// A port that hears its own open, or an accept in place of an open, has no half-open link.
// spec: OPEN-3
#[test]
fn a_reflected_open_is_no_open() {
    let (open, ours) = (set_up(1, 0), set_up(2, 0));
    let mut door = Door::new(Door::PATIENCE);
    let own = SetUp { nonce: 99, ..ours };
    let accept = SetUp { answers: 5, ..open };
    for impossible in [own, accept] {
        assert_eq!(door.admit(1, &impossible, ours, 0).err(), Some(Malformed));
    }
    assert!(door.is_empty());
}

/// Of an opener's attempts the one that is confirmed wins: one that comes later, from before a
/// restart or from a recording, undoes nothing, and what is confirmed ends the others.
// spec: OPEN-9, OPEN-10
#[test]
fn whoever_confirms_is_the_one_that_was_meant() {
    let mut door = Door::new(Door::PATIENCE);
    let (old, new) = (set_up(1, 0), set_up(1, 1));
    for (nth, open) in [&new, &old].into_iter().enumerate() {
        door.admit(1, open, set_up(2, nth as u64), 0).expect("good");
    }
    let other = set_up(3, 0);
    door.admit(3, &other, set_up(2, 9), 0).expect("good");
    let (first, late) = (confirmation(&door, &new), confirmation(&door, &old));
    assert_eq!(door.confirm(&first).map(|(_, entry)| *entry.theirs()), Some(new));
    assert!(door.confirm(&late).is_none(), "the earlier incarnation is over");
    assert_eq!(door.find(&old), None);
    assert_eq!(door.expire(0).map(|(_, entry)| *entry.theirs()), Some(old), "the owner is told");
    assert!(door.expire(0).is_none());
    let others = confirmation(&door, &other);
    assert!(door.confirm(&others).is_some(), "another opener's stays");
}

/// A flood of opens in one name leaves the places of others alone; in all names it takes the
/// oldest. Each entry ends.
// spec: OPEN-9
#[test]
fn the_table_is_bounded_and_forgets() {
    let mut door = Door::new(Door::PATIENCE);
    let honest = set_up(1, 0);
    door.admit(1, &honest, set_up(2, 0), 0).expect("good");
    for nth in 1..100 {
        let (_, left) = door.admit(3, &set_up(3, nth), set_up(2, nth), nth).expect("good");
        let left = left.map(|entry| entry.theirs().generation);
        let oldest = nth.checked_sub(HALF_OPEN_OF_ONE as u64).filter(|nth| *nth > 0);
        assert_eq!(left, oldest.map(|nth| 1 + nth as u32), "its own oldest makes room");
    }
    assert_eq!(door.len(), 1 + HALF_OPEN_OF_ONE);
    assert!(door.find(&honest).is_some());
    for nth in 0..200u16 {
        let at = 100 + u64::from(nth);
        door.admit(4 + u64::from(nth), &set_up(4 + nth, 0), set_up(2, 0), at).expect("good");
        assert!(door.len() <= HALF_OPEN_MAX);
    }
    assert_eq!((door.len(), door.find(&honest)), (HALF_OPEN_MAX, None));
    assert_eq!(door.deadline(), Door::PATIENCE + 100 + 200 - HALF_OPEN_MAX as u64);
    assert!(door.expire(door.deadline() - 1).is_none());
    assert!(door.expire(door.deadline()).is_some());
    while door.expire(u64::MAX).is_some() {}
    assert_eq!((door.len(), door.deadline()), (0, u64::MAX));
}

/// A repeated open does not prolong its entry.
// spec: OPEN-8, OPEN-9
#[test]
fn an_open_that_is_repeated_ends_in_time() {
    let mut door = Door::new(100);
    let open = set_up(1, 0);
    door.admit(1, &open, set_up(2, 0), 50).expect("good");
    assert!(door.find(&open).is_some() && door.expire(149).is_none());
    assert!(door.expire(150).is_some() && door.find(&open).is_none());
}

// spec: OPEN-11
#[test]
fn resets_are_rationed() {
    let mut ration = Ration::new(3, 10, 5);
    let mut taken =
        |now: u64| std::iter::repeat_with(|| ration.take(now)).take_while(|is| *is).count();
    assert_eq!((taken(5), taken(14), taken(15), taken(24), taken(25)), (3, 0, 1, 0, 1));
    assert_eq!((taken(54), taken(10_000), taken(10_009), taken(10_010)), (2, 3, 0, 1));
}

//! Opening a link: set-ups, the side that asks, the side that accepts, resets.
mod common;
#[path = "common/dice.rs"]
mod dice;

use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::answer::{ANSWER_BYTES, Answer, answer_header, reset_header};
use ayre_proto::link::door::{
    ANSWERED_MAX, Asker, Door, HALF_OPEN_CALM, HALF_OPEN_MAX, HALF_OPEN_OF_ONE, HalfOpen, Place,
    Unfit, YOUNG,
};
use ayre_proto::link::frame::{Digest, Header, Kind};
use ayre_proto::link::open::{
    ANYBODY, By, FRAME_LEAST, Opener, Opening, SETUP_BYTES, SetUp, Trust, VERSION, agree,
};
use ayre_proto::link::race::Pace;
use ayre_proto::link::race::WAYS_MAX;
use ayre_proto::link::ration::{Ration, Rations};
use ayre_proto::refusal::Refusal;
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
        whom: 2,
        paths: 2,
        repair: Repair::Selective,
        owner: [0; 7].map(|_| dice.word()),
        cookie: 0,
    }
}

/// An open whose mark is its nonce, as where nothing is encrypted.
fn asker(opener: u64, open: &SetUp, is_proved: bool) -> Asker {
    Asker { opener, mark: open.nonce, host: 0, is_proved }
}

fn door(patience: u64) -> Door {
    Door::new(patience, Ration::new(1000, 1, 0))
}

type Admitted = Result<(Place, Option<HalfOpen>), Unfit>;

/// Takes in an open that is proved.
fn admit(door: &mut Door, opener: u64, open: &SetUp, ours: SetUp, now: u64) -> Admitted {
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
        whom: limits.1[1],
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

/// What is no answer to the attempt leaves it as it is; what is one makes one link.
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
    assert!(opener.on_time(0, PAYLOAD).is_some(), "at once");
    let no = |opener: &mut Opener, way: usize, now: u64| {
        let answer = (Answer::Refused(Refusal::Kind), By { path: 0, way });
        opener.on_answer(answer, Trust::Anybody, 1, now)
    };
    assert!(no(&mut opener, 0, MILLISECOND));
    assert_eq!(opener.state(), Opening::Asking, "there are others");
    assert_eq!(transmissions(&mut opener, 31), [(1, 1), (11, 1), (31, 1)][..2]);
    assert!(no(&mut opener, 0, 20 * MILLISECOND), "again, which changes nothing");
    assert!(no(&mut opener, 7, 20 * MILLISECOND), "by no way of ours");
    assert_eq!(opener.state(), Opening::Asking);
    assert!(no(&mut opener, 1, 20 * MILLISECOND));
    assert_eq!(transmissions(&mut opener, 21), [(20, 2)]);
    assert!(no(&mut opener, 2, 40 * MILLISECOND));
    assert_eq!((opener.state(), opener.deadline()), (Opening::Refused, u64::MAX));
}

/// A holder of the key is the one that is asked, by whichever way; a stranger ends no way.
// spec: OPEN-25, OPEN-30
#[test]
fn a_proved_refusal_ends_all_ways_and_one_without_proof_none() {
    let answer = (Answer::Refused(Refusal::Taken), By { path: 0, way: 1 });
    let mut opener = racer(3);
    assert!(!opener.on_answer(answer, Trust::Nobody, 1, 0));
    assert_eq!(transmissions(&mut opener, 101).len(), 8, "as if nothing had come");
    assert!(opener.on_answer(answer, Trust::Holder, 1, 0));
    assert_eq!(opener.state(), Opening::Refused);
}

/// A path that is too short is one of several; a true refusal of it ends that way alone.
// spec: OPEN-30
#[test]
fn a_proved_refusal_for_the_length_of_a_path_ends_that_way_alone() {
    let mut opener = racer(3);
    let no = |opener: &mut Opener, way: usize| {
        let answer = (Answer::Refused(Refusal::PathMtu(548)), By { path: 0, way });
        opener.on_answer(answer, Trust::Holder, 1, 0)
    };
    assert!(no(&mut opener, 0) && no(&mut opener, 2));
    assert_eq!(opener.state(), Opening::Asking, "there is another one");
    assert_eq!(transmissions(&mut opener, 1), [(0, 1)]);
    assert!(no(&mut opener, 1));
    assert_eq!(opener.state(), Opening::Refused);
    assert_eq!(opener.refusal(), Some(Refusal::PathMtu(548)));
}

/// A cookie is good by the way by which it has come: the others wait.
// spec: OPEN-24, OPEN-30
#[test]
fn who_asks_for_another_open_gets_it_by_the_same_way_first() {
    let mut opener = racer(3);
    assert_eq!(transmissions(&mut opener, 51).last(), Some(&(50, 1)));
    let now = 55 * MILLISECOND;
    assert!(opener.on_answer((Answer::Again(5), By { path: 0, way: 1 }), Trust::Holder, 77, now));
    assert_eq!(transmissions(&mut opener, 106), [(55, 1), (75, 1), (105, 0), (105, 2)][..]);
    assert_eq!(opener.ours().nonce, 77);
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

fn by(path: u8) -> By {
    By { path, way: 0 }
}

/// An opener of the port of this number, and the header of its first open.
fn asking(whom: u16) -> (Opener, Header) {
    let open = SetUp { whom, ..set_up(1, 0) };
    let mut opener = Opener::new(open, Pace::RACK, 1_000 * MILLISECOND, 0);
    let asked = opener.on_time(0, PAYLOAD).expect("at once");
    (opener, asked)
}

// spec: OPEN-1
#[test]
fn opens_and_accepts_say_the_version() {
    let (opener, asked) = asking(2);
    assert_eq!((asked.kind, asked.seq), (Kind::Open, VERSION));
    let accept = set_up(2, 0).answering(opener.ours());
    let header = accept.accept_header(opener.ours(), 0, 0, PAYLOAD);
    assert_eq!((header.kind, header.seq), (Kind::Accept, VERSION));
}

// spec: OPEN-11, OPEN-12
#[test]
fn an_opener_believes_an_answer_that_repeats_its_nonce() {
    let (mut opener, asked) = asking(2);
    let open = *opener.ours();
    let reset = reset_header(&asked, 3).expect("an open may be refused");
    assert_eq!((reset.kind, reset.token, reset.packet), (Kind::Reset, open.nonce, 1));
    assert!(!opener.is_answered_by(&Header { token: open.nonce ^ 1, ..reset }));
    assert!(!opener.is_answered_by(&Header { kind: Kind::Accept, ..reset }));
    assert!(opener.is_answered_by(&reset));
    assert!(opener.on_answer((Answer::Refused(Refusal::Taken), by(0)), Trust::Holder, 9, 1));
    assert_eq!((opener.state(), opener.refusal()), (Opening::Refused, Some(Refusal::Taken)));
    assert!(!opener.is_answered_by(&reset), "once");
    assert!(!opener.on_answer((Answer::Again(5), by(0)), Trust::Holder, 9, 1), "once");
    let accept = set_up(2, 0).answering(&open);
    assert!(opener.on_accept(&accept).expect("good").is_none(), "it has been refused");
    for kind in [Kind::Accept, Kind::Reset] {
        assert_eq!(reset_header(&Header { kind, ..asked }, 3), None, "answers are not answered");
    }
}

/// Who does not hold the key cannot end an opening; what he says is told if it is in vain.
// spec: OPEN-25
#[test]
fn an_answer_without_proof_changes_nothing_but_the_reason_in_the_end() {
    let (mut opener, _) = asking(2);
    let open = *opener.ours();
    assert!(!opener.on_answer((Answer::Refused(Refusal::Version(9)), by(0)), Trust::Nobody, 7, 1));
    assert!(!opener.on_answer((Answer::Again(5), by(0)), Trust::Nobody, 7, 1));
    assert_eq!((opener.state(), *opener.ours()), (Opening::Asking, open));
    let accepted = opener.clone().on_accept(&set_up(2, 0).answering(&open));
    assert!(accepted.expect("good").is_some(), "the true accept makes a link");
    assert_eq!(opener.on_time(1_000 * MILLISECOND, PAYLOAD), None);
    assert_eq!((opener.state(), opener.refusal()), (Opening::GivenUp, Some(Refusal::Version(9))));
}

/// With a cookie it is another attempt, at once; but not ever again at once.
// spec: OPEN-24
#[test]
fn an_opener_that_is_asked_to_comes_again_with_the_cookie() {
    let (mut opener, _) = asking(2);
    let first = *opener.ours();
    assert!(opener.on_answer((Answer::Again(5), by(1)), Trust::Holder, 77, 1));
    let again = SetUp { nonce: 77, cookie: 5, ..first };
    assert_eq!((*opener.ours(), opener.deadline()), (again, 1));
    let header = opener.on_time(1, PAYLOAD).expect("at once");
    assert_eq!((header.token, header.packet, header.path), (77, 2, 1), "where it was asked to");
    let late = set_up(2, 0).answering(&first);
    assert!(opener.on_accept(&late).expect("good").is_none(), "of the attempt before");
    let at_once = (2..100).take_while(|nth| {
        assert!(
            opener.on_answer((Answer::Again(*nth), by(0)), Trust::Holder, 100 + nth, 2),
            "the newest cookie"
        );
        opener.on_time(2, PAYLOAD).is_some()
    });
    assert_eq!(at_once.count(), 2, "an acceptor that is never content");
    assert!(opener.on_accept(&set_up(2, 0).answering(&opener.ours().clone())).is_ok());
}

// spec: OPEN-11, OPEN-23
#[test]
fn an_answer_travels_whole_and_is_no_longer_than_the_open() {
    let answers = [
        Answer::Again(0),
        Answer::Again(u64::MAX),
        Answer::Refused(Refusal::Unknown),
        Answer::Refused(Refusal::Version(2)),
        Answer::Refused(Refusal::Full(2048)),
        Answer::Refused(Refusal::Key),
    ];
    for answer in answers {
        let bytes = answer.encode([3, 4]);
        assert_eq!(Answer::parse(&bytes), Ok((answer, [3, 4])));
        for len in 1..2 * ANSWER_BYTES {
            let mut other = bytes.to_vec();
            other.resize(len, 0);
            assert_eq!(Answer::parse(&other).is_ok(), len == ANSWER_BYTES, "{len}");
        }
    }
    assert_eq!(Answer::parse(&[]), Ok((Answer::Refused(Refusal::Unknown), [0; 2])));
    let (_, open) = asking(2);
    let digest = Digest { len: ANSWER_BYTES as u16, crc: 1 };
    let header = answer_header(&open, 3, digest).expect("an open may be answered");
    assert_eq!((header.payload, header.token), (digest, open.token));
    let short = Digest { len: ANSWER_BYTES as u16 - 1, crc: 1 };
    assert_eq!(answer_header(&Header { payload: short, ..open }, 3, digest), None);
    assert_eq!(answer_header(&Header { kind: Kind::Data, ..open }, 3, digest), None);
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
    let mut door = door(Door::PATIENCE);
    assert_eq!(door.find(&open), None);
    let (place, left) = admit(&mut door, 1, &open, ours, 0).expect("a good open");
    assert!(left.is_none());
    assert_eq!(door.find(&open), Some(place));
    assert_eq!(door.get(place).map(|entry| *entry.ours()), Some(ours.answering(&open)));
    assert_eq!(door.with_index(ours.index), Some(place));
    assert_eq!((door.with_mark(open.nonce), door.with_mark(1)), (Some(place), None));
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
        assert!(door.confirm(&header, 1).is_none());
    }
    let (at, confirmed) = door.confirm(&good, 1).expect("the good one");
    assert_eq!((at, *confirmed.theirs()), (place, open));
    assert!(door.confirm(&good, 1).is_none() && door.is_empty());
}

/// A port that hears its own open, or an accept in place of an open, has no half-open link.
// spec: OPEN-3
#[test]
fn a_reflected_open_is_no_open() {
    let (open, ours) = (set_up(1, 0), set_up(2, 0));
    let mut door = door(Door::PATIENCE);
    let own = SetUp { nonce: 99, ..ours };
    let accept = SetUp { answers: 5, ..open };
    for impossible in [own, accept] {
        assert_eq!(admit(&mut door, 1, &impossible, ours, 0).err(), Some(Unfit::Malformed));
    }
    assert!(door.is_empty());
}

/// Of an opener's attempts the one that is confirmed wins: one that comes later, from before a
/// restart or from a recording, undoes nothing, and what is confirmed ends the others.
// spec: OPEN-9, OPEN-10
#[test]
fn whoever_confirms_is_the_one_that_was_meant() {
    let mut door = door(Door::PATIENCE);
    let (old, new) = (set_up(1, 0), set_up(1, 1));
    for (nth, open) in [&new, &old].into_iter().enumerate() {
        admit(&mut door, 1, open, set_up(2, nth as u64), 0).expect("good");
    }
    let other = set_up(3, 0);
    admit(&mut door, 3, &other, set_up(2, 9), 0).expect("good");
    let (first, late) = (confirmation(&door, &new), confirmation(&door, &old));
    assert_eq!(door.confirm(&first, 1).map(|(_, entry)| *entry.theirs()), Some(new));
    assert!(door.confirm(&late, 1).is_none(), "the earlier incarnation is over");
    assert_eq!(door.find(&old), None);
    assert_eq!(door.expire(0).map(|(_, entry)| *entry.theirs()), Some(old), "the owner is told");
    assert!(door.expire(0).is_none());
    let others = confirmation(&door, &other);
    assert!(door.confirm(&others, 1).is_some(), "another opener's stays");
}

/// A flood of opens in one name leaves the places of others alone; in all names it takes the
/// oldest, but none that may still be confirmed. Each entry ends.
// spec: OPEN-9
#[test]
fn the_table_is_bounded_and_forgets() {
    let mut door = door(Door::PATIENCE);
    let honest = set_up(1, 0);
    admit(&mut door, 1, &honest, set_up(2, 0), 0).expect("good");
    for nth in 1..100 {
        let at = nth * YOUNG;
        let (_, left) = admit(&mut door, 3, &set_up(3, nth), set_up(2, nth), at).expect("good");
        let left = left.map(|entry| entry.theirs().generation);
        let oldest = nth.checked_sub(HALF_OPEN_OF_ONE as u64).filter(|nth| *nth > 0);
        assert_eq!(left, oldest.map(|nth| 1 + nth as u32), "its own oldest makes room");
    }
    assert_eq!(door.len(), 1 + HALF_OPEN_OF_ONE);
    assert!(door.find(&honest).is_some());
    let begin = 100 * YOUNG;
    for nth in 0..200u16 {
        let at = begin + u64::from(nth) * YOUNG;
        let admitted = admit(&mut door, 4 + u64::from(nth), &set_up(4 + nth, 0), set_up(2, 0), at);
        admitted.expect("the oldest is old enough");
        let next = admit(&mut door, 1000, &set_up(999, 0), set_up(2, 0), at).map(|_| ());
        assert!(next.is_ok() || door.len() == HALF_OPEN_MAX);
        assert!(door.len() <= HALF_OPEN_MAX);
    }
    assert_eq!((door.len(), door.find(&honest)), (HALF_OPEN_MAX, None));
    let first = door.deadline();
    assert!(door.expire(first - 1).is_none() && door.expire(first).is_some());
    while door.expire(u64::MAX).is_some() {}
    assert_eq!((door.len(), door.deadline()), (0, u64::MAX));
}

/// Whether this open is let in as one that nothing is known of but whom it names.
fn let_in(door: &mut Door, opener: u64, open: &SetUp, now: u64) -> Option<Admitted> {
    let asker = asker(opener, open, false);
    let is_named = open.whom == 2;
    let may = door.lets_in(&asker, is_named, now);
    may.then(|| door.admit(asker, open, set_up(2, now % 99), now))
}

/// Recorded opens of one opener behind the true one, or before it: the true one gets its link.
// spec: OPEN-9, OPEN-20, OPEN-21
#[test]
fn recorded_opens_do_not_shut_their_opener_out() {
    let recorded: Vec<_> = (1..=8).map(|nth| set_up(1, nth)).collect();
    let open = set_up(1, 0);
    // Behind it.
    let mut behind = door(Door::PATIENCE);
    assert!(let_in(&mut behind, 1, &open, 0).is_some_and(|admitted| admitted.is_ok()));
    for (nth, old) in recorded.iter().enumerate() {
        let admitted = let_in(&mut behind, 1, old, 1 + nth as u64).expect("there are few");
        assert_eq!(admitted.is_ok(), nth + 1 < HALF_OPEN_OF_ONE, "no young place is taken");
    }
    let first = confirmation(&behind, &open);
    assert_eq!(behind.confirm(&first, 1).map(|(_, entry)| *entry.theirs()), Some(open));
    // Before it: it comes again with a cookie, and takes the place of one without.
    let mut before = door(Door::PATIENCE);
    for old in &recorded[..HALF_OPEN_OF_ONE] {
        assert!(let_in(&mut before, 1, old, 0).is_some_and(|admitted| admitted.is_ok()));
    }
    assert_eq!(let_in(&mut before, 1, &open, 1).map(|got| got.err()), Some(Some(Unfit::Crowded)));
    let proved = asker(1, &open, true);
    assert!(before.lets_in(&proved, false, 1));
    let (_, left) = before.admit(proved, &open, set_up(2, 99), 1).expect("a cookie counts");
    assert_eq!(left.map(|left| *left.theirs()), Some(recorded[0]));
    for old in &recorded[HALF_OPEN_OF_ONE..] {
        let again = let_in(&mut before, 1, old, 2 * YOUNG);
        let left = again.and_then(Result::ok).and_then(|(_, left)| left);
        assert!(left.is_none_or(|left| *left.theirs() != open), "no place of one with a cookie");
    }
    let first = confirmation(&before, &open);
    assert!(before.confirm(&first, 3 * YOUNG).is_some());
}

/// Somebody with true addresses, and cookies for them, opens in many names: those of other hosts
/// get in all the same, at once, and keep their places; he has what they leave him.
// spec: OPEN-9
#[test]
fn one_host_that_fills_all_places_keeps_no_other_out() {
    let mut door = door(Door::PATIENCE);
    let mut number = 0;
    let mut knock = |door: &mut Door, host: u64| {
        number += 1;
        let open = set_up(number, 0);
        let asker = Asker { host, ..asker(number.into(), &open, true) };
        let admitted = door.admit(asker, &open, set_up(2, number.into()), 0);
        (open, admitted.map(|(_, left)| left.map(|left| *left.theirs())))
    };
    let flood: Vec<_> = (0..HALF_OPEN_MAX).map(|_| knock(&mut door, 1)).collect();
    assert!(flood.iter().all(|(_, admitted)| *admitted == Ok(None)), "they are free");
    assert_eq!(knock(&mut door, 1).1, Err(Unfit::Crowded), "no young place of its own host");
    let mut honest = Vec::new();
    for nth in 0..HALF_OPEN_MAX / 4 {
        for host in [2, 3] {
            let (open, admitted) = knock(&mut door, host);
            let left = admitted.expect("another host").expect("for one of the many");
            assert!(flood.iter().any(|(flooded, _)| *flooded == left), "{nth} of {host}");
            honest.push(open);
        }
        assert_eq!(knock(&mut door, 1).1, Err(Unfit::Crowded));
        if honest.len() == 2 * 20 {
            break;
        }
    }
    assert!(honest.iter().all(|open| door.find(open).is_some()), "nobody else has left");
    let stranger = set_up(9999, 0);
    let unproved = Asker { host: 4, ..asker(9999, &stranger, false) };
    let admitted = door.admit(unproved, &stranger, set_up(2, 9999), 0);
    assert_eq!(admitted.err(), Some(Unfit::Crowded), "without a cookie it is nobody's host");
}

/// What was answered is not answered as a new one again, whether there is a link of it or not.
// spec: OPEN-21
#[test]
fn an_open_that_was_answered_is_known() {
    let mut door = Door::new(100, Ration::new(u32::MAX, 1, 0));
    let opens: Vec<_> = (0..ANSWERED_MAX as u64).map(|nth| set_up(1, nth)).collect();
    for (nth, open) in opens.iter().enumerate() {
        assert!(!door.was_answered(open.nonce));
        assert!(let_in(&mut door, nth as u64, open, nth as u64 * 100).is_some());
        while door.expire(u64::MAX).is_some() {}
    }
    for open in &opens {
        assert!(let_in(&mut door, 7, open, u64::MAX).is_none(), "a recording");
        assert!(!door.lets_in(&asker(7, open, true), true, u64::MAX), "nor with its cookie");
    }
}

/// Who proves nothing gets few places at a time, few in a while, and none in nobody's name.
// spec: OPEN-20, OPEN-21
#[test]
fn opens_without_a_cookie_are_rationed() {
    let mut door = Door::rack(0);
    let nobody = SetUp { whom: ANYBODY, ..set_up(1, 0) };
    assert!(let_in(&mut door, 1, &nobody, 0).is_none(), "it may be meant for another port");
    let others = SetUp { whom: 3, ..set_up(1, 0) };
    assert!(let_in(&mut door, 1, &others, 0).is_none());
    let names = 10..110;
    let taken =
        names.filter(|name| let_in(&mut door, u64::from(*name), &set_up(*name, 0), 0).is_some());
    assert_eq!(taken.count(), HALF_OPEN_CALM);
    let proved = asker(5, &set_up(5, 0), true);
    assert!(door.lets_in(&proved, false, 0), "a cookie is a cookie");
    while door.expire(Door::PATIENCE).is_some() {}
    let mut count = 0;
    for nth in 0..100 {
        // Each is confirmed, or its time is over, before the next one comes.
        let now = Door::PATIENCE + nth;
        count += usize::from(let_in(&mut door, 9, &set_up(200 + nth as u16, 0), now).is_some());
        while door.expire(u64::MAX).is_some() {}
    }
    assert_eq!(count, 32, "at once");
    assert!(let_in(&mut door, 9, &set_up(999, 0), Door::PATIENCE + 10 * MILLISECOND).is_some());
}

/// An accept goes again, but not for each of a flood of copies.
// spec: OPEN-8
#[test]
fn an_accept_is_repeated_at_a_pace() {
    let mut door = door(Door::PATIENCE);
    let open = set_up(1, 0);
    let (place, _) = admit(&mut door, 1, &open, set_up(2, 0), 0).expect("good");
    let repeats = (0..100).filter(|at| door.repeat(place, at * MILLISECOND)).count();
    assert_eq!(repeats, 24);
}

/// A repeated open does not prolong its entry.
// spec: OPEN-8, OPEN-9, OPEN-10
#[test]
fn an_open_that_is_repeated_ends_in_time() {
    let mut door = door(100);
    let open = set_up(1, 0);
    admit(&mut door, 1, &open, set_up(2, 0), 50).expect("good");
    assert!(door.find(&open).is_some() && door.expire(149).is_none());
    let late = confirmation(&door, &open);
    assert!(door.confirm(&late, 150).is_none(), "its time is over, whoever looks when");
    assert!(door.expire(150).is_some() && door.find(&open).is_none());
}

// spec: OPEN-22
#[test]
fn who_sends_much_leaves_the_ration_of_others_alone() {
    let mut rations = Rations::rack(0);
    let taken = |rations: &mut Rations, address: u64| {
        std::iter::repeat_with(|| rations.take(address, 0)).take_while(|is| *is).count()
    };
    assert_eq!((taken(&mut rations, 7), taken(&mut rations, 7)), (16, 0));
    assert_eq!(taken(&mut rations, 8), 16);
    assert!(rations.take(7, 4 * MILLISECOND) && !rations.take(7, 4 * MILLISECOND));
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

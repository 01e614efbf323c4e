//! Several ways to ask by, of which one is to win.
use super::{MILLISECOND, PAYLOAD, set_up};
use ayre_proto::link::answer::Answer;
use ayre_proto::link::frame::Kind;
use ayre_proto::link::open::{By, Opener, Opening, SetUp, Trust};
use ayre_proto::link::race::{Pace, WAYS_MAX};
use ayre_proto::refusal::Refusal;

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

/// An opener that may ask for one path, and for this number of ways to it.
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

/// A holder of the key is the one that is asked, by any way; a sender without it ends no way.
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
fn a_cookie_is_returned_by_the_address_it_came_from_first() {
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

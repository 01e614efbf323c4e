//! Answers that refuse, or ask for another open.
use super::{MILLISECOND, PAYLOAD, set_up};
use ayre_proto::link::answer::{ANSWER_BYTES, Answer, answer_header, reset_header};
use ayre_proto::link::frame::{Digest, Header, Kind};
use ayre_proto::link::open::{By, Opener, Opening, SetUp, Trust, VERSION};
use ayre_proto::link::race::Pace;
use ayre_proto::refusal::Refusal;

fn by(path: u8) -> By {
    By { path, way: 0 }
}

/// An opener of the port of this number, and the header of its first open.
fn asking(destination: u16) -> (Opener, Header) {
    let open = SetUp { destination, ..set_up(1, 0) };
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

/// An attacker without the key cannot end an opening; its answer is reported if the opening fails.
// spec: OPEN-25
#[test]
fn an_unproved_answer_affects_only_the_final_reason() {
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
fn an_opener_that_gets_a_cookie_retries_with_it() {
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

//! Openings between ports in memory: the cost of recordings, floods and unknown senders, and who
//! gets in.
mod deadlines;

use super::*;
use crate::error::AttemptOutcome;
use crate::link::drive::drive;
use crate::link::handshake::JobKey;
use crate::link::handshake::tests::curve_operations;
use crate::link::link_end::DATAGRAM_LEAST;
use crate::link::opening::{Destination, Unopened};
use crate::net::hints::Hint;
use crate::sys::bell::Bell;
use ayre_proto::link::answer::Answer;
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Kind};
use ayre_proto::link::open::{Opening, VERSION};
use ayre_proto::refusal::Refusal;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::time::Duration;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const DATAGRAM_MAX: usize = 1400;
const KEY: [u8; 32] = [7; 32];
/// The number of the port that is asked, and of the one that asks.
const ACCEPTOR: u16 = 0;
const OPENER: u16 = 2;

fn sealed() -> Protection {
    Protection::Sealed(JobKey::from_bytes(KEY).into())
}

/// A port's links.
fn port(number: u16, protection: Protection) -> Links {
    let identity = Identity {
        number,
        endpoint: None,
        ring: None,
        protection,
        drive: drive([60, 60].map(Duration::from_secs).into()),
        any_mail: Arc::new(AtomicBool::new(false)),
        responder: Arc::new(Mutex::new(Responder::new(Arc::default()))),
        bell: Bell::new().expect("a counter").into(),
    };
    Links::new(identity, 1, Chance::System, 0).expect("memory")
}

/// The one that is asked, which lets in all others.
fn acceptor(protection: Protection) -> Links {
    let mut links = port(ACCEPTOR, protection);
    links.acceptor.accept_all_but(Some(vec![ACCEPTOR]));
    links
}

fn address(number: u16) -> SocketAddr {
    ([10, 0, (number >> 8) as u8, number as u8], 7000).into()
}

/// Asks the acceptor for a link, by its number or not.
fn ask(links: &mut Links, destination: Option<u16>, now: u64) -> usize {
    let ways = vec![Way { net: 0, to: address(ACCEPTOR) }];
    let request =
        Request::new(Destination::Port(destination), (ways, false), DATAGRAM_MAX, 60 * SECOND);
    links.ask_for(request, now).expect("an index")
}

/// The datagrams that it sends now.
fn said(links: &mut Links, now: u64) -> Vec<Vec<u8>> {
    links.serve_all(now);
    let all = links.outboxes[0].iter().map(|(_, bytes)| bytes.to_vec()).collect();
    links.outboxes[0].clear();
    all
}

fn hear(links: &mut Links, from: SocketAddr, mut bytes: Vec<u8>, now: u64) {
    let way = Way { net: 0, to: from };
    links.looks.look(now);
    links.looks.emptied();
    links.on_datagram((way, || DATAGRAM_MAX), &mut bytes, now);
}

/// Opens of one port, each of another attempt, as somebody has recorded them.
fn recorded(number: u16, destination: Option<u16>, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|_| {
            let mut links = port(number, sealed());
            ask(&mut links, destination, 0);
            said(&mut links, 0).remove(0)
        })
        .collect()
}

/// Carries what both say for a while, in which a link comes up.
fn carry(opener: &mut Links, acceptor: &mut Links, begin: u64) {
    for nth in 0..64 {
        let now = begin + nth * MILLISECOND;
        let (to, from) = (said(opener, now), said(acceptor, now));
        to.into_iter().for_each(|bytes| hear(acceptor, address(OPENER), bytes, now));
        from.into_iter().for_each(|bytes| hear(opener, address(ACCEPTOR), bytes, now));
    }
}

/// Whether a port of this number gets its link now.
fn gets_in(acceptor: &mut Links, number: u16, destination: Option<u16>, now: u64) -> bool {
    let mut opener = port(number, sealed());
    let index = ask(&mut opener, destination, now);
    carry(&mut opener, acceptor, now);
    opener.outcome(index) == Some(Opening::Accepted)
}

fn kind_of(bytes: &[u8]) -> Kind {
    Header::parse(bytes, crc32c).expect("a bare frame").kind
}

/// The acceptor's answer to this open from the opener's address.
fn answers(acceptor: &mut Links, open: &[u8], now: u64) -> Vec<Vec<u8>> {
    hear(acceptor, address(OPENER), open.to_vec(), now);
    said(acceptor, now)
}

// spec: OPEN-20, OPEN-21, OPEN-24
#[test]
fn a_port_is_let_in_by_its_number_or_with_a_cookie() {
    for destination in [None, Some(ACCEPTOR)] {
        for protection in [sealed(), Protection::Plain] {
            let mut acceptor = acceptor(protection.clone());
            let mut opener = port(OPENER, protection);
            let index = ask(&mut opener, destination, 0);
            let open = said(&mut opener, 0).remove(0);
            let answer = answers(&mut acceptor, &open, 0).remove(0);
            let expected = if destination.is_none() { Kind::Reset } else { Kind::Accept };
            assert_eq!(kind_of(&answer), expected);
            assert!(answer.len() <= open.len());
            hear(&mut opener, address(ACCEPTOR), answer, 0);
            carry(&mut opener, &mut acceptor, 0);
            assert_eq!(opener.outcome(index), Some(Opening::Accepted), "{destination:?}");
        }
    }
}

/// An open for another port, which somebody has led astray or recorded there.
// spec: OPEN-5, OPEN-20
#[test]
fn an_open_for_another_port_is_not_answered() {
    let mut acceptor = acceptor(sealed());
    let elsewhere = recorded(OPENER, Some(5), 1).remove(0);
    let cost = curve_operations(|| assert!(answers(&mut acceptor, &elsewhere, 0).is_empty()));
    assert_eq!((cost, acceptor.counters.refused), (0, 1));
}

/// Each of them was answered once, and none was confirmed.
// spec: OPEN-21, SEAL-9
#[test]
fn a_recorded_open_that_was_answered_costs_no_operation_on_the_curve() {
    let mut acceptor = acceptor(sealed());
    let opens = recorded(OPENER, Some(ACCEPTOR), 4);
    let first = curve_operations(|| {
        for open in &opens {
            assert_eq!(kind_of(&answers(&mut acceptor, open, 0)[0]), Kind::Accept);
        }
    });
    assert_eq!(first, 2 * 4);
    let later = curve_operations(|| {
        for round in 0..1000 {
            let now = round * 20 * MILLISECOND;
            opens.iter().for_each(|open| drop(answers(&mut acceptor, open, now)));
        }
    });
    assert_eq!(later, 0, "neither while they have places nor afterwards");
    assert!(gets_in(&mut acceptor, OPENER, Some(ACCEPTOR), 30 * SECOND));
}

// spec: OPEN-9, OPEN-21
#[test]
fn replayed_opens_cost_little_and_do_not_block_openers() {
    let opens = [recorded(OPENER, Some(ACCEPTOR), 64), recorded(OPENER, None, 16)].concat();
    let mut acceptor = acceptor(sealed());
    for second in 0..4 {
        let cost = curve_operations(|| {
            for nth in 0..2000 {
                let now = second * 10 * SECOND + nth as u64 * MILLISECOND / 4;
                let open = opens[nth % opens.len()].clone();
                hear(&mut acceptor, ([10, 9, 9, nth as u8], 7).into(), open, now);
                said(&mut acceptor, now);
            }
        });
        assert!(cost <= 2 * 64, "{cost} operations for 2000 opens");
        let now = second * 10 * SECOND + SECOND / 2;
        assert!(gets_in(&mut acceptor, 100 + second as u16, Some(ACCEPTOR), now), "another port");
        acceptor.acceptor.accept_all_but(Some(vec![ACCEPTOR]));
    }
    assert!(gets_in(&mut acceptor, OPENER, Some(ACCEPTOR), 35 * SECOND), "the port itself");
}

/// As many as one opener may have places, sent once, right behind the true open or before it.
// spec: OPEN-9, OPEN-24
#[test]
fn a_burst_of_recorded_opens_does_not_shut_their_opener_out() {
    for is_before in [false, true] {
        let mut acceptor = acceptor(sealed());
        let mut opener = port(OPENER, sealed());
        let index = ask(&mut opener, Some(ACCEPTOR), 0);
        let open = said(&mut opener, 0).remove(0);
        let burst = recorded(OPENER, Some(ACCEPTOR), 6);
        let mut all = vec![open];
        all.extend(burst);
        if is_before {
            all.rotate_left(1);
        }
        for open in all {
            for answer in answers(&mut acceptor, &open, 0) {
                hear(&mut opener, address(ACCEPTOR), answer, 0);
            }
        }
        carry(&mut opener, &mut acceptor, MILLISECOND);
        assert_eq!(opener.outcome(index), Some(Opening::Accepted), "{is_before}");
    }
}

/// A cookie is good where it was given, and for a while.
// spec: OPEN-21
#[test]
fn a_cookie_is_of_one_address_and_of_now() {
    let mut acceptor = acceptor(sealed());
    let mut opener = port(OPENER, sealed());
    ask(&mut opener, None, 0);
    let open = said(&mut opener, 0).remove(0);
    let again = answers(&mut acceptor, &open, 0).remove(0);
    hear(&mut opener, address(ACCEPTOR), again, 0);
    let proved = said(&mut opener, 0).remove(0);
    let from_elsewhere = curve_operations(|| {
        hear(&mut acceptor, address(9), proved.clone(), 0);
        assert_eq!(kind_of(&said(&mut acceptor, 0)[0]), Kind::Reset);
        assert_eq!(kind_of(&answers(&mut acceptor, &proved, 20 * SECOND)[0]), Kind::Reset);
    });
    assert_eq!(from_elsewhere, 0);
    assert_eq!(kind_of(&answers(&mut acceptor, &proved, 7 * SECOND)[0]), Kind::Accept);
}

/// An accept goes where its open came from, but nobody has many sent to somebody else.
// spec: OPEN-8, OPEN-11, OPEN-22
#[test]
fn a_port_is_no_reflector() {
    for protection in [sealed(), Protection::Plain] {
        let is_sealed = matches!(protection, Protection::Sealed(_));
        let mut acceptor = acceptor(protection.clone());
        let mut opener = port(OPENER, protection);
        ask(&mut opener, Some(ACCEPTOR), 0);
        let open = said(&mut opener, 0).remove(0);
        let mut sent = 0;
        for _ in 0..1000 {
            sent += answers(&mut acceptor, &open, 0).len();
        }
        assert_eq!(sent, 1, "one open in a moment");
        let mut sent = 0;
        for nth in 0..1000 {
            let mut other = open.clone();
            // In a plain port's case these are opens that somebody makes up.
            let at = if is_sealed { 0 } else { HEADER_BYTES };
            other[at + 4] = nth as u8;
            let header = Header::parse(&open, crc32c).expect("an open");
            let nonce = u64::from_le_bytes(other[HEADER_BYTES..][..8].try_into().expect("8"));
            let token = if is_sealed { header.token } else { nonce };
            let payload = Digest::of(&other[HEADER_BYTES..], crc32c);
            let header = Header { token, payload, ..header }.encode(crc32c);
            let forged = [&header[..], &other[HEADER_BYTES..]].concat();
            hear(&mut acceptor, address(77), forged, 0);
            sent += said(&mut acceptor, 0).len();
        }
        assert!(sent <= 32 + 16, "{sent} answers to one address");
    }
}

/// A reset or an answer with these words and this proof, to an open.
fn forged(open: &[u8], answer: Answer, proof: [u64; 2]) -> Vec<u8> {
    let open = Header::parse(open, crc32c).expect("an open");
    let payload = answer.encode(proof);
    let header = ayre_proto::link::answer::answer_header(&open, 0, Digest::of(&payload, crc32c));
    [&header.expect("a short one").encode(crc32c)[..], &payload].concat()
}

/// The outcome of an open of this protection and version at an acceptor of that one: how it ends
/// within its time, and the reason.
fn refused(
    (ours, theirs): (Protection, Protection),
    change: impl Fn(&mut Links, &mut Links),
    version: u32,
) -> (Option<Opening>, Option<Refusal>) {
    let mut acceptor = acceptor(theirs);
    let mut opener = port(OPENER, ours);
    change(&mut opener, &mut acceptor);
    let index = ask(&mut opener, Some(ACCEPTOR), 0);
    let open = said(&mut opener, 0).remove(0);
    let header = Header { seq: version, ..Header::parse(&open, crc32c).expect("an open") };
    let open = [&header.encode(crc32c)[..], &open[HEADER_BYTES..]].concat();
    for answer in answers(&mut acceptor, &open, 0) {
        assert_eq!(kind_of(&answer), Kind::Reset);
        assert!(answer.len() <= open.len(), "no longer than the open");
        hear(&mut opener, address(ACCEPTOR), answer, 0);
    }
    (opener.outcome(index), opener.refusal(index))
}

// spec: OPEN-12, OPEN-25, OPEN-27, LIFE-27
#[test]
fn a_refusal_has_a_reason_and_ends_an_opening_if_it_is_proved() {
    let nothing = |_: &mut Links, _: &mut Links| {};
    let taken = |_: &mut Links, acceptor: &mut Links| {
        acceptor.acceptor.accept_all_but(Some(vec![ACCEPTOR, OPENER]));
    };
    let endpoint = |opener: &mut Links, _: &mut Links| opener.identity.number = opening::NO_NUMBER;
    let other_key = || Protection::Sealed(JobKey::from_bytes([8; 32]).into());
    let ended = |why| (Some(Opening::Refused), Some(why));
    let in_doubt = |why| (None, Some(why));
    let [sealed, plain] = [|| sealed(), || Protection::Plain];
    assert_eq!(refused((sealed(), sealed()), taken, VERSION), ended(Refusal::Taken));
    assert_eq!(refused((plain(), plain()), taken, VERSION), ended(Refusal::Taken));
    assert_eq!(refused((sealed(), sealed()), endpoint, VERSION), ended(Refusal::Kind));
    let version = Refusal::Version(VERSION.into());
    assert_eq!(refused((sealed(), sealed()), nothing, 9), in_doubt(version));
    assert_eq!(refused((plain(), plain()), nothing, 9), ended(version));
    assert_eq!(refused((sealed(), plain()), nothing, VERSION), in_doubt(Refusal::Protection));
    assert_eq!(refused((plain(), sealed()), nothing, VERSION), ended(Refusal::Protection));
    assert_eq!(refused((sealed(), other_key()), nothing, VERSION), in_doubt(Refusal::Key));
}

/// Each side knows both numbers.
// spec: OPEN-1, OPEN-25, OPEN-27
#[test]
fn versions_that_differ_are_known_at_both_ends() {
    let theirs = 9;
    let mut acceptor = acceptor(Protection::Plain);
    let mut opener = port(OPENER, Protection::Plain);
    let index = ask(&mut opener, Some(ACCEPTOR), 0);
    let open = said(&mut opener, 0).remove(0);
    let header = Header { seq: theirs, ..Header::parse(&open, crc32c).expect("an open") };
    // Whatever another version makes of the rest.
    let payload = vec![1; 300];
    let header = Header { payload: Digest::of(&payload, crc32c), ..header };
    let open = [&header.encode(crc32c)[..], &payload].concat();
    let answer = answers(&mut acceptor, &open, 0).remove(0);
    let there = Unopened::Version { theirs: theirs.into(), ours: VERSION.into() };
    assert_eq!(acceptor.acceptor.turned_away, Some((address(OPENER), there)));
    hear(&mut opener, address(ACCEPTOR), answer, 0);
    let ended = opener.outcome(index).expect("a refusal");
    let here = Unopened::of((ended, opener.refusal(index)), Vec::new(), false);
    assert_eq!(here, Unopened::Version { theirs: VERSION.into(), ours: VERSION.into() });
}

/// An attacker without the key that sees the open neither ends it nor has it come again.
// spec: OPEN-24, OPEN-25, SEAL-8
#[test]
fn a_forged_answer_does_not_end_an_opening() {
    let mut acceptor = acceptor(sealed());
    let mut opener = port(OPENER, sealed());
    let index = ask(&mut opener, Some(ACCEPTOR), 0);
    let open = said(&mut opener, 0).remove(0);
    let another = recorded(OPENER, Some(ACCEPTOR), 1).remove(0);
    acceptor.acceptor.accept_all_but(Some(vec![ACCEPTOR, OPENER]));
    let proved = answers(&mut acceptor, &another, 0).remove(0);
    let (answer, proof) = Answer::parse(&proved[HEADER_BYTES..]).expect("an answer");
    assert_eq!(answer, Answer::Refused(Refusal::Taken));
    for forged in [
        forged(&open, Answer::Refused(Refusal::Full(1)), [0; 2]),
        forged(&open, answer, proof),
        forged(&open, Answer::Again(9), [1, 2]),
        proved,
    ] {
        hear(&mut opener, address(ACCEPTOR), forged, 0);
    }
    assert_eq!((opener.outcome(index), said(&mut opener, 0).len()), (None, 0));
    acceptor.acceptor.accept_all_but(Some(vec![ACCEPTOR]));
    let accept = answers(&mut acceptor, &open, 0).remove(0);
    hear(&mut opener, address(ACCEPTOR), accept, 0);
    carry(&mut opener, &mut acceptor, 0);
    assert_eq!(opener.outcome(index), Some(Opening::Accepted), "of the same open");
}

/// Each way has its own fate, and the opener goes on whatever the network says.
// spec: OPEN-32, OPEN-25, NET-4
#[test]
fn an_opener_reports_the_outcome_of_each_address() {
    let mut opener = port(OPENER, sealed());
    let mut stranger = port(ACCEPTOR, Protection::Sealed(JobKey::from_bytes([8; 32]).into()));
    let ways: Vec<_> = (1..=4).map(|host| Way { net: 0, to: address(host) }).collect();
    let request = Request::new(Destination::Port(None), (ways, true), DATAGRAM_MAX, SECOND);
    let unsent = Hint::NotSent(Errno::NETUNREACH);
    opener.outboxes[0].hints.note(address(1), Hint::PortClosed);
    let index = opener.ask_for(request, 0).expect("an index");
    assert!(opener.tried(index, 0).iter().all(|tried| tried.opens == 0));
    for now in (0..SECOND).step_by(MILLISECOND as usize) {
        let hint = opener.outboxes[0].hints.clone();
        opener.serve_all(now);
        let all: Vec<_> =
            opener.outboxes[0].iter().map(|(to, bytes)| (to, bytes.to_vec())).collect();
        opener.outboxes[0].clear();
        for (to, open) in all {
            if to == address(2) {
                answers(&mut stranger, &open, now)
                    .into_iter()
                    .for_each(|answer| hear(&mut opener, to, answer, now));
            } else if to == address(3) {
                hint.note(to, unsent);
            }
        }
        assert_eq!(opener.outcome(index), None);
    }
    opener.serve_all(SECOND);
    assert_eq!(opener.outcome(index), Some(Opening::GivenUp));
    let tried = opener.tried(index, SECOND);
    let outcomes: Vec<_> = tried.iter().map(|tried| tried.outcome).collect();
    let refused = AttemptOutcome::Refused(Refusal::Key);
    let unsent = AttemptOutcome::NotSent(Errno::NETUNREACH);
    assert_eq!(outcomes, [AttemptOutcome::Nothing, refused, unsent, AttemptOutcome::Nothing]);
    assert!(tried.iter().all(|tried| tried.opens > 3), "{tried:?}");
    assert_eq!(tried[0].time, Duration::from_secs(1));
}

/// The acceptor has lost what it had half-open.
// spec: OPEN-26
#[test]
fn an_opener_without_an_accept_retries_with_a_new_nonce() {
    let mut opener = port(OPENER, sealed());
    let index = ask(&mut opener, Some(ACCEPTOR), 0);
    let mut now = 0;
    let mut nonces = Vec::new();
    for _ in 0..3 {
        let mut forgetful = acceptor(sealed());
        let open = said(&mut opener, now).into_iter().find(|bytes| bytes[0] & 15 == 1);
        let open = open.expect("an open, with a nonce of its own");
        nonces.push(Header::parse(&open, crc32c).expect("an open").token);
        let accept = answers(&mut forgetful, &open, now).remove(0);
        hear(&mut opener, address(ACCEPTOR), accept, now);
        assert!(opener.deadline() <= now + NO_ANSWER);
        let end = now + NO_ANSWER;
        while now < end {
            assert_eq!(opener.outcome(index), None);
            now = opener.deadline().clamp(now + 1, end);
            // Its probes are for a link that is not there.
            opener.serve_all(now);
            if now < end {
                opener.outboxes[0].clear();
            }
        }
    }
    nonces.dedup();
    assert_eq!(nonces.len(), 3);
    let tried = opener.tried(index, now).remove(0);
    assert_eq!((tried.outcome, tried.opens), (AttemptOutcome::Answered, 3), "of all attempts");
    let mut acceptor = acceptor(sealed());
    carry(&mut opener, &mut acceptor, now + SECOND);
    assert_eq!(opener.outcome(index), Some(Opening::Accepted));
}

/// Resets are for one link each, and cost no walk over all of them.
// spec: OPEN-12
#[test]
fn links_are_found_by_the_fields_that_a_reset_repeats() {
    let mut acceptor = acceptor(sealed());
    let mut opener = port(OPENER, sealed());
    let indices: Vec<_> = (0..5).map(|_| ask(&mut opener, Some(ACCEPTOR), 0)).collect();
    assert_eq!(opener.by_token.len(), 5);
    opener.give_up(indices[3]);
    assert_eq!(opener.by_token.len(), 4);
    carry(&mut opener, &mut acceptor, 0);
    let tokens: Vec<_> = opener.slots.iter().filter_map(token_of).collect();
    assert!(tokens.iter().all(|token| opener.by_token.contains_key(token)));
    assert_eq!(tokens.len(), opener.by_token.len(), "none is left of what has gone");
}

/// All that opens a link is short enough for any path of one, and a path that takes less is refused
/// with a reason.
// spec: OPEN-27, OPEN-31
#[test]
fn an_opening_fits_the_least_path_and_a_shorter_one_is_refused() {
    for protection in [sealed(), Protection::Plain] {
        let mut opener = port(OPENER, protection.clone());
        let index = ask(&mut opener, Some(ACCEPTOR), 0);
        let open = said(&mut opener, 0).remove(0);
        for (datagram_max, is_enough) in [(DATAGRAM_LEAST, true), (DATAGRAM_LEAST - 1, false)] {
            let mut acceptor = acceptor(protection.clone());
            let way = Way { net: 0, to: address(OPENER) };
            acceptor.on_datagram((way, || datagram_max), &mut open.clone(), 0);
            let answer = said(&mut acceptor, 0).remove(0);
            assert!(open.len() <= DATAGRAM_LEAST && answer.len() <= DATAGRAM_LEAST);
            assert_eq!(kind_of(&answer), if is_enough { Kind::Accept } else { Kind::Reset });
            if !is_enough {
                hear(&mut opener, address(ACCEPTOR), answer, 1);
                let why = Refusal::PathMtu(datagram_max as u32);
                assert_eq!(opener.refusal(index), Some(why));
            }
        }
    }
}

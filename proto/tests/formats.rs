//! Formats: what is encoded is read back, and any bits at all are read without harm.
mod common;

use ayre_proto::command::{Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane;
use ayre_proto::lane::Kind;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::notify::{Classes, Notification, Operation, Packed};
use ayre_proto::units::{Claim, Key, PeerId};
use common::{atomics, word};
use proptest::prelude::*;

const FAULTS: [Fault; 14] = [
    Fault::UnknownKey,
    Fault::StaleKey,
    Fault::Rights,
    Fault::Bounds,
    Fault::Alignment,
    Fault::PeerDead,
    Fault::Malformed,
    Fault::TooLong,
    Fault::ForeignHandle,
    Fault::PeerRestarted,
    Fault::Stopped,
    Fault::Held,
    Fault::Exception,
    Fault::Refused,
];
const OPERATIONS: [Operation; 7] = [
    Operation::Put,
    Operation::Get,
    Operation::ImmediatePut,
    Operation::NotificationPut,
    Operation::Atomic,
    Operation::FetchAtomic,
    Operation::Deposit,
];

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![
        Just(Status::Ok),
        Just(Status::Declined),
        prop::sample::select(&FAULTS[..]).prop_map(Status::Fault),
    ]
}

fn classes() -> impl Strategy<Value = Classes> {
    (0..8u8).prop_map(Classes::from_bits_truncate)
}

fn line_statuses() -> impl Strategy<Value = lane::Status> {
    let tagged =
        [Kind::Message, Kind::Notification, Kind::Command, Kind::Response, Kind::Continuation];
    let short = (prop::sample::select(tagged.to_vec()), 0..=RECORD_MAX as u32, any::<u32>());
    let long = any::<u32>().prop_map(|len| (Kind::Record, len, 0));
    (any::<u16>(), prop_oneof![short, long]).prop_map(|(sequence, (kind, len, tag))| lane::Status {
        sequence,
        kind,
        len,
        tag,
    })
}

fn notifications() -> impl Strategy<Value = Notification> {
    let class = [Classes::REQUESTER, Classes::COMPLETER, Classes::RESPONDER];
    let names = (any::<u16>(), prop::sample::select(class.to_vec()));
    let operation = prop::sample::select(&OPERATIONS[..]);
    (names, statuses(), operation, any::<u32>(), word()).prop_map(
        |((source, class), status, operation, tag, value)| {
            let source = PeerId(source);
            Notification { source, class, status, operation, tag, value }
        },
    )
}

/// An action with the length that its claim must have, and whether it has a cookie.
fn actions() -> impl Strategy<Value = (Action, u64, bool)> {
    prop_oneof![
        (0..=RECORD_MAX as u64).prop_map(|len| (Action::Put, len, false)),
        word().prop_map(|len| (Action::Get, len, true)),
        word().prop_map(|value| (Action::Immediate(value), 8, false)),
        Just((Action::Notify, 0, false)),
        atomics().prop_map(|atomic| (Action::Atomic(atomic), atomic.width.bytes(), false)),
        atomics().prop_map(|atomic| (Action::Fetch(atomic), atomic.width.bytes(), false)),
    ]
}

fn requests() -> impl Strategy<Value = Request> {
    let key = (any::<u16>(), any::<u32>()).prop_map(|(slot, generation)| Key { slot, generation });
    let claim = (key, word());
    (actions(), classes(), (any::<u32>(), word()), claim, word()).prop_map(
        |((action, len, has_cookie), classes, (tag, value), (key, offset), cookie)| {
            let claim = Claim { key, offset, len };
            let command = Command { action, classes, tag, value, claim };
            Request { command, cookie: if has_cookie { cookie } else { 0 } }
        },
    )
}

/// Bytes of data that follow a request's words.
fn data_len(request: &Request) -> u64 {
    if request.command.action == Action::Put { request.command.claim.len } else { 0 }
}

/// Words in which a known operation is likely.
fn command_words() -> impl Strategy<Value = [u64; 6]> {
    let likely = (0..8u64, 0..8u64, 0..13u64, prop::sample::select(&[0u64, 4, 8, 9][..]), word())
        .prop_map(|(operation, classes, atomic, width, rest)| {
            operation | classes << 8 | atomic << 16 | width << 24 | rest << 32
        });
    let first = prop_oneof![likely, any::<u64>()];
    (first, word(), word(), word(), word(), word())
        .prop_map(|(first, a, b, c, d, e)| [first, a, b, c, d, e])
}

proptest! {
    // spec: LANE-2, LANE-6
    #[test]
    fn line_status_words_round_trip(status in line_statuses()) {
        prop_assert_eq!(lane::Status::decode(status.encode()), Some(status));
        prop_assert_eq!(status.encode() as u16, status.sequence);
    }

    // spec: ERR-7, ERR-8
    #[test]
    fn any_line_status_word_is_read_in_one_way(bits in any::<u64>()) {
        if let Some(status) = lane::Status::decode(bits) {
            prop_assert_eq!(lane::Status::decode(status.encode()), Some(status));
            prop_assert_eq!(status.sequence, bits as u16);
        }
    }

    // spec: NOTI-1, LANE-13
    #[test]
    fn notifications_round_trip_but_for_their_source(note in notifications(), reader in 0..9u16) {
        let source = PeerId(reader);
        let known = Notification { source, ..note };
        prop_assert_eq!(Notification::decode(note.encode(), source), Some(known));
    }

    // spec: NOTI-1, ERR-7, LANE-13
    #[test]
    fn any_two_words_are_a_notification_or_none(head in word(), value in word()) {
        let source = PeerId(3);
        if let Some(note) = Notification::decode([head, value], source) {
            prop_assert_eq!(note.class.bits().count_ones(), 1);
            prop_assert_eq!(note.source, source);
            prop_assert_eq!(Notification::decode(note.encode(), source), Some(note));
        }
    }

    /// The quick look at a record that a peer wrote finds what the slow one does.
    // spec: NOTI-6, ERR-7, LANE-13
    #[test]
    fn the_quick_parser_of_notifications_equals_the_general_one(
        operation in 0..16u64,
        class in 0..16u64,
        status in prop_oneof![Just(0), 0..16u64],
        (rest, value) in (word(), word()),
    ) {
        let head = rest & !0xffff_0000 | class << 16 | status << 20 | operation << 24;
        let slow = Notification::decode_at_target([head, value], PeerId(3));
        let quick = Packed::read_at_target([head, value], PeerId(3));
        prop_assert_eq!(quick.map(Packed::unpack), slow);
        prop_assert_eq!(quick, slow.as_ref().map(Notification::pack));
    }

    // spec: NOTI-1
    #[test]
    fn a_packed_notification_unpacks_equal(note in notifications()) {
        prop_assert_eq!(note.pack().unpack(), note);
        prop_assert_eq!(note.pack().source(), note.source);
    }

    #[test]
    fn requests_round_trip(request in requests()) {
        let words = request.encode();
        prop_assert_eq!(Request::parse(&words, data_len(&request)), Ok(request));
    }

    // spec: ERR-5, ERR-7
    #[test]
    fn any_six_words_are_a_request_or_malformed(
        words in command_words(),
        data in prop_oneof![Just(0), word()],
    ) {
        match Request::parse(&words, data) {
            Err(fault) => prop_assert_eq!(fault, Fault::Malformed),
            Ok(request) => {
                prop_assert_eq!(data_len(&request), data);
                prop_assert_eq!(Request::parse(&request.encode(), data), Ok(request));
            }
        }
    }

    #[test]
    fn only_a_put_has_data(request in requests(), data in 1..RECORD_MAX as u64) {
        let len = Request::parse(&request.encode(), data).map(|found| found.command.claim.len);
        let expected = match request.command.action {
            Action::Put => Ok(data),
            _ => Err(Fault::Malformed),
        };
        prop_assert_eq!(len, expected);
    }

    #[test]
    fn responses_round_trip(number in any::<u32>(), status in statuses(), value in word()) {
        let response = Response { number, status, value };
        prop_assert_eq!(Response::parse(&response.encode()), response);
    }

    // spec: ERR-7
    #[test]
    fn any_two_words_are_a_response(head in any::<u64>(), value in any::<u64>()) {
        let response = Response::parse(&[head, value]);
        prop_assert_eq!(Response::parse(&response.encode()), response);
    }
}

// spec: ERR-1
#[test]
fn codes_are_those_of_the_table() {
    let codes = FAULTS.map(Fault::code);
    assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    assert_eq!((Status::Ok.code(), Status::Declined.code()), (0, 15));
}

// spec: ERR-7
#[test]
fn all_codes_of_faults_and_statuses_are_read() {
    for fault in FAULTS {
        assert_eq!(Fault::from_code(fault.code()), fault);
        assert_eq!(Status::from_code(fault.code()), Status::Fault(fault), "four bits are enough");
    }
    for status in [Status::Ok, Status::Declined] {
        assert_eq!(Status::from_code(status.code()), status);
        assert_eq!(status.fault(), None);
    }
    for code in 0..=u8::MAX {
        let fault = Fault::from_code(code);
        assert!(fault.code() == code || fault == Fault::Malformed, "unknown codes are malformed");
        let status = Status::from_code(code);
        assert_eq!(Status::from_code(status.code()), status);
    }
}

#[test]
fn operation_codes_are_read_and_no_others() {
    for operation in OPERATIONS {
        assert_eq!(Operation::from_code(operation as u8), Some(operation));
    }
    let known = (0..=u8::MAX).filter(|&code| Operation::from_code(code).is_some()).count();
    assert_eq!(known, OPERATIONS.len());
}

#[test]
fn faults_have_names_of_their_own() {
    let names: std::collections::BTreeSet<String> = FAULTS.iter().map(Fault::to_string).collect();
    assert_eq!(names.len(), FAULTS.len());
}

//! Input that no correct peer writes, at either end.
use super::port::{Call, NOTHING, OneWay};
use super::way::{Record, Reply};
use ayre_proto::command::{COMMAND_BYTES, Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::limits::NOTES_UNREAD_MAX;
use ayre_proto::node::initiator::Awaited;
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::Ticket;

const KINDS: [Kind; 6] = [
    Kind::Message,
    Kind::Notification,
    Kind::Command,
    Kind::Response,
    Kind::Record,
    Kind::GatedMessage,
];

fn serve(record: Record) -> Result<bool, Malformed> {
    let mut two = OneWay::new(48);
    two.requests.records.push_back(record);
    let served = two.serve();
    assert_eq!(two.far.target.executed(), u64::from(served == Ok(true)));
    assert!(two.far.shared.memory.iter().all(|byte| *byte == NOTHING), "no effect");
    served
}

// spec: ERR-5
#[test]
fn a_record_that_is_no_command_is_malformed() {
    for kind in KINDS {
        let served = serve(Record { kind, ..Record::command([0; 6], &[]) });
        assert_eq!(served.is_ok(), kind == Kind::Command, "{kind:?}");
    }
    for len in [0, 8, COMMAND_BYTES - 1] {
        let record = Record { len, ..Record::command([0; 6], &[]) };
        assert_eq!(serve(record), Err(Malformed), "{len}");
    }
}

// spec: ERR-5
#[test]
fn a_command_that_does_not_parse_is_answered_with_malformed() {
    for code in [0, 8, 9, 255] {
        let mut two = OneWay::new(48);
        two.requests.records.push_back(Record::command([code, 0, 0, 0, 0, 0], &[1; 3]));
        assert_eq!(two.serve(), Ok(true));
        let answer = Response::parse(&two.answers.records[0].head());
        let status = Status::Fault(Fault::Malformed);
        assert_eq!(answer, Response { number: 1, status, value: 0 }, "{code}");
    }
}

// spec: ERR-5, LANE-10
#[test]
fn a_get_longer_than_any_answer_is_malformed() {
    let two = OneWay::new(48);
    let longest = 48 * 56 - 16;
    for (len, served) in [(longest, Ok(true)), (longest + 1, Err(Malformed))] {
        let request = Request { command: two.command(Action::Get, 0, len), cookie: 0 };
        assert_eq!(serve(Record::command(request.encode(), &[])), served);
    }
    let request = Request { command: two.command(Action::Get, 0, u64::MAX), cookie: 0 };
    assert_eq!(serve(Record::command(request.encode(), &[])), Err(Malformed));
}

// spec: NOTI-11, ERR-5
#[test]
fn a_notification_without_credit_is_malformed() {
    let mut two = OneWay::new(48);
    let note = Request { command: two.command(Action::Notify, 0, 0), cookie: 0 }.encode();
    for _ in 0..NOTES_UNREAD_MAX {
        two.requests.records.push_back(Record::command(note, &[]));
        assert_eq!(two.serve(), Ok(true));
    }
    two.requests.records.push_back(Record::command(note, &[]));
    assert_eq!(two.serve(), Err(Malformed));
    two.far.read_note().expect("there are many");
    assert_eq!([two.serve(), two.serve()], [Ok(true), Ok(false)]);
    // A message is refused before it is carried out.
    two.requests.records.clear();
    two.message(0, &[5; 4], None, None).expect("its initiator has forgotten what it has posted");
    assert_eq!(two.serve(), Err(Malformed));
    assert_eq!(two.there(0, 4), [NOTHING; 4]);
}

/// A put, a get of a strided shape to memory, a message that brings data, one with a reply of four
/// bytes, and a fetch: commands 1 to 5.
fn under_way() -> OneWay {
    let mut two = OneWay::new(48);
    two.put(0, &[1], Classes::empty()).expect("room");
    let shape = Shape { row_len: 8, rows: 2, local_stride: 20, remote_stride: 8 };
    two.near.buffers = vec![vec![NOTHING; 28]];
    let get = two.command(Action::Get, 0, 16);
    let Command { claim, .. } = get;
    assert_eq!(claim.len, 16);
    two.bounds.responses = 48 * 56;
    let (_, ticket, _) = two.post(&get, &shape, &[], Some(0)).expect("room");
    assert_eq!(ticket, Ticket(3), "a command for each row");
    two.message(0, &[2], None, None).expect("room");
    two.message(0, &[], Some(4), Some((Reply::default(), 4))).expect("room");
    two
}

fn answered(number: u32, value: u64, len: usize) -> Result<bool, Malformed> {
    let mut two = under_way();
    let head = Response { number, status: Status::Ok, value }.encode();
    two.answers.push(Record::answer(head, &[7; 64][..len]));
    let taken = two.take();
    let buffer = &two.near.buffers[0];
    let mut landed = vec![NOTHING; 28];
    if taken.is_ok() && number == 2 {
        landed[value as usize..][..len].fill(7);
    }
    assert_eq!(*buffer, landed, "only what was asked for lands");
    taken.map(|ended| ended.is_empty())
}

// spec: ERR-5, GET-1, DEP-28, LIM-3
#[test]
fn an_answer_that_no_correct_target_gives_is_malformed() {
    for (number, value, len) in [(2, 0, 8), (2, 20, 8), (2, 23, 5), (4, 9, 0), (5, 9, 4)] {
        assert_eq!(answered(number, value, len), Ok(true), "{number} {value} {len}");
    }
    let wrong = [
        (0, 0, 0),
        (1, 0, 0),
        (6, 0, 0),
        (u32::MAX, 0, 0),
        (2, 1, 8),
        (2, 8, 1),
        (2, 28, 1),
        (2, 20, 9),
        (2, 20, 0),
        (2, u64::MAX, 8),
        (4, 0, 1),
        (5, 0, 3),
        (5, 0, 5),
    ];
    for (number, value, len) in wrong {
        assert_eq!(answered(number, value, len), Err(Malformed), "{number} {value} {len}");
    }
}

// spec: GET-1, DEP-13
#[test]
fn data_for_a_call_lands_in_its_buffer_or_is_malformed() {
    let answer = |two: &mut OneWay, value, len: usize| {
        let head = Response { number: 1, status: Status::Ok, value }.encode();
        two.answers.records.clear();
        two.answers.push(Record::answer(head, &[7; 64][..len]));
        two.take().map(|ended| ended.len())
    };
    let call = |awaited| Some(Call { awaited, into: vec![NOTHING; 10] });
    let shape = Shape::contiguous(10);
    for (value, len) in [(0, 11), (3, 8), (10, 1), (1, 0), (1 << 40, 1)] {
        let mut two = OneWay::new(48);
        let command = two.command(Action::Get, 0, 10);
        let (place, ticket, _) = two.post(&command, &shape, &[], None).expect("room");
        assert_eq!(answer(&mut two, 0, 10), Err(Malformed), "no call waits");
        two.near.call = call(Awaited::new((place, ticket), shape));
        assert_eq!(answer(&mut two, value, len), Err(Malformed), "{value} {len}");
        assert_eq!(answer(&mut two, 2, 8), Ok(0));
    }
    let mut two = OneWay::new(48);
    let named = two.message(0, &[], Some(10), None).expect("room");
    two.near.call = call(Awaited::new(named, shape));
    assert_eq!([answer(&mut two, 0, 11), answer(&mut two, 0, 10)], [Err(Malformed), Ok(0)]);
}

// spec: LANE-10, ERR-5
#[test]
fn a_count_that_falls_or_exceeds_the_posted_commands_is_malformed() {
    for (before, after) in [(0, 6), (3, 2), (0, u64::MAX)] {
        let mut two = under_way();
        two.far.told.0 = before;
        assert!(two.take().is_ok());
        two.far.told.0 = after;
        assert_eq!(two.take(), Err(Malformed), "{before} {after}");
    }
}

// spec: DEP-28, LANE-10
#[test]
fn a_message_whose_answer_is_missing_ends_as_malformed() {
    let mut two = under_way();
    two.far.told.0 = 5;
    let ended: Vec<_> = two.take().expect("counts").iter().map(|ended| ended.status).collect();
    let malformed = Status::Fault(Fault::Malformed);
    assert_eq!(ended, [Status::Ok, Status::Ok, Status::Ok, malformed]);
    assert!(two.near.replies.is_empty());
}

// spec: ERR-5
#[test]
fn a_record_that_is_no_answer_is_malformed() {
    let head = Response { number: 2, status: Status::Ok, value: 0 }.encode();
    for kind in KINDS {
        let mut two = under_way();
        two.answers.push(Record { kind, ..Record::answer(head, &[7; 8]) });
        assert_eq!(two.take().is_ok(), kind == Kind::Response, "{kind:?}");
    }
    for len in [0, 8, 15] {
        let mut two = under_way();
        two.answers.push(Record { len, ..Record::answer(head, &[]) });
        assert_eq!(two.take(), Err(Malformed), "{len}");
    }
}

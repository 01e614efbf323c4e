//! Single cases of a pair.
use super::port::{NOTHING, OneWay, lanes};
use super::way::{Incoming, Reply};
use ayre_proto::command::{Request, Words};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::limits::{BATCH_MAX, NOTES_UNREAD_MAX, PENDING_MAX};
use ayre_proto::node::initiator::{Bounds, Refused};
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Key, PeerId, Ticket};

const QUIET: Classes = Classes::empty();
const UNKNOWN: Key = Key { slot: 9, generation: 0 };

// spec: PUT-3, PUT-4, POST-6
#[test]
fn a_long_put_is_cut_to_half_the_lane_and_its_last_command_alone_notifies() {
    let mut two = OneWay::new(48);
    let data: Vec<u8> = (0..3000).map(|byte| byte as u8).collect();
    let ticket = two.put(40, &data, Classes::all()).expect("room for some of it");
    let pushed: Vec<_> = two.requests.records.iter().map(|record| record.data.len()).collect();
    assert_eq!(pushed, [24 * 56 - 48; 2], "half of 48 lines each, and the third one waits");
    let shape = Shape::contiguous(3000);
    assert_eq!(shape.count(24 * 56 - 48), 3);
    assert_eq!(ticket, Ticket(3), "the last of its three commands");

    let mut two = OneWay::new(144);
    let ticket = two.put(40, &data, Classes::all());
    assert_eq!((ticket, two.requests.records.len()), (Ok(Ticket(1)), 1), "up to a record's length");
    let noted = |two: &OneWay| two.far.shared.notes.len();
    two.settle();
    assert_eq!((two.there(40, 3000), noted(&two)), (&data[..], 1));

    two.bounds = Bounds { most: 1048, worth: 548, ..two.bounds };
    let ticket = two.put(0, &data, Classes::all()).expect("room for all");
    assert_eq!(ticket, Ticket(4), "a lane is no link, whose paths change");
    two.bounds = Bounds { requests: None, ..two.bounds };
    let ticket = two.put(0, &data, Classes::all()).expect("room for all");
    assert_eq!(ticket, Ticket(10), "each goes whole by the paths of the link");
    let ended = two.settle();
    let ended: Vec<_> = ended.iter().map(|ended| (ended.ticket, ended.status)).collect();
    assert_eq!(ended, [(Ticket(4), Status::Ok), (Ticket(10), Status::Ok)]);
    assert_eq!((two.there(0, 3000), noted(&two)), (&data[..], 3));
}

// spec: LANE-10
#[test]
fn a_command_waits_until_its_answer_finds_room() {
    let mut two = OneWay::new(24);
    two.near.buffers = vec![vec![NOTHING; 600]; 3];
    for memory in 0..3 {
        let command = two.command(Action::Get, 0, 600);
        two.post(&command, &Shape::contiguous(600), &[], Some(memory)).expect("room");
    }
    let command = two.command(Action::Immediate(u64::MAX), 80, 8);
    two.post(&command, &Shape::contiguous(8), &[], None).expect("room");
    assert_eq!([two.serve(), two.serve()], [Ok(true), Ok(true)], "12 lines each");
    assert_eq!([two.serve(), two.serve()], [Ok(false), Ok(false)], "and no line is left");
    assert_eq!(two.far.target.executed(), 2);
    assert_eq!(two.there(80, 8), [NOTHING; 8], "what is behind it waits, too");
    assert_eq!(two.settle().len(), 2);
    assert_eq!(two.settle().len(), 2, "the answers were taken");
    assert_eq!(two.there(80, 8), [0xff; 8]);
}

// spec: NOTI-9
#[test]
fn notifying_operations_are_refused_until_the_target_reads() {
    let mut two = OneWay::new(48);
    for _ in 0..NOTES_UNREAD_MAX {
        two.put(0, &[1], Classes::COMPLETER).expect("credit");
        two.settle();
    }
    assert_eq!(two.put(0, &[1], Classes::COMPLETER), Err(Refused::NoRoom));
    assert_eq!(two.message(0, &[], Some(0), None), Err(Refused::NoRoom), "each might notify");
    two.put(0, &[1], QUIET).expect("what notifies nobody needs none");
    two.far.read_note().expect("there are many");
    assert_eq!(two.put(0, &[1], Classes::COMPLETER), Err(Refused::NoRoom), "it was not told");
    two.settle();
    two.put(0, &[1], Classes::COMPLETER).expect("credit");
    assert_eq!(two.put(0, &[1], Classes::COMPLETER), Err(Refused::NoRoom));
}

// spec: NOTI-9, DEP-27
#[test]
fn operations_that_raised_no_notification_return_their_credit() {
    let mut two = OneWay::new(48);
    for round in 0..3 * NOTES_UNREAD_MAX {
        let key = std::mem::replace(&mut two.key, UNKNOWN);
        two.put(0, &[1], Classes::COMPLETER).expect("credit");
        two.message(1, &[], Some(0), None).expect("credit");
        two.key = key;
        two.message(5 * round, &[], Some(0), None).expect("credit");
        two.message(5 * round + 4, &[], Some(0), None).expect("credit");
        let ended: Vec<_> = two.settle().iter().map(|ended| ended.status).collect();
        let unknown = Status::Fault(Fault::UnknownKey);
        let expected = [unknown, unknown, Status::Ok, Status::Fault(Fault::Stopped)];
        assert_eq!(ended, expected);
    }
    assert_eq!(two.far.shared.notes.len(), 0);
}

// spec: DEP-19, DEP-27
#[test]
fn a_message_at_which_its_inlet_stops_keeps_its_credit_until_that_is_read() {
    let mut two = OneWay::new(48);
    for _ in 0..NOTES_UNREAD_MAX {
        two.message(3, &[7], None, None).expect("credit");
        assert_eq!(two.settle()[0].status, Status::Fault(Fault::Held));
    }
    assert_eq!(two.message(3, &[7], None, None), Err(Refused::NoRoom));
    let note = two.far.read_note().expect("the owner is told");
    assert!(note.is_held());
    two.settle();
    two.message(3, &[7], None, None).expect("credit");
}

// spec: DEP-22, ORD-1
#[test]
fn a_message_waits_for_its_depot_and_later_operations_wait_behind_it() {
    let mut two = OneWay::new(48);
    two.far.shared.is_depot_busy = true;
    two.message(0, &[3; 9], None, None).expect("room");
    two.put(100, &[4], QUIET).expect("room");
    assert_eq!(two.settle(), []);
    assert_eq!((two.far.target.executed(), two.there(100, 1)), (0, &[NOTHING][..]));
    two.far.shared.is_depot_busy = false;
    assert_eq!(two.settle().len(), 2);
    assert_eq!((two.there(0, 9), two.there(100, 1)), (&[3; 9][..], &[4][..]));
}

// spec: DEP-28, NOTI-3
#[test]
fn a_reply_waits_for_its_depot_and_later_completions_wait_behind_it() {
    let mut two = OneWay::new(48);
    two.put(0, &[8; 20], QUIET).expect("room");
    two.message(5, &[], Some(20), Some((Reply::default(), 20))).expect("room");
    two.put(0, &[9; 20], QUIET).expect("room");
    two.near.are_replies_held_up = true;
    assert_eq!(two.settle(), [], "not even what was executed before");
    assert_eq!(two.settle(), []);
    two.near.are_replies_held_up = false;
    let ended: Vec<_> = two.settle().iter().map(|ended| ended.ticket).collect();
    assert_eq!(ended, [1, 2, 3].map(Ticket));
    assert_eq!(two.near.replies, [(5 << 7, vec![8; 20])]);
}

// spec: DEP-28
#[test]
fn an_operation_ends_as_its_reply_does() {
    let mut two = OneWay::new(48);
    let note = Notification {
        source: PeerId(1),
        class: Classes::COMPLETER,
        status: Status::Ok,
        operation: Operation::Reply,
        tag: 3,
        value: 4,
    };
    let fault = Status::Fault(Fault::StaleKey);
    for outcome in [(Status::Ok, None), (Status::Ok, Some(note)), (fault, None)] {
        two.near.reply_outcome = outcome;
        two.message(1, &[], Some(4), Some((Reply::default(), 4))).expect("room");
        let ended = two.settle();
        assert_eq!((ended[0].status, ended[0].note), outcome);
    }
    assert_eq!(two.near.initiator.replies_mut().count(), 0, "none is awaited");
    // The message itself has notified its target each time, whatever became of the reply.
    for _ in 3..NOTES_UNREAD_MAX {
        two.message(1, &[], Some(0), None).expect("credit");
        two.settle();
    }
    assert_eq!(two.message(1, &[], Some(0), None), Err(Refused::NoRoom));
}

fn words(command: Command) -> Words {
    Request { command, cookie: 0 }.encode()
}

// spec: WIRE-13
#[test]
fn data_of_a_put_is_placed_early_and_all_else_happens_in_its_turn() {
    let mut two = OneWay::new(48);
    let command = Command { classes: Classes::COMPLETER, ..two.command(Action::Put, 16, 5) };
    let far = &mut two.far;
    let place = |far: &mut super::port::Port| {
        far.target.place((&words(command), &[1; 5]), &far.table, &mut far.shared)
    };
    assert!(place(far));
    assert_eq!((far.target.executed(), far.shared.notes.len()), (0, 0));
    let perform = |far: &mut super::port::Port, answers: &mut super::way::Channel| {
        let mut came = Incoming { data: &[], is_placed: true, answers };
        far.target.perform((&words(command), 5), &far.table, &mut far.shared, &mut came)
    };
    assert_eq!(perform(far, &mut two.answers), Ok(true));
    assert_eq!((far.target.executed(), far.shared.notes.len()), (1, 1));
    assert!(two.answers.records.is_empty());
    // Placed, and revoked before its turn.
    assert!(place(far));
    far.table.revoke(two.key).expect("it is alive");
    assert_eq!(perform(far, &mut two.answers), Ok(true));
    assert_eq!((far.target.executed(), far.shared.notes.len()), (2, 1));
    assert_eq!(two.answers.records.len(), 1, "a fault");
    assert_eq!(two.there(16, 5), [1; 5]);
}

// spec: WIRE-13
#[test]
fn only_puts_that_are_no_faults_are_placed_early() {
    let two = OneWay::new(48);
    let put = two.command(Action::Put, 0, 8);
    let unknown = Command { claim: ayre_proto::units::Claim { key: UNKNOWN, ..put.claim }, ..put };
    let commands = [
        (two.command(Action::Immediate(1), 0, 8), &[][..]),
        (two.command(Action::Get, 0, 8), &[]),
        (two.command(Action::Notify, 0, 0), &[]),
        (unknown, &[1; 8]),
        (two.command(Action::Put, super::port::LEN - 7, 8), &[1; 8]),
    ];
    let mut far = two.far;
    for (command, data) in commands {
        let is_placed = far.target.place((&words(command), data), &far.table, &mut far.shared);
        assert!(!is_placed, "{command:?}");
    }
    assert!(far.shared.memory.iter().all(|byte| *byte == NOTHING));
}

// spec: LIFE-11
#[test]
fn operations_under_way_end_in_order_when_the_peer_is_gone() {
    let mut two = OneWay::new(48);
    two.put(0, &[1], Classes::COMPLETER).expect("room");
    two.message(0, &[], Some(4), Some((Reply::default(), 4))).expect("room");
    two.near.buffers = vec![vec![0; 8]];
    let command = two.command(Action::Get, 0, 8);
    two.post(&command, &Shape::contiguous(8), &[], Some(0)).expect("room");
    let gone = || two.near.initiator.abandon(Fault::PeerDead);
    let ended: Vec<_> =
        std::iter::from_fn(gone).map(|ended| (ended.ticket, ended.status)).collect();
    assert_eq!(ended, [1, 2, 3].map(|ticket| (Ticket(ticket), Status::Fault(Fault::PeerDead))));
    assert!(two.near.initiator.is_empty());
}

// spec: POST-1, POST-2, LIM-1
#[test]
fn as_many_operations_are_under_way_as_the_table_holds() {
    let mut two = OneWay::new(300);
    for _ in 0..PENDING_MAX {
        two.put(0, &[1], QUIET).expect("room");
    }
    assert_eq!(two.put(0, &[1], QUIET), Err(Refused::TooManyOutstanding));
    assert_eq!(two.message(0, &[], Some(0), None), Err(Refused::TooManyOutstanding));
    assert_eq!(two.settle().len(), PENDING_MAX);
    two.put(0, &[1], QUIET).expect("room");
}

// spec: POST-1
#[test]
fn a_transfer_of_more_commands_than_answers_can_tell_apart_is_too_long() {
    let mut two = OneWay::new(48);
    let piece = 24 * 56 - 48;
    for (count, is_possible) in [(1 << 31, true), ((1 << 31) + 1, false)] {
        let shape = Shape::contiguous(count * piece);
        let command = two.command(Action::Put, 0, count * piece);
        let mut way = super::port::Port::way(&mut two.requests, two.bounds, 0, &[]);
        let checked = two.near.initiator.check_room(&command, &shape, false, &mut way);
        assert_eq!(checked, if is_possible { Ok(piece) } else { Err(Refused::TooLong) });
    }
}

// spec: BATCH-2
#[test]
fn a_batch_is_busy_where_it_may_find_room_and_too_long_where_it_never_will() {
    let mut two = OneWay::new(60);
    let check = |two: &mut OneWay, count: usize, len: u64, classes| {
        let command = Command { classes, ..two.command(Action::Put, 0, len) };
        let taken = two.far.told.1;
        let mut way = super::port::Port::way(&mut two.requests, two.bounds, taken, &[]);
        two.near.initiator.check_batch(std::iter::repeat_n(command, count), &mut way)
    };
    assert_eq!(check(&mut two, 30, 56 + 8, QUIET), Ok(()), "two lines each");
    assert_eq!(check(&mut two, 31, 56 + 8, QUIET), Err(Refused::TooLong));
    assert_eq!(check(&mut two, PENDING_MAX + 1, 1, QUIET), Err(Refused::TooLong));
    two.put(0, &[1], QUIET).expect("room");
    assert_eq!(check(&mut two, 30, 56 + 8, QUIET), Err(Refused::NoRoom), "one line is taken");
    assert_eq!(check(&mut two, PENDING_MAX, 1, QUIET), Err(Refused::TooManyOutstanding));
    two.settle();
    for _ in 0..NOTES_UNREAD_MAX - 2 {
        two.put(0, &[1], Classes::COMPLETER).expect("credit");
        two.settle();
    }
    assert_eq!(check(&mut two, 2, 1, Classes::COMPLETER), Ok(()));
    assert_eq!(check(&mut two, 3, 1, Classes::COMPLETER), Err(Refused::NoRoom));
    two.bounds = Bounds { requests: None, worth: 548, ..lanes(60) };
    let frames = two.bounds.longest_request(true);
    assert_eq!(frames, 4095 - 48, "a batch is cut as if paths never changed");
    assert_eq!(check(&mut two, 3, 20 * frames, QUIET), Ok(()), "sixty frames");
    assert_eq!(check(&mut two, 3, 20 * frames + 1, QUIET), Err(Refused::TooLong));
}

const _: () = assert!(BATCH_MAX > PENDING_MAX, "a batch may be too long for the table");

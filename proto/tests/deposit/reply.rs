//! Replies whose answers are on their way.
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{Carried, DepositMessage, Form, Mask, Reply};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::units::{Key, PeerId};

const KEY: Key = Key { slot: 3, generation: 1 };

fn posted() -> Posted {
    let message = DepositMessage {
        form: Form::Probe,
        operand: 5,
        mask: Mask::ALL,
        len: 12,
        brings: true,
        is_answered: false,
    };
    Posted { key: KEY, epoch: 2, classes: Classes::empty(), tag: 7, value: 8, message }
}

// spec: DEP-28
#[test]
fn a_reply_takes_the_value_given_as_its_operand_where_its_sender_says_so() {
    for (takes_value, operand) in [(false, 5), (true, 99)] {
        let mut reply = Reply::new(posted(), takes_value);
        assert_eq!((reply.len(), reply.is_empty()), (12, false));
        let message = DepositMessage { operand, ..posted().message };
        assert_eq!(reply.message(99), Ok(&Posted { message, ..posted() }));
    }
}

// spec: DEP-28
#[test]
fn a_reply_over_a_revoked_inlet_is_a_stale_key() {
    let mut reply = Reply::new(posted(), true);
    reply.revoke(Key { generation: 2, ..KEY });
    assert!(reply.message(1).is_ok(), "another key");
    reply.revoke(KEY);
    reply.revoke(Key { slot: 4, ..KEY });
    assert_eq!(reply.message(1), Err(Fault::StaleKey));
}

// spec: DEP-11, DEP-19, DEP-28
#[test]
fn a_reply_notification_names_the_answering_peer() {
    let reply = Reply::new(posted(), false);
    let note = |status| Notification {
        source: PeerId(6),
        class: Classes::COMPLETER,
        status,
        operation: Operation::Reply,
        tag: 7,
        value: 8,
    };
    let held = Status::Fault(Fault::Held);
    for (status, notifies, raised) in [
        (Status::Ok, false, None),
        (Status::Ok, true, Some(note(Status::Ok))),
        (Status::Declined, false, None),
        (held, false, Some(note(held))),
        (Status::Fault(Fault::Bounds), false, None),
    ] {
        let carried = Carried { status, given: 0, notifies };
        assert_eq!(reply.note(PeerId(6), &carried), raised);
    }
}

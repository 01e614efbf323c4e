//! The operations that an initiator waits for, against a plain list of operations; across the wrap
//! of numbers.
use std::collections::VecDeque;

use ayre_proto::alu::Fetched;
use ayre_proto::execute::Report;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::PENDING_MAX;
use ayre_proto::notify::{Classes, Operation};
use ayre_proto::pending::{Outstanding, Pending};
use ayre_proto::units::Ticket;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Submit {
        commands: u64,
        tag: u32,
    },
    /// A response to the command so far from the oldest one under way.
    Find(i64),
    Fault {
        place: usize,
        fault: Fault,
    },
    Fetched {
        place: usize,
        fetched: Fetched,
    },
    /// A count so far from the last one.
    Done(i64),
    Pop,
    Abandon(Fault),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = || prop::sample::select(vec![Fault::StaleKey, Fault::Bounds, Fault::PeerDead]);
    let place = || 0..PENDING_MAX;
    let fetched =
        (any::<u64>(), any::<bool>()).prop_map(|(value, success)| Fetched { value, success });
    let done = prop_oneof![4 => 0..12i64, 1 => -9..40i64, 1 => any::<i64>()];
    let step = prop_oneof![
        6 => (1..6u64, any::<u32>()).prop_map(|(commands, tag)| Step::Submit { commands, tag }),
        3 => prop_oneof![-9..90i64, any::<i64>()].prop_map(Step::Find),
        2 => (place(), fault()).prop_map(|(place, fault)| Step::Fault { place, fault }),
        2 => (place(), fetched).prop_map(|(place, fetched)| Step::Fetched { place, fetched }),
        4 => done.prop_map(Step::Done),
        4 => Just(Step::Pop),
        1 => fault().prop_map(Step::Abandon),
    ];
    prop::collection::vec(step, 1..200)
}

fn report(tag: u32) -> Report {
    let (operation, classes) = (Operation::FetchAtomic, Classes::COMPLETER);
    Report { operation, classes, tag, value: u64::from(tag) << 7 }
}

struct Op {
    place: usize,
    report: Report,
    first: u64,
    last: u64,
    status: Status,
    value: u64,
}

#[derive(Default)]
struct Model {
    ops: VecDeque<Op>,
    posted: u64,
    done: u64,
}

impl Model {
    fn at(&mut self, place: usize) -> Option<&mut Op> {
        self.ops.iter_mut().find(|op| op.place == place)
    }

    fn expect(&mut self, found: Option<(usize, Outstanding)>, status: Option<Status>) {
        let (place, found) = found.expect("the oldest operation");
        let op = self.ops.pop_front().expect("an operation");
        assert_eq!((place, found.report, found.value), (op.place, op.report, op.value));
        assert_eq!((found.first, found.last), (op.first, op.last));
        assert_eq!(found.status, status.unwrap_or(op.status));
        assert_eq!(found.ticket(), Ticket(op.last));
    }
}

fn submit(pending: &mut Pending, model: &mut Model, commands: u64, tag: u32) {
    assert_eq!(pending.has_room(), model.ops.len() < PENDING_MAX);
    if !pending.has_room() {
        return;
    }
    let (place, ticket) = pending.submit(report(tag), commands);
    assert!(place < PENDING_MAX && model.at(place).is_none(), "a place serves one operation");
    let (first, last) = (model.posted + 1, model.posted + commands);
    model.posted = last;
    assert_eq!((ticket, pending.posted()), (Ticket(last), last));
    let (status, value) = (Status::Ok, 0);
    model.ops.push_back(Op { place, report: report(tag), first, last, status, value });
}

/// The response's number has 32 bits; the model looks through all numbers in 64.
fn find(pending: &Pending, model: &Model, number: u32) {
    let belongs = |op: &&Op| (op.first..=op.last).any(|command| command as u32 == number);
    let expected = model.ops.iter().find(belongs).map(|op| op.place);
    assert_eq!(pending.find(number).map(|(place, _)| place), expected, "{number:#x}");
}

fn done(pending: &mut Pending, model: &mut Model, count: u64) {
    let possible = (model.done..=model.posted).contains(&count);
    assert_eq!(pending.on_done(count), if possible { Ok(()) } else { Err(Malformed) });
    if possible {
        model.done = count;
    }
}

fn apply(pending: &mut Pending, model: &mut Model, step: Step) {
    match step {
        Step::Submit { commands, tag } => submit(pending, model, commands, tag),
        Step::Find(by) => {
            let oldest = model.ops.front().map_or(model.posted, |op| op.first);
            find(pending, model, oldest.wrapping_add_signed(by) as u32);
        }
        Step::Fault { place, fault } => {
            pending.on_fault(place, fault);
            if let Some(op) = model.at(place).filter(|op| op.status.fault().is_none()) {
                op.status = Status::Fault(fault);
            }
        }
        Step::Fetched { place, fetched } => {
            // A command has one answer, so what has faulted is not answered any more.
            if let Some(op) = model.at(place).filter(|op| op.status.fault().is_none()) {
                pending.on_fetched(place, fetched);
                op.status = if fetched.success { Status::Ok } else { Status::Declined };
                op.value = fetched.value;
            }
        }
        Step::Done(by) => {
            let count = model.done.wrapping_add_signed(by);
            done(pending, model, count);
        }
        Step::Pop => match model.ops.front() {
            Some(op) if op.last <= model.done => model.expect(pending.pop(), None),
            _ => assert!(pending.pop().is_none(), "it has not ended"),
        },
        Step::Abandon(fault) => match pending.abandon(fault) {
            None => assert!(model.ops.is_empty()),
            found => model.expect(found, Some(Status::Fault(fault))),
        },
    }
}

proptest! {
    // spec: POST-6, ERR-4, LANE-10, LIFE-11, LIM-3
    #[test]
    fn operations_end_in_order_with_their_own_outcome(
        steps in steps(),
        before in prop_oneof![Just(0), Just((1u64 << 32) - 20), Just((1 << 33) - 3)],
    ) {
        let (mut pending, mut model) = (Pending::new(), Model::default());
        if before > 0 {
            // One long transfer brings the numbers close to where their 32 bits wrap.
            submit(&mut pending, &mut model, before, 0);
            done(&mut pending, &mut model, before);
            model.expect(pending.pop(), None);
        }
        for step in steps {
            apply(&mut pending, &mut model, step);
            prop_assert_eq!(pending.room(), PENDING_MAX - model.ops.len());
            prop_assert_eq!(pending.is_empty(), model.ops.is_empty());
            prop_assert_eq!(pending.posted(), model.posted);
        }
    }
}

// spec: LIFE-11
#[test]
fn all_that_is_under_way_is_abandoned_with_the_peer() {
    let mut pending = Pending::default();
    while pending.has_room() {
        pending.submit(report(1), 2);
    }
    assert_eq!(pending.on_done(5), Ok(()));
    for place in 0..PENDING_MAX {
        let (found, outstanding) = pending.abandon(Fault::PeerDead).expect("all of them");
        assert_eq!((found, outstanding.status), (place, Status::Fault(Fault::PeerDead)));
    }
    assert!(pending.is_empty() && pending.abandon(Fault::PeerDead).is_none());
}

#[test]
#[should_panic(expected = "an operation begins only where there is room")]
fn more_than_there_is_room_for_is_our_own_mistake() {
    let mut pending = Pending::new();
    for _ in 0..=PENDING_MAX {
        pending.submit(report(0), 1);
    }
}

//! Executing commands: which effects, in which order, and none where a check fails.
mod common;

use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::execute::{Action, Command, Effects, NOWHERE, execute};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::units::{Claim, Extent, Key, PeerId, Rights};
use ayre_proto::xlate::{Cover, Table};
use common::{atomics, word};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
enum Effect {
    Deposit(Extent),
    Collect(Extent),
    Store(Extent, u64),
    Atomic(Extent, Atomic),
    Answer(Fetched),
    Notify(Notification),
}

/// Writes down what happens, on memory whose every word is the same.
#[derive(Default)]
struct Recorder {
    word: u64,
    effects: Vec<Effect>,
}

impl Effects for Recorder {
    fn deposit(&mut self, to: Extent) {
        self.effects.push(Effect::Deposit(to));
    }

    fn collect(&mut self, from: Extent) {
        self.effects.push(Effect::Collect(from));
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.effects.push(Effect::Store(to, value));
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        self.effects.push(Effect::Atomic(at, *atomic));
        atomic.fetched(self.word)
    }

    fn answer(&mut self, fetched: Fetched) {
        self.effects.push(Effect::Answer(fetched));
    }

    fn notify(&mut self, notification: Notification) {
        self.effects.push(Effect::Notify(notification));
    }
}

const INITIATOR: PeerId = PeerId(5);
const TAG: u32 = 77;

/// The steps of every performer: all checks, then the effects.
fn perform(command: &Command, table: &Table, fx: &mut Recorder) -> Result<Extent, Fault> {
    command.check()?;
    let extent = match command.action {
        Action::Notify => NOWHERE,
        _ => table.check(INITIATOR, &command.claim, command.rights())?,
    };
    execute(command, extent, INITIATOR, fx);
    Ok(extent)
}

fn all_classes() -> impl Strategy<Value = Classes> {
    (0..8u8).prop_map(Classes::from_bits_truncate)
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Put),
        Just(Action::Get),
        word().prop_map(Action::Immediate),
        Just(Action::Notify),
        atomics().prop_map(Action::Atomic),
        atomics().prop_map(Action::Fetch),
    ]
}

fn commands() -> impl Strategy<Value = Command> {
    let key = (0..2u16, 0..2u32).prop_map(|(slot, generation)| Key { slot, generation });
    let offset = prop_oneof![3 => (0..9u64).prop_map(|n| 8 * n), 1 => 0..70u64, 1 => word()];
    let len = prop_oneof![3 => Just(8), 2 => Just(4), 1 => 0..70u64, 1 => word()];
    (actions(), all_classes(), word(), key, (offset, len)).prop_map(
        |(action, classes, value, key, (offset, len))| Command {
            action,
            classes,
            tag: TAG,
            value,
            claim: Claim { key, offset, len },
        },
    )
}

/// By the table of chapter 30: where an operation's data lands or is read.
fn class_at_target(operation: Operation, asked: Classes) -> Option<Classes> {
    use Operation::{Atomic, Deposit, FetchAtomic, Get, ImmediatePut, NotificationPut, Put};
    let applies = match operation {
        NotificationPut | Deposit => return Some(Classes::COMPLETER),
        Operation::Reply => return None,
        Put | ImmediatePut => Classes::COMPLETER,
        Get | Atomic | FetchAtomic => Classes::RESPONDER,
    };
    asked.contains(applies).then_some(applies)
}

fn expected(command: &Command, extent: Extent, word: u64) -> Vec<Effect> {
    let mut effects = match command.action {
        Action::Put => vec![Effect::Deposit(extent)],
        Action::Get => vec![Effect::Collect(extent)],
        Action::Immediate(value) => vec![Effect::Store(extent, value)],
        Action::Notify => vec![],
        Action::Atomic(atomic) => vec![Effect::Atomic(extent, atomic)],
        Action::Fetch(atomic) => {
            vec![Effect::Atomic(extent, atomic), Effect::Answer(atomic.fetched(word))]
        }
    };
    let operation = command.action.operation();
    if let Some(class) = class_at_target(operation, command.classes) {
        let (source, status, value) = (INITIATOR, Status::Ok, command.value);
        let note = Notification { source, class, status, operation, tag: TAG, value };
        effects.push(Effect::Notify(note));
    }
    effects
}

fn table(rights: Rights) -> Table {
    let mut table = Table::new(1);
    let cover = Cover { holder: INITIATOR, rights, region: 4, base: 800, len: 64 };
    table.insert(cover).expect("a free slot");
    table
}

proptest! {
    // spec: POST-2, NOTI-2, NOTI-4, NOTI-5, NPUT-1, NPUT-2, ORD-2
    #[test]
    fn checked_commands_have_their_effects_in_order_and_others_none(
        command in commands(),
        rights in (0..32u8).prop_map(Rights::from_bits_truncate),
        word in word(),
    ) {
        let mut fx = Recorder { word, ..Recorder::default() };
        match perform(&command, &table(rights), &mut fx) {
            Ok(extent) => prop_assert_eq!(fx.effects, expected(&command, extent, word)),
            Err(_) => prop_assert!(fx.effects.is_empty()),
        }
    }

    /// Nothing is touched but what the claim names within the capability.
    // spec: PUT-1, GET-1, CAP-2
    #[test]
    fn effects_touch_only_the_claimed_range(command in commands()) {
        let mut fx = Recorder::default();
        let Ok(extent) = perform(&command, &table(Rights::all()), &mut fx) else { return Ok(()) };
        if command.action == Action::Notify {
            prop_assert_eq!(extent, NOWHERE);
        } else {
            prop_assert_eq!(extent.region(), 4);
            prop_assert_eq!(extent.offset(), 800 + command.claim.offset);
            prop_assert_eq!(extent.len(), command.claim.len);
        }
    }

    // spec: ATOM-2, FCAA-4, IMM-1
    #[test]
    fn words_are_claimed_whole_and_aligned(command in commands()) {
        let bytes = match command.action {
            Action::Atomic(atomic) | Action::Fetch(atomic) => atomic.width.bytes(),
            Action::Immediate(_) => 8,
            Action::Put | Action::Get | Action::Notify => {
                prop_assert_eq!(command.check(), Ok(()));
                return Ok(());
            }
        };
        let expected = match command.claim {
            Claim { len, .. } if len != bytes => Err(Fault::Malformed),
            Claim { offset, .. } if offset % bytes != 0 => Err(Fault::Alignment),
            _ => Ok(()),
        };
        prop_assert_eq!(command.check(), expected);
    }

    // spec: NOTI-6, NOTI-7
    #[test]
    fn each_class_is_raised_once_and_a_fault_only_at_the_requester(command in commands()) {
        let (report, operation) = (command.report(), command.action.operation());
        let here = report.classes_at_initiator(Status::Ok);
        let there = operation.at_target(command.classes).unwrap_or(Classes::empty());
        let asked = command.classes.intersection(Classes::REQUESTER);
        prop_assert_eq!(here.intersection(Classes::REQUESTER), asked);
        prop_assert!(!here.contains(Classes::RESPONDER), "memory is read at the target");
        prop_assert!(here.intersection(there).is_empty(), "no class is raised at both ports");
        let raised = here.union(there);
        prop_assert!(command.classes.contains(raised) || command.action == Action::Notify);
        let completes = raised.contains(Classes::COMPLETER);
        let asked = command.classes.contains(Classes::COMPLETER);
        prop_assert_eq!(completes, asked || command.action == Action::Notify);
        for fault in [Fault::StaleKey, Fault::PeerDead] {
            let at_fault = report.classes_at_initiator(Status::Fault(fault));
            prop_assert_eq!(at_fault, Classes::REQUESTER);
        }
        prop_assert_eq!(report.classes_at_initiator(Status::Declined), here);
    }

    /// A notification at the target needs its right in addition to those of the memory.
    // spec: CAP-2
    #[test]
    fn required_rights_follow_from_the_command(command in commands()) {
        let memory = match command.action {
            Action::Put | Action::Immediate(_) => Rights::WRITE,
            Action::Get => Rights::READ,
            Action::Atomic(_) | Action::Fetch(_) => Rights::ATOMIC,
            Action::Notify => Rights::empty(),
        };
        prop_assert_eq!(command.action.rights(), memory);
        let notifies = command.action != Action::Notify
            && class_at_target(command.action.operation(), command.classes).is_some();
        prop_assert_eq!(command.rights() - memory == Rights::NOTIFY, notifies);
        let answers = matches!(command.action, Action::Get | Action::Fetch(_));
        prop_assert_eq!(command.action.answers(), answers);
    }
}

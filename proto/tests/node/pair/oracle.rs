//! The results of operations, executed one after the other in the order in which they were posted:
//! no cutting, no credit, no channels.
use super::port::{BASE, LEN, MEMORY, NOTHING, carried};
use ayre_proto::alu::{Atomic, Fetched, Width};
use ayre_proto::deposit::message::Posted;
use ayre_proto::execute::{Action, Command, Report};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::notify::{Classes, Notification};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Key, PeerId, Rights};

/// How an operation ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expected {
    pub(crate) report: Report,
    pub(crate) status: Status,
    pub(crate) value: u64,
    /// The contents of its local buffer afterwards, if it has one.
    pub(crate) read: Option<Vec<u8>>,
    /// The notification at its target.
    pub(crate) note: Option<Notification>,
}

/// The effects to come of an operation that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub(crate) expected: Expected,
    /// Where its data lands, if it does.
    pub(crate) lands: Lands,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Lands {
    Nowhere,
    /// In one of the program's buffers.
    Buffer(usize),
    /// In that of a call that waits.
    Call,
    /// As one of the replies.
    Reply(usize),
}

/// Whether an operation that has ended so has raised nothing that it could have at its target.
pub(crate) fn frees_credit(report: &Report, status: Status) -> bool {
    let fault = status.fault().filter(|fault| *fault != Fault::Held);
    fault.is_some() && report.operation.at_target(report.classes).is_some()
}

/// One port's memory, and the keys that its peer has.
#[derive(Debug)]
pub(crate) struct Oracle {
    initiator: PeerId,
    pub(crate) memory: Vec<u8>,
    /// With what they allow, or the fault that they give.
    pub(crate) keys: Vec<(Key, Result<Rights, Fault>)>,
}

impl Oracle {
    pub(crate) fn new(initiator: PeerId) -> Self {
        Self { initiator, memory: vec![NOTHING; MEMORY], keys: Vec::new() }
    }

    fn allowed(&self, key: Key) -> Result<Rights, Fault> {
        let known = self.keys.iter().find(|(known, _)| *known == key);
        known.map_or(Err(Fault::UnknownKey), |(_, allowed)| *allowed)
    }

    fn refused(&self, command: &Command) -> Result<(), Fault> {
        let needs = match command.action {
            Action::Put | Action::Immediate(_) => Rights::WRITE,
            Action::Get => Rights::READ,
            Action::Atomic(_) | Action::Fetch(_) => Rights::ATOMIC,
            Action::Notify => return Ok(()),
        };
        let is_word =
            matches!(command.action, Action::Immediate(_) | Action::Atomic(_) | Action::Fetch(_));
        if is_word && !command.claim.offset.is_multiple_of(command.claim.len) {
            return Err(Fault::Alignment);
        }
        let allowed = self.allowed(command.claim.key)?;
        let notifies = self.note_of(command).is_some();
        if !allowed.contains(needs) || notifies && !allowed.contains(Rights::NOTIFY) {
            return Err(Fault::Rights);
        }
        let end = command.claim.offset.checked_add(command.claim.len);
        if end.is_some_and(|end| end <= LEN) { Ok(()) } else { Err(Fault::Bounds) }
    }

    /// By the table of spec/30.
    fn note_of(&self, command: &Command) -> Option<Notification> {
        let wanted = match command.action {
            Action::Put | Action::Immediate(_) => Classes::COMPLETER,
            Action::Get | Action::Atomic(_) | Action::Fetch(_) => Classes::RESPONDER,
            Action::Notify => Classes::COMPLETER,
        };
        let asked = command.action == Action::Notify || command.classes.contains(wanted);
        let (source, operation) = (self.initiator, command.action.operation());
        let (tag, value, status) = (command.tag, command.value, Status::Ok);
        asked.then_some(Notification { source, class: wanted, status, operation, tag, value })
    }

    /// An operation with its source, or the length of its destination.
    pub(crate) fn apply(&mut self, command: &Command, shape: &Shape, local: &[u8]) -> Expected {
        let report = command.report();
        let read = (command.action == Action::Get).then(|| local.to_vec());
        let fetches = matches!(command.action, Action::Fetch(_));
        let value = if fetches { 0 } else { command.value };
        let mut expected = Expected { report, status: Status::Ok, value, read, note: None };
        if let Err(fault) = self.refused(command) {
            expected.status = Status::Fault(fault);
            return expected;
        }
        expected.note = self.note_of(command);
        let at = (BASE + command.claim.offset) as usize;
        match command.action {
            Action::Put => rows(shape, |near, far, len| {
                self.memory[at + far..][..len].copy_from_slice(&local[near..][..len]);
            }),
            Action::Get => {
                let read = expected.read.as_mut().expect("a get has a buffer");
                rows(shape, |near, far, len| {
                    read[near..][..len].copy_from_slice(&self.memory[at + far..][..len]);
                });
            }
            Action::Immediate(value) => {
                self.memory[at..][..8].copy_from_slice(&value.to_le_bytes());
            }
            Action::Notify => {}
            Action::Atomic(atomic) => {
                self.atomic(at, &atomic);
            }
            Action::Fetch(atomic) => {
                let Fetched { value, success } = self.atomic(at, &atomic);
                expected.value = value;
                expected.status = if success { Status::Ok } else { Status::Declined };
            }
        }
        expected
    }

    fn atomic(&mut self, at: usize, atomic: &Atomic) -> Fetched {
        let len = if atomic.width == Width::W32 { 4 } else { 8 };
        let mut word = [0; 8];
        word[..len].copy_from_slice(&self.memory[at..][..len]);
        let old = u64::from_le_bytes(word);
        if let Some(new) = atomic.apply(old) {
            self.memory[at..][..len].copy_from_slice(&new.to_le_bytes()[..len]);
        }
        atomic.fetched(old)
    }

    /// A deposit message, whose buffer is for what it wants.
    pub(crate) fn deliver(&mut self, posted: &Posted, data: &[u8], into: usize) -> Expected {
        let Posted { message, tag, value, .. } = *posted;
        let (report, read) = (posted.report(), (into > 0).then(|| vec![NOTHING; into]));
        let status = Status::Fault(Fault::UnknownKey);
        let mut expected = Expected { report, status, value: 0, read, note: None };
        if let Err(fault) = self.allowed(posted.key) {
            expected.status = Status::Fault(fault);
            return expected;
        }
        let carried = carried(posted);
        expected.status = carried.status;
        let noted = carried.notifies || carried.status == Status::Fault(Fault::Held);
        expected.note = noted.then_some(Notification {
            source: self.initiator,
            class: Classes::COMPLETER,
            status: carried.status,
            operation: report.operation,
            tag,
            value,
        });
        let place = &mut self.memory[BASE as usize..][..usize::from(message.len)];
        if carried.status == Status::Ok && message.brings {
            place.copy_from_slice(data);
        } else if carried.status == Status::Ok {
            expected.read = (into > 0).then(|| place.to_vec());
        }
        if carried.status == Status::Declined || carried.status == Status::Ok && message.is_answered
        {
            expected.value = carried.given;
        }
        expected
    }
}

/// Where rows begin at either end, and how long they are.
fn rows(shape: &Shape, mut row: impl FnMut(usize, usize, usize)) {
    for number in (0..shape.rows).filter(|_| shape.row_len > 0) {
        let [near, far] =
            [shape.local_stride, shape.remote_stride].map(|by| (number * by) as usize);
        row(near, far, shape.row_len as usize);
    }
}

//! The effects of a valid command.
//!
//! There is one lowering for all operations. An operation is performed by the initiating processor
//! in a mapped region, by the target's responder, or by a simulator. Each checks the command, and
//! then calls [`execute`] with its own [`Effects`].
use crate::alu::{Atomic, Fetched};
use crate::fault::{Fault, Status};
use crate::notify::{Classes, Notification, Operation};
use crate::units::{Claim, Extent, PeerId, Rights};

/// An operation, with the values that it carries besides bulk data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bytes of the initiator to the target.
    Put,
    /// Bytes of the target to the initiator.
    Get,
    /// Eight bytes, carried here.
    Immediate(u64),
    /// Nothing but a notification at the target.
    Notify,
    /// Atomic without a result.
    Atomic(Atomic),
    /// Atomic with a result.
    Fetch(Atomic),
}

impl Action {
    /// Its name in notifications.
    #[inline(always)]
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Put => Operation::Put,
            Self::Get => Operation::Get,
            Self::Immediate(_) => Operation::ImmediatePut,
            Self::Notify => Operation::NotificationPut,
            Self::Atomic(_) => Operation::Atomic,
            Self::Fetch(_) => Operation::FetchAtomic,
        }
    }

    /// Rights on the target's memory; none for a notification put, which accesses no memory.
    #[inline(always)]
    pub const fn rights(&self) -> Rights {
        match self {
            Self::Put | Self::Immediate(_) => Rights::WRITE,
            Self::Get => Rights::READ,
            Self::Atomic(_) | Self::Fetch(_) => Rights::ATOMIC,
            Self::Notify => Rights::empty(),
        }
    }

    /// Whether the initiator waits for data of the target.
    #[inline(always)]
    pub const fn answers(&self) -> bool {
        matches!(self, Self::Get | Self::Fetch(_))
    }
}

/// An operation as its performer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The operation.
    pub action: Action,
    /// Which notifications are raised.
    pub classes: Classes,
    /// The user's, in notifications.
    pub tag: u32,
    /// The user's, in notifications.
    pub value: u64,
    /// Where, as the initiator says; ignored by a notification put.
    pub claim: Claim,
}

impl Command {
    /// All rights the command needs, those for its notification at the target included.
    // spec: CAP-2
    #[inline(always)]
    pub const fn rights(&self) -> Rights {
        if matches!(self.action, Action::Notify) {
            return Rights::empty();
        }
        let notify = if self.notifies_target() { Rights::NOTIFY } else { Rights::empty() };
        self.action.rights().union(notify)
    }

    /// Whether the target sees a notification of it.
    #[inline(always)]
    pub const fn notifies_target(&self) -> bool {
        self.action.operation().at_target(self.classes).is_some()
    }

    /// Makes the checks that need no knowledge of the target's table.
    // spec: IMM-1, ATOM-2
    #[inline(always)]
    pub const fn check(&self) -> Result<(), Fault> {
        match self.action {
            Action::Atomic(atomic) | Action::Fetch(atomic) => {
                let width = atomic.width.bytes();
                if self.claim.len != width {
                    return Err(Fault::Malformed);
                }
                if !self.claim.offset.is_multiple_of(width) {
                    return Err(Fault::Alignment);
                }
                Ok(())
            }
            Action::Immediate(_) if self.claim.len != 8 => Err(Fault::Malformed),
            Action::Immediate(_) if !self.claim.offset.is_multiple_of(8) => Err(Fault::Alignment),
            _ => Ok(()),
        }
    }

    /// The contents of the command's notifications.
    #[inline(always)]
    pub const fn report(&self) -> Report {
        let (operation, classes) = (self.action.operation(), self.classes);
        Report { operation, classes, tag: self.tag, value: self.value }
    }

    /// The notification that the target sees, if any, from `initiator`.
    #[inline(always)]
    pub const fn note_at_target(&self, initiator: PeerId) -> Option<Notification> {
        let report = self.report();
        match report.operation.at_target(self.classes) {
            Some(class) => Some(report.note(initiator, class, Status::Ok, self.value)),
            None => None,
        }
    }
}

/// The part of a command that is kept while it is under way: enough for its notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub operation: Operation,
    /// Which notifications it raises.
    pub classes: Classes,
    /// The user's.
    pub tag: u32,
    /// The user's.
    pub value: u64,
}

impl Report {
    /// A notification of the command.
    #[inline(always)]
    pub const fn note(
        &self,
        source: PeerId,
        class: Classes,
        status: Status,
        value: u64,
    ) -> Notification {
        Notification { source, class, status, operation: self.operation, tag: self.tag, value }
    }

    /// The classes to raise at the initiator: those asked for, or where the operation faulted the
    /// requester's alone, asked for or not.
    // spec: NOTI-7
    #[inline(always)]
    pub const fn classes_at_initiator(&self, status: Status) -> Classes {
        match status {
            Status::Fault(_) => Classes::REQUESTER,
            _ => self.operation.at_initiator(self.classes),
        }
    }
}

/// Everything that performing a command may cause at the target and on the way back.
///
/// None of these can fail: memory was checked by translation, and room for an answer or a
/// notification was made sure of before [`execute`] is called.
// spec: POST-2
pub trait Effects {
    /// Writes the command's data to memory.
    fn deposit(&mut self, to: Extent);
    /// Sends memory to the initiator as the command's result.
    fn collect(&mut self, from: Extent);
    /// Writes an aligned word of eight bytes, little-endian, in one access.
    fn store(&mut self, to: Extent, value: u64);
    /// Performs an atomic on memory.
    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched;
    /// Sends an atomic's result to the initiator.
    fn answer(&mut self, fetched: Fetched);
    /// Raises a notification at the target, after all data of the command and of commands before.
    fn notify(&mut self, notification: Notification);
}

/// Performs a checked command of `initiator`. `extent` is the translation of its claim.
// spec: POST-7, NOTI-5
#[inline(always)]
pub fn execute(command: &Command, extent: Extent, initiator: PeerId, fx: &mut impl Effects) {
    let accesses = !matches!(command.action, Action::Notify);
    debug_assert!(!accesses || extent.len() == command.claim.len, "the extent is the claim's");
    debug_assert!(command.check().is_ok(), "a command is performed when it was checked");
    match command.action {
        Action::Put => fx.deposit(extent),
        Action::Get => fx.collect(extent),
        Action::Immediate(value) => fx.store(extent, value),
        Action::Notify => {}
        Action::Atomic(atomic) => {
            fx.atomic(extent, &atomic);
        }
        Action::Fetch(atomic) => {
            let fetched = fx.atomic(extent, &atomic);
            fx.answer(fetched);
        }
    }
    if let Some(notification) = command.note_at_target(initiator) {
        fx.notify(notification);
    }
}

/// The extent of a command that accesses no memory.
pub const NOWHERE: Extent = Extent::new(0, 0, 0);

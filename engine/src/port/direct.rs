//! Direct execution: the initiating processor performs the operation in the peer's memory.
//!
//! ```text
//!   active := key ; light fence ; generation still the key's?  no: active := 0, StaleKey
//!   copy, or atomic, or nothing
//!   notification into the target's request lane (LANE-R1 covers the copy)
//!   active := 0 (REV-R1) ; kick if the target sleeps
//! ```
//!
//! A revoking owner raises the generation, executes a heavy fence and waits for `active` to leave
//! the key. So either the owner sees us inside, or we see the new generation.
use super::connection::active_word;
use super::local::Local;
use super::posted::Posted;
use crate::error::{Busy, Fault, PostError};
use crate::mem::lane::LaneSender;
use crate::mem::map::Mapping;
use crate::mem::page::Sleeper;
use crate::mem::region::PeerMemory;
use crate::mem::word::Word;
use crate::peer::contact::Link;
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::execute::{Action, Command, Effects, execute};
use ayre_proto::fault::Status;
use ayre_proto::lane::Kind;
use ayre_proto::limits::LINE_PAYLOAD;
use ayre_proto::notify::Notification;
use ayre_proto::units::{Extent, Key, PeerId, Ticket};

impl Port {
    /// Performs a checked command in the peer's memory, within this call.
    // spec: PROG-1, POST-8, ORD-10
    #[inline(always)]
    pub(crate) fn perform_direct(
        &mut self,
        peer: PeerId,
        command: Command,
        extent: Extent,
        memory: Option<&PeerMemory>,
        local: impl Local,
    ) -> Result<Posted, PostError> {
        let initiator = self.id;
        let connection = self.connection_mut(peer)?;
        let end = connection.executor.direct().ok_or(Fault::ForeignHandle)?;
        debug_assert!(connection.ended.is_none(), "nothing goes to who has gone");
        let is_notify = matches!(command.action, Action::Notify);
        debug_assert_eq!(memory.is_none(), is_notify, "what touches memory has it mapped");
        let notifies = command.note_at_target(initiator).is_some();
        if notifies && end.notes_out.reserve(NOTE_BYTES).is_err() {
            return Err(self.busy(Busy::RequestLaneFull));
        }
        connection.posted += 1;
        let ticket = Ticket(connection.posted);
        let mut fx = DirectFx {
            memory: memory.map(|memory| &*memory.mapping),
            local,
            notes: &mut end.notes_out,
            place: place_of(&command, &extent),
            fetched: Fetched { value: command.value, success: true },
        };
        let (link, active) = (&connection.link, &connection.active);
        let mut status = Status::Ok;
        if let Some(memory) = memory {
            if enter((active, link), memory, command.claim.key) {
                execute(&command, extent, initiator, &mut fx);
            } else {
                status = Status::Fault(Fault::StaleKey);
            }
            leave(active);
        } else {
            execute(&command, extent, initiator, &mut fx);
        }
        let Fetched { value, success } = fx.fetched;
        if notifies {
            link.kick(Sleeper::Port);
        }
        if status == Status::Ok && !success {
            status = Status::Declined;
        }
        let report = command.report();
        if !report.classes_at_initiator(status).is_empty() || status.fault().is_some() {
            self.complete(peer, &report, status, value);
        }
        Ok(Posted { ticket, status, value })
    }
}

/// Shows the owner of a key that this port is inside, until it leaves. Returns whether the key is
/// still good.
#[inline(always)]
pub(super) fn enter((active, link): (&Word, &Link), memory: &PeerMemory, key: Key) -> bool {
    // Relaxed: ordered before the load below by the fence.
    active.store(active_word(key.slot), Ordering::Relaxed);
    link.fencing.light();
    // Relaxed: only the number matters.
    memory.generation.load(Ordering::Relaxed) == u64::from(key.generation)
}

/// Ends a stay inside a key.
#[inline(always)]
pub(super) fn leave(active: &Word) {
    // REV-R1: our stores are visible to the owner that sees us outside (REV-A1).
    active.store(0, Ordering::Release);
}

/// Bytes of a notification in a lane: the record, and the place of the data.
const NOTE_BYTES: usize = 24;
const _: () = assert!(NOTE_BYTES <= LINE_PAYLOAD, "batches count a line for each");

/// Region and offset of the data that a notification is about; all ones where there is no data.
#[inline(always)]
fn place_of(command: &Command, extent: &Extent) -> u64 {
    match command.action {
        Action::Put | Action::Immediate(_) => u64::from(extent.region()) | extent.offset() << 16,
        _ => u64::MAX,
    }
}

/// Performs a command on a mapping of the target's memory, at the initiator.
struct DirectFx<'a, L> {
    /// None only where the command accesses no memory.
    memory: Option<&'a Mapping>,
    local: L,
    notes: &'a mut LaneSender,
    /// The place of the data, for the target's [`super::landing::Landing`].
    place: u64,
    fetched: Fetched,
}

impl<'a, L> DirectFx<'a, L> {
    #[inline(always)]
    fn memory(&self) -> &'a Mapping {
        self.memory.expect("a region of a direct peer is mapped when it is accepted")
    }
}

impl<L: Local> Effects for DirectFx<'_, L> {
    #[inline(always)]
    fn deposit(&mut self, to: Extent) {
        let memory = self.memory();
        self.local.deposit(memory, to);
    }

    #[inline(always)]
    fn collect(&mut self, from: Extent) {
        let memory = self.memory();
        self.local.collect(memory, from);
    }

    #[inline(always)]
    fn store(&mut self, to: Extent, value: u64) {
        self.memory().store(to.offset(), value);
    }

    #[inline(always)]
    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        self.memory().atomic(at.offset(), atomic)
    }

    #[inline(always)]
    fn answer(&mut self, fetched: Fetched) {
        self.fetched = fetched;
    }

    #[inline(always)]
    fn notify(&mut self, notification: Notification) {
        let [head, value] = notification.encode();
        let record = [head, value, self.place];
        let pushed = self.notes.push((Kind::Notification, 0), record, &[]);
        debug_assert!(pushed.is_ok(), "room was reserved");
    }
}

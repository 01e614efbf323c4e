//! Direct execution: the initiating processor performs the operation in the peer's memory.
//!
//! ```text
//!   active := key ; light fence ; generation still the key's?  no: active := 0, StaleKey
//!   copy, or atomic, or nothing
//!   notification into the target's request lane (LANE-R1 covers the copy)
//!   active := 0 (REV-R1) ; kick if the target sleeps
//! ```
//!
//! A revoking owner raises the generation, fences heavily and waits for `active` to leave the key;
//! so either it sees us inside, or we see the new generation.
use crate::connection::{Executor, active_word};
use crate::error::{Busy, Fault, PostError};
use crate::mem::lane::LaneSender;
use crate::mem::layout::Control;
use crate::mem::map::Mapping;
use crate::mem::page::Sleeper;
use crate::ops::{Buffer, Posted, Transfer};
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::execute::{Action, Command, Effects, execute};
use ayre_proto::fault::Status;
use ayre_proto::lane::Kind;
use ayre_proto::notify::Notification;
use ayre_proto::units::PeerId;
use ayre_proto::units::{Extent, Ticket};

impl Port {
    /// Performs a checked command in the peer's memory, here and now.
    // spec: PUT-3
    #[inline]
    pub(crate) fn perform_direct(
        &mut self,
        peer: PeerId,
        command: Command,
        extent: Extent,
        memory: Option<&Mapping>,
        transfer: Transfer<'_>,
    ) -> Result<Posted, PostError> {
        let initiator = self.id;
        let connection = self.connection_mut(peer)?;
        let Executor::Direct(end) = &mut connection.executor else {
            return Err(Fault::ForeignHandle.into());
        };
        let notifies = command.note_at_target(initiator).is_some();
        if notifies && end.notes_out.reserve(16).is_err() {
            return Err(Busy::RequestLaneFull.into());
        }
        connection.posted += 1;
        let ticket = Ticket(connection.posted);
        let mut fx = DirectFx {
            memory,
            transfer,
            notes: &mut end.notes_out,
            fetched: Fetched { value: command.value, success: true },
        };
        let link = &connection.link;
        let mut status = Status::Ok;
        if command.action == Action::Notify {
            execute(&command, extent, initiator, &mut fx);
        } else {
            let active = connection.out.control(Control::Active);
            let key = command.claim.key;
            // Relaxed: ordered before the load below by the fence.
            active.store(active_word(key.slot), Ordering::Relaxed);
            link.fencing.light();
            // Relaxed: only the number matters.
            if link.page.generation(key.slot).load(Ordering::Relaxed) == u64::from(key.generation) {
                execute(&command, extent, initiator, &mut fx);
            } else {
                status = Status::Fault(Fault::StaleKey);
            }
            // REV-R1: our stores are visible to the owner that sees us outside (REV-A1).
            active.store(0, Ordering::Release);
        }
        let Fetched { value, success } = fx.fetched;
        if notifies {
            link.kick(Sleeper::Port);
        }
        if status == Status::Ok && !success {
            status = Status::Declined;
        }
        if status != Status::Ok || !command.classes.is_empty() {
            self.complete(peer, &command.report(), status, value);
        }
        Ok(Posted { ticket, status, value })
    }
}

/// Performs a command on a mapping of the target's memory, at the initiator.
struct DirectFx<'a> {
    /// None only where the command touches no memory.
    memory: Option<&'a Mapping>,
    transfer: Transfer<'a>,
    notes: &'a mut LaneSender,
    fetched: Fetched,
}

impl<'a> DirectFx<'a> {
    #[inline]
    fn memory(&self) -> &'a Mapping {
        self.memory.expect("a region of a direct peer is mapped when it is accepted")
    }
}

impl Effects for DirectFx<'_> {
    #[inline]
    fn deposit(&mut self, to: Extent) {
        let (memory, shape) = (self.memory(), self.transfer.shape);
        match self.transfer.buffer {
            Buffer::Out(bytes) if shape.rows == 1 => memory.write(to.offset(), bytes),
            Buffer::Out(bytes) => {
                for piece in shape.pieces(u64::MAX) {
                    let row = &bytes[piece.local as usize..][..piece.len as usize];
                    memory.write(to.offset() + piece.remote, row);
                }
            }
            Buffer::OutRegion(from, offset) => {
                for piece in shape.pieces(u64::MAX) {
                    let (at, len) = (to.offset() + piece.remote, piece.len as usize);
                    memory.write_from(at, from, offset + piece.local, len);
                }
            }
            _ => unreachable!("a put has a source"),
        }
    }

    #[inline]
    fn collect(&mut self, from: Extent) {
        let (memory, shape) = (self.memory(), self.transfer.shape);
        match &mut self.transfer.buffer {
            Buffer::In(bytes) if shape.rows == 1 => memory.read(from.offset(), bytes),
            Buffer::In(bytes) => {
                for piece in shape.pieces(u64::MAX) {
                    let row = &mut bytes[piece.local as usize..][..piece.len as usize];
                    memory.read(from.offset() + piece.remote, row);
                }
            }
            Buffer::InRegion(into, offset) => {
                for piece in shape.pieces(u64::MAX) {
                    let (at, len) = (from.offset() + piece.remote, piece.len as usize);
                    into.write_from(*offset + piece.local, memory, at, len);
                }
            }
            _ => unreachable!("a get has a destination"),
        }
    }

    #[inline]
    fn store(&mut self, to: Extent, value: u64) {
        self.memory().write(to.offset(), &value.to_le_bytes());
    }

    #[inline]
    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        self.memory().atomic(at.offset(), atomic)
    }

    #[inline]
    fn answer(&mut self, fetched: Fetched) {
        self.fetched = fetched;
    }

    #[inline]
    fn notify(&mut self, notification: Notification) {
        let pushed = self.notes.push((Kind::Notification, 0), notification.encode(), &[]);
        debug_assert!(pushed.is_ok(), "room was reserved");
    }
}

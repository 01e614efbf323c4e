//! Operations on remote memory.
//!
//! Each operation becomes a command, is checked against the handle, and goes to the executor of the
//! connection: [`super::direct`] or [`super::mediated`].
use super::executor::Executor;
use super::local::{Buffer, Carried, Incoming, Local, Outgoing, Sink, Source, Transfer};
use super::mediated::Order;
use super::options::{GetDestination, LocalSlice, PostOptions, PutSource};
use super::posted::Posted;
use crate::error::{Busy, Fault, PostError};
use crate::mem::map::Mapping;
use crate::mem::region::{PeerMemory, RemoteRegion};
use crate::port::Port;
use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
use ayre_proto::execute::{Action, Command, NOWHERE, Report};
use ayre_proto::fault::Status;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Extent, Key, PeerId, Ticket};
use std::sync::Arc;
use std::time::Duration;

/// The shape of a strided operation: rows of equal length at equal distances, in the local buffer
/// and at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Length of a row in bytes.
    pub row_len: u64,
    /// Number of rows.
    pub rows: u64,
    /// Bytes from the start of a row to the start of the next one, in the local buffer.
    pub local_stride: u64,
    /// Bytes from the start of a row to the start of the next one, at the target.
    pub remote_stride: u64,
}

impl From<Strided> for Shape {
    fn from(strided: Strided) -> Self {
        let Strided { row_len, rows, local_stride, remote_stride } = strided;
        Self { row_len, rows, local_stride, remote_stride }
    }
}

impl Port {
    /// Copies local bytes to a peer's memory: `at` is the offset in the remote region.
    ///
    /// The local buffer may be reused when the call returns. The data is visible at the target no
    /// later than the operation's completer notification, a later message or notification of this
    /// port, or the return of [`Port::flush`].
    ///
    /// Does not block on a direct connection. On a mediated one, a put that exceeds half the
    /// request lane, or a frame, is cut into pieces. It may then block, making progress, until the
    /// target's engine has made room for the pieces after the first. A put of one piece does not
    /// block.
    ///
    /// # Errors
    /// [`Fault::Rights`], [`Fault::Bounds`], [`Fault::PeerDead`], [`Fault::ForeignHandle`];
    /// [`Busy`] without effect. A fault that only the target can detect (a revoked key) arrives as
    /// a requester notification and from [`Port::flush`].
    // spec: PUT-1, PUT-2, PUT-4
    #[inline(always)]
    pub fn put<'a>(
        &mut self,
        to: &RemoteRegion,
        offset: u64,
        from: impl Into<PutSource<'a>>,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let posted = match from.into() {
            PutSource::Bytes(bytes) => {
                self.post(to, offset, Action::Put, Outgoing(bytes), options)?
            }
            from => {
                let shape = Shape::contiguous(from.len());
                let buffer = Buffer::Out(self.source(from)?);
                self.post(to, offset, Action::Put, Transfer { buffer, shape }, options)?
            }
        };
        Ok(posted.ticket)
    }

    /// Copies rows of the local buffer to rows at the target, as one operation with one
    /// notification. Each row is at least one piece, so it may block as [`Port::put`] may.
    ///
    /// # Errors
    /// As [`Port::put`]. Also [`Fault::Bounds`] where a row leaves the local buffer, and
    /// [`Fault::Malformed`] where rows would overlap at the target.
    // spec: STR-1, STR-4
    pub fn put_strided<'a>(
        &mut self,
        to: &RemoteRegion,
        offset: u64,
        from: impl Into<PutSource<'a>>,
        rows: Strided,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let (from, shape) = (from.into(), Shape::from(rows));
        check_rows(&shape, shape.remote_stride, from.len())?;
        let transfer = Transfer { buffer: Buffer::Out(self.source(from)?), shape };
        Ok(self.post(to, offset, Action::Put, transfer, options)?.ticket)
    }

    /// Copies a peer's memory to a local buffer.
    ///
    /// A get into private bytes has the data when the call returns: on a mediated connection it
    /// blocks until the answer comes, and makes progress meanwhile.
    ///
    /// A get into a region does not wait for the data. It is there with the completer notification,
    /// or after [`Port::flush`]. A get that exceeds half the response lane of a mediated connection
    /// is cut into pieces, and may block for room as a put of several pieces does.
    ///
    /// # Errors
    /// As [`Port::put`]; a get into private bytes also returns the faults that the target detects.
    // spec: GET-1, GET-2, GET-3
    #[inline(always)]
    pub fn get<'a>(
        &mut self,
        from: &RemoteRegion,
        offset: u64,
        into: impl Into<GetDestination<'a>>,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        match into.into() {
            GetDestination::Bytes(bytes) => {
                self.post(from, offset, Action::Get, Incoming(bytes), options)?.landed()
            }
            into => {
                let shape = Shape::contiguous(into.len());
                self.get_shape(from, offset, into, shape, options)
            }
        }
    }

    /// Copies rows at the target to rows of the local buffer. Each row is at least one piece, so it
    /// may block as [`Port::get`] may.
    ///
    /// # Errors
    /// As [`Port::get`]. Also [`Fault::Bounds`] where a row leaves the local buffer, and
    /// [`Fault::Malformed`] where rows would overlap in it.
    // spec: STR-4
    pub fn get_strided<'a>(
        &mut self,
        from: &RemoteRegion,
        offset: u64,
        into: impl Into<GetDestination<'a>>,
        rows: Strided,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let (into, shape) = (into.into(), Shape::from(rows));
        check_rows(&shape, shape.local_stride, into.len())?;
        self.get_shape(from, offset, into, shape, options)
    }

    #[inline(always)]
    fn get_shape(
        &mut self,
        from: &RemoteRegion,
        offset: u64,
        into: GetDestination<'_>,
        shape: Shape,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let waits = !matches!(into, GetDestination::Region(_));
        let transfer = Transfer { buffer: self.destination(into)?, shape };
        let posted = self.post(from, offset, Action::Get, transfer, options)?;
        if waits { posted.landed() } else { Ok(posted.ticket) }
    }

    /// Stores eight bytes, little-endian, which travel in the command itself. At a multiple of
    /// eight, it is one access. Never blocks.
    ///
    /// # Errors
    /// As [`Port::put`].
    // spec: IMM-1
    #[inline(always)]
    pub fn put_immediate(
        &mut self,
        to: &RemoteRegion,
        offset: u64,
        value: u64,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let action = Action::Immediate(value);
        Ok(self.post(to, offset, action, Carried(8), options)?.ticket)
    }

    /// Raises a completer notification at a peer, without writing memory: a notification put. Never
    /// blocks.
    ///
    /// # Errors
    /// [`Busy`]; [`Fault::PeerDead`], [`Fault::ForeignHandle`].
    // spec: NPUT-1, NPUT-2
    #[inline(always)]
    pub fn notify(&mut self, peer: PeerId, options: PostOptions) -> Result<Ticket, PostError> {
        let command = command(Action::Notify, Claim { key: NO_KEY, offset: 0, len: 0 }, options);
        Ok(self.dispatch(peer, command, NOWHERE, None, Carried(0))?.ticket)
    }

    /// Performs an atomic on a word of a peer's memory and discards the result. Never blocks.
    ///
    /// # Errors
    /// As [`Port::put`]; [`Fault::Alignment`].
    // spec: ATOM-1
    #[inline(always)]
    pub fn atomic(
        &mut self,
        on: &RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: PostOptions,
    ) -> Result<Ticket, PostError> {
        let local = Carried(atomic.width.bytes());
        Ok(self.post(on, offset, Action::Atomic(atomic), local, options)?.ticket)
    }

    /// Performs an atomic on a word of a peer's memory and returns the result: the old value, or
    /// the new one of FCAA. On a mediated connection it blocks until the answer comes, and makes
    /// progress meanwhile.
    ///
    /// # Errors
    /// As [`Port::atomic`], and the faults that the target detects.
    // spec: ATOM-3, ATOM-5
    #[inline(always)]
    pub fn fetch(
        &mut self,
        on: &RemoteRegion,
        offset: u64,
        atomic: Atomic,
        options: PostOptions,
    ) -> Result<Fetched, PostError> {
        let local = Carried(atomic.width.bytes());
        let posted = self.post(on, offset, Action::Fetch(atomic), local, options)?;
        posted.landed()?;
        Ok(Fetched { value: posted.value, success: posted.status == Status::Ok })
    }

    /// Adds to a 64-bit word and returns the old value. Blocks as [`Port::fetch`].
    ///
    /// # Errors
    /// As [`Port::fetch`].
    #[inline(always)]
    pub fn fetch_add(
        &mut self,
        on: &RemoteRegion,
        offset: u64,
        add: u64,
    ) -> Result<u64, PostError> {
        let atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: add, compare: 0 };
        Ok(self.fetch(on, offset, atomic, PostOptions::new())?.value)
    }

    /// Stores `new` into a 64-bit word if it holds `expected`. Returns the old value, and whether
    /// it was stored. Blocks as [`Port::fetch`].
    ///
    /// # Errors
    /// As [`Port::fetch`].
    #[inline(always)]
    pub fn compare_swap(
        &mut self,
        on: &RemoteRegion,
        offset: u64,
        expected: u64,
        new: u64,
    ) -> Result<Fetched, PostError> {
        let atomic = Atomic {
            width: Width::W64,
            op: AtomicOp::CompareSwap,
            operand: new,
            compare: expected,
        };
        self.fetch(on, offset, atomic, PostOptions::new())
    }

    /// Fetch-compare-and-add: adds `add` to the 64-bit word if the word is at most `compare`, in
    /// two's complement. Returns the new value, or the present one if it was greater (declined).
    /// Blocks as [`Port::fetch`].
    ///
    /// # Errors
    /// As [`Port::fetch`].
    // spec: FCAA-2, FCAA-4
    #[inline(always)]
    pub fn fcaa(
        &mut self,
        on: &RemoteRegion,
        offset: u64,
        compare: i64,
        add: i64,
    ) -> Result<Fetched, PostError> {
        let atomic = Atomic {
            width: Width::W64,
            op: AtomicOp::Fcaa,
            operand: add as u64,
            compare: compare as u64,
        };
        self.fetch(on, offset, atomic, PostOptions::new())
    }

    /// Blocks until everything posted to a peer has completed there. Returns the first fault since
    /// the last flush. On a direct connection operations complete within their call, so this does
    /// not wait.
    ///
    /// # Errors
    /// The first fault of an operation, or [`Fault::PeerDead`]; [`Fault::Interrupted`].
    // spec: FLUSH-1, FLUSH-2, ORD-9
    pub fn flush(&mut self, peer: PeerId) -> Result<(), Fault> {
        // Only an interrupt ends it early.
        if self.flush_within(peer, None)? { Ok(()) } else { Err(Fault::Interrupted) }
    }

    /// Does as [`Port::flush`], but blocks for at most `timeout`. Returns whether all has
    /// completed; where it has not, a later call goes on.
    ///
    /// # Errors
    /// As [`Port::flush`].
    pub fn flush_within(&mut self, peer: PeerId, timeout: Option<Duration>) -> Result<bool, Fault> {
        self.connection(peer)?;
        if !self.wait_flushed(peer, self.clock.deadline(timeout)) {
            return Ok(false);
        }
        debug_assert!(self.is_flushed(peer), "nothing is under way any more");
        match self.connection_mut(peer)?.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(true),
        }
    }

    /// Whether everything posted to a peer has completed. Does not block.
    pub fn is_flushed(&self, peer: PeerId) -> bool {
        self.connection(peer).map_or(true, |connection| connection.executor.is_idle())
    }

    #[inline(always)]
    fn source<'a>(&self, from: PutSource<'a>) -> Result<Source<'a>, Fault> {
        match from {
            PutSource::Bytes(bytes) => Ok(Source::Bytes(bytes)),
            PutSource::Slices(slices) => Ok(Source::Slices(slices)),
            PutSource::Region(slice) => {
                let region = self.own(&slice)?;
                Ok(Source::Region(region, slice.offset))
            }
        }
    }

    #[inline(always)]
    fn destination<'a>(&self, into: GetDestination<'a>) -> Result<Buffer<'a>, Fault> {
        match into {
            GetDestination::Bytes(bytes) => Ok(Buffer::In(Sink::Bytes(bytes))),
            GetDestination::Slices(slices) => Ok(Buffer::In(Sink::Slices(slices))),
            GetDestination::Region(slice) => {
                let region = self.own(&slice)?;
                Ok(Buffer::InRegion(region, slice.offset))
            }
        }
    }

    // spec: CAP-6
    pub(crate) fn own<'a>(&self, slice: &LocalSlice<'a>) -> Result<&'a Arc<Mapping>, Fault> {
        if slice.region.port() == self.identity {
            Ok(slice.region.mapping())
        } else {
            Err(Fault::ForeignHandle)
        }
    }

    /// Checks an operation against the capability's handle, and passes it to the executor.
    // spec: ERR-3, CAP-5, CAP-6
    #[inline(always)]
    pub(crate) fn post(
        &mut self,
        on: &RemoteRegion,
        offset: u64,
        action: Action,
        local: impl Local,
        options: PostOptions,
    ) -> Result<Posted, PostError> {
        if self.connection(on.peer)?.identity != on.connection {
            return Err(Fault::ForeignHandle.into());
        }
        let len = local.remote_span().ok_or(Fault::Bounds)?;
        let mut command = command(action, Claim { key: on.key, offset, len }, options);
        command.check()?;
        let extent = on.cover.check(&command.claim, command.rights())?;
        debug_assert_eq!(extent.len(), len, "all of it was checked");
        command.claim.offset += on.start;
        self.dispatch(on.peer, command, extent, on.memory.as_ref(), local)
    }

    // spec: POST-5, NOTI-8
    #[inline(always)]
    fn dispatch(
        &mut self,
        peer: PeerId,
        command: Command,
        extent: Extent,
        memory: Option<&PeerMemory>,
        local: impl Local,
    ) -> Result<Posted, PostError> {
        let has_room = self.notes.has_room_for(1);
        let connection = self.connection_mut(peer)?;
        if let Some(why) = connection.ended {
            return Err(why.into());
        }
        if !has_room {
            return Err(self.busy(Busy::NotificationsFull));
        }
        match connection.executor {
            Executor::Direct(_) => self.perform_direct(peer, command, extent, memory, local),
            Executor::Mediated(_) => local.in_general(
                #[inline(always)]
                |transfer| self.post_mediated(peer, Order { command, transfer }),
            ),
        }
    }

    /// Raises the requester notification of a completed operation, and keeps its fault for the next
    /// flush.
    // spec: NOTI-2, FLUSH-2
    #[inline(never)]
    pub(crate) fn complete(&mut self, peer: PeerId, report: &Report, status: Status, value: u64) {
        if let Some(fault) = status.fault() {
            self.count_fault(fault);
            if let Ok(connection) = self.connection_mut(peer) {
                connection.fault.get_or_insert(fault);
            }
        }
        self.notes.complete(peer, report, status, value);
        self.rouse();
    }
}

impl Posted {
    /// The ticket, or the fault that the call has already seen.
    // spec: NOTI-7, ERR-2
    fn landed(&self) -> Result<Ticket, PostError> {
        match self.status {
            Status::Fault(fault) => Err(fault.into()),
            _ => Ok(self.ticket),
        }
    }
}

pub(crate) const NO_KEY: Key = Key { slot: 0, generation: 0 };

#[inline(always)]
fn command(action: Action, claim: Claim, options: PostOptions) -> Command {
    let PostOptions { classes, tag, value } = options;
    Command { action, classes, tag, value, claim }
}

/// Checks that rows lie within the local buffer, and do not overlap in the destination.
// spec: STR-2, STR-3
fn check_rows(shape: &Shape, landing_stride: u64, len: u64) -> Result<(), Fault> {
    if shape.rows > 1 && landing_stride < shape.row_len {
        return Err(Fault::Malformed);
    }
    match shape.local_span() {
        Some(span) if span <= len => Ok(()),
        _ => Err(Fault::Bounds),
    }
}

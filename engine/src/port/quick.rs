//! The shortest way of the most frequent operations, for skins whose calls are functions of a
//! library.
//!
//! Each performs an operation without notifications within its call. Where that takes more steps,
//! it returns nothing, has had no effect, and the general method does all of it. So a function that
//! tries it first needs few registers, no errors and no landing pads.
use super::direct::{enter, leave};
use super::message::Message;
use crate::error::ReceiveError;
use crate::mem::lane::Probe;
use crate::mem::region::{PeerMemory, RemoteRegion};
use crate::port::Port;
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::units::{Claim, PeerId, Rights, Ticket};

/// How far a quick look for a message came.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Untaken(Probe<Message>);

impl Default for Untaken {
    /// It has not begun.
    fn default() -> Self {
        Self(Probe::Nothing)
    }
}

#[doc(hidden)]
impl Port {
    /// Does as [`Port::put`] with a few bytes, on a direct connection.
    // spec: PUT-1, PUT-2
    #[inline(always)]
    pub fn put_quick(&mut self, to: &RemoteRegion, offset: u64, from: &[u8]) -> Option<Ticket> {
        let (memory, at) = to.admit(offset, from.len() as u64, Rights::WRITE)?;
        let write = memory.mapping.place_of(at, from)?;
        let performed = self.perform_quick(
            to,
            memory,
            #[inline(always)]
            || write.perform(),
        );
        performed.map(|(ticket, ())| ticket)
    }

    /// Does as [`Port::fetch_add`], on a direct connection.
    // spec: ATOM-3
    #[inline(always)]
    pub fn fetch_add_quick(&mut self, on: &RemoteRegion, offset: u64, add: u64) -> Option<u64> {
        let (memory, at) = on.admit(offset, 8, Rights::ATOMIC)?;
        let atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: add, compare: 0 };
        let word = memory.mapping.word_to_update(at)?;
        let performed = self.perform_quick(
            on,
            memory,
            #[inline(always)]
            || word.perform(&atomic),
        );
        performed.map(|(_, fetched)| fetched.value)
    }

    /// Does as [`Port::send`] with a message of one line, on a direct connection. Returns whether
    /// it was sent.
    // spec: MSG-2, MSG-4
    #[inline(always)]
    pub fn send_quick(&mut self, to: PeerId, tag: u32, data: &[u8]) -> bool {
        self.send_line(to, tag, [], data)
    }

    /// Does as [`Port::try_recv`] with a message of one line, of the last sender. Otherwise
    /// [`Port::try_recv_slow`] goes on.
    ///
    /// # Errors
    /// The state in which that goes on.
    // spec: MSG-3
    #[inline(always)]
    pub fn try_recv_quick(&mut self, into: &mut [u8]) -> Result<Message, Untaken> {
        match self.try_recv_hot(into) {
            Probe::Taken(message) => Ok(message),
            Probe::Nothing => Err(Untaken(Probe::Nothing)),
            Probe::Other => Err(Untaken(Probe::Other)),
        }
    }

    /// Goes on where [`Port::try_recv_quick`] has taken nothing.
    ///
    /// # Errors
    /// As [`Port::try_recv`].
    // spec: MSG-3
    pub fn try_recv_slow(
        &mut self,
        Untaken(probe): Untaken,
        into: &mut [u8],
    ) -> Result<Option<Message>, ReceiveError> {
        self.try_recv_rest(&probe, into)
    }

    // spec: CAP-6, POST-8, NOTI-8
    #[inline(always)]
    fn perform_quick<T>(
        &mut self,
        on: &RemoteRegion,
        memory: &PeerMemory,
        work: impl FnOnce() -> T,
    ) -> Option<(Ticket, T)> {
        let connection = self.peers.at_mut(on.peer.index())?;
        let is_open = connection.is_open_direct() && connection.identity == on.connection;
        if !is_open || !self.notes.has_room_for(1) {
            return None;
        }
        let is_current = enter((&connection.active, &connection.link), memory, on.key);
        let worked = if is_current { Some(work()) } else { None };
        leave(&connection.active);
        let worked = worked?;
        debug_assert!(connection.ended.is_none(), "nothing goes to who has gone");
        connection.posted += 1;
        Some((Ticket(connection.posted), worked))
    }
}

impl RemoteRegion {
    /// The memory of a range of this handle, and the place in it, if the handle admits the access
    /// and the memory is at hand.
    // spec: CAP-5
    #[inline(always)]
    fn admit(&self, offset: u64, len: u64, rights: Rights) -> Option<(&PeerMemory, u64)> {
        let claim = Claim { key: self.key, offset, len };
        let extent = self.cover.check(&claim, rights).ok()?;
        debug_assert_eq!(extent.len(), len, "all of it was checked");
        Some((self.memory.as_ref()?, extent.offset()))
    }
}

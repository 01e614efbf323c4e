//! The port's way to other hosts: its wire, once it is open to them, and what looks after that.
use crate::error::{AddressAttempt, CHECK, SetupError};
use crate::link::callee::Names;
use crate::link::links::Arrived;
use crate::link::{ProgressThread, Wire, lock};
use crate::net::alarm::Alarm;
use crate::sync::{AtomicBool, Ordering};
use ayre_proto::units::PeerId;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// A port's wire, which other threads use as well.
pub(crate) type SharedWire = Arc<OnceLock<Mutex<Wire>>>;

/// What a port has to do with other hosts.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    wire: SharedWire,
    /// Pumps the wire while the program does not.
    keeper: Option<ProgressThread>,
    /// Wakes an endpoint that rests.
    alarm: Option<Alarm>,
    /// Whether any of its connections has something to take on its control channel.
    any_mail: Arc<AtomicBool>,
    /// What polls look at the wire for: connections and calls of endpoints; of another port, that
    /// it is open to other hosts.
    uses: usize,
    /// Whether the wire has brought anything since this was cleared.
    has_come: bool,
}

impl Remote {
    pub(super) fn is_open(&self) -> bool {
        self.wire.get().is_some()
    }

    /// The wire, locked; none before the port is open to other hosts.
    #[inline]
    pub(crate) fn wire(&self) -> Option<MutexGuard<'_, Wire>> {
        self.wire.get().map(lock)
    }

    /// The wire, for a caller that cannot do without.
    ///
    /// # Errors
    /// The port is not open to other hosts.
    pub(super) fn opened(&self) -> Result<MutexGuard<'_, Wire>, SetupError> {
        self.wire().ok_or(NOT_OPEN)
    }

    pub(super) fn shared(&self) -> &SharedWire {
        &self.wire
    }

    pub(super) fn any_mail(&self) -> &Arc<AtomicBool> {
        &self.any_mail
    }

    /// The port is open to other hosts from here on.
    pub(super) fn open(&mut self, wire: Wire, keeper: ProgressThread) {
        debug_assert!(self.keeper.is_none(), "it opens once");
        self.keeper = Some(keeper);
        let set = self.wire.set(wire.into());
        debug_assert!(set.is_ok(), "there was none");
    }

    pub(super) fn close(&mut self) {
        debug_assert!(self.keeper.is_none() || self.is_open(), "a keeper has a wire to look after");
        if let Some(keeper) = self.keeper.take() {
            keeper.stop();
        }
    }

    pub(super) fn wake_by_alarm(&mut self, alarm: Alarm) {
        debug_assert!(self.alarm.is_none(), "one wakes a port");
        debug_assert!(self.is_open(), "a wire has something to do by the clock");
        self.alarm = Some(alarm);
    }

    /// False where there is none.
    pub(super) fn set_alarm(&mut self, at: Option<Instant>) -> bool {
        self.alarm.as_mut().map(|alarm| alarm.set(at)).is_some()
    }

    /// Whether polls look at the wire at all.
    #[inline(always)]
    pub(crate) fn is_in_use(&self) -> bool {
        self.uses > 0
    }

    pub(super) fn begin_use(&mut self) {
        debug_assert!(self.is_open(), "what is in use is open");
        self.uses += 1;
    }

    pub(super) fn end_use(&mut self) {
        debug_assert!(self.uses > 0, "each use ends once");
        self.uses -= 1;
    }

    /// Nothing is looked at any more.
    pub(super) fn end_uses(&mut self) {
        self.uses = 0;
    }

    pub(super) fn has_come(&self) -> bool {
        self.has_come
    }

    pub(super) fn note_arrival(&mut self) {
        debug_assert!(self.is_open(), "something comes by a wire");
        self.has_come = true;
    }

    pub(super) fn forget_arrivals(&mut self) {
        self.has_come = false;
    }

    /// Whether something of another host waits for [`super::Port::service_control`].
    pub(crate) fn has_mail(&self) -> bool {
        // Relaxed: each mailbox has a lock of its own.
        self.any_mail.load(Ordering::Relaxed)
    }

    /// Whether something waits there, which is looked at from here on.
    pub(super) fn take_mail(&self) -> bool {
        // Relaxed: as above.
        self.any_mail.swap(false, Ordering::Relaxed)
    }

    /// Whether others find this port at any one of its addresses, which are no paths then.
    pub(crate) fn is_at_any(&self) -> bool {
        self.wire().is_some_and(|wire| wire.is_at_any())
    }

    /// A link that is no more has not; its port hears of that.
    pub(super) fn has_resynced(&self, peer: PeerId) -> bool {
        self.wire().is_some_and(|mut wire| wire.links().is_resyncing(peer) == Some(false))
    }

    /// A link that somebody else has opened.
    pub(crate) fn next_link(&self) -> Option<Arrived> {
        self.wire()?.links().take_accepted()
    }

    /// A link that is not wanted.
    pub(crate) fn turn_away(&self, arrived: &Arrived) {
        if let Some(mut wire) = self.wire() {
            wire.links().turn_away(arrived);
        }
    }

    /// Only these endpoints may open links from here on, or all.
    pub(crate) fn let_in_only(&self, known: Option<Box<dyn Names>>) {
        if let Some(mut wire) = self.wire() {
            wire.links().let_in_only(known);
        }
    }

    /// Notes for reports why a peer of this host is reached by a link.
    pub(crate) fn note_detour(&self, peer: PeerId, why: &str) {
        if let Some(mut wire) = self.wire() {
            wire.links().note_detour(peer, why);
        }
    }

    /// Whom this port could not let in while it accepted, and why, if there was somebody: what to
    /// say in place of that nobody came.
    // spec: OPEN-27
    pub(super) fn turned_away(&self) -> Option<SetupError> {
        let (at, why) = self.wire()?.turned_away()?;
        why.rejection(at)
    }

    /// The peers of other hosts that this port asks for a link and that have not answered, and what
    /// came of each address, in words; none where there are none.
    // spec: OPEN-32
    #[cold]
    pub(crate) fn unanswered(&self) -> Option<String> {
        let tried = self.wire()?.tried_of_all();
        let told = || format!("peers at {}; {CHECK}", AddressAttempt::in_words(&tried));
        (!tried.is_empty()).then(told)
    }
}

pub(super) const NOT_OPEN: SetupError =
    SetupError::Invalid(std::borrow::Cow::Borrowed("the port is not open to other hosts"));

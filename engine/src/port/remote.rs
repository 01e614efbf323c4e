//! The port's connection to other hosts: its wire, once it is open to them, and the threads that
//! serve it.
use crate::error::{AddressAttempt, CHECK, SetupError};
use crate::link::callee::Names;
use crate::link::links::Arrived;
use crate::link::{ProgressThread, Wire, lock};
use crate::net::alarm::Alarm;
use crate::sync::{AtomicBool, Ordering};
use ayre_proto::units::PeerId;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// A port's wire, which other threads use, too.
pub(crate) type SharedWire = Arc<OnceLock<Mutex<Wire>>>;

/// The port's state concerning other hosts.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    wire: SharedWire,
    /// Serves the wire while the program does not.
    progress_thread: Option<ProgressThread>,
    /// Wakes a program that sleeps in an event loop.
    alarm: Option<Alarm>,
    /// Whether any connection has mail on its control channel.
    any_mail: Arc<AtomicBool>,
    /// The number of uses of the wire, without which polls do not look at it. For endpoints these
    /// are connections and calls; for other ports, being open to other hosts.
    uses: usize,
    /// Whether anything has come over the wire since this was cleared.
    has_come: bool,
}

impl Remote {
    pub(super) fn is_open(&self) -> bool {
        self.wire.get().is_some()
    }

    /// The wire, locked; None before the port is open to other hosts.
    #[inline]
    pub(crate) fn wire(&self) -> Option<MutexGuard<'_, Wire>> {
        self.wire.get().map(lock)
    }

    /// The wire, for a caller that requires it.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where the port is not open to other hosts.
    pub(super) fn opened(&self) -> Result<MutexGuard<'_, Wire>, SetupError> {
        self.wire().ok_or(NOT_OPEN)
    }

    pub(super) fn shared(&self) -> &SharedWire {
        &self.wire
    }

    pub(super) fn any_mail(&self) -> &Arc<AtomicBool> {
        &self.any_mail
    }

    /// Opens the port to other hosts.
    pub(super) fn open(&mut self, wire: Wire, progress_thread: ProgressThread, alarm: Alarm) {
        debug_assert!(self.progress_thread.is_none(), "it opens once");
        self.progress_thread = Some(progress_thread);
        self.alarm = Some(alarm);
        let set = self.wire.set(wire.into());
        debug_assert!(set.is_ok(), "there was none");
    }

    pub(super) fn close(&mut self) {
        debug_assert!(
            self.progress_thread.is_none() || self.is_open(),
            "a progress thread has a wire to serve"
        );
        if let Some(progress_thread) = self.progress_thread.take() {
            progress_thread.stop();
        }
    }

    /// Sets the time of the alarm. False where there is no alarm.
    pub(super) fn set_alarm(&mut self, at: Option<Instant>) -> bool {
        self.alarm.as_mut().map(|alarm| alarm.come_by(at)).is_some()
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

    /// Ends all uses of the wire.
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

    /// Whether there is mail of another host for [`super::Port::service_control`].
    pub(crate) fn has_mail(&self) -> bool {
        // Relaxed: each mailbox has a lock of its own.
        self.any_mail.load(Ordering::Relaxed)
    }

    /// Whether there is mail, and clears that.
    pub(super) fn take_mail(&self) -> bool {
        // Relaxed: each mailbox has a lock of its own.
        self.any_mail.swap(false, Ordering::Relaxed)
    }

    /// Whether the port may be found at any one of its addresses; then they are not paths of a
    /// link.
    pub(crate) fn is_at_any(&self) -> bool {
        self.wire().is_some_and(|wire| wire.is_at_any())
    }

    /// Whether a resync is complete. A link that has ended is not resynced; its port learns of the
    /// end.
    pub(super) fn has_resynced(&self, peer: PeerId) -> bool {
        self.wire().is_some_and(|mut wire| wire.links().is_resyncing(peer) == Some(false))
    }

    /// Takes the next link that a peer has opened.
    pub(crate) fn next_link(&self) -> Option<Arrived> {
        self.wire()?.links().take_accepted()
    }

    /// Refuses a link.
    pub(crate) fn turn_away(&self, arrived: &Arrived) {
        if let Some(mut wire) = self.wire() {
            wire.links().turn_away(arrived);
        }
    }

    /// From now on, only these endpoints may open links; None lets all do so.
    pub(crate) fn let_in_only(&self, known: Option<Box<dyn Names>>) {
        if let Some(mut wire) = self.wire() {
            wire.links().let_in_only(known);
        }
    }

    /// Records for reports why a peer of this host is reached over a link.
    pub(crate) fn note_detour(&self, peer: PeerId, why: &str) {
        if let Some(mut wire) = self.wire() {
            wire.links().note_detour(peer, why);
        }
    }

    /// The last peer that this port refused while it accepted, with the reason: a better error than
    /// a timeout.
    // spec: OPEN-27
    pub(super) fn turned_away(&self) -> Option<SetupError> {
        let (at, why) = self.wire()?.turned_away()?;
        why.rejection(at)
    }

    /// The peers of other hosts that have not answered a request for a link, and the outcome at
    /// each address, in words. None where there are no such peers.
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

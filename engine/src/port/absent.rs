//! In place of `attach`, `calls`, `remote` and `report` where the feature `net` is off: a port has
//! peers of its own host only.
use crate::error::{AddressAttempt, SetupError};
use crate::link::callee::Names;
use crate::link::{Arrived, Callee, LinkLoad, Unopened, Wire, lock};
use crate::net::clock::Deadline;
use crate::port::Port;
use crate::sync::AtomicBool;
use ayre_proto::units::PeerId;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// A port's wire, which it never has.
pub(crate) type SharedWire = Arc<OnceLock<Mutex<Wire>>>;

/// A link that was asked for: none is.
#[derive(Debug)]
pub(crate) struct BegunLink(Infallible);

/// The state of a port concerning other hosts: none.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    wire: SharedWire,
    any_mail: Arc<AtomicBool>,
}

impl Remote {
    pub(super) fn is_open(&self) -> bool {
        false
    }

    pub(super) fn wire(&self) -> Option<MutexGuard<'_, Wire>> {
        self.wire.get().map(lock)
    }

    pub(super) fn shared(&self) -> &SharedWire {
        &self.wire
    }

    pub(super) fn any_mail(&self) -> &Arc<AtomicBool> {
        &self.any_mail
    }

    pub(super) fn close(&mut self) {}

    #[inline(always)]
    pub(crate) fn is_in_use(&self) -> bool {
        false
    }

    pub(super) fn begin_use(&mut self) {
        debug_assert!(false, "no peer is on another host");
    }

    pub(super) fn end_use(&mut self) {}

    pub(super) fn end_uses(&mut self) {}

    pub(super) fn has_come(&self) -> bool {
        false
    }

    pub(super) fn note_arrival(&mut self) {
        debug_assert!(false, "nothing comes by a wire");
    }

    pub(super) fn forget_arrivals(&mut self) {}

    pub(crate) fn has_mail(&self) -> bool {
        false
    }

    pub(super) fn take_mail(&self) -> bool {
        false
    }

    pub(crate) fn next_link(&self) -> Option<Arrived> {
        None
    }

    pub(crate) fn turn_away(&self, arrived: &Arrived) {
        arrived.never()
    }

    pub(crate) fn let_in_only(&self, _: Option<Box<dyn Names>>) {}

    pub(crate) fn note_detour(&self, _: PeerId, _why: &str) {}

    pub(super) fn turned_away(&self) -> Option<SetupError> {
        None
    }
}

impl Port {
    pub(crate) fn take_link(&mut self, arrived: Arrived) -> Result<PeerId, SetupError> {
        arrived.never()
    }

    pub(super) fn take_call(&mut self, arrived: Arrived) -> Result<PeerId, SetupError> {
        arrived.never()
    }

    pub(crate) fn accept_links(&self, _accepts: bool) {}

    #[inline(always)]
    pub(crate) fn pump(&mut self) -> Option<PeerId> {
        None
    }

    pub(crate) fn pump_all(&mut self) -> bool {
        false
    }

    /// Whether there is room is the peer's business.
    pub(crate) fn make_room(&mut self, _: PeerId) {}

    pub(crate) fn push_out(&mut self, _: PeerId) {}

    pub(crate) fn send_out(&self, _: PeerId) {}

    pub(crate) fn deliver(&self, _: Duration) {}

    pub(crate) fn hasten(&self, _: PeerId) {}

    pub(crate) fn settle_wire(&self) {}

    /// When a sleeper must wake by the system's clock, that sleeps until a deadline of the port's.
    pub(crate) fn wake_by(&self, deadline: Option<Deadline>) -> Option<Instant> {
        self.clock.wake_by(None, deadline)
    }

    pub(crate) fn sleep_without_nets(&self) {}

    pub(crate) fn leave_wire(&self) {}

    pub(crate) fn set_alarm(&mut self, _is_on: bool) {}

    /// There is nothing that would wake the program.
    pub(crate) fn set_alarm_by(&mut self, _latest: Deadline) -> bool {
        false
    }

    pub(crate) fn begin_call(
        &mut self,
        _: &Callee,
        _at: &[SocketAddr],
    ) -> Result<BegunLink, SetupError> {
        Err(SetupError::invalid("other hosts are reached with the Cargo feature `net` only"))
    }

    pub(crate) fn tried(&self, call: &BegunLink) -> Vec<AddressAttempt> {
        match call.0 {}
    }

    pub(crate) fn call_outcome(&self, call: &BegunLink) -> Option<Result<Arrived, Unopened>> {
        match call.0 {}
    }

    pub(crate) fn hang_up(&mut self, call: &BegunLink) {
        match call.0 {}
    }

    pub(crate) fn link_loads(&self, _: &[PeerId], loads: &mut [Option<LinkLoad>]) {
        loads.fill(None);
    }
}

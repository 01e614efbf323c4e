//! The port's side of links between endpoints, of which nothing waits: an endpoint calls, looks
//! whether it was answered, and takes the links that others have opened.
use super::attach::{BegunLink, NOT_OPEN};
use crate::error::{SetupError, Tried};
use crate::link::callee::{Callee, Names};
use crate::link::links::Arrived;
use crate::link::lock;
use crate::link::opening::{Unopened, Whom};
use crate::link::options::NetOptions;
use crate::net::alarm::Alarm;
use crate::port::Port;
use ayre_proto::units::PeerId;
use std::net::SocketAddr;
use std::time::Instant;

impl Port {
    /// Lets endpoints of other hosts call this one, which they know as `own`: at which addresses.
    ///
    /// # Errors
    /// As [`Port::open_net`].
    pub(crate) fn open_calls(
        &mut self,
        options: &NetOptions,
        own: Callee,
    ) -> Result<Vec<SocketAddr>, SetupError> {
        let options = options.protected(own.protection.clone());
        let at = self.open_wire(&options, Some(own))?;
        let alarm = Alarm::new()?;
        self.sleep.watch_net(alarm.as_fd())?;
        self.alarm = Some(alarm);
        Ok(at)
    }

    /// Has the port's descriptor wake who sleeps on it when links have something to do, or no
    /// longer.
    pub(crate) fn set_alarm(&mut self, is_on: bool) {
        if is_on {
            self.settle_wire();
        }
        let at = if is_on { self.wake_by(None) } else { None };
        if let Some(alarm) = &mut self.alarm {
            alarm.set(at);
        }
    }

    /// The same, at a time at the latest. False where there is nothing that would.
    pub(crate) fn set_alarm_by(&mut self, latest: Instant) -> bool {
        let at = self.wake_by(Some(latest));
        self.alarm.as_mut().map(|alarm| alarm.set(at)).is_some()
    }

    /// Calls an endpoint of another host, at any of these addresses.
    pub(crate) fn begin_call(
        &mut self,
        callee: &Callee,
        at: &[SocketAddr],
    ) -> Result<BegunLink, SetupError> {
        let wire = self.wire.get().ok_or(NOT_OPEN)?;
        let whom = Whom::Endpoint(Box::new(callee.clone()));
        let index = lock(wire).ask_at_any(whom, at, self.config.setup_timeout)?;
        self.linked += 1;
        self.pump_all();
        Ok(BegunLink { index, to: Vec::new() })
    }

    /// Why the link with this peer, who is on this host, is one: for those who look.
    pub(crate) fn note_detour(&self, peer: PeerId, why: &str) {
        if let Some(wire) = self.wire.get() {
            lock(wire).links().note_detour(peer, why);
        }
    }

    /// What has come of each address of a call so far.
    pub(crate) fn tried(&self, call: &BegunLink) -> Vec<Tried> {
        self.wire.get().map_or_else(Vec::new, |wire| lock(wire).tried(call.index))
    }

    /// What has become of a call, if anything has: a link, or why there is none.
    pub(crate) fn call_outcome(&self, call: &BegunLink) -> Option<Result<Arrived, Unopened>> {
        lock(self.wire.get()?).conclude(call.index)
    }

    /// The call is over.
    pub(crate) fn hang_up(&mut self, call: &BegunLink) {
        if let Some(wire) = self.wire.get() {
            lock(wire).links().give_up(call.index);
            self.linked -= 1;
        }
    }

    /// A link that is not wanted.
    pub(crate) fn turn_away(&self, arrived: &Arrived) {
        if let Some(wire) = self.wire.get() {
            lock(wire).links().turn_away(arrived);
        }
    }

    /// Only these endpoints may open links from here on, or all.
    pub(crate) fn let_in_only(&self, known: Option<Box<dyn Names>>) {
        if let Some(wire) = self.wire.get() {
            lock(wire).links().let_in_only(known);
        }
    }

    /// The connection with a peer is forgotten, and may call anew.
    pub(crate) fn forget_link(&self, peer: PeerId) {
        if let Some(wire) = self.wire.get() {
            lock(wire).links().forget(peer);
        }
    }
}

//! The port's side of links between endpoints. Nothing here blocks: an endpoint calls, polls for
//! the answer, and takes the links that others have opened.
use super::attach::BegunLink;
use crate::error::{AddressAttempt, SetupError};
use crate::link::callee::Callee;
use crate::link::links::Arrived;
use crate::link::opening::{Destination, Unopened};
use crate::link::options::NetOptions;
use crate::net::clock::Deadline;
use crate::port::Port;
use std::net::SocketAddr;

impl Port {
    /// Lets endpoints of other hosts call this one under the name `own`. Returns its addresses.
    ///
    /// # Errors
    /// As [`Port::open_net`].
    pub(crate) fn open_calls(
        &mut self,
        options: &NetOptions,
        own: Callee,
    ) -> Result<Vec<SocketAddr>, SetupError> {
        let options = options.protected(own.protection.clone());
        self.open_wire(&options, Some(own))
    }

    /// Has the port's descriptor wake its sleeper when links have work to do, or stops that.
    pub(crate) fn set_alarm(&mut self, is_on: bool) {
        if is_on {
            self.settle_wire();
        }
        let at = if is_on { self.wake_by(None) } else { None };
        self.remote.set_alarm(at);
    }

    /// Sets a time at which the port's descriptor wakes its sleeper at the latest. False where
    /// there is no alarm.
    pub(crate) fn set_alarm_by(&mut self, latest: Deadline) -> bool {
        let at = self.wake_by(Some(latest));
        self.remote.set_alarm(at)
    }

    /// Calls an endpoint of another host at any of these addresses.
    pub(crate) fn begin_call(
        &mut self,
        callee: &Callee,
        at: &[SocketAddr],
    ) -> Result<BegunLink, SetupError> {
        let whom = Destination::Endpoint(Box::new(callee.clone()));
        let timeout = self.config.setup_timeout;
        let index = self.remote.opened()?.ask_at_any(whom, at, timeout)?;
        self.remote.begin_use();
        self.pump_all();
        Ok(BegunLink { index, to: Vec::new() })
    }

    /// The outcome of a call so far, at each address.
    pub(crate) fn tried(&self, call: &BegunLink) -> Vec<AddressAttempt> {
        self.remote.wire().map_or_else(Vec::new, |wire| wire.tried(call.index))
    }

    /// The outcome of a call: a link, or the reason for its absence. `None` while it is under way.
    pub(crate) fn call_outcome(&self, call: &BegunLink) -> Option<Result<Arrived, Unopened>> {
        self.remote.wire()?.conclude(call.index)
    }

    /// Ends a call.
    pub(crate) fn hang_up(&mut self, call: &BegunLink) {
        let given_up = self.remote.wire().map(|mut wire| wire.links().give_up(call.index));
        if given_up.is_some() {
            self.remote.end_use();
        }
    }
}

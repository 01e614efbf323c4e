//! Connections that come about while the program goes on.
//!
//! The sender calls; the other side answers when it makes progress. A call goes to the remote's
//! socket if the remote is on this host. Where nobody listens, or memory cannot be shared, it opens
//! a link. Where two call each other, the call of the greater name counts, and a link before a
//! socket. The links themselves settle which of two links counts.
use super::remotes::{Call, ConnectionParts, ConnectionState, Remote};
use super::stall::REPORT_AFTER;
use super::{Address, RawEndpoint, RemoteId, pollers};
use crate::error::{Busy, DisconnectReason, Fault, PostError, Refusal, SetupError};
use crate::link::{Arrived, Unopened};
use crate::log::tell;
use crate::net::clock::Deadline;
use crate::peer::agreement::Name;
use crate::peer::packet::Packet;
use crate::port::attach::BegunLink;
use crate::port::setup::{
    BETWEEN_CALLS, CALLERS_MAX, Called, Caller, Hello, TIME_TO_SPEAK, answers, hear_hello,
    turn_away,
};
use crate::sys::descriptor::Descriptor;
use crate::tuning::{Rings, Share};
use ayre_proto::envelope::LONG_MAX_HERE;
use ayre_proto::units::PeerId;
use rustix::fd::AsFd;

/// Lines of the shortest message lane: the longest record finds room in the end.
const LINES_MIN: u32 = 32;

impl RawEndpoint {
    /// The endpoint of an address, which may be this one's own. It is connected when it is first
    /// sent to.
    ///
    /// An endpoint knows up to [`super::REMOTES_MAX`] others. Beyond these, it forgets a remote
    /// without pending operations, kept messages and receives that wait for it. It forgets the one
    /// that has gone first; where none has gone, the one that was learned of first and never
    /// called. The number of a forgotten remote is stale: all calls refuse it with
    /// [`Fault::ForeignHandle`], and this one gives the endpoint a new number.
    ///
    /// # Errors
    /// [`SetupError::Exhausted`] where there is no room for one more. [`SetupError::NoLink`] where
    /// the endpoint is not on this host and a link is impossible. The cause is its
    /// [`LinkMismatch`](crate::error::LinkMismatch).
    // spec: ENV-32, ENV-38, ENV-40
    pub fn remote(&mut self, address: &Address) -> Result<RemoteId, SetupError> {
        self.port.check_process()?;
        if !address.is_with(&self.address)
            && let Some(why) = address.unlinked(&self.address)
            && !(self.port.accept_queue.is_listening() && answers(&address.socket_name()))
        {
            let peer = address.in_words(&self.address);
            return Err(SetupError::NoLink { peer, why });
        }
        match self.remotes.named(&address.name()) {
            Some(known) => {
                // It may have called before anybody had handed over its address.
                let is_neighbour = self.is_neighbour(address);
                self.remotes.locate(known, address, is_neighbour);
                self.set_poll_rate();
                Ok(known)
            }
            None => self.add(*address),
        }
    }

    fn add(&mut self, address: Address) -> Result<RemoteId, SetupError> {
        self.free_place()?;
        let is_neighbour = self.is_neighbour(&address);
        let id = self.remotes.add(address, is_neighbour);
        self.set_poll_rate();
        Ok(id)
    }

    /// Forgets an endpoint: everything under way with it ends, and its number is free. False where
    /// it is not known.
    // spec: ENV-16
    pub fn forget(&mut self, remote: RemoteId) -> bool {
        let Some(peer) = self.remotes.known(remote).map(Remote::peer) else { return false };
        self.end_remote(remote, DisconnectReason::Left);
        self.protocol.drop_messages(remote);
        if let Some(inbox) = &mut self.inbox {
            inbox.retain(|(received, _)| received.source != Some(remote));
        }
        if let Some(peer) = peer {
            self.remotes.cut_off(peer.index());
            let gone = self.port.disconnect(peer);
            debug_assert!(gone.is_ok(), "it was connected");
        }
        debug_assert_eq!(self.protocol.kept_of(remote), 0, "nothing is kept of it");
        self.remotes.forget(remote);
        self.set_poll_rate();
        self.request_poll();
        true
    }

    /// Where a remote that nothing can be posted to is connected, if that changes now; calls it,
    /// where nobody has.
    ///
    /// # Errors
    /// Why nothing can be posted yet, or any more.
    // spec: ENV-6
    #[cold]
    pub(super) fn reach(&mut self, remote: RemoteId) -> Result<PeerId, PostError> {
        let Some(known) = self.remotes.known(remote) else {
            return Err(Fault::ForeignHandle.into());
        };
        match known.state() {
            ConnectionState::Ended(why) => return Err(why.fault().into()),
            ConnectionState::Calling(_) => self.handshake(),
            ConnectionState::Unconnected => {
                if let Err(why) = self.call(remote) {
                    let fault = why.fault();
                    // Receives may name it already.
                    self.end_remote(remote, why);
                    return Err(fault.into());
                }
            }
            // A long write to it has yet to go.
            ConnectionState::Connected => return Err(Busy::MessageLaneFull.into()),
        }
        // Who is told that it calls may sleep until the answer: it must not have come before.
        self.remotes.way(remote).ok_or_else(|| Busy::Connecting.into())
    }

    fn call(&mut self, remote: RemoteId) -> Result<(), DisconnectReason> {
        let address = *self.remotes[remote].address();
        if address.name() == self.address.name() {
            let peer = self.port.connect_loopback()?;
            self.connected(remote, peer);
            return Ok(());
        }
        let call = match self.call_local(&address) {
            Ok(call) => call,
            Err(why) => self.call_by_link(remote, why)?,
        };
        self.begin(remote, call);
        Ok(())
    }

    fn begin(&mut self, remote: RemoteId, call: Call) {
        debug_assert!(self.remotes.knows(remote), "who is called is known");
        self.remotes.begin_call(remote, call, self.port.clock.now());
        self.update_full();
        self.set_poll_rate();
    }

    /// Calls where a remote listens if it is on this host, also where its address does not say so.
    // spec: ENV-38
    fn call_local(&mut self, address: &Address) -> Result<Call, DisconnectReason> {
        // One that is apart from its host has no neighbours.
        let called = match self.port.accept_queue.is_listening() {
            true => self.port.begin_call_here(&address.socket_name())?,
            false => Called::Nobody,
        };
        let is_on_this_host = address.is_with(&self.address);
        match called {
            Called::Begun(begun) => {
                self.port.sleep.watch(begun.socket())?;
                Ok(Call::Local(begun))
            }
            // Of another host's that could only be somebody who has taken the name.
            Called::Full if is_on_this_host || address.unlinked(&self.address).is_some() => {
                Ok(Call::Retry(self.port.clock.within(BETWEEN_CALLS)))
            }
            Called::Full | Called::Nobody => Err(DisconnectReason::Died),
        }
    }

    /// Calls over the network, where a call on this host has failed, if that may help.
    // spec: ENV-38
    fn call_by_link(
        &mut self,
        remote: RemoteId,
        why: DisconnectReason,
    ) -> Result<Call, DisconnectReason> {
        let address = *self.remotes[remote].address();
        let is_on_this_host = address.is_with(&self.address);
        let may_help = match &why {
            // The kernel knows who lives on this host.
            DisconnectReason::Died => !is_on_this_host,
            DisconnectReason::Refused(Refusal::Resources(_)) | DisconnectReason::Os { .. } => true,
            DisconnectReason::Refused(of_host) | DisconnectReason::Rejected(of_host) => {
                matches!(of_host, Refusal::User(_) | Refusal::Memory)
            }
            _ => false,
        };
        if !may_help || address.unlinked(&self.address).is_some() {
            return Err(why);
        }
        let call = self.call_remote(&address)?;
        if is_on_this_host {
            let (name, advice) = (address.socket_name(), why.advice());
            tell!(WARN, "no memory is shared with {name}, but a link: {why}{advice}");
        }
        self.remotes[remote].take_detour(is_on_this_host.then_some(why));
        Ok(Call::Link(call))
    }

    /// Ends what is under way with a remote whose call here has failed, unless a link may do.
    fn end_local_call(&mut self, remote: RemoteId, why: DisconnectReason) {
        match self.call_by_link(remote, why) {
            Ok(call) => self.begin(remote, call),
            Err(why) => self.end_remote(remote, why),
        }
    }

    // spec: ENV-33
    fn call_remote(&mut self, address: &Address) -> Result<BegunLink, SetupError> {
        let callee = address
            .callee(self.key.as_ref())
            .ok_or_else(|| SetupError::invalid("the address names no place on another host"))?;
        self.port.begin_call(&callee, &address.reached_at())
    }

    /// Ends a call that has been answered, or whose answer nobody wants any more.
    pub(super) fn hang_up(&mut self, remote: RemoteId) -> Option<Call> {
        let call = self.remotes.hang_up(remote)?;
        match &call {
            Call::Retry(_) => {}
            Call::Local(begun) => self.port.sleep.forget(begun.socket()),
            Call::Link(call) => self.port.hang_up(call),
        }
        Some(call)
    }

    /// Hears who has answered, and who calls.
    // spec: ENV-6
    #[cold]
    pub(super) fn handshake(&mut self) {
        if self.remotes.is_full() {
            self.update_full();
        }
        self.accept_links();
        if self.remotes.calls() > 0 {
            self.poll_calls();
        }
        self.admit_callers();
        for caller in self.port.accept_queue.take_callers() {
            let heard = hear_hello(caller.socket.as_fd());
            if matches!(heard, Ok(None)) {
                self.port.accept_queue.admit(caller);
                continue;
            }
            let caller = caller.socket;
            self.port.sleep.forget(caller.as_fd());
            match heard {
                Ok(Some(hello)) => self.answer_hello(caller, hello),
                Err(why) => {
                    turn_away(caller, why);
                    self.port.count_malformed();
                }
                Ok(None) => {}
            }
        }
    }

    /// Lets those speak who knock, for the oldest that say nothing if need be.
    fn admit_callers(&mut self) {
        for _ in 0..CALLERS_MAX {
            let caller = match self.port.next_caller() {
                Ok(Some(caller)) => caller,
                Ok(None) => return,
                Err(why) => return tell!(WARN, "callers wait and cannot be let in: {why}"),
            };
            if self.port.sleep.watch(caller.as_fd()).is_ok() {
                let until = self.port.clock.within(TIME_TO_SPEAK);
                self.port.accept_queue.admit(Caller { socket: caller, until });
            }
        }
    }

    fn poll_calls(&mut self) {
        for remote in self.remotes.called() {
            match self.remotes[remote].state() {
                ConnectionState::Calling(Call::Local(begun)) => match begun.answer().transpose() {
                    Some(answer) => self.on_local_answer(remote, answer),
                    None => self.log_unanswered(remote),
                },
                ConnectionState::Calling(Call::Retry(at)) if self.port.clock.is_over(*at) => {
                    self.retry_call(remote);
                    self.log_unanswered(remote);
                }
                ConnectionState::Calling(Call::Link(call)) => {
                    if let Some(opened) = self.port.call_outcome(call) {
                        self.on_link_opened(remote, opened);
                    }
                }
                _ => {}
            }
        }
    }

    fn on_local_answer(&mut self, remote: RemoteId, answer: Result<Packet, SetupError>) {
        let Some(Call::Local(begun)) = self.hang_up(remote) else { return };
        match answer.and_then(|packet| self.port.welcomed(begun, packet)) {
            Ok(peer) => self.connected(remote, peer),
            // One that hangs up has called itself, or has gone: calling again will tell.
            Err(SetupError::PeerLeft { .. } | SetupError::Refused { why: Refusal::Taken, .. }) => {
                self.remotes[remote].note_closed(self.port.clock.now());
                self.begin(remote, Call::Retry(self.port.clock.within(BETWEEN_CALLS)));
            }
            Err(why) => self.end_local_call(remote, why.into()),
        }
    }

    /// Calls one that could not be called, or has closed the call.
    // spec: ENV-38
    fn retry_call(&mut self, remote: RemoteId) {
        self.hang_up(remote);
        let known = &self.remotes[remote];
        let address = *known.address();
        if known.closed_for(self.port.clock.now()).is_some_and(|time| time >= REPORT_AFTER) {
            return self.end_remote(remote, DisconnectReason::HungUp(REPORT_AFTER));
        }
        match self.call_local(&address) {
            Ok(call) => self.begin(remote, call),
            Err(why) => self.end_local_call(remote, why),
        }
    }

    /// Says of a remote that lives and does not answer, once.
    // spec: ENV-38
    fn log_unanswered(&mut self, remote: RemoteId) {
        let known = &mut self.remotes[remote];
        if known.is_overdue(REPORT_AFTER, self.port.clock.now()) {
            let (name, time) = (known.address().socket_name(), REPORT_AFTER.as_secs());
            tell!(
                WARN,
                "{name} has not answered for {time} s: its process lives, but is stopped, or its \
                 program does not get to its endpoint"
            );
        }
    }

    /// When the next call is to be tried again, if any is.
    pub(super) fn next_call(&self) -> Option<Deadline> {
        if self.remotes.calls() == 0 {
            return None;
        }
        let calls = self.remotes.iter().filter_map(|remote| match remote.state() {
            ConnectionState::Calling(Call::Retry(at)) => Some(*at),
            _ => None,
        });
        calls.min()
    }

    // spec: ENV-33
    fn on_link_opened(&mut self, remote: RemoteId, opened: Result<Arrived, Unopened>) {
        self.hang_up(remote);
        match opened {
            Ok(opened) => self.take_link(remote, opened),
            Err(why) => self.end_remote(remote, why.reason(self.port.config.setup_timeout)),
        }
    }

    /// Hears who has opened links.
    // spec: ENV-33
    fn accept_links(&mut self) {
        self.port.pump_all();
        while let Some(arrived) = self.port.remote.next_link() {
            let Some(name) = arrived.name else { continue };
            let known = self.remotes.named(&name);
            let is_meant = known.is_none_or(|known| self.may_open(known));
            let remote = match known {
                Some(known) => Ok(known),
                None => self.add(self.address.of_unknown(name)),
            };
            match remote {
                Ok(remote) if is_meant => self.take_link(remote, arrived),
                Ok(_) => self.port.remote.turn_away(&arrived),
                Err(why) => {
                    tell!(WARN, "a caller of another host was not let in: {why}");
                    self.port.remote.turn_away(&arrived);
                }
            }
        }
    }

    /// Whether a link that this remote has opened counts.
    fn may_open(&mut self, remote: RemoteId) -> bool {
        let known = &self.remotes[remote];
        let address = known.address();
        if address.is_with(&self.address) && address.unlinked(&self.address).is_some() {
            // One that other hosts do not reach has no links.
            self.port.count_malformed();
            return false;
        }
        !matches!(
            known.state(),
            ConnectionState::Connected | ConnectionState::Ended(DisconnectReason::Malformed)
        )
    }

    fn take_link(&mut self, remote: RemoteId, arrived: Arrived) {
        self.hang_up(remote);
        if let Ok(peer) = self.port.take_link(arrived) {
            self.connected(remote, peer);
        }
    }

    /// A ring in which messages that leave at once find no room, or a lane without room for the
    /// longest record.
    // spec: ENV-6
    #[cold]
    fn too_short(&mut self, remote: RemoteId, peer: PeerId) {
        self.remotes[remote].reject(DisconnectReason::Malformed);
        self.port.count_malformed();
        let gone = self.port.disconnect(peer);
        debug_assert!(gone.is_ok(), "it was connected");
    }

    /// Somebody has said who he is.
    // spec: LIFE-27
    fn answer_hello(&mut self, caller: Descriptor, hello: Hello) {
        let Some(name) = hello.name().filter(|name| *name != self.address.name()) else {
            let why = if hello.name().is_none() { Refusal::Kind } else { Refusal::Taken };
            turn_away(caller, SetupError::rejected(why));
            return self.port.count_malformed();
        };
        let known = self.remotes.named(&name);
        let remote = match known {
            Some(known) => self.may_call(known, name).map(|()| known),
            None => self.add(self.address.of_neighbour(name)),
        };
        let remote = match remote {
            Ok(remote) => remote,
            Err(why) => return drop(turn_away(caller, why)),
        };
        match self.port.answer(caller, hello) {
            Ok(peer) => return self.connected(remote, peer),
            Err(SetupError::Os { .. }) => {}
            Err(_) => self.port.count_malformed(),
        }
        if known.is_none() {
            self.forget(remote);
        }
    }

    /// Whether a remote's call counts.
    // spec: ENV-6
    fn may_call(&mut self, remote: RemoteId, name: Name) -> Result<(), SetupError> {
        match self.remotes[remote].state() {
            // Who has forgotten us may call anew; who has lied may not.
            ConnectionState::Ended(DisconnectReason::Malformed) => {
                Err(SetupError::rejected(Refusal::Unknown))
            }
            ConnectionState::Unconnected | ConnectionState::Ended(_) => Ok(()),
            ConnectionState::Calling(Call::Local(_)) if name < self.address.name() => {
                Err(SetupError::rejected(Refusal::Taken))
            }
            ConnectionState::Calling(Call::Local(_) | Call::Retry(_)) => {
                self.hang_up(remote);
                Ok(())
            }
            _ => Err(SetupError::rejected(Refusal::Taken)),
        }
    }

    fn connected(&mut self, remote: RemoteId, peer: PeerId) {
        if let Some(why) = self.remotes[remote].detour() {
            self.port.remote.note_detour(peer, &why.to_string());
        }
        let Ok(connection) = self.port.connection(peer) else { return };
        let is_far = connection.is_driven_here();
        let ring_out = connection.out.ring().map(|ring| match is_far {
            true => ring.sender_of_all(),
            false => ring.sender(Share::of(Rings::of_process())),
        });
        let is_long = ring_out.as_ref().is_some_and(|ring| ring.longest() >= LONG_MAX_HERE);
        let takes_all = is_long && connection.messages_out.lines() >= LINES_MIN;
        if !takes_all && !is_far {
            return self.too_short(remote, peer);
        }
        let is_neighbour =
            !is_far && !pollers::is_of_this_process(self.remotes[remote].address().name());
        let ends = ConnectionParts {
            ring_out,
            ring_in: connection.inward.ring().map(|ring| ring.receiver()),
            is_neighbour,
            processors: is_neighbour.then(|| connection.processors()).flatten().map(Box::new),
        };
        debug_assert!(self.remotes.knows(remote), "who is connected is known");
        self.remotes.connect(remote, peer, ends);
        self.protocol.connect(remote);
        debug_assert_eq!(self.remotes.way(remote), Some(peer), "something may be posted to it");
        if self.has_come(self.polls.hot()).is_none() {
            self.polls.expect_at(peer.index());
        }
        self.count_sharers();
        self.update_full();
        self.set_poll_rate();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::endpoint::{EndpointOptions, OutgoingMessage};
    use crate::mem::span::Spans;
    use crate::port::config::Spin;
    use std::time::{Duration, Instant};

    // spec: ENV-16
    #[test]
    fn an_endpoint_stops_calling_a_forgotten_remote() {
        let bytes = Spans::default();
        let message =
            OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: false };
        let options = EndpointOptions::new().spin(Spin::SHARED);
        for options in [options.clone().local(), options.apart()] {
            let [mut near, far] = [0, 1].map(|_| RawEndpoint::open_with(&options).unwrap());
            for _ in 0..2 {
                let remote = near.remote(&far.address()).unwrap();
                assert_eq!(near.send(remote, &message), Err(Busy::Connecting.into()));
                assert_eq!(near.remotes.calls(), 1);
                assert!(near.forget(remote));
                assert_eq!(
                    (near.remotes.calls(), near.port.remote.is_in_use()),
                    (0, false),
                    "no answer is waited for"
                );
            }
        }
    }

    // spec: ENV-38, ENV-43
    #[test]
    fn a_remote_that_closes_every_call_is_given_up_with_a_reason() {
        let bytes = Spans::default();
        let message =
            OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: false };
        let options = EndpointOptions::new().spin(Spin::SHARED).local();
        let [mut near, far] = [0, 1].map(|_| RawEndpoint::open_with(&options).unwrap());
        let remote = near.remote(&far.address()).unwrap();
        assert_eq!(near.send(remote, &message), Err(Busy::Connecting.into()));
        near.hang_up(remote);
        let now = Instant::now();
        near.remotes[remote].note_closed(now.checked_sub(REPORT_AFTER).unwrap_or(now));
        let call = Call::Retry(near.port.clock.within(Duration::ZERO));
        near.begin(remote, call);
        while near.send(remote, &message).is_err_and(|error| error.is_busy()) {}
        assert_eq!(near.send(remote, &message), Err(Fault::Refused.into()));
        assert_eq!(near.reason(remote), Some(&DisconnectReason::HungUp(REPORT_AFTER)));
    }
}

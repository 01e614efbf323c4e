//! A port's links to other hosts: opening the wire, connecting, and the wire's part in progress and
//! sleep.
use super::connection::Connection;
use super::device::Device;
use crate::error::{Fault, SetupError};
use crate::link::Wire;
use crate::link::callee::Callee;
use crate::link::drive::drive;
use crate::link::link_end::DATAGRAM_LEAST;
use crate::link::links::{Arrived, Identity};
use crate::link::opening::{Destination, NO_NUMBER, Unopened};
use crate::link::options::{Kind, NetOptions};
use crate::link::progress_thread::{Kept, ProgressThread, Serviced};
use crate::link::report::Owner;
use crate::link::stats_socket::StatsSocket;
use crate::log::tell;
use crate::net::alarm::Alarm;
use crate::net::clock::{Clock, Deadline};
use crate::port::Port;
use ayre_proto::link::frame::PATHS_MAX;
use ayre_proto::units::PeerId;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How many times the progress thread polls during the time after which a peer counts as silent.
const KEEPS_PER_SILENCE: u32 = 8;
const _: () = assert!(KEEPS_PER_SILENCE > 1, "who is kept is not taken for silent");

/// A link that this port has asked for and that is not open yet.
#[derive(Debug)]
pub(crate) struct BegunLink {
    pub(super) index: usize,
    /// The addresses that were asked.
    pub(super) to: Vec<SocketAddr>,
}

impl Port {
    /// Opens this port to ports of other hosts; [`Port::accept`] completes the connections that
    /// they begin. Connections with them are always mediated. Does not block.
    ///
    /// Returns the addresses of this port, which others pass to [`Port::connect_net`]: those of the
    /// options, in their order, else all addresses of this host that others may reach.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where the port is open to other hosts already, or where options
    /// contradict each other; [`SetupError::Os`] where an address cannot be bound.
    // spec: LIFE-20, LIFE-36
    pub fn open_net(&mut self, options: &NetOptions) -> Result<Vec<SocketAddr>, SetupError> {
        self.check_process()?;
        let at = self.open_wire(&options.placed()?, None)?;
        self.remote.begin_use();
        Ok(at)
    }

    /// Opens the port to other hosts; an endpoint's port under the endpoint's name.
    pub(super) fn open_wire(
        &mut self,
        options: &NetOptions,
        endpoint: Option<Callee>,
    ) -> Result<Vec<SocketAddr>, SetupError> {
        let are_paths = options.kind == Kind::Paths;
        if are_paths && options.at.len() > usize::from(PATHS_MAX) {
            return Err(SetupError::invalid("a link has four paths at most, one for each address"));
        }
        if options.datagram_max < DATAGRAM_LEAST {
            return Err(SetupError::invalid("a datagram has at least 512 bytes"));
        }
        let clock = options.clock(&self.clock)?;
        let rank = endpoint.is_none().then_some(self.id.index());
        let nets = options.of_user(rank)?.nets(&clock)?;
        let addresses: Vec<_> = nets.iter().map(|net| net.local()).collect();
        tell!(INFO, "open to other hosts at {addresses:?}");
        let times = options.times()?;
        let identity = Identity {
            number: endpoint.as_ref().map_or(self.id.0, |_| NO_NUMBER),
            endpoint,
            ring: self.config.ring,
            protection: options.protection.clone(),
            drive: drive(times),
            any_mail: self.remote.any_mail().clone(),
            responder: self.exposed.shared().clone(),
            bell: self.engine.bell().clone(),
        };
        let limits = (options.datagram_max, are_paths);
        let wire = Wire::new((nets, clock), identity, limits)?;
        self.watch_wire(wire, times.0)?;
        Ok(addresses)
    }

    fn watch_wire(&mut self, wire: Wire, silence: Duration) -> Result<(), SetupError> {
        if self.remote.is_open() {
            return Err(SetupError::invalid("the port is open to other hosts already"));
        }
        let alarm = Alarm::new()?;
        self.sleep.watch_net(alarm.as_fd())?;
        for net in wire.nets() {
            self.engine.sleep().watch_net(net)?;
            if !self.engine.is_running() {
                self.sleep.watch_net(net)?;
            }
        }
        let progress_thread = self.progress_thread(wire.clock(), silence / KEEPS_PER_SILENCE)?;
        self.clock = wire.clock().clone();
        self.remote.open(wire, progress_thread, alarm);
        self.mediated += 1;
        Ok(())
    }

    fn progress_thread(
        &self,
        clock: &Clock,
        interval: Duration,
    ) -> Result<ProgressThread, SetupError> {
        let served = Serviced {
            wire: self.remote.shared().clone(),
            page: self.page.clone(),
            own_bell: self.sleep.bell().clone(),
        };
        if let Clock::Simulated(seat) = clock {
            return Ok(ProgressThread::of_seat(seat, served));
        }
        let kept = Kept {
            served,
            owner: Owner::this(self.id),
            // An endpoint leaves no files behind, whichever way it ends.
            window: match self.config.name {
                None => StatsSocket::open(self.identity),
                Some(_) => StatsSocket::open_unfiled(self.identity),
            },
        };
        ProgressThread::start(kept, interval)
    }

    /// Connects to the port of another host at these addresses. Blocks until that port accepts, at
    /// most for the set-up time.
    ///
    /// If this port is open at all addresses of its host, the link uses whichever of the peer's
    /// addresses answers; those on this port's routes are tried first. If this port's options name
    /// its addresses, the peer's are paths of one link, which shares its frames among up to four;
    /// further addresses are tried in their place.
    ///
    /// # Errors
    /// As [`Port::accept`]; [`SetupError::Refused`] where the other port refuses.
    // spec: LIFE-20
    pub fn connect_net(&mut self, to: &[SocketAddr]) -> Result<PeerId, SetupError> {
        self.check_process()?;
        let begun = self.begin_connect_net(to, None)?;
        self.finish_connect_net(begun)
    }

    /// Asks the port of this number for a link, if the number is known.
    // spec: OPEN-5, OPEN-20
    pub(crate) fn begin_connect_net(
        &mut self,
        to: &[SocketAddr],
        whom: Option<u16>,
    ) -> Result<BegunLink, SetupError> {
        self.begin_connect_by((to, false), whom)
    }

    /// Asks for a link, also from a port that may be at any one of the addresses.
    // spec: OPEN-30
    pub(crate) fn begin_connect_by(
        &mut self,
        (to, is_any): (&[SocketAddr], bool),
        whom: Option<u16>,
    ) -> Result<BegunLink, SetupError> {
        if to.is_empty() {
            return Err(SetupError::invalid("a peer has an address"));
        }
        let timeout = self.config.setup_timeout;
        let mut wire = self.remote.opened()?;
        let index = match is_any {
            true => wire.ask_at_any(Destination::Port(whom), to, timeout)?,
            false => wire.ask_for_link(Destination::Port(whom), to, timeout)?,
        };
        Ok(BegunLink { index, to: to.to_vec() })
    }

    pub(crate) fn finish_connect_net(&mut self, begun: BegunLink) -> Result<PeerId, SetupError> {
        // The opening of a link has a deadline of its own; this one comes after it.
        let deadline = self.clock.within(self.config.setup_timeout + Duration::from_secs(1));
        let opened = self.wait_wire(deadline, |wire| wire.conclude(begun.index))?;
        self.conclude_connect_net(&begun, opened)
    }

    /// Completes the opening of a link.
    pub(super) fn conclude_connect_net(
        &mut self,
        begun: &BegunLink,
        opened: Result<Arrived, Unopened>,
    ) -> Result<PeerId, SetupError> {
        self.take_link(opened.map_err(|why| why.error(&begun.to))?)
    }

    /// Warm reset: agrees anew with a peer of another host on the state of their link, where a
    /// program has reason to doubt it. No message is lost, repeated or reordered: pending
    /// operations stay pending, handles stay valid, and frames that may not have arrived are sent
    /// again. Other links are not affected. With a peer of this host the call does nothing.
    ///
    /// Blocks until the peer's port has answered, or the peer counts as dead. An answer takes a
    /// round trip, or an eighth of the time of silence where the peer's program makes no progress.
    /// Makes progress and sleeps meanwhile.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected; [`Fault::PeerDead`],
    /// [`Fault::PeerRestarted`], [`Fault::Malformed`] where its connection has ended;
    /// [`Fault::Interrupted`].
    // spec: LINK-22, WIRE-11
    pub fn resync(&mut self, peer: PeerId) -> Result<(), Fault> {
        let connection = self.connection(peer)?;
        if let Some(why) = connection.ended {
            return Err(why);
        }
        if connection.device.resync() {
            let resynced = self.wait_for(None, |port| {
                let ended = port.connection(peer).map_or(Some(Fault::ForeignHandle), |c| c.ended);
                ended.map(Err).or_else(|| port.remote.has_resynced(peer).then_some(Ok(())))
            });
            return resynced.unwrap_or(Err(Fault::Interrupted));
        }
        Ok(())
    }

    /// Makes a connection from a link that has opened.
    pub(crate) fn take_link(&mut self, arrived: Arrived) -> Result<PeerId, SetupError> {
        let peer = match self.number_of_link(&arrived) {
            Ok(peer) => peer,
            Err(error) => {
                self.remote.turn_away(&arrived);
                return Err(error);
            }
        };
        let connection = self.remote.opened()?.adopt(arrived, peer);
        // The opener of the link waits for an answer.
        self.pump_all();
        let added = self.add(connection)?;
        debug_assert_eq!(added, peer, "a link keeps the number that it was given");
        // Commands that have come in the meantime can be performed now.
        self.push_out(added);
        Ok(added)
    }

    /// Adds a link that another port has opened, if that port is admitted.
    pub(super) fn take_call(&mut self, arrived: Arrived) -> Result<PeerId, SetupError> {
        if let Err(why) = self.accept_queue.check(arrived.connection.peer) {
            self.remote.turn_away(&arrived);
            return Err(SetupError::rejected(why));
        }
        self.take_link(arrived)
    }

    fn number_of_link(&self, arrived: &Arrived) -> Result<PeerId, SetupError> {
        match arrived.name {
            Some(_) => self.free_number(),
            None => {
                let peer = arrived.connection.peer;
                self.check_foreign_number(peer).map(|()| peer)
            }
        }
    }

    /// Sets whether others may open links: only while this port accepts. Ports whose numbers are
    /// taken may not.
    pub(crate) fn accept_links(&self, accepts: bool) {
        let Some(mut wire) = self.remote.wire() else { return };
        let taken = self.peers().filter(|peer| !self.is_over(*peer)).map(|peer| peer.0);
        let taken = accepts
            .then(|| taken.chain([self.id.0]).chain(self.accept_queue.not_admitted()).collect());
        wire.accept_all_but(taken);
    }

    /// Waits for an event on the wire.
    fn wait_wire<T>(
        &mut self,
        deadline: Deadline,
        mut look: impl FnMut(&mut Wire) -> Option<T>,
    ) -> Result<T, SetupError> {
        self.wait_beside(deadline, |port, until| {
            let found = port.remote.wire().and_then(|mut wire| look(&mut wire));
            if found.is_none() {
                port.sleep.doze(until);
            }
            Ok(found)
        })
    }

    /// The wire's part of one poll. Returns the peer from which something has come.
    #[inline]
    pub(crate) fn pump(&mut self) -> Option<PeerId> {
        if !self.remote.is_in_use() {
            return None;
        }
        let pumped = self.remote.wire()?.pump();
        if let Some(peer) = pumped.from {
            self.look_at(peer);
        }
        pumped.from
    }

    /// Polls the wire for all peers. Returns whether anything new has come.
    pub(crate) fn pump_all(&mut self) -> bool {
        let Some(pumped) = self.remote.wire().map(|mut wire| wire.pump_all()) else { return false };
        if let Some(peer) = pumped.from {
            self.look_at(peer);
        }
        pumped.any()
    }

    /// The next poll looks at this peer first.
    fn look_at(&mut self, peer: PeerId) {
        self.remote.note_arrival();
        self.rouse();
        self.turns.expect_anything(peer);
    }

    /// Called where there is no room for more to this peer. On a link it makes progress, so that a
    /// repeated attempt succeeds; elsewhere the peer makes the room.
    #[cold]
    pub(crate) fn make_room(&mut self, peer: PeerId) {
        if self.connection(peer).is_ok_and(Connection::is_driven_here) {
            self.progress_with(peer);
        }
    }

    /// See [`Device::push_out`].
    pub(crate) fn send_out(&self, peer: PeerId) {
        if let Ok(connection) = self.connection(peer) {
            connection.device.push_out();
        }
    }

    /// As [`Self::send_out`], and takes what has come.
    pub(crate) fn push_out(&mut self, peer: PeerId) {
        self.send_out(peer);
        let Ok(connection) = self.connection(peer) else { return };
        if connection.is_driven_here() {
            self.pump_all();
        }
    }

    /// See [`Device::hasten`].
    pub(crate) fn hasten(&self, peer: PeerId) {
        if let Ok(connection) = self.connection(peer) {
            connection.device.hasten();
        }
    }

    /// Sends acknowledgements and credit that peers may wait for, before the port sleeps.
    // spec: WIRE-15
    pub(crate) fn settle_wire(&self) {
        if !self.engine.is_running()
            && let Some(mut wire) = self.remote.wire()
        {
            wire.settle();
        }
    }

    /// The time by the system's clock at which a sleeper must wake: its deadline, or an earlier
    /// timer of the links.
    pub(crate) fn wake_by(&self, deadline: Option<Deadline>) -> Option<Instant> {
        match self.remote.wire() {
            Some(mut wire) if !self.engine.is_running() => wire.wake_by(deadline),
            _ => self.clock.wake_by(None, deadline),
        }
    }

    /// Tells the progress thread that the engine thread sleeps without the network's sockets from
    /// now on.
    pub(crate) fn sleep_without_nets(&self) {
        debug_assert!(self.engine.is_running(), "another thread looks after them");
        let Some(wire) = self.remote.wire() else { return };
        wire.nets().for_each(|net| self.sleep.forget(net));
    }

    /// Sends the posted operations out, for at most the linger time.
    pub(crate) fn leave_wire(&self) {
        self.deliver(self.config.linger);
    }

    /// Sends the posted operations out, for at most this long.
    pub(crate) fn deliver(&self, limit: Duration) {
        if let Some(mut wire) = self.remote.wire() {
            wire.linger(limit);
        }
    }
}

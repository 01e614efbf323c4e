//! The port's side of the wire: opening it, links with peers, sleeping on it, and its part in the
//! port's progress.
use super::connection::Connection;
use crate::clock;
use crate::error::{CHECK, Fault, SetupError, Tried};
use crate::link::callee::Callee;
use crate::link::drive::drive;
use crate::link::keeper::{Keeper, Kept, Tended};
use crate::link::link_end::DATAGRAM_LEAST;
use crate::link::links::{Arrived, Identity};
use crate::link::opening::{NO_NUMBER, Unopened, Whom};
use crate::link::options::{Kind, NetOptions};
use crate::link::report::Owner;
use crate::link::window::Window;
use crate::link::{Wire, lock};
use crate::log::tell;
use crate::net::chance::Chance;
use crate::net::clock::Clock;
use crate::port::Port;
use ayre_proto::link::frame::PATHS_MAX;
use ayre_proto::units::PeerId;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often the keeper looks in the time after which a silent peer is not heard.
const KEEPS_PER_SILENCE: u32 = 8;

/// A link that was asked for.
#[derive(Debug)]
pub(crate) struct BegunLink {
    pub(super) index: usize,
    /// Where it was asked for.
    pub(super) to: Vec<SocketAddr>,
}

impl Port {
    /// Opens this port to ports of other hosts; [`Port::accept`] completes what they begin.
    /// Connections with them are mediated. Returns the addresses at which it is found, which
    /// others hand to [`Port::connect_net`]: those of the options, in their order, or else all
    /// addresses of this host that others may reach.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where it is open already, or for options that contradict themselves;
    /// [`SetupError::Os`] where an address cannot be bound.
    // spec: LIFE-20, LIFE-36
    pub fn open_net(&mut self, options: &NetOptions) -> Result<Vec<SocketAddr>, SetupError> {
        self.check_process()?;
        let at = self.open_wire(&options.placed()?, None)?;
        self.linked += 1;
        Ok(at)
    }

    /// Whether others find this port at any one of its addresses, which are no paths then.
    pub(crate) fn is_at_any(&self) -> bool {
        self.wire.get().is_some_and(|wire| lock(wire).is_at_any())
    }

    /// The same of a port that is an endpoint, if it is one.
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
        let clock = options.clock()?;
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
            any_mail: self.any_mail.clone(),
            responder: self.responder.clone(),
            bell: self.engine_bell.clone(),
        };
        let limits = (options.datagram_max, are_paths);
        let wire = Wire::new((nets, clock), identity, limits)?;
        self.watch_wire(wire, times.0)?;
        Ok(addresses)
    }

    fn watch_wire(&mut self, wire: Wire, silence: Duration) -> Result<(), SetupError> {
        if self.wire.get().is_some() {
            return Err(SetupError::invalid("the port is open to other hosts already"));
        }
        for net in wire.nets() {
            self.engine_sleep.watch_net(net)?;
            if self.engine.is_none() {
                self.sleep.watch_net(net)?;
            }
        }
        self.keeper = Some(self.keeper(wire.clock(), silence / KEEPS_PER_SILENCE)?);
        self.mediated += 1;
        let set = self.wire.set(wire.into());
        debug_assert!(set.is_ok(), "there was none");
        Ok(())
    }

    fn keeper(&self, clock: &Clock, interval: Duration) -> Result<Keeper, SetupError> {
        let tended = Tended {
            wire: self.wire.clone(),
            page: self.page.clone(),
            own_bell: self.own_bell.clone(),
        };
        if let Clock::Simulated(seat) = clock {
            return Ok(Keeper::of_seat(seat, tended));
        }
        let kept = Kept {
            tended,
            owner: Owner::this(self.id),
            // An endpoint leaves no files behind, however it ends.
            window: match self.config.name {
                None => Window::open(self.identity),
                Some(_) => Window::open_unfiled(self.identity),
            },
        };
        Keeper::start(kept, interval)
    }

    /// Connects to the port of another host that is found at these addresses, waiting until it
    /// accepts. Where this port is open at all of its host's, all of theirs are tried, those first
    /// that its routes lead to, and the link uses the one that answers. Where it was told at which
    /// ones to be open, theirs are paths of one link, which share its frames: up to four, beyond
    /// which they are tried likewise.
    ///
    /// # Errors
    /// As [`Port::accept`]; [`SetupError::Refused`].
    // spec: LIFE-20
    pub fn connect_net(&mut self, to: &[SocketAddr]) -> Result<PeerId, SetupError> {
        self.check_process()?;
        let begun = self.begin_connect_net(to, None)?;
        self.finish_connect_net(begun)
    }

    /// Asks the port of this number, if it is known.
    // spec: OPEN-5, OPEN-20
    pub(crate) fn begin_connect_net(
        &mut self,
        to: &[SocketAddr],
        whom: Option<u16>,
    ) -> Result<BegunLink, SetupError> {
        self.begin_connect_by((to, false), whom)
    }

    /// The same; the port may also be one that is found at any of the addresses.
    // spec: OPEN-30
    pub(crate) fn begin_connect_by(
        &mut self,
        (to, is_any): (&[SocketAddr], bool),
        whom: Option<u16>,
    ) -> Result<BegunLink, SetupError> {
        if to.is_empty() {
            return Err(SetupError::invalid("a peer has an address"));
        }
        let patience = self.config.setup_timeout;
        let mut wire = lock(self.wire.get().ok_or(NOT_OPEN)?);
        let index = match is_any {
            true => wire.ask_at_any(Whom::Port(whom), to, patience)?,
            false => wire.ask_for_link(Whom::Port(whom), to, patience)?,
        };
        Ok(BegunLink { index, to: to.to_vec() })
    }

    pub(crate) fn finish_connect_net(&mut self, begun: BegunLink) -> Result<PeerId, SetupError> {
        // The opening has a deadline of its own, and this one behind it.
        let deadline = clock::now() + self.config.setup_timeout + Duration::from_secs(1);
        let opened = self.wait_wire(deadline, |wire| wire.conclude(begun.index))?;
        self.conclude_connect_net(&begun, opened)
    }

    /// The opening has ended.
    pub(super) fn conclude_connect_net(
        &mut self,
        begun: &BegunLink,
        opened: Result<Arrived, Unopened>,
    ) -> Result<PeerId, SetupError> {
        self.take_link(opened.map_err(|why| why.error(&begun.to))?)
    }

    /// Warm reset: agrees anew with a peer of another host on where their link stands, where a
    /// program has reason to doubt it. Nothing is lost, repeated or reordered: what was posted
    /// stays posted, handles stay good, and frames that are not known to have arrived are sent
    /// again. No other link is disturbed. With a peer of this host there is nothing to agree on.
    ///
    /// Blocks until the peer's port has answered, which takes a round trip, or an eighth of the
    /// silence where its program makes no progress; or until the peer is taken for dead. Makes
    /// progress and sleeps meanwhile.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected; [`Fault::PeerDead`],
    /// [`Fault::PeerRestarted`], [`Fault::Malformed`] where its connection has ended.
    // spec: LINK-22, WIRE-11
    pub fn resync(&mut self, peer: PeerId) -> Result<(), Fault> {
        let connection = self.connection(peer)?;
        if let Some(why) = connection.ended {
            return Err(why);
        }
        if let Some(wire) = self.wire.get().filter(|_| connection.is_carried()) {
            lock(wire).resync(peer);
            let resynced = self.wait_for(None, |port| {
                let ended = port.connection(peer).map_or(Some(Fault::ForeignHandle), |c| c.ended);
                ended.map(Err).or_else(|| port.has_resynced(peer).then_some(Ok(())))
            });
            return resynced.unwrap_or(Err(Fault::PeerDead));
        }
        Ok(())
    }

    /// A link that is no more has not; its port hears of that.
    fn has_resynced(&self, peer: PeerId) -> bool {
        self.wire.get().is_some_and(|wire| lock(wire).links().is_resyncing(peer) == Some(false))
    }

    /// Makes a connection of a link that has come up.
    pub(crate) fn take_link(&mut self, arrived: Arrived) -> Result<PeerId, SetupError> {
        let wire = self.wire.get().ok_or(NOT_OPEN)?;
        let peer = match self.number_of_link(&arrived) {
            Ok(peer) => peer,
            Err(error) => {
                lock(wire).links().turn_away(&arrived);
                return Err(error);
            }
        };
        let connection = lock(wire).adopt(arrived, peer);
        // Whoever has opened the link waits for an answer.
        self.pump_all();
        let added = self.add(connection)?;
        // What has come in the meantime can be performed now.
        self.push_out(added);
        Ok(added)
    }

    /// A link that somebody else has opened.
    pub(crate) fn next_link(&self) -> Option<Arrived> {
        lock(self.wire.get()?).links().take_accepted()
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

    /// Whether others may open links: while this port accepts. Those of numbers that are taken may
    /// not.
    pub(crate) fn accept_links(&self, accepts: bool) {
        let Some(wire) = self.wire.get() else { return };
        let taken = self.peers().filter(|peer| !self.is_over(*peer)).map(|peer| peer.0);
        let taken = accepts.then(|| taken.chain([self.id.0]).collect());
        lock(wire).accept_all_but(taken);
    }

    /// Whom this port could not let in while it accepted, and why, if there was somebody: what to
    /// say in place of that nobody came.
    // spec: OPEN-27
    pub(crate) fn whom_it_turned_away(&self) -> Option<SetupError> {
        let (at, why) = lock(self.wire.get()?).turned_away()?;
        why.rejection(at)
    }

    /// The peers of other hosts that this port asks for a link and that have not answered, and what
    /// came of each address, in words; none where there are none.
    // spec: OPEN-32
    #[cold]
    pub(crate) fn unanswered(&self) -> Option<String> {
        let tried = lock(self.wire.get()?).tried_of_all();
        let told = || format!("peers at {}; {CHECK}", Tried::in_words(&tried));
        (!tried.is_empty()).then(told)
    }

    /// Waits for something of the wire.
    fn wait_wire<T>(
        &mut self,
        deadline: Instant,
        mut look: impl FnMut(&mut Wire) -> Option<T>,
    ) -> Result<T, SetupError> {
        self.wait_beside(deadline, |port, until| {
            let found = port.wire.get().and_then(|wire| look(&mut lock(wire)));
            if found.is_none() {
                port.sleep.doze(Some(until));
            }
            Ok(found)
        })
    }

    /// A number by chance: one that nobody can guess, unless the port's network is simulated.
    pub(crate) fn chance(&self) -> u64 {
        self.wire.get().map_or_else(|| Chance::System.number(), |wire| lock(wire).chance())
    }

    /// The wire's share of one poll; from whom something has come.
    #[inline]
    pub(crate) fn pump(&mut self) -> Option<PeerId> {
        if self.linked == 0 {
            return None;
        }
        let pumped = lock(self.wire.get()?).pump();
        if let Some(peer) = pumped.from {
            self.look_at(peer);
        }
        pumped.from
    }

    /// Whether there is anything new from any peer.
    pub(crate) fn pump_all(&mut self) -> bool {
        let Some(wire) = self.wire.get() else { return false };
        let pumped = lock(wire).pump_all();
        if let Some(peer) = pumped.from {
            self.look_at(peer);
        }
        pumped.any()
    }

    /// What comes next is likely to come from there.
    fn look_at(&mut self, peer: PeerId) {
        self.has_come = true;
        self.commands_rota.hot = peer.index();
        self.answers_rota.hot = peer.index();
        self.mail_rota.hot = peer.index();
    }

    /// Something was published for a peer of another host.
    #[cold]
    pub(crate) fn nudge(&self, peer: PeerId) {
        if let Some(wire) = self.wire.get()
            && self.engine.is_none()
        {
            lock(wire).nudge(peer);
        }
    }

    /// Frames that can be made ready for commands to a peer of another host.
    pub(crate) fn wire_room(&self, peer: PeerId) -> usize {
        self.wire.get().map_or(0, |wire| lock(wire).room(peer))
    }

    /// There is no room for more to this peer. On one host that is the peer's business; what is to
    /// go over the wire leaves when this port makes progress, so that whoever tries again gets on.
    #[cold]
    pub(crate) fn make_room(&mut self, peer: PeerId) {
        if self.connection(peer).is_ok_and(Connection::is_carried) {
            self.progress_with(peer);
        }
    }

    /// What was published for a peer of another host goes at once, whatever is under way: it is
    /// set-up, and somebody may wait for it.
    pub(crate) fn push_out(&mut self, peer: PeerId) {
        if let Some(wire) = self.wire.get() {
            lock(wire).push_out(peer);
            self.pump_all();
        }
    }

    /// Everything that was posted to a peer is waited for.
    pub(crate) fn ask(&self, peer: PeerId) {
        if let Some(wire) = self.wire.get()
            && self.connection(peer).is_ok_and(Connection::is_carried)
        {
            lock(wire).ask(peer);
        }
    }

    /// Before the port sleeps: what peers may wait for is said.
    // spec: WIRE-15
    pub(crate) fn settle_wire(&self) {
        if let Some(wire) = self.wire.get()
            && self.engine.is_none()
        {
            lock(wire).settle();
        }
    }

    /// When a sleeper must wake: links have things to do by the clock.
    pub(crate) fn wake_by(&self, deadline: Option<Instant>) -> Option<Instant> {
        match self.wire.get() {
            Some(wire) if self.engine.is_none() => {
                let due = lock(wire).deadline();
                deadline.into_iter().chain(due).min()
            }
            _ => deadline,
        }
    }

    /// The engine's thread sleeps on the nets from here on.
    pub(crate) fn sleep_without_nets(&self) {
        let Some(wire) = self.wire.get() else { return };
        lock(wire).nets().for_each(|net| self.sleep.forget(net));
    }

    /// The connection with a peer has ended here.
    pub(crate) fn release_link(&mut self, peer: PeerId) {
        if let Some(wire) = self.wire.get() {
            lock(wire).release(peer);
            self.linked -= 1;
        }
    }

    /// What was posted goes out, for as long as the port lingers.
    pub(crate) fn leave_wire(&self) {
        if let Some(wire) = self.wire.get() {
            lock(wire).linger(self.config.linger);
        }
    }
}

pub(super) const NOT_OPEN: SetupError =
    SetupError::Invalid(std::borrow::Cow::Borrowed("the port is not open to other hosts"));

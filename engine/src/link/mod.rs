//! The wire: connections with ports of other hosts.
//!
//! ```text
//!   port, responder          lanes, as on one host, in this process's own memory
//!   carrier                  lanes <-> records: proto::node::carrier spec/89
//!   link_end                 records <-> frames: proto::node::linked spec/85, 86, 91
//!   seal                     frames <-> sealed datagrams             spec/88
//!   net                      datagrams: UDP, Ethernet, simulated;
//!                            with or without faults                  spec/92
//! ```
//!
//! Everything happens in [`Wire::pump`], which never blocks: the port's thread calls it where it
//! makes progress, and the engine's thread does where there is one.
mod attempts;
pub(crate) mod callee;
mod carrier;
pub(crate) mod drive;
mod fingerprint;
mod frames;
#[cfg(all(any(test, fuzzing), not(loom)))]
pub(crate) mod fuzzed;
mod half_open;
mod handshake;
mod identity;
pub(crate) mod link_end;
pub(crate) mod links;
mod load;
mod look;
pub(crate) mod opening;
pub(crate) mod options;
mod pcap;
mod pool;
pub(crate) mod progress_thread;
pub(crate) mod report;
mod seal;
mod silence_log;
pub(crate) mod stats_socket;
mod ways;

pub(crate) use self::callee::Callee;
pub(crate) use self::fingerprint::Fingerprint;
pub(crate) use self::handshake::JobKey;
use self::handshake::Protection;
pub(crate) use self::identity::StaticKey;
use self::link_end::DATAGRAM_LEAST;
pub(crate) use self::links::Arrived;
use self::links::{Identity, Links};
pub use self::load::LinkLoad;
pub use self::look::{WireReports, wire_reports};
pub(crate) use self::opening::Unopened;
use self::opening::{Destination, Request};
pub use self::options::NetOptions;
pub(crate) use self::progress_thread::ProgressThread;
pub use self::report::{
    AgainReport, BuffersReport, CreditReport, LinkChannel, LinkReport, LinkState, NetReport,
    PathReport, PathState, WireReport,
};
use crate::clock::poll_until;
use crate::error::{AddressAttempt, SetupError};
use crate::mem::page::Sleeper;
use crate::net::clock::{Clock, Deadline};
use crate::net::datagram::{Inbox, Net};
use crate::net::interfaces;
use crate::net::poll_schedule::PollSchedule;
use crate::net::routes::{self, Place, Way};
use crate::peer::agreement::Agreement;
use ayre_proto::link::frame::{Full, PATHS_MAX};
use ayre_proto::link::open::Opening;
use ayre_proto::link::receive::UNACKED_MAX;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Links to other hosts, and the nets that they run over.
#[derive(Debug)]
pub(crate) struct Wire {
    nets: Vec<Box<dyn Net>>,
    /// Where these are.
    places: Vec<Place>,
    /// They are paths of each link.
    are_paths: bool,
    poll_schedule: PollSchedule,
    inbox: Inbox,
    links: Links,
    clock: Clock,
    pumped_at: u64,
    /// The last look has found something.
    has_come: bool,
    /// The contents of a datagram were handed on before the link was served.
    put_off: bool,
    /// Bytes of the longest datagram that is sent.
    datagram_max: usize,
}

/// The result of a pump.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pumped {
    /// Records have come from this peer.
    pub(crate) from: Option<PeerId>,
    /// A link has ended, or come up, or an opening has.
    pub(crate) changed: bool,
}

impl Pumped {
    /// Whether there is anything for the port.
    pub(crate) fn any(self) -> bool {
        self.from.is_some() || self.changed
    }

    fn and(self, later: Self) -> Self {
        Self { from: later.from.or(self.from), changed: self.changed || later.changed }
    }
}

/// Counters besides those of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireCounters {
    /// Datagrams that belong to no link, or are forged.
    pub(crate) refused: u64,
    /// Links that ended because the peer said what no correct one says.
    pub(crate) malformed: u64,
    /// Links that ended because the peer was started anew.
    pub(crate) restarted: u64,
}

pub(crate) fn lock(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Wire {
    /// The links, for those who open and end them.
    pub(crate) fn links(&mut self) -> &mut Links {
        &mut self.links
    }

    /// The time of its nets.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn new(
        (nets, clock): (Vec<Box<dyn Net>>, Clock),
        identity: Identity,
        (datagram_max, are_paths): (usize, bool),
    ) -> Result<Self, SetupError> {
        assert!(!nets.is_empty(), "a wire has a net");
        let taps = match identity.protection {
            Protection::Sealed(_) => nets.iter().map(|net| net.tap()).collect::<Option<Vec<_>>>(),
            Protection::Plain => None,
        };
        let mut links = Links::new(identity, nets.len(), clock.chance(), clock.nanos())?;
        links.taps = taps.map(Into::into);
        for (outbox, net) in links.outboxes.iter_mut().zip(&nets) {
            outbox.hints = net.hints();
        }
        // A simulated network is none of this host's.
        let known = if clock.is_simulated() { Vec::new() } else { interfaces::all() };
        let place = |at: SocketAddr| {
            let found = known.iter().find(|found| found.ip == at.ip());
            Place { at, prefix: found.map_or(0, |found| found.prefix) }
        };
        let places: Vec<_> = nets.iter().map(|net| place(net.local())).collect();
        let poll_schedule = PollSchedule::at_each(if are_paths { 1 } else { nets.len() });
        Ok(Self {
            nets,
            places,
            are_paths,
            poll_schedule,
            inbox: Inbox::new(),
            links,
            clock,
            pumped_at: 0,
            has_come: false,
            put_off: false,
            datagram_max,
        })
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        let nets = self.nets.len();
        debug_assert_eq!(self.places.len(), nets, "each net is somewhere");
        debug_assert_eq!(self.links.outboxes.len(), nets, "each net has an outbox");
    }

    /// Datagrams that belong to no link, or are forged.
    pub(crate) fn refused(&self) -> u64 {
        self.links.counters.refused
    }

    /// The descriptors to sleep on.
    pub(crate) fn nets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.nets.iter().map(|net| net.as_fd())
    }

    /// Whether ports must wake the thread that pumps.
    pub(crate) fn announce_sleep(&self, asleep: bool) {
        self.links.page.set_asleep(Sleeper::Port, asleep);
        self.links.page.set_asleep(Sleeper::Engine, asleep);
    }

    /// Nanoseconds of this wire's clock.
    fn now(&self) -> u64 {
        self.clock.nanos()
    }

    /// One poll's share: sends what ports have published and takes what has come, with the peer
    /// where something came last and one other in turn.
    // spec: PROG-4
    pub(crate) fn pump(&mut self) -> Pumped {
        let now = self.now();
        let (came, count) = self.receive(now, false);
        // What has come goes to the program at once: it may answer, and so acknowledge.
        let is_little = count < UNACKED_MAX as usize;
        self.put_off = came.from.is_some() && is_little && !self.put_off;
        if self.put_off {
            return came;
        }
        let served = self.links.serve_in_turn(now);
        self.send(now);
        self.has_looked(Clock::looked);
        came.and(served)
    }

    /// Looks after the links with all peers.
    pub(crate) fn pump_all(&mut self) -> Pumped {
        let pumped = self.pump_each();
        self.has_looked(Clock::looked);
        pumped
    }

    /// Looks after the links with all peers in the port's stead.
    // spec: WIRE-7
    fn serve(&mut self) -> Pumped {
        let pumped = self.pump_each();
        self.has_looked(Clock::tended);
        pumped
    }

    /// Tells a simulation until when there is nothing more to do, unless something comes.
    #[inline]
    fn has_looked(&mut self, tell: impl FnOnce(&Clock, Option<u64>)) {
        if self.clock.is_simulated() {
            let due = self.due();
            tell(&self.clock, due);
        }
    }

    fn pump_each(&mut self) -> Pumped {
        let now = self.now();
        let (came, _) = self.receive(now, true);
        let served = self.links.serve_all(now);
        self.send(now);
        came.and(served)
    }

    /// Looks after the links with all peers, if nobody has done so for this long.
    pub(crate) fn pump_if_idle(&mut self, idle: Duration) -> Pumped {
        let is_idle = self.now().saturating_sub(self.pumped_at) >= idle.as_nanos() as u64;
        if is_idle { self.pump_all() } else { Pumped::default() }
    }

    /// The thread that pumps is about to sleep. Sends first what it would have to wake for in a
    /// moment, because waking takes long where processors are busy.
    // spec: WIRE-15
    pub(crate) fn settle(&mut self) {
        let now = self.now();
        self.links.settle_all(now);
        self.send(now);
    }

    /// The time, by the system's clock, until which a thread may sleep that waits for a deadline of
    /// this wire's: the next pump may be due before, though nothing comes.
    pub(crate) fn wake_by(&mut self, deadline: Option<Deadline>) -> Option<Instant> {
        let due = self.due();
        self.clock.wake_by(due, deadline)
    }

    /// When the next pump is due, by this wire's clock.
    fn due(&mut self) -> Option<u64> {
        let nets = self.nets.iter().filter_map(|net| net.deadline());
        nets.chain([self.links.deadline()]).min().filter(|at| *at != u64::MAX)
    }

    /// The port has published something for this peer. It is sent at once if nothing is under way
    /// to the peer. Otherwise it is sent together with later records, when an answer comes or a
    /// poll is made.
    // spec: WIRE-6
    pub(crate) fn nudge(&mut self, peer: PeerId) {
        if self.links.is_urgent(peer) {
            let now = self.now();
            self.links.load(peer, now);
            self.send(now);
        }
    }

    /// See [`Links::has_room`].
    pub(crate) fn has_room(&self, peer: PeerId, answered: bool, len: usize) -> bool {
        self.links.has_room(peer, answered, len)
    }

    /// See [`Links::room`].
    pub(crate) fn room(&self, peer: PeerId) -> usize {
        self.links.room(peer)
    }

    /// See [`Links::post`].
    pub(crate) fn post(
        &mut self,
        peer: PeerId,
        request: &impl CommandRecord,
        data: (usize, impl FnOnce(&mut [u8])),
    ) -> Result<(), Full> {
        self.links.post(peer, request, data)
    }

    /// See [`Links::push_out`].
    pub(crate) fn push_out(&mut self, peer: PeerId) {
        let now = self.now();
        self.links.push_out(peer, now);
        self.send(now);
    }

    /// See [`Links::resync`].
    pub(crate) fn resync(&mut self, peer: PeerId) {
        let now = self.now();
        self.links.resync(peer, now);
        self.send(now);
    }

    /// See [`Links::ask`].
    pub(crate) fn ask(&mut self, peer: PeerId) {
        self.links.ask(peer);
    }

    /// See [`Links::release`].
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.links.release(peer);
    }

    /// Brings what was posted to the other sides, for so long, and leaves them.
    // spec: LINK-20
    pub(crate) fn linger(&mut self, timeout: Duration) {
        let end = self.clock.within(timeout);
        let _waiting = self.clock.wait(Some(end));
        self.links.leave_all();
        loop {
            self.pump_all();
            if self.links.is_deserted() {
                return;
            }
            if self.clock.is_over(end) {
                // Whoever still listens need not wait for silence.
                self.links.abort_all();
                self.pump_all();
                return;
            }
            let until = self.wake_by(Some(end));
            let nets = self.nets();
            let mut fds: Vec<_> =
                nets.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            if poll_until(&mut fds, until).is_err() {
                return;
            }
        }
    }

    /// Whether its port is found at any one of its addresses, which are no paths.
    pub(crate) fn is_at_any(&self) -> bool {
        !self.are_paths
    }

    /// Asks a port that is open at all of these addresses for a link of several paths, for so long:
    /// its index. Where this port is found at several places, there can only be one path. The same
    /// holds where the other one is found at more places than a link has paths.
    // spec: LIFE-36
    pub(crate) fn ask_for_link(
        &mut self,
        destination: Destination,
        to: &[SocketAddr],
        timeout: Duration,
    ) -> Result<usize, SetupError> {
        if self.is_at_any() || to.len() > usize::from(PATHS_MAX) {
            return self.ask_at_any(destination, to, timeout);
        }
        let mut ways = opening::ways(self.nets.len(), to);
        // There is no way between IPv4 and IPv6.
        ways.retain(|way| self.nets[way.net].local().is_ipv4() == way.to.is_ipv4());
        if ways.is_empty() {
            return self.ask_at_any(destination, to, timeout);
        }
        assert!(ways.len() <= usize::from(PATHS_MAX), "each way is a path");
        let longest = self.longest(&mut ways, true)?;
        self.ask_by((ways, false), destination, longest, timeout)
    }

    fn ask_by(
        &mut self,
        (ways, is_race): (Vec<Way>, bool),
        destination: Destination,
        datagram_max: usize,
        timeout: Duration,
    ) -> Result<usize, SetupError> {
        let now = self.now();
        let give_up = now.saturating_add(timeout.as_nanos() as u64);
        self.links.ask_for(Request::new(destination, (ways, is_race), datagram_max, give_up), now)
    }

    /// The outcome of a link's opening, if there is one: the link, or the reason why there is none.
    /// This ends the attempt.
    pub(crate) fn conclude(&mut self, index: usize) -> Option<Result<Arrived, Unopened>> {
        let ended = self.links.outcome(index)?;
        if ended == Opening::Accepted {
            return Some(self.links.take_opened(index).ok_or(Unopened::Left));
        }
        let is_endpoint = self.links.is_endpoint();
        let tried = self.tried(index);
        let why = Unopened::of((ended, self.links.refusal(index)), tried, is_endpoint);
        self.links.give_up(index);
        Some(Err(why))
    }

    /// See [`Links::tried_of_all`].
    pub(crate) fn tried_of_all(&self) -> Vec<AddressAttempt> {
        self.links.tried_of_all(self.now())
    }

    /// See [`Links::tried`].
    pub(crate) fn tried(&self, index: usize) -> Vec<AddressAttempt> {
        self.links.tried(index, self.now())
    }

    /// Asks a port or an endpoint that may be found at any of these addresses, for so long: the
    /// index of its link.
    // spec: OPEN-30
    pub(crate) fn ask_at_any(
        &mut self,
        destination: Destination,
        to: &[SocketAddr],
        timeout: Duration,
    ) -> Result<usize, SetupError> {
        for (place, net) in self.places.iter_mut().zip(&self.nets) {
            place.at = net.local();
        }
        let source = |to| if self.clock.is_simulated() { None } else { interfaces::source_to(to) };
        let mut ways = routes::ways(&self.places, to, source);
        if ways.is_empty() {
            // One of the two has IPv4 alone and the other one IPv6 alone, for example.
            let own: Vec<_> = self.places.iter().map(|place| place.at.ip()).collect();
            let to: Vec<_> = to.iter().map(SocketAddr::ip).collect();
            return Err(SetupError::Environment(format!(
                "no address of this host, of {own:?}, goes with one of the other host's, {to:?}"
            )));
        }
        let longest = self.longest(&mut ways, false)?;
        self.ask_by((ways, true), destination, longest, timeout)
    }

    /// How long datagrams may be on all of these ways, all of which are paths; or on one of them.
    /// Those on which they may not be long enough are left out.
    ///
    /// # Errors
    /// No way is left.
    // spec: MTU-1, OPEN-31
    fn longest(&self, ways: &mut Vec<Way>, are_paths: bool) -> Result<usize, SetupError> {
        let (mut all, mut any, mut longest) = (usize::MAX, 0, 0);
        let to = ways.first().map(|way| way.to);
        ways.retain(|way| {
            let here = self.nets[way.net].datagram_max(way.to);
            longest = longest.max(here);
            let is_enough = here >= DATAGRAM_LEAST;
            if is_enough {
                (all, any) = (all.min(here), any.max(here));
            }
            is_enough
        });
        if ways.is_empty() {
            let peer = to.map_or_else(|| "the peer".to_owned(), |to| to.to_string());
            return Err(SetupError::Rejected { peer, why: Refusal::PathMtu(longest as u32) });
        }
        assert!(DATAGRAM_LEAST <= all && all <= any && any <= longest, "of those that are left");
        Ok(if are_paths { all } else { any }.min(self.datagram_max))
    }

    /// The last caller that could not be let in since this port accepts, and the reason.
    pub(crate) fn turned_away(&self) -> Option<(SocketAddr, Unopened)> {
        self.links.acceptor.turned_away.clone()
    }

    /// Ports of these numbers may not open a link while this one accepts; none may where it does
    /// not.
    pub(crate) fn accept_all_but(&mut self, taken: Option<Vec<u16>>) {
        self.links.acceptor.accept_all_but(taken);
    }

    /// See [`Links::adopt`].
    pub(crate) fn adopt(&mut self, arrived: Arrived, peer: PeerId) -> Agreement {
        self.links.adopt(arrived, peer)
    }

    /// Before anything is done by the clock, so that nobody is taken for silent whose word waits.
    /// Says how many datagrams came, too.
    fn receive(&mut self, now: u64, all: bool) -> (Pumped, usize) {
        let (mut pumped, mut count, mut is_emptied) = (Pumped::default(), 0, true);
        self.check();
        debug_assert!(now >= self.pumped_at, "a clock never goes back");
        self.pumped_at = now;
        let Self { nets, inbox, links, datagram_max, poll_schedule, has_come, .. } = self;
        let all = poll_schedule.are_due(now, all);
        links.looks.look(now);
        for (index, net) in nets.iter_mut().enumerate() {
            if !all && !poll_schedule.is_active(index, now) {
                continue;
            }
            inbox.clear();
            net.receive(inbox, now);
            if !inbox.is_empty() {
                count += inbox.len();
                poll_schedule.on_arrival(index, now);
            }
            // Behind a lone datagram after a silence nobody has looked for others.
            is_emptied &= !inbox.is_full() && (inbox.len() != 1 || *has_come);
            for number in 0..inbox.len() {
                let (to, datagram) = inbox.get(number);
                let longest = || net.datagram_max(to).min(*datagram_max);
                pumped =
                    pumped.and(links.on_datagram((Way { net: index, to }, longest), datagram, now));
            }
        }
        *has_come = count > 0;
        if is_emptied {
            links.looks.emptied();
        }
        (pumped, count)
    }

    /// Sends what is ready, and then the rest of links that have more than goes at a time. So the
    /// other side works on the first frames while the next ones are made.
    // spec: WIRE-16
    fn send(&mut self, now: u64) {
        self.send_ready(now);
        while self.links.load_more(now) {
            self.send_ready(now);
        }
    }

    fn send_ready(&mut self, now: u64) {
        let mut has_refused = false;
        for (net, outbox) in self.nets.iter_mut().zip(&mut self.links.outboxes) {
            if !outbox.is_empty() {
                if let Some(to) = outbox.doubted.take() {
                    net.check_address(to);
                }
                net.send(outbox, now);
                has_refused |= outbox.has_refused();
            }
        }
        if has_refused || self.links.has_questions {
            self.look_at_lengths(now);
        }
    }

    /// Asks the host how long datagrams may be, where it has refused some, or where links lose
    /// them.
    // spec: MTU-2, MTU-3
    #[cold]
    fn look_at_lengths(&mut self, now: u64) {
        let Self { nets, links, datagram_max, .. } = self;
        let longest = |way: Way| nets[way.net].datagram_max(way.to).min(*datagram_max);
        for net in 0..nets.len() {
            for (to, len) in links.outboxes[net].take_refused() {
                let way = Way { net, to };
                debug_assert!(len > 0, "no host refuses what has no bytes");
                // Whatever the host says it takes, it has not taken that.
                links.on_refused(way, longest(way).min(len - 1), now);
            }
        }
        links.ask_host(longest, now);
    }
}

//! A port: one process's interface, with its connections, mailbox and notification queue.
#[cfg(not(feature = "net"))]
pub(crate) mod absent;
#[cfg(feature = "net")]
pub(crate) mod attach;
pub(crate) mod batch;
#[cfg(feature = "net")]
mod calls;
pub(crate) mod capability;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod counters;
pub(crate) mod device;
pub(crate) mod direct;
mod engine;
pub(crate) mod executor;
mod exposed;
mod interrupt;
mod landing;
pub(crate) mod local;
pub(crate) mod lock;
pub(crate) mod mediated;
#[cfg(feature = "net")]
mod mesh;
pub(crate) mod message;
pub(crate) mod notification;
pub(crate) mod ops;
pub(crate) mod options;
pub(crate) mod peers;
pub(crate) mod posted;
pub(crate) mod progress;
pub(crate) mod queue;
pub(crate) mod quick;
mod raw;
#[cfg(feature = "net")]
mod remote;
#[cfg(feature = "net")]
mod report;
mod rest;
pub(crate) mod setup;
pub(crate) mod turns;
pub(crate) mod wait;

#[cfg(not(feature = "net"))]
pub(crate) use self::{absent as attach, absent as remote};

use self::config::Config;
use self::connection::{Connection, identity};
use self::counters::Counters;
use self::device::Device;
use self::engine::Engine;
use self::exposed::Exposed;
use self::peers::Peers;
use self::remote::Remote;
use self::setup::AcceptQueue;
use self::turns::Turns;
use self::wait::Sleep;
use crate::depot::instruction_cache::InstructionCache;
use crate::error::{DisconnectReason, Fault, SetupError};
use crate::log::tell;
use crate::mem::page::OwnPage;
use crate::net::clock::{Clock, Deadline};
use crate::peer::loss::Loss;
use crate::peer::packet::PacketKind;
use crate::settings::choice::Mode;
use crate::sys::descriptor;
use crate::target::Responder;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::node::notes::Notes;
use ayre_proto::units::PeerId;
use rustix::io::Errno;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Arc, MutexGuard};

/// One process's interface to its peers: memory, messages and queues.
///
/// A port is used by one thread at a time (it is `Send`, not `Sync`); a program with several
/// communicating threads opens a port for each. No call blocks unless its documentation says so.
// spec: LIFE-1, NOTI-8
#[derive(Debug)]
pub struct Port {
    pub(crate) id: PeerId,
    /// Distinguishes this port's handles from those of another port.
    pub(crate) identity: u64,
    pub(crate) config: Config,
    /// The clock of all timers: the system's, or that of the simulated network that the port uses.
    pub(crate) clock: Clock,
    pub(crate) page: Arc<OwnPage>,
    pub(crate) peers: Peers,
    pub(crate) turns: Turns,
    pub(crate) notes: Notes,
    exposed: Exposed,
    pub(crate) remote: Remote,
    pub(crate) engine: Engine,
    pub(crate) sleep: Sleep,
    pub(crate) accept_queue: AcceptQueue,
    /// The number of mediated connections that this thread serves; the wire counts as one.
    mediated: usize,
    polls: u32,
    /// The program sleeps in an event loop, or is about to.
    is_resting: bool,
    /// Yields that are still left out, because another thread computes on this processor.
    yields_in_vain: u32,
    /// The connection whose answers a blocking call takes in itself.
    awaited: Option<usize>,
    /// The reason for the end of that connection, which takes effect once the call has taken its
    /// answers.
    awaited_ends: Option<Fault>,
    /// A batch is being posted.
    releases: bool,
    /// A copy of bytes on the way between a lane and a region, to which no reference may point.
    staging: Box<[u8; RECORD_MAX]>,
    /// The number of ranks of the job, this one included; 1 outside of jobs.
    pub(crate) size: usize,
    pub(crate) barriers: u64,
    counters: Counters,
    /// When the program is asked next whether it interrupts a call; None: at once.
    next_question: Option<Deadline>,
    /// Deposit instructions that were parsed lately.
    pub(crate) instructions: InstructionCache,
    _not_sync: PhantomData<Cell<()>>,
}

impl Port {
    /// Opens a port. It has no peers at first. Does not block.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses memory files, eventfds or epoll;
    /// [`SetupError::Environment`] where a variable has a wrong value ([`crate::settings`]).
    // spec: INJ-4, LIFE-30
    pub fn open(mut config: Config) -> Result<Self, SetupError> {
        crate::settings::check()?;
        if crate::settings::raises_limit()? {
            descriptor::raise_limit();
        }
        crate::mem::fence::expedited();
        if config.tuning.is_none() {
            config = config.tuning(crate::tuning::of_user()?);
        }
        Ok(Self {
            id: PeerId(config.rank),
            identity: identity(),
            config,
            clock: Clock::system(),
            page: Arc::new(OwnPage::new()?),
            peers: Peers::default(),
            turns: Turns::default(),
            notes: Notes::new(),
            exposed: Exposed::new(),
            remote: Remote::default(),
            engine: Engine::new()?,
            sleep: Sleep::new()?,
            accept_queue: AcceptQueue::default(),
            mediated: 0,
            polls: 0,
            is_resting: false,
            yields_in_vain: 0,
            awaited: None,
            awaited_ends: None,
            releases: false,
            staging: Box::new([0; RECORD_MAX]),
            size: 1,
            barriers: 0,
            counters: Counters::default(),
            next_question: None,
            instructions: InstructionCache::default(),
            _not_sync: PhantomData,
        })
    }

    /// The number by which peers know this port; in a job, the rank.
    pub fn rank(&self) -> usize {
        self.id.index()
    }

    /// The number of ports of the job, this one included; 1 for a port outside of a job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The peer of this number, if it is connected.
    pub fn peer(&self, number: usize) -> Option<PeerId> {
        self.peers.at(number).map(|connection| connection.peer)
    }

    /// All connected peers in ascending order, including this port itself if it has a loopback.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.iter().map(|connection| connection.peer)
    }

    /// The mode of the connection with a peer.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected.
    pub fn mode(&self, peer: PeerId) -> Result<Mode, Fault> {
        self.connection(peer).map(Connection::mode)
    }

    /// Whether the peer is alive, as far as this port knows. [`Port::progress`] finds out.
    pub fn is_alive(&self, peer: PeerId) -> bool {
        self.connection(peer).is_ok_and(|connection| connection.ended.is_none())
    }

    #[inline(always)]
    pub(crate) fn connection(&self, peer: PeerId) -> Result<&Connection, Fault> {
        self.peers.find(peer)
    }

    #[inline(always)]
    pub(crate) fn connection_mut(&mut self, peer: PeerId) -> Result<&mut Connection, Fault> {
        self.peers.find_mut(peer)
    }

    pub(crate) fn responder(&self) -> MutexGuard<'_, Responder> {
        self.exposed.responder()
    }

    /// Ends a connection: nothing is sent any more, and pending operations fault. Messages that
    /// have arrived can still be received.
    // spec: LIFE-11, LIFE-12, LIFE-18
    pub(crate) fn end_connection(&mut self, peer: PeerId, why: Fault) {
        let Some(connection) = self.peers.end(peer, why) else { return };
        let loss = connection.control().loss();
        let is_mediated = connection.mode() == Mode::Mediated;
        self.tell_end(peer, why, loss);
        if is_mediated {
            debug_assert!(self.mediated > 0, "each mediated connection is counted");
            self.mediated -= 1;
            // Commands that the peer had posted before its end are still executed.
            let mut responder = self.responder();
            responder.serve_out(peer);
            responder.remove(peer);
            drop(responder);
            self.hear_news();
            self.abandon(peer, why);
        }
        let Ok(connection) = self.peers.find(peer) else { return };
        let has_left = connection.left;
        self.sleep.forget_control(&connection.link);
        self.engine.sleep().forget_channel(&connection.link);
        connection.device.end();
        if connection.is_driven_here() {
            self.remote.end_use();
        }
        self.check();
        // Endpoints have no other way to learn that a peer has left.
        if !has_left || self.is_alone() || self.config.name.is_some() {
            self.peers.report_death(peer);
            self.rouse();
        }
    }

    fn tell_end(&self, peer: PeerId, why: Fault, loss: Option<Loss>) {
        let peer = peer.index();
        match loss.map(DisconnectReason::from) {
            // Endpoints log that themselves.
            Some(reason) if self.config.name.is_none() => {
                tell!(WARN, "peer {peer}: {reason}{}", reason.advice());
            }
            _ => tell!(INFO, "the connection with peer {peer} has ended: {why}"),
        }
    }

    /// Ends a connection and forgets it. Its keys become invalid, pending operations fault, and its
    /// memory and descriptors are freed. Its handles fault from then on, and the peer's number is
    /// free for a new connection. A direct peer that is alive is not fenced: revoke its
    /// capabilities first where that matters. Does not block.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected.
    // spec: LIFE-19
    pub fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        let connection = self.connection(peer)?;
        if connection.ended.is_none() {
            // A peer that does not get the packet sees the socket close.
            let _ = connection.control().send(PacketKind::Bye, [0; 7], &[]);
        }
        self.end_connection(peer, Fault::PeerDead);
        self.peers.forget_death(peer);
        self.forget(peer)
    }

    /// Frees the resources of a connection that has ended.
    // spec: LIFE-14
    pub(crate) fn forget(&mut self, peer: PeerId) -> Result<(), Fault> {
        let connection = self.peers.remove(peer).ok_or(Fault::ForeignHandle)?;
        connection.device.forget();
        if connection.mode() == Mode::Mediated {
            self.notes.forget(peer);
        }
        let held: Vec<_> = self.responder().table.live(|cover| cover.holder == peer).collect();
        for (key, _) in held {
            self.end_key(key)?;
        }
        debug_assert!(
            self.responder().table.live(|cover| cover.holder == peer).next().is_none(),
            "who is forgotten holds no key"
        );
        Ok(())
    }

    /// Checks the invariants between the steps of connections.
    pub(crate) fn check(&self) {
        debug_assert!(self.mediated <= self.served(), "only what is there is served");
        debug_assert!(!self.remote.is_in_use() || self.remote.is_open(), "what is in use is open");
    }

    /// The number of mediated connections; the wire counts as one.
    fn served(&self) -> usize {
        let living = self.peers.living();
        let mediated = living.filter(|connection| connection.mode() == Mode::Mediated).count();
        mediated + usize::from(self.remote.is_open())
    }

    /// Whether every other port has gone.
    fn is_alone(&self) -> bool {
        !self.peers.living().any(|connection| connection.peer != self.id)
    }
}

impl Port {
    /// Closes the port in an orderly way: blocks until all operations posted to living peers have
    /// completed. Dropping a port does not wait.
    ///
    /// # Errors
    /// The first fault of a pending operation.
    // spec: LIFE-16
    pub fn leave(mut self) -> Result<(), Fault> {
        let peers: Vec<_> = self.peers().filter(|peer| self.is_alive(*peer)).collect();
        peers.into_iter().map(|peer| self.flush(peer)).fold(Ok(()), Result::and)
    }
}

impl Port {
    /// Whether the program has closed none of the port's descriptors, as far as that can be known.
    fn has_its_descriptors(&self) -> bool {
        let channels = self.peers.living().all(|connection| connection.control().is_there());
        !self.sleep.is_lost() && self.sleep.is_there() && self.page.is_there() && channels
    }
}

// spec: LIFE-17, LIFE-40
impl Drop for Port {
    fn drop(&mut self) {
        // A child has no such threads, and must not affect the parent's connections.
        if self.sleep.is_inherited() {
            return;
        }
        let are_closed = !self.has_its_descriptors();
        if are_closed {
            descriptor::note_closing();
        }
        self.engine.stop();
        self.remote.close();
        if are_closed {
            // Nothing is sent: the numbers of the descriptors may now be the program's.
            return tell!(WARN, "{}", SetupError::Os { call: "close", errno: Errno::BADF });
        }
        for connection in self.peers.living() {
            // A peer that does not get the packet sees the socket close.
            let _ = connection.control().send(PacketKind::Bye, [0; 7], &[]);
        }
        self.leave_wire();
    }
}

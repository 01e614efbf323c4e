//! A port: one process's interface, with its connections, mailbox and notification queue.
pub(crate) mod attach;
pub(crate) mod batch;
mod calls;
pub(crate) mod capability;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod counters;
pub(crate) mod direct;
mod landing;
pub(crate) mod local;
pub(crate) mod lock;
pub(crate) mod mediated;
mod mesh;
pub(crate) mod message;
pub(crate) mod notification;
pub(crate) mod ops;
pub(crate) mod options;
pub(crate) mod posted;
pub(crate) mod progress;
pub(crate) mod queue;
mod raw;
mod report;
pub(crate) mod setup;
pub(crate) mod wait;

use self::config::Config;
use self::connection::{Connection, Executor, identity};
use self::counters::Counters;
use self::notification::raised_at_target;
use self::progress::EngineThread;
use self::setup::Listener;
use self::wait::Sleep;
use crate::depot::memo::Memo;
use crate::error::{EndReason, Fault, SetupError};
use crate::link::{Keeper, Wire};
use crate::log::tell;
use crate::mem::bell::own_bell;
use crate::mem::page::OwnPage;
use crate::net::alarm::Alarm;
use crate::peer::loss::Loss;
use crate::peer::packet::PacketKind;
use crate::settings::choice::Mode;
use crate::sync::AtomicBool;
use crate::sys::descriptor;
use crate::target::{Responder, lock};
use ayre_proto::limits::{NOTIFICATIONS_MAX, RECORD_MAX};
use ayre_proto::notify::Packed;
use ayre_proto::units::PeerId;
use rustix::fd::{AsFd, OwnedFd};
use std::cell::Cell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// One process's interface to its peers.
///
/// A port belongs to one thread at a time (it is `Send`, not `Sync`); a program with several
/// communicating threads opens a port for each. No call blocks unless it says so.
// spec: LIFE-1, NOTI-8
#[derive(Debug)]
pub struct Port {
    pub(crate) id: PeerId,
    /// Tells this port's handles from another's.
    pub(crate) identity: u64,
    pub(crate) config: Config,
    pub(crate) page: Arc<OwnPage>,
    /// By peer number.
    pub(crate) connections: Vec<Option<Connection>>,
    /// Whose messages are looked at.
    pub(crate) mail_rota: Rota,
    /// Whose notifications are looked at.
    pub(crate) notes_rota: Rota,
    /// Whose commands this thread serves.
    pub(crate) commands_rota: Rota,
    /// Whose answers are taken in; something is expected of the peer that was posted to last, too.
    pub(crate) answers_rota: Rota,
    pub(crate) notifications: VecDeque<Packed>,
    /// By number, the addresses of the regions.
    pub(crate) regions: Vec<Range<usize>>,
    /// Notifications that operations under way may still raise here.
    pub(crate) owed: usize,
    /// A batch is being posted.
    pub(crate) releases: bool,
    pub(crate) responder: Arc<Mutex<Responder>>,
    /// Whether the responder has anything to tell, so that looking takes no lock.
    pub(crate) any_news: Arc<AtomicBool>,
    /// On the way between a lane and a region, to whose bytes no reference may point.
    pub(crate) staging: Box<[u8; RECORD_MAX]>,
    /// Mediated connections that this thread serves and drains; the wire is counted as one.
    pub(crate) mediated: usize,
    /// What polls look at the wire for: connections and calls of endpoints; of another port, that
    /// it is open to other hosts.
    pub(crate) linked: usize,
    /// Yields that are left out, as somebody computes on this processor.
    pub(crate) yields_in_vain: u32,
    /// Connections with other hosts, once the port is open to them; shared with other threads.
    pub(crate) wire: Arc<OnceLock<Mutex<Wire>>>,
    /// Pumps the wire while the program does not.
    pub(crate) keeper: Option<Keeper>,
    /// Wakes an endpoint that rests.
    pub(crate) alarm: Option<Alarm>,
    /// Whether any of these connections has something to take on its control channel.
    pub(crate) any_mail: Arc<AtomicBool>,
    /// Whether the wire has brought anything since this was cleared.
    pub(crate) has_come: bool,
    pub(crate) engine: Option<EngineThread>,
    pub(crate) sleep: Sleep,
    pub(crate) engine_sleep: Arc<Sleep>,
    /// What our own engine's thread rings.
    pub(crate) own_bell: Arc<OwnedFd>,
    /// What wakes that.
    pub(crate) engine_bell: Arc<OwnedFd>,
    pub(crate) listener: Option<Listener>,
    /// Callers at the listener that have not said Hello yet.
    pub(crate) callers: Vec<OwnedFd>,
    /// Keeps the loopback connection's control channel open.
    pub(crate) loopback_control: Option<OwnedFd>,
    /// Ranks of the job, this one included; 1 outside of jobs.
    pub(crate) size: usize,
    pub(crate) barriers: u64,
    /// Peers whose death no wait has reported yet; each number stands here once at most.
    pub(crate) died: Vec<PeerId>,
    /// Connections that have begun or ended, however.
    pub(crate) peer_changes: u64,
    pub(crate) polls: u32,
    /// The connection whose answers a blocking call takes in itself.
    pub(crate) awaited: Option<usize>,
    /// Why that connection ends, once the call has taken what was answered before.
    pub(crate) awaited_ends: Option<Fault>,
    pub(crate) counters: Counters,
    /// Deposit instructions that were taken apart lately.
    pub(crate) memo: Memo,
    pub(crate) _not_sync: PhantomData<Cell<()>>,
}

/// Whose lanes a call looks at: the connection where something came last, and each other in turn.
/// So a poll costs the same whatever the number of peers.
// spec: PROG-4
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rota {
    pub(crate) hot: usize,
    next: usize,
    streak: u32,
}

/// Records in a row from one peer before another one is looked at first.
const STREAK_MAX: u32 = 64;

/// Whether the hot peer stays hot. Where a streak ends, progress is due too: polls that always
/// find something make none otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streak {
    Goes,
    Ends,
}

impl Rota {
    /// Something came from the hot one of `count`. One that never pauses does not stay hot, so that
    /// it cannot keep others from being heard.
    // spec: MSG-9, QUE-7
    #[inline(always)]
    pub(crate) fn took(&mut self, count: usize) -> Streak {
        self.streak += 1;
        if self.streak < STREAK_MAX {
            return Streak::Goes;
        }
        self.streak = 0;
        self.hot = if self.hot + 1 >= count { 0 } else { self.hot + 1 };
        Streak::Ends
    }

    /// The next one in turn of `count`.
    #[inline(always)]
    pub(crate) fn turn(&mut self, count: usize) -> usize {
        let turn = self.next;
        self.next = if turn + 1 >= count { 0 } else { turn + 1 };
        turn
    }
}

impl Port {
    /// Opens a port without peers.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses memory files, eventfds or epoll;
    /// [`SetupError::Environment`] where a variable is wrong ([`crate::settings`]).
    // spec: INJ-4, LIFE-30
    pub fn open(mut config: Config) -> Result<Self, SetupError> {
        crate::settings::check()?;
        if crate::settings::raises_limit()? {
            descriptor::raise_limit();
        }
        crate::mem::fence::expedited();
        if config.tuning.is_none() {
            config = config.tuning(crate::tuning::found()?.tuning);
        }
        let (sleep, port_bell) = (Sleep::new()?, Arc::new(own_bell()?));
        sleep.watch_own(port_bell.as_fd())?;
        let (engine_sleep, engine_bell) = (Arc::new(Sleep::new()?), Arc::new(own_bell()?));
        engine_sleep.watch_own(engine_bell.as_fd())?;
        let any_news = Arc::new(AtomicBool::new(false));
        Ok(Self {
            id: PeerId(config.rank),
            identity: identity(),
            config,
            page: Arc::new(OwnPage::new()?),
            connections: Vec::new(),
            mail_rota: Rota::default(),
            notes_rota: Rota::default(),
            commands_rota: Rota::default(),
            answers_rota: Rota::default(),
            notifications: VecDeque::with_capacity(NOTIFICATIONS_MAX),
            regions: Vec::new(),
            owed: 0,
            releases: false,
            responder: Arc::new(Mutex::new(Responder::new(any_news.clone()))),
            any_news,
            staging: Box::new([0; RECORD_MAX]),
            mediated: 0,
            linked: 0,
            yields_in_vain: 0,
            wire: Arc::default(),
            keeper: None,
            alarm: None,
            any_mail: Arc::new(AtomicBool::new(false)),
            has_come: false,
            engine: None,
            sleep,
            engine_sleep,
            own_bell: port_bell,
            engine_bell,
            listener: None,
            callers: Vec::new(),
            loopback_control: None,
            size: 1,
            barriers: 0,
            died: Vec::new(),
            peer_changes: 0,
            polls: 0,
            awaited: None,
            awaited_ends: None,
            counters: Counters::default(),
            memo: Memo::default(),
            _not_sync: PhantomData,
        })
    }

    /// The number by which peers know this port; in a job, the rank.
    pub fn rank(&self) -> usize {
        self.id.index()
    }

    /// Ports of the job, this one included; 1 for a port outside of a job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The peer of a number, if it is connected.
    pub fn peer(&self, number: usize) -> Option<PeerId> {
        self.connections.get(number)?.as_ref().map(|connection| connection.peer)
    }

    /// All connected peers in ascending order, this port itself among them where it has a loopback.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.connections.iter().flatten().map(|connection| connection.peer)
    }

    /// How operations on a peer's memory are performed.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected.
    pub fn mode(&self, peer: PeerId) -> Result<Mode, Fault> {
        self.connection(peer).map(Connection::mode)
    }

    /// Whether the peer is still there, as far as is known; `progress` finds out.
    pub fn is_alive(&self, peer: PeerId) -> bool {
        self.connection(peer).is_ok_and(|connection| connection.ended.is_none())
    }

    /// Who is expected to send next.
    #[inline]
    pub(crate) fn look_first_at(&mut self, peer: PeerId) {
        self.mail_rota.hot = peer.index();
    }

    #[inline(always)]
    pub(crate) fn connection(&self, peer: PeerId) -> Result<&Connection, Fault> {
        self.connections.get(peer.index()).and_then(Option::as_ref).ok_or(Fault::ForeignHandle)
    }

    #[inline(always)]
    pub(crate) fn connection_mut(&mut self, peer: PeerId) -> Result<&mut Connection, Fault> {
        self.connections.get_mut(peer.index()).and_then(Option::as_mut).ok_or(Fault::ForeignHandle)
    }

    pub(crate) fn responder(&self) -> MutexGuard<'_, Responder> {
        lock(&self.responder)
    }

    /// Ends a connection: nothing goes out any more, what is under way faults; what has already
    /// arrived can still be received.
    // spec: LIFE-11, LIFE-12, LIFE-18
    pub(crate) fn end_connection(&mut self, peer: PeerId, why: Fault) {
        let Ok(connection) = self.connection_mut(peer) else { return };
        if connection.ended.is_some() {
            return;
        }
        connection.ended = Some(why);
        let loss = connection.control().loss();
        let is_mediated = matches!(connection.executor, Executor::Mediated(_));
        self.tell_end(peer, why, loss);
        self.peer_changes += 1;
        if is_mediated {
            self.mediated -= 1;
            // What the peer had posted before it went is still carried out.
            let mut responder = self.responder();
            responder.serve_out(peer);
            responder.remove(peer);
            drop(responder);
            self.hear_news();
            self.abandon(peer, why);
        }
        let Some(connection) = self.connections[peer.index()].as_ref() else { return };
        let has_left = connection.left;
        match connection.control().socket() {
            Some(_) => {
                self.sleep.forget_control(&connection.link);
                self.engine_sleep.forget_channel(&connection.link);
            }
            None => self.release_link(peer),
        }
        // Endpoints have no other way to hear that one has left.
        if !has_left || self.is_alone() || self.config.name.is_some() {
            self.died.push(peer);
        }
    }

    fn tell_end(&self, peer: PeerId, why: Fault, loss: Option<Loss>) {
        let peer = peer.index();
        match loss.map(EndReason::from) {
            // Endpoints tell that themselves.
            Some(reason) if self.config.name.is_none() => {
                tell!(WARN, "peer {peer}: {reason}{}", reason.advice());
            }
            _ => tell!(INFO, "the connection with peer {peer} has ended: {why}"),
        }
    }

    /// Ends a connection and forgets it: its keys end, what is under way faults, and the
    /// connection's memory and descriptors go back. Handles from it fault from here on; the peer's
    /// number is free for a new connection. No fence for a direct peer that is alive: what it
    /// holds is to be revoked first where that matters.
    ///
    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected.
    // spec: LIFE-19
    pub fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        let connection = self.connection(peer)?;
        if connection.ended.is_none() {
            // A peer that cannot be told sees the socket close all the same.
            let _ = connection.control().send(PacketKind::Bye, [0; 7], &[]);
        }
        self.end_connection(peer, Fault::PeerDead);
        self.died.retain(|died| *died != peer);
        self.forget(peer)
    }

    /// Gives back what a connection holds that has ended.
    // spec: LIFE-14
    pub(crate) fn forget(&mut self, peer: PeerId) -> Result<(), Fault> {
        let slot = self.connections.get_mut(peer.index()).ok_or(Fault::ForeignHandle)?;
        let connection = slot.take().ok_or(Fault::ForeignHandle)?;
        if connection.is_carried() {
            self.forget_link(peer);
        }
        if connection.mode() == Mode::Mediated {
            // They would credit a later connection of this number.
            self.notifications
                .retain(|note| note.source() != peer || !raised_at_target(&note.unpack()));
        }
        let held: Vec<_> = self.responder().table.live(|cover| cover.holder == peer).collect();
        for (key, _) in held {
            self.end_key(key)?;
        }
        Ok(())
    }

    /// Whether every other port has gone.
    fn is_alone(&self) -> bool {
        !self.connections.iter().flatten().any(|c| c.ended.is_none() && c.peer != self.id)
    }
}

impl Port {
    /// Leaves in order: waits until everything posted to peers that are alive has ended, then
    /// closes. Dropping a port does not wait.
    ///
    /// # Errors
    /// The first fault of what was still under way.
    // spec: LIFE-16
    pub fn leave(mut self) -> Result<(), Fault> {
        let peers: Vec<_> = self.peers().filter(|peer| self.is_alive(*peer)).collect();
        peers.into_iter().map(|peer| self.flush(peer)).fold(Ok(()), Result::and)
    }
}

// spec: LIFE-17
impl Drop for Port {
    fn drop(&mut self) {
        // A child has neither the threads, nor a say in what becomes of the connections.
        if self.sleep.is_inherited() {
            return;
        }
        if let Some(engine) = self.engine.take() {
            engine.stop();
        }
        if let Some(keeper) = self.keeper.take() {
            keeper.stop();
        }
        for connection in self.connections.iter().flatten().filter(|c| c.ended.is_none()) {
            // A peer that cannot be told sees the socket close all the same.
            let _ = connection.control().send(PacketKind::Bye, [0; 7], &[]);
        }
        self.leave_wire();
    }
}

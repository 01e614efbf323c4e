//! Progress: serving peers' commands, taking in answers, noticing who has died.
use super::connection::Connection;
use super::wait::Sleep;
use crate::error::{Fault, SetupError};
use crate::link::{self, Wire};
use crate::mem::bell::ring_own;
use crate::mem::fence;
use crate::mem::page::{OwnPage, Sleeper};
use crate::peer::control::OFFERS_MAX;
use crate::peer::packet::{Arrival, PacketKind};
use crate::port::Port;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::thread;
use crate::target::{Responder, lock};
use ayre_proto::units::PeerId;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// Polls between two looks at the control channels, which take a system call.
// spec: LIFE-10
const POLLS_PER_CONTROL: u32 = 1 << 16;
/// Packets of one peer that are taken in at a time: all that can wait.
const PACKETS_PER_LOOK: usize = 512;
/// Empty rounds of the engine's thread before it sleeps.
const ENGINE_SPINS: u32 = 2000;
const WIRED_SPINS: u32 = 8;

impl Port {
    /// Serves what all peers have asked for, takes in all answers, and notices deaths. Never
    /// blocks. Other calls of the port make progress on their own, with some of the peers each
    /// time; a program that computes for long and has mediated peers calls this now and then, or
    /// starts an engine thread.
    // spec: PROG-3
    pub fn progress(&mut self) {
        self.progress_all();
        self.service_control();
    }

    /// The share of one poll: progress with the peers where something came last and with one other
    /// in turn. Takes no system call.
    // spec: PROG-4
    #[inline(always)]
    pub(crate) fn progress_lanes(&mut self) {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_CONTROL) {
            self.service_control();
        }
        if self.mediated != 0 {
            self.progress_mediated();
        }
    }

    /// The same, but with this peer first: something is waited for that it has posted or answered.
    pub(crate) fn progress_with(&mut self, peer: PeerId) {
        self.commands_rota.hot = peer.index();
        self.answers_rota.hot = peer.index();
        self.progress_lanes();
    }

    #[inline(never)]
    fn progress_mediated(&mut self) {
        if self.engine.is_none() {
            self.pump();
            self.serve_in_turn();
        } else {
            self.wake_for_room();
        }
        // Relaxed: the lock orders what the flag stands for.
        if self.any_news.load(Ordering::Relaxed) {
            self.hear_news();
        }
        let rota = &mut self.answers_rota;
        let (hot, turn) = (rota.hot, rota.turn(self.connections.len()));
        self.take_answers_of(hot);
        if turn != hot && self.take_answers_of(turn) {
            self.answers_rota.hot = turn;
        }
    }

    /// Peers of other hosts hear by the engine thread of lines that were given back, and some wait
    /// for them: nobody else wakes it for that.
    // spec: WIRE-3
    fn wake_for_room(&mut self) {
        let turn = self.commands_rota.turn(self.connections.len());
        for index in [self.mail_rota.hot, turn] {
            if let Some(Some(connection)) = self.connections.get_mut(index)
                && connection.messages_in.has_given_back()
                && connection.is_carried()
            {
                connection.link.kick(Sleeper::Port);
            }
        }
    }

    fn serve_in_turn(&mut self) {
        let rota = &mut self.commands_rota;
        let (hot, turn) = (rota.hot, rota.turn(self.connections.len()));
        let mut responder = lock(&self.responder);
        let mut served = responder.serve(hot);
        if turn != hot && responder.serve(turn) {
            rota.hot = turn;
            served = true;
        }
        if served {
            let malformed = responder.tell(&mut self.notifications);
            drop(responder);
            self.end_malformed(malformed);
        }
    }

    /// Progress with every peer, for whoever must not miss anything: it is about to sleep, or the
    /// program asks for it. Returns whether anything was done.
    // spec: WAIT-3
    pub(crate) fn progress_all(&mut self) -> bool {
        if self.mediated == 0 {
            return false;
        }
        let mut done = self.engine.is_none() && self.pump_all();
        done |= self.engine.is_none() && self.responder().serve_all();
        // Relaxed: whoever sleeps next has fenced, and whoever rings him has before.
        done |= self.any_mail.load(Ordering::Relaxed);
        self.hear_news();
        for index in 0..self.connections.len() {
            done |= self.take_answers_of(index);
        }
        done
    }

    /// Takes in what a peer has answered, unless a call that waits for it does so itself.
    fn take_answers_of(&mut self, index: usize) -> bool {
        self.awaited != Some(index) && self.take_answers(index, None)
    }

    /// Takes over what the responder has raised and found.
    pub(crate) fn hear_news(&mut self) {
        let malformed = lock(&self.responder).tell(&mut self.notifications);
        self.end_malformed(malformed);
    }

    fn end_malformed(&mut self, malformed: Vec<PeerId>) {
        for peer in malformed {
            self.count_malformed();
            self.end_connection(peer, Fault::Malformed);
        }
    }

    /// Reads the control channels: offers of capabilities, and peers that have gone.
    // spec: LIFE-10, LIFE-15
    #[cold]
    pub(crate) fn service_control(&mut self) {
        if self.sleep.is_inherited() {
            return self.end_all(Fault::ForeignHandle);
        }
        let happened = self.sleep.look();
        if self.sleep.is_lost() {
            return self.end_all(Fault::PeerDead);
        }
        if self.engine.is_some() {
            self.engine_sleep.settle();
            if happened.rung && self.page.is_asleep(Sleeper::Engine) {
                ring_own(self.engine_bell.as_fd());
            }
        }
        // Relaxed: each mailbox has a lock of its own.
        if !self.any_mail.swap(false, Ordering::Relaxed) && !happened.mail {
            return;
        }
        for index in 0..self.connections.len() {
            let Some(connection) = self.connections[index].as_mut() else { continue };
            if connection.ended.is_some() {
                continue;
            }
            let peer = connection.peer;
            match take_packets(connection) {
                // What it has answered, only the call that waits for it can take.
                Err(why) if self.awaited == Some(index) => self.awaited_ends = Some(why),
                Err(why) => self.end_gone(peer, why),
                Ok(()) => {}
            }
        }
    }

    /// All connections are the parent's, with which this process, its child, must not meddle; or
    /// the program has closed what they are made of.
    // spec: LIFE-35, LIFE-40
    fn end_all(&mut self, why: Fault) {
        // What takes locks, which a thread of the parent's may have had, is not looked at again.
        (self.mediated, self.linked) = (0, 0);
        let living = self.connections.iter_mut().flatten().filter(|it| it.ended.is_none());
        let ended: Vec<_> = living
            .map(|connection| {
                connection.ended = Some(why);
                connection.peer
            })
            .collect();
        self.peer_changes += 1;
        ended.iter().for_each(|peer| self.abandon(*peer, why));
        self.died.extend(ended);
    }

    /// # Errors
    /// This process is a child of the one that has opened the port.
    // spec: LIFE-35
    pub(crate) fn check_process(&self) -> Result<(), SetupError> {
        if self.sleep.is_inherited() {
            let what = "the port is the parent process's; a forked child opens one of its own";
            return Err(SetupError::invalid(what));
        }
        Ok(())
    }

    /// Ends the connection of a peer that has gone, or that says what none says. What it has
    /// executed has not faulted.
    pub(crate) fn end_gone(&mut self, peer: PeerId, why: Fault) {
        self.take_answers_of(peer.index());
        if why == Fault::Malformed {
            self.count_malformed();
        }
        self.end_connection(peer, why);
    }

    /// Whether something of another host waits for [`Port::service_control`].
    pub(crate) fn has_mail(&self) -> bool {
        // Relaxed: each mailbox has a lock of its own.
        self.any_mail.load(Ordering::Relaxed)
    }

    /// Starts a thread that serves mediated peers while the program computes. It sleeps when there
    /// is nothing to do.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the thread cannot be made.
    // spec: PROG-2
    pub fn start_engine(&mut self) -> Result<(), SetupError> {
        self.check_process()?;
        if self.engine.is_some() {
            return Ok(());
        }
        let shared = EngineShared {
            responder: self.responder.clone(),
            page: self.page.clone(),
            sleep: self.engine_sleep.clone(),
            bells: [self.own_bell.clone(), self.engine_bell.clone()],
            any_mail: self.any_mail.clone(),
            wire: self.wire.clone(),
        };
        let living = self.connections.iter().flatten().filter(|it| it.ended.is_none());
        let links = living.map(|connection| &connection.link);
        let watched = links.clone().try_for_each(|link| self.engine_sleep.watch_channel(link));
        let engine = watched.and_then(|()| EngineThread::start(shared));
        if engine.is_err() {
            links.for_each(|link| self.engine_sleep.forget_channel(link));
        }
        self.engine = Some(engine?);
        self.sleep_without_nets();
        Ok(())
    }
}

fn take_packets(connection: &mut Connection) -> Result<(), Fault> {
    for _ in 0..PACKETS_PER_LOOK {
        match connection.control().receive() {
            Arrival::Nothing => break,
            Arrival::Malformed => return Err(Fault::Malformed),
            Arrival::Closed => return Err(Fault::PeerDead),
            Arrival::Restarted => return Err(Fault::PeerRestarted),
            Arrival::Packet(packet) => match packet.kind {
                PacketKind::OfferRegion | PacketKind::OfferQueue | PacketKind::OfferInlet => {
                    // Offers beyond the limit are dropped until the program accepts some.
                    if connection.offers.len() < OFFERS_MAX {
                        connection.offers.push(packet);
                    }
                }
                PacketKind::Bye if !connection.left => connection.left = true,
                _ => return Err(Fault::Malformed),
            },
        }
    }
    Ok(())
}

/// The thread that serves mediated peers.
#[derive(Debug)]
pub(crate) struct EngineThread {
    stop: Arc<AtomicBool>,
    bell: Arc<OwnedFd>,
    thread: JoinHandle<()>,
}

/// What the engine's thread works with.
struct EngineShared {
    responder: Arc<Mutex<Responder>>,
    page: Arc<OwnPage>,
    sleep: Arc<Sleep>,
    /// The port's, and this thread's.
    bells: [Arc<OwnedFd>; 2],
    any_mail: Arc<AtomicBool>,
    wire: Arc<OnceLock<Mutex<Wire>>>,
}

impl EngineThread {
    fn start(shared: EngineShared) -> Result<Self, SetupError> {
        let (stop, bell) = (Arc::new(AtomicBool::new(false)), shared.bells[1].clone());
        let seen = stop.clone();
        let thread = thread::start("ayre-engine", move || shared.run(&seen)).map_err(|_| {
            SetupError::exhausted("thread; the system starts no more (`ulimit -u`, pids.max)")
        })?;
        Ok(Self { stop, bell, thread })
    }

    pub(crate) fn stop(self) {
        // Relaxed: the bell's system call follows; nothing else hangs on the flag.
        self.stop.store(true, Ordering::Relaxed);
        ring_own(self.bell.as_fd());
        if self.thread.join().is_err() {
            debug_assert!(false, "the engine's thread panicked");
        }
    }
}

impl EngineShared {
    fn run(self, stop: &AtomicBool) {
        let mut idle = 0;
        // Relaxed: see EngineThread::stop.
        while !stop.load(Ordering::Relaxed) {
            if self.serve() {
                idle = 0;
            } else if idle < self.spins() {
                idle += 1;
                std::hint::spin_loop();
            } else {
                self.sleep_unless_work();
            }
        }
    }

    /// With a wire, each round is a system call, under a lock that the port wants too.
    fn spins(&self) -> u32 {
        if self.wire.get().is_some() { WIRED_SPINS } else { ENGINE_SPINS }
    }

    fn serve(&self) -> bool {
        let pumped = self.wire.get().is_some_and(|wire| link::lock(wire).pump_all().any());
        let served = lock(&self.responder).serve_all() || pumped;
        if served && self.page.is_asleep(Sleeper::Port) {
            self.ring_port();
        }
        served
    }

    fn ring_port(&self) {
        ring_own(self.bells[0].as_fd());
    }

    fn sleep_unless_work(&self) {
        self.announce_sleep(true);
        fence::heavy();
        if !self.serve() {
            let due = self.wire.get().and_then(|wire| {
                let mut wire = link::lock(wire);
                wire.settle();
                wire.deadline()
            });
            // What has rung may be meant for the port, which looks for mail, too, when it is rung.
            if self.sleep.sleep(due, &self.any_mail).rung {
                self.ring_port();
            }
        }
        self.announce_sleep(false);
    }

    fn announce_sleep(&self, asleep: bool) {
        self.page.set_asleep(Sleeper::Engine, asleep);
        if let Some(wire) = self.wire.get() {
            link::lock(wire).announce_sleep(asleep);
        }
    }
}

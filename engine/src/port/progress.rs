//! Progress: serves peers' commands, takes in answers, and detects deaths.
use super::connection::Connection;
use crate::error::{Fault, SetupError};
use crate::mem::page::Sleeper;
use crate::peer::control::OFFERS_MAX;
use crate::peer::packet::{Arrival, PacketKind};
use crate::port::Port;
use ayre_proto::units::PeerId;

/// The number of polls between two looks at the control channels, which take a system call.
// spec: LIFE-10
const POLLS_PER_CONTROL: u32 = 1 << 16;
const _: () = assert!(POLLS_PER_CONTROL.is_power_of_two(), "the count of polls may go round");
/// The most packets of one peer that are taken in at a time: all that a channel can hold.
const PACKETS_PER_LOOK: usize = 512;
const _: () = assert!(PACKETS_PER_LOOK > OFFERS_MAX, "all that may wait is taken at one look");

impl Port {
    /// Serves the commands of all peers, takes in all answers, and detects deaths. Never blocks.
    /// Other calls of the port also make progress, with some of the peers each time. A program that
    /// computes for long and has mediated peers calls this now and then, or starts an engine
    /// thread.
    // spec: PROG-3
    pub fn progress(&mut self) {
        self.progress_all();
        self.service_control();
    }

    /// The progress of one poll: with the peers where something came last, and with one other in
    /// turn. Takes no system call.
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

    /// The progress of one poll, with this peer first: the caller waits for something that it posts
    /// or answers.
    pub(crate) fn progress_with(&mut self, peer: PeerId) {
        self.turns.expect_progress(peer);
        self.progress_lanes();
    }

    #[inline(never)]
    fn progress_mediated(&mut self) {
        if !self.engine.is_running() {
            self.pump();
            self.serve_in_turn();
        } else {
            self.wake_for_room();
        }
        if self.exposed.has_news() {
            self.hear_news();
        }
        let rota = &mut self.turns.answers;
        let (hot, turn) = (rota.hot(), rota.turn(self.peers.count()));
        self.take_answers_of(hot);
        if turn != hot && self.take_answers_of(turn) {
            self.turns.answers.expect(turn);
        }
    }

    /// Wakes the engine thread to tell peers of other hosts of lines that were given back. Some may
    /// wait for them, and nothing else wakes the thread for that.
    // spec: WIRE-3
    fn wake_for_room(&mut self) {
        let turn = self.turns.commands.turn(self.peers.count());
        for index in [self.turns.mail.hot(), turn] {
            if let Some(connection) = self.peers.at_mut(index)
                && connection.messages_in.has_given_back()
                && connection.is_driven_here()
            {
                connection.link.kick(Sleeper::Port);
            }
        }
    }

    fn serve_in_turn(&mut self) {
        let rota = &mut self.turns.commands;
        let (hot, turn) = (rota.hot(), rota.turn(self.peers.count()));
        let mut responder = self.exposed.responder();
        let mut served = responder.serve(hot);
        if turn != hot && responder.serve(turn) {
            rota.expect(turn);
            served = true;
        }
        if served {
            let malformed = responder.tell(&mut self.notes);
            drop(responder);
            self.end_malformed(malformed);
        }
    }

    /// Progress with every peer, before a sleep or when the program asks for it. Returns whether
    /// anything was done.
    // spec: WAIT-3
    pub(crate) fn progress_all(&mut self) -> bool {
        if self.mediated == 0 {
            return false;
        }
        let mut done = !self.engine.is_running() && self.pump_all();
        done |= !self.engine.is_running() && self.responder().serve_all();
        // The sleeper has executed a fence, and so has a peer that rings it.
        done |= self.remote.has_mail();
        self.hear_news();
        for index in 0..self.peers.count() {
            done |= self.take_answers_of(index);
        }
        done
    }

    /// Takes in the answers of a peer, unless a blocking call does so itself.
    fn take_answers_of(&mut self, index: usize) -> bool {
        self.awaited != Some(index) && self.take_answers(index, None)
    }

    /// Takes over the notifications and errors of the responder.
    pub(crate) fn hear_news(&mut self) {
        let malformed = self.exposed.responder().tell(&mut self.notes);
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
        let is_put_off = self.awaited_ends.is_some();
        debug_assert!(self.awaited.is_some() || !is_put_off, "only what a call awaits ends later");
        let happened = self.sleep.look();
        if happened.any {
            self.rouse();
        }
        if self.sleep.is_lost() {
            return self.end_all(Fault::PeerDead);
        }
        if self.engine.is_running() {
            self.engine.sleep().settle();
            if happened.rung && self.page.is_asleep(Sleeper::Engine) {
                self.engine.sleep().ring();
            }
        }
        if !self.remote.take_mail() && !happened.mail {
            return;
        }
        for index in 0..self.peers.count() {
            let Some(connection) = self.peers.at_mut(index) else { continue };
            if connection.ended.is_some() {
                continue;
            }
            let peer = connection.peer;
            match take_packets(connection) {
                // Only the call that waits for its answers can take them.
                Err(why) if self.awaited == Some(index) => self.awaited_ends = Some(why),
                Err(why) => self.end_gone(peer, why),
                Ok(()) => {}
            }
        }
    }

    /// Ends all connections. They are the parent's, with which this child process must not
    /// interfere, or the program has closed their descriptors.
    // spec: LIFE-35, LIFE-40
    fn end_all(&mut self, why: Fault) {
        // Locks that a thread of the parent may have held are not taken again.
        self.mediated = 0;
        self.remote.end_uses();
        let living: Vec<_> = self.peers.living().map(|connection| connection.peer).collect();
        for peer in living {
            self.peers.end(peer, why);
            self.abandon(peer, why);
            self.peers.report_death(peer);
        }
        debug_assert_eq!(self.peers.living().count(), 0, "nobody is left");
    }

    /// # Errors
    /// [`SetupError`] where this process is a child of the one that has opened the port.
    // spec: LIFE-35
    pub(crate) fn check_process(&self) -> Result<(), SetupError> {
        if self.sleep.is_inherited() {
            let what = "the port is the parent process's; a forked child opens one of its own";
            return Err(SetupError::invalid(what));
        }
        Ok(())
    }

    /// Ends the connection of a peer that has gone, or has sent something malformed. Operations
    /// that it has executed have not faulted.
    pub(crate) fn end_gone(&mut self, peer: PeerId, why: Fault) {
        self.take_answers_of(peer.index());
        if why == Fault::Malformed {
            self.count_malformed();
        }
        self.end_connection(peer, why);
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

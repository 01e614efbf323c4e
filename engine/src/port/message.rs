//! Short messages: one lane for each sender; all lanes together are the port's mailbox.
use super::connection::Connection;
use crate::error::{Busy, Fault, PostError, ReceiveError};
use crate::mem::lane::Probe;
use crate::mem::page::Sleeper;
use crate::net::clock::Deadline;
use crate::port::Port;
use crate::port::turns::Streak;
use crate::settings::choice::Mode;
use crate::sync::Ordering;
use arrayvec::ArrayVec;
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::node::message;
use ayre_proto::units::PeerId;
use std::io::IoSlice;
use std::time::Duration;

/// The properties of a received message; its bytes are in the receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender.
    pub source: PeerId,
    /// The tag that the sender has given it.
    pub tag: u32,
    /// The length in bytes.
    pub len: usize,
}

impl Port {
    /// Sends a short message of 1 to [`EAGER_MAX`] bytes to a peer's mailbox. Never blocks; the
    /// buffer may be reused when the call returns. Up to 56 bytes travel in one cache line.
    ///
    /// The receiver sees the data of this port's earlier puts before the message.
    ///
    /// # Errors
    /// [`Busy::MessageLaneFull`] without effect, where this port's messages fill its lane at the
    /// peer (other senders have lanes of their own). [`Fault::TooLong`]; [`Fault::Malformed`] for
    /// an empty message; [`Fault::PeerDead`], [`Fault::ForeignHandle`].
    // spec: MSG-2, MSG-4
    #[inline(always)]
    pub fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        if self.send_line(to, tag, [], data) { Ok(()) } else { self.send_any(to, tag, data) }
    }

    /// Sends several pieces as one message, in their order. The rest is as for [`Port::send`].
    ///
    /// # Errors
    /// As [`Port::send`].
    // spec: MSG-2
    pub fn send_vectored(
        &mut self,
        to: PeerId,
        tag: u32,
        pieces: &[IoSlice<'_>],
    ) -> Result<(), PostError> {
        let mut message = ArrayVec::<u8, EAGER_MAX>::new();
        for piece in pieces {
            message.try_extend_from_slice(piece).map_err(|_| Fault::TooLong)?;
        }
        self.send(to, tag, &message)
    }

    /// Sends a message of `head` words followed by `data`, if it fits one line, the line is free
    /// and the connection is direct: the most frequent case. [`Port::send`] does this for all
    /// messages.
    // spec: MSG-2, MSG-4
    #[inline(always)]
    pub(crate) fn send_line<const H: usize>(
        &mut self,
        to: PeerId,
        tag: u32,
        head: [u64; H],
        data: &[u8],
    ) -> bool {
        let Some(connection) = self.peers.at_mut(to.index()) else { return false };
        let has_gone = connection.is_open_direct()
            && connection.messages_out.push_short((Kind::Message, tag), head, data);
        if has_gone {
            connection.link.kick(Sleeper::Port);
        }
        has_gone
    }

    /// Sends a message of `head` words followed by `data`, of any valid length, if the connection
    /// is direct and its lane has room.
    // spec: MSG-1, MSG-2
    #[inline]
    pub(crate) fn send_lines<const H: usize>(
        &mut self,
        to: PeerId,
        tag: u32,
        head: [u64; H],
        data: &[u8],
    ) -> bool {
        debug_assert!(8 * H + data.len() <= EAGER_MAX, "it is one message");
        let Some(connection) = self.peers.at_mut(to.index()) else { return false };
        let (is_open, lane) = (connection.is_open_direct(), &mut connection.messages_out);
        let has_gone = is_open && lane.push((Kind::Message, tag), head, data).is_ok();
        if has_gone {
            connection.link.kick(Sleeper::Port);
        }
        has_gone
    }

    /// Sends messages of any length to any peer.
    // spec: MSG-1, ORD-3
    #[inline(never)]
    fn send_any(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        message::check(data.len())?;
        let connection = self.connection_mut(to)?;
        if let Some(why) = connection.ended {
            return Err(why.into());
        }
        let lane = &mut connection.messages_out;
        let pushed = match connection.executor.commands_before() {
            None => lane.push((Kind::Message, tag), [], data),
            Some(commands) => lane.push((Kind::GatedMessage, tag), [commands], data),
        };
        if pushed.is_err() {
            self.make_room(to);
            return Err(self.busy(Busy::MessageLaneFull));
        }
        connection.published();
        Ok(())
    }

    /// Sends a short message. Blocks while the lane has no room, and makes progress meanwhile.
    /// Yields the processor but does not sleep, because a receiver without room is at work.
    ///
    /// # Errors
    /// As [`Port::send`], without [`Busy`].
    pub fn send_wait(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Fault> {
        let mut rounds = 0;
        loop {
            match self.send(to, tag, data) {
                Ok(()) => return Ok(()),
                Err(PostError::Fault(fault)) => return Err(fault),
                Err(PostError::Busy(_)) => self.pause(&mut rounds),
            }
            if self.is_interrupted() {
                return Err(Fault::Interrupted);
            }
        }
    }

    /// Receives the next message, if there is one, into the front of `into`. Never blocks.
    ///
    /// Messages of one sender come in the order in which they were sent.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`]: the message stays, and a call with a longer buffer gets it.
    // spec: MSG-3, NOTI-13
    #[inline(always)]
    pub fn try_recv(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        match self.try_recv_hot(into) {
            Probe::Taken(message) => Ok(Some(message)),
            probe => self.try_recv_rest(&probe, into),
        }
    }

    /// Continues a poll that has found no short message of the last sender.
    #[inline(always)]
    pub(crate) fn try_recv_rest(
        &mut self,
        probe: &Probe<Message>,
        into: &mut [u8],
    ) -> Result<Option<Message>, ReceiveError> {
        match probe {
            Probe::Other => self.try_recv_long(into),
            _ => self.try_recv_others(into),
        }
    }

    /// Takes a short message of the last sender, without progress.
    #[inline(always)]
    pub(crate) fn try_recv_hot(&mut self, into: &mut [u8]) -> Probe<Message> {
        self.try_recv_short(self.turns.mail.hot(), into)
    }

    /// Takes a short message of the peer of this number, without progress.
    #[inline(always)]
    pub(crate) fn try_recv_short(&mut self, from: usize, into: &mut [u8]) -> Probe<Message> {
        let Some(connection) = self.peers.at_mut(from) else { return Probe::Nothing };
        match connection.messages_in.take_short(Kind::Message, into) {
            Probe::Taken((len, tag)) => {
                let source = connection.peer;
                self.took_mail();
                Probe::Taken(Message { source, tag, len })
            }
            Probe::Nothing => Probe::Nothing,
            Probe::Other => Probe::Other,
        }
    }

    /// Takes the next message of the peer of this number, of any length. The buffer must have room
    /// for any message. Makes no progress unless the message waits for commands.
    #[inline(never)]
    pub(crate) fn try_recv_record(
        &mut self,
        from: usize,
        into: &mut [u8; EAGER_MAX],
    ) -> Option<Message> {
        let found = self.receive_from(from, into).ok().flatten();
        if found.is_some() {
            self.took_mail();
        }
        found
    }

    #[inline(always)]
    fn took_mail(&mut self) {
        if self.turns.mail.took(self.peers.count()) == Streak::Ends {
            self.progress_lanes();
        }
    }

    /// Continues a poll that has found a message of the last sender which takes more steps than a
    /// short one.
    #[inline(never)]
    fn try_recv_long(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        match self.receive_from(self.turns.mail.hot(), into) {
            Ok(None) => self.try_recv_others(into),
            found => {
                self.took_mail();
                found
            }
        }
    }

    /// The second half of a poll: the peer whose turn it is, and progress.
    #[inline(never)]
    fn try_recv_others(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        let turn = self.turns.mail.turn(self.peers.count());
        // A second look at a line while a peer is about to write it would delay that peer.
        let again = turn == self.turns.mail.hot();
        let found = if again { Ok(None) } else { self.receive_from(turn, into) };
        match found {
            Ok(None) => self.progress_lanes(),
            _ => self.turns.mail.expect(turn),
        }
        found
    }

    /// Receives the next message. Blocks for at most `timeout`; sleeps in a long wait.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`]; [`ReceiveError::TimedOut`]; [`ReceiveError::PeerDied`], once for
    /// each peer that has died, so that a wait for a dead sender ends.
    // spec: MSG-9
    pub fn recv(
        &mut self,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Message, ReceiveError> {
        let (turns, deadline) = (self.peers.count(), self.clock.deadline(timeout));
        self.wait_or_died(deadline, turns, |port| port.try_recv(into).transpose())
    }

    /// Receives the next message, and also ends as if its time were over when `is_new` returns
    /// true.
    pub(crate) fn recv_or_news(
        &mut self,
        into: &mut [u8],
        deadline: Option<Deadline>,
        has_news: impl Fn(&Self) -> bool,
    ) -> Result<Message, ReceiveError> {
        let turns = self.peers.count();
        self.wait_or_died(deadline, turns, |port| match port.try_recv(into) {
            Ok(None) if has_news(port) => Some(Err(ReceiveError::TimedOut)),
            found => found.transpose(),
        })
    }

    /// Wakes a sleeping peer, after something was published outside of lanes.
    #[inline(always)]
    pub(crate) fn kick(&self, peer: PeerId) {
        if let Ok(connection) = self.connection(peer) {
            connection.link.kick(Sleeper::Port);
        }
    }

    /// Waits until `attempt` returns something, a peer dies, or the time is over. A number of
    /// `turns` calls of `attempt` looks at everything.
    // spec: WAIT-1, LIFE-11
    pub(crate) fn wait_or_died<T>(
        &mut self,
        deadline: Option<Deadline>,
        turns: usize,
        mut attempt: impl FnMut(&mut Self) -> Option<Result<T, ReceiveError>>,
    ) -> Result<T, ReceiveError> {
        let _waiting = self.clock.wait(deadline);
        let awake = self.wait_awake(deadline, |port| match port.peers.has_dead() {
            false => attempt(port),
            true => port.attempt_all(turns, &mut attempt),
        });
        let found = awake
            .or_else(|| self.wait_asking(deadline, |port| port.attempt_all(turns, &mut attempt)));
        found.unwrap_or(Err(ReceiveError::TimedOut))
    }

    /// Gives each peer its turn, so that no message that has arrived is missed, nor comes after the
    /// report of its sender's death.
    fn attempt_all<T>(
        &mut self,
        turns: usize,
        attempt: &mut impl FnMut(&mut Self) -> Option<Result<T, ReceiveError>>,
    ) -> Option<Result<T, ReceiveError>> {
        let found = (0..turns.max(1)).find_map(|_| attempt(self));
        found.or_else(|| self.peers.next_dead().map(|peer| Err(ReceiveError::PeerDied(peer))))
    }

    #[inline(always)]
    fn receive_from(
        &mut self,
        index: usize,
        into: &mut [u8],
    ) -> Result<Option<Message>, ReceiveError> {
        let Some(connection) = self.peers.at_mut(index) else { return Ok(None) };
        match connection.messages_in.peek() {
            None => Ok(None),
            Some(record) => self.receive_record(index, record, into),
        }
    }

    /// Takes a record from the head of a peer's message lane.
    // spec: MSG-7, MSG-8, ORD-3
    #[inline(never)]
    fn receive_record(
        &mut self,
        index: usize,
        record: Result<Status, Malformed>,
        into: &mut [u8],
    ) -> Result<Option<Message>, ReceiveError> {
        let Some(connection) = self.peers.at_mut(index) else { return Ok(None) };
        let source = connection.peer;
        let is_gated = connection.mode() == Mode::Mediated;
        let Ok((status, len)) = checked(record, is_gated) else {
            self.end_malformed_lane(source);
            return Ok(None);
        };
        if is_gated && !is_due(connection) {
            self.progress_with(source);
            if !self.connection(source).is_ok_and(is_due) {
                return Ok(None);
            }
        }
        let Some(connection) = self.peers.at_mut(index) else { return Ok(None) };
        let Some(into) = into.get_mut(..len) else { return Err(ReceiveError::TooLong(len)) };
        connection.messages_in.copy(usize::from(is_gated), into);
        connection.messages_in.consume(&status);
        Ok(Some(Message { source, tag: status.tag, len }))
    }

    /// Whether nothing comes from a peer any more: it has gone, and all its messages were taken.
    // spec: MSG-10
    pub(crate) fn is_silent(&self, peer: PeerId) -> bool {
        self.connection(peer).map_or(true, |connection| {
            connection.ended.is_some() && connection.messages_in.peek().is_none()
        })
    }

    /// Ends the connection of a malformed lane, which is never read again.
    // spec: ERR-6, LIFE-18
    #[cold]
    pub(crate) fn end_malformed_lane(&mut self, peer: PeerId) {
        self.count_malformed();
        self.end_connection(peer, Fault::Malformed);
        let forgotten = self.forget(peer);
        debug_assert!(forgotten.is_ok(), "the lane was this connection's");
    }
}

/// Whether the commands that were posted before the message at the head have been executed.
pub(crate) fn is_due(connection: &Connection) -> bool {
    let [posted] = connection.messages_in.head();
    // DONE-A1: the puts before the message have landed once they are counted (DONE-R1).
    message::is_due(posted, connection.served.load(Ordering::Acquire))
}

fn checked(
    record: Result<Status, Malformed>,
    is_gated: bool,
) -> Result<(Status, usize), Malformed> {
    let status = record?;
    Ok((status, message::data_of(&status, is_gated)?))
}

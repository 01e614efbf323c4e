//! Short messages: one lane per sender, together the port's mailbox.
use super::connection::Connection;
use crate::error::{Busy, Fault, PostError, ReceiveError};
use crate::mem::lane::Probe;
use crate::mem::page::Sleeper;
use crate::net::clock::Deadline;
use crate::port::Port;
use crate::port::turns::Streak;
use crate::settings::choice::Mode;
use crate::sync::Ordering;
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::node::message;
use ayre_proto::units::PeerId;
use std::time::Duration;

/// What is known of a received message; its bytes are in the receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub source: PeerId,
    /// The sender's type tag.
    pub tag: u32,
    /// Bytes.
    pub len: usize,
}

impl Port {
    /// Sends 1 to [`EAGER_MAX`] bytes to a peer's mailbox. Never blocks; the buffer may be reused
    /// when the call returns. 56 bytes and less travel in one cache line.
    ///
    /// A message is never seen before the data of this port's earlier puts to the peer.
    ///
    /// # Errors
    /// [`Busy::MessageLaneFull`] with nothing done, where this port's messages fill its lane at the
    /// peer; other senders have lanes of their own. [`Fault::TooLong`]; [`Fault::Malformed`] for an
    /// empty message; [`Fault::PeerDead`], [`Fault::ForeignHandle`].
    // spec: MSG-2, MSG-4
    #[inline(always)]
    pub fn send(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), PostError> {
        if self.send_line(to, tag, [], data) { Ok(()) } else { self.send_any(to, tag, data) }
    }

    /// Sends a message of `head` words followed by `data`, if it fits one line that is free and the
    /// connection is direct: what is sent most. [`Port::send`] does the same for any message.
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

    /// Sends a message of `head` words followed by `data`, of any length that fits a message, if
    /// the connection is direct and its lane has room.
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

    /// Messages of any length, to any peer.
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

    /// Sends a message, waiting for room in the lane while making progress. Yields the processor
    /// but does not sleep, for a receiver that lacks room is at work.
    ///
    /// # Errors
    /// As [`Port::send`], [`Busy`] excepted.
    pub fn send_wait(&mut self, to: PeerId, tag: u32, data: &[u8]) -> Result<(), Fault> {
        let mut rounds = 0;
        loop {
            match self.send(to, tag, data) {
                Ok(()) => return Ok(()),
                Err(PostError::Fault(fault)) => return Err(fault),
                Err(PostError::Busy(_)) => self.pause(&mut rounds),
            }
        }
    }

    /// Takes the next message, if there is one, into the front of `into`. Never blocks.
    ///
    /// Messages of one sender come in the order in which they were sent.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`]: the message stays, and comes again with a larger buffer.
    // spec: MSG-3, NOTI-13
    #[inline(always)]
    pub fn try_recv(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        match self.try_recv_hot(into) {
            Probe::Taken(message) => Ok(Some(message)),
            probe => self.try_recv_rest(&probe, into),
        }
    }

    /// The rest of a poll that has found no short message where one came last.
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

    /// A short one of the peer where one came last, and no progress.
    #[inline(always)]
    pub(crate) fn try_recv_hot(&mut self, into: &mut [u8]) -> Probe<Message> {
        self.try_recv_short(self.turns.mail.hot(), into)
    }

    /// A short one of the peer of this number, and no progress.
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

    /// The next one of the peer of this number, however long, into room for any; and no progress
    /// unless it waits for commands.
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

    /// A poll that finds at the hot peer what takes more steps than a short message.
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

    /// The other half of a poll: the peer whose turn it is, and progress.
    #[inline(never)]
    fn try_recv_others(&mut self, into: &mut [u8]) -> Result<Option<Message>, ReceiveError> {
        let turn = self.turns.mail.turn(self.peers.count());
        // Looking twice at a line while somebody is about to write it makes him wait.
        let again = turn == self.turns.mail.hot();
        let found = if again { Ok(None) } else { self.receive_from(turn, into) };
        match found {
            Ok(None) => self.progress_lanes(),
            _ => self.turns.mail.expect(turn),
        }
        found
    }

    /// Waits for the next message, at most for `timeout`; sleeps where it takes long.
    ///
    /// # Errors
    /// [`ReceiveError::TooLong`]; [`ReceiveError::TimedOut`]; [`ReceiveError::PeerDied`], once for
    /// each peer that died, so that a wait for a dead sender ends.
    // spec: MSG-9
    pub fn recv(
        &mut self,
        into: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Message, ReceiveError> {
        let (turns, deadline) = (self.peers.count(), self.clock.deadline(timeout));
        self.wait_or_died(deadline, turns, |port| port.try_recv(into).transpose())
    }

    /// The same; ends, as if its time were up, once the caller sees something else that is new.
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

    /// After something was published apart from lanes: wakes a peer that sleeps.
    #[inline(always)]
    pub(crate) fn wake(&self, peer: PeerId) {
        if let Ok(connection) = self.connection(peer) {
            connection.link.kick(Sleeper::Port);
        }
    }

    /// Waits for what `attempt` gives, or until a peer dies, or until the time is up. So many turns
    /// of `attempt` look at everything.
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
            .or_else(|| self.wait_asleep(deadline, |port| port.attempt_all(turns, &mut attempt)));
        found.unwrap_or(Err(ReceiveError::TimedOut))
    }

    /// Each peer has its turn, so that nothing that has arrived is missed, nor comes after the news
    /// that its sender has gone.
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

    /// Takes a record that stands at the head of a peer's message lane.
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

    /// Whether nothing comes from a peer any more: it is gone, and all that it had sent was taken.
    // spec: MSG-10
    pub(crate) fn is_silent(&self, peer: PeerId) -> bool {
        self.connection(peer).map_or(true, |connection| {
            connection.ended.is_some() && connection.messages_in.peek().is_none()
        })
    }

    /// A lane that does not parse is not looked at again: its connection ends, lanes and all.
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

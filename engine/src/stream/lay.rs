//! Setting entries of forwarding directories, here and at peers, and laying pipelines.
use super::calls::{Stream, StreamError, Streams};
use super::effects::Stage;
use super::laid::Laid;
use super::state::Asked;
use crate::active::Messenger;
use ayre_proto::stream::{
    EntryAnswer, FailureReason, Message, STREAM, StreamFailure, StreamName, Way,
};
use ayre_proto::units::PeerId;

/// An entry of a forwarding directory: the next port of a stream, and the stage there.
// spec: PIPE-4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    entry: ayre_proto::stream::Entry,
}

impl Entry {
    /// Returns an entry that leads to a stage at the port `to`, where the stream has this number.
    /// It lasts until it is cleared, and the stage may be the last one.
    pub const fn new(to: PeerId, number: u32, stage: Stage) -> Self {
        let (to, arguments) = (StreamName { peer: to, number }, [0; 4]);
        let way = Way { stage: stage.id, arguments, goes_on: false };
        Self { entry: ayre_proto::stream::Entry { to, way, lasts: true } }
    }

    /// Sets the arguments that the stage gets. The default is zeros.
    pub const fn arguments(mut self, arguments: [u64; 4]) -> Self {
        self.entry.way.arguments = arguments;
        self
    }

    /// Says that the stage is not the last one. Without an entry there, the stream fails.
    pub const fn goes_on(mut self) -> Self {
        self.entry.way.goes_on = true;
        self
    }

    /// Removes the entry after the first stream that has used it.
    pub const fn once(mut self) -> Self {
        self.entry.lasts = false;
        self
    }
}

/// A stage of a pipeline for [`Streams::lay`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    peer: PeerId,
    stage: Stage,
    arguments: [u64; 4],
}

impl Hop {
    /// Returns a hop to a stage at a port. The port may be the one of the hop before, or the
    /// messenger's own.
    pub const fn new(peer: PeerId, stage: Stage) -> Self {
        Self { peer, stage, arguments: [0; 4] }
    }

    /// Sets the arguments that the stage gets. The default is zeros.
    pub const fn arguments(mut self, arguments: [u64; 4]) -> Self {
        self.arguments = arguments;
        self
    }
}

impl<S> Streams<'_, S> {
    /// Sets whether peers may set and clear entries here. By default they may.
    // spec: PIPE-6
    pub fn let_peers_set_entries(&mut self, may: bool) {
        self.0.stream_table().let_peers_set(may);
    }

    /// Sets or replaces an entry of a port's directory, under the name of a stream there. Waits for
    /// the answer, and runs handlers and stages meanwhile. Items that were sent before go the old
    /// way.
    ///
    /// # Errors
    /// [`StreamError::Refused`]; [`StreamError::Failed`] if the port has died.
    /// [`StreamError::Interrupted`]: the entry may still be set.
    // spec: PIPE-6, PIPE-7
    pub fn set_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        name: StreamName,
        entry: Entry,
    ) -> Result<(), StreamError> {
        let entry = entry.entry;
        if at != self.0.out.port.id {
            return self.0.ask(state, at, |request| Message::Set { request, name, entry });
        }
        let (streams, out) = self.0.stream_table_and_out();
        let (answer, _) = streams
            .with((&mut *state, &mut *out), |machine, side| machine.set(at, name, entry, side));
        streams.advance(state, out);
        judge(at, answer)
    }

    /// Clears an entry of a port's directory. Waits for the answer, and runs handlers and stages
    /// meanwhile.
    ///
    /// # Errors
    /// The errors of [`Streams::set_entry`].
    // spec: PIPE-6, PIPE-7
    pub fn clear_entry(
        &mut self,
        state: &mut S,
        at: PeerId,
        name: StreamName,
    ) -> Result<(), StreamError> {
        if at != self.0.out.port.id {
            let clear = |request| Message::Clear { request, name, if_unused: false };
            return self.0.ask(state, at, clear);
        }
        let (streams, out) = self.0.stream_table_and_out();
        let (answer, _) = streams
            .with((&mut *state, &mut *out), |machine, side| machine.unset(at, name, false, side));
        streams.advance(state, out);
        judge(at, answer)
    }

    /// Lays a pipeline: sets the entries for one stream, from its last stage to the first, and
    /// opens the stream. Waits for the answers, and runs handlers and stages meanwhile. The entries
    /// are removed with the stream.
    ///
    /// # Errors
    /// The errors of [`Streams::set_entry`]; [`StreamError::Failed`] if this port has no room.
    // spec: PIPE-1, PIPE-4
    pub fn lay(&mut self, state: &mut S, hops: &[Hop]) -> Result<Stream, StreamError> {
        let own = self.0.out.port.id;
        let full = StreamError::Failed(StreamFailure { why: FailureReason::Full, at: own });
        let mut laid = self.0.stream_table().take_numbers(hops.len() + 1).ok_or(full)?;
        debug_assert_eq!(laid.numbers().count(), hops.len() + 1, "one for each way");
        let number = |at: u16| u32::from(own.0) << 16 | u32::from(laid.first.wrapping_add(at));
        let first = number(0);
        // For each stage, the port of its entry, and the name and content of the entry.
        let mut feeder = own;
        let mut ways = Vec::new();
        for (at, hop) in (0..).zip(hops) {
            let port = u16::checked_sub(at, 1).map_or(own, |at| hops[usize::from(at)].peer);
            let name = StreamName { peer: feeder, number: number(at) };
            let mut entry = Entry::new(hop.peer, number(at + 1), hop.stage);
            entry = entry.arguments(hop.arguments).once();
            let is_last = usize::from(at) + 1 == hops.len();
            ways.push((port, name, if is_last { entry } else { entry.goes_on() }));
            feeder = port;
        }
        let mut ended = Ok(());
        for (port, name, entry) in ways.into_iter().rev() {
            ended = ended.and_then(|()| self.set_entry(state, port, name, entry));
            if ended.is_ok() {
                laid.entries.push((port, name));
            }
        }
        match ended.and_then(|()| self.open(state, first)) {
            Ok(stream) => Ok(Stream { laid, ..stream }),
            Err(error) => {
                self.0.forget_laid(laid, false);
                Err(error)
            }
        }
    }
}

impl<S> Messenger<S> {
    /// Frees the numbers of a stream that is over, and clears the entries that it has not used.
    // spec: PIPE-6
    pub(super) fn forget_laid(&mut self, laid: Laid, is_used: bool) {
        self.stream_table().give_numbers(&laid);
        for (at, name) in laid.entries.into_iter().filter(|_| !is_used) {
            if at == self.out.port.id {
                self.stream_table().clear_unused(name);
            } else if self.out.port.is_alive(at) {
                let request = self.stream_table().request(at, Asked::Forgotten);
                let message = Message::Clear { request, name, if_unused: true };
                self.out.owe_bytes(at, STREAM, &message.encode());
            }
        }
    }

    /// Asks a peer for a change of its directory, and waits for the answer.
    fn ask(
        &mut self,
        state: &mut S,
        at: PeerId,
        message: impl FnOnce(u32) -> Message,
    ) -> Result<(), StreamError> {
        let failed = |why| StreamError::Failed(StreamFailure { why, at });
        if !self.out.port.is_alive(at) {
            return Err(failed(FailureReason::Unreachable));
        }
        let request = self.stream_table().request(at, Asked::Waits);
        self.out.owe_bytes(at, STREAM, &message(request).encode());
        let is_answered = self.wait_until(state, |messenger| {
            !messenger.stream_table().waits_for(request) || messenger.out.port.is_silent(at)
        });
        if !is_answered {
            self.stream_table().requests.insert(request, (at, Asked::Forgotten));
            return Err(StreamError::Interrupted);
        }
        let asked = self.stream_table().requests.remove(&request);
        debug_assert!(asked.is_some(), "a request stays until its call takes it");
        match asked {
            Some((_, Asked::Answered(answer))) => judge(at, answer),
            _ => Err(failed(FailureReason::PeerDied)),
        }
    }
}

fn judge(at: PeerId, answer: EntryAnswer) -> Result<(), StreamError> {
    if answer == EntryAnswer::Done { Ok(()) } else { Err(StreamError::Refused(at, answer)) }
}

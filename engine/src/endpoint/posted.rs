//! Receives: posting them, looking for what has come, taking them back.
use super::transport::Surroundings;
use super::{Completion, Context, PostedReceive, RawEndpoint, RemoteId};
use crate::error::{Fault, PostError};
use crate::mem::span::Spans;
use ayre_proto::endpoint::{Probed, Received};
use ayre_proto::matching::MessageId;

impl RawEndpoint {
    /// Posts a receive. The oldest message that it accepts goes into it, now or when it comes.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] where as much is under way as there is memory for;
    /// [`Fault::ForeignHandle`] for a source that is not known; [`Fault::Malformed`] for one of
    /// many messages that has several spans.
    // spec: ENV-7, ENV-39
    #[inline(always)]
    pub fn receive(&mut self, receive: PostedReceive) -> Result<(), PostError> {
        if receive.source.is_some_and(|source| !self.remotes.knows(source)) {
            return Err(Fault::ForeignHandle.into());
        }
        let Self { protocol, port, remotes, regions, choices, address, is_asleep, .. } = self;
        // Made where it is needed: most receives are posted before their message comes.
        let posted = protocol.receive(receive, move || Surroundings {
            port,
            remotes,
            regions,
            choices,
            own: address,
            is_asleep: *is_asleep,
        });
        Ok(posted?)
    }

    /// The oldest message that a receive with this source and tag would take, if one has come. It
    /// stays.
    // spec: ENV-7
    pub fn find(&mut self, source: Option<RemoteId>, tag: Option<(u64, u64)>) -> Option<Probed> {
        if source.is_some_and(|source| self.remotes.known(source).is_none()) {
            return None;
        }
        self.protocol.find(source, tag)
    }

    /// Whether messages have come that no receive has taken, those that were set aside among them.
    #[inline(always)]
    pub fn keeps_messages(&self) -> bool {
        self.protocol.keeps_messages() || self.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty())
    }

    /// From now on the program posts no receives of plain messages: it takes each of them by
    /// [`RawEndpoint::take_oldest`], or finds it. Short ones go past the matcher then.
    pub fn hand_over_plain(&mut self) {
        self.inbox.get_or_insert_default();
    }

    /// Takes the oldest message that a receive with this source and tag would take, if one has come
    /// and all of it is here: no copy is made. None where its sender still has it;
    /// [`RawEndpoint::find`] finds that.
    // spec: ENV-7
    pub fn take_oldest(
        &mut self,
        source: Option<RemoteId>,
        tag: Option<(u64, u64)>,
    ) -> Option<(Received, Box<[u8]>)> {
        if source.is_some_and(|source| self.remotes.known(source).is_none()) {
            return None;
        }
        let wants_any = source.is_none() && tag.is_none();
        if let Some(inbox) = self.inbox.as_mut().filter(|_| wants_any)
            && let Some(first) = inbox.pop_front()
        {
            return Some(first);
        }
        let (protocol, mut around) = self.parts();
        protocol.take_oldest(&mut around, source, tag)
    }

    /// Keeps a message that was found for [`RawEndpoint::receive_found`] and
    /// [`RawEndpoint::discard`]. False where it is gone.
    pub fn set_aside(&mut self, is_tagged: bool, id: MessageId) -> bool {
        self.protocol.set_aside(is_tagged, id)
    }

    /// Receives a message that was found.
    ///
    /// # Errors
    /// [`Fault::StaleKey`] where it is gone.
    pub fn receive_found(
        &mut self,
        is_tagged: bool,
        id: MessageId,
        into: (Spans, Context),
    ) -> Result<(), PostError> {
        let (protocol, mut around) = self.parts();
        Ok(protocol.receive_found(&mut around, (is_tagged, id), into)?)
    }

    /// Throws a message away that was found. False where it is gone.
    pub fn discard(&mut self, is_tagged: bool, id: MessageId) -> bool {
        let (protocol, mut around) = self.parts();
        protocol.discard(&mut around, (is_tagged, id))
    }

    /// Takes back a receive that waits and whose context has these lower 64 bits, if there is one:
    /// of several, the one that waits longest. Its end is told by the next progress. However many
    /// wait, this takes no longer.
    // spec: MATCH-9
    pub fn cancel(&mut self, label: u64) -> bool {
        let Some(end) = self.protocol.cancel(label) else { return false };
        debug_assert_eq!(end.context as u64, label, "it is the one that was meant");
        self.protocol.put_off_completions([end]);
        self.request_poll();
        true
    }

    /// Tells what has ended in calls since the last progress, without progress: a receive that has
    /// found its message, above all.
    #[inline]
    pub fn tell_ended(&mut self, mut tell: impl FnMut(Completion)) {
        if self.protocol.has_completions() {
            self.tell_completions(&mut tell);
        }
    }

    /// Cancels, and tells the end at once, behind those that were not told yet.
    // spec: MATCH-9
    pub fn cancel_now(&mut self, label: u64, mut tell: impl FnMut(Completion)) -> bool {
        let Some(end) = self.protocol.cancel(label) else { return false };
        if self.protocol.has_completions() {
            self.tell_completions(&mut tell);
        }
        tell(end);
        true
    }
}

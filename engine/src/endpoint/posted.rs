//! Receives: posting them, looking for what has come, taking them back.
use super::ends::{Context, End, Received, What};
use super::incoming::{Body, BodyPlace, Incoming};
use super::origin::Origin;
use super::transfers::Transfer;
use super::{Endpoint, RemoteId};
use crate::error::{Fault, PostError};
use crate::mem::span::Spans;
use ayre_proto::envelope::Record;
use ayre_proto::matching::{Message, MessageId, Pattern, Place, Post, PostMulti};

/// A receive to be posted.
#[derive(Clone, Debug)]
pub struct Receive {
    /// Whom it takes messages from; any one.
    pub source: Option<RemoteId>,
    /// Its tag and the bits of it that do not matter; none for plain messages.
    pub tag: Option<(u64, u64)>,
    /// Where messages go.
    pub into: Spans,
    /// Comes back with its end.
    pub context: Context,
    /// It takes messages, one behind the other, until fewer bytes than this are left. Such a
    /// receive is of one span.
    pub many: Option<u64>,
}

/// A message that has come and that no receive has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is taken by, once it is set aside.
    pub id: MessageId,
    /// What is known of it.
    pub message: Received,
}

impl Endpoint {
    /// Posts a receive. The oldest message that it accepts goes into it, now or when it comes.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] where as much is under way as there is memory for;
    /// [`Fault::ForeignHandle`] for a source that is not known; [`Fault::Malformed`] for one of
    /// many messages that has several spans.
    // spec: ENV-7, ENV-39
    #[inline(always)]
    pub fn receive(&mut self, receive: Receive) -> Result<(), PostError> {
        let Receive { source, tag, into, context, many } = receive;
        if source.is_some_and(|source| !self.remotes.knows(source)) {
            return Err(Fault::ForeignHandle.into());
        }
        let pattern = pattern(source, tag);
        let incoming = Incoming::new(into, context, tag.is_some());
        if let Some(least) = many {
            return self.receive_many((pattern, least), incoming);
        }
        match self.receives.post(pattern, &incoming) {
            Post::Busy => self.receive_grown(pattern, incoming),
            Post::Posted(id) => {
                self.receives.wait(incoming.waiting(id));
                Ok(())
            }
            Post::Matched(message) => {
                self.receive_here(incoming.taken(), &message);
                Ok(())
            }
        }
    }

    /// A receive for which there is no room yet.
    #[cold]
    fn receive_grown(&mut self, pattern: Pattern, incoming: Incoming) -> Result<(), PostError> {
        self.grow_receives(incoming.is_tagged())?;
        if let Post::Posted(id) = self.receives.post(pattern, &incoming) {
            self.receives.wait(incoming.waiting(id));
        }
        Ok(())
    }

    /// A receive whose message has come before it.
    #[inline(never)]
    fn receive_here(&mut self, incoming: Incoming, message: &Message) {
        let len = message.len.min(incoming.len());
        let key = self.receives.insert(incoming);
        self.fill(key, (message, (0, len)));
    }

    #[cold]
    fn receive_many(
        &mut self,
        (pattern, least): (Pattern, u64),
        incoming: Incoming,
    ) -> Result<(), PostError> {
        if !incoming.is_whole() {
            return Err(Fault::Malformed.into());
        }
        let mut taken = Vec::new();
        let key = loop {
            let take = |message: Message, place: Place| taken.push((message, place));
            match self.receives.post_multi((pattern, least), &incoming, take) {
                PostMulti::Busy => self.grow_receives(incoming.is_tagged())?,
                PostMulti::Posted(id) => break self.receives.wait(incoming.waiting(id)),
                PostMulti::Released => break self.receives.insert(incoming.taken()),
            }
        };
        self.receives[key].expect(taken.len());
        for (message, place) in taken {
            self.receives[key].arrived();
            self.fill(key, (&message, (place.offset, place.len)));
        }
        Ok(())
    }

    /// Puts a message that waited into a receive.
    fn fill(&mut self, key: usize, (message, (offset, len)): (&Message, (u64, u64))) {
        let Body { origin, place } = self.unkeep(message);
        self.receives[key].expect(1);
        match place {
            BodyPlace::Here(bytes) => {
                debug_assert!(len <= bytes.len() as u64, "no more is put there than has come");
                let incoming = &mut self.receives[key];
                debug_assert!(offset + len <= incoming.len(), "a message goes into its memory");
                incoming.memory().write(offset as usize, &bytes[..len as usize]);
                let end = self.arrived((key, offset, len), &origin);
                self.end_later(end);
            }
            BodyPlace::There(there) => {
                self.want(Transfer::new((key, offset, len), &origin, there));
            }
        }
    }

    /// The oldest message that such a receive would take, if one has come; it stays.
    // spec: ENV-7
    pub fn find(&mut self, source: Option<RemoteId>, tag: Option<(u64, u64)>) -> Option<Found> {
        if source.is_some_and(|source| self.remotes.known(source).is_none()) {
            return None;
        }
        let (id, origin) = self.receives.peek(tag.is_some(), pattern(source, tag))?;
        Some(Found { id, message: origin.received((0, 0), false) })
    }

    /// Keeps a message that was found for [`Endpoint::receive_found`] and [`Endpoint::discard`].
    /// False where it is gone.
    pub fn set_aside(&mut self, is_tagged: bool, id: MessageId) -> bool {
        self.receives.set_aside(is_tagged, id)
    }

    /// Receives a message that was found.
    ///
    /// # Errors
    /// [`Fault::StaleKey`] where it is gone.
    pub fn receive_found(
        &mut self,
        is_tagged: bool,
        id: MessageId,
        (into, context): (Spans, Context),
    ) -> Result<(), PostError> {
        let message = self.receives.take(is_tagged, id).ok_or(Fault::StaleKey)?;
        let len = message.len.min(into.len() as u64);
        let key = self.receives.insert(Incoming::new(into, context, is_tagged).taken());
        self.fill(key, (&message, (0, len)));
        Ok(())
    }

    /// Throws a message away that was found. False where it is gone.
    pub fn discard(&mut self, is_tagged: bool, id: MessageId) -> bool {
        let Some(message) = self.receives.take(is_tagged, id) else { return false };
        let Body { origin, place } = self.unkeep(&message);
        let refused = match place {
            BodyPlace::There(there) => Some(Record::Go { id: there.id, to: u64::MAX, len: 0 }),
            BodyPlace::Here(_) => None,
        };
        let done = origin.answer.map(|id| Record::Done { id });
        refused.into_iter().chain(done).for_each(|record| self.reply(origin.source, record));
        true
    }

    /// Takes back a receive that waits and whose context has these lower 64 bits, if there is one:
    /// of several, the one that waits longest. Its end is told by the next progress. However many
    /// wait, this takes no longer.
    // spec: MATCH-9
    pub fn cancel(&mut self, label: u64) -> bool {
        let Some(end) = self.take_back(label) else { return false };
        self.end_later(end);
        true
    }

    /// The same, but its end is told at once, behind those that were not told yet.
    // spec: MATCH-9
    pub fn cancel_now(&mut self, label: u64, mut tell: impl FnMut(End)) -> bool {
        let Some(end) = self.take_back(label) else { return false };
        if !self.ended.is_empty() {
            self.tell_ended(&mut tell);
        }
        tell(end);
        true
    }

    fn take_back(&mut self, label: u64) -> Option<End> {
        let context = self.receives.cancel(label)?;
        Some(End { context, what: What::Cancelled, result: Ok(()) })
    }

    /// A message is in its receive's memory.
    pub(super) fn arrived(
        &mut self,
        (key, offset, len): (usize, u64, u64),
        origin: &Origin,
    ) -> End {
        let incoming = &mut self.receives[key];
        incoming.arrived();
        let (context, is_last) = (incoming.context(), incoming.is_over());
        if is_last {
            self.receives.free(key);
        }
        if let Some(id) = origin.answer {
            self.reply(origin.source, Record::Done { id });
        }
        let received = origin.received((offset, len), is_last);
        End { context, what: What::Received(received), result: Ok(()) }
    }

    /// Throws away what has come from a remote and that no receive has taken: its number may name
    /// another one next.
    // spec: ENV-16
    pub(super) fn drop_messages(&mut self, from: RemoteId) {
        let Self { receives, kept, .. } = self;
        receives.drop_messages(from.source(), |bytes| kept.give_back(from, bytes));
    }

    /// Nothing more comes from a remote.
    pub(super) fn end_receives(&mut self, from: RemoteId, why: Fault) {
        self.end_transfers(from, why);
        let Self { receives, kept, ended, .. } = self;
        let give_back = |bytes| kept.give_back(from, bytes);
        receives.end_source(from.source(), give_back, |context| {
            let what = What::Received(Received { released: true, ..Received::default() });
            ended.push(End { context, what, result: Err(why) });
        });
    }
}

/// What a receive accepts, as the matcher sees it.
#[inline(always)]
fn pattern(source: Option<RemoteId>, tag: Option<(u64, u64)>) -> Pattern {
    let source = source.map(RemoteId::source);
    match tag {
        Some((tag, ignore)) => Pattern { source, tag, ignore },
        None => Pattern::plain(source),
    }
}

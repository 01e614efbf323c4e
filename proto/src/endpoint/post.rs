//! Receives: posting them, looking for what has come, taking them back.
use super::completions::{Completion, CompletionKind, Context, Received};
use super::incoming::{Body, BodyPlace, Incoming};
use super::origin::Origin;
use super::transfers::Transfer;
use super::transport::{Memory, Transport};
use super::{Protocol, RemoteId};
use crate::envelope::Record;
use crate::fault::Fault;
use crate::matching::{Message, MessageId, Pattern, Place, Post, PostMulti};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A receive to be posted.
#[derive(Clone, Debug)]
pub struct PostedReceive<M> {
    /// The only source that it accepts; none for any source.
    pub source: Option<RemoteId>,
    /// Its tag and the bits of it that do not matter; none for plain messages.
    pub tag: Option<(u64, u64)>,
    /// Where messages go.
    pub into: M,
    /// Comes back with its end.
    pub context: Context,
    /// Makes it a multi-receive: it takes messages, one behind the other, until fewer bytes than
    /// this are left. A multi-receive has one span.
    pub many: Option<u64>,
}

/// A message that has come and that no receive has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Its name, to set it aside and to receive it.
    pub id: MessageId,
    /// Its source, tag, data and length.
    pub message: Received,
}

impl<M: Memory> Protocol<M> {
    /// Posts a receive, whose source, if it has one, is known. The oldest message that it accepts
    /// goes into it, now, which takes ways, or when it comes.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] where as much is under way as may; [`Fault::Malformed`] for one of many
    /// messages that has several spans.
    // spec: ENV-7, ENV-39
    #[inline(always)]
    pub fn receive<W: Transport<Memory = M>>(
        &mut self,
        receive: PostedReceive<M>,
        transport: impl FnOnce() -> W,
    ) -> Result<(), Fault> {
        let PostedReceive { source, tag, into, context, many } = receive;
        let pattern = pattern(source, tag);
        let incoming = Incoming::new(into, context, tag.is_some());
        if let Some(least) = many {
            return self.receive_many(&mut transport(), (pattern, least), incoming);
        }
        match self.receives.post(pattern, &incoming) {
            Post::Busy => self.receive_grown(pattern, incoming),
            Post::Posted(id) => {
                self.receives.wait(incoming.waiting(id));
                Ok(())
            }
            Post::Matched(message) => {
                self.receive_here(&mut transport(), incoming.taken(), &message);
                Ok(())
            }
        }
    }

    /// A receive for which there is no room yet.
    #[cold]
    fn receive_grown(&mut self, pattern: Pattern, incoming: Incoming<M>) -> Result<(), Fault> {
        self.grow_receives(incoming.is_tagged())?;
        if let Post::Posted(id) = self.receives.post(pattern, &incoming) {
            self.receives.wait(incoming.waiting(id));
        }
        Ok(())
    }

    /// A receive whose message has come before it.
    #[inline(never)]
    fn receive_here(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        incoming: Incoming<M>,
        message: &Message,
    ) {
        let len = message.len.min(incoming.len());
        let key = self.receives.insert(incoming);
        self.fill(transport, key, (message, (0, len)));
    }

    #[cold]
    fn receive_many(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        (pattern, least): (Pattern, u64),
        incoming: Incoming<M>,
    ) -> Result<(), Fault> {
        if !incoming.is_whole() {
            return Err(Fault::Malformed);
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
            self.fill(transport, key, (&message, (place.offset, place.len)));
        }
        Ok(())
    }

    /// Puts a message that waited into a receive.
    fn fill(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        key: usize,
        (message, (offset, len)): (&Message, (u64, u64)),
    ) {
        let Body { origin, place } = self.unkeep(transport, message);
        self.receives[key].expect(1);
        match place {
            BodyPlace::Local(bytes) => {
                debug_assert!(len <= bytes.len() as u64, "no more is put there than has come");
                let incoming = &mut self.receives[key];
                debug_assert!(offset + len <= incoming.len(), "a message goes into its memory");
                incoming.memory().write(offset as usize, &bytes[..len as usize]);
                let completion = self.arrived(transport, (key, offset, len), &origin);
                self.complete_later(transport, completion);
            }
            BodyPlace::Remote(remote_body) => {
                self.start_transfer(
                    transport,
                    Transfer::new((key, offset, len), &origin, remote_body),
                );
            }
        }
    }

    /// The oldest message that a receive with this source and tag would take, if one has come. It
    /// stays.
    // spec: ENV-7
    pub fn find(&mut self, source: Option<RemoteId>, tag: Option<(u64, u64)>) -> Option<Probed> {
        let (id, origin) = self.receives.peek(tag.is_some(), pattern(source, tag))?;
        Some(Probed { id, message: origin.received((0, 0), false) })
    }

    /// Takes the oldest message that a receive with this source and tag would take, if one has come
    /// and all of it is here: no copy is made. None where its sender still has it.
    // spec: ENV-7
    pub fn take_oldest(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        source: Option<RemoteId>,
        tag: Option<(u64, u64)>,
    ) -> Option<(Received, Box<[u8]>)> {
        let message = self.receives.take_oldest(tag.is_some(), pattern(source, tag))?;
        let Body { origin, place } = self.unkeep(transport, &message);
        if let Some(id) = origin.answer {
            self.reply(transport, origin.source, Record::Fin { id });
        }
        match place {
            BodyPlace::Local(bytes) => Some((origin.received((0, origin.len), true), bytes)),
            BodyPlace::Remote(_) => unreachable!("all of it is here"),
        }
    }

    /// Keeps a message that was found for [`Protocol::receive_found`] and [`Protocol::discard`].
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
        transport: &mut impl Transport<Memory = M>,
        (is_tagged, id): (bool, MessageId),
        (into, context): (M, Context),
    ) -> Result<(), Fault> {
        let message = self.receives.take(is_tagged, id).ok_or(Fault::StaleKey)?;
        let len = message.len.min(into.len() as u64);
        let key = self.receives.insert(Incoming::new(into, context, is_tagged).taken());
        self.fill(transport, key, (&message, (0, len)));
        Ok(())
    }

    /// Throws a message away that was found. False where it is gone.
    pub fn discard(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        (is_tagged, id): (bool, MessageId),
    ) -> bool {
        let Some(message) = self.receives.take(is_tagged, id) else { return false };
        let Body { origin, place } = self.unkeep(transport, &message);
        let refused = match place {
            BodyPlace::Remote(remote_body) => {
                Some(Record::Cts { id: remote_body.id, to: u64::MAX, len: 0 })
            }
            BodyPlace::Local(_) => None,
        };
        let done = origin.answer.map(|id| Record::Fin { id });
        let answers = refused.into_iter().chain(done);
        answers.for_each(|record| self.reply(transport, origin.source, record));
        true
    }

    /// Takes back a receive that waits and whose context has these lower 64 bits, if there is one:
    /// of several, the one that waits longest. Its end is given back, to be told behind those that
    /// were not told yet. However many wait, this takes no longer.
    // spec: MATCH-9
    pub fn cancel(&mut self, label: u64) -> Option<Completion> {
        let context = self.receives.cancel(label)?;
        Some(Completion { context, what: CompletionKind::Cancelled, result: Ok(()) })
    }

    /// A message is in its receive's memory.
    pub(super) fn arrived(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        (key, offset, len): (usize, u64, u64),
        origin: &Origin,
    ) -> Completion {
        let incoming = &mut self.receives[key];
        incoming.arrived();
        let (context, is_last) = (incoming.context(), incoming.is_over());
        if is_last {
            self.receives.free(key);
        }
        if let Some(id) = origin.answer {
            self.reply(transport, origin.source, Record::Fin { id });
        }
        let received = origin.received((offset, len), is_last);
        Completion { context, what: CompletionKind::Received(received), result: Ok(()) }
    }

    /// Throws away what has come from a remote and that no receive has taken: its number may name
    /// another one next.
    // spec: ENV-16
    pub fn drop_messages(&mut self, from: RemoteId) {
        let Self { receives, kept, .. } = self;
        receives.drop_messages(from.source(), |bytes| kept.give_back(from.source(), bytes));
        debug_assert_eq!(kept.of(from.source()), 0, "nothing is kept of it");
    }

    /// Nothing more comes from a remote.
    pub(super) fn end_receives(&mut self, from: RemoteId, why: Fault) {
        let Self { receives, kept, completions, .. } = self;
        let give_back = |bytes| kept.give_back(from.source(), bytes);
        receives.end_source(from.source(), give_back, |context| {
            let what = CompletionKind::Received(Received { released: true, ..Received::default() });
            completions.push(Completion { context, what, result: Err(why) });
        });
    }
}

/// The matcher's pattern of a receive.
#[inline(always)]
fn pattern(source: Option<RemoteId>, tag: Option<(u64, u64)>) -> Pattern {
    let source = source.map(RemoteId::source);
    match tag {
        Some((tag, ignore)) => Pattern { source, tag, ignore },
        None => Pattern::plain(source),
    }
}

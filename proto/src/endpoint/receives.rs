//! Receives that wait for messages, and messages that wait for receives.
use super::completions::Context;
use super::incoming::{Body, BodyPlace, Incoming};
use super::labels::Labels;
use super::origin::Origin;
use super::slots::Slots;
use super::transport::Memory;
use crate::limits::UNEXPECTED_MAX;
use crate::matching::{
    Arrive, Matcher, Message, MessageId, Pattern, Place, Post, PostMulti, Receive, Removed, Sizes,
};
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Receives and messages that an endpoint has room for from its beginning, in each space.
const FIRST: u32 = 64;

/// All receives that were posted and are not over, by key, and all messages that no receive has
/// taken. Tagged and plain ones never meet.
#[derive(Debug)]
pub(super) struct Receives<M> {
    tagged: Matcher,
    plain: Matcher,
    posted: Slots<Incoming<M>>,
    labels: Labels,
    /// Of messages that wait for a receive.
    bodies: Slots<Body>,
}

impl<M: Memory> Receives<M> {
    /// No receives and no messages, for `sources` sources.
    pub(super) fn new(sources: u32, seed: u64) -> Self {
        let sizes = Sizes { receives: FIRST, messages: FIRST, sources };
        Self {
            tagged: Matcher::new(sizes, seed),
            plain: Matcher::new(sizes, seed),
            posted: Slots::new(),
            labels: Labels::default(),
            bodies: Slots::new(),
        }
    }

    /// Receives that are not over.
    pub(super) const fn len(&self) -> usize {
        self.posted.len()
    }

    #[inline(always)]
    fn matcher(&mut self, is_tagged: bool) -> &mut Matcher {
        if is_tagged { &mut self.tagged } else { &mut self.plain }
    }

    /// The matcher's form of the receive that is inserted next.
    #[inline(always)]
    fn named(&self, pattern: Pattern, incoming: &Incoming<M>) -> Receive {
        Receive { pattern, capacity: incoming.len(), handle: self.posted.vacant_key() as u64 }
    }

    /// Whether a message has come for a receive. If so, or if the receive waits, it is to be kept
    /// next.
    #[inline(always)]
    pub(super) fn post(&mut self, pattern: Pattern, incoming: &Incoming<M>) -> Post {
        let named = self.named(pattern, incoming);
        self.matcher(incoming.is_tagged()).post(named)
    }

    /// Posts a receive that takes messages until fewer bytes than these are left, if there is room.
    pub(super) fn post_multi(
        &mut self,
        (pattern, least): (Pattern, u64),
        incoming: &Incoming<M>,
        take: impl FnMut(Message, Place),
    ) -> PostMulti {
        let named = self.named(pattern, incoming);
        self.matcher(incoming.is_tagged()).post_multi(named, least, take)
    }

    /// Keeps a receive that waits.
    #[inline(always)]
    pub(super) fn wait(&mut self, incoming: Incoming<M>) -> usize {
        debug_assert!(incoming.id().is_some(), "the matcher knows it");
        let key = self.posted.insert(incoming);
        self.labels.note(&self.posted, key);
        key
    }

    /// Keeps a receive whose messages have come.
    #[inline(always)]
    pub(super) fn insert(&mut self, incoming: Incoming<M>) -> usize {
        debug_assert!(incoming.id().is_none() && incoming.is_released(), "it waits for none");
        self.posted.insert(incoming)
    }

    /// A receive is over.
    #[inline(always)]
    pub(super) fn free(&mut self, key: usize) {
        debug_assert!(self.posted[key].is_over(), "nothing is coming");
        self.posted.free(key);
    }

    /// Matches a message that has come. The caller keeps it next if it is unexpected.
    #[inline(always)]
    pub(super) fn arrive(&mut self, origin: &Origin, whole: bool) -> Arrive {
        let message = origin.message(self.bodies.vacant_key(), whole);
        let arrived = self.matcher(origin.envelope.tag.is_some()).arrive(message);
        if let Arrive::Matched(place) = &arrived {
            debug_assert!(self.has_room(place), "a message goes into its receive's memory");
            debug_assert!(place.len <= origin.len, "no more goes there than has come");
        }
        arrived
    }

    /// Whether the place lies in the memory of a receive that takes messages.
    pub(super) fn has_room(&self, place: &Place) -> bool {
        let incoming = &self.posted[place.handle as usize];
        place.offset + place.len <= incoming.len() && !incoming.is_released()
    }

    /// Keeps a message.
    #[inline]
    pub(super) fn keep(&mut self, body: Body) {
        self.bodies.insert(body);
        self.check();
    }

    /// Whether messages are kept.
    #[inline(always)]
    pub(super) const fn keeps_messages(&self) -> bool {
        self.bodies.len() > 0
    }

    /// Whether plain messages are kept.
    #[inline(always)]
    pub(super) const fn keeps_plain(&self) -> bool {
        self.plain.message_count() > 0
    }

    /// A message that the matcher has given is kept no longer.
    #[inline]
    pub(super) fn unkeep(&mut self, message: &Message) -> Body {
        let body = self.bodies.take(message.handle as usize);
        debug_assert_eq!(Some(body.origin.source.source()), message.source, "it is that message");
        self.check();
        body
    }

    /// The oldest message that a receive with this pattern would take.
    pub(super) fn peek(
        &mut self,
        is_tagged: bool,
        pattern: Pattern,
    ) -> Option<(MessageId, &Origin)> {
        let (id, message) = self.matcher(is_tagged).peek(pattern)?;
        Some((id, &self.bodies[message.handle as usize].origin))
    }

    /// Takes the oldest message that a receive with this pattern would take, if all of it is here.
    pub(super) fn take_oldest(&mut self, is_tagged: bool, pattern: Pattern) -> Option<Message> {
        let (id, message) = self.matcher(is_tagged).peek(pattern)?;
        match self.bodies[message.handle as usize].place {
            BodyPlace::Local(_) => self.matcher(is_tagged).take(id),
            BodyPlace::Remote(_) => None,
        }
    }

    pub(super) fn set_aside(&mut self, is_tagged: bool, id: MessageId) -> bool {
        self.matcher(is_tagged).set_aside(id)
    }

    /// A message that was found, and that is to be kept no longer.
    pub(super) fn take(&mut self, is_tagged: bool, id: MessageId) -> Option<Message> {
        self.matcher(is_tagged).take(id)
    }

    /// Takes back the oldest receive of a label: its context.
    // spec: MATCH-9
    pub(super) fn cancel(&mut self, label: u64) -> Option<Context> {
        let (key, id) = self.labels.find(&self.posted, label)?;
        self.matcher(self.posted[key].is_tagged()).cancel(id)?;
        let incoming = &mut self.posted[key];
        incoming.take_back();
        let (context, is_over) = (incoming.context(), incoming.is_over());
        if is_over {
            self.posted.free(key);
        }
        Some(context)
    }

    /// Throws away what has come from a source; what each message counted for is told.
    pub(super) fn drop_messages(&mut self, source: u32, mut give_back: impl FnMut(u64)) {
        let pattern = Pattern { source: Some(source), tag: 0, ignore: u64::MAX };
        let Self { tagged, plain, bodies, .. } = self;
        for matcher in [tagged, plain] {
            let aside = matcher.aside().filter(|(_, message)| message.source == pattern.source);
            let mut names: Vec<_> = aside.map(|(id, _)| id).collect();
            while let Some(id) = names.pop().or_else(|| Some(matcher.peek(pattern)?.0)) {
                let message = matcher.take(id).expect("it was found just now");
                give_back(bodies.take(message.handle as usize).cost());
            }
        }
        self.check();
    }

    /// Nothing more comes from a source: what each message that is not here counted for is told,
    /// and the context of each receive that waited for it alone.
    pub(super) fn end_source(
        &mut self,
        source: u32,
        mut give_back: impl FnMut(u64),
        mut end: impl FnMut(Context),
    ) {
        let Self { tagged, plain, posted, bodies, .. } = self;
        for matcher in [tagged, plain] {
            matcher.remove(source, |removed| match removed {
                Removed::Message { handle, .. } => {
                    give_back(bodies.take(handle as usize).cost());
                }
                Removed::Receive { handle, .. } => {
                    end(posted[handle as usize].context());
                    posted.free(handle as usize);
                }
            });
        }
        self.check();
    }

    /// Makes room for as many receives again, or for these if they are fewer. False where there
    /// can be no more.
    #[cold]
    pub(super) fn grow(&mut self, is_tagged: bool, left: u32) -> bool {
        let Sizes { receives, messages, .. } = self.matcher(is_tagged).sizes();
        let more = receives.saturating_add(left.min(receives)).min(UNEXPECTED_MAX);
        debug_assert!(more >= receives, "tables only grow");
        if more > receives {
            self.matcher(is_tagged).grow(more, messages);
        }
        more > receives
    }

    /// Makes room for further messages. False where there can be no more.
    // spec: ENV-7
    #[cold]
    pub(super) fn grow_messages(&mut self, is_tagged: bool) -> bool {
        let Sizes { receives, messages, .. } = self.matcher(is_tagged).sizes();
        let more = messages.saturating_mul(2).min(UNEXPECTED_MAX);
        debug_assert!(more >= messages, "tables only grow");
        self.matcher(is_tagged).grow(receives, more);
        more > messages
    }

    /// The sources that receives wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = u32> {
        [&self.tagged, &self.plain].into_iter().flat_map(Matcher::awaited)
    }

    /// Asserts that all entries of the matchers are here. More may be here: a matched entry leaves
    /// the matcher first.
    fn check(&self) {
        let known = self.tagged.message_count() + self.plain.message_count();
        debug_assert!(known as usize <= self.bodies.len(), "each message that waits is kept");
        let known = self.tagged.receive_count() + self.plain.receive_count();
        debug_assert!(known as usize <= self.posted.len(), "each receive that waits is kept");
    }
}

impl<M: Memory> Index<usize> for Receives<M> {
    type Output = Incoming<M>;

    #[inline(always)]
    fn index(&self, key: usize) -> &Incoming<M> {
        &self.posted[key]
    }
}

impl<M: Memory> IndexMut<usize> for Receives<M> {
    #[inline(always)]
    fn index_mut(&mut self, key: usize) -> &mut Incoming<M> {
        &mut self.posted[key]
    }
}

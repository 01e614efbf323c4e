//! Matched messages: which message goes into which receive.
//!
//! ```text
//!                  a receive accepts it: Matched
//!   arrive --------------------------------------------->  the caller moves the body
//!      '--- none does: Unexpected ---.                        ^
//!                                    v                        |
//!                          [unexpected messages]  --- post: Matched
//!                                    |                        ^
//!                                peek, set aside --- take: by its name
//!   post ---- none is there: Posted ---> [receives]  --- arrive: Matched
//! ```
//!
//! A matcher knows no bodies and no buffers, only the caller's handles of them. A port has one for
//! each of its two spaces, tagged and plain. It has a table of receives and one of messages, of
//! stated sizes. Busy means that a table is full and that nothing has happened: the owner may have
//! the matcher grow, the one operation that allocates, and call again. How much may be kept of whom
//! is another machine's affair, [`Budget`]'s.
//!
//! | module | what it is |
//! |---|---|
//! | `receives` | the table of receives |
//! | `messages` | the table of unexpected messages |
//! | `budget` | bytes that are kept of each source, and who has too many |
//! | `masks` | what receives look at, and the hash of that |
//! | `lists` | lists by key, over indices |
//! | `table` | slots with names that are never used twice |
mod budget;
mod lists;
mod masks;
mod messages;
mod receives;
mod table;

pub use budget::{Budget, Share};

use crate::limits::{RECEIVES_MAX, UNEXPECTED_MAX};
use masks::{Label, Mask, Masks, ODD};
use messages::Messages;
use receives::Receives;
use table::Id;

/// Slots of the largest table that [`Matcher::check`] walks.
const CHECKED_SLOTS: u32 = 2048;

/// The room of a matcher before it has to grow.
// spec: MATCH-16
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Receives that wait, 1 to [`RECEIVES_MAX`].
    pub receives: u32,
    /// Unexpected messages, 1 to [`UNEXPECTED_MAX`].
    pub messages: u32,
    /// Sources there can be; they are the numbers below this one.
    pub sources: u32,
}

/// The messages that a receive accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// The sender, or any one, unknown ones among them.
    pub source: Option<u32>,
    /// The tag, where it is looked at.
    pub tag: u64,
    /// The bits of the tag that are not looked at.
    pub ignore: u64,
}

impl Pattern {
    /// Of the plain space, where messages have no tag.
    pub const fn plain(source: Option<u32>) -> Self {
        Self { source, tag: 0, ignore: u64::MAX }
    }

    /// Whether it accepts a message.
    // spec: MATCH-2
    #[inline]
    pub const fn accepts(&self, message: &Message) -> bool {
        Mask::of(self).alike(self.label(), message.label())
    }

    #[inline(always)]
    const fn label(&self) -> Label {
        Label::new(self.source, self.tag)
    }
}

/// A receive, for one message or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The messages that it accepts.
    pub pattern: Pattern,
    /// Bytes that its buffer has.
    pub capacity: u64,
    /// The caller's name of it.
    pub handle: u64,
}

/// A message from a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The sender; `None` if it is unknown.
    pub source: Option<u32>,
    /// Its tag; 0 in the plain space.
    pub tag: u64,
    /// Bytes of its body.
    pub len: u64,
    /// The caller's name of its body.
    pub handle: u64,
    /// Whether all of the body is here, so that the sender is no longer needed.
    pub whole: bool,
}

/// Names a receive that waits; no other one ever has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiveId(Id);

/// Names an unexpected message; no other one ever has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Id);

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The receive.
    pub id: ReceiveId,
    /// The caller's name of it.
    pub handle: u64,
    /// First byte in its buffer.
    pub offset: u64,
    /// Bytes: those of the message, or as many of them as there is room for.
    pub len: u64,
    /// Whether this was the last message that the receive takes.
    pub released: bool,
}

/// The result of posting a receive.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Post {
    /// This message was there already; the receive takes it and does not wait.
    Matched(Message),
    /// It waits.
    Posted(ReceiveId),
    /// The table of receives is full; nothing has happened.
    Busy,
}

/// The result of posting a multi-receive.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostMulti {
    /// It has taken what was there, and waits for more.
    Posted(ReceiveId),
    /// Messages that had come before have filled it.
    Released,
    /// The table of receives is full; nothing has happened.
    Busy,
}

/// The result of the arrival of a message.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrive {
    /// It goes there.
    Matched(Place),
    /// It is kept.
    Unexpected(MessageId),
    /// No receive accepts it and the table of messages is full; nothing has happened. Its sender's
    /// next message is offered only after it.
    Busy,
}

/// An entry that is removed with its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A receive from this source only; it ends with a fault.
    Receive {
        /// Its name, which is worth nothing any more.
        id: ReceiveId,
        /// The caller's name of it.
        handle: u64,
    },
    /// A message whose body will not come any more.
    Message {
        /// Its name, which is worth nothing any more.
        id: MessageId,
        /// The caller's name of its body.
        handle: u64,
    },
}

/// The matcher of one space.
// spec: MATCH-1
#[derive(Debug)]
pub struct Matcher {
    sources: u32,
    masks: Masks,
    receives: Receives,
    messages: Messages,
}

impl Matcher {
    /// A matcher without receives and messages; allocates its tables. The seed should be one that
    /// senders do not know: it decides how labels are spread over the buckets.
    // spec: MATCH-16
    pub fn new(sizes: Sizes, seed: u64) -> Self {
        let Sizes { receives, messages, sources } = sizes;
        check_sizes(receives, messages);
        assert!(sources < u32::MAX, "the last number is no source");
        Self {
            sources,
            masks: Masks::new(seed),
            receives: Receives::new(receives),
            messages: Messages::new(messages),
        }
    }

    /// Asserts what holds between two steps, whatever has come.
    #[inline(always)]
    fn check(&self) {
        self.receives.check();
        self.messages.check();
        let table = self.receives.table();
        // A table that thousands have waited in is walked as a whole, however few wait now.
        if cfg!(debug_assertions) && table.len() <= 8 && table.slots() <= CHECKED_SLOTS {
            let mut receives = table.taken();
            let waits =
                receives.any(|(_, one)| self.messages.few().any(|label| one.accepts(label)));
            debug_assert!(!waits, "no receive waits for a message that is here");
        }
    }

    /// Grows the tables to this size, where they are smaller. Allocates, as no other operation does
    /// after construction. Waiting entries keep their order and their names.
    // spec: MATCH-16
    #[cold]
    pub fn grow(&mut self, receives: u32, messages: u32) {
        check_sizes(receives, messages);
        if receives > self.receives.table().slots() {
            self.receives.grow(&self.masks, receives);
        }
        if messages > self.messages.slots() {
            self.messages.grow(&self.masks, messages);
        }
        self.check();
    }

    /// How large its tables are.
    pub const fn sizes(&self) -> Sizes {
        let receives = self.receives.table().slots();
        Sizes { receives, messages: self.messages.slots(), sources: self.sources }
    }

    /// Posts a receive of one message: it takes the oldest unexpected one that it accepts, or
    /// waits.
    // spec: MATCH-4, MATCH-12
    #[inline(always)]
    pub fn post(&mut self, receive: Receive) -> Post {
        self.check();
        let mask = self.mask(&receive.pattern);
        if !self.messages.none_waits() {
            let slot = self.messages.oldest(&self.masks, mask, receive.pattern.label());
            if let Some(slot) = slot {
                return Post::Matched(self.messages.take(&self.masks, slot));
            }
        }
        match self.receives.insert(&self.masks, &receive, mask, 0) {
            Some(id) => Post::Posted(ReceiveId(id)),
            None => Post::Busy,
        }
    }

    /// Posts a multi-receive: it takes messages, one behind the other, until fewer than `least`
    /// bytes are left, or none. It reports each message that it takes now through `taken`, in the
    /// order of arrival.
    // spec: MATCH-4, MATCH-10, MATCH-12
    pub fn post_multi(
        &mut self,
        receive: Receive,
        least: u64,
        mut taken: impl FnMut(Message, Place),
    ) -> PostMulti {
        self.check();
        let (mask, label) = (self.mask(&receive.pattern), receive.pattern.label());
        let Some(id) = self.receives.insert(&self.masks, &receive, mask, least.max(1)) else {
            return PostMulti::Busy;
        };
        while let Some(slot) = self.messages.oldest(&self.masks, mask, label) {
            let message = self.messages.take(&self.masks, slot);
            let place = self.receives.fill(id.slot, message.len);
            taken(message, place);
            if place.released {
                return PostMulti::Released;
            }
        }
        self.check();
        PostMulti::Posted(ReceiveId(id))
    }

    /// A message has come: it goes into the oldest receive that accepts it, or is kept. Messages
    /// of one source must come here in the order in which they were sent.
    // spec: MATCH-3, MATCH-5, MATCH-12
    #[inline(always)]
    pub fn arrive(&mut self, message: Message) -> Arrive {
        self.check();
        self.check_source(message.source);
        let label = message.label();
        let accepts =
            self.receives.at_hand(label).or_else(|| self.receives.oldest(&self.masks, label));
        if let Some(slot) = accepts {
            return Arrive::Matched(self.receives.fill(slot, message.len));
        }
        // A copy that is made here: nothing is stored for it above.
        let Message { source, tag, len, handle, whole } = message;
        let message = Message { source, tag, len, handle, whole };
        match self.messages.insert(&self.masks, &message) {
            Some(id) => Arrive::Unexpected(id),
            None => Arrive::Busy,
        }
    }

    /// The oldest unexpected message that a receive with this pattern would take. It stays.
    // spec: MATCH-6
    pub fn peek(&mut self, pattern: Pattern) -> Option<(MessageId, Message)> {
        let mask = self.mask(&pattern);
        let slot = self.messages.oldest(&self.masks, mask, pattern.label())?;
        Some(self.messages.get(slot))
    }

    /// Sets an unexpected message aside for the holder of its name: no receive takes it, no peek
    /// finds it. False if it is gone, or set aside already.
    // spec: MATCH-7
    pub fn set_aside(&mut self, id: MessageId) -> bool {
        self.check();
        let slot = self.messages.find(id);
        slot.is_some_and(|slot| self.messages.set_aside(&self.masks, slot))
    }

    /// Takes an unexpected message by its name, set aside or not, to receive it or to throw it
    /// away. `None` if it is gone.
    // spec: MATCH-8
    pub fn take(&mut self, id: MessageId) -> Option<Message> {
        self.check();
        let slot = self.messages.find(id)?;
        Some(self.messages.take(&self.masks, slot))
    }

    /// All of an unexpected message's body is here. False if the message is gone.
    // spec: MATCH-14
    pub fn complete(&mut self, id: MessageId) -> bool {
        let slot = self.messages.find(id);
        slot.inspect(|slot| self.messages.complete(*slot)).is_some()
    }

    /// Takes back a receive that waits, and returns its handle. `None` if it waits no longer.
    // spec: MATCH-9
    pub fn cancel(&mut self, id: ReceiveId) -> Option<u64> {
        let is_there = self.receives.table().has(id.0);
        is_there.then(|| self.receives.remove(id.0.slot))
    }

    /// A source is gone. Its number may be given to another one when this returns.
    // spec: MATCH-14
    pub fn remove(&mut self, source: u32, mut removed: impl FnMut(Removed)) {
        for slot in 1..=self.receives.table().slots() {
            if self.receives.is_from(slot, source) {
                let id = ReceiveId(self.receives.table().id(slot));
                let handle = self.receives.remove(slot);
                removed(Removed::Receive { id, handle });
            }
        }
        self.messages.drop_from(&self.masks, source, &mut removed);
        self.check();
    }

    /// The receives that wait, with their handles, in no certain order.
    pub fn receives(&self) -> impl Iterator<Item = (ReceiveId, u64)> {
        self.receives.table().taken().map(|(id, posted)| (ReceiveId(id), posted.handle))
    }

    /// The sources of the receives that wait for messages of one source only, each as often as
    /// there are such receives.
    pub fn awaited(&self) -> impl Iterator<Item = u32> {
        self.receives.table().taken().filter_map(|(_, posted)| posted.source())
    }

    /// The messages that are set aside, in the order in which they were.
    pub fn aside(&self) -> impl Iterator<Item = (MessageId, Message)> {
        self.messages.aside()
    }

    /// Receives that wait.
    pub const fn receive_count(&self) -> u32 {
        self.receives.table().len()
    }

    /// Unexpected messages, those set aside among them.
    pub const fn message_count(&self) -> u32 {
        self.messages.len()
    }

    #[inline(always)]
    fn check_source(&self, source: Option<u32>) {
        let is_known = source.is_none_or(|source| source < self.sources);
        assert!(is_known, "a source is one that there can be");
    }

    /// A pattern's mask and its number in the table.
    #[inline(always)]
    fn mask(&mut self, pattern: &Pattern) -> (Mask, usize) {
        self.check_source(pattern.source);
        let mask = Mask::of(pattern);
        let number = self.masks.find(mask).unwrap_or_else(|| self.add_mask(mask));
        (mask, number)
    }

    /// Gives a new mask a number. A free number takes a pass over the messages. While there are no
    /// messages, the number of a mask without receives serves, whose lists are all empty.
    // spec: MATCH-17
    #[cold]
    fn add_mask(&mut self, mask: Mask) -> usize {
        if let Some(number) = self.masks.add(mask) {
            self.messages.list_all(&self.masks, number);
            return number;
        }
        if !self.messages.none_waits() {
            return ODD;
        }
        let receives = &self.receives;
        self.masks.replace(mask, |number| receives.is_used(number)).unwrap_or(ODD)
    }
}

// spec: MATCH-16, LIM-1
fn check_sizes(receives: u32, messages: u32) {
    assert!((1..=RECEIVES_MAX).contains(&receives), "as many receives as the limits say");
    assert!((1..=UNEXPECTED_MAX).contains(&messages), "as many messages as the limits say");
}

//! Matching as one would write it down: two vectors, scanned in order.
use ayre_proto::matching::{Message, Pattern, Receive, Sizes};

/// A receive that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) handle: u64,
    pattern: Pattern,
    offset: u64,
    left: u64,
    /// None of one that takes a single message.
    least: Option<u64>,
}

/// Where a message went: handle of the receive, offset, bytes, whether it was the last.
pub(crate) type Place = (u64, u64, u64, bool);

/// The result for a receive or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    Matched(T),
    Kept,
    Busy,
}

/// A matcher without ids: handles are names here, and no two are the same.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) sizes: Sizes,
    pub(crate) receives: Vec<Waiting>,
    /// In the order of arrival; those set aside in the order in which they were, in the other one.
    pub(crate) messages: Vec<Message>,
    pub(crate) aside: Vec<Message>,
}

/// The rule itself, bit by bit.
// spec: MATCH-2
pub(crate) fn accepts(pattern: &Pattern, message: &Message) -> bool {
    let source = pattern.source.is_none() || pattern.source == message.source;
    let bit = |word: u64, at: u32| word >> at & 1;
    let same = |at| bit(pattern.tag, at) == bit(message.tag, at);
    source && (0..64).all(|at| bit(pattern.ignore, at) == 1 || same(at))
}

impl Oracle {
    pub(crate) fn new(sizes: Sizes) -> Self {
        Self { sizes, receives: Vec::new(), messages: Vec::new(), aside: Vec::new() }
    }

    /// Tables have no meaning but how much fits.
    pub(crate) fn grow(&mut self, receives: u32, messages: u32) {
        self.sizes.receives = self.sizes.receives.max(receives);
        self.sizes.messages = self.sizes.messages.max(messages);
    }

    fn find(&self, pattern: &Pattern) -> Option<usize> {
        self.messages.iter().position(|message| accepts(pattern, message))
    }

    fn is_full(&self) -> bool {
        self.receives.len() == self.sizes.receives as usize
    }

    pub(crate) fn post(&mut self, receive: Receive) -> Outcome<Message> {
        if let Some(at) = self.find(&receive.pattern) {
            return Outcome::Matched(self.messages.remove(at));
        }
        if self.is_full() {
            return Outcome::Busy;
        }
        self.wait(receive, None);
        Outcome::Kept
    }

    fn wait(&mut self, receive: Receive, least: Option<u64>) {
        let Receive { pattern, capacity, handle } = receive;
        self.receives.push(Waiting { handle, pattern, offset: 0, left: capacity, least });
    }

    /// The messages that it takes, and whether it waits for more. None is Busy.
    pub(crate) fn post_multi(
        &mut self,
        receive: Receive,
        least: u64,
    ) -> Option<(Vec<(Message, Place)>, bool)> {
        if self.is_full() {
            return None;
        }
        self.wait(receive, Some(least.max(1)));
        let mut taken = Vec::new();
        while let Some(at) = self.find(&receive.pattern) {
            let message = self.messages.remove(at);
            let place = self.fill(self.receives.len() - 1, message.len);
            taken.push((message, place));
            if place.3 {
                return Some((taken, false));
            }
        }
        Some((taken, true))
    }

    fn fill(&mut self, at: usize, len: u64) -> Place {
        let receive = &mut self.receives[at];
        let (handle, offset, len) = (receive.handle, receive.offset, len.min(receive.left));
        receive.offset += len;
        receive.left -= len;
        let released = receive.least.is_none_or(|least| receive.left < least);
        if released {
            self.receives.remove(at);
        }
        (handle, offset, len, released)
    }

    pub(crate) fn arrive(&mut self, message: Message) -> Outcome<Place> {
        let oldest = self.receives.iter().position(|waiting| accepts(&waiting.pattern, &message));
        if let Some(at) = oldest {
            return Outcome::Matched(self.fill(at, message.len));
        }
        if self.messages.len() + self.aside.len() == self.sizes.messages as usize {
            return Outcome::Busy;
        }
        self.messages.push(message);
        Outcome::Kept
    }

    pub(crate) fn peek(&self, pattern: &Pattern) -> Option<Message> {
        self.find(pattern).map(|at| self.messages[at])
    }

    pub(crate) fn set_aside(&mut self, handle: u64) -> bool {
        let at = self.messages.iter().position(|message| message.handle == handle);
        if let Some(at) = at {
            let message = self.messages.remove(at);
            self.aside.push(message);
        }
        at.is_some()
    }

    pub(crate) fn take(&mut self, handle: u64) -> Option<Message> {
        for messages in [&mut self.messages, &mut self.aside] {
            if let Some(at) = messages.iter().position(|message| message.handle == handle) {
                return Some(messages.remove(at));
            }
        }
        None
    }

    pub(crate) fn complete(&mut self, handle: u64) -> bool {
        let mut kept = self.messages.iter_mut().chain(&mut self.aside);
        let found = kept.find(|message| message.handle == handle);
        found.map(|message| message.whole = true).is_some()
    }

    pub(crate) fn cancel(&mut self, handle: u64) -> bool {
        let before = self.receives.len();
        self.receives.retain(|waiting| waiting.handle != handle);
        self.receives.len() < before
    }

    /// The handles of the receives and of the messages that go.
    pub(crate) fn remove(&mut self, source: u32) -> (Vec<u64>, Vec<u64>) {
        let (mut receives, mut messages) = (Vec::new(), Vec::new());
        self.receives.retain(|waiting| {
            let goes = waiting.pattern.source == Some(source);
            receives.extend(goes.then_some(waiting.handle));
            !goes
        });
        for kept in [&mut self.messages, &mut self.aside] {
            kept.retain(|message| {
                let goes = message.source == Some(source) && !message.whole;
                messages.extend(goes.then_some(message.handle));
                !goes
            });
        }
        (receives, messages)
    }
}

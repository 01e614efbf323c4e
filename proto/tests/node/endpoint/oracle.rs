//! An oracle of matching: it works out one by one which message goes into which receive.
use std::collections::VecDeque;

/// The source of a receive, its tag, and the bits of the tag that do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) source: Option<usize>,
    pub(crate) tag: Option<(u64, u64)>,
}

/// A message as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) source: usize,
    /// Of those between the two.
    pub(crate) number: u64,
    pub(crate) tag: Option<u64>,
    pub(crate) data: Option<u64>,
    pub(crate) len: u64,
}

impl Pattern {
    fn accepts(&self, message: &Message) -> bool {
        let is_tag = match (self.tag, message.tag) {
            (Some((tag, ignore)), Some(of)) => tag & !ignore == of & !ignore,
            (None, None) => true,
            _ => false,
        };
        is_tag && self.source.is_none_or(|source| source == message.source)
    }
}

/// A receive that waits.
#[derive(Clone, Debug)]
struct Posted {
    pattern: Pattern,
    context: u128,
    len: u64,
    filled: u64,
    least: Option<u64>,
}

impl Posted {
    fn take(&mut self, message: Message) -> Placed {
        let (offset, len) = (self.filled, message.len.min(self.len - self.filled));
        self.filled += len;
        let released = self.least.is_none_or(|least| self.len - self.filled < least.max(1));
        Placed { context: self.context, message, offset, len, released }
    }
}

/// Where a message is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) context: u128,
    pub(crate) message: Message,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The receive takes no more.
    pub(crate) released: bool,
}

/// One endpoint's receives and messages.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    posted: VecDeque<Posted>,
    /// And whether all of it is here.
    waiting: VecDeque<(Message, bool)>,
}

impl Oracle {
    pub(crate) fn arrive(&mut self, message: Message, is_whole: bool) -> Option<Placed> {
        let at = self.posted.iter().position(|posted| posted.pattern.accepts(&message));
        let Some(at) = at else {
            self.waiting.push_back((message, is_whole));
            return None;
        };
        let placed = self.posted[at].take(message);
        if placed.released {
            self.posted.remove(at);
        }
        Some(placed)
    }

    pub(crate) fn post(
        &mut self,
        pattern: Pattern,
        (context, len): (u128, u64),
        least: Option<u64>,
    ) -> Vec<Placed> {
        let mut posted = Posted { pattern, context, len, filled: 0, least };
        let mut placed = Vec::new();
        while let Some(message) = self.take(pattern) {
            placed.push(posted.take(message));
            if placed.last().is_some_and(|placed: &Placed| placed.released) {
                return placed;
            }
        }
        self.posted.push_back(posted);
        placed
    }

    pub(crate) fn find(&self, pattern: Pattern) -> Option<Message> {
        self.waiting.iter().map(|(message, _)| *message).find(|it| pattern.accepts(it))
    }

    /// Takes the oldest message that a receive of this pattern takes.
    pub(crate) fn take(&mut self, pattern: Pattern) -> Option<Message> {
        let at = self.waiting.iter().position(|(message, _)| pattern.accepts(message))?;
        self.waiting.remove(at).map(|(message, _)| message)
    }

    /// Whether a receive was taken back that waited.
    pub(crate) fn cancel(&mut self, context: u128) -> bool {
        let at = self.posted.iter().position(|posted| posted.context == context);
        at.and_then(|at| self.posted.remove(at)).is_some()
    }

    /// Nothing more comes from a source: the receives that end by it.
    pub(crate) fn end(&mut self, source: usize) -> Vec<u128> {
        self.waiting.retain(|(message, is_whole)| *is_whole || message.source != source);
        let is_over = |posted: &Posted| posted.pattern.source == Some(source);
        let ended = self.posted.iter().filter(|it| is_over(it)).map(|it| it.context).collect();
        self.posted.retain(|posted| !is_over(posted));
        ended
    }

    pub(crate) fn messages(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn receives(&self) -> Vec<u128> {
        self.posted.iter().map(|posted| posted.context).collect()
    }
}

//! A matcher and the oracle beside it, for steps from anywhere.
use crate::oracle::{Oracle, Outcome, accepts};
use ayre_proto::matching::{
    Arrive, Matcher, Message, MessageId, Pattern, Place, Post, PostMulti, Receive, ReceiveId,
    Removed, Sizes,
};
use std::collections::BTreeSet;

/// Sources of a case.
pub(crate) const SOURCES: u32 = 4;

/// More masks than a matcher has lists for; a case may use the first few only.
pub(crate) const IGNORED: [u64; 7] =
    [0, 1 << 63, u64::MAX, 3, 1 << 33, 1 << 33 | 1 << 63, u64::MAX >> 1];

/// A step that is done to both.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Post(Pattern, u64),
    PostMulti(Pattern, u64, u64),
    Arrive {
        source: Option<u32>,
        tag: u64,
        len: u64,
        whole: bool,
    },
    Peek(Pattern),
    /// Of the n-th message that was kept, counted back from the youngest.
    SetAside(usize),
    Take(usize),
    Complete(usize),
    /// Of the n-th receive that waited, counted the same way.
    Cancel(usize),
    Remove(u32),
    /// To this many receives and messages, where there are fewer.
    Grow(u32, u32),
}

/// Both of them, and every name that the matcher ever gave.
pub(crate) struct Pair {
    matcher: Matcher,
    oracle: Oracle,
    handle: u64,
    receives: Vec<(ReceiveId, u64)>,
    messages: Vec<(MessageId, u64)>,
}

/// The n-th name from the end, stale or not.
fn pick<T: Copy>(names: &[(T, u64)], by: usize) -> Option<(T, u64)> {
    names.iter().rev().nth(by).copied()
}

impl Pair {
    pub(crate) fn new(sizes: Sizes, seed: u64) -> Self {
        let (matcher, oracle) = (Matcher::new(sizes, seed), Oracle::new(sizes));
        Self { matcher, oracle, handle: 0, receives: Vec::new(), messages: Vec::new() }
    }

    pub(crate) fn handle(&mut self) -> u64 {
        self.handle += 1;
        self.handle
    }

    fn waits(&mut self, id: ReceiveId, handle: u64) {
        assert!(self.receives.iter().all(|(other, _)| *other != id), "a name is given once");
        self.receives.push((id, handle));
    }

    fn check(&self, place: Place, expected: (u64, u64, u64, bool)) {
        assert_eq!((place.handle, place.offset, place.len, place.released), expected);
        let known = self.receives.iter().find(|(id, _)| *id == place.id);
        assert!(known.is_none_or(|(_, handle)| *handle == place.handle));
    }

    pub(crate) fn post(&mut self, pattern: Pattern, capacity: u64) {
        let receive = Receive { pattern, capacity, handle: self.handle() };
        match (self.matcher.post(receive), self.oracle.post(receive)) {
            (Post::Matched(found), Outcome::Matched(expected)) => {
                assert!(accepts(&pattern, &found) && pattern.accepts(&found));
                assert_eq!(found, expected);
            }
            (Post::Posted(id), Outcome::Kept) => self.waits(id, receive.handle),
            (Post::Busy, Outcome::Busy) => {}
            other => panic!("{other:?}"),
        }
    }

    fn post_multi(&mut self, pattern: Pattern, capacity: u64, least: u64) {
        let receive = Receive { pattern, capacity, handle: self.handle() };
        let mut taken = Vec::new();
        let posted = self.matcher.post_multi(receive, least, |message, place| {
            taken.push((message, place));
        });
        let expected = self.oracle.post_multi(receive, least);
        match (posted, &expected) {
            (PostMulti::Posted(id), Some((_, true))) => self.waits(id, receive.handle),
            (PostMulti::Released, Some((_, false))) | (PostMulti::Busy, None) => {}
            other => panic!("{other:?}"),
        }
        let expected = expected.map(|(taken, _)| taken).unwrap_or_default();
        assert_eq!(taken.len(), expected.len());
        for ((message, place), (wanted, put)) in taken.into_iter().zip(expected) {
            assert_eq!(message, wanted);
            self.check(place, put);
        }
    }

    pub(crate) fn arrive(&mut self, message: Message) {
        match (self.matcher.arrive(message), self.oracle.arrive(message)) {
            (Arrive::Matched(place), Outcome::Matched(expected)) => self.check(place, expected),
            (Arrive::Unexpected(id), Outcome::Kept) => {
                assert!(self.messages.iter().all(|(other, _)| *other != id), "given once");
                self.messages.push((id, message.handle));
            }
            (Arrive::Busy, Outcome::Busy) => {}
            other => panic!("{other:?}"),
        }
    }

    fn peek(&mut self, pattern: Pattern) {
        let found = self.matcher.peek(pattern);
        assert_eq!(found.map(|(_, message)| message), self.oracle.peek(&pattern));
        if let Some((id, message)) = found {
            assert!(self.messages.contains(&(id, message.handle)));
        }
    }

    fn named(&mut self, step: Step) {
        match step {
            Step::SetAside(by) => {
                let Some((id, handle)) = pick(&self.messages, by) else { return };
                assert_eq!(self.matcher.set_aside(id), self.oracle.set_aside(handle));
            }
            Step::Take(by) => {
                let Some((id, handle)) = pick(&self.messages, by) else { return };
                assert_eq!(self.matcher.take(id), self.oracle.take(handle));
            }
            Step::Complete(by) => {
                let Some((id, handle)) = pick(&self.messages, by) else { return };
                assert_eq!(self.matcher.complete(id), self.oracle.complete(handle));
            }
            Step::Cancel(by) => {
                let Some((id, handle)) = pick(&self.receives, by) else { return };
                let cancelled = self.oracle.cancel(handle);
                assert_eq!(self.matcher.cancel(id), cancelled.then_some(handle));
            }
            _ => unreachable!("all that have a name"),
        }
    }

    fn remove(&mut self, source: u32) {
        let (mut receives, mut messages) = (Vec::new(), Vec::new());
        self.matcher.remove(source, |removed| match removed {
            Removed::Receive { handle, .. } => receives.push(handle),
            Removed::Message { handle, .. } => messages.push(handle),
        });
        let expected = self.oracle.remove(source);
        receives.sort_unstable();
        assert_eq!((receives, messages), expected);
    }

    pub(crate) fn apply(&mut self, step: Step) {
        match step {
            Step::Post(pattern, capacity) => self.post(pattern, capacity),
            Step::PostMulti(pattern, capacity, least) => self.post_multi(pattern, capacity, least),
            Step::Arrive { source, tag, len, whole } => {
                let handle = self.handle();
                self.arrive(Message { source, tag, len, handle, whole });
            }
            Step::Peek(pattern) => self.peek(pattern),
            Step::Remove(source) => self.remove(source),
            Step::Grow(receives, messages) => {
                self.matcher.grow(receives, messages);
                self.oracle.grow(receives, messages);
            }
            named => self.named(named),
        }
        self.compare();
    }

    pub(crate) fn compare(&self) {
        let Oracle { receives, messages, aside, sizes } = &self.oracle;
        assert_eq!(self.matcher.sizes(), *sizes);
        assert_eq!(self.matcher.receive_count() as usize, receives.len());
        assert_eq!(self.matcher.message_count() as usize, messages.len() + aside.len());
        let waiting: BTreeSet<u64> = self.matcher.receives().map(|(_, handle)| handle).collect();
        assert_eq!(waiting, receives.iter().map(|waiting| waiting.handle).collect());
        assert!(self.matcher.aside().map(|(_, message)| message).eq(aside.iter().copied()));
    }
}

/// Steps that are written as bytes, four for each; the first two are the sizes.
pub(crate) fn play(script: &[u8]) {
    let [receives, messages, steps @ ..] = script else { return };
    let size = |byte: &u8| u32::from(byte % 16) + 1;
    let sizes = Sizes { receives: size(receives), messages: size(messages), sources: SOURCES };
    let mut pair = Pair::new(sizes, u64::from(*receives));
    for step in steps.chunks_exact(4) {
        pair.apply(read([step[0], step[1], step[2], step[3]]));
    }
}

/// Any four bytes are a step.
fn read([what, label, len, more]: [u8; 4]) -> Step {
    let source = Some(u32::from(label % 5)).filter(|source| *source < SOURCES);
    let bits = u64::from(label / 5);
    let tag = bits & 3 | (bits >> 2 & 1) << 33 | (bits >> 3 & 1) << 63;
    let pattern = Pattern { source, tag, ignore: IGNORED[usize::from(more) % IGNORED.len()] };
    let (by, len) = (usize::from(len % 32), u64::from(len));
    match what % 16 {
        0..6 => Step::Arrive { source, tag, len, whole: more % 2 == 0 },
        6..9 => Step::Post(pattern, len),
        9 => Step::PostMulti(pattern, len, u64::from(more)),
        10 => Step::Peek(pattern),
        11 => Step::SetAside(by),
        12 => Step::Take(by),
        13 => Step::Complete(by),
        14 => Step::Cancel(by),
        _ if more % 3 == 0 => Step::Grow(by as u32 + 1, u32::from(label % 48) + 1),
        _ => Step::Remove(u32::from(more) % SOURCES),
    }
}

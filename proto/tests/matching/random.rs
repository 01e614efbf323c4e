//! Random operations, the matcher beside the oracle.
use crate::oracle::{Oracle, Outcome, accepts};
use ayre_proto::matching::{
    Arrive, Matcher, Message, MessageId, Pattern, Place, Post, PostMulti, Receive, ReceiveId,
    Removed, Sizes,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const SOURCES: u32 = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
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
}

/// Tags that differ in low, middle and high bits.
fn tags() -> impl Strategy<Value = u64> {
    (0..3u64, 0..2u64, 0..2u64).prop_map(|(low, middle, high)| low | middle << 33 | high << 63)
}

/// As many of the masks as a case uses: more than a matcher has lists for, or only a few.
const IGNORED: [u64; 7] = [0, 1 << 63, u64::MAX, 3, 1 << 33, 1 << 33 | 1 << 63, u64::MAX >> 1];

fn patterns(masks: usize) -> impl Strategy<Value = Pattern> {
    let source = prop_oneof![3 => (0..SOURCES).prop_map(Some), 1 => Just(None)];
    (source, tags(), 0..masks).prop_map(|(source, tag, mask)| {
        let ignore = IGNORED[mask];
        Pattern { source, tag, ignore }
    })
}

fn steps(masks: usize) -> impl Strategy<Value = Vec<Step>> {
    let source = || prop_oneof![9 => (0..SOURCES).prop_map(Some), 1 => Just(None)];
    let arrive = (source(), tags(), 0..40u64, any::<bool>())
        .prop_map(|(source, tag, len, whole)| Step::Arrive { source, tag, len, whole });
    let multi = (patterns(masks), 0..90u64, 0..20u64);
    let step = prop_oneof![
        20 => arrive,
        12 => (patterns(masks), 0..60u64).prop_map(|(pattern, len)| Step::Post(pattern, len)),
        4 => multi.prop_map(|(pattern, len, least)| Step::PostMulti(pattern, len, least)),
        4 => patterns(masks).prop_map(Step::Peek),
        2 => (0..20usize).prop_map(Step::SetAside),
        2 => (0..20usize).prop_map(Step::Take),
        2 => (0..20usize).prop_map(Step::Complete),
        2 => (0..20usize).prop_map(Step::Cancel),
        1 => (0..SOURCES).prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 1..250)
}

/// Both of them, and every name that the matcher ever gave.
struct Pair {
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
    fn new(sizes: Sizes, seed: u64) -> Self {
        let (matcher, oracle) = (Matcher::new(sizes, seed), Oracle::new(sizes));
        Self { matcher, oracle, handle: 0, receives: Vec::new(), messages: Vec::new() }
    }

    fn handle(&mut self) -> u64 {
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

    fn post(&mut self, pattern: Pattern, capacity: u64) {
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

    fn arrive(&mut self, message: Message) {
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

    fn apply(&mut self, step: Step) {
        match step {
            Step::Post(pattern, capacity) => self.post(pattern, capacity),
            Step::PostMulti(pattern, capacity, least) => self.post_multi(pattern, capacity, least),
            Step::Arrive { source, tag, len, whole } => {
                let handle = self.handle();
                self.arrive(Message { source, tag, len, handle, whole });
            }
            Step::Peek(pattern) => self.peek(pattern),
            Step::Remove(source) => self.remove(source),
            named => self.named(named),
        }
        self.compare();
    }

    fn compare(&self) {
        let Oracle { receives, messages, aside, .. } = &self.oracle;
        assert_eq!(self.matcher.receive_count() as usize, receives.len());
        assert_eq!(self.matcher.message_count() as usize, messages.len() + aside.len());
        let waiting: BTreeSet<u64> = self.matcher.receives().map(|(_, handle)| handle).collect();
        assert_eq!(waiting, receives.iter().map(|waiting| waiting.handle).collect());
        assert!(self.matcher.aside().map(|(_, message)| message).eq(aside.iter().copied()));
    }
}

fn cases() -> impl Strategy<Value = (Sizes, Vec<Step>)> {
    let sizes = (1..12u32, 1..16u32).prop_map(|(receives, messages)| Sizes {
        receives,
        messages,
        sources: SOURCES,
    });
    let masks = prop_oneof![1 => 1..3usize, 1 => Just(IGNORED.len())];
    (sizes, masks.prop_flat_map(steps))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    // spec: MATCH-2, MATCH-3, MATCH-4, MATCH-5, MATCH-6, MATCH-7, MATCH-8, MATCH-9, MATCH-10
    // spec: MATCH-11, MATCH-12, MATCH-13, MATCH-14, MATCH-15, MATCH-17
    #[test]
    fn a_matcher_is_two_vectors_scanned_in_order(
        (sizes, steps) in cases(),
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(sizes, seed);
        for step in steps {
            pair.apply(step);
        }
    }
}

/// Long lists: many of one label, many labels, and holes everywhere.
// spec: MATCH-3, MATCH-4, MATCH-5, MATCH-18
#[test]
fn long_lists_keep_their_order() {
    let sizes = Sizes { receives: 600, messages: 2400, sources: SOURCES };
    let mut pair = Pair::new(sizes, 1);
    let mut state = 7u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % end
    };
    for round in 0..12_000u64 {
        // First messages gain, then receives do, then again.
        let more = if round / 3000 % 2 == 0 { 70 } else { 30 };
        let (source, tag) = (below(u64::from(SOURCES)) as u32, below(40).saturating_sub(20));
        if below(100) < more {
            let handle = pair.handle();
            pair.arrive(Message { source: Some(source), tag, len: 8, handle, whole: true });
        } else {
            let source = (below(10) > 0).then_some(source);
            let ignore = [0, 0, 0, 1, u64::MAX][below(5) as usize];
            pair.post(Pattern { source, tag, ignore }, 8);
        }
    }
    pair.compare();
}

//! Random operations, the matcher beside the oracle.
use crate::pair::{IGNORED, Pair, SOURCES, Step, play};
use ayre_proto::matching::{Arrive, Matcher, Message, Pattern, Post, Receive, Sizes};
use proptest::prelude::*;

/// Tags that differ in low, middle and high bits.
fn tags() -> impl Strategy<Value = u64> {
    (0..3u64, 0..2u64, 0..2u64).prop_map(|(low, middle, high)| low | middle << 33 | high << 63)
}

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
        1 => (1..30u32, 1..40u32).prop_map(|(receives, messages)| Step::Grow(receives, messages)),
    ];
    prop::collection::vec(step, 1..250)
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
    // spec: MATCH-2, MATCH-3, MATCH-4, MATCH-5, MATCH-6, MATCH-7, MATCH-8, MATCH-9, MATCH-10
    // spec: MATCH-11, MATCH-12, MATCH-14, MATCH-15, MATCH-16, MATCH-17
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

    /// The scripts that the fuzz target plays.
    // spec: MATCH-3, MATCH-4, MATCH-12, MATCH-15, ERR-7
    #[test]
    fn any_bytes_are_steps(script in prop::collection::vec(any::<u8>(), 0..600)) {
        play(&script);
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

/// As an endpoint has it: small tables that double whenever they are full, thousands of entries,
/// and several masks, more than there are lists for towards the end.
// spec: MATCH-3, MATCH-4, MATCH-5, MATCH-16, MATCH-17
#[test]
fn tables_that_double_whenever_they_are_full_keep_every_order() {
    let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: SOURCES }, 5);
    let double = |matcher: &mut Matcher| {
        let Sizes { receives, messages, .. } = matcher.sizes();
        matcher.grow(2 * receives, 2 * messages);
    };
    let masks = [0, 1 << 63, 1 << 62 | 1 << 63];
    let of = |at: u64| Pattern { source: Some(at as u32 % 2), tag: at / 2, ignore: masks[0] };
    for at in 0..3000 {
        let ignore = masks[at as usize % 3] | if at > 2900 { 1 << (at % 20 + 30) } else { 0 };
        let pattern = Pattern { ignore, ..of(at) };
        let receive = Receive { pattern, capacity: 8, handle: at };
        while matcher.post(receive) == Post::Busy {
            double(&mut matcher);
        }
    }
    // Those that match, backwards, among as many that do not.
    for at in (0..3000).rev() {
        let Pattern { source, tag, .. } = of(at);
        for (tag, handle) in [(tag + 10_000, at), (tag, at)] {
            let message = Message { source, tag, len: 8, handle, whole: true };
            loop {
                match matcher.arrive(message) {
                    Arrive::Matched(place) => assert_eq!((place.handle, tag), (at, at / 2)),
                    Arrive::Unexpected(_) => assert_eq!(tag, at / 2 + 10_000),
                    Arrive::Busy => {
                        double(&mut matcher);
                        continue;
                    }
                }
                break;
            }
        }
    }
    assert_eq!((matcher.receive_count(), matcher.message_count()), (0, 3000));
    for at in (0..3000).step_by(7).chain((0..3000).filter(|at| at % 7 != 0)) {
        let Pattern { source, tag, .. } = of(at);
        let pattern = Pattern { source, tag: tag + 10_000, ignore: masks[at as usize % 3] };
        match matcher.post(Receive { pattern, capacity: 8, handle: 0 }) {
            Post::Matched(message) => assert_eq!(message.handle, at),
            other => panic!("{other:?}"),
        }
    }
}

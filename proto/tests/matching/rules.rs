//! The rules of spec/45, one after the other.
use ayre_proto::matching::{
    Arrive, Matcher, Message, MessageId, Pattern, Place, Post, PostMulti, Receive, ReceiveId,
    Removed, Sizes,
};

fn matcher() -> Matcher {
    Matcher::new(Sizes { receives: 16, messages: 64, sources: 8 }, 42)
}

fn from(source: u32, tag: u64) -> Pattern {
    Pattern { source: Some(source), tag, ignore: 0 }
}

fn any(tag: u64, ignore: u64) -> Pattern {
    Pattern { source: None, tag, ignore }
}

fn receive(pattern: Pattern, handle: u64) -> Receive {
    Receive { pattern, capacity: 100, handle }
}

fn message(source: u32, tag: u64, handle: u64) -> Message {
    Message { source: Some(source), tag, len: 10, handle, whole: true }
}

fn posted(matcher: &mut Matcher, pattern: Pattern, handle: u64) -> ReceiveId {
    match matcher.post(receive(pattern, handle)) {
        Post::Posted(id) => id,
        other => panic!("{other:?}"),
    }
}

fn kept(matcher: &mut Matcher, message: Message) -> MessageId {
    match matcher.arrive(message) {
        Arrive::Unexpected(id) => id,
        other => panic!("{other:?}"),
    }
}

fn placed(matcher: &mut Matcher, message: Message) -> Place {
    match matcher.arrive(message) {
        Arrive::Matched(place) => place,
        other => panic!("{other:?}"),
    }
}

/// Handle of the message that a receive takes at once.
fn got(matcher: &mut Matcher, pattern: Pattern) -> u64 {
    match matcher.post(receive(pattern, 0)) {
        Post::Matched(message) => message.handle,
        other => panic!("{other:?}"),
    }
}

// spec: MATCH-1
#[test]
fn plain_messages_have_no_tag_and_a_space_of_their_own() {
    let (mut tagged, mut plain) = (matcher(), matcher());
    posted(&mut tagged, any(0, u64::MAX), 1);
    let id = posted(&mut plain, Pattern::plain(Some(3)), 2);
    kept(&mut plain, message(4, 0, 1));
    let place = placed(&mut plain, message(3, 0, 2));
    assert_eq!((place.id, place.handle), (id, 2));
    assert_eq!(got(&mut plain, Pattern::plain(None)), 1);
    assert_eq!(tagged.receive_count(), 1, "nothing has come here");
}

// spec: MATCH-2
#[test]
fn a_receive_accepts_by_source_and_by_the_bits_it_does_not_ignore() {
    let high = Pattern { source: Some(1), tag: 0xab00, ignore: 0xff };
    for (source, tag, accepted) in
        [(1, 0xab00, true), (1, 0xabff, true), (1, 0xaa00, false), (2, 0xab00, false)]
    {
        let offered = message(source, tag, 0);
        assert_eq!(high.accepts(&offered), accepted);
        let mut matcher = matcher();
        posted(&mut matcher, high, 5);
        assert_eq!(matches!(matcher.arrive(offered), Arrive::Matched(_)), accepted);
        kept(&mut matcher, message(7, 9, 1));
        assert_eq!(matcher.peek(high), None, "the other message is none of it");
    }
}

// spec: MATCH-2
#[test]
fn a_message_of_an_unknown_source_is_for_receives_from_any() {
    let mut matcher = matcher();
    posted(&mut matcher, from(0, 1), 1);
    let unknown = Message { source: None, ..message(0, 1, 7) };
    kept(&mut matcher, unknown);
    assert_eq!(got(&mut matcher, any(1, 0)), 7);
    posted(&mut matcher, any(1, 0), 2);
    assert_eq!(placed(&mut matcher, unknown).handle, 2);
}

// spec: MATCH-3
#[test]
fn a_message_goes_to_the_oldest_receive_whatever_that_looks_at() {
    let mut matcher = matcher();
    let patterns = [any(1, 0), from(2, 1), any(0, u64::MAX), from(2, 1), any(1, 2)];
    for (handle, pattern) in patterns.into_iter().enumerate() {
        posted(&mut matcher, pattern, handle as u64);
    }
    let order: Vec<u64> = (0..5).map(|_| placed(&mut matcher, message(2, 1, 0)).handle).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
}

// spec: MATCH-4, MATCH-5
#[test]
fn a_receive_takes_the_oldest_message_that_it_accepts() {
    let mut matcher = matcher();
    for (handle, (source, tag)) in [(1, 5), (2, 5), (1, 6), (1, 5), (2, 6)].iter().enumerate() {
        kept(&mut matcher, message(*source, *tag, handle as u64));
    }
    assert_eq!(got(&mut matcher, from(1, 6)), 2);
    assert_eq!(got(&mut matcher, any(6, 0)), 4);
    assert_eq!(got(&mut matcher, any(0, u64::MAX)), 0);
    assert_eq!(got(&mut matcher, from(1, 5)), 3);
    assert_eq!(got(&mut matcher, any(5, 0)), 1);
    assert_eq!(matcher.message_count(), 0);
}

// spec: MATCH-5
#[test]
fn messages_of_one_source_are_received_in_the_order_they_were_sent() {
    let mut matcher = matcher();
    posted(&mut matcher, from(1, 9), 100);
    assert_eq!(placed(&mut matcher, message(1, 9, 0)).handle, 100);
    for handle in 1..20 {
        kept(&mut matcher, message(1, 9, handle));
        kept(&mut matcher, message(2, 9, 100 + handle));
    }
    for handle in 1..20 {
        // However it is asked for.
        let ask = [from(1, 9), Pattern { source: Some(1), tag: 0, ignore: u64::MAX }];
        assert_eq!(got(&mut matcher, ask[handle as usize % 2]), handle);
    }
}

// spec: MATCH-6
#[test]
fn a_peek_leaves_the_message_where_it_is() {
    let mut matcher = matcher();
    assert_eq!(matcher.peek(any(0, u64::MAX)), None);
    let id = kept(&mut matcher, message(1, 2, 3));
    kept(&mut matcher, message(1, 2, 4));
    for pattern in [from(1, 2), any(2, 0), any(0, u64::MAX)] {
        assert_eq!(matcher.peek(pattern), Some((id, message(1, 2, 3))));
    }
    assert_eq!(matcher.peek(from(1, 3)), None);
    assert_eq!(matcher.receive_count(), 0, "a peek does not wait");
    assert_eq!(got(&mut matcher, from(1, 2)), 3);
}

// spec: MATCH-7, MATCH-8
#[test]
fn a_claimed_message_is_received_only_by_its_id() {
    let mut matcher = matcher();
    let first = kept(&mut matcher, message(1, 2, 3));
    let second = kept(&mut matcher, message(1, 2, 4));
    assert!(matcher.set_aside(first));
    assert!(!matcher.set_aside(first), "once");
    assert_eq!(matcher.peek(from(1, 2)).map(|(id, _)| id), Some(second));
    assert_eq!(got(&mut matcher, any(0, u64::MAX)), 4);
    posted(&mut matcher, from(1, 2), 5);
    assert_eq!(matcher.aside().map(|(id, _)| id).collect::<Vec<_>>(), [first]);
    assert_eq!(matcher.take(first), Some(message(1, 2, 3)));
    assert_eq!(matcher.take(first), None);
    assert_eq!(matcher.message_count(), 0);
}

// spec: MATCH-8
#[test]
fn a_message_is_thrown_away_by_its_name() {
    let mut matcher = matcher();
    let first = kept(&mut matcher, message(1, 2, 3));
    kept(&mut matcher, message(1, 2, 4));
    assert_eq!(matcher.take(first).map(|message| message.handle), Some(3));
    assert_eq!(got(&mut matcher, from(1, 2)), 4);
}

// spec: MATCH-9
#[test]
fn a_cancelled_receive_takes_no_message() {
    let mut matcher = matcher();
    let first = posted(&mut matcher, from(1, 2), 10);
    let second = posted(&mut matcher, from(1, 2), 11);
    assert_eq!(matcher.cancel(first), Some(10));
    assert_eq!(matcher.cancel(first), None, "it is gone");
    assert_eq!(placed(&mut matcher, message(1, 2, 0)).handle, 11);
    assert_eq!(matcher.cancel(second), None, "it has its message");
}

fn sized(len: u64, handle: u64) -> Message {
    Message { len, ..message(1, 0, handle) }
}

// spec: MATCH-10
#[test]
fn a_multi_receive_goes_on_until_less_than_its_least_is_left() {
    let mut matcher = matcher();
    let many = Receive { pattern: Pattern::plain(None), capacity: 100, handle: 6 };
    let PostMulti::Posted(id) = matcher.post_multi(many, 20, |_, _| panic!("nothing is there"))
    else {
        panic!("it waits")
    };
    posted(&mut matcher, Pattern::plain(None), 7);
    let mut next = |len| placed(&mut matcher, sized(len, 0));
    let place = |offset, len, released| Place { id, handle: 6, offset, len, released };
    assert_eq!(next(30), place(0, 30, false));
    assert_eq!(next(0), place(30, 0, false));
    assert_eq!(next(50), place(30, 50, false), "20 are left");
    assert_eq!(next(1), place(80, 1, true), "19 are left");
    assert_eq!(next(1).handle, 7, "the next one, posted after it");
    assert_eq!(matcher.cancel(id), None);
}

// spec: MATCH-10, MATCH-4
#[test]
fn a_multi_receive_begins_with_the_kept_messages() {
    let mut matcher = matcher();
    for handle in 0..4 {
        kept(&mut matcher, sized(10, handle));
    }
    let mut taken = Vec::new();
    let many = |capacity| Receive { pattern: Pattern::plain(Some(1)), capacity, handle: 6 };
    let end = matcher.post_multi(many(30), 11, |message, place| {
        taken.push((message.handle, place.offset, place.released));
    });
    assert_eq!(end, PostMulti::Released);
    assert_eq!(taken, [(0, 0, false), (1, 10, true)]);
    let mut rest = Vec::new();
    let end = matcher.post_multi(many(30), 0, |message, _| rest.push(message.handle));
    let PostMulti::Posted(id) = end else { panic!("ten bytes are left") };
    assert_eq!(rest, [2, 3]);
    let last = placed(&mut matcher, sized(10, 4));
    assert_eq!((last.id, last.offset, last.released), (id, 20, true), "none is left");
}

// spec: MATCH-11
#[test]
fn a_message_longer_than_its_buffer_is_truncated() {
    let mut matcher = matcher();
    posted(&mut matcher, Pattern::plain(None), 1);
    let place = placed(&mut matcher, sized(101, 0));
    assert_eq!((place.offset, place.len, place.released), (0, 100, true));
    let many = Receive { pattern: Pattern::plain(None), capacity: 100, handle: 6 };
    assert!(matches!(matcher.post_multi(many, 8, |_, _| {}), PostMulti::Posted(_)));
    assert_eq!(placed(&mut matcher, sized(90, 0)).len, 90);
    let cut = placed(&mut matcher, sized(u64::MAX, 0));
    assert_eq!((cut.offset, cut.len, cut.released), (90, 10, true));
}

// spec: MATCH-14
#[test]
fn removing_a_source_ends_its_receives_and_partial_messages() {
    let mut matcher = matcher();
    let waiting = posted(&mut matcher, from(1, 50), 10);
    posted(&mut matcher, from(2, 50), 11);
    posted(&mut matcher, any(50, 0), 12);
    let partial = |handle| Message { whole: false, ..message(1, 1, handle) };
    let (lost, whole) = (kept(&mut matcher, partial(20)), kept(&mut matcher, message(1, 1, 21)));
    let (came, aside) = (kept(&mut matcher, partial(22)), kept(&mut matcher, partial(23)));
    let other = kept(&mut matcher, Message { source: Some(2), ..partial(24) });
    assert!(matcher.complete(came) && matcher.set_aside(aside));
    let mut gone = Vec::new();
    matcher.remove(1, |removed| gone.push(removed));
    let expected = [
        Removed::Receive { id: waiting, handle: 10 },
        Removed::Message { id: lost, handle: 20 },
        Removed::Message { id: aside, handle: 23 },
    ];
    assert_eq!(gone, expected);
    assert_eq!(got(&mut matcher, from(1, 1)), 21);
    assert_eq!(got(&mut matcher, from(1, 1)), 22);
    assert_eq!(matcher.take(whole), None);
    assert_eq!(matcher.take(other).map(|message| message.handle), Some(24));
    assert!(!matcher.complete(lost));
    assert_eq!(placed(&mut matcher, message(2, 50, 0)).handle, 11);
    assert_eq!(placed(&mut matcher, message(3, 50, 0)).handle, 12);
}

// spec: MATCH-15
#[test]
fn a_stale_name_never_names_another() {
    let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: 8 }, 42);
    let mut old = Vec::new();
    for round in 0..50 {
        let id = kept(&mut matcher, message(1, 2, round));
        assert_eq!(got(&mut matcher, from(1, 2)), round);
        let waiting = posted(&mut matcher, from(1, 2), round);
        for (stale, receive) in &old {
            assert!(!matcher.set_aside(*stale) && !matcher.complete(*stale));
            assert_eq!((matcher.take(*stale), matcher.cancel(*receive)), (None, None));
        }
        old.push((id, waiting));
        assert_eq!(placed(&mut matcher, message(1, 2, 0)).id, waiting);
    }
}

/// Each bit ignored alone is a mask of its own: far more than have lists.
// spec: MATCH-17
#[test]
fn any_number_of_masks_gives_the_same_order() {
    let mut matcher = Matcher::new(Sizes { receives: 64, messages: 256, sources: 8 }, 42);
    for bit in 0..64u64 {
        posted(&mut matcher, Pattern { ignore: 1 << bit, ..from(1, 0) }, bit);
    }
    for bit in [63, 5, 40] {
        assert_eq!(placed(&mut matcher, message(1, 1 << bit, 0)).handle, bit);
    }
    for handle in 100..103 {
        posted(&mut matcher, from(1, 0), handle);
    }
    let order: Vec<u64> = (0..64).map(|_| placed(&mut matcher, message(1, 0, 0)).handle).collect();
    let left = (0..64).filter(|bit| ![63, 5, 40].contains(bit)).chain(100..103);
    assert_eq!(order, left.collect::<Vec<u64>>());
    assert_eq!(matcher.receive_count(), 0);
    for handle in 0..100 {
        kept(&mut matcher, message(1, handle % 2, handle));
    }
    for bit in 0..50 {
        assert_eq!(got(&mut matcher, Pattern { ignore: 1 << bit, ..from(1, 0) }), bit * 2);
        if bit == 0 {
            // It ignores what tells the two kinds apart, and has taken one of either.
            assert_eq!(got(&mut matcher, Pattern { ignore: 1, ..from(1, 0) }), 1);
            kept(&mut matcher, message(1, 1, 1));
        }
    }
}

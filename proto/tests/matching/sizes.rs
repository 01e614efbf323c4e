//! Sizes at their limits, and the sources that exceed them.
use ayre_proto::limits::{RECEIVES_MAX, UNEXPECTED_MAX};
use ayre_proto::matching::{Arrive, Matcher, Message, Pattern, Post, Receive, Sizes};

fn message(source: u32) -> Message {
    Message { source: Some(source), tag: 0, len: 1, handle: 0, whole: true }
}

fn receive(source: u32) -> Receive {
    let pattern = Pattern { source: Some(source), tag: 0, ignore: 0 };
    Receive { pattern, capacity: 1, handle: 0 }
}

// spec: MATCH-12
#[test]
fn a_full_table_of_messages_does_not_stop_those_that_are_waited_for() {
    let mut matcher = Matcher::new(Sizes { receives: 2, messages: 1, sources: 2 }, 0);
    assert!(matches!(matcher.arrive(message(0)), Arrive::Unexpected(_)));
    assert_eq!(matcher.arrive(message(1)), Arrive::Busy);
    assert!(matches!(matcher.post(receive(1)), Post::Posted(_)));
    assert!(matches!(matcher.arrive(message(1)), Arrive::Matched(_)));
}

// spec: MATCH-12
#[test]
fn a_full_table_of_receives_does_not_stop_those_that_need_not_wait() {
    let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: 2 }, 0);
    assert!(matches!(matcher.post(receive(1)), Post::Posted(_)));
    assert_eq!(matcher.post(receive(0)), Post::Busy);
    assert!(matches!(matcher.arrive(message(0)), Arrive::Unexpected(_)));
    assert!(matches!(matcher.post(receive(0)), Post::Matched(_)));
    assert_eq!((matcher.receive_count(), matcher.message_count()), (1, 0));
}

// spec: MATCH-16, LIM-1
#[test]
fn every_slot_can_be_used_and_used_again() {
    let sizes = Sizes { receives: 5, messages: 9, sources: 1 };
    let mut matcher = Matcher::new(sizes, 3);
    for _ in 0..4 {
        let posted: Vec<Post> = (0..6).map(|_| matcher.post(receive(0))).collect();
        assert!(posted[..5].iter().all(|post| matches!(post, Post::Posted(_))));
        assert_eq!(posted[5], Post::Busy);
        for _ in 0..5 {
            assert!(matches!(matcher.arrive(message(0)), Arrive::Matched(_)));
        }
    }
}

// spec: MATCH-16
#[test]
fn a_table_that_has_grown_has_room_for_the_next_and_no_other_has() {
    let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: 3 }, 0);
    assert!(matches!(matcher.arrive(message(0)), Arrive::Unexpected(_)));
    assert_eq!(matcher.arrive(message(0)), Arrive::Busy);
    matcher.grow(1, 2);
    assert_eq!(matcher.sizes(), Sizes { receives: 1, messages: 2, sources: 3 });
    assert!(matches!(matcher.arrive(message(0)), Arrive::Unexpected(_)));
    assert!(matches!(matcher.post(receive(1)), Post::Posted(_)));
    assert_eq!(matcher.post(receive(1)), Post::Busy);
    matcher.grow(2, 1);
    assert_eq!(matcher.sizes(), Sizes { receives: 2, messages: 2, sources: 3 }, "none shrinks");
    assert!(matches!(matcher.post(receive(1)), Post::Posted(_)));
}

fn made(receives: u32, messages: u32, sources: u32) -> bool {
    let sizes = Sizes { receives, messages, sources };
    std::panic::catch_unwind(|| Matcher::new(sizes, 0)).is_ok()
}

// spec: MATCH-16, LIM-1
#[test]
fn sizes_beyond_the_limits_are_our_own_mistake() {
    let grown = |receives, messages| {
        let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: 1 }, 0);
        std::panic::catch_unwind(move || matcher.grow(receives, messages)).is_ok()
    };
    assert!(grown(1, 1) && !grown(0, 1) && !grown(1, 0));
    assert!(!grown(RECEIVES_MAX + 1, 1) && !grown(1, UNEXPECTED_MAX + 1));
    assert!(made(1, 1, 0));
    assert!(!made(0, 1, 1) && !made(1, 0, 1));
    assert!(!made(RECEIVES_MAX + 1, 1, 1) && !made(1, UNEXPECTED_MAX + 1, 1));
    assert!(!made(1, 1, u32::MAX), "its number stands for none");
}

// spec: MATCH-16
#[test]
#[should_panic(expected = "a source is one that there can be")]
fn a_message_of_a_source_that_cannot_be_is_our_own_mistake() {
    let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: 2 }, 0);
    let _ = matcher.arrive(message(2));
}

// spec: MATCH-16
#[test]
#[should_panic(expected = "a source is one that there can be")]
fn a_receive_from_a_source_that_cannot_be_is_our_own_mistake() {
    let mut matcher = Matcher::new(Sizes { receives: 1, messages: 1, sources: 2 }, 0);
    let _ = matcher.post(receive(u32::MAX));
}

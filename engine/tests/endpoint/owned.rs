//! Endpoints of programs that own their buffers.
use ayre::endpoint::{Endpoint, EndpointOptions, Outcome, Pattern, RemoteId};
use ayre::{Fault, PostError, Spin};
use std::time::Duration;

fn open() -> Endpoint {
    Endpoint::open_with(&EndpointOptions::new().spin(Spin::SHARED)).expect("an endpoint")
}

/// Two endpoints, each with the other's name.
fn pair() -> (Endpoint, RemoteId, Endpoint, RemoteId) {
    let (mut first, mut second) = (open(), open());
    let to_second = first.remote(&second.address()).expect("a name");
    let to_first = second.remote(&first.address()).expect("a name");
    (first, to_second, second, to_first)
}

/// Bytes that tell where they stand.
fn pattern_of(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

// spec: ENV-3, ENV-7
#[test]
fn a_posted_send_and_receive_return_their_buffers_with_the_message() {
    for len in [0, 1, 56, 512, 4096, 100_000, 3 << 20] {
        let (mut first, to, mut second, from) = pair();
        let buffer = vec![0; len + 1];
        let receive = second.post_receive(Pattern::tag(7).from(from), buffer).expect("posted");
        let mut sends = Vec::new();
        let mut pending = Some(pattern_of(len));
        let finished = loop {
            if let Some(buffer) = pending.take() {
                match first.post_send(to, 7, buffer) {
                    Ok(request) => sends.push(request),
                    Err(why) => {
                        assert!(matches!(why.error, PostError::Busy(_)), "{why}");
                        pending = Some(why.buffer);
                    }
                }
            }
            if let Some(finished) = first.poll() {
                assert_eq!((finished.request, finished.outcome), (sends[0], Outcome::Sent));
                assert_eq!(finished.buffer, pattern_of(len), "a sender's bytes do not change");
            }
            if let Some(finished) = second.poll() {
                break finished;
            }
        };
        assert_eq!(finished.request, receive);
        let received = finished.received().expect("a message");
        assert_eq!((received.source, received.tag), (Some(from), Some(7)));
        assert_eq!((received.len, received.placed), (len as u64, len as u64));
        assert_eq!(finished.buffer[..len], pattern_of(len));
        assert_eq!(finished.buffer.len(), len + 1, "the whole buffer comes back");
    }
}

// spec: ENV-3
#[test]
fn calls_that_borrow_their_buffers_wait_for_each_other() {
    let (mut first, to, mut second, from) = pair();
    let other = std::thread::spawn(move || {
        let mut sum = 0;
        for len in [3, 5_000, 2 << 20] {
            let mut buffer = vec![0; len];
            let received = second.receive(Pattern::any().from(from), &mut buffer).expect("one");
            assert_eq!((received.placed, &buffer), (len as u64, &pattern_of(len)));
            second.send(from, received.tag.expect("a tag") + 1, &buffer).expect("sent");
            sum += len;
        }
        sum
    });
    for (tag, len) in [(10, 3), (20, 5_000), (30, 2 << 20)] {
        first.send(to, tag, &pattern_of(len)).expect("sent");
        let mut back = vec![0; len];
        first.receive(Pattern::tag(tag + 1), &mut back).expect("its echo");
        assert_eq!(back, pattern_of(len));
    }
    assert_eq!(other.join().expect("no panic"), 3 + 5_000 + (2 << 20));
}

// spec: MATCH-9
#[test]
fn a_cancelled_receive_returns_its_buffer_and_a_stale_id_has_no_effect() {
    let mut endpoint = open();
    let request = endpoint.post_receive(Pattern::tag(1), vec![5; 10]).expect("posted");
    assert!(endpoint.cancel(request));
    assert!(!endpoint.cancel(request), "it is cancelled once");
    let finished = endpoint.poll().expect("it has finished");
    assert_eq!((finished.request, finished.outcome), (request, Outcome::Cancelled));
    assert_eq!(finished.buffer, [5; 10]);
    assert_eq!(finished.received(), Err(Fault::Malformed));

    let next = endpoint.post_receive(Pattern::tag(1), vec![6; 3]).expect("posted");
    assert!(!endpoint.cancel(request), "the place is another one's now");
    assert!(endpoint.cancel(next));
    assert_eq!(endpoint.poll().expect("it has finished").buffer, [6; 3]);
}

// spec: ENV-34
#[test]
fn a_name_that_is_not_known_returns_the_buffer() {
    let (mut first, to, _second, _) = pair();
    let mut stranger = open();
    let refused = stranger.post_send(to, 0, vec![1, 2, 3]).expect_err("another one's name");
    assert_eq!(refused.error, PostError::Fault(Fault::ForeignHandle));
    assert_eq!(refused.buffer, [1, 2, 3]);
    assert_eq!(stranger.send(to, 0, &[1]), Err(Fault::ForeignHandle));
    let refused = stranger.post_receive(Pattern::any().from(to), vec![9]).expect_err("nor here");
    assert_eq!(refused.buffer, [9]);
    assert_eq!(first.wait(Some(Duration::ZERO)).map(|it| it.request), None);
}

// spec: ENV-7
#[test]
fn a_pattern_ignores_masked_bits_and_a_probe_keeps_the_message() {
    let (mut first, to, mut second, from) = pair();
    let send = std::thread::spawn(move || {
        first.send(to, 0x1234, b"one").expect("sent");
        first.send(to, 0x5678, b"two").expect("sent");
        first
    });
    let found = loop {
        if let Some(found) = second.probe(Pattern::tag(0x5600).ignoring(0xff)) {
            break found;
        }
    };
    assert_eq!((found.tag, found.len), (Some(0x5678), 3));
    let mut buffer = [0; 3];
    second.receive(Pattern::tag(0xff78).ignoring(0xff00).from(from), &mut buffer).expect("two");
    assert_eq!(&buffer, b"two");
    second.receive(Pattern::any(), &mut buffer).expect("one");
    assert_eq!(&buffer, b"one");
    assert_eq!(second.probe(Pattern::any()), None);
    drop(send.join().expect("no panic"));
}

// spec: ENV-8
#[test]
fn a_receive_fails_if_the_first_call_finds_its_endpoint_gone() {
    let (mut first, to, second, _) = pair();
    let receive = first.post_receive(Pattern::tag(3).from(to), vec![0; 8]).expect("posted");
    drop(second);
    let refused = first.post_send(to, 3, vec![0; 8]).expect_err("nothing listens");
    assert!(matches!(refused.error, PostError::Fault(Fault::PeerDead)), "{refused}");
    let finished = first.poll().expect("the receive has failed");
    assert_eq!(finished.request, receive);
    assert!(matches!(finished.outcome, Outcome::Failed(Fault::PeerDead)), "{finished:?}");
}

// spec: ENV-34
#[test]
fn a_receive_from_an_endpoint_that_has_gone_fails_and_a_dropped_one_frees_its_buffers() {
    let (mut first, to, second, _) = pair();
    let own = first.post_receive(Pattern::any(), vec![0; 1 << 20]).expect("posted");
    let receive = first.post_receive(Pattern::tag(3).from(to), vec![1; 8]);
    let receive = receive.expect("posted");
    let gone = std::thread::spawn(move || {
        let mut second = second;
        second.poll();
        drop(second);
    });
    let finished = loop {
        // Posted to somebody who may answer yet: that is what shows that nobody will.
        let _ = first.post_send(to, 3, vec![0; 8]);
        match first.poll() {
            Some(finished) if finished.request == receive => break finished,
            _ => {}
        }
    };
    gone.join().expect("no panic");
    assert!(matches!(finished.outcome, Outcome::Failed(_)), "{finished:?}");
    assert!(first.reason(to).is_some(), "and says why");
    drop(first);
    let _ = own;
}

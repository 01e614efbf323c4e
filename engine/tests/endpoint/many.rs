//! Thousands that wait: of messages, of receives, of operations; and what is too many.
use super::{Side, message, pair_with, received, send, until};
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{
    Completion, CompletionKind, Context, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span,
    Spans,
};
use ayre::error::DisconnectReason;
use ayre::{EndpointOptions, Fault, PostError, Spin};

/// More than there ever was room for in a table.
const MANY: usize = 20_000;

fn pair() -> [Side; 2] {
    pair_with(&EndpointOptions::new().local())
}

/// Memory of many short messages: the n-th says n.
fn words(count: usize) -> Vec<u64> {
    (0..count as u64).collect()
}

fn word(words: &mut [u64], at: usize) -> Spans {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended.
    unsafe { Span::new(words[at..].as_mut_ptr().cast(), 8) }.into()
}

fn outgoing(words: &mut [u64], at: usize) -> OutgoingMessage {
    let context = at as Context;
    let bytes = word(words, at);
    OutgoingMessage { tag: Some(at as u64), data: None, bytes, context, delivered: false }
}

fn receive(source: Option<RemoteId>, tag: usize, into: Spans) -> PostedReceive {
    PostedReceive { source, tag: Some((tag as u64, 0)), into, context: tag as Context, many: None }
}

/// Sends, in this order; who receives only takes what comes.
fn send_all(sides: &mut [Side; 2], tags: impl Iterator<Item = usize>, from: &mut [u64]) {
    let [near, far] = sides;
    for tag in tags {
        assert_eq!(send([&mut *near, &mut *far], &outgoing(from, tag)), Sent::Completed);
    }
}

// spec: ENV-7
#[test]
fn thousands_of_messages_are_received_from_the_last_to_the_first() {
    let mut sides = pair();
    let (mut from, mut into) = (words(MANY), vec![0; MANY]);
    send_all(&mut sides, 0..MANY, &mut from);
    for tag in (0..MANY).rev() {
        let posted = receive(Some(sides[1].other), tag, word(&mut into, tag));
        sides[1].endpoint.receive(posted).expect("there is room");
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        assert_eq!(received(&sides[1].ends.pop().unwrap()).tag, Some(tag as u64));
    }
    assert_eq!(into, from);
}

// spec: ENV-7
#[test]
fn thousands_of_receives_are_posted_ahead() {
    let mut sides = pair();
    let (mut from, mut into) = (words(MANY), vec![0; MANY]);
    for tag in 0..MANY {
        let posted = receive(Some(sides[1].other), tag, word(&mut into, tag));
        sides[1].endpoint.receive(posted).expect("there is room");
    }
    send_all(&mut sides, (0..MANY).rev(), &mut from);
    until(&mut sides, |sides| sides[1].ends.len() == MANY);
    assert_eq!(into, from);
    assert_eq!(sides[1].endpoint.under_way(), 0);
}

/// Sends what there is room for, and receives nothing.
fn send_some(side: &mut Side, from: &mut [u64], next: &mut usize) {
    while *next < from.len() {
        match side.try_send(&outgoing(from, *next)) {
            Ok(Sent::Completed) => *next += 1,
            Err(PostError::Busy(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    side.progress();
}

/// Both send all, and only then does either receive, from the last to the first.
fn both_first(sides: &mut [Side; 2], count: usize) {
    let (mut from, mut next) = ([0, 1].map(|_| words(count)), [0; 2]);
    while next != [count; 2] {
        for at in 0..2 {
            send_some(&mut sides[at], &mut from[at], &mut next[at]);
        }
    }
    let mut into = [0, 1].map(|_| vec![0; count]);
    for (side, into) in sides.iter_mut().zip(&mut into) {
        for tag in (0..count).rev() {
            let posted = receive(Some(side.other), tag, word(into, tag));
            side.endpoint.receive(posted).expect("there is room");
        }
    }
    until(sides, |sides| sides.iter().all(|side| side.ends.len() == count));
    assert!(into == from);
}

// spec: ENV-7
#[test]
fn both_send_thousands_before_either_receives() {
    both_first(&mut pair(), MANY);
}

// spec: ENV-7
#[test]
fn both_send_thousands_over_a_link_before_either_receives() {
    both_first(&mut pair_with(&EndpointOptions::new().apart().plain()), 5000);
}

// spec: ENV-7
#[test]
fn thousands_are_sent_to_oneself_before_they_are_received() {
    let mut endpoint = RawEndpoint::open_with(&EndpointOptions::new().local()).unwrap();
    let other = endpoint.remote(&endpoint.address()).unwrap();
    let mut side = Side { endpoint, other, ends: Vec::new() };
    let (mut from, mut into, mut next) = (words(MANY), vec![0; MANY], 0);
    while next < MANY {
        send_some(&mut side, &mut from, &mut next);
    }
    for tag in (0..MANY).rev() {
        let posted = receive(Some(other), tag, word(&mut into, tag));
        side.endpoint.receive(posted).expect("there is room");
    }
    poll_until(&mut side, MANY);
    assert_eq!(into, from);
}

/// Polls one until so much has ended at it.
fn poll_until(side: &mut Side, ends: usize) {
    for _ in 0..10_000_000 {
        if side.ends.len() >= ends {
            return;
        }
        side.progress();
    }
    panic!("it does not end: {} of {ends}", side.ends.len());
}

/// A receiver, and this many senders that know it.
fn crowd(options: &EndpointOptions, senders: usize) -> (Side, Vec<Side>) {
    let open = || RawEndpoint::open_with(&options.clone().spin(Spin::SHARED)).expect("an endpoint");
    let mut endpoint = open();
    let (address, own) = (endpoint.address(), endpoint.remote(&endpoint.address()).unwrap());
    let senders = (0..senders).map(|_| {
        let mut endpoint = open();
        let other = endpoint.remote(&address).expect("an endpoint of this host");
        Side { endpoint, other, ends: Vec::new() }
    });
    let senders = senders.collect();
    (Side { endpoint, other: own, ends: Vec::new() }, senders)
}

// spec: ENV-7, ENV-14
#[test]
fn thousands_come_of_eight_at_once() {
    let (mut to, mut senders) = crowd(&EndpointOptions::new().local().ring(1 << 15), 8);
    let count = MANY / 8;
    let mut from: Vec<_> = senders.iter().map(|_| words(count)).collect();
    let mut next = [0; 8];
    while next != [count; 8] {
        for (at, side) in senders.iter_mut().enumerate() {
            send_some(side, &mut from[at], &mut next[at]);
        }
        to.progress();
    }
    let numbers: Vec<_> =
        senders.iter().map(|side| to.endpoint.remote(&side.endpoint.address()).unwrap()).collect();
    let mut into: Vec<_> = senders.iter().map(|_| vec![0; count]).collect();
    for tag in (0..count).rev() {
        for (at, number) in numbers.iter().enumerate() {
            let posted = receive(Some(*number), tag, word(&mut into[at], tag));
            to.endpoint.receive(posted).expect("there is room");
        }
    }
    poll_until(&mut to, 8 * count);
    assert!(into == from);
}

// spec: ENV-7
#[test]
fn waiting_long_messages_do_not_delay_others() {
    let mut sides = pair();
    let mut long: Vec<_> = (0..300).map(|seed| super::pattern(70_000, seed)).collect();
    let (mut from, mut into) = (words(5000), vec![0; 5000]);
    for (at, bytes) in long.iter_mut().enumerate() {
        let [near, far] = &mut sides;
        // Some in the ring, others with their sender.
        let len = if at % 3 == 0 { bytes.len() } else { 16_000 };
        let _ = send([near, far], &message(100_000 + at as u64, &mut bytes[..len]));
    }
    for tag in 0..5000 {
        let posted = receive(Some(sides[1].other), tag, word(&mut into, tag));
        sides[1].endpoint.receive(posted).expect("there is room");
        send_all(&mut sides, tag..tag + 1, &mut from);
        until(&mut sides, |sides| sides[1].ends.len() == tag + 1);
    }
    assert_eq!(into, from);
    for (at, bytes) in long.iter().enumerate().rev() {
        let mut room = vec![0; if at % 3 == 0 { bytes.len() } else { 16_000 }];
        sides[1].ends.clear();
        sides[1].receive(Some((100_000 + at as u64, 0)), &mut room, 0);
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        assert!(room == bytes[..room.len()], "message {at}");
    }
}

/// More than 2^16 ask, and more than twice as many answers are due, before either side looks.
// spec: ENV-3, ENV-15, ENV-39
#[test]
fn any_number_of_messages_may_wait_at_their_sender() {
    let (count, mut bytes, mut into) = (140_000, vec![7; 20_000], words(1));
    let mut sides = pair();
    for _ in 0..count {
        let [near, far] = &mut sides;
        let asks = OutgoingMessage { delivered: true, ..message(1, &mut bytes) };
        assert_eq!(send([near, far], &asks), Sent::Pending);
    }
    for _ in 0..count {
        let posted = receive(None, 1, word(&mut into, 0));
        sides[1].endpoint.receive(posted).expect("there is room");
    }
    until(&mut sides, |sides| sides.iter().all(|side| side.ends.len() == count));
    assert!(sides.iter().flat_map(|side| &side.ends).all(|end| end.result.is_ok()));
    assert_eq!(sides.each_ref().map(|side| side.endpoint.counters().malformed()), [0; 2]);
}

/// A small budget, half of the memory.
const SMALL: u64 = 1 << 20;

// spec: ENV-37, MATCH-13
#[test]
fn a_flooding_sender_gets_a_fault_and_others_go_on() {
    let (mut to, mut senders) = crowd(&EndpointOptions::new().local().memory(2 * SMALL), 2);
    let mut from = words(8 * MANY);
    let mut flooded = 0;
    let why = loop {
        match senders[0].try_send(&outgoing(&mut from, flooded)) {
            Ok(_) => flooded += 1,
            Err(PostError::Busy(_)) => {}
            Err(PostError::Fault(why)) => break why,
        }
        senders[0].progress();
        to.progress();
        assert!(flooded < 8 * MANY, "it is bounded");
    };
    assert_eq!(why, Fault::NoMemory);
    // Half of the budget, 512 bytes and 8 for each.
    assert!((1000..1400).contains(&flooded), "{flooded} were taken");
    let numbers = [0, 1].map(|at| to.endpoint.remote(&senders[at].endpoint.address()).unwrap());
    // The other one's messages come, expected and not.
    let mut into = vec![0; 200];
    for tag in 0..200 {
        if tag % 2 == 0 {
            let posted = receive(Some(numbers[1]), tag, word(&mut into, tag));
            to.endpoint.receive(posted).expect("there is room");
        }
        while senders[1].try_send(&outgoing(&mut from, tag)).is_err() {
            senders[1].progress();
            to.progress();
        }
    }
    // What was kept of the first one can be received; what was not ends with the reason.
    let mut kept = vec![0; 1000];
    for tag in 0..1000 {
        let posted = receive(Some(numbers[0]), tag, word(&mut kept, tag));
        to.endpoint.receive(posted).expect("there is room");
    }
    for tag in (1..200).step_by(2) {
        let posted = receive(Some(numbers[1]), tag, word(&mut into, tag));
        to.endpoint.receive(posted).expect("there is room");
    }
    poll_until(&mut to, 1200);
    assert!(to.ends.iter().all(|end| end.result.is_ok()));
    assert!(kept == from[..1000] && into == from[..200]);
    let back = OutgoingMessage { context: 5, ..outgoing(&mut from, 0) };
    assert_eq!(to.endpoint.send(numbers[0], &back), Err(Fault::NoMemory.into()));
    assert_eq!(to.endpoint.counters().malformed(), 0);
}

// spec: ENV-37, ENV-8
#[test]
fn operations_with_a_flooding_peer_end_with_the_reason() {
    let [mut near, mut far] = pair_with(&EndpointOptions::new().local().memory(2 * SMALL));
    let (mut asked, mut room, mut from) = (vec![1; 50_000], vec![0; 8], words(MANY));
    let asks = OutgoingMessage { context: 77, ..message(1 << 40, &mut asked) };
    assert_eq!(send([&mut near, &mut far], &asks), Sent::Pending);
    far.receive(Some((1 << 41, 0)), &mut room, 88);
    let mut tag = 0;
    while tag < MANY && near.try_send(&outgoing(&mut from, tag)).is_ok_and(|_| true)
        || near.ends.is_empty()
    {
        tag += 1;
        near.progress();
        far.progress();
        assert!(tag < MANY - 1, "it is bounded");
    }
    let mut sides = [near, far];
    until(&mut sides, |sides| sides.iter().all(|side| !side.ends.is_empty()));
    let reasons = sides.each_ref().map(|side| side.endpoint.reason(side.other).cloned());
    assert_eq!(reasons, [DisconnectReason::NoMemory, DisconnectReason::Flooded].map(Some));
    let ended = |context, what| Completion { context, what, result: Err(Fault::NoMemory) };
    assert_eq!(sides[0].ends, [ended(77, CompletionKind::Sent)]);
    assert_eq!(sides[1].ends.len(), 1);
    assert_eq!((sides[1].ends[0].context, sides[1].ends[0].result), (88, Err(Fault::NoMemory)));
}

// spec: ENV-37
#[test]
fn a_flood_to_oneself_is_a_fault() {
    let options = EndpointOptions::new().local().memory(2 * SMALL);
    let mut endpoint = RawEndpoint::open_with(&options).unwrap();
    let own = endpoint.remote(&endpoint.address()).unwrap();
    let mut from = words(MANY);
    let why = (0..MANY).find_map(|tag| {
        let sent = endpoint.send(own, &outgoing(&mut from, tag));
        endpoint.progress(|_| ());
        sent.err().filter(|why| !why.is_busy())
    });
    assert_eq!(why, Some(Fault::NoMemory.into()));
}

/// Sends a message of this length without a posted receive; returns whether it has left.
fn goes_ahead(sides: &mut [Side; 2], bytes: &mut [u8]) -> bool {
    let [near, far] = sides;
    let sent = send([&mut *near, &mut *far], &message(3, bytes));
    (0..100).for_each(|_| sides.iter_mut().for_each(Side::progress));
    sent == Sent::Completed
}

// spec: ENV-37, ENV-3
#[test]
fn messages_stay_with_their_sender_while_much_of_it_is_kept() {
    for options in [EndpointOptions::new().local(), EndpointOptions::new().apart().plain()] {
        let mut sides = pair_with(&options.memory(4 * SMALL));
        let mut bytes = super::pattern(16_000, 3);
        let gone = (0..1000).filter(|_| goes_ahead(&mut sides, &mut bytes)).count();
        // A fifth of the budget; a thousand of them are eight times the budget.
        assert!((20..60).contains(&gone), "{gone} have gone");
        assert!(goes_ahead(&mut sides, &mut bytes[..4096]), "it may be injected");
        let mut room = vec![0; 16_000];
        for _ in 0..1000 {
            sides[1].receive(Some((3, 0)), &mut room, 0);
            until(&mut sides, |sides| sides[1].ends.len() == 1);
            assert_eq!(received(&sides[1].ends.pop().unwrap()).placed, 16_000);
            assert!(std::mem::take(&mut room) == bytes);
            room = vec![0; 16_000];
        }
        sides[1].receive(Some((3, 0)), &mut room, 0);
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        (0..1000).for_each(|_| sides.iter_mut().for_each(Side::progress));
        assert!(goes_ahead(&mut sides, &mut bytes), "nothing of it is kept any more");
    }
}

// spec: ENV-39
#[test]
fn posting_beyond_the_memory_limit_is_refused() {
    let options = EndpointOptions::new().local().spin(Spin::SHARED);
    let (mut far, _) = crowd(&options, 0);
    let mut endpoint = RawEndpoint::open_with(&options.memory(2 * SMALL)).unwrap();
    let other = endpoint.remote(&far.endpoint.address()).unwrap();
    let mut near = Side { endpoint, other, ends: Vec::new() };
    let (mut asked, mut room, most) = (vec![1; 20_000], words(1), SMALL as usize / 512);
    for _ in 0..most {
        let _ = send([&mut near, &mut far], &message(3, &mut asked));
    }
    assert_eq!(near.try_send(&message(3, &mut asked)), Err(Fault::NoMemory.into()));
    assert_eq!(send([&mut near, &mut far], &outgoing(&mut room, 0)), Sent::Completed, "it leaves");
    for _ in 0..most {
        let posted = receive(None, 3, Spans::default());
        far.endpoint.receive(posted).expect("there is room");
    }
    let mut sides = [near, far];
    until(&mut sides, |sides| sides[0].ends.len() == most);
    let [mut near, _] = sides;
    let mut posted = || near.endpoint.receive(receive(None, 9, word(&mut room, 0)));
    (0..most).for_each(|_| posted().expect("there is room"));
    assert_eq!(posted(), Err(Fault::NoMemory.into()));
    assert!(near.endpoint.cancel(9));
    near.progress();
    let posted = near.endpoint.receive(receive(None, 9, word(&mut room, 0)));
    assert_eq!(posted, Ok(()), "one was taken back");
}

// spec: MATCH-9
#[test]
fn receives_are_taken_back_by_their_contexts_in_any_order() {
    for many in [10, MANY] {
        taken_back_in_any_order(many);
    }
}

fn taken_back_in_any_order(many: usize) {
    let [_, mut far] = pair();
    let mut into = vec![0; many];
    let post = |far: &mut Side, at: usize, into: &mut [u64]| {
        let posted = receive(None, at, word(into, at));
        far.endpoint.receive(posted).expect("there is room");
    };
    (0..many).for_each(|at| post(&mut far, at, &mut into));
    // 7919 is a prime, so this meets every one once; some are posted again meanwhile.
    for at in 0..many {
        let context = at * 7919 % many;
        assert!(far.endpoint.cancel(context as u64), "{context} waits");
        if at % 5 == 0 {
            post(&mut far, context, &mut into);
        }
    }
    for at in 0..many {
        let context = at * 7919 % many;
        assert_eq!(far.endpoint.cancel(context as u64), at % 5 == 0);
    }
    far.progress();
    assert_eq!(far.ends.len(), many + many / 5);
    assert!(far.ends.iter().all(|end| end.what == CompletionKind::Cancelled));
    // One label for all, many of them.
    for count in [many, 3 * many] {
        for nth in 0..count as Context {
            let context = nth << 64 | 1;
            let posted = PostedReceive { context, ..receive(None, 1, word(&mut into, 1)) };
            far.endpoint.receive(posted).expect("there is room");
        }
        for nth in 0..count as Context {
            let mut told = None;
            assert!(far.endpoint.cancel_now(1, |end| told = Some((end.context >> 64, end.what))));
            assert_eq!(told, Some((nth, CompletionKind::Cancelled)), "the one that waits longest");
        }
        assert!(!far.endpoint.cancel_now(1, |_| ()));
    }
}

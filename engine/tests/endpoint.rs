//! Endpoints: messages that go to the receives they match.
use ayre::endpoint::raw::{
    Completion, CompletionKind, Context, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span,
    Spans,
};
use ayre::endpoint::{Address, Received, RemoteId};
use ayre::tuning::{Method, Step, Tuning, Use};
use ayre::{EndpointOptions, Fault, PostError, SetupError, Spin};

#[path = "endpoint/many.rs"]
mod many;
#[path = "endpoint/owned.rs"]
mod owned;

/// An endpoint and what has ended at it.
struct Side {
    endpoint: RawEndpoint,
    other: RemoteId,
    ends: Vec<Completion>,
}

impl Side {
    fn progress(&mut self) {
        let Self { endpoint, ends, .. } = self;
        endpoint.progress(|end| ends.push(end));
    }

    fn try_send(&mut self, message: &OutgoingMessage) -> Result<Sent, PostError> {
        self.endpoint.send(self.other, message)
    }

    fn receive(&mut self, tag: Option<(u64, u64)>, into: &mut [u8], context: Context) {
        self.receive_into(tag, span(into), context);
    }

    fn receive_into(&mut self, tag: Option<(u64, u64)>, into: Spans, context: Context) {
        let receive = PostedReceive { source: Some(self.other), tag, into, context, many: None };
        self.endpoint.receive(receive).expect("there is room");
    }
}

fn span(bytes: &mut [u8]) -> Spans {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }.into()
}

fn pair() -> [Side; 2] {
    pair_with(&EndpointOptions::new())
}

/// Two that get long messages by one method.
fn pair_by(method: Method) -> [Side; 2] {
    let step = Step { from: 0, method };
    let tuning = Tuning::new().with_steps(Use::Receive, vec![step]).expect("a step");
    pair_with(&EndpointOptions::new().tuning(tuning))
}

fn pair_with(options: &EndpointOptions) -> [Side; 2] {
    let options = options.clone().spin(Spin::SHARED);
    let ends = [0, 1].map(|_| RawEndpoint::open_with(&options).expect("an endpoint"));
    let addresses = ends.each_ref().map(RawEndpoint::address);
    let others = [addresses[1], addresses[0]];
    let mut index = 0;
    ends.map(|mut endpoint| {
        let other = endpoint.remote(&others[index]).expect("an endpoint of this host");
        index += 1;
        Side { endpoint, other, ends: Vec::new() }
    })
}

/// Sends, however long it takes.
fn send([from, to]: [&mut Side; 2], message: &OutgoingMessage) -> Sent {
    loop {
        match from.try_send(message) {
            Ok(sent) => return sent,
            Err(PostError::Busy(_)) => {
                from.progress();
                to.progress();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn message(tag: u64, bytes: &mut [u8]) -> OutgoingMessage {
    OutgoingMessage {
        tag: Some(tag),
        data: None,
        bytes: span(bytes),
        context: tag.into(),
        delivered: false,
    }
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// Sizes on both sides of every border.
const SIZES: [usize; 16] =
    [0, 1, 8, 32, 33, 88, 89, 512, 513, 4096, 16384, 16385, 32768, 100_000, 262_144, 1_000_003];

fn until(sides: &mut [Side; 2], is_over: impl Fn(&[Side; 2]) -> bool) {
    for _ in 0..10_000_000 {
        if is_over(sides) {
            return;
        }
        sides.iter_mut().for_each(Side::progress);
    }
    panic!("it does not end: {:?} {:?}", sides[0].ends, sides[1].ends);
}

fn received(end: &Completion) -> Received {
    assert_eq!(end.result, Ok(()), "{end:?}");
    match end.what {
        CompletionKind::Received(received) => received,
        _ => panic!("{end:?} is no receive"),
    }
}

// spec: ENV-3, ENV-5
#[test]
fn every_length_arrives_at_a_receive_that_waits() {
    let mut sides = pair();
    for (index, len) in SIZES.into_iter().enumerate() {
        let (mut from, mut into) = (pattern(len, index), vec![0; len + 3]);
        sides[1].receive(Some((index as u64, 0)), &mut into, 1000 + index as Context);
        let [near, far] = &mut sides;
        let sent = send([near, far], &message(index as u64, &mut from));
        let due = usize::from(sent == Sent::Pending);
        until(&mut sides, |sides| sides[1].ends.len() == 1 && sides[0].ends.len() == due);
        let got = received(&sides[1].ends.pop().unwrap());
        assert_eq!((got.len, got.placed, got.tag), (len as u64, len as u64, Some(index as u64)));
        assert_eq!(got.source, Some(sides[1].other));
        assert!(into[..len] == from[..] && into[len..] == [0; 3], "{len} bytes");
        sides[0].ends.clear();
    }
}

// spec: ENV-7
#[test]
fn every_length_waits_for_its_receive() {
    let mut sides = pair();
    let mut all: Vec<_> = SIZES.iter().map(|len| pattern(*len, *len)).collect();
    for (index, bytes) in all.iter_mut().enumerate() {
        let [near, far] = &mut sides;
        let _ = send([near, far], &message(index as u64, bytes));
    }
    (0..10_000).for_each(|_| sides.iter_mut().for_each(Side::progress));
    // In another order, by wildcards.
    for (index, bytes) in all.iter().enumerate().rev() {
        let mut into = vec![0; bytes.len()];
        sides[1].receive(Some((index as u64 | 0xf00, 0xf00)), &mut into, 7);
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        assert_eq!(received(&sides[1].ends.pop().unwrap()).tag, Some(index as u64));
        assert!(into == *bytes, "{} bytes", bytes.len());
    }
}

// spec: ENV-4
#[test]
fn messages_of_one_tag_keep_their_order() {
    let mut sides = pair();
    let mut all: Vec<_> = (0..300).map(|n| pattern(SIZES[n % 13], n)).collect();
    let mut room: Vec<_> = all.iter().map(|bytes| vec![0; bytes.len()]).collect();
    for (index, into) in room.iter_mut().enumerate().take(150) {
        sides[1].receive(Some((5, 0)), into, index as Context);
    }
    for bytes in &mut all {
        let [near, far] = &mut sides;
        let _ = send([near, far], &message(5, bytes));
    }
    for (index, into) in room.iter_mut().enumerate().skip(150) {
        sides[1].receive(Some((5, 0)), into, index as Context);
    }
    until(&mut sides, |sides| sides[1].ends.len() == 300);
    assert!(room == all, "each receive has the message of its turn");
}

// spec: ENV-19
#[test]
fn a_message_longer_than_its_receive_is_truncated_and_reported() {
    let mut sides = pair();
    for len in [100, 5000, 50_000] {
        let (mut from, mut into) = (pattern(len, 3), vec![0; 64]);
        sides[1].receive(Some((1, 0)), &mut into, 9);
        let [near, far] = &mut sides;
        let _ = send([near, far], &message(1, &mut from));
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        let got = received(&sides[1].ends.pop().unwrap());
        assert_eq!((got.len, got.placed), (len as u64, 64));
        assert_eq!(into, from[..64]);
    }
}

/// In three, of which one is short.
fn cut(bytes: &mut [u8]) -> Spans {
    let (first, rest) = bytes.split_at_mut(bytes.len() / 3);
    let (second, third) = rest.split_at_mut(7);
    // SAFETY: as span().
    let piece = |part: &mut [u8]| unsafe { Span::new(part.as_mut_ptr(), part.len()) };
    Spans::new([first, second, third].map(piece)).expect("three are few")
}

#[test]
fn many_spans_are_gathered_and_scattered() {
    let mut sides = pair();
    for len in [90, 6000, 90_000] {
        let (mut from, mut into) = (pattern(len, 1), vec![0; len]);
        sides[1].receive_into(Some((1, 0)), cut(&mut into), 1);
        let bytes = cut(&mut from);
        let [near, far] = &mut sides;
        let _ = send([near, far], &OutgoingMessage { bytes, ..message(1, &mut []) });
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        sides[1].ends.clear();
        assert!(into == from, "{len} bytes");
    }
}

// spec: ENV-15
#[test]
fn a_message_ends_when_it_is_delivered_if_its_sender_says_so() {
    let mut sides = pair();
    for len in [8, 3000, 60_000] {
        let (mut from, mut into) = (pattern(len, 1), vec![0; len]);
        let outgoing = OutgoingMessage { delivered: true, ..message(4, &mut from) };
        let [near, far] = &mut sides;
        assert_eq!(send([near, far], &outgoing), Sent::Pending);
        (0..1000).for_each(|_| sides.iter_mut().for_each(Side::progress));
        assert!(sides[0].ends.is_empty(), "nothing has received it");
        sides[1].receive(Some((4, 0)), &mut into, 1);
        until(&mut sides, |sides| sides[0].ends.len() == 1);
        let end = sides[0].ends.pop().unwrap();
        assert_eq!(end, Completion { context: 4, what: CompletionKind::Sent, result: Ok(()) });
        assert!(into == from);
    }
}

/// Past the matcher or by it, and whatever their length: messages that a program takes itself keep
/// their order. Those that are still with their sender are found, and tagged ones stay apart.
#[test]
fn plain_messages_are_handed_over_in_their_order() {
    let mut sides = pair();
    sides[1].endpoint.hand_over_plain();
    let lens = [8, 0, 3000, 8, 60_000, 100, 300_000, 8, 512, 8];
    let mut all: Vec<_> = lens.iter().map(|len| pattern(*len, *len)).collect();
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for bytes in &mut all {
        let plain = OutgoingMessage { tag: None, data: Some(7), ..message(0, bytes) };
        let [near, far] = &mut sides;
        let _ = send([near, far], &plain);
    }
    let [near, far] = &mut sides;
    let _ = send([near, far], &message(6, &mut [1; 8]));
    while taken.len() < lens.len() {
        sides.iter_mut().for_each(Side::progress);
        let receiver = &mut sides[1];
        while let Some((received, bytes)) = receiver.endpoint.take_oldest(None, None) {
            let is_told = (received.source, received.data, received.len, received.tag);
            assert_eq!(is_told, (Some(receiver.other), Some(7), bytes.len() as u64, None));
            taken.push(bytes.into());
        }
        if let Some(found) = receiver.endpoint.find(None, None) {
            let mut into = vec![0; found.message.len as usize];
            let fetched = (span(&mut into), 1);
            receiver.endpoint.receive_found(false, found.id, fetched).unwrap();
            until(&mut sides, |sides| !sides[1].ends.is_empty());
            sides[1].ends.clear();
            taken.push(into);
        }
    }
    assert!(taken == all, "in their order");
    let receiver = &mut sides[1].endpoint;
    assert!(receiver.take_oldest(None, None).is_none());
    assert!(receiver.keeps_messages() && receiver.find(None, Some((6, 0))).is_some());
}

#[test]
fn found_messages_are_received_or_thrown_away_by_name() {
    let mut sides = pair();
    for len in [8, 3000, 60_000] {
        let mut all = [1, 2].map(|seed| pattern(len, seed));
        for bytes in &mut all {
            let [near, far] = &mut sides;
            let _ = send([near, far], &message(6, bytes));
        }
        let mut found = None;
        while found.is_none() {
            sides.iter_mut().for_each(Side::progress);
            found = sides[1].endpoint.find(None, Some((6, 0)));
        }
        let found = found.unwrap();
        assert_eq!(found.message.len, len as u64);
        assert!(sides[1].endpoint.set_aside(true, found.id));
        let mut into = vec![0; len];
        sides[1].receive(Some((6, 0)), &mut into, 1);
        until(&mut sides, |sides| sides[1].ends.len() == 1);
        assert!(into == all[1], "the second, for the first was set aside");
        let mut first = vec![0; len];
        let into_first = (span(&mut first), 2);
        sides[1].endpoint.receive_found(true, found.id, into_first.clone()).unwrap();
        until(&mut sides, |sides| sides[1].ends.len() == 2);
        assert!(first == all[0]);
        let again = sides[1].endpoint.receive_found(true, found.id, into_first);
        assert!(again.is_err() && !sides[1].endpoint.discard(true, found.id), "it is gone");
        sides.iter_mut().for_each(|side| side.ends.clear());
    }
    let mut thrown = pattern(60_000, 9);
    let [near, far] = &mut sides;
    assert_eq!(send([near, far], &message(6, &mut thrown)), Sent::Pending);
    let mut found = None;
    while found.is_none() {
        sides.iter_mut().for_each(Side::progress);
        found = sides[1].endpoint.find(None, Some((6, 0)));
    }
    assert!(sides[1].endpoint.discard(true, found.unwrap().id));
    until(&mut sides, |sides| sides[0].ends.len() == 1);
}

// spec: ENV-19
#[test]
fn a_receive_of_many_takes_them_one_behind_the_other() {
    let mut sides = pair();
    let mut into = vec![0; 1000];
    let many = PostedReceive {
        source: None,
        tag: None,
        into: span(&mut into),
        context: 3,
        many: Some(300),
    };
    sides[1].endpoint.receive(many).unwrap();
    let mut all: Vec<_> = (0..4).map(|seed| pattern(200, seed)).collect();
    for bytes in &mut all {
        let [near, far] = &mut sides;
        let _ = send([near, far], &OutgoingMessage { tag: None, ..message(0, bytes) });
    }
    until(&mut sides, |sides| sides[1].ends.len() == 4);
    let got: Vec<_> = sides[1].ends.iter().map(received).collect();
    let places: Vec<_> = got.iter().map(|got| (got.offset, got.released)).collect();
    assert_eq!(places, [(0, false), (200, false), (400, false), (600, true)]);
    assert!(into[..800] == all.concat());
}

#[test]
fn an_endpoint_sends_to_itself() {
    let mut endpoint = RawEndpoint::open(Spin::SHARED).unwrap();
    let own = endpoint.remote(&endpoint.address()).unwrap();
    for len in SIZES {
        let (mut from, mut into) = (pattern(len, 5), vec![0; len]);
        let receive = PostedReceive {
            source: Some(own),
            tag: Some((1, 0)),
            into: span(&mut into),
            context: 1,
            many: None,
        };
        endpoint.receive(receive).unwrap();
        while endpoint.send(own, &message(1, &mut from)).is_err_and(|error| error.is_busy()) {
            endpoint.progress(|_| ());
        }
        let mut got = 0;
        for _ in 0..1_000_000 {
            endpoint.progress(|end| {
                got += usize::from(matches!(end.what, CompletionKind::Received(_)))
            });
            if got > 0 {
                break;
            }
        }
        assert!(got == 1 && into == from, "{len} bytes");
    }
}

#[test]
fn a_receive_that_is_cancelled_gets_no_message() {
    let mut sides = pair();
    let (mut first, mut second, mut from) = (vec![0; 8], vec![0; 8], pattern(8, 1));
    sides[1].receive(Some((1, 0)), &mut first, 10);
    sides[1].receive(Some((1, 0)), &mut second, 11);
    assert!(sides[1].endpoint.cancel(10) && !sides[1].endpoint.cancel(10));
    let [near, far] = &mut sides;
    let _ = send([near, far], &message(1, &mut from));
    until(&mut sides, |sides| sides[1].ends.len() == 2);
    assert_eq!(
        sides[1].ends[0],
        Completion { context: 10, what: CompletionKind::Cancelled, result: Ok(()) }
    );
    assert_eq!(sides[1].ends[1].context, 11);
    assert!(first == [0; 8] && second == from);
}

// spec: ENV-6
#[test]
fn both_call_each_other_and_one_connection_comes_of_it() {
    for _ in 0..50 {
        let mut sides = pair();
        let mut bytes = pattern(8, 1);
        // Both calls are on their way before either is heard.
        for side in &mut sides {
            assert!(side.try_send(&message(1, &mut bytes)).is_err_and(|error| error.is_busy()));
        }
        let mut rooms = [[0; 8]; 2];
        for (side, room) in sides.iter_mut().zip(&mut rooms) {
            side.receive(Some((1, 0)), room, 1);
        }
        let [near, far] = &mut sides;
        let _ = send([near, far], &message(1, &mut bytes));
        let _ = send([far, near], &message(1, &mut bytes));
        until(&mut sides, |sides| sides.iter().all(|side| side.ends.len() == 1));
        assert!(rooms.iter().all(|room| room[..] == bytes[..]));
    }
}

// spec: ENV-8
#[test]
fn operations_under_way_end_when_the_other_side_goes() {
    let [mut near, mut far] = pair();
    let (mut asked, mut small) = (pattern(100_000, 1), pattern(8, 1));
    let _ = send([&mut near, &mut far], &message(2, &mut small));
    assert_eq!(send([&mut near, &mut far], &message(1, &mut asked)), Sent::Pending);
    let mut never = vec![0; 8];
    near.receive(Some((3, 0)), &mut never, 30);
    let mut any = vec![0; 8];
    let from_any = PostedReceive {
        source: None,
        tag: Some((3, 0)),
        into: span(&mut any),
        context: 31,
        many: None,
    };
    near.endpoint.receive(from_any).unwrap();
    drop(far);
    while near.ends.len() < 2 {
        near.progress();
    }
    let mut ends: Vec<_> = near.ends.iter().map(|end| (end.context, end.result)).collect();
    ends.sort_by_key(|end| end.0);
    assert_eq!(ends, [(1, Err(Fault::PeerDead)), (30, Err(Fault::PeerDead))]);
    let again = near.try_send(&message(1, &mut small));
    assert_eq!(again, Err(PostError::Fault(Fault::PeerDead)));
    assert!(near.endpoint.cancel(31), "a receive from any one waits on");
}

// spec: ENV-10
#[test]
fn an_address_round_trips_and_changed_headers_are_refused() {
    let address = RawEndpoint::open(Spin::SHARED).unwrap().address();
    let bytes = address.to_bytes();
    assert_eq!(Address::from_bytes(&bytes), Some(address));
    // Not those of the key: any may stand there.
    for at in [0, 1, 4] {
        let mut other = bytes;
        other[at] ^= 0x80;
        assert_eq!(Address::from_bytes(&other), None, "byte {at}");
    }
}

/// More endpoints than processors pass a message round, each waiting for it by polls.
#[test]
fn more_endpoints_than_processors_yield_to_busy_ones() {
    const CROWD: usize = 8;
    const ROUNDS: usize = 200;
    let ends: Vec<_> = (0..CROWD).map(|_| RawEndpoint::open(Spin::SHARED).unwrap()).collect();
    let addresses: Vec<_> = ends.iter().map(RawEndpoint::address).collect();
    std::thread::scope(|scope| {
        for (rank, mut endpoint) in ends.into_iter().enumerate() {
            let addresses = &addresses;
            scope.spawn(move || {
                let all: Vec<_> =
                    addresses.iter().map(|address| endpoint.remote(address).unwrap()).collect();
                let (mut token, mut room) = ([rank as u8; 8], [0; 8]);
                for round in 0..ROUNDS {
                    if round + rank > 0 {
                        await_token(&mut endpoint, &mut room);
                    }
                    let next = all[(rank + 1) % CROWD];
                    let last = round + 1 == ROUNDS && rank + 1 == CROWD;
                    while !last
                        && endpoint
                            .send(next, &message(1, &mut token))
                            .is_err_and(|error| error.is_busy())
                    {
                        endpoint.progress(|_| ());
                    }
                }
                // Whoever comes last still needs the others' answers.
                (0..2000).for_each(|_| _ = endpoint.progress(|_| ()));
            });
        }
    });
}

fn await_token(endpoint: &mut RawEndpoint, room: &mut [u8]) {
    let (source, tag, context, many) = (None, Some((1, 0)), 1, None);
    endpoint.receive(PostedReceive { source, tag, into: span(room), context, many }).unwrap();
    let mut got = 0;
    while got == 0 {
        endpoint
            .progress(|end| got += usize::from(matches!(end.what, CompletionKind::Received(_))));
    }
}

// spec: LIM-4
#[test]
fn a_ring_that_cannot_be_is_refused() {
    for bytes in [0, 1 << 14, 100_000, (1 << 20) + 1, 1 << 25, usize::MAX] {
        let opened = RawEndpoint::open_with(&EndpointOptions::new().local().ring(bytes));
        assert!(matches!(opened, Err(SetupError::Invalid(_))), "{bytes}");
    }
}

const TAG: u64 = 5;

/// A message, and what becomes of it where its receive waits, or comes later; into one span, or
/// into several.
fn bring(sides: &mut [Side; 2], (len, room): (usize, usize), form: usize) {
    let (mut from, mut into) = (pattern(len, form), vec![0xee; room]);
    let spans = if form & 1 > 0 { cut(&mut into) } else { span(&mut into) };
    let outgoing = OutgoingMessage { delivered: form & 2 > 0, ..message(TAG, &mut from) };
    let [near, far] = sides;
    if form & 4 > 0 {
        assert_eq!(send([near, far], &outgoing), Sent::Pending);
        (0..100).for_each(|_| far.progress());
        far.receive_into(Some((TAG, 0)), spans, 1);
    } else {
        far.receive_into(Some((TAG, 0)), spans, 1);
        assert_eq!(send([near, far], &outgoing), Sent::Pending);
    }
    until(sides, |sides| sides.iter().all(|side| side.ends.len() == 1));
    let placed = len.min(room);
    let got = received(&sides[1].ends.pop().unwrap());
    assert_eq!((got.len, got.placed), (len as u64, placed as u64), "{len} {form}");
    assert!(into[..placed] == from[..placed], "{len} bytes, {form}");
    assert!(into[placed..].iter().all(|byte| *byte == 0xee), "{len} bytes, {form}");
    let sent = sides[0].ends.pop().unwrap();
    assert_eq!((sent.what, sent.result), (CompletionKind::Sent, Ok(())));
}

// spec: INJ-1, INJ-2, ENV-18
#[test]
fn every_method_brings_the_same() {
    for mut sides in [pair_by(Method::Kernel), pair_by(Method::Pipeline), pair()] {
        for len in [16_385, 20_001, 65_536, 1 << 20, (1 << 20) + 1, 5_000_003] {
            for form in 0..8 {
                bring(&mut sides, (len, len + 5), form);
                bring(&mut sides, (len, len - 1000), form);
            }
            bring(&mut sides, (len, 1), 0);
        }
    }
}

// spec: ENV-18, INJ-2
#[test]
fn a_kernel_read_needs_no_progress_of_the_sender() {
    for (method, comes) in [(Method::Kernel, true), (Method::Pipeline, false)] {
        let [mut near, mut far] = pair_by(method);
        let (mut from, mut into) = (pattern(100_000, 3), vec![0; 100_000]);
        far.receive(Some((TAG, 0)), &mut into, 1);
        assert_eq!(send([&mut near, &mut far], &message(TAG, &mut from)), Sent::Pending);
        (0..100_000).for_each(|_| far.progress());
        assert_eq!(far.ends.len() == 1, comes, "{method:?}");
        assert_eq!(into == from, comes, "{method:?}");
    }
}

/// Sends `count` messages whose receives wait. Returns for each whether it has gone at once.
fn gone(sides: &mut [Side; 2], len: usize, count: usize) -> Vec<bool> {
    let (mut from, mut into) = (pattern(len, 1), vec![0; len]);
    let sent = (0..count).map(|_| {
        sides[1].receive(Some((TAG, 0)), &mut into, 1);
        let [near, far] = sides;
        let sent = send([near, far], &message(TAG, &mut from));
        until(sides, |sides| sides[1].ends.len() == 1);
        assert_eq!(received(&sides[1].ends.pop().unwrap()).placed, len as u64);
        assert!(into == from);
        until(sides, |sides| sent == Sent::Completed || sides[0].ends.len() == 1);
        sides[0].ends.clear();
        into.fill(0);
        sent == Sent::Completed
    });
    sent.collect()
}

// spec: ENV-3
#[test]
fn messages_repeatedly_wanted_by_the_ring_are_sent_without_rts() {
    let mut sides = pair_by(Method::Pipeline);
    let rounds = [vec![false; 65], vec![true; 1024], vec![false; 65], vec![true; 10]].concat();
    assert_eq!(gone(&mut sides, 16_385, rounds.len()), rounds);
    // Longer ones ask, and say nothing of these.
    assert_eq!(gone(&mut sides, 65_537, 3), [false; 3]);
    assert_eq!(gone(&mut sides, 65_536, 3), [true; 3]);
    // Without room in the ring they ask, too, as nobody need be told to try again.
    let mut from = pattern(65_536, 1);
    let sends = (0..1000).map(|_| sides[0].try_send(&message(TAG, &mut from)));
    let sent: Vec<_> = sends.take_while(Result::is_ok).map(Result::unwrap).collect();
    assert_eq!((sent[0], sent.last()), (Sent::Completed, Some(&Sent::Pending)));
}

// spec: ENV-3
#[test]
fn a_message_read_by_the_kernel_sends_rts() {
    let mut sides = pair_by(Method::Kernel);
    assert_eq!(gone(&mut sides, 65_536, 200), vec![false; 200]);
}

/// A sender that forgets its peer may reuse the memory; none of the new content is taken for a
/// message.
// spec: INJ-6, ENV-8
#[test]
fn memory_of_a_departed_sender_is_not_taken_for_a_message() {
    let mut sides = pair_by(Method::Kernel);
    let (mut from, mut into) = (pattern(100_000, 3), vec![0; 100_000]);
    let [near, far] = &mut sides;
    assert_eq!(send([near, far], &message(TAG, &mut from)), Sent::Pending);
    (0..100).for_each(|_| far.progress());
    near.endpoint.forget(near.other);
    from.fill(0xbb);
    far.receive(Some((TAG, 0)), &mut into, 1);
    until(&mut sides, |sides| !sides[1].ends.is_empty());
    assert_eq!(sides[1].ends[0].result, Err(Fault::PeerDead));
}

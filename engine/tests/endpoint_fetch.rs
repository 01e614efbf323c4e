//! Messages that a receiver reads where their sender has them, beside those that come through the
//! ring.
use ayre::tuning::{Method, Step, Tuning, Use};
use ayre::{
    End, Endpoint, EndpointOptions, Fault, Outgoing, PostError, Receive, Received, RemoteId, Sent,
    Span, Spans, Spin, What,
};

/// An endpoint and what has ended at it.
struct Side {
    endpoint: Endpoint,
    other: RemoteId,
    ends: Vec<End>,
}

impl Side {
    fn progress(&mut self) {
        let Self { endpoint, ends, .. } = self;
        endpoint.progress(|end| ends.push(end));
    }

    fn receive(&mut self, into: Spans) {
        let (source, tag) = (Some(self.other), Some((TAG, 0)));
        let receive = Receive { source, tag, into, context: 1, many: None };
        self.endpoint.receive(receive).expect("there is room");
    }

    /// Polls, and nobody else, until the next end.
    fn end(&mut self) -> Option<End> {
        for _ in 0..100_000 {
            self.progress();
            if let Some(end) = self.ends.pop() {
                return Some(end);
            }
        }
        None
    }
}

const TAG: u64 = 5;

fn whole(bytes: &mut [u8]) -> Span {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn by(method: Method) -> Tuning {
    let step = Step { from: 0, method };
    Tuning::new().with_steps(Use::Receive, vec![step]).expect("a step")
}

fn pair(tuning: &Tuning) -> [Side; 2] {
    let options = EndpointOptions::new().local().spin(Spin::SHARED).tuning(tuning.clone());
    let ends = [0, 1].map(|_| Endpoint::open_with(&options).expect("an endpoint"));
    let addresses = ends.each_ref().map(Endpoint::address);
    let others = [addresses[1], addresses[0]];
    let mut index = 0;
    ends.map(|mut endpoint| {
        let other = endpoint.remote(&others[index]).expect("an endpoint of this host");
        index += 1;
        Side { endpoint, other, ends: Vec::new() }
    })
}

/// Asks, and the other side knows of it: one of them has still to poll.
fn ask([from, to]: [&mut Side; 2], bytes: &mut [u8], delivered: bool) {
    let bytes = whole(bytes).into();
    let message = Outgoing { tag: Some(TAG), data: None, bytes, context: 2, delivered };
    let sent = loop {
        match from.endpoint.send(from.other, &message) {
            Err(PostError::Busy(_)) => [&mut *from, to].into_iter().for_each(Side::progress),
            sent => break sent,
        }
    };
    assert_eq!(sent, Ok(Sent::UnderWay));
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

fn received(end: &End) -> Received {
    assert_eq!(end.result, Ok(()), "{end:?}");
    match end.what {
        What::Received(received) => received,
        _ => panic!("{end:?} is no receive"),
    }
}

/// A message, and what becomes of it where its receive waits, or comes later; into one span, or
/// into two of which one is short.
fn bring(sides: &mut [Side; 2], (len, room): (usize, usize), form: usize) {
    let (mut from, mut into) = (pattern(len, form), vec![0xee; room]);
    let [near, far] = sides;
    let spans = match form & 1 {
        0 => whole(&mut into).into(),
        _ => {
            let (first, second) = into.split_at_mut(room / 3);
            Spans::new([first, second].map(whole)).expect("two are few")
        }
    };
    let delivered = form & 2 > 0;
    if form & 4 > 0 {
        ask([near, far], &mut from, delivered);
        (0..100).for_each(|_| far.progress());
        far.receive(spans);
    } else {
        far.receive(spans);
        ask([near, far], &mut from, delivered);
    }
    for _ in 0..1_000_000 {
        if near.ends.len() + far.ends.len() == 2 {
            break;
        }
        [&mut *near, far].into_iter().for_each(Side::progress);
    }
    let placed = len.min(room);
    let got = received(&far.ends.pop().expect("it has come"));
    assert_eq!((got.len, got.placed), (len as u64, placed as u64), "{len} {form}");
    assert!(into[..placed] == from[..placed], "{len} bytes, {form}");
    assert!(into[placed..].iter().all(|byte| *byte == 0xee), "{len} bytes, {form}");
    let sent = near.ends.pop().expect("it has left");
    assert_eq!((sent.what, sent.result), (What::Sent, Ok(())));
}

// spec: INJ-1, INJ-2, ENV-18
#[test]
fn every_method_brings_the_same() {
    for tuning in [by(Method::Kernel), by(Method::Pipeline), Tuning::new()] {
        let mut sides = pair(&tuning);
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
fn what_is_read_there_takes_nothing_of_its_sender() {
    for (method, comes) in [(Method::Kernel, true), (Method::Pipeline, false)] {
        let [mut near, mut far] = pair(&by(method));
        let (mut from, mut into) = (pattern(100_000, 3), vec![0; 100_000]);
        far.receive(whole(&mut into).into());
        ask([&mut near, &mut far], &mut from, false);
        assert_eq!(far.end().is_some(), comes, "{method:?}");
        assert_eq!(into == from, comes, "{method:?}");
    }
}

/// Who forgets its peer may use the memory for other things: none of that is taken for a message.
// spec: INJ-6, ENV-8
#[test]
fn what_was_a_message_is_none_once_its_sender_has_left() {
    let [mut near, mut far] = pair(&by(Method::Kernel));
    let (mut from, mut into) = (pattern(100_000, 3), vec![0; 100_000]);
    ask([&mut near, &mut far], &mut from, false);
    (0..100).for_each(|_| far.progress());
    near.endpoint.forget(near.other);
    from.fill(0xbb);
    far.receive(whole(&mut into).into());
    let end = far.end().expect("it ends");
    assert_eq!(end.result, Err(Fault::PeerDead), "{end:?}");
}

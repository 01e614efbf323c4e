//! An endpoint with something of every kind under way, with an honest endpoint and with a liar.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use crate::attacker::{Attacker, Begun, HELLO, Lane, Parts, VERSION, control_socket};
use ayre::endpoint::raw::{
    Completion, CompletionKind, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span, Spans,
};
use ayre::endpoint::{Address, RemoteId};
use ayre::tuning::{Method, Step, Tuning, Use};
use ayre::{EndpointOptions, Fault, Spin};
use ayre_proto::envelope::{Envelope, Record};
use ayre_proto::lane::Kind;
use ayre_proto::rma::RmaRecord;
use rustix::net::{SocketAddrUnix, connect};

/// Stands where no message may land.
const GUARD: u8 = 0xa5;
/// Bytes on both sides of a receive's memory that must stay.
const MARGIN: usize = 4096;
/// Bytes of messages that wait for their receive.
pub(crate) const ASKED: usize = 100_000;
/// Bytes that a receive takes of what the liar has asked for.
pub(crate) const WANTED: usize = 1000;
/// The liar's own name of that message.
pub(crate) const LIARS_ID: u64 = 7;
const POLLS: usize = 5000;

pub(crate) fn whole(bytes: &mut [u8]) -> Span {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
}

pub(crate) fn span(bytes: &mut [u8]) -> Spans {
    whole(bytes).into()
}

/// Memory of a receive, with guards around.
pub(crate) struct Guarded(Vec<u8>);

impl Guarded {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![GUARD; len + 2 * MARGIN])
    }

    pub(crate) fn spans(&mut self) -> Spans {
        let end = self.0.len() - MARGIN;
        span(&mut self.0[MARGIN..end])
    }

    /// All of it, as the memory of a memory region.
    pub(crate) fn whole(&mut self) -> Span {
        let end = self.0.len() - MARGIN;
        whole(&mut self.0[MARGIN..end])
    }

    /// All of it in parts, so that nothing lies in one piece.
    pub(crate) fn parts(&mut self) -> Spans {
        let end = self.0.len() - MARGIN;
        let inner = &mut self.0[MARGIN..end];
        let (first, second) = inner.split_at_mut(inner.len() / 3);
        Spans::new([first, second].map(whole)).expect("two are few")
    }

    /// Nothing outside was written, nor anything inside from `placed` bytes on.
    pub(crate) fn check(&self, placed: usize) {
        let is_guard = |bytes: &[u8]| bytes.iter().all(|byte| *byte == GUARD);
        assert!(is_guard(&self.0[..MARGIN]), "before the receive's memory");
        assert!(is_guard(&self.0[MARGIN + placed..]), "behind the receive's memory");
    }
}

pub(crate) fn socket_of(address: &Address) -> SocketAddrUnix {
    let [_, low, high] = address.local_words();
    let name = format!("ayre-{low:016x}{high:016x}");
    SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name")
}

/// The address of a liar of this name on the host of an endpoint.
pub(crate) fn address_of(endpoint: &RawEndpoint, [low, high]: [u64; 2]) -> Address {
    let [host, ..] = endpoint.address().local_words();
    Address::of_local_words([host, low, high])
}

pub(crate) fn hello(name: [u64; 2]) -> [u64; 8] {
    [HELLO, VERSION, u64::MAX, 1, 1, name[0], name[1], 0]
}

/// A liar that has said who it is; the victim has yet to answer.
pub(crate) fn call(victim: &RawEndpoint, hello: [u64; 8]) -> Begun {
    let control = control_socket();
    connect(&control, &socket_of(&victim.address())).expect("the victim listens");
    Begun::introduce(control, hello, Parts::new())
}

/// Polls until a thing is so.
pub(crate) fn poll_until(
    endpoint: &mut RawEndpoint,
    ends: &mut Vec<Completion>,
    mut is_so: impl FnMut(&mut RawEndpoint, &[Completion]) -> bool,
) {
    for _ in 0..POLLS {
        if is_so(endpoint, ends) {
            return;
        }
        endpoint.progress(|end| ends.push(end));
    }
    panic!("it does not come to be: {ends:?}");
}

/// Says a record as it is written by those who do not lie, but for its numbers.
pub(crate) fn say(liar: &mut Attacker, record: &Record, bytes: &[u64]) {
    let (tag, head, words) = record.encode();
    let payload: Vec<u64> = [&[0], &head[..words], bytes].concat();
    liar.put_claim(Lane::Messages, (Kind::GatedMessage, payload.len() as u32 * 8, tag), &payload);
}

pub(crate) fn envelope(tag: u64) -> Envelope {
    Envelope { tag: Some(tag), data: None }
}

/// Says a record that touches a window, likewise.
pub(crate) fn say_touch(liar: &mut Attacker, touch: &RmaRecord, bytes: &[u64]) {
    let (tag, head, words) = touch.encode();
    let payload: Vec<u64> = [&[0], &head[..words], bytes].concat();
    liar.put_claim(Lane::Messages, (Kind::GatedMessage, payload.len() as u32 * 8, tag), &payload);
}

/// The two endpoints, the liar, and what is under way.
pub(crate) struct Scene {
    pub(crate) victim: RawEndpoint,
    pub(crate) ends: Vec<Completion>,
    pub(crate) liar: Attacker,
    pub(crate) remote: RemoteId,
    /// The victim's names of what it has asked the liar, and wants of it.
    pub(crate) asked: u64,
    pub(crate) wanted: u64,
    pub(crate) honest: RawEndpoint,
    honest_ends: Vec<Completion>,
    pub(crate) to_honest: RemoteId,
    pub(crate) from_liar: Guarded,
    pub(crate) waiting: Guarded,
    pub(crate) from_any: Guarded,
    bytes: Vec<u8>,
    rooms: [Vec<u8>; 2],
}

/// Contexts of what is under way.
const TO_LIAR: u64 = 1;
const COMING: u64 = 2;
const WAITING: u64 = 3;
const FROM_ANY: u64 = 4;
const TO_HONEST: u64 = 10;
const FROM_HONEST: u64 = 11;
/// The honest endpoint's own.
const ITS_OWN: u64 = 20;

const COMING_TAG: u64 = 5;
const WAITING_TAG: u64 = 6;

pub(crate) fn outgoing(bytes: &mut [u8], name: u64) -> OutgoingMessage {
    let (bytes, context) = (span(bytes), name.into());
    OutgoingMessage { tag: Some(name), data: None, bytes, context, delivered: false }
}

fn receive(source: Option<RemoteId>, tag: u64, into: Spans, name: u64) -> PostedReceive {
    PostedReceive { source, tag: Some((tag, 0)), into, context: name.into(), many: None }
}

/// Two endpoints that have met.
fn two(options: &EndpointOptions) -> ([RawEndpoint; 2], [RemoteId; 2]) {
    let step = Step { from: 0, method: Method::Kernel };
    let tuning = Tuning::new().with_steps(Use::Receive, vec![step]).expect("a step");
    let options = options.clone().spin(Spin::SHARED).ring(1 << 18).tuning(tuning);
    let mut ends = [0, 1].map(|_| RawEndpoint::open_with(&options).expect("an endpoint"));
    let addresses = ends.each_ref().map(RawEndpoint::address);
    let others = [0, 1].map(|at| ends[at].remote(&addresses[1 - at]).expect("a neighbour"));
    let mut bytes = [1];
    for _ in 0..POLLS {
        let sent = ends[0].send(others[0], &outgoing(&mut bytes, 99));
        if sent.is_ok() {
            return (ends, others);
        }
        for end in &mut ends {
            end.progress(|_| ());
        }
    }
    panic!("two endpoints meet");
}

impl Scene {
    /// With `in_parts`, the memory of receives lies in several pieces.
    pub(crate) fn new(in_parts: bool) -> Self {
        Self::of(&EndpointOptions::new(), in_parts)
    }

    /// A scene of two endpoints that are opened with these options.
    pub(crate) fn of(options: &EndpointOptions, in_parts: bool) -> Self {
        let ([mut victim, honest], [to_honest, _]) = two(options);
        let name = [0x11a5, 0x11a5];
        let begun = call(&victim, hello(name));
        let remote = victim.remote(&address_of(&victim, name)).expect("a neighbour");
        let mut bytes: Vec<u8> = (0..ASKED).map(|at| (at / 3) as u8).collect();
        let mut ends = Vec::new();
        // It calls nobody of that name: the liar's own call is heard first.
        poll_until(&mut victim, &mut ends, |_, _| begun.is_answered());
        let liar = begun.finish();
        let to_liar = victim.send(remote, &outgoing(&mut bytes, TO_LIAR));
        assert_eq!(to_liar, Ok(Sent::Pending));
        let mut scene = Self {
            asked: liar.heard(0)[3],
            wanted: u64::MAX,
            victim,
            ends,
            liar,
            remote,
            honest,
            honest_ends: Vec::new(),
            to_honest,
            from_liar: Guarded::new(WANTED),
            waiting: Guarded::new(64),
            from_any: Guarded::new(64),
            bytes,
            rooms: [0, 1].map(|_| vec![0; ASKED]),
        };
        scene.begin_with_honest();
        scene.begin_with_liar(in_parts);
        scene
    }

    /// One more receive of a message of the liar's.
    pub(crate) fn receive_of_liar(&mut self, tag: u64, into: &mut [u8]) {
        let receive = receive(Some(self.remote), tag, span(into), tag);
        self.victim.receive(receive).expect("there is room");
    }

    fn begin_with_liar(&mut self, in_parts: bool) {
        let Self { from_liar, waiting, from_any, .. } = self;
        let places = match in_parts {
            true => [from_liar.parts(), waiting.parts(), from_any.parts()],
            false => [from_liar.spans(), waiting.spans(), from_any.spans()],
        };
        let [coming, waits, any] = places;
        let source = Some(self.remote);
        let receives = [
            receive(source, COMING_TAG, coming, COMING),
            receive(source, WAITING_TAG, waits, WAITING),
            receive(None, WAITING_TAG, any, FROM_ANY),
        ];
        receives.into_iter().for_each(|it| self.victim.receive(it).expect("there is room"));
        let (id, len) = (LIARS_ID, 4000);
        let envelope = envelope(COMING_TAG);
        let ask = Record::Rts { envelope, id, answered: false, len, address: 0 };
        say(&mut self.liar, &ask, &[]);
        let liar = &self.liar;
        let is_go = || liar.heard(1)[1] == LIARS_ID && liar.heard(1)[3] == WANTED as u64;
        poll_until(&mut self.victim, &mut self.ends, |_, _| is_go());
        self.wanted = liar.heard(1)[2];
    }

    /// A message each way whose receives have matched, and of which nothing has come yet.
    fn begin_with_honest(&mut self) {
        let Self { victim, honest, bytes, rooms: [near, far], ends, honest_ends, .. } = self;
        let back = honest.remote(&victim.address()).expect("a neighbour");
        let theirs = receive(None, TO_HONEST, span(far), TO_HONEST);
        honest.receive(theirs).expect("there is room");
        let ours = receive(None, ITS_OWN, span(near), FROM_HONEST);
        victim.receive(ours).expect("there is room");
        // In two pieces, which nobody reads where they lie.
        let (first, second) = bytes.split_at_mut(ASKED / 2);
        let pieces = Spans::new([first, second].map(whole)).expect("two are few");
        let in_pieces = |name| OutgoingMessage { bytes: pieces.clone(), ..outgoing(&mut [], name) };
        let sent = victim.send(self.to_honest, &in_pieces(TO_HONEST));
        assert_eq!(sent, Ok(Sent::Pending));
        let sent = honest.send(back, &in_pieces(ITS_OWN));
        assert_eq!(sent, Ok(Sent::Pending));
        for _ in 0..100 {
            victim.progress(|end| ends.push(end));
        }
        assert!(ends.is_empty() && honest_ends.is_empty());
    }

    /// The victim's names of what it has under way with the honest endpoint.
    pub(crate) fn asked_of_honest(&self) -> u64 {
        self.asked + 1
    }

    pub(crate) fn wanted_of_honest(&self) -> u64 {
        1 - self.wanted
    }

    pub(crate) fn malformed(&self) -> u64 {
        self.victim.counters().malformed()
    }

    /// Asserts that all operations with the liar have completed, and no others.
    pub(crate) fn check_ended(&mut self, what: &str, placed: usize) {
        let Self { victim, ends, .. } = self;
        poll_until(victim, ends, |victim, _| victim.counters().malformed() > 0);
        for _ in 0..100 {
            victim.progress(|end| ends.push(end));
        }
        assert_eq!(victim.counters().malformed(), 1, "{what}: counted once");
        let mut faults: Vec<_> = ends.iter().filter(|end| end.result.is_err()).collect();
        faults.sort_by_key(|end| end.context);
        let faults: Vec<_> = faults.iter().map(|end| (end.context as u64, end.result)).collect();
        let why = Err(Fault::Malformed);
        let all = [(TO_LIAR, why), (COMING, why), (WAITING, why)];
        let due = all.into_iter().filter(|(context, _)| {
            !ends.iter().any(|end| end.context == u128::from(*context) && end.result.is_ok())
        });
        assert_eq!(faults, due.collect::<Vec<_>>(), "{what}");
        let again = victim.send(self.remote, &outgoing(&mut self.bytes, 50));
        assert_eq!(again, Err(Fault::Malformed.into()), "{what}");
        self.from_liar.check(placed);
        self.waiting.check(0);
        self.from_any.check(0);
        self.check_honest(what);
        assert!(self.victim.cancel(FROM_ANY), "{what}: a receive from anybody waits on");
    }

    /// Asserts that all messages of the honest endpoint arrive whole.
    pub(crate) fn check_honest(&mut self, what: &str) {
        let Self { victim, ends, honest, honest_ends, .. } = self;
        for _ in 0..POLLS {
            victim.progress(|end| ends.push(end));
            honest.progress(|end| honest_ends.push(end));
        }
        let has = |ends: &[Completion], name: u64| {
            let mut ends = ends.iter().filter(|end| end.context == name.into());
            ends.next().is_some_and(|end| end.result == Ok(())) && ends.next().is_none()
        };
        assert!(has(ends, TO_HONEST) && has(ends, FROM_HONEST), "{what}: {ends:?}");
        assert!(has(honest_ends, TO_HONEST) && has(honest_ends, ITS_OWN), "{what}");
        let is_received = |end: &&Completion| matches!(end.what, CompletionKind::Received(_));
        assert_eq!(honest_ends.iter().filter(is_received).count(), 1, "{what}");
        assert!(self.rooms.iter().all(|room| *room == self.bytes), "{what}: each byte");
    }
}

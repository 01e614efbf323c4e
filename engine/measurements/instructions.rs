//! Runs one hot path many times, for counting its instructions: `instructions CASE COUNT`.
//!
//! Both ends are ports of this process, so that what is counted is the library's own work and no
//! waiting. `cargo xtask instructions` runs it under callgrind with two counts; what differs is
//! the cost of the operations between.
use ayre::active::{Call, Messenger};
use ayre::channel::Channel;
use ayre::collective::Request;
use ayre::collective::{Combine, Number};
use ayre::deposit::{AddressMode, Deposit, InletOptions, Program, Register, X, Y, Z};
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{
    MemoryRegion, MemoryRegions, OutgoingMessage, PostedReceive, RawEndpoint, RemoteAddress,
    RmaUpdate, RmaWrite, Span, Spans,
};
use ayre::multicast::MulticastOptions;
use ayre::{
    Config, EndpointOptions, Mode, NetOptions, PeerId, Port, PostOptions, RegionOptions,
    RemoteQueue, RemoteRegion, Rights, Simulation, Spin,
};
use ayre_proto::matching::{self, Arrive, Matcher, Message, Pattern, Post, Sizes};
use std::hint::black_box;
use std::time::Duration;

struct Pair {
    near: Port,
    far: Port,
    to: PeerId,
    remote: RemoteRegion,
}

impl Pair {
    fn new(mode: Mode) -> Self {
        let config = |number| Config::new().number(number).mode(mode);
        let (mut near, mut far) = Port::pair(config(0), config(1)).expect("two ports");
        let to = near.peer(1).expect("connected");
        let from = far.peer(0).expect("connected");
        let region = far.alloc(4096, RegionOptions::new()).expect("a page");
        far.share(from, &region, 0..4096, Rights::all(), 0).expect("shared");
        let remote = near.accept_region(to, 0).expect("accepted");
        Self { near, far, to, remote }
    }

    fn put(&mut self, len: usize) {
        let data = [7; 64];
        self.near.put(&self.remote, 0, black_box(&data[..len]), PostOptions::new()).expect("room");
    }

    fn put_notified(&mut self, len: usize) {
        let data = [7; 64];
        let options = PostOptions::new().completer();
        self.near.put(&self.remote, 0, black_box(&data[..len]), options).expect("room");
        black_box(self.far.poll_notification()).expect("a notification");
    }

    /// A mediated put: posted, executed in a poll of the target, ended in one of the initiator.
    fn put_mediated(&mut self, len: usize) {
        self.put(len);
        assert!(self.far.poll_notification().is_none(), "nobody asked for one");
        assert!(self.near.poll_notification().is_none(), "nobody asked for one");
        assert!(self.near.is_flushed(self.to), "one poll each suffices");
    }

    fn fetch_add(&mut self) {
        black_box(self.near.fetch_add(&self.remote, 8, black_box(1))).expect("room");
    }

    fn message(&mut self, len: usize) {
        let data = [7; 64];
        let mut into = [0; 64];
        self.near.send(self.to, 1, black_box(&data[..len])).expect("room");
        black_box(self.far.try_recv(&mut into)).expect("fits").expect("a message");
    }
}

/// A call, and the poll that runs its handler; or polls that find nothing.
fn active(len: usize, called: bool, count: u64) {
    let Pair { near, far, to, .. } = Pair::new(Mode::Direct);
    let (mut near, mut far) = (Messenger::<u64>::new(near), Messenger::<u64>::new(far));
    let add = far.register("add", |sum: &mut u64, _, [number], bytes| {
        *sum += number + bytes.len() as u64;
    });
    let (add, data, mut sum) = (add.expect("a new name"), [7; 64], 0);
    far.poll(&mut sum);
    near.poll(&mut 0);
    for number in 0..count {
        if called {
            near.call(&mut 0, to, add, [number], black_box(&data[..len])).expect("alive");
        }
        assert_eq!(far.poll(&mut sum), usize::from(called));
    }
    black_box(sum);
}

/// Calls by a logical channel, beside other channels that have something held and nothing to do.
// spec: CHAN-7
fn by_channel(others: u8, count: u64) {
    let Pair { near, far, to, .. } = Pair::new(Mode::Direct);
    let (mut near, mut far) = (Messenger::<u64>::new(near), Messenger::<u64>::new(far));
    let add = far.register("add", |sum: &mut u64, _, [number], _| *sum += number);
    let (add, mut sum) = (add.expect("a new name"), 0);
    far.poll(&mut sum);
    near.poll(&mut 0);
    let channels = (1..=1 + others).filter_map(Channel::with_number);
    for other in channels.clone().skip(1) {
        far.channels().hold(other);
        near.on(other).call(&mut 0, to, add, [1], &[]).expect("alive");
        far.poll(&mut sum);
    }
    let channel = channels.clone().next().expect("the first one");
    for number in 0..count {
        near.on(channel).call(&mut 0, to, add, [number], &[]).expect("alive");
        assert_eq!(far.poll(&mut sum), 1);
        // It hears of room.
        near.poll(&mut 0);
    }
    black_box(sum);
}

/// An allreduce of two: one has begun it, the other one does it in a call, which may be recorded,
/// the first one ends it.
fn allreduce(is_recorded: bool, count: u64) {
    let Pair { near, far, .. } = Pair::new(Mode::Direct);
    let (mut near, mut far) = (Messenger::<()>::new(near), Messenger::<()>::new(far));
    let [at_near, at_far] =
        [&mut near, &mut far].map(|end| end.collectives().group_of_all("all").expect("a new name"));
    if is_recorded {
        near.collectives().record(at_near, 1000).expect("few calls");
    }
    for number in 0..count {
        let mut sum = [number];
        let begun = far.collectives().start(at_far, Request::allreduce(Combine::Sum, vec![number]));
        near.collectives()
            .allreduce(&mut (), at_near, Combine::Sum, black_box(&mut sum))
            .expect("alive");
        let theirs = far.collectives().finish(&mut (), begun.expect("a group"));
        assert_eq!(theirs, Ok(sum.to_vec()));
    }
}

/// A message of a root to two others, and both take it.
fn multicast(count: u64) {
    let (root, mut others) = idle_port(2, Mode::Direct);
    let path = std::env::temp_dir().join(format!("ayre-multicast-{}", std::process::id()));
    let (first, second) = others.split_at_mut(1);
    first[0].listen(&path).expect("listens");
    std::thread::scope(|scope| {
        scope.spawn(|| second[0].connect(&path).expect("connects"));
        first[0].accept().expect("accepts");
    });
    let _ = std::fs::remove_file(path);
    let options = MulticastOptions::new();
    let heard = |heard: &mut u64, _: &mut Call<'_>, [number]: [u64; 1], _: &[u8]| *heard += number;
    let mut root = Messenger::new(root);
    let hear = root.register("hear", heard).expect("a new name");
    let (name, mut counts) = ("all", [0; 3]);
    let all = root.multicast().found(name, options, |_, _| ()).expect("a new name");
    let mut members = Vec::new();
    for port in others {
        let joining = std::thread::spawn(move || {
            let mut other = Messenger::new(port);
            other.register("hear", heard).expect("a new name");
            let founder = other.port().peer(0).expect("connected");
            other.multicast().join(&mut 0, name, founder, options, |_, _| ()).expect("it has room");
            other
        });
        while !joining.is_finished() {
            root.poll(&mut 0);
            members.iter_mut().for_each(|member: &mut Messenger<u64>| _ = member.poll(&mut 0));
            std::thread::yield_now();
        }
        members.push(joining.join().expect("a member"));
    }
    for _ in 0..count {
        root.multicast().send(&mut counts[0], all, hear, [1], black_box(&[])).expect("a member");
        members.iter_mut().zip(&mut counts[1..]).for_each(|(member, count)| _ = member.poll(count));
        root.poll(&mut counts[0]);
    }
    while counts.iter().any(|heard| *heard < count) {
        members.iter_mut().zip(&mut counts[1..]).for_each(|(member, count)| _ = member.poll(count));
        root.poll(&mut counts[0]);
    }
}

/// Puts of `len` bytes over a link, as many under way as there is room for. The network is memory
/// here. Counts both ports: from the program to the network, and the answers.
fn linked(len: usize, count: u64) {
    let simulation = Simulation::new(Duration::from_micros(10));
    let configs = [0, 1].map(|number| Config::new().number(number));
    let ports = simulation.mesh(&NetOptions::plain(), configs).expect("two ports");
    let [mut near, mut far]: [Port; 2] = ports.try_into().expect("two ports");
    let region = far.alloc(4096, RegionOptions::new()).expect("a page");
    far.share(PeerId(0), &region, 0..4096, Rights::all(), 0).expect("shared");
    let mut serve = |near: &mut Port| {
        near.progress();
        far.progress();
    };
    // In so many polls what was shared arrives.
    (0..1000).for_each(|_| serve(&mut near));
    let remote = near.accept_region(PeerId(1), 0).expect("it has arrived");
    let data = [7; 2048];
    for _ in 0..count {
        while near.put(&remote, 0, black_box(&data[..len]), PostOptions::new()).is_err() {
            serve(&mut near);
        }
    }
    while !near.is_flushed(PeerId(1)) {
        serve(&mut near);
    }
}

/// A port with many peers, none of which says anything.
fn idle_port(peers: u16, mode: Mode) -> (Port, Vec<Port>) {
    let directory = std::env::temp_dir().join(format!("ayre-idle-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("port");
    let mut port = Port::open(Config::new().mode(mode)).expect("a port");
    port.listen(&path).expect("listens");
    let others = (1..=peers).map(|number| {
        let path = path.clone();
        let join = std::thread::spawn(move || {
            let config = Config::new().number(number).mode(mode);
            let mut other = Port::open(config).expect("a port");
            other.connect(path).expect("connects");
            other
        });
        port.accept().expect("accepts");
        join.join().expect("a connected port")
    });
    let others = others.collect();
    let _ = std::fs::remove_dir_all(&directory);
    (port, others)
}

fn poll(peers: u16, mode: Mode, count: u64) {
    let (mut port, _others) = idle_port(peers, mode);
    let mut into = [0; 64];
    for _ in 0..count {
        black_box(port.try_recv(&mut into)).expect("nothing malformed");
    }
}

fn queue(pair: &mut Pair, count: u64) {
    let from = pair.far.peer(0).expect("connected");
    let mut queue = pair.far.create_queue(4096).expect("a queue");
    pair.far.share_queue(from, &mut queue, 1).expect("shared");
    let mut remote: RemoteQueue = pair.near.accept_queue(pair.to, 1).expect("accepted");
    let mut into = [0; 64];
    for _ in 0..count {
        pair.near.enqueue(&mut remote, black_box(&[7; 32])).expect("room");
        black_box(pair.far.dequeue(&mut queue, &mut into)).expect("fits").expect("a record");
    }
}

/// Records of 32 bytes, appended to a ring that many could append to, by a stored instruction.
fn append(pair: &mut Pair, count: u64) {
    let from = pair.far.peer(0).expect("connected");
    let depot = pair.far.create_depot().expect("a depot");
    let region = pair.far.alloc(4096, RegionOptions::new()).expect("a page");
    let [tail, size, limit] = [0, 1, 2].map(Register::At);
    let append = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
    depot.store(0, &[append.store([tail, size, limit])]).expect("there is a place");
    depot.set_register(1, 32).expect("nobody is inside");
    depot.set_register(2, u64::MAX).expect("nobody is inside");
    let options = InletOptions::new().entries(0..1).longest(32);
    let part = (&region, 0..4096);
    let _inlet = pair.far.share_inlet(from, &depot, part, &options, 1).expect("shared");
    let remote = pair.near.accept_inlet(pair.to, 1).expect("accepted");
    let data = [7; 32];
    let is_mediated = pair.near.mode(pair.to) == Ok(Mode::Mediated);
    for _ in 0..count {
        let deposit = Deposit::enter(0).data(black_box(&data));
        pair.near.deposit(&remote, &deposit, PostOptions::new()).expect("room");
        if is_mediated {
            assert!(pair.far.poll_notification().is_none(), "nobody asked for one");
            assert!(pair.near.poll_notification().is_none(), "nobody asked for one");
        }
    }
    assert_eq!(depot.register(0), 32 * count);
}

/// A matcher where receives and messages wait, of tags from 1000 on.
fn matcher(receives: u64, messages: u64) -> Matcher {
    let mut matcher = Matcher::new(Sizes { receives: 1 << 16, messages: 1 << 11, sources: 2 }, 1);
    for tag in 1000..1000 + receives {
        post(&mut matcher, tag);
    }
    for tag in 1000..1000 + messages {
        arrive(&mut matcher, tag);
    }
    matcher
}

/// A receive as MPI libraries post them: of one source, and all of the tag but some bits.
fn post(matcher: &mut Matcher, tag: u64) {
    let pattern = Pattern { source: Some(1), tag: black_box(tag), ignore: 1 << 63 };
    let post = matcher.post(matching::Receive { pattern, capacity: 8, handle: tag });
    assert!(post != Post::Busy, "there is room");
}

fn arrive(matcher: &mut Matcher, tag: u64) {
    let tag = black_box(tag);
    let message = Message { source: Some(1), tag, len: 8, handle: tag, whole: true };
    assert!(matcher.arrive(message) != Arrive::Busy, "there is room");
}

/// A receive that waits, and its message, beside `others` that wait.
fn expected(others: u64, count: u64) {
    let mut matcher = matcher(others, 0);
    for _ in 0..count {
        post(&mut matcher, 7);
        arrive(&mut matcher, 7);
    }
    assert_eq!(u64::from(matcher.receive_count()), others);
}

/// A message that no receive waits for, and its receive, beside `others` of its kind.
fn unexpected(others: u64, count: u64) {
    let mut matcher = matcher(0, others);
    for _ in 0..count {
        arrive(&mut matcher, 7);
        post(&mut matcher, 7);
    }
    assert_eq!(u64::from(matcher.message_count()), others);
}

/// A message that is expected, where receives of four masks wait.
fn masks(count: u64) {
    let mut matcher = matcher(1000, 0);
    for (source, ignore) in [(None, 1 << 63), (Some(1), 255 | 1 << 63), (None, 255 | 1 << 63)] {
        let pattern = Pattern { source, tag: 1 << 40, ignore };
        let _ = matcher.post(matching::Receive { pattern, capacity: 8, handle: 0 });
    }
    for _ in 0..count {
        post(&mut matcher, 7);
        arrive(&mut matcher, 7);
    }
    assert_eq!(matcher.receive_count(), 1003);
}

/// Two endpoints that are connected, and how the first one names the second.
fn endpoints() -> (RawEndpoint, RawEndpoint, RemoteId) {
    // Without a network nobody else of this process does anything.
    introduced(&EndpointOptions::new().spin(Spin::SHARED).local())
}

/// Two endpoints that are opened with these options.
fn introduced(options: &EndpointOptions) -> (RawEndpoint, RawEndpoint, RemoteId) {
    let [mut near, mut far] = [0, 1].map(|_| RawEndpoint::open_with(options).expect("an endpoint"));
    let to = near.remote(&far.address()).expect("an endpoint of this host");
    let hello = OutgoingMessage {
        tag: Some(1),
        data: None,
        bytes: Spans::default(),
        context: 0,
        delivered: false,
    };
    while near.send(to, &hello).is_err_and(|error| error.is_busy()) {
        far.progress(|_| ());
    }
    while far.find(None, Some((1, 0))).is_none() {
        far.progress(|_| ());
    }
    (near, far, to)
}

/// A receive, the message that it waits for, and the poll that finds it.
fn tagged(len: usize, count: u64) {
    let (mut near, mut far, to) = endpoints();
    let [from, into] = [0, 1].map(|_| Span::of_static(vec![7; len].leak()));
    for _ in 0..count {
        let tag = Some((7, 0));
        let (source, into, context, many) = (None, into.into(), 1, None);
        far.receive(PostedReceive { source, tag, into, context, many }).expect("room");
        let (tag, bytes, delivered) = (Some(7), from.into(), false);
        let message = OutgoingMessage { tag, data: None, bytes, context: 2, delivered };
        let _ = black_box(near.send(to, &message)).expect("room");
        let mut ends = 0;
        far.progress(|end| ends += u32::from(end.result.is_ok()));
        assert_eq!(ends, 1);
    }
}

/// A message over a link, its receive, and the polls that find it, back and forth. The system
/// carries it. Counts what is before and behind the calls of the system, but not those.
fn tagged_over_link(len: usize, count: u64) {
    let options = EndpointOptions::new().spin(Spin::SHARED).at([127, 0, 0, 1].into());
    let (mut near, mut far, to) = introduced(&options.plain().apart());
    let back = far.remote(&near.address()).expect("the other one");
    let [from, into] = [0, 1].map(|_| Span::of_static(vec![7; len].leak()));
    for turn in 0..count {
        let (source, target, to) =
            if turn % 2 == 0 { (&mut near, &mut far, to) } else { (&mut far, &mut near, back) };
        let tag = Some((7, 0));
        let (none, into, context, many) = (None, into.into(), 1, None);
        target.receive(PostedReceive { source: none, tag, into, context, many }).expect("room");
        let (tag, bytes, delivered) = (Some(7), from.into(), false);
        let message = OutgoingMessage { tag, data: None, bytes, context: 2, delivered };
        while source.send(to, &message).is_err() {
            source.progress(|_| ());
        }
        let mut ends = 0;
        while ends == 0 {
            target.progress(|end| ends += u32::from(end.result.is_ok()));
            if ends == 0 {
                source.progress(|_| ());
            }
        }
    }
}

/// Something that touches a window of the far one, until its end has been told.
fn touched(count: u64, post: impl Fn(&mut RawEndpoint, RemoteAddress)) {
    let (mut near, mut far, remote) = endpoints();
    let (memory, rights) = (vec![Span::of_static(vec![7; 64].leak())], Rights::all());
    let windows = MemoryRegions::new();
    windows.expose(MemoryRegion { key: 1, base: 0, memory, rights }).expect("room");
    far.share(&windows);
    for _ in 0..count {
        post(&mut near, RemoteAddress { remote, key: 1, address: 8 });
        far.progress(|_| ());
        let mut ends = 0;
        near.progress(|end| ends += u32::from(end.result.is_ok()));
        assert_eq!(ends, 1);
    }
}

fn written(count: u64) {
    let bytes: Spans = Span::of_static(vec![7; 8].leak()).into();
    let write = RmaWrite { bytes, data: None, context: 1, inject: true };
    touched(count, |near, spot| {
        let _ = black_box(near.write(spot, &write)).expect("room");
    });
}

fn read(count: u64) {
    let into: Spans = Span::of_static(vec![7; 8].leak()).into();
    touched(count, |near, spot| near.read(spot, into.clone(), 1).expect("room"));
}

fn updated(count: u64) {
    let [operand, result] = [0, 1].map(|_| Spans::from(Span::of_static(vec![7; 8].leak())));
    let (op, number, compare) = (Combine::Sum, Number::U64, Spans::default());
    let result = Some(result);
    let update = RmaUpdate { op, number, operand, compare, result, data: None, context: 1 };
    touched(count, |near, spot| near.update(spot, &update).expect("room"));
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().expect("CASE COUNT");
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).expect("CASE COUNT");
    let repeat = |mode, mut work: Box<dyn FnMut(&mut Pair)>| {
        let mut pair = Pair::new(mode);
        (0..count).for_each(|_| work(&mut pair));
    };
    let times = |work| repeat(Mode::Direct, work);
    match case.as_str() {
        "put-8" => times(Box::new(|pair| pair.put(8))),
        "put-56" => times(Box::new(|pair| pair.put(56))),
        "put-8-notified" => times(Box::new(|pair| pair.put_notified(8))),
        "fetch-add-8" => times(Box::new(Pair::fetch_add)),
        "message-8" => times(Box::new(|pair| pair.message(8))),
        "message-56" => times(Box::new(|pair| pair.message(56))),
        "message-64" => times(Box::new(|pair| pair.message(64))),
        "active-8" => active(8, true, count),
        "active-48" => active(48, true, count),
        "active-poll" => active(0, false, count),
        "channel-8" => by_channel(0, count),
        "channel-8-of-200" => by_channel(199, count),
        "allreduce-8" => allreduce(false, count),
        "allreduce-8-recorded" => allreduce(true, count),
        "multicast-8" => multicast(count),
        "enqueue-32" => queue(&mut Pair::new(Mode::Direct), count),
        "poll-1-peer" => poll(1, Mode::Direct, count),
        "poll-64-peers" => poll(64, Mode::Direct, count),
        "poll-mediated-1-peer" => poll(1, Mode::Mediated, count),
        "poll-mediated-64-peers" => poll(64, Mode::Mediated, count),
        "put-8-mediated" => repeat(Mode::Mediated, Box::new(|pair| pair.put_mediated(8))),
        "put-32-mediated" => repeat(Mode::Mediated, Box::new(|pair| pair.put_mediated(32))),
        "append-32" => append(&mut Pair::new(Mode::Direct), count),
        "append-32-mediated" => append(&mut Pair::new(Mode::Mediated), count),
        "match-1" => expected(0, count),
        "match-1000" => expected(1000, count),
        "match-1000-4-masks" => masks(count),
        "match-post" => assert_eq!(u64::from(matcher(count, 0).receive_count()), count),
        "match-arrive" => {
            let mut matcher = matcher(50_000, 0);
            (1000..1000 + count).for_each(|tag| arrive(&mut matcher, tag));
        }
        "match-unexpected-1" => unexpected(0, count),
        "match-unexpected-1000" => unexpected(1000, count),
        "tagged-8" => tagged(8, count),
        "tagged-64" => tagged(64, count),
        "write-8" => written(count),
        "read-8" => read(count),
        "update-8" => updated(count),
        "linked-tagged-8" => tagged_over_link(8, count),
        "linked-put-8" => linked(8, count),
        "linked-put-1300" => linked(1300, count),
        "tagged-poll" => {
            let mut ends = endpoints();
            (0..count).for_each(|_| assert!(!ends.0.progress(|_| ())));
        }
        other => panic!("no case {other}"),
    }
}

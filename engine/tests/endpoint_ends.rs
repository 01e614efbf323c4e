//! How messages end where something comes between: a death, a sender that is forgotten, a receive
//! without room, others that keep sending.
use ayre::endpoint::raw::{
    Completion, CompletionKind, Context, OutgoingMessage, PostedReceive, RawEndpoint, Sent, Span,
    Spans,
};
use ayre::endpoint::{Address, RemoteId};
use ayre::{Busy, EndpointOptions, Fault, PostError, Spin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const POLLS: usize = 20_000;

fn span(bytes: &mut [u8]) -> Spans {
    // SAFETY: each test keeps its buffers, and keeps off them, until their operations have ended.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }.into()
}

fn message(bytes: &mut [u8], context: Context, delivered: bool) -> OutgoingMessage {
    OutgoingMessage { tag: Some(1), data: None, bytes: span(bytes), context, delivered }
}

fn receive(source: Option<RemoteId>, into: &mut [u8], context: Context) -> PostedReceive {
    PostedReceive { source, tag: Some((1, 0)), into: span(into), context, many: None }
}

/// An endpoint and what has ended at it.
struct Side {
    endpoint: RawEndpoint,
    ends: Vec<Completion>,
}

impl Side {
    fn open() -> Self {
        // So narrow that some megabytes fill it.
        let options = EndpointOptions::new().spin(Spin::SHARED).ring(1 << 18);
        Self { endpoint: RawEndpoint::open_with(&options).expect("an endpoint"), ends: Vec::new() }
    }

    fn poll(&mut self) {
        let Self { endpoint, ends } = self;
        endpoint.progress(|end| ends.push(end));
    }

    fn address(&self) -> Address {
        self.endpoint.address()
    }

    fn remote(&mut self, other: &Self) -> RemoteId {
        self.endpoint.remote(&other.address()).expect("a neighbour")
    }

    fn results(&self) -> Vec<(Context, Result<(), Fault>)> {
        let mut results: Vec<_> = self.ends.iter().map(|end| (end.context, end.result)).collect();
        results.sort_by_key(|end| end.0);
        results
    }
}

fn poll_until<const N: usize>(
    mut sides: [&mut Side; N],
    mut is_so: impl FnMut(&mut [&mut Side; N]) -> bool,
) {
    for _ in 0..POLLS {
        if is_so(&mut sides) {
            return;
        }
        sides.iter_mut().for_each(|side| side.poll());
    }
    let ends: Vec<_> = sides.iter().map(|side| &side.ends).collect();
    panic!("it does not come to be: {ends:?}");
}

/// Sends once there is room and a connection.
fn send([from, to]: [&mut Side; 2], remote: RemoteId, message: &OutgoingMessage) -> Sent {
    let mut sent = None;
    poll_until([from, to], |[from, _]| match from.endpoint.send(remote, message) {
        Ok(done) => sent.replace(done).is_none(),
        Err(PostError::Busy(_)) => false,
        Err(error) => panic!("{error}"),
    });
    sent.expect("it was sent")
}

// spec: ENV-15, ENV-18, ENV-20
#[test]
fn a_message_into_an_empty_buffer_completes() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    let mut bytes = vec![1; 100_000];
    for delivered in [false, true] {
        // To a receive that waits, and to one that comes later.
        for is_late in [false, true] {
            let post = |far: &mut Side| far.endpoint.receive(receive(None, &mut [], 5));
            if !is_late {
                post(&mut far).expect("there is room");
            }
            let sent = send([&mut near, &mut far], remote, &message(&mut bytes, 4, delivered));
            assert_eq!(sent, Sent::Pending);
            (0..100).for_each(|_| far.poll());
            if is_late {
                post(&mut far).expect("there is room");
            }
            // Go and done are there before the sender looks.
            (0..100).for_each(|_| far.poll());
            poll_until([&mut near], |[near]| near.ends.len() == 1);
            assert_eq!((near.results(), far.results()), (vec![(4, Ok(()))], vec![(5, Ok(()))]));
            near.ends.clear();
            far.ends.clear();
        }
        let sent = send([&mut near, &mut far], remote, &message(&mut bytes, 4, delivered));
        assert_eq!(sent, Sent::Pending);
        let mut found = None;
        poll_until([&mut far], |[far]| {
            found = far.endpoint.find(None, Some((1, 0)));
            found.is_some()
        });
        assert!(far.endpoint.discard(true, found.expect("it was found").id));
        poll_until([&mut near], |[near]| near.ends.len() == 1);
        assert_eq!(near.results(), [(4, Ok(()))], "thrown away");
        near.ends.clear();
    }
    assert_eq!(near.endpoint.counters().malformed(), 0);
}

// spec: ENV-8
#[test]
fn messages_sent_before_a_death_arrive() {
    let [mut far, mut other] = [0, 1].map(|_| Side::open());
    let mut bytes = [7; 600];
    for round in 0..20 {
        let mut near = Side::open();
        let (remote, from_other) = (near.remote(&far), other.remote(&far));
        for sender in [(&mut near, remote), (&mut other, from_other)] {
            let _ = send([sender.0, &mut far], sender.1, &message(&mut bytes[..8], 1, false));
        }
        let mut rooms = vec![[0; 600]; 42];
        for (index, room) in rooms.iter_mut().enumerate() {
            far.endpoint.receive(receive(None, room, index as Context)).expect("there is room");
        }
        poll_until([&mut far], |[far]| far.ends.len() == 2);
        for count in 0..40 {
            let len = if count % 2 == 0 { 8 } else { 600 };
            let sent = near.endpoint.send(remote, &message(&mut bytes[..len], 1, false));
            assert_eq!(sent, Ok(Sent::Completed), "there is room for {count}");
        }
        drop(near);
        // The system says that it is gone before its records are looked at.
        (0..round % 3).for_each(|_| far.poll());
        far.endpoint.wake();
        poll_until([&mut far], |[far]| far.ends.len() == 42);
        assert!(far.ends.iter().all(|end| end.result.is_ok()));
        far.ends.clear();
    }
    assert_eq!(far.endpoint.counters().malformed(), 0);
}

// spec: ENV-8, ENV-15
#[test]
fn completions_owed_to_a_departed_peer_are_dropped() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    let mut bytes = [7; 600];
    let sent = send([&mut near, &mut far], remote, &message(&mut bytes, 1, true));
    assert_eq!(sent, Sent::Pending);
    let find = |far: &mut Side| far.endpoint.find(None, Some((1, 0)));
    poll_until([&mut far], |[far]| find(far).is_some());
    let from = find(&mut far).and_then(|found| found.message.source).expect("its source");
    drop(near);
    let mut room = [0; 600];
    far.endpoint.receive(receive(Some(from), &mut [], 2)).expect("there is room");
    let is_dead = |far: &mut Side| {
        let sent = far.endpoint.send(from, &message(&mut [1], 1, false));
        sent == Err(PostError::Fault(Fault::PeerDead))
    };
    poll_until([&mut far], |[far]| is_dead(far));
    assert_eq!(far.results(), [(2, Ok(()))], "it had come whole");
    far.endpoint.receive(receive(None, &mut room, 3)).expect("there is room");
    assert!(far.endpoint.rest(|_| ()), "there is nothing to be done");
    far.endpoint.wake();
}

// spec: ENV-16
#[test]
fn a_forgotten_remote_leaves_no_state_to_its_successor() {
    let mut far = Side::open();
    let mut all = [0, 1, 2].map(|_| vec![3; 600]);
    let mut last: Option<RemoteId> = None;
    for _ in 0..3 {
        let mut near = Side::open();
        let remote = near.remote(&far);
        for bytes in &mut all {
            let sent = send([&mut near, &mut far], remote, &message(bytes, 1, true));
            assert_eq!(sent, Sent::Pending);
        }
        let mut found = None;
        poll_until([&mut far], |[far]| {
            found = far.endpoint.find(None, Some((1, 0)));
            found.is_some()
        });
        let found = found.expect("it was found");
        assert!(far.endpoint.set_aside(true, found.id));
        (0..100).for_each(|_| far.poll());
        let from = found.message.source.expect("its source");
        if let Some(last) = last.replace(from) {
            assert_eq!(last.index(), from.index(), "its place is used again");
            assert_ne!(last, from, "its handle is not");
            let stale = far.endpoint.send(last, &message(&mut [1], 1, false));
            assert_eq!(stale, Err(PostError::Fault(Fault::ForeignHandle)));
        }
        assert!(far.endpoint.forget(from) && !far.endpoint.forget(from));
        assert!(!far.endpoint.discard(true, found.id), "it is gone");
        assert_eq!(far.endpoint.find(None, Some((1, 0))), None);
        poll_until([&mut near], |[near]| near.ends.len() == 3);
        let dead = Err(Fault::PeerDead);
        assert_eq!(near.results(), [(1, dead), (1, dead), (1, dead)]);
        // Whoever forgets may call anew.
        let again = far.remote(&near);
        near.ends.clear();
        let _ = send([&mut far, &mut near], again, &message(&mut [9], 1, false));
        let mut room = [0];
        near.endpoint.receive(receive(None, &mut room, 8)).expect("there is room");
        poll_until([&mut near], |[near]| near.ends.len() == 1);
        assert_eq!((near.results(), room), (vec![(8, Ok(()))], [9]));
        assert!(far.endpoint.forget(again));
    }
}

// spec: ENV-16, ENV-6
#[test]
fn a_departure_is_noticed_among_other_peers() {
    let [mut far, mut other, mut near] = [0, 1, 2].map(|_| Side::open());
    let (to_near, from_other) = (far.remote(&near), other.remote(&far));
    let _ = send([&mut other, &mut far], from_other, &message(&mut [1], 1, false));
    let mut asked = vec![1; 100_000];
    let sent = send([&mut far, &mut near], to_near, &message(&mut asked, 4, false));
    assert_eq!(sent, Sent::Pending);
    let from_far = near.remote(&far);
    assert!(near.endpoint.forget(from_far));
    poll_until([&mut far], |[far]| far.ends.len() == 1);
    assert_eq!(far.results(), [(4, Err(Fault::PeerDead))]);
    let from_far = near.remote(&far);
    let _ = send([&mut near, &mut far], from_far, &message(&mut [2], 1, false));
    let _ = send([&mut far, &mut near], to_near, &message(&mut [2], 1, false));
}

// spec: ENV-8
#[test]
fn a_death_with_a_full_ring_ends_its_operations() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    let mut bytes = vec![1; 2_000_000];
    let mut room = vec![0; 2_000_000];
    far.endpoint.receive(receive(None, &mut room, 5)).expect("there is room");
    for context in [1, 2] {
        let sent = send([&mut near, &mut far], remote, &message(&mut bytes, context, true));
        assert_eq!(sent, Sent::Pending);
    }
    (0..100).for_each(|_| far.poll());
    (0..100).for_each(|_| near.poll());
    let mut long = vec![1; 16_000];
    let full = near.endpoint.send(remote, &message(&mut long, 3, false));
    assert_eq!(full, Err(PostError::Busy(Busy::MessageLaneFull)));
    drop(far);
    poll_until([&mut near], |[near]| near.ends.len() == 2);
    assert_eq!(near.results(), [(1, Err(Fault::PeerDead)), (2, Err(Fault::PeerDead))]);
    let again = near.endpoint.send(remote, &message(&mut long, 3, false));
    assert_eq!(again, Err(PostError::Fault(Fault::PeerDead)));
}

// spec: ENV-16
#[test]
fn forgetting_a_remote_ends_operations_under_way() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    let mut bytes = vec![1; 2_000_000];
    let mut room = vec![0; 2_000_000];
    far.endpoint.receive(receive(None, &mut room, 5)).expect("there is room");
    let sent = send([&mut near, &mut far], remote, &message(&mut bytes, 1, false));
    assert_eq!(sent, Sent::Pending);
    (0..100).for_each(|_| far.poll());
    (0..100).for_each(|_| near.poll());
    (0..2).for_each(|_| far.poll());
    assert!(near.endpoint.forget(remote));
    near.poll();
    assert_eq!(near.results(), [(1, Err(Fault::PeerDead))]);
    poll_until([&mut far], |[far]| far.ends.len() == 1);
    assert_eq!(far.results(), [(5, Err(Fault::PeerDead))]);
    let CompletionKind::Received(got) = far.ends[0].what else { panic!("a receive") };
    assert!((1..2_000_000).contains(&got.placed), "part of it has come");
    assert!(room[..got.placed as usize].iter().all(|byte| *byte == 1));
    assert!(room[got.placed as usize..].iter().all(|byte| *byte == 0));
    assert_eq!(near.endpoint.send(remote, &message(&mut bytes, 1, false)).ok(), None);
}

// spec: ENV-14
#[test]
fn a_constant_sender_does_not_block_new_callers() {
    let [mut near, mut far, mut caller] = [0, 1, 2].map(|_| Side::open());
    let (remote, to_far) = (near.remote(&far), caller.remote(&far));
    let _ = send([&mut near, &mut far], remote, &message(&mut [1], 1, false));
    poll_until([&mut far], |[far]| far.endpoint.find(None, Some((1, 0))).is_some());
    assert!(caller.endpoint.send(to_far, &message(&mut [2], 1, false)).is_err(), "it calls");
    for _ in 0..POLLS {
        let sent = near.endpoint.send(remote, &message(&mut [1], 1, false));
        let any = far.endpoint.progress(|_| ());
        assert!(any || sent.is_err(), "something has come");
        caller.poll();
        if caller.endpoint.send(to_far, &message(&mut [2], 1, false)).is_ok() {
            return;
        }
        while let Some(found) = far.endpoint.find(None, Some((1, 0))) {
            assert!(far.endpoint.discard(true, found.id));
        }
    }
    panic!("a caller is heard");
}

/// Throws away all that waits for a receive; whether something of this remote was among it.
fn throw_away(side: &mut Side, of: RemoteId) -> bool {
    let any = side.endpoint.find(Some(of), Some((1, 0))).is_some();
    while let Some(found) = side.endpoint.find(None, Some((1, 0))) {
        assert!(side.endpoint.discard(true, found.id));
    }
    any
}

// spec: ENV-14
#[test]
fn a_constant_sender_does_not_hide_other_senders() {
    let [mut near, mut far, mut other] = [0, 1, 2].map(|_| Side::open());
    let (remote, to_far) = (near.remote(&far), other.remote(&far));
    for (sender, remote) in [(&mut other, to_far), (&mut near, remote)] {
        let from = far.remote(sender);
        let _ = send([sender, &mut far], remote, &message(&mut [1], 1, false));
        poll_until([&mut far], |[far]| throw_away(far, from));
    }
    let from = far.remote(&other);
    let sent = other.endpoint.send(to_far, &message(&mut [2], 1, false));
    assert_eq!(sent.expect("there is room"), Sent::Completed);
    let mut polls = 0;
    while !throw_away(&mut far, from) {
        let sent = near.endpoint.send(remote, &message(&mut [1], 1, false));
        assert_eq!(sent.expect("there is room"), Sent::Completed);
        assert!(far.endpoint.progress(|_| ()), "something has come");
        polls += 1;
        assert!(polls <= 16, "who sent before is not looked at");
    }
}

// spec: ENV-9
#[test]
fn a_waiting_endpoint_is_woken_by_the_answer_to_its_call() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    assert!(near.endpoint.send(remote, &message(&mut [1], 1, false)).is_err(), "it calls");
    let thread = std::thread::spawn(move || {
        let mut room = [0];
        far.endpoint.receive(receive(None, &mut room, 1)).expect("there is room");
        while far.ends.is_empty() {
            let Side { endpoint, ends } = &mut far;
            endpoint.wait(None, |end| ends.push(end));
        }
        room
    });
    while near.endpoint.send(remote, &message(&mut [1], 1, false)).is_err() {
        near.endpoint.wait(None, |_| ());
    }
    assert_eq!(thread.join().expect("it ends"), [1]);
}

/// Whether what rests is to wake.
fn has_rung(side: &Side) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let bell = side.endpoint.as_fd();
    poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&at_once)).expect("a descriptor") > 0
}

// spec: ENV-9
#[test]
fn a_post_wakes_a_waiting_endpoint_that_must_continue_the_transfer() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    let mut rooms = [vec![0; 100], vec![0; 1 << 20]];
    for (context, room) in (5..).zip(&mut rooms) {
        let len = room.len();
        let mut bytes = vec![context as u8; len];
        let sent = send([&mut near, &mut far], remote, &message(&mut bytes, context, false));
        poll_until([&mut far], |[far]| far.endpoint.find(None, Some((1, 0))).is_some());
        poll_until([&mut far], |[far]| far.endpoint.rest(|_| ()));
        assert!(!has_rung(&far));
        far.endpoint.receive(receive(None, room, context)).expect("there is room");
        if sent == Sent::Pending && !has_rung(&far) {
            // It has asked for what it does not read itself.
            poll_until([&mut near, &mut far], |[_, far]| has_rung(far));
        }
        assert!(has_rung(&far), "{len} bytes");
        far.endpoint.wake();
        poll_until([&mut near, &mut far], |[_, far]| far.ends.len() == context as usize - 4);
        assert_eq!(*room, bytes);
    }
    let mut room = [0];
    far.endpoint.receive(receive(None, &mut room, 7)).expect("there is room");
    poll_until([&mut far], |[far]| far.endpoint.rest(|_| ()));
    assert!(!has_rung(&far), "it waits");
    assert!(far.endpoint.cancel(7));
    assert!(has_rung(&far));
    far.endpoint.wake();
    poll_until([&mut far], |[far]| far.ends.len() == 3);
}

// spec: MATCH-9
#[test]
fn the_receive_that_is_taken_back_is_one_that_waits() {
    let [mut near, mut far] = [0, 1].map(|_| Side::open());
    let remote = near.remote(&far);
    let mut bytes = vec![1; 100_000];
    let mut rooms = [0, 1].map(|_| vec![0; 100_000]);
    for room in &mut rooms {
        far.endpoint.receive(receive(None, room, 5)).expect("there is room");
    }
    let sent = send([&mut near, &mut far], remote, &message(&mut bytes, 1, false));
    assert_eq!(sent, Sent::Pending);
    (0..100).for_each(|_| far.poll());
    assert!(far.endpoint.cancel(5), "the second waits");
    assert!(!far.endpoint.cancel(5), "the first does not");
    poll_until([&mut near, &mut far], |[_, far]| far.ends.len() == 2);
    assert_eq!(far.ends[0].what, CompletionKind::Cancelled);
    assert!(rooms[0] == bytes && rooms[1][0] == 0);
}

// spec: ENV-40
#[test]
fn more_clients_than_an_endpoint_knows_are_served_one_after_the_other() {
    let mut server = Side::open();
    for number in 0..1100u32 {
        let mut client = Side::open();
        let (to_server, mut question, mut answer) =
            (client.remote(&server), number.to_le_bytes(), [0; 4]);
        let mut room = [0; 4];
        server.endpoint.receive(receive(None, &mut room, 1)).expect("there is room");
        let _ = send([&mut client, &mut server], to_server, &message(&mut question, 2, false));
        poll_until([&mut server, &mut client], |[server, _]| !server.ends.is_empty());
        assert_eq!(room, question);
        let CompletionKind::Received(received) = server.ends.remove(0).what else {
            panic!("a message")
        };
        let source = received.source.expect("its source");
        assert_eq!(server.remote(&client), source);
        client.endpoint.receive(receive(Some(to_server), &mut answer, 3)).expect("there is room");
        let _ = send([&mut server, &mut client], source, &message(&mut room, 4, false));
        poll_until([&mut client, &mut server], |[client, _]| !client.ends.is_empty());
        assert_eq!(answer, question);
    }
}

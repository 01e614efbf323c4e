//! The state that remains after the end of a port.
use crate::data::{assert_same, contents, pattern};
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::ManyToOne;
use crate::port::{Options, Port, Region, RegionOptions};
use crate::world::{
    Memory, ROUNDS, World, fault_of, join, next_message, next_notification, serve_until,
    take_notifications,
};
use ayre::error::Status;
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{Busy, Fault, Notification, PeerId, PostError, ReceiveError, Rights, SetupError};
use std::thread::yield_now;
use std::time::Duration;

const ADD: Atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };

/// Makes progress until the initiator knows that the target is gone.
fn notice<F: Fabric>(world: &mut World<F>) {
    let target = world.target_id();
    world.until("death is noticed", |world| (!world.initiator().is_alive(target)).then_some(()));
}

/// Operations that a peer had executed before its end have not faulted, even if its end is the
/// first news for the initiator.
// spec: LIFE-11, FLUSH-2
pub fn operations_executed_before_a_death_do_not_fault<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let target = world.target_id();
    let Memory { region, remote, .. } = world.memory(8);
    world.initiator().put_immediate(&remote, 0, 7, Options::new()).expect("room");
    while region.load(0) != 7 {
        world.target().progress();
    }
    world.drop_target();
    let never = world.initiator().accept_region(target, 99);
    assert!(matches!(never, Err(SetupError::PeerLeft { .. })), "{never:?}");
    assert_eq!(world.initiator().flush(target), Ok(()));
}

/// A call that waits for its answer ends, while its target goes at once.
// spec: LIFE-11, GET-2, ATOM-5
pub fn the_last_answer_is_returned<F: Fabric>(fabric: F) {
    for _ in 0..40 {
        let mut world = World::open(fabric);
        let Memory { region, remote, .. } = world.memory(8);
        let (mut near, mut far) = world.split();
        std::thread::scope(|scope| {
            let calling = scope.spawn(move || near.fetch_add(&remote, 0, 7));
            while region.load(0) != 7 {
                far.progress();
            }
            drop(far);
            assert_eq!(calling.join().expect("it does not panic"), Ok(0));
        });
    }
}

/// Every call that addresses the dead port says so; what else is wrong with it goes first.
// spec: LIFE-10, LIFE-11, QUE-10, ERR-1, ERR-3
pub fn later_calls_fault<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let Memory { remote, .. } = world.memory(64);
    let mut queue = world.target().create_queue(4096).expect("a queue");
    world.target().share_queue(initiator, &mut queue, 1).expect("a producer");
    let mut queue = world.initiator().accept_queue(target, 1).expect("a queue");
    let region = world.own_memory(64);
    world.drop_target();
    notice(&mut world);
    let (port, options) = (world.initiator(), Options::new().requester().completer());
    let faults = [
        fault_of(port.put(&remote, 0, &[1; 8], options)),
        fault_of(port.put(&remote, 0, &[1; 60], options)),
        fault_of(port.get(&remote, 0, &mut [0; 8], options)),
        fault_of(port.get(&remote, 0, region.slice(0..8), options)),
        fault_of(port.put_immediate(&remote, 0, 1, options)),
        fault_of(port.atomic(&remote, 0, ADD, options)),
        fault_of(port.fetch(&remote, 0, ADD, options)),
        fault_of(port.notify(target, options)),
        fault_of(port.send(target, 0, &[1])),
        fault_of(port.enqueue(&mut queue, &[1])),
    ];
    assert_eq!(faults, [Fault::PeerDead; 10]);
    assert_eq!(fault_of(port.put(&remote, 65, &[1], options)), Fault::Bounds);
    assert_eq!(fault_of(port.send(target, 0, &[])), Fault::Malformed);
    assert_eq!(take_notifications(port), [], "what is refused notifies nobody");
    let shared = port.share(target, &region, 0..64, Rights::all(), 0);
    assert!(matches!(shared, Err(SetupError::PeerLeft { .. })), "{shared:?}");
    let accepted = port.accept_region(target, 5);
    assert!(matches!(accepted, Err(SetupError::PeerLeft { .. })), "{accepted:?}");
    let accepted = port.accept_queue(target, 5);
    assert!(matches!(accepted, Err(SetupError::PeerLeft { .. })), "{accepted:?}");
}

/// Where the queue of notifications is full too, the fault is what counts.
// spec: POST-5, LIFE-11
pub fn a_fault_goes_before_busy<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { remote, .. } = world.memory(64);
    let target = world.target_id();
    let post = |world: &mut World<F>| {
        world.initiator().put(&remote, 0, &[1; 8], Options::new().requester())
    };
    loop {
        match post(&mut world) {
            Err(PostError::Busy(Busy::NotificationsFull)) => break,
            Err(PostError::Busy(_)) => world.settle(),
            Ok(_) => {}
            Err(PostError::Fault(fault)) => panic!("{fault}"),
        }
    }
    while world.initiator().send(target, 0, &[1; 100]).is_ok() {}
    world.drop_target();
    notice(&mut world);
    assert_eq!(fault_of(post(&mut world)), Fault::PeerDead);
    assert_eq!(fault_of(world.initiator().send(target, 0, &[1; 100])), Fault::PeerDead);
}

/// Each pending operation completes once: executed, or with PeerDead.
// spec: LIFE-11, NOTI-7, PUT-5, FLUSH-2
pub fn each_operation_under_way_completes_once<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { remote, .. } = world.memory(64);
    let sink = world.own_memory(64);
    let target = world.target_id();
    for tag in 0..12 {
        let (port, options) = (world.initiator(), Options::new().requester().tag(tag));
        let posted = match tag % 3 {
            0 => port.put(&remote, 0, &[1; 8], options),
            1 => port.put_immediate(&remote, 0, 1, options),
            _ => port.get(&remote, 0, sink.slice(0..8), options),
        };
        posted.expect("room for twelve");
    }
    world.drop_target();
    notice(&mut world);
    assert!(world.initiator().is_flushed(target));
    let notes = take_notifications(world.initiator());
    let dead = Status::Fault(Fault::PeerDead);
    for note in &notes {
        assert!([Status::Ok, dead].contains(&note.status), "{note:?}");
    }
    let of = |tag: u32| notes.iter().filter(move |note| note.tag == tag).collect::<Vec<_>>();
    for tag in (0..12).filter(|tag| tag % 3 == 0) {
        assert_eq!(of(tag).len(), 1, "put {tag} ends once");
    }
    let faulted = |note: &&Notification| note.status == dead;
    // A port of another host performs what comes also while it leaves.
    let traits = fabric.traits();
    if traits.is_inline && !traits.is_wire {
        assert_eq!(notes.iter().filter(faulted).count(), 12, "nobody executed anything");
    }
    let expected =
        if notes.iter().any(|note| faulted(&note)) { Err(Fault::PeerDead) } else { Ok(()) };
    assert_eq!(world.initiator().flush(target), expected);
}

/// A long put and calls that wait for an answer return.
// spec: LIFE-11, PUT-4, PUT-5, GET-2, ATOM-5
pub fn blocked_calls_return<F: Fabric>(fabric: F) {
    type Call<P> = fn(&mut P, &<P as Port>::RemoteRegion) -> Result<(), PostError>;
    let calls: [Call<F::Port>; 4] = [
        |port, remote| port.put(remote, 0, &[1; 100_000], Options::new()).map(drop),
        |port, remote| port.get(remote, 0, &mut [0; 10_000], Options::new()).map(drop),
        |port, remote| port.get(remote, 0, &mut [0; 100_000], Options::new()).map(drop),
        |port, remote| port.fetch(remote, 0, ADD, Options::new()).map(drop),
    ];
    for (index, call) in calls.into_iter().enumerate() {
        let mut world = World::open(fabric);
        let Memory { remote, .. } = world.memory(100_000);
        let (mut near, far) = world.split();
        let ended = std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let called = call(&mut near, &remote);
                (called, near.flush(TARGET))
            });
            drop(far);
            join(calling)
        });
        // Where it was quick enough, it has succeeded.
        let dead = Err(PostError::Fault(Fault::PeerDead));
        assert!([Ok(()), dead].contains(&ended.0), "call {index}: {ended:?}");
        assert!([Ok(()), Err(Fault::PeerDead)].contains(&ended.1), "call {index}: {ended:?}");
    }
}

/// Every kind of wait ends when the only peer dies, whether it does so before or meanwhile.
// spec: LIFE-11, LIFE-16, WAIT-1
pub fn waits_end<F: Fabric>(fabric: F) {
    type Wait<P> = fn(&mut P, Option<Duration>) -> Result<(), ReceiveError>;
    let waits: [Wait<F::Port>; 3] = [
        |port, timeout| port.recv(&mut [0; 8], timeout).map(drop),
        |port, timeout| port.wait_notification(timeout).map(drop),
        |port, timeout| {
            let mut queue = port.create_queue(4096).expect("a queue");
            port.dequeue_wait(&mut queue, &mut [0; 8], timeout).map(drop)
        },
    ];
    for (wait, before) in waits.into_iter().flat_map(|wait| [(wait, true), (wait, false)]) {
        let (mut near, far) = World::open(fabric).split();
        let ended = std::thread::scope(|scope| {
            let mut far = Some(far);
            if before {
                far.take();
            }
            let waiting = scope.spawn(|| wait(&mut near, None));
            drop(far);
            join(waiting)
        });
        assert_eq!(ended, Err(ReceiveError::PeerDied(TARGET)));
        assert_eq!(wait(&mut near, Some(Duration::ZERO)), Err(ReceiveError::TimedOut));
    }
}

/// Handing over that waits for the dead ends.
// spec: LIFE-11, CAP-3
pub fn accepting_ends<F: Fabric>(fabric: F) {
    let (mut near, far) = World::open(fabric).split();
    let accepted = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| near.accept_region(TARGET, 5));
        drop(far);
        join(accepting)
    });
    assert!(matches!(accepted, Err(SetupError::PeerLeft { .. })), "{accepted:?}");
}

/// Messages, notifications and records that a port had published before it died are delivered,
/// after the data of the puts before them.
// spec: LIFE-12, MSG-10, QUE-9, ORD-2, ORD-3
pub fn records_published_before_a_death_are_delivered<F: Fabric>(fabric: F) {
    for round in 0..100 {
        let mut world = World::open(fabric);
        let (initiator, target) = (world.initiator_id(), world.target_id());
        let Memory { region, remote, .. } = world.memory(640);
        let mut queue = world.target().create_queue(4096).expect("a queue");
        world.target().share_queue(initiator, &mut queue, 1).expect("a producer");
        let mut remote_queue = world.initiator().accept_queue(target, 1).expect("a queue");
        for i in 0..5_u32 {
            let (port, options) = (world.initiator(), Options::new().completer().tag(i));
            let data = pattern(u64::from(i), 100);
            port.put(&remote, u64::from(i) * 128, &data, options).expect("room for five");
            port.send(target, i, &[1; 20]).expect("room for five");
            port.enqueue(&mut remote_queue, &[i as u8; 20]).expect("room for five");
        }
        let (near, mut far) = world.split();
        drop(near);
        if round % 2 == 0 {
            while far.is_alive(initiator) {
                far.progress();
            }
        }
        let check = |i: u32| {
            let mut found = [0; 100];
            region.read(i as usize * 128, &mut found);
            assert_same(&found, &pattern(u64::from(i), 100), &(round, i));
        };
        receive_all(&mut far, &mut queue, initiator, check);
    }
}

/// Receives five messages, notifications and records, with their data.
fn receive_all<P: Port>(port: &mut P, queue: &mut P::Queue, source: PeerId, check: impl Fn(u32)) {
    let (mut messages, mut notes, mut records) = (0, 0, 0);
    for _ in 0..ROUNDS {
        if let Some(message) = next_message(port, &mut [0; 20]) {
            assert_eq!((message.source, message.tag), (source, messages));
            check(message.tag);
            messages += 1;
        }
        if let Some(note) = next_notification(port) {
            assert_eq!((note.source, note.tag), (source, notes));
            check(note.tag);
            notes += 1;
        }
        let mut record = [0xff; 20];
        if port.dequeue(queue, &mut record).expect("long enough").is_some() {
            assert_eq!(record, [records as u8; 20]);
            records += 1;
        }
        if (messages, notes, records) == (5, 5, 5) {
            return;
        }
        port.progress();
        yield_now();
    }
    panic!("{messages} messages, {notes} notifications, {records} records of five each");
}

/// A port that leaves lets its operations end first.
// spec: LIFE-16, FLUSH-1
pub fn leaving_flushes<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(20_000);
    let data = pattern(15, 20_000);
    let (mut near, mut far) = world.split();
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| {
            near.put(&remote, 0, &data, Options::new()).expect("a put");
            near.leave()
        });
        serve_until(&leaving, &mut far);
        assert_eq!(join(leaving), Ok(()));
    });
    assert_same(&contents(&region), &data, &"all of it");
}

/// A wait for any event ends when the last other port has left, not before.
// spec: LIFE-11, LIFE-16
pub fn a_wait_ends_with_the_last_peer<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let ids = ports.ids();
    for (gone, last) in [(0, false), (1, true)] {
        drop(ports.initiators.remove(0));
        ports.until("it is noticed", |ports| (!ports.target.is_alive(ids[gone])).then_some(()));
        let waited = ports.target.recv(&mut [0; 8], Some(Duration::ZERO));
        let died = ReceiveError::PeerDied(ids[gone]);
        assert_eq!(waited, Err(if last { died } else { ReceiveError::TimedOut }));
    }
}

/// Messages that have arrived are received before the report that the last peer has died.
// spec: LIFE-11, LIFE-12, LIFE-16
pub fn arrived_messages_are_received_before_news_of_the_last_death<F: Fabric>(fabric: F) {
    const PEERS: u16 = 5;
    let mut ports = ManyToOne::open(fabric, PEERS);
    let ids = ports.ids();
    for mut port in ports.initiators.drain(..) {
        port.send(TARGET, 0, &[1]).expect("an empty lane");
    }
    for id in &ids {
        ports.until("it is noticed", |ports| (!ports.target.is_alive(*id)).then_some(()));
    }
    let timeout = Some(Duration::from_secs(60));
    let mut sources: Vec<_> = ids
        .iter()
        .map(|_| ports.target.recv(&mut [0; 8], timeout).expect("a message").source)
        .collect();
    sources.sort_unstable();
    assert_eq!(sources, ids);
    let died = ports.target.recv(&mut [0; 8], timeout);
    assert!(matches!(died, Err(ReceiveError::PeerDied(_))), "{died:?}");
}

/// A connection that was ended is forgotten: handles and names of it fault, and the number can be
/// used for a new connection, which the old handles do not reach.
// spec: LIFE-14, LIFE-19, CAP-6
pub fn a_number_can_be_used_again<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let first = ports.share(&region).remove(0);
    let id = ports.ids()[0];
    let back = ports.initiators[0].alloc(64, RegionOptions::new()).expect("memory is there");
    ports.initiators[0].share(TARGET, &back, 0..64, Rights::all(), 9).expect("a grant");
    let old = ports.target.accept_region(id, 9).expect("it was shared");
    ports.target.disconnect(id).expect("it is connected");
    let port = &mut ports.target;
    assert_eq!(fault_of(port.put(&old, 0, &[1; 8], Options::new())), Fault::ForeignHandle);
    assert_eq!(fault_of(port.send(id, 0, &[1])), Fault::ForeignHandle);
    assert_eq!(port.disconnect(id), Err(Fault::ForeignHandle));
    ports.until("the other side notices", |ports| {
        (!ports.initiators[0].is_alive(TARGET)).then_some(())
    });
    let put = ports.initiators[0].put(&first, 0, &[1; 8], Options::new());
    assert_eq!(fault_of(put), Fault::PeerDead);
    ports.replace(0);
    let remote = ports.share(&region).remove(0);
    ports.each(
        vec![remote],
        |port, remote| {
            port.put(&remote, 0, &[5; 8], Options::new()).expect("a new connection");
            assert_eq!(port.flush(TARGET), Ok(()));
        },
        |_| (),
    );
    let put = ports.target.put(&old, 0, &[1; 8], Options::new());
    assert_eq!(fault_of(put), Fault::ForeignHandle);
    assert_eq!(contents(&region)[..8], [5; 8]);
    assert_eq!(contents(&back), [0; 64]);
}

/// The death of one port disturbs nothing between the others.
// spec: LIFE-13, MSG-5, QUE-7
pub fn a_death_does_not_disturb_traffic_between_survivors<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 3);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let mut remotes = ports.share(&region);
    let (mut queue, mut queues) = ports.queue(4096);
    for (port, queue) in ports.initiators.iter_mut().zip(&mut queues) {
        port.send(TARGET, 1, &[1; 30]).expect("an empty lane");
        port.enqueue(queue, &[1; 30]).expect("an empty lane");
    }
    drop((ports.initiators.remove(1), remotes.remove(1), queues.remove(1)));
    let states: Vec<_> = remotes.into_iter().zip(queues).collect();
    ports.each(
        states,
        |port, (remote, mut queue)| {
            for _ in 0..200 {
                port.fetch_add(&remote, 0, 1).expect("the target is alive");
            }
            port.send_wait(TARGET, 2, &[2; 30]).expect("the target is alive");
            port.enqueue(&mut queue, &[2; 30]).expect("room for two");
        },
        |_| (),
    );
    assert_eq!(region.load(0), 400);
    let (mut messages, mut records) = (0, 0);
    ports.until("what all three have published", |ports| {
        let mut buffer = [0; 30];
        messages += u32::from(ports.target.try_recv(&mut buffer).expect("fits").is_some());
        let record = ports.target.dequeue(&mut queue, &mut buffer).expect("fits");
        records += u32::from(record.is_some());
        ((messages, records) == (5, 5)).then_some(())
    });
    assert_eq!(contents(&region)[8..], [0; 56]);
}

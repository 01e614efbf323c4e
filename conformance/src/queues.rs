//! Remote queues: every record once, whole, in its producer's order.
use crate::data::{CANARY, assert_same, pattern};
use crate::fabric::Fabric;
use crate::many_to_one::{FIRST, ManyToOne};
use crate::port::{Port, Queue, RemoteQueue};
use crate::seed::Dice;
use crate::world::{ROUNDS, World, fault_of};
use ayre::message::Record;
use ayre::{Busy, Fault, PeerId, PostError, ReceiveError};
use std::thread::yield_now;
use std::time::Duration;

fn open<F: Fabric>(
    world: &mut World<F>,
    capacity: usize,
) -> (<F::Port as Port>::Queue, <F::Port as Port>::RemoteQueue) {
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let mut queue = world.target().create_queue(capacity).expect("a queue");
    world.target().share_queue(initiator, &mut queue, 77).expect("a producer");
    let remote = world.initiator().accept_queue(target, 77).expect("what is handed over arrives");
    (queue, remote)
}

/// The next record. On one host it is there at once, without anybody's progress.
fn take<F: Fabric>(
    world: &mut World<F>,
    queue: &mut <F::Port as Port>::Queue,
    into: &mut [u8],
) -> Record {
    let mut look =
        |world: &mut World<F>| world.target().dequeue(queue, into).expect("it is long enough");
    match world.fabric().traits().is_wire {
        false => look(world).expect("it needs no progress"),
        true => world.until("a record", look),
    }
}

/// Enqueues a record here: any other record would come before it.
fn assert_empty<F: Fabric>(
    world: &mut World<F>,
    queue: &mut <F::Port as Port>::Queue,
    remote: &mut <F::Port as Port>::RemoteQueue,
) {
    let last = [0xe5; 3];
    world.post(|port| port.enqueue(remote, &last));
    let mut buffer = vec![0; queue.record_max()];
    let record = take(world, queue, &mut buffer);
    assert_eq!(buffer[..record.len], last, "each came once");
    assert_eq!(world.target().dequeue(queue, &mut buffer), Ok(None));
}

/// Every length up to the longest arrives, many times around the lane.
// spec: QUE-1, QUE-3, QUE-4, QUE-5
pub fn every_length_arrives<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let capacity = 4096;
    let (mut queue, mut remote) = open(&mut world, capacity);
    let source = world.initiator_id();
    assert!(remote.record_max() >= capacity / 2, "half of the capacity asked for");
    assert_eq!(queue.record_max(), remote.record_max());
    assert_eq!(queue.producers().collect::<Vec<_>>(), [source]);
    let mut buffer = vec![0; remote.record_max() + 1];
    for len in 1..=capacity / 2 {
        let mut data = pattern(len as u64, len);
        world.post(|port| port.enqueue(&mut remote, &data));
        data.fill(CANARY);
        buffer.fill(CANARY);
        let record = take(&mut world, &mut queue, &mut buffer);
        assert_eq!(record, Record { source, len });
        assert_same(&buffer[..len], &pattern(len as u64, len), &len);
        assert!(buffer[len..].iter().all(|byte| *byte == CANARY), "behind {len} bytes");
    }
    assert_empty(&mut world, &mut queue, &mut remote);
}

/// Nothing, and more than fits, are refused without effect.
// spec: QUE-3, POST-1
pub fn lengths_are_limited<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (mut queue, mut remote) = open(&mut world, 4096);
    let long = vec![1; remote.record_max() + 1];
    assert_eq!(fault_of(world.initiator().enqueue(&mut remote, &long)), Fault::TooLong);
    assert_eq!(fault_of(world.initiator().enqueue(&mut remote, &[])), Fault::Malformed);
    assert_eq!(world.target().dequeue(&mut queue, &mut [0; 8]), Ok(None));
    world.initiator().enqueue(&mut remote, &long[1..]).expect("the longest");
    let mut buffer = vec![0; long.len()];
    assert_eq!(take(&mut world, &mut queue, &mut buffer).len, long.len() - 1);
}

/// A full lane is Busy; nothing is lost, and there is room again after.
// spec: QUE-2, QUE-4, QUE-5, QUE-6, LANE-6, POST-9
pub fn a_full_lane_is_busy_and_loses_no_record<F: Fabric>(fabric: F) {
    let (mut world, mut dice) = (World::open(fabric), Dice::new(0));
    let (mut queue, mut remote) = open(&mut world, 8192);
    let (mut sent, mut received) = (0_u64, 0_u64);
    let len_of = |i: u64| 1 + (i * i % 700) as usize;
    let mut buffer = vec![0; 1000];
    for _ in 0..200 {
        let mut bytes = 0;
        let full = loop {
            let data = pattern(sent, len_of(sent));
            match world.initiator().enqueue(&mut remote, &data) {
                Ok(()) => (sent, bytes) = (sent + 1, bytes + data.len().next_multiple_of(56)),
                Err(error) => break error,
            }
        };
        assert_eq!(full, PostError::Busy(Busy::QueueFull));
        assert!(
            received != 0 || bytes + 700 >= 8192,
            "the capacity asked for in lines of 56 bytes"
        );
        let rest = dice.below(2) * dice.below((sent - received).max(1));
        while received + rest < sent {
            let record = take(&mut world, &mut queue, &mut buffer);
            let expected = pattern(received, len_of(received));
            assert_same(&buffer[..record.len], &expected, &received);
            received += 1;
        }
        if rest == 0 {
            assert_empty(&mut world, &mut queue, &mut remote);
        }
    }
}

/// A record that the buffer is too short for stays at the head until a longer one comes.
// spec: QUE-8
pub fn a_short_buffer_leaves_the_record<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (mut queue, mut remote) = open(&mut world, 4096);
    world.initiator().enqueue(&mut remote, &pattern(1, 100)).expect("room");
    world.initiator().enqueue(&mut remote, &pattern(2, 5)).expect("room");
    world.until("a record", |world| {
        world.target().dequeue(&mut queue, &mut []).is_err().then_some(())
    });
    for short in [0, 1, 56, 99] {
        let mut buffer = vec![CANARY; short];
        let refused = world.target().dequeue(&mut queue, &mut buffer);
        assert_eq!(refused, Err(ReceiveError::TooLong(100)));
        let waited = world.target().dequeue_wait(&mut queue, &mut buffer, Some(Duration::ZERO));
        assert_eq!(waited, Err(ReceiveError::TooLong(100)));
        assert_eq!(buffer, vec![CANARY; short], "nothing is written");
    }
    let mut buffer = [0; 100];
    assert_eq!(take(&mut world, &mut queue, &mut buffer).len, 100);
    assert_same(&buffer, &pattern(1, 100), &"the record that stayed");
    assert_eq!(take(&mut world, &mut queue, &mut buffer).len, 5);
}

/// A wait without time is a poll.
// spec: QUE-7, WAIT-1, WAIT-2
pub fn a_wait_without_time_is_a_poll<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (mut queue, mut remote) = open(&mut world, 4096);
    let mut wait = |world: &mut World<F>| {
        let waited = world.target().dequeue_wait(&mut queue, &mut [0; 8], Some(Duration::ZERO));
        waited.map(|record| record.len)
    };
    assert_eq!(wait(&mut world), Err(ReceiveError::TimedOut));
    world.initiator().enqueue(&mut remote, &[1; 7]).expect("room");
    let found = match fabric.traits().is_wire {
        false => wait(&mut world),
        true => Ok(world.until("the record", |world| wait(world).ok())),
    };
    assert_eq!(found, Ok(7));
    assert_eq!(wait(&mut world), Err(ReceiveError::TimedOut));
}

/// A queue's handle belongs to the port that accepted it, and a queue to the one that made it.
// spec: CAP-6, QUE-1
pub fn handles_are_of_their_port<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (mut queue, mut remote) = open(&mut world, 4096);
    let mut stranger = World::open(fabric);
    let enqueued = stranger.initiator().enqueue(&mut remote, &[1]);
    assert_eq!(fault_of(enqueued), Fault::ForeignHandle);
    let (initiator, target) = (stranger.initiator_id(), stranger.target());
    assert!(target.share_queue(initiator, &mut queue, 1).is_err(), "another port's queue");
    let initiator = world.initiator_id();
    assert!(world.target().share_queue(initiator, &mut queue, 78).is_err(), "a producer already");
    assert_empty(&mut world, &mut queue, &mut remote);
}

/// Records of a producer that was removed are not delivered, and nobody waits for them.
// spec: QUE-10, QUE-4
pub fn records_of_a_removed_producer_are_not_delivered<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (mut queue, mut remote) = open(&mut world, 4096);
    let initiator = world.initiator_id();
    world.initiator().enqueue(&mut remote, &[1; 8]).expect("room");
    world.target().remove_producer(&mut queue, initiator);
    assert_eq!(queue.producers().count(), 0);
    let mut enqueued = 0;
    let full = loop {
        match world.initiator().enqueue(&mut remote, &[2; 8]) {
            Ok(()) => enqueued += 1,
            Err(error) => break error,
        }
        assert!(enqueued < 10_000, "the lane is bounded");
    };
    assert_eq!(full, PostError::Busy(Busy::QueueFull));
    assert_eq!(world.target().dequeue(&mut queue, &mut [0; 8]), Ok(None));
    world.target().share_queue(initiator, &mut queue, 78).expect("a producer again");
    let target = world.target_id();
    let mut again = world.initiator().accept_queue(target, 78).expect("it was shared");
    world.initiator().enqueue(&mut again, &[3; 8]).expect("a lane of its own");
    let mut buffer = [0; 8];
    take(&mut world, &mut queue, &mut buffer);
    assert_eq!(buffer, [3; 8], "the new lane's");
}

fn enqueue<P: Port>(port: &mut P, queue: &mut P::RemoteQueue, data: &[u8]) {
    while let Err(error) = port.enqueue(queue, data) {
        assert_eq!(error, PostError::Busy(Busy::QueueFull));
        port.progress();
        yield_now();
    }
}

/// Several producers at a time: each one's records come once, whole, in its order.
// spec: QUE-5, QUE-6, QUE-7, LANE-6
pub fn producers_do_not_mix<F: Fabric>(fabric: F) {
    const COUNT: u64 = 3000;
    let mut ports = ManyToOne::open(fabric, 3);
    let (mut queue, remotes) = ports.queue(4096);
    let states = ports.ids().into_iter().zip(remotes).collect();
    let salt = |id: PeerId, i: u64| i << 16 | u64::from(id.0);
    let (mut next, mut buffer) = ([0; 3], vec![0; 2000]);
    let mut take = |port: &mut F::Port, next: &mut [u64; 3]| {
        while let Some(record) = port.dequeue(&mut queue, &mut buffer).expect("long enough") {
            let expected = &mut next[usize::from(record.source.0 - FIRST)];
            let data = pattern(salt(record.source, *expected), record.len);
            assert_same(&buffer[..record.len], &data, &record);
            *expected += 1;
        }
    };
    ports.each(
        states,
        |port, (id, mut remote)| {
            for i in 0..COUNT {
                let len = 1 + (i * 31 % if i % 50 == 0 { 2000 } else { 150 }) as usize;
                enqueue(port, &mut remote, &pattern(salt(id, i), len));
            }
        },
        |port| take(port, &mut next),
    );
    ports.until("the last records", |ports| {
        take(&mut ports.target, &mut next);
        (next == [COUNT; 3]).then_some(())
    });
}

/// A producer that fills its lane again and again keeps no other one from enqueueing or being
/// dequeued.
// spec: QUE-7, CAP-10
pub fn a_flooding_producer_does_not_starve_others<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let (mut queue, mut remotes) = ports.queue(4096);
    let (first, second) = remotes.split_at_mut(1);
    for (round, len) in [40, 200].into_iter().cycle().take(20).enumerate() {
        let (flood, record) = (vec![1; len], vec![2; len]);
        ports.initiators[1].enqueue(&mut second[0], &record).expect("a lane of its own");
        let mut others = 0;
        loop {
            while ports.initiators[0].enqueue(&mut first[0], &flood).is_ok() {}
            ports.initiators[1].progress();
            let mut buffer = [0; 200];
            let record = ports.target.dequeue(&mut queue, &mut buffer).expect("long enough");
            match record {
                Some(_) if buffer[0] == 2 => break,
                Some(_) => others += 1,
                None => yield_now(),
            }
            // Over a network the second producer's record is on its way for a while.
            let most = if fabric.traits().is_wire { ROUNDS } else { 1000 };
            assert!(others < most, "the second producer is heard in round {round}");
        }
    }
}

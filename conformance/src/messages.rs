//! Short messages: whole, once, in order, and never lost.
use crate::data::{CANARY, assert_same, contents, pattern};
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::{FIRST, ManyToOne};
use crate::port::{Options, Port};
use crate::seed::Dice;
use crate::world::{Memory, ROUNDS, World, fault_of, next_message};
use ayre::message::EAGER_MAX;
use ayre::{Busy, Fault, Message, PeerId, PostError, ReceiveError};
use std::thread::yield_now;
use std::time::Duration;

/// Takes the message that must be there, or comes with progress.
fn receive<F: Fabric>(world: &mut World<F>, buffer: &mut [u8]) -> Message {
    world.until("a message", |world| world.target().try_recv(buffer).expect("the buffer is long"))
}

/// Sends, making progress while the lane is full.
fn send<P: Port>(port: &mut P, to: PeerId, tag: u32, data: &[u8]) {
    while let Err(error) = port.send(to, tag, data) {
        assert_eq!(error, PostError::Busy(Busy::MessageLaneFull));
        port.progress();
        yield_now();
    }
}

/// Every length arrives with its bytes, tag, length and source, and nothing behind it is touched.
// spec: MSG-1, MSG-2, MSG-3, MSG-7
pub fn every_length_arrives<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (target, source) = (world.target_id(), world.initiator_id());
    for len in 1..=EAGER_MAX {
        let (mut data, tag) = (pattern(len as u64, len), (len as u32).wrapping_mul(0x9e37_79b9));
        world.initiator().send(target, tag, &data).expect("an empty lane has room");
        data.fill(CANARY);
        let mut buffer = vec![CANARY; EAGER_MAX + 8];
        let message = receive(&mut world, &mut buffer);
        assert_eq!(message, Message { source, tag, len });
        assert_same(&buffer[..len], &pattern(len as u64, len), &len);
        assert!(buffer[len..].iter().all(|byte| *byte == CANARY), "behind {len} bytes");
    }
    assert_eq!(world.target().try_recv(&mut [0; EAGER_MAX]), Ok(None), "each came once");
}

/// Nothing, and more than fits, are refused without effect.
// spec: MSG-1, POST-1
pub fn lengths_are_limited<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let target = world.target_id();
    let port = world.initiator();
    assert_eq!(fault_of(port.send(target, 0, &[])), Fault::Malformed);
    assert_eq!(fault_of(port.send(target, 0, &[0; EAGER_MAX + 1])), Fault::TooLong);
    port.send(target, 9, &[1]).expect("an empty lane has room");
    assert_eq!(receive(&mut world, &mut [0; 8]).tag, 9, "the first that was sent");
}

/// A full lane is Busy; what was sent before is there, in order, and there is room again after.
// spec: MSG-2, MSG-3, MSG-4, POST-9, LIM-1
pub fn a_full_lane_is_busy_and_loses_no_record<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let target = world.target_id();
    let (mut sent, mut received) = (0, 0);
    for (round, len) in [1, 56, 57, 500, EAGER_MAX].into_iter().cycle().take(40).enumerate() {
        let data = pattern(round as u64, len);
        // Over a network the sender learns of room that was made after a while.
        if fabric.traits().is_wire && round > 0 {
            world.post(|port| port.send(target, sent, &data));
            sent += 1;
        }
        let before = sent;
        let full = loop {
            match world.initiator().send(target, sent, &data) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full, PostError::Busy(Busy::MessageLaneFull));
        let took = sent > before || fabric.traits().is_wire;
        assert!(took, "a lane that was emptied takes {len} bytes");
        while received < sent {
            let mut buffer = [0; EAGER_MAX];
            let message = receive(&mut world, &mut buffer);
            assert_eq!((message.tag, message.len), (received, len));
            assert_same(&buffer[..len], &data, &received);
            received += 1;
        }
    }
    assert_eq!(world.target().try_recv(&mut [0; EAGER_MAX]), Ok(None), "each came once");
}

/// A message that the buffer is too short for stays at the head until a longer one comes.
// spec: MSG-8
pub fn a_short_buffer_leaves_the_message<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let target = world.target_id();
    for (tag, len) in [(1, 100), (2, 5)] {
        world.initiator().send(target, tag, &pattern(1, len)).expect("room for two");
    }
    for short in [0, 1, 56, 99] {
        let mut buffer = vec![CANARY; short];
        let refused = world.until("the message", |world| {
            world.target().try_recv(&mut buffer).map_or_else(Some, |none| {
                assert_eq!(none, None, "{short} bytes are too short");
                None
            })
        });
        assert_eq!(refused, ReceiveError::TooLong(100));
        let waited = world.target().recv(&mut buffer, Some(Duration::ZERO));
        assert_eq!(waited, Err(ReceiveError::TooLong(100)));
        assert_eq!(buffer, vec![CANARY; short], "nothing is written");
    }
    let mut buffer = [0; 100];
    let message = receive(&mut world, &mut buffer);
    assert_eq!((message.tag, message.len), (1, 100));
    assert_same(&buffer, &pattern(1, 100), &"the message that stayed");
    assert_eq!(receive(&mut world, &mut buffer).tag, 2, "then the one behind it");
}

/// A wait without time is a poll.
// spec: MSG-9, WAIT-1, WAIT-2
pub fn a_receive_without_time_is_a_poll<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let target = world.target_id();
    let wait = |world: &mut World<F>| world.target().recv(&mut [0; 8], Some(Duration::ZERO));
    assert_eq!(wait(&mut world), Err(ReceiveError::TimedOut));
    world.initiator().send(target, 5, &[1]).expect("room");
    let found = match fabric.traits().is_wire {
        false => wait(&mut world),
        true => Ok(world.until("the message", |world| wait(world).ok())),
    };
    assert_eq!(found.map(|message| message.tag), Ok(5));
    assert_eq!(wait(&mut world), Err(ReceiveError::TimedOut));
}

/// Messages that nobody receives delay neither operations nor notifications.
// spec: MSG-6, PROG-2
pub fn unread_messages_do_not_delay_operations_or_notifications<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let target = world.target_id();
    while world.initiator().send(target, 0, &[1; 100]).is_ok() {}
    for round in 0..100 {
        let options = Options::new().completer().tag(round);
        world.post(|port| port.put(&remote, 0, &round.to_le_bytes(), options));
        let raised = world.raised();
        assert_eq!(raised.target.len(), 1, "round {round}");
    }
    assert_eq!(contents(&region)[..4], 99_u32.to_le_bytes());
}

/// Both ports send at each other, each faster than the other receives; every message comes.
// spec: MSG-2, MSG-3, MSG-4, WAIT-3
pub fn streams_of_messages_arrive<F: Fabric>(fabric: F) {
    const COUNT: u32 = 10_000;
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let stream = |port: &mut F::Port, peer: PeerId, salt: u64| {
        let (mut sends, mut receives) = (Dice::new(salt), Dice::new(3 - salt));
        let (mut sent, mut received) = (0, 0);
        let mut buffer = [0; EAGER_MAX];
        while sent < COUNT || received < COUNT {
            let len = 1 + sends.index(200);
            while sent < COUNT && port.send(peer, sent, &pattern(u64::from(sent), len)).is_ok() {
                sent += 1;
                if sent % 16 == 0 {
                    break;
                }
            }
            for _ in 0..receives.index(16) {
                if let Some(message) = port.try_recv(&mut buffer).expect("the buffer is long") {
                    assert_eq!((message.source, message.tag), (peer, received));
                    let expected = pattern(u64::from(received), message.len);
                    assert_same(&buffer[..message.len], &expected, &message);
                    received += 1;
                }
            }
            if sent == COUNT {
                yield_now();
            }
        }
    };
    world.both(|port| stream(port, target, 1), |port| stream(port, initiator, 2));
}

/// Ports that take turns, and sleep while it is the other's, never miss a wake-up.
// spec: WAIT-3, WAIT-1
pub fn waits_miss_no_wake_up<F: Fabric>(fabric: F) {
    const ROUNDS: u32 = 3000;
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    world.both(
        |port| {
            for round in 0..ROUNDS {
                port.send(target, round, &[1; 8]).expect("an empty lane");
                assert_eq!(port.recv(&mut [0; 8], None).map(|m| m.tag), Ok(round));
            }
        },
        |port| {
            for round in 0..ROUNDS {
                assert_eq!(port.recv(&mut [0; 8], None).map(|m| m.tag), Ok(round));
                port.send(initiator, round, &[1; 8]).expect("an empty lane");
            }
        },
    );
}

/// Several senders at a time: each one's messages come in its order, with its name.
// spec: MSG-3, MSG-4, MSG-5
pub fn senders_do_not_mix<F: Fabric>(fabric: F) {
    const COUNT: u32 = 3000;
    let mut ports = ManyToOne::open(fabric, 3);
    let (ids, mut next) = (ports.ids(), [0; 3]);
    ports.each(
        ids,
        |port, id| {
            for i in 0..COUNT {
                let salt = u64::from(i) << 16 | u64::from(id.0);
                send(port, TARGET, i, &pattern(salt, 1 + i as usize % 150));
            }
        },
        |port| {
            let mut buffer = [0; 150];
            while let Some(message) = port.try_recv(&mut buffer).expect("the buffer is long") {
                let expected = &mut next[usize::from(message.source.0 - FIRST)];
                assert_eq!(message.tag, *expected, "{message:?}");
                let salt = u64::from(message.tag) << 16 | u64::from(message.source.0);
                assert_same(&buffer[..message.len], &pattern(salt, message.len), &message);
                *expected += 1;
            }
        },
    );
    let mut buffer = [0; 150];
    ports.until("the last messages", |ports| {
        if let Some(message) = ports.target.try_recv(&mut buffer).expect("the buffer is long") {
            next[usize::from(message.source.0 - FIRST)] += 1;
        }
        (next == [COUNT; 3]).then_some(())
    });
}

/// A sender that fills its lane again and again keeps no other one from sending or being received.
// spec: MSG-5, MSG-9, CAP-10
pub fn a_flooding_sender_does_not_starve_others<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    for (round, len) in [40, 200].into_iter().cycle().take(20).enumerate() {
        let (flood, message) = (vec![1; len], vec![2; len]);
        ports.initiators[1].send(TARGET, 2, &message).expect("a lane of its own");
        let mut others = 0;
        loop {
            while ports.initiators[0].send(TARGET, 1, &flood).is_ok() {}
            ports.initiators[1].progress();
            match next_message(&mut ports.target, &mut [0; 200]).map(|message| message.tag) {
                Some(2) => break,
                Some(_) => others += 1,
                None => ports.target.progress(),
            }
            // Over a network the second sender's message is on its way for a while.
            let most = if fabric.traits().is_wire { ROUNDS } else { 1000 };
            assert!(others < most, "the second sender is heard in round {round}");
        }
    }
}

//! Visibility of data between two ports that work at the same time.
use crate::data::{assert_same, contents, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, Region};
use crate::world::{Memory, World, insist};
use ayre::Notification;
use std::thread::yield_now;

const LENS: [usize; 6] = [8, 56, 64, 1000, 5000, 200_000];
const ROUNDS: u64 = 240;
const FLAG: usize = 1 << 19;

fn len_of(round: u64) -> usize {
    LENS[round as usize % LENS.len()]
}

/// Looks at the end at once, where a copy that is under way has not been yet, then at all.
fn check(region: &impl Region, round: u64, expected: &[u8]) {
    let (len, mut end) = (expected.len(), [0; 8]);
    region.read(1 + len - 8, &mut end);
    assert_same(&end, &expected[len - 8..], &("the end", round));
    let mut found = vec![0; len];
    region.read(1, &mut found);
    assert_same(&found, expected, &round);
}

/// Waits without ever sleeping, so as to see a notification at the first moment.
fn poll_until_notified<P: Port>(port: &mut P) -> Notification {
    loop {
        if let Some(note) = (0..10_000).find_map(|_| port.poll_notification()) {
            return note;
        }
        yield_now();
    }
}

/// Data before its completer notification: the target checks it at each one, while the initiator
/// goes on only when it is told so.
// spec: ORD-2, NOTI-4, NOTI-3, WAIT-3
pub fn data_comes_before_its_completer<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(FLAG);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    world.both(
        |port| {
            for round in 0..ROUNDS {
                let options = Options::new().completer().tag(round as u32);
                let data = pattern(round, len_of(round));
                port.put(&remote, 1, &data, options).expect("a put");
                let answer = port.wait_notification(None).expect("an answer");
                assert_eq!((answer.source, answer.value), (target, round));
            }
        },
        |port| {
            for round in 0..ROUNDS {
                let expected = pattern(round, len_of(round));
                let note = match round % 2 {
                    0 => port.wait_notification(None).expect("a completer"),
                    _ => poll_until_notified(port),
                };
                check(&region, round, &expected);
                assert_eq!((note.source, note.tag), (initiator, round as u32));
                port.notify(initiator, Options::new().value(round)).expect("room for one");
            }
        },
    );
}

/// Data before a message that was sent after it, and before a notification put.
// spec: ORD-3, ORD-2, WAIT-3
pub fn data_comes_before_a_later_message<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(FLAG);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    world.both(
        |port| {
            for round in 0..ROUNDS {
                let data = pattern(round, len_of(round));
                port.put(&remote, 1, &data, Options::new()).expect("a put");
                if round % 3 == 0 {
                    port.notify(target, Options::new().tag(round as u32)).expect("room for one");
                } else {
                    port.send(target, round as u32, &[1; 60]).expect("room for one");
                }
                let answer = port.recv(&mut [0; 8], None).expect("an answer");
                assert_eq!(answer.tag, round as u32);
            }
        },
        |port| {
            for round in 0..ROUNDS {
                let expected = pattern(round, len_of(round));
                let tag = if round % 3 == 0 {
                    port.wait_notification(None).expect("a notification").tag
                } else {
                    port.recv(&mut [0; 60], None).expect("a message").tag
                };
                check(&region, round, &expected);
                assert_eq!(tag, round as u32);
                port.send(initiator, tag, &[0; 8]).expect("room for one");
            }
        },
    );
}

/// Data before the value of a later immediate put or atomic, for a thread of the target that
/// looks at the word.
// spec: ORD-4, ORD-11, IMM-1
pub fn data_comes_before_a_later_flag<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(FLAG + 64);
    world.both(
        |port| {
            for round in 1..=ROUNDS {
                let data = pattern(round, len_of(round));
                port.put(&remote, 1, &data, Options::new()).expect("a put");
                if round % 2 == 0 {
                    let flag = port.put_immediate(&remote, FLAG as u64, round, Options::new());
                    flag.expect("room for one");
                } else {
                    port.fetch_add(&remote, FLAG as u64, 1).expect("an atomic");
                }
                while region.load(FLAG + 8) != round {
                    port.progress();
                    yield_now();
                }
            }
        },
        |port| {
            for round in 1..=ROUNDS {
                let expected = pattern(round, len_of(round));
                while region.load(FLAG) != round {
                    port.progress();
                }
                check(&region, round, &expected);
                region.store(FLAG + 8, round);
            }
        },
    );
}

/// A reader of memory during a put finds each byte old or new, in any order, and never an older
/// value again.
// spec: ORD-5, ORD-1, PUT-1
pub fn bytes_under_way_are_old_or_new<F: Fabric>(fabric: F) {
    const LEN: usize = 20_000;
    const LAST: u8 = 60;
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LEN);
    let target = world.target_id();
    world.both(
        |port| {
            for value in 1..=LAST {
                insist(port, |port| port.put(&remote, 0, &[value; LEN], Options::new()));
            }
            assert_eq!(port.flush(target), Ok(()));
        },
        |port| {
            let (mut seen, mut found) = (vec![0; LEN], vec![0; LEN]);
            while seen.iter().any(|value| *value < LAST) {
                port.progress();
                region.read(0, &mut found);
                let goes_back = seen.iter().zip(&found).position(|(seen, found)| found < seen);
                assert_eq!(goes_back, None, "a byte of a put before");
                assert!(found.iter().all(|value| *value <= LAST), "a byte that nobody put");
                std::mem::swap(&mut seen, &mut found);
            }
        },
    );
    assert_eq!(contents(&region), [LAST; LEN]);
}

/// Whether an operation has happened when its call returns is the executor's affair: a flush tells.
// spec: ORD-10, ORD-9
pub fn only_a_flush_tells<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(8);
    for value in 1..=200 {
        world.post(|port| port.put_immediate(&remote, 0, value, Options::new()));
        let found = region.load(0);
        // Where nobody but the target's calls perform it, it has not.
        let traits = fabric.traits();
        let may_be_done = !traits.is_inline || traits.is_wire;
        assert!(found == value - 1 || found == value && may_be_done, "{found}");
        world.settle_ok();
        assert_eq!(region.load(0), value);
    }
}

/// A get and an atomic after a message find the data that its sender wrote before it.
// spec: ORD-12
pub fn a_get_after_a_message_sees_earlier_writes<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(FLAG);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    world.both(
        |port| {
            let mut found = vec![0; FLAG];
            for round in 0..ROUNDS {
                let message = port.recv(&mut [0; 8], None).expect("a message");
                assert_eq!(message.tag, round as u32);
                let found = &mut found[..len_of(round)];
                port.get(&remote, 1, &mut *found, Options::new()).expect("a get");
                assert_same(found, &pattern(round, found.len()), &round);
                port.send(target, 0, &[0; 8]).expect("room for one");
            }
        },
        |port| {
            for round in 0..ROUNDS {
                region.write(1, &pattern(round, len_of(round)));
                port.send(initiator, round as u32, &[0; 8]).expect("room for one");
                port.recv(&mut [0; 8], None).expect("an answer");
            }
        },
    );
}

/// Without any waiting for each other: whatever number the target is told, it finds every put up
/// to that one done.
// spec: ORD-1, ORD-2, ORD-3, MSG-4
pub fn a_stream_of_puts_is_never_behind_its_signals<F: Fabric>(fabric: F) {
    const SLOTS: u64 = 32;
    const COUNT: u64 = 20_000;
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(SLOTS as usize * 8);
    let target = world.target_id();
    world.both(
        |port| {
            for i in 1..=COUNT {
                let (slot, value) = (i % SLOTS * 8, i.to_le_bytes());
                insist(port, |port| port.put(&remote, slot, &value, Options::new()));
                insist(port, |port| match i % 2 {
                    0 => port.send(target, i as u32, &[1; 8]),
                    _ => port.notify(target, Options::new().tag(i as u32)).map(drop),
                });
            }
        },
        |port| {
            let (mut messages, mut notes) = (0, 0);
            while messages + notes < COUNT {
                let message = port.try_recv(&mut [0; 8]).expect("eight bytes fit");
                let note = port.poll_notification();
                messages += u64::from(message.is_some());
                notes += u64::from(note.is_some());
                for told in message.map(|m| m.tag).into_iter().chain(note.map(|n| n.tag)) {
                    let told = u64::from(told);
                    let found = region.load((told % SLOTS * 8) as usize);
                    assert!(found >= told, "told of {told}, found {found}");
                    assert_eq!(found % SLOTS, told % SLOTS, "another slot's value");
                }
                if message.is_none() && note.is_none() {
                    yield_now();
                }
            }
        },
    );
}

/// A record that is enqueued after a flush is not dequeued before the data that was flushed.
// spec: ORD-6, FLUSH-1, ORD-9
pub fn flushed_data_comes_before_a_later_record<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(FLAG);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let mut queue = world.target().create_queue(4096).expect("a queue");
    world.target().share_queue(initiator, &mut queue, 1).expect("a producer");
    let mut remote_queue = world.initiator().accept_queue(target, 1).expect("a queue");
    world.both(
        |port| {
            for round in 0..ROUNDS {
                let data = pattern(round, len_of(round));
                port.put(&remote, 1, &data, Options::new()).expect("a put");
                assert_eq!(port.flush(target), Ok(()));
                port.enqueue(&mut remote_queue, &[1]).expect("room for one");
                port.recv(&mut [0; 8], None).expect("an answer");
            }
        },
        |port| {
            for round in 0..ROUNDS {
                let expected = pattern(round, len_of(round));
                port.dequeue_wait(&mut queue, &mut [0; 8], None).expect("a record");
                check(&region, round, &expected);
                port.send(initiator, 0, &[0; 8]).expect("room for one");
            }
        },
    );
}
